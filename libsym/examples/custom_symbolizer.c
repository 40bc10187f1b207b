/* SPDX-License-Identifier: MIT */
/*
 * custom_symbolizer [-b] [-m MAPS] [-n NAMES] < ADDRESSES
 *
 * Names addresses that come from elsewhere: a core dump, a crash log, another profiler. Lines that end with a number
 * like 0x1a2b are printed with its functions below: those that the compiler inlined there, innermost first, then the one
 * they are in, each with file and line. In a line that begins with a path, `/usr/bin/app 0x1a2b`, the number is an
 * offset in that file; else an address of a process whose mappings MAPS has, a copy of its /proc/PID/maps. Other lines
 * are printed as they are, so a whole log may be given.
 *
 *     -b  lines that follow one another are a backtrace, the innermost first: all but the first are return addresses
 *     -n  names that no file has, of code that a program generated or of a stripped one: lines of START SIZE NAME, in hex
 *         and ascending, as in a perf map. They come before all others
 *
 * Such names come from a symbolizer of the caller's own, own_names(). libsym asks it before any file, and it passes on what
 * it does not know. Questions are put in batches (sym_resolve_many), which libsym answers in the order of addresses.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* what POSIX adds to C, with -std=c11 too */
#endif
#include <errno.h>
#include <inttypes.h>
#include <spool/sym.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 4096
#define OWN_NAMES "names of our own" /* of a module that is no file: not absolute */

/* An own name, a mapping, or a file that a line names. */
struct range {
    uint64_t start, end;
    uint64_t file_offset;
    uint32_t handle; /* of mappings and files */
    char *text;      /* a name or path */
};

/* Mappings and names are ascending and disjoint. */
struct table {
    struct range *ranges;
    size_t count;
};

struct line {
    char *text;
    bool is_address; /* else it is printed as it is */
};

struct symbolizer {
    struct sym_context *context;
    uint32_t everywhere; /* the module of OWN_NAMES: all addresses */
    struct table names, mappings, named_files;
    /* The batch, by line: */
    struct line lines[BATCH];
    struct sym_query queries[BATCH];
    struct sym_answer answers[BATCH];
    size_t count;
};

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "custom_symbolizer: %s: %s\n", what, why);
    return -1;
}

/* ---- tables ---- */

static const struct range *find(const struct table *t, uint64_t address)
{
    size_t low = 0, high = t->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (t->ranges[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->count && t->ranges[low].start <= address ? &t->ranges[low] : NULL;
}

/* Adds a range with a copy of a text. NULL, or what is wrong. */
static const char *append(struct table *t, const struct range *range, const char *text)
{
    struct range *ranges = (struct range *)realloc(t->ranges, (t->count + 1) * sizeof *ranges);
    char *copy = strdup(text);

    if (ranges)
        t->ranges = ranges;
    if (!ranges || !copy) {
        free(copy);
        return "out of memory";
    }
    ranges[t->count] = *range;
    ranges[t->count++].text = copy;
    return NULL;
}

static const char *append_in_order(struct table *t, const struct range *range, const char *text)
{
    if (range->end < range->start || (t->count > 0 && range->start < t->ranges[t->count - 1].end))
        return "not behind the range before it";
    return append(t, range, text);
}

static void free_table(struct table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->ranges[i].text);
    free(t->ranges);
}

/* Describes a file, or a part of it that is mapped. */
static const char *add_module(struct symbolizer *s, const char *path, struct range *range)
{
    struct sym_module module;

    memset(&module, 0, sizeof module);
    module.size = sizeof module;
    module.path = path;
    module.start = range->start;
    module.end = range->end;
    module.file_offset = range->file_offset;
    return sym_module_add(s->context, &module, &range->handle) < 0 ? sym_context_error(s->context)
                                                                   : NULL;
}

/* Takes a line of NAMES. NULL, or what is wrong with it; so does the next one. */
static const char *take_name(struct symbolizer *s, const char *line)
{
    struct range r;
    uint64_t size;
    int at = 0;

    memset(&r, 0, sizeof r);
    if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &r.start, &size, &at) != 2 || line[at] == '\0')
        return "not START SIZE NAME";
    r.end = r.start + size;
    return append_in_order(&s->names, &r, line + at);
}

