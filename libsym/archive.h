/* SPDX-License-Identifier: MIT */
/* Symbol archives from the inside: files in a folder or in a tar file. */
#ifndef SYMINT_ARCHIVE_H
#define SYMINT_ARCHIVE_H

#include "spool/sym.h"

/* The path that the archive was opened with. */
const char *symint_archive_path(const struct sym_archive *a);

/* As symint_open_regular, for a name in the archive: links and `..` lead to other files of it or
 * nowhere. */
int symint_archive_open_regular(const struct sym_archive *a, const char *name, int *fd,
                                enum sym_miss *miss, int *error);

/* Where a symbolic link leads, malloc'ed; NULL: it is none, or there is no memory. */
char *symint_archive_read_link(const struct sym_archive *a, const char *name);

/* ---- where paths lie ---- */

struct symint_root {
    const char *path;                  /* of a folder or an archive; NULL and "/": ours */
    const struct sym_archive *archive; /* NULL: it is a folder */
};

static inline struct symint_root symint_in_folder(const char *path)
{
    return (struct symint_root){path, NULL};
}

static inline struct symint_root symint_in_archive(const struct sym_archive *a)
{
    return (struct symint_root){symint_archive_path(a), a};
}

/* As symint_open_regular. */
int symint_root_open_regular(struct symint_root root, const char *path, int *fd,
                             enum sym_miss *miss, int *error);

#endif
