/* SPDX-License-Identifier: MIT */
/*
 * The store of runs. Samples of a source pass a window, which sorts them, on their way into its open run; runs that
 * ended are in chunks, linked a source, in slabs that are plain memory first and an unlinked file later. Nothing is
 * moved on at the end, so that a source with few samples never needs a chunk:
 *
 *     runs_add -> window (8 samples, by time) -> open run -> chunks
 *                   later than it can mend: a run of its own ---^
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

#define SLAB_BYTES ((size_t)4 << 20)
#define MEMORY_BYTES ((size_t)64 << 20)
#define WINDOW_SAMPLES 8u /* as runs.h and spool2folded(1) say */

/* Most sources of a spool with very many have few runs: the first chunk of each is small. */
#define UNIT_BYTES ((size_t)128)
#define SLAB_UNITS (SLAB_BYTES / UNIT_BYTES)
#define FIRST_UNITS 1u
#define MORE_UNITS 4u
#define NO_CHUNK UINT32_MAX

_Static_assert(256 % WINDOW_SAMPLES == 0, "window_begin counts on modulo 256");

/* Is one or several units of one slab; its number is that of the first. */
struct chunk {
    uint32_t next;
    uint16_t used, capacity;
    struct run runs[];
};

/* There may be hundreds of thousands. */
struct run_source {
    struct run *window; /* a ring, its samples by time; counts are 1 */
    struct run open;    /* count 0: none */
    uint64_t passed_ns; /* of the last sample that left the window */
    uint64_t first_ns;
    uint32_t head, tail; /* chunks */
    uint8_t window_begin, window_used, window_capacity;
    bool disordered; /* runs are stored that came too late for the window */
};

struct run_store {
    struct run_source *sources;
    size_t source_count, source_capacity;
    char **slabs;
    size_t slab_count, slab_capacity;
    uint32_t unit_count;
    int spill_fd; /* -1: none */
    off_t spill_bytes;
    int error; /* errno */
};

struct run_store *runs_new(void)
{
    struct run_store *s = cli_realloc(NULL, 1, sizeof *s);

    memset(s, 0, sizeof *s);
    s->spill_fd = -1;
    return s;
}

void runs_free(struct run_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->slab_count; i++)
        munmap(s->slabs[i], SLAB_BYTES);
    if (s->spill_fd >= 0)
        close(s->spill_fd);
    for (size_t i = 0; i < s->source_count; i++)
        free(s->sources[i].window);
    free(s->slabs);
    free(s->sources);
    free(s);
}

/* ---- room ---- */

static const char *spill_folder(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && *folder ? folder : "/tmp";
}

