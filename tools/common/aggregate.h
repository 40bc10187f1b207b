/* SPDX-License-Identifier: MIT */
/*
 * One pass over a spool: which samples count, and how often each (source, stack) was seen. Nothing is kept a sample
 * but, where time order is wanted, 16 bytes a run of equal stacks.
 */
#ifndef TOOLS_AGGREGATE_H
#define TOOLS_AGGREGATE_H

#include "epochs.h"
#include "inputs.h"
#include "names.h"
#include "notes.h"
#include "options.h"
#include "progress.h"
#include "runs.h"
#include "spread.h"

/* What is kept in time order. */
enum aggregate_runs {
    AGGREGATE_NO_RUNS = 0,
    AGGREGATE_RUNS, /* by thread, whatever is between them in time; needs per_thread */
    AGGREGATE_TIMED_RUNS, /* by thread, apart where there is a gap, if the spool states an interval; needs per_thread */
    AGGREGATE_EVENTS /* every sample, as if of thread 0 */
};

struct aggregate_options {
    bool per_thread;   /* sources are threads */
    bool source_stats; /* first, last and gaps of each source */
    bool epochs; /* sources end where names of the kernel may change: for those who ask for names */
    bool order;  /* cells know which sample was their first */
    enum aggregate_runs runs;
    size_t *run_bytes;  /* memory that runs of several inputs share (runs.h); NULL: their own */
    bool stacks_may_go; /* the caller may leave out stacks in the end */
    const struct select_options *select; /* --comm and --thread are applied by aggregate_finish */
};

/* Statistics of a source; times are monotonic ns. */
struct source_stats {
    uint64_t samples;
    uint64_t first_ns, last_ns; /* smallest and largest time */
    uint64_t previous_ns;       /* latest time so far in file order, for gaps */
    uint64_t gaps, gap_ns;      /* pauses of more than ten intervals, and their sum */
};

/* A number of equal samples. */
struct cell {
    uint32_t source;
    uint32_t stack;
    uint64_t count;
    uint64_t first; /* with options.order: which of the samples, counted from 0, was the first */
};

/* Samples are counted in batches; see aggregate.c. */
#define PENDING_SAMPLES 64
struct pending_sample {
    uint32_t source;
    uint32_t stack;
    uint64_t index; /* among those that count */
};

struct aggregate {
    struct aggregate_options options;
    struct names *names;
    struct notes notes;
    struct epochs epochs;       /* with options.epochs */
    struct run_store *runs;     /* with options.runs, by names_thread */
    struct source_stats *stats; /* by source; samples only, unless source_stats */
    size_t stats_capacity;
    bool *source_selected; /* after aggregate_finish: whether --comm and --thread keep it */
    struct cell *cells;    /* then, too: of selected sources, ascending source and stack */
    size_t cell_count;
    uint64_t interval_ns;
    bool everything, by_time, by_id;    /* what options.select asks for */
    uint64_t samples;                   /* selected */
    bool has_time;                      /* at least one selected sample */
    uint64_t first_ns, last_ns;         /* of the selected samples */
    uint64_t file_samples;              /* all of the file */
    uint64_t file_first_ns;             /* first sample of the file: zero of --from and --to */
    uint64_t file_low_ns, file_high_ns; /* smallest and largest time of the file */

    /* Counting: one slot a stack for the source that had it first, a hash for all further sources. */
    struct stack_slot *slots;
    uint64_t *slot_first; /* with options.order */
    size_t slot_capacity;
    struct cell *others; /* count 0: free */
    size_t other_count, other_capacity;
    struct spread spread;
    struct pending_sample pending[PENDING_SAMPLES];
    size_t pending_count;
};

/* Reads the whole input. Returns the last result of spool_reader_next: 0, or an error, with everything before it
 * counted. Ends the tool without memory. */
int aggregate_read(struct aggregate *a, const struct aggregate_options *options,
                   struct tool_input *in, struct progress *progress);

/* The same piece by piece, for those who show samples while they arrive: nothing is counted then. Names, notes and
 * epochs are those of what was seen so far. aggregate_record takes all records but samples. */
void aggregate_begin(struct aggregate *a, const struct aggregate_options *options,
                     const struct spool_reader *reader);
void aggregate_record(struct aggregate *a, const struct spool_reader *reader,
                      const struct spool_record *rec);
/* Takes the time of a sample in. False when --pid, --tid, --from or --to deselect it. */
bool aggregate_sees(struct aggregate *a, const struct spool_sample *sample);

/* Applies the name selection and makes the cells. Returns 0, or -1 after an error message (spill file). */
int aggregate_finish(struct aggregate *a);

/* With AGGREGATE_EVENTS, after aggregate_finish: counts samples and takes times, of all and of each source, anew, in
 * time order and of those samples only for which counts() is true. Cells stay. 0, or -1 after an error message. */
int aggregate_recount(struct aggregate *a,
                      bool (*counts)(void *user, uint32_t source, uint32_t stack), void *user);

/* The cells of a source. */
struct aggregate_source {
    uint32_t source;
    int32_t pid;
    bool python;
    uint32_t group;
    bool other_process; /* than the one before: its frames may resolve differently */
    size_t begin, end;  /* in cells */
};

/* After aggregate_finish: the sources that have cells, those of a process behind each other, so that its frames are
 * resolved once. *count of them; to be freed with free(). */
struct aggregate_source *aggregate_by_process(const struct aggregate *a, size_t *count);

void aggregate_free(struct aggregate *a);

#endif
