/* SPDX-License-Identifier: MIT */
/*
 * Walks over a thread's samples: one to measure, then one for each array of the profile, so that none of them is ever
 * in memory. All go through the same cursor, which has the rule of gaps.
 */
#include "timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "gap.h"

#define GAP OTREE_ROOT /* no sample has the empty stack */

/* A piece of the timeline. */
struct piece {
    uint32_t node;    /* GAP: none */
    uint64_t samples; /* 0 for a gap */
    uint64_t begin;
    uint64_t width;
};

struct cursor {
    struct stacks_walk walk;
    struct stacks_run next;
    bool has_next;
    bool merge;
    uint64_t zero_ns, interval_ns;
    uint64_t unit; /* width of a sample */
    uint64_t at;   /* end of what was given out */
    bool too_large;
};

int timeline_first(const struct stacks *s, const struct stacks_thread *thread, uint64_t *first_ns)
{
    struct stacks_walk walk;
    struct stacks_run run;
    int rc = stacks_walk_begin(&walk, s, thread);

    *first_ns = UINT64_MAX;
    if (rc == 0 && stacks_walk_next(&walk, &run))
        *first_ns = run.time_ns;
    stacks_walk_end(&walk);
    return rc;
}

static int cursor_begin(struct cursor *c, const struct stacks *s, const struct timeline *t,
                        bool merge)
{
    int rc;

    *c = (struct cursor){
        .merge = merge,
        .zero_ns = t->zero_ns,
        .interval_ns = t->interval_ns,
        .unit = t->interval_ns ? t->interval_ns : 1,
    };
    rc = stacks_walk_begin(&c->walk, s, &t->thread);
    if (rc == 0)
        c->has_next = stacks_walk_next(&c->walk, &c->next);
    return rc;
}

static void cursor_end(struct cursor *c)
{
    stacks_walk_end(&c->walk);
}

/* Whether there is a gap before the next sample. A sample at time t stands for the interval that ends there, and the
 * axis begins an interval before zero_ns: on the axis it begins at t - zero_ns. */
static inline bool next_has_gap(const struct cursor *c)
{
    return c->interval_ns > 0 && gap_before(c->next.time_ns - c->zero_ns, c->at, c->interval_ns);
}

/* Moves the end of what was given out. */
static inline bool advance(struct cursor *c, uint64_t samples)
{
    uint64_t width;

    if (__builtin_mul_overflow(samples, c->unit, &width) ||
        __builtin_add_overflow(c->at, width, &c->at) || c->at >= SS_NUMBER_LIMIT)
        c->too_large = true;
    return !c->too_large;
}

/* The next piece; false at the end. */
static bool cursor_next(struct cursor *c, struct piece *p)
{
    if (!c->has_next || c->too_large)
        return false;
    p->begin = c->at;
    if (next_has_gap(c)) {
        p->node = GAP;
        p->samples = 0;
        c->at = c->next.time_ns - c->zero_ns;
        p->width = c->at - p->begin;
        c->too_large = c->at >= SS_NUMBER_LIMIT;
        return true;
    }
    p->node = c->next.node;
    p->samples = 0;
    do {
        p->samples += c->next.count;
        if (!advance(c, c->next.count))
            return false;
        c->has_next = stacks_walk_next(&c->walk, &c->next);
    } while (c->merge && c->has_next && c->next.node == p->node && !next_has_gap(c));
    p->width = c->at - p->begin;
    return true;
}

void timeline_report_limit(void)
{
    cli_error("the document would need numbers of 2^53 and more, which not every reader has "
              "(--weight=samples, or a part of the recording with --from and --to)");
}

int timeline_measure(const struct stacks *s, struct timeline *t)
{
    struct cursor c;
    struct piece p;
    int rc = cursor_begin(&c, s, t, false);

    while (rc == 0 && cursor_next(&c, &p)) {
        t->samples += p.samples;
        t->gaps += p.node == GAP;
    }
    cursor_end(&c);
    t->end = c.at;
    if (c.too_large) {
        timeline_report_limit();
        return -1;
    }
    return rc;
}

/* ---- sampled ---- */

/* How many entries a piece has, and how wide each is. */
static uint64_t entries_of(const struct cursor *c, const struct piece *p, uint64_t *width)
{
    bool apart = !c->merge && p->node != GAP;

    *width = apart ? c->unit : p->width;
    return apart ? p->samples : 1;
}

static int write_samples(const struct timeline_document *d, const struct timeline *t)
{
    const struct otree *tree = &d->stacks->tree;
    struct cursor c;
    struct piece p;
    bool comma = false;
    int rc = cursor_begin(&c, d->stacks, t, d->merge_runs);

    while (rc == 0 && !output_failed(d->out) && cursor_next(&c, &p)) {
        size_t size = 2;
        const char *text =
            p.node == GAP ? "[]" : ss_frames_stack(d->frames, tree, SS_NO_LABEL, p.node, &size);
        uint64_t width, count = entries_of(&c, &p, &width);

        for (; count > 0; count--) {
            if (comma)
                output_byte(d->out, ',');
            comma = true;
            output_write(d->out, text, size);
        }
    }
    cursor_end(&c);
    return rc;
}

