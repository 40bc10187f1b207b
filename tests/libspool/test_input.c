/* SPDX-License-Identifier: MIT */
/* The window: the same bytes whatever the source, the packing and the way they trickle in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>

#include "input.h"
#include "spool/spool.h"

struct bytes {
    uint8_t *data;
    size_t size;
};

static struct bytes bytes_new(size_t size)
{
    struct bytes b = {malloc(size + 1), size};

    assert_non_null(b.data);
    return b;
}

/* Half of it packs well, so that both sides of inflate get work. */
static struct bytes make_data(size_t size)
{
    struct bytes b = bytes_new(size);
    uint64_t seed = size + 1;

    for (size_t i = 0; i < size; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        b.data[i] = i / 512 % 2 == 0 ? (uint8_t)(seed >> 56) : (uint8_t)(i / 1024);
    }
    if (size > 0)
        b.data[0] = 'S';
    return b;
}

static struct bytes pack(const uint8_t *data, size_t size)
{
    z_stream z = {0};
    struct bytes b;

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    b = bytes_new(deflateBound(&z, size) + 64);
    z.next_in = size > 0 ? (Bytef *)(uintptr_t)data : (Bytef *)b.data;
    z.avail_in = (uInt)size;
    z.next_out = b.data;
    z.avail_out = (uInt)b.size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    b.size -= z.avail_out;
    deflateEnd(&z);
    return b;
}

static struct bytes join(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    struct bytes out = bytes_new(a_size + b_size);

    if (a_size > 0)
        memcpy(out.data, a, a_size);
    if (b_size > 0)
        memcpy(out.data + a_size, b, b_size);
    return out;
}

/* ---- sources ---- */

enum source_kind {
    SOURCE_MEMORY,
    SOURCE_FILE,
    SOURCE_PIPE,
    SOURCE_SLOW_PIPE /* a byte at a time, non-blocking */
};

struct source {
    struct input *in;
    FILE *file;
    int fd;
    pid_t child;
};

static struct source source_open(enum source_kind kind, const uint8_t *data, size_t size)
{
    struct source s = {.in = spoolint_input_new(), .fd = -1};
    int ends[2];

    assert_non_null(s.in);
    if (kind == SOURCE_MEMORY) {
        spoolint_input_from_memory(s.in, data, size);
        return s;
    }
    if (kind == SOURCE_FILE) {
        s.file = tmpfile();
        assert_non_null(s.file);
        assert_int_equal(fwrite(data, 1, size, s.file), size);
        assert_int_equal(fflush(s.file), 0);
        assert_int_equal(lseek(fileno(s.file), 0, SEEK_SET), 0);
        spoolint_input_from_fd(s.in, fileno(s.file));
        return s;
    }
    assert_int_equal(pipe(ends), 0);
    s.child = fork();
    assert_true(s.child >= 0);
    if (s.child == 0) {
        size_t step = kind == SOURCE_SLOW_PIPE ? 1 : 70000;

        close(ends[0]);
        for (size_t at = 0; at < size;) {
            ssize_t n = write(ends[1], data + at, step < size - at ? step : size - at);

            if (n < 0)
                _exit(1);
            at += (size_t)n;
            if (kind == SOURCE_SLOW_PIPE && at % 64 == 1)
                usleep(100); /* let the reader find it empty */
        }
        _exit(0);
    }
    close(ends[1]);
    s.fd = ends[0];
    if (kind == SOURCE_SLOW_PIPE)
        assert_int_equal(fcntl(s.fd, F_SETFL, O_NONBLOCK), 0);
    spoolint_input_from_fd(s.in, s.fd);
    return s;
}

static void source_close(struct source *s)
{
    spoolint_input_free(s->in);
    if (s->file != NULL)
        fclose(s->file);
    if (s->fd >= 0)
        close(s->fd);
    if (s->child > 0)
        assert_int_equal(waitpid(s->child, NULL, 0), s->child);
}

/* ---- reading ---- */

struct outcome {
    struct bytes got;
    int rc;
    bool cut;
    bool gzip;
    uint64_t raw;
    char text[256];
};

