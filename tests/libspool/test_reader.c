/* SPDX-License-Identifier: MIT */
/*
 * The public reader: the format's worked examples, every cut and every flipped byte of small
 * spools, the same from a file, a pipe, memory and gzip, and what it says when it is used wrongly.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool/spool.h"
#include "spool_bytes.h"

#define ok(call) assert_int_equal(call, 0)

/* ---- the worked examples of the format's description, section 13 ---- */

static const char example_empty[] = "53 50 55 4c 53 45 33 00   7b   0a";

static const char example_v1[] = "53 50 55 4c 53 45 31 00   c0 84 3d   e8 07"
                                 "01  00 0e 80 20 80 40 00 00 00 02 2f 61"
                                 "02  00 01 80 a0 02"
                                 "03  00 ff ff ff ff 0f 00"
                                 "02  01 00 10"
                                 "03  01 00 01"
                                 "04  00 0e 07"
                                 "05  90 4e 00 01"
                                 "05  cf 0f 00 01"
                                 "06  f0 2e 0e 01"
                                 "07  0e";

static const char example_v2[] = "53 50 55 4c 53 45 32 00   00   00"
                                 "01  00 0e 80 20 80 40 00 00 00 04 2f 6f 6c 64"
                                 "02  00 01 80 2a"
                                 "03  00 ff ff ff ff 0f 00"
                                 "04  00 0e 08"
                                 "05  14 00 00"
                                 "08  00"
                                 "01  01 0e 80 20 80 40 80 08 05 00 04 2f 6e 65 77"
                                 "02  01 01 80 2a"
                                 "03  01 ff ff ff ff 0f 01"
                                 "05  14 00 01";

static const char example_v3[] = "53 50 55 4c 53 45 33 00   01   01"
                                 "01  00 0e 80 80 80 02 80 c0 80 02 80 20 63 08 02 11 00"
                                 "    06 2f 62 69 6e 2f 78"
                                 "02  00 05 00"
                                 "03  00 ff ff ff ff 0f 00"
                                 "02  01 00 90 20"
                                 "03  01 00 01"
                                 "02  02 03 90 80 80 88 f8 ff ff ff ff 01"
                                 "03  02 01 02"
                                 "04  00 0e 0b"
                                 "05  d0 0f 00 02"
                                 "04  01 0e 0c"
                                 "05  d0 0f 01 01";

static const char example_v4[] = "53 50 55 4c 53 45 34 00   00   92 c2 e8 04"
                                 "    01 80 a8 d6 b9 07 02 80 e2 cf aa 06 05"
                                 "09  00 0e 80 80 02 80 82 02 00 00 00 00 00 00"
                                 "    0b 5b 6a 69 74 2d 31 2d 32 2d 33 5d"
                                 "    02"
                                 "    80 80 02 c0 80 02 01 66"
                                 "    c0 80 02 80 82 02 01 67"
                                 "02  00 00 41"
                                 "03  00 ff ff ff ff 0f 00"
                                 "04  00 0e 09"
                                 "05  c8 d1 ac f3 0e 00 00";

/* Every record type, notes, paths with odd bytes, a retired module, and a repeated sample for the
 * fast path. */
static void put_rich_spool(struct bytes *b)
{
    bytes_hex(b, "53 50 55 4c 53 45 34 00 05 90 4e 01 64 01 0a 05"); /* origin 10 s before 1970 */
    bytes_note(b, 4, 0, "[spool:comm] rich");
    bytes_module(b, 4, 1, 7, 0x1000, 0x2000, 0x100, false, "/opt/a b\xff");
    bytes_byte(b, 1);
    bytes_module_fields(b, 4, 2, -1, 0x8000, 0x9000, 0, true);
    bytes_hex(b, "03 61 00 62");
    bytes_byte(b, 9);
    bytes_module_fields(b, 4, 3, 7, 0x4000, 0x5000, 0, false);
    bytes_text(b, "[jit-1-4000-1000]");
    bytes_hex(b, "02  80 80 01 90 80 01 02 c3 a9   88 80 01 80 a0 01 00");
    bytes_frame(b, 0, CODE_MARKER, 0);
    bytes_stack(b, 0, ROOT, 0);
    bytes_frame(b, 1, CODE_PINNED(1), 0x180);
    bytes_stack(b, 1, 0, 1);
    bytes_frame(b, 2, CODE_USER, 0x4004);
    bytes_stack(b, 2, 1, 2);
    bytes_frame(b, 3, CODE_KERNEL, 0x8001);
    bytes_stack(b, 3, 2, 3);
    bytes_thread(b, 0, 7, 11);
    bytes_sample(b, 1000, 0, 3);
    bytes_python(b, 1500, 7, 1);
    for (int i = 0; i < 12; i++)
        bytes_sample(b, i % 3 == 0 ? -7 : 300 * i, 0, (uint64_t)i % 4);
    bytes_note(b, 4, 4, "[spool:clock] 1 2000000000");
    bytes_deactivate_module(b, 3);
    bytes_frame(b, 4, CODE_USER, 0x4004);
    bytes_deactivate_process(b, 7);
    bytes_frame(b, 5, 7, 3);
    bytes_note(b, 4, 5, "[spool:unheard-of]");
    bytes_sample(b, 1, 0, 0);
}

/* The small spools that the tests below cut, flip and feed in pieces. */
#define SMALL_COUNT 6
static void small_spool(unsigned number, struct bytes *b)
{
    static const char *const examples[] = {example_empty, example_v1, example_v2, example_v3,
                                           example_v4};

    *b = (struct bytes){0};
    if (number < 5)
        bytes_hex(b, examples[number]);
    else
        put_rich_spool(b);
}

/* ---- readers ---- */

static struct spool_reader *new_reader(void)
{
    struct spool_reader *r = spool_reader_new();

    assert_non_null(r);
    return r;
}

static struct spool_reader *open_bytes(const struct bytes *b)
{
    struct spool_reader *r = new_reader();

    ok(spool_reader_open_memory(r, b->data, b->size));
    return r;
}

/* Reads to the end; the number of records. */
static size_t read_all(struct spool_reader *r)
{
    struct spool_record rec;
    size_t n = 0;
    int rc;

    while ((rc = spool_reader_next(r, &rec)) > 0)
        n++;
    if (rc != 0)
        fail_msg("%s", spool_reader_error(r));
    return n;
}

static struct spool_record next(struct spool_reader *r, enum spool_record_type type)
{
    struct spool_record rec;

    assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_int_equal(rec.type, type);
    return rec;
}

static void assert_ends_whole(struct spool_reader *r, const struct bytes *b)
{
    struct spool_record rec;

    ok(spool_reader_next(r, &rec));
    assert_false(spool_reader_cut_tail(r));
    assert_int_equal(spool_reader_kept_bytes(r), b->size);
    ok(spool_reader_error_code(r));
    assert_string_equal(spool_reader_error(r), "no error");
    ok(spool_reader_next(r, &rec));
}

static void assert_frame_in(struct spool_reader *r, uint32_t frame, int32_t pid, uint32_t module,
                            uint64_t rel)
{
    uint32_t got;
    uint64_t got_rel;

    assert_int_equal(spool_reader_locate(r, frame, pid, &got, &got_rel), 1);
    assert_int_equal(got, module);
    assert_int_equal(got_rel, rel);
}

static void assert_frame_nowhere(struct spool_reader *r, uint32_t frame, int32_t pid)
{
    uint32_t got;
    uint64_t rel;

    ok(spool_reader_locate(r, frame, pid, &got, &rel));
    assert_int_equal(got, SPOOL_NO_ID);
}

static void assert_sample(const struct spool_record *rec, uint64_t index, int64_t delta,
                          uint64_t time, uint64_t tid, uint32_t stack)
{
    assert_int_equal(rec->sample.index, index);
    assert_true(rec->sample.delta_ns == delta);
    assert_int_equal(rec->sample.time_ns, time);
    assert_int_equal(rec->sample.pid, 7);
    assert_int_equal(rec->sample.tid, tid);
    assert_int_equal(rec->sample.stack, stack);
}

static void example_1_is_an_empty_spool(void **state)
{
    struct bytes b;
    struct spool_reader *r;
    const struct spool_header *h;

    (void)state;
    small_spool(0, &b);
    r = open_bytes(&b);
    h = spool_reader_header(r);
    assert_int_equal(h->version, 3);
    assert_int_equal(h->start_us, 123);
    assert_int_equal(h->interval_us, 10);
    assert_int_equal(h->interval_ns, 10000);
    assert_false(h->has_origin);
    assert_ends_whole(r, &b);
    assert_int_equal(spool_reader_timeline_us(r, 5000), 123);
    spool_reader_free(r);
    bytes_free(&b);
}

static void example_2_is_of_version_1(void **state)
{
    struct bytes b;
    struct spool_reader *r;
    struct spool_record rec;
    struct spool_frame f;
    uint32_t frames[4], node = 1;

    (void)state;
    small_spool(1, &b);
    r = open_bytes(&b);
    assert_int_equal(spool_reader_header(r)->start_us, 1000000);
    assert_int_equal(spool_reader_header(r)->interval_us, 1000);
    rec = next(r, SPOOL_RECORD_MODULE);
    assert_int_equal(rec.offset_bytes, 13);
    assert_int_equal(rec.module.id, 0);
    assert_int_equal(rec.module.pid, 7);
    assert_int_equal(rec.module.start, 0x1000);
    assert_int_equal(rec.module.end, 0x2000);
    assert_int_equal(rec.module.file_offset, 0);
    assert_int_equal(rec.module.inode, 0);
    assert_false(rec.module.kernel);
    assert_string_equal(rec.module.path, "/a");
    rec = next(r, SPOOL_RECORD_FRAME);
    assert_int_equal(rec.frame.kind, SPOOL_FRAME_UNPINNED);
    assert_false(rec.frame.kernel);
    assert_int_equal(rec.frame.abs, 0x9000);
    rec = next(r, SPOOL_RECORD_STACK);
    assert_int_equal(rec.stack.prefix, SPOOL_NO_ID);
    assert_int_equal(rec.stack.depth, 1);
    rec = next(r, SPOOL_RECORD_FRAME);
    assert_int_equal(rec.frame.kind, SPOOL_FRAME_PINNED);
    assert_int_equal(rec.frame.rel, 0x10);
    assert_int_equal(rec.frame.abs, 0x1010);
    rec = next(r, SPOOL_RECORD_STACK);
    assert_int_equal(rec.stack.prefix, 0);
    assert_int_equal(rec.stack.depth, 2);
    rec = next(r, SPOOL_RECORD_THREAD);
    assert_int_equal(rec.thread.pid, 7);
    assert_int_equal(rec.thread.tid, 7);
    rec = next(r, SPOOL_RECORD_SAMPLE);
    assert_sample(&rec, 0, 5000, 5000, 7, 1);
    rec = next(r, SPOOL_RECORD_SAMPLE);
    assert_sample(&rec, 1, -1000, 4000, 7, 1);
    rec = next(r, SPOOL_RECORD_PYTHON);
    assert_int_equal(rec.python.time_ns, 6000);
    assert_int_equal(rec.python.pid, 7);
    assert_true(rec.python.on);
    rec = next(r, SPOOL_RECORD_DEACTIVATE_PROCESS);
    assert_int_equal(rec.offset_bytes, b.size - 2);
    assert_int_equal(rec.deactivated_pid, 7);
    assert_ends_whole(r, &b);

    assert_int_equal(spool_reader_module(r, 0)->retired_at_frame, 2);
    assert_int_equal(spool_reader_walk(r, &node, frames, 4), 2);
    assert_int_equal(node, SPOOL_NO_ID);
    assert_int_equal(frames[0], 1);
    assert_int_equal(frames[1], 0);
    assert_true(spool_reader_frame(r, 1, &f));
    assert_int_equal(f.abs, 0x1010);
    assert_frame_in(r, 1, 7, 0, 0x10);
    assert_frame_nowhere(r, 0, 7);
    assert_int_equal(spool_reader_timeline_us(r, 5000), 1000000);
    assert_int_equal(spool_reader_timeline_us(r, 4000), 1000000);
    spool_reader_free(r);

    b.size -= 1; /* a cut tail with both samples kept */
    r = open_bytes(&b);
    assert_int_equal(read_all(r), 9);
    assert_true(spool_reader_cut_tail(r));
    assert_int_equal(spool_reader_kept_bytes(r), b.size - 1);
    spool_reader_free(r);
    b.size -= 1; /* complete */
    r = open_bytes(&b);
    assert_int_equal(read_all(r), 9);
    assert_ends_whole(r, &b);
    spool_reader_free(r);
    bytes_free(&b);
}

