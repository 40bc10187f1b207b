/* SPDX-License-Identifier: MIT */
/* Opening and reading files: regular files only, and inside the sysroot. Temporary ones. */
#ifndef SYMINT_OPENFILE_H
#define SYMINT_OPENFILE_H

#include "spool/sym.h"

#include <sys/types.h>

/* What an errno is where it says nothing of the file: SYM_ERR_NOMEM, SYM_ERR_OPEN_FILES; else 0. */
int symint_shortage(int error);
/* Whether an error is one of these. */
bool symint_is_shortage(int rc);

/* Opens a regular file for reading. 0 with *miss NONE and *fd set (the caller closes it), or
 * *miss NO_FILE, UNREADABLE or NOT_REGULAR and *error the errno, 0 for none. A shortage. With
 * a sysroot other than NULL and "/" the path, symbolic links included, is taken inside it. What
 * the kernel makes up (/proc, /sys) counts as not regular. */
int symint_open_regular(const char *sysroot, const char *path, int *fd, enum sym_miss *miss,
                        int *error);

/* The same inside a folder that is open. */
int symint_open_regular_in(int root, const char *path, int *fd, enum sym_miss *miss, int *error);

/* The same for a path that no capture chose; of /proc and /sys too. */
int symint_open_system(const char *path, int *fd, enum sym_miss *miss, int *error);

/* Where the last part of a path leads as a symbolic link; inside root, below 0: ours. The size of
 * the NUL-terminated target; below 1: it is none, or has no room. */
ssize_t symint_read_link_in(int root, const char *path, char *target, size_t room);

/* A handle (O_PATH) for a path inside a folder, which symbolic links and `..` do not leave.
 * `by_hand` leaves out the system call that can do this (Linux 5.6). -1 with errno. */
int symint_open_inside(int root, const char *path, bool by_hand);

/* Reads a descriptor to its end into malloc'ed memory with a NUL behind. 0; SYM_ERR_NOMEM;
 * SYM_ERR_LIMIT; SYM_ERR_IO with errno set. */
int symint_read_all(int fd, size_t limit, char **data, size_t *size);

/* TMPDIR, else /tmp. */
const char *symint_temporary_folder(void);
/* A file there that has no name. -1 with errno. */
int symint_temporary_file(void);

#endif
