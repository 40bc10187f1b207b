/* SPDX-License-Identifier: MIT */
/*
 * The options that tools share: their tables, what each does to struct tool_options, and which
 * contradict each other. Where one may be given more than once, lists grow and the last of all
 * others counts, except --output: two of them cannot both be written.
 */
#include "cli.h"
#include "cli_shared.h"

#include <stdlib.h>
#include <string.h>

enum {
    ID_OUTPUT = 1,
    ID_QUIET,
    ID_VERBOSE,
    ID_PROGRESS,
    ID_STRICT,
    ID_SALVAGE,
    ID_PID,
    ID_TID,
    ID_COMM,
    ID_THREAD,
    ID_FROM,
    ID_TO,
    ID_KERNEL,
    ID_RUNTIME,
    ID_DEMANGLE,
    ID_FRAME_FILTER,
    ID_ROOT_AT,
    ID_SKIP_BELOW,
    ID_MAX_DEPTH,
    ID_FOLD_RECURSION,
    ID_UNRESOLVED,
    ID_INLINES,
    ID_TRIM_PATH,
    ID_NO_SYMBOLS,
    ID_SYSROOT,
    ID_DEBUG_DIR,
    ID_SYMBOLS,
    ID_PERF_MAP_DIR,
    ID_PERF_MAPS,
    ID_KALLSYMS,
    ID_VMLINUX,
    ID_NO_KERNEL_SYMBOLS,
    ID_DEBUGINFOD
};

#define END          \
    {                \
        .name = NULL \
    }

static const struct cli_option damage_options[] = {
    {.id = ID_STRICT, .name = "strict", .help = "a cut end is an error"},
    {.id = ID_SALVAGE, .name = "salvage", .joined = true, .help = "read up to the damage"},
    END};

static const struct cli_option common_options[] = {
    {.id = ID_OUTPUT,
     .short_name = 'o',
     .name = "output",
     .value = "FILE",
     .kind = CLI_KIND_FILE,
     .help = "write FILE once complete; - is standard output"},
    {.id = ID_QUIET, .short_name = 'q', .name = "quiet", .help = "only errors"},
    {.id = ID_VERBOSE,
     .short_name = 'v',
     .name = "verbose",
     .joined = true,
     .help = "a report after the work"},
    {.id = ID_PROGRESS,
     .name = "progress",
     .value = "WHEN",
     .kind = CLI_KIND_WORD,
     .words = "auto|always|never",
     .help = "progress on standard error"},
    END};

static const struct cli_option select_options[] = {
    {.id = ID_PID, .name = "pid", .value = "LIST", .help = "samples by process id"},
    {.id = ID_TID, .name = "tid", .value = "LIST", .joined = true, .help = "samples by thread id"},
    {.id = ID_COMM, .name = "comm", .value = "GLOB", .help = "samples by process name"},
    {.id = ID_THREAD,
     .name = "thread",
     .value = "GLOB",
     .joined = true,
     .help = "samples by thread name"},
    {.id = ID_FROM, .name = "from", .value = "T", .help = "samples from T (2.5s, 250ms) on"},
    {.id = ID_TO, .name = "to", .value = "T", .joined = true, .help = "samples before T"},
    END};

static const struct cli_option shape_options[] = {
    {.id = ID_KERNEL,
     .name = "kernel",
     .value = "WHAT",
     .kind = CLI_KIND_WORD,
     .words = "keep|drop|only",
     .help = "kernel frames"},
    {.id = ID_RUNTIME,
     .name = "runtime",
     .value = "WHAT",
     .kind = CLI_KIND_WORD,
     .words = "hide|show",
     .help = "frames of interpreter machinery"},
    {.id = ID_DEMANGLE,
     .name = "demangle",
     .value = "HOW",
     .kind = CLI_KIND_WORD,
     .words = "full|short|none",
     .help = "demangled names"},
    {.id = ID_FRAME_FILTER,
     .name = "frame-filter",
     .value = "REGEX",
     .help = "samples that contain a frame whose name matches"},
    {.id = ID_ROOT_AT,
     .name = "root-at",
     .value = "REGEX",
     .help = "cut stacks so that the match becomes the root"},
    {.id = ID_SKIP_BELOW,
     .name = "skip-below",
     .value = "REGEX",
     .help = "drop the frames below a match"},
    {.id = ID_MAX_DEPTH, .name = "max-depth", .value = "N", .help = "keep the N innermost frames"},
    {.id = ID_FOLD_RECURSION,
     .name = "fold-recursion",
     .help = "adjacent equal frames of a stack become one"},
    {.id = ID_UNRESOLVED,
     .name = "unresolved",
     .value = "HOW",
     .kind = CLI_KIND_WORD,
     .words = "address|module",
     .help = "frames without a name"},
    {.id = ID_INLINES,
     .name = "inlines",
     .negatable = true,
     .help = "inlined functions as frames of their own (default)"},
    {.id = ID_TRIM_PATH,
     .name = "trim-path",
     .value = "OLD=NEW",
     .help = "paths begin with NEW in place of OLD"},
    END};

