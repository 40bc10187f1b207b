/* SPDX-License-Identifier: MIT */
/*
 * How processes become targets: stopped while their threads and mappings are read, commands before their exec,
 * and threads that appeared later.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_limits.h"
#include "procfs.h"
#include "session.h"

/* For all that do not stop together; when it is used up, each has a moment. */
#define STOP_TIMEOUT_MS 1000
#define STOP_MOMENT_MS 5
/* Passes over /proc/PID/task until two agree; a process that makes threads faster is left to FORK records. */
#define THREAD_PASSES 20

static int no_process(struct record_session *s, pid_t pid)
{
    return recordint_error_set(&s->error, RECORD_ERR_NO_PROCESS, ESRCH, "process %d does not exist",
                               (int)pid);
}

/* What /proc does not tell of a process: its threads, its state. */
static int not_told(struct record_session *s, pid_t pid, const char *what, int system)
{
    int code = system == EMFILE || system == ENFILE  ? RECORD_ERR_LIMIT
               : system == EACCES || system == EPERM ? RECORD_ERR_PERMISSION
                                                     : RECORD_ERR_UNSUPPORTED;

    if (system == ENOMEM)
        return recordint_out_of_memory(s);
    if (system == ENOENT || system == ESRCH)
        return no_process(s, pid);
    return recordint_error_set(&s->error, code, system, "the %s of process %d cannot be read: %s",
                               what, (int)pid, strerror(system));
}

/* Takes in threads of these ids. Returns how many were not known, or an error. */
static int add_threads(struct record_session *s, struct process *p, const pid_t *tids, size_t count)
{
    int added = 0;

    for (size_t i = 0; i < count; i++) {
        struct thread *known = recordint_idmap_get(&s->threads, (uint32_t)tids[i]);
        struct thread *t;

        if (known != NULL && known->process == p)
            continue;
        t = recordint_thread_get(s, p, tids[i]);
        if (t == NULL)
            return recordint_out_of_memory(s);
        if (recordint_procfs_comm(p->pid, tids[i], t->name) != 0)
            t->name[0] = '\0';
        added++;
    }
    return added;
}

/* Takes in the threads that /proc lists. Returns how many were not known, or an error. */
static int list_threads(struct record_session *s, struct process *p, bool again)
{
    pid_t pid = p->pid, *tids = NULL;
    ssize_t count = recordint_procfs_threads(pid, &tids);
    int rc = 0;

    if (count < 0)
        return not_told(s, pid, "threads", errno);
    /* A thread made by one that is covered has its events, and a record tells of it: it must have been read before
     * those listed can be called uncovered. While events are off there are no such records. */
    if (again && p->on)
        rc = recordint_catch_up(s);
    if (rc == 0 && recordint_process_find(s, pid) != p)
        rc = no_process(s, pid);
    if (rc == 0)
        rc = add_threads(s, p, tids, (size_t)count);
    free(tids);
    if (rc >= 0 && again && !p->on && p->mode != RECORD_MODE_PER_THREAD)
        for (struct thread *t = p->threads; t != NULL; t = t->next)
            t->covered = true;
    return rc;
}

/* Events for all threads, until two passes find no more. again: it is a target already. Returns the number covered,
 * or an error. */
static int cover_threads(struct record_session *s, struct process *p, bool again)
{
    int covered = 0;

    for (int pass = 0; pass < THREAD_PASSES; pass++) {
        int rc = list_threads(s, p, again);

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
    bool added;
    int rc = recordint_note_session(s, p->pid);

    if (rc == 0)
        rc = recordint_process_read_maps(s, p, true, 0, &added);
    if (rc == 0 && recordint_procfs_comm(p->pid, 0, p->name) == 0)
        rc = recordint_note_comm(s, p);
    if (rc == 0)
        rc = recordint_note_cmdline(s, p, NULL);
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
                      "user frames only: kernel.perf_event_paranoid is %d; 1 allows kernel frames "
                      "(sysctl kernel.perf_event_paranoid=1), or run as root or with CAP_PERFMON",
                      (int)paranoid);
    else
        recordint_log(s, RECORD_LOG_WARNING,
                      "user frames only: the kernel does not permit kernel frames");
}

