/* SPDX-License-Identifier: MIT */
/*
 * What earlier packs of the same capture found. A later one, on another machine or when files are gone, may find less:
 * what it lacks it takes from them.
 */
#ifndef SPOOLPACK_EARLIER_H
#define SPOOLPACK_EARLIER_H

#include "manifest.h"
#include "store.h"

struct earlier {
    struct manifest *items;
    size_t count;
};

/* Reads the manifests of a capture in a store; those that cannot be read are none. 0, or -1 after an error message. */
int earlier_read(struct earlier *e, struct store *store, const char *capture);
void earlier_free(struct earlier *e);

/* The module with the most names of those with this path and build id (NULL: none recorded) that are stored under this
 * key (NULL: under any). NULL: none. */
const struct manifest_module *earlier_module(const struct earlier *e, const char *path,
                                             const char *build_id, const char *key);

/* How many kernel addresses had a name, and the most that is stored about them. */
uint64_t earlier_kernel_named(const struct earlier *e);
enum manifest_level earlier_level(const struct earlier *e);

#endif
