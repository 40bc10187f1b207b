/* SPDX-License-Identifier: MIT */
/*
 * From counted stacks to the tree of output stacks. The stack nodes of a spool are a forest of shared prefixes
 * already, so a node's output stack is its prefix's with its own frames added, and each node is visited once a source.
 * Options that look at a whole stack (filters, cuts at a match, a depth limit) take a slower way, stack by stack.
 */
#include "stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "report.h"

#define NOTHING UINT32_MAX
#define CHAIN_END (1u << 31) /* flag of the outermost frame of a chain */

/* Contexts of frame_context: chains of frames that are the same in every process, and none yet. */
#define CONTEXT_NONE 0u
#define CONTEXT_SHARED 1u
#define CONTEXT_FIRST 2u

enum { HAS_KERNEL = 1, HAS_PYTHON = 2, HAS_MACHINERY = 4, HAS_TRUNCATED = 8 };

/* An output frame as the tree needs it. */
struct shaped {
    uint32_t label;
    uint32_t flags; /* FRAME_*, CHAIN_END */
    uint32_t
        miss_module; /* its module when it has no name (SPOOL_NO_ID - 1: the kernel), else SPOOL_NO_ID */
};

#define MISS_KERNEL (SPOOL_NO_ID - 1)

/* Where a stack node leads in the source at hand. */
struct node_memo {
    uint32_t stamp;
    uint32_t show; /* with all frames */
    uint32_t hide; /* without the interpreter's own */
    uint32_t has;  /* HAS_* of the whole stack */
};

struct stacks_file {
    struct tool_input input;
    struct spool_reader *reader; /* the input's */
    struct aggregate aggregate;
    const struct spool_stack_node *nodes;
    uint64_t unit; /* weight of a sample */

    struct shaped *chains; /* innermost first, the last of each with CHAIN_END */
    size_t chain_count, chain_capacity;
    uint32_t *frame_chain;   /* by frame: index into chains */
    uint32_t *frame_context; /* by frame: the context in which frame_chain is right */
    uint32_t context;
    struct source source;
    uint32_t root; /* node of the source's root frames */

    struct node_memo *memo; /* by stack node */
    uint32_t stamp;
    uint32_t *path; /* scratch: nodes to visit */
    size_t path_capacity;
    struct shaped *flat; /* scratch: a whole stack, leaf first */
    size_t flat_capacity;

    uint32_t *final;   /* with timeline, by stack: the output node, NOTHING: deselected */
    uint32_t run_node; /* the run not handed out yet */
    uint64_t run_weight;

    struct input_report report;
    uint64_t *miss_samples; /* with --verbose, by module; the kernel behind the last */
    uint32_t *miss_stamp;
    size_t miss_count;
};

int stacks_init(struct stacks *s, const struct tool_options *options,
                const struct stacks_hooks *hooks, enum stacks_weight weight, bool per_thread,
                bool timeline)
{
    memset(s, 0, sizeof *s);
    s->options = options;
    s->hooks = *hooks;
    s->weight = weight;
    s->per_thread = per_thread || timeline || options->select.thread_globs.count > 0;
    s->timeline = timeline;
    otree_init(&s->tree);
    s->symbols = symbols_new(&options->symbols, options->shape.demangle);
    return s->symbols ? 0 : -1;
}

void stacks_free(struct stacks *s)
{
    symbols_free(s->symbols);
    otree_free(&s->tree);
    frame_names_free(&s->frame_names);
    text_free(&s->report_lines);
}

/* ---- frames ---- */

