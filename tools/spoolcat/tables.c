/* SPDX-License-Identifier: MIT */
/*
 * Tables over a whole spool: modules and threads with the samples that hit them, and how often recorded stacks were
 * used. Nothing is printed before the input was read to its end.
 */
#include "tables.h"

#include "cli.h"
#include "json.h"
#include "report.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- reading --------------------------------------------------------------------------------- */

enum input_end read_counted(struct aggregate *a, const struct aggregate_options *options,
                            struct tool_input *in, const struct tool_options *o,
                            struct progress *progress)
{
    struct aggregate_options all = *options;
    enum input_end end;
    int rc;

    all.per_thread |= o->select.thread_globs.count > 0; /* processes have no thread's name */
    rc = aggregate_read(a, &all, in, progress);
    progress_input_end(progress); /* what follows has phases of its own */
    end = inputs_finish(in, rc, o);

    if (end != INPUT_FAILED && aggregate_finish(a) != 0)
        end = INPUT_FAILED;
    return end;
}

/* The same with the line of the report. */
static enum input_end read_reported(struct aggregate *a, const struct aggregate_options *options,
                                    struct tool_input *in, const struct tool_options *o,
                                    struct progress *progress)
{
    enum input_end end = read_counted(a, options, in, o, progress);

    if (end != INPUT_FAILED)
        report_view(o, in, a->file_low_ns, a->file_high_ns);
    return end;
}

void report_view(const struct tool_options *o, const struct tool_input *in, uint64_t low_ns,
                 uint64_t high_ns)
{
    struct text_buffer line = {0};

    if (!o->verbose)
        return;
    report_spool(&line, in, low_ns, high_ns);
    report_print(&line);
    text_free(&line);
}

void key_clean(struct json_writer *w, const char *key, const char *name, size_t size)
{
    struct text_buffer clean = {0};

    if (name == NULL) {
        json_key_null(w, key);
        return;
    }
    text_clean(name, size, &clean);
    json_key_string(w, key, clean.data, clean.size);
    text_free(&clean);
}

void print_name(struct tool_output *out, const char *name, size_t size)
{
    struct text_buffer clean = {0};

    if (name == NULL) {
        output_byte(out, '-');
        return;
    }
    text_clean(name, size, &clean);
    output_write(out, clean.data, clean.size);
    text_free(&clean);
}

/* ---- how often stacks were used -------------------------------------------------------------- */

/* A stack in a process. */
struct use {
    int32_t pid;
    uint32_t stack;
    uint32_t source; /* one of those that have it */
    uint64_t samples;
};

static int compare_uses(const void *a, const void *b)
{
    const struct use *left = a, *right = b;

    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    if (left->stack != right->stack)
        return left->stack < right->stack ? -1 : 1;
    return (left->source > right->source) - (left->source < right->source);
}

/* Ascending pid and stack, each pair once. */
static struct use *list_uses(const struct aggregate *a, size_t *count)
{
    struct use *uses = cli_realloc(NULL, a->cell_count, sizeof *uses);
    size_t kept = 0;

    for (size_t i = 0; i < a->cell_count; i++) {
        struct source source;

        names_get_source(a->names, a->cells[i].source, &source);
        uses[i] =
            (struct use){source.pid, a->cells[i].stack, a->cells[i].source, a->cells[i].count};
    }
    qsort(uses, a->cell_count, sizeof *uses, compare_uses);
    for (size_t i = 0; i < a->cell_count; i++) {
        if (kept > 0 && uses[kept - 1].pid == uses[i].pid &&
            uses[kept - 1].stack == uses[i].stack) {
            uses[kept - 1].samples += uses[i].samples;
            uses[kept - 1].source = uses[i].source;
        } else {
            uses[kept++] = uses[i];
        }
    }
    *count = kept;
    return uses;
}

/* What is known of a stack node while one process is looked at. */
struct node {
    uint64_t samples; /* whose stack contains it */
    uint32_t module;
    uint32_t child, sibling; /* among the nodes of this process */
    bool listed;
    bool used; /* by any process: is a sample's own stack */
};

struct counter {
    struct stack_use *use;
    struct spool_reader *reader;
    const struct spool_stack_node *tree;
    struct node *nodes;
    uint32_t *list; /* the nodes of this process */
    size_t list_size;
    uint32_t *open; /* by module: how many nodes of it lie on the way to the present node */
};

