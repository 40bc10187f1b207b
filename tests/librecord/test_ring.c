/* SPDX-License-Identifier: MIT */
/* The ring: records in place and round its end, what is corrupt, and a writer that runs at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "fake_ring.h"

enum { SIZE = 4096 };

/* A record of `size` bytes filled with its number. */
static void make(uint64_t *record, size_t size, uint64_t number)
{
    struct perf_event_header header = {PERF_RECORD_SAMPLE, 0, (uint16_t)size};

    memcpy(record, &header, sizeof header);
    for (size_t i = 1; i < size / 8; i++)
        record[i] = number * 1000003 + i;
}

static bool matches(const void *data, size_t size, uint64_t number)
{
    uint64_t expected[SIZE / 8];

    make(expected, size, number);
    return memcmp(data, expected, size) == 0;
}

static void expect_next(struct ring *r, size_t size, uint64_t number)
{
    const void *data;
    size_t got;

    assert_true(recordint_ring_peek(r, &data, &got));
    assert_int_equal(got, size);
    assert_int_equal((uintptr_t)data % 8, 0);
    assert_true(matches(data, size, number));
    recordint_ring_consume(r);
}

static void an_empty_ring_has_no_record(void **state)
{
    struct fake_ring f;
    const void *data;
    size_t size;

    (void)state;
    fake_ring_new(&f, SIZE, 0);
    assert_int_equal(recordint_ring_update(&f.ring), 0);
    assert_false(recordint_ring_peek(&f.ring, &data, &size));
    recordint_ring_consume(&f.ring);
    assert_int_equal(f.ring.corrupt, 0);
    assert_int_equal(f.ring.tail, 0);
    fake_ring_free(&f);
}

static void a_record_may_start_anywhere(void **state)
{
    uint64_t record[SIZE / 8];

    (void)state;
    /* Positions near 2^64 too: head and tail go round there. */
    for (uint64_t start = UINT64_MAX - SIZE + 1; start != SIZE; start += 8) {
        struct fake_ring f;

        fake_ring_new(&f, SIZE, start);
        make(record, 1000, 1);
        assert_true(fake_ring_write(&f, record, 1000));
        make(record, 8, 2);
        assert_true(fake_ring_write(&f, record, 8));
        make(record, SIZE - 1008, 3);
        assert_true(fake_ring_write(&f, record, SIZE - 1008));
        assert_int_equal(recordint_ring_unread(&f.ring), SIZE);
        assert_int_equal(recordint_ring_update(&f.ring), SIZE);
        expect_next(&f.ring, 1000, 1);
        expect_next(&f.ring, 8, 2);
        expect_next(&f.ring, SIZE - 1008, 3);
        assert_int_equal(recordint_ring_unread(&f.ring), 0);
        assert_int_equal(f.ring.corrupt, 0);
        fake_ring_free(&f);
    }
}

static void only_a_record_that_wraps_is_copied(void **state)
{
    uint64_t record[16];
    struct fake_ring f;
    const void *data;
    const uint8_t *end;
    size_t size;

    (void)state;
    fake_ring_new(&f, SIZE, SIZE - 128 - 64);
    end = f.ring.data + SIZE;
    make(record, 128, 1);
    fake_ring_write(&f, record, 128);
    fake_ring_write(&f, record, 128);
    recordint_ring_update(&f.ring);
    assert_true(recordint_ring_peek(&f.ring, &data, &size));
    assert_true(data == end - 192);
    recordint_ring_consume(&f.ring);
    assert_null(f.ring.copy);
    assert_true(recordint_ring_peek(&f.ring, &data, &size));
    assert_true(data == f.ring.copy);
    assert_true(matches(data, size, 1));
    fake_ring_free(&f);
}

static void the_kernel_sees_the_tail_only_after_release(void **state)
{
    uint64_t record[8];
    struct fake_ring f;

    (void)state;
    fake_ring_new(&f, SIZE, 0);
    make(record, 64, 1);
    fake_ring_write(&f, record, 64);
    recordint_ring_update(&f.ring);
    expect_next(&f.ring, 64, 1);
    assert_int_equal(fake_control(&f)->data_tail, 0);
    recordint_ring_release(&f.ring);
    assert_int_equal(fake_control(&f)->data_tail, 64);
    fake_ring_free(&f);
}

static void records_after_the_head_was_taken_are_not_seen(void **state)
{
    uint64_t record[8];
    struct fake_ring f;
    const void *data;
    size_t size;

    (void)state;
    fake_ring_new(&f, SIZE, 0);
    make(record, 64, 1);
    fake_ring_write(&f, record, 64);
    recordint_ring_update(&f.ring);
    fake_ring_write(&f, record, 64);
    expect_next(&f.ring, 64, 1);
    assert_false(recordint_ring_peek(&f.ring, &data, &size));
    assert_int_equal(recordint_ring_unread(&f.ring), 64);
    fake_ring_free(&f);
}

