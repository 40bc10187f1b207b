/* SPDX-License-Identifier: MIT */
/* Files of mappings that only the process's memory still has. */
#define _GNU_SOURCE /* memfd_create */
#include "image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534
#define FILE_BYTES ((size_t)32 << 20)

/* The image found for a nameless file that begins so, by somebody who may not follow links of mappings. Exits with 2 for
 * none, 3 for one, plus 10 when the file's holes were filled. */
static void look_at_memory(const void *beginning, size_t size)
{
    int fd = memfd_create("code", MFD_CLOEXEC);
    struct image_files *files = recordint_image_files_new();
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
    /* A header without segments is enough of a program here. */
    static const uint8_t header[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 3, [18] = 62, [20] = 1};

    (void)state;
    assert_int_equal(outcome(header, sizeof header), 13);
}

static void generated_code_is_not_read_as_a_file(void **state)
{
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};

    (void)state;
    assert_int_equal(outcome(code, sizeof code), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_without_name_is_rebuilt_from_memory),
        cmocka_unit_test(generated_code_is_not_read_as_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
