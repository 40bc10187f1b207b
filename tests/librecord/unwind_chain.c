/* SPDX-License-Identifier: MIT */
/*
 * One function of each kind of frame: variable, of more than 64 KiB, with variable arguments, with all callee-saved
 * registers in use, floating point's too, with a return address that lies where it must. Compiled with and without
 * unwind data, frame pointers and signed return addresses; in this order (-fno-toplevel-reorder).
 */
#include "unwind_chain.h"

#include <alloca.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;
static volatile double float_sink;

static void plain(int n);
static void variable(int n);
static void large(int n);
static void variadic(int n, ...);
static void busy(int n, int a, int b, int c);
static void floats(int n, double a, double b, double c, double d);
static void last(int n);

void chain_run(int signal_number)
{
    plain(signal_number);
    sink++;
}

static NOINLINE void plain(int n)
{
    variable(n);
    sink += n;
}

static NOINLINE void variable(int n)
{
    char *p = alloca((size_t)n * 40);

    memset(p, 1, (size_t)n * 40);
    large(n);
    sink += p[n];
}

static NOINLINE void large(int n)
{
    char bytes[70000];

    memset(bytes, n, sizeof bytes);
    variadic(n, 1, 2.5, "text");
    sink += bytes[n];
}

static NOINLINE void variadic(int n, ...)
{
    va_list list;

    va_start(list, n);
    busy(n, va_arg(list, int), n + 1, n + 2);
    va_end(list);
    sink += n;
}

/* More values than there are registers that a call keeps. */
static NOINLINE void busy(int n, int a, int b, int c)
{
    int d = sink + a, e = sink + b, f = sink + c, g = sink * a, h = sink * b, i = sink * c,
        j = sink ^ a, k = sink ^ b;

    floats(n, a, b, c, d);
    sink += a + b * c + d * e + f * g + h * i + j * k;
}

static NOINLINE void floats(int n, double a, double b, double c, double d)
{
    double e = float_sink + a, f = float_sink * b, g = float_sink + c, h = float_sink * d;

    last(n);
    float_sink = a * e + b * f + c * g + d * h;
}

static NOINLINE void last(int n)
{
    raise(n);
    sink++;
}

static NOINLINE void after(void)
{
    sink++;
}

void (*const chain_function[])(void) = {
    (void (*)(void))chain_run, (void (*)(void))plain,    (void (*)(void))variable,
    (void (*)(void))large,     (void (*)(void))variadic, (void (*)(void))busy,
    (void (*)(void))floats,    (void (*)(void))last,     after,
};
const size_t chain_count = sizeof chain_function / sizeof chain_function[0] - 1;
