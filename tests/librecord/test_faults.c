/* SPDX-License-Identifier: MIT */
/* Counts of why stacks were cut, and the report of them. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "spool/record.h"

static void faults_are_counted_by_kind_and_reported_by_share(void **state)
{
    struct record_faults f;
    enum record_fault fault;
    uint64_t count;
    unsigned at = 0;
    char text[512], small[8];
    size_t needed;

    (void)state;
    record_faults_reset(&f);
    assert_false(record_faults_any(&f));
    assert_int_equal(record_faults_report(&f, 10, text, sizeof text), 0);
    f.count[RECORD_FAULT_NO_RULE] = 1;
    f.count[RECORD_FAULT_STACK_TRUNCATED] = 25;
    assert_int_equal(record_faults_total(&f), 26);
    assert_int_equal(record_faults_get(&f, RECORD_FAULT_NO_RULE), 1);
    assert_int_equal(record_faults_next(&f, &at, &fault, &count), 1);
    assert_int_equal(fault, RECORD_FAULT_STACK_TRUNCATED);
    assert_int_equal(count, 25);
    assert_int_equal(record_faults_next(&f, &at, &fault, &count), 1);
    assert_int_equal(fault, RECORD_FAULT_NO_RULE);
    assert_int_equal(record_faults_next(&f, &at, &fault, &count), 0);
    needed = record_faults_report(&f, 1000, text, sizeof text);
    assert_int_equal(needed, strlen(text));
    assert_string_equal(text,
                        "25 (2.50 %): the copied part of the stack ended\n"
                        "1 (0.10 %): no unwind information, and no frame pointer to be trusted\n");
    assert_int_equal(record_faults_report(&f, 1000, small, sizeof small), needed);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_string_equal(record_fault_name(RECORD_FAULT_COUNT), "unknown");
}

static void expect_share(uint64_t count, uint64_t samples, const char *share)
{
    struct record_faults f = {{[RECORD_FAULT_OVERFLOW] = count}};
    char text[100], expected[100];

    record_faults_report(&f, samples, text, sizeof text);
    snprintf(expected, sizeof expected, "%" PRIu64 " (%s %%): an address beyond 64 bits\n", count,
             share);
    assert_string_equal(text, expected);
}

static void shares_are_rounded_whatever_the_counts(void **state)
{
    (void)state;
    expect_share(1, 3, "33.33");
    expect_share(2, 3, "66.67");
    expect_share(1, 20001, "0.00");
    expect_share(1, 20000, "0.01");
    expect_share(7, 7, "100.00");
    expect_share(7, 0, "0.00");
    expect_share(UINT64_MAX, UINT64_MAX, "100.00");
    expect_share(UINT64_MAX / 2, UINT64_MAX, "50.00");
    expect_share(1, UINT64_MAX, "0.00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_counted_by_kind_and_reported_by_share),
        cmocka_unit_test(shares_are_rounded_whatever_the_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
