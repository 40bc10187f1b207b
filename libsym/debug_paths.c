/* SPDX-License-Identifier: MIT */
/* Texts of paths. Nothing here looks whether there is a file. */
#include "debug_paths.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symint_hex symint_hex(const uint8_t *bytes, size_t size)
{
    struct symint_hex h = {{0}};
    for (size_t i = 0; i < size && i < SYMINT_MAX_WANTED_ID; i++)
        snprintf(h.text + 2 * i, 3, "%02x", bytes[i]);
    return h;
}

bool symint_is_file_id(size_t size)
{
    return size >= 2 && size <= SYMINT_MAX_WANTED_ID;
}

char *symint_join(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0 || (text = malloc((size_t)n + 1)) == NULL)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)n + 1, format, arguments);
    va_end(arguments);
    return text;
}

char *symint_build_id_path(const char *dir, const uint8_t *id, size_t size, const char *ending)
{
    struct symint_hex h = symint_hex(id, size);
    return symint_join("%s/.build-id/%.2s/%s%s", dir, h.text, h.text + 2, ending);
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
