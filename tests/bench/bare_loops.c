/* SPDX-License-Identifier: MIT */
/*
 * What the benchmarks are measured against: loops over a spool in memory without a single check, so
 * never to be run on a file that is not known to be good. See tests/bench/run.
 *
 *   decode  reads every varint and counts samples per stack in an array
 *   hash    the same, and counts per (thread, stack) in a hash table
 *   write   writes the file's bytes to another one
 *   gzip    packs the file's bytes at level 6 and forgets them
 *   run     runs a program and says how long it took and how much memory it had
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ZLIB_CONST
#include <zlib.h>

#define PADDING 64 /* zeros behind the file: the loops look at whole varints, and tag 0 ends them */
#define CHUNK ((size_t)1 << 20)
#define FREE_KEY UINT64_MAX

struct pair_count {
    uint64_t key; /* thread << 32 | stack */
    uint64_t count;
};

struct pair_table {
    struct pair_count *slots;
    size_t capacity;
    size_t used;
    unsigned shift;
};

struct totals {
    uint64_t records;
    uint64_t samples;
    uint64_t checksum;
    uint64_t distinct;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bare_loops: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* On a machine that others use, processor time is what can be compared (BENCH_CPU=1). */
static double now(void)
{
    struct timespec t;

    clock_gettime(getenv("BENCH_CPU") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint8_t *load(const char *path, size_t *size)
{
    struct stat st;
    uint8_t *data;
    size_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        die(path);
    *size = (size_t)st.st_size;
    data = malloc(*size + PADDING);
    if (data == NULL)
        die(path);
    while (got < *size) {
        ssize_t n = read(fd, data + got, *size - got);

        if (n <= 0)
            die(path);
        got += (size_t)n;
    }
    memset(data + *size, 0, PADDING);
    close(fd);
    return data;
}

/* ---- decoding ---- */

static inline const uint8_t *varint(const uint8_t *p, uint64_t *value)
{
    uint64_t v = p[0];

    if (v < 0x80) {
        *value = v;
        return p + 1;
    }
    v = (v & 0x7f) | (uint64_t)p[1] << 7;
    if (p[1] < 0x80) {
        *value = v;
        return p + 2;
    }
    v = (v & 0x3fff) | (uint64_t)p[2] << 14;
    if (p[2] < 0x80) {
        *value = v;
        return p + 3;
    }
    v = (v & 0x1fffff) | (uint64_t)p[3] << 21;
    if (p[3] < 0x80) {
        *value = v;
        return p + 4;
    }
    v &= 0xfffffff;
    p += 4;
    for (unsigned shift = 28; shift < 70; shift += 7) {
        v |= (uint64_t)(*p & 0x7f) << shift;
        if (*p++ < 0x80)
            break;
    }
    *value = v;
    return p;
}

static inline const uint8_t *varints(const uint8_t *p, unsigned count, uint64_t *checksum)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t v;

        p = varint(p, &v);
        *checksum += v;
    }
    return p;
}

static const uint8_t *header(const uint8_t *p, uint64_t *checksum)
{
    unsigned version = p[6] - '0';
    uint64_t origin;

    p = varints(p + 8, 2, checksum);
    if (version < 4)
        return p;
    p = varint(p, &origin);
    return origin == 1 ? varints(p, 4, checksum) : p;
}

static const uint8_t *module(const uint8_t *p, unsigned version, bool jit, uint64_t *checksum)
{
    uint64_t size, symbols = 0;

    p = varints(p, version >= 3 ? 9 : 6, checksum);
    p = varint(p + 1, &size); /* the flag is one byte */
    p += size;
    if (jit)
        p = varint(p, &symbols);
    for (uint64_t i = 0; i < symbols; i++) {
        p = varints(p, 2, checksum);
        p = varint(p, &size);
        p += size;
    }
    return p;
}

static inline int64_t zigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* ---- counting per (thread, stack) ---- */

static inline size_t slot_of(const struct pair_table *t, uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> t->shift);
}

static void table_reset(struct pair_table *t, size_t capacity)
{
    t->capacity = capacity;
    t->used = 0;
    t->shift = 64;
    for (size_t n = capacity; n > 1; n >>= 1)
        t->shift--;
    t->slots = malloc(capacity * sizeof *t->slots);
    if (t->slots == NULL)
        die("hash table");
    memset(t->slots, 0xff, capacity * sizeof *t->slots);
}

static inline struct pair_count *probe(const struct pair_table *t, uint64_t key)
{
    size_t i = slot_of(t, key);

    while (t->slots[i].key != key && t->slots[i].key != FREE_KEY)
        i = (i + 1) & (t->capacity - 1);
    return &t->slots[i];
}

static __attribute__((noinline)) void table_grow(struct pair_table *t)
{
    struct pair_table old = *t;

    table_reset(t, old.capacity * 2);
    t->used = old.used;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].key != FREE_KEY)
            *probe(t, old.slots[i].key) = old.slots[i];
    free(old.slots);
}

static inline void table_count(struct pair_table *t, uint64_t key)
{
    struct pair_count *slot = probe(t, key);

    if (slot->key == key) {
        slot->count++;
        return;
    }
    slot->key = key;
    slot->count = 1;
    if (++t->used > t->capacity / 5 * 3)
        table_grow(t);
}

/* ---- the loops ---- */

/* One loop for both; with a constant `pairs` the compiler makes two of it. */
static inline __attribute__((always_inline)) struct totals loop(const uint8_t *p,
                                                                const uint8_t *end,
                                                                uint32_t *counts,
                                                                struct pair_table *pairs)
{
    struct totals t = {0};
    unsigned version = p[6] - '0';
    uint64_t time = 0;
    uint64_t delta, thread, stack;

