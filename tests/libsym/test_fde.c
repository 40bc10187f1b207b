/* SPDX-License-Identifier: MIT */
/* Function ranges from .eh_frame: every way to write them, and sections that lie. */
#include "eh_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct eh_style usual = {.encoding = 0x1b};

static struct symint_fdes read_input(const struct symint_input *input)
{
    struct symint_elf *e;
    struct symint_fdes fdes = {0};
    enum sym_miss miss;
    const char *why = "";
    assert_int_equal(symint_elf_open(input, &e, &miss, &why), 0);
    if (e == NULL)
        return fdes;
    assert_int_equal(symint_elf_read_sections(e, &miss, &why), 0);
    assert_int_equal(symint_fdes_read(e, &fdes), 0);
    symint_elf_free(e);
    return fdes;
}

/* Frees the frames. */
static struct symint_fdes read_frames(const struct eh_file *f, struct image_buffer *frames)
{
    size_t size;
    uint8_t *data = eh_build(f, frames, &size);
    struct symint_fdes fdes =
        read_input(&(struct symint_input){.fd = -1, .memory = data, .size = size});
    free(data);
    free(frames->data);
    return fdes;
}

struct range {
    uint64_t start;
    uint64_t size;
};

/* Frees the ranges. */
static void check(struct symint_fdes *fdes, const struct range *want, size_t count,
                  const char *what)
{
    if (fdes->count != count)
        fail_msg("%s: %zu ranges instead of %zu", what, fdes->count, count);
    for (size_t i = 0; i < count; i++)
        if (fdes->start[i] != want[i].start || fdes->end[i] != want[i].start + want[i].size)
            fail_msg("%s: [%llx, %llx) instead of [%llx, %llx)", what,
                     (unsigned long long)fdes->start[i], (unsigned long long)fdes->end[i],
                     (unsigned long long)want[i].start,
                     (unsigned long long)(want[i].start + want[i].size));
    symint_fdes_free(fdes);
}

#define CHECK(fdes, what, ...)                      \
    do {                                            \
        const struct range want_[] = {__VA_ARGS__}; \
        struct symint_fdes fdes_ = (fdes);          \
        check(&fdes_, want_, COUNT(want_), what);   \
    } while (0)

static void check_none(struct symint_fdes fdes, const char *what)
{
    check(&fdes, NULL, 0, what);
}

/* Two functions and a terminator in one style. */
static struct image_buffer two_functions(const struct eh_file *f, const struct eh_style *s)
{
    struct image_buffer b = eh_begin(f, 0x1000);
    size_t cie = eh_cie(&b, s);
    eh_fde(&b, f, s, cie, EH_TEXT, 0x30);
    eh_fde(&b, f, s, cie, EH_TEXT + 0x40, 0x9);
    image_put(&b, 0, 4);
    return b;
}

/* All classes and byte orders. */
#define FOR_ALL_KINDS(f) \
    for (int kind = 0; kind < 4; kind++, (f).narrow = kind & 1, (f).big = kind >> 1 & 1)

