/* SPDX-License-Identifier: MIT */
/*
 * Counting along the tree of output stacks. Here a frame's label is what is counted of it: its name, its module and
 * some flags, whatever its address.
 */
#include "shaped_use.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "shaped.h"

/* A kind of frame. */
struct kind {
    uint32_t name; /* its text's number */
    uint32_t module;
    uint32_t flags; /* FRAME_* that count */
};

struct kinds {
    struct labels names, keys;
    struct kind *items; /* by label */
    size_t capacity;
};

#define COUNTED_FLAGS (FRAME_KERNEL | FRAME_TRUNCATED | FRAME_PLACEHOLDER | FRAME_UNPINNED)

static uint32_t label_kind(void *user, const struct out_frame *frame)
{
    struct kinds *k = user;
    struct kind kind;
    uint32_t label;

    memset(&kind, 0, sizeof kind);
    kind.name = labels_intern(&k->names, frame->name, frame->name_size);
    kind.module = frame->module_id;
    kind.flags = frame->flags & COUNTED_FLAGS;
    label = labels_intern(&k->keys, (const char *)&kind, sizeof kind);
    k->items = cli_grow(k->items, &k->capacity, label, sizeof *k->items);
    k->items[label] = kind;
    return label;
}

/* ---- samples that are left ------------------------------------------------------------------- */

static int compare_stacks(const void *a, const void *b)
{
    const struct shaped_stack *x = a, *y = b;

    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

static bool is_left(void *user, uint32_t source, uint32_t stack)
{
    const struct shaped_input *s = user;
    const struct shaped_stack key = {.source = source, .stack = stack};

    return s->stack_count > 0 &&
           bsearch(&key, s->stacks, s->stack_count, sizeof key, compare_stacks) != NULL;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Stacks that have the same names are one, as in collapsed stacks. */
static uint64_t count_distinct(const struct shaped_input *s, const struct kinds *k)
{
    uint32_t *same = cli_realloc(NULL, s->tree.count, sizeof *same); /* by node: in `names` */
    struct otree names;
    uint64_t distinct = 0;

    otree_init(&names);
    otree_allow(&names, s->tree.count);
    same[OTREE_ROOT] = OTREE_ROOT;
    for (uint32_t i = 1; i < s->tree.count; i++) /* a parent is older */
        same[i] = otree_child(&names, same[s->tree.nodes[i].parent],
                              k->items[s->tree.nodes[i].label].name);
    for (size_t i = 0; i < s->stack_count; i++) {
        uint64_t *weight = &names.weights[same[s->stacks[i].node]];

        distinct += *weight == 0;
        *weight = 1;
    }
    otree_free(&names);
    free(same);
    return distinct;
}

static void count_node(struct stack_use *u, const struct kind *k, uint64_t samples)
{
    u->frames += samples;
    if (k->flags & FRAME_TRUNCATED)
        u->truncated_samples += samples;
    if (k->flags & FRAME_PLACEHOLDER)
        return;
    if (k->flags & FRAME_KERNEL)
        u->kernel_frames += samples;
    if (k->flags & FRAME_UNPINNED)
        u->unpinned_frames += samples;
    if (k->module != SPOOL_NO_ID)
        u->module_samples[k->module] = 1; /* that it has some is all a summary asks */
    else if (!(k->flags & FRAME_KERNEL))
        u->unresolved_frames += samples;
}

static void count_tree(struct stack_use *u, const struct shaped_input *s, const struct kinds *k)
{
    uint64_t *samples = cli_zeroed(s->tree.count, sizeof *samples); /* whose stack has the node */
    uint32_t *depth = cli_zeroed(s->tree.count, sizeof *depth);

    for (size_t i = 0; i < s->stack_count; i++)
        samples[s->stacks[i].node] += s->stacks[i].samples;
    for (uint32_t i = s->tree.count; i-- > 1;)
        samples[s->tree.nodes[i].parent] += samples[i];
    for (uint32_t i = 1; i < s->tree.count; i++) {
        depth[i] = depth[s->tree.nodes[i].parent] + 1;
        if (samples[i] == 0) /* a prefix that every stack was cut from */
            continue;
        if (depth[i] > u->max_depth)
            u->max_depth = depth[i];
        count_node(u, &k->items[s->tree.nodes[i].label], samples[i]);
    }
    free(samples);
    free(depth);
}

int shaped_use_count(struct stack_use *u, const struct tool_input *in, const struct tool_options *o,
                     struct symbols *symbols, struct aggregate *a)
{
    struct kinds k = {.items = NULL};
    struct spool_counts counts;
    struct shaped_input s;
    int rc;

    labels_init(&k.names);
    labels_init(&k.keys);
    spool_reader_counts(in->reader, &counts);
    *u = (struct stack_use){.module_count = counts.modules};
    u->module_samples = cli_zeroed(counts.modules, sizeof *u->module_samples);
    rc = shaped_run(&s, in, o, symbols, a, label_kind, &k);
    if (rc == 0) {
        count_tree(u, &s, &k);
        u->distinct_stacks = count_distinct(&s, &k);
    }
    if (rc == 0 && shape_deselects(&o->shape)) {
        if (s.stack_count > 1)
            qsort(s.stacks, s.stack_count, sizeof *s.stacks, compare_stacks);
        rc = aggregate_recount(a, is_left, &s);
    }
    shaped_free(&s);
    labels_free(&k.names);
    labels_free(&k.keys);
    free(k.items);
    return rc;
}
