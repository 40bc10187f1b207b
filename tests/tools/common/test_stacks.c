/* SPDX-License-Identifier: MIT */
/*
 * The pipeline as a whole: what becomes of stacks under each shaping option, by way of shared
 * prefixes and stack by stack, which must agree; sources, weights, several inputs, runs in time
 * order.
 */
#include "../spool2folded/make_spool.h"

#include <time.h>

#include "cli.h"
#include "stacks.h"

/* Sanitizers make everything ten times slower; that work is linear is seen without them. */
#if defined(__SANITIZE_ADDRESS__)
#define SLOWED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLOWED 1
#endif
#endif
#ifndef SLOWED
#define SLOWED 0
#endif

/* ---- a converter that writes sorted lines, or its runs ---- */

struct converter {
    char **labels;
    uint32_t label_count, label_capacity;
    bool with_tid;
    const struct stacks *stacks;
    struct text_buffer runs;
};

static uint32_t intern(struct converter *c, const char *text)
{
    for (uint32_t i = 0; i < c->label_count; i++)
        if (strcmp(c->labels[i], text) == 0)
            return i;
    if (c->label_count == c->label_capacity) {
        c->label_capacity = c->label_capacity ? c->label_capacity * 2 : 64;
        c->labels = realloc(c->labels, c->label_capacity * sizeof *c->labels);
        assert_non_null(c->labels);
    }
    c->labels[c->label_count] = strdup(text);
    return c->label_count++;
}

static uint32_t take_label(void *user, const struct out_frame *frame)
{
    assert_int_equal(strlen(frame->name), frame->name_size);
    return intern(user, frame->name);
}

static uint32_t take_root(void *user, struct otree *tree, const struct source *source)
{
    struct converter *c = user;
    char text[128];

    if (!c->with_tid)
        return OTREE_ROOT;
    snprintf(text, sizeof text, "<%.*s %d %d %.*s>", (int)source->comm_size,
             source->comm ? source->comm : "", source->pid, (int)source->tid,
             (int)source->thread_size, source->thread ? source->thread : "");
    return otree_child(tree, OTREE_ROOT, intern(c, text));
}

static void append_stack(const struct converter *c, struct text_buffer *b, uint32_t node)
{
    const struct otree *t = &c->stacks->tree;
    size_t depth = 0, begin;
    uint32_t *path;

    for (uint32_t id = node; id != OTREE_ROOT; id = t->nodes[id].parent)
        depth++;
    path = malloc((depth + 1) * sizeof *path);
    assert_non_null(path);
    begin = depth;
    for (uint32_t id = node; id != OTREE_ROOT; id = t->nodes[id].parent)
        path[--begin] = t->nodes[id].label;
    for (size_t i = 0; i < depth; i++)
        text_printf(b, "%s%s", i ? ";" : "", c->labels[path[i]]);
    free(path);
}

/* Neighbours with one output stack are one line. */
static void take_runs(struct converter *c, enum stacks_weight weight)
{
    size_t count;
    struct stacks_thread *threads = stacks_threads(c->stacks, &count);

    for (size_t i = 0; i < count; i++) {
        struct stacks_walk walk;
        struct stacks_run run;
        uint64_t unit = weight == STACKS_TIME_NS ? threads[i].input->interval_ns : 1, sum = 0;
        uint32_t node = OTREE_ROOT;

        assert_int_equal(stacks_walk_begin(&walk, c->stacks, &threads[i]), 0);
        for (bool more = true; more;) {
            more = stacks_walk_next(&walk, &run);
            if (sum > 0 && (!more || run.node != node)) {
                append_stack(c, &c->runs, node);
                text_printf(&c->runs, " %llu\n", (unsigned long long)sum);
                sum = 0;
            }
            if (more) {
                node = run.node;
                sum += run.count * unit;
            }
        }
        stacks_walk_end(&walk);
    }
    free(threads);
}

