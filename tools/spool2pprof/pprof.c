/* SPDX-License-Identifier: MIT */
/* The run of spool2pprof: counts from the shared pipeline, merged by labels and stack, and the document's order. */
#include "pprof.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "notes.h"
#include "profile.h"

#define SLOW_VIEWERS_BYTES (UINT64_C(64) << 20)

/* ---- time ---- */

bool profile_wall_ns(const struct spool_reader *reader, uint64_t time_ns, int64_t *wall_ns)
{
    struct spool_wall_time wall;

    if (spool_reader_wall_time(reader, time_ns, &wall) <= 0)
        return false;
    if (__builtin_mul_overflow(wall.seconds, INT64_C(1000000000), wall_ns) ||
        __builtin_add_overflow(*wall_ns, (int64_t)wall.nanoseconds, wall_ns))
        *wall_ns = wall.seconds < 0 ? INT64_MIN : INT64_MAX;
    return true;
}

/* Sums that only describe stay at the end of what their field holds. */
static void add_up(uint64_t *sum, uint64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum) || *sum > INT64_MAX)
        *sum = INT64_MAX;
}

/* ---- what the pipeline reports ---- */

static void take_times(struct profile_facts *f, const struct stacks_input *input)
{
    const struct aggregate *a = input->aggregate;
    int64_t wall_ns;

    if (input->interval_ns > f->interval_ns)
        f->interval_ns = input->interval_ns;
    if (a->samples == 0)
        return;
    add_up(&f->duration_ns, a->last_ns - a->first_ns);
    add_up(&f->duration_ns, input->interval_ns);
    if (input->interval_ns == 0 && !f->without_time)
        f->without_time = input->input->name;
    if (profile_wall_ns(input->reader, a->first_ns, &wall_ns) &&
        (!f->has_wall || wall_ns < f->wall_ns)) {
        f->has_wall = true;
        f->wall_ns = wall_ns;
    }
}

static int take_input(void *user, const struct stacks_input *input)
{
    struct profile *p = user;
    struct profile_facts *f = &p->facts;

    take_times(f, input);
    add_up(&f->lost, input->aggregate->notes.lost);
    f->cut |= spool_reader_cut_tail(input->reader);
    if (input->salvaged) {
        f->damages = cli_realloc(f->damages, f->damage_count + 1, sizeof *f->damages);
        f->damages[f->damage_count++] = input->damage_offset;
    }
    return 0;
}

static void begin_input(void *user, const struct stacks_input *input)
{
    struct profile *p = user;

    mappings_begin(&p->mappings, input);
    if (input->index > 0)
        p->facts.samples_before += p->last_samples;
    p->last_samples = input->aggregate->samples;
    p->has_source = false;
}

static uint32_t frame_label(void *user, const struct out_frame *frame)
{
    struct profile *p = user;

    return locations_label(&p->locations, frame);
}

/* What is known of the source of a cell: cells of one source come behind each other. */
static void take_source(struct profile *p, const struct stacks_cell *cell)
{
    struct source who;

    if (p->has_source && p->source == cell->source)
        return;
    names_get_source(cell->input->aggregate->names, cell->source, &who);
    p->has_source = true;
    p->source = cell->source;
    p->source_pid = who.pid;
    if (!p->pprof->timestamps)
        p->source_set = labelsets_of(&p->labelsets, &who);
}

static void take_cell(void *user, const struct stacks_cell *cell)
{
    struct profile *p = user;
    struct profile_facts *f = &p->facts;
    uint64_t time_ns;

    take_source(p, cell);
    mappings_count(&p->mappings, p->source_pid, cell->samples);
    if (__builtin_mul_overflow(cell->samples, cell->input->interval_ns, &time_ns) ||
        __builtin_add_overflow(f->time_ns, time_ns, &f->time_ns) || f->time_ns > INT64_MAX) {
        f->time_overflow = true;
        f->time_ns = 0;
    }
    if (cell->has & SHAPE_HAS_TRUNCATED)
        f->truncated += cell->samples;
    if (!p->pprof->timestamps)
        cells_add(&p->cells, &(struct profile_cell){.set = p->source_set,
                                                    .node = cell->node,
                                                    .samples = cell->samples,
                                                    .time_ns = time_ns,
                                                    .first = f->samples_before + cell->first});
}

