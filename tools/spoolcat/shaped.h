/* SPDX-License-Identifier: MIT */
/* The stacks of an input that was read to its end, shaped as the converters shape them: for --stacks and --summary. */
#ifndef SPOOLCAT_SHAPED_H
#define SPOOLCAT_SHAPED_H

#include "aggregate.h"
#include "misses.h"
#include "otree.h"
#include "report.h"
#include "shape.h"
#include "symbols.h"

/* A stack of a source that the shaping options do not deselect. */
struct shaped_stack {
    uint32_t source;
    int32_t pid;    /* of the source */
    uint32_t stack; /* of the spool */
    uint32_t node;  /* of the tree */
    uint32_t has;   /* SHAPE_* */
    uint64_t samples;
};

struct shaped_input {
    struct symbols *symbols; /* borrowed */
    struct otree tree;       /* without weights */
    struct frame_names names;
    struct shaper shaper;
    struct misses misses; /* with --verbose */
    struct input_report report;
    struct shaped_stack *stacks; /* sources of a process behind each other */
    size_t stack_count;
};

/* Names and shapes what was counted; label and user are those of shape_hooks. With --verbose prints the report, too. 0,
 * or -1 after an error message. shaped_free in any case. */
int shaped_run(struct shaped_input *s, const struct tool_input *in, const struct tool_options *o,
               struct symbols *symbols, const struct aggregate *a,
               uint32_t (*label)(void *user, const struct out_frame *frame), void *user);
void shaped_free(struct shaped_input *s);

#endif
