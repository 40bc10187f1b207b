/* SPDX-License-Identifier: MIT */
/*
 * What /proc says about a process: threads, mappings, names, when it started. Everything there may change or
 * vanish while it is read, and names and paths are of the process's choosing.
 */
#ifndef RECORD_PROCFS_H
#define RECORD_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A file of /proc read whole (it has no size of its own); at most limit bytes. *text is NUL-terminated and the
 * caller's to free. Returns 0 or an errno value (EFBIG: above limit). */
int recordint_procfs_read(const char *path, size_t limit, char **text, size_t *size);

struct procfs_stat {
    char state; /* 'R', 'S', 'T' stopped, 't' traced, 'Z' zombie ... */
    pid_t parent;
    bool kernel;          /* a thread of the kernel: no user code, and no signal stops it */
    uint64_t threads;     /* of the process, its first one included as long as it was not reaped */
    uint64_t start_ticks; /* since boot: with the pid this names a process */
};

/* Of a process (tid 0) or of one of its threads. Returns 0 or an errno value (ESRCH, ENOENT: gone). */
int recordint_procfs_stat(pid_t pid, pid_t tid, struct procfs_stat *out);

/* Thread ids, ascending; *tids is the caller's to free. Returns how many, -1 with errno. */
ssize_t recordint_procfs_threads(pid_t pid, pid_t **tids);

/* Name (comm) of a process (tid 0) or thread, without its newline. Returns 0 or an errno value. */
int recordint_procfs_comm(pid_t pid, pid_t tid, char name[64]);

/* The arguments, quoted for a shell and joined by blanks; at most size bytes with the NUL. Returns 0, errno. */
int recordint_procfs_cmdline(pid_t pid, char *text, size_t size);

/* The process that a thread belongs to (Tgid), 0 when it is gone. */
pid_t recordint_procfs_process_of(pid_t tid);

/* One line of /proc/PID/maps. */
struct procfs_map {
    uint64_t start;
    uint64_t end;
    bool executable;
    uint64_t file_offset;
    uint32_t dev_major;
    uint32_t dev_minor;
    uint64_t inode;
    const char *
        path; /* as the kernel prints it, "\012" unescaped to a newline; "" when there is none; borrowed
                         until the next call */
};

/* Reading the maps of a process at one moment. open returns 0 or an errno value; next 1, or 0 at the end. */
struct procfs_maps;
int recordint_procfs_maps_open(pid_t pid, struct procfs_maps **out);
int recordint_procfs_maps_next(struct procfs_maps *maps, struct procfs_map *out);
void recordint_procfs_maps_free(struct procfs_maps *maps);

/* Children of a process (all its threads'), and theirs: ascending, without itself. *pids is the caller's to free,
 * NULL when there are none. Returns how many, -1: out of memory. */
ssize_t recordint_procfs_descendants(pid_t pid, pid_t **pids);

/* Stops a process with SIGSTOP and waits until every thread is in stop state, at most timeout_ms. Returns 0
 * with *was_stopped (it was before: do not resume it), or an errno value: ESRCH (also a zombie), EPERM, ETIMEDOUT,
 * EINVAL (it is us), or of reading /proc (EMFILE, ENOMEM). After an error it runs as before. */
int recordint_procfs_stop(pid_t pid, int timeout_ms, bool *was_stopped);
void recordint_procfs_resume(pid_t pid); /* SIGCONT */

#endif
