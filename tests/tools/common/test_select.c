/* SPDX-License-Identifier: MIT */
/* Which samples the selection options keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "select.h"

static void nothing_given_selects_everything(void **state)
{
    struct select_options o = {0};

    (void)state;
    assert_true(select_everything(&o));
    assert_true(select_ids(&o, -1, UINT64_MAX));
    assert_true(select_time(&o, 5, 0));
    assert_true(select_names(&o, NULL, NULL));
}

static void each_option_ends_the_fast_path(void **state)
{
    const char *glob = "*";
    struct select_options o = {.has_pids = true};

    (void)state;
    assert_false(select_everything(&o));
    o = (struct select_options){.has_tids = true};
    assert_false(select_everything(&o));
    o = (struct select_options){.has_from = true};
    assert_false(select_everything(&o));
    o = (struct select_options){.has_to = true, .to_ns = 1};
    assert_false(select_everything(&o));
    o = (struct select_options){.comm_globs = {&glob, 1}};
    assert_false(select_everything(&o));
    o = (struct select_options){.thread_globs = {&glob, 1}};
    assert_false(select_everything(&o));
}

static void ids_are_looked_up_in_their_lists(void **state)
{
    uint64_t pids[] = {3, 7, 20, (uint64_t)INT64_C(-2)}, tids[] = {7, UINT64_MAX};
    struct select_options o = {.has_pids = true, .pids = {pids, 4}};

    (void)state;
    assert_true(select_ids(&o, 3, 1));
    assert_true(select_ids(&o, 7, 1));
    assert_true(select_ids(&o, 20, 1));
    assert_true(select_ids(&o, -2, 1));
    assert_false(select_ids(&o, 2, 1));
    assert_false(select_ids(&o, 8, 1));
    assert_false(select_ids(&o, -3, 1));
    o.has_tids = true;
    o.tids = (struct number_list){tids, 2};
    assert_true(select_ids(&o, 3, 7));
    assert_true(select_ids(&o, 3, UINT64_MAX));
    assert_false(select_ids(&o, 3, 8));
    assert_false(select_ids(&o, 4, 7));
    o.pids.count = 0; /* given, but empty: nothing */
    assert_false(select_ids(&o, 3, 7));
}

static void times_are_a_half_open_range_from_the_first_sample(void **state)
{
    struct select_options o = {.has_from = true, .from_ns = 10, .has_to = true, .to_ns = 20};

    (void)state;
    assert_false(select_time(&o, 100, 109));
    assert_true(select_time(&o, 100, 110));
    assert_true(select_time(&o, 100, 119));
    assert_false(select_time(&o, 100, 120));
    assert_false(select_time(&o, 100, 0)); /* before the first: counts as 0 */
    o.from_ns = 0;
    assert_true(select_time(&o, 100, 0));
    o.has_to = false;
    assert_true(select_time(&o, 0, UINT64_MAX));
}

static void names_match_any_glob_and_unknown_ones_only_without_globs(void **state)
{
    const char *comms[] = {"py*", "sh"}, *threads[] = {"Worker [0-9]*"};
    struct select_options o = {.comm_globs = {comms, 2}};

    (void)state;
    assert_true(select_names(&o, "python", NULL));
    assert_true(select_names(&o, "sh", NULL));
    assert_false(select_names(&o, "bash", NULL));
    assert_false(select_names(&o, NULL, "python"));
    o.thread_globs = (struct text_list){threads, 1};
    assert_true(select_names(&o, "sh", "Worker 12"));
    assert_false(select_names(&o, "sh", "Worker"));
    assert_false(select_names(&o, "sh", NULL));
    assert_false(select_names(&o, "bash", "Worker 12"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given_selects_everything),
        cmocka_unit_test(each_option_ends_the_fast_path),
        cmocka_unit_test(ids_are_looked_up_in_their_lists),
        cmocka_unit_test(times_are_a_half_open_range_from_the_first_sample),
        cmocka_unit_test(names_match_any_glob_and_unknown_ones_only_without_globs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
