/* SPDX-License-Identifier: MIT */
/*
 * What the kernel allows here: sysctls of perf, descriptors, locked memory, CPUs.
 */
#ifndef RECORD_KERNEL_LIMITS_H
#define RECORD_KERNEL_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number in a file of /proc/sys/kernel, e.g. "perf_event_paranoid". Returns false when there is none. */
bool recordint_limits_sysctl(const char *name, int64_t *value);

/* Online CPUs, ascending ("0-3,8" in /sys/devices/system/cpu/online). *cpus is the caller's to free.
 * Returns how many, 0: out of memory. Without that file: 0 to sysconf's number - 1. */
size_t recordint_limits_online_cpus(int **cpus);

/* The same of a text. Returns 0 when it is no such list, or out of memory. */
size_t recordint_limits_parse_cpus(const char *text, int **cpus);

/* Raises RLIMIT_NOFILE to its hard limit. Returns the limit in force, UINT64_MAX: none. */
uint64_t recordint_limits_raise_files(void);

uint64_t recordint_limits_memlock_bytes(void); /* RLIMIT_MEMLOCK, UINT64_MAX: none */

/* Whether the kernel is at least major.minor. */
bool recordint_limits_kernel_at_least(unsigned major, unsigned minor);

/* Room for 200 ms of samples, 1 to 16 MiB, a power of two. */
size_t recordint_limits_ring_size(uint32_t frequency_hz, uint32_t stack_size_bytes);

#endif
