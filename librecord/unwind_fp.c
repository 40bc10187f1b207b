/* SPDX-License-Identifier: MIT */
/*
 * Callers of code without unwind data: by frame pointer, and of leaf frames by what a call has just left. A false
 * frame is worse than a cut stack, so each must pass what can be checked.
 */
#include <string.h>

#include "rule_cache.h"
#include "unwind_walk.h"

/* The longest call that is recognised: opcode, ModRM, SIB, 4 bytes of displacement. */
#define X86_CALL_MAX 7

/* In so many bytes a function that keeps a frame pointer has set it up, having saved some registers. */
#define FUNCTION_BEGIN 40

/* From where that is done to the first call. */
#define CLEARS_BYTES 48

/* Frames of a chain of frame pointers are not larger. */
#define CHAIN_BYTES (UINT64_C(1) << 20)

/* A function without any frame is short. */
#define FRAMELESS_BYTES 4096

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

/* *target: what a direct call calls; 0: not known. */
static enum call_before call_before(struct walk *w, const struct place *place, uint64_t address,
                                    uint64_t *target)
{
    uint8_t code[X86_CALL_MAX];
    size_t size;

    *target = 0;
    if (w->arch == ARCH_AARCH64) {
        uint32_t word;

        if (recordint_walk_code(w, place, address, code, 4) != 4)
            return IS_UNREADABLE;
        memcpy(&word, code, sizeof word);
        if ((word & 0xfc000000) == 0x94000000) { /* bl */
            *target = address - 4 + (uint64_t)((int64_t)((int32_t)(word << 6) >> 6) * 4);
            return IS_CALL;
        }
        if ((word & 0xfffffc1f) == 0xd63f0000 || /* blr */
            (word & 0xfefff800) == 0xd63f0800)   /* blraa and its like */
            return IS_CALL;
        return IS_NO_CALL;
    }
    size = recordint_walk_code(w, place, address, code, sizeof code);
    if (size == 0)
        return IS_UNREADABLE;
    if (indirect_call(code + size, size))
        return IS_CALL;
    if (size >= 5 && code[size - 5] == 0xe8) {
        int32_t distance;

        memcpy(&distance, code + size - 4, sizeof distance);
        *target = address + (uint64_t)(int64_t)distance;
        return IS_CALL;
    }
    return IS_NO_CALL;
}

bool recordint_walk_is_behind_call(struct walk *w, uint64_t address)
{
    struct place place;
    uint64_t target;

    return address != 0 && recordint_walk_place(w, address - 1, &place) &&
           call_before(w, &place, address, &target) != IS_NO_CALL;
}

/* Whether there is a jump at an address, as there is where a call of another module leads to. */
static bool is_jump(struct walk *w, uint64_t address)
{
    static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint8_t code[sizeof endbr + 3];
    const uint8_t *c = code;
    struct place place;

    if (!recordint_walk_place(w, address, &place) ||
        recordint_walk_code(w, &place, address + sizeof code, code, sizeof code) != sizeof code)
        return false;
    if (w->arch == ARCH_AARCH64) { /* adrp x16 of a PLT, b */
        uint32_t word;

        memcpy(&word, code, sizeof word);
        return (word & 0x9f00001f) == 0x90000010 || (word & 0xfc000000) == 0x14000000;
    }
    if (memcmp(c, endbr, sizeof endbr) == 0)
        c += sizeof endbr;
    if (*c == 0xf2) /* bnd */
        c++;
    return *c == 0xe9 || (c[0] == 0xff && (c[1] & 0x38) == 0x20);
}

/* Whether what is called at target can have led to the code at pc: to a place before it in the same mapping, or
 * anywhere by a jump. */
static bool leads_to(struct walk *w, uint64_t target, uint64_t pc)
{
    struct place place;

    if (!recordint_walk_place(w, pc, &place))
        return true; /* jumped to nowhere: the first frame alone */
    if (target >= place.range.start && target < place.range.end)
        return target <= pc || is_jump(w, target);
    return is_jump(w, target);
}

