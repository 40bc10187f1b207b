/* SPDX-License-Identifier: MIT */
/* The bytes of messages, spelled out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "envelope.h"

struct fixture {
    char path[40];
    struct tool_output out;
    struct envelope *envelope;
};

static void begin(struct fixture *f, int gzip_level)
{
    int fd;

    strcpy(f->path, "/tmp/test_envelope.XXXXXX");
    fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(output_open(&f->out, f->path, true), 0);
    f->envelope = envelope_new(&f->out, gzip_level);
    assert_non_null(f->envelope);
}

/* Ends the document, and reads it back: malloc'ed. */
static uint8_t *end(struct fixture *f, size_t *size)
{
    struct stat status;
    uint8_t *bytes;
    int fd;

    assert_int_equal(envelope_finish(f->envelope), 0);
    envelope_free(f->envelope);
    assert_int_equal(output_commit(&f->out), 0);
    fd = open(f->path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    *size = (size_t)status.st_size;
    bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, *size), status.st_size);
    close(fd);
    unlink(f->path);
    return bytes;
}

static void expect(struct fixture *f, const void *bytes, size_t size)
{
    size_t got_size;
    uint8_t *got = end(f, &got_size);

    assert_int_equal(got_size, size);
    assert_memory_equal(got, bytes, size);
    free(got);
}

static void a_sample_has_packed_numbers_and_its_labels_behind_them(void **state)
{
    static const uint8_t wire[] = {
        0x12, 27,                                     /* sample, 27 bytes */
        0x0a, 3,  1,    0xac, 2,                      /* locations 1, 300 */
        0x12, 2,  5,    50,                           /* values */
        0x1a, 7,  0x08, 6,    0x18, 0x80, 1, 0x20, 6, /* label 6: number 128 of unit 6 */
        0x1a, 5,  0x08, 7,    0x10, 0x80, 1,          /* label 7: text 128; two bytes */
    };
    struct fixture f;
    struct text_buffer labels = {0};
    uint64_t locations[] = {1, 300};
    const int64_t values[] = {5, 50};

    (void)state;
    begin(&f, 0);
    envelope_pack_label(&labels, &(struct envelope_label){.key = 6, .num = 128, .num_unit = 6});
    envelope_pack_label(&labels, &(struct envelope_label){.key = 7, .str = 128});
    envelope_sample(f.envelope, locations, 2, values, 2, labels.data, labels.size);
    text_free(&labels);
    {
        uint8_t whole[sizeof wire];

        memcpy(whole, wire, sizeof wire);
        whole[1] = sizeof wire - 2;
        expect(&f, whole, sizeof whole);
    }
}

static void a_negative_number_takes_ten_bytes(void **state)
{
    static const uint8_t wire[] = {0x1a, 13,   0x08, 1,    0x18, 0xff, 0xff, 0xff,
                                   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    struct text_buffer labels = {0};

    (void)state;
    envelope_pack_label(&labels, &(struct envelope_label){.key = 1, .num = -1});
    assert_int_equal(labels.size, sizeof wire);
    assert_memory_equal(labels.data, wire, sizeof wire);
    text_free(&labels);
}

static void a_long_sample_has_a_long_size(void **state)
{
    enum { COUNT = 100000 };
    struct fixture f;
    uint64_t *locations = calloc(COUNT, sizeof *locations);
    const int64_t value = 1;
    size_t size;
    uint8_t *got;

    (void)state;
    assert_non_null(locations);
    for (size_t i = 0; i < COUNT; i++)
        locations[i] = 1;
    begin(&f, 0);
    envelope_sample(f.envelope, locations, COUNT, &value, 1, NULL, 0);
    got = end(&f, &size);
    /* 0x0a, size in three bytes, the ids, and a value: 100007 bytes */
    assert_int_equal(size, 1 + 3 + 1 + 3 + COUNT + 3);
    assert_memory_equal(got, "\x12\xa7\x8d\x06\x0a\xa0\x8d\x06\x01", 9);
    assert_memory_equal(got + size - 3, "\x12\x01\x01", 3);
    free(got);
    free(locations);
}

static void definitions_are_parts_of_one_profile(void **state)
{
    static const char wire[] =
        "\x22\x11\x08\x01\x10\x02\x18\x90\x01\x22\x02\x08\x01\x22\x04\x08\x02\x10\x07"
        "\x2a\x04\x08\x01\x10\x03"
        "\x1a\x08\x08\x01\x10\x10\x28\x02\x38\x01"
        "\x32\x00"
        "\x32\x03"
        "a\0b";
    const struct envelope_line lines[] = {{.function = 1}, {.function = 2, .line = 7}};
    struct fixture f;

    (void)state;
    begin(&f, 0);
    envelope_location(f.envelope, 1, 2, 144, lines, 2);
    envelope_function(f.envelope, &(struct envelope_function){.id = 1, .name = 3});
    envelope_mapping(f.envelope, &(struct envelope_mapping){
                                     .id = 1, .start = 16, .filename = 2, .has_functions = true});
    envelope_string(f.envelope, "", 0);
    envelope_string(f.envelope, "a\0b", 3);
    expect(&f, wire, sizeof wire - 1);
}

static void the_header_has_types_times_and_comments(void **state)
{
    static const char wire[] = "\x0a\x04\x08\x01\x10\x02\x48\x05\x50\x06\x5a\x04\x08\x01\x10\x02"
                               "\x60\x01\x6a\x02\x03\x04\x70\x01";
    const int64_t comments[] = {3, 4};
    const struct envelope_header header = {.sample_types = {{1, 2}},
                                           .sample_type_count = 1,
                                           .period_type = {1, 2},
                                           .default_sample_type = 1,
                                           .period = 1,
                                           .time_ns = 5,
                                           .duration_ns = 6,
                                           .comments = comments,
                                           .comment_count = 2};
    struct fixture f;

    (void)state;
    begin(&f, 0);
    envelope_header(f.envelope, &header);
    expect(&f, wire, sizeof wire - 1);
}

static void gzip_holds_the_same_bytes_in_one_member(void **state)
{
    enum { COUNT = 300000 };
    struct fixture f;
    size_t size, at = 0;
    uint8_t *got, part[1000];
    gzFile file;
    int n;

    (void)state;
    begin(&f, 6);
    for (size_t i = 0; i < COUNT; i++)
        envelope_string(f.envelope, "text", 4);
    got = end(&f, &size);
    assert_memory_equal(got, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
    begin(&f, 0);
    assert_int_equal(write(f.out.fd, got, size), size);
    file = gzdopen(dup(f.out.fd), "rb");
    assert_non_null(file);
    assert_int_equal(lseek(f.out.fd, 0, SEEK_SET), 0);
    while ((n = gzread(file, part, 996)) > 0) {
        for (int i = 0; i < n; i += 6)
            assert_memory_equal(part + i, "\x32\x04text", 6);
        at += (size_t)n;
    }
    assert_int_equal(n, 0);
    assert_int_equal(at, (size_t)COUNT * 6);
    gzclose(file);
    free(got);
    envelope_free(f.envelope);
    output_abort(&f.out);
    unlink(f.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_has_packed_numbers_and_its_labels_behind_them),
        cmocka_unit_test(a_negative_number_takes_ten_bytes),
        cmocka_unit_test(a_long_sample_has_a_long_size),
        cmocka_unit_test(definitions_are_parts_of_one_profile),
        cmocka_unit_test(the_header_has_types_times_and_comments),
        cmocka_unit_test(gzip_holds_the_same_bytes_in_one_member),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
