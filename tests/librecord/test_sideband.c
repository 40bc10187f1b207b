/* SPDX-License-Identifier: MIT */
/*
 * What a session makes of the kernel's records, made by hand: no event is opened. Processes have ids above the
 * largest that Linux gives out, so that /proc has nothing on them.
 */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "session.h"

#define PID 5000000 /* PID_MAX_LIMIT is 4,194,304 */
#define CHILD 5000001
#define OTHER 5000002

/* ---- a session without events ---- */

struct fixture {
    struct record_session *s;
    char path[64];
    int fd;
    uint64_t time_ns;
};

static void open_fixture(struct fixture *f, bool no_inherit)
{
    struct record_options o;
    struct process *p;

    strcpy(f->path, "/tmp/test_sideband.XXXXXX");
    f->fd = mkstemp(f->path);
    assert_true(f->fd >= 0);
    f->time_ns = 1000;
    f->s = record_session_new();
    assert_non_null(f->s);
    record_options_init(&o, sizeof o);
    o.no_inherit = no_inherit;
    assert_int_equal(record_session_open_fd(f->s, f->fd, &o), 0);
    f->s->config.settled = true;
    recordint_event_layout(&f->s->config, &f->s->layout);
    p = recordint_process_new(f->s, PID);
    assert_non_null(p);
    p->mode = RECORD_MODE_INHERIT;
    assert_non_null(recordint_thread_get(f->s, p, PID));
    assert_int_equal(recordint_note_session(f->s, PID), 0);
}

/* Ends the recording and returns its records as text, one a line; the caller frees it. */
static char *finish(struct fixture *f)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int rc;

    assert_int_equal(record_session_finish(f->s), 0);
    record_session_free(f->s);
    assert_int_equal(lseek(f->fd, 0, SEEK_SET), 0);
    assert_int_equal(spool_reader_open_fd(r, f->fd), 0);
    while ((rc = spool_reader_next(r, &rec)) > 0) {
        switch (rec.type) {
        case SPOOL_RECORD_MODULE:
            fprintf(out, "module %d %llx-%llx %s\n", rec.module.pid,
                    (unsigned long long)rec.module.start, (unsigned long long)rec.module.end,
                    rec.module.path);
            break;
        case SPOOL_RECORD_PYTHON:
            fprintf(out, "python %d %d at %llu\n", rec.python.pid, rec.python.on,
                    (unsigned long long)rec.python.time_ns);
            break;
        case SPOOL_RECORD_DEACTIVATE_PROCESS:
            fprintf(out, "retire %d\n", rec.deactivated_pid);
            break;
        case SPOOL_RECORD_SAMPLE: {
            uint32_t node = rec.sample.stack;
            struct spool_stack n;
            struct spool_frame frame;

            fprintf(out, "sample %d/%d", rec.sample.pid, (int)rec.sample.tid);
            for (; node != SPOOL_NO_ID; node = n.prefix) {
                assert_true(spool_reader_stack(r, node, &n));
                assert_true(spool_reader_frame(r, n.frame, &frame));
                fprintf(out,
                        frame.kind == SPOOL_FRAME_TRUNCATED ? " marker"
                        : frame.kind == SPOOL_FRAME_PINNED  ? " in %llx"
                        : frame.kernel                      ? " kernel %llx"
                                                            : " at %llx",
                        (unsigned long long)frame.abs);
            }
            fprintf(out, "\n");
            break;
        }
        case SPOOL_RECORD_ANNOTATION:
            if (rec.annotation.key == SPOOL_NOTE_COMM || rec.annotation.key == SPOOL_NOTE_THREAD ||
                rec.annotation.key == SPOOL_NOTE_END || rec.annotation.key == SPOOL_NOTE_LOST)
                fprintf(out, "%.*s %d %s\n", (int)rec.annotation.key_size, rec.annotation.key_text,
                        rec.annotation.pid, rec.annotation.value);
            break;
        default:
            break;
        }
    }
    assert_int_equal(rc, 0);
    assert_false(spool_reader_cut_tail(r));
    spool_reader_free(r);
    fclose(out);
    close(f->fd);
    unlink(f->path);
    return text;
}

