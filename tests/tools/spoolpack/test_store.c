/* SPDX-License-Identifier: MIT */
/* Stores, as folders and as tar files: what is put is there, once, whole, and nothing else is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "archive_name.h"
#include "cli.h"
#include "spool/sym.h"
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- an empty folder for each test ----------------------------------------------------------- */

static char folder[] = "/tmp/test_store.XXXXXX";

static int enter(void **state)
{
    (void)state;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    umask(022);
    return mkdtemp(folder) == NULL || chdir(folder) != 0 ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static int leave(void **state)
{
    (void)state;
    umask(022);
    return chdir("/") == 0 && nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : -1;
}

/* SHA-256 of "abc" and of nothing, as FIPS 180 has them. */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* What fills more than one piece of any buffer. */
#define LARGE_BYTES ((size_t)1000003)

static char *make_large(void)
{
    char *data = malloc(LARGE_BYTES);

    assert_non_null(data);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        data[i] = (char)(i * 7 + i / 251);
    return data;
}

static void put_text(struct store *s, const char *name, const char *text, bool was_there)
{
    struct stored stored;

    assert_int_equal(store_put(s, name, text, strlen(text), &stored), 0);
    assert_int_equal(stored.was_there, was_there);
    assert_int_equal(stored.size_bytes, strlen(text));
}

static void replace_text(struct store *s, const char *name, const char *text, bool keep_larger,
                         size_t size_bytes)
{
    struct stored stored;

    assert_int_equal(store_replace(s, name, text, strlen(text), keep_larger, &stored), 0);
    assert_int_equal(stored.size_bytes, size_bytes);
}

/* The store at path has this file with this text, for those who read archives. */
static void assert_text(const char *path, const char *name, const void *text, size_t size)
{
    struct sym_archive *a = sym_archive_new();
    char *got = malloc(size + 2);
    size_t at = 0;
    ssize_t n;
    int fd;

    assert_non_null(got);
    assert_non_null(a);
    assert_int_equal(sym_archive_open(a, path), 0);
    assert_string_equal(sym_archive_fault(a), "");
    assert_int_equal(sym_archive_open_file(a, name, &fd), 0);
    while (at <= size && (n = read(fd, got + at, size + 1 - at)) > 0)
        at += (size_t)n;
    assert_int_equal(at, size);
    assert_memory_equal(got, text, size);
    close(fd);
    sym_archive_free(a);
    free(got);
}

static void assert_absent(const char *path, const char *name)
{
    struct sym_archive *a = sym_archive_new();
    int fd;

    assert_non_null(a);
    assert_int_equal(sym_archive_open(a, path), 0);
    assert_int_equal(sym_archive_open_file(a, name, &fd), SYM_ERR_NOT_FOUND);
    sym_archive_free(a);
}

static int temporaries;

static int count_temporary(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    temporaries +=
        strncmp(path + where->base, ".tmp-", 5) == 0 || strstr(path, "spooltools-") != NULL;
    return 0;
}

static void assert_no_temporaries(void)
{
    temporaries = 0;
    assert_int_equal(nftw(".", count_temporary, 16, FTW_PHYS), 0);
    assert_int_equal(temporaries, 0);
}

static mode_t mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

/* ---- folders ---------------------------------------------------------------------------------- */

static void a_folder_has_what_was_put(void **state)
{
    struct store *s = store_open("store");
    struct stored stored;

    (void)state;
    assert_non_null(s);
    assert_string_equal(store_folder(s), "store");
    assert_int_equal(store_put(s, "a/b/c", "abc", 3, &stored), 0);
    assert_false(stored.was_there);
    assert_string_equal(stored.sha256, ABC);
    assert_int_equal(store_put(s, "empty", "", 0, &stored), 0);
    assert_string_equal(stored.sha256, NOTHING);
    assert_int_equal(store_find(s, "a/b/c", &stored), 1);
    assert_string_equal(stored.sha256, ABC);
    assert_int_equal(store_find(s, "a/b", &stored), 0);
    assert_int_equal(store_find(s, "a/x", &stored), 0);
    assert_int_equal(store_new_bytes(s), 3);
    assert_int_equal(store_finish(s), 0);
    store_free(s);
    assert_text("store", "a/b/c", "abc", 3);
    assert_int_equal(mode_of("store/a/b"), 0755);
    assert_int_equal(mode_of("store/a/b/c"), 0644);
    assert_no_temporaries();
}

static void a_file_that_is_there_stays_and_is_young_again(void **state)
{
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct store *s = store_open("store");
    struct stat before, after;
    struct stored stored;

    (void)state;
    put_text(s, "x", "abc", false);
    put_text(s, "x", "abc", true);
    store_free(s);
    assert_int_equal(utimensat(AT_FDCWD, "store/x", old, 0), 0);
    assert_int_equal(stat("store/x", &before), 0);

    s = store_open("store/");
    assert_int_equal(store_put(s, "x", "abc", 3, &stored), 0);
    assert_true(stored.was_there);
    assert_string_equal(stored.sha256, ABC);
    assert_int_equal(store_new_bytes(s), 0);
    store_free(s);
    assert_int_equal(stat("store/x", &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_true(after.st_mtim.tv_sec > 1000);
}

static void a_file_that_a_crash_left_short_is_written_anew(void **state)
{
    struct store *s = store_open("store");

    (void)state;
    put_text(s, "x", "abc", false);
    assert_int_equal(truncate("store/x", 1), 0);
    put_text(s, "x", "abc", false);
    store_free(s);
    assert_text("store", "x", "abc", 3);
}

static void of_two_files_that_may_be_replaced_the_larger_one_stays_if_that_is_wanted(void **state)
{
    struct store *s = store_open("store");
    struct stored stored;

    (void)state;
    replace_text(s, "c/k", "larger", true, 6);
    replace_text(s, "c/k", "less", true, 6);
    replace_text(s, "c/m", "larger", false, 6);
    replace_text(s, "c/m", "less", false, 4);
    store_free(s);
    s = store_open("store"); /* another run */
    replace_text(s, "c/k", "abc", true, 6);
    assert_int_equal(store_find(s, "c/k", &stored), 1);
    assert_int_equal(stored.size_bytes, 6);
    replace_text(s, "c/k", "larger still", true, 12);
    store_free(s);
    assert_text("store", "c/k", "larger still", 12);
    assert_text("store", "c/m", "less", 4);
}

static void a_large_file_is_copied_by_its_descriptor(void **state)
{
    struct store *s = store_open("store");
    char *data = make_large();
    int fd = open("source", O_RDWR | O_CREAT | O_EXCL, 0600);
    struct stored stored, again;

    (void)state;
    assert_int_equal(write(fd, data, LARGE_BYTES), LARGE_BYTES);
    assert_int_equal(store_put_file(s, "x.debug", fd, "source", &stored), 0);
    assert_int_equal(stored.size_bytes, LARGE_BYTES);
    assert_int_equal(store_put(s, "y", data, LARGE_BYTES, &again), 0);
    assert_string_equal(stored.sha256, again.sha256);
    assert_int_equal(store_put_file(s, "x.debug", fd, "source", &again), 0);
    assert_true(again.was_there);
    assert_string_equal(stored.sha256, again.sha256);
    close(fd);
    store_free(s);
    assert_text("store", "x.debug", data, LARGE_BYTES);
    free(data);
}

static void no_umask_takes_the_store_from_its_owner(void **state)
{
    struct store *s;

    (void)state;
    umask(0777);
    s = store_open("store");
    assert_non_null(s);
    put_text(s, "a/b/c", "abc", false);
    store_free(s);
    umask(027);
    s = store_open("other");
    put_text(s, "a/c", "abc", false);
    store_free(s);
    assert_int_equal(mode_of("store"), 0700);
    assert_int_equal(mode_of("store/a/b"), 0700);
    assert_int_equal(mode_of("store/a/b/c"), 0600);
    assert_int_equal(mode_of("other/a"), 0750);
    assert_int_equal(mode_of("other/a/c"), 0640);
}

static void folders_pass_their_group_on(void **state)
{
    struct store *s;

    (void)state;
    assert_int_equal(mkdir("store", 0755), 0);
    assert_int_equal(chmod("store", 02775), 0);
    if (mode_of("store") != 02775) {
        print_message("this file system has no set-group-id folders\n");
        skip();
    }
    s = store_open("store");
    put_text(s, "a/b/c", "abc", false);
    store_free(s);
    assert_int_equal(mode_of("store/a/b"), 02755);
}

static void links_in_a_store_are_replaced_not_followed(void **state)
{
    struct store *s = store_open("store");

    (void)state;
    assert_int_equal(symlink("../outside", "store/x"), 0);
    put_text(s, "x", "abc", false);
    store_free(s);
    assert_int_equal(access("outside", F_OK), -1);
    assert_text("store", "x", "abc", 3);
}

static void a_list_has_the_names_of_one_folder_in_order(void **state)
{
    struct store *s = store_open("store");
    struct store_names names;

    (void)state;
    put_text(s, "d/b", "1", false);
    put_text(s, "d/a", "2", false);
    put_text(s, "d/c/e", "3", false);
    assert_int_equal(store_list(s, "d", &names), 0);
    assert_int_equal(names.count, 3);
    assert_string_equal(names.items[0], "a");
    assert_string_equal(names.items[1], "b");
    assert_string_equal(names.items[2], "c");
    store_free_names(&names);
    assert_int_equal(store_list(s, "none", &names), 0);
    assert_int_equal(names.count, 0);
    store_free_names(&names);
    store_free(s);
}

static void what_is_in_the_way_is_an_error(void **state)
{
    struct stored stored;
    struct store *s;

    (void)state;
    close(open("file", O_WRONLY | O_CREAT, 0644));
    assert_null(store_open("file"));
    assert_null(store_open("none/store"));
    assert_int_equal(access("none", F_OK), -1);
    assert_int_equal(mkdir("dir.tar", 0755), 0);
    assert_null(store_open("dir.tar"));

    s = store_open("store");
    put_text(s, "x", "abc", false);
    assert_int_equal(store_put(s, "x/y", "abc", 3, &stored), -1);
    assert_int_equal(mkdir("store/d", 0755), 0);
    assert_int_equal(store_put(s, "d", "abc", 3, &stored), -1);
    store_free(s);
    assert_no_temporaries();
}

/* ---- failures --------------------------------------------------------------------------------- */

/* Puts more than this process may write; its status as waitpid has it. */
static int put_beyond_limit(bool ignore_signal, const char *place)
{
    pid_t child = fork();
    int status = -1;

    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {4096, 4096};
        char *data = malloc(LARGE_BYTES);
        struct stored stored;
        struct store *s;
        uint64_t random = 1;
        int rc;

        if (data == NULL || setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(9);
        if (ignore_signal)
            signal(SIGXFSZ, SIG_IGN);
        for (size_t i = 0; i < LARGE_BYTES; i++) { /* which does not become small by packing */
            random = random * 6364136223846793005u + 1442695040888963407u;
            data[i] = (char)(random >> 56);
        }
        s = store_open(place);
        rc = s == NULL ? -2 : store_put(s, "a/x", data, LARGE_BYTES, &stored);
        if (rc == 0)
            rc = store_finish(s);
        free(data);
        store_free(s);
        _exit(rc == -1 ? 1 : 8);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_failure_leaves_neither_the_file_nor_a_temporary_one(void **state)
{
    const char *const places[] = {"store", "x.tar", "x.tgz"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        int status = put_beyond_limit(true, places[i]);

        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
        assert_no_temporaries();
        assert_int_equal(access("store/a/x", F_OK), -1);
        assert_int_equal(access("x.tar", F_OK), -1);
        assert_int_equal(access("x.tgz", F_OK), -1);
    }
}

static void a_signal_leaves_neither_the_file_nor_a_temporary_one(void **state)
{
    const char *const places[] = {"store", "x.tar", "x.tgz"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        int status = put_beyond_limit(false, places[i]);

        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGXFSZ);
        assert_no_temporaries();
        assert_int_equal(access("store/a/x", F_OK), -1);
        assert_int_equal(access("x.tar", F_OK), -1);
        assert_int_equal(access("x.tgz", F_OK), -1);
    }
}

static void packs_at_once_put_one_file(void **state)
{
    enum { PACKS = 8 };
    int failed = 0;

    (void)state;
    for (int i = 0; i < PACKS; i++) {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            char *data = malloc(LARGE_BYTES);
            struct store *s = store_open("store");
            struct stored stored;
            int rc = s && data ? 0 : -1;

            if (rc == 0)
                memset(data, 'x', LARGE_BYTES);
            for (int j = 0; j < 4 && rc == 0; j++) {
                char name[32];

                snprintf(name, sizeof name, "%d/a/b", j);
                rc = store_put(s, name, data, LARGE_BYTES, &stored);
            }
            store_free(s);
            free(data);
            _exit(rc == 0 ? 0 : 1);
        }
    }
    for (int i = 0; i < PACKS; i++) {
        int status;

        assert_true(wait(&status) > 0);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
    assert_no_temporaries();
    for (int j = 0; j < 4; j++) {
        char name[32];
        struct stat status;

        snprintf(name, sizeof name, "store/%d/a/b", j);
        assert_int_equal(stat(name, &status), 0);
        assert_int_equal(status.st_size, LARGE_BYTES);
    }
}

/* ---- tar files -------------------------------------------------------------------------------- */

static const char *const tars[] = {"x.tar", "x.tar.gz", "x.tgz"};

static void a_tar_file_has_what_was_put_each_name_once(void **state)
{
    char *large = make_large();

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct store *s = store_open(tars[i]);
        struct stored stored;

        assert_non_null(s);
        assert_null(store_folder(s));
        assert_int_equal(store_find(s, "a/x", &stored), 0);
        put_text(s, "a/x", "abc", false);
        put_text(s, "a/x", "abc", true);
        assert_int_equal(store_find(s, "a/x", &stored), 1);
        assert_string_equal(stored.sha256, ABC);
        assert_int_equal(store_put(s, "a/large", large, LARGE_BYTES, &stored), 0);
        put_text(s, "a/empty", "", false);
        replace_text(s, "captures/1/manifest-1.json", "m", false, 1);
        replace_text(s, "captures/1/kernel.syms", "less", true, 4);
        replace_text(s, "captures/1/kernel.syms", "larger", true, 6);
        replace_text(s, "captures/1/kernel.syms", "less", true, 6);
        assert_int_equal(access(tars[i], F_OK), -1);
        assert_int_equal(store_finish(s), 0);
        store_free(s);
        assert_text(tars[i], "a/x", "abc", 3);
        assert_text(tars[i], "a/large", large, LARGE_BYTES);
        assert_text(tars[i], "a/empty", "", 0);
        assert_text(tars[i], "captures/1/kernel.syms", "larger", 6);
        assert_text(tars[i], "captures/1/manifest-1.json", "m", 1);
        assert_absent(tars[i], "a/y");
        assert_int_equal(mode_of(tars[i]), 0644);
    }
    assert_no_temporaries();
    free(large);
}

static void a_manifest_is_the_last_file_of_a_tar_file(void **state)
{
    struct store *s = store_open("x.tar");
    char block[512];
    char last[101] = "";
    FILE *file;

    (void)state;
    replace_text(s, "captures/1/manifest-1.json", "m", false, 1);
    replace_text(s, "captures/1/kallsyms", "k", false, 1);
    put_text(s, "a", "abc", false);
    assert_int_equal(store_finish(s), 0);
    store_free(s);
    file = fopen("x.tar", "r");
    assert_non_null(file);
    while (fread(block, sizeof block, 1, file) == 1 && block[0] != '\0') {
        memcpy(last, block, 100);
        assert_int_equal(fseek(file, 512, SEEK_CUR), 0); /* all files have one block */
    }
    fclose(file);
    assert_string_equal(last, "captures/1/manifest-1.json");
}

static void the_same_files_make_the_same_tar_file(void **state)
{
    static char bytes[2][4096];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct store *s = store_open("x.tgz");
        FILE *file;

        umask(i == 0 ? 022 : 077);
        store_set_time(s, 1700000000);
        put_text(s, "a/x", "abc", false);
        replace_text(s, "captures/1/manifest-1.json", "m", false, 1);
        assert_int_equal(store_finish(s), 0);
        store_free(s);
        file = fopen("x.tgz", "r");
        assert_non_null(file);
        assert_in_range(fread(bytes[i], 1, sizeof bytes[i], file), 100, 1000);
        fclose(file);
    }
    assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
}

static void long_names_are_whole(void **state)
{
    static const size_t sizes[] = {99, 100, 101, 155, 200, 255, 256, 257, 1000};
    struct store *s = store_open("x.tar");
    char *names[sizeof sizes / sizeof sizes[0]];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        names[i] = malloc(sizes[i] + 1);
        assert_non_null(names[i]);
        for (size_t j = 0; j < sizes[i]; j++)
            names[i][j] =
                i % 2 == 0 && j % 50 == 49 && j + 1 < sizes[i] ? '/' : (char)('a' + j % 26);
        names[i][0] = (char)('A' + i);
        names[i][sizes[i]] = '\0';
        put_text(s, names[i], names[i], false);
    }
    assert_int_equal(store_finish(s), 0);
    store_free(s);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_text("x.tar", names[i], names[i], sizes[i]);
        free(names[i]);
    }
}

