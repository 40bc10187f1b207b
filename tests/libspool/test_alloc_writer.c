/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out at any moment while a spool is written, record by record or by stack contents, or read through a
 * descriptor: an error that says so and stays, or the very bytes that are written when none is missing. And the functions
 * that need no memory work without any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool/spool.h"

#include "../alloc_fault.h"

#define SAMPLES 300
#define PIDS 3

/* What is written when no memory is missing, and its records. */
static uint8_t whole[1 << 16];
static size_t whole_size;
static struct spool_record records[4096];
static size_t record_count;

/* ---- writing ---- */

/* The module of one process in each of PIDS; annotations, a Python process, one that ends. */
static int write_definitions(struct spool_writer *w, uint32_t *modules)
{
    const struct spool_jit_symbol names[] = {{0x5000, 0x5010, "f", 1}};
    struct spool_module m = {.start = 0x1000, .end = 0x9000000, .path = "/x", .path_size = 2};
    struct spool_module jit = {.pid = 1,
                               .jit = true,
                               .start = 0x5000,
                               .end = 0x6000,
                               .path = "[jit]",
                               .path_size = 5,
                               .jit_symbols = names,
                               .jit_symbol_count = 1};
    int rc = 0;

    for (int32_t pid = 1; rc == 0 && pid <= PIDS; pid++) {
        m.pid = pid;
        rc = spool_writer_module(w, &m, &modules[pid - 1]);
    }
    if (rc == 0)
        rc = spool_writer_module(w, &jit, NULL);
    if (rc == 0)
        rc = spool_writer_annotate(w, 1, "comm", "name");
    if (rc == 0)
        rc = spool_writer_python(w, 5, 2, true);
    return rc;
}

static int write_samples(struct spool_writer *w, const uint32_t *modules)
{
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < SAMPLES; i++) {
        struct spool_writer_frame frames[] = {
            {SPOOL_FRAME_PINNED, false, modules[i % PIDS], i},
            {SPOOL_FRAME_UNPINNED, true, 0, i / 2},
            {SPOOL_FRAME_UNPINNED, false, 0, i / 3},
            {SPOOL_FRAME_TRUNCATED, false, 0, 0},
        };

        rc = spool_writer_sample(w, 10 * i, 1 + (int32_t)(i % PIDS), 1 + i, frames, 4);
        if (rc == 0 && i % 100 == 0)
            rc = spool_writer_flush(w);
    }
    if (rc == 0)
        rc = spool_writer_deactivate_module(w, modules[0]);
    if (rc == 0)
        rc = spool_writer_deactivate_process(w, PIDS);
    return rc;
}

static int write_by_contents(struct spool_writer *w)
{
    uint32_t modules[PIDS];
    int rc = write_definitions(w, modules);

    return rc == 0 ? write_samples(w, modules) : rc;
}

static int write_by_record(struct spool_writer *w)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < record_count; i++)
        rc = spool_writer_put(w, &records[i]);
    return rc;
}

/* Every call after the failure repeats it, and nothing more is written. */
static void assert_stuck(struct spool_writer *w, int fd)
{
    const struct spool_module m = {.pid = 1, .end = 1};
    const struct spool_record python = {.type = SPOOL_RECORD_PYTHON, .python = {.pid = 1}};
    const off_t size = lseek(fd, 0, SEEK_CUR);

    assert_true(alloc.failed);
    assert_non_null(strstr(spool_writer_error(w), "out of memory"));
    assert_int_equal(spool_writer_module(w, &m, NULL), SPOOL_ERR_NOMEM);
    assert_int_equal(spool_writer_annotate(w, 1, "comm", "x"), SPOOL_ERR_NOMEM);
    assert_int_equal(spool_writer_python(w, 1, 1, true), SPOOL_ERR_NOMEM);
    assert_int_equal(spool_writer_put(w, &python), SPOOL_ERR_NOMEM);
    assert_int_equal(spool_writer_deactivate_process(w, 1), SPOOL_ERR_NOMEM);
    assert_int_equal(spool_writer_deactivate_module(w, 0), SPOOL_ERR_NOMEM);
    assert_int_equal(spool_writer_flush(w), SPOOL_ERR_NOMEM);
    assert_int_equal(spool_writer_finish(w), SPOOL_ERR_NOMEM);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), size);
}

static void assert_written(struct spool_writer *w, int fd)
{
    static uint8_t got[sizeof whole];

    assert_int_equal(spool_writer_bytes(w), whole_size);
    assert_int_equal(pread(fd, got, sizeof got, 0), whole_size);
    assert_memory_equal(got, whole, whole_size);
}

