/* SPDX-License-Identifier: MIT */
/* Batches of a growing spool: where they end and what they report, one rule each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "spool/spool.h"
#include "spool_bytes.h"

#define BATCH_SAMPLES 16384

/* A tail on a file and what will stand in that file. */
struct fixture {
    struct spool_tail *tail;
    struct spool_tail_batch batch;
    struct bytes bytes;
    size_t written;
    int fd;
};

/* A spool of version 4 with module 0 of process 7, a kernel module, a frame, a stack, thread 0 of process 7 and thread 1
 * of process 8. */
static void put_definitions(struct bytes *b)
{
    bytes_header(b, 4, 0, 0);
    bytes_module(b, 4, 0, 7, 0x1000, 0x2000, 0, false, "/a");
    bytes_module(b, 4, 1, 7, 0x8000, 0x9000, 0, true, "[kernel]");
    bytes_frame(b, 0, CODE_PINNED(0), 0x10);
    bytes_stack(b, 0, ROOT, 0);
    bytes_thread(b, 0, 7, 7);
    bytes_thread(b, 1, 8, 8);
}

static struct fixture fixture_new(void)
{
    struct fixture f = {.tail = spool_tail_new(), .fd = memfd_create("spool", MFD_CLOEXEC)};

    assert_non_null(f.tail);
    assert_true(f.fd >= 0);
    put_definitions(&f.bytes);
    return f;
}

/* Writes what was put since the last time. */
static void flush(struct fixture *f)
{
    size_t size = f->bytes.size - f->written;

    assert_int_equal(pwrite(f->fd, f->bytes.data + f->written, size, (off_t)f->written), size);
    f->written = f->bytes.size;
}

static void open_tail(struct fixture *f)
{
    flush(f);
    assert_int_equal(spool_tail_open_fd(f->tail, f->fd), 0);
}

static int poll_tail(struct fixture *f)
{
    memset(&f->batch, 0xaa, sizeof f->batch);
    return spool_tail_poll(f->tail, &f->batch);
}

/* An open tail that has shown the definitions. */
static struct fixture fixture_open(void)
{
    struct fixture f = fixture_new();

    open_tail(&f);
    assert_int_equal(poll_tail(&f), 1);
    assert_false(f.batch.more);
    return f;
}

static void fixture_free(struct fixture *f)
{
    spool_tail_free(f->tail);
    bytes_free(&f->bytes);
    close(f->fd);
}

/* Writes what was put and takes the next batch, which has something. */
static void next_batch(struct fixture *f)
{
    flush(f);
    assert_int_equal(poll_tail(f), 1);
}

static void assert_empty(const struct spool_tail_batch *b)
{
    assert_int_equal(b->sample_count, 0);
    assert_int_equal(b->modules_begin, b->modules_end);
    assert_int_equal(b->frames_begin, b->frames_end);
    assert_int_equal(b->pid_count, 0);
    assert_int_equal(b->retired_module_count, 0);
    assert_int_equal(b->retired_pid_count, 0);
    assert_false(b->kernel_changed);
}

static void assert_pids(const struct spool_tail_batch *b, size_t count, const int32_t *pids)
{
    assert_int_equal(b->pid_count, count);
    assert_memory_equal(b->pids, pids, count * sizeof *pids);
}

static void put_samples(struct bytes *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes_sample(b, 1, 0, 0);
}

/* ---- where batches end ---- */

static void a_batch_has_at_most_16384_samples(void **state)
{
    struct fixture f = fixture_open();
    uint64_t index = 0;

    (void)state;
    /* Samples of four bytes: the fourth batch ends where the reader's window does. */
    put_samples(&f.bytes, 4 * BATCH_SAMPLES + 5);
    for (size_t left = 4 * BATCH_SAMPLES + 5; left > 0; left -= f.batch.sample_count) {
        next_batch(&f);
        assert_int_equal(f.batch.sample_count, left < BATCH_SAMPLES ? left : BATCH_SAMPLES);
        for (size_t i = 0; i < f.batch.sample_count; i++) {
            assert_int_equal(f.batch.samples[i].index, index);
            assert_int_equal(f.batch.samples[i].time_ns, ++index);
        }
        assert_int_equal(f.batch.more, left > BATCH_SAMPLES);
    }
    assert_int_equal(poll_tail(&f), 0);
    assert_empty(&f.batch);
    assert_false(f.batch.more);
    fixture_free(&f);
}

