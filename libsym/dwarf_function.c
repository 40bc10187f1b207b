/* SPDX-License-Identifier: MIT */
/* Passes over a unit's entries: one for functions, and one for what is inlined in a function. Depth is counted, never
 * recursed into. */
#include "dwarf_function.h"

#include "dwarf_numbers.h"

#include <stdlib.h>

#define RUN 8 /* ranges that are sorted by insertion, before they are merged */

/* A function may be read once for itself and once for each function it is in. More often than this is no real unit. */
#define MAX_PASSES 64

/* ---- ranges that were found ---- */

struct found_range {
    uint64_t start, end;
    uint32_t owner;
};

struct found {
    struct found_range *items;
    size_t count, capacity;
    bool unsorted;
    struct found_range *other; /* room to merge into */
    size_t other_capacity;
};

static int add_found(struct found *f, const struct symint_code_range *r, uint32_t owner)
{
    struct found_range *items = symint_grow(f->items, f->count, &f->capacity, sizeof(*items), 64);
    if (items == NULL)
        return SYM_ERR_NOMEM;
    f->items = items;
    f->unsorted |= f->count > 0 && r->start < f->items[f->count - 1].start;
    f->items[f->count++] = (struct found_range){.start = r->start, .end = r->end, .owner = owner};
    return 0;
}

static void insert_in_order(struct found_range *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct found_range item = items[i];
        size_t k = i;
        for (; k > 0 && item.start < items[k - 1].start; k--)
            items[k] = items[k - 1];
        items[k] = item;
    }
}

/* Merges [0, middle) and [middle, count), which are in order each. */
static void merge(const struct found_range *from, size_t middle, size_t count,
                  struct found_range *to)
{
    const struct found_range *left = from;
    const struct found_range *right = from + middle;
    const struct found_range *end = from + count;
    if (middle < count && right->start < right[-1].start) {
        while (left < from + middle && right < end) {
            bool from_right = right->start < left->start;
            *to++ = *(from_right ? right : left);
            right += from_right;
            left += !from_right;
        }
        memcpy(to, left, (size_t)(from + middle - left) * sizeof(*to));
        to += from + middle - left;
        left = right;
    }
    memcpy(to, left, (size_t)(end - left) * sizeof(*to));
}

static void swap_rooms(struct found *f)
{
    struct found_range *items = f->items;
    size_t capacity = f->capacity;
    f->items = f->other;
    f->capacity = f->other_capacity;
    f->other = items;
    f->other_capacity = capacity;
}

/* By start. Of one start the entry that comes later, which is the deeper one, wins: the sort is stable, and owners ascend
 * in the order in which ranges are found. */
static int sort_found(struct found *f)
{
    if (!f->unsorted)
        return 0;
    for (size_t i = 0; i < f->count; i += RUN)
        insert_in_order(f->items + i, f->count - i < RUN ? f->count - i : RUN);
    if (f->count <= RUN)
        return 0;
    if (f->count > f->other_capacity) {
        free(f->other);
        f->other = malloc(f->capacity * sizeof(*f->other));
        f->other_capacity = f->other != NULL ? f->capacity : 0;
    }
    if (f->other == NULL)
        return SYM_ERR_NOMEM;
    for (size_t width = RUN; width < f->count; width *= 2) {
        for (size_t i = 0; i < f->count; i += 2 * width) {
            size_t n = f->count - i < 2 * width ? f->count - i : 2 * width;
            merge(f->items + i, n < width ? n : width, n, f->other + i);
        }
        swap_rooms(f);
    }
    return 0;
}

static int flatten(struct found *f, struct symint_segments *out)
{
    struct symint_sweep sweep;
    if (f->count == 0)
        return 0;
    int rc = sort_found(f);
    if (rc == 0)
        rc = symint_sweep_start(&sweep, out, f->count);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < f->count; i++)
        symint_sweep_push(&sweep, f->items[i].start, f->items[i].end, f->items[i].owner);
    symint_sweep_finish(&sweep);
    symint_segments_settle(out);
    return 0;
}

