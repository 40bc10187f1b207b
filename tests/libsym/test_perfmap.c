/* SPDX-License-Identifier: MIT */
/* Lines of perf maps, overlaps of all kinds, and files that are no perf map. */
#include "perfmap.h"

#include "openfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct symint_perf_map parse(const char *text, size_t size)
{
    struct symint_perf_map m;
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    copy[size] = '\0';
    assert_int_equal(symint_perf_map_parse(&m, copy, size), 0);
    return m;
}

#define PARSE(text) parse(text, sizeof(text) - 1)

/* name NULL: nothing there. */
static void check(const struct symint_perf_map *m, uint64_t address, const char *name,
                  uint64_t start)
{
    const struct symint_perf_entry *e = symint_perf_map_find(m, address);
    if (name == NULL) {
        assert_null(e);
        return;
    }
    assert_non_null(e);
    assert_int_equal(e->name_size, strlen(name));
    assert_memory_equal(m->text + e->name, name, e->name_size);
    assert_int_equal(e->start, start);
}

static void an_entry_covers_its_bytes_and_no_other(void **state)
{
    (void)state;
    struct symint_perf_map m = PARSE("1000 10 f\n");
    check(&m, 0xfff, NULL, 0);
    check(&m, 0x1000, "f", 0x1000);
    check(&m, 0x100f, "f", 0x1000);
    check(&m, 0x1010, NULL, 0);
    check(&m, UINT64_MAX, NULL, 0);
    symint_perf_map_free(&m);
}

static void prefixes_blanks_and_a_missing_newline_are_accepted(void **state)
{
    (void)state;
    struct symint_perf_map m =
        PARSE("0x1000\t 0X10   a name with  blanks \n  2000 10\tf\r\n3000 10 last");
    assert_int_equal(m.count, 3);
    assert_int_equal(m.bad_lines, 0);
    check(&m, 0x1000, "a name with  blanks", 0x1000);
    check(&m, 0x2000, "f", 0x2000);
    check(&m, 0x3000, "last", 0x3000);
    symint_perf_map_free(&m);
}

static void bad_lines_are_counted_and_skipped(void **state)
{
    (void)state;
    struct symint_perf_map m =
        PARSE("\n   \nxyz\n1000\n1000 10\n1000 10 \n1000 0 empty\ng000 10 f\n1000 -1 f\n"
              "10000000000000000 1 f\nffffffffffffff00 101 wraps\n1000,10,f\n0x 1 f\n"
              "1000 10 good\n");
    assert_int_equal(m.count, 1);
    assert_int_equal(m.bad_lines, 11);
    check(&m, 0x1008, "good", 0x1000);
    symint_perf_map_free(&m);
}

static void the_end_of_the_address_space_can_be_named(void **state)
{
    (void)state;
    struct symint_perf_map m = PARSE("ffffffffffffff00 ff high\n0 1 null\n");
    check(&m, UINT64_MAX - 1, "high", 0xffffffffffffff00);
    check(&m, 0, "null", 0);
    check(&m, 1, NULL, 0);
    symint_perf_map_free(&m);
}

static void an_empty_map_has_no_names(void **state)
{
    (void)state;
    struct symint_perf_map m = PARSE("");
    check(&m, 0, NULL, 0);
    symint_perf_map_free(&m);
    m = PARSE("garbage");
    check(&m, 0x1000, NULL, 0);
    symint_perf_map_free(&m);
}

static void any_byte_but_newline_may_be_in_a_name(void **state)
{
    (void)state;
    struct symint_perf_map m = PARSE("1000 10 a\0b\xff\n");
    const struct symint_perf_entry *e = symint_perf_map_find(&m, 0x1000);
    assert_non_null(e);
    assert_int_equal(e->name_size, 4);
    symint_perf_map_free(&m);
}

static void a_later_line_wins_at_the_same_address(void **state)
{
    (void)state;
    struct symint_perf_map m = PARSE("1000 10 first\n1000 10 second\n1000 10 third\n");
    check(&m, 0x1000, "third", 0x1000);
    check(&m, 0x100f, "third", 0x1000);
    symint_perf_map_free(&m);
}

static void what_is_left_of_an_earlier_line_stays_valid(void **state)
{
    (void)state;
    struct symint_perf_map m = PARSE("1000 100 old\n1040 10 inside\n10f0 20 tail\nff0 20 head\n");
    check(&m, 0xff8, "head", 0xff0);
    check(&m, 0x100f, "head", 0xff0);
    check(&m, 0x1010, "old", 0x1000);
    check(&m, 0x1040, "inside", 0x1040);
    check(&m, 0x1050, "old", 0x1000);
    check(&m, 0x10ef, "old", 0x1000);
    check(&m, 0x10f0, "tail", 0x10f0);
    check(&m, 0x110f, "tail", 0x10f0);
    check(&m, 0x1110, NULL, 0);
    symint_perf_map_free(&m);
    m = PARSE("1040 10 inside\n1000 100 all\n");
    check(&m, 0x1048, "all", 0x1000);
    symint_perf_map_free(&m);
}

