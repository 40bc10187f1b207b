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

/* The table's own copy of a rule that belongs to no address; NULL: no memory, or too many. */
const struct rule *recordint_rule_table_intern(struct rule_table *t, const struct rule *rule);

size_t recordint_rule_table_rules(const struct rule_table *t);   /* distinct ones (tests) */
size_t recordint_rule_table_entries(const struct rule_table *t); /* addresses (tests) */

/* 32 bytes, so that none lies in two cache lines. */
struct unwind_cache_entry {
    uint64_t address;
    uint64_t generation;
    const struct rule *rule; /* NULL: the entry is empty */
    uint32_t module;
    uint32_t
        code_round; /* unwind_space.code_round when the rule's code was read; 0: it holds for ever */
};

/* Whether an address may be the return address of the frame without unwind data at a pc, in a round. */
struct unwind_return {
    uint64_t pc;
    uint64_t address;
    uint64_t generation;
    uint32_t code_round; /* 0: the entry is empty */
    uint8_t found;       /* how it was found: enum walk_found */
    bool plausible;
};

#define UNWIND_RETURNS 2048 /* 64 KiB: more than the frames of a stack */

struct unwind_cache {
    struct unwind_cache_entry *entries;
    unsigned shift;     /* 64 - log2 of how many */
    unsigned conflicts; /* live entries overwritten since it grew */
    struct unwind_return returns[UNWIND_RETURNS];
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

/* Replaces what was in the address's place; the rule holds for ever. May move all entries. Returns the new one. */
struct unwind_cache_entry *recordint_unwind_cache_put(struct unwind_cache *c, uint64_t address,
                                                      uint64_t generation, const struct rule *rule,
                                                      uint32_t module);

#endif
