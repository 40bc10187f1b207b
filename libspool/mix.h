/* SPDX-License-Identifier: MIT */
/* Where keys stand in the open hashes of this library. */
#ifndef SPOOLINT_MIX_H
#define SPOOLINT_MIX_H

#include <stdint.h>

/* Keys come from files and recorded programs: the seed, an address of ours, keeps them from being chosen so that they
 * collide. The second multiplication, after the fold, makes the upper half of the key count as much as the lower.
 * The result's upper bits are the best. */
static inline uint64_t spoolint_mix(uint64_t seed, uint64_t key)
{
    uint64_t h = (key ^ seed) * UINT64_C(0x9e3779b97f4a7c15);

    return (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

#endif
