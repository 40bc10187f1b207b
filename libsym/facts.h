/* SPDX-License-Identifier: MIT */
/* What is known of an address before it is made into frames: what symbols say, and what debug information says. */
#ifndef SYMINT_FACTS_H
#define SYMINT_FACTS_H

#include "dwarf.h"
#include "elf.h"
#include "spool/sym.h"

struct symint_image;
struct symint_module;

struct symint_facts {
    uint64_t vaddr;              /* as the file states it; of the kernel the absolute one */
    bool has_symbol;             /* its name is NULL where unwind data alone tell of a function */
    struct symint_symbol symbol; /* of the kernel with ` [module]`; in terms of vaddr */
    uint64_t extent_start, extent_end; /* where no other symbol takes over; 0: not asked for */
    struct symint_dwarf_chain chain;   /* count 0: nothing */
    bool symbol_unverified, chain_unverified;
    bool final;      /* the file lacked nothing: there is no more to be known */
    bool name_stays; /* whatever debug information calls the function (see chain.h) */
};

/* What the image (with an index) knows of a file offset that is seen through a mapping of it. 1; 0: it is in no
 * executable segment; SYM_ERR_NOMEM. chain is valid until the next call. */
int symint_facts_in_image(struct sym_context *c, const struct symint_module *m,
                          const struct symint_image *image, const struct symint_dwarf_want *want,
                          uint64_t offset, struct symint_facts *out);

/* What packed symbols of the module's file (symint_module_load_packed) know of a file offset: `exact` of that very
 * address, else of the function around it. `all`: also what the context's options do not want. 1; 0: nothing;
 * SYM_ERR_NOMEM. As above. */
int symint_facts_in_packed(struct sym_context *c, const struct symint_module *m, bool exact,
                           bool all, uint64_t offset, struct symint_facts *out);

/* Whether they give the function a name. */
bool symint_facts_named(const struct symint_facts *facts);

/* Of two sources the one that knows more has the higher rank: a name counts more than lines. Final ones are whole. */
unsigned symint_facts_rank(const struct symint_facts *facts);
enum { SYMINT_FACTS_WHOLE = 3 }; /* the highest */

#endif
