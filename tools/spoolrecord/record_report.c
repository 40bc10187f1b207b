/* SPDX-License-Identifier: MIT */
/* Wording of the summary (spoolrecord(1), SUMMARY). What is fine is not mentioned. */
#include "record_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"

/* Of the samples; fewer stacks that are too long are not worth a word. */
#define ADVICE_PERCENT 1.0

static double percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

/* "profile.spool: 41,233 samples in 10.02 s, 2 processes, 9 threads, 1.2 MiB (cycles, 999 Hz)" */
static void append_head(struct text_buffer *out, const struct record_summary *s, const char *name)
{
    text_append_display(out, name, strlen(name));
    text_printf(out, ": ");
    text_counted(out, s->samples, "sample", "samples");
    text_printf(out, " in %.2f s, ", (double)s->duration_ns / 1e9);
    text_counted(out, s->processes, "process", "processes");
    text_printf(out, ", ");
    text_counted(out, s->threads, "thread", "threads");
    text_printf(out, ", ");
    text_bytes(out, s->bytes);
    text_printf(out, " (%s%s%" PRIu32 " Hz", s->event, s->event[0] != '\0' ? ", " : "",
                s->frequency_hz);
    if (s->kernel_enabled)
        text_printf(out, ", with kernel frames");
    if (s->mode == RECORD_MODE_PER_THREAD || s->mode == RECORD_MODE_SYSTEM_WIDE)
        text_printf(out, ", %s", record_mode_name(s->mode));
    text_printf(out, ")\n");
    if (s->samples == 0)
        text_printf(out, "no samples: nothing ran on a CPU for long enough\n");
}

bool record_report_losses(struct text_buffer *out, const struct record_summary *s)
{
    if (s->lost_events == 0)
        return false;
    text_printf(out, "lost ");
    text_counted(out, s->lost_events, "event", "events");
    if (s->lost_samples > 0) {
        text_printf(out, ", ");
        text_number(out, s->lost_samples);
        text_printf(out, " of them samples (%.1f %%)",
                    percent(s->lost_samples, s->samples + s->lost_samples));
    }
    text_printf(out, ": a larger --buffer, a lower --frequency or a smaller --stack-size helps\n");
    return true;
}

/* Stacks that do not reach their root, and what to do about the commonest reason. */
static void append_cut_stacks(struct text_buffer *out, const struct record_summary *s,
                              const struct report_context *c)
{
    uint64_t too_long = record_faults_get(&s->faults, RECORD_FAULT_STACK_TRUNCATED);

    if (s->truncated_stacks > 0) {
        text_counted(out, s->truncated_stacks, "stack does", "stacks do");
        text_printf(out, " not reach the root (%.1f %%)%s\n",
                    percent(s->truncated_stacks, s->samples),
                    c->verbose || !record_faults_any(&s->faults) ? "" : "; --verbose tells why");
    }
    if (percent(too_long, s->samples) <= ADVICE_PERCENT)
        return;
    text_printf(out, "%.1f %% of the stacks are larger than the %" PRIu32 " bytes copied of each: ",
                percent(too_long, s->samples), c->stack_size_bytes);
    if (c->stack_size_bytes < RECORD_STACK_SIZE_MAX)
        text_printf(out, "--stack-size %s gets more of them\n",
                    c->stack_size_bytes < RECORD_STACK_SIZE_MAX / 2 ? "32K or 65528" : "65528");
    else
        text_printf(out, "the kernel copies no more\n");
}

/* Samples that are in no stack. */
static void append_unused(struct text_buffer *out, const struct record_summary *s)
{
    const struct {
        uint64_t count;
        const char *text;
    } kinds[] = {
        {s->missing_pid, "without a process"}, {s->missing_tid, "without a thread"},
        {s->idle_tid, "of thread 0"},          {s->missing_timestamp, "without a time"},
        {s->empty_stack, "without a stack"},   {s->excluded_kernel, "of the kernel alone"},
    };
    const char *separator = "not used: ";

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].count == 0)
            continue;
        text_printf(out, "%s", separator);
        text_counted(out, kinds[i].count, "sample", "samples");
        text_printf(out, " %s", kinds[i].text);
        separator = ", ";
    }
    if (separator[0] == ',')
        text_append_byte(out, '\n');
}

