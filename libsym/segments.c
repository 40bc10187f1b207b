/* SPDX-License-Identifier: MIT */
/* The sweep that flattens ranges, the search in its result, and the radix sort that feeds it. */
#include "segments.h"

#include "spool/sym.h"
#include "strtab.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void symint_segments_free(struct symint_segments *s)
{
    free(s->start);
    free(s->owner);
    *s = (struct symint_segments){0};
}

void symint_segments_settle(struct symint_segments *s)
{
    s->start = symint_settle(s->start, s->count * sizeof(*s->start));
    s->owner = symint_settle(s->owner, s->count * sizeof(*s->owner));
}

static int segments_alloc(struct symint_segments *s, size_t capacity)
{
    *s = (struct symint_segments){0};
    s->start = symint_scratch_alloc(capacity, sizeof(*s->start));
    s->owner = symint_scratch_alloc(capacity, sizeof(*s->owner));
    if (s->start == NULL || s->owner == NULL) {
        symint_segments_free(s);
        return SYM_ERR_NOMEM;
    }
    return 0;
}

/* From start on the owner is this one. Calls come in ascending order; a later one at the same
 * address replaces the earlier. */
static void emit(struct symint_segments *s, uint64_t start, uint32_t owner)
{
    if (s->count > 0 && s->start[s->count - 1] == start)
        s->count--;
    uint32_t before = s->count > 0 ? s->owner[s->count - 1] : SYMINT_NO_OWNER;
    if (before == owner)
        return;
    s->start[s->count] = start;
    s->owner[s->count] = owner;
    s->count++;
}

/* The segment that contains an address, which is not below the first. Without a branch on the comparison: half of those
 * would be mispredicted. */
static size_t find_segment(const struct symint_segments *s, uint64_t address)
{
    const uint64_t *base = s->start;
    size_t left = s->count;
    while (left > 1) {
        size_t half = left / 2;
        base = base[half] <= address ? base + half : base;
        left -= half;
    }
    return (size_t)(base - s->start);
}

uint32_t symint_segments_find(const struct symint_segments *s, uint64_t address)
{
    if (s->count == 0 || address < s->start[0])
        return SYMINT_NO_OWNER;
    return s->owner[find_segment(s, address)];
}

uint32_t symint_segments_find_near(const struct symint_segments *s, uint64_t address, size_t *near)
{
    size_t i = *near;
    if (i < s->count && s->start[i] <= address && (i + 1 == s->count || address < s->start[i + 1]))
        return s->owner[i];
    if (s->count == 0 || address < s->start[0])
        return SYMINT_NO_OWNER;
    *near = find_segment(s, address);
    return s->owner[*near];
}

void symint_segments_bounds(const struct symint_segments *s, uint64_t address, uint64_t *start,
                            uint64_t *end)
{
    size_t i = find_segment(s, address);
    *start = s->start[i];
    *end = i + 1 < s->count ? s->start[i + 1] : UINT64_MAX;
}

size_t symint_segments_above(const struct symint_segments *s, uint64_t address)
{
    return s->count == 0 || address < s->start[0] ? 0 : find_segment(s, address) + 1;
}

int symint_sweep_start(struct symint_sweep *w, struct symint_segments *out, size_t ranges)
{
    *w = (struct symint_sweep){.out = out};
    *out = (struct symint_segments){0};
    /* Each range begins one segment and its end begins at most one more. */
    if (ranges > (SIZE_MAX / sizeof(struct symint_range) - 1) / 2)
        return SYM_ERR_NOMEM;
    /* Seldom deep: pages that are not touched cost nothing, if they are small. */
    w->stack = malloc((ranges + 1) * sizeof(*w->stack));
    if (w->stack == NULL || segments_alloc(out, 2 * ranges + 1) != 0) {
        symint_sweep_abandon(w);
        return SYM_ERR_NOMEM;
    }
    return 0;
}

