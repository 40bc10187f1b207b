/* SPDX-License-Identifier: MIT */
/*
 * The profile of a thread: its samples in time order, each one interval wide, with what lies between them as gaps
 * (gap.h).
 */
#ifndef TOOLS_TIMELINE_H
#define TOOLS_TIMELINE_H

#include "json.h"
#include "ss_frames.h"
#include "stacks.h"

/* Numbers of a document are exact in every reader below this. */
#define SS_NUMBER_LIMIT ((uint64_t)1 << 53)

/* A gap costs the importer of speedscope time for each frame below the root, if it is an empty stack among others. */
#define TIMELINE_SAMPLED_GAPS 20000

struct timeline {
    struct stacks_thread thread;
    uint64_t interval_ns; /* 0: a sample counts 1, and there are no gaps */
    uint64_t zero_ns;     /* the earliest sample of the thread's input in the document */
    /* From timeline_measure on. */
    uint64_t samples;
    uint64_t gaps;
    uint64_t end; /* on an axis that begins one interval before zero_ns */
};

/* What to write. */
struct timeline_document {
    const struct stacks *stacks;
    struct ss_frames *frames;
    struct tool_output *out;
    uint64_t end;    /* of all profiles */
    bool time;       /* nanoseconds */
    bool merge_runs; /* adjacent equal stacks are one entry */
};

/* The earliest sample of a thread in the document; UINT64_MAX when it has none. 0, or -1 after an error message. */
int timeline_first(const struct stacks *s, const struct stacks_thread *thread, uint64_t *first_ns);

/* Counts samples and gaps, and finds the end. 0; -1 after an error message: no room to sort, or numbers that go beyond
 * SS_NUMBER_LIMIT. */
int timeline_measure(const struct stacks *s, struct timeline *t);

/* Writes the profile. It is evented with more than TIMELINE_SAMPLED_GAPS gaps. 0, or -1 after an error message. */
int timeline_write(const struct timeline_document *d, const struct timeline *t, const char *name,
                   size_t name_size);

/* The profile up to its content: type, name, unit, startValue and endValue. */
void timeline_begin_profile(struct json_writer *w, const char *type, const char *name,
                            size_t name_size, bool time, uint64_t end);

/* What a weight or a time that is too large means to the user. */
void timeline_report_limit(void);

#endif