static void count_origin(struct input_report *r, const struct out_frame *f)
{
    r->frames++;
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

static uint32_t miss_module(const struct resolved *r, const struct out_frame *f)
{
    if (f->flags & (FRAME_NAMED | FRAME_PLACEHOLDER))
        return SPOOL_NO_ID;
    if (r->module_id != SPOOL_NO_ID)
        return r->module_id;
    return r->kernel ? MISS_KERNEL : SPOOL_NO_ID;
}

/* Makes the chain of a frame known in the present context. 0 or -1. */
static int make_chain(struct stacks *s, struct stacks_file *f, uint32_t frame)
{
    struct resolved r;
    size_t count;

    if (symbols_resolve(s->symbols, frame, &f->source, &r) < 0)
        return -1;
    count = frames_count(&r);
    if (count > NOTHING - f->chain_count) {
        cli_error("%s: more than 2^32-2 frames", f->input.name);
        return -1;
    }
    if (f->chain_count + count > f->chain_capacity) {
        while (f->chain_count + count > f->chain_capacity)
            f->chain_capacity = f->chain_capacity ? f->chain_capacity * 2 : 1024;
        f->chains = cli_realloc(f->chains, f->chain_capacity, sizeof *f->chains);
    }
    f->frame_chain[frame] = (uint32_t)f->chain_count;
    f->frame_context[frame] = r.per_process ? f->context : CONTEXT_SHARED;
    for (size_t i = 0; i < count; i++) {
        struct out_frame out;
        struct shaped *shaped = &f->chains[f->chain_count++];

        frames_name(&s->frame_names, &r, i, &s->options->shape, &out);
        shaped->label = s->hooks.label(s->hooks.user, &out);
        shaped->flags = out.flags;
        shaped->miss_module = miss_module(&r, &out);
        if (i + 1 == count) {
            shaped->flags |= CHAIN_END;
            if (!r.truncated)
                count_origin(&f->report, &out);
        }
    }
    return 0;
}

/* Index of the chain of a frame, NOTHING after an error. */
static inline uint32_t chain_of(struct stacks *s, struct stacks_file *f, uint32_t frame)
{
    uint32_t context = f->frame_context[frame];

    if (context != CONTEXT_SHARED && context != f->context && make_chain(s, f, frame) < 0)
        return NOTHING;
    return f->frame_chain[frame];
}

static inline uint32_t flags_to_has(uint32_t flags)
{
    return (flags & FRAME_KERNEL ? HAS_KERNEL : 0u) | (flags & FRAME_PYTHON ? HAS_PYTHON : 0u) |
           (flags & FRAME_MACHINERY ? HAS_MACHINERY : 0u) |
           (flags & FRAME_TRUNCATED ? HAS_TRUNCATED : 0u);
}

/* ---- tree ---- */

static uint32_t push(struct stacks *s, const struct stacks_file *f, uint32_t parent, uint32_t label)
{
    uint32_t here = label;

    if (s->options->shape.fold_recursion && parent != f->root) {
        const struct otree_node *n = &s->tree.nodes[parent];
        uint32_t above = label;

        if (n->parent == OTREE_ROOT && s->hooks.first_label)
            above = s->hooks.first_label(s->hooks.user, label);
        if (n->label == above)
            return parent;
    }
    if (parent == OTREE_ROOT && s->hooks.first_label)
        here = s->hooks.first_label(s->hooks.user, label);
    return otree_child(&s->tree, parent, here);
}

static uint32_t push_placeholder(struct stacks *s, const struct stacks_file *f, uint32_t parent,
                                 const char *name)
{
    struct out_frame out;

    frames_placeholder(&s->frame_names, name, &s->options->shape, &out);
    return push(s, f, parent, s->hooks.label(s->hooks.user, &out));
}

/* A sample whose stack ends up empty still counts. */
static uint32_t or_no_frames(struct stacks *s, const struct stacks_file *f, uint32_t node)
{
    return node == f->root ? push_placeholder(s, f, node, "[no frames]") : node;
}

/* Adds the frames of one stack node below its prefix's. */
static int extend(struct stacks *s, struct stacks_file *f, struct node_memo *m, uint32_t frame)
{
    bool drop_kernel = s->options->shape.kernel == KERNEL_DROP;
    bool hide = !s->options->shape.show_runtime;
    uint32_t begin = chain_of(s, f, frame), i = begin;

    if (begin == NOTHING)
        return -1;
    while (!(f->chains[i].flags & CHAIN_END))
        i++;
    for (;; i--) {
        const struct shaped *c = &f->chains[i];

        m->has |= flags_to_has(c->flags);
        if (!drop_kernel || !(c->flags & FRAME_KERNEL)) {
            uint32_t before = m->show;

            m->show = push(s, f, before, c->label);
            if (!hide || m->hide == before)
                m->hide = c->flags & FRAME_MACHINERY && hide ? m->hide : m->show;
            else if (!(c->flags & FRAME_MACHINERY))
                m->hide = push(s, f, m->hide, c->label);
        }
        if (i == begin)
            return 0;
    }
}

static void reserve_path(struct stacks_file *f, size_t count)
{
    if (count < f->path_capacity)
        return;
    f->path_capacity = f->path_capacity ? f->path_capacity * 2 : 256;
    f->path = cli_realloc(f->path, f->path_capacity, sizeof *f->path);
}

/* The output node of a stack by way of its prefixes: NOTHING after an error. *has gets what the stack holds. */
static uint32_t by_prefix(struct stacks *s, struct stacks_file *f, uint32_t stack, uint32_t *has)
{
    struct node_memo at = {.stamp = f->stamp, .show = f->root, .hide = f->root};
    size_t depth = 0;
    uint32_t id = stack;

    for (; id != SPOOL_NO_ID && f->memo[id].stamp != f->stamp; id = f->nodes[id].prefix) {
        reserve_path(f, depth);
        f->path[depth++] = id;
    }
    if (id != SPOOL_NO_ID)
        at = f->memo[id];
    while (depth > 0) {
        id = f->path[--depth];
        if (extend(s, f, &at, f->nodes[id].frame) < 0)
            return NOTHING;
        f->memo[id] = at;
    }
    *has = at.has;
    if (!s->options->shape.show_runtime && (at.has & HAS_PYTHON) && (at.has & HAS_MACHINERY))
        return or_no_frames(s, f, at.hide);
    return or_no_frames(s, f, at.show);
}

/* ---- shaping a whole stack ---- */

static void reserve_flat(struct stacks_file *f, size_t count)
{
    if (count < f->flat_capacity)
        return;
    f->flat_capacity = f->flat_capacity ? f->flat_capacity * 2 : 256;
    f->flat = cli_realloc(f->flat, f->flat_capacity, sizeof *f->flat);
}

/* Puts the output frames of a stack into f->flat, leaf first. Returns their number, SIZE_MAX after an error. */
static size_t flatten(struct stacks *s, struct stacks_file *f, uint32_t stack, uint32_t *has)
{
    size_t n = 0;

    for (uint32_t id = stack; id != SPOOL_NO_ID; id = f->nodes[id].prefix) {
        uint32_t i = chain_of(s, f, f->nodes[id].frame);

        if (i == NOTHING)
            return SIZE_MAX;
        for (;; i++) {
            reserve_flat(f, n);
            f->flat[n++] = f->chains[i];
            *has |= flags_to_has(f->chains[i].flags);
            if (f->chains[i].flags & CHAIN_END)
                break;
        }
    }
    return n;
}

/* Drops what --kernel=drop and --runtime=hide take away. */
static size_t drop_frames(const struct stacks *s, struct stacks_file *f, size_t n, uint32_t has)
{
    uint32_t dropped = s->options->shape.kernel == KERNEL_DROP ? FRAME_KERNEL : 0;
    size_t kept = 0;

    if (!s->options->shape.show_runtime && (has & HAS_PYTHON))
        dropped |= FRAME_MACHINERY;
    for (size_t i = 0; i < n; i++)
        if (!(f->flat[i].flags & dropped))
            f->flat[kept++] = f->flat[i];
    return kept;
}

/* Index of the outermost frame with the flag; n when there is none. */
static size_t outermost(const struct stacks_file *f, size_t n, uint32_t flag)
{
    for (size_t i = n; i-- > 0;)
        if (f->flat[i].flags & flag)
            return i;
    return n;
}

/* Adjacent equal frames become one; here, because --max-depth counts what is left. */
static size_t fold_recursion(struct stacks_file *f, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (kept == 0 || f->flat[i].label != f->flat[kept - 1].label)
            f->flat[kept++] = f->flat[i];
    return kept;
}

/* The output node of a stack under the options that look at whole stacks: NOTHING after an error or when *selected
 * became false. */
static uint32_t by_stack(struct stacks *s, struct stacks_file *f, uint32_t stack, uint32_t *has,
                         bool *selected)
{
    const struct shape_options *shape = &s->options->shape;
    size_t begin = 0, end, found, omitted = 0;
    uint32_t node = f->root;

    end = flatten(s, f, stack, has);
    if (end == SIZE_MAX)
        return NOTHING;
    end = drop_frames(s, f, end, *has);
    if (shape->has_frame_filter && outermost(f, end, FRAME_FILTER) == end) {
        *selected = false;
        return NOTHING;
    }
    if (shape->has_root_at && (found = outermost(f, end, FRAME_ROOT_AT)) < end)
        end = found + 1;
    if (shape->has_skip_below && (found = outermost(f, end, FRAME_SKIP_BELOW)) < end)
        begin = found;
    if (begin > 0)
        memmove(f->flat, f->flat + begin, (end - begin) * sizeof *f->flat);
    end -= begin;
    if (shape->fold_recursion)
        end = fold_recursion(f, end);
    if (shape->has_max_depth && end > shape->max_depth) {
        omitted = end - shape->max_depth;
        end = shape->max_depth;
    }
    if (omitted > 0) {
        char name[64];

        snprintf(name, sizeof name, "[%zu frame%s omitted]", omitted, omitted == 1 ? "" : "s");
        node = push_placeholder(s, f, node, name);
    }
    for (size_t i = end; i-- > 0;)
        node = push(s, f, node, f->flat[i].label);
    return or_no_frames(s, f, node);
}

/* ---- one source ---- */

/* Charges the samples of a stack to each module of it that lacks a name. */
static void charge_misses(struct stacks *s, struct stacks_file *f, const struct cell *cell,
                          uint32_t stamp)
{
    for (uint32_t id = cell->stack; id != SPOOL_NO_ID; id = f->nodes[id].prefix) {
        uint32_t i = chain_of(s, f, f->nodes[id].frame);

        for (; i != NOTHING; i++) {
            uint32_t module = f->chains[i].miss_module;
            size_t index = module == MISS_KERNEL ? f->miss_count - 1 : module;

            if (module != SPOOL_NO_ID && f->miss_stamp[index] != stamp) {
                f->miss_stamp[index] = stamp;
                f->miss_samples[index] += cell->count;
            }
            if (f->chains[i].flags & CHAIN_END)
                break;
        }
    }
}

static int add_cell(struct stacks *s, struct stacks_file *f, const struct cell *cell, bool whole)
{
    uint64_t weight;
    uint32_t has = 0, node;
    bool selected = true;

    node =
        whole ? by_stack(s, f, cell->stack, &has, &selected) : by_prefix(s, f, cell->stack, &has);
    if (selected && node == NOTHING)
        return -1;
    if (s->options->shape.kernel == KERNEL_ONLY && !(has & HAS_KERNEL))
        selected = false;
    if (f->final)
        f->final[cell->stack] = selected ? node : NOTHING;
    if (!selected)
        return 0;
    if (__builtin_mul_overflow(cell->count, f->unit, &weight))
        weight = UINT64_MAX;
    otree_add(&s->tree, node, weight);
    f->report.samples += cell->count;
    f->report.stacks++;
    f->report.truncated_stacks += (has & HAS_TRUNCATED) != 0;
    if (f->miss_samples)
        charge_misses(s, f, cell, (uint32_t)f->report.stacks);
    return 0;
}

struct run_visit {
    struct stacks *s;
    struct stacks_file *f;
};

static void hand_out_run(struct stacks *s, struct stacks_file *f)
{
    if (f->run_node != NOTHING)
        s->hooks.run(s->hooks.user, f->run_node, f->run_weight);
    f->run_node = NOTHING;
    f->run_weight = 0;
}

static void visit_run(void *user, const struct run *run)
{
    const struct run_visit *v = user;
    uint32_t node = v->f->final[run->stack];
    uint64_t weight = 0;

    if (node == NOTHING)
        return;
    if (__builtin_mul_overflow((uint64_t)run->count, v->f->unit, &weight) ||
        __builtin_add_overflow(v->f->run_node == node ? v->f->run_weight : 0, weight, &weight)) {
        v->s->tree.overflow = true;
        return;
    }
    if (v->f->run_node != node)
        hand_out_run(v->s, v->f);
    v->f->run_node = node;
    v->f->run_weight = weight;
}

static bool needs_whole_stacks(const struct shape_options *shape)
{
    return shape->has_frame_filter || shape->has_root_at || shape->has_skip_below ||
           shape->has_max_depth;
}

static int add_source(struct stacks *s, struct stacks_file *f, uint32_t source, size_t begin,
                      size_t end)
{
    bool whole = needs_whole_stacks(&s->options->shape);

    f->root = s->hooks.root(s->hooks.user, &s->tree, &f->source);
    f->stamp++;
    for (size_t i = begin; i < end; i++)
        if (add_cell(s, f, &f->aggregate.cells[i], whole) < 0)
            return -1;
    if (s->timeline) {
        struct run_visit visit = {.s = s, .f = f};

        if (runs_visit(f->aggregate.runs, source, visit_run, &visit) < 0)
            return -1;
    }
    return 0;
}

/* A source and its cells, in the order of processing. */
struct source_cells {
    uint32_t source;
    int32_t pid;
    uint64_t tid;
    bool python;
    uint64_t first_ns; /* with timeline: of the source ... */
    uint64_t
        thread_first_ns; /* ... and of its thread, which is several sources when names changed */
    size_t begin, end;
};

/* Sources of one process behind each other, so that its frames are resolved once. */
static int by_process(const void *a, const void *b)
{
    const struct source_cells *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->python != y->python)
        return x->python ? 1 : -1;
    return (x->source > y->source) - (x->source < y->source);
}

