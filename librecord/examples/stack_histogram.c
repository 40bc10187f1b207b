/* SPDX-License-Identifier: MIT */
/*
 * stack_histogram [-k] [-n STACKS] [-d SECONDS] {-p PID | COMMAND [ARGUMENT]...}
 *
 * Records a command, or a process that runs already, and prints its heaviest stacks: how often each was sampled, its
 * share, the process, and the frames by name, innermost first. Stacks are equal when all their addresses are.
 *
 * There is no spool on disk. librecord hands the bytes of the spool to feed(), which puts them into a pipe, and
 * libspool's reader takes them out at the other end. It is opened as one of a tail, so that an empty pipe is not the
 * end. One thread does both: what is in the pipe is counted after each poll, and whenever the pipe is full. What is
 * kept is each module, frame and stack once, and a count for each stack of a process, however long it records.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pipe2, and what POSIX adds to C, with -std=c11 too */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spool/record.h>
#include <spool/spool.h>
#include <spool/sym.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct entry {
    uint64_t count; /* 0: the slot is free */
    int32_t pid;
    uint32_t stack;
};

struct histogram {
    int pipe[2];
    struct spool_reader *reader;
    struct sym_context *symbols;
    struct entry
        *slots; /* a hash table with room to spare; at the end sorted, the heaviest first */
    size_t used, capacity; /* capacity: 0 or a power of two */
    uint64_t samples;
    uint32_t *handles; /* libsym's, by module id */
};

static volatile sig_atomic_t interrupted;

static void interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "stack_histogram: %s: %s\n", what, why);
    return -1;
}

/* ---- counting ---- */

/* The slot of a stack, or the free one where it belongs. */
static struct entry *find(struct histogram *h, int32_t pid, uint32_t stack)
{
    uint64_t hash = ((uint64_t)(uint32_t)pid << 32 | stack) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 32) & (h->capacity - 1);

    while (h->slots[at].count > 0 && (h->slots[at].pid != pid || h->slots[at].stack != stack))
        at = (at + 1) & (h->capacity - 1);
    return &h->slots[at];
}

static int grow(struct histogram *h)
{
    struct entry *old = h->slots;
    size_t count = h->capacity;

    h->capacity = count > 0 ? 2 * count : 1024;
    h->slots = (struct entry *)calloc(h->capacity, sizeof *h->slots);
    for (size_t i = 0; h->slots && i < count; i++)
        if (old[i].count > 0)
            *find(h, old[i].pid, old[i].stack) = old[i];
    free(old);
    return h->slots ? 0 : complain("counting", "out of memory");
}

static int count_sample(struct histogram *h, const struct spool_sample *sample)
{
    struct entry *e;

    if (2 * h->used >= h->capacity && grow(h) < 0)
        return -1;
    e = find(h, sample->pid, sample->stack);
    if (e->count++ == 0) {
        e->pid = sample->pid;
        e->stack = sample->stack;
        h->used++;
    }
    h->samples++;
    return 0;
}

/* Counts what is in the pipe by now. Nothing is done about definitions: the reader keeps them. */
static int count_samples(struct histogram *h)
{
    struct spool_record rec;
    int rc;

    while ((rc = spool_reader_next(h->reader, &rec)) > 0)
        if (rec.type == SPOOL_RECORD_SAMPLE && count_sample(h, &rec.sample) < 0)
            return -1;
    return rc < 0 ? complain("reading", spool_reader_error(h->reader)) : 0;
}

