/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a file of packed symbols. Numbers are little-endian and unsigned; a reference is an index or an offset
 * plus one, 0 for none. Behind the header follow, without gaps, the tables in the order of their counts there, then
 * the texts.
 */
#ifndef SYMINT_PACKED_FORMAT_H
#define SYMINT_PACKED_FORMAT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define PACKED_MAGIC "SPOOLSYM"
#define PACKED_VERSION 1u

enum {
    PACKED_AT_MAGIC = 0,          /* 8 bytes */
    PACKED_AT_VERSION = 8,        /* u32 */
    PACKED_AT_CRC = 12,           /* u32: CRC-32 of all that follows */
    PACKED_AT_SIZE = 16,          /* u64: of the file */
    PACKED_AT_LEVEL = 24,         /* u32: enum sym_level */
    PACKED_AT_FLAGS = 28,         /* u32: PACKED_FILE_* */
    PACKED_AT_MACHINE = 32,       /* u16: e_machine */
    PACKED_AT_BUILD_ID_SIZE = 34, /* u16; 0: none */
    PACKED_AT_BUILD_ID = 40,      /* 64 bytes */
    PACKED_AT_COUNTS = 104,       /* u32 for each of PACKED_TABLES */
    PACKED_AT_TEXT_BYTES = 128,   /* u64 */
    PACKED_HEADER_BYTES = 136
};

enum {
    PACKED_FILE_KERNEL = 1 << 0,   /* addresses are absolute: there are no segments */
    PACKED_FILE_DETACHED = 1 << 1, /* segments are those of a debug file */
    PACKED_FILE_RELOCATABLE = 1 << 2
};

enum packed_table {
    PACKED_SEGMENTS, /* u64 file offset, bytes in the file, bytes in memory, address, alignment, 1 if executable */
    PACKED_SYMBOLS, /* u64 start, u32 name, u8 origin, u8 PACKED_SYMBOL_*, u16 0 */
    PACKED_EXTENTS, /* u64 start, u64 end, u32 symbol (an index), u32 0; ascending, disjoint */
    PACKED_LEVELS, /* u32 outer level (before it in the table), name, file, line, column, first line of the
                         function, PACKED_LEVEL_*, 0 */
    PACKED_PIECES, /* u64 start, u64 end: the piece of a function that an address is in */
    PACKED_ADDRESSES, /* u64 address, u32 symbol, innermost level, piece, PACKED_ADDRESS_*; ascending, each once;
                         with neither symbol nor level: there is nothing to be known */
    PACKED_TABLES
};

static const uint8_t packed_row_bytes[PACKED_TABLES] = {48, 16, 24, 32, 16, 24};

enum {
    PACKED_SYMBOL_UNVERIFIED = 1 << 0,
    PACKED_SYMBOL_NAME_STAYS = 1 << 1, /* whatever debug information calls the function */
    PACKED_LEVEL_LINKAGE = 1 << 0,     /* the name is a linkage name, to be demangled */
    PACKED_ADDRESS_FUNCTION = 1 << 0,  /* the last level is a function, not a line alone */
    PACKED_ADDRESS_STARTS =
        1 << 1, /* the symbol begins where that function or a piece of it does */
    PACKED_ADDRESS_UNVERIFIED = 1 << 2,
    PACKED_ADDRESS_FINAL = 1 << 3 /* the file lacked nothing: there is no more to be known */
};

#define PACKED_MAX_LEVELS 512u /* of one address */

static inline uint32_t packed_get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return le32toh(v);
}

static inline uint64_t packed_get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

static inline uint8_t *packed_put32(uint8_t *p, uint64_t value)
{
    uint32_t v = htole32((uint32_t)value);
    memcpy(p, &v, sizeof(v));
    return p + sizeof(v);
}

static inline uint8_t *packed_put64(uint8_t *p, uint64_t value)
{
    uint64_t v = htole64(value);
    memcpy(p, &v, sizeof(v));
    return p + sizeof(v);
}

#endif
