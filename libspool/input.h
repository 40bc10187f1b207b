/* SPDX-License-Identifier: MIT */
/*
 * Where a spool's bytes come from: one growing window over a descriptor or over memory, unpacked when it is
 * gzip. Never seeks, so a pipe and a file behave alike.
 */
#ifndef SPOOLINT_INPUT_H
#define SPOOLINT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

/* NULL: out of memory. */
struct input *spoolint_input_new(void);
void spoolint_input_free(struct input *in);

/* Attach a source, once. Nothing is read yet; gzip is recognised by the first fill. */
void spoolint_input_from_fd(struct input *in, int fd);
void spoolint_input_from_memory(struct input *in, const void *data, size_t size);
/* A descriptor whose end may not be the end: a 0 of fill and skip then says that nothing more is there now, and
 * whether it is final is asked of spoolint_input_ended. A regular file that is shorter than what was read of it is
 * SPOOL_ERR_IO. Anything else is waited for until never_wait is called, which leaves the descriptor's flags alone. */
void spoolint_input_follow_fd(struct input *in, int fd);
void spoolint_input_never_wait(struct input *in);
/* Followed descriptors: no more than so many bytes of it are read in all (packed). At first UINT64_MAX. */
void spoolint_input_limit(struct input *in, uint64_t size);
/* No byte will come any more. Never true for a regular file that is followed. */
bool spoolint_input_ended(const struct input *in);

/* The window: unpacked bytes that were read and not consumed. Plain memory input is one window without a copy. */
struct input_window {
    const uint8_t *begin;
    const uint8_t *end;
};

/* Drops the first `consumed` bytes of *w and makes the window longer: by at least one byte, and to at least
 * `wanted` bytes in all if the input has that many. Bytes that stay keep their content, but may move.
 *   1   *w is the longer window
 *   0   the input has ended (followed: has no more now); *w lacks the consumed bytes and gained none
 *   <0  SPOOL_ERR_IO, _NOMEM, _CORRUPT (gzip; what was unpacked before the damage is in the window and was
 *       returned with 1 before). Sticky. spoolint_input_error has the text. */
int spoolint_input_fill(struct input *in, struct input_window *w, size_t consumed, size_t wanted);

/* For a field that is too long to be kept: reads on and drops up to `size` bytes behind the window (whose own
 * bytes are all dropped too). *skipped says how many there were. Returns 1 when all were there, 0 when the
 * input ended first, <0 as above. The window is empty afterwards. */
int spoolint_input_skip(struct input *in, struct input_window *w, uint64_t size, uint64_t *skipped);

/* True once the input ended inside gzip data: the unpacked bytes are a cut tail. Followed: as of the last 0. */
bool spoolint_input_gzip_cut(const struct input *in);
bool spoolint_input_is_gzip(const struct input *in);
/* Bytes taken from the source so far (packed). */
uint64_t spoolint_input_raw_bytes(const struct input *in);
const char *spoolint_input_error(const struct input *in);

#endif
