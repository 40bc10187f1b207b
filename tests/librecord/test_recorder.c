/* SPDX-License-Identifier: MIT */
/*
 * Sessions through the public interface, on children of this program that burn CPU time. What needs events is
 * skipped, with the reason, where the kernel refuses them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool/record.h"
#include "spool/spool.h"

/* ---- where spools and notices go ---- */

struct sink {
    uint8_t *bytes;
    size_t size;
    size_t fail_at; /* bytes after which writing fails; 0: never */
    int calls_after_failure;
    bool failed;
    char notices[4096];
};

static int take(void *user, const void *data, size_t size)
{
    struct sink *k = user;

    if (k->failed) {
        k->calls_after_failure++;
        return ENOSPC;
    }
    if (k->fail_at != 0 && k->size + size > k->fail_at) {
        k->failed = true;
        return ENOSPC;
    }
    k->bytes = realloc(k->bytes, k->size + size);
    assert_non_null(k->bytes);
    memcpy(k->bytes + k->size, data, size);
    k->size += size;
    return 0;
}

static void note(void *user, enum record_log_level level, const char *text)
{
    struct sink *k = user;

    if (level > RECORD_LOG_DEBUG && strlen(k->notices) + strlen(text) + 2 < sizeof k->notices)
        strcat(strcat(k->notices, text), "\n");
}

static struct record_session *open_session(struct sink *k, const struct record_options *options)
{
    struct record_session *s = record_session_new();

    assert_non_null(s);
    record_session_set_log(s, note, k);
    if (record_session_open_callback(s, take, k, options) != 0)
        fail_msg("%s", record_session_error(s));
    return s;
}

struct spool_counts_seen {
    struct spool_header header;
    uint64_t samples;
    uint64_t samples_of; /* of the process asked for */
    uint64_t last_time_ns;
    char cmdline[64]; /* the latest */
    uint64_t modules_of;
};

/* Reads a spool back; pid 0: of no process. */
static struct spool_counts_seen read_back(const struct sink *k, pid_t pid)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_counts_seen seen = {.samples = 0};
    struct spool_record rec;
    int rc;

    assert_int_equal(spool_reader_open_memory(r, k->bytes, k->size), 0);
    seen.header = *spool_reader_header(r);
    while ((rc = spool_reader_next(r, &rec)) > 0) {
        if (rec.type == SPOOL_RECORD_ANNOTATION && rec.annotation.key == SPOOL_NOTE_CMDLINE)
            snprintf(seen.cmdline, sizeof seen.cmdline, "%s", rec.annotation.value);
        seen.modules_of += rec.type == SPOOL_RECORD_MODULE && rec.module.pid == pid;
        if (rec.type != SPOOL_RECORD_SAMPLE)
            continue;
        seen.samples++;
        seen.samples_of += rec.sample.pid == pid;
        seen.last_time_ns = rec.sample.time_ns;
    }
    assert_int_equal(rc, 0);
    spool_reader_free(r);
    return seen;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- targets ---- */

static void spin(void)
{
    for (volatile unsigned i = 0;; i++)
        ;
}

static void *spin_thread(void *unused)
{
    (void)unused;
    spin();
    return NULL;
}

/* A child that burns CPU time until it is killed, or until we end. */
static pid_t start_spinner(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        spin();
    }
    assert_true(pid > 0);
    return pid;
}

static void end_spinner(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Attaches or skips the test where the kernel does not let us. */
static void attach(struct record_session *s, pid_t pid, unsigned flags)
{
    int rc = record_session_attach(s, pid, flags);

    if (rc == RECORD_ERR_PERMISSION || rc == RECORD_ERR_UNSUPPORTED) {
        print_message("recording is refused here: %s\n", record_session_error(s));
        skip();
    }
    if (rc != 0)
        fail_msg("%s", record_session_error(s));
}

/* Polls until n more samples were written; fails after ten seconds. */
static void poll_samples(struct record_session *s, int n)
{
    uint64_t end = now_ns() + 10000000000u;

    while (n > 0) {
        int rc = record_session_poll(s, 50);

        if (rc < 0)
            fail_msg("%s", record_session_error(s));
        n -= rc;
        if (now_ns() > end)
            fail_msg("%d samples are missing after ten seconds", n);
    }
}

static size_t open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* Descriptors of events alone: files of targets are opened when they are first needed. */
static size_t open_events(void)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    size_t n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char target[64] = "";

        if (readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1) > 0)
            n += strcmp(target, "anon_inode:[perf_event]") == 0;
    }
    closedir(dir);
    return n;
}

