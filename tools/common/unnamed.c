/* SPDX-License-Identifier: MIT */
/* From what was charged (misses.c) and what libsym says to the lines about names (report.c), in their order. */
#include "unnamed.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "report.h"

/* A line "no symbols: PATH (WHY): N samples". */
struct line {
    struct report_path path; /* borrowed */
    const char *why;         /* borrowed */
    char *detail;            /* malloc'ed */
    uint64_t samples;
    bool generated; /* of one process */
};

/* ---- places ---- */

static bool is_generated(const struct spool_module *m)
{
    return !m->kernel && sym_is_anonymous_path(m->path, m->path_size);
}

void unnamed_init(struct misses *m, struct spool_reader *reader, const struct notes *notes)
{
    struct spool_counts counts;
    struct misses_module *modules;

    spool_reader_counts(reader, &counts);
    modules = cli_zeroed(counts.modules, sizeof *modules);
    for (uint32_t id = 0; id < counts.modules; id++) {
        const struct spool_module *module = spool_reader_module(reader, id);
        struct misses_module *key = &modules[id];

        if (!module)
            continue;
        key->path = module->path;
        key->path_size = module->path_size;
        key->build_id = notes_build_id(notes, id, &key->build_id_size);
        key->pid = is_generated(module) ? module->pid : 0;
        key->kernel = module->kernel;
        key->jit = module->jit;
    }
    misses_init(m, &counts, modules);
    free(modules);
}

/* ---- reasons ---- */

/* Why the kernel, or an address in it, has no name, and what was tried. */
static void kernel_reason(const struct symbols *symbols, enum sym_miss reason,
                          struct text_buffer *out)
{
    const char *detail, *why = symbols_kernel_text(symbols, &detail);

    text_printf(out, "%s%s%s", why ? why : sym_miss_text(reason), *detail ? "; " : "", detail);
}

static bool is_perf_map_reason(enum sym_miss reason)
{
    return reason == SYM_MISS_NO_PERF_MAP || reason == SYM_MISS_STALE ||
           reason == SYM_MISS_TOO_LARGE;
}

/* What a lookup in a process said. Symbols are not switched off where there is a report: perf maps may be. */
static const char *user_reason(enum sym_miss reason)
{
    return reason == SYM_MISS_DISABLED ? "perf maps are not used for this process"
                                       : sym_miss_text(reason);
}

/* A file without names: what became of it, else what the first frame's lookup said. */
static struct line module_line(const struct symbols *symbols, const struct spool_module *m,
                               enum sym_miss reason)
{
    const char *detail, *why = symbols_miss_text(symbols, m->id, &detail);
    const char *map_why, *map_path;
    struct text_buffer more = {0};

    if (m->kernel)
        kernel_reason(symbols, reason, &more);
    else if (!why && is_perf_map_reason(reason) &&
             (map_why = symbols_perf_map_text(symbols, m->pid, &map_path)) != NULL)
        text_printf(&more, "%s: %s", map_path, map_why);
    else
        text_append(&more, detail, strlen(detail));
    return (struct line){.path = {m->path, m->path_size},
                         .why = why ? why : user_reason(reason),
                         .detail = more.data,
                         .generated = is_generated(m)};
}

static struct line other_line(const struct symbols *symbols, bool kernel, enum sym_miss reason)
{
    const char *name = kernel ? "[kernel.kallsyms]" : "[unknown]";
    struct text_buffer why = {0};

    if (kernel)
        kernel_reason(symbols, reason, &why);
    return (
        struct line){.path = {name, strlen(name)}, .why = user_reason(reason), .detail = why.data};
}

/* ---- lines ---- */

static int compare_paths(const void *a, const void *b)
{
    const struct report_path *x = a, *y = b;
    size_t size = x->size < y->size ? x->size : y->size;
    int order = size ? memcmp(x->path, y->path, size) : 0;

    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static int compare_texts(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    int order = compare_paths(&x->path, &y->path);

    if (order == 0)
        order = strcmp(x->why, y->why);
    if (order == 0)
        order = strcmp(x->detail ? x->detail : "", y->detail ? y->detail : "");
    return order;
}

static int compare_samples(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return compare_texts(a, b);
}

/* Equal lines about generated code are of different processes: they have no sample in common, and their sum is one
 * line. Leaves how many lines there are. */
static size_t merge_processes(struct line *lines, size_t count)
{
    size_t kept = 0;

    if (count > 1)
        qsort(lines, count, sizeof *lines, compare_texts);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && lines[i].generated && lines[kept - 1].generated &&
            compare_texts(&lines[i], &lines[kept - 1]) == 0) {
            lines[kept - 1].samples += lines[i].samples;
            free(lines[i].detail);
        } else {
            lines[kept++] = lines[i];
        }
    }
    return kept;
}