/* Takes a line of MAPS: START-END PERMISSIONS OFFSET DEVICE INODE PATH. */
static const char *take_mapping(struct symbolizer *s, const char *line)
{
    const char *wrong, *path;
    struct range r;
    int at = 0;

    memset(&r, 0, sizeof r);
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s%n", &r.start, &r.end,
               &r.file_offset, &at) != 3 ||
        at == 0)
        return "not a line of /proc/PID/maps";
    path = line + at + strspn(line + at, " ");
    wrong = add_module(s, path, &r);
    return wrong ? wrong : append_in_order(&s->mappings, &r, path);
}

static int read_table(struct symbolizer *s, const char *path,
                      const char *take(struct symbolizer *, const char *))
{
    FILE *f = fopen(path, "r");
    const char *wrong = NULL;
    char *line = NULL;
    size_t room = 0, number = 0;

    if (!f)
        return complain(path, strerror(errno));
    while (!wrong && getline(&line, &room, f) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        number++;
        wrong = take(s, line);
    }
    if (wrong)
        fprintf(stderr, "custom_symbolizer: %s: line %zu: %s\n", path, number, wrong);
    else if (ferror(f))
        complain(path, wrong = strerror(errno));
    free(line);
    (void)fclose(f); /* it was read */
    return wrong ? -1 : 0;
}

/* ---- names of our own ---- */

/* Answers libsym: a name, or that others are to be asked. It might tell lines and inlined functions as well. */
static int own_names(void *user, const char *path, const uint8_t *build_id, size_t build_id_size,
                     const struct sym_query *query, struct sym_frame *frames, size_t capacity)
{
    const struct symbolizer *s = (const struct symbolizer *)user;
    const struct range *name = find(&s->names, query->abs);

    (void)build_id, (void)build_id_size;
    if (strcmp(path, OWN_NAMES) != 0 || !name)
        return SYM_NATIVE_PASS;
    if (capacity == 0)
        return 1;                    /* to be called again with room for it */
    frames[0].raw_name = name->text; /* copied, and demangled */
    frames[0].function_start = name->start;
    frames[0].offset = query->abs - name->start;
    frames[0].origin = SYM_ORIGIN_JIT;
    return 1;
}

/* ---- addresses ---- */

/* The handle of a file that a line names, all of it: addresses in it are offsets. There are few: one by one. */
static int find_file(struct symbolizer *s, const char *path, uint32_t *handle)
{
    const struct table *t = &s->named_files;
    const char *wrong;
    struct range r;

    for (size_t i = t->count; i-- > 0;) {
        *handle = t->ranges[i].handle;
        if (strcmp(t->ranges[i].text, path) == 0)
            return 0;
    }
    memset(&r, 0, sizeof r);
    r.end = UINT64_MAX;
    wrong = add_module(s, path, &r);
    if (!wrong)
        wrong = append(&s->named_files, &r, path);
    *handle = r.handle;
    return wrong ? complain(path, wrong) : 0;
}

/* Makes a question of a line. What does not end with a number is left as it is. */
static int take_line(struct symbolizer *s, char *text, bool return_address)
{
    struct line *line = &s->lines[s->count];
    struct sym_query *query = &s->queries[s->count];
    char *blank = strrchr(text, ' '), *number = blank ? blank + 1 : text, *end;
    const struct range *m;
    uint64_t address = strtoull(number, &end, 16);

    memset(query, 0, sizeof *query);
    query->module = SYM_NO_MODULE;
    query->return_address = return_address;
    line->text = text;
    line->is_address = strncmp(number, "0x", 2) == 0 && *end == '\0';
    s->count++;
    if (!line->is_address)
        return 0;
    query->abs = query->rel = address;
    if (*text == '/' && blank) {
        int rc;

        *blank = '\0';
        rc = find_file(s, text, &query->module);
        *blank = ' ';
        return rc;
    }
    m = find(&s->mappings, address - return_address); /* the call may end the mapping */
    if (find(&s->names, address - return_address)) {
        query->module = s->everywhere;
    } else if (m) {
        query->module = m->handle;
        query->rel = address - m->start + m->file_offset;
    }
    return 0;
}

