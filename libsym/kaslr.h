/* SPDX-License-Identifier: MIT */
/* How far a kernel was moved at its start against its System.map. */
#ifndef SYMINT_KASLR_H
#define SYMINT_KASLR_H

#include "kernel.h"

/* Labels of a System.map; 0: not in it. [stext, etext) and [init_start, init_end) are code. */
struct symint_kernel_layout {
    uint64_t text; /* _text */
    uint64_t stext, etext;
    uint64_t init_start, init_end; /* _sinittext, _einittext */
    uint64_t edata, end;
};

/* Finds the shift of the map's kernel (entries by ascending start, unshifted) from what `kernel`
 * says of the sampled one: its ranges, its needed addresses. 0 with *found; then *shift is to be
 * added to the map's addresses. *why is a short text, static storage. SYM_ERR_NOMEM. */
int symint_kaslr_find(const struct symint_kernel *map, const struct symint_kernel_layout *layout,
                      const struct sym_kernel *kernel, bool *found, uint64_t *shift,
                      const char **why);

#endif
