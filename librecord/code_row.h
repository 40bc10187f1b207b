/* SPDX-License-Identifier: MIT */
/*
 * Rows for code without unwind data, read from its instructions. Only code whose effect on the stack is certain has
 * one: what runs straight on to its return, as the short trampolines of interpreters do, and the first
 * instructions of a function that sets up a frame pointer.
 */
#ifndef RECORD_CODE_ROW_H
#define RECORD_CODE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"
#include "cfi.h"

enum {
    CODE_AHEAD_MAX = 64, /* bytes of code that are looked at, at most */
    CODE_BEFORE_MAX = 8
};

/* The row at code + at, an instruction's first byte. after_call: a call returns there; else it is about to be
 * executed. Returns true and *out, of which only the CFA, the registers and return_register count; false: the code
 * does more than is understood, or does not return. */
bool recordint_code_row(enum arch arch, const uint8_t *code, size_t size, size_t at,
                        bool after_call, struct cfi_row *out);

/* The row at code + at, about to be executed, among a function's instructions that set up its frame pointer. Returns
 * false when it is none of these. */
bool recordint_code_prologue(enum arch arch, const uint8_t *code, size_t size, size_t at,
                             struct cfi_row *out);

#endif
