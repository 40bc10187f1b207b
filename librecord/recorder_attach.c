/* SPDX-License-Identifier: MIT */
/*
 * How processes become targets: stopped while their threads and mappings are read, commands before their exec,
 * and threads that appeared later.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_limits.h"
#include "procfs.h"
#include "session.h"

#define STOP_TIMEOUT_MS 1000
/* Passes over /proc/PID/task until two agree; a process that makes threads faster is left to FORK records. */
#define THREAD_PASSES 20

static int no_process(struct record_session *s, pid_t pid)
{
    return recordint_error_set(&s->error, RECORD_ERR_NO_PROCESS, ESRCH, "process %d does not exist",
                               (int)pid);
}

/* Takes in the threads that /proc lists. Returns how many were not known, or an error. */
static int list_threads(struct record_session *s, struct process *p)
{
    pid_t *tids = NULL;
    ssize_t count = recordint_procfs_threads(p->pid, &tids);
    int added = 0;

    if (count <= 0) {
        free(tids);
        return no_process(s, p->pid);
    }
    for (ssize_t i = 0; i < count; i++) {
        struct thread *known = recordint_idmap_get(&s->threads, (uint32_t)tids[i]);
        struct thread *t;

        if (known != NULL && known->process == p)
            continue;
        t = recordint_thread_get(s, p, tids[i]);
        if (t == NULL) {
            free(tids);
            return recordint_out_of_memory(s);
        }
        if (recordint_procfs_comm(p->pid, tids[i], t->name) != 0)
            t->name[0] = '\0';
        added++;
    }
    free(tids);
    return added;
}

/* Events for all threads, until two passes find no more. Returns the number covered, or an error. */
static int cover_threads(struct record_session *s, struct process *p)
{
    int covered = 0;

    for (int pass = 0; pass < THREAD_PASSES; pass++) {
        int rc = list_threads(s, p);

        if (rc < 0)
            return rc;
        if (rc == 0 && pass > 0)
            break;
        rc = recordint_attach_threads(s, p, false);
        if (rc < 0)
            return rc;
        covered += rc;
    }
    return covered;
}

/* What is known of a process when it becomes a target goes into the spool. */
static int describe(struct record_session *s, struct process *p)
{
    char *cmdline;
    bool added;
    int rc = recordint_note_session(s, p->pid);

    if (rc == 0)
        rc = recordint_process_read_maps(s, p, true, 0, &added);
    if (rc == 0 && recordint_procfs_comm(p->pid, 0, p->name) == 0)
        rc = recordint_note_comm(s, p);
    cmdline = rc == 0 ? malloc(4096) : NULL;
    if (cmdline != NULL && recordint_procfs_cmdline(p->pid, cmdline, 4096) == 0 &&
        cmdline[0] != '\0')
        rc = recordint_note_cmdline(s, p, cmdline);
    free(cmdline);
    for (struct thread *t = p->threads; rc == 0 && t != NULL; t = t->next)
        if (t->name[0] != '\0' && !t->noted)
            rc = recordint_note_thread(s, t);
    return rc;
}

static int begin(struct record_session *s)
{
    if (s->order != NULL)
        return 0;
    recordint_event_layout(&s->config, &s->layout);
    s->order = recordint_order_new(&s->layout);
    s->begun_ns = recordint_now_ns();
    s->round_ns = s->begun_ns;
    s->second_ns = s->begun_ns;
    return s->order == NULL ? recordint_out_of_memory(s) : 0;
}

static void say_kernel_refused(struct record_session *s)
{
    int64_t paranoid;

    if (recordint_limits_sysctl("perf_event_paranoid", &paranoid) && paranoid > 1)
        recordint_log(s, RECORD_LOG_WARNING,
                      "user frames only: kernel.perf_event_paranoid is %d and kernel frames need 1 "
                      "(sysctl kernel.perf_event_paranoid=1) or CAP_PERFMON",
                      (int)paranoid);
    else
        recordint_log(s, RECORD_LOG_WARNING, "user frames only: the kernel refuses its own frames");
}

/* The first event decides what all records look like. */
static int settle(struct record_session *s)
{
    struct perfrec_layout layout;

    recordint_event_layout(&s->config, &layout);
    if (s->config.kernel_refused && !s->any_mode_told) {
        s->any_mode_told = true;
        say_kernel_refused(s);
    }
    s->layout = layout;
    return 0;
}

