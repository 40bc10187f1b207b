/* SPDX-License-Identifier: MIT */
/* kallsyms: which lines count, where entries end, and when it may be used. */
#include "context.h"
#include "kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static enum sym_kernel_state parse_for(struct symint_kernel *k, const char *text,
                                       const struct sym_kernel *kernel)
{
    enum sym_kernel_state state;
    char *copy = strdup(text);
    assert_non_null(copy);
    assert_int_equal(symint_kernel_parse(k, copy, strlen(text), kernel, &state), 0);
    return state;
}

static enum sym_kernel_state parse_needed(struct symint_kernel *k, const char *text,
                                          const uint64_t *needed, size_t count)
{
    return parse_for(k, text, &(struct sym_kernel){.needed = needed, .needed_count = count});
}

static enum sym_kernel_state parse(struct symint_kernel *k, const char *text)
{
    return parse_for(k, text, NULL);
}

static void check(const struct symint_kernel *k, uint64_t address, const char *name)
{
    struct symint_kernel_symbol s;
    bool found = symint_kernel_find(k, address, &s);
    if (name == NULL) {
        if (found)
            fail_msg("%.*s at %llx", (int)s.name_size, s.name, (unsigned long long)address);
        return;
    }
    if (!found)
        fail_msg("nothing instead of %s at %llx", name, (unsigned long long)address);
    if (s.name_size != strlen(name) || memcmp(s.name, name, s.name_size) != 0)
        fail_msg("%.*s instead of %s", (int)s.name_size, s.name, name);
}

static void lines_may_come_in_any_order(void **state)
{
    (void)state;
    struct symint_kernel k;
    assert_int_equal(parse(&k,
                           "ffffffff81000300 t c\nffffffff81000100 T a\nffffffff81000200 t b\n"),
                     SYM_KERNEL_OK);
    check(&k, 0xffffffff810000ff, NULL);
    check(&k, 0xffffffff81000100, "a");
    check(&k, 0xffffffff810001ff, "a");
    check(&k, 0xffffffff81000200, "b");
    check(&k, 0xffffffff81000300, "c");
    check(&k, 0xffffffff81000fff, "c"); /* the last one ends at the next page */
    check(&k, 0xffffffff81001000, NULL);
    check(&k, UINT64_MAX, NULL);
    symint_kernel_free(&k);
}

static void only_code_counts(void **state)
{
    (void)state;
    struct symint_kernel k;
    assert_int_equal(
        parse(&k,
              "1000 T f\n1100 d data\n1200 D Data\n1300 r ro\n1400 b bss\n1500 V weakdata\n"
              "1600 w weak\n1700 W Weak\n1800 i ifunc\n1900 a absolute\n1a00 A Absolute\n"
              "1b00 t $x\n1b10 t $d.5\n1b20 t .Lfoo\n1b30 t __crc_f\n1b40 t __cfi_f\n1c00 t end\n"),
        SYM_KERNEL_OK);
    check(&k, 0x1550, "f");
    check(&k, 0x1600, "weak");
    check(&k, 0x1700, "Weak");
    check(&k, 0x1800, "ifunc");
    check(&k, 0x1a80, "absolute");
    check(&k, 0x1b45, "absolute");
    check(&k, 0x1c00, "end");
    symint_kernel_free(&k);
}

static void addresses_that_are_all_zero_mean_restricted(void **state)
{
    (void)state;
    struct symint_kernel k;
    assert_int_equal(parse(&k,
                           "0000000000000000 T a\n0000000000000000 t b\n0000000000000000 A c\n"),
                     SYM_KERNEL_RESTRICTED);
    check(&k, 0, NULL);
    symint_kernel_free(&k);
    assert_int_equal(parse(&k, "0000000000000000 A c\nffffffff81000000 T f\n"), SYM_KERNEL_OK);
    check(&k, 0, NULL);
    check(&k, 0x10, NULL);
    symint_kernel_free(&k);
}

static void a_file_without_usable_lines_is_empty(void **state)
{
    (void)state;
    struct symint_kernel k;
    static const char *const texts[] = {"",
                                        "\n\n",
                                        "nonsense\n",
                                        "1000\n",
                                        "1000 T\n",
                                        "1000 T \n",
                                        "12345678901234567 T f\n",
                                        "g000 T f\n",
                                        "1000T f\n",
                                        "1000 TT f\n",
                                        "1000 T \rf\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(parse(&k, texts[i]), SYM_KERNEL_EMPTY);
        assert_int_equal(k.lines, 0);
        symint_kernel_free(&k);
    }
    assert_int_equal(parse(&k, "1000 d data\n"), SYM_KERNEL_EMPTY);
    assert_int_equal(k.lines, 1);
    symint_kernel_free(&k);
}

