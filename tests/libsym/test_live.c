/* SPDX-License-Identifier: MIT */
/* What /proc says of a process, and when it is not the capture's. */
#include "live.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "fake_proc.h"

#define US 1000000u

/* A capture from the 100th to the 200th second after the boot. */
static const struct sym_capture capture = {.size = sizeof(capture),
                                           .has_start_time = true,
                                           .start_time_us = (FAKE_BOOT_S + 100) * (uint64_t)US,
                                           .has_end_time = true,
                                           .end_time_us = (FAKE_BOOT_S + 200) * (uint64_t)US};

static struct symint_live read_live(int32_t pid)
{
    struct symint_live live;
    symint_live_read(&fake_system, &capture, SYMINT_BOOT_SAME, pid, &live);
    return live;
}

static void a_process_older_than_the_capture_is_alive(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = 10, .start_s = 50.25, .pids = "10"});
    struct symint_live live = read_live(10);
    assert_true(live.present);
    assert_true(live.alive);
    assert_int_equal(live.age, SYMINT_AGE_OLD_ENOUGH);
    assert_int_equal(live.start_time_us, FAKE_BOOT_S * (uint64_t)US + 50250000);
    assert_int_equal(live.inner_pid, 10);
    assert_false(live.own_root);
    assert_int_equal(live.root_id, 0);
}

static void a_process_that_began_after_the_last_sample_is_another_one(void **state)
{
    (void)state;
    /* Two seconds are the clocks'. */
    put_process(&(struct fake_process){.pid = 11, .start_s = 150});
    assert_true(read_live(11).alive);
    put_process(&(struct fake_process){.pid = 11, .start_s = 202});
    assert_true(read_live(11).alive);
    put_process(&(struct fake_process){.pid = 11, .start_s = 202.5});
    struct symint_live live = read_live(11);
    assert_true(live.present);
    assert_false(live.alive);
    assert_int_equal(live.age, SYMINT_AGE_YOUNGER);
}

static void without_an_end_the_start_of_the_capture_counts(void **state)
{
    (void)state;
    struct symint_live live;
    struct sym_capture c = capture;
    c.has_end_time = false;
    put_process(&(struct fake_process){.pid = 12, .start_s = 99});
    symint_live_read(&fake_system, &c, SYMINT_BOOT_SAME, 12, &live);
    assert_true(live.alive);
    put_process(&(struct fake_process){.pid = 12, .start_s = 150});
    symint_live_read(&fake_system, &c, SYMINT_BOOT_SAME, 12, &live);
    assert_false(live.alive);
    assert_int_equal(live.age, SYMINT_AGE_YOUNGER);
    /* No time at all: the same boot is not enough. */
    c.has_start_time = false;
    put_process(&(struct fake_process){.pid = 12, .start_s = 1});
    symint_live_read(&fake_system, &c, SYMINT_BOOT_SAME, 12, &live);
    assert_true(live.present);
    assert_false(live.alive);
    assert_int_equal(live.age, SYMINT_AGE_UNKNOWN);
}

static void a_process_is_alive_only_in_the_same_boot(void **state)
{
    (void)state;
    static const enum symint_boot others[] = {SYMINT_BOOT_OTHER, SYMINT_BOOT_UNKNOWN};
    put_process(&(struct fake_process){.pid = 13, .start_s = 50});
    for (size_t i = 0; i < 2; i++) {
        struct symint_live live;
        symint_live_read(&fake_system, &capture, others[i], 13, &live);
        assert_true(live.present);
        assert_false(live.alive);
        assert_int_not_equal(live.start_time_us, 0);
    }
}

static void a_start_that_is_unknown_is_not_old_enough(void **state)
{
    (void)state;
    struct symint_live live;
    struct symint_system s = fake_system;
    s.stat = "/nonexistent";
    put_process(&(struct fake_process){.pid = 14, .start_s = 50});
    symint_live_read(&s, &capture, SYMINT_BOOT_SAME, 14, &live);
    assert_true(live.present);
    assert_false(live.alive);
    assert_int_equal(live.start_time_us, 0);
    put_text(at("huge"), "btime 18446744073709551615\n");
    s.stat = at("huge");
    symint_live_read(&s, &capture, SYMINT_BOOT_SAME, 14, &live);
    assert_false(live.alive);
    assert_int_equal(live.start_time_us, 0);
}

static void a_name_may_hold_blanks_and_parentheses(void **state)
{
    (void)state;
    static const char *const names[] = {"a) (b", ") R 1 2 3", "((", "))", "x\n) S"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        put_process(&(struct fake_process){.pid = 15, .comm = names[i], .start_s = 7});
        struct symint_live live = read_live(15);
        assert_true(live.alive);
        assert_int_equal(live.start_time_us, (FAKE_BOOT_S + 7) * (uint64_t)US);
    }
}

