/* SPDX-License-Identifier: MIT */
/* Rows from instructions: of trampolines as interpreters make them, and of code that does not tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "code_row.h"

#define CODE(...)     \
    (const uint8_t[]) \
    {                 \
        __VA_ARGS__   \
    }
#define SIZED(...) CODE(__VA_ARGS__), sizeof(CODE(__VA_ARGS__))

static struct cfi_row row;

/* Asks with the code in memory of exactly its size. */
static bool ask(enum arch arch, const uint8_t *code, size_t size, size_t at, bool after_call)
{
    uint8_t *copy = malloc(size);
    bool told;

    assert_non_null(copy);
    memcpy(copy, code, size);
    told = recordint_code_row(arch, copy, size, at, after_call, &row);
    free(copy);
    return told;
}

static bool ask_prologue(enum arch arch, const uint8_t *code, size_t size, size_t at)
{
    uint8_t *copy = malloc(size);
    bool told;

    assert_non_null(copy);
    memcpy(copy, code, size);
    told = recordint_code_prologue(arch, copy, size, at, &row);
    free(copy);
    return told;
}

static void assert_cfa(unsigned reg, int64_t offset)
{
    assert_int_equal(row.cfa_reg, reg);
    assert_int_equal(row.cfa_offset, offset);
}

static void assert_saved(unsigned reg, int64_t offset)
{
    assert_int_equal(row.reg[reg].kind, CFI_OFFSET);
    assert_int_equal(row.reg[reg].offset, offset);
}

static void assert_kept(unsigned reg)
{
    assert_int_equal(row.reg[reg].kind, CFI_UNSPECIFIED);
}

/* CPython 3.12: sub $8, %rsp; call *%rcx; add $8, %rsp; ret. 3.13 with endbr64 in front. */
static const uint8_t python[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08,
                                 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3};

static void a_trampoline_of_python_tells_its_caller_at_each_instruction(void **state)
{
    static const struct {
        size_t at;
        bool after_call;
        int64_t cfa;
    } places[] = {{0, false, 8},   {4, false, 8},  {8, false, 16},
                  {10, false, 16}, {14, false, 8}, {10, true, 16}};

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        assert_true(ask(ARCH_X86_64, python, sizeof python, places[i].at, places[i].after_call));
        assert_cfa(REG_X86_RSP, places[i].cfa);
        assert_saved(REG_X86_RIP, -8);
        assert_kept(REG_X86_RBX);
        assert_kept(REG_X86_RBP);
        assert_int_equal(row.return_register, REG_X86_RIP);
    }
    /* Inside an instruction, and where a call cannot return to. */
    assert_false(ask(ARCH_X86_64, python, sizeof python, 5, false));
    assert_false(ask(ARCH_X86_64, python, sizeof python, 14, true));
}

static void a_trampoline_with_a_frame_pointer_tells_its_caller(void **state)
{
    /* push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret */
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};

    (void)state;
    assert_true(ask(ARCH_X86_64, code, sizeof code, 0, false));
    assert_cfa(REG_X86_RSP, 8);
    assert_kept(REG_X86_RBP);
    assert_true(ask(ARCH_X86_64, code, sizeof code, 6, true));
    assert_cfa(REG_X86_RSP, 16);
    assert_saved(REG_X86_RBP, -16);
    assert_saved(REG_X86_RIP, -8);
}

static void a_release_of_registers_and_locals_is_followed(void **state)
{
    (void)state;
    /* add $0x28, %rsp; pop %rbx; pop %rbp; pop %r12; pop %r13; ret */
    assert_true(ask(ARCH_X86_64,
                    SIZED(0x48, 0x83, 0xc4, 0x28, 0x5b, 0x5d, 0x41, 0x5c, 0x41, 0x5d, 0xc3), 0,
                    false));
    assert_cfa(REG_X86_RSP, 0x28 + 5 * 8);
    assert_saved(REG_X86_RBX, -40);
    assert_saved(REG_X86_RBP, -32);
    assert_saved(12, -24);
    assert_saved(13, -16);
    assert_saved(REG_X86_RIP, -8);
    /* mov 8(%rsp), %rbx; lea 0x18(%rsp), %rsp; vzeroupper; rep ret */
    assert_true(ask(ARCH_X86_64,
                    SIZED(0x48, 0x8b, 0x5c, 0x24, 0x08, 0x48, 0x8d, 0x64, 0x24, 0x18, 0xc5, 0xf8,
                          0x77, 0xf3, 0xc3),
                    0, false));
    assert_cfa(REG_X86_RSP, 0x20);
    assert_saved(REG_X86_RBX, -24);
    /* leave; ret */
    assert_true(ask(ARCH_X86_64, SIZED(0xc9, 0xc3), 0, true));
    assert_cfa(REG_X86_RBP, 16);
    assert_saved(REG_X86_RBP, -16);
    /* lea -0x10(%rbp), %rsp; pop %rbx; pop %r12; pop %rbp; ret */
    assert_true(
        ask(ARCH_X86_64, SIZED(0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3), 0, true));
    assert_cfa(REG_X86_RBP, 16);
    assert_saved(REG_X86_RBX, -32);
    assert_saved(12, -24);
}

