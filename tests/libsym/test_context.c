/* SPDX-License-Identifier: MIT */
/* The public API: the order of sources, files that are not what they should be, and remembered
 * answers. */
#include "context.h"

#include "elf_image.h"
#include <elf.h>
#include <limits.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#define START 0x7f0000001000u
#define ID "12345678901234567890"

static char folder[64];

static const char *at(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *data, size_t size)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void put_elf(const char *name, const char *build_id)
{
    static const struct image_symbol symbols[] = {
        {"_ZN1a1bEi", 0x10, 0x10, STT_FUNC, STB_GLOBAL, 0, false},
        {"plain", 0x40, 0x10, STT_FUNC, STB_GLOBAL, 0, false},
        {"_PyEval_EvalFrameDefault", 0x80, 0x10, STT_FUNC, STB_GLOBAL, 0, false},
    };
    struct image image = {.symbols = symbols, .symbol_count = 3, .build_id = build_id};
    size_t size;
    uint8_t *data = image_build(&image, &size);
    put(name, data, size);
    free(data);
}

static int make_files(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_context.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    put_elf("good", ID);
    put_elf("other", "another build");
    put_elf("no_id", NULL);
    put_elf("gone (deleted)", ID);
    put_elf("replaced", ID);
    put_elf("python3.11", ID);
    put("text", "#!/bin/sh\n", 10);
    put("empty", "", 0);
    static const char map[] =
        "1000 100 jitted\npoor line\n2000 100 py::f:/x/a.py\n7f0000001000 100 in_anon\n";
    put("perf-42.map", map, sizeof(map) - 1);
    if (mkfifo(at("fifo"), 0600) != 0 || mkdir(at("dir"), 0700) != 0)
        return -1;
    return mkdir(at("root"), 0700) != 0 || mkdir(at("root/usr"), 0700) != 0;
}

static int remove_files(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static struct sym_context *open_with(const struct sym_options *options)
{
    struct sym_options o = options != NULL ? *options : (struct sym_options){0};
    struct sym_context *c = sym_context_new();
    assert_non_null(c);
    o.size = sizeof(o);
    if (o.perf_map_dir == NULL)
        o.perf_map_dir = folder;
    assert_int_equal(sym_context_open(c, &o), 0);
    return c;
}

static uint32_t add(struct sym_context *c, const char *path, const char *build_id)
{
    uint32_t handle;
    struct sym_module m = {.size = sizeof(m),
                           .path = path,
                           .start = START,
                           .end = START + 0x1000,
                           .file_offset = 0x1000,
                           .build_id = (const uint8_t *)build_id,
                           .build_id_size = build_id != NULL ? strlen(build_id) : 0};
    assert_int_equal(sym_module_add(c, &m, &handle), 0);
    return handle;
}

/* offset: in the mapping. */
static const struct sym_frame *ask(struct sym_context *c, uint32_t module, uint64_t offset)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {
        .module = module, .pid = 42, .abs = START + offset, .rel = offset + 0x1000};
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(count, 1);
    return f;
}

static const struct sym_frame *ask_abs(struct sym_context *c, uint64_t abs, int32_t pid,
                                       bool python)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {
        .module = SYM_NO_MODULE, .pid = pid, .abs = abs, .python_allowed = python};
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(count, 1);
    return f;
}

static void a_frame_has_all_that_the_symbol_says(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    uint32_t m = add(c, at("good"), ID);
    const struct sym_frame *f = ask(c, m, 0x14);
    assert_string_equal(f->name, "a::b(int)");
    assert_string_equal(f->raw_name, "_ZN1a1bEi");
    assert_int_equal(f->offset, 4);
    assert_int_equal(f->function_start, 0x1010);
    assert_int_equal(f->origin, SYM_ORIGIN_SYMTAB);
    assert_int_equal(f->kind, SYM_KIND_USER);
    assert_int_equal(f->flags, 0);
    assert_int_equal(f->miss, SYM_MISS_NONE);
    assert_false(f->inlined);
    assert_null(f->file);
    f = ask(c, m, 0x40);
    assert_string_equal(f->name, "plain");
    assert_null(f->raw_name);
    const char *detail;
    assert_int_equal(sym_module_state(c, m, &detail), SYM_MISS_NONE);
    assert_string_equal(detail, "");
    sym_context_free(c);
}

static void a_return_address_belongs_to_the_call_before_it(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    uint32_t m = add(c, at("good"), ID);
    const struct sym_frame *inside = ask(c, m, 0x1f);
    assert_string_equal(inside->name, "a::b(int)");
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {.module = m, .abs = START + 0x20, .rel = 0x1020, .return_address = true};
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_ptr_equal(f, inside);
    q.return_address = false;
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_ptr_not_equal(f, inside);
    sym_context_free(c);
}

static void names_follow_the_demangling_option(void **state)
{
    (void)state;
    struct sym_context *c = open_with(&(struct sym_options){.demangle = SYM_DEMANGLE_SHORT});
    assert_string_equal(ask(c, add(c, at("good"), ID), 0x10)->name, "a::b");
    sym_context_free(c);
    c = open_with(&(struct sym_options){.demangle = SYM_DEMANGLE_NONE});
    const struct sym_frame *f = ask(c, add(c, at("good"), ID), 0x10);
    assert_string_equal(f->name, "_ZN1a1bEi");
    assert_null(f->raw_name);
    sym_context_free(c);
}

static void an_address_without_a_symbol_says_why(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    uint32_t m = add(c, at("good"), ID);
    const struct sym_frame *f = ask(c, m, 0x200);
    assert_null(f->name);
    assert_int_equal(f->miss, SYM_MISS_NO_SYMBOL);
    assert_int_equal(f->function_start, 0x1200);
    assert_int_equal(f->offset, 0);
    assert_int_equal(f->origin, SYM_ORIGIN_ADDRESS);
    assert_int_equal(ask(c, m, 0x9000)->miss, SYM_MISS_OUTSIDE);
    assert_int_equal(ask_abs(c, 0x10, 1, true)->miss, SYM_MISS_NO_MODULE);
    assert_int_equal(ask_abs(c, 0x10, 1, true)->function_start, 0x10);
    sym_context_free(c);
}

