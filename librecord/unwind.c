/* SPDX-License-Identifier: MIT */
/*
 * The walk: mapping and rule of each pc, from the caches while they have it, and the step by a compact
 * rule. Other steps: unwind_row.c, unwind_signal.c, unwind_fp.c.
 */
#include "unwind.h"

#include <string.h>

#include "rule_cache.h"
#include "unwind_walk.h"

/* A frame or jump larger than this is a wrong address, not a copy that was too small. */
#define FAR_BYTES (UINT64_C(64) << 20)
/* The longest _start there is. */
#define ENTRY_BYTES 64
/* Of the instructions of unwind tables, for one stack: some milliseconds. A stack of 1,024 frames whose rules are all
 * looked up for the first time takes some 50 KiB. */
#define TABLE_BYTES_MAX (UINT64_C(1) << 20)

static const struct rule no_rule = {.kind = RULE_NONE};
static const struct rule trampoline_rule = {.kind = RULE_TRAMPOLINE};
static const struct rule sigreturn_rule = {.kind = RULE_SIGRETURN, .flags = RULE_SIGNAL};

struct lookup {
    const struct rule *rule;
    uint32_t module;
};

bool recordint_walk_place(struct walk *w, uint64_t address, struct place *out)
{
    out->has_image_address = false;
    if (!w->space->find(w->space->user, address, &out->range))
        return false;
    if (out->range.image != NULL)
        out->has_image_address =
            recordint_image_address(out->range.image,
                                    address - out->range.start + out->range.file_offset,
                                    &out->image_address);
    return true;
}

enum unwind_end recordint_walk_unreadable(const struct walk *w, uint64_t address)
{
    uint64_t end = w->copy.start + w->copy.size;

    if (w->elsewhere || address < w->copy.start || address >= end + FAR_BYTES)
        return UNWIND_STACK_READ;
    return UNWIND_TRUNCATED;
}

enum unwind_end recordint_walk_stuck(const struct walk *w, uint64_t cfa,
                                     const uint64_t *return_address)
{
    bool same = cfa == w->cfa && return_address != NULL && *return_address == walk_pc(w);

    return same ? UNWIND_NO_PROGRESS : UNWIND_BACKWARDS;
}

enum unwind_end recordint_walk_no_return(const struct walk *w, uint64_t cfa)
{
    bool at_top = w->leaf && w->arch == ARCH_X86_64 && cfa == w->regs.value[REG_X86_RSP] + 8;

    return at_top ? UNWIND_NULL_RETURN : UNWIND_COMPLETE;
}

/* The rule at an address that no cache has yet. */
static bool look_up_slowly(struct walk *w, uint64_t address, struct lookup *out)
{
    struct unwind_space *space = w->space;
    struct place place;
    uint64_t before;

    if (!recordint_walk_place(w, address, &place))
        return false;
    before = place.has_image_address ? recordint_cfi_work(place.range.image) : 0;
    out->module = place.range.module;
    out->rule = &no_rule;
    if (place.range.trampoline) {
        out->rule = &trampoline_rule;
    } else if (place.has_image_address && space->cache == NULL) {
        recordint_rule_make(w->arch, place.range.image, place.image_address, &w->made);
        if (w->made.kind != RULE_NONE && w->made.kind != RULE_STOP && w->made.kind != RULE_STUB)
            w->made.kind = RULE_GENERIC; /* uncached is the check of all that makes it fast */
        out->rule = &w->made;
    } else if (place.has_image_address) {
        out->rule = recordint_rule_table_get(place.range.rules, place.image_address);
        if (out->rule == NULL) {
            struct rule made;

            recordint_rule_make(w->arch, place.range.image, place.image_address, &made);
            out->rule = recordint_rule_table_put(place.range.rules, place.image_address, &made);
        }
    }
    if (place.has_image_address)
        w->table_bytes += recordint_cfi_work(place.range.image) - before;
    /* A file that could not be opened may be, later. */
    if (space->cache != NULL && (place.range.image != NULL || !place.range.file))
        recordint_unwind_cache_put(space->cache, address, space->generation, out->rule,
                                   out->module);
    return true;
}

