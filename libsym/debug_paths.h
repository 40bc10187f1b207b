/* SPDX-License-Identifier: MIT */
/* The names under which debug files are looked for. */
#ifndef SYMINT_DEBUG_PATHS_H
#define SYMINT_DEBUG_PATHS_H

#include "locate.h"
#include "words.h"

#define SYMINT_MAX_RELEASE 255
#define SYMINT_DELETED " (deleted)"

struct symint_hex {
    char text[2 * SYMINT_MAX_BUILD_ID + 1];
};

/* A build id as people write it, cut at 64 bytes. */
struct symint_hex symint_hex(const uint8_t *bytes, size_t size);

/* Whether a build id names a file of its own: it has two bytes at least, and not too many. */
bool symint_is_file_id(size_t size);

/* DIR/.build-id/xx/yyyy and an ending, malloc'ed; NULL: out of memory. */
char *symint_build_id_path(const char *dir, const uint8_t *id, size_t size, const char *ending);

/* Whether a kernel's release can be part of a path: it comes from a capture. NULL: no. */
bool symint_is_release(const char *release);

/* The bytes of a recorded path without the kernel's mark for deleted files, ` (deleted)`. */
size_t symint_without_deleted(const char *path, size_t size);

/* The bytes of a path that lead to its folder: up to its last slash, 0: none. */
size_t symint_folder_size(const char *path);

/* The debug directories of the options, else the default. NULL: no more than i. */
const char *symint_debug_dir(const struct symint_search_options *options, size_t i);

/* The root of a file in front of its path, for a person: "" for ours. */
const char *symint_shown_root(const char *root);

#endif
