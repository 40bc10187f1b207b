/* SPDX-License-Identifier: MIT */
/* Debug links and their checksum, and symbol files packed by xz: good ones, cut ones, bombs. */
#include "debuginfo.h"
#include "elf_private.h"

#include "section_image.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

struct opened {
    uint8_t *data;
    struct symint_elf *elf;
};

static struct opened open_image(const struct section_image *image)
{
    struct opened o = {0};
    size_t size;
    enum sym_miss miss;
    const char *why = "";
    o.data = section_image_build(image, &size);
    struct symint_input input = {.fd = -1, .memory = o.data, .size = size};
    assert_int_equal(symint_elf_open(&input, &o.elf, &miss, &why), 0);
    if (o.elf == NULL)
        fail_msg("not opened: %s", why);
    assert_int_equal(symint_elf_read_sections(o.elf, &miss, &why), 0);
    assert_int_equal(miss, SYM_MISS_NONE);
    return o;
}

static void close_image(struct opened *o)
{
    symint_elf_free(o->elf);
    free(o->data);
}

/* ---- links ---- */

static bool read_link(const void *data, size_t size, struct symint_debug_link *link)
{
    struct opened o =
        open_image(&(struct section_image){.name = ".gnu_debuglink", .data = data, .size = size});
    bool there = symint_debug_link_read(o.elf, link);
    close_image(&o);
    return there;
}

static void a_link_has_a_name_and_a_checksum(void **state)
{
    (void)state;
    /* Names of all remainders modulo 4. */
    const char *const data[] = {"abc\0\x78\x56\x34\x12", "abcd\0\0\0\0\x78\x56\x34\x12",
                                "abcde\0\0\0\x78\x56\x34\x12", "abcdef\0\0\x78\x56\x34\x12"};
    for (size_t i = 0; i < 4; i++) {
        struct symint_debug_link link;
        assert_true(read_link(data[i], i == 0 ? 8 : 12, &link));
        assert_string_equal(link.name, data[i]);
        assert_int_equal(link.crc32, 0x12345678);
    }
}

static void the_checksum_is_in_the_files_byte_order(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct section_image image = {.name = ".gnu_debuglink",
                                      .data = "a.debug\0\x12\x34\x56\x78",
                                      .size = 12,
                                      .narrow = kind % 2 != 0,
                                      .big = kind / 2 != 0};
        struct opened o = open_image(&image);
        struct symint_debug_link link;
        assert_true(symint_debug_link_read(o.elf, &link));
        assert_string_equal(link.name, "a.debug");
        assert_int_equal(link.crc32, image.big ? 0x12345678 : 0x78563412);
        close_image(&o);
    }
}

static void a_name_that_leads_elsewhere_is_no_name(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t size;
        bool good;
    } cases[] = {
        {"\0\0\0\0\1\2\3\4", 8, false}, {".\0\0\0\1\2\3\4", 8, false},
        {"..\0\0\1\2\3\4", 8, false},   {"...\0\1\2\3\4", 8, true},
        {"/x\0\0\1\2\3\4", 8, false},   {"x/\0\0\1\2\3\4", 8, false},
        {"x/y\0\1\2\3\4", 8, false},    {"../x\0\0\0\0\1\2\3\4", 12, false},
        {"x\0/\0\1\2\3\4", 8, true}, /* padding is not looked at */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct symint_debug_link link;
        if (read_link(cases[i].data, cases[i].size, &link) != cases[i].good)
            fail_msg("case %zu", i);
    }
}

static void a_link_that_is_cut_off_is_none(void **state)
{
    (void)state;
    const char data[] = "abcd\0\0\0\0\1\2\3\4";
    struct symint_debug_link link;
    for (size_t size = 0; size < 12; size++) {
        /* In memory of that size, so that a sanitizer sees what is read behind it. */
        if (read_link(data, size, &link))
            fail_msg("%zu bytes", size);
    }
    assert_true(read_link(data, 12, &link));
}

static void a_name_may_have_255_bytes(void **state)
{
    (void)state;
    char data[600];
    struct symint_debug_link link;
    for (size_t size = 250; size < 300; size++) {
        memset(data, 0, sizeof(data));
        memset(data, 'n', size);
        bool there = read_link(data, sizeof(data), &link);
        assert_int_equal(there, size <= 255);
        if (there)
            assert_int_equal(strlen(link.name), size);
    }
    memset(data, 'n', sizeof(data));
    assert_false(read_link(data, sizeof(data), &link));
}

