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

static size_t other_home(const struct aggregate *a, size_t capacity, uint32_t source,
                         uint32_t stack)
{
    return (size_t)spread_number(&a->spread, (uint64_t)source << 32 | stack) & (capacity - 1);
}

static struct cell *other_slot(const struct aggregate *a, struct cell *cells, size_t capacity,
                               uint32_t source, uint32_t stack)
{
    size_t i = other_home(a, capacity, source, stack);

    while (cells[i].count && (cells[i].source != source || cells[i].stack != stack))
        i = (i + 1) & (capacity - 1);
    return &cells[i];
}

/* Makes room for so many more cells. */
static void reserve_others(struct aggregate *a, size_t more)
{
    size_t capacity = a->other_capacity ? a->other_capacity : 1024;
    struct cell *cells;

    while ((a->other_count + more) * 3 >= capacity * 2)
        capacity *= 2;
    if (capacity == a->other_capacity)
        return;
    cells = cli_zeroed(capacity, sizeof *cells);
    for (size_t i = 0; i < a->other_capacity; i++)
        if (a->others[i].count)
            *other_slot(a, cells, capacity, a->others[i].source, a->others[i].stack) = a->others[i];
    free(a->others);
    a->others = cells;
    a->other_capacity = capacity;
}

static void add_other(struct aggregate *a, const struct pending_sample *p)
{
    struct cell *c = other_slot(a, a->others, a->other_capacity, p->source, p->stack);

    if (c->count++ == 0) {
        c->source = p->source;
        c->stack = p->stack;
        c->first = p->index;
        a->other_count++;
    }
}

/* ---- counting ---- */

static void grow_slots(struct aggregate *a, uint32_t stack)
{
    size_t capacity = a->slot_capacity ? a->slot_capacity + a->slot_capacity / 2 : 4096;

    if (capacity <= stack)
        capacity = (size_t)stack + 1;
    a->slots = cli_extend(a->slots, a->slot_capacity, capacity, sizeof *a->slots);
    if (a->options.order)
        a->slot_first = cli_realloc(a->slot_first, capacity, sizeof *a->slot_first);
    a->slot_capacity = capacity;
}

/* Counts the samples put aside. Their slots lie all over the memory: asked for together, they arrive together. */
static void count_pending(struct aggregate *a)
{
    struct pending_sample others[PENDING_SAMPLES];
    size_t other_count = 0;

    for (size_t i = 0; i < a->pending_count; i++) {
        if (a->pending[i].stack >= a->slot_capacity)
            grow_slots(a, a->pending[i].stack);
        __builtin_prefetch(&a->slots[a->pending[i].stack], 1);
    }
    for (size_t i = 0; i < a->pending_count; i++) {
        const struct pending_sample *p = &a->pending[i];
        struct stack_slot *slot = &a->slots[p->stack];

        if (slot->count == 0) {
            *slot = (struct stack_slot){.source = p->source, .count = 1};
            if (a->slot_first)
                a->slot_first[p->stack] = p->index;
        } else if (slot->source == p->source && slot->count < UINT32_MAX) {
            slot->count++;
        } else {
            others[other_count++] = *p;
        }
    }
    a->pending_count = 0;
    if (other_count == 0)
        return;
    reserve_others(a, other_count);
    for (size_t i = 0; i < other_count; i++)
        __builtin_prefetch(
            &a->others[other_home(a, a->other_capacity, others[i].source, others[i].stack)], 1);
    for (size_t i = 0; i < other_count; i++)
        add_other(a, &others[i]);
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

    a->stats = cli_grow_zeroed(a->stats, &a->stats_capacity, source, sizeof *a->stats);
    a->stats[source].samples++;
    if (a->options.source_stats)
        update_stats(a, source, sample->time_ns, interval_ns);
    if (a->options.runs)
        runs_add(a->runs,
                 a->options.runs == AGGREGATE_EVENTS ? 0 : names_thread(a->names, sample->thread),
                 source, sample->time_ns, sample->stack);
    a->pending[a->pending_count++] =
        (struct pending_sample){.source = source, .stack = sample->stack, .index = a->samples};
    if (a->pending_count == PENDING_SAMPLES)
        count_pending(a);
}

static bool by_names(const struct select_options *select)
{
    return select && select_asks_names(select);
}

