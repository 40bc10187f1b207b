/* SPDX-License-Identifier: MIT */
/* Clean names, replacement of bad UTF-8, escaping for terminals and lossless quoting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text.h"

#include <stdlib.h>
#include <string.h>

typedef size_t text_fn(const char *in, size_t size, struct text_buffer *out);

#define BAD "\xef\xbf\xbd"

static void expect(text_fn *fn, const char *in, size_t size, const char *expected)
{
    struct text_buffer out = {0};

    text_append(&out, "what was there before", 21);
    assert_int_equal(fn(in, size, &out), strlen(expected));
    assert_int_equal(out.size, strlen(expected));
    assert_string_equal(out.data, expected);
    text_free(&out);
}
#define EXPECT(fn, in, expected) expect(fn, in, sizeof(in) - 1, expected)

static void plain_names_stay(void **state)
{
    (void)state;
    EXPECT(text_clean, "<module>", "<module>");
    EXPECT(text_clean, "operator->", "operator->");
    EXPECT(text_clean, "f(int)::{lambda()#1}", "f(int)::{lambda()#1}");
    EXPECT(text_clean, "a;b|c/d[]", "a;b|c/d[]");
    EXPECT(text_clean, "a  b", "a  b");
    EXPECT(text_clean, "\xc5\xbc\xc3\xb3\xc5\x82w", "\xc5\xbc\xc3\xb3\xc5\x82w");
    EXPECT(text_clean, "\xf0\x9f\x90\x8d", "\xf0\x9f\x90\x8d");
    EXPECT(text_clean, "\xc2\xa0x", "\xc2\xa0x"); /* a no-break space is no blank */
}

static void controls_become_blanks(void **state)
{
    (void)state;
    EXPECT(text_clean, "a\nb\tc\rd", "a b c d");
    EXPECT(text_clean, "a\0b", "a b");
    EXPECT(text_clean,
           "a\x7f"
           "b",
           "a b");
    EXPECT(text_clean, "a\x1b[31mb", "a [31mb");
    EXPECT(text_clean,
           "a\xc2\x80\xc2\x9f"
           "b",
           "a  b");
    EXPECT(text_clean,
           "a\xe2\x80\xa8\xe2\x80\xa9"
           "b",
           "a  b");
}

static void blanks_at_both_ends_go_and_nothing_is_unnamed(void **state)
{
    (void)state;
    EXPECT(text_clean, "  a b  ", "a b");
    EXPECT(text_clean, "\n\0a\t", "a");
    EXPECT(text_clean, "", "[unnamed]");
    EXPECT(text_clean, "   ", "[unnamed]");
    EXPECT(text_clean, "\n\0", "[unnamed]");
    expect(text_clean, NULL, 0, "[unnamed]");
}

static void what_goes_onto_the_end_leaves_what_is_before(void **state)
{
    struct text_buffer b = {0};
    const uint8_t bytes[] = {0x00, 0xab, 0x7f};
    char *copy;

    (void)state;
    text_append(&b, "a ", 2);
    text_append_clean(&b, " b\n", 3);
    text_append_clean(&b, " ", 1);
    text_append_display(&b, "\n", 1);
    text_append_hex(&b, bytes, sizeof bytes);
    assert_string_equal(b.data, "a b[unnamed]\\x0a00ab7f");
    assert_int_equal(b.size, strlen(b.data));
    copy = text_copy(b.data, 3);
    assert_string_equal(copy, "a b");
    free(copy);
    text_free(&b);
}

/* The examples of Unicode 3.9, table 3-8 and around it. */
static void each_maximal_bad_sequence_is_one_replacement(void **state)
{
    (void)state;
    EXPECT(text_clean,
           "a\xff"
           "b",
           "a" BAD "b");
    EXPECT(text_clean, "\x80\x80", BAD BAD);
    EXPECT(text_clean, "\xc0\xaf", BAD BAD);                 /* overlong */
    EXPECT(text_clean, "\xe0\x80\xaf", BAD BAD BAD);         /* overlong */
    EXPECT(text_clean, "\xf0\x80\x80\xaf", BAD BAD BAD BAD); /* overlong */
    EXPECT(text_clean, "\xed\xa0\x80", BAD BAD BAD);         /* surrogate */
    EXPECT(text_clean, "\xf4\x91\x92\x93", BAD BAD BAD BAD); /* above U+10FFFF */
    EXPECT(text_clean,
           "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
           "A",
           BAD BAD BAD BAD "A");
    EXPECT(text_clean, "\xf0\x9f\x90", BAD); /* cut off */
    EXPECT(text_clean,
           "\xe2\x82"
           "x",
           BAD "x");
    EXPECT(text_clean, " \xf0\x9f\x90 ", BAD);
}

