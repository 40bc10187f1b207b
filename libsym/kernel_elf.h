/* SPDX-License-Identifier: MIT */
/* ELF files of a kernel, its image and its modules: opening them, and their symbols by name. */
#ifndef SYMINT_KERNEL_ELF_H
#define SYMINT_KERNEL_ELF_H

#include "debug_files.h"
#include "elf.h"

/* Opens a file inside a root and reads its section headers. 0 with f->elf set, to be
 * closed with symint_kernel_elf_close; or NULL with *miss, *why (static) and *error, the errno or
 * 0; SYM_ERR_NOMEM. */
int symint_kernel_elf_open(struct symint_root root, const char *path, struct symint_debug_file *f,
                           enum sym_miss *miss, const char **why, int *error);
/* The same file once more. */
int symint_kernel_elf_again(const struct symint_debug_file *from, struct symint_debug_file *f);
void symint_kernel_elf_close(struct symint_debug_file *f);

/* Whether DWARF is in it. */
bool symint_kernel_elf_has_dwarf(const struct symint_elf *e);
/* Whether it is a relocatable file, as modules are. */
bool symint_kernel_elf_is_relocatable(const struct symint_elf *e);

/* A symbol table, to be walked. */
struct symint_kernel_names {
    const struct symint_elf *elf; /* with its sections */
    uint8_t *symbols;
    uint8_t *strings;
    uint64_t count;
    uint64_t strings_size;
};

struct symint_kernel_name {
    const char *name; /* NUL-terminated */
    uint64_t value;   /* as the table has it: of a relocatable file, inside its section */
    uint64_t size;
    uint64_t section_offset; /* of a relocatable file: where its section begins, in the file */
    bool code;               /* a function, or a label in code */
    bool global;             /* or weak */
};

/* Reads the table; without one the count is 0. 0 or SYM_ERR_NOMEM. The file must live as long. */
int symint_kernel_names_read(const struct symint_elf *e, struct symint_kernel_names *out);
void symint_kernel_names_free(struct symint_kernel_names *n);
/* Symbol i; false: it has no address or no name. */
bool symint_kernel_names_at(const struct symint_kernel_names *n, uint64_t i,
                            struct symint_kernel_name *out);
/* The value of the first symbol of that name, 0: there is none. */
uint64_t symint_kernel_names_value(const struct symint_kernel_names *n, const char *name);

#endif
