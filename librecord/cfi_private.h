/* SPDX-License-Identifier: MIT */
/*
 * What the files behind cfi.h share: cfi_find.c (which FDE), cfi_entry.c (heads of CIEs and FDEs) and
 * cfi_program.c (their instructions).
 */
#ifndef RECORD_CFI_PRIVATE_H
#define RECORD_CFI_PRIVATE_H

#include "cfi.h"
#include "cfi_cursor.h"
#include "image_private.h"

/* CIEs remembered, a power of two. Files have a handful. */
#define CFI_CIES 4
/* Of instructions; compilers' longest have a few kilobytes. Bounds what one lookup may cost. */
#define CFI_PROGRAM_MAX ((uint64_t)1024 * 1024)

/* Where instructions lie in their section. */
struct cfi_code {
    uint64_t at;
    uint64_t size;
};

struct cfi_cie {
    uint64_t key;     /* its offset + 1; 0: nothing is remembered here */
    bool usable;      /* false: nothing below holds */
    bool started;     /* initial holds, */
    bool start_fails; /* or its instructions are bad */
    uint8_t id_size;  /* of its CIE id in bytes */
    uint8_t encoding; /* of addresses */
    bool augmented;   /* FDEs have augmentation data */
    bool signal_frame;
    uint32_t return_register;
    uint64_t code_align;
    int64_t data_align;
    struct cfi_code code;
    struct cfi_row initial; /* what its instructions make */
};

/* An FDE of a sorted list. */
struct cfi_range {
    uint64_t start; /* [start, end) */
    uint64_t end;
    uint64_t reach; /* the largest end up to here */
    uint64_t at;
};

/* A section of CIEs and FDEs. */
struct cfi_table {
    struct lazy_bytes bytes;
    uint64_t address;
    bool eh;       /* .eh_frame, not .debug_frame */
    bool exact;    /* where it ends is known; false: at the first terminator */
    bool listed;   /* list holds, and may be empty */
    uint64_t work; /* bytes of instructions that were run */
    struct cfi_range *list;
    size_t list_count;
    bool data_base_known; /* looked for; 0 when there is none */
    uint64_t data_base;
    struct cfi_cie cies[CFI_CIES];
};

struct cfi_fde {
    uint64_t start; /* [start, end) */
    uint64_t end;
    struct cfi_cie *cie; /* until the next entry is read */
    struct cfi_code code;
};

enum cfi_entry {
    CFI_ENTRY_FDE,
    CFI_ENTRY_OTHER, /* a CIE, or an FDE that cannot be understood */
    CFI_ENTRY_ZERO,  /* a terminator */
    CFI_ENTRY_LOST   /* no length that can be believed, or the bytes cannot be read */
};

/* Reads the head of the entry at any offset. *next is the offset behind it, unless it is LOST. */
enum cfi_entry recordint_cfi_entry(const struct image *image, struct cfi_table *table, uint64_t at,
                                   struct cfi_fde *fde, uint64_t *next);

/* Runs an FDE's program up to the address, which it contains. */
enum cfi_result recordint_cfi_run(const struct image *image, struct cfi_table *table,
                                  const struct cfi_fde *fde, uint64_t address, struct cfi_row *row);

#endif
