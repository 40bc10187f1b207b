/* SPDX-License-Identifier: MIT */
/* Lets every allocation of the library fail, one after the other: each call ends with 0 or
 * SYM_ERR_NOMEM, and what failed can be done again. Leaks are the sanitizer's business. */
#include "context.h"

#include "elf_image.h"

#include "../alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char elf_path[96];
static char kallsyms_path[96];
static char map_path[96];
static char system_map_path[96];

static void put(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

static int make_files(void **state)
{
    (void)state;
    static struct image_symbol symbols[60];
    static char names[60][32];
    strcpy(folder, "/tmp/test_alloc.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(elf_path, sizeof(elf_path), "%s/elf", folder);
    snprintf(kallsyms_path, sizeof(kallsyms_path), "%s/symbols", folder);
    snprintf(map_path, sizeof(map_path), "%s/perf-42.map", folder);
    for (size_t i = 0; i < 60; i++) {
        snprintf(names[i], sizeof(names[i]), i % 2 == 0 ? "_ZN1a4f%02zuEi.cold" : "name_%02zu", i);
        symbols[i] =
            (struct image_symbol){names[i], (59 - i) * 16, 16, STT_FUNC, STB_GLOBAL, 0, false};
    }
    struct image image = {.symbols = symbols,
                          .symbol_count = 60,
                          .dynamic = symbols,
                          .dynamic_count = 60,
                          .build_id = "12345678901234567890"};
    size_t size;
    uint8_t *data = image_build(&image, &size);
    put(elf_path, data, size);
    free(data);
    char text[8192];
    int n = 0;
    for (int i = 0; i < 60; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%x t f%d%s\n", 0x100000 - i * 16, i,
                      i > 50 ? " [m]" : "");
    put(kallsyms_path, text, (size_t)n);
    /* A kernel with some system calls of few bytes in much text. */
    n = snprintf(text, sizeof(text),
                 "ffffffff81000000 T _stext\nffffffff81000040 T entry_SYSCALL_64\n"
                 "ffffffff81000080 T entry_SYSCALL_64_after_hwframe\nffffffff81000100 t f\n"
                 "ffffffff81f00000 T do_syscall_64\nffffffff81f00080 t g\n"
                 "ffffffff82000000 T _etext\n");
    for (int i = 0; i < 8; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n,
                      "ffffffff81%x00000 t __x64_sys_%d\nffffffff81%x00080 t h%d\n", i + 4, i,
                      i + 4, i);
    snprintf(system_map_path, sizeof(system_map_path), "%s/System.map-6.1", folder);
    put(system_map_path, text, (size_t)n);
    n = 0;
    for (int i = 0; i < 60; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%x 20 py::f%d:/x.py\n",
                      0x100000 - i * 16, i);
    put(map_path, text, (size_t)n);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(elf_path);
    unlink(kallsyms_path);
    unlink(map_path);
    unlink(system_map_path);
    return rmdir(folder);
}

static int native(void *user, const char *path, const uint8_t *build_id, size_t build_id_size,
                  const struct sym_query *query, struct sym_frame *frames, size_t capacity)
{
    (void)user, (void)path, (void)build_id, (void)build_id_size, (void)query;
    for (size_t i = 0; i < capacity && i < 20; i++) {
        frames[i].raw_name = "_ZN1a1bEi";
        frames[i].file = "a.c";
    }
    return 20;
}

/* Makes a call until it does not fail for want of memory: once more is enough when one
 * allocation fails. */
#define REPEAT(call)                                              \
    do {                                                          \
        int rc_ = (call);                                         \
        if (rc_ == SYM_ERR_NOMEM && alloc.failed && !alloc.stays) \
            rc_ = (call);                                         \
        if (rc_ != 0) {                                           \
            assert_true(alloc.failed &&alloc.stays);              \
            assert_int_equal(rc_, SYM_ERR_NOMEM);                 \
            goto done;                                            \
        }                                                         \
    } while (0)

static void run_everything(void)
{
    const int32_t pids[] = {42};
    const uint64_t needed[] = {0x100000 - 55 * 16, 0x100000 - 32};
    uint64_t moved[10] = {0xffffffff83000090};
    for (unsigned i = 0; i < 9; i++)
        moved[i + 1] = i == 8 ? 0xffffffff83f00010 : 0xffffffff83400010 + i * 0x100000;
    const struct sym_kernel_range ranges[] = {{0x4000, 0x5000, 0, "[m]", 0},
                                              {0x2000, 0x3000, 0, "[n]", 0}};
    const struct sym_ksymbol ksymbols[] = {{1, 0x5000, 0x100, "bpf_prog", 8},
                                           {3, 0x5000, 0, "", 0}};
    const struct sym_jit_name jit[] = {{0x5000, 0x5100, "later", 5},
                                       {0x4000, 0x4100, "py::g:/y.py", 11}};
    struct sym_options o = {.size = sizeof(o),
                            .perf_maps = SYM_PERF_MAPS_LIST,
                            .perf_map_pids = pids,
                            .perf_map_pid_count = 1,
                            .perf_map_dir = folder,
                            .sysroot = "/"};
    struct sym_kernel k = {.size = sizeof(k), .kallsyms = kallsyms_path};
    const char *dirs[] = {folder};
    struct sym_kernel moved_kernel = {.size = sizeof(moved_kernel),
                                      .release = "6.1",
                                      .needed = moved,
                                      .needed_count = 10,
                                      .ranges = ranges,
                                      .range_count = 2,
                                      .ksymbols = ksymbols,
                                      .ksymbol_count = 2};
    o.symbol_dirs = dirs;
    o.symbol_dir_count = 1;
    struct sym_context *c = NULL;
    struct sym_context *n = NULL;
    const struct sym_frame *f;
    size_t count;
    uint32_t handles[24];

    c = sym_context_new();
    if (c == NULL && !alloc.stays)
        c = sym_context_new();
    if (c == NULL) {
        assert_true(alloc.failed);
        return;
    }
    REPEAT(sym_context_open(c, &o));
    REPEAT(sym_kernel_load(c, &moved_kernel));
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    for (unsigned i = 0; i < 2; i++) {
        struct sym_query q = {
            .module = SYM_NO_MODULE, .kernel = true, .abs = i ? moved[9] : 0x5010, .time = 2};
        REPEAT(sym_resolve(c, &q, &f, &count));
        assert_string_equal(f->name, i ? "do_syscall_64" : "bpf_prog");
    }
    REPEAT(sym_kernel_load(c, &k));
    k.needed = needed;
    k.needed_count = 2;
    REPEAT(sym_kernel_load(c, &k));
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    for (unsigned i = 0; i < 24; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/missing/%u (deleted)", i);
        struct sym_module m = {.size = sizeof(m),
                               .path = i == 0   ? elf_path
                                       : i == 1 ? "//anon"
                                                : path,
                               .start = 0x1000,
                               .end = 0x2000,
                               .file_offset = 0x1000,
                               .build_id = (const uint8_t *)(i == 2 ? "x" : "12345678901234567890"),
                               .build_id_size = i == 2 ? 1 : 20,
                               .jit_names = i == 3 ? jit : NULL,
                               .jit_name_count = i == 3 ? 2 : 0};
        REPEAT(sym_module_add(c, &m, &handles[i]));
    }
    for (uint64_t at = 0; at < 60; at++) {
        struct sym_query q = {
            .module = handles[0], .pid = 42, .abs = 0x1000 + at * 16, .rel = 0x1000 + at * 16};
        REPEAT(sym_resolve(c, &q, &f, &count));
        assert_non_null(f->name);
    }
    for (unsigned i = 1; i < 6; i++) {
        struct sym_query q = {.module = handles[i],
                              .pid = 42,
                              .abs = i == 3 ? 0x4010 : 0xffff0,
                              .rel = 7,
                              .python_allowed = true};
        REPEAT(sym_resolve(c, &q, &f, &count));
        assert_int_equal(f->name != NULL, i == 1 || i == 3);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct sym_query q = {.module = SYM_NO_MODULE, .kernel = true, .abs = needed[i]};
        REPEAT(sym_resolve(c, &q, &f, &count));
        assert_non_null(f->name);
    }
    const struct sym_query kernel[] = {{.module = SYM_NO_MODULE, .kernel = true, .abs = needed[0]},
                                       {.module = SYM_NO_MODULE, .kernel = true, .abs = needed[1]}};
    const struct sym_pack_options pack = {.size = sizeof(pack), .level = SYM_LEVEL_LINES};
    struct sym_packed packed;
    REPEAT(sym_pack_kernel(c, kernel, 2, &pack, &packed));
    assert_int_equal(packed.named_count, 2);
    free(packed.data);
    REPEAT(sym_pack_kallsyms(c, kernel, 2, &packed));
    assert_int_equal(packed.named_count, 2);
    free(packed.data);
    REPEAT(sym_pack_perf_map(c, 42, NULL, 0, &packed));
    free(packed.data);
    n = sym_context_new();
    if (n == NULL && !alloc.stays)
        n = sym_context_new();
    if (n == NULL)
        goto done;
    REPEAT(sym_context_open(n, &(struct sym_options){.size = sizeof(o), .native = native}));
    struct sym_module m = {.size = sizeof(m), .path = "/x"};
    REPEAT(sym_module_add(n, &m, &handles[0]));
    struct sym_query q = {.module = handles[0]};
    REPEAT(sym_resolve(n, &q, &f, &count));
    assert_int_equal(count, 20);
    assert_string_equal(f[19].name, "a::b(int)");
    char *text = sym_demangle_name("_ZN1a1bEi.cold", SYM_DEMANGLE_FULL);
    if (text == NULL)
        assert_true(alloc.failed);
    free(text);
done:
    if (c != NULL)
        assert_true(sym_context_error(c)[0] != '\0');
    sym_context_free(c);
    sym_context_free(n);
}

static void fail_each(bool and_later)
{
    long n = 1;
    for (;; n++) {
        alloc.stays = and_later;
        alloc.failed = false;
        alloc.countdown = n;
        run_everything();
        alloc.countdown = 0;
        alloc.stays = false;
        if (!alloc.failed)
            break;
    }
    assert_true(n > 100);
    alloc.failed = false;
}

static void any_one_allocation_may_fail(void **state)
{
    (void)state;
    fail_each(false);
}

static void all_allocations_from_any_one_on_may_fail(void **state)
{
    (void)state;
    fail_each(true);
}

static char large_name[10000];
static unsigned left_alone; /* for want of a thread */

static void demangle_large(void *unused)
{
    (void)unused;
    char *text = sym_demangle_name(large_name, SYM_DEMANGLE_FULL);
    if (text == NULL) {
        assert_true(alloc.failed);
    } else if (strcmp(text, large_name) == 0) {
        assert_true(alloc.failed);
        left_alone++;
    } else {
        assert_memory_equal(text, "aaa", 3);
    }
    free(text);
}

/* One that is demangled on the stack of a thread of its own. */
static void a_large_name_is_demangled_or_left_or_memory_is_out(void **state)
{
    (void)state;
    memset(large_name, 'a', sizeof(large_name) - 1);
    memcpy(large_name, "_Z9990", 6);
    strcpy(large_name + 6 + 9990, "v");
    assert_true(alloc_try_each(demangle_large, NULL) > 2);
    assert_true(left_alone > 0);
}

/* Its printer would end the process. */
static void a_name_of_d_is_not_begun_without_room_for_it(void **state)
{
    static const char name[] = "_D8mymodule8function4withFiaZv";
    (void)state;
    char *text = sym_demangle_name(name, SYM_DEMANGLE_FULL);
    assert_non_null(text);
    assert_string_equal(text, "mymodule.function.with(int, char)");
    free(text);
    alloc.largest = 1000;
    text = sym_demangle_name(name, SYM_DEMANGLE_FULL);
    alloc.largest = 0;
    assert_null(text);
}

/* Resolves an address by a map whose lines have names of 200 bytes, with room for the file's pieces
 * but no allocation of more than `limit`. */
static int resolve_by_map(size_t lines, size_t limit, enum sym_miss *miss)
{
    struct sym_context *c = sym_context_new();
    struct sym_options o = {.size = sizeof(o), .perf_map_dir = folder};
    struct sym_query q = {.module = SYM_NO_MODULE, .pid = 43, .abs = 0x1000};
    struct sym_perf_map_state s;
    const struct sym_frame *f;
    size_t count;
    char path[96];
    snprintf(path, sizeof(path), "%s/perf-43.map", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < lines; i++)
        fprintf(file, "%zx 10 %0200zu\n", 0x1000 + i * 16, i);
    assert_int_equal(fclose(file), 0);
    assert_non_null(c);
    assert_int_equal(sym_context_open(c, &o), 0);
    alloc.largest = limit;
    int rc = sym_resolve(c, &q, &f, &count);
    alloc.largest = 0;
    *miss = SYM_MISS_NONE;
    if (rc == 0) {
        assert_int_equal(sym_perf_map_state(c, 43, &s), 1);
        assert_int_equal(f->name != NULL, s.miss == SYM_MISS_NONE);
        *miss = s.miss;
    }
    sym_context_free(c);
    unlink(path);
    return rc;
}

static void a_large_map_that_memory_has_no_room_for_is_a_miss(void **state)
{
    (void)state;
    enum sym_miss miss;
    assert_int_equal(resolve_by_map(1000, 300 * 1000, &miss), 0);
    assert_int_equal(miss, SYM_MISS_NONE);
    /* Without memory for some hundred KiB there is none for anything. */
    assert_int_equal(resolve_by_map(4000, 300 * 1000, &miss), SYM_ERR_NOMEM);
    assert_int_equal(resolve_by_map(8000, 1500 * 1000, &miss), 0);
    assert_int_equal(miss, SYM_MISS_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_one_allocation_may_fail),
        cmocka_unit_test(all_allocations_from_any_one_on_may_fail),
        cmocka_unit_test(a_large_name_is_demangled_or_left_or_memory_is_out),
        cmocka_unit_test(a_name_of_d_is_not_begun_without_room_for_it),
        cmocka_unit_test(a_large_map_that_memory_has_no_room_for_is_a_miss),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
