/* SPDX-License-Identifier: MIT */
/* One object or one list of facts a spool. Shares are of the frames of all selected samples: as they were recorded,
 * or as shaping options show them when there are some. */
#include "summary.h"

#include "aggregate.h"
#include "cli.h"
#include "json.h"
#include "report.h"
#include "shape.h"
#include "shaped_use.h"
#include "symbols.h"
#include "tables.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct summary {
    const struct tool_input *in;
    struct spool_reader *reader;
    const struct spool_header *header;
    const struct aggregate *a;
    struct spool_counts counts;
    struct stack_use use;
    struct task *threads; /* ascending pid and tid */
    size_t thread_count;
    struct task *processes; /* ascending pid */
    size_t process_count;
    uint64_t gaps, gap_ns;
    bool cut_tail;
    double hz; /* of the busiest thread; 0: unknown */
};

static void count_tasks(struct summary *s)
{
    const struct task *busiest = NULL;

    s->threads = tasks_of_threads(s->a, &s->thread_count);
    s->processes = cli_realloc(NULL, s->thread_count, sizeof *s->processes);
    for (size_t i = 0; i < s->thread_count; i++) {
        const struct task *t = &s->threads[i];

        s->gaps += t->gaps;
        s->gap_ns += t->gap_ns;
        if (busiest == NULL || t->samples > busiest->samples)
            busiest = t;
        if (s->process_count > 0 && s->processes[s->process_count - 1].pid == t->pid)
            s->processes[s->process_count - 1].samples += t->samples;
        else
            s->processes[s->process_count++] = *t;
    }
    if (busiest != NULL && busiest->last_ns > busiest->first_ns)
        s->hz = (double)busiest->samples * 1e9 / (double)(busiest->last_ns - busiest->first_ns);
}

