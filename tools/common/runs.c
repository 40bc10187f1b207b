/* SPDX-License-Identifier: MIT */
/*
 * The store of runs. Samples of a thread pass a window, which sorts them, on their way into its open run; runs that
 * ended are in chunks, linked a thread, in slabs that are plain memory first and an unlinked file later. Nothing is
 * moved on at the end, so that a thread with few samples never needs a chunk:
 *
 *     runs_add -> window (8 samples, by time) -> open run -> chunks
 *                   later than it can mend: a run of its own ---^
 *
 * Sources change seldom: a run of count 0 stands where another one begins and has it in place of the stack. Samples of
 * their own (RUNS_NEVER, and in the window) have it in place of the count, which is 1.
 */
#include "runs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"
#include "gap.h"
#include "temporary.h"

#define SLAB_BYTES ((size_t)4 << 20)
#define MEMORY_BYTES ((size_t)64 << 20)
#define WINDOW_SAMPLES 8u /* as runs.h and the manual pages say */

/* Most sources of a spool with very many have few runs: the first chunk of each is small. */
#define UNIT_BYTES ((size_t)128)
#define SLAB_UNITS (SLAB_BYTES / UNIT_BYTES)
#define FIRST_UNITS 1u
#define MORE_UNITS 4u
#define MANY_UNITS 16u /* for those that have filled one of MORE_UNITS */
#define NO_CHUNK UINT32_MAX

_Static_assert(256 % WINDOW_SAMPLES == 0, "window_begin counts on modulo 256");

/* One or several units of one slab; its number is that of the first. */
struct chunk {
    uint32_t next;
    uint16_t used, capacity;
    struct run runs[];
};

/* There may be hundreds of thousands. */
struct run_thread {
    struct run *window; /* a ring, its samples by time */
    struct run open;    /* count 0: none */
    uint64_t passed_ns; /* of the last sample that left the window */
    uint64_t first_ns;
    uint64_t due_min_ns, due_max_ns; /* with RUNS_WITHOUT_GAP: when the next sample may be due */
    uint32_t open_source;
    uint32_t stored_source; /* of the last run in the chunks */
    uint32_t head, tail;    /* chunks */
    uint8_t window_begin, window_used, window_capacity;
    bool passed;     /* a sample has left the window */
    bool disordered; /* runs are stored that came too late for the window */
};

struct run_store {
    enum runs_merge merge;
    uint64_t interval_ns;
    bool some_may_go;
    uint64_t earliest_ns; /* of all samples */
    struct run_thread *threads;
    size_t thread_count, thread_capacity;
    char **slabs;
    size_t slab_count, slab_capacity;
    uint32_t unit_count;
    size_t memory_bytes; /* of slabs that are not in the file, ... */
    size_t *used_bytes;  /* ... and those of all stores that share it */
    int spill_fd;        /* -1: none */
    off_t spill_bytes;
    int error; /* errno */
};

/* What disordered runs are sorted as. */
struct sourced_run {
    struct run run;
    uint32_t source;
};

#define NO_SOURCE UINT32_MAX

struct run_store *runs_new(enum runs_merge merge, uint64_t interval_ns, bool some_may_go)
{
    struct run_store *s = cli_zeroed(1, sizeof *s);

    s->merge = merge;
    s->interval_ns = interval_ns;
    s->some_may_go = some_may_go;
    s->earliest_ns = UINT64_MAX;
    s->used_bytes = &s->memory_bytes;
    s->spill_fd = -1;
    return s;
}

void runs_share_memory(struct run_store *s, size_t *used_bytes)
{
    s->used_bytes = used_bytes;
}

void runs_free(struct run_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->slab_count; i++)
        munmap(s->slabs[i], SLAB_BYTES);
    *s->used_bytes -= s->memory_bytes;
    if (s->spill_fd >= 0)
        close(s->spill_fd);
    for (size_t i = 0; i < s->thread_count; i++)
        free(s->threads[i].window);
    free(s->slabs);
    free(s->threads);
    free(s);
}

