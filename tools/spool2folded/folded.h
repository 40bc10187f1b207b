/* SPDX-License-Identifier: MIT */
/* Collapsed stacks: `frame;frame;frame COUNT`, root first, as flame graph tools read them. */
#ifndef TOOLS_FOLDED_H
#define TOOLS_FOLDED_H

#include "options.h"
#include "output.h"

enum folded_root { FOLDED_ROOT_NONE = 0, FOLDED_ROOT_PROCESS, FOLDED_ROOT_PID, FOLDED_ROOT_THREAD };

struct folded_options {
    enum folded_root root;
    bool time;     /* COUNT is microseconds */
    bool annotate; /* _[k] _[j] _[i] */
    bool with_modules;
    bool with_lines;
    bool with_addresses;
    bool timeline; /* time order, runs of equal stacks */
    bool reverse;  /* leaf first */
};

/* Converts the inputs of *options to out, which the caller commits or aborts. 0, or -1 after an error message. */
int folded_convert(const struct tool_options *options, const struct folded_options *folded,
                   struct tool_output *out);

#endif
