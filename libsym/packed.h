/* SPDX-License-Identifier: MIT */
/*
 * Packed symbols: a file that has, for some addresses of one ELF file or kernel, what its symbols and its debug
 * information say about them. Names are as they are there, so that every context shapes them as it does those of
 * the files themselves.
 */
#ifndef SYMINT_PACKED_H
#define SYMINT_PACKED_H

#include "elf.h"
#include "facts.h"
#include "spool/sym.h"

struct sym_archive;

/* ---- reading ---- */

/* One file of packed symbols in memory. */
struct symint_packed;

/* Checks a file and takes its bytes (malloc'ed), whatever is returned. 0 with *out, or *out NULL and *why (static)
 * telling what is wrong; SYM_ERR_NOMEM. */
int symint_packed_open(uint8_t *data, size_t size, struct symint_packed **out, const char **why);
void symint_packed_free(struct symint_packed *p);
enum sym_level symint_packed_level(const struct symint_packed *p);
/* How many addresses it has. */
uint32_t symint_packed_count(const struct symint_packed *p);
/* Number i of them, ascending. */
uint64_t symint_packed_address(const struct symint_packed *p, uint32_t i);
/* The functions it knows, ascending and disjoint: number i, as symint_packed_around has it. */
uint32_t symint_packed_extent_count(const struct symint_packed *p);
void symint_packed_extent(const struct symint_packed *p, uint32_t i, struct symint_facts *out);
/* Whether it speaks of the file with that build id (NULL: of a kernel). One that states none is believed. */
bool symint_packed_is_of(const struct symint_packed *p, const uint8_t *build_id, size_t size);

/* The facts about exactly this address, as far as the options (NULL: all) want inlined functions and lines. Texts of
 * levels are interned in `strings`; chain is valid until the next call for p, the symbol's name as long as p. 1; 0: it
 * was not packed, or nothing is known of it; SYM_ERR_NOMEM. */
int symint_packed_exact(struct symint_packed *p, struct symint_strings *strings,
                        const struct sym_options *options, uint64_t vaddr,
                        struct symint_facts *out);
/* The function that has the address: symbol and extent, nothing of lines. 1 or 0. */
int symint_packed_around(const struct symint_packed *p, uint64_t vaddr, struct symint_facts *out);
/* Whether there is the address at that level, be it that nothing is known of it. */
bool symint_packed_has(const struct symint_packed *p, uint64_t vaddr, enum sym_level level);

/* All packed symbols of one thing: more lines first, then more addresses. */
struct symint_packed_set {
    struct symint_packed **items;
    size_t count;
    size_t damaged_count; /* files that could not be used; the first, and why: */
    char detail[400];
};
/* Those of a build id in archives, in their order. 0 or SYM_ERR_NOMEM. */
int symint_packed_load_build_id(struct symint_packed_set *set,
                                const struct sym_archive *const *archives, size_t count,
                                const uint8_t *build_id, size_t build_id_size);
/* captures/ID/kernel.syms in archives. */
int symint_packed_load_kernel(struct symint_packed_set *set,
                              const struct sym_archive *const *archives, size_t count,
                              const char *capture_id);
void symint_packed_set_free(struct symint_packed_set *set);

/* The address of a file offset seen through a mapping, as symint_elf_vaddr with symint_elf_place; of kernel symbols the
 * address itself. */
bool symint_packed_vaddr(const struct symint_packed *p, uint64_t file_offset, uint64_t size,
                         uint64_t offset, uint64_t *vaddr);

/* Segments and build id of the file it speaks of. Valid as long as p. */
const struct symint_elf *symint_packed_elf(const struct symint_packed *p);

/* The checksum of a whole file's bytes. */
uint32_t symint_packed_checksum(const uint8_t *data, size_t size);

/* ---- writing ---- */

struct symint_packer;

/* elf: whose addresses they are, copied: segments and build id; NULL: absolute ones of the kernel. seed: of the
 * context's texts. NULL without memory. */
struct symint_packer *symint_packer_new(enum sym_level level, const struct symint_elf *elf,
                                        uint64_t seed);
/* Adds an address, with neither symbol nor chain to say that there is nothing; of one that came before, the first
 * counts. Texts are copied. 0, SYM_ERR_NOMEM or SYM_ERR_LIMIT. At level names, of what debug
 * information says only the function's name is kept, where it is the one that is shown. */
int symint_packer_add(struct symint_packer *p, const struct symint_facts *facts);
/* Adds a function with its extent alone; of extents that overlap, the first counts. As above. */
int symint_packer_add_extent(struct symint_packer *p, const struct symint_facts *facts);
/* The file, malloc'ed; the same for the same addresses, in whatever order they came. 0 or SYM_ERR_NOMEM. */
int symint_packer_finish(struct symint_packer *p, uint8_t **data, size_t *size);
void symint_packer_free(struct symint_packer *p);

#endif