/* ---- without events ---- */

static void calls_in_the_wrong_order_are_refused(void **state)
{
    struct record_session *s = record_session_new();
    struct record_options o;
    struct sink k = {0};

    (void)state;
    assert_int_equal(record_session_poll(s, 0), RECORD_ERR_MISUSE);
    assert_string_equal(record_session_error(s), "the session is not open");
    assert_int_equal(record_session_attach(s, 1, 0), RECORD_ERR_MISUSE);
    assert_int_equal(record_session_flush(s), RECORD_ERR_MISUSE);
    assert_int_equal(record_session_finish(s), RECORD_ERR_MISUSE);
    assert_int_equal(record_session_pending(s), 0);
    record_options_init(&o, sizeof o);
    assert_int_equal(record_session_open_callback(s, take, &k, &o), 0);
    assert_int_equal(record_session_open_callback(s, take, &k, &o), RECORD_ERR_MISUSE);
    assert_int_equal(record_session_attach(s, 0, 0), RECORD_ERR_MISUSE);
    assert_int_equal(record_session_refresh_threads(s, 4000000), RECORD_ERR_NO_PROCESS);
    assert_int_equal(record_session_attach(s, 5000000, 0), RECORD_ERR_NO_PROCESS);
    assert_string_equal(record_session_error(s), "process 5000000 does not exist");
    assert_int_equal(record_session_poll(s, 0), 0); /* the session goes on */
    assert_int_equal(record_session_finish(s), 0);
    assert_int_equal(record_session_finish(s), RECORD_ERR_MISUSE);
    assert_int_equal(record_session_poll(s, 0), RECORD_ERR_MISUSE);
    record_session_free(s);
    assert_int_equal(read_back(&k, 0).samples, 0);
    free(k.bytes);
}

static void options_are_checked(void **state)
{
    static const struct {
        uint32_t frequency_hz, stack_size_bytes, version;
    } bad[] = {{0, 4096, 3}, {99, 0, 3}, {99, 7, 3}, {99, 4096, 2}, {99, 4096, 5}};
    struct record_options o;
    struct sink k = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct record_session *s = record_session_new();

        record_options_init(&o, sizeof o);
        o.frequency_hz = bad[i].frequency_hz;
        o.stack_size_bytes = bad[i].stack_size_bytes;
        o.spool_version = bad[i].version;
        assert_int_equal(record_session_open_callback(s, take, &k, &o), RECORD_ERR_MISUSE);
        record_session_free(s);
    }
    assert_int_equal(k.size, 0);
}

static void a_frequency_above_the_limit_carries_both_numbers(void **state)
{
    struct record_session *s = record_session_new();
    struct record_options o;
    struct sink k = {0};
    uint32_t limit, asked_hz, limit_hz;
    char number[16];

    (void)state;
    if (!record_max_sample_rate(&limit)) {
        print_message("no kernel.perf_event_max_sample_rate\n");
        skip();
    }
    record_options_init(&o, sizeof o);
    o.frequency_hz = limit + 1;
    assert_int_equal(record_session_frequency_error(s, &asked_hz, &limit_hz), 0);
    assert_int_equal(record_session_open_callback(s, take, &k, &o), RECORD_ERR_LIMIT);
    assert_int_equal(record_session_frequency_error(s, &asked_hz, &limit_hz), 1);
    assert_int_equal(asked_hz, limit + 1);
    assert_int_equal(limit_hz, limit);
    snprintf(number, sizeof number, "%u", limit);
    assert_non_null(strstr(record_session_error(s), number));
    record_session_free(s);
    assert_int_equal(k.size, 0);
}

