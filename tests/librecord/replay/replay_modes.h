/* SPDX-License-Identifier: MIT */
/* What unwind_replay can do with recorded samples. Each prints its numbers and returns the exit status. */
#ifndef REPLAY_MODES_H
#define REPLAY_MODES_H

#include <stddef.h>

#include "replay_libdw.h"
#include "replay_world.h"

int replay_check(const struct replay *replay);
int replay_bench(const struct replay *replay);
int replay_blind(const struct replay *replay);

/* Memory taken since the program began: calls of malloc and its like. */
size_t replay_allocations(void);

/* The heuristics in the order in which the walk tries them, each by itself. */
struct walk;
struct replay_heuristic {
    const char *name;
    int (*step)(struct walk *w);
};
extern const struct replay_heuristic replay_heuristics[];
extern const size_t replay_heuristic_count;

static inline double replay_percent(size_t part, size_t all)
{
    return all == 0 ? 0 : 100.0 * (double)part / (double)all;
}

#endif
