/* SPDX-License-Identifier: MIT */
/* Charging samples to unnamed modules, against a count that walks every stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "misses.h"

#define PLACES 6

static uint32_t places[300000]; /* by node; MISSES_NONE: named */

static uint32_t place_of(void *user, uint32_t node, enum sym_miss *reason)
{
    (void)user;
    *reason = SYM_MISS_NO_FILE;
    return places[node];
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void a_sample_is_charged_once_to_each_unnamed_module_of_its_stack(void **state)
{
    enum { NODES = 400 };
    struct spool_stack_node nodes[NODES];
    uint64_t random = 1;

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct spool_counts counts = {.modules = PLACES - 2, .stacks = NODES};
        uint64_t expected[PLACES] = {0}, samples[NODES];
        struct misses m;

        misses_init(&m, &counts);
        /* Two sources: what the first charged stays. */
        for (int source = 0; source < 2; source++) {
            for (uint32_t i = 0; i < NODES; i++) {
                bool root = i == 0 || next_random(&random) % 20 == 0;

                nodes[i].prefix = root ? SPOOL_NO_ID : (uint32_t)(next_random(&random) % i);
                places[i] = next_random(&random) % 3 == 0
                                ? (uint32_t)(next_random(&random) % PLACES)
                                : MISSES_NONE;
                samples[i] = next_random(&random) % 5;
            }
            for (uint32_t i = 0; i < NODES; i++) {
                bool seen[PLACES] = {false};

                for (uint32_t at = i; at != SPOOL_NO_ID; at = nodes[at].prefix)
                    if (places[at] != MISSES_NONE)
                        seen[places[at]] = true;
                for (int p = 0; p < PLACES; p++)
                    expected[p] += seen[p] ? samples[i] : 0;
                misses_visit(&m, i, nodes[i].prefix);
                misses_count(&m, i, samples[i]);
            }
            misses_charge(&m, nodes, place_of, NULL);
        }
        assert_memory_equal(m.samples, expected, sizeof expected);
        assert_int_equal(misses_kernel(&m), PLACES - 2);
        assert_int_equal(misses_no_module(&m), PLACES - 1);
        misses_free(&m);
    }
}

static void samples_all_along_a_deep_stack_take_linear_time(void **state)
{
    enum { NODES = 300000 };
    struct spool_stack_node *nodes = malloc(NODES * sizeof *nodes);
    struct spool_counts counts = {.modules = 1, .stacks = NODES};
    struct misses m;
    clock_t begin = clock();

    (void)state;
    assert_non_null(nodes);
    misses_init(&m, &counts);
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i].prefix = i == 0 ? SPOOL_NO_ID : i - 1;
        places[i] = 0;
        misses_visit(&m, i, nodes[i].prefix);
        misses_count(&m, i, 1);
    }
    misses_charge(&m, nodes, place_of, NULL);
    assert_int_equal(m.samples[0], NODES);
    assert_int_equal(m.reasons[0], SYM_MISS_NO_FILE);
    assert_true(clock() - begin < 5 * CLOCKS_PER_SEC); /* 4.5e10 steps, if it were not */
    misses_free(&m);
    free(nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_charged_once_to_each_unnamed_module_of_its_stack),
        cmocka_unit_test(samples_all_along_a_deep_stack_take_linear_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