/* ---- walking ---- */

struct walk {
    struct dwarf_unit *u;
    struct unit_index *x;
    const struct abbrev_table *abbrevs;
    struct symint_cursor c;
    const uint8_t *base;      /* of the unit */
    struct range_list ranges; /* of the entry at hand */
};

static uint32_t offset_in_unit(const struct walk *w, const uint8_t *at)
{
    return (uint32_t)(at - w->base);
}

/* Where the next sibling of the entry that was just read is, if it says so in the usual way; else NULL. */
static const uint8_t *sibling_of(const struct walk *w, const struct abbrev *a)
{
    uint32_t offset;
    if (a->sibling_back == 0 || w->c.failed)
        return NULL;
    memcpy(&offset, w->c.at - a->sibling_back, sizeof(offset));
    if (w->c.swap)
        offset = __builtin_bswap32(offset);
    /* Never backwards: every step of a walk goes on. */
    if (offset > w->u->end - w->u->offset || w->base + offset < w->c.at)
        return NULL;
    return w->base + offset;
}

/* What the passes want of an entry. Attributes that they do not want leave what they say in the first one. */
struct seen {
    struct dwarf_value values[TAKES];
};

static uint32_t clamp(uint64_t number)
{
    return number > UINT32_MAX ? 0 : (uint32_t)number;
}

/* Entries that consist of numbers of known sizes are the rule. Each is cut out of the eight bytes that it begins, as the
 * machine has them; there have to be that many behind the entry. */
static bool is_simple(const struct walk *w, const struct abbrev *a)
{
    return a->simple && !w->c.swap && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&
           cursor_left(&w->c) >= a->size + sizeof(uint64_t);
}

static void read_simple_entry(struct walk *w, const struct abbrev *a, struct seen *seen)
{
    static const uint64_t masks[] = {
        [1] = UINT8_MAX, [2] = UINT16_MAX, [4] = UINT32_MAX, [8] = UINT64_MAX};
    const struct abbrev_attribute *attribute = &w->abbrevs->attributes[a->attribute];
    const uint8_t *at = w->c.at;
    for (unsigned i = 0; i < a->attribute_count; i++, attribute++) {
        struct dwarf_value *v = &seen->values[attribute->take];
        uint64_t bytes;
        memcpy(&bytes, at, sizeof(bytes));
        v->number = bytes & masks[attribute->number_size];
        v->kind = (enum value_kind)attribute->kind;
        at += attribute->size;
    }
    w->c.at = at;
}

static void read_entry(struct walk *w, const struct abbrev *a, struct seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    if (is_simple(w, a)) {
        read_simple_entry(w, a, seen);
    } else {
        const struct abbrev_attribute *attribute = &w->abbrevs->attributes[a->attribute];
        for (unsigned i = 0; i < a->attribute_count && !w->c.failed; i++, attribute++)
            value_read(&w->c, w->u, attribute, &seen->values[attribute->take]);
    }
}

/* Reads the ranges of an entry into w->ranges. */
static int read_ranges(struct walk *w, const struct seen *seen)
{
    struct unit_index *x = w->x;
    uint64_t left = x->work < x->budget ? x->budget - x->work : 0;
    uint64_t budget = left;
    w->ranges.count = 0;
    const struct dwarf_value *values = seen->values;
    int rc = symint_ranges_read(w->u, &values[TAKE_LOW], &values[TAKE_HIGH], &values[TAKE_RANGES],
                                &w->ranges, &budget);
    x->work += left - budget;
    return rc;
}

/* ---- the functions ---- */

struct function_list {
    uint32_t *entries;
    uint32_t count;
    size_t capacity;
    struct found found;
};