static void a_full_batch_at_the_end_of_the_file_wants_no_more(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    put_samples(&f.bytes, BATCH_SAMPLES);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, BATCH_SAMPLES);
    assert_false(f.batch.more);
    fixture_free(&f);
}

static void a_full_batch_before_a_partial_record_wants_more_which_may_be_nothing(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    put_samples(&f.bytes, BATCH_SAMPLES);
    bytes_byte(&f.bytes, 5);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, BATCH_SAMPLES);
    assert_true(f.batch.more);
    assert_int_equal(poll_tail(&f), 0);
    assert_empty(&f.batch);
    assert_false(f.batch.more);
    assert_true(spool_reader_cut_tail(spool_tail_reader(f.tail)));
    bytes_hex(&f.bytes, "02 00 00");
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 1);
    fixture_free(&f);
}

static void a_batch_ends_right_after_every_deactivation(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    put_samples(&f.bytes, 3);
    bytes_deactivate_module(&f.bytes, 0);
    put_samples(&f.bytes, 2);
    bytes_deactivate_process(&f.bytes, 7);
    bytes_deactivate_process(&f.bytes, 7);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 3);
    assert_int_equal(f.batch.retired_module_count, 1);
    assert_int_equal(f.batch.retired_pid_count, 0);
    assert_true(f.batch.more);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 2);
    assert_int_equal(f.batch.retired_pid_count, 1);
    assert_true(f.batch.more);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 0);
    assert_int_equal(f.batch.retired_pid_count, 1);
    assert_false(f.batch.more);
    fixture_free(&f);
}

static void the_first_poll_returns_what_the_open_call_read(void **state)
{
    struct fixture f = fixture_new();

    (void)state;
    put_samples(&f.bytes, 3);
    open_tail(&f);
    assert_int_equal(poll_tail(&f), 1);
    assert_int_equal(f.batch.sample_count, 3);
    assert_pids(&f.batch, 1, (int32_t[]){7});
    fixture_free(&f);
}

static void the_first_poll_tells_that_the_file_has_grown_but_reads_no_further(void **state)
{
    struct fixture f = fixture_new();

    (void)state;
    put_samples(&f.bytes, 3);
    open_tail(&f);
    put_samples(&f.bytes, 1);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 3);
    assert_true(f.batch.more);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 1);
    assert_false(f.batch.more);
    fixture_free(&f);
}

static void growth_after_the_first_poll_counts_although_a_partial_record_was_there(void **state)
{
    struct fixture f = fixture_new();

    (void)state;
    bytes_byte(&f.bytes, 5);
    open_tail(&f);
    assert_int_equal(poll_tail(&f), 1);
    assert_false(f.batch.more); /* it was there before */
    fixture_free(&f);

    f = fixture_new();
    bytes_byte(&f.bytes, 5);
    open_tail(&f);
    bytes_byte(&f.bytes, 2);
    next_batch(&f);
    assert_true(f.batch.more);
    assert_int_equal(poll_tail(&f), 0);
    fixture_free(&f);
}

static void the_definitions_are_there_after_the_open_call(void **state)
{
    struct fixture f = fixture_new();
    struct spool_counts c;

    (void)state;
    open_tail(&f);
    spool_reader_counts(spool_tail_reader(f.tail), &c);
    assert_int_equal(c.modules, 2);
    assert_int_equal(c.frames, 1);
    assert_int_equal(poll_tail(&f), 1);
    assert_int_equal(f.batch.modules_begin, 2);
    assert_int_equal(f.batch.modules_end, 2);
    assert_int_equal(f.batch.frames_begin, 1);
    assert_int_equal(f.batch.frames_end, 1);
    assert_false(f.batch.kernel_changed);
    assert_pids(&f.batch, 1, (int32_t[]){7});
    fixture_free(&f);
}

