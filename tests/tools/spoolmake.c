/* SPDX-License-Identifier: MIT */
/*
 * Makes a spool out of a text on standard input, for tests that need one with certain contents:
 *
 *     version 4                      # what is behind a '#' is for people
 *     interval 10ms
 *     name f "f<(E)1>::g(int)"       # f is a frame now, of generated code with this name
 *     names main run
 *     comm 40 app
 *     thread 40 41 "V8 Worker 3"
 *     sample 10ms 40 41 f run main   # leaf first
 *     sample +10ms 40 41 run main
 *
 * A line is a statement: words, in "quotes" where they hold blanks or are empty. Anywhere in a word \n, \t, \0, \\, \",
 * \xHH stand for one byte. Numbers are decimal or 0x hex; times have ns, us, ms or s behind them, or are nanoseconds.
 *
 * The header; in front of everything else, each may be left out:
 *     version 3|4                    4 without it
 *     interval TIME                  0 without it; whole microseconds in version 3
 *     start MICROSECONDS
 *     origin MONOTONIC WALL          times; WALL counts from 1970 and may be negative
 *
 * Definitions. ALIAS is what the frames below call it; it is not in the spool. A range is START-END:
 *     module ALIAS PID RANGE OFFSET PATH [inode N] [dev MAJOR:MINOR] [generation N]
 *     kernel-module ALIAS RANGE OFFSET PATH [...]
 *     jit ALIAS PID RANGE PATH [RANGE NAME]...
 *     name ALIAS NAME                a JIT module that holds this one name, at an address of its own; ALIAS is of no
 *                                    process in particular
 *     names NAME...                  the same for words that can be their own aliases
 *
 * Records:
 *     note PID KEY [VALUE]           an annotation, "[spool:KEY] VALUE"
 *     comm PID NAME                  short for note PID comm NAME ...
 *     thread PID TID NAME            ... and for note PID thread "TID NAME"
 *     python TIME PID on|off
 *     deactivate PID
 *     deactivate-module ALIAS
 *     sample TIME PID TID FRAME...
 *     samples N STEP TIME PID TIDS FRAME... [| FRAME...]...
 *     raw HEX [N]                    these bytes, N times, behind the writer's back: for what it refuses, and for
 *                                    quantities. When the text begins with it there is no header but the one in it
 *
 * The TIME of samples with a '+' or '-' in front counts from the sample before. `samples` are N, STEP (it may be
 * negative) apart; TIDS may be a range of threads, which take turns, and when each had one the next stack is due.
 *
 * A FRAME is one of these, with *N behind it to have it N times:
 *     ALIAS                          the first byte of a module
 *     ALIAS+OFFSET                   OFFSET as spools have it: in the file
 *     0xADDRESS  @0xADDRESS          an address of no module, of the process or (@) of the kernel
 *     [truncated]                    the marker, to be last
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spool/spool.h"

/* Where `name` puts its modules: far from what tests write themselves. */
#define NAME_BASE UINT64_C(0x600000000000)
#define NAME_STEP 0x100u

struct word {
    char *text; /* NUL-terminated, and may hold NUL */
    size_t size;
    bool quoted;
};

struct alias {
    char *text;
    uint32_t module;
    uint64_t file_offset;
};

/* Stacks of a statement, one behind the other in `frames`. */
struct stack {
    size_t begin, count;
};

struct maker {
    struct spool_header header;
    struct spool_writer
        *writer; /* NULL until the first record, and for ever when the text begins with raw */
    bool raw_only;
    uint64_t line;
    uint64_t time_ns; /* of the latest sample */
    uint64_t names;

    struct word *words; /* of the line at hand */
    size_t count, capacity, at;
    struct alias *aliases;
    size_t alias_count, alias_capacity;
    struct spool_writer_frame *frames;
    size_t frame_count, frame_capacity;
    struct stack *stacks;
    size_t stack_count, stack_capacity;
};

