/* SPDX-License-Identifier: MIT */
/* Sorted twice by radix: millions of cells, whose keys have few significant bits. */
#include "cells.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define DIGIT_BITS 12
#define DIGITS ((size_t)1 << DIGIT_BITS)

void cells_free(struct cells *c)
{
    free(c->items);
    memset(c, 0, sizeof *c);
}

void cells_add(struct cells *c, const struct profile_cell *cell)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? c->capacity + c->capacity / 2 : 1024;
        c->items = cli_realloc(c->items, c->capacity, sizeof *c->items);
    }
    c->items[c->count++] = *cell;
}

/* A key has 64 bits in all, of which few vary. */
struct cell_order {
    bool by_stack;       /* by set and node, else by first */
    uint64_t node_limit; /* nodes are below */
};

static inline uint64_t key_of(const struct profile_cell *cell, const struct cell_order *order)
{
    return order->by_stack ? cell->set * order->node_limit + cell->node : cell->first;
}

/* Sorts by one digit of the key from one array to the other. */
static void scatter(const struct profile_cell *from, struct profile_cell *to, size_t count,
                    const struct cell_order *order, unsigned shift)
{
    size_t *begin = cli_zeroed(DIGITS, sizeof *begin), at = 0;

    for (size_t i = 0; i < count; i++)
        begin[key_of(&from[i], order) >> shift & (DIGITS - 1)]++;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t size = begin[digit];

        begin[digit] = at;
        at += size;
    }
    for (size_t i = 0; i < count; i++)
        to[begin[key_of(&from[i], order) >> shift & (DIGITS - 1)]++] = from[i];
    free(begin);
}

/* *other is as large as the items, and may be swapped with them. */
static void sort(struct cells *c, struct profile_cell **other, const struct cell_order *order)
{
    uint64_t varying = 0;

    for (size_t i = 0; i < c->count; i++)
        varying |= key_of(&c->items[i], order) ^ key_of(&c->items[0], order);
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        struct profile_cell *sorted = *other;

        if ((varying >> shift & (DIGITS - 1)) == 0)
            continue;
        scatter(c->items, sorted, c->count, order, shift);
        *other = c->items;
        c->items = sorted;
    }
}

static void add_up(struct cells *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->count; i++) {
        struct profile_cell *last = kept > 0 ? &c->items[kept - 1] : NULL;

        if (!last || last->node != c->items[i].node || last->set != c->items[i].set) {
            c->items[kept++] = c->items[i];
            continue;
        }
        last->samples += c->items[i].samples;
        last->time_ns += c->items[i].time_ns;
        if (c->items[i].first < last->first)
            last->first = c->items[i].first;
    }
    c->count = kept;
}

void cells_merge(struct cells *c)
{
    struct cell_order order = {.by_stack = true};
    struct profile_cell *other = cli_realloc(NULL, c->count, sizeof *other);

    for (size_t i = 0; i < c->count; i++)
        if (c->items[i].node >= order.node_limit)
            order.node_limit = c->items[i].node + UINT64_C(1);
    sort(c, &other, &order);
    add_up(c);
    order.by_stack = false;
    sort(c, &other, &order);
    c->capacity = c->count;
    free(other);
}
