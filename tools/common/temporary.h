/* SPDX-License-Identifier: MIT */
/* Temporary files that are gone when the tool ends, by exit(3) or by a signal, before they got their names. */
#ifndef TOOLS_TEMPORARY_H
#define TOOLS_TEMPORARY_H

struct temporary {
    char *path;             /* malloc'ed; NULL: none */
    struct temporary *next; /* of those there are, for the signal handler */
};

/* Makes a file from a pattern that ends in XXXXXX (malloc'ed, taken in any case), for reading and writing by its owner.
 * Its descriptor, or -1 with errno. *t must stay where it is until temporary_forget. */
int temporary_make(struct temporary *t, char *pattern);

/* It has another name now, or was removed. Does nothing without one. Keeps errno. */
void temporary_forget(struct temporary *t);

/* The folder that temporary files without a name of their own are in: TMPDIR, or /tmp. */
const char *temporary_folder(void);
/* A file in it that has no name and is gone with its descriptor, which is returned; -1 with errno. Ends the tool
 * without memory. */
int temporary_open_unlinked(void);

#endif
