/* SPDX-License-Identifier: MIT */
/* Which `ksymbol` annotations begin an epoch. Pages stand for addresses: a set of them is small, and a page that two
 * programs share costs an epoch more, never a wrong name. */
#include "epochs.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "spread.h"

#define PAGE_BITS 12
/* Larger ranges are not looked at page by page. */
#define RANGE_PAGES_MAX 64

/* ---- hash ---- */

static size_t home(const struct epoch_map *m, uint64_t key)
{
    struct spread s = spread_new();

    return (size_t)spread_number(&s, key) & (m->capacity - 1);
}

static struct epoch_slot *find_slot(const struct epoch_map *m, uint64_t key)
{
    size_t i = home(m, key);

    while (m->slots[i].value && m->slots[i].key != key)
        i = (i + 1) & (m->capacity - 1);
    return &m->slots[i];
}

/* 0: not there. */
static uint64_t map_get(const struct epoch_map *m, uint64_t key)
{
    return m->capacity ? find_slot(m, key)->value : 0;
}

static void map_set(struct epoch_map *m, uint64_t key, uint64_t value)
{
    struct epoch_slot *slot;

    if (m->count * 2 >= m->capacity) {
        struct epoch_map larger = {.capacity = m->capacity ? m->capacity * 2 : 64};

        larger.slots = cli_zeroed(larger.capacity, sizeof *larger.slots);
        for (size_t i = 0; i < m->capacity; i++)
            if (m->slots[i].value)
                *find_slot(&larger, m->slots[i].key) = m->slots[i];
        free(m->slots);
        m->slots = larger.slots;
        m->capacity = larger.capacity;
    }
    slot = find_slot(m, key);
    m->count += slot->value == 0;
    *slot = (struct epoch_slot){.key = key, .value = value};
}

/* ---- records ---- */

/* Only a spool with `ksymbol` annotations pays for its kernel frames. */
static void see_frames(struct epochs *e, const struct spool_reader *reader)
{
    struct spool_counts counts;

    spool_reader_counts(reader, &counts);
    for (; e->frames_seen < counts.frames; e->frames_seen++) {
        struct spool_frame f;

        if (spool_reader_frame(reader, e->frames_seen, &f) && f.kernel)
            map_set(&e->pages, f.abs >> PAGE_BITS, 1);
    }
}

static bool has_frames(const struct epochs *e, const struct page_range *r)
{
    if (r->last - r->first >= RANGE_PAGES_MAX)
        return e->pages.count > 0;
    for (uint64_t page = r->first; page <= r->last; page++)
        if (map_get(&e->pages, page))
            return true;
    return false;
}

static void add_event(struct epochs *e, const struct spool_annotation *a)
{
    e->events = cli_grow(e->events, &e->event_capacity, e->event_count, sizeof *e->events);
    e->events[e->event_count++] = (struct sym_ksymbol){.time = e->now,
                                                       .address = a->number[0],
                                                       .length_bytes = a->number[1],
                                                       .name = a->text,
                                                       .name_size = a->text_size};
}

static void add_range(struct epochs *e, const struct page_range *range)
{
    e->ranges = cli_grow(e->ranges, &e->range_capacity, e->range_count, sizeof *e->ranges);
    e->ranges[e->range_count++] = *range;
}

bool epochs_record(struct epochs *e, const struct spool_reader *reader,
                   const struct spool_annotation *a)
{
    uint64_t address = a->number[0], length = a->number[1];
    struct page_range range = {.first = address >> PAGE_BITS, .last = address >> PAGE_BITS};
    uint64_t before = map_get(&e->extents, address);
    bool begins;

    if (length > 0) {
        /* What cannot be: beyond the end of memory, or without a name. */
        if (a->text_size == 0 || length - 1 > UINT64_MAX - address)
            return false;
        range.last = (address + (length - 1)) >> PAGE_BITS;
        map_set(&e->extents, address, range.last + 1);
    }
    /* What was there ends, too, and may have been longer. */
    if (before > 0 && before - 1 > range.last)
        range.last = before - 1;
    see_frames(e, reader);
    begins = has_frames(e, &range);
    e->now += begins;
    add_event(e, a);
    add_range(e, &range);
    return begins;
}

/* ---- the result ---- */

static int compare_ranges(const void *a, const void *b)
{
    const struct page_range *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

void epochs_finish(struct epochs *e)
{
    size_t kept = 0;

    free(e->pages.slots);
    free(e->extents.slots);
    e->pages = e->extents = (struct epoch_map){0};
    if (e->now == 0)
        e->range_count = 0; /* in one epoch nothing differs */
    if (e->range_count > 1)
        qsort(e->ranges, e->range_count, sizeof *e->ranges, compare_ranges);
    for (size_t i = 0; i < e->range_count; i++) {
        if (kept == 0 || e->ranges[i].first > e->ranges[kept - 1].last)
            e->ranges[kept++] = e->ranges[i];
        else if (e->ranges[i].last > e->ranges[kept - 1].last)
            e->ranges[kept - 1].last = e->ranges[i].last;
    }
    e->range_count = kept;
}

bool epochs_differ(const struct epochs *e, uint64_t address)
{
    uint64_t page = address >> PAGE_BITS;
    size_t low = 0, high = e->range_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (e->ranges[middle].last < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low < e->range_count && e->ranges[low].first <= page;
}

void epochs_free(struct epochs *e)
{
    free(e->events);
    free(e->ranges);
    free(e->pages.slots);
    free(e->extents.slots);
    *e = (struct epochs){0};
}
