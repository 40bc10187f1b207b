/* SPDX-License-Identifier: MIT */
/* Debug sections: block by block, packed, relocated; cut, damaged and hostile ones. */
#include "debug_bytes.h"
#include "elf_private.h"

#include "section_image.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef SPOOL_HAVE_ZSTD
#include <zstd.h>
#endif

#include <cmocka.h>

#if defined __SANITIZE_ADDRESS__
#define SANITIZED true
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

#define BLOCK ((uint64_t)1 << SYMINT_DEBUG_BLOCK_BITS)

/* A file with one section, opened. */
struct opened {
    uint8_t *data; /* NULL: it is behind fd */
    int fd;
    struct symint_elf *elf;
    struct symint_debug_sections s;
};

static void open_input(struct opened *o, const struct symint_input *input)
{
    enum sym_miss miss;
    const char *why = "";
    assert_int_equal(symint_elf_open(input, &o->elf, &miss, &why), 0);
    if (o->elf == NULL)
        fail_msg("not opened: %s", why);
    assert_int_equal(symint_elf_read_sections(o->elf, &miss, &why), 0);
    assert_int_equal(miss, SYM_MISS_NONE);
    assert_int_equal(symint_debug_open(o->elf, false, &o->s), 0);
}

static struct opened open_memory(const struct section_image *image)
{
    struct opened o = {.fd = -1};
    size_t size;
    o.data = section_image_build(image, &size);
    open_input(&o, &(struct symint_input){.fd = -1, .memory = o.data, .size = size});
    return o;
}

/* In a file that has no name any more. */
static struct opened open_file(const struct section_image *image)
{
    struct opened o = {0};
    size_t size;
    char path[] = "test_debug_bytes.XXXXXX";
    uint8_t *data = section_image_build(image, &size);
    o.fd = mkstemp(path);
    assert_true(o.fd >= 0);
    unlink(path);
    assert_int_equal(write(o.fd, data, size), size);
    free(data);
    open_input(&o, &(struct symint_input){.fd = o.fd, .size = size});
    return o;
}

static void close_opened(struct opened *o)
{
    symint_debug_close(&o->s);
    symint_elf_free(o->elf);
    free(o->data);
    if (o->fd >= 0)
        close(o->fd);
}

/* Bytes in which every place is different enough from the others. */
static uint8_t *make_bytes(size_t size)
{
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13 ^ i >> 16);
    return bytes;
}

static struct section_image info_image(const void *data, size_t size)
{
    return (struct section_image){.name = ".debug_info", .data = data, .size = size};
}

/* ---- plain ---- */

static void expect_same(struct opened *o, const uint8_t *bytes, uint64_t offset, uint64_t size)
{
    const uint8_t *p = symint_debug_bytes(&o->s, DEBUG_INFO, offset, size);
    assert_non_null(p);
    assert_memory_equal(p, bytes + offset, size);
}

static void any_piece_is_read(void **state)
{
    (void)state;
    size_t size = 7 * 1024 * 1024 + 333; /* several huge pages, and part of one */
    uint8_t *bytes = make_bytes(size);
    struct section_image image = info_image(bytes, size);
    for (int memory = 0; memory < 2; memory++) {
        struct opened o = memory ? open_memory(&image) : open_file(&image);
        assert_int_equal(o.s.at[DEBUG_INFO].size, size);
        assert_int_equal(o.s.resident_bytes, 0);
        expect_same(&o, bytes, size - 1, 1);
        expect_same(&o, bytes, 3 * BLOCK - 1, 2);
        expect_same(&o, bytes, 5 * BLOCK, BLOCK);
        assert_in_range(o.s.resident_bytes, 4 * BLOCK - 1 - (BLOCK - 333), 5 * BLOCK);
        uint64_t at = 12345;
        for (int i = 0; i < 300; i++) {
            at = (at * 6364136223846793005u + 1442695040888963407u);
            uint64_t offset = (at >> 20) % size;
            uint64_t most = size - offset;
            uint64_t n = (at >> 44) % (3 * BLOCK);
            expect_same(&o, bytes, offset, n < most ? n : most);
        }
        expect_same(&o, bytes, 0, size);
        assert_int_equal(o.s.resident_bytes, size);
        assert_int_equal(o.s.why[0], 0);
        close_opened(&o);
    }
    free(bytes);
}

