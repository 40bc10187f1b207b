/* SPDX-License-Identifier: MIT */
/* DWARF expressions, in the operations that unwind tables have; others are EXPRESSION_BAD. */
#include "replay_expression.h"

#include <dwarf.h>
#include <string.h>

#define DEPTH 32

static enum expression_result load(const struct expression *e, uint64_t address, uint64_t *out)
{
    uint64_t at = address - e->stack_start;

    if (e->stack_size < 8 || at > e->stack_size - 8)
        return EXPRESSION_READ;
    memcpy(out, e->stack + at, 8);
    return EXPRESSION_VALUE;
}

static enum expression_result reg_value(const struct expression *e, uint64_t reg, uint64_t *out)
{
    if (reg >= REG_COUNT || !reg_is_known(e->regs, (unsigned)reg))
        return EXPRESSION_REGISTER;
    *out = e->regs->value[reg];
    return EXPRESSION_VALUE;
}

/* Operations on the two values on top. False: it is none of them. */
static bool binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *out)
{
    int64_t x = (int64_t)a, y = (int64_t)b;

    switch (atom) {
    case DW_OP_and:
        *out = a & b;
        return true;
    case DW_OP_or:
        *out = a | b;
        return true;
    case DW_OP_plus:
        *out = a + b;
        return true;
    case DW_OP_minus:
        *out = a - b;
        return true;
    case DW_OP_mul:
        *out = a * b;
        return true;
    case DW_OP_shl:
        *out = b < 64 ? a << b : 0;
        return true;
    case DW_OP_shr:
        *out = b < 64 ? a >> b : 0;
        return true;
    case DW_OP_eq:
        *out = a == b;
        return true;
    case DW_OP_ne:
        *out = a != b;
        return true;
    case DW_OP_ge:
        *out = x >= y;
        return true;
    case DW_OP_gt:
        *out = x > y;
        return true;
    case DW_OP_le:
        *out = x <= y;
        return true;
    case DW_OP_lt:
        *out = x < y;
        return true;
    default:
        return false;
    }
}

/* Operations that put a value on the stack; EXPRESSION_UNDEFINED: it is none of them. */
static enum expression_result pushed(const struct expression *e, const Dwarf_Op *op, uint64_t *out)
{
    uint8_t atom = op->atom;
    enum expression_result result = EXPRESSION_VALUE;

    if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
        *out = (uint64_t)(atom - DW_OP_lit0);
    } else if (atom >= DW_OP_const1u && atom <= DW_OP_consts) {
        *out = op->number;
    } else if (atom == DW_OP_addr) {
        *out = op->number + e->bias;
    } else if (atom == DW_OP_call_frame_cfa) {
        *out = e->cfa;
        result = e->has_cfa ? EXPRESSION_VALUE : EXPRESSION_BAD;
    } else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
        result = reg_value(e, (uint64_t)(atom - DW_OP_breg0), out);
        *out += op->number;
    } else if (atom == DW_OP_bregx) {
        result = reg_value(e, op->number, out);
        *out += op->number2;
    } else {
        result = EXPRESSION_UNDEFINED;
    }
    return result;
}

enum expression_result expression_value(const struct expression *e, const Dwarf_Op *ops,
                                        size_t count, uint64_t *out)
{
    uint64_t stack[DEPTH + 1];
    size_t depth = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        enum expression_result result = pushed(e, &ops[i], &value);

        if (result == EXPRESSION_VALUE) {
            if (depth == DEPTH)
                return EXPRESSION_BAD;
            stack[depth++] = value;
        } else if (result != EXPRESSION_UNDEFINED) {
            return result;
        } else if (depth == 0) {
            return EXPRESSION_BAD;
        } else if (ops[i].atom == DW_OP_deref) {
            result = load(e, stack[depth - 1], &stack[depth - 1]);
            if (result != EXPRESSION_VALUE)
                return result;
        } else if (ops[i].atom == DW_OP_plus_uconst) {
            stack[depth - 1] += ops[i].number;
        } else if (ops[i].atom == DW_OP_dup && depth < DEPTH) {
            stack[depth] = stack[depth - 1];
            depth++;
        } else if (depth >= 2 &&
                   binary(ops[i].atom, stack[depth - 2], stack[depth - 1], &stack[depth - 2])) {
            depth--;
        } else if (ops[i].atom != DW_OP_nop && ops[i].atom != DW_OP_stack_value) {
            return EXPRESSION_BAD;
        }
    }
    if (depth == 0)
        return EXPRESSION_BAD;
    *out = stack[depth - 1];
    return EXPRESSION_VALUE;
}

enum expression_result expression_location(const struct expression *e, const Dwarf_Op *ops,
                                           size_t count, uint64_t *out)
{
    enum expression_result result;
    uint64_t address;

    if (count == 1 && ops[0].atom == DW_OP_regx)
        return reg_value(e, ops[0].number, out);
    if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
        return reg_value(e, (uint64_t)(ops[0].atom - DW_OP_reg0), out);
    result = expression_value(e, ops, count, &address);
    if (result != EXPRESSION_VALUE || ops[count - 1].atom == DW_OP_stack_value) {
        *out = address;
        return result;
    }
    return load(e, address, out);
}
