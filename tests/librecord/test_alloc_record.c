/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at any moment of a recording of real processes: each call says so or does all of its work, what was
 * stopped goes on, and the session can be freed. And the functions that need no memory work without any.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool/record.h"
#include "spool/spool.h"

#include "../alloc_fault.h"
#include "child_process.h"

/* ---- what a recording has ---- */

#define TEXT_SIZE 65536

struct recording {
    uint8_t bytes[1 << 18];
    size_t size;
    char text[TEXT_SIZE]; /* of `bytes`: mappings and notes, less what differs from run to run */
};

/* When no memory is missing; and of the run at hand. */
static struct recording whole, run;

static int take(void *user, const void *data, size_t size)
{
    struct recording *r = user;

    if (size > sizeof r->bytes - r->size)
        return EFBIG;
    memcpy(r->bytes + r->size, data, size);
    r->size += size;
    return 0;
}

static void describe(struct recording *r)
{
    struct spool_reader *reader = spool_reader_new();
    struct spool_record rec;
    size_t used = 0;

    assert_int_equal(spool_reader_open_memory(reader, r->bytes, r->size), 0);
    r->text[0] = '\0';
    while (spool_reader_next(reader, &rec) > 0) {
        size_t left = sizeof r->text - used;
        int n = 0;

        if (rec.type == SPOOL_RECORD_MODULE)
            n = snprintf(r->text + used, left, "module %s %d\n", rec.module.path,
                         (int)rec.module.pid);
        else if (rec.type == SPOOL_RECORD_ANNOTATION && rec.annotation.key != SPOOL_NOTE_CLOCK &&
                 rec.annotation.key != SPOOL_NOTE_LOST && rec.annotation.key != SPOOL_NOTE_END)
            n = snprintf(r->text + used, left, "note %d %s\n", (int)rec.annotation.key,
                         rec.annotation.value);
        used += (size_t)n;
        assert_true(used < sizeof r->text);
    }
    spool_reader_free(reader);
}

/* ---- a recording ---- */

static pid_t child; /* sleeps, and has a child that does */
static pid_t grandchild;

