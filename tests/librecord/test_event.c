/* SPDX-License-Identifier: MIT */
/*
 * Events: which one is tried next and what is told, in tables; the loop, on a perf_event_open that is scripted
 * (--wrap=syscall); and with the kernel's own, where that is permitted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "event.h"
#include "event_refusal.h"
#include "kernel_limits.h"
#include "spool/record.h"

enum { NOBODY = 65534 };

static const struct event_config wanted = {.frequency_hz = 999,
                                           .stack_size_bytes = 2048,
                                           .auto_event = true,
                                           .kernel = true,
                                           .exclude_guest = true};
static struct record_errbuf error;

/* ---- a scripted perf_event_open ---- */

static int script[16]; /* errno values, 0: success; the last goes on */
static size_t script_length;
static size_t calls;
static struct perf_event_attr asked[16];

long __real_syscall(long number, ...);

/* Of what is linked here only event.c calls syscall, and only for this. */
long __wrap_syscall(long number, ...)
{
    const struct perf_event_attr *attr;
    pid_t tid;
    int cpu, group;
    unsigned long flags;
    va_list args;

    assert_int_equal(number, SYS_perf_event_open);
    va_start(args, number);
    attr = va_arg(args, const struct perf_event_attr *);
    tid = va_arg(args, pid_t);
    cpu = va_arg(args, int);
    group = va_arg(args, int);
    flags = va_arg(args, unsigned long);
    va_end(args);
    if (script_length == 0)
        return __real_syscall(number, attr, tid, cpu, group, flags);
    assert_true(calls < 16);
    asked[calls] = *attr;
    errno = script[calls < script_length ? calls : script_length - 1];
    calls++;
    return errno == 0 ? 1000 : -1;
}

static int scripted_open(struct event_config *config, const struct event_where *where,
                         const int *errnos, size_t count)
{
    int fd;

    memcpy(script, errnos, count * sizeof errnos[0]);
    script_length = count;
    calls = 0;
    fd = recordint_event_open(config, where, &error);
    script_length = 0;
    return fd;
}

static const struct event_where here = {0, -1, EVENT_INHERIT_NONE, false, false, 1 << 20};

static void attributes_are_those_of_the_specification(void **state)
{
    static const int errnos[] = {0};
    struct event_where where = {0, 3, EVENT_INHERIT_ALL, true, true, 1 << 20};
    struct event_config config = wanted;
    const struct perf_event_attr *a = asked;

    (void)state;
    assert_int_equal(scripted_open(&config, &where, errnos, 1), 1000);
    assert_int_equal(a->type, PERF_TYPE_HARDWARE);
    assert_int_equal(a->config, PERF_COUNT_HW_CPU_CYCLES);
    assert_int_equal(a->freq, 1);
    assert_int_equal(a->sample_freq, 999);
    assert_int_equal(a->sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                         PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                                         PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
                                         PERF_SAMPLE_CALLCHAIN);
    assert_int_equal(a->exclude_callchain_user, 1);
    assert_int_equal(a->exclude_kernel, 0);
    assert_int_equal(a->sample_stack_user, 2048);
    assert_int_equal(a->sample_regs_user, recordint_perfrec_regs_mask(ARCH_NATIVE));
    assert_int_equal(a->use_clockid, 1);
    assert_int_equal(a->clockid, CLOCK_MONOTONIC);
    assert_int_equal(a->sample_id_all, 1);
    assert_true(a->mmap && a->mmap2 && a->comm && a->comm_exec && a->task);
    assert_true(a->ksymbol && a->bpf_event);
    assert_false(a->mmap_data || a->build_id || a->context_switch);
    assert_true(a->exclude_guest && a->exclude_hv);
    assert_int_equal(a->precise_ip, 0);
    assert_int_equal(a->watermark, 1);
    assert_int_equal(a->wakeup_watermark, 1 << 18);
    assert_int_equal(a->read_format, PERF_FORMAT_ID | PERF_FORMAT_LOST);
    assert_true(a->disabled && a->enable_on_exec && a->inherit);
    assert_false(a->inherit_thread || a->remove_on_exec);
    assert_true(config.settled);
    assert_string_equal(recordint_event_name(&config), "cycles");
}