static void example_3_has_two_generations_of_a_mapping(void **state)
{
    struct bytes b;
    struct spool_reader *r;
    struct spool_counts counts;

    (void)state;
    small_spool(2, &b);
    r = open_bytes(&b);
    assert_int_equal(read_all(r), 10);
    assert_ends_whole(r, &b);
    spool_reader_counts(r, &counts);
    assert_int_equal(counts.modules, 2);
    assert_int_equal(counts.frames, 2);
    assert_int_equal(counts.stacks, 2);
    assert_int_equal(counts.threads, 1);
    assert_int_equal(counts.samples, 2);
    assert_string_equal(spool_reader_module(r, 0)->path, "/old");
    assert_string_equal(spool_reader_module(r, 1)->path, "/new");
    assert_int_equal(spool_reader_module(r, 1)->inode, 5);
    assert_int_equal(spool_reader_module(r, 0)->retired_at_frame, 1);
    assert_int_equal(spool_reader_module(r, 1)->retired_at_frame, SPOOL_NOT_RETIRED);
    assert_frame_in(r, 0, 7, 0, 0x500);
    assert_frame_in(r, 1, 7, 1, 0x900);
    spool_reader_free(r);
    bytes_free(&b);
}

static void example_4_has_a_kernel_frame_a_marker_and_a_shared_prefix(void **state)
{
    struct bytes b;
    struct spool_reader *r;
    const struct spool_module *m;
    struct spool_frame f;
    struct spool_record rec;
    uint32_t frames[8], node = 2;

    (void)state;
    small_spool(3, &b);
    r = open_bytes(&b);
    do {
        assert_int_equal(spool_reader_next(r, &rec), 1);
    } while (rec.type != SPOOL_RECORD_SAMPLE);
    assert_sample(&rec, 0, 1000, 1000, 11, 2);
    next(r, SPOOL_RECORD_THREAD);
    rec = next(r, SPOOL_RECORD_SAMPLE);
    assert_sample(&rec, 1, 1000, 2000, 12, 1);
    assert_ends_whole(r, &b);
    m = spool_reader_module(r, 0);
    assert_int_equal(m->start, 0x400000);
    assert_int_equal(m->end, 0x402000);
    assert_int_equal(m->file_offset, 0x1000);
    assert_int_equal(m->inode, 99);
    assert_int_equal(m->dev_major, 8);
    assert_int_equal(m->dev_minor, 2);
    assert_int_equal(m->inode_gen, 17);
    assert_string_equal(m->path, "/bin/x");

    assert_int_equal(spool_reader_walk(r, &node, frames, 8), 3);
    assert_int_equal(frames[0], 2);
    assert_int_equal(frames[1], 1);
    assert_int_equal(frames[2], 0);
    assert_true(spool_reader_frame(r, 2, &f));
    assert_true(f.kernel);
    assert_int_equal(f.abs, 0xffffffff81000010u);
    assert_frame_nowhere(r, 2, 7);
    assert_true(spool_reader_frame(r, 1, &f));
    assert_int_equal(f.abs, 0x400010);
    assert_frame_in(r, 1, 7, 0, 0x1010);
    assert_true(spool_reader_frame(r, 0, &f));
    assert_int_equal(f.kind, SPOOL_FRAME_TRUNCATED);
    assert_frame_nowhere(r, 0, 7);
    assert_int_equal(spool_reader_timeline_us(r, 1000), 1);
    assert_int_equal(spool_reader_timeline_us(r, 2000), 2);
    spool_reader_free(r);
    bytes_free(&b);
}

static void example_5_has_a_clock_origin_and_a_jit_module(void **state)
{
    struct bytes b;
    struct spool_reader *r;
    const struct spool_header *h;
    const struct spool_module *m;
    struct spool_record rec;
    struct spool_frame f;
    struct spool_wall_time wall;

    (void)state;
    small_spool(4, &b);
    r = open_bytes(&b);
    h = spool_reader_header(r);
    assert_int_equal(h->version, 4);
    assert_int_equal(h->start_us, 0);
    assert_int_equal(h->interval_us, 0);
    assert_int_equal(h->interval_ns, 10101010);
    assert_true(h->has_origin);
    assert_int_equal(h->origin.monotonic_ns, 2000000000);
    assert_int_equal(h->origin.sign, 1);
    assert_int_equal(h->origin.seconds, 1700000000);
    assert_int_equal(h->origin.nanoseconds, 5);
    rec = next(r, SPOOL_RECORD_JIT_MODULE);
    assert_true(rec.module.jit);
    next(r, SPOOL_RECORD_FRAME);
    next(r, SPOOL_RECORD_STACK);
    next(r, SPOOL_RECORD_THREAD);
    rec = next(r, SPOOL_RECORD_SAMPLE);
    assert_sample(&rec, 0, 2000000100, 2000000100, 9, 0);
    assert_ends_whole(r, &b);
    m = spool_reader_module(r, 0);
    assert_string_equal(m->path, "[jit-1-2-3]");
    assert_int_equal(m->start, 0x8000);
    assert_int_equal(m->end, 0x8100);
    assert_int_equal(m->jit_symbol_count, 2);
    assert_string_equal(m->jit_symbols[0].name, "f");
    assert_int_equal(m->jit_symbols[0].end, 0x8040);
    assert_string_equal(m->jit_symbols[1].name, "g");
    assert_int_equal(m->jit_symbols[1].end, 0x8100);
    assert_true(spool_reader_frame(r, 0, &f));
    assert_int_equal(f.abs, 0x8041);
    assert_frame_in(r, 0, 7, 0, 0x41);
    assert_int_equal(spool_reader_wall_time(r, 2000000100, &wall), 1);
    assert_int_equal(wall.seconds, 1700000000);
    assert_int_equal(wall.nanoseconds, 105);
    spool_reader_free(r);
    bytes_free(&b);
}

/* ---- everything a reader says, as text ---- */

static void say(struct bytes *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct bytes *t, const char *format, ...)
{
    char line[512];
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    assert_true(n >= 0 && n < (int)sizeof line);
    bytes_put(t, line, (size_t)n);
}

static void say_module(struct bytes *t, const struct spool_module *m)
{
    say(t,
        "%u pid %d kernel %d jit %d %" PRIx64 "-%" PRIx64 " +%" PRIx64 " inode %" PRIu64
        " %u:%u.%" PRIu64 " path ",
        m->id, m->pid, m->kernel, m->jit, m->start, m->end, m->file_offset, m->inode, m->dev_major,
        m->dev_minor, m->inode_gen);
    bytes_put(t, m->path, m->path_size + 1);
    for (size_t i = 0; i < m->jit_symbol_count; i++) {
        say(t, " symbol %" PRIx64 "-%" PRIx64 " ", m->jit_symbols[i].start, m->jit_symbols[i].end);
        bytes_put(t, m->jit_symbols[i].name, m->jit_symbols[i].name_size + 1);
    }
}

static void say_record(struct bytes *t, const struct spool_record *rec)
{
    say(t, "%" PRIu64 ": %d ", rec->offset_bytes, (int)rec->type);
    switch (rec->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        say_module(t, &rec->module);
        break;
    case SPOOL_RECORD_FRAME:
        say(t, "%u kind %d kernel %d module %u %" PRIx64 " %" PRIx64, rec->frame.id,
            (int)rec->frame.kind, rec->frame.kernel, rec->frame.module_id, rec->frame.rel,
            rec->frame.abs);
        break;
    case SPOOL_RECORD_STACK:
        say(t, "%u %u %u %u", rec->stack.id, rec->stack.prefix, rec->stack.frame, rec->stack.depth);
        break;
    case SPOOL_RECORD_THREAD:
        say(t, "%u %d %" PRIu64, rec->thread.id, rec->thread.pid, rec->thread.tid);
        break;
    case SPOOL_RECORD_SAMPLE:
        say(t, "%" PRIu64 " %" PRId64 " %" PRIu64 " %u %u %d %" PRIu64, rec->sample.index,
            rec->sample.delta_ns, rec->sample.time_ns, rec->sample.thread, rec->sample.stack,
            rec->sample.pid, rec->sample.tid);
        break;
    case SPOOL_RECORD_PYTHON:
        say(t, "%" PRIu64 " %d %d", rec->python.time_ns, rec->python.pid, rec->python.on);
        break;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        say(t, "%d", rec->deactivated_pid);
        break;
    case SPOOL_RECORD_DEACTIVATE_MODULE:
        say(t, "%u", rec->deactivated_module);
        break;
    case SPOOL_RECORD_ANNOTATION:
        say_module(t, &rec->annotation.module);
        say(t, " key %d about %d numbers %" PRIu64 " %" PRIu64 " %" PRIu64 " text ",
            (int)rec->annotation.key, rec->annotation.pid, rec->annotation.number[0],
            rec->annotation.number[1], rec->annotation.number[2]);
        bytes_put(t, rec->annotation.text, rec->annotation.text_size + 1);
        break;
    }
    say(t, "\n");
}

