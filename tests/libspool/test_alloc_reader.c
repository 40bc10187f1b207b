/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at any moment while a spool is read or written: an error that says so,
 * nothing lost that was there before, no crash. (That nothing leaks is what the sanitizer builds see.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../alloc_fault.h"
#include "spool/spool.h"
#include "spool_bytes.h"

static void try_every_allocation(void (*run)(void *b), struct bytes *b)
{
    assert_true(alloc_try_each(run, b) > 3);
}

/* Everything that allocates: paths, JIT names, notes, loose frames of several processes, tables
 * that have to grow. */
static void put_spool(struct bytes *b)
{
    const uint64_t rounds =
        80; /* the smallest tables have 64 elements, the memo and the index more */

    bytes_hex(b, "53 50 55 4c 53 45 34 00 05 90 4e 01 64 02 0a 05");
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t id = 4 * i;
        char note[64];

        bytes_module(b, 4, id, 7 + (int64_t)i % 20, 0x1000, 0x2000, 0, false, "/opt/lib.so");
        bytes_module(b, 4, id + 1, -1, 0x8000, 0x9000, 0, true, "[kernel.kallsyms]");
        snprintf(note, sizeof note, "[spool:build-id] %u 0123456789abcdef%02x", (unsigned)id,
                 (unsigned)i);
        bytes_note(b, 4, id + 2, i % 2 == 0 ? "[spool:comm] name" : note);
        bytes_byte(b, 9);
        bytes_module_fields(b, 4, id + 3, 7, 0x4000, 0x5000, 0, false);
        bytes_text(b, "[jit-1-4000-1000]");
        bytes_uv(b, i);
        for (uint64_t k = 0; k < i; k++) {
            bytes_uv(b, 0x4000 + k);
            bytes_uv(b, 0x4001 + k);
            bytes_text(b, "a name");
        }
        bytes_frame(b, 3 * i, CODE_USER, 0x1234);
        bytes_frame(b, 3 * i + 1, CODE_KERNEL, 0x8000 + i);
        bytes_frame(b, 3 * i + 2, CODE_PINNED(id), 0x10);
        bytes_stack(b, 2 * i, ROOT, 3 * i);
        bytes_stack(b, 2 * i + 1, 2 * i, 3 * i + 1);
        bytes_thread(b, i, 7 + (int64_t)i % 20, 1 + i);
        bytes_sample(b, 10, i, 2 * i + 1);
        bytes_python(b, 7, 7, 1);
        bytes_deactivate_module(b, id);
        bytes_deactivate_process(b, 9);
    }
}

/* Whatever was read before memory ran out can be asked for. */
static void ask(struct spool_reader *r)
{
    struct spool_counts c;
    const uint64_t *addresses;
    size_t count;
    int rc;

    spool_reader_counts(r, &c);
    for (uint32_t m = 0; m < c.modules; m++) {
        size_t size;
        const uint8_t *build_id = spool_reader_build_id(r, m, &size);

        /* An odd round notes it two records behind its first module. */
        assert_int_equal(build_id != NULL, m % 8 == 4 && m + 2 < c.modules);
        assert_int_equal(size, build_id != NULL ? 9 : 0);
        if (build_id != NULL)
            assert_int_equal(build_id[8], m / 4);
    }
    for (uint32_t f = 0; f < c.frames; f++) {
        struct spool_frame frame;

        assert_true(spool_reader_frame(r, f, &frame));
        for (int32_t pid = 7; pid < 10; pid++) {
            uint32_t module;
            uint64_t rel;

            rc = spool_reader_locate(r, f, pid, &module, &rel);
            if (rc < 0) {
                assert_int_equal(rc, SPOOL_ERR_NOMEM);
                assert_true(alloc.failed);
                /* The reader stays usable: with memory there is an answer. */
                if (!alloc.stays)
                    assert_in_range(spool_reader_locate(r, f, pid, &module, &rel), 0, 1);
            } else if (rc > 0) {
                assert_in_range(module, 0, c.modules - 1);
            } else {
                assert_int_equal(module, SPOOL_NO_ID);
            }
        }
    }
    rc = spool_reader_kernel_addresses(r, &addresses, &count);
    if (rc == 0)
        assert_in_range(count, 0, c.frames);
    else
        assert_int_equal(rc, SPOOL_ERR_NOMEM);
}

/* Reads all that an open reader has, asking in between. */
static int read_on(struct spool_reader *r)
{
    struct spool_record rec;
    size_t n = 0;
    int rc;

    while ((rc = spool_reader_next(r, &rec)) > 0)
        if (++n % 200 == 0)
            ask(r);
    assert_int_equal(spool_reader_next(r, &rec), rc);
    ask(r);
    return rc;
}

