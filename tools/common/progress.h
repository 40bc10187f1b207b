/* SPDX-License-Identifier: MIT */
/*
 * The progress line on standard error: bytes read, samples, rate, time left. Costs a countdown a
 * record; the clock is looked at every PROGRESS_EVERY records.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include "inputs.h"
#include "options.h"
#include "text.h"

#define PROGRESS_EVERY 1024

/* Appends what the line says, without a line break. */
typedef void progress_line_fn(void *user, struct text_buffer *line);

/* What goes on when an input was read. */
struct progress_phase {
    const char *what;              /* NULL: no phase */
    bool bytes;                    /* what is counted: bytes, else shares of the whole */
    uint64_t done, total;          /* total 0: unknown */
    uint64_t begin_ns, begin_done; /* since when, and from where on */
};

struct progress {
    bool wanted;
    bool terminal;
    unsigned countdown;
    const struct tool_input *input; /* NULL: none open */
    progress_line_fn *line;         /* NULL: what was read of the input */
    void *user;
    struct progress_phase phase;
    uint64_t input_begin_ns;
    uint64_t shown_ns; /* last update; 0: none yet */
};

/* Once, before the first input. */
void progress_begin(struct progress *p, const struct tool_options *o);
/* For work without inputs: what the line says from now on. It is drawn by progress_update. */
void progress_lines(struct progress *p, progress_line_fn *line, void *user);
/* For each input that was opened. */
void progress_input(struct progress *p, const struct tool_input *in);
/* Before each inputs_close: nothing of this input is shown any more. */
void progress_input_end(struct progress *p);
/* For work behind the reading, from wherever it is done, between progress_begin and progress_end: how far a phase is.
 * Another text (a constant) begins another phase. Looks at the clock: not for every sample. */
void progress_work(const char *what, uint64_t done, uint64_t total);
/* The same for bytes, of which the total may be unknown (0). */
void progress_bytes(const char *what, uint64_t done, uint64_t total);
/* A document of so many bytes by now. Told when that is all that is left to do, and not where the document itself goes
 * to a terminal. */
void progress_writing(int fd, uint64_t bytes);
/* Before something is written to fd: takes the line away where that is a terminal. */
void progress_make_room(int fd);
/* The end of a phase: takes its line away until the next update. */
void progress_work_end(void);
/* Once at the end, before the report: takes the line away. */
void progress_end(struct progress *p);

/* The slow path of progress_tick. */
void progress_update(struct progress *p, uint64_t samples);

/* After each record: samples of this input so far. */
static inline void progress_tick(struct progress *p, uint64_t samples)
{
    if (--p->countdown == 0)
        progress_update(p, samples);
}

#endif