/* Reads all; leaves up to `keep` bytes in the window each time: a reader with half a record. */
static struct outcome read_source(struct source *s, size_t keep, size_t wanted)
{
    struct outcome o = {.got = bytes_new(0)};
    struct input_window w = {0};
    size_t consumed = 0;

    while ((o.rc = spoolint_input_fill(s->in, &w, consumed, wanted)) > 0) {
        size_t size = (size_t)(w.end - w.begin);

        consumed = size > keep ? size - keep : 0;
        o.got.data = realloc(o.got.data, o.got.size + consumed + 1);
        assert_non_null(o.got.data);
        memcpy(o.got.data + o.got.size, w.begin, consumed);
        o.got.size += consumed;
    }
    if (w.begin != w.end) {
        size_t size = (size_t)(w.end - w.begin);

        o.got.data = realloc(o.got.data, o.got.size + size);
        assert_non_null(o.got.data);
        memcpy(o.got.data + o.got.size, w.begin, size);
        o.got.size += size;
    }
    /* The end and an error are final. */
    assert_int_equal(spoolint_input_fill(s->in, &w, (size_t)(w.end - w.begin), 1), o.rc);
    assert_true(w.begin == w.end);
    o.cut = spoolint_input_gzip_cut(s->in);
    o.gzip = spoolint_input_is_gzip(s->in);
    o.raw = spoolint_input_raw_bytes(s->in);
    snprintf(o.text, sizeof o.text, "%s", spoolint_input_error(s->in));
    return o;
}

static struct outcome read_bytes(enum source_kind kind, const uint8_t *data, size_t size)
{
    struct source s = source_open(kind, data, size);
    struct outcome o = read_source(&s, 5, 1);

    source_close(&s);
    return o;
}

static void expect(const struct outcome *o, const struct bytes *expected)
{
    assert_int_equal(o->rc, 0);
    assert_string_equal(o->text, "no error");
    assert_int_equal(o->got.size, expected->size);
    assert_memory_equal(o->got.data, expected->data, expected->size);
}

static void a_file_a_pipe_and_memory_give_the_same_bytes(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 5, 4095, 4096, 4097, 262143, 262144, 266241, 2000000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bytes data = make_data(sizes[i]);
        struct bytes packed = pack(data.data, data.size);

        for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_PIPE; kind++) {
            struct outcome plain = read_bytes(kind, data.data, data.size);
            struct outcome gzip = read_bytes(kind, packed.data, packed.size);

            expect(&plain, &data);
            expect(&gzip, &data);
            assert_false(plain.gzip);
            assert_true(gzip.gzip);
            assert_false(gzip.cut);
            assert_int_equal(plain.raw, data.size);
            assert_int_equal(gzip.raw, packed.size);
            free(plain.got.data);
            free(gzip.got.data);
        }
        free(data.data);
        free(packed.data);
    }
}

static void a_non_blocking_pipe_that_gives_one_byte_at_a_time_is_waited_for(void **state)
{
    struct bytes data = make_data(3000);
    struct bytes packed = pack(data.data, data.size);
    struct outcome plain = read_bytes(SOURCE_SLOW_PIPE, data.data, data.size);
    struct outcome gzip = read_bytes(SOURCE_SLOW_PIPE, packed.data, packed.size);

    (void)state;
    expect(&plain, &data);
    expect(&gzip, &data);
    free(plain.got.data);
    free(gzip.got.data);
    free(data.data);
    free(packed.data);
}

static void bytes_of_a_pipe_come_through_before_it_ends(void **state)
{
    struct bytes packed = pack((const uint8_t *)"hello, hello, hello, hello", 26);
    struct input *in = spoolint_input_new();
    struct input_window w = {0};
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    /* All but the trailer: whoever waits for more hangs. */
    assert_int_equal(write(ends[1], packed.data, packed.size - 8), packed.size - 8);
    spoolint_input_from_fd(in, ends[0]);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 20), 1);
    assert_int_equal(w.end - w.begin, 26);
    assert_int_equal(write(ends[1], packed.data + packed.size - 8, 8), 8);
    close(ends[1]);
    assert_int_equal(spoolint_input_fill(in, &w, 26, 1), 0);
    assert_false(spoolint_input_gzip_cut(in));
    close(ends[0]);
    spoolint_input_free(in);
    free(packed.data);
}

