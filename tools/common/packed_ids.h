/* SPDX-License-Identifier: MIT */
/* Build ids of modules that a spool has none of, as the manifests of its capture have them. */
#ifndef TOOLS_PACKED_IDS_H
#define TOOLS_PACKED_IDS_H

#include "notes.h"
#include "options.h"
#include "spool/sym.h"

struct packed_id {
    uint8_t size_bytes;
    bool unverified; /* nothing said that the file packed was the recorded one */
    uint8_t bytes[NOTES_BUILD_ID_MAX];
};

struct packed_ids;

/* Reads all manifests of the capture in the archives of the context. One that cannot be read costs a warning. NULL:
 * there is none. */
struct packed_ids *packed_ids_read(const struct sym_context *context,
                                   const struct text_list *archives, const char *capture);
void packed_ids_free(struct packed_ids *p); /* NULL is accepted */

/* NULL: no manifest says so. p may be NULL. Valid as long as p. */
const struct packed_id *packed_ids_find(const struct packed_ids *p, uint32_t module_id);

#endif
