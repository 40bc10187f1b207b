/* SPDX-License-Identifier: MIT */
/*
 * Commands that wait before their exec. With an argument this program is such a command itself, which says on its
 * standard output how it was started.
 */
#include "spool/record.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#define FD_MAX 1024

static char folder[64];
static char self[] = "/proc/self/exe";

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/command-XXXXXX");
    setenv("PATH", "/usr/bin:/bin",
           1); /* a folder that we may not enter would make ENOENT EACCES */
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

/* A path in the folder; four of them are valid at a time. */
static char *at(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static char *put(const char *name, const char *text, mode_t mode)
{
    char *path = at(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

/* ---- this program as a command ---- */

static int list_fds(void)
{
    for (int fd = 0; fd < FD_MAX; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            dprintf(1, "%d ", fd);
    return 0;
}

static int list_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGUSR1};
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction action;
        sigaction(numbers[i], NULL, &action);
        dprintf(1, "%s%s ", action.sa_handler == SIG_IGN ? "ignored" : "default",
                sigismember(&mask, numbers[i]) ? "+blocked" : "");
    }
    return 0;
}

static int be_command(const char *what)
{
    if (strcmp(what, "fds") == 0)
        return list_fds();
    if (strcmp(what, "signals") == 0)
        return list_signals();
    if (strcmp(what, "sleep") == 0)
        for (;;)
            pause();
    return 98;
}

/* ---- */

static struct record_command *prepare(char *const argv[],
                                      const struct record_command_options *options)
{
    struct record_command *c = record_command_new();
    assert_non_null(c);
    assert_int_equal(record_command_pid(c), 0);
    assert_int_equal(record_command_prepare(c, argv, options), 0);
    assert_true(record_command_pid(c) > 0);
    return c;
}

static int wait_for(struct record_command *c)
{
    int status;
    int rc;
    do
        rc = record_command_wait(c, &status);
    while (rc == 0);
    assert_int_equal(rc, 1);
    return status;
}

/* Runs a command with its standard output in a pipe, and compares what it writes. Everything is read after it has
 * ended: it must fit the pipe. */
static void check_output(char *const argv[], bool default_signals, const char *expected)
{
    struct record_command_options options = {.size = sizeof(options)};
    char text[4096] = "";
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    options.stdout_fd = fds[1];
    options.default_signals = default_signals;
    struct record_command *c = prepare(argv, &options);
    close(fds[1]);
    assert_int_equal(record_command_run(c), 0);
    assert_int_equal(wait_for(c), 0);
    record_command_free(c);
    assert_true(read(fds[0], text, sizeof(text) - 1) >= 0);
    close(fds[0]);
    assert_string_equal(text, expected);
}

static void a_command_does_nothing_before_it_is_run(void **state)
{
    char path[128];
    char sh[] = "sh";
    char c_option[] = "-c";
    char script[] = "echo x >\"$0\"; exit 7";
    char *argv[] = {sh, c_option, script, path, NULL};
    int status = -1;
    (void)state;
    snprintf(path, sizeof(path), "%s", at("made"));
    struct record_command *c = prepare(argv, NULL);
    /* The arguments are the caller's again. */
    script[0] = sh[0] = '?';
    argv[0] = NULL;
    assert_int_equal(record_command_try_wait(c, &status), 0);
    wait_for_state(record_command_pid(c), 0, 'S'); /* sleeps, and nothing but we will wake it */
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(record_command_run(c), 0);
    assert_int_equal(record_command_errno(c), 0);
    assert_true(WEXITSTATUS(wait_for(c)) == 7);
    assert_int_equal(access(path, F_OK), 0);
    /* It has ended, and stays so. */
    assert_int_equal(record_command_try_wait(c, &status), 1);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(record_command_wait(c, NULL), 1);
    record_command_free(c);
}

static void check_refused(char *file, int error)
{
    char *argv[] = {file, NULL};
    int status;
    struct record_command *c = prepare(argv, NULL);
    pid_t pid = record_command_pid(c);
    assert_int_equal(record_command_run(c), RECORD_ERR_COMMAND);
    assert_int_equal(record_command_errno(c), error);
    assert_int_equal(waitpid(pid, NULL, 0), -1); /* reaped */
    assert_int_equal(record_command_wait(c, &status), 1);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 127);
    assert_int_equal(record_command_run(c), RECORD_ERR_MISUSE);
    record_command_free(c);
}

