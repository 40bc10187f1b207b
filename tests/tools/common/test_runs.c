/* SPDX-License-Identifier: MIT */
/* Samples in time order: merging, sorting, and what happens when they need more room than memory
 * or disk has. */
#include "../spool2folded/make_spool.h"

#include <errno.h>
#include <malloc.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cli.h"
#include "gap.h"
#include "runs.h"

#if defined __SANITIZE_ADDRESS__
#define SANITIZED true
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

enum { WINDOW = 8 }; /* so many later samples may come before one */

struct visited {
    struct run *runs;
    size_t count, capacity;
};

static void keep(void *user, const struct run *run)
{
    struct visited *v = user;

    if (v->count == v->capacity) {
        v->capacity = v->capacity ? v->capacity * 2 : 64;
        v->runs = realloc(v->runs, v->capacity * sizeof *v->runs);
        assert_non_null(v->runs);
    }
    v->runs[v->count++] = *run;
}

/* Hands out the runs of a thread in time order, neighbours of one stack as one. */
typedef void visit_fn(void *user, const struct run *run);
static int visit(struct run_store *s, uint32_t thread, visit_fn *take, void *user)
{
    struct run_cursor cursor;
    struct run run, merged = {0};
    uint32_t source;
    int rc = runs_open(&cursor, s, thread);

    while (rc == 0 && runs_next(&cursor, &run, &source)) {
        assert_int_equal(source, 0);
        if (merged.count > 0 && merged.stack == run.stack) {
            merged.count += run.count;
            continue;
        }
        if (merged.count > 0)
            take(user, &merged);
        merged = run;
    }
    if (merged.count > 0)
        take(user, &merged);
    runs_close(&cursor);
    return rc;
}

static void expect_runs(struct run_store *s, uint32_t source, const struct run *expected,
                        size_t count)
{
    struct visited v = {0};

    assert_int_equal(visit(s, source, keep, &v), 0);
    assert_int_equal(v.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(v.runs[i].time_ns, expected[i].time_ns);
        assert_int_equal(v.runs[i].stack, expected[i].stack);
        assert_int_equal(v.runs[i].count, expected[i].count);
    }
    free(v.runs);
}

static void a_store_without_samples_visits_nothing(void **state)
{
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

    (void)state;
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, NULL, 0);
    expect_runs(s, UINT32_MAX, NULL, 0);
    assert_true(runs_first_ns(s, 0) == UINT64_MAX);
    runs_free(s);
    runs_free(NULL);
}

static void equal_neighbours_of_a_source_are_one_run(void **state)
{
    static const struct run zero[] = {{10, 7, 2}, {30, 8, 1}, {30, 7, 1}}, two[] = {{15, 7, 3}};
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

    (void)state;
    runs_add(s, 0, 0, 10, 7);
    runs_add(s, 2, 0, 15, 7); /* another source between them does not part them */
    runs_add(s, 0, 0, 20, 7);
    runs_add(s, 2, 0, 16, 7);
    runs_add(s, 0, 0, 30, 8);
    runs_add(s, 0, 0, 30, 7);
    runs_add(s, 2, 0, 16, 7);
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, zero, 3);
    expect_runs(s, 1, NULL, 0);
    expect_runs(s, 2, two, 1);
    assert_int_equal(runs_first_ns(s, 0), 10);
    assert_int_equal(runs_first_ns(s, 2), 15);
    assert_true(runs_first_ns(s, 1) == UINT64_MAX);
    runs_free(s);
}

static void late_samples_are_sorted_in_and_equal_times_stay_in_file_order(void **state)
{
    static const struct run zero[] = {{0, 4, 1},  {10, 1, 1}, {10, 3, 1},
                                      {20, 2, 1}, {20, 1, 1}, {20, 2, 1}},
                            one[] = {{1, 9, 2}};
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

    (void)state;
    runs_add(s, 0, 0, 10, 1);
    runs_add(s, 0, 0, 20, 2);
    runs_add(s, 0, 0, 20, 1);
    runs_add(s, 1, 0, 1, 9);
    runs_add(s, 0, 0, 10, 3);
    runs_add(s, 0, 0, 20, 2);
    runs_add(s, 0, 0, 0, 4);
    runs_add(s, 1, 0, 2, 9); /* its order does not matter to others */
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, zero, 6);
    expect_runs(s, 1, one, 1);
    assert_int_equal(runs_first_ns(s, 0), 0);
    expect_runs(s, 0, zero, 6); /* visiting changes nothing */
    runs_free(s);
}

