/* SPDX-License-Identifier: MIT */
/*
 * The merge: a binary heap of the rings that have a record of this round, by their first record. A ring is looked
 * at from its front only. The kernel takes a record's time before its place, so two records of a ring may stand
 * the wrong way round when one interrupted the other; they come in ring order, the time goes back a little
 * then.
 */
#include "order.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

/* A ring and what was copied out of it, which is older than all that is in it. */
struct source {
    struct ring *ring;
    uint64_t number; /* in the order of adding */
    uint8_t *held;
    size_t held_size; /* bytes in it */
    size_t held_at;   /* of them, consumed */
    size_t held_room;

    /* the first record, while in the heap */
    const void *data;
    size_t size;
    uint64_t time_ns; /* 0: none */
    bool is_sample;
};

struct order {
    struct perfrec_layout layout;
    struct source **sources;
    size_t source_count;
    size_t source_room;
    struct source **heap; /* as much room */
    size_t heap_count;
    struct source *current; /* the heap's first, whose record was handed out; NULL: none */
    uint64_t limit_ns;
    uint64_t next_number;
    uint64_t removed_corrupt;
};

struct order *recordint_order_new(const struct perfrec_layout *layout)
{
    struct order *o = calloc(1, sizeof *o);

    if (o != NULL)
        o->layout = *layout;
    return o;
}

static void source_free(struct source *s)
{
    free(s->held);
    free(s);
}

void recordint_order_free(struct order *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->source_count; i++)
        source_free(o->sources[i]);
    free(o->sources);
    free(o->heap);
    free(o);
}

/* ---- the heap ---- */

static bool comes_before(const struct source *a, const struct source *b)
{
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    if (a->is_sample != b->is_sample)
        return b->is_sample;
    return a->number < b->number;
}

static void sift_down(struct order *o, size_t at)
{
    struct source *moving = o->heap[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= o->heap_count)
            break;
        if (child + 1 < o->heap_count && comes_before(o->heap[child + 1], o->heap[child]))
            child++;
        if (!comes_before(o->heap[child], moving))
            break;
        o->heap[at] = o->heap[child];
        at = child;
    }
    o->heap[at] = moving;
}

static void make_heap(struct order *o)
{
    for (size_t i = o->heap_count / 2; i-- > 0;)
        sift_down(o, i);
}

/* ---- one source ---- */

/* Returns false when it has no record that belongs to this round. */
static bool load_front(struct order *o, struct source *s)
{
    struct perf_event_header header;

    if (s->held_at < s->held_size) {
        s->data = s->held + s->held_at;
        memcpy(&header, s->data, sizeof header);
        s->size = header.size;
    } else if (!recordint_ring_peek(s->ring, &s->data, &s->size)) {
        return false;
    } else {
        memcpy(&header, s->data, sizeof header);
    }
    s->is_sample = header.type == PERF_RECORD_SAMPLE;
    if (!recordint_perfrec_time(&o->layout, s->data, s->size, &s->time_ns))
        s->time_ns = 0;
    return s->time_ns <= o->limit_ns;
}

static void consume_front(struct source *s)
{
    if (s->held_at < s->held_size) {
        s->held_at += s->size;
        return;
    }
    recordint_ring_consume(s->ring);
}

/* Gives the room of what was consumed back to the kernel, a quarter of the ring at a time: every write of the tail
 * costs the CPU that is sampled a cache line. */
static void release_quarters(struct source *s)
{
    const struct perf_event_mmap_page *control = s->ring->control;

    if (s->ring->tail - control->data_tail >= s->ring->size / 4) /* only we write data_tail */
        recordint_ring_release(s->ring);
}

static bool make_room(struct source *s, size_t size)
{
    size_t room = s->held_room;
    uint8_t *grown;

    if (s->held_at > 0) {
        memmove(s->held, s->held + s->held_at, s->held_size - s->held_at);
        s->held_size -= s->held_at;
        s->held_at = 0;
    }
    if (size <= room - s->held_size)
        return true;
    if (size > SIZE_MAX / 4 || s->held_size > SIZE_MAX / 4)
        return false;
    if (room < s->ring->size)
        room = s->ring->size;
    while (size > room - s->held_size)
        room *= 2;
    grown = realloc(s->held, room);
    if (grown == NULL)
        return false;
    s->held = grown;
    s->held_room = room;
    return true;
}

/* Copies a ring out that is nearly full although nothing of it may be read yet. Without memory the records stay where
 * they are, and the kernel counts what it loses. */
