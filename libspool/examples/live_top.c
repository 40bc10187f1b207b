/* SPDX-License-Identifier: MIT */
/*
 * live_top [-i SECONDS] [-n FUNCTIONS] [FILE]
 *
 * Follows a spool that is being written, a file or (without FILE, or with -) standard input:
 *
 *     spoolrecord -o - -- app | live_top
 *
 * and prints every second the functions that took the most time since the screen before, and at last those of the whole
 * spool. Self are samples in the function itself, total those with it anywhere in the stack, however often. It ends
 * with the recording, when nothing has come for some seconds (-i, --idle), or when it is interrupted.
 *
 * Samples are not kept, but the definitions that the reader keeps, the names of frames, and counts of functions.
 * Frames are named when they are first sampled: while the process lives there is most to be found. Functions with the
 * same name are one; code without a name goes by its file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* what POSIX adds to C, with -std=c11 too */
#endif
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <search.h>
#include <signal.h>
#include <spool/spool.h>
#include <spool/sym.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct function {
    const char *name;             /* libsym's; or a path, the reader's */
    uint64_t self, total;         /* samples of the whole spool, */
    uint64_t self_now, total_now; /* and since the last screen */
    uint64_t last_sample; /* that was counted, by number: a recursive function counts once */
};

/* The functions of a frame, inlined ones first. */
struct names {
    struct function **chain;
    size_t count;
    bool known;       /* they have been asked for ... */
    bool one_process; /* ... for this process: an address by itself is another function in others */
    int32_t pid;
};

struct module {
    uint32_t handle; /* libsym's ... */
    bool described;  /* ... from now on */
};

struct top {
    struct spool_tail *tail;
    struct spool_reader *reader; /* the tail's */
    struct sym_context *symbols;
    bool kernel; /* its symbols are loaded */
    void *tree;  /* of functions by name; and as a list: */
    struct function **functions;
    size_t function_count, function_room;
    struct names *names; /* by frame */
    size_t name_room;
    struct module *modules; /* by id */
    size_t module_room;
    uint32_t modules_seen;
    uint64_t samples, samples_now;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "live_top: %s: %s\n", what, why);
    return -1;
}

/* The array with room for `count` things, what is new zeroed; NULL without memory. */
static void *grown(void *array, size_t *room, size_t count, size_t size)
{
    size_t more = 2 * count + 64;
    char *now;

    if (count <= *room)
        return array;
    now = (char *)realloc(array, more * size);
    if (!now)
        return NULL;
    memset(now + *room * size, 0, (more - *room) * size);
    *room = more;
    return now;
}

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct function *)a)->name, ((const struct function *)b)->name);
}

/* The function with that name; NULL without memory. */
static struct function *find_function(struct top *t, const char *name)
{
    struct function key, *f;
    void *found, *list;

    memset(&key, 0, sizeof key);
    key.name = name;
    found = tfind(&key, &t->tree, by_name);
    if (found)
        return *(struct function **)found;
    list = grown(t->functions, &t->function_room, t->function_count + 1, sizeof *t->functions);
    if (list)
        t->functions = (struct function **)list;
    f = (struct function *)malloc(sizeof *f);
    if (f)
        *f = key;
    if (!f || !list || !tsearch(f, &t->tree, by_name)) {
        free(f);
        return NULL;
    }
    t->functions[t->function_count++] = f;
    return f;
}