static void every_encoding_is_read(void **state)
{
    (void)state;
    static const struct {
        uint8_t encoding;
        bool negative; /* can be written with a negative distance */
    } cases[] = {
        {0x00, true},  {0x01, false}, {0x02, false}, {0x03, true},  {0x04, true},  {0x08, true},
        {0x09, true},  {0x0a, false}, {0x0b, true},  {0x0c, true},  {0x10, true},  {0x11, false},
        {0x12, false}, {0x13, false}, {0x14, true},  {0x18, true},  {0x19, true},  {0x1a, true},
        {0x1b, true},  {0x1c, true},  {0x30, true},  {0x31, false}, {0x32, false}, {0x33, true},
        {0x34, true},  {0x38, true},  {0x39, true},  {0x3a, true},  {0x3b, true},  {0x3c, true},
        {0x50, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct eh_file f = {.vaddr = EH_BELOW};
        FOR_ALL_KINDS(f)
        {
            for (int above = 0; above <= (int)cases[i].negative; above++) {
                char what[64];
                struct eh_style s = {.encoding = cases[i].encoding};
                f.vaddr = above ? EH_ABOVE : EH_BELOW;
                snprintf(what, sizeof(what), "encoding %02x, kind %d, at %x", s.encoding, kind,
                         (unsigned)f.vaddr);
                struct image_buffer b = two_functions(&f, &s);
                CHECK(read_frames(&f, &b), what, {EH_TEXT, 0x30}, {EH_TEXT + 0x40, 0x9});
            }
        }
    }
}

static void an_aligned_start_may_follow_a_gap(void **state)
{
    (void)state;
    struct eh_file f = {0};
    FOR_ALL_KINDS(f)
    {
        for (f.vaddr = EH_BELOW; f.vaddr < EH_BELOW + 9; f.vaddr++) {
            struct eh_style s = {.encoding = 0x50};
            struct image_buffer b = two_functions(&f, &s);
            CHECK(read_frames(&f, &b), "aligned", {EH_TEXT, 0x30}, {EH_TEXT + 0x40, 0x9});
        }
    }
}

static void encodings_that_a_file_cannot_answer_are_left_out(void **state)
{
    (void)state;
    static const uint8_t cases[] = {0x80, 0x9b, 0xd0, 0x23, 0x2b, 0x43, 0x4b, 0xff, 0x05, 0x06,
                                    0x07, 0x0d, 0x0e, 0x0f, 0x1d, 0x51, 0x5b, 0x60, 0x7b};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct eh_file f = {.vaddr = EH_BELOW};
        struct eh_style s = {.encoding = cases[i]};
        char what[64];
        snprintf(what, sizeof(what), "encoding %02x", cases[i]);
        struct image_buffer b = two_functions(&f, &s);
        size_t cie = eh_cie(&b, &usual); /* the others are read */
        eh_fde(&b, &f, &usual, cie, EH_TEXT + 0x100, 1);
        CHECK(read_frames(&f, &b), what, {EH_TEXT + 0x100, 1});
    }
    struct eh_file f = {.vaddr = EH_BELOW, .no_got = true};
    struct eh_style s = {.encoding = 0x3b};
    struct image_buffer b = two_functions(&f, &s);
    check_none(read_frames(&f, &b), "datarel without DT_PLTGOT");
    b = eh_begin(&f, 0x1000);
    size_t cie = eh_cie(&b, &s);
    eh_fde(&b, &f, &s, cie, EH_TEXT + EH_GOT, 1); /* code if the base were 0 */
    check_none(read_frames(&f, &b), "datarel to nothing");
}

/* A CIE with this version, augmentation and augmentation data (an 'A' stands for a fill up to a
 * word), then one function, absolute unless `encoding` says else. */
