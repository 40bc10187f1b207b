/* SPDX-License-Identifier: MIT */
/*
 * Cleaning and escaping of names. Everything is built on one decoder, so that the rules agree on
 * what a bad sequence is: a maximal subpart in the sense of Unicode 3.9, as libspool's writer
 * and most languages have it.
 */
#include "text.h"
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

void text_free(struct text_buffer *b)
{
    free(b->data);
    *b = (struct text_buffer){0};
}

/* Room for size more bytes and the NUL. */
static void reserve(struct text_buffer *b, size_t size)
{
    size_t wanted, capacity;

    if (size < b->capacity - b->size && b->capacity > 0)
        return;
    wanted = b->size + size + 1;
    if (wanted <= size) /* cannot be had; cli_realloc says so */
        wanted = SIZE_MAX;
    capacity = b->capacity < 32 ? 64 : b->capacity * 2;
    if (capacity < wanted)
        capacity = wanted;
    b->data = cli_realloc(b->data, capacity, 1);
    b->capacity = capacity;
}

void text_append(struct text_buffer *b, const char *data, size_t size)
{
    reserve(b, size);
    if (size > 0)
        memcpy(b->data + b->size, data, size);
    b->size += size;
    b->data[b->size] = '\0';
}

void text_append_byte(struct text_buffer *b, char byte)
{
    text_append(b, &byte, 1);
}

void text_vprintf(struct text_buffer *b, const char *format, va_list args)
{
    va_list again;
    int size;

    va_copy(again, args);
    size = vsnprintf(NULL, 0, format, args);
    if (size > 0) {
        reserve(b, (size_t)size);
        vsnprintf(b->data + b->size, (size_t)size + 1, format, again);
        b->size += (size_t)size;
    }
    va_end(again);
}

void text_printf(struct text_buffer *b, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    text_vprintf(b, format, args);
    va_end(args);
}

void text_write_hex(char *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

void text_append_hex(struct text_buffer *b, const uint8_t *bytes, size_t size)
{
    reserve(b, 2 * size);
    text_write_hex(b->data + b->size, bytes, size);
    b->size += 2 * size;
}

char *text_copy(const char *data, size_t size)
{
    char *copy = cli_realloc(NULL, size + 1, 1);

    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

void text_number(struct text_buffer *b, uint64_t number)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, number);

    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            text_append_byte(b, ',');
        text_append_byte(b, digits[i]);
    }
}

void text_counted(struct text_buffer *b, uint64_t number, const char *singular, const char *plural)
{
    text_number(b, number);
    text_printf(b, " %s", number == 1 ? singular : plural);
}

void text_bytes(struct text_buffer *b, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    text_printf(b, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void start(struct text_buffer *b)
{
    b->size = 0;
    reserve(b, 0);
    b->data[0] = '\0';
}

size_t text_decode(const char *in, size_t size, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)in;
    unsigned low = 0x80, high = 0xbf; /* the second byte keeps out overlong forms and surrogates */
    size_t length;
    uint32_t c = p[0];

    if (c < 0x80) {
        *code = c;
        return 1;
    }
    *code = TEXT_BAD;
    if (c < 0xc2 || c > 0xf4)
        return 1;
    if (c < 0xe0) {
        length = 2;
        c &= 0x1f;
    } else if (c < 0xf0) {
        length = 3;
        if (c == 0xe0)
            low = 0xa0;
        else if (c == 0xed)
            high = 0x9f;
        c &= 0x0f;
    } else {
        length = 4;
        if (c == 0xf0)
            low = 0x90;
        else if (c == 0xf4)
            high = 0x8f;
        c &= 0x07;
    }
    for (size_t i = 1; i < length; i++) {
        if (i == size || p[i] < low || p[i] > high)
            return i;
        c = c << 6 | (p[i] & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    *code = c;
    return length;
}

bool text_is_utf8(const char *in, size_t size)
{
    for (size_t at = 0; at < size;) {
        uint32_t code;

        at += text_decode(in + at, size - at, &code);
        if (code == TEXT_BAD)
            return false;
    }
    return true;
}

/* C0, DEL and C1. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f);
}

static bool is_separator(uint32_t code)
{
    return code == 0x2028 || code == 0x2029;
}

void text_append_clean(struct text_buffer *out, const char *in, size_t size)
{
    size_t first = out->size, begin = first;

    for (size_t at = 0, length; at < size; at += length) {
        uint32_t code;

        length = text_decode(in + at, size - at, &code);
        if (code == TEXT_BAD)
            text_append(out, replacement, 3);
        else if (is_control(code) || is_separator(code))
            text_append_byte(out, ' ');
        else
            text_append(out, in + at, length);
    }
    while (out->size > first && out->data[out->size - 1] == ' ')
        out->size--;
    while (begin < out->size && out->data[begin] == ' ')
        begin++;
    out->size -= begin - first;
    if (out->size == first) {
        text_append(out, "[unnamed]", 9);
        return;
    }
    memmove(out->data + first, out->data + begin, out->size - first);
    out->data[out->size] = '\0';
}

size_t text_clean(const char *in, size_t size, struct text_buffer *out)
{
    out->size = 0;
    text_append_clean(out, in, size);
    return out->size;
}

static void append_escaped(struct text_buffer *out, const char *in, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text_printf(out, "\\x%02x", (unsigned char)in[i]);
}

void text_append_display(struct text_buffer *out, const char *in, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        uint32_t code;

        length = text_decode(in + at, size - at, &code);
        if (code == TEXT_BAD || is_control(code) || is_separator(code))
            append_escaped(out, in + at, length);
        else
            text_append(out, in + at, length);
    }
}

size_t text_display(const char *in, size_t size, struct text_buffer *out)
{
    start(out);
    text_append_display(out, in, size);
    return out->size;
}

size_t text_quote(const char *in, size_t size, struct text_buffer *out)
{
    bool plain = size > 0;

    start(out);
    text_append_byte(out, '"');
    for (size_t at = 0, length; at < size; at += length) {
        uint32_t code;

        length = text_decode(in + at, size - at, &code);
        if (code == TEXT_BAD || is_control(code) || is_separator(code)) {
            append_escaped(out, in + at, length);
            plain = false;
        } else if (code == '"' || code == '\\') {
            text_append_byte(out, '\\');
            text_append_byte(out, (char)code);
            plain = false;
        } else {
            text_append(out, in + at, length);
            if (code == ' ')
                plain = false;
        }
    }
    if (plain) {
        out->size--;
        memmove(out->data, out->data + 1, out->size);
        out->data[out->size] = '\0';
    } else {
        text_append_byte(out, '"');
    }
    return out->size;
}
