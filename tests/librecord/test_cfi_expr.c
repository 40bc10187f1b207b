/* SPDX-License-Identifier: MIT */
/* Values of DWARF expressions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cfi_expr.h"

#define STACK_AT UINT64_C(0x7fff0000)
#define CFA UINT64_C(0x7fff0010)
#define BIAS UINT64_C(0x100000)

static const uint8_t stack[24] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 1, 0, 0, 0,
                                  0,    0,    0,    0,    0xff, 0xfe, 0xfd, 0xfc, 0, 0, 0, 0x80};

static enum cfi_expr_result run(const uint8_t *bytes, size_t size, const uint64_t *cfa,
                                uint64_t *out)
{
    /* The bytes end where the memory does, so that sanitizers see a read behind them. */
    uint8_t *copy = test_malloc(size == 0 ? 1 : size);
    struct stack_copy memory = {stack, STACK_AT, sizeof stack};
    struct cfi_expr expr = {copy, size};
    enum cfi_expr_result result;
    struct regs regs;

    memcpy(copy, bytes, size);
    memset(&regs, 0, sizeof regs);
    reg_set(&regs, REG_X86_RSP, STACK_AT);
    reg_set(&regs, REG_X86_RIP, 0x40100b);
    result = recordint_cfi_expr(&expr, &regs, &memory, BIAS, cfa, out);
    test_free(copy);
    return result;
}

#define VALUE(expected, ...)                                                       \
    do {                                                                           \
        const uint8_t expr_[] = {__VA_ARGS__};                                     \
        uint64_t value_ = 0;                                                       \
        assert_int_equal(run(expr_, sizeof expr_, NULL, &value_), CFI_EXPR_VALUE); \
        assert_int_equal(value_, (uint64_t)(expected));                            \
    } while (0)

#define FAILS(expected, ...)                                                 \
    do {                                                                     \
        const uint8_t expr_[] = {__VA_ARGS__};                               \
        uint64_t value_;                                                     \
        assert_int_equal(run(expr_, sizeof expr_, NULL, &value_), expected); \
    } while (0)

#define M1 0x09, 0xff /* const1s -1 */

