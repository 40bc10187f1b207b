/* SPDX-License-Identifier: MIT */
/*
 * Names from spools and symbol files made fit for output: clean names for documents,
 * and escaped ones for terminals. Any byte may come in; what comes out
 * is UTF-8.
 */
#ifndef TOOLS_TEXT_H
#define TOOLS_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing text. Starts as {0}; data is NULL or NUL-terminated. */
struct text_buffer {
    char *data;
    size_t size; /* without the NUL */
    size_t capacity;
};

void text_free(struct text_buffer *b);
/* Without memory these end the tool (cli_realloc). */
void text_append(struct text_buffer *b, const char *data, size_t size);
void text_append_byte(struct text_buffer *b, char byte);
/* printf onto the end. */
void text_printf(struct text_buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_vprintf(struct text_buffer *b, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Bytes as lower-case hex digits onto the end; and to memory that has room for them and a NUL. */
void text_append_hex(struct text_buffer *b, const uint8_t *bytes, size_t size);
void text_write_hex(char *out, const uint8_t *bytes, size_t size);

/* A copy that ends in a NUL, malloc'ed. */
char *text_copy(const char *data, size_t size);

/* Onto the end: 41233 as "41,233"; a number and the word for it, "1 sample"; a size as "1.2 MiB". */
void text_number(struct text_buffer *b, uint64_t number);
void text_counted(struct text_buffer *b, uint64_t number, const char *singular, const char *plural);
void text_bytes(struct text_buffer *b, uint64_t bytes);

#define TEXT_BAD UINT32_MAX

/* Decodes what begins at in (size >= 1): *code is the character, or TEXT_BAD for a maximal bad
 * sequence. Returns its bytes, at least 1. */
size_t text_decode(const char *in, size_t size, uint32_t *code);

bool text_is_utf8(const char *in, size_t size);

/* The rest overwrites *out and returns out->size, or goes onto its end. in must not lie inside *out. */

/* Clean name: bad sequences are U+FFFD; C0, DEL, C1, U+2028, U+2029 one blank each; blanks at
 * both ends go; empty is "[unnamed]". */
size_t text_clean(const char *in, size_t size, struct text_buffer *out);
void text_append_clean(struct text_buffer *out, const char *in, size_t size);

/* For people: control characters and bytes that are not UTF-8 are written as \x1b, a byte each. */
size_t text_display(const char *in, size_t size, struct text_buffer *out);
void text_append_display(struct text_buffer *out, const char *in, size_t size);

/* Lossless: the text itself when it is not empty and plain (no blank, quote, backslash, control
 * character, bad byte), else in double quotes with \" \\ and \x1b. */
size_t text_quote(const char *in, size_t size, struct text_buffer *out);

#endif
