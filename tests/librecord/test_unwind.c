/* SPDX-License-Identifier: MIT */
/* The walk over stacks made by hand; rules are put into the cache, so that no ELF file is needed. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cfi.h"
#include "frame_image.h"
#include "rule_cache.h"
#include "unwind.h"
#include "unwind_walk.h"

#define CODE UINT64_C(0x400000)  /* of a file, with rules */
#define JIT UINT64_C(0x500000)   /* anonymous */
#define PROBE UINT64_C(0x600000) /* [uprobes] */
#define STACK UINT64_C(0x7ffd0000)
#define FRAMES 1024

enum { CODE_MODULE = 3, JIT_MODULE = 5, PROBE_MODULE = 7 };

struct world {
    struct unwind_space space;
    struct rule_table *code_rules;
    struct unwind_range range[3];
    size_t finds;
    bool code_readable;
    size_t code_reads;
    uint8_t code[4096];  /* of JIT */
    uint64_t stack[512]; /* word i is at STACK + 8 * i */
    struct unwind_input input;
    struct unwind_frame frames[FRAMES];
    struct unwind_result result;
};

static bool find(void *user, uint64_t address, struct unwind_range *out)
{
    struct world *w = user;

    w->finds++;
    for (size_t i = 0; i < 3; i++) {
        if (address >= w->range[i].start && address < w->range[i].end) {
            *out = w->range[i];
            return true;
        }
    }
    return false;
}

static size_t read_code(void *user, uint64_t address, void *out, size_t size)
{
    struct world *w = user;

    w->code_reads++;
    if (!w->code_readable || address < JIT || address + size > JIT + sizeof w->code)
        return 0;
    memcpy(out, w->code + (address - JIT), size);
    return size;
}

static int setup(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);

    w->range[0] =
        (struct unwind_range){CODE, CODE + 0x10000, 0, CODE_MODULE, NULL, NULL, true, false};
    w->range[1] = (struct unwind_range){JIT, JIT + 0x1000, 0, JIT_MODULE, NULL, NULL, false, false};
    w->range[2] =
        (struct unwind_range){PROBE, PROBE + 0x1000, 0, PROBE_MODULE, NULL, NULL, false, true};
    w->space.find = find;
    w->space.user = w;
    w->space.read_code = read_code;
    w->space.cache = recordint_unwind_cache_new();
    w->code_rules = recordint_rule_table_new();
    w->space.code_rules = w->code_rules;
    w->space.code_round = 1;
    w->space.generation = 1;
    assert_non_null(w->space.code_rules);
    assert_non_null(w->space.cache);
    w->input.arch = ARCH_X86_64;
    w->input.stack = (const uint8_t *)w->stack;
    w->input.stack_size = sizeof w->stack;
    reg_set(&w->input.regs, REG_X86_RSP, STACK);
    reg_set(&w->input.regs, REG_X86_RIP, CODE);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    recordint_unwind_cache_free(w->space.cache);
    recordint_rule_table_free(w->code_rules);
    test_free(w);
    return 0;
}

/* The rule at a lookup address of CODE. */
static void rule_at(struct world *w, uint64_t address, const struct rule *rule)
{
    recordint_unwind_cache_put(w->space.cache, address, w->space.generation, rule, CODE_MODULE);
}

static void unwind_at_most(struct world *w, size_t max)
{
    memset(&w->result, 0xee, sizeof w->result);
    recordint_unwind(&w->space, &w->input, w->frames, max, &w->result);
}

static void expect(struct world *w, enum unwind_end end, size_t count)
{
    unwind_at_most(w, FRAMES);
    assert_int_equal(w->result.end, end);
    assert_int_equal(w->result.count, count);
}

static void expect_frame(const struct world *w, size_t i, uint64_t address, uint32_t module)
{
    assert_int_equal(w->frames[i].address, address);
    assert_int_equal(w->frames[i].module, module);
}

/* Rules of x86-64. */
#define SIMPLE(reg, offset)                                                 \
    {                                                                       \
        .kind = RULE_SIMPLE, .cfa_register = (reg), .cfa_offset = (offset), \
        .saved = {[RULE_RETURN] = -1}, .lowest = -1                         \
    }

static const struct rule no_frame = SIMPLE(REG_X86_RSP, 8);
static const struct rule one_word = SIMPLE(REG_X86_RSP, 16);
static const struct rule rbp_frame = {.kind = RULE_SIMPLE,
                                      .cfa_register = REG_X86_RBP,
                                      .saved_mask = 1 << 1,
                                      .cfa_offset = 16,
                                      .saved = {0, -2, 0, 0, 0, 0, -1},
                                      .lowest = -2};
static const struct rule stop = {.kind = RULE_STOP};
static const struct rule none = {.kind = RULE_NONE};

/* ---- ends ---- */

static void an_undefined_return_address_completes_the_stack(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &one_word);
    w->stack[1] = CODE + 0x101;
    rule_at(w, CODE + 0x100, &no_frame);
    w->stack[2] = CODE + 0x201;
    rule_at(w, CODE + 0x200, &stop);
    expect(w, UNWIND_COMPLETE, 3);
    expect_frame(w, 0, CODE, CODE_MODULE);
    expect_frame(w, 1, CODE + 0x100, CODE_MODULE); /* the call, not what follows it */
    expect_frame(w, 2, CODE + 0x200, CODE_MODULE);
    assert_false(w->result.guessed);
    assert_false(w->result.signal);
    assert_int_equal(w->finds, 0);
}

static void return_address_0_completes_the_stack(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &one_word);
    expect(w, UNWIND_COMPLETE, 1);
}

static void word_0_at_the_top_may_be_no_return_address(void **state)
{
    struct world *w = *state;
    static const struct rule no_word = SIMPLE(REG_X86_RSP, 8);

    rule_at(w, CODE, &no_word);
    expect(w, UNWIND_NULL_RETURN, 1);
}

static void bytes_behind_the_copy_make_a_truncated_stack(void **state)
{
    struct world *w = *state;
    static const struct rule large = SIMPLE(REG_X86_RSP, 512 * 8 + 8);
    static const struct rule last = SIMPLE(REG_X86_RSP, 512 * 8);

    rule_at(w, CODE, &large);
    expect(w, UNWIND_TRUNCATED, 1);
    w->input.stack_size = 0;
    expect(w, UNWIND_TRUNCATED, 1);
    w->input.stack = NULL;
    expect(w, UNWIND_TRUNCATED, 1);

    w->input.stack = (const uint8_t *)w->stack;
    w->input.stack_size = sizeof w->stack;
    rule_at(w, CODE, &last);
    expect(w, UNWIND_COMPLETE, 1);
    w->input.stack_size--;
    expect(w, UNWIND_TRUNCATED, 1);
}

static void bytes_that_no_copy_would_have_make_a_failed_read(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &rbp_frame);
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 0x10000000);
    expect(w, UNWIND_STACK_READ, 1);
    reg_set(&w->input.regs, REG_X86_RBP,
            STACK - 16); /* return address right below the stack pointer */
    expect(w, UNWIND_STACK_READ, 1);
}