static void the_header_says_what_was_asked_for(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    struct spool_header h;

    (void)state;
    record_options_init(&o, sizeof o);
    o.frequency_hz = 99;
    s = open_session(&k, &o);
    h = read_back(&k, 0).header; /* it is written at once */
    assert_int_equal(h.version, 3);
    assert_int_equal(h.interval_us, 10101);
    assert_true(h.start_us / 1000000 >= (uint64_t)time(NULL) - 5 &&
                h.start_us / 1000000 <= (uint64_t)time(NULL));
    record_session_free(s);

    k.size = 0;
    o.spool_version = 4;
    s = open_session(&k, &o);
    h = read_back(&k, 0).header;
    assert_int_equal(h.version, 4);
    assert_int_equal(h.interval_ns, 10101010);
    assert_true(h.has_origin);
    assert_true(h.origin.monotonic_ns <= now_ns());
    record_session_free(s);

    k.size = 0;
    o.spool_version = 3;
    o.has_start = o.has_interval = true;
    o.start_us = 17;
    o.interval_us = 4;
    s = open_session(&k, &o);
    h = read_back(&k, 0).header;
    assert_int_equal(h.start_us, 17);
    assert_int_equal(h.interval_us, 4);
    record_session_free(s);
    free(k.bytes);
}

static void a_stack_size_above_the_kernels_is_clamped_and_said_so(void **state)
{
    struct record_options o;
    struct sink k = {0};

    (void)state;
    record_options_init(&o, sizeof o);
    o.stack_size_bytes = 65536;
    record_session_free(open_session(&k, &o));
    assert_string_equal(k.notices, "stack size 65536 is clamped to the kernel's 65528 bytes\n");
    free(k.bytes);
}

/* ---- with events ---- */

static void a_running_process_is_sampled_at_the_rate_asked_for(void **state)
{
    struct record_options o;
    struct record_summary summary;
    struct sink k = {0};
    size_t descriptors = open_descriptors();
    struct record_session *s;
    pid_t pid = start_spinner();

    (void)state;
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, pid, 0);
    poll_samples(s, 200);
    assert_int_equal(record_session_process_active(s, pid), 1);
    assert_int_equal(record_session_process_count(s, 0), 1);
    assert_int_equal(record_session_process_count(s, pid), 0);
    assert_int_equal(record_session_finish(s), 0);
    record_session_summary(s, &summary);
    assert_true(summary.samples >= 200);
    assert_int_equal(summary.samples, summary.sample_events);
    assert_int_equal(summary.lost_events, 0);
    assert_int_equal(summary.processes, 1);
    assert_int_equal(summary.threads, 1);
    assert_int_equal(summary.bytes, k.size);
    assert_int_equal(summary.mode, RECORD_MODE_INHERIT);
    record_session_free(s);
    end_spinner(pid);
    assert_int_equal(read_back(&k, pid).samples_of, summary.samples);
    assert_int_equal(open_descriptors(), descriptors);
    free(k.bytes);
}

static void nothing_is_sampled_while_switched_off(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    uint64_t end;
    pid_t pid = start_spinner();

    (void)state;
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, pid, RECORD_ATTACH_DISABLED);
    for (end = now_ns() + 300000000; now_ns() < end;)
        assert_int_equal(record_session_poll(s, 50), 0);
    assert_int_equal(record_session_enable(s), 0);
    poll_samples(s, 20);
    assert_int_equal(record_session_disable(s), 0);
    while (record_session_pending(s))
        assert_true(record_session_poll(s, 0) >= 0);
    for (end = now_ns() + 300000000; now_ns() < end;)
        assert_int_equal(record_session_poll(s, 50), 0);
    assert_int_equal(record_session_enable(s), 0);
    poll_samples(s, 20);
    assert_int_equal(record_session_finish(s), 0);
    record_session_free(s);
    end_spinner(pid);
    free(k.bytes);
}

static void processes_may_be_added_and_may_end(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    pid_t first = start_spinner(), second, listed[4];
    uint64_t end;

    (void)state;
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, first, 0);
    poll_samples(s, 20);
    second = start_spinner();
    attach(s, second, 0);
    attach(s, second, 0); /* again: a refresh */
    assert_int_equal(record_session_processes(s, listed, 4), 2);
    assert_int_equal(listed[0], first < second ? first : second);
    end_spinner(first);
    assert_int_equal(record_session_process_active(s, first), 0);
    assert_int_equal(record_session_process_count(s, 0), 1);
    poll_samples(s, 100);
    end_spinner(second);
    for (end = now_ns() + 10000000000u; record_session_process_count(s, 0) > 0;)
        assert_true(now_ns() < end);
    assert_int_equal(record_session_finish(s), 0);
    record_session_free(s);
    assert_true(read_back(&k, second).samples_of > 20);
    assert_true(read_back(&k, first).samples_of >= 20);
    free(k.bytes);
}

