/* SPDX-License-Identifier: MIT */
/* The merge of rings, against sorting; what is held back, and rings that are nearly full of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>

#include "fake_ring.h"
#include "order.h"
#include "perf_bytes.h"

static const struct perfrec_layout layout = {PERF_BYTES_TYPE, 0, ARCH_X86_64};

/* A record that says where it comes from: the sample's ip, or the identifier at the end of a COMM. */
static size_t make(struct perf_bytes *b, uint64_t time_ns, bool sample, uint64_t mark,
                   size_t padding)
{
    if (sample) {
        perf_bytes_begin_sample(b, time_ns);
        b->words[2] = mark;
        for (size_t i = 0; i < padding; i++)
            perf_bytes_u64(b, i);
        perf_bytes_end(b);
    } else {
        perf_bytes_begin(b, PERF_RECORD_COMM, 0);
        perf_bytes_u64(b, 0);
        for (size_t i = 0; i <= padding; i++)
            perf_bytes_u64(b, 'x');
        perf_bytes_end_id(b, 1, 1, time_ns, 0);
        b->words[b->size / 8 - 1] = mark;
    }
    return b->size;
}

static void put(struct fake_ring *f, uint64_t time_ns, bool sample, uint64_t mark)
{
    struct perf_bytes b;

    make(&b, time_ns, sample, mark, 0);
    assert_true(fake_ring_write(f, b.words, b.size));
}

/* The mark of the next record, 0: the round is over. */
static uint64_t next_mark(struct order *o)
{
    const void *data;
    const uint64_t *words;
    size_t size;

    if (recordint_order_next(o, &data, &size) == 0)
        return 0;
    words = data;
    return (uint32_t)words[0] == PERF_RECORD_SAMPLE ? words[2] : words[size / 8 - 1];
}

struct two {
    struct fake_ring a, b;
    struct order *o;
};

static void two_rings(struct two *t)
{
    fake_ring_new(&t->a, 4096, 0);
    fake_ring_new(&t->b, 4096, 4096 - 24);
    t->o = recordint_order_new(&layout);
    assert_non_null(t->o);
    assert_int_equal(recordint_order_add(t->o, &t->a.ring), 0);
    assert_int_equal(recordint_order_add(t->o, &t->b.ring), 0);
}

static void two_rings_free(struct two *t)
{
    recordint_order_free(t->o);
    fake_ring_free(&t->a);
    fake_ring_free(&t->b);
}

static void no_rings_make_an_empty_round(void **state)
{
    struct order *o = recordint_order_new(&layout);

    (void)state;
    recordint_order_begin(o, UINT64_MAX);
    assert_int_equal(next_mark(o), 0);
    assert_int_equal(next_mark(o), 0);
    assert_false(recordint_order_pending(o));
    recordint_order_free(o);
    recordint_order_free(NULL);
}

static void records_of_two_rings_come_by_time(void **state)
{
    struct two t;

    (void)state;
    two_rings(&t);
    put(&t.a, 10, true, 1);
    put(&t.a, 30, true, 3);
    put(&t.b, 20, true, 2);
    put(&t.b, 40, true, 4);
    assert_true(recordint_order_pending(t.o));
    recordint_order_begin(t.o, UINT64_MAX);
    for (uint64_t i = 1; i <= 4; i++)
        assert_int_equal(next_mark(t.o), i);
    assert_int_equal(next_mark(t.o), 0);
    assert_false(recordint_order_pending(t.o));
    assert_int_equal(fake_control(&t.a)->data_tail, t.a.head);
    assert_int_equal(fake_control(&t.b)->data_tail, t.b.head);
    two_rings_free(&t);
}

static void at_equal_times_side_band_comes_before_samples(void **state)
{
    struct two t;

    (void)state;
    two_rings(&t);
    put(&t.a, 10, true, 3);
    put(&t.a, 10, true, 4);
    put(&t.b, 10, false, 1);
    put(&t.b, 10, false, 2);
    put(&t.b, 10, true, 5);
    recordint_order_begin(t.o, UINT64_MAX);
    for (uint64_t i = 1; i <= 5; i++)
        assert_int_equal(next_mark(t.o), i);
    assert_int_equal(next_mark(t.o), 0);
    two_rings_free(&t);
}