static bool same_thread(const struct source_cells *x, const struct source_cells *y)
{
    return x->pid == y->pid && x->tid == y->tid;
}

static int by_thread(const void *a, const void *b)
{
    const struct source_cells *x = a, *y = b;

    if (x->thread_first_ns != y->thread_first_ns)
        return x->thread_first_ns < y->thread_first_ns ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

/* Threads by their first sample, the sources of a thread behind each other. */
static void sort_by_thread(struct source_cells *list, size_t count)
{
    qsort(list, count, sizeof *list,
          by_thread); /* no thread has a time yet: by thread, then time */
    for (size_t i = 0; i < count; i++)
        list[i].thread_first_ns = i > 0 && same_thread(&list[i], &list[i - 1])
                                      ? list[i - 1].thread_first_ns
                                      : list[i].first_ns;
    qsort(list, count, sizeof *list, by_thread);
}

static struct source_cells *order_sources(const struct stacks *s, const struct stacks_file *f,
                                          size_t *count)
{
    const struct aggregate *a = &f->aggregate;
    struct source_cells *list = NULL;
    size_t n = 0, capacity = 0;

    for (size_t i = 0; i < a->cell_count;) {
        uint32_t source = a->cells[i].source;
        struct source who;

        if (n == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            list = cli_realloc(list, capacity, sizeof *list);
        }
        names_get_source(a->names, source, &who);
        list[n] = (struct source_cells){
            .source = source, .pid = who.pid, .tid = who.tid, .python = who.python, .begin = i};
        if (s->timeline)
            list[n].first_ns = runs_first_ns(a->runs, source);
        while (i < a->cell_count && a->cells[i].source == source)
            i++;
        list[n++].end = i;
    }
    if (n > 1 && s->timeline)
        sort_by_thread(list, n);
    else if (n > 1)
        qsort(list, n, sizeof *list, by_process);
    *count = n;
    return list;
}

static int add_sources(struct stacks *s, struct stacks_file *f)
{
    size_t count;
    struct source_cells *list = order_sources(s, f, &count);
    int rc = 0;

    f->context = CONTEXT_FIRST;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (i > 0 && (list[i].pid != list[i - 1].pid || list[i].python != list[i - 1].python))
            f->context++;
        names_get_source(f->aggregate.names, list[i].source, &f->source);
        rc = add_source(s, f, list[i].source, list[i].begin, list[i].end);
        if (rc == 0 && (i + 1 == count || !same_thread(&list[i], &list[i + 1])))
            hand_out_run(s, f);
    }
    free(list);
    return rc;
}

