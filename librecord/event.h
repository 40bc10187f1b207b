/* SPDX-License-Identifier: MIT */
/*
 * perf_event_open: the attributes of our events, the fallbacks where a kernel, machine or permission has not
 * what was asked for, and the words in which a refusal is told.
 */
#ifndef RECORD_EVENT_H
#define RECORD_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "perfrec.h"
#include "record_error.h"
#include "ring.h"

/* What the session asked for and, once an event has been opened, what it got. */
struct event_config {
    uint32_t frequency_hz;
    uint32_t stack_size_bytes;
    bool auto_event;     /* cycles may become cpu-clock */
    bool cpu_clock;      /* the event in use (or asked for) */
    bool kernel;         /* turned off when it is not permitted */
    bool exclude_guest;  /* turned off when the kernel does not know it */
    bool kernel_refused; /* kernel frames were asked for and refused */
    bool settled;        /* an event was opened: nothing above changes any more */
};

enum event_inherit { EVENT_INHERIT_NONE, EVENT_INHERIT_THREADS, EVENT_INHERIT_ALL };

struct event_where {
    pid_t tid; /* thread; -1: all (cpu >= 0 then) */
    int cpu;   /* -1: any */
    enum event_inherit inherit;
    bool disabled;          /* starts switched off ... */
    bool enable_on_exec;    /* ... until the thread execs */
    size_t ring_size_bytes; /* wakeup at a quarter of it */
};

/* Opens a sampling event. Returns its descriptor (CLOEXEC), or a RECORD_ERR_* with its text in *error, which
 * names the thread. ERR_NO_PROCESS: the thread ended. ERR_LIMIT with error->system = EMFILE or ENFILE:
 * descriptors are used up; = EINVAL: the frequency is above the kernel's limit, which it may have lowered. Of what
 * config asks for nothing is changed by a refusal. */
int recordint_event_open(struct event_config *config, const struct event_where *where,
                         struct record_errbuf *error);

/* Opens the event that owns a CPU's ring and never ends: counts nothing, on this thread, on that CPU. cpu -1 is not
 * possible. Returns as above; an offline CPU is ERR_NO_PROCESS. */
int recordint_event_open_owner(int cpu, size_t ring_size_bytes, struct record_errbuf *error);

/* Maps a ring of size_bytes (a power of two, whole pages) on an event, halving down to 64 KiB when memory may not
 * be locked. Returns 0 with the size in use in r->size; RECORD_ERR_PERMISSION (names perf_event_mlock_kb and
 * RLIMIT_MEMLOCK with their values), RECORD_ERR_*. The kernel wakes at the watermark the event was opened with:
 * after halving, open it anew with r->size, or it wakes late. */
int recordint_event_map(int fd, size_t size_bytes, struct ring *r, struct record_errbuf *error);

/* Sends an event's records into the ring of another (same CPU). */
int recordint_event_redirect(int fd, int owner_fd, struct record_errbuf *error);

int recordint_event_enable(int fd); /* 0 or an errno value */
int recordint_event_disable(int fd);

/* LOST of read_format: records of this event that found no room. Returns false when it cannot be read. */
bool recordint_event_lost(int fd, uint64_t *lost);

void recordint_event_layout(const struct event_config *config, struct perfrec_layout *out);
const char *recordint_event_name(const struct event_config *config); /* "cycles", "cpu-clock" */

#endif
