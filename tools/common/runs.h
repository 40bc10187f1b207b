/* SPDX-License-Identifier: MIT */
/*
 * Samples in time order, for outputs that show it: 16 bytes a run of equal stacks. What exceeds 64 MiB lies in an
 * unlinked file in TMPDIR; of stores that share their memory, what exceeds it in all, but for 4 MiB of each. Beside
 * that a thread takes 80 bytes, from its second sample on 224 at most.
 */
#ifndef TOOLS_RUNS_H
#define TOOLS_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number of samples of one thread with the same source and stack, no other sample between them. */
struct run {
    uint64_t time_ns; /* of the first */
    uint32_t stack;
    uint32_t count;
};

/* Which neighbours make one run. */
enum runs_merge {
    RUNS_ADJACENT = 0, /* all with an equal stack */
    RUNS_WITHOUT_GAP,  /* those of them that follow each other in interval_ns; gap.h has the rule */
    RUNS_NEVER         /* a run is a sample */
};

struct run_store;

/* interval_ns >= 1 with RUNS_WITHOUT_GAP. some_may_go: whole sources or stacks may turn out not to count in the end, so
 * nothing about a gap may be concluded from the times of samples outside the run at hand. */
struct run_store *runs_new(enum runs_merge merge, uint64_t interval_ns, bool some_may_go);

/* Has a store count its memory together with others': *used_bytes, 0 at first, must outlive it. */
void runs_share_memory(struct run_store *s, size_t *used_bytes);
void runs_free(struct run_store *s);

/* Takes a sample in; threads are small numbers, each a time order of its own. One that arrives after up to 8 later ones
 * of its thread is put where it belongs. One that arrives after more stands by its time, too, but behind all of a run
 * that was merged by then across it. With RUNS_WITHOUT_GAP, a first sample of all threads that arrives so late leaves
 * those of other threads before it as they were merged. Errors (a full TMPDIR) are kept for runs_finish. */
void runs_add(struct run_store *s, uint32_t thread, uint32_t source, uint64_t time_ns,
              uint32_t stack);

/* Ends adding. 0, or -1 after an error message. */
int runs_finish(struct run_store *s);

/* A walk over the runs of a thread in time order, equal times in file order. Neighbours may have equal stacks. */
struct run_cursor {
    struct run_store *store;
    const struct run_thread *thread;  /* NULL: no samples */
    const struct sourced_run *sorted; /* with disorder: all of them, in memory of the cursor */
    void *sort_memory;
    size_t sort_bytes;
    int64_t spill_bytes; /* of the store before that */
    size_t at, count;
    uint32_t chunk, in_chunk;
    uint32_t source;
};

/* Begins at the first run. 0, or -1 after an error message (no room to sort). One cursor of a store at a time may be
 * open. runs_close in any case. */
int runs_open(struct run_cursor *c, struct run_store *s, uint32_t thread);
/* The next run and its source; false at the end. */
bool runs_next(struct run_cursor *c, struct run *run, uint32_t *source);
void runs_close(struct run_cursor *c);

/* Earliest time of a thread; UINT64_MAX when it has no samples. */
uint64_t runs_first_ns(const struct run_store *s, uint32_t thread);

/* One more than the largest thread that has samples. */
uint32_t runs_thread_count(const struct run_store *s);

#endif
