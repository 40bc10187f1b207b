/* SPDX-License-Identifier: MIT */
/*
 * Value of a DWARF expression of call frame information, given registers and copied stack bytes.
 */
#ifndef RECORD_CFI_EXPR_H
#define RECORD_CFI_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "arch.h"
#include "cfi.h"

/* Bytes of a stack; bytes[0] is at address start. */
struct stack_copy {
    const uint8_t *bytes;
    uint64_t start;
    size_t size;
};

/* A little-endian word. Returns false when one of its bytes was not copied. */
static inline bool stack_copy_load(const struct stack_copy *copy, uint64_t address, uint64_t *out)
{
    uint64_t offset = address - copy->start;

    if (copy->size < sizeof *out || offset > copy->size - sizeof *out)
        return false;
    __builtin_memcpy(out, copy->bytes + offset, sizeof *out); /* both machines are little-endian */
    return true;
}

enum cfi_expr_result {
    CFI_EXPR_VALUE = 0,
    CFI_EXPR_BAD, /* not understood, cut off, too deep, too long, divides by 0, leaves nothing */
    CFI_EXPR_REGISTER, /* needs a register whose value is not known */
    CFI_EXPR_READ      /* needs memory at *out that was not copied */
};

/* cfa: what the stack begins with, NULL: empty. bias: runtime address minus address of the file. */
enum cfi_expr_result recordint_cfi_expr(const struct cfi_expr *expr, const struct regs *regs,
                                        const struct stack_copy *copy, uint64_t bias,
                                        const uint64_t *cfa, uint64_t *out);

#endif
