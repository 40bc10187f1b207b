/* SPDX-License-Identifier: MIT */
/*
 * Lets every allocation of naming, listing, packing and merging what real files have fail, one after the other, with a
 * program and its debug file, a kernel and a module of it, packed symbols, and a server that is not there: each call says so
 * or gives what it gives when none fails. And the functions that need no memory work without any. The files are built by a
 * compiler; without one this is skipped.
 */
#include "spool/sym.h"

#include "../alloc_fault.h"

#include <elf.h>
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
static bool built;

/* ---- the files ---- */

static const char program_source[] =
    "volatile int sink;\n"
    "static inline __attribute__((always_inline)) void inner(int x) { sink = x * 3; sink = x / 7; "
    "}\n"
    "__attribute__((noinline)) void outer(int x) { sink = 1; inner(x); inner(sink); sink = 2; }\n"
    "__attribute__((noinline)) int other(int x) { return sink + x; }\n"
    "void _start(void) { for (;;) outer(other(1)); }\n";

static const char module_source[] =
    "__attribute__((section(\".modinfo\"), used)) static const char vermagic[] = "
    "\"vermagic=6.1-test SMP\";\n"
    "volatile int sink;\n"
    "static inline __attribute__((always_inline)) void inner(int x) { sink = x * 3; }\n"
    "__attribute__((noinline)) void in_module(int x) { sink = 1; inner(x); sink = 2; }\n";

/* p: what the queries are about, p.debug in the store by build id; vmlinux at its address. */
static const char build_script[] =
    "cd %s && CC=${CC:-cc} && $CC -O1 -g -gz=zlib -fno-pie -no-pie -static -nostdlib "
    "-Wl,--build-id=0xabcdef0123456789 -o p p.c "
    "&& mkdir -p debug/.build-id/ab debug/lib/modules/6.1-test store/.build-id/ab "
    "&& objcopy --only-keep-debug p debug/.build-id/ab/cdef0123456789.debug && strip p "
    "&& mkdir -p cache/abcdef0123456789 "
    "&& cp debug/.build-id/ab/cdef0123456789.debug cache/abcdef0123456789/debuginfo "
    "&& $CC -O1 -g -fno-pie -no-pie -static -nostdlib -mcmodel=kernel -Wl,--build-id=0x99 "
    "-Wl,-Ttext=0xffffffff81000000 "
    "-Wl,--defsym=_stext=0xffffffff81000000,--defsym=_etext=0xffffffff81001000 "
    "-o vmlinux p.c && $CC -O1 -g -c -mcmodel=kernel -fno-pie -o debug/lib/modules/6.1-test/m.ko "
    "m.c";

static void put(const char *name, const void *data, size_t size)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static const char *at(char path[200], const char *name)
{
    snprintf(path, 200, "%s/%s", folder, name);
    return path;
}

/* ---- what is asked ---- */

#define QUERIES 6

static uint64_t text_start, text_size; /* of p: file offsets */

static void find_text(void)
{
    char path[200];
    Elf64_Ehdr h;
    Elf64_Phdr p;
    FILE *f = fopen(at(path, "p"), "r");
    assert_non_null(f);
    assert_int_equal(fread(&h, sizeof(h), 1, f), 1);
    for (unsigned i = 0; i < h.e_phnum; i++) {
        fseek(f, (long)(h.e_phoff + i * h.e_phentsize), SEEK_SET);
        assert_int_equal(fread(&p, sizeof(p), 1, f), 1);
        if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0) {
            text_start = p.p_offset;
            text_size = p.p_filesz;
        }
    }
    fclose(f);
    assert_true(text_size > 0);
}

#define CHECK(call)    \
    do {               \
        rc = (call);   \
        if (rc < 0)    \
            return rc; \
    } while (0)

