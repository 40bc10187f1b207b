/* SPDX-License-Identifier: MIT */
/* Pieces of a file are read in place into a reservation that costs memory only where it was touched. */
#include "lazy_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

bool recordint_lazy_open_fd(struct lazy_bytes *b, int fd, uint64_t offset, size_t size)
{
    *b = (struct lazy_bytes){.fd = -1};
    if (size == 0 || size > SIZE_MAX - LAZY_CHUNK)
        return false;
    size_t chunks = (size + LAZY_CHUNK - 1) / LAZY_CHUNK;
    uint8_t *present = calloc(chunks / 8 + 1, 1);
    if (present == NULL)
        return false;
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        free(present);
        return false;
    }
    /* A huge page would be cleared for the first byte of each 2 MiB. No harm where there are none. */
    madvise(pages, size, MADV_NOHUGEPAGE);
    *b = (struct lazy_bytes){.bytes = pages,
                             .size = size,
                             .fd = fd,
                             .file_offset = offset,
                             .pages = pages,
                             .present = present};
    return true;
}

void recordint_lazy_open_memory(struct lazy_bytes *b, const uint8_t *bytes, size_t size)
{
    *b = (struct lazy_bytes){.bytes = bytes, .size = size, .fd = -1};
}

void recordint_lazy_open_malloced(struct lazy_bytes *b, uint8_t *bytes, size_t size)
{
    *b = (struct lazy_bytes){.bytes = bytes, .size = size, .fd = -1, .unpacked = bytes};
}

void recordint_lazy_free(struct lazy_bytes *b)
{
    if (b->pages != NULL)
        munmap(b->pages, b->size);
    free(b->present);
    free(b->unpacked);
    *b = (struct lazy_bytes){.fd = -1};
}

static bool is_present(const struct lazy_bytes *b, size_t chunk)
{
    return (b->present[chunk / 8] >> chunk % 8 & 1) != 0;
}

/* Reads chunks [first, end). */
static bool read_chunks(struct lazy_bytes *b, size_t first, size_t end)
{
    size_t at = first * LAZY_CHUNK;
    size_t stop = end * LAZY_CHUNK < b->size ? end * LAZY_CHUNK : b->size;
    while (at < stop) {
        ssize_t n = pread(b->fd, b->pages + at, stop - at, (off_t)(b->file_offset + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    for (size_t chunk = first; chunk < end; chunk++)
        b->present[chunk / 8] |= (uint8_t)(1 << chunk % 8);
    return true;
}

bool recordint_lazy_load(struct lazy_bytes *b, size_t at, size_t size)
{
    size_t chunk = at / LAZY_CHUNK;
    size_t end = (at + size - 1) / LAZY_CHUNK + 1;
    while (chunk < end) {
        size_t first = chunk;
        while (chunk < end && !is_present(b, chunk))
            chunk++;
        if (chunk > first && !read_chunks(b, first, chunk))
            return false;
        while (chunk < end && is_present(b, chunk))
            chunk++;
    }
    return true;
}