static _Noreturn void die(const struct maker *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static _Noreturn void die(const struct maker *m, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "spoolmake: line %" PRIu64 ": ", m->line);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void check(const struct maker *m, int rc)
{
    if (rc < 0)
        die(m, "%s", spool_writer_error(m->writer));
}

/* Room for one more item; the array, which may have moved. */
static void *grown(const struct maker *m, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? *capacity * 2 : 64;
    items = realloc(items, *capacity * size);
    if (items == NULL)
        die(m, "out of memory");
    return items;
}

/* ---- words ---- */

static int hex_digit(const struct maker *m, char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    die(m, "'%c' is no hex digit", c);
}

/* The byte behind a backslash; moves *p past it. */
static char escaped(const struct maker *m, const char **p)
{
    char c = *(*p)++;

    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case '0':
        return '\0';
    case '\\':
    case '"':
        return c;
    case 'x': {
        int high = hex_digit(m, (*p)[0]);
        int low = hex_digit(m, (*p)[1]);

        *p += 2;
        return (char)(high << 4 | low);
    }
    default:
        die(m, "\\%c is no escape", c);
    }
}

/* Cuts a line into words, in place: none is longer than its source. */
static void split(struct maker *m, char *line)
{
    const char *p = line;
    char *to = line;

    m->count = m->at = 0;
    for (;;) {
        struct word w = {.text = to};

        p += strspn(p, " \t\n");
        if (*p == '\0' || *p == '#')
            return;
        if (to > p)
            die(m, "words need blanks between them");
        w.quoted = *p == '"';
        if (w.quoted)
            p++;
        while (*p != '\0' && (w.quoted ? *p != '"' : strchr(" \t\n", *p) == NULL)) {
            char c = *p++;

            *to++ = c == '\\' ? escaped(m, &p) : c;
        }
        if (w.quoted && *p++ != '"')
            die(m, "no closing quote");
        else if (!w.quoted && *p != '\0')
            p++;
        w.size = (size_t)(to - w.text);
        *to++ = '\0'; /* where the blank or quote was */
        m->words = grown(m, m->words, m->count, &m->capacity, sizeof *m->words);
        m->words[m->count++] = w;
        if (to > p)
            return; /* at the end of the line */
    }
}

static bool more(const struct maker *m)
{
    return m->at < m->count;
}

static struct word *next(struct maker *m, const char *what)
{
    if (!more(m))
        die(m, "%s is missing", what);
    return &m->words[m->at++];
}

static bool is(const struct word *w, const char *text)
{
    return !w->quoted && strcmp(w->text, text) == 0;
}

/* Takes the next word when it is this one. */
static bool accept(struct maker *m, const char *text)
{
    if (!more(m) || !is(&m->words[m->at], text))
        return false;
    m->at++;
    return true;
}

/* A number at *text; moves *text past it. */
static uint64_t digits(const struct maker *m, char **text)
{
    char *begin = *text;
    uint64_t value;

    errno = 0;
    value = strtoull(begin, text, begin[0] == '0' && begin[1] == 'x' ? 16 : 10);
    if (errno != 0 || *text == begin || *begin < '0' || *begin > '9')
        die(m, "'%s' is no number", begin);
    return value;
}

static uint64_t number(struct maker *m, const char *what)
{
    char *text = next(m, what)->text;
    uint64_t value = digits(m, &text);

    if (*text != '\0')
        die(m, "%s: '%s' behind the number", what, text);
    return value;
}

static int32_t process(struct maker *m)
{
    char *text = next(m, "the process id")->text;
    bool negative = *text == '-';
    uint64_t value;

    text += negative;
    value = digits(m, &text);
    if (*text != '\0' || value > (uint64_t)INT32_MAX + negative)
        die(m, "no process id");
    return (int32_t)(negative ? -(int64_t)value : (int64_t)value);
}

/* A time without its sign. */
static uint64_t nanoseconds(const struct maker *m, char *text)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    uint64_t value = digits(m, &text), product;

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text, units[i].name) == 0) {
            if (__builtin_mul_overflow(value, units[i].ns, &product))
                die(m, "a time beyond 64 bits");
            return product;
        }
    die(m, "'%s' is no unit of time", text);
}

/* A time with '-' or without; *relative, when wanted, whether it has a sign. As two's complement. */
static uint64_t signed_time(struct maker *m, const char *what, bool *relative)
{
    char *text = next(m, what)->text;
    bool sign = *text == '-' || *text == '+';
    uint64_t ns = nanoseconds(m, text + sign);

    if (relative != NULL)
        *relative = sign;
    return *text == '-' ? 0 - ns : ns;
}

static void range_of(const struct maker *m, char *text, uint64_t *start, uint64_t *end)
{
    *start = digits(m, &text);
    if (*text++ != '-')
        die(m, "a range is START-END");
    *end = digits(m, &text);
    if (*text != '\0')
        die(m, "'%s' behind the range", text);
}

