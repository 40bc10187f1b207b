/* SPDX-License-Identifier: MIT */
/*
 * Where things stand in open hashes. Numbers and texts come from files that may want them to collide, so two words that
 * the kernel drew for this process take part, and no choice of keys is bad for every pair of them.
 */
#ifndef TOOLS_SPREAD_H
#define TOOLS_SPREAD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

__extension__ typedef unsigned __int128 spread_product;

struct spread {
    uint64_t seed;
    uint64_t factor; /* odd */
};

static inline struct spread spread_new(void)
{
    uintptr_t random = getauxval(AT_RANDOM); /* the address of 16 random bytes */
    const void *bytes = NULL;
    struct spread s = {0};

    memcpy(&bytes, &random, sizeof bytes);
    if (bytes)
        memcpy(&s, bytes, sizeof s);
    s.factor |= 1;
    return s;
}

/* Folds a product of 128 bits: each bit of it depends on all bits below it, and the upper half on all of the key. */
static inline uint64_t spread_number(const struct spread *s, uint64_t key)
{
    spread_product product = (spread_product)(key ^ s->seed) * s->factor;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t spread_text(const struct spread *s, const char *text, size_t size)
{
    uint64_t h = size, word;

    for (; size >= sizeof word; size -= sizeof word, text += sizeof word) {
        memcpy(&word, text, sizeof word);
        h = spread_number(s, h ^ word);
    }
    word = 0;
    if (size > 0)
        memcpy(&word, text, size);
    return spread_number(s, spread_number(s, h ^ word));
}

#endif
