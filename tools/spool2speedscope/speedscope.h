/* SPDX-License-Identifier: MIT */
/* Documents for speedscope: a profile of each thread, in time, and one of all threads together. */
#ifndef TOOLS_SPEEDSCOPE_H
#define TOOLS_SPEEDSCOPE_H

#include "options.h"
#include "output.h"

enum speedscope_weight {
    SPEEDSCOPE_AUTO = 0, /* time if every input with samples states an interval, else samples */
    SPEEDSCOPE_TIME,     /* an input that states no interval is an error */
    SPEEDSCOPE_SAMPLES
};

#define SPEEDSCOPE_PROFILES 256

struct speedscope_options {
    enum speedscope_weight weight;
    bool no_overview;
    bool merge_threads;    /* the overview alone */
    uint32_t max_profiles; /* of threads, >= 1; the rest is one more */
    const char *name;      /* of the document; NULL: the inputs' */
    bool no_merge_runs;    /* an entry a sample */
};

/* Converts the inputs of *options to out, which the caller commits or aborts. Limits options->shape.max_depth to what
 * speedscope can show. 0, or -1 after an error message. */
int speedscope_convert(struct tool_options *options, const struct speedscope_options *how,
                       struct tool_output *out);

#endif