/* Ends the text with where every frame belongs. */
static void say_tables(struct bytes *t, struct spool_reader *r)
{
    struct spool_counts c;

    spool_reader_counts(r, &c);
    say(t, "%u %u %u %u %u %" PRIu64 " %" PRIu64 "\n", c.modules, c.annotations, c.frames, c.stacks,
        c.threads, c.samples, c.python);
    for (uint32_t f = 0; f < c.frames; f++) {
        for (int32_t pid = 7; pid < 9; pid++) {
            uint32_t module;
            uint64_t rel;
            int rc = spool_reader_locate(r, f, pid, &module, &rel);

            assert_in_range(rc, 0, 1);
            say(t, "%u in %d: %u %" PRIx64 "\n", f, pid, module, rc ? rel : 0);
        }
    }
}

/* Reads an opened reader to its end: its records, its verdict, its tables. */
static void say_all(struct bytes *t, struct spool_reader *r)
{
    const struct spool_header *h = spool_reader_header(r);
    struct spool_record rec;
    int rc;

    say(t,
        "version %u start %" PRIu64 " interval %" PRIu64 " %" PRIu64 " origin %d %" PRIu64
        " %d %" PRIu64 " %u\n",
        h->version, h->start_us, h->interval_us, h->interval_ns, h->has_origin,
        h->origin.monotonic_ns, h->origin.sign, h->origin.seconds, h->origin.nanoseconds);
    while ((rc = spool_reader_next(r, &rec)) > 0)
        say_record(t, &rec);
    say(t, "%d cut %d kept %" PRIu64 " %s\n", rc, spool_reader_cut_tail(r),
        spool_reader_kept_bytes(r), spool_reader_error(r));
    assert_int_equal(spool_reader_error_code(r), rc);
    assert_non_null(spool_reader_header(r));
    say_tables(t, r);
}

/* ---- sources ---- */

static int file_of(const struct bytes *b)
{
    int fd = memfd_create("spool", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, b->data, b->size), b->size);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* A writer at the other end of a pipe, which hands over `chunk` bytes at a time. */
struct feeder {
    pthread_t thread;
    int fd;
    const struct bytes *b;
    size_t chunk;
};

static void *feed(void *user)
{
    struct feeder *f = user;
    size_t at = 0;

    while (at < f->b->size) {
        size_t size = f->b->size - at < f->chunk ? f->b->size - at : f->chunk;
        ssize_t n = write(f->fd, f->b->data + at, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    close(f->fd);
    return NULL;
}

/* The reading end. Packet mode, where the system has it, keeps small pieces apart up to the reader.
 * (It drops what a read has no room for, so spools that fill a buffer go without.) */
static int start_feeder(struct feeder *f, const struct bytes *b, size_t chunk)
{
    int ends[2];

    if (b->size > 4096 || pipe2(ends, O_DIRECT | O_CLOEXEC) < 0)
        assert_int_equal(pipe(ends), 0);
    *f = (struct feeder){.fd = ends[1], .b = b, .chunk = chunk};
    assert_int_equal(pthread_create(&f->thread, NULL, feed, f), 0);
    return ends[0];
}

static void stop_feeder(struct feeder *f, int fd)
{
    close(fd);
    assert_int_equal(pthread_join(f->thread, NULL), 0);
}

static void say_memory(struct bytes *t, const struct bytes *b)
{
    struct spool_reader *r = open_bytes(b);

    say_all(t, r);
    spool_reader_free(r);
}

static void say_file(struct bytes *t, const struct bytes *b)
{
    struct spool_reader *r = new_reader();
    int fd = file_of(b);

    ok(spool_reader_open_fd(r, fd));
    say_all(t, r);
    assert_int_equal(spool_reader_input_bytes(r), b->size);
    spool_reader_free(r);
    close(fd);
}

static void say_pipe(struct bytes *t, const struct bytes *b, size_t chunk)
{
    struct spool_reader *r = new_reader();
    struct feeder f;
    int fd = start_feeder(&f, b, chunk);

    ok(spool_reader_open_fd(r, fd));
    say_all(t, r);
    spool_reader_free(r);
    stop_feeder(&f, fd);
}

static void assert_said(struct bytes *expected, struct bytes *got, const char *source, size_t chunk)
{
    if (expected->size != got->size || memcmp(expected->data, got->data, got->size) != 0)
        fail_msg("%s %zu:\n%.*s\ninstead of\n%.*s", source, chunk, (int)got->size, got->data,
                 (int)expected->size, expected->data);
    got->size = 0;
}

/* File, pipe, memory and gzip of it say the same; `chunks` end with 0. */
static void assert_one_answer(const struct bytes *b, const size_t *chunks)
{
    struct bytes memory = {0}, other = {0}, packed = {0};

    bytes_gzip(&packed, b->data, b->size);
    say_memory(&memory, b);
    say_file(&other, b);
    assert_said(&memory, &other, "file", 0);
    say_memory(&other, &packed);
    assert_said(&memory, &other, "gzip in memory", 0);
    say_file(&other, &packed);
    assert_said(&memory, &other, "gzip file", 0);
    for (; *chunks > 0; chunks++) {
        say_pipe(&other, b, *chunks);
        assert_said(&memory, &other, "pipe", *chunks);
        say_pipe(&other, &packed, *chunks);
        assert_said(&memory, &other, "gzip in a pipe", *chunks);
    }
    bytes_free(&memory);
    bytes_free(&other);
    bytes_free(&packed);
}

static void file_pipe_memory_and_gzip_say_the_same(void **state)
{
    static const size_t chunks[] = {1, 3, 7, 31, 64, 4093, 0};

    (void)state;
    for (unsigned i = 0; i < SMALL_COUNT; i++) {
        struct bytes b;

        small_spool(i, &b);
        assert_one_answer(&b, chunks);
        if (i > 0) { /* cut inside the last record */
            b.size--;
            assert_one_answer(&b, chunks);
            b.size++;
        }
        bytes_byte(&b, 0x0a); /* and damaged behind it */
        assert_one_answer(&b, chunks);
        bytes_free(&b);
    }
}

static void larger_spools_say_the_same_from_everywhere(void **state)
{
    static const char *const names[] = {"synth/unpinned", "synth/churn-half", "synth/basic-v1"};
    static const size_t chunks[] = {1021, 65536, 0};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct bytes b = {0};
        char path[512];

        snprintf(path, sizeof path, "%s/stackpulse/%s.spool", FIXTURES_DIR, names[i]);
        bytes_file(&b, path);
        assert_one_answer(&b, chunks);
        b.data[b.size / 2] ^= 0x40;
        assert_one_answer(&b, chunks);
        bytes_free(&b);
    }
}

static void a_spool_in_several_gzip_members_is_one_spool(void **state)
{
    struct bytes b, packed = {0}, plain = {0}, other = {0};

    (void)state;
    small_spool(5, &b);
    say_memory(&plain, &b);
    for (size_t cut = 0; cut <= b.size; cut++) {
        packed.size = 0;
        bytes_gzip(&packed, b.data, cut);
        bytes_gzip(&packed, b.data + cut, b.size - cut);
        say_memory(&other, &packed);
        assert_said(&plain, &other, "two members, cut at", cut);
    }
    bytes_free(&b);
    bytes_free(&packed);
    bytes_free(&plain);
    bytes_free(&other);
}

static void a_live_pipe_gives_each_record_as_soon_as_it_is_there(void **state)
{
    struct bytes b;
    struct spool_reader *whole, *live = new_reader();
    struct spool_record rec;
    uint64_t written = 0;
    int ends[2];

    (void)state;
    small_spool(5, &b);
    whole = open_bytes(&b);
    assert_int_equal(pipe(ends), 0);
    alarm(20); /* waiting for more than it needs is waiting for ever */
    written = spool_reader_kept_bytes(whole);
    assert_int_equal(write(ends[1], b.data, written), written);
    ok(spool_reader_open_fd(live, ends[0]));
    while (spool_reader_next(whole, &rec) > 0) {
        uint64_t until = spool_reader_kept_bytes(whole);

        assert_int_equal(write(ends[1], b.data + written, until - written), until - written);
        written = until;
        assert_int_equal(spool_reader_next(live, &rec), 1);
        assert_int_equal(spool_reader_kept_bytes(live), until);
    }
    close(ends[1]);
    ok(spool_reader_next(live, &rec));
    alarm(0);
    close(ends[0]);
    spool_reader_free(whole);
    spool_reader_free(live);
    bytes_free(&b);
}

static void a_descriptor_is_read_from_where_it_stands(void **state)
{
    struct bytes b = {0}, tail;
    struct spool_reader *r = new_reader();
    int fd;

    (void)state;
    small_spool(1, &tail);
    bytes_put(&b, "garbage", 7);
    bytes_put(&b, tail.data, tail.size);
    fd = file_of(&b);
    assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
    ok(spool_reader_open_fd(r, fd));
    assert_int_equal(read_all(r), 10);
    assert_int_equal(spool_reader_kept_bytes(r), tail.size);
    spool_reader_free(r);
    assert_int_equal(close(fd), 0); /* it is still the caller's */
    bytes_free(&b);
    bytes_free(&tail);
}

/* ---- damage ---- */

/*
 * Reads damaged bytes in a block of their own size. Whatever they are: records up to an end, or an
 * error that has a text, never both; the verdict stays; and what was kept is a whole spool with the
 * same records. Returns their number; *rc is 0 or the error.
 */
static size_t assert_verdict(const uint8_t *data, size_t size, int *rc)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    struct spool_reader *r = new_reader(), *again;
    struct spool_record rec;
    char text[300];
    size_t n = 0;
    uint64_t kept;

    assert_non_null(exact);
    memcpy(exact, data, size);
    *rc = spool_reader_open_memory(r, exact, size);
    if (*rc < 0)
        assert_null(spool_reader_header(r));
    else
        assert_non_null(spool_reader_header(r));
    if (*rc == 0)
        while ((*rc = spool_reader_next(r, &rec)) > 0)
            n++;
    snprintf(text, sizeof text, "%s", spool_reader_error(r));
    kept = spool_reader_kept_bytes(r);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(spool_reader_error_code(r), *rc);
        assert_string_equal(spool_reader_error(r), text);
        assert_int_equal(spool_reader_kept_bytes(r), kept);
        assert_int_equal(spool_reader_next(r, &rec), *rc);
    }
    if (*rc < 0) {
        assert_true(*rc == SPOOL_ERR_CORRUPT || n == 0);
        assert_true(text[0] != '\0');
        assert_string_not_equal(text, "no error");
        assert_false(spool_reader_cut_tail(r));
    } else {
        assert_string_equal(text, "no error");
    }
    if (!spool_reader_is_gzip(r) && spool_reader_header(r)) {
        assert_in_range(kept, 10, size);
        if (*rc == 0)
            assert_int_equal(spool_reader_cut_tail(r), kept < size);
        again = new_reader();
        ok(spool_reader_open_memory(again, exact, (size_t)kept));
        assert_int_equal(read_all(again), n);
        assert_false(spool_reader_cut_tail(again));
        spool_reader_free(again);
    }
    spool_reader_free(r);
    free(exact);
    return n;
}

