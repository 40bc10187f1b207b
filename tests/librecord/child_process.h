/* SPDX-License-Identifier: MIT */
/* Processes for tests to look at, stop and kill. They end with the test program, also when it fails. */
#ifndef CHILD_PROCESS_H
#define CHILD_PROCESS_H

#include "procfs.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENOUGH_MS 60000 /* never waited for when all is well, however busy the machine */

/* What a child does: says that it is ready, and goes on. */
typedef void child_fn(int ready_fd);

static inline void say_ready(int ready_fd)
{
    if (write(ready_fd, "", 1) != 1)
        _exit(99);
}

static inline pid_t start_child(child_fn *run)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ready[0]);
        run(ready[1]);
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static inline int reap_child(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static inline void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    reap_child(pid);
}

static inline void sleeps(int ready_fd)
{
    say_ready(ready_fd);
    for (;;)
        pause();
}

static inline void ends(int ready_fd)
{
    say_ready(ready_fd);
}

/* The id of a process that is no more; nobody else has it as long as ids are not used up. */
static inline pid_t gone_process(void)
{
    pid_t pid = start_child(ends);
    reap_child(pid);
    return pid;
}

static inline pid_t start_zombie(void)
{
    siginfo_t info;
    pid_t pid = start_child(ends);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    return pid;
}

static inline char state_of(pid_t pid, pid_t tid)
{
    struct procfs_stat stat;
    return recordint_procfs_stat(pid, tid, &stat) == 0 ? stat.state : '-';
}

static inline void wait_for_state(pid_t pid, pid_t tid, char state)
{
    while (state_of(pid, tid) != state)
        sched_yield();
}

/* Runs a test's question as a user who may nothing, and returns its answer; also when we are such a user. */
static inline int ask_as_nobody(int (*question)(pid_t), pid_t pid)
{
    pid_t asker = fork();
    assert_true(asker >= 0);
    if (asker == 0) {
        if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(99);
        _exit(question(pid));
    }
    int status = reap_child(asker);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A process of another user than nobody. */
static inline pid_t strangers_process(void)
{
    return getuid() == 0 ? start_child(sleeps) : 1;
}

static inline void end_strangers_process(pid_t pid)
{
    if (pid != 1)
        end_child(pid);
}

#endif
