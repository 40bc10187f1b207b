/* SPDX-License-Identifier: MIT */
/*
 * The parser over the option tables, and the messages of every tool. What the shared options mean
 * is in options.c, what forms values have in cli_values.c.
 */
#include "cli.h"
#include "cli_shared.h"
#include "clock.h"
#include "spelling.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- messages -------------------------------------------------------------------------------- */

static const char *program = "spooltools";
static bool quiet;
static int failure = EXIT_FAILED;
static void (*before_message)(void);

const char *cli_program(void)
{
    return program;
}

void cli_set_program(const char *name, bool be_quiet)
{
    program = name;
    quiet = be_quiet;
}

void cli_set_before_message(void (*hook)(void))
{
    before_message = hook;
}

/* Waits until a non-blocking standard error may take more, but not beyond *deadline, which the
 * first wait sets a second ahead (0: not set). Whoever does not read for that long is not waited
 * for again: a report has many lines. */
static bool wait_stderr(int64_t *deadline)
{
    static bool gave_up;
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    int64_t now = (int64_t)(clock_now_ns() / 1000000);

    if (*deadline == 0)
        *deadline = now + 1000;
    if (gave_up || now >= *deadline) {
        gave_up = true;
        return false;
    }
    poll(&fd, 1, (int)(*deadline - now));
    return true; /* whatever came of it: the next write tells */
}

static void write_stderr(const char *data, size_t size)
{
    int64_t deadline = 0;

    while (size > 0) {
        ssize_t done = write(STDERR_FILENO, data, size);

        if (done < 0 && errno == EAGAIN) {
            if (!wait_stderr(&deadline))
                return;
            continue;
        }
        if (done == 0 || (done < 0 && errno != EINTR))
            return; /* nobody is left to be told */
        if (done > 0) {
            data += done;
            size -= (size_t)done;
        }
    }
}

/* One line in one write, so that lines of several programs on one terminal do not mix. */
static void message(bool with_program, const char *format, va_list args, const char *end)
{
    struct text_buffer raw = {0}, line = {0};

    if (before_message != NULL)
        before_message();
    if (with_program)
        text_printf(&raw, "%s: ", program);
    text_vprintf(&raw, format, args);
    text_append(&raw, end, strlen(end));
    text_display(raw.data, raw.size, &line);
    text_append_byte(&line, '\n');
    write_stderr(line.data, line.size);
    text_free(&raw);
    text_free(&line);
}

void cli_warn(const char *format, ...)
{
    va_list args;

    if (quiet)
        return;
    va_start(args, format);
    message(true, format, args, "");
    va_end(args);
}

void cli_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    message(true, format, args, "");
    va_end(args);
}

void cli_report(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    message(false, format, args, "");
    va_end(args);
}

void cli_report_lines(const struct text_buffer *lines)
{
    const char *at = lines->data;

    for (size_t left = lines->size; left > 0;) {
        const char *end = memchr(at, '\n', left);
        size_t size = end != NULL ? (size_t)(end - at) : left;

        cli_report("%.*s", (int)size, at);
        size += end != NULL;
        at += size;
        left -= size;
    }
}

void cli_usage(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    message(true, format, args, " (see --help)");
    va_end(args);
    exit(EXIT_USAGE);
}

/* Tables of that size take most of their time from being touched for the first time, page by page: large pages take
 * them faster. It is advice, which the system may ignore. */
#define LARGE_BYTES ((size_t)4 << 20)

static void *advise(void *data, size_t size)
{
    uintptr_t page = 4096, begin = ((uintptr_t)data + page - 1) & ~(page - 1);

    if (data != NULL && size >= LARGE_BYTES)
        (void)madvise((char *)data + (begin - (uintptr_t)data), size - page, MADV_HUGEPAGE);
    return data;
}

static _Noreturn void end_without_memory(void)
{
    static const char text[] = ": out of memory\n";

    /* Not by message(), which allocates. */
    if (before_message != NULL)
        before_message();
    write_stderr(program, strlen(program));
    write_stderr(text, sizeof text - 1);
    exit(failure);
}

