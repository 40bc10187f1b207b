/* SPDX-License-Identifier: MIT */
/* The bump allocator: pieces are aligned, apart from each other, and stay where they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "arena.h"

static void pieces_of_all_sizes_are_aligned_and_do_not_overlap(void **state)
{
    enum { PIECES = 3000 };
    static struct {
        uint8_t *p;
        size_t size;
    } pieces[PIECES];
    struct arena *a = spoolint_arena_new();
    uint32_t seed = 7;

    (void)state;
    assert_non_null(a);
    for (size_t i = 0; i < PIECES; i++) {
        size_t align, size;

        seed = seed * 1103515245u + 12345u;
        align = (size_t)1 << (seed >> 16) % 13;
        size = (seed >> 8) % (i % 100 == 0 ? 300000 : 200);
        pieces[i].p = spoolint_arena_alloc(a, size, align);
        pieces[i].size = size;
        assert_non_null(pieces[i].p);
        assert_int_equal((uintptr_t)pieces[i].p % align, 0);
        memset(pieces[i].p, (int)(i % 251), size);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < pieces[i].size; k++)
            if (pieces[i].p[k] != i % 251)
                fail_msg("piece %zu was overwritten", i);
    spoolint_arena_free(a);
}

static void a_copied_text_ends_with_a_nul(void **state)
{
    struct arena *a = spoolint_arena_new();
    char *text = spoolint_arena_copy_text(a, "a\0bcd", 3);
    char *empty = spoolint_arena_copy_text(a, NULL, 0);

    (void)state;
    assert_memory_equal(text, "a\0b", 4);
    assert_string_equal(empty, "");
    spoolint_arena_free(a);
}

static void an_impossible_size_fails_and_leaves_the_arena_usable(void **state)
{
    struct arena *a = spoolint_arena_new();
    char *before = spoolint_arena_copy_text(a, "before", 6);

    (void)state;
    assert_null(spoolint_arena_alloc(a, SIZE_MAX, 1));
    assert_null(spoolint_arena_alloc(a, SIZE_MAX - 100, 8));
    assert_null(spoolint_arena_copy_text(a, "x", SIZE_MAX));
    assert_string_equal(spoolint_arena_copy_text(a, "behind", 6), "behind");
    assert_string_equal(before, "before");
    spoolint_arena_free(a);
}

static void a_piece_of_size_0_is_not_null(void **state)
{
    struct arena *a = spoolint_arena_new();

    (void)state;
    assert_non_null(spoolint_arena_alloc(a, 0, 1));
    assert_non_null(spoolint_arena_alloc(a, 0, 4096));
    spoolint_arena_free(a);
}

static void freeing_nothing_is_allowed(void **state)
{
    (void)state;
    spoolint_arena_free(NULL);
    spoolint_arena_free(spoolint_arena_new());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_all_sizes_are_aligned_and_do_not_overlap),
        cmocka_unit_test(a_copied_text_ends_with_a_nul),
        cmocka_unit_test(an_impossible_size_fails_and_leaves_the_arena_usable),
        cmocka_unit_test(a_piece_of_size_0_is_not_null),
        cmocka_unit_test(freeing_nothing_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