static struct symint_fdes with_cie(const struct eh_file *f, unsigned version, const char *letters,
                                   const uint8_t *bytes, size_t count, uint8_t encoding)
{
    struct eh_style s = {.encoding = encoding};
    struct image_buffer b = eh_begin(f, 0x1000);
    size_t at = eh_entry_begin(&b, &s);
    image_put(&b, 0, 4);
    image_put(&b, version, 1);
    eh_text(&b, letters);
    if (version == 4) {
        image_put(&b, f->narrow ? 4 : 8, 1);
        image_put(&b, 0, 1);
    }
    if (strcmp(letters, "eh") == 0)
        image_word(&b, 0x8888);
    eh_leb(&b, 1, false);
    eh_leb(&b, (uint64_t)-300, true); /* two bytes */
    if (version == 1)
        image_put(&b, 0xff, 1); /* one byte, however it looks */
    else
        eh_leb(&b, 255, false);
    if (letters[0] == 'z')
        eh_leb(&b, count, false);
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == 'A')
            while ((f->vaddr + b.size) % (f->narrow ? 4 : 8) != 0)
                b.data[b.size++] = 0x77;
        else
            b.data[b.size++] = bytes[i];
    }
    eh_entry_end(&b, &s, at);
    eh_fde(&b, f, &s, at, EH_TEXT + 8, 5);
    return read_frames(f, &b);
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void augmentations_are_understood(void **state)
{
    (void)state;
    const struct eh_file f = {.vaddr = EH_ABOVE};
    const struct eh_file narrow = {.vaddr = EH_ABOVE, .narrow = true};
    const struct range r = {EH_TEXT + 8, 5};
    CHECK(with_cie(&f, 1, "", NULL, 0, 0), "none", r);
    CHECK(with_cie(&f, 3, "", NULL, 0, 0), "version 3", r);
    CHECK(with_cie(&f, 4, "", NULL, 0, 0), "version 4", r);
    CHECK(with_cie(&narrow, 4, "", NULL, 0, 0), "version 4, narrow", r);
    CHECK(with_cie(&f, 1, "eh", NULL, 0, 0), "eh", r);
    CHECK(with_cie(&narrow, 1, "eh", NULL, 0, 0), "eh, narrow", r);
    CHECK(with_cie(&f, 1, "z", NULL, 0, 0), "z", r);
    CHECK(with_cie(&f, 1, "zR", BYTES(0x1b), 0x1b), "zR", r);
    CHECK(with_cie(&f, 3, "zR", BYTES(0x1c), 0x1c), "zR, version 3", r);
    CHECK(with_cie(&f, 1, "zSR", BYTES(0x1b), 0x1b), "zSR", r);
    CHECK(with_cie(&f, 1, "zRS", BYTES(0x1b), 0x1b), "zRS", r);
    CHECK(with_cie(&f, 1, "zBGR", BYTES(0x1b), 0x1b), "zBGR", r);
    CHECK(with_cie(&f, 1, "zLR", BYTES(0x1b, 0x0b), 0x0b), "zLR", r);
    CHECK(with_cie(&f, 1, "zL", BYTES(0x1b), 0), "zL", r);
    CHECK(with_cie(&f, 1, "zPLR", BYTES(0x9b, 1, 2, 3, 4, 0x1b, 0x1b), 0x1b), "P 9b", r);
    CHECK(with_cie(&f, 1, "zPLR", BYTES(0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0x1b), 0x1b), "P 0", r);
    CHECK(with_cie(&narrow, 1, "zPLR", BYTES(0x00, 1, 2, 3, 4, 0xff, 0x1b), 0x1b), "P 0, narrow",
          r);
    CHECK(with_cie(&f, 1, "zPR", BYTES(0x02, 1, 2, 0x1b), 0x1b), "P 2", r);
    CHECK(with_cie(&f, 1, "zPR", BYTES(0x0c, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b), 0x1b), "P c", r);
    CHECK(with_cie(&f, 1, "zPR", BYTES(0x01, 0x81, 0x82, 3, 0x1b), 0x1b), "P leb", r);
    CHECK(with_cie(&f, 1, "zPR", BYTES(0x50, 'A', 1, 2, 3, 4, 5, 6, 7, 8, 0x1b), 0x1b), "P 50", r);
    CHECK(with_cie(&narrow, 1, "zPR", BYTES(0x50, 'A', 1, 2, 3, 4, 0x1b), 0x1b), "P 50, narrow", r);
    CHECK(with_cie(&f, 1, "zRX", BYTES(0x1b, 9), 0x1b), "unknown behind R", r);
    check_none(with_cie(&f, 1, "zXR", BYTES(0x1b, 0x1b), 0x1b), "unknown before R");
    check_none(with_cie(&f, 1, "armcc+", NULL, 0, 0), "unknown");
    check_none(with_cie(&f, 1, "zPR", BYTES(0xff, 0x1b), 0x1b), "P omitted");
    check_none(with_cie(&f, 1, "zPR", BYTES(0x05, 0x1b), 0x1b), "P of no format");
    check_none(with_cie(&f, 0, "zR", BYTES(0x1b), 0x1b), "version 0");
    check_none(with_cie(&f, 2, "zR", BYTES(0x1b), 0x1b), "version 2");
    check_none(with_cie(&f, 5, "zR", BYTES(0x1b), 0x1b), "version 5");
}

static void a_long_length_goes_with_short_and_long_ids(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_BELOW};
    FOR_ALL_KINDS(f)
    {
        for (unsigned id_bytes = 4; id_bytes <= 8; id_bytes += 4) {
            struct eh_style s = {.encoding = 0x1b, .long_length = true, .id_bytes = id_bytes};
            struct image_buffer b = two_functions(&f, &s);
            CHECK(read_frames(&f, &b), "long", {EH_TEXT, 0x30}, {EH_TEXT + 0x40, 0x9});
        }
        /* An entry each of one kind with the other's CIE. */
        const struct eh_style mixed = {.encoding = 0x1b, .long_length = true};
        struct image_buffer b = eh_begin(&f, 0x1000);
        size_t cie = eh_cie(&b, &usual);
        eh_fde(&b, &f, &mixed, cie, EH_TEXT, 1);
        size_t long_cie = eh_cie(&b, &mixed);
        eh_fde(&b, &f, &usual, long_cie, EH_TEXT + 1, 1);
        eh_fde(&b, &f, &usual, cie, EH_TEXT + 2, 1);
        CHECK(read_frames(&f, &b), "mixed", {EH_TEXT, 1}, {EH_TEXT + 1, 1}, {EH_TEXT + 2, 1});
    }
}

