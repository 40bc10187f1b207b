/* SPDX-License-Identifier: MIT */
/* The views of spoolcat: what main.c calls once for each SPOOL. */
#ifndef SPOOLCAT_VIEWS_H
#define SPOOLCAT_VIEWS_H

#include "inputs.h"
#include "options.h"
#include "output.h"
#include "progress.h"

struct view_options {
    bool json;
    bool color;
    bool shaped;             /* --summary: an option asks for shaped stacks */
    struct symbols *symbols; /* of all inputs; NULL: the view asks for no names */
};

/* The line above the frames of a stack, with color. */
#define VIEW_COLOR_HEAD "\033[32m"
#define VIEW_COLOR_END "\033[0m"

/* Reads the input to its end and prints it. Ends with inputs_finish and returns what that
 * returned; INPUT_FAILED without a message when the output failed. A view that does not stream
 * prints nothing of a failed input. */
typedef enum input_end view_fn(struct tool_input *in, const struct tool_options *o,
                               const struct view_options *view, struct progress *progress,
                               struct tool_output *out);

#endif
