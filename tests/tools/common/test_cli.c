/* SPDX-License-Identifier: MIT */
/* The option parser, its usage errors, --help, and the forms of values. What exits runs in a
 * child process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli.h"
#include "spool/sym.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a tool with everything ------------------------------------------------------------------ */

struct own {
    int overview; /* -1: not given */
    int weight;
    uint64_t size;
};

enum { ID_OVERVIEW = 1, ID_WEIGHT, ID_SIZE, ID_LETTER };

static void handle(const struct cli_arg *arg, struct tool_options *options, void *data)
{
    struct own *own = data;

    (void)options;
    if (arg->id == ID_OVERVIEW)
        own->overview = !arg->negated;
    else if (arg->id == ID_WEIGHT)
        own->weight = arg->word;
    else if (arg->id == ID_SIZE)
        own->size = cli_size_value(arg);
}

static const struct cli_option own_options[] = {
    {.id = ID_OVERVIEW, .name = "overview", .negatable = true, .help = "an overview"},
    {.id = ID_WEIGHT,
     .name = "weight",
     .value = "WHAT",
     .kind = CLI_KIND_WORD,
     .words = "samples|time",
     .help = "what counts"},
    {.id = ID_SIZE, .short_name = 's', .name = "size", .value = "N", .help = "a size"},
    {.id = ID_LETTER, .short_name = 'x', .name = "letter", .help = "a letter"},
    {.name = NULL},
};
static const char *const usage[] = {"[OPTION]... [SPOOL]...", NULL};
static const char *const examples[] = {"testtool a.spool", NULL};
static const struct cli_tool tool = {
    .name = "testtool",
    .purpose = "a tool that is only there to be tested",
    .usage = usage,
    .groups = CLI_COMMON | CLI_DAMAGE | CLI_SELECT | CLI_SHAPE | CLI_SYMBOLS,
    .own = own_options,
    .handle = handle,
    .examples = examples,
};

#define ARGS_MAX 16

/* argv is writable text in C; the values that options borrow stay here until the next parse. */
static char pool[16384];
static char *argv[ARGS_MAX + 2];

static int make_argv(const char *const *args)
{
    size_t used = 0;
    int argc = 0;

    argv[argc++] = strcpy(pool, "testtool");
    used = strlen(pool) + 1;
    for (; *args != NULL; args++) {
        size_t size = strlen(*args) + 1;

        assert_true(argc <= ARGS_MAX && used + size <= sizeof pool);
        argv[argc++] = memcpy(pool + used, *args, size);
        used += size;
    }
    argv[argc] = NULL;
    return argc;
}

/* Parses in this process: for command lines that are right. Standard input is no terminal here. */
static struct own parse(struct tool_options *o, const char *const *args)
{
    struct own own = {.overview = -1, .weight = -1};

    assert_int_equal(cli_parse(&tool, make_argv(args), argv, o, &own), 0);
    return own;
}
#define PARSE(o, ...) parse(o, (const char *const[]){__VA_ARGS__, NULL})

/* The own options in the child. */
static const struct cli_option *own_table = own_options;

struct outcome {
    int status; /* -1: cli_parse returned */
    char out[16384];
    char err[4096];
};

static void read_back(FILE *file, char *text, size_t size)
{
    size_t got;

    rewind(file);
    got = fread(text, 1, size - 1, file);
    text[got] = '\0';
    fclose(file);
}

/* Parses in a child, for what exits. */
static void run(struct outcome *outcome, const char *const *args)
{
    int argc = make_argv(args), status;
    FILE *out = tmpfile(), *err = tmpfile();
    struct cli_tool with_table = tool;
    pid_t child;

    assert_non_null(out);
    assert_non_null(err);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct tool_options o;
        struct own own;

        dup2(fileno(out), 1);
        dup2(fileno(err), 2);
        with_table.own = own_table;
        cli_parse(&with_table, argc, argv, &o, &own);
        _exit(111);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    outcome->status = WEXITSTATUS(status) == 111 ? -1 : WEXITSTATUS(status);
    read_back(out, outcome->out, sizeof outcome->out);
    read_back(err, outcome->err, sizeof outcome->err);
}

/* Expects a usage error with exactly this line on standard error. */
static void usage_error(const char *text, const char *const *args)
{
    struct outcome outcome;
    char line[1024];

    run(&outcome, args);
    snprintf(line, sizeof line, "testtool: %s (see --help)\n", text);
    assert_string_equal(outcome.err, line);
    assert_string_equal(outcome.out, "");
    assert_int_equal(outcome.status, EXIT_USAGE);
}
#define USAGE(text, ...) usage_error(text, (const char *const[]){__VA_ARGS__, NULL})

