/* SPDX-License-Identifier: MIT */
/*
 * Others may pack into the store meanwhile. What they have written, or found there and will name in their manifests, is
 * young; so only what is old goes, and its age is looked at last. No link is followed: each folder is opened in the one
 * above it.
 */
#include "prune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "archive_open.h"
#include "capture_id.h"
#include "cli.h"
#include "manifests.h"
#include "merge_pieces.h"
#include "output.h"

#define DEPTH_MAX 3 /* .build-id, xx, yyyy.syms */

struct prune {
    const char *store;
    bool dry_run, quiet, failed;
    int64_t oldest_s; /* what was written since stays: seconds since 1970, ... */
    long oldest_ns;   /* ... and nanoseconds */
    char **named;     /* by manifests; sorted */
    size_t named_count, named_capacity;
    struct merge *merge; /* what it replaces is no longer needed; NULL: nothing was merged */
    struct tool_output out;
    uint64_t files, bytes;
};

static void complain(struct prune *p, const char *name, const char *what)
{
    cli_error("%s/%s: %s", p->store, name, what);
    p->failed = true;
}

/* ---- what manifests name ---- */

static void add_name(struct prune *p, const char *name)
{
    p->named = cli_grow(p->named, &p->named_capacity, p->named_count, sizeof *p->named);
    p->named[p->named_count++] = text_copy(name, strlen(name));
}

static void add_files(struct prune *p, const struct manifest_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        add_name(p, files->items[i].name);
}

static int add_manifest(void *user, const char *name, const struct manifest *m, const char *why)
{
    struct prune *p = user;

    if (!m) {
        complain(p, name, why);
        return 0;
    }
    add_name(p, name);
    for (size_t i = 0; i < m->module_count; i++)
        add_files(p, &m->modules[i].files);
    for (size_t i = 0; i < m->map_count; i++)
        add_files(p, &m->maps[i].files);
    add_files(p, &m->kernel_files);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_replaced(const struct prune *p, const char *name)
{
    return p->merge && merge_replaces(p->merge, name);
}

static bool is_named(const struct prune *p, const char *name)
{
    if (p->dry_run && is_replaced(p, name)) /* manifests still have it */
        return false;
    return p->named_count > 0 &&
           bsearch(&name, p->named, p->named_count, sizeof *p->named, compare_names) != NULL;
}

static void forget_names(struct prune *p)
{
    for (size_t i = 0; i < p->named_count; i++)
        free(p->named[i]);
    p->named_count = 0;
}

/* 0, or -1 when not all that is needed may be known. */
static int read_manifests(struct prune *p, const struct sym_archive *a)
{
    int rc;

    forget_names(p);
    rc = manifests_each(a, NULL, add_manifest, p);
    if (rc < 0)
        complain(p, "captures", manifests_error_text(rc));
    if (p->failed)
        cli_error("%s: nothing was removed", p->store);
    else if (p->named_count > 0)
        qsort(p->named, p->named_count, sizeof *p->named, compare_names);
    return p->failed ? -1 : 0;
}

/* ---- folders ---- */

struct entries {
    char **items;
    size_t count, capacity;
};

static void free_entries(struct entries *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->items[i]);
    free(e->items);
}

/* Names in a folder, less . and .. . 0, or -1 with errno. */
static int read_entries(int folder, struct entries *e)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    int error;

    if (!dir) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    while ((errno = 0, entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        e->items = cli_grow(e->items, &e->capacity, e->count, sizeof *e->items);
        e->items[e->count++] = text_copy(entry->d_name, strlen(entry->d_name));
    }
    error = errno;
    closedir(dir);
    if (e->count > 0)
        qsort(e->items, e->count, sizeof *e->items, compare_names);
    errno = error;
    return error != 0 ? -1 : 0;
}

static bool is_old(const struct prune *p, const struct stat *status)
{
    return status->st_mtim.tv_sec < p->oldest_s ||
           (status->st_mtim.tv_sec == p->oldest_s && status->st_mtim.tv_nsec < p->oldest_ns);
}

static void say(struct prune *p, const char *name, const char *end)
{
    struct text_buffer shown = {0};

    if (p->quiet)
        return;
    text_display(name, strlen(name), &shown);
    output_printf(&p->out, "%s%s\n", shown.data, end);
    text_free(&shown);
}

