/* SPDX-License-Identifier: MIT */
/* Opening and reading files: regular files only, and inside the sysroot. */
#ifndef SYMINT_OPENFILE_H
#define SYMINT_OPENFILE_H

#include "spool/sym.h"

/* Opens a regular file for reading. 0 with *miss NONE and *fd set (the caller closes it), or
 * *miss NO_FILE, UNREADABLE or NOT_REGULAR and *error the errno, 0 for none. SYM_ERR_NOMEM. With
 * a sysroot other than NULL and "/" the path, symbolic links included, is taken inside it. */
int symint_open_regular(const char *sysroot, const char *path, int *fd, enum sym_miss *miss,
                        int *error);

/* A handle (O_PATH) for a path inside a folder, which symbolic links and `..` do not leave.
 * `by_hand` leaves out the system call that can do this (Linux 5.6). -1 with errno. */
int symint_open_inside(int root, const char *path, bool by_hand);

/* Reads a descriptor to its end into malloc'ed memory with a NUL behind. 0; SYM_ERR_NOMEM;
 * SYM_ERR_LIMIT; SYM_ERR_IO with errno set. */
int symint_read_all(int fd, size_t limit, char **data, size_t *size);

#endif
