/* SPDX-License-Identifier: MIT */
/* Adding up the stacks of many threads, and their order, without ever comparing two stacks. */
#include "overview.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "timeline.h"

void overview_free(struct overview *o)
{
    free(o->parts);
    free(o->cells);
    free(o->rank);
    free(o->by_rank);
    text_free(&o->text);
}

/* ---- cells ---- */

/* `PROCESS PID`: the process as it was called at the time of the samples. */
static uint32_t process_label(struct overview *o, struct ss_frames *frames,
                              const struct source *source)
{
    o->text.size = 0;
    if (source->comm)
        text_append_clean(&o->text, source->comm, source->comm_size);
    else
        text_printf(&o->text, "[unknown]");
    text_printf(&o->text, " %" PRId32, source->pid);
    return ss_frames_root(frames, o->text.data, o->text.size);
}

static struct overview_part *begin_part(struct overview *o, struct ss_frames *frames,
                                        const struct stacks_cell *cell)
{
    struct overview_part *part;
    struct source source;

    names_get_source(cell->input->aggregate->names, cell->source, &source);
    o->parts = cli_grow(o->parts, &o->part_capacity, o->part_count, sizeof *o->parts);
    part = &o->parts[o->part_count++];
    *part = (struct overview_part){
        .input = cell->input->index,
        .source = cell->source,
        .thread = source.thread_number,
        .pid = source.pid,
        .root = process_label(o, frames, &source),
        .interval_ns = cell->input->interval_ns,
        .begin = o->cell_count,
    };
    if (part->input != o->parts[0].input || part->pid != o->parts[0].pid)
        o->several_processes = true;
    return part;
}

void overview_add(struct overview *o, struct ss_frames *frames, const struct stacks_cell *cell)
{
    struct overview_part *part = o->part_count ? &o->parts[o->part_count - 1] : NULL;
    uint64_t left = cell->samples;

    if (!part || part->input != cell->input->index || part->source != cell->source)
        part = begin_part(o, frames, cell);
    part->samples += left;
    while (left > 0) {
        uint32_t samples = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;

        if (o->cell_count == o->cell_capacity) {
            o->cell_capacity = o->cell_capacity ? o->cell_capacity + o->cell_capacity / 2 : 1024;
            o->cells = cli_realloc(o->cells, o->cell_capacity, sizeof *o->cells);
        }
        o->cells[o->cell_count++] = (struct overview_cell){.node = cell->node, .samples = samples};
        left -= samples;
    }
}

/* ---- order ---- */

/* The nodes in the order of their labels, which is that of the frame indexes. */
static uint32_t *by_label(const struct otree *tree)
{
    uint32_t *order = cli_realloc(NULL, tree->count, sizeof *order);
    uint32_t label_count = 0;
    size_t *next, sum = 0;

    for (uint32_t id = 1; id < tree->count; id++)
        if (tree->nodes[id].label >= label_count)
            label_count = tree->nodes[id].label + 1;
    next = cli_zeroed(label_count, sizeof *next);
    for (uint32_t id = 1; id < tree->count; id++)
        next[tree->nodes[id].label]++;
    for (uint32_t label = 0; label < label_count; label++) {
        size_t n = next[label];

        next[label] = sum;
        sum += n;
    }
    for (uint32_t id = 1; id < tree->count; id++)
        order[next[tree->nodes[id].label]++] = id;
    free(next);
    return order;
}

/* In the order wanted a stack comes before all that go on below it, and these come behind each other. So its place is
 * that of its prefix, and one, and the sizes of the branches beside it with lower labels. */
void overview_rank(struct overview *o, const struct otree *tree)
{
    uint32_t *order = by_label(tree);
    uint32_t *size = cli_realloc(NULL, tree->count, sizeof *size); /* of branches, then used up */
    uint32_t *used = cli_zeroed(tree->count, sizeof *used);

    o->rank = cli_realloc(NULL, tree->count, sizeof *o->rank);
    for (uint32_t id = 0; id < tree->count; id++)
        size[id] = 1;
    for (uint32_t id = tree->count; id-- > 1;)
        size[tree->nodes[id].parent] += size[id];
    for (uint32_t i = 0; i + 1 < tree->count; i++) {
        uint32_t id = order[i], parent = tree->nodes[id].parent;

        o->rank[id] = used[parent];
        used[parent] += size[id];
    }
    o->rank[OTREE_ROOT] = 0;
    for (uint32_t id = 1; id < tree->count; id++)
        o->rank[id] += o->rank[tree->nodes[id].parent] + 1;
    free(size);
    free(used);
    o->by_rank = order;
    for (uint32_t id = 0; id < tree->count; id++)
        o->by_rank[o->rank[id]] = id;
}

/* ---- adding up ---- */

