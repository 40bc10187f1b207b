/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as instructions, by the first byte of one architecture or the other: rows of every place in them have only
 * registers that there are, and do not depend on what lies beyond the bytes that count.
 */
#include <stdlib.h>
#include <string.h>

#include "code_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(enum arch arch, const struct cfi_row *row)
{
    if (row->cfa_is_expression || row->cfa_reg >= REG_COUNT || row->return_register >= REG_COUNT)
        abort();
    for (unsigned reg = 0; reg < REG_COUNT; reg++)
        if (row->reg[reg].kind == CFI_EXPRESSION || row->reg[reg].kind == CFI_VAL_EXPRESSION)
            abort();
    (void)arch;
}

static void expect_same(bool found, const struct cfi_row *a, bool found_again,
                        const struct cfi_row *b)
{
    if (found != found_again)
        abort();
    if (!found)
        return;
    if (a->cfa_reg != b->cfa_reg || a->cfa_offset != b->cfa_offset ||
        a->return_register != b->return_register)
        abort();
    for (unsigned reg = 0; reg < REG_COUNT; reg++)
        if (a->reg[reg].kind != b->reg[reg].kind)
            abort();
}

static void ask(enum arch arch, const uint8_t *code, size_t size, size_t at)
{
    static struct cfi_row row, again;

    for (unsigned after_call = 0; after_call < 2; after_call++) {
        bool found = recordint_code_row(arch, code, size, at, after_call != 0, &row);

        if (found)
            check_row(arch, &row);
        expect_same(found, &row, recordint_code_row(arch, code, size, at, after_call != 0, &again),
                    &again);
    }
    if (recordint_code_prologue(arch, code, size, at, &row))
        check_row(arch, &row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum arch arch;
    uint8_t *code;

    if (size < 2)
        return 0;
    arch = (data[0] & 1) != 0 ? ARCH_AARCH64 : ARCH_X86_64;
    size--;
    if (size > CODE_BEFORE_MAX + CODE_AHEAD_MAX)
        size = CODE_BEFORE_MAX + CODE_AHEAD_MAX;
    code = malloc(size); /* of exactly the size: what is read behind it is noticed */
    if (code == NULL)
        abort();
    memcpy(code, data + 1, size);
    for (size_t at = 0; at < size; at += arch == ARCH_AARCH64 ? 4 : 1)
        ask(arch, code, size, at);
    free(code);
    return 0;
}
