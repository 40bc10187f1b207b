/* SPDX-License-Identifier: MIT */
/* The arena and the table of texts. Nothing in them is freed before the context is: frames point
 * here. */
#include "strtab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

/* An arena's first chunk; each is eight times the one before it, up to a huge page. */
#define MIN_CHUNK_SIZE ((size_t)64 * 1024)
#define ALIGNMENT sizeof(max_align_t)
#define MAX_NAME ((size_t)128 * 1024)

#define HUGE_PAGE ((size_t)2 * 1024 * 1024)

static void *alloc_table(size_t count, size_t item_size, size_t huge_from)
{
    if (count > (SIZE_MAX - HUGE_PAGE) / item_size)
        return NULL;
    size_t size = count * item_size;
    if (size < huge_from)
        return malloc(size == 0 ? 1 : size);
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *table = aligned_alloc(HUGE_PAGE, size);
    if (table != NULL)
        (void)madvise(table, size, MADV_HUGEPAGE); /* advice: without it, it is only slower */
    return table;
}

void *symint_table_alloc(size_t count, size_t item_size)
{
    return alloc_table(count, item_size, HUGE_PAGE / 2);
}

void *symint_table_zeroed(size_t count, size_t item_size)
{
    unsigned char *table = calloc(count, item_size);
    if (table == NULL || count * item_size < HUGE_PAGE)
        return table;
    size_t before = (HUGE_PAGE - (uintptr_t)table % HUGE_PAGE) % HUGE_PAGE;
    (void)madvise(table + before, (count * item_size - before) / HUGE_PAGE * HUGE_PAGE,
                  MADV_HUGEPAGE);
    return table;
}

void *symint_scratch_alloc(size_t count, size_t item_size)
{
    return alloc_table(count, item_size, HUGE_PAGE / 32);
}

void *symint_settle(void *table, size_t size)
{
    if (table == NULL || size >= HUGE_PAGE / 2)
        return table;
    void *small = malloc(size == 0 ? 1 : size);
    if (small == NULL)
        return table; /* it takes more room than it needs, that is all */
    memcpy(small, table, size);
    free(table);
    return small;
}

void *symint_grow_now(void *items, size_t *capacity, size_t item_size, size_t first)
{
    size_t more = *capacity == 0 ? first : *capacity * 2;
    void *grown = more <= SIZE_MAX / 2 / item_size ? realloc(items, more * item_size) : NULL;
    if (grown != NULL)
        *capacity = more;
    return grown;
}

struct symint_chunk {
    struct symint_chunk *older;
    size_t mapped; /* bytes, 0: malloc'ed */
    max_align_t data[];
};

/* Bytes of the next chunk with its header. */
static size_t next_chunk_size(const struct symint_arena *a)
{
    size_t size = a->chunk_size == 0 ? MIN_CHUNK_SIZE : a->chunk_size * 8;
    return size > HUGE_PAGE ? HUGE_PAGE : size;
}

/* A leak checker does not look for pointers in memory that did not come from malloc. */
#if defined(__SANITIZE_ADDRESS__)
#define MAP_CHUNKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MAP_CHUNKS false
#endif
#endif
#ifndef MAP_CHUNKS
#define MAP_CHUNKS true
#endif

/* A chunk of one huge page. Not by symint_table_alloc: aligned memory of malloc's leaves holes, in
 * which the heap grows with every context. NULL: none to be had. */
static struct symint_chunk *map_huge_page(void)
{
    if (!MAP_CHUNKS)
        return NULL;
    unsigned char *p =
        mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    /* One aligned page is in there; what lies before and behind it goes back. */
    size_t before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0)
        munmap(p, before);
    munmap(p + before + HUGE_PAGE, HUGE_PAGE - before);
    struct symint_chunk *chunk = (struct symint_chunk *)(void *)(p + before);
    (void)madvise(chunk, HUGE_PAGE, MADV_HUGEPAGE);
    chunk->mapped = HUGE_PAGE;
    return chunk;
}

