/* SPDX-License-Identifier: MIT */
/* Opening inputs of every kind, the messages about them, and what damage means under each
 * option. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli.h"
#include "inputs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASES FIXTURES_DIR "/stackpulse/cases/"
#define SYNTH FIXTURES_DIR "/stackpulse/synth/"

/* Runs fn with standard error in a file, which `text` gets. */
static char text[4096];
static FILE *capture;
static int saved_stderr = -1;

static void begin_capture(void)
{
    capture = tmpfile();
    assert_non_null(capture);
    saved_stderr = dup(2);
    dup2(fileno(capture), 2);
}

static void end_capture(void)
{
    size_t size;

    dup2(saved_stderr, 2);
    close(saved_stderr);
    rewind(capture);
    size = fread(text, 1, sizeof text - 1, capture);
    text[size] = '\0';
    fclose(capture);
}

static void expect_refusal(const char *path, const char *message)
{
    struct tool_input in;
    char expected[1024];
    int rc;

    begin_capture();
    rc = inputs_open(path, &in);
    end_capture();
    snprintf(expected, sizeof expected, "test: %s: %s\n", inputs_name(path), message);
    assert_int_equal(rc, -1);
    assert_string_equal(text, expected);
    inputs_close(&in); /* allowed, and does nothing */
}

/* Reads all of it and returns inputs_finish's answer; its message, less "test: PATH: ", is in
 * `text`. */
static enum input_end read_all(const char *path, const struct tool_options *o, uint64_t *samples)
{
    struct tool_input in;
    struct spool_record record;
    enum input_end end;
    char prefix[1024];
    int rc;

    *samples = 0;
    assert_int_equal(inputs_open(path, &in), 0);
    while ((rc = spool_reader_next(in.reader, &record)) > 0)
        *samples += record.type == SPOOL_RECORD_SAMPLE;
    begin_capture();
    end = inputs_finish(&in, rc, o);
    end_capture();
    inputs_close(&in);
    snprintf(prefix, sizeof prefix, "test: %s: ", path);
    if (text[0] != '\0') {
        assert_int_equal(strncmp(text, prefix, strlen(prefix)), 0);
        memmove(text, text + strlen(prefix), strlen(text + strlen(prefix)) + 1);
    }
    return end;
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    expect_refusal("/nonexistent/x.spool", "open failed: No such file or directory");
    expect_refusal(FIXTURES_DIR, "is a directory");
    expect_refusal("", "open failed: No such file or directory");
}

