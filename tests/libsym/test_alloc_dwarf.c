/* SPDX-License-Identifier: MIT */
/* Lets every allocation of looking an address up in debug information fail, one after the other: the lookup says so or
 * has the answer, and the next one has it. Leaks are the sanitizer's business. */
#include "dwarf.h"

#include "elf_private.h"
#include "locate.h"

#include "../alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* A file of the fuzzer's corpus; what it says of the one that it may have in it is in fuzz_dwarf.c. */
#define CORPUS FIXTURES_DIR "/../fuzz/corpus/dwarf/"
#define PART_FD 200

static uint8_t bytes[16 * 1024];
static size_t size;

static void read_corpus(const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s%s", CORPUS, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size = fread(bytes, 1, sizeof(bytes), f);
    assert_true(size > 8 && size < sizeof(bytes));
    fclose(f);
    if (memcmp(bytes + size - 8, "PART", 4) != 0)
        return;
    const uint8_t *n = bytes + size - 4;
    size_t first = (size_t)n[0] | (size_t)n[1] << 8;
    int made = memfd_create("part", 0);
    assert_true(made >= 0 && dup2(made, PART_FD) == PART_FD);
    assert_true(first < size - 8);
    assert_int_equal(pwrite(PART_FD, bytes + first, size - 8 - first, 0), size - 8 - first);
    close(made);
    size = first;
}

struct opened {
    struct symint_system system;
    struct symint_search_options options;
    struct symint_arena arena;
    struct symint_strings strings;
    struct symint_dwarf *dwarf;
    uint64_t address;
};

static void open_file(struct opened *o)
{
    struct symint_input input = {.fd = -1, .memory = bytes, .size = size};
    struct symint_debug_file file = {.fd = -1};
    enum sym_miss miss;
    const char *why;
    memset(o, 0, sizeof(*o));
    o->options.system = &o->system;
    assert_int_equal(symint_elf_open(&input, &file.elf, &miss, &why), 0);
    assert_non_null(file.elf);
    assert_int_equal(symint_elf_read_sections(file.elf, &miss, &why), 0);
    for (uint64_t i = 1; i < file.elf->section_count && o->address == 0; i++)
        if (file.elf->sections[i].executable)
            o->address = file.elf->sections[i].addr;
    file.path = strdup("/nowhere/program");
    assert_non_null(file.path);
    assert_int_equal(
        symint_dwarf_open(&o->options, &o->arena, &file, "/nowhere/program", 0, &o->dwarf), 0);
    assert_non_null(o->dwarf);
}

static void close_file(struct opened *o)
{
    symint_dwarf_free(o->dwarf);
    symint_strings_free(&o->strings);
    symint_arena_free(&o->arena);
}

struct answer {
    size_t count, piece_count;
    char name[64];
    uint32_t line;
};

static int ask(struct opened *o, struct answer *a)
{
    static const struct symint_dwarf_want want = {.inlines = true, .lines = true, .likely = true};
    struct symint_dwarf_chain chain;
    int rc = symint_dwarf_lookup(o->dwarf, &o->strings, &want, o->address, &chain);
    *a = (struct answer){.count = chain.count, .piece_count = chain.piece_count};
    if (rc == 0 && chain.count > 0) {
        if (chain.levels[0].name != NULL)
            snprintf(a->name, sizeof(a->name), "%s", chain.levels[0].name->text);
        a->line = chain.levels[0].line;
    }
    return rc;
}

static void fail_each(const char *name, size_t levels)
{
    struct opened o;
    struct answer right;
    struct answer got;
    read_corpus(name);
    open_file(&o);
    assert_int_equal(ask(&o, &right), 0);
    close_file(&o);
    assert_int_equal(right.count, levels);
    long failed = 0;
    for (long n = 1;; n++) {
        open_file(&o);
        alloc.countdown = n;
        int rc = ask(&o, &got);
        bool reached = alloc.countdown == 0;
        alloc.countdown = 0;
        if (rc == 0)
            assert_memory_equal(&got, &right, sizeof(got));
        else
            assert_int_equal(rc, SYM_ERR_NOMEM);
        failed += rc != 0;
        assert_int_equal(ask(&o, &got), 0);
        assert_memory_equal(&got, &right, sizeof(got));
        close_file(&o);
        if (!reached)
            break;
    }
    assert_true(failed > 10);
}

static void after_a_failed_allocation_the_answer_is_right(void **state)
{
    (void)state;
    fail_each("gcc2", 3);
    fail_each("clang5", 3);
    fail_each("zstd", 3);
}

static void that_is_so_with_a_supplementary_file(void **state)
{
    (void)state;
    fail_each("dwz", 3);
}

static void that_is_so_with_a_split_file(void **state)
{
    (void)state;
    fail_each("split5", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_failed_allocation_the_answer_is_right),
        cmocka_unit_test(that_is_so_with_a_supplementary_file),
        cmocka_unit_test(that_is_so_with_a_split_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
