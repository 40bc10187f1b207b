/* SPDX-License-Identifier: MIT */
/*
 * Merging files of packed symbols. What one of them knows best, the others may know too: as in lookups, those with
 * lines come first, then those with more addresses.
 */
#include "packed.h"

#include "elf_private.h"

#include <stdlib.h>
#include <string.h>

/* A file that can be read. */
struct member {
    struct symint_packed *packed;
    struct sym_piece *piece;
};

/* An address, or the extent of a function, and who has it. */
struct owned {
    uint64_t start, end;
    size_t member; /* of the group: the first ones count */
};

/* Members with one file behind them. */
struct group {
    struct member *members;
    size_t count;
    struct symint_strings *strings;
    struct symint_packer *packers[SYM_LEVEL_LINES + 1]; /* by level; NULL: nothing yet */
};

/* ---- which belong together ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_segments(const struct segment *a, const struct segment *b)
{
    const uint64_t x[] = {a->offset, a->size, a->memory_size, a->vaddr, a->align, a->executable};
    const uint64_t y[] = {b->offset, b->size, b->memory_size, b->vaddr, b->align, b->executable};
    int order = 0;
    for (size_t i = 0; i < sizeof(x) / sizeof(x[0]) && order == 0; i++)
        order = compare_numbers(x[i], y[i]);
    return order;
}

/* 0: their addresses are those of one file. A debug file and its program may place them differently. */
static int compare_files(const struct symint_elf *a, const struct symint_elf *b)
{
    const uint64_t x[] = {a->detached, a->relocatable, a->machine, a->build_id_size,
                          a->segment_count};
    const uint64_t y[] = {b->detached, b->relocatable, b->machine, b->build_id_size,
                          b->segment_count};
    int order = 0;
    for (size_t i = 0; i < sizeof(x) / sizeof(x[0]) && order == 0; i++)
        order = compare_numbers(x[i], y[i]);
    if (order == 0)
        order = memcmp(a->build_id, b->build_id, a->build_id_size);
    for (uint32_t i = 0; i < a->segment_count && order == 0; i++)
        order = compare_segments(&a->segments[i], &b->segments[i]);
    return order;
}

/* By file, then as lookups ask them; the bytes make it an order that does not depend on that of the caller. */
static int compare_members(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;
    int order = compare_files(symint_packed_elf(x->packed), symint_packed_elf(y->packed));
    if (order == 0)
        order = compare_numbers(symint_packed_level(y->packed), symint_packed_level(x->packed));
    if (order == 0)
        order = compare_numbers(symint_packed_count(y->packed), symint_packed_count(x->packed));
    if (order == 0)
        order = compare_numbers(x->piece->size_bytes, y->piece->size_bytes);
    return order != 0 ? order : memcmp(x->piece->data, y->piece->data, x->piece->size_bytes);
}

/* Opens those that can be used. 0 or SYM_ERR_NOMEM. */
static int open_members(struct sym_piece *pieces, size_t count, const uint8_t *build_id,
                        size_t build_id_size, struct member *members, size_t *member_count)
{
    for (size_t i = 0; i < count; i++) {
        struct symint_packed *p;
        const char *why;
        size_t size = pieces[i].size_bytes;
        uint8_t *copy = malloc(size + 1);
        if (copy == NULL)
            return SYM_ERR_NOMEM;
        if (size > 0)
            memcpy(copy, pieces[i].data, size);
        if (symint_packed_open(copy, size, &p, &why) != 0)
            return SYM_ERR_NOMEM;
        if (p != NULL && symint_packed_is_of(p, build_id, build_id_size))
            members[(*member_count)++] = (struct member){p, &pieces[i]};
        else
            symint_packed_free(p);
    }
    return 0;
}

/* ---- addresses ---- */

static int compare_owned(const void *a, const void *b)
{
    const struct owned *x = a;
    const struct owned *y = b;
    int order = compare_numbers(x->start, y->start);
    return order != 0 ? order : compare_numbers(x->member, y->member);
}

static int packer_of(struct group *g, enum sym_level level, struct symint_packer **out)
{
    struct symint_packer **packer = &g->packers[level];
    if (*packer == NULL)
        *packer =
            symint_packer_new(level, symint_packed_elf(g->members[0].packed), g->strings->seed);
    *out = *packer;
    return *packer != NULL ? 0 : SYM_ERR_NOMEM;
}

/* Adds what the best of some members at a level knows of an address: of those that know as much, the first one, as in
 * lookups. What has nothing is kept, too: it need not be looked for again. known: how much has been added, and is to be
 * exceeded: -1 nothing yet, 0 that there is nothing, else its rank and 1. */