static void what_cannot_be_executed_is_said_with_its_reason(void **state)
{
    char nowhere[] = "no-such-program-anywhere";
    char empty[] = "";
    char slash[] = "/";
    (void)state;
    check_refused(nowhere, ENOENT);
    check_refused(empty, ENOENT);
    check_refused(at("absent"), ENOENT);
    check_refused(slash, EACCES);
    check_refused(put("plain", "#!/bin/sh\n", 0600), EACCES);
    check_refused(put("interpreter", "#!/no/such/interpreter\n", 0700), ENOENT);
    check_refused(strcat(put("file", "", 0700), "/below"), ENOTDIR);
}

static void the_path_is_searched_as_execvp_does(void **state)
{
    char found[] = "found-in-path";
    char plain[] = "plain-in-path";
    char *argv[] = {found, NULL};
    char path[256];
    (void)state;
    put(found, "#!/bin/sh\necho here\n", 0700);
    put(plain, "", 0600);
    snprintf(path, sizeof(path), "/no/such/folder:%s:/usr/bin:/bin", folder);
    setenv("PATH", path, 1);
    check_output(argv, false, "here\n");
    check_refused(plain, EACCES); /* kept although later folders do not have it */
    setenv("PATH", "/usr/bin:/bin", 1);
}

static void a_script_without_interpreter_line_is_run_by_the_shell(void **state)
{
    char argument[] = "b c";
    char *argv[] = {put("script", "echo \"$#:$1\"\n", 0700), argument, NULL};
    (void)state;
    check_output(argv, false, "1:b c\n");
}

/* ---- descriptors ---- */

static void what_is_closed_on_exec_does_not_reach_the_command(void **state)
{
    char fds[] = "fds";
    char *argv[] = {self, fds, NULL};
    char expected[4096] = "";
    (void)state;
    assert_int_equal(fcntl(2, F_DUPFD_CLOEXEC, 700), 700);
    assert_int_equal(fcntl(2, F_DUPFD, 701), 701);
    for (int fd = 0; fd < FD_MAX; fd++) { /* the test runner may have left us some */
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0)
            snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%d ", fd);
    }
    assert_non_null(strstr(expected, "701"));
    check_output(argv, false, expected);
    close(700);
    close(701);
}

/* In a process of its own, without descriptors but the one to write to. */
static int run_without_standard_fds(void)
{
    char fds[] = "fds";
    char *argv[] = {self, fds, NULL};
    struct record_command_options options = {.size = sizeof(options), .stdout_fd = 500};
    int status = -1;
    struct record_command *c = record_command_new();
    if (c == NULL || record_command_prepare(c, argv, &options) != 0)
        return 1;
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) >= 0) /* we keep off them as well */
            return 2;
    if (record_command_run(c) != 0 || record_command_wait(c, &status) != 1 || status != 0)
        return 3;
    record_command_free(c);
    return 0;
}

static void standard_descriptors_may_be_closed(void **state)
{
    int fds[2];
    char text[100] = "";
    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (fcntl(fds[1], F_DUPFD_CLOEXEC, 500) != 500)
            _exit(99);
        for (int fd = 0; fd < FD_MAX; fd++)
            if (fd != 500)
                close(fd);
        _exit(run_without_standard_fds());
    }
    close(fds[1]);
    assert_int_equal(reap_child(pid), 0);
    assert_true(read(fds[0], text, sizeof(text) - 1) >= 0);
    close(fds[0]);
    assert_string_equal(text, "1 ");
}

