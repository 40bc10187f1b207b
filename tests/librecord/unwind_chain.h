/* SPDX-License-Identifier: MIT */
/* Functions that call each other in a known order, down to a signal that they raise. */
#ifndef UNWIND_CHAIN_H
#define UNWIND_CHAIN_H

#include <stddef.h>
#include <stdint.h>

void chain_run(int signal_number);

/* Where the functions begin, outermost first; the last one only marks an end. */
extern void (*const chain_function[])(void);
extern const size_t chain_count; /* without the last one */

#endif
