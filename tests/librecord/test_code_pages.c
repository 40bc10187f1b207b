/* SPDX-License-Identifier: MIT */
/* Code read from processes: once a round, and kept when they have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "code_pages.h"

#define PAGE_BYTES 4096u

static uint8_t *map_pages(size_t count)
{
    uint8_t *pages =
        mmap(NULL, count * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(pages != MAP_FAILED);
    return pages;
}

static void a_page_is_read_once_a_round(void **state)
{
    struct code_pages *p = recordint_code_pages_new();
    uint8_t *page = map_pages(1);
    uint64_t at = (uint64_t)(uintptr_t)page + 100;
    uint8_t out[4] = {0};

    (void)state;
    assert_non_null(p);
    memset(page, 1, PAGE_BYTES);
    assert_int_equal(recordint_code_pages_read(p, getpid(), 5, 1, at, out, 4), 4);
    assert_int_equal(out[3], 1);
    memset(page, 2, PAGE_BYTES);
    assert_int_equal(recordint_code_pages_read(p, getpid(), 5, 1, at, out, 4), 4);
    assert_int_equal(out[3], 1);
    assert_int_equal(recordint_code_pages_read(p, getpid(), 5, 2, at, out, 4), 4);
    assert_int_equal(out[3], 2);
    memset(page, 3, PAGE_BYTES);
    assert_int_equal(recordint_code_pages_read(p, getpid(), 6, 2, at, out, 4), 4);
    assert_int_equal(out[3], 3);
    munmap(page, PAGE_BYTES); /* as if the process had ended */
    assert_int_equal(recordint_code_pages_read(p, getpid(), 6, 3, at, out, 4), 4);
    assert_int_equal(recordint_code_pages_read(p, getpid(), 7, 3, at, out, 4), 0);
    recordint_code_pages_free(p);
}

static void what_begins_in_a_page_and_ends_in_none_is_partly_read(void **state)
{
    struct code_pages *p = recordint_code_pages_new();
    uint8_t *pages = map_pages(3);
    uint8_t out[16];

    (void)state;
    assert_non_null(p);
    memset(pages, 1, PAGE_BYTES);
    memset(pages + PAGE_BYTES, 2, PAGE_BYTES);
    munmap(pages + 2 * PAGE_BYTES, PAGE_BYTES);
    assert_int_equal(recordint_code_pages_read(
                         p, getpid(), 1, 1, (uint64_t)(uintptr_t)pages + PAGE_BYTES - 6, out, 16),
                     16);
    assert_int_equal(out[5], 1);
    assert_int_equal(out[6], 2);
    assert_int_equal(recordint_code_pages_read(p, getpid(), 1, 1,
                                               (uint64_t)(uintptr_t)pages + 2 * PAGE_BYTES - 6, out,
                                               16),
                     6);
    munmap(pages, 2 * PAGE_BYTES);
    recordint_code_pages_free(p);
}

static void a_round_reads_no_more_pages_than_its_share(void **state)
{
    struct code_pages *p = recordint_code_pages_new();
    uint8_t *pages = map_pages(17);
    size_t got = 0;
    uint8_t out;

    (void)state;
    assert_non_null(p);
    for (size_t i = 0; i < 10000; i++)
        got += recordint_code_pages_read(p, getpid(), 1, 1,
                                         (uint64_t)(uintptr_t)pages + i % 17 * PAGE_BYTES, &out, 1);
    assert_in_range(got, 4096, 8192); /* what was read stays readable */
    assert_int_equal(
        recordint_code_pages_read(p, getpid(), 1, 2, (uint64_t)(uintptr_t)pages, &out, 1), 1);
    munmap(pages, 17 * PAGE_BYTES);
    recordint_code_pages_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_read_once_a_round),
        cmocka_unit_test(what_begins_in_a_page_and_ends_in_none_is_partly_read),
        cmocka_unit_test(a_round_reads_no_more_pages_than_its_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
