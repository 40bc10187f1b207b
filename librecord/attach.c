/* SPDX-License-Identifier: MIT */
/*
 * Which events cover a process: one for each thread and CPU, handed on to what the thread creates; where
 * descriptors are short, one a thread with a ring of its own, and where they do not suffice for that either, one
 * a CPU for all processes, if that is permitted. All events of a CPU write into that CPU's ring, which belongs to an event that never ends.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_limits.h"
#include "session.h"

/* Descriptors left for everything that is not an event. */
#define FILES_RESERVED 24
/* Rings of single threads, while there is memory for them. */
#define THREAD_RING_SIZE ((size_t)1 << 20)
/* One sample has room in it. */
#define RING_SIZE_MIN ((size_t)64 << 10)
#define RING_SIZE_GOOD ((size_t)1 << 20)
#define RING_SIZE_MAX ((size_t)1 << 30)

/* ---- counters ---- */

static int add_counter(struct record_session *s, const struct counter *c)
{
    if (s->counter_count == s->counter_capacity) {
        size_t capacity = s->counter_capacity == 0 ? 64 : 2 * s->counter_capacity;
        struct counter *grown = realloc(s->counters, capacity * sizeof *grown);

        if (grown == NULL)
            return recordint_out_of_memory(s);
        s->counters = grown;
        s->counter_capacity = capacity;
    }
    s->counters[s->counter_count++] = *c;
    return 0;
}

static void close_counter(struct record_session *s, struct counter *c)
{
    uint64_t lost;

    if (recordint_event_lost(c->fd, &lost))
        s->lost_closed += lost;
    if (c->ring != NULL) {
        recordint_order_remove(s->order, c->ring);
        recordint_ring_unmap(c->ring);
        free(c->ring);
    }
    close(c->fd);
}

/* Closes all counters from index on: what a failed attach has opened. */
static void close_from(struct record_session *s, size_t index)
{
    while (s->counter_count > index)
        close_counter(s, &s->counters[--s->counter_count]);
}

/* ---- rings of CPUs ---- */

static void free_cpus(struct record_session *s)
{
    for (size_t i = 0; i < s->cpu_count; i++) {
        if (s->cpus[i].ring.control != NULL) {
            recordint_order_remove(s->order, &s->cpus[i].ring);
            recordint_ring_unmap(&s->cpus[i].ring);
        }
        if (s->cpus[i].fd >= 0)
            close(s->cpus[i].fd);
    }
    free(s->cpus);
    s->cpus = NULL;
    s->cpu_count = 0;
}

static int small_ring(struct record_session *s, size_t ring_size)
{
    return recordint_error_set(
        &s->error, RECORD_ERR_PERMISSION, EPERM,
        "ring buffers of %zu KiB a CPU cannot be mapped: no more memory may be "
        "locked; raise kernel.perf_event_mlock_kb (sysctl) or "
        "RLIMIT_MEMLOCK (ulimit -l), or run as root or with CAP_IPC_LOCK",
        ring_size / 1024);
}

/* Returns 0, RECORD_ERR_PERMISSION also for a ring smaller than asked for, or another error. */
static int open_cpu(struct record_session *s, struct cpu_ring *c, size_t ring_size)
{
    int rc = recordint_event_open_owner(c->cpu, ring_size, &s->error);

    if (rc < 0)
        return rc;
    c->fd = rc;
    rc = recordint_event_map(c->fd, ring_size, &c->ring, &s->error);
    if (rc < 0)
        return rc;
    if (recordint_order_add(s->order, &c->ring) < 0)
        return recordint_out_of_memory(s);
    return c->ring.size < ring_size ? small_ring(s, ring_size) : 0;
}

/* A ring of one size for each CPU, or none. A CPU that goes offline meanwhile is left out. */
static int open_cpus_of(struct record_session *s, const int *cpus, size_t count, size_t ring_size)
{
    int rc = 0;

    s->cpus = calloc(count, sizeof *s->cpus);
    if (s->cpus == NULL)
        return recordint_out_of_memory(s);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct cpu_ring *c = &s->cpus[s->cpu_count++];

        *c = (struct cpu_ring){.cpu = cpus[i], .fd = -1};
        rc = open_cpu(s, c, ring_size);
        if (rc == RECORD_ERR_NO_PROCESS) {
            s->cpu_count--;
            rc = 0;
        }
    }
    if (rc == 0 && s->cpu_count == 0)
        rc = recordint_error_set(&s->error, RECORD_ERR_UNSUPPORTED, 0, "no CPU is online");
    if (rc < 0)
        free_cpus(s);
    return rc;
}

