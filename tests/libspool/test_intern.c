/* SPDX-License-Identifier: MIT */
/* The writer's id tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "intern.h"
#include "spool/spool.h"

static uint32_t add_loose(struct intern *in, bool kernel, uint64_t address, int expected)
{
    uint32_t id = SPOOL_NO_ID;

    assert_int_equal(spoolint_intern_loose(in, kernel, address, &id), expected);
    return id;
}

static void ids_are_dense_and_start_at_zero(void **state)
{
    struct intern in;
    uint32_t id;

    (void)state;
    spoolint_intern_init(&in);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(spoolint_intern_pinned(&in, i % 7, i * 16, &id), 1);
        assert_int_equal(id, i);
        assert_int_equal(spoolint_intern_stack(&in, i == 0 ? SPOOL_NO_ID : i - 1, i, &id), 1);
        assert_int_equal(id, i);
        assert_int_equal(spoolint_intern_thread(&in, (int32_t)i - 500, i, &id), 1);
        assert_int_equal(id, i);
    }
    assert_int_equal(in.frame_count, 1000);
    assert_int_equal(in.stack_count, 1000);
    assert_int_equal(in.thread_count, 1000);
    spoolint_intern_free(&in);
}

static void what_is_known_keeps_its_id_while_the_tables_grow(void **state)
{
    enum { COUNT = 100000 };
    struct intern in;
    uint32_t id;

    (void)state;
    spoolint_intern_init(&in);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(spoolint_intern_stack(&in, i / 3, i, &id), 1);
        assert_int_equal(add_loose(&in, false, i * UINT64_C(4096), 1), i);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(spoolint_intern_stack(&in, i / 3, i, &id), 0);
        assert_int_equal(id, i);
        assert_true(spoolint_intern_find_stack(&in, i / 3, i, &id));
        assert_int_equal(id, i);
        assert_int_equal(add_loose(&in, false, i * UINT64_C(4096), 0), i);
    }
    assert_false(spoolint_intern_find_stack(&in, COUNT, 0, &id));
    spoolint_intern_free(&in);
}

static void all_parts_of_a_key_count(void **state)
{
    struct intern in;
    uint32_t id;

    (void)state;
    spoolint_intern_init(&in);
    assert_int_equal(spoolint_intern_pinned(&in, 0, 1, &id), 1);
    assert_int_equal(spoolint_intern_pinned(&in, 1, 0, &id), 1);
    assert_int_equal(spoolint_intern_pinned(&in, 0, UINT64_C(1) << 32, &id), 1);
    assert_int_equal(add_loose(&in, false, 1, 1), 3);
    assert_int_equal(add_loose(&in, true, 1, 1), 4);
    assert_int_equal(spoolint_intern_stack(&in, 0, 1, &id), 1);
    assert_int_equal(spoolint_intern_stack(&in, 1, 0, &id), 1);
    assert_int_equal(spoolint_intern_stack(&in, SPOOL_NO_ID, 1, &id), 1);
    assert_int_equal(spoolint_intern_thread(&in, 1, 1, &id), 1);
    assert_int_equal(spoolint_intern_thread(&in, -1, 1, &id), 1);
    assert_int_equal(spoolint_intern_thread(&in, 1, UINT64_MAX, &id), 1);
    assert_int_equal(in.thread_count, 3);
    spoolint_intern_free(&in);
}

static void the_marker_is_one_frame_and_no_pinned_one(void **state)
{
    struct intern in;
    uint32_t id;

    (void)state;
    spoolint_intern_init(&in);
    assert_false(spoolint_intern_find_marker(&in, &id));
    assert_int_equal(spoolint_intern_pinned(&in, 0, 0, &id), 1);
    assert_int_equal(spoolint_intern_pinned(&in, SPOOL_NO_ID - 1, 0, &id), 1);
    assert_false(spoolint_intern_find_marker(&in, &id));
    assert_int_equal(spoolint_intern_marker(&in, &id), 1);
    assert_int_equal(id, 2);
    spoolint_intern_drop_loose(&in);
    assert_int_equal(spoolint_intern_marker(&in, &id), 0);
    assert_true(spoolint_intern_find_marker(&in, &id));
    assert_int_equal(id, 2);
    spoolint_intern_free(&in);
}

static void loose_frames_are_forgotten_and_fixed_ones_are_not(void **state)
{
    struct intern in;
    uint32_t id;

    (void)state;
    spoolint_intern_init(&in);
    spoolint_intern_drop_loose(&in); /* nothing there yet */
    assert_int_equal(spoolint_intern_pinned(&in, 0, 0x10, &id), 1);
    assert_int_equal(add_loose(&in, false, 0x10, 1), 1);
    assert_int_equal(add_loose(&in, true, 0x10, 1), 2);
    spoolint_intern_drop_loose(&in);
    assert_false(spoolint_intern_find_loose(&in, false, 0x10, &id));
    assert_false(spoolint_intern_find_loose(&in, true, 0x10, &id));
    assert_int_equal(add_loose(&in, true, 0x10, 1), 3);
    assert_int_equal(add_loose(&in, false, 0x10, 1), 4);
    assert_int_equal(add_loose(&in, true, 0x10, 0), 3);
    assert_int_equal(spoolint_intern_pinned(&in, 0, 0x10, &id), 0);
    assert_int_equal(id, 0);
    spoolint_intern_free(&in);
}

