/* SPDX-License-Identifier: MIT */
/* Memory: large tables, and what lives as long as a context: an arena and the one table of all
 * its texts. */
#ifndef SYMINT_STRTAB_H
#define SYMINT_STRTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory for a table that may be large, to be freed with free(). From a megabyte on it is made
 * of huge pages where the system has them: the page faults of a fresh table cost more than
 * filling it. NULL: out of memory. */
void *symint_table_alloc(size_t count, size_t item_size);
/* The same, zeroed, of huge pages from two megabytes on. */
void *symint_table_zeroed(size_t count, size_t item_size);
/* The same for one that is freed soon: of huge pages from 64 KiB on. */
void *symint_scratch_alloc(size_t count, size_t item_size);
/* Moves a scratch table of which `size` bytes are used to where it may stay. */
void *symint_settle(void *table, size_t size);

/* An array, malloc'ed or NULL, with room for one more item than `count`: itself, or a larger one in its place, with
 * twice the room, `first` items at the beginning. NULL: out of memory, and the array stays. */
void *symint_grow_now(void *items, size_t *capacity, size_t item_size, size_t first);
static inline void *symint_grow(void *items, size_t count, size_t *capacity, size_t item_size,
                                size_t first)
{
    return count < *capacity ? items : symint_grow_now(items, capacity, item_size, first);
}

struct symint_chunk;

struct symint_arena {
    struct symint_chunk *chunks; /* newest first */
    unsigned char *next;
    size_t left;
    size_t chunk_size; /* of the newest one; they grow with what is asked for */
};

/* Memory of that size, aligned for any type, zeroed; NULL: out of memory. */
void *symint_arena_alloc(struct symint_arena *a, size_t size);
/* A NUL-terminated copy; NULL: out of memory. */
char *symint_arena_copy(struct symint_arena *a, const char *text, size_t size);
void symint_arena_free(struct symint_arena *a);

/* A distinct text. `display` is what the demangler made of it: NULL until somebody asked, text
 * itself when there is nothing to demangle. */
struct symint_text {
    const char *text; /* NUL-terminated after size bytes */
    size_t size;
    uint64_t hash;
    const char *display;
};

struct symint_text_slot {
    uint64_t hash; /* also here: a text that is not the one is seldom looked at */
    struct symint_text *text;
};

struct symint_strings {
    struct symint_arena arena;
    struct symint_text_slot *slots;
    size_t count;
    size_t capacity; /* a power of two or 0 */
    uint64_t seed;   /* so that nobody can prepare texts that collide */
    char *scratch;   /* the demangler's, reused */
    size_t scratch_capacity;
    struct symint_text *last_name; /* that symint_intern_name returned; NULL: none yet */
};

/* A seed that nobody can guess. */
uint64_t symint_random_seed(void);
/* The text's one entry; NULL: out of memory. Bytes are kept as they are. */
struct symint_text *symint_intern(struct symint_strings *s, const char *text, size_t size);
/* The same for a name that is handed out as a C string: each NUL in it becomes a blank, and it is cut behind 128 KiB,
 * which is more than any that is put together from names has. */
struct symint_text *symint_intern_name(struct symint_strings *s, const char *text, size_t size);
void symint_strings_free(struct symint_strings *s);

/* Mixes 64 bits so that every bit depends on every other one. */
static inline uint64_t symint_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
}

#endif
