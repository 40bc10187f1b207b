/* SPDX-License-Identifier: MIT */
/* The files of packed symbols that archives have of one thing. */
#include "packed.h"

#include "archive.h"
#include "debug_paths.h"
#include "openfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PACKED_BYTES ((size_t)1 << 30)
#define MAX_PACKED_FILES 1024 /* of one build id: each address is looked up in all of them */

/* Of a folder, the names of files of packed symbols. */
struct names {
    char **items;
    size_t count;
    size_t capacity;
};

static bool ends_in(const char *name, const char *ending)
{
    size_t size = strlen(name);
    size_t n = strlen(ending);
    return size > n && strcmp(name + size - n, ending) == 0;
}

static int gather(void *user, const char *name, bool is_folder)
{
    struct names *n = user;
    if (is_folder || (!ends_in(name, ".lines") && !ends_in(name, ".names")))
        return 0;
    char **items = symint_grow(n->items, n->count, &n->capacity, sizeof(*items), 16);
    if (items == NULL)
        return SYM_ERR_NOMEM;
    n->items = items;
    n->items[n->count] = strdup(name);
    return n->items[n->count++] == NULL ? SYM_ERR_NOMEM : 0;
}

/* The first thing that is wrong is told. */
static void blame(struct symint_packed_set *set, const struct sym_archive *a, const char *name,
                  const char *why)
{
    if (set->damaged_count++ == 0)
        snprintf(set->detail, sizeof(set->detail), "%.250s/%s: %s", symint_archive_path(a), name,
                 why);
}

static int add(struct symint_packed_set *set, struct symint_packed *p)
{
    struct symint_packed **items = realloc(set->items, (set->count + 1) * sizeof(*items));
    if (items == NULL) {
        symint_packed_free(p);
        return SYM_ERR_NOMEM;
    }
    set->items = items;
    set->items[set->count++] = p;
    return 0;
}

/* Reads one file; what is wrong with it is told, and is no error. */
static int load(struct symint_packed_set *set, const struct sym_archive *a, const char *name,
                const uint8_t *build_id, size_t build_id_size)
{
    enum sym_miss miss;
    int error;
    int fd;
    char *data;
    size_t size;
    struct symint_packed *p = NULL;
    const char *why = NULL;
    int rc = symint_archive_open_regular(a, name, &fd, &miss, &error);
    if (rc != 0 || fd < 0) {
        if (rc == 0 && miss != SYM_MISS_NO_FILE)
            blame(set, a, name, error != 0 ? strerror(error) : sym_miss_text(miss));
        return rc;
    }
    rc = symint_read_all(fd, MAX_PACKED_BYTES, &data, &size);
    error = errno;
    close(fd);
    if (rc == SYM_ERR_NOMEM)
        return rc;
    if (rc != 0) {
        blame(set, a, name, rc == SYM_ERR_IO ? strerror(error) : "too large");
        return 0;
    }
    rc = symint_packed_open((uint8_t *)data, size, &p, &why);
    if (p != NULL && !symint_packed_is_of(p, build_id, build_id_size))
        why = "it was packed for another file";
    if (why != NULL) {
        blame(set, a, name, why);
        symint_packed_free(p);
        return 0;
    }
    return rc == 0 ? add(set, p) : rc;
}

static int compare_items(const void *a, const void *b)
{
    const struct symint_packed *const *x = a;
    const struct symint_packed *const *y = b;
    int levels = (int)symint_packed_level(*y) - (int)symint_packed_level(*x);
    uint32_t m = symint_packed_count(*x);
    uint32_t n = symint_packed_count(*y);
    return levels != 0 ? levels : (n > m) - (n < m);
}

/* All files of a folder. */
static int load_folder(struct symint_packed_set *set, const struct sym_archive *a,
                       const char *folder, const uint8_t *build_id, size_t build_id_size)
{
    struct names names = {0};
    size_t before = set->count;
    int rc = sym_archive_list(a, folder, gather, &names);
    if (rc < 0 && !symint_is_shortage(rc)) {
        blame(set, a, folder, "cannot be read");
        rc = 0;
    }
    for (size_t i = 0; i < names.count; i++) {
        bool fits = set->count < MAX_PACKED_FILES;
        if (!fits && rc == 0)
            blame(set, a, names.items[i], "not read: there are more than 1,024 for its build id");
        char *name = rc == 0 && fits ? symint_join("%s/%s", folder, names.items[i]) : NULL;
        if (rc == 0 && fits)
            rc = name != NULL ? load(set, a, name, build_id, build_id_size) : SYM_ERR_NOMEM;
        free(name);
        free(names.items[i]);
    }
    free(names.items);
    if (set->count - before > 1)
        qsort(set->items + before, set->count - before, sizeof(*set->items), compare_items);
    return rc;
}

int symint_packed_load_build_id(struct symint_packed_set *set,
                                const struct sym_archive *const *archives, size_t count,
                                const uint8_t *build_id, size_t build_id_size)
{
    if (count == 0 || !symint_is_file_id(build_id_size))
        return 0;
    struct symint_hex hex = symint_hex(build_id, build_id_size);
    char *folder = symint_join(".build-id/%.2s/%s.syms", hex.text, hex.text + 2);
    int rc = folder != NULL ? 0 : SYM_ERR_NOMEM;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = load_folder(set, archives[i], folder, build_id, build_id_size);
    free(folder);
    return rc;
}

int symint_packed_load_kernel(struct symint_packed_set *set,
                              const struct sym_archive *const *archives, size_t count,
                              const char *capture_id)
{
    char *name = symint_join("captures/%s/kernel.syms", capture_id);
    int rc = name != NULL ? 0 : SYM_ERR_NOMEM;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = load(set, archives[i], name, NULL, 0);
    free(name);
    return rc;
}

void symint_packed_set_free(struct symint_packed_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        symint_packed_free(set->items[i]);
    free(set->items);
    *set = (struct symint_packed_set){0};
}