static void files_that_are_not_the_module_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *build_id;
        enum sym_miss miss;
    } cases[] = {
        {"missing", ID, SYM_MISS_NO_FILE},  {"good/below", ID, SYM_MISS_NO_FILE},
        {"fifo", ID, SYM_MISS_NOT_REGULAR}, {"dir", ID, SYM_MISS_NOT_REGULAR},
        {"text", ID, SYM_MISS_NOT_ELF},     {"empty", NULL, SYM_MISS_NOT_ELF},
        {"other", ID, SYM_MISS_BUILD_ID},   {"no_id", ID, SYM_MISS_BUILD_ID},
        {"good", "123", SYM_MISS_BUILD_ID},
    };
    struct sym_context *c = open_with(NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t m = add(c, at(cases[i].name), cases[i].build_id);
        const char *detail;
        assert_int_equal(sym_module_state(c, m, &detail), SYM_MISS_NONE); /* not needed yet */
        assert_string_equal(detail, "");
        const struct sym_frame *f = ask(c, m, 0x14);
        assert_null(f->name);
        assert_int_equal(f->miss, cases[i].miss);
        assert_int_equal(sym_module_state(c, m, &detail), cases[i].miss);
        assert_non_null(strstr(detail, at(cases[i].name)));
    }
    uint32_t m = add(c, "/dev/zero2", NULL);
    assert_int_equal(ask(c, m, 0)->miss, SYM_MISS_NO_FILE);
    m = add(c, "/dev/null", NULL);
    assert_int_equal(ask(c, m, 0)->miss, SYM_MISS_NOT_REGULAR);
    m = add(c, "good", NULL);
    assert_int_equal(ask(c, m, 0)->miss, SYM_MISS_NO_FILE); /* not from the current folder */
    m = add(c, "[vdso]", NULL);
    assert_int_equal(ask(c, m, 0)->miss, SYM_MISS_NO_FILE);
    sym_context_free(c);
}

static void a_file_without_a_recorded_build_id_is_unverified(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    const struct sym_frame *f = ask(c, add(c, at("good"), NULL), 0x14);
    assert_string_equal(f->name, "a::b(int)");
    assert_int_equal(f->flags, SYM_FLAG_UNVERIFIED);
    sym_context_free(c);
}

static void deleted_files_are_found_verbatim_or_by_build_id(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    assert_non_null(ask(c, add(c, at("gone (deleted)"), NULL), 0x14)->name);
    assert_non_null(ask(c, add(c, at("replaced (deleted)"), ID), 0x14)->name);
    assert_int_equal(ask(c, add(c, at("replaced (deleted)"), NULL), 0x14)->miss, SYM_MISS_NO_FILE);
    sym_context_free(c);
    c = open_with(NULL); /* which has not seen that build anywhere */
    assert_int_equal(ask(c, add(c, at("other (deleted)"), ID), 0x14)->miss, SYM_MISS_BUILD_ID);
    sym_context_free(c);
}

static void the_sysroot_holds_links_too(void **state)
{
    (void)state;
    put_elf("root/usr/inside", ID);
    put_elf("outside", ID);
    assert_int_equal(symlink("/usr/inside", at("root/absolute")), 0);
    assert_int_equal(symlink(at("outside"), at("root/escape")), 0);
    struct sym_context *c = open_with(&(struct sym_options){.sysroot = at("root")});
    assert_non_null(ask(c, add(c, "/usr/inside", ID), 0x14)->name);
    assert_non_null(ask(c, add(c, "/absolute", ID), 0x14)->name);
    sym_context_free(c);
    c = open_with(&(struct sym_options){.sysroot = at("root")});
    uint32_t m = add(c, "/escape", ID);
    assert_int_equal(ask(c, m, 0x14)->miss, SYM_MISS_NO_FILE);
    assert_int_equal(ask(c, add(c, "/../../../../../../etc/passwd", NULL), 0x14)->miss,
                     SYM_MISS_NO_FILE);
    const char *detail;
    sym_module_state(c, m, &detail);
    assert_non_null(strstr(detail, at("root/escape")));
    sym_context_free(c);
    c = open_with(&(struct sym_options){.sysroot = "/nonexistent"});
    assert_int_equal(ask(c, add(c, at("good"), ID), 0x14)->miss, SYM_MISS_NO_FILE);
    sym_context_free(c);
}

static void mappings_of_one_file_share_tables_and_answers(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    uint32_t a = add(c, at("good"), ID);
    uint32_t b = add(c, at("good"), ID);
    assert_int_not_equal(a, b);
    const struct sym_frame *f = ask(c, a, 0x14);
    uint32_t files = c->registry.file_count;
    assert_ptr_equal(ask(c, b, 0x14), f);
    assert_int_equal(c->registry.file_count, files);
    uint64_t bytes = sym_context_table_bytes(c);
    assert_true(bytes > 0);
    assert_ptr_not_equal(ask(c, add(c, at("good"), NULL), 0x14), f); /* another identity */
    assert_true(sym_context_table_bytes(c) > bytes);
    sym_context_free(c);
}

static void files_of_one_build_share_tables_wherever_they_are(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    assert_int_equal(ask(c, add(c, at("missing"), ID), 0x14)->miss, SYM_MISS_NO_FILE);
    uint32_t m = add(c, at("good"), ID);
    assert_non_null(ask(c, m, 0x14)->name);
    uint64_t bytes = sym_context_table_bytes(c);
    uint32_t other = add(c, at("container/good"), ID);
    assert_string_equal(ask(c, other, 0x14)->name, "a::b(int)");
    assert_int_equal(sym_context_table_bytes(c), bytes);
    /* Each may leave without harm to the other. */
    assert_int_equal(sym_module_invalidate(c, m), 0);
    assert_string_equal(ask(c, other, 0x44)->name, "plain");
    assert_int_equal(sym_module_invalidate(c, other), 0);
    assert_int_equal(sym_context_table_bytes(c), 0);
    assert_int_equal(ask(c, other, 0x48)->miss, SYM_MISS_NO_FILE);
    sym_context_free(c);
}

