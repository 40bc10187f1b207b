/* SPDX-License-Identifier: MIT */
/* What the files that pack a spool share. Nobody else's. */
#ifndef SPOOLPACK_PACK_PRIVATE_H
#define SPOOLPACK_PACK_PRIVATE_H

#include "collect.h"
#include "earlier.h"
#include "inputs.h"
#include "manifest.h"
#include "options.h"
#include "store.h"
#include "symbols.h"
#include "text.h"

/* What became of a kind of things. */
struct pack_tally {
    size_t count;
    size_t missing; /* of them: without any symbols */
};

/* The spool that is packed. */
struct packing {
    const struct tool_options *options;
    enum manifest_level level;
    struct store *store;
    struct symbols *symbols;
    struct sym_archive *known; /* the store as it was before; NULL: a tar file, where nothing was */
    const struct tool_input *input;
    const struct aggregate *aggregate;
    struct collected collected;
    struct earlier earlier; /* other manifests of this capture */
    struct manifest manifest;
    struct pack_tally files, maps; /* mapped files, perf maps; the manifest has the kernel */
    size_t files_there;            /* for which nothing had to be written */
    struct text_buffer report;     /* lines of --verbose */
};

/* Each fills its part of the manifest. 0, or -1 after an error message. */
int pack_modules(struct packing *p);
int pack_kernel(struct packing *p);
int pack_maps(struct packing *p);

/* "symbols: ..."; -1. */
int pack_symbols_error(struct packing *p);

/* A copy of a text, malloc'ed; NULL of NULL. */
char *pack_copy(const char *text);

/* Adds a file of the store to a list, once; name is copied. */
void pack_add_file(struct manifest_files *files, const char *name, const struct stored *stored);

/* The same for one that may be there: adds what is. 0, or -1 after an error message. */
int pack_add_existing(struct packing *p, struct manifest_files *files, const char *name);

#endif
