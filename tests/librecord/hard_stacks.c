/* SPDX-License-Identifier: MIT */
/*
 * hard_stacks CASE: jumps out of calls and handlers, and coroutines, made by the C library and by assembly: several
 * stacks in one thread. To be run by step_oracle, on x86-64.
 */
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "step_mark.h"

#define NOINLINE __attribute__((noinline))
#define STACK_BYTES 16384

static volatile unsigned sink;

NOINLINE static void recurse(unsigned n)
{
    _Alignas(64) unsigned char block[64];
    unsigned char *room = __builtin_alloca(n * 8 + 8);

    memset(block, (int)n, sizeof block);
    memset(room, 1, 8);
    if (n > 0)
        recurse(n - 1);
    sink += block[n] + room[0];
}

/* ---- jumps ---- */

static jmp_buf back;
static sigjmp_buf back_from_handler;

NOINLINE static void jump(unsigned n)
{
    unsigned char frame[100];

    memset(frame, (int)n, sizeof frame);
    if (n > 0)
        jump(n - 1);
    if (sink != 1) /* always */
        longjmp(back, 1);
    sink += frame[n];
}

static void handler(int number)
{
    sink += (unsigned)number;
    siglongjmp(back_from_handler, 1);
}

static void run_jumps(void)
{
    static volatile int rounds;

    for (rounds = 0; rounds < 3; rounds++) {
        if (setjmp(back) == 0)
            jump(4);
        recurse(1);
        if (__builtin_expect(sigsetjmp(back_from_handler, 1) == 0, 1))
            raise(SIGUSR1);
        recurse(1);
    }
}

/* Over the handler's own stack. */
static void run_jumps_elsewhere(void)
{
    static unsigned char block[STACK_BYTES];
    stack_t stack = {.ss_sp = block, .ss_size = sizeof block};

    sigaltstack(&stack, NULL);
    run_jumps();
}

/* ---- stacks ---- */

/* A page below and one above cannot be read: a copy ends with the stack. Without room: what lies above can be. */
static unsigned char *new_stack(const void *last)
{
    unsigned char *p =
        mmap(NULL, STACK_BYTES + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED || mprotect(p + 4096, STACK_BYTES, PROT_READ | PROT_WRITE) != 0)
        _exit(1);
    step_mark(MARK_STACK, p + 4096, p + 4096 + STACK_BYTES, last);
    return p + 4096;
}

static ucontext_t contexts[3];

NOINLINE static void take_turns(unsigned n, int self, int other)
{
    unsigned char frame[40];

    memset(frame, (int)n, sizeof frame);
    if (n > 0)
        take_turns(n - 1, self, other);
    else
        swapcontext(&contexts[self], &contexts[other]);
    sink += frame[n];
}

static void first_coroutine(void)
{
    for (int i = 0; i < 3; i++) {
        recurse(2);
        take_turns(3, 1, 2);
    }
}

static void second_coroutine(void)
{
    for (int i = 0; i < 3; i++) {
        take_turns(1, 2, 1);
        recurse(1);
    }
}

/* They return to each other's end, and the last to here. */
NOINLINE static void run_contexts(void)
{
    void (*const functions[])(void) = {NULL, first_coroutine, second_coroutine};

    for (int i = 1; i < 3; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = new_stack(NULL);
        contexts[i].uc_stack.ss_size = STACK_BYTES;
        contexts[i].uc_link = &contexts[i == 1 ? 2 : 0];
        makecontext(&contexts[i], functions[i], 0);
        /* What its first function returns to is the C library's, which has it as the end. */
        step_mark(MARK_STACK, contexts[i].uc_stack.ss_sp,
                  (unsigned char *)contexts[i].uc_stack.ss_sp + STACK_BYTES,
                  *(void **)contexts[i].uc_mcontext.gregs[REG_RSP]);
    }
    swapcontext(&contexts[0], &contexts[1]);
    recurse(1);
}