/* size: with the header. */
static struct symint_chunk *new_chunk(size_t size)
{
    struct symint_chunk *chunk = size == HUGE_PAGE ? map_huge_page() : NULL;
    if (chunk == NULL) {
        chunk = malloc(size);
        if (chunk != NULL)
            chunk->mapped = 0;
    }
    return chunk;
}

void *symint_arena_alloc(struct symint_arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size > a->left) {
        /* Something large gets a chunk of its own; what is left of the current one stays in use. */
        bool alone = size > MIN_CHUNK_SIZE / 4;
        size_t chunk_size = alone ? sizeof(struct symint_chunk) + size : next_chunk_size(a);
        struct symint_chunk *chunk = new_chunk(chunk_size);
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
        a->left = chunk_size - sizeof(*chunk);
        a->chunk_size = alone ? 0 : chunk_size;
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
        if (a->chunks->mapped > 0)
            munmap(a->chunks, a->chunks->mapped);
        else
            free(a->chunks);
        a->chunks = older;
    }
    a->next = NULL;
    a->left = 0;
    a->chunk_size = 0;
}

__extension__ typedef unsigned __int128 uint128;

uint64_t symint_random_seed(void)
{
    /* 16 bytes that the kernel drew for this process. */
    uintptr_t random = getauxval(AT_RANDOM);
    const void *bytes = NULL;
    uint64_t seed = 0;
    memcpy(&bytes, &random, sizeof(bytes));
    if (bytes != NULL)
        memcpy(&seed, bytes, sizeof(seed));
    return seed;
}

/* Folds products of 128 bits with a factor that nobody can guess. In plain ones two words that differ in their top bits
 * differ in a few known bits, whatever the seed, and the next words could make up for that. */
static uint64_t hash_bytes(uint64_t seed, const char *text, size_t size)
{
    uint64_t factor = symint_mix(seed) | 1;
    uint64_t h = seed ^ size;
    uint64_t word;
    for (; size >= sizeof(word); text += sizeof(word), size -= sizeof(word)) {
        memcpy(&word, text, sizeof(word));
        uint128 product = (uint128)(h ^ word) * factor;
        h = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    word = 0;
    if (size > 0)
        memcpy(&word, text, size);
    return symint_mix(h ^ word);
}

static int grow(struct symint_strings *s)
{
    size_t capacity = s->capacity == 0 ? 256 : s->capacity * 2;
    struct symint_text_slot *slots = symint_table_zeroed(capacity, sizeof(*slots));
    if (slots == NULL)
        return -1;
    for (size_t i = 0; i < s->capacity; i++) {
        if (s->slots[i].text == NULL)
            continue;
        size_t at = (size_t)s->slots[i].hash & (capacity - 1);
        while (slots[at].text != NULL)
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
    for (; s->slots[at].text != NULL; at = (at + 1) & (s->capacity - 1)) {
        struct symint_text *t = s->slots[at].text;
        if (s->slots[at].hash == hash && t->size == size &&
            (size == 0 || memcmp(t->text, text, size) == 0))
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
    s->slots[at] = (struct symint_text_slot){.hash = hash, .text = t};
    s->count++;
    return t;
}

struct symint_text *symint_intern_name(struct symint_strings *s, const char *text, size_t size)
{
    size = size < MAX_NAME ? size : MAX_NAME;
    /* Addresses in order have the same one again and again. */
    if (s->last_name != NULL && s->last_name->size == size &&
        memcmp(s->last_name->text, text, size) == 0)
        return s->last_name;
    if (size == 0 || memchr(text, '\0', size) == NULL)
        return s->last_name = symint_intern(s, text, size);
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
    free(s->scratch);
    symint_arena_free(&s->arena);
    *s = (struct symint_strings){.seed = s->seed};
}
