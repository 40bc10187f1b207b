/* SPDX-License-Identifier: MIT */
/* The word that somebody who mistyped probably meant. */
#ifndef TOOLS_SPELLING_H
#define TOOLS_SPELLING_H

#include <stddef.h>

/* Longer words than this are nobody's slip. */
#define SPELLING_MAX 31

struct spelling {
    const char *word; /* as it was typed; borrowed, not terminated */
    size_t size;
    char best[SPELLING_MAX + 1]; /* the nearest so far; "": none is near */
    size_t distance;             /* that one's; what is as far or farther is not taken */
};

void spelling_begin(struct spelling *s, const char *word, size_t size);
/* A word that exists: prefix and name put together. Of equally near ones the first is taken. */
void spelling_offer(struct spelling *s, const char *prefix, const char *name, size_t name_size);

#endif