/* ---- the document ---- */

/* The comments as text numbers of the document; malloc'ed. */
struct comments {
    int64_t *items;
    size_t count;
    struct text_buffer text; /* scratch */
};

/* Adds what is in the scratch, once: readers show equal comments once, too. */
static void add_comment(struct profile *p, struct comments *c)
{
    int64_t index =
        stringtable_index(&p->strings, stringtable_text(&p->strings, c->text.data, c->text.size));

    for (size_t i = 0; i < c->count; i++)
        if (c->items[i] == index)
            return;
    c->items = cli_realloc(c->items, c->count + 1, sizeof *c->items);
    c->items[c->count++] = index;
}

static void add_fact(struct profile *p, struct comments *c, const char *before, uint64_t number,
                     const char *after)
{
    c->text.size = 0;
    text_printf(&c->text, "%s%" PRIu64 "%s", before, number, after);
    add_comment(p, c);
}

static void collect_comments(struct profile *p, struct comments *c)
{
    const struct text_list *given = &p->pprof->comments;

    for (size_t i = 0; i < given->count; i++) {
        text_clean(given->items[i], strlen(given->items[i]), &c->text);
        add_comment(p, c);
    }
    if (p->facts.lost > 0)
        add_fact(p, c, "", p->facts.lost, " samples lost while recording");
    if (p->facts.truncated > 0)
        add_fact(p, c, "", p->facts.truncated, " stacks truncated");
    if (p->facts.cut) {
        c->text.size = 0;
        text_printf(&c->text, "capture was cut off");
        add_comment(p, c);
    }
    for (size_t i = 0; i < p->facts.damage_count; i++)
        add_fact(p, c, "salvaged: damage at byte ", p->facts.damages[i], "");
}

static void write_header(struct profile *p)
{
    struct envelope_value_type samples = {.type = stringtable_index_of(&p->strings, "samples")},
                               cpu = {0};
    struct envelope_header header = {0};
    struct comments comments = {0};

    samples.unit = stringtable_index_of(&p->strings, "count");
    header.sample_types[header.sample_type_count++] = samples;
    header.period_type = samples;
    header.period = 1;
    if (p->has_time) {
        cpu.type = stringtable_index_of(&p->strings, "cpu");
        cpu.unit = stringtable_index_of(&p->strings, "nanoseconds");
        header.sample_types[header.sample_type_count++] = cpu;
        header.period_type = cpu;
        header.period =
            p->facts.interval_ns > INT64_MAX ? INT64_MAX : (int64_t)p->facts.interval_ns;
    }
    header.default_sample_type = header.period_type.type;
    if (p->facts.has_wall)
        header.time_ns = p->facts.wall_ns;
    header.duration_ns = (int64_t)p->facts.duration_ns;
    collect_comments(p, &comments);
    header.comments = comments.items;
    header.comment_count = comments.count;
    envelope_header(p->envelope, &header);
    free(comments.items);
    text_free(&comments.text);
}

/* Stacks come in no order of the tree, so their innermost nodes, which few stacks share, are fetched ahead. */
static void fetch_ahead(const struct profile *p, size_t at)
{
    enum { AHEAD = 6, LEVELS = 4 };
    const struct otree_node *nodes = p->stacks.tree.nodes;

    for (size_t level = 0; level < LEVELS; level++) {
        size_t cell = at + (LEVELS - level) * AHEAD;
        uint32_t node;

        if (cell >= p->cells.count)
            continue;
        node = p->cells.items[cell].node;
        for (size_t i = 0; i < level; i++)
            node = nodes[node].parent;
        __builtin_prefetch(&nodes[node]);
    }
}