/* ---- one input ---- */

static void *zeroed(size_t count, size_t size_bytes)
{
    void *p = cli_realloc(NULL, count ? count : 1, size_bytes);

    return memset(p, 0, (count ? count : 1) * size_bytes);
}

static void prepare(struct stacks *s, struct stacks_file *f)
{
    struct spool_counts counts;

    spool_reader_counts(f->reader, &counts);
    f->nodes = spool_reader_stack_nodes(f->reader);
    f->frame_chain = zeroed(counts.frames, sizeof *f->frame_chain);
    f->frame_context = zeroed(counts.frames, sizeof *f->frame_context);
    f->run_node = NOTHING;
    if (!needs_whole_stacks(&s->options->shape))
        f->memo = zeroed(counts.stacks, sizeof *f->memo);
    if (s->timeline)
        f->final = zeroed(counts.stacks, sizeof *f->final);
    if (s->options->verbose) {
        f->miss_count = (size_t)counts.modules + 1;
        f->miss_samples = zeroed(f->miss_count, sizeof *f->miss_samples);
        f->miss_stamp = zeroed(f->miss_count, sizeof *f->miss_stamp);
    }
}

static void report(struct stacks *s, struct stacks_file *f)
{
    const char *kernel;

    if (!s->options->verbose)
        return;
    report_input(&s->report_lines, &f->input, &f->aggregate, &f->report);
    if (s->options->symbols.no_symbols)
        return;
    for (uint32_t id = 0; id + 1 < f->miss_count; id++) {
        const struct spool_module *m = spool_reader_module(f->reader, id);
        const char *why, *detail;

        if (!m || f->miss_samples[id] == 0)
            continue;
        why = symbols_miss_text(s->symbols, id, &detail);
        report_miss(&s->report_lines, m->path, m->path_size, why, detail, f->miss_samples[id]);
    }
    kernel = symbols_kernel_text(s->symbols);
    if (f->miss_samples[f->miss_count - 1] > 0)
        report_miss(&s->report_lines, "[kernel.kallsyms]", strlen("[kernel.kallsyms]"),
                    kernel ? kernel : sym_miss_text(SYM_MISS_NO_SYMBOL), "",
                    f->miss_samples[f->miss_count - 1]);
}