static void run_writer(void *arg)
{
    int (*write_all)(struct spool_writer * w) = *(int (**)(struct spool_writer *))arg;
    const struct spool_header h = {.version = 4, .interval_ns = 1000};
    struct spool_writer *w = spool_writer_new();
    int rc, fd;

    if (w == NULL) {
        assert_true(alloc.failed);
        return;
    }
    fd = memfd_create("spool", MFD_CLOEXEC);
    assert_true(fd >= 0);
    rc = spool_writer_open_fd(w, fd, &h);
    if (rc == 0)
        rc = write_all(w);
    if (rc == 0)
        rc = spool_writer_finish(w);
    assert_true(rc == 0 || rc == SPOOL_ERR_NOMEM);
    if (rc < 0)
        assert_stuck(w, fd);
    else
        assert_written(w, fd);
    spool_writer_free(w);
    close(fd);
}

static int (*by_contents)(struct spool_writer *) = write_by_contents;
static int (*by_record)(struct spool_writer *) = write_by_record;

static void writing_by_contents_gives_all_or_an_error_that_stays(void **state)
{
    (void)state;
    assert_true(alloc_try_each(run_writer, &by_contents) > 10);
}

static void writing_by_record_gives_all_or_an_error_that_stays(void **state)
{
    (void)state;
    assert_true(alloc_try_each(run_writer, &by_record) > 3);
}

/* ---- reading what was written, through a descriptor ---- */

static int memory_file(void)
{
    int fd = memfd_create("spool", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, whole, whole_size, 0), whole_size);
    return fd;
}

static void run_snapshot_fd(void *unused)
{
    struct spool_snapshot *s = spool_snapshot_new();
    struct spool_sample sample;
    int rc, fd;

    (void)unused;
    if (s == NULL) {
        assert_true(alloc.failed);
        return;
    }
    fd = memory_file();
    rc = spool_snapshot_load_fd(s, fd);
    close(fd);
    assert_true(rc == 0 || (rc == SPOOL_ERR_NOMEM && alloc.failed));
    if (rc == 0)
        assert_int_equal(spool_snapshot_sample_count(s), SAMPLES);
    for (uint64_t i = 0; i < spool_snapshot_sample_count(s); i++) {
        assert_true(spool_snapshot_sample(s, i, &sample));
        assert_int_equal(sample.time_ns, 10 * i);
    }
    assert_int_equal(spool_reader_error_code(spool_snapshot_reader(s)), rc);
    spool_snapshot_free(s);
}

static void a_snapshot_of_a_descriptor_has_all_samples_or_an_error(void **state)
{
    (void)state;
    assert_true(alloc_try_each(run_snapshot_fd, NULL) > 10);
}

/* A writer's end that is cut off at first, read by the reader itself. */
static void run_tail_reader(void *unused)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    size_t records_read = 0;
    int rc, fd;

    (void)unused;
    if (r == NULL) {
        assert_true(alloc.failed);
        return;
    }
    fd = memory_file();
    spool_reader_tail_limit(r, whole_size / 2);
    rc = spool_reader_open_tail_fd(r, fd);
    for (int half = 0; rc == 0 && half < 2; half++) {
        while ((rc = spool_reader_next(r, &rec)) > 0)
            records_read++;
        spool_reader_tail_limit(r, UINT64_MAX);
    }
    if (rc == 0) {
        assert_int_equal(records_read, record_count);
        assert_false(spool_reader_tail_ended(r));
    } else {
        assert_int_equal(rc, SPOOL_ERR_NOMEM);
        assert_true(alloc.failed);
        assert_non_null(strstr(spool_reader_error(r), "out of memory"));
        assert_int_equal(spool_reader_error_code(r), SPOOL_ERR_NOMEM);
    }
    spool_reader_free(r);
    close(fd);
}

static void a_tail_of_a_descriptor_has_all_records_or_an_error(void **state)
{
    (void)state;
    assert_true(alloc_try_each(run_tail_reader, NULL) > 5);
}

/* ---- what needs no memory ---- */

static void reader_answers(struct spool_reader *r)
{
    struct spool_annotation note;
    struct spool_wall_time wall;
    struct spool_counts counts;
    struct spool_frame frame;
    struct spool_stack stack;
    struct spool_thread thread;
    uint32_t node = 3, chain[8];

    spool_reader_counts(r, &counts);
    assert_int_equal(counts.samples, SAMPLES);
    assert_int_equal(spool_reader_header(r)->version, 4);
    assert_string_equal(spool_reader_error(r), "no error");
    assert_int_equal(spool_reader_error_code(r), 0);
    assert_false(spool_reader_cut_tail(r));
    assert_int_equal(spool_reader_kept_bytes(r), whole_size);
    assert_int_equal(spool_reader_input_bytes(r), whole_size);
    assert_false(spool_reader_is_gzip(r));
    assert_false(spool_reader_tail_ended(r));
    spool_reader_tail_limit(r, UINT64_MAX);
    assert_int_equal(spool_reader_module(r, 0)->pid, 1);
    assert_true(spool_reader_annotation(r, PIDS + 1, &note));
    assert_int_equal(note.key, SPOOL_NOTE_COMM);
    assert_true(spool_reader_frame(r, 0, &frame));
    assert_true(spool_reader_stack(r, 0, &stack));
    assert_true(spool_reader_thread(r, 0, &thread));
    assert_int_equal(spool_reader_walk(r, &node, chain, 8), 4);
    assert_int_equal(spool_reader_stack_nodes(r)[0].prefix, SPOOL_NO_ID);
    assert_int_equal(spool_reader_timeline_us(r, 2000), 2);
    assert_int_equal(spool_reader_wall_time(r, 10, &wall), 0);
}

