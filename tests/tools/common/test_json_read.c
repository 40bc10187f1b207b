/* SPDX-License-Identifier: MIT */
/* The JSON reader: what RFC 8259 has it takes, all else it refuses where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "json_read.h"

/* A letter a token, as it is written; K and S for texts. */
static void read_all(const char *text, size_t size, char *shape, size_t shape_size,
                     struct json_reader *r)
{
    static const char letters[] = ".{}[]KSntfN";
    enum json_token token;
    size_t n = 0;

    json_read_start(r, text, size);
    while ((token = json_read_next(r)) > 0)
        if (n + 1 < shape_size)
            shape[n++] = letters[token];
    shape[n] = '\0';
    assert_int_equal(json_read_next(r), token);
    assert_int_equal(token, r->fault ? JSON_FAULT : JSON_END);
}

static void assert_shape(const char *text, const char *expected)
{
    char shape[256];
    struct json_reader r;

    read_all(text, strlen(text), shape, sizeof shape, &r);
    assert_null(r.fault);
    assert_string_equal(shape, expected);
    json_read_free(&r);
}

static void values_come_as_tokens(void **state)
{
    (void)state;
    assert_shape("1", "n");
    assert_shape(" \t\r\n\"\" \n", "S");
    assert_shape("[]", "[]");
    assert_shape("{ }", "{}");
    assert_shape("[[],{},[[{}]]]", "[[]{}[[{}]]]");
    assert_shape("{\"a\" : [1, -2.5e+3 ,true],\"\":{\"b\":null,\"c\":false}}", "{K[nnt]K{KNKf}}");
}