static int compare_texts(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

/* What a conversion is asked for. */
struct task {
    const char *inputs[4];
    struct tool_options options;
    enum stacks_weight weight;
    bool per_thread;
    bool timeline;
    bool with_tid; /* root frames "<comm pid tid thread>" */
};

/* The converted text, sorted lines "a;b;c WEIGHT" or the runs; NULL when it failed. malloc'ed. */
static char *convert(struct task *task)
{
    struct converter c = {.with_tid = task->with_tid};
    struct stacks_hooks hooks = {.user = &c, .label = take_label, .root = take_root};
    struct stacks_options how = {.weight = task->weight,
                                 .per_thread = task->per_thread,
                                 .runs = task->timeline ? AGGREGATE_RUNS : AGGREGATE_NO_RUNS};
    struct text_buffer all = {0};
    struct stacks s;
    char *text = NULL;
    int rc;

    task->options.inputs = task->inputs;
    for (task->options.input_count = 0;
         task->options.input_count < 4 && task->inputs[task->options.input_count];)
        task->options.input_count++;
    task->options.progress = PROGRESS_NEVER;
    assert_int_equal(stacks_init(&s, &task->options, &hooks, &how), 0);
    c.stacks = &s;
    rc = stacks_run(&s);
    if (rc == 0 && task->timeline)
        take_runs(&c, task->weight);
    text_append(&all, "", 0);
    if (rc == 0 && task->timeline) {
        text_append(&all, c.runs.data ? c.runs.data : "", c.runs.size);
    } else if (rc == 0) {
        char **lines = calloc(s.tree.count, sizeof *lines);
        size_t n = 0;

        for (uint32_t id = 0; id < s.tree.count; id++) {
            struct text_buffer line = {0};

            if (s.tree.weights[id] == 0)
                continue;
            append_stack(&c, &line, id);
            text_printf(&line, " %llu\n", (unsigned long long)s.tree.weights[id]);
            lines[n++] = line.data;
        }
        qsort(lines, n, sizeof *lines, compare_texts);
        for (size_t i = 0; i < n; i++) {
            text_append(&all, lines[i], strlen(lines[i]));
            free(lines[i]);
        }
        free(lines);
    }
    if (rc == 0)
        text = strdup(all.data);
    text_free(&all);
    text_free(&c.runs);
    for (uint32_t i = 0; i < c.label_count; i++)
        free(c.labels[i]);
    free(c.labels);
    stacks_free(&s);
    return text;
}

static void compile(bool *has, regex_t *regex, const char *pattern)
{
    assert_int_equal(regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    *has = true;
}

#define COMPILE(task, option, pattern) \
    compile(&(task)->options.shape.has_##option, &(task)->options.shape.option, pattern)

static void free_patterns(struct task *t)
{
    struct shape_options *o = &t->options.shape;

    if (o->has_frame_filter)
        regfree(&o->frame_filter);
    if (o->has_root_at)
        regfree(&o->root_at);
    if (o->has_skip_below)
        regfree(&o->skip_below);
    o->has_frame_filter = o->has_root_at = o->has_skip_below = false;
}

/* Converts; where no option cuts stacks, also with a limit that no stack reaches. */
static void expect(struct task *t, const char *expected)
{
    struct shape_options *o = &t->options.shape;
    char *text = convert(t);

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
    if (o->has_frame_filter || o->has_root_at || o->has_skip_below || o->has_max_depth)
        return;
    o->has_max_depth = true;
    o->max_depth = UINT32_MAX;
    text = convert(t);
    o->has_max_depth = false;
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void expect_error(struct task *t, const char *message)
{
    struct capture c;
    char *text, *errors;

    capture_begin(&c);
    text = convert(t);
    errors = capture_end(&c);
    assert_null(text);
    assert_non_null(strstr(errors, message));
    assert_ptr_equal(strchr(errors, '\n'), errors + strlen(errors) - 1);
    free(errors);
}

static const char *const letters[] = {"a", "b", "c", "d", "e", "main"};

#define LETTERS letters, sizeof letters / sizeof letters[0]

/* ---- shaping ---- */

static void stacks_are_counted_root_first(void **state)
{
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, MAKER_INTERVAL_NS);
    maker_names(&m, LETTERS);
    maker_put(&m, 1, 1, 1, "main;a;b");
    maker_put(&m, 2, 1, 1, "main;a");
    maker_put(&m, 3, 1, 2, "main;a;b");
    maker_put(&m, 4, 2, 3, "main;a;b");
    maker_put(&m, 5, 1, 1, "main");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "main 1\nmain;a 1\nmain;a;b 3\n");
    t.weight = STACKS_TIME_NS;
    expect(&t, "main 1000000\nmain;a 1000000\nmain;a;b 3000000\n");
    maker_close(&m);
}

static void kernel_frames_are_kept_dropped_or_required(void **state)
{
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_kernel_module(&m, 0x9000, 0x1000, "/lib/nvidia.ko");
    maker_put(&m, 1, 1, 1, "main;a;@9010;@ff00");
    maker_put(&m, 2, 1, 1, "main;a");
    maker_put(&m, 3, 1, 1, "@9010");        /* a kernel thread */
    maker_put(&m, 4, 1, 1, "main;@9020;b"); /* kernel in the middle */
    maker_put(&m, 5, 1, 1, "[truncated];@9020");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "[truncated];nvidia.ko+0x20 1\nmain;a 1\nmain;a;nvidia.ko+0x10;0xff00 1\n"
               "main;nvidia.ko+0x20;b 1\nnvidia.ko+0x10 1\n");
    t.options.shape.kernel = KERNEL_DROP;
    expect(&t, "[no frames] 1\n[truncated] 1\nmain;a 2\nmain;b 1\n");
    t.options.shape.kernel = KERNEL_ONLY;
    expect(&t, "[truncated];nvidia.ko+0x20 1\nmain;a;nvidia.ko+0x10;0xff00 1\n"
               "main;nvidia.ko+0x20;b 1\nnvidia.ko+0x10 1\n");
    t.with_tid = true;
    t.options.shape.kernel = KERNEL_DROP;
    expect(&t,
           "< 1 0 >;[no frames] 1\n< 1 0 >;[truncated] 1\n< 1 0 >;main;a 2\n< 1 0 >;main;b 1\n");
    maker_close(&m);
}

static void adjacent_equal_frames_fold_into_one(void **state)
{
    struct task t = {.with_tid = true};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_module(&m, 1, 0x1000, 0x1000, "/bin/app");
    maker_put(&m, 1, 1, 1, "a;a;b;b;b;a;c;c");
    maker_put(&m, 2, 1, 1, "a;b;a;c");
    maker_put(&m, 3, 1, 1, "a;a;b;b;b;a;c");
    maker_put(&m, 4, 1, 1, "a;a");
    maker_put(&m, 5, 1, 1, "b;1+10;1+20"); /* two addresses of a module are two names */
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.shape.fold_recursion = true;
    expect(&t, "<app 1 0 >;a 1\n<app 1 0 >;a;b;a;c 3\n<app 1 0 >;b;app+0x10;app+0x20 1\n");
    t.options.shape.unresolved_module = true; /* and one with it */
    expect(&t, "<app 1 0 >;a 1\n<app 1 0 >;a;b;a;c 3\n<app 1 0 >;b;[app] 1\n");
    maker_close(&m);
}

static void a_root_frame_is_no_recursion(void **state)
{
    static const char *const names[] = {"<app 1 0 >"};
    struct task t = {.with_tid = true};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, names, 1);
    maker_note(&m, 1, "comm", "app");
    maker_put(&m, 1, 1, 1, "<app 1 0 >;<app 1 0 >");
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.shape.fold_recursion = true;
    expect(&t, "<app 1 0 >;<app 1 0 > 1\n");
    maker_close(&m);
}

static void a_depth_limit_keeps_the_innermost_frames(void **state)
{
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_put(&m, 1, 1, 1, "a;b;c;d;e");
    maker_put(&m, 2, 1, 1, "b;d;e");
    maker_put(&m, 3, 1, 1, "d;e");
    maker_put(&m, 4, 1, 1, "[truncated];c;c;d;d;e");
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.shape.has_max_depth = true;
    t.options.shape.max_depth = 2;
    expect(&t,
           "[1 frames omitted];d;e 1\n[3 frames omitted];d;e 1\n[4 frames omitted];d;e 1\nd;e 1\n");
    t.options.shape.max_depth = 5;
    expect(&t, "[1 frames omitted];c;c;d;d;e 1\na;b;c;d;e 1\nb;d;e 1\nd;e 1\n");
    t.options.shape.fold_recursion = true; /* what is folded is not counted */
    t.options.shape.max_depth = 3;
    expect(&t, "[1 frames omitted];c;d;e 1\n[2 frames omitted];c;d;e 1\nb;d;e 1\nd;e 1\n");
    maker_close(&m);
}

static void filters_and_cuts_go_by_names(void **state)
{
    struct task t = {.with_tid = true};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_put(&m, 1, 1, 1, "main;a;b;a;c");
    maker_put(&m, 2, 1, 1, "main;d");
    maker_put(&m, 3, 1, 1, "a");
    maker_put(&m, 4, 1, 1, "main;@10"); /* not a frame of that name */
    maker_finish(&m);
    t.inputs[0] = m.path;
    COMPILE(&t, frame_filter, "^a$");
    expect(&t, "< 1 0 >;a 1\n< 1 0 >;main;a;b;a;c 1\n");
    free_patterns(&t);
    COMPILE(&t, root_at, "^a$"); /* the outermost match; stacks without one stay as they are */
    expect(&t, "< 1 0 >;a 1\n< 1 0 >;a;b;a;c 1\n< 1 0 >;main;0x10 1\n< 1 0 >;main;d 1\n");
    free_patterns(&t);
    COMPILE(&t, skip_below, "^a$");
    expect(&t, "< 1 0 >;a 1\n< 1 0 >;main;0x10 1\n< 1 0 >;main;a 1\n< 1 0 >;main;d 1\n");
    COMPILE(&t, root_at, "^[ab]$");
    COMPILE(&t, frame_filter, "c");
    expect(&t, "< 1 0 >;a 1\n");
    free_patterns(&t);
    COMPILE(&t, frame_filter, "nothing like it");
    expect(&t, "");
    free_patterns(&t);
    COMPILE(&t, root_at, "^b$");
    COMPILE(&t, skip_below, "^a$"); /* in what is left of the stack */
    expect(&t, "< 1 0 >;a 1\n< 1 0 >;b;a 1\n< 1 0 >;main;0x10 1\n< 1 0 >;main;d 1\n");
    t.options.shape.kernel = KERNEL_ONLY;
    expect(&t, "< 1 0 >;main;0x10 1\n");
    free_patterns(&t);
    maker_close(&m);
}

