/* SPDX-License-Identifier: MIT */
/*
 * Tables over a whole spool: modules and threads with the samples that hit them. Nothing is printed before the input
 * was read to its end.
 */
#include "tables.h"

#include "cli.h"
#include "json.h"
#include "report.h"
#include "stack_use.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- reading --------------------------------------------------------------------------------- */

enum input_end read_counted(struct aggregate *a, const struct aggregate_options *options,
                            struct tool_input *in, const struct tool_options *o,
                            struct progress *progress)
{
    struct aggregate_options all = *options;
    enum input_end end;
    int rc;

    all.per_thread |= o->select.thread_globs.count > 0; /* processes have no thread's name */
    rc = aggregate_read(a, &all, in, progress);
    end = inputs_finish(in, rc, o);
    if (end != INPUT_FAILED && aggregate_finish(a) != 0)
        end = INPUT_FAILED;
    return end;
}

/* The same with the line of the report. */
static enum input_end read_reported(struct aggregate *a, const struct aggregate_options *options,
                                    struct tool_input *in, const struct tool_options *o,
                                    struct progress *progress)
{
    enum input_end end = read_counted(a, options, in, o, progress);

    if (end != INPUT_FAILED)
        report_view(o, in, a->file_low_ns, a->file_high_ns);
    return end;
}

void report_view(const struct tool_options *o, const struct tool_input *in, uint64_t low_ns,
                 uint64_t high_ns)
{
    struct text_buffer line = {0};

    if (!o->verbose)
        return;
    report_spool(&line, in, low_ns, high_ns);
    cli_report_lines(&line);
    text_free(&line);
}

void key_clean(struct json_writer *w, const char *key, const char *name, size_t size)
{
    struct text_buffer clean = {0};

    if (name == NULL) {
        json_key_null(w, key);
        return;
    }
    text_clean(name, size, &clean);
    json_key_string(w, key, clean.data, clean.size);
    text_free(&clean);
}

void print_name(struct tool_output *out, const char *name, size_t size)
{
    struct text_buffer clean = {0};

    if (name == NULL) {
        output_byte(out, '-');
        return;
    }
    text_clean(name, size, &clean);
    output_write(out, clean.data, clean.size);
    text_free(&clean);
}

/* ---- modules --------------------------------------------------------------------------------- */

/* In hex, as *hex; NULL when it is unknown. */
static const char *build_id_of(const struct notes *notes, uint32_t module,
                               char hex[2 * NOTES_BUILD_ID_MAX + 1])
{
    size_t size;
    const uint8_t *bytes = notes_build_id(notes, module, &size);

    if (bytes != NULL)
        text_write_hex(hex, bytes, size);
    return bytes != NULL ? hex : NULL;
}

static void module_json(struct tool_output *out, const struct spool_module *m, bool has_pid,
                        const struct notes *notes, uint64_t samples)
{
    char hex[2 * NOTES_BUILD_ID_MAX + 1];
    const char *build_id = build_id_of(notes, m->id, hex);
    struct json_writer w;

    json_start(&w, out);
    json_begin(&w, '{');
    json_key_u64(&w, "id", m->id);
    if (has_pid)
        json_key_i64(&w, "pid", m->pid);
    else
        json_key_null(&w, "pid");
    json_key_u64(&w, "start", m->start);
    json_key_u64(&w, "end", m->end);
    json_key_u64(&w, "file_offset", m->file_offset);
    json_key_string(&w, "path", m->path, m->path_size);
    json_key_text(&w, "build_id", build_id);
    json_key_bool(&w, "kernel", m->kernel);
    if (m->retired_at_frame == SPOOL_NOT_RETIRED)
        json_key_null(&w, "retired");
    else
        json_key_u64(&w, "retired", m->retired_at_frame);
    json_key_u64(&w, "samples", samples);
    json_end(&w, '}');
    output_byte(out, '\n');
}

static void module_text(struct tool_output *out, const struct spool_module *m, bool has_pid,
                        const struct notes *notes, uint64_t samples)
{
    char hex[2 * NOTES_BUILD_ID_MAX + 1];
    const char *build_id = build_id_of(notes, m->id, hex);
    struct text_buffer path = {0};
    char pid[16] = "-", retired[24] = "-";

    if (has_pid)
        snprintf(pid, sizeof pid, "%" PRId32, m->pid);
    if (m->retired_at_frame != SPOOL_NOT_RETIRED)
        snprintf(retired, sizeof retired, "%" PRIu64, m->retired_at_frame);
    text_quote(m->path, m->path_size, &path);
    output_printf(out,
                  "%5" PRIu32 " %7s %#18" PRIx64 " %#18" PRIx64 " %#10" PRIx64 " %7s %9" PRIu64,
                  m->id, pid, m->start, m->end, m->file_offset, retired, samples);
    output_printf(out, "  %s%s", m->kernel ? "kernel " : "", path.data);
    if (build_id != NULL)
        output_printf(out, " build-id %s", build_id);
    output_byte(out, '\n');
    text_free(&path);
}

enum input_end modules_print(struct tool_input *in, const struct tool_options *o,
                             const struct view_options *view, struct progress *progress,
                             struct tool_output *out)
{
    const struct aggregate_options options = {.select = &o->select};
    uint32_t version = spool_reader_header(in->reader)->version;
    struct stack_use use = {0};
    struct aggregate a;
    enum input_end end = read_reported(&a, &options, in, o, progress);

