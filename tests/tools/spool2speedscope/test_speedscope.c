/* SPDX-License-Identifier: MIT */
/* Documents: the worked example, gaps against a plain reading of their rule, profiles and their order, limits. */
#include "../spool2folded/make_spool.h"

#include <sys/stat.h>

#include "cli.h"
#include "speedscope.h"

#define WORKED_INTERVAL_NS 10000000

/* What a conversion is asked for. */
struct task {
    const char *inputs[4];
    struct tool_options options;
    struct speedscope_options how;
};

static struct task task_of(const struct maker *m)
{
    return (struct task){.inputs = {m->path}, .how = {.max_profiles = SPEEDSCOPE_PROFILES}};
}

/* The document; NULL when the conversion failed. malloc'ed. */
static char *convert(struct task *task)
{
    struct tool_output out;
    char path[] = "/tmp/test_speedscope_XXXXXX", *text = NULL;
    int fd = mkstemp(path), rc;
    struct stat status;

    assert_true(fd >= 0);
    close(fd);
    task->options.inputs = task->inputs;
    for (task->options.input_count = 0;
         task->options.input_count < 4 && task->inputs[task->options.input_count];)
        task->options.input_count++;
    task->options.progress = PROGRESS_NEVER;
    task->options.symbols.perf_maps = SYM_PERF_MAPS_NONE;
    assert_int_equal(output_open(&out, path, false), 0);
    rc = speedscope_convert(&task->options, &task->how, &out);
    if (rc == 0)
        rc = output_commit(&out);
    else
        output_abort(&out);
    if (rc == 0) {
        FILE *f = fopen(path, "r");

        assert_non_null(f);
        assert_int_equal(fstat(fileno(f), &status), 0);
        text = calloc(1, (size_t)status.st_size + 1);
        assert_non_null(text);
        assert_int_equal(fread(text, 1, (size_t)status.st_size, f), status.st_size);
        fclose(f);
    }
    unlink(path);
    return text;
}

static char *converted(struct task *task)
{
    char *text = convert(task);

    assert_non_null(text);
    return text;
}

/* ---- reading a document again ---- */

/* An entry of a profile, whatever form it is in. Neighbours differ. */
struct entry {
    char stack[64]; /* the last letters of names; empty: a gap */
    uint64_t weight;
};

struct profile {
    char name[128];
    bool evented;
    uint64_t end, entries;
    struct entry *list;
    size_t count, capacity;
};

struct document {
    struct profile profiles[300];
    size_t count;
    char letters[64]; /* of the frames */
};

static void add_entry(struct profile *p, const char *stack, uint64_t weight)
{
    assert_true(weight > 0);
    if (p->count > 0 && strcmp(p->list[p->count - 1].stack, stack) == 0) {
        p->list[p->count - 1].weight += weight;
        return;
    }
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? p->capacity * 2 : 64;
        p->list = realloc(p->list, p->capacity * sizeof *p->list);
        assert_non_null(p->list);
    }
    snprintf(p->list[p->count].stack, sizeof p->list[0].stack, "%s", stack);
    p->list[p->count++].weight = weight;
}

/* By hand: where sanitizers check every argument of strstr, strchr and strtoull to its end, a document with many entries
 * would take minutes. */
static const char *after(const char *text, const char *what)
{
    size_t size = strlen(what);

    while (*text != '\0') {
        size_t same = 0;

        while (same < size && text[same] == what[same])
            same++;
        if (same == size)
            return text + size;
        text++;
    }
    fail_msg("no %s", what);
    return text;
}

static uint64_t number(const char *text, const char **end)
{
    uint64_t n = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    *end = text;
    return n;
}

static void read_frames(struct document *d, const char *text)
{
    const char *at = after(text, "\"shared\":{\"frames\":[");

    for (size_t i = 0; *at == '{' || *at == ','; i++) {
        assert_true(i < sizeof d->letters);
        at = after(at, "\"name\":\"");
        d->letters[i] = *at;
        at = after(at, "}");
    }
}