/* Returns false when nothing executable is mapped there. */
static inline bool look_up(struct walk *w, uint64_t address, struct lookup *out)
{
    const struct unwind_space *space = w->space;

    if (space->cache != NULL) {
        const struct unwind_cache_entry *e =
            unwind_cache_get(space->cache, address, space->generation);

        if (e != NULL) {
            out->rule = e->rule;
            out->module = e->module;
            return true;
        }
    }
    return look_up_slowly(w, address, out);
}

/* What the quick look-up leaves open: code without unwind data, and addresses that no call has put there, so that the
 * byte before belongs to nothing or to others. A signal handler returns to a signal frame, the first function of a
 * coroutine to where its library has ended it, and a switch of stacks to a function that has not begun. Returns the
 * frame's lookup address. */
static uint64_t look_closer(struct walk *w, uint64_t address, struct lookup *at, bool *mapped)
{
    bool planted = false; /* by no call, and no signal frame by its unwind data */

    if (!w->leaf &&
        (!*mapped || (at->rule->kind == RULE_NONE && (at->rule->flags & RULE_CODE) == 0) ||
         (at->rule->flags & (RULE_SIGNAL | RULE_BEFORE_START)) != 0)) {
        struct rule before = *at->rule; /* uncached, the next look-up overwrites it */
        struct lookup exact;
        bool is_signal = false;

        if (look_up(w, address + 1, &exact)) {
            is_signal = (exact.rule->flags & RULE_SIGNAL) != 0 ||
                        (exact.rule->kind == RULE_NONE && recordint_walk_at_sigreturn(w));
            planted = !is_signal && (exact.rule->flags & RULE_START) != 0 &&
                      !recordint_walk_is_behind_call(w, walk_pc(w));
        }
        if (is_signal || planted) {
            *at = exact;
            *mapped = true;
            address++;
        } else if (at->rule == &w->made) {
            w->made = before;
        }
    }
    if (!*mapped)
        return address;
    /* Go's has unwind data as any function. That of AArch64's vdso leads to where the interrupted function
     * returns, not to where it was. */
    if (((at->rule->kind == RULE_NONE && (at->rule->flags & RULE_CODE) == 0) || planted ||
         (w->arch == ARCH_AARCH64 && (at->rule->flags & RULE_SIGNAL) != 0)) &&
        recordint_walk_at_sigreturn(w)) {
        at->rule = &sigreturn_rule;
        address = walk_pc(w);
    } else if (at->rule->kind == RULE_NONE || (at->rule->flags & RULE_CODE) != 0) {
        at->rule = recordint_walk_code_rule(w, address, at->rule);
    }
    return address;
}

/* ---- steps ---- */

/* Registers that hold their value across a call, by DWARF number. */
#define X86_KEPT                                                                  \
    (UINT64_C(0xf000) | UINT64_C(1) << REG_X86_RBX | UINT64_C(1) << REG_X86_RBP | \
     UINT64_C(1) << REG_X86_RSP | UINT64_C(1) << REG_X86_RIP)
#define A64_KEPT (UINT64_C(0x1fff80000) | UINT64_C(1) << REG_A64_SP)
#define A64_RETURN (1u << (REG_A64_LR - RULE_A64_FIRST)) /* in saved_mask */

/* The CFA by register and offset: WALK_ON and *out, or an end. */
static inline int simple_cfa(const struct walk *w, const struct rule *rule, uint64_t *out)
{
    if ((w->regs.known >> rule->cfa_register & 1) == 0)
        return UNWIND_NO_RULE;
    if (__builtin_add_overflow(w->regs.value[rule->cfa_register], (int64_t)rule->cfa_offset, out))
        return UNWIND_OVERFLOW;
    return WALK_ON;
}

