/* SPDX-License-Identifier: MIT */
/*
 * The way of perf, for comparison: reads what `perf script` prints of a perf.data and does one of two things.
 *
 *   perf_text fold   writes collapsed stacks: the step between perf script and a flame graph
 *   perf_text spool  writes a spool of the same samples, so that the tools here have the same work (not timed)
 *
 * Both read standard input and write standard output. Fields: comm,pid,tid,time,event,ip,sym,dso; for `spool` with
 * --show-mmap-events.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "spool/spool.h"

#define FRAMES_MAX 4096
#define KERNEL_HALF (UINT64_C(1) << 63)

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "perf_text: %s\n", what);
    exit(1);
}

static void *need(void *p)
{
    if (p == NULL)
        die("out of memory");
    return p;
}

/* ---- lines of perf script ---- */

struct frame {
    uint64_t ip;      /* of the kernel and of unknown code absolute, else an offset in the file */
    const char *name; /* in the text of the sample, as is the file */
    const char *file; /* "" without one */
};

struct sample {
    const char *comm;
    int32_t pid;
    uint64_t tid, time_ns;
    struct frame frames[FRAMES_MAX]; /* leaf first */
    size_t frame_count;
    char text[1 << 20]; /* the names, each terminated */
    size_t text_size;
};

static const char *keep(struct sample *s, const char *text, size_t size)
{
    char *copy = s->text + s->text_size;

    if (size >= sizeof s->text - s->text_size)
        die("a stack with more than a MiB of names");
    memcpy(copy, text, size);
    copy[size] = '\0';
    s->text_size += size + 1;
    return copy;
}

/* "ladder 4711/4712 23645.030597: cpu-clock: "; false for another line. A comm may hold blanks. */
static bool parse_header(struct sample *s, const char *line)
{
    for (const char *at = line; (at = strchr(at, '/')) != NULL; at++) {
        const char *begin = at, *end;
        char *rest;
        uint64_t seconds, fraction;

        while (begin > line && begin[-1] >= '0' && begin[-1] <= '9')
            begin--;
        if (begin == at || begin == line || begin[-1] != ' ')
            continue;
        s->tid = strtoull(at + 1, &rest, 10);
        seconds = strtoull(rest, &rest, 10);
        if (*rest != '.')
            continue;
        fraction = strtoull(rest + 1, &rest, 10);
        if (*rest != ':')
            continue;
        s->pid = (int32_t)strtol(begin, NULL, 10);
        s->time_ns = seconds * 1000000000 + fraction * 1000; /* perf prints microseconds */
        for (end = begin; end > line && end[-1] == ' ';)
            end--;
        s->text_size = 0;
        s->frame_count = 0;
        s->comm = keep(s, line, (size_t)(end - line));
        return true;
    }
    return false;
}

/* "    55fe52e25136 main (/usr/bin/app)" */
static void parse_frame(struct sample *s, const char *line)
{
    char *name;
    uint64_t ip = strtoull(line, &name, 16);
    const char *end = NULL;

    if (ip == 0 || s->frame_count == FRAMES_MAX)
        return;
    name += *name == ' ';
    for (const char *p = name; (p = strstr(p, " (")) != NULL; p++)
        end = p;
    s->frames[s->frame_count++] = (struct frame){
        .ip = ip,
        .name = keep(s, name, end ? (size_t)(end - name) : strcspn(name, "\n")),
        .file = end ? keep(s, end + 2, strcspn(end + 2, ")\n")) : "",
    };
}

/* Calls one of the two for each sample and for each line about a mapping. */
static void read_all(void *user, void (*take)(void *user, const struct sample *),
                     void (*map)(void *user, const char *line))
{
    struct sample *s = need(malloc(sizeof *s));
    char *line = NULL;
    size_t capacity = 0;
    bool open = false;

    while (getline(&line, &capacity, stdin) > 0) {
        const char *mapping = strstr(line, "PERF_RECORD_MMAP2 ");

        if (mapping != NULL) {
            if (map != NULL)
                map(user, mapping);
        } else if (*line == '\n') {
            if (open)
                take(user, s);
            open = false;
        } else if (*line == '\t' || *line == ' ') {
            if (open)
                parse_frame(s, line);
        } else {
            open = parse_header(s, line);
        }
    }
    if (open)
        take(user, s);
    free(line);
    free(s);
}

/* ---- fold ---- */

struct stack {
    char *text; /* NULL: free */
    uint64_t hash, count;
};

struct folder {
    struct stack *slots;
    size_t capacity, used;
    char *line;
    size_t line_capacity;
};

static struct stack *find(struct stack *slots, size_t capacity, uint64_t hash, const char *text)
{
    size_t i = hash & (capacity - 1);

    while (slots[i].text != NULL && (slots[i].hash != hash || strcmp(slots[i].text, text) != 0))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

static void grow(struct folder *f)
{
    size_t capacity = f->capacity ? f->capacity * 2 : 1024;
    struct stack *slots = need(calloc(capacity, sizeof *slots));

    for (size_t i = 0; i < f->capacity; i++)
        if (f->slots[i].text != NULL)
            *find(slots, capacity, f->slots[i].hash, f->slots[i].text) = f->slots[i];
    free(f->slots);
    f->slots = slots;
    f->capacity = capacity;
}

static void fold_sample(void *user, const struct sample *s)
{
    struct folder *f = user;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    struct stack *stack;
    size_t size = 0;

    if (f->used * 2 >= f->capacity)
        grow(f);
    if (f->line_capacity < s->text_size + 1) {
        f->line_capacity = 2 * s->text_size + 1;
        f->line = need(realloc(f->line, f->line_capacity));
    }
    size += (size_t)(stpcpy(f->line, s->comm) - f->line);
    for (size_t i = s->frame_count; i-- > 0;) {
        f->line[size++] = ';';
        size = (size_t)(stpcpy(f->line + size, s->frames[i].name) - f->line);
    }
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)f->line[i]) * UINT64_C(0x100000001b3);
    stack = find(f->slots, f->capacity, hash, f->line);
    if (stack->text == NULL) {
        *stack = (struct stack){.text = need(strdup(f->line)), .hash = hash};
        f->used++;
    }
    stack->count++;
}