static void a_link_needs_bytes_in_the_file(void **state)
{
    (void)state;
    const struct section_image images[] = {
        {.name = ".gnu_debuglink", .data = "abc\0\1\2\3\4", .size = 8, .type = SHT_NOBITS},
        {.name = ".gnu_debuglink", .data = "abc\0\1\2\3\4", .size = 8, .flags = SHF_COMPRESSED},
        {.name = ".gnu_debuglink", .data = "abc\0\1\2\3\4", .size = 8, .claimed_size = UINT64_MAX},
        {.name = ".gnu_debuglonk", .data = "abc\0\1\2\3\4", .size = 8},
    };
    for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++) {
        struct opened o = open_image(&images[i]);
        struct symint_debug_link link;
        if (symint_debug_link_read(o.elf, &link))
            fail_msg("case %zu", i);
        close_image(&o);
    }
}

/* ---- checksums ---- */

static int temporary(void)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    int fd = dup(fileno(f));
    assert_true(fd >= 0);
    fclose(f);
    return fd;
}

static void checksums_are_those_of_zlib(void **state)
{
    (void)state;
    uint32_t crc = 1;
    int fd = temporary();
    assert_true(symint_file_crc32(fd, &crc));
    assert_int_equal(crc, 0);
    assert_int_equal(write(fd, "123456789", 9), 9);
    assert_true(symint_file_crc32(fd, &crc));
    assert_int_equal(crc, 0xcbf43926);
    close(fd);
}

static void a_checksum_is_of_the_whole_file_wherever_the_descriptor_stands(void **state)
{
    (void)state;
    size_t size = 3 * 1024 * 1024 + 17;
    uint8_t *data = malloc(size);
    uint32_t crc;
    int fd = temporary();
    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * i >> 7);
    assert_int_equal(write(fd, data, size), size);
    assert_int_equal(lseek(fd, 12345, SEEK_SET), 12345);
    assert_true(symint_file_crc32(fd, &crc));
    assert_int_equal(crc, crc32_z(0, data, size));
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 12345);
    free(data);
    close(fd);
}

static void a_file_that_cannot_be_read_has_no_checksum(void **state)
{
    (void)state;
    uint32_t crc;
    int fd = temporary();
    assert_int_equal(ftruncate(fd, (off_t)1 << 40),
                     0); /* sparse: all the claim, none of the bytes */
    assert_false(symint_file_crc32(fd, &crc));
    close(fd);
    assert_false(symint_file_crc32(-1, &crc));
    char path[] = "/tmp/test_debuginfo.XXXXXX";
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    int writer = open(path, O_WRONLY);
    unlink(path);
    assert_true(writer >= 0);
    assert_false(symint_file_crc32(writer, &crc));
    close(writer);
    close(fd);
}

/* ---- packed symbol files ---- */

static int unpack_image(const struct section_image *image, uint8_t **data, size_t *size,
                        const char **why)
{
    struct opened o = open_image(image);
    int rc = symint_minidebug_read(o.elf, data, size, why);
    close_image(&o);
    return rc;
}

static void a_file_without_the_section_has_no_reason_either(void **state)
{
    (void)state;
    const struct section_image images[] = {
        {.name = ".other", .data = "x", .size = 1},
        {.name = ".gnu_debugdata", .data = "x", .size = 1, .type = SHT_NOBITS},
    };
    for (size_t i = 0; i < 2; i++) {
        uint8_t *data = (uint8_t *)1;
        size_t size = 1;
        const char *why = NULL;
        assert_int_equal(unpack_image(&images[i], &data, &size, &why), 0);
        assert_null(data);
        assert_int_equal(size, 0);
        assert_string_equal(why, "");
    }
}

#ifdef SPOOL_HAVE_LZMA

/* Unpacks packed[0..size) and expects that reason. */
static void expect_reason(const void *packed, size_t size, const char *reason)
{
    uint8_t *data = (uint8_t *)1;
    size_t data_size;
    const char *why = NULL;
    struct section_image image = {.name = ".gnu_debugdata", .data = packed, .size = size};
    assert_int_equal(unpack_image(&image, &data, &data_size, &why), 0);
    assert_null(data);
    assert_string_equal(why, reason);
}

