/* SPDX-License-Identifier: MIT */
/*
 * Writing the tree of output stacks as sorted lines. Lines compare as bytes, so among the children of a node a line
 * that ends there sorts by its name, and all lines that go on below it by the name with its `;`: two ranks a label,
 * and a walk over the tree yields the lines in order without ever comparing two of them.
 */
#include "folded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "labels.h"
#include "stacks.h"

struct folded {
    const struct folded_options *folded;
    struct tool_output *out;
    struct labels labels;
    struct stacks stacks;
    struct text_buffer text; /* scratch of one label */
    uint64_t line_weight;    /* with --timeline: of the line at hand */
    uint32_t *path;          /* scratch: labels of a line, leaf first */
    size_t path_capacity;
};

/* ---- labels ---- */

/* A frame that ends in a blank and a number would be read as a second count. */
static void protect_number(struct text_buffer *text)
{
    size_t i = text->size;
    bool point = false;

    while (i > 0 &&
           (text->data[i - 1] == '.' || (text->data[i - 1] >= '0' && text->data[i - 1] <= '9'))) {
        if (text->data[i - 1] == '.') {
            if (point)
                return;
            point = true;
        }
        i--;
    }
    if (i == text->size || i == 0 || text->data[i - 1] != ' ' || text->data[i] == '.')
        return;
    text->data[i - 1] = '_';
}

static void replace(struct text_buffer *text, size_t from, char old, char new)
{
    for (size_t i = from; i < text->size; i++)
        if (text->data[i] == old)
            text->data[i] = new;
}

static uint32_t intern(struct folded *f)
{
    replace(&f->text, 0, ';', ':');
    protect_number(&f->text);
    return labels_intern(&f->labels, f->text.data, f->text.size);
}

static const char *annotation(uint32_t flags)
{
    if (flags & FRAME_KERNEL)
        return "_[k]";
    if (flags & FRAME_INLINED)
        return "_[i]";
    return flags & FRAME_JIT ? "_[j]" : "";
}

/* The whole path: files of one name are many, and --trim-path makes it short. */
static void append_source(struct text_buffer *text, const struct out_frame *frame)
{
    if (!frame->file)
        return;
    text_printf(text, " (%s", frame->file);
    if (frame->line > 0)
        text_printf(text, ":%" PRIu32, frame->line);
    text_append_byte(text, ')');
}

static uint32_t frame_label(void *user, const struct out_frame *frame)
{
    struct folded *f = user;
    const struct folded_options *o = f->folded;

    f->text.size = 0;
    text_append(&f->text, frame->name, frame->name_size);
    if (o->with_modules && frame->module) {
        text_append(&f->text, " (", 2);
        text_append(&f->text, frame->module, frame->module_size);
        text_append_byte(&f->text, ')');
    }
    if (o->with_lines)
        append_source(&f->text, frame);
    if (o->with_addresses && !(frame->flags & FRAME_PLACEHOLDER))
        text_printf(&f->text, " 0x%" PRIx64, frame->abs);
    if (o->annotate) {
        const char *suffix = annotation(frame->flags);

        text_append(&f->text, suffix, strlen(suffix));
    }
    return intern(f);
}

/* One reader skips lines that begin with '#', another takes a file that begins with '{' for JSON. */
static uint32_t first_label(void *user, uint32_t label)
{
    struct folded *f = user;
    size_t size;
    const char *text = labels_text(&f->labels, label, &size);

    if (text[0] != '#' && text[0] != '{')
        return label;
    f->text.size = 0;
    text_append_byte(&f->text, '_');
    text_append(&f->text, text, size);
    return labels_intern(&f->labels, f->text.data, f->text.size);
}

/* Puts a clean name into f->text; all existing collapsers write blanks in root frames as '_'. */
static void begin_root(struct folded *f, const char *name, size_t size)
{
    f->text.size = 0;
    text_append_clean(&f->text, name, size);
    replace(&f->text, 0, ' ', '_');
}

static uint32_t push_root(struct folded *f, struct otree *tree, uint32_t parent)
{
    uint32_t label = intern(f);

    if (parent == OTREE_ROOT && !f->folded->reverse)
        label = first_label(f, label);
    return otree_child(tree, parent, label);
}

static uint32_t root_node(void *user, struct otree *tree, const struct source *source)
{
    struct folded *f = user;
    uint32_t node;

    if (f->folded->root == FOLDED_ROOT_NONE)
        return OTREE_ROOT;
    if (source->comm)
        begin_root(f, source->comm, source->comm_size);
    else
        begin_root(f, "[unknown]", strlen("[unknown]"));
    if (f->folded->root != FOLDED_ROOT_PROCESS)
        text_printf(&f->text, "-%" PRId32, source->pid);
    node = push_root(f, tree, OTREE_ROOT);
    if (f->folded->root != FOLDED_ROOT_THREAD)
        return node;
    f->text.size = 0;
    if (source->thread) {
        begin_root(f, source->thread, source->thread_size);
        text_append_byte(&f->text, '-');
    }
    text_printf(&f->text, "%" PRIu64, source->tid);
    return push_root(f, tree, node);
}

