/* SPDX-License-Identifier: MIT */
/*
 * The command line of every tool: one declarative table of options drives parsing, --help and
 * completion, and one place has the program's name, its messages and its exit codes. Only tools link this:
 * cli_parse and cli_usage end the process.
 */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef SPOOLTOOLS_VERSION
#error "the build defines SPOOLTOOLS_VERSION, \"MAJOR.MINOR.PATCH\""
#endif

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Groups of options that tools share; a tool has some of them. --help, --version and --completion
 * are everybody's. */
enum cli_group {
    CLI_COMMON = 1 << 0,  /* -o, -q, -v, --progress */
    CLI_DAMAGE = 1 << 1,  /* --strict, --salvage */
    CLI_SELECT = 1 << 2,  /* --pid ... --to */
    CLI_SHAPE = 1 << 3,   /* --kernel ... --trim-path */
    CLI_SYMBOLS = 1 << 4, /* --no-symbols ... --debuginfod */
    CLI_OWN = 1 << 5      /* the tool's own table */
};

/* What the value of an option is: the parser insists on the words of CLI_KIND_WORD, completion offers what there is. */
enum cli_kind {
    CLI_KIND_TEXT = 0,  /* anything; `words` are what may stand there besides */
    CLI_KIND_WORD,      /* one of `words` */
    CLI_KIND_WORD_LIST, /* some of `words`, separated by commas */
    CLI_KIND_FILE,
    CLI_KIND_FOLDER,
    CLI_KIND_PID_LIST /* processes that run, separated by commas */
};

/* One option as it is declared. A table ends with an entry whose name is NULL. One whose name is "" has nothing but
 * help: the heading of what follows in --help. */
struct cli_option {
    int id;            /* the tool's number for it; entries may share one */
    char short_name;   /* 0: none */
    const char *name;  /* without dashes */
    const char *value; /* what stands for it in --help: "FILE"; NULL: takes none */
    enum cli_kind kind;
    const char *words; /* "a|b|c"; NULL: none. --help tells them behind `help` */
    bool negatable;    /* --no-NAME exists as well (options without a value only) */
    bool joined;       /* on the line of the option before it in --help */
    const char *help;  /* so short that --help has one line for it */
};

/* One option as it was given. */
struct cli_arg {
    int id;
    const char *value; /* borrowed from argv; NULL: takes none */
    int word;          /* with CLI_KIND_WORD: index of the word, else -1 */
    bool negated;      /* --no-NAME */
    const char *shown; /* as messages name it: "--weight"; valid during the handler */
};

struct cli_tool {
    const char *name;             /* "spoolcat" */
    const char *purpose;          /* one line, lower case, no full stop */
    const char *const *usage;     /* synopsis lines behind the name; ends with NULL */
    unsigned groups;              /* CLI_COMMON | ... */
    const char *without;          /* a shared option that the tool does not take; NULL: none */
    const char *own_title;        /* heading of the own options in --help; NULL: "Options" */
    const struct cli_option *own; /* NULL: none */
    /* Takes one of the own options; reports a bad value with cli_usage. NULL when there are
     * none. */
    void (*handle)(const struct cli_arg *arg, struct tool_options *options, void *own);
    /* Called once after all options and operands, for contradictions among them. NULL: none. */
    void (*check)(const struct tool_options *options, void *own);
    const char *const *examples; /* command lines; ends with NULL; NULL: none */
    const char *note;            /* end of --help, lines; NULL: what exit statuses mean */
    const char *files;           /* names of operands, "*.spool|*.tar"; NULL: those of spools */
    /* The operands are a command: options end before the first one, whatever it is. They are inputs[], at least none;
     * no spool is read, and nothing is asked of standard input. */
    bool command;
    int failure; /* exit status without memory or standard descriptors; 0: EXIT_FAILED */
};

/* Parses everything into *out (overwritten) and, through the handler, into *own. Returns 0. Does not return for
 * --help, --version and --completion (exit 0) and for usage errors (one line on standard error, exit 2): an unknown
 * or incomplete option, a bad value, options that contradict each other, no SPOOL while standard input is a terminal
 * (unless operands are a command). Also sets the program's name, whether warnings are wanted, and makes sure that
 * descriptors 0 to 2 are open, so that no file we open becomes standard output by accident. */
