/* SPDX-License-Identifier: MIT */
/* Between cli.c, which parses, cli_help.c and cli_complete.c, which print the tables of options, and options.c, which
 * has the options that tools share. Nobody else's. */
#ifndef TOOLS_CLI_SHARED_H
#define TOOLS_CLI_SHARED_H

#include "cli.h"
#include "output.h"

struct cli_shared_group {
    unsigned group;                   /* one of enum cli_group; 0: of every tool */
    const char *title;                /* that of the group before: one with it in --help */
    const struct cli_option *options; /* ends with a NULL name */
};

/* In the order of --help; ends with that of every tool, group 0, whose options end the process and reach no handler. */
extern const struct cli_shared_group cli_shared_groups[];
enum { CLI_ID_HELP = 1, CLI_ID_VERSION, CLI_ID_COMPLETION };

/* The groups of a tool, its own first; returns how many. */
#define CLI_GROUPS_MAX 8
size_t cli_groups(const struct cli_tool *tool, struct cli_shared_group groups[CLI_GROUPS_MAX]);
/* Whether the tool takes an option of its groups; false for headings, too. */
bool cli_takes(const struct cli_tool *tool, const struct cli_option *option);

/* cli_help.c */
void cli_print_help(const struct cli_tool *tool, struct tool_output *out);
void cli_print_version(const struct cli_tool *tool, struct tool_output *out);
/* cli_complete.c: the script of a shell, an index of the words of --completion. */
void cli_print_completion(const struct cli_tool *tool, int shell, struct tool_output *out);

/* Stores one of them. */
void cli_shared_handle(const struct cli_arg *arg, struct tool_options *o);
/* Contradictions among them are usage errors. */
void cli_shared_check(const struct tool_options *o);

#endif