static void random_samples_come_out_sorted(void **state)
{
    enum { SOURCES = 5, SAMPLES = 40000 };
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);
    uint64_t seed = 11, counts[SOURCES] = {0};

    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint32_t source = random_below(&seed, SOURCES);

        /* sources 0 and 1 are in order; the stack tells the file order of equal times */
        runs_add(s, source, 0, source < 2 ? i : random_below(&seed, 3000), (uint32_t)i);
        counts[source]++;
    }
    assert_int_equal(runs_finish(s), 0);
    for (uint32_t source = 0; source < SOURCES; source++) {
        struct visited v = {0};

        assert_int_equal(visit(s, source, keep, &v), 0);
        assert_int_equal(v.count, counts[source]);
        for (size_t i = 1; i < v.count; i++)
            if (v.runs[i].time_ns < v.runs[i - 1].time_ns ||
                (v.runs[i].time_ns == v.runs[i - 1].time_ns &&
                 v.runs[i].stack < v.runs[i - 1].stack))
                fail_msg("source %u: run %zu is out of order", source, i);
        assert_int_equal(runs_first_ns(s, source), v.runs[0].time_ns);
        free(v.runs);
    }
    runs_free(s);
}

/* ---- late samples ---- */

static void a_late_sample_parts_equal_ones(void **state)
{
    static const struct run parted[] = {{1000, 'A', 1}, {2000, 'B', 1}, {3000, 'A', 1}};
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

    (void)state;
    runs_add(s, 0, 0, 1000, 'A');
    runs_add(s, 0, 0, 3000, 'A');
    runs_add(s, 0, 0, 2000, 'B');
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, parted, 3);
    runs_free(s);
}

/* A at 10 and from 30 on, then B at 20. */
static struct run_store *add_late(size_t later)
{
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

    runs_add(s, 0, 0, 10, 'A');
    for (size_t i = 0; i < later; i++)
        runs_add(s, 0, 0, 30 + i, 'A');
    runs_add(s, 0, 0, 20, 'B');
    assert_int_equal(runs_finish(s), 0);
    return s;
}

static void after_more_than_8_later_ones_a_sample_stands_behind_those_merged(void **state)
{
    struct run_store *s;

    (void)state;
    for (uint32_t later = 1; later <= WINDOW; later++) {
        const struct run parted[] = {{10, 'A', 1}, {20, 'B', 1}, {30, 'A', later}};

        s = add_late(later);
        expect_runs(s, 0, parted, 3);
        runs_free(s);
    }
    for (uint32_t later = WINDOW + 1; later < 40; later++) {
        const uint32_t merged = later + 1 - WINDOW;
        const struct run behind[] = {
            {10, 'A', merged}, {20, 'B', 1}, {29 + merged, 'A', WINDOW}, {200, 'C', 9}};

        s = add_late(later);
        expect_runs(s, 0, behind, 3);
        for (uint64_t i = 0; i < 9; i++) /* the next ones are merged as ever */
            runs_add(s, 0, 0, 200 + i, 'C');
        expect_runs(s, 0, behind, 4);
        runs_free(s);
    }
}

static void a_late_sample_amidst_equal_ones_is_one_of_them(void **state)
{
    static const struct run one[] = {{100, 'A', 31}},
                            three[] = {{100, 'A', 23}, {105, 'B', 1}, {106, 'A', 10}};
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

    (void)state;
    for (uint64_t i = 0; i < 30; i++)
        runs_add(s, 0, 0, 100 + i, 'A');
    runs_add(s, 0, 0, 107, 'A');
    expect_runs(s, 0, one, 1);
    runs_add(s, 0, 0, 105, 'B');
    runs_add(s, 0, 0, 106, 'A'); /* not one of the first 23: B is between */
    runs_add(s, 0, 0, 130, 'A');
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, three, 3);
    runs_free(s);
}

