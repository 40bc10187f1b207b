/* SPDX-License-Identifier: MIT */
/* Which objects are open is a bit each, so no input makes this deep. */
#include "json_read.h"

#include <string.h>

void json_read_start(struct json_reader *r, const char *text, size_t size)
{
    memset(r, 0, sizeof *r);
    r->text = text;
    r->size = size;
}

void json_read_free(struct json_reader *r)
{
    text_free(&r->string);
}

static enum json_token fault_at(struct json_reader *r, size_t at, const char *why)
{
    if (!r->fault) {
        r->fault = why;
        r->at = at;
    }
    return JSON_FAULT;
}

enum json_token json_read_refuse(struct json_reader *r, const char *why)
{
    return fault_at(r, r->begin, why);
}

/* The next byte; -1: there is none. */
static int peek(const struct json_reader *r)
{
    return r->at < r->size ? (unsigned char)r->text[r->at] : -1;
}

static void skip_blanks(struct json_reader *r)
{
    int c;

    while ((c = peek(r)) == ' ' || c == '\t' || c == '\n' || c == '\r')
        r->at++;
}

static bool in_object(const struct json_reader *r)
{
    return r->depth > 0 && (r->objects >> (r->depth - 1) & 1) != 0;
}

/* ---- texts ---- */

/* Four hex digits. */
static bool read_unit(struct json_reader *r, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        int c = peek(r), digit;

        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        else
            return false;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

static void append_code(struct text_buffer *b, uint32_t code)
{
    char out[4];
    size_t n = 0;

    if (code < 0x80) {
        out[n++] = (char)code;
    } else if (code < 0x800) {
        out[n++] = (char)(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        out[n++] = (char)(0xe0 | code >> 12);
        out[n++] = (char)(0x80 | (code >> 6 & 0x3f));
    } else {
        out[n++] = (char)(0xf0 | code >> 18);
        out[n++] = (char)(0x80 | (code >> 12 & 0x3f));
        out[n++] = (char)(0x80 | (code >> 6 & 0x3f));
    }
    if (code >= 0x80)
        out[n++] = (char)(0x80 | (code & 0x3f));
    text_append(b, out, n);
}

/* What stands behind `\u`. A character beyond the first 65,536 is two of them. */
static bool read_escaped_code(struct json_reader *r)
{
    uint32_t code, low;

    if (!read_unit(r, &code) || (code >= 0xdc00 && code <= 0xdfff))
        return false;
    if (code >= 0xd800 && code <= 0xdbff) {
        if (r->size - r->at < 2 || r->text[r->at] != '\\' || r->text[r->at + 1] != 'u')
            return false;
        r->at += 2;
        if (!read_unit(r, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_code(&r->string, code);
    return true;
}

static bool read_escape(struct json_reader *r)
{
    static const char escapes[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    int c = peek(r);
    const char *found = c > 0 ? strchr(escapes, c) : NULL;

    r->at += c >= 0;
    if (c == 'u')
        return read_escaped_code(r);
    if (!found)
        return false;
    text_append_byte(&r->string, bytes[found - escapes]);
    return true;
}

/* The part of a text up to its next quote or backslash. NULL, or what is wrong with the byte at r->at. */
static const char *read_plain(struct json_reader *r)
{
    size_t begin = r->at;
    uint32_t code;

    while (r->at < r->size && r->text[r->at] != '"' && r->text[r->at] != '\\') {
        size_t length = text_decode(r->text + r->at, r->size - r->at, &code);

        if (code == TEXT_BAD)
            return "not UTF-8";
        if (code < 0x20)
            return "a control character in a text";
        r->at += length;
    }
    if (r->at == r->size)
        return "it ends inside a text";
    text_append(&r->string, r->text + begin, r->at - begin);
    return NULL;
}

static enum json_token read_string(struct json_reader *r, enum json_token token)
{
    r->at++;
    r->string.size = 0;
    text_append(&r->string, "", 0); /* so that there is a NUL */
    for (;;) {
        const char *why = read_plain(r);
        size_t escape = r->at;

        if (why)
            return fault_at(r, r->at, why);
        if (r->text[r->at++] == '"')
            return token;
        if (!read_escape(r))
            return fault_at(r, escape, "a bad escape in a text");
    }
}

/* ---- numbers and words ---- */

static size_t skip_digits(struct json_reader *r)
{
    size_t begin = r->at;
    int c;

    while ((c = peek(r)) >= '0' && c <= '9')
        r->at++;
    return r->at - begin;
}

/* The digits of a whole number. */
static void take_number(struct json_reader *r, size_t begin, size_t count)
{
    uint64_t limit = r->negative ? (uint64_t)1 << 63 : UINT64_MAX, number = 0;

    r->exact = true;
    for (size_t i = 0; i < count && r->exact; i++) {
        unsigned digit = (unsigned)(r->text[begin + i] - '0');

        r->exact = number <= (limit - digit) / 10;
        number = number * 10 + digit;
    }
    r->number = number;
}

static enum json_token read_number(struct json_reader *r)
{
    size_t begin, count;
    bool whole = true;

    r->negative = peek(r) == '-';
    r->at += r->negative;
    begin = r->at;
    count = skip_digits(r);
    if (count == 0 || (count > 1 && r->text[begin] == '0'))
        return fault_at(r, begin, "a bad number");
    if (peek(r) == '.') {
        r->at++;
        whole = false;
        if (skip_digits(r) == 0)
            return fault_at(r, r->at, "a bad number");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        whole = false;
        r->at += peek(r) == '+' || peek(r) == '-';
        if (skip_digits(r) == 0)
            return fault_at(r, r->at, "a bad number");
    }
    r->exact = false;
    if (whole)
        take_number(r, begin, count);
    return JSON_NUMBER;
}

static enum json_token read_word(struct json_reader *r)
{
    static const struct {
        const char *word;
        enum json_token token;
    } words[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i].word);

        if (r->size - r->at >= size && memcmp(r->text + r->at, words[i].word, size) == 0) {
            r->at += size;
            return words[i].token;
        }
    }
    return fault_at(r, r->at, r->at == r->size ? "it ends too early" : "no JSON value");
}

/* ---- structure ---- */

static enum json_token open_bracket(struct json_reader *r, bool object)
{
    if (r->depth == JSON_DEPTH_MAX)
        return fault_at(r, r->at, "nested too deep");
    r->at++;
    r->objects &= ~((uint64_t)1 << r->depth);
    r->objects |= (uint64_t)object << r->depth;
    r->depth++;
    r->wants = JSON_WANTS_FIRST;
    return object ? JSON_OBJECT : JSON_ARRAY;
}

static enum json_token close_bracket(struct json_reader *r)
{
    bool object = in_object(r);

    r->at++;
    r->depth--;
    r->wants = JSON_WANTS_SEPARATOR;
    return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static enum json_token read_value(struct json_reader *r)
{
    int c = peek(r);

    if (c == '{' || c == '[')
        return open_bracket(r, c == '{');
    r->wants = JSON_WANTS_SEPARATOR;
    if (c == '"')
        return read_string(r, JSON_STRING);
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r);
    return read_word(r);
}

static enum json_token read_key(struct json_reader *r)
{
    if (peek(r) != '"')
        return fault_at(r, r->at, "a key is missing");
    if (read_string(r, JSON_KEY) == JSON_FAULT)
        return JSON_FAULT;
    skip_blanks(r);
    if (peek(r) != ':')
        return fault_at(r, r->at, "a colon is missing");
    r->at++;
    r->wants = JSON_WANTS_VALUE;
    return JSON_KEY;
}

enum json_token json_read_next(struct json_reader *r)
{
    int c;

    if (r->fault)
        return JSON_FAULT;
    skip_blanks(r);
    c = peek(r);
    if (r->depth == 0 && r->wants == JSON_WANTS_SEPARATOR)
        return c < 0 ? JSON_END : fault_at(r, r->at, "something follows the value");
    if (r->wants == JSON_WANTS_SEPARATOR || r->wants == JSON_WANTS_FIRST) {
        r->begin = r->at;
        if (c == (in_object(r) ? '}' : ']'))
            return close_bracket(r);
        if (r->wants == JSON_WANTS_SEPARATOR) {
            if (c != ',')
                return fault_at(r, r->at, c < 0 ? "it ends too early" : "a comma is missing");
            r->at++;
            skip_blanks(r);
        }
        r->wants = JSON_WANTS_MEMBER;
    }
    r->begin = r->at;
    if (r->wants == JSON_WANTS_MEMBER && in_object(r))
        return read_key(r);
    return read_value(r);
}

bool json_read_skip(struct json_reader *r, enum json_token token)
{
    unsigned depth = r->depth;

    if (token == JSON_OBJECT || token == JSON_ARRAY)
        while (r->depth >= depth && (token = json_read_next(r)) != JSON_FAULT)
            ;
    return token != JSON_FAULT;
}
