/* SPDX-License-Identifier: MIT */
/* Code whose frames are of all kinds, to be interrupted anywhere. */
#ifndef UNWIND_WORKLOAD_H
#define UNWIND_WORKLOAD_H

/* Runs all of it once; takes longer for a larger size (1: some thousand instructions). */
void workload_run(unsigned size);

/* Raises a signal deep down, whose handler (workload_run) was installed by the caller. */
void workload_raise(unsigned depth, int signal_number);

#endif
