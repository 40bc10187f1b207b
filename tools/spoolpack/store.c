/* SPDX-License-Identifier: MIT */
/*
 * What folders and tar files have in common: what was put already, and which files may be replaced. In a tar file a
 * name stands once, so files that may be replaced wait in memory for the end: they are small, or a process's perf map.
 */
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive_name.h"
#include "cli.h"
#include "labels.h"
#include "store_private.h"

/* Of a name that was put or looked at in this run. */
struct entry {
    struct stored stored;
    bool known;       /* stored is what is there */
    char *data;       /* tar: it is to be written at the end */
    uint64_t time;    /* the same: of that file */
    bool was_counted; /* in new_bytes */
};

struct store {
    struct store_folder *folder; /* one of the two */
    struct store_tar *tar;
    struct labels names;
    struct entry *entries; /* by label */
    size_t entry_capacity;
    uint64_t time;
    uint64_t new_bytes;
};

struct store *store_open(const char *output)
{
    struct store *s = cli_zeroed(1, sizeof *s);

    labels_init(&s->names);
    if (archive_name_is_tar(output))
        s->tar = store_tar_open(output);
    else
        s->folder = store_folder_open(output);
    if (s->tar || s->folder)
        return s;
    store_free(s);
    return NULL;
}

void store_free(struct store *s)
{
    if (!s)
        return;
    store_folder_free(s->folder);
    store_tar_free(s->tar);
    for (size_t i = 0; i < s->names.count; i++)
        free(s->entries[i].data);
    free(s->entries);
    labels_free(&s->names);
    free(s);
}

void store_set_time(struct store *s, uint64_t seconds)
{
    s->time = seconds;
}

const char *store_folder(const struct store *s)
{
    return s->folder ? store_folder_path(s->folder) : NULL;
}

uint64_t store_new_bytes(const struct store *s)
{
    return s->new_bytes;
}

/* ---- bytes ---- */

#define PIECE_BYTES ((size_t)1 << 16)

/* A file that grows meanwhile is not looked at any further; one that shrinks is an error. */
static int read_file(const struct store_source *source, char *piece, store_take_fn *take,
                     void *user)
{
    uint64_t at = 0;

    while (at < source->size_bytes) {
        uint64_t left = source->size_bytes - at;
        ssize_t n =
            pread(source->fd, piece, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            cli_error("%s: %s", source->path,
                      n < 0 ? strerror(errno) : "became shorter while it was read");
            return -1;
        }
        if (take(user, piece, (size_t)n) != 0)
            return -1;
        at += (uint64_t)n;
    }
    return 0;
}

int store_read(const struct store_source *source, store_take_fn *take, void *user)
{
    char *piece;
    int rc;

    if (source->data)
        return take(user, source->data, (size_t)source->size_bytes) != 0 ? -1 : 0;
    piece = cli_realloc(NULL, PIECE_BYTES, 1);
    rc = read_file(source, piece, take, user);
    free(piece);
    return rc;
}

static int hash_bytes(void *user, const void *data, size_t size_bytes)
{
    pack_hash_add(user, data, size_bytes);
    return 0;
}

int store_hash(const struct store_source *source, char sha256[PACK_HASH_SIZE])
{
    struct pack_hash hash;
    int rc;

    pack_hash_begin(&hash);
    rc = store_read(source, hash_bytes, &hash);
    pack_hash_end(&hash, sha256);
    return rc;
}

/* ---- names ---- */

static struct entry *find_entry(struct store *s, const char *name)
{
    uint32_t before = s->names.count, label = labels_intern(&s->names, name, strlen(name));

    s->entries = cli_grow(s->entries, &s->entry_capacity, label, sizeof *s->entries);
    if (s->names.count > before)
        s->entries[label] = (struct entry){0};
    return &s->entries[label];
}

/* Notes what is there now. */
static void set_known(struct store *s, struct entry *e, uint64_t size_bytes, struct stored *out)
{
    e->known = true;
    e->stored.size_bytes = size_bytes;
    e->stored.was_there = true;
    if (!e->was_counted)
        s->new_bytes += size_bytes;
    e->was_counted = true;
    *out = e->stored;
    out->was_there = false;
}

static int put(struct store *s, const char *name, const struct store_source *source,
               struct stored *out)
{
    struct entry *e = find_entry(s, name);
    uint64_t size_bytes;
    int rc = 0;

    if (s->tar && !e->known) {
        if (store_tar_write(s->tar, name, s->time, source, e->stored.sha256) < 0)
            return -1;
        set_known(s, e, source->size_bytes, out);
        return 0;
    }
    if (s->folder)
        rc = store_folder_size(s->folder, name, &size_bytes);
    if (rc < 0)
        return -1;
    if (s->tar ||
        (rc > 0 && size_bytes == source->size_bytes && store_folder_touch(s->folder, name)))
        return store_find(s, name, out) < 0 ? -1 : 0;
    if (store_folder_write(s->folder, name, source, e->stored.sha256) < 0)
        return -1;
    set_known(s, e, source->size_bytes, out);
    return 0;
}

