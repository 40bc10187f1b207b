/* SPDX-License-Identifier: MIT */
/* What a recording came to, in words and as JSON, and the line of its progress. */
#ifndef SPOOLRECORD_RECORD_REPORT_H
#define SPOOLRECORD_RECORD_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "spool/record.h"
#include "text.h"

struct report_context {
    const char *name; /* of the spool */
    uint32_t stack_size_bytes;
    bool verbose;
};

/* Appends the report, a line each: what was recorded, then what is missing and what helps against that. */
void record_report_text(struct text_buffer *out, const struct record_summary *s,
                        const struct report_context *c);

/* Appends the line about lost events, and nothing when there are none. Returns whether there are. */
bool record_report_losses(struct text_buffer *out, const struct record_summary *s);

/* Appends the object of --summary=json and a line break. */
void record_report_json(struct text_buffer *out, const struct record_summary *s);

/* Appends "PROGRAM: NAME: 12.3 s, 12,345 samples, 7 lost, 1.2 MiB". */
void record_report_progress(struct text_buffer *out, const struct record_summary *s,
                            const char *name);

#endif
