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
    struct stacks_input shown;   /* to the converter */
    struct spool_reader *reader; /* the input's */
    struct aggregate aggregate;
    uint64_t unit; /* weight of a sample */
    struct shaper shaper;
    struct misses misses; /* with --verbose */
    struct input_report report;
    size_t added_cells; /* to the tree, so far */

    /* With runs: the output node of each of the aggregate's cells, NOTHING: deselected; where those of a source begin,
     * with one more at the end; and how many sources each thread has. */
    uint32_t *cell_nodes;
    size_t *source_begin;
    uint32_t *thread_sources;
    uint32_t *final;       /* by stack: the output node for the source that was walked last, ... */
    uint32_t final_source; /* ... which is this one; NOTHING: none */
};

int stacks_init(struct stacks *s, const struct tool_options *options,
                const struct stacks_hooks *hooks, const struct stacks_options *how)
{
    memset(s, 0, sizeof *s);
    s->options = options;
    s->hooks = *hooks;
    s->how = *how;
    s->how.per_thread |= how->runs == AGGREGATE_RUNS || how->runs == AGGREGATE_TIMED_RUNS ||
                         options->select.thread_globs.count > 0;
    otree_init(&s->tree);
    s->symbols = symbols_new(&options->symbols, &options->shape);
    return s->symbols ? 0 : -1;
}

/* ---- one source ---- */

static int add_cell(struct stacks *s, struct stacks_file *f, size_t index)
{
    const struct cell *cell = &f->aggregate.cells[index];
    uint64_t weight;
    uint32_t has, node = NOTHING;
    int rc = shape_stack(&f->shaper, cell->stack, &node, &has);

    if (rc < 0)
        return -1;
    if (f->cell_nodes)
        f->cell_nodes[index] = rc > 0 ? node : NOTHING;
    if (rc == 0)
        return 0;
    if (__builtin_mul_overflow(cell->count, f->unit, &weight))
        weight = UINT64_MAX;
    otree_add(&s->tree, node, weight);
    shape_count(&f->shaper, cell->stack, has, cell->count);
    if (s->hooks.cell)
        s->hooks.cell(s->hooks.user, &(struct stacks_cell){.input = &f->shown,
                                                           .source = cell->source,
                                                           .node = node,
                                                           .has = has,
                                                           .samples = cell->count,
                                                           .first = cell->first});
    return 0;
}

static int add_source(struct stacks *s, struct stacks_file *f, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        if (f->added_cells++ % 64 == 0)
            progress_work("naming stacks", f->added_cells - 1, f->aggregate.cell_count);
        if (add_cell(s, f, i) < 0)
            return -1;
    }
    if (f->shaper.misses)
        shape_charge_misses(&f->shaper);
    return 0;
}

static int add_sources(struct stacks *s, struct stacks_file *f)
{
    size_t count;
    struct aggregate_source *list = aggregate_by_process(&f->aggregate, &count);
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        uint32_t root = OTREE_ROOT;
        struct source source;

        names_get_source(f->aggregate.names, list[i].source, &source);
        if (s->hooks.root)
            root = s->hooks.root(s->hooks.user, &s->tree, &source);
        shape_source(&f->shaper, &source, root, list[i].other_process);
        rc = add_source(s, f, list[i].begin, list[i].end);
    }
    free(list);
    return rc;
}

/* ---- one input ---- */

static void prepare(struct stacks *s, struct stacks_file *f)
{
    struct spool_counts counts;

    spool_reader_counts(f->reader, &counts);
    if (s->how.runs)
        f->cell_nodes = cli_realloc(NULL, f->aggregate.cell_count, sizeof *f->cell_nodes);
    if (s->options->verbose)
        unnamed_init(&f->misses, f->reader, &f->aggregate.notes);
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
    free(f->cell_nodes);
    free(f->source_begin);
    free(f->thread_sources);
    free(f->final);
}

void stacks_free(struct stacks *s)
{
    progress_end(&s->progress);
    for (size_t i = 0; i < s->file_count; i++)
        free_file(&s->files[i]);
    free(s->files);
    symbols_free(s->symbols);
    otree_free(&s->tree);
    frame_names_free(&s->frame_names);
    text_free(&s->report_lines);
    hints_free(&s->hints);
}

/* Once its stacks are added, walks need the counts of an input alone. */
static void end_adding(struct stacks_file *f)
{
    shape_free(&f->shaper);
    misses_free(&f->misses);
    f->shaper = (struct shaper){0};
    f->misses = (struct misses){0};
}

