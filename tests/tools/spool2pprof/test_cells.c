/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "cells.h"

static void put(struct cells *c, uint32_t set, uint32_t node, uint64_t samples, uint64_t first)
{
    cells_add(c, &(struct profile_cell){.set = set,
                                        .node = node,
                                        .samples = samples,
                                        .time_ns = samples * 10,
                                        .first = first});
}

static void nothing_stays_nothing(void **state)
{
    struct cells c = {0};

    (void)state;
    cells_merge(&c);
    assert_int_equal(c.count, 0);
    cells_free(&c);
}

static void equal_set_and_node_add_up_and_keep_the_first(void **state)
{
    struct cells c = {0};

    (void)state;
    put(&c, 1, 7, 2, 40);
    put(&c, 0, 7, 1, 30);
    put(&c, 1, 7, 3, 20);
    cells_merge(&c);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.items[0].set, 1);
    assert_int_equal(c.items[0].samples, 5);
    assert_int_equal(c.items[0].time_ns, 50);
    assert_int_equal(c.items[0].first, 20);
    assert_int_equal(c.items[1].set, 0);
    cells_free(&c);
}

static void order_is_that_of_the_first_samples_whatever_the_size_of_numbers(void **state)
{
    static const uint64_t firsts[] = {UINT64_C(1) << 60, 5, UINT64_C(1) << 33, 0, 4096, 4095};
    static const uint64_t sorted[] = {0, 5, 4095, 4096, UINT64_C(1) << 33, UINT64_C(1) << 60};
    struct cells c = {0};

    (void)state;
    for (uint32_t i = 0; i < 6; i++)
        put(&c, UINT32_MAX - i, UINT32_MAX - 2 * i, 1, firsts[i]);
    cells_merge(&c);
    assert_int_equal(c.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_true(c.items[i].first == sorted[i]);
    cells_free(&c);
}

static void many_random_cells_agree_with_a_table(void **state)
{
    enum { SETS = 7, NODES = 300, CELLS = 20000 };
    static uint64_t samples[SETS][NODES], first[SETS][NODES];
    struct cells c = {0};
    uint64_t seed = 1, total = 0;

    (void)state;
    for (uint64_t i = 0; i < CELLS; i++) {
        uint32_t set, node;

        seed = seed * UINT64_C(6364136223846793005) + 1;
        set = (uint32_t)(seed >> 40) % SETS;
        node = (uint32_t)(seed >> 20) % NODES;
        if (samples[set][node] == 0)
            first[set][node] = i;
        samples[set][node] += i % 3 + 1;
        put(&c, set, node, i % 3 + 1, i);
    }
    cells_merge(&c);
    for (size_t i = 0; i < c.count; i++) {
        const struct profile_cell *cell = &c.items[i];

        assert_true(i == 0 || c.items[i - 1].first < cell->first);
        assert_int_equal(cell->samples, samples[cell->set][cell->node]);
        assert_int_equal(cell->first, first[cell->set][cell->node]);
        samples[cell->set][cell->node] = 0;
    }
    for (size_t set = 0; set < SETS; set++)
        for (size_t node = 0; node < NODES; node++)
            total += samples[set][node];
    assert_int_equal(total, 0);
    cells_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_stays_nothing),
        cmocka_unit_test(equal_set_and_node_add_up_and_keep_the_first),
        cmocka_unit_test(order_is_that_of_the_first_samples_whatever_the_size_of_numbers),
        cmocka_unit_test(many_random_cells_agree_with_a_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
