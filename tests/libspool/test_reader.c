/* SPDX-License-Identifier: MIT */
/* The public reader: the format's worked examples, time, and what it says when it is used wrongly. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "read_spool.h"

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

/* Its magic comes late: of a pipe that brings little at a time, it is waited for. */
static void a_tar_file_is_named_wherever_it_comes_from(void **state)
{
    static const char named[] = "not a spool but a tar file (a symbol archive is for --symbols)";
    struct bytes b = {0}, packed = {0};
    char block[512] = "captures/";
    struct spool_reader *r;
    int ends[2];

    (void)state;
    memcpy(block + 257, "ustar", 5);
    bytes_put(&b, block, sizeof block);
    bytes_gzip(&packed, block, sizeof block);
    for (int i = 0; i < 2; i++) {
        r = new_reader();
        assert_int_equal(spool_reader_open_memory(r, i ? packed.data : b.data,
                                                  i ? packed.size : b.size),
                         SPOOL_ERR_FORMAT);
        assert_string_equal(spool_reader_error(r), named);
        spool_reader_free(r);
    }
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        close(ends[0]);
        for (size_t at = 0; at < sizeof block; at += 64) {
            if (write(ends[1], block + at, 64) != 64)
                _exit(1);
            usleep(5000);
        }
        _exit(0);
    }
    close(ends[1]);
    r = new_reader();
    assert_int_equal(spool_reader_open_fd(r, ends[0]), SPOOL_ERR_FORMAT);
    assert_string_equal(spool_reader_error(r), named);
    spool_reader_free(r);
    close(ends[0]);
    wait(NULL);
    /* What ends before it is none. */
    r = new_reader();
    assert_int_equal(spool_reader_open_memory(r, b.data, 261), SPOOL_ERR_FORMAT);
    assert_string_equal(spool_reader_error(r), "not a spool");
    spool_reader_free(r);
    bytes_free(&b);
    bytes_free(&packed);
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
        {INPUT("something"), SPOOL_ERR_FORMAT, "not a spool but gzip data of another kind"},
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

static void assert_build_id(const struct spool_reader *r, uint32_t module, size_t size,
                            const void *bytes)
{
    size_t found_size = 99;
    const uint8_t *found = spool_reader_build_id(r, module, &found_size);

    assert_int_equal(found_size, size);
    assert_int_equal(found != NULL, size > 0);
    if (size > 0)
        assert_memory_equal(found, bytes, size);
}

static void the_latest_build_id_note_of_a_module_counts(void **state)
{
    struct bytes b = {0};
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    char longest[160] = "[spool:build-id] 1 ";
    uint8_t all[64];
    size_t size;
    const uint8_t *first;

    (void)state;
    assert_build_id(r, 0, 0, NULL); /* nothing is open */
    for (unsigned i = 0; i < sizeof all; i++)
        sprintf(longest + strlen(longest), "%02X", all[i] = (uint8_t)(i * 7));
    bytes_header(&b, 4, 0, 0);
    bytes_module(&b, 4, 0, 7, 0, 16, 0, false, "/a");
    bytes_module(&b, 4, 1, 7, 32, 48, 0, false, "/b");
    bytes_note(&b, 4, 2, "[spool:build-id] 0 00ffAb");
    bytes_note(&b, 4, 3, longest);
    bytes_note(&b, 4, 4, "[spool:build-id] 0 12"); /* also by an id of another size */
    bytes_deactivate_process(&b, 7);
    bytes_note(&b, 4, 5, "[spool:build-id] 0 3456");
    spool_reader_free(r);
    r = open_bytes(&b);
    for (int i = 0; i < 2; i++)
        assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_build_id(r, 0, 0, NULL);
    assert_build_id(r, 1, 0, NULL);
    assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_build_id(r, 0, 3, "\x00\xff\xab");
    first = spool_reader_build_id(r, 0, &size);
    assert_build_id(r, 1, 0, NULL);
    assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_build_id(r, 1, 64, all);
    assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_build_id(r, 0, 1, "\x12");
    assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_build_id(r, 0, 2, "\x34\x56"); /* its module has been retired, but was sampled */
    assert_memory_equal(first, "\x00\xff\xab", 3);
    assert_int_equal(spool_reader_next(r, &rec), 0);
    assert_build_id(r, 1, 64, all);
    spool_reader_free(r);
    bytes_free(&b);
}

static void what_is_no_note_about_a_module_in_front_of_it_is_no_build_id(void **state)
{
    static const char *const notes[] = {
        "[spool:build-id] 0 abc",         /* half a byte */
        "[spool:build-id] 0 ",            /* none */
        "[spool:build-id] 0 ag",          /* no digit */
        "[spool:build-id] 0",             /* nothing */
        "[spool:build-id] -1 ab",         /* no number */
        "[spool:build-id] 4294967295 ab", /* no id */
        "[spool:build-id] 99 ab",         /* of a module that never comes */
        "[spool:build-id] 12 ab",         /* ... or comes later */
        "[spool:build-id] 9 ab",          /* of itself */
        "[spool:build-id] 9 ab",          /* of a note */
        "[spool:0-build-id] 0 ab",        /* another key */
    };
    struct bytes b = {0};
    struct spool_reader *r;

    (void)state;
    bytes_header(&b, 4, 0, 0);
    bytes_module(&b, 4, 0, 7, 0, 16, 0, false, "/a");
    for (uint32_t i = 0; i < sizeof notes / sizeof notes[0]; i++)
        bytes_note(&b, 4, i + 1, notes[i]);
    bytes_module(&b, 4, 12, 7, 32, 48, 0, false, "/b");
    r = open_bytes(&b);
    read_all(r);
    for (uint32_t id = 0; id < 14; id++)
        assert_build_id(r, id, 0, NULL);
    assert_build_id(r, SPOOL_NO_ID, 0, NULL);
    spool_reader_free(r);
    bytes_free(&b);
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
        cmocka_unit_test(what_is_not_a_spool_is_named_when_it_is_known),
        cmocka_unit_test(a_tar_file_is_named_wherever_it_comes_from),
        cmocka_unit_test(what_is_not_a_spool_is_named_inside_gzip_too),
        cmocka_unit_test(descriptors_that_cannot_be_read_are_input_errors),
        cmocka_unit_test(a_descriptor_that_fails_later_keeps_what_was_read),
        cmocka_unit_test(next_before_open_is_misuse_and_does_no_harm),
        cmocka_unit_test(a_second_open_is_misuse_and_does_no_harm),
        cmocka_unit_test(what_records_point_to_stays_until_the_reader_is_freed),
        cmocka_unit_test(definitions_are_found_by_id_and_annotations_are_no_modules),
        cmocka_unit_test(the_latest_build_id_note_of_a_module_counts),
        cmocka_unit_test(what_is_no_note_about_a_module_in_front_of_it_is_no_build_id),
        cmocka_unit_test(the_timeline_begins_at_the_files_first_sample),
        cmocka_unit_test(the_interval_is_in_nanoseconds_whatever_the_version_stores),
        cmocka_unit_test(wall_time_is_exact_on_both_sides_of_1970),
        cmocka_unit_test(wall_time_without_an_origin_is_by_the_latest_clock_annotation),
    };

    signal(SIGPIPE, SIG_IGN); /* readers that found an error leave their feeder alone */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