struct adder {
    const struct overview *o;
    struct overview_list *list;
    bool time;
    uint64_t *samples; /* by rank */
    uint32_t rank_count;
    uint32_t *touched; /* ranks with samples */
    uint32_t touched_count;
};

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int by_stack(const void *a, const void *b)
{
    const struct overview_entry *x = a, *y = b;

    if (x->root != y->root)
        return x->root < y->root ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Lists the ranks with samples in order: by looking at all, where many have some. */
static void sort_touched(struct adder *a)
{
    uint32_t n = 0;

    if (a->touched_count < a->rank_count / 16) {
        if (a->touched_count > 1)
            qsort(a->touched, a->touched_count, sizeof *a->touched, by_number);
        return;
    }
    for (uint32_t rank = 0; rank < a->rank_count; rank++)
        if (a->samples[rank] > 0)
            a->touched[n++] = rank;
}

/* Takes what was added up for one process as entries. False when a number becomes too large. */
static bool flush(struct adder *a, const struct overview_part *part)
{
    struct overview_list *list = a->list;
    uint64_t unit = a->time ? part->interval_ns : 1;

    sort_touched(a);
    if (list->count + a->touched_count > list->capacity) {
        list->capacity = list->count + a->touched_count;
        list->entries = cli_realloc(list->entries, list->capacity, sizeof *list->entries);
    }
    for (uint32_t i = 0; i < a->touched_count; i++) {
        uint32_t rank = a->touched[i];
        struct overview_entry *entry = &list->entries[list->count++];

        entry->root = a->o->several_processes ? part->root : SS_NO_LABEL;
        entry->rank = rank;
        if (__builtin_mul_overflow(a->samples[rank], unit, &entry->weight) ||
            __builtin_add_overflow(list->total, entry->weight, &list->total) ||
            list->total >= SS_NUMBER_LIMIT)
            return false;
        a->samples[rank] = 0;
    }
    a->touched_count = 0;
    return true;
}

/* A process may come again, under another name meanwhile, and another input may have one that is called the same. */
static void join_entries(struct overview_list *list)
{
    bool sorted = true;
    size_t kept = 0;

    for (size_t i = 1; i < list->count && sorted; i++)
        sorted = by_stack(&list->entries[i - 1], &list->entries[i]) < 0;
    if (sorted)
        return;
    qsort(list->entries, list->count, sizeof *list->entries, by_stack);
    for (size_t i = 0; i < list->count; i++) {
        struct overview_entry *last = &list->entries[kept];

        if (kept > 0 && by_stack(last - 1, &list->entries[i]) == 0)
            last[-1].weight += list->entries[i].weight;
        else
            list->entries[kept++] = list->entries[i];
    }
    list->count = kept;
}

static void add_part(struct adder *a, const struct overview_part *part)
{
    size_t end = a->o->cell_count;

    if (part + 1 < a->o->parts + a->o->part_count)
        end = part[1].begin;
    for (size_t i = part->begin; i < end; i++) {
        uint32_t rank = a->o->rank[a->o->cells[i].node];

        if (a->samples[rank] == 0)
            a->touched[a->touched_count++] = rank;
        a->samples[rank] += a->o->cells[i].samples;
    }
}

bool overview_list(const struct overview *o, const struct otree *tree, bool time,
                   bool (*takes)(const void *user, const struct overview_part *part),
                   const void *user, struct overview_list *list)
{
    struct adder a = {.o = o, .list = list, .time = time, .rank_count = tree->count};
    const struct overview_part *last = NULL;
    bool fits = true;

    a.samples = cli_zeroed(tree->count, sizeof *a.samples);
    a.touched = cli_realloc(NULL, tree->count, sizeof *a.touched);
    for (size_t i = 0; i < o->part_count && fits; i++) {
        const struct overview_part *part = &o->parts[i];

        if (takes && !takes(user, part))
            continue;
        if (last &&
            (part->input != last->input || (o->several_processes && part->root != last->root)))
            fits = flush(&a, last);
        last = part;
        if (fits)
            add_part(&a, part);
    }
    if (last && fits)
        fits = flush(&a, last);
    free(a.samples);
    free(a.touched);
    if (fits)
        join_entries(list);
    return fits;
}

/* ---- writing ---- */

void overview_mark_roots(const struct overview_list *list, bool *used)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].root != SS_NO_LABEL)
            used[list->entries[i].root] = true;
}

void overview_write(const struct overview *o, const struct overview_list *list,
                    const struct otree *tree, struct ss_frames *frames, struct json_writer *w)
{
    json_key(w, "samples");
    json_begin(w, '[');
    for (size_t i = 0; i < list->count && !output_failed(w->out); i++) {
        const struct overview_entry *e = &list->entries[i];
        size_t size;
        const char *text = ss_frames_stack(frames, tree, e->root, o->by_rank[e->rank], &size);

        json_separate(w);
        output_write(w->out, text, size);
    }
    json_end(w, ']');
    json_key(w, "weights");
    json_begin(w, '[');
    for (size_t i = 0; i < list->count && !output_failed(w->out); i++)
        json_u64(w, list->entries[i].weight);
    json_end(w, ']');
}
