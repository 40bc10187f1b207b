/* SPDX-License-Identifier: MIT */
/* Packed symbols: what goes in comes out, in the same bytes whatever the order; damaged and hostile files. */
#include "elf_private.h"
#include "packed.h"
#include "packed_format.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEVELS 3
#define ADDRESSES 200u

static struct symint_strings strings;

/* A program with one executable segment at a distance between offsets and addresses. */
static struct segment segments[] = {
    {.offset = 0, .size = 0x800, .memory_size = 0x800, .vaddr = 0x10000, .align = 4096},
    {.offset = 0x1000,
     .size = 0x20000,
     .memory_size = 0x20000,
     .vaddr = 0x12000,
     .align = 4096,
     .executable = true},
};
static const struct symint_elf elf = {.machine = EM_X86_64,
                                      .segments = segments,
                                      .segment_count = 2,
                                      .build_id = {0xab, 0xcd, 0xef},
                                      .build_id_size = 3};

static struct symint_text *text(const char *t)
{
    struct symint_text *interned = symint_intern(&strings, t, strlen(t));
    assert_non_null(interned);
    return interned;
}

/* Facts about address number i: functions of 64 bytes, every second address with inlined calls in it. */
struct made {
    struct symint_facts facts;
    struct symint_dwarf_level levels[LEVELS];
    struct symint_code_range piece;
    char name[32];
};

static void make_facts(struct made *m, uint32_t i)
{
    uint64_t vaddr = 0x12000 + 16u * i;
    uint64_t start = vaddr & ~(uint64_t)63;
    memset(m, 0, sizeof(*m));
    snprintf(m->name, sizeof(m->name), "_Z8function%u", (unsigned)(start / 64));
    m->facts.vaddr = vaddr;
    m->facts.has_symbol = true;
    m->facts.symbol = (struct symint_symbol){
        .start = start, .name = m->name, .name_size = strlen(m->name), .origin = SYM_ORIGIN_SYMTAB};
    m->facts.extent_start = start;
    m->facts.extent_end = start + 64;
    m->piece = (struct symint_code_range){start, start + 64};
    size_t count = i % 2 == 0 ? 1 : LEVELS;
    for (size_t l = 0; l < count; l++) {
        bool last = l == count - 1;
        m->levels[l] = (struct symint_dwarf_level){
            .name = text(last     ? m->name
                         : l == 0 ? "innermost"
                                  : "between"),
            .linkage = last,
            .file = text(last ? "/src/main.cc" : "/usr/include/inner.h")->text,
            .line = last ? i + 1 : 7,
            .column = 3,
            .start_line = 5};
    }
    m->facts.chain = (struct symint_dwarf_chain){.levels = m->levels,
                                                 .count = count,
                                                 .function = true,
                                                 .pieces = &m->piece,
                                                 .piece_count = 1};
}

/* The file of all addresses, added from the last to the first if `backwards`. */
static uint8_t *pack(enum sym_level level, bool backwards, size_t *size)
{
    struct symint_packer *p = symint_packer_new(level, &elf, backwards ? 77 : 0);
    uint8_t *data = NULL;
    assert_non_null(p);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        struct made m;
        make_facts(&m, backwards ? ADDRESSES - 1 - i : i);
        assert_int_equal(symint_packer_add(p, &m.facts), 0);
        if (i % 3 == 0) /* once more is no other address */
            assert_int_equal(symint_packer_add(p, &m.facts), 0);
    }
    assert_int_equal(symint_packer_finish(p, &data, size), 0);
    symint_packer_free(p);
    return data;
}

static struct symint_packed *open_packed(enum sym_level level)
{
    size_t size;
    struct symint_packed *p;
    const char *why;
    uint8_t *data = pack(level, false, &size);
    assert_int_equal(symint_packed_open(data, size, &p, &why), 0);
    assert_null(why);
    return p;
}

static void expect_level(const struct symint_dwarf_level *a, const struct symint_dwarf_level *b)
{
    assert_ptr_equal(a->name, b->name); /* both interned */
    assert_string_equal(a->file, b->file);
    assert_int_equal(a->linkage, b->linkage);
    assert_int_equal(a->line, b->line);
    assert_int_equal(a->column, b->column);
    assert_int_equal(a->start_line, b->start_line);
}

/* ---- round trips ---- */