static void retirements_of_the_first_batch_are_reported(void **state)
{
    struct fixture f = fixture_new();

    (void)state;
    bytes_deactivate_module(&f.bytes, 1); /* the kernel's */
    open_tail(&f);
    assert_int_equal(poll_tail(&f), 1);
    assert_int_equal(f.batch.retired_module_count, 1);
    assert_int_equal(f.batch.retired_modules[0], 1);
    assert_false(f.batch.kernel_changed);
    fixture_free(&f);
}

/* ---- what they report ---- */

static void new_modules_and_frames_are_ranges(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    bytes_module(&f.bytes, 4, 2, 9, 0, 1, 0, false, "/b");
    bytes_module(&f.bytes, 4, 3, 9, 0, 1, 0, false, "/c");
    bytes_frame(&f.bytes, 1, CODE_USER, 0x10);
    next_batch(&f);
    assert_int_equal(f.batch.modules_begin, 2);
    assert_int_equal(f.batch.modules_end, 4);
    assert_int_equal(f.batch.frames_begin, 1);
    assert_int_equal(f.batch.frames_end, 2);
    bytes_frame(&f.bytes, 2, CODE_USER, 0x10);
    next_batch(&f);
    assert_int_equal(f.batch.modules_begin, 4);
    assert_int_equal(f.batch.modules_end, 4);
    assert_int_equal(f.batch.frames_begin, 2);
    assert_int_equal(f.batch.frames_end, 3);
    fixture_free(&f);
}

static void processes_are_listed_once_in_the_order_of_their_first_record(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    bytes_python(&f.bytes, 0, 30, 1);
    bytes_sample(&f.bytes, 1, 1, 0);
    bytes_module(&f.bytes, 4, 2, 20, 0, 1, 0, false, "/b");
    bytes_sample(&f.bytes, 1, 0, 0);
    bytes_module(&f.bytes, 4, 3, 40, 0, 1, 0, true, "[kernel]"); /* no process */
    bytes_thread(&f.bytes, 2, 50, 50);                           /* nor is this one seen */
    bytes_sample(&f.bytes, 1, 1, 0);
    bytes_python(&f.bytes, 0, 20, 0);
    bytes_deactivate_process(&f.bytes, 10);
    next_batch(&f);
    assert_pids(&f.batch, 5, (int32_t[]){30, 8, 20, 7, 10});
    bytes_deactivate_module(&f.bytes, 2);
    next_batch(&f);
    assert_pids(&f.batch, 1, (int32_t[]){20});
    bytes_deactivate_module(&f.bytes, 3);
    next_batch(&f);
    assert_int_equal(f.batch.pid_count, 0);
    fixture_free(&f);
}

static void many_processes_are_each_listed_once(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int32_t i = 0; i < 20000; i++)
            bytes_python(&f.bytes, 0, 1 + i % 10000 * 4096, 1);
        next_batch(&f);
        assert_int_equal(f.batch.pid_count, 10000);
        for (int32_t i = 0; i < 10000; i++)
            assert_int_equal(f.batch.pids[i], 1 + i * 4096);
    }
    fixture_free(&f);
}

