/* SPDX-License-Identifier: MIT */
/* Codes, names and texts, and the text a handle carries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "error.h"

static void every_code_has_its_own_name_and_text(void **state)
{
    (void)state;
    assert_string_equal(spool_error_name(SPOOL_ERR_NOMEM), "SPOOL_ERR_NOMEM");
    assert_string_equal(spool_error_name(SPOOL_ERR_IO), "SPOOL_ERR_IO");
    assert_string_equal(spool_error_name(SPOOL_ERR_FORMAT), "SPOOL_ERR_FORMAT");
    assert_string_equal(spool_error_name(SPOOL_ERR_VERSION), "SPOOL_ERR_VERSION");
    assert_string_equal(spool_error_name(SPOOL_ERR_CORRUPT), "SPOOL_ERR_CORRUPT");
    assert_string_equal(spool_error_name(SPOOL_ERR_TRUNCATED), "SPOOL_ERR_TRUNCATED");
    assert_string_equal(spool_error_name(SPOOL_ERR_LIMIT), "SPOOL_ERR_LIMIT");
    assert_string_equal(spool_error_name(SPOOL_ERR_MISUSE), "SPOOL_ERR_MISUSE");
    for (int a = 0; a >= SPOOL_ERR_MISUSE; a--) {
        assert_true(islower((unsigned char)spool_error_text(a)[0]));
        for (int b = 0; b > a; b--)
            assert_string_not_equal(spool_error_text(a), spool_error_text(b));
    }
    assert_string_equal(spool_error_text(SPOOL_ERR_IO), "input or output failed");
}

static void success_of_any_size_is_ok(void **state)
{
    (void)state;
    assert_string_equal(spool_error_name(0), "SPOOL_OK");
    assert_string_equal(spool_error_name(1), "SPOOL_OK");
    assert_string_equal(spool_error_name(INT_MAX), "SPOOL_OK");
    assert_string_equal(spool_error_text(1), "no error");
}

static void a_code_that_is_never_returned_is_unknown(void **state)
{
    (void)state;
    assert_string_equal(spool_error_name(SPOOL_ERR_MISUSE - 1), "SPOOL_ERR_UNKNOWN");
    assert_string_equal(spool_error_name(INT_MIN), "SPOOL_ERR_UNKNOWN");
    assert_string_equal(spool_error_text(INT_MIN), "unknown error");
}

static void the_version_has_three_numbers(void **state)
{
    const char *v = spool_version();

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(isdigit((unsigned char)*v));
        while (isdigit((unsigned char)*v))
            v++;
        assert_int_equal(*v, i < 2 ? '.' : '\0');
        v++;
    }
}

static void a_new_handle_has_no_error(void **state)
{
    struct error_state e = {0};

    (void)state;
    assert_string_equal(spoolint_error_get(&e), "no error");
}

static void the_text_is_formatted_and_the_code_returned(void **state)
{
    struct error_state e = {0};

    (void)state;
    assert_int_equal(spoolint_error_set(&e, SPOOL_ERR_CORRUPT, "thread %d of %d", 7, 3),
                     SPOOL_ERR_CORRUPT);
    assert_int_equal(e.code, SPOOL_ERR_CORRUPT);
    assert_string_equal(spoolint_error_get(&e), "thread 7 of 3");
}

static void a_long_text_is_cut_and_an_empty_one_replaced(void **state)
{
    struct error_state e = {0};
    char text[SPOOLINT_ERROR_SIZE * 2];

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    spoolint_error_set(&e, SPOOL_ERR_IO, "%s", text);
    assert_int_equal(strlen(spoolint_error_get(&e)), SPOOLINT_ERROR_SIZE - 1);
    spoolint_error_set(&e, SPOOL_ERR_IO, "%s", "");
    assert_string_equal(spoolint_error_get(&e), "input or output failed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_own_name_and_text),
        cmocka_unit_test(success_of_any_size_is_ok),
        cmocka_unit_test(a_code_that_is_never_returned_is_unknown),
        cmocka_unit_test(the_version_has_three_numbers),
        cmocka_unit_test(a_new_handle_has_no_error),
        cmocka_unit_test(the_text_is_formatted_and_the_code_returned),
        cmocka_unit_test(a_long_text_is_cut_and_an_empty_one_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
