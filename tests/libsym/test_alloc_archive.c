/* SPDX-License-Identifier: MIT */
/* Lets every allocation of opening a tar file and using what is in it fail, one after the other. */
#include "tar_image.h"

#include "spool/sym.h"

#include "../alloc_fault.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char plain[] = "/tmp/test_alloc_archive.XXXXXX";
static char packed[sizeof(plain) + 3];

static int make_files(void **state)
{
    (void)state;
    static struct tar_image t;
    char name[200];
    int fd = mkstemp(plain);
    if (fd < 0)
        return -1;
    close(fd);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "folder/%03d", i);
        tar_image_file(&t, name, "text", 4);
    }
    memset(name, 'n', 150);
    name[150] = '\0';
    tar_image_member(&t, "././@LongLink", 'L', "", name, 151);
    tar_image_file(&t, "cut", "long", 4);
    static const char records[] = "17 path=captures\n21 linkpath=folder/1\n";
    tar_image_member(&t, "pax", 'x', "", records, sizeof(records) - 1);
    tar_image_member(&t, "x", '2', "y", "", 0);
    tar_image_member(&t, "hard", '1', "folder/001", "", 0);
    static const char map[] = "1000 100 jitted\n";
    tar_image_file(&t, "perf-42.map", map, sizeof(map) - 1);
    static const char kallsyms[] = "ffffffff81000000 T first\nffffffff81000100 T second\n";
    tar_image_file(&t, "kallsyms", kallsyms, sizeof(kallsyms) - 1);
    tar_image_end(&t);
    snprintf(packed, sizeof(packed), "%s.gz", plain);
    tar_image_write(&t, plain);
    tar_image_write_gzip(&t, packed);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(packed);
    return unlink(plain);
}

static int count_names(void *user, const char *name, bool is_folder)
{
    (void)name, (void)is_folder;
    ++*(size_t *)user;
    return 0;
}

/* What fails for want of memory says so, and nothing else fails. */
#define CHECK(call)                               \
    do {                                          \
        int rc_ = (call);                         \
        if (rc_ != 0) {                           \
            assert_true(alloc.failed);            \
            assert_int_equal(rc_, SYM_ERR_NOMEM); \
            goto done;                            \
        }                                         \
    } while (0)

static void use_archive(const char *path)
{
    struct sym_archive *a = sym_archive_new();
    size_t names = 0;
    int fd;
    CHECK(a == NULL ? SYM_ERR_NOMEM : sym_archive_open(a, path));
    assert_string_equal(sym_archive_error(a), "no error");
    assert_string_equal(sym_archive_fault(a), "");
    CHECK(sym_archive_open_file(a, "folder/../hard", &fd));
    close(fd);
    CHECK(sym_archive_list(a, "folder", count_names, &names));
    assert_int_equal(names, 40);
done:
    sym_archive_free(a);
}

static void use_context(const char *path)
{
    struct sym_options o = {.size = sizeof(o), .symbol_dirs = &path, .symbol_dir_count = 1};
    struct sym_kernel kernel = {.size = sizeof(kernel)};
    struct sym_capture capture = {.size = sizeof(capture), .id = "x-1", .boot_id = "another"};
    struct sym_module m = {.size = sizeof(m), .path = "//anon", .end = 0x10000};
    struct sym_query q = {.pid = 42, .abs = 0x1010, .rel = 0x1010};
    const struct sym_frame *f;
    size_t count;
    struct sym_context *c = sym_context_new();
    if (c == NULL) {
        assert_true(alloc.failed);
        return;
    }
    CHECK(sym_context_open(c, &o));
    CHECK(sym_capture_begin(c, &capture));
    CHECK(sym_kernel_load(c, &kernel));
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    CHECK(sym_module_add(c, &m, &q.module));
    CHECK(sym_resolve(c, &q, &f, &count));
    assert_string_equal(f->name, "jitted");
done:
    sym_context_free(c);
}

static void fail_each(const char *path, bool and_later)
{
    long n = 1;
    for (;; n++) {
        alloc.stays = and_later;
        alloc.failed = false;
        alloc.countdown = n;
        use_archive(path);
        use_context(path);
        alloc.countdown = 0;
        alloc.stays = false;
        if (!alloc.failed)
            break;
    }
    assert_true(n > 20);
}

static void any_one_allocation_may_fail(void **state)
{
    (void)state;
    fail_each(plain, false);
    fail_each(packed, false);
}

static void all_allocations_from_any_one_on_may_fail(void **state)
{
    (void)state;
    fail_each(plain, true);
    fail_each(packed, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_one_allocation_may_fail),
        cmocka_unit_test(all_allocations_from_any_one_on_may_fail),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