static void take_annotation(struct aggregate *a, const struct spool_reader *reader,
                            const struct spool_annotation *annotation)
{
    notes_record(&a->notes, annotation);
    if (a->options.epochs && annotation->key == SPOOL_NOTE_KSYMBOL &&
        epochs_record(&a->epochs, reader, annotation))
        names_begin_epoch(a->names, a->epochs.now);
}

/* Names and stacks deselect samples at the end only. */
static struct run_store *make_runs(enum aggregate_runs kind, uint64_t interval_ns, bool some_may_go)
{
    if (kind == AGGREGATE_EVENTS)
        return runs_new(RUNS_NEVER, 0, false);
    if (kind == AGGREGATE_TIMED_RUNS && interval_ns > 0)
        return runs_new(RUNS_WITHOUT_GAP, interval_ns, some_may_go);
    return runs_new(RUNS_ADJACENT, 0, false);
}

void aggregate_begin(struct aggregate *a, const struct aggregate_options *options,
                     const struct spool_reader *reader)
{
    const struct select_options *select = options->select;

    memset(a, 0, sizeof *a);
    a->options = *options;
    a->spread = spread_new();
    /* Names deselect whole sources at the end: first and last time must be known of each then. */
    a->options.source_stats |= by_names(select);
    a->everything = !select || select_everything(select);
    a->by_time = !a->everything && (select->has_from || select->has_to);
    a->by_id = !a->everything && (select->has_pids || select->has_tids);
    a->interval_ns = spool_reader_header(reader)->interval_ns;
    a->names = names_new(options->per_thread);
    if (options->runs)
        a->runs =
            make_runs(options->runs, a->interval_ns, by_names(select) || options->stacks_may_go);
    if (options->runs && options->run_bytes)
        runs_share_memory(a->runs, options->run_bytes);
}

void aggregate_record(struct aggregate *a, const struct spool_reader *reader,
                      const struct spool_record *rec)
{
    names_record(a->names, rec);
    if (rec->type == SPOOL_RECORD_ANNOTATION)
        take_annotation(a, reader, &rec->annotation);
}

/* Takes the time of a sample in; false when ids or time deselect it. */
static inline bool see_sample(struct aggregate *a, const struct spool_sample *sample)
{
    if (sample->index == 0)
        a->file_first_ns = a->file_low_ns = a->file_high_ns = sample->time_ns;
    if (sample->time_ns < a->file_low_ns)
        a->file_low_ns = sample->time_ns;
    if (sample->time_ns > a->file_high_ns)
        a->file_high_ns = sample->time_ns;
    if (a->by_id && !select_ids(a->options.select, sample->pid, sample->tid))
        return false;
    return !a->by_time || select_time(a->options.select, a->file_first_ns, sample->time_ns);
}

bool aggregate_sees(struct aggregate *a, const struct spool_sample *sample)
{
    a->file_samples = sample->index + 1;
    return see_sample(a, sample);
}

int aggregate_read(struct aggregate *a, const struct aggregate_options *options,
                   struct tool_input *in, struct progress *progress)
{
    struct spool_reader *reader = in->reader;
    struct spool_counts counts;
    struct spool_record rec;
    int rc;

    aggregate_begin(a, options, reader);
    while ((rc = inputs_next(in, &rec)) > 0) {
        if (rec.type != SPOOL_RECORD_SAMPLE) {
            aggregate_record(a, reader, &rec);
            continue;
        }
        if (progress)
            progress_tick(progress, rec.sample.index + 1);
        if (!see_sample(a, &rec.sample))
            continue;
        take_sample(a, &rec.sample, a->interval_ns);
        a->samples++;
        if (a->everything)
            continue;
        if (!a->has_time || rec.sample.time_ns < a->first_ns)
            a->first_ns = rec.sample.time_ns;
        if (!a->has_time || rec.sample.time_ns > a->last_ns)
            a->last_ns = rec.sample.time_ns;
        a->has_time = true;
    }
    count_pending(a);
    spool_reader_counts(reader, &counts);
    a->file_samples = counts.samples;
    if (a->everything) {
        a->has_time = counts.samples > 0;
        a->first_ns = a->file_low_ns;
        a->last_ns = a->file_high_ns;
    }
    notes_finish(&a->notes);
    epochs_finish(&a->epochs);
    return rc;
}

