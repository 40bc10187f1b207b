/* SPDX-License-Identifier: MIT */
/*
 * Samples from rings through merging, walking and writing, without a kernel: once a session has seen all stacks it allocates
 * nothing for more samples of them; and when memory runs out on the way, it says so or writes what it would have. (What the C library takes for itself is not counted.)
 */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../alloc_fault.h"
#include "fake_ring.h"
#include "frame_image.h"
#include "session.h"

#define PID 5000000 /* PID_MAX_LIMIT is 4,194,304 */
#define CODE UINT64_C(0x7f0000000000)
#define STACK UINT64_C(0x7ffd00000000)
#define RING_SIZE ((size_t)64 * 1024)
#define STACKS 64
#define DEPTH 20
#define WARM_UP 600

/* ---- a session with two rings and a program ---- */

struct fixture {
    struct record_session *s;
    struct fake_ring rings[2];
    char path[64];
    uint64_t inode;
    uint64_t time_ns;
    uint64_t bytes; /* written */
    uint64_t hash;  /* of them */
};

static int take(void *user, const void *data, size_t size)
{
    struct fixture *f = user;

    for (size_t i = 0; i < size; i++)
        f->hash = (f->hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    f->bytes += size;
    return 0;
}

/* All its code has frames of one word: the return address. */
static void write_program(struct fixture *f)
{
    static struct bytes built, eh, header;
    const struct frame_style style = {.encoding = 0x1b};
    struct frame_file file = {.eh = &eh, .header = &header};
    struct stat st;

    size_t fde = put_fde(&eh, &style, put_cie(&eh, &style), FRAME_TEXT, FRAME_TEXT_SIZE, NULL, 0);
    put(&eh, 0, 4);
    put_header(&header, 3, 1);
    put_search(&header, FRAME_TEXT, fde);
    frame_build(&file, &built);
    strcpy(f->path, "/tmp/test_alloc_session.XXXXXX");
    int fd = mkstemp(f->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, built.data, built.size), built.size);
    assert_int_equal(fstat(fd, &st), 0);
    f->inode = st.st_ino;
    close(fd);
}

static int map_program(struct fixture *f, struct process *p)
{
    struct spool_module m = {.pid = PID,
                             .start = CODE,
                             .end = CODE + FRAME_TEXT_SIZE,
                             .file_offset = FRAME_TEXT_OFFSET,
                             .inode = f->inode,
                             .path = f->path,
                             .path_size = strlen(f->path)};

    return recordint_process_map(f->s, p, &m, 1);
}

/* Rings and program, without a session. */
static void prepare_fixture(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    write_program(f);
    for (unsigned i = 0; i < 2; i++)
        fake_ring_new(&f->rings[i], RING_SIZE, 8 * i);
}

/* What attaching does. */
static int begin_session(struct fixture *f)
{
    struct record_options o;
    struct process *p;
    int rc;

    f->time_ns = 1000;
    record_options_init(&o, sizeof o);
    o.has_start = true;
    rc = record_session_open_callback(f->s, take, f, &o);
    if (rc < 0)
        return rc;
    f->s->config.kernel = true;
    f->s->config.settled = true;
    recordint_event_layout(&f->s->config, &f->s->layout);
    f->s->order = recordint_order_new(&f->s->layout);
    for (unsigned i = 0; i < 2; i++)
        if (f->s->order == NULL || recordint_order_add(f->s->order, &f->rings[i].ring) < 0)
            return RECORD_ERR_NOMEM;
    p = recordint_process_new(f->s, PID);
    if (p == NULL)
        return RECORD_ERR_NOMEM;
    p->mode = RECORD_MODE_INHERIT;
    return map_program(f, p);
}

static void open_fixture(struct fixture *f)
{
    prepare_fixture(f);
    f->s = record_session_new();
    assert_non_null(f->s);
    assert_int_equal(begin_session(f), 0);
}

static void free_fixture(struct fixture *f)
{
    for (unsigned i = 0; i < 2; i++)
        fake_ring_free(&f->rings[i]);
    unlink(f->path);
}

static void close_fixture(struct fixture *f)
{
    assert_int_equal(record_session_finish(f->s), 0);
    record_session_free(f->s);
    free_fixture(f);
}

/* ---- samples ---- */

struct sample {
    uint64_t words[256];
    size_t count;
};

static void add(struct sample *b, uint64_t word)
{
    b->words[b->count++] = word;
}

static uint64_t code_address(unsigned n)
{
    return CODE + 16 + n * 97 % (FRAME_TEXT_SIZE - 32);
}

/* The kernel's frames for every other one, and DEPTH of the program's. */
static void make_sample(struct fixture *f, unsigned n, struct sample *b)
{
    enum { SP = 7, IP = 8 }; /* the kernel's numbers */
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER};

    b->count = 1;
    add(b, 1);
    add(b, code_address(n));
    add(b, (uint64_t)(PID + n % 4) << 32 | PID);
    add(b, f->time_ns++);
    add(b, 0);
    add(b, 1);
    add(b, n % 2 == 0 ? 0 : 3);
    for (unsigned i = 0; n % 2 == 1 && i < 3; i++)
        add(b, i == 0 ? (uint64_t)PERF_CONTEXT_KERNEL : UINT64_C(0xffffffff81000000) + 64 * n + i);
    add(b, PERF_SAMPLE_REGS_ABI_64);
    for (uint64_t left = f->s->layout.sample_regs_user; left != 0; left &= left - 1) {
        int reg = __builtin_ctzll(left);

        add(b, reg == SP ? STACK : reg == IP ? code_address(n) : 0);
    }
    add(b, 8 * (DEPTH + 1));
    for (unsigned i = 0; i < DEPTH; i++)
        add(b, code_address(n + i * i));
    add(b, 0);
    add(b, 8 * (DEPTH + 1));
    header.size = (uint16_t)(8 * b->count);
    memcpy(b->words, &header, sizeof header);
}

