/* SPDX-License-Identifier: MIT */
/*
 * The output stacks as one tree, root first: a node is a stack that ends in its label, its weight what was counted for
 * exactly that stack. Equal output stacks are one node, whatever they were in the inputs.
 */
#ifndef TOOLS_OTREE_H
#define TOOLS_OTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spread.h"

#define OTREE_ROOT 0u /* the empty stack */

struct otree_node {
    uint32_t parent;
    uint32_t label; /* the caller's number of a frame; UINT32_MAX at the root */
};

struct otree {
    struct otree_node *nodes;
    uint64_t *weights;
    uint32_t count;
    uint64_t limit; /* of count */
    size_t capacity;
    uint32_t *slots; /* open hash of (parent, label): a node, or 0, which is nobody's child: free */
    size_t slot_count;
    struct spread spread;
    uint64_t total; /* sum of all weights */
    bool overflow;  /* it went beyond 2^63-1 */
};

/* All end the tool without memory. */
void otree_init(struct otree *t);

/* A deep stack below each of many names is as many nodes as one is deep times the other many, however small the file:
 * for each of this many nodes of it the tree may have some hundred, beside some millions. Beyond that the tool ends. */
void otree_allow(struct otree *t, uint64_t nodes);
void otree_free(struct otree *t);

/* The child of a node for a label, made when it is new. */
uint32_t otree_child(struct otree *t, uint32_t parent, uint32_t label);

void otree_add(struct otree *t, uint32_t node, uint64_t weight);

#endif
