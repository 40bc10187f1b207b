/* SPDX-License-Identifier: MIT */
/* The inside of a context, for the library's own files and its tests. */
#ifndef SYMINT_CONTEXT_H
#define SYMINT_CONTEXT_H

#include "boot.h"
#include "kernel.h"
#include "kmodule.h"
#include "ksymbol.h"
#include "module.h"
#include "packed.h"
#include "process.h"
#include "spool/sym.h"
#include "strtab.h"
#include "vmlinux.h"

/* An answer that was given. a, b and address are what it depends on: see answer_key in
 * resolve.c. */
struct symint_answer {
    uint64_t a;
    uint64_t b;
    uint64_t address;
    const struct sym_frame *frames; /* NULL: a free slot */
    size_t count;
};

struct sym_context {
    const struct symint_system *system;
    bool open;
    struct sym_options options; /* texts are in the arena */
    int32_t *pids;              /* for SYM_PERF_MAPS_LIST, sorted */
    struct symint_strings strings;
    struct sym_archive **archives;        /* of options.symbol_dirs, search.archive_count of them */
    struct symint_search_options search;  /* texts are those of options and of capture */
    struct symint_debuginfod *debuginfod; /* NULL: nothing is asked of the network */
    struct symint_registry registry;

    struct sym_capture capture;
    uint32_t capture_generation; /* answers about another capture's processes do not count */
    enum symint_boot boot;
    struct symint_live live; /* of the process that was asked about last ... */
    int32_t live_pid;        /* ... 0: none */

    struct symint_vmlinux vmlinux;
    struct symint_kmodules kmodules;
    struct symint_kernel kernel; /* kallsyms or System.map; detail is about all three */
    enum sym_kernel_state kernel_state;
    struct symint_ksymbols ksymbols;
    struct symint_packed_set kernel_packed;  /* of the capture */
    struct symint_code_range *kernel_pieces; /* of the function of the last answer, reused */
    size_t kernel_piece_capacity;
    uint32_t kernel_generation; /* answers of an earlier table do not count */

    struct symint_processes processes;

    struct symint_answer *answers;
    size_t answer_count;
    size_t answer_capacity; /* a power of two or 0 */

    struct sym_frame *native_frames; /* the callback's, reused */
    size_t native_capacity;

    char error[512];
};

/* Keeps a message and returns the code. */
int symint_fail(struct sym_context *c, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int symint_fail_plain(struct sym_context *c, int code); /* the code's own text */

#endif
