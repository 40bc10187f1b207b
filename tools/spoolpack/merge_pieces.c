/* SPDX-License-Identifier: MIT */
/*
 * The new piece is written first, then the manifests that name the old ones, one after the other: whenever that ends,
 * what manifests name is there. Nothing is removed here: the old pieces are what no manifest names then. What is young
 * is left as it is, since a pack that is going on may have looked at it; so is a manifest that is not exactly as this
 * program writes it, for something of it would be lost.
 */
#include "merge_pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "hash.h"
#include "manifests.h"
#include "piece_name.h"
#include "progress.h"
#include "store.h"

#define BUILD_ID_MAX 64
/* Of one build id at once; the next run takes more. */
#define BYTES_MAX ((uint64_t)256 << 20)

/* A piece that manifests name. */
struct named_piece {
    char *name;
    bool stays;
    size_t set; /* number + 1 of what replaces it; 0: nothing */
};

/* What replaces pieces. */
struct replacement {
    struct manifest_file files[2];
    size_t count;
};

struct merge {
    struct merge_options o;
    struct store *store;
    struct named_piece *pieces; /* by name, once settled */
    size_t count, capacity;
    struct replacement *sets;
    size_t set_count;
    bool failed; /* something could not be read, and was left as it is */
};

/* ---- files ---- */

/* What is not there, or a link, is left alone without a word. */
static void complain(struct merge *m, const char *path)
{
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO)
        return;
    cli_error("%s: %s; left as it is", path, strerror(errno));
    m->failed = true;
}

static bool is_old(const struct merge *m, const struct stat *status)
{
    return S_ISREG(status->st_mode) &&
           (status->st_mtim.tv_sec < m->o.oldest_s ||
            (status->st_mtim.tv_sec == m->o.oldest_s && status->st_mtim.tv_nsec < m->o.oldest_ns));
}

