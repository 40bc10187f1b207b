/* SPDX-License-Identifier: MIT */
/* Where documents go: files that appear only when they are complete, links, devices, failures
 * and signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli.h"
#include "output.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- an empty folder for each test ----------------------------------------------------------- */

static char folder[] = "/tmp/test_output.XXXXXX";

static int enter(void **state)
{
    (void)state;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return -1;
    umask(022);
    return 0;
}

static int leave(void **state)
{
    DIR *dir = opendir(folder); /* not ".": nothing else may ever be emptied */
    struct dirent *entry;

    (void)state;
    if (chdir(folder) != 0)
        return -1;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (unlink(entry->d_name) != 0)
            rmdir(entry->d_name);
    }
    closedir(dir);
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void put_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void expect_file(const char *name, const char *text)
{
    char got[4096];
    FILE *file = fopen(name, "r");
    size_t size;

    if (file == NULL)
        fail_msg("no file %s", name);
    size = fread(got, 1, sizeof got - 1, file);
    got[size] = '\0';
    fclose(file);
    assert_string_equal(got, text);
}

/* The number of files here, hidden ones included: temporary files that stay would count. */
static size_t count_files(void)
{
    DIR *dir = opendir(".");
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(dir)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static mode_t mode_of(const char *name)
{
    struct stat status;

    assert_int_equal(stat(name, &status), 0);
    return status.st_mode & 07777;
}

/* What a child process that runs fn writes to standard error, and how it ended. fn's result is
 * its status. */
struct child {
    int status;
    char err[1024];
};

static void in_child(struct child *child, int (*fn)(void))
{
    int pipes[2];
    pid_t pid;
    size_t size = 0;
    ssize_t got;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(pipes[1], 2);
        close(pipes[0]);
        close(pipes[1]);
        _exit(fn());
    }
    close(pipes[1]);
    while ((got = read(pipes[0], child->err + size, sizeof child->err - 1 - size)) > 0)
        size += (size_t)got;
    child->err[size] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &child->status, 0), pid);
}

static void expect_exit(int (*fn)(void), int status, const char *err)
{
    struct child child;

    in_child(&child, fn);
    assert_string_equal(child.err, err);
    assert_true(WIFEXITED(child.status));
    assert_int_equal(WEXITSTATUS(child.status), status);
}

static int write_document(const char *path, const char *text)
{
    struct tool_output out;

    if (output_open(&out, path, false) != 0)
        return 3;
    output_text(&out, text);
    return output_commit(&out) == 0 ? 0 : 1;
}

/* ---- regular files --------------------------------------------------------------------------- */

static void a_new_file_appears_at_the_commit(void **state)
{
    struct tool_output out;

    (void)state;
    assert_int_equal(output_open(&out, "new", false), 0);
    assert_true(output_is_file(&out));
    output_text(&out, "hello\n");
    assert_int_equal(output_flush(&out), 0);
    assert_int_not_equal(access("new", F_OK), 0);
    assert_int_equal(output_commit(&out), 0);
    expect_file("new", "hello\n");
    assert_int_equal(mode_of("new"), 0644);
    assert_int_equal(count_files(), 1);
}

static void an_existing_file_is_replaced_and_keeps_its_mode(void **state)
{
    (void)state;
    put_file("old", "old content");
    chmod("old", 0640);
    assert_int_equal(write_document("old", "new"), 0);
    expect_file("old", "new");
    assert_int_equal(mode_of("old"), 0640);
    assert_int_equal(count_files(), 1);
}

static void an_abort_leaves_the_old_file(void **state)
{
    struct tool_output out;

    (void)state;
    put_file("old", "old content");
    assert_int_equal(output_open(&out, "old", false), 0);
    output_text(&out, "new");
    output_flush(&out);
    output_abort(&out);
    expect_file("old", "old content");
    assert_int_equal(count_files(), 1);
    assert_int_equal(output_open(&out, "none", false), 0);
    output_abort(&out);
    output_abort(&out);
    assert_int_equal(count_files(), 1);
}

static void input_and_output_may_be_the_same_file(void **state)
{
    struct tool_output out;
    char text[16] = "";
    FILE *in;

    (void)state;
    put_file("same", "content");
    in = fopen("same", "r");
    assert_int_equal(output_open(&out, "same", false), 0);
    output_text(&out, "<");
    assert_int_equal(fread(text, 1, sizeof text - 1, in), 7);
    output_text(&out, text);
    assert_int_equal(output_commit(&out), 0);
    fclose(in);
    expect_file("same", "<content");
}

static void long_names_work(void **state)
{
    char name[256];

    (void)state;
    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(write_document(name, "x"), 0);
    expect_file(name, "x");
}