static void free_file(struct stacks_file *f)
{
    inputs_close(&f->input);
    aggregate_free(&f->aggregate);
    free(f->chains);
    free(f->frame_chain);
    free(f->frame_context);
    free(f->memo);
    free(f->path);
    free(f->flat);
    free(f->final);
    free(f->miss_samples);
    free(f->miss_stamp);
}

static int set_unit(struct stacks *s, struct stacks_file *f)
{
    f->unit = 1;
    if (s->weight == STACKS_SAMPLES)
        return 0;
    f->unit = spool_reader_header(f->reader)->interval_ns;
    if (f->unit > 0)
        return 0;
    cli_error(
        "%s: states no sample interval, so samples have no time (--weight=samples counts them)",
        f->input.name);
    return -1;
}

/* Reads an input to its end and counts its stacks. */
static int read_input(struct stacks *s, struct stacks_file *f, struct progress *progress)
{
    struct aggregate_options options = {
        .per_thread = s->per_thread,
        .runs = s->timeline,
        .select = &s->options->select,
    };
    int rc;

    if (set_unit(s, f) < 0)
        return -1;
    rc = aggregate_read(&f->aggregate, &options, &f->input, progress);
    if (inputs_finish(&f->input, rc, s->options) == INPUT_FAILED)
        return -1;
    return aggregate_finish(&f->aggregate);
}

