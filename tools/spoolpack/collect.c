/* SPDX-License-Identifier: MIT */
/*
 * One walk over the stacks that were counted, process by process, since a frame may lie in another module in another
 * process; then what was hit is sorted, and the modules of one file are put together.
 */
#include "collect.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hits.h"
#include "module_key.h"

/* A user frame. */
struct hit {
    uint32_t module_id; /* SPOOL_NO_ID or one without a file: what a perf map is about */
    int32_t pid;        /* of the module; of memory the process sampled */
    uint64_t abs, rel;
};

struct hit_list {
    struct hit *items;
    size_t count, capacity;
};

enum { HAS_KERNEL = 1, HAS_MEMORY = 2 };

struct walk {
    struct spool_reader *reader;
    const struct spool_stack_node *nodes;
    struct symbols *symbols;
    struct collected *out;
    struct hit_list file_hits, memory_hits;
    size_t kernel_capacity, process_capacity;
    uint32_t round;        /* changes with the process and with the kernel epoch */
    uint32_t *node_round;  /* by node: the last round that has it */
    uint8_t *node_has;     /* by node, then: what is in its stack */
    uint32_t *frame_round; /* by frame: the last round that took it */
    uint8_t *frame_has;
    bool *frame_done; /* by frame: no other process can say anything new about it */
    uint32_t *path;   /* scratch */
    size_t path_capacity;
};

/* ---- frames ---- */

static void init_hits(struct hit_list *list)
{
    list->capacity = 1024;
    list->items = cli_realloc(NULL, list->capacity, sizeof *list->items);
}

static void add_hit(struct hit_list *list, const struct hit *hit)
{
    list->items = cli_grow(list->items, &list->capacity, list->count, sizeof *list->items);
    list->items[list->count++] = *hit;
}

static int add_kernel(struct walk *w, const struct spool_frame *f, uint32_t module_id, uint64_t rel,
                      const struct source *source)
{
    struct collected *out = w->out;
    struct sym_query q = {.module = SYM_NO_MODULE,
                          .pid = source->pid,
                          .kernel = true,
                          .abs = f->abs,
                          .rel = rel,
                          .time = source->kernel_epoch};

    if (module_id != SPOOL_NO_ID && symbols_module_handle(w->symbols, module_id, &q.module) < 0)
        return -1;
    out->kernel =
        cli_grow(out->kernel, &w->kernel_capacity, out->kernel_count, sizeof *out->kernel);
    out->kernel[out->kernel_count++] = q;
    return 0;
}

/* Takes a frame in for the process at hand and tells in *has what it is. */
static int take_frame(struct walk *w, uint32_t frame, const struct source *source, uint8_t *has)
{
    struct spool_frame f;
    struct hit hit = {.module_id = SPOOL_NO_ID, .pid = source->pid};
    const struct spool_module *m = NULL;
    int rc;

    *has = 0;
    if (!spool_reader_frame(w->reader, frame, &f) || f.kind == SPOOL_FRAME_TRUNCATED)
        return 0;
    rc = spool_reader_locate(w->reader, frame, source->pid, &hit.module_id, &hit.rel);
    if (rc < 0) {
        cli_error("out of memory");
        return -1;
    }
    if (rc > 0)
        m = spool_reader_module(w->reader, hit.module_id);
    else
        hit.module_id = SPOOL_NO_ID;
    hit.abs = f.abs;
    if (f.kernel) {
        *has = HAS_KERNEL;
        return add_kernel(w, &f, hit.module_id, hit.rel, source);
    }
    if (m && !sym_is_anonymous_path(m->path, m->path_size)) {
        w->frame_done[frame] = f.kind == SPOOL_FRAME_PINNED;
        if (m->jit) /* the spool itself has its names */
            return 0;
        hit.pid = m->pid;
        add_hit(&w->file_hits, &hit);
        return 0;
    }
    if (m && m->jit)
        return 0;
    *has = HAS_MEMORY;
    add_hit(&w->memory_hits, &hit);
    return 0;
}

