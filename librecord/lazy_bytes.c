/* SPDX-License-Identifier: MIT */
/* Pieces of a file are read in place into a reservation that costs memory only where it was touched. */
#include "lazy_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 * 1024 * 1024)

bool recordint_lazy_open_file(struct lazy_bytes *b, struct file_source *file, uint64_t offset,
                              size_t size)
{
    *b = (struct lazy_bytes){0};
    if (size == 0 || size > SIZE_MAX / 2)
        return false;
    bool huge = size >= LAZY_HUGE_MIN;
    size_t room = huge ? (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE + HUGE_PAGE : size;
    uint8_t *present = calloc(size / LAZY_CHUNK / 8 + 1, 1);
    if (present == NULL)
        return false;
    uint8_t *pages = mmap(NULL, room, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        free(present);
        return false;
    }
    /* Small tables are to stay small whatever the system's default is. No harm where there are no huge pages. */
    madvise(pages, room, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    size_t skipped = huge ? (size_t)(-(uintptr_t)pages & (HUGE_PAGE - 1)) : 0;
    *b = (struct lazy_bytes){.bytes = pages + skipped,
                             .size = size,
                             .file = file,
                             .file_offset = offset,
                             .pages = pages,
                             .pages_size = room,
                             .present = present};
    return true;
}

void recordint_lazy_open_memory(struct lazy_bytes *b, const uint8_t *bytes, size_t size)
{
    *b = (struct lazy_bytes){.bytes = bytes, .size = size};
}

void recordint_lazy_open_malloced(struct lazy_bytes *b, uint8_t *bytes, size_t size)
{
    *b = (struct lazy_bytes){.bytes = bytes, .size = size, .unpacked = bytes};
}

void recordint_lazy_free(struct lazy_bytes *b)
{
    if (b->pages != NULL)
        munmap(b->pages, b->pages_size);
    free(b->present);
    free(b->unpacked);
    *b = (struct lazy_bytes){0};
}

static bool is_present(const struct lazy_bytes *b, size_t chunk)
{
    return (b->present[chunk / 8] >> chunk % 8 & 1) != 0;
}

/* Reads chunks [first, end). */
static bool read_chunks(struct lazy_bytes *b, size_t first, size_t end)
{
    uint8_t *bytes = b->pages + (b->bytes - b->pages);
    size_t at = first * LAZY_CHUNK;
    size_t stop = end * LAZY_CHUNK < b->size ? end * LAZY_CHUNK : b->size;
    int fd = file_source_fd(b->file);
    while (at < stop) {
        ssize_t n = pread(fd, bytes + at, stop - at, (off_t)(b->file_offset + at));
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
