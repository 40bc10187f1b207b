/* SPDX-License-Identifier: MIT */
/* spoolpack --prune: many pieces become one, and what no manifest names leaves the store. */
#ifndef SPOOLPACK_PRUNE_H
#define SPOOLPACK_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

/* Merges old pieces (merge_pieces.h), then removes, and prints on standard output (unless quiet), the regular files in
 * .build-id and captures of a folder that no manifest names and that were last written longer ago than this, and
 * folders that are empty then. Nothing when a manifest cannot be read. 0, or -1 after an error message. */
int pack_prune(const char *store, uint64_t older_than_ns, bool dry_run, bool quiet);

#endif
