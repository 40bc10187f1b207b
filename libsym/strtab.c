/* SPDX-License-Identifier: MIT */
/* The arena and the table of texts. Nothing in them is freed before the context is: frames point
 * here. */
#include "strtab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_SIZE ((size_t)64 * 1024)
#define ALIGNMENT sizeof(max_align_t)

#define HUGE_PAGE ((size_t)2 * 1024 * 1024)

void *symint_table_alloc(size_t count, size_t item_size)
{
    if (count > (SIZE_MAX - HUGE_PAGE) / item_size)
        return NULL;
    size_t size = count * item_size;
    if (size < HUGE_PAGE / 2)
        return malloc(size == 0 ? 1 : size);
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *table = aligned_alloc(HUGE_PAGE, size);
    if (table != NULL)
        (void)madvise(table, size, MADV_HUGEPAGE); /* advice: without it, it is only slower */
    return table;
}

struct symint_chunk {
    struct symint_chunk *older;
    max_align_t data[];
};

void *symint_arena_alloc(struct symint_arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size > a->left) {
        /* Something large gets a chunk of its own; what is left of the current one stays in use. */
        bool alone = size > CHUNK_SIZE / 4;
        size_t room = alone ? size : CHUNK_SIZE;
        struct symint_chunk *chunk = malloc(sizeof(*chunk) + room);
        if (chunk == NULL)
            return NULL;
        if (alone && a->chunks != NULL) {
            chunk->older = a->chunks->older;
            a->chunks->older = chunk;
            return memset(chunk->data, 0, size);
        }
        chunk->older = a->chunks;
        a->chunks = chunk;
        a->next = (unsigned char *)chunk->data;
        a->left = room;
    }
    void *memory = a->next;
    a->next += size;
    a->left -= size;
    return memset(memory, 0, size);
}

/* Texts need no alignment, so they are packed from the other end of the chunk. */
char *symint_arena_copy(struct symint_arena *a, const char *text, size_t size)
{
    char *copy;
    if (size < a->left) {
        copy = (char *)(a->next + a->left - size - 1);
        a->left -= size + 1;
        /* The front stays aligned: only its distance to the end matters. */
    } else {
        if (size == SIZE_MAX)
            return NULL;
        copy = symint_arena_alloc(a, size + 1);
        if (copy == NULL)
            return NULL;
    }
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void symint_arena_free(struct symint_arena *a)
{
    while (a->chunks != NULL) {
        struct symint_chunk *older = a->chunks->older;
        free(a->chunks);
        a->chunks = older;
    }
    a->next = NULL;
    a->left = 0;
}

static uint64_t hash_bytes(uint64_t seed, const char *text, size_t size)
{
    uint64_t h = seed ^ size;
    uint64_t word;
    for (; size >= sizeof(word); text += sizeof(word), size -= sizeof(word)) {
        memcpy(&word, text, sizeof(word));
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    word = 0;
    if (size > 0)
        memcpy(&word, text, size);
    return symint_mix(h ^ word);
}

static int grow(struct symint_strings *s)
{
    size_t capacity = s->capacity == 0 ? 256 : s->capacity * 2;
    if (capacity > SIZE_MAX / sizeof(struct symint_text *))
        return -1;
    struct symint_text **slots = calloc(capacity, sizeof(struct symint_text *));
    if (slots == NULL)
        return -1;
    for (size_t i = 0; i < s->capacity; i++) {
        if (s->slots[i] == NULL)
            continue;
        size_t at = (size_t)s->slots[i]->hash & (capacity - 1);
        while (slots[at] != NULL)
            at = (at + 1) & (capacity - 1);
        slots[at] = s->slots[i];
    }
    free(s->slots);
    s->slots = slots;
    s->capacity = capacity;
    return 0;
}

struct symint_text *symint_intern(struct symint_strings *s, const char *text, size_t size)
{
    if (s->count >= s->capacity / 4 * 3 && grow(s) != 0)
        return NULL;
    uint64_t hash = hash_bytes(s->seed, text, size);
    size_t at = (size_t)hash & (s->capacity - 1);
    for (; s->slots[at] != NULL; at = (at + 1) & (s->capacity - 1)) {
        struct symint_text *t = s->slots[at];
        if (t->hash == hash && t->size == size && (size == 0 || memcmp(t->text, text, size) == 0))
            return t;
    }
    struct symint_text *t = symint_arena_alloc(&s->arena, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->text = symint_arena_copy(&s->arena, text, size);
    if (t->text == NULL)
        return NULL;
    t->size = size;
    t->hash = hash;
    s->slots[at] = t;
    s->count++;
    return t;
}

struct symint_text *symint_intern_name(struct symint_strings *s, const char *text, size_t size)
{
    if (size == 0 || memchr(text, '\0', size) == NULL)
        return symint_intern(s, text, size);
    char *clean = malloc(size);
    if (clean == NULL)
        return NULL;
    for (size_t i = 0; i < size; i++)
        clean[i] = text[i] == '\0' ? ' ' : text[i];
    struct symint_text *t = symint_intern(s, clean, size);
    free(clean);
    return t;
}

void symint_strings_free(struct symint_strings *s)
{
    free(s->slots);
    symint_arena_free(&s->arena);
    *s = (struct symint_strings){.seed = s->seed};
}
