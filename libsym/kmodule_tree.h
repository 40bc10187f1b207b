/* SPDX-License-Identifier: MIT */
/* A folder walked for the files of kernel modules. */
#ifndef SYMINT_KMODULE_TREE_H
#define SYMINT_KMODULE_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* Called for a file; path is in terms of root, name_size bytes of `name` are its module's. 0, or an
 * error that ends the walk. */
typedef int symint_kmodule_found_fn(void *user, const char *path, const char *name,
                                    size_t name_size);

/* Walks a folder inside root (NULL: ours) and what is below it, as far as links do not lead, and
 * no more than a bounded number of entries. A folder that cannot be read is skipped. 0;
 * SYM_ERR_NOMEM; what `found` returned. */
int symint_kmodule_walk(const char *root, const char *folder, symint_kmodule_found_fn *found,
                        void *user);

#endif