static void members_concatenate_and_may_be_empty(void **state)
{
    struct bytes data = make_data(100000);
    struct bytes a = pack(data.data, 40000);
    struct bytes none = pack(NULL, 0);
    struct bytes b = pack(data.data + 40000, 60000);
    struct bytes first = join(none.data, none.size, a.data, a.size);
    struct bytes second = join(first.data, first.size, none.data, none.size);
    struct bytes third = join(second.data, second.size, b.data, b.size);
    struct bytes all = join(third.data, third.size, none.data, none.size);

    (void)state;
    for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_SLOW_PIPE; kind++) {
        struct outcome o = read_bytes(kind, all.data, all.size);

        expect(&o, &data);
        assert_false(o.cut);
        free(o.got.data);
    }
    free(data.data);
    free(a.data);
    free(none.data);
    free(b.data);
    free(first.data);
    free(second.data);
    free(third.data);
    free(all.data);
}

static void a_gzip_that_ends_early_is_a_cut_tail(void **state)
{
    struct bytes data = make_data(1500);
    struct bytes one = pack(data.data, 700);
    struct bytes two = pack(data.data + 700, 800);
    struct bytes both = join(one.data, one.size, two.data, two.size);

    (void)state;
    for (size_t cut = 0; cut < both.size; cut++) {
        for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_FILE; kind++) {
            struct outcome o = read_bytes(kind, both.data, cut);

            assert_int_equal(o.rc, 0);
            assert_int_equal(o.gzip, cut >= 2);
            assert_int_equal(o.cut, cut >= 2 && cut != one.size);
            if (cut < 2) {
                assert_int_equal(o.got.size, cut);
            } else {
                assert_true(o.got.size <= data.size);
                assert_memory_equal(o.got.data, data.data, o.got.size);
            }
            if (cut >= one.size - 8) /* nothing but the trailer is missing */
                assert_true(o.got.size >= 700);
            free(o.got.data);
        }
    }
    free(data.data);
    free(one.data);
    free(two.data);
    free(both.data);
}

static void a_flipped_bit_of_a_gzip_is_never_taken_for_other_data(void **state)
{
    struct bytes data = make_data(600);
    struct bytes packed = pack(data.data, data.size);

    (void)state;
    for (size_t bit = 0; bit < packed.size * 8; bit++) {
        struct outcome o;

        packed.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        o = read_bytes(SOURCE_MEMORY, packed.data, packed.size);
        if (o.rc < 0) {
            assert_int_equal(o.rc, SPOOL_ERR_CORRUPT);
            assert_memory_equal(o.text, "gzip data at byte ", 18);
        } else if (!o.gzip) {
            assert_true(bit < 16);
            expect(&o, &packed);
        } else if (!o.cut) { /* a cut one was not checked to its end */
            expect(&o, &data);
        }
        free(o.got.data);
        packed.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(data.data);
    free(packed.data);
}

static void what_was_unpacked_before_damage_is_delivered_first(void **state)
{
    struct bytes data = make_data(700000);
    struct bytes packed = pack(data.data, data.size);
    char expected[100];

    (void)state;
    for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_PIPE; kind++) {
        struct outcome o;

        packed.data[packed.size - 8] ^= 1;
        o = read_bytes(kind, packed.data, packed.size);
        assert_int_equal(o.rc, SPOOL_ERR_CORRUPT);
        snprintf(expected, sizeof expected, "gzip data at byte %zu: incorrect data check",
                 packed.size - 4);
        assert_string_equal(o.text, expected);
        assert_int_equal(o.got.size, data.size);
        assert_memory_equal(o.got.data, data.data, data.size);
        free(o.got.data);
        packed.data[packed.size - 8] ^= 1;

        packed.data[packed.size - 1] ^= 1;
        o = read_bytes(kind, packed.data, packed.size);
        assert_int_equal(o.rc, SPOOL_ERR_CORRUPT);
        snprintf(expected, sizeof expected, "gzip data at byte %zu: incorrect length check",
                 packed.size);
        assert_string_equal(o.text, expected);
        assert_int_equal(o.got.size, data.size);
        free(o.got.data);
        packed.data[packed.size - 1] ^= 1;
    }
    free(data.data);
    free(packed.data);
}

