/* SPDX-License-Identifier: MIT */
/*
 * workload [OPTION]... MODE [MS [N]]: spends about MS milliseconds of processor time (of each thread or process it makes)
 * in functions whose call graph is known: workload.graph has it, check_stacks.awk compares recorded stacks with it.
 *
 *   --report FILE  appends "cpu PID USER SYSTEM SWITCHES" at the end: seconds and context switches of it and the children waited for,
 *                  and in mode burst "thread NAME TID MILLISECONDS" for each thread
 *   --ready FILE   writes the process id to it when the mode begins (burst: when all threads are there)
 *   --gate FILE    waits after that until this file exists
 *
 * Mode probe says whether this user may sample a program of his own: exit status 0, or 77 and the reason.
 */
#include "workload_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void plugin_lib_tiny(void); /* of the library that is linked */

typedef void plugin_entry(workload_function *work, unsigned long us);

static const char *report_path, *ready_path, *gate_path;
static char self[PATH_MAX]; /* this program, */
static char here[PATH_MAX]; /* and its folder, where the plugins are */

static void fail(const char *what)
{
    fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static double thread_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void busy_loop_bounds(unsigned long *loops, unsigned long us)
{
    *loops =
        us *
        1000; /* never shorter than us, and so rarely asks for the time that it does not show */
    if (*loops > 300000)
        *loops = 300000;
}

/* The leaf of almost every stack. */
KEEP static void spin(unsigned long us)
{
    double end = thread_ms() + (double)us / 1e3;
    unsigned long loops;
    busy_loop_bounds(&loops, us);
    do {
        for (unsigned long i = 0; i < loops; i++)
            BARRIER();
    } while (thread_ms() < end);
}

/* Makes the ready file and waits at the gate. */
static void begin(void)
{
    if (ready_path != NULL) {
        char temporary[PATH_MAX];
        FILE *f;
        snprintf(temporary, sizeof temporary, "%s.new", ready_path);
        f = fopen(temporary, "w");
        if (f == NULL)
            fail(temporary);
        fprintf(f, "%d\n", (int)getpid());
        if (fclose(f) != 0 || rename(temporary, ready_path) != 0)
            fail(ready_path);
    }
    while (gate_path != NULL && access(gate_path, F_OK) != 0)
        usleep(2000);
}

/* ---- calls ---- */

KEEP static void ladder_c(unsigned long us)
{
    spin(us);
    BARRIER();
}

KEEP static void ladder_b(unsigned long us)
{
    ladder_c(us);
    BARRIER();
}

KEEP static void ladder_a(unsigned long us)
{
    ladder_b(us);
    BARRIER();
}

KEEP static void run_ladder(unsigned long us)
{
    ladder_a(us);
    BARRIER();
}

KEEP static void run_ladder2(unsigned long us)
{
    ladder_b(us);
    BARRIER();
}

KEEP static void recurse(unsigned n, unsigned long us)
{
    if (n > 1)
        recurse(n - 1, us);
    else
        spin(us);
    BARRIER();
}

KEEP static void run_recursion(unsigned long us)
{
    recurse(21, us);
    BARRIER();
}

KEEP static void run_deep(unsigned long us)
{
    recurse(600, us);
    BARRIER();
}

KEEP static void run_deeper(unsigned long us)
{
    recurse(2000, us);
    BARRIER();
}

/* A frame as large as the default stack copy, all there. */
KEEP static void big_frame(unsigned n, unsigned long us)
{
    unsigned char frame[32768];
    for (size_t i = 0; i < sizeof frame; i += 512)
        frame[i] = 1; /* a page that was never touched ends the kernel's copy, whatever its size */
    USE(frame);
    if (n > 1)
        big_frame(n - 1, us);
    else
        spin(us);
    USE(frame);
}

KEEP static void run_big(unsigned long us)
{
    big_frame(3, us);
    BARRIER();
}

/* A frame that is aligned beyond the stack's own alignment and of unknown size: its CFA is in a register or in
 * memory. */
KEEP static void realigned(unsigned n, unsigned long us)
{
    _Alignas(64) unsigned char block[256];
    unsigned char *room = __builtin_alloca(n * 24 + 8);
    USE(block);
    USE(room);
    if (n > 1)
        realigned(n - 1, us);
    else
        spin(us);
    USE(block);
    USE(room);
}

KEEP static void run_realigned(unsigned long us)
{
    realigned(5, us);
    BARRIER();
}

/* The program's own part of the loop is a call and a jump: many samples hit the procedure linkage table. */
KEEP static void plt_loop(unsigned long loops)
{
    for (unsigned long i = 0; i < loops; i++)
        plugin_lib_tiny();
}

KEEP static void run_plt(unsigned long us)
{
    double end = thread_ms() + (double)us / 1e3;
    while (thread_ms() < end)
        plt_loop(100000);
}

static jmp_buf back;

KEEP static void jump_b(void)
{
    spin(300);
    longjmp(back, 1);
}

KEEP static void jump_a(void)
{
    unsigned char frame[100];
    USE(frame);
    jump_b();
    USE(frame);
}

KEEP static void run_longjmp(unsigned long us)
{
    double end = thread_ms() + (double)us / 1e3;
    setjmp(back);
    if (thread_ms() < end)
        jump_a();
}

__attribute__((noreturn)) KEEP static void never_returns(void)
{
    spin(300);
    longjmp(back, 1);
}

/* Its last instruction is the call: the return address belongs to whatever follows. */
KEEP static void ends_in_call(void)
{
    unsigned char frame[72];
    USE(frame);
    never_returns();
}

KEEP static void run_noreturn(unsigned long us)
{
    double end = thread_ms() + (double)us / 1e3;
    setjmp(back);
    if (thread_ms() < end)
        ends_in_call();
}

/* Always the same work, about MS on a fast machine: what a recorder costs it shows in its time. */
KEEP static void fixed_work(unsigned long loops)
{
    for (unsigned long i = 0; i < loops; i++)
        BARRIER();
}

KEEP static void run_work(unsigned long us)
{
    fixed_work(us * 3000);
    BARRIER();
}

/* ---- signals ---- */

KEEP static void handler_loop(void)
{
    for (unsigned long i = 0; i < 1000000; i++)
        BARRIER();
}

KEEP static void handler_realigned(unsigned n)
{
    _Alignas(64) unsigned char block[128];
    unsigned char *room = __builtin_alloca(n);
    USE(block);
    USE(room);
    handler_loop();
    USE(block);
    USE(room);
}

KEEP static void on_signal(int number)
{
    handler_realigned((unsigned)number * 8);
    BARRIER();
}

KEEP static void interrupted(unsigned n, unsigned long us)
{
    _Alignas(64) unsigned char block[64];
    unsigned char *room = __builtin_alloca(n * 8 + 8);
    USE(block);
    USE(room);
    if (n > 1)
        interrupted(n - 1, us);
    else
        spin(us);
    USE(block);
    USE(room);
}

KEEP static void run_signal(unsigned long us)
{
    /* Not in step with the samples, of which few would fall into the handler else. */
    struct itimerval timer = {{0, 1700}, {0, 1700}};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &timer, NULL) != 0)
        fail("timer");
    interrupted(8, us);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- threads ---- */

