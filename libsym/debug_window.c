/* SPDX-License-Identifier: MIT */
/* Which window is used again. */
#include "debug_window.h"

#include "strtab.h"

#include <stdlib.h>

#define FIRST_LIMIT_BYTES ((uint64_t)16 * 1024 * 1024)
#define LAST_LIMIT_BYTES ((uint64_t)96 * 1024 * 1024)
#define MIN_WINDOW_BYTES ((uint64_t)2 * 1024 * 1024) /* a huge page */
/* Addresses in order come to a unit a few times: for its cold code, for what runs at the start, for the rest. */
#define MANY_RELOADS 512

void symint_windows_free(struct symint_windows *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->items[i].data);
    free(w->items);
    *w = (struct symint_windows){0};
}

static struct debug_window *find(struct symint_windows *w, uint64_t offset, uint64_t size)
{
    for (size_t i = 0; i < w->count; i++) {
        struct debug_window *item = &w->items[(w->last + i) % w->count];
        if (item->size > 0 && offset >= item->offset && offset - item->offset <= item->size &&
            size <= item->size - (offset - item->offset)) {
            w->last = (size_t)(item - w->items);
            return item;
        }
    }
    return NULL;
}

/* The window that was not asked for the longest, and not in this turn. */
static struct debug_window *oldest(struct symint_windows *w)
{
    struct debug_window *found = NULL;
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].turn < w->turn && (found == NULL || w->items[i].turn < found->turn))
            found = &w->items[i];
    return found;
}

static void drop(struct symint_windows *w, struct debug_window *item)
{
    free(item->data);
    w->bytes -= item->capacity;
    *item = w->items[--w->count];
}

static struct debug_window *add(struct symint_windows *w)
{
    struct debug_window *items = symint_grow(w->items, w->count, &w->capacity, sizeof(*items), 16);
    if (items == NULL)
        return NULL;
    w->items = items;
    w->items[w->count] = (struct debug_window){0};
    return &w->items[w->count++];
}

/* A window with room for that much: the oldest one if there are enough, else a new one. */
static struct debug_window *make_room(struct symint_windows *w, uint64_t size)
{
    uint64_t room = (size + MIN_WINDOW_BYTES - 1) / MIN_WINDOW_BYTES * MIN_WINDOW_BYTES;
    struct debug_window *item = NULL;
    while (w->bytes + room > w->limit && (item = oldest(w)) != NULL) {
        if (item->capacity >= size)
            return item;
        drop(w, item);
    }
    item = add(w);
    if (item == NULL)
        return NULL;
    item->data = symint_scratch_alloc((size_t)room, 1);
    if (item->data == NULL) {
        w->count--;
        return NULL;
    }
    item->capacity = room;
    w->bytes += room;
    return item;
}

const uint8_t *symint_window_get(struct symint_windows *w, struct symint_debug_sections *s,
                                 uint64_t offset, uint64_t size, bool again)
{
    const struct symint_debug_section *d = &s->at[DEBUG_INFO];
    if (d->packed || d->relocated) /* it is in memory anyway */
        return symint_debug_bytes(s, DEBUG_INFO, offset, size);
    if (d->failed || offset > d->size || size > d->size - offset || size > SIZE_MAX / 4)
        return NULL;
    struct debug_window *item = find(w, offset, size);
    if (item == NULL) {
        if (w->limit == 0)
            w->limit = FIRST_LIMIT_BYTES;
        w->reloads += again;
        if (w->reloads > MANY_RELOADS && w->limit < LAST_LIMIT_BYTES) {
            w->limit *= 2;
            w->reloads = 0;
        }
        item = make_room(w, size);
        if (item == NULL) {
            s->no_memory = true;
            return NULL;
        }
        item->size = 0;
        if (!symint_debug_peek(s, DEBUG_INFO, offset, (size_t)size, item->data))
            return NULL;
        item->offset = offset;
        item->size = size;
        w->last = (size_t)(item - w->items);
    }
    item->turn = w->turn;
    return item->data + (offset - item->offset);
}
