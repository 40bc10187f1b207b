/* SPDX-License-Identifier: MIT */
/* Rows to compact rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "frame_image.h"
#include "rule.h"

/* A function that pushed rbp and set it: CFA rbp + 16, rbp at CFA - 16, return address at CFA - 8. */
static struct cfi_row x86_row(void)
{
    struct cfi_row row;

    memset(&row, 0, sizeof row);
    row.cfa_reg = REG_X86_RBP;
    row.cfa_offset = 16;
    row.return_register = REG_X86_RIP;
    row.reg[REG_X86_RIP].kind = CFI_OFFSET;
    row.reg[REG_X86_RIP].offset = -8;
    row.reg[REG_X86_RBP].kind = CFI_OFFSET;
    row.reg[REG_X86_RBP].offset = -16;
    return row;
}

static struct cfi_row a64_row(void)
{
    struct cfi_row row;

    memset(&row, 0, sizeof row);
    row.cfa_reg = REG_A64_SP;
    row.cfa_offset = 32;
    row.return_register = REG_A64_LR;
    return row;
}

static enum rule_kind kind_of(enum arch arch, const struct cfi_row *row)
{
    struct rule rule;

    recordint_rule_from_row(arch, row, &rule);
    return (enum rule_kind)rule.kind;
}

static void a_frame_with_saved_registers_is_simple(void **state)
{
    struct cfi_row row = x86_row();
    struct rule rule;

    (void)state;
    row.reg[REG_X86_RBX].kind = CFI_OFFSET;
    row.reg[REG_X86_RBX].offset = -56;
    row.reg[15].kind = CFI_OFFSET;
    row.reg[15].offset = -24;
    row.reg[12].kind = CFI_SAME_VALUE;
    recordint_rule_from_row(ARCH_X86_64, &row, &rule);
    assert_int_equal(rule.kind, RULE_SIMPLE);
    assert_int_equal(rule.flags, 0);
    assert_int_equal(rule.cfa_register, REG_X86_RBP);
    assert_int_equal(rule.cfa_offset, 16);
    assert_int_equal(rule.saved_mask, 1 << 0 | 1 << 1 | 1 << 5);
    assert_int_equal(rule.saved[0], -7);
    assert_int_equal(rule.saved[1], -2);
    assert_int_equal(rule.saved[5], -3);
    assert_int_equal(rule.saved[RULE_RETURN], -1);
    assert_int_equal(rule.lowest, -7);
}

static void the_cfa_may_be_based_on_any_register(void **state)
{
    static const uint32_t regs[] = {REG_X86_RSP, REG_X86_RBP, REG_X86_RBX, REG_X86_R10,
                                    12,          13,          14,          15};

    (void)state;
    for (size_t i = 0; i < sizeof regs / sizeof regs[0]; i++) {
        struct cfi_row row = x86_row();

        row.cfa_reg = regs[i];
        assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_SIMPLE);
    }
}

static void what_does_not_fit_is_generic(void **state)
{
    struct cfi_row row = x86_row();

    (void)state;
    row.cfa_offset = (int64_t)INT32_MAX + 1;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    row.cfa_offset = INT32_MAX;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_SIMPLE);
    row.cfa_reg = 17;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);

    row = x86_row();
    row.reg[REG_X86_RBP].offset = -20; /* not in words */
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    row.reg[REG_X86_RBP].offset = (int64_t)INT16_MIN * 8;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_SIMPLE);
    row.reg[REG_X86_RBP].offset -= 8;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    row.reg[REG_X86_RBP].offset = 0;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    row.reg[REG_X86_RBP].kind = CFI_UNDEFINED;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    row.reg[REG_X86_RBP].kind = CFI_EXPRESSION;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);

    row = x86_row();
    row.reg[8].kind = CFI_OFFSET; /* r8 is nobody's to restore, but the row does */
    row.reg[8].offset = -24;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);

    row = x86_row();
    row.reg[REG_X86_RIP].kind = CFI_REGISTER;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    row.reg[REG_X86_RIP].kind = CFI_UNSPECIFIED;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    row.return_register = 1000;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
}

