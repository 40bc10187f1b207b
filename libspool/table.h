/* SPDX-License-Identifier: MIT */
/*
 * The definitions of a spool: modules, frames, stack nodes, threads, each in an array by id, and the rule for which
 * module a frame has in a process. Used by the reader; the writer keeps its own (intern.h).
 */
#ifndef SPOOLINT_TABLE_H
#define SPOOLINT_TABLE_H

#include "spool/spool.h"

/* 16 bytes a frame: there may be 2^32-2 of them. */
struct table_frame {
    uint64_t address; /* pinned: in the file; unpinned: absolute; marker: 0 */
    uint32_t module;  /* pinned: module id; unpinned: modules defined before it (its limit) */
    uint8_t kind;     /* enum spool_frame_kind */
    uint8_t kernel;
};

/* What is known of a module id beside its record. */
struct table_module {
    const uint8_t *build_id; /* the arena's; NULL: not recorded */
    uint8_t build_id_size;
    bool is_note; /* the id is an annotation's */
};

struct table {
    uint32_t version;
    uint32_t module_count;
    uint32_t annotation_count;
    uint32_t frame_count;
    uint32_t stack_count;
    uint32_t thread_count;
    uint64_t sample_count;
    uint64_t python_count;
    uint64_t time_ns;       /* of the last sample */
    uint64_t first_time_ns; /* of the first */

    struct spool_module *modules; /* annotations take a slot too ... */
    struct table_module *extras;  /* ... and are marked here */
    struct table_frame *frames;
    struct spool_stack_node *stacks;
    uint32_t *depths;
    struct spool_thread *threads;
    size_t module_capacity, frame_capacity, stack_capacity, depth_capacity, thread_capacity;
    size_t extra_capacity;

    uint64_t hash_seed;
    struct arena *arena;          /* paths and JIT names */
    struct module_class *classes; /* by process, and one for the kernel */
    size_t class_count, class_capacity;
    struct locate_memo *memo;
    size_t memo_count, memo_capacity;
    uint64_t *kernel_addresses;
    size_t kernel_address_capacity;

    bool
        list_retired; /* wanted: the modules that the last retirement of a process retired, ascending */
    uint32_t *retired;
    size_t retired_count, retired_capacity;

    void *grown; /* scratch of GROW */

    /* clock annotation */
    bool has_clock;
    uint64_t clock_monotonic_ns;
    uint64_t clock_wall_ns;
};

void spoolint_table_init(struct table *t);
void spoolint_table_free(struct table *t);

/* Take a decoded record in; byte strings are copied and *rec made to point to the copies. Return 0, SPOOL_ERR_NOMEM
 * or _LIMIT, then nothing was added. */
int spoolint_table_add_module(struct table *t, struct spool_record *rec);
int spoolint_table_add_frame(struct table *t, const struct spool_frame *frame);
int spoolint_table_add_stack(struct table *t, struct spool_stack *stack);
int spoolint_table_add_thread(struct table *t, const struct spool_thread *thread);
/* 0, or SPOOL_ERR_NOMEM when the list of t->list_retired has no room: then it was done in part. */
int spoolint_table_retire_process(struct table *t, int32_t pid);
void spoolint_table_retire_module(struct table *t, uint32_t id);

bool spoolint_table_get_frame(const struct table *t, uint32_t id, struct spool_frame *out);
int spoolint_table_locate(struct table *t, uint32_t frame, int32_t pid, uint32_t *module_id,
                          uint64_t *rel);
int spoolint_table_kernel_addresses(struct table *t, const uint64_t **addresses, size_t *count);

#endif
