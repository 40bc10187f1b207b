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
    const char *name; /* in section_names; "" when unknown */
    uint32_t type;
    uint32_t link;
    uint32_t info;
    bool executable;
    bool compressed; /* SHF_COMPRESSED */
    uint64_t addr;
    uint64_t offset; /* of SHT_NOBITS meaningless */
    uint64_t size;
    uint64_t entry_size; /* a claim that may be 0 */
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
    uint32_t section_names_index; /* e_shstrndx */
    struct segment *segments;     /* PT_LOAD */
    uint32_t segment_count;
    uint64_t dynamic_offset;
    uint64_t dynamic_size;
    uint64_t unwind_header_offset; /* PT_GNU_EH_FRAME, for files without section headers */
    uint64_t unwind_header_size;
    uint8_t build_id[SYMINT_MAX_BUILD_ID];
    size_t build_id_size;

    struct section *sections; /* NULL: not read, or freed after symint_elf_index */
    char *section_names;

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

/* Section headers into e->sections, unless they are there. 0 with *miss NONE, or what is wrong;
 * SYM_ERR_NOMEM. */
int symint_elf_read_sections(struct symint_elf *e, enum sym_miss *miss, const char **why);
void symint_elf_drop_sections(struct symint_elf *e);

/* The first section of that name, NULL: none, or sections were not read. */
const struct section *symint_elf_section(const struct symint_elf *e, const char *name);

/* The bytes of a section, malloc'ed with a NUL behind, as symint_elf_load; DAMAGED for one that
 * has none in this file (SHT_NOBITS) or that is compressed. */
int symint_elf_load_section(const struct symint_elf *e, const struct section *s, uint8_t **out,
                            enum sym_miss *miss);

/* The file offset and the bytes that follow it in its segment, for an address any segment has. */
bool symint_elf_offset(const struct symint_elf *e, uint64_t vaddr, uint64_t *offset,
                       uint64_t *room);

#endif