/* Reads so many bytes, or to the end. How many, or -1 with errno. */
static ssize_t read_up_to(int fd, char *data, size_t size)
{
    size_t at = 0;

    while (at < size) {
        ssize_t n = read(fd, data + at, size - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

/* The bytes of an old file, malloc'ed; NULL: it is none, or larger, or cannot be read, which is said. */
static char *read_old(struct merge *m, const char *name, uint64_t size_max, size_t *size,
                      struct stat *status)
{
    struct text_buffer path = {0};
    char *data = NULL;
    ssize_t n = 0;
    int fd;

    text_printf(&path, "%s/%s", m->o.store, name);
    *size = 0;
    fd = open(path.data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, status) != 0) {
        complain(m, path.data);
    } else if (is_old(m, status) && (uint64_t)status->st_size <= size_max) {
        *size = (size_t)status->st_size;
        data = cli_realloc(NULL, *size + 1, 1);
        n = read_up_to(fd, data, *size);
        if (n < 0)
            complain(m, path.data);
    }
    if (fd >= 0)
        close(fd);
    text_free(&path);
    if (data && n >= 0 && (size_t)n == *size)
        return data;
    free(data);
    return NULL;
}

static bool is_unchanged(struct merge *m, const char *name, const struct stat *before)
{
    struct text_buffer path = {0};
    struct stat now;
    bool same = false;

    text_printf(&path, "%s/%s", m->o.store, name);
    if (lstat(path.data, &now) != 0)
        complain(m, path.data);
    else
        same = now.st_ino == before->st_ino && now.st_size == before->st_size &&
               now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
               now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
    text_free(&path);
    return same;
}

/* ---- pieces that manifests name ---- */

static int compare_pieces(const void *a, const void *b)
{
    const struct named_piece *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* Sorts them and leaves one of each. */
static void settle(struct merge *m)
{
    size_t kept = 0;

    if (m->count > 1)
        qsort(m->pieces, m->count, sizeof *m->pieces, compare_pieces);
    for (size_t i = 0; i < m->count; i++) {
        if (kept > 0 && strcmp(m->pieces[kept - 1].name, m->pieces[i].name) == 0) {
            m->pieces[kept - 1].stays |= m->pieces[i].stays;
            free(m->pieces[i].name);
        } else {
            m->pieces[kept++] = m->pieces[i];
        }
    }
    m->count = kept;
}

/* ".build-id/xx/yyyy.syms/HASH.lines": where the part behind the last slash is; 0: it is something else. */
static size_t folder_size(const char *name)
{
    const char *slash = strrchr(name, '/');
    size_t size = slash ? (size_t)(slash - name) : 0;

    if (size < strlen(".build-id/xx/yy.syms") || strncmp(name, ".build-id/", 10) != 0 ||
        name[12] != '/' || memcmp(slash - 5, PIECE_FOLDER_END, 5) != 0 ||
        !piece_name_is_valid(slash + 1))
        return 0;
    return size + 1;
}

static void add_files(struct merge *m, const struct manifest_files *files, bool stays)
{
    for (size_t i = 0; i < files->count; i++) {
        const char *name = files->items[i].name;

        if (folder_size(name) == 0)
            continue;
        if (m->count == m->capacity) {
            settle(m); /* captures of one program name the same pieces */
            if (m->count >= m->capacity / 2) {
                m->capacity = m->capacity ? 2 * m->capacity : 256;
                m->pieces = cli_realloc(m->pieces, m->capacity, sizeof *m->pieces);
            }
        }
        m->pieces[m->count++] =
            (struct named_piece){.name = text_copy(name, strlen(name)), .stays = stays};
    }
}

/* Reads an old manifest that can be written anew without loss. False: it is none. */
static bool read_manifest(struct merge *m, const char *name, struct manifest *out,
                          struct stat *status)
{
    struct text_buffer again = {0};
    const char *why;
    size_t size, offset;
    char *text = read_old(m, name, MANIFEST_BYTES_MAX, &size, status);
    bool same = false;

    if (text && manifest_read(text, size, out, &why, &offset) == 0) {
        manifest_append(out, &again);
        same = again.size == size && memcmp(again.data, text, size) == 0;
        if (!same)
            manifest_free(out);
        text_free(&again);
    }
    free(text);
    return same;
}

static int list_pieces(void *user, const char *name, const struct manifest *manifest,
                       const char *why)
{
    struct merge *m = user;
    struct manifest own;
    struct stat status;
    bool stays = true;

    if (!manifest) {
        cli_error("%s/%s: %s", m->o.store, name, why);
        return 1;
    }
    if (read_manifest(m, name, &own, &status)) {
        stays = false;
        manifest_free(&own);
    }
    for (size_t i = 0; i < manifest->module_count; i++)
        add_files(m, &manifest->modules[i].files, stays);
    for (size_t i = 0; i < manifest->map_count; i++)
        add_files(m, &manifest->maps[i].files, true);
    add_files(m, &manifest->kernel_files, true);
    return 0;
}

static struct named_piece *find_piece(const struct merge *m, const char *name)
{
    struct named_piece key = {.name = (char *)(uintptr_t)name};

    return m->count == 0 ? NULL : bsearch(&key, m->pieces, m->count, sizeof key, compare_pieces);
}

bool merge_failed(const struct merge *m)
{
    return m->failed;
}

bool merge_replaces(const struct merge *m, const char *name)
{
    const struct named_piece *p = find_piece(m, name);

    return p && p->set > 0;
}

/* ---- merging those of a build id ---- */

/* Bytes of hex digits "xx/yyyy". 0: they are none. */
static size_t read_key(const char *hex, size_t size, uint8_t key[BUILD_ID_MAX])
{
    size_t count = 0;
    unsigned byte = 1;

    for (size_t i = 0; i < size; i++) {
        static const char digits[16] = "0123456789abcdef";
        const char *digit = i == 2 ? NULL : memchr(digits, hex[i], sizeof digits);

        if (i == 2)
            continue;
        if (!digit || count == BUILD_ID_MAX)
            return 0;
        byte = byte << 4 | (unsigned)(digit - digits);
        if (byte < 0x100)
            continue;
        key[count++] = (uint8_t)byte;
        byte = 1;
    }
    return byte == 1 ? count : 0;
}

/* Those that may be merged, and their bytes; whose are not what their name says are left alone. */
static size_t read_pieces(struct merge *m, struct named_piece *list, size_t count, size_t folder,
                          struct sym_piece *pieces, struct named_piece **whose)
{
    uint64_t left = BYTES_MAX;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        struct stat status;
        char hex[PACK_HASH_SIZE];
        size_t size;
        char *data = list[i].stays ? NULL : read_old(m, list[i].name, left, &size, &status);

        if (!data)
            continue;
        pack_hash_of(data, size, hex);
        if (memcmp(hex, list[i].name + folder, PIECE_DIGITS) != 0) {
            free(data);
            continue;
        }
        left -= size;
        whose[n] = &list[i];
        pieces[n++] = (struct sym_piece){.data = (uint8_t *)data, .size_bytes = size};
    }
    return n;
}

/* Puts a result into the store. 0, or -1 after an error message. */
static int put_result(struct merge *m, const char *folder, size_t folder_bytes, const char *level,
                      const uint8_t *data, size_t size, struct replacement *r)
{
    struct manifest_file *f = &r->files[r->count];
    struct text_buffer name = {0};
    struct stored stored;
    int rc = 0;

    if (!data)
        return 0;
    pack_hash_of(data, size, f->sha256);
    f->size_bytes = size;
    text_printf(&name, "%.*s%.*s.%s", (int)folder_bytes, folder, PIECE_DIGITS, f->sha256, level);
    f->name = name.data;
    r->count++;
    if (m->o.dry_run)
        return 0;
    rc = store_put(m->store, f->name, data, size, &stored);
    if (rc == 0 && strcmp(stored.sha256, f->sha256) != 0) /* what is there is damaged */
        rc = store_replace(m->store, f->name, data, size, false, &stored);
    return rc;
}

static void say(struct merge *m, const struct replacement *r, size_t count)
{
    struct text_buffer line = {0};

    for (size_t i = 0; m->o.out && i < r->count; i++) {
        line.size = 0;
        text_printf(&line, "%s: ", r->files[i].name);
        text_counted(&line, count, "piece", "pieces");
        output_printf(m->o.out, "%s %smerged\n", line.data, m->o.dry_run ? "would be " : "");
    }
    text_free(&line);
}

/* Takes a result that stands for more than one piece. 0, or -1 after an error message. */
static int take_result(struct merge *m, const struct sym_merged *merged, size_t number,
                       const struct sym_piece *pieces, struct named_piece *const *whose,
                       size_t count, size_t folder)
{
    struct replacement *r;
    size_t replaced = 0, members = 0;

    m->sets = cli_realloc(m->sets, m->set_count + 1, sizeof *m->sets);
    r = &m->sets[m->set_count++];
    *r = (struct replacement){0};
    if (put_result(m, whose[0]->name, folder, "lines", merged->lines, merged->lines_bytes, r) < 0 ||
        put_result(m, whose[0]->name, folder, "names", merged->names, merged->names_bytes, r) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        bool same = false;

        if (pieces[i].merged != number)
            continue;
        for (size_t k = 0; k < r->count; k++)
            same |= strcmp(r->files[k].name, whose[i]->name) == 0;
        whose[i]->set = same ? 0 : m->set_count;
        members++;
        replaced += !same;
    }
    if (replaced > 0)
        say(m, r, members);
    return 0;
}

/* Whether no link is on the way to a folder. */
static bool is_inside(struct merge *m, const char *name, size_t size)
{
    struct text_buffer path = {0};
    bool inside = true;

    text_printf(&path, "%s", m->o.store);
    for (const char *at = name, *slash; inside && (slash = memchr(at, '/', size)) != NULL;
         at = slash + 1) {
        struct stat status;

        text_printf(&path, "/%.*s", (int)(slash - at), at);
        size -= (size_t)(slash + 1 - at);
        inside = lstat(path.data, &status) == 0;
        if (!inside)
            complain(m, path.data);
        else
            inside = S_ISDIR(status.st_mode);
    }
    text_free(&path);
    return inside;
}

static int merge_folder(struct merge *m, struct named_piece *list, size_t count, size_t folder)
{
    struct sym_piece *pieces = cli_zeroed(count, sizeof *pieces);
    struct named_piece **whose = cli_zeroed(count, sizeof *whose);
    struct sym_merged *merged = cli_zeroed(count, sizeof *merged);
    uint8_t key[BUILD_ID_MAX];
    size_t key_size = read_key(list[0].name + 10, folder - 10 - strlen(".syms/"), key), n = 0,
           merged_count = 0;
    int rc = 0;

    if (key_size > 0 && is_inside(m, list[0].name, folder))
        n = read_pieces(m, list, count, folder, pieces, whose);
    if (n > 1) {
        rc = sym_pack_merge(pieces, n, key, key_size, merged, &merged_count);
        if (rc < 0)
            cli_error("%s/%.*s: %s", m->o.store, (int)folder, list[0].name, sym_error_text(rc));
    }
    for (size_t i = 0; i < merged_count; i++) {
        if (rc == 0)
            rc = take_result(m, &merged[i], i, pieces, whose, n, folder);
        free(merged[i].lines);
        free(merged[i].names);
    }
    for (size_t i = 0; i < n; i++)
        free((uint8_t *)(uintptr_t)pieces[i].data);
    free(pieces);
    free(whose);
    free(merged);
    return rc < 0 ? -1 : 0;
}

static int merge_folders(struct merge *m)
{
    int rc = 0;

    for (size_t begin = 0, end; begin < m->count && rc == 0; begin = end) {
        size_t folder = folder_size(m->pieces[begin].name);

        progress_work("merging pieces", begin, m->count);
        for (end = begin + 1; end < m->count; end++)
            if (folder_size(m->pieces[end].name) != folder ||
                memcmp(m->pieces[end].name, m->pieces[begin].name, folder) != 0)
                break;
        if (end - begin > 1)
            rc = merge_folder(m, m->pieces + begin, end - begin, folder);
    }
    return rc;
}

/* ---- manifests ---- */

static void add_file(struct manifest_files *files, const struct manifest_file *file)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->items[i].name, file->name) == 0)
            return;
    files->items = cli_realloc(files->items, files->count + 1, sizeof *files->items);
    files->items[files->count] = *file;
    files->items[files->count++].name = text_copy(file->name, strlen(file->name));
}

