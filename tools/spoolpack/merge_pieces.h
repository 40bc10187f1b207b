/* SPDX-License-Identifier: MIT */
/*
 * Of a store that many captures were packed into: one piece of packed symbols in place of the many that a build id got
 * one by one.
 */
#ifndef SPOOLPACK_MERGE_PIECES_H
#define SPOOLPACK_MERGE_PIECES_H

#include <stdbool.h>
#include <stdint.h>

#include "output.h"
#include "spool/sym.h"

struct merge_options {
    const char *store; /* a folder */
    const struct sym_archive *archive;
    int64_t oldest_s; /* what was written since stays: seconds since 1970, ... */
    long oldest_ns;   /* ... and nanoseconds */
    bool dry_run;
    struct tool_output *out; /* gets a line for each new piece; NULL: nobody */
};

struct merge;

/* Merges the old pieces that old manifests name, and has those name the result. Pieces that are replaced then are still
 * there, and no manifest that was changed names them. NULL after an error message; what was done till then is whole. */
struct merge *merge_pieces(const struct merge_options *options);
void merge_free(struct merge *m);

/* Whether something could not be read, which a message told. It was left as it is. */
bool merge_failed(const struct merge *m);

/* Whether a piece was replaced, or would be. */
bool merge_replaces(const struct merge *m, const char *name);

#endif