static void constants(void **state)
{
    (void)state;
    VALUE(0, 0x30);
    VALUE(31, 0x4f);
    VALUE(0xfe, 0x08, 0xfe);
    VALUE(-2, 0x09, 0xfe);
    VALUE(0xfffe, 0x0a, 0xfe, 0xff);
    VALUE(-2, 0x0b, 0xfe, 0xff);
    VALUE(0xfffffffe, 0x0c, 0xfe, 0xff, 0xff, 0xff);
    VALUE(-2, 0x0d, 0xfe, 0xff, 0xff, 0xff);
    VALUE(UINT64_C(0x8877665544332211), 0x0e, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88);
    VALUE(UINT64_C(0x8877665544332211), 0x0f, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88);
    VALUE(624485, 0x10, 0xe5, 0x8e, 0x26);
    VALUE(-127, 0x11, 0x81, 0x7f);
    VALUE(64, 0x11, 0xc0, 0x00);
    VALUE(UINT64_MAX, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
    VALUE(0x1000 + BIAS, 0x03, 0x00, 0x10, 0, 0, 0, 0, 0, 0);
}

static void registers_and_memory(void **state)
{
    (void)state;
    VALUE(STACK_AT + 8, 0x77, 8);
    VALUE(STACK_AT - 8, 0x77, 0x78);
    VALUE(STACK_AT + 8, 0x92, 7, 8);
    FAILS(CFI_EXPR_REGISTER, 0x76, 0);
    FAILS(CFI_EXPR_REGISTER, 0x92, 0xff, 0x7f, 0);
    VALUE(UINT64_C(0x8877665544332211), 0x77, 0, 0x06);
    VALUE(0x11, 0x77, 0, 0x94, 1);
    VALUE(0x332211, 0x77, 0, 0x94, 3);
    VALUE(0x80, 0x77, 23, 0x94, 1);
    FAILS(CFI_EXPR_BAD, 0x77, 0, 0x94, 9);
    FAILS(CFI_EXPR_BAD, 0x77, 0, 0x94, 0);
    FAILS(CFI_EXPR_READ, 0x77, 17, 0x06);
    FAILS(CFI_EXPR_READ, 0x77, 24, 0x94, 1);
    FAILS(CFI_EXPR_READ, 0x77, 0x7f, 0x94, 1);
    FAILS(CFI_EXPR_READ, 0x30, 0x06);
}

static void the_address_that_could_not_be_read_is_told(void **state)
{
    static const uint8_t expr[] = {0x77, 32, 0x06};
    uint64_t address = 0;

    (void)state;
    assert_int_equal(run(expr, sizeof expr, NULL, &address), CFI_EXPR_READ);
    assert_int_equal(address, STACK_AT + 32);
}

static void the_cfa_is_on_the_stack_first(void **state)
{
    static const uint8_t expr[] = {0x09, 0xf8, 0x22}; /* -8 + CFA */
    uint64_t value = 0, cfa = CFA;

    (void)state;
    assert_int_equal(run(expr, sizeof expr, &cfa, &value), CFI_EXPR_VALUE);
    assert_int_equal(value, CFA - 8);
    assert_int_equal(run(expr, 0, &cfa, &value), CFI_EXPR_VALUE);
    assert_int_equal(value, CFA);
    assert_int_equal(run(expr, 0, NULL, &value), CFI_EXPR_BAD);
}

static void values_on_the_stack_are_moved(void **state)
{
    (void)state;
    VALUE(4, 0x32, 0x12, 0x22);                   /* 2 dup plus */
    VALUE(1, 0x31, 0x32, 0x13);                   /* 1 2 drop */
    VALUE(1, 0x31, 0x32, 0x14);                   /* 1 2 over */
    VALUE(1, 0x31, 0x32, 0x33, 0x15, 2);          /* 1 2 3 pick 2 */
    VALUE(1, 0x32, 0x33, 0x16, 0x1c);             /* 3 2 minus */
    VALUE(2, 0x31, 0x32, 0x33, 0x17);             /* 1 2 3 rot: 3 1 2 */
    VALUE(1, 0x31, 0x32, 0x33, 0x17, 0x13);       /* and 1 below */
    VALUE(3, 0x31, 0x32, 0x33, 0x17, 0x13, 0x13); /* and 3 below */
    FAILS(CFI_EXPR_BAD, 0x13);
    FAILS(CFI_EXPR_BAD, 0x12);
    FAILS(CFI_EXPR_BAD, 0x31, 0x14);
    FAILS(CFI_EXPR_BAD, 0x31, 0x16);
    FAILS(CFI_EXPR_BAD, 0x31, 0x31, 0x17);
    FAILS(CFI_EXPR_BAD, 0x31, 0x15, 1);
    FAILS(CFI_EXPR_BAD, 0x31, 0x22);
    FAILS(CFI_EXPR_BAD, 0x31, 0x13); /* nothing is left */
}

static void arithmetic(void **state)
{
    (void)state;
    VALUE(2, 0x36, 0x33, 0x1a);                               /* 6 & 3 */
    VALUE(7, 0x36, 0x33, 0x21);                               /* 6 | 3 */
    VALUE(5, 0x36, 0x33, 0x27);                               /* 6 ^ 3 */
    VALUE(3, 0x36, 0x33, 0x1c);                               /* 6 - 3 */
    VALUE(18, 0x36, 0x33, 0x1e);                              /* 6 * 3 */
    VALUE(9, 0x36, 0x33, 0x22);                               /* 6 + 3 */
    VALUE(306, 0x36, 0x23, 0xac, 0x02);                       /* 6 plus_uconst 300 */
    VALUE(-2, 0x09, 0xfa, 0x33, 0x1b);                        /* -6 / 3 */
    VALUE(6, 0x09, 0xfa, M1, 0x1b);                           /* -6 / -1 */
    VALUE(UINT64_C(1) << 63, 0x31, 0x08, 63, 0x24, M1, 0x1b); /* the most negative / -1 */
    VALUE(1, 0x37, 0x33, 0x1d);                               /* 7 % 3 */
    FAILS(CFI_EXPR_BAD, 0x36, 0x30, 0x1b);
    FAILS(CFI_EXPR_BAD, 0x36, 0x30, 0x1d);
    VALUE(5, 0x09, 0xfb, 0x19); /* abs -5 */
    VALUE(5, 0x35, 0x19);
    VALUE(-5, 0x35, 0x1f);
    VALUE(-6, 0x35, 0x20);
    VALUE(0x28, 0x35, 0x33, 0x24); /* 5 << 3 */
    VALUE(0, 0x35, 0x08, 64, 0x24);
    VALUE(1, 0x35, 0x32, 0x25); /* 5 >> 2 */
    VALUE(UINT64_MAX >> 4, M1, 0x34, 0x25);
    VALUE(0, M1, 0x08, 64, 0x25);
    VALUE(-1, M1, 0x34, 0x26);
    VALUE(-2, 0x09, 0xf8, 0x32, 0x26); /* -8 >> 2 */
    VALUE(-8, 0x09, 0xf8, 0x30, 0x26);
    VALUE(-1, 0x09, 0xf8, M1, 0x26);
    VALUE(0, 0x35, 0x08, 200, 0x26);
}

static void comparisons_are_signed(void **state)
{
    (void)state;
    VALUE(1, 0x35, 0x35, 0x29);
    VALUE(0, 0x35, 0x36, 0x29);
    VALUE(1, 0x35, 0x36, 0x2e);
    VALUE(1, M1, 0x30, 0x2d); /* -1 < 0 */
    VALUE(1, M1, 0x30, 0x2c);
    VALUE(0, M1, 0x30, 0x2b);
    VALUE(0, M1, 0x30, 0x2a);
    VALUE(1, 0x30, 0x30, 0x2a);
    VALUE(1, 0x30, 0x30, 0x2c);
    VALUE(0, 0x30, 0x30, 0x2b);
    VALUE(0, 0x30, 0x30, 0x2d);
    VALUE(1, 0x30, M1, 0x2b);
}

static void jumps(void **state)
{
    (void)state;
    VALUE(1, 0x31, 0x2f, 1, 0, 0x32);                   /* 1, skip over 2 */
    VALUE(1, 0x31, 0x31, 0x28, 1, 0, 0x32);             /* 1, if 1 skip over 2 */
    VALUE(2, 0x31, 0x30, 0x28, 1, 0, 0x32);             /* 1, if 0 skip over 2 */
    VALUE(0, 0x35, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff); /* 5, less 1 until 0 */
    FAILS(CFI_EXPR_BAD, 0x31, 0x2f, 1, 0);
    FAILS(CFI_EXPR_BAD, 0x31, 0x2f, 0xfb, 0xff);
    FAILS(CFI_EXPR_BAD, 0x31, 0x2f, 0xfd, 0xff); /* for ever */
    VALUE(1, 0x96, 0x31, 0x96);
}

static void the_expression_of_a_plt(void **state)
{
    (void)state;
    VALUE(STACK_AT + 16, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
    VALUE(STACK_AT + 8, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3c, 0x2a, 0x33, 0x24, 0x22);
}

static void cut_off_and_unknown_operators_fail(void **state)
{
    static const uint8_t ops[] = {0x03, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
                                  0x10, 0x11, 0x15, 0x23, 0x28, 0x2f, 0x77, 0x92, 0x94};

    (void)state;
    for (size_t i = 0; i < sizeof ops; i++)
        FAILS(CFI_EXPR_BAD, 0x31, ops[i]);
    FAILS(CFI_EXPR_BAD, 0x31, 0x10, 0x80);
    FAILS(CFI_EXPR_BAD, 0x31, 0x00);
    FAILS(CFI_EXPR_BAD, 0x31, 0x9c); /* call_frame_cfa: of which frame? */
    FAILS(CFI_EXPR_BAD, 0x31, 0x50); /* reg0 is a place, not a value */
    FAILS(CFI_EXPR_BAD, 0x31, 0xff);
}

static void the_stack_is_bounded(void **state)
{
    uint8_t expr[65];
    uint64_t value;

    (void)state;
    memset(expr, 0x31, sizeof expr);
    assert_int_equal(run(expr, 64, NULL, &value), CFI_EXPR_VALUE);
    assert_int_equal(run(expr, 65, NULL, &value), CFI_EXPR_BAD);
}

static void any_bytes_end(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 200000; round++) {
        uint8_t expr[24];
        uint64_t value, cfa = CFA;

        for (size_t i = 0; i < sizeof expr; i++) {
            seed = seed * 1664525 + 1013904223;
            expr[i] = (uint8_t)(seed >> 24) % 0x98;
        }
        run(expr, sizeof expr, &cfa, &value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants),
        cmocka_unit_test(registers_and_memory),
        cmocka_unit_test(the_address_that_could_not_be_read_is_told),
        cmocka_unit_test(the_cfa_is_on_the_stack_first),
        cmocka_unit_test(values_on_the_stack_are_moved),
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(comparisons_are_signed),
        cmocka_unit_test(jumps),
        cmocka_unit_test(the_expression_of_a_plt),
        cmocka_unit_test(cut_off_and_unknown_operators_fail),
        cmocka_unit_test(the_stack_is_bounded),
        cmocka_unit_test(any_bytes_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
