/* SPDX-License-Identifier: MIT */
/* Merging packed symbols: the result answers as its pieces did; what cannot be merged stays. */
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

#define PIECES 7
#define BEGIN 0x12000u
#define END 0x13000u

static struct symint_strings strings;

static struct segment segments[] = {{.offset = 0x1000,
                                     .size = 0x2000,
                                     .memory_size = 0x2000,
                                     .vaddr = BEGIN,
                                     .align = 4096,
                                     .executable = true}};
static const uint8_t build_id[] = {0xab, 0xcd, 0xef};
static const struct symint_elf program = {.machine = EM_X86_64,
                                          .segments = segments,
                                          .segment_count = 1,
                                          .build_id = {0xab, 0xcd, 0xef},
                                          .build_id_size = 3};

static struct symint_text *text(const char *t)
{
    struct symint_text *interned = symint_intern(&strings, t, strlen(t));
    assert_non_null(interned);
    return interned;
}

/* Adds an address as piece number `seed` knows it. Odd ones think functions larger, and say who they are in every name:
 * whose answer counts is seen then. */
static void add(struct symint_packer *p, uint64_t vaddr, unsigned seed)
{
    uint64_t bytes = seed % 2 == 0 ? 64 : 96;
    uint64_t start = vaddr - vaddr % bytes;
    char name[64];
    char file[64];
    snprintf(name, sizeof(name), "f%llx_%u", (unsigned long long)start, seed);
    snprintf(file, sizeof(file), "/src/%u.c", seed);
    struct symint_code_range piece = {vaddr - 4, vaddr + 4 + seed};
    struct symint_dwarf_level levels[] = {
        {.name = text("inner"), .file = file, .line = 3, .column = (uint32_t)(vaddr & 15)},
        {.name = text(name), .linkage = true, .file = file, .line = seed + 1, .start_line = 9}};
    struct symint_facts f = {.vaddr = vaddr,
                             .has_symbol = vaddr % 5 != 0,
                             .symbol = {.start = start,
                                        .name = name,
                                        .name_size = strlen(name),
                                        .origin = SYM_ORIGIN_SYMTAB},
                             .extent_start = start,
                             .extent_end = start + bytes,
                             .chain = {.levels = levels + vaddr % 2,
                                       .count = 2 - vaddr % 2,
                                       .function = vaddr % 3 != 0,
                                       .pieces = &piece,
                                       .piece_count = 1},
                             .symbol_unverified = seed % 3 == 0,
                             .chain_unverified = seed % 3 == 1,
                             .name_stays = vaddr % 7 == 0};
    if (!f.has_symbol)
        f.symbol = (struct symint_symbol){0};
    if ((vaddr + seed) % 13 == 0) { /* there was no debug information, and no name */
        f.chain.count = 0;
        f.symbol.name = NULL;
        f.symbol.name_size = 0;
    }
    f.final = (vaddr + seed) % 3 == 0 || (!f.has_symbol && f.chain.count == 0);
    if (vaddr % 11 == seed % 11) /* there was nothing */
        f = (struct symint_facts){.vaddr = vaddr, .final = true};
    assert_int_equal(symint_packer_add(p, &f), 0);
}

/* The first ones have lines. Each has addresses of its own, and some that others have. */
static struct sym_piece make_piece(const struct symint_elf *elf, enum sym_level level,
                                   unsigned seed)
{
    struct symint_packer *p = symint_packer_new(level, elf, 0);
    uint8_t *data;
    struct sym_piece piece = {0};
    assert_non_null(p);
    for (uint64_t at = BEGIN + seed; at < END; at += 3 + seed * 10)
        add(p, at, seed);
    assert_int_equal(symint_packer_finish(p, &data, &piece.size_bytes), 0);
    symint_packer_free(p);
    piece.data = data;
    return piece;
}

static void make_pieces(struct sym_piece pieces[PIECES])
{
    for (unsigned i = 0; i < PIECES; i++)
        pieces[i] = make_piece(&program, i < 4 ? SYM_LEVEL_LINES : SYM_LEVEL_NAMES, i);
}

static void free_pieces(struct sym_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)pieces[i].data);
}

static struct symint_packed *open_bytes(const uint8_t *data, size_t size)
{
    struct symint_packed *p;
    const char *why;
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, data, size);
    assert_int_equal(symint_packed_open(copy, size, &p, &why), 0);
    assert_null(why);
    return p;
}

