/* SPDX-License-Identifier: MIT */
/*
 * The helpers of record.h: what programs ask about processes and the kernel outside a session.
 */
#include "spool/record.h"

#include "kernel_limits.h"
#include "procfs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int record_max_sample_rate(uint32_t *hz)
{
    int64_t rate;
    if (!recordint_limits_sysctl("perf_event_max_sample_rate", &rate) || rate < 0 ||
        rate > UINT32_MAX)
        return 0;
    *hz = (uint32_t)rate;
    return 1;
}

/* ---- processes ---- */

static bool is_alive(char state)
{
    return state != 'Z' && state != 'X' && state != 'x';
}

/* A first thread that has ended is a zombie as long as others live. */
static bool has_live_thread(pid_t pid)
{
    pid_t *tids;
    bool alive = false;
    ssize_t count = recordint_procfs_threads(pid, &tids);
    /* Short of memory or descriptors it may have one: who waits for its end asks again. */
    if (count < 0)
        return errno != ENOENT && errno != ESRCH;
    for (ssize_t i = 0; i < count && !alive; i++) {
        struct procfs_stat stat;
        alive = recordint_procfs_stat(pid, tids[i], &stat) == 0 && is_alive(stat.state);
    }
    free(tids);
    return alive;
}

int record_process_exists(pid_t pid)
{
    struct procfs_stat stat;
    if (pid <= 0)
        return 0;
    int rc = recordint_procfs_stat(pid, 0, &stat);
    if (rc == ENOENT || rc == ESRCH) /* of another user, where /proc is mounted with hidepid? */
        return kill(pid, 0) != 0 && errno == EPERM;
    if (rc != 0)
        return kill(pid, 0) == 0 || errno == EPERM;
    pid_t leader = recordint_procfs_process_of(pid);
    if (leader > 0 && leader != pid) /* a thread's id has a folder too */
        return 0;
    if (leader <= 0 && kill(pid, 0) != 0 && errno == ESRCH)
        return 0;
    return is_alive(stat.state) || (stat.threads > 1 && has_live_thread(pid));
}

static int send_signal(pid_t pid, int signal)
{
    if (pid <= 0) /* kill() takes them for groups */
        return RECORD_ERR_NO_PROCESS;
    if (kill(pid, signal) == 0)
        return 0;
    return errno == EPERM ? RECORD_ERR_PERMISSION : RECORD_ERR_NO_PROCESS;
}

int record_process_interrupt(pid_t pid)
{
    return send_signal(pid, SIGINT);
}

int record_process_kill(pid_t pid)
{
    return send_signal(pid, SIGKILL);
}

int record_exit_fd_open(pid_t pid)
{
    if (pid <= 0)
        return RECORD_ERR_NO_PROCESS;
    long fd = syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0)
        return (int)fd;
    switch (errno) {
    case ESRCH:
    case ENOENT: /* the id of a thread; EINVAL in older kernels */
    case EINVAL:
        return RECORD_ERR_NO_PROCESS;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return RECORD_ERR_LIMIT;
    default:
        return RECORD_ERR_UNSUPPORTED;
    }
}

int record_exit_fd_wait(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (fd < 0) /* poll would pass over it, and a loop would never end */
        return RECORD_ERR_MISUSE;
    if (poll(&p, 1, timeout_ms) <= 0)
        return 0;
    return (p.revents & POLLNVAL) != 0 ? RECORD_ERR_MISUSE : 1;
}

size_t record_descendants(pid_t pid, pid_t *pids, size_t max)
{
    pid_t *found;
    ssize_t count = recordint_procfs_descendants(pid, &found);
    if (count <= 0)
        return 0;
    size_t stored = (size_t)count < max ? (size_t)count : max;
    if (stored > 0)
        memcpy(pids, found, stored * sizeof(*pids));
    free(found);
    return (size_t)count;
}

/* ---- addresses ---- */

int record_file_address(uint64_t start, uint64_t end, uint64_t file_offset, uint64_t address,
                        uint64_t *out)
{
    if (address < start || address >= end || address - start > UINT64_MAX - file_offset)
        return 0;
    *out = address - start + file_offset;
    return 1;
}