static void expect_data(const void *packed, size_t size, const void *expected, size_t expected_size)
{
    uint8_t *data;
    size_t data_size;
    const char *why = NULL;
    struct section_image image = {.name = ".gnu_debugdata", .data = packed, .size = size};
    assert_int_equal(unpack_image(&image, &data, &data_size, &why), 0);
    if (data == NULL)
        fail_msg("%s", why);
    assert_string_equal(why, "");
    assert_int_equal(data_size, expected_size);
    assert_memory_equal(data, expected, expected_size);
    free(data);
}

/* Bytes that pack to about a half, so that both sides need several rounds. */
static uint8_t *some_bytes(size_t size)
{
    uint8_t *data = malloc(size);
    uint32_t x = 1;
    assert_non_null(data);
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (uint8_t)(x >> 28);
    }
    return data;
}

static void what_xz_packed_is_unpacked(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 1000, 65535, 65536, 65537, 131072, 1000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t packed_size;
        uint8_t *data = some_bytes(sizes[i]);
        uint8_t *packed = section_image_pack(data, sizes[i], &packed_size);
        expect_data(packed, packed_size, data, sizes[i]);
        free(packed);
        free(data);
    }
}

static void a_file_behind_a_descriptor_is_unpacked(void **state)
{
    (void)state;
    size_t packed_size, image_size, size;
    uint8_t *bytes = some_bytes(100000);
    uint8_t *packed = section_image_pack(bytes, 100000, &packed_size);
    struct section_image image = {
        .name = ".gnu_debugdata", .data = packed, .size = packed_size, .narrow = true, .big = true};
    uint8_t *file = section_image_build(&image, &image_size);
    int fd = temporary();
    assert_int_equal(write(fd, file, image_size), image_size);
    struct symint_input input = {.fd = fd, .size = image_size};
    struct symint_elf *e;
    enum sym_miss miss;
    const char *why;
    uint8_t *data;
    assert_int_equal(symint_elf_open(&input, &e, &miss, &why), 0);
    assert_non_null(e);
    assert_int_equal(symint_elf_read_sections(e, &miss, &why), 0);
    assert_int_equal(symint_minidebug_read(e, &data, &size, &why), 0);
    assert_non_null(data);
    assert_int_equal(size, 100000);
    assert_memory_equal(data, bytes, size);
    free(data);
    assert_int_equal(ftruncate(fd, 1000), 0);
    assert_int_equal(symint_minidebug_read(e, &data, &size, &why), 0);
    assert_null(data);
    assert_string_equal(why, "its .gnu_debugdata cannot be read");
    symint_elf_free(e);
    close(fd);
    free(file);
    free(packed);
    free(bytes);
}

static void several_streams_are_one_file(void **state)
{
    (void)state;
    size_t one, two;
    uint8_t *first = section_image_pack("hello ", 6, &one);
    uint8_t *second = section_image_pack("world", 5, &two);
    uint8_t *both = calloc(1, one + 8 + two);
    assert_non_null(both);
    memcpy(both, first, one);
    memcpy(both + one, second, two);
    expect_data(both, one + two, "hello world", 11);
    memset(both + one, 0, 8);
    memcpy(both + one + 8, second, two);
    expect_data(both, one + 8 + two, "hello world", 11);
    memset(both + one, 'x', 8);
    expect_reason(both, one + 8 + two, "its .gnu_debugdata is damaged");
    free(both);
    free(second);
    free(first);
}

static void data_cut_at_any_byte_are_refused(void **state)
{
    (void)state;
    size_t packed_size;
    uint8_t *data = some_bytes(500);
    uint8_t *packed = section_image_pack(data, 500, &packed_size);
    for (size_t size = 0; size < packed_size; size++)
        expect_reason(packed, size, "its .gnu_debugdata is cut off");
    expect_data(packed, packed_size, data, 500);
    free(packed);
    free(data);
}

/* A few bits mean nothing to the decoder (which state it resets at the start). */
static void a_flipped_bit_never_changes_what_is_unpacked(void **state)
{
    (void)state;
    size_t packed_size;
    uint8_t *data = some_bytes(100);
    uint8_t *packed = section_image_pack(data, 100, &packed_size);
    struct section_image image = {.name = ".gnu_debugdata", .data = packed, .size = packed_size};
    size_t refused = 0;
    for (size_t bit = 0; bit < packed_size * 8; bit++) {
        uint8_t *unpacked;
        size_t size;
        const char *why;
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(unpack_image(&image, &unpacked, &size, &why), 0);
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (unpacked == NULL) {
            assert_true(why[0] != '\0');
            refused++;
            continue;
        }
        assert_int_equal(size, 100);
        assert_memory_equal(unpacked, data, size);
        free(unpacked);
    }
    assert_true(refused > packed_size * 8 * 8 / 10);
    free(packed);
    free(data);
}

