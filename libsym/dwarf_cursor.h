/* SPDX-License-Identifier: MIT */
/* Reading DWARF's numbers out of a piece of memory, within its bounds. A short read gives 0 and marks the cursor, so
 * that callers check once a unit, table or entry. */
#ifndef SYMINT_DWARF_CURSOR_H
#define SYMINT_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct symint_cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool swap; /* not the machine's byte order */
    bool failed;
};

static inline size_t cursor_left(const struct symint_cursor *c)
{
    return (size_t)(c->end - c->at);
}

static inline void cursor_fail(struct symint_cursor *c)
{
    c->failed = true;
    c->at = c->end;
}

static inline void cursor_skip(struct symint_cursor *c, uint64_t size)
{
    if (size > cursor_left(c))
        cursor_fail(c);
    else
        c->at += size;
}

static inline uint8_t cursor_u8(struct symint_cursor *c)
{
    if (c->at == c->end) {
        c->failed = true;
        return 0;
    }
    return *c->at++;
}

static inline uint16_t cursor_u16(struct symint_cursor *c)
{
    uint16_t v = 0;
    if (cursor_left(c) < sizeof(v)) {
        cursor_fail(c);
        return 0;
    }
    memcpy(&v, c->at, sizeof(v));
    c->at += sizeof(v);
    return c->swap ? __builtin_bswap16(v) : v;
}

static inline uint32_t cursor_u32(struct symint_cursor *c)
{
    uint32_t v = 0;
    if (cursor_left(c) < sizeof(v)) {
        cursor_fail(c);
        return 0;
    }
    memcpy(&v, c->at, sizeof(v));
    c->at += sizeof(v);
    return c->swap ? __builtin_bswap32(v) : v;
}

static inline uint64_t cursor_u64(struct symint_cursor *c)
{
    uint64_t v = 0;
    if (cursor_left(c) < sizeof(v)) {
        cursor_fail(c);
        return 0;
    }
    memcpy(&v, c->at, sizeof(v));
    c->at += sizeof(v);
    return c->swap ? __builtin_bswap64(v) : v;
}

/* Three bytes (DW_FORM_strx3, DW_FORM_addrx3). */
static inline uint32_t cursor_u24(struct symint_cursor *c)
{
    uint32_t a = cursor_u8(c), b = cursor_u8(c), d = cursor_u8(c);
    bool big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != c->swap;
    return big ? a << 16 | b << 8 | d : d << 16 | b << 8 | a;
}

/* A number of 1, 2, 4 or 8 bytes; any other size fails. */
static inline uint64_t cursor_sized(struct symint_cursor *c, unsigned size)
{
    switch (size) {
    case 1:
        return cursor_u8(c);
    case 2:
        return cursor_u16(c);
    case 4:
        return cursor_u32(c);
    case 8:
        return cursor_u64(c);
    default:
        cursor_fail(c);
        return 0;
    }
}

/* An offset into a section: 8 bytes in 64-bit DWARF. */
static inline uint64_t cursor_offset(struct symint_cursor *c, bool wide)
{
    return wide ? cursor_u64(c) : cursor_u32(c);
}

/* Bits beyond the 64th are dropped. */
static inline uint64_t cursor_uleb(struct symint_cursor *c)
{
    if (c->at < c->end && *c->at < 0x80)
        return *c->at++;
    if (cursor_left(c) >= 2 && c->at[1] < 0x80) {
        c->at += 2;
        return (uint64_t)(c->at[-2] & 0x7f) | (uint64_t)c->at[-1] << 7;
    }
    uint64_t v = 0;
    unsigned shift = 0;
    while (c->at < c->end) {
        uint8_t byte = *c->at++;
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        shift += shift < 64 ? 7 : 0;
        if (byte < 0x80)
            return v;
    }
    c->failed = true;
    return 0;
}

static inline int64_t cursor_sleb(struct symint_cursor *c)
{
    uint64_t v = 0;
    unsigned shift = 0;
    while (c->at < c->end) {
        uint8_t byte = *c->at++;
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        shift += shift < 64 ? 7 : 0;
        if (byte < 0x80) {
            if (shift < 64 && (byte & 0x40) != 0)
                v |= ~(uint64_t)0 << shift;
            return (int64_t)v;
        }
    }
    c->failed = true;
    return 0;
}

static inline void cursor_skip_leb(struct symint_cursor *c)
{
    while (c->at < c->end)
        if (*c->at++ < 0x80)
            return;
    c->failed = true;
}

/* A text with its NUL, size without it. NULL: it has no end. */
static inline const char *cursor_text(struct symint_cursor *c, size_t *size)
{
    const uint8_t *nul = memchr(c->at, 0, cursor_left(c));
    if (nul == NULL) {
        cursor_fail(c);
        return NULL;
    }
    const char *text = (const char *)c->at;
    *size = (size_t)(nul - c->at);
    c->at = nul + 1;
    return text;
}

/* The length that begins a unit or table: 32 bits, or an escape and 64 bits (*wide). Values that are reserved fail. */
static inline uint64_t cursor_initial_length(struct symint_cursor *c, bool *wide)
{
    uint32_t length = cursor_u32(c);
    *wide = length == 0xffffffffu;
    if (*wide)
        return cursor_u64(c);
    if (length >= 0xfffffff0u)
        cursor_fail(c);
    return length;
}

#endif
