/* SPDX-License-Identifier: MIT */
/*
 * Recursion, callbacks out of the C library, variable and realigned frames, tail calls, functions that end in
 * a call, jumps out of them, calls through a PLT. Nothing here knows that it is watched.
 */
#include "unwind_workload.h"

#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint32_t sink;

static NOINLINE uint32_t spin(uint32_t x, unsigned size)
{
    for (unsigned i = 0; i < 20 * size; i++)
        x = x * 1664525 + 1013904223 + (x >> 7);
    sink += x;
    return x;
}

static NOINLINE uint32_t tail(uint32_t x, unsigned size)
{
    return spin(x ^ 0x55, size);
}

/* Many values alive over calls: all saved registers are in use. */
static NOINLINE uint32_t busy(uint32_t a, uint32_t b, uint32_t c, uint32_t d, unsigned size)
{
    uint32_t e = spin(a, size), f = spin(b, size), g = spin(c, size), h = spin(d, size);

    return spin(a ^ h, size) + b * g + c * f + d * e + tail(e + f, size);
}

static NOINLINE uint32_t with_alloca(unsigned bytes, unsigned size)
{
    uint8_t *p = alloca(bytes + 1);

    memset(p, (int)bytes, bytes + 1);
    return busy(p[0], p[bytes], bytes, 3, size) + p[bytes / 2];
}

/* A frame aligned to more than the ABI has, with a variable part: the CFA is found through another register. */
static NOINLINE uint32_t realigned(unsigned bytes, unsigned size)
{
    uint32_t local[32] __attribute__((aligned(128)));
    uint8_t *p = alloca(bytes + 1);

    memset(local, (int)bytes, sizeof local);
    memset(p, 7, bytes + 1);
    return with_alloca(bytes, size) + local[bytes % 32] + p[bytes] +
           (uint32_t)((uintptr_t)local & 127);
}

#ifdef __x86_64__
__attribute__((force_align_arg_pointer))
#endif
static NOINLINE uint32_t
aligned_for_others(unsigned bytes, unsigned size)
{
    uint32_t local[8] __attribute__((aligned(32)));

    memset(local, (int)bytes, sizeof local);
    return realigned(bytes, size) + local[bytes % 8];
}

static NOINLINE uint32_t recurse(unsigned depth, unsigned size)
{
    uint32_t local[8];

    memset(local, (int)depth, sizeof local);
    if (depth == 0)
        return aligned_for_others(100, size);
    return recurse(depth - 1, size) + local[depth % 8] + (depth % 4 == 0 ? spin(depth, size) : 0);
}

static _Thread_local unsigned compare_size;

static int compare(const void *a, const void *b)
{
    uint32_t x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    recurse(y % 5, compare_size);
    return x < y ? -1 : x > y;
}

static NOINLINE void sort(unsigned size)
{
    uint32_t numbers[12];

    compare_size = size;
    for (size_t i = 0; i < 12; i++)
        numbers[i] = spin((uint32_t)i, 1) % 1000;
    qsort(numbers, 12, sizeof numbers[0], compare);
    sink += numbers[3];
}

static NOINLINE __attribute__((noreturn)) void never_returns(jmp_buf *back, unsigned size)
{
    recurse(3, size);
    longjmp(*back, 1);
}

/* Its last instruction is a call: the return address belongs to what follows. */
static NOINLINE void ends_in_a_call(jmp_buf *back, unsigned size)
{
    spin(1, size);
    never_returns(back, size);
}

static NOINLINE void jumps(unsigned size)
{
    jmp_buf back;

    if (setjmp(back) == 0)
        ends_in_a_call(&back, size);
    spin(2, size);
}

/* Small functions of other libraries. */
static NOINLINE void through_the_plt(unsigned size)
{
    char text[64];

    for (unsigned i = 0; i < size; i++) {
        memset(text, 0, sizeof text);
        strncpy(text, "a text", sizeof text - 1);
        sink +=
            (uint32_t)strlen(text) + (uint32_t)strtol("77", NULL, 10) + (uint32_t)labs(-(long)i);
        free(malloc(40 + i % 7));
    }
}

void workload_run(unsigned size)
{
    recurse(20, size);
    sort(size);
    jumps(size);
    through_the_plt(size);
}

static NOINLINE void raise_here(unsigned bytes, int signal_number)
{
    uint32_t local[4] __attribute__((aligned(64)));
    uint8_t *p = alloca(bytes + 1);

    memset(p, 1, bytes + 1);
    memset(local, 1, sizeof local);
    raise(signal_number);
    sink += p[bytes] + local[bytes % 4];
}

void workload_raise(unsigned depth, int signal_number)
{
    if (depth == 0) {
        raise_here(300, signal_number);
    } else {
        workload_raise(depth - 1, signal_number);
        sink += depth;
    }
}
