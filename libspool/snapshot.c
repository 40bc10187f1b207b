/* SPDX-License-Identifier: MIT */
/* All samples of a spool in memory, on top of the reader, which keeps definitions and errors. */
#include <stdlib.h>

#include "reader_internal.h"
#include "spool/spool.h"

/* What cannot be had from the other samples or the reader. */
struct stored_sample {
    uint64_t time_ns;
    uint32_t thread;
    uint32_t stack;
};

struct spool_snapshot {
    struct spool_reader *reader;
    struct stored_sample *samples;
    size_t count;
    size_t capacity;
    bool loaded; /* or tried to */
};

static bool append(struct spool_snapshot *s, const struct spool_sample *sample)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity == 0 ? 1024 : s->capacity * 2;
        struct stored_sample *grown;

        if (s->capacity > SIZE_MAX / 2 / sizeof *grown)
            return false;
        grown = realloc(s->samples, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        s->samples = grown;
        s->capacity = capacity;
    }
    s->samples[s->count++] = (struct stored_sample){
        .time_ns = sample->time_ns,
        .thread = sample->thread,
        .stack = sample->stack,
    };
    return true;
}

/* Gives back what doubling reserved in excess; failing to is no failure. */
static void trim(struct spool_snapshot *s)
{
    struct stored_sample *exact;

    if (s->count == s->capacity || s->count == 0)
        return;
    exact = realloc(s->samples, s->count * sizeof *exact);
    if (exact != NULL) {
        s->samples = exact;
        s->capacity = s->count;
    }
}

/* Reads on an opened reader to its end. */
static int load(struct spool_snapshot *s)
{
    struct spool_record rec;
    int rc;

    while ((rc = spool_reader_next(s->reader, &rec)) > 0) {
        if (rec.type == SPOOL_RECORD_SAMPLE && !append(s, &rec.sample)) {
            rc = spoolint_reader_fail_nomem(s->reader, "the samples of a snapshot");
            break;
        }
    }
    trim(s);
    return rc;
}

struct spool_snapshot *spool_snapshot_new(void)
{
    struct spool_snapshot *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->reader = spool_reader_new();
    if (s->reader == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void spool_snapshot_free(struct spool_snapshot *s)
{
    if (s == NULL)
        return;
    spool_reader_free(s->reader);
    free(s->samples);
    free(s);
}

int spool_snapshot_load_fd(struct spool_snapshot *s, int fd)
{
    int rc;

    if (s->loaded)
        return SPOOL_ERR_MISUSE;
    s->loaded = true;
    rc = spool_reader_open_fd(s->reader, fd);
    return rc < 0 ? rc : load(s);
}

int spool_snapshot_load_memory(struct spool_snapshot *s, const void *data, size_t size)
{
    int rc;

    if (s->loaded)
        return SPOOL_ERR_MISUSE;
    s->loaded = true;
    rc = spool_reader_open_memory(s->reader, data, size);
    return rc < 0 ? rc : load(s);
}

uint64_t spool_snapshot_sample_count(const struct spool_snapshot *s)
{
    return s->count;
}

bool spool_snapshot_sample(const struct spool_snapshot *s, uint64_t index, struct spool_sample *out)
{
    const struct stored_sample *sample;
    struct spool_thread thread;
    uint64_t before_ns;

    if (index >= s->count)
        return false;
    sample = &s->samples[index];
    before_ns = index == 0 ? 0 : sample[-1].time_ns;
    /* The reader refuses samples of threads that are not there. */
    if (!spool_reader_thread(s->reader, sample->thread, &thread))
        return false;
    *out = (struct spool_sample){
        .index = index,
        .delta_ns = (int64_t)(sample->time_ns - before_ns),
        .time_ns = sample->time_ns,
        .thread = sample->thread,
        .stack = sample->stack,
        .pid = thread.pid,
        .tid = thread.tid,
    };
    return true;
}

struct spool_reader *spool_snapshot_reader(struct spool_snapshot *s)
{
    return s->reader;
}
