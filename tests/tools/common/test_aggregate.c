/* SPDX-License-Identifier: MIT */
/* Counting samples in one pass, against a count that remembers every sample; selection, times
 * and gaps. */
#include "../spool2folded/make_spool.h"

#include <fnmatch.h>

/* The code itself: a count beyond 32 bits is set up inside, four thousand million samples would
 * take too long. */
#include "aggregate.c"

/* ---- reading ---- */

struct counted {
    struct tool_input in;
    struct aggregate a;
};

static void count(struct counted *c, const struct maker *m, const struct aggregate_options *o)
{
    assert_int_equal(inputs_open(m->path, &c->in), 0);
    assert_int_equal(aggregate_read(&c->a, o, &c->in, NULL), 0);
    assert_int_equal(aggregate_finish(&c->a), 0);
}

static void done(struct counted *c)
{
    aggregate_free(&c->a);
    inputs_close(&c->in);
}

/* ---- lines to compare ---- */

struct lines {
    char **items;
    size_t count, capacity;
};

static void add_line(struct lines *l, const char *text)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 64;
        l->items = realloc(l->items, l->capacity * sizeof *l->items);
        assert_non_null(l->items);
    }
    l->items[l->count] = strdup(text);
    assert_non_null(l->items[l->count++]);
}

static int compare_lines(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

static void free_lines(struct lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i]);
    free(l->items);
}

/* ---- the naive count ---- */

struct naive_sample {
    int32_t pid;
    uint64_t tid;
    uint32_t stack;
    uint64_t time_ns;
    char comm[16], thread[16]; /* "": none */
};

struct naive {
    struct naive_sample *samples;
    size_t count;
    char first_comm[8][16];    /* by pid */
    char first_thread[64][16]; /* by tid */
};

static void copy_name(char *to, const char *from)
{
    snprintf(to, 16, "%.15s", from);
}

static void read_naive(struct naive *n, const struct maker *m)
{
    char comm[8][16] = {{0}}, thread[64][16] = {{0}};
    struct spool_record rec;
    struct tool_input in;
    size_t capacity = 0;
    int rc;

    memset(n, 0, sizeof *n);
    assert_int_equal(inputs_open(m->path, &in), 0);
    while ((rc = spool_reader_next(in.reader, &rec)) > 0) {
        const struct spool_annotation *a = &rec.annotation;

        if (rec.type == SPOOL_RECORD_ANNOTATION && a->key == SPOOL_NOTE_COMM) {
            copy_name(comm[a->pid], a->text);
            if (!n->first_comm[a->pid][0])
                copy_name(n->first_comm[a->pid], a->text);
        } else if (rec.type == SPOOL_RECORD_ANNOTATION && a->key == SPOOL_NOTE_THREAD) {
            copy_name(thread[a->number[0]], a->text);
            if (!n->first_thread[a->number[0]][0])
                copy_name(n->first_thread[a->number[0]], a->text);
        } else if (rec.type == SPOOL_RECORD_SAMPLE) {
            struct naive_sample *s;

            if (n->count == capacity) {
                capacity = capacity ? capacity * 2 : 1024;
                n->samples = realloc(n->samples, capacity * sizeof *n->samples);
                assert_non_null(n->samples);
            }
            s = &n->samples[n->count++];
            s->pid = rec.sample.pid;
            s->tid = rec.sample.tid;
            s->stack = rec.sample.stack;
            s->time_ns = rec.sample.time_ns;
            copy_name(s->comm, comm[s->pid]);
            copy_name(s->thread, thread[s->tid]);
        }
    }
    assert_int_equal(rc, 0);
    for (size_t i = 0; i < n->count; i++) {
        struct naive_sample *s = &n->samples[i];

        if (!s->comm[0])
            copy_name(s->comm, n->first_comm[s->pid]);
        if (!s->thread[0])
            copy_name(s->thread, n->first_thread[s->tid]);
    }
    inputs_close(&in);
}

static bool in_list(const struct number_list *list, uint64_t number)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == number)
            return true;
    return false;
}

static bool naive_selects(const struct naive *n, const struct naive_sample *s,
                          const struct select_options *o)
{
    uint64_t first = n->samples[0].time_ns, at = s->time_ns < first ? 0 : s->time_ns - first;

    return (!o->has_pids || in_list(&o->pids, (uint64_t)s->pid)) &&
           (!o->has_tids || in_list(&o->tids, s->tid)) && (!o->has_from || at >= o->from_ns) &&
           (!o->has_to || at < o->to_ns) &&
           (!o->comm_globs.count || (s->comm[0] && !fnmatch(o->comm_globs.items[0], s->comm, 0))) &&
           (!o->thread_globs.count ||
            (s->thread[0] && !fnmatch(o->thread_globs.items[0], s->thread, 0)));
}

