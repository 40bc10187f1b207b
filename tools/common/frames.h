/* SPDX-License-Identifier: MIT */
/*
 * Output frames: what a resolved frame is called in every document, and which of the
 * shaping options it meets. Nothing here knows a document's syntax.
 */
#ifndef TOOLS_FRAMES_H
#define TOOLS_FRAMES_H

#include "labels.h"
#include "options.h"
#include "symbols.h"
#include "text.h"

enum {
    FRAME_KERNEL = 1 << 0,
    FRAME_PYTHON = 1 << 1,    /* named by a Python entry of a perf map */
    FRAME_MACHINERY = 1 << 2, /* the interpreter's own code: hidden in stacks with a Python frame */
    FRAME_TRUNCATED = 1 << 3, /* the marker */
    FRAME_JIT = 1 << 4,       /* perf map or recorded JIT name, or generated code */
    FRAME_NAMED = 1 << 5,
    FRAME_INLINED = 1 << 6,
    FRAME_PLACEHOLDER = 1 << 7, /* stands for no address */
    FRAME_FILTER = 1 << 8,      /* --frame-filter matches */
    FRAME_ROOT_AT = 1 << 9,
    FRAME_SKIP_BELOW = 1 << 10,
    FRAME_UNPINNED = 1 << 11 /* the spool names no module for it */
};

/* Names and paths are cut behind 64 KiB, and end in "..." then. Texts are clean UTF-8 and borrowed from the naming
 * buffers: valid until the next frame is named. */
struct out_frame {
    const char *name; /* never empty */
    size_t name_size;
    const char *linkage;               /* raw symbol where it differs from the name; NULL: none */
    const char *file;                  /* NULL: unknown */
    uint32_t line, column, start_line; /* 0: unknown */
    const char *module; /* base name, or a pseudo name in brackets; NULL for placeholders */
    size_t module_size;
    uint64_t abs;   /* 0 for placeholders */
    uint32_t flags; /* FRAME_* */
    enum sym_origin origin;
    enum sym_kind kind;
    enum sym_miss miss;
    const struct spool_module *source_module; /* NULL: none */
    const char *module_path; /* of source_module, with --trim-path; not clean, not terminated */
    size_t module_path_size;
    uint32_t module_id; /* its id; SPOOL_NO_ID: none */
    uint64_t rel;
    uint32_t level;              /* in its inline chain, 0 is the innermost ... */
    uint32_t level_count;        /* ... of so many */
    uint64_t offset;             /* from the function's start */
    const struct sym_frame *sym; /* NULL with --no-symbols and for placeholders */
};

/* A text that is long: cleaned, and compared with the filters, once for all frames that have it. */
struct long_text {
    char *clean;
    size_t size;
    uint32_t flags; /* that the filters give a name */
    bool matched;   /* they were asked */
};

/* Buffers for the texts of one frame. Starts as {0}. */
struct frame_names {
    struct text_buffer name;
    struct text_buffer file;
    struct text_buffer module;
    struct text_buffer raw;
    struct text_buffer source_path, module_path; /* trimmed; not clean */
    struct labels long_labels;                   /* raw, to find them; set up with the first one */
    struct long_text *long_texts;
    size_t long_capacity;
};
void frame_names_free(struct frame_names *n);

/* How many output frames a resolved frame has: its inline chain, of which --no-inlines leaves the function itself. At
 * least 1. */
size_t frames_count(const struct resolved *r, const struct shape_options *shape);

/* Fills *out with output frame `index` (0 is the innermost) of a resolved frame. */
void frames_name(struct frame_names *n, const struct resolved *r, size_t index,
                 const struct shape_options *shape, struct out_frame *out);

/* What stands for a frame without a name, in its module's terms where it has a module: the address, or the start of the
 * function where only that is known, so that all addresses of the function are one frame. s: NULL with --no-symbols. */
uint64_t frames_shown_address(const struct resolved *r, const struct sym_frame *s);

/* A placeholder: "[no frames]", "[12 frames omitted]". */
void frames_placeholder(struct frame_names *n, const char *name, const struct shape_options *shape,
                        struct out_frame *out);

#endif