static int add_level(struct group *g, enum sym_level level, const struct owned *list, size_t count,
                     int *known)
{
    struct symint_facts facts = {.vaddr = list[0].start};
    struct symint_packed *best = NULL;
    struct symint_packer *packer;
    unsigned rank = 0;
    bool empty = false;
    int rc = 0;
    for (size_t i = 0; i < count && (best == NULL || rank < SYMINT_FACTS_WHOLE); i++) {
        struct symint_packed *p = g->members[list[i].member].packed;
        struct symint_facts found;
        if (symint_packed_level(p) != level)
            continue;
        rc = symint_packed_exact(p, g->strings, NULL, list[i].start, &found);
        if (rc < 0)
            return rc;
        empty |= rc == 0;
        if (rc == 0 || (best != NULL && symint_facts_rank(&found) <= rank))
            continue;
        best = p;
        rank = symint_facts_rank(&found);
    }
    int score = best != NULL ? (int)rank + 1 : empty ? 0 : -1;
    if (score <= *known)
        return 0;
    *known = score;
    if (best != NULL)
        rc = symint_packed_exact(best, g->strings, NULL, list[0].start, &facts);
    facts.extent_start = 0; /* extents are added by themselves */
    facts.extent_end = 0;
    facts.final |= best == NULL;
    rc = rc < 0 ? rc : packer_of(g, level, &packer);
    return rc == 0 ? symint_packer_add(packer, &facts) : rc;
}

/* Names are wanted where lines know nothing, or less. */
static int add_address(struct group *g, const struct owned *list, size_t count)
{
    int known = -1;
    int rc = add_level(g, SYM_LEVEL_LINES, list, count, &known);
    return rc == 0 ? add_level(g, SYM_LEVEL_NAMES, list, count, &known) : rc;
}

static int add_addresses(struct group *g)
{
    size_t total = 0;
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; i < g->count; i++)
        total += symint_packed_count(g->members[i].packed);
    struct owned *list = symint_scratch_alloc(total + 1, sizeof(*list));
    if (list == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < g->count; i++)
        for (uint32_t k = 0; k < symint_packed_count(g->members[i].packed); k++)
            list[n++] = (struct owned){.start = symint_packed_address(g->members[i].packed, k),
                                       .member = i};
    qsort(list, n, sizeof(*list), compare_owned);
    for (size_t begin = 0, end; begin < n && rc == 0; begin = end) {
        for (end = begin + 1; end < n && list[end].start == list[begin].start;)
            end++;
        rc = add_address(g, list + begin, end - begin);
    }
    free(list);
    return rc;
}

/* ---- extents ---- */

/* Those that have the address at hand: a heap with the first member's on top. */
struct heap {
    const struct owned **items;
    size_t count;
};

static void push(struct heap *h, const struct owned *item)
{
    size_t at = h->count++;
    for (; at > 0 && h->items[(at - 1) / 2]->member > item->member; at = (at - 1) / 2)
        h->items[at] = h->items[(at - 1) / 2];
    h->items[at] = item;
}

static void pop(struct heap *h)
{
    const struct owned *last = h->items[--h->count];
    size_t at = 0;
    for (size_t child = 1; child < h->count; child = 2 * at + 1) {
        if (child + 1 < h->count && h->items[child + 1]->member < h->items[child]->member)
            child++;
        if (h->items[child]->member >= last->member)
            break;
        h->items[at] = h->items[child];
        at = child;
    }
    h->items[at] = last;
}

static int add_extent(const struct group *g, struct symint_packer *packer, const struct owned *e,
                      uint64_t start, uint64_t end)
{
    struct symint_facts facts;
    if (symint_packed_around(g->members[e->member].packed, e->start, &facts) == 0)
        return 0;
    facts.extent_start = start;
    facts.extent_end = end;
    return symint_packer_add_extent(packer, &facts);
}

/* Where extents of members overlap, those of the first one count, and of others what they leave. */
static int add_sorted_extents(const struct group *g, struct symint_packer *packer,
                              const struct owned *list, size_t n, struct heap *h)
{
    const struct owned *open = NULL; /* the one that is going on, ... */
    uint64_t since = 0;              /* ... and where it began to count */
    uint64_t at = 0;
    int rc = 0;
    for (size_t i = 0; (i < n || h->count > 0) && rc == 0;) {
        if (h->count == 0)
            at = list[i].start;
        while (i < n && list[i].start <= at)
            push(h, &list[i++]);
        while (h->count > 0 && h->items[0]->end <= at)
            pop(h);
        const struct owned *top = h->count > 0 ? h->items[0] : NULL;
        if (open != top && open != NULL)
            rc = add_extent(g, packer, open, since, at);
        if (open != top) {
            open = top;
            since = at;
        }
        if (top != NULL)
            at = i < n && list[i].start < top->end ? list[i].start : top->end;
    }
    if (rc == 0 && open != NULL)
        rc = add_extent(g, packer, open, since, at);
    return rc;
}

