/* SPDX-License-Identifier: MIT */
/*
 * Frames as --stacks and --samples show them. What a frame looks like is written once, when the shaping code asks for
 * its label; equal texts are one label, and a stack is copied together from them.
 */
#ifndef SPOOLCAT_FRAME_PRINT_H
#define SPOOLCAT_FRAME_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "frames.h"
#include "labels.h"
#include "otree.h"
#include "output.h"

struct frame_print {
    bool json;
    bool no_symbols;
    bool module_names; /* --unresolved=module: JSON shows them, too */
    struct labels texts;
    uint32_t *hidden; /* by label: the text of the frame in a stack that would hide it by default */
    size_t hidden_capacity;
    struct text_buffer line; /* scratch */
};

void frame_print_init(struct frame_print *p, bool json, const struct tool_options *o);
void frame_print_free(struct frame_print *p);

/* The label hook of shape.h; user is the struct frame_print. */
uint32_t frame_print_label(void *user, const struct out_frame *frame);

/* Prints the frames of an output stack, leaf first: lines, or with JSON a list without its brackets. python: it has a
 * frame of Python's, so that --runtime=show has shown what is else hidden. */
void frame_print_stack(const struct frame_print *p, struct tool_output *out,
                       const struct otree *tree, uint32_t node, bool python);

#endif
