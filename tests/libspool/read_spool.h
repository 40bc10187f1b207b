/* SPDX-License-Identifier: MIT */
/* What the tests of the public reader share: small spools, reading them, and where they come from. */
#ifndef TESTS_READ_SPOOL_H
#define TESTS_READ_SPOOL_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool/spool.h"
#include "spool_bytes.h"

#define ok(call) assert_int_equal(call, 0)

/* ---- the worked examples of spool(5) ---- */

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
static inline void put_rich_spool(struct bytes *b)
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
static inline void small_spool(unsigned number, struct bytes *b)
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

static inline struct spool_reader *new_reader(void)
{
    struct spool_reader *r = spool_reader_new();

    assert_non_null(r);
    return r;
}

static inline struct spool_reader *open_bytes(const struct bytes *b)
{
    struct spool_reader *r = new_reader();

    ok(spool_reader_open_memory(r, b->data, b->size));
    return r;
}

/* Reads to the end; the number of records. */
static inline size_t read_all(struct spool_reader *r)
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

static inline struct spool_record next(struct spool_reader *r, enum spool_record_type type)
{
    struct spool_record rec;

    assert_int_equal(spool_reader_next(r, &rec), 1);
    assert_int_equal(rec.type, type);
    return rec;
}

static inline void assert_ends_whole(struct spool_reader *r, const struct bytes *b)
{
    struct spool_record rec;

    ok(spool_reader_next(r, &rec));
    assert_false(spool_reader_cut_tail(r));
    assert_int_equal(spool_reader_kept_bytes(r), b->size);
    ok(spool_reader_error_code(r));
    assert_string_equal(spool_reader_error(r), "no error");
    ok(spool_reader_next(r, &rec));
}

static inline void assert_frame_in(struct spool_reader *r, uint32_t frame, int32_t pid,
                                   uint32_t module, uint64_t rel)
{
    uint32_t got;
    uint64_t got_rel;

    assert_int_equal(spool_reader_locate(r, frame, pid, &got, &got_rel), 1);
    assert_int_equal(got, module);
    assert_int_equal(got_rel, rel);
}

static inline void assert_frame_nowhere(struct spool_reader *r, uint32_t frame, int32_t pid)
{
    uint32_t got;
    uint64_t rel;

    ok(spool_reader_locate(r, frame, pid, &got, &rel));
    assert_int_equal(got, SPOOL_NO_ID);
}

static inline void assert_sample(const struct spool_record *rec, uint64_t index, int64_t delta,
                                 uint64_t time, uint64_t tid, uint32_t stack)
{
    assert_int_equal(rec->sample.index, index);
    assert_true(rec->sample.delta_ns == delta);
    assert_int_equal(rec->sample.time_ns, time);
    assert_int_equal(rec->sample.pid, 7);
    assert_int_equal(rec->sample.tid, tid);
    assert_int_equal(rec->sample.stack, stack);
}

/* ---- where bytes come from ---- */

static inline int file_of(const struct bytes *b)
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

static inline void *feed(void *user)
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
static inline int start_feeder(struct feeder *f, const struct bytes *b, size_t chunk)
{
    int ends[2];

    if (b->size > 4096 || pipe2(ends, O_DIRECT | O_CLOEXEC) < 0)
        assert_int_equal(pipe(ends), 0);
    *f = (struct feeder){.fd = ends[1], .b = b, .chunk = chunk};
    assert_int_equal(pthread_create(&f->thread, NULL, feed, f), 0);
    return ends[0];
}

static inline void stop_feeder(struct feeder *f, int fd)
{
    close(fd);
    assert_int_equal(pthread_join(f->thread, NULL), 0);
}

#endif
