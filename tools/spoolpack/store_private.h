/* SPDX-License-Identifier: MIT */
/* Between store.c, which is the same for all places, and the places themselves. Nobody else's. */
#ifndef SPOOLPACK_STORE_PRIVATE_H
#define SPOOLPACK_STORE_PRIVATE_H

#include "store.h"
#include "text.h"

/* Bytes to be stored: in memory, or those of a regular file. */
struct store_source {
    const void *data; /* NULL: a file */
    uint64_t size_bytes;
    int fd;
    const char *path;
};

/* Calls take() with all bytes of a source, in pieces. 0; -1 after an error message about the source, or when take()
 * returned other than 0. */
typedef int store_take_fn(void *user, const void *data, size_t size_bytes);
int store_read(const struct store_source *source, store_take_fn *take, void *user);
/* The hash of all bytes. 0, or -1 after an error message. */
int store_hash(const struct store_source *source, char sha256[PACK_HASH_SIZE]);

struct store_folder;
struct store_folder *store_folder_open(const char *path);
void store_folder_free(struct store_folder *f);
const char *store_folder_path(const struct store_folder *f);
/* 1: size of what is there, 0, or -1. */
int store_folder_size(struct store_folder *f, const char *name, uint64_t *size_bytes);
/* Makes a file young. False: that is not allowed, or it is gone. */
bool store_folder_touch(struct store_folder *f, const char *name);
/* Writes a file and hashes it on the way. */
int store_folder_write(struct store_folder *f, const char *name, const struct store_source *source,
                       char sha256[PACK_HASH_SIZE]);
/* 1, or 0 without such a file, or -1. */
int store_folder_read(struct store_folder *f, const char *name, struct stored *out);
int store_folder_list(struct store_folder *f, const char *folder, struct store_names *out);

struct store_tar;
struct store_tar *store_tar_open(const char *output);
void store_tar_free(struct store_tar *t);
int store_tar_write(struct store_tar *t, const char *name, uint64_t time_seconds,
                    const struct store_source *source, char sha256[PACK_HASH_SIZE]);
int store_tar_finish(struct store_tar *t);

/* Appends a copy of a name. */
void store_names_add(struct store_names *names, const char *name, size_t size);

#endif