/* ---- definitions ---- */

static void open_writer(struct maker *m)
{
    if (m->writer != NULL)
        return;
    if (m->raw_only)
        die(m, "only raw is possible without a header");
    if (m->header.version == 3) {
        if (m->header.interval_ns % 1000 != 0)
            die(m, "version 3 has whole microseconds");
        m->header.interval_us = m->header.interval_ns / 1000;
    }
    m->writer = spool_writer_new();
    if (m->writer == NULL)
        die(m, "out of memory");
    check(m, spool_writer_open_fd(m->writer, STDOUT_FILENO, &m->header));
}

static void define(struct maker *m, const struct word *alias, const struct spool_module *module)
{
    struct alias *a;

    m->aliases = grown(m, m->aliases, m->alias_count, &m->alias_capacity, sizeof *m->aliases);
    a = &m->aliases[m->alias_count++];
    a->text = strdup(alias->text);
    if (a->text == NULL)
        die(m, "out of memory");
    a->file_offset = module->file_offset;
    check(m, spool_writer_module(m->writer, module, &a->module));
}

/* The first `size` bytes of text are the alias; the latest of that name counts. */
static const struct alias *find(const struct maker *m, const char *text, size_t size)
{
    for (size_t i = m->alias_count; i-- > 0;)
        if (strlen(m->aliases[i].text) == size && memcmp(m->aliases[i].text, text, size) == 0)
            return &m->aliases[i];
    die(m, "nothing is called '%.*s'", (int)size, text);
}

static void module(struct maker *m, bool kernel)
{
    struct spool_module module = {.kernel = kernel, .pid = -1};
    const struct word *alias = next(m, "the alias"), *path;

    if (!kernel)
        module.pid = process(m);
    range_of(m, next(m, "the range")->text, &module.start, &module.end);
    module.file_offset = number(m, "the offset");
    path = next(m, "the path");
    module.path = path->text;
    module.path_size = path->size;
    while (more(m)) {
        if (accept(m, "inode")) {
            module.inode = number(m, "the inode");
        } else if (accept(m, "generation")) {
            module.inode_gen = number(m, "the generation");
        } else if (accept(m, "dev")) {
            char *text = next(m, "the device")->text;

            module.dev_major = (uint32_t)digits(m, &text);
            if (*text++ != ':')
                die(m, "a device is MAJOR:MINOR");
            module.dev_minor = (uint32_t)digits(m, &text);
        } else {
            return; /* complained about by the caller */
        }
    }
    define(m, alias, &module);
}

static void jit(struct maker *m)
{
    struct spool_jit_symbol *symbols = NULL;
    struct spool_module module = {.jit = true};
    const struct word *alias = next(m, "the alias"), *path;
    size_t capacity = 0;

    module.pid = process(m);
    range_of(m, next(m, "the range")->text, &module.start, &module.end);
    path = next(m, "the path");
    module.path = path->text;
    module.path_size = path->size;
    while (more(m)) {
        struct spool_jit_symbol s;
        const struct word *name;

        range_of(m, next(m, "the range")->text, &s.start, &s.end);
        name = next(m, "the name");
        s.name = name->text;
        s.name_size = name->size;
        symbols = grown(m, symbols, module.jit_symbol_count, &capacity, sizeof *symbols);
        symbols[module.jit_symbol_count++] = s;
    }
    module.jit_symbols = symbols;
    define(m, alias, &module);
    free(symbols);
}

static void name(struct maker *m, const struct word *alias, const struct word *text)
{
    uint64_t start = NAME_BASE + NAME_STEP * m->names;
    struct spool_jit_symbol symbol = {
        .start = start, .end = start + NAME_STEP, .name = text->text, .name_size = text->size};
    char path[64];
    struct spool_module module = {.pid = 1,
                                  .jit = true,
                                  .start = start,
                                  .end = start + NAME_STEP,
                                  .path = path,
                                  .jit_symbols = &symbol,
                                  .jit_symbol_count = 1};

    module.path_size = (size_t)snprintf(path, sizeof path, "[jit-%" PRIx64 "-%" PRIx64 "-%x]",
                                        m->names++, start, NAME_STEP);
    define(m, alias, &module);
}

/* ---- samples ---- */