static int add_module(struct sym_context *c, const char *name, const char *build_id,
                      uint32_t *handle)
{
    char path[200];
    struct sym_module m = {.size = sizeof(m),
                           .path = at(path, name),
                           .start = 0x10000,
                           .end = 0x20000,
                           .file_offset = text_start,
                           .build_id = (const uint8_t *)build_id,
                           .build_id_size = strlen(build_id)};
    return sym_module_add(c, &m, handle);
}

static void make_queries(uint32_t module, struct sym_query *queries)
{
    for (unsigned i = 0; i < QUERIES; i++) {
        uint64_t in = text_size * i / QUERIES;
        queries[i] =
            (struct sym_query){.module = module, .abs = 0x10000 + in, .rel = text_start + in};
    }
}

/* ---- answers ---- */

/* As text, so that two can be compared. */
struct answers {
    char text[8192];
    size_t used;
};

static struct answers expected, got;

static void say(struct answers *a, const char *text)
{
    size_t n = strlen(text);
    assert_true(n < sizeof(a->text) - a->used - 2);
    memcpy(a->text + a->used, text, n);
    a->used += n;
    a->text[a->used++] = '\n';
    a->text[a->used] = '\0';
}

static void say_frames(struct answers *a, const struct sym_frame *f, size_t count)
{
    char line[300];
    for (size_t i = 0; i < count; i++) {
        snprintf(line, sizeof(line), "%s %s:%u %u", f[i].name != NULL ? f[i].name : "-",
                 f[i].file != NULL ? f[i].file : "-", f[i].line, f[i].flags);
        say(a, line);
    }
    say(a, "");
}

static void say_bytes(struct answers *a, const uint8_t *data, size_t size)
{
    char line[100];
    uint64_t hash = 0;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    snprintf(line, sizeof(line), "%zu bytes %016llx", size, (unsigned long long)hash);
    say(a, line);
}

/* ---- a program ---- */

/* Which symbols are packed, to be merged and to be looked up in. */
static struct sym_packed pieces[2];

static int use_files(struct sym_context *c, uint32_t handle)
{
    struct sym_file files[SYM_FILES_MAX];
    int rc = sym_module_files(c, handle, files, SYM_FILES_MAX);
    for (int i = 0; i < rc; i++) {
        say(&got, files[i].path);
        close(files[i].fd);
        free(files[i].path);
    }
    return rc;
}

static int pack(struct sym_context *c, const struct sym_query *queries, size_t count,
                const struct sym_archive *known)
{
    const struct sym_pack_options o = {
        .size = sizeof(o), .level = SYM_LEVEL_LINES, .known = &known, .known_count = known != NULL};
    struct sym_packed packed;
    int rc = sym_pack_files(c, queries, count, &o, &packed);
    if (rc != 0)
        return rc;
    say_bytes(&got, packed.data, packed.size_bytes);
    free(packed.data);
    return 0;
}

static int use_program(struct sym_context *c)
{
    char debug[200], store[200];
    const char *debug_dirs[] = {at(debug, "debug")};
    const char *symbol_dirs[] = {at(store, "store")};
    struct sym_options o = {.size = sizeof(o),
                            .debug_dirs = debug_dirs,
                            .debug_dir_count = 1,
                            .symbol_dirs = symbol_dirs,
                            .symbol_dir_count = 1,
                            .debuginfod = true};
    struct sym_query queries[QUERIES];
    struct sym_answer answers[QUERIES];
    struct sym_identity identity;
    uint32_t handle, missing;
    int rc;
    CHECK(sym_context_open(c, &o));
    CHECK(add_module(c, "p", "\xab\xcd\xef\x01\x23\x45\x67\x89", &handle));
    CHECK(
        add_module(c, "p", "\xff\xff\xff\xff\x23\x45\x67\x89", &missing)); /* asked of the server */
    make_queries(handle, queries);
    queries[1].module = missing;
    CHECK(sym_resolve_many(c, queries, QUERIES, answers));
    for (unsigned i = 0; i < QUERIES; i++)
        say_frames(&got, answers[i].frames, answers[i].count);
    CHECK(sym_module_identity(c, handle, &identity));
    say_bytes(&got, identity.build_id, identity.build_id_size);
    CHECK(use_files(c, handle));
    queries[1].module = handle;
    CHECK(pack(c, queries, QUERIES, NULL));
    CHECK(pack(c, queries, QUERIES, sym_context_archive(c, 0)));
    CHECK(sym_module_invalidate(c, handle));
    CHECK(sym_resolve_many(c, queries, QUERIES, answers));
    say(&got, sym_packed_fault(c, 0) != NULL ? "a fault" : "no fault");
    return 0;
}

