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

static int segments_alloc(struct symint_segments *s, size_t capacity)
{
    *s = (struct symint_segments){0};
    s->start = symint_table_alloc(capacity, sizeof(*s->start));
    s->owner = symint_table_alloc(capacity, sizeof(*s->owner));
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

/* Without a branch on the comparison: half of those would be mispredicted. */
uint32_t symint_segments_find(const struct symint_segments *s, uint64_t address)
{
    if (s->count == 0 || address < s->start[0])
        return SYMINT_NO_OWNER;
    const uint64_t *base = s->start;
    size_t left = s->count;
    while (left > 1) {
        size_t half = left / 2;
        base = base[half] <= address ? base + half : base;
        left -= half;
    }
    return s->owner[base - s->start];
}

int symint_sweep_start(struct symint_sweep *w, struct symint_segments *out, size_t ranges)
{
    *w = (struct symint_sweep){.out = out};
    *out = (struct symint_segments){0};
    /* Each range begins one segment and its end begins at most one more. */
    if (ranges > (SIZE_MAX / sizeof(struct symint_range) - 1) / 2)
        return SYM_ERR_NOMEM;
    w->stack = symint_table_alloc(ranges + 1, sizeof(*w->stack));
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

/* A radix sort, because its time has no bad case. Digits that all keys share are skipped:
 * addresses of one file differ in 20 to 28 bits. */
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
    struct symint_pair *other = symint_table_alloc(count, sizeof(*other));
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
        size_t before = 0;
        for (size_t d = 0; d < RADIX_SIZE; d++) {
            size_t here = at[d];
            at[d] = before;
            before += here;
        }
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
