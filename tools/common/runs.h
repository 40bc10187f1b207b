/* SPDX-License-Identifier: MIT */
/*
 * Samples in time order, for outputs that show it: 16 bytes a run of equal stacks. What exceeds 64 MiB lies in an
 * unlinked file in TMPDIR. Beside that a source takes 56 bytes, from its second sample on 200 at most.
 */
#ifndef TOOLS_RUNS_H
#define TOOLS_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number of samples of one source with the same stack, none of another stack between them. */
struct run {
    uint64_t time_ns; /* of the first */
    uint32_t stack;
    uint32_t count;
};

struct run_store;

struct run_store *runs_new(void);
void runs_free(struct run_store *s);

/* Takes a sample in. One that arrives after up to 8 later ones of its source is put where it belongs. One that
 * arrives after more stands by its time, too, but behind all of a run that was merged by then across it. Errors (a
 * full TMPDIR) are kept for runs_finish. */
void runs_add(struct run_store *s, uint32_t source, uint64_t time_ns, uint32_t stack);

/* Ends adding. 0, or -1 after an error message. */
int runs_finish(struct run_store *s);

/* Calls visit for the runs of a source in time order, equal times in file order; neighbours have different stacks,
 * but for counts beyond 32 bits. A run is valid during the call. Returns 0, or -1 after an error message (no room to
 * sort). */
typedef void runs_visit_fn(void *user, const struct run *run);
int runs_visit(struct run_store *s, uint32_t source, runs_visit_fn *visit, void *user);

/* Earliest time of a source; UINT64_MAX when it has no samples. */
uint64_t runs_first_ns(const struct run_store *s, uint32_t source);

#endif
