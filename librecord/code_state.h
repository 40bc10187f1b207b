/* SPDX-License-Identifier: MIT */
/*
 * Registers and stack while straight code is followed, in terms of what they were at its first instruction: what
 * code_row.c and the decoders of the two machines share.
 */
#ifndef RECORD_CODE_STATE_H
#define RECORD_CODE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

enum code_value_kind {
    CODE_UNKNOWN = 0,
    CODE_INITIAL, /* what register reg was, + offset */
    CODE_WORD     /* what lay at the address that register reg was, + offset */
};

struct code_value {
    uint8_t kind;
    uint8_t reg;
    int32_t offset;
};

/* A word that the code has stored. */
struct code_slot {
    uint8_t reg;
    int32_t offset;
    struct code_value value;
};

enum { CODE_REGISTERS = 32, CODE_SLOTS = 24 };

struct code_state {
    enum arch arch;
    struct code_value reg[CODE_REGISTERS]; /* by DWARF number */
    struct code_slot slots[CODE_SLOTS];
    size_t slot_count;
    unsigned calls;
    bool calls_deep; /* each call was made below where the stack pointer was at first */
};

enum code_step {
    CODE_ON, /* followed */
    CODE_RETURNS, /* it returns; x86-64: to where the stack pointer points, AArch64: to register *target */
    CODE_STOP /* not understood, or it does not run straight on */
};

/* Follows the instruction at code. *length: its bytes. */
enum code_step recordint_code_step_x86(struct code_state *s, const uint8_t *code, size_t size,
                                       size_t *length);
enum code_step recordint_code_step_a64(struct code_state *s, uint32_t word, unsigned *target);

/* What the decoders do to the state; false: that cannot be followed. */
bool recordint_code_add(struct code_state *s, unsigned to, unsigned from, int32_t offset);
bool recordint_code_load(struct code_state *s, unsigned to, unsigned base, int32_t offset);
/* from: a register; CODE_REGISTERS: something else, of 8 bytes. */
bool recordint_code_store(struct code_state *s, unsigned base, int32_t offset, unsigned from);
bool recordint_code_call(struct code_state *s);

static inline void code_forget(struct code_state *s, unsigned reg)
{
    s->reg[reg].kind = CODE_UNKNOWN;
}

/* The word at an address, as far as the code says. */
struct code_value recordint_code_word(const struct code_state *s, struct code_value address);

#endif