/* The run at 10 is still open when B and C come. */
static void late_samples_stand_behind_a_run_that_began_at_their_time(void **state)
{
    static const struct run expected[] = {{10, 'A', 12}, {10, 'B', 1}, {10, 'C', 1}, {22, 'A', 18}};
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        runs_add(s, 0, 0, 10 + i, 'A');
    runs_add(s, 0, 0, 10, 'B');
    runs_add(s, 0, 0, 10, 'C');
    for (uint64_t i = 20; i < 30; i++)
        runs_add(s, 0, 0, 10 + i, 'A');
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, expected, 4);
    runs_free(s);
}

struct arrival {
    uint64_t time_ns, key;
    uint32_t stack, index;
};

static int by_arrival(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;

    return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                            : (x->index > y->index) - (x->index < y->index);
}

/* What is right: all samples sorted by time, equal times as they arrived, then merged. */
static size_t sort_and_merge(struct arrival *list, size_t count, struct run *runs)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        list[i].key = list[i].time_ns;
        list[i].index = (uint32_t)i;
    }
    qsort(list, count, sizeof *list, by_arrival);
    for (size_t i = 0; i < count; i++) {
        if (n > 0 && runs[n - 1].stack == list[i].stack)
            runs[n - 1].count++;
        else
            runs[n++] = (struct run){list[i].time_ns, list[i].stack, 1};
    }
    return n;
}

/* Each sample arrives after up to `lateness` of those that follow it in time. */
static void make_arrivals(struct arrival *list, size_t count, uint32_t lateness, uint32_t stacks,
                          uint64_t *seed)
{
    uint64_t time_ns = random_below(seed, 5);

    for (size_t i = 0; i < count; i++) {
        list[i] = (struct arrival){.time_ns = time_ns,
                                   .key = i + random_below(seed, lateness + 1),
                                   .stack = random_below(seed, stacks),
                                   .index = (uint32_t)i};
        time_ns += random_below(seed, 3); /* equal ones among them */
    }
    qsort(list, count, sizeof *list, by_arrival);
}

static void lateness_up_to_8_samples_is_repaired_exactly(void **state)
{
    enum { MOST = 3000 };
    static struct arrival lists[2][MOST];
    static struct run runs[MOST];
    uint64_t seed = 3;

    (void)state;
    for (unsigned round = 0; round < 600; round++) {
        size_t count = round < 300 ? round % 50 : random_below(&seed, MOST);
        uint32_t lateness = random_below(&seed, WINDOW + 1);
        uint32_t stacks = 1 + random_below(&seed, 4);
        struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

        for (size_t k = 0; k < 2; k++)
            make_arrivals(lists[k], count, lateness, stacks, &seed);
        for (size_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < 2; k++)
                runs_add(s, k, 0, lists[k][i].time_ns, lists[k][i].stack);
        assert_int_equal(runs_finish(s), 0);
        for (uint32_t k = 0; k < 2; k++) {
            size_t n = sort_and_merge(lists[k], count, runs);

            expect_runs(s, k, runs, n);
            assert_true(runs_first_ns(s, k) == (n > 0 ? runs[0].time_ns : UINT64_MAX));
        }
        runs_free(s);
    }
}

/* With a stack each nothing is merged, and any lateness must come out exactly. */
static void samples_of_any_lateness_stand_where_their_times_belong(void **state)
{
    enum { MOST = 2000 };
    static struct arrival list[MOST];
    static struct run runs[MOST];
    uint64_t seed = 5;

    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        size_t count = 1 + random_below(&seed, MOST);
        struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);

        make_arrivals(list, count, round, 1, &seed);
        for (size_t i = 0; i < count; i++) {
            list[i].stack = (uint32_t)i;
            runs_add(s, 0, 0, list[i].time_ns, list[i].stack);
        }
        assert_int_equal(runs_finish(s), 0);
        expect_runs(s, 0, runs, sort_and_merge(list, count, runs));
        runs_free(s);
    }
}