static size_t round_up_to_power(size_t size)
{
    size_t power = (size_t)sysconf(_SC_PAGESIZE);

    while (power < size && power < RING_SIZE_MAX)
        power *= 2;
    return power;
}

/* Rings for all CPUs, smaller ones when the memory that may be locked does not do: all of the same size, since the
 * first would else leave nothing to the last. */
static int open_cpus(struct record_session *s)
{
    size_t asked = s->options.ring_size_bytes, ring_size;
    int *cpus;
    size_t count = recordint_limits_online_cpus(&cpus);
    int rc;

    if (count == 0)
        return recordint_out_of_memory(s);
    if (asked == 0)
        asked = recordint_limits_ring_size(s->options.frequency_hz, s->options.stack_size_bytes);
    asked = round_up_to_power(asked);
    ring_size = asked;
    while ((rc = open_cpus_of(s, cpus, count, ring_size)) == RECORD_ERR_PERMISSION &&
           ring_size > RING_SIZE_MIN)
        ring_size /= 2;
    free(cpus);
    if (rc < 0)
        return rc;
    s->counts.ring_size_bytes = ring_size;
    if (ring_size < asked)
        /* As much as that is hardly ever needed; who asked for more is told. */
        recordint_log(
            s,
            s->options.ring_size_bytes == 0 && ring_size >= RING_SIZE_GOOD ? RECORD_LOG_DEBUG
                                                                           : RECORD_LOG_WARNING,
            "ring buffers of %zu KiB a CPU instead of %zu KiB: no more memory may be locked "
            "(sysctl kernel.perf_event_mlock_kb, ulimit -l)",
            ring_size / 1024, asked / 1024);
    return 0;
}

/* ---- modes ---- */

static struct event_where where_is(struct record_session *s, pid_t tid, int cpu, bool on_exec)
{
    return (struct event_where){
        .tid = tid,
        .cpu = cpu,
        .inherit = s->options.no_inherit ? EVENT_INHERIT_THREADS : EVENT_INHERIT_ALL,
        .disabled = true,
        .enable_on_exec = on_exec,
        .ring_size_bytes = s->counts.ring_size_bytes,
    };
}

/* Opens an event whose records go to a CPU's ring. Returns 1, 0 when thread or CPU are gone, or an error. */
static int open_on_cpu(struct record_session *s, const struct event_where *where,
                       const struct cpu_ring *c)
{
    struct counter counter = {.tid = where->tid, .on_exec = where->enable_on_exec};
    int rc = recordint_event_open(&s->config, where, &s->error);

    if (rc == RECORD_ERR_NO_PROCESS)
        return 0;
    if (rc < 0)
        return rc;
    counter.fd = rc;
    rc = recordint_event_redirect(counter.fd, c->fd, &s->error);
    if (rc == 0)
        rc = add_counter(s, &counter);
    if (rc < 0) {
        close(counter.fd);
        return rc;
    }
    return 1;
}

/* An event for each CPU. Returns how many CPUs have one (0: the thread is gone), or an error. */
static int cover_inherit(struct record_session *s, pid_t tid, bool on_exec)
{
    int opened = 0;

    for (size_t i = 0; i < s->cpu_count; i++) {
        struct event_where where = where_is(s, tid, s->cpus[i].cpu, on_exec);
        int rc = open_on_cpu(s, &where, &s->cpus[i]);

        if (rc < 0)
            return rc;
        opened += rc;
    }
    return opened;
}

static int cover_alone(struct record_session *s, pid_t tid, size_t ring_size)
{
    struct event_where where = where_is(s, tid, -1, false);
    struct counter counter = {.tid = tid};
    int rc;

    where.inherit = EVENT_INHERIT_NONE;
    where.ring_size_bytes = ring_size;
    rc = recordint_event_open(&s->config, &where, &s->error);
    if (rc == RECORD_ERR_NO_PROCESS)
        return 0;
    if (rc < 0)
        return rc;
    counter.fd = rc;
    counter.ring = calloc(1, sizeof *counter.ring);
    if (counter.ring == NULL) {
        close(counter.fd);
        return recordint_out_of_memory(s);
    }
    rc = recordint_event_map(counter.fd, ring_size, counter.ring, &s->error);
    if (rc == 0 && counter.ring->size < ring_size)
        rc = small_ring(s, ring_size); /* so that the next one gets as much */
    if (rc == 0 && recordint_order_add(s->order, counter.ring) < 0)
        rc = recordint_out_of_memory(s);
    if (rc == 0) {
        rc = add_counter(s, &counter);
        if (rc == 0)
            return 1;
        recordint_order_remove(s->order, counter.ring);
    }
    recordint_ring_unmap(counter.ring);
    free(counter.ring);
    close(counter.fd);
    return rc;
}

