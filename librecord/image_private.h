/* SPDX-License-Identifier: MIT */
/* What image.c, image_section.c and the files of cfi.h know of an ELF file. */
#ifndef RECORD_IMAGE_PRIVATE_H
#define RECORD_IMAGE_PRIVATE_H

#include "image.h"
#include "lazy_bytes.h"

struct cfi_tables;

/* A segment, cut where the file ends. */
struct image_segment {
    uint64_t address;
    uint64_t offset;
    uint64_t size; /* in the file */
    bool executable;
    bool writable;
};

struct image {
    enum arch arch;
    struct file_source *file; /* NULL: the bytes are in memory */
    uint8_t *memory;          /* all of the file, else NULL */
    uint64_t size;
    uint64_t entry;           /* address */
    uint64_t program_headers; /* offset */
    uint64_t section_headers;
    uint16_t program_header_count; /* 0 unless all of them lie in the file */
    uint16_t section_header_count;
    uint16_t section_names;         /* index of their section */
    struct image_segment *segments; /* PT_LOAD */
    size_t segment_count;
    struct image_segment eh_frame_hdr; /* PT_GNU_EH_FRAME; size 0: there is none */
    struct cfi_tables *cfi;            /* cfi_find.c's; NULL until it was asked for a row */
};

struct image_section {
    uint64_t address; /* 0 when it is not loaded */
    uint64_t offset;
    uint64_t size;   /* in the file; the section lies inside of it */
    bool compressed; /* SHF_COMPRESSED: begins with an Elf64_Chdr */
};

/* Reads exactly these bytes. False: they are not there. */
bool recordint_image_get(const struct image *image, uint64_t offset, void *out, size_t size);

/* The same into malloc'ed memory, for at most limit bytes and at least one. NULL: not there, or no memory. */
uint8_t *recordint_image_load(const struct image *image, uint64_t offset, uint64_t size,
                              size_t limit);

/* The first section of this name with bytes in the file; a loaded one that contains the address. False:
 * there is none, or the headers cannot be read. */
bool recordint_image_section_named(const struct image *image, const char *name,
                                   struct image_section *out);
bool recordint_image_section_at(const struct image *image, uint64_t address,
                                struct image_section *out);

/* The segment whose bytes in the file contain the address; NULL: none. */
const struct image_segment *recordint_image_segment_at(const struct image *image, uint64_t address);

/* DT_PLTGOT, what `datarel` in .eh_frame is relative to. */
bool recordint_image_data_base(const struct image *image, uint64_t *address);

/* Bytes of the file, to be read when they are needed; b is not to outlive the image. */
bool recordint_image_lazy(const struct image *image, uint64_t offset, uint64_t size,
                          struct lazy_bytes *b);

/* The bytes of .debug_frame, unpacked if they are compressed (.zdebug_frame, too), and the section's address.
 * False: there are none, or no memory for them. */
bool recordint_image_debug_frame(const struct image *image, struct lazy_bytes *b,
                                 uint64_t *address);

/* cfi_find.c; accepts NULL. */
void recordint_cfi_tables_free(struct cfi_tables *tables);

#endif
