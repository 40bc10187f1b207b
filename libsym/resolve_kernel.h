/* SPDX-License-Identifier: MIT */
/* What is known of a kernel address, from all that names the kernel, and its frames. */
#ifndef SYMINT_RESOLVE_KERNEL_H
#define SYMINT_RESOLVE_KERNEL_H

#include "context.h"
#include "facts.h"

/* What there is to know of an address but for KSYMBOL records, as a context with these options wants it (NULL: without
 * debug information); everything is in absolute terms. `module` is the recorded mapping, NULL: none. Packed symbols of
 * less than `level` are asked only where nothing else names the address. 1; 0: nothing names it; SYM_ERR_NOMEM. chain is
 * valid until the next call. */
int symint_kernel_facts(struct sym_context *c, uint64_t address, const struct symint_module *module,
                        const struct sym_options *options, enum sym_level level,
                        struct symint_facts *out);

/* The chain of an address, innermost first, in the arena. `blank` is what each frame starts with;
 * its function_start is the address in the terms of the answer. `module` as above.
 * 0; *count 0: nothing names it. SYM_ERR_NOMEM. */
int symint_kernel_frames(struct sym_context *c, const struct sym_frame *blank, uint64_t address,
                         const struct symint_module *module, const struct sym_frame **frames,
                         size_t *count);

#endif