static void ranges_that_are_not_code_are_dropped(void **state)
{
    (void)state;
    static const uint8_t encodings[] = {0x00, 0x1b, 0x1c};
    for (size_t i = 0; i < COUNT(encodings); i++) {
        struct eh_file f = {.vaddr = EH_BELOW};
        FOR_ALL_KINDS(f)
        {
            struct eh_style s = {.encoding = encodings[i]};
            struct image_buffer b = eh_begin(&f, 0x1000);
            size_t cie = eh_cie(&b, &s);
            eh_fde(&b, &f, &s, cie, EH_TEXT - 1, 8);
            eh_fde(&b, &f, &s, cie, EH_TEXT + EH_TEXT_SIZE, 8);
            eh_fde(&b, &f, &s, cie, EH_TEXT + EH_TEXT_SIZE - 8, 9);
            eh_fde(&b, &f, &s, cie, EH_TEXT + 0x10, 0);
            eh_fde(&b, &f, &s, cie, EH_TEXT + 0x20, UINT64_MAX - 0x10);
            eh_fde(&b, &f, &s, cie, EH_TEXT + 0x20, (uint64_t)0 - (EH_TEXT + 0x20));
            for (uint64_t start = 0; start < 4; start++) {
                eh_fde(&b, &f, &s, cie, start - 2, 8);
                eh_fde(&b, &f, &s, cie, start - 2, (uint64_t)0 - start);
            }
            eh_fde(&b, &f, &s, cie, EH_TEXT + EH_TEXT_SIZE - 8, 8);
            for (int by_segment = 0; by_segment < 2; by_segment++) {
                struct image_buffer copy = eh_begin(&f, b.size);
                memcpy(copy.data, b.data, b.size);
                copy.size = b.size;
                f.no_sections = by_segment != 0;
                CHECK(read_frames(&f, &copy), "not code", {EH_TEXT + EH_TEXT_SIZE - 8, 8});
            }
            f.no_sections = false;
            free(b.data);
        }
    }
}

static void tombstones_are_none_even_where_code_is_at_0(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_BELOW, .text = 1}; /* code from 0 on */
    struct eh_style s = {.encoding = 0x00};
    struct image_buffer b = eh_begin(&f, 0x1000);
    size_t cie = eh_cie(&b, &s);
    for (uint64_t start = 0; start < 4; start++)
        eh_fde(&b, &f, &s, cie, start, 8);
    CHECK(read_frames(&f, &b), "code at 0", {2, 8}, {3, 8});
    /* Code up to the end of the address space. */
    f.text = (uint64_t)0 - EH_TEXT_SIZE + 1;
    b = eh_begin(&f, 0x1000);
    cie = eh_cie(&b, &s);
    for (uint64_t back = 4; back > 0; back--)
        eh_fde(&b, &f, &s, cie, (uint64_t)0 - back, 1);
    CHECK(read_frames(&f, &b), "code to the end", {(uint64_t)-4, 1}, {(uint64_t)-3, 1});
    f.narrow = true;
    f.text = 0x100000000 - EH_TEXT_SIZE + 1;
    b = eh_begin(&f, 0x1000);
    cie = eh_cie(&b, &s);
    for (uint64_t back = 4; back > 0; back--)
        eh_fde(&b, &f, &s, cie, (uint64_t)0 - back, 1);
    CHECK(read_frames(&f, &b), "narrow", {0xfffffffc, 1}, {0xfffffffd, 1});
}

/* What bfd leaves of an entry whose function it removed: a distance of 0. */
static void a_distance_of_0_is_no_start(void **state)
{
    (void)state;
    static const uint8_t encodings[] = {0x1b, 0x1c, 0x10};
    for (size_t i = 0; i < COUNT(encodings); i++) {
        /* Code that .eh_frame lies in, so that its own address would do. */
        struct eh_file f = {.vaddr = EH_TEXT + 0x800};
        struct eh_style s = {.encoding = encodings[i]};
        struct image_buffer b = eh_begin(&f, 0x1000);
        size_t cie = eh_cie(&b, &s);
        eh_fde(&b, &f, &s, cie, EH_TEXT, 8);
        eh_fde(&b, &f, &s, cie, f.vaddr + b.size + 8, 8);
        eh_fde(&b, &f, &s, cie, EH_TEXT + 0x10, 8);
        CHECK(read_frames(&f, &b), "distance 0", {EH_TEXT, 8}, {EH_TEXT + 0x10, 8});
    }
}

