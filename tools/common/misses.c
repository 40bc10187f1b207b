/* SPDX-License-Identifier: MIT */
/* Charging samples to unnamed modules by one walk over the forest of stacks, whatever its depth. */
#include "misses.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define NO_NODE UINT32_MAX

void misses_init(struct misses *m, const struct spool_counts *counts)
{
    memset(m, 0, sizeof *m);
    m->place_count = counts->modules + 2;
    m->samples = cli_zeroed(m->place_count, sizeof *m->samples);
    m->reasons = cli_zeroed(m->place_count, sizeof *m->reasons);
    m->unverified = cli_zeroed(m->place_count, sizeof *m->unverified);
    m->active = cli_zeroed(m->place_count, sizeof *m->active);
    m->node_samples = cli_zeroed(counts->stacks, sizeof *m->node_samples);
    m->first_child = cli_zeroed(counts->stacks, sizeof *m->first_child);
    m->next_sibling = cli_zeroed(counts->stacks, sizeof *m->next_sibling);
}

void misses_free(struct misses *m)
{
    free(m->samples);
    free(m->reasons);
    free(m->unverified);
    free(m->active);
    free(m->node_samples);
    free(m->first_child);
    free(m->next_sibling);
    free(m->visited);
}

void misses_visit(struct misses *m, uint32_t node, uint32_t prefix)
{
    if (m->visited_count == m->visited_capacity) {
        m->visited_capacity = m->visited_capacity ? m->visited_capacity * 2 : 1024;
        m->visited = cli_realloc(m->visited, m->visited_capacity, sizeof *m->visited);
    }
    m->visited[m->visited_count++] = node;
    m->node_samples[node] = 0;
    m->first_child[node] = NO_NODE;
    m->next_sibling[node] = NO_NODE;
    if (prefix != SPOOL_NO_ID) {
        m->next_sibling[node] = m->first_child[prefix];
        m->first_child[prefix] = node;
    }
}

struct walk {
    struct misses *m;
    misses_place_fn *place;
    void *user;
};

static void enter(const struct walk *w, uint32_t node)
{
    enum sym_miss reason = SYM_MISS_NONE;
    uint32_t place = w->place(w->user, node, &reason);

    if (place == MISSES_NONE)
        return;
    if (w->m->active[place]++ > 0)
        return; /* a frame nearer to the root has charged the whole subtree */
    if (w->m->samples[place] == 0)
        w->m->reasons[place] = (uint8_t)reason;
    w->m->samples[place] += w->m->node_samples[node];
}

static void leave(const struct walk *w, uint32_t node)
{
    enum sym_miss reason;
    uint32_t place = w->place(w->user, node, &reason);

    if (place != MISSES_NONE)
        w->m->active[place]--;
}

/* Depth first from a root, without a stack: the way back is in the prefixes. */
static void walk_tree(const struct walk *w, const struct spool_stack_node *nodes, uint32_t root)
{
    uint32_t at = root;

    enter(w, at);
    for (;;) {
        if (w->m->first_child[at] != NO_NODE) {
            at = w->m->first_child[at];
            enter(w, at);
            continue;
        }
        for (; at != root && w->m->next_sibling[at] == NO_NODE; at = nodes[at].prefix)
            leave(w, at);
        leave(w, at);
        if (at == root)
            return;
        at = w->m->next_sibling[at];
        enter(w, at);
    }
}

void misses_charge(struct misses *m, const struct spool_stack_node *nodes, misses_place_fn *place,
                   void *user)
{
    struct walk w = {.m = m, .place = place, .user = user};

    for (size_t i = m->visited_count; i-- > 0;) {
        uint32_t node = m->visited[i];

        if (nodes[node].prefix != SPOOL_NO_ID)
            m->node_samples[nodes[node].prefix] += m->node_samples[node];
    }
    for (size_t i = 0; i < m->visited_count; i++)
        if (nodes[m->visited[i]].prefix == SPOOL_NO_ID)
            walk_tree(&w, nodes, m->visited[i]);
    m->visited_count = 0;
}