static const char *read_sampled(const struct document *d, struct profile *p, const char *at)
{
    const char *weights = after(at, "],\"weights\":[");

    while (*at == '[' || *at == ',') {
        char stack[64];
        size_t depth = 0;
        const char *end;

        at = after(at, "[");
        while (*at != ']') {
            stack[depth++] = d->letters[number(at, &end)];
            at = end + (*end == ',');
        }
        at++;
        stack[depth] = '\0';
        add_entry(p, stack, number(weights, &end));
        weights = end + (*end == ',');
        p->entries++;
    }
    assert_memory_equal(at, "],\"weights\":[", 12);
    assert_memory_equal(weights, "]}", 2);
    return weights;
}

static const char *read_evented(const struct document *d, struct profile *p, const char *at)
{
    char stack[64] = "";
    size_t depth = 0;
    uint64_t moment = 0;

    while (memcmp(at, "{\"type\":\"", 9) == 0) {
        bool open = at[9] == 'O';
        const char *end;
        size_t frame = number(after(at, "\"frame\":"), &end);
        uint64_t when = number(after(end, "\"at\":"), &end);

        assert_true(when >= moment);
        if (when > moment)
            add_entry(p, stack, when - moment);
        moment = when;
        if (open)
            stack[depth++] = d->letters[frame];
        else
            assert_int_equal(stack[--depth], d->letters[frame]);
        stack[depth] = '\0';
        p->entries++;
        at = end + 1 + (end[1] == ',');
    }
    assert_int_equal(depth, 0);
    assert_memory_equal(at, "]}", 2);
    return at;
}

static struct document *read_document(const char *text)
{
    struct document *d = calloc(1, sizeof *d);
    const char *at = after(text, "\"profiles\":[");

    assert_non_null(d);
    read_frames(d, text);
    for (;; d->count++) {
        struct profile *p = &d->profiles[d->count];
        size_t size;

        assert_true(d->count < 300);
        p->evented = strncmp(at, "{\"type\":\"evented\"", 17) == 0;
        at = after(at, "\"name\":\"");
        size = strcspn(at, "\"");
        snprintf(p->name, sizeof p->name, "%.*s", (int)size, at);
        at = after(at, "\"endValue\":");
        p->end = strtoull(at, NULL, 10);
        assert_int_equal(p->end, d->profiles[0].end);
        at = p->evented ? read_evented(d, p, after(at, "\"events\":["))
                        : read_sampled(d, p, after(at, "\"samples\":["));
        at += 2;
        if (*at++ != ',')
            break;
    }
    d->count++;
    return d;
}

static void free_document(struct document *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->profiles[i].list);
    free(d);
}

static const struct profile *named(const struct document *d, const char *name)
{
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->profiles[i].name, name) == 0)
            return &d->profiles[i];
    fail_msg("no profile %s", name);
    return NULL;
}

static uint64_t busy(const struct profile *p)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->count; i++)
        sum += p->list[i].stack[0] ? p->list[i].weight : 0;
    return sum;
}

/* ---- the worked example ---- */

static const char *const letters[] = {"a", "b", "c", "d", "main", "run", "f", "g"};

#define LETTERS letters, sizeof letters / sizeof letters[0]

static void make_worked(struct maker *m)
{
    maker_open(m, WORKED_INTERVAL_NS);
    maker_names(m, LETTERS);
    maker_note(m, 40, "comm", "app");
    maker_note(m, 40, "thread", "41 worker 1");
    maker_put(m, 10000000, 40, 41, "main;run;f");
    maker_put(m, 20000000, 40, 41, "main;run;f;g");
    maker_put(m, 60000000, 40, 41, "main;run");
    maker_finish(m);
}

#define WORKED_HEAD                                                                      \
    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","               \
    "\"exporter\":\"spool2speedscope@" SPOOLTOOLS_VERSION "\",\"name\":\"a \\\"b\\\\\"," \
    "\"activeProfileIndex\":0,\"profiles\":["
#define WORKED_TAIL                                                              \
    "],\"shared\":{\"frames\":[{\"name\":\"main\",\"file\":\"[jit]\"},"          \
    "{\"name\":\"run\",\"file\":\"[jit]\"},{\"name\":\"f\",\"file\":\"[jit]\"}," \
    "{\"name\":\"g\",\"file\":\"[jit]\"}]}}\n"

