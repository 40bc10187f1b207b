/* SPDX-License-Identifier: MIT */
/* misses.c charges files for the frames that have no name; here every frame counts. */
#include "hits.h"

#include <stdlib.h>

#include "cli.h"
#include "unnamed.h"

struct walk {
    struct spool_reader *reader;
    const struct spool_stack_node *nodes;
    struct misses files;
    uint32_t *seen; /* by node: number of the last process that has it */
    uint32_t process;
    int32_t pid;
    uint32_t *path; /* scratch */
    size_t path_capacity;
};

static uint32_t file_of(void *user, uint32_t node, enum sym_miss *reason)
{
    const struct walk *w = user;
    uint32_t module = SPOOL_NO_ID;
    uint64_t rel;

    *reason = SYM_MISS_NONE;
    if (spool_reader_locate(w->reader, w->nodes[node].frame, w->pid, &module, &rel) <= 0)
        return MISSES_NONE;
    return module;
}

/* Prefixes first. */
static void visit(struct walk *w, uint32_t stack)
{
    size_t n = 0;

    for (uint32_t at = stack; at != SPOOL_NO_ID && w->seen[at] != w->process;
         at = w->nodes[at].prefix) {
        w->path = cli_grow(w->path, &w->path_capacity, n, sizeof *w->path);
        w->seen[at] = w->process;
        w->path[n++] = at;
    }
    while (n-- > 0)
        misses_visit(&w->files, w->path[n], w->nodes[w->path[n]].prefix);
}

uint64_t *hits_count(struct spool_reader *reader, const struct aggregate *a)
{
    struct walk w = {.reader = reader, .nodes = spool_reader_stack_nodes(reader)};
    struct spool_counts counts;
    size_t source_count;
    struct aggregate_source *sources = aggregate_by_process(a, &source_count);
    uint64_t *hits;

    spool_reader_counts(reader, &counts);
    unnamed_init(&w.files, reader, &a->notes);
    w.seen = cli_zeroed(counts.stacks, sizeof *w.seen);
    for (size_t i = 0; i < source_count; i++) {
        if (i == 0 || sources[i].pid != w.pid)
            w.process++;
        w.pid = sources[i].pid;
        for (size_t j = sources[i].begin; j < sources[i].end; j++) {
            visit(&w, a->cells[j].stack);
            misses_count(&w.files, a->cells[j].stack, a->cells[j].count);
        }
        if (i + 1 == source_count || sources[i + 1].pid != w.pid)
            misses_charge(&w.files, w.nodes, file_of, &w);
    }
    hits = cli_realloc(NULL, counts.modules, sizeof *hits);
    for (uint32_t id = 0; id < counts.modules; id++)
        hits[id] = w.files.samples[w.files.places[id]];
    misses_free(&w.files);
    free(w.seen);
    free(w.path);
    free(sources);
    return hits;
}
