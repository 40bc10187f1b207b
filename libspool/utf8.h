/* SPDX-License-Identifier: MIT */
/* UTF-8 as the format demands it: no overlong forms, no surrogates, at most U+10FFFF; NUL is a character. */
#ifndef SPOOLINT_UTF8_H
#define SPOOLINT_UTF8_H

#include <stddef.h>

/* Length of the longest valid prefix: equal to size when all of it is valid. */
size_t spoolint_utf8_valid_prefix(const void *data, size_t size);

/* Bytes of the maximal bad sequence at the start of data (size >= 1, data does not start with a valid
 * character): at least 1. Replacing each such sequence by one U+FFFD is the common practice (Unicode 3.9). */
size_t spoolint_utf8_bad_sequence(const void *data, size_t size);

#endif