static inline uint64_t slot_address(uint64_t cfa, int16_t words)
{
    return cfa + (uint64_t)((int64_t)words * 8);
}

/* Whether all words between the rule's lowest one and the CFA were copied. */
static inline bool all_copied(const struct walk *w, int16_t lowest, uint64_t cfa)
{
    uint64_t above_start = cfa - w->copy.start;

    return above_start <= w->copy.size && above_start >= (uint64_t)(-(int64_t)lowest * 8);
}

static inline uint64_t load_copied(const struct walk *w, uint64_t address)
{
    uint64_t value;

    memcpy(&value, w->copy.bytes + (address - w->copy.start), sizeof value);
    return value;
}

static inline int step_x86(struct walk *w, const struct rule *rule)
{
    struct regs *regs = &w->regs;
    uint64_t cfa, return_address;
    int end = simple_cfa(w, rule, &cfa);
    bool copied;

    if (end != WALK_ON &&
        !(end == UNWIND_OVERFLOW && rule->kind == RULE_PLT)) /* expressions wrap */
        return end;
    if (rule->kind == RULE_PLT && (regs->value[REG_X86_RIP] & 15) >= (uint64_t)rule->saved[0])
        cfa += UINT64_C(1) << rule->saved[1];
    copied = all_copied(w, rule->lowest, cfa);
    if (copied) {
        return_address = load_copied(w, slot_address(cfa, rule->saved[RULE_RETURN]));
    } else {
        uint64_t at = slot_address(cfa, rule->saved[RULE_RETURN]);

        if (!stack_copy_load(&w->copy, at, &return_address)) {
            if (!walk_cfa_advances(w, cfa))
                return (int)recordint_walk_stuck(w, cfa, NULL);
            return (int)recordint_walk_unreadable(w, at);
        }
    }
    if (!walk_cfa_advances(w, cfa))
        return (int)recordint_walk_stuck(w, cfa, &return_address);
    if (return_address == 0)
        return (int)recordint_walk_no_return(w, cfa);
    for (unsigned mask = rule->saved_mask; mask != 0; mask &= mask - 1) {
        unsigned place = (unsigned)__builtin_ctz(mask);
        unsigned reg = recordint_rule_x86_saved[place];
        uint64_t at = slot_address(cfa, rule->saved[place]);

        if (copied)
            reg_set(regs, reg, load_copied(w, at));
        else if (stack_copy_load(&w->copy, at, &regs->value[reg])) /* else it keeps its value */
            regs->known |= UINT64_C(1) << reg;
    }
    regs->value[REG_X86_RSP] = cfa;
    regs->value[REG_X86_RIP] = return_address;
    regs->known = (regs->known & X86_KEPT) | UINT64_C(1) << REG_X86_RSP;
    w->cfa = cfa;
    w->leaf = false;
    return WALK_ON;
}

static int step_realigned(struct walk *w, const struct rule *rule)
{
    struct regs *regs = &w->regs;
    uint64_t base = regs->value[rule->cfa_register];
    uint64_t at = base + (uint64_t)(int64_t)rule->cfa_offset;
    uint64_t cfa, return_address;

    if (!reg_is_known(regs, rule->cfa_register))
        return UNWIND_NO_RULE;
    if (!stack_copy_load(&w->copy, at, &cfa))
        return (int)recordint_walk_unreadable(w, at);
    at = slot_address(cfa, rule->saved[RULE_RETURN]);
    if (!stack_copy_load(&w->copy, at, &return_address)) {
        if (!walk_cfa_advances(w, cfa))
            return (int)recordint_walk_stuck(w, cfa, NULL);
        return (int)recordint_walk_unreadable(w, at);
    }
    if (!walk_cfa_advances(w, cfa))
        return (int)recordint_walk_stuck(w, cfa, &return_address);
    if (return_address == 0)
        return (int)recordint_walk_no_return(w, cfa);
    for (unsigned mask = rule->saved_mask; mask != 0; mask &= mask - 1) {
        unsigned place = (unsigned)__builtin_ctz(mask);
        unsigned reg = recordint_rule_x86_saved[place];

        if (stack_copy_load(&w->copy, slot_address(base, rule->saved[place]), &regs->value[reg]))
            regs->known |= UINT64_C(1) << reg;
    }
    regs->value[REG_X86_RSP] = cfa;
    regs->value[REG_X86_RIP] = return_address;
    regs->known = (regs->known & X86_KEPT) | UINT64_C(1) << REG_X86_RSP;
    w->cfa = cfa;
    w->leaf = false;
    return WALK_ON;
}