/* ---- the result ---- */

static void choose_sources(struct aggregate *a)
{
    uint32_t count = names_source_count(a->names);
    bool all = !by_names(a->options.select);

    a->source_selected = cli_realloc(NULL, count ? count : 1, sizeof *a->source_selected);
    if (!all) {
        a->samples = 0;
        a->has_time = false;
        a->first_ns = UINT64_MAX;
        a->last_ns = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct source_stats *stats = &a->stats[i];
        struct source s;

        a->source_selected[i] = true;
        if (all)
            continue;
        names_get_source(a->names, i, &s);
        a->source_selected[i] = select_source(a->options.select, &s);
        if (!a->source_selected[i])
            continue;
        a->samples += stats->samples;
        a->has_time = true;
        if (stats->first_ns < a->first_ns)
            a->first_ns = stats->first_ns;
        if (stats->last_ns > a->last_ns)
            a->last_ns = stats->last_ns;
    }
}

static bool slot_counts(const struct aggregate *a, size_t stack)
{
    return a->slots[stack].count > 0 && a->source_selected[a->slots[stack].source];
}

#define RADIX_BITS 11

/* Sorts by stack, 11 bits at a time; *spare is room for as many cells. The result may be in either. */
static struct cell *sort_by_stack(struct cell *cells, struct cell *spare, size_t count)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < count; i++)
        if (cells[i].stack > largest)
            largest = cells[i].stack;
    for (unsigned shift = 0; shift < 32 && largest >> shift > 0; shift += RADIX_BITS) {
        size_t next[1 << RADIX_BITS] = {0}, sum = 0;
        struct cell *swap = cells;

        for (size_t i = 0; i < count; i++)
            next[cells[i].stack >> shift & ((1 << RADIX_BITS) - 1)]++;
        for (size_t i = 0; i < 1 << RADIX_BITS; i++) {
            size_t n = next[i];

            next[i] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++)
            spare[next[cells[i].stack >> shift & ((1 << RADIX_BITS) - 1)]++] = cells[i];
        cells = spare;
        spare = swap;
    }
    return cells;
}

/* Takes the cells that count out of the hash, by ascending stack: what looks them up goes through the stacks in the
 * order of memory then. */
static struct cell *list_others(struct aggregate *a, size_t *count)
{
    struct cell *spare, *sorted;
    size_t n = 0;

    for (size_t i = 0; i < a->other_capacity; i++)
        if (a->others[i].count > 0 && a->source_selected[a->others[i].source])
            a->others[n++] = a->others[i];
    *count = n;
    if (n == 0)
        return NULL;
    spare = cli_realloc(NULL, n, sizeof *spare);
    sorted = sort_by_stack(a->others, spare, n);
    free(sorted == spare ? a->others : spare);
    a->others = sorted;
    return sorted;
}

/* Adds up the counts that went beyond a slot and were continued in the hash. Slots and the hash's cells are two
 * ascending runs of each source; both are merged into order. */
static void merge_cells(struct aggregate *a, const size_t *end, const size_t *middle)
{
    struct cell *merged = cli_realloc(NULL, a->cell_count ? a->cell_count : 1, sizeof *merged);
    uint32_t source_count = names_source_count(a->names);
    size_t n = 0;

    for (uint32_t s = 0; s < source_count; s++) {
        size_t i = s ? end[s - 1] : 0, j = middle[s];

        while (i < middle[s] || j < end[s]) {
            bool first = j == end[s] || (i < middle[s] && a->cells[i].stack <= a->cells[j].stack);
            const struct cell *c = first ? &a->cells[i++] : &a->cells[j++];

            if (n > 0 && merged[n - 1].source == c->source && merged[n - 1].stack == c->stack)
                merged[n - 1].count += c->count; /* of equal ones the slot's is first */
            else
                merged[n++] = *c;
        }
    }
    free(a->cells);
    a->cells = merged;
    a->cell_count = n;
}

