/* SPDX-License-Identifier: MIT */
/*
 * The options that tools share: their tables, what each does to struct tool_options, which
 * contradict each other, and the forms that values have. Where one may be given more than once,
 * lists grow and the last of all others counts, except --output: two of them cannot both be
 * written.
 */
#include "cli.h"
#include "cli_shared.h"
#include "text.h"

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

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Appends a digit to a number; false when it does not fit. */
static bool add_digit(uint64_t *number, char digit)
{
    return !__builtin_mul_overflow(*number, UINT64_C(10), number) &&
           !__builtin_add_overflow(*number, (uint64_t)(digit - '0'), number);
}

enum cli_value_result cli_parse_u64(const char *text, uint64_t *number)
{
    bool fits = true;

    *number = 0;
    if (*text == '\0')
        return CLI_VALUE_BAD;
    for (; *text != '\0'; text++) {
        if (!is_digit(*text))
            return CLI_VALUE_BAD;
        fits = fits && add_digit(number, *text);
    }
    return fits ? CLI_VALUE_OK : CLI_VALUE_TOO_LARGE;
}

/* No floating point: 0.1s is 100,000,000 ns, and the largest time is exact, too. */
enum cli_value_result cli_parse_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *suffix;
        uint64_t unit_ns;
    } units[] = {{"", 1000000000}, {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
    size_t whole = strspn(text, "0123456789");
    const char *fraction = text + whole + (text[whole] == '.');
    size_t digits = text[whole] == '.' ? strspn(fraction, "0123456789") : 0;
    uint64_t unit_ns = 0;
    bool fits = true, exact = true;

    *ns = 0;
    if (whole + digits == 0)
        return CLI_VALUE_BAD;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(fraction + digits, units[i].suffix) == 0)
            unit_ns = units[i].unit_ns;
    }
    if (unit_ns == 0)
        return CLI_VALUE_BAD;
    for (size_t i = 0; i < whole; i++)
        fits = fits && add_digit(ns, text[i]);
    fits = fits && !__builtin_mul_overflow(*ns, unit_ns, ns);
    for (size_t i = 0; i < digits; i++) {
        unit_ns /= 10; /* a power of ten, so 0 once it is finer than a nanosecond */
        exact = exact && (unit_ns > 0 || fraction[i] == '0');
        fits = fits && !__builtin_add_overflow(*ns, unit_ns * (uint64_t)(fraction[i] - '0'), ns);
    }
    if (!fits)
        return CLI_VALUE_TOO_LARGE;
    return exact ? CLI_VALUE_OK : CLI_VALUE_TOO_FINE;
}

enum cli_value_result cli_parse_size(const char *text, uint64_t *size_bytes)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t unit = 1;
    bool fits = true;

    *size_bytes = 0;
    if (digits == 0)
        return CLI_VALUE_BAD;
    if (text[digits] != '\0') {
        const char *suffix = strchr("KkMmGg", text[digits]);

        if (suffix == NULL || text[digits + 1] != '\0')
            return CLI_VALUE_BAD;
        unit = *suffix == 'K' || *suffix == 'k'   ? 1024
               : *suffix == 'M' || *suffix == 'm' ? 1024 * 1024
                                                  : 1024 * 1024 * 1024;
    }
    for (size_t i = 0; i < digits; i++)
        fits = fits && add_digit(size_bytes, text[i]);
    fits = fits && !__builtin_mul_overflow(*size_bytes, unit, size_bytes);
    return fits ? CLI_VALUE_OK : CLI_VALUE_TOO_LARGE;
}

uint64_t cli_time_value(const struct cli_arg *arg)
{
    uint64_t ns;

    switch (cli_parse_time(arg->value, &ns)) {
    case CLI_VALUE_OK:
        return ns;
    case CLI_VALUE_TOO_LARGE:
        cli_usage("%s: time '%s' is too large", arg->shown, arg->value);
    case CLI_VALUE_TOO_FINE:
        cli_usage("%s: time '%s' is finer than a nanosecond", arg->shown, arg->value);
    default:
        cli_usage("%s: '%s' is not a time like 2.5s, 250ms, 30us, 12ns or a number of seconds",
                  arg->shown, arg->value);
    }
}

uint64_t cli_size_value(const struct cli_arg *arg)
{
    uint64_t size;

    switch (cli_parse_size(arg->value, &size)) {
    case CLI_VALUE_OK:
        return size;
    case CLI_VALUE_TOO_LARGE:
        cli_usage("%s: size '%s' is too large", arg->shown, arg->value);
    default:
        cli_usage("%s: '%s' is not a size like 65528, 32K or 1M", arg->shown, arg->value);
    }
}