    if (end != INPUT_FAILED && stack_use_count(&use, in->reader, &a) != 0)
        end = INPUT_FAILED;
    if (end != INPUT_FAILED && !view->json)
        output_text(out, "   id     pid              start                end     offset retired   "
                         "samples  path\n");
    for (uint32_t id = 0; end != INPUT_FAILED && id < use.module_count; id++) {
        const struct spool_module *m = spool_reader_module(in->reader, id);
        bool has_pid;

        if (m == NULL) /* an annotation */
            continue;
        has_pid = !m->kernel || version < 4;
        if (view->json)
            module_json(out, m, has_pid, &a.notes, use.module_samples[id]);
        else
            module_text(out, m, has_pid, &a.notes, use.module_samples[id]);
    }
    stack_use_free(&use);
    aggregate_free(&a);
    return end;
}

/* ---- threads --------------------------------------------------------------------------------- */

static int compare_tasks(const void *a, const void *b)
{
    const struct task *left = a, *right = b;

    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

struct task *tasks_of_threads(const struct aggregate *a, size_t *count)
{
    uint32_t sources = names_source_count(a->names);
    struct task *tasks = cli_realloc(NULL, sources, sizeof *tasks);
    size_t used = 0, kept = 0;

    for (uint32_t i = 0; i < sources; i++) {
        const struct source_stats *stats = &a->stats[i];
        struct source source;

        if (!a->source_selected[i] || stats->samples == 0)
            continue;
        names_get_source(a->names, i, &source);
        tasks[used++] = (struct task){source.pid,     source.tid,  stats->samples, stats->first_ns,
                                      stats->last_ns, stats->gaps, stats->gap_ns};
    }
    qsort(tasks, used, sizeof *tasks, compare_tasks);
    for (size_t i = 0; i < used; i++) {
        struct task *last = &tasks[kept - (kept > 0)];

        if (kept == 0 || compare_tasks(last, &tasks[i]) != 0) {
            tasks[kept++] = tasks[i];
            continue;
        }
        last->samples += tasks[i].samples;
        last->gaps += tasks[i].gaps;
        last->gap_ns += tasks[i].gap_ns;
        if (tasks[i].first_ns < last->first_ns)
            last->first_ns = tasks[i].first_ns;
        if (tasks[i].last_ns > last->last_ns)
            last->last_ns = tasks[i].last_ns;
    }
    *count = kept;
    return tasks;
}

static void thread_json(struct tool_output *out, const struct spool_thread *t, const char *name,
                        size_t name_size, const struct task *task)
{
    struct json_writer w;

    json_start(&w, out);
    json_begin(&w, '{');
    json_key_u64(&w, "id", t->id);
    json_key_i64(&w, "pid", t->pid);
    json_key_u64(&w, "tid", t->tid);
    key_clean(&w, "name", name, name_size);
    json_key_u64(&w, "samples", task != NULL ? task->samples : 0);
    if (task == NULL) {
        json_key_null(&w, "first_ns");
        json_key_null(&w, "last_ns");
    } else {
        json_key_u64(&w, "first_ns", task->first_ns);
        json_key_u64(&w, "last_ns", task->last_ns);
    }
    json_end(&w, '}');
    output_byte(out, '\n');
}

static void thread_text(struct tool_output *out, const struct spool_thread *t, const char *name,
                        size_t name_size, const struct task *task)
{
    output_printf(out, "%5" PRIu32 " %7" PRId32 " %7" PRIu64, t->id, t->pid, t->tid);
    if (task == NULL)
        output_printf(out, " %9d %20s %20s  ", 0, "-", "-");
    else
        output_printf(out, " %9" PRIu64 " %20" PRIu64 " %20" PRIu64 "  ", task->samples,
                      task->first_ns, task->last_ns);
    print_name(out, name, name_size);
    output_byte(out, '\n');
}

enum input_end threads_print(struct tool_input *in, const struct tool_options *o,
                             const struct view_options *view, struct progress *progress,
                             struct tool_output *out)
{
    const struct aggregate_options options = {
        .per_thread = true, .source_stats = true, .select = &o->select};
    struct spool_counts counts;
    struct aggregate a;
    struct task *tasks = NULL;
    size_t task_count = 0;
    enum input_end end = read_reported(&a, &options, in, o, progress);

    spool_reader_counts(in->reader, &counts);
    if (end != INPUT_FAILED) {
        tasks = tasks_of_threads(&a, &task_count);
        if (!view->json)
            output_text(out, "   id     pid     tid   samples             first_ns"
                             "              last_ns  name\n");
    } else {
        counts.threads = 0;
    }
    for (uint32_t id = 0; id < counts.threads; id++) {
        struct spool_thread t;
        const struct task *task;
        const char *name;
        size_t name_size = 0;

        if (!spool_reader_thread(in->reader, id, &t))
            continue;
        task = bsearch(&(struct task){.pid = t.pid, .tid = t.tid}, tasks, task_count, sizeof *tasks,
                       compare_tasks);
        name = names_of_thread(a.names, t.pid, t.tid, &name_size);
        if (view->json)
            thread_json(out, &t, name, name_size, task);
        else
            thread_text(out, &t, name, name_size, task);
    }
    free(tasks);
    aggregate_free(&a);
    return end;
}
