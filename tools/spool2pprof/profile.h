/* SPDX-License-Identifier: MIT */
/* The run of spool2pprof, shared by the files that write samples. Nobody else's. */
#ifndef TOOLS_PROFILE_H
#define TOOLS_PROFILE_H

#include "cells.h"
#include "envelope.h"
#include "labelsets.h"
#include "locations.h"
#include "mappings.h"
#include "pprof.h"
#include "stacks.h"
#include "stringtable.h"

/* What the header says about all inputs together. */
struct profile_facts {
    uint64_t samples_before;  /* selected ones of the inputs before the one at hand */
    const char *without_time; /* an input with selected samples that states no interval; or NULL */
    uint64_t interval_ns;     /* the largest */
    bool has_wall;
    int64_t wall_ns; /* of the earliest sample */
    uint64_t duration_ns;
    uint64_t lost, truncated;
    bool cut;
    uint64_t *damages; /* byte offsets, one an input */
    size_t damage_count;
    uint64_t time_ns; /* sum of all samples */
    bool time_overflow;
};

struct profile {
    const struct tool_options *options;
    const struct pprof_options *pprof;
    struct stacks stacks;
    struct stringtable strings;
    struct mappings mappings;
    struct locations locations;
    struct labelsets labelsets;
    struct cells cells; /* without --timestamps */
    struct profile_facts facts;
    bool has_time;
    struct tool_output *out;
    struct envelope *envelope;
    uint64_t last_samples;       /* selected ones of the input at hand */
    bool has_source;             /* the source of the last cell, ... */
    uint32_t source, source_set; /* ... its labels ... */
    int32_t source_pid;          /* ... and its process */
};

/* Wall time in ns since 1970, at the ends of what 64 bits hold when it lies beyond. False when it is not known. */
bool profile_wall_ns(const struct spool_reader *reader, uint64_t time_ns, int64_t *wall_ns);

/* Writes a sample an event, in time order over all inputs. 0, or -1 after an error message. */
int profile_write_events(struct profile *p);

#endif
