/* SPDX-License-Identifier: MIT */
/* Extending the output tree along the prefixes of a spool's stacks. */
#include "shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define CHAIN_END (1u << 31)

/* Contexts of frame_context. */
#define CONTEXT_NONE 0u
#define CONTEXT_FIRST 1u
/* Nobody can tell old contexts and stamps from new ones once the numbers have come round. */
#define CONTEXT_LAST (UINT32_MAX - 8)

/* What is known of a node's whole stack. The two ways of showing it, with the interpreter's own frames and without,
 * differ only once such a frame was met (HAS_SPLIT). */
enum {
    HAS_KERNEL = SHAPE_HAS_KERNEL,
    HAS_TRUNCATED = SHAPE_HAS_TRUNCATED,
    WAS_LIMITED = SHAPE_WAS_LIMITED, /* of the answer only */
    HAS_PYTHON = SHAPE_HAS_PYTHON,
    HAS_SPLIT = 1 << 4,
    HAS_FILTER = 1 << 5,           /* --frame-filter matches a frame that is never hidden */
    HAS_FILTER_MACHINERY = 1 << 6, /* ... one that may be */
    HAS_ROOTED = 1 << 7,           /* --root-at has matched; shown with all frames ... */
    HAS_ROOTED_HIDE = 1 << 8,      /* ... and without the interpreter's */
    HAS_STOPPED = 1 << 9,          /* --skip-below has matched since; the same two */
    HAS_STOPPED_HIDE = 1 << 10
};

struct node_memo {
    uint32_t stamp; /* of the sources it is right for */
    uint32_t has;
    uint32_t show;
    uint32_t hide;
};

/* One way of showing a stack, beside its node: output frames below the root, and the identity of the innermost. */
struct end {
    uint32_t depth;
    uint32_t identity;
};

/* What --max-depth and --fold-recursion ask for. */
struct node_extra {
    struct end show;
    struct end hide;
};

/* One way of showing a stack, while it is extended. */
struct variant {
    uint32_t node;
    struct end end;
    bool rooted;
    bool stopped;
};

static bool wants_extra(const struct shape_options *o)
{
    return o->has_max_depth || o->fold_recursion;
}

void shape_init(struct shaper *h, const struct spool_counts *counts)
{
    h->frame_chain = cli_zeroed(counts->frames, sizeof *h->frame_chain);
    h->frame_context = cli_zeroed(counts->frames, sizeof *h->frame_context);
    h->memo = cli_zeroed(counts->stacks, sizeof *h->memo);
    if (wants_extra(h->options))
        h->extra = cli_zeroed(counts->stacks, sizeof *h->extra);
    if (h->misses) {
        h->frame_place = cli_zeroed(counts->frames, sizeof *h->frame_place);
        h->frame_reason = cli_zeroed(counts->frames, sizeof *h->frame_reason);
        h->stack_process = cli_zeroed(counts->stacks, sizeof *h->stack_process);
    }
    h->frame_capacity = counts->frames;
    h->stack_capacity = counts->stacks;
    otree_allow(h->tree, counts->stacks);
    labels_init(&h->identities);
    h->shared_context = CONTEXT_FIRST;
    h->context = CONTEXT_FIRST + 1;
    h->epoch_context = h->last_context = CONTEXT_FIRST + 2;
}

void shape_extend(struct shaper *h, const struct spool_counts *counts,
                  const struct spool_stack_node *nodes)
{
    h->nodes = nodes;
    if (counts->frames > h->frame_capacity) {
        size_t capacity = (size_t)counts->frames + counts->frames / 2;

        h->frame_chain =
            cli_extend(h->frame_chain, h->frame_capacity, capacity, sizeof *h->frame_chain);
        h->frame_context =
            cli_extend(h->frame_context, h->frame_capacity, capacity, sizeof *h->frame_context);
        h->frame_capacity = capacity;
    }
    if (counts->stacks > h->stack_capacity) {
        size_t capacity = (size_t)counts->stacks + counts->stacks / 2;

        otree_allow(h->tree, capacity - h->stack_capacity);
        h->memo = cli_extend(h->memo, h->stack_capacity, capacity, sizeof *h->memo);
        if (wants_extra(h->options))
            h->extra = cli_extend(h->extra, h->stack_capacity, capacity, sizeof *h->extra);
        h->stack_capacity = capacity;
    }
}

void shape_free(struct shaper *h)
{
    free(h->shared.items);
    free(h->own.items);
    free(h->passing.items);
    free(h->frame_chain);
    free(h->frame_context);
    free(h->frame_place);
    free(h->frame_reason);
    free(h->stack_process);
    free(h->memo);
    free(h->extra);
    free(h->path);
    labels_free(&h->identities);
    text_free(&h->identity_text);
}

