/* SPDX-License-Identifier: MIT */
/* Asks for the time all the time, which happens in the vdso: for 300 ms of processor time. */
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))

static volatile long sink;

NOINLINE static long ask(struct timespec *t)
{
    struct timeval v;

    gettimeofday(&v, NULL);
    clock_gettime(CLOCK_MONOTONIC, t);
    return v.tv_usec + t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

static volatile sig_atomic_t over;

static void end(int number)
{
    (void)number;
    over = 1;
}

int main(void)
{
    const struct itimerval timer = {.it_value = {.tv_usec = 300000}};
    struct timespec now;

    signal(SIGPROF, end);
    setitimer(ITIMER_PROF, &timer, NULL);
    while (!over)
        sink += ask(&now);
    return 0;
}
