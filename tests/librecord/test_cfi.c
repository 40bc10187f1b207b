/* SPDX-License-Identifier: MIT */
/* Call frame information, out of tables written by hand: instructions, encodings, and tables that lie. */
#include "cfi.h"
#include "frame_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CODE(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define START FRAME_TEXT
#define LENGTH ((uint64_t)0x100)

static struct bytes file;
static struct cfi_row row;

static struct image *open_file(const struct frame_file *f)
{
    struct image *image = NULL;
    frame_build(f, &file);
    assert_int_equal(recordint_image_open_memory(file.data, file.size, &image), 0);
    return image;
}

/* One FDE of a style at START with this program; the image stays open. */
static struct image *open_program(const struct frame_style *s, uint16_t machine,
                                  const uint8_t *code, size_t size)
{
    struct bytes frames = {.size = 0};
    size_t cie = put_cie(&frames, s);
    put_fde(&frames, s, cie, START, LENGTH, code, size);
    struct frame_file f = {.machine = machine};
    if (s->debug)
        f.debug = &frames;
    else
        f.eh = &frames;
    return open_file(&f);
}

static enum cfi_result row_at(const struct frame_style *s, uint16_t machine, const uint8_t *code,
                              size_t size, uint64_t offset)
{
    struct image *image = open_program(s, machine, code, size);
    memset(&row, 0xa5, sizeof(row));
    enum cfi_result result = recordint_cfi_row(image, START + offset, &row);
    recordint_image_free(image);
    return result;
}

static enum cfi_result plain_row(const uint8_t *code, size_t size, uint64_t offset)
{
    return row_at(&(struct frame_style){0}, 0, code, size, offset);
}

static enum cfi_result last_row(const uint8_t *code, size_t size)
{
    return plain_row(code, size, LENGTH - 1);
}

static void assert_cfa(uint32_t reg, int64_t offset)
{
    assert_false(row.cfa_is_expression);
    assert_int_equal(row.cfa_reg, reg);
    assert_int_equal(row.cfa_offset, offset);
}

static void assert_range(uint64_t start, uint64_t end)
{
    assert_int_equal(row.start, START + start);
    assert_int_equal(row.end, START + end);
    assert_int_equal(row.fde_start, START);
}

/* ---- instructions ---- */

static void without_instructions_the_cies_row_holds(void **state)
{
    (void)state;
    assert_int_equal(last_row(NULL, 0), CFI_FOUND);
    assert_cfa(7, 8);
    assert_range(0, LENGTH);
    assert_int_equal(row.return_register, 16);
    assert_false(row.signal_frame);
    assert_false(row.return_address_signed);
    for (unsigned reg = 0; reg < REG_COUNT; reg++)
        assert_int_equal(row.reg[reg].kind, reg == 16 ? CFI_OFFSET : CFI_UNSPECIFIED);
    assert_int_equal(row.reg[16].offset, -8);
}

static void each_instruction_makes_its_rule(void **state)
{
    static const struct {
        uint8_t code[8];
        uint32_t reg;
        enum cfi_rule_kind kind;
        int64_t offset;
        uint32_t source;
    } cases[] = {
        {{0x83, 2}, 3, CFI_OFFSET, -16, 0},
        {{0x05, 12, 3}, 12, CFI_OFFSET, -24, 0},
        {{0x05, 12, 0x80, 1}, 12, CFI_OFFSET, -1024, 0},
        {{0x11, 12, 0x7d}, 12, CFI_OFFSET, 24, 0},
        {{0x2f, 12, 3}, 12, CFI_OFFSET, 24, 0},
        {{0x14, 7, 2}, 7, CFI_VAL_OFFSET, -16, 0},
        {{0x15, 7, 0x7e}, 7, CFI_VAL_OFFSET, 16, 0},
        {{0x07, 16}, 16, CFI_UNDEFINED, 0, 0},
        {{0x08, 6}, 6, CFI_SAME_VALUE, 0, 0},
        {{0x09, 6, 9}, 6, CFI_REGISTER, 0, 9},
        {{0x09, 6, 17}, 6, CFI_REGISTER, 0, UINT32_MAX}, /* not one that is known */
        {{0x83, 2, 0x06, 3}, 3, CFI_UNSPECIFIED, 0, 0},
        {{0x83, 2, 0xc3}, 3, CFI_UNSPECIFIED, 0, 0},
        {{0x90, 5, 0xc0 | 16}, 16, CFI_OFFSET, -8, 0},
        {{0x07, 16, 0x06, 16}, 16, CFI_OFFSET, -8, 0},
        {{0x2e, 0x81, 1, 0x83, 2}, 3, CFI_OFFSET, -16, 0},
    };
    (void)state;
    for (size_t i = 0; i < SIZE(cases); i++) {
        assert_int_equal(last_row(cases[i].code, sizeof(cases[i].code)), CFI_FOUND);
        const struct cfi_rule *rule = &row.reg[cases[i].reg];
        assert_int_equal(rule->kind, cases[i].kind);
        assert_int_equal(rule->offset, cases[i].offset);
        assert_int_equal(rule->reg, cases[i].source);
        assert_cfa(7, 8);
    }
}

