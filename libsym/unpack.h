/* SPDX-License-Identifier: MIT */
/* Unpacking whole debug sections: SHF_COMPRESSED with zlib or zstd, and the older `.zdebug_NAME`. */
#ifndef SYMINT_UNPACK_H
#define SYMINT_UNPACK_H

#include "elf.h"

enum symint_packing { PACKING_ZLIB, PACKING_ZSTD };

/* What the head of a packed section claims. */
struct symint_packed {
    enum symint_packing packing;
    uint64_t size;   /* unpacked */
    uint64_t offset; /* of the packed bytes in the file, behind the head */
    uint64_t packed_size;
};

struct section;

/* Reads the head of a section that is SHF_COMPRESSED, or else `.zdebug_NAME`. NULL, or why it cannot be unpacked
 * (static): the head is damaged, the packing unknown or not compiled in, or so few bytes do not become so many. `out`
 * has the claimed size, if it could be read, else 0. The caller has checked that the section is inside the file. */
const char *symint_packed_head(const struct symint_elf *e, const struct section *s,
                               struct symint_packed *out);

/* What symint_unpack and symint_relocate return, the pointer, when there is no memory. */
extern const char symint_unpack_no_memory[];

/* What symint_unpack returns, the pointer, when the file cannot be read; errno is that of the read. */
extern const char symint_unpack_unreadable[];

/* Unpacks to out, which has room for the claimed size. NULL, or why not (static). Memory of `out` is touched as far as
 * bytes are made only. */
const char *symint_unpack(const struct symint_input *in, const struct symint_packed *packed,
                          uint8_t *out);

#endif
