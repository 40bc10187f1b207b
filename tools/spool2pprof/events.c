/* SPDX-License-Identifier: MIT */
/* --timestamps: the events of all inputs merged in the order of the times they show. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "profile.h"

/* The next event of an input. */
struct event_source {
    const struct stacks_input *input;
    struct stacks_walk walk;
    struct stacks_run run;
    int64_t time_ns; /* as it is shown */
    bool wall;       /* its times are of the wall clock */
    uint32_t *sets;  /* by source: its label set, or UINT32_MAX as yet */
};

struct events {
    struct profile *profile;
    struct event_source *sources;
    size_t count;
    uint32_t *heap; /* of those with a next event, the earliest on top */
    size_t heap_count;
    struct text_buffer labels; /* scratch */
    uint32_t key, unit;        /* of the time's label */
};

/* Time since the first sample that counts. */
static int64_t relative_ns(const struct event_source *s)
{
    uint64_t ns = s->run.time_ns - s->input->aggregate->first_ns;

    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

/* Moves on to the next event of an input; false at its end. */
static bool advance(struct event_source *s)
{
    if (!stacks_walk_next(&s->walk, &s->run))
        return false;
    if (!s->wall || !profile_wall_ns(s->input->reader, s->run.time_ns, &s->time_ns))
        s->time_ns = relative_ns(s);
    return true;
}

/* Equal times stand in the order of the inputs. */
static bool is_before(const struct events *e, uint32_t a, uint32_t b)
{
    int64_t x = e->sources[a].time_ns, y = e->sources[b].time_ns;

    return x != y ? x < y : a < b;
}

static void sink(struct events *e, size_t at)
{
    uint32_t moved = e->heap[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= e->heap_count)
            break;
        if (child + 1 < e->heap_count && is_before(e, e->heap[child + 1], e->heap[child]))
            child++;
        if (!is_before(e, e->heap[child], moved))
            break;
        e->heap[at] = e->heap[child];
        at = child;
    }
    e->heap[at] = moved;
}

static uint32_t set_of(struct events *e, struct event_source *s)
{
    uint32_t *set = &s->sets[s->run.source];
    struct source who;

    if (*set == UINT32_MAX) {
        names_get_source(s->input->aggregate->names, s->run.source, &who);
        *set = labelsets_of(&e->profile->labelsets, &who);
    }
    return *set;
}

static void write_event(struct events *e, struct event_source *s)
{
    struct profile *p = e->profile;
    size_t count = locations_of_stack(&p->locations, &p->stacks.tree, s->run.node), size;
    const char *packed = labelsets_packed(&p->labelsets, set_of(e, s), &size);
    const int64_t values[2] = {1, (int64_t)s->input->interval_ns};

    e->labels.size = 0;
    if (size > 0)
        text_append(&e->labels, packed, size);
    envelope_pack_label(&e->labels, &(struct envelope_label){
                                        .key = e->key, .num = s->time_ns, .num_unit = e->unit});
    envelope_sample(p->envelope, p->locations.ids, count, values, p->has_time ? 2 : 1,
                    e->labels.data, e->labels.size);
}

static void write_merged(struct events *e)
{
    for (size_t i = e->heap_count / 2; i-- > 0;)
        sink(e, i);
    while (e->heap_count > 0 && !output_failed(e->profile->out)) {
        struct event_source *s = &e->sources[e->heap[0]];

        for (uint32_t i = 0; i < s->run.count; i++)
            write_event(e, s);
        if (!advance(s))
            e->heap[0] = e->heap[--e->heap_count];
        if (e->heap_count > 0)
            sink(e, 0);
    }
}

/* Opens the walk over an input. 0, or -1 after an error message. */
static int begin(struct events *e, const struct stacks_thread *thread)
{
    struct event_source *s = &e->sources[e->count++];
    size_t sources = names_source_count(thread->input->aggregate->names);
    int64_t ignored;

    s->input = thread->input;
    s->wall = profile_wall_ns(s->input->reader, thread->first_ns, &ignored);
    s->sets = cli_realloc(NULL, sources, sizeof *s->sets);
    for (size_t i = 0; i < sources; i++)
        s->sets[i] = UINT32_MAX;
    if (stacks_walk_begin(&s->walk, &e->profile->stacks, thread) < 0)
        return -1;
    if (advance(s))
        e->heap[e->heap_count++] = (uint32_t)(s - e->sources);
    return 0;
}

int profile_write_events(struct profile *p)
{
    struct events e = {.profile = p};
    size_t count;
    struct stacks_thread *threads = stacks_threads(&p->stacks, &count); /* one an input */
    int rc = 0;

    e.sources = cli_zeroed(count, sizeof *e.sources);
    e.heap = cli_realloc(NULL, count, sizeof *e.heap);
    if (count > 0) {
        e.key = stringtable_index_of(&p->strings, "timestamp_ns");
        e.unit = stringtable_index_of(&p->strings, "nanoseconds");
    }
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = begin(&e, &threads[i]);
    if (rc == 0)
        write_merged(&e);
    for (size_t i = 0; i < e.count; i++) {
        stacks_walk_end(&e.sources[i].walk);
        free(e.sources[i].sets);
    }
    free(e.sources);
    free(e.heap);
    free(threads);
    text_free(&e.labels);
    return rc;
}