static void dropped_frames_are_not_matched(void **state)
{
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_put(&m, 1, 1, 1, "main;@10");
    maker_put(&m, 2, 1, 1, "@10");
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.shape.kernel = KERNEL_DROP;
    COMPILE(&t, frame_filter, "0x10");
    expect(&t, "");
    free_patterns(&t);
    COMPILE(&t, root_at, "0x10");
    expect(&t, "[no frames] 1\nmain 1\n");
    free_patterns(&t);
    maker_close(&m);
}

/* ---- Python ---- */

/* A folder with a perf map of process 1: Python functions at 7000 and 7100, another at 7200. */
static char map_folder[] = "/tmp/test_stacks_XXXXXX";
static char map_path[64];

static int make_map(void **state)
{
    FILE *f;

    (void)state;
    if (!mkdtemp(map_folder))
        return -1;
    snprintf(map_path, sizeof map_path, "%s/perf-1.map", map_folder);
    f = fopen(map_path, "w");
    if (!f)
        return -1;
    fputs("7000 100 py::outer:/srv/app.py\n7100 100 py::inner:/srv/app.py\n7200 100 Lazy:f\n", f);
    return fclose(f);
}

static int remove_map(void **state)
{
    (void)state;
    unlink(map_path);
    return rmdir(map_folder);
}

/* Modules 0: the interpreter, 1: its library, 2: memory without a file, 3: another library. */
static void open_python(struct maker *m, bool mark)
{
    maker_open(m, 0);
    maker_module(m, 1, 0x1000, 0x1000, "/usr/bin/python3.12");
    maker_module(m, 1, 0x2000, 0x1000, "/usr/lib/libpython3.12.so.1.0");
    maker_module(m, 1, 0x7000, 0x1000, "//anon");
    maker_module(m, 1, 0x3000, 0x1000, "/usr/lib/other.so");
    if (mark)
        assert_int_equal(spool_writer_python(m->writer, 0, 1, true), 0);
}

static void python_task(struct task *t, const struct maker *m)
{
    *t = (struct task){.inputs = {m->path}};
    t->options.symbols.perf_map_dir = map_folder;
    t->options.symbols.sysroot = map_folder; /* no such files there */
}

static void the_interpreter_is_hidden_where_a_python_function_is_shown(void **state)
{
    struct task t;
    struct maker m;

    (void)state;
    open_python(&m, true);
    /* start, eval, outer, eval, inner, eval, library */
    maker_put(&m, 1, 1, 1, "0+10;1+20;2+10;1+20;2+110;1+20;3+8");
    maker_put(&m, 2, 1, 1, "0+10;1+20;2+10;1+20;2+110");
    maker_put(&m, 3, 1, 1, "0+10;1+20"); /* no Python function: it must not shrink to nothing */
    maker_put(&m, 4, 1, 1, "0+10;1+20;2+10;1+20;1+30");
    maker_put(&m, 5, 1, 1, "0+10;3+8");
    maker_put(&m, 6, 1, 1, "2+210;1+20"); /* generated, but no Python function */
    maker_put(&m, 7, 1, 1, "[truncated];2+10;1+20;@50");
    maker_finish(&m);
    python_task(&t, &m);
    expect(&t, "Lazy:f;libpython3.12.so.1.0+0x20 1\n"
               "[truncated];outer;0x50 1\n"
               "outer 1\n"
               "outer;inner 1\n"
               "outer;inner;other.so+0x8 1\n"
               "python3.12+0x10;libpython3.12.so.1.0+0x20 1\n"
               "python3.12+0x10;other.so+0x8 1\n");
    t.options.shape.show_runtime = true;
    expect(&t, "Lazy:f;libpython3.12.so.1.0+0x20 1\n"
               "[truncated];outer;libpython3.12.so.1.0+0x20;0x50 1\n"
               "python3.12+0x10;libpython3.12.so.1.0+0x20 1\n"
               "python3.12+0x10;libpython3.12.so.1.0+0x20;outer;libpython3.12.so.1.0+0x20;inner 1\n"
               "python3.12+0x10;libpython3.12.so.1.0+0x20;outer;libpython3.12.so.1.0+0x20;inner;"
               "libpython3.12.so.1.0+0x20;other.so+0x8 1\n"
               "python3.12+0x10;libpython3.12.so.1.0+0x20;outer;libpython3.12.so.1.0+0x20;"
               "libpython3.12.so.1.0+0x30 1\n"
               "python3.12+0x10;other.so+0x8 1\n");
    maker_close(&m);
}

static void recursion_folds_across_hidden_frames(void **state)
{
    struct task t;
    struct maker m;

    (void)state;
    open_python(&m, true);
    maker_put(&m, 1, 1, 1, "0+10;2+10;1+20;2+20;1+20;2+110");
    maker_put(&m, 2, 1, 1, "0+10;2+10;2+110");
    maker_finish(&m);
    python_task(&t, &m);
    t.options.shape.fold_recursion = true;
    expect(&t, "outer;inner 2\n");
    maker_close(&m);
}

static void python_entries_need_a_mark_once_there_are_marks(void **state)
{
    struct task t;
    struct maker m;

    (void)state;
    open_python(&m, false);
    maker_put(&m, 1, 1, 1, "2+10;2+210");
    maker_finish(&m);
    python_task(&t, &m);
    expect(&t, "outer;Lazy:f 1\n"); /* no marks at all */
    maker_close(&m);

    open_python(&m, false);
    maker_put(&m, 1, 1, 1, "2+10;2+210");
    assert_int_equal(spool_writer_python(m.writer, 0, 2, true), 0); /* another process */
    maker_put(&m, 2, 1, 1, "2+10;2+210");
    maker_finish(&m);
    python_task(&t, &m);
    expect(&t, "//anon+0x10;Lazy:f 2\n");
    t.options.symbols.perf_maps = SYM_PERF_MAPS_ALL;
    expect(&t, "outer;Lazy:f 2\n");
    t.options.symbols.perf_maps = SYM_PERF_MAPS_NONE;
    expect(&t, "//anon+0x10;//anon+0x210 2\n");
    maker_close(&m);

    open_python(&m, false);
    maker_put(&m, 1, 1, 1, "2+10;2+210"); /* the same stack before and after the mark */
    assert_int_equal(spool_writer_python(m.writer, 0, 1, true), 0);
    maker_put(&m, 2, 1, 1, "2+10;2+210");
    assert_int_equal(spool_writer_python(m.writer, 0, 1, false), 0);
    maker_put(&m, 3, 1, 1, "2+10;2+210"); /* exit */
    maker_module(&m, 1, 0x9000, 0x1000, "/bin/ls");
    maker_put(&m, 4, 1, 1, "2+10;2+210"); /* it was an exec */
    maker_finish(&m);
    python_task(&t, &m);
    expect(&t, "//anon+0x10;Lazy:f 2\nouter;Lazy:f 2\n");
    maker_close(&m);
}

