/* SPDX-License-Identifier: MIT */
/* The report of --verbose: what an input was, what was used of it, where names came from and what is missing. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate.h"
#include "inputs.h"
#include "text.h"

/* Counts of one input. */
struct input_report {
    uint64_t samples;       /* that count */
    uint64_t stacks;        /* distinct (process, stack); counted with --verbose only */
    uint64_t frames;        /* distinct frames in them */
    uint64_t file_frames;   /* of them, those in files that processes have mapped, ... */
    uint64_t kernel_frames; /* ... and in the kernel */
    uint64_t named_elf, named_perf_map, named_kernel, named_jit;
    uint64_t truncated_stacks; /* of them; the same */
};

/* Appends the first line about an input that was read: what it is. Its samples are from low_ns to high_ns. */
void report_spool(struct text_buffer *out, const struct tool_input *in, uint64_t low_ns,
                  uint64_t high_ns);

/* Appends the lines about an input, without those about missing names. */
void report_input(struct text_buffer *out, const struct tool_input *in, const struct aggregate *a,
                  const struct input_report *r);

/* Appends "no symbols: PATH (WHY): N samples". */
void report_miss(struct text_buffer *out, const char *path, size_t path_size, const char *why,
                 const char *detail, uint64_t samples);

/* Appends "no debug info: PATH (DETAIL)". */
void report_debug(struct text_buffer *out, const char *path, size_t path_size, const char *detail);

/* "vmlinux: TEXT": what became of the file that the user named. */
void report_vmlinux(struct text_buffer *out, const char *text);

struct report_path {
    const char *path;
    size_t size;
};

/* Appends a line about names of files that nothing identifies, for one that was built anew since gives wrong ones; the
 * first few are listed. kernel: that of the kernel is one, too; kernel_detail: which, may be "". Nothing without such
 * names. */
void report_unverified(struct text_buffer *out, const struct report_path *files, size_t count,
                       bool kernel, const char *kernel_detail);

#endif