static void what_was_read_stays_where_it_is(void **state)
{
    (void)state;
    size_t size = 4 * 1024 * 1024;
    uint8_t *bytes = make_bytes(size);
    struct section_image image = info_image(bytes, size);
    struct opened o = open_file(&image);
    const uint8_t *p = symint_debug_bytes(&o.s, DEBUG_INFO, BLOCK + 5, 100);
    for (uint64_t b = 31; b > 0; b--) /* on the way the region is read as a whole */
        expect_same(&o, bytes, b * BLOCK, 10);
    assert_memory_equal(p, bytes + BLOCK + 5, 100);
    assert_ptr_equal(symint_debug_bytes(&o.s, DEBUG_INFO, BLOCK + 5, 100), p);
    close_opened(&o);
    free(bytes);
}

static void a_look_here_and_there_takes_little_memory(void **state)
{
    (void)state;
    size_t size = 64 * 1024 * 1024;
    uint8_t *bytes = calloc(1, size);
    struct section_image image = info_image(bytes, size);
    struct opened o = open_memory(&image);
    for (uint64_t at = 0; at < size; at += 4 * 1024 * 1024)
        assert_non_null(symint_debug_bytes(&o.s, DEBUG_INFO, at, 100));
    assert_int_equal(o.s.resident_bytes, 16 * BLOCK);
    close_opened(&o);
    free(bytes);
}

static void nothing_outside_is_given_out(void **state)
{
    (void)state;
    struct section_image image = info_image("0123456789", 10);
    struct opened o = open_memory(&image);
    for (int i = 0; i < 2; i++) {
        assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 11));
        assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 11, 0));
        assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 10, 1));
        assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, UINT64_MAX, 2));
        assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 2, UINT64_MAX));
        assert_null(symint_debug_bytes(&o.s, DEBUG_LINE, 0, 0)); /* there is none */
        assert_null(symint_debug_bytes(&o.s, DEBUG_LINE, 0, 1));
        assert_non_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 10));
        assert_non_null(symint_debug_bytes(&o.s, DEBUG_INFO, 3, 0));
    }
    close_opened(&o);
}

static void what_is_given_back_can_be_read_again(void **state)
{
    (void)state;
    size_t size = 5 * 1024 * 1024;
    uint8_t *bytes = make_bytes(size);
    struct section_image image = info_image(bytes, size);
    struct opened o = open_file(&image);
    for (int i = 0; i < 3; i++) {
        expect_same(&o, bytes, 0, size);
        symint_debug_trim(&o.s, DEBUG_INFO);
        assert_int_equal(o.s.resident_bytes, 0);
        expect_same(&o, bytes, 2 * BLOCK, 7);
        assert_int_equal(o.s.resident_bytes, BLOCK);
    }
    close_opened(&o);
    free(bytes);
}

static void a_section_without_bytes_is_none(void **state)
{
    (void)state;
    struct section_image image = info_image("x", 1);
    image.type = SHT_NOBITS;
    struct opened o = open_memory(&image);
    assert_int_equal(o.s.at[DEBUG_INFO].size, 0);
    assert_string_equal(o.s.why, "");
    close_opened(&o);
}

static void a_section_beyond_the_file_says_so(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct section_image image = info_image("x", 1);
        image.claimed_size = i == 0 ? 1000000 : UINT64_MAX - 10;
        struct opened o = open_memory(&image);
        assert_int_equal(o.s.at[DEBUG_INFO].size, 0);
        assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 1));
        assert_string_equal(o.s.why, "a debug section is not inside the file");
        close_opened(&o);
    }
}

static void a_file_that_shrinks_fails_the_section(void **state)
{
    (void)state;
    size_t size = 6 * BLOCK;
    uint8_t *bytes = make_bytes(size);
    struct section_image image = info_image(bytes, size);
    struct opened o = open_file(&image);
    expect_same(&o, bytes, 0, 10);
    assert_int_equal(ftruncate(o.fd, 3 * BLOCK), 0);
    assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 4 * BLOCK, 10));
    assert_string_equal(o.s.why, "a debug section is cut off");
    assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 10));
    close_opened(&o);
    free(bytes);
}

static void a_file_that_cannot_be_read_fails_the_section(void **state)
{
    (void)state;
    struct section_image image = info_image("0123456789", 10);
    struct opened o = open_file(&image);
    int closed = o.elf->input.fd;
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(dup2(nothing, closed), closed);
    close(nothing);
    assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 10));
    assert_string_equal(o.s.why, "a debug section cannot be read");
    assert_int_equal(o.s.error, EBADF);
    close_opened(&o);
}

