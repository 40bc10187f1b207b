/* SPDX-License-Identifier: MIT */
/*
 * A bounded reader of unwind tables. A read past the end yields 0 and marks the cursor, so that callers
 * check once.
 */
#ifndef RECORD_CFI_CURSOR_H
#define RECORD_CFI_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "little_endian.h"

struct cfi_cursor {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t address; /* in the file's addresses, of end */
    bool bad;
};

/* How a pointer is written: a format, what is added to it, and a flag. */
enum {
    POINTER_FORMAT = 0x0f,
    POINTER_ABSPTR = 0x00,
    POINTER_ULEB = 0x01,
    POINTER_UDATA2 = 0x02,
    POINTER_UDATA4 = 0x03,
    POINTER_UDATA8 = 0x04,
    POINTER_SIGNED = 0x08, /* of the address size */
    POINTER_SLEB = 0x09,
    POINTER_SDATA2 = 0x0a,
    POINTER_SDATA4 = 0x0b,
    POINTER_SDATA8 = 0x0c,
    POINTER_BASE = 0x70,
    POINTER_PCREL = 0x10,
    POINTER_TEXTREL = 0x20,
    POINTER_DATAREL = 0x30,
    POINTER_ALIGNED = 0x50, /* no base: an address at the next multiple of its size */
    POINTER_INDIRECT = 0x80,
    POINTER_OMIT = 0xff
};

static inline size_t cursor_left(const struct cfi_cursor *c)
{
    return (size_t)(c->end - c->at);
}

/* size bytes; NULL: there are fewer. */
static inline const uint8_t *cursor_take(struct cfi_cursor *c, uint64_t size)
{
    if (size > cursor_left(c)) {
        c->at = c->end;
        c->bad = true;
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += size;
    return p;
}

static inline uint8_t cursor_u8(struct cfi_cursor *c)
{
    if (c->at == c->end) {
        c->bad = true;
        return 0;
    }
    return *c->at++;
}

static inline uint16_t cursor_u16(struct cfi_cursor *c)
{
    const uint8_t *p = cursor_take(c, 2);
    return p == NULL ? 0 : get_u16(p);
}

static inline uint32_t cursor_u32(struct cfi_cursor *c)
{
    const uint8_t *p = cursor_take(c, 4);
    return p == NULL ? 0 : get_u32(p);
}

static inline uint64_t cursor_u64(struct cfi_cursor *c)
{
    const uint8_t *p = cursor_take(c, 8);
    return p == NULL ? 0 : get_u64(p);
}

/* More than ten bytes make no 64-bit number. */
static inline uint64_t cursor_uleb(struct cfi_cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(c);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
    c->bad = true;
    return 0;
}

static inline int64_t cursor_sleb(struct cfi_cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(c);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) != 0)
            continue;
        if ((byte & 0x40) != 0 && shift + 7 < 64)
            value |= UINT64_MAX << (shift + 7);
        return (int64_t)value;
    }
    c->bad = true;
    return 0;
}

/* A number in one of the formats, without a base. */
static inline uint64_t cursor_formatted(struct cfi_cursor *c, uint8_t encoding)
{
    switch (encoding & POINTER_FORMAT) {
    case POINTER_ABSPTR:
    case POINTER_SIGNED:
    case POINTER_UDATA8:
    case POINTER_SDATA8:
        return cursor_u64(c);
    case POINTER_UDATA4:
        return cursor_u32(c);
    case POINTER_SDATA4:
        return (uint64_t)(int32_t)cursor_u32(c);
    case POINTER_UDATA2:
        return cursor_u16(c);
    case POINTER_SDATA2:
        return (uint64_t)(int16_t)cursor_u16(c);
    case POINTER_ULEB:
        return cursor_uleb(c);
    case POINTER_SLEB:
        return (uint64_t)cursor_sleb(c);
    default:
        c->bad = true;
        return 0;
    }
}

/* Bytes up to the next address that is a multiple of 8. */
static inline void cursor_align(struct cfi_cursor *c)
{
    cursor_take(c, -(c->address - cursor_left(c)) & 7);
}

/* An encoded pointer. data_base: what `datarel` means. 0 stays 0: linkers write it over what pointed to
 * something they removed. Marks the cursor when the pointer lies in the process's memory or nowhere.
 * `textrel` has base 0, as with every unwinder of these machines. */
static inline uint64_t cursor_pointer(struct cfi_cursor *c, uint8_t encoding, uint64_t data_base)
{
    uint64_t base = 0;
    if (encoding == POINTER_ALIGNED) {
        cursor_align(c);
        return cursor_u64(c);
    }
    switch (encoding & (POINTER_BASE | POINTER_INDIRECT)) {
    case 0:
    case POINTER_TEXTREL:
        break;
    case POINTER_PCREL:
        base = c->address - cursor_left(c);
        break;
    case POINTER_DATAREL:
        base = data_base;
        break;
    default:
        c->bad = true;
        return 0;
    }
    uint64_t value = cursor_formatted(c, encoding);
    return value == 0 ? 0 : value + base;
}

#endif