static void texts_are_unescaped(void **state)
{
    static const struct {
        const char *text, *bytes;
        size_t size;
    } cases[] = {
        {"\"\"", "", 0},
        {"\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "a\"\\/\b\f\n\r\tz", 10},
        {"\"\\u0041\\u00e9\\u20aC\\ud83d\\uDE00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10},
        {"\"\\u0000\\u007f\"", "\0\x7f", 2},
        {"\"\\uffff\xf4\x8f\xbf\xbf\x7f\"", "\xef\xbf\xbf\xf4\x8f\xbf\xbf\x7f", 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_reader r;

        json_read_start(&r, cases[i].text, strlen(cases[i].text));
        assert_int_equal(json_read_next(&r), JSON_STRING);
        assert_int_equal(r.string.size, cases[i].size);
        assert_memory_equal(r.string.data, cases[i].bytes, cases[i].size + 1);
        json_read_free(&r);
    }
}

static void numbers_are_exact_or_none(void **state)
{
    static const struct {
        const char *text;
        bool exact, negative;
        uint64_t number;
    } cases[] = {
        {"0", true, false, 0},
        {"-0", true, true, 0},
        {"18446744073709551615", true, false, UINT64_MAX},
        {"18446744073709551616", false, false, 0},
        {"99999999999999999999999999", false, false, 0},
        {"-9223372036854775808", true, true, (uint64_t)1 << 63},
        {"-9223372036854775809", false, true, 0},
        {"1.0", false, false, 0},
        {"1e3", false, false, 0},
        {"0E-5", false, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_reader r;

        json_read_start(&r, cases[i].text, strlen(cases[i].text));
        assert_int_equal(json_read_next(&r), JSON_NUMBER);
        assert_int_equal(r.exact, cases[i].exact);
        assert_int_equal(r.negative, cases[i].negative);
        if (r.exact)
            assert_true(r.number == cases[i].number);
        assert_int_equal(json_read_next(&r), JSON_END);
        json_read_free(&r);
    }
}

static void anything_else_is_a_fault_at_its_byte(void **state)
{
    static const struct {
        const char *text;
        size_t at;
        const char *why;
    } cases[] = {
        {"", 0, "it ends too early"},
        {"  ", 2, "it ends too early"},
        {"x", 0, "no JSON value"},
        {"tru", 0, "no JSON value"},
        {"nulll", 4, "something follows the value"},
        {"1 2", 2, "something follows the value"},
        {"\xef\xbb\xbf"
         "1",
         0, "no JSON value"},
        {"[1,]", 3, "no JSON value"},
        {"[,1]", 1, "no JSON value"},
        {"[1 2]", 3, "a comma is missing"},
        {"[1", 2, "it ends too early"},
        {"[1}", 2, "a comma is missing"},
        {"[}", 1, "no JSON value"},
        {"{]", 1, "a key is missing"},
        {"{\"a\":1,}", 7, "a key is missing"},
        {"{1:1}", 1, "a key is missing"},
        {"{\"a\" 1}", 5, "a colon is missing"},
        {"{\"a\":}", 5, "no JSON value"},
        {"{\"a\":1 \"b\":2}", 7, "a comma is missing"},
        {"\"a", 2, "it ends inside a text"},
        {"\"a\\", 2, "a bad escape in a text"},
        {"\"a\\x\"", 2, "a bad escape in a text"},
        {"\"\\u12g4\"", 1, "a bad escape in a text"},
        {"\"\\ud800\"", 1, "a bad escape in a text"},
        {"\"\\ud800\\u0041\"", 1, "a bad escape in a text"},
        {"\"\\udc00\"", 1, "a bad escape in a text"},
        {"\"\\ud8", 1, "a bad escape in a text"},
        {"\"a\nb\"", 2, "a control character in a text"},
        {"\"a\xff\"", 2, "not UTF-8"},
        {"\"\xed\xa0\x80\"", 1, "not UTF-8"},
        {"\"\xc0\x80\"", 1, "not UTF-8"},
        {"'a'", 0, "no JSON value"},
        {"01", 0, "a bad number"},
        {"-", 1, "a bad number"},
        {"-01", 1, "a bad number"},
        {"1.", 2, "a bad number"},
        {"1.e5", 2, "a bad number"},
        {"1e+", 3, "a bad number"},
        {".5", 0, "no JSON value"},
        {"+1", 0, "no JSON value"},
        {"NaN", 0, "no JSON value"},
        {"1/*c*/", 1, "something follows the value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shape[16], *text = strdup(cases[i].text);
        struct json_reader r;

        assert_non_null(text);
        read_all(text, strlen(text), shape, sizeof shape, &r);
        if (r.fault == NULL || strcmp(r.fault, cases[i].why) != 0 || r.at != cases[i].at)
            fail_msg("%s: byte %zu: %s", cases[i].text, r.at, r.fault ? r.fault : "no fault");
        json_read_free(&r);
        free(text);
    }
}

static void a_NUL_byte_is_no_end(void **state)
{
    static const char text[] = "1\0";
    char shape[4];
    struct json_reader r;

    (void)state;
    read_all(text, 2, shape, sizeof shape, &r);
    assert_string_equal(r.fault, "something follows the value");
    json_read_free(&r);
}

static void nesting_has_a_limit(void **state)
{
    char text[2 * JSON_DEPTH_MAX + 2], shape[4 * JSON_DEPTH_MAX];
    struct json_reader r;

    (void)state;
    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    read_all(text, 2 * JSON_DEPTH_MAX, shape, sizeof shape, &r);
    assert_null(r.fault);
    json_read_free(&r);
    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    read_all(text, sizeof text, shape, sizeof shape, &r);
    assert_string_equal(r.fault, "nested too deep");
    assert_int_equal(r.at, JSON_DEPTH_MAX);
    json_read_free(&r);
}

static void a_value_can_be_skipped(void **state)
{
    static const char text[] = "[{\"a\":[1,[2],{}],\"b\":{}},5]";
    struct json_reader r;

    (void)state;
    json_read_start(&r, text, strlen(text));
    assert_int_equal(json_read_next(&r), JSON_ARRAY);
    assert_true(json_read_skip(&r, json_read_next(&r)));
    assert_int_equal(json_read_next(&r), JSON_NUMBER);
    assert_true(json_read_skip(&r, JSON_NUMBER));
    assert_int_equal(json_read_next(&r), JSON_ARRAY_END);
    assert_int_equal(json_read_next(&r), JSON_END);
    json_read_free(&r);
    json_read_start(&r, text, 12);
    assert_false(json_read_skip(&r, json_read_next(&r)));
    assert_int_equal(r.at, 12);
    json_read_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_as_tokens),
        cmocka_unit_test(texts_are_unescaped),
        cmocka_unit_test(numbers_are_exact_or_none),
        cmocka_unit_test(anything_else_is_a_fault_at_its_byte),
        cmocka_unit_test(a_NUL_byte_is_no_end),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(a_value_can_be_skipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
