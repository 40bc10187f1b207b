/* SPDX-License-Identifier: MIT */
/*
 * The table of ids, against a plain array.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "idmap.h"

#define KEYS 2000

static void random_calls_agree_with_an_array(void **state)
{
    static char values[KEYS];
    void *expected[KEYS] = {NULL};
    struct idmap map = {0};
    size_t at, seen, count = 0;

    (void)state;
    srand(7);
    for (int i = 0; i < 200000; i++) {
        uint32_t key = 1 + (uint32_t)rand() % (KEYS - 1);

        switch (rand() % 3) {
        case 0:
            count += expected[key] == NULL;
            expected[key] = &values[rand() % KEYS];
            assert_int_equal(recordint_idmap_put(&map, key, expected[key]), 0);
            break;
        case 1:
            count -= expected[key] != NULL;
            expected[key] = NULL;
            recordint_idmap_remove(&map, key);
            break;
        default:
            assert_ptr_equal(recordint_idmap_get(&map, key), expected[key]);
        }
        assert_int_equal(map.count, count);
    }
    for (uint32_t key = 1; key < KEYS; key++)
        assert_ptr_equal(recordint_idmap_get(&map, key), expected[key]);
    for (at = 0, seen = 0; recordint_idmap_next(&map, &at) != NULL;)
        seen++;
    assert_int_equal(seen, count);
    recordint_idmap_free(&map);
}

static void a_table_that_was_never_used_is_empty(void **state)
{
    struct idmap map = {0};
    size_t at = 0;

    (void)state;
    assert_null(recordint_idmap_get(&map, 5));
    recordint_idmap_remove(&map, 5);
    assert_null(recordint_idmap_next(&map, &at));
    recordint_idmap_free(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls_agree_with_an_array),
        cmocka_unit_test(a_table_that_was_never_used_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
