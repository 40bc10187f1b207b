/* SPDX-License-Identifier: MIT */
/*
 * One kind of hash table for the four id tables of the writer; they differ in how a thing becomes a
 * key. Nothing is ever removed alone, which keeps linear probing free of tombstones; loose frames
 * are removed together, and what has become useless in a sweep that builds the tables anew.
 */
#include "intern.h"

#include <stdlib.h>
#include <string.h>

#include "mix.h"
#include "spool/spool.h"

#define FIRST_CAPACITY 256u
#define FIRST_SWEEP 8192u

/* The marker shares the pinned frames' table under a module that cannot exist. */
#define MARKER_MODULE SPOOL_NO_ID

/* extra of a loose frame: the generation above the kernel bit. */
#define LOOSE_STAMP_STEP 2u
#define LOOSE_KERNEL 1u

static inline size_t slot_of(const struct intern_table *t, uint64_t key, uint32_t extra)
{
    return (size_t)(spoolint_mix(t->seed, key ^ (uint64_t)extra << 40) >> t->shift);
}

static inline bool alive(const struct intern_table *t, const struct intern_slot *slot)
{
    return slot->id != SPOOL_NO_ID && ((slot->extra ^ t->stamp) & t->stamp_mask) == 0;
}

/* The slot that holds the key, or the one where it belongs. The table has a free slot. */
static inline struct intern_slot *probe(const struct intern_table *t, uint64_t key, uint32_t extra)
{
    size_t i = slot_of(t, key, extra);

    while (alive(t, &t->slots[i]) && (t->slots[i].key != key || t->slots[i].extra != extra))
        i = (i + 1) & (t->capacity - 1);
    return &t->slots[i];
}