static void assert_outcome(struct spool_reader *r, int rc)
{
    struct spool_counts c;

    assert_false(spool_reader_cut_tail(r));
    assert_int_equal(spool_reader_error_code(r), rc);
    if (rc == 0) {
        spool_reader_counts(r, &c);
        assert_int_equal(c.modules, 320);
        assert_int_equal(c.annotations, 80);
        assert_true(c.samples == 80 || c.samples == 80 + 3000);
    } else {
        assert_int_equal(rc, SPOOL_ERR_NOMEM);
        assert_true(alloc.failed);
        assert_non_null(strstr(spool_reader_error(r), "out of memory"));
    }
}

static void run_memory(void *arg)
{
    const struct bytes *b = arg;
    struct spool_reader *r = spool_reader_new();
    int rc;

    if (r == NULL) {
        assert_true(alloc.failed);
        return;
    }
    rc = spool_reader_open_memory(r, b->data, b->size);
    if (rc == 0)
        rc = read_on(r);
    else
        assert_null(spool_reader_header(r));
    assert_outcome(r, rc);
    spool_reader_free(r);
}

static void run_fd(void *arg)
{
    const struct bytes *b = arg;
    struct spool_reader *r = spool_reader_new();
    int rc, fd;

    if (r == NULL) {
        assert_true(alloc.failed);
        return;
    }
    fd = memfd_create("spool", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, b->data, b->size, 0), b->size);
    rc = spool_reader_open_fd(r, fd);
    if (rc == 0)
        rc = read_on(r);
    assert_outcome(r, rc);
    spool_reader_free(r);
    close(fd);
}

static void reading_memory_survives_every_failing_allocation(void **state)
{
    struct bytes b = {0};

    (void)state;
    put_spool(&b);
    try_every_allocation(run_memory, &b);
    bytes_free(&b);
}

static void reading_a_descriptor_survives_every_failing_allocation(void **state)
{
    struct bytes b = {0};

    (void)state;
    put_spool(&b);
    try_every_allocation(run_fd, &b);
    bytes_free(&b);
}

static void reading_gzip_survives_every_failing_allocation(void **state)
{
    struct bytes b = {0}, packed = {0};

    (void)state;
    put_spool(&b);
    bytes_gzip(&packed, b.data, b.size);
    try_every_allocation(run_memory, &packed);
    try_every_allocation(run_fd, &packed);
    bytes_free(&b);
    bytes_free(&packed);
}

static void run_long_path(void *arg)
{
    const struct bytes *b = arg;
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    int rc, fd;

    if (r == NULL)
        return;
    fd = memfd_create("spool", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, b->data, b->size, 0), b->size);
    rc = spool_reader_open_fd(r, fd);
    while (rc == 0 && (rc = spool_reader_next(r, &rec)) > 0)
        rc = 0;
    assert_true(rc == 0 || (rc == SPOOL_ERR_NOMEM && alloc.failed));
    assert_int_equal(spool_reader_cut_tail(r), rc == 0);
    spool_reader_free(r);
    close(fd);
}

static void a_path_longer_than_any_window_survives_every_failing_allocation(void **state)
{
    struct bytes b = {0};

    (void)state;
    bytes_header(&b, 4, 0, 0);
    for (uint64_t i = 0; i < 2; i++) { /* the first one is whole, the second one cut off */
        bytes_byte(&b, 1);
        bytes_module_fields(&b, 4, i, 7, 0, 9, 0, false);
        bytes_uv(&b, i == 0 ? 900000 : (uint64_t)1 << 40);
        for (int k = 0; k < 900000; k++)
            bytes_byte(&b, 'p');
    }
    try_every_allocation(run_long_path, &b);
    bytes_free(&b);
}

static void run_snapshot(void *arg)
{
    const struct bytes *b = arg;
    struct spool_snapshot *s = spool_snapshot_new();
    struct spool_sample sample;
    uint64_t count;
    int rc;

    if (s == NULL) {
        assert_true(alloc.failed);
        return;
    }
    rc = spool_snapshot_load_memory(s, b->data, b->size);
    assert_true(rc == 0 || (rc == SPOOL_ERR_NOMEM && alloc.failed));
    count = spool_snapshot_sample_count(s);
    if (rc == 0)
        assert_int_equal(count, 80 + 1500);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(spool_snapshot_sample(s, i, &sample));
        assert_int_equal(sample.index, i);
    }
    assert_false(spool_snapshot_sample(s, count, &sample));
    ask(spool_snapshot_reader(s));
    spool_snapshot_free(s);
}

static void loading_a_snapshot_survives_every_failing_allocation(void **state)
{
    struct bytes b = {0};

    (void)state;
    put_spool(&b);
    for (int i = 0; i < 1500; i++)
        bytes_sample(&b, 1, 0, 0);
    try_every_allocation(run_snapshot, &b);
    bytes_free(&b);
}

