/* SPDX-License-Identifier: MIT */
/* Line tables: every version, opcode and form, sequences of every kind, and tables that lie. */
#include "dwarf_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CODE 0x401000u
#define CODE_SIZE 0x10000u

/* What writes a table. Fields that are 0 mean the usual. */
struct table {
    unsigned version; /* 5 */
    bool wide, big;
    bool own_names; /* the test writes the tables of names itself */
    unsigned min_instruction_length, operations_per_instruction; /* 1 */
    unsigned opcode_base;                                        /* 13 */
    bool no_line_range;

    uint8_t data[4096];
    size_t size;
    size_t length_at, header_at;
};

static void put(struct table *t, uint64_t value, unsigned bytes)
{
    assert_true(t->size + bytes <= sizeof(t->data));
    for (unsigned i = 0; i < bytes; i++)
        t->data[t->size++] = (uint8_t)(value >> ((t->big ? bytes - 1 - i : i) * 8));
}

static void put_uleb(struct table *t, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(t, (value & 0x7f) | 0x80, 1);
    put(t, value, 1);
}

static void put_text(struct table *t, const char *text)
{
    do
        put(t, (uint8_t)*text, 1);
    while (*text++ != '\0');
}

static void put_offset(struct table *t, uint64_t value)
{
    put(t, value, t->wide ? 8 : 4);
}

static void patch(struct table *t, size_t at, uint64_t value)
{
    size_t size = t->size;
    t->size = at;
    put_offset(t, value);
    t->size = size;
}

static void end_header(struct table *t)
{
    patch(t, t->header_at, t->size - t->header_at - (t->wide ? 8 : 4));
}

/* Directories "/src" (version 5: the compiler's), "inc"; files a.c in the first, b.h in "inc". The file b.h has number
 * 2 in version 4, and 1 in version 5. */
static void put_names(struct table *t)
{
    if (t->version < 5) {
        put_text(t, "inc");
        put(t, 0, 1);
        put_text(t, "a.c");
        put(t, 0, 3);
        put_text(t, "b.h");
        put(t, 1, 1);
        put(t, 0, 2);
        put(t, 0, 1);
        return;
    }
    put(t, 1, 1);
    put(t, 1, 1); /* path */
    put(t, 8, 1); /* string */
    put(t, 2, 1);
    put_text(t, "/src");
    put_text(t, "inc");
    put(t, 2, 1);
    put(t, 1, 1);
    put(t, 8, 1);
    put(t, 2, 1); /* directory */
    put(t, 11, 1);
    put(t, 2, 1);
    put_text(t, "a.c");
    put(t, 0, 1);
    put_text(t, "b.h");
    put(t, 1, 1);
}

static void begin(struct table *t)
{
    t->version = t->version == 0 ? 5 : t->version;
    t->opcode_base = t->opcode_base == 0 ? 13 : t->opcode_base;
    if (t->wide)
        put(t, 0xffffffff, 4);
    t->length_at = t->size;
    put_offset(t, 0);
    put(t, t->version, 2);
    if (t->version == 5) {
        put(t, 8, 1); /* sizes of an address, of a segment selector */
        put(t, 0, 1);
    }
    t->header_at = t->size;
    put_offset(t, 0);
    put(t, t->min_instruction_length == 0 ? 1 : t->min_instruction_length, 1);
    if (t->version >= 4)
        put(t, t->operations_per_instruction == 0 ? 1 : t->operations_per_instruction, 1);
    put(t, 1, 1);
    put(t, (uint8_t)-5, 1);
    put(t, t->no_line_range ? 0 : 14, 1);
    put(t, t->opcode_base, 1);
    static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    for (unsigned i = 0; i + 1 < t->opcode_base; i++)
        put(t, i < sizeof(lengths) ? lengths[i] : 2, 1);
    if (!t->own_names) {
        put_names(t);
        end_header(t);
    }
}

static void set_address(struct table *t, uint64_t address)
{
    put(t, 0, 1);
    put(t, 9, 1);
    put(t, 2, 1);
    put(t, address, 8);
}

/* A row so many addresses and lines further on. */
static void row(struct table *t, unsigned addresses, int lines)
{
    put(t, (unsigned)(lines + 5) + addresses * 14 + t->opcode_base, 1);
}

static void end_sequence(struct table *t, uint64_t further)
{
    put(t, 2, 1);
    put_uleb(t, further);
    put(t, 0, 1);
    put(t, 1, 1);
    put(t, 1, 1);
}

static void finish(struct table *t)
{
    patch(t, t->length_at, t->size - t->length_at - (t->wide ? 8 : 4));
}

static char line_strings[] = "first\0/abs\0line.c";
static char strings_section[] = "str.c\0dir";

/* A table being read, in memory of its own of exactly the size, so that reading beyond it is noticed. */
struct reading {
    struct symint_debug_sections sections;
    struct symint_code_range code;
    struct symint_strings strings;
    struct symint_line_table *table;
};

