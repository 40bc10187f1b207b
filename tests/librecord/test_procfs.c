/* SPDX-License-Identifier: MIT */
/* What /proc says: texts that no kernel here prints, and what the running one does. */
#include "procfs_text.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "child_process.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/procfs-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

/* A file in the folder, with the folders on its way; its path is valid until the next call. */
static const char *put(const char *name, const char *text, size_t size)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* ---- reading ---- */

static void a_file_of_the_limits_size_is_read_whole_and_a_larger_one_is_refused(void **state)
{
    static const size_t limits[] = {0, 1, 4095, 4096, 4097, 8192, 100000};
    static char bytes[100001];
    char *text;
    size_t size;
    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const char *path = put("file", bytes, limits[i]);
        assert_int_equal(recordint_procfs_read(path, limits[i], &text, &size), 0);
        assert_int_equal(size, limits[i]);
        assert_int_equal(strlen(text), size);
        free(text);
        path = put("file", bytes, limits[i] + 1);
        assert_int_equal(recordint_procfs_read(path, limits[i], &text, &size), EFBIG);
    }
    assert_int_equal(recordint_procfs_read("/proc/none", 10, &text, &size), ENOENT);
}

/* ---- stat ---- */

#define REST " S 77 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 10\n"

static void a_name_may_look_like_the_fields_behind_it(void **state)
{
    static const char *const names[] = {"sh",         "",     "a b",      ")",   "(",
                                        ") R 1 2 3 ", "((()", "x\n1 (y)", ") (", "\xff)"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[256];
        struct procfs_stat stat;
        snprintf(text, sizeof(text), "5 (%s)" REST, names[i]);
        assert_int_equal(recordint_procfs_parse_stat(text, &stat), 0);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.parent, 77);
        assert_int_equal(stat.start_ticks, 123456);
    }
}

static void a_thread_of_the_kernel_has_its_flag(void **state)
{
    struct procfs_stat stat;

    (void)state;
    assert_int_equal(recordint_procfs_parse_stat("5 (sh)" REST, &stat), 0);
    assert_false(stat.kernel);
    assert_int_equal(recordint_procfs_parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 "
                                                 "0 20 0 1 0 9 0 0\n",
                                                 &stat),
                     0);
    assert_true(stat.kernel);
    assert_int_equal(recordint_procfs_stat(getpid(), 0, &stat), 0);
    assert_false(stat.kernel);
}

static void a_stat_that_ends_before_the_start_time_is_bad(void **state)
{
    char text[] = "5 (sh)" REST;
    struct procfs_stat stat;
    size_t start = (size_t)(strstr(text, "123456") - text);
    (void)state;
    for (size_t size = 0; size <= start; size++) {
        char *cut = strndup(text, size);
        assert_non_null(cut);
        assert_int_equal(recordint_procfs_parse_stat(cut, &stat), EBADMSG);
        free(cut);
    }
}

static void *named_thread(void *arg)
{
    pthread_barrier_t *barrier = arg;
    pthread_setname_np(pthread_self(), ") S (x\n 1");
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void our_threads_have_their_states_and_names(void **state)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    struct procfs_stat stat;
    char name[64];
    pid_t *tids;
    (void)state;
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, named_thread, &barrier), 0);
    pthread_barrier_wait(&barrier);

    ssize_t count = recordint_procfs_threads(getpid(), &tids);
    assert_true(count >= 2); /* a sanitizer may have one of its own */
    assert_int_equal(tids[0], getpid());
    bool seen = false;
    for (ssize_t i = 1; i < count; i++) {
        assert_true(tids[i] > tids[i - 1]);
        assert_int_equal(recordint_procfs_process_of(tids[i]), getpid());
        assert_int_equal(recordint_procfs_comm(getpid(), tids[i], name), 0);
        if (strcmp(name, ") S (x\n 1") == 0) {
            seen = true;
            assert_int_equal(recordint_procfs_stat(getpid(), tids[i], &stat), 0);
            assert_int_equal(stat.parent, getppid());
            assert_true(stat.start_ticks > 0);
        }
    }
    assert_true(seen);
    free(tids);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);

    assert_int_equal(recordint_procfs_stat(getpid(), 0, &stat), 0);
    assert_int_equal(stat.state, 'R');
    assert_int_equal(recordint_procfs_comm(getpid(), 0, name), 0);
    assert_int_equal(strncmp(name, program_invocation_short_name, 15), 0);
}

