/* SPDX-License-Identifier: MIT */
/* The spool's file: nothing of it is there before a recording begins, and none that we did not make is removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static char folder[] = "/tmp/test_record_output-XXXXXX";

static int enter(void **state)
{
    (void)state;
    cli_set_program("spoolrecord", false);
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int leave(void **state)
{
    (void)state;
    unlink("a.spool");
    return chdir("/") != 0 || rmdir(folder) != 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect_file(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found - 1, file), strlen(text));
    assert_string_equal(found, text);
    fclose(file);
}

static void a_recording_that_does_not_begin_leaves_nothing(void **state)
{
    struct record_output out;

    (void)state;
    assert_int_equal(record_output_open(&out, "a.spool", false), 0);
    assert_int_equal(record_output_write(&out, "header", 6), 0);
    assert_int_equal(record_output_close(&out), 0);
    assert_int_equal(access("a.spool", F_OK), -1);
}

static void a_recording_that_fails_before_its_first_sample_leaves_nothing(void **state)
{
    struct record_output out;

    (void)state;
    assert_int_equal(record_output_open(&out, "a.spool", false), 0);
    assert_int_equal(record_output_write(&out, "header", 6), 0);
    assert_int_equal(record_output_begin(&out), 0);
    assert_int_equal(record_output_give_up(&out), 0);
    assert_int_equal(access("a.spool", F_OK), -1);
    assert_int_equal(record_output_close(&out), 0);

    assert_int_equal(record_output_open(&out, "a.spool", false), 0);
    assert_int_equal(record_output_write(&out, "one ", 4), 0);
    assert_int_equal(record_output_begin(&out), 0);
    assert_int_equal(record_output_write(&out, "two", 3), 0);
    assert_int_equal(record_output_give_up(&out), 0);
    expect_file("a.spool", "one two");
    unlink("a.spool");
}

static void what_was_written_before_it_began_comes_first(void **state)
{
    struct record_output out;

    (void)state;
    assert_int_equal(record_output_open(&out, "a.spool", false), 0);
    assert_int_equal(record_output_write(&out, "one ", 4), 0);
    expect_file("a.spool", "");
    assert_int_equal(record_output_begin(&out), 0);
    expect_file("a.spool", "one ");
    assert_int_equal(record_output_write(&out, "two", 3), 0);
    assert_int_equal(record_output_close(&out), 0);
    expect_file("a.spool", "one two");
}

static void an_older_file_is_kept_till_a_recording_begins(void **state)
{
    struct record_output out;

    (void)state;
    write_file("a.spool", "an older recording");
    assert_int_equal(record_output_open(&out, "a.spool", false), -1);
    assert_int_equal(record_output_open(&out, "a.spool", true), 0);
    record_output_write(&out, "new", 3);
    assert_int_equal(record_output_close(&out), 0);
    expect_file("a.spool", "an older recording");
    assert_int_equal(record_output_open(&out, "a.spool", true), 0);
    record_output_write(&out, "new", 3);
    assert_int_equal(record_output_begin(&out), 0);
    assert_int_equal(record_output_close(&out), 0);
    expect_file("a.spool", "new");
}

static void a_file_of_somebody_else_is_not_removed(void **state)
{
    struct record_output out;

    (void)state;
    unlink("a.spool");
    assert_int_equal(record_output_open(&out, "a.spool", false), 0);
    unlink("a.spool");
    write_file("a.spool", "theirs");
    assert_int_equal(record_output_close(&out), 0);
    expect_file("a.spool", "theirs");
}

static void the_first_failure_is_kept(void **state)
{
    struct record_output out;

    (void)state;
    assert_int_equal(record_output_open(&out, "/dev/full", false), 0);
    record_output_write(&out, "x", 1);
    assert_int_equal(record_output_begin(&out), ENOSPC);
    assert_int_equal(record_output_write(&out, "x", 1), ENOSPC);
    assert_int_equal(record_output_close(&out), ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_that_does_not_begin_leaves_nothing),
        cmocka_unit_test(a_recording_that_fails_before_its_first_sample_leaves_nothing),
        cmocka_unit_test(what_was_written_before_it_began_comes_first),
        cmocka_unit_test(an_older_file_is_kept_till_a_recording_begins),
        cmocka_unit_test(a_file_of_somebody_else_is_not_removed),
        cmocka_unit_test(the_first_failure_is_kept),
    };

    return cmocka_run_group_tests(tests, enter, leave);
}