/* ---- stacks ---- */

static int take_node(struct walk *w, uint32_t node, const struct source *source)
{
    uint32_t frame = w->nodes[node].frame, prefix = w->nodes[node].prefix;

    if (!w->frame_done[frame] && w->frame_round[frame] != w->round) {
        w->frame_round[frame] = w->round;
        if (take_frame(w, frame, source, &w->frame_has[frame]) < 0)
            return -1;
    }
    w->node_has[node] = (w->frame_done[frame] ? 0 : w->frame_has[frame]) |
                        (prefix != SPOOL_NO_ID ? w->node_has[prefix] : 0);
    return 0;
}

/* Takes in what is new of a stack, prefixes first. */
static int take_stack(struct walk *w, uint32_t stack, const struct source *source)
{
    size_t n = 0;

    for (uint32_t at = stack; at != SPOOL_NO_ID && w->node_round[at] != w->round;
         at = w->nodes[at].prefix) {
        w->path = cli_grow(w->path, &w->path_capacity, n, sizeof *w->path);
        w->node_round[at] = w->round;
        w->path[n++] = at;
    }
    while (n-- > 0)
        if (take_node(w, w->path[n], source) < 0)
            return -1;
    return 0;
}

/* Samples of a process with frames in memory; sources of a process stand behind each other. */
static void count_memory(struct walk *w, int32_t pid, uint64_t samples)
{
    struct collected *out = w->out;

    if (out->process_count == 0 || out->processes[out->process_count - 1].pid != pid) {
        out->processes = cli_grow(out->processes, &w->process_capacity, out->process_count,
                                  sizeof *out->processes);
        out->processes[out->process_count++] = (struct collected_process){.pid = pid};
    }
    out->processes[out->process_count - 1].samples += samples;
}

static int walk_stacks(struct walk *w, const struct aggregate *a)
{
    size_t count;
    struct aggregate_source *list = aggregate_by_process(a, &count);
    uint32_t epoch = 0;
    int32_t pid = 0;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        struct source source;

        names_get_source(a->names, list[i].source, &source);
        if (i == 0 || source.pid != pid || source.kernel_epoch != epoch)
            w->round++;
        pid = source.pid;
        epoch = source.kernel_epoch;
        for (size_t j = list[i].begin; j < list[i].end && rc == 0; j++) {
            const struct cell *cell = &a->cells[j];

            rc = take_stack(w, cell->stack, &source);
            if (w->node_has[cell->stack] & HAS_KERNEL)
                w->out->kernel_samples += cell->count;
            if (w->node_has[cell->stack] & HAS_MEMORY)
                count_memory(w, pid, cell->count);
        }
    }
    free(list);
    return rc;
}

/* ---- the kernel and memory ---- */

static int compare_queries(const void *a, const void *b)
{
    const struct sym_query *x = a, *y = b;

    if (x->abs != y->abs)
        return x->abs < y->abs ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

static void sort_kernel(struct collected *c)
{
    size_t kept = 0;

    if (c->kernel_count > 1)
        qsort(c->kernel, c->kernel_count, sizeof *c->kernel, compare_queries);
    for (size_t i = 0; i < c->kernel_count; i++)
        if (kept == 0 || compare_queries(&c->kernel[i], &c->kernel[kept - 1]) != 0)
            c->kernel[kept++] = c->kernel[i];
    c->kernel_count = kept;
}

static int compare_memory(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->abs > y->abs) - (x->abs < y->abs);
}

