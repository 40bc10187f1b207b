/* SPDX-License-Identifier: MIT */
/*
 * Runs call frame instructions. A CIE's are run once and make the row that each of its FDEs starts from;
 * an FDE's are run up to the address that is asked for. Nothing is allocated.
 */
#include "cfi_private.h"

#include <string.h>

/* Compilers nest once; a copy of the row for each level lies on the stack. */
#define REMEMBERED_MAX 16

#define NO_REGISTER UINT32_MAX

/* Instructions; the first three hold an operand in their low six bits. */
enum {
    ADVANCE_LOC = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    PRIMARY = 0xc0,
    NOP = 0x00,
    SET_LOC = 0x01,
    ADVANCE_LOC1 = 0x02,
    ADVANCE_LOC2 = 0x03,
    ADVANCE_LOC4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REGISTER = 0x09,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DEF_CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SF = 0x11,
    DEF_CFA_SF = 0x12,
    DEF_CFA_OFFSET_SF = 0x13,
    VAL_OFFSET = 0x14,
    VAL_OFFSET_SF = 0x15,
    VAL_EXPRESSION = 0x16,
    AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
    AARCH64_NEGATE_RA_STATE = 0x2d, /* elsewhere GNU_window_save */
    GNU_ARGS_SIZE = 0x2e,
    GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f
};

struct program {
    struct cfi_cursor c;
    const struct cfi_cie *cie;
    struct cfi_row *row;
    struct cfi_row *remembered; /* room for REMEMBERED_MAX */
    unsigned depth;
    bool initial; /* the CIE's */
    bool aarch64;
    uint32_t registers; /* how many of the machine's are kept */
    uint64_t location;
    uint64_t target;
    uint64_t data_base;
    bool reached;              /* the row behind the target's begins */
    struct cfi_rule elsewhere; /* for registers that are not kept */
};

static uint32_t registers_of(const struct image *image)
{
    return image->arch == ARCH_X86_64 ? REG_X86_RIP + 1 : REG_A64_SP + 1;
}

/* Operands are read before: where they are bad, the cursor is, and what is done with them is forgotten. */
static bool fail(struct program *p)
{
    p->c.bad = true;
    return false;
}

/* ---- operands ---- */

static int64_t scaled(struct program *p, int64_t factored)
{
    int64_t offset;
    if (__builtin_mul_overflow(factored, p->cie->data_align, &offset)) {
        fail(p);
        return 0;
    }
    return offset;
}

static int64_t plain_offset(struct program *p)
{
    uint64_t value = cursor_uleb(&p->c);
    if (value > INT64_MAX) {
        fail(p);
        return 0;
    }
    return (int64_t)value;
}

static int64_t factored_offset(struct program *p)
{
    return scaled(p, plain_offset(p));
}

static int64_t factored_offset_sf(struct program *p)
{
    return scaled(p, cursor_sleb(&p->c));
}

/* A register's number; what does not fit is none of ours. */
static uint32_t take_register(struct program *p)
{
    uint64_t reg = cursor_uleb(&p->c);
    return reg < NO_REGISTER ? (uint32_t)reg : NO_REGISTER - 1;
}

static struct cfi_expr take_expression(struct program *p)
{
    uint64_t size = cursor_uleb(&p->c);
    const uint8_t *bytes = cursor_take(&p->c, size);
    return (struct cfi_expr){bytes, bytes == NULL ? 0 : (size_t)size};
}

/* ---- what instructions do ---- */

static struct cfi_rule *rule_of(struct program *p, uint32_t reg)
{
    return reg < p->registers ? &p->row->reg[reg] : &p->elsewhere;
}

static void set_offset(struct program *p, enum cfi_rule_kind kind, uint32_t reg, int64_t offset)
{
    *rule_of(p, reg) = (struct cfi_rule){.kind = kind, .offset = offset};
}

static void set_expression(struct program *p, enum cfi_rule_kind kind)
{
    struct cfi_rule *rule = rule_of(p, take_register(p));
    *rule = (struct cfi_rule){.kind = kind, .expr = take_expression(p)};
}

static void set_register(struct program *p)
{
    struct cfi_rule *rule = rule_of(p, take_register(p));
    uint32_t source = take_register(p);
    *rule = (struct cfi_rule){.kind = CFI_REGISTER,
                              .reg = source < p->registers ? source : NO_REGISTER};
}

