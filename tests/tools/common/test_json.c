/* SPDX-License-Identifier: MIT */
/* JSON text: escaping, numbers, commas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json.h"

#include <stdlib.h>
#include <string.h>

/* An output that is looked at before anything is flushed. */
static struct tool_output out;

static int start(void **state)
{
    (void)state;
    out = (struct tool_output){.fd = -1};
    out.data = malloc(OUTPUT_BUFFER_SIZE);
    return out.data == NULL ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    free(out.data);
    return 0;
}

static void expect(const char *text)
{
    output_byte(&out, '\0');
    assert_string_equal(out.data, text);
    out.size = 0;
}

static void text(const char *in, size_t size, const char *expected)
{
    struct text_buffer buffer = {0};

    json_text(&out, in, size);
    expect(expected);
    text_append_byte(&buffer, '-');
    json_append_text(&buffer, in, size);
    assert_string_equal(buffer.data + 1, expected);
    text_free(&buffer);
}
#define TEXT(in, expected) text(in, sizeof(in) - 1, expected)

static void plain_text_is_copied(void **state)
{
    (void)state;
    TEXT("", "\"\"");
    TEXT("/usr/bin/x y", "\"/usr/bin/x y\"");
    TEXT("\xc5\xbc\xe2\x82\xac\xf0\x9f\x90\x8d", "\"\xc5\xbc\xe2\x82\xac\xf0\x9f\x90\x8d\"");
    text(NULL, 0, "\"\"");
}

static void what_json_reserves_is_escaped(void **state)
{
    (void)state;
    TEXT("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
    TEXT("\n\t\r\b\f", "\"\\u000a\\u0009\\u000d\\u0008\\u000c\"");
    TEXT("a\0b", "\"a\\u0000b\"");
    TEXT("\x1b[0m\x1f\x7f", "\"\\u001b[0m\\u001f\\u007f\"");
    TEXT("\xc2\x80\xc2\x9f\xc2\xa0", "\"\\u0080\\u009f\xc2\xa0\"");
}

static void bad_bytes_become_replacement_characters(void **state)
{
    (void)state;
    TEXT("\xff", "\"\xef\xbf\xbd\"");
    TEXT("a\xe2\x82z", "\"a\xef\xbf\xbdz\"");
    TEXT("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    TEXT("\xf0\x9f\x90", "\"\xef\xbf\xbd\"");
}

static void commas_stand_between_values_only(void **state)
{
    struct json_writer w;

    (void)state;
    json_start(&w, &out);
    json_begin(&w, '{');
    json_key_text(&w, "rec", "module");
    json_key_u64(&w, "big", UINT64_MAX);
    json_key_i64(&w, "small", INT64_MIN);
    json_key(&w, "list");
    json_begin(&w, '[');
    json_begin(&w, '[');
    json_end(&w, ']');
    json_begin(&w, '{');
    json_end(&w, '}');
    json_u64(&w, 1);
    json_i64(&w, -1);
    json_bool(&w, true);
    json_null(&w);
    json_string(&w, "x,", 2);
    json_end(&w, ']');
    json_key_bool(&w, "no", false);
    json_key_null(&w, "none");
    json_key_text(&w, "also", NULL);
    json_key_string(&w, "text", "ab", 1);
    json_end(&w, '}');
    expect("{\"rec\":\"module\",\"big\":18446744073709551615,\"small\":-9223372036854775808,"
           "\"list\":[[],{},1,-1,true,null,\"x,\"],\"no\":false,\"none\":null,\"also\":null,"
           "\"text\":\"a\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plain_text_is_copied, start, stop),
        cmocka_unit_test_setup_teardown(what_json_reserves_is_escaped, start, stop),
        cmocka_unit_test_setup_teardown(bad_bytes_become_replacement_characters, start, stop),
        cmocka_unit_test_setup_teardown(commas_stand_between_values_only, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
