/* SPDX-License-Identifier: MIT */
/*
 * Registers by their DWARF numbers, for both machines. The unwinder takes the machine as an argument, so
 * that each can be tested on the other; only perfrec.c and event.c care which one we run on.
 */
#ifndef RECORD_ARCH_H
#define RECORD_ARCH_H

#include <stdbool.h>
#include <stdint.h>

enum arch { ARCH_X86_64 = 0, ARCH_AARCH64 = 1 };

#if defined(__x86_64__)
#define ARCH_NATIVE ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_NATIVE ARCH_AARCH64
#else
#error "librecord runs on x86-64 and AArch64"
#endif

/* x86-64: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15 r8-r15, 16 return address (rip).
 * AArch64: 0-30 x0-x30, 31 sp; the pc, which has no number there, is kept in REG_A64_PC. */
enum {
    REG_X86_RBX = 3,
    REG_X86_RBP = 6,
    REG_X86_RSP = 7,
    REG_X86_R10 = 10,
    REG_X86_RIP = 16,
    REG_A64_FP = 29,
    REG_A64_LR = 30,
    REG_A64_SP = 31,
    REG_A64_PC = 32,
    REG_COUNT = 33
};

/* Values of a thread's registers; bit n of known: value[n] holds. */
struct regs {
    uint64_t value[REG_COUNT];
    uint64_t known;
};

static inline unsigned reg_pc(enum arch arch)
{
    return arch == ARCH_X86_64 ? REG_X86_RIP : REG_A64_PC;
}

static inline unsigned reg_sp(enum arch arch)
{
    return arch == ARCH_X86_64 ? REG_X86_RSP : REG_A64_SP;
}

/* Bits of a code address that are not address, 0 on x86-64. AArch64 signs return addresses in the bits above the
 * address space, whose size is the kernel's choice (36 to 48 bits; where hardware and kernel have 52, programs get 48
 * unless they ask), and ignores the uppermost eight; bit 55 is 0 in user addresses. near_top: an address in the
 * upper half of the address space, as the stack of a process is; 0: not known. */
static inline uint64_t arch_pac_mask(enum arch arch, uint64_t near_top)
{
    unsigned bits = near_top == 0 ? 48 : 64 - (unsigned)__builtin_clzll(near_top);

    if (arch != ARCH_AARCH64)
        return 0;
    if (bits < 36 || bits > 48)
        bits = 48;
    return ~((UINT64_C(1) << bits) - 1) & ~(UINT64_C(1) << 55);
}

static inline bool reg_is_known(const struct regs *r, unsigned reg)
{
    return reg < REG_COUNT && (r->known >> reg & 1) != 0;
}

static inline void reg_set(struct regs *r, unsigned reg, uint64_t value)
{
    r->value[reg] = value;
    r->known |= (uint64_t)1 << reg;
}

#endif