/* Reads a gzip of "abc" with bytes behind it. */
static struct outcome read_with_tail(enum source_kind kind, const void *tail, size_t size,
                                     size_t *packed_size)
{
    struct bytes packed = pack((const uint8_t *)"abc", 3);
    struct bytes all = join(packed.data, packed.size, tail, size);
    struct outcome o = read_bytes(kind, all.data, all.size);

    *packed_size = packed.size;
    free(packed.data);
    free(all.data);
    assert_int_equal(o.got.size, 3);
    assert_memory_equal(o.got.data, "abc", 3);
    free(o.got.data);
    return o;
}

static void zeros_behind_a_gzip_are_padding(void **state)
{
    uint8_t *zeros = calloc(1, 600000);
    size_t packed_size;

    (void)state;
    assert_non_null(zeros);
    for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_PIPE; kind++) {
        struct outcome o = read_with_tail(kind, zeros, 1, &packed_size);

        assert_int_equal(o.rc, 0);
        assert_false(o.cut);
        o = read_with_tail(kind, zeros, 600000, &packed_size);
        assert_int_equal(o.rc, 0);
        assert_false(o.cut);
    }
    free(zeros);
}

static void anything_else_behind_a_gzip_is_corrupt(void **state)
{
    static const struct {
        const char *tail;
        size_t size;
        size_t at; /* of the byte at fault, in the tail */
    } cases[] = {{"x", 1, 0},
                 {"\x1f\x8c", 2, 0},
                 {"\x1fx", 2, 0},
                 {"\0\0x", 3, 2},
                 {"\0\x1f\x8b\x08\0\0\0\0\0\0\0", 11, 1}};
    char expected[100];
    size_t packed_size;

    (void)state;
    for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_SLOW_PIPE; kind++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct outcome o = read_with_tail(kind, cases[i].tail, cases[i].size, &packed_size);

            assert_int_equal(o.rc, SPOOL_ERR_CORRUPT);
            snprintf(expected, sizeof expected,
                     "gzip data at byte %zu: trailing bytes that are not gzip data",
                     packed_size + cases[i].at);
            assert_string_equal(o.text, expected);
        }
    }
}

static void half_a_magic_behind_a_gzip_is_a_cut_tail(void **state)
{
    size_t packed_size;
    struct outcome o = read_with_tail(SOURCE_FILE, "\x1f", 1, &packed_size);

    (void)state;
    assert_int_equal(o.rc, 0);
    assert_true(o.cut);
}

static void a_directory_is_called_one(void **state)
{
    struct input *in = spoolint_input_new();
    struct input_window w = {0};
    int fd = open("/", O_RDONLY | O_DIRECTORY);

    (void)state;
    assert_true(fd >= 0);
    spoolint_input_from_fd(in, fd);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 1), SPOOL_ERR_IO);
    assert_string_equal(spoolint_input_error(in), "is a directory");
    spoolint_input_free(in);
    close(fd);
}

static void a_closed_descriptor_is_a_read_error(void **state)
{
    struct input *in = spoolint_input_new();
    struct input_window w = {0};
    uint64_t skipped = 1;
    int fd = open("/", O_RDONLY | O_DIRECTORY);

    (void)state;
    close(fd);
    spoolint_input_from_fd(in, fd);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 1), SPOOL_ERR_IO);
    assert_string_equal(spoolint_input_error(in), "read failed: Bad file descriptor");
    assert_int_equal(spoolint_input_fill(in, &w, 0, 1), SPOOL_ERR_IO);
    assert_int_equal(spoolint_input_skip(in, &w, 5, &skipped), SPOOL_ERR_IO);
    assert_int_equal(skipped, 0);
    spoolint_input_free(in);
}

static void reading_begins_where_the_descriptor_stands(void **state)
{
    struct source s = source_open(SOURCE_FILE, (const uint8_t *)"abcdef", 6);
    struct input_window w = {0};

    (void)state;
    assert_int_equal(lseek(fileno(s.file), 4, SEEK_SET), 4);
    assert_int_equal(spoolint_input_fill(s.in, &w, 0, 1), 1);
    assert_int_equal(w.end - w.begin, 2);
    assert_memory_equal(w.begin, "ef", 2);
    source_close(&s);
}