static void every_cut_keeps_the_records_before_it(void **state)
{
    (void)state;
    for (unsigned number = 0; number < SMALL_COUNT; number++) {
        struct bytes b;
        struct spool_reader *r;
        struct spool_record rec;
        size_t ends[100], header, whole = 0;
        int rc;

        small_spool(number, &b);
        r = open_bytes(&b);
        header = (size_t)spool_reader_kept_bytes(r);
        while (spool_reader_next(r, &rec) > 0)
            ends[whole++] = (size_t)spool_reader_kept_bytes(r);
        spool_reader_free(r);
        for (size_t cut = 0; cut <= b.size; cut++) {
            size_t n = assert_verdict(b.data, cut, &rc), expected = 0;

            assert_int_equal(rc, cut < header ? SPOOL_ERR_TRUNCATED : 0);
            while (expected < whole && ends[expected] <= cut)
                expected++;
            assert_int_equal(n, expected);
        }
        bytes_free(&b);
    }
}

static void every_changed_byte_ends_in_records_or_an_error(void **state)
{
    (void)state;
    for (unsigned number = 0; number < SMALL_COUNT; number++) {
        struct bytes b;
        int rc;

        small_spool(number, &b);
        for (size_t i = 0; i < b.size; i++) {
            uint8_t original = b.data[i];

            for (unsigned value = 0; value < 256; value++) {
                b.data[i] = (uint8_t)value;
                assert_verdict(b.data, b.size, &rc);
                if (i < 8 && value != original && !(i == 6 && value >= '1' && value <= '4'))
                    assert_true(rc == SPOOL_ERR_FORMAT || rc == SPOOL_ERR_VERSION);
            }
            b.data[i] = original;
        }
        bytes_free(&b);
    }
}

static void every_cut_and_changed_byte_of_gzip_ends_in_records_or_an_error(void **state)
{
    struct bytes b, packed = {0};
    int rc;

    (void)state;
    small_spool(5, &b);
    bytes_gzip(&packed, b.data, b.size);
    for (size_t cut = 0; cut < packed.size; cut++) {
        assert_verdict(packed.data, cut, &rc);
        /* One byte of gzip is no gzip yet. */
        assert_true(rc == 0 || rc == SPOOL_ERR_TRUNCATED || (cut == 1 && rc == SPOOL_ERR_FORMAT));
    }
    for (size_t i = 0; i < packed.size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            packed.data[i] ^= (uint8_t)(1u << bit);
            assert_verdict(packed.data, packed.size, &rc);
            packed.data[i] ^= (uint8_t)(1u << bit);
        }
    }
    bytes_free(&b);
    bytes_free(&packed);
}

static void damage_in_gzip_keeps_what_was_read_before_it(void **state)
{
    struct bytes b, packed = {0};
    struct spool_reader *r;
    struct spool_record rec;
    size_t whole, n = 0;
    int rc;

    (void)state;
    small_spool(5, &b);
    r = open_bytes(&b);
    whole = read_all(r);
    spool_reader_free(r);
    bytes_gzip(&packed, b.data, b.size);
    packed.data[packed.size - 5] ^= 1; /* the checksum */
    for (int from_fd = 0; from_fd < 2; from_fd++) {
        int fd = file_of(&packed);

        r = new_reader();
        ok(from_fd ? spool_reader_open_fd(r, fd)
                   : spool_reader_open_memory(r, packed.data, packed.size));
        for (n = 0; (rc = spool_reader_next(r, &rec)) > 0; n++)
            continue;
        assert_int_equal(rc, SPOOL_ERR_CORRUPT);
        assert_non_null(strstr(spool_reader_error(r), "gzip data at byte "));
        assert_int_equal(n, whole);
        assert_int_equal(spool_reader_kept_bytes(r), b.size);
        assert_false(spool_reader_cut_tail(r));
        assert_non_null(spool_reader_header(r));
        assert_frame_in(r, 1, 7, 1, 0x180); /* all of it stays usable */
        spool_reader_free(r);
        close(fd);
    }
    bytes_free(&b);
    bytes_free(&packed);
}

static void gzip_cut_between_records_is_a_cut_tail(void **state)
{
    struct bytes b, packed = {0};
    struct spool_reader *r;

    (void)state;
    small_spool(1, &b);
    bytes_gzip(&packed, b.data, b.size);
    packed.size -= 4; /* of its trailer: all data is there */
    r = open_bytes(&packed);
    assert_int_equal(read_all(r), 10);
    assert_true(spool_reader_cut_tail(r));
    assert_int_equal(spool_reader_kept_bytes(r), b.size);
    spool_reader_free(r);
    bytes_free(&b);
    bytes_free(&packed);
}

