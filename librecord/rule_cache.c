/* SPDX-License-Identifier: MIT */
/*
 * The table of an image packs address and rule number into one word: 48 bits of address (files beyond that are not
 * linked, and then just not kept) and 16 of rule. Nothing is removed from it alone. Distinct rules are few: they
 * are interned and never removed, so that pointers to them hold.
 */
#include "rule_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS_BITS 48
#define FIRST_SLOTS 256u
#define MAX_SLOTS (1u << 19) /* 4 MiB: 327,680 addresses of one image, then it starts anew */

#define RULES_MAX 65535u /* number 0 marks a free slot */
#define CHUNK_RULES 256u /* rules are allocated by these, so that they never move */
#define CHUNKS ((RULES_MAX + CHUNK_RULES) / CHUNK_RULES)

#define CACHE_FIRST_BITS 10 /* 32 KiB: most processes run little code */
#define CACHE_MAX_BITS 16   /* 2 MiB */
#define CACHE_LINE 64

#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

struct rule_table {
    uint64_t *slots; /* address << 16 | rule number; 0: free */
    size_t slot_count;
    size_t used;
    struct rule *chunks[CHUNKS];
    uint32_t rules;
    uint16_t *index; /* rule numbers by what the rule says; 0: free */
    size_t index_count;
    uint64_t seed;
};

/* By their flags. */
static const struct rule generic[] = {{.kind = RULE_GENERIC},
                                      {.kind = RULE_GENERIC, .flags = 1},
                                      {.kind = RULE_GENERIC, .flags = 2},
                                      {.kind = RULE_GENERIC, .flags = 3}};

/* Keys are a recorded program's to choose: the seed, which differs from run to run wherever addresses do, keeps it from
 * having them collide. */
static inline size_t spread(const struct rule_table *t, uint64_t key, size_t count)
{
    uint64_t h = (key ^ t->seed) * SPREAD;

    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(h >> 32) & (count - 1);
}

static struct rule *rule_at(const struct rule_table *t, uint32_t number)
{
    return &t->chunks[(number - 1) / CHUNK_RULES][(number - 1) % CHUNK_RULES];
}

