/* SPDX-License-Identifier: MIT */
/*
 * The compact form of a row of unwind tables: what the walk's fast path applies without decoding anything.
 */
#ifndef RECORD_RULE_H
#define RECORD_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch.h"
#include "cfi.h"
#include "image.h"

enum rule_kind {
    RULE_NONE = 0, /* no unwind data here, or none that can be understood */
    RULE_STOP,     /* the return address is undefined: the outermost frame */
    RULE_SIMPLE,   /* CFA is register + offset; saved registers lie at words below it */
    RULE_PLT,      /* CFA is rsp + cfa_offset, 1 << saved[1] more if (rip & 15) >= saved[0] */
    RULE_REALIGNED, /* CFA is what lies at register + offset, saved registers lie at words from that register */
    RULE_SIGRETURN,  /* the kernel's signal frame, laid out as unwind_signal.c knows it */
    RULE_GENERIC,    /* none of these: ask recordint_cfi_row again and apply the row */
    RULE_TRAMPOLINE, /* [uprobes], where no caller can be found */
    RULE_STUB /* AArch64's entries of a PLT, which have no row: CFA is sp + cfa_offset, x30 the return address */
};

/* Bits of rule.flags. */
enum {
    RULE_SIGNAL = 1, /* a signal frame */
    RULE_BEFORE_START =
        2, /* a function begins at the next byte: what returns there, if anything, is not of this code
                            unless its last instruction is a call */
    RULE_START = 4, /* the first byte of a function */
    RULE_CODE =
        8 /* there is no unwind data: made from the instructions, or RULE_NONE and these do not tell */
};

enum {
    RULE_SAVED_MAX = 6,
    RULE_RETURN = RULE_SAVED_MAX, /* place of the return address in saved */
    RULE_A64_SAVED = 12,          /* x19-x30 */
    RULE_A64_FIRST = 19           /* the register of bit 0 and of above[0] */
};

/* What the two machines keep of the saved registers. Both know the lowest place, so that one check covers all.
 *
 * x86-64: saved has words from the CFA, -32768 to -1, of rbx, rbp, r12-r15 and of the return address; of
 * RULE_REALIGNED, any from its register, but the return address. saved_mask tells which of the first six are saved,
 * the others keep their value. lowest is the smallest of the offsets that count.
 *
 * AArch64: bit n of a64.saved_mask: x19 + n is saved, above[n] words above the word at CFA + 8 * lowest, -32768 to
 * -1. Without x30 among them the return address is still in it. */
struct rule {
    uint8_t kind;
    uint8_t flags;
    uint8_t cfa_register;
    uint8_t saved_mask; /* x86-64 */
    int32_t cfa_offset;
    union {
        struct {
            int16_t saved[RULE_SAVED_MAX + 1];
            int16_t lowest;
        };
        struct {
            uint16_t saved_mask;
            int16_t lowest;
            uint8_t above[RULE_A64_SAVED];
        } a64;
    };
};

_Static_assert(sizeof(struct rule) == 24, "a table of them is large");

/* DWARF numbers of saved[0..5] on x86-64. */
extern const uint8_t recordint_rule_x86_saved[RULE_SAVED_MAX];

/* Where x86-64's kernel saves the registers of what a signal interrupted: struct ucontext, which the stack pointer
 * points to when the handler has returned, has them as words from RULE_X86_UCONTEXT on, in this order of
 * DWARF numbers. */
enum { RULE_X86_UCONTEXT = 40, RULE_X86_UCONTEXT_COUNT = 17 };
extern const uint8_t recordint_rule_x86_ucontext[RULE_X86_UCONTEXT_COUNT];

/* Whether a call leaves the register as it was (the stack pointer is not among them: it becomes the CFA). */
static inline bool rule_is_callee_saved(enum arch arch, unsigned reg)
{
    if (arch == ARCH_X86_64)
        return reg == REG_X86_RBX || reg == REG_X86_RBP || (reg >= 12 && reg <= 15);
    return reg >= 19 && reg <= REG_A64_LR;
}

/* Registers that a row can speak of: those above are of other kinds (xmm0 is x86-64's 17). */
static inline unsigned rule_register_count(enum arch arch)
{
    return arch == ARCH_X86_64 ? REG_X86_RIP + 1 : REG_A64_SP + 1;
}

/* Makes the rule of a row. What does not fit is RULE_GENERIC; flags get RULE_SIGNAL only. */
void recordint_rule_from_row(enum arch arch, const struct cfi_row *row, struct rule *out);

/* Makes the rule for an address of the image, flags included. Unreadable tables give RULE_NONE. */
void recordint_rule_make(enum arch arch, struct image *image, uint64_t address, struct rule *out);

#endif
