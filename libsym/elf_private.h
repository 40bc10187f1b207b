/* SPDX-License-Identifier: MIT */
/* An opened ELF image from the inside: elf.c reads headers and addresses, symtab.c the symbol
 * tables. */
#ifndef SYMINT_ELF_PRIVATE_H
#define SYMINT_ELF_PRIVATE_H

#include "elf.h"
#include "segments.h"

#include <string.h>

struct segment {
    uint64_t offset;
    uint64_t size; /* in the file */
    uint64_t memory_size;
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
    bool allocated;  /* SHF_ALLOC */
    bool grouped;    /* SHF_GROUP */
    uint64_t addr;   /* of a relocatable file what symint_elf_lay_out says */
    uint64_t offset; /* of SHT_NOBITS meaningless */
    uint64_t size;
    uint64_t entry_size; /* a claim that may be 0 */
};

/* What covers addresses of the index; `source` says where its name is. */
struct entry {
    uint64_t start;
    uint32_t name; /* offset in the strings of the source */
    uint8_t source;
    bool sizeless;
};

/* In the order in which they fill what the ones before left open. FDE has no strings. */
enum { SYMTAB, MINIDEBUG, DYNSYM, PLT, FDE, SOURCES };

struct symint_elf {
    struct symint_input input;
    bool wide;        /* ELFCLASS64 */
    bool swap;        /* not the machine's byte order */
    bool detached;    /* a debug file: the code it speaks about is in another file */
    bool relocatable; /* ET_REL, whose code has no addresses: file offsets take their place */
    bool kernel;      /* names of one address are chosen as in kallsyms (symbolization.md 9) */
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
    uint32_t entry_count;
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

#define SYMINT_MAX_NAME ((size_t)64 * 1024) /* what is longer counts as this long */

/* Bytes of the name at an offset in a source's strings. */
static inline size_t symint_name_size(const struct symint_elf *e, uint8_t source, uint32_t offset)
{
    size_t most = e->strings_size[source] - offset;
    return strnlen(e->strings[source] + offset, most < SYMINT_MAX_NAME ? most : SYMINT_MAX_NAME);
}

enum read_result { READ_OK, READ_SHORT, READ_FAILED };

/* Reads exactly [offset, offset + size). */
enum read_result symint_elf_read(const struct symint_input *in, uint64_t offset, uint64_t size,
                                 void *buffer);

/* Whether a table of that size is only a claim, though it is inside the file: that is nearly all
 * holes. */
bool symint_elf_is_hole(const struct symint_input *in, uint64_t size);

/* The same into memory of its own with a NUL behind. *miss is NONE on success. */
int symint_elf_load(const struct symint_input *in, uint64_t offset, uint64_t size, uint8_t **out,
                    enum sym_miss *miss);

/* Gives the sections of a relocatable debug file the addresses that those of the program have (file offsets in it), until
 * its section headers are read anew. False: they are not the same sections, or but one of the two files is relocatable;
 * nothing in `debug` has an address then. True also when neither is. Both files' sections are read. */
bool symint_elf_lay_out(struct symint_elf *debug, const struct symint_elf *program);

/* Forgets the section headers. */
void symint_elf_drop_sections(struct symint_elf *e);

/* The first section of that name, NULL: none, or sections were not read. */
const struct section *symint_elf_section(const struct symint_elf *e, const char *name);

/* The bytes of a section, malloc'ed with a NUL behind, as symint_elf_load; DAMAGED for one that
 * has none in this file (SHT_NOBITS) or that is compressed. */
int symint_elf_load_section(const struct symint_elf *e, const struct section *s, uint8_t **out,
                            enum sym_miss *miss);

/* What a table needs from the file; offsets and sizes are claims. */
struct symint_table_place {
    bool found;
    uint64_t symbols_offset, symbols_size;
    uint64_t strings_offset, strings_size;
    uint64_t versions_offset, versions_size;
    uint64_t sections_offset, sections_size;
};

/* Finds .dynsym for DYNSYM, else .symtab; sections were read. 0 or SYM_ERR_NOMEM. */
int symint_symtab_place(const struct symint_elf *e, uint8_t source,
                        struct symint_table_place *place);

struct symint_fdes;

/* Reads a table of `from` and flattens it into *index, whose owners are new entries of e; its
 * strings become those of the source. `other` limits sizeless symbols: it is .dynsym's index while
 * another table is read. 0 with *miss NONE, NO_SYMBOLS when there is no such table, or what is
 * wrong with it; SYM_ERR_NOMEM. */
int symint_symtab_read(struct symint_elf *e, const struct symint_elf *from, uint8_t source,
                       const struct symint_fdes *fdes, const struct symint_segments *other,
                       struct symint_segments *index, enum sym_miss *miss);

/* Appends to e->entries room for so many more, not counted yet. 0 or SYM_ERR_NOMEM. */
int symint_entries_grow(struct symint_elf *e, uint32_t more);

/* The file offset and the bytes that follow it in its segment, for an address any segment has. */
bool symint_elf_offset(const struct symint_elf *e, uint64_t vaddr, uint64_t *offset,
                       uint64_t *room);

#endif