/* The identifier of a thread of ours that waits, which is not that of a process. */
static void *tell_and_wait(void *user)
{
    pid_t *tid = user;

    __atomic_store_n(tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    for (;;)
        pause();
    return NULL;
}

static void a_thread_is_no_process(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    int ends[2];
    pid_t pid, tid = 0;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        pthread_t thread;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, tell_and_wait, &tid) != 0)
            _exit(1);
        while (__atomic_load_n(&tid, __ATOMIC_ACQUIRE) == 0)
            usleep(1000);
        if (write(ends[1], &tid, sizeof tid) != (ssize_t)sizeof tid)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ends[0], &tid, sizeof tid), sizeof tid);
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    assert_int_equal(record_session_attach(s, tid, 0), RECORD_ERR_NO_PROCESS);
    assert_non_null(strstr(record_session_error(s), "is a thread of process"));
    assert_int_equal(record_session_process_count(s, 0), 0);
    record_session_free(s);
    end_spinner(pid);
    close(ends[0]);
    close(ends[1]);
    free(k.bytes);
}

/* A child that, told by a byte, makes one that burns CPU time. */
static pid_t start_maker(int *told)
{
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        char byte;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(ends[0], &byte, 1) == 1 && fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            spin();
        }
        pause();
        _exit(0);
    }
    close(ends[0]);
    *told = ends[1];
    return pid;
}

static void a_process_made_while_switched_off_is_sampled(void **state)
{
    struct record_options o;
    struct record_summary sum;
    struct sink k = {0};
    struct record_session *s;
    pid_t child = 0;
    int told;
    pid_t pid = start_maker(&told);
    uint64_t end = now_ns() + 10000000000u;

    (void)state;
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, pid, RECORD_ATTACH_DISABLED);
    assert_int_equal(write(told, "", 1), 1);
    while (record_descendants(pid, &child, 1) == 0)
        assert_true(now_ns() < end);
    assert_int_equal(record_session_enable(s), 0);
    poll_samples(s, 20);
    assert_int_equal(record_session_finish(s), 0);
    record_session_summary(s, &sum);
    record_session_free(s);
    assert_int_equal(sum.missing_pid, 0);
    assert_true(read_back(&k, child).samples_of >= 20);
    end_spinner(pid);
    close(told);
    free(k.bytes);
}

#define IDLE_CHILDREN 40

/* A child with many children that do nothing, to which it is slow to attach, that makes busy ones all the time. */
static pid_t start_nursery(void)
{
    int ends[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < IDLE_CHILDREN; i++) {
            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                pause();
                _exit(0);
            }
        }
        if (write(ends[1], "", 1) != 1)
            _exit(1);
        for (;;) {
            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                alarm(1);
                spin();
            }
            usleep(20000);
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        }
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

/* Samples that follow another one of the same process within a quarter of the time that lies between two. */
static uint64_t samples_too_close(const struct sink *k, uint64_t interval_ns)
{
    static uint64_t latest[1 << 22];
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    uint64_t count = 0;

    assert_int_equal(spool_reader_open_memory(r, k->bytes, k->size), 0);
    while (spool_reader_next(r, &rec) > 0) {
        uint64_t *before = &latest[(uint32_t)rec.sample.pid % (1 << 22)];

        if (rec.type != SPOOL_RECORD_SAMPLE)
            continue;
        count += rec.sample.time_ns - *before < interval_ns / 4;
        *before = rec.sample.time_ns;
    }
    spool_reader_free(r);
    return count;
}

static void descendants_made_while_attaching_are_sampled_once(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    pid_t pid = start_nursery();
    uint64_t samples;

    (void)state;
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, pid, RECORD_ATTACH_DISABLED | RECORD_ATTACH_DESCENDANTS);
    assert_int_equal(record_session_enable(s), 0);
    poll_samples(s, 300);
    assert_int_equal(record_session_finish(s), 0);
    record_session_free(s);
    end_spinner(pid);
    samples = read_back(&k, 0).samples;
    assert_true(samples >= 300);
    assert_in_range(samples_too_close(&k, 1000000000u / o.frequency_hz), 0, samples / 20);
    free(k.bytes);
}

/* The state in /proc/PID/stat. */
static char state_of(pid_t pid)
{
    char path[64], text[512] = "";
    const char *end;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    end = strrchr(text, ')');
    assert_non_null(end);
    return end[2];
}

