/* SPDX-License-Identifier: MIT */
/* perf-PID.map files: names of generated code that its runtime wrote down. */
#ifndef SYMINT_PERFMAP_H
#define SYMINT_PERFMAP_H

#include "segments.h"
#include "spool/sym.h"

struct symint_perf_entry {
    uint64_t start;
    uint64_t end;
    uint32_t name; /* offset and size in the map's text */
    uint32_t name_size;
};

struct symint_perf_map {
    char *text;                        /* the names, one after the other */
    struct symint_perf_entry *entries; /* in the order of the file */
    size_t count;
    uint64_t bad_lines;
    struct symint_segments index; /* owners are entries */
};

/* Parses a map in memory, and frees its text (malloc'ed). 0; SYM_ERR_NOMEM; SYM_ERR_LIMIT (nothing
 * is kept then). */
int symint_perf_map_parse(struct symint_perf_map *m, char *text, size_t size);
/* Reads a map from a descriptor, which stays the caller's. 0 with *miss NONE, or why there is no
 * map: UNREADABLE, TOO_LARGE (for a limit, or for memory) or DAMAGED (no line of it is an entry).
 * SYM_ERR_NOMEM when there is not even memory for a small one. */
int symint_perf_map_load(struct symint_perf_map *m, int fd, enum sym_miss *miss);
void symint_perf_map_free(struct symint_perf_map *m);

/* The entry that contains an address, NULL: none. */
const struct symint_perf_entry *symint_perf_map_find(const struct symint_perf_map *m,
                                                     uint64_t address);

#endif
