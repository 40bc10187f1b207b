/* SPDX-License-Identifier: MIT */
/*
 * Defaults of a recording.
 */
#include <string.h>

#include "spool/record.h"

void record_options_init(struct record_options *options, size_t size)
{
    const struct record_options defaults = {
        .size = size,
        .frequency_hz =
            999, /* not 1,000: in step with timers of the sampled program it would mislead */
        .stack_size_bytes = 32 << 10,
        .event = RECORD_EVENT_AUTO,
        .spool_version = 3,
    };

    /* The caller may know a shorter struct, or a longer one, which opening then refuses. */
    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}
