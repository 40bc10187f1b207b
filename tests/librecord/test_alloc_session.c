/* SPDX-License-Identifier: MIT */
/*
 * A session that has seen all stacks once allocates nothing for more samples of them: from rings through merging,
 * walking and writing. (Linked with --wrap for malloc, calloc and realloc; what the C library takes for itself is not
 * counted.)
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

#include "fake_ring.h"
#include "frame_image.h"
#include "session.h"

#define PID 5000000 /* PID_MAX_LIMIT is 4,194,304 */
#define CODE UINT64_C(0x7f0000000000)
#define STACK UINT64_C(0x7ffd00000000)
#define RING_SIZE ((size_t)64 * 1024)
#define STACKS 64
#define DEPTH 20

static unsigned long allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    allocations++;
    return __real_realloc(p, size);
}

/* ---- a session with two rings and a program ---- */

struct fixture {
    struct record_session *s;
    struct fake_ring rings[2];
    char path[64];
    uint64_t inode;
    uint64_t time_ns;
    uint64_t bytes; /* written */
};

static int take(void *user, const void *data, size_t size)
{
    struct fixture *f = user;

    (void)data;
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

static void map_program(struct fixture *f, struct process *p)
{
    struct spool_module m = {.pid = PID,
                             .start = CODE,
                             .end = CODE + FRAME_TEXT_SIZE,
                             .file_offset = FRAME_TEXT_OFFSET,
                             .inode = f->inode,
                             .path = f->path,
                             .path_size = strlen(f->path)};

    assert_int_equal(recordint_process_map(f->s, p, &m, 1), 0);
}

static void open_fixture(struct fixture *f)
{
    struct record_options o;
    struct process *p;

    memset(f, 0, sizeof *f);
    write_program(f);
    f->time_ns = 1000;
    f->s = record_session_new();
    record_options_init(&o);
    assert_int_equal(record_session_open_callback(f->s, take, f, &o), 0);
    f->s->config.kernel = true;
    f->s->config.settled = true;
    recordint_event_layout(&f->s->config, &f->s->layout);
    f->s->order = recordint_order_new(&f->s->layout);
    assert_non_null(f->s->order);
    for (unsigned i = 0; i < 2; i++) {
        fake_ring_new(&f->rings[i], RING_SIZE, 8 * i);
        assert_int_equal(recordint_order_add(f->s->order, &f->rings[i].ring), 0);
    }
    p = recordint_process_new(f->s, PID);
    assert_non_null(p);
    p->mode = RECORD_MODE_INHERIT;
    map_program(f, p);
}

static void close_fixture(struct fixture *f)
{
    assert_int_equal(record_session_finish(f->s), 0);
    record_session_free(f->s);
    for (unsigned i = 0; i < 2; i++)
        fake_ring_free(&f->rings[i]);
    unlink(f->path);
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
    record_all(&f, 8);
    record_session_summary(f.s, &summary);
    assert_int_equal(summary.samples, 8 * STACKS);
    assert_int_equal(summary.truncated_stacks, 0);
    allocations = 0;
    record_all(&f, 500);
    assert_int_equal(allocations, 0);
    record_session_summary(f.s, &summary);
    assert_int_equal(summary.samples, 508 * STACKS);
    assert_int_equal(summary.truncated_stacks, 0);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_known_stacks_need_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
