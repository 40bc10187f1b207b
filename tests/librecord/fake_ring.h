/* SPDX-License-Identifier: MIT */
/* A ring in memory of our own, and the kernel's part of writing to it. */
#ifndef TESTS_FAKE_RING_H
#define TESTS_FAKE_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

struct fake_ring {
    uint64_t *memory; /* control page, data */
    size_t size;
    uint64_t head;
    struct ring ring;
};

#define FAKE_PAGE 4096u

static inline struct perf_event_mmap_page *fake_control(struct fake_ring *f)
{
    return (struct perf_event_mmap_page *)(void *)f->memory;
}

/* A ring whose first record will stand at position `start`. */
static inline void fake_ring_new(struct fake_ring *f, size_t size, uint64_t start)
{
    f->memory = calloc(1, FAKE_PAGE + size);
    f->size = size;
    f->head = start;
    fake_control(f)->data_head = start;
    fake_control(f)->data_tail = start;
    recordint_ring_use(&f->ring, f->memory, FAKE_PAGE, size);
}

static inline void fake_ring_free(struct fake_ring *f)
{
    recordint_ring_unmap(&f->ring);
    free(f->memory);
}

/* Writes a record as the kernel does: false when there is no room. */
static inline bool fake_ring_write(struct fake_ring *f, const void *record, size_t size)
{
    uint64_t tail = __atomic_load_n(&fake_control(f)->data_tail, __ATOMIC_ACQUIRE);
    uint8_t *data = (uint8_t *)f->memory + FAKE_PAGE;

    if (f->size - (f->head - tail) < size)
        return false;
    for (size_t i = 0; i < size; i += 8)
        memcpy(data + ((f->head + i) & (f->size - 1)), (const uint8_t *)record + i, 8);
    f->head += size;
    __atomic_store_n(&fake_control(f)->data_head, f->head, __ATOMIC_RELEASE);
    return true;
}

#endif
