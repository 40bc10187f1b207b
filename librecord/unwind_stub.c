/* SPDX-License-Identifier: MIT */
/*
 * Linkage stubs without unwind data: those of lld, and those of static programs for functions that are chosen at their
 * start. They have no frame, so that by frame pointer their caller would be lost; what they have pushed is known.
 */
#include "unwind_walk.h"

#define BEFORE 6 /* the longest instruction */
#define AFTER 10

/* jmp *slot(%rip), behind endbr64 or bnd or not */
static bool jumps_through_slot(const uint8_t *code)
{
    if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa)
        code += 4;
    else if (code[0] == 0xf2)
        code++;
    return code[0] == 0xff && code[1] == 0x25;
}

/* How many words the stub at this place has pushed: before AFTER bytes from the pc lie BEFORE ones that were run.
 * -1: it is none. slot:  jmp *slot(%rip); push $n; jmp first first: push words(%rip); jmp *resolver(%rip) */
static int words_pushed(const uint8_t *code)
{
    const uint8_t *before = code - BEFORE;

    if (jumps_through_slot(code))
        return before[0] == 0xff && before[1] == 0x35 ? 2 : 0;
    if (code[0] == 0x68 && code[5] == 0xe9)
        return 0;
    if (code[0] == 0xe9 && before[BEFORE - 5] == 0x68)
        return 1;
    if (code[0] == 0xff && code[1] == 0x35 && jumps_through_slot(code + 6))
        return 1;
    return -1;
}

int recordint_walk_stub(struct walk *w, uint64_t address)
{
    uint64_t sp = w->regs.value[REG_X86_RSP];
    uint8_t code[BEFORE + AFTER + 4] = {0};
    struct place place;
    int words, end;

    if (w->arch != ARCH_X86_64 || !reg_is_known(&w->regs, REG_X86_RSP) ||
        !recordint_walk_place(w, address, &place) || place.range.image == NULL ||
        address > UINT64_MAX - AFTER ||
        recordint_walk_code(w, &place, address + AFTER, code, BEFORE + AFTER) != BEFORE + AFTER)
        return UNWIND_NO_RULE;
    words = words_pushed(code + BEFORE);
    if (words < 0)
        return UNWIND_NO_RULE;
    w->regs.value[REG_X86_RSP] = sp + 8 * (uint64_t)words;
    end = recordint_walk_top_of_stack(w, true);
    if (end != WALK_ON)
        w->regs.value[REG_X86_RSP] = sp;
    return end;
}