/* ---- tails ---- */

/* Polls until there is nothing more, or an error; samples are counted. */
static int poll_on(struct spool_tail *t, uint64_t *samples)
{
    struct spool_tail_batch batch;
    int rc;

    do {
        rc = spool_tail_poll(t, &batch);
        if (rc < 0)
            break;
        *samples += batch.sample_count;
        assert_in_range(batch.pid_count, 0, 1000);
        assert_in_range(batch.modules_end, batch.modules_begin, 320);
    } while (batch.more);
    return rc;
}

/* The file grows in parts, and ends inside a record before each. */
static void run_tail(void *arg)
{
    const struct bytes *b = arg;
    struct spool_tail *t = spool_tail_new();
    uint64_t samples = 0;
    int rc = 0, fd;

    if (t == NULL) {
        assert_true(alloc.failed);
        return;
    }
    fd = memfd_create("spool", MFD_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t size = 100; rc >= 0; size += b->size / 3) {
        size_t end = size < b->size ? size : b->size;

        assert_int_equal(pwrite(fd, b->data, end, 0), end);
        if (size == 100)
            rc = spool_tail_open_fd(t, fd);
        if (rc >= 0)
            rc = poll_on(t, &samples);
        if (end == b->size)
            break;
    }
    assert_outcome(spool_tail_reader(t), rc < 0 ? rc : 0);
    if (rc >= 0)
        assert_int_equal(samples, 80 + 3000);
    else
        assert_int_equal(poll_on(t, &samples), SPOOL_ERR_NOMEM);
    ask(spool_tail_reader(t));
    spool_tail_free(t);
    close(fd);
}

static void following_a_file_survives_every_failing_allocation(void **state)
{
    struct bytes b = {0};

    (void)state;
    put_spool(&b);
    for (int i = 0; i < 3000; i++) {
        if (i % 20 == 0)
            bytes_python(&b, 0, 1 + i, 1);
        bytes_sample(&b, 1, 0, 0);
    }
    try_every_allocation(run_tail, &b);
    bytes_free(&b);
}

/* ---- writing ---- */

static int ignore_bytes(void *user, const void *data, size_t size)
{
    (void)user;
    (void)data;
    (void)size;
    return 0;
}

/* A writer's error stays: later output could not be decoded. */
static void assert_writer_stuck(struct spool_writer *w)
{
    assert_true(alloc.failed);
    assert_non_null(strstr(spool_writer_error(w), "out of memory"));
    assert_int_equal(spool_writer_python(w, 1, 7, true), SPOOL_ERR_NOMEM);
    assert_int_equal(spool_writer_finish(w), SPOOL_ERR_NOMEM);
}

static void run_writer(void *unused)
{
    struct spool_header h = {.version = 4};
    struct spool_module m = {
        .pid = 7, .start = 0x1000, .end = 0x9000000, .path = "/x", .path_size = 2};
    struct spool_writer *w = spool_writer_new();
    int rc;

    (void)unused;
    if (w == NULL) {
        assert_true(alloc.failed);
        return;
    }
    rc = spool_writer_open_callback(w, ignore_bytes, NULL, &h);
    for (uint32_t i = 0; rc == 0 && i < 100; i++)
        rc = spool_writer_module(w, &m, NULL);
    for (uint64_t i = 0; rc == 0 && i < 600; i++) {
        struct spool_writer_frame frames[4] = {
            {SPOOL_FRAME_PINNED, false, (uint32_t)(i % 100), i},
            {SPOOL_FRAME_UNPINNED, true, 0, i},
            {SPOOL_FRAME_UNPINNED, false, 0, i},
            {SPOOL_FRAME_TRUNCATED, false, 0, 0},
        };

        rc = spool_writer_sample(w, i, 7, 1 + i, frames, 4);
        if (rc == 0 && i % 50 == 0)
            rc = spool_writer_annotate(w, 7, "comm", "name");
        if (rc == 0 && i % 70 == 0)
            rc = spool_writer_deactivate_module(w, 3);
    }
    if (rc == 0)
        rc = spool_writer_finish(w);
    assert_true(rc == 0 || rc == SPOOL_ERR_NOMEM);
    if (rc < 0)
        assert_writer_stuck(w);
    spool_writer_free(w);
}

static void writing_samples_survives_every_failing_allocation(void **state)
{
    struct bytes none = {0};

    (void)state;
    try_every_allocation(run_writer, &none);
}

