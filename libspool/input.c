/* SPDX-License-Identifier: MIT */
/*
 * One growing window over a descriptor or over memory. Packed bytes and the first bytes of a
 * descriptor, which decide whether it is gzip, pass through `raw`; everything else is read straight
 * into the window. Nothing here knows what a spool is.
 */
#include "input.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZLIB_CONST
#include <zlib.h>

#include "error.h"

#ifdef SPOOL_SMALL_BUFFERS /* of fuzzers, whose inputs are small and are to meet the ends of buffers */
#define WINDOW_CAPACITY_MIN ((size_t)64)
#define SNIFF_CAPACITY ((size_t)8)
#define RAW_CAPACITY ((size_t)48)
#else
/* Also what inflate gets to fill at once; after each call it copies 32 KiB of its output. */
#define WINDOW_CAPACITY_MIN ((size_t)256 << 10)
#define SNIFF_CAPACITY ((size_t)4 << 10)
#define RAW_CAPACITY ((size_t)256 << 10)
#endif
#define ZLIB_COUNT_MAX ((size_t)1 << 30) /* zlib counts in unsigned int */

enum input_format { INPUT_UNKNOWN = 0, INPUT_PLAIN, INPUT_GZIP };

enum gzip_state {
    GZIP_MEMBER = 0, /* inflate is at work */
    GZIP_BETWEEN,    /* a member is complete, what follows is not known */
    GZIP_PADDING     /* only zeros may follow */
};

struct input {
    enum input_format format;
    bool from_fd;
    bool ended; /* no more bytes will come; final even if the file grows */
    int fd;

    /* Of a descriptor that is followed: */
    bool follow;
    bool regular;
    bool never_wait;
    bool closed;           /* nobody writes any more */
    uint64_t begin_offset; /* of a regular file: where reading began */
    uint64_t limit;        /* read_bytes stops there */

    /* Bytes of the source as they are: of a descriptor in `raw_buffer`, of memory the memory. */
    const uint8_t *raw_at;
    const uint8_t *raw_end;
    uint8_t *raw_buffer;
    size_t raw_capacity;
    uint64_t read_bytes; /* of a descriptor or all of the memory: what stands up to raw_end */

    /* The window's bytes, unless it is the caller's memory. */
    uint8_t *buffer;
    size_t capacity;
    struct input_window window;

    z_stream stream;
    bool stream_ready;
    enum gzip_state gzip_state;
    bool gzip_cut;

    struct error_state error;
};

struct input *spoolint_input_new(void)
{
    struct input *in = malloc(sizeof *in);

    if (in == NULL)
        return NULL;
    *in = (struct input){.fd = -1, .limit = UINT64_MAX};
    return in;
}

void spoolint_input_free(struct input *in)
{
    if (in == NULL)
        return;
    if (in->stream_ready)
        inflateEnd(&in->stream);
    free(in->raw_buffer);
    free(in->buffer);
    free(in);
}

void spoolint_input_from_fd(struct input *in, int fd)
{
    in->from_fd = true;
    in->fd = fd;
}

void spoolint_input_follow_fd(struct input *in, int fd)
{
    struct stat st;
    off_t at;

    spoolint_input_from_fd(in, fd);
    in->follow = true;
    in->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    at = in->regular ? lseek(fd, 0, SEEK_CUR) : 0;
    in->begin_offset = at > 0 ? (uint64_t)at : 0;
}

void spoolint_input_never_wait(struct input *in)
{
    in->never_wait = true;
}

void spoolint_input_limit(struct input *in, uint64_t size)
{
    in->limit = size;
}

void spoolint_input_from_memory(struct input *in, const void *data, size_t size)
{
    if (size == 0) /* data may be NULL then */
        return;
    in->raw_at = data;
    in->raw_end = in->raw_at + size;
    in->read_bytes = size;
}

static int fail_nomem(struct input *in)
{
    return spoolint_error_set(&in->error, SPOOL_ERR_NOMEM, "%s", spool_error_text(SPOOL_ERR_NOMEM));
}

static size_t raw_size(const struct input *in)
{
    return in->raw_at == NULL ? 0 : (size_t)(in->raw_end - in->raw_at);
}

static int fail_read(struct input *in)
{
    if (errno == EISDIR)
        return spoolint_error_set(&in->error, SPOOL_ERR_IO, "is a directory");
    return spoolint_error_set(&in->error, SPOOL_ERR_IO, "read failed: %s", strerror(errno));
}

/* What a descriptor in non-blocking mode said; that mode is the business of who lent it to us. */
#define READ_NOTHING_YET 2