/* The table of the format's description, 7.2: what a piece of a record at the end is. */
static void the_order_of_checks_decides_between_cut_off_and_corrupt(void **state)
{
#define VARINTS_9 "80 80 80 80 80 80 80 80 80 "
    static const struct {
        unsigned version;
        const char *tail;
        bool corrupt;
    } rows[] = {
        {3, "01", false},
        {3, "02", false},
        {3, "03", false},
        {3, "04", false},
        {3, "05", false},
        {3, "06", false},
        {3, "07", false},
        {3, "08", false},
        {4, "09", false},
        {3, "09", true},
        {3, "0a", true},
        {3, "00", true},
        {3, "ff", true},
        {1, "08", true},
        {2, "08", false},
        {3, "04 05", true},                   /* a thread with a wrong id */
        {3, "04 01 8080808010", true},        /* process id 2^31 */
        {3, "04 01 fe ff ff ff", false},      /* may still become a smaller one */
        {3, "05 ffffffffffffffffff01", true}, /* an impossible delta */
        {3, "05 00 01", true},                /* a missing thread */
        {3, "05 00 00", false},
        {3, "03 01 01", true}, /* a missing prefix */
        {3, "03 01 00", false},
        {3, "02 01 12", false},                               /* the code of a missing module */
        {3, "02 01 12 00", true},                             /* and its address */
        {3, "02 01 12 80", false},                            /* part of it */
        {3, "01 01 0e 00 00 00 00 8080808010", true},         /* device major 2^32 */
        {3, "01 01 0e 00 00 00 00 00 00 00 00 02 c3", false}, /* half a character of a path */
        {3, "01 01 0e 00 00 00 00 00 00 00 00 02 c3 c3", true},
        {3, "07 80", false},
        {3, "07 " VARINTS_9, false},
        {3, "07 " VARINTS_9 "80", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes b = {0};
        int rc;

        bytes_header(&b, rows[i].version, 0, 0);
        bytes_module(&b, rows[i].version, 0, 7, 0, 9, 0, false, "");
        bytes_frame(&b, 0, CODE_USER, 1);
        bytes_stack(&b, 0, ROOT, 0);
        bytes_thread(&b, 0, 7, 7);
        bytes_hex(&b, rows[i].tail);
        assert_int_equal(assert_verdict(b.data, b.size, &rc), 4);
        if (rc != (rows[i].corrupt ? SPOOL_ERR_CORRUPT : 0))
            fail_msg("version %u, %s: %d", rows[i].version, rows[i].tail, rc);
        bytes_free(&b);
    }
}

static void zeros_behind_the_last_record_are_no_cut_tail(void **state)
{
    struct bytes b;
    int rc;

    (void)state;
    small_spool(1, &b);
    for (int i = 0; i < 64; i++)
        bytes_byte(&b, 0);
    assert_int_equal(assert_verdict(b.data, b.size, &rc), 10);
    assert_int_equal(rc, SPOOL_ERR_CORRUPT);
    bytes_free(&b);
}

static void an_error_stays_and_leaves_the_rest_usable(void **state)
{
    struct bytes b;
    struct spool_reader *r;
    struct spool_record rec;
    char expected[100];

    (void)state;
    small_spool(2, &b);
    snprintf(expected, sizeof expected, "thread record at byte %zu has id 5 instead of 1", b.size);
    bytes_thread(&b, 5, 7, 8);
    bytes_sample(&b, 1, 0, 0);
    r = open_bytes(&b);
    for (int i = 0; i < 10; i++)
        assert_int_equal(spool_reader_next(r, &rec), 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(spool_reader_next(r, &rec), SPOOL_ERR_CORRUPT);
        assert_int_equal(spool_reader_error_code(r), SPOOL_ERR_CORRUPT);
        assert_string_equal(spool_reader_error(r), expected);
    }
    assert_false(spool_reader_cut_tail(r));
    assert_int_equal(spool_reader_header(r)->version, 2);
    assert_frame_in(r, 1, 7, 1, 0x900);
    assert_int_equal(spool_reader_timeline_us(r, 20), 0);
    assert_int_equal(spool_reader_open_memory(r, b.data, b.size), SPOOL_ERR_MISUSE);
    assert_string_equal(spool_reader_error(r), expected); /* the first error's */
    assert_int_equal(spool_reader_next(r, &rec), SPOOL_ERR_CORRUPT);
    spool_reader_free(r);
    bytes_free(&b);
}

static void a_refused_sample_leaves_no_trace(void **state)
{
    struct bytes b = {0};
    struct spool_counts counts;
    struct spool_reader *r;
    struct spool_record rec;

    (void)state;
    bytes_header(&b, 3, 0, 0);
    bytes_frame(&b, 0, CODE_USER, 1);
    bytes_stack(&b, 0, ROOT, 0);
    bytes_thread(&b, 0, 7, 7);
    bytes_sample(&b, 100, 0, 0);
    bytes_sample(&b, 50, 0, 1);
    for (int i = 0; i < 40; i++) /* so that the first tries take the path of complete samples */
        bytes_byte(&b, 0);
    r = open_bytes(&b);
    for (int i = 0; i < 4; i++)
        assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_int_equal(spool_reader_next(r, &rec), SPOOL_ERR_CORRUPT);
    assert_non_null(strstr(spool_reader_error(r), "sample record at byte "));
    assert_non_null(strstr(spool_reader_error(r), "refers to stack 1 of 1"));
    spool_reader_counts(r, &counts);
    assert_int_equal(counts.samples, 1);
    spool_reader_free(r);
    bytes_free(&b);
}

/* Samples far from the end of the window and close to it are read by different code. */
static void both_ways_to_read_samples_judge_alike(void **state)
{
    static const struct {
        const char *hex;
        int rc;
        const char *text;
    } rows[] = {
        {"05 02 00 00", 1, NULL},
        {"05 8200 8000 808000", 1, NULL},
        {"05 01 00 00", 1, NULL},
        {"05 cf0f 00 00", 1, NULL}, /* to 0 */
        {"05 d10f 00 00", SPOOL_ERR_CORRUPT, "has a time delta of -1001 ns after time 1000 ns"},
        {"05 ffffffffffffffffff01 00 00", SPOOL_ERR_CORRUPT,
         "has a time delta of -9223372036854775808 ns after time 1000 ns"},
        {"05 feffffffffffffffff01 00 00", 1, NULL},
        {"05 ffffffffffffffffff02 00 00", SPOOL_ERR_CORRUPT, "has a number of more than 64 bits"},
        {"05 00 ffffffffffffffffff02 00", SPOOL_ERR_CORRUPT, "has a number of more than 64 bits"},
        {"05 00 00 ffffffffffffffffff02", SPOOL_ERR_CORRUPT, "has a number of more than 64 bits"},
        {"05 00 01 00", SPOOL_ERR_CORRUPT, "refers to thread 1 of 1"},
        {"05 00 00 01", SPOOL_ERR_CORRUPT, "refers to stack 1 of 1"},
        {"05 00 8080808010 00", SPOOL_ERR_CORRUPT, "refers to thread 4294967296 of 1"},
        {"05 00 00 8080808010", SPOOL_ERR_CORRUPT, "refers to stack 4294967296 of 1"},
        {"05 00 01 ffffffffffffffffff02", SPOOL_ERR_CORRUPT, "refers to thread 1 of 1"},
        {"05 d10f 01 00", SPOOL_ERR_CORRUPT, "has a time delta of -1001 ns"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct spool_sample seen[2];

        for (int near_end = 0; near_end < 2; near_end++) {
            struct bytes b = {0};
            struct spool_reader *r;
            struct spool_record rec;

            bytes_header(&b, 3, 0, 0);
            bytes_frame(&b, 0, CODE_USER, 1);
            bytes_stack(&b, 0, ROOT, 0);
            bytes_thread(&b, 0, 7, 7);
            bytes_sample(&b, 1000, 0, 0);
            bytes_hex(&b, rows[i].hex);
            for (int k = 0; !near_end && k < 20; k++)
                bytes_deactivate_process(&b, 1);
            r = open_bytes(&b);
            for (int k = 0; k < 4; k++)
                assert_int_equal(spool_reader_next(r, &rec), 1);
            assert_int_equal(spool_reader_next(r, &rec), rows[i].rc);
            if (rows[i].text)
                assert_non_null(strstr(spool_reader_error(r), rows[i].text));
            seen[near_end] = rec.sample;
            if (rows[i].rc == 1) {
                assert_int_equal(rec.sample.index, 1);
                assert_int_equal(rec.sample.time_ns, 1000 + (uint64_t)rec.sample.delta_ns);
                if (near_end)
                    assert_int_equal(seen[0].delta_ns, seen[1].delta_ns);
            }
            spool_reader_free(r);
            bytes_free(&b);
        }
    }
}

static void both_ways_to_read_stack_nodes_judge_alike(void **state)
{
    static const struct {
        const char *hex;
        int rc;
        const char *text;
        uint32_t prefix;
        uint32_t depth;
    } rows[] = {
        {"03 02 ffffffff0f 00", 1, NULL, SPOOL_NO_ID, 1},
        {"03 02 00 01", 1, NULL, 0, 2},
        {"03 02 01 01", 1, NULL, 1, 3},
        {"03 8200 818000 8100", 1, NULL, 1, 3},
        {"03 01 00 00", SPOOL_ERR_CORRUPT, "has id 1 instead of 2", 0, 0},
        {"03 03 00 00", SPOOL_ERR_CORRUPT, "has id 3 instead of 2", 0, 0},
        {"03 8280808010 00 00", SPOOL_ERR_CORRUPT, "has id 4294967298 instead of 2", 0, 0},
        {"03 02 02 00", SPOOL_ERR_CORRUPT, "refers to prefix 2 of 2", 0, 0},
        {"03 02 8080808010 00", SPOOL_ERR_CORRUPT, "refers to prefix 4294967296 of 2", 0, 0},
        {"03 02 feffffff0f 00", SPOOL_ERR_CORRUPT, "refers to prefix 4294967294 of 2", 0, 0},
        {"03 02 ffffffffffffffffff01 00", SPOOL_ERR_CORRUPT,
         "refers to prefix 18446744073709551615 of 2", 0, 0},
        {"03 02 00 02", SPOOL_ERR_CORRUPT, "refers to frame 2 of 2", 0, 0},
        {"03 02 02 02", SPOOL_ERR_CORRUPT, "refers to prefix 2 of 2", 0, 0},
        {"03 02 00 8080808010", SPOOL_ERR_CORRUPT, "refers to frame 4294967296 of 2", 0, 0},
        {"03 ffffffffffffffffff02 00 00", SPOOL_ERR_CORRUPT, "has a number of more than 64", 0, 0},
        {"03 02 ffffffffffffffffff02 00", SPOOL_ERR_CORRUPT, "has a number of more than 64", 0, 0},
        {"03 02 00 ffffffffffffffffff02", SPOOL_ERR_CORRUPT, "has a number of more than 64", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int near_end = 0; near_end < 2; near_end++) {
            struct bytes b = {0};
            struct spool_reader *r;
            struct spool_record rec;
            struct spool_stack stack;

            bytes_header(&b, 3, 0, 0);
            bytes_frame(&b, 0, CODE_USER, 1);
            bytes_frame(&b, 1, CODE_USER, 2);
            bytes_stack(&b, 0, ROOT, 0);
            bytes_stack(&b, 1, 0, 1);
            bytes_hex(&b, rows[i].hex);
            for (int k = 0; !near_end && k < 20; k++)
                bytes_deactivate_process(&b, 1);
            r = open_bytes(&b);
            for (int k = 0; k < 4; k++)
                assert_int_equal(spool_reader_next(r, &rec), 1);
            assert_int_equal(spool_reader_next(r, &rec), rows[i].rc);
            assert_int_equal(spool_reader_stack(r, 2, &stack), rows[i].rc == 1);
            if (rows[i].rc == 1) {
                assert_int_equal(rec.type, SPOOL_RECORD_STACK);
                assert_int_equal(rec.stack.id, 2);
                assert_int_equal(rec.stack.prefix, rows[i].prefix);
                assert_int_equal(rec.stack.depth, rows[i].depth);
                assert_int_equal(stack.prefix, rows[i].prefix);
                assert_int_equal(stack.frame, rec.stack.frame);
                assert_int_equal(stack.depth, rows[i].depth);
            } else {
                assert_non_null(strstr(spool_reader_error(r), rows[i].text));
            }
            spool_reader_free(r);
            bytes_free(&b);
        }
    }
}

/* ---- ids and lengths ---- */

static void ids_of_2_to_the_32_are_not_truncated(void **state)
{
    const uint64_t high = (uint64_t)1 << 32;

    (void)state;
    for (unsigned field = 0; field < 10; field++) {
        struct bytes b = {0};
        struct spool_reader *r;
        struct spool_record rec;
        int rc;

        bytes_header(&b, 3, 0, 0);
        bytes_module(&b, 3, 0 + (field == 0 ? high : 0), 7, 0, 9, 0, false, "");
        bytes_frame(&b, 0 + (field == 1 ? high : 0), CODE_PINNED(field == 2 ? high : 0), 1);
        bytes_stack(&b, 0 + (field == 3 ? high : 0), field == 4 ? high : ROOT,
                    field == 5 ? high : 0);
        bytes_thread(&b, 0 + (field == 6 ? high : 0), 7, 7);
        bytes_sample(&b, 1, field == 7 ? high : 0, field == 8 ? high : 0);
        bytes_deactivate_module(&b, field == 9 ? high : 0);
        r = open_bytes(&b);
        while ((rc = spool_reader_next(r, &rec)) > 0)
            continue;
        assert_int_equal(rc, SPOOL_ERR_CORRUPT);
        assert_non_null(strstr(spool_reader_error(r), field == 2 ? "4294967296" : "4294967296 "));
        spool_reader_free(r);
        bytes_free(&b);
    }
}

/* A spool with one module whose path claims to have `length` bytes; the sparse file has `tail` of
 * them. */
static int file_with_path(uint64_t length, off_t tail, uint64_t *record_at, uint64_t *path_at)
{
    struct bytes b = {0};
    int fd;

    bytes_header(&b, 4, 0, 0);
    bytes_deactivate_process(&b, 1);
    *record_at = b.size;
    bytes_byte(&b, 1);
    bytes_module_fields(&b, 4, 0, 7, 0, 9, 0, false);
    bytes_uv(&b, length);
    *path_at = b.size;
    fd = file_of(&b);
    assert_int_equal(ftruncate(fd, (off_t)b.size + tail), 0);
    bytes_free(&b);
    return fd;
}

static long peak_kib(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* Reads the file in a child: how far its peak of memory rises, in MiB. It checks the outcome
 * itself. */
static int peak_growth(int fd, int expected, uint64_t kept, bool cut)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        long before = peak_kib();
        struct spool_reader *r = spool_reader_new();
        struct spool_record rec;
        bool right;
        int rc = r ? spool_reader_open_fd(r, fd) : SPOOL_ERR_NOMEM;

        while (rc == 0 && (rc = spool_reader_next(r, &rec)) > 0)
            rc = 0;
        right =
            rc == expected && spool_reader_kept_bytes(r) == kept && spool_reader_cut_tail(r) == cut;
        spool_reader_free(r);
        _exit(right ? (int)((peak_kib() - before) / 1024) : 255);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), 255);
    return WEXITSTATUS(status);
}

static void a_path_length_is_not_believed_before_the_path_is_there(void **state)
{
    static const uint64_t lengths[] = {2 << 20,          32 << 20,          64 << 20,
                                       (64 << 20) + 1,   (uint64_t)1 << 32, (uint64_t)1 << 40,
                                       (uint64_t)1 << 63};
    uint64_t record_at, path_at;

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int fd = file_with_path(lengths[i], 1 << 20, &record_at, &path_at);

        assert_in_range(peak_growth(fd, 0, record_at, true), 0, 8);
        close(fd);
    }
}

static void a_huge_path_is_passed_over_without_keeping_it(void **state)
{
    uint64_t record_at, path_at;
    int fd = file_with_path((uint64_t)1 << 40, 200 << 20, &record_at, &path_at);

    (void)state;
    assert_in_range(peak_growth(fd, 0, record_at, true), 0, 8); /* 200 MiB of it are there */
    close(fd);
    fd = file_with_path((64 << 20) + 1, 65 << 20, &record_at, &path_at); /* all of it is */
    assert_in_range(peak_growth(fd, SPOOL_ERR_LIMIT, record_at, false), 0, 8);
    close(fd);
}

