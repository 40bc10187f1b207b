/* SPDX-License-Identifier: MIT */
/*
 * A profile on its way out: messages are packed one by one as parts of one Profile, which on the wire is what follows
 * when they are put behind each other, and go through gzip to the output. Nobody else knows protobuf-c, and nothing
 * of the document stays in memory.
 */
#ifndef TOOLS_ENVELOPE_H
#define TOOLS_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output.h"
#include "text.h"

struct envelope;

/* gzip_level: 1 to 9, or 0 for the bare message. NULL after an error message. out must outlive it. */
struct envelope *envelope_new(struct tool_output *out, int gzip_level);
void envelope_free(struct envelope *e);

/* Writes what is left, and the gzip trailer. 0, or -1 after an error message. Errors of the output are kept there. */
int envelope_finish(struct envelope *e);

/* All numbers of texts below are indexes of string_table; 0 is none. */

struct envelope_value_type {
    uint32_t type, unit;
};

struct envelope_header {
    struct envelope_value_type sample_types[2];
    size_t sample_type_count;
    struct envelope_value_type period_type;
    uint32_t default_sample_type;
    int64_t period;
    int64_t time_ns, duration_ns; /* 0: absent */
    const int64_t *comments;
    size_t comment_count;
};
void envelope_header(struct envelope *e, const struct envelope_header *header);

/* A text (str) or a number (num and its unit). */
struct envelope_label {
    uint32_t key;
    uint32_t str;
    int64_t num;
    uint32_t num_unit;
};
/* Appends a label to *packed, in the form in which envelope_sample takes labels. */
void envelope_pack_label(struct text_buffer *packed, const struct envelope_label *label);

/* values: one or two. labels: packed ones behind each other, may be NULL when there are none. */
void envelope_sample(struct envelope *e, uint64_t *locations, size_t location_count,
                     const int64_t *values, size_t value_count, const char *labels,
                     size_t labels_size);

struct envelope_line {
    uint64_t function;
    uint32_t line, column;
};
void envelope_location(struct envelope *e, uint64_t id, uint64_t mapping, uint64_t address,
                       const struct envelope_line *lines, size_t line_count);

struct envelope_function {
    uint64_t id;
    uint32_t name, system_name, filename;
    uint32_t start_line;
};
void envelope_function(struct envelope *e, const struct envelope_function *function);

struct envelope_mapping {
    uint64_t id;
    uint64_t start, limit, file_offset;
    uint32_t filename, build_id;
    bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};
void envelope_mapping(struct envelope *e, const struct envelope_mapping *mapping);

/* The next text of string_table. */
void envelope_string(struct envelope *e, const char *text, size_t size);

#endif
