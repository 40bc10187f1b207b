/* SPDX-License-Identifier: MIT */
/* kallsyms: which lines count, where entries end, and the rule of the same boot. */
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

static enum sym_kernel_state parse_needed(struct symint_kernel *k, const char *text,
                                          const uint64_t *needed, size_t count)
{
    enum sym_kernel_state state;
    char *copy = strdup(text);
    assert_non_null(copy);
    assert_int_equal(symint_kernel_parse(k, copy, strlen(text), needed, count, &state), 0);
    return state;
}

static enum sym_kernel_state parse(struct symint_kernel *k, const char *text)
{
    return parse_needed(k, text, NULL, 0);
}

static void check(const struct symint_kernel *k, uint64_t address, const char *name)
{
    const struct symint_kernel_entry *e = symint_kernel_find(k, address);
    if (name == NULL) {
        if (e != NULL)
            fail_msg("%.*s at %llx", (int)e->name_size, k->text + e->name,
                     (unsigned long long)address);
        return;
    }
    assert_non_null(e);
    if (e->name_size != strlen(name) || memcmp(k->text + e->name, name, e->name_size) != 0)
        fail_msg("%.*s instead of %s", (int)e->name_size, k->text + e->name, name);
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
                                        "1000 TT f\n"};
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
    assert_int_equal(k.count, 2);
    check(&k, 0x1080, "a");
    check(&k, 0x1100, NULL);
    check(&k, 0x1300, "d");
    const struct symint_kernel_entry *e = symint_kernel_find(&k, 0x1300);
    assert_int_equal(e->owner_size, 3);
    assert_memory_equal(k.text + e->owner, "[m]", 3);
    symint_kernel_free(&k);
    assert_int_equal(parse_needed(&k, "1000 T a\n", needed, 0), SYM_KERNEL_OK);
    assert_int_equal(k.count, 0);
    symint_kernel_free(&k);
}

/* ---- with files ---- */

static char folder[64];
static char kallsyms_path[96];
static char boot_path[96];
static char stat_path[96];
static struct symint_kernel_paths paths;

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
    put(kallsyms_path, "ffffffff81000000 T f\nffffffff81000100 t g [mod]\n");
    put(boot_path, "424b4134-d103-4224-a007-a2d7608fffd7\n");
    put(stat_path, "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n");
    paths = (struct symint_kernel_paths){kallsyms_path, boot_path, stat_path};
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(kallsyms_path);
    unlink(boot_path);
    unlink(stat_path);
    return rmdir(folder);
}

static void the_boot_id_decides(void **state)
{
    (void)state;
    struct sym_kernel k = {.size = sizeof(k), .boot_id = "424b4134-d103-4224-a007-a2d7608fffd7"};
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_OK);
    k.boot_id = "424b4134d1034224a007a2d7608fffd7";
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_OK);
    k.boot_id = "424b4134-d103-4224-a007-a2d7608fffd8";
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_OTHER_BOOT);
    k.boot_id = "424b4134-d103-4224-a007-a2d7608fffd";
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_OTHER_BOOT);
    /* The start time cannot overrule it. */
    k.has_start_time = true;
    k.start_time_us = (uint64_t)1800000000 * 1000000;
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_OTHER_BOOT);
}

static void without_a_boot_id_the_start_time_decides(void **state)
{
    (void)state;
    struct sym_kernel k = {.size = sizeof(k), .has_start_time = true};
    k.start_time_us = (uint64_t)1700000000 * 1000000;
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_OK);
    k.start_time_us--;
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_OTHER_BOOT);
    k.has_start_time = false;
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_UNKNOWN_BOOT);
    k.boot_id = "";
    assert_int_equal(symint_kernel_boot(&k, &paths), SYM_KERNEL_UNKNOWN_BOOT);
}

static void an_unknown_boot_of_ours_is_no_match(void **state)
{
    (void)state;
    struct symint_kernel_paths none = {kallsyms_path, "/nonexistent", "/nonexistent"};
    struct sym_kernel k = {.size = sizeof(k), .boot_id = "424b4134-d103-4224-a007-a2d7608fffd7"};
    assert_int_equal(symint_kernel_boot(&k, &none), SYM_KERNEL_UNKNOWN_BOOT);
    k.has_start_time = true;
    assert_int_equal(symint_kernel_boot(&k, &none), SYM_KERNEL_UNKNOWN_BOOT);
}

static struct sym_context *open_context(void)
{
    struct sym_context *c = sym_context_new();
    assert_non_null(c);
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

static void the_running_kernel_is_used_for_its_own_boot_only(void **state)
{
    (void)state;
    struct sym_context *c = open_context();
    struct sym_kernel k = {.size = sizeof(k), .boot_id = "x"};
    assert_int_equal(symint_context_load_kernel(c, &k, &paths), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OTHER_BOOT);
    assert_int_equal(ask(c, 0xffffffff81000010)->miss, SYM_MISS_KERNEL);
    k.boot_id = "424b4134-d103-4224-a007-a2d7608fffd7";
    assert_int_equal(symint_context_load_kernel(c, &k, &paths), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    struct symint_kernel_paths gone = {"/nonexistent", boot_path, stat_path};
    assert_int_equal(symint_context_load_kernel(c, &k, &gone), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_UNREADABLE);
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
        cmocka_unit_test(the_boot_id_decides),
        cmocka_unit_test(without_a_boot_id_the_start_time_decides),
        cmocka_unit_test(an_unknown_boot_of_ours_is_no_match),
        cmocka_unit_test(a_context_names_kernel_addresses),
        cmocka_unit_test(the_running_kernel_is_used_for_its_own_boot_only),
        cmocka_unit_test(a_named_file_must_be_good),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
