/* SPDX-License-Identifier: MIT */
/* Interned texts of frames: equal text, equal number. */
#ifndef TOOLS_LABELS_H
#define TOOLS_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include "spread.h"

struct label_entry {
    size_t begin; /* in texts */
    uint32_t size;
    uint32_t hash;
};

struct labels {
    char *texts;
    size_t text_size, text_capacity;
    struct label_entry *entries;
    uint32_t count;
    size_t capacity;
    uint32_t *slots; /* open hash: number + 1 */
    size_t slot_count;
    struct spread spread;
};

void labels_init(struct labels *l);
void labels_free(struct labels *l);

/* The number of a text, which is copied. Ends the tool without memory. */
uint32_t labels_intern(struct labels *l, const char *text, size_t size);

/* Not terminated; valid until the next labels_intern. */
const char *labels_text(const struct labels *l, uint32_t label, size_t *size);

/* The places of all labels in the order of bytes, twice: [2 x label] as the text ends a line, [2 x label + 1] as it
 * stands with a ';' behind it. malloc'ed, the caller's. */
uint32_t *labels_rank(const struct labels *l);

#endif
