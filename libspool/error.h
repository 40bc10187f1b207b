/* SPDX-License-Identifier: MIT */
/* The error text a handle carries, and the one function that sets it. */
#ifndef SPOOLINT_ERROR_H
#define SPOOLINT_ERROR_H

#include "spool/spool.h"

#define SPOOLINT_ERROR_SIZE 256

struct error_state {
    int code;                       /* 0: none */
    char text[SPOOLINT_ERROR_SIZE]; /* "" until the first error */
};

/* Formats the text, stores the code and returns it. The text is one line, lower case, no full stop. */
int spoolint_error_set(struct error_state *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The text, "no error" when there is none. */
const char *spoolint_error_get(const struct error_state *e);

#endif