/* Runs one with a context, and compares. */
static void run_with(int (*use)(struct sym_context *))
{
    struct sym_context *c = sym_context_new();
    got.used = 0;
    got.text[0] = '\0';
    if (c == NULL) {
        assert_true(alloc.failed);
        return;
    }
    int rc = use(c);
    if (rc < 0) {
        assert_int_equal(rc, SYM_ERR_NOMEM);
        assert_true(alloc.failed);
        assert_true(sym_context_error(c)[0] != '\0');
    } else if (expected.used == 0) {
        expected = got;
    } else {
        assert_string_equal(got.text, expected.text);
    }
    sym_context_free(c);
}

static void run_program(void *unused)
{
    (void)unused;
    run_with(use_program);
}

static void try_each(void (*run)(void *))
{
    expected.used = 0;
    run(NULL);
    assert_true(expected.used > 0);
    long n = alloc_try_each(run, NULL);
    assert_true(n > 20);
}

static void need_files(void)
{
    if (built)
        return;
    print_message("the files cannot be built here\n");
    skip();
}

static void naming_listing_and_packing_a_program_gives_all_or_an_error(void **state)
{
    (void)state;
    need_files();
    try_each(run_program);
    assert_non_null(strstr(expected.text, "inner")); /* by its debug file */
    assert_non_null(strstr(expected.text, "p.c:2"));
    assert_non_null(strstr(expected.text, "cdef0123456789.debug"));
}

/* Its debug file comes from a server: out of the cache, which answers without one. */
static int use_server(struct sym_context *c)
{
    const char *nowhere = "/nonexistent";
    struct sym_options o = {
        .size = sizeof(o), .debug_dirs = &nowhere, .debug_dir_count = 1, .debuginfod = true};
    struct sym_query queries[QUERIES];
    struct sym_answer answers[QUERIES];
    uint32_t handle;
    int rc;
    CHECK(sym_context_open(c, &o));
    CHECK(add_module(c, "p", "\xab\xcd\xef\x01\x23\x45\x67\x89", &handle));
    make_queries(handle, queries);
    CHECK(sym_resolve_many(c, queries, QUERIES, answers));
    for (unsigned i = 0; i < QUERIES; i++)
        say_frames(&got, answers[i].frames, answers[i].count);
    return 0;
}

static void run_server(void *unused)
{
    (void)unused;
    run_with(use_server);
}

static void naming_by_a_file_of_a_server_gives_all_or_an_error(void **state)
{
    (void)state;
    need_files();
    try_each(run_server);
    if (strstr(expected.text, "p.c:2") == NULL)
        print_message("libdebuginfod is not there, or libsym was built without\n");
}

/* ---- merging ---- */

static void run_merge(void *unused)
{
    (void)unused;
    struct sym_piece list[2];
    struct sym_merged merged[1];
    size_t count;
    for (unsigned i = 0; i < 2; i++)
        list[i] = (struct sym_piece){.data = pieces[i].data, .size_bytes = pieces[i].size_bytes};
    got.used = 0;
    int rc = sym_pack_merge(list, 2, (const uint8_t *)"\xab\xcd\xef\x01\x23\x45\x67\x89", 8, merged,
                            &count);
    if (rc != 0) {
        assert_int_equal(rc, SYM_ERR_NOMEM);
        assert_true(alloc.failed);
        return;
    }
    assert_int_equal(count, 1);
    say_bytes(&got, merged[0].lines, merged[0].lines_bytes);
    free(merged[0].lines);
    free(merged[0].names);
    if (expected.used == 0)
        expected = got;
    assert_string_equal(got.text, expected.text);
}