void symint_sweep_advance(struct symint_sweep *w, uint64_t address)
{
    while (w->depth > 0 && w->stack[w->depth - 1].end <= address) {
        uint64_t end = w->stack[w->depth - 1].end;
        /* Those below that ended earlier were hidden to their end: they leave no trace. */
        while (w->depth > 0 && w->stack[w->depth - 1].end <= end)
            w->depth--;
        emit(w->out, end, w->depth > 0 ? w->stack[w->depth - 1].owner : SYMINT_NO_OWNER);
    }
}

void symint_sweep_push(struct symint_sweep *w, uint64_t start, uint64_t end, uint32_t owner)
{
    assert(start < end);
    symint_sweep_advance(w, start);
    w->stack[w->depth++] = (struct symint_range){.end = end, .owner = owner};
    emit(w->out, start, owner);
}

void symint_sweep_patch(struct symint_sweep *w, uint64_t start, uint64_t end, uint32_t owner)
{
    assert(start < end && w->depth == 0);
    emit(w->out, start, owner);
    emit(w->out, end, SYMINT_NO_OWNER);
}

void symint_sweep_finish(struct symint_sweep *w)
{
    symint_sweep_advance(w, UINT64_MAX);
    free(w->stack);
    w->stack = NULL;
}

void symint_sweep_abandon(struct symint_sweep *w)
{
    free(w->stack);
    w->stack = NULL;
    symint_segments_free(w->out);
}

/* Whether a gap of `first` has anything of `second` in it. */
static bool adds(const struct symint_segments *first, const struct symint_segments *second)
{
    size_t i = 0; /* segments of first that begin up to where the one of second does */
    for (size_t k = 0; k < second->count; k++) {
        if (second->owner[k] == SYMINT_NO_OWNER)
            continue;
        while (i < first->count && first->start[i] <= second->start[k])
            i++;
        if (i == 0 || first->owner[i - 1] == SYMINT_NO_OWNER)
            return true;
        for (;
             i < first->count && (k + 1 == second->count || first->start[i] < second->start[k + 1]);
             i++)
            if (first->owner[i] == SYMINT_NO_OWNER)
                return true;
    }
    return false;
}

/* The first segment from i on that begins at an address or behind it. */
static size_t first_from(const struct symint_segments *s, size_t i, uint64_t address)
{
    size_t high = s->count;
    while (i < high) {
        size_t middle = i + (high - i) / 2;
        if (s->start[middle] < address)
            i = middle + 1;
        else
            high = middle;
    }
    return i;
}

/* Appends segments [i, end) of another index, of which there is at least one. */
static void append_run(struct symint_segments *to, const struct symint_segments *from, size_t i,
                       size_t end)
{
    emit(to, from->start[i], from->owner[i]);
    memcpy(to->start + to->count, from->start + i + 1, (end - i - 1) * sizeof(*to->start));
    memcpy(to->owner + to->count, from->owner + i + 1, (end - i - 1) * sizeof(*to->owner));
    to->count += end - i - 1;
}

int symint_segments_merge(struct symint_segments *first, struct symint_segments *second)
{
    struct symint_segments merged;
    /* The dynamic symbols of a file that was not stripped are all in .symtab. */
    if (!adds(first, second)) {
        symint_segments_free(second);
        return 0;
    }
    int rc = segments_alloc(&merged, first->count + second->count);
    if (rc != 0)
        return rc;
    size_t i = 0;
    size_t k = 0;
    uint32_t a = SYMINT_NO_OWNER;
    uint32_t b = SYMINT_NO_OWNER;
    while (i < first->count || k < second->count) {
        uint64_t at;
        if (b == SYMINT_NO_OWNER && i < first->count &&
            (k == second->count || first->start[i] < second->start[k])) {
            /* Most of a large index is far from what a small one adds. */
            size_t end = k == second->count ? first->count : first_from(first, i, second->start[k]);
            append_run(&merged, first, i, end);
            a = first->owner[end - 1];
            i = end;
            continue;
        }
        if (k == second->count || (i < first->count && first->start[i] <= second->start[k]))
            at = first->start[i];
        else
            at = second->start[k];
        if (i < first->count && first->start[i] == at)
            a = first->owner[i++];
        if (k < second->count && second->start[k] == at)
            b = second->owner[k++];
        emit(&merged, at, a != SYMINT_NO_OWNER ? a : b);
    }
    symint_segments_free(first);
    symint_segments_free(second);
    *first = merged;
    return 0;
}