/* Distributes the counts to their sources. */
static void make_cells(struct aggregate *a)
{
    uint32_t source_count = names_source_count(a->names);
    size_t *next = cli_realloc(NULL, (size_t)source_count + 1, sizeof *next);
    size_t *middle = cli_realloc(NULL, (size_t)source_count + 1, sizeof *middle);
    size_t other_count;
    struct cell *others = list_others(a, &other_count);

    memset(next, 0, ((size_t)source_count + 1) * sizeof *next);
    for (size_t i = 0; i < a->slot_capacity; i++)
        if (slot_counts(a, i))
            next[a->slots[i].source + 1]++;
    for (size_t i = 0; i < other_count; i++)
        next[others[i].source + 1]++; /* NOLINT(analyzer-null-dereference): NULL has none */
    for (uint32_t i = 0; i < source_count; i++)
        next[i + 1] += next[i];
    a->cell_count = next[source_count];
    a->cells = cli_realloc(NULL, a->cell_count ? a->cell_count : 1, sizeof *a->cells);
    for (size_t i = 0; i < a->slot_capacity; i++)
        if (slot_counts(a, i))
            a->cells[next[a->slots[i].source]++] =
                (struct cell){.source = a->slots[i].source,
                              .stack = (uint32_t)i,
                              .count = a->slots[i].count,
                              .first = a->slot_first ? a->slot_first[i] : 0};
    free(a->slots);
    free(a->slot_first);
    a->slots = NULL;
    a->slot_first = NULL;
    a->slot_capacity = 0;
    memcpy(middle, next, source_count * sizeof *middle);
    for (size_t i = 0; i < other_count; i++)
        a->cells[next[others[i].source]++] = others[i];
    free(a->others);
    a->others = NULL;
    a->other_count = a->other_capacity = 0;
    if (other_count > 0)
        merge_cells(a, next, middle); /* next[i] is the end of source i by now */
    free(next);
    free(middle);
}

int aggregate_finish(struct aggregate *a)
{
    choose_sources(a);
    make_cells(a);
    return a->runs ? runs_finish(a->runs) : 0;
}

int aggregate_recount(struct aggregate *a,
                      bool (*counts)(void *user, uint32_t source, uint32_t stack), void *user)
{
    struct run_cursor cursor;
    struct run run;
    uint32_t source;
    int rc = runs_open(&cursor, a->runs, 0);

    if (a->stats_capacity > 0)
        memset(a->stats, 0, a->stats_capacity * sizeof *a->stats);
    a->samples = 0;
    a->has_time = false;
    a->first_ns = a->last_ns = 0;
    while (rc == 0 && runs_next(&cursor, &run, &source)) {
        if (!counts(user, source, run.stack))
            continue;
        a->stats[source].samples++;
        update_stats(a, source, run.time_ns, a->interval_ns);
        a->samples++;
        if (!a->has_time)
            a->first_ns = run.time_ns;
        a->last_ns = run.time_ns;
        a->has_time = true;
    }
    runs_close(&cursor);
    return rc;
}

static int by_process(const void *a, const void *b)
{
    const struct aggregate_source *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->python != y->python)
        return x->python ? 1 : -1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

struct aggregate_source *aggregate_by_process(const struct aggregate *a, size_t *count)
{
    struct aggregate_source *list = NULL;
    size_t n = 0, capacity = 0;

    for (size_t i = 0; i < a->cell_count;) {
        uint32_t source = a->cells[i].source;
        struct source who;

        list = cli_grow(list, &capacity, n, sizeof *list);
        names_get_source(a->names, source, &who);
        list[n] = (struct aggregate_source){
            .source = source, .pid = who.pid, .python = who.python, .group = who.group, .begin = i};
        while (i < a->cell_count && a->cells[i].source == source)
            i++;
        list[n++].end = i;
    }
    if (n > 1)
        qsort(list, n, sizeof *list, by_process);
    for (size_t i = 1; i < n; i++)
        list[i].other_process =
            list[i].pid != list[i - 1].pid || list[i].python != list[i - 1].python;
    *count = n;
    return list;
}

void aggregate_free(struct aggregate *a)
{
    names_free(a->names);
    notes_free(&a->notes);
    epochs_free(&a->epochs);
    runs_free(a->runs);
    free(a->stats);
    free(a->source_selected);
    free(a->cells);
    free(a->slots);
    free(a->slot_first);
    free(a->others);
    memset(a, 0, sizeof *a);
}
