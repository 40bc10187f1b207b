/* SPDX-License-Identifier: MIT */
/*
 * The bridge from a spool's frames to libsym: modules, kernel symbols and Python marks of the input at hand are
 * described to one symbol context that all inputs share.
 */
#ifndef TOOLS_SYMBOLS_H
#define TOOLS_SYMBOLS_H

#include "aggregate.h"
#include "inputs.h"
#include "names.h"
#include "options.h"
#include "spool/spool.h"
#include "spool/sym.h"

struct symbols;

/* A frame in a process, located and named. */
struct resolved {
    bool truncated; /* the marker: nothing else is set */
    bool kernel;
    bool unpinned;                     /* the spool names no module for it */
    bool per_process;                  /* the answer may differ in another process ... */
    bool per_epoch;                    /* ... in another kernel epoch */
    uint32_t module_id;                /* SPOOL_NO_ID: none */
    const struct spool_module *module; /* NULL: none; valid while the reader is */
    uint64_t abs, rel;                 /* rel: with a module */
    const struct sym_frame *frames;    /* innermost first; NULL with --no-symbols */
    size_t frame_count;
};

/* Whether every archive of --symbols is a folder or a file that may be one; symbols_new opens it. 0, or -1 after an
 * error message. For the folders of other options there is a warning where they are none. To be called once, by main. */
int symbols_check_folders(const struct symbol_options *o);

/* NULL after an error message. *o must outlive it. */
struct symbols *symbols_new(const struct symbol_options *o, const struct shape_options *shape);
void symbols_free(struct symbols *s);

/* Whether kernel frames are to have names: kernel epochs count then (aggregate_options.epochs). */
static inline bool symbols_of_kernel(const struct symbol_options *o)
{
    return !o->no_symbols && !o->no_kernel_symbols;
}

/* Begins an input that was read to its end; both are borrowed until the next one begins. 0, or -1 after an error
 * message. A kallsyms file that cannot be used is none: there is a warning, once, and kernel frames stay addresses. */
int symbols_begin(struct symbols *s, const struct tool_input *in, const struct aggregate *a);

/* Asks for all frames of the input whose stacks count and whose names are in files, in the order in which files are
 * read fastest: libsym remembers the answers. What symbols_resolve says does not change. After symbols_begin. 0, or
 * -1 after an error message. */
int symbols_prepare(struct symbols *s);

/* As symbols_begin, for an input that is still being read, with aggregate_begin and its like: answers are what is
 * known when they are asked for. Modules are described when the first frame of theirs is asked for, the capture and
 * the kernel when the first frame at all and of the kernel is. */
void symbols_begin_early(struct symbols *s, const struct tool_input *in, const struct aggregate *a);

/* Changes when answers given before might be others now, because more of the kernel is known. May change with every
 * symbols_resolve. */
uint32_t symbols_generation(const struct symbols *s);

/* Resolves a frame for a source's process. 0, or -1 after an error message. */
int symbols_resolve(struct symbols *s, uint32_t frame, const struct source *source,
                    struct resolved *out);

/* For those who pack symbols. The context: NULL with --no-symbols. */
struct sym_context *symbols_context(struct symbols *s);
/* The handle of a module of the present input, SYM_NO_MODULE when it is none. 0, or -1 after an error message. */
int symbols_module_handle(struct symbols *s, uint32_t module_id, uint32_t *handle);

/* For the report: what became of a module's file where that is why it has no names, e.g. "no such file"; NULL when its
 * tables were read or not needed. *detail may be "". */
const char *symbols_miss_text(const struct symbols *s, uint32_t module_id, const char **detail);
/* What is wrong with a debug file that was found for a module but cannot be used, so that there are fewer names, no
 * lines and no inlined functions; NULL when nothing is. Valid until symbols_free. */
const char *symbols_debug_text(const struct symbols *s, uint32_t module_id);
/* Why the kernel has no names; NULL when it has, or when no kernel frame was asked for. *detail: what was tried, may be
 * "". */
const char *symbols_kernel_text(const struct symbols *s, const char **detail);
/* Whether it is the running kernel's settings that keep its names back. */
bool symbols_kernel_restricted(const struct symbols *s);
/* What became of the file of --vmlinux, once kernel frames were asked for; NULL: there is none, or nothing to say. */
const char *symbols_vmlinux_text(const struct symbols *s);
/* Why the perf map of a process gave no names, e.g. "no such file"; NULL when no query needed that map or it has
 * entries. *path: the file that was tried, valid until symbols_free; "" with NULL. */
const char *symbols_perf_map_text(const struct symbols *s, int32_t pid, const char **path);

#endif
