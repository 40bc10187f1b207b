/* SPDX-License-Identifier: MIT */
/* SHA-256, by nettle. */
#include "hash.h"

void pack_hash_begin(struct pack_hash *h)
{
    sha256_init(&h->context);
}

void pack_hash_add(struct pack_hash *h, const void *data, size_t size_bytes)
{
    sha256_update(&h->context, size_bytes, data);
}

void pack_hash_end(struct pack_hash *h, char hex[PACK_HASH_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_SIZE];

    sha256_digest(&h->context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * sizeof digest] = '\0';
}