static void code_that_does_not_run_straight_to_its_return_does_not_tell(void **state)
{
    static const struct {
        uint8_t code[16];
        size_t size;
        bool after_call;
    } cases[] = {
        {{0x75, 0x02, 0x48, 0x83, 0xc4, 0x18, 0xc3}, 7, false}, /* jne */
        {{0x48, 0x83, 0xc4, 0x08, 0xeb, 0x10}, 6, true},        /* jmp */
        {{0x50, 0xc3}, 2, false},                               /* push %rax; ret */
        {{0xc2, 0x08, 0x00}, 3, false},                         /* ret $8 */
        {{0x48, 0x89, 0xfc, 0xc3}, 4, false},                   /* mov %rdi, %rsp */
        {{0x48, 0x89, 0xf3, 0xc3}, 4, false},       /* mov %rsi, %rbx: not its caller's */
        {{0x48, 0x89, 0x04, 0x24, 0xc3}, 5, false}, /* mov %rax, (%rsp): returns there */
        {{0x48, 0x83, 0xc4, 0x08}, 4, true},        /* cut off */
        {{0x48, 0x83, 0xc4, 0x10, 0xc3}, 5, true},  /* not what a call is aligned to */
        {{0xc3}, 1, true},                          /* what follows a call that never returns */
        {{0x31, 0xc0, 0xc3}, 3, true},              /* likewise */
        {{0xe8, 1, 2, 3, 4, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 10, false}, /* a call without a frame */
        {{0x48, 0x83, 0xec, 8, 0xff, 0xd0, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3}, 13, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (ask(ARCH_X86_64, cases[i].code, cases[i].size, 0, cases[i].after_call))
            fail_msg("case %zu tells of CFA %d", i, (int)row.cfa_offset);
}

static void cut_off_code_never_tells(void **state)
{
    (void)state;
    for (size_t size = 1; size < sizeof python; size++)
        for (size_t at = 0; at <= size; at++) {
            assert_false(ask(ARCH_X86_64, python, size, at, false));
            assert_false(ask(ARCH_X86_64, python, size, at, true));
            assert_false(ask_prologue(ARCH_X86_64, python, size, at));
        }
}

static void the_setting_up_of_a_frame_pointer_is_known(void **state)
{
    /* endbr64; push %rbp; mov %rsp, %rbp; nop */
    static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x90};

    (void)state;
    assert_true(ask_prologue(ARCH_X86_64, code, sizeof code, 0));
    assert_cfa(REG_X86_RSP, 8);
    assert_kept(REG_X86_RBP);
    assert_saved(REG_X86_RIP, -8);
    assert_true(ask_prologue(ARCH_X86_64, code, sizeof code, 4));
    assert_cfa(REG_X86_RSP, 8);
    assert_true(ask_prologue(ARCH_X86_64, code, sizeof code, 5));
    assert_cfa(REG_X86_RSP, 16);
    assert_saved(REG_X86_RBP, -16);
    assert_false(ask_prologue(ARCH_X86_64, code, sizeof code, 8));
}

/* ---- AArch64 ---- */

static size_t words(uint8_t *out, const uint32_t *from, size_t count)
{
    memcpy(out, from, count * sizeof *from);
    return count * sizeof *from;
}

#define STP_PRE 0xa9bf7bfdu /* stp x29, x30, [sp, #-16]! */
#define MOV_FP 0x910003fdu  /* mov x29, sp */
#define BLR_X3 0xd63f0060u
#define LDP_POST 0xa8c17bfdu /* ldp x29, x30, [sp], #16 */
#define RET 0xd65f03c0u
#define PACIASP 0xd503233fu
#define AUTIASP 0xd50323bfu

static void a_trampoline_of_python_tells_its_caller_on_aarch64(void **state)
{
    static const uint32_t plain[] = {STP_PRE, MOV_FP, BLR_X3, LDP_POST, RET};
    static const uint32_t signs[] = {PACIASP, STP_PRE, MOV_FP, BLR_X3, LDP_POST, AUTIASP, RET};
    uint8_t code[64];
    size_t size = words(code, plain, 5);

    (void)state;
    assert_true(ask(ARCH_AARCH64, code, size, 0, false));
    assert_cfa(REG_A64_SP, 0);
    assert_kept(REG_A64_LR);
    assert_kept(REG_A64_FP);
    assert_true(ask(ARCH_AARCH64, code, size, 12, true));
    assert_cfa(REG_A64_SP, 16);
    assert_saved(REG_A64_FP, -16);
    assert_saved(REG_A64_LR, -8);
    assert_true(ask(ARCH_AARCH64, code, size, 16, false));
    assert_cfa(REG_A64_SP, 0);
    assert_false(ask(ARCH_AARCH64, code, size, 16, true));
    assert_int_equal(row.return_register, REG_A64_LR);
    assert_true(ask_prologue(ARCH_AARCH64, code, size, 0));
    assert_cfa(REG_A64_SP, 0);
    assert_kept(REG_A64_LR);
    assert_true(ask_prologue(ARCH_AARCH64, code, size, 4));
    assert_cfa(REG_A64_SP, 16);
    assert_saved(REG_A64_FP, -16);
    assert_saved(REG_A64_LR, -8);
    assert_false(ask_prologue(ARCH_AARCH64, code, size, 8));

    size = words(code, signs, 7);
    assert_true(ask(ARCH_AARCH64, code, size, 0, false));
    assert_true(ask(ARCH_AARCH64, code, size, 16, true));
    assert_cfa(REG_A64_SP, 16);
    assert_true(ask_prologue(ARCH_AARCH64, code, size, 0));
}

static void saved_registers_are_followed_on_aarch64(void **state)
{
    /* ldp x19, x20, [sp, #16]; ldr x21, [sp, #32]; ldp x29, x30, [sp], #48; retaa */
    static const uint32_t release[] = {0xa94153f3, 0xf94013f5, 0xa8c37bfd, 0xd65f0bff};
    /* sub sp, sp, #64; stp x29, x30, [sp, #48]; add x29, sp, #48: clang's */
    static const uint32_t sets_up[] = {0xd10103ff, 0xa9037bfd, 0x9100c3fd, 0xd503201f};
    uint8_t code[64];
    size_t size = words(code, release, 4);

    (void)state;
    assert_true(ask(ARCH_AARCH64, code, size, 0, true));
    assert_cfa(REG_A64_SP, 48);
    assert_saved(19, -32);
    assert_saved(20, -24);
    assert_saved(21, -16);
    assert_saved(REG_A64_FP, -48);
    assert_saved(REG_A64_LR, -40);

    size = words(code, sets_up, 4);
    assert_true(ask_prologue(ARCH_AARCH64, code, size, 0));
    assert_cfa(REG_A64_SP, 0);
    assert_true(ask_prologue(ARCH_AARCH64, code, size, 4));
    assert_cfa(REG_A64_SP, 64);
    assert_kept(REG_A64_LR);
    assert_true(ask_prologue(ARCH_AARCH64, code, size, 8));
    assert_cfa(REG_A64_SP, 64);
    assert_saved(REG_A64_FP, -16);
    assert_saved(REG_A64_LR, -8);
    assert_false(ask_prologue(ARCH_AARCH64, code, size, 12));
}

static void other_code_does_not_tell_on_aarch64(void **state)
{
    static const struct {
        uint32_t code[4];
        size_t count;
        bool after_call;
    } cases[] = {
        {{RET}, 1, true},                       /* what follows a call that never returns */
        {{0x54000041, LDP_POST, RET}, 3, true}, /* b.ne */
        {{0xd65f0060}, 1, false},               /* ret x3 */
        {{LDP_POST}, 1, true},                  /* cut off */
        {{0xd4000001, RET}, 2, false},          /* svc #0 */
        {{BLR_X3, LDP_POST, RET}, 3, false},    /* the frame is not seen */
        {{0xaa0003f3, RET}, 2, false},          /* mov x19, x0 */
    };
    uint8_t code[16];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (ask(ARCH_AARCH64, code, words(code, cases[i].code, cases[i].count), 0,
                cases[i].after_call))
            fail_msg("case %zu tells of CFA %d", i, (int)row.cfa_offset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trampoline_of_python_tells_its_caller_at_each_instruction),
        cmocka_unit_test(a_trampoline_with_a_frame_pointer_tells_its_caller),
        cmocka_unit_test(a_release_of_registers_and_locals_is_followed),
        cmocka_unit_test(code_that_does_not_run_straight_to_its_return_does_not_tell),
        cmocka_unit_test(cut_off_code_never_tells),
        cmocka_unit_test(the_setting_up_of_a_frame_pointer_is_known),
        cmocka_unit_test(a_trampoline_of_python_tells_its_caller_on_aarch64),
        cmocka_unit_test(saved_registers_are_followed_on_aarch64),
        cmocka_unit_test(other_code_does_not_tell_on_aarch64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