/* A parent in vfork cannot be stopped before its child goes, so that attaching takes its time. */
static pid_t start_vfork_parent(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (vfork() == 0) {
            usleep(1800000);
            _exit(0);
        }
        for (;;)
            pause();
    }
    for (uint64_t end = now_ns() + 10000000000u; state_of(pid) != 'D';)
        assert_true(now_ns() < end);
    return pid;
}

static pid_t start_parent_of_vfork_parents(int count)
{
    int ends[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < count; i++)
            start_vfork_parent();
        if (write(ends[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void processes_that_cannot_be_stopped_are_waited_for_together(void **state)
{
    struct record_options o;
    struct sink k = {0};
    pid_t pid = start_parent_of_vfork_parents(4);
    uint64_t begun = now_ns();
    struct record_session *s;

    (void)state;
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, pid, RECORD_ATTACH_DISABLED | RECORD_ATTACH_DESCENDANTS);
    assert_in_range(now_ns() - begun, 900000000, 1700000000);
    assert_non_null(strstr(k.notices, " processes cannot be stopped (process "));
    assert_null(strstr(k.notices, ": attaching while it runs"));
    record_session_free(s);
    end_spinner(pid);
    free(k.bytes);
}

static volatile sig_atomic_t interrupts;

static void interrupt(int number)
{
    (void)number;
    interrupts++;
}

/* What attaching returns to a program with this handler, or with that signal blocked, when SIGTERM comes meanwhile. */
static int attach_interrupted(pid_t pid, void (*handler)(int), bool blocked)
{
    struct sigaction action = {.sa_handler = handler}, old;
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    sigset_t set, before;
    pid_t sender, us = getpid();
    int rc;

    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    interrupts = 0;
    sigaction(SIGTERM, &action, &old);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
    sender = fork();
    if (sender == 0) {
        usleep(blocked ? 0 : 100000);
        kill(us, SIGTERM);
        _exit(0);
    }
    if (blocked) /* the signal waits before there is anything to do */
        waitpid(sender, NULL, 0);
    rc = record_session_attach(s, pid, RECORD_ATTACH_DISABLED | RECORD_ATTACH_DESCENDANTS);
    if (!blocked)
        waitpid(sender, NULL, 0);
    assert_int_equal(interrupts, !blocked && handler == interrupt);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGTERM, &old, NULL);
    record_session_free(s);
    free(k.bytes);
    return rc;
}

static void a_signal_that_ends_programs_ends_attaching(void **state)
{
    pid_t pid = start_parent_of_vfork_parents(2);

    (void)state;
    assert_int_equal(attach_interrupted(pid, interrupt, false), RECORD_ERR_INTERRUPTED);
    assert_int_not_equal(attach_interrupted(pid, SIG_IGN, false), RECORD_ERR_INTERRUPTED);
    assert_int_not_equal(attach_interrupted(pid, interrupt, true), RECORD_ERR_INTERRUPTED);
    end_spinner(pid);
}

static void a_recorder_ended_while_attaching_leaves_nobody_stopped(void **state)
{
    pid_t pid = start_vfork_parent(), recorder = fork();
    uint64_t end = now_ns() + 10000000000u;

    (void)state;
    if (recorder == 0) {
        struct record_options o;
        struct sink k = {0};

        signal(SIGTERM, SIG_DFL);
        record_options_init(&o, sizeof o);
        (void)!record_session_attach(open_session(&k, &o), pid, 0);
        _exit(0);
    }
    usleep(400000);
    kill(recorder, SIGTERM);
    waitpid(recorder, NULL, 0);
    while (state_of(pid) == 'D')
        assert_true(now_ns() < end);
    usleep(20000);
    assert_int_equal(state_of(pid), 'S');
    end_spinner(pid);
}

static void a_disk_that_fills_ends_the_recording_once(void **state)
{
    struct record_options o;
    struct sink k = {.fail_at = 2000};
    struct record_session *s;
    uint64_t end = now_ns() + 20000000000u;
    pid_t pid = start_spinner();
    char text[512];
    int rc;

    (void)state;
    record_options_init(&o, sizeof o);
    o.frequency_hz = 4000;
    s = open_session(&k, &o);
    attach(s, pid, 0);
    do {
        rc = record_session_poll(s, 50);
        assert_true(now_ns() < end);
    } while (rc >= 0);
    assert_int_equal(rc, RECORD_ERR_IO);
    assert_non_null(strstr(record_session_error(s), strerror(ENOSPC)));
    strcpy(text, record_session_error(s));
    assert_int_equal(record_session_poll(s, 0), RECORD_ERR_IO);
    assert_int_equal(record_session_flush(s), RECORD_ERR_IO);
    assert_int_equal(record_session_finish(s), RECORD_ERR_IO);
    assert_string_equal(record_session_error(s), text);
    assert_int_equal(k.calls_after_failure, 0);
    record_session_free(s);
    end_spinner(pid);
    (void)read_back(&k, pid); /* what was taken is whole records */
    free(k.bytes);
}

static void a_command_is_sampled_from_its_exec_on(void **state)
{
    char shell[] = "sh", option[] = "-c";
    struct spool_counts_seen seen;
    char script[] = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 7";
    char *argv[] = {shell, option, script, NULL};
    struct record_command *c = record_command_new();
    struct record_options o;
    struct record_summary summary;
    struct sink k = {0};
    struct record_session *s;
    pid_t pid;
    int status = 0, rc;

    (void)state;
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    assert_int_equal(record_command_prepare(c, argv, NULL), 0);
    pid = record_command_pid(c);
    rc = record_session_attach_command(s, c);
    if (rc == RECORD_ERR_PERMISSION || rc == RECORD_ERR_UNSUPPORTED) {
        print_message("recording is refused here: %s\n", record_session_error(s));
        skip();
    }
    assert_int_equal(rc, 0);
    assert_int_equal(record_session_attach_command(s, c), RECORD_ERR_MISUSE);
    assert_int_equal(record_command_run(c), 0);
    while ((rc = record_command_try_wait(c, &status)) == 0)
        assert_true(record_session_poll(s, 50) >= 0);
    assert_int_equal(rc, 1);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(record_session_process_count(s, 0), 0);
    assert_int_equal(record_session_finish(s), 0);
    record_session_summary(s, &summary);
    assert_true(summary.samples > 5);
    record_session_free(s);
    record_command_free(c);
    seen = read_back(&k, pid);
    assert_int_equal(seen.samples_of, summary.samples);
    assert_int_equal(strncmp(seen.cmdline, "sh -c 'i=0; while ", 18), 0);
    free(k.bytes);
}

/* A child of a target that no poll has seen yet. */
static void a_child_that_outlives_its_parent_is_a_target_at_once(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    pid_t parent = fork(), listed[2] = {0, 0};
    int status;

    (void)state;
    if (parent == 0) {
        raise(SIGSTOP);
        if (fork() == 0) {
            alarm(60); /* it is to outlive its parent, but not for ever */
            spin();
        }
        _exit(0);
    }
    assert_true(parent > 0);
    waitpid(parent, &status, WUNTRACED);
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, parent, 0);
    kill(parent, SIGCONT);
    waitpid(parent, &status, 0);
    assert_int_equal(record_session_process_count(s, 0), 1);
    assert_int_equal(record_session_processes(s, listed, 2), 1);
    assert_true(listed[0] > 0 && listed[0] != parent);
    poll_samples(s, 20);
    assert_int_equal(record_session_finish(s), 0);
    record_session_free(s);
    kill(listed[0], SIGKILL);
    assert_true(read_back(&k, listed[0]).samples_of >= 20);
    free(k.bytes);
}

/* A child that is stopped, and makes threads when it goes on. */
static pid_t start_thread_maker(int threads)
{
    pid_t pid = fork();

    if (pid == 0) {
        pthread_t thread;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        raise(SIGSTOP);
        for (int i = 0; i < threads; i++)
            if (pthread_create(&thread, NULL, spin_thread, NULL) != 0)
                _exit(1);
        spin();
    }
    assert_true(pid > 0);
    waitpid(pid, NULL, WUNTRACED);
    return pid;
}

/* Threads that no poll has seen yet are covered by their maker's events. */
static void a_refresh_covers_no_thread_twice(void **state)
{
    static const unsigned when[] = {0, RECORD_ATTACH_DISABLED};
    struct timespec moment = {.tv_nsec = 100000000};
    struct record_options o;

    (void)state;
    for (size_t i = 0; i < sizeof when / sizeof when[0]; i++) {
        struct sink k = {0};
        struct record_session *s;
        pid_t pid = start_thread_maker(2);
        size_t events;

        record_options_init(&o, sizeof o);
        s = open_session(&k, &o);
        attach(s, pid, when[i]);
        events = open_events();
        assert_true(events > 0);
        kill(pid, SIGCONT);
        nanosleep(&moment, NULL);
        assert_int_equal(record_session_refresh_threads(s, pid), 0);
        assert_int_equal(record_session_attach(s, pid, RECORD_ATTACH_DESCENDANTS), 0);
        assert_int_equal(open_events(), events);
        record_session_free(s);
        end_spinner(pid);
        free(k.bytes);
    }
}

static void a_process_whose_first_thread_has_ended_can_be_attached(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    struct timespec moment = {.tv_nsec = 200000000};
    pthread_t thread;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, spin_thread, NULL) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    nanosleep(&moment, NULL);
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, pid, 0);
    poll_samples(s, 20);
    assert_int_equal(record_session_process_count(s, 0), 1);
    assert_int_equal(record_session_finish(s), 0);
    record_session_free(s);
    end_spinner(pid);
    assert_true(read_back(&k, pid).modules_of > 1);
    free(k.bytes);
}

