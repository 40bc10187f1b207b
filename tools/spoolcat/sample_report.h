/* SPDX-License-Identifier: MIT */
/*
 * The report of --verbose for samples that are printed as they come: printed stacks are counted, each once a process, and
 * what names their frames lack is asked for at the end.
 */
#ifndef SPOOLCAT_SAMPLE_REPORT_H
#define SPOOLCAT_SAMPLE_REPORT_H

#include "aggregate.h"
#include "inputs.h"
#include "labels.h"
#include "options.h"
#include "symbols.h"

struct sample_report {
    struct labels keys; /* whose stack, and which */
    uint64_t *counts;   /* by key: samples */
    size_t capacity;
};

/* All end the tool without memory. */
void sample_report_init(struct sample_report *r);
void sample_report_free(struct sample_report *r);

/* A sample was printed. */
void sample_report_count(struct sample_report *r, const struct source *source, uint32_t stack);

/* Prints what was used of the input, where names came from and which files have none; symbols is still at this input. 0,
 * or -1 after an error message. */
int sample_report_print(const struct sample_report *r, const struct tool_input *in,
                        const struct tool_options *o, const struct aggregate *a,
                        struct symbols *symbols);

#endif