static void each_instruction_makes_its_cfa(void **state)
{
    static const struct {
        uint8_t code[8];
        uint32_t reg;
        int64_t offset;
    } cases[] = {
        {{0x0c, 6, 0x90, 1}, 6, 144},
        {{0x12, 6, 0x7e}, 6, 16},
        {{0x0d, 10}, 10, 8},
        {{0x0e, 0xa0, 1}, 7, 160},
        {{0x13, 0x7d}, 7, 24},
        {{0x0e, 16, 0x0d, 6}, 6, 16},
        {{0x0f, 1, 0x30, 0x0c, 6, 16}, 6, 16},
    };
    (void)state;
    for (size_t i = 0; i < SIZE(cases); i++) {
        assert_int_equal(last_row(cases[i].code, sizeof(cases[i].code)), CFI_FOUND);
        assert_cfa(cases[i].reg, cases[i].offset);
        assert_null(row.cfa_expr.bytes);
    }
}

static void expressions_are_pointed_to(void **state)
{
    static const uint8_t code[] = {0x0f, 3,    0x77, 8,    0x06, 0x10, 3,
                                   2,    0x76, 0x70, 0x16, 12,   1,    0x30};
    struct image *image = open_program(&(struct frame_style){0}, 0, code, sizeof(code));
    (void)state;
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_FOUND);
    assert_true(row.cfa_is_expression);
    assert_int_equal(row.cfa_expr.size, 3);
    assert_memory_equal(row.cfa_expr.bytes, code + 2, 3);
    assert_int_equal(row.reg[3].kind, CFI_EXPRESSION);
    assert_int_equal(row.reg[3].expr.size, 2);
    assert_memory_equal(row.reg[3].expr.bytes, code + 8, 2);
    assert_int_equal(row.reg[12].kind, CFI_VAL_EXPRESSION);
    assert_int_equal(row.reg[12].expr.size, 1);
    assert_memory_equal(row.reg[12].expr.bytes, code + 13, 1);
    recordint_image_free(image);
}

static void a_row_begins_and_ends_with_an_advance(void **state)
{
    /* Rows at 0, 1, 0x21, 0x31, 0x51. */
    static const uint8_t code[] = {0x41, 0x0e, 1, 0x02, 0x20, 0x0e, 2,    0x03, 0x10, 0, 0x0e, 3,
                                   0x04, 0x20, 0, 0,    0,    0x0e, 0x04, 0,    0,    0, 0};
    static const uint64_t starts[] = {0, 1, 0x21, 0x31, 0x51, LENGTH};
    (void)state;
    for (size_t i = 0; i + 1 < SIZE(starts); i++) {
        assert_int_equal(plain_row(code, sizeof(code), starts[i]), CFI_FOUND);
        assert_range(starts[i], starts[i + 1]);
        assert_cfa(7, i == 0 ? 8 : (int64_t)i);
        assert_int_equal(plain_row(code, sizeof(code), starts[i + 1] - 1), CFI_FOUND);
        assert_range(starts[i], starts[i + 1]);
    }
    assert_int_equal(plain_row(code, sizeof(code), LENGTH), CFI_NONE);
}

static void advances_are_scaled_by_the_code_alignment(void **state)
{
    struct frame_style s = {.code_align = 4, .data_align = -4};
    (void)state;
    assert_int_equal(row_at(&s, 0, CODE(0x42, 0x83, 2, 0x42, 0), 8), CFI_FOUND);
    assert_range(8, 16);
    assert_int_equal(row.reg[3].offset, -8);
}

static void an_advance_past_the_function_ends_the_row_there(void **state)
{
    (void)state;
    assert_int_equal(plain_row(CODE(0x03, 0, 2, 0x0e, 16), 5), CFI_FOUND);
    assert_range(0, LENGTH);
    assert_cfa(7, 8);
}

static void set_loc_goes_forward_only(void **state)
{
    struct bytes code = {.size = 0};
    struct frame_style s = {.encoding = 0};
    (void)state;
    put(&code, 0x01, 1);
    put(&code, START + 0x10, 8);
    put(&code, 0x100e, 2);
    assert_int_equal(row_at(&s, 0, code.data, code.size, 0xf), CFI_FOUND);
    assert_range(0, 0x10);
    assert_int_equal(row_at(&s, 0, code.data, code.size, 0x10), CFI_FOUND);
    assert_range(0x10, LENGTH);
    assert_cfa(7, 16);
    put(&code, 0x01, 1);
    put(&code, START + 8, 8);
    assert_int_equal(row_at(&s, 0, code.data, code.size, 0xf), CFI_FOUND);
    assert_int_equal(row_at(&s, 0, code.data, code.size, 0x10), CFI_BAD);
}

static void set_loc_may_be_relative_to_itself(void **state)
{
    struct frame_style s = {.encoding = 0x1b};
    struct bytes frames = {.size = 0};
    size_t cie = put_cie(&frames, &s);
    size_t fde = put_fde(&frames, &s, cie, START, LENGTH, CODE(1, 0, 0, 0, 0, 0x0e, 16));
    size_t operand = fde + 4 + 4 + 8 + 1 + 1;
    (void)state;
    set(&frames, operand, START + 0x20 - (FRAME_EH + operand), 4);
    struct image *image = open_file(&(struct frame_file){.eh = &frames});
    assert_int_equal(recordint_cfi_row(image, START + 0x30, &row), CFI_FOUND);
    assert_range(0x20, LENGTH);
    recordint_image_free(image);
}