/* Moves what is in the table to one of another size. false: out of memory, nothing changed. */
static bool resize(struct intern_table *t, size_t capacity)
{
    struct intern_table bigger = *t;

    bigger.capacity = capacity;
    if (bigger.capacity > SIZE_MAX / sizeof *bigger.slots)
        return false;
    bigger.slots = malloc(bigger.capacity * sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return false;
    memset(bigger.slots, 0xff, bigger.capacity * sizeof *bigger.slots);
    bigger.shift = 64;
    for (size_t n = bigger.capacity; n > 1; n >>= 1)
        bigger.shift--;
    for (size_t i = 0; i < t->capacity; i++) {
        const struct intern_slot *slot = &t->slots[i];

        if (alive(t, slot))
            *probe(&bigger, slot->key, slot->extra) = *slot;
    }
    free(t->slots);
    *t = bigger;
    return true;
}

/* Doubles the table. false: out of memory, nothing changed. */
static bool grow(struct intern_table *t)
{
    return resize(t, t->capacity == 0 ? FIRST_CAPACITY : t->capacity * 2);
}

static inline bool find(const struct intern_table *t, uint64_t key, uint32_t extra, uint32_t *id)
{
    const struct intern_slot *slot;

    if (t->slots == NULL)
        return false;
    slot = probe(t, key, extra);
    if (!alive(t, slot))
        return false;
    *id = slot->id;
    return true;
}

static inline int find_or_add(struct intern_table *t, uint64_t key, uint32_t extra,
                              uint32_t *counter, uint32_t *id)
{
    struct intern_slot *slot;

    if (find(t, key, extra, id))
        return 0;
    if (t->count >= t->capacity / 8 * 5 && !grow(t))
        return SPOOL_ERR_NOMEM;
    slot = probe(t, key, extra);
    slot->key = key;
    slot->extra = extra;
    slot->id = (*counter)++;
    t->count++;
    *id = slot->id;
    return 1;
}

static uint32_t loose_extra(const struct intern *in, bool kernel)
{
    return in->loose.stamp | (kernel ? LOOSE_KERNEL : 0);
}

static uint64_t stack_key(uint32_t prefix, uint32_t frame)
{
    return (uint64_t)prefix << 32 | frame;
}

void spoolint_intern_init(struct intern *in)
{
    memset(in, 0, sizeof *in);
    in->loose.stamp_mask = ~LOOSE_KERNEL;
    in->sweep_due = FIRST_SWEEP;
    /* Differs from run to run wherever addresses do. */
    in->fixed.seed = in->loose.seed = in->stacks.seed = in->threads.seed = (uintptr_t)in;
}

void spoolint_intern_free(struct intern *in)
{
    free(in->fixed.slots);
    free(in->loose.slots);
    free(in->stacks.slots);
    free(in->threads.slots);
    spoolint_intern_init(in);
}

int spoolint_intern_pinned(struct intern *in, uint32_t module, uint64_t address, uint32_t *id)
{
    return find_or_add(&in->fixed, address, module, &in->frame_count, id);
}

int spoolint_intern_marker(struct intern *in, uint32_t *id)
{
    return find_or_add(&in->fixed, 0, MARKER_MODULE, &in->frame_count, id);
}

int spoolint_intern_loose(struct intern *in, bool kernel, uint64_t address, uint32_t *id)
{
    return find_or_add(&in->loose, address, loose_extra(in, kernel), &in->frame_count, id);
}

int spoolint_intern_stack(struct intern *in, uint32_t prefix, uint32_t frame, uint32_t *id)
{
    return find_or_add(&in->stacks, stack_key(prefix, frame), 0, &in->stack_count, id);
}

int spoolint_intern_thread(struct intern *in, int32_t pid, uint64_t tid, uint32_t *id)
{
    return find_or_add(&in->threads, tid, (uint32_t)pid, &in->thread_count, id);
}

bool spoolint_intern_find_pinned(const struct intern *in, uint32_t module, uint64_t address,
                                 uint32_t *id)
{
    return find(&in->fixed, address, module, id);
}

bool spoolint_intern_find_marker(const struct intern *in, uint32_t *id)
{
    return find(&in->fixed, 0, MARKER_MODULE, id);
}

bool spoolint_intern_find_loose(const struct intern *in, bool kernel, uint64_t address,
                                uint32_t *id)
{
    return find(&in->loose, address, loose_extra(in, kernel), id);
}

bool spoolint_intern_find_stack(const struct intern *in, uint32_t prefix, uint32_t frame,
                                uint32_t *id)
{
    return find(&in->stacks, stack_key(prefix, frame), 0, id);
}

bool spoolint_intern_find_thread(const struct intern *in, int32_t pid, uint64_t tid, uint32_t *id)
{
    return find(&in->threads, tid, (uint32_t)pid, id);
}

void spoolint_intern_drop_loose(struct intern *in)
{
    struct intern_table *t = &in->loose;

    if (t->count == 0)
        return; /* saves stamps: most modules arrive in a row */
    t->count = 0;
    t->stamp += LOOSE_STAMP_STEP;
    /* Stamps have come round: what is left of the earliest ones must not come to life again. */
    if (t->stamp == 0)
        memset(t->slots, 0xff, t->capacity * sizeof *t->slots);
}

/* ---- what cannot come again ---- */

static bool has_bit(const uint8_t *bits, uint32_t n)
{
    return (bits[n / 8] >> n % 8 & 1) != 0;
}

static void set_bit(uint8_t *bits, uint32_t n)
{
    bits[n / 8] |= (uint8_t)(1u << n % 8);
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = ((const struct intern_slot *)a)->id;
    uint32_t right = ((const struct intern_slot *)b)->id;

    return (left > right) - (left < right);
}

/* Puts the slots in place of all that is in the table. There is room for them. */
static void refill(struct intern_table *t, const struct intern_slot *slots, size_t count)
{
    size_t capacity = t->capacity;

    memset(t->slots, 0xff, t->capacity * sizeof *t->slots);
    for (size_t i = 0; i < count; i++)
        *probe(t, slots[i].key, slots[i].extra) = slots[i];
    t->count = count;
    while (capacity > FIRST_CAPACITY && count < capacity / 8)
        capacity /= 2;
    if (capacity < t->capacity)
        (void)resize(t, capacity);
}

/* Drops the frames of retired modules, and sets the bits of those that stay. `scratch` has room for all. */
static void sweep_frames(struct intern *in, const uint8_t *retired, struct intern_slot *scratch,
                         uint8_t *frames)
{
    size_t kept = 0;

    for (size_t i = 0; i < in->loose.capacity; i++)
        if (alive(&in->loose, &in->loose.slots[i]))
            set_bit(frames, in->loose.slots[i].id);
    for (size_t i = 0; i < in->fixed.capacity; i++) {
        const struct intern_slot *slot = &in->fixed.slots[i];

        if (!alive(&in->fixed, slot) ||
            (slot->extra != MARKER_MODULE && has_bit(retired, slot->extra)))
            continue;
        scratch[kept++] = *slot;
        set_bit(frames, slot->id);
    }
    refill(&in->fixed, scratch, kept);
}

/* Keeps the nodes whose frame and prefix are kept. A prefix has a lower id than what stands on it. */
static void sweep_stacks(struct intern *in, struct intern_slot *scratch, const uint8_t *frames,
                         uint8_t *nodes)
{
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < in->stacks.capacity; i++)
        if (alive(&in->stacks, &in->stacks.slots[i]))
            scratch[count++] = in->stacks.slots[i];
    qsort(scratch, count, sizeof *scratch, compare_ids);
    for (size_t i = 0; i < count; i++) {
        uint32_t prefix = (uint32_t)(scratch[i].key >> 32), frame = (uint32_t)scratch[i].key;

        if (!has_bit(frames, frame) || (prefix != SPOOL_NO_ID && !has_bit(nodes, prefix)))
            continue;
        set_bit(nodes, scratch[i].id);
        scratch[kept++] = scratch[i];
    }
    refill(&in->stacks, scratch, kept);
}

bool spoolint_intern_sweep_due(const struct intern *in)
{
    return in->fixed.count + in->stacks.count >= in->sweep_due;
}

void spoolint_intern_sweep(struct intern *in, const uint8_t *retired)
{
    size_t most = in->fixed.count > in->stacks.count ? in->fixed.count : in->stacks.count;
    struct intern_slot *scratch = malloc((most + 1) * sizeof *scratch);
    uint8_t *frames = calloc(in->frame_count / 8 + 1, 1);
    uint8_t *nodes = calloc(in->stack_count / 8 + 1, 1);

    if (scratch != NULL && frames != NULL && nodes != NULL) {
        sweep_frames(in, retired, scratch, frames);
        sweep_stacks(in, scratch, frames, nodes);
    }
    free(scratch);
    free(frames);
    free(nodes);
    in->sweep_due = 2 * (in->fixed.count + in->stacks.count);
    if (in->sweep_due < FIRST_SWEEP)
        in->sweep_due = FIRST_SWEEP;
}