static void a_process_retires_its_live_modules_in_order(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    for (uint64_t id = 2; id < 10; id++)
        bytes_module(&f.bytes, 4, id, id % 2 ? 7 : 8, 0, 1, 0, id == 5, "/b");
    bytes_deactivate_module(&f.bytes, 7);
    next_batch(&f);
    bytes_deactivate_process(&f.bytes, 7);
    next_batch(
        &f); /* not 5, which is the kernel's, nor 7, which is retired, although no frame came since */
    assert_int_equal(f.batch.retired_pid_count, 1);
    assert_int_equal(f.batch.retired_pids[0], 7);
    assert_int_equal(f.batch.retired_module_count, 3);
    assert_memory_equal(f.batch.retired_modules, ((uint32_t[]){0, 3, 9}), 3 * sizeof(uint32_t));
    assert_false(f.batch.kernel_changed);
    bytes_deactivate_process(&f.bytes, 7);
    bytes_deactivate_process(&f.bytes, 1000);
    next_batch(&f);
    assert_int_equal(f.batch.retired_pids[0], 7);
    assert_int_equal(f.batch.retired_module_count, 0);
    next_batch(&f);
    assert_int_equal(f.batch.retired_pids[0], 1000);
    assert_int_equal(f.batch.retired_module_count, 0);
    assert_pids(&f.batch, 1, (int32_t[]){1000});
    fixture_free(&f);
}

static void a_module_that_is_retired_again_is_reported_again(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    for (int i = 0; i < 2; i++) {
        bytes_deactivate_module(&f.bytes, 0);
        next_batch(&f);
        assert_int_equal(f.batch.retired_module_count, 1);
        assert_int_equal(f.batch.retired_modules[0], 0);
        assert_int_equal(f.batch.retired_pid_count, 0);
        assert_pids(&f.batch, 1, (int32_t[]){7});
    }
    fixture_free(&f);
}

static void kernel_changes_are_new_kernel_modules_and_retired_ones(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    bytes_module(&f.bytes, 4, 2, 7, 0, 1, 0, false, "/b");
    next_batch(&f);
    assert_false(f.batch.kernel_changed);
    bytes_module(&f.bytes, 4, 3, 7, 0, 1, 0, true, "[k]");
    next_batch(&f);
    assert_true(f.batch.kernel_changed);
    bytes_deactivate_module(&f.bytes, 2);
    next_batch(&f);
    assert_false(f.batch.kernel_changed);
    bytes_deactivate_module(&f.bytes, 3);
    next_batch(&f);
    assert_true(f.batch.kernel_changed);
    fixture_free(&f);
}

static void annotations_lie_among_the_modules_and_the_last_one_tells_the_finish(void **state)
{
    struct fixture f = fixture_open();
    struct spool_reader *r = spool_tail_reader(f.tail);
    struct spool_annotation note;
    size_t size;

    (void)state;
    bytes_note(&f.bytes, 4, 2, "[spool:thread] 8 worker");
    bytes_module(&f.bytes, 4, 3, 7, 0, 1, 0, false, "/b");
    next_batch(&f);
    assert_int_equal(f.batch.modules_begin, 2);
    assert_int_equal(f.batch.modules_end, 4);
    assert_pids(&f.batch, 1, (int32_t[]){7});
    assert_null(spool_reader_module(r, 2));
    assert_true(spool_reader_annotation(r, 2, &note));
    assert_int_equal(note.key, SPOOL_NOTE_THREAD);
    assert_int_equal(note.number[0], 8);
    assert_string_equal(note.text, "worker");
    assert_false(spool_reader_annotation(r, 3, &note));
    assert_false(spool_reader_annotation(r, 4, &note));
    assert_false(f.batch.finished);
    assert_null(spool_reader_build_id(r, 3, &size));
    bytes_note(&f.bytes, 4, 4, "[spool:build-id] 3 a1b2c3");
    next_batch(&f);
    assert_memory_equal(spool_reader_build_id(r, 3, &size), "\xa1\xb2\xc3", 3);
    assert_int_equal(size, 3);
    bytes_note(&f.bytes, 4, 5, "[spool:end] 1 2 3");
    next_batch(&f);
    assert_true(f.batch.finished);
    assert_int_equal(poll_tail(&f), 0);
    assert_true(f.batch.finished);
    bytes_deactivate_process(&f.bytes, 7);
    next_batch(&f);
    assert_int_equal(f.batch.retired_module_count, 2); /* 0 and 3, no annotation */
    fixture_free(&f);
}

