/* SPDX-License-Identifier: MIT */
/* Reading a tar file from its beginning to its end. Nothing is kept; a plain one is read at any offset later. */
#include "tarinput.h"

#include "spool/sym.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFER_BYTES ((size_t)64 * 1024)

/* Deflate makes at most 258 bytes of two bits; the rest is for a file of nearly nothing. */
#define MOST_UNPACKED 1032u
#define MOST_BESIDE ((uint64_t)16 * 1024 * 1024)

/* Reads up to size bytes of the file. */
static int read_file(struct symint_tar_input *in, void *bytes, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size) {
        ssize_t n = pread(in->fd, (char *)bytes + *got, size - *got, (off_t)in->file_at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return SYM_ERR_IO;
        if (n == 0)
            break;
        *got += (size_t)n;
        in->file_at += (size_t)n;
    }
    return 0;
}

static int begin_gzip(struct symint_tar_input *in)
{
    z_stream *z = calloc(1, sizeof(*z));
    in->buffer = malloc(BUFFER_BYTES);
    if (z == NULL || in->buffer == NULL || inflateInit2(z, 16 + MAX_WBITS) != Z_OK) {
        free(z);
        return SYM_ERR_NOMEM;
    }
    in->stream = z;
    in->packed = true;
    in->most_bytes = in->file_bytes > (UINT64_MAX - MOST_BESIDE) / MOST_UNPACKED
                         ? UINT64_MAX
                         : in->file_bytes * MOST_UNPACKED + MOST_BESIDE;
    return 0;
}

int symint_tar_input_open(struct symint_tar_input *in, int fd)
{
    struct stat st;
    uint8_t magic[3];
    size_t got;
    *in = (struct symint_tar_input){.fd = fd};
    if (fstat(fd, &st) != 0)
        return SYM_ERR_IO;
    in->file_bytes = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    in->most_bytes = in->file_bytes;
    int rc = read_file(in, magic, sizeof(magic), &got);
    in->file_at = 0;
    if (rc == 0 && got == sizeof(magic) && memcmp(magic, "\x1f\x8b\x08", sizeof(magic)) == 0)
        rc = begin_gzip(in);
    return rc;
}

void symint_tar_input_close(struct symint_tar_input *in)
{
    if (in->stream != NULL)
        inflateEnd(in->stream);
    free(in->stream);
    free(in->buffer);
    in->stream = NULL;
    in->buffer = NULL;
}

/* Gets more packed bytes when there are none. At the end of the file there are none after it, either. */
static int fill(struct symint_tar_input *in, z_stream *z)
{
    size_t got;
    if (z->avail_in > 0)
        return 0;
    int rc = read_file(in, in->buffer, BUFFER_BYTES, &got);
    z->next_in = in->buffer;
    z->avail_in = (uInt)got;
    return rc;
}

/* Goes on with a stream behind the one that ended, if there is one; what else is there is no part of it. */
static int next_stream(struct symint_tar_input *in, z_stream *z)
{
    int rc = fill(in, z);
    if (rc != 0)
        return rc;
    in->ended = z->avail_in == 0 || z->next_in[0] != 0x1f || inflateReset(z) != Z_OK;
    return 0;
}

static int read_gzip(struct symint_tar_input *in, void *bytes, size_t size, size_t *got)
{
    z_stream *z = in->stream;
    *got = 0;
    while (*got < size && !in->ended && in->damage == NULL) {
        size_t room = size - *got < BUFFER_BYTES ? size - *got : BUFFER_BYTES;
        int rc = fill(in, z);
        if (rc != 0)
            return rc;
        bool at_end = z->avail_in == 0;
        z->next_out = (Bytef *)bytes + *got;
        z->avail_out = (uInt)room;
        int state = inflate(z, Z_NO_FLUSH);
        *got += room - z->avail_out;
        if (state == Z_MEM_ERROR)
            return SYM_ERR_NOMEM;
        if (state == Z_STREAM_END)
            rc = next_stream(in, z);
        else if (at_end && z->avail_out == room)
            in->damage = "it is cut off";
        else if (state != Z_OK && state != Z_BUF_ERROR)
            in->damage = "what gzip packed is damaged";
        if (rc != 0)
            return rc;
    }
    return 0;
}

int symint_tar_input_read(struct symint_tar_input *in, void *bytes, size_t size, size_t *got)
{
    int rc;
    if (in->packed) {
        rc = read_gzip(in, bytes, size, got);
    } else {
        rc = read_file(in, bytes, size, got);
        in->ended = *got < size;
    }
    in->at += *got;
    return rc;
}

int symint_tar_input_skip(struct symint_tar_input *in, uint64_t size, bool *done)
{
    uint8_t bytes[16384];
    size_t got;
    *done = true;
    if (!in->packed) {
        uint64_t left = in->file_bytes > in->at ? in->file_bytes - in->at : 0;
        *done = size <= left;
        in->at += *done ? size : left;
        in->file_at = in->at;
        return 0;
    }
    while (size > 0) {
        size_t part = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
        int rc = symint_tar_input_read(in, bytes, part, &got);
        if (rc != 0)
            return rc;
        if (got < part) {
            *done = false;
            return 0;
        }
        size -= part;
    }
    return 0;
}
