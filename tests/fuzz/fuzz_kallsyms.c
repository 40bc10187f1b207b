/* SPDX-License-Identifier: MIT */
/* Any bytes as kallsyms, whole and thinned, with a range of a module: entries are sorted and
 * disjoint, and both give the same answers. */
#include "kernel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(struct symint_kernel *k, const uint8_t *data, size_t size, const uint64_t *needed,
                 size_t count)
{
    enum sym_kernel_state state;
    const struct sym_kernel_range ranges[] = {{0xffffffffc0000000, 0xffffffffc0002800, 0, "[mod]",
                                               0},
                                              {0x1000, UINT64_MAX, 0, "[kernel.kallsyms]", 0}};
    struct sym_kernel kernel = {
        .needed = needed, .needed_count = count, .ranges = ranges, .range_count = 2};
    char *text = malloc(size + 1);
    if (text == NULL)
        return -1;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return symint_kernel_parse(k, text, size, &kernel, &state);
}

static void check_entry(const struct symint_kernel *k, size_t i, size_t text_size)
{
    const struct symint_kernel_entry *e = &k->entries[i];
    struct symint_kernel_symbol s;
    if (e->start >= e->end || (i + 1 < k->count && e->end > e[1].start) ||
        (size_t)e->name + e->size > text_size)
        abort();
    if (!symint_kernel_find(k, e->start, &s) || s.start != e->start || s.end != e->end ||
        s.name_size == 0 || s.name_size + s.owner_size > e->size)
        abort();
    if (!symint_kernel_find(k, e->end - 1, &s) || s.start != e->start)
        abort();
    if (symint_kernel_find(k, e->end, &s) && s.start == e->start)
        abort();
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
        check_entry(&all, i, size);
        if (i % 3 == 0 && count < 64)
            needed[count++] = e->start + (e->end - e->start) / 2;
    }
    if (parse(&thin, data, size, needed, count) == 0) {
        for (size_t i = 0; i < count; i++) {
            struct symint_kernel_symbol a;
            struct symint_kernel_symbol b;
            if (!symint_kernel_find(&all, needed[i], &a) ||
                !symint_kernel_find(&thin, needed[i], &b) || a.start != b.start || a.end != b.end ||
                a.name_size != b.name_size || a.owner_size != b.owner_size ||
                memcmp(a.name, b.name, a.name_size) != 0)
                abort();
        }
        if (thin.count > 2 * count) /* each with the entry behind it */
            abort();
        symint_kernel_free(&thin);
    }
    symint_kernel_free(&all);
    return 0;
}