static void text_that_is_no_stat_is_no_process(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "16",
                                        "16 (x",
                                        "16 (x)",
                                        "16 (x) ",
                                        "16 (x) S 1 2 3\n",
                                        "16 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18",
                                        "16 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 y",
                                        "16 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 -5"};
    put_process(&(struct fake_process){.pid = 16, .start_s = 50});
    assert_true(read_live(16).alive);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_text(at("proc/16/stat"), texts[i]);
        struct symint_live live = read_live(16);
        assert_false(live.present);
        assert_false(live.alive);
    }
    assert_false(read_live(0).present);
    assert_false(read_live(-16).present);
    assert_false(read_live(17).present); /* there is none */
}

static void a_thread_is_no_process(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = 18, .start_s = 50, .group = 10, .pids = "18"});
    assert_false(read_live(18).present);
    assert_false(read_live(18).alive);
}

static void a_process_that_has_ended_is_present_but_not_alive(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = 19, .start_s = 50, .state = 'Z'});
    assert_true(read_live(19).present);
    assert_false(read_live(19).alive);
    assert_int_equal(read_live(19).age, SYMINT_AGE_OLD_ENOUGH);
}

static void the_innermost_process_id_is_taken(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = 20, .pids = "20\t301\t7", .start_s = 9});
    assert_int_equal(read_live(20).inner_pid, 7);
    put_process(&(struct fake_process){.pid = 20, .start_s = 9}); /* an old kernel */
    assert_int_equal(read_live(20).inner_pid, 20);
    put_process(&(struct fake_process){.pid = 20, .pids = "x", .start_s = 9});
    assert_int_equal(read_live(20).inner_pid, 20);
    put_process(&(struct fake_process){.pid = 20, .pids = "20 99999999999999999999", .start_s = 9});
    assert_int_equal(read_live(20).inner_pid, 20);
    put_process(&(struct fake_process){.pid = 20, .pids = "20 -7", .start_s = 9});
    assert_int_equal(read_live(20).inner_pid, 20);
}

static void another_root_or_other_mounts_are_noticed(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = 30, .start_s = 9, .root = "theirs"});
    put_process(&(struct fake_process){.pid = 31, .start_s = 9, .mounts = "mnt:[2]"});
    put_process(
        &(struct fake_process){.pid = 32, .start_s = 9, .root = "theirs", .mounts = "mnt:[2]"});
    put_process(
        &(struct fake_process){.pid = 33, .start_s = 9, .root = "theirs", .mounts = "mnt:[2]"});
    for (int32_t pid = 30; pid <= 33; pid++) {
        struct symint_live live = read_live(pid);
        assert_true(live.alive);
        assert_true(live.own_root);
        assert_int_not_equal(live.root_id, 0);
    }
    assert_int_not_equal(read_live(30).root_id, read_live(31).root_id);
    assert_int_not_equal(read_live(30).root_id, read_live(32).root_id);
    assert_int_not_equal(read_live(31).root_id, read_live(32).root_id);
    assert_int_equal(read_live(32).root_id, read_live(33).root_id);
}

static void a_root_that_may_not_be_looked_at_is_not_taken_for_ours(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = 34, .start_s = 9, .root = ""});
    put_process(&(struct fake_process){.pid = 35, .start_s = 9, .root = ""});
    put_process(&(struct fake_process){.pid = 36, .start_s = 9});
    unlink(at("proc/36/ns/mnt"));
    for (int32_t pid = 34; pid <= 36; pid++) {
        struct symint_live live = read_live(pid);
        assert_true(live.alive);
        assert_true(live.own_root);
        assert_int_not_equal(live.root_id, 0);
    }
    assert_int_not_equal(read_live(34).root_id, read_live(35).root_id);
    assert_int_not_equal(read_live(34).root_id, read_live(36).root_id);
}

static void this_process_is_alive_in_the_real_proc(void **state)
{
    (void)state;
    struct symint_live live;
    struct sym_capture now = {.size = sizeof(now), .has_end_time = true};
    now.end_time_us = (uint64_t)time(NULL) * US;
    if (access("/proc/self/stat", R_OK) != 0)
        skip();
    symint_live_read(&symint_system, &now, SYMINT_BOOT_SAME, getpid(), &live);
    assert_true(live.present);
    assert_true(live.alive);
    assert_false(live.own_root);
    assert_in_range(live.start_time_us, now.end_time_us - 600u * US, now.end_time_us + 2 * US);
    char *root = symint_live_root(&symint_system, 12);
    assert_string_equal(root, "/proc/12/root");
    free(root);
}

/* ---- held files ---- */

