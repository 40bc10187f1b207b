/* SPDX-License-Identifier: MIT */
/*
 * A bump allocator. Chunks double from 4 KiB to 1 MiB, so that a small spool costs little and a
 * large one few calls of malloc; what would waste much of a chunk gets one of its own.
 */
#include "arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN ((size_t)4 << 10)
#define CHUNK_MAX ((size_t)1 << 20)
#define ALIGN_MAX 4096

/* The bytes follow the header. */
struct chunk {
    struct chunk *next;
};

struct arena {
    struct chunk *chunks; /* in no order that matters */
    uint8_t *at;          /* free part of the chunk that is being filled */
    uint8_t *end;
    size_t next_size; /* of the next chunk to fill */
};

struct arena *spoolint_arena_new(void)
{
    struct arena *a = malloc(sizeof *a);

    if (a == NULL)
        return NULL;
    *a = (struct arena){.next_size = CHUNK_MIN};
    return a;
}

void spoolint_arena_free(struct arena *a)
{
    if (a == NULL)
        return;
    while (a->chunks != NULL) {
        struct chunk *c = a->chunks;

        a->chunks = c->next;
        free(c);
    }
    free(a);
}

static uint8_t *add_chunk(struct arena *a, size_t size)
{
    struct chunk *c = malloc(size);

    if (c == NULL)
        return NULL;
    c->next = a->chunks;
    a->chunks = c;
    return (uint8_t *)(c + 1);
}

static size_t padding(const uint8_t *p, size_t align)
{
    return (size_t)(-(uintptr_t)p & (align - 1));
}

void *spoolint_arena_alloc(struct arena *a, size_t size, size_t align)
{
    size_t pad = padding(a->at, align);
    size_t worst; /* bytes that suffice in a new chunk */
    uint8_t *p;

    assert(align > 0 && align <= ALIGN_MAX && (align & (align - 1)) == 0);
    if (a->at != NULL && pad <= (size_t)(a->end - a->at) &&
        size <= (size_t)(a->end - a->at) - pad) {
        p = a->at + pad;
        a->at = p + size;
        return p;
    }
    if (size > SIZE_MAX - ALIGN_MAX - sizeof(struct chunk))
        return NULL;
    worst = sizeof(struct chunk) + align + size;
    if (worst > a->next_size / 4) {
        /* Its own chunk; the one that is being filled stays the current one. */
        p = add_chunk(a, worst);
        return p == NULL ? NULL : p + padding(p, align);
    }
    p = add_chunk(a, a->next_size);
    if (p == NULL)
        return NULL;
    a->end = p + (a->next_size - sizeof(struct chunk));
    if (a->next_size < CHUNK_MAX)
        a->next_size *= 2;
    p += padding(p, align);
    a->at = p + size;
    return p;
}

char *spoolint_arena_copy_text(struct arena *a, const void *data, size_t size)
{
    char *text;

    if (size == SIZE_MAX)
        return NULL;
    text = spoolint_arena_alloc(a, size + 1, 1);
    if (text == NULL)
        return NULL;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}