static void a_relative_path_with_folders_works(void **state)
{
    (void)state;
    mkdir("d", 0755);
    assert_int_equal(write_document("d/../d/file", "x"), 0);
    expect_file("d/file", "x");
    assert_int_equal(unlink("d/file"), 0);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void the_target_of_a_link_is_replaced(void **state)
{
    struct stat status;

    (void)state;
    mkdir("d", 0755);
    put_file("d/target", "old");
    assert_int_equal(symlink("target", "d/link"), 0);
    assert_int_equal(symlink("d/link", "link"), 0);
    assert_int_equal(write_document("link", "new"), 0);
    expect_file("d/target", "new");
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(lstat("d/link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    unlink("d/link");
    unlink("d/target");
}

static void the_target_of_a_dangling_link_is_made(void **state)
{
    (void)state;
    mkdir("d", 0755);
    assert_int_equal(symlink("d/absent", "link"), 0);
    assert_int_equal(write_document("link", "new"), 0);
    expect_file("d/absent", "new");
    unlink("d/absent");
}

static int write_to_loop(void)
{
    return write_document("loop", "x");
}

static void a_circle_of_links_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(symlink("loop", "loop"), 0);
    expect_exit(write_to_loop, 3, "test: loop: open failed: Too many levels of symbolic links\n");
}

/* ---- what is refused ------------------------------------------------------------------------- */

static int write_to_folder(void)
{
    return write_document(".", "x");
}
static int write_to_absent_folder(void)
{
    return write_document("absent/file", "x");
}
static int write_to_slash(void)
{
    return write_document("absent/", "x");
}
static int write_below_file(void)
{
    return write_document("file/x", "x");
}

static void what_cannot_be_a_file_is_an_error(void **state)
{
    (void)state;
    put_file("file", "");
    expect_exit(write_to_folder, 3, "test: .: is a directory\n");
    expect_exit(write_to_slash, 3, "test: absent/: open failed: Is a directory\n");
    expect_exit(write_to_absent_folder, 3,
                "test: absent/file: temporary file beside it failed: No such file or directory\n");
    expect_exit(write_below_file, 3, "test: file/x: open failed: Not a directory\n");
    assert_int_equal(count_files(), 1);
}

static int write_read_only(void)
{
    if (geteuid() == 0 && seteuid(65534) != 0)
        return 99;
    return write_document("file", "x");
}

static void a_read_only_file_is_not_replaced(void **state)
{
    (void)state;
    put_file("file", "old");
    chmod("file", 0444);
    chmod(".", 0777); /* a rename would be permitted */
    expect_exit(write_read_only, 3, "test: file: open failed: Permission denied\n");
    expect_file("file", "old");
}

/* ---- what is written directly ---------------------------------------------------------------- */

static void a_fifo_is_written_directly(void **state)
{
    char text[16] = "";
    struct stat status;
    int fd;

    (void)state;
    assert_int_equal(mkfifo("fifo", 0644), 0);
    fd = open("fifo", O_RDWR); /* so that nothing blocks */
    assert_int_equal(write_document("fifo", "through"), 0);
    assert_int_equal(read(fd, text, sizeof text - 1), 7);
    assert_string_equal(text, "through");
    close(fd);
    assert_int_equal(stat("fifo", &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_int_equal(count_files(), 1);
}

static int write_to_full(void)
{
    return write_document("/dev/full", "x");
}
static int write_much_to_full(void)
{
    struct tool_output out;

    if (output_open(&out, "/dev/full", false) != 0)
        return 3;
    for (int i = 0; i < 100000 && !output_failed(&out); i++)
        output_text(&out, "0123456789");
    if (!output_failed(&out))
        return 4;
    output_printf(&out, "%s", "more");
    output_byte(&out, 'x');
    return output_commit(&out) == 0 ? 0 : 1;
}

static void a_full_disk_is_an_error_once(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0) {
        printf("no /dev/full\n");
        skip();
    }
    assert_int_equal(write_document("/dev/null", "x"), 0);
    expect_exit(write_to_full, 1, "test: /dev/full: write failed: No space left on device\n");
    expect_exit(write_much_to_full, 1, "test: /dev/full: write failed: No space left on device\n");
}

static int write_to_closed_stdout(void)
{
    close(1);
    return write_document(NULL, "x");
}
static int write_to_full_stdout(void)
{
    dup2(open("/dev/full", O_WRONLY), 1);
    return write_document("-", "x");
}

static void standard_output_is_named_in_messages(void **state)
{
    (void)state;
    expect_exit(write_to_closed_stdout, 1,
                "test: standard output: write failed: Bad file descriptor\n");
    expect_exit(write_to_full_stdout, 1,
                "test: standard output: write failed: No space left on device\n");
}

static int write_to_closed_pipe(void)
{
    int pipes[2];

    signal(SIGPIPE, SIG_IGN);
    if (pipe(pipes) != 0)
        return 99;
    close(pipes[0]);
    dup2(pipes[1], 1);
    return write_document(NULL, "x");
}

static void an_ignored_closed_pipe_ends_silently(void **state)
{
    (void)state;
    expect_exit(write_to_closed_pipe, 1, "");
}

/* ---- signals and exit ------------------------------------------------------------------------ */

static int ending_signal;

static int die_with_open_output(void)
{
    struct tool_output out;

    if (output_open(&out, "old", false) != 0)
        return 3;
    output_text(&out, "half of it");
    output_flush(&out);
    raise(ending_signal);
    return 0;
}

static void a_signal_leaves_no_temporary_file(void **state)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGXCPU};
    struct child child;

    (void)state;
    put_file("old", "old content");
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        ending_signal = signals[i];
        in_child(&child, die_with_open_output);
        assert_true(WIFSIGNALED(child.status));
        assert_int_equal(WTERMSIG(child.status), signals[i]);
        expect_file("old", "old content");
        assert_int_equal(count_files(), 1);
    }
}

