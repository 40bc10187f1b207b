/* SPDX-License-Identifier: MIT */
/* What helps when a conversion works and yet gives little: no sample was selected, or what was has no names. */
#ifndef TOOLS_HINTS_H
#define TOOLS_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregate.h"
#include "options.h"
#include "report.h"
#include "symbols.h"
#include "text.h"

/* Of all inputs. Starts as {0}. */
struct hints {
    uint64_t samples_read, samples_used;
    bool damaged;                 /* something was said of that */
    struct text_buffer selection; /* why nothing was, of the first input that gave nothing */
    uint64_t file_frames, named_elf;
    bool kernel_restricted, python_unnamed;
};

/* Takes in an input whose stacks were counted and resolved. */
void hints_input(struct hints *h, const struct tool_options *o, const struct tool_input *in,
                 const struct aggregate *a, const struct input_report *r,
                 const struct symbols *symbols);
/* After all of them: warnings, each once at most. */
void hints_warn(const struct hints *h, const struct tool_options *o);
void hints_free(struct hints *h);

#endif