static pthread_t start_thread_of(void *(*function)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    if ((errno = pthread_create(&thread, &attributes, function, argument)) != 0)
        fail("thread");
    pthread_attr_destroy(&attributes);
    return thread;
}

#define THREAD_LADDER(n)                             \
    KEEP static void thread##n##_b(unsigned long us) \
    {                                                \
        spin(us);                                    \
        BARRIER();                                   \
    }                                                \
    KEEP static void thread##n##_a(unsigned long us) \
    {                                                \
        unsigned char frame[32 * n + 16];            \
        USE(frame);                                  \
        thread##n##_b(us);                           \
        USE(frame);                                  \
    }                                                \
    KEEP static void *thread##n##_main(void *us)     \
    {                                                \
        prctl(PR_SET_NAME, "ladder-" #n);            \
        thread##n##_a(*(const unsigned long *)us);   \
        return NULL;                                 \
    }
THREAD_LADDER(0)
THREAD_LADDER(1)
THREAD_LADDER(2)
THREAD_LADDER(3)

KEEP static void run_threads(unsigned long us)
{
    void *(*const functions[])(void *) = {thread0_main, thread1_main, thread2_main, thread3_main};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = start_thread_of(functions[i], &us);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

enum { BURST_THREADS_MAX = 1000 };

struct burst {
    pthread_t thread;
    pid_t tid;
    char name[16];
    unsigned long us;
    double ms;
};

static pthread_barrier_t burst_barrier;

KEEP static void burst_work(unsigned long us)
{
    spin(us);
    BARRIER();
}

KEEP static void *burst_main(void *argument)
{
    struct burst *burst = argument;
    unsigned pause = (unsigned)(burst->us % 7);
    burst->tid = (pid_t)syscall(SYS_gettid);
    prctl(PR_SET_NAME, burst->name);
    pthread_barrier_wait(&burst_barrier); /* all there */
    pthread_barrier_wait(&burst_barrier); /* the gate is open */
    while (thread_ms() < (double)burst->us / 1e3) {
        burst_work(2000);
        usleep(20000 * (1 + pause));
        pause = (pause * 5 + 3) % 7;
    }
    burst->ms = thread_ms();
    return NULL;
}

/* N threads that run for 2 ms and sleep in turn; the first has MS / 6 in total, the sixth MS, and so on. */
KEEP static void run_burst(unsigned long us, unsigned n)
{
    static struct burst bursts[BURST_THREADS_MAX];
    FILE *report = NULL;
    if (n > BURST_THREADS_MAX)
        n = BURST_THREADS_MAX;
    pthread_barrier_init(&burst_barrier, NULL, n + 1);
    for (unsigned i = 0; i < n; i++) {
        snprintf(bursts[i].name, sizeof bursts[i].name, "burst-%u", i);
        bursts[i].us = us * (i % 6 + 1) / 6;
        bursts[i].thread = start_thread_of(burst_main, &bursts[i]);
    }
    pthread_barrier_wait(&burst_barrier);
    begin();
    pthread_barrier_wait(&burst_barrier);
    if (report_path != NULL && (report = fopen(report_path, "a")) == NULL)
        fail(report_path);
    for (unsigned i = 0; i < n; i++) {
        pthread_join(bursts[i].thread, NULL);
        if (report != NULL)
            fprintf(report, "thread %s %d %.3f\n", bursts[i].name, (int)bursts[i].tid,
                    bursts[i].ms);
    }
    if (report != NULL)
        fclose(report);
}

/* ---- processes ---- */

static void wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            fail("waitpid");
    if (status != 0) {
        errno = ECHILD;
        fail("a child failed");
    }
}

KEEP static void child_b(unsigned long us)
{
    spin(us);
    BARRIER();
}

KEEP static void child_main(unsigned long us)
{
    child_b(us);
    BARRIER();
}

KEEP static void parent_b(unsigned long us)
{
    spin(us);
    BARRIER();
}

KEEP static void run_fork(unsigned long us)
{
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        child_main(us);
        _exit(0);
    }
    parent_b(us);
    wait_for(pid);
    BARRIER();
}