static void a_tar_file_that_is_not_finished_leaves_the_old_one(void **state)
{
    struct store *s = store_open("x.tar");

    (void)state;
    put_text(s, "a", "old", false);
    assert_int_equal(store_finish(s), 0);
    store_free(s);
    s = store_open("x.tar");
    put_text(s, "a", "new", false);
    store_free(s);
    assert_text("x.tar", "a", "old", 3);
    assert_no_temporaries();
}

static void names_tell_folders_from_tar_files(void **state)
{
    (void)state;
    assert_true(archive_name_is_tar("-"));
    assert_true(archive_name_is_tar("a/x.tar"));
    assert_true(archive_name_is_tar("x.tar.gz"));
    assert_true(archive_name_is_tar("x.tgz"));
    assert_false(archive_name_is_tar("x"));
    assert_false(archive_name_is_tar("x.tar/"));
    assert_false(archive_name_is_tar(".tar"));
    assert_false(archive_name_is_tar("x.gz"));
    assert_true(archive_name_misleads("x.gz"));
    assert_true(archive_name_misleads("a.b/x.zip"));
    assert_false(archive_name_misleads("x.tar.gz"));
    assert_false(archive_name_misleads(".gz"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        TEST(a_folder_has_what_was_put),
        TEST(a_file_that_is_there_stays_and_is_young_again),
        TEST(a_file_that_a_crash_left_short_is_written_anew),
        TEST(of_two_files_that_may_be_replaced_the_larger_one_stays_if_that_is_wanted),
        TEST(a_large_file_is_copied_by_its_descriptor),
        TEST(no_umask_takes_the_store_from_its_owner),
        TEST(folders_pass_their_group_on),
        TEST(links_in_a_store_are_replaced_not_followed),
        TEST(a_list_has_the_names_of_one_folder_in_order),
        TEST(what_is_in_the_way_is_an_error),
        TEST(a_failure_leaves_neither_the_file_nor_a_temporary_one),
        TEST(a_signal_leaves_neither_the_file_nor_a_temporary_one),
        TEST(packs_at_once_put_one_file),
        TEST(a_tar_file_has_what_was_put_each_name_once),
        TEST(a_manifest_is_the_last_file_of_a_tar_file),
        TEST(the_same_files_make_the_same_tar_file),
        TEST(long_names_are_whole),
        TEST(a_tar_file_that_is_not_finished_leaves_the_old_one),
        TEST(names_tell_folders_from_tar_files),
    };

    cli_set_program("test_store", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
