/* SPDX-License-Identifier: MIT */
/* Exceptions on their way through frames of all kinds, some with destructors, some of which throw and catch
 * themselves; for step_oracle. */
#include <cstring>

#include "step_mark.h"

static volatile unsigned sink;

struct guard {
    unsigned char room[24];
    explicit guard(unsigned n) { memset(room, static_cast<int>(n), sizeof room); }
    ~guard();
};

__attribute__((noinline)) static void fall(unsigned n);

guard::~guard()
{
    sink += room[3];
    if (room[3] == 3) /* on the way of another one */
        try {
            fall(1);
        } catch (int caught) {
            sink += static_cast<unsigned>(caught);
        }
}

__attribute__((noinline)) static void realigned(unsigned n)
{
    alignas(64) unsigned char block[64];
    memset(block, static_cast<int>(n), sizeof block);
    fall(n - 1);
    sink += block[n];
}

__attribute__((noinline)) static void fall(unsigned n)
{
    if (n == 0)
        throw static_cast<int>(sink | 1);
    if (n == 5) {
        realigned(n);
    } else if (n == 3) {
        guard here(n);
        fall(n - 1);
    } else {
        fall(n - 1);
    }
    sink += n;
}

__attribute__((noinline)) static void one_round()
{
    try {
        fall(6);
    } catch (int caught) {
        sink += static_cast<unsigned>(caught);
    }
}

int main()
{
    one_round(); /* finds tables and binds functions */
    step_mark(MARK_BEGIN, nullptr, nullptr, nullptr);
    one_round();
    step_mark(MARK_END, nullptr, nullptr, nullptr);
    return 0;
}
