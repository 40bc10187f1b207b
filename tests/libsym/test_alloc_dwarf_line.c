/* SPDX-License-Identifier: MIT */
/* Lets every allocation of reading a line table fail, one after the other. Leaks are the sanitizer's business. */
#include "dwarf_line.h"

#include "../alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Version 2, one directory and file. Sequences [0x10, 0x40) and [0x20, 0x30), a column that needs a wide row, and a
 * file that the program defines. */
static uint8_t table[] = {
    81, 0,    0,    0,    2,    0, 26, 0,    0, 0,   1, 1, 0xfb, 14,   13, 0, 1, 1,
    1,  1,    0,    0,    0,    1, 0,  0,    1, 'd', 0, 0, 'f',  0,    1,  0, 0, 0, /* header */
    0,  6,    3,    'g',  0,    1, 0,  0,                                           /* g */
    0,  9,    2,    0x10, 0,    0, 0,  0,    0, 0,   0, 1, 2,    0x30,              /* to 0x40 */
    0,  1,    1,                                                                    /* ends */
    0,  9,    2,    0x20, 0,    0, 0,  0,    0, 0,   0, 4, 2,                       /* in g */
    5,  0xff, 0xff, 0xff, 0x7f, 1, 2,  0x10, 0, 1,   1,                             /* to 0x30 */
};

/* 0, or what failed. */
static int read_all(struct symint_debug_sections *s, struct symint_strings *strings)
{
    struct symint_line_table *t;
    struct symint_line_row row;
    const char *path;
    int status = symint_line_open(s, 0, 8, &t);
    if (status != 0)
        return status;
    assert_non_null(t);
    status = symint_line_rows(t);
    if (status != 0 && symint_line_rows(t) != 0) /* again: what fails has failed */
        fail_msg("a second try did not do");
    assert_true(symint_line_find(t, 0x15, &row));
    assert_int_equal(row.file, 1);
    assert_true(symint_line_find(t, 0x25, &row));
    assert_int_equal(row.file, 2);
    assert_int_equal(row.column, 0xfffffff);
    int asked = symint_line_path(t, strings, "/c", row.file, &path);
    if (asked != 0)
        assert_int_equal(symint_line_path(t, strings, "/c", row.file, &path), 0);
    assert_string_equal(path, "/c/d/g");
    symint_line_free(t);
    return status != 0 ? status : asked;
}

static void what_fails_for_want_of_memory_may_be_tried_again(void **state)
{
    (void)state;
    struct symint_code_range code = {0x10, 0x50};
    struct symint_debug_sections s = {.code = &code, .code_count = 1, .why = ""};
    s.swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    s.at[DEBUG_LINE].base = table;
    s.at[DEBUG_LINE].size = table[0] + 4u;
    unsigned refused = 0;
    bool failed = true;
    for (long n = 1; failed; n++) {
        struct symint_strings strings = {0};
        alloc.countdown = n;
        int status = read_all(&s, &strings);
        failed = alloc.countdown == 0;
        alloc.countdown = 0;
        if (status != 0)
            assert_int_equal(status, SYM_ERR_NOMEM);
        refused += status != 0;
        symint_strings_free(&strings);
    }
    /* Table, directories, files, rows twice, sequences, wide rows, path, its text: only shrinking may fail unseen. */
    assert_true(refused >= 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_for_want_of_memory_may_be_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