static void without_kernel_frames_nothing_of_the_kernel_is_asked_for(void **state)
{
    static const int errnos[] = {0};
    struct event_where where = {0, 3, EVENT_INHERIT_THREADS, false, false, 1 << 20};
    struct event_config config = wanted;
    struct perfrec_layout layout;

    (void)state;
    config.kernel = false;
    assert_int_equal(scripted_open(&config, &where, errnos, 1), 1000);
    assert_int_equal(asked[0].exclude_kernel, 1);
    assert_false(asked[0].ksymbol || asked[0].bpf_event || asked[0].exclude_callchain_user);
    assert_true(asked[0].inherit && asked[0].inherit_thread);
    assert_false(config.kernel_refused);
    recordint_event_layout(&config, &layout);
    assert_int_equal(layout.sample_type, asked[0].sample_type);
    assert_int_equal(layout.sample_type & PERF_SAMPLE_CALLCHAIN, 0);
    assert_int_equal(layout.sample_regs_user, asked[0].sample_regs_user);
}

static void fallbacks_are_tried_in_order(void **state)
{
    static const struct {
        int errnos[6];
        size_t count;
        int result; /* descriptor or code */
        bool cpu_clock, kernel, exclude_guest;
    } cases[] = {
        {{0}, 1, 1000, false, true, true},
        {{EINTR, EINTR, 0}, 3, 1000, false, true, true},
        {{ENOENT, 0}, 2, 1000, true, true, true},
        {{ENODEV, 0}, 2, 1000, true, true, true},
        {{EOPNOTSUPP, 0}, 2, 1000, false, true, false},
        {{EINVAL, 0}, 2, 1000, false, true, false},
        {{EOPNOTSUPP, EOPNOTSUPP, 0}, 3, 1000, true, true, true},
        {{EINVAL, EINVAL, 0}, 3, 1000, true, true, true},
        {{EINVAL, EINVAL, EINVAL, 0}, 4, 1000, true, true, false},
        {{EINVAL, EINVAL, EINVAL, EINVAL}, 4, RECORD_ERR_UNSUPPORTED, false, true, true},
        {{EACCES, 0}, 2, 1000, false, false, true},
        {{EACCES, ENOENT, 0}, 3, 1000, true, false, true},
        {{ENOENT, EACCES, 0}, 3, 1000, true, false, true},
        {{EACCES, EACCES}, 2, RECORD_ERR_PERMISSION, false, true, true},
        {{EPERM}, 1, RECORD_ERR_PERMISSION, false, true, true},
        {{EMFILE}, 1, RECORD_ERR_LIMIT, false, true, true},
        {{ENFILE}, 1, RECORD_ERR_LIMIT, false, true, true},
        {{ESRCH}, 1, RECORD_ERR_NO_PROCESS, false, true, true},
        {{EBUSY}, 1, RECORD_ERR_UNSUPPORTED, false, true, true},
        {{ENOSPC}, 1, RECORD_ERR_UNSUPPORTED, false, true, true},
        {{ENOMEM}, 1, RECORD_ERR_NOMEM, false, true, true},
        {{ENOSYS}, 1, RECORD_ERR_UNSUPPORTED, false, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct event_config config = wanted;
        int fd = scripted_open(&config, &here, cases[i].errnos, cases[i].count);

        if (fd != cases[i].result || calls != cases[i].count)
            fail_msg("case %zu: result %d after %zu calls", i, fd, calls);
        if (config.cpu_clock != cases[i].cpu_clock || config.kernel != cases[i].kernel ||
            config.exclude_guest != cases[i].exclude_guest)
            fail_msg("case %zu: other fallbacks", i);
        assert_int_equal(config.settled, fd >= 0);
        assert_int_equal(config.kernel_refused, fd >= 0 && !cases[i].kernel);
        if (fd < 0) {
            assert_int_equal(error.code, fd);
            assert_int_equal(error.system, cases[i].errnos[cases[i].count - 1]);
            assert_true(strlen(error.text) > 10);
        }
    }
}

static void a_settled_event_falls_back_no_more(void **state)
{
    static const int errnos[] = {ENOENT, EINVAL, EACCES, EOPNOTSUPP};
    struct event_config config = wanted;

    (void)state;
    config.settled = true;
    for (size_t i = 0; i < 4; i++) {
        assert_true(scripted_open(&config, &here, &errnos[i], 1) < 0);
        assert_int_equal(calls, 1);
        assert_true(config.kernel && config.exclude_guest && !config.cpu_clock);
    }
}

static void a_named_event_does_not_become_another(void **state)
{
    static const int errnos[] = {ENOENT};
    struct event_config config = wanted;

    (void)state;
    config.auto_event = false;
    assert_int_equal(scripted_open(&config, &here, errnos, 1), RECORD_ERR_UNSUPPORTED);
    assert_int_equal(calls, 1);
    assert_non_null(strstr(error.text, "cpu-clock"));
}

static void a_frequency_above_the_limit_is_told_with_both_numbers(void **state)
{
    static const int errnos[] = {EINVAL};
    struct event_config config = wanted;
    char number[32];
    int64_t limit;

    (void)state;
    if (!recordint_limits_sysctl("perf_event_max_sample_rate", &limit)) {
        print_message("no kernel.perf_event_max_sample_rate\n");
        skip();
    }
    config.frequency_hz = 3000000000u;
    assert_int_equal(scripted_open(&config, &here, errnos, 1), RECORD_ERR_LIMIT);
    assert_int_equal(calls, 1);
    assert_int_equal(error.system, EINVAL);
    assert_non_null(strstr(error.text, "3000000000"));
    snprintf(number, sizeof number, " %lld", (long long)limit);
    assert_non_null(strstr(error.text, number));
}

/* ---- words ---- */

#define PARANOID(n) .has_paranoid = true, .paranoid = (n)

static void a_refusal_names_its_reason_and_what_helps(void **state)
{
    static const struct {
        int system;
        pid_t tid;
        int cpu;
        bool kernel;
        struct event_facts facts;
        int code;
        const char *words[4];
    } cases[] = {
        {EACCES,
         12,
         0,
         false,
         {PARANOID(3), .owner = EVENT_OWNER_US},
         RECORD_ERR_PERMISSION,
         {"thread 12", "kernel.perf_event_paranoid is 3; 2 allows your own programs",
          "sysctl kernel.perf_event_paranoid=2", "CAP_PERFMON"}},
        {EPERM,
         12,
         0,
         false,
         {PARANOID(4), .owner = EVENT_OWNER_UNKNOWN},
         RECORD_ERR_PERMISSION,
         {"perf_event_paranoid is 4; 2 allows"}},
        {EACCES,
         12,
         0,
         true,
         {PARANOID(2), .owner = EVENT_OWNER_US},
         RECORD_ERR_PERMISSION,
         {"is 2; 1 allows kernel frames", "paranoid=1"}},
        {EACCES,
         -1,
         3,
         false,
         {PARANOID(1)},
         RECORD_ERR_PERMISSION,
         {"is 1; 0 allows sampling all processes", "paranoid=0"}},
        {EACCES,
         12,
         0,
         false,
         {PARANOID(2), .owner = EVENT_OWNER_OTHER, .owner_uid = 1007},
         RECORD_ERR_PERMISSION,
         {"belongs to another user (uid 1007)", "CAP_PERFMON"}},
        {EPERM,
         12,
         0,
         false,
         {PARANOID(3), .owner = EVENT_OWNER_OTHER, .owner_uid = 1007},
         RECORD_ERR_PERMISSION,
         {"belongs to another user"}},
        {EACCES,
         12,
         0,
         false,
         {PARANOID(2), .owner = EVENT_OWNER_HIDDEN},
         RECORD_ERR_PERMISSION,
         {"its process is protected", "PR_SET_DUMPABLE"}},
        {EPERM,
         12,
         0,
         false,
         {PARANOID(2), .owner = EVENT_OWNER_US, .seccomp = true},
         RECORD_ERR_PERMISSION,
         {"seccomp", "container"}},
        {EPERM,
         12,
         0,
         false,
         {PARANOID(3), .owner = EVENT_OWNER_US, .seccomp = true},
         RECORD_ERR_PERMISSION,
         {"seccomp"}},
        {EACCES,
         12,
         0,
         false,
         {PARANOID(3), .owner = EVENT_OWNER_US, .seccomp = true},
         RECORD_ERR_PERMISSION,
         {"is 3; 2 allows"}},
        {EACCES,
         12,
         0,
         false,
         {PARANOID(3), .owner = EVENT_OWNER_OTHER, .privileged = true},
         RECORD_ERR_PERMISSION,
         {"security module"}},
        {EPERM,
         12,
         0,
         false,
         {PARANOID(2), .owner = EVENT_OWNER_US},
         RECORD_ERR_PERMISSION,
         {"container"}},
        {ENOSYS, 12, 0, false, {.seccomp = true}, RECORD_ERR_UNSUPPORTED, {"seccomp"}},
        {ENOSYS,
         12,
         0,
         false,
         {.seccomp = false},
         RECORD_ERR_UNSUPPORTED,
         {"no perf_event_open", "seccomp"}},
        {ESRCH, 12, 0, false, {PARANOID(2)}, RECORD_ERR_NO_PROCESS, {"thread 12 has ended"}},
        {ENODEV, 12, 5, false, {.cpu_offline = true}, RECORD_ERR_NO_PROCESS, {"CPU 5 is offline"}},
        {ENODEV, 12, -1, false, {.cpu_offline = false}, RECORD_ERR_UNSUPPORTED, {"No such device"}},
        {EMFILE,
         12,
         0,
         false,
         {.file_limit = 1024},
         RECORD_ERR_LIMIT,
         {"RLIMIT_NOFILE is 1024", "ulimit -n"}},
        {ENFILE, 12, 0, false, {.file_limit = 1024}, RECORD_ERR_LIMIT, {"fs.file-max"}},
        {EINVAL,
         12,
         0,
         false,
         {.has_rate_limit = true, .rate_limit_hz = 500},
         RECORD_ERR_LIMIT,
         {"999 Hz", "perf_event_max_sample_rate", "500"}},
        {EINVAL,
         12,
         0,
         false,
         {.has_rate_limit = true, .rate_limit_hz = 999},
         RECORD_ERR_UNSUPPORTED,
         {"Invalid argument"}},
        {E2BIG, 12, 0, false, {.has_rate_limit = false}, RECORD_ERR_UNSUPPORTED, {"Linux 6.0"}},
        {EBUSY, 12, 0, false, {.has_rate_limit = false}, RECORD_ERR_UNSUPPORTED, {"busy"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code =
            recordint_event_refuse(&wanted, "thread 12", cases[i].tid, cases[i].cpu,
                                   cases[i].kernel, cases[i].system, &cases[i].facts, &error);

        if (code != cases[i].code || error.code != code || error.system != cases[i].system)
            fail_msg("case %zu: code %d, errno %d: %s", i, code, error.system, error.text);
        for (size_t k = 0; k < 4 && cases[i].words[k] != NULL; k++)
            if (strstr(error.text, cases[i].words[k]) == NULL)
                fail_msg("case %zu: no \"%s\" in \"%s\"", i, cases[i].words[k], error.text);
        if (strlen(error.text) + 1 >= sizeof error.text ||
            error.text[strlen(error.text) - 1] == '.')
            fail_msg("case %zu: \"%s\"", i, error.text);
    }
}

static void an_offline_cpu_makes_no_other_event(void **state)
{
    struct event_attempt attempt = {false, true, true};
    struct event_facts facts = {.cpu_offline = true};

    (void)state;
    assert_false(recordint_event_next_attempt(&wanted, &attempt, ENODEV, &facts));
    facts.cpu_offline = false;
    assert_true(recordint_event_next_attempt(&wanted, &attempt, ENODEV, &facts));
    assert_true(attempt.cpu_clock);
}

static void a_refused_ring_names_both_limits(void **state)
{
    (void)state;
    assert_int_equal(recordint_event_refuse_ring(65536, EPERM, 516, 8192 << 10, &error),
                     RECORD_ERR_PERMISSION);
    assert_non_null(strstr(error.text, "64 KiB"));
    assert_non_null(strstr(error.text, "perf_event_mlock_kb is 516"));
    assert_non_null(strstr(error.text, "RLIMIT_MEMLOCK is 8192 KiB"));
    assert_int_equal(recordint_event_refuse_ring(65536, EPERM, -1, UINT64_MAX, &error),
                     RECORD_ERR_PERMISSION);
    assert_non_null(strstr(error.text, "is unlimited"));
    assert_int_equal(recordint_event_refuse_ring(65536, ENOMEM, 516, 0, &error), RECORD_ERR_NOMEM);
    assert_int_equal(recordint_event_refuse_ring(65536, EINVAL, 516, 0, &error),
                     RECORD_ERR_UNSUPPORTED);
}

/* ---- the kernel's own ---- */

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noinline)) void spin(double seconds)
{
    double end = cpu_seconds() + seconds;
    volatile uint64_t n = 0;

    while (cpu_seconds() < end)
        for (unsigned i = 0; i < 100000; i++)
            n = n + i;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Opens on this thread; skips the test where that is not permitted. */
static int open_or_skip(struct event_config *config, const struct event_where *where)
{
    int fd = recordint_event_open(config, where, &error);

    if (fd == RECORD_ERR_PERMISSION || fd == RECORD_ERR_UNSUPPORTED) {
        print_message("%s\n", error.text);
        skip();
    }
    assert_true(fd >= 0);
    return fd;
}

struct live {
    struct event_config config;
    struct perfrec_layout layout;
    struct ring ring;
    bool reading; /* a record was handed out */
    int fd;
};

static void live_open(struct live *l, bool kernel)
{
    struct event_where where = here;

    where.ring_size_bytes = 512 << 10;
    l->reading = false;
    l->config = wanted;
    l->config.kernel = kernel;
    l->fd = open_or_skip(&l->config, &where);
    assert_int_equal(fcntl(l->fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(recordint_event_map(l->fd, where.ring_size_bytes, &l->ring, &error), 0);
    recordint_event_layout(&l->config, &l->layout);
}

static void live_close(struct live *l)
{
    recordint_ring_unmap(&l->ring);
    close(l->fd);
}

static bool live_next(struct live *l, struct perfrec *out)
{
    const void *data;
    size_t size;

    if (l->reading)
        recordint_ring_consume(&l->ring);
    l->reading = true;
    if (!recordint_ring_peek(&l->ring, &data, &size))
        return false;
    assert_int_equal(recordint_perfrec_parse(&l->layout, data, size, out), 0);
    return true;
}

static void live_stop(struct live *l)
{
    assert_int_equal(recordint_event_disable(l->fd), 0);
    recordint_ring_update(&l->ring);
}

extern char __executable_start, etext;

struct stack_range {
    uintptr_t low, high;
};

static struct stack_range stack_of_this_thread(void)
{
    pthread_attr_t attr;
    size_t size;
    void *low;

    assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
    assert_int_equal(pthread_attr_getstack(&attr, &low, &size), 0);
    pthread_attr_destroy(&attr);
    return (struct stack_range){(uintptr_t)low, (uintptr_t)low + size};
}

/* Saved frame pointer and return address of the caller: they stay while the caller runs. */
static void expect_stack_bytes(const struct perfrec_sample *s, uintptr_t frame)
{
    uintptr_t sp = (uintptr_t)s->regs.value[reg_sp(ARCH_NATIVE)];

    if (frame < sp || frame + 16 - sp > s->stack_size)
        return;
    assert_memory_equal(s->stack + (frame - sp), (const void *)frame, 16);
}

static void a_busy_loop_is_sampled_with_its_registers_and_stack(void **state)
{
    const struct stack_range stack = stack_of_this_thread();
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    const uint64_t start_ns = now_ns();
    unsigned samples = 0, in_code = 0, whole = 0;
    struct perfrec r;
    struct live l;

    (void)state;
    live_open(&l, false);
    spin(0.2);
    live_stop(&l);
    while (live_next(&l, &r)) {
        uintptr_t pc, sp;

        if (r.kind != PERFREC_SAMPLE)
            continue;
        samples++;
        assert_int_equal(r.pid, getpid());
        assert_int_equal(r.tid, gettid());
        assert_true(r.has_time && r.time_ns >= start_ns && r.time_ns <= now_ns());
        assert_int_equal(r.sample.regs_abi, PERF_SAMPLE_REGS_ABI_64);
        assert_true(r.sample.period > 0);
        pc = (uintptr_t)r.sample.regs.value[reg_pc(ARCH_NATIVE)];
        sp = (uintptr_t)r.sample.regs.value[reg_sp(ARCH_NATIVE)];
        in_code += pc >= (uintptr_t)&__executable_start && pc < (uintptr_t)&etext;
        assert_true(sp >= stack.low && sp < stack.high);
        whole += r.sample.stack_size == 2048 && r.sample.stack_full;
        expect_stack_bytes(&r.sample, frame);
    }
    assert_true(samples > 50 && samples < 400);
    assert_true(in_code * 10 > samples * 9);
    assert_true(whole * 10 > samples * 9);
    live_close(&l);
}

static void *do_nothing(void *arg)
{
    return arg;
}

static void mappings_names_and_threads_come_as_records(void **state)
{
    unsigned mapped = 0, anonymous = 0, named = 0, forked = 0;
    char exe[4096] = "";
    struct stat st;
    struct perfrec r;
    struct live l;
    pthread_t thread;
    void *file, *code;
    int fd;

    (void)state;
    live_open(&l, false);
    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    file = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
    code = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(file != MAP_FAILED && code != MAP_FAILED);
    assert_int_equal(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
    assert_int_equal(prctl(PR_SET_NAME, "new name"), 0);
    assert_int_equal(pthread_create(&thread, NULL, do_nothing, NULL), 0);
    pthread_join(thread, NULL);
    live_stop(&l);
    while (live_next(&l, &r)) {
        if (r.kind == PERFREC_MMAP && r.mmap.start == (uintptr_t)file) {
            mapped++;
            assert_int_equal(r.mmap.size, 8192);
            assert_int_equal(r.mmap.file_offset, 4096);
            assert_int_equal(r.mmap.inode, st.st_ino);
            assert_true(r.mmap.executable && !r.mmap.kernel);
            assert_string_equal(r.mmap.path, exe);
            assert_int_equal(r.pid, getpid());
        } else if (r.kind == PERFREC_MMAP && r.mmap.start == (uintptr_t)code) {
            anonymous++;
            assert_string_equal(r.mmap.path, "//anon");
        } else if (r.kind == PERFREC_COMM) {
            named++;
            assert_string_equal(r.comm.name, "new name");
            assert_false(r.comm.exec);
            assert_int_equal(r.tid, gettid());
        } else if (r.kind == PERFREC_FORK) {
            forked++;
            assert_int_equal(r.pid, getpid());
            assert_int_equal(r.task.parent_tid, gettid());
            assert_int_not_equal(r.tid, gettid());
        }
    }
    assert_int_equal(mapped, 1);
    assert_int_equal(anonymous, 1);
    assert_int_equal(named, 1);
    assert_int_equal(forked, 1);
    munmap(file, 8192);
    munmap(code, 4096);
    close(fd);
    live_close(&l);
}

static void kernel_frames_come_as_a_callchain(void **state)
{
    unsigned chains = 0;
    double end;
    struct perfrec r;
    struct live l;

    (void)state;
    live_open(&l, true);
    if (l.config.kernel_refused) {
        live_close(&l);
        print_message("kernel frames are not permitted\n");
        skip();
    }
    end = cpu_seconds() + 0.2;
    while (cpu_seconds() < end) {
        int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
        char text[4096];

        if (fd >= 0 && read(fd, text, sizeof text) > 0)
            close(fd);
    }
    live_stop(&l);
    while (live_next(&l, &r))
        if (r.kind == PERFREC_SAMPLE && r.sample.callchain_count > 2) {
            assert_int_equal(r.sample.callchain[0], PERF_CONTEXT_KERNEL);
            assert_true(r.sample.callchain[1] >> 63 != 0);
            chains++;
        }
    assert_true(chains > 10);
    live_close(&l);
}

static void records_without_room_are_counted(void **state)
{
    struct event_config config = wanted;
    struct event_where where = here;
    struct ring ring;
    uint64_t lost = 0;
    int fd;

    (void)state;
    config.kernel = false;
    config.stack_size_bytes = 16384;
    fd = open_or_skip(&config, &where);
    assert_int_equal(recordint_event_map(fd, 64 << 10, &ring, &error), 0);
    spin(0.1);
    assert_true(recordint_event_lost(fd, &lost));
    assert_true(lost > 10);
    recordint_ring_unmap(&ring);
    close(fd);
    assert_false(recordint_event_lost(fd, &lost));
}

static void *spin_in_a_thread(void *arg)
{
    spin(0.1);
    return arg;
}

static void events_of_a_cpu_share_the_ring_of_its_owner(void **state)
{
    struct event_config config = wanted;
    struct event_where where = here;
    const int cpu = sched_getcpu();
    struct perfrec_layout layout;
    struct pollfd waiting;
    unsigned samples = 0, of_thread = 0;
    struct ring ring;
    const void *data;
    pthread_t thread;
    size_t size;
    cpu_set_t before, one;
    int fd, owner;

    (void)state;
    where.cpu = cpu;
    where.inherit = EVENT_INHERIT_THREADS;
    where.disabled = true;
    where.ring_size_bytes = 256 << 10;
    config.kernel = false;
    fd = open_or_skip(&config, &where);
    owner = recordint_event_open_owner(cpu, where.ring_size_bytes, &error);
    assert_true(owner >= 0);
    assert_int_equal(recordint_event_map(owner, where.ring_size_bytes, &ring, &error), 0);
    assert_int_equal(recordint_event_redirect(fd, owner, &error), 0);
    assert_int_equal(recordint_event_enable(fd), 0);
    CPU_ZERO(&one);
    CPU_SET((unsigned)cpu, &one);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(pthread_create(&thread, NULL, spin_in_a_thread, NULL), 0);
    waiting = (struct pollfd){owner, POLLIN, 0};
    assert_int_equal(poll(&waiting, 1, 5000), 1);
    assert_int_equal(waiting.revents, POLLIN);
    pthread_join(thread, NULL);
    spin(0.02);
    sched_setaffinity(0, sizeof before, &before);
    recordint_event_disable(fd);
    recordint_event_layout(&config, &layout);
    recordint_ring_update(&ring);
    while (recordint_ring_peek(&ring, &data, &size)) {
        struct perfrec r;

        assert_int_equal(recordint_perfrec_parse(&layout, data, size, &r), 0);
        recordint_ring_consume(&ring);
        if (r.kind == PERFREC_SAMPLE) {
            samples++;
            of_thread += r.tid != gettid();
            assert_int_equal(r.cpu, cpu);
        }
    }
    assert_true(of_thread > 10);
    assert_true(samples > of_thread);
    recordint_ring_unmap(&ring);
    close(owner);
    close(fd);
}

static void a_redirection_that_cannot_be_is_told(void **state)
{
    (void)state;
    assert_int_equal(recordint_event_redirect(-1, -1, &error), RECORD_ERR_UNSUPPORTED);
    assert_int_equal(error.system, EBADF);
    assert_int_equal(recordint_event_map(-1, 1 << 20, &(struct ring){0}, &error),
                     RECORD_ERR_UNSUPPORTED);
    assert_int_equal(recordint_event_enable(-1), EBADF);
    assert_int_equal(recordint_event_disable(-1), EBADF);
}

static void an_ended_thread_and_an_impossible_cpu_are_told(void **state)
{
    struct event_config config = wanted;
    struct event_where where = here;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    close(open_or_skip(&config, &here));
    where.tid = pid;
    assert_int_equal(recordint_event_open(&config, &where, &error), RECORD_ERR_NO_PROCESS);
    assert_int_equal(error.system, ESRCH);
    assert_true(recordint_event_open_owner(60000, 1 << 20, &error) < 0);
}

/* ---- without privileges ---- */

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%d: not true: %s; latest error: %s\n", __LINE__, #condition, \
                    error.text);                                                          \
            _exit(1);                                                                     \
        }                                                                                 \
    } while (0)

/* Runs a function as another user, in a process of its own, where cmocka's jumps do not reach. */
static void as_nobody(void (*check)(int64_t paranoid))
{
    int64_t paranoid = 2;
    int status;
    pid_t pid;

    if (!recordint_limits_sysctl("perf_event_paranoid", &paranoid)) {
        print_message("no kernel.perf_event_paranoid\n");
        skip();
    }
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (getuid() == 0 &&
            (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0))
            _exit(77);
        prctl(PR_SET_DUMPABLE, 1);
        check(paranoid);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("cannot become another user, or perf_event_open is filtered\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void check_kernel_frames(int64_t paranoid)
{
    struct event_config config = wanted;
    int fd = recordint_event_open(&config, &here, &error);

    if (fd < 0 && paranoid <= 2 && strstr(error.text, "container") != NULL)
        _exit(77);
    if (paranoid > 2) {
        CHECK(fd == RECORD_ERR_PERMISSION);
        CHECK(strstr(error.text, "2 allows your own programs") != NULL);
        return;
    }
    CHECK(fd >= 0);
    CHECK(config.kernel == (paranoid < 2));
    CHECK(config.kernel_refused == (paranoid >= 2));
    if (paranoid >= 2) {
        struct event_where all = {-1, 0, EVENT_INHERIT_NONE, false, false, 1 << 20};

        config.settled = false;
        CHECK(recordint_event_open(&config, &all, &error) == RECORD_ERR_PERMISSION);
        CHECK(strstr(error.text, "0 allows sampling all processes") != NULL);
    }
}

static void kernel_frames_are_given_up_without_permission(void **state)
{
    (void)state;
    as_nobody(check_kernel_frames);
}

static void check_others(int64_t paranoid)
{
    struct event_config config = wanted;
    struct event_where where = here;
    int ready[2];
    char byte;

    (void)paranoid;
    where.tid = 1;
    CHECK(recordint_event_open(&config, &where, &error) == RECORD_ERR_PERMISSION);
    CHECK(strstr(error.text, "belongs to another user (uid 0)") != NULL);
    CHECK(config.kernel && !config.settled && !config.kernel_refused);

    CHECK(pipe(ready) == 0);
    where.tid = fork();
    if (where.tid == 0) {
        prctl(PR_SET_DUMPABLE, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(recordint_event_open(&config, &where, &error) == RECORD_ERR_PERMISSION);
    CHECK(strstr(error.text, "its process is protected") != NULL);
    kill(where.tid, SIGKILL);
    waitpid(where.tid, NULL, 0);
}

static void programs_of_others_are_refused_as_such(void **state)
{
    (void)state;
    as_nobody(check_others);
}

static void check_locked_memory(int64_t paranoid)
{
    const struct rlimit none = {0, 0};
    struct event_config config = wanted;
    struct ring ring;
    size_t smallest = SIZE_MAX;
    int result;

    if (paranoid > 2 || paranoid < 0) /* nothing is permitted, or without any limit */
        _exit(77);
    CHECK(setrlimit(RLIMIT_MEMLOCK, &none) == 0);
    for (unsigned i = 0; i < 1000; i++) {
        int fd = recordint_event_open(&config, &here, &error);

        if (fd < 0 && strstr(error.text, "container") != NULL)
            _exit(77);
        CHECK(fd >= 0);
        result = recordint_event_map(fd, 1 << 30, &ring, &error);
        if (result != 0)
            break;
        CHECK(ring.size <= smallest && ring.size >= 64 << 10);
        smallest = ring.size;
    }
    CHECK(result == RECORD_ERR_PERMISSION);
    CHECK(smallest < 1 << 30);
    CHECK(strstr(error.text, "a ring buffer of 64 KiB") != NULL);
    CHECK(strstr(error.text, "kernel.perf_event_mlock_kb is ") != NULL);
    CHECK(strstr(error.text, "RLIMIT_MEMLOCK is 0 KiB") != NULL);
}

static void rings_shrink_to_what_may_be_locked(void **state)
{
    (void)state;
    as_nobody(check_locked_memory);
}

static void check_seccomp(int64_t paranoid)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    struct event_config config = wanted;

    (void)paranoid;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
    CHECK(recordint_event_open(&config, &here, &error) == RECORD_ERR_PERMISSION);
    CHECK(strstr(error.text, "seccomp filter") != NULL);
}

static void a_seccomp_filter_is_told(void **state)
{
    (void)state;
    as_nobody(check_seccomp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_those_of_the_specification),
        cmocka_unit_test(without_kernel_frames_nothing_of_the_kernel_is_asked_for),
        cmocka_unit_test(fallbacks_are_tried_in_order),
        cmocka_unit_test(a_settled_event_falls_back_no_more),
        cmocka_unit_test(a_named_event_does_not_become_another),
        cmocka_unit_test(a_frequency_above_the_limit_is_told_with_both_numbers),
        cmocka_unit_test(a_refusal_names_its_reason_and_what_helps),
        cmocka_unit_test(an_offline_cpu_makes_no_other_event),
        cmocka_unit_test(a_refused_ring_names_both_limits),
        cmocka_unit_test(a_busy_loop_is_sampled_with_its_registers_and_stack),
        cmocka_unit_test(mappings_names_and_threads_come_as_records),
        cmocka_unit_test(kernel_frames_come_as_a_callchain),
        cmocka_unit_test(records_without_room_are_counted),
        cmocka_unit_test(events_of_a_cpu_share_the_ring_of_its_owner),
        cmocka_unit_test(a_redirection_that_cannot_be_is_told),
        cmocka_unit_test(an_ended_thread_and_an_impossible_cpu_are_told),
        cmocka_unit_test(kernel_frames_are_given_up_without_permission),
        cmocka_unit_test(programs_of_others_are_refused_as_such),
        cmocka_unit_test(rings_shrink_to_what_may_be_locked),
        cmocka_unit_test(a_seccomp_filter_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