static void a_path_beyond_the_limit_is_refused_where_it_is_complete(void **state)
{
    uint64_t record_at, path_at;
    const uint64_t size = (64 << 20) + 1;
    char text[200];

    (void)state;
    for (int from_memory = 0; from_memory < 2; from_memory++) {
        for (int missing = 0; missing < 2; missing++) {
            int fd = file_with_path(size, (off_t)size - missing, &record_at, &path_at);
            size_t mapped = (size_t)(path_at + size) - (size_t)missing;
            struct spool_reader *r = new_reader();
            struct spool_record rec;
            void *data = mmap(NULL, mapped, PROT_READ, MAP_PRIVATE, fd, 0);

            assert_ptr_not_equal(data, MAP_FAILED);
            ok(from_memory ? spool_reader_open_memory(r, data, mapped)
                           : spool_reader_open_fd(r, fd));
            assert_int_equal(spool_reader_next(r, &rec), 1);
            assert_int_equal(spool_reader_next(r, &rec), missing ? 0 : SPOOL_ERR_LIMIT);
            assert_int_equal(spool_reader_kept_bytes(r), record_at);
            assert_int_equal(spool_reader_cut_tail(r), missing);
            if (!missing) {
                snprintf(text, sizeof text,
                         "module record at byte %" PRIu64 " has more than %" PRIu64
                         " bytes, beyond the limit of this reader",
                         record_at, path_at - record_at + size);
                assert_string_equal(spool_reader_error(r), text);
            }
            assert_int_equal(spool_reader_next(r, &rec), missing ? 0 : SPOOL_ERR_LIMIT);
            spool_reader_free(r);
            munmap(data, mapped);
            close(fd);
        }
    }
}

static void a_path_length_that_leads_beyond_64_bits_is_corrupt(void **state)
{
    struct bytes b = {0};
    int rc;

    (void)state;
    bytes_header(&b, 3, 0, 0);
    bytes_byte(&b, 1);
    bytes_module_fields(&b, 3, 0, 7, 0, 9, 0, false);
    bytes_uv(&b, UINT64_MAX);
    assert_verdict(b.data, b.size, &rc);
    assert_int_equal(rc, SPOOL_ERR_CORRUPT);
    for (int beyond = 0; beyond < 2; beyond++) { /* to 2^64-1 exactly: a cut tail */
        b.size -= 10;
        bytes_uv(&b, UINT64_MAX - b.size - 10 + (uint64_t)beyond);
        assert_verdict(b.data, b.size, &rc);
        assert_int_equal(rc, beyond ? SPOOL_ERR_CORRUPT : 0);
    }
    bytes_free(&b);
}

static void a_long_path_and_a_large_jit_module_come_whole_through_a_pipe(void **state)
{
    const size_t path_size = 3 << 20, symbols = 50000;
    struct bytes b = {0};
    struct spool_reader *r = new_reader();
    struct spool_record rec;
    struct feeder f;
    int fd;

    (void)state;
    bytes_header(&b, 4, 0, 0);
    bytes_byte(&b, 1);
    bytes_module_fields(&b, 4, 0, 7, 0, 9, 0, false);
    bytes_uv(&b, path_size);
    for (size_t i = 0; i < path_size; i++)
        bytes_byte(&b, 'a' + i % 26);
    bytes_byte(&b, 9);
    bytes_module_fields(&b, 4, 1, 7, 0, 1 << 30, 0, false);
    bytes_text(&b, "[jit]");
    bytes_uv(&b, symbols);
    for (size_t i = 0; i < symbols; i++) {
        char name[64];

        snprintf(name, sizeof name, "a symbol with a name of some length and number %zu", i);
        bytes_uv(&b, i);
        bytes_uv(&b, i + 2);
        bytes_text(&b, name);
    }
    fd = start_feeder(&f, &b, 4096);
    ok(spool_reader_open_fd(r, fd));
    rec = next(r, SPOOL_RECORD_MODULE);
    assert_int_equal(rec.module.path_size, path_size);
    for (size_t i = 0; i < path_size; i += 4097)
        assert_int_equal(rec.module.path[i], 'a' + i % 26);
    rec = next(r, SPOOL_RECORD_JIT_MODULE);
    assert_int_equal(rec.module.jit_symbol_count, symbols);
    assert_int_equal(rec.module.jit_symbols[symbols - 1].start, symbols - 1);
    assert_string_equal(rec.module.jit_symbols[symbols - 1].name,
                        "a symbol with a name of some length and number 49999");
    assert_int_equal(read_all(r), 0);
    spool_reader_free(r);
    stop_feeder(&f, fd);
    bytes_free(&b);
}

static void a_million_stack_nodes_are_read_from_a_file_and_from_gzip(void **state)
{
    const uint32_t n = 1000000;
    struct bytes b = {0}, packed = {0};

    (void)state;
    bytes_header(&b, 3, 0, 0);
    bytes_frame(&b, 0, CODE_USER, 1);
    for (uint32_t i = 0; i < n; i++)
        bytes_stack(&b, i, i == 0 ? ROOT : i - 1, 0);
    bytes_thread(&b, 0, 7, 7);
    bytes_sample(&b, 5, 0, n - 1);
    bytes_gzip(&packed, b.data, b.size);
    for (int gzip = 0; gzip < 2; gzip++) {
        struct spool_reader *r = new_reader();
        struct spool_stack stack;
        const struct spool_stack_node *nodes;
        int fd = file_of(gzip ? &packed : &b);

        ok(spool_reader_open_fd(r, fd));
        assert_int_equal(read_all(r), n + 3);
        assert_int_equal(spool_reader_is_gzip(r), gzip);
        assert_true(spool_reader_stack(r, n - 1, &stack));
        assert_int_equal(stack.depth, n);
        assert_int_equal(stack.prefix, n - 2);
        assert_false(spool_reader_stack(r, n, &stack));
        nodes = spool_reader_stack_nodes(r);
        for (uint32_t i = 1; i < n; i++)
            if (nodes[i].prefix != i - 1 || nodes[i].frame != 0)
                fail_msg("node %u", i);
        assert_int_equal(nodes[0].prefix, SPOOL_NO_ID);
        spool_reader_free(r);
        close(fd);
    }
    bytes_free(&b);
    bytes_free(&packed);
}

/* ---- what is not a spool ---- */

static void what_is_not_a_spool_is_named_when_it_is_known(void **state)
{
    static const struct {
        const char *data;
        size_t size;
        int code;
        const char *text;
    } rows[] = {
#define INPUT(bytes) bytes, sizeof bytes - 1
        {INPUT(""), SPOOL_ERR_TRUNCATED, "not a spool but empty"},
        {INPUT("S"), SPOOL_ERR_TRUNCATED, "the input ends inside the header, after 1 byte"},
        {INPUT("SPULSE"), SPOOL_ERR_TRUNCATED, "the input ends inside the header, after 6 bytes"},
        {INPUT("SPULSE3"), SPOOL_ERR_TRUNCATED, "the input ends inside the header, after 7 bytes"},
        {INPUT("SPULSE3\0"), SPOOL_ERR_TRUNCATED,
         "the input ends inside the header, after 8 bytes"},
        {INPUT("SPULSE3\0\x80\x80"), SPOOL_ERR_TRUNCATED,
         "the input ends inside the header, after 10 bytes"},
        {INPUT("SPULSE0\0\0\0"), SPOOL_ERR_VERSION,
         "spool version 0; the versions read are 1 to 4"},
        {INPUT("SPULSE5\0\0\0"), SPOOL_ERR_VERSION,
         "spool version 5; the versions read are 1 to 4 (a newer release may read it)"},
        {INPUT("SPULSE9\0"), SPOOL_ERR_VERSION,
         "spool version 9; the versions read are 1 to 4 (a newer release may read it)"},
        {INPUT("SPULSE3x\0\0"), SPOOL_ERR_FORMAT, "not a spool"},
        {INPUT("SPULSE:\0\0\0"), SPOOL_ERR_FORMAT, "not a spool"},
        {INPUT("SPULSE/\0\0\0"), SPOOL_ERR_FORMAT, "not a spool"},
        {INPUT("spulse3\0\0\0"), SPOOL_ERR_FORMAT, "not a spool"},
        {INPUT("x"), SPOOL_ERR_FORMAT, "not a spool"},
        {INPUT("\n"), SPOOL_ERR_FORMAT, "not a spool"},
        {INPUT("CHPERF2\0\0\0"), SPOOL_ERR_FORMAT,
         "not a spool but a file from before the first release of the format"},
        {INPUT("PERFILE2h"), SPOOL_ERR_FORMAT,
         "not a spool but a perf.data file (perf script shows it)"},
        {INPUT("2ELIFREP"), SPOOL_ERR_FORMAT,
         "not a spool but a perf.data file of the other byte order"},
        {INPUT("\177ELF\2\1\1\0\0"), SPOOL_ERR_FORMAT, "not a spool but an ELF file"},
        {INPUT("JiTD\0\0\0\1"), SPOOL_ERR_FORMAT, "not a spool but a jitdump"},
        {INPUT("DTiJ"), SPOOL_ERR_FORMAT, "not a spool but a jitdump"},
        {INPUT("\x28\xb5\x2f\xfd\0\0\0\0"), SPOOL_ERR_FORMAT,
         "not a spool but zstd data (only gzip is unpacked here: try zstd -dc)"},
        {INPUT("\xfd"
               "7zXZ\0\0\0"),
         SPOOL_ERR_FORMAT, "not a spool but xz data (only gzip is unpacked here: try xz -dc)"},
        {INPUT("BZh91AY&SY"), SPOOL_ERR_FORMAT,
         "not a spool but bzip2 data (only gzip is unpacked here: try bzip2 -dc)"},
        {INPUT("PK\3\4\0\0\0\0"), SPOOL_ERR_FORMAT, "not a spool but a zip archive"},
        {INPUT("{\"nodes\":["), SPOOL_ERR_FORMAT, "not a spool but JSON"},
        {INPUT("\x0a\x04\x08\x01\x10\x02\x0a\x04"), SPOOL_ERR_FORMAT,
         "not a spool but a pprof profile (go tool pprof shows it)"},
        {INPUT("SPULSE4\0\0\0\2"), SPOOL_ERR_CORRUPT,
         "header has clock origin selector 2 instead of 0 or 1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes b = {0};

        bytes_put(&b, rows[i].data, rows[i].size);
        for (int from_fd = 0; from_fd < 2; from_fd++) {
            struct spool_reader *r = new_reader();
            struct spool_record rec;
            int fd = file_of(&b);

            assert_int_equal(from_fd ? spool_reader_open_fd(r, fd)
                                     : spool_reader_open_memory(r, b.data, b.size),
                             rows[i].code);
            assert_string_equal(spool_reader_error(r), rows[i].text);
            assert_int_equal(spool_reader_error_code(r), rows[i].code);
            assert_null(spool_reader_header(r));
            ok((int)spool_reader_kept_bytes(r));
            assert_int_equal(spool_reader_next(r, &rec), rows[i].code);
            assert_string_equal(spool_reader_error(r), rows[i].text);
            spool_reader_free(r);
            close(fd);
        }
        bytes_free(&b);
    }
}

static void what_is_not_a_spool_is_named_inside_gzip_too(void **state)
{
    static const struct {
        const char *data;
        size_t size;
        int code;
        const char *text;
    } rows[] = {
        {INPUT(""), SPOOL_ERR_TRUNCATED, "not a spool but empty"},
        {INPUT("SPULSE3\0\0"), SPOOL_ERR_TRUNCATED,
         "the input ends inside the header, after 9 bytes"},
        {INPUT("\x0a\x04\x08\x01\x10\x02\x0a\x04"), SPOOL_ERR_FORMAT,
         "not a spool but a pprof profile (go tool pprof shows it)"},
        {INPUT("something"), SPOOL_ERR_FORMAT, "not a spool but gzip of something else"},
        {INPUT("SPULSE7\0\0"), SPOOL_ERR_VERSION,
         "spool version 7; the versions read are 1 to 4 (a newer release may read it)"},
    };
    struct bytes packed = {0}, twice = {0};
    struct spool_reader *r;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        r = new_reader();
        packed.size = 0;
        bytes_gzip(&packed, rows[i].data, rows[i].size);
        assert_int_equal(spool_reader_open_memory(r, packed.data, packed.size), rows[i].code);
        assert_string_equal(spool_reader_error(r), rows[i].text);
        spool_reader_free(r);
    }
    bytes_gzip(&twice, packed.data, packed.size);
    r = new_reader();
    assert_int_equal(spool_reader_open_memory(r, twice.data, twice.size), SPOOL_ERR_FORMAT);
    assert_string_equal(
        spool_reader_error(r),
        "not a spool but gzip data inside gzip data (gzip -dc unpacks one of them)");
    spool_reader_free(r);
    bytes_free(&packed);
    bytes_free(&twice);
}

