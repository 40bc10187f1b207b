/* SPDX-License-Identifier: MIT */
/*
 * Follows straight code to its return with registers and stack as unknowns, then says what the return needs. The
 * one doubt is whether the code is reached at all: a call that never returns may be followed by
 * another function. The alignment that both ABIs ask of the stack pointer at calls settles that.
 */
#include "code_row.h"

#include <string.h>

#include "code_state.h"
#include "rule.h"

#define WORD 8
#define INSTRUCTIONS_MAX 40
#define OFFSET_MAX (1 << 20) /* a larger frame is none of a trampoline */

static bool is_near(int64_t offset)
{
    return offset >= -OFFSET_MAX && offset <= OFFSET_MAX;
}

bool recordint_code_add(struct code_state *s, unsigned to, unsigned from, int32_t offset)
{
    struct code_value value = s->reg[from];

    if (value.kind == CODE_INITIAL) {
        if (!is_near((int64_t)value.offset + offset))
            return false;
        value.offset += offset;
    } else if (offset != 0) {
        value.kind = CODE_UNKNOWN;
    }
    s->reg[to] = value;
    return to != reg_sp(s->arch) || value.kind == CODE_INITIAL;
}

struct code_value recordint_code_word(const struct code_state *s, struct code_value address)
{
    struct code_value sp = s->reg[reg_sp(s->arch)];
    struct code_value word = {CODE_WORD, address.reg, address.offset};

    if (address.kind != CODE_INITIAL)
        return (struct code_value){0};
    for (size_t i = s->slot_count; i > 0; i--) {
        const struct code_slot *slot = &s->slots[i - 1];

        if (slot->reg != address.reg)
            return (struct code_value){0}; /* may be the same word */
        if (slot->offset == address.offset)
            return slot->value;
        if (slot->offset > address.offset - WORD && slot->offset < address.offset + WORD)
            return (struct code_value){0};
    }
    /* Below the stack pointer anything may have been written, by calls and signals. */
    if (sp.reg == address.reg && address.offset < sp.offset)
        word.kind = CODE_UNKNOWN;
    return word;
}

/* Where register + offset points to. */
static bool address_of(const struct code_state *s, unsigned base, int32_t offset,
                       struct code_value *out)
{
    *out = s->reg[base];
    if (out->kind != CODE_INITIAL || !is_near((int64_t)out->offset + offset))
        return false;
    out->offset += offset;
    return true;
}

bool recordint_code_load(struct code_state *s, unsigned to, unsigned base, int32_t offset)
{
    struct code_value at;

    if (to == reg_sp(s->arch) || !address_of(s, base, offset, &at))
        return false;
    s->reg[to] = recordint_code_word(s, at);
    return true;
}

bool recordint_code_store(struct code_state *s, unsigned base, int32_t offset, unsigned from)
{
    struct code_value at;

    if (!address_of(s, base, offset, &at) || s->slot_count == CODE_SLOTS)
        return false;
    s->slots[s->slot_count++] =
        (struct code_slot){at.reg, at.offset,
                           from < CODE_REGISTERS ? s->reg[from] : (struct code_value){0}};
    return true;
}

bool recordint_code_call(struct code_state *s)
{
    unsigned sp_number = reg_sp(s->arch);
    struct code_value sp = s->reg[sp_number];
    size_t kept = 0;

    s->calls++;
    if (sp.reg != sp_number || sp.offset >= 0)
        s->calls_deep = false;
    for (unsigned reg = 0; reg < CODE_REGISTERS; reg++)
        if (reg != sp_number && (!rule_is_callee_saved(s->arch, reg) || reg == REG_A64_LR))
            code_forget(s, reg);
    for (size_t i = 0; i < s->slot_count; i++)
        if (s->slots[i].reg != sp.reg || s->slots[i].offset >= sp.offset)
            s->slots[kept++] = s->slots[i];
    s->slot_count = kept;
    return true;
}

static bool is_initial(struct code_value value, unsigned reg)
{
    return value.kind == CODE_INITIAL && value.reg == reg && value.offset == 0;
}