static void starts_come_sorted_and_once(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE};
    struct image_buffer b = eh_begin(&f, 0x4000);
    size_t cie = eh_cie(&b, &usual);
    struct range want[100];
    for (size_t i = 0; i < COUNT(want); i++) {
        size_t k = i * 37 % COUNT(want);
        uint64_t start = EH_TEXT + 16 * k;
        want[k] = (struct range){start, k % 3 == 0 ? 5 : 2};
        eh_fde(&b, &f, &usual, cie, start, 2);
        if (k % 3 == 0) {
            eh_fde(&b, &f, &usual, cie, start, 5);
            eh_fde(&b, &f, &usual, cie, start, 3);
        }
    }
    struct symint_fdes fdes = read_frames(&f, &b);
    assert_int_equal(symint_fdes_end(&fdes, EH_TEXT), EH_TEXT + 5);
    assert_int_equal(symint_fdes_end(&fdes, EH_TEXT + 16), EH_TEXT + 18);
    assert_int_equal(symint_fdes_end(&fdes, EH_TEXT + 17), 0);
    assert_int_equal(symint_fdes_end(&fdes, EH_TEXT - 1), 0);
    assert_int_equal(symint_fdes_end(&fdes, EH_TEXT + 99 * 16), EH_TEXT + 99 * 16 + 5);
    assert_int_equal(symint_fdes_end(&fdes, EH_TEXT + 100 * 16), 0);
    for (size_t i = 0; i < COUNT(want); i++)
        assert_int_equal(symint_fdes_end(&fdes, want[i].start), want[i].start + want[i].size);
    check(&fdes, want, COUNT(want), "sorted");
    assert_int_equal(symint_fdes_end(&fdes, EH_TEXT), 0);
}

static void entries_go_on_behind_a_terminator(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE};
    struct image_buffer b = eh_begin(&f, 0x1000);
    size_t cie = eh_cie(&b, &usual);
    eh_fde(&b, &f, &usual, cie, EH_TEXT, 1);
    image_put(&b, 0, 4);
    eh_fde(&b, &f, &usual, cie, EH_TEXT + 1, 1);
    image_put(&b, 0, 8);
    cie = eh_cie(&b, &usual);
    image_put(&b, 0, 4);
    eh_fde(&b, &f, &usual, cie, EH_TEXT + 2, 1);
    image_put(&b, 0, 4);
    CHECK(read_frames(&f, &b), "terminators", {EH_TEXT, 1}, {EH_TEXT + 1, 1}, {EH_TEXT + 2, 1});
}

static void a_terminator_before_something_else_ends_the_section(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE};
    struct eh_style words = {.encoding = 0x00};
    struct image_buffer b = eh_begin(&f, 0x1000);
    size_t cie = eh_cie(&b, &usual);
    eh_fde(&b, &f, &usual, cie, EH_TEXT, 1);
    image_put(&b, 0, 4);
    image_put(&b, 12, 4); /* looks like an entry whose CIE is none */
    image_put(&b, 6, 4);
    image_put(&b, 0, 8);
    eh_fde(&b, &f, &usual, cie, EH_TEXT + 1, 1); /* so this is chance */
    CHECK(read_frames(&f, &b), "something else", {EH_TEXT, 1});
    /* But a damaged entry among others hides only itself. */
    b = eh_begin(&f, 0x1000);
    cie = eh_cie(&b, &words);
    eh_fde(&b, &f, &words, cie, EH_TEXT, 1);
    size_t broken = eh_fde(&b, &f, &words, cie, EH_TEXT + 1, 1);
    eh_fde(&b, &f, &words, cie, EH_TEXT + 2, 1);
    b.data[broken + 5] = 0x77;
    CHECK(read_frames(&f, &b), "damaged", {EH_TEXT, 1}, {EH_TEXT + 2, 1});
}

static void a_file_may_have_two_such_sections(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE, .type = SHT_X86_64_UNWIND};
    struct image_buffer b = eh_begin(&f, 0x1000);
    size_t cie = eh_cie(&b, &usual);
    eh_fde(&b, &f, &usual, cie, EH_TEXT + 0x10, 1);
    size_t split = b.size;
    cie = eh_cie(&b, &usual);
    eh_fde(&b, &f, &usual, cie, EH_TEXT, 1);
    f.split = split;
    CHECK(read_frames(&f, &b), "two sections", {EH_TEXT, 1}, {EH_TEXT + 0x10, 1});
}

static void a_debug_file_has_none(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE, .type = SHT_NOBITS};
    struct image_buffer b = two_functions(&f, &usual);
    check_none(read_frames(&f, &b), "SHT_NOBITS");
}

static void a_relocatable_file_has_none(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE, .no_segments = true};
    struct image_buffer b = two_functions(&f, &usual);
    check_none(read_frames(&f, &b), "ET_REL");
}