static void a_hole_is_not_read(void **state)
{
    (void)state;
    struct section_image image = info_image("x", 1);
    image.claimed_size = (uint64_t)1 << 40;
    size_t size;
    struct opened o = {.fd = -1, .data = section_image_build(&image, &size)};
    open_input(&o,
               &(struct symint_input){
                   .fd = -1, .memory = o.data, .size = (uint64_t)1 << 41, .stored_bytes = size});
    assert_string_equal(o.s.why, "a debug section is missing: the file has a hole there");
    assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 1 << 20, 10));
    close_opened(&o);
}

static void a_section_that_address_space_is_too_small_for_fails(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("a sanitizer's own memory leaves no address space to limit\n");
        skip();
    }
    struct section_image image = info_image("x", 1);
    image.claimed_size = (uint64_t)1 << 40;
    size_t size;
    struct rlimit before;
    struct opened o = {.fd = -1, .data = section_image_build(&image, &size)};
    open_input(&o, &(struct symint_input){.fd = -1, .memory = o.data, .size = (uint64_t)1 << 41});
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit small = {.rlim_cur = (rlim_t)1 << 36, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    const uint8_t *p = symint_debug_bytes(&o.s, DEBUG_INFO, 0, 10);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_null(p);
    assert_string_equal(o.s.why, "no memory for a debug section");
    close_opened(&o);
}

/* ---- texts ---- */

static void a_text_may_cross_blocks(void **state)
{
    (void)state;
    size_t size = 40 * BLOCK;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, 'a', size);
    bytes[10] = '\0';
    bytes[BLOCK - 1] = '\0';
    bytes[BLOCK + 20] = '\0';
    bytes[5 * BLOCK] = '\0';
    bytes[15 * BLOCK] = '\0';
    struct section_image image = {.name = ".debug_str", .data = bytes, .size = size};
    struct opened o = open_file(&image);
    const uint64_t cases[][2] = {{0, 10},
                                 {10, 0},
                                 {11, BLOCK - 12},
                                 {BLOCK - 5, 4},
                                 {BLOCK, 20},
                                 {2 * BLOCK - 3, 3 * BLOCK + 3},
                                 {5 * BLOCK + 1, 10 * BLOCK - 1},
                                 {15 * BLOCK, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n = 99;
        const char *text = symint_debug_text(&o.s, DEBUG_STR, cases[i][0], &n);
        assert_non_null(text);
        assert_int_equal(n, cases[i][1]);
        assert_memory_equal(text, bytes + cases[i][0], n + 1);
    }
    close_opened(&o);
    free(bytes);
}

static void a_text_without_an_end_is_none(void **state)
{
    (void)state;
    size_t n;
    struct section_image image = {.name = ".debug_str", .data = "abc\0def", .size = 7};
    struct opened o = open_memory(&image);
    assert_non_null(symint_debug_text(&o.s, DEBUG_STR, 1, &n));
    assert_null(symint_debug_text(&o.s, DEBUG_STR, 4, &n));
    assert_null(symint_debug_text(&o.s, DEBUG_STR, 7, &n));
    assert_null(symint_debug_text(&o.s, DEBUG_STR, UINT64_MAX, &n));
    assert_null(symint_debug_text(&o.s, DEBUG_LINE_STR, 0, &n));
    close_opened(&o);

    size_t size = SYMINT_MAX_DEBUG_TEXT + 10;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, 'a', size);
    bytes[size - 1] = '\0';
    image = (struct section_image){.name = ".debug_str", .data = bytes, .size = size};
    o = open_memory(&image);
    assert_null(symint_debug_text(&o.s, DEBUG_STR, 9, &n));
    assert_non_null(symint_debug_text(&o.s, DEBUG_STR, 10, &n));
    assert_int_equal(n, SYMINT_MAX_DEBUG_TEXT - 1);
    close_opened(&o);
    free(bytes);
}

/* ---- packed ---- */

/* A packed section with its head. `type` 0: the older one. */
struct packing {
    uint32_t type;
    bool narrow;
    bool big;
    size_t head;
    uint8_t *data;
    size_t size;
};

static void put_head(struct packing *p, uint64_t claim)
{
    struct section_image order = {.big = p->big};
    unsigned word = p->narrow ? 4 : 8;
    uint8_t *to = p->data;
    if (p->type == 0) {
        order.big = true;
        memcpy(to, "ZLIB", 4);
        section_image_put(&order, to + 4, claim, 8);
        return;
    }
    to = section_image_put(&order, to, p->type, 4);
    to = p->narrow ? to : section_image_put(&order, to, 0, 4);
    to = section_image_put(&order, to, claim, word);
    section_image_put(&order, to, 1, word);
}