/* An unlinked file in TMPDIR; -1 and errno. */
static int open_spill(void)
{
    const char *folder = spill_folder();
    size_t size = strlen(folder) + sizeof "/spooltools-XXXXXX";
    char *path;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    path = cli_realloc(NULL, size, 1);
    snprintf(path, size, "%s/spooltools-XXXXXX", folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    free(path);
    return fd;
}

/* Memory, or, once the memory for it is used up, a piece of the spill file. The file's blocks are allocated before
 * they are mapped: a full disk must be an error here, not a SIGBUS later. NULL and errno. */
static void *map_bytes(struct run_store *s, size_t bytes, bool spill)
{
    size_t slabs_bytes = (bytes + SLAB_BYTES - 1) / SLAB_BYTES *
                         SLAB_BYTES; /* the next piece begins at a page, too */
    void *p;
    int rc;

    if (!spill) {
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    if (s->spill_fd < 0 && (s->spill_fd = open_spill()) < 0)
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
        cli_error("%s: no room %s: %s", spill_folder(), what, strerror(error));
}

static struct chunk *chunk_at(const struct run_store *s, uint32_t id)
{
    void *unit = s->slabs[id / SLAB_UNITS] + id % SLAB_UNITS * UNIT_BYTES;

    return unit;
}

/* False: no room, s->error is set. */
static bool add_slab(struct run_store *s)
{
    void *slab = NULL;

    if (s->slab_count * SLAB_UNITS < NO_CHUNK - SLAB_UNITS)
        slab = map_bytes(s, SLAB_BYTES, s->slab_count * SLAB_BYTES >= MEMORY_BYTES);
    else
        errno = EFBIG;
    if (!slab) {
        s->error = errno;
        return false;
    }
    if (s->slab_count == s->slab_capacity) {
        s->slab_capacity = s->slab_capacity ? s->slab_capacity * 2 : 16;
        s->slabs = cli_realloc(s->slabs, s->slab_capacity, sizeof *s->slabs);
    }
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

static void store_run(struct run_store *s, struct run_source *src, const struct run *run)
{
    struct chunk *c = src->tail == NO_CHUNK ? NULL : chunk_at(s, src->tail);

    if (s->error)
        return;
    if (!c || c->used == c->capacity) {
        uint32_t id = new_chunk(s, c ? MORE_UNITS : FIRST_UNITS);

        if (id == NO_CHUNK)
            return;
        if (c)
            c->next = id;
        else
            src->head = id;
        src->tail = id;
        c = chunk_at(s, id);
    }
    c->runs[c->used++] = *run;
}

/* Takes samples in time order. */
static void pass_on(struct run_store *s, struct run_source *src, uint64_t time_ns, uint32_t stack)
{
    src->passed_ns = time_ns;
    if (src->open.stack == stack && src->open.count > 0 && src->open.count < UINT32_MAX) {
        src->open.count++;
        return;
    }
    if (src->open.count > 0)
        store_run(s, src, &src->open);
    src->open = (struct run){.time_ns = time_ns, .stack = stack, .count = 1};
}

/* What belongs before a sample that was passed on already. In the span of the open run it is one of it, or parts it as
 * well as is still possible: between those it has and those to come. For equal times, too, that is the order to store
 * them in, which sorting keeps. */
static void add_late(struct run_store *s, struct run_source *src, uint64_t time_ns, uint32_t stack)
{
    struct run *open = &src->open;

    if (open->count > 0 && open->time_ns <= time_ns) {
        if (open->stack == stack && open->count < UINT32_MAX) {
            open->count++;
            return;
        }
        store_run(s, src, open);
        open->count = 0;
    }
    store_run(s, src, &(struct run){.time_ns = time_ns, .stack = stack, .count = 1});
    src->disordered = true;
}

/* Only a full window begins elsewhere than at 0, so it can grow in place. The only sample of a source needs none: it
 * waits as the open run. Returns the samples in the window. */
static uint32_t grow_window(struct run_source *src)
{
    bool first = src->window_capacity == 0;

    src->window_capacity = first ? WINDOW_SAMPLES / 2 : WINDOW_SAMPLES;
    src->window = cli_realloc(src->window, src->window_capacity, sizeof *src->window);
    if (first) {
        src->window[0] = src->open;
        src->window_used = 1;
        src->open.count = 0;
    }
    return src->window_used;
}

static void make_sources(struct run_store *s, uint32_t source)
{
    if (source >= s->source_capacity) {
        s->source_capacity =
            s->source_capacity * 2 > source ? s->source_capacity * 2 : (size_t)source + 16;
        s->sources = cli_realloc(s->sources, s->source_capacity, sizeof *s->sources);
    }
    for (; s->source_count <= source; s->source_count++)
        s->sources[s->source_count] =
            (struct run_source){.head = NO_CHUNK, .tail = NO_CHUNK, .first_ns = UINT64_MAX};
}

void runs_add(struct run_store *s, uint32_t source, uint64_t time_ns, uint32_t stack)
{
    struct run_source *src;
    uint32_t begin, at;

    if (source >= s->source_count)
        make_sources(s, source);
    src = &s->sources[source];
    if (time_ns < src->first_ns)
        src->first_ns = time_ns;
    if (time_ns < src->passed_ns) {
        add_late(s, src, time_ns, stack);
        return;
    }
    begin = src->window_begin;
    at = begin + src->window_used;
    if (at - begin == WINDOW_SAMPLES) {
        const struct run *first = &src->window[begin % WINDOW_SAMPLES];

        if (time_ns < first->time_ns) {
            pass_on(s, src, time_ns, stack);
            return;
        }
        pass_on(s, src, first->time_ns, first->stack);
        src->window_begin = (uint8_t)++begin;
    } else {
        if (at == src->window_capacity) {
            if (at == 0 && src->open.count == 0) {
                src->open = (struct run){.time_ns = time_ns, .stack = stack, .count = 1};
                return;
            }
            at = grow_window(src);
        }
        src->window_used++;
    }
    for (; at > begin && src->window[(at - 1) % WINDOW_SAMPLES].time_ns > time_ns; at--)
        src->window[at % WINDOW_SAMPLES] = src->window[(at - 1) % WINDOW_SAMPLES];
    src->window[at % WINDOW_SAMPLES] = (struct run){.time_ns = time_ns, .stack = stack, .count = 1};
}

int runs_finish(struct run_store *s)
{
    if (!s->error)
        return 0;
    report_no_room("for samples in time order", s->error);
    return -1;
}

uint64_t runs_first_ns(const struct run_store *s, uint32_t source)
{
    return source < s->source_count ? s->sources[source].first_ns : UINT64_MAX;
}

/* ---- visiting ---- */

/* Bottom-up merge sort by time, stable. from and to are of equal size; returns the one that has the result. */
static struct run *sort_runs(struct run *from, struct run *to, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        struct run *swap;

        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t middle = count - begin < width ? count : begin + width;
            size_t end = count - begin < 2 * width ? count : begin + 2 * width;
            size_t a = begin, b = middle;

            for (size_t i = begin; i < end; i++)
                to[i] = a < middle && (b == end || from[a].time_ns <= from[b].time_ns) ? from[a++]
                                                                                       : from[b++];
        }
        swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* All runs in the order they were passed on. */
static void walk(const struct run_store *s, const struct run_source *src, runs_visit_fn *take,
                 void *user)
{
    for (uint32_t id = src->head; id != NO_CHUNK; id = chunk_at(s, id)->next) {
        const struct chunk *c = chunk_at(s, id);

        for (uint32_t i = 0; i < c->used; i++)
            take(user, &c->runs[i]);
    }
    if (src->open.count > 0)
        take(user, &src->open);
    for (uint32_t i = 0; i < src->window_used; i++)
        take(user, &src->window[(src->window_begin + i) % WINDOW_SAMPLES]);
}

static void count_run(void *user, const struct run *run)
{
    size_t *count = user;

    (void)run;
    (*count)++;
}

static void copy_run(void *user, const struct run *run)
{
    struct run **end = user;

    *(*end)++ = *run;
}

/* Hands a run out when the next one cannot be merged into it. */
struct output {
    runs_visit_fn *visit;
    void *user;
    struct run run; /* count 0: none */
};

static void flush_output(struct output *o)
{
    if (o->run.count > 0)
        o->visit(o->user, &o->run);
}

static void put_run(void *user, const struct run *run)
{
    struct output *o = user;

    if (o->run.count > 0 && o->run.stack == run->stack && run->count <= UINT32_MAX - o->run.count) {
        o->run.count += run->count;
        return;
    }
    flush_output(o);
    o->run = *run;
}

static int put_sorted(struct run_store *s, const struct run_source *src, struct output *o)
{
    off_t spill_bytes = s->spill_bytes;
    struct run *a, *b = NULL, *end, *sorted;
    size_t count = 0, bytes;
    int rc = -1;

    walk(s, src, count_run, &count);
    bytes = count * sizeof *a;
    a = map_bytes(s, bytes, bytes > MEMORY_BYTES / 2);
    if (a)
        b = map_bytes(s, bytes, bytes > MEMORY_BYTES / 2);
    if (!b) {
        report_no_room("to sort samples by time", errno);
        goto done;
    }
    end = a;
    walk(s, src, copy_run, &end);
    sorted = sort_runs(a, b, count);
    for (size_t i = 0; i < count; i++)
        put_run(o, &sorted[i]);
    rc = 0;
done:
    if (a)
        munmap(a, bytes);
    if (b)
        munmap(b, bytes);
    if (s->spill_bytes > spill_bytes && ftruncate(s->spill_fd, spill_bytes) == 0)
        s->spill_bytes = spill_bytes;
    return rc;
}

int runs_visit(struct run_store *s, uint32_t source, runs_visit_fn *visit, void *user)
{
    struct output o = {.visit = visit, .user = user};
    const struct run_source *src;

    if (source >= s->source_count)
        return 0;
    src = &s->sources[source];
    if (!src->disordered)
        walk(s, src, put_run, &o);
    else if (put_sorted(s, src, &o) < 0)
        return -1;
    flush_output(&o);
    return 0;
}
