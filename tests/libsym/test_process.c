/* SPDX-License-Identifier: MIT */
/* Which file is a process's perf map: the order, and maps that another process wrote. */
#include "context.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_proc.h"

#define US 1000000u
#define INNER 7 /* the id in a PID namespace */

/* No kernel gives out such ids, so whatever is in /tmp under one is ours. */
static int32_t pid;
static char in_tmp[64];

static int make_files(void **state)
{
    pid = 1000000000 + (int32_t)getpid() * 2;
    snprintf(in_tmp, sizeof(in_tmp), "/tmp/perf-%d.map", (int)pid);
    if (make_proc(state) != 0)
        return -1;
    put_folder(at("beside"));
    put_folder(at("dir"));
    put_folder(at("symbols1"));
    put_folder(at("symbols2"));
    return 0;
}

/* Everything that a test may have left, so that each begins with no map at all. */
static int remove_maps(void **state)
{
    static const char *const folders[] = {"beside", "dir", "symbols1", "symbols2", "theirs/tmp"};
    (void)state;
    unlink(in_tmp);
    rmdir(in_tmp);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        unlink(at("%s/perf-%d.map", folders[i], (int)pid));
        unlink(at("%s/perf-%d.map", folders[i], INNER));
    }
    remove_process(pid);
    return 0;
}

static int remove_files(void **state)
{
    remove_maps(state);
    return remove_proc(state);
}

