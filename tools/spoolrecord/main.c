/* SPDX-License-Identifier: MIT */
/* The command line of spoolrecord. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "output.h"
#include "record_run.h"

enum {
    OPTION_OUTPUT = 1,
    OPTION_FORCE,
    OPTION_PID,
    OPTION_DESCENDANTS,
    OPTION_NO_INHERIT,
    OPTION_DURATION,
    OPTION_FREQUENCY,
    OPTION_EVENT,
    OPTION_KERNEL,
    OPTION_STACK_SIZE,
    OPTION_BUFFER,
    OPTION_FORMAT,
    OPTION_PLAIN,
    OPTION_START_TIME,
    OPTION_INTERVAL,
    OPTION_PACK,
    OPTION_SUMMARY,
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_PROGRESS
};

static const struct cli_option own_options[] = {
    {.id = OPTION_PID,
     .short_name = 'p',
     .name = "pid",
     .value = "LIST",
     .kind = CLI_KIND_PID_LIST,
     .help = "processes that run already"},
    {.id = OPTION_DESCENDANTS, .name = "descendants", .help = "with --pid: their descendants too"},
    {.id = OPTION_NO_INHERIT,
     .name = "no-inherit",
     .help = "leave out processes that are started from now on"},
    {.id = OPTION_DURATION,
     .short_name = 'd',
     .name = "duration",
     .value = "T",
     .help = "stop after T (default: when the processes end)"},
    {.name = "", .help = "Sampling"},
    {.id = OPTION_FREQUENCY,
     .short_name = 'F',
     .name = "frequency",
     .value = "HZ",
     .words = "max",
     .help = "samples a second and thread (default 999)"},
    {.id = OPTION_EVENT,
     .name = "event",
     .value = "WHAT",
     .kind = CLI_KIND_WORD,
     .words = "auto|cycles|cpu-clock",
     .help = "what drives sampling"},
    {.id = OPTION_KERNEL,
     .short_name = 'k',
     .name = "kernel",
     .help = "kernel frames as well, where permitted"},
    {.id = OPTION_STACK_SIZE,
     .name = "stack-size",
     .value = "N",
     .help = "bytes of stack copied with a sample (default 32K)"},
    {.id = OPTION_BUFFER,
     .name = "buffer",
     .value = "N",
     .help = "bytes of each CPU's ring buffer (default: 200 ms)"},
    {.name = "", .help = "Output"},
    {.id = OPTION_OUTPUT,
     .short_name = 'o',
     .name = "output",
     .value = "FILE",
     .kind = CLI_KIND_FILE,
     .help = "spool (default profile.spool); - is standard output"},
    {.id = OPTION_FORCE, .name = "force", .help = "overwrite FILE if it exists"},
    {.id = OPTION_FORMAT,
     .name = "format",
     .value = "VERSION",
     .kind = CLI_KIND_WORD,
     .words = "3|4",
     .help = "version of the spool"},
    {.id = OPTION_PLAIN, .name = "plain", .help = "no annotations (names, build ids, losses)"},
    {.id = OPTION_START_TIME,
     .name = "start-time",
     .value = "US",
     .help = "start in the header, microseconds since 1970"},
    {.id = OPTION_INTERVAL,
     .name = "interval",
     .value = "US",
     .help = "interval in the header (default: 1000000 / HZ)"},
    {.id = OPTION_PACK,
     .name = "pack",
     .value = "DIR|FILE",
     .kind = CLI_KIND_FILE,
     .help = "pack symbols right after, into DIR or FILE.tar.gz"},
    {.name = "", .help = "Messages"},
    {.id = OPTION_SUMMARY,
     .name = "summary",
     .value = "HOW",
     .kind = CLI_KIND_WORD,
     .words = "text|json|none",
     .help = "report at the end, on stderr"},
    {.id = OPTION_QUIET, .short_name = 'q', .name = "quiet", .help = "only errors and losses"},
    {.id = OPTION_VERBOSE,
     .short_name = 'v',
     .name = "verbose",
     .help = "also why stacks do not reach their root"},
    {.id = OPTION_PROGRESS,
     .name = "progress",
     .value = "WHEN",
     .kind = CLI_KIND_WORD,
     .words = "auto|always|never",
     .help = "progress on standard error"},
    {.name = NULL},
};

static const char *const usage[] = {"[OPTION]... [--] COMMAND [ARG]...",
                                    "[OPTION]... -p PID[,PID]...", NULL};

static const char *const examples[] = {
    "spoolrecord ./app && spool2folded profile.spool > app.folded",
    "spoolrecord -p 4711 -d 10 -o cap.spool",
    "spoolrecord -o - -- make | gzip > make.spool.gz",
    NULL,
};

static void fail_value(const struct cli_arg *arg, const char *why)
{
    cli_usage("%s: '%s': %s", arg->shown, arg->value, why);
}

static void handle_sampling(const struct cli_arg *arg, struct run_options *o)
{
    struct record_options *record = &o->record;
    uint64_t size;

    switch (arg->id) {
    case OPTION_FREQUENCY:
        record->frequency_hz = strcmp(arg->value, "max") == 0
                                   ? RECORD_FREQUENCY_MAX
                                   : (uint32_t)cli_number_value(arg, 1, RECORD_FREQUENCY_MAX - 1);
        break;
    case OPTION_EVENT:
        record->event = (enum record_event)arg->word;
        break;
    case OPTION_KERNEL:
        record->kernel = true;
        break;
    case OPTION_STACK_SIZE:
        size = cli_size_value(arg);
        if (size < 8)
            fail_value(arg, "a stack has 8 bytes at least");
        record->stack_size_bytes = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
        break;
    case OPTION_BUFFER:
        record->ring_size_bytes = cli_size_value(arg);
        if (record->ring_size_bytes == 0)
            fail_value(arg, "a buffer has room for something");
        break;
    default:
        break;
    }
}

static void handle_output(const struct cli_arg *arg, struct tool_options *options,
                          struct run_options *o)
{
    struct record_options *record = &o->record;

    switch (arg->id) {
    case OPTION_OUTPUT:
        if (arg->value[0] == '\0')
            fail_value(arg, "no name of a file");
        if (options->output != NULL)
            cli_usage("%s was given more than once", arg->shown);
        o->output = options->output = arg->value;
        break;
    case OPTION_FORCE:
        o->force = true;
        break;
    case OPTION_FORMAT:
        record->spool_version = arg->word == 0 ? 3 : 4;
        break;
    case OPTION_PLAIN:
        record->plain = true;
        break;
    case OPTION_START_TIME:
        record->start_us = cli_number_value(arg, 0, UINT64_MAX);
        record->has_start = true;
        break;
    case OPTION_INTERVAL:
        record->interval_us = cli_number_value(arg, 0, UINT64_MAX);
        record->has_interval = true;
        break;
    case OPTION_PACK:
        if (arg->value[0] == '\0')
            fail_value(arg, "no name of a folder or file");
        o->pack = arg->value;
        break;
    default:
        break;
    }
}

static void handle(const struct cli_arg *arg, struct tool_options *options, void *own)
{
    struct run_options *o = own;

    switch (arg->id) {
    case OPTION_PID:
        cli_numbers_value(arg, 1, INT32_MAX, &o->pids);
        break;
    case OPTION_DESCENDANTS:
        o->descendants = true;
        break;
    case OPTION_NO_INHERIT:
        o->record.no_inherit = true;
        break;
    case OPTION_DURATION:
        o->duration_ns = cli_time_value(arg);
        if (o->duration_ns == 0)
            fail_value(arg, "nothing happens in no time");
        break;
    case OPTION_SUMMARY:
        o->summary = (enum run_summary)(RUN_SUMMARY_TEXT + arg->word);
        break;
    case OPTION_QUIET:
        options->quiet = true;
        break;
    case OPTION_VERBOSE:
        options->verbose = true;
        break;
    case OPTION_PROGRESS:
        options->progress = (enum progress_mode)arg->word;
        break;
    default:
        handle_sampling(arg, o);
        handle_output(arg, options, o);
        break;
    }
}

static void check(const struct tool_options *options, void *own)
{
    const struct run_options *o = own;

    if (options->input_count == 0 && o->pids.count == 0)
        cli_usage("neither a COMMAND nor --pid was given");
    if (options->input_count > 0 && o->pids.count > 0)
        cli_usage("'%s': a COMMAND and --pid contradict each other", options->inputs[0]);
    if (o->descendants && o->pids.count == 0)
        cli_usage("--descendants goes with --pid only");
    if (o->pack != NULL && output_is_standard(o->output))
        cli_usage("--pack needs a spool in a file");
    if (o->force && output_is_standard(o->output))
        cli_usage("--force needs a spool in a file");
}

static const struct cli_tool tool = {
    .name = "spoolrecord",
    .purpose = "sample the stacks of running programs into a spool",
    .usage = usage,
    .own_title = "What is recorded",
    .own = own_options,
    .handle = handle,
    .check = check,
    .examples = examples,
    .note = "T is 2.5s, 250ms, 30us, 12ns, or a number of seconds; N is 65528, 32K or 1M.\n"
            "Exit status: that of the command, 128 + signal if it was killed, 0 with --pid;\n"
            "125 recording failed, 126 COMMAND cannot be run, 127 it was not found, 2 usage.",
    .command = true,
    .failure = STATUS_FAILED,
};

int main(int argc, char **argv)
{
    struct tool_options options;
    struct run_options own = {.output = "profile.spool", .common = &options};
    int status;

    record_options_init(&own.record, sizeof own.record);
    cli_parse(&tool, argc, argv, &options, &own);
    own.command = argv + argc - options.input_count; /* which ends with NULL, and so does argv */
    status = record_run(&own);
    free(own.pids.items);
    cli_free(&options);
    return status;
}
