/* SPDX-License-Identifier: MIT */
/* Where functions begin and end according to unwind data. */
#ifndef SYMINT_FDE_H
#define SYMINT_FDE_H

#include "elf.h"

/* Ranges of the frame description entries in .eh_frame: ascending start, each start once (the
 * longest), all of them in executable code of the file. */
struct symint_fdes {
    uint64_t *start;
    uint64_t *end; /* > start; part of the allocation that `start` is */
    size_t count;
};

/* Reads them, with or without section headers; symint_elf_read_sections was called before. What is
 * damaged is left out, however much that is. 0 or SYM_ERR_NOMEM (nothing is kept then). */
int symint_fdes_read(const struct symint_elf *e, struct symint_fdes *out);
void symint_fdes_free(struct symint_fdes *f);

/* The end of the entry that begins at an address, 0: none does. */
uint64_t symint_fdes_end(const struct symint_fdes *f, uint64_t start);

#endif
