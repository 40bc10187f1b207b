/* SPDX-License-Identifier: MIT */
/*
 * Times libspool: every record of a spool through spool_reader_next, with all its checks, and
 * samples counted per stack in an array. The measure beside it is bare_loops decode; see
 * tests/bench/run.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "spool/spool.h"

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_read: %s: %s\n", what, why);
    exit(1);
}

/* On a machine that others use, processor time is what can be compared (BENCH_CPU=1). */
static double now(void)
{
    struct timespec t;

    clock_gettime(getenv("BENCH_CPU") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *load(const char *path, int fd, size_t size)
{
    char *data = malloc(size + 1);
    size_t got = 0;

    if (data == NULL)
        die(path, strerror(errno));
    while (got < size) {
        ssize_t n = read(fd, data + got, size - got);

        if (n <= 0)
            die(path, n < 0 ? strerror(errno) : "became shorter");
        got += (size_t)n;
    }
    return data;
}

static _Noreturn void usage(void)
{
    fputs("usage: bench_read [--with-read] memory FILE\n"
          "       bench_read fd FILE\n",
          stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    bool with_read = argc > 1 && strcmp(argv[1], "--with-read") == 0;
    char **arg = argv + 1 + with_read;
    struct spool_record rec;
    struct spool_counts counts;
    struct spool_reader *r;
    struct rusage usage_self;
    struct stat st;
    uint64_t records = 0, checksum = 0, distinct = 0;
    uint32_t *per_stack;
    void *data = NULL;
    double begin, end;
    bool memory;
    int fd, rc;

    if (argc - with_read != 3)
        usage();
    memory = strcmp(arg[0], "memory") == 0;
    if (!memory && strcmp(arg[0], "fd") != 0)
        usage();
    fd = open(arg[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        die(arg[1], strerror(errno));
    begin = now();
    if (memory)
        data = load(arg[1], fd, (size_t)st.st_size);
    if (memory && !with_read)
        begin = now();
    r = spool_reader_new();
    /* A stack node takes four bytes of the file or more. */
    per_stack = calloc((size_t)st.st_size / 4 + 1, sizeof *per_stack);
    if (r == NULL || per_stack == NULL)
        die(arg[1], "out of memory");
    rc = memory ? spool_reader_open_memory(r, data, (size_t)st.st_size)
                : spool_reader_open_fd(r, fd);
    while (rc >= 0 && (rc = spool_reader_next(r, &rec)) > 0) {
        records++;
        if (rec.type == SPOOL_RECORD_SAMPLE) {
            per_stack[rec.sample.stack]++;
            checksum += rec.sample.time_ns ^ rec.sample.thread;
        }
    }
    if (rc < 0)
        die(arg[1], spool_reader_error(r));
    spool_reader_counts(r, &counts);
    for (uint32_t i = 0; i < counts.stacks; i++) {
        distinct += per_stack[i] > 0;
        checksum += per_stack[i] * (uint64_t)i;
    }
    end = now();
    getrusage(RUSAGE_SELF, &usage_self);
    printf("seconds %.4f records %" PRIu64 " samples %" PRIu64 " distinct %" PRIu64
           " checksum %016" PRIx64 " peak_kib %ld\n",
           end - begin, records, counts.samples, distinct, checksum, usage_self.ru_maxrss);
    spool_reader_free(r);
    free(per_stack);
    free(data);
    close(fd);
    return 0;
}