/* The first event decides what all records look like. */
static void settle(struct record_session *s)
{
    recordint_event_layout(&s->config, &s->layout);
    if (s->config.kernel_refused && !s->kernel_refusal_told) {
        s->kernel_refusal_told = true;
        say_kernel_refused(s);
    }
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

/* ---- holding processes still ---- */

/* A process that is to become a target. */
struct held {
    pid_t pid;
    uint64_t start_ticks;
    bool stopped; /* holds still */
    bool resume;  /* by us */
};

struct held_list {
    struct held *items;
    size_t count, capacity;
    const sigset_t *signals; /* blocked by the caller */
    int left_ms;             /* of STOP_TIMEOUT_MS */
    size_t unstopped;        /* which run while we attach ... */
    pid_t unstopped_pid;     /* ... the first of them, and why */
    int unstopped_why;
};

static bool is_held(const struct held_list *list, pid_t pid)
{
    size_t i = 0;

    while (i < list->count && list->items[i].pid != pid)
        i++;
    return i < list->count;
}

static int add_held(struct record_session *s, struct held_list *list, const struct held *h)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 16 : 2 * list->capacity;
        struct held *grown = realloc(list->items, capacity * sizeof *grown);

        if (grown == NULL)
            return recordint_out_of_memory(s);
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = *h;
    return 0;
}

static int other_user(struct record_session *s, pid_t pid)
{
    return recordint_error_set(&s->error, RECORD_ERR_PERMISSION, EPERM,
                               "process %d belongs to another user: run as that user, as root, or "
                               "with CAP_PERFMON, CAP_KILL "
                               "and CAP_SYS_PTRACE",
                               (int)pid);
}

/* Threads of the kernel take no signals and make no user mappings or threads. */
static int accept_kernel_thread(struct record_session *s, pid_t pid)
{
    if (kill(pid, 0) != 0 && errno == EPERM)
        return other_user(s, pid);
    if (!s->kernel_threads_told && !s->options.kernel)
        recordint_log(s, RECORD_LOG_WARNING,
                      "process %d is a kernel thread: without kernel frames there are no samples "
                      "of kernel threads",
                      (int)pid);
    s->kernel_threads_told = true;
    return 0;
}

static int stop(struct record_session *s, struct held_list *list, struct held *h)
{
    bool was_stopped = false;
    uint64_t begun_ns = recordint_now_ns(), took_ms;
    int limit_ms = list->left_ms > STOP_MOMENT_MS ? list->left_ms : STOP_MOMENT_MS;
    int system = recordint_procfs_stop(h->pid, limit_ms, &was_stopped);

    if (system == ESRCH)
        return no_process(s, h->pid);
    if (system == EPERM)
        return other_user(s, h->pid);
    if (system == ENOMEM)
        return recordint_out_of_memory(s);
    if (system != 0) {
        took_ms = (recordint_now_ns() - begun_ns) / 1000000;
        list->left_ms -= took_ms < (uint64_t)list->left_ms ? (int)took_ms : list->left_ms;
        if (list->unstopped++ == 0) {
            list->unstopped_pid = h->pid;
            list->unstopped_why = system;
        }
    }
    h->stopped = system == 0;
    h->resume = h->stopped && !was_stopped;
    return 0;
}

static void tell_unstopped(struct record_session *s, const struct held_list *list)
{
    if (list->unstopped == 1)
        recordint_log(s, RECORD_LOG_WARNING,
                      "process %d cannot be stopped (%s): attaching while it runs",
                      (int)list->unstopped_pid, strerror(list->unstopped_why));
    else if (list->unstopped > 1)
        recordint_log(s, RECORD_LOG_WARNING,
                      "%zu processes cannot be stopped (process %d: %s): attaching while they run",
                      list->unstopped, (int)list->unstopped_pid, strerror(list->unstopped_why));
}

/* Whether a signal waits that ends programs, for many processes take their time. 0 or an error. */
static int check_signals(struct record_session *s, const struct held_list *list)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct sigaction action;
    sigset_t pending;

    if (sigpending(&pending) != 0)
        return 0;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        /* What is ignored waits, too, while it is blocked. */
        if (sigismember(&pending, ends[i]) == 1 && sigismember(list->signals, ends[i]) == 0 &&
            sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            return recordint_error_set(&s->error, RECORD_ERR_INTERRUPTED, EINTR,
                                       "interrupted while attaching (signal %d)", ends[i]);
    return 0;
}