static void later_records_are_held_back(void **state)
{
    struct two t;

    (void)state;
    two_rings(&t);
    put(&t.a, 10, true, 1);
    put(&t.a, 21, true, 4);
    put(&t.b, 19, true, 2);
    put(&t.b, 20, true, 3);
    put(&t.b, 22, true, 5);
    recordint_order_begin(t.o, 20);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(next_mark(t.o), i);
    assert_int_equal(next_mark(t.o), 0);
    assert_true(recordint_order_pending(t.o));
    assert_int_equal(recordint_order_held_bytes(t.o), 0);
    recordint_order_begin(t.o, 21);
    assert_int_equal(next_mark(t.o), 4);
    assert_int_equal(next_mark(t.o), 0);
    recordint_order_begin(t.o, UINT64_MAX);
    assert_int_equal(next_mark(t.o), 5);
    assert_int_equal(next_mark(t.o), 0);
    two_rings_free(&t);
}

static void a_record_without_a_time_comes_at_once(void **state)
{
    struct perf_event_header header = {PERF_RECORD_COMM, 0, 16};
    uint64_t record[2] = {0, 0};
    const void *data;
    size_t size;
    struct two t;

    (void)state;
    two_rings(&t);
    memcpy(record, &header, sizeof header);
    fake_ring_write(&t.b, record, sizeof record);
    put(&t.a, 30, true, 1);
    recordint_order_begin(t.o, 20);
    assert_int_equal(recordint_order_next(t.o, &data, &size), 1);
    assert_int_equal(size, 16);
    assert_int_equal(recordint_order_next(t.o, &data, &size), 0);
    two_rings_free(&t);
}

static void a_round_that_is_left_early_goes_on_in_the_next(void **state)
{
    struct two t;

    (void)state;
    two_rings(&t);
    put(&t.a, 10, true, 1);
    put(&t.a, 30, true, 3);
    put(&t.b, 20, true, 2);
    recordint_order_begin(t.o, UINT64_MAX);
    assert_int_equal(next_mark(t.o), 1);
    recordint_order_begin(t.o, UINT64_MAX);
    assert_int_equal(next_mark(t.o), 2);
    assert_int_equal(next_mark(t.o), 3);
    assert_int_equal(next_mark(t.o), 0);
    two_rings_free(&t);
}

static void a_ring_may_go_in_the_middle_of_a_round(void **state)
{
    struct two t;

    (void)state;
    for (unsigned which = 0; which < 2; which++) {
        two_rings(&t);
        put(&t.a, 10, true, 1);
        put(&t.a, 30, true, 3);
        put(&t.b, 20, true, 2);
        put(&t.b, 40, true, 4);
        recordint_order_begin(t.o, UINT64_MAX);
        assert_int_equal(next_mark(t.o), 1);
        recordint_order_remove(t.o, which == 0 ? &t.a.ring : &t.b.ring);
        recordint_order_remove(t.o, which == 0 ? &t.a.ring : &t.b.ring);
        if (which == 0) {
            assert_int_equal(next_mark(t.o), 2);
            assert_int_equal(next_mark(t.o), 4);
        } else {
            assert_int_equal(next_mark(t.o), 3);
        }
        assert_int_equal(next_mark(t.o), 0);
        two_rings_free(&t);
    }
}

static void corrupt_records_of_removed_rings_are_counted(void **state)
{
    struct two t;

    (void)state;
    two_rings(&t);
    fake_control(&t.a)->data_head = 64; /* zeros */
    put(&t.b, 20, true, 2);
    recordint_order_begin(t.o, UINT64_MAX);
    assert_int_equal(next_mark(t.o), 2);
    assert_int_equal(next_mark(t.o), 0);
    assert_int_equal(recordint_order_corrupt(t.o), 1);
    recordint_order_remove(t.o, &t.a.ring);
    assert_int_equal(recordint_order_corrupt(t.o), 1);
    two_rings_free(&t);
}

/* Fills a ring above three quarters; returns how many records it took. */
static uint64_t fill(struct fake_ring *f, uint64_t time_ns, uint64_t mark)
{
    uint64_t count = 0;

    while (f->head - fake_control(f)->data_tail <= f->size / 8 * 7) {
        put(f, time_ns + count, true, mark + count);
        count++;
    }
    return count;
}