/* Seconds after the boot (negative: before it). */
static void set_time(const char *path, double after_boot_s)
{
    double ns = (after_boot_s + 1000) * 1e9;
    struct timespec t = {.tv_sec = FAKE_BOOT_S - 1000 + (time_t)(ns / 1e9),
                         .tv_nsec = (long)((uint64_t)ns % 1000000000)};
    const struct timespec times[2] = {t, t};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A map with one entry, `name`, written at that time. */
static void put_map(const char *path, const char *name, double after_boot_s)
{
    char text[128];
    snprintf(text, sizeof(text), "1000 100 %s\n", name);
    put_text(path, text);
    set_time(path, after_boot_s);
}

static const char *map_in(const char *folder)
{
    return at("%s/perf-%d.map", folder, (int)pid);
}

/* A capture from the 100th to the 200th second after the boot. */
static struct sym_capture same_boot(void)
{
    return (struct sym_capture){.size = sizeof(struct sym_capture),
                                .boot_id = FAKE_BOOT_ID,
                                .has_start_time = true,
                                .start_time_us = (FAKE_BOOT_S + 100) * (uint64_t)US,
                                .has_end_time = true,
                                .end_time_us = (FAKE_BOOT_S + 200) * (uint64_t)US,
                                .folder = at("beside")};
}

static struct sym_capture other_boot(void)
{
    struct sym_capture c = same_boot();
    c.boot_id = "99999999-2222-3333-4444-555555555555";
    return c;
}

static struct sym_capture unknown_boot(void)
{
    return (struct sym_capture){.size = sizeof(struct sym_capture), .folder = at("beside")};
}

/* Asks for the name at the address that all maps name. NULL expected: none, for that reason. path
 * NULL: any. */
static void expect_with(const struct sym_options *options, struct sym_capture capture,
                        const char *name, enum sym_miss miss, const char *path)
{
    struct sym_options o = options != NULL ? *options : (struct sym_options){0};
    struct sym_context *c = sym_context_new();
    struct sym_query q = {.module = SYM_NO_MODULE, .pid = pid, .abs = 0x1010};
    struct sym_perf_map_state s;
    const struct sym_frame *f;
    size_t count;
    assert_non_null(c);
    o.size = sizeof(o);
    c->system = &fake_system;
    assert_int_equal(sym_context_open(c, &o), 0);
    assert_int_equal(sym_capture_begin(c, &capture), 0);
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(sym_perf_map_state(c, pid, &s), 1);
    if (path != NULL)
        assert_string_equal(s.path, path);
    assert_int_equal(s.miss, miss);
    assert_int_equal(s.found, miss == SYM_MISS_NONE);
    if (name != NULL) {
        assert_non_null(f->name);
        assert_string_equal(f->name, name);
        assert_int_equal(s.entries, 1);
    } else {
        assert_null(f->name);
        assert_int_equal(s.entries, 0);
    }
    sym_context_free(c);
}

static void expect(struct sym_capture capture, const char *name, const char *path)
{
    expect_with(NULL, capture, name, SYM_MISS_NONE, path);
}

static void expect_miss(struct sym_capture capture, enum sym_miss miss, const char *path)
{
    expect_with(NULL, capture, NULL, miss, path);
}

/* ---- folders that the user names ---- */

static void symbol_folders_come_first_and_are_believed(void **state)
{
    (void)state;
    char first[128];
    char second[128];
    char dir[128];
    const char *const dirs[] = {first, second};
    struct sym_options o = {.perf_map_dir = dir, .symbol_dirs = dirs, .symbol_dir_count = 2};
    strcpy(first, at("symbols1"));
    strcpy(second, at("symbols2"));
    strcpy(dir, at("dir"));
    put_process(&(struct fake_process){.pid = pid, .start_s = 50});
    put_map(map_in("symbols1"), "first", -900);
    put_map(map_in("symbols2"), "second", -900);
    put_map(map_in("dir"), "dir", 150);
    put_map(map_in("beside"), "beside", 150);
    put_map(in_tmp, "tmp", 150);
    expect_with(&o, same_boot(), "first", SYM_MISS_NONE, map_in("symbols1"));
    unlink(map_in("symbols1"));
    expect_with(&o, other_boot(), "second", SYM_MISS_NONE, map_in("symbols2"));
    unlink(map_in("symbols2"));
    expect_with(&o, same_boot(), "dir", SYM_MISS_NONE, map_in("dir"));
    o.perf_map_dir = NULL;
    expect_with(&o, same_boot(), "tmp", SYM_MISS_NONE, in_tmp);
    unlink(in_tmp);
    expect_with(&o, same_boot(), "beside", SYM_MISS_NONE, map_in("beside"));
    unlink(map_in("beside"));
    expect_with(&o, same_boot(), NULL, SYM_MISS_NO_FILE, map_in("symbols1"));
}

static void a_named_folder_replaces_tmp_and_is_believed(void **state)
{
    (void)state;
    char dir[128];
    struct sym_options o = {.perf_map_dir = dir};
    strcpy(dir, at("dir"));
    put_process(&(struct fake_process){.pid = pid, .start_s = 500});
    put_map(map_in("dir"), "dir", -900);
    put_map(in_tmp, "tmp", 150);
    expect_with(&o, same_boot(), "dir", SYM_MISS_NONE, map_in("dir"));
    set_time(map_in("dir"), 600);
    expect_with(&o, same_boot(), "dir", SYM_MISS_NONE, map_in("dir"));
    expect_with(&o, other_boot(), "dir", SYM_MISS_NONE, map_in("dir"));
    unlink(map_in("dir"));
    expect_with(&o, same_boot(), NULL, SYM_MISS_NO_FILE, map_in("dir"));
    put_map(map_in("beside"), "beside", -900);
    expect_with(&o, same_boot(), NULL, SYM_MISS_NO_FILE, map_in("dir"));
}

static void a_capture_in_tmp_does_not_vouch_for_what_lies_there(void **state)
{
    (void)state;
    struct sym_capture capture = other_boot();
    put_map(in_tmp, "tmp", 150);
    expect_with(NULL, capture, NULL, SYM_MISS_STALE, in_tmp);
    capture.folder = "/tmp/.";
    expect_with(NULL, capture, NULL, SYM_MISS_STALE, in_tmp);
}

static void a_map_that_cannot_be_read_ends_the_search(void **state)
{
    (void)state;
    put_map(map_in("beside"), "beside", 150);
    put_text(in_tmp, "no map\n");
    set_time(in_tmp, 150);
    expect_miss(same_boot(), SYM_MISS_DAMAGED, in_tmp);
    assert_int_equal(truncate(in_tmp, (off_t)1 << 30), 0);
    set_time(in_tmp, 150);
    expect_miss(same_boot(), SYM_MISS_TOO_LARGE, in_tmp);
    unlink(in_tmp);
    assert_int_equal(mkdir(in_tmp, 0700), 0);
    set_time(in_tmp, 150);
    expect_miss(same_boot(), SYM_MISS_NOT_REGULAR, in_tmp);
    /* But not what another process left. */
    set_time(in_tmp, -900);
    expect(same_boot(), "beside", map_in("beside"));
}

/* ---- a process that lives ---- */

static void a_live_process_has_its_map_in_tmp(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = pid, .start_s = 50});
    put_map(map_in("beside"), "beside", 150);
    put_map(in_tmp, "tmp", 60);
    expect(same_boot(), "tmp", in_tmp);
    set_time(in_tmp, 5000); /* it goes on after the capture */
    expect(same_boot(), "tmp", in_tmp);
}

static void a_map_older_than_its_live_process_is_another_ones(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = pid, .start_s = 50});
    put_map(in_tmp, "tmp", 40);
    expect_miss(same_boot(), SYM_MISS_STALE, in_tmp);
    put_map(map_in("beside"), "beside", 40);
    expect(same_boot(), "beside", map_in("beside"));
    /* Two seconds are the clocks'. */
    set_time(in_tmp, 47.75);
    expect(same_boot(), "beside", map_in("beside"));
    set_time(in_tmp, 48.25);
    expect(same_boot(), "tmp", in_tmp);
}