/* Those that are too late have stacks that others do not have. */
static void too_late_samples_stand_at_their_times_and_all_are_counted(void **state)
{
    enum { SAMPLES = 20000, LATE = 1000 };
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);
    uint64_t seed = 7, total[2] = {0}, expected[2] = {0}, previous_ns = 0;
    uint64_t late_ns[SAMPLES / 20] = {0};
    struct visited v = {0};
    size_t late = 0, seen = 0;

    (void)state;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t stack = i / 50 % 2;

        runs_add(s, 0, 0, 10 + (uint64_t)i * 10, stack);
        expected[stack]++;
        if (i % 20 == 19) {
            late_ns[late] = random_below(&seed, (i - WINDOW - 1) * 10);
            runs_add(s, 0, 0, late_ns[late], (uint32_t)(LATE + late));
            late++;
        }
    }
    assert_int_equal(runs_finish(s), 0);
    assert_int_equal(visit(s, 0, keep, &v), 0);
    for (size_t i = 0; i < v.count; i++) {
        const struct run *run = &v.runs[i];

        assert_true(run->time_ns >= previous_ns);
        previous_ns = run->time_ns;
        if (run->stack < LATE) {
            total[run->stack] += run->count;
            continue;
        }
        assert_int_equal(run->count, 1);
        assert_true(run->time_ns == late_ns[run->stack - LATE]);
        seen++;
    }
    assert_int_equal(seen, late);
    assert_true(total[0] == expected[0] && total[1] == expected[1]);
    free(v.runs);
    runs_free(s);
}

/* ---- gaps ---- */

struct gap_event {
    uint64_t before_ns; /* the gap in front of the sample */
    uint32_t stack;
};

/* What spool2speedscope(1) says of gaps, of samples in time order: c is the end of what was written. */
static void naive_gaps(const struct run *samples, size_t count, int64_t zero, int64_t interval,
                       struct gap_event *out)
{
    int64_t c = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t want = (int64_t)samples[i].time_ns - zero - interval;

        out[i] = (struct gap_event){.stack = samples[i].stack};
        if (2 * (want - c) >= interval) {
            out[i].before_ns = (uint64_t)(want - c);
            c = want;
        }
        c += interval;
    }
}

/* The same from runs, as a writer does it: inside of a run there is no gap. */
static size_t run_gaps(struct run_store *s, uint32_t thread, uint64_t earliest_ns,
                       uint64_t interval_ns, struct gap_event *out, size_t *runs)
{
    struct run_cursor cursor;
    struct run run;
    uint32_t source;
    uint64_t due_ns = earliest_ns;
    size_t n = 0;

    assert_int_equal(runs_open(&cursor, s, thread), 0);
    while (runs_next(&cursor, &run, &source)) {
        for (uint32_t i = 0; i < run.count; i++)
            out[n++] = (struct gap_event){.stack = run.stack};
        if (gap_before(run.time_ns, due_ns, interval_ns)) {
            out[n - run.count].before_ns = run.time_ns - due_ns;
            due_ns = run.time_ns;
        }
        due_ns += run.count * interval_ns;
        (*runs)++;
    }
    runs_close(&cursor);
    return n;
}

static int by_time(const void *a, const void *b)
{
    const struct run *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->count > y->count) - (x->count < y->count); /* file order */
}