static int compare_ids(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* Lists the nodes of a stack that are not listed yet: the rest of its way to the root is. */
static void list_nodes(struct counter *c, uint32_t stack)
{
    for (uint32_t at = stack; at != SPOOL_NO_ID && !c->nodes[at].listed; at = c->tree[at].prefix) {
        c->nodes[at].listed = true;
        c->nodes[at].samples = 0;
        c->nodes[at].child = SPOOL_NO_ID;
        c->nodes[at].sibling = SPOOL_NO_ID;
        c->list[c->list_size++] = at;
    }
}

/* Adds up leaf to root (a prefix has the smaller id) and counts each node's frame. */
static int count_nodes(struct counter *c, int32_t pid)
{
    struct stack_use *u = c->use;

    for (size_t i = c->list_size; i-- > 0;) {
        uint32_t id = c->list[i], prefix = c->tree[id].prefix;
        struct node *node = &c->nodes[id];
        struct spool_frame frame;
        uint64_t rel;
        int rc = spool_reader_locate(c->reader, c->tree[id].frame, pid, &node->module, &rel);

        if (rc < 0) {
            cli_error("%s", spool_error_text(rc));
            return -1;
        }
        if (prefix != SPOOL_NO_ID) {
            c->nodes[prefix].samples += node->samples;
            node->sibling = c->nodes[prefix].child;
            c->nodes[prefix].child = id;
        }
        u->frames += node->samples;
        if (!spool_reader_frame(c->reader, c->tree[id].frame, &frame))
            continue;
        if (frame.kind == SPOOL_FRAME_TRUNCATED) {
            u->truncated_samples += node->samples;
            continue;
        }
        if (frame.kernel)
            u->kernel_frames += node->samples;
        if (frame.kind == SPOOL_FRAME_UNPINNED)
            u->unpinned_frames += node->samples;
        if (rc == 0 && !frame.kernel) /* kernel frames seldom have a module, and need none */
            u->unresolved_frames += node->samples;
    }
    return 0;
}

/* Walks the tree below a root: a module gets the samples of its rootmost nodes, so each sample
 * counts once for it, recursion or not. */
static void count_modules(struct counter *c, uint32_t root)
{
    uint32_t at = root;

    for (;;) {
        struct node *node = &c->nodes[at];

        if (node->module != SPOOL_NO_ID && c->open[node->module]++ == 0)
            c->use->module_samples[node->module] += node->samples;
        if (node->child != SPOOL_NO_ID) {
            at = node->child;
            continue;
        }
        for (;;) { /* leave it, and all that it was the last child of */
            node = &c->nodes[at];
            if (node->module != SPOOL_NO_ID)
                c->open[node->module]--;
            if (at == root)
                return;
            if (node->sibling != SPOOL_NO_ID) {
                at = node->sibling;
                break;
            }
            at = c->tree[at].prefix;
        }
    }
}

static int count_process(struct counter *c, const struct use *uses, size_t count)
{
    c->list_size = 0;
    for (size_t i = 0; i < count; i++) {
        struct spool_stack stack;

        list_nodes(c, uses[i].stack);
        c->nodes[uses[i].stack].samples += uses[i].samples;
        if (!c->nodes[uses[i].stack].used)
            c->use->distinct_stacks++;
        c->nodes[uses[i].stack].used = true;
        if (spool_reader_stack(c->reader, uses[i].stack, &stack) && stack.depth > c->use->max_depth)
            c->use->max_depth = stack.depth;
    }
    qsort(c->list, c->list_size, sizeof *c->list, compare_ids);
    if (count_nodes(c, uses[0].pid) != 0)
        return -1;
    for (size_t i = 0; i < c->list_size; i++) {
        c->nodes[c->list[i]].listed = false;
        if (c->tree[c->list[i]].prefix == SPOOL_NO_ID)
            count_modules(c, c->list[i]);
    }
    return 0;
}

int stack_use_count(struct stack_use *u, struct spool_reader *reader, const struct aggregate *a)
{
    struct counter c = {.use = u, .reader = reader, .tree = spool_reader_stack_nodes(reader)};
    struct spool_counts counts;
    size_t count, begin = 0;
    struct use *uses = list_uses(a, &count);
    int rc = 0;

    spool_reader_counts(reader, &counts);
    *u = (struct stack_use){.module_count = counts.modules};
    u->module_samples = cli_zeroed(counts.modules, sizeof *u->module_samples);
    c.nodes = cli_zeroed(counts.stacks, sizeof *c.nodes);
    c.list = cli_realloc(NULL, counts.stacks, sizeof *c.list);
    c.open = cli_zeroed(counts.modules, sizeof *c.open);
    for (size_t i = 1; i <= count && rc == 0; i++) {
        if (i < count && uses[i].pid == uses[begin].pid)
            continue;
        rc = count_process(&c, uses + begin, i - begin);
        begin = i;
    }
    free(c.nodes);
    free(c.list);
    free(c.open);
    free(uses);
    return rc;
}

void stack_use_free(struct stack_use *u)
{
    free(u->module_samples);
    *u = (struct stack_use){0};
}

/* ---- modules --------------------------------------------------------------------------------- */

static void print_build_id(struct tool_output *out, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        output_printf(out, "%02x", bytes[i]);
}

static void module_json(struct tool_output *out, const struct spool_module *m, bool has_pid,
                        const struct notes *notes, uint64_t samples)
{
    size_t build_id_size = 0;
    const uint8_t *build_id = notes_build_id(notes, m->id, &build_id_size);
    struct json_writer w;

    json_start(&w, out);
    json_begin(&w, '{');
    json_key_u64(&w, "id", m->id);
    if (has_pid)
        json_key_i64(&w, "pid", m->pid);
    else
        json_key_null(&w, "pid");
    json_key_u64(&w, "start", m->start);
    json_key_u64(&w, "end", m->end);
    json_key_u64(&w, "file_offset", m->file_offset);
    json_key_string(&w, "path", m->path, m->path_size);
    if (build_id == NULL) {
        json_key_null(&w, "build_id");
    } else {
        json_key(&w, "build_id");
        json_separate(&w);
        output_byte(out, '"');
        print_build_id(out, build_id, build_id_size);
        output_byte(out, '"');
    }
    json_key_bool(&w, "kernel", m->kernel);
    if (m->retired_at_frame == SPOOL_NOT_RETIRED)
        json_key_null(&w, "retired");
    else
        json_key_u64(&w, "retired", m->retired_at_frame);
    json_key_u64(&w, "samples", samples);
    json_end(&w, '}');
    output_byte(out, '\n');
}

static void module_text(struct tool_output *out, const struct spool_module *m, bool has_pid,
                        const struct notes *notes, uint64_t samples)
{
    size_t build_id_size = 0;
    const uint8_t *build_id = notes_build_id(notes, m->id, &build_id_size);
    struct text_buffer path = {0};
    char pid[16] = "-", retired[24] = "-";

    if (has_pid)
        snprintf(pid, sizeof pid, "%" PRId32, m->pid);
    if (m->retired_at_frame != SPOOL_NOT_RETIRED)
        snprintf(retired, sizeof retired, "%" PRIu64, m->retired_at_frame);
    text_quote(m->path, m->path_size, &path);
    output_printf(out,
                  "%5" PRIu32 " %7s %#18" PRIx64 " %#18" PRIx64 " %#10" PRIx64 " %7s %9" PRIu64,
                  m->id, pid, m->start, m->end, m->file_offset, retired, samples);
    output_printf(out, "  %s%s", m->kernel ? "kernel " : "", path.data);
    if (build_id != NULL) {
        output_text(out, " build-id ");
        print_build_id(out, build_id, build_id_size);
    }
    output_byte(out, '\n');
    text_free(&path);
}

enum input_end modules_print(struct tool_input *in, const struct tool_options *o,
                             const struct view_options *view, struct progress *progress,
                             struct tool_output *out)
{
    const struct aggregate_options options = {.select = &o->select};
    uint32_t version = spool_reader_header(in->reader)->version;
    struct stack_use use = {0};
    struct aggregate a;
    enum input_end end = read_reported(&a, &options, in, o, progress);

    if (end != INPUT_FAILED && stack_use_count(&use, in->reader, &a) != 0)
        end = INPUT_FAILED;
    if (end != INPUT_FAILED && !view->json)
        output_text(out, "   id     pid              start                end     offset retired   "
                         "samples  path\n");
    for (uint32_t id = 0; end != INPUT_FAILED && id < use.module_count; id++) {
        const struct spool_module *m = spool_reader_module(in->reader, id);
        bool has_pid;

        if (m == NULL) /* an annotation */
            continue;
        has_pid = !m->kernel || version < 4;
        if (view->json)
            module_json(out, m, has_pid, &a.notes, use.module_samples[id]);
        else
            module_text(out, m, has_pid, &a.notes, use.module_samples[id]);
    }
    stack_use_free(&use);
    aggregate_free(&a);
    return end;
}

/* ---- threads --------------------------------------------------------------------------------- */

static int compare_tasks(const void *a, const void *b)
{
    const struct task *left = a, *right = b;

    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

struct task *tasks_of_threads(const struct aggregate *a, size_t *count)
{
    uint32_t sources = names_source_count(a->names);
    struct task *tasks = cli_realloc(NULL, sources, sizeof *tasks);
    size_t used = 0, kept = 0;

    for (uint32_t i = 0; i < sources; i++) {
        const struct source_stats *stats = &a->stats[i];
        struct source source;

        if (!a->source_selected[i] || stats->samples == 0)
            continue;
        names_get_source(a->names, i, &source);
        tasks[used++] = (struct task){source.pid,     source.tid,  stats->samples, stats->first_ns,
                                      stats->last_ns, stats->gaps, stats->gap_ns};
    }
    qsort(tasks, used, sizeof *tasks, compare_tasks);
    for (size_t i = 0; i < used; i++) {
        struct task *last = &tasks[kept - (kept > 0)];

        if (kept == 0 || compare_tasks(last, &tasks[i]) != 0) {
            tasks[kept++] = tasks[i];
            continue;
        }
        last->samples += tasks[i].samples;
        last->gaps += tasks[i].gaps;
        last->gap_ns += tasks[i].gap_ns;
        if (tasks[i].first_ns < last->first_ns)
            last->first_ns = tasks[i].first_ns;
        if (tasks[i].last_ns > last->last_ns)
            last->last_ns = tasks[i].last_ns;
    }
    *count = kept;
    return tasks;
}

static void thread_json(struct tool_output *out, const struct spool_thread *t, const char *name,
                        size_t name_size, const struct task *task)
{
    struct json_writer w;

    json_start(&w, out);
    json_begin(&w, '{');
    json_key_u64(&w, "id", t->id);
    json_key_i64(&w, "pid", t->pid);
    json_key_u64(&w, "tid", t->tid);
    key_clean(&w, "name", name, name_size);
    json_key_u64(&w, "samples", task != NULL ? task->samples : 0);
    if (task == NULL) {
        json_key_null(&w, "first_ns");
        json_key_null(&w, "last_ns");
    } else {
        json_key_u64(&w, "first_ns", task->first_ns);
        json_key_u64(&w, "last_ns", task->last_ns);
    }
    json_end(&w, '}');
    output_byte(out, '\n');
}

static void thread_text(struct tool_output *out, const struct spool_thread *t, const char *name,
                        size_t name_size, const struct task *task)
{
    output_printf(out, "%5" PRIu32 " %7" PRId32 " %7" PRIu64, t->id, t->pid, t->tid);
    if (task == NULL)
        output_printf(out, " %9d %20s %20s  ", 0, "-", "-");
    else
        output_printf(out, " %9" PRIu64 " %20" PRIu64 " %20" PRIu64 "  ", task->samples,
                      task->first_ns, task->last_ns);
    print_name(out, name, name_size);
    output_byte(out, '\n');
}

enum input_end threads_print(struct tool_input *in, const struct tool_options *o,
                             const struct view_options *view, struct progress *progress,
                             struct tool_output *out)
{
    const struct aggregate_options options = {
        .per_thread = true, .source_stats = true, .select = &o->select};
    struct spool_counts counts;
    struct aggregate a;
    struct task *tasks = NULL;
    size_t task_count = 0;
    enum input_end end = read_reported(&a, &options, in, o, progress);

    spool_reader_counts(in->reader, &counts);
    if (end != INPUT_FAILED) {
        tasks = tasks_of_threads(&a, &task_count);
        if (!view->json)
            output_text(out, "   id     pid     tid   samples             first_ns"
                             "              last_ns  name\n");
    } else {
        counts.threads = 0;
    }
    for (uint32_t id = 0; id < counts.threads; id++) {
        struct spool_thread t;
        const struct task *task;
        const char *name;
        size_t name_size = 0;

        if (!spool_reader_thread(in->reader, id, &t))
            continue;
        task = bsearch(&(struct task){.pid = t.pid, .tid = t.tid}, tasks, task_count, sizeof *tasks,
                       compare_tasks);
        name = names_of_thread(a.names, t.pid, t.tid, &name_size);
        if (view->json)
            thread_json(out, &t, name, name_size, task);
        else
            thread_text(out, &t, name, name_size, task);
    }
    free(tasks);
    aggregate_free(&a);
    return end;
}