static void a_stripped_copy_does_not_answer_for_the_whole_file(void **state)
{
    (void)state;
    static const struct image_symbol exported[] = {
        {"exported", 0x80, 0x10, STT_FUNC, STB_GLOBAL, 0, false}};
    struct image image = {.dynamic = exported, .dynamic_count = 1, .build_id = ID};
    size_t size;
    uint8_t *data = image_build(&image, &size);
    put("stripped", data, size);
    free(data);
    struct sym_context *c = open_with(NULL);
    assert_int_equal(ask(c, add(c, at("stripped"), ID), 0x14)->miss, SYM_MISS_NO_SYMBOL);
    assert_string_equal(ask(c, add(c, at("good"), ID), 0x14)->name, "a::b(int)");
    sym_context_free(c);
}

static void a_module_that_was_invalidated_is_looked_for_again(void **state)
{
    (void)state;
    put_elf("changing", NULL);
    struct sym_context *c = open_with(NULL);
    uint32_t m = add(c, at("changing"), NULL);
    const struct sym_frame *before = ask(c, m, 0x14);
    assert_string_equal(before->name, "a::b(int)");
    put("changing", "#!/bin/sh\n", 10);
    assert_ptr_equal(ask(c, m, 0x14), before);
    assert_int_equal(sym_module_invalidate(c, m), 0);
    assert_int_equal(ask(c, m, 0x14)->miss, SYM_MISS_NOT_ELF);
    put_elf("changing", NULL);
    assert_int_equal(ask(c, m, 0x14)->miss, SYM_MISS_NOT_ELF);
    assert_int_equal(sym_module_invalidate(c, m), 0);
    assert_string_equal(ask(c, m, 0x14)->name, "a::b(int)");
    assert_string_equal(before->name, "a::b(int)");
    assert_int_equal(sym_module_invalidate(c, m + 1), SYM_ERR_MISUSE);
    sym_context_free(c);
}

static void tables_beyond_the_limit_are_dropped_and_read_again(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    ask(c, add(c, at("good"), NULL), 0);
    uint64_t one = sym_context_table_bytes(c);
    sym_context_free(c);
    c = open_with(&(struct sym_options){.memory_limit_bytes = 2 * one});
    uint32_t m[4] = {add(c, at("good"), NULL), add(c, at("no_id"), NULL), add(c, at("other"), NULL),
                     add(c, at("replaced"), NULL)};
    for (uint64_t round = 0; round < 3; round++)
        for (int i = 0; i < 4; i++) {
            assert_string_equal(ask(c, m[i], 0x10 + round)->name, "a::b(int)");
            assert_string_equal(ask(c, m[0], 0x18 + round)->name, "a::b(int)");
            assert_true(sym_context_table_bytes(c) <= 2 * one);
            assert_int_equal(sym_module_state(c, m[i], NULL), SYM_MISS_NONE);
        }
    sym_context_free(c);
    /* One file may exceed the limit alone. */
    c = open_with(&(struct sym_options){.memory_limit_bytes = 1});
    assert_non_null(ask(c, add(c, at("good"), NULL), 0x14)->name);
    assert_true(sym_context_table_bytes(c) > 1);
    assert_non_null(ask(c, add(c, at("other"), NULL), 0x14)->name);
    assert_true(sym_context_table_bytes(c) <= one);
    sym_context_free(c);
}

static void a_shared_file_is_read_again_where_it_was_found(void **state)
{
    (void)state;
    struct sym_context *c = open_with(&(struct sym_options){.memory_limit_bytes = 1});
    uint32_t here = add(c, at("good"), ID);
    uint32_t gone = add(c, at("missing"), ID);
    uint32_t other = add(c, at("no_id"), NULL);
    for (uint64_t round = 0; round < 3; round++) {
        assert_string_equal(ask(c, here, 0x10 + round)->name, "a::b(int)");
        assert_non_null(ask(c, other, 0x10 + round)->name); /* which drops the first */
        assert_string_equal(ask(c, gone, 0x18 + round)->name, "a::b(int)");
        assert_non_null(ask(c, other, 0x18 + round)->name);
    }
    /* What is looked for again is looked for at its own path, though others know the file. */
    assert_int_equal(sym_module_invalidate(c, gone), 0);
    assert_int_equal(ask(c, gone, 0x14)->miss, SYM_MISS_NO_FILE);
    assert_string_equal(ask(c, here, 0x14)->name, "a::b(int)");
    sym_context_free(c);
}

static void what_one_capture_found_does_not_answer_for_another(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    struct sym_capture now = {
        .size = sizeof(now), .has_start_time = true, .start_time_us = UINT64_MAX / 2};
    assert_int_equal(sym_capture_begin(c, &now), 0);
    uint32_t first = add(c, at("changing"), NULL);
    put_elf("changing", NULL);
    assert_non_null(ask(c, first, 0x14)->name);
    unlink(at("changing"));
    assert_int_equal(sym_capture_begin(c, &now), 0);
    assert_int_equal(ask(c, add(c, at("changing"), NULL), 0x14)->miss, SYM_MISS_NO_FILE);
    sym_context_free(c);
}

static uint32_t flags_of(struct sym_context *c, struct sym_module m, enum sym_miss *miss)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {.abs = START + 0x14, .rel = 0x1014};
    m.size = sizeof(m);
    m.start = START;
    m.end = START + 0x1000;
    m.file_offset = 0x1000;
    assert_int_equal(sym_module_add(c, &m, &q.module), 0);
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    *miss = f->miss;
    return f->flags;
}