static void mappings_answer(struct spool_mappings *m)
{
    struct spool_writer_frame frame;
    struct spool_module x;
    size_t at = 0;

    assert_int_equal(spool_mappings_find(m, 1, false, 0x1010, &x), 1);
    spool_mappings_frame(m, 1, false, 0x1010, &frame);
    assert_int_equal(frame.kind, SPOOL_FRAME_PINNED);
    assert_int_equal(spool_mappings_next(m, 1, &at, &x), 1);
    assert_true(spool_mappings_generation(m, 1) != 0);
}

static void functions_that_need_no_memory_ask_for_none(void **state)
{
    const struct spool_header h = {.version = 4};
    const struct spool_module x = {
        .pid = 1, .start = 0x1000, .end = 0x2000, .path = "/x", .path_size = 2};
    struct spool_snapshot *s = spool_snapshot_new();
    struct spool_tail *t = spool_tail_new();
    struct spool_writer *w = spool_writer_new();
    struct spool_mappings *m = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    struct spool_sample sample;
    int fd = memory_file();
    unsigned long before;

    (void)state;
    assert_int_equal(spool_snapshot_load_fd(s, fd), 0);
    assert_int_equal(spool_writer_open_fd(w, fd, &h), 0);
    assert_int_equal(spool_mappings_apply(m, &x, NULL), 0);
    alloc_fail_at(1, true);
    before = alloc.count;
    assert_string_equal(spool_error_name(SPOOL_ERR_NOMEM), "SPOOL_ERR_NOMEM");
    assert_true(spool_error_text(SPOOL_ERR_NOMEM)[0] != '\0');
    assert_true(spool_version()[0] != '\0');
    reader_answers(spool_snapshot_reader(s));
    assert_true(spool_snapshot_sample(s, 0, &sample));
    assert_int_equal(spool_snapshot_sample_count(s), SAMPLES);
    assert_non_null(spool_tail_reader(t));
    mappings_answer(m);
    spool_writer_set_plain(w, true);
    assert_int_equal(spool_writer_annotate(w, 1, "comm", "not written"), 0);
    assert_true(spool_writer_bytes(w) > 0);
    assert_string_equal(spool_writer_error(w), "no error");
    assert_int_equal(spool_writer_finish(w), 0);
    spool_mappings_free(m);
    spool_writer_free(w);
    spool_tail_free(t);
    spool_snapshot_free(s);
    assert_int_equal(alloc.count, before);
    alloc_stop();
    close(fd);
}

/* ---- */

static struct spool_reader *kept; /* `records` point into it */

static int write_whole(void **state)
{
    const struct spool_header h = {.version = 4, .interval_ns = 1000};
    struct spool_writer *w = spool_writer_new();
    int fd = memfd_create("spool", MFD_CLOEXEC);
    ssize_t size;

    (void)state;
    if (fd < 0 || spool_writer_open_fd(w, fd, &h) != 0 || write_by_contents(w) != 0 ||
        spool_writer_finish(w) != 0)
        return -1;
    size = pread(fd, whole, sizeof whole, 0);
    whole_size = size > 0 && (size_t)size < sizeof whole ? (size_t)size : 0;
    spool_writer_free(w);
    close(fd);
    kept = spool_reader_new();
    if (spool_reader_open_memory(kept, whole, whole_size) != 0)
        return -1;
    while (record_count < sizeof records / sizeof *records &&
           spool_reader_next(kept, &records[record_count]) > 0)
        record_count++;
    return record_count > 3 * SAMPLES ? 0 : -1;
}

static int free_whole(void **state)
{
    (void)state;
    spool_reader_free(kept);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writing_by_contents_gives_all_or_an_error_that_stays),
        cmocka_unit_test(writing_by_record_gives_all_or_an_error_that_stays),
        cmocka_unit_test(a_snapshot_of_a_descriptor_has_all_samples_or_an_error),
        cmocka_unit_test(a_tail_of_a_descriptor_has_all_records_or_an_error),
        cmocka_unit_test(functions_that_need_no_memory_ask_for_none),
    };

    return cmocka_run_group_tests(tests, write_whole, free_whole);
}
