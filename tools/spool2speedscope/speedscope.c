/* SPDX-License-Identifier: MIT */
/*
 * The run of spool2speedscope: what counts is decided while inputs are read, then all profiles are measured and put in
 * order, so that nothing can fail but the output once the document begins.
 */
#include "speedscope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "overview.h"
#include "select.h"
#include "timeline.h"

/* Above this the viewer's parser is slow. */
#define LARGE_BYTES ((uint64_t)128 << 20)

struct speedscope {
    struct tool_options *options;
    const struct speedscope_options *how;
    struct tool_output *out;
    struct ss_frames frames;
    struct stacks stacks;
    struct overview overview;

    bool time;               /* weights are nanoseconds */
    uint64_t most_threads;   /* of the inputs so far: some may have no sample that counts */
    bool has_interval;       /* some input with samples states one ... */
    const char *no_interval; /* ... and this one states none */
    uint32_t user_depth;     /* --max-depth; 0: none */
    uint64_t too_deep;       /* samples cut by our own limit */

    /* In the order of the document; those from shown_count on are merged. */
    struct timeline *threads;
    size_t thread_count, shown_count;
    bool has_overview;
    struct overview_list all, rest;
    uint64_t end; /* of every profile */

    struct labels names;     /* of profiles so far */
    struct text_buffer text; /* scratch */
};

/* ---- reading ---- */

static int take_input(void *user, const struct stacks_input *input)
{
    struct speedscope *s = user;

    if (s->how->weight == SPEEDSCOPE_TIME && input->interval_ns == 0) {
        cli_error("%s: states no sample interval, so samples have no time (--weight=samples "
                  "counts them)",
                  input->input->name);
        return -1;
    }
    if (input->aggregate->runs)
        s->most_threads += runs_thread_count(input->aggregate->runs);
    if (input->aggregate->samples == 0)
        return 0;
    if (input->interval_ns > 0)
        s->has_interval = true;
    else if (!s->no_interval)
        s->no_interval = input->input->name;
    return 0;
}

static uint32_t frame_label(void *user, const struct out_frame *frame)
{
    struct speedscope *s = user;

    return ss_frames_label(&s->frames, frame);
}

/* With time order all inputs were read by now. */
static bool may_aggregate(const struct speedscope *s)
{
    return s->how->merge_threads || (s->most_threads > 1 && !s->how->no_overview) ||
           s->most_threads > s->how->max_profiles;
}

static void take_cell(void *user, const struct stacks_cell *cell)
{
    struct speedscope *s = user;

    if (cell->has & SHAPE_WAS_LIMITED)
        s->too_deep += cell->samples;
    if (may_aggregate(s))
        overview_add(&s->overview, &s->frames, cell);
}

static void choose_weight(struct speedscope *s)
{
    s->time = s->how->weight == SPEEDSCOPE_TIME;
    if (s->how->weight != SPEEDSCOPE_AUTO)
        return;
    s->time = !s->no_interval;
    if (s->no_interval && s->has_interval)
        cli_warn("%s: states no sample interval, so samples are counted instead of their time",
                 s->no_interval);
}

static void limit_depth(struct speedscope *s)
{
    struct shape_options *shape = &s->options->shape;

    s->user_depth = shape->has_max_depth ? shape->max_depth : 0;
    if (s->user_depth == 0 || s->user_depth > SS_MAX_DEPTH) {
        shape->has_max_depth = true;
        shape->max_depth = SS_MAX_DEPTH;
    }
}

static void warn_depth(const struct speedscope *s)
{
    if (s->too_deep > 0 && s->options->shape.max_depth != s->user_depth)
        cli_warn("%" PRIu64
                 " sample%s more than %d frames, which is what speedscope can show: in this "
                 "document alone, the outer ones are left out",
                 s->too_deep, s->too_deep == 1 ? " has" : "s have", SS_MAX_DEPTH);
}

/* ---- threads ---- */