static void a_cfa_that_does_not_rise_is_corrupt(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &one_word);
    w->stack[1] = CODE + 0x101;
    rule_at(w, CODE + 0x100, &rbp_frame);
    reg_set(&w->input.regs, REG_X86_RBP, STACK);
    w->stack[0] = 0;
    expect(w, UNWIND_NO_PROGRESS, 2); /* the same return address from the same place */
    reg_set(&w->input.regs, REG_X86_RBP, STACK - 8);
    w->stack[0] = CODE + 0x301;
    expect(w, UNWIND_BACKWARDS, 2);
}

static void a_full_array_is_depth_unless_the_stack_ends_there(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &no_frame);
    rule_at(w, CODE + 0x100, &no_frame);
    for (size_t i = 0; i < 9; i++)
        w->stack[i] = CODE + 0x101;
    unwind_at_most(w, 1);
    assert_int_equal(w->result.end, UNWIND_DEPTH);
    assert_int_equal(w->result.count, 1);
    unwind_at_most(w, 9);
    assert_int_equal(w->result.end, UNWIND_DEPTH);
    assert_int_equal(w->result.count, 9);
    unwind_at_most(w, 10);
    assert_int_equal(w->result.end, UNWIND_COMPLETE);
    assert_int_equal(w->result.count, 10);
}

static void addresses_beyond_64_bits_overflow(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &rbp_frame);
    reg_set(&w->input.regs, REG_X86_RBP, UINT64_MAX - 8);
    expect(w, UNWIND_OVERFLOW, 1);
}

static void without_registers_there_is_no_walk(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &no_frame);
    w->input.regs.known &= ~(UINT64_C(1) << REG_X86_RSP);
    expect(w, UNWIND_NO_REGISTERS, 1);
    expect_frame(w, 0, CODE, CODE_MODULE);
    w->input.regs.known = UINT64_C(1) << REG_X86_RSP;
    expect(w, UNWIND_NO_REGISTERS, 0);
}

static void a_cfa_register_that_is_not_known_has_no_rule(void **state)
{
    struct world *w = *state;
    static const struct rule r10 = SIMPLE(REG_X86_R10, 0);

    rule_at(w, CODE, &r10);
    expect(w, UNWIND_NO_RULE, 1);
    reg_set(&w->input.regs, REG_X86_R10, STACK + 16);
    w->stack[1] = CODE + 0x101;
    rule_at(w, CODE + 0x100, &r10); /* a call does not keep it */
    expect(w, UNWIND_NO_RULE, 2);
}

static void a_return_address_that_is_not_code_makes_no_frame(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &one_word);
    w->stack[1] = 0x1234;
    expect(w, UNWIND_NO_RULE, 1);
    w->stack[1] = 1;
    expect(w, UNWIND_NO_RULE, 1);
    w->stack[1] = UINT64_MAX;
    expect(w, UNWIND_NO_RULE, 1);
    w->stack[1] = CODE; /* the byte before is not */
    expect(w, UNWIND_NO_RULE, 1);
}

static void a_return_address_in_the_uprobes_trampoline_ends_the_walk(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &one_word);
    w->stack[1] = PROBE;
    expect(w, UNWIND_NO_RULE, 1);
    w->stack[1] = PROBE + 1;
    expect(w, UNWIND_UPROBE, 1);
    reg_set(&w->input.regs, REG_X86_RIP, PROBE); /* a probed instruction is executed there */
    expect(w, UNWIND_UPROBE, 1);
    expect_frame(w, 0, PROBE, PROBE_MODULE);
}

/* ---- steps by rule ---- */

static void saved_registers_are_the_callers(void **state)
{
    struct world *w = *state;
    static const struct rule saves = {.kind = RULE_SIMPLE,
                                      .cfa_register = REG_X86_RSP,
                                      .saved_mask = 0x3f,
                                      .cfa_offset = 64,
                                      .saved = {-2, -3, -4, -5, -6, -7, -1},
                                      .lowest = -7};
    static const uint8_t reg[] = {REG_X86_RBX, REG_X86_RBP, 12, 13, 14, 15};
    struct rule uses = SIMPLE(0, 16);

    for (size_t i = 0; i < sizeof reg; i++) {
        rule_at(w, CODE, &saves);
        w->stack[7] = CODE + 0x101;
        for (size_t j = 0; j < sizeof reg; j++)
            w->stack[6 - j] = STACK + 1024 + 256 * j;
        uses.cfa_register = reg[i];
        rule_at(w, CODE + 0x100, &uses);
        memset(w->stack + 128, 0, sizeof w->stack - 128 * sizeof w->stack[0]);
        w->stack[128 + 32 * i + 1] = CODE + 0x201;
        rule_at(w, CODE + 0x200, &stop);
        expect(w, UNWIND_COMPLETE, 3);
    }
}

static void the_plt_pushes_a_word_more_from_some_byte_on(void **state)
{
    struct world *w = *state;
    static const struct rule plt = {.kind = RULE_PLT,
                                    .cfa_register = REG_X86_RSP,
                                    .cfa_offset = 8,
                                    .saved = {11, 3, 0, 0, 0, 0, -1},
                                    .lowest = -1};

    w->stack[0] = CODE + 0x101;
    w->stack[1] = CODE + 0x201;
    rule_at(w, CODE + 0x100, &stop);
    rule_at(w, CODE + 0x200, &stop);
    for (uint64_t at = 0; at < 16; at++) {
        rule_at(w, CODE + at, &plt);
        reg_set(&w->input.regs, REG_X86_RIP, CODE + at);
        expect(w, UNWIND_COMPLETE, 2);
        expect_frame(w, 1, at < 11 ? CODE + 0x100 : CODE + 0x200, CODE_MODULE);
    }
}

static void a_saved_register_below_the_stack_pointer_keeps_its_value(void **state)
{
    struct world *w = *state;
    static const struct rule popped = {.kind = RULE_SIMPLE,
                                       .cfa_register = REG_X86_RSP,
                                       .saved_mask = 1 << 1,
                                       .cfa_offset = 8,
                                       .saved = {0, -2, 0, 0, 0, 0, -1},
                                       .lowest = -2};

    rule_at(w, CODE, &popped);
    w->stack[0] = CODE + 0x101;
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 80);
    rule_at(w, CODE + 0x100, &rbp_frame);
    w->stack[11] = CODE + 0x201;
    rule_at(w, CODE + 0x200, &stop);
    expect(w, UNWIND_COMPLETE, 3);
}

static void a_leaf_whose_rule_points_below_the_stack_pointer_has_just_to_return(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &rbp_frame);
    reg_set(&w->input.regs, REG_X86_RBP, STACK - 16);
    w->stack[0] = JIT + 0x105;
    w->code_readable = true;
    w->code[0x103] = 0xff; /* call *%rax */
    w->code[0x104] = 0xd0;
    expect(w, UNWIND_NO_RULE, 2);
    expect_frame(w, 1, JIT + 0x104, JIT_MODULE);
    assert_true(w->result.guessed);
    w->code[0x103] = 0x90;
    expect(w, UNWIND_STACK_READ, 1);
    assert_false(w->result.guessed);
}

