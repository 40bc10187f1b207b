/* SPDX-License-Identifier: MIT */
/* Wording of the --verbose report: numbers, shares, and names that must not break a line. */
#include "../spool2folded/make_spool.h"

#include "cli.h"
#include "report.h"

static void expect_number(uint64_t number, const char *text)
{
    struct text_buffer b = {0};

    text_number(&b, number);
    assert_string_equal(b.data, text);
    text_free(&b);
}

static void numbers_have_commas(void **state)
{
    (void)state;
    expect_number(0, "0");
    expect_number(999, "999");
    expect_number(1000, "1,000");
    expect_number(41233, "41,233");
    expect_number(999999, "999,999");
    expect_number(1234567, "1,234,567");
    expect_number(UINT64_MAX, "18,446,744,073,709,551,615");
}

static void a_missing_file_says_why_and_what_it_cost(void **state)
{
    struct text_buffer b = {0};

    (void)state;
    report_miss(&b, "/opt/app/lib/libfoo.so", 22, "build-id 1f2e differs", "", 310);
    report_miss(&b, "/x", 2, "no such file", "/sys/x: gone", 1);
    assert_string_equal(b.data,
                        "no symbols: /opt/app/lib/libfoo.so (build-id 1f2e differs): 310 samples\n"
                        "no symbols: /x (/sys/x: gone): 1 sample\n");
    text_free(&b);
}

static void a_module_without_a_path_is_unnamed(void **state)
{
    struct text_buffer b = {0};

    (void)state;
    report_miss(&b, "", 0, "generated code, and the process has no perf map", "", 2);
    assert_string_equal(
        b.data,
        "no symbols: [unnamed] (generated code, and the process has no perf map): 2 samples\n");
    text_free(&b);
}

static void a_name_with_a_line_break_stays_on_its_line(void **state)
{
    struct text_buffer b = {0};
    struct capture c;
    char *text;

    (void)state;
    report_miss(&b, "/a\nno symbols: /b", 17, "no such file", "/s\nx", 1);
    report_miss(&b, "/nul\0here", 9, "no such file", "", 2);
    capture_begin(&c);
    cli_report_lines(&b);
    text = capture_end(&c);
    assert_string_equal(text, "no symbols: /a\\x0ano symbols: /b (/s\\x0ax): 1 sample\n"
                              "no symbols: /nul\\x00here (no such file): 2 samples\n");
    free(text);
    text_free(&b);
}

static void names_of_unknown_builds_are_told_in_one_line(void **state)
{
    static const struct report_path files[] = {{"/a", 2},   {"/b\nx", 4}, {"", 0},
                                               {"/d/d", 4}, {"/e", 2},    {"/f", 2}};
    struct text_buffer b = {0};

    (void)state;
    report_unverified(&b, files, 0, false, "/boot/x: not used");
    assert_int_equal(b.size, 0);
    report_unverified(&b, files, 1, false, "/boot/x: not used");
    report_unverified(&b, files, 2, true, "");
    report_unverified(&b, files, 4, false, "");
    report_unverified(&b, files, 6, true, "/boot/s");
    report_unverified(&b, NULL, 0, true, "/boot/System.map-6\n: shifted by 0x1c000000");
    assert_string_equal(
        b.data, "not verified: 1 file named without a recorded build id to compare: /a\n"
                "not verified: 2 files named without a recorded build id to compare: /a, "
                "/b\\x0ax; the kernel named by a file that states no build id\n"
                "not verified: 4 files named without a recorded build id to compare: /a, "
                "/b\\x0ax, [unnamed], /d/d\n"
                "not verified: 6 files named without a recorded build id to compare: /a, "
                "/b\\x0ax, [unnamed], /d/d and 2 more; the kernel named by a file that states no "
                "build id (/boot/s)\n"
                "not verified: the kernel named by a file that states no build id "
                "(/boot/System.map-6\\x0a: shifted by 0x1c000000)\n");
    text_free(&b);
}