int store_put(struct store *s, const char *name, const void *data, size_t size_bytes,
              struct stored *out)
{
    return put(s, name, &(struct store_source){.data = data, .size_bytes = size_bytes, .fd = -1},
               out);
}

int store_put_file(struct store *s, const char *name, int fd, const char *path, struct stored *out)
{
    off_t size = lseek(fd, 0, SEEK_END);

    if (size < 0) {
        cli_error("%s: %s", path, strerror(errno));
        return -1;
    }
    return put(s, name,
               &(struct store_source){.size_bytes = (uint64_t)size, .fd = fd, .path = path}, out);
}

int store_find(struct store *s, const char *name, struct stored *out)
{
    struct entry *e = find_entry(s, name);
    int rc = e->known;

    if (!rc && s->folder) {
        rc = store_folder_read(s->folder, name, &e->stored);
        if (rc > 0) /* young, so that a prune that goes on leaves it */
            store_folder_touch(s->folder, name);
        e->known = rc > 0;
        e->stored.was_there = true;
    }
    if (rc > 0)
        *out = e->stored;
    return rc;
}

/* Keeps it for the end. */
static void keep(struct store *s, struct entry *e, const void *data, size_t size_bytes)
{
    pack_hash_of(data, size_bytes, e->stored.sha256);
    e->data = cli_realloc(e->data, size_bytes, 1);
    memcpy(e->data, data, size_bytes);
    e->time = s->time;
}

int store_replace(struct store *s, const char *name, const void *data, size_t size_bytes,
                  bool keep_larger, struct stored *out)
{
    struct store_source source = {.data = data, .size_bytes = size_bytes, .fd = -1};
    struct entry *e = find_entry(s, name);
    uint64_t there = e->stored.size_bytes;
    int rc = e->known;

    if (s->folder)
        rc = store_folder_size(s->folder, name, &there);
    if (rc < 0)
        return -1;
    if (rc > 0 && keep_larger && there > size_bytes)
        return store_find(s, name, out) < 0 ? -1 : 0;
    if (s->tar)
        keep(s, e, data, size_bytes);
    else if (store_folder_write(s->folder, name, &source, e->stored.sha256) < 0)
        return -1;
    set_known(s, e, size_bytes, out);
    return 0;
}

/* ---- lists ---- */

void store_names_add(struct store_names *names, const char *name, size_t size)
{
    names->items = cli_realloc(names->items, names->count + 1, sizeof *names->items);
    names->items[names->count++] = text_copy(name, size);
}

void store_free_names(struct store_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct store_names){0};
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_entries(const struct store *s, const char *folder, struct store_names *out)
{
    size_t folder_size = strlen(folder);

    for (uint32_t i = 0; i < s->names.count; i++) {
        size_t size;
        const char *name = labels_text(&s->names, i, &size);

        if (s->entries[i].known && size > folder_size + 1 && name[folder_size] == '/' &&
            memcmp(name, folder, folder_size) == 0 &&
            !memchr(name + folder_size + 1, '/', size - folder_size - 1))
            store_names_add(out, name + folder_size + 1, size - folder_size - 1);
    }
}

int store_list(struct store *s, const char *folder, struct store_names *out)
{
    *out = (struct store_names){0};
    if (s->tar)
        list_entries(s, folder, out);
    else if (store_folder_list(s->folder, folder, out) < 0)
        return -1;
    if (out->count > 1)
        qsort(out->items, out->count, sizeof *out->items, compare_names);
    return 0;
}

/* ---- the end ---- */

/* Manifests come last: who reads a tar file that was cut off finds those whose files are there. */
static bool is_manifest(const char *name)
{
    const char *base = strrchr(name, '/');

    return base && strncmp(base, "/manifest-", 10) == 0;
}

static int write_kept(struct store *s, bool manifests)
{
    struct text_buffer name = {0};
    int rc = 0;

    for (uint32_t i = 0; i < s->names.count && rc == 0; i++) {
        const struct entry *e = &s->entries[i];
        struct store_source source = {
            .data = e->data, .size_bytes = e->stored.size_bytes, .fd = -1};
        char sha256[PACK_HASH_SIZE];
        size_t size;
        const char *text = labels_text(&s->names, i, &size);

        name.size = 0;
        text_append(&name, text, size);
        if (e->data && is_manifest(name.data) == manifests)
            rc = store_tar_write(s->tar, name.data, e->time, &source, sha256);
    }
    text_free(&name);
    return rc;
}

int store_finish(struct store *s)
{
    if (s->folder)
        return 0;
    if (write_kept(s, false) < 0 || write_kept(s, true) < 0)
        return -1;
    return store_tar_finish(s->tar);
}