/* R2 */
static void remembered_rows_nest_and_bring_the_cfa_back(void **state)
{
    static const uint8_t code[] = {
        0x0e, 16,   0x83, 2,             /* rsp+16, rbx */
        0x41, 0x0a, 0x0c, 6, 16,   0xc3, /* 1: rbp+16 */
        0x41, 0x0a, 0x0f, 1, 0x30,       /* 2: an expression */
        0x41, 0x0b,                      /* 3: as 1 */
        0x41, 0x0b,                      /* 4: as 0 */
    };
    (void)state;
    assert_int_equal(plain_row(code, sizeof(code), 1), CFI_FOUND);
    assert_cfa(6, 16);
    assert_int_equal(row.reg[3].kind, CFI_UNSPECIFIED);
    assert_int_equal(plain_row(code, sizeof(code), 2), CFI_FOUND);
    assert_true(row.cfa_is_expression);
    assert_int_equal(plain_row(code, sizeof(code), 3), CFI_FOUND);
    assert_cfa(6, 16);
    assert_range(3, 4);
    assert_int_equal(plain_row(code, sizeof(code), 4), CFI_FOUND);
    assert_cfa(7, 16);
    assert_int_equal(row.reg[3].kind, CFI_OFFSET);
    assert_range(4, LENGTH);
}

static void remembering_has_a_limit(void **state)
{
    uint8_t code[64];
    (void)state;
    memset(code, 0x0a, sizeof(code));
    assert_int_equal(last_row(code, 8), CFI_FOUND);
    assert_int_equal(last_row(code, sizeof(code)), CFI_BAD);
    assert_int_equal(last_row(CODE(0x0b)), CFI_BAD);
    assert_int_equal(last_row(CODE(0x0a, 0x0b, 0x0b)), CFI_BAD);
}

static void registers_that_are_not_kept_are_passed_over(void **state)
{
    struct frame_style s = {.return_register = 30, .code = CODE(0x0c, 31, 0)};
    (void)state;
    assert_int_equal(last_row(CODE(0x91, 2, 0x05, 0xff, 0x7f, 1, 0x10, 40, 1, 0x30, 0x83, 3)),
                     CFI_FOUND);
    assert_int_equal(row.reg[3].offset, -24);
    for (unsigned reg = 17; reg < REG_COUNT; reg++)
        assert_int_equal(row.reg[reg].kind, CFI_UNSPECIFIED);
    /* 32 is no register of AArch64, but ours for the pc. */
    assert_int_equal(row_at(&s, EM_AARCH64, CODE(0xa0, 2, 0x05, 72, 2, 0x9e, 1), 0), CFI_FOUND);
    assert_int_equal(row.reg[32].kind, CFI_UNSPECIFIED);
    assert_int_equal(row.reg[30].kind, CFI_OFFSET);
    assert_int_equal(row.return_register, 30);
    assert_cfa(31, 0);
    assert_int_equal(row_at(&s, EM_AARCH64, CODE(0x0d, 32), 0), CFI_BAD);
    s.return_register = 34;
    assert_int_equal(row_at(&s, EM_AARCH64, NULL, 0, 0), CFI_BAD);
}

static void signed_return_addresses_are_of_aarch64(void **state)
{
    struct frame_style s = {.return_register = 30, .code = CODE(0x0c, 31, 0)};
    static const uint8_t code[] = {0x41, 0x2d, 0x41, 0x0a, 0x2c, 0x41, 0x0b, 0};
    static const bool expected[] = {false, true, false, true};
    (void)state;
    for (size_t i = 0; i < SIZE(expected); i++) {
        assert_int_equal(row_at(&s, EM_AARCH64, code, sizeof(code), i), CFI_FOUND);
        assert_int_equal(row.return_address_signed, expected[i]);
    }
    assert_int_equal(last_row(CODE(0x2d)), CFI_BAD);
    assert_int_equal(last_row(CODE(0x2c)), CFI_BAD);
}

static void what_makes_no_sense_is_bad(void **state)
{
    /* Entries are filled up with zeros; three bytes of program need none. */
    static const struct {
        uint8_t size;
        uint8_t code[16];
    } cases[] = {
        {3, {0x17}},                   /* unknown */
        {3, {0x3f}},                   /* unknown */
        {3, {0, 0x0c, 6}},             /* cut off */
        {3, {0, 0, 0x02}},             /* cut off */
        {3, {0x04, 0, 0}},             /* cut off */
        {3, {0x83, 0xff, 0xff}},       /* a number without end */
        {7, {0x0f, 1, 0x30, 0x0e, 8}}, /* an offset for an expression */
        {7, {0x0f, 1, 0x30, 0x0d, 6}}, /* a register for one */
        {3, {0x0c, 17, 8}},            /* a CFA in a register that is not kept */
        {3, {0x0f, 2, 0x30}},          /* an expression longer than the entry */
        {7, {0x10, 3, 5, 0x30}},       /* the same for a register */
        {15, {0x83, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1}},  /* 11 bytes */
        {15, {0x83, 255, 255, 255, 255, 255, 255, 255, 255, 0x7f}},         /* times -8 */
        {15, {0x11, 3, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0x7f}}, /* times -8 */
        {15, {0x0e, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1}},       /* above INT64_MAX */
    };
    (void)state;
    for (size_t i = 0; i < SIZE(cases); i++)
        assert_int_equal(plain_row(cases[i].code, cases[i].size, 0), CFI_BAD);
    /* The locations of a program do not wrap around. */
    struct frame_style s = {.code_align = (uint64_t)1 << 62};
    assert_int_equal(row_at(&s, 0, CODE(0x44), 0), CFI_BAD);
    s.code_align = UINT64_MAX;
    assert_int_equal(row_at(&s, 0, CODE(0x41), 0), CFI_BAD);
}

