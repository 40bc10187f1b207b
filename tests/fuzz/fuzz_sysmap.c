/* SPDX-License-Identifier: MIT */
/* Any bytes as a System.map behind a line of 64 hexadecimal digits, which are four needed addresses:
 * a shift that is found puts every address of the kernel into the code, and names contain their
 * addresses. */
#include "sysmap.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t needed[4] = {0};
    const struct sym_kernel_range ranges[] = {
        {0xffffffff81000000, 0xffffffffc0000000, 0xffffffff82000000, "[kernel.kallsyms]_text", 0},
        {0xffffffffc0000000, 0xffffffffc0100000, 0, "[mod]", 0}};
    if (size < 65)
        return 0;
    for (size_t i = 0; i < 4; i++) {
        char digits[17] = {0};
        memcpy(digits, data + i * 16, 16);
        needed[i] = strtoull(digits, NULL, 16);
    }
    qsort(needed, 4, sizeof(needed[0]), compare);
    for (size_t with_ranges = 0; with_ranges < 2; with_ranges++) {
        struct sym_kernel kernel = {
            .needed = needed, .needed_count = 4, .ranges = ranges, .range_count = with_ranges * 2};
        struct symint_kernel k;
        enum sym_kernel_state state;
        const char *why;
        char *text = malloc(size - 64);
        if (text == NULL)
            return 0;
        memcpy(text, data + 65, size - 65);
        text[size - 65] = '\0';
        if (symint_sysmap_parse(&k, text, size - 65, &kernel, &state, &why) != 0)
            return 0;
        if (state != SYM_KERNEL_OK && k.count != 0)
            abort();
        for (size_t i = 0; i < 4; i++) {
            struct symint_kernel_symbol s;
            if (symint_kernel_find(&k, needed[i], &s) &&
                (needed[i] < s.start || needed[i] >= s.end || s.name_size == 0))
                abort();
        }
        symint_kernel_free(&k);
    }
    return 0;
}
