/* SPDX-License-Identifier: MIT */
/* All samples in memory: the same ones as the reader gives, in any order. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool/spool.h"

static const uint8_t one_sample[] = {'S', 'P', 'U',  'L',  'S',  'E',  '3',  0, 5, 9, //
                                     2,   0,   1,    0x10,                            //
                                     3,   0,   0xff, 0xff, 0xff, 0xff, 0x0f, 0,       //
                                     4,   0,   14,   8,                               //
                                     5,   20,  0,    0};

static int open_fixture(const char *name)
{
    char path[512];
    int fd;

    snprintf(path, sizeof path, "%s/stackpulse/%s.spool", FIXTURES_DIR, name);
    fd = open(path, O_RDONLY);
    if (fd < 0)
        fail_msg("cannot open %s", path);
    return fd;
}

static uint8_t *read_fixture(const char *name, size_t *size)
{
    int fd = open_fixture(name);
    off_t end = lseek(fd, 0, SEEK_END);
    uint8_t *data;

    assert_true(end > 0);
    *size = (size_t)end;
    data = malloc(*size);
    assert_non_null(data);
    assert_int_equal(pread(fd, data, *size, 0), end);
    close(fd);
    return data;
}

static struct spool_snapshot *new_snapshot(void)
{
    struct spool_snapshot *s = spool_snapshot_new();

    assert_non_null(s);
    return s;
}

static void assert_same_sample(const struct spool_sample *a, const struct spool_sample *b)
{
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->delta_ns, b->delta_ns);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_int_equal(a->thread, b->thread);
    assert_int_equal(a->stack, b->stack);
    assert_int_equal(a->pid, b->pid);
    assert_int_equal(a->tid, b->tid);
}

static void a_snapshot_has_the_samples_that_the_reader_gives(void **state)
{
    static const char *const names[] = {"synth/basic", "synth/backwards", "synth/churn-half",
                                        "ladder/ladder-O2", "python/py312"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct spool_snapshot *by_fd = new_snapshot(), *by_memory = new_snapshot();
        struct spool_reader *r = spool_reader_new();
        struct spool_record rec;
        struct spool_sample got;
        uint64_t count = 0;
        size_t size;
        uint8_t *data = read_fixture(names[i], &size);
        int fd = open_fixture(names[i]);

        assert_non_null(r);
        assert_int_equal(spool_snapshot_load_fd(by_fd, fd), 0);
        assert_int_equal(close(fd), 0);
        assert_int_equal(spool_snapshot_load_memory(by_memory, data, size), 0);
        assert_int_equal(spool_reader_open_memory(r, data, size), 0);
        while (spool_reader_next(r, &rec) > 0) {
            if (rec.type != SPOOL_RECORD_SAMPLE)
                continue;
            assert_true(spool_snapshot_sample(by_fd, count, &got));
            assert_same_sample(&got, &rec.sample);
            assert_true(spool_snapshot_sample(by_memory, count, &got));
            assert_same_sample(&got, &rec.sample);
            count++;
        }
        assert_true(count > 200);
        assert_int_equal(spool_snapshot_sample_count(by_fd), count);
        assert_int_equal(spool_snapshot_sample_count(by_memory), count);
        assert_false(spool_snapshot_sample(by_fd, count, &got));
        assert_false(spool_snapshot_sample(by_fd, UINT64_MAX, &got));
        spool_reader_free(r);
        spool_snapshot_free(by_fd);
        spool_snapshot_free(by_memory);
        free(data);
    }
}

static void samples_can_be_read_in_any_order(void **state)
{
    struct spool_snapshot *s = new_snapshot();
    int fd = open_fixture("synth/backwards");
    struct spool_sample a, b;
    uint64_t count;

    (void)state;
    assert_int_equal(spool_snapshot_load_fd(s, fd), 0);
    close(fd);
    count = spool_snapshot_sample_count(s);
    for (uint64_t i = count; i-- > 1;) {
        assert_true(spool_snapshot_sample(s, i, &b));
        assert_true(spool_snapshot_sample(s, i - 1, &a));
        assert_int_equal(a.time_ns + (uint64_t)b.delta_ns, b.time_ns);
    }
    spool_snapshot_free(s);
}

static void definitions_come_from_the_reader_behind(void **state)
{
    struct spool_snapshot *s = new_snapshot();
    struct spool_reader *r = spool_snapshot_reader(s);
    struct spool_sample sample;
    struct spool_record rec;
    struct spool_stack stack;
    struct spool_frame frame;

    (void)state;
    assert_int_equal(spool_snapshot_load_memory(s, one_sample, sizeof one_sample), 0);
    assert_true(spool_snapshot_sample(s, 0, &sample));
    assert_int_equal(sample.pid, 7);
    assert_int_equal(sample.tid, 8);
    assert_int_equal(sample.time_ns, 10);
    assert_int_equal(sample.delta_ns, 10);
    assert_true(spool_reader_stack(r, sample.stack, &stack));
    assert_true(spool_reader_frame(r, stack.frame, &frame));
    assert_int_equal(frame.abs, 0x10);
    assert_int_equal(spool_reader_header(r)->start_us, 5);
    assert_int_equal(spool_reader_next(r, &rec), 0);
    spool_snapshot_free(s);
}

static void a_snapshot_without_samples_is_empty(void **state)
{
    struct spool_snapshot *s = new_snapshot();
    struct spool_sample sample;

    (void)state;
    assert_int_equal(spool_snapshot_sample_count(s), 0);
    assert_false(spool_snapshot_sample(s, 0, &sample));
    assert_int_equal(spool_snapshot_load_memory(s, one_sample, 10), 0);
    assert_int_equal(spool_snapshot_sample_count(s), 0);
    assert_false(spool_snapshot_sample(s, 0, &sample));
    spool_snapshot_free(s);
    spool_snapshot_free(NULL);
}

static void a_cut_tail_keeps_the_samples_before_it(void **state)
{
    size_t size;
    uint8_t *whole = read_fixture("synth/churn", &size);
    struct spool_snapshot *s = new_snapshot();

    (void)state;
    assert_int_equal(spool_snapshot_load_memory(s, whole, size - 2), 0);
    assert_int_equal(spool_snapshot_sample_count(s), 2999);
    assert_true(spool_reader_cut_tail(spool_snapshot_reader(s)));
    spool_snapshot_free(s);
    free(whole);
}

static void an_error_keeps_the_samples_before_it_and_says_what_it_is(void **state)
{
    uint8_t bad[sizeof one_sample + 1];
    struct spool_snapshot *s = new_snapshot();
    struct spool_sample sample;

    (void)state;
    memcpy(bad, one_sample, sizeof one_sample);
    bad[sizeof one_sample] = 0x0a; /* no such tag */
    assert_int_equal(spool_snapshot_load_memory(s, bad, sizeof bad), SPOOL_ERR_CORRUPT);
    assert_int_equal(spool_snapshot_sample_count(s), 1);
    assert_true(spool_snapshot_sample(s, 0, &sample));
    assert_string_not_equal(spool_reader_error(spool_snapshot_reader(s)), "no error");
    spool_snapshot_free(s);

    s = new_snapshot();
    assert_int_equal(spool_snapshot_load_memory(s, bad, 9), SPOOL_ERR_TRUNCATED);
    assert_int_equal(spool_snapshot_sample_count(s), 0);
    spool_snapshot_free(s);

    s = new_snapshot();
    assert_int_equal(spool_snapshot_load_fd(s, -1), SPOOL_ERR_IO);
    spool_snapshot_free(s);
}

static void a_snapshot_is_loaded_once(void **state)
{
    struct spool_snapshot *s = new_snapshot();

    (void)state;
    assert_int_equal(spool_snapshot_load_memory(s, one_sample, sizeof one_sample), 0);
    assert_int_equal(spool_snapshot_load_memory(s, one_sample, sizeof one_sample),
                     SPOOL_ERR_MISUSE);
    assert_int_equal(spool_snapshot_load_fd(s, 0), SPOOL_ERR_MISUSE);
    assert_int_equal(spool_snapshot_sample_count(s), 1);
    spool_snapshot_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_has_the_samples_that_the_reader_gives),
        cmocka_unit_test(samples_can_be_read_in_any_order),
        cmocka_unit_test(definitions_come_from_the_reader_behind),
        cmocka_unit_test(a_snapshot_without_samples_is_empty),
        cmocka_unit_test(a_cut_tail_keeps_the_samples_before_it),
        cmocka_unit_test(an_error_keeps_the_samples_before_it_and_says_what_it_is),
        cmocka_unit_test(a_snapshot_is_loaded_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