static int add_function(struct walk *w, struct function_list *l, const struct abbrev *a,
                        uint32_t entry)
{
    struct seen seen;
    read_entry(w, a, &seen);
    int rc = read_ranges(w, &seen);
    if (rc != 0 || w->ranges.count == 0)
        return rc;
    uint32_t *entries = symint_grow(l->entries, l->count, &l->capacity, sizeof(*entries), 64);
    if (entries == NULL)
        return SYM_ERR_NOMEM;
    l->entries = entries;
    l->entries[l->count] = entry;
    for (size_t i = 0; i < w->ranges.count && rc == 0; i++)
        rc = add_found(&l->found, &w->ranges.ranges[i], l->count);
    l->count++;
    return rc;
}

/* Goes over all entries from the root on. Without `deep`, functions are passed by: those in them are seldom asked for,
 * and most bytes of a unit are there. */
static int walk_functions(struct walk *w, struct function_list *l, bool deep)
{
    uint64_t depth = 0;
    uint64_t function_depth = 0; /* of the outermost function that we are in; 0: in none */
    int rc = 0;
    while (rc == 0 && w->c.at < w->c.end && !w->c.failed) {
        if (depth > 0)
            abbrev_pass_leaves(w->abbrevs, &w->c);
        uint32_t entry = offset_in_unit(w, w->c.at);
        uint64_t code = cursor_uleb(&w->c);
        if (code == 0) {
            if (depth <= 1)
                break;
            depth--;
            function_depth = depth < function_depth ? 0 : function_depth;
            continue;
        }
        const struct abbrev *a = abbrev_find(w->abbrevs, code);
        if (a == NULL) {
            cursor_fail(&w->c);
            break;
        }
        if (a->kind == ENTRY_FUNCTION && a->has_code)
            rc = add_function(w, l, a, entry);
        else
            entry_skip(&w->c, w->abbrevs, a);
        if (!a->children) {
            if (depth == 0)
                break; /* a root alone */
            continue;
        }
        const uint8_t *sibling = NULL;
        if (a->kind == ENTRY_FUNCTION
                ? !deep
                : a->kind == ENTRY_CALL || (function_depth == 0 && a->kind != ENTRY_NAMESPACE))
            sibling = depth > 0 ? sibling_of(w, a) : NULL;
        if (sibling != NULL) {
            w->x->complete &= a->kind != ENTRY_FUNCTION;
            w->c.at = sibling;
            continue;
        }
        depth++;
        if (a->kind == ENTRY_FUNCTION && function_depth == 0)
            function_depth = depth;
    }
    w->x->broken = w->c.failed;
    return rc;
}

static int start_walk(struct dwarf_unit *u, struct unit_index *x, uint64_t entry, struct walk *w)
{
    int rc;
    *w = (struct walk){.u = u, .x = x};
    if (!symint_unit_enter(u, u->offset + entry, &w->c, &rc)) {
        w->c = (struct symint_cursor){.at = NULL, .end = NULL};
        return rc;
    }
    /* Trees of functions are read for one address each. */
    symint_ranges_allow(u->main, false, entry == u->header_size ? u->end - u->offset : 0);
    if (u->file != u->main)
        symint_ranges_allow(u->file, false, entry == u->header_size ? u->end - u->offset : 0);
    w->base = w->c.end - (u->end - u->offset);
    w->abbrevs = u->abbrevs;
    return 0;
}

static void free_trees(struct unit_index *x)
{
    for (uint32_t i = 0; i < x->function_count; i++)
        free(x->trees[i]);
    free(x->trees);
    x->trees = NULL;
}

void symint_functions_free(struct unit_index *x)
{
    if (x == NULL)
        return;
    free_trees(x);
    free(x->entries);
    symint_segments_free(&x->segments);
    free(x);
}

static uint64_t index_bytes(const struct unit_index *x)
{
    return sizeof(*x) + (uint64_t)x->segments.count * 12 + (uint64_t)x->function_count * 12;
}

void symint_functions_trim(struct dwarf_unit *u)
{
    struct unit_index *x = u->index;
    if (x == NULL ||
        x->bytes <= 2 * index_bytes(x)) /* going over all functions takes longer than a lookup */
        return;
    for (uint32_t i = 0; i < x->function_count; i++) {
        free(x->trees[i]);
        x->trees[i] = NULL;
    }
    x->bytes = index_bytes(x);
    x->work = u->end - u->offset; /* as when it was new */
}