static void a_wanted_size_is_reached_when_the_input_has_it(void **state)
{
    struct bytes data = make_data(3000000);
    struct bytes packed = pack(data.data, data.size);
    static const size_t wanted[] = {1, 100, 262145, 1000000, 2999999, 3000000};

    (void)state;
    for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_PIPE; kind++) {
        for (size_t i = 0; i < 2 * sizeof wanted / sizeof wanted[0]; i++) {
            const struct bytes *b = i % 2 == 0 ? &data : &packed;
            struct source s = source_open(kind, b->data, b->size);
            struct input_window w = {0};

            assert_int_equal(spoolint_input_fill(s.in, &w, 0, wanted[i / 2]), 1);
            assert_true((size_t)(w.end - w.begin) >= wanted[i / 2]);
            assert_memory_equal(w.begin, data.data, (size_t)(w.end - w.begin));
            source_close(&s);
        }
    }
    free(data.data);
    free(packed.data);
}

static void a_wanted_size_beyond_the_input_gives_what_there_is(void **state)
{
    struct bytes data = make_data(700000);
    struct bytes packed = pack(data.data, data.size);

    (void)state;
    for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_PIPE; kind++) {
        for (int gzip = 0; gzip < 2; gzip++) {
            const struct bytes *b = gzip ? &packed : &data;
            struct source s = source_open(kind, b->data, b->size);
            struct outcome o;

            /* An allocation from this number would fail. */
            o = read_source(&s, 1000, SIZE_MAX / 2);
            expect(&o, &data);
            free(o.got.data);
            source_close(&s);
        }
    }
    free(data.data);
    free(packed.data);
}

static void a_bomb_is_unpacked_no_further_than_wanted(void **state)
{
    uint8_t *zeros = calloc(1, 64 << 20);
    struct bytes packed = pack(zeros, 64 << 20);
    struct source s = source_open(SOURCE_MEMORY, packed.data, packed.size);
    struct input_window w = {0};
    size_t total = 0;
    size_t consumed = 0;

    (void)state;
    assert_non_null(zeros);
    while (spoolint_input_fill(s.in, &w, consumed, 10) > 0) {
        assert_true(w.end - w.begin <= 262144);
        consumed = (size_t)(w.end - w.begin) - 3;
        total += consumed;
        if (total > 60u << 20)
            break;
    }
    assert_true(total > 60u << 20);
    source_close(&s);
    free(zeros);
    free(packed.data);
}

static void plain_memory_is_not_copied(void **state)
{
    struct bytes data = make_data(1000);
    struct source s = source_open(SOURCE_MEMORY, data.data, data.size);
    struct input_window w = {0};

    (void)state;
    assert_int_equal(spoolint_input_fill(s.in, &w, 0, 1), 1);
    assert_ptr_equal(w.begin, data.data);
    assert_ptr_equal(w.end, data.data + 1000);
    assert_int_equal(spoolint_input_fill(s.in, &w, 990, 20), 0);
    assert_ptr_equal(w.begin, data.data + 990);
    assert_ptr_equal(w.end, data.data + 1000);
    source_close(&s);
    free(data.data);
}

static void skipping_drops_the_window_and_what_is_behind_it(void **state)
{
    struct bytes data = make_data(2000000);
    struct bytes packed = pack(data.data, data.size);

    (void)state;
    for (enum source_kind kind = SOURCE_FILE; kind <= SOURCE_PIPE; kind++) {
        for (int gzip = 0; gzip < 2; gzip++) {
            const struct bytes *b = gzip ? &packed : &data;
            struct source s = source_open(kind, b->data, b->size);
            struct input_window w = {0};
            uint64_t skipped;
            size_t at;

            assert_int_equal(spoolint_input_fill(s.in, &w, 0, 100), 1);
            at = (size_t)(w.end - w.begin);
            assert_int_equal(spoolint_input_skip(s.in, &w, 1000000, &skipped), 1);
            assert_int_equal(skipped, 1000000);
            assert_true(w.begin == w.end);
            at += 1000000;
            assert_int_equal(spoolint_input_skip(s.in, &w, 0, &skipped), 1);
            assert_int_equal(skipped, 0);
            assert_int_equal(spoolint_input_fill(s.in, &w, 0, 7), 1);
            assert_true(w.end - w.begin >= 7);
            assert_memory_equal(w.begin, data.data + at, (size_t)(w.end - w.begin));
            at += (size_t)(w.end - w.begin);
            assert_int_equal(spoolint_input_skip(s.in, &w, UINT64_MAX, &skipped), 0);
            assert_int_equal(skipped, data.size - at);
            assert_true(w.begin == w.end);
            assert_int_equal(spoolint_input_fill(s.in, &w, 0, 1), 0);
            source_close(&s);
        }
    }
    free(data.data);
    free(packed.data);
}

