/* SPDX-License-Identifier: MIT */
/* Which samples count: evaluation of struct select_options. */
#ifndef TOOLS_SELECT_H
#define TOOLS_SELECT_H

#include "names.h"
#include "options.h"

/* Nothing was selected: every sample counts, and the rest need not be asked. */
bool select_everything(const struct select_options *o);

/* --pid and --tid. */
bool select_ids(const struct select_options *o, int32_t pid, uint64_t tid);

/* --from and --to: the half-open range on the timeline that starts at the first sample of the
 * file; a time before that counts as 0. */
bool select_time(const struct select_options *o, uint64_t first_ns, uint64_t time_ns);

/* Whether --comm or --thread was given. */
bool select_asks_names(const struct select_options *o);

/* --comm and --thread: any glob of each option matches. NULL (no name known) matches only where
 * the option was not given. */
bool select_names(const struct select_options *o, const char *comm, const char *thread);
/* The same for a source. Ends the tool without memory. */
bool select_source(const struct select_options *o, const struct source *source);

#endif
