/* SPDX-License-Identifier: MIT */
/* What was counted: samples by label set and stack, merged and put in the order of their first appearance. */
#ifndef TOOLS_CELLS_H
#define TOOLS_CELLS_H

#include <stddef.h>
#include <stdint.h>

struct profile_cell {
    uint32_t set;  /* of labels */
    uint32_t node; /* of the tree of output stacks */
    uint64_t samples;
    uint64_t time_ns;
    uint64_t first; /* number of the first sample among those of all inputs */
};

struct cells {
    struct profile_cell *items;
    size_t count, capacity;
};

/* Frees what starts as {0}. */
void cells_free(struct cells *c);

/* These end the tool without memory. */
void cells_add(struct cells *c, const struct profile_cell *cell);

/* Adds up what has equal set and node, and sorts by first. Sums must fit. */
void cells_merge(struct cells *c);

#endif
