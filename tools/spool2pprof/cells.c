/* SPDX-License-Identifier: MIT */
/* Sorted twice by radix: millions of cells, whose keys have few significant bits. */
#include "cells.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define DIGIT_BITS 11
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

static uint64_t stack_key(const struct profile_cell *cell)
{
    return (uint64_t)cell->set << 32 | cell->node;
}

static uint64_t first_key(const struct profile_cell *cell)
{
    return cell->first;
}

/* Sorts by one digit of the key from one array to the other. */
static void scatter(const struct profile_cell *from, struct profile_cell *to, size_t count,
                    uint64_t (*key)(const struct profile_cell *), unsigned shift)
{
    size_t *begin = cli_zeroed(DIGITS, sizeof *begin), at = 0;

    for (size_t i = 0; i < count; i++)
        begin[key(&from[i]) >> shift & (DIGITS - 1)]++;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t size = begin[digit];

        begin[digit] = at;
        at += size;
    }
    for (size_t i = 0; i < count; i++)
        to[begin[key(&from[i]) >> shift & (DIGITS - 1)]++] = from[i];
    free(begin);
}

static void sort(struct cells *c, uint64_t (*key)(const struct profile_cell *))
{
    struct profile_cell *other = cli_realloc(NULL, c->count, sizeof *other);
    uint64_t varying = 0;

    for (size_t i = 0; i < c->count; i++)
        varying |= key(&c->items[i]) ^ key(&c->items[0]);
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        struct profile_cell *sorted = other;

        if ((varying >> shift & (DIGITS - 1)) == 0)
            continue;
        scatter(c->items, other, c->count, key, shift);
        other = c->items;
        c->items = sorted;
    }
    c->capacity = c->count;
    free(other);
}

void cells_merge(struct cells *c)
{
    size_t kept = 0;

    sort(c, stack_key);
    for (size_t i = 0; i < c->count; i++) {
        struct profile_cell *last = kept > 0 ? &c->items[kept - 1] : NULL;

        if (!last || stack_key(last) != stack_key(&c->items[i])) {
            c->items[kept++] = c->items[i];
            continue;
        }
        last->samples += c->items[i].samples;
        last->time_ns += c->items[i].time_ns;
        if (c->items[i].first < last->first)
            last->first = c->items[i].first;
    }
    c->count = kept;
    sort(c, first_key);
}
