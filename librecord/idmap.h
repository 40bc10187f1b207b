/* SPDX-License-Identifier: MIT */
/*
 * A table from a positive number (a process or thread id) to a pointer. Open addressing; what it points to is
 * the caller's.
 */
#ifndef RECORD_IDMAP_H
#define RECORD_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct idmap_slot {
    uint32_t key; /* 0: free */
    void *value;
};

struct idmap {
    struct idmap_slot *slots; /* NULL: nothing was ever put in */
    size_t capacity;          /* a power of two */
    size_t count;
};

/* NULL: not there. */
void *recordint_idmap_get(const struct idmap *map, uint32_t key);
/* Puts or replaces; key > 0. Returns 0, -1: out of memory. */
int recordint_idmap_put(struct idmap *map, uint32_t key, void *value);
void recordint_idmap_remove(struct idmap *map, uint32_t key);
void recordint_idmap_free(struct idmap *map);

/* Walks: *at starts at 0; NULL at the end. Meanwhile nothing may be put in, and only the one that was returned last
 * be removed: then *at is to be lowered by 1. */
void *recordint_idmap_next(const struct idmap *map, size_t *at);

#endif