static void a_nearly_full_ring_of_held_back_records_is_copied_out(void **state)
{
    uint64_t first, second;
    struct two t;

    (void)state;
    two_rings(&t);
    put(&t.b, 5, true, 1);
    put(&t.b, 6, true, 2);
    first = fill(&t.b, 100, 100);
    recordint_order_begin(t.o, 50);
    assert_int_equal(next_mark(t.o), 1);
    assert_int_equal(next_mark(t.o), 2);
    assert_int_equal(next_mark(t.o), 0);
    assert_int_equal(fake_control(&t.b)->data_tail, t.b.head);
    assert_true(recordint_order_held_bytes(t.o) > 0);
    assert_true(recordint_order_pending(t.o));

    second = fill(&t.b, 100 + first, 100 + first);
    put(&t.a, 99, true, 99);
    recordint_order_begin(t.o, 50);
    assert_int_equal(next_mark(t.o), 0);
    assert_int_equal(fake_control(&t.b)->data_tail, t.b.head);
    put(&t.b, 100 + first + second, true, 100 + first + second);
    recordint_order_begin(t.o, UINT64_MAX);
    for (uint64_t i = 0; i <= first + second + 1; i++)
        assert_int_equal(next_mark(t.o), 99 + i);
    assert_int_equal(next_mark(t.o), 0);
    assert_int_equal(recordint_order_held_bytes(t.o), 0);
    assert_false(recordint_order_pending(t.o));
    two_rings_free(&t);
}

static void a_ring_that_is_not_nearly_full_is_left_alone(void **state)
{
    struct two t;

    (void)state;
    two_rings(&t);
    while (t.a.head + 128 < 4096 / 4 * 3)
        put(&t.a, 100, true, 1);
    recordint_order_begin(t.o, 50);
    assert_int_equal(next_mark(t.o), 0);
    assert_int_equal(recordint_order_held_bytes(t.o), 0);
    assert_int_equal(fake_control(&t.a)->data_tail, 0);
    two_rings_free(&t);
}

static void the_kernel_finds_room_while_a_round_lasts(void **state)
{
    uint64_t count;
    struct two t;

    (void)state;
    two_rings(&t);
    count = fill(&t.a, 1, 1);
    recordint_order_begin(t.o, UINT64_MAX);
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t in_use;

        assert_int_equal(next_mark(t.o), i);
        in_use = t.a.ring.tail - fake_control(&t.a)->data_tail;
        assert_true(in_use < 4096 / 4);
    }
    assert_int_equal(next_mark(t.o), 0);
    two_rings_free(&t);
}

/* ---- against sorting ---- */

struct expected {
    uint64_t time_ns;
    bool sample;
    uint32_t ring;
    size_t padding;
    uint64_t mark;
};

static int compare(const void *left, const void *right)
{
    const struct expected *a = left, *b = right;

    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    if (a->sample != b->sample)
        return a->sample ? 1 : -1;
    return a->ring < b->ring ? -1 : a->ring > b->ring;
}

static uint64_t seed = 11;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

/* Records of `rings` rings, times increasing in each and often equal in several, sorted. */
static struct expected *draw_records(uint32_t rings, size_t count)
{
    struct expected *all = calloc(count, sizeof *all);
    uint64_t *latest = calloc(rings, sizeof *latest);

    for (size_t i = 0; i < count; i++) {
        uint32_t ring = (uint32_t)draw(rings);

        latest[ring] += 1 + draw(4);
        if (latest[ring] < i / rings)
            latest[ring] = i / rings;
        all[i] = (struct expected){latest[ring], draw(3) != 0, ring, draw(20), i + 1};
    }
    free(latest);
    qsort(all, count, sizeof *all, compare);
    return all;
}

/* Writes all records up to a time, each to its ring. Returns how many of the list are written. */
static size_t write_until(struct fake_ring *rings, const struct expected *all, size_t count,
                          size_t at, uint64_t time_ns)
{
    while (at < count && all[at].time_ns <= time_ns) {
        struct perf_bytes b;

        make(&b, all[at].time_ns, all[at].sample, all[at].mark, all[at].padding);
        if (!fake_ring_write(&rings[all[at].ring], b.words, b.size))
            fail_msg("ring %u is full at record %zu", all[at].ring, at);
        at++;
    }
    return at;
}

