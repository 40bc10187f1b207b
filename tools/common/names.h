/* SPDX-License-Identifier: MIT */
/*
 * Who was sampled: turns the records of a spool into sources, a source being a process (or one thread of it) as long
 * as its name and its Python state stay the same, and within one kernel epoch (epochs.h). Names may arrive after the
 * samples they belong to, so they are asked for at the end.
 */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"

#define NAMES_NONE UINT32_MAX

struct names;

/* per_thread: a source is one thread, else a whole process. Ends the tool without memory (cli_realloc). */
struct names *names_new(bool per_thread);
void names_free(struct names *n);

/* Takes a record in; samples are ignored. Call it before names_source of the samples behind the record. */
void names_record(struct names *n, const struct spool_record *rec);

/* A kernel epoch begins. */
void names_begin_epoch(struct names *n, uint32_t epoch);

/* The source of a sample of this spool thread at this point of the file. */
uint32_t names_source(struct names *n, const struct spool_sample *sample);

/* The number of a thread of the spool among all that were named or sampled, with per_thread: equal for equal process
 * and thread ids. It must have been defined. */
uint32_t names_thread(const struct names *n, uint32_t spool_thread);

/* A source, with the names that hold for it once the whole file was read: the latest before its samples, else the
 * first after; without annotations the base name of the process's first file. */
struct source {
    int32_t pid;
    uint64_t tid;           /* with per_thread */
    uint32_t thread_number; /* with per_thread: as names_thread */
    const char *comm;       /* NULL: unknown; raw bytes */
    size_t comm_size;
    const char *thread; /* NULL: unknown, or not per_thread */
    size_t thread_size;
    bool python; /* marked as a Python runtime with perf-map support */
    uint32_t kernel_epoch;
    /* The first of the sources that only their epochs tell apart: this one, or one before it. */
    uint32_t group;
};
uint32_t names_source_count(const struct names *n);
void names_get_source(const struct names *n, uint32_t source, struct source *out);

/* Name of a thread whatever its samples; NULL when unknown. For tables of threads. */
const char *names_of_thread(const struct names *n, int32_t pid, uint64_t tid, size_t *size);
/* Latest name of a process, as names_get_source finds it; NULL when unknown. */
const char *names_of_process(const struct names *n, int32_t pid, size_t *size);

/* Whether the spool marks any process as a Python runtime. */
bool names_has_python_marks(const struct names *n);

#endif