/* The row of a state at the return: CFA, and where the return address and the saved registers lie. */
static bool finish(const struct code_state *s, struct code_value cfa, struct code_value target,
                   bool after_call, struct cfi_row *out)
{
    unsigned sp = reg_sp(s->arch);
    unsigned fp = s->arch == ARCH_X86_64 ? REG_X86_RBP : REG_A64_FP;
    bool in_register = s->arch == ARCH_AARCH64 && is_initial(target, REG_A64_LR);

    memset(out, 0, sizeof *out);
    out->return_register = s->arch == ARCH_X86_64 ? REG_X86_RIP : REG_A64_LR;
    out->cfa_reg = cfa.reg;
    out->cfa_offset = cfa.offset;
    if (cfa.kind != CODE_INITIAL || (cfa.reg != sp && cfa.reg != fp))
        return false;
    /* Of a call that returned: 16 bytes, and the return address among them. Else the frame may be released already. */
    if (after_call && (in_register || cfa.offset % 16 != 0 || (cfa.reg == sp && cfa.offset < 16)))
        return false;
    if (cfa.reg == sp && cfa.offset < (s->arch == ARCH_X86_64 ? WORD : 0))
        return false;
    if (!in_register) {
        int32_t below = target.offset - cfa.offset;

        if (target.kind != CODE_WORD || target.reg != cfa.reg || below >= 0 || below % WORD != 0)
            return false;
        out->reg[out->return_register] = (struct cfi_rule){.kind = CFI_OFFSET, .offset = below};
    }
    for (unsigned reg = 0; reg < CODE_REGISTERS; reg++) {
        struct code_value value = s->reg[reg];
        int32_t below = value.offset - cfa.offset;

        if (!rule_is_callee_saved(s->arch, reg) || is_initial(value, reg) ||
            reg == out->return_register)
            continue;
        if (value.kind != CODE_WORD || value.reg != cfa.reg || below >= 0 || below % WORD != 0)
            return false;
        out->reg[reg] = (struct cfi_rule){.kind = CFI_OFFSET, .offset = below};
    }
    return true;
}

static bool follow(enum arch arch, const uint8_t *code, size_t size, bool after_call,
                   struct cfi_row *out)
{
    struct code_state s = {.arch = arch, .calls_deep = true};

    for (unsigned reg = 0; reg < CODE_REGISTERS; reg++)
        s.reg[reg] = (struct code_value){CODE_INITIAL, (uint8_t)reg, 0};
    for (unsigned i = 0; i < INSTRUCTIONS_MAX; i++) {
        struct code_value cfa, target;
        enum code_step step = CODE_STOP;
        size_t length = sizeof(uint32_t);
        unsigned target_register = REG_A64_LR;

        if (arch == ARCH_X86_64) {
            step = recordint_code_step_x86(&s, code, size, &length);
        } else if (size >= length) {
            uint32_t word;

            memcpy(&word, code, sizeof word);
            step = recordint_code_step_a64(&s, word, &target_register);
        }
        /* More than a trampoline's one call, or one made without a frame: it may never return. */
        if (step == CODE_STOP || s.calls > (after_call ? 0 : 1) || !s.calls_deep)
            return false;
        code += length;
        size -= length;
        if (step == CODE_ON)
            continue;
        cfa = s.reg[reg_sp(arch)];
        target = arch == ARCH_X86_64 ? recordint_code_word(&s, cfa) : s.reg[target_register];
        if (arch == ARCH_X86_64)
            cfa.offset += WORD;
        return finish(&s, cfa, target, after_call, out);
    }
    return false;
}

bool recordint_code_row(enum arch arch, const uint8_t *code, size_t size, size_t at,
                        bool after_call, struct cfi_row *out)
{
    static const uint8_t sub_rsp[] = {0x48, 0x83, 0xec};
    enum { SUB_BYTES = 4 };
    uint8_t allocated;

    if (at >= size)
        return false;
    if (follow(arch, code + at, size - at, after_call, out))
        return true;
    /* Between the allocation and the call: what was allocated is known from the bytes before. */
    if (arch != ARCH_X86_64 || after_call || at < SUB_BYTES ||
        memcmp(code + at - SUB_BYTES, sub_rsp, sizeof sub_rsp) != 0)
        return false;
    allocated = code[at - 1];
    if (allocated > INT8_MAX ||
        !follow(arch, code + at - SUB_BYTES, size - at + SUB_BYTES, false, out) ||
        out->cfa_reg != REG_X86_RSP)
        return false;
    out->cfa_offset += allocated;
    return true;
}

