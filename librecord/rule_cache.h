/* SPDX-License-Identifier: MIT */
/*
 * Where rules are kept: by image and its own address (struct rule_table), and in front of it by runtime
 * address (struct unwind_cache). Both are bounded and forget rather than fail.
 */
#ifndef RECORD_RULE_CACHE_H
#define RECORD_RULE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rule.h"
#include "unwind.h"

/* The rule kept for an address of the image, NULL: none. What is returned lives as long as the table. */
const struct rule *recordint_rule_table_get(const struct rule_table *t, uint64_t address);

/* Keeps the rule. Returns the table's own copy; without memory a static RULE_GENERIC that is always right. */
const struct rule *recordint_rule_table_put(struct rule_table *t, uint64_t address,
                                            const struct rule *rule);

size_t recordint_rule_table_rules(const struct rule_table *t);   /* distinct ones (tests) */
size_t recordint_rule_table_entries(const struct rule_table *t); /* addresses (tests) */

/* 32 bytes, so that none lies in two cache lines. */
struct unwind_cache_entry {
    uint64_t address;
    uint64_t generation;
    const struct rule *rule; /* NULL: the entry is empty */
    uint32_t module;
    uint32_t unused;
};

struct unwind_cache {
    struct unwind_cache_entry *entries;
    unsigned shift;     /* 64 - log2 of how many */
    unsigned conflicts; /* live entries overwritten since it grew */
};

static inline struct unwind_cache_entry *unwind_cache_slot(const struct unwind_cache *c,
                                                           uint64_t address)
{
    return &c->entries[address * UINT64_C(0x9e3779b97f4a7c15) >> c->shift];
}

/* Returns the entry of the address, NULL: none. */
static inline const struct unwind_cache_entry *unwind_cache_get(const struct unwind_cache *c,
                                                                uint64_t address,
                                                                uint64_t generation)
{
    const struct unwind_cache_entry *e = unwind_cache_slot(c, address);

    return e->address == address && e->generation == generation && e->rule != NULL ? e : NULL;
}

/* Replaces what was in the address's place. May move all entries. */
void recordint_unwind_cache_put(struct unwind_cache *c, uint64_t address, uint64_t generation,
                                const struct rule *rule, uint32_t module);

#endif