static void without_a_build_id_size_and_time_are_compared(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    struct stat st;
    enum sym_miss miss;
    assert_int_equal(stat(at("no_id"), &st), 0);
    struct sym_module m = {.path = at("no_id"),
                           .has_file_state = true,
                           .file_size_bytes = (uint64_t)st.st_size,
                           .file_mtime_ns =
                               (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
    assert_int_equal(flags_of(c, m, &miss), 0);
    assert_int_equal(miss, SYM_MISS_NONE);
    m.file_mtime_ns++;
    flags_of(c, m, &miss);
    assert_int_equal(miss, SYM_MISS_BUILD_ID);
    m.file_mtime_ns--;
    m.file_size_bytes++;
    flags_of(c, m, &miss);
    assert_int_equal(miss, SYM_MISS_BUILD_ID);
    sym_context_free(c);
}

static void on_the_same_boot_an_unchanged_inode_is_the_file(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    struct stat st;
    enum sym_miss miss;
    assert_int_equal(stat(at("no_id"), &st), 0);
    struct sym_module m = {.path = at("no_id"),
                           .inode = st.st_ino,
                           .dev_major = major(st.st_dev),
                           .dev_minor = minor(st.st_dev)};
    struct sym_capture later = {.size = sizeof(later),
                                .has_start_time = true,
                                .start_time_us = ((uint64_t)st.st_ctim.tv_sec + 2) * 1000000};
    assert_int_equal(flags_of(c, m, &miss), SYM_FLAG_UNVERIFIED); /* no capture */
    assert_int_equal(sym_capture_begin(c, &later), 0);
    assert_int_equal(flags_of(c, m, &miss), 0);
    m.inode++;
    assert_int_equal(flags_of(c, m, &miss), SYM_FLAG_UNVERIFIED);
    m.inode--;
    later.start_time_us -= 3000000; /* it was changed after that */
    assert_int_equal(sym_capture_begin(c, &later), 0);
    assert_int_equal(flags_of(c, m, &miss), SYM_FLAG_UNVERIFIED);
    sym_context_free(c);
}

static void many_queries_get_the_answers_of_single_ones(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static struct sym_query queries[COUNT];
    static struct sym_answer answers[COUNT];
    struct sym_context *c = open_with(NULL);
    uint32_t m[3] = {add(c, at("good"), ID), add(c, at("missing"), NULL), SYM_NO_MODULE};
    uint32_t random = 1;
    for (size_t i = 0; i < COUNT; i++) {
        random = random * 1664525 + 1013904223;
        queries[i] = (struct sym_query){.module = m[random % 3],
                                        .pid = 42,
                                        .abs = 0x1000 + random / 7 % 0x1200,
                                        .rel = 0x1000 + random / 7 % 0x1200,
                                        .python_allowed = true};
    }
    assert_int_equal(sym_resolve_many(c, queries, COUNT, answers), 0);
    for (size_t i = 0; i < COUNT; i++) {
        const struct sym_frame *f;
        size_t count;
        assert_int_equal(sym_resolve(c, &queries[i], &f, &count), 0);
        assert_ptr_equal(answers[i].frames, f);
        assert_int_equal(answers[i].count, count);
    }
    assert_int_equal(sym_resolve_many(c, NULL, 0, NULL), 0);
    assert_int_equal(sym_resolve_many(c, NULL, 1, answers), SYM_ERR_MISUSE);
    queries[7].module = 99;
    assert_int_equal(sym_resolve_many(c, queries, COUNT, answers), SYM_ERR_MISUSE);
    sym_context_free(c);
}

static void thousands_of_answers_are_remembered(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    uint32_t m = add(c, at("good"), ID);
    const struct sym_frame *answers[0x1000];
    for (uint64_t i = 0; i < 0x1000; i++)
        answers[i] = ask(c, m, i);
    for (uint64_t i = 0; i < 0x1000; i++)
        assert_ptr_equal(ask(c, m, i), answers[i]);
    assert_int_equal(c->answer_count, 0x1000);
    sym_context_free(c);
}

static void python_machinery_is_marked(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    uint32_t m = add(c, at("python3.11"), ID);
    assert_int_equal(ask(c, m, 0x44)->flags, SYM_FLAG_PYTHON_RUNTIME);
    assert_int_equal(ask(c, m, 0x84)->flags, SYM_FLAG_PYTHON_RUNTIME | SYM_FLAG_PYTHON_EVAL);
    assert_int_equal(ask(c, m, 0x200)->flags, SYM_FLAG_PYTHON_RUNTIME);
    assert_int_equal(ask(c, add(c, at("good"), ID), 0x84)->flags, 0);
    sym_context_free(c);
}

static void perf_maps_speak_for_memory_without_a_file(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    struct sym_perf_map_state s;
    assert_int_equal(sym_perf_map_state(c, 42, &s), 0);
    const struct sym_frame *f = ask_abs(c, 0x1010, 42, false);
    assert_string_equal(f->name, "jitted");
    assert_int_equal(f->origin, SYM_ORIGIN_PERF_MAP);
    assert_int_equal(f->flags, SYM_FLAG_JIT);
    assert_int_equal(f->function_start, 0x1000);
    assert_int_equal(f->offset, 0x10);
    assert_int_equal(sym_perf_map_state(c, 42, &s), 1);
    assert_true(s.found);
    assert_int_equal(s.miss, SYM_MISS_NONE);
    assert_int_equal(s.entries, 3);
    assert_int_equal(s.bad_lines, 1);
    assert_string_equal(s.path, at("perf-42.map"));

    uint32_t anon = add(c, "//anon", NULL);
    f = ask(c, anon, 0x20);
    assert_string_equal(f->name, "in_anon");
    assert_int_equal(f->flags, SYM_FLAG_JIT | SYM_FLAG_ANONYMOUS);
    assert_int_equal(f->function_start, 0x1000); /* in the mapping's terms */
    assert_int_equal(f->offset, 0x20);
    f = ask(c, anon, 0x800);
    assert_int_equal(f->miss, SYM_MISS_NOT_IN_PERF_MAP);
    assert_int_equal(f->flags, SYM_FLAG_ANONYMOUS);
    assert_int_equal(ask_abs(c, 0x1010, 43, false)->miss, SYM_MISS_NO_MODULE);
    assert_int_equal(sym_perf_map_state(c, 43, &s), 1);
    assert_false(s.found);
    assert_int_equal(s.miss, SYM_MISS_NO_FILE);
    /* Not for a file, though the map has a line for that address. */
    assert_string_equal(ask(c, add(c, at("good"), ID), 0x14)->name, "a::b(int)");
    sym_context_free(c);
}

static void a_perf_map_that_cannot_be_used_is_no_error(void **state)
{
    (void)state;
    static const struct {
        int32_t pid;
        enum sym_miss miss;
        uint64_t bad_lines;
    } cases[] = {{50, SYM_MISS_TOO_LARGE, 0},   {51, SYM_MISS_DAMAGED, 2},
                 {52, SYM_MISS_NOT_REGULAR, 0}, {53, SYM_MISS_NONE, 0},
                 {-1, SYM_MISS_NO_FILE, 0},     {0, SYM_MISS_NO_FILE, 0}};
    put("perf-50.map", "1000 100 f\n", 11);
    assert_int_equal(truncate(at("perf-50.map"), (off_t)1 << 30), 0);
    put("perf-51.map", "no\nmap\n", 7);
    assert_int_equal(mkfifo(at("perf-52.map"), 0600), 0);
    put("perf-53.map", "", 0);
    struct sym_context *c = open_with(NULL);
    uint32_t anon = add(c, "//anon", NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sym_perf_map_state s;
        struct sym_query q = {.module = anon, .pid = cases[i].pid, .abs = START, .rel = 0x1000};
        const struct sym_frame *f;
        size_t count;
        assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
        assert_null(f->name);
        assert_int_equal(f->miss, cases[i].miss == SYM_MISS_NONE ? SYM_MISS_NOT_IN_PERF_MAP
                                                                 : SYM_MISS_NO_PERF_MAP);
        assert_int_equal(sym_perf_map_state(c, cases[i].pid, &s), 1);
        assert_int_equal(s.miss, cases[i].miss);
        assert_int_equal(s.found, s.miss == SYM_MISS_NONE);
        assert_int_equal(s.entries, 0);
        assert_int_equal(s.bad_lines, cases[i].bad_lines);
    }
    assert_string_equal(sym_miss_text(SYM_MISS_TOO_LARGE), "too large");
    sym_context_free(c);
}

static void python_entries_need_permission_in_automatic_mode(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    assert_null(ask_abs(c, 0x2010, 42, false)->name);
    const struct sym_frame *f = ask_abs(c, 0x2010, 42, true);
    assert_string_equal(f->name, "f");
    assert_string_equal(f->file, "/x/a.py");
    assert_int_equal(f->kind, SYM_KIND_PYTHON);
    assert_null(ask_abs(c, 0x2010, 42, false)->name);
    assert_string_equal(ask_abs(c, 0x1010, 42, true)->name, "jitted");
    sym_context_free(c);
    c = open_with(&(struct sym_options){.perf_maps = SYM_PERF_MAPS_ALL});
    assert_string_equal(ask_abs(c, 0x2010, 42, false)->name, "f");
    sym_context_free(c);
    const int32_t pids[] = {77, 42};
    c = open_with(&(struct sym_options){
        .perf_maps = SYM_PERF_MAPS_LIST, .perf_map_pids = pids, .perf_map_pid_count = 2});
    assert_string_equal(ask_abs(c, 0x2010, 42, false)->name, "f");
    assert_null(ask_abs(c, 0x2010, 43, true)->name);
    struct sym_perf_map_state s;
    assert_int_equal(sym_perf_map_state(c, 43, &s), 0);
    sym_context_free(c);
    c = open_with(&(struct sym_options){.perf_maps = SYM_PERF_MAPS_NONE});
    assert_null(ask_abs(c, 0x1010, 42, true)->name);
    assert_int_equal(ask(c, add(c, "//anon", NULL), 0)->miss, SYM_MISS_DISABLED);
    sym_context_free(c);
}

static uint32_t add_jit(struct sym_context *c, bool jit, const struct sym_jit_name *names,
                        size_t count)
{
    uint32_t handle;
    struct sym_module m = {.size = sizeof(m),
                           .path = "[jit-1-2-3]",
                           .start = START,
                           .end = START + 0x1000,
                           .jit = jit,
                           .jit_names = names,
                           .jit_name_count = count};
    assert_int_equal(sym_module_add(c, &m, &handle), 0);
    return handle;
}

static const struct sym_frame *ask_jit(struct sym_context *c, uint32_t module, uint64_t offset)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {.module = module, .pid = 42, .abs = START + offset, .rel = offset};
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    return f;
}

static void recorded_jit_names_come_first(void **state)
{
    (void)state;
    struct sym_context *c = open_with(NULL);
    const struct sym_jit_name names[] = {
        {START, START + 0x100, "outer", 5},
        {START + 0x10, START + 0x20, "inner", 5},
        {START + 0x10, START + 0x20, "inner too", 9},
        {START + 0x40, START + 0x80, "py::g:/b.py", 11},
        {START + 0x200, START + 0x210, "a\0b", 3},
        {START + 0x300, START + 0x310, "", 0},
    };
    uint32_t m = add_jit(c, true, names, 6);
    const struct sym_frame *f = ask_jit(c, m, 0x15);
    assert_string_equal(f->name, "inner too"); /* of equal ones the later */
    assert_int_equal(f->origin, SYM_ORIGIN_JIT);
    assert_int_equal(f->flags, SYM_FLAG_JIT);
    assert_int_equal(f->function_start, 0x10);
    assert_int_equal(f->offset, 5);
    assert_string_equal(ask_jit(c, m, 0x20)->name, "outer");
    f = ask_jit(c, m, 0x50);
    assert_string_equal(f->name, "g");
    assert_string_equal(f->file, "/b.py");
    assert_int_equal(f->kind, SYM_KIND_PYTHON);
    assert_string_equal(ask_jit(c, m, 0x200)->name, "a b");
    f = ask_jit(c, m, 0x300);
    assert_int_equal(f->miss, SYM_MISS_NO_JIT_NAME);
    /* Generated code without names is not looked up elsewhere: the perf map has a line there. */
    m = add_jit(c, true, NULL, 0);
    f = ask_jit(c, m, 0x20);
    assert_null(f->name);
    assert_int_equal(f->miss, SYM_MISS_NO_JIT_NAME);
    sym_context_free(c);
}

static void without_native_only_recorded_names_count(void **state)
{
    (void)state;
    struct sym_context *c = open_with(&(struct sym_options){.no_native = true});
    const struct sym_jit_name names[] = {{START, START + 0x100, "f", 1}};
    assert_string_equal(ask_jit(c, add_jit(c, true, names, 1), 0)->name, "f");
    uint32_t m = add(c, at("good"), ID);
    assert_int_equal(ask(c, m, 0x14)->miss, SYM_MISS_DISABLED);
    assert_null(c->registry.files[c->registry.modules[m].file]->image);
    assert_int_equal(ask_abs(c, 0x1010, 42, true)->miss, SYM_MISS_DISABLED);
    struct sym_perf_map_state s;
    assert_int_equal(sym_perf_map_state(c, 42, &s), 0);
    sym_context_free(c);
}

/* ---- a symbolizer of the caller's own ---- */

struct native {
    int calls;
    int frames;
    int error; /* or, above 0, a number of frames that stay blank */
};

static int native_answer(void *user, const char *path, const uint8_t *build_id,
                         size_t build_id_size, const struct sym_query *query,
                         struct sym_frame *frames, size_t capacity)
{
    struct native *n = user;
    n->calls++;
    if (n->error != 0)
        return n->error;
    assert_string_equal(path, "/some/file");
    assert_int_equal(build_id_size, 4);
    assert_memory_equal(build_id, "abcd", 4);
    for (size_t i = 0; i < capacity && i < (size_t)n->frames; i++) {
        char name[32];
        assert_null(frames[i].name);
        snprintf(name, sizeof(name), "frame%zu", i);
        frames[i].name = strdup(name); /* copied by libsym, freed below */
        frames[i].raw_name = i == 0 ? "_Zraw" : NULL;
        frames[i].file = "a.c";
        frames[i].line = (uint32_t)i + 1;
        frames[i].column = 2;
        frames[i].start_line = 3;
        frames[i].inlined = true;
        frames[i].origin = SYM_ORIGIN_DWARF;
        frames[i].function_start = query->rel - 1;
        frames[i].offset = 1;
        frames[i].flags = SYM_FLAG_UNVERIFIED;
    }
    return n->frames;
}

static void a_native_symbolizer_replaces_the_files(void **state)
{
    (void)state;
    struct native n = {.frames = 3};
    struct sym_context *c =
        open_with(&(struct sym_options){.native = native_answer, .native_user = &n});
    uint32_t m = add(c, "/some/file", "abcd");
    struct sym_query q = {.module = m, .pid = 42, .abs = START + 4, .rel = 0x1004};
    const struct sym_frame *f;
    size_t count;
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(count, 3);
    assert_string_equal(f[0].name, "frame0");
    assert_string_equal(f[0].raw_name, "_Zraw");
    assert_string_equal(f[1].name, "frame1");
    assert_string_equal(f[2].file, "a.c");
    assert_int_equal(f[2].line, 3);
    assert_int_equal(f[0].column, 2);
    assert_int_equal(f[0].start_line, 3);
    assert_true(f[0].inlined && f[1].inlined);
    assert_false(f[2].inlined); /* the last is the physical function */
    assert_int_equal(f[0].origin, SYM_ORIGIN_DWARF);
    assert_int_equal(f[0].function_start, 0x1003);
    assert_int_equal(f[0].flags, SYM_FLAG_UNVERIFIED);
    for (size_t i = 0; i < 3; i++)
        free((void *)(uintptr_t)c->native_frames[i].name);
    const struct sym_frame *again;
    assert_int_equal(sym_resolve(c, &q, &again, &count), 0);
    assert_ptr_equal(again, f);
    assert_int_equal(n.calls, 1);
    sym_context_free(c);
}

static void what_a_native_symbolizer_passes_on_is_asked_of_the_files(void **state)
{
    (void)state;
    char own_path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);
    assert_true(size > 0);
    own_path[size] = '\0';
    struct native n = {.error = SYM_NATIVE_PASS};
    struct sym_context *plain = open_with(&(struct sym_options){0});
    struct sym_context *c =
        open_with(&(struct sym_options){.native = native_answer, .native_user = &n});
    struct sym_module m = {.size = sizeof(m), .path = own_path, .end = UINT64_MAX};
    struct sym_query q = {0};
    const struct sym_frame *f, *expected;
    size_t count, expected_count;
    Elf64_Ehdr header;
    FILE *file = fopen(own_path, "re");
    assert_non_null(file);
    assert_int_equal(fread(&header, sizeof(header), 1, file), 1);
    fclose(file);
    q.abs = q.rel = header.e_entry; /* the first segments lie at their offsets */
    assert_int_equal(sym_module_add(plain, &m, &q.module), 0);
    assert_int_equal(sym_resolve(plain, &q, &expected, &expected_count), 0);
    assert_string_equal(expected->name, "_start");
    assert_int_equal(sym_module_add(c, &m, &q.module), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
        assert_int_equal(count, expected_count);
        assert_string_equal(f->name, "_start");
        assert_int_equal(f->origin, expected->origin);
    }
    assert_int_equal(n.calls, 1); /* that it passes is remembered */
    sym_context_free(plain);
    sym_context_free(c);
}

