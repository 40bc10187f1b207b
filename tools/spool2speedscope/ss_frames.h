/* SPDX-License-Identifier: MIT */
/*
 * The frames of a speedscope document, which are told apart by name and file, and stacks as lists of their indexes.
 * A frame has a label from its first sight on, and an index once it is known which ones the document uses.
 */
#ifndef TOOLS_SS_FRAMES_H
#define TOOLS_SS_FRAMES_H

#include "frames.h"
#include "json.h"
#include "labels.h"
#include "otree.h"
#include "text.h"

#define SS_NO_LABEL UINT32_MAX

/* Frames of a stack, what stands for omitted ones not counted: the renderer of speedscope fails at twice as many. */
#define SS_MAX_DEPTH 2000

struct ss_frame {
    uint32_t file; /* in files; SS_NO_LABEL: none */
    uint32_t line; /* 0: unknown */
};

/* ",INDEX" as the last `size` bytes of text. */
struct ss_index {
    uint8_t size;
    char text[15];
};

struct ss_frames {
    struct labels keys; /* the name, a line break, and the label of the file */
    struct labels files;
    struct ss_frame *frames; /* by label */
    size_t frame_capacity;
    struct ss_index *indexes; /* by label; size 0: not in the document */
    struct text_buffer key;   /* scratch */
    struct text_buffer file;  /* scratch */
    char *stack_text;         /* scratch */
};

/* Both end the tool without memory, as do all below. */
void ss_frames_init(struct ss_frames *f);
void ss_frames_free(struct ss_frames *f);

/* The label of a frame. The first start line that any frame of one name and file states counts for all. */
uint32_t ss_frames_label(struct ss_frames *f, const struct out_frame *frame);

/* The label of a frame that is no code; name is clean. */
uint32_t ss_frames_root(struct ss_frames *f, const char *name, size_t size);

/* Which frames the document has: all in stacks with a weight, and those that `used` names by label. Indexes are in the
 * order of labels. */
void ss_frames_number(struct ss_frames *f, const struct otree *tree, const bool *used);

/* The list of indexes of a stack, root first: "[3,17,4]". root: label of a frame in front, or SS_NO_LABEL. The tree's
 * stacks have at most SS_MAX_DEPTH + 1 frames. Valid until the next call. */
const char *ss_frames_stack(struct ss_frames *f, const struct otree *tree, uint32_t root,
                            uint32_t node, size_t *size);

/* Writes the array of frames. */
void ss_frames_write(const struct ss_frames *f, struct json_writer *w);

/* The digits of an index. */
static inline const char *ss_frames_index(const struct ss_frames *f, uint32_t label, size_t *size)
{
    const struct ss_index *i = &f->indexes[label];

    *size = i->size - 1u;
    return i->text + sizeof i->text - *size;
}

#endif
