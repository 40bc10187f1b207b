/* SPDX-License-Identifier: MIT */
/*
 * Inputs that are used while they arrive: a pipe whose writer takes its time, and with --follow a spool that is still
 * being written. Before waiting, what has been printed so far is handed over.
 */
#ifndef TOOLS_FOLLOW_H
#define TOOLS_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "output.h"
#include "spool/spool.h"

struct tool_input;

struct follow {
    bool grows; /* --follow: the end of a file is not its end. False: pipes only are waited for */
    bool has_idle;
    uint64_t idle_ns;        /* --idle: how long it may stay as it is */
    struct tool_output *out; /* flushed before waiting; NULL: none */

    bool regular;      /* a file, which poll(2) says nothing about */
    bool finished;     /* the recorder has written its last record */
    bool interrupted;  /* by a signal; see interrupt.h */
    uint64_t bytes;    /* read so far ... */
    uint64_t grown_ns; /* ... and since when it has been so many */
};

/* Opens the reader of an input whose descriptor is open, and makes *f its. With `grows` an empty file is waited for,
 * too. 0 or an error of the reader. */
int follow_open(struct follow *f, struct tool_input *in);

/* As spool_reader_next: 0 once nothing more will come, or is to be waited for. */
int follow_next(struct tool_input *in, struct spool_record *rec);

#endif