static void set_section(struct symint_debug_sections *s, enum symint_debug_id id, void *data,
                        size_t size)
{
    s->at[id].base = data;
    s->at[id].size = size;
}

static bool open_bytes(struct reading *r, const uint8_t *data, size_t size, bool big)
{
    memset(r, 0, sizeof(*r));
    uint8_t *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    r->sections.swap = big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    r->sections.why = "";
    set_section(&r->sections, DEBUG_LINE, copy, size);
    set_section(&r->sections, DEBUG_LINE_STR, line_strings, sizeof(line_strings));
    set_section(&r->sections, DEBUG_STR, strings_section, sizeof(strings_section));
    r->code = (struct symint_code_range){CODE, CODE + CODE_SIZE};
    r->sections.code = &r->code;
    r->sections.code_count = 1;
    assert_int_equal(symint_line_open(&r->sections, 0, 8, &r->table), 0);
    return r->table != NULL;
}

static void open_table(struct reading *r, struct table *t)
{
    finish(t);
    assert_true(open_bytes(r, t->data, t->size, t->big));
    assert_int_equal(symint_line_rows(r->table), 0);
}

static void close_reading(struct reading *r)
{
    symint_line_free(r->table);
    symint_strings_free(&r->strings);
    free(r->sections.at[DEBUG_LINE].base);
}

static void expect_damaged(struct table *t)
{
    struct reading r;
    finish(t);
    assert_false(open_bytes(&r, t->data, t->size, t->big));
    close_reading(&r);
}

static void expect_row(struct reading *r, uint64_t address, uint32_t file, uint32_t line,
                       uint32_t column)
{
    struct symint_line_row got;
    if (!symint_line_find(r->table, address, &got))
        fail_msg("no row at %llx", (unsigned long long)address);
    assert_int_equal(got.file, file);
    assert_int_equal(got.line, line);
    assert_int_equal(got.column, column);
}

static void expect_line(struct reading *r, uint64_t address, uint32_t line)
{
    struct symint_line_row got;
    if (!symint_line_find(r->table, address, &got))
        fail_msg("no row at %llx", (unsigned long long)address);
    assert_int_equal(got.line, line);
}

static void expect_none(struct reading *r, uint64_t address)
{
    struct symint_line_row got;
    if (symint_line_find(r->table, address, &got))
        fail_msg("line %u at %llx", got.line, (unsigned long long)address);
}

static void expect_path(struct reading *r, const char *comp_dir, uint32_t file, const char *want)
{
    const char *path, *again;
    assert_int_equal(symint_line_path(r->table, &r->strings, comp_dir, file, &path), 0);
    assert_int_equal(symint_line_path(r->table, &r->strings, comp_dir, file, &again), 0);
    assert_ptr_equal(path, again);
    if (want == NULL)
        assert_null(path);
    else if (path == NULL)
        fail_msg("file %u has no path", file);
    else
        assert_string_equal(path, want);
}

/* ---- versions and opcodes ---- */

static void put_program(struct table *t)
{
    set_address(t, CODE + 0x100);
    put(t, 3, 1); /* advance_line */
    put_uleb(t, 9);
    put(t, 1, 1); /* copy */
    put(t, 5, 1); /* set_column */
    put_uleb(t, 300);
    row(t, 4, -3);
    put(t, 4, 1); /* set_file */
    put_uleb(t, 2);
    put(t, 8, 1); /* const_add_pc: 17 */
    put(t, 3, 1);
    put(t, 0x7c, 1); /* -4 */
    row(t, 0, 0);
    put(t, 9, 1); /* fixed_advance_pc */
    put(t, 0x201, 2);
    put(t, 6, 1); /* negate_stmt */
    put(t, 7, 1);
    put(t, 10, 1);
    put(t, 11, 1);
    put(t, 12, 1); /* set_isa */
    put_uleb(t, 1000);
    put(t, 0, 1); /* set_discriminator */
    put(t, 3, 1);
    put(t, 4, 1);
    put_uleb(t, 1000);
    put(t, 0, 1); /* nobody's */
    put(t, 2, 1);
    put(t, 0x99, 1);
    put(t, 1, 1);
    row(t, 0, 1);
    end_sequence(t, 3);
}

static void every_version_gives_its_rows(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 16; i++) {
        struct table t = {.version = 2 + i % 4, .wide = (i & 4) != 0, .big = (i & 8) != 0};
        struct reading r;
        begin(&t);
        put_program(&t);
        open_table(&r, &t);
        expect_none(&r, CODE + 0xff);
        expect_row(&r, CODE + 0x100, 1, 10, 0);
        expect_row(&r, CODE + 0x103, 1, 10, 0);
        expect_row(&r, CODE + 0x104, 1, 7, 300);
        expect_row(&r, CODE + 0x114, 1, 7, 300);
        expect_row(&r, CODE + 0x115, 2, 3, 300);
        expect_row(&r, CODE + 0x315, 2, 3, 300);
        expect_row(&r, CODE + 0x316, 2, 4, 300);
        expect_row(&r, CODE + 0x318, 2, 4, 300);
        expect_none(&r, CODE + 0x319);
        assert_int_equal(symint_line_rows(r.table), 0); /* once */
        expect_row(&r, CODE + 0x316, 2, 4, 300);
        assert_true(symint_line_bytes(r.table) > 0);
        close_reading(&r);
    }
}