/* Runs for a while, then is another program: this one in mode ladder. */
KEEP static void run_exec(unsigned long us)
{
    char ms[32];
    snprintf(ms, sizeof ms, "%lu", us / 1000);
    ladder_b(us);
    char *const arguments[] = {self,
                               (char[]){"--report"},
                               strdup(report_path != NULL ? report_path : "/dev/null"),
                               (char[]){"ladder"},
                               ms,
                               NULL};
    execv(self, arguments);
    fail(self);
}

/* N short children at least until us are over, each of 2 ms. */
KEEP static void storm_spawn(char *const arguments[])
{
    pid_t pid = vfork();
    if (pid < 0)
        fail("vfork");
    if (pid == 0) {
        execv(self, arguments);
        _exit(127);
    }
    wait_for(pid);
    BARRIER();
}

KEEP static void run_storm(unsigned long us)
{
    char *const arguments[] = {self, (char[]){"ladder"}, (char[]){"2"}, NULL};
    for (unsigned long spent = 0; spent < us; spent += 2000)
        storm_spawn(arguments);
}

/* Waits for a signal that ends it. */
KEEP static void run_sleep(unsigned long us)
{
    usleep((useconds_t)us);
    BARRIER();
}

/* ---- mappings ---- */

static void *load(const char *path, const char *function, void **handle)
{
    void *symbol;
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    symbol = *handle != NULL ? dlsym(*handle, function) : NULL;
    if (symbol == NULL) {
        fprintf(stderr, "workload: %s\n", dlerror());
        _exit(1);
    }
    return symbol;
}