/* ---- parsing --------------------------------------------------------------------------------- */

static void no_operand_is_standard_input(void **state)
{
    struct tool_options o;

    (void)state;
    PARSE(&o, "-q");
    assert_int_equal(o.input_count, 1);
    assert_string_equal(o.inputs[0], "-");
    assert_true(o.quiet);
    cli_free(&o);
}

static void options_and_operands_may_alternate(void **state)
{
    struct tool_options o;

    (void)state;
    PARSE(&o, "a.spool", "-v", "b.spool", "--output", "x", "-", "--", "-q", "--", "--help");
    assert_int_equal(o.input_count, 6);
    assert_string_equal(o.inputs[0], "a.spool");
    assert_string_equal(o.inputs[1], "b.spool");
    assert_string_equal(o.inputs[2], "-");
    assert_string_equal(o.inputs[3], "-q");
    assert_string_equal(o.inputs[4], "--");
    assert_string_equal(o.inputs[5], "--help");
    assert_string_equal(o.output, "x");
    assert_true(o.verbose);
    assert_false(o.quiet);
    cli_free(&o);
}

static void short_options_cluster_and_take_values(void **state)
{
    struct tool_options o;
    struct own own = PARSE(&o, "-xvs1K");

    (void)state;
    assert_true(o.verbose);
    assert_int_equal(own.size, 1024);
    cli_free(&o);
    own = PARSE(&o, "-vo", "file", "-s", "7");
    assert_string_equal(o.output, "file");
    assert_int_equal(own.size, 7);
    cli_free(&o);
    PARSE(&o, "-o-");
    assert_string_equal(o.output, "-");
    cli_free(&o);
    PARSE(&o, "-o", "-q"); /* a value may look like an option */
    assert_string_equal(o.output, "-q");
    assert_false(o.quiet);
    cli_free(&o);
}

static void own_options_reach_the_handler(void **state)
{
    struct tool_options o;
    struct own own = PARSE(&o, "--no-overview", "--weight=time");

    (void)state;
    assert_int_equal(own.overview, 0);
    assert_int_equal(own.weight, 1);
    assert_true(cli_was_given("overview"));
    assert_string_equal(cli_given(CLI_OWN), "--no-overview");
    assert_null(cli_given(CLI_SELECT | CLI_SHAPE));
    cli_free(&o);
    own = PARSE(&o, "--no-overview", "--overview", "--weight", "time", "--weight=samples");
    assert_int_equal(own.overview, 1);
    assert_int_equal(own.weight, 0);
    assert_false(cli_was_given("pid"));
    cli_free(&o);
}

static void selection_lists_accumulate_sorted_and_unique(void **state)
{
    struct tool_options o;
    const struct select_options *s = &o.select;

    (void)state;
    PARSE(&o, "--pid", "30,10", "--pid=20,10", "--tid=18446744073709551615,0", "--comm", "a*",
          "--comm=b", "--pid=-2147483648");
    assert_true(s->has_pids && s->has_tids);
    assert_int_equal(s->pids.count, 4);
    assert_int_equal(s->pids.items[0], 10);
    assert_int_equal(s->pids.items[1], 20);
    assert_int_equal(s->pids.items[2], 30);
    assert_true(s->pids.items[3] == (uint64_t)INT64_C(-2147483648));
    assert_int_equal(s->tids.count, 2);
    assert_true(s->tids.items[1] == UINT64_MAX);
    assert_int_equal(s->comm_globs.count, 2);
    assert_string_equal(s->comm_globs.items[0], "a*");
    assert_string_equal(s->comm_globs.items[1], "b");
    assert_int_equal(s->thread_globs.count, 0);
    cli_free(&o);
}