static void opcodes_nobody_knows_are_skipped_by_their_lengths(void **state)
{
    (void)state;
    struct table t = {.opcode_base = 20};
    struct reading r;
    begin(&t);
    set_address(&t, CODE);
    put(&t, 19, 1);
    put_uleb(&t, 1000);
    put_uleb(&t, 1);
    row(&t, 0, 6);
    end_sequence(&t, 4);
    open_table(&r, &t);
    expect_row(&r, CODE, 1, 7, 0);
    close_reading(&r);
}

static void a_small_opcode_base_leaves_less_standard_opcodes(void **state)
{
    (void)state;
    struct table t = {.version = 2, .opcode_base = 10};
    struct reading r;
    begin(&t);
    set_address(&t, CODE);
    row(&t, 0, -5 + 2); /* 12 */
    end_sequence(&t, 4);
    open_table(&r, &t);
    expect_line(&r, CODE, (uint32_t)-2);
    close_reading(&r);
}

static void every_opcode_advances_by_its_quotient(void **state)
{
    (void)state;
    for (unsigned opcode = 13; opcode <= 255; opcode++) {
        struct table t = {.min_instruction_length = 4};
        struct reading r;
        begin(&t);
        set_address(&t, CODE);
        put(&t, 3, 1);
        put_uleb(&t, 50);
        put(&t, 1, 1);
        put(&t, opcode, 1);
        end_sequence(&t, 1);
        open_table(&r, &t);
        unsigned at = (opcode - 13) / 14 * 4;
        expect_line(&r, CODE + at, 51 - 5 + (opcode - 13) % 14);
        if (at > 0)
            expect_line(&r, CODE + at - 1, 51);
        expect_none(&r, CODE + at + 4);
        close_reading(&r);
    }
}

static void operations_of_long_instructions_are_counted(void **state)
{
    (void)state;
    struct table t = {.version = 4, .min_instruction_length = 16, .operations_per_instruction = 3};
    struct reading r;
    begin(&t);
    set_address(&t, CODE);
    row(&t, 0, 1);
    row(&t, 2, 1); /* the third operation of the first instruction */
    row(&t, 2, 1); /* the second of the second */
    put(&t, 2, 1);
    put_uleb(&t, 5); /* the first of the fourth */
    row(&t, 0, 1);
    end_sequence(&t, 3);
    open_table(&r, &t);
    expect_line(&r, CODE, 3);
    expect_line(&r, CODE + 15, 3);
    expect_line(&r, CODE + 16, 4);
    expect_line(&r, CODE + 47, 4);
    expect_line(&r, CODE + 48, 5);
    expect_line(&r, CODE + 63, 5);
    expect_none(&r, CODE + 64);
    close_reading(&r);
}

static void an_address_has_the_size_that_its_opcode_says(void **state)
{
    (void)state;
    static const unsigned sizes[] = {1, 2, 3, 4, 8};
    for (unsigned i = 0; i < 5; i++) {
        struct table t = {.big = i % 2 != 0};
        struct reading r;
        begin(&t);
        set_address(&t, CODE);
        row(&t, 0, 1);
        end_sequence(&t, 4);
        put(&t, 0, 1);
        put(&t, 1 + sizes[i], 1);
        put(&t, 2, 1);
        put(&t, 0x70, sizes[i]);
        row(&t, 0, 2);
        end_sequence(&t, 4);
        finish(&t);
        assert_true(open_bytes(&r, t.data, t.size, t.big));
        struct symint_code_range code[] = {{0x60, 0x90}, {CODE, CODE + CODE_SIZE}};
        r.sections.code = code;
        r.sections.code_count = 2;
        assert_int_equal(symint_line_rows(r.table), 0);
        expect_line(&r, CODE, 2);
        if (sizes[i] == 3) /* damaged from there on */
            expect_none(&r, 0x70);
        else
            expect_line(&r, 0x70, 3);
        close_reading(&r);
    }
}

/* ---- rows ---- */

static void the_last_row_of_an_address_wins(void **state)
{
    (void)state;
    struct table t = {0};
    struct reading r;
    begin(&t);
    set_address(&t, CODE);
    row(&t, 0, 1);
    row(&t, 0, 1);
    row(&t, 3, 1);
    row(&t, 0, 5);
    row(&t, 0, 1);
    row(&t, 2, 1);
    row(&t, 0, 1);
    end_sequence(&t, 0); /* the last two have no addresses */
    open_table(&r, &t);
    expect_line(&r, CODE + 2, 3);
    expect_line(&r, CODE + 3, 10);
    expect_line(&r, CODE + 4, 10);
    expect_none(&r, CODE + 5);
    close_reading(&r);
}

