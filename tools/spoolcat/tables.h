/* SPDX-License-Identifier: MIT */
/* spoolcat --modules and --threads, and what the other views count or show in the same way. */
#ifndef SPOOLCAT_TABLES_H
#define SPOOLCAT_TABLES_H

#include "aggregate.h"
#include "views.h"

view_fn modules_print;
view_fn threads_print;

/* A thread, or a process in place of its threads, and its samples, whatever it was called when. */
struct task {
    int32_t pid;
    uint64_t tid;
    uint64_t samples;
    uint64_t first_ns, last_ns;
    uint64_t gaps, gap_ns;
};

/* The threads with selected samples, ascending pid and tid, from an aggregate with per_thread and
 * source_stats. *count of them; to be freed with free(). */
struct task *tasks_of_threads(const struct aggregate *a, size_t *count);

/* Reads an input to its end and counts it. INPUT_FAILED after a message; aggregate_free in any
 * case. */
enum input_end read_counted(struct aggregate *a, const struct aggregate_options *options,
                            struct tool_input *in, const struct tool_options *o,
                            struct progress *progress);

/* The first line of the --verbose report, when that is wanted. */
void report_view(const struct tool_options *o, const struct tool_input *in, uint64_t low_ns,
                 uint64_t high_ns);

/* A clean name for text; "-" without one. */
void print_name(struct tool_output *out, const char *name, size_t size);

/* For JSON: key and clean name, null without one. */
struct json_writer;
void key_clean(struct json_writer *w, const char *key, const char *name, size_t size);

#endif