static void overlaps_agree_with_painting_byte_by_byte(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 300; round++) {
        char text[4096] = "";
        int paint[256];
        int starts[64];
        size_t at = 0;
        int count = 1 + rand() % 60;
        memset(paint, -1, sizeof(paint));
        for (int i = 0; i < count; i++) {
            int start = rand() % 200;
            int size = 1 + rand() % (rand() % 4 == 0 ? 55 : 8);
            starts[i] = start;
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%x %x n%d\n", 0x1000 + start,
                                   size, i);
            for (int k = start; k < start + size; k++)
                paint[k] = i;
        }
        struct symint_perf_map m = parse(text, at);
        for (int k = 0; k < 256; k++) {
            char name[16];
            snprintf(name, sizeof(name), "n%d", paint[k]);
            check(&m, 0x1000 + (uint64_t)k, paint[k] < 0 ? NULL : name,
                  paint[k] < 0 ? 0 : 0x1000 + (uint64_t)starts[paint[k]]);
        }
        symint_perf_map_free(&m);
    }
}

static void a_huge_map_of_nested_entries_is_flattened_quickly(void **state)
{
    (void)state;
    /* Each inside the one before, then each around it: both are quadratic for a careless list. */
    size_t n = 200000;
    size_t room = n * 2 * 48;
    char *text = malloc(room);
    size_t at = 0;
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        at +=
            (size_t)snprintf(text + at, room - at, "%zx %zx in%zu\n", 0x100000 + i, 2 * (n - i), i);
    for (size_t i = 0; i < n; i++)
        at +=
            (size_t)snprintf(text + at, room - at, "%zx %zx out%zu\n", 0x8000000 - i, 2 * i + 1, i);
    struct symint_perf_map m;
    assert_int_equal(symint_perf_map_parse(&m, text, at), 0);
    assert_int_equal(m.count, 2 * n);
    check(&m, 0x100000, "in0", 0x100000);
    check(&m, 0x100000 + n - 1, "in199999", 0x100000 + n - 1);
    check(&m, 0x8000000, "out199999", 0x8000000 - n + 1);
    symint_perf_map_free(&m);
}

static void a_line_that_is_too_long_is_one_bad_line(void **state)
{
    (void)state;
    size_t limit = 64 * 1024;
    size_t room = 8 * limit;
    char *text = malloc(room);
    struct symint_perf_map m;
    assert_non_null(text);
    memset(text, 'x', room);
    size_t at = (size_t)sprintf(text, "1000 10 f\n");
    at += (size_t)sprintf(text + at, "2000 10 ");
    text[at] = 'x';
    at += limit + 1 - 8;
    text[at++] = '\n';
    size_t longest = at;
    at += (size_t)sprintf(text + at, "3000 10 ");
    text[at] = 'x';
    at = longest + limit;
    text[at++] = '\n';
    assert_int_equal(symint_perf_map_parse(&m, text, at), 0);
    assert_int_equal(m.count, 2);
    assert_int_equal(m.bad_lines, 1);
    check(&m, 0x1000, "f", 0x1000);
    check(&m, 0x2000, NULL, 0);
    assert_int_equal(symint_perf_map_find(&m, 0x3000)->name_size, limit - 8);
    symint_perf_map_free(&m);
}

static void more_entries_than_the_limit_are_refused(void **state)
{
    (void)state;
    static const char line[] = "0 1 a\n";
    size_t count = (size_t)4 * 1024 * 1024 + 1;
    size_t size = count * (sizeof(line) - 1);
    struct symint_perf_map m;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * (sizeof(line) - 1), line, sizeof(line) - 1);
    assert_int_equal(symint_perf_map_parse(&m, text, size), SYM_ERR_LIMIT);
    assert_null(m.text);
    assert_int_equal(m.count, 0);
}

/* ---- files ---- */

static char folder[64];
static char path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_perfmap.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/perf-1.map", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* Writes the file, then makes it that large with a hole at the end, unless it is already. */
static void put(const char *text, size_t size, off_t file_size)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fflush(f), 0);
    if (file_size > (off_t)size)
        assert_int_equal(ftruncate(fileno(f), file_size), 0);
    assert_int_equal(fclose(f), 0);
}

/* Opens and reads a map. */
static enum sym_miss load(struct symint_perf_map *m, const char *file)
{
    enum sym_miss miss;
    int error;
    int fd;
    *m = (struct symint_perf_map){0};
    assert_int_equal(symint_open_regular(NULL, file, &fd, &miss, &error), 0);
    if (fd < 0)
        return miss;
    assert_int_equal(symint_perf_map_load(m, fd, &miss), 0);
    assert_int_equal(close(fd), 0); /* it is still ours */
    return miss;
}

static void expect_miss(const char *file, enum sym_miss expected)
{
    struct symint_perf_map m;
    assert_int_equal(load(&m, file), expected);
    assert_int_equal(m.count, 0);
    assert_null(m.text);
    assert_null(symint_perf_map_find(&m, 0x1000));
    symint_perf_map_free(&m);
}

