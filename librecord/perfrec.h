/* SPDX-License-Identifier: MIT */
/*
 * Records of the kernel (perf_event_open(2), "MMAP layout") as plain structs. Works on any bytes: every
 * length in a record is checked against its size first.
 */
#ifndef RECORD_PERFREC_H
#define RECORD_PERFREC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

/* What an event was opened with, as far as it shapes records. All events of a session have the same. */
struct perfrec_layout {
    uint64_t
        sample_type; /* PERF_SAMPLE_*; IDENTIFIER, IP, TID, TIME, CPU and PERIOD are always set */
    uint64_t sample_regs_user; /* mask of PERF_REG_* */
    enum arch arch;
};

enum perfrec_kind {
    PERFREC_OTHER = 0, /* unknown or of no interest: skip */
    PERFREC_SAMPLE,
    PERFREC_MMAP,
    PERFREC_COMM,
    PERFREC_FORK,
    PERFREC_EXIT,
    PERFREC_LOST, /* lost_count records of any kind */
    PERFREC_LOST_SAMPLES,
    PERFREC_THROTTLE, /* also UNTHROTTLE: throttled false */
    PERFREC_KSYMBOL
};

struct perfrec_sample {
    uint64_t id; /* PERF_SAMPLE_IDENTIFIER */
    uint64_t ip;
    uint64_t period;
    uint16_t misc;
    const uint64_t *callchain; /* aligned, borrowed; NULL without PERF_SAMPLE_CALLCHAIN */
    size_t callchain_count;
    uint64_t regs_abi;    /* PERF_SAMPLE_REGS_ABI_*: 0 none, 1 32-bit, 2 64-bit */
    struct regs regs;     /* filled for abi 2 */
    const uint8_t *stack; /* borrowed; the bytes that were really copied (dyn_size) */
    size_t stack_size;
    bool stack_full; /* as many as asked for: there may be more */
};

struct perfrec_mmap {
    uint64_t start;
    uint64_t size;
    uint64_t file_offset;
    uint32_t
        dev_major; /* these four are 0 when the record carries a build id instead, or is an old MMAP */
    uint32_t dev_minor;
    uint64_t inode;
    uint64_t inode_gen;
    uint8_t build_id[20];
    size_t build_id_size; /* 0: none */
    bool executable;
    bool kernel;      /* about the kernel's address space */
    const char *path; /* borrowed, NUL-terminated inside the record */
};

struct perfrec {
    enum perfrec_kind kind;
    uint32_t cpu;
    int32_t
        pid; /* of the record's body for MMAP, COMM, FORK, EXIT, SAMPLE, else of its sample id; -1 or 0: outside our namespace */
    int32_t tid;
    bool has_time;
    uint64_t time_ns;
    union {
        struct perfrec_sample sample;
        struct perfrec_mmap mmap;
        struct {
            const char *name; /* borrowed */
            bool exec;        /* misc bit PERF_RECORD_MISC_COMM_EXEC */
        } comm;
        struct {
            int32_t parent_pid; /* FORK: who made it. EXIT: its parent */
            int32_t parent_tid;
        } task;
        uint64_t lost_count; /* LOST, LOST_SAMPLES */
        bool throttled;
        struct {
            uint64_t address;
            uint32_t size;
            bool registered;  /* false: is gone */
            const char *name; /* borrowed */
        } ksymbol;
    };
};

/* Decodes the record of `size` bytes at data (8-byte aligned, size its header's). Returns 0, or -1 when the
 * record is too short for what it should hold. */
int recordint_perfrec_parse(const struct perfrec_layout *layout, const void *data, size_t size,
                            struct perfrec *out);

/* The time of a record, without decoding the rest. Returns false when it has none. */
bool recordint_perfrec_time(const struct perfrec_layout *layout, const void *data, size_t size,
                            uint64_t *time_ns);

/* The mask of registers to ask for on this machine (x86-64: without the segment registers DS, ES, FS, GS). */
uint64_t recordint_perfrec_regs_mask(enum arch arch);

#endif
