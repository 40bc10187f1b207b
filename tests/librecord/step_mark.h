/* SPDX-License-Identifier: MIT */
/* What a program tells step_oracle.c, by a breakpoint instruction with values in registers. */
#ifndef STEP_MARK_H
#define STEP_MARK_H

#define STEP_MARK_MAGIC 0x73746570

enum {
    MARK_BEGIN =
        1, /* whatever called this function is believed; from here on each instruction is looked at */
    MARK_END = 2,
    MARK_STACK =
        3 /* [a, b) will be another stack of the thread; c is where its first function will return to, the last frame
                      there can be; 1: that function is the last, 0: there is nothing to be known of its end */
};

static inline void step_mark(long kind, const void *a, const void *b, const void *c)
{
    register const void *in_rcx __asm__("rcx") = c;
    __asm__ volatile("int3"
                     :
                     : "a"((long)STEP_MARK_MAGIC), "D"(kind), "S"(a), "d"(b), "r"(in_rcx)
                     : "memory");
}

#endif
