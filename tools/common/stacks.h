/* SPDX-License-Identifier: MIT */
/*
 * The pipeline that every converter shares: read, select, resolve, shape, aggregate. One (source, stack) is resolved
 * once, whatever the number of its samples. The result is a tree of output stacks with weights; a converter says what
 * makes two frames equal by giving out their labels, and writes the tree. Where time order is wanted, the samples of
 * each thread (or of each input) can be walked afterwards as nodes of that tree.
 */
#ifndef TOOLS_STACKS_H
#define TOOLS_STACKS_H

#include "aggregate.h"
#include "frames.h"
#include "hints.h"
#include "inputs.h"
#include "names.h"
#include "options.h"
#include "otree.h"
#include "progress.h"
#include "shape.h"
#include "symbols.h"

/* What the weights of the tree are. */
enum stacks_weight {
    STACKS_SAMPLES = 0,
    STACKS_TIME_NS /* an input that states no interval is an error then */
};

/* An input that was read to its end. */
struct stacks_input {
    uint32_t index; /* among the inputs, from 0 */
    const struct tool_input *input;
    struct spool_reader *reader;
    /* Notes, names and selected times; its cells are the business of stacks.c. */
    const struct aggregate *aggregate;
    uint64_t interval_ns;   /* 0: not stated */
    bool salvaged;          /* --salvage: read up to damage ... */
    uint64_t damage_offset; /* ... which begins at this byte */
};

/* Samples of one source with the same stack. */
struct stacks_cell {
    const struct stacks_input *input;
    uint32_t source;
    uint32_t node;    /* of the tree */
    uint32_t has;     /* SHAPE_* */
    uint64_t samples; /* >= 1 */
    uint64_t first;   /* with options.order: which of the input's selected samples was the first */
};

/* What a converter contributes. Hooks may be NULL but for label. */
struct stacks_hooks {
    void *user;
    /* An input was read, and is not added yet: with time order all inputs are read before the first is added, else each
     * is added before the next is read. 0, or -1 after an error message. */
    int (*input)(void *user, const struct stacks_input *input);
    /* The frames and cells from here on are those of this input. */
    void (*begin)(void *user, const struct stacks_input *input);
    /* The label of an output frame: equal numbers are one frame in the document. Called once for each resolved frame.
     */
    uint32_t (*label)(void *user, const struct out_frame *frame);
    /* The node below which the stacks of a source go, e.g. root frames for process and thread. NULL: OTREE_ROOT. */
    uint32_t (*root)(void *user, struct otree *tree, const struct source *source);
    /* Another label for a frame that comes to stand directly below OTREE_ROOT. NULL: the same. */
    uint32_t (*first_label)(void *user, uint32_t label);
    /* What is added to the tree, in the order of adding: sources of a process behind each other. */
    void (*cell)(void *user, const struct stacks_cell *cell);
};

struct stacks_options {
    enum stacks_weight weight;
    bool per_thread; /* sources are threads; implied by --thread and by runs of threads */
    bool order;      /* cells know their first sample */
    enum aggregate_runs runs;
};

struct stacks_file;

struct stacks {
    const struct tool_options *options;
    struct stacks_hooks hooks;
    struct stacks_options how;
    struct symbols *symbols;
    struct otree tree;
    struct frame_names frame_names;
    struct stacks_file *files; /* with runs: all inputs, till stacks_free */
    size_t file_count;
    size_t run_bytes;                /* with runs: memory of those of all inputs */
    struct progress progress;        /* until the report, or stacks_free */
    struct hints hints;              /* of all inputs */
    struct text_buffer report_lines; /* with --verbose */
};

/* 0, or -1 after an error message. options must outlive *s. */
int stacks_init(struct stacks *s, const struct tool_options *options,
                const struct stacks_hooks *hooks, const struct stacks_options *how);
void stacks_free(struct stacks *s);

/* The whole run of a converter up to the writing: opens, reads and adds every input, with progress. 0, or -1 after an
 * error message: nothing may be written then. */
int stacks_run(struct stacks *s);

/* When all is written: ends the progress and prints the report of --verbose. */
void stacks_print_report(struct stacks *s);

/* ---- time order: after stacks_run with options.runs ---- */

/* A thread of an input with samples that count. */
struct stacks_thread {
    const struct stacks_input *input;
    uint32_t number; /* names_thread; 0 with AGGREGATE_EVENTS */
    int32_t pid;
    uint64_t tid;
    uint64_t first_ns;    /* of its samples */
    uint32_t last_source; /* the one that was seen last: what the thread is called in the end */
};

/* The threads of all inputs: inputs in order, threads by first sample, process and thread id. *count of them; to be
 * freed with free(). With AGGREGATE_EVENTS one an input that has samples. */
struct stacks_thread *stacks_threads(const struct stacks *s, size_t *count);

/* A number of samples in a row with one output stack. */
struct stacks_run {
    uint64_t time_ns; /* of the first */
    uint32_t node;
    uint32_t source;
    uint32_t count;
};

/* Runs are fetched some at a time: what belongs to them lies all over the memory and arrives together then. */
#define STACKS_WALK_BATCH 32

/* The walk over the samples of one thread in time order. */
struct stacks_walk {
    const struct otree *tree;
    struct stacks_file *file;
    struct run_cursor cursor;
    struct stacks_run batch[STACKS_WALK_BATCH];
    uint32_t at, count; /* of the batch */
    bool one_source;    /* the output nodes of its stacks lie in a table */
};

/* 0, or -1 after an error message. stacks_walk_end in any case. One walk an input at a time. */
int stacks_walk_begin(struct stacks_walk *w, const struct stacks *s,
                      const struct stacks_thread *thread);
/* The next run; false at the end. Deselected samples are left out. Neighbours may have the same node. */
bool stacks_walk_next(struct stacks_walk *w, struct stacks_run *run);
void stacks_walk_end(struct stacks_walk *w);

#endif