static void relieve(struct source *s)
{
    size_t unread = recordint_ring_update(s->ring);
    const void *data;
    size_t size;

    if (unread <= s->ring->size / 4 * 3 || !make_room(s, unread))
        return;
    while (recordint_ring_peek(s->ring, &data, &size)) {
        memcpy(s->held + s->held_size, data, size);
        s->held_size += size;
        recordint_ring_consume(s->ring);
    }
    recordint_ring_release(s->ring);
}

/* Nothing of it is left for this round. */
static void retire(struct source *s)
{
    recordint_ring_release(s->ring);
    relieve(s);
}

/* ---- rings ---- */

static bool grow_sources(struct order *o)
{
    size_t room = o->source_room == 0 ? 16 : 2 * o->source_room;
    struct source **grown;

    if (o->source_count < o->source_room)
        return true;
    grown = realloc(o->sources, room * sizeof(struct source *));
    if (grown == NULL)
        return false;
    o->sources = grown;
    grown = realloc(o->heap, room * sizeof(struct source *));
    if (grown == NULL)
        return false;
    o->heap = grown;
    o->source_room = room;
    return true;
}

int recordint_order_add(struct order *o, struct ring *r)
{
    struct source *s;

    if (!grow_sources(o))
        return -1;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return -1;
    s->ring = r;
    s->number = o->next_number++;
    o->sources[o->source_count++] = s;
    return 0;
}

static size_t find(struct source *const *list, size_t count, const struct ring *r)
{
    size_t i = 0;

    while (i < count && list[i]->ring != r)
        i++;
    return i;
}

void recordint_order_remove(struct order *o, struct ring *r)
{
    size_t i = find(o->sources, o->source_count, r);
    size_t in_heap = find(o->heap, o->heap_count, r);
    struct source *s;

    if (i == o->source_count)
        return;
    s = o->sources[i];
    memmove(&o->sources[i], &o->sources[i + 1],
            (o->source_count - i - 1) * sizeof(struct source *));
    o->source_count--;
    if (o->current == s)
        o->current = NULL;
    if (in_heap < o->heap_count) {
        /* The first may be handed out already: it must stay first, and does, as it is the least of all. */
        o->heap[in_heap] = o->heap[--o->heap_count];
        make_heap(o);
    }
    o->removed_corrupt += r->corrupt;
    source_free(s);
}

/* ---- rounds ---- */

static void finish_current(struct order *o)
{
    struct source *s = o->current;

    if (s == NULL)
        return;
    o->current = NULL;
    consume_front(s);
    release_quarters(s);
    if (!load_front(o, s)) {
        o->heap[0] = o->heap[--o->heap_count];
        retire(s);
    }
    if (o->heap_count > 0)
        sift_down(o, 0);
}

void recordint_order_begin(struct order *o, uint64_t limit_ns)
{
    if (o->current != NULL)
        consume_front(o->current); /* the caller left a round before its end */
    o->current = NULL;
    o->limit_ns = limit_ns;
    o->heap_count = 0;
    for (size_t i = 0; i < o->source_count; i++)
        recordint_ring_update(o->sources[i]->ring);
    for (size_t i = 0; i < o->source_count; i++) {
        if (load_front(o, o->sources[i]))
            o->heap[o->heap_count++] = o->sources[i];
        else
            retire(o->sources[i]);
    }
    make_heap(o);
}

int recordint_order_next(struct order *o, const void **data, size_t *size)
{
    finish_current(o);
    if (o->heap_count == 0)
        return 0;
    o->current = o->heap[0];
    *data = o->current->data;
    *size = o->current->size;
    return 1;
}

/* ---- getters ---- */

bool recordint_order_pending(const struct order *o)
{
    for (size_t i = 0; i < o->source_count; i++)
        if (o->sources[i]->held_at < o->sources[i]->held_size ||
            recordint_ring_unread(o->sources[i]->ring) > 0)
            return true;
    return false;
}

uint64_t recordint_order_corrupt(const struct order *o)
{
    uint64_t corrupt = o->removed_corrupt;

    for (size_t i = 0; i < o->source_count; i++)
        corrupt += o->sources[i]->ring->corrupt;
    return corrupt;
}

size_t recordint_order_held_bytes(const struct order *o)
{
    size_t held = 0;

    for (size_t i = 0; i < o->source_count; i++)
        held += o->sources[i]->held_size - o->sources[i]->held_at;
    return held;
}