static void skipping_may_come_first(void **state)
{
    struct bytes data = make_data(5000);
    struct bytes packed = pack(data.data, data.size);

    (void)state;
    for (enum source_kind kind = SOURCE_MEMORY; kind <= SOURCE_SLOW_PIPE; kind++) {
        for (int gzip = 0; gzip < 2; gzip++) {
            const struct bytes *b = gzip ? &packed : &data;
            struct source s = source_open(kind, b->data, b->size);
            struct input_window w = {0};
            uint64_t skipped;

            assert_int_equal(spoolint_input_skip(s.in, &w, 3, &skipped), 1);
            assert_int_equal(skipped, 3);
            assert_int_equal(spoolint_input_fill(s.in, &w, 0, 5), 1);
            assert_memory_equal(w.begin, data.data + 3, 5);
            source_close(&s);
        }
    }
    free(data.data);
    free(packed.data);
}

static void skipping_into_damage_counts_what_was_there(void **state)
{
    struct bytes data = make_data(500000);
    struct bytes packed = pack(data.data, data.size);
    struct source s;
    struct input_window w = {0};
    uint64_t skipped;

    (void)state;
    packed.data[packed.size - 8] ^= 1;
    s = source_open(SOURCE_FILE, packed.data, packed.size);
    assert_int_equal(spoolint_input_skip(s.in, &w, 600000, &skipped), SPOOL_ERR_CORRUPT);
    assert_int_equal(skipped, 500000);
    assert_int_equal(spoolint_input_fill(s.in, &w, 0, 1), SPOOL_ERR_CORRUPT);
    source_close(&s);
    free(data.data);
    free(packed.data);
}

static void a_followed_pipe_waits_only_until_it_is_told_not_to(void **state)
{
    struct input *in = spoolint_input_new();
    struct input_window w = {0};
    uint64_t skipped;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    spoolint_input_follow_fd(in, ends[0]);
    assert_int_equal(write(ends[1], "Sp", 2), 2);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 2), 1);
    spoolint_input_never_wait(in);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 5), 0);
    assert_int_equal(w.end - w.begin, 2);
    assert_int_equal(spoolint_input_skip(in, &w, 1000, &skipped), 0);
    assert_int_equal(skipped, 0);
    assert_false(spoolint_input_ended(in));
    assert_int_equal(write(ends[1], "ool", 3), 3);
    assert_int_equal(spoolint_input_skip(in, &w, 1, &skipped), 1);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 1), 1);
    assert_memory_equal(w.begin, "ol", 2);
    close(ends[1]);
    assert_int_equal(spoolint_input_fill(in, &w, 2, 1), 0);
    assert_true(spoolint_input_ended(in));
    spoolint_input_free(in);
    close(ends[0]);
}

static void a_followed_file_is_looked_at_again_within_the_limit(void **state)
{
    struct input *in = spoolint_input_new();
    struct input_window w = {0};
    FILE *file = tmpfile();
    int fd = fileno(file);

    (void)state;
    assert_int_equal(pwrite(fd, "Sp", 2, 0), 2);
    spoolint_input_follow_fd(in, fd);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 5), 1);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 5), 0);
    assert_int_equal(pwrite(fd, "ooled", 5, 2), 5);
    spoolint_input_limit(in, 4);
    assert_int_equal(spoolint_input_fill(in, &w, 1, 5), 1);
    assert_int_equal(w.end - w.begin, 3);
    assert_memory_equal(w.begin, "poo", 3);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 5), 0);
    assert_int_equal(spoolint_input_raw_bytes(in), 4);
    spoolint_input_limit(in, 1000);
    assert_int_equal(ftruncate(fd, 3), 0);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 5), SPOOL_ERR_IO);
    assert_string_equal(spoolint_input_error(in),
                        "the file has become shorter: it has 3 bytes, 4 had been read");
    assert_int_equal(spoolint_input_fill(in, &w, 0, 5), SPOOL_ERR_IO);
    assert_int_equal(w.end - w.begin, 3); /* what was there stays */
    assert_false(spoolint_input_ended(in));
    spoolint_input_free(in);
    fclose(file);
}