static void a_perf_map_speaks_for_its_own_process_only(void **state)
{
    struct task t;
    struct maker m;

    (void)state;
    open_python(&m, true);
    maker_module(&m, 2, 0x7000, 0x1000, "//anon");
    maker_put(&m, 1, 1, 1, "$7010"); /* one frame record, two processes */
    maker_put(&m, 2, 2, 2, "$7010");
    maker_put(&m, 3, 1, 3, "$7010");
    maker_put(&m, 4, 3, 3, "$7010"); /* in no module of that process */
    maker_finish(&m);
    python_task(&t, &m);
    t.with_tid = true;
    expect(&t, "< 2 0 >;//anon+0x10 1\n< 3 0 >;0x7010 1\n<python3.12 1 0 >;outer 2\n");
    maker_close(&m);
}

/* ---- options against their meaning ---- */

/* Writes random stacks of everything: names, kernel, Python, the interpreter, markers; three
 * processes. */
static void write_random(struct maker *m, uint64_t seed)
{
    static const char *const frames[] = {"a",    "b",     "c",     "0+10",  "1+20", "1+20",
                                         "2+10", "2+20",  "2+110", "2+210", "3+8",  "@50",
                                         "@60",  "$7010", "$99",   "$2030"};

    open_python(m, random_below(&seed, 2));
    maker_names(m, LETTERS);
    maker_module(m, 2, 0x7000, 0x1000, "//anon");
    for (size_t i = 0; i < 600; i++) {
        char stack[512];
        size_t depth = 1 + random_below(&seed, 9), size = 0;
        int32_t pid = 1 + (int32_t)random_below(&seed, 3);

        if (random_below(&seed, 8) == 0)
            size = (size_t)snprintf(stack, sizeof stack, "[truncated];");
        while (depth-- > 0)
            size += (size_t)snprintf(stack + size, sizeof stack - size, "%s%s",
                                     frames[random_below(&seed, 16)], depth ? ";" : "");
        if (random_below(&seed, 50) == 0)
            maker_note(m, pid, "comm", letters[random_below(&seed, 5)]);
        if (random_below(&seed, 100) == 0)
            assert_int_equal(spool_writer_python(m->writer, i, pid, random_below(&seed, 2)), 0);
        maker_put(m, i * 1000, pid, (uint64_t)pid * 10 + random_below(&seed, 2), stack);
    }
    maker_finish(m);
}

static void limits_and_filters_that_never_bite_change_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct maker m;

        write_random(&m, seed);
        for (unsigned bits = 0; bits < 48; bits++) {
            struct task t;
            char *plain, *limited;

            python_task(&t, &m);
            t.options.shape.kernel = (enum kernel_mode)(bits % 3);
            t.options.shape.show_runtime = bits / 3 & 1;
            t.options.shape.fold_recursion = bits / 6 & 1;
            t.options.shape.unresolved_module = bits / 12 & 1;
            t.with_tid = bits / 24 & 1;
            t.per_thread = t.with_tid;
            plain = convert(&t);
            t.options.shape.has_max_depth = true;
            t.options.shape.max_depth = UINT32_MAX;
            limited = convert(&t);
            assert_non_null(plain);
            assert_non_null(limited);
            assert_true(strlen(plain) > 100);
            if (strcmp(plain, limited) != 0)
                fail_msg("seed %llu, options %u: a limit that never bites changed:\n%s---\n%s",
                         (unsigned long long)seed, bits, plain, limited);
            free(limited);
            t.options.shape.has_max_depth = false;
            /* a filter that every stack meets; the placeholder is no frame to match */
            if (t.options.shape.kernel != KERNEL_DROP) {
                COMPILE(&t, frame_filter, ".");
                limited = convert(&t);
                assert_string_equal(plain, limited);
                free(limited);
                free_patterns(&t);
            }
            free(plain);
        }
        maker_close(&m);
    }
}

/* Applies the cutting options to one line of an unshaped conversion, as the manual pages word them. Returns false when the line
 * is deselected. */
static bool shape_line(const struct shape_options *o, char *line, struct text_buffer *out)
{
    char *frames[64];
    size_t n = 0, begin = 0, end, kept = 0, omitted = 0;
    bool matched = false;

    for (char *save, *f = strtok_r(line, ";", &save); f; f = strtok_r(NULL, ";", &save))
        frames[n++] = f;
    end = n;
    for (size_t i = 0; i < n; i++)
        matched |= o->has_frame_filter && regexec(&o->frame_filter, frames[i], 0, NULL, 0) == 0;
    if (o->has_frame_filter && !matched)
        return false;
    for (size_t i = 0; o->has_root_at && i < n; i++)
        if (regexec(&o->root_at, frames[i], 0, NULL, 0) == 0) {
            begin = i;
            break;
        }
    for (size_t i = begin; o->has_skip_below && i < n; i++)
        if (regexec(&o->skip_below, frames[i], 0, NULL, 0) == 0) {
            end = i + 1;
            break;
        }
    for (size_t i = begin; i < end; i++)
        if (!o->fold_recursion || kept == 0 || strcmp(frames[kept - 1], frames[i]) != 0)
            frames[kept++] = frames[i];
    if (o->has_max_depth && kept > o->max_depth)
        omitted = kept - o->max_depth;
    if (omitted)
        text_printf(out, "[%zu frames omitted];", omitted);
    for (size_t i = omitted; i < kept; i++)
        text_printf(out, "%s%s", i > omitted ? ";" : "", frames[i]);
    return true;
}

/* The same for a whole conversion, equal lines added up and sorted. */
static char *shape_text(const struct shape_options *o, const char *text)
{
    struct text_buffer lines[2000] = {{0}}, all = {0};
    uint64_t counts[2000];
    char *sorted[2000];
    size_t n = 0;

    for (const char *at = text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        char *line = strndup(at, (size_t)(end - at)), *blank = strrchr(line, ' ');
        uint64_t count = strtoull(blank + 1, NULL, 10);
        struct text_buffer shaped = {0};
        size_t i = 0;

        *blank = '\0';
        if (shape_line(o, line, &shaped)) {
            while (i < n && strcmp(lines[i].data, shaped.data) != 0)
                i++;
            counts[i] = i == n ? count : counts[i] + count;
            if (i == n) {
                assert_true(n < 2000);
                lines[n++] = shaped;
                shaped = (struct text_buffer){0};
            }
        }
        text_free(&shaped);
        free(line);
    }
    for (size_t i = 0; i < n; i++) {
        text_printf(&lines[i], " %llu\n", (unsigned long long)counts[i]);
        sorted[i] = lines[i].data;
    }
    qsort(sorted, n, sizeof *sorted, compare_texts);
    text_append(&all, "", 0);
    for (size_t i = 0; i < n; i++) {
        text_append(&all, sorted[i], strlen(sorted[i]));
        free(sorted[i]);
    }
    return all.data;
}