/* read(2): 1 and *got >= 1, 0 at the end, <0, or READ_NOTHING_YET. */
static int read_once(struct input *in, uint8_t *out, size_t room, size_t *got)
{
    ssize_t n;

    do {
        n = read(in->fd, out, room);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? READ_NOTHING_YET : fail_read(in);
    *got = (size_t)n;
    in->read_bytes += (uint64_t)n;
    return n > 0;
}

/* Whether a read gives an answer at once: 1, 0 when the time is over (-1: never), <0. */
static int wait_for(struct input *in, int timeout_ms)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};
    int rc;

    do {
        rc = poll(&p, 1, timeout_ms);
    } while (rc < 0 && errno == EINTR);
    return rc < 0 ? fail_read(in) : rc;
}

/* A regular file gave nothing: 0 when it is as long as what was read, or longer. */
static int check_size(struct input *in)
{
    uint64_t end = in->begin_offset + in->read_bytes;
    struct stat st;

    if (fstat(in->fd, &st) != 0)
        return fail_read(in);
    if (in->read_bytes == 0 || (uint64_t)st.st_size >= end)
        return 0;
    return spoolint_error_set(&in->error, SPOOL_ERR_IO,
                              "the file has become shorter: it has %llu bytes, %llu had been read",
                              (unsigned long long)st.st_size, (unsigned long long)end);
}

/* As read_fd, of what is there now. */
static int read_followed(struct input *in, uint8_t *out, size_t room, size_t *got)
{
    uint64_t left = in->limit > in->read_bytes ? in->limit - in->read_bytes : 0;
    int rc = READ_NOTHING_YET;

    if (room > left)
        room = (size_t)left;
    if (in->regular) {
        rc = room > 0 ? read_once(in, out, room, got) : 0;
        return rc == 0 ? check_size(in) : rc;
    }
    if (room == 0)
        return 0;
    while (rc == READ_NOTHING_YET) {
        rc = wait_for(in, in->never_wait ? 0 : -1);
        if (rc <= 0)
            return rc;
        rc = read_once(in, out, room, got);
        if (rc == READ_NOTHING_YET && in->never_wait)
            return 0; /* somebody else was faster */
    }
    in->closed = rc == 0;
    return rc;
}

/* read(2) that waits: 1 and *got >= 1, 0 at the end, <0. */
static int read_fd(struct input *in, uint8_t *out, size_t room, size_t *got)
{
    int rc;

    assert(room > 0);
    if (in->follow)
        return read_followed(in, out, room, got);
    while ((rc = read_once(in, out, room, got)) == READ_NOTHING_YET) {
        rc = wait_for(in, -1);
        if (rc < 0)
            return rc;
    }
    return rc;
}

/* Puts more bytes behind those in raw: 1, 0 at the end, <0. */
static int read_raw(struct input *in)
{
    size_t kept = raw_size(in);
    size_t got;
    int rc;

    if (!in->from_fd)
        return 0;
    if (kept > 0 && in->raw_at != in->raw_buffer)
        memmove(in->raw_buffer, in->raw_at, kept);
    in->raw_at = in->raw_buffer;
    in->raw_end = in->raw_buffer + kept;
    rc = read_fd(in, in->raw_buffer + kept, in->raw_capacity - kept, &got);
    if (rc > 0)
        in->raw_end += got;
    return rc;
}

static bool grow_raw(struct input *in, size_t capacity)
{
    size_t kept = raw_size(in);
    uint8_t *p = malloc(capacity);

    if (p == NULL)
        return false;
    if (kept > 0)
        memcpy(p, in->raw_at, kept);
    free(in->raw_buffer);
    in->raw_buffer = p;
    in->raw_capacity = capacity;
    in->raw_at = p;
    in->raw_end = p + kept;
    return true;
}

/* Finds out what the source is by its first two bytes: 0 or <0. */
static int sniff(struct input *in)
{
    if (in->from_fd && !grow_raw(in, SNIFF_CAPACITY))
        return fail_nomem(in);
    /* The second byte is waited for only where it matters. */
    while (raw_size(in) == 0 || (raw_size(in) == 1 && in->raw_at[0] == 0x1f)) {
        int rc = read_raw(in);

        if (rc < 0)
            return rc;
        if (rc == 0)
            break;
    }
    if (raw_size(in) < 2 || in->raw_at[0] != 0x1f || in->raw_at[1] != 0x8b) {
        in->format = INPUT_PLAIN;
        return 0;
    }
    in->format = INPUT_GZIP;
    if (in->from_fd && !grow_raw(in, RAW_CAPACITY))
        return fail_nomem(in);
    /* 15: the largest window; 16: gzip and nothing else. With this, only memory can be missing. */
    if (inflateInit2(&in->stream, 15 + 16) != Z_OK)
        return fail_nomem(in);
    in->stream_ready = true;
    return 0;
}

