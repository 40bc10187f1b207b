/* SPDX-License-Identifier: MIT */
/* Counted cells to output stacks, source by source, so that frames of a process are resolved once. */
#include "shaped.h"

#include <stdlib.h>

#include "cli.h"
#include "progress.h"
#include "unnamed.h"

static int add_source(struct shaped_input *s, const struct aggregate *a,
                      const struct aggregate_source *cells)
{
    for (size_t i = cells->begin; i < cells->end; i++) {
        const struct cell *cell = &a->cells[i];
        struct shaped_stack *out = &s->stacks[s->stack_count];
        int rc;

        *out = (struct shaped_stack){.source = cell->source,
                                     .pid = cells->pid,
                                     .stack = cell->stack,
                                     .samples = cell->count};
        if (i % 64 == 0)
            progress_work("naming stacks", s->stack_count, a->cell_count);
        rc = shape_stack(&s->shaper, cell->stack, &out->node, &out->has);
        if (rc < 0)
            return -1;
        if (rc == 0)
            continue;
        s->stack_count++;
        shape_count(&s->shaper, cell->stack, out->has, cell->count);
    }
    if (s->shaper.misses != NULL)
        shape_charge_misses(&s->shaper);
    return 0;
}

static void report(const struct shaped_input *s, const struct tool_input *in,
                   const struct tool_options *o, const struct aggregate *a)
{
    struct text_buffer lines = {0};

    if (!o->verbose)
        return;
    report_input(&lines, in, a, &s->report);
    if (!o->symbols.no_symbols)
        unnamed_report(&lines, &s->misses, in->reader, s->symbols);
    cli_report_lines(&lines);
    text_free(&lines);
}

int shaped_run(struct shaped_input *s, const struct tool_input *in, const struct tool_options *o,
               struct symbols *symbols, const struct aggregate *a,
               uint32_t (*label)(void *user, const struct out_frame *frame), void *user)
{
    struct aggregate_source *sources;
    struct spool_counts counts;
    size_t source_count;
    int rc = 0;

    *s = (struct shaped_input){.symbols = symbols};
    otree_init(&s->tree);
    if (symbols_begin(s->symbols, in, a) != 0 || symbols_prepare(s->symbols) != 0)
        return -1;
    spool_reader_counts(in->reader, &counts);
    if (o->verbose)
        unnamed_init(&s->misses, in->reader, &a->notes);
    s->shaper = (struct shaper){.options = &o->shape,
                                .hooks = {.user = user, .label = label},
                                .tree = &s->tree,
                                .symbols = s->symbols,
                                .names = &s->names,
                                .report = &s->report,
                                .nodes = spool_reader_stack_nodes(in->reader),
                                .misses = o->verbose ? &s->misses : NULL};
    shape_init(&s->shaper, &counts);
    s->stacks = cli_realloc(NULL, a->cell_count, sizeof *s->stacks);
    sources = aggregate_by_process(a, &source_count);
    for (size_t i = 0; i < source_count && rc == 0; i++) {
        struct source source;

        names_get_source(a->names, sources[i].source, &source);
        shape_source(&s->shaper, &source, OTREE_ROOT, sources[i].other_process);
        rc = add_source(s, a, &sources[i]);
    }
    free(sources);
    if (rc == 0)
        report(s, in, o, a);
    return rc;
}

void shaped_free(struct shaped_input *s)
{
    shape_free(&s->shaper);
    misses_free(&s->misses);
    frame_names_free(&s->names);
    otree_free(&s->tree);
    free(s->stacks);
    *s = (struct shaped_input){0};
}