static void a_process_that_is_gone_is_said_to_be(void **state)
{
    pid_t pid = gone_process();
    struct procfs_stat stat;
    struct procfs_maps *maps;
    char name[64];
    char text[100];
    pid_t *pids;
    (void)state;
    assert_int_equal(recordint_procfs_stat(pid, 0, &stat), ENOENT);
    assert_int_equal(recordint_procfs_stat(pid, pid, &stat), ENOENT);
    assert_int_equal(recordint_procfs_comm(pid, 0, name), ENOENT);
    assert_int_equal(recordint_procfs_cmdline(pid, text, sizeof(text)), ENOENT);
    assert_int_equal(recordint_procfs_maps_open(pid, &maps), ENOENT);
    assert_int_equal(recordint_procfs_threads(pid, &pids), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(recordint_procfs_process_of(pid), 0);
    assert_int_equal(recordint_procfs_descendants(pid, &pids), 0);
    free(pids);
}

/* ---- status ---- */

static void the_last_id_of_a_status_line_counts(void **state)
{
    static const char text[] =
        "Name:\tNSpid:\\n\nTgid:\t12\nGroups:\t3 4 \nNSpid:\t12\t34\t1\nX:\t5\n";
    (void)state;
    assert_int_equal(recordint_procfs_parse_status(text, "NSpid:"), 1);
    assert_int_equal(recordint_procfs_parse_status(text, "Tgid:"), 12);
    assert_int_equal(recordint_procfs_parse_status(text, "Pid:"), 0);
    assert_int_equal(recordint_procfs_parse_status("NSpid:", "NSpid:"), 0);
    assert_int_equal(recordint_procfs_parse_status("NSpid:\t99999999999999999999\n", "NSpid:"), 0);
    assert_int_equal(recordint_procfs_parse_status("", "NSpid:"), 0);
}

/* ---- arguments ---- */

static void arguments_are_quoted_for_a_shell(void **state)
{
#define ARGUMENTS(text) text "\0", sizeof(text)
    static const struct {
        const char *arguments;
        size_t size;
        const char *quoted;
    } cases[] = {
        {ARGUMENTS("ls\0-l\0--color=no\0/a_b/c.d,e:f@g%h+i"),
         "ls -l --color=no /a_b/c.d,e:f@g%h+i"},
        {ARGUMENTS("a b\0\0$HOME\0it's\0'\0*"), "'a b' '' '$HOME' 'it'\\''s' ''\\''' '*'"},
        {ARGUMENTS("a=b\0c=d"), "'a=b' c=d"},
        {ARGUMENTS("x\ny\0\xc3\xa4\0#"), "'x\ny' '\xc3\xa4' '#'"},
        {ARGUMENTS("title\0\0\0\0"), "title"},
        {ARGUMENTS(""), "''"},
        {"", 0, ""},
    };
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        recordint_procfs_quote(cases[i].arguments, cases[i].size, text, sizeof(text));
        assert_string_equal(text, cases[i].quoted);
    }
}

static void arguments_that_do_not_fit_are_left_out_whole(void **state)
{
    static const char arguments[] = "ab\0c d\0\0it's\0";
    static const char whole[] = "ab 'c d' '' 'it'\\''s'";
    static const size_t ends_at[] = {0, 2, 8, 11, sizeof(whole) - 1};
    (void)state;
    for (size_t size = 1; size <= sizeof(whole); size++) {
        size_t expected = 0;
        for (size_t i = 0; i < sizeof(ends_at) / sizeof(ends_at[0]); i++)
            if (ends_at[i] < size)
                expected = ends_at[i];
        char *text = malloc(size);
        assert_non_null(text);
        recordint_procfs_quote(arguments, sizeof(arguments) - 1, text, size);
        assert_int_equal(strlen(text), expected);
        assert_memory_equal(text, whole, expected);
        free(text);
    }
}

/* Of the first argument, there is nothing in front that would end the text. */
static void a_first_argument_that_does_not_fit_leaves_nothing(void **state)
{
    static const char arguments[] = "it's a title\0b\0";
    (void)state;
    for (size_t size = 1; size <= strlen("'it'\\''s a title'"); size++) {
        char *text = malloc(size);
        assert_non_null(text);
        memset(text, 'x', size);
        recordint_procfs_quote(arguments, sizeof(arguments) - 1, text, size);
        assert_string_equal(text, "");
        free(text);
    }
}

