/* SPDX-License-Identifier: MIT */
/* Any bytes as kallsyms, whole and thinned: entries are sorted and disjoint, and both give the
 * same answers. */
#include "kernel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(struct symint_kernel *k, const uint8_t *data, size_t size, const uint64_t *needed,
                 size_t count)
{
    enum sym_kernel_state state;
    char *text = malloc(size + 1);
    if (text == NULL)
        return -1;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return symint_kernel_parse(k, text, size, needed, count, &state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symint_kernel all;
    struct symint_kernel thin;
    uint64_t needed[64];
    size_t count = 0;
    if (parse(&all, data, size, NULL, 0) != 0)
        return 0;
    for (size_t i = 0; i < all.count; i++) {
        const struct symint_kernel_entry *e = &all.entries[i];
        if (e->start >= e->end || (i + 1 < all.count && e->end > e[1].start) || e->name_size == 0 ||
            (size_t)e->name + e->name_size > size || (size_t)e->owner + e->owner_size > size)
            abort();
        if (symint_kernel_find(&all, e->start) != e || symint_kernel_find(&all, e->end - 1) != e ||
            symint_kernel_find(&all, e->end) == e)
            abort();
        if (i % 3 == 0 && count < 64)
            needed[count++] = e->start + (e->end - e->start) / 2;
    }
    if (parse(&thin, data, size, needed, count) == 0) {
        for (size_t i = 0; i < count; i++) {
            const struct symint_kernel_entry *a = symint_kernel_find(&all, needed[i]);
            const struct symint_kernel_entry *b = symint_kernel_find(&thin, needed[i]);
            if (a == NULL || b == NULL || a->name_size != b->name_size ||
                memcmp(all.text + a->name, thin.text + b->name, a->name_size) != 0)
                abort();
        }
        if (thin.count > count)
            abort();
        symint_kernel_free(&thin);
    }
    symint_kernel_free(&all);
    return 0;
}
