/* SPDX-License-Identifier: MIT */
/*
 * The search for the module of an address. Modules stand in an array in the order of their ids. The
 * newest few, the tail, are searched one by one; the others are covered by blocks, runs of the
 * array of at least halving size from old to new, and a query asks tail and blocks from new to old
 * until one knows a module. When the tail gets long it becomes a block, together with the small
 * blocks before it (Bentley and Saxe's logarithmic method), so that each module is built in few
 * times.
 *
 * A block is a segment tree over the start and end addresses of its modules. A module stands in the
 * lists of the at most 2 log n nodes that make up its range; all lists that concern an address are
 * on the way from its leaf to the root. Modules that do not overlap stand in one list each.
 *
 * In each list, ascending, the last module below a limit that was retired after a frame is wanted.
 * Above a list of more than FAN modules stands a tree of maxima: one word for FAN entries, and so
 * on upwards. A retirement is not told to the index, so its numbers are upper bounds of the true
 * ones, which it corrects where it was led astray: once for each number, as a module is retired
 * once.
 *
 *     node's words, up to FAN modules     p p p
 *     more                                count  p p p p p p p p p p p ...  m m ...  m
 */
#include "module_index.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "spool/spool.h"

#define FAN 8u
#define LEVELS_MAX 12 /* FAN^11 > 2^32 */
#define TAIL_MAX 64u
/* Words of a block stay below 2^32: 2^25 modules x 52 nodes x 8/7. */
#define BLOCK_MAX ((uint32_t)1 << 25)
#define DEPTH_MAX 32 /* of a leaf; there are fewer than 2^27 nodes */
#define NODES_MAX 64 /* that make up a range: 2 for each of 26 levels */

/* Done once for each entry, list or maximum that is looked at. The test includes this file and
 * counts here, because a search that became quadratic would still find the right modules. */
#ifndef MODULE_INDEX_STEP
#define MODULE_INDEX_STEP() ((void)0)
#endif

struct entry {
    uint64_t start;
    uint64_t end;
    uint32_t id;
    uint32_t bound; /* upper bound of retired_at; UINT32_MAX: of any value */
};

struct block {
    uint32_t first; /* in entries */
    uint32_t size;
    uint32_t coord_count; /* at least 2 */
    uint64_t *coords;     /* ascending, each once; leaf i is [coords[i], coords[i + 1]) */
    uint32_t *offsets;    /* of a node's words; node 1 is the root, leaf i is node leaves + i */
    uint32_t *words;
};

struct module_index {
    retired_at_fn *retired_at;
    const void *user;
    struct entry *entries;
    size_t count;
    size_t capacity;
    size_t indexed; /* entries in blocks; the tail is behind */
    struct block *blocks;
    size_t block_count;
    size_t block_capacity;
};

struct query {
    uint64_t address;
    uint64_t frame;
    uint32_t limit; /* number of entries that count */
};

struct module_index *spoolint_module_index_new(retired_at_fn *retired_at, const void *user)
{
    struct module_index *x = malloc(sizeof *x);

    if (x == NULL)
        return NULL;
    memset(x, 0, sizeof *x);
    x->retired_at = retired_at;
    x->user = user;
    return x;
}

static void free_block(struct block *b)
{
    free(b->coords);
    free(b->offsets);
    free(b->words);
}

void spoolint_module_index_free(struct module_index *x)
{
    if (x == NULL)
        return;
    for (size_t i = 0; i < x->block_count; i++)
        free_block(&x->blocks[i]);
    free(x->blocks);
    free(x->entries);
    free(x);
}

