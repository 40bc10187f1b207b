/* SPDX-License-Identifier: MIT */
/*
 * Signal frames: what changes when one is crossed, and how to cross one whose trampoline has no unwind data
 * (C libraries other than glibc, AArch64's vdso). The layouts are the kernel's: struct rt_sigframe.
 */
#include <string.h>

#include "unwind_walk.h"

/* A kernel's signal frame with all vector state of today (AMX) fits: an interrupted stack pointer further up
 * belongs to another stack. */
#define SAME_STACK_BYTES (32u << 10)

/* A load of the system call's number, and the call: what a C library has may be written either way. */
static const struct sigreturn_code {
    enum arch arch;
    uint8_t load_size, size;
    uint8_t bytes[9];
} sigreturn_codes[] = {
    {ARCH_X86_64, 7, 9, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}}, /* mov $15, %rax; syscall */
    {ARCH_X86_64, 5, 7, {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05}},             /* mov $15, %eax; syscall */
    {ARCH_AARCH64, 4, 8, {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}},   /* mov x8, #139; svc #0 */
};

/* siginfo, then struct ucontext: x0-x30, sp and pc follow each other as our numbers do. */
#define A64_SAVED_AT 312

static bool is_code_at(struct walk *w, const struct place *place, uint64_t address,
                       const uint8_t *code, size_t size)
{
    uint8_t bytes[sizeof sigreturn_codes[0].bytes];

    return address <= UINT64_MAX - size &&
           recordint_walk_code(w, place, address + size, bytes, size) == size &&
           memcmp(bytes, code, size) == 0;
}

bool recordint_walk_at_sigreturn(struct walk *w)
{
    uint64_t pc = walk_pc(w);
    struct place place;
    uint8_t first;

    /* Without an image no code is read: of generated code that would be a system call for each frame. */
    if (!recordint_walk_place(w, pc, &place) || place.range.image == NULL || pc == UINT64_MAX ||
        recordint_walk_code(w, &place, pc + 1, &first, 1) != 1)
        return false;
    for (size_t i = 0; i < sizeof sigreturn_codes / sizeof sigreturn_codes[0]; i++) {
        const struct sigreturn_code *code = &sigreturn_codes[i];
        uint64_t load = pc - code->load_size;

        if (code->arch != w->arch)
            continue;
        if (first == code->bytes[0] && is_code_at(w, &place, pc, code->bytes, code->size))
            return true;
        /* A handler returns to the load; what is interrupted may be at the call. */
        if (w->leaf && first == code->bytes[code->load_size] && load < pc &&
            is_code_at(w, &place, load, code->bytes, code->size))
            return true;
        /* Or in the system call, which does not come back. */
        if (w->leaf && pc >= code->size &&
            is_code_at(w, &place, pc - code->size, code->bytes, code->size))
            return true;
    }
    return false;
}

int recordint_walk_sigreturn(struct walk *w)
{
    bool x86 = w->arch == ARCH_X86_64;
    unsigned sp = reg_sp(w->arch);
    uint64_t signal_sp = w->regs.value[sp];
    size_t count = x86 ? RULE_X86_UCONTEXT_COUNT : REG_COUNT;
    uint64_t at = signal_sp + (x86 ? RULE_X86_UCONTEXT : A64_SAVED_AT);
    struct regs interrupted = w->regs;

    if (!reg_is_known(&w->regs, sp))
        return UNWIND_NO_RULE;
    for (size_t i = 0; i < count; i++, at += 8) {
        unsigned reg = x86 ? recordint_rule_x86_ucontext[i] : (unsigned)i;
        uint64_t value;

        if (stack_copy_load(&w->copy, at, &value))
            reg_set(&interrupted, reg, value);
        else if (reg == sp || reg == reg_pc(w->arch))
            return (int)recordint_walk_unreadable(w, at);
    }
    interrupted.value[reg_pc(w->arch)] &= ~w->pac_mask;
    w->regs = interrupted;
    recordint_walk_interrupted(w, signal_sp);
    return WALK_ON;
}

void recordint_walk_interrupted(struct walk *w, uint64_t signal_sp)
{
    uint64_t sp = w->regs.value[reg_sp(w->arch)];

    w->signal = true;
    w->leaf = true;
    w->cfa = sp; /* the interrupted stack may lie anywhere */
    w->elsewhere = sp - w->copy.start >= w->copy.size && sp - signal_sp > SAME_STACK_BYTES;
}
