/* SPDX-License-Identifier: MIT */
/* A file that is read piece by piece over a long time, with a descriptor only while there is one to spare. */
#ifndef RECORD_FILE_SOURCE_H
#define RECORD_FILE_SOURCE_H

#include <stddef.h>

struct file_source {
    int fd;                    /* -1: closed */
    int (*reopen)(void *user); /* NULL: what is closed stays so */
    void *user;
};

/* A descriptor to read with now, which stays the file's; -1: there is none. */
static inline int file_source_fd(struct file_source *f)
{
    if (f->fd < 0 && f->reopen != NULL)
        f->fd = f->reopen(f->user);
    return f->fd;
}

#endif
