/* SPDX-License-Identifier: MIT */
/*
 * A library for workload.c, built three times with another PLUGIN: `a` and `b` to be loaded in turn at the same
 * addresses, `lib` to be linked. Their functions have frames of other sizes at other places, so that whoever takes
 * one's unwind information for the other's gets lost.
 */
#include "workload_plugin.h"

#if PLUGIN_FIRST
#define FRAME_BYTES 200
#else
#define FRAME_BYTES 40
#endif

#if PLUGIN_FIRST
KEEP void PLUGIN_NAME(tiny)(void)
{
    BARRIER();
}
#endif

/* Neither calls nor reads anything outside its own code: it works wherever that is mapped. */
KEEP static void PLUGIN_NAME(loop)(unsigned long loops)
{
    for (unsigned long i = 0; i < loops; i++)
        BARRIER();
}

KEEP void PLUGIN_NAME(moved)(unsigned long loops)
{
    unsigned char frame[FRAME_BYTES + 64];
    USE(frame);
    PLUGIN_NAME(loop)(loops);
    USE(frame);
}

KEEP static void PLUGIN_NAME(inner)(workload_function *work, unsigned long us)
{
    unsigned char frame[FRAME_BYTES];
    USE(frame);
    work(us);
    USE(frame);
}

KEEP void PLUGIN_NAME(entry)(workload_function *work, unsigned long us)
{
    unsigned char frame[2 * FRAME_BYTES];
    USE(frame);
    PLUGIN_NAME(inner)(work, us);
    USE(frame);
}

#if !PLUGIN_FIRST
KEEP void PLUGIN_NAME(tiny)(void)
{
    BARRIER();
}
#endif