static const struct cli_option symbol_options[] = {
    {.id = ID_NO_SYMBOLS, .name = "no-symbols", .help = "addresses only"},
    {.id = ID_SYSROOT,
     .name = "sysroot",
     .value = "DIR",
     .kind = CLI_KIND_FOLDER,
     .help = "look for modules below DIR, a container's root"},
    {.id = ID_DEBUG_DIR,
     .name = "debug-dir",
     .value = "DIR",
     .kind = CLI_KIND_FOLDER,
     .help = "where debug files lie (default /usr/lib/debug)"},
    {.id = ID_SYMBOLS,
     .name = "symbols",
     .value = "DIR|FILE",
     .kind = CLI_KIND_FILE,
     .help = "symbols that spoolpack collected, looked up first"},
    {.id = ID_PERF_MAP_DIR,
     .name = "perf-map-dir",
     .value = "DIR",
     .kind = CLI_KIND_FOLDER,
     .help = "where perf-PID.map lie (default /tmp and others)"},
    {.id = ID_PERF_MAPS,
     .name = "perf-maps",
     .value = "PID,...",
     .words = "auto|all|none",
     .help = "perf maps of these processes"},
    {.id = ID_KALLSYMS,
     .name = "kallsyms",
     .value = "FILE",
     .kind = CLI_KIND_FILE,
     .help = "kernel symbols"},
    {.id = ID_VMLINUX,
     .name = "vmlinux",
     .value = "FILE",
     .kind = CLI_KIND_FILE,
     .joined = true,
     .help = "ELF file of the kernel"},
    {.id = ID_NO_KERNEL_SYMBOLS,
     .name = "no-kernel-symbols",
     .help = "kernel frames stay addresses"},
    {.id = ID_DEBUGINFOD,
     .name = "debuginfod",
     .help = "ask the servers in DEBUGINFOD_URLS for files"},
    END};

static const struct cli_option every_options[] = {
    {.id = CLI_ID_HELP, .name = "help", .help = "this text"},
    {.id = CLI_ID_VERSION,
     .name = "version",
     .joined = true,
     .help = "version and optional features"},
    {.id = CLI_ID_COMPLETION,
     .name = "completion",
     .value = "SHELL",
     .kind = CLI_KIND_WORD,
     .words = "bash|zsh",
     .help = "print completion for a shell"},
    END};

const struct cli_shared_group cli_shared_groups[] = {
    {CLI_SELECT, "Selecting samples", select_options},
    {CLI_SHAPE, "Shaping stacks", shape_options},
    {CLI_SYMBOLS, "Symbols", symbol_options},
    {CLI_DAMAGE, "Input, output and messages", damage_options},
    {CLI_COMMON, "Input, output and messages", common_options},
    {0, "Help", every_options},
};

/* ---- handling -------------------------------------------------------------------------------- */

static const char *path_value(const struct cli_arg *arg)
{
    if (arg->value[0] == '\0')
        cli_usage("%s: the name is empty", arg->shown);
    return arg->value;
}

static void regex_value(const struct cli_arg *arg, bool *has, regex_t *regex)
{
    if (*has)
        regfree(regex);
    *has = false;
    cli_regex_value(arg, regex);
    *has = true;
}