static void shape_and_symbol_options_are_stored(void **state)
{
    struct tool_options o;

    (void)state;
    PARSE(&o, "--kernel=only", "--runtime=show", "--demangle=short", "--frame-filter=^f(oo|u)$",
          "--max-depth=1", "--fold-recursion", "--unresolved=module", "--sysroot=/r",
          "--perf-map-dir=/m", "--perf-maps=7,3", "--perf-maps=5", "--kallsyms=k", "--vmlinux=v",
          "--no-inlines", "--strict", "--progress=never");
    assert_int_equal(o.symbols.debug_dirs.count, 0);
    assert_int_equal(o.symbols.symbol_dirs.count, 0);
    assert_int_equal(o.shape.kernel, KERNEL_ONLY);

    assert_true(o.shape.show_runtime);
    assert_int_equal(o.shape.demangle, SYM_DEMANGLE_SHORT);
    assert_true(o.shape.has_frame_filter);
    assert_int_equal(regexec(&o.shape.frame_filter, "fu", 0, NULL, 0), 0);
    assert_int_equal(regexec(&o.shape.frame_filter, "fa", 0, NULL, 0), REG_NOMATCH);
    assert_true(o.shape.has_max_depth);
    assert_int_equal(o.shape.max_depth, 1);
    assert_true(o.shape.fold_recursion);
    assert_true(o.shape.unresolved_module);
    assert_string_equal(o.symbols.sysroot, "/r");
    assert_string_equal(o.symbols.perf_map_dir, "/m");
    assert_int_equal(o.symbols.perf_maps, SYM_PERF_MAPS_LIST);
    assert_int_equal(o.symbols.perf_map_pids.count, 3);
    assert_int_equal(o.symbols.perf_map_pids.items[2], 7);
    assert_string_equal(o.symbols.kallsyms, "k");
    assert_string_equal(o.symbols.vmlinux, "v");
    assert_true(o.shape.no_inlines);
    assert_string_equal(cli_shown("inlines"), "--no-inlines");
    assert_null(cli_shown("vmlinu"));
    assert_false(o.symbols.debuginfod);
    assert_int_equal(o.damage, DAMAGE_STRICT);
    assert_int_equal(o.progress, PROGRESS_NEVER);
    cli_free(&o);
}

static void prefixes_of_paths_are_two_texts_in_one(void **state)
{
    struct tool_options o;
    const struct trim_list *list = &o.shape.trim_paths;

    (void)state;
    PARSE(&o, "--trim-path", "/a=/b=c", "--inlines", "--trim-path=/d=");
    assert_false(o.shape.no_inlines);
    assert_int_equal(list->count, 2);
    assert_int_equal(list->items[0].old_size, 2);
    assert_memory_equal(list->items[0].old, "/a", 2);
    assert_string_equal(list->items[0].new, "/b=c");
    assert_memory_equal(list->items[1].old, "/d", 2);
    assert_string_equal(list->items[1].new, "");
    cli_free(&o);
}

static void folders_of_symbols_accumulate_in_order(void **state)
{
    struct tool_options o;

    (void)state;
    PARSE(&o, "--debug-dir=/d", "--symbols=/s", "--debug-dir", "/e:f", "--symbols", "/a");
    assert_int_equal(o.symbols.debug_dirs.count, 2);
    assert_string_equal(o.symbols.debug_dirs.items[0], "/d");
    assert_string_equal(o.symbols.debug_dirs.items[1], "/e:f"); /* one folder, whatever its name */
    assert_int_equal(o.symbols.symbol_dirs.count, 2);
    assert_string_equal(o.symbols.symbol_dirs.items[0], "/s");
    assert_string_equal(o.symbols.symbol_dirs.items[1], "/a");
    cli_free(&o);
}

static void the_last_of_repeated_single_values_counts(void **state)
{
    struct tool_options o;

    (void)state;
    PARSE(&o, "--kernel=only", "--kernel=keep", "--root-at=a", "--root-at=b", "--perf-maps=3",
          "--perf-maps=all", "--max-depth=3", "--max-depth=4294967295");
    assert_int_equal(o.shape.kernel, KERNEL_KEEP);
    assert_int_equal(regexec(&o.shape.root_at, "a", 0, NULL, 0), REG_NOMATCH);
    assert_int_equal(o.symbols.perf_maps, SYM_PERF_MAPS_ALL);
    assert_int_equal(o.symbols.perf_map_pids.count, 0);
    assert_int_equal(o.shape.max_depth, UINT32_MAX);
    cli_free(&o);
}

/* ---- usage errors ---------------------------------------------------------------------------- */

static void unknown_and_abbreviated_options_are_refused(void **state)
{
    (void)state;
    USAGE("unknown option '--foo'", "--foo");
    USAGE("unknown option '--foo'", "--foo=1");
    USAGE("unknown option '--qui', did you mean --quiet?", "--qui");
    USAGE("unknown option '--quiett', did you mean --quiet?", "--quiett");
    USAGE("unknown option '--quiett', did you mean --quiet?", "--quiett=1");
    USAGE("unknown option '--hlep', did you mean --help?", "--hlep");
    USAGE("unknown option '--no-inline', did you mean --no-inlines?", "--no-inline");
    USAGE("unknown option '--no-quiet'", "--no-quiet");
    USAGE("unknown option '--no'", "--no");
    USAGE("unknown option '--='", "--=");
    USAGE("unknown option '-z'", "-qz");
    USAGE("unknown option '-h', did you mean --help?", "-qh");
    USAGE("unknown option '-t'", "-t"); /* --tid, --to and others */
    /* Another tool's. */
    USAGE("unknown option '--with-lines'", "--with-lines");
    USAGE("unknown option '--no-trim-path'", "--no-trim-path");
}