static void an_unknown_instruction_fails_its_function_only(void **state)
{
    struct frame_style s = {0};
    struct bytes frames = {.size = 0};
    size_t cie = put_cie(&frames, &s);
    (void)state;
    put_fde(&frames, &s, cie, START, 16, CODE(0x0e, 16, 0x48, 0x17, 0));
    put_fde(&frames, &s, cie, START + 16, 16, CODE(0x0e, 32));
    struct image *image = open_file(&(struct frame_file){.eh = &frames});
    /* Nor what is before it. */
    assert_int_equal(recordint_cfi_row(image, START + 7, &row), CFI_FOUND);
    assert_cfa(7, 16);
    assert_int_equal(recordint_cfi_row(image, START + 8, &row), CFI_BAD);
    assert_int_equal(recordint_cfi_row(image, START + 16, &row), CFI_FOUND);
    assert_cfa(7, 32);
    recordint_image_free(image);
}

static void a_cie_without_sense_fails_all_of_its_functions(void **state)
{
    struct frame_style s = {.code = CODE(0x0c, 7, 8, 0x17)};
    (void)state;
    assert_int_equal(row_at(&s, 0, NULL, 0, 0), CFI_BAD);
    s.code = (const uint8_t[]){0x0c, 7, 8, 0x41};
    assert_int_equal(row_at(&s, 0, NULL, 0, 0), CFI_BAD);
    /* No CFA: */
    s.code = (const uint8_t[]){0, 0, 0, 0};
    assert_int_equal(row_at(&s, 0, NULL, 0, 0), CFI_BAD);
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 8), 0), CFI_BAD);
    assert_int_equal(row_at(&s, 0, CODE(0x0d, 6), 0), CFI_BAD);
    assert_int_equal(row_at(&s, 0, CODE(0x0c, 6, 8), 0), CFI_FOUND);
}

/* ---- CIEs ---- */

static void addresses_are_written_in_many_ways(void **state)
{
    static const uint8_t formats[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x09, 0x0a, 0x0b, 0x0c, 0x08};
    static const uint8_t bases[] = {0x00, 0x10, 0x20, 0x30};
    (void)state;
    for (size_t i = 0; i < SIZE(formats); i++)
        for (size_t j = 0; j < SIZE(bases); j++) {
            struct frame_style s = {.encoding = formats[i] | bases[j]};
            assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 0x80), CFI_FOUND);
            assert_range(0, LENGTH);
            assert_cfa(7, 16);
        }
    struct frame_style s = {.encoding = 0x50};
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 0x80), CFI_FOUND);
    assert_range(0, LENGTH);
}

static void addresses_that_only_a_process_knows_are_none(void **state)
{
    static const uint8_t encodings[] = {0x9b, 0x80, 0x40, 0x60, 0x70, 0x05, 0x0f, 0x1d};
    (void)state;
    for (size_t i = 0; i < SIZE(encodings); i++) {
        uint8_t encoding = encodings[i];
        struct frame_style s = {.data = &encoding, .data_size = 1};
        assert_int_equal(row_at(&s, 0, NULL, 0, 0), CFI_NONE);
    }
    /* Relative to something the file does not have. */
    struct frame_style s = {.encoding = 0x3b};
    struct bytes frames = {.size = 0};
    size_t cie = put_cie(&frames, &s);
    put_fde(&frames, &s, cie, START, LENGTH, NULL, 0);
    struct image *image = open_file(&(struct frame_file){.eh = &frames, .no_got = true});
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_NONE);
    recordint_image_free(image);
}

static void letters_say_what_is_there(void **state)
{
    static const struct {
        const char *letters;
        uint8_t data[24];
        size_t size;
        enum cfi_result result;
        bool is_signal;
    } cases[] = {
        {"zRS", {0}, 1, CFI_FOUND, true},
        {"zLR", {0x1b, 0}, 2, CFI_FOUND, false},
        {"zPLR", {0x9b, 1, 2, 3, 4, 0x1b, 0}, 7, CFI_FOUND, false},
        {"zPR", {0, 1, 2, 3, 4, 5, 6, 7, 8, 0}, 10, CFI_FOUND, false},
        {"zPR", {0xff, 0}, 2, CFI_FOUND, false},
        {"zPR", {0x02, 1, 2, 0}, 4, CFI_FOUND, false},
        {"zPR", {0x01, 0x80, 2, 0}, 4, CFI_FOUND, false},
        {"zPR", {0x0f, 1, 0}, 3, CFI_NONE, false},
        {"zRB", {0}, 1, CFI_FOUND, false},
        {"zRG", {0}, 1, CFI_FOUND, false},
        {"z", {0}, 0, CFI_FOUND, false},
        {"zRX",
         {0, 1, 2},
         3,
         CFI_FOUND,
         false},                             /* what comes behind an unknown letter is unknown, */
        {"zXR", {1, 0}, 2, CFI_NONE, false}, /* and the encoding must not be */
        {"", {0}, 0, CFI_FOUND, false},
        {"X", {0}, 0, CFI_NONE, false},
    };
    (void)state;
    for (size_t i = 0; i < SIZE(cases); i++) {
        struct frame_style s = {
            .letters = cases[i].letters, .data = cases[i].data, .data_size = cases[i].size};
        assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), cases[i].result);
        if (cases[i].result == CFI_FOUND) {
            assert_int_equal(row.signal_frame, cases[i].is_signal);
            assert_cfa(7, 16);
        }
    }
}

