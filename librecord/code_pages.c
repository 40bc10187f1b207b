/* SPDX-License-Identifier: MIT */
/* Eight pages of code, each kept at the one place that its address gives. */
#include "code_pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define PAGE_BYTES 4096u
#define PAGES 8u
/* Tried to read in a round, at about a microsecond each: a few hundredths of a CPU, whatever is recorded. */
#define READS_A_ROUND 4096u

struct code_page {
    uint64_t address;
    uint64_t space;
    uint32_t round;
    bool valid;
    uint8_t bytes[PAGE_BYTES];
};

struct code_pages {
    struct code_page pages[PAGES];
    uint32_t round;
    unsigned reads; /* in it */
};

struct code_pages *recordint_code_pages_new(void)
{
    return calloc(1, sizeof(struct code_pages));
}

void recordint_code_pages_free(struct code_pages *p)
{
    free(p);
}

static bool read_page(pid_t pid, uint64_t address, uint8_t *out)
{
    struct iovec local = {out, PAGE_BYTES}, remote = {(void *)(uintptr_t)address, PAGE_BYTES};

    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)PAGE_BYTES;
}

/* NULL: not readable. */
static const struct code_page *page_of(struct code_pages *p, pid_t pid, uint64_t space,
                                       uint32_t round, uint64_t address)
{
    struct code_page *page = &p->pages[address / PAGE_BYTES % PAGES];
    bool known = page->valid && page->address == address && page->space == space;
    uint8_t bytes[PAGE_BYTES];

    if (known && page->round == round)
        return page;
    if (p->round != round) {
        p->round = round;
        p->reads = 0;
    }
    if (p->reads >= READS_A_ROUND)
        return known ? page : NULL;
    p->reads++;
    if (!read_page(pid, address, bytes))
        return known ? page : NULL;
    memcpy(page->bytes, bytes, sizeof bytes);
    page->address = address;
    page->space = space;
    page->round = round;
    page->valid = true;
    return page;
}

size_t recordint_code_pages_read(struct code_pages *p, pid_t pid, uint64_t space, uint32_t round,
                                 uint64_t address, void *out, size_t size)
{
    uint8_t *to = out;
    size_t done = 0;

    while (done < size) {
        uint64_t at = address + done;
        size_t in_page = (size_t)(at % PAGE_BYTES), part = PAGE_BYTES - in_page;
        const struct code_page *page = page_of(p, pid, space, round, at - in_page);

        if (page == NULL)
            break;
        if (part > size - done)
            part = size - done;
        memcpy(to + done, page->bytes + in_page, part);
        done += part;
    }
    return done;
}
