/* SPDX-License-Identifier: MIT */
/*
 * What a session keeps of processes, programs, threads and mappings that have gone, over as many of them as come in hours:
 * the kernel's records are made by hand. tests/bench/churn has the same with real ones.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_kernel.h"

#define PID 5000000 /* above PID_MAX_LIMIT: /proc has nothing on it */
#define MAPPINGS 10u

struct churn {
    struct fake_kernel kernel;
    int next_id;
    uint64_t next_inode;
};

/* ---- what comes and goes ---- */

static void map_program(struct churn *c, int pid)
{
    char path[32];

    for (unsigned i = 0; i < MAPPINGS; i++) {
        snprintf(path, sizeof path, "/usr/lib/library%u.so", i);
        fake_mmap(&c->kernel, pid, 0x10000 * (i + 1), 0x1000, 100 + i, path);
    }
}

static void sample_program(struct churn *c, int pid, int tid)
{
    for (unsigned i = 0; i < MAPPINGS; i++)
        fake_sample(&c->kernel, pid, tid, 0x10000 * (i + 1) + 0x10, PERF_RECORD_MISC_USER);
}

static void one_fork(struct churn *c)
{
    int pid = ++c->next_id;

    fake_task(&c->kernel, PERF_RECORD_FORK, pid, pid, PID, PID);
    sample_program(c, pid, pid);
    fake_task(&c->kernel, PERF_RECORD_EXIT, pid, pid, PID, PID);
}

static void one_exec(struct churn *c)
{
    int pid = ++c->next_id;

    fake_task(&c->kernel, PERF_RECORD_FORK, pid, pid, PID, PID);
    fake_comm(&c->kernel, pid, pid, "next", true);
    map_program(c, pid);
    sample_program(c, pid, pid);
    fake_task(&c->kernel, PERF_RECORD_EXIT, pid, pid, PID, PID);
}

static void one_thread(struct churn *c)
{
    int tid = ++c->next_id;

    fake_task(&c->kernel, PERF_RECORD_FORK, PID, tid, PID, PID);
    sample_program(c, PID, tid);
    fake_task(&c->kernel, PERF_RECORD_EXIT, PID, tid, PID, PID);
}

/* The kernel does not tell of an unmapping: what is mapped next takes its place. */
static void one_library(struct churn *c)
{
    char path[32];

    snprintf(path, sizeof path, "/tmp/copy%llu.so", (unsigned long long)++c->next_inode);
    fake_mmap(&c->kernel, PID, 0x700000, 0x1000, 1000 + c->next_inode, path);
    fake_sample(&c->kernel, PID, PID, 0x700010, PERF_RECORD_MISC_USER);
}

static void one_piece_of_code(struct churn *c)
{
    fake_mmap(&c->kernel, PID, 0x800000, 0x1000, 0, "//anon");
    fake_sample(&c->kernel, PID, PID, 0x800010, PERF_RECORD_MISC_USER);
}

static size_t held(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* The bytes that one of them leaves, on average over the second half of many. */
static void expect_at_most(size_t limit, unsigned count, void (*one)(struct churn *c))
{
    struct churn c = {.kernel = {.time_ns = 1000, .step_ns = 100000}, .next_id = PID};
    struct record_options o;
    struct process *p;
    size_t before = 0, after;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    c.kernel.s = record_session_new();
    assert_non_null(c.kernel.s);
    record_options_init(&o, sizeof o);
    assert_int_equal(record_session_open_fd(c.kernel.s, fd, &o), 0);
    c.kernel.s->config.settled = true;
    recordint_event_layout(&c.kernel.s->config, &c.kernel.s->layout);
    p = recordint_process_new(c.kernel.s, PID);
    assert_non_null(p);
    p->mode = RECORD_MODE_INHERIT;
    assert_non_null(recordint_thread_get(c.kernel.s, p, PID));
    fake_comm(&c.kernel, PID, PID, "next",
              true); /* it has a name, which children inherit and annotations tell */
    map_program(&c, PID);
    if (held() == 0)
        count /= 16; /* a sanitizer's allocator does not tell: it looks for errors alone */
    for (unsigned i = 0; i < 2 * count; i++) {
        if (i == count)
            before = held();
        one(&c);
    }
    after = held();
    print_message("%.1f bytes each\n", after > before ? (double)(after - before) / count : 0);
    if (after > before && (after - before) / count > limit)
        fail_msg("%zu bytes are kept of each, more than %zu", (after - before) / count, limit);
    assert_int_equal(record_session_finish(c.kernel.s), 0);
    record_session_free(c.kernel.s);
    close(fd);
}

/* ---- tests: 25 bytes a thread id are kept, and as much again where tables double ---- */

static void of_a_process_the_thread_id_is_kept(void **state)
{
    (void)state;
    expect_at_most(64, 4096, one_fork);
}

static void of_a_program_the_thread_id_is_kept(void **state)
{
    (void)state;
    expect_at_most(64, 4096, one_exec);
}

static void of_a_thread_the_id_is_kept(void **state)
{
    (void)state;
    expect_at_most(64, 8192, one_thread);
}

static void of_a_library_nothing_is_kept(void **state)
{
    (void)state;
    expect_at_most(4, 8192, one_library);
}

static void of_generated_code_nothing_is_kept(void **state)
{
    (void)state;
    expect_at_most(4, 8192, one_piece_of_code);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_process_the_thread_id_is_kept),
        cmocka_unit_test(of_a_program_the_thread_id_is_kept),
        cmocka_unit_test(of_a_thread_the_id_is_kept),
        cmocka_unit_test(of_a_library_nothing_is_kept),
        cmocka_unit_test(of_generated_code_nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