static int step_aarch64(struct walk *w, const struct rule *rule)
{
    struct regs *regs = &w->regs;
    uint64_t cfa, lowest, return_address = regs->value[REG_A64_LR];
    unsigned mask = rule->a64.saved_mask;
    int end = simple_cfa(w, rule, &cfa);
    bool copied, returns;

    if (end != WALK_ON)
        return end;
    lowest = slot_address(cfa, rule->a64.lowest);
    copied = all_copied(w, rule->a64.lowest, cfa);
    if ((mask & A64_RETURN) != 0) {
        uint64_t at = lowest + UINT64_C(8) * rule->a64.above[REG_A64_LR - RULE_A64_FIRST];

        if (copied)
            return_address = load_copied(w, at);
        else if (!stack_copy_load(&w->copy, at, &return_address))
            end = (int)recordint_walk_unreadable(w, at);
    } else if (!reg_is_known(regs, REG_A64_LR)) {
        end = UNWIND_NO_RULE;
    } else if (!w->leaf) {
        end = UNWIND_NO_PROGRESS; /* it holds where this frame goes on, since it called */
    }
    return_address &= ~w->pac_mask;
    returns = end == WALK_ON || end == UNWIND_NO_PROGRESS;
    if (!walk_cfa_advances(w, cfa))
        return (int)recordint_walk_stuck(w, cfa, returns ? &return_address : NULL);
    if (end != WALK_ON)
        return end;
    if (return_address == 0)
        return UNWIND_COMPLETE;
    for (mask &= ~A64_RETURN; mask != 0; mask &= mask - 1) {
        unsigned place = (unsigned)__builtin_ctz(mask);
        unsigned reg = RULE_A64_FIRST + place;
        uint64_t at = lowest + UINT64_C(8) * rule->a64.above[place];

        if (copied)
            reg_set(regs, reg, load_copied(w, at));
        else if (stack_copy_load(&w->copy, at, &regs->value[reg])) /* else it keeps its value */
            regs->known |= UINT64_C(1) << reg;
    }
    regs->known &= A64_KEPT;
    reg_set(regs, REG_A64_LR, return_address);
    reg_set(regs, REG_A64_SP, cfa);
    reg_set(regs, REG_A64_PC, return_address);
    w->cfa = cfa;
    w->leaf = false;
    return WALK_ON;
}

int recordint_walk_simple(struct walk *w, const struct rule *rule)
{
    return w->arch == ARCH_X86_64 ? step_x86(w, rule) : step_aarch64(w, rule);
}

/* By the row itself, decoded anew. */
static int step_row(struct walk *w, uint64_t address)
{
    struct place place;
    struct cfi_row row;
    enum cfi_result found;
    uint64_t before;

    if (!recordint_walk_place(w, address, &place) || !place.has_image_address)
        return UNWIND_NO_RULE;
    before = recordint_cfi_work(place.range.image);
    found = recordint_cfi_row(place.range.image, place.image_address, &row);
    w->table_bytes += recordint_cfi_work(place.range.image) - before;
    if (found != CFI_FOUND)
        return UNWIND_NO_RULE;
    recordint_walk_restored(w, &row);
    return recordint_walk_row(w, &row, address - place.image_address);
}