static int compare_processes(const void *a, const void *b)
{
    const struct collected_process *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Every process that has samples has hits, and the other way round. */
static void sort_memory(struct walk *w)
{
    struct collected *c = w->out;
    const struct hit *hits = w->memory_hits.items, *end = hits + w->memory_hits.count;

    if (w->memory_hits.count > 1)
        qsort(w->memory_hits.items, w->memory_hits.count, sizeof *hits, compare_memory);
    if (c->process_count > 1)
        qsort(c->processes, c->process_count, sizeof *c->processes, compare_processes);
    for (size_t i = 0; i < c->process_count; i++) {
        struct collected_process *p = &c->processes[i];
        const struct hit *begin = hits;

        while (hits < end && hits->pid == p->pid)
            hits++;
        p->addresses = cli_realloc(NULL, (size_t)(hits - begin), sizeof *p->addresses);
        for (const struct hit *h = begin; h < hits; h++) {
            p->has_memory |= h->module_id != SPOOL_NO_ID;
            if (p->address_count == 0 || p->addresses[p->address_count - 1] != h->abs)
                p->addresses[p->address_count++] = h->abs;
        }
    }
}

/* ---- files ---- */

/* A module that was hit, and its hits. */
struct module_hits {
    struct collected_file file; /* what tells files apart, and the handle */
    uint32_t module_id;
    const struct hit *begin, *end;
};

static int compare_hits(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;

    if (x->module_id != y->module_id)
        return x->module_id < y->module_id ? -1 : 1;
    return (x->rel > y->rel) - (x->rel < y->rel);
}

static int compare_files(const struct collected_file *x, const struct collected_file *y)
{
    size_t size = x->path_size < y->path_size ? x->path_size : y->path_size;
    int order = size ? memcmp(x->path, y->path, size) : 0;

    if (order == 0)
        order = (x->path_size > y->path_size) - (x->path_size < y->path_size);
    if (order == 0)
        order = strcmp(x->build_id, y->build_id);
    return order ? order : strcmp(x->key, y->key);
}

static int compare_modules(const void *a, const void *b)
{
    const struct module_hits *x = a, *y = b;
    int order = compare_files(&x->file, &y->file);

    return order ? order : (x->module_id > y->module_id) - (x->module_id < y->module_id);
}

/* Lists the modules that were hit, those of one file behind each other. NULL after an error message. */
static struct module_hits *list_modules(struct walk *w, const struct aggregate *a, size_t *count)
{
    const struct hit *at = w->file_hits.items, *end = at + w->file_hits.count;
    struct module_hits *list = NULL;
    struct module_keys *keys = module_keys_new(w->symbols);
    size_t capacity = 0;
    int rc = 0;

    if (w->file_hits.count > 1)
        qsort(w->file_hits.items, w->file_hits.count, sizeof *at, compare_hits);
    *count = 0;
    while (at < end && rc == 0) {
        struct module_hits *m;

        list = cli_grow(list, &capacity, *count, sizeof *list);
        m = &list[(*count)++];
        *m = (struct module_hits){.module_id = at->module_id, .begin = at};
        while (at < end && at->module_id == m->module_id)
            at++;
        m->end = at;
        rc = module_key_find(keys, spool_reader_module(w->reader, m->module_id), &a->notes,
                             &m->file);
    }
    module_keys_free(keys);
    if (rc < 0) {
        free(list);
        return NULL;
    }
    list = cli_realloc(list, *count, sizeof *list);
    if (*count > 1)
        qsort(list, *count, sizeof *list, compare_modules);
    return list;
}

/* A query, and the mapping that the address is seen through: an offset may be two addresses in the file, where segments
 * overlap there. */
struct seen_query {
    struct sym_query query;
    uint64_t file_offset, size;
};

static int compare_seen(const void *a, const void *b)
{
    const struct seen_query *x = a, *y = b;

    if (x->query.rel != y->query.rel)
        return x->query.rel < y->query.rel ? -1 : 1;
    if (x->file_offset != y->file_offset)
        return x->file_offset < y->file_offset ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

static void keep_distinct(struct collected_file *f, struct seen_query *seen, size_t count)
{
    f->queries = cli_realloc(NULL, count, sizeof *f->queries);
    if (count > 1)
        qsort(seen, count, sizeof *seen, compare_seen);
    for (size_t i = 0; i < count; i++) {
        f->address_count += i == 0 || seen[i - 1].query.rel != seen[i].query.rel;
        if (i == 0 || compare_seen(&seen[i - 1], &seen[i]) != 0)
            f->queries[f->query_count++] = seen[i].query;
    }
}

/* Makes one file of `count` modules. */
static int make_file(struct walk *w, const struct module_hits *modules, size_t count,
                     const uint64_t *samples, struct collected_file *f)
{
    struct seen_query *seen;
    size_t total = 0, n = 0;
    int rc = 0;

    *f = modules[0].file;
    f->samples = samples[modules[0].module_id];
    for (size_t i = 0; i < count; i++)
        total += (size_t)(modules[i].end - modules[i].begin);
    f->module_ids = cli_realloc(NULL, count, sizeof *f->module_ids);
    seen = cli_realloc(NULL, total, sizeof *seen);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct spool_module *m = spool_reader_module(w->reader, modules[i].module_id);
        uint32_t handle;

        f->module_ids[f->module_id_count++] = modules[i].module_id;
        f->unverified |= modules[i].file.unverified;
        rc = symbols_module_handle(w->symbols, modules[i].module_id, &handle);
        for (const struct hit *h = modules[i].begin; h < modules[i].end && rc == 0; h++)
            seen[n++] = (struct seen_query){
                .query = {.module = handle, .pid = h->pid, .abs = h->abs, .rel = h->rel},
                .file_offset = m->file_offset,
                .size = m->end - m->start};
    }
    keep_distinct(f, seen, n);
    free(seen);
    return rc;
}

static int make_files(struct walk *w, const struct aggregate *a)
{
    struct collected *c = w->out;
    size_t count;
    struct module_hits *modules = list_modules(w, a, &count);
    uint64_t *samples;
    int rc = 0;

    if (!modules)
        return -1;
    samples = hits_count(w->reader, a);
    c->files = cli_realloc(NULL, count, sizeof *c->files);
    for (size_t i = 0, next; i < count && rc == 0; i = next) {
        for (next = i + 1; next < count; next++)
            if (compare_files(&modules[i].file, &modules[next].file) != 0)
                break;
        rc = make_file(w, modules + i, next - i, samples, &c->files[c->file_count++]);
    }
    free(samples);
    free(modules);
    return rc;
}

/* ---- API ---- */

int collect(struct spool_reader *reader, const struct aggregate *a, struct symbols *symbols,
            struct collected *out)
{
    struct walk w = {.reader = reader,
                     .nodes = spool_reader_stack_nodes(reader),
                     .symbols = symbols,
                     .out = out};
    struct spool_counts counts;
    int rc;

    *out = (struct collected){0};
    spool_reader_counts(reader, &counts);
    init_hits(&w.file_hits);
    init_hits(&w.memory_hits);
    w.node_round = cli_zeroed(counts.stacks, sizeof *w.node_round);
    w.node_has = cli_zeroed(counts.stacks, 1);
    w.frame_round = cli_zeroed(counts.frames, sizeof *w.frame_round);
    w.frame_has = cli_zeroed(counts.frames, 1);
    w.frame_done = cli_zeroed(counts.frames, sizeof *w.frame_done);
    rc = walk_stacks(&w, a);
    if (rc == 0) {
        sort_kernel(out);
        sort_memory(&w);
        rc = make_files(&w, a);
    }
    free(w.file_hits.items);
    free(w.memory_hits.items);
    free(w.node_round);
    free(w.node_has);
    free(w.frame_round);
    free(w.frame_has);
    free(w.frame_done);
    free(w.path);
    return rc;
}

void collected_free(struct collected *c)
{
    for (size_t i = 0; i < c->file_count; i++) {
        free(c->files[i].module_ids);
        free(c->files[i].queries);
    }
    for (size_t i = 0; i < c->process_count; i++)
        free(c->processes[i].addresses);
    free(c->files);
    free(c->processes);
    free(c->kernel);
    *c = (struct collected){0};
}
