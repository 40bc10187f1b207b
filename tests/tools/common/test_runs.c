/* SPDX-License-Identifier: MIT */
/* Samples in time order: merging, sorting, and what happens when they need more room than memory
 * or disk has. */
#include "../spool2folded/make_spool.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "cli.h"
#include "runs.h"

struct visited {
    struct run *runs;
    size_t count, capacity;
};

static void keep(void *user, const struct run *run)
{
    struct visited *v = user;

    if (v->count == v->capacity) {
        v->capacity = v->capacity ? v->capacity * 2 : 64;
        v->runs = realloc(v->runs, v->capacity * sizeof *v->runs);
        assert_non_null(v->runs);
    }
    v->runs[v->count++] = *run;
}

static void expect_runs(struct run_store *s, uint32_t source, const struct run *expected,
                        size_t count)
{
    struct visited v = {0};

    assert_int_equal(runs_visit(s, source, keep, &v), 0);
    assert_int_equal(v.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(v.runs[i].time_ns, expected[i].time_ns);
        assert_int_equal(v.runs[i].stack, expected[i].stack);
        assert_int_equal(v.runs[i].count, expected[i].count);
    }
    free(v.runs);
}

static void a_store_without_samples_visits_nothing(void **state)
{
    struct run_store *s = runs_new();

    (void)state;
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, NULL, 0);
    expect_runs(s, UINT32_MAX, NULL, 0);
    assert_true(runs_first_ns(s, 0) == UINT64_MAX);
    runs_free(s);
    runs_free(NULL);
}

static void equal_neighbours_of_a_source_are_one_run(void **state)
{
    static const struct run zero[] = {{10, 7, 2}, {30, 8, 1}, {30, 7, 1}}, two[] = {{15, 7, 3}};
    struct run_store *s = runs_new();

    (void)state;
    runs_add(s, 0, 10, 7);
    runs_add(s, 2, 15, 7); /* another source between them does not part them */
    runs_add(s, 0, 20, 7);
    runs_add(s, 2, 16, 7);
    runs_add(s, 0, 30, 8);
    runs_add(s, 0, 30, 7);
    runs_add(s, 2, 16, 7);
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, zero, 3);
    expect_runs(s, 1, NULL, 0);
    expect_runs(s, 2, two, 1);
    assert_int_equal(runs_first_ns(s, 0), 10);
    assert_int_equal(runs_first_ns(s, 2), 15);
    assert_true(runs_first_ns(s, 1) == UINT64_MAX);
    runs_free(s);
}

static void late_samples_are_sorted_in_and_equal_times_stay_in_file_order(void **state)
{
    static const struct run zero[] = {{0, 4, 1},  {10, 1, 1}, {10, 3, 1},
                                      {20, 2, 1}, {20, 1, 1}, {20, 2, 1}},
                            one[] = {{1, 9, 2}};
    struct run_store *s = runs_new();

    (void)state;
    runs_add(s, 0, 10, 1);
    runs_add(s, 0, 20, 2);
    runs_add(s, 0, 20, 1);
    runs_add(s, 1, 1, 9);
    runs_add(s, 0, 10, 3);
    runs_add(s, 0, 20, 2);
    runs_add(s, 0, 0, 4);
    runs_add(s, 1, 2, 9); /* its order does not matter to others */
    assert_int_equal(runs_finish(s), 0);
    expect_runs(s, 0, zero, 6);
    expect_runs(s, 1, one, 1);
    assert_int_equal(runs_first_ns(s, 0), 0);
    expect_runs(s, 0, zero, 6); /* visiting changes nothing */
    runs_free(s);
}

static void random_samples_come_out_sorted(void **state)
{
    enum { SOURCES = 5, SAMPLES = 40000 };
    struct run_store *s = runs_new();
    uint64_t seed = 11, counts[SOURCES] = {0};

    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint32_t source = random_below(&seed, SOURCES);

        /* sources 0 and 1 are in order; the stack tells the file order of equal times */
        runs_add(s, source, source < 2 ? i : random_below(&seed, 3000), (uint32_t)i);
        counts[source]++;
    }
    assert_int_equal(runs_finish(s), 0);
    for (uint32_t source = 0; source < SOURCES; source++) {
        struct visited v = {0};

        assert_int_equal(runs_visit(s, source, keep, &v), 0);
        assert_int_equal(v.count, counts[source]);
        for (size_t i = 1; i < v.count; i++)
            if (v.runs[i].time_ns < v.runs[i - 1].time_ns ||
                (v.runs[i].time_ns == v.runs[i - 1].time_ns &&
                 v.runs[i].stack < v.runs[i - 1].stack))
                fail_msg("source %u: run %zu is out of order", source, i);
        assert_int_equal(runs_first_ns(s, source), v.runs[0].time_ns);
        free(v.runs);
    }
    runs_free(s);
}

/* ---- more than 64 MiB ---- */

#define RUNS_PER_MIB 65536u

struct check {
    uint64_t last_ns, sum;
    size_t count;
    bool ordered;
};

static void check_order(void *user, const struct run *run)
{
    struct check *c = user;

    c->ordered &= c->count == 0 || run->time_ns >= c->last_ns;
    c->last_ns = run->time_ns;
    c->sum += run->stack;
    c->count += run->count;
}

static void fill(struct run_store *s, size_t runs, uint32_t sources, bool disordered)
{
    for (size_t i = 0; i < runs; i++)
        runs_add(s, (uint32_t)(i % sources), disordered ? (i ^ 0x35) * 3 : i, (uint32_t)i);
}