static void a_process_in_a_container_has_its_map_there_under_its_inner_id(void **state)
{
    (void)state;
    char ids[32];
    char inside[256];
    char shown[256];
    snprintf(ids, sizeof(ids), "%d %d", (int)pid, INNER);
    strcpy(inside, at("theirs/tmp/perf-%d.map", INNER));
    strcpy(shown, at("proc/%d/root/tmp/perf-%d.map", (int)pid, INNER));
    put_process(&(struct fake_process){
        .pid = pid, .start_s = 50, .pids = ids, .root = "theirs", .mounts = "mnt:[2]"});
    put_map(inside, "inside", 60);
    put_map(in_tmp, "tmp", 60);
    put_map(map_in("beside"), "beside", 60);
    expect(same_boot(), "inside", shown);
    /* An older one is of the container's last life. */
    set_time(inside, 40);
    expect(same_boot(), "tmp", in_tmp);
    unlink(in_tmp);
    expect(same_boot(), "beside", map_in("beside"));
    unlink(map_in("beside"));
    expect_miss(same_boot(), SYM_MISS_STALE, shown);
    unlink(inside);
    expect_miss(same_boot(), SYM_MISS_NO_FILE, shown);
    put_map(in_tmp, "tmp", 40); /* says more than that there is none inside */
    expect_miss(same_boot(), SYM_MISS_STALE, in_tmp);
    unlink(in_tmp);
    /* The container is not asked about another boot's process. */
    put_map(inside, "inside", 60);
    expect_miss(other_boot(), SYM_MISS_NO_FILE, in_tmp);
    expect_miss(unknown_boot(), SYM_MISS_NO_FILE, in_tmp);
}

static void links_in_a_container_stay_inside(void **state)
{
    (void)state;
    char inside[256];
    put_process(&(struct fake_process){.pid = pid, .start_s = 50, .root = "theirs"});
    put_map(at("theirs/map"), "theirs", 60);
    strcpy(inside, map_in("theirs/tmp"));
    put_link("/map", inside);
    expect(same_boot(), "theirs", at("proc/%d/root/tmp/perf-%d.map", (int)pid, (int)pid));
    put_map(map_in("dir"), "ours", 60);
    put_link(map_in("dir"), inside);
    expect_miss(same_boot(), SYM_MISS_NO_FILE, NULL);
}

static void an_inner_id_without_a_root_of_its_own_is_looked_up_in_tmp(void **state)
{
    (void)state;
    char ids[32];
    char inner[64];
    snprintf(ids, sizeof(ids), "%d %d", (int)pid, (int)pid + 1);
    snprintf(inner, sizeof(inner), "/tmp/perf-%d.map", (int)pid + 1);
    put_process(&(struct fake_process){.pid = pid, .start_s = 50, .pids = ids});
    put_map(in_tmp, "outer", 60);
    expect(same_boot(), "outer", in_tmp);
    put_map(inner, "inner", 60);
    expect(same_boot(), "inner", inner);
    unlink(inner);
}

static void a_root_that_may_not_be_entered_does_not_end_the_search(void **state)
{
    (void)state;
    char shown[256];
    put_process(&(struct fake_process){.pid = pid, .start_s = 50, .root = "", .mounts = "mnt:[2]"});
    put_text(at("no_folder"), "");
    put_link(at("no_folder/x"), at("proc/%d/root", (int)pid)); /* ENOTDIR, as good as EACCES */
    strcpy(shown, at("proc/%d/root/tmp/perf-%d.map", (int)pid, (int)pid));
    expect_miss(same_boot(), SYM_MISS_UNREADABLE, shown);
    put_map(map_in("beside"), "beside", 60);
    expect(same_boot(), "beside", map_in("beside"));
    put_map(in_tmp, "tmp", 60);
    expect(same_boot(), "tmp", in_tmp);
}

/* ---- a process that is gone ---- */

static void a_map_that_a_process_left_in_tmp_is_used(void **state)
{
    (void)state;
    put_map(in_tmp, "tmp", 150);
    put_map(map_in("beside"), "beside", 150);
    expect(same_boot(), "tmp", in_tmp);
    expect(unknown_boot(), "tmp", in_tmp);
    unlink(in_tmp);
    expect(same_boot(), "beside", map_in("beside"));
    expect(other_boot(), "beside", map_in("beside"));
    expect(unknown_boot(), "beside", map_in("beside"));
    unlink(map_in("beside"));
    expect_miss(same_boot(), SYM_MISS_NO_FILE, in_tmp);
}

static void a_map_from_before_the_boot_is_not_of_a_process_of_this_boot(void **state)
{
    (void)state;
    put_map(in_tmp, "tmp", -3);
    expect_miss(same_boot(), SYM_MISS_STALE, in_tmp);
    set_time(in_tmp, 1);
    expect(same_boot(), "tmp", in_tmp);
}