int spoolint_module_index_add(struct module_index *x, const struct indexed_module *module)
{
    assert(x->count == 0 || module->id > x->entries[x->count - 1].id);
    if (module->end <= module->start)
        return 0;
    if (x->count == x->capacity) {
        size_t capacity = x->capacity == 0 ? 16 : x->capacity * 2;
        struct entry *p = NULL;

        if (capacity <= SIZE_MAX / sizeof *p)
            p = realloc(x->entries, capacity * sizeof *p);
        if (p == NULL)
            return SPOOL_ERR_NOMEM;
        x->entries = p;
        x->capacity = capacity;
    }
    x->entries[x->count++] = (struct entry){
        .start = module->start, .end = module->end, .id = module->id, .bound = UINT32_MAX};
    return 0;
}

/* ---- bounds ------------------------------------------------------------------------------ */

static bool exceeds(uint32_t bound, uint64_t frame)
{
    return bound > frame || bound == UINT32_MAX;
}

/* Whether the entry's module was retired after the frame; its bound is corrected when not. */
static bool stands(struct module_index *x, uint32_t position, uint64_t frame)
{
    struct entry *e = &x->entries[position];
    uint64_t retired_at;

    if (!exceeds(e->bound, frame))
        return false;
    retired_at = x->retired_at(x->user, e->id);
    if (retired_at > frame)
        return true;
    if (retired_at < UINT32_MAX)
        e->bound = (uint32_t)retired_at;
    return false;
}

/* ---- lists ------------------------------------------------------------------------------- */

/* A list and the maxima above it. items[0] are positions in entries, the other levels bounds. */
struct list {
    uint32_t *items[LEVELS_MAX];
    uint32_t counts[LEVELS_MAX];
    unsigned levels;
};

static uint32_t list_words(uint32_t count)
{
    uint32_t words = count;

    if (count > FAN) {
        words++;
        do {
            count = (count + FAN - 1) / FAN;
            words += count;
        } while (count > FAN);
    }
    return words;
}

/* Lays out a list of `count` whose entries (without the word before them) begin at `items`. */
static void lay_out(struct list *l, uint32_t *items, uint32_t count)
{
    l->items[0] = items;
    l->counts[0] = count;
    l->levels = 1;
    while (l->counts[l->levels - 1] > FAN) {
        count = l->counts[l->levels - 1];
        l->items[l->levels] = l->items[l->levels - 1] + count;
        l->counts[l->levels] = (count + FAN - 1) / FAN;
        l->levels++;
    }
}

static uint32_t item_bound(const struct module_index *x, const struct list *l, unsigned level,
                           uint32_t i)
{
    return level == 0 ? x->entries[l->items[0][i]].bound : l->items[level][i];
}

/* Computes maximum i of a level above 0 from the items under it. */
static void update_maximum(const struct module_index *x, struct list *l, unsigned level, uint32_t i)
{
    uint32_t end = i * FAN + FAN < l->counts[level - 1] ? i * FAN + FAN : l->counts[level - 1];
    uint32_t maximum = 0;

    for (uint32_t k = i * FAN; k < end; k++) {
        uint32_t bound = item_bound(x, l, level - 1, k);

        if (bound > maximum)
            maximum = bound;
    }
    l->items[level][i] = maximum;
}

/* The last item of [begin, end) whose module stands, or that may have one below: true and *at. */
static bool last_of(struct module_index *x, const struct list *l, unsigned level, uint32_t begin,
                    uint32_t end, uint64_t frame, uint32_t *at)
{
    for (uint32_t i = end; i-- > begin;) {
        MODULE_INDEX_STEP();
        if (level == 0 ? stands(x, l->items[0][i], frame) : exceeds(l->items[level][i], frame)) {
            *at = i;
            return true;
        }
    }
    return false;
}

