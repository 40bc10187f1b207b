/* SPDX-License-Identifier: MIT */
/* Stopping processes: busy ones, dying ones, ones that cannot be stopped. */
#include "procfs.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "child_process.h"

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* Shared with the children. */
struct shared {
    atomic_ulong steps;
    atomic_ulong created;
    int gate[2]; /* a pipe that a child of vfork reads */
};

static struct shared *shared;

static int map_shared(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static void check_all_stopped(pid_t pid)
{
    pid_t *tids;
    ssize_t count = recordint_procfs_threads(pid, &tids);
    assert_true(count > 0);
    for (ssize_t i = 0; i < count; i++)
        if (strchr("TtZX-", state_of(pid, tids[i])) == NULL)
            fail_msg("thread %d of %d is in state %c", (int)tids[i], (int)pid,
                     state_of(pid, tids[i]));
    free(tids);
}

static void wait_for_steps(atomic_ulong *counter)
{
    unsigned long before = atomic_load(counter);
    while (atomic_load(counter) == before)
        sched_yield();
}

static void *step(void *unused)
{
    (void)unused;
    for (;;)
        atomic_fetch_add(&shared->steps, 1);
    return NULL;
}

static void start_threads(int count, void *(*run)(void *))
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, NULL) != 0)
            _exit(99);
    }
}

static void steps_in_threads(int ready_fd)
{
    start_threads(3, step);
    say_ready(ready_fd);
    step(NULL);
}

static void a_stopped_process_does_nothing_until_it_is_resumed(void **state)
{
    bool was_stopped = true;
    pid_t pid = start_child(steps_in_threads);
    (void)state;
    wait_for_steps(&shared->steps);
    assert_int_equal(recordint_procfs_stop(pid, ENOUGH_MS, &was_stopped), 0);
    assert_false(was_stopped);
    check_all_stopped(pid);
    unsigned long before = atomic_load(&shared->steps);
    for (int i = 0; i < 1000; i++)
        sched_yield();
    assert_int_equal(atomic_load(&shared->steps), before);
    recordint_procfs_resume(pid);
    wait_for_steps(&shared->steps);
    end_child(pid);
}

static void *nothing(void *unused)
{
    return unused;
}

static void *create_threads(void *unused)
{
    pthread_attr_t small;
    (void)unused;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, &small, nothing, NULL) == 0)
            pthread_join(thread, NULL);
        atomic_fetch_add(&shared->created, 1);
    }
    return NULL;
}

static void creates_threads(int ready_fd)
{
    start_threads(50, create_threads);
    say_ready(ready_fd);
    for (;;)
        pause();
}

static void a_process_that_keeps_creating_threads_is_stopped(void **state)
{
    pid_t pid = start_child(creates_threads);
    (void)state;
    for (int i = 0; i < 10; i++) {
        bool was_stopped;
        pid_t *before;
        pid_t *after;
        wait_for_steps(&shared->created);
        assert_int_equal(recordint_procfs_stop(pid, ENOUGH_MS, &was_stopped), 0);
        assert_false(was_stopped);
        ssize_t count = recordint_procfs_threads(pid, &before);
        assert_true(count > 50);
        check_all_stopped(pid);
        for (int j = 0; j < 100; j++)
            sched_yield();
        assert_int_equal(recordint_procfs_threads(pid, &after), count);
        assert_memory_equal(before, after, (size_t)count * sizeof(*before));
        free(before);
        free(after);
        recordint_procfs_resume(pid);
    }
    end_child(pid);
}

static void a_process_that_is_stopped_already_stays_so(void **state)
{
    bool was_stopped = false;
    int status;
    pid_t pid = start_child(steps_in_threads);
    (void)state;
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    /* waitpid says so when the last thread has stopped: there is nothing to wait for */
    assert_int_equal(recordint_procfs_stop(pid, 0, &was_stopped), 0);
    assert_true(was_stopped);
    check_all_stopped(pid);
    end_child(pid);
}

static void a_traced_process_that_stands_still_is_left_alone(void **state)
{
    bool was_stopped = false;
    int status;
    pid_t pid = start_child(sleeps);
    (void)state;
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) {
        end_child(pid);
        print_message("ptrace is refused: under a debugger, or not allowed in this container\n");
        skip();
    }
    assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, __WALL), pid);
    assert_int_equal(state_of(pid, 0), 't');
    assert_int_equal(recordint_procfs_stop(pid, 0, &was_stopped), 0);
    assert_true(was_stopped);
    assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
    wait_for_state(pid, 0, 'S'); /* no SIGSTOP was left behind */
    end_child(pid);
}

static void leaves_its_first_thread(int ready_fd)
{
    start_threads(1, step);
    say_ready(ready_fd);
    syscall(SYS_exit, 0); /* of the thread; pthread_exit would run what the sanitizers hang on it */
}

static void a_first_thread_that_has_ended_does_not_count(void **state)
{
    bool was_stopped = true;
    pid_t pid = start_child(leaves_its_first_thread);
    (void)state;
    wait_for_state(pid, 0, 'Z');
    assert_int_equal(recordint_procfs_stop(pid, ENOUGH_MS, &was_stopped), 0);
    assert_false(was_stopped);
    check_all_stopped(pid);
    assert_int_equal(recordint_procfs_stop(pid, 0, &was_stopped), 0);
    assert_true(was_stopped);
    recordint_procfs_resume(pid);
    wait_for_steps(&shared->steps);
    end_child(pid);
}

/* The parent sleeps uninterruptibly until the child of its vfork has ended. */
static void waits_in_vfork(int ready_fd)
{
    char byte;
    close(shared->gate[1]);
    say_ready(ready_fd);
    pid_t pid = vfork();
    if (pid == 0) {
        ssize_t n = read(shared->gate[0], &byte, 1);
        _exit(n == 0 ? 0 : 99);
    }
}