/* Names come from files: nothing in them may steer a terminal. */
static void print_text(const char *text)
{
    for (; *text != '\0'; text++)
        putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void print_answer(const struct sym_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct sym_frame *f = &answer->frames[i];

        printf("    ");
        if (!f->name) {
            printf("?? (%s)\n", sym_miss_text(f->miss));
            continue;
        }
        print_text(f->name);
        if (f->file) {
            printf(" at ");
            print_text(f->file);
            printf(":%" PRIu32, f->line);
        }
        printf("%s\n", f->inlined ? " (inlined)" : "");
    }
}

/* Asks for a batch, prints it and begins the next one. */
static int answer_batch(struct symbolizer *s)
{
    if (sym_resolve_many(s->context, s->queries, s->count, s->answers) < 0)
        return complain("names", sym_context_error(s->context));
    for (size_t i = 0; i < s->count; i++) {
        print_text(s->lines[i].text);
        putchar('\n');
        if (s->lines[i].is_address)
            print_answer(&s->answers[i]);
        free(s->lines[i].text);
    }
    s->count = 0;
    return fflush(stdout) == 0 ? 0 : complain("writing", strerror(errno));
}

static int answer_lines(struct symbolizer *s, bool backtraces)
{
    char *text = NULL;
    size_t room = 0;
    bool after_address = false;

    while (getline(&text, &room, stdin) >= 0) {
        text[strcspn(text, "\n")] = '\0';
        if (take_line(s, text, backtraces && after_address) < 0)
            return -1;
        after_address = s->lines[s->count - 1].is_address;
        text = NULL; /* the batch's now */
        room = 0;
        if (s->count == BATCH && answer_batch(s) < 0)
            return -1;
    }
    free(text);
    return ferror(stdin) ? complain("standard input", strerror(errno)) : answer_batch(s);
}

/* ---- the command line ---- */

static int open_context(struct symbolizer *s)
{
    struct sym_options options;
    struct sym_module all;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.native = own_names;
    options.native_user = s;
    memset(&all, 0, sizeof all);
    all.size = sizeof all;
    all.path = OWN_NAMES;
    all.end = UINT64_MAX;
    s->context = sym_context_new();
    if (!s->context)
        return complain("starting", "out of memory");
    if (sym_context_open(s->context, &options) < 0 ||
        sym_module_add(s->context, &all, &s->everywhere) < 0)
        return complain("starting", sym_context_error(s->context));
    return 0;
}

int main(int argc, char **argv)
{
    struct symbolizer *s = (struct symbolizer *)calloc(1, sizeof *s);
    bool backtraces = false;
    int opt, rc = s ? open_context(s) : complain("starting", "out of memory");

    while (rc == 0 && (opt = getopt(argc, argv, "bm:n:")) != -1) {
        if (opt == 'b')
            backtraces = true;
        else if (opt == 'm')
            rc = read_table(s, optarg, take_mapping);
        else if (opt == 'n')
            rc = read_table(s, optarg, take_name);
        else
            rc = 2;
    }
    if (rc == 0 && optind < argc) {
        complain("usage", "custom_symbolizer [-b] [-m MAPS] [-n NAMES] < ADDRESSES");
        rc = 2;
    }
    if (rc == 0)
        rc = answer_lines(s, backtraces);
    for (size_t i = 0; s && i < s->count; i++)
        free(s->lines[i].text);
    if (s) {
        free_table(&s->names);
        free_table(&s->mappings);
        free_table(&s->named_files);
        sym_context_free(s->context);
    }
    free(s);
    return rc < 0 ? 1 : rc;
}