static void cuts_and_limits_do_to_each_line_what_they_say(void **state)
{
    static const char *const patterns[] = {NULL, "^a$", "^[bc]$", "outer|inner", "0x", "^nothing$"};
    uint64_t seed = 77;

    (void)state;
    for (uint64_t spool = 1; spool <= 3; spool++) {
        struct maker m;

        write_random(&m, spool);
        for (unsigned round = 0; round < 120; round++) {
            const char *filter = patterns[random_below(&seed, 6)];
            const char *root_at = patterns[random_below(&seed, 6)];
            const char *skip_below = patterns[random_below(&seed, 6)];
            struct task t;
            char *plain, *expected, *got;

            python_task(&t, &m);
            t.options.shape.show_runtime = random_below(&seed, 2);
            plain = convert(&t);
            assert_non_null(plain);
            if (filter)
                COMPILE(&t, frame_filter, filter);
            if (root_at)
                COMPILE(&t, root_at, root_at);
            if (skip_below)
                COMPILE(&t, skip_below, skip_below);
            t.options.shape.fold_recursion = random_below(&seed, 2);
            t.options.shape.has_max_depth = random_below(&seed, 2);
            t.options.shape.max_depth = 1 + (uint32_t)random_below(&seed, 6);
            expected = shape_text(&t.options.shape, plain);
            got = convert(&t);
            assert_non_null(got);
            if (strcmp(got, expected) != 0)
                fail_msg("spool %llu, round %u: got\n%s--- expected\n%s", (unsigned long long)spool,
                         round, got, expected);
            free_patterns(&t);
            free(plain);
            free(expected);
            free(got);
        }
        maker_close(&m);
    }
}

static uint64_t total(const char *text)
{
    uint64_t sum = 0;

    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const char *blank = end;

        while (*blank != ' ')
            blank--;
        sum += strtoull(blank + 1, NULL, 10);
    }
    return sum;
}

static void no_option_but_a_selection_changes_the_total(void **state)
{
    struct maker m;

    (void)state;
    write_random(&m, 77);
    for (unsigned bits = 0; bits < 32; bits++) {
        struct task t;
        char *text;

        python_task(&t, &m);
        t.options.shape.kernel = bits & 1 ? KERNEL_DROP : KERNEL_KEEP;
        t.options.shape.show_runtime = bits & 2;
        t.options.shape.has_max_depth = bits & 4;
        t.options.shape.max_depth = 1;
        t.options.shape.fold_recursion = bits & 8;
        t.timeline = bits & 16;
        COMPILE(&t, root_at, "^[ab]$");
        COMPILE(&t, skip_below, "^(c|outer)$");
        text = convert(&t);
        assert_non_null(text);
        assert_int_equal(total(text), 600);
        free(text);
        free_patterns(&t);
    }
    maker_close(&m);
}

/* ---- sources, selection, inputs ---- */

static void a_thread_glob_selects_whatever_the_sources_are(void **state)
{
    const char *glob = "work*";
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_note(&m, 1, "thread", "2 worker");
    maker_put(&m, 1, 1, 1, "main");
    maker_put(&m, 2, 1, 2, "main;a");
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.select.thread_globs = (struct text_list){&glob, 1};
    expect(&t, "main;a 1\n");
    maker_close(&m);
}

static void one_frame_may_be_two_modules_in_two_processes(void **state)
{
    struct task t = {.with_tid = true};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 1, 0x1000, 0x1000, "/bin/one");
    maker_module(&m, 2, 0x1800, 0x1000, "/bin/two");
    for (unsigned i = 0; i < 3; i++) {
        maker_put(&m, 10 * i, 1, 1, "$1900;$1910");
        maker_put(&m, 10 * i + 1, 2, 2, "$1900;$1910");
        maker_put(&m, 10 * i + 2, 3, 3, "$1900;$1910");
    }
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "< 3 0 >;0x1900;0x1910 3\n<one 1 0 >;one+0x900;one+0x910 3\n"
               "<two 2 0 >;two+0x100;two+0x110 3\n");
    maker_close(&m);
}

static void inputs_merge_equal_frames_and_nothing_else(void **state)
{
    struct task t = {.with_tid = true, .weight = STACKS_TIME_NS};
    struct maker a, b;

    (void)state;
    maker_open(&a, 1000);
    maker_names(&a, LETTERS);
    maker_note(&a, 1, "comm", "x");
    maker_put(&a, 1, 1, 1, "main;a");
    maker_put(&a, 2, 1, 1, "main;b");
    maker_finish(&a);
    maker_open(&b, 7); /* each sample counts its own file's interval */
    maker_names(&b, LETTERS);
    maker_note(&b, 1, "comm", "x");
    maker_put(&b, 1, 1, 1, "main;b");
    maker_put(&b, 2, 1, 1, "main;a;c");
    maker_put(&b, 2, 2, 1, "main;b");
    maker_finish(&b);
    t.inputs[0] = a.path;
    t.inputs[1] = b.path;
    expect(&t,
           "< 2 0 >;main;b 7\n<x 1 0 >;main;a 1000\n<x 1 0 >;main;a;c 7\n<x 1 0 >;main;b 1007\n");
    t.inputs[2] = a.path;
    expect(&t,
           "< 2 0 >;main;b 7\n<x 1 0 >;main;a 2000\n<x 1 0 >;main;a;c 7\n<x 1 0 >;main;b 2007\n");
    maker_close(&a);
    maker_close(&b);
}

static void one_bad_input_spoils_the_run(void **state)
{
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_put(&m, 1, 1, 1, "main;a");
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.inputs[1] = "/nonexistent.spool";
    expect_error(&t, "/nonexistent.spool: open failed: ");
    t.timeline = true;
    expect_error(&t, "/nonexistent.spool: open failed: ");
    maker_close(&m);
}

static void time_needs_an_interval(void **state)
{
    struct task t = {.weight = STACKS_TIME_NS};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect_error(&t, "states no sample interval");
    maker_close(&m);
}