static void report_misses(struct text_buffer *out, const struct misses *m,
                          struct spool_reader *reader, const struct symbols *symbols)
{
    struct line *lines = NULL;
    size_t count = 0, capacity = 0;

    for (uint32_t place = 0; place < m->place_count; place++) {
        enum sym_miss reason = (enum sym_miss)m->reasons[place];
        const struct spool_module *module = NULL;

        if (m->samples[place] == 0)
            continue;
        if (place < misses_kernel(m))
            module = spool_reader_module(reader, m->charged[place]);
        lines = cli_grow(lines, &capacity, count, sizeof *lines);
        lines[count] = module ? module_line(symbols, module, reason)
                              : other_line(symbols, place == misses_kernel(m), reason);
        lines[count++].samples = m->samples[place];
    }
    count = merge_processes(lines, count);
    if (count > 1)
        qsort(lines, count, sizeof *lines, compare_samples);
    for (size_t i = 0; i < count; i++) {
        report_miss(out, lines[i].path.path, lines[i].path.size, lines[i].why,
                    lines[i].detail ? lines[i].detail : "", lines[i].samples);
        free(lines[i].detail);
    }
    free(lines);
}

static void report_names_of_unknown_builds(struct text_buffer *out, const struct misses *m,
                                           struct spool_reader *reader,
                                           const struct symbols *symbols)
{
    struct report_path *files = NULL;
    size_t count = 0, capacity = 0;
    const char *detail;

    for (uint32_t place = 0; place < misses_kernel(m); place++) {
        const struct spool_module *module;

        if (!m->unverified[place] || !(module = spool_reader_module(reader, place)))
            continue;
        files = cli_grow(files, &capacity, count, sizeof *files);
        files[count++] = (struct report_path){module->path, module->path_size};
    }
    if (count > 1)
        qsort(files, count, sizeof *files, compare_paths);
    symbols_kernel_text(symbols, &detail);
    report_unverified(out, files, count, m->unverified[misses_kernel(m)], detail);
    free(files);
}

struct debug_line {
    struct report_path path;
    const char *detail;
};

static int compare_debug_lines(const void *a, const void *b)
{
    const struct debug_line *x = a, *y = b;
    int order = compare_paths(&x->path, &y->path);

    return order ? order : strcmp(x->detail, y->detail);
}

/* Files with names, but not all that could be known. What cost samples their names was told before. */
static void report_debug_files(struct text_buffer *out, const struct misses *m,
                               struct spool_reader *reader, const struct symbols *symbols)
{
    struct debug_line *lines = NULL;
    size_t count = 0, capacity = 0;

    for (uint32_t id = 0; id < misses_kernel(m); id++) {
        const struct spool_module *module = spool_reader_module(reader, id);
        const char *detail = module ? symbols_debug_text(symbols, id) : NULL;

        if (!detail || module->kernel || m->samples[m->places[id]] > 0)
            continue;
        lines = cli_grow(lines, &capacity, count, sizeof *lines);
        lines[count++] = (struct debug_line){{module->path, module->path_size}, detail};
    }
    if (count > 1)
        qsort(lines, count, sizeof *lines, compare_debug_lines);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_debug_lines(&lines[i - 1], &lines[i]) != 0)
            report_debug(out, lines[i].path.path, lines[i].path.size, lines[i].detail);
    free(lines);
}

void unnamed_report(struct text_buffer *out, const struct misses *m, struct spool_reader *reader,
                    const struct symbols *symbols)
{
    report_misses(out, m, reader, symbols);
    report_debug_files(out, m, reader, symbols);
    if (symbols_vmlinux_text(symbols))
        report_vmlinux(out, symbols_vmlinux_text(symbols));
    report_names_of_unknown_builds(out, m, reader, symbols);
}
