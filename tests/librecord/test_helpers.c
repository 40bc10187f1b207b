/* SPDX-License-Identifier: MIT */
/* The helpers of record.h that need no session. */
#include "spool/record.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "child_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

static void the_highest_rate_is_the_kernels(void **state)
{
    uint32_t hz = 0;
    unsigned expected;
    (void)state;
    FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "r");
    if (f == NULL) {
        assert_int_equal(record_max_sample_rate(&hz), 0);
        return;
    }
    assert_int_equal(fscanf(f, "%u", &expected), 1);
    fclose(f);
    assert_int_equal(record_max_sample_rate(&hz), 1);
    assert_int_equal(hz, expected);
}

/* ---- exists ---- */

static void *own_tid(void *tid)
{
    *(pid_t *)tid = (pid_t)syscall(SYS_gettid);
    *(int *)((pid_t *)tid + 1) = record_process_exists(*(pid_t *)tid);
    return NULL;
}

static void processes_exist_and_zombies_and_threads_do_not(void **state)
{
    pid_t zombie = start_zombie();
    pid_t sleeper = start_child(sleeps);
    pthread_t thread;
    int tid_and_answer[2] = {0, -1};
    (void)state;
    assert_int_equal(record_process_exists(getpid()), 1);
    assert_int_equal(record_process_exists(1), 1);
    assert_int_equal(record_process_exists(sleeper), 1);
    kill(sleeper, SIGSTOP);
    wait_for_state(sleeper, 0, 'T');
    assert_int_equal(record_process_exists(sleeper), 1);
    assert_int_equal(record_process_exists(zombie), 0);
    reap_child(zombie);
    assert_int_equal(record_process_exists(zombie), 0);
    end_child(sleeper);
    assert_int_equal(record_process_exists(sleeper), 0);
    assert_int_equal(record_process_exists(0), 0);
    assert_int_equal(record_process_exists(-1), 0);
    assert_int_equal(pthread_create(&thread, NULL, own_tid, tid_and_answer), 0);
    pthread_join(thread, NULL);
    assert_true(tid_and_answer[0] > 0);
    assert_int_equal(tid_and_answer[1], 0);
}

static void *waits(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void leaves_its_first_thread(int ready_fd)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, waits, NULL) != 0)
        _exit(99);
    say_ready(ready_fd);
    syscall(SYS_exit, 0);
}

static void a_process_whose_first_thread_has_ended_exists(void **state)
{
    pid_t pid = start_child(leaves_its_first_thread);
    (void)state;
    wait_for_state(pid, 0, 'Z');
    assert_int_equal(record_process_exists(pid), 1);
    kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(record_process_exists(pid), 0);
    reap_child(pid);
}

/* ---- signals ---- */

