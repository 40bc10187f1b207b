/* SPDX-License-Identifier: MIT */
/* Finding and opening files: regular files only, inside the sysroot, and never the network. */
#ifndef SYMINT_LOCATE_H
#define SYMINT_LOCATE_H

#include "elf.h"
#include "spool/sym.h"
#include "strtab.h"

/* Opens a regular file for reading. 0 with *miss NONE and *fd set (the caller closes it), or
 * *miss NO_FILE, UNREADABLE or NOT_REGULAR and *error the errno, 0 for none. SYM_ERR_NOMEM. With
 * a sysroot other than NULL and "/" the path, symbolic links included, is taken inside it. */
int symint_open_regular(const char *sysroot, const char *path, int *fd, enum sym_miss *miss,
                        int *error);

/* Reads a descriptor to its end into malloc'ed memory with a NUL behind. 0; SYM_ERR_NOMEM;
 * SYM_ERR_LIMIT; SYM_ERR_IO with errno set. */
int symint_read_all(int fd, size_t limit, char **data, size_t *size);

struct symint_located {
    struct symint_elf *elf; /* with its index; NULL: miss tells why */
    enum sym_miss miss;
    bool unverified;    /* used without a build id to compare */
    const char *detail; /* of a miss, in the arena; "" when there is nothing to say */
};

/* Finds the file of a module, checks its build id and reads its symbols. 0 or SYM_ERR_NOMEM. */
int symint_locate(struct symint_arena *arena, const char *sysroot, const char *path,
                  size_t path_size, const uint8_t *build_id, size_t build_id_size,
                  struct symint_located *out);

#endif