static void a_row_may_say_that_there_is_no_line(void **state)
{
    (void)state;
    struct table t = {0};
    struct reading r;
    begin(&t);
    set_address(&t, CODE);
    row(&t, 0, 1);
    row(&t, 2, -2);
    row(&t, 2, 2);
    end_sequence(&t, 4);
    open_table(&r, &t);
    expect_row(&r, CODE + 1, 1, 2, 0);
    expect_row(&r, CODE + 3, 1, 0, 0);
    expect_row(&r, CODE + 4, 1, 2, 0);
    close_reading(&r);
}

static void large_numbers_are_kept(void **state)
{
    (void)state;
    static const uint32_t files[] = {1, 0xfffe, 0xffff, 0x10000, 0xfffffffe};
    static const uint32_t columns[] = {0, 0xfffe, 0xffff, 0x10000, 0xfffffffe};
    static const uint32_t lines[] = {0, 1, 0xffff, 0x10000, 0xffffffff};
    struct table t = {0};
    struct reading r;
    begin(&t);
    set_address(&t, CODE);
    uint32_t line = 1;
    for (unsigned i = 0; i < 125; i++) {
        put(&t, 4, 1);
        put_uleb(&t, files[i % 5]);
        put(&t, 5, 1);
        put_uleb(&t, columns[i / 5 % 5]);
        put(&t, 3, 1);
        put_uleb(&t, (uint64_t)(lines[i / 25] - line) & UINT32_MAX);
        line = lines[i / 25];
        put(&t, 1, 1);
        put(&t, 2, 1);
        put_uleb(&t, 3);
    }
    end_sequence(&t, 0);
    open_table(&r, &t);
    for (unsigned i = 0; i < 125; i++)
        expect_row(&r, CODE + i * 3 + 1, files[i % 5], lines[i / 25], columns[i / 5 % 5]);
    expect_none(&r, CODE + 375);
    close_reading(&r);
}

static void a_sequence_may_be_larger_than_4_gib(void **state)
{
    (void)state;
    struct table t = {0};
    struct reading r;
    begin(&t);
    set_address(&t, CODE);
    row(&t, 0, 1);
    row(&t, 1, 1);
    for (int i = 0; i < 3; i++) {
        put(&t, 2, 1);
        put_uleb(&t, i == 1 ? 0xfffffff0u : 0x180000000u);
        row(&t, 0, 1);
    }
    end_sequence(&t, 0x200000000u);
    finish(&t);
    assert_true(open_bytes(&r, t.data, t.size, false));
    r.code.end = CODE + 0x1000000000u;
    assert_int_equal(symint_line_rows(r.table), 0);
    expect_line(&r, CODE, 2);
    expect_line(&r, CODE + 1, 3);
    expect_line(&r, CODE + 0x180000000u, 3);
    expect_line(&r, CODE + 0x180000001u, 4);
    expect_line(&r, CODE + 0x27ffffff0u, 4);
    expect_line(&r, CODE + 0x27ffffff1u, 5);
    expect_line(&r, CODE + 0x3fffffff0u, 5);
    expect_line(&r, CODE + 0x3fffffff1u, 6);
    expect_line(&r, CODE + 0x5fffffff0u, 6);
    expect_none(&r, CODE + 0x5fffffff1u);
    close_reading(&r);
}

static void addresses_that_go_back_are_still_answered(void **state)
{
    (void)state;
    struct table t = {0};
    struct reading r;
    begin(&t);
    set_address(&t, CODE + 0x20);
    row(&t, 0, 1);
    row(&t, 8, 1);
    set_address(&t, CODE + 0x10);
    row(&t, 0, 1);
    row(&t, 4, 1);
    set_address(&t, CODE + 0x30);
    row(&t, 0, 1);
    end_sequence(&t, 8);
    open_table(&r, &t);
    expect_line(&r, CODE + 0x10, 4);
    expect_line(&r, CODE + 0x14, 5);
    expect_line(&r, CODE + 0x20, 2); /* its own row starts later than that before the gap */
    expect_line(&r, CODE + 0x28, 5);
    expect_line(&r, CODE + 0x30, 6);
    expect_none(&r, CODE + 0x38);
    close_reading(&r);
}

/* ---- sequences ---- */

static void sequence(struct table *t, uint64_t start, uint64_t size, int line)
{
    set_address(t, start);
    put(t, 3, 1);
    put(t, 0x80 | (unsigned)(line - 1), 1);
    put(t, 0, 1);
    put(t, 1, 1);
    end_sequence(t, size);
}

static void sequences_come_in_any_order(void **state)
{
    (void)state;
    struct table t = {0};
    struct reading r;
    begin(&t);
    sequence(&t, CODE + 0x40, 0x10, 3);
    sequence(&t, CODE + 0x10, 0x10, 1);
    sequence(&t, CODE + 0x20, 0x10, 2);
    open_table(&r, &t);
    expect_none(&r, CODE + 0xf);
    expect_line(&r, CODE + 0x10, 1);
    expect_line(&r, CODE + 0x1f, 1);
    expect_line(&r, CODE + 0x20, 2);
    expect_none(&r, CODE + 0x30);
    expect_line(&r, CODE + 0x4f, 3);
    expect_none(&r, CODE + 0x50);
    expect_none(&r, UINT64_MAX);
    close_reading(&r);
}

