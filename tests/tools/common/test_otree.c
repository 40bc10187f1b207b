/* SPDX-License-Identifier: MIT */
/* The tree of output stacks: one node for equal stacks, and weights that never wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "otree.h"

static void the_root_is_there_and_weighs_nothing(void **state)
{
    struct otree t;

    (void)state;
    otree_init(&t);
    assert_int_equal(t.count, 1);
    assert_int_equal(t.nodes[OTREE_ROOT].label, UINT32_MAX);
    assert_int_equal(t.weights[OTREE_ROOT], 0);
    assert_false(t.overflow);
    otree_free(&t);
}

static void equal_stacks_are_one_node(void **state)
{
    struct otree t;
    uint32_t a, ab, b, ba;

    (void)state;
    otree_init(&t);
    a = otree_child(&t, OTREE_ROOT, 0);
    ab = otree_child(&t, a, 1);
    b = otree_child(&t, OTREE_ROOT, 1);
    ba = otree_child(&t, b, 0);
    assert_int_equal(t.count, 5);
    assert_int_equal(otree_child(&t, OTREE_ROOT, 0), a);
    assert_int_equal(otree_child(&t, a, 1), ab);
    assert_int_equal(otree_child(&t, b, 0), ba);
    assert_int_equal(t.count, 5);
    assert_int_equal(t.nodes[ab].parent, a);
    assert_int_equal(t.nodes[ab].label, 1);
    assert_int_not_equal(ab, ba);
    /* a label may be any number */
    assert_int_equal(t.nodes[otree_child(&t, a, UINT32_MAX)].label, UINT32_MAX);
    otree_free(&t);
}

static void a_million_children_and_a_million_levels_are_found_again(void **state)
{
    enum { COUNT = 1000000 };
    uint32_t *wide = malloc(COUNT * sizeof *wide), *deep = malloc(COUNT * sizeof *deep), at;
    struct otree t;

    (void)state;
    assert_non_null(wide);
    assert_non_null(deep);
    otree_init(&t);
    for (uint32_t i = 0; i < COUNT; i++)
        wide[i] = otree_child(&t, OTREE_ROOT, i * 2654435761u);
    at = OTREE_ROOT;
    for (uint32_t i = 0; i < COUNT; i++)
        deep[i] = at = otree_child(&t, at, 7);
    assert_int_equal(t.count, 2 * COUNT + 1);
    for (uint32_t i = 0; i < COUNT; i++)
        if (otree_child(&t, OTREE_ROOT, i * 2654435761u) != wide[i])
            fail_msg("child %u was made twice", i);
    at = OTREE_ROOT;
    for (uint32_t i = 0; i < COUNT; i++)
        if ((at = otree_child(&t, at, 7)) != deep[i])
            fail_msg("level %u was made twice", i);
    for (uint32_t id = 1; id < t.count; id++)
        if (t.nodes[id].parent >= id)
            fail_msg("node %u stands before its parent", id);
    free(wide);
    free(deep);
    otree_free(&t);
}

static void weights_add_up(void **state)
{
    struct otree t;
    uint32_t a, b;

    (void)state;
    otree_init(&t);
    a = otree_child(&t, OTREE_ROOT, 0);
    b = otree_child(&t, a, 0);
    otree_add(&t, a, 3);
    otree_add(&t, b, 5);
    otree_add(&t, a, 4);
    assert_int_equal(t.weights[a], 7);
    assert_int_equal(t.weights[b], 5);
    assert_int_equal(t.weights[OTREE_ROOT], 0);
    assert_false(t.overflow);
    otree_free(&t);
}

static void the_sum_may_reach_2_63_less_1_and_not_more(void **state)
{
    struct otree t;
    uint32_t a, b;

    (void)state;
    otree_init(&t);
    a = otree_child(&t, OTREE_ROOT, 0);
    b = otree_child(&t, OTREE_ROOT, 1);
    otree_add(&t, a, INT64_MAX - 1);
    otree_add(&t, b, 1);
    assert_false(t.overflow);
    otree_add(&t, b, 1); /* of all stacks together: what a viewer shows at the root */
    assert_true(t.overflow);
    assert_true(t.weights[a] == INT64_MAX - 1);
    otree_free(&t);

    otree_init(&t);
    otree_add(&t, OTREE_ROOT, (uint64_t)INT64_MAX + 1);
    assert_true(t.overflow);
    otree_free(&t);

    otree_init(&t);
    a = otree_child(&t, OTREE_ROOT, 0);
    otree_add(&t, a, INT64_MAX);
    assert_false(t.overflow);
    otree_add(&t, a, INT64_MAX);
    assert_true(t.overflow);
    otree_free(&t);
}

static void a_tree_that_outgrows_its_file_ends_the_tool(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        struct otree t;

        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        otree_init(&t);
        t.limit = 1;
        otree_allow(&t, 4);
        for (uint32_t i = 0; i < 1024; i++)
            otree_child(&t, OTREE_ROOT, i);
        if (t.count != 1025)
            _exit(98);
        otree_child(&t, OTREE_ROOT, 7); /* not new */
        otree_child(&t, OTREE_ROOT, 1024);
        _exit(97);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_root_is_there_and_weighs_nothing),
        cmocka_unit_test(equal_stacks_are_one_node),
        cmocka_unit_test(a_million_children_and_a_million_levels_are_found_again),
        cmocka_unit_test(weights_add_up),
        cmocka_unit_test(the_sum_may_reach_2_63_less_1_and_not_more),
        cmocka_unit_test(a_tree_that_outgrows_its_file_ends_the_tool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
