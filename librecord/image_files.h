/* SPDX-License-Identifier: MIT */
/*
 * The files behind mappings, opened when a frame first hits one: found through the living process, shared by all
 * mappings and processes of the same file, kept until the session ends, since a file may be deleted meanwhile.
 */
#ifndef RECORD_IMAGE_FILES_H
#define RECORD_IMAGE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind.h"

#include "spool/spool.h"

struct image_files;

struct image_file {
    struct image *image; /* NULL: cannot be opened */
    struct rule_table *rules;
    char build_id[2 * IMAGE_BUILD_ID_MAX + 1]; /* hex, "" none */
};

struct image_files *recordint_image_files_new(void); /* NULL: out of memory */
void recordint_image_files_free(struct image_files *files);

/* The file of a mapping of a process (m->pid), NULL: it has none (anonymous memory) or memory is short. One that
 * could not be opened is tried once more. other_root is a process through whose root folder the path may be looked
 * up when the mapping's own is gone. */
const struct image_file *recordint_image_files_get(struct image_files *files,
                                                   const struct spool_module *m, pid_t other_root);

/* Whether a mapping of that path has a file, or the vdso. */
bool recordint_image_files_is_file(const char *path);

#endif
