/* SPDX-License-Identifier: MIT */
/* The words of the summary: what is fine is not mentioned, losses always are, advice from one percent on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record_report.h"

#include <string.h>

#include "cli.h"

static struct record_summary base(void)
{
    return (struct record_summary){.sample_events = 41300,
                                   .samples = 41233,
                                   .event = "cycles",
                                   .frequency_hz = 999,
                                   .bytes = 1258291,
                                   .duration_ns = UINT64_C(10020000000),
                                   .processes = 2,
                                   .threads = 9,
                                   .mode = RECORD_MODE_INHERIT};
}

static void expect(const struct record_summary *s, uint32_t stack_size_bytes, const char *expected)
{
    struct report_context context = {.name = "a\nb.spool", .stack_size_bytes = stack_size_bytes};
    struct text_buffer out = {0};

    record_report_text(&out, s, &context);
    assert_string_equal(out.data, expected);
    text_free(&out);
}

#define HEAD \
    "a\\x0ab.spool: 41,233 samples in 10.02 s, 2 processes, 9 threads, 1.2 MiB (cycles, 999 Hz)\n"

static void a_good_recording_is_one_line(void **state)
{
    struct record_summary s = base();

    (void)state;
    expect(&s, 32768, HEAD);
}

static void what_was_done_otherwise_is_named(void **state)
{
    struct record_summary s = base();

    (void)state;
    s.kernel_enabled = true;
    s.mode = RECORD_MODE_PER_THREAD;
    s.processes = s.threads = 1;
    s.samples = 0;
    expect(
        &s, 32768,
        "a\\x0ab.spool: 0 samples in 10.02 s, 1 process, 1 thread, 1.2 MiB (cycles, 999 Hz, with "
        "kernel frames, per-thread)\nno samples: nothing ran on a CPU for long enough\n");
}

static void expect_details(const struct record_summary *s, const char *expected)
{
    struct report_context context = {
        .name = "a\nb.spool", .stack_size_bytes = 32768, .verbose = true};
    struct text_buffer out = {0};

    record_report_text(&out, s, &context);
    assert_memory_equal(out.data, HEAD, sizeof HEAD - 1);
    assert_string_equal(out.data + sizeof HEAD - 1, expected);
    text_free(&out);
}

static void details_leave_out_what_did_not_happen(void **state)
{
    struct record_summary s = base();

    (void)state;
    s.ring_size_bytes = 8 << 20;
    expect_details(&s, "ring buffers of 8.0 MiB for each CPU\n");
    s.rescans = 2;
    s.lifecycle_gaps = 1;
    expect_details(
        &s, "ring buffers of 8.0 MiB for each CPU\n"
            "mappings were read from /proc again 3 times (unknown addresses, lost events)\n");
}

static void losses_are_told_with_what_helps(void **state)
{
    struct record_summary s = base();
    struct text_buffer out = {0};

    (void)state;
    assert_false(record_report_losses(&out, &s));
    assert_int_equal(out.size, 0);
    s.lost_events = 1;
    expect(
        &s, 32768,
        HEAD
        "lost 1 event: a larger --buffer, a lower --frequency or a smaller --stack-size helps\n");
    s.lost_events = 900;
    s.lost_samples = 833;
    assert_true(record_report_losses(&out, &s));
    assert_string_equal(out.data,
                        "lost 900 events, 833 of them samples (2.0 %): a larger --buffer, a lower "
                        "--frequency or a smaller --stack-size helps\n");
    text_free(&out);
}

static void a_larger_stack_is_advised_from_one_percent_on(void **state)
{
    struct record_summary s = base();

    (void)state;
    s.samples = 10000;
    s.truncated_stacks = s.faults.count[RECORD_FAULT_STACK_TRUNCATED] = 100;
#define HEAD2 \
    "a\\x0ab.spool: 10,000 samples in 10.02 s, 2 processes, 9 threads, 1.2 MiB (cycles, 999 Hz)\n"
    expect(&s, 32768, HEAD2 "100 stacks do not reach the root (1.0 %); --verbose tells why\n");
    s.truncated_stacks = s.faults.count[RECORD_FAULT_STACK_TRUNCATED] = 110;
    expect(&s, 32768,
           HEAD2
           "110 stacks do not reach the root (1.1 %); --verbose tells why\n"
           "1.1 % of the stacks are larger than the 32768 bytes copied of each: --stack-size 65528 "
           "gets more of them\n");
    expect(&s, 8192,
           HEAD2
           "110 stacks do not reach the root (1.1 %); --verbose tells why\n"
           "1.1 % of the stacks are larger than the 8192 bytes copied of each: --stack-size 32K "
           "or 65528 gets more of them\n");
    expect(&s, RECORD_STACK_SIZE_MAX,
           HEAD2
           "110 stacks do not reach the root (1.1 %); --verbose tells why\n"
           "1.1 % of the stacks are larger than the 65528 bytes copied of each: the kernel copies "
           "no more\n");
}

static void what_is_missing_is_one_line(void **state)
{
    struct record_summary s = base();

    (void)state;
    s.missing_tid = 2;
    s.excluded_kernel = 1;
    s.throttled = 1;
    s.corrupt_records = 3;
    expect(&s, 32768,
           HEAD "the kernel throttled sampling 1 time: a lower --frequency avoids that\n"
                "3 records of the kernel could not be read\n"
                "not used: 2 samples without a thread, 1 sample of the kernel alone\n");
}

static void json_has_its_keys_in_order(void **state)
{
    struct record_summary s = base();
    struct text_buffer out = {0};

    (void)state;
    s.lost_events = UINT64_MAX;
    s.faults.count[RECORD_FAULT_OVERFLOW] = 5;
    record_report_json(&out, &s);
    assert_string_equal(
        out.data,
        "{\"sample_events\":41300,\"samples\":41233,\"lost_events\":18446744073709551615,"
        "\"lifecycle_gaps\":0,\"kernel_enabled\":false,\"event\":\"cycles\",\"frequency_hz\":999,"
        "\"missing_pid\":0,\"missing_tid\":0,\"idle_tid\":0,\"missing_timestamp\":0,\"empty_"
        "stack\":0,"
        "\"truncated_stacks\":0,\"ignored_user_callchain\":0,\"throttled\":0,\"errors\":{"
        "\"registers_missing\":0,\"register_capture\":0,\"stack_read\":0,\"stack_truncated\":0,"
        "\"no_progress\":0,\"null_return_address\":0,\"moved_backwards\":0,\"overflow\":5,"
        "\"depth_limit\":0,\"no_rule\":0,\"uprobe\":0},\"bytes\":1258291,\"duration_ns\":"
        "10020000000,"
        "\"processes\":2,\"threads\":9,\"mode\":\"inherit\"}\n");
    text_free(&out);
}

static void progress_names_losses_when_there_are_some(void **state)
{
    struct record_summary s = base();
    struct text_buffer out = {0};

    (void)state;
    cli_set_program("spoolrecord", false);
    record_report_progress(&out, &s, "cap.spool");
    assert_string_equal(out.data, "spoolrecord: cap.spool: 10.0 s, 41,233 samples, 1.2 MiB");
    out.size = 0;
    s.lost_events = 1000;
    record_report_progress(&out, &s, "cap.spool");
    assert_string_equal(out.data,
                        "spoolrecord: cap.spool: 10.0 s, 41,233 samples, 1,000 lost, 1.2 MiB");
    text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_recording_is_one_line),
        cmocka_unit_test(what_was_done_otherwise_is_named),
        cmocka_unit_test(details_leave_out_what_did_not_happen),
        cmocka_unit_test(losses_are_told_with_what_helps),
        cmocka_unit_test(a_larger_stack_is_advised_from_one_percent_on),
        cmocka_unit_test(what_is_missing_is_one_line),
        cmocka_unit_test(json_has_its_keys_in_order),
        cmocka_unit_test(progress_names_losses_when_there_are_some),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
