/* SPDX-License-Identifier: MIT */
/* spoolpack --list: the captures of a store. */
#ifndef SPOOLPACK_LIST_H
#define SPOOLPACK_LIST_H

#include <stdbool.h>

#include "output.h"

/* A line a manifest, or with json an object a line: the manifest with "file", its own name, in front. 0, or -1 after an
 * error message: for the store, or for manifests that cannot be read, with the others listed. */
int pack_list(const char *store, bool json, struct tool_output *out);

#endif