static void missing_and_unwanted_values_are_refused(void **state)
{
    (void)state;
    USAGE("--trim-path: 'a' is not of the form OLD=NEW", "--trim-path=a");
    USAGE("--trim-path: OLD is empty in '=a'", "--trim-path", "=a");
    USAGE("option '--pid' needs a value (LIST)", "--pid");
    USAGE("option '-o' needs a value (FILE)", "-qo");
    USAGE("option '--quiet' takes no value", "--quiet=yes");
    USAGE("--output: the name is empty", "--output=");
    USAGE("--output was given more than once", "-o", "a", "-o", "b");
}

static void a_wrong_word_reports_the_set(void **state)
{
    (void)state;
    USAGE("--kernel: 'no' is not one of keep, drop, only", "--kernel=no");
    USAGE("--kernel: 'kee' is not one of keep, drop, only, did you mean keep?", "--kernel", "kee");
    USAGE("--kernel: '' is not one of keep, drop, only", "--kernel=");
    USAGE("--weight: 'keep|drop' is not one of samples, time", "--weight=keep|drop");
}

static void bad_values_are_refused(void **state)
{
    (void)state;
    USAGE("--pid: '' in '' is not a number", "--pid=");
    USAGE("--pid: '' in '1,,2' is not a number", "--pid=1,,2");
    USAGE("--pid: '' in '1,' is not a number", "--pid=1,");
    USAGE("--pid: '2x' in '1,2x' is not a number", "--pid=1,2x");
    USAGE("--pid: '2147483648' is not in -2147483648 to 2147483647", "--pid=2147483648");
    USAGE("--pid: '-2147483649' is not in -2147483648 to 2147483647", "--pid=-2147483649");
    USAGE("--tid: '-1' is not in 0 to 18446744073709551615", "--tid=-1");
    USAGE("--tid: '18446744073709551616' is not in 0 to 18446744073709551615",
          "--tid=18446744073709551616");
    USAGE("--perf-maps: 'some' is not one of auto, all, none or a list of process ids",
          "--perf-maps=some");
    USAGE("--perf-maps: '0' is not in 1 to 2147483647", "--perf-maps=0");
    USAGE("--max-depth: '0' is not in 1 to 4294967295", "--max-depth=0");
    USAGE("--max-depth: '-1' is not a number", "--max-depth=-1");
    USAGE("--from: '1m' is not a time like 2.5s, 250ms, 30us, 12ns or a number of seconds",
          "--from=1m");
    USAGE("--from: time '18446744074s' is too large", "--from=18446744074s");
    USAGE("--to: time '1.5ns' is finer than a nanosecond", "--to=1.5ns");
    USAGE("--root-at: 'a(' is no regular expression: Unmatched ( or \\(", "--root-at=a(");
}

/* A pattern: `text` `count` times, between others. Valid until the next call. */
static const char *pattern(const char *before, const char *text, size_t count, const char *after)
{
    static char buffer[100000];
    size_t used = (size_t)snprintf(buffer, sizeof buffer, "--root-at=%s", before);

    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(buffer + used, sizeof buffer - used, "%s", text);
    snprintf(buffer + used, sizeof buffer - used, "%s", after);
    return buffer;
}

static char *nested(size_t depth)
{
    static char text[100000];

    assert_true(2 * depth + 2 < sizeof text);
    memset(text, '(', depth);
    text[depth] = 'a';
    memset(text + depth + 1, ')', depth);
    text[2 * depth + 1] = '\0';
    return text;
}