/* Jitter, drift, pauses, samples up to 8 places late; some threads begin with the capture, others later. */
static void gaps_are_where_each_sample_by_itself_would_have_them(void **state)
{
    enum { THREADS = 4, SAMPLES = 400 };
    static struct run samples[THREADS][SAMPLES];
    static struct gap_event expected[SAMPLES], actual[SAMPLES];
    uint64_t seed = 5;

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t interval_ns = 1 + random_below(&seed, 200), earliest_ns = UINT64_MAX;
        bool early_may_go = round % 2;
        struct run_store *s = runs_new(RUNS_WITHOUT_GAP, interval_ns, early_may_go);
        size_t runs = 0;

        for (uint32_t t = 0; t < THREADS; t++) {
            uint64_t at_ns = 5000 + (t ? random_below(&seed, 3 * (uint32_t)interval_ns) : 0);

            for (uint32_t i = 0; i < SAMPLES; i++) {
                at_ns += interval_ns * 3 / 4 + random_below(&seed, (uint32_t)interval_ns / 2 + 2);
                if (random_below(&seed, 60) == 0)
                    at_ns += random_below(&seed, 20 * (uint32_t)interval_ns);
                samples[t][i] = (struct run){at_ns, 1 + random_below(&seed, 2), i};
            }
            for (uint32_t i = 0; i + 8 < SAMPLES; i += 9) { /* one comes 7 places late */
                struct run late = samples[t][i];

                for (uint32_t k = i; k < i + 7; k++)
                    samples[t][k] = samples[t][k + 1];
                samples[t][i + 7] = late;
            }
        }
        /* The capture's first sample is seen before the others' leave the window. */
        for (uint32_t i = 0; i < SAMPLES; i++)
            for (uint32_t t = 0; t < THREADS; t++) {
                runs_add(s, t, 3, samples[t][i].time_ns, samples[t][i].stack);
                if ((t > 0 || !early_may_go) && samples[t][i].time_ns < earliest_ns)
                    earliest_ns = samples[t][i].time_ns;
                samples[t][i].count = i;
            }
        assert_int_equal(runs_finish(s), 0);
        for (uint32_t t = early_may_go; t < THREADS; t++) { /* thread 0 went */
            qsort(samples[t], SAMPLES, sizeof samples[t][0], by_time);
            naive_gaps(samples[t], SAMPLES, (int64_t)(earliest_ns - interval_ns),
                       (int64_t)interval_ns, expected);
            assert_int_equal(run_gaps(s, t, earliest_ns, interval_ns, actual, &runs), SAMPLES);
            for (size_t i = 0; i < SAMPLES; i++)
                if (actual[i].before_ns != expected[i].before_ns ||
                    actual[i].stack != expected[i].stack)
                    fail_msg("round %u thread %u sample %zu: gap %lu of %lu", round, t, i,
                             (unsigned long)actual[i].before_ns,
                             (unsigned long)expected[i].before_ns);
        }
        runs_free(s);
    }
}

static void a_busy_thread_is_one_run_whatever_the_jitter(void **state)
{
    struct run_store *s = runs_new(RUNS_WITHOUT_GAP, 1000, false);
    struct gap_event *all = calloc(100000, sizeof *all);
    uint64_t seed = 1;
    size_t runs = 0;

    (void)state;
    assert_non_null(all);
    for (uint64_t i = 0; i < 100000; i++)
        runs_add(s, 0, 0, 5000 + i * 1000 + random_below(&seed, 400), 7);
    assert_int_equal(runs_finish(s), 0);
    assert_int_equal(run_gaps(s, 0, runs_first_ns(s, 0), 1000, all, &runs), 100000);
    assert_in_range(runs, 1, 1 + WINDOW);
    free(all);
    runs_free(s);
}

/* ---- sources, and samples by themselves ---- */

static void runs_know_their_source(void **state)
{
    enum { SAMPLES = 5000 };
    uint64_t seed = 9;

    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        bool never = round % 2, late = round % 4 >= 2;
        struct run_store *s = runs_new(never ? RUNS_NEVER : RUNS_ADJACENT, 0, false);
        struct run_cursor cursor;
        struct run run;
        uint32_t source, count = 0;
        uint64_t last_ns = 0;

        for (uint32_t i = 0; i < SAMPLES; i++) {
            uint64_t time_ns =
                late && random_below(&seed, 50) == 0 ? random_below(&seed, i + 1) : i;

            /* what a sample is made of follows from its time */
            runs_add(s, 0, (uint32_t)(time_ns / 700), time_ns, (uint32_t)(time_ns / 70));
        }
        assert_int_equal(runs_finish(s), 0);
        assert_int_equal(runs_open(&cursor, s, 0), 0);
        while (runs_next(&cursor, &run, &source)) {
            assert_int_equal(source, run.time_ns / 700);
            assert_int_equal(run.stack, run.time_ns / 70);
            assert_true(run.time_ns >= last_ns);
            assert_true(!never || run.count == 1);
            last_ns = run.time_ns;
            count += run.count;
        }
        runs_close(&cursor);
        assert_int_equal(count, SAMPLES);
        runs_free(s);
    }
}

