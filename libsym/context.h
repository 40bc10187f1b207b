/* SPDX-License-Identifier: MIT */
/* The inside of a context, for the library's own files and its tests. */
#ifndef SYMINT_CONTEXT_H
#define SYMINT_CONTEXT_H

#include "kernel.h"
#include "module.h"
#include "perfmap.h"
#include "spool/sym.h"
#include "strtab.h"

/* The perf map of one process, read when a query first needs it. */
struct symint_process {
    int32_t pid;
    enum sym_miss miss; /* why it has no map; NONE: it has */
    const char *path;
    struct symint_perf_map map;
};

/* An answer that was given. a, b and address are what it depends on: see answer_key in
 * context.c. */
struct symint_answer {
    uint64_t a;
    uint64_t b;
    uint64_t address;
    const struct sym_frame *frames; /* NULL: a free slot */
    size_t count;
};

struct sym_context {
    bool open;
    struct sym_options options; /* texts are in the arena */
    int32_t *pids;              /* for SYM_PERF_MAPS_LIST, sorted */
    struct symint_strings strings;
    struct symint_registry registry;

    struct symint_kernel kernel;
    enum sym_kernel_state kernel_state;
    uint32_t kernel_generation; /* answers of an earlier table do not count */

    struct symint_process **processes; /* ascending pid */
    size_t process_count;
    size_t process_capacity;

    struct symint_answer *answers;
    size_t answer_count;
    size_t answer_capacity; /* a power of two or 0 */
    uint64_t answer_hits;

    struct sym_frame *native_frames; /* the callback's, reused */
    size_t native_capacity;

    char error[512];
};

/* sym_kernel_load with other paths than the running system's. */
int symint_context_load_kernel(struct sym_context *c, const struct sym_kernel *kernel,
                               const struct symint_kernel_paths *paths);

#endif