static void a_followed_gzip_is_cut_until_its_next_member_is_whole(void **state)
{
    struct bytes packed = pack((const uint8_t *)"abc", 3);
    struct input *in = spoolint_input_new();
    struct input_window w = {0};
    FILE *file = tmpfile();
    int fd = fileno(file);

    (void)state;
    assert_int_equal(pwrite(fd, packed.data, packed.size, 0), packed.size);
    spoolint_input_follow_fd(in, fd);
    assert_int_equal(spoolint_input_fill(in, &w, 0, 3), 1);
    for (size_t size = 0; size < packed.size; size++) {
        off_t end = (off_t)(packed.size + size);

        assert_int_equal(spoolint_input_fill(in, &w, 0, 6) >= 0, 1);
        assert_int_equal(spoolint_input_fill(in, &w, 0, 6), 0);
        assert_int_equal(spoolint_input_gzip_cut(in), size > 0);
        assert_int_equal(pwrite(fd, packed.data + size, 1, end), 1);
    }
    assert_int_equal(spoolint_input_fill(in, &w, 0, 7), 0);
    assert_false(spoolint_input_gzip_cut(in));
    assert_int_equal(w.end - w.begin, 6);
    assert_memory_equal(w.begin, "abcabc", 6);
    spoolint_input_free(in);
    free(packed.data);
    fclose(file);
}

static void an_input_without_a_source_is_empty(void **state)
{
    struct input *in = spoolint_input_new();
    struct input_window w = {0};

    (void)state;
    assert_int_equal(spoolint_input_fill(in, &w, 0, 1), 0);
    spoolint_input_free(in);
    spoolint_input_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_a_pipe_and_memory_give_the_same_bytes),
        cmocka_unit_test(a_non_blocking_pipe_that_gives_one_byte_at_a_time_is_waited_for),
        cmocka_unit_test(bytes_of_a_pipe_come_through_before_it_ends),
        cmocka_unit_test(members_concatenate_and_may_be_empty),
        cmocka_unit_test(a_gzip_that_ends_early_is_a_cut_tail),
        cmocka_unit_test(a_flipped_bit_of_a_gzip_is_never_taken_for_other_data),
        cmocka_unit_test(what_was_unpacked_before_damage_is_delivered_first),
        cmocka_unit_test(zeros_behind_a_gzip_are_padding),
        cmocka_unit_test(anything_else_behind_a_gzip_is_corrupt),
        cmocka_unit_test(half_a_magic_behind_a_gzip_is_a_cut_tail),
        cmocka_unit_test(a_directory_is_called_one),
        cmocka_unit_test(a_closed_descriptor_is_a_read_error),
        cmocka_unit_test(reading_begins_where_the_descriptor_stands),
        cmocka_unit_test(a_wanted_size_is_reached_when_the_input_has_it),
        cmocka_unit_test(a_wanted_size_beyond_the_input_gives_what_there_is),
        cmocka_unit_test(a_bomb_is_unpacked_no_further_than_wanted),
        cmocka_unit_test(plain_memory_is_not_copied),
        cmocka_unit_test(skipping_drops_the_window_and_what_is_behind_it),
        cmocka_unit_test(skipping_may_come_first),
        cmocka_unit_test(skipping_into_damage_counts_what_was_there),
        cmocka_unit_test(a_followed_pipe_waits_only_until_it_is_told_not_to),
        cmocka_unit_test(a_followed_file_is_looked_at_again_within_the_limit),
        cmocka_unit_test(a_followed_gzip_is_cut_until_its_next_member_is_whole),
        cmocka_unit_test(an_input_without_a_source_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