int symint_functions_read(struct dwarf_unit *u)
{
    struct walk w;
    struct function_list l = {0};
    bool deep = u->index != NULL;
    struct unit_index *x = calloc(1, sizeof(*x));
    if (x == NULL)
        return SYM_ERR_NOMEM;
    uint64_t size = u->end - u->offset;
    const struct symint_debug_sections *s = &u->main->sections;
    x->budget = MAX_PASSES * size +
                8 * (s->at[DEBUG_RANGES].size + u->file->sections.at[DEBUG_RNGLISTS].size);
    x->work = size + (deep ? u->index->work : 0);
    x->complete = true;
    int rc = start_walk(u, x, u->header_size, &w);
    if (rc == 0)
        rc = walk_functions(&w, &l, deep);
    if (rc == 0)
        rc = flatten(&l.found, &x->segments);
    if (rc == 0) {
        x->trees = calloc((size_t)l.count + 1, sizeof(struct function_tree *));
        rc = x->trees == NULL ? SYM_ERR_NOMEM : 0;
    }
    symint_ranges_free(&w.ranges);
    free(l.found.items);
    free(l.found.other);
    x->entries = l.entries;
    x->function_count = rc == 0 ? l.count : 0;
    x->bytes = index_bytes(x);
    if (rc != 0) {
        symint_functions_free(x);
        return rc;
    }
    symint_functions_free(u->index);
    u->index = x;
    return 0;
}

/* ---- one function ---- */

/* A node whose entry is open, and the depth of its children. */
struct open_node {
    uint64_t depth;
    uint32_t node;
};

/* A tree that is being read, in scratch memory. */
struct growing_tree {
    struct function_scratch *scratch;
    uint32_t node_count;
    struct found found; /* its items are the scratch's */
    size_t open_count;
    size_t piece_count; /* of the function: the first items that were found */
};

static int add_node(struct walk *w, struct growing_tree *g, uint32_t entry, const struct seen *seen)
{
    struct function_scratch *s = g->scratch;
    const struct dwarf_value *values = seen->values;
    struct function_node *nodes =
        symint_grow(s->nodes, g->node_count, &s->node_capacity, sizeof(*nodes), 256);
    if (nodes == NULL)
        return SYM_ERR_NOMEM;
    s->nodes = nodes;
    s->nodes[g->node_count] = (struct function_node){
        .entry = entry,
        .parent = g->open_count > 0 ? s->open[g->open_count - 1].node : FUNCTION_NO_NODE,
        .origin_kind = (uint8_t)values[TAKE_ORIGIN].kind,
        .origin = values[TAKE_ORIGIN].number,
        .call_file = clamp(values[TAKE_CALL_FILE].number),
        .has_call_file = values[TAKE_CALL_FILE].kind != VALUE_OTHER,
        .call_line = clamp(values[TAKE_CALL_LINE].number),
        .call_column = clamp(values[TAKE_CALL_COLUMN].number),
    };
    for (size_t i = 0; i < w->ranges.count; i++) {
        int rc = add_found(&g->found, &w->ranges.ranges[i], g->node_count);
        if (rc != 0)
            return rc;
    }
    if (g->node_count++ == 0)
        g->piece_count = w->ranges.count;
    return 0;
}

static int open_node(struct growing_tree *g, uint64_t depth, uint32_t node)
{
    struct function_scratch *s = g->scratch;
    struct open_node *open =
        symint_grow(s->open, g->open_count, &s->open_capacity, sizeof(*open), 64);
    if (open == NULL)
        return SYM_ERR_NOMEM;
    s->open = open;
    s->open[g->open_count++] = (struct open_node){.depth = depth, .node = node};
    return 0;
}