static void a_corrupt_size_resynchronises_to_the_head(void **state)
{
    static const uint16_t sizes[] = {0, 4, 12, 72, 65528};
    uint64_t record[8];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct perf_event_header header;
        struct fake_ring f;
        const void *data;
        size_t size;

        fake_ring_new(&f, SIZE, 0);
        make(record, 64, 1);
        memcpy(&header, record, sizeof header);
        header.size = sizes[i];
        memcpy(record, &header, sizeof header);
        fake_ring_write(&f, record, 64);
        recordint_ring_update(&f.ring);
        assert_false(recordint_ring_peek(&f.ring, &data, &size));
        assert_int_equal(f.ring.corrupt, 1);

        make(record, 64, 2);
        fake_ring_write(&f, record, 64);
        recordint_ring_update(&f.ring);
        expect_next(&f.ring, 64, 2);
        assert_int_equal(f.ring.corrupt, 1);
        fake_ring_free(&f);
    }
}

static void a_head_out_of_reach_is_corrupt(void **state)
{
    static const uint64_t heads[] = {SIZE + 8, 1 << 20, UINT64_MAX - 7};
    struct fake_ring f;

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        fake_ring_new(&f, SIZE, 0);
        fake_control(&f)->data_head = heads[i];
        assert_true(recordint_ring_unread(&f.ring) <= SIZE);
        assert_int_equal(recordint_ring_update(&f.ring), 0);
        assert_int_equal(f.ring.corrupt, 1);
        assert_int_equal(f.ring.tail, heads[i]);
        fake_ring_free(&f);
    }
}

static void random_bytes_in_a_ring_are_survived(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        struct fake_ring f;
        const void *data;
        size_t size;

        fake_ring_new(&f, SIZE, 0);
        for (size_t i = 0; i < (FAKE_PAGE + SIZE) / 8; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            f.memory[i] = seed >> 24;
        }
        fake_control(&f)->data_head = seed >> 50;
        recordint_ring_update(&f.ring);
        while (recordint_ring_peek(&f.ring, &data, &size)) {
            uint8_t record[65536];

            memcpy(record, data, size);
            recordint_ring_consume(&f.ring);
        }
        assert_int_equal(f.ring.tail, f.ring.head);
        fake_ring_free(&f);
    }
}

static void mapping_needs_whole_pages_of_an_event(void **state)
{
    struct ring r;

    (void)state;
    assert_int_equal(recordint_ring_map(&r, -1, 3 * 4096), EINVAL);
    assert_int_equal(recordint_ring_map(&r, -1, 8), EINVAL);
    assert_int_equal(recordint_ring_map(&r, -1, 1 << 20), EBADF);
    recordint_ring_unmap(&r); /* of nothing */
}

struct race {
    struct fake_ring f;
    uint64_t written;
    bool stop; /* atomic */
};

static size_t size_of(uint64_t number)
{
    return 8 + 8 * (number * 2654435761u % 97);
}

static void *write_records(void *arg)
{
    struct race *race = arg;
    uint64_t record[SIZE / 8];

    while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
        size_t size = size_of(race->written);

        make(record, size, race->written);
        if (fake_ring_write(&race->f, record, size))
            race->written++;
        else
            sched_yield(); /* the reader may be on the same CPU */
    }
    return NULL;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void a_writer_at_the_same_time_loses_nothing(void **state)
{
    struct race race = {.written = 0, .stop = false};
    uint64_t read = 0;
    double end = seconds() + 1;
    pthread_t writer;
    bool last = false;

    (void)state;
    fake_ring_new(&race.f, SIZE, 0);
    assert_int_equal(pthread_create(&writer, NULL, write_records, &race), 0);
    while (!last) {
        const void *data;
        size_t size;

        if (seconds() > end) {
            __atomic_store_n(&race.stop, true, __ATOMIC_RELAXED);
            pthread_join(writer, NULL);
            last = true;
        }
        if (recordint_ring_update(&race.f.ring) == 0)
            sched_yield();
        while (recordint_ring_peek(&race.f.ring, &data, &size)) {
            if (size != size_of(read) || !matches(data, size, read))
                fail_msg("record %llu differs", (unsigned long long)read);
            recordint_ring_consume(&race.f.ring);
            read++;
        }
        recordint_ring_release(&race.f.ring);
    }
    assert_int_equal(read, race.written);
    assert_int_equal(race.f.ring.corrupt, 0);
    assert_true(read > 1000);
    fake_ring_free(&race.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_ring_has_no_record),
        cmocka_unit_test(a_record_may_start_anywhere),
        cmocka_unit_test(only_a_record_that_wraps_is_copied),
        cmocka_unit_test(the_kernel_sees_the_tail_only_after_release),
        cmocka_unit_test(records_after_the_head_was_taken_are_not_seen),
        cmocka_unit_test(a_corrupt_size_resynchronises_to_the_head),
        cmocka_unit_test(a_head_out_of_reach_is_corrupt),
        cmocka_unit_test(random_bytes_in_a_ring_are_survived),
        cmocka_unit_test(mapping_needs_whole_pages_of_an_event),
        cmocka_unit_test(a_writer_at_the_same_time_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
