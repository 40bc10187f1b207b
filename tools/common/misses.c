/* SPDX-License-Identifier: MIT */
/* Charging samples to unnamed modules by one walk over the forest of stacks, whatever its depth. */
#include "misses.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define NO_NODE UINT32_MAX

/* ---- places ---- */

static int compare_bytes(const void *a, size_t a_size, const void *b, size_t b_size)
{
    size_t size = a_size < b_size ? a_size : b_size;
    int order = size ? memcmp(a, b, size) : 0;

    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_modules(const struct misses_module *a, const struct misses_module *b)
{
    int order = compare_bytes(a->path, a->path_size, b->path, b->path_size);

    if (order == 0)
        order = compare_bytes(a->build_id, a->build_id_size, b->build_id, b->build_id_size);
    if (order == 0)
        order = (a->pid > b->pid) - (a->pid < b->pid);
    if (order == 0)
        order = a->kernel - b->kernel;
    return order ? order : a->jit - b->jit;
}

/* Equal ones in the order of their ids, which is that of their addresses. */
static int compare_references(const void *a, const void *b)
{
    const struct misses_module *const *x = a, *const *y = b;
    int order = compare_modules(*x, *y);

    return order ? order : (*x > *y) - (*x < *y);
}

static void find_places(uint32_t *places, const struct misses_module *modules, uint32_t count)
{
    const struct misses_module **sorted = cli_realloc(NULL, count, sizeof *sorted);

    for (uint32_t id = 0; id < count; id++)
        sorted[id] = &modules[id];
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, compare_references);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)(sorted[i] - modules);
        bool same = i > 0 && compare_modules(sorted[i], sorted[i - 1]) == 0;

        places[id] = same ? places[sorted[i - 1] - modules] : id;
    }
    free(sorted);
}

void misses_init(struct misses *m, const struct spool_counts *counts,
                 const struct misses_module *modules)
{
    memset(m, 0, sizeof *m);
    m->place_count = counts->modules + 2;
    m->places = cli_zeroed(m->place_count, sizeof *m->places);
    find_places(m->places, modules, counts->modules);
    m->places[misses_kernel(m)] = misses_kernel(m);
    m->places[misses_no_module(m)] = misses_no_module(m);
    m->samples = cli_zeroed(m->place_count, sizeof *m->samples);
    m->charged = cli_zeroed(m->place_count, sizeof *m->charged);
    m->reasons = cli_zeroed(m->place_count, sizeof *m->reasons);
    m->unverified = cli_zeroed(m->place_count, sizeof *m->unverified);
    m->active = cli_zeroed(m->place_count, sizeof *m->active);
    m->node_samples = cli_zeroed(counts->stacks, sizeof *m->node_samples);
    m->first_child = cli_zeroed(counts->stacks, sizeof *m->first_child);
    m->next_sibling = cli_zeroed(counts->stacks, sizeof *m->next_sibling);
}

void misses_free(struct misses *m)
{
    free(m->places);
    free(m->samples);
    free(m->charged);
    free(m->reasons);
    free(m->unverified);
    free(m->active);
    free(m->node_samples);
    free(m->first_child);
    free(m->next_sibling);
    free(m->visited);
}

/* ---- charging ---- */

void misses_visit(struct misses *m, uint32_t node, uint32_t prefix)
{
    m->visited = cli_grow(m->visited, &m->visited_capacity, m->visited_count, sizeof *m->visited);
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
    uint32_t place, module = w->place(w->user, node, &reason);

    if (module == MISSES_NONE)
        return;
    place = w->m->places[module];
    if (w->m->active[place]++ > 0)
        return; /* a frame nearer to the root has charged the whole subtree */
    if (w->m->samples[place] == 0) {
        w->m->charged[place] = module;
        w->m->reasons[place] = (uint8_t)reason;
    }
    w->m->samples[place] += w->m->node_samples[node];
}

static void leave(const struct walk *w, uint32_t node)
{
    enum sym_miss reason;
    uint32_t module = w->place(w->user, node, &reason);

    if (module != MISSES_NONE)
        w->m->active[w->m->places[module]]--;
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
