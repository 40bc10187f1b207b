/* SPDX-License-Identifier: MIT */
/* What workload.c and the libraries it loads (workload_plugin.c) share. */
#ifndef WORKLOAD_PLUGIN_H
#define WORKLOAD_PLUGIN_H

/* A function that is in the stack under its own name whenever something that it called runs. */
#if defined(__clang__)
#define KEEP __attribute__((noinline, disable_tail_calls))
#else
#define KEEP __attribute__((noipa))
#endif

/* Code that the compiler can neither drop nor move anything across; USE also needs the array. */
#define BARRIER() __asm__ volatile("" : : : "memory")
#define USE(array) __asm__ volatile("" : : "r"(array) : "memory")

typedef void workload_function(unsigned long us);

#define PLUGIN_JOIN_(plugin, name) plugin_##plugin##_##name
#define PLUGIN_JOIN(plugin, name) PLUGIN_JOIN_(plugin, name)
#ifdef PLUGIN
#define PLUGIN_NAME(name) PLUGIN_JOIN(PLUGIN, name)

void PLUGIN_NAME(tiny)(void);
void PLUGIN_NAME(entry)(workload_function *work, unsigned long us);
void PLUGIN_NAME(moved)(unsigned long loops);
#endif

#endif
