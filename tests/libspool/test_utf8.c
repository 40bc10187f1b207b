/* SPDX-License-Identifier: MIT */
/* UTF-8 against a reference that decodes: slow, and obviously right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* Bytes at the edges of every row of Unicode's table 3-7, and a few inside. */
static const uint8_t edges[] = {0x00, 0x01, 0x41, 0x7f, 0x80, 0x81, 0x8f, 0x90, 0x91, 0x9f,
                                0xa0, 0xa1, 0xbe, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3, 0xd0, 0xdf,
                                0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4,
                                0xf5, 0xf7, 0xf8, 0xfb, 0xfc, 0xfd, 0xfe, 0xff};

#define EDGES (sizeof edges / sizeof edges[0])

/* Size of the character at p by its definition: decode, then see how long it has to be. 0: none. */
static size_t reference_character(const uint8_t *p, size_t size)
{
    static const uint32_t first[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code;
    size_t length;

    if (p[0] < 0x80)
        return 1;
    if ((p[0] & 0xe0) == 0xc0) {
        length = 2;
        code = p[0] & 0x1f;
    } else if ((p[0] & 0xf0) == 0xe0) {
        length = 3;
        code = p[0] & 0x0f;
    } else if ((p[0] & 0xf8) == 0xf0) {
        length = 4;
        code = p[0] & 0x07;
    } else {
        return 0;
    }
    if (length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < first[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return length;
}

static size_t reference_prefix(const uint8_t *p, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t n = reference_character(p + at, size - at);

        if (n == 0)
            break;
        at += n;
    }
    return at;
}

/* Puts a code point into p by its definition; returns the size. */
static size_t encode(uint32_t code, uint8_t *p)
{
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    p[0] = (uint8_t)(lead[size] | code >> 6 * (size - 1));
    for (size_t i = 1; i < size; i++)
        p[i] = (uint8_t)(0x80 | (code >> 6 * (size - 1 - i) & 0x3f));
    return size;
}

/* Which 1, 2 or 3 bytes begin a longer character: found by listing all characters. */
static bool begins[3][1 << 24];

static size_t key_of(const uint8_t *p, size_t size)
{
    size_t key = 0;

    for (size_t i = 0; i < size; i++)
        key = key << 8 | p[i];
    return key;
}

static int list_beginnings(void **state)
{
    uint8_t p[4];

    (void)state;
    for (uint32_t code = 0; code <= 0x10ffff; code++)
        if (code < 0xd800 || code > 0xdfff)
            for (size_t size = encode(code, p); size > 1; size--)
                begins[size - 2][key_of(p, size - 1)] = true;
    return 0;
}

static void check(const uint8_t *p, size_t size)
{
    size_t expected = reference_prefix(p, size);

    if (spoolint_utf8_valid_prefix(p, size) != expected)
        fail_msg("prefix of %02x %02x.. (%zu): %zu, not %zu", p[0], size > 1 ? p[1] : 0, size,
                 spoolint_utf8_valid_prefix(p, size), expected);
    if (expected < size) {
        const uint8_t *bad = p + expected;
        size_t left = size - expected;
        size_t maximal = 1;

        /* The longest start of a character, or one byte. */
        for (size_t n = 1; n <= left && n < 4 && begins[n - 1][key_of(bad, n)]; n++)
            maximal = n;
        if (spoolint_utf8_bad_sequence(bad, left) != maximal)
            fail_msg("bad sequence %02x %02x.. (%zu)", bad[0], left > 1 ? bad[1] : 0, left);
    }
}

static void all_one_and_two_byte_texts_agree_with_the_reference(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        uint8_t p[2] = {(uint8_t)a, 0};

        check(p, 1);
        for (unsigned b = 0; b < 256; b++) {
            p[1] = (uint8_t)b;
            check(p, 2);
        }
    }
}

static void three_and_four_byte_texts_of_edge_bytes_agree_with_the_reference(void **state)
{
    (void)state;
    for (size_t n = 0; n < EDGES * EDGES * EDGES; n++) {
        uint8_t p[4] = {edges[n % EDGES], edges[n / EDGES % EDGES], edges[n / EDGES / EDGES], 0};

        check(p, 3);
        if (p[0] < 0xc2 && n % 7 != 0) /* sampled: a character of its own begins the text */
            continue;
        for (size_t i = 0; i < EDGES; i++) {
            p[3] = edges[i];
            check(p, 4);
        }
    }
}

static void every_code_point_is_valid_but_the_surrogates(void **state)
{
    (void)state;
    for (uint32_t code = 0x80; code < 0x120000; code++) {
        uint8_t p[4];
        size_t size = encode(code, p);
        bool valid = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);

        assert_int_equal(spoolint_utf8_valid_prefix(p, size), valid ? size : 0);
    }
}

static void a_bad_byte_is_found_at_every_place_and_alignment(void **state)
{
    uint8_t text[80];

    (void)state;
    for (size_t start = 0; start < 8; start++) {
        for (size_t size = 0; size < 64; size++) {
            memset(text, 'a', sizeof text);
            assert_int_equal(spoolint_utf8_valid_prefix(text + start, size), size);
            for (size_t bad = 0; bad < size; bad++) {
                text[start + bad] = 0xff;
                assert_int_equal(spoolint_utf8_valid_prefix(text + start, size), bad);
                text[start + bad] = 'a';
            }
        }
    }
}

static void a_nul_is_a_character_and_nothing_is_valid(void **state)
{
    (void)state;
    assert_int_equal(spoolint_utf8_valid_prefix("a\0b", 3), 3);
    assert_int_equal(spoolint_utf8_valid_prefix("", 0), 0);
    assert_int_equal(spoolint_utf8_valid_prefix(NULL, 0), 0);
}

static void random_texts_agree_with_the_reference(void **state)
{
    uint64_t seed = 1;
    uint8_t *text = malloc(40); /* exactly: reading beyond it is seen by the sanitizer */

    (void)state;
    assert_non_null(text);
    for (int round = 0; round < 100000; round++) {
        size_t size;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        size = (size_t)(seed >> 33) % 40 + 1;
        for (size_t i = 0; i < size; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            text[40 - size + i] = seed >> 62 != 0 ? 'x' : edges[(seed >> 33) % EDGES];
        }
        check(text + 40 - size, size);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_one_and_two_byte_texts_agree_with_the_reference),
        cmocka_unit_test(three_and_four_byte_texts_of_edge_bytes_agree_with_the_reference),
        cmocka_unit_test(every_code_point_is_valid_but_the_surrogates),
        cmocka_unit_test(a_bad_byte_is_found_at_every_place_and_alignment),
        cmocka_unit_test(a_nul_is_a_character_and_nothing_is_valid),
        cmocka_unit_test(random_texts_agree_with_the_reference),
    };

    return cmocka_run_group_tests(tests, list_beginnings, NULL);
}