static void frame(struct maker *m, char *text)
{
    struct spool_writer_frame f = {.kind = SPOOL_FRAME_PINNED};
    char *end = strrchr(text, '*');
    uint64_t times = 1;

    if (end != NULL && end[1] != '\0') {
        char *count = end + 1;

        times = digits(m, &count);
        *end = '\0';
    }
    if (strcmp(text, "[truncated]") == 0) {
        f.kind = SPOOL_FRAME_TRUNCATED;
    } else if (text[0] == '@' || (text[0] >= '0' && text[0] <= '9')) {
        f.kind = SPOOL_FRAME_UNPINNED;
        f.kernel = text[0] == '@';
        text += f.kernel;
        f.address = digits(m, &text);
        if (*text != '\0')
            die(m, "'%s' behind the address", text);
    } else {
        size_t size = strcspn(text, "+");
        const struct alias *a = find(m, text, size);

        f.module_id = a->module;
        f.address = a->file_offset;
        if (text[size] == '+') {
            text += size + 1;
            f.address = digits(m, &text);
        }
    }
    for (; times > 0; times--) {
        m->frames = grown(m, m->frames, m->frame_count, &m->frame_capacity, sizeof *m->frames);
        m->frames[m->frame_count++] = f;
    }
}

static void stacks(struct maker *m)
{
    m->frame_count = m->stack_count = 0;
    do {
        struct stack s = {.begin = m->frame_count};

        if (!more(m))
            die(m, "a stack has frames");
        while (more(m) && !is(&m->words[m->at], "|"))
            frame(m, m->words[m->at++].text);
        s.count = m->frame_count - s.begin;
        m->stacks = grown(m, m->stacks, m->stack_count, &m->stack_capacity, sizeof *m->stacks);
        m->stacks[m->stack_count++] = s;
    } while (accept(m, "|"));
}

static void samples(struct maker *m, bool many)
{
    uint64_t count = many ? number(m, "how many") : 1;
    uint64_t step = many ? signed_time(m, "the step", NULL) : 0;
    bool relative;
    uint64_t time = signed_time(m, "the time", &relative), turn = 0;
    int32_t pid = process(m);
    char *text = next(m, "the thread id")->text;
    uint64_t first = digits(m, &text), last = first;
    size_t stack = 0;

    if (*text == '-' && many) {
        text++;
        last = digits(m, &text);
    }
    if (*text != '\0' || last < first)
        die(m, "'%s' behind the thread id", text);
    stacks(m);
    if (relative)
        time += m->time_ns;
    for (; count > 0; count--) {
        const struct stack *s = &m->stacks[stack];

        check(m, spool_writer_sample(m->writer, time, pid, first + turn, &m->frames[s->begin],
                                     s->count));
        m->time_ns = time;
        time += step;
        if (turn++ < last - first)
            continue;
        turn = 0;
        stack = (stack + 1) % m->stack_count;
    }
}

/* ---- the other statements ---- */

static void origin(struct maker *m)
{
    int64_t wall;
    uint64_t distance;

    m->header.has_origin = true;
    m->header.origin.monotonic_ns = signed_time(m, "the monotonic time", NULL);
    wall = (int64_t)signed_time(m, "the wall time", NULL);
    distance = wall < 0 ? 0 - (uint64_t)wall : (uint64_t)wall;
    m->header.origin.sign = wall < 0 ? -1 : 1;
    m->header.origin.seconds = distance / 1000000000;
    m->header.origin.nanoseconds = (uint32_t)(distance % 1000000000);
}

static void write_all(const struct maker *m, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(STDOUT_FILENO, data, size);

        if (n < 0)
            die(m, "writing failed: %s", strerror(errno));
        data += n;
        size -= (size_t)n;
    }
}

static void raw(struct maker *m)
{
    enum { BLOCK = 1 << 16 };
    struct word *w = next(m, "the bytes");
    size_t size = w->size / 2, copies;
    uint64_t times = more(m) ? number(m, "how often") : 1;
    char *block;

    if (m->writer != NULL)
        check(m, spool_writer_flush(m->writer));
    else
        m->raw_only = true;
    if (w->size % 2 != 0 || size == 0)
        die(m, "bytes have two digits");
    for (size_t i = 0; i < size; i++)
        w->text[i] = (char)(hex_digit(m, w->text[2 * i]) << 4 | hex_digit(m, w->text[2 * i + 1]));
    copies = size < BLOCK ? BLOCK / size : 1;
    block = malloc(copies * size);
    if (block == NULL)
        die(m, "out of memory");
    for (size_t i = 0; i < copies; i++)
        memcpy(block + i * size, w->text, size);
    while (times > 0) {
        size_t now = times < copies ? (size_t)times : copies;

        write_all(m, block, now * size);
        times -= now;
    }
    free(block);
}

