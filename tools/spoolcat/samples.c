/* SPDX-License-Identifier: MIT */
/*
 * Samples in file order, each as soon as it was read, with what is known at that point. Only definitions are kept. The
 * shaping code goes source by source, but here processes take turns: the answers of late are kept in a small table, so
 * that it is asked only for what is new.
 */
#include "samples.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aggregate.h"
#include "cli.h"
#include "frame_print.h"
#include "json.h"
#include "select.h"
#include "shape.h"
#include "tables.h"

/* 3 MiB of answers, each at the one place that its key has. */
#define ANSWER_COUNT (1u << 17)

struct answer {
    uint32_t generation; /* of struct view; 0: free */
    int32_t pid;
    uint32_t stack;
    uint32_t state; /* kernel epoch and Python state of the process */
    uint32_t node;
    uint32_t has; /* SHAPE_*, or: */
};
#define DESELECTED UINT32_MAX

/* What stands at the head of the samples of a source. */
struct head {
    uint32_t generation; /* of names; 0: not made yet */
    uint32_t text;
    bool selected;
    struct source source;
};

struct view {
    const struct tool_options *options;
    const struct view_options *how;
    struct tool_output *out;
    struct spool_reader *reader;
    struct aggregate aggregate;
    struct symbols *symbols;
    struct otree tree;
    struct frame_names names;
    struct shaper shaper;
    struct input_report report; /* nobody reads it */
    struct frame_print print;
    bool old_version; /* it has a timeline */

    struct answer *answers;
    uint32_t generation;  /* of answers */
    struct source shaped; /* the shaper's */
    bool any_shaped;

    struct labels head_texts;
    struct head *heads; /* by source */
    size_t head_capacity;
    uint32_t name_generation;
    struct text_buffer line, clean; /* scratch */
};

/* ---- heads ----------------------------------------------------------------------------------- */

static void write_name(struct view *v, const char *name, size_t size)
{
    if (name == NULL) {
        text_printf(&v->line, v->how->json ? "null" : "-");
        return;
    }
    if (!v->how->json) {
        text_append_clean(&v->line, name, size);
        return;
    }
    text_clean(name, size, &v->clean);
    json_append_text(&v->line, v->clean.data, v->clean.size);
}

/* "app 7/9 ", or the keys from pid to stack. */
static void write_head(struct view *v, const struct source *s)
{
    v->line.size = 0;
    if (!v->how->json) {
        write_name(v, s->comm, s->comm_size);
        text_printf(&v->line, " %" PRId32 "/%" PRIu64 " ", s->pid, s->tid);
        return;
    }
    text_printf(&v->line, ",\"pid\":%" PRId32 ",\"tid\":%" PRIu64 ",\"comm\":", s->pid, s->tid);
    write_name(v, s->comm, s->comm_size);
    text_printf(&v->line, ",\"thread\":");
    write_name(v, s->thread, s->thread_size);
    text_printf(&v->line, ",\"stack\":");
}

