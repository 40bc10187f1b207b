/* SPDX-License-Identifier: MIT */
/* What the stacks of an input come to: for --summary and --modules. */
#ifndef SPOOLCAT_STACK_USE_H
#define SPOOLCAT_STACK_USE_H

#include "aggregate.h"

/* How often what stacks are made of was sampled. All numbers are of the selected samples. */
struct stack_use {
    uint64_t frames; /* in all their stacks, markers included */
    uint64_t kernel_frames;
    uint64_t unpinned_frames;
    uint64_t unresolved_frames; /* in no module */
    uint64_t truncated_samples; /* whose stack has the marker */
    uint64_t distinct_stacks;
    uint32_t max_depth;
    uint64_t *module_samples; /* by module id: samples with a frame in it */
    size_t module_count;
};

/* Counts for an input whose aggregate is finished. Frees nothing of *u before. 0, or -1 after an
 * error message. */
int stack_use_count(struct stack_use *u, struct spool_reader *reader, const struct aggregate *a);
void stack_use_free(struct stack_use *u);

#endif
