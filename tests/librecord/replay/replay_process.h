/* SPDX-License-Identifier: MIT */
/*
 * The recorded samples, each with what was mapped in its process at its time. All of it is worked out ahead, so
 * that a pass over the samples is nothing but walks.
 */
#ifndef REPLAY_PROCESS_H
#define REPLAY_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "perf_data.h"

struct replay_mapping {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    uint32_t module;
};

/* Executable mappings by address. The generation follows unwind.h's rule: it changes when something was replaced or
 * removed, not when something was added. */
struct replay_view {
    struct replay_mapping *mappings;
    size_t count;
    uint64_t generation;
};

struct replay_sample {
    const struct perf_event *event;
    const struct replay_view *view;
};

struct replay {
    struct replay_sample *samples;
    size_t count;
    const char **paths; /* by module; point into data */
    size_t path_count;
    struct replay_view **views; /* all of them */
    size_t view_count;
};

/* data must outlive it. Exits with 2 when there is no memory. */
void replay_prepare(struct replay *replay, const struct perf_data *data);
void replay_free(struct replay *replay);

/* The mapping that contains the address, NULL: none. */
static inline const struct replay_mapping *replay_mapping_at(const struct replay_view *view,
                                                             uint64_t address)
{
    size_t low = 0, high = view->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (address >= view->mappings[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    return low < view->count && address >= view->mappings[low].start ? &view->mappings[low] : NULL;
}

#endif
