/* SPDX-License-Identifier: MIT */
/*
 * The debug sections of one ELF file, read when they are looked at. Nothing is mapped from the file, which may shrink: a
 * section has address space of its own, into which blocks are read as they are needed. A packed or relocated section is
 * made whole at the first look.
 */
#ifndef SYMINT_DEBUG_BYTES_H
#define SYMINT_DEBUG_BYTES_H

#include "elf.h"

enum symint_debug_id {
    DEBUG_INFO,
    DEBUG_ABBREV,
    DEBUG_STR,
    DEBUG_LINE_STR,
    DEBUG_STR_OFFSETS,
    DEBUG_ADDR,
    DEBUG_RANGES,
    DEBUG_RNGLISTS,
    DEBUG_LINE,
    DEBUG_CU_INDEX, /* of a package of split files */
    DEBUG_IDS
};

struct symint_debug_section {
    uint64_t size;    /* unpacked; 0: there is none */
    uint64_t offset;  /* in the file, if it is plain */
    uint8_t *base;    /* room for all of it; NULL before the first look */
    uint64_t *there;  /* a bit for each block that was read; NULL: all of it is there */
    uint8_t *regions; /* of each huge page's room, how many blocks were read */
    uint64_t resident_bytes;
    uint32_t number; /* of the section */
    bool packed;     /* compressed */
    bool relocated;  /* has relocations, to be applied */
    bool failed;     /* it cannot be read; `why` says why, unless another section failed before */
};

/* A range of addresses that has code, by sections, else by segments. */
struct symint_code_range {
    uint64_t start, end;
};

struct symint_debug_sections {
    struct symint_elf *elf; /* the file; its section headers are read */
    bool swap;              /* not the machine's byte order */
    struct symint_debug_section at[DEBUG_IDS];
    struct symint_code_range *code;     /* sorted, disjoint */
    struct symint_code_range most_code; /* the largest of them */
    size_t code_count;
    uint64_t resident_bytes; /* bytes of memory that all sections take now */
    const char *why; /* static: the first thing that was wrong with a section; "" for nothing */
    int error;       /* errno behind it; 0: none */
    /* A look failed for want of little memory. That says nothing of the section; the reader clears it and asks again. */
    bool no_memory;
};

/* Finds the debug sections of a file (with `split` those of split DWARF, `.debug_info.dwo`, and of packages). The file
 * and its descriptor are borrowed and must live as long. 0; SYM_ERR_NOMEM. */
int symint_debug_open(struct symint_elf *e, bool split, struct symint_debug_sections *out);
void symint_debug_close(struct symint_debug_sections *s);

/* The bytes [offset, offset + size) of a section. NULL: not inside it, it cannot be read or there is no memory. Valid
 * until symint_debug_trim; bytes around them are no matter. */
const uint8_t *symint_debug_bytes_slow(struct symint_debug_sections *s, enum symint_debug_id id,
                                       uint64_t offset, uint64_t size);

#define SYMINT_DEBUG_BLOCK_BITS 16 /* blocks of 64 KiB */

static inline const uint8_t *symint_debug_bytes(struct symint_debug_sections *s,
                                                enum symint_debug_id id, uint64_t offset,
                                                uint64_t size)
{
    const struct symint_debug_section *d = &s->at[id];
    uint64_t first = offset >> SYMINT_DEBUG_BLOCK_BITS;
    if (d->base != NULL && offset < d->size && size <= d->size - offset &&
        (d->there == NULL || (size > 0 && first == (offset + size - 1) >> SYMINT_DEBUG_BLOCK_BITS &&
                              (d->there[first / 64] >> (first % 64) & 1) != 0)))
        return d->base + offset;
    return symint_debug_bytes_slow(s, id, offset, size);
}

/* Copies bytes of a section without keeping more of it than is there: for few bytes here and there. False: as NULL
 * above. */
bool symint_debug_peek(struct symint_debug_sections *s, enum symint_debug_id id, uint64_t offset,
                       size_t size, uint8_t *out);

/* The NUL-terminated text at an offset of a section of texts. NULL: none, as above or without an end within
 * SYMINT_MAX_DEBUG_TEXT bytes. */
#define SYMINT_MAX_DEBUG_TEXT ((uint64_t)1024 * 1024)
const char *symint_debug_text(struct symint_debug_sections *s, enum symint_debug_id id,
                              uint64_t offset, size_t *size);

/* Gives back what of a section was read, unless it is packed or relocated. */
void symint_debug_trim(struct symint_debug_sections *s, enum symint_debug_id id);

/* Whether [start, end) is code: start and end are in one range of code and not reversed. What a
 * linker leaves of functions that it removed is not. */
bool symint_debug_is_code_slow(const struct symint_debug_sections *s, uint64_t start, uint64_t end);

static inline bool symint_debug_is_code(const struct symint_debug_sections *s, uint64_t start,
                                        uint64_t end)
{
    return start < end && ((start >= s->most_code.start && end <= s->most_code.end) ||
                           symint_debug_is_code_slow(s, start, end));
}

#endif