/* ---- lines ---- */

static void write_count(struct folded *f, uint64_t weight)
{
    if (f->folded->time)
        weight = weight < 1000 ? 1 : weight / 1000;
    output_byte(f->out, ' ');
    output_u64(f->out, weight);
    output_byte(f->out, '\n');
}

static void write_label(struct folded *f, uint32_t label)
{
    size_t size;
    const char *text = labels_text(&f->labels, label, &size);

    output_write(f->out, text, size);
}

static void write_line(struct folded *f, uint32_t node, uint64_t weight)
{
    const struct otree_node *nodes = f->stacks.tree.nodes;
    size_t n = 0;

    for (; node != OTREE_ROOT; node = nodes[node].parent) {
        f->path = cli_grow(f->path, &f->path_capacity, n, sizeof *f->path);
        f->path[n++] = nodes[node].label;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t label = f->folded->reverse ? f->path[i] : f->path[n - 1 - i];

        if (i > 0)
            output_byte(f->out, ';');
        else if (f->folded->reverse)
            label = first_label(f, label);
        write_label(f, label);
    }
    write_count(f, weight);
}

/* ---- time order ---- */

/* Adds a run to the line at hand. 0, or -1 after an error message. */
static int add_run(struct folded *f, const struct stacks_thread *thread,
                   const struct stacks_run *run)
{
    uint64_t unit = f->folded->time ? thread->input->interval_ns : 1, weight;

    if (!__builtin_mul_overflow((uint64_t)run->count, unit, &weight) &&
        !__builtin_add_overflow(weight, f->line_weight, &f->line_weight))
        return 0;
    cli_error("the sum of sample times exceeds 2^63-1 ns");
    return -1;
}

/* One line a run of equal output stacks. */
static int write_thread(struct folded *f, const struct stacks_thread *thread)
{
    struct stacks_walk walk;
    struct stacks_run run;
    uint32_t node = UINT32_MAX;
    int rc = stacks_walk_begin(&walk, &f->stacks, thread);

    f->line_weight = 0;
    while (rc == 0 && !output_failed(f->out) && stacks_walk_next(&walk, &run)) {
        if (run.node != node) {
            if (f->line_weight > 0)
                write_line(f, node, f->line_weight);
            f->line_weight = 0;
            node = run.node;
        }
        rc = add_run(f, thread, &run);
    }
    stacks_walk_end(&walk);
    if (rc == 0 && f->line_weight > 0)
        write_line(f, node, f->line_weight);
    return rc;
}

static int write_timeline(struct folded *f)
{
    size_t count;
    struct stacks_thread *threads = stacks_threads(&f->stacks, &count);
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = write_thread(f, &threads[i]);
    free(threads);
    return rc;
}

/* ---- sorted output ---- */

/* A line that ends in a node, or all lines that go on below it. */
struct item {
    uint32_t rank;
    uint32_t node;
    size_t path_size; /* of the text in front of the node's own */
};

struct sorter {
    const struct otree *tree;
    const uint32_t *ranks; /* by 2 x label, and + 1 for the lines below */
    uint32_t *child_begin; /* by node: its first place in children; one more at the end */
    uint32_t *children;    /* those with a line in or below them */
    struct item *items;    /* a stack of what is still to be written, next on top */
    size_t item_count, item_capacity;
    struct text_buffer path;
};

/* Lists, for each node, the children that lead to a line. A child's number is above its parent's. */
static void list_children(struct sorter *s)
{
    const struct otree *t = s->tree;
    uint8_t *live = cli_realloc(NULL, t->count, 1);
    uint32_t *next;

    s->child_begin = cli_realloc(NULL, (size_t)t->count + 1, sizeof *s->child_begin);
    memset(s->child_begin, 0, ((size_t)t->count + 1) * sizeof *s->child_begin);
    memset(live, 0, t->count);
    for (uint32_t id = t->count; id-- > 1;) {
        live[id] |= t->weights[id] > 0;
        if (live[id]) {
            live[t->nodes[id].parent] = 1;
            s->child_begin[t->nodes[id].parent + 1]++;
        }
    }
    for (uint32_t id = 0; id < t->count; id++)
        s->child_begin[id + 1] += s->child_begin[id];
    s->children = cli_realloc(NULL, s->child_begin[t->count] + (size_t)1, sizeof *s->children);
    next = cli_realloc(NULL, t->count, sizeof *next);
    memcpy(next, s->child_begin, t->count * sizeof *next);
    for (uint32_t id = 1; id < t->count; id++)
        if (live[id])
            s->children[next[t->nodes[id].parent]++] = id;
    free(next);
    free(live);
}

