/* SPDX-License-Identifier: MIT */
/*
 * unwind_replay check|bench|blind [--max N] FILE: unwinds the user stacks that perf record --call-graph dwarf has
 * put into FILE, on the machine that recorded them.
 *   check  cached, uncached and libdw's frames are the same; nothing is allocated for known stacks
 *   bench  nanoseconds per frame
 *   blind  how often what does without unwind data is right
 * Exit status 1: a difference.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_modes.h"

/* Linked with --wrap for each of them. */
static size_t allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    allocations++;
    return __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __real_aligned_alloc(alignment, size);
}

size_t replay_allocations(void)
{
    return allocations;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct replay *replay);
    } modes[] = {{"check", replay_check}, {"bench", replay_bench}, {"blind", replay_blind}};
    size_t max = 20000;
    struct perf_data data;
    struct replay replay;
    int status = 2;

    if (argc == 5 && strcmp(argv[2], "--max") == 0)
        max = (size_t)strtoul(argv[3], NULL, 10);
    else if (argc != 3)
        argc = 0;
    for (size_t i = 0; argc != 0 && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(argv[1], modes[i].name) != 0)
            continue;
        perf_data_open(&data, argv[argc - 1], max);
        replay_prepare(&replay, &data);
        status = modes[i].run(&replay);
        replay_free(&replay);
        perf_data_close(&data);
        return status;
    }
    fprintf(stderr, "usage: unwind_replay check|bench|blind [--max N] FILE\n");
    return status;
}
