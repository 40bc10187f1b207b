/* SPDX-License-Identifier: MIT */
/*
 * Samples in time order, for outputs that show it: 16 bytes a run of equal stacks. What exceeds 64 MiB lies in an
 * unlinked file in TMPDIR.
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

/* Takes a sample in. Samples of a source that arrive out of time order are sorted in later; from the first such sample
 * on its runs are merged only after sorting. Errors (a full TMPDIR) are kept for runs_finish. */
void runs_add(struct run_store *s, uint32_t source, uint64_t time_ns, uint32_t stack);

/* Ends adding. 0, or -1 after an error message. */
int runs_finish(struct run_store *s);

/* Calls visit for the runs of a source in time order, equal times in file order; neighbours may have equal stacks.
 * Returns 0, or -1 after an error message (no room to sort). */
typedef void runs_visit_fn(void *user, const struct run *run);
int runs_visit(struct run_store *s, uint32_t source, runs_visit_fn *visit, void *user);

/* Earliest time of a source; UINT64_MAX when it has no samples. */
uint64_t runs_first_ns(const struct run_store *s, uint32_t source);

#endif