/* ---- room ---- */

static size_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long size, resident;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &size, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Samples of 300,000 sources in turns, with these numbers of equal stacks behind each other. */
static size_t bytes_per_source(uint32_t samples, uint32_t run)
{
    const uint32_t sources = 300000;
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);
    size_t before = resident_bytes(), bytes;

    for (uint32_t i = 0; i < samples; i++)
        for (uint32_t source = 0; source < sources; source++)
            runs_add(s, source, 0, (uint64_t)i * sources + source, i / run);
    assert_int_equal(runs_finish(s), 0);
    bytes = (resident_bytes() - before) / sources;
    expect_runs(s, sources - 1, &(struct run){sources - 1, 0, samples}, run >= samples);
    runs_free(s);
    malloc_trim(0);
    return bytes;
}

static void many_sources_with_few_samples_take_little_memory(void **state)
{
    (void)state;
    if (SANITIZED) {
        printf("a sanitizer's own memory would be measured\n");
        skip();
    }
    /* Large blocks come from the system and go back to it, so that every round pays for its own. */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    assert_in_range(bytes_per_source(1, 1), 16, 96);
    assert_in_range(bytes_per_source(4, 4), 32, 176);
    assert_in_range(bytes_per_source(20, 20), 64, 240);
}

static void one_early_sample_does_not_end_merging(void **state)
{
    const struct run few[] = {{5, 2, 1}, {1000, 1, 1000000}};
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);
    size_t before;

    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        runs_add(s, 0, 0, 1000 + i, 1);
    runs_add(s, 0, 0, 5, 2);
    before = resident_bytes();
    for (uint64_t i = 100; i < 1000000; i++)
        runs_add(s, 0, 0, 1000 + i, 1);
    assert_in_range(resident_bytes() - before, 0, 1 << 20);
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, few, 2);
    runs_free(s);
}

/* ---- more than 64 MiB ---- */

#define RUNS_PER_MIB 65536u

struct check {
    uint64_t last_ns, sum;
    size_t count;
    bool ordered;
};

static void check_order(void *user, const struct run *run)
{
    struct check *c = user;

    c->ordered &= c->count == 0 || run->time_ns >= c->last_ns;
    c->last_ns = run->time_ns;
    c->sum += run->stack;
    c->count += run->count;
}

static void fill(struct run_store *s, size_t runs, uint32_t sources, bool disordered)
{
    for (size_t i = 0; i < runs; i++)
        runs_add(s, (uint32_t)(i % sources), 0, disordered ? (i ^ 0x35) * 3 : i, (uint32_t)i);
}

static void expect_all(struct run_store *s, size_t runs, uint32_t sources)
{
    uint64_t sum = 0;
    size_t count = 0;

    for (uint32_t source = 0; source < sources; source++) {
        struct check c = {.ordered = true};

        assert_int_equal(visit(s, source, check_order, &c), 0);
        assert_true(c.ordered);
        sum += c.sum;
        count += c.count;
    }
    assert_int_equal(count, runs);
    assert_true(sum == (uint64_t)runs * (runs - 1) / 2);
}

/* The size of the spill file among our descriptors; -1: there is none. */
static off_t spill_size(void)
{
    off_t size = -1;

    for (int fd = 3; fd < 64; fd++) {
        char link[64], target[512];
        struct stat status;
        ssize_t n;

        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, target, sizeof target - 1);
        if (n < 0)
            continue;
        target[n] = '\0';
        if (strstr(target, "(deleted)") && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
            status.st_nlink == 0 && !strstr(target, "memfd:"))
            size = status.st_size;
    }
    return size;
}