/* Whatever order the lines have. */
static void check_best(const char *a, const char *b, const char *best)
{
    char text[256];
    struct symint_kernel k;
    for (int swap = 0; swap < 2; swap++) {
        snprintf(text, sizeof(text), "1000 %s\n1000 %s\n1100 t after\n", swap ? b : a,
                 swap ? a : b);
        assert_int_equal(parse(&k, text), SYM_KERNEL_OK);
        check(&k, 0x1000, best);
        check(&k, 0x10ff, best);
        symint_kernel_free(&k);
    }
}

static void of_equal_addresses_the_better_name_wins(void **state)
{
    (void)state;
    check_best("W weak_but_long", "t local", "local");
    check_best("t local_but_longer", "T global", "global");
    check_best("T __under", "T over", "over");
    check_best("T short", "T the_longer", "the_longer");
    check_best("T SyS_read", "T sys_read", "sys_read");
    check_best("T compat_SyS_read", "T compat_sys_read", "compat_sys_read");
    check_best("T bbb", "T aaa", "aaa");
    check_best("a absolute_text", "W f", "f");
}

static void entries_do_not_cross_into_modules_or_bpf(void **state)
{
    (void)state;
    struct symint_kernel k;
    assert_int_equal(parse(&k, "ffffffff81000100 T last_of_kernel\n"
                               "ffffffffc0000100 t mod_a\t[mod]\n"
                               "ffffffffc0002800 t mod_b\t[mod]\n"
                               "ffffffffc0009000 t other [other]\n"
                               "ffffffffc0009080 t bpf_prog_1_a\t[bpf]\n"
                               "ffffffffc000a000 t bpf_prog_2_b\t[bpf]\n"
                               "ffffffffc0020000 t bpf_prog_3_c\t[bpf]\n"),
                     SYM_KERNEL_OK);
    check(&k, 0xffffffff81000fff, "last_of_kernel");
    check(&k, 0xffffffff81001000, NULL);
    check(&k, 0xffffffffc0002000, "mod_a"); /* inside a module there are no gaps */
    check(&k, 0xffffffffc0002fff, "mod_b");
    check(&k, 0xffffffffc0003000, NULL);
    check(&k, 0xffffffffc000907f, "other");
    check(&k, 0xffffffffc0009fff, "bpf_prog_1_a");
    check(&k, 0xffffffffc000a800, "bpf_prog_2_b");
    check(&k, 0xffffffffc000b000, NULL); /* every program is an image of its own */
    check(&k, 0xffffffffc0020000, "bpf_prog_3_c");
    symint_kernel_free(&k);
}

static void sparse_mode_keeps_what_answers(void **state)
{
    (void)state;
    struct symint_kernel k;
    const uint64_t needed[] = {0x500, 0x1080, 0x1081, 0x1300, 0x9000};
    assert_int_equal(parse_needed(&k, "1000 T a\n1100 T b\n1200 T c\n1300 T d [m]\n1400 T e\n",
                                  needed, 5),
                     SYM_KERNEL_OK);
    assert_int_equal(k.count, 4); /* a and d, and b and e that end them */
    check(&k, 0x1080, "a");
    check(&k, 0x1100, NULL);
    check(&k, 0x1300, "d");
    struct symint_kernel_symbol s;
    assert_true(symint_kernel_find(&k, 0x1300, &s));
    assert_int_equal(s.owner_size, 3);
    assert_memory_equal(s.owner, "[m]", 3);
    assert_int_equal(s.start, 0x1300);
    assert_int_equal(s.end, 0x1400); /* as with all entries */
    symint_kernel_free(&k);
    assert_int_equal(parse_needed(&k, "1000 T a\n", needed, 0), SYM_KERNEL_OK);
    assert_int_equal(k.count, 0);
    symint_kernel_free(&k);
}