static void addresses_come_out_as_they_went_in(void **state)
{
    (void)state;
    struct symint_packed *p = open_packed(SYM_LEVEL_LINES);
    assert_int_equal(symint_packed_count(p), ADDRESSES);
    assert_int_equal(symint_packed_level(p), SYM_LEVEL_LINES);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        struct made m;
        struct symint_facts f;
        make_facts(&m, i);
        assert_int_equal(symint_packed_exact(p, &strings, NULL, m.facts.vaddr, &f), 1);
        assert_true(f.has_symbol);
        assert_int_equal(f.vaddr, m.facts.vaddr);
        assert_int_equal(f.symbol.start, m.facts.symbol.start);
        assert_int_equal(f.symbol.origin, SYM_ORIGIN_SYMTAB);
        assert_string_equal(f.symbol.name, m.name);
        assert_int_equal(f.extent_start, m.facts.extent_start);
        assert_int_equal(f.extent_end, m.facts.extent_end);
        assert_true(f.chain.function);
        assert_int_equal(f.chain.count, m.facts.chain.count);
        for (size_t l = 0; l < f.chain.count; l++)
            expect_level(&f.chain.levels[l], &m.levels[l]);
        assert_true(f.chain.piece_count > 0);
        assert_int_equal(f.chain.pieces[0].start, m.piece.start);
    }
    symint_packed_free(p);
}

static void other_addresses_have_the_function_around_them(void **state)
{
    (void)state;
    struct symint_packed *p = open_packed(SYM_LEVEL_LINES);
    struct symint_facts f;
    assert_int_equal(symint_packed_exact(p, &strings, NULL, 0x12001, &f), 0);
    assert_int_equal(symint_packed_around(p, 0x12001, &f), 1);
    assert_string_equal(f.symbol.name, "_Z8function1152");
    assert_int_equal(f.chain.count, 0);
    assert_int_equal(symint_packed_around(p, 0x11fff, &f), 0);
    assert_int_equal(symint_packed_around(p, 0x12000 + 16 * ADDRESSES, &f), 0);
    symint_packed_free(p);
}

static void the_order_of_adding_makes_no_difference(void **state)
{
    (void)state;
    size_t size;
    size_t other_size;
    uint8_t *data = pack(SYM_LEVEL_LINES, false, &size);
    uint8_t *other = pack(SYM_LEVEL_LINES, true, &other_size);
    assert_int_equal(size, other_size);
    assert_memory_equal(data, other, size);
    free(data);
    free(other);
}

static void names_leave_out_what_symbols_say_better(void **state)
{
    (void)state;
    struct symint_packed *p = open_packed(SYM_LEVEL_NAMES);
    struct symint_facts f;
    assert_int_equal(symint_packed_exact(p, &strings, NULL, 0x12010, &f), 1);
    assert_string_equal(f.symbol.name, "_Z8function1152");
    assert_int_equal(f.chain.count, 0);
    assert_false(symint_packed_has(p, 0x12010, SYM_LEVEL_LINES));
    assert_true(symint_packed_has(p, 0x12010, SYM_LEVEL_NAMES));
    symint_packed_free(p);
}

static void names_keep_the_one_that_debug_information_gives(void **state)
{
    (void)state;
    struct symint_packer *packer = symint_packer_new(SYM_LEVEL_NAMES, &elf, 0);
    struct symint_packed *p;
    struct made m;
    struct symint_facts f;
    uint8_t *data;
    size_t size;
    const char *why;
    make_facts(&m, 1);
    m.facts.has_symbol = false; /* the file is stripped */
    m.facts.symbol = (struct symint_symbol){0};
    assert_int_equal(symint_packer_add(packer, &m.facts), 0);
    assert_int_equal(symint_packer_finish(packer, &data, &size), 0);
    symint_packer_free(packer);
    assert_int_equal(symint_packed_open(data, size, &p, &why), 0);
    assert_int_equal(symint_packed_exact(p, &strings, NULL, 0x12010, &f), 1);
    assert_false(f.has_symbol);
    assert_int_equal(f.chain.count, 1);
    assert_string_equal(f.chain.levels[0].name->text, "_Z8function1152");
    assert_null(f.chain.levels[0].file);
    assert_int_equal(f.chain.levels[0].line, 0);
    assert_int_equal(f.chain.piece_count, 1);
    assert_int_equal(f.chain.pieces[0].start, 0x12000);
    symint_packed_free(p);
}

static void options_leave_out_what_lookups_would(void **state)
{
    (void)state;
    struct symint_packed *p = open_packed(SYM_LEVEL_LINES);
    struct sym_options no_inlines = {.size = sizeof(no_inlines), .no_inlines = true};
    struct sym_options no_lines = {.size = sizeof(no_lines), .no_lines = true};
    struct symint_facts f;
    /* Number 1 has two inlined levels: the last one's line is that of the call in it. */
    assert_int_equal(symint_packed_exact(p, &strings, &no_inlines, 0x12010, &f), 1);
    assert_int_equal(f.chain.count, 1);
    assert_int_equal(f.chain.levels[0].line, 2);
    assert_int_equal(symint_packed_exact(p, &strings, &no_lines, 0x12010, &f), 1);
    assert_int_equal(f.chain.count, 3);
    assert_int_equal(f.chain.levels[0].line, 0);
    assert_null(f.chain.levels[0].file);
    assert_int_equal(f.chain.levels[1].line, 7);
    symint_packed_free(p);
}