static int by_weight(const void *a, const void *b)
{
    const struct timeline *x = a, *y = b;
    uint64_t left = x->samples * (x->interval_ns ? x->interval_ns : 1);
    uint64_t right = y->samples * (y->interval_ns ? y->interval_ns : 1);

    if (left != right)
        return left > right ? -1 : 1;
    if (x->thread.pid != y->thread.pid)
        return x->thread.pid < y->thread.pid ? -1 : 1;
    if (x->thread.tid != y->thread.tid)
        return x->thread.tid < y->thread.tid ? -1 : 1;
    return (x->thread.input->index > y->thread.input->index) -
           (x->thread.input->index < y->thread.input->index);
}

/* Whether options leave out samples that the threads were listed with. */
static bool leaves_out(const struct tool_options *o)
{
    return select_asks_names(&o->select) || shape_deselects(&o->shape);
}

/* Lists the threads that have samples in the document, and finds where each input's axis begins. 0 or -1. */
static int list_threads(struct speedscope *s)
{
    size_t count, kept = 0;
    struct stacks_thread *threads = stacks_threads(&s->stacks, &count);
    uint64_t *zero = cli_realloc(NULL, s->options->input_count, sizeof *zero);
    int rc = 0;

    for (size_t i = 0; i < s->options->input_count; i++)
        zero[i] = UINT64_MAX;
    s->threads = cli_zeroed(count, sizeof *s->threads);
    for (size_t i = 0; i < count && rc == 0; i++) {
        uint64_t first_ns = threads[i].first_ns, *input_zero = &zero[threads[i].input->index];

        if (leaves_out(s->options))
            rc = timeline_first(&s->stacks, &threads[i], &first_ns);
        if (first_ns == UINT64_MAX)
            continue;
        if (first_ns < *input_zero)
            *input_zero = first_ns;
        s->threads[kept++].thread = threads[i];
    }
    for (size_t i = 0; i < kept; i++) {
        struct timeline *t = &s->threads[i];

        t->zero_ns = zero[t->thread.input->index];
        t->interval_ns = s->time ? t->thread.input->interval_ns : 0;
    }
    s->thread_count = kept;
    free(zero);
    free(threads);
    return rc;
}

static void raise_end(struct speedscope *s, uint64_t end)
{
    if (end > s->end)
        s->end = end;
}

/* 0 or -1. */
static int measure_threads(struct speedscope *s)
{
    if (list_threads(s) < 0)
        return -1;
    for (size_t i = 0; i < s->thread_count; i++) {
        if (timeline_measure(&s->stacks, &s->threads[i]) < 0)
            return -1;
    }
    if (s->thread_count > 1)
        qsort(s->threads, s->thread_count, sizeof *s->threads, by_weight);
    s->shown_count = s->thread_count;
    if (s->shown_count > s->how->max_profiles)
        s->shown_count = s->how->max_profiles;
    for (size_t i = 0; i < s->shown_count; i++)
        raise_end(s, s->threads[i].end);
    return 0;
}

/* ---- threads that are added up ---- */

static int by_place(const void *a, const void *b)
{
    const struct timeline *x = a, *y = b;

    if (x->thread.input->index != y->thread.input->index)
        return x->thread.input->index < y->thread.input->index ? -1 : 1;
    return (x->thread.number > y->thread.number) - (x->thread.number < y->thread.number);
}