/* ---- no unwind data ---- */

static void generated_code_is_walked_by_frame_pointer(void **state)
{
    struct world *w = *state;

    reg_set(&w->input.regs, REG_X86_RIP, JIT + 0x10);
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 32);
    w->stack[4] = STACK + 64;
    w->stack[5] = JIT + 0x101;
    w->stack[8] = STACK + 128;
    w->stack[9] = CODE + 0x101;
    rule_at(w, CODE + 0x100, &rbp_frame); /* code with data goes on with the registers from there */
    w->stack[17] = CODE + 0x201;
    rule_at(w, CODE + 0x200, &stop);
    expect(w, UNWIND_COMPLETE, 4);
    assert_true(w->result.guessed);
    expect_frame(w, 0, JIT + 0x10, JIT_MODULE);
    expect_frame(w, 1, JIT + 0x100, JIT_MODULE);
    expect_frame(w, 2, CODE + 0x100, CODE_MODULE);
}

/* A trampoline at JIT + 0x40, which CODE + 0x100 has called; its frame is of so many bytes. */
static void put_trampoline(struct world *w, uint8_t frame)
{
    const uint8_t code[] = {0x48, 0x83, 0xec, frame, 0xff, 0xd1, 0x48, 0x83, 0xc4, frame, 0xc3};

    memcpy(w->code + 0x40, code, sizeof code);
    w->code_readable = true;
    w->space.code_round++;
}

#define TRAMPOLINE_RETURN (JIT + 0x46)

static void a_trampoline_is_told_by_its_code(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &one_word);
    rule_at(w, CODE + 0x100, &stop);
    w->stack[1] = TRAMPOLINE_RETURN;
    w->stack[3] = CODE + 0x101;
    put_trampoline(w, 8);
    expect(w, UNWIND_COMPLETE, 3);
    expect_frame(w, 1, TRAMPOLINE_RETURN - 1, JIT_MODULE);
    expect_frame(w, 2, CODE + 0x100, CODE_MODULE);
    assert_false(w->result.guessed);

    /* Uncached it is the same, but the rules of CODE are in the cache alone. */
    w->space.code_rules = NULL;
    expect(w, UNWIND_COMPLETE, 3);
    reg_set(&w->input.regs, REG_X86_RIP, JIT + 0x40); /* about to begin */
    w->stack[0] = CODE + 0x101;
    expect(w, UNWIND_COMPLETE, 2);
}

static void code_is_read_again_in_another_round_only(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &one_word);
    rule_at(w, CODE + 0x100, &stop);
    w->stack[1] = TRAMPOLINE_RETURN;
    w->stack[3] = CODE + 0x101;
    w->stack[5] = CODE + 0x101;
    put_trampoline(w, 8);
    expect(w, UNWIND_COMPLETE, 3);
    w->code_reads = 0;
    expect(w, UNWIND_COMPLETE, 3);
    assert_int_equal(w->code_reads, 0);

    put_trampoline(w, 0x18);
    w->stack[3] = 0;
    expect(w, UNWIND_COMPLETE, 3);
    assert_true(w->code_reads > 0);

    /* The process has ended: what the code was is good enough. */
    w->code_readable = false;
    w->space.code_round++;
    expect(w, UNWIND_COMPLETE, 3);
}

/* Else a deep stack of generated code is a system call or more for each of its frames, in each sample. */
static void return_addresses_by_frame_pointer_are_looked_at_once_a_round(void **state)
{
    struct world *w = *state;
    const uint8_t function[] = {0x55, 0x48, 0x89, 0xe5, 0xe8, 0xf7, 0xff, 0xff, 0xff, 0x75};

    w->code_readable = true;
    memcpy(w->code + 0x200, function, sizeof function); /* calls itself */
    w->code[0x205] = 0xf7;
    reg_set(&w->input.regs, REG_X86_RIP, JIT + 0x209);
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 32);
    for (size_t i = 0; i < 20; i++) {
        w->stack[4 + 4 * i] = i + 1 < 20 ? STACK + 32 + 32 * (i + 1) : 0;
        w->stack[5 + 4 * i] = i + 1 < 20 ? JIT + 0x209 : 0;
    }
    expect(w, UNWIND_COMPLETE, 20);
    assert_true(w->code_reads > 0);
    w->code_reads = 0;
    expect(w, UNWIND_COMPLETE, 20);
    assert_true(w->code_reads <= 8); /* of the leaf alone */
    w->code[0x204] = 0x90;           /* no call any more */
    w->space.code_round++;
    expect(w, UNWIND_NO_RULE, 1);
    expect(w, UNWIND_NO_RULE, 1);
}

static void code_that_was_other_code_leads_to_no_false_frame(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &one_word);
    w->stack[1] = TRAMPOLINE_RETURN;
    put_trampoline(w, 8);
    w->stack[3] = 0; /* not by unwind data: no end either */
    expect(w, UNWIND_NULL_RETURN, 2);
    w->stack[3] = 0x1234567;
    expect(w, UNWIND_NO_RULE, 2);
    w->stack[3] = JIT + 0x105; /* no call is there */
    expect(w, UNWIND_NO_RULE, 2);
    w->code[0x100] = 0xe8; /* there is, of what cannot have led to the trampoline */
    w->code[0x102] = 1;
    w->space.code_round++;
    expect(w, UNWIND_NO_RULE, 2);
    w->code[0x101] = 0x3b; /* of the trampoline */
    w->code[0x102] = w->code[0x103] = w->code[0x104] = 0xff;
    w->space.code_round++;
    expect(w, UNWIND_NO_RULE, 3);
    expect_frame(w, 2, JIT + 0x104, JIT_MODULE);
}

static void a_leaf_that_sets_up_its_frame_pointer_keeps_its_caller(void **state)
{
    struct world *w = *state;

    put_trampoline(w, 8);
    memcpy(w->code + 0x80, (const uint8_t[]){0x55, 0x48, 0x89, 0xe5, 0x75, 0x10}, 6);
    rule_at(w, CODE + 0x100, &stop);
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 64); /* its caller's */
    w->stack[8] = 0;
    w->stack[9] = CODE + 0x201;
    w->stack[0] = CODE + 0x101;
    reg_set(&w->input.regs, REG_X86_RIP, JIT + 0x80);
    expect(w, UNWIND_COMPLETE, 2);
    expect_frame(w, 1, CODE + 0x100, CODE_MODULE);
    w->stack[0] = STACK + 64;
    w->stack[1] = CODE + 0x101;
    reg_set(&w->input.regs, REG_X86_RIP, JIT + 0x81);
    expect(w, UNWIND_COMPLETE, 2);
    expect_frame(w, 1, CODE + 0x100, CODE_MODULE);
}