static void record_all(struct fixture *f, unsigned rounds)
{
    struct sample b;

    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned n = 0; n < STACKS; n++) {
            make_sample(f, n, &b);
            assert_true(fake_ring_write(&f->rings[n / 3 % 2], b.words, 8 * b.count));
        }
        assert_true(record_session_poll(f->s, 0) >= 0);
    }
}

static void samples_of_known_stacks_need_no_memory(void **state)
{
    struct record_summary summary;
    struct fixture f;

    (void)state;
    if (ARCH_NATIVE != ARCH_X86_64)
        skip(); /* the registers are x86-64's */
    open_fixture(&f);
    record_all(&f,
               WARM_UP); /* the memory of answers grows while addresses take each other's place */
    record_session_summary(f.s, &summary);
    assert_int_equal(summary.samples, WARM_UP * STACKS);
    assert_int_equal(summary.truncated_stacks, 0);
    alloc.count = 0;
    record_all(&f, 500);
    assert_int_equal(alloc.count, 0);
    record_session_summary(f.s, &summary);
    assert_int_equal(summary.samples, (500 + WARM_UP) * STACKS);
    assert_int_equal(summary.truncated_stacks, 0);
    close_fixture(&f);
}

/* ---- without memory ---- */

/* What is written when none is missing. */
static struct fixture whole;

/* Two rounds of all stacks, and the end. */
static int record_rounds(struct fixture *f)
{
    struct sample b;
    int rc = 0;

    for (unsigned round = 0; rc >= 0 && round < 2; round++) {
        for (unsigned n = 0; n < STACKS; n++) {
            make_sample(f, n, &b);
            assert_true(fake_ring_write(&f->rings[n / 3 % 2], b.words, 8 * b.count));
        }
        rc = record_session_poll(f->s, 0);
    }
    return rc < 0 ? rc : record_session_finish(f->s);
}

/* A failed session repeats its error, and can be asked and freed. */
static void assert_failed(struct fixture *f, int rc)
{
    uint64_t written = f->bytes;

    assert_int_equal(rc, RECORD_ERR_NOMEM);
    assert_true(alloc.failed);
    assert_true(f->s->sticky == 0 || strstr(record_session_error(f->s), "out of memory") != NULL);
    if (f->s->sticky != 0) {
        assert_int_equal(record_session_poll(f->s, 0), RECORD_ERR_NOMEM);
        assert_int_equal(record_session_flush(f->s), RECORD_ERR_NOMEM);
        assert_int_equal(record_session_attach(f->s, PID, 0), RECORD_ERR_NOMEM);
        assert_int_equal(record_session_finish(f->s), RECORD_ERR_NOMEM);
        assert_int_equal(f->bytes, written);
    }
}

static unsigned cut_runs, lost_runs; /* that succeeded, with stacks cut, samples lost */

static void run_samples(void *arg)
{
    struct fixture *f = arg;
    struct record_summary summary;
    const long countdown = alloc_pause();
    int rc;

    for (unsigned i = 0; i < 2; i++) {
        fake_ring_free(&f->rings[i]);
        fake_ring_new(&f->rings[i], RING_SIZE,
                      RING_SIZE - 104); /* the first record goes round the end */
    }
    alloc_resume(countdown);
    f->bytes = f->hash = 0;
    f->s = record_session_new();
    if (f->s == NULL) {
        assert_true(alloc.failed);
        return;
    }
    rc = begin_session(f);
    if (rc == 0)
        rc = record_rounds(f);
    record_session_summary(f->s, &summary);
    if (rc < 0) {
        assert_failed(f, rc);
    } else {
        /* A file whose tables there is no memory for ends its stacks, and a record that goes round a ring's end is lost. */
        assert_int_equal(summary.samples + summary.corrupt_records, 2 * STACKS);
        if (summary.truncated_stacks + summary.corrupt_records == 0 && whole.bytes != 0) {
            assert_int_equal(f->bytes, whole.bytes);
            assert_true(f->hash == whole.hash);
        }
        assert_true(summary.truncated_stacks + summary.corrupt_records == 0 || alloc.failed);
        cut_runs += summary.truncated_stacks != 0;
        lost_runs += summary.corrupt_records != 0;
    }
    record_session_free(f->s);
}

static void samples_are_written_or_refused_at_every_failing_allocation(void **state)
{
    struct fixture f;

    (void)state;
    if (ARCH_NATIVE != ARCH_X86_64)
        skip(); /* the registers are x86-64's */
    prepare_fixture(&f);
    run_samples(&f);
    whole = f;
    assert_true(whole.bytes > 0);
    assert_true(alloc_try_each(run_samples, &f) > 20);
    assert_true(cut_runs > 0 && lost_runs > 0);
    free_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_known_stacks_need_no_memory),
        cmocka_unit_test(samples_are_written_or_refused_at_every_failing_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