static void plugin_path(char name, char *path)
{
    if (snprintf(path, PATH_MAX, "%s/workload_plugin_%c.so", here, name) >= PATH_MAX)
        fail(here);
}

KEEP static void run_dlopen(unsigned long us)
{
    char path[PATH_MAX];
    void *handle;
    plugin_entry *entry;
    plugin_path('a', path);
    *(void **)&entry = load(path, "plugin_a_entry", &handle);
    entry(spin, us);
    dlclose(handle);
    BARRIER();
}

KEEP static void reload_round(char name, unsigned long us)
{
    char path[PATH_MAX], function[32];
    void *handle;
    plugin_entry *entry;
    plugin_path(name, path);
    snprintf(function, sizeof function, "plugin_%c_entry", name);
    *(void **)&entry = load(path, function, &handle);
    entry(spin, us);
    dlclose(handle);
    BARRIER();
}

struct reload {
    unsigned long us;
    char first;
};

KEEP static void *reload_main(void *argument)
{
    const struct reload *reload = argument;
    char name = reload->first;
    for (unsigned long spent = 0; spent < reload->us; spent += 5000) {
        reload_round(name, 5000);
        name = name == 'a' ? 'b' : 'a';
    }
    return NULL;
}

/* Two threads that load and unload both plugins in turn: an address is one's now and the other's 5 ms later. */
KEEP static void run_reload(unsigned long us)
{
    struct reload reloads[2] = {{us, 'a'}, {us, 'b'}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = start_thread_of(reload_main, &reloads[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

struct segment {
    uintptr_t inside; /* an address in it, */
    uintptr_t start;  /* and where it begins */
    size_t size;
};

static int find_segment(struct dl_phdr_info *info, size_t size, void *data)
{
    struct segment *segment = data;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD || segment->inside < start ||
            segment->inside - start >= p->p_memsz)
            continue;
        segment->start = start & ~(page - 1);
        segment->size = (start + p->p_memsz - segment->start + page - 1) & ~(page - 1);
        return 1;
    }
    return 0;
}

/* Moves the code of a library: the kernel sends no record about that. */
KEEP static void run_mremap(unsigned long us)
{
    char path[PATH_MAX];
    struct segment segment = {0};
    void *handle, *room;
    workload_function *moved;
    double end = thread_ms() + (double)us / 1e3;
    plugin_path('a', path);
    segment.inside = (uintptr_t)load(path, "plugin_a_moved", &handle);
    if (dl_iterate_phdr(find_segment, &segment) != 1)
        fail("no such segment");
    room = mmap(NULL, segment.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || mremap((void *)segment.start, segment.size, segment.size,
                                     MREMAP_MAYMOVE | MREMAP_FIXED, room) != room)
        fail("mremap");
    *(void **)&moved = (char *)room + (segment.inside - segment.start);
    while (thread_ms() < end)
        moved(1000000);
    if (mremap(room, segment.size, segment.size, MREMAP_MAYMOVE | MREMAP_FIXED,
               (void *)segment.start) == MAP_FAILED)
        fail("mremap"); /* back, for what its destructors are called with */
}

static void copy_to(int to, const char *path)
{
    static char bytes[65536];
    ssize_t n;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        fail(path);
    while ((n = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)n) != n)
            fail("write");
    close(from);
}

static int memory_copy(const char *name, const char *path)
{
    int fd = memfd_create(name, 0);
    if (fd < 0)
        fail("memfd_create");
    copy_to(fd, path);
    return fd;
}

/* A library that has no name in the file system. */
KEEP static void run_memfd(unsigned long us)
{
    char path[PATH_MAX];
    void *handle;
    plugin_entry *entry;
    plugin_path('a', path);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory_copy("plugin", path));
    *(void **)&entry = load(path, "plugin_a_entry", &handle);
    entry(spin, us);
    BARRIER();
}