static void an_undefined_return_address_stops(void **state)
{
    struct cfi_row row = x86_row();

    (void)state;
    row.reg[REG_X86_RIP].kind = CFI_UNDEFINED;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_STOP);
    row = a64_row();
    row.reg[REG_A64_LR].kind = CFI_UNDEFINED;
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_STOP);
}

static void a_signal_frame_is_generic_and_flagged(void **state)
{
    struct cfi_row row = x86_row();
    struct rule rule;

    (void)state;
    row.signal_frame = true;
    recordint_rule_from_row(ARCH_X86_64, &row, &rule);
    assert_int_equal(rule.kind, RULE_GENERIC);
    assert_int_equal(rule.flags, RULE_SIGNAL);
}

static void the_expression_of_a_plt_is_recognised(void **state)
{
    static const uint8_t plt[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    uint8_t bytes[sizeof plt];
    struct cfi_row row = x86_row();
    struct rule rule;

    (void)state;
    row.reg[REG_X86_RBP].kind = CFI_UNSPECIFIED;
    row.cfa_is_expression = true;
    row.cfa_expr.bytes = plt;
    row.cfa_expr.size = sizeof plt;
    recordint_rule_from_row(ARCH_X86_64, &row, &rule);
    assert_int_equal(rule.kind, RULE_PLT);
    assert_int_equal(rule.cfa_register, REG_X86_RSP);
    assert_int_equal(rule.cfa_offset, 8);
    assert_int_equal(rule.saved[0], 11);
    assert_int_equal(rule.saved[1], 3);
    assert_int_equal(rule.saved[RULE_RETURN], -1);

    for (size_t i = 0; i < sizeof plt; i++) {
        memcpy(bytes, plt, sizeof plt);
        bytes[i] = 0x96;
        row.cfa_expr.bytes = bytes;
        assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    }
    memcpy(bytes, plt, sizeof plt);
    bytes[6] = 0x3a; /* entries with endbr64 */
    recordint_rule_from_row(ARCH_X86_64, &row, &rule);
    assert_int_equal(rule.kind, RULE_PLT);
    assert_int_equal(rule.saved[0], 10);
    row.cfa_expr.size--;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
}

static void a_realigned_frame_needs_no_decoding(void **state)
{
    static const uint8_t cfa[] = {0x76, 0x58, 0x06};    /* *(rbp - 40) */
    static const uint8_t at_rbp[] = {0x76, 0};          /* rbp */
    static const uint8_t at_r15[] = {0x76, 0xf8, 0x7e}; /* rbp - 136 */
    static const uint8_t by_rsp[] = {0x77, 0};
    struct cfi_row row = x86_row();
    struct rule rule;

    (void)state;
    row.cfa_is_expression = true;
    row.cfa_expr = (struct cfi_expr){cfa, sizeof cfa};
    row.reg[REG_X86_RBP].kind = CFI_EXPRESSION;
    row.reg[REG_X86_RBP].expr = (struct cfi_expr){at_rbp, sizeof at_rbp};
    row.reg[15].kind = CFI_EXPRESSION;
    row.reg[15].expr = (struct cfi_expr){at_r15, sizeof at_r15};
    recordint_rule_from_row(ARCH_X86_64, &row, &rule);
    assert_int_equal(rule.kind, RULE_REALIGNED);
    assert_int_equal(rule.cfa_register, REG_X86_RBP);
    assert_int_equal(rule.cfa_offset, -40);
    assert_int_equal(rule.saved_mask, 1 << 1 | 1 << 5);
    assert_int_equal(rule.saved[1], 0);
    assert_int_equal(rule.saved[5], -17);
    assert_int_equal(rule.saved[RULE_RETURN], -1);

    row.reg[15].expr = (struct cfi_expr){by_rsp, sizeof by_rsp};
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
    row.reg[15].kind = CFI_UNSPECIFIED;
    row.cfa_expr.size = 2;
    assert_int_equal(kind_of(ARCH_X86_64, &row), RULE_GENERIC);
}

static void save(struct cfi_row *row, unsigned reg, int64_t offset)
{
    row->reg[reg] = (struct cfi_rule){.kind = CFI_OFFSET, .offset = offset};
}

static void aarch64_keeps_its_return_address_in_x30_or_beside_x29(void **state)
{
    struct cfi_row row = a64_row();
    struct rule rule;

    (void)state;
    recordint_rule_from_row(ARCH_AARCH64, &row, &rule);
    assert_int_equal(rule.kind, RULE_SIMPLE);
    assert_int_equal(rule.cfa_register, REG_A64_SP);
    assert_int_equal(rule.cfa_offset, 32);
    assert_int_equal(rule.a64.saved_mask, 0);

    save(&row, REG_A64_FP, -32);
    save(&row, REG_A64_LR, -24);
    recordint_rule_from_row(ARCH_AARCH64, &row, &rule);
    assert_int_equal(rule.kind, RULE_SIMPLE);
    assert_int_equal(rule.a64.saved_mask, 3 << 10);
    assert_int_equal(rule.a64.lowest, -4);
    assert_int_equal(rule.a64.above[10], 0);
    assert_int_equal(rule.a64.above[11], 1);
}

static void all_registers_that_aarch64_saves_fit(void **state)
{
    struct cfi_row row = a64_row();
    struct rule rule;

    (void)state;
    for (unsigned reg = 19; reg <= REG_A64_LR; reg++)
        save(&row, reg, -8 * (int64_t)(1 + (reg * 7) % 12));
    recordint_rule_from_row(ARCH_AARCH64, &row, &rule);
    assert_int_equal(rule.kind, RULE_SIMPLE);
    assert_int_equal(rule.a64.saved_mask, 0xfff);
    assert_int_equal(rule.a64.lowest, -12);
    for (unsigned reg = 19; reg <= REG_A64_LR; reg++)
        assert_int_equal(rule.a64.lowest + rule.a64.above[reg - 19], -(int)(1 + (reg * 7) % 12));
}

static void what_does_not_fit_on_aarch64_is_generic(void **state)
{
    struct cfi_row row = a64_row();

    (void)state;
    save(&row, REG_A64_LR, -8);
    save(&row, 19, -8 - 255 * 8);
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_SIMPLE);
    save(&row, 19, -8 - 256 * 8); /* too far from the others */
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);
    save(&row, REG_A64_LR, -8 - 250 * 8);
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_SIMPLE);
    save(&row, REG_A64_LR, (int64_t)INT16_MIN * 8 + 8);
    save(&row, 19, (int64_t)INT16_MIN * 8);
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_SIMPLE);
    save(&row, 19, (int64_t)INT16_MIN * 8 - 8);
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);
    save(&row, 19, 0); /* above the frame */
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);
    save(&row, 19, -12);
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);

    row = a64_row();
    save(&row, 18, -8); /* nobody's to restore, but the row does */
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);
    row = a64_row();
    save(&row, REG_A64_SP, -8);
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);
    row = a64_row();
    row.reg[20].kind = CFI_UNDEFINED;
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);
    row.reg[20].kind = CFI_SAME_VALUE;
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_SIMPLE);
    row.reg[REG_A64_LR] = (struct cfi_rule){.kind = CFI_REGISTER, .reg = 16};
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);
    row = a64_row();
    row.return_register = 29;
    assert_int_equal(kind_of(ARCH_AARCH64, &row), RULE_GENERIC);
}