/* To what the CIE says. */
static void restore(struct program *p, uint32_t reg)
{
    struct cfi_rule *rule = rule_of(p, reg);
    if (p->initial || rule == &p->elsewhere)
        *rule = (struct cfi_rule){.kind = CFI_UNSPECIFIED};
    else
        *rule = p->cie->initial.reg[reg];
}

static bool remember_state(struct program *p)
{
    if (p->depth == REMEMBERED_MAX)
        return fail(p);
    p->remembered[p->depth++] = *p->row;
    return true;
}

static bool restore_state(struct program *p)
{
    if (p->depth == 0)
        return fail(p);
    uint64_t start = p->row->start;
    *p->row = p->remembered[--p->depth];
    p->row->start = start;
    return true;
}

static void def_cfa(struct program *p, uint32_t reg, int64_t offset)
{
    p->row->cfa_is_expression = false;
    p->row->cfa_expr = (struct cfi_expr){NULL, 0};
    p->row->cfa_reg = reg;
    p->row->cfa_offset = offset;
}

/* Changing one part needs the other. */
static bool has_cfa_register(struct program *p)
{
    return !p->row->cfa_is_expression && p->row->cfa_reg != NO_REGISTER ? true : fail(p);
}

static void def_cfa_expression(struct program *p)
{
    p->row->cfa_expr = take_expression(p);
    p->row->cfa_is_expression = true;
    p->row->cfa_reg = 0;
    p->row->cfa_offset = 0;
}

/* Begins a row at a later location, or ends the run before it. */
static bool go_to(struct program *p, uint64_t location)
{
    if (p->initial || p->c.bad || location < p->location)
        return fail(p);
    if (location > p->target) {
        if (location < p->row->end)
            p->row->end = location;
        p->reached = true;
        return true;
    }
    p->location = p->row->start = location;
    return true;
}

static bool advance(struct program *p, uint64_t factored)
{
    uint64_t delta;
    uint64_t location;
    if (__builtin_mul_overflow(factored, p->cie->code_align, &delta) ||
        __builtin_add_overflow(p->location, delta, &location))
        return fail(p);
    return go_to(p, location);
}

static bool negate_ra_state(struct program *p)
{
    if (!p->aarch64)
        return fail(p);
    p->row->return_address_signed = !p->row->return_address_signed;
    return true;
}

/* ---- dispatch ---- */

static bool execute_rule(struct program *p, uint8_t op)
{
    uint32_t reg;
    switch (op) {
    case OFFSET_EXTENDED:
        reg = take_register(p);
        set_offset(p, CFI_OFFSET, reg, factored_offset(p));
        return true;
    case OFFSET_EXTENDED_SF:
        reg = take_register(p);
        set_offset(p, CFI_OFFSET, reg, factored_offset_sf(p));
        return true;
    case GNU_NEGATIVE_OFFSET_EXTENDED:
        reg = take_register(p);
        set_offset(p, CFI_OFFSET, reg, scaled(p, -plain_offset(p)));
        return true;
    case VAL_OFFSET:
        reg = take_register(p);
        set_offset(p, CFI_VAL_OFFSET, reg, factored_offset(p));
        return true;
    case VAL_OFFSET_SF:
        reg = take_register(p);
        set_offset(p, CFI_VAL_OFFSET, reg, factored_offset_sf(p));
        return true;
    case RESTORE_EXTENDED:
        restore(p, take_register(p));
        return true;
    case UNDEFINED:
        set_offset(p, CFI_UNDEFINED, take_register(p), 0);
        return true;
    case SAME_VALUE:
        set_offset(p, CFI_SAME_VALUE, take_register(p), 0);
        return true;
    case REGISTER:
        set_register(p);
        return true;
    case EXPRESSION:
        set_expression(p, CFI_EXPRESSION);
        return true;
    case VAL_EXPRESSION:
        set_expression(p, CFI_VAL_EXPRESSION);
        return true;
    default:
        return fail(p);
    }
}