static void our_arguments_are_read(void **state)
{
    char text[4096];
    char tiny[1] = "x";
    pid_t zombie = start_zombie();
    (void)state;
    assert_int_equal(recordint_procfs_cmdline(getpid(), text, sizeof(text)), 0);
    assert_non_null(strstr(text, program_invocation_short_name));
    assert_int_equal(recordint_procfs_cmdline(getpid(), tiny, 1), 0);
    assert_string_equal(tiny, "");
    assert_int_equal(recordint_procfs_cmdline(zombie, text, sizeof(text)), 0);
    assert_string_equal(text, "");
    reap_child(zombie);
}

/* ---- maps ---- */

static void lines_of_maps_are_understood(void **state)
{
    static const struct {
        const char *line;
        uint64_t start, end, file_offset, inode;
        uint32_t dev_major, dev_minor;
        bool executable;
        const char *path;
    } cases[] = {
        {"55d0c0400000-55d0c0421000 r-xp 00002000 fd:1f 1234567                    /usr/bin/a",
         0x55d0c0400000, 0x55d0c0421000, 0x2000, 1234567, 0xfd, 0x1f, true, "/usr/bin/a"},
        {"7f00-8f00 rw-p 00000000 00:00 0 ", 0x7f00, 0x8f00, 0, 0, 0, 0, false, ""},
        {"7f00-8f00 rw-p 00000000 00:00 0", 0x7f00, 0x8f00, 0, 0, 0, 0, false, ""},
        {"1000-2000 r-xs fffffffffffff000 103:fffff 18446744073709551615 /a  b (deleted)", 0x1000,
         0x2000, 0xfffffffffffff000, UINT64_MAX, 0x103, 0xfffff, true, "/a  b (deleted)"},
        {"1000-2000 --xp 0 0:0 0 /a\\012b\\012\\012c\\01", 0x1000, 0x2000, 0, 0, 0, 0, true,
         "/a\nb\n\nc\\01"},
        {"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
         0xffffffffff600000, 0xffffffffff601000, 0, 0, 0, 0, true, "[vsyscall]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct procfs_map map;
        char *line = strdup(cases[i].line);
        assert_non_null(line);
        assert_true(recordint_procfs_parse_map(line, &map));
        assert_true(map.start == cases[i].start && map.end == cases[i].end);
        assert_true(map.file_offset == cases[i].file_offset && map.inode == cases[i].inode);
        assert_int_equal(map.dev_major, cases[i].dev_major);
        assert_int_equal(map.dev_minor, cases[i].dev_minor);
        assert_int_equal(map.executable, cases[i].executable);
        assert_string_equal(map.path, cases[i].path);
        free(line);
    }
}

static void what_is_no_line_of_maps_is_refused(void **state)
{
    static const char *const lines[] = {
        "",
        "1000",
        "1000-",
        "1000-2000",
        "1000-2000 r-x",
        "1000-2000 r-xp",
        "1000-2000 r-xpp 0 0:0 0 /a",
        "1000-2000 r-xp 0 0:0",
        "1000-2000 r-xp 0 0:0 ",
        "1000-2000 r-xp 0 0:0 x",
        "1000-2000 r-xp 0 0:0 0x /a",
        "1000-2000 r-xp 0 0:100000000 0 /a",
        "1000-2000 r-xp 0 100000000:0 0 /a",
        "1000-2000 r-xp 0 0:0 18446744073709551616 /a",
        "1000-2000 r-xp 10000000000000000 0:0 0 /a",
        "1000-10000000000000000 r-xp 0 0:0 0 /a",
        "2000-2000 r-xp 0 0:0 0 /a",
        "2000-1000 r-xp 0 0:0 0 /a",
        "-1000-2000 r-xp 0 0:0 0 /a",
        " 1000-2000 r-xp 0 0:0 0 /a",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct procfs_map map;
        char *line = strdup(lines[i]);
        assert_non_null(line);
        if (recordint_procfs_parse_map(line, &map))
            fail_msg("\"%s\" was taken", lines[i]);
        free(line);
    }
}

static void a_hundred_thousand_mappings_are_read(void **state)
{
    enum { COUNT = 100000 };
    struct procfs_maps *maps;
    struct procfs_map map;
    char path[128];
    char filler[200]; /* so that lines meet the buffer's end in many ways */
    (void)state;
    snprintf(path, sizeof(path), "%s/maps", folder);
    memset(filler, 'x', sizeof(filler));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t start = (uint64_t)(i + 1) * 0x3000;
        fprintf(f, "%" PRIx64 "-%" PRIx64 " r-xp %x 08:01 %u   /lib/%.*s%u.so\n", start,
                start + 0x2000, i, i, (int)(i % sizeof(filler)), filler, i);
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(recordint_procfs_maps_open_path(path, &maps), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        char end[32];
        assert_int_equal(recordint_procfs_maps_next(maps, &map), 1);
        assert_true(map.start == (uint64_t)(i + 1) * 0x3000 && map.inode == i);
        snprintf(end, sizeof(end), "%u.so", i);
        assert_string_equal(map.path + 5 + i % sizeof(filler), end);
    }
    assert_int_equal(recordint_procfs_maps_next(maps, &map), 0);
    assert_int_equal(recordint_procfs_maps_next(maps, &map), 0);
    recordint_procfs_maps_free(maps);
}

static void an_endless_line_is_cut_and_the_next_one_is_whole(void **state)
{
    static const size_t lengths[] = {65000, 65535, 65536, 65537, 131072, 131073, 1000000};
    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        static const char first[] = "1000-2000 r-xp 0 0:0 1 /";
        static const char rest[] =
            "\nno mapping\n3000-4000 r-xp 0 0:0 2 /b\n5000-6000 r-xp 0 0:0 3 /c";
        char *text = malloc(lengths[i] + sizeof(rest));
        struct procfs_maps *maps;
        struct procfs_map map;
        assert_non_null(text);
        memset(text, 'x', lengths[i]);
        memcpy(text, first, strlen(first));
        memcpy(text + lengths[i], rest, sizeof(rest) - 1);
        assert_int_equal(recordint_procfs_maps_open_path(
                             put("long", text, lengths[i] + sizeof(rest) - 1), &maps),
                         0);
        free(text);
        assert_int_equal(recordint_procfs_maps_next(maps, &map), 1);
        assert_true(map.inode == 1 && strlen(map.path) > 60000);
        assert_int_equal(recordint_procfs_maps_next(maps, &map), 1);
        assert_true(map.inode == 2);
        assert_string_equal(map.path, "/b");
        assert_int_equal(recordint_procfs_maps_next(maps, &map), 0); /* broken off */
        recordint_procfs_maps_free(maps);
    }
    recordint_procfs_maps_free(NULL);
}