static void expect_all(struct run_store *s, size_t runs, uint32_t sources)
{
    uint64_t sum = 0;
    size_t count = 0;

    for (uint32_t source = 0; source < sources; source++) {
        struct check c = {.ordered = true};

        assert_int_equal(runs_visit(s, source, check_order, &c), 0);
        assert_true(c.ordered);
        sum += c.sum;
        count += c.count;
    }
    assert_int_equal(count, runs);
    assert_true(sum == (uint64_t)runs * (runs - 1) / 2);
}

/* The size of the spill file among our descriptors; -1: there is none. */
static off_t spill_size(void)
{
    off_t size = -1;

    for (int fd = 3; fd < 64; fd++) {
        char link[64], target[512];
        struct stat status;
        ssize_t n;

        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, target, sizeof target - 1);
        if (n < 0)
            continue;
        target[n] = '\0';
        if (strstr(target, "(deleted)") && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
            status.st_nlink == 0 && !strstr(target, "memfd:"))
            size = status.st_size;
    }
    return size;
}

static void what_exceeds_64_mib_lies_in_an_unlinked_file(void **state)
{
    const size_t count = 80 * RUNS_PER_MIB;
    struct run_store *s = runs_new();
    char folder[] = "/tmp/test_runs_XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    fill(s, 60 * RUNS_PER_MIB, 3, false);
    assert_int_equal(spill_size(), -1);
    runs_free(s);
    s = runs_new();
    fill(s, count, 3, false);
    assert_int_equal(runs_finish(s), 0);
    assert_true(spill_size() >= (off_t)15 << 20);
    expect_all(s, count, 3);
    runs_free(s);
    assert_int_equal(spill_size(), -1);
    assert_int_equal(rmdir(folder), 0); /* nothing was left in it */
    unsetenv("TMPDIR");
}

/* Any number of runs: the pieces of the file must begin at pages whatever came before. */
static void sorting_more_than_memory_has_room_for_uses_the_file(void **state)
{
    struct run_store *s = runs_new();
    off_t size;

    (void)state;
    setenv("TMPDIR", "/tmp", 1);
    fill(s, 70 * RUNS_PER_MIB + 2, 2, true);
    assert_int_equal(runs_finish(s), 0);
    size = spill_size();
    expect_all(s, 70 * RUNS_PER_MIB + 2, 2);
    assert_int_equal(spill_size(), size); /* room for sorting is given back */
    expect_all(s, 70 * RUNS_PER_MIB + 2, 2);
    runs_free(s);

    s = runs_new();
    fill(s, 33 * RUNS_PER_MIB + 5, 1, true); /* only sorting needs it */
    assert_int_equal(runs_finish(s), 0);
    assert_int_equal(spill_size(), -1);
    expect_all(s, 33 * RUNS_PER_MIB + 5, 1);
    runs_free(s);
    unsetenv("TMPDIR");
}

static void expect_no_room(const char *reason)
{
    struct run_store *s = runs_new();
    struct capture c;
    char *text;
    int rc;

    fill(s, 90 * RUNS_PER_MIB, 2, false);
    capture_begin(&c);
    rc = runs_finish(s);
    text = capture_end(&c);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(text, ": no room for samples in time order: "));
    assert_non_null(strstr(text, reason));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
    runs_free(s);
}

static void a_tmpdir_that_is_not_there_is_an_error_and_no_crash(void **state)
{
    (void)state;
    setenv("TMPDIR", "/nonexistent/folder", 1);
    expect_no_room("/nonexistent/folder: ");
    setenv("TMPDIR", "/etc/passwd", 1);
    expect_no_room("Not a directory");
    unsetenv("TMPDIR");
}

static void a_tmpdir_that_is_not_writable_is_an_error(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        /* root may write everywhere but in /proc */
        setenv("TMPDIR", "/proc", 1);
        expect_no_room("/proc: ");
    } else {
        setenv("TMPDIR", "/", 1);
        expect_no_room("Permission denied");
    }
    unsetenv("TMPDIR");
}

static void a_full_tmpdir_is_an_error(void **state)
{
    char folder[] = "/tmp/test_runs_XXXXXX";
    struct run_store *s;
    struct capture c;
    char *text;
    int rc;

    (void)state;
    assert_non_null(mkdtemp(folder));
    if (mount("tmpfs", folder, "tmpfs", 0, "size=10m") != 0) {
        printf("no tmpfs of 10 MiB to fill: %s\n", strerror(errno));
        rmdir(folder);
        skip();
    }
    setenv("TMPDIR", folder, 1);
    expect_no_room("No space left on device");

    /* Enough for the runs, too little to sort them. */
    s = runs_new();
    fill(s, 40 * RUNS_PER_MIB, 1, true);
    assert_int_equal(runs_finish(s), 0);
    capture_begin(&c);
    rc = runs_visit(s, 0, check_order, &(struct check){0});
    text = capture_end(&c);
    runs_free(s);
    umount2(folder, MNT_DETACH);
    rmdir(folder);
    unsetenv("TMPDIR");
    assert_int_equal(rc, -1);
    assert_non_null(strstr(text, ": no room to sort samples by time: No space left on device"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_without_samples_visits_nothing),
        cmocka_unit_test(equal_neighbours_of_a_source_are_one_run),
        cmocka_unit_test(late_samples_are_sorted_in_and_equal_times_stay_in_file_order),
        cmocka_unit_test(random_samples_come_out_sorted),
        cmocka_unit_test(what_exceeds_64_mib_lies_in_an_unlinked_file),
        cmocka_unit_test(sorting_more_than_memory_has_room_for_uses_the_file),
        cmocka_unit_test(a_tmpdir_that_is_not_there_is_an_error_and_no_crash),
        cmocka_unit_test(a_tmpdir_that_is_not_writable_is_an_error),
        cmocka_unit_test(a_full_tmpdir_is_an_error),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