void shape_forget(struct shaper *h)
{
    h->shared_context = ++h->last_context;
    h->epoch_context = ++h->last_context;
    h->shared.count = h->passing.count = 0;
    h->stamp = 0;
}

/* A stream of samples may change its process more often than there are numbers. */
static void restart(struct shaper *h)
{
    memset(h->frame_context, 0, h->frame_capacity * sizeof *h->frame_context);
    memset(h->memo, 0, h->stack_capacity * sizeof *h->memo);
    h->last_context = CONTEXT_NONE;
    h->last_stamp = 0;
    shape_forget(h);
}

void shape_source(struct shaper *h, const struct source *source, uint32_t root, bool other_process)
{
    if (h->last_context >= CONTEXT_LAST || h->last_stamp >= CONTEXT_LAST) {
        restart(h);
        other_process = true;
    }
    /* Nobody asks for the process or the epoch before any more. */
    if (other_process) {
        h->context = ++h->last_context;
        h->own.count = 0;
    }
    if (source->kernel_epoch != h->source.kernel_epoch) {
        h->epoch_context = ++h->last_context;
        h->passing.count = 0;
    }
    /* In the next source of a process below the same root frames, which may be the next kernel epoch of this one, the
     * ways to its frames are still known. Not so with misses, whose forest is a source's. */
    if (h->stamp == 0 || h->misses || other_process || root != h->root)
        h->stamp = ++h->last_stamp;
    h->epoch_stamp = ++h->last_stamp;
    h->source = *source;
    h->root = root;
}

/* ---- frames ---- */

static void count_origin(struct input_report *r, const struct out_frame *f)
{
    const struct spool_module *m = f->source_module;

    r->frames++;
    if (f->flags & FRAME_KERNEL)
        r->kernel_frames++;
    else if (m && m->path_size > 0 && m->path[0] == '/')
        r->file_frames++;
    if (!(f->flags & FRAME_NAMED))
        return;
    switch (f->origin) {
    case SYM_ORIGIN_PERF_MAP:
        r->named_perf_map++;
        break;
    case SYM_ORIGIN_JIT:
        r->named_jit++;
        break;
    case SYM_ORIGIN_KALLSYMS:
    case SYM_ORIGIN_SYSMAP:
    case SYM_ORIGIN_VMLINUX:
        r->named_kernel++;
        break;
    default:
        r->named_elf++;
        break;
    }
}

static void note_miss(struct shaper *h, uint32_t frame, const struct resolved *r,
                      const struct out_frame *f)
{
    h->frame_reason[frame] = (uint8_t)f->miss;
    if (f->sym && (f->sym->flags & SYM_FLAG_UNVERIFIED) && (f->flags & FRAME_NAMED)) {
        if (r->kernel)
            misses_unverified(h->misses, misses_kernel(h->misses));
        else if (r->module_id != SPOOL_NO_ID)
            misses_unverified(h->misses, r->module_id);
    }
    if (f->flags & (FRAME_NAMED | FRAME_PLACEHOLDER))
        h->frame_place[frame] = MISSES_NONE;
    else if (r->module_id != SPOOL_NO_ID)
        h->frame_place[frame] = r->module_id;
    else
        h->frame_place[frame] = r->kernel ? misses_kernel(h->misses) : misses_no_module(h->misses);
}

static int reserve_chain(struct chain_store *c, size_t count)
{
    if (count > UINT32_MAX - c->count) {
        cli_error("more than 2^32-1 resolved frames");
        return -1;
    }
    while (c->count + count > c->capacity) {
        c->capacity = c->capacity ? c->capacity * 2 : 1024;
        c->items = cli_realloc(c->items, c->capacity, sizeof *c->items);
    }
    return 0;
}

/* Equal neighbours of a stack are one function that calls itself: of one name in one module. */
static uint32_t identify(struct shaper *h, const struct out_frame *f)
{
    struct text_buffer *text = &h->identity_text;

    text->size = 0;
    text_append(text, f->name, f->name_size);
    text_append_byte(text, '\n'); /* in no clean name */
    if (f->module)
        text_append(text, f->module, f->module_size);
    return labels_intern(&h->identities, text->data, text->size) + 1;
}