static void our_mapping_of_a_file_with_an_odd_name_is_found(void **state)
{
    struct procfs_maps *maps;
    struct procfs_map map;
    bool found = false;
    (void)state;
    int fd = memfd_create("a b\nc\\d", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0x10000), 0);
    void *at = mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0x3000);
    assert_true(at != MAP_FAILED);
    assert_int_equal(recordint_procfs_maps_open(getpid(), &maps), 0);
    while (recordint_procfs_maps_next(maps, &map)) {
        if (map.start == (uintptr_t)at) {
            struct stat st;
            assert_int_equal(fstat(fd, &st), 0);
            assert_true(map.executable && map.end - map.start == 0x1000);
            assert_int_equal(map.file_offset, 0x3000);
            assert_true(map.inode == st.st_ino);
            assert_string_equal(map.path, "/memfd:a b\nc\\d (deleted)");
            found = true;
        }
    }
    assert_true(found);
    recordint_procfs_maps_free(maps);
    munmap(at, 0x1000);
    close(fd);
}

static void a_zombie_has_no_mappings(void **state)
{
    pid_t zombie = start_zombie();
    struct procfs_maps *maps;
    struct procfs_map map;
    (void)state;
    assert_int_equal(recordint_procfs_maps_open(zombie, &maps), 0);
    assert_int_equal(recordint_procfs_maps_next(maps, &map), 0);
    recordint_procfs_maps_free(maps);
    reap_child(zombie);
}

/* ---- descendants ---- */

static void check_descendants(pid_t pid, const pid_t *expected, size_t expected_count)
{
    pid_t *pids;
    ssize_t count = recordint_procfs_descendants_in(folder, pid, &pids);
    assert_int_equal(count, expected_count);
    if (expected_count > 0)
        assert_memory_equal(pids, expected, expected_count * sizeof(*pids));
    free(pids);
}

static void put_children(pid_t pid, pid_t tid, const char *children)
{
    char name[64];
    snprintf(name, sizeof(name), "%d/task/%d/children", (int)pid, (int)tid);
    put(name, children, strlen(children));
}

static void put_parent(const char *pid, int parent)
{
    char name[64];
    char text[256];
    snprintf(name, sizeof(name), "%s/stat", pid);
    snprintf(text, sizeof(text), "%s (a) b) S %d 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 9\n", pid,
             parent);
    put(name, text, strlen(text));
}

