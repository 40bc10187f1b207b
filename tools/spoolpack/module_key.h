/* SPDX-License-Identifier: MIT */
/* Under which build id the symbols of a module's file are stored. */
#ifndef SPOOLPACK_MODULE_KEY_H
#define SPOOLPACK_MODULE_KEY_H

#include "collect.h"

/* What is known of files that had to be hashed. */
struct module_keys;
struct module_keys *module_keys_new(struct symbols *symbols);
void module_keys_free(struct module_keys *k);

/* Fills in path, build_id, key, hashed, unverified and handle of *out. The file is looked for only when no build id was
 * recorded. 0, or -1 after an error message. */
int module_key_find(struct module_keys *k, const struct spool_module *module,
                    const struct spool_reader *reader, struct collected_file *out);

#endif