static void a_frame_pointer_must_hold(void **state)
{
    struct world *w = *state;
    static const uint64_t wrong[] = {0,
                                     STACK - 16,
                                     STACK + 36,
                                     STACK + sizeof w->stack - 8,
                                     STACK + sizeof w->stack,
                                     UINT64_MAX - 7};

    reg_set(&w->input.regs, REG_X86_RIP, JIT + 0x10);
    expect(w, UNWIND_NO_RULE, 1); /* not known */
    for (size_t i = 0; i < sizeof w->stack / sizeof w->stack[0]; i++)
        w->stack[i] = JIT + 0x101;
    w->code_readable = true;
    w->code[0xff] = 0xff; /* call *%rax */
    w->code[0x100] = 0xd0;
    w->stack[0] = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        reg_set(&w->input.regs, REG_X86_RBP, wrong[i]);
        expect(w, UNWIND_NO_RULE, 1);
        assert_false(w->result.guessed);
    }
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 36); /* right, but for its alignment */
    memcpy((uint8_t *)w->stack + 36 + 8, &w->stack[1], 8);
    expect(w, UNWIND_NO_RULE, 1);
    w->stack[5] = w->stack[6] = JIT + 0x101;
    w->stack[4] = STACK + 16; /* the caller's is below: what it points to would hold */
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 32);
    expect(w, UNWIND_NO_RULE, 2);
    w->code[0x100] = 0xe0; /* jmp *%rax */
    expect(w, UNWIND_NO_RULE, 1);
    w->code_readable = false; /* must do, then */
    expect(w, UNWIND_NO_RULE, 2);
    w->stack[5] = 0x1234;
    expect(w, UNWIND_NO_RULE, 1);
}

static void frame_pointer_0_is_the_outermost_frames(void **state)
{
    struct world *w = *state;

    reg_set(&w->input.regs, REG_X86_RIP, JIT + 0x10);
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 32);
    w->stack[4] = 0;
    w->stack[5] = JIT + 0x101;
    expect(w, UNWIND_COMPLETE, 2);
    w->stack[5] = 0;
    expect(w, UNWIND_COMPLETE, 1);
    w->stack[4] = STACK + 64;
    expect(w, UNWIND_NULL_RETURN, 1);
}

/* Not reached by a chain, 0 in the frame pointer is a value as any other, unless the code has just set it. */
static void frame_pointer_0_alone_is_no_end(void **state)
{
    struct world *w = *state;
    const uint8_t clears[] = {0x31, 0xed, 0xff, 0xd0}; /* xor %ebp, %ebp; call *%rax */

    rule_at(w, CODE, &one_word);
    w->stack[1] = JIT + 0x204;
    w->code_readable = true;
    memset(w->code, 0x90, sizeof w->code);
    memcpy(w->code + 0x202, clears + 2, 2);
    reg_set(&w->input.regs, REG_X86_RBP, 0);
    expect(w, UNWIND_NO_RULE, 2);
    memcpy(w->code + 0x200, clears, sizeof clears);
    w->space.code_round++;
    expect(w, UNWIND_COMPLETE, 2);
}

static void all_forms_of_an_indirect_call_are_known(void **state)
{
    struct world *w = *state;
    static const struct {
        uint8_t size;
        uint8_t bytes[7];
    } call[] = {
        {2, {0xff, 0xd0}},                   /* *%rax */
        {2, {0xff, 0x13}},                   /* *(%rbx) */
        {3, {0xff, 0x14, 0xc8}},             /* *(%rax,%rcx,8) */
        {3, {0xff, 0x53, 0x10}},             /* *16(%rbx) */
        {4, {0xff, 0x54, 0x24, 0x08}},       /* *8(%rsp) */
        {6, {0xff, 0x15, 1, 2, 3, 4}},       /* *x(%rip) */
        {6, {0xff, 0x93, 1, 2, 3, 4}},       /* *x(%rbx) */
        {7, {0xff, 0x94, 0xc8, 1, 2, 3, 4}}, /* *x(%rax,%rcx,8) */
        {7, {0xff, 0x14, 0xc5, 1, 2, 3, 4}}, /* *x(,%rax,8) */
        {5, {0xe8, 1, 2, 3, 4}},
    };

    reg_set(&w->input.regs, REG_X86_RIP, 0);
    w->stack[0] = JIT + 0x100;
    w->code_readable = true;
    for (size_t i = 0; i < sizeof call / sizeof call[0]; i++) {
        memset(w->code, 0x90, sizeof w->code);
        memcpy(w->code + 0x100 - call[i].size, call[i].bytes, call[i].size);
        expect(w, UNWIND_NO_RULE, 2);
        w->code[0x100 - call[i].size] = 0x90;
        expect(w, UNWIND_NO_RULE, 1);
    }
}

static void a_call_through_null_keeps_its_caller(void **state)
{
    struct world *w = *state;

    reg_set(&w->input.regs, REG_X86_RIP, 0);
    reg_set(&w->input.regs, REG_X86_RBP, STACK + 32);
    w->stack[0] = JIT + 0x102;
    w->code_readable = true;
    w->code[0x100] = 0xff;
    w->code[0x101] = 0xd0;
    w->stack[4] = 0; /* the caller's own frame pointer still stands */
    w->stack[5] = JIT + 0x102;
    expect(w, UNWIND_COMPLETE, 3);
    expect_frame(w, 0, 0, UNWIND_NO_MODULE);
    expect_frame(w, 1, JIT + 0x101, JIT_MODULE);
    assert_true(w->result.guessed);
    w->code_readable = false; /* anything might lie there */
    expect(w, UNWIND_NO_RULE, 1);
}

/* ---- signals ---- */

static void begin_walk(struct walk *walk, struct world *w)
{
    memset(walk, 0, sizeof *walk);
    walk->space = &w->space;
    walk->arch = w->input.arch;
    walk->regs = w->input.regs;
    walk->pac_mask = w->input.pac_mask;
    walk->copy.bytes = w->input.stack;
    walk->copy.size = w->input.stack_size;
    walk->copy.start = STACK;
    walk->cfa = STACK;
}

/* As glibc's trampoline has it: all of ucontext's registers, rsp among them, by expression. */
static void signal_row(struct cfi_row *row, uint8_t bytes[32])
{
    static const uint8_t of_cfa[] = {0x77, 0xa0, 1, 0x06}; /* *(rsp + 160) */
    static const uint8_t of_rip[] = {0x77, 0xa8, 1};       /* rsp + 168 */
    static const uint8_t of_rbp[] = {0x77, 0xf8, 0};       /* rsp + 120 */

    memset(row, 0, sizeof *row);
    memcpy(bytes, of_cfa, sizeof of_cfa);
    memcpy(bytes + 4, of_rip, sizeof of_rip);
    memcpy(bytes + 8, of_rbp, sizeof of_rbp);
    row->signal_frame = true;
    row->return_register = REG_X86_RIP;
    row->cfa_is_expression = true;
    row->cfa_expr = (struct cfi_expr){bytes, 4};
    row->reg[REG_X86_RIP].kind = CFI_EXPRESSION;
    row->reg[REG_X86_RIP].expr = (struct cfi_expr){bytes + 4, 3};
    row->reg[REG_X86_RSP].kind = CFI_EXPRESSION;
    row->reg[REG_X86_RSP].expr = (struct cfi_expr){bytes, 3};
    row->reg[REG_X86_RBP].kind = CFI_EXPRESSION;
    row->reg[REG_X86_RBP].expr = (struct cfi_expr){bytes + 8, 3};
}