static void lists_of_children_of_all_threads_are_followed(void **state)
{
    static const pid_t below_10[] = {3, 11, 12, 20, 30, 4194303};
    static const pid_t below_20[] = {3};
    (void)state;
    put("thread-self/children", "", 0);
    put_children(10, 10, "11 12 ");
    put_children(10, 15, "20 4194303 4194304 99999999999999999999 ");
    put_children(11, 11, "");
    put_children(12, 12, "30 ");
    put_children(12, 13, "nothing that the kernel prints");
    put_children(20, 21, "3 ");
    put_parent("77", 10); /* not looked at */
    check_descendants(10, below_10, 6);
    check_descendants(20, below_20, 1);
    check_descendants(11, NULL, 0);
    check_descendants(99, NULL, 0);
    check_descendants(0, NULL, 0);
    check_descendants(-10, NULL, 0);
}

static void lists_of_children_that_meet_again_end(void **state)
{
    static const pid_t below_1[] = {2, 3, 4};
    static const pid_t below_2[] = {1, 3, 4};
    (void)state;
    put("thread-self/children", "", 0);
    put_children(1, 1, "2 3 1 ");
    put_children(2, 2, "3 2 ");
    put_children(3, 3, "4 ");
    put_children(4, 4, "1 2 ");
    check_descendants(1, below_1, 3);
    check_descendants(2, below_2, 3);
}

static void without_lists_everybodys_parent_is_asked(void **state)
{
    static const pid_t below_10[] = {3, 11, 12, 13, 30};
    (void)state;
    put_parent("1", 0);
    put_parent("10", 1);
    put_parent("11", 10);
    put_parent("12", 10);
    put_parent("13", 12);
    put_parent("3", 12);
    put_parent("30", 3);
    put_parent("40", 1);
    put_parent("self", 10);
    put("14/stat", "14 (x", 5);
    put("15/nothing", "", 0);
    check_descendants(10, below_10, 5);
    check_descendants(30, NULL, 0);
    check_descendants(99, NULL, 0);
    check_descendants(0, NULL, 0);
}

static void parents_that_go_round_end(void **state)
{
    static const pid_t below_5[] = {6, 7};
    static const pid_t below_8[] = {5, 6, 7};
    (void)state;
    put_parent("5", 7);
    put_parent("6", 5);
    put_parent("7", 6);
    check_descendants(5, below_5, 2);
    put_parent("5", 8);
    put_parent("8", 8);
    check_descendants(8, below_8, 3);
}

static void a_chain_of_a_thousand_is_walked(void **state)
{
    enum { COUNT = 1000 };
    (void)state;
    pid_t *expected = malloc(COUNT * sizeof(*expected));
    assert_non_null(expected);
    for (int i = 0; i < COUNT; i++) {
        char pid[16];
        snprintf(pid, sizeof(pid), "%d", i + 2);
        put_parent(pid, i + 1);
        expected[i] = i + 2;
    }
    check_descendants(1, expected, COUNT);
    free(expected);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_file_of_the_limits_size_is_read_whole_and_a_larger_one_is_refused),
        cmocka_unit_test(a_name_may_look_like_the_fields_behind_it),
        cmocka_unit_test(a_thread_of_the_kernel_has_its_flag),
        cmocka_unit_test(a_stat_that_ends_before_the_start_time_is_bad),
        cmocka_unit_test(our_threads_have_their_states_and_names),
        cmocka_unit_test(a_process_that_is_gone_is_said_to_be),
        cmocka_unit_test(the_last_id_of_a_status_line_counts),
        cmocka_unit_test(arguments_are_quoted_for_a_shell),
        cmocka_unit_test(arguments_that_do_not_fit_are_left_out_whole),
        cmocka_unit_test(a_first_argument_that_does_not_fit_leaves_nothing),
        cmocka_unit_test(our_arguments_are_read),
        cmocka_unit_test(lines_of_maps_are_understood),
        cmocka_unit_test(what_is_no_line_of_maps_is_refused),
        IN_FOLDER(a_hundred_thousand_mappings_are_read),
        IN_FOLDER(an_endless_line_is_cut_and_the_next_one_is_whole),
        cmocka_unit_test(our_mapping_of_a_file_with_an_odd_name_is_found),
        cmocka_unit_test(a_zombie_has_no_mappings),
        IN_FOLDER(lists_of_children_of_all_threads_are_followed),
        IN_FOLDER(lists_of_children_that_meet_again_end),
        IN_FOLDER(without_lists_everybodys_parent_is_asked),
        IN_FOLDER(parents_that_go_round_end),
        IN_FOLDER(a_chain_of_a_thousand_is_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
