/* SPDX-License-Identifier: MIT */
/* Wording of the --verbose report. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Names may be any bytes, and a line break in one must not end the line: text_append_display. */
static void append_path(struct text_buffer *out, const char *path, size_t size)
{
    if (size > 0)
        text_append_display(out, path, size);
    else
        text_append(out, "[unnamed]", 9);
}

static int compare_pids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* Distinct processes among the threads of the spool. */
static uint32_t count_processes(const struct spool_reader *reader, uint32_t threads)
{
    int32_t *pids = cli_realloc(NULL, threads ? threads : 1, sizeof *pids);
    uint32_t distinct = 0;

    for (uint32_t i = 0; i < threads; i++) {
        struct spool_thread t = {0};

        spool_reader_thread(reader, i, &t);
        pids[i] = t.pid;
    }
    if (threads > 1)
        qsort(pids, threads, sizeof *pids, compare_pids);
    for (uint32_t i = 0; i < threads; i++)
        distinct += i == 0 || pids[i] != pids[i - 1];
    free(pids);
    return distinct;
}

static void share(struct text_buffer *out, const char **separator, const char *name, uint64_t part,
                  uint64_t whole)
{
    if (part == 0)
        return;
    text_printf(out, "%s%s %.1f", *separator, name, 100.0 * (double)part / (double)whole);
    *separator = ", ";
}

static void name_line(struct text_buffer *out, const struct input_report *r)
{
    uint64_t named = r->named_elf + r->named_perf_map + r->named_kernel + r->named_jit;
    const char *separator = " (";

    if (r->frames > 0) {
        text_printf(out, "named %.1f %% of frames", 100.0 * (double)named / (double)r->frames);
        share(out, &separator, "elf", r->named_elf, r->frames);
        share(out, &separator, "perf-map", r->named_perf_map, r->frames);
        share(out, &separator, "kernel", r->named_kernel, r->frames);
        share(out, &separator, "jit", r->named_jit, r->frames);
        text_printf(out, "%s, ", named > 0 ? ")" : "");
    }
    text_counted(out, r->truncated_stacks, "stack", "stacks");
    text_append(out, " truncated\n", 11);
}

void report_spool(struct text_buffer *out, const struct tool_input *in, uint64_t low_ns,
                  uint64_t high_ns)
{
    struct spool_counts counts;

    spool_reader_counts(in->reader, &counts);
    text_append_display(out, in->name, strlen(in->name));
    text_printf(out, ": version %" PRIu32 ", ", spool_reader_header(in->reader)->version);
    text_bytes(out, spool_reader_input_bytes(in->reader));
    text_append(out, ", ", 2);
    text_counted(out, counts.samples, "sample", "samples");
    text_printf(out, " over %.2f s, ", (double)(high_ns - low_ns) / 1e9);
    text_counted(out, count_processes(in->reader, counts.threads), "process", "processes");
    text_append(out, ", ", 2);
    text_counted(out, counts.threads, "thread", "threads");
    text_append_byte(out, '\n');
}

void report_input(struct text_buffer *out, const struct tool_input *in, const struct aggregate *a,
                  const struct input_report *r)
{
    report_spool(out, in, a->file_low_ns, a->file_high_ns);
    text_append(out, "used ", 5);
    text_counted(out, r->samples, "sample", "samples");
    text_append(out, ", ", 2);
    text_counted(out, r->stacks, "distinct stack", "distinct stacks");
    text_append(out, ", ", 2);
    text_counted(out, r->frames, "distinct frame", "distinct frames");
    text_append_byte(out, '\n');
    name_line(out, r);
}

/* The detail names the file it speaks of; said once where that is the module's own path. */
static void path_and_detail(struct text_buffer *out, const char *path, size_t path_size,
                            const char *detail, const char *otherwise)
{
    append_path(out, path, path_size);
    if (strncmp(detail, path, path_size) == 0 && strncmp(detail + path_size, ": ", 2) == 0)
        detail += path_size + 2;
    if (*detail == '\0')
        detail = otherwise;
    text_append(out, " (", 2);
    text_append_display(out, detail, strlen(detail));
    text_append_byte(out, ')');
}

void report_debug(struct text_buffer *out, const char *path, size_t path_size, const char *detail)
{
    text_printf(out, "no debug info: ");
    path_and_detail(out, path, path_size, detail, "");
    text_append_byte(out, '\n');
}

void report_miss(struct text_buffer *out, const char *path, size_t path_size, const char *why,
                 const char *detail, uint64_t samples)
{
    text_append(out, "no symbols: ", 12);
    path_and_detail(out, path, path_size, detail, why);
    text_append(out, ": ", 2);
    text_counted(out, samples, "sample", "samples");
    text_append_byte(out, '\n');
}

void report_unverified(struct text_buffer *out, const struct report_path *files, size_t count,
                       bool kernel, const char *kernel_detail)
{
    enum { SHOWN = 4 };

    if (count == 0 && !kernel)
        return;
    text_printf(out, "not verified: ");
    if (count > 0) {
        text_counted(out, count, "file", "files");
        text_printf(out, " named without a recorded build id to compare");
    }
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        text_append(out, i == 0 ? ": " : ", ", 2);
        append_path(out, files[i].path, files[i].size);
    }
    if (count > SHOWN) {
        text_printf(out, " and ");
        text_number(out, count - SHOWN);
        text_printf(out, " more");
    }
    if (kernel)
        text_printf(out, "%sthe kernel named by a file that states no build id",
                    count > 0 ? "; " : "");
    if (kernel && *kernel_detail) {
        text_printf(out, " (");
        text_append_display(out, kernel_detail, strlen(kernel_detail));
        text_printf(out, ")");
    }
    text_append_byte(out, '\n');
}

void report_vmlinux(struct text_buffer *out, const char *text)
{
    struct text_buffer clean = {0};

    text_clean(text, strlen(text), &clean);
    text_printf(out, "vmlinux: %s\n", clean.data);
    text_free(&clean);
}
