/* SPDX-License-Identifier: MIT */
/*
 * Rows to compact rules. A rule says exactly what its row says, or is RULE_GENERIC.
 */
#include "rule.h"

#include <string.h>

#define WORD 8

enum { OP_BREG0 = 0x70, OP_DEREF = 0x06 };

const uint8_t recordint_rule_x86_saved[RULE_SAVED_MAX] = {REG_X86_RBX, REG_X86_RBP, 12, 13, 14, 15};

const uint8_t recordint_rule_x86_ucontext[RULE_X86_UCONTEXT_COUNT] = {
    8,           9,           10,          11,          12,          13,
    14,          15,          5 /* rdi */, 4 /* rsi */, REG_X86_RBP, REG_X86_RBX,
    1 /* rdx */, 0 /* rax */, 2 /* rcx */, REG_X86_RSP, REG_X86_RIP};

/* CFA + offset as a count of words below the CFA. */
static bool word_offset(const struct cfi_rule *rule, int16_t *out)
{
    if (rule->kind != CFI_OFFSET || rule->offset % WORD != 0 || rule->offset >= 0 ||
        rule->offset / WORD < INT16_MIN)
        return false;
    *out = (int16_t)(rule->offset / WORD);
    return true;
}

static void note_saved(struct rule *out, unsigned place, int16_t offset)
{
    out->saved[place] = offset;
    if (offset < out->lowest)
        out->lowest = offset;
}

/* Whether the row says no more of the register than the ABI does. */
static bool is_default(enum arch arch, unsigned reg, const struct cfi_rule *rule)
{
    if (rule->kind == CFI_UNSPECIFIED)
        return true;
    return rule->kind == (rule_is_callee_saved(arch, reg) ? CFI_SAME_VALUE : CFI_UNDEFINED);
}

/* Entries of a PLT are 16 bytes; from one of their instructions on, the linker's expression says, a word
 * more is pushed:
 *   breg7 (rsp) N; breg16 (rip) 0; lit15; and; litX; ge; litY; shl; plus */
static bool plt_expression(const struct cfi_expr *expr, struct rule *out)
{
    enum {
        BREG7 = 0x77,
        BREG16 = 0x80,
        LIT0 = 0x30,
        AND = 0x1a,
        GE = 0x2a,
        SHL = 0x24,
        PLUS = 0x22
    };
    const uint8_t *b = expr->bytes;

    if (expr->size != 11 || b[0] != BREG7 || b[1] >= 0x40 || b[2] != BREG16 || b[3] != 0 ||
        b[4] != LIT0 + 15 || b[5] != AND || b[6] < LIT0 || b[6] > LIT0 + 15 || b[7] != GE ||
        b[8] < LIT0 || b[8] > LIT0 + 6 || b[9] != SHL || b[10] != PLUS)
        return false;
    out->cfa_register = REG_X86_RSP;
    out->cfa_offset = b[1];
    out->saved[0] = (int16_t)(b[6] - LIT0);
    out->saved[1] = (int16_t)(b[8] - LIT0);
    return true;
}

/* An expression that begins with register + offset (in a number of 1 to 3 bytes). Returns how many bytes of
 * it that is, 0: it does not. */
static size_t register_and_offset(const struct cfi_expr *expr, uint8_t *reg, int32_t *offset)
{
    uint32_t value = 0, shift = 0;

    if (expr->size < 2 || expr->bytes[0] < OP_BREG0 || expr->bytes[0] >= OP_BREG0 + REG_X86_RIP)
        return 0;
    for (size_t i = 1; i < expr->size && i < 4; i++) {
        value |= (uint32_t)(expr->bytes[i] & 0x7f) << shift;
        shift += 7;
        if ((expr->bytes[i] & 0x80) == 0) {
            uint32_t sign = UINT32_C(1) << (shift - 1);

            *reg = expr->bytes[0] - OP_BREG0;
            *offset = (int32_t)(value ^ sign) - (int32_t)sign;
            return i + 1;
        }
    }
    return 0;
}

static bool is_at_register_and_offset(const struct cfi_rule *rule, uint8_t reg, int32_t *offset)
{
    uint8_t base = 0;
    size_t size;

    if (rule->kind != CFI_EXPRESSION)
        return false;
    size = register_and_offset(&rule->expr, &base, offset);
    return size != 0 && size == rule->expr.size && base == reg;
}

static bool is_deref(const struct cfi_expr *expr, uint8_t *reg, int32_t *offset)
{
    size_t size = register_and_offset(expr, reg, offset);

    return size != 0 && expr->size == size + 1 && expr->bytes[size] == OP_DEREF;
}

/* A frame that aligned the stack pointer, as GCC makes it: it pushed the CFA, and that and all else it saved are
 * found by the frame pointer. */
