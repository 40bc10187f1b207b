/* SPDX-License-Identifier: MIT */
/*
 * Counting (source, stack) pairs in one pass. A stack nearly always has one source, so the count lies in an array by
 * stack, and only further sources of a stack go to a hash.
 */
#include "aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "select.h"

struct stack_slot {
    uint32_t source;
    uint32_t count; /* 0: free */
};

/* A pause of more than so many intervals between two samples of a thread is a gap. */
#define GAP_INTERVALS 10

/* ---- the hash of further sources ---- */

static struct cell *other_slot(struct cell *cells, size_t capacity, uint32_t source,
                               uint32_t stack)
{
    uint64_t key = ((uint64_t)source << 32 | stack) * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(key >> 20) & (capacity - 1);

    while (cells[i].count && (cells[i].source != source || cells[i].stack != stack))
        i = (i + 1) & (capacity - 1);
    return &cells[i];
}

static void grow_others(struct aggregate *a)
{
    size_t capacity = a->other_capacity ? a->other_capacity * 2 : 1024;
    struct cell *cells = cli_realloc(NULL, capacity, sizeof *cells);

    memset(cells, 0, capacity * sizeof *cells);
    for (size_t i = 0; i < a->other_capacity; i++)
        if (a->others[i].count)
            *other_slot(cells, capacity, a->others[i].source, a->others[i].stack) = a->others[i];
    free(a->others);
    a->others = cells;
    a->other_capacity = capacity;
}

static void add_other(struct aggregate *a, uint32_t source, uint32_t stack, uint64_t count)
{
    struct cell *c;

    if (a->other_count * 3 >= a->other_capacity * 2)
        grow_others(a);
    c = other_slot(a->others, a->other_capacity, source, stack);
    if (c->count == 0) {
        c->source = source;
        c->stack = stack;
        a->other_count++;
    }
    c->count += count;
}

/* ---- counting ---- */

static void grow_slots(struct aggregate *a, uint32_t stack)
{
    size_t capacity = a->slot_capacity ? a->slot_capacity + a->slot_capacity / 2 : 4096;

    if (capacity <= stack)
        capacity = (size_t)stack + 1;
    a->slots = cli_realloc(a->slots, capacity, sizeof *a->slots);
    memset(a->slots + a->slot_capacity, 0, (capacity - a->slot_capacity) * sizeof *a->slots);
    a->slot_capacity = capacity;
}

static void grow_stats(struct aggregate *a, uint32_t source)
{
    size_t capacity = a->stats_capacity ? a->stats_capacity * 2 : 64;

    if (capacity <= source)
        capacity = (size_t)source + 1;
    a->stats = cli_realloc(a->stats, capacity, sizeof *a->stats);
    memset(a->stats + a->stats_capacity, 0, (capacity - a->stats_capacity) * sizeof *a->stats);
    a->stats_capacity = capacity;
}

static void count_stack(struct aggregate *a, uint32_t source, uint32_t stack)
{
    struct stack_slot *slot;

    if (stack >= a->slot_capacity)
        grow_slots(a, stack);
    slot = &a->slots[stack];
    if (slot->count == 0) {
        slot->source = source;
        slot->count = 1;
    } else if (slot->source == source && slot->count < UINT32_MAX) {
        slot->count++;
    } else {
        add_other(a, source, stack, 1);
    }
}

static void update_stats(struct aggregate *a, uint32_t source, uint64_t time_ns,
                         uint64_t interval_ns)
{
    struct source_stats *s = &a->stats[source];

    if (s->samples == 1) {
        s->first_ns = s->last_ns = s->previous_ns = time_ns;
        return;
    }
    if (time_ns < s->first_ns)
        s->first_ns = time_ns;
    if (time_ns > s->last_ns)
        s->last_ns = time_ns;
    if (time_ns <= s->previous_ns)
        return;
    if (interval_ns > 0 && (time_ns - s->previous_ns) / GAP_INTERVALS >= interval_ns &&
        time_ns - s->previous_ns > interval_ns * GAP_INTERVALS) {
        s->gaps++;
        s->gap_ns += time_ns - s->previous_ns;
    }
    s->previous_ns = time_ns;
}

static void take_sample(struct aggregate *a, const struct spool_sample *sample,
                        uint64_t interval_ns)
{
    uint32_t source = names_source(a->names, sample);

    if (source >= a->stats_capacity)
        grow_stats(a, source);
    a->stats[source].samples++;
    if (a->options.source_stats)
        update_stats(a, source, sample->time_ns, interval_ns);
    if (a->options.runs)
        runs_add(a->runs, source, sample->time_ns, sample->stack);
    count_stack(a, source, sample->stack);
}

int aggregate_read(struct aggregate *a, const struct aggregate_options *options,
                   struct tool_input *in, struct progress *progress)
{
    const struct select_options *select = options->select;
    bool everything = !select || select_everything(select);
    bool by_time = !everything && (select->has_from || select->has_to);
    bool by_id = !everything && (select->has_pids || select->has_tids);
    uint64_t interval_ns = spool_reader_header(in->reader)->interval_ns;
    struct spool_reader *reader = in->reader;
    struct spool_counts counts;
    struct spool_record rec;
    int rc;