static void the_header_finds_them_without_sections(void **state)
{
    (void)state;
    static const uint8_t encodings[] = {0x00, 0x03, 0x1b, 0x1c, 0x3b, 0x0b, 0x11};
    for (size_t i = 0; i < COUNT(encodings); i++) {
        struct eh_file f = {
            .vaddr = EH_ABOVE, .no_sections = true, .header_encoding = encodings[i]};
        FOR_ALL_KINDS(f)
        {
            char what[64];
            snprintf(what, sizeof(what), "header encoding %02x, kind %d", encodings[i], kind);
            struct image_buffer b = two_functions(&f, &usual);
            CHECK(read_frames(&f, &b), what, {EH_TEXT, 0x30}, {EH_TEXT + 0x40, 0x9});
        }
    }
    struct eh_file f = {.vaddr = EH_ABOVE, .no_sections = true, .header_version = 2};
    struct image_buffer b = two_functions(&f, &usual);
    check_none(read_frames(&f, &b), "header version 2");
    f.header_version = 1;
    f.header_encoding = 0x9b;
    b = two_functions(&f, &usual);
    check_none(read_frames(&f, &b), "indirect header");
    f.header_encoding = 0xff;
    b = two_functions(&f, &usual);
    check_none(read_frames(&f, &b), "omitted");
}

static void an_entry_of_a_wrong_length_is_none(void **state)
{
    (void)state;
    static const struct eh_style styles[] = {{.encoding = 0x1b}, {.encoding = 0x1c}};
    for (size_t i = 0; i < COUNT(styles); i++) {
        struct eh_file f = {.vaddr = EH_ABOVE};
        struct image_buffer b = eh_begin(&f, 0x1000);
        size_t cie = eh_cie(&b, &styles[i]);
        eh_fde(&b, &f, &styles[i], cie, EH_TEXT, 1);
        size_t last = eh_fde(&b, &f, &styles[i], cie, EH_TEXT + 1, 1);
        b.data[last]++;
        CHECK(read_frames(&f, &b), "too long", {EH_TEXT, 1});
        /* Nor one that ends before its numbers do. */
        b = eh_begin(&f, 0x1000);
        cie = eh_cie(&b, &styles[i]);
        last = eh_fde(&b, &f, &styles[i], cie, EH_TEXT, 1);
        b.data[last] = 8;
        check_none(read_frames(&f, &b), "too short");
    }
}

static void a_cie_for_another_word_size_is_none(void **state)
{
    (void)state;
    const struct eh_file f = {.vaddr = EH_ABOVE};
    for (unsigned word = 4; word <= 8; word += 4) {
        struct eh_style s = {.encoding = 0};
        struct image_buffer b = eh_begin(&f, 0x1000);
        size_t at = eh_entry_begin(&b, &s);
        image_put(&b, 0, 4);
        image_put(&b, 4, 1);
        eh_text(&b, "");
        image_put(&b, word, 1);
        for (int i = 0; i < 4; i++)
            image_put(&b, i == 0 ? 0 : 1, 1);
        eh_entry_end(&b, &s, at);
        eh_fde(&b, &f, &s, at, EH_TEXT, 1);
        struct symint_fdes fdes = read_frames(&f, &b);
        assert_int_equal(fdes.count, word == 8);
        symint_fdes_free(&fdes);
    }
}

static void what_follows_in_the_segment_is_not_taken_for_entries(void **state)
{
    (void)state;
    uint8_t behind[256];
    for (size_t i = 0; i < sizeof(behind); i++)
        behind[i] = (uint8_t)(i % 4 == 0 ? 4 + i % 64 : 0);
    struct eh_file f = {
        .vaddr = EH_ABOVE, .no_sections = true, .behind = behind, .behind_size = sizeof(behind)};
    struct image_buffer b = two_functions(&f, &usual);
    CHECK(read_frames(&f, &b), "behind", {EH_TEXT, 0x30}, {EH_TEXT + 0x40, 0x9});
}

static void pointers_to_no_cie_lead_nowhere(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE};
    FOR_ALL_KINDS(f)
    {
        struct image_buffer b = eh_begin(&f, 0x1000);
        size_t cie = eh_cie(&b, &usual);
        size_t good = eh_fde(&b, &f, &usual, cie, EH_TEXT, 1);
        eh_fde(&b, &f, &usual, good, EH_TEXT + 1, 1);        /* an FDE */
        eh_fde(&b, &f, &usual, b.size, EH_TEXT + 2, 1);      /* itself */
        eh_fde(&b, &f, &usual, b.size + 24, EH_TEXT + 3, 1); /* the next FDE */
        eh_fde(&b, &f, &usual, cie + 2, EH_TEXT + 4, 1);     /* the middle */
        eh_fde(&b, &f, &usual, (size_t)-1, EH_TEXT + 5, 1);  /* before the section */
        eh_fde(&b, &f, &usual, (size_t)-4096, EH_TEXT + 6, 1);
        eh_fde(&b, &f, &usual, (size_t)-1 - 0x7ffffff0, EH_TEXT + 7, 1);
        eh_fde(&b, &f, &usual, 0x7fffff00, EH_TEXT + 8, 1); /* behind it */
        eh_fde(&b, &f, &usual, cie, EH_TEXT + 9, 1);
        CHECK(read_frames(&f, &b), "no CIE", {EH_TEXT, 1}, {EH_TEXT + 9, 1});
        /* Where nothing is there is no CIE either. */
        const struct eh_style styles[] = {{.encoding = 0}, {.encoding = 0x1b}};
        for (size_t k = 0; k < COUNT(styles); k++) {
            b = eh_begin(&f, 0x4000);
            for (size_t i = 0; i < 200; i++)
                eh_fde(&b, &f, &styles[k], (size_t)-1 - i % 3, EH_TEXT + i, 1);
            check_none(read_frames(&f, &b), "nothing");
        }
        /* libgcc takes a CIE that comes later, too. */
        b = eh_begin(&f, 0x1000);
        size_t early = eh_fde(&b, &f, &usual, 0, EH_TEXT, 1);
        size_t end = b.size;
        b.size = early + 4;
        image_put(&b, early + 4 - end, 4);
        b.size = end;
        eh_cie(&b, &usual);
        CHECK(read_frames(&f, &b), "later", {EH_TEXT, 1});
    }
}

