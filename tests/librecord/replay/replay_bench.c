/* SPDX-License-Identifier: MIT */
/*
 * Time per frame of the ways to walk, one after the other in each round. Cold begins with nothing opened and ends
 * with everything closed; the others have seen all samples before. Processor time, since the machine may have
 * other work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "replay_modes.h"

#define ROUNDS 5

struct way {
    const char *name;
    double ns_per_frame[ROUNDS];
    size_t frames;
};

enum { COLD, WARM, UNCACHED, LIBDW, WAYS };

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static size_t pass(struct replay_world *world)
{
    static struct replay_walk walk;
    size_t frames = 0;

    for (size_t i = 0; i < world->replay->count; i++) {
        replay_world_walk(world, &world->replay->samples[i], &walk);
        frames += walk.result.count;
    }
    return frames;
}

static size_t pass_cold(const struct replay *replay)
{
    struct replay_world world;
    size_t frames;

    replay_world_init(&world, replay, true);
    frames = pass(&world);
    replay_world_free(&world);
    return frames;
}

static size_t pass_libdw(struct libdw_files *files, const struct replay *replay)
{
    static struct libdw_walk walk;
    size_t frames = 0;

    for (size_t i = 0; i < replay->count; i++) {
        libdw_files_walk(files, &replay->samples[i], &walk);
        frames += walk.count;
    }
    return frames;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int replay_bench(const struct replay *replay)
{
    static struct way ways[WAYS] = {[COLD] = {.name = "cold"},
                                    [WARM] = {.name = "warm"},
                                    [UNCACHED] = {.name = "uncached"},
                                    [LIBDW] = {.name = "libdw"}};
    struct replay_world cached, uncached;
    struct libdw_files *libdw = libdw_files_new(replay);

    replay_world_init(&cached, replay, true);
    replay_world_init(&uncached, replay, false);
    pass(&cached);
    pass(&cached); /* the cache has grown as it needs to */
    pass(&uncached);
    pass_libdw(libdw, replay);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WAYS; i++) {
            double start = now_ns();
            size_t frames = i == COLD       ? pass_cold(replay)
                            : i == WARM     ? pass(&cached)
                            : i == UNCACHED ? pass(&uncached)
                                            : pass_libdw(libdw, replay);

            ways[i].frames = frames;
            ways[i].ns_per_frame[round] = (now_ns() - start) / (double)(frames == 0 ? 1 : frames);
        }
    }
    printf("samples %zu frames %zu", replay->count, ways[WARM].frames);
    for (int i = 0; i < WAYS; i++) {
        qsort(ways[i].ns_per_frame, ROUNDS, sizeof(double), by_value);
        printf(" %s %.1f", ways[i].name, ways[i].ns_per_frame[ROUNDS / 2]);
    }
    printf(" libdw/warm %.1f\n",
           ways[LIBDW].ns_per_frame[ROUNDS / 2] / ways[WARM].ns_per_frame[ROUNDS / 2]);
    replay_world_free(&cached);
    replay_world_free(&uncached);
    libdw_files_free(libdw);
    return 0;
}