int cli_parse(const struct cli_tool *tool, int argc, char **argv, struct tool_options *out,
              void *own);

/* Frees what cli_parse allocated in *o. */
void cli_free(struct tool_options *o);

/* The first option of these groups that the command line gave ("--pid"), or NULL. For check
 * functions. */
const char *cli_given(unsigned groups);
/* Whether this option (long name without dashes, NULL-safe) was given. */
bool cli_was_given(const char *name);
/* The option as it was given last ("--no-inlines" for "inlines"), or NULL. */
const char *cli_shown(const char *name);

/* ---- messages -------------------------------------------------------------------------------- */

/* All go to standard error as one line. Control characters (those in file names included) are
 * written as \x1b, so nothing can drive the terminal or fake a second line; bytes that are not
 * UTF-8 likewise. */

/* "PROG: ..."; nothing with --quiet. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "PROG: ..." */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The line alone, for the report of --verbose. */
void cli_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Each line of a text. */
struct text_buffer;
void cli_report_lines(const struct text_buffer *lines);
/* "PROG: ... (see --help)", exit 2. */
void cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The tool's name; never NULL. */
const char *cli_program(void);
/* What cli_parse does, for programs without a command line (tests). */
void cli_set_program(const char *name, bool quiet);

/* Called before every message: the progress display takes its line away. NULL: nobody. */
void cli_set_before_message(void (*hook)(void));

/* realloc for count * size bytes that never returns NULL: without memory the tool says so and
 * ends the process. */
void *cli_realloc(void *old, size_t count, size_t size_bytes) __attribute__((returns_nonnull));

/* The same for new memory that is all zero. */
void *cli_zeroed(size_t count, size_t size_bytes) __attribute__((returns_nonnull));

/* The same for an array that gets larger; what is new of it is zero. */
void *cli_extend(void *array, size_t from, size_t to, size_t size_bytes)
    __attribute__((returns_nonnull));

/* The next capacity of an array that must have an element `index`. */
size_t cli_next_capacity(size_t capacity, size_t index);

/* The array with room for an element `index`, for one more when that is how many there are. */
static inline void *cli_grow(void *array, size_t *capacity, size_t index, size_t size_bytes)
{
    if (index < *capacity)
        return array;
    *capacity = cli_next_capacity(*capacity, index);
    return cli_realloc(array, *capacity, size_bytes);
}

/* The same where elements are zero before they are set. */
static inline void *cli_grow_zeroed(void *array, size_t *capacity, size_t index, size_t size_bytes)
{
    size_t before = *capacity;

    if (index < before)
        return array;
    *capacity = cli_next_capacity(before, index);
    return cli_extend(array, before, *capacity, size_bytes);
}

/* ---- values (cli_values.c) ------------------------------------------------------------------- */

enum cli_value_result {
    CLI_VALUE_OK = 0,
    CLI_VALUE_BAD,       /* not of that form */
    CLI_VALUE_TOO_LARGE, /* does not fit */
    CLI_VALUE_TOO_FINE   /* a time with a fraction of a nanosecond */
};

/* "2.5s", "250ms", "30us", "12ns" or a number of seconds; exact. */
enum cli_value_result cli_parse_time(const char *text, uint64_t *ns);
/* "65528", "32K", "1M", "2G" (times 1024). */
enum cli_value_result cli_parse_size(const char *text, uint64_t *size_bytes);
/* Decimal digits only. */
enum cli_value_result cli_parse_u64(const char *text, uint64_t *number);

/* The same for the value of an option: a bad one is a usage error that names the option. */
uint64_t cli_time_value(const struct cli_arg *arg);
uint64_t cli_size_value(const struct cli_arg *arg);
uint64_t cli_number_value(const struct cli_arg *arg, uint64_t min, uint64_t max);
/* Adds a comma-separated list of whole numbers in [min, max] to *list, which stays sorted and
 * unique. Negative numbers are stored as (uint64_t)(int64_t)n. */
void cli_numbers_value(const struct cli_arg *arg, int64_t min, uint64_t max,
                       struct number_list *list);
/* POSIX extended, compiled into *regex with REG_NOSUB. */
void cli_regex_value(const struct cli_arg *arg, regex_t *regex);
/* Appends to a list of borrowed texts. */
void cli_text_value(const struct cli_arg *arg, struct text_list *list);

#endif
