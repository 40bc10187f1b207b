/* SPDX-License-Identifier: MIT */
/* Names of Python's runtime, its evaluation loop and its perf map entries. Whether its frames
 * are hidden is the caller's decision: only the whole stack tells. */
#include "python.h"

#include "spool/sym.h"

#include <string.h>

static size_t digits(const char *p, const char *end)
{
    const char *start = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return (size_t)(p - start);
}

/* Skips N[.M] and the ABI letters t (no global lock) and d (debug). NULL: no version there. */
static const char *skip_version(const char *p, const char *end)
{
    size_t n = digits(p, end);
    if (n == 0)
        return NULL;
    p += n;
    if (p < end && *p == '.' && digits(p + 1, end) > 0)
        p += 1 + digits(p + 1, end);
    if (p < end && *p == 't')
        p++;
    if (p < end && *p == 'd')
        p++;
    return p;
}

static bool has_prefix(const char *p, const char *end, const char *prefix)
{
    size_t n = strlen(prefix);
    return (size_t)(end - p) >= n && memcmp(p, prefix, n) == 0;
}

bool symint_is_python_runtime(const char *basename, size_t size)
{
    const char *p = basename;
    const char *end = p + size;
    if (has_prefix(p, end, "libpython")) {
        p = skip_version(p + 9, end);
        return p != NULL && has_prefix(p, end, ".so");
    }
    if (!has_prefix(p, end, "python"))
        return false;
    p += 6;
    return p == end || skip_version(p, end) == end;
}

bool sym_is_python_runtime(const char *basename)
{
    return basename != NULL && symint_is_python_runtime(basename, strlen(basename));
}

bool symint_is_python_eval(const char *name)
{
    static const char *const loops[] = {"_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx"};
    size_t stem = strcspn(name, ".@");
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
        if (strlen(loops[i]) == stem && memcmp(name, loops[i], stem) == 0)
            return true;
    return strncmp(name, "_TAIL_CALL_", 11) == 0;
}

bool symint_split_python(const char *entry, size_t size, const char **name, size_t *name_size,
                         const char **file, size_t *file_size)
{
    if (size <= 4 || memcmp(entry, "py::", 4) != 0)
        return false;
    /* A qualified name has no colon; the file may have any number. */
    const char *rest = entry + 4;
    size_t left = size - 4;
    const char *colon = memchr(rest, ':', left);
    if (colon == rest)
        return false;
    *name = rest;
    *name_size = colon != NULL ? (size_t)(colon - rest) : left;
    *file = colon != NULL ? colon + 1 : NULL;
    *file_size = colon != NULL ? left - *name_size - 1 : 0;
    return true;
}
