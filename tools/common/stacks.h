/* SPDX-License-Identifier: MIT */
/*
 * The pipeline that every converter shares: read, select, resolve, shape, aggregate. One (source, stack) is resolved
 * once, whatever the number of its samples. The result is a tree of output stacks with weights; a converter says what
 * makes two frames equal by giving out their labels, and writes the tree.
 */
#ifndef TOOLS_STACKS_H
#define TOOLS_STACKS_H

#include "aggregate.h"
#include "frames.h"
#include "inputs.h"
#include "names.h"
#include "options.h"
#include "otree.h"
#include "progress.h"
#include "shape.h"
#include "symbols.h"

enum stacks_weight { STACKS_SAMPLES = 0, STACKS_TIME_NS };

/* What a converter contributes. */
struct stacks_hooks {
    void *user;
    /* The label of an output frame: equal numbers are one frame in the document. Called once for each resolved frame. */
    uint32_t (*label)(void *user, const struct out_frame *frame);
    /* The node below which the stacks of a source go: OTREE_ROOT, or root frames for process and thread. */
    uint32_t (*root)(void *user, struct otree *tree, const struct source *source);
    /* Another label for a frame that comes to stand directly below OTREE_ROOT; NULL: the same. */
    uint32_t (*first_label)(void *user, uint32_t label);
    /* With timeline: a run of equal output stacks in time order, source by source. */
    void (*run)(void *user, uint32_t node, uint64_t weight);
};

struct stacks {
    const struct tool_options *options;
    struct stacks_hooks hooks;
    enum stacks_weight weight;
    bool timeline;
    bool per_thread;
    struct symbols *symbols;
    struct otree tree;
    struct frame_names frame_names;
    uint64_t samples_read, samples_used; /* of all inputs */
    struct text_buffer report_lines;     /* with --verbose */
};

/* 0, or -1 after an error message. options must outlive *s. */
int stacks_init(struct stacks *s, const struct tool_options *options,
                const struct stacks_hooks *hooks, enum stacks_weight weight, bool per_thread,
                bool timeline);
void stacks_free(struct stacks *s);

/* The whole run of a converter up to the writing: opens, reads and adds every input, with progress. 0, or -1 after an
 * error message: nothing may be written then. */
int stacks_run(struct stacks *s);

/* Prints the report of --verbose. */
void stacks_print_report(const struct stacks *s);

#endif
