/* SPDX-License-Identifier: MIT */
/*
 * Applies a row as the tables have it: the slow path, complete, and what the fast one is checked against.
 */
#include "unwind_walk.h"

/* The value of a rule other than "unspecified" and "undefined". */
static enum cfi_expr_result rule_value(const struct walk *w, const struct cfi_rule *rule,
                                       unsigned reg, uint64_t cfa, uint64_t bias, uint64_t *out)
{
    enum cfi_expr_result result;

    switch (rule->kind) {
    case CFI_SAME_VALUE:
    case CFI_REGISTER:
        if (rule->kind == CFI_REGISTER) {
            if (rule->reg >= REG_COUNT)
                return CFI_EXPR_REGISTER;
            reg = rule->reg;
        }
        *out = w->regs.value[reg];
        return reg_is_known(&w->regs, reg) ? CFI_EXPR_VALUE : CFI_EXPR_REGISTER;
    case CFI_VAL_OFFSET:
        *out = cfa + (uint64_t)rule->offset;
        return CFI_EXPR_VALUE;
    case CFI_VAL_EXPRESSION:
        return recordint_cfi_expr(&rule->expr, &w->regs, &w->copy, bias, &cfa, out);
    case CFI_OFFSET:
        *out = cfa + (uint64_t)rule->offset;
        break;
    case CFI_EXPRESSION:
        result = recordint_cfi_expr(&rule->expr, &w->regs, &w->copy, bias, &cfa, out);
        if (result != CFI_EXPR_VALUE)
            return result;
        break;
    default:
        return CFI_EXPR_BAD;
    }
    {
        uint64_t address = *out;

        return stack_copy_load(&w->copy, address, out) ? CFI_EXPR_VALUE : CFI_EXPR_READ;
    }
}

static enum unwind_end end_of(const struct walk *w, enum cfi_expr_result result, uint64_t address)
{
    return result == CFI_EXPR_READ ? recordint_walk_unreadable(w, address) : UNWIND_NO_RULE;
}

/* WALK_ON and *cfa, or an end. */
static int row_cfa(const struct walk *w, const struct cfi_row *row, uint64_t bias, uint64_t *cfa)
{
    enum cfi_expr_result result;

    if (row->cfa_is_expression) {
        result = recordint_cfi_expr(&row->cfa_expr, &w->regs, &w->copy, bias, NULL, cfa);
        return result == CFI_EXPR_VALUE ? WALK_ON : (int)end_of(w, result, *cfa);
    }
    if (row->cfa_reg >= REG_COUNT || !reg_is_known(&w->regs, row->cfa_reg))
        return UNWIND_NO_RULE;
    if (__builtin_add_overflow(w->regs.value[row->cfa_reg], row->cfa_offset, cfa))
        return UNWIND_OVERFLOW;
    return WALK_ON;
}

/* The return address of the row's frame: WALK_ON and *out, or an end (*out is set for UNWIND_NO_PROGRESS). */
static int row_return(const struct walk *w, const struct cfi_row *row, uint64_t cfa, uint64_t bias,
                      uint64_t *out)
{
    const struct cfi_rule *rule = &row->reg[row->return_register];
    enum cfi_expr_result result;

    if (rule->kind == CFI_UNSPECIFIED || rule->kind == CFI_SAME_VALUE) {
        /* In its register: only of AArch64, and there a call made since has overwritten it. */
        if (w->arch != ARCH_AARCH64 || !reg_is_known(&w->regs, row->return_register))
            return UNWIND_NO_RULE;
        *out = w->regs.value[row->return_register];
        return w->leaf || row->return_register != REG_A64_LR ? WALK_ON : UNWIND_NO_PROGRESS;
    }
    result = rule_value(w, rule, row->return_register, cfa, bias, out);
    return result == CFI_EXPR_VALUE ? WALK_ON : (int)end_of(w, result, *out);
}

/* All other registers, as the caller has them. */
static void row_registers(struct walk *w, const struct cfi_row *row, uint64_t cfa, uint64_t bias)
{
    struct regs caller = w->regs;
    unsigned sp = reg_sp(w->arch);

    for (unsigned reg = 0; reg < rule_register_count(w->arch); reg++) {
        const struct cfi_rule *rule = &row->reg[reg];
        uint64_t value;

        if (rule->kind == CFI_UNSPECIFIED && rule_is_callee_saved(w->arch, reg))
            continue;
        if (rule->kind == CFI_UNSPECIFIED || rule->kind == CFI_UNDEFINED) {
            caller.known &= ~(UINT64_C(1) << reg);
            continue;
        }
        switch (rule_value(w, rule, reg, cfa, bias, &value)) {
        case CFI_EXPR_VALUE:
            reg_set(&caller, reg, value);
            break;
        case CFI_EXPR_READ: /* only the return address is needed: others keep their value */
            break;
        default:
            caller.known &= ~(UINT64_C(1) << reg);
            break;
        }
    }
    if (row->reg[sp].kind == CFI_UNSPECIFIED || row->reg[sp].kind == CFI_UNDEFINED)
        reg_set(&caller, sp, cfa);
    w->regs = caller;
}

void recordint_walk_restored(const struct walk *w, struct cfi_row *row)
{
    uint64_t rbp = w->regs.value[REG_X86_RBP];
    uint64_t cfa;

    if (!w->leaf || w->arch != ARCH_X86_64 || row->cfa_is_expression ||
        row->reg[REG_X86_RBP].kind != CFI_EXPRESSION || row_cfa(w, row, 0, &cfa) != WALK_ON ||
        (rbp >= w->regs.value[REG_X86_RSP] && rbp < cfa))
        return;
    for (unsigned reg = 0; reg < REG_X86_RIP; reg++)
        if (rule_is_callee_saved(ARCH_X86_64, reg))
            row->reg[reg].kind = CFI_UNSPECIFIED;
}

int recordint_walk_row(struct walk *w, const struct cfi_row *row, uint64_t bias)
{
    uint64_t cfa = 0, return_address = 0, signal_sp = w->regs.value[reg_sp(w->arch)];
    int end;

    if (row->return_register >= REG_COUNT)
        return UNWIND_NO_RULE;
    if (row->reg[row->return_register].kind == CFI_UNDEFINED)
        return UNWIND_COMPLETE;
    end = row_cfa(w, row, bias, &cfa);
    if (end != WALK_ON)
        return end;
    end = row_return(w, row, cfa, bias, &return_address);
    return_address &= ~w->pac_mask;
    if (!row->signal_frame && !walk_cfa_advances(w, cfa)) {
        bool returns = end == WALK_ON || end == UNWIND_NO_PROGRESS;

        return (int)recordint_walk_stuck(w, cfa, returns ? &return_address : NULL);
    }
    if (end != WALK_ON)
        return end;
    if (return_address == 0 && !row->signal_frame)
        return (int)recordint_walk_no_return(w, cfa);
    row_registers(w, row, cfa, bias);
    reg_set(&w->regs, reg_pc(w->arch), return_address);
    w->cfa = cfa;
    w->leaf = false;
    if (row->signal_frame)
        recordint_walk_interrupted(w, signal_sp);
    else if (w->arch == ARCH_AARCH64)
        reg_set(&w->regs, REG_A64_LR, return_address); /* a return leaves it there */
    return WALK_ON;
}
