/* SPDX-License-Identifier: MIT */
/*
 * Kernel code that came and went. The question is always for the latest event up to a time that
 * covers an address. Events may overlap in any way, so they are kept in a segment tree: each is
 * in at most 2 log n lists, and an address asks the log n lists between its leaf and the root,
 * each by one binary search.
 */
#include "ksymbol.h"

#include "segments.h"
#include "strtab.h"

#include <stdlib.h>
#include <string.h>

/* Copies what there is to copy, in order of time. */
static int copy_events(struct symint_ksymbols *k, const struct sym_ksymbol *events, size_t count)
{
    size_t names = 0;
    struct symint_pair *order = symint_table_alloc(count, sizeof(*order));
    if (order == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        order[i] = (struct symint_pair){.key = events[i].time, .value = (uint32_t)i};
    if (symint_sort_pairs(order, count) != 0) {
        free(order);
        return SYM_ERR_NOMEM;
    }
    k->events = symint_table_alloc(count, sizeof(*k->events));
    for (size_t i = 0; k->events != NULL && i < count; i++) {
        const struct sym_ksymbol *from = &events[order[i].value];
        struct symint_ksymbol_event *to = &k->events[i];
        *to = (struct symint_ksymbol_event){.time = from->time, .address = from->address};
        to->gone = from->length_bytes == 0;
        to->end = from->length_bytes > UINT64_MAX - from->address
                      ? UINT64_MAX
                      : from->address + from->length_bytes;
        if (!to->gone && from->name != NULL)
            to->name_size = from->name_size > 0 ? from->name_size : strlen(from->name);
        to->name = names;
        names += to->name_size;
    }
    k->names = malloc(names + 1);
    for (size_t i = 0; k->events != NULL && k->names != NULL && i < count; i++)
        if (k->events[i].name_size > 0)
            memcpy(k->names + k->events[i].name, events[order[i].value].name,
                   k->events[i].name_size);
    free(order);
    k->count = count;
    return k->events == NULL || k->names == NULL ? SYM_ERR_NOMEM : 0;
}

/* An end covers what began at its address and has not ended yet. Where nothing did, the code is
 * older than the capture and how far it reached is unknown: the end covers its first byte. */
static int measure_ends(struct symint_ksymbols *k)
{
    struct symint_pair *order = symint_table_alloc(k->count, sizeof(*order));
    if (order == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < k->count; i++)
        order[i] = (struct symint_pair){.key = k->events[i].address, .value = (uint32_t)i};
    int rc = symint_sort_pairs(order, k->count); /* keeps the order of time */
    uint64_t reach = 0;
    for (size_t i = 0; rc == 0 && i < k->count; i++) {
        struct symint_ksymbol_event *e = &k->events[order[i].value];
        if (i == 0 || order[i - 1].key != order[i].key)
            reach = 0;
        if (!e->gone) {
            reach = e->end > reach ? e->end : reach;
        } else {
            e->end = reach > 0 ? reach : e->address + (e->address < UINT64_MAX);
            reach = 0;
        }
    }
    free(order);
    return rc;
}

/* ---- the tree ---- */

static int find_edges(struct symint_ksymbols *k)
{
    struct symint_pair *pairs = symint_table_alloc(k->count, 2 * sizeof(*pairs));
    if (pairs == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < k->count; i++) {
        pairs[2 * i] = (struct symint_pair){.key = k->events[i].address};
        pairs[2 * i + 1] = (struct symint_pair){.key = k->events[i].end};
    }
    int rc = symint_sort_pairs(pairs, 2 * k->count);
    k->edges = symint_table_alloc(2 * k->count, sizeof(*k->edges));
    if (rc == 0 && k->edges != NULL)
        for (size_t i = 0; i < 2 * k->count; i++)
            if (i == 0 || pairs[i].key != pairs[i - 1].key)
                k->edges[k->edge_count++] = pairs[i].key;
    free(pairs);
    return rc != 0 || k->edges == NULL ? SYM_ERR_NOMEM : 0;
}

/* The number of edges up to an address. */
static size_t edges_up_to(const struct symint_ksymbols *k, uint64_t address)
{
    size_t low = 0;
    size_t high = k->edge_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->edges[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Puts an event into the nodes that make up its range, or only counts it there. */
static void enter(struct symint_ksymbols *k, uint32_t event, bool count_only)
{
    const struct symint_ksymbol_event *e = &k->events[event];
    size_t low = edges_up_to(k, e->address) - 1 + k->edge_count;
    size_t high = edges_up_to(k, e->end) - 1 + k->edge_count;
    for (; low < high; low /= 2, high /= 2) {
        size_t nodes[2];
        size_t n = 0;
        if (low % 2 == 1)
            nodes[n++] = low++;
        if (high % 2 == 1)
            nodes[n++] = --high;
        while (n-- > 0) {
            uint64_t *at = &k->first[nodes[n] + 1];
            if (!count_only)
                k->lists[*at] = event;
            ++*at;
        }
    }
}

/* first[n + 1] counts the list of n, then is where the next event of n goes, which in the end is
 * where the list of n + 1 begins. */
static int build_lists(struct symint_ksymbols *k)
{
    size_t nodes = 2 * k->edge_count;
    k->first = symint_table_alloc(nodes + 1, sizeof(*k->first));
    if (k->first == NULL)
        return SYM_ERR_NOMEM;
    memset(k->first, 0, (nodes + 1) * sizeof(*k->first));
    for (size_t i = 0; i < k->count; i++)
        enter(k, (uint32_t)i, true);
    uint64_t sum = 0;
    for (size_t n = 0; n < nodes; n++) {
        uint64_t here = k->first[n + 1];
        k->first[n + 1] = sum;
        sum += here;
    }
    if (sum > SIZE_MAX)
        return SYM_ERR_NOMEM;
    k->lists = symint_table_alloc((size_t)sum, sizeof(*k->lists));
    if (k->lists == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < k->count; i++)
        enter(k, (uint32_t)i, false);
    return 0;
}

int symint_ksymbols_build(struct symint_ksymbols *k, const struct sym_ksymbol *events, size_t count)
{
    *k = (struct symint_ksymbols){0};
    if (count == 0)
        return 0;
    if (count > UINT32_MAX / 2)
        return SYM_ERR_NOMEM;
    int rc = copy_events(k, events, count);
    if (rc == 0)
        rc = measure_ends(k);
    if (rc == 0)
        rc = find_edges(k);
    if (rc == 0)
        rc = build_lists(k);
    if (rc != 0)
        symint_ksymbols_free(k);
    return rc;
}

void symint_ksymbols_free(struct symint_ksymbols *k)
{
    free(k->events);
    free(k->names);
    free(k->edges);
    free(k->first);
    free(k->lists);
    *k = (struct symint_ksymbols){0};
}

/* The number of events up to a time. */
static size_t events_up_to(const struct symint_ksymbols *k, uint64_t time)
{
    size_t low = 0;
    size_t high = k->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->events[middle].time <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum symint_ksymbol_answer symint_ksymbols_find(const struct symint_ksymbols *k, uint64_t address,
                                                uint64_t time, uint32_t *event)
{
    size_t edges = edges_up_to(k, address);
    size_t known = 0; /* the latest event found, plus one */
    bool touched = false;
    if (edges == 0)
        return SYMINT_KSYMBOL_UNTOUCHED;
    size_t limit = events_up_to(k, time);
    for (size_t node = edges - 1 + k->edge_count; node > 0; node /= 2) {
        uint64_t low = k->first[node];
        uint64_t high = k->first[node + 1];
        touched |= low < high;
        while (low < high) {
            uint64_t middle = low + (high - low) / 2;
            if (k->lists[middle] < limit) {
                known = k->lists[middle] >= known ? (size_t)k->lists[middle] + 1 : known;
                low = middle + 1;
            } else {
                high = middle;
            }
        }
    }
    if (!touched)
        return SYMINT_KSYMBOL_UNTOUCHED;
    if (known == 0 || k->events[known - 1].name_size == 0)
        return SYMINT_KSYMBOL_NOTHING;
    *event = (uint32_t)(known - 1);
    return SYMINT_KSYMBOL_NAMED;
}
