/* SPDX-License-Identifier: MIT */
/*
 * The files behind mappings, opened when a frame first hits one: found through the living process, shared by all
 * mappings and processes of the same file. They are kept while they are mapped, since a file may be deleted
 * meanwhile, though not all of them open; and a number of those that are not mapped any more. What only the memory of
 * processes has of files is copied, up to 256 MiB of all together.
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

/* descriptors: how many the process may have open; a quarter of them at most is used, and no more than 256. NULL: out
 * of memory. */
struct image_files *recordint_image_files_new(uint64_t descriptors);
void recordint_image_files_free(struct image_files *files);

/* The file of a mapping of a process (m->pid), NULL: it has none (anonymous memory) or memory is short. One that
 * could not be opened is tried once more, and after a while when descriptors were short. At the first question for
 * a mapping with a higher id than before, a file that was changed meanwhile is read anew. other_root is a process
 * through whose root folder the path may be looked up when the mapping's own is gone. The answer is good until the
 * next sweep; the image and rules of an earlier answer are, too, but may be replaced by others. */
const struct image_file *recordint_image_files_get(struct image_files *files,
                                                   const struct spool_module *m, pid_t other_root);

/* Whether a file was not opened since the last call because no descriptor was left. */
bool recordint_image_files_refused(struct image_files *files);

/* Frees what is not needed any more. When due says so (after many new files, or one that has been replaced):
 * mapped for each mapping that is live, then sweep; after that no image and no rule that was handed out before may
 * be used. */
bool recordint_image_files_due(const struct image_files *files);
void recordint_image_files_mapped(struct image_files *files, const struct spool_module *m);
void recordint_image_files_sweep(struct image_files *files);

size_t recordint_image_files_count(const struct image_files *files); /* kept (tests) */
size_t recordint_image_files_open(const struct image_files *files);  /* of them, open (tests) */

/* Whether a mapping of that path has a file, or the vdso. */
bool recordint_image_files_is_file(const char *path);

#endif