static void a_native_symbolizer_gets_as_much_room_as_it_wants(void **state)
{
    (void)state;
    struct native n = {0};
    struct sym_context *c =
        open_with(&(struct sym_options){.native = native_answer, .native_user = &n});
    struct sym_query q = {.module = add(c, "/some/file", "abcd"), .rel = 0x1004};
    const struct sym_frame *f;
    size_t count;
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(count, 1);
    assert_null(f->name);
    assert_int_equal(f->miss, SYM_MISS_NO_SYMBOL);
    n.error = 2000;
    q.rel++;
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(count, 2000);
    n.error = 1000000;
    q.rel++;
    assert_int_equal(sym_resolve(c, &q, &f, &count), SYM_ERR_LIMIT);
    n.error = SYM_ERR_IO;
    assert_int_equal(sym_resolve(c, &q, &f, &count), SYM_ERR_IO);
    sym_context_free(c);
}

static int native_raw(void *user, const char *path, const uint8_t *build_id, size_t build_id_size,
                      const struct sym_query *query, struct sym_frame *frames, size_t capacity)
{
    (void)user, (void)path, (void)build_id, (void)build_id_size, (void)query;
    assert_true(capacity >= 1);
    frames[0].raw_name = "_ZN1a1bEi";
    return 1;
}