static void a_sum_beyond_2_63_is_an_error(void **state)
{
    static const struct {
        uint64_t interval_ns;
        bool fits;
    } cases[] = {{INT64_MAX / 2, true},
                 {INT64_MAX / 2 + 1, false},
                 {UINT64_MAX / 2 + 1, false},
                 {UINT64_MAX, false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (unsigned same = 0; same < 2; same++)
            for (unsigned timeline = 0; timeline < 2; timeline++) {
                struct task t = {.weight = STACKS_TIME_NS, .timeline = timeline};
                struct maker m;

                maker_open(&m, cases[i].interval_ns);
                maker_names(&m, LETTERS);
                maker_put(&m, 1, 1, 1, "main;a");
                maker_put(&m, 2, 1, 1, same ? "main;a" : "main;b");
                maker_finish(&m);
                t.inputs[0] = m.path;
                if (cases[i].fits)
                    expect(&t, same ? "main;a 9223372036854775806\n"
                                    : "main;a 4611686018427387903\nmain;b 4611686018427387903\n");
                else
                    expect_error(&t, "the sum of sample times exceeds 2^63-1 ns");
                maker_close(&m);
            }
}

static void an_empty_spool_is_an_empty_tree(void **state)
{
    struct task t = {.timeline = true, .with_tid = true};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "");
    t.timeline = false;
    expect(&t, "");
    maker_close(&m);
}

/* ---- time order ---- */

static void runs_come_thread_by_thread_in_time_order(void **state)
{
    struct task t = {.timeline = true, .with_tid = true};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_put(&m, 20, 1, 2, "main;a");
    maker_put(&m, 10, 1, 1, "main;b");
    maker_put(&m, 21, 1, 2, "main;a");
    maker_put(&m, 11, 1, 1, "main;a");
    maker_put(&m, 12, 1, 1, "main;b");
    maker_put(&m, 5, 2, 9, "main;c");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "< 2 9 >;main;c 1\n< 1 1 >;main;b 1\n< 1 1 >;main;a 1\n< 1 1 >;main;b 1\n"
               "< 1 2 >;main;a 2\n");
    maker_close(&m);
}

static void equal_output_stacks_merge_whatever_the_spool_calls_them(void **state)
{
    struct task t = {.timeline = true};
    struct maker m;

    (void)state;
    maker_open(&m, 1000);
    maker_names(&m, LETTERS);
    maker_put(&m, 1, 1, 1, "main;a;@10");
    maker_put(&m, 2, 1, 1, "main;a;@20");
    maker_put(&m, 3, 1, 1, "main;a");
    maker_put(&m, 4, 1, 1, "main;b");
    maker_put(&m, 5, 1, 1, "main;a");
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.shape.kernel = KERNEL_DROP;
    expect(&t, "main;a 3\nmain;b 1\nmain;a 1\n");
    t.weight = STACKS_TIME_NS;
    expect(&t, "main;a 3000\nmain;b 1000\nmain;a 1000\n");
    t.weight = STACKS_SAMPLES;
    t.options.shape.kernel = KERNEL_ONLY;
    expect(&t, "main;a;0x10 1\nmain;a;0x20 1\n");
    t.options.shape.kernel = KERNEL_KEEP;
    COMPILE(&t, frame_filter, "^a$"); /* what is deselected parts no run */
    t.options.shape.kernel = KERNEL_DROP;
    expect(&t, "main;a 4\n");
    free_patterns(&t);
    maker_close(&m);
}

static void a_thread_that_changes_its_name_stays_in_one_place(void **state)
{
    struct task t = {.timeline = true};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_put(&m, 1, 1, 1, "main;a");
    maker_put(&m, 2, 1, 2, "main;b");
    maker_note(&m, 1, "thread", "1 renamed");
    maker_put(&m, 3, 1, 1, "main;a");
    maker_put(&m, 4, 1, 2, "main;b");
    maker_note(&m, 1, "comm", "new");
    maker_put(&m, 5, 1, 1, "main;c");
    maker_put(&m, 6, 1, 2, "main;d");
    assert_int_equal(spool_writer_deactivate_process(m.writer, 1), 0);
    maker_put(&m, 7, 1, 1, "main;c");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "main;a 2\nmain;c 2\nmain;b 2\nmain;d 1\n");
    maker_close(&m);
}

/* Against samples that are sorted one by one. All of a thread but the first are late, so that none are merged before
 * they are sorted. */
static void random_times_come_out_sorted(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        enum { SAMPLES = 2000, THREADS = 3 };
        struct {
            uint64_t time_ns;
            uint32_t frame;
        } samples[THREADS][SAMPLES];
        size_t counts[THREADS] = {0}, order[THREADS] = {0, 1, 2};
        struct text_buffer expected = {0};
        struct task t = {.timeline = true};
        uint64_t random = seed;
        struct maker m;

        maker_open(&m, 0);
        maker_names(&m, LETTERS);
        for (size_t i = 0; i < SAMPLES; i++) {
            uint32_t thread = random_below(&random, THREADS), frame = random_below(&random, 3);
            uint64_t time_ns = random_below(&random, 50000);
            size_t n = counts[thread]++, at = n;

            if (n <= 8)                   /* more than runs.h sorts while merging */
                time_ns = 60000 + thread; /* all that follows is too late for it */
            while (at > 0 && samples[thread][at - 1].time_ns > time_ns) {
                samples[thread][at] = samples[thread][at - 1];
                at--;
            }
            samples[thread][at].time_ns = time_ns;
            samples[thread][at].frame = frame;
            maker_put(&m, time_ns, 1, thread + 1, letters[frame]);
        }
        maker_finish(&m);
        for (size_t i = 0; i < THREADS; i++)
            for (size_t j = i + 1; j < THREADS; j++)
                if (samples[order[j]][0].time_ns < samples[order[i]][0].time_ns) {
                    size_t swap = order[i];

                    order[i] = order[j];
                    order[j] = swap;
                }
        for (size_t i = 0; i < THREADS; i++) {
            size_t thread = order[i];

            for (size_t k = 0, end; k < counts[thread]; k = end) {
                for (end = k + 1; end < counts[thread] &&
                                  samples[thread][end].frame == samples[thread][k].frame;)
                    end++;
                text_printf(&expected, "%s %zu\n", letters[samples[thread][k].frame], end - k);
            }
        }
        t.inputs[0] = m.path;
        expect(&t, expected.data);
        text_free(&expected);
        maker_close(&m);
    }
}

/* ---- kernel code that comes and goes ---- */

/* One kernel address: alone, as program a, alone, as program b; beside it what does not change. */
static void write_programs(struct maker *m)
{
    static const char *const notes[] = {"0xffffffffc0000100 64 bpf_prog_a", "0xffffffffc0000100 0 ",
                                        "0xffffffffc0000100 64 bpf_prog_b"};

    maker_open(m, 0);
    maker_names(m, LETTERS);
    for (unsigned i = 0; i < 4; i++) {
        if (i > 0)
            maker_note(m, 1, "ksymbol", notes[i - 1]);
        maker_put(m, 3 * i + 1, 1, 1, "main;a;@ffffffffc0000110");
        maker_put(m, 3 * i + 2, 1, 2, "main;b;@ffffffff81000010");
        maker_put(m, 3 * i + 3, 1, 1, "main;c");
    }
    maker_finish(m);
}