static uint64_t raw_offset(const struct input *in)
{
    return in->read_bytes - raw_size(in);
}

static int fail_gzip(struct input *in, const char *what)
{
    return spoolint_error_set(&in->error, SPOOL_ERR_CORRUPT, "gzip data at byte %llu: %s",
                              (unsigned long long)raw_offset(in), what);
}

/* Unpacks from what is in raw: number of bytes put into out, which may be 0; *rc as inflate's. */
static size_t inflate_some(struct input *in, uint8_t *out, size_t room, int *rc)
{
    z_stream *z = &in->stream;
    size_t in_size = raw_size(in) < ZLIB_COUNT_MAX ? raw_size(in) : ZLIB_COUNT_MAX;
    size_t out_size = room < ZLIB_COUNT_MAX ? room : ZLIB_COUNT_MAX;

    z->next_in = in->raw_at;
    z->avail_in = (uInt)in_size;
    z->next_out = out;
    z->avail_out = (uInt)out_size;
    *rc = inflate(z, Z_NO_FLUSH);
    in->raw_at += in_size - z->avail_in;
    return out_size - z->avail_out;
}

/* Behind a complete member: 1 when another one begins, 0 when the input ended, <0. */
static int next_member(struct input *in)
{
    for (;;) {
        int rc;

        if (raw_size(in) > 0 && in->raw_at[0] == 0) {
            /* Zeros up to the end: from tapes, and from files that were made longer. */
            in->gzip_state = GZIP_PADDING;
            in->raw_at++;
            continue;
        }
        if (raw_size(in) > 0 && (in->gzip_state == GZIP_PADDING || in->raw_at[0] != 0x1f))
            return fail_gzip(in, "trailing bytes that are not gzip data");
        if (raw_size(in) >= 2) {
            if (in->raw_at[1] != 0x8b)
                return fail_gzip(in, "trailing bytes that are not gzip data");
            in->gzip_state = GZIP_MEMBER;
            inflateReset(&in->stream);
            return 1;
        }
        rc = read_raw(in);
        if (rc == 0)
            in->gzip_cut = raw_size(in) == 1; /* half of a member's magic */
        if (rc <= 0)
            return rc;
    }
}

/* Unpacks 1 to room bytes: 1, 0 at the end, <0. Reads only when there is nothing to give, so that a
 * pipe's bytes come through as they arrive. */
static int unpack(struct input *in, uint8_t *out, size_t room, size_t *got)
{
    assert(room > 0);
    for (;;) {
        int rc;

        if (in->gzip_state != GZIP_MEMBER) {
            rc = next_member(in);
            if (rc <= 0)
                return rc;
        }
        *got = inflate_some(in, out, room, &rc);
        if (rc == Z_STREAM_END) {
            in->gzip_state = GZIP_BETWEEN;
        } else if (rc == Z_MEM_ERROR) {
            fail_nomem(in);
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            fail_gzip(in, in->stream.msg != NULL ? in->stream.msg : "damaged");
        }
        /* What stands before damage is delivered first; the error waits in the handle. */
        if (*got > 0)
            return 1;
        if (in->error.code != 0)
            return in->error.code;
        if (in->gzip_state == GZIP_MEMBER && raw_size(in) == 0) {
            rc = read_raw(in);
            if (rc < 0)
                return rc;
            if (rc == 0) {
                in->gzip_cut = true;
                return 0;
            }
        }
    }
}

/* The next 1 to room plain bytes: 1, 0 at the end, <0. */
static int produce(struct input *in, uint8_t *out, size_t room, size_t *got)
{
    int rc;

    if (in->format == INPUT_GZIP) {
        rc = unpack(in, out, room, got);
    } else if (raw_size(in) > 0) {
        *got = raw_size(in) < room ? raw_size(in) : room;
        memcpy(out, in->raw_at, *got);
        in->raw_at += *got;
        rc = 1;
    } else {
        rc = in->from_fd ? read_fd(in, out, room, got) : 0;
    }
    if (rc == 0)
        in->ended = !in->follow || in->closed;
    return rc;
}

static bool grow_window(struct input *in)
{
    size_t size = (size_t)(in->window.end - in->window.begin);
    size_t capacity = in->capacity == 0 ? WINDOW_CAPACITY_MIN : in->capacity * 2;
    uint8_t *p;

    if (in->capacity > SIZE_MAX / 2)
        return false;
    p = realloc(in->buffer, capacity);
    if (p == NULL)
        return false;
    in->buffer = p;
    in->capacity = capacity;
    in->window.begin = p;
    in->window.end = p + size;
    return true;
}