void *cli_realloc(void *old, size_t count, size_t size_bytes)
{
    void *data = NULL;
    size_t size;

    if (!__builtin_mul_overflow(count, size_bytes, &size))
        data = advise(realloc(old, size > 0 ? size : 1), size);
    if (data == NULL)
        end_without_memory();
    return data;
}

void *cli_zeroed(size_t count, size_t size_bytes)
{
    void *data = NULL;
    size_t size;

    if (!__builtin_mul_overflow(count, size_bytes, &size))
        data = advise(calloc(size > 0 ? size : 1, 1), size);
    if (data == NULL)
        end_without_memory();
    return data;
}

void *cli_extend(void *array, size_t from, size_t to, size_t size_bytes)
{
    char *bytes = cli_realloc(array, to, size_bytes);

    if (to > from)
        memset(bytes + from * size_bytes, 0, (to - from) * size_bytes);
    return bytes;
}

size_t cli_next_capacity(size_t capacity, size_t index)
{
    size_t next = capacity < 8 ? 16 : 2 * capacity;

    return next > index ? next : index + 1;
}

/* ---- what was given -------------------------------------------------------------------------- */

struct given {
    unsigned group;
    const struct cli_option *option;
    char *shown; /* "--pid" */
};

static struct given *given;
static size_t given_count;

static void forget_given(void)
{
    for (size_t i = 0; i < given_count; i++)
        free(given[i].shown);
    free(given);
    given = NULL;
    given_count = 0;
}

static const char *remember(unsigned group, const struct cli_option *option, bool negated)
{
    struct text_buffer shown = {0};

    text_printf(&shown, "--%s%s", negated ? "no-" : "", option->name);
    given = cli_realloc(given, given_count + 1, sizeof *given);
    given[given_count++] = (struct given){group, option, shown.data};
    return shown.data;
}

const char *cli_given(unsigned groups)
{
    for (size_t i = 0; i < given_count; i++) {
        if ((given[i].group & groups) != 0)
            return given[i].shown;
    }
    return NULL;
}

const char *cli_shown(const char *name)
{
    for (size_t i = given_count; name != NULL && i-- > 0;) {
        if (strcmp(given[i].option->name, name) == 0)
            return given[i].shown;
    }
    return NULL;
}

bool cli_was_given(const char *name)
{
    return cli_shown(name) != NULL;
}

/* ---- tables ---------------------------------------------------------------------------------- */

bool cli_takes(const struct cli_tool *tool, const struct cli_option *option)
{
    return option->name[0] != '\0' &&
           (tool->without == NULL || strcmp(option->name, tool->without) != 0);
}

size_t cli_groups(const struct cli_tool *tool, struct cli_shared_group groups[CLI_GROUPS_MAX])
{
    const struct cli_shared_group *shared = cli_shared_groups;
    size_t count = 0;

    if (tool->own != NULL)
        groups[count++] = (struct cli_shared_group){
            CLI_OWN, tool->own_title != NULL ? tool->own_title : "Options", tool->own};
    for (; shared->group != 0; shared++) {
        if ((tool->groups & shared->group) != 0)
            groups[count++] = *shared;
    }
    groups[count++] = *shared;
    return count;
}

static _Noreturn void print_and_exit(const struct cli_tool *tool, const struct cli_arg *arg)
{
    struct tool_output out;

    if (output_open(&out, NULL, false) != 0)
        exit(EXIT_FAILED);
    if (arg->id == CLI_ID_HELP)
        cli_print_help(tool, &out);
    else if (arg->id == CLI_ID_VERSION)
        cli_print_version(tool, &out);
    else
        cli_print_completion(tool, arg->word, &out);
    exit(output_commit(&out) == 0 ? EXIT_OK : EXIT_FAILED);
}

/* ---- parsing --------------------------------------------------------------------------------- */

struct parser {
    const struct cli_tool *tool;
    struct tool_options *options;
    void *own;
    char **next; /* the argument after the present one */
};

/* Whether the option has this long name, or with a NULL one this short name. */
static bool is_named(const struct cli_option *o, const char *name, size_t size, char short_name,
                     bool *negated)
{
    size_t full = strlen(o->name);

    *negated = false;
    if (name == NULL)
        return o->short_name == short_name;
    if (size == full)
        return memcmp(o->name, name, size) == 0;
    *negated = true;
    return o->negatable && size == full + 3 && memcmp(name, "no-", 3) == 0 &&
           memcmp(o->name, name + 3, full) == 0;
}