static void an_unreadable_file_is_refused(void **state)
{
    char path[] = "/tmp/test_inputs.XXXXXX", expected[64];
    int fd = mkstemp(path), status;
    pid_t child;

    (void)state;
    snprintf(expected, sizeof expected, "test: %s: open failed: Permission denied\n", path);
    fchmod(fd, 0);
    begin_capture();
    child = fork();
    if (child == 0) {
        struct tool_input in;

        if (geteuid() == 0 && seteuid(65534) != 0)
            _exit(77);
        _exit(inputs_open(path, &in) == -1 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    end_capture();
    close(fd);
    unlink(path);
    if (WEXITSTATUS(status) == 77) {
        printf("root, and no other user to become\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_equal(text, expected);
}

static void a_terminal_is_refused(void **state)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    (void)state;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        printf("no pseudo terminal to be had\n");
        skip();
    }
    expect_refusal(ptsname(master), "is a terminal");
    close(master);
}

static void what_is_no_spool_says_what_it_is(void **state)
{
    struct tool_input in;

    (void)state;
    /* The words are libspool's; here counts that they come with the name and that nothing opens. */
    begin_capture();
    assert_int_equal(inputs_open("/proc/self/exe", &in), -1);
    end_capture();
    assert_non_null(strstr(text, "test: /proc/self/exe: "));
    assert_non_null(strstr(text, "ELF"));
    begin_capture();
    assert_int_equal(inputs_open(CASES "empty-file.spool", &in), -1);
    end_capture();
    assert_non_null(strstr(text, "empty-file.spool: "));
    assert_non_null(strstr(text, "empty"));
}

static void names_with_control_characters_are_escaped(void **state)
{
    struct tool_input in;

    (void)state;
    begin_capture();
    assert_int_equal(inputs_open("/nonexistent/\033[2J\n", &in), -1);
    end_capture();
    assert_string_equal(
        text, "test: /nonexistent/\\x1b[2J\\x0a: open failed: No such file or directory\n");
}

static void sizes_are_known_of_regular_files_only(void **state)
{
    struct tool_input in;
    char folder[] = "/tmp/test_inputs.XXXXXX", fifo[64];
    int keep;

    (void)state;
    assert_int_equal(inputs_open(CASES "one-sample.spool", &in), 0);
    assert_true(in.has_size);
    assert_int_equal(in.size_bytes, 54);
    assert_string_equal(in.name, CASES "one-sample.spool");
    inputs_close(&in);

    assert_non_null(mkdtemp(folder));
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    keep = open(fifo, O_RDWR);
    assert_int_equal(write(keep, "SPULSE3\0\0\0", 10), 10);
    assert_int_equal(inputs_open(fifo, &in), 0);
    assert_false(in.has_size);
    inputs_close(&in);
    close(keep);
    unlink(fifo);
    rmdir(folder);
}

static void a_whole_spool_ends_without_a_word(void **state)
{
    struct tool_options o = {.damage = DAMAGE_STRICT};
    uint64_t samples;

    (void)state;
    assert_int_equal(read_all(CASES "one-sample.spool", &o, &samples), INPUT_OK);
    assert_string_equal(text, "");
    assert_int_equal(samples, 1);
    o.damage = DAMAGE_SALVAGE;
    assert_int_equal(read_all(CASES "one-sample.spool", &o, &samples), INPUT_OK);
    assert_string_equal(text, "");
}

static void a_cut_tail_is_a_warning_and_strictly_an_error(void **state)
{
    struct tool_options o = {.damage = DAMAGE_DEFAULT};
    uint64_t samples;

    (void)state;
    assert_int_equal(read_all(SYNTH "churn-cut.spool", &o, &samples), INPUT_OK);
    assert_string_equal(text, "cut off at byte 122901; kept 2999 samples\n");
    assert_int_equal(samples, 2999);
    o.damage = DAMAGE_SALVAGE;
    assert_int_equal(read_all(SYNTH "churn-cut.spool", &o, &samples), INPUT_OK);
    assert_string_equal(text, "cut off at byte 122901; kept 2999 samples\n");
    o.damage = DAMAGE_STRICT;
    assert_int_equal(read_all(SYNTH "churn-cut.spool", &o, &samples), INPUT_FAILED);
    assert_string_equal(text, "cut off at byte 122901 after 2999 samples\n");
    cli_set_program("test", true);
    assert_int_equal(read_all(SYNTH "churn-cut.spool", &o, &samples), INPUT_FAILED);
    assert_string_equal(text, "cut off at byte 122901 after 2999 samples\n");
    o.damage = DAMAGE_DEFAULT;
    assert_int_equal(read_all(SYNTH "churn-cut.spool", &o, &samples), INPUT_OK);
    assert_string_equal(text, "");
    cli_set_program("test", false);
    assert_int_equal(read_all(CASES "tail-tag-only.spool", &o, &samples), INPUT_OK);
    assert_string_equal(text, "cut off at byte 53; kept 1 sample\n");
}

static void corruption_is_an_error_unless_it_is_salvaged(void **state)
{
    struct tool_options o = {.damage = DAMAGE_DEFAULT};
    uint64_t samples;

    (void)state;
    assert_int_equal(read_all(CASES "negative-delta-underflow.spool", &o, &samples), INPUT_FAILED);
    assert_non_null(strstr(text, "sample record at byte 53 "));
    assert_null(strstr(text, "kept"));
    assert_non_null(strstr(text, "; --salvage uses the 1 sample before it\n"));
    o.damage = DAMAGE_STRICT;
    assert_int_equal(read_all(CASES "negative-delta-underflow.spool", &o, &samples), INPUT_FAILED);
    assert_null(strstr(text, "--salvage")); /* which --strict excludes */
    o.damage = DAMAGE_SALVAGE;
    assert_int_equal(read_all(CASES "negative-delta-underflow.spool", &o, &samples),
                     INPUT_SALVAGED);
    assert_non_null(strstr(text, "sample record at byte 53 "));
    assert_non_null(strstr(text, "; kept 1 sample\n"));
    assert_int_equal(samples, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(an_unreadable_file_is_refused),
        cmocka_unit_test(a_terminal_is_refused),
        cmocka_unit_test(what_is_no_spool_says_what_it_is),
        cmocka_unit_test(names_with_control_characters_are_escaped),
        cmocka_unit_test(sizes_are_known_of_regular_files_only),
        cmocka_unit_test(a_whole_spool_ends_without_a_word),
        cmocka_unit_test(a_cut_tail_is_a_warning_and_strictly_an_error),
        cmocka_unit_test(corruption_is_an_error_unless_it_is_salvaged),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
