/* SPDX-License-Identifier: MIT */
/* Prefixes of paths: which rule counts, and what is no path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "trim.h"

static struct trim_rule rules[] = {{"/a", 2, "/one"}, {"/a/b", 4, "/two"}, {"/a/", 3, ""}};
static struct text_buffer scratch;

static void expect(size_t rule_count, const char *path, const char *expected)
{
    struct trim_list list = {rules, rule_count};
    size_t size;
    const char *trimmed = trim_path(&list, path, strlen(path), &scratch, &size);

    assert_int_equal(size, strlen(expected));
    assert_memory_equal(trimmed, expected, size);
}

static void the_last_rule_that_matches_counts_and_once(void **state)
{
    (void)state;
    expect(0, "/a/b/c", "/a/b/c");
    expect(1, "/a/b/c", "/one/b/c");
    expect(2, "/a/b/c", "/two/c");
    expect(3, "/a/b/c", "b/c");
    expect(3, "/a/a/c", "a/c");
    expect(3, "/x/a/c", "/x/a/c");
    expect(3, "", "");
}

static void a_prefix_need_not_be_a_folder(void **state)
{
    (void)state;
    expect(2, "/a/bc", "/twoc");
    expect(2, "/a", "/one");
    expect(3, "/a/", "");
    expect(2, "/", "/");
}

static void what_is_no_path_stays(void **state)
{
    static const char *const names[] = {"//anon", "[vdso]", "[heap]", "/memfd:x (deleted)", ""};
    struct trim_rule all[] = {{"/", 1, "x"}, {"[", 1, "y"}};
    struct trim_list list = {all, 2};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct spool_module m = {.path = names[i], .path_size = strlen(names[i])};
        size_t size;

        assert_ptr_equal(trim_module(&list, &m, &scratch, &size), names[i]);
        assert_int_equal(size, m.path_size);
    }
    text_free(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_rule_that_matches_counts_and_once),
        cmocka_unit_test(a_prefix_need_not_be_a_folder),
        cmocka_unit_test(what_is_no_path_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
