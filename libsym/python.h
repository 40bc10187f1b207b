/* SPDX-License-Identifier: MIT */
/* Which frames are the Python interpreter's own, and how its perf map entries are taken apart. */
#ifndef SYMINT_PYTHON_H
#define SYMINT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

/* sym_is_python_runtime for a name that is not terminated. */
bool symint_is_python_runtime(const char *basename, size_t size);

/* Whether a function of a Python runtime is its evaluation loop. Clone suffixes and @VERSION do
 * not count. */
bool symint_is_python_eval(const char *name);

/* Whether a perf map entry was written by Python: `py::NAME:FILE`. *name and *file point into
 * the entry; *file_size is 0 when there is no file. */
bool symint_split_python(const char *entry, size_t size, const char **name, size_t *name_size,
                         const char **file, size_t *file_size);

#endif