/* Puts results in the place of what they replace. Whether there was any. */
static bool replace_files(const struct merge *m, struct manifest_files *files)
{
    struct manifest_files before = *files;
    bool changed = false;

    for (size_t i = 0; i < before.count && !changed; i++)
        changed = merge_replaces(m, before.items[i].name);
    if (!changed)
        return false;
    *files = (struct manifest_files){0};
    for (size_t i = 0; i < before.count; i++) {
        const struct named_piece *p = find_piece(m, before.items[i].name);
        const struct replacement *r = p && p->set > 0 ? &m->sets[p->set - 1] : NULL;

        for (size_t k = 0; r && k < r->count; k++)
            add_file(files, &r->files[k]);
        if (!r)
            add_file(files, &before.items[i]);
        free(before.items[i].name);
    }
    free(before.items);
    return true;
}

static bool names_replaced(const struct merge *m, const struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->module_count; i++)
        for (size_t k = 0; k < manifest->modules[i].files.count; k++)
            if (merge_replaces(m, manifest->modules[i].files.items[k].name))
                return true;
    return false;
}

/* One that was written since names what it needs, and is left to that pack. */
static int rewrite(void *user, const char *name, const struct manifest *there, const char *why)
{
    struct merge *m = user;
    struct text_buffer text = {0};
    struct manifest own;
    struct stored stored;
    struct stat status;
    int rc = 0;

    if (!there) {
        cli_error("%s/%s: %s; left as it is", m->o.store, name, why);
        m->failed = true;
        return 0;
    }
    if (!names_replaced(m, there) || !read_manifest(m, name, &own, &status))
        return 0;
    for (size_t i = 0; i < own.module_count; i++)
        replace_files(m, &own.modules[i].files);
    manifest_append(&own, &text);
    if (is_unchanged(m, name, &status))
        rc = store_replace(m->store, name, text.data, text.size, false, &stored);
    manifest_free(&own);
    text_free(&text);
    return rc < 0;
}

