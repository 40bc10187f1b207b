/* SPDX-License-Identifier: MIT */
/* A spool as bytes: read twice, once for its records and once for its hash. */
#ifndef SPOOLPACK_INPUT_BYTES_H
#define SPOOLPACK_INPUT_BYTES_H

#include <stdint.h>
#include <sys/stat.h>

#include "hash.h"
#include "inputs.h"

struct input_bytes {
    struct stat status; /* of the file when it was opened */
    int64_t begin;      /* where the spool begins in it */
};

/* As inputs_open. What can be read only once (a pipe) is copied to an unlinked file in TMPDIR first. */
int input_bytes_open(const char *path, struct tool_input *in, struct input_bytes *b);

/* The hash and size of an input that was read, whose descriptor is still open. One that changed meanwhile counts as far
 * as it was read, with a warning. 0, or -1 after an error message. */
int input_bytes_hash(const struct input_bytes *b, const struct tool_input *in,
                     char sha256[PACK_HASH_SIZE], uint64_t *size_bytes);

#endif