static void a_program_has_its_name_while_it_is_there(void **state)
{
    struct task t = {.with_tid = true};
    struct maker m;

    (void)state;
    write_programs(&m);
    t.inputs[0] = m.path;
    expect(&t, "< 1 0 >;main;a;0xffffffffc0000110 2\n"
               "< 1 0 >;main;a;bpf_prog_a 1\n"
               "< 1 0 >;main;a;bpf_prog_b 1\n"
               "< 1 0 >;main;b;0xffffffff81000010 4\n"
               "< 1 0 >;main;c 4\n");
    t.options.verbose = true; /* another way through the stacks */
    expect(&t, "< 1 0 >;main;a;0xffffffffc0000110 2\n"
               "< 1 0 >;main;a;bpf_prog_a 1\n"
               "< 1 0 >;main;a;bpf_prog_b 1\n"
               "< 1 0 >;main;b;0xffffffff81000010 4\n"
               "< 1 0 >;main;c 4\n");
    t.options.verbose = false;
    t.timeline = true;
    expect(&t, "< 1 1 >;main;a;0xffffffffc0000110 1\n"
               "< 1 1 >;main;c 1\n"
               "< 1 1 >;main;a;bpf_prog_a 1\n"
               "< 1 1 >;main;c 1\n"
               "< 1 1 >;main;a;0xffffffffc0000110 1\n"
               "< 1 1 >;main;c 1\n"
               "< 1 1 >;main;a;bpf_prog_b 1\n"
               "< 1 1 >;main;c 1\n"
               "< 1 2 >;main;b;0xffffffff81000010 4\n");
    maker_close(&m);
}

static void without_kernel_symbols_programs_split_nothing(void **state)
{
    struct task t = {0};
    struct maker m;

    (void)state;
    write_programs(&m);
    t.inputs[0] = m.path;
    t.options.symbols.no_kernel_symbols = true;
    expect(&t, "main;a;0xffffffffc0000110 4\nmain;b;0xffffffff81000010 4\nmain;c 4\n");
    t.options.symbols.no_kernel_symbols = false;
    t.options.symbols.no_symbols = true;
    t.options.shape.unresolved_module = true;
    t.options.shape.fold_recursion = true;
    expect(&t, "[jit-0-10000000-1000] 4\n[jit-0-10000000-1000];[kernel.kallsyms] 8\n");
    maker_close(&m);
}

/* Programs at random addresses, against the samples of each epoch as a spool of its own. */
static void random_programs_are_named_as_if_each_time_were_a_spool(void **state)
{
    static const char *const stacks[] = {"main;a;@ffffffffc0000110",
                                         "main;a;@ffffffffc0000210;b",
                                         "main;@ffffffffc0001010;c",
                                         "a;b;@ffffffff81000010",
                                         "c",
                                         "main;a;@ffffffffc0000110;@ffffffffc0001010"};
    static const char *const places[] = {"0100", "0200", "1000"};

    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        char notes[200][64], *got, *expected;
        struct text_buffer lines = {0};
        struct shape_options none = {0};
        struct task t = {.with_tid = true};
        uint64_t random = seed;
        size_t note_count = 0;
        struct maker all;

        t.options.verbose = seed % 2;
        maker_open(&all, 0);
        maker_names(&all, LETTERS);
        for (unsigned i = 0; i < 200; i++) {
            const char *stack = stacks[random_below(&random, 6)];
            int32_t pid = 1 + (int32_t)random_below(&random, 2);
            struct maker one;

            if (random_below(&random, 3) == 0) {
                bool end = random_below(&random, 2);

                snprintf(notes[note_count], sizeof notes[0], "0xffffffffc000%s %u %s",
                         places[random_below(&random, 3)], end ? 0 : 0x40,
                         end ? "" : letters[random_below(&random, 5)]);
                maker_note(&all, 1, "ksymbol", notes[note_count++]);
            }
            maker_put(&all, i, pid, (uint64_t)pid, stack);
            maker_open(&one, 0); /* what was known by then, and this sample */
            maker_names(&one, LETTERS);
            for (size_t n = 0; n < note_count; n++)
                maker_note(&one, 1, "ksymbol", notes[n]);
            maker_put(&one, i, pid, (uint64_t)pid, stack);
            maker_finish(&one);
            t.inputs[0] = one.path;
            got = convert(&t);
            assert_non_null(got);
            text_append(&lines, got, strlen(got));
            free(got);
            maker_close(&one);
        }
        maker_finish(&all);
        t.inputs[0] = all.path;
        got = convert(&t);
        assert_non_null(got);
        text_append(&lines, "", 0);
        expected = shape_text(&none, lines.data);
        assert_string_equal(got, expected);
        free(got);
        free(expected);
        text_free(&lines);
        maker_close(&all);
    }
}

/* The report's counts of distinct stacks and frames do not show that a process was looked at epoch by epoch. */
static void epochs_do_not_show_in_the_report(void **state)
{
    struct task t = {0};
    struct maker m;
    struct stacks s;
    struct converter c = {0};
    struct stacks_hooks hooks = {.user = &c, .label = take_label, .root = take_root};
    const char *inputs[1];

    (void)state;
    write_programs(&m);
    inputs[0] = m.path;
    t.options.verbose = true;
    t.options.progress = PROGRESS_NEVER;
    t.options.inputs = inputs;
    t.options.input_count = 1;
    assert_int_equal(stacks_init(&s, &t.options, &hooks, &(struct stacks_options){0}), 0);
    c.stacks = &s;
    assert_int_equal(stacks_run(&s), 0);
    assert_non_null(
        strstr(s.report_lines.data, "\nused 12 samples, 3 distinct stacks, 6 distinct frames\n"));
    stacks_free(&s);
    for (uint32_t i = 0; i < c.label_count; i++)
        free(c.labels[i]);
    free(c.labels);
    maker_close(&m);
}

/* ---- size ---- */

static void many_epochs_above_a_deep_stack_take_linear_time(void **state)
{
    enum { DEPTH = SLOWED ? 50000 : 200000, EPOCHS = SLOWED ? 10000 : 40000 };
    struct spool_record rec = {.type = SPOOL_RECORD_THREAD, .thread = {.pid = 1, .tid = 1}};
    struct task t = {0};
    struct maker m;
    clock_t begin = clock();
    char expected[80];
    char *text;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 1, 0x1000, DEPTH, "/bin/deep"); /* one label, with unresolved_module */
    assert_int_equal(spool_writer_put(m.writer, &rec), 0);
    for (uint32_t i = 0; i <= DEPTH; i++) {
        rec = (struct spool_record){
            .type = SPOOL_RECORD_FRAME,
            .frame = {.id = i, .kind = SPOOL_FRAME_PINNED, .module_id = 0, .rel = i}};
        if (i == DEPTH)
            rec.frame = (struct spool_frame){.id = i,
                                             .kind = SPOOL_FRAME_UNPINNED,
                                             .kernel = true,
                                             .module_id = SPOOL_NO_ID,
                                             .rel = UINT64_C(0xffffffffc0000010),
                                             .abs = UINT64_C(0xffffffffc0000010)};
        assert_int_equal(spool_writer_put(m.writer, &rec), 0);
        rec = (struct spool_record){
            .type = SPOOL_RECORD_STACK,
            .stack = {.id = i, .prefix = i == 0 ? SPOOL_NO_ID : i - 1, .frame = i}};
        assert_int_equal(spool_writer_put(m.writer, &rec), 0);
    }
    for (uint32_t i = 0; i < EPOCHS; i++) {
        maker_note(&m, 1, "ksymbol",
                   i % 2 ? "0xffffffffc0000000 0 " : "0xffffffffc0000000 64 bpf_prog");
        rec = (struct spool_record){.type = SPOOL_RECORD_SAMPLE,
                                    .sample = {.time_ns = i, .thread = 0, .stack = DEPTH}};
        assert_int_equal(spool_writer_put(m.writer, &rec), 0);
    }
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.symbols.sysroot = map_folder; /* no such file there */
    t.options.shape.unresolved_module = true;
    t.options.shape.fold_recursion = true;
    text = convert(&t);
    assert_non_null(text);
    snprintf(expected, sizeof expected, "[deep];[kernel.kallsyms] %d\n[deep];bpf_prog %d\n",
             EPOCHS / 2, EPOCHS / 2);
    assert_string_equal(text, expected);
    free(text);
    maker_close(&m);
    /* Eight thousand million steps, if each epoch began at the root. */
    assert_true(clock() - begin < 15 * CLOCKS_PER_SEC);
}