static pid_t start_vfork(void)
{
    assert_int_equal(pipe(shared->gate), 0);
    pid_t pid = start_child(waits_in_vfork);
    close(shared->gate[0]);
    wait_for_state(pid, 0, 'D');
    return pid;
}

/* Whether a stop signal waits for the process. */
static bool is_stop_pending(pid_t pid)
{
    char path[64];
    char *text;
    size_t size;
    unsigned long long pending = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    assert_int_equal(recordint_procfs_read(path, 1 << 20, &text, &size), 0);
    const char *line = strstr(text, "ShdPnd:");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "ShdPnd: %llx", &pending), 1);
    free(text);
    return (pending >> (SIGSTOP - 1) & 1) != 0;
}

static void a_process_that_cannot_stop_goes_on_as_before(void **state)
{
    static const int timeouts_ms[] = {20, 0, -5};
    bool was_stopped;
    pid_t pid = start_vfork();
    (void)state;
    for (size_t i = 0; i < sizeof(timeouts_ms) / sizeof(timeouts_ms[0]); i++) {
        assert_int_equal(recordint_procfs_stop(pid, timeouts_ms[i], &was_stopped), ETIMEDOUT);
        assert_false(was_stopped);
        assert_false(is_stop_pending(pid));
    }
    close(shared->gate[1]);
    int status = reap_child(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *kill_when_stopping(void *arg)
{
    pid_t pid = *(const pid_t *)arg;
    while (!is_stop_pending(pid))
        sched_yield();
    kill(pid, SIGKILL);
    return NULL;
}

static void a_process_that_dies_while_being_stopped_is_gone(void **state)
{
    bool was_stopped;
    pthread_t killer;
    pid_t pid = start_vfork();
    (void)state;
    assert_int_equal(pthread_create(&killer, NULL, kill_when_stopping, &pid), 0);
    assert_int_equal(recordint_procfs_stop(pid, ENOUGH_MS, &was_stopped), ESRCH);
    assert_false(was_stopped);
    pthread_join(killer, NULL);
    close(shared->gate[1]);
    reap_child(pid);
}

static void processes_that_die_at_any_moment_are_gone_or_stopped(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        bool was_stopped;
        pid_t pid = start_child(ends);
        int rc = recordint_procfs_stop(pid, ENOUGH_MS, &was_stopped);
        assert_true(rc == 0 || rc == ESRCH);
        if (rc == 0)
            assert_int_equal(state_of(pid, 0), 'T');
        recordint_procfs_resume(pid);
        reap_child(pid);
    }
}

static void what_is_no_process_cannot_be_stopped(void **state)
{
    bool was_stopped;
    pid_t zombie = start_zombie();
    (void)state;
    assert_int_equal(recordint_procfs_stop(zombie, 1000, &was_stopped), ESRCH);
    reap_child(zombie);
    assert_int_equal(recordint_procfs_stop(zombie, 1000, &was_stopped), ESRCH);
    /* as kill() has it: our group, everybody, a group */
    assert_int_equal(recordint_procfs_stop(0, 1000, &was_stopped), ESRCH);
    assert_int_equal(recordint_procfs_stop(-1, 1000, &was_stopped), ESRCH);
    assert_int_equal(recordint_procfs_stop(-getpgrp(), 1000, &was_stopped), ESRCH);
    recordint_procfs_resume(0);
    recordint_procfs_resume(-1);
}

static void *stop_own_thread(void *unused)
{
    bool was_stopped;
    (void)unused;
    int rc = recordint_procfs_stop((pid_t)syscall(SYS_gettid), 1000, &was_stopped);
    return rc == EINVAL ? shared : NULL;
}

static void we_cannot_stop_ourselves(void **state)
{
    bool was_stopped;
    pthread_t thread;
    void *refused;
    (void)state;
    assert_int_equal(recordint_procfs_stop(getpid(), 1000, &was_stopped), EINVAL);
    assert_int_equal(pthread_create(&thread, NULL, stop_own_thread, NULL), 0);
    pthread_join(thread, &refused);
    assert_non_null(refused);
}

static int stop_it(pid_t pid)
{
    bool was_stopped;
    return recordint_procfs_stop(pid, 1000, &was_stopped);
}

static void a_strangers_process_may_not_be_stopped(void **state)
{
    pid_t pid = strangers_process();
    (void)state;
    assert_int_equal(ask_as_nobody(stop_it, pid), EPERM);
    if (pid != 1) { /* nor is it said to be stopped when it is */
        kill(pid, SIGSTOP);
        wait_for_state(pid, 0, 'T');
        assert_int_equal(ask_as_nobody(stop_it, pid), EPERM);
    }
    end_strangers_process(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_process_does_nothing_until_it_is_resumed),
        cmocka_unit_test(a_process_that_keeps_creating_threads_is_stopped),
        cmocka_unit_test(a_process_that_is_stopped_already_stays_so),
        cmocka_unit_test(a_traced_process_that_stands_still_is_left_alone),
        cmocka_unit_test(a_first_thread_that_has_ended_does_not_count),
        cmocka_unit_test(a_process_that_cannot_stop_goes_on_as_before),
        cmocka_unit_test(a_process_that_dies_while_being_stopped_is_gone),
        cmocka_unit_test(processes_that_die_at_any_moment_are_gone_or_stopped),
        cmocka_unit_test(what_is_no_process_cannot_be_stopped),
        cmocka_unit_test(we_cannot_stop_ourselves),
        cmocka_unit_test(a_strangers_process_may_not_be_stopped),
    };
    return cmocka_run_group_tests(tests, map_shared, NULL);
}