uint64_t cli_number_value(const struct cli_arg *arg, uint64_t min, uint64_t max)
{
    uint64_t number;
    enum cli_value_result result = cli_parse_u64(arg->value, &number);

    if (result == CLI_VALUE_BAD)
        cli_usage("%s: '%s' is not a number", arg->shown, arg->value);
    if (result != CLI_VALUE_OK || number < min || number > max)
        cli_usage("%s: '%s' is not in %llu to %llu", arg->shown, arg->value,
                  (unsigned long long)min, (unsigned long long)max);
    return number;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

void cli_numbers_value(const struct cli_arg *arg, int64_t min, uint64_t max,
                       struct number_list *list)
{
    size_t kept = 0;

    for (const char *at = arg->value;;) {
        size_t size = strcspn(at, ",");
        bool negative = at[0] == '-';
        char *item = text_copy(at, size);
        uint64_t number = 0;
        enum cli_value_result result;
        bool in_range;

        result = cli_parse_u64(item + negative, &number);
        free(item);
        if (result == CLI_VALUE_BAD)
            cli_usage("%s: '%.*s' in '%s' is not a number", arg->shown, (int)size, at, arg->value);
        in_range = result == CLI_VALUE_OK;
        if (negative)
            in_range = in_range && min < 0 && number <= 0 - (uint64_t)min;
        else
            in_range = in_range && number <= max && (min < 0 || number >= (uint64_t)min);
        if (!in_range)
            cli_usage("%s: '%.*s' is not in %lld to %llu", arg->shown, (int)size, at,
                      (long long)min, (unsigned long long)max);
        list->items = cli_realloc(list->items, list->count + 1, sizeof *list->items);
        list->items[list->count++] = negative ? 0 - number : number;
        at += size;
        if (*at == '\0')
            break;
        at++;
    }
    qsort(list->items, list->count, sizeof *list->items, compare_numbers);
    for (size_t i = 0; i < list->count; i++) {
        if (kept == 0 || list->items[kept - 1] != list->items[i])
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

/* ---- regular expressions ---- */

/*
 * What a pattern may cost, for glibc's regcomp recurses into groups until the stack ends, and
 * copies what a repeat counts: a{9} becomes nine a, and in (a{9}){9} they multiply. Its time for
 * copies that may be left out, as in a{0,9}, grows with their square, so those count four times.
 * The limits are far above what patterns for names need. They are no measure of time: a pattern
 * of the user's own may still be slow, but neither crash nor take all memory.
 */
#define REGEX_BYTES_MAX 4096u
#define REGEX_DEPTH_MAX 100u
#define REGEX_COPIES_MAX 10000u /* characters when all repeats are copied out */

/* Behind the bracket expression whose '[' is at p: a ']' that comes first is a member, and
 * [: :], [. .] and [= =] may hold one. */
static const char *skip_bracket(const char *p)
{
    p += p[1] == '^' ? 2 : 1;
    if (*p == ']')
        p++;
    while (*p != '\0' && *p != ']') {
        if (p[0] == '[' && (p[1] == ':' || p[1] == '.' || p[1] == '=')) {
            const char end[] = {p[1], ']', '\0'};
            const char *found = strstr(p + 2, end);

            p = found != NULL ? found + 1 : p;
        }
        p++;
    }
    return *p == ']' ? p + 1 : p;
}

static uint64_t repeat_bound(const char **p)
{
    uint64_t bound = 0;

    for (; is_digit(**p); ++*p) {
        if (bound <= REGEX_COPIES_MAX)
            bound = bound * 10 + (uint64_t)(**p - '0');
    }
    return bound;
}

/* How many copies the bounds at *p, behind '{', make; moves behind the '}'. Other texts than bounds
 * regcomp will refuse. */
static uint64_t repeat_copies(const char **p)
{
    uint64_t least = repeat_bound(p), most = least, sure;

    if (**p == ',') {
        ++*p;
        most = is_digit(**p) ? repeat_bound(p) : least + 1; /* x{9,} is nine x and x* */
    }
    *p += **p == '}';
    sure = least > 0 ? least : 1;
    return most > sure ? sure + 4 * (most - sure) : sure;
}

/* Why regcomp should not see the pattern; NULL when it may. */
static const char *regex_excess(const char *p)
{
    /* Sizes in characters when repeats are copied out: what stands before each open group in the
     * one around it, the present group so far, and its last item, which a repeat multiplies. */
    uint64_t before[REGEX_DEPTH_MAX], size = 0, last = 0;
    size_t depth = 0;

    if (strlen(p) > REGEX_BYTES_MAX)
        return "the pattern is longer than 4096 bytes";
    while (*p != '\0') {
        char c = *p;

        if (c == '(') {
            if (depth == REGEX_DEPTH_MAX)
                return "the pattern nests groups deeper than 100";
            before[depth++] = size + last;
            size = last = 0;
            p++;
        } else if (c == ')' && depth > 0) {
            last = size + last > 0 ? size + last : 1;
            size = before[--depth];
            p++;
        } else if (c == '*' || c == '?') {
            p++;
        } else if (c == '+') { /* x+ is xx* */
            last *= 2;
            p++;
        } else if (c == '{') {
            p++;
            last *= repeat_copies(&p);
        } else {
            size += last;
            last = 1;
            p = c == '[' ? skip_bracket(p) : c == '\\' && p[1] != '\0' ? p + 2 : p + 1;
        }
        if (size + last > REGEX_COPIES_MAX)
            return "the repeats in the pattern multiply to more than 10000";
    }
    return NULL;
}

void cli_regex_value(const struct cli_arg *arg, regex_t *regex)
{
    const char *excess = regex_excess(arg->value);
    int code;

    if (excess != NULL)
        cli_usage("%s: %s", arg->shown, excess);
    code = regcomp(regex, arg->value, REG_EXTENDED | REG_NOSUB);
    if (code != 0) {
        char text[200];

        regerror(code, regex, text, sizeof text);
        cli_usage("%s: '%s' is no regular expression: %s", arg->shown, arg->value, text);
    }
}

void cli_text_value(const struct cli_arg *arg, struct text_list *list)
{
    list->items = cli_realloc(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = arg->value;
}

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
    if (!is_digit(arg->value[0]))
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