    p = header(p, &t.checksum);
    while (p < end) {
        t.records++;
        switch (*p++) {
        case 5:
            p = varint(p, &delta);
            p = varint(p, &thread);
            p = varint(p, &stack);
            time += (uint64_t)zigzag(delta);
            t.checksum += time ^ thread;
            t.samples++;
            if (pairs != NULL)
                table_count(pairs, thread << 32 | stack);
            else
                counts[stack]++;
            break;
        case 2:
        case 3:
        case 4:
            p = varints(p, 3, &t.checksum);
            break;
        case 1:
            p = module(p, version, false, &t.checksum);
            break;
        case 9:
            p = module(p, version, true, &t.checksum);
            break;
        case 6:
            p = varints(p, 2, &t.checksum) + 1;
            break;
        case 7:
        case 8:
            p = varints(p, 1, &t.checksum);
            break;
        default:
            fputs("bare_loops: not a good spool\n", stderr);
            exit(1);
        }
    }
    return t;
}

static __attribute__((noinline)) struct totals decode(const uint8_t *data, size_t size)
{
    /* A stack node takes four bytes of the file or more. Never touched pages cost nothing. */
    size_t capacity = size / 4 + 1;
    uint32_t *counts = calloc(capacity, sizeof *counts);
    struct totals t;

    if (counts == NULL)
        die("counters");
    t = loop(data, data + size, counts, NULL);
    for (size_t i = 0; i < capacity; i++) {
        if (i % 1024 == 0 && i > t.records)
            break; /* no ids up there */
        t.distinct += counts[i] > 0;
        t.checksum += counts[i] * (uint64_t)i;
    }
    free(counts);
    return t;
}

static __attribute__((noinline)) struct totals hash(const uint8_t *data, size_t size)
{
    struct pair_table pairs;
    struct totals t;

    table_reset(&pairs, 1024);
    t = loop(data, data + size, NULL, &pairs);
    for (size_t i = 0; i < pairs.capacity; i++)
        if (pairs.slots[i].key != FREE_KEY)
            t.checksum += pairs.slots[i].count * (pairs.slots[i].key & UINT32_MAX);
    t.distinct = pairs.used;
    free(pairs.slots);
    return t;
}

static struct totals copy(const uint8_t *data, size_t size, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        die(path);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, data + done, size - done < CHUNK ? size - done : CHUNK);

        if (n <= 0)
            die(path);
        done += (size_t)n;
    }
    if (close(fd) != 0)
        die(path);
    return (struct totals){.checksum = size};
}

static struct totals pack(const uint8_t *data, size_t size)
{
    static uint8_t out[CHUNK];
    struct totals t = {0};
    z_stream z = {0};
    int rc = Z_OK;

    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        die("zlib");
    for (size_t done = 0; rc != Z_STREAM_END;) {
        size_t part = size - done < CHUNK ? size - done : CHUNK;

        if (z.avail_in == 0) {
            z.next_in = data + done;
            z.avail_in = (uInt)part;
            done += part;
        }
        z.next_out = out;
        z.avail_out = CHUNK;
        rc = deflate(&z, done == size ? Z_FINISH : Z_NO_FLUSH);
        t.checksum += CHUNK - z.avail_out;
    }
    deflateEnd(&z);
    return t;
}

/* The report goes to a file, because the output is the program's. */
static int run(const char *report, char **command)
{
    struct rusage use;
    double begin = now(), seconds;
    pid_t child = fork();
    int status;
    FILE *f;

    if (child < 0)
        die("fork");
    if (child == 0) {
        execvp(command[0], command);
        die(command[0]);
    }
    if (wait4(child, &status, 0, &use) < 0)
        die("wait");
    seconds = now() - begin;
    if (getenv("BENCH_CPU"))
        seconds = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                  (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
    f = fopen(report, "w");
    if (f == NULL)
        die(report);
    fprintf(f, "seconds %.4f peak_kib %ld\n", seconds, use.ru_maxrss);
    if (fclose(f) != 0)
        die(report);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static _Noreturn void usage(void)
{
    fputs("usage: bare_loops [--with-read] decode FILE\n"
          "       bare_loops [--with-read] hash FILE\n"
          "       bare_loops [--with-read] write FILE OUT\n"
          "       bare_loops [--with-read] gzip FILE\n"
          "       bare_loops run REPORT PROGRAM [ARGUMENT]...\n",
          stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    bool with_read = argc > 1 && strcmp(argv[1], "--with-read") == 0;
    char **arg = argv + 1 + with_read;
    int count = argc - 1 - with_read;
    struct totals t;
    double begin, end;
    uint8_t *data;
    size_t size;

    if (count > 2 && strcmp(arg[0], "run") == 0)
        return run(arg[1], arg + 2);
    if (count < 2 || count != (strcmp(arg[0], "write") == 0 ? 3 : 2))
        usage();
    begin = now();
    data = load(arg[1], &size);
    if (!with_read)
        begin = now();
    if (strcmp(arg[0], "write") == 0)
        t = copy(data, size, arg[2]);
    else if (strcmp(arg[0], "decode") == 0)
        t = decode(data, size);
    else if (strcmp(arg[0], "hash") == 0)
        t = hash(data, size);
    else if (strcmp(arg[0], "gzip") == 0)
        t = pack(data, size);
    else
        usage();
    end = now();
    printf("seconds %.4f records %" PRIu64 " samples %" PRIu64 " distinct %" PRIu64
           " checksum %016" PRIx64 "\n",
           end - begin, t.records, t.samples, t.distinct, t.checksum);
    free(data);
    return 0;
}