static void pack(struct packing *p, const void *bytes, size_t size)
{
    p->head = p->type == 0 || p->narrow ? 12 : 24;
    size_t room = p->head + size + size / 100 + 1024;
    p->data = malloc(room);
    assert_non_null(p->data);
    put_head(p, size);
    if (p->type != 2) {
        uLongf n = room - p->head;
        assert_int_equal(compress(p->data + p->head, &n, bytes, size), Z_OK);
        p->size = p->head + n;
        return;
    }
#ifdef SPOOL_HAVE_ZSTD
    size_t n = ZSTD_compress(p->data + p->head, room - p->head, bytes, size, 1);
    assert_false(ZSTD_isError(n));
    p->size = p->head + n;
#endif
}

static struct opened open_packed(const struct packing *p, size_t size)
{
    struct section_image image = {.name = p->type == 0 ? ".zdebug_info" : ".debug_info",
                                  .data = p->data,
                                  .size = size,
                                  .flags = p->type == 0 ? 0 : SHF_COMPRESSED,
                                  .narrow = p->narrow,
                                  .big = p->big};
    return open_memory(&image);
}

/* That of `size` bytes of the packed section these bytes come out, or if NULL nothing, with a reason. */
static void expect_unpacked(const struct packing *p, size_t size, const uint8_t *bytes, size_t n)
{
    struct opened o = open_packed(p, size);
    const uint8_t *got = symint_debug_bytes(&o.s, DEBUG_INFO, 0, n);
    if (bytes == NULL) {
        assert_null(got);
        assert_true(o.s.at[DEBUG_INFO].failed);
        assert_true(o.s.why[0] != '\0');
        assert_int_equal(o.s.resident_bytes, 0);
    } else {
        assert_non_null(got);
        assert_memory_equal(got, bytes, n);
        assert_int_equal(o.s.at[DEBUG_INFO].size, n);
        assert_int_equal(o.s.resident_bytes, n);
        symint_debug_trim(&o.s, DEBUG_INFO);
        assert_ptr_equal(symint_debug_bytes(&o.s, DEBUG_INFO, 0, n), got);
    }
    close_opened(&o);
}

static const uint32_t types[] = {0, 1,
#ifdef SPOOL_HAVE_ZSTD
                                 2
#endif
};
#define TYPES (sizeof(types) / sizeof(types[0]))

static void packed_sections_become_the_same_bytes(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 1000, BLOCK, 3 * 1024 * 1024 + 1};
    for (size_t t = 0; t < TYPES; t++) {
        for (unsigned kind = 0; kind < 4; kind++) {
            for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                uint8_t *bytes = make_bytes(sizes[i]);
                struct packing p = {.type = types[t], .narrow = kind & 1, .big = kind & 2};
                pack(&p, bytes, sizes[i]);
                expect_unpacked(&p, p.size, bytes, sizes[i]);
                free(p.data);
                free(bytes);
            }
        }
    }
}

static void packed_data_cut_anywhere_are_refused(void **state)
{
    (void)state;
    uint8_t *bytes = make_bytes(500);
    for (size_t t = 0; t < TYPES; t++) {
        struct packing p = {.type = types[t]};
        pack(&p, bytes, 500);
        for (size_t cut = 1; cut < p.size; cut++)
            expect_unpacked(&p, cut, NULL, 1);
        free(p.data);
    }
    free(bytes);
}

static void another_size_than_claimed_is_damage(void **state)
{
    (void)state;
    uint8_t *bytes = make_bytes(5000);
    const uint64_t claims[] = {
        1, 4999, 5001, 50000, 1u << 20, UINT32_MAX, (uint64_t)1 << 33, UINT64_MAX};
    for (size_t t = 0; t < TYPES; t++) {
        struct packing p = {.type = types[t]};
        pack(&p, bytes, 5000);
        for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
            put_head(&p, claims[i]);
            expect_unpacked(&p, p.size, NULL, 1);
        }
        free(p.data);
    }
    free(bytes);
}

