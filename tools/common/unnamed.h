/* SPDX-License-Identifier: MIT */
/* The part of the --verbose report about names: which files have none, why, and which names could not be verified. */
#ifndef TOOLS_UNNAMED_H
#define TOOLS_UNNAMED_H

#include "misses.h"
#include "symbols.h"
#include "text.h"

/* Begins counting for an input that was read to its end: modules of one path and build id are one place. Ends the tool
 * without memory. */
void unnamed_init(struct misses *m, struct spool_reader *reader);

/* Appends a "no symbols" line for each place that was charged, most samples first, then what is not verified. symbols
 * is still at this input. */
void unnamed_report(struct text_buffer *out, const struct misses *m, struct spool_reader *reader,
                    const struct symbols *symbols);

#endif