static void a_debug_file_that_is_wrong_is_named(void **state)
{
    struct text_buffer lines = {0};

    (void)state;
    report_debug(&lines, "/bin/app", 8, "/usr/lib/debug/a.debug: its build id is 1, not 2");
    report_debug(&lines, "/bin/app", 8, "/bin/app: damaged\n");
    assert_string_equal(lines.data,
                        "no debug info: /bin/app (/usr/lib/debug/a.debug: its build id is 1, not "
                        "2)\n"
                        "no debug info: /bin/app (damaged\\x0a)\n");
    text_free(&lines);
}

static void nothing_collected_prints_nothing(void **state)
{
    struct text_buffer b = {0};
    struct capture c;
    char *text;

    (void)state;
    capture_begin(&c);
    cli_report_lines(&b);
    text = capture_end(&c);
    assert_string_equal(text, "");
    free(text);
}

/* The report about a spool with what was counted in it. */
static void expect_report(struct maker *m, const struct input_report *r, const char *expected)
{
    struct aggregate_options o = {0};
    struct text_buffer b = {0};
    struct tool_input in;
    struct aggregate a;

    assert_int_equal(inputs_open(m->path, &in), 0);
    assert_int_equal(aggregate_read(&a, &o, &in, NULL), 0);
    assert_int_equal(aggregate_finish(&a), 0);
    in.name = "cap\n.spool";
    report_input(&b, &in, &a, r);
    assert_string_equal(b.data, expected);
    text_free(&b);
    aggregate_free(&a);
    inputs_close(&in);
}

static void singular_and_plural_are_right(void **state)
{
    struct input_report none = {0}, one = {.samples = 1,
                                           .stacks = 1,
                                           .frames = 1,
                                           .named_elf = 1,
                                           .truncated_stacks = 1};
    struct input_report some = {.samples = 12345,
                                .stacks = 1904,
                                .frames = 1000,
                                .named_elf = 710,
                                .named_perf_map = 202,
                                .named_kernel = 79,
                                .named_jit = 1,
                                .truncated_stacks = 12};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_finish(&m);
    expect_report(&m, &none,
                  "cap\\x0a.spool: version 4, 11 B, 0 samples over 0.00 s, 0 processes, 0 threads\n"
                  "used 0 samples, 0 distinct stacks, 0 distinct frames\n"
                  "0 stacks truncated\n");
    maker_close(&m);

    maker_open(&m, 0);
    maker_put(&m, 5, 1, 1, "$10");
    maker_finish(&m);
    expect_report(&m, &one,
                  "cap\\x0a.spool: version 4, 31 B, 1 sample over 0.00 s, 1 process, 1 thread\n"
                  "used 1 sample, 1 distinct stack, 1 distinct frame\n"
                  "named 100.0 % of frames (elf 100.0), 1 stack truncated\n");
    maker_close(&m);

    maker_open(&m, 0);
    maker_put(&m, 10020000000, 1, 1, "$10");
    maker_put(&m, 0, 1, 2, "$10"); /* the span is that of all times, in whatever order */
    maker_put(&m, 5, 2, 3, "$10");
    maker_finish(&m);
    expect_report(
        &m, &some,
        "cap\\x0a.spool: version 4, 55 B, 3 samples over 10.02 s, 2 processes, 3 threads\n"
        "used 12,345 samples, 1,904 distinct stacks, 1,000 distinct frames\n"
        "named 99.2 % of frames (elf 71.0, perf-map 20.2, kernel 7.9, jit 0.1), 12 stacks "
        "truncated\n");
    maker_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_commas),
        cmocka_unit_test(a_missing_file_says_why_and_what_it_cost),
        cmocka_unit_test(a_module_without_a_path_is_unnamed),
        cmocka_unit_test(a_name_with_a_line_break_stays_on_its_line),
        cmocka_unit_test(names_of_unknown_builds_are_told_in_one_line),
        cmocka_unit_test(a_debug_file_that_is_wrong_is_named),
        cmocka_unit_test(nothing_collected_prints_nothing),
        cmocka_unit_test(singular_and_plural_are_right),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