/* The row of a function that has saved its frame pointer at CFA + saved (0: not yet), and x30 above it. */
static void prologue_row(enum arch arch, int32_t cfa_offset, int32_t saved, struct cfi_row *out)
{
    bool x86 = arch == ARCH_X86_64;

    memset(out, 0, sizeof *out);
    out->return_register = x86 ? REG_X86_RIP : REG_A64_LR;
    out->cfa_reg = reg_sp(arch);
    out->cfa_offset = cfa_offset;
    if (saved != 0)
        out->reg[x86 ? REG_X86_RBP : REG_A64_FP] =
            (struct cfi_rule){.kind = CFI_OFFSET, .offset = saved};
    if (x86 || saved != 0)
        out->reg[out->return_register] =
            (struct cfi_rule){.kind = CFI_OFFSET, .offset = x86 ? -WORD : saved + WORD};
}

/* mov %rsp, %rbp */
static bool sets_rbp(const uint8_t *code, size_t size)
{
    return size >= 3 && code[0] == 0x48 &&
           ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec));
}

static bool prologue_x86(const uint8_t *code, size_t size, size_t at, struct cfi_row *out)
{
    static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    const uint8_t push_rbp = 0x55;
    size_t push = at;

    if (at > 0 && code[at - 1] == push_rbp && sets_rbp(code + at, size - at)) {
        prologue_row(ARCH_X86_64, 2 * WORD, -2 * WORD, out);
        return true;
    }
    if (size - at > sizeof endbr && memcmp(code + at, endbr, sizeof endbr) == 0)
        push += sizeof endbr;
    if (push >= size || code[push] != push_rbp || !sets_rbp(code + push + 1, size - push - 1))
        return false;
    prologue_row(ARCH_X86_64, WORD, 0, out);
    return true;
}

static bool word_at(const uint8_t *code, size_t size, size_t at, uint32_t *out)
{
    if (at > size || size - at < sizeof *out)
        return false;
    memcpy(out, code + at, sizeof *out);
    return true;
}

/* stp x29, x30, [sp, #-frame]!: frame, 0: it is none. */
static int32_t pushes_pair(uint32_t word)
{
    int32_t words = (int32_t)(word << 10) >> 25;

    return (word & 0xffc07fff) == 0xa9807bfd && words < 0 ? -words * WORD : 0;
}

/* sub sp, sp, #frame */
static int32_t allocates(uint32_t word)
{
    return (word & 0xffc003ff) == 0xd10003ff ? (int32_t)(word >> 10 & 0xfff) : 0;
}

/* stp x29, x30, [sp, #at] */
static bool stores_pair(uint32_t word, int32_t *at)
{
    *at = ((int32_t)(word << 10) >> 25) * WORD;
    return (word & 0xffc07fff) == 0xa9007bfd;
}

/* add x29, sp, #...: mov x29, sp among them */
static bool sets_x29(uint32_t word)
{
    return (word & 0xffc003ff) == 0x910003fd;
}

/* GCC pushes the pair and sets x29; clang allocates, stores the pair and sets x29. */
static bool prologue_a64(const uint8_t *code, size_t size, size_t at, struct cfi_row *out)
{
    uint32_t word, other;
    int32_t frame, pair;

    if (!word_at(code, size, at, &word))
        return false;
    if ((word == 0xd503233f || (word & 0xffffff3f) == 0xd503241f) && /* paciasp, bti */
        word_at(code, size, at + 4, &word))
        at += 4;
    if (pushes_pair(word) != 0 && word_at(code, size, at + 4, &other) && sets_x29(other)) {
        prologue_row(ARCH_AARCH64, 0, 0, out);
        return true;
    }
    if (allocates(word) != 0 && word_at(code, size, at + 4, &other) && stores_pair(other, &pair)) {
        prologue_row(ARCH_AARCH64, 0, 0, out);
        return true;
    }
    if (at < 4 || !word_at(code, size, at - 4, &other))
        return false;
    frame = pushes_pair(other);
    if (frame != 0 && sets_x29(word)) {
        prologue_row(ARCH_AARCH64, frame, -frame, out);
        return true;
    }
    frame = allocates(other);
    if (frame != 0 && stores_pair(word, &pair)) {
        prologue_row(ARCH_AARCH64, frame, 0, out);
        return true;
    }
    if (sets_x29(word) && stores_pair(other, &pair) && at >= 8 &&
        word_at(code, size, at - 8, &other) && allocates(other) > pair) {
        prologue_row(ARCH_AARCH64, allocates(other), pair - allocates(other), out);
        return true;
    }
    return false;
}

bool recordint_code_prologue(enum arch arch, const uint8_t *code, size_t size, size_t at,
                             struct cfi_row *out)
{
    if (at >= size)
        return false;
    return arch == ARCH_X86_64 ? prologue_x86(code, size, at, out)
                               : prologue_a64(code, size, at, out);
}
