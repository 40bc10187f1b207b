/* SPDX-License-Identifier: MIT */
/*
 * A store as a tar file: ustar headers, with a pax header in front where a name or size does not fit, packed by gzip
 * unless the name says otherwise. Owner, modes and times are not those of anybody, so the same files make the same
 * bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "cli.h"
#include "output.h"
#include "store_private.h"

#define BLOCK 512
#define PIECE ((size_t)1 << 16)
/* What fits in the eleven octal digits of a header. */
#define USTAR_SIZE_MAX UINT64_C(077777777777)

struct store_tar {
    struct tool_output out;
    bool open;   /* out is */
    bool packed; /* by zlib */
    z_stream z;
    uint8_t piece[PIECE];
};

/* The fields of a header that are not zero. */
struct ustar {
    char name[100];
    char mode[8], uid[8], gid[8];
    char size[12], mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[6], version[2];
    char user[32], group[32];
    char major[8], minor[8];
    char prefix[155];
    char unused[12];
};

/* ---- bytes ---- */

static int deflate_bytes(struct store_tar *t, const void *data, size_t size_bytes, int flush)
{
    t->z.next_in = (z_const Bytef *)(uintptr_t)data;
    t->z.avail_in = (uInt)size_bytes;
    do {
        t->z.next_out = t->piece;
        t->z.avail_out = PIECE;
        if (deflate(&t->z, flush) == Z_STREAM_ERROR) {
            cli_error("%s: packing failed", t->out.name);
            return -1;
        }
        output_write(&t->out, t->piece, PIECE - t->z.avail_out);
    } while (t->z.avail_out == 0);
    return 0;
}

/* Failures of the output are sticky and told by store_tar_finish. */
static int write_bytes(struct store_tar *t, const void *data, size_t size_bytes)
{
    const char *at = data;

    if (!t->packed) {
        output_write(&t->out, data, size_bytes);
        return 0;
    }
    while (size_bytes > 0) {
        size_t part = size_bytes < (1u << 30) ? size_bytes : (1u << 30);

        if (deflate_bytes(t, at, part, Z_NO_FLUSH) < 0)
            return -1;
        at += part;
        size_bytes -= part;
    }
    return 0;
}

static int fill_block(struct store_tar *t, uint64_t size_bytes)
{
    static const char zeros[BLOCK];

    return write_bytes(t, zeros, (BLOCK - size_bytes % BLOCK) % BLOCK);
}

/* ---- headers ---- */

static void octal(char *field, size_t size, uint64_t number)
{
    field[--size] = '\0';
    while (size > 0) {
        field[--size] = (char)('0' + (number & 7));
        number >>= 3;
    }
}

/* Puts a name into its field, or at a slash into two. False: it does not fit. */
static bool split_name(struct ustar *h, const char *name)
{
    size_t size = strlen(name);

    if (size <= sizeof h->name) {
        memcpy(h->name, name, size);
        return true;
    }
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t prefix = (size_t)(slash - name), rest = size - prefix - 1;

        if (prefix > sizeof h->prefix)
            break;
        if (prefix == 0 || rest == 0 || rest > sizeof h->name)
            continue;
        memcpy(h->prefix, name, prefix);
        memcpy(h->name, slash + 1, rest);
        return true;
    }
    memcpy(h->name, name, sizeof h->name); /* for who does not know pax headers */
    return false;
}