static void patterns_that_regcomp_would_choke_on_are_refused(void **state)
{
    static const char *const multiply[] = {"((((a{1,255}){1,255}){1,255}){1,255})",
                                           "a{10001}",
                                           "a{10001,}",
                                           "a{0,32767}",
                                           "a{,32767}",
                                           "a{99999999999999999999999}",
                                           "(a{101}){100}",
                                           "a{200}{60}",
                                           "(){10001}",
                                           "((a{3}b[]x{9}]{40}){100}){3}",
                                           "(a|b{300}|c){40}",
                                           "a{200}*{60}",
                                           "a++++++++++++++",
                                           "((((((((((((((a)+)+)+)+)+)+)+)+)+)+)+)+)+)+",
                                           "[[.].]{9}]{200}{51}",
                                           "\\{{200}{51}"};
    const char *const too_much =
        "--root-at: the repeats in the pattern multiply to more than 10000";

    (void)state;
    for (size_t i = 0; i < sizeof multiply / sizeof multiply[0]; i++)
        USAGE(too_much, pattern("", multiply[i], 1, ""));
    USAGE(too_much, pattern("", "(a{100}){60}", 2, ""));
    USAGE("--root-at: the pattern is longer than 4096 bytes", pattern("", "a", 4097, ""));
    USAGE("--root-at: the pattern nests groups deeper than 100", pattern("", nested(101), 1, ""));
    USAGE("--root-at: the pattern nests groups deeper than 100", pattern("", "(", 4000, ""));
}

static void patterns_up_to_the_limits_are_taken(void **state)
{
    static const char *const good[] = {"a{10000}",
                                       "(a{100}){100}",
                                       "(a{1,50}){1,9}",
                                       "a{0,255}",
                                       "\\(a\\(\\(\\{99999}",
                                       "[(((({99999}]",
                                       "[]{99999}]",
                                       "[^]{99999}]",
                                       "[[:alpha:]{99999}]",
                                       "[[.].]{99999}]",
                                       "^std::(vector|map)<.{1,200}>::.*$",
                                       "a)b"};
    struct tool_options o;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        PARSE(&o, pattern("", good[i], 1, ""));
        assert_true(o.shape.has_root_at);
        cli_free(&o);
    }
    PARSE(&o, pattern("", "a", 4096, ""));
    assert_int_equal(regexec(&o.shape.root_at, "aa", 0, NULL, 0), REG_NOMATCH);
    cli_free(&o);
    PARSE(&o, pattern("", nested(100), 1, ""));
    assert_int_equal(regexec(&o.shape.root_at, "bab", 0, NULL, 0), 0);
    cli_free(&o);
    PARSE(&o, pattern("", "(a)", 1300, "")); /* one after the other they nest nothing */
    cli_free(&o);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    USAGE("--quiet and --verbose contradict each other", "-qv");
    USAGE("--quiet and --progress=always contradict each other", "-q", "--progress=always");
    USAGE("--strict and --salvage contradict each other", "--salvage", "--strict");
    USAGE("--no-symbols and --no-inlines contradict each other", "--no-inlines", "--no-symbols");
    USAGE("--vmlinux and --no-kernel-symbols contradict each other", "--vmlinux=x",
          "--no-kernel-symbols");
    USAGE("--kallsyms and --no-kernel-symbols contradict each other", "--no-kernel-symbols",
          "--kallsyms=x");
    USAGE("--no-symbols and --sysroot contradict each other", "--sysroot=/", "--no-symbols");
    USAGE("--debug-dir: the name is empty", "--debug-dir=");
    USAGE("--symbols: the name is empty", "--symbols", "");
    USAGE("--no-symbols and --debug-dir contradict each other", "--debug-dir=/", "--no-symbols");
    USAGE("--no-symbols and --symbols contradict each other", "--no-symbols", "--symbols=/");
    USAGE("--no-symbols and --perf-maps contradict each other", "--perf-maps=none", "--no-symbols");
    USAGE("--no-symbols and --no-kernel-symbols contradict each other", "--no-kernel-symbols",
          "--no-symbols");
    USAGE("--no-symbols and --demangle contradict each other", "--no-symbols", "--demangle=full");
    USAGE("--kernel=drop and --kallsyms contradict each other", "--kernel=drop", "--kallsyms=x");
    USAGE("--kernel=drop and --vmlinux contradict each other", "--vmlinux=x", "--kernel=drop");
    USAGE("--perf-maps=none and --perf-map-dir contradict each other", "--perf-map-dir=/x",
          "--perf-maps=none");
    USAGE("--from and --to contradict each other: nothing lies from 2000000000 ns to 2000000000 ns",
          "--from=2", "--to=2000ms");
    USAGE("--to: nothing lies before 0 ns", "--to=0");
    USAGE("'-' was given more than once, but standard input can be read only once", "-", "-");
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    USAGE("unknown option '--\\x1b[31m\\x0a\\xff\\xc2\\x9b'", "--\033[31m\n\xff\xc2\x9b");
}

/* ---- help and version ------------------------------------------------------------------------ */

