/* SPDX-License-Identifier: MIT */
/* What a running system knows about a process of a capture, as long as it is the same process. */
#ifndef SYMINT_LIVE_H
#define SYMINT_LIVE_H

#include "boot.h"
#include "spool/sym.h"

/* How far apart two times may be that should be equal. The system states the second it was booted
 * in, rounded down, so that processes seem up to a second older than they are; some file systems
 * round down times of files just so. */
#define SYMINT_CLOCK_SLACK_US 2000000

/* When a process began, compared with the capture's last sample (or its start, when that is all
 * that is known). */
enum symint_age {
    SYMINT_AGE_UNKNOWN = 0, /* a time is missing */
    SYMINT_AGE_OLD_ENOUGH,
    SYMINT_AGE_YOUNGER /* it is another process, with the same id */
};

/* A process as /proc shows it. */
struct symint_live {
    bool present; /* there is a process (not just a thread) with that id now */
    bool alive;   /* and it is the capture's: of the same boot, old enough, and it has not ended */
    enum symint_age age;
    uint64_t start_time_us; /* when it began, since 1970; 0: unknown */
    int32_t inner_pid;      /* its id in its innermost PID namespace */
    /* Of a process that is alive: its root or its mounts are not ours, or we may not know. What
     * may not be looked at is never taken for ours: it could be a container. */
    bool own_root;
    uint64_t root_id; /* equal for processes with the same root and mounts; 0: ours */
};

/* Looks at a process. A process id of 0 or less, a capture of another or an unknown boot, or times
 * that are not known give one that is not alive (but maybe present). Nothing is an error. */
void symint_live_read(const struct symint_system *system, const struct sym_capture *capture,
                      enum symint_boot boot, int32_t pid, struct symint_live *out);

/* `/proc/PID/root`, malloc'ed; NULL: out of memory. */
char *symint_live_root(const struct symint_system *system, int32_t pid);

/* Opens what a live process holds of a deleted file: map_files of the mapping [start, end), else
 * exe, whichever is a link to exactly that recorded path (` (deleted)` included). The caller closes
 * *fd, which is -1 when there is neither, no regular file, or no permission. */
void symint_live_open_held(const struct symint_system *system, int32_t pid, uint64_t start,
                           uint64_t end, const char *path, int *fd);

#endif
