/* SPDX-License-Identifier: MIT */
/*
 * Fallbacks and words. A text says what was refused, which setting did it and its value, and the smallest change
 * that helps.
 */
#include "event_refusal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "spool/record.h"

static bool is_no_counter(int system)
{
    return system == ENOENT || system == EOPNOTSUPP || system == ENODEV || system == EINVAL;
}

static bool is_above_rate_limit(const struct event_config *config, const struct event_facts *facts)
{
    return facts->has_rate_limit && (int64_t)config->frequency_hz > facts->rate_limit_hz;
}

bool recordint_event_next_attempt(const struct event_config *config, struct event_attempt *attempt,
                                  int system, const struct event_facts *facts)
{
    if (config->settled)
        return false;
    if (system == EACCES && attempt->kernel) {
        attempt->kernel = false;
        return true;
    }
    if (!is_no_counter(system) || (system == ENODEV && facts->cpu_offline) ||
        (system == EINVAL && is_above_rate_limit(config, facts)))
        return false;
    /* Both say of many things that they are not known. Guests first: that keeps the counter. */
    if (attempt->exclude_guest && (system == EINVAL || system == EOPNOTSUPP)) {
        attempt->exclude_guest = false;
        return true;
    }
    if (!attempt->cpu_clock && config->auto_event) {
        attempt->cpu_clock = true;
        attempt->exclude_guest = config->exclude_guest;
        return true;
    }
    return false;
}

/* ---- not permitted ---- */

static int refuse_paranoid(const char *what, const char *who, int needed, int system,
                           const struct event_facts *facts, struct record_errbuf *error)
{
    return recordint_error_set(error, RECORD_ERR_PERMISSION, system,
                               "perf_event_open for %s refused: kernel.perf_event_paranoid is "
                               "%" PRId64 "; %d allows %s (sysctl "
                               "kernel.perf_event_paranoid=%d), or run as root or with CAP_PERFMON",
                               what, facts->paranoid, needed, who, needed);
}

static int refuse_owner(const char *what, int system, const struct event_facts *facts,
                        struct record_errbuf *error)
{
    if (facts->owner == EVENT_OWNER_OTHER)
        return recordint_error_set(error, RECORD_ERR_PERMISSION, system,
                                   "perf_event_open for %s refused: it belongs to another user "
                                   "(uid %lu): run as that user, as root or with CAP_PERFMON",
                                   what, (unsigned long)facts->owner_uid);
    return recordint_error_set(
        error, RECORD_ERR_PERMISSION, system,
        "perf_event_open for %s refused: its process is protected (it changed "
        "its user, its program is not readable, or it asked for that by "
        "PR_SET_DUMPABLE): run as root or with CAP_PERFMON",
        what);
}

static int refuse_filtered(const char *what, int code, int system, const struct event_facts *facts,
                           struct record_errbuf *error)
{
    if (facts->seccomp)
        return recordint_error_set(error, code, system,
                                   "perf_event_open for %s refused (%s) by a seccomp filter, as "
                                   "containers have one: the container needs CAP_PERFMON or a "
                                   "seccomp profile that allows perf_event_open",
                                   what, strerror(system));
    return recordint_error_set(error, code, system,
                               "perf_event_open for %s refused (%s) although "
                               "kernel.perf_event_paranoid does not forbid it: a container or a "
                               "security module (such as SELinux) does",
                               what, strerror(system));
}

static int refuse_permission(const char *what, pid_t tid, bool kernel, int system,
                             const struct event_facts *facts, struct record_errbuf *error)
{
    const bool limited = facts->has_paranoid && !facts->privileged;

    /* The sysctl answers EACCES, never EPERM, which is what container runtimes choose. */
    if (system == EPERM && facts->seccomp)
        return refuse_filtered(what, RECORD_ERR_PERMISSION, system, facts, error);
    if (limited && tid == -1 && facts->paranoid > 0)
        return refuse_paranoid(what, "sampling all processes", 0, system, facts, error);
    if (!facts->privileged &&
        (facts->owner == EVENT_OWNER_OTHER || facts->owner == EVENT_OWNER_HIDDEN))
        return refuse_owner(what, system, facts, error);
    if (limited && kernel && facts->paranoid > 1)
        return refuse_paranoid(what, "kernel frames", 1, system, facts, error);
    if (limited && facts->paranoid > 2)
        return refuse_paranoid(what, "your own programs", 2, system, facts, error);
    return refuse_filtered(what, RECORD_ERR_PERMISSION, system, facts, error);
}

/* ---- all others ---- */