static void an_aligned_personality_is_skipped(void **state)
{
    /* Behind length, id, version, "zPR", three numbers, the size of the data, and 'P': */
    size_t gap = (size_t) - (FRAME_EH + 4 + 4 + 1 + 4 + 3 + 1 + 1) & 7;
    uint8_t data[24] = {0x50};
    struct frame_style s = {.letters = "zPR", .encoding = 0x1b, .data = data};
    (void)state;
    memset(data + 1, 0xee, gap + 8);
    data[1 + gap + 8] = s.encoding;
    s.data_size = 1 + gap + 8 + 1;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_FOUND);
    assert_cfa(7, 16);
}

static void versions_differ(void **state)
{
    struct frame_style s = {.version = 3, .return_register = 16};
    (void)state;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_FOUND);
    s.version = 4;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_FOUND);
    s.debug = true;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_FOUND);
    assert_cfa(7, 16);
    s.segment_size = 2;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_NONE);
    s.segment_size = 0;
    s.address_size = 4;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_NONE);
    s.version = 2;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_NONE);
    s.version = 5;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_NONE);
}

static void lengths_may_have_64_bits(void **state)
{
    struct frame_style s = {.wide = true};
    (void)state;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 16), 1), CFI_FOUND);
    assert_cfa(7, 16);
    s.id_size = 8;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 24), 1), CFI_FOUND);
    assert_cfa(7, 24);
    s.debug = true;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 32), 1), CFI_FOUND);
    assert_cfa(7, 32);
    s.version = 4;
    assert_int_equal(row_at(&s, 0, CODE(0x0e, 40), 1), CFI_FOUND);
    assert_cfa(7, 40);
}

/* ---- finding ---- */

static struct bytes frames; /* .eh_frame */
static struct bytes header;
static const struct frame_style pcrel = {.encoding = 0x1b};

/* COUNT functions of 16 bytes, 32 apart, CFA offset 8 * (i + 2), and their search table. */
static void make_table(unsigned count)
{
    frames.size = header.size = 0;
    size_t cie = put_cie(&frames, &pcrel);
    put_header(&header, 0x03, count);
    for (unsigned i = 0; i < count; i++) {
        uint8_t code[] = {0x0e, (uint8_t)(8 * (i + 2))};
        uint64_t start = START + (uint64_t)32 * i;
        put_search(&header, start, put_fde(&frames, &pcrel, cie, start, 16, code, sizeof(code)));
    }
}

static void assert_table(unsigned count)
{
    struct image *image = open_file(&(struct frame_file){.eh = &frames, .header = &header});
    assert_int_equal(recordint_cfi_row(image, START - 1, &row), CFI_NONE);
    for (unsigned i = 0; i < count; i++) {
        uint64_t start = START + (uint64_t)32 * i;
        assert_int_equal(recordint_cfi_row(image, start, &row), CFI_FOUND);
        assert_cfa(7, 8 * (i + 2));
        assert_int_equal(recordint_cfi_row(image, start + 15, &row), CFI_FOUND);
        assert_int_equal(row.fde_start, start);
        /* What the table finds need not contain the address. */
        assert_int_equal(recordint_cfi_row(image, start + 16, &row), CFI_NONE);
        assert_int_equal(recordint_cfi_row(image, start + 31, &row), CFI_NONE);
    }
    unsigned walked = 0;
    uint64_t start;
    uint64_t end;
    for (size_t at = 0; recordint_cfi_next_fde(image, &at, &start, &end); walked++) {
        assert_int_equal(start, START + (uint64_t)32 * walked);
        assert_int_equal(end, start + 16);
    }
    assert_int_equal(walked, count);
    recordint_image_free(image);
}

static void the_search_table_finds_functions(void **state)
{
    (void)state;
    for (unsigned count = 1; count < 14; count++) {
        make_table(count);
        assert_table(count);
    }
}

static void the_search_table_is_used(void **state)
{
    (void)state;
    make_table(3);
    /* All that is left: an FDE before it is not found. */
    set(&header, 8, 2, 4);
    memmove(header.data + 12, header.data + 20, 16);
    struct image *image = open_file(&(struct frame_file){.eh = &frames, .header = &header});
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_NONE);
    assert_int_equal(recordint_cfi_row(image, START + 32, &row), CFI_FOUND);
    recordint_image_free(image);
}

static void a_search_table_that_lies_is_not_used(void **state)
{
    (void)state;
    for (unsigned lie = 0; lie < 8; lie++) {
        make_table(5);
        if (lie < 2) /* who believes it misses two */
            set(&header, 8, 3, 4);
        switch (lie) {
        case 0: /* another version */
            set(&header, 0, 2, 1);
            break;
        case 1: /* of other entries */
            set(&header, 3, 0x3c, 1);
            break;
        case 2: /* more than there are */
            set(&header, 8, 6, 4);
            break;
        case 3:
            set(&header, 8, UINT32_MAX, 4);
            break;
        case 4: /* not sorted */
            put_search(&header, START + 1, 0);
            memcpy(header.data + 12 + 8 * 3, header.data + header.size - 8, 8);
            header.size -= 8;
            break;
        case 5: /* outside of .eh_frame */
            set(&header, 12 + 8 * 2 + 4, FRAME_EH - 4 - FRAME_HEADER, 4);
            break;
        case 6:
            set(&header, 12 + 8 * 2 + 4, FRAME_EH + frames.size - FRAME_HEADER, 4);
            break;
        default: /* empty, and without an encoding */
            set(&header, 2, 0xff, 1);
            break;
        }
        assert_table(5);
    }
}