/* The scattered order of a real file: the kernel sorted, then modules as they were loaded. */
static void sparse_and_full_tables_agree(void **state)
{
    (void)state;
    char *text = malloc(64 * 4096);
    uint64_t needed[256];
    size_t n = 0;
    uint64_t seed = 1;
    assert_non_null(text);
    for (unsigned i = 0; i < 3000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t low = seed >> 44 & 0xffff0;
        n += (size_t)(i < 1500
                          ? sprintf(text + n, "%016llx t f%u\n", 0xffffffff81000000ull + i * 80, i)
                          : sprintf(text + n, "%016llx t m%u\t[mod%u]\n",
                                    0xffffffffc0000000ull + low, i, (unsigned)(low >> 14)));
    }
    for (unsigned i = 0; i < 256; i++)
        needed[i] = i < 128 ? 0xffffffff81000000u + i * 1001 : 0xffffffffc0000000u + i * 4099;
    struct symint_kernel all;
    struct symint_kernel some;
    assert_int_equal(parse(&all, text), SYM_KERNEL_OK);
    assert_int_equal(parse_needed(&some, text, needed, 256), SYM_KERNEL_OK);
    assert_true(some.count <= 512);
    size_t named = 0;
    for (unsigned i = 0; i < 256; i++) {
        struct symint_kernel_symbol a;
        struct symint_kernel_symbol b;
        bool found = symint_kernel_find(&all, needed[i], &a);
        assert_int_equal(symint_kernel_find(&some, needed[i], &b), found);
        if (!found)
            continue;
        named++;
        assert_int_equal(a.start, b.start);
        assert_int_equal(a.end, b.end);
        assert_int_equal(a.name_size, b.name_size);
        assert_memory_equal(a.name, b.name, a.name_size);
        assert_int_equal(a.owner_size, b.owner_size);
    }
    assert_true(named > 200 && named < 256);
    symint_kernel_free(&all);
    symint_kernel_free(&some);
    free(text);
}

static void ranges_tell_where_images_end(void **state)
{
    (void)state;
    static const char text[] = "ffffffff81000100 T last_of_kernel\n"
                               "ffffffffc0000100 t a\t[my_mod]\n"
                               "ffffffffc0010100 t b\t[packed]\n"
                               "ffffffffc0020100 t c\t[third]\n"
                               "ffffffffc0030100 t d\t[third]\n"
                               "ffffffffc0040100 t e\t[none]\n";
    const struct sym_kernel_range ranges[] = {
        {0xffffffffc0020000, 0xffffffffc0024000, 0, "third", 0},
        {0xffffffffc0000000, 0xffffffffc0003000, 0, "[my-mod]", 0},
        {0xffffffffc0010000, 0xffffffffc0013000, 0, "/lib/modules/6.1/kernel/x/packed.ko.xz--", 38},
        {0xffffffff81000000, 0xffffffff81006000, 0, "[kernel.kallsyms]_text", 0},
        {0xffffffffc0040000, 0xffffffffc0050000, 0, "[another]", 0},
        {0xffffffffc0040000, 0xffffffffc0040000, 0, "[none]", 0},
        {0xffffffffc0040000, 0xffffffffc0060000, 0, NULL, 0}};
    struct sym_kernel kernel = {.ranges = ranges, .range_count = 7};
    struct symint_kernel k;
    assert_int_equal(parse_for(&k, text, &kernel), SYM_KERNEL_OK);
    check(&k, 0xffffffff81005fff, "last_of_kernel");
    check(&k, 0xffffffff81006000, NULL);
    check(&k, 0xffffffffc0002fff, "a");
    check(&k, 0xffffffffc0003000, NULL);
    check(&k, 0xffffffffc0012fff, "b");
    check(&k, 0xffffffffc0013000, NULL);
    check(&k, 0xffffffffc0030fff, "d"); /* in no range of its own */
    check(&k, 0xffffffffc0031000, NULL);
    check(&k, 0xffffffffc0040fff, "e"); /* others' ranges say nothing */
    check(&k, 0xffffffffc0041000, NULL);
    symint_kernel_free(&k);
}

static void trampolines_are_images_of_their_own(void **state)
{
    (void)state;
    struct symint_kernel k;
    assert_int_equal(parse(&k, "ffffffffc0201000 t ftrace_trampoline\t[__builtin__ftrace]\n"
                               "ffffffffc0301000 t ftrace_trampoline\t[__builtin__ftrace]\n"),
                     SYM_KERNEL_OK);
    check(&k, 0xffffffffc0201fff, "ftrace_trampoline");
    check(&k, 0xffffffffc0202000, NULL);
    symint_kernel_free(&k);
}

