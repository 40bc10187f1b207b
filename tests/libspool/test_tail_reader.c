/* SPDX-License-Identifier: MIT */
/* A reader of an input that still grows: record by record as soon as each is whole, and nothing before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spool/spool.h"
#include "spool_bytes.h"

/* ---- what was read ---- */

/* All that was read so far, as a number; equal only for equal records in equal order. */
struct digest {
    uint64_t hash;
    uint64_t records;
};

static void digest_bytes(struct digest *d, const void *data, size_t size)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < size; i++)
        d->hash = (d->hash ^ p[i]) * 0x100000001b3u;
}

static void digest_module(struct digest *d, const struct spool_module *m)
{
    char text[400];

    snprintf(text, sizeof text,
             "%" PRIu32 " %" PRId32 " %d %d %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIu64
             " %" PRIu32 " %" PRIu32 " %" PRIu64 " %zu %zu",
             m->id, m->pid, m->kernel, m->jit, m->start, m->end, m->file_offset, m->inode,
             m->dev_major, m->dev_minor, m->inode_gen, m->path_size, m->jit_symbol_count);
    digest_bytes(d, text, strlen(text));
    digest_bytes(d, m->path, m->path_size + 1);
    for (size_t i = 0; i < m->jit_symbol_count; i++) {
        const struct spool_jit_symbol *s = &m->jit_symbols[i];

        snprintf(text, sizeof text, "%" PRIx64 " %" PRIx64, s->start, s->end);
        digest_bytes(d, text, strlen(text));
        digest_bytes(d, s->name, s->name_size + 1);
    }
}

static void digest_record(struct digest *d, const struct spool_record *r)
{
    char text[400] = "";

    snprintf(text, sizeof text, "%d %" PRIu64, r->type, r->offset_bytes);
    digest_bytes(d, text, strlen(text));
    d->records++;
    switch (r->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        digest_module(d, &r->module);
        return;
    case SPOOL_RECORD_ANNOTATION:
        digest_module(d, &r->annotation.module);
        return;
    case SPOOL_RECORD_FRAME:
        snprintf(text, sizeof text, "%" PRIu32 " %d %d %" PRIu32 " %" PRIx64 " %" PRIx64,
                 r->frame.id, r->frame.kind, r->frame.kernel, r->frame.module_id, r->frame.rel,
                 r->frame.abs);
        break;
    case SPOOL_RECORD_STACK:
        snprintf(text, sizeof text, "%" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32, r->stack.id,
                 r->stack.prefix, r->stack.frame, r->stack.depth);
        break;
    case SPOOL_RECORD_THREAD:
        snprintf(text, sizeof text, "%" PRIu32 " %" PRId32 " %" PRIu64, r->thread.id, r->thread.pid,
                 r->thread.tid);
        break;
    case SPOOL_RECORD_SAMPLE:
        snprintf(text, sizeof text,
                 "%" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRId32 " %" PRIu64,
                 r->sample.index, r->sample.delta_ns, r->sample.time_ns, r->sample.thread,
                 r->sample.stack, r->sample.pid, r->sample.tid);
        break;
    case SPOOL_RECORD_PYTHON:
        snprintf(text, sizeof text, "%" PRIu64 " %" PRId32 " %d", r->python.time_ns, r->python.pid,
                 r->python.on);
        break;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        snprintf(text, sizeof text, "%" PRId32, r->deactivated_pid);
        break;
    case SPOOL_RECORD_DEACTIVATE_MODULE:
        snprintf(text, sizeof text, "%" PRIu32, r->deactivated_module);
        break;
    }
    digest_bytes(d, text, strlen(text));
}

/* Reads on until next says 0 or fails. */
static int read_on(struct spool_reader *r, struct digest *d)
{
    struct spool_record rec;
    int rc;

    while ((rc = spool_reader_next(r, &rec)) > 0)
        digest_record(d, &rec);
    return rc;
}

/* The whole at once. */
struct whole {
    struct digest digest;
    int rc;
    bool header;
    bool cut;
    uint64_t header_size, kept;
    uint64_t *ends; /* of the records */
    char error[256];
};