/* ---- room ---- */

/* Memory, or, once the memory for it is used up, a piece of the spill file. The file's blocks are allocated before
 * they are mapped: a full disk must be an error here, not a SIGBUS later. NULL and errno. */
static void *map_bytes(struct run_store *s, size_t bytes, bool spill)
{
    /* In whole slabs, so that the next piece begins at a page, too. */
    size_t slabs_bytes = (bytes + SLAB_BYTES - 1) / SLAB_BYTES * SLAB_BYTES;
    void *p;
    int rc;

    if (!spill) {
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    if (s->spill_fd < 0 && (s->spill_fd = temporary_open_unlinked()) < 0)
        return NULL;
    do
        rc = posix_fallocate(s->spill_fd, s->spill_bytes, (off_t)slabs_bytes);
    while (rc == EINTR);
    if (rc != 0) {
        errno = rc;
        return NULL;
    }
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->spill_fd, s->spill_bytes);
    if (p == MAP_FAILED)
        return NULL;
    s->spill_bytes += (off_t)slabs_bytes;
    return p;
}

/* The folder is to blame for all but memory, of which a mapped file takes some, too. */
static void report_no_room(const char *what, int error)
{
    if (error == ENOMEM)
        cli_error("out of memory for samples in time order");
    else
        cli_error("%s: no room %s: %s", temporary_folder(), what, strerror(error));
}

static struct chunk *chunk_at(const struct run_store *s, uint32_t id)
{
    void *unit = s->slabs[id / SLAB_UNITS] + id % SLAB_UNITS * UNIT_BYTES;

    return unit;
}

/* False: no room, s->error is set. */
static bool add_slab(struct run_store *s)
{
    /* The first one always: an input with few samples needs no file. */
    bool spill = s->slab_count > 0 && *s->used_bytes >= MEMORY_BYTES;
    void *slab = NULL;

    if (s->slab_count * SLAB_UNITS < NO_CHUNK - SLAB_UNITS)
        slab = map_bytes(s, SLAB_BYTES, spill);
    else
        errno = EFBIG;
    if (!slab) {
        s->error = errno;
        return false;
    }
    if (!spill) {
        s->memory_bytes += SLAB_BYTES;
        if (s->used_bytes != &s->memory_bytes)
            *s->used_bytes += SLAB_BYTES;
    }
    s->slabs = cli_grow(s->slabs, &s->slab_capacity, s->slab_count, sizeof *s->slabs);
    s->slabs[s->slab_count++] = slab;
    return true;
}

/* NO_CHUNK: no room, s->error is set. */
static uint32_t new_chunk(struct run_store *s, uint32_t units)
{
    uint32_t id;

    if (s->slab_count * SLAB_UNITS - s->unit_count < units) {
        if (!add_slab(s))
            return NO_CHUNK;
        s->unit_count = (uint32_t)((s->slab_count - 1) * SLAB_UNITS);
    }
    id = s->unit_count;
    s->unit_count += units;
    *chunk_at(s, id) = (struct chunk){
        .next = NO_CHUNK,
        .capacity = (uint16_t)((units * UNIT_BYTES - sizeof(struct chunk)) / sizeof(struct run))};
    return id;
}

/* ---- adding ---- */

static void put_run(struct run_store *s, struct run_thread *t, const struct run *run)
{
    struct chunk *c = t->tail == NO_CHUNK ? NULL : chunk_at(s, t->tail);

    if (s->error)
        return;
    if (!c || c->used == c->capacity) {
        bool many = c && c->capacity >= MORE_UNITS * UNIT_BYTES / sizeof *run - 1;
        uint32_t id = new_chunk(s, many ? MANY_UNITS : c ? MORE_UNITS : FIRST_UNITS);

        if (id == NO_CHUNK)
            return;
        if (c)
            c->next = id;
        else
            t->head = id;
        t->tail = id;
        c = chunk_at(s, id);
    }
    c->runs[c->used++] = *run;
}

