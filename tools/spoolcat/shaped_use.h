/* SPDX-License-Identifier: MIT */
/* What --summary counts of shaped stacks, in place of recorded ones. */
#ifndef SPOOLCAT_SHAPED_USE_H
#define SPOOLCAT_SHAPED_USE_H

#include "options.h"
#include "stack_use.h"
#include "symbols.h"

/* Like stack_use_count; samples and times of *a, which must have been read with AGGREGATE_EVENTS if options deselect
 * stacks, become those of the samples that are left. Prints the report of --verbose. 0, or -1 after an error message.
 */
int shaped_use_count(struct stack_use *u, const struct tool_input *in, const struct tool_options *o,
                     struct symbols *symbols, struct aggregate *a);

#endif