static bool realigned_rule(const struct cfi_row *row, struct rule *out)
{
    unsigned place = 0;

    if (!is_deref(&row->cfa_expr, &out->cfa_register, &out->cfa_offset))
        return false;
    for (unsigned reg = 0; reg < REG_X86_RIP; reg++) {
        const struct cfi_rule *rule = &row->reg[reg];
        bool callee_saved = rule_is_callee_saved(ARCH_X86_64, reg);
        int32_t offset = 0;

        if (!is_default(ARCH_X86_64, reg, rule)) {
            if (!callee_saved || !is_at_register_and_offset(rule, out->cfa_register, &offset) ||
                offset % WORD != 0 || offset / WORD < INT16_MIN || offset / WORD > INT16_MAX)
                return false;
            out->saved[place] = (int16_t)(offset / WORD);
            out->saved_mask |= (uint8_t)(1 << place);
        }
        if (callee_saved)
            place++;
    }
    out->kind = RULE_REALIGNED;
    return true;
}

static bool is_x86_ucontext(const struct cfi_row *row)
{
    uint8_t reg;
    int32_t offset;

    if (row->return_register != REG_X86_RIP || !row->cfa_is_expression ||
        !is_deref(&row->cfa_expr, &reg, &offset) || reg != REG_X86_RSP)
        return false;
    for (size_t i = 0; i < RULE_X86_UCONTEXT_COUNT; i++) {
        int32_t at = RULE_X86_UCONTEXT + (int32_t)i * WORD;

        reg = recordint_rule_x86_ucontext[i];
        if ((reg == REG_X86_RSP && offset != at) ||
            !is_at_register_and_offset(&row->reg[reg], REG_X86_RSP, &at) ||
            at != RULE_X86_UCONTEXT + (int32_t)i * WORD)
            return false;
    }
    return true;
}

static bool x86_rule(const struct cfi_row *row, struct rule *out)
{
    int16_t offset;
    unsigned place = 0;

    if (row->return_register != REG_X86_RIP || !word_offset(&row->reg[REG_X86_RIP], &offset))
        return false;
    note_saved(out, RULE_RETURN, offset);
    if (row->cfa_is_expression && !plt_expression(&row->cfa_expr, out))
        return realigned_rule(row, out);
    for (unsigned reg = 0; reg < REG_X86_RIP; reg++) {
        const struct cfi_rule *rule = &row->reg[reg];
        bool callee_saved = rule_is_callee_saved(ARCH_X86_64, reg);

        if (!is_default(ARCH_X86_64, reg, rule)) {
            if (row->cfa_is_expression || !callee_saved || !word_offset(rule, &offset))
                return false;
            note_saved(out, place, offset);
            out->saved_mask |= (uint8_t)(1 << place);
        }
        if (callee_saved)
            place++;
    }
    out->kind = row->cfa_is_expression ? RULE_PLT : RULE_SIMPLE;
    return true;
}

static bool aarch64_rule(const struct cfi_row *row, struct rule *out)
{
    int16_t offset[RULE_A64_SAVED];

    if (row->return_register != REG_A64_LR || row->cfa_is_expression)
        return false;
    for (unsigned reg = 0; reg <= REG_A64_SP; reg++) {
        unsigned place = reg - RULE_A64_FIRST;

        if (is_default(ARCH_AARCH64, reg, &row->reg[reg]))
            continue;
        if (!rule_is_callee_saved(ARCH_AARCH64, reg) ||
            !word_offset(&row->reg[reg], &offset[place]))
            return false;
        out->a64.saved_mask |= (uint16_t)(1u << place);
        if (offset[place] < out->a64.lowest)
            out->a64.lowest = offset[place];
    }
    for (unsigned mask = out->a64.saved_mask; mask != 0; mask &= mask - 1) {
        unsigned place = (unsigned)__builtin_ctz(mask);
        int above = offset[place] - out->a64.lowest;

        if (above > UINT8_MAX)
            return false;
        out->a64.above[place] = (uint8_t)above;
    }
    out->kind = RULE_SIMPLE;
    return true;
}

void recordint_rule_from_row(enum arch arch, const struct cfi_row *row, struct rule *out)
{
    uint8_t flags = row->signal_frame ? RULE_SIGNAL : 0;

    memset(out, 0, sizeof *out);
    if (row->return_register < REG_COUNT && row->reg[row->return_register].kind == CFI_UNDEFINED) {
        out->kind = RULE_STOP;
    } else if (row->signal_frame) {
        bool known = arch == ARCH_X86_64 && is_x86_ucontext(row);

        out->kind = known ? RULE_SIGRETURN : RULE_GENERIC;
    } else {
        bool fits = true;

        if (!row->cfa_is_expression) {
            fits = row->cfa_reg < rule_register_count(arch) && row->cfa_offset >= INT32_MIN &&
                   row->cfa_offset <= INT32_MAX;
            out->cfa_register = (uint8_t)row->cfa_reg;
            out->cfa_offset = (int32_t)row->cfa_offset;
        }
        if (!fits || !(arch == ARCH_X86_64 ? x86_rule(row, out) : aarch64_rule(row, out))) {
            memset(out, 0, sizeof *out);
            out->kind = RULE_GENERIC;
        }
    }
    out->flags = flags;
}

