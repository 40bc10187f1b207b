/* SPDX-License-Identifier: MIT */
/*
 * Calls of several kinds (cold code, realigned frames, recursion, callbacks out of the C library), which hard_links.sh
 * compiles and links in all the ways there are and runs under step_oracle.
 */
#include <stdlib.h>
#include <string.h>

#include "step_mark.h"

#define NOINLINE __attribute__((noinline))

static unsigned sink;

__attribute__((cold, noinline)) static void rarely(unsigned n)
{
    unsigned char frame[48];

    memset(frame, (int)n, sizeof frame);
    sink += frame[n];
}

/* Its unlikely part lies elsewhere, with a range of its own in the unwind tables. */
NOINLINE static unsigned split(unsigned a, unsigned b, unsigned c)
{
    unsigned x = a * b, y = b * c, z = a * c;

    if (__builtin_expect(a == 77, 0)) {
        rarely(x % 40);
        rarely(y % 40);
        return x + y + z + sink;
    }
    sink += x;
    return x ^ y ^ z;
}

NOINLINE static unsigned realigned(unsigned n)
{
    _Alignas(64) unsigned char block[64];
    unsigned char *room = __builtin_alloca(n + 8);

    memset(block, (int)n, sizeof block);
    memset(room, 1, 8);
    return split(77, n, 2) + split(3, n, 2) + block[n] + room[3];
}

NOINLINE static unsigned recurse(unsigned n)
{
    unsigned char frame[72];
    unsigned below;

    memset(frame, (int)n, sizeof frame);
    below = n > 0 ? recurse(n - 1) : realigned(20);
    return below + frame[n];
}

static int compare(const void *a, const void *b)
{
    unsigned x = split(77, *(const unsigned char *)a, 1),
             y = split(5, *(const unsigned char *)b, 1);

    return x < y ? -1 : x > y;
}

int main(void)
{
    char text[] = "stack";

    step_mark(MARK_BEGIN, 0, 0, 0);
    sink += recurse(3);
    qsort(text, 5, 1, compare);
    sink += (unsigned)strlen(text);
    step_mark(MARK_END, 0, 0, 0);
    return 0;
}