static void what_a_signal_interrupted_goes_on_at_its_exact_pc(void **state)
{
    struct world *w = *state;
    struct cfi_row row;
    struct walk walk;
    uint8_t bytes[32];

    signal_row(&row, bytes);
    begin_walk(&walk, w);
    w->stack[15] = 0xb0;
    w->stack[20] = STACK + 1024;
    w->stack[21] = CODE + 0x100;
    assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
    assert_true(walk.leaf);
    assert_true(walk.signal);
    assert_false(walk.elsewhere);
    assert_int_equal(walk.regs.value[REG_X86_RIP], CODE + 0x100);
    assert_int_equal(walk.regs.value[REG_X86_RSP], STACK + 1024);
    assert_int_equal(walk.regs.value[REG_X86_RBP], 0xb0);
    assert_int_equal(walk.cfa, STACK + 1024);

    begin_walk(&walk, w); /* the interrupted call went to address 0: no end */
    w->stack[21] = 0;
    assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
    assert_int_equal(walk.regs.value[REG_X86_RIP], 0);
}

static void the_stack_below_a_handlers_own_stack_was_not_copied(void **state)
{
    struct world *w = *state;
    static const uint64_t away[] = {STACK - 0x100000, STACK + 0x1000000};
    struct cfi_row row;
    struct walk walk;
    uint8_t bytes[32];

    signal_row(&row, bytes);
    w->stack[21] = CODE + 0x100;
    for (size_t i = 0; i < 2; i++) {
        begin_walk(&walk, w);
        w->stack[20] = away[i];
        assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
        assert_int_equal(recordint_walk_unreadable(&walk, away[i] + 8), UNWIND_STACK_READ);
    }
    begin_walk(&walk, w); /* the same stack, and a copy that ends within the signal frame */
    w->stack[20] = STACK + sizeof w->stack + 512;
    assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
    assert_int_equal(recordint_walk_unreadable(&walk, w->stack[20]), UNWIND_TRUNCATED);
}

static void the_kernels_signal_frame_is_known_without_unwind_data(void **state)
{
    struct world *w = *state;
    struct walk walk;

    begin_walk(&walk, w);
    for (uint64_t i = 0; i < 64; i++)
        w->stack[i] = i;
    w->stack[20] = STACK + 1024;
    assert_int_equal(recordint_walk_sigreturn(&walk), WALK_ON);
    assert_int_equal(walk.regs.value[8], 5);
    assert_int_equal(walk.regs.value[15], 12);
    assert_int_equal(walk.regs.value[REG_X86_RBP], 15);
    assert_int_equal(walk.regs.value[REG_X86_RBX], 16);
    assert_int_equal(walk.regs.value[REG_X86_RSP], STACK + 1024);
    assert_int_equal(walk.regs.value[REG_X86_RIP], 21);

    w->input.arch = ARCH_AARCH64;
    reg_set(&w->input.regs, REG_A64_SP, STACK);
    begin_walk(&walk, w);
    for (uint64_t i = 0; i < 128; i++)
        w->stack[i] = i;
    w->stack[39 + 31] = STACK + 1024;
    assert_int_equal(recordint_walk_sigreturn(&walk), WALK_ON);
    assert_int_equal(walk.regs.value[0], 39);
    assert_int_equal(walk.regs.value[REG_A64_LR], 39 + 30);
    assert_int_equal(walk.regs.value[REG_A64_SP], STACK + 1024);
    assert_int_equal(walk.regs.value[REG_A64_PC], 39 + 32);
    w->input.stack_size = 80;
    begin_walk(&walk, w);
    assert_int_equal(recordint_walk_sigreturn(&walk), UNWIND_TRUNCATED);
}

/* ---- AArch64 ---- */

#define PAC UINT64_C(0x007f000000000000)

static const struct rule a64_leaf = {.kind = RULE_SIMPLE, .cfa_register = REG_A64_SP};
static const struct rule a64_frame = {
    .kind = RULE_SIMPLE,
    .cfa_register = REG_A64_SP,
    .cfa_offset = 32,
    .a64 = {.saved_mask = 1u << 10 | 1u << 11, .lowest = -4, .above = {[10] = 0, [11] = 1}}};

static void begin_a64(struct world *w)
{
    w->input.arch = ARCH_AARCH64;
    w->input.pac_mask = PAC;
    memset(&w->input.regs, 0, sizeof w->input.regs);
    reg_set(&w->input.regs, REG_A64_SP, STACK);
    reg_set(&w->input.regs, REG_A64_PC, CODE);
    reg_set(&w->input.regs, REG_A64_LR, (CODE + 0x104) | UINT64_C(0x0035000000000000));
}

static void a_leaf_of_aarch64_returns_to_x30_and_its_callers_to_the_stack(void **state)
{
    struct world *w = *state;

    begin_a64(w);
    rule_at(w, CODE, &a64_leaf);
    rule_at(w, CODE + 0x103, &a64_frame);
    w->stack[1] = (CODE + 0x204) | UINT64_C(0x0012000000000000);
    rule_at(w, CODE + 0x203, &a64_frame);
    w->stack[5] = CODE + 0x304;
    rule_at(w, CODE + 0x303, &stop);
    expect(w, UNWIND_COMPLETE, 4);
    expect_frame(w, 1, CODE + 0x103, CODE_MODULE);
    expect_frame(w, 2, CODE + 0x203, CODE_MODULE);
}

static void the_mask_of_signatures_follows_the_address_space(void **state)
{
    (void)state;
    assert_int_equal(arch_pac_mask(ARCH_X86_64, UINT64_C(0x7ffd12345678)), 0);
    assert_int_equal(arch_pac_mask(ARCH_AARCH64, UINT64_C(0xffffd2345678)), 0xff7f000000000000);
    assert_int_equal(arch_pac_mask(ARCH_AARCH64, UINT64_C(0x7fd2345678)), 0xff7fff8000000000);
    assert_int_equal(arch_pac_mask(ARCH_AARCH64, UINT64_C(0x3ffd2345678)), 0xff7ffc0000000000);
    assert_int_equal(arch_pac_mask(ARCH_AARCH64, 0), 0xff7f000000000000);
    assert_int_equal(arch_pac_mask(ARCH_AARCH64, 0x1234), 0xff7f000000000000);
    assert_int_equal(arch_pac_mask(ARCH_AARCH64, UINT64_MAX), 0xff7f000000000000);
}