static void stores_may_share_their_memory(void **state)
{
    const size_t count = 40 * RUNS_PER_MIB; /* each for itself would stay in memory */
    struct run_store *stores[3];
    size_t used_bytes = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        stores[i] = runs_new(RUNS_ADJACENT, 0, false);
        runs_share_memory(stores[i], &used_bytes);
        fill(stores[i], count, 3, false);
        assert_int_equal(runs_finish(stores[i]), 0);
        assert_int_equal(spill_size() > 0, i > 0);
    }
    assert_in_range(used_bytes, 64 << 20, 80 << 20);
    for (size_t i = 0; i < 3; i++) {
        expect_all(stores[i], count, 3);
        runs_free(stores[i]);
    }
    assert_int_equal(used_bytes, 0);
}

static void what_exceeds_64_mib_lies_in_an_unlinked_file(void **state)
{
    const size_t count = 80 * RUNS_PER_MIB;
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);
    char folder[] = "/tmp/test_runs_XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    fill(s, 60 * RUNS_PER_MIB, 3, false);
    assert_int_equal(spill_size(), -1);
    runs_free(s);
    s = runs_new(RUNS_ADJACENT, 0, false);
    fill(s, count, 3, false);
    assert_int_equal(runs_finish(s), 0);
    assert_true(spill_size() >= (off_t)15 << 20);
    expect_all(s, count, 3);
    runs_free(s);
    assert_int_equal(spill_size(), -1);
    assert_int_equal(rmdir(folder), 0); /* nothing was left in it */
    unsetenv("TMPDIR");
}

/* Any number of runs: the pieces of the file must begin at pages whatever came before. */
static void sorting_more_than_memory_has_room_for_uses_the_file(void **state)
{
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);
    off_t size;

    (void)state;
    setenv("TMPDIR", "/tmp", 1);
    fill(s, 70 * RUNS_PER_MIB + 2, 2, true);
    assert_int_equal(runs_finish(s), 0);
    size = spill_size();
    expect_all(s, 70 * RUNS_PER_MIB + 2, 2);
    assert_int_equal(spill_size(), size); /* room for sorting is given back */
    expect_all(s, 70 * RUNS_PER_MIB + 2, 2);
    runs_free(s);

    s = runs_new(RUNS_ADJACENT, 0, false);
    fill(s, 33 * RUNS_PER_MIB + 5, 1, true); /* only sorting needs it */
    assert_int_equal(runs_finish(s), 0);
    assert_int_equal(spill_size(), -1);
    expect_all(s, 33 * RUNS_PER_MIB + 5, 1);
    runs_free(s);
    unsetenv("TMPDIR");
}

static void expect_no_room(const char *reason)
{
    struct run_store *s = runs_new(RUNS_ADJACENT, 0, false);
    struct capture c;
    char *text;
    int rc;

    fill(s, 90 * RUNS_PER_MIB, 2, false);
    capture_begin(&c);
    rc = runs_finish(s);
    text = capture_end(&c);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(text, ": no room for samples in time order: "));
    assert_non_null(strstr(text, reason));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
    runs_free(s);
}

static rlim_t address_space_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void expect_out_of_memory(const char *text)
{
    assert_string_equal(text, "test: out of memory for samples in time order\n");
}