static void a_signed_return_address_changes_no_rule(void **state)
{
    struct cfi_row row = a64_row();
    struct rule plain, with_signature;

    (void)state;
    save(&row, REG_A64_LR, -8);
    recordint_rule_from_row(ARCH_AARCH64, &row, &plain);
    row.return_address_signed = true;
    recordint_rule_from_row(ARCH_AARCH64, &row, &with_signature);
    assert_memory_equal(&plain, &with_signature, sizeof plain);
}

/* The kind of the rule at a word of code; words[0] is at FRAME_TEXT. */
static enum rule_kind kind_in(enum arch arch, const uint32_t *words, size_t count, size_t at,
                              int32_t *cfa_offset)
{
    struct bytes *file = test_malloc(sizeof *file);
    struct frame_file f = {.machine = arch == ARCH_AARCH64 ? EM_AARCH64 : EM_X86_64};
    struct image *image;
    struct rule rule;

    frame_build(&f, file);
    for (size_t i = 0; i < count; i++)
        set(file, FRAME_TEXT_OFFSET + 4 * i, words[i], 4);
    assert_int_equal(recordint_image_open_memory(file->data, file->size, &image), 0);
    recordint_rule_make(arch, image, FRAME_TEXT + 4 * at, &rule);
    recordint_image_free(image);
    test_free(file);
    *cfa_offset = rule.cfa_offset;
    if (rule.kind == RULE_STUB)
        assert_int_equal(rule.cfa_register, REG_A64_SP);
    assert_int_equal(rule.a64.saved_mask, 0);
    return (enum rule_kind)rule.kind;
}

