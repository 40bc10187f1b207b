/* SPDX-License-Identifier: MIT */
/* Every cut and every changed byte of small spools, and ids and lengths that are not true. */
#include <inttypes.h>
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

#include "read_spool.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };

    signal(SIGPIPE, SIG_IGN); /* readers that found an error leave their feeder alone */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