static int set_unit(struct stacks *s, struct stacks_file *f)
{
    f->unit = 1;
    if (s->how.weight == STACKS_SAMPLES)
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
        .per_thread = s->how.per_thread,
        .order = s->how.order,
        .runs = s->how.runs,
        .run_bytes = &s->run_bytes,
        .stacks_may_go = shape_deselects(&s->options->shape),
        .epochs = symbols_of_kernel(&s->options->symbols),
        .select = &s->options->select,
    };
    enum input_end end;
    int rc;

    if (set_unit(s, f) < 0)
        return -1;
    rc = aggregate_read(&f->aggregate, &options, &f->input, progress);
    end = inputs_finish(&f->input, rc, s->options);
    if (end == INPUT_FAILED || aggregate_finish(&f->aggregate) < 0)
        return -1;
    f->shown = (struct stacks_input){
        .index = (uint32_t)(f - s->files),
        .input = &f->input,
        .reader = f->reader,
        .aggregate = &f->aggregate,
        .interval_ns = spool_reader_header(f->reader)->interval_ns,
        .salvaged = end == INPUT_SALVAGED,
        .damage_offset = end == INPUT_SALVAGED ? inputs_damage_offset(&f->input) : 0,
    };
    return s->hooks.input ? s->hooks.input(s->hooks.user, &f->shown) : 0;
}

/* Adds what read_input counted to the tree. */
static int add_input(struct stacks *s, struct stacks_file *f)
{
    const struct aggregate *a = &f->aggregate;

    if (symbols_begin(s->symbols, &f->input, a) < 0 || symbols_prepare(s->symbols) < 0)
        return -1;
    if (s->hooks.begin)
        s->hooks.begin(s->hooks.user, &f->shown);
    prepare(s, f);
    if (add_sources(s, f) < 0)
        return -1;
    if (s->tree.overflow) {
        cli_error("%s: the sum of sample times exceeds 2^63-1 ns", f->input.name);
        return -1;
    }
    hints_input(&s->hints, s->options, &f->input, a, &f->report, s->symbols);
    report(s, f);
    return 0;
}

int stacks_run(struct stacks *s)
{
    const struct tool_options *o = s->options;
    size_t added = 0;
    int rc = 0;

    s->files = cli_zeroed(o->input_count, sizeof *s->files);
    progress_begin(&s->progress, o);
    while (rc == 0 && s->file_count < o->input_count) {
        struct stacks_file *f = &s->files[s->file_count];

        rc = inputs_open(o->inputs[s->file_count], &f->input);
        if (rc < 0)
            break;
        s->file_count++;
        f->reader = f->input.reader;
        progress_input(&s->progress, &f->input);
        rc = read_input(s, f, &s->progress);
        progress_input_end(&s->progress);
        inputs_close_descriptor(&f->input); /* there may be more inputs than descriptors */
        /* What is walked in time order stays, and what its weights are may depend on all inputs. */
        if (rc == 0 && !s->how.runs) {
            rc = add_input(s, f);
            free_file(f);
            *f = (struct stacks_file){0};
            added++;
        }
    }
    for (; rc == 0 && added < s->file_count; added++) {
        rc = add_input(s, &s->files[added]);
        end_adding(&s->files[added]);
    }
    progress_work_end(); /* what is written next may go to the same terminal */
    if (rc == 0)
        hints_warn(&s->hints, o);
    return rc;
}

/* ---- time order ---- */

/* A thread of the input at hand, by number. */
static struct stacks_thread *list_threads(struct stacks_file *f, size_t *count)
{
    const struct aggregate *a = &f->aggregate;
    uint32_t thread_count = runs_thread_count(a->runs);
    struct stacks_thread *list = cli_zeroed(thread_count, sizeof *list);
    size_t kept = 0;

    if (!f->thread_sources)
        f->thread_sources = cli_zeroed(thread_count, sizeof *f->thread_sources);
    memset(f->thread_sources, 0, thread_count * sizeof *f->thread_sources);
    for (size_t i = 0; i < a->cell_count; i++) {
        struct stacks_thread *t;
        struct source who;

        if (i > 0 && a->cells[i].source == a->cells[i - 1].source)
            continue;
        names_get_source(a->names, a->cells[i].source, &who);
        t = &list[a->options.runs == AGGREGATE_EVENTS ? 0 : who.thread_number];
        t->number = (uint32_t)(t - list);
        t->input = &f->shown;
        t->pid = who.pid;
        t->tid = who.tid;
        t->first_ns = runs_first_ns(a->runs, t->number);
        t->last_source = a->cells[i].source; /* sources are numbered as they appear */
        f->thread_sources[t->number]++;
    }
    for (uint32_t i = 0; i < thread_count; i++)
        if (list[i].input)
            list[kept++] = list[i];
    *count = kept;
    return list;
}