/* The best answer of some files, as in facts.c; of functions around an address the first one. */
static bool ask(struct symint_packed *const *list, size_t count, bool exact, uint64_t vaddr,
                struct symint_facts *out)
{
    struct symint_packed *best = NULL;
    unsigned rank = 0;
    for (size_t i = 0; i < count; i++) {
        if (!exact && symint_packed_around(list[i], vaddr, out) > 0)
            return true;
        if (exact && symint_packed_exact(list[i], &strings, NULL, vaddr, out) > 0 &&
            (best == NULL || symint_facts_rank(out) > rank)) {
            best = list[i];
            rank = symint_facts_rank(out);
        }
    }
    return best != NULL && symint_packed_exact(best, &strings, NULL, vaddr, out) > 0;
}

static void expect_same(const struct symint_facts *a, const struct symint_facts *b)
{
    assert_int_equal(a->has_symbol, b->has_symbol);
    assert_int_equal(a->symbol_unverified, b->symbol_unverified);
    assert_int_equal(a->chain_unverified, b->chain_unverified);
    assert_int_equal(a->name_stays, b->name_stays);
    if (a->has_symbol) {
        assert_int_equal(a->symbol.start, b->symbol.start);
        assert_int_equal(a->symbol.origin, b->symbol.origin);
        assert_true((a->symbol.name == NULL) == (b->symbol.name == NULL));
        if (a->symbol.name != NULL)
            assert_string_equal(a->symbol.name, b->symbol.name);
    }
    assert_int_equal(a->chain.count, b->chain.count);
    assert_int_equal(a->chain.function, b->chain.function);
    assert_int_equal(a->chain.piece_count, b->chain.piece_count);
    for (size_t i = 0; i < a->chain.piece_count; i++) {
        assert_int_equal(a->chain.pieces[i].start, b->chain.pieces[i].start);
        assert_int_equal(a->chain.pieces[i].end, b->chain.pieces[i].end);
    }
    for (size_t i = 0; i < a->chain.count; i++) {
        const struct symint_dwarf_level *x = &a->chain.levels[i];
        const struct symint_dwarf_level *y = &b->chain.levels[i];
        assert_ptr_equal(x->name, y->name);
        assert_ptr_equal(x->file, y->file);
        assert_int_equal(x->linkage, y->linkage);
        assert_int_equal(x->line, y->line);
        assert_int_equal(x->column, y->column);
        assert_int_equal(x->start_line, y->start_line);
    }
}

static void expect_same_answers(struct symint_packed *const *before, size_t before_count,
                                struct symint_packed *const *after, size_t after_count)
{
    for (uint64_t at = BEGIN - 200; at < END + 200; at++) {
        for (int exact = 0; exact < 2; exact++) {
            struct symint_facts a;
            struct symint_facts b;
            bool there = ask(before, before_count, exact != 0, at, &a);
            assert_int_equal(ask(after, after_count, exact != 0, at, &b), there);
            if (there)
                expect_same(&a, &b);
        }
    }
}

static void free_merged(struct sym_merged *m)
{
    free(m->lines);
    free(m->names);
}

/* ---- merging ---- */

static void a_merged_piece_answers_as_its_pieces_did(void **state)
{
    (void)state;
    struct sym_piece pieces[PIECES];
    struct symint_packed *before[PIECES];
    struct symint_packed *after[2];
    struct sym_merged merged[PIECES / 2];
    size_t count;
    make_pieces(pieces);
    for (size_t i = 0; i < PIECES; i++) { /* these are in the order of lookups */
        before[i] = open_bytes(pieces[i].data, pieces[i].size_bytes);
        assert_true(i == 0 || i == 4 ||
                    symint_packed_count(before[i]) < symint_packed_count(before[i - 1]));
    }
    assert_int_equal(sym_pack_merge(pieces, PIECES, build_id, sizeof(build_id), merged, &count), 0);
    assert_int_equal(count, 1);
    for (size_t i = 0; i < PIECES; i++)
        assert_int_equal(pieces[i].merged, 0);
    after[0] = open_bytes(merged[0].lines, merged[0].lines_bytes);
    after[1] = open_bytes(merged[0].names, merged[0].names_bytes);
    assert_int_equal(symint_packed_level(after[0]), SYM_LEVEL_LINES);
    assert_int_equal(symint_packed_level(after[1]), SYM_LEVEL_NAMES);
    expect_same_answers(before, PIECES, after, 2);
    for (uint64_t at = BEGIN; at < END; at++) {
        bool names = false;
        bool lines = false;
        struct symint_facts f;
        for (size_t i = 0; i < PIECES; i++) {
            names |= symint_packed_has(before[i], at, SYM_LEVEL_NAMES);
            lines |= symint_packed_has(before[i], at, SYM_LEVEL_LINES);
        }
        assert_int_equal(symint_packed_has(after[0], at, SYM_LEVEL_LINES), lines);
        assert_true(lines || symint_packed_has(after[1], at, SYM_LEVEL_NAMES) == names);
        assert_false(symint_packed_exact(after[0], &strings, NULL, at, &f) > 0 &&
                     symint_facts_rank(&f) == SYMINT_FACTS_WHOLE &&
                     symint_packed_has(after[1], at, SYM_LEVEL_NAMES));
    }
    for (size_t i = 0; i < PIECES; i++)
        symint_packed_free(before[i]);
    for (size_t i = 0; i < 2; i++)
        symint_packed_free(after[i]);
    free_merged(&merged[0]);
    free_pieces(pieces, PIECES);
}

