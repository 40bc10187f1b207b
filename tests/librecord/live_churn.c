/* SPDX-License-Identifier: MIT */
/*
 * Makes processes or libraries that come and go, to see whether the recorder keeps what is gone. The recorder starts
 * it; it prints how much memory and how many files its parent has: a line after the first part of the work, when caches
 * have grown, and one after the rest.
 *   live_churn forks FIRST REST US          processes of US microseconds of work, one after the other
 *   live_churn libraries FIRST REST US FILE copies of a library, each loaded, made to work, unloaded and deleted
 *   live_churn open FIRST REST US FILE      the same, but they stay loaded; each works again after the last one
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload_plugin.h"

typedef void entry_function(workload_function *work, unsigned long us);

static unsigned long spin_us;
static const char *library;

static double cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

KEEP void churn_work(unsigned long us)
{
    double end = cpu_us() + (double)us;

    while (cpu_us() < end)
        for (int i = 0; i < 1000; i++)
            BARRIER();
    BARRIER();
}

static void fail(const char *what)
{
    fprintf(stderr, "live_churn: %s: %s\n", what, dlerror());
    _exit(1);
}

static void run_process(unsigned n)
{
    pid_t pid = fork();

    (void)n;
    if (pid == 0) {
        churn_work(spin_us);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        fail("fork");
}

static void copy_library(const char *path)
{
    static char bytes[1 << 20];
    FILE *from = fopen(library, "rb"), *to = fopen(path, "wb");

    if (from == NULL || to == NULL)
        fail("fopen");
    size_t size = fread(bytes, 1, sizeof bytes, from);
    if (size == 0 || size == sizeof bytes || fwrite(bytes, 1, size, to) != size || fclose(to) != 0)
        fail("copying");
    fclose(from);
}

static void *load_copy(unsigned n, entry_function **entry)
{
    char path[64];

    snprintf(path, sizeof path, "./churn%u.so", n);
    copy_library(path);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fail("dlopen");
    void *symbol = dlsym(handle, "plugin_a_entry");
    memcpy(entry, &symbol, sizeof symbol);
    unlink(path);
    return handle;
}

static void use_library(unsigned n)
{
    entry_function *entry;
    void *handle = load_copy(n, &entry);

    entry(churn_work, spin_us);
    dlclose(handle);
}

/* Memory and open descriptors of our parent, once it has read all that we did. */
static void report(unsigned items)
{
    char path[64], line[256];
    long kib = -1, files = 0;

    usleep(500 * 1000);
    snprintf(path, sizeof path, "/proc/%d/status", (int)getppid());
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        sscanf(line, "RssAnon: %ld", &kib);
    if (f != NULL)
        fclose(f);
    for (int fd = 0; fd < 4096; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), fd);
        files += readlink(path, line, sizeof line) > 0;
    }
    printf("items %u kib %ld files %ld\n", items, kib, files);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool forks = argc > 4 && strcmp(argv[1], "forks") == 0;
    bool open = argc > 5 && strcmp(argv[1], "open") == 0;

    if (argc < (forks ? 5 : 6))
        return 2;
    unsigned first = (unsigned)atoi(argv[2]), all = first + (unsigned)atoi(argv[3]);
    spin_us = (unsigned long)atol(argv[4]);
    library = argv[5];
    entry_function **entries = calloc(all, sizeof *entries);
    for (unsigned i = 0; entries != NULL && i < all; i++) {
        if (forks) {
            run_process(i);
        } else if (open) {
            load_copy(i, &entries[i]);
            entries[i](churn_work, spin_us);
        } else {
            use_library(i);
        }
        if (i + 1 == first || i + 1 == all)
            report(i + 1);
    }
    for (unsigned i = 0; open && i < all; i++)
        entries[i](churn_work, spin_us);
    free(entries);
    return 0;
}