/* An option of the tool; NULL: it has none like that. */
static const struct cli_option *find(const struct cli_tool *tool, const char *name, size_t size,
                                     char short_name, unsigned *group, bool *negated)
{
    struct cli_shared_group groups[CLI_GROUPS_MAX];
    size_t count = cli_groups(tool, groups);

    for (size_t i = 0; i < count; i++) {
        *group = groups[i].group;
        for (const struct cli_option *o = groups[i].options; o->name != NULL; o++) {
            if (cli_takes(tool, o) && is_named(o, name, size, short_name, negated))
                return o;
        }
    }
    return NULL;
}

static _Noreturn void refuse_long(const struct cli_tool *tool, const char *arg, size_t size)
{
    struct cli_shared_group groups[CLI_GROUPS_MAX];
    size_t count = cli_groups(tool, groups);
    struct spelling near;

    spelling_begin(&near, arg + 2, size);
    for (size_t i = 0; i < count; i++) {
        for (const struct cli_option *o = groups[i].options; o->name != NULL; o++) {
            if (o->name[0] == '\0' || !cli_takes(tool, o))
                continue;
            spelling_offer(&near, "", o->name, strlen(o->name));
            if (o->negatable)
                spelling_offer(&near, "no-", o->name, strlen(o->name));
        }
    }
    if (near.best[0] != '\0')
        cli_usage("unknown option '%.*s', did you mean --%s?", (int)size + 2, arg, near.best);
    cli_usage("unknown option '%.*s'", size > 0 ? (int)size + 2 : 3, arg);
}

/* Index of value among "a|b|c"; a usage error when it is none of them. */
static int find_word(const char *words, const char *value, const char *shown)
{
    struct text_buffer set = {0};
    size_t wanted = strlen(value);
    const char *at = words;
    struct spelling near;

    spelling_begin(&near, value, wanted);
    for (int index = 0;; index++) {
        size_t size = strcspn(at, "|");

        if (size == wanted && memcmp(at, value, size) == 0) {
            text_free(&set);
            return index;
        }
        text_append(&set, at, size);
        spelling_offer(&near, "", at, size);
        at += size;
        if (*at == '\0')
            break;
        at++;
        text_append(&set, ", ", 2);
    }
    if (near.best[0] != '\0')
        cli_usage("%s: '%s' is not one of %s, did you mean %s?", shown, value, set.data, near.best);
    cli_usage("%s: '%s' is not one of %s", shown, value, set.data);
}

static void take(const struct parser *p, const struct cli_option *option, unsigned group,
                 bool negated, const char *value)
{
    struct cli_arg arg = {.id = option->id, .value = value, .word = -1, .negated = negated};

    arg.shown = remember(group, option, negated);
    if (option->kind == CLI_KIND_WORD)
        arg.word = find_word(option->words, value, arg.shown);
    if (group == 0)
        print_and_exit(p->tool, &arg);
    if (group == CLI_OWN)
        p->tool->handle(&arg, p->options, p->own);
    else
        cli_shared_handle(&arg, p->options);
}

/* `shown` as it was given, "-o". */
static _Noreturn void fail_without_value(const struct cli_option *option, const char *shown)
{
    bool or_words = option->kind == CLI_KIND_TEXT && option->words != NULL;

    cli_usage("option '%s' needs a value (%s%s%s)", shown,
              option->words != NULL ? option->words : "", or_words ? "|" : "",
              option->words == NULL || or_words ? option->value : "");
}

static void parse_long(struct parser *p, const char *arg)
{
    const char *name = arg + 2;
    size_t size = strcspn(name, "=");
    const char *value = name[size] == '=' ? name + size + 1 : NULL;
    unsigned group;
    bool negated;
    const struct cli_option *option = find(p->tool, name, size, 0, &group, &negated);

    if (option == NULL)
        refuse_long(p->tool, arg, size);
    if (option->value == NULL) {
        if (value != NULL)
            cli_usage("option '%.*s' takes no value", (int)size + 2, arg);
    } else if (value == NULL) {
        value = *p->next;
        if (value == NULL)
            fail_without_value(option, arg);
        p->next++;
    }
    take(p, option, group, negated, value);
}

