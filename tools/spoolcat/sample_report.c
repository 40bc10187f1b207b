/* SPDX-License-Identifier: MIT */
/* Counted stacks go through the shaping code once more, process by process, which charges them to files (misses.c). */
#include "sample_report.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "progress.h"
#include "shape.h"
#include "unnamed.h"

/* A stack as a source has it: the same names, whichever thread it was. */
struct key {
    int32_t pid;
    uint32_t python;
    uint32_t kernel_epoch;
    uint32_t stack;
};

struct counted {
    struct key key;
    uint64_t samples;
};

struct names_run {
    struct otree tree;
    struct frame_names names;
    struct misses misses;
    struct input_report report;
    struct shaper shaper;
};

void sample_report_init(struct sample_report *r)
{
    *r = (struct sample_report){.counts = NULL};
    labels_init(&r->keys);
}

void sample_report_free(struct sample_report *r)
{
    labels_free(&r->keys);
    free(r->counts);
}

void sample_report_count(struct sample_report *r, const struct source *source, uint32_t stack)
{
    const struct key key = {.pid = source->pid,
                            .python = source->python,
                            .kernel_epoch = source->kernel_epoch,
                            .stack = stack};
    uint32_t number = labels_intern(&r->keys, (const char *)&key, sizeof key);

    r->counts = cli_grow_zeroed(r->counts, &r->capacity, number, sizeof *r->counts);
    r->counts[number]++;
}

/* ---- at the end ---- */

/* Sources of a process behind each other. */
static int compare_keys(const void *a, const void *b)
{
    const struct key *x = &((const struct counted *)a)->key, *y = &((const struct counted *)b)->key;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->python != y->python)
        return x->python < y->python ? -1 : 1;
    if (x->kernel_epoch != y->kernel_epoch)
        return x->kernel_epoch < y->kernel_epoch ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

static struct counted *list_stacks(const struct sample_report *r)
{
    struct counted *list = cli_realloc(NULL, r->keys.count, sizeof *list);

    for (uint32_t i = 0; i < r->keys.count; i++) {
        size_t size;
        const char *bytes = labels_text(&r->keys, i, &size);

        memcpy(&list[i].key, bytes, sizeof list[i].key);
        list[i].samples = r->counts[i];
    }
    if (r->keys.count > 1)
        qsort(list, r->keys.count, sizeof *list, compare_keys);
    return list;
}

/* The tree is nobody's: all its frames are one. */
static uint32_t no_label(void *user, const struct out_frame *frame)
{
    (void)user;
    (void)frame;
    return 0;
}

static void begin(struct names_run *n, const struct tool_input *in, const struct tool_options *o,
                  struct symbols *symbols)
{
    struct spool_counts counts;

    *n = (struct names_run){.names = {.name = {0}}};
    otree_init(&n->tree);
    unnamed_init(&n->misses, in->reader);
    n->shaper = (struct shaper){.options = &o->shape,
                                .hooks = {.label = no_label},
                                .tree = &n->tree,
                                .symbols = symbols,
                                .names = &n->names,
                                .report = &n->report,
                                .nodes = spool_reader_stack_nodes(in->reader),
                                .misses = &n->misses};
    spool_reader_counts(in->reader, &counts);
    shape_init(&n->shaper, &counts);
}

static int add_stacks(struct names_run *n, const struct counted *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct key *key = &list[i].key, *before = &list[i - (i > 0)].key;
        bool other_process = i == 0 || key->pid != before->pid || key->python != before->python;
        uint32_t node, has;

        if (i % 64 == 0)
            progress_work("naming stacks", i, count);
        if (other_process || key->kernel_epoch != before->kernel_epoch) {
            const struct source source = {
                .pid = key->pid, .python = key->python, .kernel_epoch = key->kernel_epoch};

            if (i > 0)
                shape_charge_misses(&n->shaper);
            shape_source(&n->shaper, &source, OTREE_ROOT, other_process);
        }
        /* Deselected by what is known now or not: it was printed. */
        if (shape_stack(&n->shaper, key->stack, &node, &has) < 0)
            return -1;
        shape_count(&n->shaper, key->stack, has, list[i].samples);
    }
    shape_charge_misses(&n->shaper);
    return 0;
}

int sample_report_print(const struct sample_report *r, const struct tool_input *in,
                        const struct tool_options *o, const struct aggregate *a,
                        struct symbols *symbols)
{
    struct counted *list = list_stacks(r);
    struct text_buffer lines = {0};
    struct names_run n;
    int rc;

    begin(&n, in, o, symbols);
    rc = add_stacks(&n, list, r->keys.count);
    progress_work_end();
    if (rc == 0) {
        report_input(&lines, in, a, &n.report);
        if (!o->symbols.no_symbols)
            unnamed_report(&lines, &n.misses, in->reader, symbols);
        cli_report_lines(&lines);
    }
    text_free(&lines);
    shape_free(&n.shaper);
    misses_free(&n.misses);
    frame_names_free(&n.names);
    otree_free(&n.tree);
    free(list);
    return rc;
}