static void a_header_that_points_nowhere_leaves_the_section(void **state)
{
    (void)state;
    make_table(2);
    set(&header, 4, 0x100000, 4);
    assert_table(2);
    make_table(2);
    set(&header, 1, 0xff, 1);
    assert_table(2);
    header.size = 3;
    assert_table(2);
}

static void a_pointer_to_no_fde_is_bad(void **state)
{
    (void)state;
    make_table(2);
    set(&header, 12 + 8 + 4, FRAME_EH - FRAME_HEADER, 4); /* the CIE */
    struct image *image = open_file(&(struct frame_file){.eh = &frames, .header = &header});
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_FOUND);
    assert_int_equal(recordint_cfi_row(image, START + 32, &row), CFI_BAD);
    recordint_image_free(image);
}

static void functions_may_be_empty_or_lie_in_others(void **state)
{
    (void)state;
    for (int with_header = 0; with_header < 2; with_header++) {
        frames.size = header.size = 0;
        size_t cie = put_cie(&frames, &pcrel);
        put_header(&header, 0x03, 4);
        put_search(&header, START, put_fde(&frames, &pcrel, cie, START, 64, CODE(0x0e, 16)));
        put_search(&header, START + 16,
                   put_fde(&frames, &pcrel, cie, START + 16, 8, CODE(0x0e, 24)));
        put_search(&header, START + 32,
                   put_fde(&frames, &pcrel, cie, START + 32, 8, CODE(0x0e, 32)));
        put_search(&header, START + 32, put_fde(&frames, &pcrel, cie, START + 32, 0, NULL, 0));
        struct frame_file f = {.eh = &frames, .header = with_header ? &header : NULL};
        struct image *image = open_file(&f);
        static const struct {
            uint64_t at;
            int64_t cfa;
        } cases[] = {{0, 16},  {15, 16}, {16, 24}, {23, 24}, {24, 16},
                     {32, 32}, {39, 32}, {40, 16}, {63, 16}};
        for (size_t i = 0; i < SIZE(cases); i++) {
            assert_int_equal(recordint_cfi_row(image, START + cases[i].at, &row), CFI_FOUND);
            assert_cfa(7, cases[i].cfa);
        }
        assert_int_equal(recordint_cfi_row(image, START + 64, &row), CFI_NONE);
        recordint_image_free(image);
    }
    (void)state;
}

static void removed_functions_at_0_are_none(void **state)
{
    struct frame_style s = {.debug = true};
    struct bytes debug = {.size = 0};
    size_t cie = put_cie(&debug, &s);
    (void)state;
    put_fde(&debug, &s, cie, 0, 0x10000, CODE(0x0e, 16));
    put_fde(&debug, &s, cie, START, 16, CODE(0x0e, 24));
    struct image *image = open_file(&(struct frame_file){.debug = &debug});
    assert_int_equal(recordint_cfi_row(image, START + 15, &row), CFI_FOUND);
    assert_cfa(7, 24);
    assert_int_equal(recordint_cfi_row(image, START + 16, &row), CFI_NONE);
    recordint_image_free(image);
}

static void a_range_that_wraps_around_is_none(void **state)
{
    struct frame_style s = {0};
    (void)state;
    frames.size = 0;
    size_t cie = put_cie(&frames, &s);
    put_fde(&frames, &s, cie, START, UINT64_MAX - 8, CODE(0x0e, 16));
    struct image *image = open_file(&(struct frame_file){.eh = &frames});
    assert_int_equal(recordint_cfi_row(image, START + 1, &row), CFI_NONE);
    recordint_image_free(image);
}

static void debug_frame_has_what_eh_frame_has_not(void **state)
{
    struct frame_style s = {.debug = true};
    struct bytes debug = {.size = 0};
    (void)state;
    make_table(2);
    size_t cie = put_cie(&debug, &s);
    put_fde(&debug, &s, cie, START, 128, CODE(0x0e, 64));
    struct image *image =
        open_file(&(struct frame_file){.eh = &frames, .header = &header, .debug = &debug});
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_FOUND);
    assert_cfa(7, 16);
    assert_int_equal(recordint_cfi_row(image, START + 16, &row), CFI_FOUND);
    assert_cfa(7, 64);
    unsigned walked = 0;
    uint64_t start;
    uint64_t end;
    for (size_t at = 0; recordint_cfi_next_fde(image, &at, &start, &end);)
        walked++;
    assert_int_equal(walked, 3);
    recordint_image_free(image);
}

