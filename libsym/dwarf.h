/* SPDX-License-Identifier: MIT */
/* What DWARF says about an address: the chain of inlined functions, files and lines. */
#ifndef SYMINT_DWARF_H
#define SYMINT_DWARF_H

#include "debug_bytes.h"
#include "debug_files.h"
#include "strtab.h"

struct symint_dwarf;

/* One level of a chain. */
struct symint_dwarf_level {
    struct symint_text *name; /* NULL: DWARF knows none */
    bool linkage;          /* it is a linkage name, to be demangled; else it is qualified already */
    const char *file;      /* interned; NULL: unknown */
    uint32_t line, column; /* 0: unknown */
    uint32_t start_line;   /* where the function is declared; 0: unknown */
};

struct symint_dwarf_chain {
    const struct symint_dwarf_level *levels; /* innermost first; valid until the next lookup */
    size_t count;                            /* 0: DWARF knows nothing of the address */
    /* The last level is a function that DWARF describes; else it has at most a line. */
    bool function;
    /* Of that function, in the program's addresses: the one that the address is in, and the one that begins at
     * symint_dwarf_want.start. */
    const struct symint_code_range *pieces;
    size_t piece_count;
};

/* Debug information of a program in `file`, which is taken (its elf, descriptor and texts), whatever is returned. `bias`
 * is what the program's addresses are above those of the file. `program`: path of the program, for what lies beside it;
 * copied, NULL: that of the file. Options must live as long. Nothing is read yet but section headers. 0 with *out, or
 * *out NULL when the file has no debug information; SYM_ERR_NOMEM. */
int symint_dwarf_open(const struct symint_search_options *options, struct symint_arena *arena,
                      struct symint_debug_file *file, const char *program, uint64_t bias,
                      struct symint_dwarf **out);
void symint_dwarf_free(struct symint_dwarf *d);

struct symint_dwarf_want {
    bool inlines;   /* else the physical function alone, with the line in it */
    bool lines;     /* else file, line and column of the innermost level may stay unknown */
    bool likely;    /* something else says that there is a function: it is looked for thoroughly */
    uint64_t start; /* where that says that the function begins */
};

/* Looks an address of the program up. Texts are interned in `strings`, the same one at every call. 0; SYM_ERR_NOMEM. */
int symint_dwarf_lookup(struct symint_dwarf *d, struct symint_strings *strings,
                        const struct symint_dwarf_want *want, uint64_t vaddr,
                        struct symint_dwarf_chain *out);

/* The number of the unit that has an address of the program, to ask for addresses unit by unit. UINT32_MAX: none, or it
 * is not known. */
uint32_t symint_dwarf_unit(struct symint_dwarf *d, uint64_t vaddr);

/* Bytes of memory that it takes now; grows with lookups up to a limit that symint_dwarf_limit sets, and some. */
uint64_t symint_dwarf_bytes(const struct symint_dwarf *d);
void symint_dwarf_limit(struct symint_dwarf *d, uint64_t bytes);

/* What went wrong so far, for a person: a damaged unit, a split file that is not there. In the arena; "": nothing. */
const char *symint_dwarf_detail(const struct symint_dwarf *d);

#endif
