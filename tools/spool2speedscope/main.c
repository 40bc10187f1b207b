/* SPDX-License-Identifier: MIT */
/* The command line of spool2speedscope. */
#include "converter.h"
#include "speedscope.h"

enum {
    OPTION_WEIGHT = 1,
    OPTION_OVERVIEW,
    OPTION_MERGE_THREADS,
    OPTION_MAX_PROFILES,
    OPTION_NAME,
    OPTION_MERGE_RUNS
};

static const struct cli_option own_options[] = {
    {.id = OPTION_WEIGHT,
     .name = "weight",
     .value = "WHAT",
     .kind = CLI_KIND_WORD,
     .words = "time|samples",
     .help = "width of a sample"},
    {.id = OPTION_OVERVIEW,
     .name = "overview",
     .negatable = true,
     .help = "first a profile of all threads together (default)"},
    {.id = OPTION_MERGE_THREADS,
     .name = "merge-threads",
     .help = "only that profile, none of a thread"},
    {.id = OPTION_MAX_PROFILES,
     .name = "max-profiles",
     .value = "N",
     .help = "profiles of the N busiest threads (default 256)"},
    {.id = OPTION_NAME,
     .name = "name",
     .value = "TEXT",
     .help = "what the viewer calls the document"},
    {.id = OPTION_MERGE_RUNS,
     .name = "merge-runs",
     .negatable = true,
     .help = "adjacent equal stacks become one entry (default)"},
    {.name = NULL},
};

static const char *const usage[] = {"[OPTION]... [SPOOL]...", NULL};

static const char *const examples[] = {
    "spool2speedscope cap.spool -o cap.speedscope.json",
    "spool2speedscope --merge-threads huge.spool > huge.speedscope.json",
    NULL,
};

static void handle(const struct cli_arg *arg, struct tool_options *options, void *own)
{
    struct speedscope_options *o = own;

    (void)options;
    switch (arg->id) {
    case OPTION_WEIGHT:
        o->weight = arg->word == 0 ? SPEEDSCOPE_TIME : SPEEDSCOPE_SAMPLES;
        break;
    case OPTION_OVERVIEW:
        o->no_overview = arg->negated;
        break;
    case OPTION_MERGE_THREADS:
        o->merge_threads = true;
        break;
    case OPTION_MAX_PROFILES:
        o->max_profiles = (uint32_t)cli_number_value(arg, 1, UINT32_MAX);
        break;
    case OPTION_NAME:
        if (arg->value[0] == '\0')
            cli_usage("%s: the text is empty", arg->shown);
        o->name = arg->value;
        break;
    case OPTION_MERGE_RUNS:
        o->no_merge_runs = arg->negated;
        break;
    default:
        break;
    }
}

static void check(const struct tool_options *options, void *own)
{
    const struct speedscope_options *o = own;

    (void)options;
    if (!o->merge_threads)
        return;
    if (o->no_overview)
        cli_usage("--no-overview would leave nothing of --merge-threads");
    if (cli_was_given("max-profiles"))
        cli_usage("--max-profiles is about threads, which --merge-threads does not show");
    if (cli_was_given("merge-runs"))
        cli_usage("--[no-]merge-runs is about time, which --merge-threads does not show");
}

static const struct cli_tool tool = {
    .name = "spool2speedscope",
    .purpose = "convert spools to documents for the speedscope viewer",
    .usage = usage,
    .groups = CLI_COMMON | CLI_DAMAGE | CLI_SELECT | CLI_SHAPE | CLI_SYMBOLS,
    .own_title = "Document",
    .own = own_options,
    .handle = handle,
    .check = check,
    .examples = examples,
};

static int convert(struct tool_options *options, void *own, struct tool_output *out)
{
    return speedscope_convert(options, own, out);
}

int main(int argc, char **argv)
{
    struct speedscope_options own = {.max_profiles = SPEEDSCOPE_PROFILES};

    return converter_main(&tool, argc, argv, &own, false, convert);
}