static struct whole read_whole(const struct bytes *b)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    struct whole w = {0};

    w.rc = spool_reader_open_memory(r, b->data, b->size);
    w.header = w.rc == 0;
    w.header_size = spool_reader_kept_bytes(r);
    while (w.header && (w.rc = spool_reader_next(r, &rec)) > 0) {
        digest_record(&w.digest, &rec);
        w.ends = realloc(w.ends, w.digest.records * sizeof *w.ends);
        w.ends[w.digest.records - 1] = spool_reader_kept_bytes(r);
    }
    w.cut = spool_reader_cut_tail(r);
    w.kept = spool_reader_kept_bytes(r);
    snprintf(w.error, sizeof w.error, "%s", spool_reader_error(r));
    spool_reader_free(r);
    return w;
}

/* ---- a growing file ---- */

static int new_file(void)
{
    int fd = memfd_create("spool", MFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

/* Writes what the file lacks up to `size`; the place where the reader stands is left alone. */
static void grow_file(int fd, const struct bytes *b, size_t size)
{
    struct stat st;
    size_t at;

    assert_int_equal(fstat(fd, &st), 0);
    at = (size_t)st.st_size;
    if (at < size)
        assert_int_equal(pwrite(fd, b->data + at, size - at, (off_t)at), size - at);
}

static void assert_same_end(struct spool_reader *r, int rc, const struct digest *d,
                            const struct whole *w)
{
    assert_int_equal(rc, w->rc);
    assert_string_equal(spool_reader_error(r), w->error);
    assert_int_equal(d->records, w->digest.records);
    assert_true(d->hash == w->digest.hash);
    assert_int_equal(spool_reader_kept_bytes(r), w->kept);
    assert_int_equal(spool_reader_cut_tail(r), w->cut);
    assert_false(spool_reader_tail_ended(r)); /* a file never has */
}

/* Grows a file byte by byte: every record is there with its last byte and not before. The long ones grow in steps that
 * meet most records in the middle. */
static void grow_by_bytes(const struct bytes *b)
{
    size_t step = b->size > 30000 ? 13 : 1;
    struct whole w = read_whole(b);
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    int fd = new_file(), rc = 0;
    size_t at = w.header_size;

    if (!w.header) {
        grow_file(fd, b, b->size);
        assert_int_equal(spool_reader_open_tail_fd(r, fd), w.rc);
        assert_string_equal(spool_reader_error(r), w.error);
    } else {
        grow_file(fd, b, at);
        assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
        for (;; at = b->size - at > step ? at + step : b->size) {
            grow_file(fd, b, at);
            rc = read_on(r, &d);
            if (rc < 0 || at == b->size)
                break;
            if (d.records > 0)
                assert_int_equal(spool_reader_kept_bytes(r), w.ends[d.records - 1]);
            if (d.records < w.digest.records)
                assert_true(at < w.ends[d.records]);
            assert_int_equal(spool_reader_cut_tail(r), at != spool_reader_kept_bytes(r));
        }
        assert_same_end(r, rc, &d, &w);
        assert_int_equal(read_on(r, &d), w.rc); /* an error stays, too */
    }
    spool_reader_free(r);
    free(w.ends);
    close(fd);
}

static void every_fixture_that_grows_byte_by_byte_reads_as_the_whole(void **state)
{
    glob_t found;
    size_t records = 0;

    (void)state;
    assert_int_equal(glob(FIXTURES_DIR "/stackpulse/*/*.spool", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 100);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct bytes b = {0};

        bytes_file(&b, found.gl_pathv[i]);
        grow_by_bytes(&b);
        records += b.size;
        bytes_free(&b);
    }
    assert_true(records > 500000);
    globfree(&found);
}

static void put_version_4(struct bytes *b)
{
    bytes_header(b, 4, 5, 1000);
    bytes_module(b, 4, 0, 7, 0x1000, 0x2000, 0, false, "/lib/\xff");
    bytes_note(b, 4, 1, "[spool:comm] name");
    bytes_byte(b, 9);
    bytes_module_fields(b, 4, 2, 7, 0x8000, 0x9000, 0, false);
    bytes_text(b, "[jit-1-8000-1000]");
    bytes_uv(b, 3);
    bytes_hex(b, "80 80 02 90 80 02 05 66 69 72 73 74"); /* first */
    bytes_hex(b, "90 80 02 a0 80 02 00");                /* no name */
    bytes_hex(b, "90 80 02 b0 80 02 04 6c 61 73 74");    /* last */
    bytes_frame(b, 0, CODE_PINNED(2), 0x10);
    bytes_stack(b, 0, ROOT, 0);
    bytes_thread(b, 0, 7, 8);
    bytes_sample(b, 10, 0, 0);
    bytes_deactivate_module(b, 0);
    bytes_deactivate_process(b, 7);
}

static void version_4_that_grows_byte_by_byte_reads_as_the_whole(void **state)
{
    struct bytes b = {0};

    (void)state;
    put_version_4(&b);
    grow_by_bytes(&b);
    b.data[b.size - 2] = 10; /* no such tag */
    grow_by_bytes(&b);
    bytes_free(&b);
}

static void an_error_in_an_early_field_does_not_wait_for_the_rest(void **state)
{
    struct bytes b = {0};
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    int fd = new_file();

    (void)state;
    bytes_header(&b, 3, 0, 0);
    bytes_hex(&b, "04 01"); /* a thread with a wrong id, its other fields missing */
    grow_file(fd, &b, b.size);
    assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read_on(r, &d), SPOOL_ERR_CORRUPT);
        assert_string_equal(spool_reader_error(r),
                            "thread record at byte 10 has id 1 instead of 0");
        assert_false(spool_reader_cut_tail(r));
        bytes_byte(&b, 0);
        grow_file(fd, &b, b.size);
    }
    spool_reader_free(r);
    bytes_free(&b);
    close(fd);
}