static void help_fits_80_columns_and_names_every_option(void **state)
{
    static const char *const names[] = {
        "-o, --output FILE",
        "-q, --quiet",
        "-v, --verbose",
        "--progress WHEN           progress on standard error: auto, always, never\n",
        "--strict",
        "--salvage",
        "--pid LIST",
        "--tid LIST",
        "--comm GLOB",
        "--thread GLOB",
        "--from T",
        "--to T",
        "--kernel WHAT ",
        "--runtime WHAT ",
        ": full, short, none\n",
        "--frame-filter REGEX",
        "--root-at REGEX",
        "--skip-below REGEX",
        "--max-depth N",
        "--fold-recursion",
        "--unresolved HOW ",
        "--[no-]inlines",
        "--trim-path OLD=NEW",
        "--kallsyms FILE, --vmlinux FILE  kernel symbols; ELF file",
        "--debuginfod",
        "--no-symbols",
        "--sysroot DIR",
        "--debug-dir DIR",
        "--symbols DIR|FILE ",
        "--perf-map-dir DIR",
        "--perf-maps PID,... ",
        "--no-kernel-symbols",
        "--[no-]overview",
        "what counts: samples, time\n",
        "-s, --size N",
        "--help",
        "--version",
        "Usage: testtool [OPTION]... [SPOOL]...",
        "Examples: testtool a.spool\n"};
    struct outcome outcome;

    (void)state;
    run(&outcome, (const char *const[]){"--pid", "1", "--help", "--nonsense", NULL});
    assert_int_equal(outcome.status, EXIT_OK);
    assert_string_equal(outcome.err, "");
    for (size_t i = 0; i + 1 < sizeof names / sizeof names[0]; i++) {
        if (strstr(outcome.out, names[i]) == NULL)
            fail_msg("--help does not have '%s'", names[i]);
    }
    for (const char *line = outcome.out; *line != '\0'; line += strcspn(line, "\n") + 1) {
        if (strcspn(line, "\n") > 79)
            fail_msg("too long: %s", line);
        assert_false(strcspn(line, "\n") > 0 && line[strcspn(line, "\n") - 1] == ' ');
    }
}

/* What the shells must not take for their own. */
static void completion_quotes_what_the_table_says(void **state)
{
    static const struct cli_option options[] = {
        {.id = ID_WEIGHT,
         .short_name = 'w',
         .name = "weight",
         .value = "A:B",
         .kind = CLI_KIND_WORD,
         .words = "it's|$(b)",
         .help = "it's [a: b] \\ `c` $d \"e\""},
        {.id = ID_OVERVIEW, .name = "overview", .negatable = true, .help = "x"},
        {.name = NULL},
    };
    static const char *const expected[][3] = {
        {"bash", "\n    -w | --weight) kind='word' words=('it'\\''s' '$(b)') ;;\n",
         "\n        --overview --no-overview\n"},
        {"zsh",
         "\n        '*--weight=[it'\\''s \\[a\\: b\\] \\\\ `c` $d \"e\"]:A\\:B:(it\\'\\''s "
         "\\$\\(b\\))' \\\n",
         "\n        '*--no-overview[opposite of --overview]' \\\n"}};

    (void)state;
    own_table = options;
    for (size_t i = 0; i < 2; i++) {
        struct outcome outcome;

        run(&outcome, (const char *const[]){"--completion", expected[i][0], NULL});
        assert_int_equal(outcome.status, EXIT_OK);
        assert_string_equal(outcome.err, "");
        for (size_t k = 1; k < 3; k++) {
            if (strstr(outcome.out, expected[i][k]) == NULL)
                fail_msg("no %s in %s", expected[i][k], outcome.out);
        }
        assert_null(strstr(outcome.out, "TOOL"));
    }
    own_table = own_options;
    USAGE("--completion: 'fish' is not one of bash, zsh", "--completion=fish");
    USAGE("option '--completion' needs a value (bash|zsh)", "--completion");
}