/* One line a sample that counts, with what its cell must say. */
static void list_naive(struct lines *l, const struct naive *n, const struct aggregate_options *o)
{
    for (size_t i = 0; i < n->count; i++) {
        const struct naive_sample *s = &n->samples[i];
        char line[128];

        if (!naive_selects(n, s, o->select))
            continue;
        snprintf(line, sizeof line, "%d %s %d %s %u", s->pid, s->comm,
                 o->per_thread ? (int)s->tid : -1, o->per_thread ? s->thread : "", s->stack);
        add_line(l, line);
    }
    if (l->count > 1)
        qsort(l->items, l->count, sizeof *l->items, compare_lines);
}

static void list_cells(struct lines *l, const struct aggregate *a)
{
    for (size_t i = 0; i < a->cell_count; i++) {
        const struct cell *c = &a->cells[i];
        struct source s;
        char line[128];

        assert_true(i == 0 || a->cells[i - 1].source < c->source ||
                    (a->cells[i - 1].source == c->source && a->cells[i - 1].stack < c->stack));
        assert_true(c->count > 0);
        names_get_source(a->names, c->source, &s);
        snprintf(line, sizeof line, "%d %.*s %d %.*s %u", s.pid, (int)s.comm_size,
                 s.comm ? s.comm : "", a->options.per_thread ? (int)s.tid : -1, (int)s.thread_size,
                 s.thread ? s.thread : "", c->stack);
        for (uint64_t k = 0; k < c->count; k++)
            add_line(l, line);
    }
    if (l->count > 1)
        qsort(l->items, l->count, sizeof *l->items, compare_lines);
}

static void expect_same(const struct naive *n, const struct maker *m,
                        const struct aggregate_options *o)
{
    struct lines expected = {0}, got = {0};
    struct counted c;
    uint64_t first = UINT64_MAX, last = 0;

    count(&c, m, o);
    list_naive(&expected, n, o);
    list_cells(&got, &c.a);
    assert_int_equal(got.count, expected.count);
    for (size_t i = 0; i < got.count; i++)
        assert_string_equal(got.items[i], expected.items[i]);
    assert_int_equal(c.a.samples, expected.count);
    assert_int_equal(c.a.file_samples, n->count);
    assert_int_equal(c.a.has_time, expected.count > 0);
    for (size_t i = 0; i < n->count; i++) {
        if (!naive_selects(n, &n->samples[i], o->select))
            continue;
        first = n->samples[i].time_ns < first ? n->samples[i].time_ns : first;
        last = n->samples[i].time_ns > last ? n->samples[i].time_ns : last;
    }
    if (c.a.has_time) {
        assert_int_equal(c.a.first_ns, first);
        assert_int_equal(c.a.last_ns, last);
    }
    free_lines(&expected);
    free_lines(&got);
    done(&c);
}

/* Processes 1 to 5, their threads 10 x pid and on, names that come and go, times that step back. */
static void write_random(struct maker *m, uint64_t seed, size_t samples, uint32_t stacks)
{
    uint64_t time_ns = 1000000;

    maker_open(m, MAKER_INTERVAL_NS);
    for (size_t i = 0; i < samples; i++) {
        int32_t pid = 1 + (int32_t)random_below(&seed, 5);
        uint32_t tid = 10 * (uint32_t)pid + random_below(&seed, 4);
        char text[64];

        if (random_below(&seed, 200) == 0) {
            snprintf(text, sizeof text, "comm-%u", random_below(&seed, 3));
            maker_note(m, pid, "comm", text);
        }
        if (random_below(&seed, 100) == 0) {
            snprintf(text, sizeof text, "%u thread-%u", tid, random_below(&seed, 3));
            maker_note(m, pid, "thread", text);
        }
        if (random_below(&seed, 10) == 0)
            time_ns -= random_below(&seed, 900000);
        else
            time_ns += random_below(&seed, 2000000);
        snprintf(text, sizeof text, "$10;$%x", 0x100 + random_below(&seed, stacks));
        maker_put(m, time_ns, pid, tid, text);
    }
    maker_finish(m);
}