static void a_file_must_have_the_header(void **state)
{
    struct bytes b = {0};

    (void)state;
    bytes_header(&b, 4, 300, 300);
    for (size_t size = 0; size <= b.size; size++) {
        struct spool_reader *r = spool_reader_new();
        struct digest d = {0};
        int fd = new_file();

        grow_file(fd, &b, size);
        assert_int_equal(spool_reader_open_tail_fd(r, fd), size < b.size ? SPOOL_ERR_TRUNCATED : 0);
        grow_file(fd, &b, b.size);
        assert_int_equal(read_on(r, &d), size < b.size ? SPOOL_ERR_TRUNCATED : 0);
        assert_int_equal(spool_reader_open_tail_fd(r, fd), SPOOL_ERR_MISUSE);
        spool_reader_free(r);
        close(fd);
    }
    bytes_free(&b);
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
    struct bytes b = {0};

    (void)state;
    put_version_4(&b);
    for (size_t skipped = 0; skipped < 2; skipped++) { /* read from where the descriptor stands */
        struct spool_reader *r = spool_reader_new();
        struct digest d = {0};
        int fd = new_file();
        char expected[100];

        if (skipped)
            assert_int_equal(write(fd, "x", 1), 1);
        assert_int_equal(pwrite(fd, b.data, b.size, (off_t)skipped), b.size);
        assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
        assert_int_equal(read_on(r, &d), 0);
        assert_int_equal(ftruncate(fd, (off_t)(b.size + skipped)), 0);
        assert_int_equal(read_on(r, &d), 0);
        assert_int_equal(ftruncate(fd, (off_t)(b.size + skipped - 1)), 0);
        assert_int_equal(read_on(r, &d), SPOOL_ERR_IO);
        snprintf(expected, sizeof expected,
                 "the file has become shorter: it has %zu bytes, %zu had been read",
                 b.size + skipped - 1, b.size + skipped);
        assert_string_equal(spool_reader_error(r), expected);
        assert_int_equal(ftruncate(fd, 1000), 0);
        assert_int_equal(read_on(r, &d), SPOOL_ERR_IO);
        assert_int_equal(spool_reader_kept_bytes(r), b.size);
        spool_reader_free(r);
        close(fd);
    }
    bytes_free(&b);
}