static void the_borders_of_utf8_are_exact(void **state)
{
    static const struct {
        const char *text;
        uint32_t code;
    } good[] = {{"\x7f", 0x7f},
                {"\xc2\x80", 0x80},
                {"\xdf\xbf", 0x7ff},
                {"\xe0\xa0\x80", 0x800},
                {"\xed\x9f\xbf", 0xd7ff},
                {"\xee\x80\x80", 0xe000},
                {"\xef\xbf\xbf", 0xffff},
                {"\xf0\x90\x80\x80", 0x10000},
                {"\xf4\x8f\xbf\xbf", 0x10ffff}};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t size = strlen(good[i].text);
        uint32_t code;

        assert_int_equal(text_decode(good[i].text, size, &code), size);
        assert_int_equal(code, good[i].code);
        assert_true(text_is_utf8(good[i].text, size));
        if (size > 1) { /* and one byte less is one bad sequence */
            assert_int_equal(text_decode(good[i].text, size - 1, &code), size - 1);
            assert_int_equal(code, TEXT_BAD);
            assert_false(text_is_utf8(good[i].text, size - 1));
        }
    }
    assert_true(text_is_utf8("", 0));
    assert_true(text_is_utf8("a\0b", 3));
    assert_false(text_is_utf8("abcdefghijk\xf5", 12));
}

static void display_escapes_what_drives_a_terminal(void **state)
{
    (void)state;
    EXPECT(text_display, "a b\\c", "a b\\c");
    EXPECT(text_display, "\x1b]0;x\x07\r\n", "\\x1b]0;x\\x07\\x0d\\x0a");
    EXPECT(text_display,
           "\xc2\x9b"
           "1m",
           "\\xc2\\x9b1m");
    EXPECT(text_display,
           "\x9b"
           "1m",
           "\\x9b1m");
    EXPECT(text_display, "\xf0\x9f\x90", "\\xf0\\x9f\\x90");
    EXPECT(text_display, "\xc3\xa9\0", "\xc3\xa9\\x00");
    EXPECT(text_display, "", "");
}

static void quoting_is_lossless(void **state)
{
    (void)state;
    EXPECT(text_quote, "/usr/lib/libc.so.6", "/usr/lib/libc.so.6");
    EXPECT(text_quote, "[vdso]", "[vdso]");
    EXPECT(text_quote, "a=b", "a=b");
    EXPECT(text_quote, "\xc5\xbc", "\xc5\xbc");
    EXPECT(text_quote, "", "\"\"");
    EXPECT(text_quote, "/a (deleted)", "\"/a (deleted)\"");
    EXPECT(text_quote, "a\"b\\c", "\"a\\\"b\\\\c\"");
    EXPECT(text_quote, "\\x41", "\"\\\\x41\"");
    EXPECT(text_quote, "\xff\n\0", "\"\\xff\\x0a\\x00\"");
}

static void buffers_grow(void **state)
{
    struct text_buffer b = {0};

    (void)state;
    for (int i = 0; i < 10000; i++) {
        text_append_byte(&b, 'x');
        text_printf(&b, "%d", i % 10);
    }
    assert_int_equal(b.size, 20000);
    assert_int_equal(strlen(b.data), 20000);
    text_printf(&b, "%s", "");
    assert_int_equal(b.size, 20000);
    text_free(&b);
    assert_null(b.data);
    text_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_names_stay),
        cmocka_unit_test(controls_become_blanks),
        cmocka_unit_test(blanks_at_both_ends_go_and_nothing_is_unnamed),
        cmocka_unit_test(what_goes_onto_the_end_leaves_what_is_before),
        cmocka_unit_test(each_maximal_bad_sequence_is_one_replacement),
        cmocka_unit_test(the_borders_of_utf8_are_exact),
        cmocka_unit_test(display_escapes_what_drives_a_terminal),
        cmocka_unit_test(quoting_is_lossless),
        cmocka_unit_test(buffers_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
