/* SPDX-License-Identifier: MIT */
/*
 * Error codes, their names and texts, and the buffer that a failing function fills.
 */
#ifndef RECORD_RECORD_ERROR_H
#define RECORD_RECORD_ERROR_H

#include <stddef.h>

/* The latest error of a handle or a call. */
struct record_errbuf {
    int code;       /* RECORD_ERR_*; 0: none */
    int system;     /* errno value behind it; 0: none */
    char text[512]; /* one line, no full stop */
};

/* Formats the text (cut when too long) and returns code. */
int recordint_error_set(struct record_errbuf *e, int code, int system, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
