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
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_kernel.h"
#include "fake_ring.h"

#define PID 5000000 /* PID_MAX_LIMIT is 4,194,304 */
#define CHILD 5000001
#define OTHER 5000002

/* ---- a session without events ---- */

struct fixture {
    struct fake_kernel kernel;
    char path[64];
    int fd;
};

static void open_fixture(struct fixture *f, bool no_inherit)
{
    struct record_options o;
    struct process *p;

    strcpy(f->path, "/tmp/test_sideband.XXXXXX");
    f->fd = mkstemp(f->path);
    assert_true(f->fd >= 0);
    f->kernel.time_ns = 1000;
    f->kernel.step_ns = 1;
    f->kernel.s = record_session_new();
    assert_non_null(f->kernel.s);
    record_options_init(&o, sizeof o);
    o.no_inherit = no_inherit;
    assert_int_equal(record_session_open_fd(f->kernel.s, f->fd, &o), 0);
    f->kernel.s->config.settled = true;
    recordint_event_layout(&f->kernel.s->config, &f->kernel.s->layout);
    p = recordint_process_new(f->kernel.s, PID);
    assert_non_null(p);
    p->mode = RECORD_MODE_INHERIT;
    assert_non_null(recordint_thread_get(f->kernel.s, p, PID));
    assert_int_equal(recordint_note_session(f->kernel.s, PID), 0);
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

    assert_int_equal(record_session_finish(f->kernel.s), 0);
    record_session_free(f->kernel.s);
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

static void mmap2(struct fixture *f, int pid, uint64_t start, uint64_t size, const char *path)
{
    fake_mmap(&f->kernel, pid, start, size, 77, path);
}

static void sample(struct fixture *f, int pid, int tid, uint64_t ip)
{
    fake_sample(&f->kernel, pid, tid, ip, PERF_RECORD_MISC_USER);
}

/* ---- tests ---- */

static void a_fork_gives_the_child_its_parents_mappings_name_and_runtime(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    mmap2(&f, PID, 0x1000, 0x1000, "/usr/bin/python3.12");
    fake_comm(&f.kernel, PID, PID, "server", false);
    fake_task(&f.kernel, PERF_RECORD_FORK, CHILD, CHILD, PID, PID);
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
    fake_comm(&f.kernel, PID, PID, "next", true);
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
    fake_task(&f.kernel, PERF_RECORD_FORK, PID, PID + 100, PID, PID);
    fake_task(&f.kernel, PERF_RECORD_EXIT, PID, PID, PID, PID);
    sample(&f, PID, PID + 100, 0x1234);
    assert_non_null(recordint_process_find(f.kernel.s, PID));
    fake_task(&f.kernel, PERF_RECORD_EXIT, PID, PID + 100, PID, PID);
    assert_null(recordint_process_find(f.kernel.s, PID));
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
    fake_task(&f.kernel, PERF_RECORD_FORK, CHILD, CHILD, PID, PID);
    assert_null(recordint_process_find(f.kernel.s, CHILD));
    mmap2(&f, CHILD, 0x9000, 0x1000, "/bin/b");
    expect(&f, "module 5000000 1000-2000 /bin/a\n"
               "end 5000000 0 0 0\n");
}

static void processes_that_nobody_asked_for_are_not_recorded(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    f.kernel.s->counts.mode = RECORD_MODE_SYSTEM_WIDE;
    mmap2(&f, OTHER, 0x1000, 0x1000, "/bin/other");
    fake_comm(&f.kernel, OTHER, OTHER, "other", true);
    fake_task(&f.kernel, PERF_RECORD_FORK, CHILD, CHILD, OTHER, OTHER);
    sample(&f, OTHER, OTHER, 0x1234);
    expect(&f, "end 5000000 0 0 0\n");
}

static void a_name_is_noted_before_the_first_sample_and_when_it_changes(void **state)
{
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    fake_task(&f.kernel, PERF_RECORD_FORK, PID, PID + 7, PID, PID);
    fake_comm(&f.kernel, PID, PID + 7, "worker-0", false);
    fake_comm(&f.kernel, PID, PID + 7, "worker-1", false);
    sample(&f, PID, PID + 7, 0x10);
    sample(&f, PID, PID + 7, 0x10);
    fake_comm(&f.kernel, PID, PID + 7, "idle", false);
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
    struct perf_bytes b;

    (void)state;
    open_fixture(&f, false);
    perf_bytes_begin(&b, PERF_RECORD_LOST, 0);
    perf_bytes_u64(&b, 1);
    perf_bytes_u64(&b, 41);
    fake_record_with_id(&f.kernel, &b, PID, PID);
    assert_true(f.kernel.s->loss_seen);
    assert_int_equal(recordint_recover(f.kernel.s), 0);
    record_session_summary(f.kernel.s, &summary);
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
    f.kernel.s->threads_unsure =
        true; /* as with every process attached to: forks may have been missed */
    mmap2(&f, PID, 0x1000, 0x1000, "/bin/server");
    fake_task(&f.kernel, PERF_RECORD_FORK, CHILD, CHILD, PID, PID);
    fake_task(&f.kernel, PERF_RECORD_EXIT, CHILD, CHILD, PID, PID);
    sample(&f, CHILD, CHILD, 0x1234);
    record_session_summary(f.kernel.s, &summary);
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
    record_session_summary(f.kernel.s, &summary);
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
    fake_task(&f.kernel, PERF_RECORD_FORK, 0, CHILD, PID, PID);
    fake_task(&f.kernel, PERF_RECORD_FORK, -1, CHILD, PID, PID);
    fake_task(&f.kernel, PERF_RECORD_FORK, PID, 0, PID, PID);
    fake_comm(&f.kernel, PID, 0, "none", false);
    fake_comm(&f.kernel, PID, -1, "none", true);
    fake_task(&f.kernel, PERF_RECORD_EXIT, PID, 0, PID, PID);
    assert_int_equal(f.kernel.s->processes.count, 1);
    assert_int_equal(f.kernel.s->threads.count, 1);
    assert_non_null(recordint_process_find(f.kernel.s, PID));
    expect(&f, "end 5000000 0 0 0\n");
}

static void a_mapping_older_than_the_maps_that_were_read_is_nothing_new(void **state)
{
    struct process *p;
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    p = recordint_process_find(f.kernel.s, PID);
    p->maps_ns = 1001;
    mmap2(&f, PID, 0x1000, 0x1000, "/lib/before.so"); /* at 1000 */
    mmap2(&f, PID, 0x1000, 0x1000, "/lib/after.so");
    p->maps_ns = UINT64_MAX;
    fake_comm(&f.kernel, PID, PID, "next",
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
        fake_task(&f.kernel, PERF_RECORD_FORK, PID, PID + i, PID, PID);
    for (int i = 1; i <= 9; i += 2) /* last, first and between */
        fake_task(&f.kernel, PERF_RECORD_EXIT, PID, PID + i, PID, PID);
    fake_task(&f.kernel, PERF_RECORD_EXIT, PID, PID, PID, PID);
    p = recordint_process_find(f.kernel.s, PID);
    assert_non_null(p);
    for (const struct thread *t = p->threads; t != NULL; t = t->next, left++)
        assert_int_equal(t->tid % 2, 0);
    assert_int_equal(left, 4);
    for (int i = 8; i >= 2; i -= 2)
        fake_task(&f.kernel, PERF_RECORD_EXIT, PID, PID + i, PID, PID);
    assert_null(recordint_process_find(f.kernel.s, PID));
    assert_int_equal(f.kernel.s->threads.count, 0);
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
    f.kernel.s->threads_unsure = true;
    sample(&f, OTHER, OTHER, 0x10);
    assert_null(recordint_process_find(f.kernel.s, OTHER));
    sample(&f, self, self, 0x10);
    assert_non_null(recordint_process_find(f.kernel.s, self));
    record_session_summary(f.kernel.s, &summary);
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
    p = recordint_process_find(f.kernel.s, PID);
    p->before_exec = true;
    assert_int_equal(record_session_enable(f.kernel.s), 0);
    assert_int_equal(record_session_disable(f.kernel.s), 0);
    fake_comm(&f.kernel, PID, PID, "quiet", true);
    sample(&f, PID, PID, 0x10);
    assert_int_equal(record_session_enable(f.kernel.s), 0);
    sample(&f, PID, PID, 0x20);
    assert_int_equal(record_session_disable(f.kernel.s), 0);
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
    struct perf_bytes b;

    (void)state;
    open_fixture(&f, false);
    srand(3);
    for (int i = 0; i < 20000; i++) {
        struct perf_event_header header;
        size_t size = 8 + (size_t)(rand() % 40) * 8;

        for (size_t k = 0; k < size; k++)
            ((uint8_t *)b.words)[k] = (uint8_t)rand();
        header = (struct perf_event_header){
            .type = (uint32_t)(rand() % 22), .misc = (uint16_t)rand(), .size = (uint16_t)size};
        memcpy(b.words, &header, sizeof header);
        if (size >= 16 && rand() % 2) {
            int32_t pid = PID;

            memcpy(b.words + 1, &pid, sizeof pid);
        }
        assert_int_equal(recordint_record(f.kernel.s, b.words, size), 0);
    }
    record_session_summary(f.kernel.s, &summary);
    assert_true(summary.corrupt_records > 0);
    free(finish(&f));
}

/* What was skipped may have been a mapping or the end of a process. */
static void a_corrupt_ring_is_a_loss_like_any_other(void **state)
{
    const struct perf_event_header nonsense = {.type = PERF_RECORD_MMAP2};
    struct record_summary summary;
    struct fake_ring ring;
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    f.kernel.s->order = recordint_order_new(&f.kernel.s->layout);
    assert_non_null(f.kernel.s->order);
    fake_ring_new(&ring, 4096, 0);
    assert_int_equal(recordint_order_add(f.kernel.s->order, &ring.ring), 0);
    assert_true(fake_ring_write(&ring, &nonsense, sizeof nonsense));
    for (int polls = 0; polls < 2; polls++) {
        assert_int_equal(record_session_poll(f.kernel.s, 0), 0);
        record_session_summary(f.kernel.s, &summary);
        assert_int_equal(summary.corrupt_records, 1);
        assert_int_equal(summary.lifecycle_gaps, 1);
    }
    assert_true(f.kernel.s->threads_unsure);
    free(finish(&f));
    fake_ring_free(&ring);
}

/* Only what is there can be read: a process that cannot be looked at for want of descriptors has not ended. */
static void what_descriptors_did_not_suffice_for_is_read_a_second_later(void **state)
{
    struct rlimit limit, none;
    struct process *p;
    struct fixture f;

    (void)state;
    open_fixture(&f, false);
    f.kernel.s->order = recordint_order_new(&f.kernel.s->layout);
    p = recordint_process_new(f.kernel.s, getpid());
    assert_non_null(f.kernel.s->order);
    assert_non_null(p);
    p->rescan_due = true;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(recordint_recover(f.kernel.s), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(p->rescan_due);
    assert_null(p->threads);
    f.kernel.s->second_ns = 0; /* a second is over */
    assert_int_equal(record_session_poll(f.kernel.s, 0), 0);
    assert_false(p->rescan_due);
    assert_non_null(p->threads);
    assert_int_equal(p->threads->tid, getpid());
    assert_true(p->maps_ns > 0);
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
        f.kernel.time_ns = times_ns[i];
        sample(&f, PID, PID, 0x1234);
    }
    assert_int_equal(record_session_finish(f.kernel.s), 0);
    record_session_free(f.kernel.s);
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
        cmocka_unit_test(a_corrupt_ring_is_a_loss_like_any_other),
        cmocka_unit_test(what_descriptors_did_not_suffice_for_is_read_a_second_later),
        cmocka_unit_test(times_far_apart_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