static void store_run(struct run_store *s, struct run_thread *t, const struct run *run,
                      uint32_t source)
{
    struct run stored = *run;

    if (s->merge == RUNS_NEVER) {
        stored.count = source;
    } else if (source != t->stored_source) {
        t->stored_source = source;
        put_run(s, t, &(struct run){.stack = source});
    }
    put_run(s, t, &stored);
}

static void store_open(struct run_store *s, struct run_thread *t)
{
    if (t->open.count > 0)
        store_run(s, t, &t->open, t->open_source);
    t->open.count = 0;
}

static bool may_grow(const struct run_thread *t, uint32_t source, uint32_t stack)
{
    return t->open.stack == stack && t->open_source == source && t->open.count > 0 &&
           t->open.count < UINT32_MAX;
}

/* Whether there may be a gap before the next sample. Moves due_min_ns and due_max_ns behind it: they are equal, unless
 * samples before it may go. */
static bool pass_gap(struct run_store *s, struct run_thread *t, uint64_t time_ns)
{
    uint64_t half_ns = s->interval_ns / 2;
    bool possible, certain;

    if (!t->passed) {
        t->due_min_ns = s->earliest_ns;
        t->due_max_ns = s->earliest_ns;
    }
    possible = gap_before(time_ns, t->due_min_ns, s->interval_ns);
    certain = gap_before(time_ns, t->due_max_ns, s->interval_ns);
    if (possible) {
        uint64_t least_ns = certain ? time_ns : time_ns - (time_ns < half_ns ? time_ns : half_ns);

        if (t->due_min_ns < least_ns)
            t->due_min_ns = least_ns;
        if (t->due_max_ns < time_ns)
            t->due_max_ns = time_ns;
    }
    t->due_min_ns = gap_saturating_add(t->due_min_ns, s->interval_ns);
    t->due_max_ns = gap_saturating_add(t->due_max_ns, s->interval_ns);
    return possible;
}

/* Where samples before a run may go, all that is known behind its first sample is that there was a gap before it or
 * not: in the one case the next is due an interval after it, in the other up to half an interval sooner, or at any
 * later time that is possible with all samples before it. */
static void forget_before(struct run_store *s, struct run_thread *t, uint64_t time_ns)
{
    uint64_t half_ns = s->interval_ns - s->interval_ns / 2 - 1;
    uint64_t least_ns = time_ns - (time_ns < half_ns ? time_ns : half_ns);
    uint64_t least_due_ns = gap_saturating_add(least_ns, s->interval_ns);
    uint64_t due_ns = gap_saturating_add(time_ns, s->interval_ns);

    if (t->due_min_ns > least_due_ns)
        t->due_min_ns = least_due_ns;
    if (t->due_max_ns < due_ns)
        t->due_max_ns = due_ns;
}

/* Takes samples in time order. */
static void pass_on(struct run_store *s, struct run_thread *t, uint32_t source, uint64_t time_ns,
                    uint32_t stack)
{
    bool apart = s->merge == RUNS_NEVER;

    if (s->merge == RUNS_WITHOUT_GAP)
        apart = pass_gap(s, t, time_ns);
    t->passed = true;
    t->passed_ns = time_ns;
    if (!apart && may_grow(t, source, stack)) {
        t->open.count++;
        return;
    }
    if (s->some_may_go && s->merge == RUNS_WITHOUT_GAP)
        forget_before(s, t, time_ns);
    store_open(s, t);
    t->open = (struct run){.time_ns = time_ns, .stack = stack, .count = 1};
    t->open_source = source;
}

/* What belongs before a sample that was passed on already. In the span of the open run it is one of it, or parts it as
 * well as is still possible: between those it has and those to come. For equal times, too, that is the order to store
 * them in, which sorting keeps. */