/* Every round reads what is `lag` rounds old, so that rings fill up with held-back records. */
static void merge(uint32_t ring_count, size_t count, uint64_t step, uint64_t lag)
{
    struct fake_ring *rings = calloc(ring_count, sizeof *rings);
    struct expected *all = draw_records(ring_count, count);
    struct order *o = recordint_order_new(&layout);
    size_t written = 0, read = 0;
    uint64_t mark, now = 0;

    for (uint32_t i = 0; i < ring_count; i++) {
        fake_ring_new(&rings[i], 8192, draw(1024) * 8);
        assert_int_equal(recordint_order_add(o, &rings[i].ring), 0);
    }
    while (written < count) {
        uint64_t limit;

        now += step;
        limit = now > lag * step ? now - lag * step : 0;
        written = write_until(rings, all, count, written, now);
        recordint_order_begin(o, limit);
        while ((mark = next_mark(o)) != 0) {
            if (mark != all[read].mark)
                fail_msg("record %zu is not the one of the sorted list", read);
            read++;
        }
        assert_true(read == count || all[read].time_ns > limit);
    }
    recordint_order_begin(o, UINT64_MAX);
    while ((mark = next_mark(o)) != 0) {
        assert_int_equal(mark, all[read].mark);
        read++;
    }
    assert_int_equal(read, count);
    assert_int_equal(recordint_order_corrupt(o), 0);
    assert_false(recordint_order_pending(o));
    recordint_order_free(o);
    for (uint32_t i = 0; i < ring_count; i++)
        fake_ring_free(&rings[i]);
    free(rings);
    free(all);
}

static void any_number_of_rings_comes_as_if_sorted(void **state)
{
    (void)state;
    merge(1, 5000, 10, 1);
    merge(2, 20000, 10, 1);
    merge(3, 20000, 7, 0);
    merge(64, 50000, 5, 1);
    merge(300, 100000, 10, 1);
}

static void held_copies_come_as_if_sorted(void **state)
{
    (void)state;
    merge(1, 5000, 10, 12);
    merge(2, 20000, 10, 9);
    merge(17, 50000, 10, 30);
    merge(200, 100000, 10, 10);
}

static void nothing_is_allocated_once_buffers_have_grown(void **state)
{
    struct two t;
    size_t in_use = 0;
    uint64_t time_ns = 1000;

    (void)state;
    two_rings(&t);
    for (unsigned round = 0; round < 200; round++) {
        time_ns += fill(&t.a, time_ns, time_ns);
        time_ns += fill(&t.b, time_ns, time_ns);
        recordint_order_begin(t.o, round % 3 == 2 ? UINT64_MAX : 50);
        while (next_mark(t.o) != 0)
            continue;
        if (round == 20)
            in_use = mallinfo2().uordblks;
    }
    assert_int_equal(mallinfo2().uordblks, in_use);
    two_rings_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rings_make_an_empty_round),
        cmocka_unit_test(records_of_two_rings_come_by_time),
        cmocka_unit_test(at_equal_times_side_band_comes_before_samples),
        cmocka_unit_test(later_records_are_held_back),
        cmocka_unit_test(a_record_without_a_time_comes_at_once),
        cmocka_unit_test(a_round_that_is_left_early_goes_on_in_the_next),
        cmocka_unit_test(a_ring_may_go_in_the_middle_of_a_round),
        cmocka_unit_test(corrupt_records_of_removed_rings_are_counted),
        cmocka_unit_test(a_nearly_full_ring_of_held_back_records_is_copied_out),
        cmocka_unit_test(a_ring_that_is_not_nearly_full_is_left_alone),
        cmocka_unit_test(the_kernel_finds_room_while_a_round_lasts),
        cmocka_unit_test(any_number_of_rings_comes_as_if_sorted),
        cmocka_unit_test(held_copies_come_as_if_sorted),
        cmocka_unit_test(nothing_is_allocated_once_buffers_have_grown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
