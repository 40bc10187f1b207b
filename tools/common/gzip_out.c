/* SPDX-License-Identifier: MIT */
/* By zlib, which gets much at once. */
#include "gzip_out.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST /* next_in is const */
#include <zlib.h>

#include "cli.h"

#define STAGE_SIZE ((size_t)256 * 1024)
#define PACKED_SIZE ((size_t)64 * 1024)

struct gzip_out {
    struct tool_output *out;
    bool begun; /* stream is to be ended */
    z_stream stream;
    gz_header header;
    size_t stage_size;
    uint8_t stage[STAGE_SIZE];   /* what deflate gets at once */
    uint8_t packed[PACKED_SIZE]; /* what deflate gives at once */
};

struct gzip_out *gzip_out_new(struct tool_output *out, int level)
{
    struct gzip_out *g = cli_realloc(NULL, 1, sizeof *g);

    memset(g, 0, offsetof(struct gzip_out, stage));
    g->out = out;
    g->header.os = 3; /* wherever it is written; time and name stay zero */
    if (deflateInit2(&g->stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        cli_error("out of memory");
        gzip_out_free(g);
        return NULL;
    }
    g->begun = true;
    deflateSetHeader(&g->stream, &g->header);
    return g;
}

void gzip_out_free(struct gzip_out *g)
{
    if (g != NULL && g->begun)
        deflateEnd(&g->stream);
    free(g);
}

/* Returns what deflate does last. */
static int squeeze(struct gzip_out *g, const uint8_t *data, size_t size, int flush)
{
    int rc;

    g->stream.next_in = data;
    g->stream.avail_in = (uInt)size;
    do {
        g->stream.next_out = g->packed;
        g->stream.avail_out = (uInt)PACKED_SIZE;
        rc = deflate(&g->stream, flush);
        output_write(g->out, g->packed, PACKED_SIZE - g->stream.avail_out);
    } while (g->stream.avail_out == 0 && !output_failed(g->out));
    return rc; /* cppcheck-suppress uninitvar ; the loop is entered */
}

static void flush_stage(struct gzip_out *g)
{
    squeeze(g, g->stage, g->stage_size, Z_NO_FLUSH);
    g->stage_size = 0;
}

void gzip_out_write(struct gzip_out *g, const void *data, size_t size)
{
    const uint8_t *at = data;

    while (size > 0) {
        size_t part = STAGE_SIZE - g->stage_size;

        if (part > size)
            part = size;
        memcpy(g->stage + g->stage_size, at, part);
        g->stage_size += part;
        at += part;
        size -= part;
        if (g->stage_size == STAGE_SIZE)
            flush_stage(g);
    }
}

int gzip_out_finish(struct gzip_out *g)
{
    flush_stage(g);
    if (squeeze(g, NULL, 0, Z_FINISH) == Z_STREAM_END || output_failed(g->out))
        return 0;
    cli_error("gzip failed");
    return -1;
}