bool recordint_walk_plausible_return(struct walk *w, uint64_t address, uint64_t callee_pc,
                                     bool unreadable_will_do)
{
    struct place place;
    uint64_t target;

    if (address == 0 || !recordint_walk_place(w, address - 1, &place))
        return false;
    if (place.range.trampoline)
        return true; /* a call was there: the walk ends with the reason */
    switch (call_before(w, &place, address, &target)) {
    case IS_CALL:
        return target == 0 || callee_pc == 0 || leads_to(w, target, callee_pc);
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

/* Whether the function that begins at an address sets up a frame pointer, as far as its first instructions tell: by mov
 * or lea from the stack pointer. A jump to another function, or code that cannot be read, may. */
static bool may_keep_frame_pointer(struct walk *w, uint64_t function)
{
    uint8_t code[FUNCTION_BEGIN];
    struct place place;
    size_t size = sizeof code;

    if (w->arch == ARCH_AARCH64 || !recordint_walk_place(w, function, &place))
        return true;
    if (size > place.range.end - function)
        size = (size_t)(place.range.end - function);
    if (recordint_walk_code(w, &place, function + size, code, size) != size || is_jump(w, function))
        return true;
    for (size_t i = 0; i + 4 <= size; i++) {
        const uint8_t *c = code + i;

        if (c[0] == 0x48 && ((c[1] == 0x89 && c[2] == 0xe5) || (c[1] == 0x8b && c[2] == 0xec) ||
                             (c[1] == 0x8d && (c[2] == 0x6c || c[2] == 0xac) && c[3] == 0x24)))
            return true;
    }
    return false;
}

/* What the call before a return address calls; 0: not known. */
static uint64_t called_before(struct walk *w, uint64_t return_address)
{
    struct place place;
    uint64_t target = 0;

    if (recordint_walk_place(w, return_address - 1, &place))
        call_before(w, &place, return_address, &target);
    return target;
}

static bool makes_sense(struct walk *w, uint64_t pc, uint64_t address, enum walk_found found)
{
    uint64_t called;

    if (!recordint_walk_plausible_return(w, address, found == WALK_BY_CHAIN ? 0 : pc, true))
        return false;
    if (found != WALK_BY_FRAME_POINTER)
        return true;
    called = called_before(w, address);
    return called == 0 || may_keep_frame_pointer(w, called);
}

bool recordint_walk_may_return(struct walk *w, uint64_t pc, uint64_t address, enum walk_found found)
{
    struct unwind_cache *cache = w->space->cache;
    uint64_t generation = w->space->generation;
    uint32_t round = w->space->code_round;
    uint64_t hash = (pc ^ address << 20 ^ found) * UINT64_C(0x9e3779b97f4a7c15);
    struct unwind_return *known;
    bool plausible;

    if (cache == NULL || round == 0)
        return makes_sense(w, pc, address, found);
    known = &cache->returns[hash >> 32 & (UNWIND_RETURNS - 1)];
    if (known->code_round == round && known->pc == pc && known->address == address &&
        known->generation == generation && known->found == found)
        return known->plausible;
    plausible = makes_sense(w, pc, address, found);
    *known = (struct unwind_return){pc, address, generation, round, (uint8_t)found, plausible};
    return plausible;
}

/* Whether a frame that no call seems to have led to is of a chain nevertheless: its caller has a frame pointer as
 * well. An engine's direct call may be of code that jumps on to the function, as V8's builtins do; any value that
 * looks like a frame is not often followed by another. */
static bool is_chained(struct walk *w, uint64_t frame, uint64_t caller_frame,
                       uint64_t return_address)
{
    uint64_t next_frame, next_return, top;

    /* Of a leaf without a frame of its own it is the caller's. */
    if (w->leaf && stack_copy_load(&w->copy, w->regs.value[reg_sp(w->arch)], &top) &&
        recordint_walk_plausible_return(w, top & ~w->pac_mask, 0, false))
        return false;
    if (caller_frame <= frame || caller_frame % 8 != 0 || caller_frame - frame > CHAIN_BYTES ||
        !stack_copy_load(&w->copy, caller_frame, &next_frame) ||
        !stack_copy_load(&w->copy, caller_frame + 8, &next_return))
        return false;
    next_return &= ~w->pac_mask;
    return next_frame > caller_frame && next_frame % 8 == 0 &&
           recordint_walk_may_return(w, walk_pc(w), return_address, WALK_BY_CHAIN) &&
           recordint_walk_may_return(w, return_address, next_return, WALK_BY_CHAIN);
}

/* Whether the code has set the frame pointer to 0 a moment ago, as the first code of processes and threads does.
 * In code that keeps no frame pointer 0 is a value as any other. */
static bool clears_frame_pointer(struct walk *w)
{
    uint8_t code[CLEARS_BYTES];
    struct place place;
    size_t size;

    if (!recordint_walk_place(w, walk_pc(w) - 1, &place))
        return false;
    size = recordint_walk_code(w, &place, walk_pc(w), code, sizeof code);
    if (w->arch == ARCH_X86_64) {
        for (size_t i = 0; i + 2 <= size; i++)
            if ((code[i] == 0x31 || code[i] == 0x33) && code[i + 1] == 0xed) /* xor %ebp, %ebp */
                return true;
        return false;
    }
    for (size_t i = 4; i <= size; i += 4) {
        uint32_t word;

        memcpy(&word, code + size - i, sizeof word);
        if (word == 0xd280001d || word == 0xaa1f03fd) /* mov x29, #0; mov x29, xzr */
            return true;
    }
    return false;
}

int recordint_walk_frame_pointer(struct walk *w)
{
    unsigned fp = w->arch == ARCH_X86_64 ? REG_X86_RBP : REG_A64_FP;
    uint64_t frame = w->regs.value[fp];
    uint64_t caller_frame, return_address;

    if (!reg_is_known(&w->regs, fp))
        return UNWIND_NO_RULE;
    /* In a leaf it may be any value. */
    if (frame == 0)
        return !w->leaf && (w->chained_pc == walk_pc(w) || clears_frame_pointer(w))
                   ? UNWIND_COMPLETE
                   : UNWIND_NO_RULE;
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
    if (!recordint_walk_may_return(w, walk_pc(w), return_address, WALK_BY_FRAME_POINTER) &&
        !is_chained(w, frame, caller_frame, return_address))
        return UNWIND_NO_RULE;
    w->regs.known = 0; /* what the frame saved elsewhere is not known */
    reg_set(&w->regs, fp, caller_frame);
    /* AArch64 has the pair at the bottom of the frame: its end is not known, nor is sp. */
    if (w->arch == ARCH_X86_64)
        reg_set(&w->regs, REG_X86_RSP, frame + 16);
    w->chained_pc = return_address;
    become_caller(w, return_address, w->arch == ARCH_X86_64 ? frame + 16 : frame + 1);
    return WALK_ON;
}

bool recordint_walk_is_frameless(struct walk *w)
{
    uint64_t return_address, called, pc = walk_pc(w);

    if (w->arch != ARCH_X86_64 || !reg_is_known(&w->regs, REG_X86_RSP) ||
        !stack_copy_load(&w->copy, w->regs.value[REG_X86_RSP], &return_address) ||
        return_address == 0)
        return false;
    called = called_before(w, return_address);
    return called != 0 && called <= pc && pc - called < FRAMELESS_BYTES &&
           !may_keep_frame_pointer(w, called);
}

int recordint_walk_top_of_stack(struct walk *w, bool is_frameless)
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
    if (!recordint_walk_plausible_return(w, return_address, is_frameless ? 0 : walk_pc(w),
                                         w->arch == ARCH_AARCH64))
        return UNWIND_NO_RULE;
    for (unsigned reg = 0; reg < rule_register_count(w->arch); reg++)
        if (!rule_is_callee_saved(w->arch, reg))
            w->regs.known &= ~(UINT64_C(1) << reg);
    reg_set(&w->regs, sp, cfa);
    become_caller(w, return_address, cfa);
    return WALK_ON;
}