static void every_selection_counts_what_a_naive_count_counts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint64_t pids[] = {2, 4}, tids[] = {11, 20, 32, 53};
        const char *comm = "comm-[12]", *thread = "*-1", *none = "nobody";
        struct select_options everything = {0}, by_pid = {0}, by_tid = {0}, by_time = {0};
        struct select_options by_comm = {0}, by_thread = {0}, all = {0}, nothing = {0};
        const struct select_options *choices[] = {&everything, &by_pid,    &by_tid, &by_time,
                                                  &by_comm,    &by_thread, &all,    &nothing};
        struct naive n;
        struct maker m;

        by_pid.has_pids = all.has_pids = true;
        by_pid.pids = all.pids = (struct number_list){pids, 2};
        by_tid.has_tids = true;
        by_tid.tids = (struct number_list){tids, 4};
        by_time.has_from = by_time.has_to = all.has_from = true;
        by_time.from_ns = all.from_ns = 300000000;
        by_time.to_ns = 900000000;
        by_comm.comm_globs = all.comm_globs = (struct text_list){&comm, 1};
        by_thread.thread_globs = (struct text_list){&thread, 1};
        nothing.comm_globs = (struct text_list){&none, 1};
        /* from no sharing of stacks to nothing but sharing */
        write_random(&m, seed, 3000, seed % 3 == 0 ? 3 : seed % 3 == 1 ? 400 : 20000);
        read_naive(&n, &m);
        for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
            struct aggregate_options o = {.select = choices[i], .per_thread = true};

            expect_same(&n, &m, &o);
            o.source_stats = true;
            expect_same(&n, &m, &o);
            if (choices[i]->thread_globs.count > 0)
                continue; /* threads have names only where sources are threads */
            o.per_thread = false;
            expect_same(&n, &m, &o);
        }
        free(n.samples);
        maker_close(&m);
    }
}

static void an_empty_spool_has_no_cells_and_no_time(void **state)
{
    struct aggregate_options o = {.per_thread = true, .runs = AGGREGATE_RUNS, .source_stats = true};
    struct counted c;
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_finish(&m);
    count(&c, &m, &o);
    assert_int_equal(c.a.cell_count, 0);
    assert_int_equal(c.a.samples, 0);
    assert_int_equal(c.a.file_samples, 0);
    assert_false(c.a.has_time);
    done(&c);
    maker_close(&m);
}

static void a_name_without_the_deleted_mark_is_what_a_glob_meets(void **state)
{
    const char *glob = "app";
    struct select_options select = {.comm_globs = {&glob, 1}};
    struct aggregate_options o = {.select = &select};
    struct counted c;
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 1, 0x1000, 0x1000, "/x/app (deleted)");
    maker_put(&m, 1, 1, 1, "$10");
    maker_put(&m, 2, 2, 2, "$10");
    maker_finish(&m);
    count(&c, &m, &o);
    assert_int_equal(c.a.samples, 1);
    assert_int_equal(c.a.cell_count, 1);
    done(&c);
    maker_close(&m);
}

static void times_of_the_whole_file_are_known_whatever_is_selected(void **state)
{
    uint64_t pid = 2;
    struct select_options select = {.has_pids = true, .pids = {&pid, 1}};
    struct aggregate_options o = {.select = &select};
    struct counted c;
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 500, 1, 1, "$10");
    maker_put(&m, 700, 2, 2, "$10");
    maker_put(&m, 100, 1, 1, "$10");
    maker_put(&m, 600, 2, 2, "$10");
    maker_put(&m, 900, 1, 1, "$10");
    maker_finish(&m);
    count(&c, &m, &o);
    assert_int_equal(c.a.file_first_ns, 500);
    assert_int_equal(c.a.file_low_ns, 100);
    assert_int_equal(c.a.file_high_ns, 900);
    assert_int_equal(c.a.first_ns, 600);
    assert_int_equal(c.a.last_ns, 700);
    done(&c);
    maker_close(&m);
}

static void a_pause_of_more_than_ten_intervals_is_a_gap(void **state)
{
    struct aggregate_options o = {.per_thread = true, .source_stats = true};
    const uint64_t ms = 1000000;
    struct counted c;
    struct maker m;

    (void)state;
    maker_open(&m, ms);
    maker_put(&m, 100 * ms, 1, 1, "$10");
    maker_put(&m, 100 * ms, 1, 2, "$10");     /* another thread fills no gap */
    maker_put(&m, 110 * ms, 1, 1, "$10");     /* ten: none */
    maker_put(&m, 120 * ms + 1, 1, 1, "$10"); /* more than ten */
    maker_put(&m, 50 * ms, 1, 1, "$10");      /* late: opens none */
    maker_put(&m, 121 * ms, 1, 1, "$10");     /* counted from the latest time */
    maker_put(&m, 150 * ms, 1, 1, "$10");
    maker_put(&m, 200 * ms, 1, 2, "$10");
    maker_finish(&m);
    count(&c, &m, &o);
    assert_int_equal(names_source_count(c.a.names), 2);
    assert_int_equal(c.a.stats[0].samples, 6);
    assert_int_equal(c.a.stats[0].first_ns, 50 * ms);
    assert_int_equal(c.a.stats[0].last_ns, 150 * ms);
    assert_int_equal(c.a.stats[0].gaps, 2);
    assert_int_equal(c.a.stats[0].gap_ns, 10 * ms + 1 + 29 * ms);
    assert_int_equal(c.a.stats[1].gaps, 1);
    assert_int_equal(c.a.stats[1].gap_ns, 100 * ms);
    done(&c);
    maker_close(&m);
}