static void the_order_of_pieces_makes_no_difference(void **state)
{
    (void)state;
    struct sym_piece pieces[PIECES];
    struct sym_piece shuffled[PIECES];
    struct sym_merged a[PIECES / 2];
    struct sym_merged b[PIECES / 2];
    size_t count;
    make_pieces(pieces);
    for (size_t i = 0; i < PIECES; i++)
        shuffled[i] = pieces[(i * 3 + 5) % PIECES];
    assert_int_equal(sym_pack_merge(pieces, PIECES, build_id, sizeof(build_id), a, &count), 0);
    assert_int_equal(sym_pack_merge(shuffled, PIECES, build_id, sizeof(build_id), b, &count), 0);
    assert_int_equal(a[0].lines_bytes, b[0].lines_bytes);
    assert_memory_equal(a[0].lines, b[0].lines, a[0].lines_bytes);
    assert_int_equal(a[0].names_bytes, b[0].names_bytes);
    assert_memory_equal(a[0].names, b[0].names, a[0].names_bytes);
    free_merged(&a[0]);
    free_merged(&b[0]);
    free_pieces(pieces, PIECES);
}

/* Packed in parts and merged, or packed at once: the same bytes. */
static void merging_makes_what_packing_at_once_does(void **state)
{
    (void)state;
    struct symint_packer *parts[3];
    struct symint_packer *whole = symint_packer_new(SYM_LEVEL_LINES, &program, 0);
    struct sym_piece pieces[3] = {0};
    struct sym_merged merged[1];
    size_t count;
    size_t size;
    uint8_t *data;
    for (int i = 0; i < 3; i++)
        parts[i] = symint_packer_new(SYM_LEVEL_LINES, &program, 0);
    for (uint64_t at = BEGIN; at < END; at += 4) {
        if (at % 7 == 0 || (at + 2) % 13 == 0) /* whose symbol is another one */
            continue;
        add(whole, at, 2);
        add(parts[at / 4 % 3], at, 2);
        add(parts[at / 8 % 3], at, 2);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(symint_packer_finish(parts[i], &data, &pieces[i].size_bytes), 0);
        pieces[i].data = data;
        symint_packer_free(parts[i]);
    }
    assert_int_equal(symint_packer_finish(whole, &data, &size), 0);
    symint_packer_free(whole);
    assert_int_equal(sym_pack_merge(pieces, 3, build_id, sizeof(build_id), merged, &count), 0);
    assert_int_equal(count, 1);
    assert_null(merged[0].names);
    assert_int_equal(merged[0].lines_bytes, size);
    assert_memory_equal(merged[0].lines, data, size);
    free(data);
    free_merged(&merged[0]);
    free_pieces(pieces, 3);
}

static void names_are_left_out_where_there_are_lines(void **state)
{
    (void)state;
    struct sym_piece pieces[] = {make_piece(&program, SYM_LEVEL_LINES, 2),
                                 make_piece(&program, SYM_LEVEL_NAMES, 2)};
    struct sym_merged merged[1];
    size_t count;
    assert_int_equal(sym_pack_merge(pieces, 2, build_id, sizeof(build_id), merged, &count), 0);
    assert_int_equal(count, 1);
    assert_null(merged[0].names);
    assert_int_equal(merged[0].lines_bytes, pieces[0].size_bytes);
    assert_memory_equal(merged[0].lines, pieces[0].data, pieces[0].size_bytes);
    free_merged(&merged[0]);
    free_pieces(pieces, 2);
}

/* ---- what stays as it is ---- */

