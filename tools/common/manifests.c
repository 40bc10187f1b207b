/* SPDX-License-Identifier: MIT */
/* Walking the folders of captures for manifests. What is in the way is told to the caller, and skipped. */
#include "manifests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_id.h"
#include "cli.h"

const char *manifests_error_text(int rc)
{
    return rc == SYM_ERR_IO ? strerror(errno) : sym_error_text(rc);
}

static int add_name(void *user, const char *name, bool is_folder)
{
    struct manifests_names *names = user;

    names->items = cli_grow(names->items, &names->capacity, names->count, sizeof *names->items);
    names->items[names->count++] =
        (struct manifests_name){.name = text_copy(name, strlen(name)), .is_folder = is_folder};
    return 0;
}

int manifests_list(const struct sym_archive *a, const char *folder, struct manifests_names *names)
{
    *names = (struct manifests_names){0};
    return sym_archive_list(a, folder, add_name, names);
}

void manifests_free_names(struct manifests_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].name);
    free(names->items);
    *names = (struct manifests_names){0};
}

static bool is_manifest(const char *name)
{
    size_t size = strlen(name);

    return strncmp(name, "manifest-", 9) == 0 && size >= 14 &&
           strcmp(name + size - 5, ".json") == 0;
}

/* Reads to the end. NULL, or why that failed. */
static const char *read_file(int fd, struct text_buffer *text)
{
    char buffer[16384];
    ssize_t n;

    while ((n = read(fd, buffer, sizeof buffer)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return strerror(errno);
        if ((size_t)n > MANIFEST_BYTES_MAX - text->size)
            return "too large for a manifest";
        text_append(text, buffer, (size_t)n);
    }
    return NULL;
}

/* Whether the file was read. False: *why says why not. */
static bool read_manifest(const struct sym_archive *a, const char *name, const char *capture,
                          struct manifest *m, struct text_buffer *why)
{
    struct text_buffer text = {0};
    const char *fault = NULL;
    size_t offset = 0;
    int fd, rc = sym_archive_open_file(a, name, &fd);

    if (rc < 0) {
        fault = manifests_error_text(rc);
    } else {
        fault = read_file(fd, &text);
        close(fd);
    }
    if (fault) {
        text_printf(why, "%s", fault);
    } else if (manifest_read(text.data, text.size, m, &fault, &offset) < 0) {
        text_printf(why, "byte %zu: %s", offset, fault);
    } else if (strcmp(m->capture, capture) != 0) {
        text_printf(why, "it is of capture %s", m->capture);
        manifest_free(m);
    }
    text_free(&text);
    return why->size == 0;
}

static int each_of_capture(const struct sym_archive *a, const char *capture, manifests_fn *fn,
                           void *user)
{
    struct text_buffer name = {0}, why = {0};
    struct manifests_names names;
    int rc;

    text_printf(&name, "captures/%s", capture);
    rc = manifests_list(a, name.data, &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        struct manifest m;

        if (names.items[i].is_folder || !is_manifest(names.items[i].name))
            continue;
        name.size = why.size = 0;
        text_printf(&name, "captures/%s/%s", capture, names.items[i].name);
        if (read_manifest(a, name.data, capture, &m, &why)) {
            rc = fn(user, name.data, &m, NULL);
            manifest_free(&m);
        } else {
            rc = fn(user, name.data, NULL, why.data);
        }
    }
    manifests_free_names(&names);
    text_free(&name);
    text_free(&why);
    return rc;
}

int manifests_each(const struct sym_archive *a, const char *capture, manifests_fn *fn, void *user)
{
    struct manifests_names names;
    int rc;

    if (capture)
        return each_of_capture(a, capture, fn, user);
    rc = manifests_list(a, "captures", &names);
    for (size_t i = 0; rc == 0 && i < names.count; i++)
        if (names.items[i].is_folder && capture_id_is_valid(names.items[i].name))
            rc = each_of_capture(a, names.items[i].name, fn, user);
    manifests_free_names(&names);
    return rc;
}