/* Makes the chain of a frame known in the present context. 0 or -1. */
static int make_chain(struct shaper *h, uint32_t frame)
{
    struct chain_store *store = &h->shared;
    uint32_t context = h->shared_context;
    bool counted;
    struct resolved r;
    size_t count;

    if (symbols_resolve(h->symbols, frame, &h->source, &r) < 0)
        return -1;
    if (r.per_process) {
        store = &h->own;
        context = h->context;
    } else if (r.per_epoch) {
        store = &h->passing;
        context = h->epoch_context;
    }
    count = frames_count(&r, h->options);
    if (reserve_chain(store, count) < 0)
        return -1;
    /* In every epoch it is the same frame of the kernel. */
    counted = r.per_epoch && h->frame_context[frame] != CONTEXT_NONE;
    h->frame_chain[frame] = (uint32_t)store->count;
    h->frame_context[frame] = context;
    for (size_t i = 0; i < count; i++) {
        struct chain_frame *shaped = &store->items[store->count++];
        struct out_frame out;

        frames_name(h->names, &r, i, h->options, &out);
        shaped->label = h->hooks.label(h->hooks.user, &out);
        shaped->flags = out.flags;
        shaped->identity = h->options->fold_recursion ? identify(h, &out) : 0;
        if (i + 1 < count)
            continue;
        shaped->flags |= CHAIN_END;
        if (!r.truncated && !counted)
            count_origin(h->report, &out);
        if (h->misses)
            note_miss(h, frame, &r, &out);
    }
    return 0;
}

/* The chain of a frame, NULL after an error. */
static inline const struct chain_frame *chain_of(struct shaper *h, uint32_t frame)
{
    uint32_t context = h->frame_context[frame];

    if (context == h->shared_context)
        return &h->shared.items[h->frame_chain[frame]];
    if (context != h->context && context != h->epoch_context) {
        if (make_chain(h, frame) < 0)
            return NULL;
        context = h->frame_context[frame];
        if (context == h->shared_context)
            return &h->shared.items[h->frame_chain[frame]];
    }
    return &(context == h->context ? &h->own : &h->passing)->items[h->frame_chain[frame]];
}

/* ---- tree ---- */

static uint32_t push(struct shaper *h, uint32_t parent, uint32_t label)
{
    if (parent == OTREE_ROOT && h->hooks.first_label)
        label = h->hooks.first_label(h->hooks.user, label);
    return otree_child(h->tree, parent, label);
}

static uint32_t push_placeholder(struct shaper *h, uint32_t parent, const char *name)
{
    struct out_frame out;

    frames_placeholder(h->names, name, h->options, &out);
    return push(h, parent, h->hooks.label(h->hooks.user, &out));
}

/* ---- extending a stack ---- */

/* Adds a frame to one way of showing a stack. */
static void add_frame(struct shaper *h, struct variant *v, const struct chain_frame *c)
{
    if ((c->flags & FRAME_ROOT_AT) && !v->rooted)
        *v = (struct variant){.node = h->root, .rooted = true};
    if (v->stopped)
        return;
    if (c->identity == 0 || c->identity != v->end.identity) {
        v->node = push(h, v->node, c->label);
        v->end.depth++;
        v->end.identity = c->identity;
    }
    if (c->flags & FRAME_SKIP_BELOW)
        v->stopped = true;
}

static uint32_t frame_has(uint32_t flags, bool machinery, bool dropped)
{
    uint32_t has = 0;

    if (flags & FRAME_KERNEL)
        has |= HAS_KERNEL;
    if (flags & FRAME_PYTHON)
        has |= HAS_PYTHON;
    if (flags & FRAME_TRUNCATED)
        has |= HAS_TRUNCATED;
    if ((flags & FRAME_FILTER) && !dropped)
        has |= machinery ? HAS_FILTER_MACHINERY : HAS_FILTER;
    return has;
}

/* Adds the frames of a stack node to its prefix's. 0 or -1. */
static int extend(struct shaper *h, uint32_t frame, struct node_memo *m, struct node_extra *x)
{
    struct variant show = {.node = m->show,
                           .end = x->show,
                           .rooted = m->has & HAS_ROOTED,
                           .stopped = m->has & HAS_STOPPED};
    struct variant hide = {.node = m->hide,
                           .end = x->hide,
                           .rooted = m->has & HAS_ROOTED_HIDE,
                           .stopped = m->has & HAS_STOPPED_HIDE};
    const struct chain_frame *first = chain_of(h, frame), *c = first;

    if (!first)
        return -1;
    if (h->frame_context[frame] == h->epoch_context)
        m->stamp = h->epoch_stamp;
    while (!(c->flags & CHAIN_END))
        c++;
    for (;; c--) {
        bool machinery = (c->flags & FRAME_MACHINERY) && !h->options->show_runtime;
        bool dropped = h->options->kernel == KERNEL_DROP && (c->flags & FRAME_KERNEL);

        m->has |= frame_has(c->flags, machinery, dropped);
        if (!dropped) {
            if (machinery)
                m->has |= HAS_SPLIT;
            add_frame(h, &show, c);
            if (!(m->has & HAS_SPLIT))
                hide = show;
            else if (!machinery)
                add_frame(h, &hide, c);
        }
        if (c == first)
            break;
    }
    m->has &= ~(uint32_t)(HAS_ROOTED | HAS_STOPPED | HAS_ROOTED_HIDE | HAS_STOPPED_HIDE);
    m->has |= (show.rooted ? HAS_ROOTED : 0u) | (show.stopped ? HAS_STOPPED : 0u) |
              (hide.rooted ? HAS_ROOTED_HIDE : 0u) | (hide.stopped ? HAS_STOPPED_HIDE : 0u);
    m->show = show.node;
    m->hide = hide.node;
    x->show = show.end;
    x->hide = hide.end;
    return 0;
}

