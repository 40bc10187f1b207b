/* SPDX-License-Identifier: MIT */
/*
 * hard_signals CASE: code that step_oracle --signals interrupts anywhere, with handlers on the same and on other
 * stacks. On x86-64.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "step_mark.h"

#define NOINLINE __attribute__((noinline))
#define STACK_BYTES 16384

static volatile unsigned sink;

NOINLINE static void realigned(unsigned bytes)
{
    _Alignas(64) unsigned char block[64];
    unsigned char *room = __builtin_alloca(bytes);

    memset(block, (int)bytes, sizeof block);
    memset(room, 1, bytes);
    sink += block[bytes % 64] + room[0];
}

NOINLINE static void leaf(void)
{
    sink++;
}

/* Raised wherever the first handler is, its first instruction included. */
static void second_handler(int number)
{
    sink += (unsigned)number;
}

static void first_handler(int number)
{
    realigned((unsigned)number);
    leaf();
}

/* All that can be interrupted: prologues, epilogues, frames of all kinds, linkage stubs. */
NOINLINE static void recurse(unsigned n)
{
    unsigned char frame[72];

    memset(frame, (int)n, sizeof frame);
    if (n > 0)
        recurse(n - 1);
    else
        realigned(80);
    sink += frame[n];
    leaf();
}

NOINLINE static void work(void)
{
    recurse(2);
    sink += (unsigned)abs(rand());
    sink += (unsigned)strlen((const char *)getenv("PATH"));
}

/* ---- how a handler is installed ---- */

/* The ways of C libraries back from a handler, without unwind data. */
void restorer_7(void);
void restorer_5(void);
__asm__(".text\n"
        "nop\n"
        ".globl restorer_7\n"
        ".type restorer_7, @function\n"
        "restorer_7: .byte 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05\n"
        ".size restorer_7, . - restorer_7\n"
        "nop\n"
        ".globl restorer_5\n"
        ".type restorer_5, @function\n"
        "restorer_5: .byte 0xb8, 15, 0, 0, 0, 0x0f, 0x05\n"
        ".size restorer_5, . - restorer_5\n");

struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

static void handle(int number, void (*handler)(int), int flags, void (*restorer)(void))
{
    struct sigaction action;
    struct kernel_action raw = {handler, (unsigned long)flags | SA_NODEFER | 0x04000000, restorer,
                                0};

    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags | SA_NODEFER;
    if (restorer == NULL ? sigaction(number, &action, NULL) != 0
                         : syscall(SYS_rt_sigaction, number, &raw, NULL, 8) != 0)
        _exit(1);
}

static void stack_for_handlers(void *low)
{
    stack_t stack = {.ss_sp = low, .ss_size = STACK_BYTES};

    if (low == MAP_FAILED || sigaltstack(&stack, NULL) != 0)
        _exit(1);
}

static void *map(void *address)
{
    return mmap(address, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void run(void)
{
    step_mark(MARK_BEGIN, 0, 0, 0);
    work();
    step_mark(MARK_END, 0, 0, 0);
}

/* The handlers' stack inside of the one interrupted, below the frames and above those that follow. */
NOINLINE static void run_on_own_stack(void)
{
    unsigned char room[STACK_BYTES];

    stack_for_handlers(room);
    run();
    memset(room, 0, sizeof room);
}

int main(int argc, char **argv)
{
    static unsigned char block[STACK_BYTES];
    const char *name = argc > 1 ? argv[1] : "";
    int flags = 0;
    void (*restorer)(void) = NULL;

    if (strcmp(name, "musl") == 0)
        restorer = restorer_7;
    else if (strcmp(name, "short") == 0)
        restorer = restorer_5;
    else if (strcmp(name, "below") == 0)
        stack_for_handlers(block);
    else if (strcmp(name, "above") == 0) /* as far up as an address may be */
        stack_for_handlers(map((void *)0x7ffffffd0000));
    else if (strcmp(name, "inside") != 0 && strcmp(name, "same") != 0)
        return 2;
    if (strcmp(name, "below") == 0 || strcmp(name, "above") == 0 || strcmp(name, "inside") == 0)
        flags = SA_ONSTACK;
    handle(SIGUSR1, first_handler, flags, restorer);
    handle(SIGUSR2, second_handler, 0, restorer);
    if (strcmp(name, "inside") == 0)
        run_on_own_stack();
    else
        run();
    return 0;
}