static void add_late(struct run_store *s, struct run_thread *t, uint32_t source, uint64_t time_ns,
                     uint32_t stack)
{
    t->due_min_ns = gap_saturating_add(t->due_min_ns, s->interval_ns);
    t->due_max_ns = gap_saturating_add(t->due_max_ns, s->interval_ns);
    if (t->open.count > 0 && t->open.time_ns <= time_ns) {
        if (s->merge != RUNS_NEVER && may_grow(t, source, stack)) {
            t->open.count++;
            return;
        }
        store_open(s, t);
    }
    store_run(s, t, &(struct run){.time_ns = time_ns, .stack = stack, .count = 1}, source);
    t->disordered = true;
}

/* Only a full window begins elsewhere than at 0, so it can grow in place. The only sample of a thread needs none: it
 * waits as the open run. Returns the samples in the window. */
static uint32_t grow_window(struct run_thread *t)
{
    bool first = t->window_capacity == 0;

    t->window_capacity = first ? WINDOW_SAMPLES / 2 : WINDOW_SAMPLES;
    t->window = cli_realloc(t->window, t->window_capacity, sizeof *t->window);
    if (first) {
        t->window[0] = t->open;
        t->window[0].count = t->open_source;
        t->window_used = 1;
        t->open.count = 0;
    }
    return t->window_used;
}

static void make_threads(struct run_store *s, uint32_t thread)
{
    if (thread >= s->thread_capacity) {
        s->thread_capacity =
            s->thread_capacity * 2 > thread ? s->thread_capacity * 2 : (size_t)thread + 16;
        s->threads = cli_realloc(s->threads, s->thread_capacity, sizeof *s->threads);
    }
    for (; s->thread_count <= thread; s->thread_count++)
        s->threads[s->thread_count] = (struct run_thread){
            .head = NO_CHUNK, .tail = NO_CHUNK, .first_ns = UINT64_MAX, .stored_source = NO_SOURCE};
}

void runs_add(struct run_store *s, uint32_t thread, uint32_t source, uint64_t time_ns,
              uint32_t stack)
{
    struct run_thread *t;
    uint32_t begin, at;

    if (thread >= s->thread_count)
        make_threads(s, thread);
    t = &s->threads[thread];
    if (time_ns < t->first_ns)
        t->first_ns = time_ns;
    if (time_ns < s->earliest_ns)
        s->earliest_ns = time_ns;
    if (time_ns < t->passed_ns) {
        add_late(s, t, source, time_ns, stack);
        return;
    }
    begin = t->window_begin;
    at = begin + t->window_used;
    if (at - begin == WINDOW_SAMPLES) {
        const struct run *first = &t->window[begin % WINDOW_SAMPLES];

        if (time_ns < first->time_ns) {
            pass_on(s, t, source, time_ns, stack);
            return;
        }
        pass_on(s, t, first->count, first->time_ns, first->stack);
        t->window_begin = (uint8_t)++begin;
    } else {
        if (at == t->window_capacity) {
            if (at == 0 && t->open.count == 0) {
                t->open = (struct run){.time_ns = time_ns, .stack = stack, .count = 1};
                t->open_source = source;
                return;
            }
            at = grow_window(t);
        }
        t->window_used++;
    }
    for (; at > begin && t->window[(at - 1) % WINDOW_SAMPLES].time_ns > time_ns; at--)
        t->window[at % WINDOW_SAMPLES] = t->window[(at - 1) % WINDOW_SAMPLES];
    t->window[at % WINDOW_SAMPLES] =
        (struct run){.time_ns = time_ns, .stack = stack, .count = source};
}

int runs_finish(struct run_store *s)
{
    if (!s->error)
        return 0;
    report_no_room("for samples in time order", s->error);
    return -1;
}

uint64_t runs_first_ns(const struct run_store *s, uint32_t thread)
{
    return thread < s->thread_count ? s->threads[thread].first_ns : UINT64_MAX;
}

uint32_t runs_thread_count(const struct run_store *s)
{
    return (uint32_t)s->thread_count;
}

/* ---- walking ---- */

