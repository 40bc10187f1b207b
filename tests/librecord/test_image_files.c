/* SPDX-License-Identifier: MIT */
/* Files of mappings: that only the process's memory still has; many of them; ones that change. */
#define _GNU_SOURCE /* memfd_create */
#include "image_files.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "frame_image.h"
#include "image_open.h"

#define NOBODY 65534
#define FILE_BYTES ((size_t)32 << 20)

/* A header without segments is enough of a program here. */
static const uint8_t header[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 3, [18] = 62, [20] = 1};

/* The image found for a nameless file that begins so, by somebody who may not follow links of mappings. Exits with
 * 2 for none, 3 for one, plus 10 when the file's holes were filled. */
static void look_at_memory(const void *beginning, size_t size)
{
    int fd = memfd_create("code", MFD_CLOEXEC);
    struct image_files *files = recordint_image_files_new(1024);
    struct stat before, after;

    if (fd < 0 || files == NULL || ftruncate(fd, (off_t)FILE_BYTES) != 0 ||
        write(fd, beginning, size) != (ssize_t)size || fstat(fd, &before) != 0)
        _exit(1);
    void *mapped = mmap(NULL, FILE_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        _exit(1);
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        _exit(1);
    prctl(PR_SET_DUMPABLE, 1); /* or our own memory is closed to us */
    struct spool_module m = {.pid = getpid(),
                             .start = (uintptr_t)mapped,
                             .end = (uintptr_t)mapped + FILE_BYTES,
                             .inode = before.st_ino,
                             .path = "/memfd:code (deleted)",
                             .path_size = strlen("/memfd:code (deleted)")};
    const struct image_file *file = recordint_image_files_get(files, &m, 0);
    if (file == NULL || fstat(fd, &after) != 0)
        _exit(1);
    _exit((file->image == NULL ? 2 : 3) + (after.st_blocks > before.st_blocks ? 10 : 0));
}

static int outcome(const void *beginning, size_t size)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        look_at_memory(beginning, size);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_file_without_name_is_rebuilt_from_memory(void **state)
{
    (void)state;
    assert_int_equal(outcome(header, sizeof header), 13);
}

static void generated_code_is_not_read_as_a_file(void **state)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};

    (void)state;
    assert_int_equal(outcome(code, sizeof code), 2);
}

/* Maps the first and the last page of a nameless file of 100 MiB. */
static struct spool_module map_sparse_file(void)
{
    static const char path[] = "/memfd:sparse (deleted)";
    const size_t page = 65536, size = (size_t)100 << 20;
    int fd = memfd_create("sparse", MFD_CLOEXEC);
    struct stat st;

    if (fd < 0 || ftruncate(fd, (off_t)size) != 0 ||
        write(fd, header, sizeof header) != (ssize_t)sizeof header || fstat(fd, &st) != 0)
        _exit(1);
    void *first = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    void *last = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)(size - page));
    if (first == MAP_FAILED || last == MAP_FAILED)
        _exit(1);
    return (struct spool_module){.pid = getpid(),
                                 .start = (uintptr_t)first,
                                 .end = (uintptr_t)first + page,
                                 .inode = st.st_ino,
                                 .path = path,
                                 .path_size = strlen(path)};
}

/* Exits with how many of four such files have an image. */
static void count_sparse_files(void)
{
    struct image_files *files = recordint_image_files_new(1024);
    struct spool_module sparse[4];
    int count = 0;

    for (size_t i = 0; i < 4; i++)
        sparse[i] = map_sparse_file();
    if (files == NULL || (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)))
        _exit(1);
    prctl(PR_SET_DUMPABLE, 1);
    for (size_t i = 0; i < 4; i++) {
        const struct image_file *file = recordint_image_files_get(files, &sparse[i], 0);

        count += file != NULL && file->image != NULL;
    }
    recordint_image_files_free(files);
    _exit(count);
}