/* Takes back what was begun for a process; the error stays. */
static void give_up(struct record_session *s, struct process *p)
{
    struct record_errbuf error = s->error;

    recordint_attach_forget(s, p);
    (void)recordint_process_end(s, p, recordint_now_ns());
    s->counts.processes--;
    s->error = error;
}

/* Processes to become targets; those before `next` had their turn. */
struct pid_list {
    pid_t *pids;
    size_t count, next;
};

/* The children that a process has before it hands events on to those it makes later. */
static int list_children(struct record_session *s, pid_t pid, struct pid_list *list)
{
    pid_t *pids, *grown;
    ssize_t count = recordint_procfs_children(pid, &pids);

    if (count <= 0)
        return count < 0 ? recordint_out_of_memory(s) : 0;
    grown = realloc(list->pids, (list->count + (size_t)count) * sizeof *grown);
    if (grown != NULL) {
        memcpy(grown + list->count, pids, (size_t)count * sizeof *grown);
        list->pids = grown;
        list->count += (size_t)count;
    }
    free(pids);
    return grown == NULL ? recordint_out_of_memory(s) : 0;
}

/* A signal that ends or stops us while a process is stopped would leave it so for good: signals of this thread wait. */
static void hold_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
    sigset_t held;

    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

/* A process that is attached, or not: what was begun for it goes away again. children: takes those it has, or NULL. */
static int attach_new(struct record_session *s, pid_t pid, unsigned flags,
                      struct pid_list *children)
{
    struct process *p = NULL;
    struct procfs_stat before, after;
    bool stopped = false, was_stopped = false;
    pid_t leader;
    int rc = 0, system;

    if (recordint_procfs_stat(pid, 0, &before) != 0 || before.state == 'Z')
        return no_process(s, pid);
    leader = recordint_procfs_process_of(pid); /* /proc knows threads by their ids, too */
    if (leader > 0 && leader != pid)
        return recordint_error_set(&s->error, RECORD_ERR_NO_PROCESS, 0,
                                   "%d is a thread of process %d, not a process", (int)pid,
                                   (int)leader);
    if ((flags & RECORD_ATTACH_NO_STOP) == 0 && pid != getpid()) {
        system = recordint_procfs_stop(pid, STOP_TIMEOUT_MS, &was_stopped);
        if (system == ESRCH)
            return no_process(s, pid);
        if (system == EPERM)
            return recordint_error_set(
                &s->error, RECORD_ERR_PERMISSION, EPERM,
                "process %d belongs to another user: record as that user, or as root "
                "(CAP_PERFMON, CAP_SYS_PTRACE and CAP_KILL)",
                (int)pid);
        if (system != 0)
            recordint_log(s, RECORD_LOG_WARNING,
                          "process %d cannot be stopped (%s): attaching while it runs", (int)pid,
                          strerror(system));
        stopped = system == 0;
    }
    p = recordint_process_new(s, pid);
    if (p == NULL)
        rc = recordint_out_of_memory(s);
    if (rc == 0 && children != NULL) {
        p->with_children = true;
        rc = list_children(s, pid, children);
    }
    if (rc == 0) {
        p->namespace_pid = recordint_procfs_namespace_pid(pid);
        s->threads_unsure = s->threads_unsure || !stopped;
        rc = cover_threads(s, p);
    }
    if (rc >= 0)
        rc = settle(s);
    if (rc >= 0 && !stopped &&
        (flags & RECORD_ATTACH_DISABLED) == 0) /* then nothing falls between */
        rc = recordint_attach_enable(s, true);
    if (rc >= 0)
        rc = describe(s, p);
    if (rc >= 0 &&
        (recordint_procfs_stat(pid, 0, &after) != 0 || after.start_ticks != before.start_ticks))
        rc = no_process(s, pid);
    if (rc >= 0 && stopped && (flags & RECORD_ATTACH_DISABLED) == 0)
        rc = recordint_attach_enable(s, true);
    if (rc < 0 && p != NULL && s->sticky == 0) {
        give_up(s, p);
    }
    if (stopped && !was_stopped)
        recordint_procfs_resume(pid);
    return rc < 0 ? rc : 0;
}

static int attach_process(struct record_session *s, pid_t pid, unsigned flags,
                          struct pid_list *children)
{
    struct process *p = recordint_process_find(s, pid);
    sigset_t mask;
    int rc = 0;

    if (p != NULL) {
        rc = children != NULL && !p->with_children ? list_children(s, pid, children) : 0;
        p->with_children = p->with_children || children != NULL;
        return rc < 0 ? rc : record_session_refresh_threads(s, pid);
    }
    hold_signals(&mask);
    rc = attach_new(s, pid, flags, children);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return rc;
}

