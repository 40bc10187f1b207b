/* SPDX-License-Identifier: MIT */
/*
 * The recorder's unwinder as a replay drives it: files opened when a frame first hits them, rule tables, a
 * cache.
 */
#ifndef REPLAY_WORLD_H
#define REPLAY_WORLD_H

#include <stdbool.h>

#include "replay_process.h"
#include "unwind.h"

#define REPLAY_FRAMES 1024

struct replay_file {
    bool tried;
    bool is_file;
    bool trampoline;
    struct image *image;
    struct rule_table *rules;
};

struct replay_world {
    const struct replay *replay;
    struct replay_file *files;      /* by module */
    struct unwind_space space;      /* user is the world */
    const struct replay_view *view; /* of the sample that is walked */
    bool hidden;                    /* find() shows no image: there is code, but no unwind data */
};

struct replay_walk {
    struct unwind_frame frame[REPLAY_FRAMES];
    struct unwind_result result;
};

/* Exits with 2 when there is no memory. */
void replay_world_init(struct replay_world *world, const struct replay *replay, bool cached);
void replay_world_free(struct replay_world *world);

void replay_world_walk(struct replay_world *world, const struct replay_sample *sample,
                       struct replay_walk *out);

/* Whether something executable is mapped at the address, and what; opens its file. */
bool replay_world_find(void *user, uint64_t address, struct unwind_range *out);

/* The vdso of this process, which is everyone's on this machine; NULL: none. */
const void *replay_vdso(size_t *size);

#endif