static void a_process_is_interrupted_or_killed(void **state)
{
    int status;
    (void)state;
    pid_t pid = start_child(sleeps);
    assert_int_equal(record_process_interrupt(pid), 0);
    status = reap_child(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    pid = start_child(sleeps);
    assert_int_equal(record_process_kill(pid), 0);
    status = reap_child(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void what_is_no_process_gets_no_signal(void **state)
{
    static const pid_t none[] = {0, -1};
    pid_t gone = gone_process();
    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_int_equal(record_process_interrupt(none[i]), RECORD_ERR_NO_PROCESS);
        assert_int_equal(record_process_kill(none[i]), RECORD_ERR_NO_PROCESS);
    }
    assert_int_equal(record_process_interrupt(-getpgrp()), RECORD_ERR_NO_PROCESS);
    assert_int_equal(record_process_interrupt(gone), RECORD_ERR_NO_PROCESS);
    assert_int_equal(record_process_kill(gone), RECORD_ERR_NO_PROCESS);
}

static int ask_all(pid_t pid)
{
    int fd = record_exit_fd_open(pid);
    return (record_process_exists(pid) == 1 ? 0 : 1) |
           (record_process_interrupt(pid) == RECORD_ERR_PERMISSION ? 0 : 2) |
           (record_process_kill(pid) == RECORD_ERR_PERMISSION ? 0 : 4) |
           (fd >= 0 && record_exit_fd_wait(fd, 0) == 0 ? 0 : 8);
}

static void a_strangers_process_exists_and_may_not_be_signalled(void **state)
{
    pid_t pid = strangers_process();
    (void)state;
    assert_int_equal(ask_as_nobody(ask_all, pid), 0);
    end_strangers_process(pid);
}

/* ---- exit descriptors ---- */

static void an_exit_descriptor_is_readable_when_the_process_has_ended(void **state)
{
    pid_t pid = start_child(sleeps);
    int fd = record_exit_fd_open(pid);
    (void)state;
    assert_true(fd >= 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(record_exit_fd_wait(fd, 0), 0);
    assert_int_equal(record_exit_fd_wait(fd, 1), 0);
    kill(pid, SIGKILL);
    assert_int_equal(record_exit_fd_wait(fd, -1), 1); /* also as a zombie */
    reap_child(pid);
    assert_int_equal(record_exit_fd_wait(fd, -1), 1);
    close(fd);
}

static void nothing(int number)
{
    (void)number;
}

static void waiting_for_an_exit_ends_with_a_signal(void **state)
{
    struct sigaction action = {.sa_handler = nothing};
    struct sigaction saved;
    struct itimerspec often = {{0, 5000000}, {0, 5000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    pid_t pid = start_child(sleeps);
    int fd = record_exit_fd_open(pid);
    (void)state;
    assert_true(fd >= 0);
    sigaction(SIGALRM, &action, &saved);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
    assert_int_equal(record_exit_fd_wait(fd, -1), 0);
    timer_delete(timer);
    sigaction(SIGALRM, &saved, NULL);
    close(fd);
    end_child(pid);
}

static void *open_own_tid(void *rc)
{
    *(int *)rc = record_exit_fd_open((pid_t)syscall(SYS_gettid));
    return NULL;
}

static void what_is_no_process_has_no_exit_descriptor(void **state)
{
    pthread_t thread;
    int rc = 0;
    struct rlimit limit;
    (void)state;
    assert_int_equal(record_exit_fd_open(gone_process()), RECORD_ERR_NO_PROCESS);
    assert_int_equal(record_exit_fd_open(0), RECORD_ERR_NO_PROCESS);
    assert_int_equal(record_exit_fd_open(-1), RECORD_ERR_NO_PROCESS);
    assert_int_equal(pthread_create(&thread, NULL, open_own_tid, &rc), 0);
    pthread_join(thread, NULL);
    assert_int_equal(rc, RECORD_ERR_NO_PROCESS);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit low = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    rc = record_exit_fd_open(getpid());
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(rc, RECORD_ERR_LIMIT);
}

static void what_is_no_descriptor_cannot_be_waited_on(void **state)
{
    int fd = record_exit_fd_open(getpid());
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(record_exit_fd_wait(fd, -1), RECORD_ERR_MISUSE);
    assert_int_equal(record_exit_fd_wait(-1, -1), RECORD_ERR_MISUSE);
    assert_int_equal(record_exit_fd_wait(RECORD_ERR_NO_PROCESS, -1), RECORD_ERR_MISUSE);
}

/* ---- descendants ---- */

static int pids_fd; /* of the tree's processes, for their ids */

static void tell_pid(void)
{
    pid_t pid = getpid();
    if (write(pids_fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
        _exit(99);
}

/* A child that has one in turn. */
static void grow(void)
{
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fork();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        tell_pid();
        for (;;)
            pause();
    }
}

static void *grow_in_thread(void *unused)
{
    grow();
    for (;;) /* or the death signal comes: it is the thread's that forked */
        pause();
    return unused;
}

/* Two children, each with a child: one from the first thread, one from another. */
static void is_tree(int ready_fd)
{
    pthread_t thread;
    grow();
    if (pthread_create(&thread, NULL, grow_in_thread, NULL) != 0)
        _exit(99);
    say_ready(ready_fd);
    for (;;)
        pause();
}

static int compare_pids(const void *a, const void *b)
{
    return *(const pid_t *)a < *(const pid_t *)b ? -1 : 1;
}

static void children_of_threads_and_their_children_are_descendants(void **state)
{
    pid_t expected[4];
    pid_t found[6] = {0};
    int fds[2];
    (void)state;
    assert_int_equal(pipe(fds), 0);
    pids_fd = fds[1];
    pid_t root = start_child(is_tree);
    close(fds[1]);
    for (int i = 0; i < 4; i++)
        assert_int_equal(read(fds[0], &expected[i], sizeof(pid_t)), sizeof(pid_t));
    close(fds[0]);
    qsort(expected, 4, sizeof(pid_t), compare_pids);

    assert_int_equal(record_descendants(root, found, 6), 4);
    assert_memory_equal(found, expected, sizeof(expected));
    assert_int_equal(found[4], 0);
    memset(found, 0, sizeof(found));
    assert_int_equal(record_descendants(root, found, 2), 4);
    assert_memory_equal(found, expected, 2 * sizeof(pid_t));
    assert_int_equal(found[2], 0);
    assert_int_equal(record_descendants(root, NULL, 0), 4);
    pid_t all[64];
    size_t count = record_descendants(getpid(), all, 64);
    assert_int_equal(count, 5);
    end_child(root);
    assert_int_equal(record_descendants(root, found, 6), 0);
    assert_int_equal(record_descendants(0, found, 6), 0);
    assert_int_equal(record_descendants(-1, found, 6), 0);
}

/* ---- addresses ---- */

static void an_address_in_a_mapping_has_a_place_in_its_file(void **state)
{
    uint64_t out = 1;
    (void)state;
    assert_int_equal(record_file_address(0x1000, 0x3000, 0x500000, 0x1000, &out), 1);
    assert_true(out == 0x500000);
    assert_int_equal(record_file_address(0x1000, 0x3000, 0x500000, 0x2fff, &out), 1);
    assert_true(out == 0x501fff);
    assert_int_equal(record_file_address(0, UINT64_MAX, 0, UINT64_MAX - 1, &out), 1);
    assert_true(out == UINT64_MAX - 1);
    assert_int_equal(record_file_address(0x1000, 0x3000, UINT64_MAX - 0x10, 0x1010, &out), 1);
    assert_true(out == UINT64_MAX);
    out = 7;
    assert_int_equal(record_file_address(0x1000, 0x3000, UINT64_MAX - 0x10, 0x1011, &out), 0);
    assert_int_equal(record_file_address(0x1000, 0x3000, 0, 0xfff, &out), 0);
    assert_int_equal(record_file_address(0x1000, 0x3000, 0, 0x3000, &out), 0);
    assert_int_equal(record_file_address(0x3000, 0x1000, 0, 0x2000, &out), 0);
    assert_int_equal(record_file_address(0x1000, 0x1000, 0, 0x1000, &out), 0);
    assert_true(out == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_rate_is_the_kernels),
        cmocka_unit_test(processes_exist_and_zombies_and_threads_do_not),
        cmocka_unit_test(a_process_whose_first_thread_has_ended_exists),
        cmocka_unit_test(a_process_is_interrupted_or_killed),
        cmocka_unit_test(what_is_no_process_gets_no_signal),
        cmocka_unit_test(a_strangers_process_exists_and_may_not_be_signalled),
        cmocka_unit_test(an_exit_descriptor_is_readable_when_the_process_has_ended),
        cmocka_unit_test(waiting_for_an_exit_ends_with_a_signal),
        cmocka_unit_test(what_is_no_process_has_no_exit_descriptor),
        cmocka_unit_test(what_is_no_descriptor_cannot_be_waited_on),
        cmocka_unit_test(children_of_threads_and_their_children_are_descendants),
        cmocka_unit_test(an_address_in_a_mapping_has_a_place_in_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
