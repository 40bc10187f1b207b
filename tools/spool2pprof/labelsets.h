/* SPDX-License-Identifier: MIT */
/* The labels of samples: who was sampled, as far as --labels wants it. Equal labels are one set, packed once. */
#ifndef TOOLS_LABELSETS_H
#define TOOLS_LABELSETS_H

#include "labels.h"
#include "names.h"
#include "stringtable.h"
#include "text.h"

/* --labels */
enum {
    LABEL_PID = 1 << 0,
    LABEL_TID = 1 << 1,
    LABEL_PROCESS = 1 << 2,
    LABEL_THREAD = 1 << 3,
    LABEL_ALL = LABEL_PID | LABEL_TID | LABEL_PROCESS | LABEL_THREAD
};

struct labelset_bytes {
    size_t begin, size; /* in packed; begin is SIZE_MAX before it is packed */
};

struct labelsets {
    unsigned wanted; /* LABEL_* */
    struct stringtable *strings;
    struct labels keys; /* struct labelset_key each */
    struct labelset_bytes *bytes;
    size_t bytes_capacity;
    struct text_buffer packed;
    struct text_buffer clean; /* scratch */
};

/* These end the tool without memory. */
void labelsets_init(struct labelsets *s, unsigned wanted, struct stringtable *strings);
void labelsets_free(struct labelsets *s);

/* The set of a source. */
uint32_t labelsets_of(struct labelsets *s, const struct source *source);

/* The labels of a set as envelope_sample takes them, in the order of their keys. Valid until the next call. */
const char *labelsets_packed(struct labelsets *s, uint32_t set, size_t *size);

#endif