static void write_samples(struct profile *p)
{
    cells_merge(&p->cells);
    for (size_t i = 0; i < p->cells.count && !output_failed(p->out); i++) {
        const struct profile_cell *cell = &p->cells.items[i];
        const int64_t values[2] = {(int64_t)cell->samples, (int64_t)cell->time_ns};
        const char *labels;
        size_t count, size;

        fetch_ahead(p, i);
        count = locations_of_stack(&p->locations, &p->stacks.tree, cell->node);
        labels = labelsets_packed(&p->labelsets, cell->set, &size);
        envelope_sample(p->envelope, p->locations.ids, count, values, p->has_time ? 2 : 1, labels,
                        size);
    }
}

static void write_strings(struct profile *p)
{
    for (uint32_t i = 0; i < p->strings.count; i++) {
        size_t size;
        const char *text = stringtable_get(&p->strings, i, &size);

        envelope_string(p->envelope, text, size);
    }
}

/* 0, or -1 after an error message. */
static int write_document(struct profile *p)
{
    int rc = 0;

    p->envelope = envelope_new(p->out, p->pprof->gzip_level);
    if (!p->envelope)
        return -1;
    write_header(p);
    if (p->pprof->timestamps)
        rc = profile_write_events(p);
    else
        write_samples(p);
    if (rc < 0)
        return -1;
    locations_write(&p->locations, p->envelope);
    write_strings(p);
    return envelope_finish(p->envelope);
}

/* Whether samples have a time. 0, or -1 after an error message. */
static int decide_time(struct profile *p)
{
    const struct profile_facts *f = &p->facts;

    p->has_time = f->interval_ns > 0 && !f->without_time;
    if (f->without_time)
        cli_warn("%s: states no sample interval, so samples have no time", f->without_time);
    if (!p->has_time || !f->time_overflow)
        return 0;
    cli_error("the sum of sample times exceeds 2^63-1 ns");
    return -1;
}

static void print_report(struct profile *p)
{
    stacks_print_report(&p->stacks);
    if (!p->options->verbose)
        return;
    if (p->pprof->unsymbolized)
        cli_report("names of the kernel and of perf maps are left out (--unsymbolized)");
    if (output_bytes(p->out) > SLOW_VIEWERS_BYTES)
        cli_report("%s: %.1f MiB, which viewers will be slow to open", p->out->name,
                   (double)output_bytes(p->out) / (1 << 20));
}

static void free_profile(struct profile *p)
{
    envelope_free(p->envelope);
    stacks_free(&p->stacks);
    cells_free(&p->cells);
    labelsets_free(&p->labelsets);
    locations_free(&p->locations);
    mappings_free(&p->mappings);
    stringtable_free(&p->strings);
    free(p->facts.damages);
}

int pprof_convert(const struct tool_options *options, const struct pprof_options *pprof,
                  struct tool_output *out)
{
    struct profile p = {.options = options, .pprof = pprof, .out = out};
    struct stacks_hooks hooks = {.user = &p,
                                 .input = take_input,
                                 .begin = begin_input,
                                 .label = frame_label,
                                 .cell = take_cell};
    struct stacks_options how = {.per_thread = (pprof->labels & (LABEL_TID | LABEL_THREAD)) != 0,
                                 .order = true,
                                 .runs = pprof->timestamps ? AGGREGATE_EVENTS : AGGREGATE_NO_RUNS};
    int rc;

    stringtable_init(&p.strings);
    mappings_init(&p.mappings, &p.strings, &options->shape.trim_paths);
    locations_init(&p.locations, &p.strings, &p.mappings);
    p.locations.one_line = pprof->inline_locations;
    p.locations.unsymbolized = pprof->unsymbolized;
    p.locations.no_inlines = options->shape.no_inlines;
    labelsets_init(&p.labelsets, pprof->labels, &p.strings);
    rc = stacks_init(&p.stacks, options, &hooks, &how);
    if (rc == 0)
        rc = stacks_run(&p.stacks);
    if (rc == 0)
        rc = decide_time(&p);
    if (rc == 0)
        rc = write_document(&p);
    if (rc == 0)
        print_report(&p);
    free_profile(&p);
    return rc;
}
