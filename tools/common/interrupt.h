/* SPDX-License-Identifier: MIT */
/* For work that has no end of its own: the first SIGINT, SIGTERM or SIGHUP asks for its end, the second does what it
 * always does. */
#ifndef TOOLS_INTERRUPT_H
#define TOOLS_INTERRUPT_H

#include <stdbool.h>

/* From here on the first of these signals only sets a flag. Who calls this is a program's main thread. SIGHUP stays
 * ignored if it was (nohup); the other two are caught even then, for shells start what is to run in the background with
 * SIGINT ignored. */
void interrupt_catch(void);

/* Whether one has come. */
bool interrupt_caught(void);

/* Signals mean what they did before interrupt_catch; what was caught stays so. */
void interrupt_release(void);

/* Waits until fd (-1: none) can be read, for timeout_ms (-1: without limit) at most, or until a signal is caught; at
 * once when one was. */
void interrupt_wait(int fd, int timeout_ms);

#endif
