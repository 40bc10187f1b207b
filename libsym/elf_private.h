/* SPDX-License-Identifier: MIT */
/* An opened ELF image from the inside: elf.c reads headers and addresses, symtab.c the symbol
 * tables. */
#ifndef SYMINT_ELF_PRIVATE_H
#define SYMINT_ELF_PRIVATE_H

#include "elf.h"
#include "segments.h"

#include <string.h>

#define SYMINT_MAX_BUILD_ID 64

struct segment {
    uint64_t offset;
    uint64_t size; /* in the file */
    uint64_t vaddr;
    uint64_t align;
    bool executable;
};

struct section {
    uint32_t type;
    uint32_t link;
    bool executable;
    uint64_t addr;
    uint64_t offset;
    uint64_t size;
};

/* A symbol that may name code; `source` says whose string table. */
struct entry {
    uint64_t start;
    uint32_t name;
    uint8_t source;
};

enum { SYMTAB, DYNSYM, SOURCES };

struct symint_elf {
    struct symint_input input;
    bool wide; /* ELFCLASS64 */
    bool swap; /* not the machine's byte order */
    uint16_t machine;
    uint64_t section_offset;
    uint64_t section_count;
    struct segment *segments; /* PT_LOAD */
    uint32_t segment_count;
    uint64_t dynamic_offset;
    uint64_t dynamic_size;
    uint8_t build_id[SYMINT_MAX_BUILD_ID];
    size_t build_id_size;

    struct section *sections; /* during symint_elf_index only */

    char *strings[SOURCES];
    size_t strings_size[SOURCES];
    struct entry *entries;
    struct symint_segments index; /* owners are entries */
};

static inline uint16_t get16(const struct symint_elf *e, const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return e->swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t get32(const struct symint_elf *e, const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return e->swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t get64(const struct symint_elf *e, const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return e->swap ? __builtin_bswap64(v) : v;
}

/* A field of the class's size, at the offset it has in 32 and in 64-bit files. */
static inline uint64_t get_word(const struct symint_elf *e, const uint8_t *p, size_t at32,
                                size_t at64)
{
    return e->wide ? get64(e, p + at64) : get32(e, p + at32);
}

enum read_result { READ_OK, READ_SHORT, READ_FAILED };

/* Reads exactly [offset, offset + size). */
enum read_result symint_elf_read(const struct symint_input *in, uint64_t offset, uint64_t size,
                                 void *buffer);

/* The same into memory of its own with a NUL behind. *miss is NONE on success. */
int symint_elf_load(const struct symint_input *in, uint64_t offset, uint64_t size, uint8_t **out,
                    enum sym_miss *miss);

/* Section headers into e->sections. 0 with *miss NONE, or what is wrong; SYM_ERR_NOMEM. */
int symint_elf_read_sections(struct symint_elf *e, enum sym_miss *miss, const char **why);

/* The file offset and the bytes that follow it in its segment, for an address any segment has. */
bool symint_elf_offset(const struct symint_elf *e, uint64_t vaddr, uint64_t *offset,
                       uint64_t *room);

#endif
