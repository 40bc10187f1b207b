/* SPDX-License-Identifier: MIT */
/* Tar files: their members are found by name, as files in a folder are. */
#ifndef SYMINT_TAR_H
#define SYMINT_TAR_H

#include "tarindex.h"

struct symint_tar {
    int fd;       /* of the file, ours */
    int unpacked; /* what gzip packed of its files, unlinked; -1: it is a plain one */
    struct symint_tar_index index; /* offsets are in `unpacked`, else in fd */
    char fault[400];               /* what is wrong with it; "": nothing */
};

/* Reads the headers of a tar file from a regular file, which is taken, whatever is returned. 0 with *out;
 * SYM_ERR_NOMEM; SYM_ERR_IO with errno; SYM_ERR_FORMAT: it is none, or it is damaged before its first file,
 * which `why` tells then. */
int symint_tar_open(int fd, struct symint_tar **out, char *why, size_t room);
void symint_tar_free(struct symint_tar *t);

/* Where the bytes of its files are. */
int symint_tar_data(const struct symint_tar *t);

#endif