static void merging_packed_symbols_gives_all_or_an_error(void **state)
{
    (void)state;
    need_files();
    try_each(run_merge);
}

/* ---- a kernel ---- */

static int use_kernel(struct sym_context *c)
{
    static const struct sym_kernel_range ranges[] = {
        {.start = 0xffffffff82000000,
         .end = 0xffffffff82001000,
         .file_offset = 0xffffffff82000000,
         .name = "[kernel.kallsyms]_text"},
        {.start = 0xffffffffc0000000, .end = 0xffffffffc0001000, .name = "[m]"}};
    const uint64_t needed[] = {0xffffffff82000004, 0xffffffff82000010, 0xffffffffc0000006};
    char debug[200], vmlinux[200], kallsyms[200];
    const char *debug_dirs[] = {at(debug, "debug")};
    struct sym_options o = {.size = sizeof(o), .debug_dirs = debug_dirs, .debug_dir_count = 1};
    struct sym_kernel k = {.size = sizeof(k),
                           .kallsyms = at(kallsyms, "kallsyms"),
                           .vmlinux = at(vmlinux, "vmlinux"),
                           .release = "6.1-test",
                           .needed = needed,
                           .needed_count = 3,
                           .ranges = ranges,
                           .range_count = 2};
    struct sym_query queries[3];
    const struct sym_frame *f;
    size_t count;
    int rc;
    CHECK(sym_context_open(c, &o));
    CHECK(sym_kernel_load(c, &k));
    say(&got, sym_kernel_state_text(sym_kernel_state(c)));
    say(&got, sym_kernel_detail(c));
    for (unsigned i = 0; i < 3; i++) {
        queries[i] = (struct sym_query){.module = SYM_NO_MODULE, .kernel = true, .abs = needed[i]};
        CHECK(sym_resolve(c, &queries[i], &f, &count));
        say_frames(&got, f, count);
    }
    const struct sym_pack_options po = {.size = sizeof(po), .level = SYM_LEVEL_LINES};
    struct sym_packed packed;
    CHECK(sym_pack_kernel(c, queries, 3, &po, &packed));
    say_bytes(&got, packed.data, packed.size_bytes);
    free(packed.data);
    return 0;
}

static void run_kernel(void *unused)
{
    (void)unused;
    run_with(use_kernel);
}

static void naming_a_kernel_by_its_files_gives_all_or_an_error(void **state)
{
    (void)state;
    need_files();
    try_each(run_kernel);
    assert_non_null(strstr(expected.text, "p.c:")); /* of vmlinux */
    assert_non_null(strstr(expected.text, "m.c:")); /* of the module */
}

/* ---- what needs no memory ---- */

