/* SPDX-License-Identifier: MIT */
/*
 * The run of a converter: inputs are read and counted (aggregate.c), and the stacks of each source are put into the
 * tree of output stacks (shape.c), source by source, so that frames of a process are resolved once.
 */
#include "stacks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "report.h"
#include "unnamed.h"

#define NOTHING UINT32_MAX

struct stacks_file {
    struct tool_input input;
    struct spool_reader *reader; /* the input's */
    struct aggregate aggregate;
    uint64_t unit; /* weight of a sample */
    struct shaper shaper;
    struct misses misses; /* with --verbose */
    struct input_report report;

    /* By stack: group + 1 of the sources that it was counted for last; NULL: one epoch, or no report. */
    uint32_t *stack_group;
    uint32_t *final;   /* with timeline, by stack: the output node, NOTHING: deselected */
    uint32_t run_node; /* the run not handed out yet */
    uint64_t run_weight;
};

int stacks_init(struct stacks *s, const struct tool_options *options,
                const struct stacks_hooks *hooks, enum stacks_weight weight, bool per_thread,
                bool timeline)
{
    memset(s, 0, sizeof *s);
    s->options = options;
    s->hooks = *hooks;
    s->weight = weight;
    s->per_thread = per_thread || timeline || options->select.thread_globs.count > 0;
    s->timeline = timeline;
    otree_init(&s->tree);
    s->symbols = symbols_new(&options->symbols, options->shape.demangle);
    return s->symbols ? 0 : -1;
}

void stacks_free(struct stacks *s)
{
    symbols_free(s->symbols);
    otree_free(&s->tree);
    frame_names_free(&s->frame_names);
    text_free(&s->report_lines);
}

/* ---- one source ---- */

/* For the report: sources that only kernel epochs tell apart are one there. They are processed one after the other. */
static bool is_distinct(struct stacks_file *f, uint32_t stack)
{
    uint32_t group = f->shaper.source.group + 1;

    if (!f->stack_group)
        return true;
    if (f->stack_group[stack] == group)
        return false;
    f->stack_group[stack] = group;
    return true;
}

static int add_cell(struct stacks *s, struct stacks_file *f, const struct cell *cell)
{
    uint64_t weight;
    uint32_t has, node = NOTHING;
    int rc = shape_stack(&f->shaper, cell->stack, &node, &has);

    if (rc < 0)
        return -1;
    if (f->final)
        f->final[cell->stack] = rc > 0 ? node : NOTHING;
    if (rc == 0)
        return 0;
    if (__builtin_mul_overflow(cell->count, f->unit, &weight))
        weight = UINT64_MAX;
    otree_add(&s->tree, node, weight);
    f->report.samples += cell->count;
    if (is_distinct(f, cell->stack)) {
        f->report.stacks++;
        f->report.truncated_stacks += (has & SHAPE_HAS_TRUNCATED) != 0;
    }
    if (f->shaper.misses)
        misses_count(f->shaper.misses, cell->stack, cell->count);
    return 0;
}

struct run_visit {
    struct stacks *s;
    struct stacks_file *f;
};

static void hand_out_run(struct stacks *s, struct stacks_file *f)
{
    if (f->run_node != NOTHING)
        s->hooks.run(s->hooks.user, f->run_node, f->run_weight);
    f->run_node = NOTHING;
    f->run_weight = 0;
}

static void visit_run(void *user, const struct run *run)
{
    const struct run_visit *v = user;
    uint32_t node = v->f->final[run->stack];
    uint64_t weight = 0;

    if (node == NOTHING)
        return;
    if (__builtin_mul_overflow((uint64_t)run->count, v->f->unit, &weight) ||
        __builtin_add_overflow(v->f->run_node == node ? v->f->run_weight : 0, weight, &weight)) {
        v->s->tree.overflow = true;
        return;
    }
    if (v->f->run_node != node)
        hand_out_run(v->s, v->f);
    v->f->run_node = node;
    v->f->run_weight = weight;
}

