/* SPDX-License-Identifier: MIT */
/* The table of kernel symbols, from a text in the form of kallsyms or System.map. */
#ifndef SYMINT_KERNEL_H
#define SYMINT_KERNEL_H

#include "boot.h"
#include "spool/sym.h"

/* A line that names code. The table has one for each address. */
struct symint_kernel_entry {
    uint64_t start;
    uint64_t end;
    uint32_t name;       /* offset in the text */
    uint32_t size : 30;  /* of name, blank and owner */
    uint32_t owned : 1;  /* it ends with an owner */
    uint32_t global : 1; /* its type is in upper case */
};

/* An entry taken apart. Texts are not terminated. */
struct symint_kernel_symbol {
    uint64_t start;
    uint64_t end;
    const char *name;
    size_t name_size;
    const char *owner; /* `[module]` */
    size_t owner_size; /* 0: the kernel proper */
    bool global;
};

struct symint_kernel {
    char *text;
    struct symint_kernel_entry *entries; /* ascending, disjoint */
    size_t count;
    uint64_t lines;        /* that look like kallsyms */
    uint64_t shift;        /* of addresses against the table */
    uint64_t text_address; /* of `_text`, also when nothing needs it; 0: not in the table */
    bool sysmap;           /* from a System.map */
    char detail[1200];
};

/* Parses a text, which it takes (malloc'ed, NUL-terminated after size bytes). 0 with *state OK,
 * RESTRICTED or EMPTY; SYM_ERR_NOMEM; SYM_ERR_LIMIT. ranges of `kernel` tell where images end.
 * Only entries that answer one of its needed addresses, and those that follow these, are kept,
 * all when that is NULL. */
int symint_kernel_parse(struct symint_kernel *k, char *text, size_t size,
                        const struct sym_kernel *kernel, enum sym_kernel_state *state);

/* Drops the entries that answer no address of the sorted list nor follow one that does, and their
 * texts. 0 or SYM_ERR_NOMEM. */
int symint_kernel_thin(struct symint_kernel *k, const uint64_t *needed, size_t needed_count);
void symint_kernel_free(struct symint_kernel *k);

/* The symbol that contains an address; false: none. */
bool symint_kernel_find(const struct symint_kernel *k, uint64_t address,
                        struct symint_kernel_symbol *out);
/* The first symbol that begins above an address, whether or not it contains any; false: none. It is the one that limits
 * the symbol there, if that answers a needed address. */
bool symint_kernel_after(const struct symint_kernel *k, uint64_t address,
                         struct symint_kernel_symbol *out);
struct symint_kernel_symbol symint_kernel_symbol(const struct symint_kernel *k,
                                                 const struct symint_kernel_entry *e);

/* Whether each symbol of an owner is an image of its own, so that the next one may be anywhere and does not limit it. */
bool symint_kernel_is_scattered(const char *owner, size_t owner_size);

/* Whether a range is of the kernel proper: `[kernel.kallsyms]_text`, `.../vmlinux`. */
bool symint_is_kernel_range(const struct sym_kernel_range *r);

struct symint_search_options;
struct symint_vmlinux;

/* sym_kernel_load without a context (kernel_source.c): which sources may be used. The file of v was
 * looked for; it is placed here. *state is OK when one of them names something. *error is an errno
 * for SYM_ERR_IO, 0 for none. */
int symint_kernel_load(struct symint_kernel *k, struct symint_vmlinux *v,
                       const struct sym_kernel *kernel, const struct symint_search_options *options,
                       enum symint_boot boot, const struct symint_system *system,
                       enum sym_kernel_state *state, int *error);

#endif
