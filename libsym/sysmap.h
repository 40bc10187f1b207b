/* SPDX-License-Identifier: MIT */
/* The System.map of a kernel release. */
#ifndef SYMINT_SYSMAP_H
#define SYMINT_SYSMAP_H

#include "kernel.h"
#include "locate.h"

/* Looks for the System.map of kernel->release and for its shift. *state: OK and *k is the table
 * of its text symbols; UNKNOWN_SHIFT; NONE when there is no file, or nothing to find its shift
 * with. k->detail tells in each case. 0 or SYM_ERR_NOMEM. */
int symint_sysmap_load(struct symint_kernel *k, const struct sym_kernel *kernel,
                       const struct symint_search_options *options, enum sym_kernel_state *state);

/* The same for the text of one such file, which it takes (malloc'ed, NUL-terminated after size
 * bytes). NONE: it is no map. *why: for UNKNOWN_SHIFT, static storage. */
int symint_sysmap_parse(struct symint_kernel *k, char *text, size_t size,
                        const struct sym_kernel *kernel, enum sym_kernel_state *state,
                        const char **why);

#endif
