/* SPDX-License-Identifier: MIT */
/* Limits of the kernel: CPU lists, sysctls, sizes of rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel_limits.h"

static void lists_of_cpus_are_read(void **state)
{
    static const int sparse[] = {0, 1, 2, 3, 8, 10, 11};
    int *cpus;

    (void)state;
    assert_int_equal(recordint_limits_parse_cpus("0-3,8,10-11\n", &cpus), 7);
    assert_memory_equal(cpus, sparse, sizeof sparse);
    free(cpus);
    assert_int_equal(recordint_limits_parse_cpus("0", &cpus), 1);
    assert_int_equal(cpus[0], 0);
    free(cpus);
    assert_int_equal(recordint_limits_parse_cpus("5-5,4095", &cpus), 2);
    assert_int_equal(cpus[1], 4095);
    free(cpus);
}

static void what_is_no_list_of_cpus_is_refused(void **state)
{
    static const char *const texts[] = {
        "",           "\n",    "x",   "0-",    "-3",
        "0,",         "0-3,2", "3-1", "0,,1",  "0-3 ",
        "1 2",        "0;1",   "0x",  "0-1-2", "99999999999999999999",
        "0-99999999", "4,4",
    };
    int *cpus;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(recordint_limits_parse_cpus(texts[i], &cpus), 0);
        assert_null(cpus);
    }
}

static void the_online_cpus_ascend(void **state)
{
    int *cpus;
    size_t count = recordint_limits_online_cpus(&cpus);

    (void)state;
    assert_int_equal(count, sysconf(_SC_NPROCESSORS_ONLN));
    for (size_t i = 1; i < count; i++)
        assert_true(cpus[i] > cpus[i - 1]);
    free(cpus);
}

static void sysctls_are_read_and_missing_ones_are_not(void **state)
{
    int64_t value = 0;

    (void)state;
    assert_true(recordint_limits_sysctl("pid_max", &value));
    assert_true(value >= 300);
    assert_false(recordint_limits_sysctl("no_such_number", &value));
    assert_false(recordint_limits_sysctl("ostype", &value)); /* a word */
    assert_false(recordint_limits_sysctl(
        "a_name_that_is_far_too_long_a_name_that_is_far_too_long_a_name_that_is_far_too_long_"
        "a_name_that_is_far_too_long_a_name_that_is_far_too_long",
        &value));
}

static void files_are_raised_to_the_hard_limit(void **state)
{
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 64 ? limit.rlim_max : 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(recordint_limits_raise_files() == limit.rlim_max);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_cur == limit.rlim_max);
}

static void locked_memory_is_that_of_the_process(void **state)
{
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = 65536;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    assert_int_equal(recordint_limits_memlock_bytes(), 65536);
}

static void kernels_are_compared_by_major_then_minor(void **state)
{
    (void)state;
    assert_true(recordint_limits_kernel_at_least(2, 99));
    assert_true(recordint_limits_kernel_at_least(0, 0));
    assert_false(recordint_limits_kernel_at_least(99, 0));
}

static void a_ring_holds_200_ms_of_samples(void **state)
{
    (void)state;
    assert_int_equal(recordint_limits_ring_size(1, 8), 1 << 20);
    assert_int_equal(recordint_limits_ring_size(99, 32768), 1 << 20);
    assert_int_equal(recordint_limits_ring_size(999, 32768), 8 << 20);
    assert_int_equal(recordint_limits_ring_size(4999, 32768), 16 << 20);
    assert_int_equal(recordint_limits_ring_size(UINT32_MAX, UINT32_MAX), 16 << 20);
    for (uint32_t hz = 1; hz < 2000; hz += 13) {
        size_t size = recordint_limits_ring_size(hz, 16384);

        assert_int_equal(size & (size - 1), 0);
        assert_true(size >= (size_t)hz * 16384 / 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_cpus_are_read),
        cmocka_unit_test(what_is_no_list_of_cpus_is_refused),
        cmocka_unit_test(the_online_cpus_ascend),
        cmocka_unit_test(sysctls_are_read_and_missing_ones_are_not),
        cmocka_unit_test(files_are_raised_to_the_hard_limit),
        cmocka_unit_test(locked_memory_is_that_of_the_process),
        cmocka_unit_test(kernels_are_compared_by_major_then_minor),
        cmocka_unit_test(a_ring_holds_200_ms_of_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
