/* SPDX-License-Identifier: MIT */
/* Which kernel addresses are to be packed. */
#ifndef SYMINT_PACK_KERNEL_H
#define SYMINT_PACK_KERNEL_H

#include "context.h"
#include "segments.h"

/* The distinct kernel addresses of queries without those of BPF programs that come and go, ascending: each as a key, with
 * the lowest module handle it was asked with (SYM_NO_MODULE: none) as its value. malloc'ed. 0; SYM_ERR_NOMEM;
 * SYM_ERR_MISUSE. The error is kept in the context. */
int symint_kernel_addresses(struct sym_context *c, const struct sym_query *queries, size_t count,
                            struct symint_pair **addresses, size_t *address_count);

/* The module of such a pair; NULL: none. */
const struct symint_module *symint_address_module(const struct sym_context *c,
                                                  const struct symint_pair *address);

#endif
