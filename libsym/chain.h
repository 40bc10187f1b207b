/* SPDX-License-Identifier: MIT */
/* From what a symbol table and DWARF say about an address to the frames of an answer. */
#ifndef SYMINT_CHAIN_H
#define SYMINT_CHAIN_H

#include "context.h"
#include "dwarf.h"

/* Display and raw name of a frame from a linkage name. 0 or SYM_ERR_NOMEM. */
int symint_set_linkage_name(struct sym_context *c, struct sym_frame *f, const char *name,
                            size_t size);

/* What is known of an address but for DWARF. */
struct symint_physical {
    struct sym_frame blank; /* kind, flags, function_start at the address itself */
    struct sym_frame frame; /* named by a symbol, or not */
    uint64_t vaddr;
    bool has_symbol; /* frame has a name, of a symbol that begins at: */
    uint64_t symbol_start;
    bool name_stays;              /* whatever DWARF calls the function */
    enum sym_origin dwarf_origin; /* of names that DWARF gives */
};

/* Makes the frames of a chain, innermost first, in the arena. count 0 of the chain: the physical one alone. 0 or
 * SYM_ERR_NOMEM. */
int symint_chain_frames(struct sym_context *c, const struct symint_dwarf_chain *chain,
                        const struct symint_physical *physical, const struct sym_frame **frames,
                        size_t *count);

#endif