/* The last of the list's first `end` modules that stands at the frame: true and its position. */
static bool search_list(struct module_index *x, struct list *l, uint32_t end, uint64_t frame,
                        uint32_t *position)
{
    unsigned level = 0;

    /* All items from `end` on are out, of those below it nothing is known. */
    while (end > 0) {
        uint32_t begin = (end - 1) / FAN * FAN;
        uint32_t at;

        if (level + 1 < l->levels && end % FAN == 0) { /* whole groups: ask their maxima */
            level++;
            end /= FAN;
            continue;
        }
        if (!last_of(x, l, level, begin, end, frame, &at)) {
            end = begin;
            continue;
        }
        while (level > 0) {
            uint32_t under = at * FAN;
            uint32_t under_end =
                under + FAN < l->counts[level - 1] ? under + FAN : l->counts[level - 1];

            if (!last_of(x, l, level - 1, under, under_end, frame, &under)) {
                update_maximum(x, l, level, at);
                break;
            }
            level--;
            at = under;
        }
        if (level == 0) {
            *position = l->items[0][at];
            return true;
        }
        end = at;
    }
    return false;
}

/* Number of the list's positions below the limit. */
static uint32_t below(const uint32_t *positions, uint32_t count, uint32_t limit)
{
    uint32_t low = 0;

    while (low < count) {
        uint32_t middle = low + (count - low) / 2;

        if (positions[middle] < limit)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* ---- blocks ------------------------------------------------------------------------------ */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Index of the last coordinate at or below the address, which is not below the first. */
static uint32_t rank(const uint64_t *coords, uint32_t count, uint64_t address)
{
    uint32_t base = 0;

    while (count > 1) {
        uint32_t half = count / 2;

        base += coords[base + half] <= address ? half : 0;
        count -= half;
    }
    return base;
}

/* Ascending coordinates of the entries [first, first + size), each once; NULL: out of memory. */
static uint64_t *sort_coords(const struct module_index *x, uint32_t first, uint32_t size,
                             uint32_t *count)
{
    uint64_t *coords = malloc((size_t)size * 2 * sizeof *coords);
    uint32_t kept = 0;

    if (coords == NULL)
        return NULL;
    for (uint32_t i = 0; i < size; i++) {
        coords[2 * (size_t)i] = x->entries[first + i].start;
        coords[2 * (size_t)i + 1] = x->entries[first + i].end;
    }
    qsort(coords, (size_t)size * 2, sizeof *coords, compare_u64);
    for (uint32_t i = 0; i < size * 2; i++)
        if (kept == 0 || coords[i] != coords[kept - 1])
            coords[kept++] = coords[i];
    *count = kept;
    return coords;
}

/* Both ascending arrays in one, each coordinate once; frees a. NULL: out of memory. */
static uint64_t *merge_coords(uint64_t *a, uint32_t a_count, const uint64_t *b, uint32_t b_count,
                              uint32_t *count)
{
    uint64_t *out = malloc(((size_t)a_count + b_count) * sizeof *out);
    uint32_t i = 0, k = 0, n = 0;

    while (out != NULL && (i < a_count || k < b_count)) {
        if (k == b_count || (i < a_count && a[i] <= b[k])) {
            if (k < b_count && a[i] == b[k])
                k++;
            out[n++] = a[i++];
        } else {
            out[n++] = b[k++];
        }
    }
    free(a);
    *count = n;
    return out;
}

/* The nodes that make up the leaves [low, high); returns their number. */
static unsigned cover(uint32_t leaves, uint32_t low, uint32_t high, uint32_t nodes[NODES_MAX])
{
    unsigned count = 0;

    for (low += leaves, high += leaves; low < high; low /= 2, high /= 2) {
        if (low % 2 != 0)
            nodes[count++] = low++;
        if (high % 2 != 0)
            nodes[count++] = --high;
    }
    return count;
}

/* Computes all maxima of a block, whose positions are there. */
static void build_maxima(const struct module_index *x, const struct block *b)
{
    uint32_t nodes = (b->coord_count - 1) * 2;

    for (uint32_t n = 0; n < nodes; n++) {
        struct list l;

        if (b->offsets[n + 1] - b->offsets[n] <= FAN)
            continue;
        lay_out(&l, b->words + b->offsets[n] + 1, b->words[b->offsets[n]]);
        for (unsigned level = 1; level < l.levels; level++)
            for (uint32_t i = 0; i < l.counts[level]; i++)
                update_maximum(x, &l, level, i);
    }
}

/* Builds offsets and words of a block whose coordinates are there: 0 or SPOOL_ERR_NOMEM. */
static int build_lists(struct module_index *x, struct block *b)
{
    uint32_t leaves = b->coord_count - 1;
    uint32_t nodes = leaves * 2; /* and number 0 is none */
    /* First how many entries each node has, then where its next one goes. */
    uint32_t *per_node = calloc(nodes, sizeof *per_node);
    uint32_t *ranges = malloc((size_t)b->size * 2 * sizeof *ranges);
    uint32_t covered[NODES_MAX];
    uint32_t words = 0;
    int rc = SPOOL_ERR_NOMEM;

    b->offsets = malloc(((size_t)nodes + 1) * sizeof *b->offsets);
    if (per_node == NULL || ranges == NULL || b->offsets == NULL)
        goto done;
    for (uint32_t i = 0; i < b->size; i++) {
        const struct entry *e = &x->entries[b->first + i];
        uint32_t low = rank(b->coords, b->coord_count, e->start);
        uint32_t high = rank(b->coords, b->coord_count, e->end);

        ranges[2 * (size_t)i] = low;
        ranges[2 * (size_t)i + 1] = high;
        for (unsigned k = cover(leaves, low, high, covered); k-- > 0;) {
            MODULE_INDEX_STEP();
            per_node[covered[k]]++;
        }
        stands(x, b->first + i, UINT64_MAX - 1); /* lowers the bound if it was retired by now */
    }
    for (uint32_t n = 0; n < nodes; n++) {
        b->offsets[n] = words;
        words += list_words(per_node[n]);
    }
    b->offsets[nodes] = words;
    b->words = malloc((size_t)words * sizeof *b->words);
    if (b->words == NULL)
        goto done;
    for (uint32_t n = 0; n < nodes; n++) {
        uint32_t at = b->offsets[n];

        if (per_node[n] > FAN)
            b->words[at++] = per_node[n];
        per_node[n] = at;
    }
    for (uint32_t i = 0; i < b->size; i++)
        for (unsigned k = cover(leaves, ranges[2 * (size_t)i], ranges[2 * (size_t)i + 1], covered);
             k-- > 0;)
            b->words[per_node[covered[k]]++] = b->first + i;
    build_maxima(x, b);
    rc = 0;
done:
    free(per_node);
    free(ranges);
    return rc;
}

/* Room for one more block; false: out of memory. */
static bool reserve_block(struct module_index *x)
{
    size_t capacity = x->block_capacity == 0 ? 4 : x->block_capacity * 2;
    struct block *p;

    if (x->block_count < x->block_capacity)
        return true;
    p = realloc(x->blocks, capacity * sizeof *p);
    if (p == NULL)
        return false;
    x->blocks = p;
    x->block_capacity = capacity;
    return true;
}

/* Turns the first `size` entries of the tail into a block, with the blocks before it that are not
 * much larger: 0, or SPOOL_ERR_NOMEM with nothing changed. */
static int add_block(struct module_index *x, uint32_t size)
{
    struct block b = {.first = (uint32_t)x->indexed, .size = size};
    size_t merged = 0;

    if (!reserve_block(x))
        return SPOOL_ERR_NOMEM;
    b.coords = sort_coords(x, b.first, size, &b.coord_count);
    while (b.coords != NULL && merged < x->block_count) {
        const struct block *old = &x->blocks[x->block_count - 1 - merged];

        if (old->size / 2 > b.size || old->size + b.size > BLOCK_MAX)
            break;
        b.coords =
            merge_coords(b.coords, b.coord_count, old->coords, old->coord_count, &b.coord_count);
        b.first = old->first;
        b.size += old->size;
        merged++;
    }
    if (b.coords == NULL || build_lists(x, &b) < 0) {
        free_block(&b);
        return SPOOL_ERR_NOMEM;
    }
    for (; merged > 0; merged--)
        free_block(&x->blocks[--x->block_count]);
    x->blocks[x->block_count++] = b;
    x->indexed += size;
    return 0;
}

/* ---- finding ----------------------------------------------------------------------------- */

/* A list that may hold the answer. */
struct candidate {
    uint32_t *words;
    uint32_t count;
    uint32_t end;  /* modules below the query's limit; at least 1 */
    uint32_t last; /* position of the last of them */
};

/* The lists of a block that concern the query; returns their number. */
static unsigned collect(const struct block *b, const struct query *q,
                        struct candidate candidates[DEPTH_MAX])
{
    uint32_t leaves = b->coord_count - 1;
    unsigned kept = 0;

    if (q->address < b->coords[0] || q->address >= b->coords[leaves])
        return 0;
    for (uint32_t n = leaves + rank(b->coords, leaves, q->address); n > 0; n /= 2) {
        struct candidate *c = &candidates[kept];

        MODULE_INDEX_STEP();
        c->words = b->words + b->offsets[n];
        c->count = b->offsets[n + 1] - b->offsets[n];
        if (c->count > FAN)
            c->count = *c->words++;
        c->end = q->limit - b->first >= b->size ? c->count : below(c->words, c->count, q->limit);
        if (c->end == 0)
            continue;
        c->last = c->words[c->end - 1];
        kept++;
    }
    return kept;
}

/* The last entry of a block that the query wants: true and its position. */
static bool search_block(struct module_index *x, const struct block *b, const struct query *q,
                         uint32_t *position)
{
    struct candidate candidates[DEPTH_MAX];
    unsigned count = collect(b, q, candidates);
    bool found = false;

    /* The list with the youngest module first: mostly it has the answer, and no other is asked. */
    while (count > 0) {
        struct candidate *best = candidates;
        struct list l;
        uint32_t at;

        for (unsigned i = 1; i < count; i++)
            if (candidates[i].last > best->last)
                best = &candidates[i];
        if (found && best->last <= *position)
            break;
        lay_out(&l, best->words, best->count);
        if (search_list(x, &l, best->end, q->frame, &at) && (!found || at > *position)) {
            found = true;
            *position = at;
        }
        *best = candidates[--count];
    }
    return found;
}

static bool search_tail(struct module_index *x, const struct query *q, uint32_t *position)
{
    for (uint32_t i = q->limit; i-- > x->indexed;) {
        const struct entry *e = &x->entries[i];

        MODULE_INDEX_STEP();
        if (e->start <= q->address && q->address < e->end && stands(x, i, q->frame)) {
            *position = i;
            return true;
        }
    }
    return false;
}

/* Number of entries with an id below the limit. */
static uint32_t entries_below(const struct module_index *x, uint32_t id_limit)
{
    size_t low = 0;
    size_t high = x->count;

    if (high > 0 && x->entries[high - 1].id < id_limit)
        return (uint32_t)high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (x->entries[middle].id < id_limit)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

int spoolint_module_index_find(struct module_index *x, uint64_t address, uint32_t id_limit,
                               uint64_t frame, uint32_t *id)
{
    struct query q = {.address = address, .frame = frame, .limit = entries_below(x, id_limit)};
    uint32_t position = 0;
    bool found;

    while (x->count - x->indexed > TAIL_MAX) {
        size_t tail = x->count - x->indexed;

        if (add_block(x, tail < BLOCK_MAX ? (uint32_t)tail : BLOCK_MAX) < 0)
            return SPOOL_ERR_NOMEM;
    }
    found = search_tail(x, &q, &position);
    for (size_t i = x->block_count; !found && i-- > 0;)
        if (x->blocks[i].first < q.limit)
            found = search_block(x, &x->blocks[i], &q, &position);
    if (found)
        *id = x->entries[position].id;
    return found;
}
