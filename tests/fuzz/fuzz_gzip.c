/* SPDX-License-Identifier: MIT */
/*
 * Spools that are packed by what the input says: its first byte is how many steps there are, of two bytes each, and the
 * rest is the spool. Steps make members of parts of it, with any level and header, empty ones, zeros and other bytes
 * among them, and damage them. What is whole reads as the spool does; all of it is the same from memory, from a
 * descriptor that gives a few bytes at a time, and from a file that grows.
 */
#include <errno.h>

#define ZLIB_CONST
#include <zlib.h>

#include "follow_spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 24
#define PACKED_MAX ((size_t)1 << 20)

/* ---- reads of little ---- */

static struct {
    int fd; /* -1: reads are as they are */
    uint32_t state;
} little = {.fd = -1};

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);

ssize_t __wrap_read(int fd, void *data, size_t size)
{
    if (fd != little.fd)
        return __real_read(fd, data, size);
    little.state = little.state * 1103515245 + 12345;
    if (little.state >> 28 == 0) {
        errno = EINTR;
        return -1;
    }
    size_t most = 1 + (little.state >> 16) % 61;
    return __real_read(fd, data, size < most ? size : most);
}

/* ---- packing ---- */

struct packing {
    const uint8_t *at; /* what is not packed yet */
    const uint8_t *end;
    uint8_t *out;
    size_t size;
    size_t member; /* where the last one begins */
    bool whole;    /* the packed bytes are the spool, in members, and zeros behind them */
    bool padded;
};

static void put(struct packing *p, const void *data, size_t size)
{
    CHECK(p->size + size <= PACKED_MAX);
    if (size > 0)
        memcpy(p->out + p->size, data, size);
    p->size += size;
}

/* A member of the next bytes of the spool, at most so many. */
static void put_member(struct packing *p, size_t most, int level, bool has_header)
{
    static uint8_t extra[] = {'a', 'b', 2, 0, 1, 2};
    static uint8_t name[] = "a.spool", comment[] = "comment";
    gz_header header = {.extra = extra,
                        .extra_len = sizeof extra,
                        .name = name,
                        .comment = comment,
                        .hcrc = level % 2};
    size_t left = (size_t)(p->end - p->at);
    z_stream z = {.next_in = p->at};

    if (most > left)
        most = left;
    p->whole &= !p->padded;
    p->member = p->size;
    CHECK(deflateInit2(&z, level, Z_DEFLATED, 16 + 9, 1, Z_DEFAULT_STRATEGY) == Z_OK);
    if (has_header)
        CHECK(deflateSetHeader(&z, &header) == Z_OK);
    z.avail_in = (uInt)most;
    z.next_out = p->out + p->size;
    z.avail_out = (uInt)(PACKED_MAX - p->size);
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    p->size = PACKED_MAX - z.avail_out;
    deflateEnd(&z);
    p->at += most;
}

static void take_step(struct packing *p, uint8_t kind, uint8_t amount)
{
    static const uint8_t zeros[256];

    switch (kind % 12) {
    case 0:
    case 1:
    case 2:
        put_member(p, amount, kind / 12 % 10, false);
        break;
    case 3:
    case 4:
        put_member(p, amount * (size_t)16, kind / 12 % 10, true);
        break;
    case 5:
        put_member(p, 0, 6, false);
        break;
    case 6:
        put(p, zeros, amount);
        p->padded |= amount > 0;
        p->whole &= p->size > amount; /* zeros are not how gzip begins */
        break;
    case 7: /* what is no gzip, or half of a magic */
        put(p, kind >= 128 ? "\x1f" : "spool", kind >= 128 ? 1 : amount % 6u);
        p->whole = false;
        break;
    case 8: /* a bit of the last member, from its end: sizes and checksums are there */
        if (p->size - p->member > amount)
            p->out[p->size - 1 - amount] ^= (uint8_t)(1 << kind / 12 % 8);
        p->whole = false;
        break;
    case 9: /* a byte of its beginning */
        if (p->size - p->member > amount)
            p->out[p->member + amount] = kind;
        p->whole = false;
        break;
    case 10: /* the last member is cut */
        p->size -= p->size - p->member < amount ? p->size - p->member : amount;
        p->whole = false;
        break;
    default:
        break;
    }
}

/* ---- reading ---- */

static int read_memory(const uint8_t *data, size_t size, struct outcome *o, uint64_t *kept)
{
    struct spool_reader *r = spool_reader_new();

    CHECK(r != NULL);
    o->rc = spool_reader_open_memory(r, data, size);
    if (o->rc == 0)
        read_records(r, o);
    *kept = spool_reader_kept_bytes(r);
    spool_reader_free(r);
    return o->rc;
}

static void read_little(const struct packing *p, uint32_t seed, struct outcome *o, uint64_t *kept)
{
    struct spool_reader *r = spool_reader_new();
    int fd = memfd_create("packed", MFD_CLOEXEC);

    CHECK(r != NULL && fd >= 0 && pwrite(fd, p->out, p->size, 0) == (ssize_t)p->size);
    little.fd = fd;
    little.state = seed;
    o->rc = spool_reader_open_fd(r, fd);
    if (o->rc == 0)
        read_records(r, o);
    little.fd = -1;
    CHECK((o->rc == 0) == (strcmp(spool_reader_error(r), "no error") == 0));
    *kept = spool_reader_kept_bytes(r);
    spool_reader_free(r);
    close(fd);
}

static void check_same(const struct outcome *a, uint64_t a_kept, const struct outcome *b,
                       uint64_t b_kept)
{
    CHECK((a->rc < 0) == (b->rc < 0));
    CHECK(a->samples == b->samples && a->hash == b->hash && a_kept == b_kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t out[PACKED_MAX];
    struct packing p = {.out = out, .whole = true};
    struct outcome plain = {0}, packed = {0}, slow = {0};
    uint64_t plain_kept, packed_kept, slow_kept;
    size_t steps;
    uint8_t *copy;

    if (size == 0)
        return 0;
    steps = data[0] % (STEPS_MAX + 1);
    if (2 * steps > size - 1)
        steps = (size - 1) / 2;
    p.at = data + 1 + 2 * steps;
    p.end = data + size;
    read_memory(p.at, (size_t)(p.end - p.at), &plain, &plain_kept);
    /* What begins as gzip does, or might when more of it comes, is another thing outside of a member than in one. */
    p.whole = p.at == p.end || p.at[0] != 0x1f || (p.end - p.at > 1 && p.at[1] != 0x8b);
    for (size_t i = 0; i < steps; i++)
        take_step(&p, data[1 + 2 * i], data[2 + 2 * i]);
    if (data[0] < 128 && (p.at < p.end || p.size == 0))
        put_member(&p, size, data[0] % 10, false);
    p.whole &= p.at == p.end && p.size > 0;
    copy = malloc(p.size > 0 ? p.size : 1); /* of exactly the size */
    CHECK(copy != NULL);
    memcpy(copy, p.out, p.size);
    read_memory(copy, p.size, &packed, &packed_kept);
    if (p.whole) {
        check_same(&plain, plain_kept, &packed, packed_kept);
        CHECK(plain.rc == packed.rc);
    }
    read_little(&p, (uint32_t)size, &slow, &slow_kept);
    check_same(&packed, packed_kept, &slow, slow_kept);
    check_following(copy, p.size);
    free(copy);
    return 0;
}