static void what_is_no_xz_file_says_so(void **state)
{
    (void)state;
    const char gzip[32] = "\x1f\x8b\x08";
    const char lzma[32] = "\x5d\0\0\x80";
    expect_reason(gzip, sizeof(gzip), "its .gnu_debugdata is not an xz file");
    expect_reason(lzma, sizeof(lzma), "its .gnu_debugdata is not an xz file");
    uint8_t *data;
    size_t size;
    const char *why;
    struct section_image image = {
        .name = ".gnu_debugdata", .data = gzip, .size = sizeof(gzip), .flags = SHF_COMPRESSED};
    assert_int_equal(unpack_image(&image, &data, &size, &why), 0);
    assert_null(data);
    assert_string_equal(why, "its .gnu_debugdata is not an xz file");
}

static void an_empty_file_is_refused(void **state)
{
    (void)state;
    size_t packed_size;
    uint8_t *packed = section_image_pack("", 0, &packed_size);
    expect_reason(packed, packed_size, "its .gnu_debugdata is empty");
    free(packed);
}

static void a_section_beyond_the_file_is_refused(void **state)
{
    (void)state;
    const uint64_t claims[] = {1000, (uint64_t)1 << 40, UINT64_MAX, UINT64_MAX - 63};
    for (size_t i = 0; i < 4; i++) {
        uint8_t *data;
        size_t size;
        const char *why;
        struct section_image image = {
            .name = ".gnu_debugdata", .data = "x", .size = 1, .claimed_size = claims[i]};
        assert_int_equal(unpack_image(&image, &data, &size, &why), 0);
        assert_null(data);
        assert_string_equal(why, "its .gnu_debugdata is not inside the file");
    }
}

static void a_section_of_a_sparse_file_is_not_read_to_its_end(void **state)
{
    (void)state;
    size_t packed_size, image_size, size;
    uint8_t *packed = section_image_pack("x", 1, &packed_size);
    struct section_image image = {.name = ".gnu_debugdata",
                                  .data = packed,
                                  .size = packed_size,
                                  .claimed_size = ((uint64_t)1 << 40) - 4096};
    uint8_t *file = section_image_build(&image, &image_size);
    int fd = temporary();
    assert_int_equal(write(fd, file, image_size), image_size);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    struct symint_input input = {.fd = fd, .size = (uint64_t)1 << 40};
    struct symint_elf *e;
    enum sym_miss miss;
    const char *why;
    uint8_t *data;
    assert_int_equal(symint_elf_open(&input, &e, &miss, &why), 0);
    assert_non_null(e);
    assert_int_equal(symint_elf_read_sections(e, &miss, &why), 0);
    assert_int_equal(symint_minidebug_read(e, &data, &size, &why), 0);
    assert_null(data);
    assert_string_equal(why, "its .gnu_debugdata is larger than 256 MiB");
    symint_elf_free(e);
    close(fd);
    free(file);
    free(packed);
}

/* The block header's dictionary size, LZMA2's own way: 2 or 3 times a power of 2. */
static void set_dictionary(uint8_t *packed, uint8_t code)
{
    uint8_t *block = packed + LZMA_STREAM_HEADER_SIZE;
    size_t size = (size_t)(block[0] + 1) * 4;
    size_t at = 2;
    for (int flag = 0x40; flag <= 0x80; flag *= 2) /* sizes, of seven bits a byte */
        if ((block[1] & flag) != 0)
            while ((block[at++] & 0x80) != 0)
                ;
    assert_int_equal(block[at], 0x21); /* LZMA2, which has one byte of properties */
    block[at + 2] = code;
    uint32_t crc = (uint32_t)crc32(0, block, (uInt)size - 4);
    for (size_t i = 0; i < 4; i++)
        block[size - 4 + i] = (uint8_t)(crc >> i * 8);
}

