/* SPDX-License-Identifier: MIT */
/*
 * For --verbose: how many samples each file without names cost. A sample is charged once to every module of which its
 * stack has an unnamed frame. Stacks share prefixes, so the samples of whole subtrees are charged at once.
 */
#ifndef TOOLS_MISSES_H
#define TOOLS_MISSES_H

#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"
#include "spool/sym.h"

/* Where a frame without a name lies: a module id, or one of the two places behind the last. */
#define MISSES_NONE UINT32_MAX

struct misses {
    uint32_t place_count; /* modules + 2 */
    uint64_t *samples;    /* by place: the result */
    uint8_t *reasons;     /* by place: enum sym_miss of the first frame */
    uint8_t *unverified;  /* by place: a name of it may be another build's */
    uint32_t *active;     /* by place: frames of it on the path at hand */
    /* The forest of the nodes of the source at hand. */
    uint64_t *node_samples; /* by node; sums of subtrees later */
    uint32_t *first_child, *next_sibling;
    uint32_t *visited;
    size_t visited_count, visited_capacity;
};

static inline uint32_t misses_kernel(const struct misses *m)
{
    return m->place_count - 2;
}

static inline uint32_t misses_no_module(const struct misses *m)
{
    return m->place_count - 1;
}

/* Ends the tool without memory. */
void misses_init(struct misses *m, const struct spool_counts *counts);
void misses_free(struct misses *m);

/* A node of the source at hand; its prefix was visited before it. */
void misses_visit(struct misses *m, uint32_t node, uint32_t prefix);

/* Samples of exactly this stack. */
static inline void misses_count(struct misses *m, uint32_t node, uint64_t count)
{
    m->node_samples[node] += count;
}

/* Where the frames of a node lie that have no name (a chain of inlined frames lies in one module), and why it has
 * none; MISSES_NONE when they are named. */
typedef uint32_t misses_place_fn(void *user, uint32_t node, enum sym_miss *reason);

/* Charges the samples counted since the last call and forgets the forest. */
void misses_charge(struct misses *m, const struct spool_stack_node *nodes, misses_place_fn *place,
                   void *user);

#endif