static void offsets_are_seen_through_mappings(void **state)
{
    (void)state;
    struct symint_packed *p = open_packed(SYM_LEVEL_LINES);
    uint64_t vaddr;
    assert_true(symint_packed_vaddr(p, 0x1000, 0x20000, 0x1010, &vaddr));
    assert_int_equal(vaddr, 0x12010);
    assert_false(symint_packed_vaddr(p, 0x1000, 0x20000, 0x100000, &vaddr));
    symint_packed_free(p);
}

static void one_file_speaks_of_one_build(void **state)
{
    (void)state;
    struct symint_packed *p = open_packed(SYM_LEVEL_NAMES);
    assert_true(symint_packed_is_of(p, (const uint8_t *)"\xab\xcd\xef", 3));
    assert_false(symint_packed_is_of(p, (const uint8_t *)"\xab\xcd\xee", 3));
    assert_false(symint_packed_is_of(p, NULL, 0));
    symint_packed_free(p);
}

static void a_kernel_has_absolute_addresses(void **state)
{
    (void)state;
    struct symint_packer *packer = symint_packer_new(SYM_LEVEL_LINES, NULL, 0);
    struct symint_packed *p;
    struct symint_facts f = {.vaddr = UINT64_MAX - 15, .has_symbol = true, .name_stays = true};
    uint64_t vaddr;
    uint8_t *data;
    size_t size;
    const char *why;
    f.symbol = (struct symint_symbol){.start = UINT64_MAX - 20,
                                      .name = "last [mod]",
                                      .name_size = 10,
                                      .origin = SYM_ORIGIN_KALLSYMS};
    f.extent_start = UINT64_MAX - 20;
    f.extent_end = UINT64_MAX;
    f.symbol_unverified = true;
    assert_int_equal(symint_packer_add(packer, &f), 0);
    assert_int_equal(symint_packer_finish(packer, &data, &size), 0);
    symint_packer_free(packer);
    assert_int_equal(symint_packed_open(data, size, &p, &why), 0);
    assert_true(symint_packed_is_of(p, NULL, 0));
    assert_true(symint_packed_vaddr(p, 0, 0, UINT64_MAX - 15, &vaddr));
    assert_int_equal(vaddr, UINT64_MAX - 15);
    memset(&f, 0, sizeof(f));
    assert_int_equal(symint_packed_exact(p, &strings, NULL, vaddr, &f), 1);
    assert_string_equal(f.symbol.name, "last [mod]");
    assert_true(f.name_stays);
    assert_true(f.symbol_unverified);
    assert_int_equal(f.chain.count, 0);
    symint_packed_free(p);
}

static void nothing_makes_a_file_too(void **state)
{
    (void)state;
    struct symint_packer *packer = symint_packer_new(SYM_LEVEL_NAMES, &elf, 0);
    struct symint_packed *p;
    struct symint_facts f;
    uint8_t *data;
    size_t size;
    const char *why;
    assert_int_equal(symint_packer_finish(packer, &data, &size), 0);
    symint_packer_free(packer);
    assert_int_equal(symint_packed_open(data, size, &p, &why), 0);
    assert_non_null(p);
    assert_int_equal(symint_packed_exact(p, &strings, NULL, 0x12000, &f), 0);
    assert_int_equal(symint_packed_around(p, 0x12000, &f), 0);
    symint_packed_free(p);
}

static void what_is_known_to_be_nothing_is_there_without_an_answer(void **state)
{
    (void)state;
    struct symint_packer *packer = symint_packer_new(SYM_LEVEL_LINES, &elf, 0);
    struct symint_packed *p;
    struct symint_facts f = {.vaddr = 0x12010};
    uint8_t *data;
    size_t size;
    const char *why;
    assert_int_equal(symint_packer_add(packer, &f), 0);
    assert_int_equal(symint_packer_finish(packer, &data, &size), 0);
    symint_packer_free(packer);
    assert_int_equal(symint_packed_open(data, size, &p, &why), 0);
    assert_true(symint_packed_has(p, 0x12010, SYM_LEVEL_LINES));
    assert_false(symint_packed_has(p, 0x12011, SYM_LEVEL_LINES));
    assert_int_equal(symint_packed_exact(p, &strings, NULL, 0x12010, &f), 0);
    symint_packed_free(p);
}

