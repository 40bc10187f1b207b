/* SPDX-License-Identifier: MIT */
/*
 * Head and tail count bytes since the ring was made and are never reduced; a position is their value modulo the
 * size. The kernel writes data, then the head with release; we read the head with acquire, then data, and write
 * the tail with release when we are done with what lies before it.
 */
#include "ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COPY_SIZE ((size_t)1 << 16) /* a record's size has 16 bits */

static struct perf_event_mmap_page *control_of(const struct ring *r)
{
    return r->control;
}

void recordint_ring_use(struct ring *r, void *control, size_t page_size, size_t size_bytes)
{
    memset(r, 0, sizeof *r);
    r->control = control;
    r->data = (uint8_t *)control + page_size;
    r->size = size_bytes;
    r->tail = control_of(r)->data_tail;
    r->head = r->tail;
}

int recordint_ring_map(struct ring *r, int fd, size_t size_bytes)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    size_t mapping_size = page_size + size_bytes;
    void *p;

    memset(r, 0, sizeof *r);
    if (size_bytes < page_size || (size_bytes & (size_bytes - 1)) != 0)
        return EINVAL;
    p = mmap(NULL, mapping_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return errno;
    /* A child that we fork must not hold the ring. That it might is no reason to fail. */
    (void)madvise(p, mapping_size, MADV_DONTFORK);
    recordint_ring_use(r, p, page_size, size_bytes);
    r->mapping_size = mapping_size;
    return 0;
}

void recordint_ring_unmap(struct ring *r)
{
    if (r->mapping_size != 0)
        munmap(r->control, r->mapping_size);
    free(r->copy);
    memset(r, 0, sizeof *r);
}

static void resynchronise(struct ring *r)
{
    r->corrupt++;
    r->tail = r->head;
}

size_t recordint_ring_update(struct ring *r)
{
    r->head = __atomic_load_n(&control_of(r)->data_head, __ATOMIC_ACQUIRE);
    if (r->head - r->tail > r->size)
        resynchronise(r);
    return (size_t)(r->head - r->tail);
}

/* A piece of the ring that goes round its end, in one piece; NULL: out of memory. */
static const void *unwrap(struct ring *r, size_t at, size_t size)
{
    size_t first = r->size - at;

    if (r->copy == NULL) {
        r->copy = malloc(COPY_SIZE);
        if (r->copy == NULL)
            return NULL;
    }
    memcpy(r->copy, r->data + at, first);
    memcpy(r->copy + first, r->data, size - first);
    return r->copy;
}

bool recordint_ring_peek(struct ring *r, const void **data, size_t *size)
{
    while (r->head != r->tail) {
        size_t at = (size_t)(r->tail & (r->size - 1));
        struct perf_event_header header;

        /* Records are multiples of 8, so a header never goes round the end. */
        if (at % 8 != 0 || r->head - r->tail < sizeof header) {
            resynchronise(r);
            return false;
        }
        memcpy(&header, r->data + at, sizeof header);
        if (header.size < sizeof header || header.size % 8 != 0 ||
            header.size > r->head - r->tail) {
            resynchronise(r);
            return false;
        }
        *size = header.size;
        *data = header.size <= r->size - at ? r->data + at : unwrap(r, at, header.size);
        if (*data != NULL)
            return true;
        r->corrupt++; /* out of memory: this one is lost, the next need not be */
        r->tail += header.size;
    }
    return false;
}

void recordint_ring_consume(struct ring *r)
{
    size_t at = (size_t)(r->tail & (r->size - 1));
    struct perf_event_header header;

    if (r->head == r->tail)
        return;
    memcpy(&header, r->data + at, sizeof header);
    r->tail += header.size;
}

void recordint_ring_release(struct ring *r)
{
    __atomic_store_n(&control_of(r)->data_tail, r->tail, __ATOMIC_RELEASE);
}

size_t recordint_ring_unread(const struct ring *r)
{
    uint64_t unread = __atomic_load_n(&control_of(r)->data_head, __ATOMIC_ACQUIRE) - r->tail;

    return unread > r->size ? r->size : (size_t)unread;
}
