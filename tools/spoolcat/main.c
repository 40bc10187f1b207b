/* SPDX-License-Identifier: MIT */
/* spoolcat's command line: which view, over which spools. */
#include "cli.h"
#include "records.h"
#include "samples.h"
#include "stack_table.h"
#include "summary.h"
#include "symbols.h"
#include "tables.h"
#include "views.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ID_VIEW = 1, ID_JSON, ID_COLOR, ID_FOLLOW, ID_IDLE };

enum color_mode { COLOR_AUTO = 0, COLOR_ALWAYS, COLOR_NEVER };

struct view {
    const char *name; /* of its option */
    view_fn *print;
    unsigned groups; /* of shared options that mean something to it */
    bool streams;    /* prints while it reads */
};

static const struct view views[] = {
    {"records", records_print, CLI_COMMON | CLI_DAMAGE, true},
    {"samples", samples_print, CLI_COMMON | CLI_DAMAGE | CLI_SELECT | CLI_SHAPE | CLI_SYMBOLS,
     true},
    {"summary", summary_print, CLI_COMMON | CLI_DAMAGE | CLI_SELECT | CLI_SHAPE, false},
    {"modules", modules_print, CLI_COMMON | CLI_DAMAGE | CLI_SELECT, false},
    {"threads", threads_print, CLI_COMMON | CLI_DAMAGE | CLI_SELECT, false},
    {"stacks", stacks_print, CLI_COMMON | CLI_DAMAGE | CLI_SELECT | CLI_SHAPE | CLI_SYMBOLS, false},
};

struct cat_options {
    const struct view *view; /* NULL: the first */
    bool json;
    enum color_mode color;
    bool shaped;
    bool follow;
    bool has_idle;
    uint64_t idle_ns;
};

static void handle(const struct cli_arg *arg, struct tool_options *options, void *own)
{
    struct cat_options *cat = own;

    (void)options;
    if (arg->id == ID_JSON) {
        cat->json = true;
    } else if (arg->id == ID_COLOR) {
        cat->color = (enum color_mode)arg->word;
    } else if (arg->id == ID_FOLLOW) {
        cat->follow = true;
    } else if (arg->id == ID_IDLE) {
        cat->idle_ns = cli_time_value(arg);
        cat->has_idle = true;
    } else {
        for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
            if (strcmp(arg->shown + 2, views[i].name) != 0)
                continue;
            if (cat->view != NULL && cat->view != &views[i])
                cli_usage("--%s and %s contradict each other", cat->view->name, arg->shown);
            cat->view = &views[i];
        }
    }
}

static void check(const struct tool_options *options, void *own)
{
    struct cat_options *cat = own;
    unsigned groups;
    const char *without_meaning;

    if (cat->view == NULL)
        cat->view = &views[0];
    groups = cat->view->groups | CLI_OWN;
    /* Recorded stacks need no names, shaped ones do. */
    cat->shaped = (groups & CLI_SHAPE) && cli_given(CLI_SHAPE) != NULL;
    if (cat->shaped)
        groups |= CLI_SYMBOLS;
    without_meaning = cli_given(~groups);
    if (without_meaning != NULL)
        cli_usage("%s does not apply to --%s%s", without_meaning, cat->view->name,
                  groups & CLI_SHAPE ? " without an option that shapes stacks" : "");
    if (cat->has_idle && !cat->follow)
        cli_usage("--idle needs --follow");
    if (cat->follow && options->input_count > 1)
        cli_usage("--follow takes one SPOOL, not %zu", options->input_count);
    if (cat->json && cat->color == COLOR_ALWAYS)
        cli_usage("--json and --color=always contradict each other");
}