static void nothing_is_read_beyond_the_limit(void **state)
{
    struct bytes b = {0};
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    struct whole w;
    int fd = new_file();

    (void)state;
    put_version_4(&b);
    w = read_whole(&b);
    grow_file(fd, &b, b.size);
    spool_reader_tail_limit(r, w.header_size);
    assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
    for (size_t limit = w.header_size; limit <= b.size; limit++) {
        spool_reader_tail_limit(r, limit);
        assert_int_equal(read_on(r, &d), 0);
        assert_int_equal(spool_reader_input_bytes(r), limit);
        assert_true(d.records == w.digest.records || limit < w.ends[d.records]);
        spool_reader_tail_limit(r, 3); /* less than was read: nothing more */
        assert_int_equal(read_on(r, &d), 0);
    }
    assert_same_end(r, 0, &d, &w);
    spool_reader_tail_limit(r, UINT64_MAX);
    bytes_byte(&b, 10);
    grow_file(fd, &b, b.size);
    assert_int_equal(read_on(r, &d), SPOOL_ERR_CORRUPT);
    spool_reader_free(r);

    r = spool_reader_new(); /* the header lies beyond it, although it is there */
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    spool_reader_tail_limit(r, w.header_size - 1);
    assert_int_equal(spool_reader_open_tail_fd(r, fd), SPOOL_ERR_TRUNCATED);
    spool_reader_free(r);
    free(w.ends);
    bytes_free(&b);
    close(fd);
}

static void other_readers_know_no_limit_and_are_no_tails(void **state)
{
    struct bytes b = {0};
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    int fd = new_file();

    (void)state;
    put_version_4(&b);
    grow_file(fd, &b, b.size - 1);
    spool_reader_tail_limit(r, 1);
    assert_int_equal(spool_reader_open_fd(r, fd), 0);
    assert_int_equal(read_on(r, &d), 0);
    assert_true(spool_reader_cut_tail(r));
    assert_false(spool_reader_tail_ended(r));
    grow_file(fd, &b, b.size);
    assert_int_equal(read_on(r, &d), 0);
    assert_true(spool_reader_cut_tail(r));
    spool_reader_free(r);
    bytes_free(&b);
    close(fd);
}

/* ---- pipes ---- */

static void a_pipe_is_never_waited_for_and_tells_its_end(void **state)
{
    struct bytes b = {0};
    struct whole w;

    (void)state;
    put_version_4(&b);
    w = read_whole(&b);
    for (size_t size = b.size - 1; size <= b.size; size++) { /* a cut tail and none */
        struct spool_reader *r = spool_reader_new();
        struct digest d = {0};
        int ends[2], flags;

        assert_int_equal(pipe(ends), 0);
        flags = fcntl(ends[0], F_GETFL);
        assert_int_equal(write(ends[1], b.data, w.header_size), w.header_size);
        assert_int_equal(spool_reader_open_tail_fd(r, ends[0]), 0);
        for (size_t at = w.header_size; at < size; at++) {
            assert_int_equal(read_on(r, &d), 0); /* hangs here when it waits */
            assert_int_equal(spool_reader_cut_tail(r), at != spool_reader_kept_bytes(r));
            assert_false(spool_reader_tail_ended(r));
            assert_int_equal(write(ends[1], b.data + at, 1), 1);
        }
        close(ends[1]);
        assert_int_equal(read_on(r, &d), 0);
        assert_true(spool_reader_tail_ended(r));
        assert_int_equal(spool_reader_cut_tail(r), size < b.size);
        assert_int_equal(d.records, w.digest.records - (size < b.size));
        assert_int_equal(fcntl(ends[0], F_GETFL), flags);
        assert_int_equal(read_on(r, &d), 0);
        spool_reader_free(r);
        close(ends[0]);
    }
    free(w.ends);
    bytes_free(&b);
}