static void functions_that_need_no_memory_ask_for_none(void **state)
{
    (void)state;
    struct sym_context *c = sym_context_new();
    struct sym_perf_map_state map;
    const char *detail;
    size_t size;
    assert_non_null(c);
    assert_int_equal(sym_context_open(c, NULL), 0);
    uint32_t handle;
    struct sym_module m = {.size = sizeof(m), .path = "/nonexistent"};
    assert_int_equal(sym_module_add(c, &m, &handle), 0);
    alloc_fail_at(1, true);
    unsigned long before = alloc.count;
    assert_string_equal(sym_error_name(SYM_ERR_NOMEM), "SYM_ERR_NOMEM");
    assert_true(sym_error_text(SYM_ERR_NOMEM)[0] != '\0');
    assert_string_equal(sym_context_error(c), "no error");
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_NONE);
    assert_true(sym_kernel_state_text(SYM_KERNEL_NONE)[0] != '\0');
    assert_string_equal(sym_kernel_detail(c), "");
    assert_int_equal(sym_module_state(c, handle, &detail), SYM_MISS_NONE);
    assert_int_equal(sym_module_invalidate(c, handle), 0);
    assert_true(sym_context_table_bytes(c) == 0);
    assert_null(sym_context_archive(c, 0));
    assert_null(sym_packed_fault(c, 0));
    assert_true(sym_miss_text(SYM_MISS_NO_FILE)[0] != '\0');
    assert_string_equal(sym_origin_text(SYM_ORIGIN_DWARF), "elf");
    assert_int_equal(sym_perf_map_state(c, 1, &map), 0);
    assert_true(sym_is_python_runtime("python3.11"));
    assert_string_equal(sym_display_path("/a/b", 4, &size), "b");
    assert_true(sym_is_anonymous_path("//anon", 6));
    (void)sym_features();
    assert_int_equal(alloc.count, before);
    alloc_stop();
    sym_context_free(c);
}

/* ---- */

/* Packs the first half of the addresses, then the others. */
static void make_pieces(void)
{
    char debug[200];
    const char *debug_dirs[] = {at(debug, "debug")};
    const struct sym_options o = {
        .size = sizeof(o), .debug_dirs = debug_dirs, .debug_dir_count = 1};
    const struct sym_pack_options po = {.size = sizeof(po), .level = SYM_LEVEL_LINES};
    struct sym_context *c = sym_context_new();
    struct sym_query queries[QUERIES];
    uint32_t handle;
    assert_int_equal(sym_context_open(c, &o), 0);
    assert_int_equal(add_module(c, "p", "\xab\xcd\xef\x01\x23\x45\x67\x89", &handle), 0);
    make_queries(handle, queries);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(sym_pack_files(c, queries + i * QUERIES / 2, QUERIES / 2, &po, &pieces[i]),
                         0);
        assert_non_null(pieces[i].data);
    }
    sym_context_free(c);
}

static int make_files(void **state)
{
    char command[2000], path[200];
    (void)state;
    strcpy(folder, "/tmp/test_alloc_pack.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
    setenv("DEBUGINFOD_CACHE_PATH", at(path, "cache"), 1);
    put("p.c", program_source, sizeof(program_source) - 1);
    put("m.c", module_source, sizeof(module_source) - 1);
    static const char kallsyms[] =
        "ffffffff82000000 T outer\nffffffff82000030 T other\nffffffffc0000000 t in_module\t[m]\n";
    put("kallsyms", kallsyms, sizeof(kallsyms) - 1);
    snprintf(command, sizeof(command), build_script, folder);
#ifdef __x86_64__
    built = system(command) == 0;
#endif
    if (!built)
        return 0;
    find_text();
    make_pieces();
    snprintf(command, sizeof(command), "mkdir -p %s/store/.build-id/ab/cdef0123456789.syms",
             folder);
    if (system(command) != 0)
        return -1;
    /* One that is good, and one that is not. */
    put("store/.build-id/ab/cdef0123456789.syms/0123456789abcdef.lines", pieces[0].data,
        pieces[0].size_bytes);
    put("store/.build-id/ab/cdef0123456789.syms/fedcba9876543210.lines", "no symbols", 10);
    return 0;
}

static int remove_files(void **state)
{
    char command[100];
    (void)state;
    free(pieces[0].data);
    free(pieces[1].data);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naming_listing_and_packing_a_program_gives_all_or_an_error),
        cmocka_unit_test(naming_by_a_file_of_a_server_gives_all_or_an_error),
        cmocka_unit_test(merging_packed_symbols_gives_all_or_an_error),
        cmocka_unit_test(naming_a_kernel_by_its_files_gives_all_or_an_error),
        cmocka_unit_test(functions_that_need_no_memory_ask_for_none),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