/* Return addresses lie in registers and on the stack as pac-ret left them: at every place a walk takes one from. */
static void signatures_are_stripped_wherever_an_address_comes_from(void **state)
{
    struct world *w = *state;
    const uint64_t sign = UINT64_C(0x0035000000000000);
    struct cfi_row row;
    struct walk walk;

    begin_a64(w);
    begin_walk(&walk, w);
    memset(&row, 0, sizeof row); /* in x30, by row */
    row.cfa_reg = REG_A64_SP;
    row.cfa_offset = 16;
    row.return_register = REG_A64_LR;
    walk.leaf = true;
    assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
    assert_int_equal(walk_pc(&walk), CODE + 0x104);
    assert_int_equal(walk.regs.value[REG_A64_LR], CODE + 0x104);

    static const uint8_t at_sp[] = {0x8f, 8}; /* sp + 8 */
    begin_walk(&walk, w);
    row.reg[REG_A64_LR].kind = CFI_EXPRESSION;
    row.reg[REG_A64_LR].expr = (struct cfi_expr){at_sp, sizeof at_sp};
    w->stack[1] = (CODE + 0x204) | sign;
    assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
    assert_int_equal(walk_pc(&walk), CODE + 0x204);
    begin_walk(&walk, w);
    row.reg[REG_A64_LR].kind = CFI_VAL_EXPRESSION;
    reg_set(&walk.regs, REG_A64_SP, (CODE + 0x300) | sign);
    row.cfa_reg = 19;
    reg_set(&walk.regs, 19, STACK + 64);
    assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
    assert_int_equal(walk_pc(&walk), CODE + 0x308);

    begin_walk(&walk, w); /* of what a signal interrupted: a return whose check failed */
    w->stack[39 + 30] = (CODE + 0x404) | sign;
    w->stack[39 + 31] = STACK + 1024;
    w->stack[39 + 32] = (CODE + 0x500) | sign;
    assert_int_equal(recordint_walk_sigreturn(&walk), WALK_ON);
    assert_int_equal(walk_pc(&walk), CODE + 0x500);
    assert_true(walk.leaf);
    memset(&row, 0, sizeof row);
    row.cfa_reg = REG_A64_SP;
    row.return_register = REG_A64_LR;
    assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
    assert_int_equal(walk_pc(&walk), CODE + 0x404);

    reg_set(&w->input.regs, REG_A64_PC, CODE | sign);
    rule_at(w, CODE, &stop);
    expect(w, UNWIND_COMPLETE, 1);
    expect_frame(w, 0, CODE, CODE_MODULE);
}

/* x19-x28 are used by the frames above: each finds its CFA by another one. */
static void registers_that_aarch64_saved_are_the_callers(void **state)
{
    struct world *w = *state;
    struct rule saves = {.kind = RULE_SIMPLE,
                         .cfa_register = REG_A64_SP,
                         .cfa_offset = 96,
                         .a64 = {.saved_mask = 0xfff, .lowest = -12}};
    struct rule uses = {
        .kind = RULE_SIMPLE, .cfa_offset = 16, .a64 = {.saved_mask = 1u << 11, .lowest = -1}};

    for (size_t i = 0; i < 12; i++)
        saves.a64.above[i] = (uint8_t)((i + 5) % 12);
    for (size_t i = 0; i < 11; i++) {
        begin_a64(w);
        memset(w->stack, 0, sizeof w->stack);
        for (size_t j = 0; j < 11; j++)
            w->stack[(j + 5) % 12] = STACK + 256 + 64 * j;
        w->stack[(11 + 5) % 12] = (CODE + 0x104) | UINT64_C(0x0012000000000000);
        rule_at(w, CODE, &saves);
        uses.cfa_register = (uint8_t)(19 + i);
        rule_at(w, CODE + 0x103, &uses);
        w->stack[(256 + 64 * i) / 8 + 1] = CODE + 0x204;
        rule_at(w, CODE + 0x203, &stop);
        expect(w, UNWIND_COMPLETE, 3);
        assert_false(w->result.guessed);
    }
}

/* A copy that ends inside the frame: what was copied of the saved registers counts. */
static void a_frame_of_aarch64_that_is_copied_in_part_has_its_lowest_registers(void **state)
{
    struct world *w = *state;
    static const struct rule large = {.kind = RULE_SIMPLE,
                                      .cfa_register = REG_A64_SP,
                                      .cfa_offset = 70000,
                                      .a64 = {.saved_mask = 1u | 1u << 10 | 1u << 11,
                                              .lowest = -8750,
                                              .above = {[0] = 2, [10] = 0, [11] = 1}}};

    begin_a64(w);
    rule_at(w, CODE, &large);
    w->stack[1] = CODE + 0x104;
    w->input.stack_size = 16;
    reg_set(&w->input.regs, 19, 5);
    rule_at(w, CODE + 0x103, &stop);
    expect(w, UNWIND_COMPLETE, 2);
    w->input.stack_size = 15;
    expect(w, UNWIND_TRUNCATED, 1);
    w->input.stack_size = 16;
    rule_at(w, CODE + 0x103, &a64_frame); /* the next frame lies behind the copy */
    expect(w, UNWIND_TRUNCATED, 2);
}

/* In an epilogue rules may point below sp; the return address is in x30 again. */
static void a_leaf_of_aarch64_whose_rule_points_below_sp_returns_to_x30(void **state)
{
    struct world *w = *state;
    static const struct rule by_fp = {
        .kind = RULE_SIMPLE,
        .cfa_register = REG_A64_FP,
        .cfa_offset = 16,
        .a64 = {.saved_mask = 3u << 10, .lowest = -2, .above = {[11] = 1}}};
    static const uint8_t call[] = {0, 0, 0x3f, 0xd6}, branch[] = {0, 0, 0, 0x14};

    begin_a64(w);
    rule_at(w, CODE, &by_fp);
    reg_set(&w->input.regs, REG_A64_FP, STACK - 64);
    reg_set(&w->input.regs, REG_A64_LR, JIT + 0x104);
    w->code_readable = true;
    memcpy(w->code + 0x100, call, 4);
    unwind_at_most(w, 2);
    assert_int_equal(w->result.count, 2);
    expect_frame(w, 1, JIT + 0x103, JIT_MODULE);
    assert_true(w->result.guessed);
    memcpy(w->code + 0x100, branch, 4);
    unwind_at_most(w, 2);
    assert_int_equal(w->result.count, 1);
}

static void x30_is_the_return_address_of_leaves_only(void **state)
{
    struct world *w = *state;
    static const struct rule unsaved = {
        .kind = RULE_SIMPLE, .cfa_register = REG_A64_SP, .cfa_offset = 16};

    begin_a64(w);
    rule_at(w, CODE, &a64_leaf);
    rule_at(w, CODE + 0x103, &a64_leaf);
    expect(w, UNWIND_NO_PROGRESS, 2);
    rule_at(w, CODE + 0x103, &unsaved);
    expect(w, UNWIND_NO_PROGRESS, 2);
    w->input.regs.known &= ~(UINT64_C(1) << REG_A64_LR);
    expect(w, UNWIND_NO_RULE, 1);
}