static void a_standard_output_that_is_closed_on_exec_reaches_the_command(void **state)
{
    char echo[] = "echo";
    char text[] = "text";
    char *argv[] = {echo, text, NULL};
    struct record_command_options options = {.size = sizeof(options), .stdout_fd = 1};
    char *path = put("out", "", 0600);
    (void)state;
    fflush(stdout);
    int saved = fcntl(1, F_DUPFD_CLOEXEC, 10);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(saved >= 0 && fd >= 0);
    assert_int_equal(dup3(fd, 1, O_CLOEXEC), 1);
    close(fd);
    struct record_command *c = record_command_new();
    int rc = record_command_prepare(c, argv, &options);
    if (rc == 0)
        rc = record_command_run(c);
    int status = rc == 0 ? wait_for(c) : -1;
    record_command_free(c);
    assert_int_equal(dup2(saved, 1), 1);
    close(saved);
    assert_int_equal(status, 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5);
}

static void options_that_are_all_zero_leave_standard_output_alone(void **state)
{
    char sh[] = "sh", c_option[] = "-c";
    char check[] = "[ $(stat -Lc %d:%i /proc/$$/fd/1) = $(stat -Lc %d:%i /proc/$PPID/fd/1) ]";
    char *argv[] = {sh, c_option, check, NULL};
    struct record_command_options options = {.size = sizeof(options)};
    (void)state;
    struct record_command *c = record_command_new();
    assert_non_null(c);
    assert_int_equal(record_command_prepare(c, argv, &options), 0);
    assert_int_equal(record_command_run(c), 0);
    assert_int_equal(wait_for(c), 0);
    record_command_free(c);
}

static void a_command_that_cannot_be_prepared_leaves_the_handle_as_new(void **state)
{
    char sh[] = "true";
    char *argv[] = {sh, NULL};
    struct record_command_options options = {.size = sizeof(options), .stdout_fd = 900};
    struct rlimit limit;
    (void)state;
    struct record_command *c = record_command_new();
    assert_non_null(c);
    assert_int_equal(record_command_prepare(c, argv, &options), RECORD_ERR_COMMAND);
    assert_int_equal(record_command_errno(c), EBADF);
    assert_int_equal(record_command_pid(c), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(next > 2);
    close(next);
    for (int more = 0; more < 5; more++) { /* wherever it runs out of descriptors */
        struct rlimit low = {.rlim_cur = (rlim_t)(next + more), .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        int rc = record_command_prepare(c, argv, NULL);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        if (rc == 0)
            break;
        assert_int_equal(rc, RECORD_ERR_COMMAND);
        assert_int_equal(record_command_errno(c), EMFILE);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        int now = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_int_equal(now, next); /* nor a descriptor */
        close(now);
    }
    record_command_free(c);
    c = prepare(argv, NULL);
    assert_int_equal(record_command_run(c), 0);
    assert_int_equal(wait_for(c), 0);
    record_command_free(c);
}

/* ---- signals ---- */

static atomic_int *handled; /* shared with children */

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(handled, 1);
}

static void signals_are_inherited_or_by_default(void **state)
{
    char signals[] = "signals";
    char *argv[] = {self, signals, NULL};
    sigset_t blocked;
    sigset_t saved;
    (void)state;
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, count_signal);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &saved);
    check_output(argv, false, "ignored default+blocked ignored ignored default+blocked ");
    check_output(argv, true, "default default default ignored default ");
    sigset_t now;
    sigprocmask(SIG_SETMASK, &saved, &now);
    assert_true(sigismember(&now, SIGTERM) && !sigismember(&now, SIGINT)); /* ours is as it was */
    struct sigaction action;
    assert_int_equal(sigaction(SIGTERM, NULL, &action), 0);
    assert_true(action.sa_handler == count_signal);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