/* Whether the walk has come to where the process began: ld.so's entry has no unwind data. Where an entry has some, what
 * follows it without is something else. */
static bool is_entry(struct walk *w, uint64_t address)
{
    struct place place;
    struct cfi_row row;
    uint64_t entry;

    if (!recordint_walk_place(w, address, &place) || !place.has_image_address)
        return false;
    entry = recordint_image_entry(place.range.image);
    return entry != 0 && place.image_address - entry < ENTRY_BYTES &&
           recordint_cfi_row(place.range.image, entry, &row) == CFI_NONE;
}

/* Whether x30 leads back into the function itself: it has made a call, so x30 is not where it returns to. */
static bool x30_is_own(struct walk *w, uint64_t address)
{
    uint64_t call = (w->regs.value[REG_A64_LR] & ~w->pac_mask) - 1;
    struct place here, there;
    struct cfi_row row;
    uint64_t start;

    if (!recordint_walk_place(w, address, &here) || !recordint_walk_place(w, call, &there) ||
        !here.has_image_address || !there.has_image_address ||
        here.range.image != there.range.image ||
        recordint_cfi_row(here.range.image, here.image_address, &row) != CFI_FOUND)
        return false;
    start = row.fde_start;
    return recordint_cfi_row(there.range.image, there.image_address, &row) == CFI_FOUND &&
           row.fde_start == start;
}

/* As the kernel starts processes. */
static bool has_no_frame_pointer(const struct walk *w)
{
    unsigned fp = w->arch == ARCH_X86_64 ? REG_X86_RBP : REG_A64_FP;

    return reg_is_known(&w->regs, fp) && w->regs.value[fp] == 0;
}

/* Without unwind data. */
static int step_guessed(struct walk *w, uint64_t address, bool mapped)
{
    int end = UNWIND_NO_RULE;

    if (mapped && (w->leaf || has_no_frame_pointer(w)) && is_entry(w, address))
        return UNWIND_COMPLETE;
    if (mapped && w->leaf && recordint_walk_stub(w, address) == WALK_ON)
        return WALK_ON;
    /* A jump to nowhere has just been a call: its frame pointer is still the caller's, who would be lost. */
    if (mapped && !(w->leaf && recordint_walk_is_frameless(w)))
        end = recordint_walk_frame_pointer(w);
    if (end == UNWIND_NO_RULE && w->leaf)
        end = recordint_walk_top_of_stack(w, false);
    return end;
}

static int step(struct walk *w, const struct rule *rule, uint64_t address)
{
    int end;

    if (rule->kind == RULE_SIMPLE && (rule->flags & RULE_CODE) != 0) {
        end = recordint_walk_code_step(w, rule);
        return end != UNWIND_NO_RULE ? end : step_guessed(w, address, true);
    }
    switch (rule->kind) {
    case RULE_SIMPLE:
    case RULE_PLT:
        end = recordint_walk_simple(w, rule);
        break;
    case RULE_REALIGNED:
        end = step_realigned(w, rule);
        break;
    case RULE_STUB:
        end = step_aarch64(w, rule);
        break;
    case RULE_GENERIC:
        end = step_row(w, address);
        break;
    case RULE_STOP:
        return UNWIND_COMPLETE;
    case RULE_TRAMPOLINE:
        return UNWIND_UPROBE;
    case RULE_SIGRETURN:
        return recordint_walk_sigreturn(w);
    default:
        return step_guessed(w, address, true);
    }
    if (end == WALK_ON || end == UNWIND_COMPLETE)
        return end;
    /* Recording 4.2: in an epilogue rules may point under sp; what a call left is where sp points, or in x30. */
    if (w->leaf && (w->arch == ARCH_X86_64 || !x30_is_own(w, address)) &&
        (end == UNWIND_STACK_READ || end == UNWIND_BACKWARDS || end == UNWIND_NO_PROGRESS) &&
        recordint_walk_top_of_stack(w, true) == WALK_ON)
        return WALK_ON;
    /* A frame pointer step leaves sp unknown there; the chain of frame pointers goes on. */
    if (w->arch == ARCH_AARCH64 && end == UNWIND_NO_RULE && !reg_is_known(&w->regs, REG_A64_SP))
        return recordint_walk_frame_pointer(w);
    return end;
}

