/* SPDX-License-Identifier: MIT */
/* Packing: what spools need of other files goes to a store. */
#ifndef SPOOLPACK_PACK_RUN_H
#define SPOOLPACK_PACK_RUN_H

#include "manifest.h"
#include "options.h"

/* Packs all inputs to options->output; a tar file that is there is an error unless it may be replaced. 0, or -1 after
 * an error message: what was packed till then is in a folder, but a tar file does not appear. */
int pack_run(const struct tool_options *options, enum manifest_level level, bool replace);

#endif