static void descriptors_that_cannot_be_read_are_input_errors(void **state)
{
    struct spool_reader *r = new_reader();
    struct spool_record rec;
    int fd = open("/", O_RDONLY | O_DIRECTORY);

    (void)state;
    assert_int_equal(spool_reader_open_fd(r, fd), SPOOL_ERR_IO);
    assert_string_equal(spool_reader_error(r), "is a directory");
    assert_null(spool_reader_header(r));
    assert_int_equal(spool_reader_next(r, &rec), SPOOL_ERR_IO);
    spool_reader_free(r);
    close(fd);

    r = new_reader();
    assert_int_equal(spool_reader_open_fd(r, -1), SPOOL_ERR_IO);
    assert_string_equal(spool_reader_error(r), "read failed: Bad file descriptor");
    spool_reader_free(r);
}

static void a_descriptor_that_fails_later_keeps_what_was_read(void **state)
{
    struct bytes b;
    struct spool_reader *r = new_reader();
    struct spool_record rec;
    size_t n = 0;
    int ends[2], rc;

    (void)state;
    small_spool(5, &b);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], b.data, b.size - 1), b.size - 1);
    ok(spool_reader_open_fd(r, ends[0]));
    while (n < 5 && spool_reader_next(r, &rec) > 0)
        n++;
    assert_int_equal(dup2(open("/", O_RDONLY | O_DIRECTORY), ends[0]), ends[0]);
    while ((rc = spool_reader_next(r, &rec)) > 0)
        n++;
    assert_int_equal(rc, SPOOL_ERR_IO);
    assert_string_equal(spool_reader_error(r), "is a directory");
    assert_int_equal(spool_reader_kept_bytes(r), rec.offset_bytes);
    assert_int_equal(rec.offset_bytes, b.size - 4); /* the last sample */
    assert_false(spool_reader_cut_tail(r));
    assert_non_null(spool_reader_header(r));
    assert_int_equal(spool_reader_next(r, &rec), SPOOL_ERR_IO);
    spool_reader_free(r);
    close(ends[0]);
    close(ends[1]);
    bytes_free(&b);
}

/* ---- use and misuse ---- */

static void next_before_open_is_misuse_and_does_no_harm(void **state)
{
    struct spool_reader *r = new_reader();
    struct spool_record rec;
    struct spool_counts counts;
    struct spool_stack stack;
    struct spool_thread thread;
    struct spool_frame frame;
    struct spool_wall_time wall;
    const uint64_t *addresses;
    uint32_t node = 0, ids[2];
    struct bytes b;
    size_t count;

    (void)state;
    assert_string_equal(spool_reader_error(r), "no error");
    assert_int_equal(spool_reader_next(r, &rec), SPOOL_ERR_MISUSE);
    assert_string_equal(spool_reader_error(r), "the reader has not been opened");
    assert_int_equal(spool_reader_error_code(r), SPOOL_ERR_MISUSE);
    assert_int_equal(spool_reader_next(r, &rec), SPOOL_ERR_MISUSE);

    assert_null(spool_reader_header(r)); /* and a reader without input has nothing */
    assert_false(spool_reader_cut_tail(r));
    assert_false(spool_reader_is_gzip(r));
    ok((int)spool_reader_kept_bytes(r));
    ok((int)spool_reader_input_bytes(r));
    spool_reader_counts(r, &counts);
    ok((int)counts.modules);
    assert_null(spool_reader_module(r, 0));
    assert_false(spool_reader_frame(r, 0, &frame));
    assert_false(spool_reader_stack(r, 0, &stack));
    assert_false(spool_reader_thread(r, 0, &thread));
    ok((int)spool_reader_walk(r, &node, ids, 2));
    assert_int_equal(node, SPOOL_NO_ID);
    assert_frame_nowhere(r, 0, 7);
    ok(spool_reader_kernel_addresses(r, &addresses, &count));
    ok((int)count);
    ok((int)spool_reader_timeline_us(r, 5));
    ok(spool_reader_wall_time(r, 5, &wall));

    small_spool(1, &b);
    ok(spool_reader_open_memory(r, b.data, b.size));
    ok(spool_reader_error_code(r));
    assert_int_equal(read_all(r), 10);
    assert_ends_whole(r, &b);
    spool_reader_free(r);
    bytes_free(&b);
    spool_reader_free(NULL);
}

static void a_second_open_is_misuse_and_does_no_harm(void **state)
{
    struct bytes b, other;
    struct spool_reader *r;
    struct spool_record rec;

    (void)state;
    small_spool(1, &b);
    small_spool(3, &other);
    r = open_bytes(&b);
    assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_int_equal(spool_reader_open_memory(r, other.data, other.size), SPOOL_ERR_MISUSE);
    assert_string_equal(spool_reader_error(r), "the reader was opened before");
    assert_int_equal(spool_reader_open_fd(r, 0), SPOOL_ERR_MISUSE);
    assert_int_equal(spool_reader_header(r)->version, 1);
    assert_int_equal(read_all(r), 9);
    assert_int_equal(spool_reader_kept_bytes(r), b.size);
    assert_int_equal(spool_reader_open_fd(r, 0), SPOOL_ERR_MISUSE);
    assert_string_equal(spool_reader_error(r), "the reader was opened before");
    ok(spool_reader_next(r, &rec));
    spool_reader_free(r);

    r = new_reader(); /* a failed open is one, too */
    assert_int_equal(spool_reader_open_memory(r, "x", 1), SPOOL_ERR_FORMAT);
    assert_int_equal(spool_reader_open_memory(r, b.data, b.size), SPOOL_ERR_MISUSE);
    assert_string_equal(spool_reader_error(r), "not a spool");
    assert_int_equal(spool_reader_error_code(r), SPOOL_ERR_FORMAT);
    assert_int_equal(spool_reader_next(r, &rec), SPOOL_ERR_FORMAT);
    spool_reader_free(r);
    bytes_free(&b);
    bytes_free(&other);
}

static void what_records_point_to_stays_until_the_reader_is_freed(void **state)
{
    struct bytes b = {0};
    struct spool_reader *r = new_reader();
    struct spool_record rec, first;
    struct feeder f;
    int fd;

    (void)state;
    bytes_header(&b, 4, 0, 0);
    bytes_byte(&b, 9);
    bytes_module_fields(&b, 4, 0, 7, 0, 100, 0, false);
    bytes_text(&b, "the path");
    bytes_hex(&b, "01 01 02 03 61 62 63");
    for (uint64_t i = 1; i < 5000; i++)
        bytes_module(&b, 4, i, 7, 0, 1, 0, false, "/some/other/path/that/takes/room");
    fd = start_feeder(&f, &b, 4096);
    ok(spool_reader_open_fd(r, fd));
    first = next(r, SPOOL_RECORD_JIT_MODULE);
    while (spool_reader_next(r, &rec) > 0)
        continue;
    assert_string_equal(first.module.path, "the path");
    assert_string_equal(first.module.jit_symbols[0].name, "abc");
    assert_ptr_equal(spool_reader_module(r, 0)->path, first.module.path);
    spool_reader_free(r);
    stop_feeder(&f, fd);
    bytes_free(&b);
}

static void definitions_are_found_by_id_and_annotations_are_no_modules(void **state)
{
    struct bytes b;
    struct spool_reader *r;
    struct spool_counts c;
    struct spool_thread thread;
    const uint64_t *addresses;
    size_t count;

    (void)state;
    small_spool(5, &b);
    r = open_bytes(&b);
    read_all(r);
    spool_reader_counts(r, &c);
    assert_int_equal(c.modules, 6);
    assert_int_equal(c.annotations, 3);
    assert_int_equal(c.frames, 6);
    assert_int_equal(c.stacks, 4);
    assert_int_equal(c.threads, 1);
    assert_int_equal(c.samples, 14);
    assert_int_equal(c.python, 1);
    assert_null(spool_reader_module(r, 0));
    assert_int_equal(spool_reader_module(r, 1)->id, 1);
    assert_int_equal(spool_reader_module(r, 1)->path_size, 9);
    assert_int_equal(spool_reader_module(r, 2)->pid, -1);
    assert_memory_equal(spool_reader_module(r, 2)->path, "a\0b", 4);
    assert_true(spool_reader_module(r, 3)->jit);
    assert_int_equal(spool_reader_module(r, 3)->retired_at_frame, 4);
    assert_int_equal(spool_reader_module(r, 1)->retired_at_frame, 5);
    assert_null(spool_reader_module(r, 4));
    assert_null(spool_reader_module(r, 6));
    assert_null(spool_reader_module(r, SPOOL_NO_ID));
    assert_true(spool_reader_thread(r, 0, &thread));
    assert_int_equal(thread.tid, 11);
    assert_false(spool_reader_thread(r, 1, &thread));
    assert_frame_in(r, 2, 7, 3, 4);
    assert_frame_nowhere(r, 2, 8);
    assert_frame_nowhere(r, 4, 7);
    assert_frame_in(r, 3, 8, 2, 1);
    ok(spool_reader_kernel_addresses(r, &addresses, &count));
    assert_int_equal(count, 2); /* code 7 is the kernel's, too */
    assert_int_equal(addresses[0], 3);
    assert_int_equal(addresses[1], 0x8001);
    spool_reader_free(r);
    bytes_free(&b);
}

/* ---- time ---- */

static struct spool_reader *read_hex(struct bytes *b, const char *header)
{
    struct spool_reader *r;

