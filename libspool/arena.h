/* SPDX-License-Identifier: MIT */
/*
 * Memory that lives as long as its owner: many small pieces out of few chunks, freed all at once.
 */
#ifndef SPOOLINT_ARENA_H
#define SPOOLINT_ARENA_H

#include <stddef.h>

struct arena;

/* An empty arena; NULL: out of memory. */
struct arena *spoolint_arena_new(void);

/* Frees the arena and every piece of it. NULL is accepted. */
void spoolint_arena_free(struct arena *a);

/* `size` uninitialised bytes at a multiple of `align`, a power of two of at most 4096; they never
 * move. Size 0 gives a pointer that must not be dereferenced. NULL: out of memory, the arena stays
 * usable. */
void *spoolint_arena_alloc(struct arena *a, size_t size, size_t align);

/* A copy of `size` bytes with a NUL behind them. data may be NULL when size is 0. NULL: out of
 * memory. */
char *spoolint_arena_copy_text(struct arena *a, const void *data, size_t size);

#endif
