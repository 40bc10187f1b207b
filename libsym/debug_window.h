/* SPDX-License-Identifier: MIT */
/*
 * Pieces of .debug_info, one a unit, in memory that is used again: a program's units are read one after another, most of
 * them once, and fresh pages cost more than the reading. What is handed out stays until the next turn.
 */
#ifndef SYMINT_DEBUG_WINDOW_H
#define SYMINT_DEBUG_WINDOW_H

#include "debug_bytes.h"

struct debug_window {
    uint64_t offset, size; /* what it shows; size 0: nothing */
    uint8_t *data;
    uint64_t capacity;
    uint64_t turn; /* the last one it was asked for in */
};

/* Starts as {0}. */
struct symint_windows {
    struct debug_window *items;
    size_t count, capacity;
    size_t last;    /* the one that was asked for last */
    uint64_t bytes; /* of all */
    uint64_t limit; /* above which windows are used again; grows when units come again and again */
    uint32_t reloads; /* since the limit grew */
    uint64_t turn;
};
void symint_windows_free(struct symint_windows *w);

/* The bytes [offset, offset + size) of .debug_info, as symint_debug_bytes, valid until the next turn. `again`: they were
 * asked for before, and it would be well if they were still there. */
const uint8_t *symint_window_get(struct symint_windows *w, struct symint_debug_sections *s,
                                 uint64_t offset, uint64_t size, bool again);

/* Nothing that was handed out is needed any more. */
static inline void symint_windows_turn(struct symint_windows *w)
{
    w->turn++;
}

#endif
