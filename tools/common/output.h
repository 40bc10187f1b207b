/* SPDX-License-Identifier: MIT */
/*
 * Where a tool's document goes: standard output, or FILE by way of a temporary file beside it
 * that takes FILE's name when everything was written. Errors are sticky, so writers may ignore
 * them until output_commit, which reports the first one.
 */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "temporary.h"

#define OUTPUT_BUFFER_SIZE ((size_t)256 * 1024)
/* The most that output_reserve gives at once. */
#define OUTPUT_RESERVE_MAX 4096

struct tool_output {
    int fd;
    int error;        /* errno of the first failure; 0: none */
    char *data;       /* the buffer */
    size_t size;      /* bytes in it */
    uint64_t flushed; /* bytes handed to the system */
    const char *name; /* for messages: the path as given, or "standard output" */
    char *target;     /* what the temporary file becomes; NULL: written directly */
    struct temporary temporary;
    unsigned mode; /* of the finished file */
};

/* Whether a path of the command line means standard output: "-", and its names in the file system, which would open a
 * file once more, at its beginning. */
bool output_is_standard(const char *path);

/* path NULL or "-": standard output. An existing FILE that is not regular is written directly;
 * of a symbolic link the target is replaced, or made when it does not exist. `binary` output is
 * refused on a terminal. 0, or -1 after an error message. *out must stay where it is until
 * commit or abort. */
int output_open(struct tool_output *out, const char *path, bool binary);

/* Writes all bytes to a descriptor, *written of them so far. 0, or the errno of what went wrong. */
int output_write_all(int fd, const void *data, size_t size, uint64_t *written);

/* Everything buffered goes to the system. For views that show data while it arrives. */
int output_flush(struct tool_output *out);

/* Flushes, closes with checks, and gives the file its name. 0, or -1 after an error message
 * (none for EPIPE) with the temporary file removed and the old FILE untouched. The output is
 * closed in any case. Call it last: it closes standard output, too. */
int output_commit(struct tool_output *out);

/* Ends without a document: the temporary file is removed, FILE stays as it was, and on a direct
 * output what was buffered is dropped. Prints nothing. Does nothing after a commit. */
void output_abort(struct tool_output *out);

/* Whether something failed already: a long job may stop early and let output_commit report. */
static inline bool output_failed(const struct tool_output *out)
{
    return out->error != 0;
}

/* Whether the document appears only at the commit. On a direct output (standard output, a FIFO)
 * what was written before a failure has been seen already. */
static inline bool output_is_file(const struct tool_output *out)
{
    return out->temporary.path != NULL;
}

/* Bytes written so far, those in the buffer included. */
static inline uint64_t output_bytes(const struct tool_output *out)
{
    return out->flushed + out->size;
}

/* The slow path of output_write. */
void output_spill(struct tool_output *out, const void *data, size_t size);

static inline void output_write(struct tool_output *out, const void *data, size_t size)
{
    if (size <= OUTPUT_BUFFER_SIZE - out->size) {
        if (size > 0)
            memcpy(out->data + out->size, data, size);
        out->size += size;
    } else {
        output_spill(out, data, size);
    }
}

static inline void output_text(struct tool_output *out, const char *text)
{
    output_write(out, text, strlen(text));
}

static inline void output_byte(struct tool_output *out, char byte)
{
    if (out->size == OUTPUT_BUFFER_SIZE)
        output_spill(out, NULL, 0);
    out->data[out->size++] = byte;
}

/* Room for size <= OUTPUT_RESERVE_MAX bytes in the buffer; output_take says how many were
 * filled. */
static inline char *output_reserve(struct tool_output *out, size_t size)
{
    if (size > OUTPUT_BUFFER_SIZE - out->size)
        output_spill(out, NULL, 0);
    return out->data + out->size;
}

static inline void output_take(struct tool_output *out, size_t size)
{
    out->size += size;
}

/* Decimal. */
void output_u64(struct tool_output *out, uint64_t number);
void output_i64(struct tool_output *out, int64_t number);

void output_printf(struct tool_output *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