static bool execute(struct program *p, uint8_t op)
{
    uint32_t reg;
    switch (op) {
    case NOP:
        return true;
    case SET_LOC:
        return go_to(p, cursor_pointer(&p->c, p->cie->encoding, p->data_base));
    case ADVANCE_LOC1:
        return advance(p, cursor_u8(&p->c));
    case ADVANCE_LOC2:
        return advance(p, cursor_u16(&p->c));
    case ADVANCE_LOC4:
        return advance(p, cursor_u32(&p->c));
    case REMEMBER_STATE:
        return remember_state(p);
    case RESTORE_STATE:
        return restore_state(p);
    case DEF_CFA:
        reg = take_register(p);
        def_cfa(p, reg, plain_offset(p));
        return true;
    case DEF_CFA_SF:
        reg = take_register(p);
        def_cfa(p, reg, factored_offset_sf(p));
        return true;
    case DEF_CFA_REGISTER:
        p->row->cfa_reg = has_cfa_register(p) ? take_register(p) : NO_REGISTER;
        return true;
    case DEF_CFA_OFFSET:
        p->row->cfa_offset = has_cfa_register(p) ? plain_offset(p) : 0;
        return true;
    case DEF_CFA_OFFSET_SF:
        p->row->cfa_offset = has_cfa_register(p) ? factored_offset_sf(p) : 0;
        return true;
    case DEF_CFA_EXPRESSION:
        def_cfa_expression(p);
        return true;
    case AARCH64_NEGATE_RA_STATE:
    case AARCH64_NEGATE_RA_STATE_WITH_PC:
        return negate_ra_state(p);
    case GNU_ARGS_SIZE: /* matters to those who land in the frame */
        cursor_uleb(&p->c);
        return true;
    default:
        return execute_rule(p, op);
    }
}

/* False: an instruction is unknown, cut off or makes no sense here. */
static bool run(struct program *p)
{
    while (p->c.at < p->c.end && !p->reached && !p->c.bad) {
        uint8_t op = *p->c.at++;
        uint8_t low = op & 0x3f;
        switch (op & PRIMARY) {
        case ADVANCE_LOC:
            advance(p, low);
            break;
        case OFFSET:
            set_offset(p, CFI_OFFSET, low, factored_offset(p));
            break;
        case RESTORE:
            restore(p, low);
            break;
        default:
            execute(p, op);
            break;
        }
    }
    return !p->c.bad;
}

static bool open_code(struct cfi_table *t, const struct cfi_code *code, struct cfi_cursor *c)
{
    const uint8_t *bytes = recordint_lazy_get(&t->bytes, code->at, code->size);
    if (bytes == NULL)
        return false;
    *c = (struct cfi_cursor){
        .at = bytes, .end = bytes + code->size, .address = t->address + code->at + code->size};
    return true;
}

/* The row of the CIE's instructions. */
static bool start(const struct image *image, struct cfi_table *t, struct cfi_cie *cie,
                  struct program *p)
{
    if (cie->started || cie->start_fails)
        return cie->started;
    if (!open_code(t, &cie->code, &p->c))
        return false;
    memset(&cie->initial, 0, sizeof(cie->initial));
    cie->initial.cfa_reg = NO_REGISTER;
    cie->initial.return_register = cie->return_register;
    cie->initial.signal_frame = cie->signal_frame;
    p->row = &cie->initial;
    p->initial = true;
    cie->started = cie->return_register < registers_of(image) && run(p);
    cie->start_fails = !cie->started;
    p->initial = false;
    p->depth = 0;
    return cie->started;
}

enum cfi_result recordint_cfi_run(const struct image *image, struct cfi_table *table,
                                  const struct cfi_fde *fde, uint64_t address, struct cfi_row *row)
{
    struct cfi_row remembered[REMEMBERED_MAX];
    struct program p = {.cie = fde->cie,
                        .remembered = remembered,
                        .aarch64 = image->arch == ARCH_AARCH64,
                        .registers = registers_of(image),
                        .location = fde->start,
                        .target = address,
                        .data_base = table->data_base};
    if (!start(image, table, fde->cie, &p) || !open_code(table, &fde->code, &p.c))
        return CFI_BAD;
    *row = fde->cie->initial;
    row->start = row->fde_start = fde->start;
    row->end = fde->end;
    p.row = row;
    const uint8_t *begin = p.c.at;
    bool good = run(&p);
    table->work += (uint64_t)(p.c.at - begin);
    if (!good || (!row->cfa_is_expression && row->cfa_reg >= p.registers))
        return CFI_BAD;
    return CFI_FOUND;
}
