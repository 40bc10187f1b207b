/* SPDX-License-Identifier: MIT */
/*
 * Which module contains an address, for the modules of one process or of the kernel: the youngest one that
 * stood before a frame and was not retired there (spool(5), "finding the module"). Logarithmic whatever the
 * overlap, and cheap to extend while a file is read.
 */
#ifndef SPOOLINT_MODULE_INDEX_H
#define SPOOLINT_MODULE_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* What the index knows of a module. Ids ascend in the order of adding. */
struct indexed_module {
    uint32_t id;
    uint64_t start;
    uint64_t end;
};

/* Number of frames when a module was retired, SPOOL_NOT_RETIRED if it was not. The value of a module changes
 * at most once, from SPOOL_NOT_RETIRED to its final one. */
typedef uint64_t retired_at_fn(const void *user, uint32_t module_id);

struct module_index;

/* NULL: out of memory. */
struct module_index *spoolint_module_index_new(retired_at_fn *retired_at, const void *user);
void spoolint_module_index_free(struct module_index *x);

/* Adds a module; end <= start is legal and never found. Cheap: the search structure is extended at the next
 * find. Returns 0 or SPOOL_ERR_NOMEM (nothing added). */
int spoolint_module_index_add(struct module_index *x, const struct indexed_module *module);

/* The highest id below id_limit whose range holds the address and which was retired after `frame` or not at
 * all (frame < retired_at). 1 and *id, 0 when there is none, SPOOL_ERR_NOMEM. */
int spoolint_module_index_find(struct module_index *x, uint64_t address, uint32_t id_limit,
                               uint64_t frame, uint32_t *id);

#endif