static void a_non_blocking_pipe_is_no_different(void **state)
{
    struct bytes b = {0};
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    int ends[2];

    (void)state;
    put_version_4(&b);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    assert_int_equal(write(ends[1], b.data, 20), 20);
    assert_int_equal(spool_reader_open_tail_fd(r, ends[0]), 0);
    assert_int_equal(read_on(r, &d), 0);
    assert_int_equal(write(ends[1], b.data + 20, b.size - 20), b.size - 20);
    assert_int_equal(read_on(r, &d), 0);
    assert_int_equal(d.records, 9);
    assert_false(spool_reader_tail_ended(r));
    close(ends[1]);
    assert_int_equal(read_on(r, &d), 0);
    assert_true(spool_reader_tail_ended(r));
    spool_reader_free(r);
    close(ends[0]);
    bytes_free(&b);
}

static void opening_waits_for_the_header_of_a_pipe(void **state)
{
    struct bytes b = {0};

    (void)state;
    put_version_4(&b);
    for (size_t size = 11; size < 14; size++) { /* the header has 12 bytes */
        struct spool_reader *r = spool_reader_new();
        int ends[2];
        pid_t child;

        assert_int_equal(pipe(ends), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (size_t at = 0; at < size; at++) {
                usleep(2000);
                if (write(ends[1], b.data + at, 1) != 1)
                    _exit(1);
            }
            _exit(0);
        }
        close(ends[1]);
        assert_int_equal(spool_reader_open_tail_fd(r, ends[0]),
                         size < 12 ? SPOOL_ERR_TRUNCATED : 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        spool_reader_free(r);
        close(ends[0]);
    }
    bytes_free(&b);
}

static void a_fifo_without_a_writer_yet_is_waited_for(void **state)
{
    char path[] = "/tmp/spool-fifo-XXXXXX", name[64];
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    struct bytes b = {0};
    pid_t child;
    int fd;

    (void)state;
    put_version_4(&b);
    assert_non_null(mkdtemp(path));
    snprintf(name, sizeof name, "%s/fifo", path);
    assert_int_equal(mkfifo(name, 0600), 0);
    fd = open(name, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int out;

        usleep(20000);
        out = open(name, O_WRONLY);
        _exit(write(out, b.data, b.size) == (ssize_t)b.size ? 0 : 1);
    }
    assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(read_on(r, &d), 0);
    assert_int_equal(d.records, 9);
    assert_int_equal(read_on(r, &d), 0);
    assert_true(spool_reader_tail_ended(r));
    spool_reader_free(r);
    close(fd);
    unlink(name);
    rmdir(path);
    bytes_free(&b);
}

/* ---- gzip ---- */

static void gzip_that_grows_byte_by_byte_reads_as_the_whole(void **state)
{
    struct bytes b = {0}, packed = {0};
    struct spool_reader *r = NULL;
    struct digest d = {0};
    struct whole w;
    int fd = new_file(), rc;
    size_t at = 0;

    (void)state;
    bytes_file(&b, FIXTURES_DIR "/stackpulse/synth/deep.spool");
    bytes_gzip(&packed, b.data, 1000); /* members end inside records */
    bytes_gzip(&packed, b.data + 1000, b.size - 1000);
    bytes_gzip(&packed, NULL, 0);
    w = read_whole(&b);
    at = 1; /* which is no gzip yet */
    do {    /* until the header has come */
        spool_reader_free(r);
        r = spool_reader_new();
        grow_file(fd, &packed, ++at);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        rc = spool_reader_open_tail_fd(r, fd);
    } while (rc == SPOOL_ERR_TRUNCATED);
    assert_int_equal(rc, 0);
    assert_true(at < 1000);
    for (; at < packed.size; at++) {
        assert_int_equal(read_on(r, &d), 0);
        grow_file(fd, &packed, at);
    }
    assert_true(spool_reader_cut_tail(r)); /* the last member is not complete */
    grow_file(fd, &packed, at);
    rc = read_on(r, &d);
    assert_same_end(r, rc, &d, &w);
    assert_true(spool_reader_is_gzip(r));
    assert_int_equal(spool_reader_input_bytes(r), packed.size);
    spool_reader_free(r);
    free(w.ends);
    bytes_free(&b);
    bytes_free(&packed);
    close(fd);
}

static void flushed_gzip_gives_a_record_as_soon_as_it_is_there(void **state)
{
    struct bytes b = {0};
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    struct whole w;
    uint8_t out[4096];
    z_stream z = {0};
    int ends[2];

    (void)state;
    put_version_4(&b);
    w = read_whole(&b);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = b.data;
    for (uint64_t n = 0; n <= w.digest.records; n++) {
        uint64_t end = n == 0 ? w.header_size : w.ends[n - 1];

        z.avail_in = (uInt)(end - (uint64_t)(z.next_in - b.data));
        z.next_out = out;
        z.avail_out = sizeof out;
        assert_int_equal(deflate(&z, Z_SYNC_FLUSH), Z_OK);
        assert_int_equal(write(ends[1], out, sizeof out - z.avail_out), sizeof out - z.avail_out);
        if (n == 0)
            assert_int_equal(spool_reader_open_tail_fd(r, ends[0]), 0);
        assert_int_equal(read_on(r, &d), 0);
        assert_int_equal(d.records, n);
        assert_true(spool_reader_cut_tail(r)); /* of the gzip */
    }
    deflateEnd(&z);
    close(ends[1]);
    assert_int_equal(read_on(r, &d), 0);
    assert_true(spool_reader_tail_ended(r));
    assert_true(spool_reader_cut_tail(r));
    spool_reader_free(r);
    close(ends[0]);
    free(w.ends);
    bytes_free(&b);
}

static void damage_in_gzip_comes_after_what_stands_before_it(void **state)
{
    struct bytes b = {0}, packed = {0};
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    int fd = new_file();

    (void)state;
    put_version_4(&b);
    bytes_gzip(&packed, b.data, b.size);
    packed.data[packed.size - 8] ^= 1; /* the CRC */
    grow_file(fd, &packed, packed.size - 8);
    assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
    assert_int_equal(read_on(r, &d), 0);
    assert_int_equal(d.records, 9);
    grow_file(fd, &packed, packed.size);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_on(r, &d), SPOOL_ERR_CORRUPT);
        assert_non_null(strstr(spool_reader_error(r), "incorrect data check"));
    }
    spool_reader_free(r);
    bytes_free(&b);
    bytes_free(&packed);
    close(fd);
}