static int write_header(struct store_tar *t, struct ustar *h, char type, uint64_t size_bytes,
                        uint64_t time_seconds)
{
    const uint8_t *bytes = (const uint8_t *)h;
    unsigned sum = 0;

    octal(h->mode, sizeof h->mode, 0644);
    octal(h->uid, sizeof h->uid, 0);
    octal(h->gid, sizeof h->gid, 0);
    octal(h->size, sizeof h->size, size_bytes <= USTAR_SIZE_MAX ? size_bytes : 0);
    octal(h->mtime, sizeof h->mtime, time_seconds <= USTAR_SIZE_MAX ? time_seconds : 0);
    h->type = type;
    memcpy(h->magic, "ustar", 6);
    memcpy(h->version, "00", 2);
    octal(h->major, sizeof h->major, 0);
    octal(h->minor, sizeof h->minor, 0);
    memset(h->checksum, ' ', sizeof h->checksum);
    for (size_t i = 0; i < sizeof *h; i++)
        sum += bytes[i];
    octal(h->checksum, 7, sum);
    return write_bytes(t, h, sizeof *h);
}

/* A record of a pax header, "LENGTH KEY=VALUE\n", whose length counts its own digits. */
static void pax_record(struct text_buffer *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, size = rest, before;

    do {
        before = size;
        size = rest + (size_t)snprintf(NULL, 0, "%zu", size);
    } while (size != before);
    text_printf(out, "%zu %s=%s\n", size, key, value);
}

static int write_pax(struct store_tar *t, const struct text_buffer *records, uint64_t time_seconds)
{
    struct ustar h = {.name = "pax"};

    if (write_header(t, &h, 'x', records->size, time_seconds) < 0 ||
        write_bytes(t, records->data, records->size) < 0)
        return -1;
    return fill_block(t, records->size);
}

static int write_headers(struct store_tar *t, const char *name, uint64_t size_bytes,
                         uint64_t time_seconds)
{
    struct ustar h = {0};
    struct text_buffer records = {0};
    char number[24];
    int rc = 0;

    if (!split_name(&h, name))
        pax_record(&records, "path", name);
    if (size_bytes > USTAR_SIZE_MAX) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)size_bytes);
        pax_record(&records, "size", number);
    }
    if (records.size > 0)
        rc = write_pax(t, &records, time_seconds);
    text_free(&records);
    return rc < 0 ? -1 : write_header(t, &h, '0', size_bytes, time_seconds);
}

/* ---- API ---- */

struct store_tar *store_tar_open(const char *output)
{
    struct store_tar *t = cli_zeroed(1, sizeof *t);
    size_t size = strlen(output);

    t->packed = size < 4 || strcmp(output + size - 4, ".tar") != 0;
    if (output_open(&t->out, output, true) == 0) {
        t->open = true;
        /* 16 more: with a gzip header, whose time is 0. */
        if (!t->packed ||
            deflateInit2(&t->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK)
            return t;
        t->packed = false;
        cli_error("out of memory");
    }
    store_tar_free(t);
    return NULL;
}

void store_tar_free(struct store_tar *t)
{
    if (!t)
        return;
    if (t->packed)
        deflateEnd(&t->z);
    if (t->open)
        output_abort(&t->out);
    free(t);
}

struct taking {
    struct store_tar *tar;
    struct pack_hash hash;
};

static int take(void *user, const void *data, size_t size_bytes)
{
    struct taking *g = user;

    pack_hash_add(&g->hash, data, size_bytes);
    return write_bytes(g->tar, data, size_bytes);
}

int store_tar_write(struct store_tar *t, const char *name, uint64_t time_seconds,
                    const struct store_source *source, char sha256[PACK_HASH_SIZE])
{
    struct taking g = {.tar = t};
    int rc;

    pack_hash_begin(&g.hash);
    rc = write_headers(t, name, source->size_bytes, time_seconds);
    if (rc == 0)
        rc = store_read(source, take, &g);
    if (rc == 0)
        rc = fill_block(t, source->size_bytes);
    pack_hash_end(&g.hash, sha256);
    return rc;
}

int store_tar_finish(struct store_tar *t)
{
    static const char end[2 * BLOCK];

    if (write_bytes(t, end, sizeof end) < 0 ||
        (t->packed && deflate_bytes(t, NULL, 0, Z_FINISH) < 0))
        return -1;
    t->open = false;
    return output_commit(&t->out);
}
