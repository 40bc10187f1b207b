/* SPDX-License-Identifier: MIT */
/* From a mapping of a living process to the bytes of its file. */
#ifndef RECORD_IMAGE_OPEN_H
#define RECORD_IMAGE_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "image.h"

#include "spool/spool.h"

/* Opens the mapping's file. Returns a descriptor, the caller's; -1: it is not found. *short_of_files: no descriptor
 * was left at one place at least, so that it may be there nevertheless. other_root is a process through whose root
 * folder the path may be looked up when the mapping's own is gone; 0: none. */
int recordint_image_open_mapped(const struct spool_module *m, pid_t other_root,
                                bool *short_of_files);

/* What the process's memory has of it, in a copy of at most so many bytes; of the vdso, our own if that is the same.
 * NULL: nothing that could be used. */
struct image *recordint_image_open_memory_of(const struct spool_module *m, uint64_t most);

#endif
