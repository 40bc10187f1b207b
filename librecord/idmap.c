/* SPDX-License-Identifier: MIT */
/*
 * Linear probing; removal moves what follows back, so that no marks of removed keys pile up while processes
 * come and go for hours.
 */
#include "idmap.h"

#include <stdlib.h>

static size_t home_of(const struct idmap *map, uint32_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->capacity - 1);
}

/* The slot of the key, or the free one where it would be put. */
static size_t find(const struct idmap *map, uint32_t key)
{
    size_t at = home_of(map, key);

    while (map->slots[at].key != 0 && map->slots[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

void *recordint_idmap_get(const struct idmap *map, uint32_t key)
{
    size_t at;

    if (map->count == 0)
        return NULL;
    at = find(map, key);
    return map->slots[at].key == key ? map->slots[at].value : NULL;
}

static int grow(struct idmap *map)
{
    struct idmap bigger = {.capacity = map->capacity == 0 ? 64 : map->capacity * 2};

    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return -1;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key != 0)
            bigger.slots[find(&bigger, map->slots[i].key)] = map->slots[i];
    bigger.count = map->count;
    free(map->slots);
    *map = bigger;
    return 0;
}

int recordint_idmap_put(struct idmap *map, uint32_t key, void *value)
{
    size_t at;

    if ((map->count + 1) * 4 > map->capacity * 3 && grow(map) < 0)
        return -1;
    at = find(map, key);
    if (map->slots[at].key == 0)
        map->count++;
    map->slots[at] = (struct idmap_slot){key, value};
    return 0;
}

void recordint_idmap_remove(struct idmap *map, uint32_t key)
{
    size_t mask = map->capacity - 1;
    size_t hole, at;

    if (map->count == 0)
        return;
    hole = find(map, key);
    if (map->slots[hole].key != key)
        return;
    map->count--;
    for (at = (hole + 1) & mask; map->slots[at].key != 0; at = (at + 1) & mask) {
        size_t home = home_of(map, map->slots[at].key);

        /* One whose home lies cyclically in (hole, at] is still found behind the hole. */
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->slots[hole] = map->slots[at];
        hole = at;
    }
    map->slots[hole] = (struct idmap_slot){0, NULL};
}

void recordint_idmap_free(struct idmap *map)
{
    free(map->slots);
    *map = (struct idmap){0};
}

void *recordint_idmap_next(const struct idmap *map, size_t *at)
{
    while (*at < map->capacity) {
        const struct idmap_slot *slot = &map->slots[(*at)++];

        if (slot->key != 0)
            return slot->value;
    }
    return NULL;
}
