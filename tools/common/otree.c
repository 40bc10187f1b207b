/* SPDX-License-Identifier: MIT */
/* The tree of output stacks: an append-only array of nodes and a hash that finds children. */
#include "otree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define FREE_NODES ((uint64_t)1 << 24)
/* Of a file's stack nodes: inlined calls, processes and threads of one name each. */
#define NODES_EACH 256

static size_t slot_of(const struct otree *t, uint32_t parent, uint32_t label)
{
    return (size_t)spread_number(&t->spread, (uint64_t)parent << 32 | label) & (t->slot_count - 1);
}

static void grow_nodes(struct otree *t)
{
    t->capacity = t->capacity ? t->capacity + t->capacity / 2 : 1024;
    t->nodes = cli_realloc(t->nodes, t->capacity, sizeof *t->nodes);
    t->weights = cli_realloc(t->weights, t->capacity, sizeof *t->weights);
}

static void grow_slots(struct otree *t)
{
    t->slot_count *= 2;
    free(t->slots);
    t->slots = cli_zeroed(t->slot_count, sizeof *t->slots);
    for (uint32_t id = 1; id < t->count; id++) {
        size_t i = slot_of(t, t->nodes[id].parent, t->nodes[id].label);

        while (t->slots[i])
            i = (i + 1) & (t->slot_count - 1);
        t->slots[i] = id;
    }
}

void otree_init(struct otree *t)
{
    memset(t, 0, sizeof *t);
    t->spread = spread_new();
    grow_nodes(t);
    t->nodes[OTREE_ROOT] = (struct otree_node){.parent = OTREE_ROOT, .label = UINT32_MAX};
    t->weights[OTREE_ROOT] = 0;
    t->count = 1;
    t->limit = FREE_NODES;
    t->slot_count = 1024;
    grow_slots(t);
}

void otree_allow(struct otree *t, uint64_t nodes)
{
    t->limit += nodes * NODES_EACH;
    if (t->limit > UINT32_MAX)
        t->limit = UINT32_MAX;
}

static _Noreturn void end_too_large(const struct otree *t)
{
    cli_error("the stacks come to more than %" PRIu32 " frames that differ in what is before them: "
              "leave some out, by --pid, --from or --to",
              t->count);
    exit(EXIT_FAILED);
}

void otree_free(struct otree *t)
{
    free(t->nodes);
    free(t->weights);
    free(t->slots);
    memset(t, 0, sizeof *t);
}

uint32_t otree_child(struct otree *t, uint32_t parent, uint32_t label)
{
    size_t i = slot_of(t, parent, label);
    uint32_t id;

    for (; (id = t->slots[i]) != 0; i = (i + 1) & (t->slot_count - 1))
        if (t->nodes[id].parent == parent && t->nodes[id].label == label)
            return id;
    if (t->count >= t->limit)
        end_too_large(t);
    if (t->count == t->capacity)
        grow_nodes(t);
    id = t->count++;
    t->nodes[id] = (struct otree_node){.parent = parent, .label = label};
    t->weights[id] = 0;
    t->slots[i] = id;
    if ((size_t)t->count * 3 > t->slot_count * 2)
        grow_slots(t);
    return id;
}

void otree_add(struct otree *t, uint32_t node, uint64_t weight)
{
    if (weight > INT64_MAX || t->total > INT64_MAX - weight) {
        t->overflow = true;
        return;
    }
    t->total += weight;
    t->weights[node] += weight;
}