/* 0, or -1 after an error message; fn returns 1 after one. */
static int each_manifest(struct merge *m, manifests_fn *fn)
{
    int rc = manifests_each(m->o.archive, NULL, fn, m);

    if (rc < 0)
        cli_error("%s/captures: %s", m->o.store, manifests_error_text(rc));
    return rc == 0 ? 0 : -1;
}

/* ---- API ---- */

void merge_free(struct merge *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++)
        free(m->pieces[i].name);
    for (size_t i = 0; i < m->set_count; i++)
        for (size_t k = 0; k < m->sets[i].count; k++)
            free(m->sets[i].files[k].name);
    free(m->pieces);
    free(m->sets);
    store_free(m->store);
    free(m);
}

struct merge *merge_pieces(const struct merge_options *options)
{
    struct merge *m = cli_zeroed(1, sizeof *m);
    int rc;

    m->o = *options;
    m->store = store_open(options->store);
    if (!m->store) {
        merge_free(m);
        return NULL;
    }
    rc = each_manifest(m, list_pieces);
    settle(m);
    if (rc == 0)
        rc = merge_folders(m);
    if (rc == 0 && m->set_count > 0 && !options->dry_run)
        rc = each_manifest(m, rewrite);
    if (rc == 0)
        return m;
    merge_free(m);
    return NULL;
}
