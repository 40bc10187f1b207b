/* SPDX-License-Identifier: MIT */
/* SHA-256, by nettle. */
#include "hash.h"

#include "text.h"

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
    uint8_t digest[SHA256_DIGEST_SIZE];

    sha256_digest(&h->context, sizeof digest, digest);
    text_write_hex(hex, digest, sizeof digest);
}

void pack_hash_of(const void *data, size_t size_bytes, char hex[PACK_HASH_SIZE])
{
    struct pack_hash h;

    pack_hash_begin(&h);
    pack_hash_add(&h, data, size_bytes);
    pack_hash_end(&h, hex);
}
