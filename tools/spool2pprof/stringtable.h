/* SPDX-License-Identifier: MIT */
/*
 * The texts of a profile. A text has a number from when it is first met, and an index in the document from when
 * something that is written first refers to it: what nothing refers to is not written.
 */
#ifndef TOOLS_STRINGTABLE_H
#define TOOLS_STRINGTABLE_H

#include "labels.h"

#define STRINGTABLE_EMPTY 0u /* the number of "", whose index is 0 */

struct stringtable {
    struct labels texts;
    uint32_t *indexes; /* by text; 0: none yet */
    size_t index_capacity;
    uint32_t *order; /* texts by index */
    uint32_t count;
    size_t order_capacity;
};

/* These end the tool without memory. */
void stringtable_init(struct stringtable *t);
void stringtable_free(struct stringtable *t);

/* The number of a text. */
uint32_t stringtable_text(struct stringtable *t, const char *text, size_t size);

/* The index of a text in the document. */
uint32_t stringtable_index(struct stringtable *t, uint32_t text);

/* Both at once, for a text that ends with a NUL. */
uint32_t stringtable_index_of(struct stringtable *t, const char *text);

/* The text at an index below t->count; not terminated. */
const char *stringtable_get(const struct stringtable *t, uint32_t index, size_t *size);

#endif
