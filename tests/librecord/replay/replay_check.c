/* SPDX-License-Identifier: MIT */
/*
 * Recording 7: each sample through the caches, without them, and by libdw: the same frames. libdw has nothing where
 * unwind data ends; there ours may go on, and must say that it guessed. REPLAY_ODD=1 in the environment: prints stacks
 * that end for want of unwind data, or were guessed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "replay_modes.h"

/* The cache may grow when addresses are in each other's way, from 2^10 to 2^16 entries. */
#define CACHE_GROWTHS 6

static const char *const end_names[] = {"complete",  "truncated",   "stack-read",  "no-progress",
                                        "backwards", "null-return", "overflow",    "depth",
                                        "no-rule",   "uprobe",      "no-registers"};
static const char *const libdw_end_names[] = {"complete", "no-cfi", "unmapped",  "unreadable",
                                              "stuck",    "depth",  "expression"};

struct counts {
    size_t frames, signals, guessed;
    size_t ends[UNWIND_NO_REGISTERS + 1];
    size_t beyond; /* stacks where ours went on without unwind data */
    size_t differing;
};

static void print_frame(const struct replay *replay, const struct replay_sample *sample,
                        uint64_t address)
{
    const struct replay_mapping *m = replay_mapping_at(sample->view, address);

    if (m == NULL)
        fprintf(stderr, "    %" PRIx64 "\n", address);
    else
        fprintf(stderr, "    %" PRIx64 " %s+0x%" PRIx64 "\n", address, replay->paths[m->module],
                address - m->start + m->file_offset);
}

static void print_walk(const struct replay *replay, const struct replay_sample *sample,
                       const char *who, const struct replay_walk *walk)
{
    fprintf(stderr, "  %s, %s%s:\n", who, end_names[walk->result.end],
            walk->result.guessed ? ", guessed" : "");
    for (size_t i = 0; i < walk->result.count; i++)
        print_frame(replay, sample, walk->frame[i].address);
}

static void print_difference(const struct replay *replay, size_t index, const struct replay_walk *a,
                             const struct replay_walk *b, const struct libdw_walk *w)
{
    const struct replay_sample *sample = &replay->samples[index];
    const struct perf_event *event = sample->event;

    fprintf(stderr,
            "sample %zu of process %d at %" PRIu64 " ns, %zu bytes of stack\n  registers:", index,
            (int)event->pid, event->time_ns, event->sample.stack_size);
    for (unsigned i = 0; i < REG_COUNT; i++)
        if (reg_is_known(&event->sample.regs, i))
            fprintf(stderr, " %u:%" PRIx64, i, event->sample.regs.value[i]);
    fputc('\n', stderr);
    print_walk(replay, sample, "cached", a);
    print_walk(replay, sample, "uncached", b);
    fprintf(stderr, "  libdw, %s:\n", libdw_end_names[w->end]);
    for (size_t i = 0; i < w->count; i++)
        print_frame(replay, sample, w->address[i]);
}

static bool same(const struct replay_walk *a, const struct replay_walk *b)
{
    bool equal = a->result.count == b->result.count && a->result.end == b->result.end &&
                 a->result.guessed == b->result.guessed && a->result.signal == b->result.signal;

    for (size_t i = 0; equal && i < a->result.count; i++)
        equal =
            a->frame[i].address == b->frame[i].address && a->frame[i].module == b->frame[i].module;
    return equal;
}

/* Whether our end is what the step that ended libdw's walk says. */
static bool same_end(enum unwind_end ours, enum libdw_end libdw)
{
    switch (libdw) {
    case LIBDW_COMPLETE:
        return ours == UNWIND_COMPLETE;
    case LIBDW_UNMAPPED:
        return ours == UNWIND_NO_RULE || ours == UNWIND_UPROBE;
    case LIBDW_READ:
        return ours == UNWIND_TRUNCATED || ours == UNWIND_STACK_READ;
    case LIBDW_STUCK:
        return ours == UNWIND_NO_PROGRESS || ours == UNWIND_BACKWARDS;
    case LIBDW_DEPTH:
        return ours == UNWIND_DEPTH;
    case LIBDW_EXPRESSION:
        return ours == UNWIND_NO_RULE || ours == UNWIND_OVERFLOW;
    default:
        return true; /* nothing to hold ours against */
    }
}

