/* SPDX-License-Identifier: MIT */
/* Replacing prefixes of paths. */
#include "trim.h"

#include <string.h>

const char *trim_path(const struct trim_list *rules, const char *path, size_t path_size,
                      struct text_buffer *scratch, size_t *size)
{
    *size = path_size;
    for (size_t i = rules->count; i-- > 0;) {
        const struct trim_rule *r = &rules->items[i];

        if (r->old_size > path_size || memcmp(path, r->old, r->old_size) != 0)
            continue;
        scratch->size = 0;
        text_append(scratch, r->new, strlen(r->new));
        text_append(scratch, path + r->old_size, path_size - r->old_size);
        *size = scratch->size;
        return scratch->data;
    }
    return path;
}

const char *trim_module(const struct trim_list *rules, const struct spool_module *module,
                        struct text_buffer *scratch, size_t *size)
{
    *size = module->path_size;
    if (rules->count == 0 || module->path_size == 0 || module->path[0] == '[' ||
        sym_is_anonymous_path(module->path, module->path_size))
        return module->path;
    return trim_path(rules, module->path, module->path_size, scratch, size);
}
