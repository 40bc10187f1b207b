/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: which row of the unwind tables holds at an address of a file. Knows
 * .eh_frame through .eh_frame_hdr or through a sorted list of its FDEs, and .debug_frame; executes an FDE's
 * program up to the address. Applying a row to registers is rule.c's and unwind.c's business.
 */
#ifndef RECORD_CFI_H
#define RECORD_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"
#include "image.h"

enum cfi_rule_kind {
    CFI_UNSPECIFIED =
        0, /* the tables say nothing: by the ABI same value for callee-saved registers */
    CFI_UNDEFINED,
    CFI_SAME_VALUE,
    CFI_OFFSET,        /* saved at CFA + offset */
    CFI_VAL_OFFSET,    /* is CFA + offset */
    CFI_REGISTER,      /* is in register reg; UINT32_MAX: in one of no interest here */
    CFI_EXPRESSION,    /* saved at the address that expr computes, CFA on its stack first */
    CFI_VAL_EXPRESSION /* is what expr computes */
};

/* DWARF expression bytes; point into the image's memory and live as long as it. */
struct cfi_expr {
    const uint8_t *bytes;
    size_t size;
};

struct cfi_rule {
    enum cfi_rule_kind kind;
    uint32_t reg;
    int64_t offset;
    struct cfi_expr expr;
};

struct cfi_row {
    uint64_t start; /* the row holds for [start, end), addresses of the file */
    uint64_t end;
    bool cfa_is_expression;
    uint32_t cfa_reg;
    int64_t cfa_offset;
    struct cfi_expr cfa_expr;
    struct cfi_rule reg[REG_COUNT]; /* by DWARF number */
    uint32_t return_register;       /* column of the return address: 16 on x86-64, 30 on AArch64 */
    bool signal_frame;              /* 'S' in the augmentation */
    bool return_address_signed;     /* AArch64: DW_CFA_AARCH64_negate_ra_state is on */
    bool from_debug_frame;          /* not .eh_frame */
    uint64_t fde_start;             /* first address of the FDE */
};

enum cfi_result {
    CFI_FOUND = 0,
    CFI_NONE = 1, /* no FDE covers the address */
    CFI_BAD = 2 /* one does, but it or its CIE cannot be understood (unknown opcode, cut off ...) */
};

/* The row for an address of the file. Tables that are missing, damaged or lie are CFI_NONE or CFI_BAD, as is
 * a lack of memory for the sorted list (tried again next time). Not for two threads at once on one image. */
enum cfi_result recordint_cfi_row(struct image *image, uint64_t address, struct cfi_row *row);

/* How many bytes of instructions all rows of the image have taken so far. */
uint64_t recordint_cfi_work(const struct image *image);

/* Walks all FDEs of the tables in use (tests): those of .eh_frame, then those of .debug_frame. [*start, *end).
 * *at starts at 0; returns false at the end. */
bool recordint_cfi_next_fde(struct image *image, size_t *at, uint64_t *start, uint64_t *end);

#endif