/* ---- long records ---- */

static void a_length_beyond_the_end_waits_for_ever(void **state)
{
    static const uint64_t lengths[] = {1000, (uint64_t)1 << 40, UINT64_MAX / 2};

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct spool_reader *r = spool_reader_new();
        struct digest d = {0};
        struct bytes b = {0};
        int fd = new_file();

        bytes_header(&b, 3, 0, 0);
        bytes_byte(&b, 1);
        bytes_module_fields(&b, 3, 0, 7, 0, 9, 0, false);
        bytes_uv(&b, lengths[i]);
        grow_file(fd, &b, b.size);
        assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
        for (int k = 0; k < 900; k++) {
            assert_int_equal(read_on(r, &d), 0);
            assert_true(spool_reader_cut_tail(r));
            assert_int_equal(spool_reader_kept_bytes(r), 10);
            bytes_byte(&b, 'p');
            grow_file(fd, &b, b.size);
        }
        assert_int_equal(d.records, 0);
        assert_int_equal(ftruncate(fd, 30), 0); /* still looked after */
        assert_int_equal(read_on(r, &d), SPOOL_ERR_IO);
        assert_int_equal(spool_reader_kept_bytes(r), 10);
        spool_reader_free(r);
        bytes_free(&b);
        close(fd);
    }
}

