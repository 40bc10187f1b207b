/* SPDX-License-Identifier: MIT */
/* Frame texts in one block, found through an open hash, ranked by one sort. */
#include "labels.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

void labels_init(struct labels *l)
{
    memset(l, 0, sizeof *l);
    l->spread = spread_new();
    l->slot_count = 1024;
    l->slots = cli_zeroed(l->slot_count, sizeof *l->slots);
}

void labels_free(struct labels *l)
{
    free(l->texts);
    free(l->entries);
    free(l->slots);
}

static void grow_slots(struct labels *l)
{
    l->slot_count *= 2;
    free(l->slots);
    l->slots = cli_zeroed(l->slot_count, sizeof *l->slots);
    for (uint32_t id = 0; id < l->count; id++) {
        size_t i = l->entries[id].hash & (l->slot_count - 1);

        while (l->slots[i])
            i = (i + 1) & (l->slot_count - 1);
        l->slots[i] = id + 1;
    }
}

uint32_t labels_intern(struct labels *l, const char *text, size_t size)
{
    uint32_t hash = (uint32_t)spread_text(&l->spread, text, size);
    size_t i = hash & (l->slot_count - 1);

    for (; l->slots[i]; i = (i + 1) & (l->slot_count - 1)) {
        const struct label_entry *e = &l->entries[l->slots[i] - 1];

        if (e->hash == hash && e->size == size && memcmp(l->texts + e->begin, text, size) == 0)
            return l->slots[i] - 1;
    }
    l->entries = cli_grow(l->entries, &l->capacity, l->count, sizeof *l->entries);
    if (size >= l->text_capacity - l->text_size) { /* never none: texts is no null pointer then */
        while (size >= l->text_capacity - l->text_size)
            l->text_capacity = l->text_capacity ? l->text_capacity * 2 : 16384;
        l->texts = cli_realloc(l->texts, l->text_capacity, 1);
    }
    memcpy(l->texts + l->text_size, text, size);
    l->entries[l->count] =
        (struct label_entry){.begin = l->text_size, .size = (uint32_t)size, .hash = hash};
    l->text_size += size;
    l->slots[i] = ++l->count;
    if ((size_t)l->count * 2 > l->slot_count)
        grow_slots(l);
    return l->count - 1;
}

const char *labels_text(const struct labels *l, uint32_t label, size_t *size)
{
    *size = l->entries[label].size;
    return l->texts + l->entries[label].begin;
}

/* What is sorted: a label, its text alone or with ';' behind. */
struct ranked {
    const char *text;
    uint32_t size;
    uint32_t place; /* 2 x label, + 1 with ';' */
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    uint32_t common = x->size < y->size ? x->size : y->size;
    int order = common > 0 ? memcmp(x->text, y->text, common) : 0;
    int next_x, next_y;

    if (order != 0)
        return order;
    /* Behind the common part: the next byte, the ';', or the end of the line, which sorts before all. */
    next_x = x->size > common ? (uint8_t)x->text[common] : x->place & 1 ? ';' : -1;
    next_y = y->size > common ? (uint8_t)y->text[common] : y->place & 1 ? ';' : -1;
    return next_x - next_y;
}

uint32_t *labels_rank(const struct labels *l)
{
    size_t count = 2 * (size_t)l->count;
    struct ranked *list = cli_realloc(NULL, count + 1, sizeof *list);
    uint32_t *ranks = cli_realloc(NULL, count + 1, sizeof *ranks);

    for (size_t i = 0; i < count; i++)
        list[i] = (struct ranked){.text = l->texts + l->entries[i / 2].begin,
                                  .size = l->entries[i / 2].size,
                                  .place = (uint32_t)i};
    if (count > 1)
        qsort(list, count, sizeof *list, compare_ranked);
    for (size_t i = 0; i < count; i++)
        ranks[list[i].place] = (uint32_t)i;
    free(list);
    return ranks;
}
