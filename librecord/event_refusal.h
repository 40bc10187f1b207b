/* SPDX-License-Identifier: MIT */
/*
 * What to do when the kernel refuses an event: try another one, or tell why and what would help. Pure
 * functions of an errno value and of facts that were looked up, so that tests need no such kernel.
 */
#ifndef RECORD_EVENT_REFUSAL_H
#define RECORD_EVENT_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "event.h"
#include "record_error.h"

/* What one call of perf_event_open asks for, as far as fallbacks change it. */
struct event_attempt {
    bool cpu_clock;
    bool kernel;
    bool exclude_guest;
};

enum event_owner { EVENT_OWNER_UNKNOWN, EVENT_OWNER_US, EVENT_OWNER_OTHER, EVENT_OWNER_HIDDEN };

struct event_facts {
    bool has_paranoid;
    int64_t paranoid; /* kernel.perf_event_paranoid */
    bool has_rate_limit;
    int64_t rate_limit_hz; /* kernel.perf_event_max_sample_rate */
    bool privileged;       /* CAP_PERFMON or CAP_SYS_ADMIN */
    bool seccomp;          /* a filter is set on us */
    bool cpu_offline;      /* the CPU asked for is not in the online list */
    uint64_t file_limit;   /* RLIMIT_NOFILE */
    enum event_owner
        owner; /* of the thread; HIDDEN: our user's, but it may not be looked into (not dumpable) */
    uid_t owner_uid; /* for OTHER */
};

/* Looks the facts up. tid -1: all threads, 0: ourselves; cpu -1: any. */
void recordint_event_facts(pid_t tid, int cpu, struct event_facts *out);

/* The next attempt after one that was refused with `system`: returns true with *attempt changed, false when none is
 * left. Nothing is tried any more once config is settled. */
bool recordint_event_next_attempt(const struct event_config *config, struct event_attempt *attempt,
                                  int system, const struct event_facts *facts);

/* The text and code of a refusal. `what`: "thread 12", "all processes on CPU 3". kernel: kernel frames were asked
 * for. Returns the code. */
int recordint_event_refuse(const struct event_config *config, const char *what, pid_t tid, int cpu,
                           bool kernel, int system, const struct event_facts *facts,
                           struct record_errbuf *error);

/* Why a ring of size_bytes could not be mapped. Limits: kernel.perf_event_mlock_kb (-1: unknown), RLIMIT_MEMLOCK
 * (UINT64_MAX: none). Returns the code. */
int recordint_event_refuse_ring(size_t size_bytes, int system, int64_t mlock_kb,
                                uint64_t memlock_bytes, struct record_errbuf *error);

#endif
