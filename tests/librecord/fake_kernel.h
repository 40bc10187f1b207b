/* SPDX-License-Identifier: MIT */
/* What the kernel tells of processes and samples, handed to a session that has opened no event. */
#ifndef TESTS_FAKE_KERNEL_H
#define TESTS_FAKE_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf_bytes.h"
#include "session.h"

struct fake_kernel {
    struct record_session *s;
    uint64_t time_ns; /* of the next record */
    uint64_t step_ns; /* from one to the next */
};

static inline void fake_record(struct fake_kernel *k, const struct perf_bytes *b)
{
    assert_int_equal(recordint_record(k->s, b->words, b->size), 0);
    k->time_ns += k->step_ns;
}

static inline void fake_record_with_id(struct fake_kernel *k, struct perf_bytes *b, int pid,
                                       int tid)
{
    perf_bytes_end_id(b, (uint32_t)pid, (uint32_t)tid, k->time_ns, 0);
    fake_record(k, b);
}

/* An executable mapping of a file. */
static inline void fake_mmap(struct fake_kernel *k, int pid, uint64_t start, uint64_t size,
                             uint64_t inode, const char *path)
{
    struct perf_bytes b;

    perf_bytes_begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    perf_bytes_u32(&b, (uint32_t)pid);
    perf_bytes_u32(&b, (uint32_t)pid);
    perf_bytes_u64(&b, start);
    perf_bytes_u64(&b, size);
    perf_bytes_u64(&b, 0);
    perf_bytes_u32(&b, 0);
    perf_bytes_u32(&b, 0);
    perf_bytes_u64(&b, inode);
    perf_bytes_u64(&b, 0);
    perf_bytes_u32(&b, 5); /* PROT_READ | PROT_EXEC */
    perf_bytes_u32(&b, 2);
    perf_bytes_text(&b, path);
    fake_record_with_id(k, &b, pid, pid);
}

static inline void fake_comm(struct fake_kernel *k, int pid, int tid, const char *name, bool exec)
{
    struct perf_bytes b;

    perf_bytes_begin(&b, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
    perf_bytes_u32(&b, (uint32_t)pid);
    perf_bytes_u32(&b, (uint32_t)tid);
    perf_bytes_text(&b, name);
    fake_record_with_id(k, &b, pid, tid);
}

/* PERF_RECORD_FORK or PERF_RECORD_EXIT. */
static inline void fake_task(struct fake_kernel *k, uint32_t type, int pid, int tid, int parent_pid,
                             int parent_tid)
{
    struct perf_bytes b;

    perf_bytes_begin(&b, type, 0);
    perf_bytes_u32(&b, (uint32_t)pid);
    perf_bytes_u32(&b, (uint32_t)parent_pid);
    perf_bytes_u32(&b, (uint32_t)tid);
    perf_bytes_u32(&b, (uint32_t)parent_tid);
    perf_bytes_u64(&b, k->time_ns);
    fake_record_with_id(k, &b, parent_pid, parent_tid);
}

/* A sample without stack bytes: its first frame and the marker. */
static inline void fake_sample(struct fake_kernel *k, int pid, int tid, uint64_t ip,
                               uint16_t cpu_mode)
{
    struct perf_bytes b;

    perf_bytes_begin(&b, PERF_RECORD_SAMPLE, cpu_mode);
    perf_bytes_u64(&b, 1);
    perf_bytes_u64(&b, ip);
    perf_bytes_u32(&b, (uint32_t)pid);
    perf_bytes_u32(&b, (uint32_t)tid);
    perf_bytes_u64(&b, k->time_ns);
    perf_bytes_u64(&b, 0);
    perf_bytes_u64(&b, 1);
    perf_bytes_u64(&b, PERF_SAMPLE_REGS_ABI_64);
    for (uint64_t left = k->s->layout.sample_regs_user; left != 0; left &= left - 1)
        perf_bytes_u64(&b, ip); /* whatever register it is */
    perf_bytes_u64(&b, 0);      /* no stack */
    perf_bytes_end(&b);
    fake_record(k, &b);
}

#endif