/* Eight digits are read at once: one that is none must be noticed in each place. */
static void every_digit_is_checked(void **state)
{
    (void)state;
    static const char bad[] = {'/', ':', '@', 'G', '`', 'g', 0x10, ' ' - 1, (char)0xb1, (char)0xe1};
    for (size_t at = 0; at < 16; at++) {
        for (size_t i = 0; i < sizeof(bad); i++) {
            char text[] = "ffffffff81000000 t some_function\n";
            struct symint_kernel k;
            text[at] = bad[i];
            assert_int_equal(parse(&k, text), SYM_KERNEL_EMPTY);
            assert_int_equal(k.lines, 0);
            symint_kernel_free(&k);
        }
        for (unsigned digit = 0; digit < 22; digit++) {
            char text[] = "1000000000000001 t some_function\n";
            struct symint_kernel k;
            text[at] = "0123456789abcdefABCDEF"[digit];
            assert_int_equal(parse(&k, text), SYM_KERNEL_OK);
            assert_int_equal(k.entries[0].start, strtoull(text, NULL, 16));
            symint_kernel_free(&k);
        }
    }
}

static void lines_may_end_like_elsewhere(void **state)
{
    (void)state;
    struct symint_kernel k;
    assert_int_equal(parse(&k, "ffffffff81000000 t f\r\nffffffff81000010 t g  \t[m] \r\n"
                               "ffffffff81000020 t h with [] more\nffffffff81000030 t last"),
                     SYM_KERNEL_OK);
    check(&k, 0xffffffff81000000, "f");
    check(&k, 0xffffffff81000010, "g");
    check(&k, 0xffffffff81000020, "h");
    check(&k, 0xffffffff81000030, "last");
    struct symint_kernel_symbol s;
    assert_true(symint_kernel_find(&k, 0xffffffff81000010, &s));
    assert_int_equal(s.owner_size, 3);
    symint_kernel_free(&k);
}

/* ---- with files ---- */

static char folder[64];
static char kallsyms_path[96];
static char boot_path[96];
static char stat_path[96];
static char release_path[96];
static struct symint_system files;

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_files(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_kernel.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(kallsyms_path, sizeof(kallsyms_path), "%s/kallsyms", folder);
    snprintf(boot_path, sizeof(boot_path), "%s/boot_id", folder);
    snprintf(stat_path, sizeof(stat_path), "%s/stat", folder);
    snprintf(release_path, sizeof(release_path), "%s/osrelease", folder);
    put(kallsyms_path, "ffffffff81000000 T f\nffffffff81000100 t g [mod]\n");
    put(boot_path, "424b4134-d103-4224-a007-a2d7608fffd7\n");
    put(stat_path, "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n");
    put(release_path, "6.1.0-test\n");
    files = (struct symint_system){.proc = "/nonexistent",
                                   .kallsyms = kallsyms_path,
                                   .boot_id = boot_path,
                                   .stat = stat_path,
                                   .notes = "/nonexistent",
                                   .osrelease = release_path};
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(kallsyms_path);
    unlink(boot_path);
    unlink(stat_path);
    unlink(release_path);
    return rmdir(folder);
}

static struct sym_context *open_context(void)
{
    struct sym_context *c = sym_context_new();
    assert_non_null(c);
    c->system = &files;
    assert_int_equal(sym_context_open(c, NULL), 0);
    return c;
}

static const struct sym_frame *ask(struct sym_context *c, uint64_t address)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {.module = SYM_NO_MODULE, .kernel = true, .abs = address};
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(f->kind, SYM_KIND_KERNEL);
    return f;
}

static void a_context_names_kernel_addresses(void **state)
{
    (void)state;
    struct sym_context *c = open_context();
    struct sym_kernel k = {.size = sizeof(k), .kallsyms = kallsyms_path};
    assert_int_equal(ask(c, 0xffffffff81000010)->miss, SYM_MISS_KERNEL);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_NONE);
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    const struct sym_frame *f = ask(c, 0xffffffff81000010);
    assert_string_equal(f->name, "f");
    assert_int_equal(f->origin, SYM_ORIGIN_KALLSYMS);
    assert_int_equal(f->function_start, 0xffffffff81000000);
    assert_int_equal(f->offset, 0x10);
    assert_string_equal(ask(c, 0xffffffff81000100)->name, "g [mod]");
    assert_int_equal(ask(c, 0xffffffff90000000)->miss, SYM_MISS_NO_SYMBOL);
    assert_ptr_equal(ask(c, 0xffffffff81000010), f);
    /* A second call replaces the first, and what was handed out stays. */
    put(kallsyms_path, "ffffffff81000000 T other\n");
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_string_equal(ask(c, 0xffffffff81000010)->name, "other");
    assert_string_equal(f->name, "f");
    sym_context_free(c);
    put(kallsyms_path, "ffffffff81000000 T f\nffffffff81000100 t g [mod]\n");
}

