/* SPDX-License-Identifier: MIT */
/*
 * A store as a tar file: ustar headers, with a pax header in front where a name or size does not fit, packed by gzip
 * unless the name says otherwise. Owner, modes and times are not those of anybody, so the same files make the same
 * bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "gzip_out.h"
#include "output.h"
#include "store_private.h"

#define BLOCK 512
/* What fits in the eleven octal digits of a header. */
#define USTAR_SIZE_MAX UINT64_C(077777777777)

struct store_tar {
    struct tool_output out;
    bool open;             /* out is */
    struct gzip_out *gzip; /* NULL: a bare tar file */
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

/* Failures of the output are sticky and told by store_tar_finish. */
static void write_bytes(struct store_tar *t, const void *data, size_t size_bytes)
{
    if (t->gzip)
        gzip_out_write(t->gzip, data, size_bytes);
    else
        output_write(&t->out, data, size_bytes);
}

static void fill_block(struct store_tar *t, uint64_t size_bytes)
{
    static const char zeros[BLOCK];

    write_bytes(t, zeros, (BLOCK - size_bytes % BLOCK) % BLOCK);
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

static void write_header(struct store_tar *t, struct ustar *h, char type, uint64_t size_bytes,
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
    write_bytes(t, h, sizeof *h);
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

static void write_pax(struct store_tar *t, const struct text_buffer *records, uint64_t time_seconds)
{
    struct ustar h = {.name = "pax"};

    write_header(t, &h, 'x', records->size, time_seconds);
    write_bytes(t, records->data, records->size);
    fill_block(t, records->size);
}

static void write_headers(struct store_tar *t, const char *name, uint64_t size_bytes,
                          uint64_t time_seconds)
{
    struct ustar h = {0};
    struct text_buffer records = {0};
    char number[24];

    if (!split_name(&h, name))
        pax_record(&records, "path", name);
    if (size_bytes > USTAR_SIZE_MAX) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)size_bytes);
        pax_record(&records, "size", number);
    }
    if (records.size > 0)
        write_pax(t, &records, time_seconds);
    text_free(&records);
    write_header(t, &h, '0', size_bytes, time_seconds);
}

/* ---- API ---- */

struct store_tar *store_tar_open(const char *output)
{
    struct store_tar *t = cli_zeroed(1, sizeof *t);
    size_t size = strlen(output);
    bool packed = size < 4 || strcmp(output + size - 4, ".tar") != 0;

    t->open = output_open(&t->out, output, true) == 0;
    if (t->open && packed)
        t->gzip = gzip_out_new(&t->out, 6);
    if (t->open && (t->gzip || !packed))
        return t;
    store_tar_free(t);
    return NULL;
}

void store_tar_free(struct store_tar *t)
{
    if (!t)
        return;
    gzip_out_free(t->gzip);
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
    write_bytes(g->tar, data, size_bytes);
    return 0;
}

int store_tar_write(struct store_tar *t, const char *name, uint64_t time_seconds,
                    const struct store_source *source, char sha256[PACK_HASH_SIZE])
{
    struct taking g = {.tar = t};
    int rc;

    pack_hash_begin(&g.hash);
    write_headers(t, name, source->size_bytes, time_seconds);
    rc = store_read(source, take, &g);
    if (rc == 0)
        fill_block(t, source->size_bytes);
    pack_hash_end(&g.hash, sha256);
    return rc;
}

int store_tar_finish(struct store_tar *t)
{
    static const char end[2 * BLOCK];

    write_bytes(t, end, sizeof end);
    if (t->gzip && gzip_out_finish(t->gzip) < 0)
        return -1;
    t->open = false;
    return output_commit(&t->out);
}