static bool begin(struct walk *w, struct unwind_space *space, const struct unwind_input *input)
{
    unsigned sp = reg_sp(input->arch);

    w->space = space;
    w->arch = input->arch;
    w->pac_mask = input->pac_mask;
    w->regs = input->regs;
    w->regs.value[reg_pc(input->arch)] &= ~input->pac_mask; /* of a return that failed its check */
    w->copy.bytes = input->stack;
    w->copy.start = input->regs.value[sp];
    w->copy.size = input->stack_size;
    if (w->copy.size > UINT64_MAX - FAR_BYTES - w->copy.start) /* no stack ends there */
        w->copy.size = 0;
    w->cfa = w->copy.start;
    w->leaf = true;
    w->elsewhere = false;
    w->chained_pc = 0;
    w->guessed = false;
    w->by_code = false;
    w->signal = false;
    w->table_bytes = 0;
    return reg_is_known(&w->regs, sp);
}

/* Whether the last frame of a walk that failed is to be believed: where a stack begins in a way that unwind data know
 * nothing of, the walk reads on, and any word that is the address of code looks like a caller. */
static bool last_is_called(struct walk *w, int end, uint64_t return_address)
{
    if (end == UNWIND_COMPLETE || end == UNWIND_TRUNCATED || end == UNWIND_DEPTH ||
        end == UNWIND_UPROBE)
        return true;
    return recordint_walk_is_behind_call(w, return_address);
}

void recordint_unwind(struct unwind_space *space, const struct unwind_input *input,
                      struct unwind_frame *frames, size_t max, struct unwind_result *out)
{
    struct walk w;
    bool has_stack = begin(&w, space, input);
    unsigned pc = reg_pc(input->arch);
    int end = WALK_ON;
    bool called = false; /* the last frame was: it is no leaf, nor the kernel's */
    uint64_t last_pc = 0;

    out->count = 0;
    if (!reg_is_known(&w.regs, pc))
        end = UNWIND_NO_REGISTERS;
    while (end == WALK_ON) {
        uint64_t address = w.regs.value[pc] - (w.leaf ? 0 : 1);
        struct lookup at = {&no_rule, UNWIND_NO_MODULE};
        bool mapped = look_up(&w, address, &at);

        if (!mapped || (at.rule->flags & ~RULE_START) != 0 || at.rule->kind == RULE_NONE)
            address = look_closer(&w, address, &at, &mapped);
        if (!w.leaf && (!mapped || at.rule->kind == RULE_TRAMPOLINE)) {
            end = mapped ? UNWIND_UPROBE : UNWIND_NO_RULE;
            break;
        }
        if (out->count == max) {
            end = UNWIND_DEPTH;
            break;
        }
        if (w.table_bytes >
            TABLE_BYTES_MAX) { /* what was found is kept: the next walk comes further */
            end = UNWIND_NO_RULE;
            break;
        }
        called = !w.leaf && (at.rule->flags & RULE_SIGNAL) == 0 && at.rule->kind != RULE_SIGRETURN;
        last_pc = w.regs.value[pc];
        frames[out->count].address = address;
        frames[out->count].module = at.module;
        out->count++;
        if (!has_stack)
            end = UNWIND_NO_REGISTERS;
        else
            end = mapped ? step(&w, at.rule, address) : step_guessed(&w, address, false);
    }
    if (called && !last_is_called(&w, end, last_pc))
        out->count--;
    out->end = (enum unwind_end)end;
    out->guessed = w.guessed;
    out->by_code = w.by_code;
    out->signal = w.signal;
}