static void append_troubles(struct text_buffer *out, const struct record_summary *s)
{
    if (s->throttled > 0) {
        text_printf(out, "the kernel throttled sampling ");
        text_counted(out, s->throttled, "time", "times");
        text_printf(out, ": a lower --frequency avoids that\n");
    }
    if (s->corrupt_records > 0) {
        text_counted(out, s->corrupt_records, "record", "records");
        text_printf(out, " of the kernel could not be read\n");
    }
}

static void append_details(struct text_buffer *out, const struct record_summary *s)
{
    size_t size = record_faults_report(&s->faults, s->samples, NULL, 0);

    if (s->guessed_stacks > 0) {
        text_counted(out, s->guessed_stacks, "stack has", "stacks have");
        text_printf(out, " frames that no unwind data confirm\n");
    }
    if (size > 0) {
        char *text = cli_realloc(NULL, size + 1, 1);

        record_faults_report(&s->faults, s->samples, text, size + 1);
        text_append(out, text, strlen(text));
        if (out->data[out->size - 1] != '\n')
            text_append_byte(out, '\n');
        free(text);
    }
    text_printf(out, "rings of ");
    text_bytes(out, s->ring_size_bytes);
    text_printf(out, ", ");
    text_counted(out, s->rescans + s->lifecycle_gaps, "look", "looks");
    text_printf(out, " at /proc for missed mappings, mode %s\n", record_mode_name(s->mode));
}

void record_report_text(struct text_buffer *out, const struct record_summary *s,
                        const struct report_context *c)
{
    append_head(out, s, c->name);
    record_report_losses(out, s);
    append_troubles(out, s);
    append_unused(out, s);
    append_cut_stacks(out, s, c);
    if (c->verbose)
        append_details(out, s);
}

void record_report_json(struct text_buffer *out, const struct record_summary *s)
{
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"missing_pid", s->missing_pid},
        {"missing_tid", s->missing_tid},
        {"idle_tid", s->idle_tid},
        {"missing_timestamp", s->missing_timestamp},
        {"empty_stack", s->empty_stack},
        {"truncated_stacks", s->truncated_stacks},
        {"ignored_user_callchain", s->ignored_user_callchain},
        {"throttled", s->throttled},
    };

    text_printf(out,
                "{\"sample_events\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"lost_events\":%" PRIu64
                ",\"lifecycle_gaps\":%" PRIu64 ",\"kernel_enabled\":%s,\"event\":",
                s->sample_events, s->samples, s->lost_events, s->lifecycle_gaps,
                s->kernel_enabled ? "true" : "false");
    json_append_text(out, s->event, strlen(s->event));
    text_printf(out, ",\"frequency_hz\":%" PRIu32, s->frequency_hz);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        text_printf(out, ",\"%s\":%" PRIu64, counts[i].key, counts[i].value);
    text_printf(out, ",\"errors\":{");
    for (unsigned fault = 0; fault < RECORD_FAULT_COUNT; fault++)
        text_printf(out, "%s\"%s\":%" PRIu64, fault == 0 ? "" : ",",
                    record_fault_name((enum record_fault)fault),
                    record_faults_get(&s->faults, (enum record_fault)fault));
    text_printf(out,
                "},\"bytes\":%" PRIu64 ",\"duration_ns\":%" PRIu64 ",\"processes\":%" PRIu32
                ",\"threads\":%" PRIu32 ",\"mode\":\"%s\"}\n",
                s->bytes, s->duration_ns, s->processes, s->threads, record_mode_name(s->mode));
}

void record_report_progress(struct text_buffer *out, const struct record_summary *s,
                            const char *name)
{
    text_printf(out, "%s: ", cli_program());
    text_append_display(out, name, strlen(name));
    text_printf(out, ": %.1f s, ", (double)s->duration_ns / 1e9);
    text_counted(out, s->samples, "sample", "samples");
    if (s->lost_events > 0) {
        text_printf(out, ", ");
        text_number(out, s->lost_events);
        text_printf(out, " lost");
    }
    text_printf(out, ", ");
    text_bytes(out, s->bytes);
}
