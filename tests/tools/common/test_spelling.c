/* SPDX-License-Identifier: MIT */
/* What is taken for a slip, and for which word. */
#include "spelling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *nearest(const char *word, const char *const *words)
{
    static struct spelling s;

    spelling_begin(&s, word, strlen(word));
    for (; *words; words++)
        spelling_offer(&s, "", *words, strlen(*words));
    return s.best;
}

#define NEAREST(word, ...) nearest(word, (const char *const[]){__VA_ARGS__, NULL})

static void a_letter_too_many_too_few_wrong_or_swapped_is_a_slip(void **state)
{
    (void)state;
    assert_string_equal(NEAREST("sumary", "samples", "summary"), "summary");
    assert_string_equal(NEAREST("summmary", "samples", "summary"), "summary");
    assert_string_equal(NEAREST("sunmary", "samples", "summary"), "summary");
    assert_string_equal(NEAREST("qiuet", "quiet"), "quiet");
    assert_string_equal(NEAREST("mxa", "max"), "max");
    assert_string_equal(NEAREST("form", "from", "to"), "from");
}

static void the_nearest_is_taken_and_of_equals_the_first(void **state)
{
    (void)state;
    assert_string_equal(NEAREST("kerne", "kennel", "kernel"), "kernel");
    assert_string_equal(NEAREST("cat", "bat", "hat"), "bat");
}

static void what_is_far_or_short_or_long_is_no_slip(void **state)
{
    char longest[SPELLING_MAX + 2];

    (void)state;
    assert_string_equal(NEAREST("frobnicate", "frequency", "force"), "");
    assert_string_equal(NEAREST("timeline", "time", "inlines"), "");
    assert_string_equal(NEAREST("x", "a", "k"), "");
    assert_string_equal(NEAREST("", "a", "to"), "");
    assert_string_equal(NEAREST("no", "xy", "to"), "");
    memset(longest, 'a', sizeof longest - 1);
    longest[SPELLING_MAX + 1] = '\0';
    assert_string_equal(NEAREST(longest, longest), "");
    longest[SPELLING_MAX] = '\0';
    assert_string_equal(NEAREST(longest + 1, longest), longest);
}

static void a_beginning_stands_for_the_whole_word_if_nothing_is_nearer(void **state)
{
    (void)state;
    assert_string_equal(NEAREST("rec", "quiet", "records"), "records");
    assert_string_equal(NEAREST("sum", "summary", "sun"), "sun");
    assert_string_equal(NEAREST("re", "records"), "");
}

static void a_prefix_is_part_of_the_word(void **state)
{
    struct spelling s;

    (void)state;
    spelling_begin(&s, "no-inline", 9);
    spelling_offer(&s, "", "inlines", 7);
    assert_string_equal(s.best, "");
    spelling_offer(&s, "no-", "inlines", 7);
    assert_string_equal(s.best, "no-inlines");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letter_too_many_too_few_wrong_or_swapped_is_a_slip),
        cmocka_unit_test(the_nearest_is_taken_and_of_equals_the_first),
        cmocka_unit_test(what_is_far_or_short_or_long_is_no_slip),
        cmocka_unit_test(a_beginning_stands_for_the_whole_word_if_nothing_is_nearer),
        cmocka_unit_test(a_prefix_is_part_of_the_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