static void of_overlapping_sequences_the_latest_start_wins(void **state)
{
    (void)state;
    struct table t = {0};
    struct reading r;
    begin(&t);
    sequence(&t, CODE, 0x100, 1);
    sequence(&t, CODE + 0x10, 0x10, 2);
    sequence(&t, CODE + 0x18, 0x10, 3);
    sequence(&t, CODE + 0x40, 0x20, 4);
    sequence(&t, CODE + 0x40, 0x10, 5);
    sequence(&t, CODE + 0x80, 0x10, 6);
    sequence(&t, CODE + 0x80, 0x10, 7); /* a function that was folded into the one before */
    open_table(&r, &t);
    expect_line(&r, CODE + 0xf, 1);
    expect_line(&r, CODE + 0x10, 2);
    expect_line(&r, CODE + 0x18, 3);
    expect_line(&r, CODE + 0x27, 3);
    expect_line(&r, CODE + 0x28, 1);
    expect_line(&r, CODE + 0x40, 5);
    expect_line(&r, CODE + 0x50, 4);
    expect_line(&r, CODE + 0x60, 1);
    expect_line(&r, CODE + 0x80, 6);
    expect_line(&r, CODE + 0xff, 1);
    expect_none(&r, CODE + 0x100);
    close_reading(&r);
}

static void what_a_linker_left_of_removed_code_does_not_count(void **state)
{
    (void)state;
    static const uint64_t starts[] = {
        0, 1, UINT64_MAX, UINT64_MAX - 1, CODE - 0x10, CODE + CODE_SIZE - 4, CODE + CODE_SIZE};
    struct table t = {0};
    struct reading r;
    begin(&t);
    for (unsigned i = 0; i < 7; i++)
        sequence(&t, starts[i], 0x20, 1);
    sequence(&t, CODE, 0, 1);     /* empty */
    set_address(&t, CODE + 0x20); /* reversed */
    row(&t, 0, 1);
    set_address(&t, CODE + 0x10);
    end_sequence(&t, 0);
    sequence(&t, CODE + 0x100, 0x10, 7);
    open_table(&r, &t);
    for (unsigned i = 0; i < 7; i++)
        expect_none(&r, starts[i]);
    expect_none(&r, CODE);
    expect_none(&r, CODE + 0x10);
    expect_none(&r, CODE + 0x20);
    expect_line(&r, CODE + 0x100, 7);
    close_reading(&r);
}

static void a_program_that_breaks_off_keeps_what_was_ended(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct table t = {0};
        struct reading r;
        begin(&t);
        sequence(&t, CODE, 0x10, 1);
        set_address(&t, CODE + 0x40);
        row(&t, 0, 1);
        row(&t, 4, 1);
        if (i == 1)
            put(&t, 2, 1); /* no operand */
        if (i == 2) {
            put(&t, 0, 1); /* longer than the table */
            put(&t, 100, 1);
            put(&t, 1, 1);
        }
        open_table(&r, &t);
        expect_line(&r, CODE, 1);
        expect_none(&r, CODE + 0x40);
        close_reading(&r);
    }
}

static void rows_of_many_tables_share_memory(void **state)
{
    (void)state;
    struct symint_line_scratch scratch = {0};
    for (int i = 0; i < 4; i++) {
        struct table t = {0};
        struct reading r;
        begin(&t);
        for (int k = 0; k <= i; k++)
            sequence(&t, CODE + 0x10u * (unsigned)k, 0x10, k + i + 1);
        finish(&t);
        assert_true(open_bytes(&r, t.data, t.size, false));
        assert_int_equal(symint_line_rows_with(r.table, &scratch), 0);
        expect_line(&r, CODE, (uint32_t)i + 1);
        expect_line(&r, CODE + 0x10u * (unsigned)i, (uint32_t)i * 2 + 1);
        close_reading(&r);
    }
    symint_line_scratch_free(&scratch);
}

/* ---- files ---- */

static void file_numbers_begin_at_0_in_version_5_and_at_1_before(void **state)
{
    (void)state;
    for (unsigned version = 2; version <= 5; version++) {
        struct table t = {.version = version};
        struct reading r;
        begin(&t);
        open_table(&r, &t);
        unsigned first = version < 5 ? 1 : 0;
        if (version < 5)
            expect_path(&r, "/src", 0, NULL);
        expect_path(&r, "/src", first, "/src/a.c");
        expect_path(&r, "/src", first + 1, "/src/inc/b.h");
        expect_path(&r, "/src", first + 2, NULL);
        expect_path(&r, "/src", UINT32_MAX, NULL);
        close_reading(&r);
    }
}