/* Adds what read_input counted to the tree. */
static int add_input(struct stacks *s, struct stacks_file *f)
{
    const struct aggregate *a = &f->aggregate;

    if (symbols_begin(s->symbols, f->reader, &a->notes, a->names, a->file_first_ns) < 0)
        return -1;
    prepare(s, f);
    if (add_sources(s, f) < 0)
        return -1;
    if (s->tree.overflow) {
        cli_error("%s: the sum of sample times exceeds 2^63-1 ns", f->input.name);
        return -1;
    }
    report(s, f);
    return 0;
}

int stacks_run(struct stacks *s)
{
    const struct tool_options *o = s->options;
    struct stacks_file *files = zeroed(o->input_count, sizeof *files);
    struct progress progress;
    size_t opened = 0, added = 0;
    int rc = 0;

    progress_begin(&progress, o);
    while (rc == 0 && opened < o->input_count) {
        struct stacks_file *f = &files[opened];

        rc = inputs_open(o->inputs[opened], &f->input);
        if (rc < 0)
            break;
        opened++;
        f->reader = f->input.reader;
        progress_input(&progress, &f->input);
        rc = read_input(s, f, &progress);
        progress_input_end(&progress);
        /* A timeline is written while inputs are added: all of them must have been found good before. */
        if (rc == 0 && !s->timeline) {
            rc = add_input(s, f);
            free_file(f);
            added++;
        }
    }
    progress_end(&progress);
    for (; added < opened; added++) {
        if (rc == 0)
            rc = add_input(s, &files[added]);
        free_file(&files[added]);
    }
    free(files);
    return rc;
}

void stacks_print_report(const struct stacks *s)
{
    if (s->options->verbose)
        report_print(&s->report_lines);
}