static bool same_as_libdw(const struct replay_walk *a, const struct libdw_walk *w, size_t *beyond)
{
    bool equal = a->result.count >= w->count;
    bool more = a->result.count > w->count;

    for (size_t i = 0; equal && i < w->count; i++)
        equal = a->frame[i].address == w->address[i];
    if (!equal)
        return false;
    if (!more)
        return same_end(a->result.end, w->end);
    ++*beyond;
    /* Without data, or a leaf whose rule leads nowhere: the rest is a guess. Signal trampolines
     * without data are known by their code. */
    return (w->end == LIBDW_NO_CFI &&
            (a->result.guessed || a->result.by_code || a->result.signal)) ||
           ((w->end == LIBDW_READ || w->end == LIBDW_STUCK) && a->result.guessed);
}

/* Counts allocations of passes over known stacks until one has none. */
static size_t warm_allocations(struct replay_world *world)
{
    static struct replay_walk walk;
    size_t allocations = 0;

    for (int pass = 0; pass <= CACHE_GROWTHS; pass++) {
        size_t before = replay_allocations();

        for (size_t i = 0; i < world->replay->count; i++)
            replay_world_walk(world, &world->replay->samples[i], &walk);
        allocations = replay_allocations() - before;
        if (allocations == 0)
            break;
    }
    return allocations;
}

static void print_counts(const struct replay *replay, const struct counts *n)
{
    printf("samples %zu\nframes %zu\nframes-per-sample %.1f\n", replay->count, n->frames,
           replay->count == 0 ? 0 : (double)n->frames / (double)replay->count);
    printf("complete-percent %.2f\n", replay_percent(n->ends[UNWIND_COMPLETE], replay->count));
    for (size_t i = 1; i <= UNWIND_NO_REGISTERS; i++)
        if (n->ends[i] != 0)
            printf("end-%s %zu\n", end_names[i], n->ends[i]);
    printf("with-signal %zu\nguessed %zu\nbeyond-libdw %zu\ndiffering %zu\n", n->signals,
           n->guessed, n->beyond, n->differing);
}

int replay_check(const struct replay *replay)
{
    static struct replay_walk a, b;
    static struct libdw_walk w;
    struct replay_world cached, uncached;
    struct libdw_files *libdw = libdw_files_new(replay);
    struct counts n = {0};
    size_t allocations;
    bool print_odd = getenv("REPLAY_ODD") != NULL;

    replay_world_init(&cached, replay, true);
    replay_world_init(&uncached, replay, false);
    for (size_t i = 0; i < replay->count; i++) {
        replay_world_walk(&cached, &replay->samples[i], &a);
        replay_world_walk(&uncached, &replay->samples[i], &b);
        libdw_files_walk(libdw, &replay->samples[i], &w);
        n.frames += a.result.count;
        n.ends[a.result.end]++;
        n.signals += a.result.signal;
        n.guessed += a.result.guessed;
        if (print_odd && (a.result.guessed ||
                          (a.result.end != UNWIND_COMPLETE && a.result.end != UNWIND_TRUNCATED)))
            print_walk(replay, &replay->samples[i], "cached", &a);
        if ((!same(&a, &b) || !same_as_libdw(&a, &w, &n.beyond)) && n.differing++ == 0)
            print_difference(replay, i, &a, &b, &w);
    }
    allocations = warm_allocations(&cached);
    print_counts(replay, &n);
    printf("warm-allocations %zu\n", allocations);
    libdw_files_free(libdw);
    replay_world_free(&cached);
    replay_world_free(&uncached);
    return n.differing == 0 && allocations == 0 && replay->count > 0 ? 0 : 1;
}