/* The path of file 1 of a version 4 table with one directory. */
static void check_join(const char *comp_dir, const char *directory, const char *file,
                       const char *want)
{
    struct table t = {.version = 4, .own_names = true};
    struct reading r;
    begin(&t);
    if (directory != NULL)
        put_text(&t, directory);
    put(&t, 0, 1);
    put_text(&t, file);
    put(&t, directory != NULL, 1);
    put(&t, 0, 2);
    put(&t, 0, 1);
    end_header(&t);
    open_table(&r, &t);
    expect_path(&r, comp_dir, 1, want);
    close_reading(&r);
}

static void absolute_parts_of_a_path_win(void **state)
{
    (void)state;
    check_join("/c", "d", "f.c", "/c/d/f.c");
    check_join("/c", NULL, "f.c", "/c/f.c");
    check_join("/c", "/d", "f.c", "/d/f.c");
    check_join("/c", "d", "/f.c", "/f.c");
    check_join("/c", "/d", "/f.c", "/f.c");
    check_join(NULL, "d", "f.c", "d/f.c");
    check_join(NULL, NULL, "f.c", "f.c");
    check_join("", NULL, "f.c", "f.c");
    check_join("rel", "d", "f.c", "rel/d/f.c");
    check_join("/c", "d", "C:\\x\\f.c", "C:\\x\\f.c");
}

static void of_a_path_only_dots_and_double_slashes_go(void **state)
{
    (void)state;
    check_join("/c/", "./d//", ".//f.c", "/c/d/f.c");
    check_join("//c/./e", "../d", "././f.c", "/c/e/../d/f.c");
    check_join("/c", ".", "f.c", "/c/f.c");
    check_join(".", ".", "./f.c", "f.c");
    check_join("/", "d", ".f.c", "/d/.f.c");
    check_join("/c", "d.", "..f", "/c/d./..f");
}

static void the_first_directory_of_version_5_is_the_compilers(void **state)
{
    (void)state;
    static const struct {
        const char *comp_dir, *own, *file0, *file1;
    } cases[] = {
        {"/c", "/own", "/own/f", "/c/d/f"},
        {NULL, "/own", "/own/f", "/own/d/f"},
        {"/c", "own", "/c/own/f", "/c/d/f"},
        {"rel", "rel", "rel/f", "rel/d/f"},
        {".", ".", "f", "d/f"},
        {NULL, "own", "own/f", "own/d/f"},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct table t = {.own_names = true};
        struct reading r;
        begin(&t);
        put(&t, 1, 1);
        put(&t, 1, 1);
        put(&t, 8, 1);
        put(&t, 2, 1);
        put_text(&t, cases[i].own);
        put_text(&t, "d");
        put(&t, 2, 1);
        put(&t, 1, 1);
        put(&t, 8, 1);
        put(&t, 2, 1);
        put(&t, 11, 1);
        put(&t, 2, 1);
        put_text(&t, "f");
        put(&t, 0, 1);
        put_text(&t, "f");
        put(&t, 1, 1);
        end_header(&t);
        open_table(&r, &t);
        expect_path(&r, cases[i].comp_dir, 0, cases[i].file0);
        expect_path(&r, cases[i].comp_dir, 1, cases[i].file1);
        close_reading(&r);
    }
}

static void a_program_may_define_files(void **state)
{
    (void)state;
    struct table t = {.version = 3};
    struct reading r;
    begin(&t);
    put(&t, 0, 1);
    put(&t, 1 + 4 + 3, 1);
    put(&t, 3, 1);
    put_text(&t, "c.h");
    put(&t, 1, 1);
    put(&t, 0, 2);
    set_address(&t, CODE);
    put(&t, 4, 1);
    put(&t, 3, 1);
    row(&t, 0, 1);
    end_sequence(&t, 4);
    open_table(&r, &t);
    expect_row(&r, CODE, 3, 2, 0);
    expect_path(&r, "/src", 3, "/src/inc/c.h");
    close_reading(&r);
}

/* ---- forms ---- */

static void put_form(struct table *t, unsigned form)
{
    switch (form) {
    case 0x08: /* string */
        put_text(t, "line.c");
        break;
    case 0x1f: /* line_strp */
        put_offset(t, 11);
        break;
    case 0x0e: /* strp */
        put_offset(t, 0);
        break;
    case 0x1d: /* strp_sup */
    case 0x1f21:
    case 0x17:
        put_offset(t, 0x7777);
        break;
    case 0x1a: /* strx */
    case 0x0f: /* udata */
    case 0x0d:
        put_uleb(t, 1000);
        break;
    case 0x25:
    case 0x26:
    case 0x27:
    case 0x28:
        for (unsigned i = form - 0x25 + 1; i > 0; i--)
            put(t, 1, 1);
        break;
    case 0x0b:
        put(t, 1, 1);
        break;
    case 0x05:
        put(t, 1, 2);
        break;
    case 0x06:
        put(t, 1, 4);
        break;
    case 0x07:
        put(t, 1, 8);
        break;
    case 0x1e: /* data16 */
        put(t, 1, 8);
        put(t, 1, 8);
        break;
    case 0x09: /* blocks of two bytes */
    case 0x0a:
        put(t, 2, 1);
        put(t, 1, 2);
        break;
    case 0x03:
        put(t, 2, 2);
        put(t, 1, 2);
        break;
    case 0x04:
        put(t, 2, 4);
        put(t, 1, 2);
        break;
    default:
        put(t, 0, 8);
    }
}

