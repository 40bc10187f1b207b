/* SPDX-License-Identifier: MIT */
/*
 * Time per frame of the ways to walk, one after the other in each round. Cold begins with nothing opened and ends
 * with everything closed; the others have seen all samples before. Stacks are copied a moment before they are
 * walked, as the kernel does for a recorder; "far" ones come from hundreds of megabytes that are in no cache of the
 * processor, where a walk is mostly waiting for them. Bare is the loop beside all: it is told where each return address
 * lies in the copy of the stack, and reads it. Processor time, since the machine may have other work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay_modes.h"

#define ROUNDS 5

/* Samples copied at once: their stacks have 2 MiB. */
#define BATCH 64
#define STACK_MAX 65536

enum { COLD, WARM, UNCACHED, LIBDW, FAR, FAR_LIBDW, BARE, WAYS };

static const char *const names[WAYS] = {"cold", "warm",      "uncached", "libdw",
                                        "far",  "far-libdw", "bare"};

/* Where the return addresses of all stacks lie, in bytes from the stack pointer: those of one after those of the other. */
struct return_places {
    uint32_t *offset;
    size_t *end; /* of each sample's, in offset */
};

/* What walks: world, or libdw or bare when that is not NULL. */
struct walker {
    struct replay_world *world;
    struct libdw_files *libdw;
    const struct return_places *bare;
    size_t sample; /* bare: the one that comes next */
    size_t frames;
    double took_ns;
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *need(void *memory)
{
    if (memory == NULL) {
        fputs("unwind_replay: no memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* By libdw's walk, of which the frame below has its return address 8 bytes under the CFA. */
static struct return_places find_return_places(struct libdw_files *libdw,
                                               const struct replay *replay)
{
    static struct libdw_state states[REPLAY_FRAMES];
    static struct libdw_walk walk = {.state = states};
    struct return_places places = {.end = need(malloc((replay->count + 1) * sizeof(size_t)))};
    size_t count = 0, room = 0;

    for (size_t i = 0; i < replay->count; i++) {
        const struct perf_event *event = replay->samples[i].event;

        libdw_files_walk(libdw, &replay->samples[i], &walk);
        for (size_t frame = 1; frame < walk.count; frame++) {
            uint64_t offset = states[frame].cfa - 8 - event->sample.regs.value[reg_sp(ARCH_NATIVE)];

            if (offset + 8 > event->sample.stack_size)
                continue;
            if (count == room) {
                room = room == 0 ? 4096 : room * 2;
                places.offset = need(realloc(places.offset, room * sizeof *places.offset));
            }
            places.offset[count++] = (uint32_t)offset;
        }
        places.end[i] = count;
    }
    return places;
}

/* Returns how many frames, the sampled one included. */
static size_t walk_bare(struct walker *walker, const struct replay_sample *sample)
{
    static volatile uint64_t addresses[REPLAY_FRAMES];
    const struct return_places *places = walker->bare;
    size_t at = walker->sample == 0 ? 0 : places->end[walker->sample - 1];
    size_t count = 1;

    for (; at < places->end[walker->sample]; at++) {
        uint64_t address;

        memcpy(&address, sample->event->sample.stack + places->offset[at], sizeof address);
        addresses[count++ % REPLAY_FRAMES] = address;
    }
    walker->sample++;
    return count;
}

static void walk_all(struct walker *walker, const struct replay_sample *samples, size_t count)
{
    static struct replay_walk walk;
    static struct libdw_walk by_libdw;
    double start = now_ns();

    for (size_t i = 0; i < count; i++) {
        if (walker->bare != NULL) {
            walker->frames += walk_bare(walker, &samples[i]);
            continue;
        }
        if (walker->libdw != NULL)
            libdw_files_walk(walker->libdw, &samples[i], &by_libdw);
        else
            replay_world_walk(walker->world, &samples[i], &walk);
        walker->frames += walker->libdw != NULL ? by_libdw.count : walk.result.count;
    }
    walker->took_ns += now_ns() - start;
}

/* Walks copies made before each batch, which is not timed. */
static void walk_copies(struct walker *walker, const struct replay *replay)
{
    static uint8_t stacks[BATCH][STACK_MAX];
    struct perf_event events[BATCH];
    struct replay_sample batch[BATCH];
    size_t count = 0;

    for (size_t i = 0; i < replay->count; i += count) {
        for (count = 0; count < BATCH && i + count < replay->count; count++) {
            struct perf_event *event = &events[count];

            *event = *replay->samples[i + count].event;
            batch[count].view = replay->samples[i + count].view;
            batch[count].event = event;
            if (event->sample.stack_size > STACK_MAX)
                event->sample.stack_size = STACK_MAX;
            if (event->sample.stack_size > 0)
                memcpy(stacks[count], event->sample.stack, event->sample.stack_size);
            event->sample.stack = stacks[count];
        }
        walk_all(walker, batch, count);
    }
}

static void walk_cold(struct walker *walker, const struct replay *replay)
{
    struct replay_world world;
    double start = now_ns();

    replay_world_init(&world, replay, true);
    walker->world = &world;
    walker->took_ns += now_ns() - start;
    walk_copies(walker, replay);
    start = now_ns();
    replay_world_free(&world);
    walker->took_ns += now_ns() - start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int replay_bench(const struct replay *replay)
{
    static double ns_per_frame[WAYS][ROUNDS];
    struct replay_world cached, uncached;
    struct libdw_files *libdw = libdw_files_new(replay);
    struct return_places places = find_return_places(libdw, replay);
    size_t frames = 0;

    replay_world_init(&cached, replay, true);
    replay_world_init(&uncached, replay, false);
    /* The first round is to warm up: caches have grown then. */
    for (int round = -1; round < ROUNDS; round++) {
        for (int i = 0; i < WAYS; i++) {
            struct walker walker = {i == UNCACHED ? &uncached : &cached,
                                    i == LIBDW || i == FAR_LIBDW ? libdw : NULL,
                                    i == BARE ? &places : NULL,
                                    0,
                                    0,
                                    0};

            if (i == COLD)
                walk_cold(&walker, replay);
            else if (i == FAR || i == FAR_LIBDW)
                walk_all(&walker, replay->samples, replay->count);
            else
                walk_copies(&walker, replay);
            if (round >= 0)
                ns_per_frame[i][round] =
                    walker.took_ns / (double)(walker.frames == 0 ? 1 : walker.frames);
            if (i == WARM)
                frames = walker.frames;
        }
    }
    printf("samples %zu frames %zu", replay->count, frames);
    for (int i = 0; i < WAYS; i++) {
        qsort(ns_per_frame[i], ROUNDS, sizeof(double), by_value);
        printf(" %s %.1f", names[i], ns_per_frame[i][ROUNDS / 2]);
    }
    printf(" libdw/warm %.1f\n", ns_per_frame[LIBDW][ROUNDS / 2] / ns_per_frame[WARM][ROUNDS / 2]);
    free(places.offset);
    free(places.end);
    replay_world_free(&cached);
    replay_world_free(&uncached);
    libdw_files_free(libdw);
    return 0;
}
