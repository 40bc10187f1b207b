/* SPDX-License-Identifier: MIT */
/* Numbers of files: little-endian on both machines, at any alignment. */
#ifndef RECORD_LITTLE_ENDIAN_H
#define RECORD_LITTLE_ENDIAN_H

#include <stdint.h>

static inline uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)get_u16(p) | (uint32_t)get_u16(p + 2) << 16;
}

static inline uint64_t get_u64(const uint8_t *p)
{
    return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

#endif
