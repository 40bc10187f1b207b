/* SPDX-License-Identifier: MIT */
/*
 * What an hour of ordinary work does to a recorder, in minutes: processes, programs, threads, libraries and generated code
 * that come, work for some microseconds, and go. Each piece is new: another process, another copy of the library at
 * another inode, another page of code.
 *   churn_work KINDS SECONDS US LIBRARY REPORT
 * KINDS is "forks", "execs", "threads", "libraries", "code", or several with commas, which then take turns. LIBRARY is
 * workload_plugin_a.so. REPORT gets how many there were.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void work_function(unsigned long us);

static unsigned long spin_us;
static const char *self, *library;

static _Noreturn void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The thread's own time: others run beside it. */
__attribute__((noinline)) static void churn_spin(unsigned long us)
{
    double end = now(CLOCK_THREAD_CPUTIME_ID) + (double)us / 1e6;

    while (now(CLOCK_THREAD_CPUTIME_ID) < end)
        for (volatile int i = 0; i < 1000; i++)
            ;
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void wait_for(pid_t pid)
{
    int status;

    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        fail("a child");
}

static void churn_forks(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        churn_spin(spin_us);
        _exit(0);
    }
    wait_for(pid);
}

static void churn_execs(void)
{
    char text[32];
    pid_t pid = fork();

    if (pid == 0) {
        snprintf(text, sizeof text, "%lu", spin_us);
        execl(self, self, "spin", text, (char *)NULL);
        fail(self);
    }
    wait_for(pid);
}

static void *thread_main(void *unused)
{
    churn_spin(spin_us);
    return unused;
}

static void churn_threads(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_main, NULL) != 0 || pthread_join(thread, NULL) != 0)
        fail("a thread");
}

static void copy_library(const char *path)
{
    static char bytes[1 << 20];
    FILE *from = fopen(library, "rbe"), *to = fopen(path, "wbe");
    size_t size = from != NULL ? fread(bytes, 1, sizeof bytes, from) : 0;

    if (to == NULL || size == 0 || fwrite(bytes, 1, size, to) != size || fclose(to) != 0)
        fail(path);
    fclose(from);
}

static void churn_libraries(void)
{
    static unsigned number;
    void (*entry)(work_function * work, unsigned long us);
    char path[64];
    void *handle, *symbol;

    snprintf(path, sizeof path, "./churn%d-%u.so", (int)getpid(), number++);
    copy_library(path);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    symbol = handle != NULL ? dlsym(handle, "plugin_a_entry") : NULL;
    if (symbol == NULL)
        fail(path);
    memcpy(&entry, &symbol, sizeof entry);
    entry(churn_spin, spin_us);
    dlclose(handle);
}

/* Counts its argument down; no frame, no unwind data. */
static void churn_code(void)
{
#if defined __x86_64__
    static const uint8_t code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; /* dec, jnz, ret */
#else
    static const uint32_t code[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0}; /* subs, b.ne, ret */
#endif
    void (*run)(unsigned long count);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        fail("mmap");
    memcpy(page, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0)
        fail("mprotect");
    __builtin___clear_cache(page, page + sizeof code);
    memcpy(&run, &page, sizeof run);
    run(spin_us * 2000);
    munmap(page, 4096);
}

static const struct {
    const char *name;
    void (*churn)(void);
} kinds[] = {
    {"forks", churn_forks},         {"execs", churn_execs}, {"threads", churn_threads},
    {"libraries", churn_libraries}, {"code", churn_code},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

int main(int argc, char **argv)
{
    unsigned long counts[KINDS] = {0};
    double end;
    FILE *f;

    if (argc == 3 && strcmp(argv[1], "spin") == 0) {
        churn_spin((unsigned long)atol(argv[2]));
        return 0;
    }
    if (argc != 6)
        return 2;
    self = "/proc/self/exe";
    spin_us = (unsigned long)atol(argv[3]);
    library = argv[4];
    for (end = now(CLOCK_MONOTONIC) + atof(argv[2]); now(CLOCK_MONOTONIC) < end;) {
        for (size_t i = 0; i < KINDS; i++) {
            if (strstr(argv[1], kinds[i].name) == NULL)
                continue;
            kinds[i].churn();
            counts[i]++;
        }
    }
    f = fopen(argv[5], "we");
    if (f == NULL)
        fail(argv[5]);
    for (size_t i = 0; i < KINDS; i++)
        fprintf(f, "%s %lu\n", kinds[i].name, counts[i]);
    return fclose(f) == 0 ? 0 : 1;
}
