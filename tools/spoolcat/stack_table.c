/* SPDX-License-Identifier: MIT */
/*
 * A row is a stack of the spool in a process, as the options shape it. Where names depend on when the stack was sampled
 * (kernel code that came and went, a process that became Python), it has a row for each of its shapes.
 */
#include "stack_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "frame_print.h"
#include "json.h"
#include "shaped.h"
#include "tables.h"

static int compare_rows(const void *a, const void *b)
{
    const struct shaped_stack *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

/* Largest first; equal ones by process and stack, so that the order is always the same. */
static int compare_samples(const void *a, const void *b)
{
    const struct shaped_stack *x = a, *y = b;

    if (x->samples != y->samples)
        return x->samples > y->samples ? -1 : 1;
    return compare_rows(a, b);
}

/* Sources that differ in a name only are one row. */
static size_t merge_rows(struct shaped_stack *rows, size_t count)
{
    size_t kept = 0;

    if (count > 1)
        qsort(rows, count, sizeof *rows, compare_rows);
    for (size_t i = 0; i < count; i++) {
        struct shaped_stack *last = &rows[kept - (kept > 0)];

        if (kept > 0 && last->pid == rows[i].pid && last->stack == rows[i].stack &&
            last->node == rows[i].node) {
            last->samples += rows[i].samples;
            last->source = rows[i].source; /* the latest name */
            last->has |= rows[i].has;
        } else {
            rows[kept++] = rows[i];
        }
    }
    if (kept > 1)
        qsort(rows, kept, sizeof *rows, compare_samples);
    return kept;
}

static void print_row(const struct frame_print *p, const struct shaped_input *s,
                      const struct aggregate *a, const struct shaped_stack *row,
                      const struct view_options *view, struct tool_output *out)
{
    bool python = row->has & SHAPE_HAS_PYTHON;
    struct source source;

    if (p->json) {
        output_text(out, "{\"pid\":");
        output_i64(out, row->pid);
        output_text(out, ",\"stack\":");
        output_u64(out, row->stack);
        output_text(out, ",\"samples\":");
        output_u64(out, row->samples);
        output_text(out, ",\"frames\":[");
        frame_print_stack(p, out, &s->tree, row->node, python);
        output_text(out, "]}\n");
        return;
    }
    names_get_source(a->names, row->source, &source);
    if (view->color)
        output_text(out, VIEW_COLOR_HEAD);
    output_printf(out, "%" PRIu64 " %s of ", row->samples,
                  row->samples == 1 ? "sample" : "samples");
    print_name(out, source.comm, source.comm_size);
    output_printf(out, " %" PRId32 ", stack %" PRIu32 "%s\n", row->pid, row->stack,
                  view->color ? VIEW_COLOR_END : "");
    frame_print_stack(p, out, &s->tree, row->node, python);
    output_byte(out, '\n');
}

enum input_end stacks_print(struct tool_input *in, const struct tool_options *o,
                            const struct view_options *view, struct progress *progress,
                            struct tool_output *out)
{
    const struct aggregate_options options = {.select = &o->select,
                                              .epochs = symbols_of_kernel(&o->symbols)};
    struct frame_print p;
    struct shaped_input s;
    struct aggregate a;
    size_t count;
    enum input_end end = read_counted(&a, &options, in, o, progress);

    if (end == INPUT_FAILED) {
        aggregate_free(&a);
        return end;
    }
    frame_print_init(&p, view->json, o);
    if (shaped_run(&s, in, o, view->symbols, &a, frame_print_label, &p) != 0)
        end = INPUT_FAILED;
    count = end == INPUT_FAILED ? 0 : merge_rows(s.stacks, s.stack_count);
    for (size_t i = 0; i < count && !output_failed(out); i++)
        print_row(&p, &s, &a, &s.stacks[i], view, out);
    if (output_failed(out))
        end = INPUT_FAILED;
    shaped_free(&s);
    frame_print_free(&p);
    aggregate_free(&a);
    return end;
}
