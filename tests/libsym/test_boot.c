/* SPDX-License-Identifier: MIT */
/* The rule of the same boot, and whether the running kernel is the recorded one. */
#include "boot.h"

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

static char folder[64];
static char paths[5][96];
static struct symint_system files;

enum { BOOT_ID, STAT, NOTES, OSRELEASE };

static void put(int which, const void *data, size_t size)
{
    FILE *f = fopen(paths[which], "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

/* Xen's note, then the build id 01 02 03 04 05. */
static const unsigned char notes[] = {4, 0, 0, 0, 6,   0,   0,   0, 18, 0, 0, 0, 'X', 'e', 'n', 0,
                                      1, 2, 3, 4, 5,   6,   0,   0, 4,  0, 0, 0, 5,   0,   0,   0,
                                      3, 0, 0, 0, 'G', 'N', 'U', 0, 1,  2, 3, 4, 5,   0,   0,   0};

static int make_files(void **state)
{
    static const char *const names[] = {"boot_id", "stat", "notes", "osrelease"};
    static const char boot_id[] = "424b4134-d103-4224-a007-a2d7608fffd7\n";
    static const char stat[] = "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n";
    (void)state;
    strcpy(folder, "/tmp/test_boot.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    for (int i = 0; i < 4; i++)
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, names[i]);
    put(BOOT_ID, boot_id, strlen(boot_id));
    put(STAT, stat, strlen(stat));
    put(NOTES, notes, sizeof(notes));
    put(OSRELEASE, "6.1.0-18-amd64\n", 15);
    files = (struct symint_system){.boot_id = paths[BOOT_ID],
                                   .stat = paths[STAT],
                                   .notes = paths[NOTES],
                                   .osrelease = paths[OSRELEASE]};
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        unlink(paths[i]);
    return rmdir(folder);
}

static void the_boot_id_decides(void **state)
{
    (void)state;
    struct sym_capture c = {.size = sizeof(c), .boot_id = "424b4134-d103-4224-a007-a2d7608fffd7"};
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_SAME);
    c.boot_id = "424B4134d1034224a007a2d7608fffd7";
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_SAME);
    c.boot_id = "424b4134-d103-4224-a007-a2d7608fffd8";
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_OTHER);
    c.boot_id = "424b4134-d103-4224-a007-a2d7608fffd";
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_OTHER);
    /* The start time cannot overrule it. */
    c.has_start_time = true;
    c.start_time_us = (uint64_t)1800000000 * 1000000;
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_OTHER);
}

static void without_a_boot_id_the_start_time_decides(void **state)
{
    (void)state;
    struct sym_capture c = {.size = sizeof(c), .has_start_time = true};
    c.start_time_us = (uint64_t)1700000000 * 1000000;
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_SAME);
    c.start_time_us--;
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_OTHER);
    c.has_start_time = false;
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_UNKNOWN);
    c.boot_id = "";
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_UNKNOWN);
}

static void without_a_boot_id_another_release_is_another_boot(void **state)
{
    (void)state;
    struct sym_capture c = {.size = sizeof(c),
                            .has_start_time = true,
                            .start_time_us = (uint64_t)1700000000 * 1000000,
                            .release = "0.0.1-never"};
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_OTHER);
    /* The boot id says more. */
    c.boot_id = "424b4134-d103-4224-a007-a2d7608fffd7";
    assert_int_equal(symint_boot_compare(&c, &files), SYMINT_BOOT_SAME);
}

static void an_unknown_boot_of_ours_is_no_match(void **state)
{
    (void)state;
    struct symint_system none = {.boot_id = "/nonexistent", .stat = "/nonexistent"};
    struct sym_capture c = {.size = sizeof(c), .boot_id = "424b4134-d103-4224-a007-a2d7608fffd7"};
    assert_int_equal(symint_boot_compare(&c, &none), SYMINT_BOOT_UNKNOWN);
    c.has_start_time = true;
    assert_int_equal(symint_boot_compare(&c, &none), SYMINT_BOOT_UNKNOWN);
}

static void another_release_or_build_id_is_another_kernel(void **state)
{
    (void)state;
    const uint8_t id[] = {1, 2, 3, 4, 5};
    const uint8_t other[] = {1, 2, 3, 4, 6};
    const char *what = "";
    assert_false(symint_boot_other_kernel(&files, NULL, NULL, 0, &what));
    assert_false(symint_boot_other_kernel(&files, "6.1.0-18-amd64", id, 5, &what));
    assert_true(symint_boot_other_kernel(&files, "6.1.0-18-amd6", id, 5, &what));
    assert_string_equal(what, "release");
    assert_true(symint_boot_other_kernel(&files, "6.1.0-18-amd64", other, 5, &what));
    assert_string_equal(what, "build id");
    assert_true(symint_boot_other_kernel(&files, NULL, id, 4, &what));
}

static void what_cannot_be_read_contradicts_nothing(void **state)
{
    (void)state;
    const uint8_t id[] = {9};
    const char *what;
    struct symint_system none = {.notes = "/nonexistent", .osrelease = "/nonexistent"};
    assert_false(symint_boot_other_kernel(&none, "6.1", id, 1, &what));
    /* Notes that end anywhere, or lie about their sizes. */
    for (size_t size = 0; size < sizeof(notes) - 3; size++) {
        put(NOTES, notes, size);
        assert_int_equal(symint_boot_other_kernel(&files, NULL, id, 1, &what), size >= 45);
    }
    unsigned char lie[sizeof(notes)];
    for (size_t at = 0; at < 12; at++) {
        memcpy(lie, notes, sizeof(lie));
        lie[at] = 0xff;
        put(NOTES, lie, sizeof(lie));
        (void)symint_boot_other_kernel(&files, NULL, id, 1, &what);
    }
    put(NOTES, notes, sizeof(notes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_boot_id_decides),
        cmocka_unit_test(without_a_boot_id_the_start_time_decides),
        cmocka_unit_test(without_a_boot_id_another_release_is_another_boot),
        cmocka_unit_test(an_unknown_boot_of_ours_is_no_match),
        cmocka_unit_test(another_release_or_build_id_is_another_kernel),
        cmocka_unit_test(what_cannot_be_read_contradicts_nothing),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