static void nothing_new_is_an_empty_batch(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(poll_tail(&f), 0);
        assert_empty(&f.batch);
        assert_false(f.batch.more);
        assert_false(f.batch.ended);
        assert_false(f.batch.finished);
    }
    fixture_free(&f);
}

/* ---- inputs, errors ---- */

static void a_pipe_tells_its_end(void **state)
{
    struct spool_tail *t = spool_tail_new();
    struct spool_tail_batch batch;
    struct bytes b = {0};
    int ends[2];

    (void)state;
    put_definitions(&b);
    bytes_deactivate_process(&b, 7);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], b.data, b.size), b.size);
    assert_int_equal(spool_tail_open_fd(t, ends[0]), 0);
    assert_int_equal(spool_tail_poll(t, &batch), 1);
    assert_false(batch.more);
    assert_int_equal(spool_tail_poll(t, &batch), 0);
    assert_false(batch.ended);
    close(ends[1]);
    assert_int_equal(spool_tail_poll(t, &batch), 0);
    assert_true(batch.ended);
    assert_int_equal(spool_tail_poll(t, &batch), 0);
    assert_true(batch.ended);
    spool_tail_free(t);
    bytes_free(&b);
    close(ends[0]);
}

static void an_error_comes_after_what_was_read_before_it_and_stays(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    put_samples(&f.bytes, 2);
    bytes_byte(&f.bytes, 0);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 2);
    assert_true(f.batch.more);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(poll_tail(&f), SPOOL_ERR_CORRUPT);
        assert_non_null(strstr(spool_reader_error(spool_tail_reader(f.tail)), "has tag 0"));
        put_samples(&f.bytes, 1);
        flush(&f);
    }
    fixture_free(&f);
}

static void an_error_of_the_first_batch_is_told_by_poll(void **state)
{
    struct fixture f = fixture_new();

    (void)state;
    bytes_byte(&f.bytes, 0);
    open_tail(&f);
    assert_int_equal(poll_tail(&f), 1);
    assert_pids(&f.batch, 1, (int32_t[]){7});
    assert_true(f.batch.more);
    assert_int_equal(poll_tail(&f), SPOOL_ERR_CORRUPT);
    assert_int_equal(poll_tail(&f), SPOOL_ERR_CORRUPT);
    fixture_free(&f);

    f = fixture_new();
    f.bytes.size = 11; /* the header */
    bytes_byte(&f.bytes, 0);
    open_tail(&f);
    assert_int_equal(poll_tail(&f), SPOOL_ERR_CORRUPT);
    assert_int_equal(poll_tail(&f), SPOOL_ERR_CORRUPT);
    fixture_free(&f);
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
    struct fixture f = fixture_open();

    (void)state;
    assert_int_equal(ftruncate(f.fd, (off_t)f.written - 1), 0);
    assert_int_equal(poll_tail(&f), SPOOL_ERR_IO);
    assert_int_equal(poll_tail(&f), SPOOL_ERR_IO);
    fixture_free(&f);

    f = fixture_new(); /* found by the first poll, told by the second */
    open_tail(&f);
    assert_int_equal(ftruncate(f.fd, (off_t)f.written - 1), 0);
    assert_int_equal(poll_tail(&f), 1);
    assert_true(f.batch.more);
    assert_int_equal(poll_tail(&f), SPOOL_ERR_IO);
    fixture_free(&f);
}

static void a_limit_bounds_the_batches(void **state)
{
    struct fixture f = fixture_new();
    struct spool_reader *r = spool_tail_reader(f.tail);

    (void)state;
    spool_reader_tail_limit(r, f.bytes.size);
    put_samples(&f.bytes, 2);
    open_tail(&f);
    assert_int_equal(poll_tail(&f), 1);
    assert_int_equal(f.batch.sample_count, 0);
    assert_false(f.batch.more); /* has not grown as far as we may know */
    spool_reader_tail_limit(r, f.bytes.size - 4);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 1);
    assert_int_equal(poll_tail(&f), 0);
    spool_reader_tail_limit(r, UINT64_MAX);
    next_batch(&f);
    assert_int_equal(f.batch.sample_count, 1);
    fixture_free(&f);
}