static int ignore_and_commit(void)
{
    struct tool_output out;

    signal(SIGHUP, SIG_IGN);
    if (output_open(&out, "old", false) != 0)
        return 3;
    raise(SIGHUP);
    output_text(&out, "new");
    return output_commit(&out) == 0 ? 0 : 1;
}

static void an_ignored_signal_stays_ignored(void **state)
{
    (void)state;
    put_file("old", "old content");
    expect_exit(ignore_and_commit, 0, "");
    expect_file("old", "new");
}

static int exit_with_open_output(void)
{
    static struct tool_output out; /* the exit handler looks at it */

    if (output_open(&out, "old", false) == 0)
        exit(7);
    return 3;
}

static void an_exit_leaves_no_temporary_file(void **state)
{
    (void)state;
    put_file("old", "old content");
    expect_exit(exit_with_open_output, 7, "");
    expect_file("old", "old content");
    assert_int_equal(count_files(), 1);
}

/* ---- formatting ------------------------------------------------------------------------------ */

static void numbers_are_written_in_full(void **state)
{
    struct tool_output out;

    (void)state;
    assert_int_equal(output_open(&out, "numbers", false), 0);
    output_u64(&out, 0);
    output_byte(&out, ' ');
    output_u64(&out, UINT64_MAX);
    output_byte(&out, ' ');
    output_i64(&out, INT64_MIN);
    output_byte(&out, ' ');
    output_i64(&out, INT64_MAX);
    output_printf(&out, " %s %d", "text", 5);
    assert_int_equal(output_commit(&out), 0);
    expect_file("numbers",
                "0 18446744073709551615 -9223372036854775808 9223372036854775807 text 5");
}

/* Every way of writing, over several borders of the buffer; the whole is compared. */
static void the_buffer_has_no_seams(void **state)
{
    enum { ROUNDS = 3000 };
    size_t block = 1000, capacity = (size_t)ROUNDS * (block * 2 + 300) + OUTPUT_BUFFER_SIZE * 3;
    char *expected = malloc(capacity), *got = malloc(capacity), *text = malloc(block + 1);
    char *large = malloc(OUTPUT_BUFFER_SIZE * 2);
    struct tool_output out;
    size_t size = 0, flushed;
    FILE *file;

    (void)state;
    memset(text, 't', block);
    text[block] = '\0';
    memset(large, 'L', OUTPUT_BUFFER_SIZE * 2);
    assert_int_equal(output_open(&out, "large", false), 0);
    for (int i = 0; i < ROUNDS; i++) {
        char *room;

        size += (size_t)sprintf(expected + size, "%d|%s%s.", i, text, "abc");
        output_u64(&out, (uint64_t)i);
        output_byte(&out, '|');
        output_write(&out, text, block);
        room = output_reserve(&out, 3);
        memcpy(room, "abc", 3);
        output_take(&out, 3);
        output_byte(&out, '.');
        assert_true(output_bytes(&out) == size);
    }
    memcpy(expected + size, large, OUTPUT_BUFFER_SIZE * 2);
    size += OUTPUT_BUFFER_SIZE * 2;
    output_write(&out, large, OUTPUT_BUFFER_SIZE * 2);
    size += (size_t)sprintf(expected + size, "%5000d", 1); /* longer than what is reserved */
    output_printf(&out, "%5000d", 1);
    output_write(&out, NULL, 0);
    assert_int_equal(output_commit(&out), 0);
    file = fopen("large", "r");
    flushed = fread(got, 1, capacity, file);
    fclose(file);
    assert_int_equal(flushed, size);
    assert_memory_equal(got, expected, size);
    free(expected);
    free(got);
    free(text);
    free(large);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_file_appears_at_the_commit),
        TEST(an_existing_file_is_replaced_and_keeps_its_mode),
        TEST(an_abort_leaves_the_old_file),
        TEST(input_and_output_may_be_the_same_file),
        TEST(long_names_work),
        TEST(a_relative_path_with_folders_works),
        TEST(the_target_of_a_link_is_replaced),
        TEST(the_target_of_a_dangling_link_is_made),
        TEST(a_circle_of_links_is_an_error),
        TEST(what_cannot_be_a_file_is_an_error),
        TEST(a_read_only_file_is_not_replaced),
        TEST(a_fifo_is_written_directly),
        TEST(a_full_disk_is_an_error_once),
        TEST(standard_output_is_named_in_messages),
        TEST(an_ignored_closed_pipe_ends_silently),
        TEST(a_signal_leaves_no_temporary_file),
        TEST(an_ignored_signal_stays_ignored),
        TEST(an_exit_leaves_no_temporary_file),
        TEST(numbers_are_written_in_full),
        TEST(the_buffer_has_no_seams),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