static void forgetting_often_needs_no_more_memory(void **state)
{
    struct intern in;
    size_t capacity = 0;

    (void)state;
    spoolint_intern_init(&in);
    for (unsigned round = 0; round < 20000; round++) {
        for (uint64_t i = 0; i < 100; i++)
            add_loose(&in, i % 2 != 0, i * 8, 1);
        for (uint64_t i = 0; i < 100; i++)
            add_loose(&in, i % 2 != 0, i * 8, 0);
        if (round == 0)
            capacity = in.loose.capacity;
        spoolint_intern_drop_loose(&in);
    }
    assert_int_equal(in.loose.capacity, capacity);
    assert_int_equal(in.frame_count, 2000000);
    spoolint_intern_free(&in);
}

static void a_frame_does_not_come_back_when_stamps_have_come_round(void **state)
{
    struct intern in;
    uint32_t id;

    (void)state;
    spoolint_intern_init(&in);
    assert_int_equal(add_loose(&in, false, 0x10, 1), 0); /* with the first stamp */
    spoolint_intern_drop_loose(&in);
    in.loose.stamp = (uint32_t)-2; /* two thousand million drops later */
    assert_int_equal(add_loose(&in, false, 0x20, 1), 1);
    spoolint_intern_drop_loose(&in);
    assert_int_equal(in.loose.stamp, 0);
    assert_false(spoolint_intern_find_loose(&in, false, 0x10, &id));
    assert_false(spoolint_intern_find_loose(&in, false, 0x20, &id));
    assert_int_equal(add_loose(&in, false, 0x10, 1), 2);
    spoolint_intern_free(&in);
}

static void a_stale_frame_does_not_survive_growing(void **state)
{
    struct intern in;
    uint32_t id;

    (void)state;
    spoolint_intern_init(&in);
    add_loose(&in, false, 1, 1);
    spoolint_intern_drop_loose(&in);
    for (uint64_t i = 2; i < 5000; i++)
        add_loose(&in, false, i, 1);
    assert_false(spoolint_intern_find_loose(&in, false, 1, &id));
    assert_true(spoolint_intern_find_loose(&in, false, 2, &id));
    spoolint_intern_free(&in);
}

/* A stack of pinned frames, root first; returns its node. */
static uint32_t add_stack(struct intern *in, uint32_t prefix, uint32_t module, unsigned depth,
                          int expected)
{
    for (unsigned i = 0; i < depth; i++) {
        uint32_t frame;

        assert_int_equal(spoolint_intern_pinned(in, module, i, &frame), expected);
        assert_int_equal(spoolint_intern_stack(in, prefix, frame, &prefix), expected);
    }
    return prefix;
}