static void a_lack_of_memory_is_not_blamed_on_tmpdir(void **state)
{
    struct run_store *s;
    struct rlimit old, low;
    struct capture c;
    char *text;
    int rc;

    (void)state;
    if (SANITIZED) {
        printf("a sanitizer's own memory would be measured\n");
        skip();
    }
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    low = old;

    s = runs_new(RUNS_ADJACENT, 0, false);
    low.rlim_cur = address_space_bytes() + (22 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    fill(s, 30 * RUNS_PER_MIB, 2, false);
    setrlimit(RLIMIT_AS, &old);
    capture_begin(&c);
    rc = runs_finish(s);
    text = capture_end(&c);
    assert_int_equal(rc, -1);
    expect_out_of_memory(text);
    free(text);
    runs_free(s);

    s = runs_new(RUNS_ADJACENT, 0, false); /* enough for the runs, too little to sort them */
    fill(s, 20 * RUNS_PER_MIB, 1, true);
    assert_int_equal(runs_finish(s), 0);
    capture_begin(&c);
    low.rlim_cur = address_space_bytes() + (30 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    rc = visit(s, 0, check_order, &(struct check){0});
    setrlimit(RLIMIT_AS, &old);
    text = capture_end(&c);
    assert_int_equal(rc, -1);
    expect_out_of_memory(text);
    free(text);
    runs_free(s);
}

static void a_tmpdir_that_is_not_there_is_an_error_and_no_crash(void **state)
{
    (void)state;
    setenv("TMPDIR", "/nonexistent/folder", 1);
    expect_no_room("/nonexistent/folder: ");
    setenv("TMPDIR", "/etc/passwd", 1);
    expect_no_room("Not a directory");
    unsetenv("TMPDIR");
}

static void a_tmpdir_that_is_not_writable_is_an_error(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        /* root may write everywhere but in /proc */
        setenv("TMPDIR", "/proc", 1);
        expect_no_room("/proc: ");
    } else {
        setenv("TMPDIR", "/", 1);
        expect_no_room("Permission denied");
    }
    unsetenv("TMPDIR");
}

static void a_full_tmpdir_is_an_error(void **state)
{
    char folder[] = "/tmp/test_runs_XXXXXX";
    struct run_store *s;
    struct capture c;
    char *text;
    int rc;

    (void)state;
    assert_non_null(mkdtemp(folder));
    if (mount("tmpfs", folder, "tmpfs", 0, "size=10m") != 0) {
        printf("no tmpfs of 10 MiB to fill: %s\n", strerror(errno));
        rmdir(folder);
        skip();
    }
    setenv("TMPDIR", folder, 1);
    expect_no_room("No space left on device");

    /* Enough for the runs, too little to sort them. */
    s = runs_new(RUNS_ADJACENT, 0, false);
    fill(s, 40 * RUNS_PER_MIB, 1, true);
    assert_int_equal(runs_finish(s), 0);
    capture_begin(&c);
    rc = visit(s, 0, check_order, &(struct check){0});
    text = capture_end(&c);
    runs_free(s);
    umount2(folder, MNT_DETACH);
    rmdir(folder);
    unsetenv("TMPDIR");
    assert_int_equal(rc, -1);
    assert_non_null(strstr(text, ": no room to sort samples by time: No space left on device"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_without_samples_visits_nothing),
        cmocka_unit_test(equal_neighbours_of_a_source_are_one_run),
        cmocka_unit_test(late_samples_are_sorted_in_and_equal_times_stay_in_file_order),
        cmocka_unit_test(random_samples_come_out_sorted),
        cmocka_unit_test(a_late_sample_parts_equal_ones),
        cmocka_unit_test(after_more_than_8_later_ones_a_sample_stands_behind_those_merged),
        cmocka_unit_test(a_late_sample_amidst_equal_ones_is_one_of_them),
        cmocka_unit_test(late_samples_stand_behind_a_run_that_began_at_their_time),
        cmocka_unit_test(lateness_up_to_8_samples_is_repaired_exactly),
        cmocka_unit_test(samples_of_any_lateness_stand_where_their_times_belong),
        cmocka_unit_test(too_late_samples_stand_at_their_times_and_all_are_counted),
        cmocka_unit_test(gaps_are_where_each_sample_by_itself_would_have_them),
        cmocka_unit_test(a_busy_thread_is_one_run_whatever_the_jitter),
        cmocka_unit_test(runs_know_their_source),
        cmocka_unit_test(many_sources_with_few_samples_take_little_memory),
        cmocka_unit_test(one_early_sample_does_not_end_merging),
        cmocka_unit_test(stores_may_share_their_memory),
        cmocka_unit_test(what_exceeds_64_mib_lies_in_an_unlinked_file),
        cmocka_unit_test(sorting_more_than_memory_has_room_for_uses_the_file),
        cmocka_unit_test(a_lack_of_memory_is_not_blamed_on_tmpdir),
        cmocka_unit_test(a_tmpdir_that_is_not_there_is_an_error_and_no_crash),
        cmocka_unit_test(a_tmpdir_that_is_not_writable_is_an_error),
        cmocka_unit_test(a_full_tmpdir_is_an_error),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