static void run_large_record(void *arg)
{
    const struct bytes *b = arg;
    struct spool_header h = {.version = 4};
    struct spool_record rec = {
        .type = SPOOL_RECORD_MODULE,
        .module = {.pid = 7, .path = (const char *)b->data, .path_size = b->size}};
    struct spool_writer *w = spool_writer_new();
    int rc;

    if (w == NULL)
        return;
    rc = spool_writer_open_callback(w, ignore_bytes, NULL, &h);
    if (rc == 0)
        rc = spool_writer_put(w, &rec);
    assert_true(rc == 0 || rc == SPOOL_ERR_NOMEM);
    if (rc < 0)
        assert_writer_stuck(w);
    spool_writer_free(w);
}

static void writing_a_record_larger_than_the_buffer_survives_every_failing_allocation(void **state)
{
    struct bytes path = {0};

    (void)state;
    for (int i = 0; i < 1000000; i++)
        bytes_byte(&path, 'p');
    try_every_allocation(run_large_record, &path);
    bytes_free(&path);
}

/* ---- mappings ---- */

struct room {
    uint8_t data[1 << 20];
    size_t size;
};

static int take_bytes(void *user, const void *data, size_t size)
{
    struct room *room = user;

    assert_in_range(size, 0, sizeof room->data - room->size);
    memcpy(room->data + room->size, data, size);
    room->size += size;
    return 0;
}

/* Call n of a sequence that replaces, cuts, forks and forgets, with tables that have to grow. */
static int change_mappings(struct spool_mappings *m, uint64_t n)
{
    struct spool_module x = {.pid = 1 + (int32_t)(n % 40),
                             .start = n * 7 % 300,
                             .end = n * 7 % 300 + 1 + n % 60,
                             .inode = n % 3,
                             .kernel = n % 10 == 0,
                             .path = "/lib/x",
                             .path_size = 6};

    if (n % 50 == 0)
        return spool_mappings_deactivate(m, x.pid);
    if (n % 7 == 0)
        return spool_mappings_clone(m, x.pid, x.pid + 50);
    return spool_mappings_apply(m, &x, NULL);
}

/* The writer's output when no memory is missing. */
static struct room whole_output;

/* A change that found no memory for the table is made again; one that ended the writer stays failed. */
static void run_mappings(void *unused)
{
    static struct room room;
    struct spool_header h = {.version = 4};
    struct spool_writer *w = spool_writer_new();
    struct spool_mappings *m = w ? spool_mappings_new(w, SPOOL_MAPPING_BY_ID) : NULL;
    int rc;

    (void)unused;
    room.size = 0;
    if (m == NULL) {
        assert_true(alloc.failed);
        spool_writer_free(w);
        return;
    }
    rc = spool_writer_open_callback(w, take_bytes, &room, &h);
    for (uint64_t n = 1; rc == 0 && n < 600; n++) {
        rc = change_mappings(m, n);
        if (rc < 0) {
            assert_int_equal(rc, SPOOL_ERR_NOMEM);
            assert_true(alloc.failed);
            assert_non_null(strstr(spool_writer_error(w), "out of memory"));
            if (!alloc.stays && spool_writer_flush(w) == 0)
                rc = change_mappings(m, n);
        }
    }
    for (int32_t pid = 0; pid < 100; pid++) {
        struct spool_module x;
        size_t at = 0;
        uint64_t end = 0;

        for (; spool_mappings_next(m, pid, &at, &x) > 0; end = x.end) {
            struct spool_module same;

            assert_true(end <= x.start && x.start < x.end);
            assert_int_equal(spool_mappings_find(m, pid, false, x.start, &same), 1);
            assert_int_equal(same.id, x.id);
        }
    }
    spool_mappings_free(m);
    if (rc == 0)
        rc = spool_writer_finish(w);
    if (rc == 0 && whole_output.size == 0) {
        whole_output = room;
    } else if (rc == 0) {
        assert_int_equal(room.size, whole_output.size);
        assert_memory_equal(room.data, whole_output.data, room.size);
    }
    spool_writer_free(w);
}

static void changing_mappings_survives_every_failing_allocation(void **state)
{
    struct bytes none = {0};

    (void)state;
    run_mappings(NULL);
    assert_true(whole_output.size > 0);
    try_every_allocation(run_mappings, &none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_memory_survives_every_failing_allocation),
        cmocka_unit_test(reading_a_descriptor_survives_every_failing_allocation),
        cmocka_unit_test(reading_gzip_survives_every_failing_allocation),
        cmocka_unit_test(a_path_longer_than_any_window_survives_every_failing_allocation),
        cmocka_unit_test(loading_a_snapshot_survives_every_failing_allocation),
        cmocka_unit_test(following_a_file_survives_every_failing_allocation),
        cmocka_unit_test(writing_samples_survives_every_failing_allocation),
        cmocka_unit_test(writing_a_record_larger_than_the_buffer_survives_every_failing_allocation),
        cmocka_unit_test(changing_mappings_survives_every_failing_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
