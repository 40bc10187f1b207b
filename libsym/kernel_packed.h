/* SPDX-License-Identifier: MIT */
/* Packed symbols of a capture's kernel: captures/ID/kernel.syms in symbol archives. */
#ifndef SYMINT_KERNEL_PACKED_H
#define SYMINT_KERNEL_PACKED_H

#include "context.h"

/* Loads those of the present capture into c->kernel_packed, or none. 0 or SYM_ERR_NOMEM. */
int symint_kernel_packed_load(struct sym_context *c);

/* Puts what they are into state and detail, where the other sources have put theirs. */
void symint_kernel_packed_tell(struct sym_context *c);

#endif
