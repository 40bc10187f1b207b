/* SPDX-License-Identifier: MIT */
/*
 * Runs a program and watches, from outside, what it holds: memory of its own and of mapped files, descriptors, and files
 * without a name. Peaks and the end go to a report; --series has a line for each look.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Fewer turns of writer and reader, which count where other programs run between them. */
#define PIPE_BYTES (1 << 20)

/* What a process has at one time, or its peaks. */
struct held {
    uint64_t anon_kib;
    uint64_t file_kib; /* pages of mapped files, which the kernel can take back */
    uint64_t descriptors;
    uint64_t disk_kib; /* of open files that were removed, or never had a name */
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "watch_memory: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void look_at_memory(pid_t pid, struct held *h)
{
    char line[256];
    FILE *f;

    snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
    f = fopen(line, "re");
    if (f == NULL)
        return;
    while (fgets(line, sizeof line, f) != NULL) {
        sscanf(line, "RssAnon: %" SCNu64, &h->anon_kib);
        sscanf(line, "RssFile: %" SCNu64, &h->file_kib);
    }
    fclose(f);
}

static void look_at_files(pid_t pid, struct held *h)
{
    char path[64];
    struct dirent *entry;
    struct stat st;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    d = opendir(path);
    if (d == NULL)
        return;
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        h->descriptors++;
        if (fstatat(dirfd(d), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
            st.st_nlink == 0)
            h->disk_kib += (uint64_t)st.st_blocks / 2;
    }
    closedir(d);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void keep_peaks(struct held *peak, const struct held *h)
{
    peak->anon_kib = larger(peak->anon_kib, h->anon_kib);
    peak->file_kib = larger(peak->file_kib, h->file_kib);
    peak->descriptors = larger(peak->descriptors, h->descriptors);
    peak->disk_kib = larger(peak->disk_kib, h->disk_kib);
}

/* Looks until the program has ended; the status of its end. */
static int watch(pid_t pid, double begin, long every_ms, FILE *series, struct held *peak,
                 struct rusage *use)
{
    struct timespec pause = {.tv_sec = every_ms / 1000, .tv_nsec = every_ms % 1000 * 1000000};
    int status;
    pid_t ended;

    while ((ended = wait4(pid, &status, WNOHANG, use)) == 0) {
        struct held h = {0};

        look_at_memory(pid, &h);
        look_at_files(pid, &h);
        keep_peaks(peak, &h);
        if (series != NULL && h.anon_kib > 0) { /* it has not ended meanwhile */
            fprintf(series,
                    "seconds %.2f anon_kib %" PRIu64 " file_kib %" PRIu64 " descriptors %" PRIu64
                    " disk_kib %" PRIu64 "\n",
                    now() - begin, h.anon_kib, h.file_kib, h.descriptors, h.disk_kib);
            fflush(series);
        }
        nanosleep(&pause, NULL);
    }
    if (ended < 0)
        die("wait");
    return status;
}

static _Noreturn void usage(void)
{
    fputs("usage: watch_memory [--every MS] [--series FILE] REPORT PROGRAM [ARGUMENT]...\n",
          stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"every", required_argument, NULL, 'e'},
        {"series", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    struct held peak = {0};
    struct rusage use;
    const char *series_path = NULL;
    FILE *series = NULL, *report;
    long every_ms = 50;
    double begin, seconds;
    pid_t pid;
    int c, status;

    while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
        if (c == 'e' && atol(optarg) > 0)
            every_ms = atol(optarg);
        else if (c == 's')
            series_path = optarg;
        else
            usage();
    }
    if (argc - optind < 2)
        usage();
    if (series_path != NULL && (series = fopen(series_path, "we")) == NULL)
        die(series_path);
    (void)fcntl(STDIN_FILENO, F_SETPIPE_SZ, PIPE_BYTES); /* if it is one */
    begin = now();
    pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        execvp(argv[optind + 1], argv + optind + 1);
        die(argv[optind + 1]);
    }
    /* A pipe that it reads must end with it, not with us; and its signals are for it. */
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    signal(SIGINT, SIG_IGN);
    status = watch(pid, begin, every_ms, series, &peak, &use);
    seconds = now() - begin;
    if (series != NULL && fclose(series) != 0)
        die(series_path);
    report = fopen(argv[optind], "we");
    if (report == NULL)
        die(argv[optind]);
    fprintf(report,
            "seconds %.2f cpu %.2f peak_kib %ld anon_kib %" PRIu64 " file_kib %" PRIu64
            " descriptors %" PRIu64 " disk_kib %" PRIu64 "\n",
            seconds,
            (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6,
            use.ru_maxrss, peak.anon_kib, peak.file_kib, peak.descriptors, peak.disk_kib);
    if (fclose(report) != 0)
        die(argv[optind]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
