/* SPDX-License-Identifier: MIT */
/*
 * The writer's id tables: which frames, stack nodes and threads have been defined, and under which
 * id. Which table a thing belongs to and when loose frames are forgotten is the format's rule
 * (spool(5), interning).
 */
#ifndef SPOOLINT_INTERN_H
#define SPOOLINT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 16 bytes, so that four of them share a cache line: a sample of 20 frames makes 40 lookups. */
struct intern_slot {
    uint64_t key;
    uint32_t extra; /* more of the key; of a loose frame also the generation it belongs to */
    uint32_t id;    /* SPOOL_NO_ID: never used */
};

/* Open addressing, linear probing, a power of two of slots. */
struct intern_table {
    struct intern_slot *slots; /* NULL until the first entry */
    size_t capacity;
    size_t count;
    uint64_t seed;
    unsigned shift;      /* 64 - log2(capacity) */
    uint32_t stamp;      /* a slot is alive when its extra agrees with stamp ... */
    uint32_t stamp_mask; /* ... in these bits; 0: every used slot is */
};

struct intern {
    struct intern_table fixed; /* pinned frames and the marker */
    struct intern_table loose; /* unpinned frames */
    struct intern_table stacks;
    struct intern_table threads;
    uint32_t frame_count; /* next ids; both frame tables draw from one counter */
    uint32_t stack_count;
    uint32_t thread_count;
    size_t sweep_due; /* at so many frames and stack nodes a sweep may pay */
};

void spoolint_intern_init(struct intern *in);
void spoolint_intern_free(struct intern *in);

/* Each of these looks a thing up and defines it with the next id when it is new.
 *   1               *id is new: its record has to be written
 *   0               *id was known
 *   SPOOL_ERR_NOMEM nothing was changed
 * Ids are not limited here: the caller sees to it that none passes FORMAT_ID_MAX. */
int spoolint_intern_pinned(struct intern *in, uint32_t module, uint64_t address, uint32_t *id);
int spoolint_intern_marker(struct intern *in, uint32_t *id);
int spoolint_intern_loose(struct intern *in, bool kernel, uint64_t address, uint32_t *id);
int spoolint_intern_stack(struct intern *in, uint32_t prefix, uint32_t frame, uint32_t *id);
int spoolint_intern_thread(struct intern *in, int32_t pid, uint64_t tid, uint32_t *id);

/* The same without defining anything: whether it is known, and then its id. */
bool spoolint_intern_find_pinned(const struct intern *in, uint32_t module, uint64_t address,
                                 uint32_t *id);
bool spoolint_intern_find_marker(const struct intern *in, uint32_t *id);
bool spoolint_intern_find_loose(const struct intern *in, bool kernel, uint64_t address,
                                uint32_t *id);
bool spoolint_intern_find_stack(const struct intern *in, uint32_t prefix, uint32_t frame,
                                uint32_t *id);
bool spoolint_intern_find_thread(const struct intern *in, int32_t pid, uint64_t tid, uint32_t *id);

/* Whether so much has come since the last sweep that another one costs little, counted by the piece. */
bool spoolint_intern_sweep_due(const struct intern *in);

/* Forgets the frames of modules whose bit is set in `retired`, and all stack nodes that cannot come again: those that hold one
 * of these frames or a loose frame that was dropped, and those above them. Ids stay what they are. Without memory
 * nothing is forgotten. Not while a stack is being defined. */
void spoolint_intern_sweep(struct intern *in, const uint8_t *retired);

/* Forgets all loose frames: the set of modules has changed. Constant time. */
void spoolint_intern_drop_loose(struct intern *in);

#endif
