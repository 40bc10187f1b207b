/* SPDX-License-Identifier: MIT */
/* Formatted texts: paths, and what is told to people. */
#ifndef SYMINT_WORDS_H
#define SYMINT_WORDS_H

#include "strtab.h"

#include <stdarg.h>

/* A formatted text, malloc'ed; NULL: out of memory. */
char *symint_join(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same in an arena, cut at 8 KiB. */
const char *symint_arena_print(struct symint_arena *a, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Appends to a text that has that room, behind `; ` when there is something before; cut at its end. */
void symint_append(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void symint_append_list(char *text, size_t room, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
