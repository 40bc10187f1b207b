/* SPDX-License-Identifier: MIT */
/* Evaluates what libdw says of a register or the CFA: DWARF expressions over registers and a stack copy. */
#ifndef REPLAY_EXPRESSION_H
#define REPLAY_EXPRESSION_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

enum expression_result {
    EXPRESSION_VALUE,
    EXPRESSION_UNDEFINED,
    EXPRESSION_READ,     /* needs bytes that were not copied */
    EXPRESSION_REGISTER, /* needs a register that is not known */
    EXPRESSION_BAD
};

struct expression {
    const struct regs *regs;
    const uint8_t *stack;
    uint64_t stack_start;
    size_t stack_size;
    uint64_t bias; /* of DW_OP_addr */
    uint64_t cfa;
    bool has_cfa;
};

/* What the operations leave on top. */
enum expression_result expression_value(const struct expression *e, const Dwarf_Op *ops,
                                        size_t count, uint64_t *out);

/* The same as a place: what is stored there, but for a register or DW_OP_stack_value. */
enum expression_result expression_location(const struct expression *e, const Dwarf_Op *ops,
                                           size_t count, uint64_t *out);

#endif
