/* SPDX-License-Identifier: MIT */
/* The run of a converter from its command line to its exit status, which is the same for all. */
#ifndef TOOLS_CONVERTER_H
#define TOOLS_CONVERTER_H

#include "cli.h"
#include "options.h"
#include "output.h"

/* Converts the inputs of *options to out, which the caller commits or aborts. 0, or -1 after an error message. */
typedef int converter_fn(struct tool_options *options, void *own, struct tool_output *out);

/* Parses the command line (own: the tool's options, as its handle function fills them), converts, and gives FILE its
 * name when the document is complete. binary: refused on a terminal. Returns the exit status, or ends the tool as
 * cli_parse does. */
int converter_main(const struct cli_tool *tool, int argc, char **argv, void *own, bool binary,
                   converter_fn *convert);

#endif
