/* SPDX-License-Identifier: MIT */
/* The members of a tar file by name. */
#ifndef SYMINT_TARINDEX_H
#define SYMINT_TARINDEX_H

#include "strtab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMINT_TAR_NAME_BYTES 4096 /* with the NUL: no name or link is longer */

enum symint_tar_kind {
    SYMINT_TAR_FILE,
    SYMINT_TAR_FOLDER,
    SYMINT_TAR_LINK,     /* symbolic */
    SYMINT_TAR_HARD_LINK /* to a member before it; gone when the index is finished */
};

struct symint_tar_member {
    const char *name; /* without slashes at its ends, `.` and `..` */
    const char *link; /* NULL: it is no link */
    uint64_t offset;  /* of a file's bytes, where they are kept */
    uint64_t size_bytes;
    int64_t mtime_s;
    uint32_t mtime_ns;
    uint32_t order; /* in which they are in the tar file */
    enum symint_tar_kind kind;
};

struct symint_tar_index {
    struct symint_tar_member *members;
    size_t count;
    size_t capacity;
    size_t name_bytes;
    struct symint_arena arena; /* of names and links */
};

/* Adds a member; name and link are copied. 0; SYM_ERR_NOMEM; SYM_ERR_LIMIT: there are too many. */
int symint_tar_index_add(struct symint_tar_index *x, const struct symint_tar_member *member);
/* Sorts the members, after which they can be found. Of one name the last counts. *dangling: how many hard
 * links lead to nothing. 0 or SYM_ERR_NOMEM. */
int symint_tar_index_finish(struct symint_tar_index *x, size_t *dangling);
void symint_tar_index_free(struct symint_tar_index *x);

/* Makes a name one that members can have; false: it leads out (`..`, a slash in front) or is too long. ""
 * is the uppermost folder. */
bool symint_tar_normalize(char *name);

/* Finds a name as a system would whose root the tar file is. 0 with *out, which is NULL for a folder;
 * ENOENT, ENOTDIR, ELOOP or ENAMETOOLONG. With `link` a symbolic link at the end is not followed. */
int symint_tar_find(const struct symint_tar_index *x, const char *name, bool link,
                    const struct symint_tar_member **out);

/* Calls fn for what is directly in a folder, in bytewise order, until it returns other than 0, which is
 * returned then; 0. */
typedef int symint_tar_list_fn(void *user, const char *name, bool is_folder);
int symint_tar_list(const struct symint_tar_index *x, const char *folder, symint_tar_list_fn *fn,
                    void *user);

#endif
