/* SPDX-License-Identifier: MIT */
/* The hash that names packed files and vouches for them: SHA-256 in lower-case hex. */
#ifndef SPOOLPACK_HASH_H
#define SPOOLPACK_HASH_H

#include <stddef.h>

#include <nettle/sha2.h>

#define PACK_HASH_SIZE 65 /* hex digits and NUL */

struct pack_hash {
    struct sha256_ctx context;
};

void pack_hash_begin(struct pack_hash *h);
void pack_hash_add(struct pack_hash *h, const void *data, size_t size_bytes);
void pack_hash_end(struct pack_hash *h, char hex[PACK_HASH_SIZE]);

/* All at once. */
void pack_hash_of(const void *data, size_t size_bytes, char hex[PACK_HASH_SIZE]);

#endif
