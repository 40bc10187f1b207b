/* SPDX-License-Identifier: MIT */
/*
 * Profiles without time: the distinct stacks of several threads, each once with its sum, in the order of frame indexes
 * from the root on.
 */
#ifndef TOOLS_OVERVIEW_H
#define TOOLS_OVERVIEW_H

#include "json.h"
#include "ss_frames.h"
#include "stacks.h"

/* Samples with one stack of the tree; a number that does not fit goes on in the next entry. */
struct overview_cell {
    uint32_t node;
    uint32_t samples;
};

/* Cells of one source. */
struct overview_part {
    uint32_t input;
    uint32_t source;
    uint32_t thread; /* names_thread, if sources are threads */
    int32_t pid;
    uint32_t root;        /* label of the process */
    uint64_t interval_ns; /* of the input */
    uint64_t samples;
    size_t begin; /* in cells, up to the next part */
};

struct overview {
    struct overview_part *parts;
    size_t part_count, part_capacity;
    struct overview_cell *cells;
    size_t cell_count, cell_capacity;
    bool several_processes;
    /* After overview_rank: nodes by the order of their stacks, and the other way round. */
    uint32_t *rank, *by_rank;
    struct text_buffer text; /* scratch */
};

/* A distinct stack. */
struct overview_entry {
    uint32_t root; /* SS_NO_LABEL: none */
    uint32_t rank;
    uint64_t weight;
};

/* The content of a profile. */
struct overview_list {
    struct overview_entry *entries;
    size_t count, capacity;
    uint64_t total;
};

/* Starts as {0}. */
void overview_free(struct overview *o);

/* Takes in what is added to the tree; cells of a source come behind each other. Ends the tool without memory, as do all
 * below. */
void overview_add(struct overview *o, struct ss_frames *frames, const struct stacks_cell *cell);

/* Once the tree is complete. */
void overview_rank(struct overview *o, const struct otree *tree);

/* Adds the parts up that `takes` (NULL: all) wants, as nanoseconds if `time`. *list starts as {0}; free its entries
 * with free(). False when a number reaches 2^53. */
bool overview_list(const struct overview *o, const struct otree *tree, bool time,
                   bool (*takes)(const void *user, const struct overview_part *part),
                   const void *user, struct overview_list *list);

/* Which frames a list has beside those of the tree, by label. */
void overview_mark_roots(const struct overview_list *list, bool *used);

/* Writes samples and weights, the last members of a profile. */
void overview_write(const struct overview *o, const struct overview_list *list,
                    const struct otree *tree, struct ss_frames *frames, struct json_writer *w);

#endif