static int add_source(struct stacks *s, struct stacks_file *f, uint32_t source, size_t begin,
                      size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (add_cell(s, f, &f->aggregate.cells[i]) < 0)
            return -1;
    if (f->shaper.misses)
        shape_charge_misses(&f->shaper);
    if (s->timeline) {
        struct run_visit visit = {.s = s, .f = f};

        if (runs_visit(f->aggregate.runs, source, visit_run, &visit) < 0)
            return -1;
    }
    return 0;
}

/* A source and its cells, in the order of processing. */
struct source_cells {
    uint32_t source;
    int32_t pid;
    uint64_t tid;
    bool python;
    uint32_t group;
    uint64_t first_ns; /* with timeline: of the source ... */
    uint64_t
        thread_first_ns; /* ... and of its thread, which is several sources when names changed */
    size_t begin, end;
};

/* Sources of one process behind each other, so that its frames are resolved once. */
static int by_process(const void *a, const void *b)
{
    const struct source_cells *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->python != y->python)
        return x->python ? 1 : -1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

static bool same_thread(const struct source_cells *x, const struct source_cells *y)
{
    return x->pid == y->pid && x->tid == y->tid;
}

static int by_thread(const void *a, const void *b)
{
    const struct source_cells *x = a, *y = b;

    if (x->thread_first_ns != y->thread_first_ns)
        return x->thread_first_ns < y->thread_first_ns ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

/* Threads by their first sample, the sources of a thread behind each other. */
static void sort_by_thread(struct source_cells *list, size_t count)
{
    qsort(list, count, sizeof *list,
          by_thread); /* no thread has a time yet: by thread, then time */
    for (size_t i = 0; i < count; i++)
        list[i].thread_first_ns = i > 0 && same_thread(&list[i], &list[i - 1])
                                      ? list[i - 1].thread_first_ns
                                      : list[i].first_ns;
    qsort(list, count, sizeof *list, by_thread);
}

static struct source_cells *order_sources(const struct stacks *s, const struct stacks_file *f,
                                          size_t *count)
{
    const struct aggregate *a = &f->aggregate;
    struct source_cells *list = NULL;
    size_t n = 0, capacity = 0;

    for (size_t i = 0; i < a->cell_count;) {
        uint32_t source = a->cells[i].source;
        struct source who;

        if (n == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            list = cli_realloc(list, capacity, sizeof *list);
        }
        names_get_source(a->names, source, &who);
        list[n] = (struct source_cells){.source = source,
                                        .pid = who.pid,
                                        .tid = who.tid,
                                        .python = who.python,
                                        .group = who.group,
                                        .begin = i};
        if (s->timeline)
            list[n].first_ns = runs_first_ns(a->runs, source);
        while (i < a->cell_count && a->cells[i].source == source)
            i++;
        list[n++].end = i;
    }
    if (n > 1 && s->timeline)
        sort_by_thread(list, n);
    else if (n > 1)
        qsort(list, n, sizeof *list, by_process);
    *count = n;
    return list;
}

static int add_sources(struct stacks *s, struct stacks_file *f)
{
    size_t count;
    struct source_cells *list = order_sources(s, f, &count);
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        bool other_process =
            i > 0 && (list[i].pid != list[i - 1].pid || list[i].python != list[i - 1].python);
        struct source source;

        names_get_source(f->aggregate.names, list[i].source, &source);
        shape_source(&f->shaper, &source, s->hooks.root(s->hooks.user, &s->tree, &source),
                     other_process);
        rc = add_source(s, f, list[i].source, list[i].begin, list[i].end);
        if (rc == 0 && (i + 1 == count || !same_thread(&list[i], &list[i + 1])))
            hand_out_run(s, f);
    }
    free(list);
    return rc;
}

/* ---- one input ---- */

static void prepare(struct stacks *s, struct stacks_file *f)
{
    struct spool_counts counts;

    spool_reader_counts(f->reader, &counts);
    f->run_node = NOTHING;
    if (s->timeline)
        f->final = cli_zeroed(counts.stacks, sizeof *f->final);
    if (s->options->verbose)
        unnamed_init(&f->misses, f->reader, &f->aggregate.notes);
    if (s->options->verbose && f->aggregate.epochs.now > 0)
        f->stack_group = cli_zeroed(counts.stacks, sizeof *f->stack_group);
    f->shaper = (struct shaper){
        .options = &s->options->shape,
        .hooks = {.user = s->hooks.user,
                  .label = s->hooks.label,
                  .first_label = s->hooks.first_label},
        .tree = &s->tree,
        .symbols = s->symbols,
        .names = &s->frame_names,
        .report = &f->report,
        .nodes = spool_reader_stack_nodes(f->reader),
        .misses = s->options->verbose ? &f->misses : NULL,
    };
    shape_init(&f->shaper, &counts);
}

