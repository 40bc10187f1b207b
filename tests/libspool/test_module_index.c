/* SPDX-License-Identifier: MIT */
/*
 * The module search against a naive one, and its cost in the worst cases, counted in steps: time
 * would depend on the machine. For the count the source is included, not linked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t steps;
#define MODULE_INDEX_STEP() ((void)steps++)
#include "module_index.c"

#include "spool/spool.h"

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

struct world {
    struct module_index *index;
    struct indexed_module *modules; /* in the order of adding */
    uint64_t *retired_at;           /* by id */
    size_t count;
    size_t capacity;
    uint32_t next_id;
    uint64_t frames;
};

static uint64_t get_retired_at(const void *user, uint32_t id)
{
    const struct world *w = user;

    return w->retired_at[id];
}

static struct world *world_new(size_t capacity)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    w->capacity = capacity;
    w->modules = calloc(capacity, sizeof *w->modules);
    w->retired_at = calloc(2 * capacity, sizeof *w->retired_at);
    assert_true(w->modules != NULL && w->retired_at != NULL);
    w->index = spoolint_module_index_new(get_retired_at, w);
    assert_non_null(w->index);
    random_state = capacity * 77777 + 1;
    steps = 0;
    return w;
}

static void world_free(struct world *w)
{
    spoolint_module_index_free(w->index);
    free(w->modules);
    free(w->retired_at);
    free(w);
}

static void add(struct world *w, uint64_t start, uint64_t end)
{
    struct indexed_module *m = &w->modules[w->count++];

    assert_true(w->count <= w->capacity);
    *m = (struct indexed_module){.id = w->next_id++, .start = start, .end = end};
    w->retired_at[m->id] = SPOOL_NOT_RETIRED;
    assert_int_equal(spoolint_module_index_add(w->index, m), 0);
}

static void retire(struct world *w, uint32_t id)
{
    if (w->retired_at[id] == SPOOL_NOT_RETIRED)
        w->retired_at[id] = w->frames;
}

static uint32_t naive(const struct world *w, uint64_t address, uint32_t limit, uint64_t frame)
{
    for (size_t i = w->count; i-- > 0;) {
        const struct indexed_module *m = &w->modules[i];

        if (m->id < limit && m->start <= address && address < m->end &&
            frame < w->retired_at[m->id])
            return m->id;
    }
    return SPOOL_NO_ID;
}

static uint32_t find(struct world *w, uint64_t address, uint32_t limit, uint64_t frame)
{
    uint32_t id = SPOOL_NO_ID;
    int rc = spoolint_module_index_find(w->index, address, limit, frame, &id);

    assert_true(rc == 0 || rc == 1);
    assert_int_equal(rc == 0, id == SPOOL_NO_ID);
    return id;
}

static void check(struct world *w, uint64_t address, uint32_t limit, uint64_t frame)
{
    uint32_t expected = naive(w, address, limit, frame);
    uint32_t got = find(w, address, limit, frame);

    if (got != expected)
        fail_msg("address %llu limit %u frame %llu: module %u, not %u", (unsigned long long)address,
                 limit, (unsigned long long)frame, got, expected);
}

/* One random life: `space` small makes modules overlap, `query_share` of 100 steps ask. */
static void live(size_t modules, uint64_t space, unsigned query_share, unsigned retire_share)
{
    struct world *w = world_new(modules);

    random_state += space * 31 + query_share * 7 + retire_share;
    while (w->count < modules) {
        uint64_t step = random_below(100);

        if (step < query_share) {
            uint64_t address = random_below(space + 2);

            /* Half of them now, half of them about the past; some limits lie beyond all ids. */
            if (random_below(2) == 0)
                check(w, address, w->next_id, w->frames++);
            else
                check(w, address, (uint32_t)random_below(w->next_id + 3),
                      random_below(w->frames + 2));
        } else if (step < query_share + retire_share && w->next_id > 0) {
            uint32_t first = (uint32_t)random_below(w->next_id);
            uint32_t count = (uint32_t)random_below(random_below(10) == 0 ? 200 : 3);

            for (uint32_t id = first; id < w->next_id && id - first < count; id++)
                retire(w, id);
            w->frames += random_below(2);
        } else {
            uint64_t start = random_below(space);
            uint64_t length = random_below(random_below(3) == 0 ? space : 4);

            if (random_below(4) == 0) /* ids of other classes lie between */
                w->next_id = w->next_id + (w->next_id < modules ? 1 : 0);
            /* Some are empty, some end before they start. */
            add(w, start, random_below(20) == 0 ? start - start / 2 : start + length);
        }
    }
    for (int i = 0; i < 300; i++)
        check(w, random_below(space + 2), (uint32_t)random_below(w->next_id + 1),
              random_below(w->frames + 2));
    world_free(w);
}

static void random_lives_agree_with_a_naive_search(void **state)
{
    static const size_t sizes[] = {1, 10, 63, 64, 65, 66, 130, 300, 1000, 3000};
    static const uint64_t spaces[] = {1, 3, 20, 500, 100000, UINT64_C(1) << 40};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t p = 0; p < sizeof spaces / sizeof spaces[0]; p++) {
            live(sizes[s], spaces[p], 0, 0);
            live(sizes[s], spaces[p], 50, 0);
            live(sizes[s], spaces[p], 40, 20);
            live(sizes[s], spaces[p], 5, 45);
        }
}

