/* SPDX-License-Identifier: MIT */
/* Tar files built byte by byte, so that they can be wrong. */
#ifndef TAR_IMAGE_H
#define TAR_IMAGE_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct tar_image {
    uint8_t bytes[128 * 1024];
    size_t size;
};

/* Makes the checksum of the header at `at` right. */
static inline void tar_image_sum(struct tar_image *t, size_t at)
{
    unsigned sum = 0;
    char digits[24];
    memset(t->bytes + at + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += t->bytes[at + i];
    snprintf(digits, sizeof(digits), "%06o", sum);
    memcpy(t->bytes + at + 148, digits, 7);
}

/* A header with a size that need not be true. Where it begins. */
static inline size_t tar_image_header(struct tar_image *t, const char *name, char type,
                                      const char *link, unsigned long long size)
{
    size_t at = t->size;
    uint8_t *h = t->bytes + at;
    char digits[24];
    assert(at + 512 <= sizeof(t->bytes) && strlen(name) <= 100 && strlen(link) <= 100);
    memset(h, 0, 512);
    memcpy(h, name, strlen(name));
    memcpy(h + 100, "0000644", 7);
    snprintf(digits, sizeof(digits), "%011llo", size);
    memcpy(h + 124, digits, 11);
    memcpy(h + 136, "07346545000", 11); /* 1000000000 s */
    h[156] = (uint8_t)type;
    memcpy(h + 157, link, strlen(link));
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);
    t->size += 512;
    tar_image_sum(t, at);
    return at;
}

static inline size_t tar_image_member(struct tar_image *t, const char *name, char type,
                                      const char *link, const void *data, size_t size)
{
    size_t at = tar_image_header(t, name, type, link, size);
    size_t padded = (size + 511) / 512 * 512;
    assert(t->size + padded <= sizeof(t->bytes));
    memset(t->bytes + t->size, 0, padded);
    if (size > 0)
        memcpy(t->bytes + t->size, data, size);
    t->size += padded;
    return at;
}

static inline size_t tar_image_file(struct tar_image *t, const char *name, const void *data,
                                    size_t size)
{
    return tar_image_member(t, name, '0', "", data, size);
}

static inline void tar_image_end(struct tar_image *t)
{
    assert(t->size + 1024 <= sizeof(t->bytes));
    memset(t->bytes + t->size, 0, 1024);
    t->size += 1024;
}

static inline void tar_image_write(const struct tar_image *t, const char *path)
{
    remove(path);
    FILE *f = fopen(path, "w");
    size_t n = f != NULL ? fwrite(t->bytes, 1, t->size, f) : 0;
    if (n != t->size || fclose(f) != 0)
        abort();
}

static inline void tar_image_write_gzip(const struct tar_image *t, const char *path)
{
    remove(path);
    gzFile f = gzopen(path, "wb");
    int n = f != NULL ? gzwrite(f, t->bytes, (unsigned)t->size) : -1;
    if (n != (int)t->size || gzclose(f) != Z_OK)
        abort();
}

#endif
