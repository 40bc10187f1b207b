/* SPDX-License-Identifier: MIT */
/*
 * Spools for tests, byte by byte: written here without the library's encoders, so that a mistake of
 * theirs cannot hide one of the decoders. Records are not checked: most tests want wrong ones.
 */
#ifndef TEST_SPOOL_BYTES_H
#define TEST_SPOOL_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

/* A growing string of bytes; {0} is empty. */
struct bytes {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

static inline void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){0};
}

static inline void bytes_put(struct bytes *b, const void *data, size_t size)
{
    if (size == 0)
        return;
    if (b->capacity - b->size < size) {
        b->capacity = 2 * (b->size + size);
        b->data = realloc(b->data, b->capacity);
        if (b->data == NULL)
            abort();
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void bytes_byte(struct bytes *b, unsigned byte)
{
    uint8_t one = (uint8_t)byte;

    bytes_put(b, &one, 1);
}

static inline void bytes_uv(struct bytes *b, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        bytes_byte(b, 0x80 | (value & 0x7f));
    bytes_byte(b, (unsigned)value);
}

static inline void bytes_sv(struct bytes *b, int64_t value)
{
    bytes_uv(b, value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1);
}

/* Hex digits; blanks and line ends between bytes are skipped. */
static inline void bytes_hex(struct bytes *b, const char *hex)
{
    unsigned byte;
    int used;

    while (sscanf(hex, " %2x%n", &byte, &used) == 1) {
        bytes_byte(b, byte);
        hex += used;
    }
}

static inline void bytes_text(struct bytes *b, const char *text)
{
    bytes_uv(b, strlen(text));
    bytes_put(b, text, strlen(text));
}

/* ---- records ---- */

static inline void bytes_header(struct bytes *b, unsigned version, uint64_t start,
                                uint64_t interval)
{
    bytes_put(b, "SPULSE", 6);
    bytes_byte(b, '0' + version);
    bytes_byte(b, 0);
    bytes_uv(b, start);
    bytes_uv(b, interval);
    if (version >= 4)
        bytes_uv(b, 0); /* no origin */
}

/* All but the path. */
static inline void bytes_module_fields(struct bytes *b, unsigned version, uint64_t id, int64_t pid,
                                       uint64_t start, uint64_t end, uint64_t file_offset,
                                       bool kernel)
{
    bytes_uv(b, id);
    bytes_sv(b, pid);
    bytes_uv(b, start);
    bytes_uv(b, end);
    bytes_uv(b, file_offset);
    bytes_uv(b, 0);
    if (version >= 3)
        bytes_hex(b, "00 00 00"); /* device and generation */
    bytes_byte(b, kernel);
}

static inline void bytes_module(struct bytes *b, unsigned version, uint64_t id, int64_t pid,
                                uint64_t start, uint64_t end, uint64_t file_offset, bool kernel,
                                const char *path)
{
    bytes_byte(b, 1);
    bytes_module_fields(b, version, id, pid, start, end, file_offset, kernel);
    bytes_text(b, path);
}

static inline void bytes_note(struct bytes *b, unsigned version, uint64_t id, const char *path)
{
    bytes_module(b, version, id, 7, 0, 0, 0, false, path);
}

/* The kinds of frame codes. */
#define CODE_USER 1
#define CODE_KERNEL 3
#define CODE_MARKER 5
#define CODE_PINNED(module) ((uint64_t)(module)*2)

static inline void bytes_frame(struct bytes *b, uint64_t id, uint64_t code, uint64_t address)
{
    bytes_byte(b, 2);
    bytes_uv(b, id);
    bytes_uv(b, code);
    bytes_uv(b, address);
}

#define ROOT UINT32_MAX

static inline void bytes_stack(struct bytes *b, uint64_t id, uint64_t prefix, uint64_t frame)
{
    bytes_byte(b, 3);
    bytes_uv(b, id);
    bytes_uv(b, prefix);
    bytes_uv(b, frame);
}

static inline void bytes_thread(struct bytes *b, uint64_t id, int64_t pid, uint64_t tid)
{
    bytes_byte(b, 4);
    bytes_uv(b, id);
    bytes_sv(b, pid);
    bytes_uv(b, tid);
}

static inline void bytes_sample(struct bytes *b, int64_t delta, uint64_t thread, uint64_t stack)
{
    bytes_byte(b, 5);
    bytes_sv(b, delta);
    bytes_uv(b, thread);
    bytes_uv(b, stack);
}

static inline void bytes_python(struct bytes *b, uint64_t time, int64_t pid, unsigned on)
{
    bytes_byte(b, 6);
    bytes_uv(b, time);
    bytes_sv(b, pid);
    bytes_byte(b, on);
}

static inline void bytes_deactivate_process(struct bytes *b, int64_t pid)
{
    bytes_byte(b, 7);
    bytes_sv(b, pid);
}

static inline void bytes_deactivate_module(struct bytes *b, uint64_t module)
{
    bytes_byte(b, 8);
    bytes_uv(b, module);
}

/* Appends `data` as one gzip member. */
static inline void bytes_gzip(struct bytes *b, const void *data, size_t size)
{
    static const uint8_t nothing;
    z_stream z = {0};
    uint8_t out[4096];
    int rc;

    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    z.next_in = size > 0 ? (Bytef *)(uintptr_t)data : (Bytef *)(uintptr_t)&nothing;
    z.avail_in = (uInt)size;
    do {
        z.next_out = out;
        z.avail_out = sizeof out;
        rc = deflate(&z, Z_FINISH);
        bytes_put(b, out, sizeof out - z.avail_out);
    } while (rc == Z_OK);
    deflateEnd(&z);
}

/* A file's content; a missing file ends the test program. */
static inline void bytes_file(struct bytes *b, const char *path)
{
    uint8_t part[65536];
    FILE *f = fopen(path, "rb");
    size_t n;

    if (f == NULL) {
        perror(path);
        abort();
    }
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        bytes_put(b, part, n);
    fclose(f);
}

/* Repeatable random numbers (splitmix64). */
static inline uint64_t random_u64(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Of any magnitude, extremes and powers of two with their neighbours more often than chance has it.
 * */
static inline uint64_t random_magnitude(uint64_t *seed)
{
    uint64_t bits = random_u64(seed);
    uint64_t value = (uint64_t)1 << (bits & 63);

    switch (bits >> 60) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return value;
    case 3:
        return value - 1;
    case 4:
        return value + 1;
    default:
        return random_u64(seed) >> (bits >> 6 & 63);
    }
}

#endif
