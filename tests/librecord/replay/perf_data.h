/* SPDX-License-Identifier: MIT */
/*
 * What perf record has written (perf.data, not piped, not compressed), as far as a replay of user stacks needs
 * it. For files that a test made a moment ago: what is cut off or odd is refused or left out, not repaired.
 */
#ifndef REPLAY_PERF_DATA_H
#define REPLAY_PERF_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "arch.h"

enum perf_event_kind { PERF_DATA_SAMPLE, PERF_DATA_MMAP, PERF_DATA_FORK, PERF_DATA_EXEC };

struct perf_event {
    enum perf_event_kind kind;
    int32_t pid;
    uint64_t time_ns;
    union {
        struct {
            struct regs regs;
            const uint8_t *stack; /* points into the file, 8-byte aligned; NULL: none */
            size_t stack_size;
        } sample; /* with 64-bit user registers; others are left out */
        struct {
            uint64_t start;
            uint64_t end;
            uint64_t file_offset;
            const char *path; /* points into the file, ends with NUL */
            int executable;
        } mmap;
        int32_t parent_pid; /* FORK of a process; threads are left out */
    };
};

/* Events in the order of their times; of equal times, as they stand in the file. */
struct perf_data {
    struct perf_event *events;
    size_t count;
    size_t sample_count; /* of them */
    uint8_t *bytes;      /* the file */
    size_t size;
};

/* Reads a file, keeping at most max_samples. Exits with 2 and a message when it cannot. */
void perf_data_open(struct perf_data *data, const char *path, size_t max_samples);
void perf_data_close(struct perf_data *data);

#endif