/* .debug_frame in zlib's format behind a header that claims this size. */
static enum cfi_result compressed_row(bool old_style, int64_t too_much, uint32_t type)
{
    struct frame_style s = {.debug = true};
    struct bytes debug = {.size = 0};
    struct bytes packed = {.size = 0};
    size_t cie = put_cie(&debug, &s);
    put_fde(&debug, &s, cie, START, LENGTH, CODE(0x0e, 40));
    uint64_t size = debug.size + (uint64_t)too_much;
    if (old_style) {
        put_bytes(&packed, "ZLIB", 4);
        for (int i = 7; i >= 0; i--)
            put(&packed, size >> 8 * i, 1);
    } else {
        put(&packed, type, 8);
        put(&packed, size, 8);
        put(&packed, 1, 8);
    }
    uLongf room = sizeof(packed.data) - packed.size;
    assert_int_equal(compress(packed.data + packed.size, &room, debug.data, debug.size), Z_OK);
    packed.size += room;
    struct image *image =
        open_file(&(struct frame_file){.debug = &packed,
                                       .debug_flags = old_style ? 0 : (uint64_t)SHF_COMPRESSED,
                                       .old_style = old_style});
    enum cfi_result result = recordint_cfi_row(image, START, &row);
    recordint_image_free(image);
    return result;
}

static void debug_frame_may_be_compressed(void **state)
{
    (void)state;
    for (int old_style = 0; old_style < 2; old_style++) {
        row = (struct cfi_row){0};
        assert_int_equal(compressed_row(old_style, 0, ELFCOMPRESS_ZLIB), CFI_FOUND);
        assert_cfa(7, 40);
        assert_int_equal(compressed_row(old_style, 1, ELFCOMPRESS_ZLIB), CFI_NONE);
        assert_int_equal(compressed_row(old_style, -1, ELFCOMPRESS_ZLIB), CFI_NONE);
        assert_int_equal(compressed_row(old_style, (int64_t)1 << 25, ELFCOMPRESS_ZLIB), CFI_NONE);
        assert_int_equal(compressed_row(old_style, INT64_MAX, ELFCOMPRESS_ZLIB), CFI_NONE);
    }
    assert_int_equal(compressed_row(false, 0, 2), CFI_NONE);
}

static void without_sections_the_table_ends_with_a_terminator(void **state)
{
    struct bytes behind = {.size = 0};
    (void)state;
    make_table(2);
    /* What follows looks like a function that is none. */
    put(&behind, 0, 4);
    frames.size += 4;
    size_t fde = put_fde(&frames, &pcrel, 0, START + 0x80, 16, NULL, 0);
    put_bytes(&behind, frames.data + fde, frames.size - fde);
    frames.size = fde - 4;
    set(&header, 2, 0xff, 1); /* no search table */
    struct frame_file f = {
        .eh = &frames, .header = &header, .behind = &behind, .no_sections = true};
    struct image *image = open_file(&f);
    assert_int_equal(recordint_cfi_row(image, START + 33, &row), CFI_FOUND);
    assert_int_equal(recordint_cfi_row(image, START + 0x80, &row), CFI_NONE);
    recordint_image_free(image);
    /* Inside of a section there may be terminators. */
    put_bytes(&frames, behind.data, behind.size);
    f = (struct frame_file){.eh = &frames, .header = &header};
    image = open_file(&f);
    assert_int_equal(recordint_cfi_row(image, START + 0x80, &row), CFI_FOUND);
    recordint_image_free(image);
}

static void a_file_without_tables_has_no_rows(void **state)
{
    size_t at = 0;
    uint64_t start;
    uint64_t end;
    (void)state;
    struct image *image = open_file(&(struct frame_file){.no_sections = true});
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_NONE);
    assert_int_equal(recordint_cfi_row(image, UINT64_MAX, &row), CFI_NONE);
    assert_false(recordint_cfi_next_fde(image, &at, &start, &end));
    recordint_image_free(image);
}

/* ---- damage ---- */

static struct bytes whole;

/* Everything at once: .eh_frame with its header, .debug_frame, a note. */
static void build_whole(void)
{
    struct frame_style s = {.debug = true, .wide = true, .version = 4};
    static struct bytes debug;
    static struct bytes notes;
    debug.size = notes.size = 0;
    make_table(3);
    size_t cie = put_cie(&frames, &pcrel);
    put_search(&header, START + 0x60,
               put_fde(&frames, &pcrel, cie, START + 0x60, 32,
                       CODE(0x0a, 0x41, 0x0f, 2, 0x77, 8, 0x10, 3, 1, 0x30, 0x44, 0x0b, 0x83, 2)));
    set(&header, 8, 4, 4);
    cie = put_cie(&debug, &s);
    put_fde(&debug, &s, cie, START + 0x90, 32, CODE(0x02, 4, 0x0e, 16, 0x2e, 8));
    put_bytes(&notes, "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0hash", 20);
    frame_build(
        &(struct frame_file){.eh = &frames, .header = &header, .debug = &debug, .notes = &notes},
        &whole);
}

/* Whatever it says, it comes back. */
static unsigned use(const uint8_t *data, size_t size)
{
    struct image *image;
    uint8_t id[IMAGE_BUILD_ID_MAX];
    uint8_t out[16];
    uint64_t start;
    uint64_t end;
    unsigned found = 0;
    if (recordint_image_open_memory(data, size, &image) != 0)
        return 0;
    recordint_image_build_id(image, id);
    recordint_image_address(image, FRAME_TEXT_OFFSET + 0x90, &start);
    recordint_image_read(image, START + 0x20, out, sizeof(out));
    for (uint64_t offset = 0; offset < 0xb0; offset += 5)
        found += recordint_cfi_row(image, START + offset, &row) == CFI_FOUND;
    recordint_cfi_row(image, 0, &row);
    recordint_cfi_row(image, UINT64_MAX, &row);
    for (size_t at = 0; recordint_cfi_next_fde(image, &at, &start, &end);)
        found += recordint_cfi_row(image, start, &row) == CFI_FOUND;
    recordint_image_free(image);
    return found;
}