static int by_falling_rank(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    return (x->rank < y->rank) - (x->rank > y->rank);
}

/* Most nodes have a child or two; qsort is for the few with many. */
static void sort_items(struct item *items, size_t count)
{
    if (count > 16) {
        qsort(items, count, sizeof *items, by_falling_rank);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct item moved = items[i];
        size_t j = i;

        for (; j > 0 && items[j - 1].rank < moved.rank; j--)
            items[j] = items[j - 1];
        items[j] = moved;
    }
}

/* Puts the lines in and below the children of a node onto the stack of items, the first on top. */
static void expand(struct sorter *s, uint32_t node)
{
    size_t begin = s->item_count,
           most = 2 * (size_t)(s->child_begin[node + 1] - s->child_begin[node]);

    if (s->item_count + most > s->item_capacity) {
        while (s->item_count + most > s->item_capacity)
            s->item_capacity = s->item_capacity ? s->item_capacity * 2 : 1024;
        s->items = cli_realloc(s->items, s->item_capacity, sizeof *s->items);
    }
    for (uint32_t i = s->child_begin[node]; i < s->child_begin[node + 1]; i++) {
        uint32_t child = s->children[i];
        uint32_t label = s->tree->nodes[child].label;

        if (s->tree->weights[child] > 0)
            s->items[s->item_count++] = (struct item){
                .rank = s->ranks[2 * (size_t)label], .node = child, .path_size = s->path.size};
        if (s->child_begin[child + 1] > s->child_begin[child])
            s->items[s->item_count++] = (struct item){
                .rank = s->ranks[2 * (size_t)label + 1], .node = child, .path_size = s->path.size};
    }
    if (s->item_count > begin)
        sort_items(s->items + begin, s->item_count - begin);
}

static void write_sorted(struct folded *f, const struct otree *tree)
{
    uint32_t *ranks = labels_rank(&f->labels);
    struct sorter s = {.tree = tree, .ranks = ranks};

    list_children(&s);
    expand(&s, OTREE_ROOT);
    while (s.item_count > 0 && !output_failed(f->out)) {
        struct item item = s.items[--s.item_count];
        uint32_t label = tree->nodes[item.node].label;
        size_t size;
        const char *text = labels_text(&f->labels, label, &size);

        s.path.size = item.path_size;
        text_append(&s.path, text, size);
        if (item.rank == ranks[2 * (size_t)label]) {
            output_write(f->out, s.path.data, s.path.size);
            write_count(f, tree->weights[item.node]);
        } else {
            text_append_byte(&s.path, ';');
            expand(&s, item.node);
        }
    }
    free(ranks);
    free(s.child_begin);
    free(s.children);
    free(s.items);
    text_free(&s.path);
}

/* --reverse: the same stacks, leaf first, root frames last. */
static void write_reversed(struct folded *f)
{
    const struct otree *tree = &f->stacks.tree;
    struct otree reversed;

    otree_init(&reversed);
    otree_allow(&reversed, tree->count);
    for (uint32_t id = 1; id < tree->count; id++) {
        uint32_t node = OTREE_ROOT;

        if (tree->weights[id] == 0)
            continue;
        for (uint32_t at = id; at != OTREE_ROOT; at = tree->nodes[at].parent) {
            uint32_t label = tree->nodes[at].label;

            if (node == OTREE_ROOT)
                label = first_label(f, label);
            node = otree_child(&reversed, node, label);
        }
        otree_add(&reversed, node, tree->weights[id]);
    }
    write_sorted(f, &reversed);
    otree_free(&reversed);
}

/* ---- API ---- */

int folded_convert(const struct tool_options *options, const struct folded_options *folded,
                   struct tool_output *out)
{
    struct folded f = {.folded = folded, .out = out};
    struct stacks_hooks hooks = {
        .user = &f,
        .label = frame_label,
        .root = root_node,
        .first_label = folded->reverse ? NULL : first_label,
    };
    struct stacks_options how = {
        .weight = folded->time ? STACKS_TIME_NS : STACKS_SAMPLES,
        .per_thread = folded->root == FOLDED_ROOT_THREAD,
        .runs = folded->timeline ? AGGREGATE_RUNS : AGGREGATE_NO_RUNS,
    };
    int rc;

    labels_init(&f.labels);
    rc = stacks_init(&f.stacks, options, &hooks, &how);
    if (rc == 0)
        rc = stacks_run(&f.stacks);
    if (rc == 0 && folded->timeline) {
        rc = write_timeline(&f);
    } else if (rc == 0) {
        if (folded->reverse)
            write_reversed(&f);
        else
            write_sorted(&f, &f.stacks.tree);
    }
    if (rc == 0)
        stacks_print_report(&f.stacks);
    stacks_free(&f.stacks);
    labels_free(&f.labels);
    text_free(&f.text);
    free(f.path);
    return rc;
}