static void the_worked_example_comes_out_as_written(void **state)
{
    struct maker m;
    struct task t;
    char *text;

    (void)state;
    make_worked(&m);
    t = task_of(&m);
    t.how.name = " a \"b\\";
    text = converted(&t);
    assert_string_equal(text, WORKED_HEAD
                        "{\"type\":\"sampled\",\"name\":\"app 40 / worker 1 41\","
                        "\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":60000000,"
                        "\"samples\":[[0,1,2],[0,1,2,3],[],[0,1]],"
                        "\"weights\":[10000000,10000000,30000000,10000000]}" WORKED_TAIL);
    free(text);
    t = task_of(&m);
    t.how.name = " a \"b\\";
    t.how.weight = SPEEDSCOPE_SAMPLES;
    text = converted(&t);
    assert_string_equal(text, WORKED_HEAD "{\"type\":\"sampled\",\"name\":\"app 40 / worker 1 41\","
                                          "\"unit\":\"none\",\"startValue\":0,\"endValue\":3,"
                                          "\"samples\":[[0,1,2],[0,1,2,3],[0,1]],"
                                          "\"weights\":[1,1,1]}" WORKED_TAIL);
    free(text);
    t = task_of(&m);
    t.how.name = " a \"b\\";
    t.how.merge_threads = true;
    text = converted(&t);
    assert_string_equal(text, WORKED_HEAD
                        "{\"type\":\"sampled\",\"name\":\"all threads (aggregated)\","
                        "\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":30000000,"
                        "\"samples\":[[0,1],[0,1,2],[0,1,2,3]],"
                        "\"weights\":[10000000,10000000,10000000]}" WORKED_TAIL);
    free(text);
    maker_close(&m);
}

/* ---- gaps ---- */

struct sample {
    uint64_t time_ns;
    uint32_t thread;
    char stack[2]; /* one letter of "abcd", with an upper one for the filter */
};

#define THREADS 3
#define RANDOM_SAMPLES 300

/* The rule of spool2speedscope(1), "What the width of a bar means", over the samples of a thread by time. */
static void expect_thread(const struct profile *p, const struct sample *samples, size_t count,
                          uint32_t thread, uint64_t interval_ns, const char *wanted)
{
    struct profile expected = {0};
    int64_t zero = INT64_MAX, c = 0, interval = (int64_t)interval_ns;

    for (size_t i = 0; i < count; i++)
        if (strchr(wanted, samples[i].stack[0]) && (int64_t)samples[i].time_ns < zero)
            zero = (int64_t)samples[i].time_ns;
    zero -= interval;
    for (size_t i = 0; i < count; i++) {
        int64_t want = (int64_t)samples[i].time_ns - zero - interval;

        if (samples[i].thread != thread || !strchr(wanted, samples[i].stack[0]))
            continue;
        if (2 * (want - c) >= interval) {
            add_entry(&expected, "", (uint64_t)(want - c));
            c = want;
        }
        add_entry(&expected, samples[i].stack, interval_ns);
        c += interval;
    }
    assert_int_equal(p->count, expected.count);
    for (size_t i = 0; i < p->count; i++) {
        assert_string_equal(p->list[i].stack, expected.list[i].stack);
        assert_int_equal(p->list[i].weight, expected.list[i].weight);
    }
    free(expected.list);
}

static int by_time(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Samples of busy and idle threads with jitter, bursts and pauses; no two times are equal. */
static size_t random_samples(struct sample *samples, uint64_t *seed, uint32_t interval_ns)
{
    size_t n = 0;

    for (uint32_t thread = 0; thread < THREADS; thread++) {
        uint64_t time_ns = 1000 * interval_ns + random_below(seed, 20 * interval_ns);
        uint32_t mode = 0;

        for (int i = 0; i < RANDOM_SAMPLES / THREADS; i++) {
            if (random_below(seed, 12) == 0)
                mode = random_below(seed, 4);
            if (mode == 0)
                time_ns += interval_ns - interval_ns / 4 + random_below(seed, interval_ns / 2);
            else if (mode == 1)
                time_ns += 1 + random_below(seed, interval_ns / 8 + 1);
            else if (mode == 2)
                time_ns += random_below(seed, 3 * interval_ns);
            else
                time_ns += interval_ns;
            if (random_below(seed, 40) == 0)
                time_ns += 10 * interval_ns;
            samples[n].time_ns = time_ns * 4 + thread;
            samples[n].thread = thread;
            samples[n].stack[0] = "aaab"[random_below(seed, 4)];
            samples[n++].stack[1] = '\0';
        }
    }
    qsort(samples, n, sizeof *samples, by_time);
    for (size_t i = 1; i < n; i++)
        if (samples[i].time_ns <= samples[i - 1].time_ns)
            samples[i].time_ns = samples[i - 1].time_ns + 1;
    return n;
}

/* Writes them with the disorder that runs.c mends. */
static void put_shuffled(struct maker *m, const struct sample *samples, size_t n, uint64_t *seed)
{
    uint32_t order[RANDOM_SAMPLES];

    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t with = i + random_below(seed, 4), swap = order[i];

        if (random_below(seed, 3) > 0 || with >= n)
            continue;
        memmove(&order[i], &order[i + 1], (with - i) * sizeof order[0]);
        order[with] = swap;
    }
    for (uint32_t i = 0; i < n; i++)
        maker_put(m, samples[order[i]].time_ns, 7, 10 + samples[order[i]].thread,
                  samples[order[i]].stack);
}