/* What is found in a damaged file may be less or wrong, but keeps to the rules. */
static void check_rules(struct symint_fdes fdes, size_t most)
{
    assert_true(fdes.count <= most);
    for (size_t i = 0; i < fdes.count; i++) {
        assert_true(fdes.start[i] >= EH_TEXT && fdes.start[i] < fdes.end[i]);
        assert_true(fdes.end[i] <= EH_TEXT + EH_TEXT_SIZE);
        assert_true(i == 0 || fdes.start[i - 1] < fdes.start[i]);
    }
    symint_fdes_free(&fdes);
}

/* Entries of all kinds. */
static struct image_buffer mixture(const struct eh_file *f)
{
    static const struct eh_style styles[] = {
        {.encoding = 0x1b},
        {.encoding = 0x50},
        {.encoding = 0x19},
        {.encoding = 0x3b},
        {.encoding = 0x0c},
        {.encoding = 0x1b, .long_length = true},
        {.encoding = 0x1c, .long_length = true, .id_bytes = 8}};
    struct image_buffer b = eh_begin(f, 0x1000);
    for (size_t i = 0; i < COUNT(styles); i++) {
        size_t cie = eh_cie(&b, &styles[i]);
        eh_fde(&b, f, &styles[i], cie, EH_TEXT + 0x100 * i, 0x10);
        eh_fde(&b, f, &styles[i], cie, EH_TEXT + 0x100 * i + 0x10, 0x20);
        if (i % 2 == 0)
            image_put(&b, 0, 4);
    }
    return b;
}

static void a_section_may_be_cut_anywhere(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE};
    FOR_ALL_KINDS(f)
    {
        struct image_buffer whole = mixture(&f);
        size_t before = 0;
        for (size_t size = 0; size <= whole.size; size++) {
            struct image_buffer b = eh_begin(&f, size + 1);
            memcpy(b.data, whole.data, size);
            b.size = size;
            struct symint_fdes fdes = read_frames(&f, &b);
            assert_true(fdes.count >= before); /* whole entries stay */
            before = fdes.count;
            check_rules(fdes, 14);
        }
        assert_int_equal(before, 14);
        free(whole.data);
    }
}

/* Copies of the exact size, so that a sanitizer sees each byte too many. */
static void a_file_may_be_cut_anywhere_and_any_byte_be_wrong(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE};
    FOR_ALL_KINDS(f)
    {
        for (int by_header = 0; by_header < 2; by_header++) {
            size_t size;
            f.no_sections = by_header != 0;
            struct image_buffer frames = mixture(&f);
            uint8_t *data = eh_build(&f, &frames, &size);
            size_t begin = 0x400 + (size_t)EH_TEXT_SIZE;
            for (size_t cut = begin; cut < size; cut++) {
                uint8_t *copy = malloc(cut);
                assert_non_null(copy);
                memcpy(copy, data, cut);
                check_rules(
                    read_input(&(struct symint_input){.fd = -1, .memory = copy, .size = cut}), 14);
                free(copy);
            }
            for (size_t at = begin; at < begin + frames.size + 64; at++) {
                static const uint8_t flips[] = {0xff, 0x01, 0x80, 0x10};
                for (size_t i = 0; i < COUNT(flips); i++) {
                    data[at] ^= flips[i];
                    check_rules(read_input(
                                    &(struct symint_input){.fd = -1, .memory = data, .size = size}),
                                64);
                    data[at] ^= flips[i];
                }
            }
            free(data);
            free(frames.data);
        }
        f.no_sections = false;
    }
}

