/* SPDX-License-Identifier: MIT */
/*
 * Defaults of a recording.
 */
#include "spool/record.h"

void record_options_init(struct record_options *options)
{
    *options = (struct record_options){
        .size = sizeof *options,
        .frequency_hz =
            999, /* not 1,000: in step with timers of the sampled program it would mislead */
        .stack_size_bytes = 32 << 10,
        .event = RECORD_EVENT_AUTO,
        .spool_version = 3,
    };
}