/* Goes over the entries in a function. What is in a function or type in it is another function's. */
static int walk_tree(struct walk *w, struct growing_tree *g)
{
    uint64_t depth = 0;
    uint64_t other_depth =
        0; /* of the outermost function or type in this one that we are in; 0: in none */
    int rc = 0;
    while (rc == 0 && w->c.at < w->c.end && !w->c.failed) {
        if (depth > 0)
            abbrev_pass_leaves(w->abbrevs, &w->c);
        uint32_t entry = offset_in_unit(w, w->c.at);
        uint64_t code = cursor_uleb(&w->c);
        if (code == 0) {
            if (depth <= 1)
                break;
            depth--;
            other_depth = depth < other_depth ? 0 : other_depth;
            while (g->open_count > 0 && g->scratch->open[g->open_count - 1].depth > depth)
                g->open_count--;
            continue;
        }
        const struct abbrev *a = abbrev_find(w->abbrevs, code);
        if (a == NULL) {
            cursor_fail(&w->c);
            break;
        }
        bool node = depth == 0 || (a->kind == ENTRY_INLINED && a->has_code && other_depth == 0);
        if (node) {
            struct seen seen;
            read_entry(w, a, &seen);
            rc = read_ranges(w, &seen);
            node = w->ranges.count > 0;
            if (rc == 0 && node)
                rc = add_node(w, g, entry, &seen);
        } else {
            entry_skip(&w->c, w->abbrevs, a);
        }
        if (!a->children) {
            if (depth == 0)
                break;
            continue;
        }
        bool other = depth > 0 &&
                     (a->kind == ENTRY_FUNCTION || a->kind == ENTRY_TYPE || a->kind == ENTRY_CALL);
        const uint8_t *sibling = other ? sibling_of(w, a) : NULL;
        if (sibling != NULL) {
            w->c.at = sibling;
            continue;
        }
        depth++;
        if (other && other_depth == 0)
            other_depth = depth;
        if (rc == 0 && node)
            rc = open_node(g, depth, g->node_count - 1);
    }
    w->x->work += (uint64_t)(w->c.at - w->base);
    return rc;
}

/* Flattens what was found into the scratch's segments. */
static int flatten_scratch(struct growing_tree *g)
{
    struct function_scratch *s = g->scratch;
    size_t n = g->found.count;
    if (n > s->segment_capacity) {
        symint_segments_free(&s->segments);
        free(s->stack);
        s->segment_capacity = 0;
        s->segments.start = malloc((4 * n + 1) * sizeof(*s->segments.start));
        s->segments.owner = malloc((4 * n + 1) * sizeof(*s->segments.owner));
        s->stack = malloc((2 * n + 1) * sizeof(*s->stack));
        if (s->segments.start == NULL || s->segments.owner == NULL || s->stack == NULL)
            return SYM_ERR_NOMEM;
        s->segment_capacity = 2 * n;
    }
    struct symint_sweep sweep = {.out = &s->segments, .stack = s->stack};
    s->segments.count = 0;
    for (size_t i = 0; i < n; i++)
        symint_sweep_push(&sweep, g->found.items[i].start, g->found.items[i].end,
                          g->found.items[i].owner);
    symint_sweep_advance(&sweep, UINT64_MAX);
    return 0;
}