static int write_weights(const struct timeline_document *d, const struct timeline *t)
{
    struct json_writer w;
    struct cursor c;
    struct piece p;
    int rc = cursor_begin(&c, d->stacks, t, d->merge_runs);

    json_start(&w, d->out);
    while (rc == 0 && !output_failed(d->out) && cursor_next(&c, &p)) {
        uint64_t width, count = entries_of(&c, &p, &width);

        for (; count > 0; count--)
            json_u64(&w, width);
    }
    cursor_end(&c);
    return rc;
}

static int write_sampled(const struct timeline_document *d, const struct timeline *t)
{
    int rc;

    output_text(d->out, ",\"samples\":[");
    rc = write_samples(d, t);
    if (rc < 0)
        return -1;
    output_text(d->out, "],\"weights\":[");
    rc = write_weights(d, t);
    output_byte(d->out, ']');
    return rc;
}

/* ---- evented ---- */

/* Nodes of a stack, leaf first. */
struct path {
    uint32_t *nodes;
    size_t count, capacity;
};

struct events {
    const struct timeline_document *d;
    struct path open, next;
    char at[32]; /* ,"at":N} */
    size_t at_size;
    bool first;
};

static void set_path(struct path *p, const struct otree *tree, uint32_t node)
{
    p->count = 0;
    for (; node != OTREE_ROOT; node = tree->nodes[node].parent) {
        p->nodes = cli_grow(p->nodes, &p->capacity, p->count, sizeof *p->nodes);
        p->nodes[p->count++] = node;
    }
}

static const char event_begin[] = ",{\"type\":\"O\",\"frame\":";
#define EVENT_BEGIN_BYTES (sizeof event_begin - 1)
#define EVENT_TYPE_AT 10

static void write_event(struct events *e, char type, uint32_t node)
{
    struct tool_output *out = e->d->out;
    size_t size;
    const char *index = ss_frames_index(e->d->frames, e->d->stacks->tree.nodes[node].label, &size);
    char *begin = output_reserve(out, EVENT_BEGIN_BYTES + sizeof(struct ss_index) + sizeof e->at);
    char *p = begin;

    memcpy(p, event_begin, EVENT_BEGIN_BYTES);
    p[EVENT_TYPE_AT] = type;
    p += EVENT_BEGIN_BYTES;
    memcpy(p, index, size);
    p += size;
    memcpy(p, e->at, sizeof e->at);
    p += e->at_size;
    if (e->first)
        memmove(begin, begin + 1, (size_t)(p-- - begin - 1));
    e->first = false;
    output_take(out, (size_t)(p - begin));
}

/* What all events of a moment end with. */
static void set_moment(struct events *e, uint64_t at)
{
    e->at_size = (size_t)snprintf(e->at, sizeof e->at, ",\"at\":%" PRIu64 "}", at);
}

/* Closes what a stack no longer has, leaf first, and opens what it has more. Two stacks share the nodes of their common
 * prefix, so recursion is by position. */
static void change_stack(struct events *e, uint32_t node, uint64_t at)
{
    struct path *open = &e->open, *next = &e->next, swap;
    size_t shared = 0;

    set_moment(e, at);
    set_path(next, &e->d->stacks->tree, node);
    while (shared < open->count && shared < next->count &&
           open->nodes[open->count - 1 - shared] == next->nodes[next->count - 1 - shared])
        shared++;
    for (size_t i = 0; i < open->count - shared; i++)
        write_event(e, 'C', open->nodes[i]);
    for (size_t i = next->count - shared; i-- > 0;)
        write_event(e, 'O', next->nodes[i]);
    swap = *open;
    *open = *next;
    *next = swap;
}

static int write_evented(const struct timeline_document *d, const struct timeline *t)
{
    struct events e = {.d = d, .first = true};
    struct cursor c;
    struct piece p;
    int rc = cursor_begin(&c, d->stacks, t, true);

    output_text(d->out, ",\"events\":[");
    while (rc == 0 && !output_failed(d->out) && cursor_next(&c, &p))
        change_stack(&e, p.node, p.begin);
    cursor_end(&c);
    change_stack(&e, GAP, c.at);
    output_byte(d->out, ']');
    free(e.open.nodes);
    free(e.next.nodes);
    return rc;
}

/* ---- API ---- */

void timeline_begin_profile(struct json_writer *w, const char *type, const char *name,
                            size_t name_size, bool time, uint64_t end)
{
    json_begin(w, '{');
    json_key_text(w, "type", type);
    json_key_string(w, "name", name, name_size);
    json_key_text(w, "unit", time ? "nanoseconds" : "none");
    json_key_u64(w, "startValue", 0);
    json_key_u64(w, "endValue", end);
}

int timeline_write(const struct timeline_document *d, const struct timeline *t, const char *name,
                   size_t name_size)
{
    bool evented = t->gaps > TIMELINE_SAMPLED_GAPS;
    struct json_writer w;
    int rc;

    json_start(&w, d->out);
    timeline_begin_profile(&w, evented ? "evented" : "sampled", name, name_size, d->time, d->end);
    rc = evented ? write_evented(d, t) : write_sampled(d, t);
    json_end(&w, '}');
    return rc;
}
