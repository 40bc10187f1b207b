/* SPDX-License-Identifier: MIT */
/*
 * Where the spool goes: standard output, or a file that is written in place, for a recording must survive a crash. What
 * comes before the recording has begun is kept in memory, so that one that cannot begin leaves neither a spool nor an
 * older one damaged.
 */
#ifndef SPOOLRECORD_RECORD_OUTPUT_H
#define SPOOLRECORD_RECORD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

struct record_output {
    int fd;
    const char *name; /* for messages */
    const char *path; /* NULL: standard output */
    bool created;     /* by us: the file may be removed */
    bool regular;
    bool begun;
    int error;                /* errno of the first failure to write; 0: none */
    struct text_buffer early; /* what was written before it has begun */
};

/* path as of -o. force: an existing regular file is overwritten, once the recording begins. 0, or -1 after an error
 * message. */
int record_output_open(struct record_output *out, const char *path, bool force);

/* A record_write_fn: user is the output. Errors are not told. */
int record_output_write(void *user, const void *data, size_t size);

/* The recording has begun: what was kept is written. Returns as record_output_write. */
int record_output_begin(struct record_output *out);

/* Closes. A recording that has not begun leaves no file that was not there before. Returns the errno of the first
 * failure to write or close, 0 when there was none; nothing is told. */
int record_output_close(struct record_output *out);

#endif
