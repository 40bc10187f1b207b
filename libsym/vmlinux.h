/* SPDX-License-Identifier: MIT */
/* The kernel's ELF file: which one may be used, how far the running kernel was moved against it. */
#ifndef SYMINT_VMLINUX_H
#define SYMINT_VMLINUX_H

#include "dwarf.h"
#include "kernel.h"
#include "kernel_names.h"
#include "locate.h"

struct symint_vmlinux {
    struct symint_elf *elf;         /* with its index; NULL: there is none */
    struct symint_debug_file names; /* the file that has its symbol table */
    struct symint_dwarf *dwarf;     /* NULL: no debug information */
    char *path;
    bool unverified; /* the user vouches for it and no build id was recorded */
    bool placed;     /* shift is known */
    uint64_t shift;  /* of the running kernel's addresses against the file's, modulo 2^64 */
    /* What it was looked for with: the same question is not asked of the disk twice. */
    bool looked;
    char *wanted;
    char detail[500]; /* what was found, or what was wrong with the file that the user named */
};

/* Looks for the file of the kernel that `kernel` describes. It may be used if its build id is the
 * recorded one, or if the user named it and no build id was recorded. 0 with v->elf or NULL;
 * SYM_ERR_NOMEM; for a file that the user named SYM_ERR_NOT_FOUND, IO or FORMAT with *error as
 * symint_kernel_load, after the others were tried. Options must live as long. */
int symint_vmlinux_find(struct symint_vmlinux *v, struct symint_arena *arena,
                        const struct symint_search_options *options,
                        const struct sym_kernel *kernel, int *error);
void symint_vmlinux_free(struct symint_vmlinux *v);

/* Finds the shift: by the kernel's own range of the capture, by the addresses of `table`
 * (kallsyms; NULL: none), by the sampled addresses. 0 with v->placed and *how telling what it was
 * found with or why it was not, static storage; SYM_ERR_NOMEM. */
int symint_vmlinux_place(struct symint_vmlinux *v, const struct sym_kernel *kernel,
                         const struct symint_kernel *table, const char **how);

/* The address as the file states it. False: not in its code. */
bool symint_vmlinux_address(const struct symint_vmlinux *v, uint64_t address, uint64_t *vaddr);

/* The addresses around one, as the file states them, of which it says the same: one symbol has them, or nothing. False:
 * it says nothing of any address. */
bool symint_vmlinux_extent(const struct symint_vmlinux *v, uint64_t vaddr, uint64_t *start,
                           uint64_t *end);

struct symint_vmlinux_symbol {
    uint64_t start; /* as the file states it */
    const char *name;
    size_t name_size;
    bool sizeless; /* it may end before the address */
};
/* The function that covers an address of the file; false: none that has a name. */
bool symint_vmlinux_find_symbol(const struct symint_vmlinux *v, uint64_t vaddr,
                                struct symint_vmlinux_symbol *out);
/* The first one that begins at an address of the file or behind it. */
bool symint_vmlinux_next_symbol(const struct symint_vmlinux *v, uint64_t vaddr,
                                struct symint_vmlinux_symbol *out);

#endif