static void a_signal_before_the_exec_ends_the_command_and_runs_no_handler_of_ours(void **state)
{
    char sleep[] = "sleep";
    char *argv[] = {self, sleep, NULL};
    (void)state;
    handled =
        mmap(NULL, sizeof(*handled), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(handled != MAP_FAILED);
    signal(SIGUSR1, count_signal);
    for (int i = 0; i < 2; i++) { /* whether its end is noticed before it is run, or not */
        int status = 0;
        struct record_command *c = prepare(argv, NULL);
        kill(record_command_pid(c), SIGUSR1);
        while (i == 0 && record_command_try_wait(c, &status) == 0)
            sched_yield();
        assert_int_equal(record_command_run(c), 0);
        status = wait_for(c);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
        assert_int_equal(atomic_load(handled), 0);
        record_command_free(c);
    }
    signal(SIGUSR1, SIG_DFL);
    munmap(handled, sizeof(*handled));
}

static void waiting_is_interrupted_by_a_signal(void **state)
{
    char sleep[] = "sleep";
    char *argv[] = {self, sleep, NULL};
    struct sigaction action = {.sa_handler = count_signal};
    struct sigaction saved;
    struct itimerval often = {{0, 5000}, {0, 5000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    static atomic_int count;
    int status;
    (void)state;
    handled = &count;
    struct record_command *c = prepare(argv, NULL);
    sigaction(SIGALRM, &action, &saved);
    setitimer(ITIMER_REAL, &often, NULL);
    assert_int_equal(record_command_run(c), 0);
    assert_int_equal(record_command_wait(c, &status), 0);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &saved, NULL);
    kill(record_command_pid(c), SIGKILL);
    status = wait_for(c);
    assert_true(WIFSIGNALED(status));
    record_command_free(c);
}

/* ---- ends ---- */

static void a_command_that_is_never_run_is_killed_and_reaped(void **state)
{
    char sleep[] = "sleep";
    char *argv[] = {self, sleep, NULL};
    struct record_command *c = prepare(argv, NULL);
    pid_t pid = record_command_pid(c);
    (void)state;
    record_command_free(c);
    assert_int_equal(waitpid(pid, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    record_command_free(NULL);
}

static void a_command_that_runs_is_left_alone(void **state)
{
    char sleep[] = "sleep";
    char *argv[] = {self, sleep, NULL};
    struct record_command *c = prepare(argv, NULL);
    pid_t pid = record_command_pid(c);
    (void)state;
    assert_int_equal(record_command_run(c), 0);
    record_command_free(c);
    kill(pid, SIGTERM);
    int status = reap_child(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* Prepares a command, tells its process id (and that of a process forked after it, which lives on with copies of
 * all descriptors), and is killed. Returns the command's wait status. */
static int lose_caller(char *path, bool with_bystander)
{
    pid_t pids[2] = {0, 0};
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t caller = fork();
    assert_true(caller >= 0);
    if (caller == 0) {
        char touch[] = "touch";
        char *argv[] = {touch, path, NULL};
        struct record_command *c = record_command_new();
        if (c == NULL || record_command_prepare(c, argv, NULL) != 0)
            _exit(99);
        pids[0] = record_command_pid(c);
        if (with_bystander && (pids[1] = fork()) == 0)
            for (;;)
                pause();
        if (write(fds[1], pids, sizeof(pids)) != (ssize_t)sizeof(pids))
            _exit(99);
        for (;;)
            pause();
    }
    assert_int_equal(read(fds[0], pids, sizeof(pids)), sizeof(pids));
    close(fds[0]);
    close(fds[1]);
    end_child(caller);
    int status = reap_child(pids[0]);
    if (with_bystander)
        end_child(pids[1]);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    return status;
}

static void a_command_whose_caller_goes_away_is_not_executed(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof(path), "%s", at("touched"));
    for (int i = 0; i < 2; i++) {
        int status = lose_caller(path, i == 1);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 127);
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* ---- threads ---- */

enum { THREADS = 8 };

struct racer {
    pthread_barrier_t *start;
    struct record_command *command;
    int rc;
};

static void *prepare_at_once(void *arg)
{
    char name[] = "true";
    char *argv[] = {name, NULL};
    struct racer *r = arg;
    pthread_barrier_wait(r->start);
    r->rc = record_command_prepare(r->command, argv, NULL);
    return NULL;
}

/* Children that still wait hold copies of what other threads had open at their fork. */
static void commands_prepared_at_once_do_not_wait_for_each_other(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct racer racers[THREADS];
        pthread_t threads[THREADS];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            racers[i] = (struct racer){.start = &start, .command = record_command_new()};
            assert_non_null(racers[i].command);
            assert_int_equal(pthread_create(&threads[i], NULL, prepare_at_once, &racers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) { /* each returns while the later ones wait */
            assert_int_equal(racers[i].rc, 0);
            assert_int_equal(record_command_run(racers[i].command), 0);
            assert_int_equal(wait_for(racers[i].command), 0);
            record_command_free(racers[i].command);
        }
        pthread_barrier_destroy(&start);
    }
}

/* ---- rules ---- */

static void steps_out_of_order_change_nothing(void **state)
{
    char name[] = "true";
    char *argv[] = {name, NULL};
    char *none[] = {NULL};
    struct record_command_options options = {.size = 0, .stdout_fd = -1};
    int status;
    (void)state;
    struct record_command *c = record_command_new();
    assert_non_null(c);
    assert_int_equal(record_command_run(c), RECORD_ERR_MISUSE);
    assert_int_equal(record_command_wait(c, &status), RECORD_ERR_MISUSE);
    assert_int_equal(record_command_try_wait(c, &status), RECORD_ERR_MISUSE);
    assert_int_equal(record_command_prepare(c, NULL, NULL), RECORD_ERR_MISUSE);
    assert_int_equal(record_command_prepare(c, none, NULL), RECORD_ERR_MISUSE);
    assert_int_equal(record_command_prepare(c, argv, &options), RECORD_ERR_MISUSE);
    options.size = sizeof(options);
    options.stdout_fd = -2;
    assert_int_equal(record_command_prepare(c, argv, &options), RECORD_ERR_MISUSE);
    options.stdout_fd = -1;
    assert_int_equal(record_command_prepare(c, argv, &options), 0);
    assert_int_equal(record_command_prepare(c, argv, &options), RECORD_ERR_MISUSE);
    assert_int_equal(record_command_wait(c, &status), RECORD_ERR_MISUSE); /* would never end */
    assert_int_equal(record_command_run(c), 0);
    assert_int_equal(record_command_run(c), RECORD_ERR_MISUSE);
    assert_int_equal(wait_for(c), 0);
    assert_int_equal(record_command_prepare(c, argv, NULL), RECORD_ERR_MISUSE);
    record_command_free(c);
}

static void a_command_that_somebody_else_reaped_has_no_status(void **state)
{
    char name[] = "true";
    char *argv[] = {name, NULL};
    int status;
    struct record_command *c = prepare(argv, NULL);
    (void)state;
    assert_int_equal(record_command_run(c), 0);
    reap_child(record_command_pid(c));
    assert_int_equal(record_command_wait(c, &status), RECORD_ERR_NO_PROCESS);
    assert_int_equal(record_command_try_wait(c, &status), RECORD_ERR_NO_PROCESS);
    record_command_free(c);
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_does_nothing_before_it_is_run),
        cmocka_unit_test(what_cannot_be_executed_is_said_with_its_reason),
        cmocka_unit_test(the_path_is_searched_as_execvp_does),
        cmocka_unit_test(a_script_without_interpreter_line_is_run_by_the_shell),
        cmocka_unit_test(what_is_closed_on_exec_does_not_reach_the_command),
        cmocka_unit_test(standard_descriptors_may_be_closed),
        cmocka_unit_test(a_standard_output_that_is_closed_on_exec_reaches_the_command),
        cmocka_unit_test(options_that_are_all_zero_leave_standard_output_alone),
        cmocka_unit_test(a_command_that_cannot_be_prepared_leaves_the_handle_as_new),
        cmocka_unit_test(signals_are_inherited_or_by_default),
        cmocka_unit_test(a_signal_before_the_exec_ends_the_command_and_runs_no_handler_of_ours),
        cmocka_unit_test(waiting_is_interrupted_by_a_signal),
        cmocka_unit_test(a_command_that_is_never_run_is_killed_and_reaped),
        cmocka_unit_test(a_command_that_runs_is_left_alone),
        cmocka_unit_test(a_command_whose_caller_goes_away_is_not_executed),
        cmocka_unit_test(commands_prepared_at_once_do_not_wait_for_each_other),
        cmocka_unit_test(steps_out_of_order_change_nothing),
        cmocka_unit_test(a_command_that_somebody_else_reaped_has_no_status),
    };
    if (argc > 1)
        return be_command(argv[1]);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
