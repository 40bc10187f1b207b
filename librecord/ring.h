/* SPDX-License-Identifier: MIT */
/*
 * A ring buffer shared with the kernel: one page of control (struct perf_event_mmap_page), then data. Works
 * on any memory of that shape, so that tests need no kernel. A record that wraps is copied, every other is
 * used in place until it is consumed.
 */
#ifndef RECORD_RING_H
#define RECORD_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    void *control;       /* the mapping, control page first; NULL: not set up */
    size_t mapping_size; /* for munmap; 0: memory of the caller */
    uint8_t *data;
    size_t size;   /* of data, a power of two */
    uint64_t head; /* as of the latest ring_update */
    uint64_t tail; /* what we have consumed */
    uint8_t *copy; /* a record that wraps, 64 KiB; NULL before the first */
    uint64_t
        corrupt; /* records of size 0 or beyond the head: the ring was resynchronised to the head */
};

/* Maps the ring of an event's descriptor: pages of data, a power of two. Marks it DONTFORK. Returns 0 or an
 * errno value. */
int recordint_ring_map(struct ring *r, int fd, size_t size_bytes);
/* Uses memory that is there: one page of control, then size bytes. */
void recordint_ring_use(struct ring *r, void *control, size_t page_size, size_t size_bytes);
void recordint_ring_unmap(struct ring *r);

/* Takes the kernel's head anew (acquire). Returns the number of unread bytes. */
size_t recordint_ring_update(struct ring *r);

/* The first record that is not consumed: at *data, 8-byte aligned, *size its header's size. Returns false when
 * there is none below the head. ENOMEM for a wrapping record: it counts as corrupt. */
bool recordint_ring_peek(struct ring *r, const void **data, size_t *size);

/* Consumes the record of peek. The kernel may overwrite it once recordint_ring_release was called. */
void recordint_ring_consume(struct ring *r);
/* Publishes the tail (release). */
void recordint_ring_release(struct ring *r);

/* Bytes that the kernel has written and we have not consumed, without touching anything. */
size_t recordint_ring_unread(const struct ring *r);

#endif
