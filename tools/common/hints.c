/* SPDX-License-Identifier: MIT */
/* Telling what selects nothing, and which option gives names. */
#include "hints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "select.h"

/* So many of what there is are named; the rest is a number. */
#define NAMED_MAX 6

/* ---- nothing selected ---- */

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void append_more(struct text_buffer *out, size_t count)
{
    if (count > NAMED_MAX)
        text_printf(out, " and %zu more", count - NAMED_MAX);
}

/* The spool's process ids or thread ids. True when one of them is wanted, and nothing is said then. */
static bool has_wanted_id(struct text_buffer *out, const struct tool_options *o,
                          struct spool_reader *reader, bool pids)
{
    struct spool_counts counts;
    int64_t *ids;
    size_t count = 0;
    bool wanted = false;

    spool_reader_counts(reader, &counts);
    ids = cli_zeroed(counts.threads, sizeof *ids);
    for (uint32_t i = 0; i < counts.threads && !wanted; i++) {
        const struct select_options alone = {
            .has_pids = pids, .pids = o->select.pids, .has_tids = !pids, .tids = o->select.tids};
        struct spool_thread t = {0};

        if (!spool_reader_thread(reader, i, &t))
            continue;
        wanted = select_ids(&alone, t.pid, t.tid);
        ids[i] = pids ? t.pid : (int64_t)t.tid;
    }
    if (!wanted && counts.threads > 0) {
        qsort(ids, counts.threads, sizeof *ids, compare_numbers);
        for (uint32_t i = 0; i < counts.threads; i++)
            if (i == 0 || ids[i] != ids[count - 1])
                ids[count++] = ids[i];
        text_printf(out, "the spool's %s are ", pids ? "processes" : "threads");
        for (size_t i = 0; i < count && i < NAMED_MAX; i++)
            text_printf(out, "%s%" PRId64, i > 0 ? ", " : "", ids[i]);
        append_more(out, count);
    }
    free(ids);
    return wanted;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names that no glob matches, of processes or threads that are selected otherwise. */
static void list_names(struct text_buffer *out, const struct aggregate *a, bool thread)
{
    uint32_t source_count = names_source_count(a->names);
    char **names = cli_realloc(NULL, source_count, sizeof *names);
    size_t count = 0, distinct = 0;

    for (uint32_t i = 0; i < source_count; i++) {
        struct source s;

        names_get_source(a->names, i, &s);
        if (thread ? s.thread != NULL : s.comm != NULL)
            names[count++] =
                thread ? text_copy(s.thread, s.thread_size) : text_copy(s.comm, s.comm_size);
    }
    if (count > 1)
        qsort(names, count, sizeof *names, compare_texts);
    text_printf(out, "no %s name matches --%s", thread ? "thread" : "process",
                thread ? "thread" : "comm");
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(names[i], names[i - 1]) == 0)
            continue;
        if (distinct++ < NAMED_MAX)
            text_printf(out, "%s%s", distinct == 1 ? "; there are " : ", ", names[i]);
    }
    append_more(out, distinct);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* Whether a process has a name that --comm asks for, so that it is --thread that no name matches. */
static bool any_comm(const struct select_options *o, const struct aggregate *a)
{
    const struct select_options alone = {.comm_globs = o->comm_globs};

    for (uint32_t i = 0; i < names_source_count(a->names); i++) {
        struct source s;

        names_get_source(a->names, i, &s);
        if (select_source(&alone, &s))
            return true;
    }
    return false;
}

static bool any_source(const struct aggregate *a)
{
    for (uint32_t i = 0; i < names_source_count(a->names); i++)
        if (a->source_selected[i])
            return true;
    return false;
}

static void tell_selection(struct text_buffer *out, const struct tool_options *o,
                           const struct tool_input *in, const struct aggregate *a)
{
    const struct select_options *s = &o->select;

    if (s->has_pids && !has_wanted_id(out, o, in->reader, true))
        return;
    if (s->has_tids && !has_wanted_id(out, o, in->reader, false))
        return;
    if (names_source_count(a->names) == 0) { /* those that ids and times leave */
        if (s->has_from || s->has_to)
            text_printf(out, "the spool covers 0 s to %.2f s",
                        (double)(a->file_high_ns - a->file_first_ns) / 1e9);
    } else if (!any_source(a)) {
        list_names(out, a, any_comm(s, a));
    } else if (o->shape.has_frame_filter) {
        text_printf(out, "no frame matches --frame-filter");
    } else if (o->shape.kernel == KERNEL_ONLY) {
        text_printf(out, "no stack has kernel frames, which spoolrecord records with --kernel");
    }
}

/* ---- no names ---- */

static bool any_python(const struct aggregate *a)
{
    for (uint32_t i = 0; i < names_source_count(a->names); i++) {
        struct source s;

        names_get_source(a->names, i, &s);
        if (a->source_selected[i] && s.python)
            return true;
    }
    return false;
}

/* ---- all ---- */

void hints_input(struct hints *h, const struct tool_options *o, const struct tool_input *in,
                 const struct aggregate *a, const struct input_report *r,
                 const struct symbols *symbols)
{
    h->damaged |= spool_reader_cut_tail(in->reader) || spool_reader_error_code(in->reader) < 0;
    h->samples_read += a->file_samples;
    h->samples_used += r->samples;
    h->file_frames += r->file_frames;
    h->named_elf += r->named_elf;
    h->kernel_restricted |=
        r->kernel_frames > 0 && r->named_kernel == 0 && symbols_kernel_restricted(symbols);
    h->python_unnamed |= r->samples > 0 && r->named_perf_map == 0 && any_python(a);
    if (r->samples == 0 && a->file_samples > 0 && h->selection.size == 0)
        tell_selection(&h->selection, o, in, a);
}

/* Whether the user has said where files are. */
static bool names_places(const struct symbol_options *o)
{
    return o->sysroot || o->debug_dirs.count > 0 || getenv("SPOOL_DEBUG_DIRS") ||
           o->symbol_dirs.count > 0 || o->debuginfod;
}

void hints_warn(const struct hints *h, const struct tool_options *o)
{
    /* An empty document is right then, but seldom what was meant. */
    if (h->samples_used == 0 && h->samples_read > 0)
        cli_warn("no sample selected of %" PRIu64 "%s%s", h->samples_read,
                 h->selection.size > 0 ? ": " : "", h->selection.size > 0 ? h->selection.data : "");
    if (h->samples_read == 0 && !h->damaged)
        cli_warn("%s no samples", o->input_count == 1 ? "the spool has" : "the spools have");
    if (o->symbols.no_symbols)
        return;
    if (h->file_frames > 0 && h->named_elf == 0 && !names_places(&o->symbols))
        cli_warn("no frame has a name from its file: --symbols, --sysroot or --debug-dir find the "
                 "files of another machine (--verbose says what is missing)");
    if (h->kernel_restricted)
        cli_warn("kernel frames stay addresses: kernel.kptr_restrict hides those in /proc/kallsyms "
                 "(convert as root, or with sysctl kernel.kptr_restrict=0)");
    if (h->python_unnamed && o->symbols.perf_maps != SYM_PERF_MAPS_NONE)
        cli_warn("Python functions have no names: python -X perf (3.12 or newer) writes perf maps, "
                 "which --perf-map-dir finds elsewhere");
}

void hints_free(struct hints *h)
{
    text_free(&h->selection);
}