static uint64_t user_modules_hit(const struct summary *s)
{
    uint64_t hit = 0;

    for (uint32_t id = 0; id < s->use.module_count; id++) {
        const struct spool_module *m = spool_reader_module(s->reader, id);

        hit += m != NULL && !m->kernel && s->use.module_samples[id] > 0;
    }
    return hit;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void key_known(struct json_writer *w, const char *key, uint64_t number, bool known)
{
    if (known)
        json_key_u64(w, key, number);
    else
        json_key_null(w, key);
}

/* A quotient with two digits; null without a divisor. */
static void key_ratio(struct json_writer *w, const char *key, double value, bool known)
{
    json_key(w, key);
    if (!known) {
        json_null(w);
        return;
    }
    json_separate(w);
    output_printf(w->out, "%.2f", value);
}

static void origin_json(struct json_writer *w, const struct spool_header *h)
{
    json_key(w, "origin");
    if (!h->has_origin) {
        json_null(w);
        return;
    }
    json_begin(w, '{');
    json_key_u64(w, "monotonic_ns", h->origin.monotonic_ns);
    json_key_i64(w, "sign", h->origin.sign);
    json_key_u64(w, "secs", h->origin.seconds);
    json_key_u64(w, "nanos", h->origin.nanoseconds);
    json_end(w, '}');
}

static void tasks_json(const struct summary *s, struct json_writer *w)
{
    json_key(w, "processes");
    json_begin(w, '[');
    for (size_t i = 0; i < s->process_count; i++) {
        const struct task *t = &s->processes[i];
        size_t size = 0;
        const char *name = names_of_process(s->a->names, t->pid, &size);

        json_begin(w, '{');
        json_key_i64(w, "pid", t->pid);
        key_clean(w, "name", name, size);
        json_key_u64(w, "samples", t->samples);
        json_end(w, '}');
    }
    json_end(w, ']');
    json_key(w, "threads");
    json_begin(w, '[');
    for (size_t i = 0; i < s->thread_count; i++) {
        const struct task *t = &s->threads[i];
        size_t size = 0;
        const char *name = names_of_thread(s->a->names, t->pid, t->tid, &size);

        json_begin(w, '{');
        json_key_i64(w, "pid", t->pid);
        json_key_u64(w, "tid", t->tid);
        key_clean(w, "name", name, size);
        json_key_u64(w, "samples", t->samples);
        json_end(w, '}');
    }
    json_end(w, ']');
}

/* Keys are a-z, 0-9 and '-' only; values are shown as they are. */
static void annotations_json(const struct summary *s, struct json_writer *w)
{
    const struct notes *notes = &s->a->notes;

    json_key(w, "annotations");
    json_begin(w, '{');
    for (size_t i = 0; i < notes->once_count; i++) {
        const struct note *note = &notes->once[i];

        json_string(w, note->key, note->key_size);
        output_byte(w->out, ':');
        w->comma = false;
        json_string(w, note->value, note->value_size);
    }
    json_end(w, '}');
}

static void print_json(const struct summary *s, struct tool_output *out)
{
    const struct aggregate *a = s->a;
    const struct stack_use *u = &s->use;
    uint64_t kept = spool_reader_kept_bytes(s->reader);
    struct json_writer w;

    json_start(&w, out);
    json_begin(&w, '{');
    json_key_text(&w, "file", s->in->name);
    json_key_u64(&w, "version", s->header->version);
    json_key_u64(&w, "bytes", spool_reader_input_bytes(s->reader));
    json_key_u64(&w, "kept", kept);
    json_key_bool(&w, "cut_tail", s->cut_tail);
    json_key_u64(&w, "start_us", s->header->start_us);
    origin_json(&w, s->header);
    json_key_u64(&w, "interval_ns", s->header->interval_ns);
    json_key_u64(&w, "samples", a->samples);
    key_known(&w, "first_ns", a->first_ns, a->has_time);
    key_known(&w, "last_ns", a->last_ns, a->has_time);
    key_known(&w, "span_ns", a->last_ns - a->first_ns, a->has_time);
    tasks_json(s, &w);
    json_key_u64(&w, "modules", s->counts.modules - s->counts.annotations);
    json_key_u64(&w, "user_modules_hit", user_modules_hit(s));
    json_key_u64(&w, "frames", s->counts.frames);
    json_key_u64(&w, "stacks", s->counts.stacks);
    json_key_u64(&w, "distinct_stacks", u->distinct_stacks);
    json_key_u64(&w, "frames_in_samples", u->frames);
    key_ratio(&w, "mean_depth", (double)u->frames / (double)a->samples, a->samples > 0);
    json_key_u64(&w, "max_depth", u->max_depth);
    json_key_u64(&w, "kernel_frames", u->kernel_frames);
    json_key_u64(&w, "unpinned_frames", u->unpinned_frames);
    json_key_u64(&w, "truncated_stacks", u->truncated_samples);
    key_ratio(&w, "bytes_per_sample", (double)kept / (double)s->counts.samples,
              s->counts.samples > 0);
    key_ratio(&w, "effective_hz", s->hz, s->hz > 0);
    json_key(&w, "gaps");
    json_begin(&w, '{');
    json_key_u64(&w, "count", s->gaps);
    json_key_u64(&w, "ns", s->gap_ns);
    json_end(&w, '}');
    annotations_json(s, &w);
    json_key_u64(&w, "lost", a->notes.lost);
    json_end(&w, '}');
    output_byte(out, '\n');
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The beginning of a line. */
static void title(struct tool_output *out, const char *text)
{
    output_printf(out, "%-17s", text);
}

static void print_number(struct tool_output *out, uint64_t number)
{
    struct text_buffer text = {0};

    text_number(&text, number);
    output_write(out, text.data, text.size);
    text_free(&text);
}

static void number_line(struct tool_output *out, const char *name, uint64_t number)
{
    title(out, name);
    print_number(out, number);
    output_byte(out, '\n');
}

/* The wall clock of the first sample: by origin or clock note, else by the timeline's anchor. */
static void start_line(const struct summary *s, struct tool_output *out)
{
    struct spool_wall_time wall = {.seconds = (int64_t)(s->header->start_us / 1000000),
                                   .nanoseconds = (uint32_t)(s->header->start_us % 1000000 * 1000)};
    struct tm tm;
    time_t seconds;
    char text[64];

    if ((s->counts.samples == 0 ||
         spool_reader_wall_time(s->reader, s->a->file_first_ns, &wall) <= 0) &&
        s->header->start_us == 0)
        return;
    seconds = (time_t)wall.seconds;
    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        return;
    title(out, "start");
    output_printf(out, "%s.%06" PRIu32 " UTC\n", text, wall.nanoseconds / 1000);
}

static void share_line(struct tool_output *out, const char *name, uint64_t part, uint64_t whole)
{
    title(out, name);
    print_number(out, part);
    if (whole > 0)
        output_printf(out, " (%.1f %%)", 100.0 * (double)part / (double)whole);
    output_byte(out, '\n');
}

static void tasks_text(const struct summary *s, struct tool_output *out)
{
    for (size_t i = 0, next = 0; i < s->process_count; i++) {
        const struct task *p = &s->processes[i];
        size_t size = 0;
        const char *name = names_of_process(s->a->names, p->pid, &size);

        title(out, i == 0 ? "processes" : "");
        output_printf(out, "%7" PRId32 " %9" PRIu64 "  ", p->pid, p->samples);
        print_name(out, name, size);
        output_byte(out, '\n');
        for (; next < s->thread_count && s->threads[next].pid == p->pid; next++) {
            const struct task *t = &s->threads[next];

            name = names_of_thread(s->a->names, t->pid, t->tid, &size);
            title(out, "");
            output_printf(out, "  %7" PRIu64 " %7" PRIu64 "    ", t->tid, t->samples);
            print_name(out, name, size);
            output_byte(out, '\n');
        }
    }
}

/* What the file is. */
static void spool_text(const struct summary *s, struct tool_output *out)
{
    uint64_t kept = spool_reader_kept_bytes(s->reader);
    uint64_t bytes = spool_reader_input_bytes(s->reader);
    struct text_buffer text = {0};

    text_display(s->in->name, strlen(s->in->name), &text);
    title(out, "file");
    output_write(out, text.data, text.size);
    output_byte(out, '\n');
    text_free(&text);
    number_line(out, "version", s->header->version);
    title(out, "bytes");
    print_number(out, bytes);
    if (kept != bytes || s->cut_tail) {
        output_text(out, spool_reader_is_gzip(s->reader) ? " of gzip, unpacked " : ", kept ");
        print_number(out, kept);
    }
    output_text(out, s->cut_tail ? ", cut off\n" : "\n");
    start_line(s, out);
    title(out, "interval");
    if (s->header->interval_ns > 0)
        output_printf(out, "%.3f ms\n", (double)s->header->interval_ns / 1e6);
    else
        output_text(out, "unknown\n");
}

static void samples_text(const struct summary *s, struct tool_output *out)
{
    const struct aggregate *a = s->a;

    title(out, "samples");
    print_number(out, a->samples);
    output_printf(out, " over %.3f s\n",
                  a->has_time ? (double)(a->last_ns - a->first_ns) / 1e9 : 0.0);
    if (s->hz > 0) {
        title(out, "effective rate");
        output_printf(out, "%.1f Hz (busiest thread)\n", s->hz);
    }
    if (s->header->interval_ns > 0) {
        title(out, "gaps");
        print_number(out, s->gaps);
        output_printf(out, ", %.3f s\n", (double)s->gap_ns / 1e9);
    }
    title(out, "lost");
    if (a->notes.lost_known)
        print_number(out, a->notes.lost);
    else
        output_text(out, "not recorded");
    output_byte(out, '\n');
    if (s->counts.samples > 0) {
        title(out, "bytes a sample");
        output_printf(out, "%.1f\n",
                      (double)spool_reader_kept_bytes(s->reader) / (double)s->counts.samples);
    }
}

static void stacks_text(const struct summary *s, struct tool_output *out)
{
    const struct stack_use *u = &s->use;
    uint64_t samples = s->a->samples;

    title(out, "stacks");
    print_number(out, s->counts.stacks);
    output_text(out, ", used ");
    print_number(out, u->distinct_stacks);
    output_byte(out, '\n');
    number_line(out, "frames", s->counts.frames);
    if (samples > 0) {
        title(out, "depth");
        output_printf(out, "mean %.1f, largest %" PRIu32 "\n", (double)u->frames / (double)samples,
                      u->max_depth);
    }
    share_line(out, "kernel frames", u->kernel_frames, u->frames);
    share_line(out, "in no module", u->unresolved_frames, u->frames);
    share_line(out, "truncated stacks", u->truncated_samples, samples);
    title(out, "modules");
    print_number(out, s->counts.modules - s->counts.annotations);
    output_text(out, ", used ");
    print_number(out, user_modules_hit(s));
    output_text(out, " of user space\n");
}

static void notes_text(const struct summary *s, struct tool_output *out)
{
    const struct notes *notes = &s->a->notes;
    struct text_buffer text = {0};

    for (size_t i = 0; i < notes->once_count; i++) {
        const struct note *note = &notes->once[i];

        output_printf(out, "%-16.*s ", (int)note->key_size, note->key); /* as wide as a title */
        text_display(note->value, note->value_size, &text);
        output_write(out, text.data, text.size);
        output_byte(out, '\n');
    }
    text_free(&text);
}

static void print_text(const struct summary *s, struct tool_output *out)
{
    spool_text(s, out);
    samples_text(s, out);
    stacks_text(s, out);
    tasks_text(s, out);
    notes_text(s, out);
    output_byte(out, '\n');
}

enum input_end summary_print(struct tool_input *in, const struct tool_options *o,
                             const struct view_options *view, struct progress *progress,
                             struct tool_output *out)
{
    /* Times of the samples that a stack deselects are known only when all are kept. */
    const struct aggregate_options options = {
        .per_thread = true,
        .source_stats = true,
        .epochs = view->shaped && symbols_of_kernel(&o->symbols),
        .runs = view->shaped && shape_deselects(&o->shape) ? AGGREGATE_EVENTS : AGGREGATE_NO_RUNS,
        .select = &o->select};
    struct aggregate a;
    struct summary s = {
        .in = in, .reader = in->reader, .header = spool_reader_header(in->reader), .a = &a};
    enum input_end end = read_counted(&a, &options, in, o, progress);

    if (end != INPUT_FAILED && view->shaped) {
        if (shaped_use_count(&s.use, in, o, view->symbols, &a) != 0)
            end = INPUT_FAILED;
    } else if (end != INPUT_FAILED) {
        report_view(o, in, a.file_low_ns, a.file_high_ns);
        if (stack_use_count(&s.use, in->reader, &a) != 0)
            end = INPUT_FAILED;
    }
    if (end != INPUT_FAILED) {
        spool_reader_counts(in->reader, &s.counts);
        s.cut_tail = end == INPUT_SALVAGED || spool_reader_cut_tail(in->reader);
        count_tasks(&s);
        if (view->json)
            print_json(&s, out);
        else
            print_text(&s, out);
    }
    free(s.threads);
    free(s.processes);
    stack_use_free(&s.use);
    aggregate_free(&a);
    return end;
}