static void pieces_of_a_debug_file_stay_apart(void **state)
{
    (void)state;
    struct segment other[] = {segments[0]};
    struct symint_elf detached = program;
    struct symint_elf moved = program;
    struct sym_merged merged[3];
    size_t count;
    detached.detached = true;
    moved.segments = other;
    other[0].offset = 0;
    struct sym_piece pieces[] = {make_piece(&program, SYM_LEVEL_LINES, 1),
                                 make_piece(&detached, SYM_LEVEL_LINES, 2),
                                 make_piece(&moved, SYM_LEVEL_LINES, 3),
                                 make_piece(&program, SYM_LEVEL_LINES, 4),
                                 make_piece(&detached, SYM_LEVEL_NAMES, 5)};
    assert_int_equal(sym_pack_merge(pieces, 5, build_id, sizeof(build_id), merged, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(pieces[0].merged, pieces[3].merged);
    assert_int_equal(pieces[1].merged, pieces[4].merged);
    assert_int_not_equal(pieces[0].merged, pieces[1].merged);
    assert_true(pieces[2].merged == SYM_NOT_MERGED);
    for (size_t i = 0; i < count; i++) {
        struct symint_packed *p = open_bytes(merged[i].lines, merged[i].lines_bytes);
        assert_int_equal(symint_packed_elf(p)->detached, pieces[1].merged == i);
        symint_packed_free(p);
        free_merged(&merged[i]);
    }
    free_pieces(pieces, 5);
}

static void damaged_and_foreign_pieces_are_left_alone(void **state)
{
    (void)state;
    struct symint_elf foreign = program;
    struct sym_merged merged[3];
    size_t count;
    foreign.build_id[0] = 1;
    struct sym_piece pieces[] = {
        make_piece(&program, SYM_LEVEL_LINES, 1), make_piece(&program, SYM_LEVEL_LINES, 2),
        make_piece(&foreign, SYM_LEVEL_LINES, 3), make_piece(NULL, SYM_LEVEL_LINES, 4),
        make_piece(&program, SYM_LEVEL_LINES, 5), {.data = NULL}};
    uint8_t *damaged = (uint8_t *)(uintptr_t)pieces[1].data;
    damaged[300] ^= 1;
    assert_int_equal(sym_pack_merge(pieces, 6, build_id, sizeof(build_id), merged, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(pieces[0].merged, 0);
    assert_int_equal(pieces[4].merged, 0);
    assert_true(pieces[1].merged == SYM_NOT_MERGED);
    assert_true(pieces[2].merged == SYM_NOT_MERGED);
    assert_true(pieces[3].merged == SYM_NOT_MERGED);
    assert_true(pieces[5].merged == SYM_NOT_MERGED);
    free_merged(&merged[0]);
    damaged = (uint8_t *)(uintptr_t)pieces[4].data;
    damaged[300] ^= 1;
    assert_int_equal(sym_pack_merge(pieces, 6, build_id, sizeof(build_id), merged, &count), 0);
    assert_int_equal(count, 0); /* one alone is nothing to merge */
    assert_true(pieces[0].merged == SYM_NOT_MERGED);
    assert_int_equal(sym_pack_merge(NULL, 0, build_id, sizeof(build_id), merged, &count), 0);
    assert_int_equal(sym_pack_merge(NULL, 1, build_id, sizeof(build_id), merged, &count),
                     SYM_ERR_MISUSE);
    assert_int_equal(sym_pack_merge(pieces, 6, NULL, 0, merged, &count), SYM_ERR_MISUSE);
    free_pieces(pieces, 6);
}

/* Lies under a true checksum: what still opens is merged, and answers as it did. */
static void lies_are_merged_as_they_are(void **state)
{
    (void)state;
    static const uint32_t extremes[] = {0, 1, 0x12010, 0x7fffffff, UINT32_MAX};
    struct sym_piece pieces[] = {make_piece(&program, SYM_LEVEL_LINES, 6),
                                 make_piece(&program, SYM_LEVEL_LINES, 5)};
    uint8_t *data = (uint8_t *)(uintptr_t)pieces[0].data;
    for (size_t at = PACKED_AT_LEVEL; at + 4 <= pieces[0].size_bytes; at += at < 160 ? 4 : 36) {
        uint32_t before = packed_get32(data + at);
        for (size_t e = 0; e < sizeof(extremes) / sizeof(extremes[0]); e++) {
            struct sym_merged merged[1];
            size_t count;
            packed_put32(data + at, extremes[e]);
            packed_put32(data + PACKED_AT_CRC, symint_packed_checksum(data, pieces[0].size_bytes));
            assert_int_equal(sym_pack_merge(pieces, 2, build_id, sizeof(build_id), merged, &count),
                             0);
            if (count > 0) {
                symint_packed_free(open_bytes(merged[0].lines, merged[0].lines_bytes));
                free_merged(&merged[0]);
            }
        }
        packed_put32(data + at, before);
    }
    free_pieces(pieces, 2);
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
        cmocka_unit_test(a_merged_piece_answers_as_its_pieces_did),
        cmocka_unit_test(the_order_of_pieces_makes_no_difference),
        cmocka_unit_test(merging_makes_what_packing_at_once_does),
        cmocka_unit_test(names_are_left_out_where_there_are_lines),
        cmocka_unit_test(pieces_of_a_debug_file_stay_apart),
        cmocka_unit_test(damaged_and_foreign_pieces_are_left_alone),
        cmocka_unit_test(lies_are_merged_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
