/* SPDX-License-Identifier: MIT */
/*
 * What programs were compiled against: the sizes of the structs of record.h and the numbers of its constants. One that
 * changes takes a new major version; options may grow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "spool/record.h"

static void structs_keep_their_sizes(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct record_faults), 256);
    assert_int_equal(sizeof(struct record_summary), 584);
    assert_true(sizeof(struct record_options) >= 72);
    assert_true(sizeof(struct record_command_options) >= 16);
}

static void options_are_filled_in_no_further_than_the_caller_knows_them(void **state)
{
    struct record_options o;

    (void)state;
    memset(&o, 0xa5, sizeof o);
    record_options_init(&o, offsetof(struct record_options, stack_size_bytes));
    assert_int_equal(o.size, offsetof(struct record_options, stack_size_bytes));
    assert_int_equal(o.frequency_hz, 999);
    assert_int_equal(o.stack_size_bytes, 0xa5a5a5a5);
    record_options_init(&o, sizeof o);
    assert_int_equal(o.size, sizeof o);
    assert_int_equal(o.stack_size_bytes, 32768);
    assert_null(o.cmdline);
}

static void a_longer_options_struct_than_this_library_knows_is_zeroed_and_refused(void **state)
{
    struct record_session *s = record_session_new();
    struct {
        struct record_options known;
        uint64_t later;
    } o = {.later = 1};

    (void)state;
    assert_non_null(s);
    record_options_init(&o.known, sizeof o);
    assert_int_equal(o.known.size, sizeof o);
    assert_int_equal(o.known.frequency_hz, 999);
    assert_int_equal(o.later, 0);
    assert_int_equal(record_session_open_fd(s, 1, &o.known), RECORD_ERR_MISUSE);
    record_session_free(s);
}

static void numbers_are_never_used_for_something_else(void **state)
{
    (void)state;
    assert_int_equal(RECORD_ERR_NOMEM, -1);
    assert_int_equal(RECORD_ERR_IO, -2);
    assert_int_equal(RECORD_ERR_LIMIT, -7);
    assert_int_equal(RECORD_ERR_MISUSE, -8);
    assert_int_equal(RECORD_ERR_PERMISSION, -20);
    assert_int_equal(RECORD_ERR_UNSUPPORTED, -21);
    assert_int_equal(RECORD_ERR_NO_PROCESS, -22);
    assert_int_equal(RECORD_ERR_COMMAND, -23);
    assert_int_equal(RECORD_ERR_INTERRUPTED, -24);
    assert_int_equal(RECORD_EVENT_CPU_CLOCK, 2);
    assert_int_equal(RECORD_LOG_WARNING, 2);
    assert_int_equal(RECORD_ATTACH_NO_STOP, 1);
    assert_int_equal(RECORD_ATTACH_DESCENDANTS, 2);
    assert_int_equal(RECORD_ATTACH_DISABLED, 4);
    assert_int_equal(RECORD_MODE_SYSTEM_WIDE, 3);
    assert_int_equal(RECORD_FAULT_REGISTERS_MISSING, 0);
    assert_int_equal(RECORD_FAULT_REGISTER_CAPTURE, 1);
    assert_int_equal(RECORD_FAULT_STACK_READ, 2);
    assert_int_equal(RECORD_FAULT_STACK_TRUNCATED, 3);
    assert_int_equal(RECORD_FAULT_NO_PROGRESS, 4);
    assert_int_equal(RECORD_FAULT_NULL_RETURN_ADDRESS, 5);
    assert_int_equal(RECORD_FAULT_MOVED_BACKWARDS, 6);
    assert_int_equal(RECORD_FAULT_OVERFLOW, 7);
    assert_int_equal(RECORD_FAULT_DEPTH_LIMIT, 8);
    assert_int_equal(RECORD_FAULT_NO_RULE, 9);
    assert_int_equal(RECORD_FAULT_UPROBE, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_keep_their_sizes),
        cmocka_unit_test(options_are_filled_in_no_further_than_the_caller_knows_them),
        cmocka_unit_test(a_longer_options_struct_than_this_library_knows_is_zeroed_and_refused),
        cmocka_unit_test(numbers_are_never_used_for_something_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
