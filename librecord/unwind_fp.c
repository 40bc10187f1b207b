/* SPDX-License-Identifier: MIT */
/*
 * Callers of code without unwind data: by frame pointer, and of leaf frames by what a call has just left. A false
 * frame is worse than a cut stack, so each must pass what can be checked.
 */
#include "unwind_walk.h"

/* The longest call that is recognised: opcode, ModRM, SIB, 4 bytes of displacement. */
#define X86_CALL_MAX 7

size_t recordint_walk_code(struct walk *w, const struct place *place, uint64_t address,
                           uint8_t *out, size_t size)
{
    size_t got = 0;

    if (address < place->range.start || address > place->range.end)
        return 0;
    if (size > address - place->range.start)
        size = (size_t)(address - place->range.start);
    if (place->range.image != NULL) {
        uint64_t offset = address - size - place->range.start + place->range.file_offset;
        uint64_t image_address;

        if (recordint_image_address(place->range.image, offset, &image_address))
            got = recordint_image_read(place->range.image, image_address, out, size);
    }
    if (got < size && w->space->read_code != NULL)
        got = w->space->read_code(w->space->user, address - size, out, size);
    return got == size ? size : 0;
}

/* Whether the bytes before end are "call *operand": 0xff, ModRM with 2 in its middle, operand. */
static bool indirect_call(const uint8_t *end, size_t size)
{
    for (size_t length = 2; length <= size; length++) {
        const uint8_t *b = end - length;
        unsigned mod, rm;
        size_t need = 2;

        if (b[0] != 0xff || (b[1] & 0x38) != 0x10)
            continue;
        mod = b[1] >> 6;
        rm = b[1] & 7;
        if (mod != 3 && rm == 4) {
            need++;
            if (length >= 3 && mod == 0 && (b[2] & 7) == 5)
                need += 4;
        } else if (mod == 0 && rm == 5) {
            need += 4;
        }
        need += mod == 1 ? 1 : mod == 2 ? 4 : 0;
        if (need == length)
            return true;
    }
    return false;
}

enum call_before { IS_CALL, IS_NO_CALL, IS_UNREADABLE };

static enum call_before call_before(struct walk *w, const struct place *place, uint64_t address)
{
    uint8_t code[X86_CALL_MAX];
    size_t size;

    if (w->arch == ARCH_AARCH64) {
        uint32_t word;

        if (recordint_walk_code(w, place, address, code, 4) != 4)
            return IS_UNREADABLE;
        __builtin_memcpy(&word, code, sizeof word);
        if ((word & 0xfc000000) == 0x94000000 || /* bl */
            (word & 0xfffffc1f) == 0xd63f0000 || /* blr */
            (word & 0xfefff800) == 0xd63f0800)   /* blraa and its like */
            return IS_CALL;
        return IS_NO_CALL;
    }
    size = recordint_walk_code(w, place, address, code, sizeof code);
    if (size == 0)
        return IS_UNREADABLE;
    if ((size >= 5 && code[size - 5] == 0xe8) || indirect_call(code + size, size))
        return IS_CALL;
    return IS_NO_CALL;
}

bool recordint_walk_is_behind_call(struct walk *w, uint64_t address)
{
    struct place place;

    return address != 0 && recordint_walk_place(w, address - 1, &place) &&
           call_before(w, &place, address) != IS_NO_CALL;
}

/* Whether an address may be where a call returns to. Code that can be read must have the call; generated
 * code often cannot be, then being executable has to do if the caller says so. */
static bool plausible_return(struct walk *w, uint64_t address, bool unreadable_will_do)
{
    struct place place;

    if (address == 0 || !recordint_walk_place(w, address - 1, &place))
        return false;
    if (place.range.trampoline)
        return true; /* a call was there: the walk ends with the reason */
    switch (call_before(w, &place, address)) {
    case IS_CALL:
        return true;
    case IS_UNREADABLE:
        return unreadable_will_do;
    default:
        return false;
    }
}

static void become_caller(struct walk *w, uint64_t return_address, uint64_t cfa)
{
    reg_set(&w->regs, reg_pc(w->arch), return_address);
    w->cfa = cfa;
    w->leaf = false;
    w->guessed = true;
}

int recordint_walk_frame_pointer(struct walk *w)
{
    unsigned fp = w->arch == ARCH_X86_64 ? REG_X86_RBP : REG_A64_FP;
    uint64_t frame = w->regs.value[fp];
    uint64_t caller_frame, return_address;

    if (!reg_is_known(&w->regs, fp))
        return UNWIND_NO_RULE;
    /* Both ABIs: 0 marks the outermost frame. In a leaf it may be anything's value. */
    if (frame == 0)
        return w->leaf ? UNWIND_NO_RULE : UNWIND_COMPLETE;
    if (frame < w->cfa || frame % 8 != 0 || frame > UINT64_MAX - 16)
        return UNWIND_NO_RULE;
    if (!stack_copy_load(&w->copy, frame, &caller_frame) ||
        !stack_copy_load(&w->copy, frame + 8, &return_address)) {
        /* A frame pointer, or any value: only the first is worth a larger copy. */
        if (w->leaf || frame - w->cfa > 1u << 20)
            return UNWIND_NO_RULE;
        return (int)recordint_walk_unreadable(w, frame + 8);
    }
    return_address &= ~w->pac_mask;
    if (return_address == 0)
        return caller_frame == 0 ? UNWIND_COMPLETE : UNWIND_NULL_RETURN;
    if (!plausible_return(w, return_address, true))
        return UNWIND_NO_RULE;
    w->regs.known = 0; /* what the frame saved elsewhere is not known */
    reg_set(&w->regs, fp, caller_frame);
    /* AArch64 has the pair at the bottom of the frame: its end is not known, nor is sp. */
    if (w->arch == ARCH_X86_64)
        reg_set(&w->regs, REG_X86_RSP, frame + 16);
    become_caller(w, return_address, w->arch == ARCH_X86_64 ? frame + 16 : frame + 1);
    return WALK_ON;
}

int recordint_walk_top_of_stack(struct walk *w)
{
    unsigned sp = reg_sp(w->arch);
    uint64_t cfa = w->regs.value[sp];
    uint64_t return_address;

    if (!w->leaf || !reg_is_known(&w->regs, sp))
        return UNWIND_NO_RULE;
    if (w->arch == ARCH_AARCH64) {
        return_address = w->regs.value[REG_A64_LR];
        if (!reg_is_known(&w->regs, REG_A64_LR))
            return UNWIND_NO_RULE;
    } else {
        if (!stack_copy_load(&w->copy, cfa, &return_address))
            return UNWIND_NO_RULE;
        cfa += 8;
    }
    return_address &= ~w->pac_mask;
    if (!plausible_return(w, return_address, w->arch == ARCH_AARCH64))
        return UNWIND_NO_RULE;
    for (unsigned reg = 0; reg < rule_register_count(w->arch); reg++)
        if (!rule_is_callee_saved(w->arch, reg))
            w->regs.known &= ~(UINT64_C(1) << reg);
    reg_set(&w->regs, sp, cfa);
    become_caller(w, return_address, cfa);
    return WALK_ON;
}