/* A program that has none. */
KEEP static void run_memfd_exec(unsigned long us)
{
    char ms[32];
    char *const arguments[] = {(char[]){"workload"}, (char[]){"ladder"}, ms, NULL};
    snprintf(ms, sizeof ms, "%lu", us / 1000);
    setenv("LD_LIBRARY_PATH", here, 1); /* of the library that it is linked with */
    fexecve(memory_copy("workload", self), arguments, environ);
    fail("fexecve");
}

/* ---- the command line ---- */

static void report(void)
{
    struct rusage own, children;
    FILE *f;
    if (report_path == NULL)
        return;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    f = fopen(report_path, "a");
    if (f == NULL)
        fail(report_path);
    fprintf(f, "cpu %d %.6f %.6f %ld\n", (int)getpid(),
            (double)(own.ru_utime.tv_sec + children.ru_utime.tv_sec) +
                (double)(own.ru_utime.tv_usec + children.ru_utime.tv_usec) / 1e6,
            (double)(own.ru_stime.tv_sec + children.ru_stime.tv_sec) +
                (double)(own.ru_stime.tv_usec + children.ru_stime.tv_usec) / 1e6,
            own.ru_nvcsw + own.ru_nivcsw + children.ru_nvcsw + children.ru_nivcsw);
    fclose(f);
}

static const struct {
    const char *name;
    workload_function *run;
} modes[] = {
    {"ladder", run_ladder},       {"ladder2", run_ladder2},
    {"recursion", run_recursion}, {"deep", run_deep},
    {"deeper", run_deeper},       {"big", run_big},
    {"realigned", run_realigned}, {"plt", run_plt},
    {"longjmp", run_longjmp},     {"noreturn", run_noreturn},
    {"signal", run_signal},       {"threads", run_threads},
    {"fork", run_fork},           {"exec", run_exec},
    {"storm", run_storm},         {"work", run_work},
    {"sleep", run_sleep},         {"dlopen", run_dlopen},
    {"reload", run_reload},       {"mremap", run_mremap},
    {"memfd", run_memfd},         {"memfd-exec", run_memfd_exec},
};

static int probe(void)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = 1000000,
        .sample_type = PERF_SAMPLE_IP,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    if (syscall(SYS_perf_event_open, &attributes, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0)
        return 0;
    printf("the kernel does not let this user sample programs here: %s\n", strerror(errno));
    return 77;
}

static const char *option(const char *name, char ***arguments)
{
    const char *value;
    if (**arguments == NULL || strcmp(**arguments, name) != 0 || (*arguments)[1] == NULL)
        return NULL;
    value = (*arguments)[1];
    *arguments += 2;
    return value;
}

int main(int argc, char **argv)
{
    const char *value, *mode;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    unsigned long ms;
    if (length <= 0)
        fail("/proc/self/exe");
    memcpy(here, self, (size_t)length + 1);
    *strrchr(here, '/') = '\0';
    for (argv += argc > 0; *argv != NULL;) {
        if ((value = option("--report", &argv)) != NULL)
            report_path = value;
        else if ((value = option("--ready", &argv)) != NULL)
            ready_path = value;
        else if ((value = option("--gate", &argv)) != NULL)
            gate_path = value;
        else
            break;
    }
    mode = *argv != NULL ? *argv++ : "";
    ms = *argv != NULL ? strtoul(*argv++, NULL, 10) : 500;
    if (strcmp(mode, "probe") == 0)
        return probe();
    if (strcmp(mode, "burst") == 0) {
        run_burst(ms * 1000, *argv != NULL ? (unsigned)strtoul(*argv, NULL, 10) : 200);
        report();
        return 0;
    }
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(mode, modes[i].name) != 0)
            continue;
        begin();
        modes[i].run(ms * 1000);
        report();
        return 0;
    }
    fprintf(stderr, "usage: workload [--report FILE] [--ready FILE] [--gate FILE] MODE [MS [N]]\n");
    return 2;
}
