/* SPDX-License-Identifier: MIT */
/* The symbols of a kernel's image or module by name. */
#ifndef SYMINT_KERNEL_NAMES_H
#define SYMINT_KERNEL_NAMES_H

#include "elf.h"

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
/* The hash of a name, for tables of them. */
uint64_t symint_kernel_name_hash(const char *name, size_t size);
/* The value of the first symbol of that name, 0: there is none. */
uint64_t symint_kernel_names_value(const struct symint_kernel_names *n, const char *name);

#endif