static void a_map_of_this_boot_is_not_of_a_process_of_another(void **state)
{
    (void)state;
    put_map(in_tmp, "tmp", 150);
    expect_miss(other_boot(), SYM_MISS_STALE, in_tmp);
    set_time(in_tmp, 0);
    expect_miss(other_boot(), SYM_MISS_STALE, in_tmp);
    /* By times alone, too. */
    struct sym_capture c = other_boot();
    c.boot_id = NULL;
    c.start_time_us = c.end_time_us = (FAKE_BOOT_S - 500) * (uint64_t)US;
    expect_miss(c, SYM_MISS_STALE, in_tmp);
    /* /tmp may outlive a boot. */
    set_time(in_tmp, -1);
    expect(other_boot(), "tmp", in_tmp);
    expect(c, "tmp", in_tmp);
}

static void a_map_of_the_process_that_has_the_id_now_is_not_used(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = pid, .start_s = 500});
    put_map(in_tmp, "tmp", 600);
    expect_miss(same_boot(), SYM_MISS_STALE, in_tmp);
    set_time(in_tmp, 500);
    expect_miss(same_boot(), SYM_MISS_STALE, in_tmp);
    /* What was written before it began is not its own. */
    set_time(in_tmp, 150);
    expect(same_boot(), "tmp", in_tmp);
    /* Nothing is known of the capture, or of the process: nothing speaks against the map. */
    set_time(in_tmp, 600);
    expect(unknown_boot(), "tmp", in_tmp);
    remove_process(pid);
    expect(same_boot(), "tmp", in_tmp);
}

static void a_process_that_has_just_ended_is_still_the_captures(void **state)
{
    (void)state;
    put_process(&(struct fake_process){.pid = pid, .start_s = 50, .state = 'Z'});
    put_map(in_tmp, "tmp", 150);
    expect(same_boot(), "tmp", in_tmp);
    set_time(in_tmp, 40);
    expect_miss(same_boot(), SYM_MISS_STALE, in_tmp);
}

static void each_capture_has_its_own_processes(void **state)
{
    (void)state;
    struct sym_context *c = sym_context_new();
    struct sym_capture captures[2] = {unknown_boot(), other_boot()};
    assert_non_null(c);
    c->system = &fake_system;
    assert_int_equal(sym_context_open(c, NULL), 0);
    put_map(in_tmp, "tmp", 150);
    for (int i = 0; i < 4; i++) {
        struct sym_query q = {.module = SYM_NO_MODULE, .pid = pid, .abs = 0x1010};
        struct sym_perf_map_state s;
        const struct sym_frame *f;
        size_t count;
        assert_int_equal(sym_capture_begin(c, &captures[i % 2]), 0);
        assert_int_equal(sym_perf_map_state(c, pid, &s), 0);
        assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
        assert_int_equal(f->name != NULL, i % 2 == 0);
    }
    sym_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(symbol_folders_come_first_and_are_believed, remove_maps),
        cmocka_unit_test_teardown(a_named_folder_replaces_tmp_and_is_believed, remove_maps),
        cmocka_unit_test_teardown(a_capture_in_tmp_does_not_vouch_for_what_lies_there, remove_maps),
        cmocka_unit_test_teardown(a_map_that_cannot_be_read_ends_the_search, remove_maps),
        cmocka_unit_test_teardown(a_live_process_has_its_map_in_tmp, remove_maps),
        cmocka_unit_test_teardown(a_map_older_than_its_live_process_is_another_ones, remove_maps),
        cmocka_unit_test_teardown(a_process_in_a_container_has_its_map_there_under_its_inner_id,
                                  remove_maps),
        cmocka_unit_test_teardown(links_in_a_container_stay_inside, remove_maps),
        cmocka_unit_test_teardown(an_inner_id_without_a_root_of_its_own_is_looked_up_in_tmp,
                                  remove_maps),
        cmocka_unit_test_teardown(a_root_that_may_not_be_entered_does_not_end_the_search,
                                  remove_maps),
        cmocka_unit_test_teardown(a_map_that_a_process_left_in_tmp_is_used, remove_maps),
        cmocka_unit_test_teardown(a_map_from_before_the_boot_is_not_of_a_process_of_this_boot,
                                  remove_maps),
        cmocka_unit_test_teardown(a_map_of_this_boot_is_not_of_a_process_of_another, remove_maps),
        cmocka_unit_test_teardown(a_map_of_the_process_that_has_the_id_now_is_not_used,
                                  remove_maps),
        cmocka_unit_test_teardown(a_process_that_has_just_ended_is_still_the_captures, remove_maps),
        cmocka_unit_test_teardown(each_capture_has_its_own_processes, remove_maps),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
