/* SPDX-License-Identifier: MIT */
/*
 * What the command lines of the tools say, as plain structs: common options, selection, shaping, symbols. Filled by
 * cli.c from one table, read by everything else.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool/sym.h"

enum progress_mode { PROGRESS_AUTO = 0, PROGRESS_ALWAYS, PROGRESS_NEVER };
enum damage_mode { DAMAGE_DEFAULT = 0, DAMAGE_STRICT, DAMAGE_SALVAGE };

struct text_list {
    const char **items; /* borrowed from argv */
    size_t count;
};

struct number_list {
    uint64_t *items; /* sorted, each once */
    size_t count;
};

struct select_options {
    bool has_pids, has_tids; /* whether the option was given at all */
    struct number_list pids;
    struct number_list tids;
    struct text_list comm_globs; /* any of them matches; none given: all */
    struct text_list thread_globs;
    bool has_from, has_to;
    uint64_t from_ns; /* on the timeline that starts at the first sample of the file */
    uint64_t to_ns;
};

/* --trim-path OLD=NEW */
struct trim_rule {
    const char *old; /* borrowed from argv; not terminated */
    size_t old_size; /* >= 1 */
    const char *new; /* may be "" */
};

struct trim_list {
    struct trim_rule *items; /* in the order in which they were given */
    size_t count;
};

enum kernel_mode { KERNEL_KEEP = 0, KERNEL_DROP, KERNEL_ONLY };

struct shape_options {
    enum kernel_mode kernel;
    bool show_runtime; /* --runtime=show */
    enum sym_demangle demangle;
    bool has_frame_filter, has_root_at, has_skip_below;
    regex_t frame_filter, root_at, skip_below;  /* POSIX extended */
    const char *root_at_text, *skip_below_text; /* as given; borrowed from argv */
    bool has_max_depth;
    uint32_t max_depth; /* >= 1 */
    bool fold_recursion;
    bool unresolved_module; /* --unresolved=module */
    bool no_inlines;        /* an address is one frame: the function whose code it is */
    struct trim_list trim_paths;
};

struct symbol_options {
    bool no_symbols;
    const char *sysroot;          /* NULL: "/" */
    struct text_list debug_dirs;  /* none: SPOOL_DEBUG_DIRS, else libsym's own */
    struct text_list symbol_dirs; /* --symbols */
    const char *perf_map_dir;     /* NULL: libsym's own places */
    enum sym_perf_maps perf_maps;
    struct number_list perf_map_pids;
    const char *kallsyms; /* NULL: a symbol folder's, else automatic */
    const char *vmlinux;  /* NULL: none */
    bool no_kernel_symbols;
    bool debuginfod;
    bool no_lines; /* no option: set by a tool that shows no lines */
};

struct tool_options {
    const char *output; /* NULL or "-": standard output */
    bool quiet;
    bool verbose;
    enum progress_mode progress;
    enum damage_mode damage;
    const char **inputs; /* at least one; "-" is standard input */
    size_t input_count;
    struct select_options select;
    struct shape_options shape;
    struct symbol_options symbols;
};

#endif