/* Describes a module to libsym when a frame in it is first met: by then its build id has been read. */
static int describe_module(struct top *t, uint32_t id)
{
    const struct spool_module *m = spool_reader_module(t->reader, id);
    struct module *module = &t->modules[id];
    struct sym_module described;
    struct sym_jit_name *names = NULL;
    int rc;

    if (module->described || !m)
        return 0;
    memset(&described, 0, sizeof described);
    described.size = sizeof described;
    described.path = m->path;
    described.path_size = m->path_size;
    described.start = m->start;
    described.end = m->end;
    described.file_offset = m->file_offset;
    described.kernel = m->kernel;
    described.pid = m->pid;
    described.inode = m->inode;
    described.dev_major = m->dev_major;
    described.dev_minor = m->dev_minor;
    described.build_id = spool_reader_build_id(t->reader, id, &described.build_id_size);
    described.jit = m->jit; /* generated code, with names in the spool */
    if (m->jit_symbol_count > 0) {
        names = (struct sym_jit_name *)malloc(m->jit_symbol_count * sizeof *names);
        if (!names)
            return SYM_ERR_NOMEM;
        for (size_t i = 0; i < m->jit_symbol_count; i++) {
            names[i].start = m->jit_symbols[i].start;
            names[i].end = m->jit_symbols[i].end;
            names[i].name = m->jit_symbols[i].name;
            names[i].name_size = m->jit_symbols[i].name_size;
        }
        described.jit_names = names;
        described.jit_name_count = m->jit_symbol_count;
    }
    rc = sym_module_add(t->symbols, &described, &module->handle);
    module->described = rc == 0;
    free(names);
    return rc;
}

/* Asks libsym for the functions of a frame; leaves the chain empty when the frame is the marker of a cut stack. */
static int name_frame(struct top *t, struct names *names, uint32_t id, int32_t pid)
{
    const struct sym_frame *chain;
    const char *path = "(no file)";
    struct spool_frame frame;
    struct sym_query query;
    struct sym_kernel kernel;
    uint32_t module;
    size_t count;
    int rc;

    memset(&query, 0, sizeof query);
    query.module = SYM_NO_MODULE;
    query.pid = pid;
    query.python_allowed = true;
    names->count = 0;
    names->known = true;
    names->pid = pid;
    if (!spool_reader_frame(t->reader, id, &frame) || frame.kind == SPOOL_FRAME_TRUNCATED)
        return 0;
    names->one_process = frame.kind == SPOOL_FRAME_UNPINNED && !frame.kernel;
    query.kernel = frame.kernel;
    query.abs = frame.abs;
    rc = spool_reader_locate(t->reader, id, pid, &module, &query.rel);
    if (rc < 0)
        return complain("names", spool_error_text(rc));
    if (rc > 0) {
        path = spool_reader_module(t->reader, module)->path;
        rc = describe_module(t, module);
        query.module = t->modules[module].handle;
    }
    if (rc == 0 && frame.kernel && !t->kernel) {
        memset(&kernel, 0, sizeof kernel);
        kernel.size = sizeof kernel;
        rc = sym_kernel_load(t->symbols, &kernel);
        t->kernel = true;
    }
    if (rc == 0)
        rc = sym_resolve(t->symbols, &query, &chain, &count);
    if (rc < 0)
        return complain("names",
                        rc == SYM_ERR_NOMEM ? sym_error_text(rc) : sym_context_error(t->symbols));

    free(names->chain);
    names->chain = (struct function **)malloc(count * sizeof *names->chain);
    if (!names->chain)
        return complain("names", "out of memory");
    for (; names->count < count; names->count++) {
        const struct sym_frame *f = &chain[names->count];

        names->chain[names->count] = find_function(t, f->name ? f->name : path);
        if (!names->chain[names->count])
            return complain("names", "out of memory");
    }
    return 0;
}

/* ---- counting ---- */

static int count_sample(struct top *t, const struct spool_sample *sample)
{
    uint32_t ids[64], node = sample->stack;
    bool leaf = true;
    size_t n;

    t->samples++;
    t->samples_now++;
    while ((n = spool_reader_walk(t->reader, &node, ids, 64)) > 0) {
        for (size_t i = 0; i < n; i++) {
            struct names *names = &t->names[ids[i]];

            if ((!names->known || (names->one_process && names->pid != sample->pid)) &&
                name_frame(t, names, ids[i], sample->pid) < 0)
                return -1;
            for (size_t k = 0; k < names->count; k++) {
                struct function *f = names->chain[k];

                f->self += leaf;
                f->self_now += leaf;
                leaf = false;
                if (f->last_sample == t->samples)
                    continue; /* it calls itself */
                f->last_sample = t->samples;
                f->total++;
                f->total_now++;
            }
        }
    }
    return 0;
}

/* Says when the capture was made, and in which boot if that is known: whether running processes and the kernel may be
 * asked. */