    *b = (struct bytes){0};
    bytes_hex(b, header);
    bytes_frame(b, 0, CODE_USER, 1);
    bytes_stack(b, 0, ROOT, 0);
    bytes_thread(b, 0, 7, 7);
    bytes_sample(b, 5000, 0, 0);
    bytes_sample(b, -4000, 0, 0);
    r = open_bytes(b);
    assert_int_equal(read_all(r), 5);
    return r;
}

static void the_timeline_begins_at_the_files_first_sample(void **state)
{
    static const struct {
        const char *header;
        uint64_t start;
    } rows[] = {
        {"5350554c53453100 c0843d e807", 1000000},
        {"5350554c53453200 c0843d e807", 1000000},
        {"5350554c53453300 c0843d e807", 1000000},
        {"5350554c53453400 c0843d e807 00", 1000000},
        {"5350554c53453300 00 00", 0},
    };
    struct bytes b;
    struct spool_reader *r;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t start = rows[i].start;

        r = read_hex(&b, rows[i].header);
        assert_int_equal(spool_reader_timeline_us(r, 0), start);
        assert_int_equal(spool_reader_timeline_us(r, 1000), start); /* before the first one */
        assert_int_equal(spool_reader_timeline_us(r, 5000), start);
        assert_int_equal(spool_reader_timeline_us(r, 5999), start);
        assert_int_equal(spool_reader_timeline_us(r, 6000), start + 1);
        assert_int_equal(spool_reader_timeline_us(r, UINT64_MAX),
                         start + (UINT64_MAX - 5000) / 1000);
        spool_reader_free(r);
        bytes_free(&b);
    }
    r = read_hex(&b, "5350554c53453300 feffffffffffffffff01 00"); /* 2^64 - 2 */
    assert_int_equal(spool_reader_timeline_us(r, 5000), UINT64_MAX - 1);
    assert_int_equal(spool_reader_timeline_us(r, 6000), UINT64_MAX);
    assert_int_equal(spool_reader_timeline_us(r, 7000), UINT64_MAX);
    assert_int_equal(spool_reader_timeline_us(r, UINT64_MAX), UINT64_MAX);
    spool_reader_free(r);
    bytes_free(&b);
}

static void the_interval_is_in_nanoseconds_whatever_the_version_stores(void **state)
{
    struct bytes b;
    struct spool_reader *r = read_hex(&b, "5350554c53453300 00 ffffffffffffffffff01");

    (void)state;
    assert_int_equal(spool_reader_header(r)->interval_us, UINT64_MAX);
    assert_int_equal(spool_reader_header(r)->interval_ns, UINT64_MAX); /* not wrapped */
    spool_reader_free(r);
    bytes_free(&b);
    r = read_hex(&b, "5350554c53453100 00 e807");
    assert_int_equal(spool_reader_header(r)->interval_us, 1000);
    assert_int_equal(spool_reader_header(r)->interval_ns, 1000000);
    spool_reader_free(r);
    bytes_free(&b);
    r = read_hex(&b, "5350554c53453400 00 e807 00");
    assert_int_equal(spool_reader_header(r)->interval_us, 0);
    assert_int_equal(spool_reader_header(r)->interval_ns, 1000);
    spool_reader_free(r);
    bytes_free(&b);
}

static void assert_wall(struct spool_reader *r, uint64_t time, int64_t seconds, uint32_t ns)
{
    struct spool_wall_time wall = {0};

    assert_int_equal(spool_reader_wall_time(r, time, &wall), 1);
    assert_true(wall.seconds == seconds);
    assert_int_equal(wall.nanoseconds, ns);
}

static void open_with_origin(struct spool_reader **r, struct bytes *b, uint64_t monotonic, int sign,
                             uint64_t seconds, uint64_t ns)
{
    *b = (struct bytes){0};
    bytes_hex(b, "53 50 55 4c 53 45 34 00 00 00 01");
    bytes_uv(b, monotonic);
    bytes_sv(b, sign);
    bytes_uv(b, seconds);
    bytes_uv(b, ns);
    *r = open_bytes(b);
}

static void wall_time_is_exact_on_both_sides_of_1970(void **state)
{
    struct spool_reader *r;
    struct spool_wall_time wall;
    struct bytes b;

    (void)state;
    open_with_origin(&r, &b, 100, -1, 1, 1); /* -1.000000001 s */
    assert_wall(r, 100, -2, 999999999);
    assert_wall(r, 101, -1, 0);
    assert_wall(r, 99, -2, 999999998);
    assert_wall(r, 0, -2, 999999899);
    assert_wall(r, 100 + 1000000000, -1, 999999999);
    assert_wall(r, 101 + 1000000000, 0, 0);
    assert_wall(r, UINT64_MAX, 18446744072, 709551514);
    spool_reader_free(r);
    bytes_free(&b);

    open_with_origin(&r, &b, UINT64_MAX, 1, 0, 5);
    assert_wall(r, UINT64_MAX, 0, 5);
    assert_wall(r, UINT64_MAX - 5, 0, 0);
    assert_wall(r, UINT64_MAX - 6, -1, 999999999);
    assert_wall(r, 0, -18446744074, 290448390);
    spool_reader_free(r);
    bytes_free(&b);

    open_with_origin(&r, &b, 100, 1, INT64_MAX, 999999999);
    assert_wall(r, 100, INT64_MAX, 999999999);
    assert_int_equal(spool_reader_wall_time(r, 101, &wall), SPOOL_ERR_LIMIT);
    assert_int_equal(spool_reader_wall_time(r, UINT64_MAX, &wall), SPOOL_ERR_LIMIT);
    assert_wall(r, 0, INT64_MAX, 999999899);
    spool_reader_free(r);
    bytes_free(&b);

    open_with_origin(&r, &b, 100, -1, (uint64_t)1 << 63, 0);
    assert_wall(r, 100, INT64_MIN, 0);
    assert_int_equal(spool_reader_wall_time(r, 99, &wall), SPOOL_ERR_LIMIT);
    assert_wall(r, 101, INT64_MIN, 1);
    assert_string_equal(spool_reader_error(r), "no error");
    spool_reader_free(r);
    bytes_free(&b);
}

static void wall_time_without_an_origin_is_by_the_latest_clock_annotation(void **state)
{
    struct bytes b = {0};
    struct spool_reader *r;
    struct spool_wall_time wall;
    struct spool_record rec;

    (void)state;
    bytes_header(&b, 3, 9, 9);
    bytes_note(&b, 3, 0, "[spool:clock] 1000 1700000000000000007");
    bytes_note(&b, 3, 1, "[spool:clock] 0 18446744073709551615");
    r = open_bytes(&b);
    ok(spool_reader_wall_time(r, 1000, &wall));
    rec = next(r, SPOOL_RECORD_ANNOTATION);
    assert_int_equal(rec.annotation.key, SPOOL_NOTE_CLOCK);
    assert_wall(r, 1000, 1700000000, 7);
    assert_wall(r, 992, 1699999999, 999999999);
    next(r, SPOOL_RECORD_ANNOTATION);
    assert_wall(r, 0, 18446744073, 709551615);
    assert_wall(r, UINT64_MAX, 36893488147, 419103230);
    spool_reader_free(r);
    bytes_free(&b);

    small_spool(5, &b); /* an origin in the header comes first: 10 s and 5 ns after 1970 at 100 */
    r = open_bytes(&b);
    read_all(r);
    assert_int_equal(spool_reader_header(r)->origin.sign, -1);
    assert_wall(r, 100, -11, 999999995);
    spool_reader_free(r);
    bytes_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_1_is_an_empty_spool),
        cmocka_unit_test(example_2_is_of_version_1),
        cmocka_unit_test(example_3_has_two_generations_of_a_mapping),
        cmocka_unit_test(example_4_has_a_kernel_frame_a_marker_and_a_shared_prefix),
        cmocka_unit_test(example_5_has_a_clock_origin_and_a_jit_module),
        cmocka_unit_test(file_pipe_memory_and_gzip_say_the_same),
        cmocka_unit_test(larger_spools_say_the_same_from_everywhere),
        cmocka_unit_test(a_spool_in_several_gzip_members_is_one_spool),
        cmocka_unit_test(a_live_pipe_gives_each_record_as_soon_as_it_is_there),
        cmocka_unit_test(a_descriptor_is_read_from_where_it_stands),
        cmocka_unit_test(every_cut_keeps_the_records_before_it),
        cmocka_unit_test(every_changed_byte_ends_in_records_or_an_error),
        cmocka_unit_test(every_cut_and_changed_byte_of_gzip_ends_in_records_or_an_error),
        cmocka_unit_test(damage_in_gzip_keeps_what_was_read_before_it),
        cmocka_unit_test(gzip_cut_between_records_is_a_cut_tail),
        cmocka_unit_test(the_order_of_checks_decides_between_cut_off_and_corrupt),
        cmocka_unit_test(zeros_behind_the_last_record_are_no_cut_tail),
        cmocka_unit_test(an_error_stays_and_leaves_the_rest_usable),
        cmocka_unit_test(a_refused_sample_leaves_no_trace),
        cmocka_unit_test(both_ways_to_read_samples_judge_alike),
        cmocka_unit_test(both_ways_to_read_stack_nodes_judge_alike),
        cmocka_unit_test(ids_of_2_to_the_32_are_not_truncated),
        cmocka_unit_test(a_path_length_is_not_believed_before_the_path_is_there),
        cmocka_unit_test(a_huge_path_is_passed_over_without_keeping_it),
        cmocka_unit_test(a_path_beyond_the_limit_is_refused_where_it_is_complete),
        cmocka_unit_test(a_path_length_that_leads_beyond_64_bits_is_corrupt),
        cmocka_unit_test(a_long_path_and_a_large_jit_module_come_whole_through_a_pipe),
        cmocka_unit_test(a_million_stack_nodes_are_read_from_a_file_and_from_gzip),
        cmocka_unit_test(what_is_not_a_spool_is_named_when_it_is_known),
        cmocka_unit_test(what_is_not_a_spool_is_named_inside_gzip_too),
        cmocka_unit_test(descriptors_that_cannot_be_read_are_input_errors),
        cmocka_unit_test(a_descriptor_that_fails_later_keeps_what_was_read),
        cmocka_unit_test(next_before_open_is_misuse_and_does_no_harm),
        cmocka_unit_test(a_second_open_is_misuse_and_does_no_harm),
        cmocka_unit_test(what_records_point_to_stays_until_the_reader_is_freed),
        cmocka_unit_test(definitions_are_found_by_id_and_annotations_are_no_modules),
        cmocka_unit_test(the_timeline_begins_at_the_files_first_sample),
        cmocka_unit_test(the_interval_is_in_nanoseconds_whatever_the_version_stores),
        cmocka_unit_test(wall_time_is_exact_on_both_sides_of_1970),
        cmocka_unit_test(wall_time_without_an_origin_is_by_the_latest_clock_annotation),
    };

    signal(SIGPIPE, SIG_IGN); /* readers that found an error leave their feeder alone */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
