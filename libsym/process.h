/* SPDX-License-Identifier: MIT */
/* The perf maps of the processes of a capture. */
#ifndef SYMINT_PROCESS_H
#define SYMINT_PROCESS_H

#include "perfmap.h"
#include "spool/sym.h"

struct symint_process {
    int32_t pid;
    enum sym_miss miss; /* why it has no map; NONE: it has */
    const char *path;   /* of the map, or of the file that miss speaks of; in the arena */
    struct symint_perf_map map;
};

struct symint_processes {
    struct symint_process **list; /* ascending pid; the processes are in the context's arena */
    size_t count;
    size_t capacity;
};

/* Orders int32_t for qsort and bsearch. */
int symint_compare_pids(const void *a, const void *b);
/* Whether options let this process's map count. */
bool symint_perf_map_allowed(const struct sym_context *c, int32_t pid);
/* The process with its map, looked for and read at the first call. 0 or SYM_ERR_NOMEM. */
int symint_process_get(struct sym_context *c, int32_t pid, const struct symint_process **out);
void symint_processes_free(struct symint_processes *p);

#endif