static void a_sweep_forgets_what_stands_on_retired_modules_only(void **state)
{
    const uint8_t retired[1] = {1 << 2};
    struct intern in;
    uint32_t node, kernel, marker, id;

    (void)state;
    spoolint_intern_init(&in);
    assert_int_equal(spoolint_intern_marker(&in, &marker), 1);
    assert_int_equal(spoolint_intern_stack(&in, SPOOL_NO_ID, marker, &node), 1);
    uint32_t stays = add_stack(&in, node, 1, 5, 1);
    uint32_t goes = add_stack(&in, node, 2, 5, 1);
    kernel = add_loose(&in, true, 0x1000, 1);
    assert_int_equal(spoolint_intern_stack(&in, stays, kernel, &id), 1);
    assert_int_equal(spoolint_intern_stack(&in, goes, kernel, &id), 1);
    spoolint_intern_sweep(&in, retired);
    assert_int_equal(in.fixed.count, 1 + 5);
    assert_int_equal(in.stacks.count, 1 + 5 + 1);
    assert_int_equal(spoolint_intern_marker(&in, &id), 0);
    assert_int_equal(id, marker);
    assert_int_equal(add_stack(&in, node, 1, 5, 0), stays);
    assert_int_equal(spoolint_intern_stack(&in, stays, kernel, &id), 0);
    assert_false(spoolint_intern_find_stack(&in, goes, kernel, &id));
    /* What comes all the same is new. */
    assert_in_range(add_stack(&in, node, 2, 5, 1), goes + 1, UINT32_MAX);
    spoolint_intern_drop_loose(&in);
    spoolint_intern_sweep(&in, retired);
    assert_int_equal(in.stacks.count, 1 + 5);
    spoolint_intern_free(&in);
}

static void modules_that_come_and_go_need_no_more_memory(void **state)
{
    static uint8_t retired[5000];
    struct intern in;
    size_t capacity = 0;

    (void)state;
    spoolint_intern_init(&in);
    for (uint32_t module = 0; module < 8 * sizeof retired; module++) {
        add_stack(&in, SPOOL_NO_ID, module, 50, 1);
        if (spoolint_intern_sweep_due(&in))
            spoolint_intern_sweep(&in, retired);
        retired[module / 8] |= (uint8_t)(1u << module % 8);
        if (module == 1000)
            capacity = in.stacks.capacity + in.fixed.capacity;
    }
    assert_int_equal(in.frame_count, 50 * 8 * sizeof retired);
    assert_in_range(in.stacks.capacity + in.fixed.capacity, 1, 2 * capacity);
    spoolint_intern_free(&in);
}

static void empty_tables_know_nothing(void **state)
{
    struct intern in;
    uint32_t id;

    (void)state;
    spoolint_intern_init(&in);
    assert_false(spoolint_intern_find_pinned(&in, 0, 0, &id));
    assert_false(spoolint_intern_find_loose(&in, false, 0, &id));
    assert_false(spoolint_intern_find_stack(&in, 0, 0, &id));
    assert_false(spoolint_intern_find_thread(&in, 0, 0, &id));
    spoolint_intern_free(&in);
    spoolint_intern_free(&in); /* freeing leaves an empty one */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_dense_and_start_at_zero),
        cmocka_unit_test(what_is_known_keeps_its_id_while_the_tables_grow),
        cmocka_unit_test(all_parts_of_a_key_count),
        cmocka_unit_test(the_marker_is_one_frame_and_no_pinned_one),
        cmocka_unit_test(loose_frames_are_forgotten_and_fixed_ones_are_not),
        cmocka_unit_test(forgetting_often_needs_no_more_memory),
        cmocka_unit_test(a_frame_does_not_come_back_when_stamps_have_come_round),
        cmocka_unit_test(a_stale_frame_does_not_survive_growing),
        cmocka_unit_test(a_sweep_forgets_what_stands_on_retired_modules_only),
        cmocka_unit_test(modules_that_come_and_go_need_no_more_memory),
        cmocka_unit_test(empty_tables_know_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
