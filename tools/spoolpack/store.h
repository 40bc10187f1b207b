/* SPDX-License-Identifier: MIT */
/*
 * Where packed files go: a folder that many captures and many packs share, or one tar file. A file appears whole or not
 * at all. Everything here reports to the user itself.
 */
#ifndef SPOOLPACK_STORE_H
#define SPOOLPACK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

struct store;

/* A file of the store. */
struct stored {
    uint64_t size_bytes;
    char sha256[PACK_HASH_SIZE];
    bool was_there; /* store_put: nothing had to be written */
};

/* Opens the place. A folder is made if there is none, but not those above it; a tar file appears with store_finish.
 * NULL after an error message. */
struct store *store_open(const char *output);

/* Seconds since 1970 that files of a tar file get from here on, so that the same spools make the same bytes. */
void store_set_time(struct store *s, uint64_t seconds);

/* Puts a file whose name says what its bytes are. One of that name and size stays, and is young again, so that a prune
 * that is going on leaves it. 0 and *out, or -1 after an error message. */
int store_put(struct store *s, const char *name, const void *data, size_t size_bytes,
              struct stored *out);

/* The same from a regular file, which is read from its beginning and called `path` in messages. */
int store_put_file(struct store *s, const char *name, int fd, const char *path, struct stored *out);

/* Puts a file that may take another one's place, unless that one is larger and keep_larger says that it stays: *out is
 * about the file that is there then. In a tar file these come behind all others. */
int store_replace(struct store *s, const char *name, const void *data, size_t size_bytes,
                  bool keep_larger, struct stored *out);

/* What is there of a name, which is made young as by store_put. 1 and *out, 0: nothing, -1 after an error message. */
int store_find(struct store *s, const char *name, struct stored *out);

/* The names in a folder of the store, without it, in bytewise order; malloc'ed, each and all: store_free_names. 0, or
 * -1 after an error message. In a tar file what this run put there. */
struct store_names {
    char **items;
    size_t count;
};
int store_list(struct store *s, const char *folder, struct store_names *out);
void store_free_names(struct store_names *names);

/* The folder's path; NULL: a tar file, in which nothing was before. */
const char *store_folder(const struct store *s);

/* Bytes of new files so far. */
uint64_t store_new_bytes(const struct store *s);

/* Completes and closes it. 0, or -1 after an error message. */
int store_finish(struct store *s);

/* NULL is accepted. A tar file that was not finished leaves nothing. */
void store_free(struct store *s);

#endif
