/* SPDX-License-Identifier: MIT */
/*
 * Batches of a growing spool, on top of the reader, which waits, keeps definitions and errors. Where a batch ends and
 * what it reports is told in spool.h; other readers of growing spools do the same, so neither may change.
 */
#include <stdlib.h>
#include <string.h>

#include "mix.h"
#include "reader_internal.h"
#include "spool/spool.h"

#define BATCH_SAMPLES_MAX ((size_t)16384)

/* Records of any number may name a process each and be neither sample nor definition. No recorder comes near this:
 * it only bounds what a batch keeps. */
#define BATCH_PIDS_MAX ((size_t)1 << 20)

/* A process of batch number `batch`; any other number, 0 above all, is that of a free slot. So a batch of one record
 * does not pay for a table that a batch before it needed. */
struct pid_slot {
    uint32_t batch;
    int32_t pid;
};

struct spool_tail {
    struct spool_reader *reader;

    struct spool_sample *samples;
    size_t sample_count, sample_capacity;

    int32_t *pids;
    size_t pid_count, pid_capacity;
    struct pid_slot *slots;
    size_t slot_count; /* a power of two, at least twice pid_capacity */
    uint32_t batch;

    uint32_t retired_module; /* of a module deactivation */
    int32_t retired_pid;
    bool finished;

    bool first_waits; /* the first batch has not been returned */
    struct spool_tail_batch first;
    int first_result;
};

struct spool_tail *spool_tail_new(void)
{
    struct spool_tail *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->reader = spool_reader_new();
    if (!t->reader) {
        free(t);
        return NULL;
    }
    return t;
}

void spool_tail_free(struct spool_tail *t)
{
    if (!t)
        return;
    spool_reader_free(t->reader);
    free(t->samples);
    free(t->pids);
    free(t->slots);
    free(t);
}

struct spool_reader *spool_tail_reader(struct spool_tail *t)
{
    return t->reader;
}

/* ---- processes ---- */

/* The slot of a process in this batch, or the free one where it belongs. */
static struct pid_slot *pid_slot(const struct spool_tail *t, int32_t pid)
{
    uint64_t h = spoolint_mix((uintptr_t)t, (uint32_t)pid);
    size_t i = (size_t)(h ^ h >> 32) & (t->slot_count - 1);

    while (t->slots[i].batch == t->batch && t->slots[i].pid != pid)
        i = (i + 1) & (t->slot_count - 1);
    return &t->slots[i];
}

/* Room for one more process; false: out of memory, nothing is lost. */
static bool reserve_pid(struct spool_tail *t)
{
    size_t capacity = t->pid_capacity ? t->pid_capacity * 2 : 64;
    struct pid_slot *slots;
    int32_t *pids;

    if (t->pid_count < t->pid_capacity)
        return true;
    pids = realloc(t->pids, capacity * sizeof *pids);
    if (!pids)
        return false;
    t->pids = pids;
    slots = calloc(capacity * 2, sizeof *slots);
    if (!slots)
        return false;
    free(t->slots);
    t->slots = slots;
    t->slot_count = capacity * 2;
    t->pid_capacity = capacity;
    for (size_t i = 0; i < t->pid_count; i++)
        *pid_slot(t, pids[i]) = (struct pid_slot){t->batch, pids[i]};
    return true;
}

static void see_pid(struct spool_tail *t, int32_t pid)
{
    struct pid_slot *slot = pid_slot(t, pid);

    if (slot->batch == t->batch)
        return;
    *slot = (struct pid_slot){t->batch, pid};
    t->pids[t->pid_count++] = pid;
}

/* ---- batches ---- */

static bool reserve_sample(struct spool_tail *t)
{
    size_t capacity = t->sample_capacity ? t->sample_capacity * 2 : 1024;
    struct spool_sample *grown;

    if (t->sample_count < t->sample_capacity)
        return true;
    grown = realloc(t->samples, capacity * sizeof *grown);
    if (!grown)
        return false;
    t->samples = grown;
    t->sample_capacity = capacity;
    return true;
}

