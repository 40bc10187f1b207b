/* SPDX-License-Identifier: MIT */
/*
 * An ELF file as the recorder needs it: where its code lies, its build id and its unwind tables. Read
 * from a file or from memory (the vdso); no number in it is believed before it was checked against what is
 * there. Addresses are the file's own (p_vaddr).
 */
#ifndef RECORD_IMAGE_H
#define RECORD_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

struct image;

#define IMAGE_BUILD_ID_MAX 64

/* Opens the ELF file behind a descriptor (which stays the caller's; a duplicate is kept until free) or a copy
 * of one in memory (the bytes are copied). Only headers are read. Nothing is mapped, since a file that
 * shrinks later must not kill us: tables are read into memory of ours piece by piece when they are needed.
 * Returns 0 and *out; -1 with errno: ENOMEM, ENOEXEC (no ELF file of a known machine), or what fstat or
 * fcntl said. */
int recordint_image_open_fd(int fd, struct image **out);
int recordint_image_open_memory(const void *data, size_t size, struct image **out);
/* The same, but bytes are malloc'ed and become the image's, or are freed on failure. */
int recordint_image_open_malloced(uint8_t *bytes, size_t size, struct image **out);

/* How many bytes of such a copy the image has; 0: a descriptor instead. */
uint64_t recordint_image_copied(const struct image *image);
void recordint_image_free(struct image *image); /* accepts NULL */

/* The file's descriptor is the image's own. It may be closed for a while: what has been read stays, and reopen
 * gives a new one, the image's then, when more is needed; -1: what is missing is as good as not there. An image of
 * memory has none: -1. */
int recordint_image_fd(const struct image *image); /* -1: it is closed */
void recordint_image_close_file(struct image *image);
void recordint_image_set_reopen(struct image *image, int (*reopen)(void *user), void *user);

enum arch recordint_image_arch(const struct image *image);

/* The address at which its process begins (a program, the dynamic loader); 0: none. */
uint64_t recordint_image_entry(const struct image *image);

/* The build id of its notes. Returns its size in bytes, 0: none. */
size_t recordint_image_build_id(const struct image *image, uint8_t id[IMAGE_BUILD_ID_MAX]);

/* The file's address of a byte at file_offset that an executable PT_LOAD maps (the page-rounded end of a
 * segment counts). Returns false when no segment has it. */
bool recordint_image_address(const struct image *image, uint64_t file_offset, uint64_t *address);

/* Bytes of its read-only or executable segments at one of its addresses, as far as they lie in the file: for
 * looking at instructions. Returns how many were copied. */
size_t recordint_image_read(const struct image *image, uint64_t address, void *out, size_t size);

#endif