static void a_stack_a_million_deep_needs_no_recursion(void **state)
{
    enum { DEPTH = 1000000 };
    struct spool_writer_frame *frames = calloc(DEPTH, sizeof *frames);
    struct maker m;

    (void)state;
    assert_non_null(frames);
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    for (size_t i = 0; i < DEPTH; i++)
        frames[i] = maker_name_frame(&m, i % 2);
    assert_int_equal(spool_writer_sample(m.writer, 1, 1, 1, frames, DEPTH), 0);
    free(frames);
    maker_finish(&m);
    for (unsigned limited = 0; limited < 2; limited++) {
        struct task t = {.inputs = {m.path}};
        char *text;

        t.options.shape.has_max_depth = limited;
        t.options.shape.max_depth = 3;
        text = convert(&t);
        assert_non_null(text);
        if (limited) {
            assert_string_equal(text, "[999997 frames omitted];a;b;a 1\n");
        } else {
            assert_int_equal(strlen(text), 2 * DEPTH - 1 + 3);
            assert_memory_equal(text, "b;a;b;a", 7);
            assert_string_equal(text + 2 * DEPTH - 9, ";b;a;b;a 1\n");
        }
        free(text);
    }
    maker_close(&m);
}

static void stacks_all_along_a_deep_one_are_shaped_in_linear_time(void **state)
{
    enum { DEPTH = SLOWED ? 50000 : 200000, EVERY = 10 };
    static const char *const none = "^nothing$";
    struct spool_record rec = {.type = SPOOL_RECORD_THREAD, .thread = {.pid = 1, .tid = 1}};
    struct maker m;
    clock_t begin = clock();

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 1, 0x1000, DEPTH, "/bin/deep"); /* one label, with unresolved_module */
    assert_int_equal(spool_writer_put(m.writer, &rec), 0);
    for (uint32_t i = 0; i < DEPTH; i++) {
        rec = (struct spool_record){
            .type = SPOOL_RECORD_FRAME,
            .frame = {.id = i, .kind = SPOOL_FRAME_PINNED, .module_id = 0, .rel = i}};
        assert_int_equal(spool_writer_put(m.writer, &rec), 0);
        rec = (struct spool_record){
            .type = SPOOL_RECORD_STACK,
            .stack = {.id = i, .prefix = i == 0 ? SPOOL_NO_ID : i - 1, .frame = i}};
        assert_int_equal(spool_writer_put(m.writer, &rec), 0);
        if (i % EVERY != 0)
            continue;
        rec = (struct spool_record){.type = SPOOL_RECORD_SAMPLE,
                                    .sample = {.time_ns = i, .thread = 0, .stack = i}};
        assert_int_equal(spool_writer_put(m.writer, &rec), 0);
    }
    maker_finish(&m);
    for (unsigned option = 0; option < 4; option++) {
        struct task t = {.inputs = {m.path}};
        char *text;

        t.options.verbose = true;
        t.options.symbols.no_symbols = true;
        t.options.shape.unresolved_module = true;
        t.options.shape.has_max_depth = true;
        t.options.shape.max_depth = 2;
        if (option == 1)
            COMPILE(&t, frame_filter, none);
        if (option == 2)
            COMPILE(&t, root_at, none);
        if (option == 3)
            COMPILE(&t, skip_below, none);
        text = convert(&t);
        assert_non_null(text);
        assert_int_equal(total(text), option == 1 ? 0 : DEPTH / EVERY);
        free(text);
        free_patterns(&t);
    }
    maker_close(&m);
    /* Two thousand million steps a conversion, if it were not. */
    assert_true(clock() - begin < 30 * CLOCKS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_counted_root_first),
        cmocka_unit_test(kernel_frames_are_kept_dropped_or_required),
        cmocka_unit_test(adjacent_equal_frames_fold_into_one),
        cmocka_unit_test(a_root_frame_is_no_recursion),
        cmocka_unit_test(a_depth_limit_keeps_the_innermost_frames),
        cmocka_unit_test(filters_and_cuts_go_by_names),
        cmocka_unit_test(dropped_frames_are_not_matched),
        cmocka_unit_test(the_interpreter_is_hidden_where_a_python_function_is_shown),
        cmocka_unit_test(recursion_folds_across_hidden_frames),
        cmocka_unit_test(python_entries_need_a_mark_once_there_are_marks),
        cmocka_unit_test(a_perf_map_speaks_for_its_own_process_only),
        cmocka_unit_test(limits_and_filters_that_never_bite_change_nothing),
        cmocka_unit_test(cuts_and_limits_do_to_each_line_what_they_say),
        cmocka_unit_test(no_option_but_a_selection_changes_the_total),
        cmocka_unit_test(a_thread_glob_selects_whatever_the_sources_are),
        cmocka_unit_test(one_frame_may_be_two_modules_in_two_processes),
        cmocka_unit_test(inputs_merge_equal_frames_and_nothing_else),
        cmocka_unit_test(one_bad_input_spoils_the_run),
        cmocka_unit_test(time_needs_an_interval),
        cmocka_unit_test(a_sum_beyond_2_63_is_an_error),
        cmocka_unit_test(an_empty_spool_is_an_empty_tree),
        cmocka_unit_test(runs_come_thread_by_thread_in_time_order),
        cmocka_unit_test(equal_output_stacks_merge_whatever_the_spool_calls_them),
        cmocka_unit_test(a_thread_that_changes_its_name_stays_in_one_place),
        cmocka_unit_test(random_times_come_out_sorted),
        cmocka_unit_test(a_program_has_its_name_while_it_is_there),
        cmocka_unit_test(without_kernel_symbols_programs_split_nothing),
        cmocka_unit_test(random_programs_are_named_as_if_each_time_were_a_spool),
        cmocka_unit_test(epochs_do_not_show_in_the_report),
        cmocka_unit_test(many_epochs_above_a_deep_stack_take_linear_time),
        cmocka_unit_test(a_stack_a_million_deep_needs_no_recursion),
        cmocka_unit_test(stacks_all_along_a_deep_one_are_shaped_in_linear_time),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, make_map, remove_map);
}
