/* SPDX-License-Identifier: MIT */
/*
 * For --verbose: how many samples each file without names cost. A sample is charged once to every file of which its
 * stack has an unnamed frame, however many modules it is. Stacks share prefixes, so the samples of whole subtrees are
 * charged at once.
 */
#ifndef TOOLS_MISSES_H
#define TOOLS_MISSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"
#include "spool/sym.h"

/* Where a frame without a name lies: a module id, or one of the two numbers behind the last. */
#define MISSES_NONE UINT32_MAX

/* What makes modules one place: all of it is equal. */
struct misses_module {
    const char *path; /* borrowed, as is the build id */
    size_t path_size;
    const uint8_t *build_id;
    size_t build_id_size; /* 0: unknown */
    int32_t pid;          /* of generated code, which is another one in each process; else 0 */
    bool kernel, jit;
};

struct misses {
    /* A place is the first of its module ids, or kernel or no module: modules + 2 of them. */
    uint32_t place_count;
    uint32_t *places;    /* by module id and the two numbers behind */
    uint64_t *samples;   /* by place: the result */
    uint32_t *charged;   /* by place with samples: the module whose frame was the first */
    uint8_t *reasons;    /* by place: enum sym_miss of that frame */
    uint8_t *unverified; /* by place: a name of it may be another build's */
    uint32_t *active;    /* by place: frames of it on the path at hand */
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

/* modules: counts->modules of them, needed during the call only. Ends the tool without memory. */
void misses_init(struct misses *m, const struct spool_counts *counts,
                 const struct misses_module *modules);
void misses_free(struct misses *m);

/* A node of the source at hand; its prefix was visited before it. */
void misses_visit(struct misses *m, uint32_t node, uint32_t prefix);

/* Samples of exactly this stack. */
static inline void misses_count(struct misses *m, uint32_t node, uint64_t count)
{
    m->node_samples[node] += count;
}

/* A name in this module, or in the kernel, may be another build's. */
static inline void misses_unverified(struct misses *m, uint32_t module)
{
    m->unverified[m->places[module]] = 1;
}

/* Where the frames of a node lie that have no name (a chain of inlined frames lies in one module), and why it has
 * none; MISSES_NONE when they are named. */
typedef uint32_t misses_place_fn(void *user, uint32_t node, enum sym_miss *reason);

/* Charges the samples counted since the last call and forgets the forest. */
void misses_charge(struct misses *m, const struct spool_stack_node *nodes, misses_place_fn *place,
                   void *user);

#endif