/* Bottom-up merge sort by time, stable. from and to are of equal size; returns the one that has the result. */
static struct sourced_run *sort_runs(struct sourced_run *from, struct sourced_run *to, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        struct sourced_run *swap;

        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t middle = count - begin < width ? count : begin + width;
            size_t end = count - begin < 2 * width ? count : begin + 2 * width;
            size_t a = begin, b = middle;

            for (size_t i = begin; i < end; i++)
                to[i] = a < middle && (b == end || from[a].run.time_ns <= from[b].run.time_ns)
                            ? from[a++]
                            : from[b++];
        }
        swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* The next run in the order they were passed on. */
static bool next_passed(struct run_cursor *c, struct run *run, uint32_t *source)
{
    const struct run_thread *t = c->thread;

    while (c->chunk != NO_CHUNK) {
        const struct chunk *chunk = chunk_at(c->store, c->chunk);

        if (c->in_chunk == chunk->used) {
            c->chunk = chunk->next;
            c->in_chunk = 0;
            continue;
        }
        if (c->in_chunk == 0 && chunk->next != NO_CHUNK)
            __builtin_prefetch(chunk_at(c->store, chunk->next));
        *run = chunk->runs[c->in_chunk++];
        if (c->store->merge == RUNS_NEVER) {
            *source = run->count;
            run->count = 1;
            return true;
        }
        if (run->count > 0) {
            *source = c->source;
            return true;
        }
        c->source = run->stack;
    }
    if (c->at == 0) {
        c->at++;
        *run = t->open;
        *source = t->open_source;
        if (run->count > 0)
            return true;
    }
    if (c->at > t->window_used)
        return false;
    *run = t->window[(t->window_begin + c->at - 1) % WINDOW_SAMPLES];
    *source = run->count;
    run->count = 1;
    c->at++;
    return true;
}

static void rewind_passed(struct run_cursor *c)
{
    c->chunk = c->thread->head;
    c->in_chunk = 0;
    c->at = 0;
    c->source = NO_SOURCE;
}

static int sort_thread(struct run_cursor *c)
{
    struct run_store *s = c->store;
    struct sourced_run *a, *b;
    struct run run;
    uint32_t source;
    size_t count = 0, bytes;

    while (next_passed(c, &run, &source))
        count++;
    rewind_passed(c);
    bytes = count * sizeof *a;
    c->spill_bytes = s->spill_bytes;
    c->sort_bytes = 2 * bytes;
    c->sort_memory = map_bytes(s, c->sort_bytes, bytes > MEMORY_BYTES / 2);
    if (!c->sort_memory) {
        report_no_room("to sort samples by time", errno);
        return -1;
    }
    a = c->sort_memory;
    b = a + count;
    for (size_t i = 0; i < count; i++) {
        next_passed(c, &a[i].run, &source);
        a[i].source = source;
    }
    c->sorted = sort_runs(a, b, count);
    c->count = count;
    c->at = 0;
    return 0;
}

int runs_open(struct run_cursor *c, struct run_store *s, uint32_t thread)
{
    *c = (struct run_cursor){.store = s};
    if (thread >= s->thread_count)
        return 0;
    c->thread = &s->threads[thread];
    rewind_passed(c);
    return c->thread->disordered ? sort_thread(c) : 0;
}

bool runs_next(struct run_cursor *c, struct run *run, uint32_t *source)
{
    if (!c->thread)
        return false;
    if (!c->thread->disordered)
        return next_passed(c, run, source);
    if (c->at == c->count)
        return false;
    *run = c->sorted[c->at].run;
    *source = c->sorted[c->at++].source;
    return true;
}

void runs_close(struct run_cursor *c)
{
    struct run_store *s = c->store;

    if (!c->sort_memory)
        return;
    munmap(c->sort_memory, c->sort_bytes);
    c->sort_memory = NULL;
    if (s->spill_bytes > c->spill_bytes && ftruncate(s->spill_fd, (off_t)c->spill_bytes) == 0)
        s->spill_bytes = (off_t)c->spill_bytes;
}