static void a_tail_is_opened_once_and_polled_after_that(void **state)
{
    struct fixture f = fixture_new();

    (void)state;
    assert_int_equal(poll_tail(&f), SPOOL_ERR_MISUSE);
    open_tail(&f);
    assert_int_equal(spool_tail_open_fd(f.tail, f.fd), SPOOL_ERR_MISUSE);
    fixture_free(&f);

    f = fixture_new();
    assert_int_equal(spool_tail_open_fd(f.tail, f.fd), SPOOL_ERR_TRUNCATED); /* an empty file */
    assert_int_equal(poll_tail(&f), SPOOL_ERR_TRUNCATED);
    fixture_free(&f);
    spool_tail_free(NULL);
}

static void tens_of_thousands_of_modules_and_retirements_take_linear_time(void **state)
{
    const uint64_t count = 30000;
    struct fixture f = fixture_open();
    size_t modules = 0, batches = 0;
    clock_t begin;

    (void)state;
    for (uint64_t i = 0; i < count; i++)
        bytes_module(&f.bytes, 4, 2 + i, 7, 0, 1, 0, false, "/b");
    for (int32_t i = 0; i < 400000; i++) /* a batch with many processes, then many with few */
        bytes_python(&f.bytes, 0, 1000 + i, 1);
    for (uint64_t i = 0; i < count; i++) {
        bytes_deactivate_module(&f.bytes, 2 + count - 1 - i);
        bytes_deactivate_process(&f.bytes, 8);
        bytes_sample(&f.bytes, 0, 0, 0);
    }
    bytes_deactivate_process(&f.bytes, 7);
    flush(&f);
    begin = clock();
    do {
        assert_int_equal(poll_tail(&f), 1);
        modules += f.batch.retired_module_count;
        batches++;
    } while (f.batch.more);
    /* A fraction of a second; a look at all modules or processes for each batch takes many. */
    assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
    assert_int_equal(batches, 2 * count + 1);
    assert_int_equal(modules, count + 1);
    fixture_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_at_most_16384_samples),
        cmocka_unit_test(a_full_batch_at_the_end_of_the_file_wants_no_more),
        cmocka_unit_test(a_full_batch_before_a_partial_record_wants_more_which_may_be_nothing),
        cmocka_unit_test(a_batch_ends_right_after_every_deactivation),
        cmocka_unit_test(the_first_poll_returns_what_the_open_call_read),
        cmocka_unit_test(the_first_poll_tells_that_the_file_has_grown_but_reads_no_further),
        cmocka_unit_test(growth_after_the_first_poll_counts_although_a_partial_record_was_there),
        cmocka_unit_test(the_definitions_are_there_after_the_open_call),
        cmocka_unit_test(retirements_of_the_first_batch_are_reported),
        cmocka_unit_test(new_modules_and_frames_are_ranges),
        cmocka_unit_test(processes_are_listed_once_in_the_order_of_their_first_record),
        cmocka_unit_test(many_processes_are_each_listed_once),
        cmocka_unit_test(a_process_retires_its_live_modules_in_order),
        cmocka_unit_test(a_module_that_is_retired_again_is_reported_again),
        cmocka_unit_test(kernel_changes_are_new_kernel_modules_and_retired_ones),
        cmocka_unit_test(annotations_lie_among_the_modules_and_the_last_one_tells_the_finish),
        cmocka_unit_test(nothing_new_is_an_empty_batch),
        cmocka_unit_test(a_pipe_tells_its_end),
        cmocka_unit_test(an_error_comes_after_what_was_read_before_it_and_stays),
        cmocka_unit_test(an_error_of_the_first_batch_is_told_by_poll),
        cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
        cmocka_unit_test(a_limit_bounds_the_batches),
        cmocka_unit_test(a_tail_is_opened_once_and_polled_after_that),
        cmocka_unit_test(tens_of_thousands_of_modules_and_retirements_take_linear_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
