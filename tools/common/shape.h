/* SPDX-License-Identifier: MIT */
/*
 * From a stack node of one input to its node in the output tree: frames resolved and named once, dropped, cut, folded
 * and limited as the shaping options say. The nodes of a spool are a forest of shared prefixes already, and every
 * option but the last can be decided from the root on, so each node is visited once a source however deep it lies.
 */
#ifndef TOOLS_SHAPE_H
#define TOOLS_SHAPE_H

#include "frames.h"
#include "labels.h"
#include "misses.h"
#include "names.h"
#include "options.h"
#include "otree.h"
#include "report.h"
#include "symbols.h"

/* What a converter says about frames (stacks.h has the whole). */
struct shape_hooks {
    void *user;
    uint32_t (*label)(void *user, const struct out_frame *frame);
    uint32_t (*first_label)(void *user, uint32_t label); /* NULL: the same */
};

/* A frame of a chain of inlined functions, innermost first. */
struct chain_frame {
    uint32_t label;
    uint32_t flags;    /* FRAME_*, and the end of the chain */
    uint32_t identity; /* with --fold-recursion: equal for equal name and module; else 0 */
};

struct chain_store {
    struct chain_frame *items;
    size_t count, capacity;
};

struct shaper {
    const struct shape_options *options;
    struct shape_hooks hooks;
    struct otree *tree;
    struct symbols *symbols;
    struct frame_names *names; /* scratch */
    struct input_report *report;
    const struct spool_stack_node *nodes;
    struct misses *misses; /* NULL: not wanted */

    struct chain_store shared;  /* chains that are the same in every source, ... */
    struct chain_store own;     /* ... those of the process at hand, ... */
    struct chain_store passing; /* ... and those of the kernel epoch at hand */
    uint32_t *frame_chain;      /* by frame: index of its chain */
    uint32_t *frame_context;    /* by frame: for whom frame_chain is right */
    uint32_t shared_context;    /* everybody */
    uint32_t *frame_place;      /* with misses, by frame: where it lies without a name */
    uint8_t *frame_reason;      /* with misses, by frame: enum sym_miss */
    uint32_t *stack_process;    /* with misses, by stack: the context it was counted for last */
    uint32_t context;           /* the process at hand */
    uint32_t epoch_context;     /* the kernel epoch at hand */
    uint32_t last_context;
    struct source source;
    uint32_t root; /* node of the source's root frames */

    struct node_memo *memo;           /* by stack node */
    struct node_extra *extra;         /* with --max-depth or --fold-recursion, by stack node */
    struct labels identities;         /* with --fold-recursion */
    struct text_buffer identity_text; /* scratch */
    size_t frame_capacity, stack_capacity;
    uint32_t stamp;       /* of memos that hold for all sources of a group ... */
    uint32_t epoch_stamp; /* ... and of those with a frame that depends on the kernel epoch */
    uint32_t last_stamp;
    uint32_t *path; /* scratch */
    size_t path_capacity;
};

/* What *has of shape_stack says about a stack. */
enum {
    SHAPE_HAS_KERNEL = 1 << 0,    /* a frame of the kernel */
    SHAPE_HAS_TRUNCATED = 1 << 1, /* the marker */
    SHAPE_WAS_LIMITED = 1 << 2,   /* --max-depth left frames out */
    SHAPE_HAS_PYTHON = 1 << 3     /* Python's: the interpreter's own are hidden then, if at all */
};

/* Whether these options deselect samples by their stacks. */
static inline bool shape_deselects(const struct shape_options *o)
{
    return o->kernel == KERNEL_ONLY || o->has_frame_filter;
}

/* All end the tool without memory. Options, tree, symbols, names, report, misses and nodes must outlive it. */
void shape_init(struct shaper *h, const struct spool_counts *counts);
void shape_free(struct shaper *h);

/* For inputs that are shaped while they are read: there are more frames and stacks by now, and the nodes lie elsewhere.
 * Not with misses. */
void shape_extend(struct shaper *h, const struct spool_counts *counts,
                  const struct spool_stack_node *nodes);

/* Other names have become known: forgets what frames are called, so that they are resolved anew. A source must begin
 * then, as another process. */
void shape_forget(struct shaper *h);

/* Begins a source. `other_process`: its frames may resolve differently from those of the source before. What another
 * kernel epoch changes is seen here. */
void shape_source(struct shaper *h, const struct source *source, uint32_t root, bool other_process);

/* The output node of a stack of the source at hand: 1 and *node, *has; 0 when the options deselect it; -1 after an
 * error message. */
int shape_stack(struct shaper *h, uint32_t stack, uint32_t *node, uint32_t *has);

/* Counts a shaped stack of the source at hand for the report: once a process, whatever its threads. */
void shape_count(struct shaper *h, uint32_t stack, uint32_t has, uint64_t samples);

/* With misses: charges what was counted for the source at hand. */
void shape_charge_misses(struct shaper *h);

#endif
