/* SPDX-License-Identifier: MIT */
/* The command line of spoolpack. */
#include <string.h>

#include "archive_name.h"
#include "check.h"
#include "cli.h"
#include "list.h"
#include "output.h"
#include "pack_run.h"
#include "progress.h"
#include "prune.h"

enum {
    OPTION_LEVEL = 1,
    OPTION_FORCE,
    OPTION_CHECK,
    OPTION_LIST,
    OPTION_PRUNE,
    OPTION_JSON,
    OPTION_OLDER_THAN,
    OPTION_DRY_RUN
};

struct own_options {
    enum manifest_level level;
    bool force;
    int mode; /* OPTION_CHECK, LIST or PRUNE; 0: packing */
    bool json;
    bool dry_run;
    uint64_t older_than_ns;
};

static const struct cli_option own_options[] = {
    {.id = OPTION_LEVEL,
     .name = "level",
     .value = "WHAT",
     .kind = CLI_KIND_WORD,
     .words = "names|lines|full",
     .help = "what is packed (default lines)"},
    {.id = OPTION_FORCE, .name = "force", .help = "replace FILE.tar.gz if it exists"},
    {.name = "", .help = "Looking after stores, with stores in place of spools"},
    {.id = OPTION_CHECK,
     .name = "check",
     .help = "compare files with hashes, tell what is missing"},
    {.id = OPTION_LIST, .name = "list", .help = "what captures there are, and what was packed"},
    {.id = OPTION_JSON, .name = "json", .help = "with --list: as JSON lines"},
    {.id = OPTION_PRUNE,
     .name = "prune",
     .help = "merge pieces, remove what no manifest refers to"},
    {.id = OPTION_OLDER_THAN,
     .name = "older-than",
     .value = "T",
     .help = "with --prune: only files older than T (1 hour)"},
    {.id = OPTION_DRY_RUN,
     .name = "dry-run",
     .help = "with --prune: only tell what would be removed"},
    {.name = NULL},
};

static const char *const usage[] = {"[OPTION]... -o DIR [SPOOL]...",
                                    "[OPTION]... -o FILE.tar.gz [SPOOL]...",
                                    "--check|--list|--prune [OPTION]... STORE...", NULL};

static const char *const examples[] = {
    "spoolpack -o store cap.spool",
    "spoolpack --level=full -o cap.tar.gz cap.spool",
    "spoolpack --list store",
    NULL,
};

static void set_mode(struct own_options *o, const struct cli_arg *arg)
{
    static const char *const names[] = {"--check", "--list", "--prune"};

    if (o->mode != 0 && o->mode != arg->id)
        cli_usage("%s and %s contradict each other", names[o->mode - OPTION_CHECK], arg->shown);
    o->mode = arg->id;
}

static void handle(const struct cli_arg *arg, struct tool_options *options, void *own)
{
    struct own_options *o = own;

    (void)options;
    switch (arg->id) {
    case OPTION_LEVEL:
        o->level = (enum manifest_level)(MANIFEST_NAMES + arg->word);
        break;
    case OPTION_FORCE:
        o->force = true;
        break;
    case OPTION_CHECK:
    case OPTION_LIST:
    case OPTION_PRUNE:
        set_mode(o, arg);
        break;
    case OPTION_JSON:
        o->json = true;
        break;
    case OPTION_OLDER_THAN:
        o->older_than_ns = cli_time_value(arg);
        break;
    case OPTION_DRY_RUN:
        o->dry_run = true;
        break;
    default:
        break;
    }
}

/* What is about one mode would be ignored in another. */
static void need_mode(const struct own_options *o, const char *name, int mode, const char *shown)
{
    if (cli_was_given(name) && o->mode != mode)
        cli_usage("--%s goes with %s", name, shown);
}