static void files_in_memory_are_bounded_all_together(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        count_sparse_files();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2); /* of 100 MiB in 256 MiB */
}

/* ---- many files ---- */

#define FILES 300u

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_image_files.XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static void path_of(unsigned n, char path[128])
{
    snprintf(path, 128, "%s/%u.so", folder, n);
}

static int remove_folder(void **state)
{
    char path[128];

    (void)state;
    for (unsigned i = 0; i < FILES; i++) {
        path_of(i, path);
        unlink(path);
    }
    return rmdir(folder);
}

/* A program file whose code begins with that number; written over the old one if there is one. */
static void write_file(unsigned n, uint32_t number)
{
    static struct bytes built;
    struct frame_file file = {0};
    char path[128];

    frame_build(&file, &built);
    memcpy(built.data + FRAME_TEXT_OFFSET, &number, sizeof number);
    path_of(n, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, built.data, built.size), built.size);
    close(fd);
}

/* A mapping of it; the paths of all lie in one array, one after the other. */
static struct spool_module mapping_of(unsigned n, uint32_t id)
{
    static char paths[FILES][128];
    struct stat st;

    path_of(n, paths[n]);
    assert_int_equal(stat(paths[n], &st), 0);
    return (struct spool_module){.id = id,
                                 .pid = getpid(),
                                 .start = 0x10000,
                                 .end = 0x20000,
                                 .inode = st.st_ino,
                                 .path = paths[n],
                                 .path_size = strlen(paths[n])};
}

static uint32_t number_in(const struct image_file *file)
{
    uint32_t number = UINT32_MAX;

    assert_non_null(file);
    if (file->image != NULL)
        recordint_image_read(file->image, FRAME_TEXT, &number, sizeof number);
    return number;
}

static void few_descriptors_are_enough_for_many_files(void **state)
{
    struct image_files *files = recordint_image_files_new(40);

    (void)state;
    for (unsigned i = 0; i < FILES; i++)
        write_file(i, i);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < FILES; i++) {
            struct spool_module m = mapping_of(i, i);

            assert_int_equal(number_in(recordint_image_files_get(files, &m, 0)), i);
            assert_in_range(recordint_image_files_open(files), 1, 10);
        }
    }
    recordint_image_files_free(files);
}

static void a_file_that_was_closed_is_not_taken_for_another(void **state)
{
    struct image_files *files = recordint_image_files_new(16);
    const struct image_file *first;

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        write_file(i, i);
    struct spool_module m = mapping_of(0, 0);
    first = recordint_image_files_get(files, &m, 0);
    assert_int_equal(number_in(first), 0);
    for (unsigned i = 1; i < 8; i++) {
        struct spool_module other = mapping_of(i, i);

        assert_int_equal(number_in(recordint_image_files_get(files, &other, 0)), i);
    }
    assert_int_equal(recordint_image_fd(first->image), -1);
    write_file(0, 1000);
    assert_int_equal(number_in(first), UINT32_MAX);
    recordint_image_files_free(files);
}

static void a_file_that_was_changed_is_read_anew_for_a_new_mapping(void **state)
{
    struct image_files *files = recordint_image_files_new(1024);
    const struct image_file *file;
    struct image *before;

    (void)state;
    write_file(0, 7);
    struct spool_module m = mapping_of(0, 3);
    file = recordint_image_files_get(files, &m, 0);
    assert_int_equal(number_in(file), 7);
    before = file->image;
    usleep(20 * 1000); /* the times of files are those of the last tick */
    write_file(0, 8);
    m.id = 2;
    assert_ptr_equal(recordint_image_files_get(files, &m, 0)->image, before);
    assert_false(recordint_image_files_due(files));
    m.id = 4;
    file = recordint_image_files_get(files, &m, 0);
    assert_ptr_not_equal(file->image, before); /* which exists still */
    assert_int_equal(number_in(file), 8);
    assert_true(recordint_image_files_due(files));
    recordint_image_files_mapped(files, &m);
    recordint_image_files_sweep(files);
    assert_false(recordint_image_files_due(files));
    assert_int_equal(number_in(recordint_image_files_get(files, &m, 0)), 8);
    recordint_image_files_free(files);
}

