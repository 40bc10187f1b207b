/* SPDX-License-Identifier: MIT */
/*
 * A stack machine with bounds: expressions come from files that nobody vouches for. Operators as in DWARF 5,
 * 2.5.1; those that need types, debug information or other frames have no place in unwind tables.
 */
#include "cfi_expr.h"

#include <stdbool.h>

#define STACK_MAX 64
#define STEPS_MAX 1000

enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S,
    OP_CONST2U,
    OP_CONST2S,
    OP_CONST4U,
    OP_CONST4S,
    OP_CONST8U,
    OP_CONST8S,
    OP_CONSTU,
    OP_CONSTS,
    OP_DUP = 0x12,
    OP_DROP,
    OP_OVER,
    OP_PICK,
    OP_SWAP,
    OP_ROT,
    OP_ABS = 0x19,
    OP_AND,
    OP_DIV,
    OP_MINUS,
    OP_MOD,
    OP_MUL,
    OP_NEG,
    OP_NOT,
    OP_OR,
    OP_PLUS,
    OP_PLUS_UCONST,
    OP_SHL,
    OP_SHR,
    OP_SHRA,
    OP_XOR,
    OP_BRA,
    OP_EQ,
    OP_GE,
    OP_GT,
    OP_LE,
    OP_LT,
    OP_NE,
    OP_SKIP,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96
};

struct machine {
    const uint8_t *bytes;
    size_t size;
    size_t at;
    const struct regs *regs;
    const struct stack_copy *copy;
    uint64_t bias;
    uint64_t stack[STACK_MAX];
    size_t depth;
    enum cfi_expr_result result; /* the first thing that went wrong */
    uint64_t missing;            /* of CFI_EXPR_READ */
};

static void fail(struct machine *m, enum cfi_expr_result result)
{
    if (m->result == CFI_EXPR_VALUE)
        m->result = result;
}

static void push(struct machine *m, uint64_t value)
{
    if (m->depth == STACK_MAX)
        fail(m, CFI_EXPR_BAD);
    else
        m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
    if (m->depth == 0) {
        fail(m, CFI_EXPR_BAD);
        return 0;
    }
    return m->stack[--m->depth];
}

static uint64_t peek(struct machine *m, size_t below_top)
{
    if (below_top >= m->depth) {
        fail(m, CFI_EXPR_BAD);
        return 0;
    }
    return m->stack[m->depth - 1 - below_top];
}

static uint64_t fixed(struct machine *m, size_t size)
{
    uint64_t value = 0;

    if (size > m->size - m->at) {
        fail(m, CFI_EXPR_BAD);
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)m->bytes[m->at + i] << 8 * i;
    m->at += size;
    return value;
}

static uint64_t sign_extend(uint64_t value, unsigned bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);

    return bits == 64 ? value : (value ^ sign) - sign;
}

/* LEB128; bits beyond 64 are dropped. */
static uint64_t leb(struct machine *m, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;

    while (m->at < m->size) {
        uint8_t byte = m->bytes[m->at++];

        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if ((byte & 0x80) == 0)
            return is_signed && shift < 64 ? sign_extend(value, shift) : value;
        if (shift > 1000)
            break;
    }
    fail(m, CFI_EXPR_BAD);
    return 0;
}

static void push_register(struct machine *m, uint64_t reg, uint64_t offset)
{
    if (reg >= REG_COUNT || !reg_is_known(m->regs, (unsigned)reg))
        fail(m, CFI_EXPR_REGISTER);
    else
        push(m, m->regs->value[reg] + offset);
}

/* Byte by byte, since less than a word may be wanted at the end of what was copied. */
static void deref(struct machine *m, size_t size)
{
    uint64_t address = pop(m);
    uint64_t offset = address - m->copy->start;
    uint64_t value = 0;

    if (size == 0 || size > 8) {
        fail(m, CFI_EXPR_BAD);
        return;
    }
    if (offset > m->copy->size || size > m->copy->size - offset) {
        m->missing = address;
        fail(m, CFI_EXPR_READ);
        return;
    }
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)m->copy->bytes[offset + i] << 8 * i;
    push(m, value);
}

static void jump(struct machine *m, uint64_t distance, bool taken)
{
    uint64_t target = m->at + distance; /* wraps for a negative one */

    if (!taken)
        return;
    if (target > m->size)
        fail(m, CFI_EXPR_BAD);
    else
        m->at = (size_t)target;
}

static uint64_t shift_right_signed(uint64_t value, uint64_t by)
{
    bool negative = value >> 63 != 0;
    uint64_t shifted = by < 64 ? value >> by : 0;

    if (!negative || by == 0)
        return shifted;
    return by < 64 ? shifted | ~UINT64_C(0) << (64 - by) : ~UINT64_C(0);
}

