/* SPDX-License-Identifier: MIT */
/* Overlapping address ranges flattened into disjoint ones, so that a lookup is one binary
 * search. */
#ifndef SYMINT_SEGMENTS_H
#define SYMINT_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

#define SYMINT_NO_OWNER UINT32_MAX

/* Segment i covers [start[i], start[i + 1]), the last one everything above; below start[0]
 * nobody owns anything. An owner is an index the builder chose, or SYMINT_NO_OWNER for a gap. */
struct symint_segments {
    uint64_t *start;
    uint32_t *owner;
    size_t count;
};

void symint_segments_free(struct symint_segments *s);
/* To be called when nothing is added any more and they are kept for long: gives back memory. */
void symint_segments_settle(struct symint_segments *s);
uint32_t symint_segments_find(const struct symint_segments *s, uint64_t address);
/* The same for addresses of which many are near to the one before: *near is the segment that had that one, any number at
 * first. */
uint32_t symint_segments_find_near(const struct symint_segments *s, uint64_t address, size_t *near);
/* The segment that contains an address which has an owner. */
void symint_segments_bounds(const struct symint_segments *s, uint64_t address, uint64_t *start,
                            uint64_t *end);

/* The number of segments that begin at an address or below it: of the first one above. */
size_t symint_segments_above(const struct symint_segments *s, uint64_t address);

/* Builds segments from ranges that arrive in order of ascending start and, at one start,
 * descending end. At each address the range that arrived last among those that contain it owns
 * it: the latest start, then the shortest. */
struct symint_sweep {
    struct symint_segments *out;
    struct symint_range *stack; /* open ranges, the owner of the current address on top */
    size_t depth;
};

struct symint_range {
    uint64_t end;
    uint32_t owner;
};

/* Room for `ranges` calls of push or patch. 0 or SYM_ERR_NOMEM; finish or abandon afterwards. */
int symint_sweep_start(struct symint_sweep *w, struct symint_segments *out, size_t ranges);
/* Moves to an address: closes what ends up to there. */
void symint_sweep_advance(struct symint_sweep *w, uint64_t address);
/* Opens [start, end), start < end. */
void symint_sweep_push(struct symint_sweep *w, uint64_t start, uint64_t end, uint32_t owner);
/* Fills [start, end), which no range reaches into. */
void symint_sweep_patch(struct symint_sweep *w, uint64_t start, uint64_t end, uint32_t owner);
void symint_sweep_finish(struct symint_sweep *w);
void symint_sweep_abandon(struct symint_sweep *w); /* frees the segments too */

/* Fills the gaps of `first` from `second`; takes both. 0 or SYM_ERR_NOMEM (nothing is taken
 * then). */
int symint_segments_merge(struct symint_segments *first, struct symint_segments *second);

struct symint_pair {
    uint64_t key;
    uint32_t value;
};

/* Sorts numbers by the bits from `low` on. 0 or SYM_ERR_NOMEM. */
int symint_sort_keys(uint64_t *keys, size_t count, unsigned low);

/* Sorts by key; pairs of one key keep their order. 0 or SYM_ERR_NOMEM. */
int symint_sort_pairs(struct symint_pair *pairs, size_t count);

#endif