static int by_first_sample(const void *a, const void *b)
{
    const struct stacks_thread *x = a, *y = b;

    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

struct stacks_thread *stacks_threads(const struct stacks *s, size_t *count)
{
    struct stacks_thread *all = NULL;

    *count = 0;
    for (size_t i = 0; i < s->file_count; i++) {
        size_t n;
        struct stacks_thread *list = list_threads(&s->files[i], &n);

        if (n > 1)
            qsort(list, n, sizeof *list, by_first_sample);
        all = cli_realloc(all, *count + n, sizeof *all);
        if (n > 0)
            memcpy(all + *count, list, n * sizeof *list);
        *count += n;
        free(list);
    }
    return all;
}

/* Where the cells of each source begin. */
static void find_sources(struct stacks_file *f)
{
    const struct aggregate *a = &f->aggregate;
    uint32_t count = names_source_count(a->names);
    size_t at = 0;

    f->source_begin = cli_realloc(NULL, (size_t)count + 1, sizeof *f->source_begin);
    for (uint32_t source = 0; source <= count; source++) {
        f->source_begin[source] = at;
        while (at < a->cell_count && a->cells[at].source == source)
            at++;
    }
}

int stacks_walk_begin(struct stacks_walk *w, const struct stacks *s,
                      const struct stacks_thread *thread)
{
    struct stacks_file *f = &s->files[thread->input->index];
    struct spool_counts counts;

    w->tree = &s->tree;
    w->file = f;
    w->at = w->count = 0;
    if (!f->source_begin)
        find_sources(f);
    w->one_source = f->thread_sources[thread->number] == 1;
    if (w->one_source && !f->final) {
        spool_reader_counts(f->reader, &counts);
        f->final = cli_realloc(NULL, counts.stacks, sizeof *f->final);
        f->final_source = NOTHING;
    }
    return runs_open(&w->cursor, f->aggregate.runs, thread->number);
}

static uint32_t find_cell(const struct stacks_file *f, uint32_t source, uint32_t stack)
{
    const struct cell *cells = f->aggregate.cells;
    size_t low = f->source_begin[source], end = f->source_begin[source + 1], high = end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (cells[middle].stack < stack)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && cells[low].stack == stack ? f->cell_nodes[low] : NOTHING;
}

/* All stacks of the runs are among the cells of a source that is selected at all. */
static void spread_cells(struct stacks_file *f, uint32_t source)
{
    for (size_t i = f->source_begin[source]; i < f->source_begin[source + 1]; i++)
        f->final[f->aggregate.cells[i].stack] = f->cell_nodes[i];
    f->final_source = source;
}

/* The next runs, those without an output stack too; their number. */
static uint32_t fetch_runs(struct stacks_walk *w)
{
    struct stacks_file *f = w->file;
    uint32_t source, count = 0;
    struct run run;

    while (count < STACKS_WALK_BATCH && runs_next(&w->cursor, &run, &source)) {
        if (!f->aggregate.source_selected[source])
            continue;
        if (w->one_source) {
            if (f->final_source != source)
                spread_cells(f, source);
            __builtin_prefetch(&f->final[run.stack]);
        }
        /* cppcheck-suppress unknownEvaluationOrder ; the second count is a member */
        w->batch[count++] = (struct stacks_run){
            .time_ns = run.time_ns, .node = run.stack, .source = source, .count = run.count};
    }
    return count;
}

/* Fills the batch with runs that have an output stack; false at the end. */
static bool fill_batch(struct stacks_walk *w)
{
    uint32_t fetched;

    w->at = w->count = 0;
    while (w->count == 0 && (fetched = fetch_runs(w)) > 0) {
        for (uint32_t i = 0; i < fetched; i++) {
            struct stacks_run run = w->batch[i];

            run.node =
                w->one_source ? w->file->final[run.node] : find_cell(w->file, run.source, run.node);
            if (run.node == NOTHING)
                continue;
            __builtin_prefetch(&w->tree->nodes[run.node]);
            w->batch[w->count++] = run;
        }
    }
    return w->count > 0;
}

bool stacks_walk_next(struct stacks_walk *w, struct stacks_run *out)
{
    if (w->at == w->count && !fill_batch(w))
        return false;
    *out = w->batch[w->at++];
    return true;
}

void stacks_walk_end(struct stacks_walk *w)
{
    runs_close(&w->cursor);
}

void stacks_print_report(struct stacks *s)
{
    progress_end(&s->progress);
    if (s->options->verbose)
        cli_report_lines(&s->report_lines);
}