static void without_an_interval_and_with_the_largest_there_is_no_gap(void **state)
{
    static const uint64_t intervals[] = {0, UINT64_MAX, UINT64_MAX / 10, UINT64_MAX / 19};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct aggregate_options o = {.per_thread = true, .source_stats = true};
        struct counted c;
        struct maker m;

        maker_open(&m, intervals[i]);
        maker_put(&m, 0, 1, 1, "$10");
        maker_put(&m, INT64_MAX, 1, 1, "$10");
        maker_finish(&m);
        count(&c, &m, &o);
        assert_int_equal(c.a.stats[0].gaps, 0);
        done(&c);
        maker_close(&m);
    }
}

static void runs_are_kept_for_the_samples_that_ids_and_times_select(void **state)
{
    uint64_t tid = 2;
    struct select_options select = {.has_tids = true, .tids = {&tid, 1}};
    struct aggregate_options o = {.per_thread = true, .runs = AGGREGATE_RUNS, .select = &select};
    struct counted c;
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 5, 1, 1, "$10");
    maker_put(&m, 6, 1, 2, "$10");
    maker_finish(&m);
    count(&c, &m, &o);
    assert_int_equal(names_source_count(c.a.names), 1);
    assert_int_equal(runs_first_ns(c.a.runs, 1), 6);
    done(&c);
    maker_close(&m);
}

static void a_count_beyond_32_bits_goes_on(void **state)
{
    struct aggregate_options o = {0};
    struct counted c;
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 1, 1, 1, "$10");
    maker_put(&m, 2, 1, 1, "$20");
    maker_put(&m, 3, 2, 2, "$20");
    maker_finish(&m);
    assert_int_equal(inputs_open(m.path, &c.in), 0);
    assert_int_equal(aggregate_read(&c.a, &o, &c.in, NULL), 0);
    c.a.slots[1].count = UINT32_MAX - 1;
    for (uint32_t i = 0; i < 4; i++)
        c.a.pending[c.a.pending_count++] = (struct pending_sample){.source = 0, .stack = 1};
    count_pending(&c.a);
    assert_int_equal(aggregate_finish(&c.a), 0);
    assert_int_equal(c.a.cell_count, 3);
    assert_int_equal(c.a.cells[0].count, 1);
    assert_int_equal(c.a.cells[1].source, 0);
    assert_int_equal(c.a.cells[1].stack, 1);
    assert_true(c.a.cells[1].count == (uint64_t)UINT32_MAX + 3);
    assert_int_equal(c.a.cells[2].source, 1);
    assert_int_equal(c.a.cells[2].stack, 1);
    assert_int_equal(c.a.cells[2].count, 1);
    done(&c);
    maker_close(&m);
}

static void what_stands_before_damage_is_counted(void **state)
{
    struct aggregate_options o = {0};
    struct counted c;
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 1, 1, 1, "$10");
    maker_put(&m, 2, 1, 1, "$10");
    maker_finish(&m);
    assert_int_equal(write(m.fd, "\xff", 1), 1); /* no such tag */
    assert_int_equal(inputs_open(m.path, &c.in), 0);
    assert_int_equal(aggregate_read(&c.a, &o, &c.in, NULL), SPOOL_ERR_CORRUPT);
    assert_int_equal(aggregate_finish(&c.a), 0);
    assert_int_equal(c.a.samples, 2);
    assert_int_equal(c.a.cell_count, 1);
    assert_int_equal(c.a.cells[0].count, 2);
    done(&c);
    maker_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_selection_counts_what_a_naive_count_counts),
        cmocka_unit_test(an_empty_spool_has_no_cells_and_no_time),
        cmocka_unit_test(a_name_without_the_deleted_mark_is_what_a_glob_meets),
        cmocka_unit_test(times_of_the_whole_file_are_known_whatever_is_selected),
        cmocka_unit_test(a_pause_of_more_than_ten_intervals_is_a_gap),
        cmocka_unit_test(without_an_interval_and_with_the_largest_there_is_no_gap),
        cmocka_unit_test(runs_are_kept_for_the_samples_that_ids_and_times_select),
        cmocka_unit_test(a_count_beyond_32_bits_goes_on),
        cmocka_unit_test(what_stands_before_damage_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
