/* SPDX-License-Identifier: MIT */
/* Paths inside a root, by the kernel's way and by hand: both lead to the same file or nowhere. */
#include "openfile.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/openfile.XXXXXX";
static int root = -1;

static const char *at(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void put(const char *name)
{
    int fd = open(at(name), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static int make_files(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL || mkdir(at("root"), 0700) != 0 || mkdir(at("root/a"), 0700) != 0 ||
        mkdir(at("root/a/b"), 0700) != 0)
        return -1;
    put("outside");
    put("root/file");
    put("root/a/file");
    put("root/a/b/file");
    char far[4096] = "";
    for (int i = 0; i < 300; i++)
        strcat(far, "../");
    strcat(far, "file");
    root = open(at("root"), O_PATH | O_DIRECTORY);
    return root < 0 || symlink("/a/b", at("root/absolute")) != 0 ||
           symlink("../a/file", at("root/a/relative")) != 0 ||
           symlink("../../../outside", at("root/a/b/climbs")) != 0 ||
           symlink(at("outside"), at("root/names_ours")) != 0 ||
           symlink(far, at("root/a/far")) != 0 || symlink("loop", at("root/loop")) != 0 ||
           symlink("absolute/file", at("root/twice")) != 0;
}

static int remove_files(void **state)
{
    (void)state;
    char command[128];
    close(root);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

/* expected NULL: nowhere. */
static void check(const char *path, const char *expected)
{
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        struct stat is;
        struct stat want;
        int fd = symint_open_inside(root, path, by_hand != 0);
        if (expected == NULL) {
            assert_int_equal(fd, -1);
            assert_true(errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
                        errno == ENAMETOOLONG);
            continue;
        }
        if (fd < 0)
            fail_msg("%s (%d): %s", path, by_hand, strerror(errno));
        assert_int_equal(fstat(fd, &is), 0);
        assert_int_equal(stat(at(expected), &want), 0);
        assert_int_equal(is.st_ino, want.st_ino);
        close(fd);
    }
}

static void paths_are_found_as_the_kernel_finds_them(void **state)
{
    (void)state;
    check("file", "root/file");
    check("/a//b/./file", "root/a/b/file");
    check("/a/b/../file", "root/a/file");
    check("/absolute/file", "root/a/b/file");
    check("/a/relative", "root/a/file");
    check("/twice", "root/a/b/file");
    check("/", "root");
    check("/absolute", "root/a/b");
    check("a/", "root/a");
    check("/none", NULL);
    check("/file/below", NULL);
    check("/loop", NULL);
}

static void nothing_leads_out_of_the_root(void **state)
{
    (void)state;
    check("/../outside", NULL);
    check("../../outside", NULL);
    check("/../file", "root/file");
    check("/a/b/climbs", NULL);
    check("/names_ours", NULL);
    check("/a/far", "root/file");
}

/* Whether a path may be what a capture says, and what we ask for ourselves. */
static void check_system(const char *path, enum sym_miss named, enum sym_miss asked)
{
    enum sym_miss miss;
    int error;
    int fd;
    assert_int_equal(symint_open_regular(NULL, path, &fd, &miss, &error), 0);
    assert_int_equal(miss, named);
    if (fd >= 0)
        close(fd);
    assert_int_equal(symint_open_system(path, &fd, &miss, &error), 0);
    assert_int_equal(miss, asked);
    if (fd >= 0)
        close(fd);
}

static void what_the_kernel_makes_up_is_no_file_of_a_capture(void **state)
{
    (void)state;
    if (access("/proc/self/mem", F_OK) != 0) {
        puts("skipped: no /proc");
        skip();
    }
    check_system("/proc/self/mem", SYM_MISS_NOT_REGULAR, SYM_MISS_NONE);
    check_system("/proc/self/maps", SYM_MISS_NOT_REGULAR, SYM_MISS_NONE);
    check_system("/proc/self/exe", SYM_MISS_NONE, SYM_MISS_NONE); /* which is a link */
    if (access("/sys/kernel/notes", R_OK) == 0)
        check_system("/sys/kernel/notes", SYM_MISS_NOT_REGULAR, SYM_MISS_NONE);
    check_system("/dev/null", SYM_MISS_NOT_REGULAR, SYM_MISS_NOT_REGULAR);
}

static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    static char path[40000];
    for (size_t i = 0; i + 2 < sizeof(path); i += 2)
        memcpy(path + i, "a/", 3);
    check(path, NULL);
    memset(path, 'x', 300);
    path[300] = '\0';
    check(path, NULL);
}

static void a_shortage_of_descriptors_says_nothing_of_the_file(void **state)
{
    struct rlimit before;
    enum sym_miss miss;
    int error;
    int fd;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int ours = symint_open_regular(NULL, at("outside"), &fd, &miss, &error);
    int inside = symint_open_regular(at("root"), "file", &fd, &miss, &error);
    int in = symint_open_regular_in(root, "file", &fd, &miss, &error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(ours, SYM_ERR_OPEN_FILES);
    assert_int_equal(inside, SYM_ERR_OPEN_FILES);
    assert_int_equal(in, SYM_ERR_OPEN_FILES);
    assert_int_equal(symint_open_regular_in(root, "file", &fd, &miss, &error), 0);
    assert_true(fd >= 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shortage_of_descriptors_says_nothing_of_the_file),
        cmocka_unit_test(paths_are_found_as_the_kernel_finds_them),
        cmocka_unit_test(nothing_leads_out_of_the_root),
        cmocka_unit_test(what_the_kernel_makes_up_is_no_file_of_a_capture),
        cmocka_unit_test(what_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