static bool is_rest(const void *user, const struct overview_part *part)
{
    const struct speedscope *s = user;
    const struct timeline *rest = s->threads + s->shown_count;
    size_t low = 0, high = s->thread_count - s->shown_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct stacks_thread *t = &rest[middle].thread;

        if (t->input->index == part->input && t->number == part->thread)
            return true;
        if (t->input->index < part->input ||
            (t->input->index == part->input && t->number < part->thread))
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* 0 or -1. */
static int aggregate_threads(struct speedscope *s)
{
    const struct otree *tree = &s->stacks.tree;
    size_t rest = s->thread_count - s->shown_count;
    bool fits = true;

    s->has_overview = s->how->merge_threads ? s->stacks.hints.samples_used > 0
                                            : s->thread_count > 1 && !s->how->no_overview;
    if (!s->has_overview && rest == 0)
        return 0;
    overview_rank(&s->overview, tree);
    if (s->has_overview)
        fits = overview_list(&s->overview, tree, s->time, NULL, NULL, &s->all);
    if (rest > 0) /* in what order they were does not matter any more */
        qsort(s->threads + s->shown_count, rest, sizeof *s->threads, by_place);
    if (rest > 0 && fits)
        fits = overview_list(&s->overview, tree, s->time, is_rest, s, &s->rest);
    raise_end(s, s->all.total);
    raise_end(s, s->rest.total);
    if (fits)
        return 0;
    timeline_report_limit();
    return -1;
}

static void number_frames(struct speedscope *s)
{
    bool *used = cli_zeroed(s->frames.keys.count, sizeof *used);

    overview_mark_roots(&s->all, used);
    overview_mark_roots(&s->rest, used);
    ss_frames_number(&s->frames, &s->stacks.tree, used);
    free(used);
}

/* ---- names ---- */

/* Makes the name in s->text one that no profile before has. */
static void make_unique(struct speedscope *s)
{
    size_t size = s->text.size;

    for (uint32_t n = 2;; n++) {
        uint32_t known = s->names.count;

        labels_intern(&s->names, s->text.data, s->text.size);
        if (s->names.count > known)
            return;
        s->text.size = size;
        text_printf(&s->text, " #%" PRIu32, n);
    }
}

/* `PROCESS PID / THREAD TID`, into s->text. */
static void name_thread(struct speedscope *s, const struct stacks_thread *t)
{
    struct source source;

    names_get_source(t->input->aggregate->names, t->last_source, &source);
    s->text.size = 0;
    if (source.comm)
        text_append_clean(&s->text, source.comm, source.comm_size);
    else
        text_printf(&s->text, "[unknown]");
    text_printf(&s->text, " %" PRId32 " / ", t->pid);
    if (source.thread) {
        text_append_clean(&s->text, source.thread, source.thread_size);
        text_append_byte(&s->text, ' ');
    }
    text_printf(&s->text, "%" PRIu64, t->tid);
    if (t->pid >= 0 && t->tid == (uint64_t)t->pid)
        text_printf(&s->text, " (main)");
    make_unique(s);
}

/* The document's, into s->text. */
static void name_document(struct speedscope *s)
{
    const struct tool_options *o = s->options;

    s->text.size = 0;
    if (s->how->name) {
        text_append_clean(&s->text, s->how->name, strlen(s->how->name));
        return;
    }
    for (size_t i = 0; i < o->input_count; i++) {
        const char *name = inputs_base_name(o->inputs[i]);

        if (i > 0)
            text_append(&s->text, ", ", 2);
        text_append_clean(&s->text, name, strlen(name));
    }
}

/* ---- writing ---- */

static void write_aggregated(struct speedscope *s, struct json_writer *w,
                             const struct overview_list *list)
{
    make_unique(s);
    timeline_begin_profile(w, "sampled", s->text.data, s->text.size, s->time, s->end);
    overview_write(&s->overview, list, &s->stacks.tree, &s->frames, w);
    json_end(w, '}');
}

static void write_no_samples(struct speedscope *s, struct json_writer *w)
{
    static const char name[] = "no samples";

    timeline_begin_profile(w, "sampled", name, strlen(name), s->time, 0);
    json_key(w, "samples");
    json_begin(w, '[');
    json_end(w, ']');
    json_key(w, "weights");
    json_begin(w, '[');
    json_end(w, ']');
    json_end(w, '}');
}

/* 0, or -1 after an error message. */
static int write_profiles(struct speedscope *s, struct json_writer *w)
{
    struct timeline_document d = {
        .stacks = &s->stacks,
        .frames = &s->frames,
        .out = s->out,
        .end = s->end,
        .time = s->time,
        .merge_runs = !s->how->no_merge_runs,
    };

    s->text.size = 0;
    text_printf(&s->text, "all threads (aggregated)");
    if (s->has_overview)
        write_aggregated(s, w, &s->all);
    else if (s->thread_count == 0)
        write_no_samples(s, w);
    for (size_t i = 0; i < s->shown_count && !output_failed(s->out); i++) {
        name_thread(s, &s->threads[i].thread);
        json_separate(w);
        if (timeline_write(&d, &s->threads[i], s->text.data, s->text.size) < 0)
            return -1;
    }
    if (s->shown_count < s->thread_count) {
        s->text.size = 0;
        text_printf(&s->text, "other threads (%zu)", s->thread_count - s->shown_count);
        write_aggregated(s, w, &s->rest);
    }
    return 0;
}

/* 0, or -1 after an error message. */
static int write_document(struct speedscope *s)
{
    struct json_writer w;

    json_start(&w, s->out);
    json_begin(&w, '{');
    json_key_text(&w, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_key_text(&w, "exporter", "spool2speedscope@" SPOOLTOOLS_VERSION);
    name_document(s);
    json_key_string(&w, "name", s->text.data, s->text.size);
    json_key_u64(&w, "activeProfileIndex", 0);
    json_key(&w, "profiles");
    json_begin(&w, '[');
    if (write_profiles(s, &w) < 0)
        return -1;
    json_end(&w, ']');
    json_key(&w, "shared");
    json_begin(&w, '{');
    json_key(&w, "frames");
    ss_frames_write(&s->frames, &w);
    json_end(&w, '}');
    json_end(&w, '}');
    output_byte(s->out, '\n');
    return 0;
}

static void warn_size(const struct speedscope *s)
{
    uint64_t bytes = output_bytes(s->out);

    if (bytes > LARGE_BYTES && !output_failed(s->out))
        cli_warn("the document has %" PRIu64 " MiB, which speedscope may be slow to open or unable "
                 "to (--merge-threads, --from and --to, or --max-depth make it smaller)",
                 bytes >> 20);
}

/* ---- API ---- */

static void release(struct speedscope *s)
{
    stacks_free(&s->stacks);
    ss_frames_free(&s->frames);
    overview_free(&s->overview);
    labels_free(&s->names);
    text_free(&s->text);
    free(s->threads);
    free(s->all.entries);
    free(s->rest.entries);
}

int speedscope_convert(struct tool_options *options, const struct speedscope_options *how,
                       struct tool_output *out)
{
    struct speedscope s = {.options = options, .how = how, .out = out};
    struct stacks_hooks hooks = {
        .user = &s, .input = take_input, .label = frame_label, .cell = take_cell};
    struct stacks_options stacks = {.weight = STACKS_SAMPLES, .runs = AGGREGATE_TIMED_RUNS};
    int rc;

    if (how->merge_threads)
        stacks.runs = AGGREGATE_NO_RUNS;
    else if (how->weight == SPEEDSCOPE_SAMPLES)
        stacks.runs = AGGREGATE_RUNS;
    limit_depth(&s);
    ss_frames_init(&s.frames);
    labels_init(&s.names);
    rc = stacks_init(&s.stacks, options, &hooks, &stacks);
    if (rc == 0)
        rc = stacks_run(&s.stacks);
    if (rc == 0) {
        choose_weight(&s);
        warn_depth(&s);
        if (!how->merge_threads)
            rc = measure_threads(&s);
    }
    if (rc == 0)
        rc = aggregate_threads(&s);
    if (rc == 0) {
        number_frames(&s);
        rc = write_document(&s);
    }
    if (rc == 0) {
        warn_size(&s);
        stacks_print_report(&s.stacks);
    }
    release(&s);
    return rc;
}