static int hold(struct record_session *s, struct held_list *list, pid_t pid, unsigned flags)
{
    struct held h = {.pid = pid};
    struct procfs_stat stat;
    pid_t leader;
    int rc = 0;

    if (!record_process_exists(pid)) {
        leader = recordint_procfs_process_of(pid); /* /proc knows threads by their ids, too */
        if (leader > 0 && leader != pid)
            return recordint_error_set(&s->error, RECORD_ERR_NO_PROCESS, 0,
                                       "%d is a thread of process %d, not a process", (int)pid,
                                       (int)leader);
        return no_process(s, pid);
    }
    rc = recordint_procfs_stat(pid, 0, &stat);
    if (rc == ENOENT || rc == EACCES || rc == EPERM) /* /proc mounted with hidepid */
        return record_process_exists(pid) ? other_user(s, pid) : no_process(s, pid);
    if (rc != 0)
        return not_told(s, pid, "state", rc);
    h.start_ticks = stat.start_ticks;
    if (stat.kernel)
        rc = accept_kernel_thread(s, pid);
    else if ((flags & RECORD_ATTACH_NO_STOP) == 0 && pid != getpid())
        rc = stop(s, list, &h);
    if (rc == 0)
        rc = add_held(s, list, &h);
    if (rc < 0 && h.resume)
        recordint_procfs_resume(pid);
    return rc;
}

/* Descendants, until a look finds no new one: who is held makes none. All are held before the first gets events, which
 * its new children would inherit, and get a second time from us. Those that end meanwhile are no error. */
static int hold_descendants(struct record_session *s, struct held_list *list, pid_t pid,
                            unsigned flags)
{
    bool more = true;
    int rc = 0;

    while (rc == 0 && more) {
        pid_t *pids = NULL;
        ssize_t count = recordint_procfs_descendants(pid, &pids);

        if (count < 0)
            return recordint_out_of_memory(s);
        more = false;
        for (ssize_t i = 0; rc == 0 && i < count; i++) {
            if (pids[i] == getpid() || is_held(list, pids[i]))
                continue;
            rc = check_signals(s, list);
            if (rc == 0)
                rc = hold(s, list, pids[i], flags);
            more = more || (rc == 0 && (flags & RECORD_ATTACH_NO_STOP) == 0);
            if (rc == RECORD_ERR_NO_PROCESS)
                rc = 0;
        }
        free(pids);
    }
    return rc;
}

static void release(struct held_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].resume)
            recordint_procfs_resume(list->items[i].pid);
    free(list->items);
}

/* ---- attaching ---- */

/* Events, mappings and notes of a new target, in the order in which nothing falls between. */
static int begin_process(struct record_session *s, struct process *p, const struct held *h, bool on)
{
    size_t first = s->counter_count;
    struct procfs_stat after;
    int rc;

    s->threads_unsure = s->threads_unsure || !h->stopped;
    rc = cover_threads(s, p, false);
    if (rc < 0)
        return rc;
    settle(s);
    rc = on && !h->stopped ? recordint_attach_start(s, first) : 0;
    if (rc == 0)
        rc = describe(s, p);
    if (rc == 0) {
        int system = recordint_procfs_stat(p->pid, 0, &after);

        if (system == 0 && after.start_ticks != h->start_ticks)
            system = ESRCH;
        if (system != 0)
            rc = not_told(s, p->pid, "state", system);
    }
    if (rc == 0 && on && h->stopped)
        rc = recordint_attach_start(s, first);
    p->on = on;
    p->muted = !on;
    return rc;
}

/* A process that is a target already: what may have been missed. */
static int refresh(struct record_session *s, pid_t pid)
{
    struct process *p;
    bool added;
    int rc = record_session_refresh_threads(s, pid);

    p = recordint_process_find(s, pid);
    if (rc < 0 || p == NULL)
        return rc < 0 ? rc : no_process(s, pid);
    return recordint_process_read_maps(s, p, true, recordint_now_ns(), &added);
}