static void anything_at_all_is_read(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 3000; round++) {
        struct eh_file f = {.vaddr = EH_ABOVE,
                            .narrow = round % 2 == 0,
                            .big = round % 4 < 2,
                            .no_sections = round % 8 < 4};
        struct image_buffer b = mixture(&f);
        for (int i = 0; i < 1 + round % 30; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            b.data[(random >> 8) % b.size] = (uint8_t)random;
        }
        check_rules(read_frames(&f, &b), b.size / 12);
    }
}

static void no_memory_is_needed_for_what_a_file_only_claims(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = EH_ABOVE};
    struct image_buffer b = eh_begin(&f, 64);
    size_t cie = eh_cie(&b, &usual);
    eh_fde(&b, &f, &usual, cie, EH_TEXT, 1);
    size_t size;
    uint8_t *data = eh_build(&f, &b, &size);
    /* Section 2's size: two thirds of 64 bits. It is the rest of the file then. */
    memset(data + size - 3 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), 0xaa, 8);
    CHECK(read_input(&(struct symint_input){.fd = -1, .memory = data, .size = size}), "claim",
          {EH_TEXT, 1});
    free(data);
    free(b.data);
}

/* Many CIEs in turn, and entries larger than what is read at once. */
static void a_file_and_its_copy_in_memory_give_the_same(void **state)
{
    (void)state;
    struct eh_file f = {.vaddr = 0x1000000};
    struct image_buffer b = eh_begin(&f, (size_t)4 << 20);
    size_t cies[500];
    struct range want[4000];
    for (size_t i = 0; i < COUNT(cies); i++) {
        struct eh_style s = {.encoding = i % 2 == 0 ? 0x1b : 0x0c};
        cies[i] = eh_cie(&b, &s);
    }
    for (size_t i = 0; i < COUNT(want); i++) {
        struct eh_style s = {.encoding = i % 2 == 0 ? 0x1b : 0x0c};
        want[i] = (struct range){EH_TEXT + i, 1 + i % 3};
        size_t fde = eh_fde(&b, &f, &s, cies[i % COUNT(cies)], want[i].start, want[i].size);
        b.size += (i % 1000 == 999 ? 200000 : i % 50) / 4 * 4;
        eh_entry_end(&b, &s, fde);
    }
    size_t size;
    uint8_t *data = eh_build(&f, &b, &size);
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fflush(file), 0);
    struct symint_fdes fdes = read_input(&(struct symint_input){.fd = fileno(file), .size = size});
    check(&fdes, want, COUNT(want), "file");
    fdes = read_input(&(struct symint_input){.fd = -1, .memory = data, .size = size});
    check(&fdes, want, COUNT(want), "memory");
    /* A file that shrank meanwhile: what is there counts. */
    assert_int_equal(ftruncate(fileno(file), 0x400 + (off_t)EH_TEXT_SIZE), 0);
    check_none(read_input(&(struct symint_input){.fd = fileno(file), .size = size}), "shrunk");
    fclose(file);
    free(data);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_encoding_is_read),
        cmocka_unit_test(an_aligned_start_may_follow_a_gap),
        cmocka_unit_test(encodings_that_a_file_cannot_answer_are_left_out),
        cmocka_unit_test(augmentations_are_understood),
        cmocka_unit_test(a_long_length_goes_with_short_and_long_ids),
        cmocka_unit_test(ranges_that_are_not_code_are_dropped),
        cmocka_unit_test(tombstones_are_none_even_where_code_is_at_0),
        cmocka_unit_test(a_distance_of_0_is_no_start),
        cmocka_unit_test(starts_come_sorted_and_once),
        cmocka_unit_test(entries_go_on_behind_a_terminator),
        cmocka_unit_test(a_terminator_before_something_else_ends_the_section),
        cmocka_unit_test(a_file_may_have_two_such_sections),
        cmocka_unit_test(a_debug_file_has_none),
        cmocka_unit_test(a_relocatable_file_has_none),
        cmocka_unit_test(the_header_finds_them_without_sections),
        cmocka_unit_test(an_entry_of_a_wrong_length_is_none),
        cmocka_unit_test(a_cie_for_another_word_size_is_none),
        cmocka_unit_test(what_follows_in_the_segment_is_not_taken_for_entries),
        cmocka_unit_test(pointers_to_no_cie_lead_nowhere),
        cmocka_unit_test(a_section_may_be_cut_anywhere),
        cmocka_unit_test(a_file_may_be_cut_anywhere_and_any_byte_be_wrong),
        cmocka_unit_test(anything_at_all_is_read),
        cmocka_unit_test(no_memory_is_needed_for_what_a_file_only_claims),
        cmocka_unit_test(a_file_and_its_copy_in_memory_give_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
