/* SPDX-License-Identifier: MIT */
/* A document on its way through gzip to the output: the same bytes for the same document, wherever it is written. */
#ifndef TOOLS_GZIP_OUT_H
#define TOOLS_GZIP_OUT_H

#include <stddef.h>

#include "output.h"

struct gzip_out;

/* level: 1 to 9. NULL after an error message. out must outlive it. */
struct gzip_out *gzip_out_new(struct tool_output *out, int level);
void gzip_out_free(struct gzip_out *g); /* NULL is accepted */

/* Errors of the output are kept there. */
void gzip_out_write(struct gzip_out *g, const void *data, size_t size);

/* Writes what is left, and the trailer. 0, or -1 after an error message. */
int gzip_out_finish(struct gzip_out *g);

#endif