static int begin_capture(struct top *t, const char *boot_id)
{
    struct sym_capture capture;

    memset(&capture, 0, sizeof capture);
    capture.size = sizeof capture;
    capture.boot_id = boot_id;
    capture.start_time_us = spool_reader_header(t->reader)->start_us;
    capture.has_start_time = capture.start_time_us > 0;
    return sym_capture_begin(t->symbols, &capture) < 0
               ? complain("names", sym_context_error(t->symbols))
               : 0;
}

/* The boot is the last word of a note that stands in front of the first sample with kernel frames. */
static int take_note(struct top *t, const struct spool_annotation *note)
{
    const char *blank = strrchr(note->text, ' ');

    return note->key == SPOOL_NOTE_KERNEL && blank ? begin_capture(t, blank + 1) : 0;
}

/* Makes room for the definitions of a batch, reads its notes and counts its samples. */
static int count_batch(struct top *t, const struct spool_tail_batch *batch)
{
    struct spool_annotation note;
    struct spool_counts counts;
    void *names, *modules;

    spool_reader_counts(t->reader, &counts);
    names = grown(t->names, &t->name_room, counts.frames + (size_t)1, sizeof *t->names);
    if (names)
        t->names = (struct names *)names;
    modules = grown(t->modules, &t->module_room, counts.modules + (size_t)1, sizeof *t->modules);
    if (modules)
        t->modules = (struct module *)modules;
    if (!names || !modules)
        return complain("counting", "out of memory");
    /* Not by the batch's ranges: those of the first one are empty, whatever has been defined. */
    for (; t->modules_seen < counts.modules; t->modules_seen++)
        if (spool_reader_annotation(t->reader, t->modules_seen, &note) && take_note(t, &note) < 0)
            return -1;
    for (size_t i = 0; i < batch->sample_count; i++)
        if (count_sample(t, &batch->samples[i]) < 0)
            return -1;
    return 0;
}

/* ---- the screen ---- */

static int hotter(const void *a, const void *b)
{
    const struct function *x = *(struct function *const *)a, *y = *(struct function *const *)b;

    if (x->self_now != y->self_now)
        return x->self_now < y->self_now ? 1 : -1;
    if (x->total_now != y->total_now)
        return x->total_now < y->total_now ? 1 : -1;
    return by_name(x, y);
}

/* Names come from files and programs of others: nothing in them may steer a terminal. */
static void print_text(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    for (; *at != '\0'; at++) {
        bool c1 = *at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* controls of two bytes in UTF-8 */

        putchar(*at < ' ' || *at == 0x7f || c1 ? '?' : *at);
        at += c1;
    }
}

/* Prints what was counted since the last screen, or with `whole` all of it, and begins to count anew. */
static int print_screen(struct top *t, size_t rows, bool whole)
{
    uint64_t samples = whole ? t->samples : t->samples_now;
    double percent = samples > 0 ? 100.0 / (double)samples : 0;

    for (size_t i = 0; whole && i < t->function_count; i++) {
        t->functions[i]->self_now = t->functions[i]->self;
        t->functions[i]->total_now = t->functions[i]->total;
    }
    if (t->function_count > 0)
        qsort(t->functions, t->function_count, sizeof *t->functions, hotter);
    if (isatty(STDOUT_FILENO))
        printf("\033[H\033[J");
    printf("%s%" PRIu64 " samples, %" PRIu64 " in all\n   self  total  function\n",
           whole ? "the end: " : "", samples, t->samples);
    for (size_t i = 0; i < t->function_count && i < rows; i++) {
        const struct function *f = t->functions[i];

        if (f->total_now == 0)
            break;
        printf("%6.1f%% %5.1f%%  ", percent * (double)f->self_now, percent * (double)f->total_now);
        print_text(f->name);
        putchar('\n');
    }
    if (!whole)
        putchar('\n');
    for (size_t i = 0; i < t->function_count; i++)
        t->functions[i]->self_now = t->functions[i]->total_now = 0;
    t->samples_now = 0;
    return fflush(stdout) == 0 ? 0 : complain("writing", strerror(errno));
}