    memset(a, 0, sizeof *a);
    a->options = *options;
    a->names = names_new(options->per_thread);
    if (options->runs)
        a->runs = runs_new();
    while ((rc = spool_reader_next(reader, &rec)) > 0) {
        if (rec.type != SPOOL_RECORD_SAMPLE) {
            names_record(a->names, &rec);
            if (rec.type == SPOOL_RECORD_ANNOTATION)
                notes_record(&a->notes, &rec.annotation);
            continue;
        }
        if (progress)
            progress_tick(progress, rec.sample.index + 1);
        if (rec.sample.index == 0)
            a->file_first_ns = a->file_low_ns = a->file_high_ns = rec.sample.time_ns;
        if (rec.sample.time_ns < a->file_low_ns)
            a->file_low_ns = rec.sample.time_ns;
        if (rec.sample.time_ns > a->file_high_ns)
            a->file_high_ns = rec.sample.time_ns;
        if (by_id && !select_ids(select, rec.sample.pid, rec.sample.tid))
            continue;
        if (by_time && !select_time(select, a->file_first_ns, rec.sample.time_ns))
            continue;
        take_sample(a, &rec.sample, interval_ns);
        a->samples++;
        if (everything)
            continue;
        if (!a->has_time || rec.sample.time_ns < a->first_ns)
            a->first_ns = rec.sample.time_ns;
        if (!a->has_time || rec.sample.time_ns > a->last_ns)
            a->last_ns = rec.sample.time_ns;
        a->has_time = true;
    }
    spool_reader_counts(reader, &counts);
    a->file_samples = counts.samples;
    if (everything) {
        a->has_time = counts.samples > 0;
        a->first_ns = a->file_low_ns;
        a->last_ns = a->file_high_ns;
    }
    notes_finish(&a->notes);
    return rc;
}

/* ---- the result ---- */

static void choose_sources(struct aggregate *a)
{
    uint32_t count = names_source_count(a->names);
    const struct select_options *select = a->options.select;

    a->source_selected = cli_realloc(NULL, count ? count : 1, sizeof *a->source_selected);
    for (uint32_t i = 0; i < count; i++) {
        struct source s;

        a->source_selected[i] = true;
        if (!select || (select->comm_globs.count == 0 && select->thread_globs.count == 0))
            continue;
        names_get_source(a->names, i, &s);
        a->source_selected[i] = select_names(select, s.comm, s.thread);
        if (!a->source_selected[i])
            a->samples -= a->stats[i].samples;
    }
}

static bool slot_counts(const struct aggregate *a, size_t stack)
{
    return a->slots[stack].count > 0 && a->source_selected[a->slots[stack].source];
}

static bool other_counts(const struct aggregate *a, size_t i)
{
    return a->others[i].count > 0 && a->source_selected[a->others[i].source];
}

static int compare_stacks(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;

    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Distributes the counts to their sources. Slots come by ascending stack; what the hash adds behind them is sorted in,
 * and a count that was continued in the hash is added up. */
static void make_cells(struct aggregate *a)
{
    uint32_t source_count = names_source_count(a->names);
    size_t *next = cli_realloc(NULL, (size_t)source_count + 1, sizeof *next), total = 0, kept = 0;

    memset(next, 0, ((size_t)source_count + 1) * sizeof *next);
    for (size_t i = 0; i < a->slot_capacity; i++)
        if (slot_counts(a, i))
            next[a->slots[i].source + 1]++;
    for (size_t i = 0; i < a->other_capacity; i++)
        if (other_counts(a, i))
            next[a->others[i].source + 1]++;
    for (uint32_t i = 0; i < source_count; i++)
        next[i + 1] += next[i];
    total = next[source_count];
    a->cells = cli_realloc(NULL, total ? total : 1, sizeof *a->cells);
    for (size_t i = 0; i < a->slot_capacity; i++)
        if (slot_counts(a, i))
            a->cells[next[a->slots[i].source]++] = (struct cell){
                .source = a->slots[i].source, .stack = (uint32_t)i, .count = a->slots[i].count};
    free(a->slots);
    a->slots = NULL;
    a->slot_capacity = 0;
    for (size_t i = 0; i < a->other_capacity; i++)
        if (other_counts(a, i))
            a->cells[next[a->others[i].source]++] = a->others[i];
    free(a->others);
    a->others = NULL;
    /* next[i] is now the end of source i. */
    for (uint32_t i = 0; i < source_count && a->other_count > 0; i++) {
        size_t begin = i ? next[i - 1] : 0;

        if (next[i] - begin > 1)
            qsort(&a->cells[begin], next[i] - begin, sizeof *a->cells, compare_stacks);
    }
    for (size_t i = 0; i < total; i++) {
        if (kept > 0 && a->cells[kept - 1].source == a->cells[i].source &&
            a->cells[kept - 1].stack == a->cells[i].stack)
            a->cells[kept - 1].count += a->cells[i].count;
        else
            a->cells[kept++] = a->cells[i];
    }
    a->cell_count = kept;
    a->other_count = a->other_capacity = 0;
    free(next);
}

int aggregate_finish(struct aggregate *a)
{
    choose_sources(a);
    make_cells(a);
    return a->runs ? runs_finish(a->runs) : 0;
}

void aggregate_free(struct aggregate *a)
{
    names_free(a->names);
    notes_free(&a->notes);
    runs_free(a->runs);
    free(a->stats);
    free(a->source_selected);
    free(a->cells);
    free(a->slots);
    free(a->others);
    memset(a, 0, sizeof *a);
}