static void a_record_beyond_the_limit_of_the_reader_is_refused_when_it_is_whole(void **state)
{
    const uint64_t length = (64u << 20) + 1;
    struct spool_reader *r = spool_reader_new();
    struct digest d = {0};
    struct bytes b = {0};
    int fd = new_file();

    (void)state;
    bytes_header(&b, 3, 0, 0);
    bytes_byte(&b, 1);
    bytes_module_fields(&b, 3, 0, 7, 0, 9, 0, false);
    bytes_uv(&b, length);
    grow_file(fd, &b, b.size);
    assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
    for (uint64_t part = 0; part < length; part += 1 << 20) {
        assert_int_equal(read_on(r, &d), 0);
        assert_true(spool_reader_cut_tail(r));
        assert_int_equal(ftruncate(fd, (off_t)(b.size + part)), 0);
    }
    assert_int_equal(ftruncate(fd, (off_t)(b.size + length - 1)), 0);
    assert_int_equal(read_on(r, &d), 0);
    assert_int_equal(ftruncate(fd, (off_t)(b.size + length)), 0);
    assert_int_equal(read_on(r, &d), SPOOL_ERR_LIMIT);
    assert_non_null(strstr(spool_reader_error(r), "module record at byte 10 has more than"));
    assert_false(spool_reader_cut_tail(r));
    assert_int_equal(spool_reader_kept_bytes(r), 10);
    spool_reader_free(r);
    bytes_free(&b);
    close(fd);
}

static void a_long_record_that_comes_in_small_pieces_is_not_read_again_each_time(void **state)
{
    const uint64_t count = 200000;
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    struct digest d = {0};
    struct bytes b = {0};
    struct whole w;
    int fd = new_file();
    clock_t begin;

    (void)state;
    bytes_header(&b, 4, 0, 0);
    bytes_byte(&b, 9);
    bytes_module_fields(&b, 4, 0, 7, 0, count + 1, 0, false);
    bytes_text(&b, "[jit]");
    bytes_uv(&b, count);
    for (uint64_t i = 0; i < count; i++) {
        bytes_uv(&b, i);
        bytes_uv(&b, i + 1);
        bytes_text(&b, "some name");
    }
    w = read_whole(&b);
    assert_int_equal(w.digest.records, 1);
    begin = clock();
    grow_file(fd, &b, w.header_size);
    assert_int_equal(spool_reader_open_tail_fd(r, fd), 0);
    for (size_t at = w.header_size; at < b.size; at += 61) {
        grow_file(fd, &b, at);
        assert_int_equal(spool_reader_next(r, &rec), 0);
    }
    grow_file(fd, &b, b.size);
    assert_int_equal(spool_reader_next(r, &rec), 1);
    /* A fraction of a second; reading all of it at each of 50,000 steps takes minutes. */
    assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
    digest_record(&d, &rec);
    assert_true(d.hash == w.digest.hash);
    spool_reader_free(r);
    free(w.ends);
    bytes_free(&b);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fixture_that_grows_byte_by_byte_reads_as_the_whole),
        cmocka_unit_test(version_4_that_grows_byte_by_byte_reads_as_the_whole),
        cmocka_unit_test(an_error_in_an_early_field_does_not_wait_for_the_rest),
        cmocka_unit_test(a_file_must_have_the_header),
        cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
        cmocka_unit_test(nothing_is_read_beyond_the_limit),
        cmocka_unit_test(other_readers_know_no_limit_and_are_no_tails),
        cmocka_unit_test(a_pipe_is_never_waited_for_and_tells_its_end),
        cmocka_unit_test(a_non_blocking_pipe_is_no_different),
        cmocka_unit_test(opening_waits_for_the_header_of_a_pipe),
        cmocka_unit_test(a_fifo_without_a_writer_yet_is_waited_for),
        cmocka_unit_test(gzip_that_grows_byte_by_byte_reads_as_the_whole),
        cmocka_unit_test(flushed_gzip_gives_a_record_as_soon_as_it_is_there),
        cmocka_unit_test(damage_in_gzip_comes_after_what_stands_before_it),
        cmocka_unit_test(a_length_beyond_the_end_waits_for_ever),
        cmocka_unit_test(a_record_beyond_the_limit_of_the_reader_is_refused_when_it_is_whole),
        cmocka_unit_test(a_long_record_that_comes_in_small_pieces_is_not_read_again_each_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