static void check_packing(const struct tool_options *options, bool force)
{
    if (options->output == NULL)
        cli_usage("where to? -o DIR is a store, -o FILE.tar.gz one file");
    if (force && (!archive_name_is_tar(options->output) || strcmp(options->output, "-") == 0))
        cli_usage("--force goes with -o FILE.tar.gz");
}

static void check_mode(const struct tool_options *options, const struct own_options *o)
{
    const char *mode = o->mode == OPTION_CHECK  ? "--check"
                       : o->mode == OPTION_LIST ? "--list"
                                                : "--prune";
    const char *given = cli_given(CLI_SYMBOLS | CLI_DAMAGE);

    if (given == NULL)
        given = cli_shown("level");
    if (given == NULL)
        given = cli_shown("force");
    if (given == NULL && o->mode != OPTION_LIST)
        given = cli_shown("output");
    if (given != NULL)
        cli_usage("%s is about packing, %s about what was packed", given, mode);
    if (options->input_count == 0)
        cli_usage("%s: no store was given", mode);
    for (size_t i = 0; i < options->input_count; i++)
        if (strcmp(options->inputs[i], "-") == 0)
            cli_usage("%s: a store cannot be read from standard input", mode);
}

static void check(const struct tool_options *options, void *own)
{
    const struct own_options *o = own;

    need_mode(o, "json", OPTION_LIST, "--list");
    need_mode(o, "older-than", OPTION_PRUNE, "--prune");
    need_mode(o, "dry-run", OPTION_PRUNE, "--prune");
    if (o->dry_run && options->quiet)
        cli_usage("--dry-run and --quiet contradict each other");
    if (o->mode == 0)
        check_packing(options, o->force);
    else
        check_mode(options, o);
}

static const struct cli_tool tool = {
    .name = "spoolpack",
    .purpose = "collect the symbols of spools, to read these later and elsewhere",
    .usage = usage,
    .groups = CLI_COMMON | CLI_DAMAGE | CLI_SYMBOLS | CLI_OWN,
    .without = "no-symbols",
    .own_title = "Packing",
    .own = own_options,
    .handle = handle,
    .check = check,
    .examples = examples,
    .note = "-o DIR adds to a store that captures share; it is made when there is none.\n"
            "-o FILE.tar.gz, .tgz or .tar is one file, - a tar.gz on standard output.\n"
            "Exit status: 0 done, 1 failed, 2 usage.",
    .files = "*.spool|*.spool.gz|*.tar|*.tar.gz|*.tgz",
};

/* All stores get their turn, whatever is wrong with one. */
static int list(const struct tool_options *options, bool json)
{
    struct tool_output out;
    int rc = output_open(&out, options->output, false);

    if (rc < 0)
        return -1;
    for (size_t i = 0; i < options->input_count; i++)
        if (pack_list(options->inputs[i], json, &out) < 0)
            rc = -1;
    return output_commit(&out) < 0 ? -1 : rc;
}

static int look_after(const struct tool_options *options, const struct own_options *o)
{
    struct progress progress;
    int rc = 0;

    progress_begin(&progress, options);
    for (size_t i = 0; i < options->input_count; i++) {
        const char *store = options->inputs[i];

        if ((o->mode == OPTION_CHECK
                 ? pack_check(store, options->quiet)
                 : pack_prune(store, o->older_than_ns, o->dry_run, options->quiet)) < 0)
            rc = -1;
    }
    progress_end(&progress);
    return rc;
}

int main(int argc, char **argv)
{
    struct own_options own = {.level = MANIFEST_LINES,
                              .older_than_ns = UINT64_C(3600) * 1000000000};
    struct tool_options options;
    int rc;

    cli_parse(&tool, argc, argv, &options, &own);
    if (own.mode == 0)
        rc = pack_run(&options, own.level, own.force);
    else if (own.mode == OPTION_LIST)
        rc = list(&options, own.json);
    else
        rc = look_after(&options, &own);
    cli_free(&options);
    return rc == 0 ? EXIT_OK : EXIT_FAILED;
}
