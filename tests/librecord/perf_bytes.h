/* SPDX-License-Identifier: MIT */
/* Records as the kernel writes them, for tests. */
#ifndef TESTS_PERF_BYTES_H
#define TESTS_PERF_BYTES_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "perfrec.h"

#define PERF_BYTES_TYPE                                                             \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

struct perf_bytes {
    uint64_t words[8192];
    size_t size;
};

static inline void perf_bytes_add(struct perf_bytes *b, const void *data, size_t size)
{
    memcpy((uint8_t *)b->words + b->size, data, size);
    b->size += size;
}

static inline void perf_bytes_u64(struct perf_bytes *b, uint64_t value)
{
    perf_bytes_add(b, &value, sizeof value);
}

static inline void perf_bytes_u32(struct perf_bytes *b, uint32_t value)
{
    perf_bytes_add(b, &value, sizeof value);
}

static inline void perf_bytes_u16(struct perf_bytes *b, uint16_t value)
{
    perf_bytes_add(b, &value, sizeof value);
}

/* With its NUL, padded to 8 bytes. */
static inline void perf_bytes_text(struct perf_bytes *b, const char *text)
{
    perf_bytes_add(b, text, strlen(text) + 1);
    while (b->size % 8 != 0)
        perf_bytes_add(b, "", 1);
}

static inline void perf_bytes_begin(struct perf_bytes *b, uint32_t type, uint16_t misc)
{
    b->size = 0;
    perf_bytes_u32(b, type);
    perf_bytes_u16(b, misc);
    perf_bytes_u16(b, 0);
}

/* Sets the header's size. */
static inline void perf_bytes_end(struct perf_bytes *b)
{
    struct perf_event_header header;

    memcpy(&header, b->words, sizeof header);
    header.size = (uint16_t)b->size;
    memcpy(b->words, &header, sizeof header);
}

/* The sample id, and the end. */
static inline void perf_bytes_end_id(struct perf_bytes *b, uint32_t pid, uint32_t tid,
                                     uint64_t time_ns, uint32_t cpu)
{
    perf_bytes_u32(b, pid);
    perf_bytes_u32(b, tid);
    perf_bytes_u64(b, time_ns);
    perf_bytes_u32(b, cpu);
    perf_bytes_u32(b, 0);
    perf_bytes_u64(b, 4711);
    perf_bytes_end(b);
}

/* The fields that every sample has. */
static inline void perf_bytes_begin_sample(struct perf_bytes *b, uint64_t time_ns)
{
    perf_bytes_begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    perf_bytes_u64(b, 4711);     /* identifier */
    perf_bytes_u64(b, 0x401234); /* ip */
    perf_bytes_u32(b, 12);       /* pid */
    perf_bytes_u32(b, 13);       /* tid */
    perf_bytes_u64(b, time_ns);
    perf_bytes_u32(b, 3); /* cpu */
    perf_bytes_u32(b, 0xffffffff);
    perf_bytes_u64(b, 1001001); /* period */
}

#endif
