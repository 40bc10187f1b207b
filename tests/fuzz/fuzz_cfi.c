/* SPDX-License-Identifier: MIT */
/* Any bytes as an ELF file: a row that is found contains the address, and its expressions lie in memory. */
#include "cfi.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned touch(const struct cfi_expr *expr)
{
    unsigned sum = 0;
    for (size_t i = 0; i < expr->size; i++)
        sum += expr->bytes[i];
    return sum;
}

static unsigned ask(struct image *image, uint64_t address)
{
    static struct cfi_row row;
    unsigned sum = 0;
    if (recordint_cfi_row(image, address, &row) != CFI_FOUND)
        return 0;
    if (row.start > address || row.end <= address || row.start < row.fde_start ||
        row.return_register >= REG_COUNT || (!row.cfa_is_expression && row.cfa_reg >= REG_COUNT))
        abort();
    if (row.cfa_is_expression)
        sum += touch(&row.cfa_expr);
    for (unsigned reg = 0; reg < REG_COUNT; reg++)
        if (row.reg[reg].kind == CFI_EXPRESSION || row.reg[reg].kind == CFI_VAL_EXPRESSION)
            sum += touch(&row.reg[reg].expr);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image *image;
    uint8_t id[IMAGE_BUILD_ID_MAX];
    uint64_t start;
    uint64_t end;
    unsigned asked = 0;
    if (recordint_image_open_memory(data, size, &image) != 0)
        return 0;
    if (recordint_image_build_id(image, id) > sizeof(id))
        abort();
    for (uint64_t offset = 0; offset < 0x2000; offset += 0x10) {
        if (recordint_image_address(image, offset, &start))
            ask(image, start);
        if (recordint_image_read(image, offset, id, 16) > 16)
            abort();
    }
    for (size_t at = 0; asked < 256 && recordint_cfi_next_fde(image, &at, &start, &end); asked++) {
        ask(image, start);
        ask(image, start + (end - start) / 2);
        ask(image, end - 1);
    }
    recordint_image_free(image);
    return 0;
}
