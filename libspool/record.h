/* SPDX-License-Identifier: MIT */
/*
 * The bytes of each record: decoding with every check of the format in the order in which it demands them, and
 * encoding beside it. Knows the numbers of definitions so far, not the definitions: what a record refers to is
 * asked of the table.
 */
#ifndef SPOOLINT_RECORD_H
#define SPOOLINT_RECORD_H

#include "error.h"
#include "spool/spool.h"
#include "varint.h"

struct table;

/* Growing byte buffer of the encoders; `failed` is set when memory ran out and stays set. */
struct byte_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool failed;
};

/* Scratch of the JIT decoder, kept between records. A record that was short is not checked again from its start when
 * more of it has come: of a growing file that could be a few bytes each time. */
struct jit_scratch {
    struct spool_jit_symbol *symbols;
    size_t capacity;
    uint64_t offset_bytes; /* of the record that was short */
    size_t checked;        /* symbols of it that passed; 0: none */
    size_t checked_bytes;  /* from the tag to the end of these */
};

enum decode_result {
    DECODE_OK = 1,
    DECODE_SHORT = 0,   /* a field runs past the window; nothing was kept */
    DECODE_TOO_LONG = 2 /* a path or the names are longer than this library keeps */
    /* negative: SPOOL_ERR_CORRUPT or _NOMEM, text set */
};

/* Decodes the header behind the magic. version is known. */
int spoolint_record_decode_header(struct cursor *c, struct spool_header *h, struct error_state *e);

/* Decodes the record at c->at (its tag) against the definitions in t. Byte strings of *rec point into the window
 * (not terminated). offset_bytes is the tag's place in the spool, for messages and for the rule that a length may
 * not lead beyond 2^64-1. With DECODE_TOO_LONG *needed_bytes is how many bytes the record needs at least beyond
 * the cursor's start. */
int spoolint_record_decode(struct cursor *c, uint64_t offset_bytes, const struct table *t,
                           struct jit_scratch *jit, struct spool_record *rec,
                           uint64_t *needed_bytes, struct error_state *e);

/* Encoders: the shortest form of everything. Records are not checked here. version is the spool's. A sample is
 * written with its delta_ns. */
void spoolint_record_encode_header(struct byte_buffer *b, const struct spool_header *h);
void spoolint_record_encode(struct byte_buffer *b, uint32_t version,
                            const struct spool_record *rec);

/* Name of a record type for messages: "sample". */
const char *spoolint_record_name(enum spool_record_type type);

/* Room for `size` more bytes; false and b->failed when there is no memory. */
bool spoolint_buffer_reserve(struct byte_buffer *b, size_t size);

#endif