static void addresses_reach_from_0_to_the_last(void **state)
{
    struct world *w = world_new(400);

    (void)state;
    add(w, 0, UINT64_MAX);
    for (int i = 0; i < 300; i++)
        add(w, UINT64_MAX - 1 - (uint64_t)i, UINT64_MAX);
    check(w, 0, w->next_id, 0);
    check(w, UINT64_MAX - 2, w->next_id, 0);
    check(w, UINT64_MAX - 1, w->next_id, 0);
    assert_int_equal(find(w, UINT64_MAX, w->next_id, 0), SPOOL_NO_ID);
    assert_int_equal(find(w, UINT64_MAX - 1, SPOOL_NO_ID, 0), 300);
    assert_int_equal(find(w, UINT64_MAX - 1, 0, 0), SPOOL_NO_ID);
    world_free(w);
}

static void frame_numbers_may_be_as_large_as_they_like(void **state)
{
    struct world *w = world_new(300);

    (void)state;
    for (int i = 0; i < 300; i++)
        add(w, 10, 20);
    for (uint32_t id = 100; id < 300; id++)
        w->retired_at[id] = UINT32_MAX - UINT64_C(150) + id; /* on both sides of 2^32 */
    for (uint64_t frame = UINT32_MAX - UINT64_C(60); frame < UINT32_MAX + UINT64_C(200); frame += 3)
        check(w, 15, w->next_id, frame);
    for (uint64_t frame = UINT32_MAX + UINT64_C(200); frame > UINT32_MAX - UINT64_C(60); frame -= 3)
        check(w, 15, w->next_id, frame);
    world_free(w);
}

static void an_empty_index_finds_nothing(void **state)
{
    struct world *w = world_new(1000);

    (void)state;
    assert_int_equal(find(w, 5, SPOOL_NO_ID, 0), SPOOL_NO_ID);
    for (int i = 0; i < 1000; i++)
        add(w, 50, i % 2 == 0 ? 50 : 40);
    assert_int_equal(find(w, 45, SPOOL_NO_ID, 0), SPOOL_NO_ID);
    assert_int_equal(find(w, 50, SPOOL_NO_ID, 0), SPOOL_NO_ID);
    world_free(w);
    spoolint_module_index_free(NULL);
}

enum { MANY = 30000 };

/* Twice what the worst takes, and far below a search in MANY modules for each of MANY questions. */
#define STEPS_LIMIT ((uint64_t)MANY * 1000)

static void many_nested_modules_that_retire_from_the_top_stay_cheap(void **state)
{
    struct world *w = world_new(MANY);

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        add(w, i, 2 * MANY - i);
        assert_int_equal(find(w, MANY, w->next_id, w->frames), i);
    }
    for (uint32_t i = MANY; i-- > 1;) {
        w->frames++;
        retire(w, i);
        assert_int_equal(find(w, MANY, w->next_id, w->frames), i - 1);
        assert_int_equal(find(w, MANY, w->next_id, 0), MANY - 1); /* the past stays as it was */
    }
    assert_true(steps < STEPS_LIMIT);
    world_free(w);
}

static void many_overlapping_modules_that_all_miss_stay_cheap(void **state)
{
    struct world *w = world_new(MANY);

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t start = i % 2 == 0 ? random_below(1000) : 5001 + random_below(1000);

        add(w, start, start + 1000 + random_below(3000)); /* none holds 5000 */
        assert_int_equal(find(w, 5000, w->next_id, w->frames), SPOOL_NO_ID);
        assert_int_equal(find(w, 10000, w->next_id, w->frames++), SPOOL_NO_ID);
    }
    assert_true(steps < STEPS_LIMIT);
    world_free(w);
}

static void many_dead_modules_over_one_that_lives_stay_cheap(void **state)
{
    struct world *w = world_new(MANY);

    (void)state;
    add(w, 0, 1000000);
    for (uint64_t i = 1; i < MANY; i++) {
        add(w, random_below(500000), 500001 + random_below(400000));
        w->frames++;
        retire(w, (uint32_t)i);
        assert_int_equal(find(w, 500000, w->next_id, w->frames), 0);
    }
    assert_true(steps < STEPS_LIMIT);
    world_free(w);
}

/* A class that never asks while it grows, then asks about every moment of its past. */
static void many_questions_about_the_past_stay_cheap(void **state)
{
    struct world *w = world_new(MANY);

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        add(w, random_below(1000), 1001 + random_below(1000));
        if (i >= 10)
            retire(w, (uint32_t)i - 10);
        w->frames++;
    }
    for (uint32_t i = 10; i < MANY; i++)
        assert_int_equal(find(w, 1000, i, i - 1), i - 1);
    for (uint32_t i = 1; i < MANY - 10; i++) /* the last ten before the limit were retired */
        assert_int_equal(find(w, 1000, i, i + 20), SPOOL_NO_ID);
    assert_true(steps < STEPS_LIMIT);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lives_agree_with_a_naive_search),
        cmocka_unit_test(addresses_reach_from_0_to_the_last),
        cmocka_unit_test(frame_numbers_may_be_as_large_as_they_like),
        cmocka_unit_test(an_empty_index_finds_nothing),
        cmocka_unit_test(many_nested_modules_that_retire_from_the_top_stay_cheap),
        cmocka_unit_test(many_overlapping_modules_that_all_miss_stay_cheap),
        cmocka_unit_test(many_dead_modules_over_one_that_lives_stay_cheap),
        cmocka_unit_test(many_questions_about_the_past_stay_cheap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