static const struct cli_option own_options[] = {
    {.id = ID_VIEW, .name = "records", .help = "every record in file order, a line each (default)"},
    {.id = ID_VIEW, .name = "samples", .help = "every sample with its stack, leaf first"},
    {.id = ID_VIEW, .name = "summary", .help = "times, sizes, counts, shares, processes, threads"},
    {.id = ID_VIEW, .name = "modules", .help = "table of modules"},
    {.id = ID_VIEW, .name = "threads", .joined = true, .help = "of threads"},
    {.id = ID_VIEW, .name = "stacks", .joined = true, .help = "of stacks"},
    {.id = ID_JSON, .name = "json", .help = "JSON lines instead of text"},
    {.id = ID_FOLLOW, .name = "follow", .help = "go on while the SPOOL grows"},
    {.id = ID_IDLE,
     .name = "idle",
     .value = "T",
     .help = "with --follow: end when it has not grown for T"},
    {.id = ID_COLOR,
     .name = "color",
     .value = "WHEN",
     .kind = CLI_KIND_WORD,
     .words = "auto|always|never",
     .help = "colored text"},
    {.name = NULL},
};

static const char *const usage[] = {"[OPTION]... [SPOOL]...", NULL};

static const struct cli_habit habits[] = {
    {'f', "--follow goes on reading what grows"}, /* of tail */
    {0, NULL},
};

static const char *const examples[] = {
    "spoolcat cap.spool | less",
    "spoolcat --samples --follow cap.spool",
    "spoolcat --summary archive/*.spool.gz",
    NULL,
};

static const struct cli_tool tool = {
    .name = "spoolcat",
    .purpose = "show what is in spools, the sample files of CPU stack recorders",
    .usage = usage,
    .groups = CLI_COMMON | CLI_DAMAGE | CLI_SELECT | CLI_SHAPE | CLI_SYMBOLS,
    .own_title = "Views",
    .own = own_options,
    .handle = handle,
    .check = check,
    .habits = habits,
    .examples = examples,
};

static bool want_color(const struct cat_options *cat, const struct tool_output *out)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

    if (cat->json || cat->color == COLOR_NEVER)
        return false;
    if (cat->color == COLOR_ALWAYS)
        return true;
    return isatty(out->fd) == 1 && (no_color == NULL || no_color[0] == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

int main(int argc, char **argv)
{
    struct tool_options options;
    struct cat_options cat = {0};
    struct view_options view = {0};
    struct tool_output out;
    struct progress progress;
    bool failed = false;

    cli_parse(&tool, argc, argv, &options, &cat);
    if (symbols_check_folders(&options.symbols) != 0 ||
        output_open(&out, options.output, false) != 0) {
        cli_free(&options);
        return EXIT_FAILED;
    }
    options.symbols.no_lines = cat.view->print == summary_print; /* counts only */
    if ((cat.view->groups & CLI_SYMBOLS) != 0 || cat.shaped) {
        view.symbols = symbols_new(&options.symbols, &options.shape);
        if (view.symbols == NULL) {
            output_abort(&out);
            cli_free(&options);
            return EXIT_FAILED;
        }
    }
    view.json = cat.json;
    view.shaped = cat.shaped;
    view.color = want_color(&cat, &out);
    /* What goes to a terminal while it is read would be mixed with the progress line. */
    if (options.progress == PROGRESS_AUTO && isatty(out.fd) == 1)
        options.progress = PROGRESS_NEVER;
    progress_begin(&progress, &options);
    /* A spool that cannot be read does not keep the others from being shown, but a file that
     * would lack one of them is not written at all. */
    for (size_t i = 0; i < options.input_count && !output_failed(&out); i++) {
        struct follow follow = {.grows = cat.follow,
                                .has_idle = cat.has_idle,
                                .idle_ns = cat.idle_ns,
                                .out = cat.view->streams ? &out : NULL};
        struct tool_input in;

        if (failed && output_is_file(&out))
            break;
        if ((cat.follow || cat.view->streams ? inputs_open_growing(options.inputs[i], &follow, &in)
                                             : inputs_open(options.inputs[i], &in)) != 0) {
            failed = true;
            continue;
        }
        progress_input(&progress, &in);
        if (cat.view->print(&in, &options, &view, &progress, &out) == INPUT_FAILED)
            failed = true;
        progress_input_end(&progress);
        inputs_close(&in);
    }
    progress_end(&progress);
    if (failed && !output_failed(&out) && output_is_file(&out))
        output_abort(&out);
    else if (output_commit(&out) != 0)
        failed = true;
    symbols_free(view.symbols);
    cli_free(&options);
    return failed ? EXIT_FAILED : EXIT_OK;
}