static void expect_random(uint64_t seed, uint32_t interval_ns, const char *wanted, bool no_merge)
{
    struct sample samples[RANDOM_SAMPLES];
    struct maker m;
    struct task t;
    size_t n = random_samples(samples, &seed, interval_ns);
    char *text;
    struct document *d;

    maker_open(&m, interval_ns * 4);
    maker_names(&m, LETTERS);
    put_shuffled(&m, samples, n, &seed);
    maker_finish(&m);
    t = task_of(&m);
    t.how.no_merge_runs = no_merge;
    if (wanted[1] == '\0') {
        t.options.shape.has_frame_filter = true;
        assert_int_equal(regcomp(&t.options.shape.frame_filter, wanted, REG_EXTENDED | REG_NOSUB),
                         0);
    }
    text = converted(&t);
    d = read_document(text);
    assert_int_equal(d->count, THREADS + 1);
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        char name[64];

        snprintf(name, sizeof name, "[unknown] 7 / %u", 10 + thread);
        expect_thread(named(d, name), samples, n, thread, (uint64_t)interval_ns * 4, wanted);
    }
    free_document(d);
    free(text);
    if (wanted[1] == '\0')
        regfree(&t.options.shape.frame_filter);
    maker_close(&m);
}

static void gaps_are_where_the_rule_has_them(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        expect_random(seed, 16 + (uint32_t)(seed % 9), "abcd", seed % 2 == 0);
}

static void gaps_do_not_depend_on_samples_that_were_filtered_out(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        expect_random(seed, 16 + (uint32_t)(seed % 9), seed % 2 ? "a" : "b", seed % 4 == 1);
}