/* The tree in one piece of memory of its size. */
static struct function_tree *settle_tree(const struct growing_tree *g,
                                         const struct symint_code_range *pieces, uint64_t *bytes)
{
    const struct function_scratch *s = g->scratch;
    size_t nodes = g->node_count * sizeof(struct function_node);
    size_t starts = s->segments.count * sizeof(uint64_t);
    size_t ranges = g->piece_count * sizeof(*pieces);
    size_t owners = s->segments.count * sizeof(uint32_t);
    size_t size = sizeof(struct function_tree) + nodes + starts + ranges + owners;
    struct function_tree *t = malloc(size);
    if (t == NULL)
        return NULL;
    void *at = t + 1; /* in order of alignment */
    t->node_count = g->node_count;
    t->nodes = at;
    memcpy(t->nodes, s->nodes, nodes);
    at = t->nodes + g->node_count;
    t->segments.count = s->segments.count;
    t->segments.start = at;
    memcpy(t->segments.start, s->segments.start, starts);
    at = t->segments.start + s->segments.count;
    t->piece_count = (uint32_t)g->piece_count;
    t->pieces = at;
    memcpy(t->pieces, pieces, ranges);
    at = t->pieces + g->piece_count;
    t->segments.owner = at;
    memcpy(t->segments.owner, s->segments.owner, owners);
    *bytes += size;
    return t;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct symint_code_range *x = a;
    const struct symint_code_range *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Pieces of one function do not overlap; where hostile ones do, they are one, so that a search finds who has an address. */
static void join_pieces(struct range_list *l)
{
    size_t count = 1;
    for (size_t i = 1; i < l->count; i++) {
        struct symint_code_range *last = &l->ranges[count - 1];
        if (l->ranges[i].start >= last->end)
            l->ranges[count++] = l->ranges[i];
        else if (l->ranges[i].end > last->end)
            last->end = l->ranges[i].end;
    }
    l->count = count;
}

/* In order of their starts. */
static int copy_pieces(struct growing_tree *g, struct range_list *l)
{
    int rc = 0;
    l->count = 0;
    for (size_t i = 0; i < g->piece_count && rc == 0; i++)
        rc = symint_ranges_add(l, g->found.items[i].start, g->found.items[i].end);
    if (rc == 0 && l->count > 1) {
        qsort(l->ranges, l->count, sizeof(*l->ranges), compare_pieces);
        join_pieces(l);
        g->piece_count = l->count;
    }
    return rc;
}

/* Reads the tree of a function. 0 with *out, NULL: there is nothing of it after all. */
static int read_tree(struct dwarf_unit *u, struct function_scratch *s, uint32_t entry,
                     struct function_tree **out)
{
    struct walk w;
    struct growing_tree g = {.scratch = s,
                             .found = {.items = s->found,
                                       .capacity = s->found_capacity,
                                       .other = s->merged,
                                       .other_capacity = s->merged_capacity}};
    *out = NULL;
    int rc = start_walk(u, u->index, entry, &w);
    w.ranges = s->ranges;
    if (rc == 0 && w.base != NULL) {
        u->index->work -= entry; /* walk_tree counts from the unit's start */
        rc = walk_tree(&w, &g);
    }
    s->ranges = w.ranges;
    if (rc == 0)
        rc = copy_pieces(&g, &s->ranges);
    if (rc == 0)
        rc = sort_found(&g.found);
    s->found = g.found.items;
    s->found_capacity = g.found.capacity;
    s->merged = g.found.other;
    s->merged_capacity = g.found.other_capacity;
    if (rc == 0)
        rc = flatten_scratch(&g);
    if (rc != 0 || g.node_count == 0)
        return rc;
    *out = settle_tree(&g, s->ranges.ranges, &u->index->bytes);
    return *out == NULL ? SYM_ERR_NOMEM : 0;
}

void symint_function_scratch_free(struct function_scratch *s)
{
    free(s->nodes);
    free(s->found);
    free(s->merged);
    free(s->open);
    free(s->stack);
    symint_segments_free(&s->segments);
    symint_ranges_free(&s->ranges);
    *s = (struct function_scratch){0};
}

int symint_function_find(struct dwarf_unit *u, struct function_scratch *scratch, uint64_t vaddr,
                         bool thorough, struct function_tree **out)
{
    *out = NULL;
    uint32_t function = symint_segments_find_near(&u->index->segments, vaddr, &u->index->near);
    if (function == SYMINT_NO_OWNER && !u->index->complete && thorough) {
        int rc = symint_functions_read(u);
        if (rc != 0)
            return rc;
        function = symint_segments_find_near(&u->index->segments, vaddr, &u->index->near);
    }
    if (function == SYMINT_NO_OWNER)
        return 0;
    struct unit_index *x = u->index;
    if (x->trees[function] == NULL) {
        if (x->work >= x->budget)
            return 0;
        int rc = read_tree(u, scratch, x->entries[function], &x->trees[function]);
        if (rc != 0)
            return rc;
    }
    *out = x->trees[function];
    return 0;
}