/* ---- damage ---- */

/* Why bytes are no file; NULL: they are one. */
static const char *fault_of(const uint8_t *data, size_t size)
{
    struct symint_packed *p;
    const char *why;
    uint8_t *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    assert_int_equal(symint_packed_open(copy, size, &p, &why), 0);
    assert_true((p == NULL) == (why != NULL));
    symint_packed_free(p);
    return why;
}

static void a_cut_file_is_none(void **state)
{
    (void)state;
    size_t size;
    uint8_t *data = pack(SYM_LEVEL_LINES, false, &size);
    for (size_t cut = 0; cut < size; cut += cut < 200 || cut + 200 > size ? 1 : 97)
        assert_non_null(fault_of(data, cut));
    assert_null(fault_of(data, size));
    free(data);
}

static void a_flipped_bit_is_found(void **state)
{
    (void)state;
    size_t size;
    uint8_t *data = pack(SYM_LEVEL_LINES, false, &size);
    for (size_t at = 0; at < size; at += at < 200 ? 1 : 61) {
        data[at] ^= 0x10;
        assert_non_null(fault_of(data, size));
        data[at] ^= 0x10;
    }
    free(data);
}

static void sign(uint8_t *data, size_t size)
{
    packed_put32(data + PACKED_AT_CRC, symint_packed_checksum(data, size));
}

/* A file with a true checksum may lie all the same: each 32-bit number in turn becomes an extreme one. */
static void lies_are_refused_or_harmless(void **state)
{
    (void)state;
    static const uint32_t extremes[] = {0, 1, 0x7fffffff, UINT32_MAX};
    size_t size;
    uint8_t *data = pack(SYM_LEVEL_LINES, false, &size);
    for (size_t at = PACKED_AT_LEVEL; at + 4 <= size; at += at < 200 ? 4 : 52) {
        uint32_t before = packed_get32(data + at);
        for (size_t e = 0; e < sizeof(extremes) / sizeof(extremes[0]); e++) {
            struct symint_packed *p;
            const char *why;
            uint8_t *copy = malloc(size);
            assert_non_null(copy);
            packed_put32(data + at, extremes[e]);
            sign(data, size);
            memcpy(copy, data, size);
            assert_int_equal(symint_packed_open(copy, size, &p, &why), 0);
            for (uint32_t i = 0; p != NULL && i < ADDRESSES; i++) {
                struct symint_facts f;
                uint64_t vaddr = 0x12000 + 16u * i;
                assert_true(symint_packed_exact(p, &strings, NULL, vaddr, &f) >= 0);
                assert_true(symint_packed_around(p, vaddr, &f) >= 0);
                symint_packed_vaddr(p, 0x1000, 0x20000, vaddr, &vaddr);
            }
            symint_packed_free(p);
        }
        packed_put32(data + at, before);
    }
    free(data);
}

static void levels_in_a_circle_are_refused(void **state)
{
    (void)state;
    size_t size;
    uint8_t *data = pack(SYM_LEVEL_LINES, false, &size);
    size_t at = PACKED_HEADER_BYTES;
    for (int t = 0; t < PACKED_LEVELS; t++)
        at += (size_t)packed_get32(data + PACKED_AT_COUNTS + 4 * t) * packed_row_bytes[t];
    packed_put32(data + at, 1); /* the first is its own outer level */
    sign(data, size);
    assert_string_equal(fault_of(data, size), "a level refers to what is not there");
    free(data);
}

static int teardown(void **state)
{
    (void)state;
    symint_strings_free(&strings);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_come_out_as_they_went_in),
        cmocka_unit_test(other_addresses_have_the_function_around_them),
        cmocka_unit_test(the_order_of_adding_makes_no_difference),
        cmocka_unit_test(names_leave_out_what_symbols_say_better),
        cmocka_unit_test(names_keep_the_one_that_debug_information_gives),
        cmocka_unit_test(options_leave_out_what_lookups_would),
        cmocka_unit_test(offsets_are_seen_through_mappings),
        cmocka_unit_test(one_file_speaks_of_one_build),
        cmocka_unit_test(a_kernel_has_absolute_addresses),
        cmocka_unit_test(nothing_makes_a_file_too),
        cmocka_unit_test(what_is_known_to_be_nothing_is_there_without_an_answer),
        cmocka_unit_test(a_cut_file_is_none),
        cmocka_unit_test(a_flipped_bit_is_found),
        cmocka_unit_test(lies_are_refused_or_harmless),
        cmocka_unit_test(levels_in_a_circle_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