static void a_native_symbolizer_may_leave_demangling_to_libsym(void **state)
{
    (void)state;
    struct sym_context *c = open_with(&(struct sym_options){.native = native_raw});
    const struct sym_frame *f = ask(c, add(c, "/some/python3", NULL), 0);
    assert_string_equal(f->name, "a::b(int)");
    assert_string_equal(f->raw_name, "_ZN1a1bEi");
    assert_int_equal(f->origin, SYM_ORIGIN_SYMTAB);
    assert_int_equal(f->flags, SYM_FLAG_PYTHON_RUNTIME);
    /* Perf map and JIT names come before it, kernel addresses and those without module never
     * reach it. */
    assert_string_equal(ask(c, add(c, "//anon", NULL), 0x20)->name, "in_anon");
    assert_string_equal(ask(c, add(c, "//anon", NULL), 0x800)->name, "a::b(int)");
    assert_null(ask_jit(c, add_jit(c, true, NULL, 0), 0)->name);
    assert_null(ask_abs(c, 0x9999, 42, true)->name);
    sym_context_free(c);
}

/* Answers with the address it was asked for. */
static int native_address(void *user, const char *path, const uint8_t *build_id,
                          size_t build_id_size, const struct sym_query *query,
                          struct sym_frame *frames, size_t capacity)
{
    char *name = user;
    (void)path, (void)build_id, (void)build_id_size;
    assert_true(capacity >= 1);
    assert_false(query->return_address);
    snprintf(name, 32, "at %x", (unsigned)query->abs);
    frames[0].name = name;
    return 1;
}