static uint64_t rule_hash(const struct rule_table *t, const struct rule *rule)
{
    uint64_t words[sizeof *rule / sizeof(uint64_t)];
    uint64_t hash = t->seed;

    memcpy(words, rule, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = (hash ^ words[i] ^ hash >> 29) * SPREAD;
    return hash;
}

/* The slot of the index that has the rule, or where it belongs. The index has a free one. */
static uint16_t *index_slot(const struct rule_table *t, const struct rule *rule)
{
    size_t i = spread(t, rule_hash(t, rule), t->index_count);

    while (t->index[i] != 0 && memcmp(rule_at(t, t->index[i]), rule, sizeof *rule) != 0)
        i = (i + 1) & (t->index_count - 1);
    return &t->index[i];
}

static bool grow_index(struct rule_table *t)
{
    size_t count = t->index_count == 0 ? 64 : t->index_count * 2;
    uint16_t *index = calloc(count, sizeof *index);

    if (index == NULL)
        return false;
    free(t->index);
    t->index = index;
    t->index_count = count;
    for (uint32_t number = 1; number <= t->rules; number++)
        *index_slot(t, rule_at(t, number)) = (uint16_t)number;
    return true;
}

/* The number of a rule, added when it is new. 0: no memory, or all numbers are taken. */
static uint32_t intern(struct rule_table *t, const struct rule *rule)
{
    uint16_t *slot;

    if ((size_t)t->rules * 2 >= t->index_count && !grow_index(t))
        return 0;
    slot = index_slot(t, rule);
    if (*slot != 0)
        return *slot;
    if (t->rules == RULES_MAX)
        return 0;
    if (t->rules % CHUNK_RULES == 0) {
        struct rule *chunk = malloc(CHUNK_RULES * sizeof *chunk);

        if (chunk == NULL)
            return 0;
        t->chunks[t->rules / CHUNK_RULES] = chunk;
    }
    *rule_at(t, ++t->rules) = *rule;
    *slot = (uint16_t)t->rules;
    return t->rules;
}

/* The slot of an address, or where it belongs. The table has a free one. */
static uint64_t *slot_of(const struct rule_table *t, uint64_t address)
{
    size_t i = spread(t, address, t->slot_count);

    while (t->slots[i] != 0 && t->slots[i] >> 16 != address)
        i = (i + 1) & (t->slot_count - 1);
    return &t->slots[i];
}

/* Makes room for one more. Returns false when there is none. */
static bool make_room(struct rule_table *t)
{
    size_t count = t->slot_count == 0 ? FIRST_SLOTS : t->slot_count * 2;
    struct rule_table bigger = *t;

    if (t->used < t->slot_count / 8 * 5)
        return true;
    if (t->slot_count == MAX_SLOTS) {
        memset(t->slots, 0, t->slot_count * sizeof *t->slots);
        t->used = 0;
        return true;
    }
    bigger.slots = calloc(count, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return false;
    bigger.slot_count = count;
    for (size_t i = 0; i < t->slot_count; i++)
        if (t->slots[i] != 0)
            *slot_of(&bigger, t->slots[i] >> 16) = t->slots[i];
    free(t->slots);
    *t = bigger;
    return true;
}

struct rule_table *recordint_rule_table_new(void)
{
    struct rule_table *t = calloc(1, sizeof *t);

    if (t != NULL)
        t->seed = (uintptr_t)t;
    return t;
}

void recordint_rule_table_free(struct rule_table *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < CHUNKS; i++)
        free(t->chunks[i]);
    free(t->index);
    free(t->slots);
    free(t);
}

const struct rule *recordint_rule_table_get(const struct rule_table *t, uint64_t address)
{
    uint64_t slot;

    if (t->slot_count == 0 || address >> ADDRESS_BITS != 0)
        return NULL;
    slot = *slot_of(t, address);
    return slot != 0 ? rule_at(t, slot & 0xffff) : NULL;
}

const struct rule *recordint_rule_table_put(struct rule_table *t, uint64_t address,
                                            const struct rule *rule)
{
    uint32_t number = intern(t, rule);

    if (number == 0)
        return &generic[rule->flags & 3];
    if (address >> ADDRESS_BITS == 0 && make_room(t)) {
        uint64_t *slot = slot_of(t, address);

        t->used += *slot == 0;
        *slot = address << 16 | number;
    }
    return rule_at(t, number);
}

const struct rule *recordint_rule_table_intern(struct rule_table *t, const struct rule *rule)
{
    uint32_t number = intern(t, rule);

    return number != 0 ? rule_at(t, number) : NULL;
}

size_t recordint_rule_table_rules(const struct rule_table *t)
{
    return t->rules;
}

size_t recordint_rule_table_entries(const struct rule_table *t)
{
    return t->used;
}

static struct unwind_cache_entry *new_entries(unsigned bits)
{
    size_t size = sizeof(struct unwind_cache_entry) << bits;
    struct unwind_cache_entry *entries = aligned_alloc(CACHE_LINE, size);

    if (entries != NULL)
        memset(entries, 0, size);
    return entries;
}

struct unwind_cache *recordint_unwind_cache_new(void)
{
    struct unwind_cache *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->shift = 64 - CACHE_FIRST_BITS;
    c->entries = new_entries(CACHE_FIRST_BITS);
    if (c->entries == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

void recordint_unwind_cache_free(struct unwind_cache *c)
{
    if (c == NULL)
        return;
    free(c->entries);
    free(c);
}

/* Doubles the cache; without memory it stays as it is. */
static void grow_cache(struct unwind_cache *c)
{
    unsigned bits = 64 - c->shift;
    struct unwind_cache_entry *smaller = c->entries;
    struct unwind_cache_entry *bigger = new_entries(bits + 1);

    if (bigger == NULL)
        return;
    c->entries = bigger;
    c->shift--;
    for (size_t i = 0; i < (size_t)1 << bits; i++)
        if (smaller[i].rule != NULL)
            *unwind_cache_slot(c, smaller[i].address) = smaller[i];
    free(smaller);
}

struct unwind_cache_entry *recordint_unwind_cache_put(struct unwind_cache *c, uint64_t address,
                                                      uint64_t generation, const struct rule *rule,
                                                      uint32_t module)
{
    struct unwind_cache_entry *e = unwind_cache_slot(c, address);
    unsigned bits = 64 - c->shift;

    assert(rule != NULL);
    c->conflicts += e->rule != NULL && e->address != address;
    if (c->conflicts > 1u << (bits - 1) && bits < CACHE_MAX_BITS) {
        grow_cache(c);
        c->conflicts = 0;
        e = unwind_cache_slot(c, address);
    }
    e->address = address;
    e->generation = generation;
    e->rule = rule;
    e->module = module;
    e->code_round = 0;
    return e;
}
