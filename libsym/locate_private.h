/* SPDX-License-Identifier: MIT */
/* A search for the files of one module: locate.c finds the binary, locate_debug.c the rest. */
#ifndef SYMINT_LOCATE_PRIVATE_H
#define SYMINT_LOCATE_PRIVATE_H

#include "debug_files.h"
#include "locate.h"

struct symint_search {
    struct symint_arena *arena;
    const struct symint_search_options *options;
    const struct symint_wanted *wanted;
    char *root;                      /* in which recorded paths lie, malloc'ed; NULL: ours */
    struct symint_debug_file binary; /* without elf: not found */
    struct symint_debug_file debug[2];
    /* Which of the three have symbols and debug information. NULL: missing. */
    struct symint_debug_file *symbols;
    struct symint_debug_file *info;
    bool root_unknown; /* the process has a root that we may not enter */
    bool outside;      /* a file of ours is tried for a process with a root of its own */
    bool verified;
    struct symint_located *out;
    bool told; /* detail is about the file that is used */
};

/* Sets the detail. 0 or SYM_ERR_NOMEM. */
int symint_search_detail(struct symint_search *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Looks for what the binary lacks of symbols and debug information. Without a binary the build id
 * must be known. 0 or SYM_ERR_NOMEM. */
int symint_search_debug(struct symint_search *s);

#endif
