/* SPDX-License-Identifier: MIT */
/* What a running system knows about a process of a capture, as long as it is the same process. */
#ifndef SYMINT_LIVE_H
#define SYMINT_LIVE_H

#include "boot.h"
#include "spool/sym.h"

/* A process as /proc shows it. */
struct symint_live {
    bool present; /* there is a process with that id now */
    bool alive;   /* and it is the capture's: of the same boot and not younger than the capture */
    uint64_t start_time_us; /* when it began, since 1970; 0: unknown */
    int32_t inner_pid;      /* its id in its innermost PID namespace */
    bool own_root;          /* its root or its mounts are not ours */
    uint64_t root_id;       /* equal for processes with the same root and mounts; 0: ours */
};

/* Looks at a process. A process id of 0 or less, or a capture of another or an unknown boot, gives
 * one that is not alive (but maybe present). Nothing is an error. */
void symint_live_read(const struct symint_system *system, const struct sym_capture *capture,
                      enum symint_boot boot, int32_t pid, struct symint_live *out);

/* `/proc/PID/root`, malloc'ed; NULL: out of memory. */
char *symint_live_root(const struct symint_system *system, int32_t pid);

/* Opens what a live process holds of a deleted file: map_files of the mapping [start, end), else
 * exe, whichever is a link to exactly that recorded path (` (deleted)` included). *fd is -1 when
 * there is neither, or no permission. */
void symint_live_open_held(const struct symint_system *system, int32_t pid, uint64_t start,
                           uint64_t end, const char *path, int *fd);

#endif
