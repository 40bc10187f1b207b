/* SPDX-License-Identifier: MIT */
/*
 * The AArch64 instructions of frames and their release, and moves between registers. All others stop.
 */
#include "code_state.h"

#define XZR 31 /* as a register that is stored or loaded; as a base it is sp */
#define WORD 8

static unsigned bits(uint32_t word, unsigned low, unsigned count)
{
    return word >> low & ((1u << count) - 1);
}

static int32_t signed_bits(uint32_t word, unsigned low, unsigned count)
{
    int32_t sign = (int32_t)1 << (count - 1);

    return ((int32_t)bits(word, low, count) ^ sign) - sign;
}

enum indexing { INDEX_POST = 1, INDEX_OFFSET = 2, INDEX_PRE = 3 };

struct access {
    bool load;
    bool vector;
    enum indexing indexing;
    unsigned base;
    int32_t offset;
    unsigned reg[2];
    unsigned count;
};

/* ldp and stp of 64-bit registers. */
static bool is_pair(uint32_t word, struct access *out)
{
    bool vector = (word & 0xfe000000) == 0x6c000000;

    if ((word & 0xfe000000) != 0xa8000000 && !vector)
        return false;
    *out = (struct access){
        .load = bits(word, 22, 1) != 0,
        .vector = vector,
        .indexing = (enum indexing)bits(word, 23, 2),
        .base = bits(word, 5, 5),
        .offset = signed_bits(word, 15, 7) * WORD,
        .reg = {bits(word, 0, 5), bits(word, 10, 5)},
        .count = 2,
    };
    return out->indexing != 0;
}

/* ldr and str of a 64-bit register. */
static bool is_single(uint32_t word, struct access *out)
{
    *out = (struct access){
        .load = bits(word, 22, 1) != 0,
        .base = bits(word, 5, 5),
        .reg = {bits(word, 0, 5)},
        .count = 1,
    };
    if ((word & 0xff800000) == 0xf9000000) {
        out->indexing = INDEX_OFFSET;
        out->offset = (int32_t)bits(word, 10, 12) * WORD;
        return true;
    }
    if ((word & 0xffa00000) != 0xf8000000 || bits(word, 10, 1) == 0)
        return false;
    out->indexing = (enum indexing)bits(word, 10, 2);
    out->offset = signed_bits(word, 12, 9);
    return true;
}

static enum code_step access(struct code_state *s, const struct access *a)
{
    int32_t at = a->indexing == INDEX_POST ? 0 : a->offset;

    for (unsigned i = 0; i < a->count; i++, at += WORD) {
        bool followed = true;

        if (!a->load)
            followed =
                recordint_code_store(s, a->base, at,
                                     a->vector || a->reg[i] == XZR ? CODE_REGISTERS : a->reg[i]);
        else if (!a->vector && a->reg[i] != XZR)
            followed = a->reg[i] != a->base && recordint_code_load(s, a->reg[i], a->base, at);
        if (!followed)
            return CODE_STOP;
    }
    if (a->indexing != INDEX_OFFSET && !recordint_code_add(s, a->base, a->base, a->offset))
        return CODE_STOP;
    return CODE_ON;
}

enum code_step recordint_code_step_a64(struct code_state *s, uint32_t word, unsigned *target)
{
    struct access a;

    if ((word & 0xfffff01f) ==
        0xd503201f) /* nop, bti, and the signing of x30, which is masked off */
        return CODE_ON;
    if ((word & 0xfffffc1f) == 0xd65f0000) { /* ret */
        *target = bits(word, 5, 5);
        return *target < XZR ? CODE_RETURNS : CODE_STOP;
    }
    if ((word & 0xfffffbff) == 0xd65f0bff) { /* retaa, retab */
        *target = REG_A64_LR;
        return CODE_RETURNS;
    }
    if ((word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000 ||
        (word & 0xfefff800) == 0xd63f0800) /* bl, blr, blraa and its like */
        return recordint_code_call(s) ? CODE_ON : CODE_STOP;
    if ((word & 0xbf800000) == 0x91000000) { /* add and sub with a number: 31 is sp */
        int32_t number = (int32_t)(bits(word, 10, 12) << (bits(word, 22, 1) != 0 ? 12 : 0));

        number = bits(word, 30, 1) != 0 ? -number : number;
        return recordint_code_add(s, bits(word, 0, 5), bits(word, 5, 5), number) ? CODE_ON
                                                                                 : CODE_STOP;
    }
    if ((word & 0xffe0ffe0) == 0xaa0003e0) { /* mov: 31 is the zero register */
        unsigned to = bits(word, 0, 5), from = bits(word, 16, 5);

        if (to == XZR)
            return CODE_ON;
        if (from == XZR)
            code_forget(s, to);
        else
            recordint_code_add(s, to, from, 0);
        return CODE_ON;
    }
    if (is_pair(word, &a) || is_single(word, &a))
        return access(s, &a);
    return CODE_STOP;
}
