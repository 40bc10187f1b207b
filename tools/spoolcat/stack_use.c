/* SPDX-License-Identifier: MIT */
/* Counting along the forest of recorded stacks, process by process. */
#include "stack_use.h"

#include <stdlib.h>

#include "cli.h"

/* A stack in a process. */
struct use {
    int32_t pid;
    uint32_t stack;
    uint32_t source; /* one of those that have it */
    uint64_t samples;
};

static int compare_uses(const void *a, const void *b)
{
    const struct use *left = a, *right = b;

    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    if (left->stack != right->stack)
        return left->stack < right->stack ? -1 : 1;
    return (left->source > right->source) - (left->source < right->source);
}

/* Ascending pid and stack, each pair once. */
static struct use *list_uses(const struct aggregate *a, size_t *count)
{
    struct use *uses = cli_realloc(NULL, a->cell_count, sizeof *uses);
    size_t kept = 0;

    for (size_t i = 0; i < a->cell_count; i++) {
        struct source source;

        names_get_source(a->names, a->cells[i].source, &source);
        uses[i] =
            (struct use){source.pid, a->cells[i].stack, a->cells[i].source, a->cells[i].count};
    }
    qsort(uses, a->cell_count, sizeof *uses, compare_uses);
    for (size_t i = 0; i < a->cell_count; i++) {
        if (kept > 0 && uses[kept - 1].pid == uses[i].pid &&
            uses[kept - 1].stack == uses[i].stack) {
            uses[kept - 1].samples += uses[i].samples;
            uses[kept - 1].source = uses[i].source;
        } else {
            uses[kept++] = uses[i];
        }
    }
    *count = kept;
    return uses;
}

/* What is known of a stack node while one process is looked at. */
struct node {
    uint64_t samples; /* whose stack contains it */
    uint32_t module;
    uint32_t child, sibling; /* among the nodes of this process */
    bool listed;
    bool used; /* by any process: is a sample's own stack */
};

struct counter {
    struct stack_use *use;
    struct spool_reader *reader;
    const struct spool_stack_node *tree;
    struct node *nodes;
    uint32_t *list; /* the nodes of this process */
    size_t list_size;
    uint32_t *open; /* by module: how many nodes of it lie on the way to the present node */
};

static int compare_ids(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* Lists the nodes of a stack that are not listed yet: the rest of its way to the root is. */
static void list_nodes(struct counter *c, uint32_t stack)
{
    for (uint32_t at = stack; at != SPOOL_NO_ID && !c->nodes[at].listed; at = c->tree[at].prefix) {
        c->nodes[at].listed = true;
        c->nodes[at].samples = 0;
        c->nodes[at].child = SPOOL_NO_ID;
        c->nodes[at].sibling = SPOOL_NO_ID;
        c->list[c->list_size++] = at;
    }
}

/* Adds up leaf to root (a prefix has the smaller id) and counts each node's frame. */
static int count_nodes(struct counter *c, int32_t pid)
{
    struct stack_use *u = c->use;

    for (size_t i = c->list_size; i-- > 0;) {
        uint32_t id = c->list[i], prefix = c->tree[id].prefix;
        struct node *node = &c->nodes[id];
        struct spool_frame frame;
        uint64_t rel;
        int rc = spool_reader_locate(c->reader, c->tree[id].frame, pid, &node->module, &rel);

        if (rc < 0) {
            cli_error("%s", spool_error_text(rc));
            return -1;
        }
        if (prefix != SPOOL_NO_ID) {
            c->nodes[prefix].samples += node->samples;
            node->sibling = c->nodes[prefix].child;
            c->nodes[prefix].child = id;
        }
        u->frames += node->samples;
        if (!spool_reader_frame(c->reader, c->tree[id].frame, &frame))
            continue;
        if (frame.kind == SPOOL_FRAME_TRUNCATED) {
            u->truncated_samples += node->samples;
            continue;
        }
        if (frame.kernel)
            u->kernel_frames += node->samples;
        if (frame.kind == SPOOL_FRAME_UNPINNED)
            u->unpinned_frames += node->samples;
        if (rc == 0 && !frame.kernel) /* kernel frames seldom have a module, and need none */
            u->unresolved_frames += node->samples;
    }
    return 0;
}

/* Walks the tree below a root: a module gets the samples of its rootmost nodes, so each sample
 * counts once for it, recursion or not. */
static void count_modules(struct counter *c, uint32_t root)
{
    uint32_t at = root;

    for (;;) {
        struct node *node = &c->nodes[at];

        if (node->module != SPOOL_NO_ID && c->open[node->module]++ == 0)
            c->use->module_samples[node->module] += node->samples;
        if (node->child != SPOOL_NO_ID) {
            at = node->child;
            continue;
        }
        for (;;) { /* leave it, and all that it was the last child of */
            node = &c->nodes[at];
            if (node->module != SPOOL_NO_ID)
                c->open[node->module]--;
            if (at == root)
                return;
            if (node->sibling != SPOOL_NO_ID) {
                at = node->sibling;
                break;
            }
            at = c->tree[at].prefix;
        }
    }
}

static int count_process(struct counter *c, const struct use *uses, size_t count)
{
    c->list_size = 0;
    for (size_t i = 0; i < count; i++) {
        struct spool_stack stack;

        list_nodes(c, uses[i].stack);
        c->nodes[uses[i].stack].samples += uses[i].samples;
        if (!c->nodes[uses[i].stack].used)
            c->use->distinct_stacks++;
        c->nodes[uses[i].stack].used = true;
        if (spool_reader_stack(c->reader, uses[i].stack, &stack) && stack.depth > c->use->max_depth)
            c->use->max_depth = stack.depth;
    }
    qsort(c->list, c->list_size, sizeof *c->list, compare_ids);
    if (count_nodes(c, uses[0].pid) != 0)
        return -1;
    for (size_t i = 0; i < c->list_size; i++) {
        c->nodes[c->list[i]].listed = false;
        if (c->tree[c->list[i]].prefix == SPOOL_NO_ID)
            count_modules(c, c->list[i]);
    }
    return 0;
}

int stack_use_count(struct stack_use *u, struct spool_reader *reader, const struct aggregate *a)
{
    struct counter c = {.use = u, .reader = reader, .tree = spool_reader_stack_nodes(reader)};
    struct spool_counts counts;
    size_t count, begin = 0;
    struct use *uses = list_uses(a, &count);
    int rc = 0;

    spool_reader_counts(reader, &counts);
    *u = (struct stack_use){.module_count = counts.modules};
    u->module_samples = cli_zeroed(counts.modules, sizeof *u->module_samples);
    c.nodes = cli_zeroed(counts.stacks, sizeof *c.nodes);
    c.list = cli_realloc(NULL, counts.stacks, sizeof *c.list);
    c.open = cli_zeroed(counts.modules, sizeof *c.open);
    for (size_t i = 1; i <= count && rc == 0; i++) {
        if (i < count && uses[i].pid == uses[begin].pid)
            continue;
        rc = count_process(&c, uses + begin, i - begin);
        begin = i;
    }
    free(c.nodes);
    free(c.list);
    free(c.open);
    free(uses);
    return rc;
}

void stack_use_free(struct stack_use *u)
{
    free(u->module_samples);
    *u = (struct stack_use){0};
}
