/* SPDX-License-Identifier: MIT */
/* The store of runs: chunks linked a source, in slabs that are plain memory first and an unlinked file later. */
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
#define CHUNK_RUNS 31
#define NO_CHUNK UINT32_MAX

struct chunk {
    uint32_t next;
    uint32_t used;
    struct run runs[CHUNK_RUNS];
};

#define SLAB_CHUNKS (SLAB_BYTES / sizeof(struct chunk))

struct run_source {
    struct run open; /* count 0: none */
    uint64_t last_ns, first_ns;
    uint64_t runs;
    uint32_t head, tail; /* chunks */
    bool disordered;
};

struct run_store {
    struct run_source *sources;
    size_t source_count, source_capacity;
    struct chunk **slabs;
    size_t slab_count, slab_capacity;
    uint32_t chunk_count;
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
    free(s->slabs);
    free(s->sources);
    free(s);
}

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

static struct chunk *chunk_at(const struct run_store *s, uint32_t id)
{
    return &s->slabs[id / SLAB_CHUNKS][id % SLAB_CHUNKS];
}

/* NO_CHUNK: no room, s->error is set. */
static uint32_t new_chunk(struct run_store *s)
{
    if (s->chunk_count == s->slab_count * SLAB_CHUNKS) {
        void *slab = NULL;

        if (s->chunk_count < NO_CHUNK - SLAB_CHUNKS)
            slab = map_bytes(s, SLAB_BYTES, s->slab_count * SLAB_BYTES >= MEMORY_BYTES);
        else
            errno = EFBIG;
        if (!slab) {
            s->error = errno;
            return NO_CHUNK;
        }
        if (s->slab_count == s->slab_capacity) {
            s->slab_capacity = s->slab_capacity ? s->slab_capacity * 2 : 16;
            s->slabs = cli_realloc(s->slabs, s->slab_capacity, sizeof *s->slabs);
        }
        s->slabs[s->slab_count++] = slab;
    }
    chunk_at(s, s->chunk_count)->next = NO_CHUNK;
    chunk_at(s, s->chunk_count)->used = 0;
    return s->chunk_count++;
}

static void close_run(struct run_store *s, struct run_source *src)
{
    struct chunk *c;

    if (src->open.count == 0 || s->error)
        return;
    if (src->tail == NO_CHUNK || chunk_at(s, src->tail)->used == CHUNK_RUNS) {
        uint32_t id = new_chunk(s);

        if (id == NO_CHUNK)
            return;
        if (src->tail == NO_CHUNK)
            src->head = id;
        else
            chunk_at(s, src->tail)->next = id;
        src->tail = id;
    }
    c = chunk_at(s, src->tail);
    c->runs[c->used++] = src->open;
    src->runs++;
    src->open.count = 0;
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

    if (source >= s->source_count)
        make_sources(s, source);
    src = &s->sources[source];
    if (time_ns < src->first_ns)
        src->first_ns = time_ns;
    if (time_ns < src->last_ns)
        src->disordered = true;
    else
        src->last_ns = time_ns;
    if (src->open.count > 0 && src->open.stack == stack && src->open.count < UINT32_MAX &&
        !src->disordered) {
        src->open.count++;
        return;
    }
    close_run(s, src);
    src->open = (struct run){.time_ns = time_ns, .stack = stack, .count = 1};
}

int runs_finish(struct run_store *s)
{
    for (size_t i = 0; i < s->source_count; i++)
        close_run(s, &s->sources[i]);
    if (!s->error)
        return 0;
    cli_error("%s: no room for samples in time order: %s", spill_folder(), strerror(s->error));
    return -1;
}

uint64_t runs_first_ns(const struct run_store *s, uint32_t source)
{
    return source < s->source_count ? s->sources[source].first_ns : UINT64_MAX;
}

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

static int visit_sorted(struct run_store *s, const struct run_source *src, runs_visit_fn *visit,
                        void *user)
{
    size_t bytes = (size_t)src->runs * sizeof(struct run), n = 0;
    off_t spill_bytes = s->spill_bytes;
    struct run *a = map_bytes(s, bytes, bytes > MEMORY_BYTES / 2), *b = NULL, *sorted;
    int rc = -1;

    if (a)
        b = map_bytes(s, bytes, bytes > MEMORY_BYTES / 2);
    if (!b) {
        cli_error("%s: no room to sort samples by time: %s", spill_folder(), strerror(errno));
        goto done;
    }
    for (uint32_t id = src->head; id != NO_CHUNK; id = chunk_at(s, id)->next) {
        const struct chunk *c = chunk_at(s, id);

        memcpy(&a[n], c->runs, c->used * sizeof *a);
        n += c->used;
    }
    sorted = sort_runs(a, b, n);
    for (size_t i = 0; i < n; i++)
        visit(user, &sorted[i]);
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
    const struct run_source *src;

    if (source >= s->source_count || s->sources[source].runs == 0)
        return 0;
    src = &s->sources[source];
    if (src->disordered)
        return visit_sorted(s, src, visit, user);
    for (uint32_t id = src->head; id != NO_CHUNK; id = chunk_at(s, id)->next) {
        const struct chunk *c = chunk_at(s, id);

        for (uint32_t i = 0; i < c->used; i++)
            visit(user, &c->runs[i]);
    }
    return 0;
}
