/* SPDX-License-Identifier: MIT */
/* Between cli.c, which parses, and options.c, which has the options that tools share. Nobody
 * else's. */
#ifndef TOOLS_CLI_SHARED_H
#define TOOLS_CLI_SHARED_H

#include "cli.h"

struct cli_shared_group {
    unsigned group; /* one of enum cli_group */
    const char *title;
    const struct cli_option *options; /* ends with a NULL name */
};

/* In the order of --help; ends with group 0. */
extern const struct cli_shared_group cli_shared_groups[];

/* Stores one of them. */
void cli_shared_handle(const struct cli_arg *arg, struct tool_options *o);
/* Contradictions among them are usage errors. */
void cli_shared_check(const struct tool_options *o);

#endif
