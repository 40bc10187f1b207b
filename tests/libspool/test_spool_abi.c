/* SPDX-License-Identifier: MIT */
/*
 * What programs were compiled against: the sizes of the structs of spool.h and the numbers of its constants. One that
 * changes takes a new major version. Both machines lay structs out alike.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spool/spool.h"

static void structs_keep_their_sizes(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct spool_origin), 32);
    assert_int_equal(sizeof(struct spool_header), 72);
    assert_int_equal(sizeof(struct spool_jit_symbol), 32);
    assert_int_equal(sizeof(struct spool_module), 104);
    assert_int_equal(sizeof(struct spool_frame), 32);
    assert_int_equal(sizeof(struct spool_stack), 16);
    assert_int_equal(sizeof(struct spool_thread), 16);
    assert_int_equal(sizeof(struct spool_sample), 48);
    assert_int_equal(sizeof(struct spool_python), 16);
    assert_int_equal(sizeof(struct spool_annotation), 184);
    assert_int_equal(sizeof(struct spool_record), 200);
    assert_int_equal(sizeof(struct spool_counts), 40);
    assert_int_equal(sizeof(struct spool_stack_node), 8);
    assert_int_equal(sizeof(struct spool_wall_time), 16);
    assert_int_equal(sizeof(struct spool_tail_batch), 88);
    assert_int_equal(sizeof(struct spool_writer_frame), 24);
}

static void numbers_are_never_used_for_something_else(void **state)
{
    (void)state;
    assert_int_equal(SPOOL_ERR_NOMEM, -1);
    assert_int_equal(SPOOL_ERR_IO, -2);
    assert_int_equal(SPOOL_ERR_FORMAT, -3);
    assert_int_equal(SPOOL_ERR_VERSION, -4);
    assert_int_equal(SPOOL_ERR_CORRUPT, -5);
    assert_int_equal(SPOOL_ERR_TRUNCATED, -6);
    assert_int_equal(SPOOL_ERR_LIMIT, -7);
    assert_int_equal(SPOOL_ERR_MISUSE, -8);
    assert_int_equal(SPOOL_RECORD_JIT_MODULE, 9);
    assert_int_equal(SPOOL_RECORD_ANNOTATION, 256);
    assert_int_equal(SPOOL_FRAME_TRUNCATED, 2);
    assert_int_equal(SPOOL_NOTE_OTHER, 0);
    assert_int_equal(SPOOL_NOTE_COMM, 1);
    assert_int_equal(SPOOL_NOTE_THREAD, 2);
    assert_int_equal(SPOOL_NOTE_BUILD_ID, 3);
    assert_int_equal(SPOOL_NOTE_CMDLINE, 4);
    assert_int_equal(SPOOL_NOTE_HOST, 5);
    assert_int_equal(SPOOL_NOTE_KERNEL, 6);
    assert_int_equal(SPOOL_NOTE_KSYMBOL, 7);
    assert_int_equal(SPOOL_NOTE_EVENT, 8);
    assert_int_equal(SPOOL_NOTE_CLOCK, 9);
    assert_int_equal(SPOOL_NOTE_LOST, 10);
    assert_int_equal(SPOOL_NOTE_END, 11);
    assert_int_equal(SPOOL_MAPPING_BY_ID, 0);
    assert_int_equal(SPOOL_MAPPING_BY_ADDRESS, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_keep_their_sizes),
        cmocka_unit_test(numbers_are_never_used_for_something_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