static void a_command_takes_all_that_follows_its_name(void **state)
{
    static const struct cli_option options[] = {
        {.name = "", .help = "Sizes"},
        {.id = ID_SIZE, .short_name = 's', .name = "size", .value = "N", .help = "a size"},
        {.name = NULL},
    };
    const struct cli_tool runner = {.name = "testtool",
                                    .purpose = "runs commands",
                                    .usage = usage,
                                    .own = options,
                                    .handle = handle,
                                    .command = true};
    struct tool_options o;
    struct own own = {0};

    (void)state;
    cli_parse(&runner,
              make_argv(
                  (const char *const[]){"-s", "1K", "cmd", "-s", "2", "--", "--help", "-", NULL}),
              argv, &o, &own);
    assert_int_equal(own.size, 1024);
    assert_int_equal(o.input_count, 6);
    assert_string_equal(o.inputs[0], "cmd");
    assert_string_equal(o.inputs[3], "--");
    assert_string_equal(o.inputs[4], "--help");
    cli_free(&o);
    cli_parse(&runner, make_argv((const char *const[]){"--", "-cmd", "-s", NULL}), argv, &o, &own);
    assert_int_equal(o.input_count, 2);
    assert_string_equal(o.inputs[0], "-cmd");
    cli_free(&o);
    cli_parse(&runner, make_argv((const char *const[]){NULL}), argv, &o, &own);
    assert_int_equal(o.input_count, 0);
    cli_free(&o);
}

static void version_tells_what_is_read_and_written(void **state)
{
    struct outcome outcome;
    char features[200];

    (void)state;
    run(&outcome, (const char *const[]){"--version", NULL});
    assert_int_equal(outcome.status, EXIT_OK);
    assert_string_equal(outcome.err, "");
    assert_non_null(strstr(outcome.out, "testtool " SPOOLTOOLS_VERSION "\n"));
    assert_non_null(strstr(outcome.out, "\nspool versions read: 1 2 3 4\n"));
    assert_non_null(strstr(outcome.out, "\nspool versions written: 3 4\n"));
    snprintf(features, sizeof features, "\noptional features: %s\n",
             sym_features()[0] != '\0' ? sym_features() : "none");
    assert_non_null(strstr(outcome.out, features));
}

static void help_to_a_full_disk_is_an_error(void **state)
{
    int full = open("/dev/full", O_WRONLY), status;
    int argc = make_argv((const char *const[]){"--help", NULL});
    pid_t child;

    (void)state;
    if (full < 0) {
        printf("no /dev/full\n");
        skip();
    }
    fflush(stdout);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct tool_options o;
        struct own own;

        dup2(full, 1);
        close(2); /* the message is not what is tested here */
        cli_parse(&tool, argc, argv, &o, &own);
        _exit(111);
    }
    close(full);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_FAILED);
}

/* ---- standard error that does not take more ---- */

/* A child prints to a full pipe that does not block. Returns how long it took, in ms, and what
 * came out behind what was in the pipe, when it is emptied `delay_ms` after the start; -1: never. */
