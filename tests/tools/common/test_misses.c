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

/* Modules that are each a file of its own. */
static void misses_begin(struct misses *m, const struct spool_counts *counts)
{
    static const char paths[] = "0123456789";
    struct misses_module modules[10] = {0};

    assert_true(counts->modules <= 10);
    for (uint32_t i = 0; i < counts->modules; i++)
        modules[i] = (struct misses_module){.path = &paths[i], .path_size = 1};
    misses_init(m, counts, modules);
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

        misses_begin(&m, &counts);
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
    misses_begin(&m, &counts);
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

#define FILE_OF(name) .path = (name), .path_size = sizeof(name) - 1
#define BUILD(id) .build_id = (const uint8_t *)(id), .build_id_size = sizeof(id) - 1

static void modules_of_one_path_and_build_are_one_place(void **state)
{
    static const struct {
        struct misses_module module;
        uint32_t place;
    } cases[] = {
        {{FILE_OF("/libc")}, 0},
        {{FILE_OF("/app")}, 1},
        {{FILE_OF("/libc")}, 0},
        {{FILE_OF("/libc"), BUILD("\1\2")}, 3},
        {{FILE_OF("/libc"), BUILD("\1\3")}, 4},
        {{FILE_OF("/libc"), BUILD("\1\2\3")}, 5},
        {{FILE_OF("/libc"), BUILD("\1\2")}, 3},
        {{FILE_OF("/lib")}, 7},
        {{FILE_OF("//anon"), .pid = 1}, 8},
        {{FILE_OF("//anon"), .pid = 2}, 9},
        {{FILE_OF("//anon"), .pid = 1}, 8},
        {{FILE_OF("/app"), .kernel = true}, 11},
        {{FILE_OF("/app"), .jit = true}, 12},
        {{FILE_OF("/app")}, 1},
        {{FILE_OF("/libc\0x")}, 14},
        {{.path = NULL}, 15},
        {{.path = NULL}, 15},
    };
    enum { MODULES = sizeof cases / sizeof cases[0] };
    struct spool_counts counts = {.modules = MODULES};
    struct misses_module modules[MODULES];
    struct misses m;

    (void)state;
    for (size_t i = 0; i < MODULES; i++)
        modules[i] = cases[i].module;
    misses_init(&m, &counts, modules);
    for (size_t i = 0; i < MODULES; i++)
        assert_int_equal(m.places[i], cases[i].place);
    assert_int_equal(m.places[misses_kernel(&m)], MODULES);
    assert_int_equal(m.places[misses_no_module(&m)], MODULES + 1);
    misses_unverified(&m, 13);
    assert_true(m.unverified[1]);
    assert_false(m.unverified[13]);
    misses_free(&m);
}

/* Two mappings of a file on one stack, the second of which is the outer one. */
static void a_sample_is_charged_once_to_a_file_that_is_mapped_twice(void **state)
{
    const struct misses_module modules[] = {{FILE_OF("/x")}, {FILE_OF("/x")}};
    const struct spool_stack_node nodes[] = {{.prefix = SPOOL_NO_ID}, {.prefix = 0}, {.prefix = 1}};
    struct spool_counts counts = {.modules = 2, .stacks = 3};
    struct misses m;

    (void)state;
    misses_init(&m, &counts, modules);
    places[0] = 1;
    places[1] = 0;
    places[2] = 1;
    for (uint32_t i = 0; i < 3; i++) {
        misses_visit(&m, i, nodes[i].prefix);
        misses_count(&m, i, 10);
    }
    misses_charge(&m, nodes, place_of, NULL);
    assert_int_equal(m.samples[0], 30);
    assert_int_equal(m.samples[1], 0);
    assert_int_equal(m.charged[0], 1);
    assert_int_equal(m.active[0], 0);
    misses_free(&m);
}

static void many_mappings_of_a_file_take_little_time(void **state)
{
    enum { MODULES = 300000 };
    struct misses_module *modules = calloc(MODULES, sizeof *modules);
    struct spool_counts counts = {.modules = MODULES};
    struct misses m;
    clock_t begin = clock();

    (void)state;
    assert_non_null(modules);
    for (uint32_t i = 0; i < MODULES; i++)
        modules[i] = (struct misses_module){FILE_OF("/usr/lib/libc.so.6"), .pid = (int32_t)i % 2};
    misses_init(&m, &counts, modules);
    assert_int_equal(m.places[MODULES - 2], 0);
    assert_int_equal(m.places[MODULES - 1], 1);
    assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
    misses_free(&m);
    free(modules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_charged_once_to_each_unnamed_module_of_its_stack),
        cmocka_unit_test(samples_all_along_a_deep_stack_take_linear_time),
        cmocka_unit_test(modules_of_one_path_and_build_are_one_place),
        cmocka_unit_test(a_sample_is_charged_once_to_a_file_that_is_mapped_twice),
        cmocka_unit_test(many_mappings_of_a_file_take_little_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