/* A process, its children, theirs and so on. Those that end meanwhile are no error. Each is asked for its children while
 * it is stopped: one made later has the events of its maker, and would be counted twice with events of its own. */
static int attach_tree(struct record_session *s, pid_t pid, unsigned flags)
{
    struct pid_list list = {0};
    int rc = attach_process(s, pid, flags, &list);

    while (rc == 0 && list.next < list.count) {
        pid_t child = list.pids[list.next++];

        if (child == getpid() || recordint_process_find(s, child) != NULL)
            continue;
        rc = attach_process(s, child, flags, &list);
        if (rc == RECORD_ERR_NO_PROCESS)
            rc = 0;
    }
    free(list.pids);
    return rc;
}

int record_session_attach(struct record_session *s, pid_t pid, unsigned flags)
{
    int rc = recordint_ready(s);

    if (rc < 0)
        return rc;
    if (pid <= 0)
        return recordint_error_set(&s->error, RECORD_ERR_MISUSE, 0, "%d is no process id",
                                   (int)pid);
    rc = begin(s);
    if (rc == 0 && (flags & RECORD_ATTACH_DESCENDANTS) != 0)
        rc = attach_tree(s, pid, flags);
    else if (rc == 0)
        rc = attach_process(s, pid, flags, NULL);
    if (rc == 0 && (flags & RECORD_ATTACH_DISABLED) == 0)
        s->enabled = true;
    return rc;
}

int record_session_attach_command(struct record_session *s, struct record_command *c)
{
    pid_t pid = record_command_pid(c);
    struct process *p;
    int rc = recordint_ready(s);

    if (rc < 0)
        return rc;
    if (pid == 0 || recordint_process_find(s, pid) != NULL)
        return recordint_error_set(&s->error, RECORD_ERR_MISUSE, 0,
                                   "the command is not prepared, or attached already");
    rc = begin(s);
    if (rc < 0)
        return rc;
    p = recordint_process_new(s, pid);
    if (p == NULL || recordint_thread_get(s, p, pid) == NULL)
        return recordint_out_of_memory(s);
    p->before_exec = true;
    p->namespace_pid = recordint_procfs_namespace_pid(pid);
    rc = recordint_attach_threads(s, p, true);
    if (rc == 0)
        rc = no_process(s, pid);
    if (rc > 0)
        rc = settle(s);
    if (rc == 0)
        rc = recordint_note_session(s, pid);
    if (rc == 0 && s->options.cmdline != NULL)
        rc = recordint_note_cmdline(s, p, s->options.cmdline);
    if (rc < 0 && s->sticky == 0) {
        give_up(s, p);
        return rc;
    }
    s->enabled = true;
    return rc;
}

int record_session_refresh_threads(struct record_session *s, pid_t pid)
{
    struct process *p;
    int rc = recordint_ready(s);

    if (rc < 0)
        return rc;
    p = recordint_process_find(s, pid);
    if (p == NULL)
        return recordint_error_set(&s->error, RECORD_ERR_NO_PROCESS, 0, "process %d is no target",
                                   (int)pid);
    if (p->before_exec)
        return 0;
    s->threads_unsure = true;
    rc = cover_threads(s, p);
    if (rc > 0 && s->enabled) {
        int enabled = recordint_attach_enable(s, true);

        if (enabled < 0)
            return enabled;
    }
    return rc;
}

int record_session_enable(struct record_session *s)
{
    struct process *p;
    size_t at = 0;
    int rc = recordint_ready(s);

    /* Switched off events tell nothing, so what changed meanwhile is read; processes made meanwhile have events of
     * their makers and appear with their first sample. */
    if (rc == 0 && !s->enabled)
        s->threads_unsure = true;
    while (rc == 0 && !s->enabled && (p = recordint_idmap_next(&s->processes, &at)) != NULL)
        p->rescan_due = !p->before_exec;
    if (rc == 0 && !s->enabled && s->order != NULL)
        rc = recordint_recover(s);
    if (rc == 0)
        rc = recordint_attach_enable(s, true);
    if (rc == 0)
        s->enabled = true;
    return rc;
}

int record_session_disable(struct record_session *s)
{
    int rc = recordint_ready(s);

    if (rc == 0)
        rc = recordint_attach_enable(s, false);
    if (rc == 0) {
        s->enabled = false;
        s->threads_unsure = true;
    }
    return rc;
}
