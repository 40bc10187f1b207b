/* SPDX-License-Identifier: MIT */
/* Kernel code that came and went during a capture: what was at an address at a time. */
#ifndef SYMINT_KSYMBOL_H
#define SYMINT_KSYMBOL_H

#include "spool/sym.h"

/* An event as it counts: code that began at address, or the end of what did. */
struct symint_ksymbol_event {
    uint64_t time;
    uint64_t address;
    uint64_t end; /* of what it covers; address where it covers nothing */
    size_t name;  /* offset in names */
    size_t name_size;
    bool gone;
};

/* A segment tree over the pieces between all starts and ends: node n has the events that cover
 * its whole piece of addresses, as lists[first[n]] to lists[first[n + 1]], ascending. */
struct symint_ksymbols {
    struct symint_ksymbol_event *events; /* in order of time */
    size_t count;
    char *names;
    uint64_t *edges; /* ascending; leaf i is [edges[i], edges[i + 1]) */
    size_t edge_count;
    uint64_t *first; /* of 2 * edge_count + 1 */
    uint32_t *lists;
};

enum symint_ksymbol_answer {
    SYMINT_KSYMBOL_UNTOUCHED, /* no event is about this address: ask kallsyms */
    SYMINT_KSYMBOL_NOTHING,   /* nothing that has a name was there then */
    SYMINT_KSYMBOL_NAMED
};

/* Builds the index of `count` events (copied, with names), which are in order of time. 0 or
 * SYM_ERR_NOMEM (nothing is built then). */
int symint_ksymbols_build(struct symint_ksymbols *k, const struct sym_ksymbol *events,
                          size_t count);
void symint_ksymbols_free(struct symint_ksymbols *k);

/* What was at an address at a time. *event is the one that decided, when NAMED. */
enum symint_ksymbol_answer symint_ksymbols_find(const struct symint_ksymbols *k, uint64_t address,
                                                uint64_t time, uint32_t *event);

#endif