static void a_native_answer_for_memory_without_a_file_is_of_that_place_alone(void **state)
{
    (void)state;
    char name[32];
    struct sym_context *c =
        open_with(&(struct sym_options){.native = native_address, .native_user = name});
    struct sym_query q[2] = {{.abs = 0x1010, .rel = 0x10}, {.abs = 0x2011, .rel = 0x11}};
    const struct sym_frame *f[2];
    size_t count;
    for (int i = 0; i < 2; i++) {
        struct sym_module m = {.size = sizeof(m), .path = "[heap]"};
        m.start = q[i].abs & ~(uint64_t)0xfff;
        m.end = m.start + 0x1000;
        assert_int_equal(sym_module_add(c, &m, &q[i].module), 0);
    }
    q[1].return_address = true; /* the byte before: at 0x10 of the second one */
    for (int i = 0; i < 2; i++)
        assert_int_equal(sym_resolve(c, &q[i], &f[i], &count), 0);
    assert_string_equal(f[0]->name, "at 1010");
    assert_string_equal(f[1]->name, "at 2010");
    sym_context_free(c);
}

/* ---- misuse ---- */

static void the_rules_of_the_header_are_checked(void **state)
{
    (void)state;
    const struct sym_frame *f;
    size_t count;
    uint32_t handle;
    struct sym_module m = {.size = sizeof(m), .path = "/x"};
    struct sym_query q = {.module = 0};
    struct sym_context *c = sym_context_new();
    assert_non_null(c);
    assert_string_equal(sym_context_error(c), "no error");
    assert_int_equal(sym_resolve(c, &q, &f, &count), SYM_ERR_MISUSE);
    assert_int_equal(sym_module_add(c, &m, &handle), SYM_ERR_MISUSE);
    struct sym_options o = {.size = 3};
    assert_int_equal(sym_context_open(c, &o), SYM_ERR_MISUSE);
    o = (struct sym_options){.size = sizeof(o), .perf_map_pid_count = 1};
    assert_int_equal(sym_context_open(c, &o), SYM_ERR_MISUSE);
    assert_int_equal(sym_context_open(c, NULL), 0);
    assert_int_equal(sym_context_open(c, NULL), SYM_ERR_MISUSE);
    assert_int_equal(sym_resolve(c, &q, &f, &count), SYM_ERR_MISUSE); /* no such module */
    assert_string_equal(sym_context_error(c), "module 0 of 0");
    m.size = 0;
    assert_int_equal(sym_module_add(c, &m, &handle), SYM_ERR_MISUSE);
    m.size = sizeof(m);
    m.jit_name_count = 1;
    assert_int_equal(sym_module_add(c, &m, &handle), SYM_ERR_MISUSE);
    const char *detail;
    assert_int_equal(sym_module_state(c, 7, &detail), SYM_MISS_NONE);
    assert_string_equal(detail, "");
    sym_context_free(c);
    sym_context_free(NULL);
}

static void structs_of_an_older_or_newer_header_are_accepted(void **state)
{
    (void)state;
    struct {
        struct sym_module m;
        uint64_t more;
    } newer = {.m = {.size = sizeof(newer), .path = "/x"}};
    uint32_t handle;
    struct sym_context *c = open_with(NULL);
    assert_int_equal(sym_module_add(c, &newer.m, &handle), 0);
    newer.more = 1; /* something this library would ignore silently */
    assert_int_equal(sym_module_add(c, &newer.m, &handle), SYM_ERR_MISUSE);
    newer.m.size = offsetof(struct sym_module, kernel);
    assert_int_equal(sym_module_add(c, &newer.m, &handle), 0);
    sym_context_free(c);
}

/* ---- helpers ---- */

static void check_display(const char *path, const char *expected)
{
    size_t size;
    const char *text = sym_display_path(path, strlen(path), &size);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(text, expected, size);
}

