/* SPDX-License-Identifier: MIT */
/* Whether what is to be recorded is there, before anything else is asked for or made. */
#ifndef SPOOLRECORD_RECORD_TARGETS_H
#define SPOOLRECORD_RECORD_TARGETS_H

#include "options.h"

/* What running this command is sure to fail with: an errno; 0: nothing is known to be wrong. */
int record_targets_command_errno(const char *name);

/* 0, or -1 after an error message: one of the processes does not exist. */
int record_targets_check_pids(const struct number_list *pids);

#endif