/* The first '=' ends OLD, as in the options of compilers that map prefixes. */
static void trim_value(const struct cli_arg *arg, struct trim_list *list)
{
    const char *equals = strchr(arg->value, '=');

    if (equals == NULL)
        cli_usage("%s: '%s' is not of the form OLD=NEW", arg->shown, arg->value);
    if (equals == arg->value)
        cli_usage("%s: OLD is empty in '%s'", arg->shown, arg->value);
    list->items = cli_realloc(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = (struct trim_rule){
        .old = arg->value, .old_size = (size_t)(equals - arg->value), .new = equals + 1};
}

static void perf_maps_value(const struct cli_arg *arg, struct symbol_options *o)
{
    static const struct {
        const char *word;
        enum sym_perf_maps mode;
    } words[] = {
        {"auto", SYM_PERF_MAPS_AUTO}, {"all", SYM_PERF_MAPS_ALL}, {"none", SYM_PERF_MAPS_NONE}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(arg->value, words[i].word) == 0) {
            o->perf_maps = words[i].mode;
            o->perf_map_pids.count = 0;
            return;
        }
    }
    if (strspn(arg->value, "0123456789") == 0)
        cli_usage("%s: '%s' is not one of auto, all, none or a list of process ids", arg->shown,
                  arg->value);
    cli_numbers_value(arg, 1, INT32_MAX, &o->perf_map_pids);
    o->perf_maps = SYM_PERF_MAPS_LIST;
}

static void handle_common(const struct cli_arg *arg, struct tool_options *o)
{
    switch (arg->id) {
    case ID_OUTPUT:
        if (o->output != NULL)
            cli_usage("%s was given more than once", arg->shown);
        o->output = path_value(arg);
        break;
    case ID_QUIET:
        o->quiet = true;
        break;
    case ID_VERBOSE:
        o->verbose = true;
        break;
    case ID_PROGRESS:
        o->progress = (enum progress_mode)arg->word;
        break;
    case ID_STRICT:
        o->damage = DAMAGE_STRICT;
        break;
    case ID_SALVAGE:
        o->damage = DAMAGE_SALVAGE;
        break;
    default:
        break;
    }
}

static void handle_select(const struct cli_arg *arg, struct select_options *o)
{
    switch (arg->id) {
    case ID_PID:
        cli_numbers_value(arg, INT32_MIN, INT32_MAX, &o->pids);
        o->has_pids = true;
        break;
    case ID_TID:
        cli_numbers_value(arg, 0, UINT64_MAX, &o->tids);
        o->has_tids = true;
        break;
    case ID_COMM:
        cli_text_value(arg, &o->comm_globs);
        break;
    case ID_THREAD:
        cli_text_value(arg, &o->thread_globs);
        break;
    case ID_FROM:
        o->from_ns = cli_time_value(arg);
        o->has_from = true;
        break;
    case ID_TO:
        o->to_ns = cli_time_value(arg);
        o->has_to = true;
        break;
    default:
        break;
    }
}

static void handle_shape(const struct cli_arg *arg, struct shape_options *o)
{
    switch (arg->id) {
    case ID_KERNEL:
        o->kernel = (enum kernel_mode)arg->word;
        break;
    case ID_RUNTIME:
        o->show_runtime = arg->word == 1;
        break;
    case ID_DEMANGLE:
        o->demangle = (enum sym_demangle)arg->word;
        break;
    case ID_FRAME_FILTER:
        regex_value(arg, &o->has_frame_filter, &o->frame_filter);
        break;
    case ID_ROOT_AT:
        regex_value(arg, &o->has_root_at, &o->root_at);
        break;
    case ID_SKIP_BELOW:
        regex_value(arg, &o->has_skip_below, &o->skip_below);
        break;
    case ID_MAX_DEPTH:
        o->max_depth = (uint32_t)cli_number_value(arg, 1, UINT32_MAX);
        o->has_max_depth = true;
        break;
    case ID_FOLD_RECURSION:
        o->fold_recursion = true;
        break;
    case ID_UNRESOLVED:
        o->unresolved_module = arg->word == 1;
        break;
    case ID_INLINES:
        o->no_inlines = arg->negated;
        break;
    case ID_TRIM_PATH:
        trim_value(arg, &o->trim_paths);
        break;
    default:
        break;
    }
}

