/* SPDX-License-Identifier: MIT */
/* The command line of spool2folded. */
#include "converter.h"
#include "folded.h"

enum {
    OPTION_ROOT = 1,
    OPTION_WEIGHT,
    OPTION_ANNOTATE,
    OPTION_WITH_MODULES,
    OPTION_WITH_LINES,
    OPTION_WITH_ADDRESSES,
    OPTION_TIMELINE,
    OPTION_REVERSE
};

static const struct cli_option own_options[] = {
    {.id = OPTION_ROOT,
     .name = "root",
     .value = "WHAT",
     .kind = CLI_KIND_WORD,
     .words = "none|process|pid|thread",
     .help = "frames put in front"},
    {.id = OPTION_WEIGHT,
     .name = "weight",
     .value = "WHAT",
     .kind = CLI_KIND_WORD,
     .words = "samples|time",
     .help = "what is counted"},
    {.id = OPTION_ANNOTATE,
     .name = "annotate",
     .help = "suffixes _[k] kernel, _[j] JIT, _[i] inlined"},
    {.id = OPTION_WITH_MODULES, .name = "with-modules", .help = "append ` (module)' to each frame"},
    {.id = OPTION_WITH_LINES,
     .name = "with-lines",
     .help = "append ` (file:line)' where the source is known"},
    {.id = OPTION_WITH_ADDRESSES,
     .name = "with-addresses",
     .help = "append the address to each frame"},
    {.id = OPTION_TIMELINE,
     .name = "timeline",
     .help = "time order, equal neighbours merged: flame charts"},
    {.id = OPTION_REVERSE, .name = "reverse", .help = "leaf first"},
    {.name = NULL},
};

static const char *const usage[] = {"[OPTION]... [SPOOL]...", NULL};

static const char *const examples[] = {
    "spool2folded cap.spool | flamegraph.pl > cap.svg",
    "spool2folded --root=thread --kernel=drop cap.spool.gz",
    NULL,
};

static void handle(const struct cli_arg *arg, struct tool_options *options, void *own)
{
    struct folded_options *o = own;

    (void)options;
    switch (arg->id) {
    case OPTION_ROOT:
        o->root = (enum folded_root)arg->word;
        break;
    case OPTION_WEIGHT:
        o->time = arg->word == 1;
        break;
    case OPTION_ANNOTATE:
        o->annotate = true;
        break;
    case OPTION_WITH_MODULES:
        o->with_modules = true;
        break;
    case OPTION_WITH_LINES:
        o->with_lines = true;
        break;
    case OPTION_WITH_ADDRESSES:
        o->with_addresses = true;
        break;
    case OPTION_TIMELINE:
        o->timeline = true;
        break;
    case OPTION_REVERSE:
        o->reverse = true;
        break;
    default:
        break;
    }
}

static void check(const struct tool_options *options, void *own)
{
    const struct folded_options *o = own;

    if (o->with_lines && options->symbols.no_symbols)
        cli_usage("--with-lines and --no-symbols contradict each other");
}

static const struct cli_tool tool = {
    .name = "spool2folded",
    .purpose = "convert spools to collapsed stacks for flame graphs",
    .usage = usage,
    .groups = CLI_COMMON | CLI_DAMAGE | CLI_SELECT | CLI_SHAPE | CLI_SYMBOLS,
    .own_title = "Output",
    .own = own_options,
    .handle = handle,
    .check = check,
    .examples = examples,
};

static int convert(struct tool_options *options, void *own, struct tool_output *out)
{
    const struct folded_options *o = own;

    options->symbols.no_lines = !o->with_lines;
    return folded_convert(options, own, out);
}

int main(int argc, char **argv)
{
    struct folded_options own = {.root = FOLDED_ROOT_PROCESS};

    return converter_main(&tool, argc, argv, &own, false, convert);
}
