/* SPDX-License-Identifier: MIT */
/*
 * Stopping a process so that its threads and mappings hold still, and letting it go on.
 */
#include "procfs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MIN_NS 50000 /* a few idle threads are stopped after this */
#define PAUSE_MAX_NS 2000000

/* The threads of a process that have not ended, if all are stopped. */
struct look {
    bool stopped;
    pid_t *tids;
    size_t count;
};

static int gone_is_esrch(int error)
{
    return error == ENOENT ? ESRCH : error;
}

/* Looks until the first thread that is not stopped. look->tids is the caller's to free, also after an error. */
static int look_at(pid_t pid, struct look *look)
{
    *look = (struct look){.stopped = true};
    ssize_t count = recordint_procfs_threads(pid, &look->tids);
    if (count < 0) {
        look->tids = NULL;
        return gone_is_esrch(errno);
    }
    for (ssize_t i = 0; i < count && look->stopped; i++) {
        struct procfs_stat stat;
        int rc = gone_is_esrch(recordint_procfs_stat(pid, look->tids[i], &stat));
        if (rc == ESRCH || (rc == 0 && strchr("ZXx", stat.state) != NULL))
            continue;
        if (rc != 0)
            return rc;
        look->stopped = stat.state == 'T' || stat.state == 't';
        look->tids[look->count++] = look->tids[i];
    }
    return look->count > 0 ? 0 : ESRCH;
}

/* Whether all threads are stopped. Until the last one is, they may create others, and a list that is read
 * meanwhile may lack them: only a second look that finds the same threads says so. */
static int is_stopped(pid_t pid, bool *stopped)
{
    struct look first = {0};
    struct look second = {0};
    int rc = look_at(pid, &first);
    if (rc == 0 && first.stopped)
        rc = look_at(pid, &second);
    size_t bytes = first.count * sizeof(*first.tids);
    /* Where rc is 0, either look has found threads. */
    *stopped = rc == 0 && first.stopped && second.stopped && first.count == second.count &&
               memcmp(first.tids, second.tids, bytes) == 0; /* NOLINT(analyzer-null-argument) */
    free(first.tids);
    free(second.tids);
    return rc;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* After SIGSTOP. A thread in uninterruptible sleep (the kernel's, or a parent in vfork) does not stop before
 * it wakes, which may be never. */
static int wait_until_stopped(pid_t pid, int timeout_ms)
{
    int64_t deadline_ns = now_ns() + (int64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;
    int64_t pause_ns = PAUSE_MIN_NS;
    for (;;) {
        bool stopped;
        int rc = is_stopped(pid, &stopped);
        if (rc != 0 || stopped)
            return rc;
        int64_t left_ns = deadline_ns - now_ns();
        if (left_ns <= 0)
            return ETIMEDOUT;
        int64_t sleep_ns = pause_ns < left_ns ? pause_ns : left_ns;
        nanosleep(&(struct timespec){.tv_nsec = (long)sleep_ns}, NULL);
        pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
    }
}

int recordint_procfs_stop(pid_t pid, int timeout_ms, bool *was_stopped)
{
    *was_stopped = false;
    if (pid <= 0) /* kill() takes them for groups */
        return ESRCH;
    if (recordint_procfs_process_of(pid) == getpid())
        return EINVAL; /* nobody would resume us */
    if (kill(pid, 0) != 0)
        return errno;
    int rc = is_stopped(pid, was_stopped);
    if (rc != 0 || *was_stopped)
        return rc;
    if (kill(pid, SIGSTOP) != 0)
        return errno;
    rc = wait_until_stopped(pid, timeout_ms);
    if (rc != 0)
        recordint_procfs_resume(pid);
    return rc;
}

void recordint_procfs_resume(pid_t pid)
{
    if (pid > 0)
        kill(pid, SIGCONT);
}
