/* SPDX-License-Identifier: MIT */
/* Endings of names. */
#include "archive_name.h"

#include <stddef.h>
#include <string.h>

static bool ends_in_any(const char *name, const char *const *endings)
{
    size_t size = strlen(name);

    for (; *endings; endings++)
        if (size > strlen(*endings) && strcmp(name + size - strlen(*endings), *endings) == 0)
            return true;
    return false;
}

bool archive_name_is_tar(const char *name)
{
    static const char *const endings[] = {".tar.gz", ".tgz", ".tar", NULL};

    return strcmp(name, "-") == 0 || ends_in_any(name, endings);
}

bool archive_name_misleads(const char *name)
{
    static const char *const endings[] = {".zip", ".tar.xz", ".tar.zst", ".tar.bz2",
                                          ".txz", ".tbz2",   ".gz",      ".xz",
                                          ".zst", ".7z",     ".spool",   NULL};

    return !archive_name_is_tar(name) && ends_in_any(name, endings);
}
