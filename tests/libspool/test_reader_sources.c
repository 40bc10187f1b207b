/* SPDX-License-Identifier: MIT */
/* The same spools from a file, a pipe, memory and gzip: the reader says the same of them. */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "read_spool.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_pipe_memory_and_gzip_say_the_same),
        cmocka_unit_test(larger_spools_say_the_same_from_everywhere),
        cmocka_unit_test(a_spool_in_several_gzip_members_is_one_spool),
        cmocka_unit_test(a_live_pipe_gives_each_record_as_soon_as_it_is_there),
        cmocka_unit_test(a_descriptor_is_read_from_where_it_stands),
    };

    signal(SIGPIPE, SIG_IGN); /* readers that found an error leave their feeder alone */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
