/* SPDX-License-Identifier: MIT */
/*
 * One walk in progress: what the files unwind*.c share. Each way of finding a caller is a function
 * that moves the registers one frame up, or says why it cannot.
 */
#ifndef RECORD_UNWIND_WALK_H
#define RECORD_UNWIND_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cfi.h"
#include "cfi_expr.h"
#include "rule.h"
#include "unwind.h"

/* What a step says: the registers are the caller's now, or how the walk ends. */
#define WALK_ON (-1)

struct walk {
    struct unwind_space *space;
    enum arch arch;
    uint64_t pac_mask;
    struct stack_copy copy;
    struct regs regs; /* of the current frame; pc is where it goes on */
    uint64_t cfa;     /* of the frame below; the current one's must lie above (leaf: not below) */
    bool
        leaf; /* the first frame, or one that a signal interrupted: pc is exact, it may have no frame of
                         its own yet or any more, and x30 may be its return address */
    bool elsewhere;      /* a signal handler's stack was left for one that was not copied */
    uint64_t chained_pc; /* where the last step by frame pointer has led */
    bool guessed;
    bool by_code;
    bool signal;
    uint64_t table_bytes; /* of unwind tables that it took to find rules and rows */
    struct rule made;     /* the current frame's, without a cache */
};

/* Where an address lies. */
struct place {
    struct unwind_range range;
    uint64_t image_address; /* valid if has_image_address */
    bool has_image_address;
};

static inline uint64_t walk_pc(const struct walk *w)
{
    return w->regs.value[reg_pc(w->arch)];
}

/* Returns false when nothing executable is mapped there. */
bool recordint_walk_place(struct walk *w, uint64_t address, struct place *out);

/* How a walk ends that needs the memory at an address which was not copied. */
enum unwind_end recordint_walk_unreadable(const struct walk *w, uint64_t address);

/* How it ends at a CFA that is not above the last one; return_address NULL: not known. */
enum unwind_end recordint_walk_stuck(const struct walk *w, uint64_t cfa,
                                     const uint64_t *return_address);

/* How it ends at a return address of 0 by unwind data. At the top of the stack it may be any word, since a leaf
 * may have just changed stacks: glibc's swapcontext has no unwind data that are right between its two. */
enum unwind_end recordint_walk_no_return(const struct walk *w, uint64_t cfa);

static inline bool walk_cfa_advances(const struct walk *w, uint64_t cfa)
{
    return cfa > w->cfa || (w->leaf && cfa == w->cfa);
}

/* unwind.c: by a rule of kind RULE_SIMPLE or RULE_PLT. */
int recordint_walk_simple(struct walk *w, const struct rule *rule);

/* unwind_row.c: by a decoded row. bias: runtime address minus address of the file. */
int recordint_walk_row(struct walk *w, const struct cfi_row *row, uint64_t bias);

/* Takes rules out of a leaf's row that hold no more: at the end of a realigned frame gcc's go by a frame pointer
 * that is the caller's again, as it does not point into the frame. */
void recordint_walk_restored(const struct walk *w, struct cfi_row *row);

/* unwind_signal.c: whether the code at the pc (of a leaf: or just before it) is the kernel's way back from a signal
 * handler, by its instructions; and the step to what was interrupted, by the kernel's layout of the saved registers. */
bool recordint_walk_at_sigreturn(struct walk *w);
int recordint_walk_sigreturn(struct walk *w);
/* After a step over a signal frame by any rule: what is known of the frame below holds no more. */
void recordint_walk_interrupted(struct walk *w, uint64_t signal_sp);

/* unwind_fp.c: without unwind data. */
int recordint_walk_frame_pointer(struct walk *w);
/* Leaf frames only. is_frameless: certainly, so that any call may have led there. */
int recordint_walk_top_of_stack(struct walk *w, bool is_frameless);
/* Whether a leaf's function has no frame, so that the frame pointer is its caller's: it was called by name, a
 * moment ago by where the return address lies, and does not set one up. */
bool recordint_walk_is_frameless(struct walk *w);

/* unwind_stub.c: the same for a leaf that is a linkage stub at this address. UNWIND_NO_RULE: it is none. */
int recordint_walk_stub(struct walk *w, uint64_t address);

/* Whether there is a call before the address, as far as code can be read: what cannot is taken for one. */
bool recordint_walk_is_behind_call(struct walk *w, uint64_t address);

/* size bytes of code before an address, fewer where the mapping begins; returns how many, 0: not readable. */
size_t recordint_walk_code(struct walk *w, const struct place *place, uint64_t address,
                           uint8_t *out, size_t size);

/* Whether an address may be where a call returns to that led to callee_pc: code that can be read must have the
 * call, and a direct one must lead there (0: anything may have). Generated code often cannot be read, then being
 * executable has to do if the caller says so. */
bool recordint_walk_plausible_return(struct walk *w, uint64_t address, uint64_t callee_pc,
                                     bool unreadable_will_do);

/* The same of a return address that was found by code or by frame pointer; of the latter, what is called must keep
 * one, or (WALK_BY_CHAIN) the next frame is one too. The answer is kept for a round: what it takes to read would be read for each frame of each stack. */
enum walk_found { WALK_BY_CODE, WALK_BY_FRAME_POINTER, WALK_BY_CHAIN };
bool recordint_walk_may_return(struct walk *w, uint64_t pc, uint64_t address,
                               enum walk_found found);

/* unwind_code.c: the rule for a lookup address without unwind data, from the instructions: RULE_SIMPLE, or RULE_NONE
 * when they do not tell. Kept in the cache. without: what the look-up gave. The rule lives until the next call. */
const struct rule *recordint_walk_code_rule(struct walk *w, uint64_t address,
                                            const struct rule *without);
/* The step by such a rule: WALK_ON, or an end with the registers as they were. */
int recordint_walk_code_step(struct walk *w, const struct rule *rule);

#endif