static void rows_of_aarch64_give_what_their_rules_give(void **state)
{
    struct world *w = *state;
    struct cfi_row row;
    struct walk walk;

    begin_a64(w);
    memset(&row, 0, sizeof row);
    row.cfa_reg = REG_A64_SP;
    row.cfa_offset = 48;
    row.return_register = REG_A64_LR;
    row.return_address_signed = true;
    row.reg[REG_A64_LR].kind = CFI_OFFSET;
    row.reg[REG_A64_LR].offset = -40;
    row.reg[19].kind = CFI_OFFSET;
    row.reg[19].offset = -16;
    w->stack[1] = (CODE + 0x104) | UINT64_C(0x0012000000000000);
    w->stack[4] = 77;
    begin_walk(&walk, w);
    walk.leaf = true;
    assert_int_equal(recordint_walk_row(&walk, &row, 0), WALK_ON);
    assert_int_equal(walk_pc(&walk), CODE + 0x104);
    assert_int_equal(walk.regs.value[REG_A64_SP], STACK + 48);
    assert_int_equal(walk.regs.value[19], 77);
    assert_true(reg_is_known(&walk.regs, 19));
    assert_false(reg_is_known(&walk.regs, 8));
    assert_false(walk.leaf);
    row.reg[REG_A64_LR].kind = CFI_UNSPECIFIED;
    assert_int_equal(recordint_walk_row(&walk, &row, 0), UNWIND_NO_PROGRESS);
}

static void frame_pointers_of_aarch64_leave_the_stack_pointer_open(void **state)
{
    struct world *w = *state;

    begin_a64(w);
    reg_set(&w->input.regs, REG_A64_PC, JIT + 0x10);
    reg_set(&w->input.regs, REG_A64_FP, STACK + 16);
    w->stack[2] = STACK + 64;
    w->stack[3] = (CODE + 0x104) | UINT64_C(0x0012000000000000);
    rule_at(w, CODE + 0x103, &a64_frame); /* by sp, which is not known: the chain goes on */
    w->stack[8] = 0;
    w->stack[9] = CODE + 0x204;
    rule_at(w, CODE + 0x203, &none);
    expect(w, UNWIND_COMPLETE, 3);
    assert_true(w->result.guessed);
    expect_frame(w, 1, CODE + 0x103, CODE_MODULE);
    expect_frame(w, 2, CODE + 0x203, CODE_MODULE);
}

static void a_leaf_of_aarch64_without_data_or_frame_returns_to_x30(void **state)
{
    struct world *w = *state;

    begin_a64(w);
    reg_set(&w->input.regs, REG_A64_PC, JIT + 0x10);
    rule_at(w, CODE + 0x103, &stop);
    expect(w, UNWIND_COMPLETE, 2);
    assert_true(w->result.guessed);
}

/* ---- caches ---- */

static void a_new_generation_forgets(void **state)
{
    struct world *w = *state;

    rule_at(w, CODE, &stop);
    expect(w, UNWIND_COMPLETE, 1);
    assert_int_equal(w->finds, 0);
    w->space
        .generation++; /* and now something else is mapped there, without a file that can be read */
    w->range[0].module = 9;
    expect(w, UNWIND_NO_RULE, 1);
    expect_frame(w, 0, CODE, 9);
    assert_true(w->finds > 0);
    w->space.generation--;
    expect(w, UNWIND_COMPLETE, 1);
    expect_frame(w, 0, CODE, CODE_MODULE);
}

static void no_mapping_is_never_kept(void **state)
{
    struct world *w = *state;

    w->range[1].start = w->range[1].end;
    reg_set(&w->input.regs, REG_X86_RIP, JIT + 0x10);
    expect(w, UNWIND_NO_RULE, 1);
    expect_frame(w, 0, JIT + 0x10, UNWIND_NO_MODULE);
    w->range[1].start = JIT;
    expect(w, UNWIND_NO_RULE, 1);
    expect_frame(w, 0, JIT + 0x10, JIT_MODULE);
}

static void the_cache_grows_until_addresses_find_room(void **state)
{
    struct world *w = *state;
    struct unwind_cache *c = w->space.cache;
    size_t found = 0;

    for (int round = 0; round < 8; round++)
        for (uint64_t i = 0; i < 20000; i++)
            if (unwind_cache_get(c, CODE + 16 * i, 1) == NULL)
                recordint_unwind_cache_put(c, CODE + 16 * i, 1, &stop, (uint32_t)i);
    for (uint64_t i = 0; i < 20000; i++) {
        const struct unwind_cache_entry *e = unwind_cache_get(c, CODE + 16 * i, 1);

        assert_null(unwind_cache_get(c, CODE + 16 * i, 2));
        if (e != NULL)
            assert_int_equal(e->module, i);
        found += e != NULL;
    }
    assert_true(found > 12000);
    for (uint64_t i = 0; i < 2000000; i++)
        recordint_unwind_cache_put(c, i, 1, &stop, 0);
    assert_true(c->shift >= 48); /* 65,536 entries are the most */
}

static void a_table_keeps_each_rule_once(void **state)
{
    struct rule_table *t = recordint_rule_table_new();
    struct rule rule = SIMPLE(REG_X86_RSP, 0);

    (void)state;
    assert_non_null(t);
    assert_null(recordint_rule_table_get(t, 5));
    for (uint32_t i = 0; i < 100000; i++) {
        rule.cfa_offset = (int32_t)(i % 1000);
        recordint_rule_table_put(t, i * UINT64_C(16), &rule);
    }
    assert_int_equal(recordint_rule_table_rules(t), 1000);
    assert_int_equal(recordint_rule_table_entries(t), 100000);
    for (uint32_t i = 0; i < 100000; i++) {
        const struct rule *kept = recordint_rule_table_get(t, i * UINT64_C(16));

        assert_non_null(kept);
        assert_int_equal(kept->cfa_offset, i % 1000);
        assert_null(recordint_rule_table_get(t, i * UINT64_C(16) + 1));
    }
    recordint_rule_table_free(t);
}

static void a_full_table_starts_anew_and_pointers_hold(void **state)
{
    struct rule_table *t = recordint_rule_table_new();
    struct rule rule = SIMPLE(REG_X86_RSP, 8);
    const struct rule *first = recordint_rule_table_put(t, 0, &rule);

    (void)state;
    rule.cfa_offset = 16;
    for (uint64_t i = 1; i < 1000000; i++) {
        recordint_rule_table_put(t, i, &rule);
        assert_true(recordint_rule_table_entries(t) <= 327680);
    }
    assert_null(recordint_rule_table_get(t, 0));
    assert_int_equal(first->cfa_offset, 8);
    rule.cfa_offset = 8;
    assert_ptr_equal(recordint_rule_table_put(t, 0, &rule), first);
    recordint_rule_table_free(t);
}