/* Saves what a call must not change on the stack that is left, and takes it from the one that is entered. */
void switch_stack(void **from, void *to);
__asm__(".text\n"
        ".globl switch_stack\n"
        ".type switch_stack, @function\n"
        "switch_stack:\n"
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
        "ret\n"
        ".size switch_stack, . - switch_stack\n");

/* The same with the unwind data that such code has: good for where it is, before and after. */
void switch_stack_told(void **from, void *to);
__asm__(".text\n"
        ".globl switch_stack_told\n"
        ".type switch_stack_told, @function\n"
        "switch_stack_told:\n"
        ".cfi_startproc\n"
        "push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
        "push %rbx\n .cfi_def_cfa_offset 24\n .cfi_offset %rbx, -24\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %rbx\n .cfi_def_cfa_offset 16\n .cfi_restore %rbx\n"
        "pop %rbp\n .cfi_def_cfa_offset 8\n .cfi_restore %rbp\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size switch_stack_told, . - switch_stack_told\n");

static void *main_sp, *coroutine_sp;
static void (*switch_now)(void **from, void *to);

static void yield(unsigned n)
{
    unsigned char frame[40];

    memset(frame, (int)n, sizeof frame);
    if (n > 0)
        yield(n - 1);
    else
        switch_now(&coroutine_sp, main_sp);
    sink += frame[n];
}

static void coroutine(void)
{
    for (;;) { /* it is left behind */
        recurse(2);
        yield(2);
    }
}

/* fill: of what the first function would return to, the words above it, and the frame pointer. A stack of the
 * program's may be what lies above. */
NOINLINE static void run_switches(void (*function)(void **, void *), unsigned saved,
                                  const void *above, const void *frame_pointer)
{
    /* A return address of 0 is an end. */
    unsigned char *low = new_stack((const void *)(uintptr_t)(above == NULL));
    const void **top = (const void **)(low + STACK_BYTES) - 63;

    for (int i = 0; i < 63; i++)
        top[i] = above;
    top--;
    top[0] = (const void *)(uintptr_t)coroutine;
    for (unsigned i = 1; i <= saved; i++)
        top[-(int)i] = i == 1 ? frame_pointer : NULL;
    coroutine_sp = (void *)(top - saved);
    switch_now = function;
    for (int i = 0; i < 4; i++)
        switch_now(&main_sp, coroutine_sp);
}

/* Behind a call: what a return address would be. */
NOINLINE static const void *here(void)
{
    return __builtin_return_address(0);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    struct sigaction action = {.sa_handler = handler};

    if (strcmp(name, "jumps-elsewhere") == 0)
        action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    step_mark(MARK_BEGIN, 0, 0, 0);
    if (strcmp(name, "jumps") == 0)
        run_jumps();
    else if (strcmp(name, "jumps-elsewhere") == 0)
        run_jumps_elsewhere();
    else if (strcmp(name, "contexts") == 0)
        run_contexts();
    else if (strcmp(name, "switch") == 0) /* nothing above: as if it were called by nobody */
        run_switches(switch_stack, 6, NULL, NULL);
    else if (strcmp(name, "switch-told") == 0)
        run_switches(switch_stack_told, 2, NULL, NULL);
    else if (strcmp(name, "switch-garbage") == 0)
        run_switches(switch_stack_told, 2, (const void *)0x5a5a5a5a5a5a5a5a, &main_sp);
    else if (strcmp(name, "switch-data") == 0) /* the words are addresses, of no code */
        run_switches(switch_stack_told, 2, &main_sp, &main_sp);
    else if (strcmp(name, "switch-code") == 0) /* of code, but behind no call */
        run_switches(switch_stack_told, 2, (const unsigned char *)here() + 1,
                     __builtin_frame_address(0));
    else
        return 2;
    step_mark(MARK_END, 0, 0, 0);
    return 0;
}