static void every_form_has_its_length(void **state)
{
    (void)state;
    static const struct {
        unsigned form;
        const char *name; /* when it is the path */
    } forms[] = {{0x08, "line.c"}, {0x1f, "line.c"}, {0x0e, "str.c"}, {0x1d, NULL}, {0x1f21, NULL},
                 {0x17, NULL},     {0x1a, NULL},     {0x25, NULL},    {0x26, NULL}, {0x27, NULL},
                 {0x28, NULL},     {0x0f, NULL},     {0x0d, NULL},    {0x0b, NULL}, {0x05, NULL},
                 {0x06, NULL},     {0x07, NULL},     {0x1e, NULL},    {0x09, NULL}, {0x0a, NULL},
                 {0x03, NULL},     {0x04, NULL}};
    for (unsigned i = 0; i < 4 * sizeof(forms) / sizeof(forms[0]); i++) {
        struct table t = {.own_names = true, .wide = i % 2 != 0, .big = i / 2 % 2 != 0};
        struct reading r;
        unsigned form = forms[i / 4].form;
        char want[32];
        begin(&t);
        put(&t, 0, 2); /* no directories */
        put(&t, 3, 1);
        put(&t, 1, 1); /* path */
        put_uleb(&t, form);
        put_uleb(&t, 0x2001); /* somebody's own */
        put_uleb(&t, form);
        put(&t, 1, 1); /* path again: the last one counts; so that the second file's is readable */
        put_uleb(&t, form);
        put(&t, 2, 1);
        for (int k = 0; k < 6; k++)
            put_form(&t, form);
        end_header(&t);
        sequence(&t, CODE, 4, 77);
        open_table(&r, &t);
        expect_line(&r, CODE, 77);
        snprintf(want, sizeof(want), "/c/%s", forms[i / 4].name != NULL ? forms[i / 4].name : "");
        expect_path(&r, "/c", 0, forms[i / 4].name != NULL ? want : NULL);
        expect_path(&r, "/c", 1, forms[i / 4].name != NULL ? want : NULL);
        expect_path(&r, "/c", 2, NULL);
        close_reading(&r);
    }
}

static void directory_numbers_have_any_form(void **state)
{
    (void)state;
    static const unsigned forms[] = {0x0b, 0x05, 0x06, 0x07};
    for (unsigned i = 0; i < 8; i++) {
        struct table t = {.own_names = true, .big = i % 2 != 0};
        struct reading r;
        begin(&t);
        put(&t, 1, 1);
        put(&t, 1, 1);
        put(&t, 0x1f, 1);
        put(&t, 2, 1);
        put_offset(&t, 0);
        put_offset(&t, 6); /* /abs */
        put(&t, 2, 1);
        put(&t, 2, 1);
        put(&t, forms[i / 2], 1);
        put(&t, 1, 1);
        put(&t, 0x0e, 1);
        put(&t, 1, 1);
        put_form(&t, forms[i / 2]);
        put_offset(&t, 0);
        end_header(&t);
        open_table(&r, &t);
        expect_path(&r, "/c", 0, "/abs/str.c");
        close_reading(&r);
    }
}

static void names_outside_their_section_are_none(void **state)
{
    (void)state;
    struct table t = {.own_names = true};
    struct reading r;
    begin(&t);
    put(&t, 0, 2);
    put(&t, 1, 1);
    put(&t, 1, 1);
    put(&t, 0x1f, 1);
    put(&t, 2, 1);
    put_offset(&t, 0xfffffff0);
    put_offset(&t, 11);
    end_header(&t);
    open_table(&r, &t);
    expect_path(&r, "/c", 0, NULL);
    expect_path(&r, "/c", 1, "/c/line.c");
    close_reading(&r);
}

/* ---- damage ---- */

static void headers_that_cannot_be_are_damaged(void **state)
{
    (void)state;
    struct table t = {.no_line_range = true};
    begin(&t);
    expect_damaged(&t);

    t = (struct table){.version = 6};
    begin(&t);
    expect_damaged(&t);

    t = (struct table){.version = 1};
    begin(&t);
    expect_damaged(&t);

    t = (struct table){.version = 4};
    begin(&t);
    patch(&t, t.header_at, t.size); /* the program begins beyond the table */
    expect_damaged(&t);

    t = (struct table){.own_names = true}; /* an unknown form */
    begin(&t);
    put(&t, 1, 1);
    put(&t, 1, 1);
    put(&t, 0x7e, 1);
    put(&t, 1, 1);
    put(&t, 0, 8);
    put(&t, 0, 8);
    end_header(&t);
    expect_damaged(&t);

    for (unsigned width = 0; width < 2; width++) { /* more files than bytes */
        t = (struct table){.own_names = true};
        begin(&t);
        put(&t, 0, 2);
        put(&t, width, 1);
        for (unsigned i = 0; i < width; i++)
            put(&t, 0x0b01, 2);
        put_uleb(&t, 0x7fffffffffff);
        put(&t, 1, 4);
        end_header(&t);
        expect_damaged(&t);
    }
}