static void stubs_of_aarch64_return_to_x30(void **state)
{
    static const struct {
        uint32_t words[8];
        int8_t offset[8]; /* of the CFA; -1: no stub */
    } code[] = {
        {{0xd503201f, 0x90000610, 0xf9400e11, 0x91006210, 0xd61f0220, 0xd503201f},
         {-1, 0, 0, 0, 0, -1, -1, -1}},
        {{0xd503245f, 0xb0000610, 0xf9400e11, 0x91006210, 0xd503219f, 0xd61f0220, 0xd65f03c0},
         {0, 0, 0, 0, 0, 0, -1, -1}},
        {{0xd503245f, 0xa9bf7bf0, 0x90000610, 0xf9400a11, 0x91004210, 0xd61f0220, 0xd503201f},
         {0, 0, 16, 16, 16, 16, -1, -1}}, /* the first of a PLT */
        {{0x90000610, 0x91004210, 0xd61f0200, 0x90000610, 0x91004210, 0xd61f0200},
         {0, 0, 0, 0, 0, 0, -1, -1}},                                             /* veneers */
        {{0xf9400a11, 0x91004210, 0xd61f0220}, {-1, -1, -1, -1, -1, -1, -1, -1}}, /* no page */
        {{0x90000610, 0xf9400e11, 0x91006210, 0xd503201f, 0xd61f0220},
         {-1, -1, -1, -1, -1, -1, -1, -1}},
        {{0xa9bf7bf0, 0x90000610, 0x91006210, 0xd65f03c0}, {-1, -1, -1, -1, -1, -1, -1, -1}},
    };
    int32_t offset;

    (void)state;
    for (size_t i = 0; i < sizeof code / sizeof code[0]; i++) {
        for (size_t at = 0; at < 8; at++) {
            enum rule_kind kind = kind_in(ARCH_AARCH64, code[i].words, 8, at, &offset);

            assert_int_equal(kind, code[i].offset[at] < 0 ? RULE_NONE : RULE_STUB);
            assert_int_equal(offset, code[i].offset[at] < 0 ? 0 : code[i].offset[at]);
            assert_int_equal(kind_in(ARCH_X86_64, code[i].words, 8, at, &offset), RULE_NONE);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_with_saved_registers_is_simple),
        cmocka_unit_test(the_cfa_may_be_based_on_any_register),
        cmocka_unit_test(what_does_not_fit_is_generic),
        cmocka_unit_test(an_undefined_return_address_stops),
        cmocka_unit_test(a_signal_frame_is_generic_and_flagged),
        cmocka_unit_test(the_expression_of_a_plt_is_recognised),
        cmocka_unit_test(a_realigned_frame_needs_no_decoding),
        cmocka_unit_test(aarch64_keeps_its_return_address_in_x30_or_beside_x29),
        cmocka_unit_test(all_registers_that_aarch64_saves_fit),
        cmocka_unit_test(what_does_not_fit_on_aarch64_is_generic),
        cmocka_unit_test(a_signed_return_address_changes_no_rule),
        cmocka_unit_test(stubs_of_aarch64_return_to_x30),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
