/* SPDX-License-Identifier: MIT */
/*
 * SIGINT, SIGTERM and SIGHUP: the first asks for the end of the recording, a second one ends the tool as it does any
 * program. SIGPIPE is ignored, so that a closed pipe is an error that can be told.
 */
#ifndef SPOOLRECORD_RECORD_SIGNALS_H
#define SPOOLRECORD_RECORD_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/* From here on. To be called after the command was forked, which keeps what it inherited. */
void record_signals_catch(void);

/* From here on, signals are passed on to this child, too, whatever else they mean; 0: to none. A child that was waited
 * for must not be told. */
void record_signals_pass(pid_t child);

/* Whether one has come. */
bool record_signals_caught(void);

/* The recording has ended, and nothing but the command is waited for: SIGTERM and SIGHUP have no other meaning then
 * than to end that, the first one, too. SIGINT may be meant for the command alone, which gets it from the terminal. */
void record_signals_waiting(void);

#endif
