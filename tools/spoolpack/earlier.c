/* SPDX-License-Identifier: MIT */
/* Reading the manifests that are there. */
#include "earlier.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "text.h"

/* A regular file's bytes, malloc'ed; NULL: it cannot be read. */
static char *read_file(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    char *text = NULL;
    size_t at = 0;
    ssize_t n;

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size <= (off_t)MANIFEST_BYTES_MAX) {
        *size = (size_t)status.st_size;
        text = cli_realloc(NULL, *size, 1);
        while (at < *size && (n = read(fd, text + at, *size - at)) > 0)
            at += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    if (text && at == *size)
        return text;
    free(text);
    return NULL;
}

static void take(struct earlier *e, const char *path)
{
    struct manifest m;
    const char *why;
    size_t size, offset;
    char *text = read_file(path, &size);

    if (text && manifest_read(text, size, &m, &why, &offset) == 0) {
        e->items = cli_realloc(e->items, e->count + 1, sizeof *e->items);
        e->items[e->count++] = m;
    }
    free(text);
}

int earlier_read(struct earlier *e, struct store *store, const char *capture)
{
    struct text_buffer path = {0};
    struct store_names names;
    int rc;

    *e = (struct earlier){0};
    if (!store_folder(store))
        return 0;
    text_printf(&path, "captures/%s", capture);
    rc = store_list(store, path.data, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (strncmp(names.items[i], "manifest-", 9) != 0)
            continue;
        path.size = 0;
        text_printf(&path, "%s/captures/%s/%s", store_folder(store), capture, names.items[i]);
        take(e, path.data);
    }
    store_free_names(&names);
    text_free(&path);
    return rc;
}

void earlier_free(struct earlier *e)
{
    for (size_t i = 0; i < e->count; i++)
        manifest_free(&e->items[i]);
    free(e->items);
    *e = (struct earlier){0};
}

static bool is_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

const struct manifest_module *earlier_module(const struct earlier *e, const char *path,
                                             const char *build_id, const char *key)
{
    const struct manifest_module *best = NULL;

    for (size_t i = 0; i < e->count; i++) {
        for (size_t j = 0; j < e->items[i].module_count; j++) {
            const struct manifest_module *m = &e->items[i].modules[j];

            if (m->key && is_text(m->path, path) && is_text(m->build_id, build_id) &&
                (!key || is_text(m->key, key)) && (!best || m->named_count > best->named_count))
                best = m;
        }
    }
    return best;
}

uint64_t earlier_kernel_named(const struct earlier *e)
{
    uint64_t most = 0;

    for (size_t i = 0; i < e->count; i++)
        if (e->items[i].kernel_named_count > most)
            most = e->items[i].kernel_named_count;
    return most;
}

enum manifest_level earlier_level(const struct earlier *e)
{
    enum manifest_level most = MANIFEST_NAMES;

    for (size_t i = 0; i < e->count; i++)
        if (e->items[i].level > most)
            most = e->items[i].level;
    return most;
}
