/* SPDX-License-Identifier: MIT */
/* Kernel symbols from a kallsyms file. */
#ifndef SYMINT_KERNEL_H
#define SYMINT_KERNEL_H

#include "boot.h"
#include "spool/sym.h"

struct symint_kernel_entry {
    uint64_t start;
    uint64_t end;
    uint32_t name; /* offsets and sizes in the text */
    uint32_t name_size;
    uint32_t owner; /* `[module]` */
    uint32_t owner_size;
    char type;
};

struct symint_kernel {
    char *text;
    struct symint_kernel_entry *entries; /* ascending, disjoint */
    uint64_t *starts;
    size_t count;
    uint64_t lines; /* that look like kallsyms */
};

/* Parses a kallsyms text, which it takes (malloc'ed, NUL-terminated after size bytes). 0 with
 * *state OK, RESTRICTED or EMPTY; SYM_ERR_NOMEM; SYM_ERR_LIMIT. Only entries that answer one of
 * the sorted addresses `needed` are kept, all when it is NULL. */
int symint_kernel_parse(struct symint_kernel *k, char *text, size_t size, const uint64_t *needed,
                        size_t needed_count, enum sym_kernel_state *state);
void symint_kernel_free(struct symint_kernel *k);

/* The entry that contains an address, NULL: none. */
const struct symint_kernel_entry *symint_kernel_find(const struct symint_kernel *k,
                                                     uint64_t address);

/* sym_kernel_load without a context. *error is an errno for SYM_ERR_IO, 0 for none. */
int symint_kernel_load(struct symint_kernel *k, const struct sym_kernel *kernel,
                       enum symint_boot boot, const struct symint_system *system,
                       enum sym_kernel_state *state, int *error);

#endif
