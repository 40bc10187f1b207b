/* SPDX-License-Identifier: MIT */
/* Asks for the time all the time, which happens in the vdso: for 300 ms. */
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

int main(void)
{
    struct timespec first, now;

    ask(&first);
    do
        sink += ask(&now);
    while ((now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 < 300);
    return 0;
}
