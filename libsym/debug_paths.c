/* SPDX-License-Identifier: MIT */
/* Texts of paths. Nothing here looks whether there is a file. */
#include "debug_paths.h"

#include <stdio.h>
#include <string.h>

struct symint_hex symint_hex(const uint8_t *bytes, size_t size)
{
    struct symint_hex h = {{0}};
    for (size_t i = 0; i < size && i < SYMINT_MAX_BUILD_ID; i++)
        snprintf(h.text + 2 * i, 3, "%02x", bytes[i]);
    return h;
}

bool symint_is_file_id(size_t size)
{
    return size >= 2 && size <= SYMINT_MAX_BUILD_ID;
}

char *symint_build_id_path(const char *dir, const uint8_t *id, size_t size, const char *ending)
{
    struct symint_hex h = symint_hex(id, size);
    return symint_join("%s/.build-id/%.2s/%s%s", dir, h.text, h.text + 2, ending);
}

bool symint_is_release(const char *release)
{
    return release != NULL && release[0] != '\0' && strlen(release) <= SYMINT_MAX_RELEASE &&
           strchr(release, '/') == NULL && strstr(release, "..") == NULL;
}

size_t symint_without_deleted(const char *path, size_t size)
{
    static const char mark[] = SYMINT_DELETED;
    size_t n = sizeof(mark) - 1;
    return size > n && memcmp(path + size - n, mark, n) == 0 ? size - n : size;
}

size_t symint_folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) : 0;
}

const char *symint_debug_dir(const struct symint_search_options *options, size_t i)
{
    if (options->debug_dir_count > 0)
        return i < options->debug_dir_count ? options->debug_dirs[i] : NULL;
    return i == 0 ? "/usr/lib/debug" : NULL;
}

const char *symint_shown_root(const char *root)
{
    return root != NULL && strcmp(root, "/") != 0 ? root : "";
}
