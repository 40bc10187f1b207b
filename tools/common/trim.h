/* SPDX-License-Identifier: MIT */
/* --trim-path: other prefixes for the paths of sources and modules. */
#ifndef TOOLS_TRIM_H
#define TOOLS_TRIM_H

#include "options.h"
#include "spool/spool.h"
#include "text.h"

/* The path with its prefix replaced by the rule that was given last of those that match, once, whatever stands behind
 * the prefix. *size gets its length; without a rule that matches it is the path itself, else it lies in *scratch and
 * is terminated. */
const char *trim_path(const struct trim_list *rules, const char *path, size_t path_size,
                      struct text_buffer *scratch, size_t *size);

/* The same for the path of a module. What is no path, like //anon and [vdso], stays as it is. */
const char *trim_module(const struct trim_list *rules, const struct spool_module *module,
                        struct text_buffer *scratch, size_t *size);

#endif
