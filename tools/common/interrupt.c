/* SPDX-License-Identifier: MIT */
/* A flag in place of the end of the process. */
#include "interrupt.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#define SIGNAL_COUNT 3
static const int signals[SIGNAL_COUNT] = {SIGINT, SIGTERM, SIGHUP};

static struct sigaction before[SIGNAL_COUNT];
static volatile sig_atomic_t catching, caught;

/* Only what is safe in a handler. Signals that were ignored go on being caught: their second one does nothing. */
static void restore(bool all)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (all || before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &before[i], NULL);
    }
}

static void on_signal(int number)
{
    (void)number;
    caught = 1;
    restore(false);
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    if (catching)
        return;
    catching = 1;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaction(signals[i], NULL, &before[i]);
        if (signals[i] != SIGHUP || before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

bool interrupt_caught(void)
{
    return caught != 0;
}

void interrupt_release(void)
{
    if (catching)
        restore(true);
    catching = 0;
}

void interrupt_wait(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN}; /* a negative one is left alone */
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = timeout_ms % 1000 * 1000000L};
    sigset_t set, old;

    /* Between the look at the flag and the wait a signal would be lost. */
    sigemptyset(&set);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    if (!caught)
        ppoll(&p, 1, timeout_ms < 0 ? NULL : &timeout, &old);
    sigprocmask(SIG_SETMASK, &old, NULL);
}