/* Takes the spool's bytes from the session. It must not call back into that, but the reader is free. */
static int feed(void *user, const void *data, size_t size)
{
    struct histogram *h = (struct histogram *)user;
    const char *at = (const char *)data;

    while (size > 0) {
        ssize_t n = write(h->pipe[1], at, size);

        if (n >= 0) {
            at += n;
            size -= (size_t)n;
        } else if (errno == EAGAIN) { /* full */
            if (count_samples(h) < 0)
                return EIO;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* ---- recording ---- */

static void log_warning(void *user, enum record_log_level level, const char *text)
{
    (void)user;
    if (level >= RECORD_LOG_WARNING)
        complain("note", text);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* From the exec, or the attachment, until the targets have ended, the time is over or somebody interrupts. */
static int record(struct histogram *h, struct record_session *s, struct record_command *c,
                  const struct record_options *options, pid_t pid, uint64_t limit_ms, char **argv)
{
    uint64_t begin;
    int rc = record_session_open_callback(s, feed, h, options);

    if (rc == 0 && spool_reader_open_tail_fd(h->reader, h->pipe[0]) < 0) /* the header is there */
        return complain("reading", spool_reader_error(h->reader));
    if (rc == 0 && pid > 0) {
        rc = record_session_attach(s, pid, RECORD_ATTACH_DESCENDANTS);
    } else if (rc == 0) {
        rc = record_command_prepare(c, argv, NULL);
        if (rc == 0)
            rc = record_session_attach_command(s, c);
        if (rc == 0)
            rc = record_command_run(c);
    }
    begin = now_ms();
    while (rc >= 0 && !interrupted && record_session_process_count(s, 0) > 0 &&
           now_ms() - begin < limit_ms) {
        rc = record_session_poll(s, 100);
        if (rc >= 0 && count_samples(h) < 0)
            return -1;
    }
    if (rc >= 0)
        rc = record_session_finish(s);
    if (rc == RECORD_ERR_COMMAND)
        return complain(argv[0], strerror(record_command_errno(c)));
    if (rc < 0)
        return complain("recording", record_session_error(s));
    return count_samples(h);
}

/* ---- names ---- */

/* Tells libsym when the capture was made, so that running processes may be asked, and what was mapped. No file is
 * opened before an address in it is asked for, and none is used whose build id is not the recorded one. */
static int open_symbols(struct histogram *h)
{
    struct sym_capture capture;
    struct sym_kernel kernel;
    struct sym_module module;
    struct spool_counts counts;
    int rc;

    spool_reader_counts(h->reader, &counts);
    h->handles = (uint32_t *)malloc((counts.modules + (size_t)1) * sizeof *h->handles);
    memset(&capture, 0, sizeof capture);
    capture.size = sizeof capture;
    capture.has_start_time = true;
    capture.start_time_us = spool_reader_header(h->reader)->start_us;
    memset(&kernel, 0, sizeof kernel);
    kernel.size = sizeof kernel;
    if (!h->handles ||
        spool_reader_kernel_addresses(h->reader, &kernel.needed, &kernel.needed_count) < 0)
        return complain("names", "out of memory");
    rc = sym_context_open(h->symbols, NULL);
    if (rc == 0)
        rc = sym_capture_begin(h->symbols, &capture);
    if (rc == 0 && kernel.needed_count > 0)
        rc = sym_kernel_load(h->symbols, &kernel);
    for (uint32_t id = 0; rc == 0 && id < counts.modules; id++) {
        const struct spool_module *m = spool_reader_module(h->reader, id);

        if (!m) /* the id of an annotation */
            continue;
        memset(&module, 0, sizeof module);
        module.size = sizeof module;
        module.path = m->path;
        module.path_size = m->path_size;
        module.start = m->start;
        module.end = m->end;
        module.file_offset = m->file_offset;
        module.kernel = m->kernel;
        module.pid = m->pid;
        module.build_id = spool_reader_build_id(h->reader, id, &module.build_id_size);
        rc = sym_module_add(h->symbols, &module, &h->handles[id]);
    }
    return rc < 0 ? complain("names", sym_context_error(h->symbols)) : 0;
}

/* ---- the histogram ---- */

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

static void print_process(const struct histogram *h, int32_t pid)
{
    struct spool_annotation note;
    struct spool_counts counts;

    spool_reader_counts(h->reader, &counts);
    for (uint32_t id = counts.modules; id-- > 0;) {
        if (spool_reader_annotation(h->reader, id, &note) && note.key == SPOOL_NOTE_COMM &&
            note.pid == pid) {
            print_text(note.text); /* the latest name */
            break;
        }
    }
    printf(" %" PRId32 "\n", pid);
}

/* A frame is the function it is in, after all those that the compiler inlined there. */
static int print_frame(struct histogram *h, const struct spool_frame *frame, int32_t pid)
{
    const struct sym_frame *chain;
    const struct spool_module *m = NULL;
    struct sym_query query;
    size_t count;
    uint32_t module;
    int rc;

    if (frame->kind == SPOOL_FRAME_TRUNCATED)
        return printf("        [truncated]\n") < 0 ? -1 : 0;
    memset(&query, 0, sizeof query);
    query.pid = pid;
    query.kernel = frame->kernel;
    query.python_allowed = true;
    query.abs = frame->abs;
    query.module = SYM_NO_MODULE;
    rc = spool_reader_locate(h->reader, frame->id, pid, &module, &query.rel);
    if (rc < 0)
        return complain("names", spool_error_text(rc));
    if (rc > 0) {
        query.module = h->handles[module];
        m = spool_reader_module(h->reader, module);
    }
    if (sym_resolve(h->symbols, &query, &chain, &count) < 0)
        return complain("names", sym_context_error(h->symbols));
    for (size_t i = 0; i < count; i++) {
        printf("        ");
        if (chain[i].name) {
            print_text(chain[i].name);
            printf(chain[i].inlined ? " (inlined)\n" : "+0x%" PRIx64 "\n", chain[i].offset);
        } else {
            printf("0x%" PRIx64 " in ", frame->abs);
            print_text(m ? m->path : "no file");
            putchar('\n');
        }
    }
    return 0;
}

static int print_stack(struct histogram *h, const struct entry *e)
{
    uint32_t ids[64], node = e->stack;
    struct spool_frame frame;
    size_t n;

    printf("\n%8" PRIu64 " %5.1f%%  ", e->count, 100.0 * (double)e->count / (double)h->samples);
    print_process(h, e->pid);
    while ((n = spool_reader_walk(h->reader, &node, ids, 64)) > 0)
        for (size_t i = 0; i < n; i++)
            if (spool_reader_frame(h->reader, ids[i], &frame) && print_frame(h, &frame, e->pid) < 0)
                return -1;
    return 0;
}

static int heavier(const void *a, const void *b)
{
    const struct entry *x = (const struct entry *)a, *y = (const struct entry *)b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

static int print_histogram(struct histogram *h, unsigned long stacks)
{
    if (h->used > 0)
        qsort(h->slots, h->capacity, sizeof *h->slots, heavier); /* free slots to the end */
    for (size_t i = 0; i < h->used && i < stacks; i++)
        if ((i == 0 && open_symbols(h) < 0) || print_stack(h, &h->slots[i]) < 0)
            return -1;
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : complain("writing", strerror(errno));
}

/* A standard descriptor that is closed would be given to the pipe, and the histogram would go into that. */
static void hold_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
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
    struct record_session *s;
    struct record_command *c;
    struct record_options options;
    struct record_summary sum;
    struct sigaction action;
    struct histogram h;
    unsigned long stacks = 10;
    uint64_t limit_ms = UINT64_MAX;
    pid_t pid = 0;
    int opt, rc = -1;

    hold_standard_descriptors();
    record_options_init(&options, sizeof options);
    while ((opt = getopt(argc, argv, "+d:kn:p:")) != -1) {
        if (opt == 'd')
            limit_ms = parse_number(optarg) * (uint64_t)1000;
        else if (opt == 'k')
            options.kernel = true;
        else if (opt == 'n')
            stacks = parse_number(optarg);
        else if (opt == 'p')
            pid = (pid_t)parse_number(optarg);
        else
            return 2;
    }
    if ((pid > 0) == (optind < argc)) {
        complain("usage", "stack_histogram [-k] [-n STACKS] [-d SECONDS] {-p PID | COMMAND ...}");
        return 2;
    }
    memset(&action, 0, sizeof action);
    action.sa_handler =
        interrupt; /* ends the recording; the command has the signal's default action */
    memset(&h, 0, sizeof h);
    s = record_session_new();
    c = record_command_new();
    h.reader = spool_reader_new();
    h.symbols = sym_context_new();
    if (!s || !c || !h.reader || !h.symbols) {
        complain("starting", "out of memory");
    } else if (sigaction(SIGINT, &action, NULL) < 0 || pipe2(h.pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
        complain("starting", strerror(errno));
    } else {
        record_session_set_log(s, log_warning, NULL);
        rc = record(&h, s, c, &options, pid, limit_ms, argv + optind);
        record_session_summary(s, &sum);
        if (rc == 0) {
            printf("%" PRIu64 " samples of %zu stacks, %" PRIu64 " lost, %" PRIu64 " truncated\n",
                   h.samples, h.used, sum.lost_samples, sum.truncated_stacks);
            rc = print_histogram(&h, stacks);
        }
        close(h.pipe[0]);
        close(h.pipe[1]);
    }
    record_session_free(s);
    record_command_free(c); /* one that still runs is left alone */
    sym_context_free(h.symbols);
    spool_reader_free(h.reader);
    free(h.slots);
    free(h.handles);
    return rc < 0;
}