#define RADIX_BITS 11
#define RADIX_SIZE ((size_t)1 << RADIX_BITS)

/* Radix sorts, because their time has no bad case. Digits that all keys share are skipped:
 * addresses of one file differ in 20 to 28 bits. */

/* Turns the number of keys with each digit into where the first of them goes. */
static void counts_to_places(size_t *at)
{
    size_t before = 0;
    for (size_t d = 0; d < RADIX_SIZE; d++) {
        size_t here = at[d];
        at[d] = before;
        before += here;
    }
}

int symint_sort_keys(uint64_t *keys, size_t count, unsigned low)
{
    uint64_t varying = 0;
    bool sorted = true;
    for (size_t i = 1; i < count; i++) {
        varying |= keys[i] ^ keys[0];
        sorted &= keys[i - 1] <= keys[i];
    }
    if (sorted)
        return 0;
    uint64_t *other = symint_scratch_alloc(count, sizeof(*other));
    size_t *at = malloc(RADIX_SIZE * sizeof(*at));
    if (other == NULL || at == NULL) {
        free(other);
        free(at);
        return SYM_ERR_NOMEM;
    }
    uint64_t *from = keys;
    uint64_t *to = other;
    for (unsigned shift = low; shift < 64; shift += RADIX_BITS) {
        if ((varying >> shift & (RADIX_SIZE - 1)) == 0)
            continue;
        memset(at, 0, RADIX_SIZE * sizeof(*at));
        for (size_t i = 0; i < count; i++)
            at[from[i] >> shift & (RADIX_SIZE - 1)]++;
        counts_to_places(at);
        for (size_t i = 0; i < count; i++)
            to[at[from[i] >> shift & (RADIX_SIZE - 1)]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof(*keys));
    free(other);
    free(at);
    return 0;
}

int symint_sort_pairs(struct symint_pair *pairs, size_t count)
{
    uint64_t varying = 0;
    bool sorted = true;
    for (size_t i = 1; i < count; i++) {
        varying |= pairs[i].key ^ pairs[0].key;
        sorted &= pairs[i - 1].key <= pairs[i].key;
    }
    if (sorted)
        return 0;
    if (count < 32) {
        for (size_t i = 1; i < count; i++) {
            struct symint_pair moving = pairs[i];
            size_t k = i;
            for (; k > 0 && pairs[k - 1].key > moving.key; k--)
                pairs[k] = pairs[k - 1];
            pairs[k] = moving;
        }
        return 0;
    }
    struct symint_pair *other = symint_scratch_alloc(count, sizeof(*other));
    size_t *at = malloc(RADIX_SIZE * sizeof(*at));
    if (other == NULL || at == NULL) {
        free(other);
        free(at);
        return SYM_ERR_NOMEM;
    }
    struct symint_pair *from = pairs;
    struct symint_pair *to = other;
    for (unsigned shift = 0; shift < 64; shift += RADIX_BITS) {
        if ((varying >> shift & (RADIX_SIZE - 1)) == 0)
            continue;
        memset(at, 0, RADIX_SIZE * sizeof(*at));
        for (size_t i = 0; i < count; i++)
            at[from[i].key >> shift & (RADIX_SIZE - 1)]++;
        counts_to_places(at);
        for (size_t i = 0; i < count; i++)
            to[at[from[i].key >> shift & (RADIX_SIZE - 1)]++] = from[i];
        struct symint_pair *swap = from;
        from = to;
        to = swap;
    }
    if (from != pairs)
        memcpy(pairs, from, count * sizeof(*pairs));
    free(other);
    free(at);
    return 0;
}