/* Adds the extents that members of a level and above it have. */
static int add_extents(struct group *g, enum sym_level from, enum sym_level to)
{
    size_t total = 0;
    size_t n = 0;
    struct symint_packer *packer = g->packers[to];
    if (packer == NULL)
        return 0;
    for (size_t i = 0; i < g->count; i++)
        total += symint_packed_extent_count(g->members[i].packed);
    struct owned *list = symint_scratch_alloc(total + 1, sizeof(*list));
    struct heap h = {.items = symint_scratch_alloc(total + 1, sizeof(*h.items))};
    int rc = list == NULL || h.items == NULL ? SYM_ERR_NOMEM : 0;
    for (size_t i = 0; i < g->count && rc == 0; i++) {
        struct symint_packed *p = g->members[i].packed;
        struct symint_facts facts;
        if (symint_packed_level(p) < from || symint_packed_level(p) > to)
            continue;
        for (uint32_t k = 0; k < symint_packed_extent_count(p); k++) {
            symint_packed_extent(p, k, &facts);
            list[n++] = (struct owned){facts.extent_start, facts.extent_end, i};
        }
    }
    if (rc == 0) {
        qsort(list, n, sizeof(*list), compare_owned);
        rc = add_sorted_extents(g, packer, list, n, &h);
    }
    free(h.items);
    free(list);
    return rc;
}

/* ---- a group ---- */

static int finish(struct group *g, struct sym_merged *out)
{
    int rc = 0;
    if (g->packers[SYM_LEVEL_LINES] != NULL)
        rc = symint_packer_finish(g->packers[SYM_LEVEL_LINES], &out->lines, &out->lines_bytes);
    if (rc == 0 && g->packers[SYM_LEVEL_NAMES] != NULL)
        rc = symint_packer_finish(g->packers[SYM_LEVEL_NAMES], &out->names, &out->names_bytes);
    return rc;
}

/* Functions of names are known where there are lines, too: their file may be left out. */
static int merge_group(struct group *g, struct sym_merged *out)
{
    *out = (struct sym_merged){0};
    int rc = add_addresses(g);
    if (rc == 0)
        rc = add_extents(g, SYM_LEVEL_NAMES, SYM_LEVEL_LINES);
    if (rc == 0)
        rc = add_extents(g, SYM_LEVEL_NAMES, SYM_LEVEL_NAMES);
    if (rc == 0)
        rc = finish(g, out);
    if (rc != 0) {
        free(out->lines);
        free(out->names);
    }
    for (int level = 0; level <= SYM_LEVEL_LINES; level++)
        symint_packer_free(g->packers[level]);
    return rc;
}

/* 0 or SYM_ERR_NOMEM. */
static int merge_members(struct member *members, size_t count, struct symint_strings *strings,
                         struct sym_merged *merged, size_t *merged_count)
{
    int rc = 0;
    for (size_t begin = 0, end; begin < count && rc == 0; begin = end) {
        const struct symint_elf *elf = symint_packed_elf(members[begin].packed);
        for (end = begin + 1; end < count; end++)
            if (compare_files(elf, symint_packed_elf(members[end].packed)) != 0)
                break;
        struct group g = {.members = members + begin, .count = end - begin, .strings = strings};
        if (g.count < 2)
            continue;
        rc = merge_group(&g, &merged[*merged_count]);
        if (rc == SYM_ERR_LIMIT) { /* too much for one file */
            rc = 0;
            continue;
        }
        for (size_t i = begin; i < end && rc == 0; i++)
            members[i].piece->merged = *merged_count;
        *merged_count += rc == 0;
    }
    return rc;
}

int sym_pack_merge(struct sym_piece *pieces, size_t count, const uint8_t *build_id,
                   size_t build_id_size, struct sym_merged *merged, size_t *merged_count)
{
    struct symint_strings strings = {.seed = symint_random_seed()};
    size_t member_count = 0;
    *merged_count = 0;
    if ((count > 0 && pieces == NULL) || build_id == NULL)
        return SYM_ERR_MISUSE;
    for (size_t i = 0; i < count; i++)
        pieces[i].merged = SYM_NOT_MERGED;
    struct member *members = symint_scratch_alloc(count + 1, sizeof(*members));
    int rc = members == NULL ? SYM_ERR_NOMEM : 0;
    if (rc == 0)
        rc = open_members(pieces, count, build_id, build_id_size, members, &member_count);
    if (rc == 0) {
        qsort(members, member_count, sizeof(*members), compare_members);
        rc = merge_members(members, member_count, &strings, merged, merged_count);
    }
    for (size_t i = 0; i < member_count; i++)
        symint_packed_free(members[i].packed);
    free(members);
    symint_strings_free(&strings);
    for (size_t i = 0; rc != 0 && i < *merged_count; i++) {
        free(merged[i].lines);
        free(merged[i].names);
    }
    *merged_count = rc == 0 ? *merged_count : 0;
    return rc;
}