static void begin_batch(struct spool_tail *t, struct spool_tail_batch *b)
{
    struct spool_counts c;

    spool_reader_counts(t->reader, &c);
    *b = (struct spool_tail_batch){.modules_begin = c.modules, .frames_begin = c.frames};
    t->sample_count = 0;
    t->pid_count = 0;
    if (++t->batch == 0) { /* all numbers have been used */
        if (t->slots)
            memset(t->slots, 0, t->slot_count * sizeof *t->slots);
        t->batch = 1;
    }
}

static void see_module(struct spool_tail *t, struct spool_tail_batch *b,
                       const struct spool_module *m)
{
    if (m->kernel)
        b->kernel_changed = true;
    else
        see_pid(t, m->pid);
}

/* Takes a record in; room for one sample and one process is there. Returns whether the batch ends with it. */
static bool add(struct spool_tail *t, struct spool_tail_batch *b, const struct spool_record *rec)
{
    switch (rec->type) {
    case SPOOL_RECORD_SAMPLE:
        t->samples[t->sample_count++] = rec->sample;
        see_pid(t, rec->sample.pid);
        return t->sample_count == BATCH_SAMPLES_MAX;
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        see_module(t, b, &rec->module);
        break;
    case SPOOL_RECORD_ANNOTATION:
        see_module(t, b, &rec->annotation.module);
        if (rec->annotation.key == SPOOL_NOTE_END)
            t->finished = true;
        break;
    case SPOOL_RECORD_PYTHON:
        see_pid(t, rec->python.pid);
        break;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        see_pid(t, rec->deactivated_pid);
        t->retired_pid = rec->deactivated_pid;
        b->retired_pids = &t->retired_pid;
        b->retired_pid_count = 1;
        b->retired_modules = spoolint_reader_retired(t->reader, &b->retired_module_count);
        return true;
    case SPOOL_RECORD_DEACTIVATE_MODULE:
        see_module(t, b, spoolint_reader_any_module(t->reader, rec->deactivated_module));
        t->retired_module = rec->deactivated_module;
        b->retired_modules = &t->retired_module;
        b->retired_module_count = 1;
        return true;
    case SPOOL_RECORD_FRAME:
    case SPOOL_RECORD_STACK:
    case SPOOL_RECORD_THREAD:
        return false;
    }
    return t->pid_count >= BATCH_PIDS_MAX;
}

/* Reads to the end of a batch: 1 when it has something, 0, or <0. */
static int read_batch(struct spool_tail *t, struct spool_tail_batch *b)
{
    bool stopped = false, progress = false;
    struct spool_record rec;
    struct spool_counts c;
    int rc = 1;

    begin_batch(t, b);
    while (rc > 0 && !stopped) {
        /* First, so that no record is lost for want of room. */
        if (!reserve_sample(t) || !reserve_pid(t)) {
            rc = spoolint_reader_fail_nomem(t->reader, "a batch of samples");
            break;
        }
        rc = spool_reader_next(t->reader, &rec);
        if (rc > 0) {
            progress = true;
            stopped = add(t, b, &rec);
        }
    }
    if (rc < 0 && !progress)
        return rc;
    spool_reader_counts(t->reader, &c);
    b->modules_end = c.modules;
    b->frames_end = c.frames;
    b->samples = t->samples;
    b->sample_count = t->sample_count;
    b->pids = t->pids;
    b->pid_count = t->pid_count;
    b->finished = t->finished;
    b->ended = spool_reader_tail_ended(t->reader);
    b->more = rc < 0 || (stopped && (spoolint_reader_has_unread(t->reader) ||
                                     spoolint_reader_look(t->reader) != 0));
    return progress;
}

int spool_tail_open_fd(struct spool_tail *t, int fd)
{
    int rc = spool_reader_open_tail_fd(t->reader, fd);

    if (rc < 0)
        return rc;
    spoolint_reader_list_retired(t->reader);
    t->first_result = read_batch(t, &t->first);
    t->first_waits = true;
    t->first.modules_begin = t->first.modules_end;
    t->first.frames_begin = t->first.frames_end;
    t->first.kernel_changed = false;
    return 0;
}

int spool_tail_poll(struct spool_tail *t, struct spool_tail_batch *out)
{
    if (!t->first_waits)
        return read_batch(t, out);
    t->first_waits = false;
    *out = t->first;
    if (t->first_result >= 0 && !out->more)
        out->more = spoolint_reader_look(t->reader) != 0;
    return t->first_result;
}
