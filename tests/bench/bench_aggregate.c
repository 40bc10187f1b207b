/* SPDX-License-Identifier: MIT */
/*
 * Times the counting that every converter does: all records of a spool in memory, decoded with all checks and counted
 * per (process, stack) by tools/common/aggregate.c, cells made. The measure beside it is bare_loops hash.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "aggregate.h"
#include "cli.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The whole file, so that reading it is not timed. */
static void *load(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *data = NULL;
    size_t got = 0;

    if (fd >= 0 && fstat(fd, &st) == 0)
        data = malloc((size_t)st.st_size + 1);
    while (data && got < (size_t)st.st_size) {
        ssize_t n = read(fd, data + got, (size_t)st.st_size - got);

        if (n <= 0)
            break;
        got += (size_t)n;
    }
    if (!data || got < (size_t)st.st_size) {
        perror(path);
        exit(1);
    }
    close(fd);
    *size = got;
    return data;
}

int main(int argc, char **argv)
{
    bool per_thread = argc == 3 && strcmp(argv[1], "--per-thread") == 0;
    struct select_options select = {0};
    struct aggregate_options options = {.per_thread = per_thread, .select = &select};
    struct tool_input in = {.name = argv[argc - 1]};
    struct aggregate a;
    struct rusage usage;
    uint64_t checksum = 0;
    size_t size;
    double begin, end;
    void *data;

    if (argc != 2 + per_thread) {
        fputs("usage: bench_aggregate [--per-thread] FILE\n", stderr);
        return 2;
    }
    cli_set_program("bench_aggregate", false);
    data = load(in.name, &size);
    begin = now();
    in.reader = spool_reader_new();
    if (!in.reader || spool_reader_open_memory(in.reader, data, size) < 0 ||
        aggregate_read(&a, &options, &in, NULL) < 0 || aggregate_finish(&a) < 0) {
        fprintf(stderr, "bench_aggregate: %s: %s\n", in.name,
                in.reader ? spool_reader_error(in.reader) : "out of memory");
        return 1;
    }
    end = now();
    for (size_t i = 0; i < a.cell_count; i++)
        checksum += a.cells[i].count * (a.cells[i].stack + (uint64_t)1);
    getrusage(RUSAGE_SELF, &usage);
    printf("seconds %.4f samples %" PRIu64 " distinct %zu checksum %016" PRIx64 " peak_kib %ld\n",
           end - begin, a.samples, a.cell_count, checksum, usage.ru_maxrss - (long)(size / 1024));
    aggregate_free(&a);
    spool_reader_free(in.reader);
    free(data);
    return 0;
}