static void only_regular_files_are_read(void **state)
{
    (void)state;
    struct symint_perf_map m;
    expect_miss(path, SYM_MISS_NO_FILE);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_miss(path, SYM_MISS_NOT_REGULAR);
    unlink(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    expect_miss(path, SYM_MISS_NOT_REGULAR);
    unlink(path);
    assert_int_equal(symlink(path, path), 0); /* to itself */
    expect_miss(path, SYM_MISS_UNREADABLE);
    unlink(path);
    expect_miss(folder, SYM_MISS_NOT_REGULAR);
    put("1000 10 f\n", 10, 0);
    assert_int_equal(load(&m, path), SYM_MISS_NONE);
    check(&m, 0x1000, "f", 0x1000);
    symint_perf_map_free(&m);
    if (geteuid() != 0) {
        chmod(path, 0);
        expect_miss(path, SYM_MISS_UNREADABLE);
    }
    unlink(path);
}

static void a_file_over_the_limit_is_not_read(void **state)
{
    (void)state;
    off_t limit = (off_t)256 << 20;
    put("1000 10 f\n", 10, limit + 1);
    expect_miss(path, SYM_MISS_TOO_LARGE);
    put("1000 10 f\n", 10, (off_t)1 << 40);
    expect_miss(path, SYM_MISS_TOO_LARGE);
    /* A hole up to the limit is one long line. */
    struct symint_perf_map m;
    put("1000 10 f\n", 10, limit);
    assert_int_equal(load(&m, path), SYM_MISS_NONE);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.bad_lines, 1);
    check(&m, 0x1000, "f", 0x1000);
    symint_perf_map_free(&m);
}

static void a_file_without_an_entry_is_damaged_unless_it_is_empty(void **state)
{
    (void)state;
    struct symint_perf_map m;
    put("", 0, 1000000); /* NULs */
    expect_miss(path, SYM_MISS_DAMAGED);
    put("\177ELF\n1000\n", 10, 0);
    expect_miss(path, SYM_MISS_DAMAGED);
    put("\n \n", 3, 0);
    assert_int_equal(load(&m, path), SYM_MISS_NONE);
    assert_int_equal(m.count, 0);
    symint_perf_map_free(&m);
}

/* Files of several pieces, whose lines are cut everywhere, say the same as their text at once. */
static void pieces_of_a_file_do_not_show(void **state)
{
    (void)state;
    size_t room = 1200000;
    srand(11);
    for (int round = 0; round < 12; round++) {
        char *text = malloc(room);
        size_t at = 0;
        assert_non_null(text);
        while (at + 80000 < room) {
            int kind = rand() % 50;
            size_t size = kind < 2 ? 65536 - 8 + (size_t)rand() % 17 : (size_t)rand() % 300;
            if (round >= 6)
                size %= 60;
            at += (size_t)snprintf(text + at, 32, kind == 3 ? "bad " : "%x %x ",
                                   0x1000 + rand() % 100000, 1 + rand() % 50);
            memset(text + at, 'a' + rand() % 26, size);
            at += size;
            text[at++] = '\n';
        }
        at -= (size_t)(round % 2); /* with and without the last newline */
        put(text, at, 0);
        struct symint_perf_map whole;
        struct symint_perf_map m;
        assert_int_equal(symint_perf_map_parse(&whole, text, at), 0);
        assert_int_equal(load(&m, path), SYM_MISS_NONE);
        assert_int_equal(m.count, whole.count);
        assert_int_equal(m.bad_lines, whole.bad_lines);
        assert_true(m.bad_lines > 0);
        for (size_t i = 0; i < m.count; i++) {
            assert_int_equal(m.entries[i].start, whole.entries[i].start);
            assert_int_equal(m.entries[i].end, whole.entries[i].end);
            assert_int_equal(m.entries[i].name, whole.entries[i].name);
            assert_int_equal(m.entries[i].name_size, whole.entries[i].name_size);
            assert_memory_equal(m.text + m.entries[i].name, whole.text + whole.entries[i].name,
                                m.entries[i].name_size);
        }
        symint_perf_map_free(&whole);
        symint_perf_map_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_covers_its_bytes_and_no_other),
        cmocka_unit_test(prefixes_blanks_and_a_missing_newline_are_accepted),
        cmocka_unit_test(bad_lines_are_counted_and_skipped),
        cmocka_unit_test(the_end_of_the_address_space_can_be_named),
        cmocka_unit_test(an_empty_map_has_no_names),
        cmocka_unit_test(any_byte_but_newline_may_be_in_a_name),
        cmocka_unit_test(a_later_line_wins_at_the_same_address),
        cmocka_unit_test(what_is_left_of_an_earlier_line_stays_valid),
        cmocka_unit_test(overlaps_agree_with_painting_byte_by_byte),
        cmocka_unit_test(a_huge_map_of_nested_entries_is_flattened_quickly),
        cmocka_unit_test(a_line_that_is_too_long_is_one_bad_line),
        cmocka_unit_test(more_entries_than_the_limit_are_refused),
        cmocka_unit_test(only_regular_files_are_read),
        cmocka_unit_test(a_file_over_the_limit_is_not_read),
        cmocka_unit_test(a_file_without_an_entry_is_damaged_unless_it_is_empty),
        cmocka_unit_test(pieces_of_a_file_do_not_show),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
