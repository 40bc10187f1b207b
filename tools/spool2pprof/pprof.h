/* SPDX-License-Identifier: MIT */
/* Profiles in pprof's format, gzip'd profile.proto. */
#ifndef TOOLS_PPROF_H
#define TOOLS_PPROF_H

#include <stdbool.h>

#include "labelsets.h"
#include "options.h"
#include "output.h"

struct pprof_options {
    int gzip_level;        /* 0: the bare message */
    unsigned labels;       /* LABEL_* */
    bool timestamps;       /* a sample an event, with its time */
    bool unsymbolized;     /* for back ends that symbolize; needs options->symbols.no_symbols */
    bool inline_locations; /* a location an inline level */
    struct text_list comments;
};

/* Converts the inputs of *options to out, which the caller commits or aborts. 0, or -1 after an error message. */
int pprof_convert(const struct tool_options *options, const struct pprof_options *pprof,
                  struct tool_output *out);

#endif
