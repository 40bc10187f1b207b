/* SPDX-License-Identifier: MIT */
/* spoolpack --check: whether a store has what its manifests say, as it was packed. */
#ifndef SPOOLPACK_CHECK_H
#define SPOOLPACK_CHECK_H

#include <stdbool.h>

/* Prints a line on standard output for everything that is damaged or not there, unless quiet for what could not be
 * packed in the first place, and a summary. store: a folder or tar file. 0: it is whole; -1: it is not, or an error
 * message was printed. */
int pack_check(const char *store, bool quiet);

#endif
