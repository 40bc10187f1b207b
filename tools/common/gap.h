/* SPDX-License-Identifier: MIT */
/*
 * What a gap is on a timeline where each sample takes one interval (output-formats.md 5.5). A sample at time t is the
 * end of the interval that it stands for. `due` is when the next sample of a thread is expected: at first the
 * earliest sample of all threads, then an interval after each sample, and after a gap an interval after the sample
 * that ended it.
 */
#ifndef TOOLS_GAP_H
#define TOOLS_GAP_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a sample comes half an interval late or later, which makes a gap of time_ns - due_ns before it. */
static inline bool gap_before(uint64_t time_ns, uint64_t due_ns, uint64_t interval_ns)
{
    return time_ns > due_ns && time_ns - due_ns >= interval_ns - interval_ns / 2;
}

static inline uint64_t gap_saturating_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