/* Stubs between functions, entries of a PLT and veneers of far calls, are without unwind data:
 *     (bti c)  adrp x16, page  (ldr x17, [x16, #low])  add x16, x16, #low  (autia1716)  br x17 or x16
 * The first entry of a PLT has stp x16, x30, [sp, #-16]! in front, after a bti c. */
enum { STUB_INSTRUCTIONS = 7 };

enum stub_part { NO_STUB = 0, STUB_BODY, STUB_PAGE, STUB_PUSH, STUB_END };

static enum stub_part stub_part(const struct image *image, uint64_t address)
{
    uint8_t b[4];
    uint32_t code;

    if (recordint_image_read(image, address, b, sizeof b) != sizeof b)
        return NO_STUB;
    code = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    if ((code & 0x9f00001f) == 0x90000010)
        return STUB_PAGE;
    if (code == 0xa9bf7bf0)
        return STUB_PUSH;
    if (code == 0xd61f0220 || code == 0xd61f0200)
        return STUB_END;
    if ((code & 0xffc003ff) == 0xf9400211 || (code & 0xffc003ff) == 0x91000210 ||
        code == 0xd503245f || code == 0xd503219f)
        return STUB_BODY;
    return NO_STUB;
}

static bool stub_rule(const struct image *image, uint64_t address, struct rule *out)
{
    uint64_t at = address & ~UINT64_C(3);
    bool has_page = false;
    enum stub_part part = stub_part(image, at);

    if (part == NO_STUB)
        return false;
    /* Back over what has been executed, to where it began. */
    for (unsigned i = 0; i < STUB_INSTRUCTIONS && !has_page && at >= 4; i++) {
        enum stub_part before = stub_part(image, at - 4);

        if (before == NO_STUB || before == STUB_END)
            break;
        at -= 4;
        has_page = before == STUB_PAGE;
        if (before == STUB_PUSH)
            out->cfa_offset = 2 * WORD;
    }
    if (has_page && at >= 4 && stub_part(image, at - 4) == STUB_PUSH)
        out->cfa_offset = 2 * WORD;
    /* And to its end. */
    for (unsigned i = 0; i < STUB_INSTRUCTIONS && part != NO_STUB; i++, at += 4) {
        part = stub_part(image, at);
        has_page = has_page || part == STUB_PAGE;
        if (part != STUB_END || !has_page || at < (address & ~UINT64_C(3)))
            continue;
        out->kind = RULE_STUB;
        out->cfa_register = REG_A64_SP;
        return true;
    }
    out->cfa_offset = 0;
    return false;
}

/* Whether the call that ends at this address was made on another stack than the function's: Go's runtime changes stacks
 * in the middle of functions, whose unwind data go on as if nothing had happened. Code before a call that begins
 * in the middle of an instruction may look like that, too: a stack is cut then. */
static bool calls_on_other_stack(const struct image *image, const struct cfi_row *row,
                                 uint64_t address)
{
    uint8_t code[40];
    uint64_t size = address + 1 - row->fde_start;

    if (!row->from_debug_frame || row->cfa_is_expression || row->cfa_reg != REG_X86_RSP)
        return false;
    size = size < sizeof code ? size : sizeof code;
    if (recordint_image_read(image, address + 1 - size, code, (size_t)size) != size)
        return false;
    for (size_t i = 0; i + 3 <= size; i++) {
        uint8_t modrm = code[i + 2];

        /* mov %reg, %rsp; mov slot(%reg), %rsp */
        if ((code[i] & 0xfb) == 0x48 && code[i + 1] == 0x89 && (modrm & 0xc7) == 0xc4)
            return true;
        if ((code[i] & 0xfe) == 0x48 && code[i + 1] == 0x8b && (modrm & 0x38) == 0x20 &&
            modrm < 0xc0)
            return true;
    }
    return false;
}

void recordint_rule_make(enum arch arch, struct image *image, uint64_t address, struct rule *out)
{
    struct cfi_row row;
    bool may_end_here = true; /* the code that the tables know of */
    enum cfi_result found;

    memset(out, 0, sizeof *out);
    if (recordint_image_arch(image) != arch)
        return;
    found = recordint_cfi_row(image, address, &row);
    if (found == CFI_FOUND) {
        if (arch != ARCH_X86_64 || !calls_on_other_stack(image, &row, address))
            recordint_rule_from_row(arch, &row, out);
        may_end_here = row.end - address == 1;
        if (row.fde_start == address)
            out->flags |= RULE_START;
    } else if (found == CFI_NONE && arch == ARCH_AARCH64 && stub_rule(image, address, out)) {
        return;
    }
    if (may_end_here && address != UINT64_MAX &&
        recordint_cfi_row(image, address + 1, &row) == CFI_FOUND && row.fde_start == address + 1)
        out->flags |= RULE_BEFORE_START;
}