static void files_that_are_not_mapped_go_but_for_the_latest(void **state)
{
    struct image_files *files = recordint_image_files_new(1024);
    unsigned asked = 0;

    (void)state;
    for (unsigned i = 0; i < FILES; i++)
        write_file(i, i);
    for (; !recordint_image_files_due(files); asked++) {
        struct spool_module m = mapping_of(asked, asked);

        recordint_image_files_get(files, &m, 0);
    }
    assert_int_equal(asked, 128);
    for (unsigned i = 0; i < 10; i++) {
        struct spool_module m = mapping_of(i, i);

        recordint_image_files_mapped(files, &m);
    }
    recordint_image_files_sweep(files);
    assert_int_equal(recordint_image_files_count(files), 10 + 64);
    assert_false(recordint_image_files_due(files));
    for (unsigned i = 0; i < asked; i++) {
        struct spool_module m = mapping_of(i, i);
        size_t before = recordint_image_files_count(files);

        assert_int_equal(number_in(recordint_image_files_get(files, &m, 0)), i);
        assert_int_equal(recordint_image_files_count(files) - before,
                         i >= 10 && i < asked - 64 ? 1 : 0);
    }
    recordint_image_files_free(files);
}

/* To open a FIFO wakes who waits for a reader, to open a device may do anything. */
static void what_is_no_regular_file_is_not_opened(void **state)
{
    char here[] = "/tmp/image.XXXXXX", path[64], link[64], event[4096];
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    bool short_of_files;

    (void)state;
    assert_true(watch >= 0);
    assert_non_null(mkdtemp(here));
    snprintf(path, sizeof path, "%s/fifo", here);
    snprintf(link, sizeof link, "%s/link", here);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    for (int i = 0; i < 2; i++) {
        struct spool_module m = {.pid = getpid(),
                                 .start = 0x1000,
                                 .end = 0x2000,
                                 .path = i == 0 ? path : link,
                                 .path_size = strlen(i == 0 ? path : link)};
        assert_int_equal(recordint_image_open_mapped(&m, 0, &short_of_files), -1);
        assert_false(short_of_files);
    }
    assert_int_equal(read(watch, event, sizeof event), -1);
    close(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    assert_true(read(watch, event, sizeof event) > 0); /* it would have been seen */
    close(watch);
    unlink(link);
    unlink(path);
    rmdir(here);
}

static void a_lack_of_descriptors_is_told_and_passes(void **state)
{
    struct image_files *files = recordint_image_files_new(1024);
    struct rlimit limit, none;

    (void)state;
    write_file(0, 5);
    struct spool_module m = mapping_of(0, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(number_in(recordint_image_files_get(files, &m, 0)), UINT32_MAX);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(recordint_image_files_refused(files));
    assert_false(recordint_image_files_refused(files));
    for (unsigned i = 0; i < 1000; i++)
        recordint_image_files_get(files, &m, 0);
    assert_int_equal(number_in(recordint_image_files_get(files, &m, 0)), 5);
    recordint_image_files_free(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_without_name_is_rebuilt_from_memory),
        cmocka_unit_test(files_in_memory_are_bounded_all_together),
        cmocka_unit_test(generated_code_is_not_read_as_a_file),
        cmocka_unit_test(few_descriptors_are_enough_for_many_files),
        cmocka_unit_test(a_file_that_was_closed_is_not_taken_for_another),
        cmocka_unit_test(a_file_that_was_changed_is_read_anew_for_a_new_mapping),
        cmocka_unit_test(files_that_are_not_mapped_go_but_for_the_latest),
        cmocka_unit_test(what_is_no_regular_file_is_not_opened),
        cmocka_unit_test(a_lack_of_descriptors_is_told_and_passes),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