static int cover_system(struct record_session *s)
{
    for (size_t i = 0; i < s->counter_count; i++)
        if (s->counters[i].tid == -1)
            return 0; /* is on already */
    for (size_t i = 0; i < s->cpu_count; i++) {
        struct event_where where = where_is(s, -1, s->cpus[i].cpu, false);
        int rc;

        where.inherit = EVENT_INHERIT_NONE;
        rc = open_on_cpu(s, &where, &s->cpus[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool descriptors_are_short(const struct record_session *s)
{
    return s->error.code == RECORD_ERR_LIMIT &&
           (s->error.system == EMFILE || s->error.system == ENFILE);
}

/* Covers the uncovered threads of a process in one mode. Returns their number or an error; on an error nothing
 * of it stays. */
static int cover(struct record_session *s, struct process *p, enum record_mode mode, bool on_exec,
                 size_t ring_size)
{
    size_t before = s->counter_count;
    int covered = 0;
    int rc = mode == RECORD_MODE_SYSTEM_WIDE ? cover_system(s) : 0;

    for (struct thread *t = p->threads; rc >= 0 && t != NULL; t = t->next) {
        if (t->covered)
            continue;
        if (mode == RECORD_MODE_INHERIT)
            rc = cover_inherit(s, t->tid, on_exec);
        else if (mode == RECORD_MODE_PER_THREAD)
            rc = cover_alone(s, t->tid, ring_size);
        covered += rc > 0 || mode == RECORD_MODE_SYSTEM_WIDE; /* else it has ended */
    }
    if (rc < 0) {
        close_from(s, before);
        return rc;
    }
    for (struct thread *t = p->threads; t != NULL; t = t->next)
        t->covered = true;
    p->mode = mode;
    if (mode > s->counts.mode)
        s->counts.mode = mode;
    return covered;
}

/* An event a thread: the rings of CPUs, if no event uses them, give their memory to the threads'. */
static int cover_alone_all(struct record_session *s, struct process *p)
{
    size_t ring_size = s->thread_ring_size != 0 ? s->thread_ring_size : THREAD_RING_SIZE;
    int rc;

    if (s->counts.mode == RECORD_MODE_NONE)
        free_cpus(s);
    while ((rc = cover(s, p, RECORD_MODE_PER_THREAD, false, ring_size)) == RECORD_ERR_PERMISSION &&
           s->error.system == EPERM && ring_size > RING_SIZE_MIN)
        ring_size /= 2;
    if (rc < 0)
        return rc;
    s->thread_ring_size = ring_size;
    if (s->cpus == NULL)
        s->counts.ring_size_bytes = ring_size;
    return rc;
}

static int cover_system_wide(struct record_session *s, struct process *p)
{
    int rc = s->cpus == NULL ? open_cpus(s) : 0;

    return rc < 0 ? rc : cover(s, p, RECORD_MODE_SYSTEM_WIDE, false, 0);
}

static size_t uncovered(const struct process *p)
{
    size_t n = 0;

    for (const struct thread *t = p->threads; t != NULL; t = t->next)
        n += !t->covered;
    return n;
}

static void say_mode(struct record_session *s, const struct process *p, size_t threads, size_t cpus)
{
    recordint_log(s, RECORD_LOG_WARNING,
                  "%zu threads of process %d on %zu CPUs need more than the %llu file descriptors "
                  "that are allowed: recording in mode %s; ulimit -n raises the limit",
                  threads, (int)p->pid, cpus, (unsigned long long)s->files_limit,
                  record_mode_name(p->mode));
}

/* Too few descriptors for an event a thread and CPU: an event a thread, or one a CPU. If neither can be
 * had, the error is that of the threads: what it asks for is easier to get. */
static int step_down(struct record_session *s, struct process *p, size_t threads, size_t used)
{
    struct record_errbuf first = s->error;
    size_t cpus = s->cpu_count;
    int rc = first.code;

    if (threads + used - cpus <= s->files_limit) {
        rc = cover_alone_all(s, p);
        if (rc < 0)
            first = s->error;
    }
    if (rc < 0)
        rc = cover_system_wide(s, p);
    if (rc < 0) {
        s->error = first;
        return first.code;
    }
    say_mode(s, p, threads, cpus);
    return rc;
}

static int attach_threads(struct record_session *s, struct process *p, bool on_exec)
{
    size_t threads = uncovered(p), used;
    int rc;

    if (p->mode == RECORD_MODE_PER_THREAD)
        return cover_alone_all(s, p);
    rc = s->cpus == NULL ? open_cpus(s) : 0;
    if (rc < 0)
        return rc;
    if (p->mode == RECORD_MODE_SYSTEM_WIDE || s->counts.mode == RECORD_MODE_SYSTEM_WIDE)
        return cover_system_wide(s, p);
    used = s->counter_count + s->cpu_count + FILES_RESERVED;
    rc = recordint_error_set(&s->error, RECORD_ERR_LIMIT, EMFILE,
                             "%zu threads on %zu CPUs need more than the %llu file descriptors "
                             "that are allowed; raise the "
                             "hard limit (ulimit -n, RLIMIT_NOFILE)",
                             threads, s->cpu_count, (unsigned long long)s->files_limit);
    if (on_exec || threads <= (s->files_limit > used ? s->files_limit - used : 0) / s->cpu_count)
        rc = cover(s, p, RECORD_MODE_INHERIT, on_exec, 0);
    if (rc >= 0 || !descriptors_are_short(s) || on_exec)
        return rc;
    return step_down(s, p, threads, used);
}

int recordint_attach_threads(struct record_session *s, struct process *p, bool on_exec)
{
    int rc = attach_threads(s, p, on_exec);

    /* The kernel lowers its limit while it runs, when sampling takes too long. */
    if (rc == RECORD_ERR_LIMIT && s->error.system == EINVAL &&
        record_max_sample_rate(&s->limit_hz)) {
        s->frequency_refused = true;
        s->refused_hz = s->options.frequency_hz;
    }
    return rc;
}

/* Switches events from index first on; all of them, also when one cannot be. */
static int switch_from(struct record_session *s, size_t first, bool on)
{
    int failed = 0;

    for (size_t i = first; i < s->counter_count; i++) {
        int system;

        if (s->counters[i].on_exec && on)
            continue; /* starts by itself, and not before */
        system = on ? recordint_event_enable(s->counters[i].fd)
                    : recordint_event_disable(s->counters[i].fd);
        if (system != 0)
            failed = system;
    }
    return failed == 0 ? 0
                       : recordint_error_set(&s->error, RECORD_ERR_UNSUPPORTED, failed,
                                             "sampling cannot be switched %s: %s",
                                             on ? "on" : "off", strerror(failed));
}

int recordint_attach_enable(struct record_session *s, bool on)
{
    return switch_from(s, 0, on);
}

int recordint_attach_start(struct record_session *s, size_t first)
{
    return switch_from(s, first, true);
}

void recordint_attach_forget(struct record_session *s, const struct process *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->counter_count; i++) {
        const struct thread *t = recordint_idmap_get(&s->threads, (uint32_t)s->counters[i].tid);

        if (t != NULL && t->process == p)
            close_counter(s, &s->counters[i]);
        else
            s->counters[kept++] = s->counters[i];
    }
    s->counter_count = kept;
}

void recordint_attach_sweep(struct record_session *s)
{
    bool held = recordint_order_held_bytes(s->order) > 0; /* records out of some ring */
    size_t kept = 0;

    for (size_t i = 0; i < s->counter_count; i++) {
        struct counter *c = &s->counters[i];
        struct pollfd p = {.fd = c->fd, .events = POLLIN};

        /* POLLHUP: its thread and all that inherited it are gone. What they left in a ring is read first. */
        if (c->tid > 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLHUP) != 0 &&
            (c->ring == NULL || (!held && recordint_ring_unread(c->ring) == 0)))
            close_counter(s, c);
        else
            s->counters[kept++] = *c;
    }
    s->counter_count = kept;
}

void recordint_attach_close_all(struct record_session *s)
{
    close_from(s, 0);
    free(s->counters);
    s->counters = NULL;
    s->counter_capacity = 0;
    free_cpus(s);
}

uint64_t recordint_attach_lost(struct record_session *s)
{
    uint64_t by_events = s->lost_closed, lost;

    for (size_t i = 0; i < s->counter_count; i++)
        if (recordint_event_lost(s->counters[i].fd, &lost))
            by_events += lost;
    s->counts.lost_samples = by_events + s->lost_before_ring;
    /* Both count records of any kind: LOST as far as there was room for it, the events whatever happens. */
    return (by_events > s->lost_in_records ? by_events : s->lost_in_records) + s->lost_before_ring;
}
