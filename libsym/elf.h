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
};

struct symint_elf;

/* Reads headers, segments and build id. 0 with *out set, or *out NULL and *miss and *why
 * (static) telling what is wrong; SYM_ERR_NOMEM. The input is copied; its descriptor or memory
 * must live until the index is built. */
int symint_elf_open(const struct symint_input *input, struct symint_elf **out, enum sym_miss *miss,
                    const char **why);
void symint_elf_free(struct symint_elf *e);

/* The build id; NULL and size 0 when the file has none. */
const uint8_t *symint_elf_build_id(const struct symint_elf *e, size_t *size);

/* Builds the symbol index. 0 with *miss NONE, or why there are no symbols; SYM_ERR_NOMEM. */
int symint_elf_index(struct symint_elf *e, enum sym_miss *miss, const char **why);

#define SYMINT_NO_SEGMENT UINT32_MAX

/* The executable segment that a mapping of this file offset was made for. */
uint32_t symint_elf_segment(const struct symint_elf *e, uint64_t mapping_offset);

/* The address, as the file states it, of a file offset seen through a mapping of that segment.
 * False: in no executable segment. */
bool symint_elf_vaddr(const struct symint_elf *e, uint64_t offset, uint32_t segment,
                      uint64_t *vaddr);

struct symint_symbol {
    uint64_t start;
    const char *name; /* not terminated, without version */
    size_t name_size;
    enum sym_origin origin;
};

#define SYMINT_NO_SYMBOL UINT32_MAX

/* The number of the symbol that covers an address, SYMINT_NO_SYMBOL: none. */
uint32_t symint_elf_find(const struct symint_elf *e, uint64_t vaddr);
struct symint_symbol symint_elf_symbol(const struct symint_elf *e, uint32_t number);

#endif
