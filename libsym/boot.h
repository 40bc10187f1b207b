/* SPDX-License-Identifier: MIT */
/* Whether a capture was made in the present boot of this machine, which decides what the running
 * system may say about it. */
#ifndef SYMINT_BOOT_H
#define SYMINT_BOOT_H

#include "spool/sym.h"

/* Where a running system tells about itself; tests have other files. */
struct symint_system {
    const char *proc; /* its folder of processes */
    const char *kallsyms;
    const char *boot_id;
    const char *stat;
    const char *notes;     /* of the kernel, with its build id */
    const char *osrelease; /* as uname -r prints it */
};
extern const struct symint_system symint_system;

enum symint_boot { SYMINT_BOOT_UNKNOWN = 0, SYMINT_BOOT_SAME, SYMINT_BOOT_OTHER };

enum symint_boot symint_boot_compare(const struct sym_capture *capture,
                                     const struct symint_system *system);

/* When the running system was started, in seconds since 1970; false: unknown. */
bool symint_boot_time_s(const struct symint_system *system, uint64_t *seconds);

/* Whether the running kernel is known to be another than the recorded one, by its release or by its
 * build id; NULL and 0 for what was not recorded. Then *what is "release" or "build id". */
bool symint_boot_other_kernel(const struct symint_system *system, const char *release,
                              const uint8_t *build_id, size_t build_id_size, const char **what);

/* A short text file, NUL-terminated, malloc'ed; NULL: not readable, or out of memory. */
char *symint_read_small(const char *path, size_t *size);

#endif