/* Whether an entry is there. What cannot be told of it is said. */
static bool look_at(struct prune *p, int folder, const char *base, const char *name,
                    struct stat *status)
{
    if (fstatat(folder, base, status, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    if (errno != ENOENT)
        complain(p, name, strerror(errno));
    return false;
}

/* Returns whether it is gone, or would be, and nothing came for it. */
static bool prune_file(struct prune *p, int folder, const char *base, const char *name)
{
    struct stat status;

    if (is_named(p, name) || !look_at(p, folder, base, name, &status) || !S_ISREG(status.st_mode) ||
        !is_old(p, &status))
        return false;
    if (!p->dry_run && unlinkat(folder, base, 0) != 0) {
        if (errno != ENOENT)
            complain(p, name, strerror(errno));
        return errno == ENOENT;
    }
    p->files++;
    p->bytes += (uint64_t)status.st_size;
    say(p, name, "");
    return !is_replaced(p, name); /* in its folder then is what takes its place */
}

static bool prune_folder(struct prune *p, int above, const char *base, const char *name,
                         unsigned depth);

/* What is no capture's is not the store's, and stays. */
static bool is_foreign(const char *name, unsigned depth, const char *base)
{
    return depth == 1 && strcmp(name, "captures") == 0 && !capture_id_is_valid(base);
}

/* Returns how many entries are left. */
static size_t prune_entries(struct prune *p, int folder, const struct entries *e, const char *name,
                            unsigned depth)
{
    struct text_buffer path = {0};
    size_t left = 0;

    for (size_t i = 0; i < e->count; i++) {
        struct stat status;
        bool gone = false;

        path.size = 0;
        text_printf(&path, "%s/%s", name, e->items[i]);
        if (!look_at(p, folder, e->items[i], path.data, &status))
            gone = errno == ENOENT;
        else if (is_foreign(name, depth, e->items[i]))
            gone = false;
        else if (S_ISDIR(status.st_mode) && depth < DEPTH_MAX)
            gone = prune_folder(p, folder, e->items[i], path.data, depth + 1);
        else if (S_ISREG(status.st_mode))
            gone = prune_file(p, folder, e->items[i], path.data);
        left += !gone;
    }
    text_free(&path);
    return left;
}

/* Returns whether the folder itself is gone, or would be. A young one may be about to get a file. */
static bool prune_folder(struct prune *p, int above, const char *base, const char *name,
                         unsigned depth)
{
    int folder = openat(above, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct entries e = {0};
    struct stat status;
    size_t left = 1;

    if (folder < 0 || fstat(folder, &status) != 0 || read_entries(folder, &e) != 0)
        complain(p, name, strerror(errno));
    else
        left = prune_entries(p, folder, &e, name, depth);
    free_entries(&e);
    if (folder >= 0)
        close(folder);
    if (left > 0 || depth == 1 || !is_old(p, &status))
        return false;
    if (!p->dry_run && unlinkat(above, base, AT_REMOVEDIR) != 0) {
        if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT) /* something came into it */
            complain(p, name, strerror(errno));
        return false;
    }
    say(p, name, "/");
    return true;
}

/* ---- the store ---- */

/* Manifests behind links are not seen, so what they name would go. 0, or -1 after an error message. */
static int refuse_links(struct prune *p, int store)
{
    int captures = openat(store, "captures", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct entries e = {0};
    struct text_buffer path = {0};

    if (captures < 0) {
        cli_error("%s/captures: %s; nothing is removed from what is no store", p->store,
                  errno == ENOTDIR || errno == ELOOP ? "not a folder" : strerror(errno));
        return -1;
    }
    if (read_entries(captures, &e) != 0)
        complain(p, "captures", strerror(errno));
    for (size_t i = 0; i < e.count; i++) {
        struct stat status;

        path.size = 0;
        text_printf(&path, "captures/%s", e.items[i]);
        if (look_at(p, captures, e.items[i], path.data, &status) && S_ISLNK(status.st_mode))
            complain(p, path.data, "a link; what it leads to is not known, so nothing is removed");
    }
    text_free(&path);
    free_entries(&e);
    close(captures);
    return p->failed ? -1 : 0;
}

static void prune_top(struct prune *p, int store, const char *name)
{
    struct stat status;

    if (!look_at(p, store, name, name, &status))
        return;
    if (S_ISDIR(status.st_mode))
        prune_folder(p, store, name, name, 1);
    else
        complain(p, name, "not a folder");
}

static void set_oldest(struct prune *p, uint64_t older_than_ns)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    p->oldest_s = (int64_t)now.tv_sec - (int64_t)(older_than_ns / 1000000000);
    p->oldest_ns = now.tv_nsec - (long)(older_than_ns % 1000000000);
    if (p->oldest_ns < 0) {
        p->oldest_s--;
        p->oldest_ns += 1000000000;
    }
}

/* Merges pieces, and reads what manifests name since. 0, or -1 when that may not be known. */
static int merge(struct prune *p, const struct sym_archive *a)
{
    struct merge_options options = {.store = p->store,
                                    .archive = a,
                                    .oldest_s = p->oldest_s,
                                    .oldest_ns = p->oldest_ns,
                                    .dry_run = p->dry_run,
                                    .out = p->quiet ? NULL : &p->out};

    p->merge = merge_pieces(&options);
    if (read_manifests(p, a) < 0)
        return -1;
    p->failed |= !p->merge || merge_failed(p->merge);
    return 0;
}

static void summarize(struct prune *p)
{
    struct text_buffer line = {0};

    if (p->quiet)
        return;
    text_counted(&line, p->files, "file", "files");
    text_printf(&line, ", ");
    text_bytes(&line, p->bytes);
    output_printf(&p->out, "%s%s\n", line.data, p->dry_run ? " would be removed" : " removed");
    text_free(&line);
}

static void prune_store(struct prune *p, int store)
{
    prune_top(p, store, ".build-id");
    prune_top(p, store, "captures");
    summarize(p);
}

int pack_prune(const char *store, uint64_t older_than_ns, bool dry_run, bool quiet)
{
    struct prune p = {.store = store, .dry_run = dry_run, .quiet = quiet};
    int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = -1;
    struct sym_archive *a;

    if (fd < 0) {
        cli_error("%s: %s", store, errno == ENOTDIR ? "not a folder" : strerror(errno));
        return -1;
    }
    set_oldest(&p,
               older_than_ns); /* before manifests are read: what is written meanwhile is young */
    a = refuse_links(&p, fd) == 0 ? archive_open(store) : NULL;
    if (a && read_manifests(&p, a) == 0 && output_open(&p.out, NULL, false) == 0) {
        if (merge(&p, a) == 0)
            prune_store(&p, fd);
        rc = archive_told(&p.out) < 0 || p.failed ? -1 : 0;
    }
    sym_archive_free(a);
    close(fd);
    forget_names(&p);
    free(p.named);
    merge_free(p.merge);
    return rc;
}