static void the_decoder_gets_no_more_memory_than_its_limit(void **state)
{
    (void)state;
    size_t packed_size;
    uint8_t *packed = section_image_pack("hello", 5, &packed_size);
    set_dictionary(packed, 31); /* 192 MiB */
    expect_data(packed, packed_size, "hello", 5);
    for (uint8_t code = 32; code <= 40; code++) { /* 256 MiB to 4 GiB */
        set_dictionary(packed, code);
        expect_reason(packed, packed_size,
                      "unpacking its .gnu_debugdata would take too much memory");
    }
    set_dictionary(packed, 41);
    expect_reason(packed, packed_size, "its .gnu_debugdata is packed in an unknown way");
    free(packed);
}

/* 256 MiB of zeros in streams of 16 MiB are the limit, one byte more is too much. */
static void a_bomb_is_refused(void **state)
{
    (void)state;
    size_t stream_size, more_size, size;
    uint8_t *zeros = calloc(1, SYMINT_MAX_MINIDEBUG / 16);
    assert_non_null(zeros);
    uint8_t *stream = section_image_pack(zeros, SYMINT_MAX_MINIDEBUG / 16, &stream_size);
    uint8_t *more = section_image_pack(zeros, 1, &more_size);
    uint8_t *packed = malloc(stream_size * 16 + more_size);
    assert_non_null(packed);
    for (size_t i = 0; i < 16; i++)
        memcpy(packed + i * stream_size, stream, stream_size);
    memcpy(packed + 16 * stream_size, more, more_size);
    expect_reason(packed, stream_size * 16 + more_size,
                  "its .gnu_debugdata unpacks to more than 256 MiB");

    uint8_t *data;
    const char *why;
    struct section_image image = {
        .name = ".gnu_debugdata", .data = packed, .size = stream_size * 16};
    assert_true(image.size < 100000);
    assert_int_equal(unpack_image(&image, &data, &size, &why), 0);
    assert_non_null(data);
    assert_int_equal(size, SYMINT_MAX_MINIDEBUG);
    free(data);
    free(packed);
    free(more);
    free(stream);
    free(zeros);
}

static void the_feature_is_listed(void **state)
{
    (void)state;
    assert_memory_equal(sym_features(), "lzma", 4);
}

#else

static void without_liblzma_the_reason_says_so(void **state)
{
    (void)state;
    uint8_t *data = (uint8_t *)1;
    size_t size = 1;
    const char *why;
    struct section_image image = {.name = ".gnu_debugdata", .data = "x", .size = 1};
    assert_int_equal(unpack_image(&image, &data, &size, &why), 0);
    assert_null(data);
    assert_int_equal(size, 0);
    assert_string_equal(why, "it has .gnu_debugdata, and xz is not compiled in");
}

static void the_feature_is_not_listed(void **state)
{
    (void)state;
    assert_null(strstr(sym_features(), "lzma"));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_has_a_name_and_a_checksum),
        cmocka_unit_test(the_checksum_is_in_the_files_byte_order),
        cmocka_unit_test(a_name_that_leads_elsewhere_is_no_name),
        cmocka_unit_test(a_link_that_is_cut_off_is_none),
        cmocka_unit_test(a_name_may_have_255_bytes),
        cmocka_unit_test(a_link_needs_bytes_in_the_file),
        cmocka_unit_test(checksums_are_those_of_zlib),
        cmocka_unit_test(a_checksum_is_of_the_whole_file_wherever_the_descriptor_stands),
        cmocka_unit_test(a_file_that_cannot_be_read_has_no_checksum),
        cmocka_unit_test(a_file_without_the_section_has_no_reason_either),
#ifdef SPOOL_HAVE_LZMA
        cmocka_unit_test(what_xz_packed_is_unpacked),
        cmocka_unit_test(a_file_behind_a_descriptor_is_unpacked),
        cmocka_unit_test(several_streams_are_one_file),
        cmocka_unit_test(data_cut_at_any_byte_are_refused),
        cmocka_unit_test(a_flipped_bit_never_changes_what_is_unpacked),
        cmocka_unit_test(what_is_no_xz_file_says_so),
        cmocka_unit_test(an_empty_file_is_refused),
        cmocka_unit_test(a_section_beyond_the_file_is_refused),
        cmocka_unit_test(a_section_of_a_sparse_file_is_not_read_to_its_end),
        cmocka_unit_test(the_decoder_gets_no_more_memory_than_its_limit),
        cmocka_unit_test(a_bomb_is_refused),
        cmocka_unit_test(the_feature_is_listed),
#else
        cmocka_unit_test(without_liblzma_the_reason_says_so),
        cmocka_unit_test(the_feature_is_not_listed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