static void one_attached_switched_off_stays_off_when_another_is_added(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    pid_t off = start_spinner(), on = start_spinner();
    uint64_t samples_off;

    (void)state;
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    attach(s, off, RECORD_ATTACH_DISABLED);
    attach(s, on, 0);
    poll_samples(s, 50);
    assert_int_equal(record_session_flush(s), 0);
    samples_off = read_back(&k, off).samples_of;
    assert_int_equal(samples_off, 0);
    assert_int_equal(record_session_enable(s), 0);
    poll_samples(s, 300);
    assert_int_equal(record_session_finish(s), 0);
    record_session_free(s);
    assert_true(read_back(&k, off).samples_of > 20);
    end_spinner(off);
    end_spinner(on);
    free(k.bytes);
}

/* The session's own process cannot be stopped while attaching; the thread that polls is not sampled into a stop. */
static void a_program_may_record_itself(void **state)
{
    struct record_options o;
    struct sink k = {0};
    struct record_session *s;
    pthread_t thread;
    pid_t child = fork();
    int status;

    (void)state;
    if (child != 0) { /* in a process of its own: threads that spin do not come back */
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
            print_message("recording is refused here\n");
            skip();
        }
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return;
    }
    record_options_init(&o, sizeof o);
    s = open_session(&k, &o);
    if (pthread_create(&thread, NULL, spin_thread, NULL) != 0)
        _exit(1);
    switch (record_session_attach(s, getpid(), 0)) {
    case 0:
        break;
    case RECORD_ERR_PERMISSION:
    case RECORD_ERR_UNSUPPORTED:
        _exit(77);
    default:
        _exit(2);
    }
    poll_samples(s, 100);
    if (record_session_finish(s) != 0 || read_back(&k, getpid()).samples < 100)
        _exit(3);
    _exit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_in_the_wrong_order_are_refused),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_frequency_above_the_limit_carries_both_numbers),
        cmocka_unit_test(the_header_says_what_was_asked_for),
        cmocka_unit_test(a_stack_size_above_the_kernels_is_clamped_and_said_so),
        cmocka_unit_test(a_running_process_is_sampled_at_the_rate_asked_for),
        cmocka_unit_test(nothing_is_sampled_while_switched_off),
        cmocka_unit_test(processes_may_be_added_and_may_end),
        cmocka_unit_test(a_thread_is_no_process),
        cmocka_unit_test(a_process_made_while_switched_off_is_sampled),
        cmocka_unit_test(descendants_made_while_attaching_are_sampled_once),
        cmocka_unit_test(processes_that_cannot_be_stopped_are_waited_for_together),
        cmocka_unit_test(a_signal_that_ends_programs_ends_attaching),
        cmocka_unit_test(a_recorder_ended_while_attaching_leaves_nobody_stopped),
        cmocka_unit_test(a_disk_that_fills_ends_the_recording_once),
        cmocka_unit_test(a_command_is_sampled_from_its_exec_on),
        cmocka_unit_test(a_child_that_outlives_its_parent_is_a_target_at_once),
        cmocka_unit_test(a_refresh_covers_no_thread_twice),
        cmocka_unit_test(one_attached_switched_off_stays_off_when_another_is_added),
        cmocka_unit_test(a_process_whose_first_thread_has_ended_can_be_attached),
        cmocka_unit_test(a_program_may_record_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