static uint64_t divide(struct machine *m, uint64_t a, uint64_t b)
{
    if (b == 0) {
        fail(m, CFI_EXPR_BAD);
        return 0;
    }
    if (b == UINT64_MAX) /* by -1: the most negative number has no other side */
        return 0 - a;
    return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t remainder_of(struct machine *m, uint64_t a, uint64_t b)
{
    if (b == 0) {
        fail(m, CFI_EXPR_BAD);
        return 0;
    }
    return a % b;
}

/* Operators of two values, the top one on the right. Returns false for any other. */
static bool binary(struct machine *m, uint8_t op)
{
    uint64_t a, b, value;

    switch (op) {
    case OP_AND:
    case OP_DIV:
    case OP_MINUS:
    case OP_MOD:
    case OP_MUL:
    case OP_OR:
    case OP_PLUS:
    case OP_SHL:
    case OP_SHR:
    case OP_SHRA:
    case OP_XOR:
    case OP_EQ:
    case OP_GE:
    case OP_GT:
    case OP_LE:
    case OP_LT:
    case OP_NE:
        break;
    default:
        return false;
    }
    b = pop(m);
    a = pop(m);
    switch (op) {
    case OP_AND:
        value = a & b;
        break;
    case OP_DIV:
        value = divide(m, a, b);
        break;
    case OP_MINUS:
        value = a - b;
        break;
    case OP_MOD:
        value = remainder_of(m, a, b);
        break;
    case OP_MUL:
        value = a * b;
        break;
    case OP_OR:
        value = a | b;
        break;
    case OP_PLUS:
        value = a + b;
        break;
    case OP_SHL:
        value = b < 64 ? a << b : 0;
        break;
    case OP_SHR:
        value = b < 64 ? a >> b : 0;
        break;
    case OP_SHRA:
        value = shift_right_signed(a, b);
        break;
    case OP_XOR:
        value = a ^ b;
        break;
    case OP_EQ:
        value = a == b;
        break;
    case OP_GE:
        value = (int64_t)a >= (int64_t)b;
        break;
    case OP_GT:
        value = (int64_t)a > (int64_t)b;
        break;
    case OP_LE:
        value = (int64_t)a <= (int64_t)b;
        break;
    case OP_LT:
        value = (int64_t)a < (int64_t)b;
        break;
    default:
        value = a != b;
        break;
    }
    push(m, value);
    return true;
}

/* Operators that push what stands in the expression. Returns false for any other. */
static bool constant(struct machine *m, uint8_t op)
{
    if (op >= OP_LIT0 && op <= OP_LIT31) {
        push(m, (uint64_t)(op - OP_LIT0));
        return true;
    }
    switch (op) {
    case OP_ADDR:
        push(m, fixed(m, 8) + m->bias);
        return true;
    case OP_CONST1U:
    case OP_CONST2U:
    case OP_CONST4U:
    case OP_CONST8U:
        push(m, fixed(m, (size_t)1 << (op - OP_CONST1U) / 2));
        return true;
    case OP_CONST1S:
    case OP_CONST2S:
    case OP_CONST4S:
    case OP_CONST8S: {
        size_t size = (size_t)1 << (op - OP_CONST1S) / 2;

        push(m, sign_extend(fixed(m, size), (unsigned)(8 * size)));
        return true;
    }
    case OP_CONSTU:
        push(m, leb(m, false));
        return true;
    case OP_CONSTS:
        push(m, leb(m, true));
        return true;
    default:
        return false;
    }
}

/* Operators that only move what is on the stack. Returns false for any other. */
static bool shuffle(struct machine *m, uint8_t op)
{
    uint64_t a, b, c;

    switch (op) {
    case OP_DUP:
        push(m, peek(m, 0));
        return true;
    case OP_DROP:
        pop(m);
        return true;
    case OP_OVER:
        push(m, peek(m, 1));
        return true;
    case OP_PICK:
        push(m, peek(m, (size_t)fixed(m, 1)));
        return true;
    case OP_SWAP:
        a = pop(m);
        b = pop(m);
        push(m, a);
        push(m, b);
        return true;
    case OP_ROT: /* the top goes below the next two */
        a = pop(m);
        b = pop(m);
        c = pop(m);
        push(m, a);
        push(m, c);
        push(m, b);
        return true;
    default:
        return false;
    }
}

static void other(struct machine *m, uint8_t op)
{
    uint64_t value;

    if (op >= OP_BREG0 && op <= OP_BREG31) {
        push_register(m, (uint64_t)(op - OP_BREG0), leb(m, true));
        return;
    }
    switch (op) {
    case OP_BREGX:
        value = leb(m, false);
        push_register(m, value, leb(m, true));
        break;
    case OP_DEREF:
        deref(m, 8);
        break;
    case OP_DEREF_SIZE:
        deref(m, (size_t)fixed(m, 1));
        break;
    case OP_ABS:
        value = pop(m);
        push(m, value >> 63 != 0 ? 0 - value : value);
        break;
    case OP_NEG:
        push(m, 0 - pop(m));
        break;
    case OP_NOT:
        push(m, ~pop(m));
        break;
    case OP_PLUS_UCONST:
        value = pop(m);
        push(m, value + leb(m, false));
        break;
    case OP_SKIP:
        jump(m, sign_extend(fixed(m, 2), 16), true);
        break;
    case OP_BRA:
        value = sign_extend(fixed(m, 2), 16);
        jump(m, value, pop(m) != 0);
        break;
    case OP_NOP:
        break;
    default:
        fail(m, CFI_EXPR_BAD);
        break;
    }
}

enum cfi_expr_result recordint_cfi_expr(const struct cfi_expr *expr, const struct regs *regs,
                                        const struct stack_copy *copy, uint64_t bias,
                                        const uint64_t *cfa, uint64_t *out)
{
    struct machine m;

    m.bytes = expr->bytes;
    m.size = expr->size;
    m.at = 0;
    m.regs = regs;
    m.copy = copy;
    m.bias = bias;
    m.depth = 0;
    m.result = CFI_EXPR_VALUE;
    m.missing = 0;
    if (cfa != NULL)
        push(&m, *cfa);
    for (unsigned steps = 0; m.result == CFI_EXPR_VALUE && m.at < m.size; steps++) {
        uint8_t op = m.bytes[m.at++];

        if (steps == STEPS_MAX)
            fail(&m, CFI_EXPR_BAD);
        else if (!constant(&m, op) && !shuffle(&m, op) && !binary(&m, op))
            other(&m, op);
    }
    *out = m.missing;
    if (m.result == CFI_EXPR_VALUE)
        *out = peek(&m, 0);
    return m.result;
}