static void more_rules_than_numbers_are_looked_up_each_time(void **state)
{
    struct rule_table *t = recordint_rule_table_new();
    struct rule rule = SIMPLE(REG_X86_RSP, 0);

    (void)state;
    rule.flags = RULE_SIGNAL;
    for (uint32_t i = 0; i < 70000; i++) {
        const struct rule *kept;

        rule.cfa_offset = (int32_t)i;
        kept = recordint_rule_table_put(t, i, &rule);
        assert_int_equal(kept->kind, i < 65535 ? RULE_SIMPLE : RULE_GENERIC);
        assert_int_equal(kept->flags, RULE_SIGNAL);
    }
    assert_null(recordint_rule_table_get(t, 69999));
    /* An address that needs more than 48 bits is not kept, but answered. */
    rule.cfa_offset = 5;
    assert_int_equal(recordint_rule_table_put(t, UINT64_C(1) << 60, &rule)->cfa_offset, 5);
    assert_null(recordint_rule_table_get(t, UINT64_C(1) << 60));
    recordint_rule_table_free(t);
}

static void deep_recursion_allocates_nothing(void **state)
{
    struct world *w = *state;
    uint64_t *deep = test_malloc(2048 * sizeof *deep);
    size_t before;

    rule_at(w, CODE, &one_word);
    rule_at(w, CODE + 0x100, &one_word);
    for (size_t i = 0; i < 2048; i++)
        deep[i] = CODE + 0x101;
    w->input.stack = (const uint8_t *)deep;
    w->input.stack_size = 2048 * sizeof *deep;
    before = mallinfo2().uordblks;
    for (int i = 0; i < 100; i++) {
        deep[2047] = CODE + 0x101;
        expect(w, UNWIND_DEPTH, 1024);
        deep[2047] = 0; /* the 1,024th frame is the last */
        expect(w, UNWIND_COMPLETE, 1024);
    }
    assert_int_equal(mallinfo2().uordblks, before);
    assert_int_equal(w->finds, 0);
    test_free(deep);
}

/* A function whose instructions are long and run anew for each of its addresses, all of which are on the stack. */
static void hostile_unwind_tables_end_a_walk_and_the_next_one_comes_further(void **state)
{
    static const uint8_t nothing[6000]; /* DW_CFA_nop */
    static struct bytes tables, file;
    const struct frame_style style = {.encoding = 0};
    struct world *w = *state;
    struct frame_file f = {.eh = &tables};
    uint64_t most = (UINT64_C(1) << 20) / sizeof nothing, work;
    size_t cie;

    tables.size = 0;
    cie = put_cie(&tables, &style);
    put_fde(&tables, &style, cie, FRAME_TEXT, FRAME_TEXT_SIZE, nothing, sizeof nothing);
    frame_build(&f, &file);
    assert_int_equal(recordint_image_open_memory(file.data, file.size, &w->range[0].image), 0);
    w->range[0].file_offset = FRAME_TEXT_OFFSET;
    w->range[0].rules = w->code_rules;
    for (size_t i = 0; i < 511; i++)
        w->stack[i] = CODE + 4 * i + 5;
    for (size_t walk = 1, before = 0; walk <= 2; walk++) {
        work = recordint_cfi_work(w->range[0].image);
        unwind_at_most(w, FRAMES);
        work = recordint_cfi_work(w->range[0].image) - work;
        assert_int_equal(w->result.end, UNWIND_NO_RULE);
        assert_in_range(work, UINT64_C(1) << 20, (UINT64_C(1) << 20) + 4 * sizeof nothing);
        assert_in_range(w->result.count, before + most / 4, before + most + 2);
        before = w->result.count;
    }
    recordint_image_free(w->range[0].image);
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_world(an_undefined_return_address_completes_the_stack),
        with_world(return_address_0_completes_the_stack),
        with_world(word_0_at_the_top_may_be_no_return_address),
        with_world(bytes_behind_the_copy_make_a_truncated_stack),
        with_world(bytes_that_no_copy_would_have_make_a_failed_read),
        with_world(a_cfa_that_does_not_rise_is_corrupt),
        with_world(a_full_array_is_depth_unless_the_stack_ends_there),
        with_world(addresses_beyond_64_bits_overflow),
        with_world(without_registers_there_is_no_walk),
        with_world(a_cfa_register_that_is_not_known_has_no_rule),
        with_world(a_return_address_that_is_not_code_makes_no_frame),
        with_world(a_return_address_in_the_uprobes_trampoline_ends_the_walk),
        with_world(saved_registers_are_the_callers),
        with_world(the_plt_pushes_a_word_more_from_some_byte_on),
        with_world(a_saved_register_below_the_stack_pointer_keeps_its_value),
        with_world(a_leaf_whose_rule_points_below_the_stack_pointer_has_just_to_return),
        with_world(generated_code_is_walked_by_frame_pointer),
        with_world(a_trampoline_is_told_by_its_code),
        with_world(code_is_read_again_in_another_round_only),
        with_world(return_addresses_by_frame_pointer_are_looked_at_once_a_round),
        with_world(code_that_was_other_code_leads_to_no_false_frame),
        with_world(a_leaf_that_sets_up_its_frame_pointer_keeps_its_caller),
        with_world(a_frame_pointer_must_hold),
        with_world(frame_pointer_0_is_the_outermost_frames),
        with_world(frame_pointer_0_alone_is_no_end),
        with_world(all_forms_of_an_indirect_call_are_known),
        with_world(a_call_through_null_keeps_its_caller),
        with_world(what_a_signal_interrupted_goes_on_at_its_exact_pc),
        with_world(the_stack_below_a_handlers_own_stack_was_not_copied),
        with_world(the_kernels_signal_frame_is_known_without_unwind_data),
        with_world(a_leaf_of_aarch64_returns_to_x30_and_its_callers_to_the_stack),
        cmocka_unit_test(the_mask_of_signatures_follows_the_address_space),
        with_world(signatures_are_stripped_wherever_an_address_comes_from),
        with_world(registers_that_aarch64_saved_are_the_callers),
        with_world(a_frame_of_aarch64_that_is_copied_in_part_has_its_lowest_registers),
        with_world(a_leaf_of_aarch64_whose_rule_points_below_sp_returns_to_x30),
        with_world(x30_is_the_return_address_of_leaves_only),
        with_world(rows_of_aarch64_give_what_their_rules_give),
        with_world(frame_pointers_of_aarch64_leave_the_stack_pointer_open),
        with_world(a_leaf_of_aarch64_without_data_or_frame_returns_to_x30),
        with_world(a_new_generation_forgets),
        with_world(no_mapping_is_never_kept),
        with_world(the_cache_grows_until_addresses_find_room),
        cmocka_unit_test(a_table_keeps_each_rule_once),
        cmocka_unit_test(a_full_table_starts_anew_and_pointers_hold),
        cmocka_unit_test(more_rules_than_numbers_are_looked_up_each_time),
        with_world(deep_recursion_allocates_nothing),
        with_world(hostile_unwind_tables_end_a_walk_and_the_next_one_comes_further),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
