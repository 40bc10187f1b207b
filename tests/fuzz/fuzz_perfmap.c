/* SPDX-License-Identifier: MIT */
/* Any bytes as a perf map: entries are found where they say, and later lines win. */
#include "perfmap.h"
#include "python.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct symint_perf_map *m, uint64_t address)
{
    const struct symint_perf_entry *e = symint_perf_map_find(m, address);
    const struct symint_perf_entry *last = NULL;
    for (size_t i = 0; i < m->count; i++)
        if (address >= m->entries[i].start && address < m->entries[i].end)
            last = &m->entries[i];
    if (e != last)
        abort();
    if (e != NULL) {
        const char *name;
        const char *file;
        size_t name_size;
        size_t file_size;
        if (e->name_size == 0)
            abort();
        if (symint_split_python(m->text + e->name, e->name_size, &name, &name_size, &file,
                                &file_size) &&
            (name_size == 0 || name_size + file_size > e->name_size))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symint_perf_map m;
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (symint_perf_map_parse(&m, text, size) != 0)
        return 0;
    for (size_t i = 0; i < m.count && i < 200; i++) {
        check(&m, m.entries[i].start);
        check(&m, m.entries[i].start - 1);
        check(&m, m.entries[i].end - 1);
        check(&m, m.entries[i].end);
    }
    check(&m, 0);
    check(&m, UINT64_MAX);
    symint_perf_map_free(&m);
    return 0;
}
