/* SPDX-License-Identifier: MIT */
/*
 * A part of a file as memory of ours, read piece by piece when it is asked for: unwind tables of large
 * libraries have ten megabytes, of which a profile touches a few. A mapping of the file would do that as
 * well, but kills the process when the file shrinks.
 */
#ifndef RECORD_LAZY_BYTES_H
#define RECORD_LAZY_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file_source.h"

/* A page: to have one costs more than the system call that fills it, in a virtual machine many times more. */
#define LAZY_CHUNK ((size_t)4 * 1024)

/* From here on huge pages are asked for, which cost once what 512 pages do. Memory for the rest of one is not
 * saved then; few files have tables of that size. */
#define LAZY_HUGE_MIN ((size_t)512 * 1024)

/* All zero: there are no bytes. */
struct lazy_bytes {
    const uint8_t *bytes; /* stays where it is until free */
    size_t size;
    struct file_source *file; /* the image's; what is missing comes from here */
    uint64_t file_offset;
    uint8_t *pages; /* a reservation of ours around bytes; NULL: all bytes are there */
    size_t pages_size;
    uint8_t *present;  /* a bit for each chunk */
    uint8_t *unpacked; /* bytes, while they are malloc'ed; else NULL */
};

/* [offset, offset + size) of a file, which is to outlive b; nothing is read. False: no memory, or no bytes. */
bool recordint_lazy_open_file(struct lazy_bytes *b, struct file_source *file, uint64_t offset,
                              size_t size);

/* Bytes that are there already and outlive b. */
void recordint_lazy_open_memory(struct lazy_bytes *b, const uint8_t *bytes, size_t size);

/* Bytes that are there already, malloc'ed and now b's. */
void recordint_lazy_open_malloced(struct lazy_bytes *b, uint8_t *bytes, size_t size);

void recordint_lazy_free(struct lazy_bytes *b);

/* Reads what is missing of [at, at + size), which lies inside. False: the file has become shorter, or
 * cannot be read. */
bool recordint_lazy_load(struct lazy_bytes *b, size_t at, size_t size);

/* [at, at + size), at any numbers; NULL: they are not all there. */
static inline const uint8_t *recordint_lazy_get(struct lazy_bytes *b, uint64_t at, uint64_t size)
{
    if (at > b->size || size > b->size - at)
        return NULL;
    if (b->present != NULL && size > 0) {
        size_t first = (size_t)at / LAZY_CHUNK;
        size_t last = (size_t)(at + size - 1) / LAZY_CHUNK;
        bool there = first == last && (b->present[first / 8] >> first % 8 & 1) != 0;
        if (!there && !recordint_lazy_load(b, (size_t)at, (size_t)size))
            return NULL;
    }
    return b->bytes + at;
}

#endif