static void note_thread(struct maker *m)
{
    int32_t pid = process(m);
    uint64_t tid = number(m, "the thread id");
    const struct word *name = next(m, "the name");
    size_t size = name->size + 32;
    char *value = malloc(size);

    if (value == NULL)
        die(m, "out of memory");
    snprintf(value, size, "%" PRIu64 " %s", tid, name->text);
    check(m, spool_writer_annotate(m->writer, pid, "thread", value));
    free(value);
}

static void note(struct maker *m, const char *key)
{
    int32_t pid = process(m);

    if (key == NULL)
        key = next(m, "the key")->text;
    check(m, spool_writer_annotate(m->writer, pid, key, more(m) ? next(m, "")->text : NULL));
}

static void python(struct maker *m)
{
    uint64_t time = signed_time(m, "the time", NULL);
    int32_t pid = process(m);
    bool on = accept(m, "on");

    if (!on && !accept(m, "off"))
        die(m, "on or off");
    check(m, spool_writer_python(m->writer, time, pid, on));
}

/* Whether it was a statement of the header. */
static bool header(struct maker *m)
{
    if (accept(m, "version"))
        m->header.version = (uint32_t)number(m, "the version");
    else if (accept(m, "interval"))
        m->header.interval_ns = signed_time(m, "the interval", NULL);
    else if (accept(m, "start"))
        m->header.start_us = number(m, "the start");
    else if (accept(m, "origin"))
        origin(m);
    else
        return false;
    if (m->writer != NULL || m->raw_only)
        die(m, "the header comes first");
    return true;
}

static void record(struct maker *m)
{
    open_writer(m);
    if (accept(m, "sample")) {
        samples(m, false);
    } else if (accept(m, "samples")) {
        samples(m, true);
    } else if (accept(m, "module")) {
        module(m, false);
    } else if (accept(m, "kernel-module")) {
        module(m, true);
    } else if (accept(m, "jit")) {
        jit(m);
    } else if (accept(m, "name")) {
        const struct word *alias = next(m, "the alias");

        name(m, alias, next(m, "the name"));
    } else if (accept(m, "names")) {
        while (more(m)) {
            const struct word *alias = next(m, "the name");

            name(m, alias, alias);
        }
    } else if (accept(m, "note")) {
        note(m, NULL);
    } else if (accept(m, "comm")) {
        note(m, "comm");
    } else if (accept(m, "thread")) {
        note_thread(m);
    } else if (accept(m, "python")) {
        python(m);
    } else if (accept(m, "deactivate")) {
        check(m, spool_writer_deactivate_process(m->writer, process(m)));
    } else if (accept(m, "deactivate-module")) {
        const struct word *alias = next(m, "the alias");
        uint32_t id = find(m, alias->text, alias->size)->module;

        check(m, spool_writer_deactivate_module(m->writer, id));
    }
}

static void statement(struct maker *m)
{
    if (accept(m, "raw"))
        raw(m);
    else if (!header(m))
        record(m);
    if (more(m))
        die(m, "'%s' makes no sense here", m->words[m->at].text);
}

int main(void)
{
    struct maker m = {.header = {.version = 4}};
    char *line = NULL;
    size_t capacity = 0;

    if (isatty(STDOUT_FILENO)) {
        fputs("spoolmake: standard output is a terminal\n", stderr);
        return 2;
    }
    for (m.line = 1; getline(&line, &capacity, stdin) > 0; m.line++) {
        split(&m, line);
        if (more(&m))
            statement(&m);
    }
    if (!m.raw_only) {
        open_writer(&m);
        check(&m, spool_writer_finish(m.writer));
    }
    spool_writer_free(m.writer);
    for (size_t i = 0; i < m.alias_count; i++)
        free(m.aliases[i].text);
    free(m.aliases);
    free(m.words);
    free(m.frames);
    free(m.stacks);
    free(line);
    return 0;
}