static int compare(const void *a, const void *b)
{
    const struct stack *x = a, *y = b;

    return strcmp(x->text, y->text);
}

static void fold(void)
{
    struct folder f = {0};
    size_t n = 0;

    read_all(&f, fold_sample, NULL);
    for (size_t i = 0; i < f.capacity; i++)
        if (f.slots[i].text != NULL)
            f.slots[n++] = f.slots[i];
    if (n > 1)
        qsort(f.slots, n, sizeof *f.slots, compare);
    for (size_t i = 0; i < n; i++) {
        printf("%s %" PRIu64 "\n", f.slots[i].text, f.slots[i].count);
        free(f.slots[i].text);
    }
    free(f.slots);
    free(f.line);
}

/* ---- spool ---- */

struct mapping {
    int32_t pid;
    uint64_t offset, size;
    char *path;
    uint32_t module;
};

struct maker {
    struct spool_writer *writer;
    struct mapping *mappings;
    size_t count;
    int32_t named_pid; /* the process named last */
};

static void check(int rc, const struct maker *m)
{
    if (rc != 0)
        die(spool_writer_error(m->writer));
}

/* "PERF_RECORD_MMAP2 7/7: [0x1000(0x2000) @ 0x1000 fe:00 1099 35301]: r-xp /usr/bin/app" */
static void make_mapping(void *user, const char *line)
{
    struct maker *m = user;
    struct spool_module module = {0};
    struct mapping mapping = {0};
    const char *bracket = strchr(line, '['), *path = strstr(line, "]: ");
    char *at;

    if (bracket == NULL || path == NULL || strncmp(path + 3, "r-xp ", 5) != 0)
        return;
    path += 8;
    module.pid = mapping.pid = (int32_t)strtol(line + strlen("PERF_RECORD_MMAP2 "), NULL, 10);
    module.start = strtoull(bracket + 1, &at, 16);
    mapping.size = strtoull(at + 1, &at, 16);
    module.end = module.start + mapping.size;
    module.file_offset = mapping.offset = strtoull(at + strlen(") @ "), &at, 0);
    module.dev_major = (uint32_t)strtoul(at, &at, 16);
    module.dev_minor = (uint32_t)strtoul(at + 1, &at, 16);
    module.inode = strtoull(at, NULL, 10);
    module.path = path;
    module.path_size = strcspn(path, "\n");
    mapping.path = need(strndup(path, module.path_size));
    check(spool_writer_module(m->writer, &module, &mapping.module), m);
    m->mappings = need(realloc(m->mappings, (m->count + 1) * sizeof *m->mappings));
    m->mappings[m->count++] = mapping;
}

/* caller: its address is the one it returns to, which a spool has moved into the call. */
static struct spool_writer_frame make_frame(const struct maker *m, int32_t pid,
                                            const struct frame *f, bool caller)
{
    uint64_t address = f->ip - caller;

    for (size_t i = m->count; i-- > 0 && f->ip < KERNEL_HALF;) {
        const struct mapping *p = &m->mappings[i];

        if (p->pid == pid && address - p->offset < p->size && strcmp(p->path, f->file) == 0)
            return (struct spool_writer_frame){
                .kind = SPOOL_FRAME_PINNED, .module_id = p->module, .address = address};
    }
    return (struct spool_writer_frame){
        .kind = SPOOL_FRAME_UNPINNED, .kernel = address >= KERNEL_HALF, .address = address};
}

static void make_sample(void *user, const struct sample *s)
{
    struct maker *m = user;
    static struct spool_writer_frame frames[FRAMES_MAX];

    if (s->pid < 1)
        return;
    if (m->named_pid != s->pid)
        check(spool_writer_annotate(m->writer, s->pid, "comm", s->comm), m);
    m->named_pid = s->pid;
    for (size_t i = 0; i < s->frame_count; i++)
        frames[i] = make_frame(m, s->pid, &s->frames[i], i > 0);
    check(spool_writer_sample(m->writer, s->time_ns, s->pid, s->tid, frames, s->frame_count), m);
}

/* That the kernel was this one, so that its names are looked up, as perf does. */
static void note_kernel(const struct maker *m)
{
    char note[256], boot_id[64] = "-";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    struct utsname name;

    if (f == NULL || fscanf(f, "%63s", boot_id) != 1 || uname(&name) != 0)
        die("no boot id");
    fclose(f);
    snprintf(note, sizeof note, "%s - %s", name.release, boot_id);
    check(spool_writer_annotate(m->writer, 1, "kernel", note), m);
}

static void make_spool(void)
{
    struct spool_header header = {.version = 3, .interval_us = 50};
    struct maker m = {.writer = need(spool_writer_new())};

    check(spool_writer_open_fd(m.writer, STDOUT_FILENO, &header), &m);
    note_kernel(&m);
    read_all(&m, make_sample, make_mapping);
    check(spool_writer_finish(m.writer), &m);
    spool_writer_free(m.writer);
    for (size_t i = 0; i < m.count; i++)
        free(m.mappings[i].path);
    free(m.mappings);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "fold") == 0)
        fold();
    else if (argc == 2 && strcmp(argv[1], "spool") == 0)
        make_spool();
    else
        die("usage: perf_text fold|spool");
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
