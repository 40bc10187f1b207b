/* SPDX-License-Identifier: MIT */
/*
 * The bounded byte cursor: the only place where raw bytes of a spool are read or written. A short read
 * yields 0 and marks the cursor, so that a record's decoder checks once per field group, not per byte.
 */
#ifndef SPOOLINT_VARINT_H
#define SPOOLINT_VARINT_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

enum cursor_state {
    CURSOR_OK = 0,
    CURSOR_SHORT,   /* a field needs bytes beyond the end */
    CURSOR_OVERLONG /* a varint of more than 64 bits or ten bytes */
};

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    enum cursor_state state; /* the first failure; later reads yield 0 */
};

/* Unsigned LEB128 as the format restricts it: at most ten bytes, the tenth 00 or 01, padding accepted. */
static inline uint64_t cursor_uv(struct cursor *c)
{
    const uint8_t *p = c->at;
    uint64_t value = 0;

    if (c->state != CURSOR_OK)
        return 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        if (p == c->end) {
            c->state = CURSOR_SHORT;
            return 0;
        }
        value |= (uint64_t)(*p & 0x7f) << shift;
        if (*p++ < 0x80) {
            c->at = p;
            return value;
        }
    }
    if (p == c->end) {
        c->state = CURSOR_SHORT;
        return 0;
    }
    if (*p > 1) {
        c->state = CURSOR_OVERLONG;
        return 0;
    }
    value |= (uint64_t)*p << 63;
    c->at = p + 1;
    return value;
}

/* Zigzag. Every unsigned value is a valid signed one. */
static inline int64_t zigzag_decode(uint64_t u)
{
    return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}

static inline int64_t cursor_sv(struct cursor *c)
{
    return zigzag_decode(cursor_uv(c));
}

static inline uint8_t cursor_byte(struct cursor *c)
{
    if (c->state != CURSOR_OK)
        return 0;
    if (c->at == c->end) {
        c->state = CURSOR_SHORT;
        return 0;
    }
    return *c->at++;
}

/* Borrows `size` bytes; NULL when they are not there. */
static inline const uint8_t *cursor_bytes(struct cursor *c, uint64_t size)
{
    const uint8_t *p = c->at;

    if (c->state != CURSOR_OK)
        return NULL;
    if (size > (uint64_t)(c->end - c->at)) {
        c->state = CURSOR_SHORT;
        return NULL;
    }
    c->at += size;
    return p;
}

/* Reads a varint where FORMAT_VARINT_MAX_SIZE bytes are known to be there; NULL when it is overlong. Kept
 * apart from cursor_uv because the loop over samples lives on it. */
static inline const uint8_t *varint_read_unbounded(const uint8_t *p, uint64_t *value)
{
    uint64_t v = *p++;

    if (v < 0x80) {
        *value = v;
        return p;
    }
    v = (v & 0x7f) | (uint64_t)*p << 7;
    if (*p++ < 0x80) {
        *value = v;
        return p;
    }
    v = (v & 0x3fff) | (uint64_t)*p << 14;
    if (*p++ < 0x80) {
        *value = v;
        return p;
    }
    v = (v & 0x1fffff) | (uint64_t)*p << 21;
    if (*p++ < 0x80) {
        *value = v;
        return p;
    }
    v &= 0xfffffff;
    for (unsigned shift = 28; shift < 63; shift += 7) {
        v |= (uint64_t)(*p & 0x7f) << shift;
        if (*p++ < 0x80) {
            *value = v;
            return p;
        }
    }
    if (*p > 1)
        return NULL;
    *value = v | (uint64_t)*p << 63;
    return p + 1;
}

/* Writes the shortest form; out has room for FORMAT_VARINT_MAX_SIZE bytes. Returns the end. */
static inline uint8_t *varint_write(uint8_t *out, uint64_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}

static inline uint64_t zigzag_encode(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value < 0 ? -1 : 0);
}

#endif