static void expect(struct fixture *f, const char *expected)
{
    char *text = finish(f);

    assert_string_equal(text, expected);
    free(text);
}

/* ---- records ---- */

struct bytes {
    _Alignas(8) uint8_t data[4096];
    size_t size;
};

static void put(struct bytes *b, const void *data, size_t size)
{
    assert_true(b->size + size <= sizeof b->data);
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void put32(struct bytes *b, uint32_t v)
{
    put(b, &v, sizeof v);
}

static void put64(struct bytes *b, uint64_t v)
{
    put(b, &v, sizeof v);
}

static void put_text(struct bytes *b, const char *text)
{
    static const char zeros[8];
    size_t size = strlen(text) + 1;

    put(b, text, size);
    put(b, zeros, (8 - size % 8) % 8);
}

static void begin(struct bytes *b, uint32_t type, uint16_t misc)
{
    struct perf_event_header header = {.type = type, .misc = misc};

    b->size = 0;
    put(b, &header, sizeof header);
}

static void send(struct fixture *f, struct bytes *b)
{
    uint16_t size = (uint16_t)b->size;

    memcpy(b->data + offsetof(struct perf_event_header, size), &size, sizeof size);
    assert_int_equal(recordint_record(f->s, b->data, b->size), 0);
}

/* The trailer of records that are no samples: TID, TIME, CPU, IDENTIFIER. */
static void send_with_id(struct fixture *f, struct bytes *b, int pid, int tid)
{
    put32(b, (uint32_t)pid);
    put32(b, (uint32_t)tid);
    put64(b, f->time_ns++);
    put64(b, 0);
    put64(b, 1);
    send(f, b);
}

static void mmap2(struct fixture *f, int pid, uint64_t start, uint64_t size, const char *path)
{
    struct bytes b;

    begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    put32(&b, (uint32_t)pid);
    put32(&b, (uint32_t)pid);
    put64(&b, start);
    put64(&b, size);
    put64(&b, 0);
    put32(&b, 0);
    put32(&b, 0);
    put64(&b, 77);
    put64(&b, 0);
    put32(&b, 5); /* PROT_READ | PROT_EXEC */
    put32(&b, 2);
    put_text(&b, path);
    send_with_id(f, &b, pid, pid);
}

static void comm(struct fixture *f, int pid, int tid, const char *name, bool exec)
{
    struct bytes b;

    begin(&b, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
    put32(&b, (uint32_t)pid);
    put32(&b, (uint32_t)tid);
    put_text(&b, name);
    send_with_id(f, &b, pid, tid);
}

static void task(struct fixture *f, uint32_t type, int pid, int tid, int ppid, int ptid)
{
    struct bytes b;

    begin(&b, type, 0);
    put32(&b, (uint32_t)pid);
    put32(&b, (uint32_t)ppid);
    put32(&b, (uint32_t)tid);
    put32(&b, (uint32_t)ptid);
    put64(&b, f->time_ns);
    send_with_id(f, &b, ppid, ptid);
}

/* A sample without stack bytes: its first frame and the marker. */
static void sample_in(struct fixture *f, int pid, int tid, uint64_t ip, uint16_t cpu_mode)
{
    struct bytes b;
    uint64_t mask = f->s->layout.sample_regs_user;

    begin(&b, PERF_RECORD_SAMPLE, cpu_mode);
    put64(&b, 1);
    put64(&b, ip);
    put32(&b, (uint32_t)pid);
    put32(&b, (uint32_t)tid);
    put64(&b, f->time_ns++);
    put64(&b, 0);
    put64(&b, 1);
    put64(&b, PERF_SAMPLE_REGS_ABI_64);
    for (uint64_t left = mask; left != 0; left &= left - 1)
        put64(&b, ip); /* whatever register it is */
    put64(&b, 0);      /* no stack */
    send(f, &b);
}

static void sample(struct fixture *f, int pid, int tid, uint64_t ip)
{
    sample_in(f, pid, tid, ip, PERF_RECORD_MISC_USER);
}

/* ---- tests ---- */

static void a_fork_gives_the_child_its_parents_mappings_name_and_runtime(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    mmap2(&f, PID, 0x1000, 0x1000, "/usr/bin/python3.12");
    comm(&f, PID, PID, "server", false);
    task(&f, PERF_RECORD_FORK, CHILD, CHILD, PID, PID);
    sample(&f, CHILD, CHILD, 0x1234);
    expect(&f, "module 5000000 1000-2000 /usr/bin/python3.12\n"
               "python 5000000 1 at 1000\n"
               "comm 5000000 server\n"
               "python 5000001 1 at 1002\n"
               "module 5000001 1000-2000 /usr/bin/python3.12\n"
               "comm 5000001 server\n"
               "thread 5000001 5000001 server\n"
               "sample 5000001/5000001 in 1234 marker\n"
               "end 5000000 1 0 1\n");
}

static void an_exec_drops_what_was_there(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    mmap2(&f, PID, 0x1000, 0x1000, "/usr/lib/libpython3.12.so.1.0");
    sample(&f, PID, PID, 0x1234);
    comm(&f, PID, PID, "next", true);
    sample(&f, PID, PID, 0x1234);
    mmap2(&f, PID, 0x5000, 0x1000, "/bin/next");
    sample(&f, PID, PID, 0x5234);
    expect(&f, "module 5000000 1000-2000 /usr/lib/libpython3.12.so.1.0\n"
               "python 5000000 1 at 1000\n"
               "sample 5000000/5000000 in 1234 marker\n"
               "retire 5000000\n"
               "python 5000000 0 at 1002\n"
               "comm 5000000 next\n"
               "thread 5000000 5000000 next\n"
               "sample 5000000/5000000 at 1234 marker\n"
               "module 5000000 5000-6000 /bin/next\n"
               "sample 5000000/5000000 in 5234 marker\n"
               "end 5000000 3 0 3\n");
}

static void a_process_lives_until_its_last_thread_ends(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    mmap2(&f, PID, 0x1000, 0x1000, "/bin/a");
    task(&f, PERF_RECORD_FORK, PID, PID + 100, PID, PID);
    task(&f, PERF_RECORD_EXIT, PID, PID, PID, PID);
    sample(&f, PID, PID + 100, 0x1234);
    assert_non_null(recordint_process_find(f.s, PID));
    task(&f, PERF_RECORD_EXIT, PID, PID + 100, PID, PID);
    assert_null(recordint_process_find(f.s, PID));
    expect(&f, "module 5000000 1000-2000 /bin/a\n"
               "sample 5000000/5000100 in 1234 marker\n"
               "retire 5000000\n"
               "end 5000000 1 0 1\n");
}

static void children_are_left_alone_without_inheriting(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, true);
    mmap2(&f, PID, 0x1000, 0x1000, "/bin/a");
    task(&f, PERF_RECORD_FORK, CHILD, CHILD, PID, PID);
    assert_null(recordint_process_find(f.s, CHILD));
    mmap2(&f, CHILD, 0x9000, 0x1000, "/bin/b");
    expect(&f, "module 5000000 1000-2000 /bin/a\n"
               "end 5000000 0 0 0\n");
}

static void processes_that_nobody_asked_for_are_not_recorded(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    f.s->counts.mode = RECORD_MODE_SYSTEM_WIDE;
    mmap2(&f, OTHER, 0x1000, 0x1000, "/bin/other");
    comm(&f, OTHER, OTHER, "other", true);
    task(&f, PERF_RECORD_FORK, CHILD, CHILD, OTHER, OTHER);
    sample(&f, OTHER, OTHER, 0x1234);
    expect(&f, "end 5000000 0 0 0\n");
}

static void a_name_is_noted_before_the_first_sample_and_when_it_changes(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    task(&f, PERF_RECORD_FORK, PID, PID + 7, PID, PID);
    comm(&f, PID, PID + 7, "worker-0", false);
    comm(&f, PID, PID + 7, "worker-1", false);
    sample(&f, PID, PID + 7, 0x10);
    sample(&f, PID, PID + 7, 0x10);
    comm(&f, PID, PID + 7, "idle", false);
    expect(&f, "thread 5000000 5000007 worker-1\n"
               "sample 5000000/5000007 at 10 marker\n"
               "sample 5000000/5000007 at 10 marker\n"
               "thread 5000000 5000007 idle\n"
               "end 5000000 2 0 2\n");
}

static void losses_are_in_the_spool_and_in_the_summary(void **state)
{
    struct record_summary summary;
    struct fixture f;
    struct bytes b;

    (void)state;
    open_fixture(&f, false);
    begin(&b, PERF_RECORD_LOST, 0);
    put64(&b, 1);
    put64(&b, 41);
    send_with_id(&f, &b, PID, PID);
    assert_true(f.s->loss_seen);
    assert_int_equal(recordint_recover(f.s), 0);
    record_session_summary(f.s, &summary);
    assert_int_equal(summary.lost_events, 41);
    assert_int_equal(summary.lifecycle_gaps, 1);
    expect(&f, "lost 5000000 41\n"
               "end 5000000 0 41 0\n");
}

static void nothing_is_sampled_of_a_process_that_has_ended(void **state)
{
    struct fixture f;
    struct record_summary summary;

    (void)state;
    open_fixture(&f, false);
    f.s->threads_unsure = true; /* as with every process attached to: forks may have been missed */
    mmap2(&f, PID, 0x1000, 0x1000, "/bin/server");
    task(&f, PERF_RECORD_FORK, CHILD, CHILD, PID, PID);
    task(&f, PERF_RECORD_EXIT, CHILD, CHILD, PID, PID);
    sample(&f, CHILD, CHILD, 0x1234);
    record_session_summary(f.s, &summary);
    assert_int_equal(summary.missing_pid, 1);
    expect(&f, "module 5000000 1000-2000 /bin/server\n"
               "module 5000001 1000-2000 /bin/server\n"
               "retire 5000001\n"
               "end 5000000 0 0 0\n");
}

static void samples_that_say_not_whose_they_are_are_counted(void **state)
{
    struct record_summary summary;
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    sample(&f, -1, -1, 0x10);
    sample(&f, PID, -1, 0x10);
    sample(&f, PID, 0, 0x10);
    record_session_summary(f.s, &summary);
    assert_int_equal(summary.sample_events, 3);
    assert_int_equal(summary.samples, 0);
    assert_int_equal(summary.missing_pid, 1);
    assert_int_equal(summary.missing_tid, 1);
    assert_int_equal(summary.idle_tid, 1);
    expect(&f, "end 5000000 0 0 0\n");
}

static void interpreters_are_known_by_their_file_name(void **state)
{
    static const char *const yes[] = {"/usr/bin/python",
                                      "/usr/bin/python3",
                                      "python3.12",
                                      "/x/python3.13t",
                                      "/usr/lib/libpython3.12.so.1.0",
                                      "/l/libpython3.13d.so",
                                      "/usr/bin/python3.12 (deleted)",
                                      NULL};
    static const char *const no[] = {"/usr/bin/pythonista",
                                     "/usr/bin/python3-config",
                                     "/usr/bin/python3.12.py",
                                     "/usr/lib/libpython.so",
                                     "/usr/lib/libpythonic.so",
                                     "/opt/python/run",
                                     "",
                                     "/usr/bin/python3.",
                                     NULL};

    (void)state;
    for (size_t i = 0; yes[i] != NULL; i++)
        if (!recordint_is_python(yes[i]))
            fail_msg("%s is an interpreter", yes[i]);
    for (size_t i = 0; no[i] != NULL; i++)
        if (recordint_is_python(no[i]))
            fail_msg("%s is no interpreter", no[i]);
}

static void ids_below_one_are_left_alone(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    task(&f, PERF_RECORD_FORK, 0, CHILD, PID, PID);
    task(&f, PERF_RECORD_FORK, -1, CHILD, PID, PID);
    task(&f, PERF_RECORD_FORK, PID, 0, PID, PID);
    comm(&f, PID, 0, "none", false);
    comm(&f, PID, -1, "none", true);
    task(&f, PERF_RECORD_EXIT, PID, 0, PID, PID);
    assert_int_equal(f.s->processes.count, 1);
    assert_int_equal(f.s->threads.count, 1);
    assert_non_null(recordint_process_find(f.s, PID));
    expect(&f, "end 5000000 0 0 0\n");
}

static void a_mapping_older_than_the_maps_that_were_read_is_nothing_new(void **state)
{
    struct process *p;
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    p = recordint_process_find(f.s, PID);
    p->maps_ns = 1001;
    mmap2(&f, PID, 0x1000, 0x1000, "/lib/before.so"); /* at 1000 */
    mmap2(&f, PID, 0x1000, 0x1000, "/lib/after.so");
    p->maps_ns = UINT64_MAX;
    comm(&f, PID, PID, "next",
         true); /* whatever was read, the new program's mappings come as records */
    mmap2(&f, PID, 0x1000, 0x1000, "/bin/next");
    expect(&f, "module 5000000 1000-2000 /lib/after.so\n"
               "retire 5000000\n"
               "comm 5000000 next\n"
               "module 5000000 1000-2000 /bin/next\n"
               "end 5000000 0 0 0\n");
}

static void threads_end_in_any_order(void **state)
{
    struct process *p;
    struct fixture f;
    size_t left = 0;

    (void)state;
    open_fixture(&f, false);
    for (int i = 1; i <= 9; i++)
        task(&f, PERF_RECORD_FORK, PID, PID + i, PID, PID);
    for (int i = 1; i <= 9; i += 2) /* last, first and between */
        task(&f, PERF_RECORD_EXIT, PID, PID + i, PID, PID);
    task(&f, PERF_RECORD_EXIT, PID, PID, PID, PID);
    p = recordint_process_find(f.s, PID);
    assert_non_null(p);
    for (const struct thread *t = p->threads; t != NULL; t = t->next, left++)
        assert_int_equal(t->tid % 2, 0);
    assert_int_equal(left, 4);
    for (int i = 8; i >= 2; i -= 2)
        task(&f, PERF_RECORD_EXIT, PID, PID + i, PID, PID);
    assert_null(recordint_process_find(f.s, PID));
    assert_int_equal(f.s->threads.count, 0);
    expect(&f, "end 5000000 0 0 0\n");
}

/* After a loss, a process that no record told of is one if it is there still: this one. */
static void a_child_whose_fork_was_lost_is_recorded(void **state)
{
    struct record_summary summary;
    struct fixture f;
    int self = getpid();
    char line[64], *text;

    (void)state;
    open_fixture(&f, false);
    sample(&f, self, self, 0x10);
    f.s->threads_unsure = true;
    sample(&f, OTHER, OTHER, 0x10);
    assert_null(recordint_process_find(f.s, OTHER));
    sample(&f, self, self, 0x10);
    assert_non_null(recordint_process_find(f.s, self));
    record_session_summary(f.s, &summary);
    assert_int_equal(summary.missing_pid, 2);
    assert_int_equal(summary.processes, 2);
    text = finish(&f);
    snprintf(line, sizeof line, "\nsample %d/%d at 10 marker\n", self, self);
    assert_non_null(strstr(text, line));
    free(text);
}

static void a_command_that_starts_while_sampling_is_off_is_not_sampled(void **state)
{
    struct process *p;
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    p = recordint_process_find(f.s, PID);
    p->before_exec = true;
    assert_int_equal(record_session_enable(f.s), 0);
    assert_int_equal(record_session_disable(f.s), 0);
    comm(&f, PID, PID, "quiet", true);
    sample(&f, PID, PID, 0x10);
    assert_int_equal(record_session_enable(f.s), 0);
    sample(&f, PID, PID, 0x20);
    assert_int_equal(record_session_disable(f.s), 0);
    sample(&f, PID, PID, 0x30); /* still in a ring when it was switched off */
    expect(&f, "comm 5000000 quiet\n"
               "thread 5000000 5000000 quiet\n"
               "sample 5000000/5000000 at 20 marker\n"
               "sample 5000000/5000000 at 30 marker\n"
               "end 5000000 2 0 2\n");
}

/* Any bytes may stand in a ring: nothing crashes, and the session goes on. */
static void damaged_records_are_counted(void **state)
{
    struct record_summary summary;
    struct fixture f;
    struct bytes b;

    (void)state;
    open_fixture(&f, false);
    srand(3);
    for (int i = 0; i < 20000; i++) {
        struct perf_event_header header;
        size_t size = 8 + (size_t)(rand() % 40) * 8;

        for (size_t k = 0; k < size; k++)
            b.data[k] = (uint8_t)rand();
        header = (struct perf_event_header){
            .type = (uint32_t)(rand() % 22), .misc = (uint16_t)rand(), .size = (uint16_t)size};
        memcpy(b.data, &header, sizeof header);
        if (size >= 16 && rand() % 2) {
            int32_t pid = PID;

            memcpy(b.data + 8, &pid, sizeof pid);
        }
        assert_int_equal(recordint_record(f.s, b.data, size), 0);
    }
    record_session_summary(f.s, &summary);
    assert_true(summary.corrupt_records > 0);
    free(finish(&f));
}

/* A recording may go on for years: nothing about time is kept in 32 bits, neither as nanoseconds nor coarser. */
static void times_far_apart_are_kept(void **state)
{
    static const uint64_t times_ns[] = {
        1000,
        (UINT64_C(1) << 32) - 1, /* 4.3 s */
        (UINT64_C(1) << 32) + 1,
        UINT64_C(3600) * 1000000000,
        (UINT64_C(1) << 32) * 1000000, /* 50 days, in milliseconds */
        (UINT64_C(1) << 32) * 100000000 - 1,
        (UINT64_C(1) << 32) * 100000000, /* 14 years, in the rounds of generated code */
        (UINT64_C(1) << 62),
        5000, /* a clock that goes back is no error */
    };
    const size_t count = sizeof times_ns / sizeof times_ns[0];
    struct spool_reader *r;
    struct spool_record rec;
    struct fixture f;
    size_t seen = 0;
    int rc;

    (void)state;
    open_fixture(&f, false);
    mmap2(&f, PID, 0x1000, 0x1000, "/bin/a");
    for (size_t i = 0; i < count; i++) {
        f.time_ns = times_ns[i];
        sample(&f, PID, PID, 0x1234);
    }
    assert_int_equal(record_session_finish(f.s), 0);
    record_session_free(f.s);
    assert_int_equal(lseek(f.fd, 0, SEEK_SET), 0);
    r = spool_reader_new();
    assert_non_null(r);
    assert_int_equal(spool_reader_open_fd(r, f.fd), 0);
    while ((rc = spool_reader_next(r, &rec)) > 0) {
        if (rec.type != SPOOL_RECORD_SAMPLE)
            continue;
        assert_true(seen < count);
        assert_int_equal(rec.sample.time_ns, times_ns[seen++]);
    }
    assert_int_equal(rc, 0);
    assert_int_equal(seen, count);
    spool_reader_free(r);
    close(f.fd);
    unlink(f.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_gives_the_child_its_parents_mappings_name_and_runtime),
        cmocka_unit_test(an_exec_drops_what_was_there),
        cmocka_unit_test(a_process_lives_until_its_last_thread_ends),
        cmocka_unit_test(children_are_left_alone_without_inheriting),
        cmocka_unit_test(processes_that_nobody_asked_for_are_not_recorded),
        cmocka_unit_test(a_name_is_noted_before_the_first_sample_and_when_it_changes),
        cmocka_unit_test(losses_are_in_the_spool_and_in_the_summary),
        cmocka_unit_test(nothing_is_sampled_of_a_process_that_has_ended),
        cmocka_unit_test(samples_that_say_not_whose_they_are_are_counted),
        cmocka_unit_test(interpreters_are_known_by_their_file_name),
        cmocka_unit_test(ids_below_one_are_left_alone),
        cmocka_unit_test(a_mapping_older_than_the_maps_that_were_read_is_nothing_new),
        cmocka_unit_test(threads_end_in_any_order),
        cmocka_unit_test(a_child_whose_fork_was_lost_is_recorded),
        cmocka_unit_test(a_command_that_starts_while_sampling_is_off_is_not_sampled),
        cmocka_unit_test(damaged_records_are_counted),
        cmocka_unit_test(times_far_apart_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