static void begin(struct sym_context *c, const char *boot_id)
{
    struct sym_capture capture = {.size = sizeof(capture), .boot_id = boot_id};
    assert_int_equal(sym_capture_begin(c, &capture), 0);
}

static void the_running_kernel_is_used_for_its_own_boot_only(void **state)
{
    (void)state;
    struct sym_context *c = open_context();
    struct sym_kernel k = {.size = sizeof(k)};
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_UNKNOWN_BOOT);
    begin(c, "x");
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OTHER_BOOT);
    assert_int_equal(ask(c, 0xffffffff81000010)->miss, SYM_MISS_KERNEL);
    begin(c, "424b4134-d103-4224-a007-a2d7608fffd7");
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    assert_string_equal(sym_kernel_detail(c), "");
    files.kallsyms = "/nonexistent";
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_UNREADABLE);
    files.kallsyms = stat_path;
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_EMPTY);
    files.kallsyms = kallsyms_path;
    sym_context_free(c);
}

static void a_recorded_release_must_not_contradict_the_running_one(void **state)
{
    (void)state;
    struct sym_context *c = open_context();
    struct sym_kernel k = {.size = sizeof(k), .release = "6.1.0-test"};
    begin(c, "424b4134-d103-4224-a007-a2d7608fffd7");
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    k.release = "6.1.0-other";
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OTHER_BOOT);
    assert_string_equal(sym_kernel_detail(c), "the running kernel has another release");
    /* The user vouches for a file. */
    k.kallsyms = kallsyms_path;
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    sym_context_free(c);
}

static void a_named_file_must_be_good(void **state)
{
    (void)state;
    struct sym_context *c = open_context();
    struct sym_kernel k = {.size = sizeof(k), .kallsyms = "/nonexistent/kallsyms"};
    assert_int_equal(sym_kernel_load(c, &k), SYM_ERR_NOT_FOUND);
    assert_non_null(strstr(sym_context_error(c), "/nonexistent/kallsyms"));
    k.kallsyms = folder;
    assert_int_equal(sym_kernel_load(c, &k), SYM_ERR_IO);
    k.kallsyms = stat_path;
    assert_int_equal(sym_kernel_load(c, &k), SYM_ERR_FORMAT);
    assert_int_equal(sym_kernel_load(c, NULL), SYM_ERR_MISUSE);
    k.size = 0;
    assert_int_equal(sym_kernel_load(c, &k), SYM_ERR_MISUSE);
    k = (struct sym_kernel){.size = sizeof(k), .range_count = 1};
    assert_int_equal(sym_kernel_load(c, &k), SYM_ERR_MISUSE);
    sym_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_may_come_in_any_order),
        cmocka_unit_test(only_code_counts),
        cmocka_unit_test(addresses_that_are_all_zero_mean_restricted),
        cmocka_unit_test(a_file_without_usable_lines_is_empty),
        cmocka_unit_test(of_equal_addresses_the_better_name_wins),
        cmocka_unit_test(entries_do_not_cross_into_modules_or_bpf),
        cmocka_unit_test(sparse_mode_keeps_what_answers),
        cmocka_unit_test(sparse_and_full_tables_agree),
        cmocka_unit_test(ranges_tell_where_images_end),
        cmocka_unit_test(trampolines_are_images_of_their_own),
        cmocka_unit_test(every_digit_is_checked),
        cmocka_unit_test(lines_may_end_like_elsewhere),
        cmocka_unit_test(a_context_names_kernel_addresses),
        cmocka_unit_test(the_running_kernel_is_used_for_its_own_boot_only),
        cmocka_unit_test(a_recorded_release_must_not_contradict_the_running_one),
        cmocka_unit_test(a_named_file_must_be_good),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