static void a_flipped_bit_never_crashes(void **state)
{
    (void)state;
    uint8_t *bytes = make_bytes(300);
    for (size_t t = 0; t < TYPES; t++) {
        struct packing p = {.type = types[t]};
        pack(&p, bytes, 300);
        for (size_t bit = 0; bit < p.size * 8; bit++) {
            p.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            struct opened o = open_packed(&p, p.size);
            const uint8_t *got = symint_debug_bytes(&o.s, DEBUG_INFO, 0, 300);
            /* zlib has a checksum; its head and ours have bits that mean nothing. */
            if (got != NULL && types[t] != 2)
                assert_memory_equal(got, bytes, 300);
            assert_true(got != NULL || o.s.why[0] != '\0' || o.s.at[DEBUG_INFO].size < 300);
            close_opened(&o);
            p.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        free(p.data);
    }
    free(bytes);
}

static void streams_behind_each_other_are_one_section(void **state)
{
    (void)state;
    uint8_t *bytes = make_bytes(2000);
    for (size_t t = 0; t < TYPES; t++) {
        struct packing p = {.type = types[t]};
        struct packing more = {.type = types[t]};
        pack(&p, bytes, 1200);
        pack(&more, bytes + 1200, 800);
        p.data = realloc(p.data, p.size + more.size);
        assert_non_null(p.data);
        memcpy(p.data + p.size, more.data + more.head, more.size - more.head);
        p.size += more.size - more.head;
        expect_unpacked(&p, p.size, NULL, 1); /* more than the head claims */
        put_head(&p, 2000);
        expect_unpacked(&p, p.size, bytes, 2000);
        free(p.data);
        free(more.data);
    }
    free(bytes);
}

static void an_unknown_packing_says_so(void **state)
{
    (void)state;
    struct packing p = {.type = 1};
    pack(&p, "0123456789", 10);
    p.data[0] = 77;
    struct opened o = open_packed(&p, p.size);
    assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 1));
    assert_string_equal(o.s.why, "a debug section is packed in an unknown way");
    close_opened(&o);
    free(p.data);
}

#ifdef SPOOL_HAVE_ZSTD

static void a_bomb_is_refused(void **state)
{
    (void)state;
    size_t size = 64 * 1024 * 1024;
    uint8_t *zeros = calloc(1, size);
    assert_non_null(zeros);
    struct packing p = {.type = 2};
    pack(&p, zeros, size);
    assert_in_range(p.size, 1, 16384);
    struct opened o = open_packed(&p, p.size);
    assert_string_equal(o.s.why, "a packed debug section claims more than its bytes can be");
    assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 1));
    close_opened(&o);
    put_head(&p, 1024 * 1024); /* a claim that is granted stops it */
    expect_unpacked(&p, p.size, NULL, 1);
    free(p.data);
    pack(&p, zeros, 8 * 1024 * 1024); /* as sections are before their relocation */
    expect_unpacked(&p, p.size, zeros, 8 * 1024 * 1024);
    free(p.data);
    free(zeros);
}

static void zstd_is_listed(void **state)
{
    (void)state;
    assert_non_null(strstr(sym_features(), "zstd"));
}

#else

static void without_zstd_the_reason_says_so(void **state)
{
    (void)state;
    struct packing p = {.type = 1};
    pack(&p, "0123456789", 10);
    p.data[0] = 2;
    struct opened o = open_packed(&p, p.size);
    assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 1));
    assert_string_equal(o.s.why, "its debug sections are packed by zstd, which is not compiled in");
    assert_null(strstr(sym_features(), "zstd"));
    close_opened(&o);
    free(p.data);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_piece_is_read),
        cmocka_unit_test(what_was_read_stays_where_it_is),
        cmocka_unit_test(a_look_here_and_there_takes_little_memory),
        cmocka_unit_test(nothing_outside_is_given_out),
        cmocka_unit_test(what_is_given_back_can_be_read_again),
        cmocka_unit_test(a_section_without_bytes_is_none),
        cmocka_unit_test(a_section_beyond_the_file_says_so),
        cmocka_unit_test(a_file_that_shrinks_fails_the_section),
        cmocka_unit_test(a_file_that_cannot_be_read_fails_the_section),
        cmocka_unit_test(a_hole_is_not_read),
        cmocka_unit_test(a_section_that_address_space_is_too_small_for_fails),
        cmocka_unit_test(a_text_may_cross_blocks),
        cmocka_unit_test(a_text_without_an_end_is_none),
        cmocka_unit_test(packed_sections_become_the_same_bytes),
        cmocka_unit_test(packed_data_cut_anywhere_are_refused),
        cmocka_unit_test(another_size_than_claimed_is_damage),
        cmocka_unit_test(a_flipped_bit_never_crashes),
        cmocka_unit_test(streams_behind_each_other_are_one_section),
        cmocka_unit_test(an_unknown_packing_says_so),
#ifdef SPOOL_HAVE_ZSTD
        cmocka_unit_test(a_bomb_is_refused),
        cmocka_unit_test(zstd_is_listed),
#else
        cmocka_unit_test(without_zstd_the_reason_says_so),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