/* The window over plain memory: all of it at once. */
static int show_memory(struct input *in)
{
    if (raw_size(in) == 0) {
        in->ended = true;
        return 0;
    }
    if (in->window.begin == in->window.end)
        in->window.begin = in->raw_at;
    in->window.end = in->raw_end;
    in->raw_at = in->raw_end;
    return 1;
}

/* Fills the buffer, at whose start the window stands, to `wanted` bytes at least. */
static int fill_buffer(struct input *in, size_t wanted)
{
    size_t size = (size_t)(in->window.end - in->window.begin);
    bool gained = false;

    if (wanted <= size)
        wanted = size + 1;
    while (size < wanted) {
        size_t room, got;
        int rc;

        /* Doubled only when full: a length that lies costs no more than the bytes that came. */
        if (size == in->capacity && !grow_window(in)) {
            rc = fail_nomem(in);
        } else {
            /* A buffer that grew for one long field is not read full for every other one. */
            room = wanted - size > WINDOW_CAPACITY_MIN ? wanted - size : WINDOW_CAPACITY_MIN;
            if (room > in->capacity - size)
                room = in->capacity - size;
            rc = produce(in, in->buffer + size, room, &got);
        }
        if (rc <= 0)
            return gained ? 1 : rc;
        gained = true;
        size += got;
        in->window.end += got;
        if (in->error.code != 0) /* damage behind what was just unpacked */
            return 1;
    }
    return 1;
}

/* Takes the caller's view of the window over and drops the first bytes of it. */
static void drop(struct input *in, const struct input_window *w, size_t consumed)
{
    size_t shown = w->begin == w->end ? 0 : (size_t)(w->end - w->begin);

    assert(w->begin == w->end || w->end == in->window.end);
    assert(consumed <= shown);
    if (in->window.begin != NULL)
        in->window.begin = in->window.end - (shown - consumed);
}

static int fill(struct input *in, size_t wanted)
{
    size_t size = (size_t)(in->window.end - in->window.begin);

    if (in->error.code != 0)
        return in->error.code;
    if (in->ended)
        return 0;
    if (in->format == INPUT_UNKNOWN && sniff(in) < 0)
        return in->error.code;
    if (in->format == INPUT_PLAIN && !in->from_fd)
        return show_memory(in);
    if (size > 0 && in->window.begin != in->buffer)
        memmove(in->buffer, in->window.begin, size);
    in->window.begin = in->buffer;
    if (in->buffer != NULL)
        in->window.end = in->buffer + size;
    return fill_buffer(in, wanted);
}

int spoolint_input_fill(struct input *in, struct input_window *w, size_t consumed, size_t wanted)
{
    int rc;

    drop(in, w, consumed);
    rc = fill(in, wanted);
    *w = in->window;
    return rc;
}

/* Drops up to `size` bytes behind the empty window, counting them: 0 or <0. */
static int skip(struct input *in, uint64_t size, uint64_t *skipped)
{
    if (in->error.code != 0)
        return in->error.code;
    if (in->format == INPUT_UNKNOWN && sniff(in) < 0)
        return in->error.code;
    if (in->format == INPUT_PLAIN && raw_size(in) > 0) {
        *skipped = raw_size(in) < size ? raw_size(in) : size;
        in->raw_at += *skipped;
    }
    if (*skipped < size && in->buffer == NULL && !grow_window(in))
        return fail_nomem(in);
    while (*skipped < size && !in->ended) {
        uint64_t left = size - *skipped;
        size_t got = 0;
        int rc;

        if (in->error.code != 0)
            return in->error.code;
        rc = produce(in, in->buffer, left < in->capacity ? (size_t)left : in->capacity, &got);
        if (rc <= 0)
            return rc;
        *skipped += got;
    }
    return 0;
}

int spoolint_input_skip(struct input *in, struct input_window *w, uint64_t size, uint64_t *skipped)
{
    int rc;

    *skipped = 0;
    in->window.begin = in->window.end;
    rc = skip(in, size, skipped);
    *w = in->window;
    return rc < 0 ? rc : *skipped == size;
}

bool spoolint_input_ended(const struct input *in)
{
    return in->ended;
}

bool spoolint_input_gzip_cut(const struct input *in)
{
    return in->gzip_cut;
}

bool spoolint_input_is_gzip(const struct input *in)
{
    return in->format == INPUT_GZIP;
}

uint64_t spoolint_input_raw_bytes(const struct input *in)
{
    return in->from_fd ? in->read_bytes : raw_offset(in);
}

const char *spoolint_input_error(const struct input *in)
{
    return spoolint_error_get(&in->error);
}
