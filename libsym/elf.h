/* SPDX-License-Identifier: MIT */
/* One ELF image: its build id, its segments and the index of its symbol tables. */
#ifndef SYMINT_ELF_H
#define SYMINT_ELF_H

#include "spool/sym.h"

/* Where an image's bytes are: a descriptor, or memory when fd is negative. Nothing is mapped: a
 * file that shrinks under a mapping would kill the process. */
struct symint_input {
    int fd;
    const uint8_t *memory;
    uint64_t size;
    uint64_t stored_bytes; /* that the file takes on the disk; 0: not known */
};

#define SYMINT_MAX_BUILD_ID 64 /* bytes; what is longer is none */

struct symint_elf;

/* Reads headers, segments and build id. 0 with *out set, or *out NULL and *miss and *why
 * (static) telling what is wrong; SYM_ERR_NOMEM. The input is copied; its descriptor or memory
 * must live until the index is built. */
int symint_elf_open(const struct symint_input *input, struct symint_elf **out, enum sym_miss *miss,
                    const char **why);
void symint_elf_free(struct symint_elf *e);

/* The build id among ELF notes in memory, of SYMINT_MAX_BUILD_ID bytes at most; NULL: there is none. `align`: of the
 * notes, 8 or else 4; `swap`: they are not in the machine's byte order. */
const uint8_t *symint_note_build_id(const uint8_t *notes, uint64_t size, uint64_t align, bool swap,
                                    size_t *id_size);

/* The build id; NULL and size 0 when the file has none. */
const uint8_t *symint_elf_build_id(const struct symint_elf *e, size_t *size);

/* Reads the section headers, once. 0 with *miss NONE, or what is wrong; SYM_ERR_NOMEM. */
int symint_elf_read_sections(struct symint_elf *e, enum sym_miss *miss, const char **why);
/* Whether there is a .symtab; sections were read. */
bool symint_elf_has_symtab(const struct symint_elf *e);
/* Whether there is DWARF that describes code: .debug_info, or packed in the old way .zdebug_info;
 * sections were read. */
bool symint_elf_has_debug_info(const struct symint_elf *e);

/* How far the code of a file lies above where its debug file says: prelink moves files. False when
 * they are not the same code after all. */
bool symint_elf_bias(const struct symint_elf *e, const struct symint_elf *debug, uint64_t *bias);

/* Builds the index of everything that names an address: .symtab (debug's, if e has none; NULL: no
 * debug file), else that of .gnu_debugdata; then what those leave open from .dynsym, PLT stubs and
 * unwind data. Nothing of debug is needed afterwards. 0 with *miss NONE, or why there is nothing;
 * SYM_ERR_NOMEM. *note (static, "" for none): what went wrong although there are names. */
int symint_elf_index(struct symint_elf *e, struct symint_elf *debug, enum sym_miss *miss,
                     const char **why, const char **note);
/* Bytes that the index takes. */
uint64_t symint_elf_index_bytes(const struct symint_elf *e);

#define SYMINT_NO_SEGMENT UINT32_MAX

/* What a mapping shows of a file. */
struct symint_place {
    uint32_t segment; /* the executable segment it was made for; SYMINT_NO_SEGMENT: unknown */
    bool detached;    /* the file is a debug file, whose offsets are not the code's: */
    uint64_t shift;   /* vaddr = offset + shift, if segment is known */
};

/* The place of a mapping by its file offset and size. */
struct symint_place symint_elf_place(const struct symint_elf *e, uint64_t file_offset,
                                     uint64_t size);

/* The address, as the file states it, of a file offset seen through a mapping. False: in no
 * executable segment. */
bool symint_elf_vaddr(const struct symint_elf *e, uint64_t offset, const struct symint_place *place,
                      uint64_t *vaddr);

struct symint_symbol {
    uint64_t start;
    const char *name; /* not terminated, without version; NULL with SYM_ORIGIN_FDE */
    size_t name_size;
    enum sym_origin origin;
};

#define SYMINT_NO_SYMBOL UINT32_MAX

/* The number of the symbol that covers an address, SYMINT_NO_SYMBOL: none. */
uint32_t symint_elf_find(const struct symint_elf *e, uint64_t vaddr);
/* Around an address that a symbol covers: up to where another one, or none, takes over. */
void symint_elf_extent(const struct symint_elf *e, uint64_t vaddr, uint64_t *start, uint64_t *end);
struct symint_symbol symint_elf_symbol(const struct symint_elf *e, uint32_t number);

#endif