static void handle_symbols(const struct cli_arg *arg, struct symbol_options *o)
{
    switch (arg->id) {
    case ID_NO_SYMBOLS:
        o->no_symbols = true;
        break;
    case ID_SYSROOT:
        o->sysroot = path_value(arg);
        break;
    case ID_DEBUG_DIR:
        path_value(arg);
        cli_text_value(arg, &o->debug_dirs);
        break;
    case ID_SYMBOLS:
        path_value(arg);
        cli_text_value(arg, &o->symbol_dirs);
        break;
    case ID_PERF_MAP_DIR:
        o->perf_map_dir = path_value(arg);
        break;
    case ID_PERF_MAPS:
        perf_maps_value(arg, o);
        break;
    case ID_KALLSYMS:
        o->kallsyms = path_value(arg);
        break;
    case ID_VMLINUX:
        o->vmlinux = path_value(arg);
        break;
    case ID_NO_KERNEL_SYMBOLS:
        o->no_kernel_symbols = true;
        break;
    case ID_DEBUGINFOD:
        o->debuginfod = true;
        break;
    default:
        break;
    }
}

void cli_shared_handle(const struct cli_arg *arg, struct tool_options *o)
{
    if (arg->id < ID_PID)
        handle_common(arg, o);
    else if (arg->id < ID_KERNEL)
        handle_select(arg, &o->select);
    else if (arg->id < ID_NO_SYMBOLS)
        handle_shape(arg, &o->shape);
    else
        handle_symbols(arg, &o->symbols);
}

/* An option that another one makes pointless would be ignored silently. */
static void refuse_both(const char *one, const char *other)
{
    if (cli_was_given(one) && cli_was_given(other))
        cli_usage("%s and %s contradict each other", cli_shown(one), cli_shown(other));
}

static bool has_servers(void)
{
    const char *urls = getenv("DEBUGINFOD_URLS");

    return urls != NULL && urls[strspn(urls, " \t\n")] != '\0';
}

void cli_shared_check(const struct tool_options *o)
{
    const struct select_options *s = &o->select;

    refuse_both("quiet", "verbose");
    refuse_both("strict", "salvage");
    refuse_both("kallsyms", "no-kernel-symbols");
    refuse_both("vmlinux", "no-kernel-symbols");
    if (o->quiet && o->progress == PROGRESS_ALWAYS)
        cli_usage("--quiet and --progress=always contradict each other");
    if (s->has_to && s->from_ns >= s->to_ns && s->has_from)
        cli_usage("--from and --to contradict each other: nothing lies from %llu ns to %llu ns",
                  (unsigned long long)s->from_ns, (unsigned long long)s->to_ns);
    if (s->has_to && s->to_ns == 0)
        cli_usage("--to: nothing lies before 0 ns");
    if (o->symbols.no_symbols) {
        for (const struct cli_option *option = symbol_options + 1; option->name != NULL; option++)
            refuse_both("no-symbols", option->name);
        refuse_both("no-symbols", "demangle");
        refuse_both("no-symbols", "inlines");
    }
    if (o->shape.kernel == KERNEL_DROP && (o->symbols.kallsyms || o->symbols.vmlinux))
        cli_usage("--kernel=drop and %s contradict each other",
                  o->symbols.kallsyms ? "--kallsyms" : "--vmlinux");
    if (o->symbols.perf_maps == SYM_PERF_MAPS_NONE && o->symbols.perf_map_dir != NULL)
        cli_usage("--perf-maps=none and --perf-map-dir contradict each other");
    if (o->symbols.debuginfod && !has_servers())
        cli_usage("--debuginfod: DEBUGINFOD_URLS names no server");
}

void cli_free(struct tool_options *o)
{
    free(o->inputs);
    free(o->select.pids.items);
    free(o->select.tids.items);
    free(o->select.comm_globs.items);
    free(o->select.thread_globs.items);
    free(o->shape.trim_paths.items);
    free(o->symbols.debug_dirs.items);
    free(o->symbols.symbol_dirs.items);
    free(o->symbols.perf_map_pids.items);
    if (o->shape.has_frame_filter)
        regfree(&o->shape.frame_filter);
    if (o->shape.has_root_at)
        regfree(&o->shape.root_at);
    if (o->shape.has_skip_below)
        regfree(&o->shape.skip_below);
    *o = (struct tool_options){0};
}