/* What the file that a process holds begins with; "": it holds none that may be read. */
static const char *held(int32_t pid, uint64_t start, uint64_t end, const char *path)
{
    static char text[16];
    int fd;
    memset(text, 0, sizeof(text));
    symint_live_open_held(&fake_system, pid, start, end, path, &fd);
    if (fd < 0)
        return "";
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    return text;
}

static void a_deleted_file_is_found_by_its_mapping_or_as_the_program(void **state)
{
    (void)state;
    char lib[128];
    char prog[128];
    strcpy(lib, at("lib.so (deleted)"));
    strcpy(prog, at("prog (deleted)"));
    put_text(lib, "lib");
    put_text(prog, "prog");
    put_folder(at("proc/40"));
    put_folder(at("proc/40/map_files"));
    put_link(lib, at("proc/40/map_files/7f0000001000-7f0000005000"));
    put_link(prog, at("proc/40/exe"));
    assert_string_equal(held(40, 0x7f0000001000, 0x7f0000005000, lib), "lib");
    assert_string_equal(held(40, 0x7f0000001000, 0x7f0000006000, lib), "");
    assert_string_equal(held(40, 0x7f0000001000, 0x7f0000005000, prog), "prog");
    assert_string_equal(held(40, 0, 0, prog), "prog");
    assert_string_equal(held(40, 0, 0, at("prog")), "");
    assert_string_equal(held(40, 0, 0, ""), "");
    assert_string_equal(held(41, 0, 0, prog), "");
    assert_string_equal(held(0, 0, 0, prog), "");
    assert_string_equal(held(-40, 0, 0, prog), "");
}

static void what_is_held_must_be_a_regular_file(void **state)
{
    (void)state;
    char fifo[128];
    strcpy(fifo, at("fifo"));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    put_folder(at("proc/42"));
    put_link(fifo, at("proc/42/exe"));
    assert_string_equal(held(42, 0, 0, fifo), "");
    put_link("/dev/zero", at("proc/42/exe"));
    assert_string_equal(held(42, 0, 0, "/dev/zero"), "");
    put_link(at("gone"), at("proc/42/exe"));
    assert_string_equal(held(42, 0, 0, at("gone")), "");
}

/* A copy of a program that is replaced while it runs. */
static void the_real_proc_gives_back_a_deleted_program(void **state)
{
    (void)state;
    char program[128];
    char text[256];
    char head[5] = "";
    int fd = -1;
    if (access("/proc/self/exe", R_OK) != 0)
        skip();
    strcpy(program, at("sleeper"));
    snprintf(text, sizeof(text), "cp /bin/sleep '%s'", program);
    assert_int_equal(system(text), 0);
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, "sleep", "60", (char *)NULL);
        _exit(1);
    }
    assert_true(pid > 0);
    snprintf(text, sizeof(text), "/proc/%d/exe", (int)pid);
    for (int tries = 0; tries < 500; tries++) {
        char target[128];
        ssize_t n = readlink(text, target, sizeof(target));
        if (n == (ssize_t)strlen(program) && memcmp(target, program, (size_t)n) == 0)
            break;
        usleep(10000);
    }
    unlink(program);
    snprintf(text, sizeof(text), "%s (deleted)", program);
    symint_live_open_held(&symint_system, pid, 0x1000, 0x2000, text, &fd);
    ssize_t n = fd >= 0 ? read(fd, head, 4) : -1;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(n, 4);
    assert_memory_equal(head, "\177ELF", 4);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_older_than_the_capture_is_alive),
        cmocka_unit_test(a_process_that_began_after_the_last_sample_is_another_one),
        cmocka_unit_test(without_an_end_the_start_of_the_capture_counts),
        cmocka_unit_test(a_process_is_alive_only_in_the_same_boot),
        cmocka_unit_test(a_start_that_is_unknown_is_not_old_enough),
        cmocka_unit_test(a_name_may_hold_blanks_and_parentheses),
        cmocka_unit_test(text_that_is_no_stat_is_no_process),
        cmocka_unit_test(a_thread_is_no_process),
        cmocka_unit_test(a_process_that_has_ended_is_present_but_not_alive),
        cmocka_unit_test(the_innermost_process_id_is_taken),
        cmocka_unit_test(another_root_or_other_mounts_are_noticed),
        cmocka_unit_test(a_root_that_may_not_be_looked_at_is_not_taken_for_ours),
        cmocka_unit_test(this_process_is_alive_in_the_real_proc),
        cmocka_unit_test(a_deleted_file_is_found_by_its_mapping_or_as_the_program),
        cmocka_unit_test(what_is_held_must_be_a_regular_file),
        cmocka_unit_test(the_real_proc_gives_back_a_deleted_program),
    };
    return cmocka_run_group_tests(tests, make_proc, remove_proc);
}
