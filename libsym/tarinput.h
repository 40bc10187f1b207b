/* SPDX-License-Identifier: MIT */
/* The bytes of a tar file one after the other, as they are or unpacked by gzip. */
#ifndef SYMINT_TARINPUT_H
#define SYMINT_TARINPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symint_tar_input {
    int fd;              /* the caller's */
    uint64_t file_bytes; /* of the file */
    uint64_t most_bytes; /* more than this there cannot be, unpacked */
    uint64_t at;         /* bytes that were read, unpacked */
    uint64_t file_at;    /* bytes of the file that were read */
    bool packed;
    bool ended;         /* where it should: at the end of the file, or of the last gzip stream */
    const char *damage; /* what is wrong with a gzip stream, static; NULL: nothing */
    void *stream;       /* zlib's */
    uint8_t *buffer;
};

/* Begins to read a regular file. 0; SYM_ERR_NOMEM; SYM_ERR_IO with errno. */
int symint_tar_input_open(struct symint_tar_input *in, int fd);
void symint_tar_input_close(struct symint_tar_input *in);

/* Reads so many bytes, fewer only at the end or before damage. 0; SYM_ERR_NOMEM; SYM_ERR_IO with
 * errno. */
int symint_tar_input_read(struct symint_tar_input *in, void *bytes, size_t size, size_t *got);

/* Leaves so many bytes out. 0 with *done telling whether there were as many; SYM_ERR_NOMEM; SYM_ERR_IO. */
int symint_tar_input_skip(struct symint_tar_input *in, uint64_t size, bool *done);

#endif