static void a_table_beyond_its_section_is_damaged(void **state)
{
    (void)state;
    struct table t = {0};
    struct reading r;
    begin(&t);
    put_program(&t);
    finish(&t);
    assert_false(open_bytes(&r, t.data, t.size - 1, false));
    close_reading(&r);
    assert_true(open_bytes(&r, t.data, t.size, false));
    symint_line_free(r.table);
    for (unsigned i = 0; i < 4; i++) {
        static const uint64_t offsets[] = {1, 0x7fffffff, UINT64_MAX, UINT64_MAX - 7};
        assert_int_equal(symint_line_open(&r.sections, i == 1 ? t.size : offsets[i], 8, &r.table),
                         0);
        assert_null(r.table);
    }
    close_reading(&r);
}

static void use(const uint8_t *data, size_t size, bool big)
{
    struct reading r;
    if (open_bytes(&r, data, size, big)) {
        struct symint_line_row row;
        const char *path;
        assert_int_equal(symint_line_rows(r.table), 0);
        for (uint64_t a = CODE; a < CODE + 0x400; a += 3)
            if (symint_line_find(r.table, a, &row))
                assert_int_equal(symint_line_path(r.table, &r.strings, "/c", row.file, &path), 0);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(symint_line_path(r.table, &r.strings, "/c", i, &path), 0);
        assert_true(symint_line_bytes(r.table) < 100000);
    }
    close_reading(&r);
}

static void tables_cut_or_changed_anywhere_do_no_harm(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct table t = {.version = i % 2 == 0 ? 5 : 4, .wide = i == 2, .big = i == 3};
        begin(&t);
        put_program(&t);
        sequence(&t, CODE + 0x80, 0x300, 9);
        finish(&t);
        for (size_t cut = 0; cut < t.size; cut++) {
            use(t.data, cut, t.big);
            struct table shorter = t; /* with a length that fits */
            if (cut > t.header_at + 8) {
                shorter.size = cut;
                finish(&shorter);
                use(shorter.data, cut, t.big);
            }
        }
        for (size_t at = 0; at < t.size; at++) {
            uint8_t was = t.data[at];
            for (unsigned bit = 0; bit < 8; bit++) {
                t.data[at] = was ^ (uint8_t)(1u << bit);
                use(t.data, t.size, t.big);
            }
            t.data[at] = 0xff;
            use(t.data, t.size, t.big);
            t.data[at] = was;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_gives_its_rows),
        cmocka_unit_test(opcodes_nobody_knows_are_skipped_by_their_lengths),
        cmocka_unit_test(a_small_opcode_base_leaves_less_standard_opcodes),
        cmocka_unit_test(every_opcode_advances_by_its_quotient),
        cmocka_unit_test(operations_of_long_instructions_are_counted),
        cmocka_unit_test(an_address_has_the_size_that_its_opcode_says),
        cmocka_unit_test(the_last_row_of_an_address_wins),
        cmocka_unit_test(a_row_may_say_that_there_is_no_line),
        cmocka_unit_test(large_numbers_are_kept),
        cmocka_unit_test(a_sequence_may_be_larger_than_4_gib),
        cmocka_unit_test(addresses_that_go_back_are_still_answered),
        cmocka_unit_test(sequences_come_in_any_order),
        cmocka_unit_test(of_overlapping_sequences_the_latest_start_wins),
        cmocka_unit_test(what_a_linker_left_of_removed_code_does_not_count),
        cmocka_unit_test(a_program_that_breaks_off_keeps_what_was_ended),
        cmocka_unit_test(rows_of_many_tables_share_memory),
        cmocka_unit_test(file_numbers_begin_at_0_in_version_5_and_at_1_before),
        cmocka_unit_test(absolute_parts_of_a_path_win),
        cmocka_unit_test(of_a_path_only_dots_and_double_slashes_go),
        cmocka_unit_test(the_first_directory_of_version_5_is_the_compilers),
        cmocka_unit_test(a_program_may_define_files),
        cmocka_unit_test(every_form_has_its_length),
        cmocka_unit_test(directory_numbers_have_any_form),
        cmocka_unit_test(names_outside_their_section_are_none),
        cmocka_unit_test(headers_that_cannot_be_are_damaged),
        cmocka_unit_test(a_table_beyond_its_section_is_damaged),
        cmocka_unit_test(tables_cut_or_changed_anywhere_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