static int refuse_limit(const char *what, int system, const struct event_facts *facts,
                        struct record_errbuf *error)
{
    if (system == ENFILE)
        return recordint_error_set(error, RECORD_ERR_LIMIT, system,
                                   "perf_event_open for %s refused: the system's file "
                                   "descriptors are used up; raise sysctl fs.file-max",
                                   what);
    return recordint_error_set(error, RECORD_ERR_LIMIT, system,
                               "perf_event_open for %s refused: file descriptors are used up, "
                               "RLIMIT_NOFILE is %" PRIu64 "; raise it (ulimit -n)",
                               what, facts->file_limit);
}

static int refuse_unsupported(const struct event_config *config, const char *what, int system,
                              struct record_errbuf *error)
{
    if (!config->cpu_clock && !config->auto_event && !config->settled && is_no_counter(system))
        return recordint_error_set(
            error, RECORD_ERR_UNSUPPORTED, system,
            "perf_event_open for %s refused (%s): this machine has no "
            "cycle counter that can be sampled; the event cpu-clock needs none",
            what, strerror(system));
    if (system == E2BIG)
        return recordint_error_set(error, RECORD_ERR_UNSUPPORTED, system,
                                   "perf_event_open for %s refused (%s): the kernel is too old, "
                                   "Linux 6.0 is needed",
                                   what, strerror(system));
    return recordint_error_set(error, RECORD_ERR_UNSUPPORTED, system,
                               "perf_event_open for %s refused: %s", what, strerror(system));
}

int recordint_event_refuse(const struct event_config *config, const char *what, pid_t tid, int cpu,
                           bool kernel, int system, const struct event_facts *facts,
                           struct record_errbuf *error)
{
    switch (system) {
    case EACCES:
    case EPERM:
        return refuse_permission(what, tid, kernel, system, facts, error);
    case ENOSYS:
        if (facts->seccomp)
            return refuse_filtered(what, RECORD_ERR_UNSUPPORTED, system, facts, error);
        return recordint_error_set(error, RECORD_ERR_UNSUPPORTED, system,
                                   "this kernel has no perf_event_open, or a container's seccomp "
                                   "filter hides it");
    case ESRCH:
        return recordint_error_set(error, RECORD_ERR_NO_PROCESS, system, "%s has ended", what);
    case EMFILE:
    case ENFILE:
        return refuse_limit(what, system, facts, error);
    case ENOMEM:
        return recordint_error_set(error, RECORD_ERR_NOMEM, system,
                                   "perf_event_open for %s refused: out of memory", what);
    case ENODEV:
        if (cpu >= 0 && facts->cpu_offline)
            return recordint_error_set(error, RECORD_ERR_NO_PROCESS, system, "CPU %d is offline",
                                       cpu);
        break;
    case EINVAL:
        if (is_above_rate_limit(config, facts))
            return recordint_error_set(error, RECORD_ERR_LIMIT, system,
                                       "frequency %" PRIu32
                                       " Hz is above the kernel's limit, now %" PRId64
                                       " Hz (kernel.perf_event_max_sample_rate)",
                                       config->frequency_hz, facts->rate_limit_hz);
        break;
    default:
        break;
    }
    return refuse_unsupported(config, what, system, error);
}

int recordint_event_refuse_ring(size_t size_bytes, int system, int64_t mlock_kb,
                                uint64_t memlock_bytes, struct record_errbuf *error)
{
    char memlock[32] = "unlimited", mlock[32] = "unknown";

    if (system == ENOMEM)
        return recordint_error_set(error, RECORD_ERR_NOMEM, system,
                                   "a ring buffer of %zu KiB cannot be mapped: out of memory",
                                   size_bytes / 1024);
    if (system == EMFILE || system == ENFILE)
        return recordint_error_set(error, RECORD_ERR_LIMIT, system,
                                   "a ring buffer of %zu KiB cannot be mapped: %s",
                                   size_bytes / 1024, strerror(system));
    if (system != EPERM)
        return recordint_error_set(error, RECORD_ERR_UNSUPPORTED, system,
                                   "a ring buffer of %zu KiB cannot be mapped: %s",
                                   size_bytes / 1024, strerror(system));
    if (mlock_kb >= 0)
        snprintf(mlock, sizeof mlock, "%" PRId64, mlock_kb);
    if (memlock_bytes != UINT64_MAX)
        snprintf(memlock, sizeof memlock, "%" PRIu64 " KiB", memlock_bytes / 1024);
    return recordint_error_set(
        error, RECORD_ERR_PERMISSION, system,
        "a ring buffer of %zu KiB cannot be mapped: no more memory may be locked, "
        "kernel.perf_event_mlock_kb is %s, RLIMIT_MEMLOCK is %s; raise either (sysctl "
        "kernel.perf_event_mlock_kb, ulimit -l), or run as root or with CAP_IPC_LOCK",
        size_bytes / 1024, mlock, memlock);
}