static void half_an_interval_is_a_gap_and_less_is_not(void **state)
{
    static const struct {
        uint32_t interval_ns;
        uint64_t late_ns;
        bool gap;
    } cases[] = {{10, 4, false}, {10, 5, true}, {11, 5, false}, {11, 6, true}, {1, 1, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct maker m;
        struct task t;
        char *text;
        struct document *d;

        maker_open(&m, cases[i].interval_ns);
        maker_names(&m, LETTERS);
        maker_put(&m, 100, 7, 7, "a");
        maker_put(&m, 100 + cases[i].interval_ns + cases[i].late_ns, 7, 7, "a");
        maker_finish(&m);
        t = task_of(&m);
        text = converted(&t);
        d = read_document(text);
        assert_int_equal(d->profiles[0].count, cases[i].gap ? 3 : 1);
        assert_int_equal(busy(&d->profiles[0]), 2 * cases[i].interval_ns);
        if (cases[i].gap)
            assert_int_equal(d->profiles[0].list[1].weight, cases[i].late_ns);
        free_document(d);
        free(text);
        maker_close(&m);
    }
}

static void samples_far_out_of_order_are_sorted_and_all_count(void **state)
{
    uint64_t seed = 5;
    struct maker m;
    struct task t;
    char *text;
    struct document *d;

    (void)state;
    maker_open(&m, 10);
    maker_names(&m, LETTERS);
    for (int i = 0; i < 1000; i++)
        maker_put(&m, 1000 + random_below(&seed, 20000), 7, 7, i % 3 ? "a" : "b");
    maker_finish(&m);
    t = task_of(&m);
    text = converted(&t);
    d = read_document(text);
    assert_int_equal(busy(&d->profiles[0]), 10000);
    free_document(d);
    free(text);
    maker_close(&m);
}

static void many_gaps_are_written_as_events_with_the_same_content(void **state)
{
    static const char *const stacks[] = {"a;b;a", "a;b", "a;a;c", "c", "a;b;a;d"};

    (void)state;
    for (uint32_t gaps = 20000; gaps <= 20001; gaps++) {
        struct maker m;
        struct task t;
        char *text;
        struct document *d;
        struct profile expected = {0};

        maker_open(&m, 10);
        maker_names(&m, LETTERS);
        for (uint32_t i = 0; i < 2 * (gaps + 1); i++) {
            const char *stack = stacks[i / 3 % 5];
            char shown[8] = "";

            for (size_t k = 0; k <= strlen(stack); k += 2)
                shown[k / 2] = stack[k];
            maker_put(&m, 1000 + 30 * (i / 2) + 10 * (i % 2), 7, 7, stack);
            if (i > 0 && i % 2 == 0)
                add_entry(&expected, "", 10);
            add_entry(&expected, shown, 10);
        }
        maker_finish(&m);
        t = task_of(&m);
        text = converted(&t);
        d = read_document(text);
        assert_int_equal(d->profiles[0].evented, gaps > 20000);
        assert_int_equal(d->profiles[0].count, expected.count);
        for (size_t i = 0; i < expected.count; i++) {
            assert_string_equal(d->profiles[0].list[i].stack, expected.list[i].stack);
            assert_int_equal(d->profiles[0].list[i].weight, expected.list[i].weight);
        }
        free(expected.list);
        free_document(d);
        free(text);
        maker_close(&m);
    }
}

static void runs_are_entries_of_their_samples_when_not_merged(void **state)
{
    struct maker m;
    struct task t;

    (void)state;
    maker_open(&m, 10);
    maker_names(&m, LETTERS);
    for (uint64_t i = 0; i < 100; i++)
        maker_put(&m, 1000 + 10 * i, 7, 7, "a;b");
    maker_finish(&m);
    for (int no_merge = 0; no_merge < 2; no_merge++) {
        char *text;
        struct document *d;

        t = task_of(&m);
        t.how.no_merge_runs = no_merge;
        text = converted(&t);
        d = read_document(text);
        assert_int_equal(d->profiles[0].entries, no_merge ? 100 : 1);
        assert_int_equal(d->profiles[0].end, 1000);
        free_document(d);
        free(text);
    }
    maker_close(&m);
}

/* ---- profiles ---- */

static void make_threads(struct maker *m)
{
    maker_open(m, 10);
    maker_names(m, LETTERS);
    maker_note(m, 8, "comm", "b");
    maker_note(m, 9, "comm", "a\tb");
    maker_note(m, 9, "thread", "9 lead");
    maker_put(m, 100, 8, 8, "c;a");
    maker_put(m, 110, 9, 9, "a;b");
    maker_put(m, 120, 9, 9, "a");
    maker_put(m, 130, 8, 30, "c");
    maker_put(m, 200, 9, 31, "c;a");
    maker_put(m, 210, 9, 31, "c;b");
    maker_put(m, 220, 9, 31, "c;a");
    maker_finish(m);
}

static void profiles_are_the_overview_then_threads_by_weight_pid_and_tid(void **state)
{
    static const char *const names[] = {"all threads (aggregated)", "a b 9 / 31",
                                        "a b 9 / lead 9 (main)", "b 8 / 8 (main)", "b 8 / 30"};
    struct maker m;
    struct task t;
    char *text;
    struct document *d;

    (void)state;
    make_threads(&m);
    t = task_of(&m);
    text = converted(&t);
    d = read_document(text);
    assert_int_equal(d->count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(d->profiles[i].name, names[i]);
    assert_int_equal(d->profiles[1].list[0].weight, 100); /* the first sample of all is zero */
    assert_string_equal(d->profiles[1].list[0].stack, "");
    assert_int_equal(busy(&d->profiles[0]), 70);
    free_document(d);
    free(text);
    t.how.no_overview = true;
    text = converted(&t);
    d = read_document(text);
    assert_int_equal(d->count, 4);
    assert_string_equal(d->profiles[0].name, names[1]);
    assert_int_equal(d->profiles[0].end, 130);
    free_document(d);
    free(text);
    maker_close(&m);
}

static void the_overview_has_each_stack_once_under_its_process(void **state)
{
    struct maker m;
    struct task t;
    char *text;

    (void)state;
    make_threads(&m);
    t = task_of(&m);
    t.how.merge_threads = true;
    text = converted(&t);
    /* c, "b 8", a, "a b 9", b */
    assert_non_null(strstr(text, "\"samples\":[[1,0],[1,0,2],[3,0,2],[3,0,4],[3,2],[3,2,4]],"
                                 "\"weights\":[10,10,20,10,10,10]}],\"shared\":"));
    assert_non_null(strstr(text, "{\"name\":\"b 8\"},"));
    assert_non_null(strstr(text, "{\"name\":\"a b 9\"}"));
    free(text);
    maker_close(&m);
}

static void the_lightest_threads_are_merged(void **state)
{
    struct maker m;
    struct task t;
    char *text;
    struct document *d;

    (void)state;
    make_threads(&m);
    t = task_of(&m);
    t.how.max_profiles = 2;
    t.how.no_overview = true;
    text = converted(&t);
    d = read_document(text);
    assert_int_equal(d->count, 3);
    assert_string_equal(d->profiles[2].name, "other threads (2)");
    assert_int_equal(busy(&d->profiles[2]), 20);
    free_document(d);
    free(text);
    maker_close(&m);
}

static void inputs_have_their_own_zero_and_names_stay_unique(void **state)
{
    struct maker m, other;
    struct task t;
    char *text;
    struct document *d;

    (void)state;
    maker_open(&m, 10);
    maker_names(&m, LETTERS);
    maker_put(&m, 100, 8, 8, "a");
    maker_finish(&m);
    maker_open(&other, 20);
    maker_names(&other, LETTERS);
    maker_put(&other, 70000, 8, 8, "b");
    maker_finish(&other);
    t = task_of(&m);
    t.inputs[1] = other.path;
    text = converted(&t);
    d = read_document(text);
    assert_int_equal(d->count, 3);
    assert_int_equal(d->profiles[0].end, 30);
    assert_string_equal(d->profiles[1].name, "[unknown] 8 / 8 (main)");
    assert_string_equal(d->profiles[2].name, "[unknown] 8 / 8 (main) #2");
    assert_int_equal(d->profiles[1].list[0].weight, 20);
    assert_int_equal(d->profiles[2].count, 1);
    free_document(d);
    free(text);
    maker_close(&m);
    maker_close(&other);
}

static void without_samples_there_is_one_empty_profile(void **state)
{
    struct maker m;
    struct task t;
    char *text;

    (void)state;
    maker_open(&m, 10);
    maker_finish(&m);
    for (int merge = 0; merge < 2; merge++) {
        t = task_of(&m);
        t.how.merge_threads = merge;
        text = converted(&t);
        assert_non_null(strstr(text, "\"profiles\":[{\"type\":\"sampled\",\"name\":\"no samples\","
                                     "\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":0,"
                                     "\"samples\":[],\"weights\":[]}],"
                                     "\"shared\":{\"frames\":[]}}\n"));
        free(text);
    }
    maker_close(&m);
}

/* ---- weights and limits ---- */

static void without_an_interval_samples_are_counted(void **state)
{
    struct maker m, timed;
    struct task t;
    struct capture c;
    char *text, *said;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_put(&m, 100, 8, 8, "a");
    maker_finish(&m);
    maker_open(&timed, 10);
    maker_names(&timed, LETTERS);
    maker_put(&timed, 100, 8, 8, "a");
    maker_finish(&timed);
    t = task_of(&m);
    capture_begin(&c);
    text = converted(&t);
    said = capture_end(&c);
    assert_non_null(strstr(text, "\"unit\":\"none\""));
    assert_string_equal(said, "");
    free(said);
    free(text);
    t.inputs[1] = timed.path;
    capture_begin(&c);
    text = converted(&t);
    said = capture_end(&c);
    assert_non_null(strstr(text, "\"unit\":\"none\""));
    assert_non_null(strstr(said, "states no sample interval, so samples are counted"));
    free(said);
    free(text);
    t.how.weight = SPEEDSCOPE_TIME;
    capture_begin(&c);
    assert_null(convert(&t));
    said = capture_end(&c);
    assert_non_null(strstr(said, "states no sample interval"));
    free(said);
    maker_close(&m);
    maker_close(&timed);
}

static void numbers_beyond_2_to_the_53_are_an_error(void **state)
{
    struct maker m;
    struct task t;
    struct capture c;
    char *said, *text;

    (void)state;
    maker_open(&m, (UINT64_C(1) << 52) - 1);
    maker_names(&m, LETTERS);
    maker_put(&m, 100, 8, 8, "a");
    maker_put(&m, 200, 8, 8, "a");
    maker_finish(&m);
    t = task_of(&m);
    text = converted(&t); /* 2^53 - 2 */
    free(text);
    maker_close(&m);
    for (int merge = 0; merge < 2; merge++) {
        maker_open(&m, UINT64_C(1) << 52);
        maker_names(&m, LETTERS);
        maker_put(&m, 100, 8, 8, "a");
        maker_put(&m, 200, 8, 8, "a");
        maker_finish(&m);
        t = task_of(&m);
        t.how.merge_threads = merge;
        capture_begin(&c);
        assert_null(convert(&t));
        said = capture_end(&c);
        assert_non_null(strstr(said, "2^53"));
        assert_non_null(strstr(said, "--weight=samples"));
        free(said);
        t.how.weight = SPEEDSCOPE_SAMPLES;
        text = converted(&t);
        free(text);
        maker_close(&m);
    }
}

static void put_deep(struct maker *m, uint64_t time_ns, size_t depth)
{
    struct spool_writer_frame *frames = calloc(depth, sizeof *frames);

    assert_non_null(frames);
    for (size_t i = 0; i < depth; i++)
        frames[i] = maker_name_frame(m, 0);
    assert_int_equal(spool_writer_sample(m->writer, time_ns, 7, 7, frames, depth), 0);
    free(frames);
}

static void stacks_too_deep_for_the_viewer_are_cut_with_a_warning(void **state)
{
    struct maker m;
    struct task t;
    struct capture c;
    char *text, *said;

    (void)state;
    maker_open(&m, 10);
    maker_names(&m, LETTERS);
    put_deep(&m, 100, 2000);
    put_deep(&m, 110, 5000);
    put_deep(&m, 120, 5000);
    maker_finish(&m);
    for (uint32_t given = 0; given <= 3000; given += 1500) {
        t = task_of(&m);
        t.options.shape.has_max_depth = given > 0;
        t.options.shape.max_depth = given;
        capture_begin(&c);
        text = converted(&t);
        said = capture_end(&c);
        if (given == 1500) {
            assert_string_equal(said, "");
            assert_non_null(strstr(text, "[3500 frames omitted]"));
        } else {
            assert_non_null(strstr(said, ": 2 samples have more than 2000 frames"));
            assert_non_null(strstr(text, "[3000 frames omitted]"));
            assert_null(strstr(text, "[1 frames omitted]"));
        }
        free(said);
        free(text);
    }
    maker_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worked_example_comes_out_as_written),
        cmocka_unit_test(gaps_are_where_the_rule_has_them),
        cmocka_unit_test(gaps_do_not_depend_on_samples_that_were_filtered_out),
        cmocka_unit_test(half_an_interval_is_a_gap_and_less_is_not),
        cmocka_unit_test(samples_far_out_of_order_are_sorted_and_all_count),
        cmocka_unit_test(many_gaps_are_written_as_events_with_the_same_content),
        cmocka_unit_test(runs_are_entries_of_their_samples_when_not_merged),
        cmocka_unit_test(profiles_are_the_overview_then_threads_by_weight_pid_and_tid),
        cmocka_unit_test(the_overview_has_each_stack_once_under_its_process),
        cmocka_unit_test(the_lightest_threads_are_merged),
        cmocka_unit_test(inputs_have_their_own_zero_and_names_stay_unique),
        cmocka_unit_test(without_samples_there_is_one_empty_profile),
        cmocka_unit_test(without_an_interval_samples_are_counted),
        cmocka_unit_test(numbers_beyond_2_to_the_53_are_an_error),
        cmocka_unit_test(stacks_too_deep_for_the_viewer_are_cut_with_a_warning),
    };

    cli_set_program("spool2speedscope", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