/* An array that is as long as it says, so that sanitizers see a byte too many. */
static unsigned use_exactly(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    unsigned found = use(copy, size);
    free(copy);
    return found;
}

static void a_file_may_be_cut_anywhere(void **state)
{
    (void)state;
    build_whole();
    unsigned all = use_exactly(whole.data, whole.size);
    assert_true(all > 20);
    for (size_t size = 0; size < whole.size; size++)
        if (size < 0x200 || size > 0x1700)
            assert_true(use_exactly(whole.data, size) <= all);
}

static void any_byte_may_be_wrong(void **state)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0xfe};
    (void)state;
    build_whole();
    for (size_t at = 0; at < whole.size; at++) {
        if (at >= 0x200 && at < 0x1800)
            continue; /* the code */
        uint8_t right = whole.data[at];
        for (size_t i = 0; i < SIZE(values) + 8; i++) {
            whole.data[at] =
                i < SIZE(values) ? values[i] : (uint8_t)(right ^ 1 << (i - SIZE(values)));
            use(whole.data, whole.size);
        }
        whole.data[at] = right;
    }
}

static void a_table_may_end_anywhere(void **state)
{
    (void)state;
    build_whole();
    struct bytes all = frames;
    for (size_t size = 0; size < all.size; size++) {
        frames = all;
        frames.size = size;
        struct frame_file f = {.eh = &frames, .header = size % 2 ? &header : NULL};
        frame_build(&f, &file);
        use(file.data, file.size);
    }
}

static void a_file_that_shrinks_has_what_was_read(void **state)
{
    struct image *image;
    (void)state;
    make_table(4);
    frame_build(&(struct frame_file){.eh = &frames, .header = &header}, &file);
    int fd = memfd_create("shrinks", MFD_CLOEXEC);
    assert_int_equal(write(fd, file.data, file.size), file.size);
    assert_int_equal(recordint_image_open_fd(fd, &image), 0);
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_FOUND);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_FOUND);
    recordint_image_free(image);
    assert_int_equal(pwrite(fd, file.data, file.size, 0), file.size);
    assert_int_equal(recordint_image_open_fd(fd, &image), 0);
    assert_int_equal(ftruncate(fd, FRAME_TEXT_OFFSET), 0);
    assert_int_equal(recordint_cfi_row(image, START, &row), CFI_NONE);
    recordint_image_free(image);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_instructions_the_cies_row_holds),
        cmocka_unit_test(each_instruction_makes_its_rule),
        cmocka_unit_test(each_instruction_makes_its_cfa),
        cmocka_unit_test(expressions_are_pointed_to),
        cmocka_unit_test(a_row_begins_and_ends_with_an_advance),
        cmocka_unit_test(advances_are_scaled_by_the_code_alignment),
        cmocka_unit_test(an_advance_past_the_function_ends_the_row_there),
        cmocka_unit_test(set_loc_goes_forward_only),
        cmocka_unit_test(set_loc_may_be_relative_to_itself),
        cmocka_unit_test(remembered_rows_nest_and_bring_the_cfa_back),
        cmocka_unit_test(remembering_has_a_limit),
        cmocka_unit_test(registers_that_are_not_kept_are_passed_over),
        cmocka_unit_test(signed_return_addresses_are_of_aarch64),
        cmocka_unit_test(what_makes_no_sense_is_bad),
        cmocka_unit_test(an_unknown_instruction_fails_its_function_only),
        cmocka_unit_test(a_cie_without_sense_fails_all_of_its_functions),
        cmocka_unit_test(addresses_are_written_in_many_ways),
        cmocka_unit_test(addresses_that_only_a_process_knows_are_none),
        cmocka_unit_test(letters_say_what_is_there),
        cmocka_unit_test(an_aligned_personality_is_skipped),
        cmocka_unit_test(versions_differ),
        cmocka_unit_test(lengths_may_have_64_bits),
        cmocka_unit_test(the_search_table_finds_functions),
        cmocka_unit_test(the_search_table_is_used),
        cmocka_unit_test(a_search_table_that_lies_is_not_used),
        cmocka_unit_test(a_header_that_points_nowhere_leaves_the_section),
        cmocka_unit_test(a_pointer_to_no_fde_is_bad),
        cmocka_unit_test(functions_may_be_empty_or_lie_in_others),
        cmocka_unit_test(removed_functions_at_0_are_none),
        cmocka_unit_test(a_range_that_wraps_around_is_none),
        cmocka_unit_test(debug_frame_has_what_eh_frame_has_not),
        cmocka_unit_test(debug_frame_may_be_compressed),
        cmocka_unit_test(without_sections_the_table_ends_with_a_terminator),
        cmocka_unit_test(a_file_without_tables_has_no_rows),
        cmocka_unit_test(a_file_may_be_cut_anywhere),
        cmocka_unit_test(any_byte_may_be_wrong),
        cmocka_unit_test(a_table_may_end_anywhere),
        cmocka_unit_test(a_file_that_shrinks_has_what_was_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