static void report(struct stacks *s, struct stacks_file *f)
{
    if (!s->options->verbose)
        return;
    report_input(&s->report_lines, &f->input, &f->aggregate, &f->report);
    if (!s->options->symbols.no_symbols)
        unnamed_report(&s->report_lines, &f->misses, f->reader, s->symbols);
}

static void free_file(struct stacks_file *f)
{
    inputs_close(&f->input);
    aggregate_free(&f->aggregate);
    shape_free(&f->shaper);
    misses_free(&f->misses);
    free(f->stack_group);
    free(f->final);
}

static int set_unit(struct stacks *s, struct stacks_file *f)
{
    f->unit = 1;
    if (s->weight == STACKS_SAMPLES)
        return 0;
    f->unit = spool_reader_header(f->reader)->interval_ns;
    if (f->unit > 0)
        return 0;
    cli_error(
        "%s: states no sample interval, so samples have no time (--weight=samples counts them)",
        f->input.name);
    return -1;
}

/* Reads an input to its end and counts its stacks. */
static int read_input(struct stacks *s, struct stacks_file *f, struct progress *progress)
{
    struct aggregate_options options = {
        .per_thread = s->per_thread,
        .runs = s->timeline,
        .epochs = symbols_of_kernel(&s->options->symbols),
        .select = &s->options->select,
    };
    int rc;

    if (set_unit(s, f) < 0)
        return -1;
    rc = aggregate_read(&f->aggregate, &options, &f->input, progress);
    if (inputs_finish(&f->input, rc, s->options) == INPUT_FAILED)
        return -1;
    return aggregate_finish(&f->aggregate);
}

/* Adds what read_input counted to the tree. */
static int add_input(struct stacks *s, struct stacks_file *f)
{
    const struct aggregate *a = &f->aggregate;

    if (symbols_begin(s->symbols, &f->input, a) < 0)
        return -1;
    prepare(s, f);
    if (add_sources(s, f) < 0)
        return -1;
    if (s->tree.overflow) {
        cli_error("%s: the sum of sample times exceeds 2^63-1 ns", f->input.name);
        return -1;
    }
    s->samples_read += a->file_samples;
    s->samples_used += f->report.samples;
    report(s, f);
    return 0;
}

/* An empty document is right then, but seldom what was meant. */
static void warn_nothing_selected(const struct stacks *s)
{
    if (s->samples_used == 0 && s->samples_read > 0)
        cli_warn("no sample selected of %" PRIu64, s->samples_read);
}

int stacks_run(struct stacks *s)
{
    const struct tool_options *o = s->options;
    struct stacks_file *files = cli_zeroed(o->input_count, sizeof *files);
    struct progress progress;
    size_t opened = 0, added = 0;
    int rc = 0;

    progress_begin(&progress, o);
    while (rc == 0 && opened < o->input_count) {
        struct stacks_file *f = &files[opened];

        rc = inputs_open(o->inputs[opened], &f->input);
        if (rc < 0)
            break;
        opened++;
        f->reader = f->input.reader;
        progress_input(&progress, &f->input);
        rc = read_input(s, f, &progress);
        progress_input_end(&progress);
        /* A timeline is written while inputs are added: all of them must have been found good before. */
        if (rc == 0 && !s->timeline) {
            rc = add_input(s, f);
            free_file(f);
            added++;
        }
    }
    progress_end(&progress);
    for (; added < opened; added++) {
        if (rc == 0)
            rc = add_input(s, &files[added]);
        free_file(&files[added]);
    }
    if (rc == 0)
        warn_nothing_selected(s);
    free(files);
    return rc;
}

void stacks_print_report(const struct stacks *s)
{
    if (s->options->verbose)
        report_print(&s->report_lines);
}
