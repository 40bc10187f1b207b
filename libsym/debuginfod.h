/* SPDX-License-Identifier: MIT */
/* Debug files from servers, through libdebuginfod, which is loaded when it is first needed. */
#ifndef SYMINT_DEBUGINFOD_H
#define SYMINT_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

/* How long may be waited. The client looks at the clock once a second, so a wait may take that
 * much longer. */
struct symint_debuginfod_limits {
    uint32_t file_ms;
    uint32_t run_ms; /* for all files together */
};

struct symint_debuginfod;

/* Nothing is loaded or asked yet. NULL: out of memory. */
struct symint_debuginfod *symint_debuginfod_new(const struct symint_debuginfod_limits *limits);
void symint_debuginfod_free(struct symint_debuginfod *d);

/* Asks the servers in DEBUGINFOD_URLS for the debug file of a build id; whether it is the right
 * one is the caller's to check. Each build id is asked for once, and nothing more when servers
 * fail. 0 with *fd and *path (malloc'ed) the caller's, or *fd -1 and *why, which is valid as long
 * as d; SYM_ERR_NOMEM. */
int symint_debuginfod_find(struct symint_debuginfod *d, const uint8_t *id, size_t id_size, int *fd,
                           char **path, const char **why);

#endif
