/* SPDX-License-Identifier: MIT */
/* A recording from its start to the exit status of spoolrecord. */
#ifndef SPOOLRECORD_RECORD_RUN_H
#define SPOOLRECORD_RECORD_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "spool/record.h"

/* When a command was run, its own status is the tool's, but for these. */
enum { STATUS_FAILED = 125, STATUS_NOT_RUN = 126, STATUS_NOT_FOUND = 127 };

enum run_summary { RUN_SUMMARY_DEFAULT = 0, RUN_SUMMARY_TEXT, RUN_SUMMARY_JSON, RUN_SUMMARY_NONE };

/* What the command line says. */
struct run_options {
    const char *output; /* path, or "-" */
    bool force;
    struct number_list pids; /* with none, there is a command */
    char **command;          /* ends with NULL */
    bool descendants;
    uint64_t duration_ns; /* 0: until the targets end */
    const char *pack;     /* NULL: no */
    enum run_summary summary;
    struct record_options record;
    const struct tool_options *common; /* quiet, verbose, progress */
};

/* The whole run. Returns the exit status; whatever went wrong has been told. */
int record_run(const struct run_options *o);

#endif