static int attach_held(struct record_session *s, const struct held *h, unsigned flags)
{
    struct process *p = recordint_process_find(s, h->pid);
    int rc;

    if (p != NULL)
        return refresh(s, h->pid);
    p = recordint_process_new(s, h->pid);
    if (p == NULL)
        return recordint_out_of_memory(s);
    rc = begin_process(s, p, h, (flags & RECORD_ATTACH_DISABLED) == 0);
    if (rc < 0 && s->sticky == 0)
        give_up(s, p);
    return rc;
}

/* The first of the list, and of the others those that have not ended meanwhile. */
static int attach_list(struct record_session *s, const struct held_list *list, unsigned flags)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < list->count; i++) {
        rc = check_signals(s, list);
        if (rc == 0)
            rc = attach_held(s, &list->items[i], flags);
        if (i > 0 && rc == RECORD_ERR_NO_PROCESS)
            rc = 0;
    }
    return rc;
}

/* A signal that ends or stops us while a process is held would leave it so for good: signals of this thread wait. */
static void hold_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
    sigset_t held;

    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

/* signals: those that were blocked before. */
static int attach_all(struct record_session *s, pid_t pid, unsigned flags, const sigset_t *signals)
{
    struct held_list list = {.signals = signals, .left_ms = STOP_TIMEOUT_MS};
    int rc = hold(s, &list, pid, flags);

    if (rc == 0 && (flags & RECORD_ATTACH_DESCENDANTS) != 0)
        rc = hold_descendants(s, &list, pid, flags);
    tell_unstopped(s, &list);
    /* Children of targets are targets, which a record says that may not have been read. */
    if (rc == 0)
        rc = recordint_catch_up(s);
    if (rc == 0)
        rc = attach_list(s, &list, flags);
    release(&list);
    return rc;
}

int record_session_attach(struct record_session *s, pid_t pid, unsigned flags)
{
    int rc = recordint_ready(s);
    sigset_t before;

    if (rc < 0)
        return rc;
    if (pid <= 0)
        return recordint_error_set(&s->error, RECORD_ERR_MISUSE, 0, "%d is no process id",
                                   (int)pid);
    rc = begin(s);
    if (rc < 0)
        return rc;
    hold_signals(&before);
    rc = attach_all(s, pid, flags, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
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
    p->on = true;
    rc = recordint_attach_threads(s, p, true);
    if (rc == 0)
        rc = no_process(s, pid);
    if (rc > 0) {
        settle(s);
        rc = recordint_note_session(s, pid);
    }
    if (rc == 0 && s->options.cmdline != NULL)
        rc = recordint_note_cmdline(s, p, s->options.cmdline);
    if (rc < 0 && s->sticky == 0) {
        give_up(s, p);
    }
    return rc;
}

int record_session_refresh_threads(struct record_session *s, pid_t pid)
{
    struct process *p;
    size_t first;
    int rc = recordint_ready(s);

    if (rc < 0)
        return rc;
    p = recordint_process_find(s, pid);
    if (p == NULL)
        return recordint_error_set(&s->error, RECORD_ERR_NO_PROCESS, 0,
                                   "process %d is not being recorded", (int)pid);
    if (p->before_exec)
        return 0;
    s->threads_unsure = true;
    first = s->counter_count;
    rc = cover_threads(s, p, true);
    if (rc > 0 && p->on) {
        int started = recordint_attach_start(s, first);

        rc = started < 0 ? started : rc;
    }
    return rc;
}

int record_session_enable(struct record_session *s)
{
    struct process *p;
    size_t at = 0;
    int rc = recordint_ready(s);

    if (rc == 0)
        rc = recordint_attach_enable(s, true);
    if (rc < 0)
        return rc;
    /* Switched off events tell nothing, so what changed meanwhile is read: now, that nothing is missed any more. */
    while ((p = recordint_idmap_next(&s->processes, &at)) != NULL) {
        if (p->on)
            continue;
        p->on = true;
        p->muted = false;
        if (p->before_exec)
            continue;
        p->rescan_due = true;
        s->threads_unsure = true; /* children have been made, perhaps */
    }
    return recordint_recover(s);
}

int record_session_disable(struct record_session *s)
{
    struct process *p;
    size_t at = 0;
    int rc = recordint_ready(s);

    if (rc == 0)
        rc = recordint_attach_enable(s, false);
    while (rc == 0 && (p = recordint_idmap_next(&s->processes, &at)) != NULL)
        p->on = false;
    s->threads_unsure = s->threads_unsure || rc == 0;
    return rc;
}