static inline bool is_current(const struct shaper *h, const struct node_memo *m)
{
    return m->stamp == h->stamp || m->stamp == h->epoch_stamp;
}

/* Brings the memo of a stack up to date, from its nearest known prefix on. 0 or -1. */
static int follow(struct shaper *h, uint32_t stack)
{
    struct node_memo at = {.stamp = h->stamp, .show = h->root, .hide = h->root};
    struct node_extra extra = {0};
    size_t pending = 0;
    uint32_t id = stack;

    for (; id != SPOOL_NO_ID && !is_current(h, &h->memo[id]); id = h->nodes[id].prefix) {
        h->path = cli_grow(h->path, &h->path_capacity, pending, sizeof *h->path);
        h->path[pending++] = id;
    }
    if (pending == 0)
        return 0;
    if (id != SPOOL_NO_ID) {
        at = h->memo[id];
        if (h->extra)
            extra = h->extra[id];
    }
    while (pending > 0) {
        id = h->path[--pending];
        if (extend(h, h->nodes[id].frame, &at, &extra) < 0)
            return -1;
        h->memo[id] = at;
        if (h->extra)
            h->extra[id] = extra;
        if (h->misses)
            misses_visit(h->misses, id, h->nodes[id].prefix);
    }
    return 0;
}

/* --max-depth: the innermost frames of an output stack, below a root that says how many are left out. */
static uint32_t limit_depth(struct shaper *h, uint32_t node, uint32_t depth)
{
    uint32_t kept = h->options->max_depth, omitted = depth - kept;
    char name[64];

    for (uint32_t i = 0; i < kept; i++) {
        h->path = cli_grow(h->path, &h->path_capacity, i, sizeof *h->path);
        h->path[i] = h->tree->nodes[node].label;
        node = h->tree->nodes[node].parent;
    }
    /* One form for all numbers: it is looked for by scripts. */
    snprintf(name, sizeof name, "[%u frames omitted]", omitted);
    node = push_placeholder(h, h->root, name);
    for (uint32_t i = kept; i-- > 0;)
        node = push(h, node, h->path[i]);
    return node;
}

int shape_stack(struct shaper *h, uint32_t stack, uint32_t *node, uint32_t *has)
{
    const struct shape_options *o = h->options;
    const struct node_memo *m = &h->memo[stack];
    uint32_t matches, depth = 0;
    bool hide;

    if (follow(h, stack) < 0)
        return -1;
    *has = m->has;
    hide = (m->has & HAS_PYTHON) && (m->has & HAS_SPLIT);
    matches = hide ? HAS_FILTER : HAS_FILTER | HAS_FILTER_MACHINERY;
    if ((o->kernel == KERNEL_ONLY && !(m->has & HAS_KERNEL)) ||
        (o->has_frame_filter && !(m->has & matches)))
        return 0;
    *node = hide ? m->hide : m->show;
    if (o->has_max_depth)
        depth = hide ? h->extra[stack].hide.depth : h->extra[stack].show.depth;
    if (*node == h->root) {
        *node = push_placeholder(h, h->root, "[no frames]"); /* the sample still counts */
    } else if (depth > o->max_depth) {
        *node = limit_depth(h, *node, depth);
        *has |= WAS_LIMITED;
    }
    return 1;
}

/* ---- report ---- */

void shape_count(struct shaper *h, uint32_t stack, uint32_t has, uint64_t samples)
{
    h->report->samples += samples;
    if (!h->misses)
        return;
    misses_count(h->misses, stack, samples);
    if (h->stack_process[stack] == h->context)
        return;
    h->stack_process[stack] = h->context;
    h->report->stacks++;
    h->report->truncated_stacks += (has & SHAPE_HAS_TRUNCATED) != 0;
}

static uint32_t place_of(void *user, uint32_t node, enum sym_miss *reason)
{
    const struct shaper *h = user;
    uint32_t frame = h->nodes[node].frame;

    *reason = (enum sym_miss)h->frame_reason[frame];
    return h->frame_place[frame];
}

void shape_charge_misses(struct shaper *h)
{
    misses_charge(h->misses, h->nodes, place_of, h);
}