static const struct head *find_head(struct view *v, uint32_t source)
{
    struct head *head;

    v->heads = cli_grow_zeroed(v->heads, &v->head_capacity, source, sizeof *v->heads);
    head = &v->heads[source];
    if (head->generation == v->name_generation)
        return head;
    head->generation = v->name_generation;
    names_get_source(v->aggregate.names, source, &head->source);
    head->selected = !select_asks_names(&v->options->select) ||
                     select_source(&v->options->select, &head->source);
    write_head(v, &head->source);
    head->text = labels_intern(&v->head_texts, v->line.data, v->line.size);
    return head;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Other names are known than those that answers were made of. */
static void forget(struct view *v)
{
    shape_forget(&v->shaper);
    v->any_shaped = false;
    if (++v->generation == 0) {
        memset(v->answers, 0, ANSWER_COUNT * sizeof *v->answers);
        v->generation = 1;
    }
}

static struct answer *find_answer(const struct view *v, int32_t pid, uint32_t stack, uint32_t state)
{
    uint64_t key = ((uint64_t)stack << 32 | (uint32_t)pid) * UINT64_C(0x9e3779b97f4a7c15);

    key = (key ^ state) * UINT64_C(0xd6e8feb86659fd93);
    return &v->answers[(key >> 32) % ANSWER_COUNT];
}

/* Shapes a stack anew. As shape_stack. */
static int shape(struct view *v, const struct source *s, uint32_t stack, uint32_t *node,
                 uint32_t *has)
{
    struct spool_counts counts;

    spool_reader_counts(v->reader, &counts);
    shape_extend(&v->shaper, &counts, spool_reader_stack_nodes(v->reader));
    for (;;) {
        uint32_t names = symbols_generation(v->symbols);
        bool other_process =
            !v->any_shaped || v->shaped.pid != s->pid || v->shaped.python != s->python;
        int rc;

        if (other_process || v->shaped.kernel_epoch != s->kernel_epoch)
            shape_source(&v->shaper, s, OTREE_ROOT, other_process);
        v->shaped = *s;
        v->any_shaped = true;
        rc = shape_stack(&v->shaper, stack, node, has);
        if (rc < 0 || names == symbols_generation(v->symbols))
            return rc;
        forget(v); /* a frame of it made more known than those before had */
    }
}

/* The output stack of a sample: 1, 0 when it is deselected, -1 after an error message. */
static int find_stack(struct view *v, const struct source *s, uint32_t stack, uint32_t *node,
                      uint32_t *has)
{
    uint32_t state = s->kernel_epoch << 1 | s->python;
    struct answer *answer = find_answer(v, s->pid, stack, state);

    if (answer->generation != v->generation || answer->pid != s->pid || answer->stack != stack ||
        answer->state != state) {
        int rc = shape(v, s, stack, node, has);

        if (rc < 0)
            return -1;
        *answer = (struct answer){.generation = v->generation,
                                  .pid = s->pid,
                                  .stack = stack,
                                  .state = state,
                                  .node = rc > 0 ? *node : 0,
                                  .has = rc > 0 ? *has : DESELECTED};
    }
    *node = answer->node;
    *has = answer->has;
    return answer->has != DESELECTED;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Nanoseconds since 1970 of any size. */
static void print_wall_time(struct view *v, uint64_t time_ns)
{
    struct spool_wall_time wall;
    uint64_t seconds;
    uint32_t rest;

    if (spool_reader_wall_time(v->reader, time_ns, &wall) <= 0) {
        output_text(v->out, "null");
        return;
    }
    seconds = (uint64_t)wall.seconds;
    rest = wall.nanoseconds;
    if (wall.seconds < 0) { /* nanoseconds count upwards from seconds */
        output_byte(v->out, '-');
        seconds = 0 - seconds - (rest > 0);
        rest = rest > 0 ? 1000000000 - rest : 0;
    }
    if (seconds > 0)
        output_printf(v->out, "%" PRIu64 "%09" PRIu32, seconds, rest);
    else
        output_u64(v->out, rest);
}

static void print_times(struct view *v, uint64_t time_ns)
{
    output_text(v->out, "{\"ts\":");
    output_u64(v->out, time_ns);
    output_text(v->out, ",\"us\":");
    if (v->old_version)
        output_u64(v->out, spool_reader_timeline_us(v->reader, time_ns));
    else
        output_text(v->out, "null");
    output_text(v->out, ",\"wall_ns\":");
    print_wall_time(v, time_ns);
}

/* "12.000345678:" */
static void print_seconds(struct view *v, uint64_t time_ns)
{
    char digits[10] = "000000000:";
    uint64_t rest = time_ns % 1000000000;

    for (size_t i = 9; rest > 0; rest /= 10)
        digits[--i] = (char)('0' + rest % 10);
    output_u64(v->out, time_ns / 1000000000);
    output_byte(v->out, '.');
    output_write(v->out, digits, sizeof digits);
}

static void print_json(struct view *v, const struct spool_sample *sample, const char *head,
                       size_t head_size, uint32_t node, bool python)
{
    print_times(v, sample->time_ns);
    output_write(v->out, head, head_size);
    output_u64(v->out, sample->stack);
    output_text(v->out, ",\"frames\":[");
    frame_print_stack(&v->print, v->out, &v->tree, node, python);
    output_text(v->out, "]}\n");
}

static void print_text(struct view *v, const struct spool_sample *sample, const char *head,
                       size_t head_size, uint32_t node, bool python)
{
    if (v->how->color)
        output_text(v->out, VIEW_COLOR_HEAD);
    output_write(v->out, head, head_size);
    print_seconds(v, sample->time_ns);
    if (v->how->color)
        output_text(v->out, VIEW_COLOR_END);
    output_byte(v->out, '\n');
    frame_print_stack(&v->print, v->out, &v->tree, node, python);
    output_byte(v->out, '\n');
}

/* 0, or -1 after an error message. */
static int take_sample(struct view *v, const struct spool_sample *sample)
{
    const struct head *head;
    const char *text;
    size_t size;
    uint32_t node, has;
    int rc;

    if (!aggregate_sees(&v->aggregate, sample))
        return 0;
    head = find_head(v, names_source(v->aggregate.names, sample));
    if (!head->selected)
        return 0;
    rc = find_stack(v, &head->source, sample->stack, &node, &has);
    if (rc <= 0)
        return rc;
    text = labels_text(&v->head_texts, head->text, &size);
    if (v->how->json)
        print_json(v, sample, text, size, node, has & SHAPE_HAS_PYTHON);
    else
        print_text(v, sample, text, size, node, has & SHAPE_HAS_PYTHON);
    return 0;
}

static int take_record(struct view *v, const struct spool_record *record)
{
    bool marks = names_has_python_marks(v->aggregate.names);

    if (record->type == SPOOL_RECORD_SAMPLE)
        return take_sample(v, &record->sample);
    if (record->type == SPOOL_RECORD_FRAME || record->type == SPOOL_RECORD_STACK)
        return 0;
    aggregate_record(&v->aggregate, v->reader, record);
    if (record->type != SPOOL_RECORD_THREAD)
        v->name_generation++;
    /* From the first mark on, names of Python count in marked processes only. */
    if (marks != names_has_python_marks(v->aggregate.names))
        forget(v);
    return 0;
}

/* ---- the view -------------------------------------------------------------------------------- */

static void begin(struct view *v, const struct tool_input *in)
{
    const struct aggregate_options options = {.per_thread = true,
                                              .epochs = symbols_of_kernel(&v->options->symbols),
                                              .select = &v->options->select};
    struct spool_counts counts;

    aggregate_begin(&v->aggregate, &options, v->reader);
    v->old_version = spool_reader_header(v->reader)->version < 4;
    otree_init(&v->tree);
    labels_init(&v->head_texts);
    frame_print_init(&v->print, v->how->json, v->options);
    v->answers = cli_zeroed(ANSWER_COUNT, sizeof *v->answers);
    v->generation = v->name_generation = 1;
    v->symbols = v->how->symbols;
    symbols_begin_early(v->symbols, in, &v->aggregate);
    v->shaper = (struct shaper){.options = &v->options->shape,
                                .hooks = {.user = &v->print, .label = frame_print_label},
                                .tree = &v->tree,
                                .symbols = v->symbols,
                                .names = &v->names,
                                .report = &v->report,
                                .nodes = spool_reader_stack_nodes(v->reader)};
    spool_reader_counts(v->reader, &counts);
    shape_init(&v->shaper, &counts);
}

static void end_view(struct view *v)
{
    shape_free(&v->shaper);
    frame_print_free(&v->print);
    frame_names_free(&v->names);
    otree_free(&v->tree);
    labels_free(&v->head_texts);
    text_free(&v->line);
    text_free(&v->clean);
    free(v->heads);
    free(v->answers);
    aggregate_free(&v->aggregate);
}

enum input_end samples_print(struct tool_input *in, const struct tool_options *o,
                             const struct view_options *how, struct progress *progress,
                             struct tool_output *out)
{
    struct view v = {.options = o, .how = how, .out = out, .reader = in->reader};
    enum input_end end = INPUT_FAILED;
    struct spool_record record;
    int rc = 1;

    begin(&v, in);
    while (!output_failed(out) && (rc = inputs_next(in, &record)) > 0) {
        if (take_record(&v, &record) != 0)
            break;
        progress_tick(progress, v.aggregate.file_samples);
    }
    if (rc <= 0)
        end = inputs_finish(in, rc, o);
    if (end != INPUT_FAILED)
        report_view(o, in, v.aggregate.file_low_ns, v.aggregate.file_high_ns);
    end_view(&v);
    return end;
}