static int64_t print_to_full_pipe(int lines, int delay_ms, char *text, size_t size)
{
    static char junk[1 << 20];
    struct timespec begin, end;
    ssize_t filled = 0, n, got = 0;
    int fds[2], status;
    pid_t child;

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    while ((n = write(fds[1], junk, 4096)) > 0)
        filled += n;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    fflush(stdout);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        cli_set_program("testtool", false);
        for (int i = 0; i < lines; i++)
            cli_error("line %d", i);
        _exit(0);
    }
    if (delay_ms >= 0) {
        usleep((useconds_t)delay_ms * 1000);
        for (ssize_t left = filled; left > 0; left -= n) {
            n = read(fds[0], junk, (size_t)left < sizeof junk ? (size_t)left : sizeof junk);
            assert_true(n > 0);
        }
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(fds[1]);
    if (delay_ms >= 0) {
        while ((n = read(fds[0], text + got, size - 1 - (size_t)got)) > 0)
            got += n;
    }
    text[got] = '\0';
    close(fds[0]);
    return (int64_t)(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
}

static void a_full_standard_error_is_waited_for_but_not_forever(void **state)
{
    char text[256];
    int64_t ms;

    (void)state;
    print_to_full_pipe(2, 200, text, sizeof text);
    assert_string_equal(text, "testtool: line 0\ntesttool: line 1\n");
    ms = print_to_full_pipe(100, -1, text, sizeof text);
    assert_true(ms >= 900 && ms < 20000);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void time_is(const char *text, enum cli_value_result result, uint64_t expected)
{
    uint64_t ns = 1;

    if (cli_parse_time(text, &ns) != result || (result == CLI_VALUE_OK && ns != expected))
        fail_msg("'%s' gives %llu", text, (unsigned long long)ns);
}

static void times_are_exact(void **state)
{
    (void)state;
    time_is("2.5s", CLI_VALUE_OK, 2500000000);
    time_is("250ms", CLI_VALUE_OK, 250000000);
    time_is("30us", CLI_VALUE_OK, 30000);
    time_is("12ns", CLI_VALUE_OK, 12);
    time_is("0", CLI_VALUE_OK, 0);
    time_is("7", CLI_VALUE_OK, 7000000000);
    time_is("0.1", CLI_VALUE_OK, 100000000);
    time_is(".1", CLI_VALUE_OK, 100000000);
    time_is("1.", CLI_VALUE_OK, 1000000000);
    time_is("0.000000001", CLI_VALUE_OK, 1);
    time_is("0.0000000010000000000000000000000000", CLI_VALUE_OK, 1);
    time_is("1.000000001s", CLI_VALUE_OK, 1000000001);
    time_is("12.0ns", CLI_VALUE_OK, 12);
    time_is("18446744073.709551615", CLI_VALUE_OK, UINT64_MAX);
    time_is("18446744073709551615ns", CLI_VALUE_OK, UINT64_MAX);
    time_is("18446744073.709551616", CLI_VALUE_TOO_LARGE, 0);
    time_is("18446744073709551616ns", CLI_VALUE_TOO_LARGE, 0);
    time_is("99999999999999999999999", CLI_VALUE_TOO_LARGE, 0);
    time_is("0.0000000001", CLI_VALUE_TOO_FINE, 0);
    time_is("0.5ns", CLI_VALUE_TOO_FINE, 0);
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const bad[] = {"",      ".",   "s",  "ms",   "-1",  "+1",
                                      "1e3",   "1 s", " 1", "1s ",  "0x1", "1h",
                                      "1.2.3", "1,5", "1S", "1sec", "inf", "1..2"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        time_is(bad[i], CLI_VALUE_BAD, 0);
}

static void sizes_have_binary_units(void **state)
{
    uint64_t size;

    (void)state;
    assert_int_equal(cli_parse_size("65528", &size), CLI_VALUE_OK);
    assert_int_equal(size, 65528);
    assert_int_equal(cli_parse_size("32K", &size), CLI_VALUE_OK);
    assert_int_equal(size, 32768);
    assert_int_equal(cli_parse_size("1M", &size), CLI_VALUE_OK);
    assert_int_equal(size, 1048576);
    assert_int_equal(cli_parse_size("17179869183G", &size), CLI_VALUE_OK);
    assert_int_equal(cli_parse_size("17179869184G", &size), CLI_VALUE_TOO_LARGE);
    assert_int_equal(cli_parse_size("18446744073709551616", &size), CLI_VALUE_TOO_LARGE);
    assert_int_equal(cli_parse_size("", &size), CLI_VALUE_BAD);
    assert_int_equal(cli_parse_size("K", &size), CLI_VALUE_BAD);
    assert_int_equal(cli_parse_size("1KB", &size), CLI_VALUE_BAD);
    assert_int_equal(cli_parse_size("1T", &size), CLI_VALUE_BAD);
    assert_int_equal(cli_parse_size("1.5K", &size), CLI_VALUE_BAD);
    assert_int_equal(cli_parse_size("-1", &size), CLI_VALUE_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_operand_is_standard_input),
        cmocka_unit_test(options_and_operands_may_alternate),
        cmocka_unit_test(short_options_cluster_and_take_values),
        cmocka_unit_test(own_options_reach_the_handler),
        cmocka_unit_test(selection_lists_accumulate_sorted_and_unique),
        cmocka_unit_test(shape_and_symbol_options_are_stored),
        cmocka_unit_test(prefixes_of_paths_are_two_texts_in_one),
        cmocka_unit_test(folders_of_symbols_accumulate_in_order),
        cmocka_unit_test(the_last_of_repeated_single_values_counts),
        cmocka_unit_test(unknown_and_abbreviated_options_are_refused),
        cmocka_unit_test(missing_and_unwanted_values_are_refused),
        cmocka_unit_test(a_wrong_word_reports_the_set),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(patterns_that_regcomp_would_choke_on_are_refused),
        cmocka_unit_test(patterns_up_to_the_limits_are_taken),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(help_fits_80_columns_and_names_every_option),
        cmocka_unit_test(completion_quotes_what_the_table_says),
        cmocka_unit_test(a_command_takes_all_that_follows_its_name),
        cmocka_unit_test(version_tells_what_is_read_and_written),
        cmocka_unit_test(help_to_a_full_disk_is_an_error),
        cmocka_unit_test(a_full_standard_error_is_waited_for_but_not_forever),
        cmocka_unit_test(times_are_exact),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(sizes_have_binary_units),
    };
    int null = open("/dev/null", O_RDONLY);

    /* However the test is started, standard input is no terminal. */
    dup2(null, 0);
    close(null);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
