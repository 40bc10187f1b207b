/* SPDX-License-Identifier: MIT */
/* The files of kernel modules, for lines and inlined functions: names come from kallsyms. */
#ifndef SYMINT_KMODULE_H
#define SYMINT_KMODULE_H

#include "debug_paths.h"
#include "dwarf.h"
#include "kernel.h"
#include "locate.h"

struct symint_kmodule;

struct symint_kmodules {
    char release[SYMINT_MAX_RELEASE + 1]; /* "": not recorded, no module is looked for */
    bool walked;
    struct symint_kmodule *files; /* by name, then in the order in which they are tried */
    size_t count;
    size_t capacity;
    size_t recorded;            /* modules that were looked for by build id alone */
    uint64_t dwarf_limit_bytes; /* of each */
};

/* Says which release counts from here on; NULL: unknown. What is known of another one is
 * forgotten. */
void symint_kmodules_begin(struct symint_kmodules *m, const char *release,
                           uint64_t dwarf_limit_bytes);
void symint_kmodules_free(struct symint_kmodules *m);

/* The code of a module's function in its file: `symbol` is from kallsyms and has an owner, address
 * is in it. build_id: of the module as recorded; empty: unknown. 0 with *dwarf and *vaddr, in terms
 * of that, *dwarf NULL when there is no file with debug information, it is of another build or
 * release, or it does not tell which of several functions it is; *unverified: nothing but its
 * place says that it is of that release. SYM_ERR_NOMEM. Options must live as long. */
int symint_kmodules_find(struct symint_kmodules *m, struct symint_arena *arena,
                         const struct symint_search_options *options,
                         const struct symint_kernel_symbol *symbol, uint64_t address,
                         const uint8_t *build_id, size_t build_id_size, struct symint_dwarf **dwarf,
                         uint64_t *vaddr, bool *unverified);

#endif
