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

#include "session.h"

#define PID 5000000 /* above PID_MAX_LIMIT: /proc has nothing on it */
#define MAPPINGS 10u

struct churn {
    struct record_session *s;
    uint64_t time_ns;
    int next_id;
    uint64_t next_inode;
};

/* ---- records ---- */

struct bytes {
    _Alignas(8) uint8_t data[1024];
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
    char padded[64] = {0};

    snprintf(padded, sizeof padded, "%s", text);
    put(b, padded, (strlen(padded) + 8) / 8 * 8);
}

static void begin(struct bytes *b, uint32_t type, uint16_t misc)
{
    struct perf_event_header header = {.type = type, .misc = misc};

    b->size = 0;
    put(b, &header, sizeof header);
}

static void send(struct churn *c, struct bytes *b)
{
    uint16_t size = (uint16_t)b->size;

    memcpy(b->data + offsetof(struct perf_event_header, size), &size, sizeof size);
    assert_int_equal(recordint_record(c->s, b->data, b->size), 0);
}

/* The trailer of records that are no samples: TID, TIME, CPU, IDENTIFIER. */
static void send_with_id(struct churn *c, struct bytes *b, int pid, int tid)
{
    put32(b, (uint32_t)pid);
    put32(b, (uint32_t)tid);
    put64(b, c->time_ns += 100000);
    put64(b, 0);
    put64(b, 1);
    send(c, b);
}

static void map(struct churn *c, int pid, uint64_t start, uint64_t inode, const char *path)
{
    struct bytes b;

    begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    put32(&b, (uint32_t)pid);
    put32(&b, (uint32_t)pid);
    put64(&b, start);
    put64(&b, 0x1000);
    put64(&b, 0);
    put32(&b, 0);
    put32(&b, 0);
    put64(&b, inode);
    put64(&b, 0);
    put32(&b, 5); /* PROT_READ | PROT_EXEC */
    put32(&b, 2);
    put_text(&b, path);
    send_with_id(c, &b, pid, pid);
}

static void task(struct churn *c, uint32_t type, int pid, int tid, int ppid)
{
    struct bytes b;

    begin(&b, type, 0);
    put32(&b, (uint32_t)pid);
    put32(&b, (uint32_t)ppid);
    put32(&b, (uint32_t)tid);
    put32(&b, (uint32_t)ppid);
    put64(&b, c->time_ns);
    send_with_id(c, &b, ppid, ppid);
}

static void rename_by_exec(struct churn *c, int pid)
{
    struct bytes b;

    begin(&b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
    put32(&b, (uint32_t)pid);
    put32(&b, (uint32_t)pid);
    put_text(&b, "next");
    send_with_id(c, &b, pid, pid);
}

/* Without stack bytes: its first frame and the marker. */
static void sample(struct churn *c, int pid, int tid, uint64_t ip)
{
    struct bytes b;

    begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put64(&b, 1);
    put64(&b, ip);
    put32(&b, (uint32_t)pid);
    put32(&b, (uint32_t)tid);
    put64(&b, c->time_ns += 100000);
    put64(&b, 0);
    put64(&b, 1);
    put64(&b, PERF_SAMPLE_REGS_ABI_64);
    for (uint64_t left = c->s->layout.sample_regs_user; left != 0; left &= left - 1)
        put64(&b, ip); /* whatever register it is */
    put64(&b, 0);      /* no stack */
    send(c, &b);
}

/* ---- what comes and goes ---- */

static void map_program(struct churn *c, int pid)
{
    char path[32];

    for (unsigned i = 0; i < MAPPINGS; i++) {
        snprintf(path, sizeof path, "/usr/lib/library%u.so", i);
        map(c, pid, 0x10000 * (i + 1), 100 + i, path);
    }
}

static void sample_program(struct churn *c, int pid, int tid)
{
    for (unsigned i = 0; i < MAPPINGS; i++)
        sample(c, pid, tid, 0x10000 * (i + 1) + 0x10);
}

static void one_fork(struct churn *c)
{
    int pid = ++c->next_id;

    task(c, PERF_RECORD_FORK, pid, pid, PID);
    sample_program(c, pid, pid);
    task(c, PERF_RECORD_EXIT, pid, pid, PID);
}

static void one_exec(struct churn *c)
{
    int pid = ++c->next_id;

    task(c, PERF_RECORD_FORK, pid, pid, PID);
    rename_by_exec(c, pid);
    map_program(c, pid);
    sample_program(c, pid, pid);
    task(c, PERF_RECORD_EXIT, pid, pid, PID);
}

static void one_thread(struct churn *c)
{
    int tid = ++c->next_id;

    task(c, PERF_RECORD_FORK, PID, tid, PID);
    sample_program(c, PID, tid);
    task(c, PERF_RECORD_EXIT, PID, tid, PID);
}

/* The kernel does not tell of an unmapping: what is mapped next takes its place. */
static void one_library(struct churn *c)
{
    char path[32];

    snprintf(path, sizeof path, "/tmp/copy%llu.so", (unsigned long long)++c->next_inode);
    map(c, PID, 0x700000, 1000 + c->next_inode, path);
    sample(c, PID, PID, 0x700010);
}

static void one_piece_of_code(struct churn *c)
{
    map(c, PID, 0x800000, 0, "//anon");
    sample(c, PID, PID, 0x800010);
}

static size_t held(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* The bytes that one of them leaves, on average over the second half of many. */
static void expect_at_most(size_t limit, unsigned count, void (*one)(struct churn *c))
{
    struct churn c = {.time_ns = 1000, .next_id = PID};
    struct record_options o;
    struct process *p;
    size_t before = 0, after;
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    c.s = record_session_new();
    assert_non_null(c.s);
    record_options_init(&o, sizeof o);
    assert_int_equal(record_session_open_fd(c.s, fd, &o), 0);
    c.s->config.settled = true;
    recordint_event_layout(&c.s->config, &c.s->layout);
    p = recordint_process_new(c.s, PID);
    assert_non_null(p);
    p->mode = RECORD_MODE_INHERIT;
    assert_non_null(recordint_thread_get(c.s, p, PID));
    rename_by_exec(&c, PID); /* it has a name, which children inherit and annotations tell */
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
    assert_int_equal(record_session_finish(c.s), 0);
    record_session_free(c.s);
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