/* "-qv", "-oFILE", "-o FILE", "-qo FILE". */
static void parse_short(struct parser *p, const char *arg)
{
    for (const char *at = arg + 1; *at != '\0'; at++) {
        unsigned group;
        bool negated;
        const struct cli_option *option = find(p->tool, NULL, 0, *at, &group, &negated);
        const char *value = NULL;

        if (option == NULL && at == arg + 1 && at[1] != '\0' &&
            find(p->tool, at, strcspn(at, "="), 0, &group, &negated) != NULL)
            cli_usage("unknown option '-%c', did you mean -%s?", *at, arg);
        if (option == NULL)
            cli_usage("unknown option '-%c'", *at);
        if (option->value != NULL) {
            value = at[1] != '\0' ? at + 1 : *p->next;
            if (value == NULL)
                fail_without_value(option, (const char[]){'-', *at, '\0'});
            if (at[1] == '\0')
                p->next++;
        }
        take(p, option, group, negated, value);
        if (value != NULL)
            return;
    }
}

static void add_input(struct tool_options *o, const char *input)
{
    o->inputs = cli_realloc(o->inputs, o->input_count + 1, sizeof *o->inputs);
    o->inputs[o->input_count++] = input;
}

/* A capture cannot be made again: no document replaces one of its inputs. */
static void check_output(const struct tool_options *o)
{
    struct stat out, in;

    if (o->output == NULL || strcmp(o->output, "-") == 0 || stat(o->output, &out) != 0 ||
        !S_ISREG(out.st_mode))
        return;
    for (size_t i = 0; i < o->input_count; i++) {
        int rc =
            strcmp(o->inputs[i], "-") == 0 ? fstat(STDIN_FILENO, &in) : stat(o->inputs[i], &in);

        if (rc == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            cli_usage("%s: input and output are the same file", o->output);
    }
}

static void check_inputs(struct tool_options *o)
{
    size_t standard = 0;

    for (size_t i = 0; i < o->input_count; i++)
        standard += strcmp(o->inputs[i], "-") == 0;
    if (standard > 1)
        cli_usage("'-' was given more than once, but standard input can be read only once");
    if (o->input_count == 0) {
        if (isatty(STDIN_FILENO))
            cli_usage("no SPOOL was given and standard input is a terminal");
        add_input(o, "-");
    } else if (standard == 1 && isatty(STDIN_FILENO)) {
        cli_usage("'-' was given and standard input is a terminal");
    }
}

/* A descriptor that was closed when we began would be given to the next file that is opened, and
 * messages or the document would go there. They get /dev/null, opened so that using it fails as
 * it would have. */
static void hold_standard_descriptors(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};

    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", modes[fd]) != fd)
            exit(failure);
    }
}

int cli_parse(const struct cli_tool *tool, int argc, char **argv, struct tool_options *out,
              void *own)
{
    struct parser p = {.tool = tool, .options = out, .own = own, .next = argv};
    bool only_operands = false;

    failure = tool->failure != 0 ? tool->failure : EXIT_FAILED;
    hold_standard_descriptors();
    cli_set_program(tool->name, false);
    forget_given();
    *out = (struct tool_options){0};
    if (argc > 0)
        p.next++; /* execve allows an empty argv */
    while (*p.next != NULL) {
        const char *arg = *p.next++;

        if (only_operands || arg[0] != '-' || arg[1] == '\0') {
            add_input(out, arg);
            only_operands |= tool->command;
        } else if (strcmp(arg, "--") == 0) {
            only_operands = true;
        } else if (arg[1] == '-') {
            parse_long(&p, arg);
        } else {
            parse_short(&p, arg);
        }
    }
    cli_shared_check(out);
    if (tool->check != NULL)
        tool->check(out, own);
    if (!tool->command) {
        check_inputs(out);
        check_output(out);
    }
    quiet = out->quiet;
    return 0;
}
