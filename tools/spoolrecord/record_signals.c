/* SPDX-License-Identifier: MIT */
/* Two steps for signals. */
#include "record_signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* timeout(1) sends its signal to us and then to our group, within microseconds: that is one request. */
#define TOGETHER_NS INT64_C(50000000)

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* The handler runs with all signals blocked, in the tool's only thread. */
static volatile sig_atomic_t caught, waiting, child;
static struct timespec first;

static int64_t since_first_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - first.tv_sec) * 1000000000 + (now.tv_nsec - first.tv_nsec);
}

static void on_signal(int number)
{
    bool repeated = caught && since_first_ns() < TOGETHER_NS;
    int error = errno;

    if (child > 0 && !repeated)
        kill((pid_t)child, number);
    errno = error;
    if (caught ? !repeated : waiting && number != SIGINT) {
        signal(number, SIG_DFL);
        raise(number); /* blocked until this returns */
    } else if (!caught) {
        clock_gettime(CLOCK_MONOTONIC, &first);
        caught = 1;
    }
}

void record_signals_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal}, before;

    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        /* nohup stays what it is; but shells start what runs in the background with SIGINT ignored, which is no
         * reason not to be stopped by it. */
        sigaction(signals[i], NULL, &before);
        if (signals[i] != SIGHUP || before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
    /* A closed pipe and a file at its largest (ulimit -f) are errors of write. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void record_signals_pass(pid_t to)
{
    child = to;
}

bool record_signals_caught(void)
{
    return caught != 0;
}

void record_signals_waiting(void)
{
    waiting = 1;
}
