/* SPDX-License-Identifier: MIT */
/* The command line of spool2pprof. */
#include <stdlib.h>
#include <string.h>

#include "converter.h"
#include "pprof.h"

enum {
    OPTION_GZIP_LEVEL = 1,
    OPTION_LABELS,
    OPTION_TIMESTAMPS,
    OPTION_UNSYMBOLIZED,
    OPTION_COMMENT,
    OPTION_INLINE_LOCATIONS
};

static const struct cli_option own_options[] = {
    {.id = OPTION_LABELS,
     .name = "labels",
     .value = "LIST",
     .kind = CLI_KIND_WORD_LIST,
     .words = "pid|tid|process|thread",
     .help = "labels of samples"},
    {.id = OPTION_TIMESTAMPS,
     .name = "timestamps",
     .help = "one sample an event, labelled with its time"},
    {.id = OPTION_UNSYMBOLIZED,
     .name = "unsymbolized",
     .help = "addresses only, for back ends that symbolize"},
    {.id = OPTION_INLINE_LOCATIONS,
     .name = "inline-locations",
     .help = "each inlined function a location of its own"},
    {.id = OPTION_COMMENT, .name = "comment", .value = "TEXT", .help = "a comment in the profile"},
    {.id = OPTION_GZIP_LEVEL,
     .name = "gzip-level",
     .value = "N",
     .help = "1 to 9, or 0 for no gzip (default 6)"},
    {.name = NULL},
};

static const char *const usage[] = {"[OPTION]... [SPOOL]...", NULL};

static const char *const examples[] = {
    "spool2pprof cap.spool -o cap.pb.gz && go tool pprof -http : cap.pb.gz",
    "spool2pprof a.spool b.spool > both.pb.gz",
    "spool2pprof --labels= --kernel=drop cap.spool > user.pb.gz",
    NULL,
};

/* The bit of a label's name, 0 when there is no such label. */
static unsigned label_bit(const char *name, size_t size)
{
    static const struct {
        const char *name;
        unsigned bit;
    } labels[] = {{"pid", LABEL_PID},
                  {"tid", LABEL_TID},
                  {"process", LABEL_PROCESS},
                  {"thread", LABEL_THREAD}};

    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        if (strlen(labels[i].name) == size && memcmp(labels[i].name, name, size) == 0)
            return labels[i].bit;
    return 0;
}

static unsigned labels_value(const struct cli_arg *arg)
{
    unsigned labels = 0;

    if (arg->value[0] == '\0')
        return 0;
    for (const char *at = arg->value;; at++) {
        size_t size = strcspn(at, ",");
        unsigned bit = label_bit(at, size);

        if (bit == 0)
            cli_usage("%s: '%.*s' is not one of pid, tid, process, thread", arg->shown, (int)size,
                      at);
        labels |= bit;
        at += size;
        if (*at == '\0')
            return labels;
    }
}

static void handle(const struct cli_arg *arg, struct tool_options *options, void *own)
{
    struct pprof_options *o = own;

    switch (arg->id) {
    case OPTION_GZIP_LEVEL:
        o->gzip_level = (int)cli_number_value(arg, 0, 9);
        break;
    case OPTION_LABELS:
        o->labels = labels_value(arg);
        break;
    case OPTION_TIMESTAMPS:
        o->timestamps = true;
        break;
    case OPTION_UNSYMBOLIZED:
        o->unsymbolized = true;
        options->symbols.no_symbols = true;
        break;
    case OPTION_COMMENT:
        if (arg->value[0] == '\0')
            cli_usage("%s: the text is empty", arg->shown);
        cli_text_value(arg, &o->comments);
        break;
    case OPTION_INLINE_LOCATIONS:
        o->inline_locations = true;
        break;
    default:
        break;
    }
}

static void check(const struct tool_options *options, void *own)
{
    const struct pprof_options *o = own;

    if (o->unsymbolized && cli_given(CLI_SYMBOLS))
        cli_usage("--unsymbolized and %s contradict each other", cli_given(CLI_SYMBOLS));
    if (o->unsymbolized && cli_was_given("demangle"))
        cli_usage("--unsymbolized and --demangle contradict each other");
    if (o->unsymbolized && cli_shown("inlines"))
        cli_usage("--unsymbolized and %s contradict each other", cli_shown("inlines"));
    if (o->inline_locations && options->shape.no_inlines)
        cli_usage("--inline-locations and --no-inlines contradict each other");
    if (o->inline_locations && options->symbols.no_symbols)
        cli_usage("--inline-locations and %s contradict each other",
                  o->unsymbolized ? "--unsymbolized" : "--no-symbols");
}

static const struct cli_tool tool = {
    .name = "spool2pprof",
    .purpose = "convert spools to profiles for pprof and whatever reads its format",
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
    return pprof_convert(options, own, out);
}

int main(int argc, char **argv)
{
    struct pprof_options own = {.gzip_level = 6, .labels = LABEL_ALL};
    int status = converter_main(&tool, argc, argv, &own, true, convert);

    free(own.comments.items);
    return status;
}