static void display_paths_are_base_names(void **state)
{
    (void)state;
    check_display("/usr/bin/cat", "cat");
    check_display("/usr/bin/cat (deleted)", "cat");
    check_display("cat", "cat");
    check_display("", "");
    check_display("[vdso]", "[vdso]");
    check_display("[anon:a/b]", "[anon:a/b]");
    check_display("//anon", "//anon");
    check_display("/memfd:x (deleted)", "memfd:x");
    check_display("/dir/", "/dir/");
    check_display(" (deleted)", " (deleted)");
}

static void paths_of_anonymous_memory_are_known(void **state)
{
    (void)state;
    static const char *const yes[] = {"",
                                      "//anon",
                                      "[heap]",
                                      "[stack]",
                                      "[stack:12]",
                                      "[anon:libc_malloc]",
                                      "/memfd:doublemapper (deleted)",
                                      "/dev/zero",
                                      "/dev/zero (deleted)",
                                      "/SYSV00000000 (deleted)",
                                      "/anon_hugepage (deleted)"};
    static const char *const no[] = {"/usr/bin/cat", "[vdso]",    "[vsyscall]",
                                     "/dev/zero2",   "//toolong", "[kernel.kallsyms]",
                                     "/tmp/memfd:x", "/dev/shm/x"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        if (!sym_is_anonymous_path(yes[i], strlen(yes[i])))
            fail_msg("%s", yes[i]);
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        if (sym_is_anonymous_path(no[i], strlen(no[i])))
            fail_msg("%s", no[i]);
    assert_true(sym_is_anonymous_path(NULL, 0));
}

static void every_code_and_reason_has_words(void **state)
{
    (void)state;
    static const int codes[] = {0,
                                SYM_ERR_NOMEM,
                                SYM_ERR_IO,
                                SYM_ERR_FORMAT,
                                SYM_ERR_LIMIT,
                                SYM_ERR_MISUSE,
                                SYM_ERR_NOT_FOUND};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        assert_string_not_equal(sym_error_name(codes[i]), "SYM_ERR_UNKNOWN");
        assert_string_not_equal(sym_error_text(codes[i]), "unknown error");
    }
    assert_string_equal(sym_error_name(-99), "SYM_ERR_UNKNOWN");
    assert_string_equal(sym_error_name(0), "SYM_OK");
    for (int i = 0; i <= SYM_MISS_DISABLED; i++)
        assert_string_not_equal(sym_miss_text((enum sym_miss)i), "unknown reason");
    for (int i = 0; i <= SYM_KERNEL_UNREADABLE; i++)
        assert_null(strstr(sym_kernel_state_text((enum sym_kernel_state)i), "unknown state"));
    assert_string_equal(sym_kernel_state_text(SYM_KERNEL_OTHER_BOOT),
                        "from another boot, kernel or machine");
    assert_string_equal(sym_origin_text(SYM_ORIGIN_DWARF), "elf");
    assert_string_equal(sym_origin_text(SYM_ORIGIN_PLT), "elf");
    assert_string_equal(sym_origin_text(SYM_ORIGIN_FDE), "address");
    assert_string_equal(sym_origin_text(SYM_ORIGIN_VMLINUX), "kernel");
    assert_string_equal(sym_origin_text(SYM_ORIGIN_JIT), "jit");
    assert_string_equal(sym_origin_text(SYM_ORIGIN_PERF_MAP), "perf-map");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_has_all_that_the_symbol_says),
        cmocka_unit_test(a_return_address_belongs_to_the_call_before_it),
        cmocka_unit_test(names_follow_the_demangling_option),
        cmocka_unit_test(an_address_without_a_symbol_says_why),
        cmocka_unit_test(files_that_are_not_the_module_are_told_apart),
        cmocka_unit_test(a_file_without_a_recorded_build_id_is_unverified),
        cmocka_unit_test(deleted_files_are_found_verbatim_or_by_build_id),
        cmocka_unit_test(the_sysroot_holds_links_too),
        cmocka_unit_test(mappings_of_one_file_share_tables_and_answers),
        cmocka_unit_test(files_of_one_build_share_tables_wherever_they_are),
        cmocka_unit_test(a_stripped_copy_does_not_answer_for_the_whole_file),
        cmocka_unit_test(a_module_that_was_invalidated_is_looked_for_again),
        cmocka_unit_test(tables_beyond_the_limit_are_dropped_and_read_again),
        cmocka_unit_test(a_shared_file_is_read_again_where_it_was_found),
        cmocka_unit_test(what_one_capture_found_does_not_answer_for_another),
        cmocka_unit_test(without_a_build_id_size_and_time_are_compared),
        cmocka_unit_test(on_the_same_boot_an_unchanged_inode_is_the_file),
        cmocka_unit_test(many_queries_get_the_answers_of_single_ones),
        cmocka_unit_test(thousands_of_answers_are_remembered),
        cmocka_unit_test(python_machinery_is_marked),
        cmocka_unit_test(perf_maps_speak_for_memory_without_a_file),
        cmocka_unit_test(a_perf_map_that_cannot_be_used_is_no_error),
        cmocka_unit_test(python_entries_need_permission_in_automatic_mode),
        cmocka_unit_test(recorded_jit_names_come_first),
        cmocka_unit_test(without_native_only_recorded_names_count),
        cmocka_unit_test(a_native_symbolizer_replaces_the_files),
        cmocka_unit_test(what_a_native_symbolizer_passes_on_is_asked_of_the_files),
        cmocka_unit_test(a_native_symbolizer_gets_as_much_room_as_it_wants),
        cmocka_unit_test(a_native_symbolizer_may_leave_demangling_to_libsym),
        cmocka_unit_test(a_native_answer_for_memory_without_a_file_is_of_that_place_alone),
        cmocka_unit_test(the_rules_of_the_header_are_checked),
        cmocka_unit_test(structs_of_an_older_or_newer_header_are_accepted),
        cmocka_unit_test(display_paths_are_base_names),
        cmocka_unit_test(paths_of_anonymous_memory_are_known),
        cmocka_unit_test(every_code_and_reason_has_words),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