static size_t open_descriptors(void)
{
    DIR *d = __real_opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

#define CHECK(call)    \
    do {               \
        rc = (call);   \
        if (rc < 0)    \
            return rc; \
    } while (0)

static int record_child(struct record_session *s)
{
    struct record_options o;
    pid_t pids[4];
    int rc;

    record_options_init(&o, sizeof o);
    o.has_start = true;
    o.kernel = true;
    o.ring_size_bytes = 16384; /* quickly mapped */
    o.cmdline = "not used";
    CHECK(record_session_open_callback(s, take, &run, &o));
    CHECK(record_session_attach(s, child, RECORD_ATTACH_DESCENDANTS));
    CHECK(record_session_poll(s, 0));
    CHECK(record_session_refresh_threads(s, child));
    CHECK(record_session_disable(s));
    CHECK(record_session_enable(s));
    CHECK(record_session_flush(s));
    assert_int_equal(record_session_process_count(s, 0), 2);
    assert_int_equal(record_session_process_active(s, child), 1);
    assert_int_equal(record_session_processes(s, pids, 4), 2);
    assert_int_equal(pids[0] + pids[1], child + grandchild);
    CHECK(record_session_poll(s, 0));
    return record_session_finish(s);
}

/* A session that has failed says so ever after; one that was refused something goes on. */
static void assert_failed(struct record_session *s, int rc)
{
    assert_int_equal(rc, RECORD_ERR_NOMEM);
    assert_true(alloc.failed);
    assert_non_null(strstr(record_session_error(s), "out of memory"));
    assert_true(record_session_poll(s, 0) < 0);
    assert_true(record_session_attach(s, child, 0) < 0);
    assert_true(record_session_refresh_threads(s, child) < 0);
    assert_true(record_session_enable(s) < 0);
    assert_true(record_session_finish(s) < 0);
}

static void run_attach(void *unused)
{
    const size_t before = open_descriptors();
    struct record_session *s = record_session_new();
    int rc;

    (void)unused;
    run.size = 0;
    if (s == NULL) {
        assert_true(alloc.failed);
        return;
    }
    rc = record_child(s);
    if (rc < 0) {
        assert_failed(s, rc);
    } else {
        const long countdown = alloc_pause();

        describe(&run);
        if (whole.size == 0)
            whole = run;
        assert_string_equal(run.text, whole.text);
        alloc_resume(countdown);
    }
    record_session_free(s);
    assert_int_equal(open_descriptors(), before);
    assert_true(strchr("tT", state_of(child, 0)) == NULL);
    assert_true(strchr("tT", state_of(grandchild, 0)) == NULL);
}

/* Skips the test where the kernel does not let us record. */
static void need_recording(void)
{
    struct record_session *s = record_session_new();
    struct record_options o;
    int rc;

    record_options_init(&o, sizeof o);
    run.size = 0;
    assert_int_equal(record_session_open_callback(s, take, &run, &o), 0);
    rc = record_session_attach(s, child, 0);
    if (rc < 0)
        print_message("recording is refused here: %s\n", record_session_error(s));
    record_session_free(s);
    if (rc == RECORD_ERR_PERMISSION || rc == RECORD_ERR_UNSUPPORTED)
        skip();
    assert_int_equal(rc, 0);
}

static void attaching_does_all_or_says_that_memory_is_out(void **state)
{
    long n;

    (void)state;
    need_recording();
    whole.size = 0;
    run_attach(NULL);
    assert_non_null(strstr(whole.text, "module"));
    n = alloc_try_each(run_attach, NULL);
    print_message("%ld\n", n);
    assert_true(n > 20);
}

/* ---- a command ---- */

static int record_command(struct record_session *s, struct record_command *c)
{
    char program[] = "/bin/true";
    char *argv[] = {program, NULL};
    struct record_options o;
    int rc, status = -1;

    record_options_init(&o, sizeof o);
    o.ring_size_bytes = 16384;
    o.cmdline = "true";
    CHECK(record_session_open_fd(s, open("/dev/null", O_WRONLY | O_CLOEXEC), &o));
    assert_int_equal(record_command_prepare(c, argv, NULL),
                     0); /* allocates nothing, as the rest of it */
    assert_true(record_command_pid(c) > 0);
    CHECK(record_session_attach_command(s, c));
    assert_int_equal(record_command_run(c), 0);
    while ((rc = record_command_wait(c, &status)) == 0)
        ;
    assert_int_equal(rc, 1);
    assert_int_equal(status, 0);
    assert_int_equal(record_command_try_wait(c, NULL), 1);
    assert_int_equal(record_command_errno(c), 0);
    CHECK(record_session_poll(s, 0));
    return record_session_finish(s);
}

static void run_command(void *unused)
{
    struct record_session *s = record_session_new();
    struct record_command *c = record_command_new();
    int rc;

    (void)unused;
    if (s == NULL || c == NULL) {
        assert_true(alloc.failed);
    } else {
        /* The descriptor of /dev/null is the next one. */
        int fd = dup(0);

        close(fd);
        rc = record_command(s, c);
        close(fd);
        if (rc < 0)
            assert_failed(s, rc);
    }
    record_session_free(s);
    record_command_free(c);
}

static void recording_a_command_does_all_or_says_that_memory_is_out(void **state)
{
    (void)state;
    need_recording();
    assert_true(alloc_try_each(run_command, NULL) > 10);
}

/* ---- processes ---- */

static unsigned short_lists; /* of descendants, where memory was out */

static void run_helpers(void *unused)
{
    pid_t pids[4];
    size_t count = record_descendants(child, pids, 4);

    (void)unused;
    if (count == 0) {
        assert_true(alloc.failed);
        short_lists++;
    } else {
        assert_int_equal(count, 1);
        assert_int_equal(pids[0], grandchild);
    }
    assert_int_equal(record_process_exists(child), 1);
}

static void descendants_are_all_or_none(void **state)
{
    (void)state;
    assert_true(alloc_try_each(run_helpers, NULL) > 3);
    assert_true(short_lists > 3);
}

/* ---- what needs no memory ---- */

static void faults_answer(void)
{
    struct record_faults f = {.count = {[RECORD_FAULT_NO_RULE] = 3}};
    enum record_fault fault;
    uint64_t count;
    unsigned at = 0;
    char text[200];

    assert_int_equal(record_faults_get(&f, RECORD_FAULT_NO_RULE), 3);
    assert_int_equal(record_faults_total(&f), 3);
    assert_true(record_faults_any(&f));
    assert_int_equal(record_faults_next(&f, &at, &fault, &count), 1);
    assert_int_equal(fault, RECORD_FAULT_NO_RULE);
    assert_true(record_faults_report(&f, 9, text, sizeof text) > 0);
    record_faults_reset(&f);
    assert_false(record_faults_any(&f));
    assert_string_equal(record_fault_name(RECORD_FAULT_NO_RULE), "no_rule");
    assert_true(record_fault_text(RECORD_FAULT_NO_RULE)[0] != '\0');
}

static void session_answers(struct record_session *s)
{
    struct record_summary summary;
    uint32_t asked_hz, limit_hz;

    record_session_set_log(s, NULL, NULL);
    record_session_summary(s, &summary);
    assert_string_equal(record_mode_name(summary.mode), "none");
    assert_int_equal(record_session_frequency_error(s, &asked_hz, &limit_hz), 0);
    assert_int_equal(record_session_pending(s), 0);
    assert_int_equal(record_session_process_count(s, 0), 0);
    assert_int_equal(record_session_processes(s, NULL, 0), 0);
    assert_int_equal(record_session_process_active(s, child), 0);
    assert_int_equal(record_session_flush(s), 0);
    assert_int_equal(record_session_finish(s), 0);
    assert_string_equal(record_session_error(s), "no error");
}

/* Processes are looked at, signalled and waited for. */
static void processes_answer(pid_t victim)
{
    uint32_t hz;
    int fd = record_exit_fd_open(victim);

    (void)record_max_sample_rate(&hz);
    assert_true(fd >= 0);
    assert_int_equal(record_process_exists(victim), 1);
    assert_int_equal(record_exit_fd_wait(fd, 0), 0);
    assert_int_equal(record_process_interrupt(victim), 0);
    assert_int_equal(record_process_kill(victim), 0);
    while (record_exit_fd_wait(fd, ENOUGH_MS) == 0)
        ;
    assert_int_equal(record_process_exists(victim), 0);
    close(fd);
}

static void commands_answer(struct record_command *c)
{
    char missing[] = "/nonexistent";
    char *argv[] = {missing, NULL};

    assert_int_equal(record_command_prepare(c, argv, NULL), 0);
    assert_int_equal(record_command_try_wait(c, NULL), 0);
    assert_int_equal(record_command_run(c), RECORD_ERR_COMMAND);
    assert_int_equal(record_command_errno(c), ENOENT);
    assert_true(record_command_pid(c) > 0);
    assert_int_equal(record_command_wait(c, NULL), 1);
}

static void functions_that_need_no_memory_ask_for_none(void **state)
{
    struct record_session *s = record_session_new();
    struct record_command *c = record_command_new();
    struct record_options o;
    pid_t victim = start_child(sleeps);
    uint64_t address;
    unsigned long before;

    (void)state;
    record_options_init(&o, sizeof o);
    run.size = 0;
    assert_int_equal(record_session_open_callback(s, take, &run, &o), 0);
    alloc_fail_at(1, true);
    before = alloc.count;
    record_options_init(&o, sizeof o);
    assert_string_equal(record_error_name(RECORD_ERR_NOMEM), "RECORD_ERR_NOMEM");
    assert_string_equal(record_error_text(RECORD_ERR_NOMEM), "out of memory");
    assert_true(record_version()[0] != '\0');
    assert_int_equal(record_file_address(8, 16, 1, 9, &address), 1);
    faults_answer();
    session_answers(s);
    commands_answer(c);
    processes_answer(victim);
    record_session_free(s);
    record_command_free(c);
    assert_true(alloc.count == before ||
                alloc.count == before + 1); /* a zombie's threads are looked for */
    alloc_stop();
    reap_child(victim);
}

/* ---- */

static void has_child(int ready_fd)
{
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleeps(ready_fd);
    }
    for (;;)
        pause();
}

static int start(void **state)
{
    pid_t pids[2];

    (void)state;
    child = start_child(has_child);
    if (record_descendants(child, pids, 2) != 1)
        return -1;
    grandchild = pids[0];
    return 0;
}

static int end(void **state)
{
    (void)state;
    end_child(child);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attaching_does_all_or_says_that_memory_is_out),
        cmocka_unit_test(recording_a_command_does_all_or_says_that_memory_is_out),
        cmocka_unit_test(descendants_are_all_or_none),
        cmocka_unit_test(functions_that_need_no_memory_ask_for_none),
    };

    return cmocka_run_group_tests(tests, start, end);
}