/* ---- following ---- */

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Until there is more of a pipe, but not for long: a regular file does not tell, and the screen is due. */
static void wait_for_more(int fd)
{
    struct pollfd p;
    struct stat st;

    p.fd = fd;
    p.events = POLLIN;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        p.fd = -1;
    poll(&p, 1, 100);
}

static int follow(struct top *t, int fd, uint64_t idle_ms, size_t rows)
{
    struct spool_tail_batch batch;
    uint64_t screen = now_ms(), fed = screen;
    int rc;

    while ((rc = spool_tail_poll(t->tail, &batch)) >= 0) {
        uint64_t now = now_ms();

        if (count_batch(t, &batch) < 0)
            return -1;
        if (rc > 0)
            fed = now;
        if (batch.ended || batch.finished || interrupted || now - fed >= idle_ms)
            break;
        if (now - screen >= 1000) {
            screen = now;
            if (print_screen(t, rows, false) < 0)
                return -1;
        }
        if (!batch.more)
            wait_for_more(fd);
    }
    if (rc < 0)
        complain("reading", spool_reader_error(t->reader)); /* what was read before counts */
    else if (spool_reader_cut_tail(t->reader))
        complain("note", "the spool ends inside a record");
    return print_screen(t, rows, true) < 0 || rc < 0 ? -1 : 0;
}

/* A recorder makes its file before it writes to it. Of a pipe the header is waited for by libspool. */
static void wait_for_header(int fd, uint64_t idle_ms)
{
    uint64_t begin = now_ms();
    struct stat status;

    while (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0 &&
           !interrupted && now_ms() - begin < idle_ms)
        wait_for_more(fd);
}

/* ---- the command line ---- */

static unsigned long parse_number(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || n == 0 || n > INT32_MAX) {
        complain(text, "not a number from 1 to 2147483647");
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"idle", required_argument, NULL, 'i'},
        {NULL, 0, NULL, 0},
    };
    struct sigaction action;
    struct top t;
    uint64_t idle_ms = UINT64_MAX;
    size_t rows = 20;
    const char *file;
    int fd = STDIN_FILENO, opt, rc = -1;

    while ((opt = getopt_long(argc, argv, "i:n:", options, NULL)) != -1) {
        if (opt == 'i')
            idle_ms = parse_number(optarg) * (uint64_t)1000;
        else if (opt == 'n')
            rows = parse_number(optarg);
        else
            return 2;
    }
    if (argc - optind > 1) {
        complain("usage", "live_top [-i SECONDS] [-n FUNCTIONS] [FILE]");
        return 2;
    }
    file = optind < argc && strcmp(argv[optind], "-") != 0 ? argv[optind] : NULL;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupt;
    action.sa_flags = SA_RESETHAND; /* a second one ends it as ever */
    if (sigaction(SIGINT, &action, NULL) < 0 ||
        (file && (fd = open(file, O_RDONLY | O_CLOEXEC)) < 0)) {
        complain(file ? file : "starting", strerror(errno));
        return 1;
    }
    memset(&t, 0, sizeof t);
    t.tail = spool_tail_new();
    t.symbols = sym_context_new();
    if (!t.tail || !t.symbols) {
        complain("starting", "out of memory");
    } else {
        t.reader = spool_tail_reader(t.tail);
        wait_for_header(fd, idle_ms);
        if (spool_tail_open_fd(t.tail, fd) < 0)
            complain(file ? file : "standard input", spool_reader_error(t.reader));
        else if (sym_context_open(t.symbols, NULL) < 0)
            complain("names", sym_context_error(t.symbols));
        else if (begin_capture(&t, NULL) == 0)
            rc = follow(&t, fd, idle_ms, rows);
    }
    for (size_t i = 0; i < t.name_room; i++)
        free(t.names[i].chain);
    for (size_t i = 0; i < t.function_count; i++) {
        tdelete(t.functions[i], &t.tree, by_name);
        free(t.functions[i]);
    }
    free(t.names);
    free(t.functions);
    free(t.modules);
    sym_context_free(t.symbols);
    spool_tail_free(t.tail);
    if (file)
        close(fd);
    return rc < 0;
}
