/* SPDX-License-Identifier: MIT */
/*
 * A store as a folder. Files are written beside where they are to be, synced, and renamed, and so are the folders'
 * entries: after a crash, and for whoever else packs or reads at the same time, a file is there whole or not at all.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive_name.h"
#include "cli.h"
#include "output.h"
#include "store_private.h"
#include "temporary.h"

struct store_folder {
    char *path;
    mode_t mask;       /* of modes; the owner is never masked out */
    bool masked_owner; /* but was */
};

static int fail(const char *path, const char *what)
{
    cli_error("%s: %s: %s", path, what, strerror(errno));
    return -1;
}

/* The path of a name, malloc'ed. */
static char *path_of(const struct store_folder *f, const char *name)
{
    struct text_buffer path = {0};

    text_printf(&path, "%s%s%s", f->path, *name ? "/" : "", name);
    return path.data;
}

/* A folder's entries are on the disk. Some file systems have nothing to sync there and say so. */
static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? -1 : fsync(fd);

    if (rc < 0 && fd >= 0 && (errno == EINVAL || errno == EROFS))
        rc = 0;
    if (rc < 0)
        fail(path, "sync failed");
    if (fd >= 0)
        close(fd);
    return rc;
}

/* A folder and its entry in the one above. Another pack may make it at the same time. */
static int make_folder(const struct store_folder *f, char *path)
{
    char *slash;
    int rc;

    if (mkdir(path, 0777) != 0)
        return errno == EEXIST ? 0 : fail(path, "making the folder failed");
    /* Not without need: it would take the set-group-id bit away, which a shared store passes on. */
    if (f->masked_owner && chmod(path, 0777 & ~f->mask) != 0)
        return fail(path, "setting its mode failed");
    slash = strrchr(path, '/');
    if (!slash || slash == path)
        return sync_folder(slash ? "/" : ".");
    *slash = '\0';
    rc = sync_folder(path);
    *slash = '/';
    return rc;
}

/* The folders that a name is in, made where there is none if `make`. Readers do not leave the store: what is behind a
 * link, they do not see, and whoever made it may not have meant us to write there. */
static int walk_folders(const struct store_folder *f, const char *name, bool make)
{
    char *path = path_of(f, name);
    int rc = 0;

    for (char *at = path + strlen(f->path) + 1; rc == 0 && (at = strchr(at, '/')) != NULL; at++) {
        struct stat status;

        *at = '\0';
        if (lstat(path, &status) != 0) {
            rc = make ? make_folder(f, path) : 0;
        } else if (S_ISLNK(status.st_mode)) {
            cli_error("%s: a link, where the store has a folder", path);
            rc = -1;
        }
        *at = '/';
    }
    free(path);
    return rc;
}

/* ---- the folder ---- */

/* The folder of captures comes first: it makes the folder a store, in which --prune may remove files. A folder of
 * debug files by build id that somebody else filled is to become none. */
static int make_captures(const struct store_folder *f)
{
    char *captures = path_of(f, "captures"), *build_ids = path_of(f, ".build-id");
    int rc = 0;

    if (access(captures, F_OK) != 0 && access(build_ids, F_OK) == 0) {
        cli_error("%s: has a folder .build-id that no pack made: a store of its own is needed",
                  f->path);
        rc = -1;
    } else {
        rc = make_folder(f, captures);
    }
    free(captures);
    free(build_ids);
    return rc;
}

static int open_root(struct store_folder *f)
{
    struct stat status;

    if (stat(f->path, &status) != 0) {
        if (errno != ENOENT)
            return fail(f->path, "open failed");
        if (archive_name_misleads(f->path)) {
            cli_error("%s: would become a folder (" ARCHIVE_NAME_RULE ")", f->path);
            return -1;
        }
        return make_folder(f, f->path) < 0 ? -1 : make_captures(f);
    }
    if (S_ISDIR(status.st_mode))
        return make_captures(f);
    cli_error("%s: is there and is no folder (" ARCHIVE_NAME_RULE ")", f->path);
    return -1;
}

struct store_folder *store_folder_open(const char *path)
{
    struct store_folder *f = cli_zeroed(1, sizeof *f);
    size_t size = strlen(path);

    f->mask = umask(0);
    umask(f->mask);
    f->masked_owner = (f->mask & 0700) != 0;
    f->mask &= ~(mode_t)0700;
    while (size > 1 && path[size - 1] == '/')
        size--;
    f->path = text_copy(path, size);
    if (open_root(f) == 0)
        return f;
    store_folder_free(f);
    return NULL;
}

void store_folder_free(struct store_folder *f)
{
    if (!f)
        return;
    free(f->path);
    free(f);
}

const char *store_folder_path(const struct store_folder *f)
{
    return f->path;
}

/* ---- what is there ---- */

/* Nothing but a regular file is a file of the store; what else is in the way is replaced. */
int store_folder_size(struct store_folder *f, const char *name, uint64_t *size_bytes)
{
    struct stat status;
    char *path;
    int rc;

    if (walk_folders(f, name, false) < 0)
        return -1;
    path = path_of(f, name);
    rc = lstat(path, &status);
    if (rc != 0 && errno != ENOENT)
        rc = fail(path, "open failed");
    else
        rc = rc == 0 && S_ISREG(status.st_mode);
    if (rc > 0)
        *size_bytes = (uint64_t)status.st_size;
    free(path);
    return rc;
}

bool store_folder_touch(struct store_folder *f, const char *name)
{
    char *path = path_of(f, name);
    bool done = utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0;

    free(path);
    return done;
}

int store_folder_read(struct store_folder *f, const char *name, struct stored *out)
{
    struct stat status;
    char *path;
    int fd, rc = 0;

    if (walk_folders(f, name, false) < 0)
        return -1;
    path = path_of(f, name);
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        if (errno != ENOENT && errno != ELOOP)
            rc = fail(path, "open failed");
    } else if (S_ISREG(status.st_mode)) {
        struct store_source source = {
            .size_bytes = (uint64_t)status.st_size, .fd = fd, .path = path};

        rc = store_hash(&source, out->sha256) < 0 ? -1 : 1;
        out->size_bytes = source.size_bytes;
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

int store_folder_list(struct store_folder *f, const char *folder, struct store_names *out)
{
    char *path = path_of(f, folder);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int rc = 0;

    while (dir && (errno = 0, entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            store_names_add(out, entry->d_name, strlen(entry->d_name));
    if (errno != 0 && errno != ENOENT)
        rc = fail(path, "reading the folder failed");
    if (dir)
        closedir(dir);
    free(path);
    return rc;
}

/* ---- writing ---- */

struct writing {
    int fd;
    const char *path;
    struct pack_hash hash;
};

static int write_bytes(void *user, const void *data, size_t size_bytes)
{
    struct writing *w = user;
    uint64_t written = 0;

    pack_hash_add(&w->hash, data, size_bytes);
    errno = output_write_all(w->fd, data, size_bytes, &written);
    return errno != 0 ? fail(w->path, "write failed") : 0;
}

/* Everything up to the rename. */
static int fill(const struct store_folder *f, struct writing *w, const struct store_source *source)
{
    int rc = store_read(source, write_bytes, w);

    /* File systems without modes refuse this; the file is then as they make it. */
    if (rc == 0 && fchmod(w->fd, 0666 & ~f->mask) != 0)
        errno = 0;
    if (rc == 0 && fsync(w->fd) != 0)
        rc = fail(w->path, "write failed");
    if (close(w->fd) != 0 && rc == 0 && errno != EINTR)
        rc = fail(w->path, "write failed");
    return rc;
}

int store_folder_write(struct store_folder *f, const char *name, const struct store_source *source,
                       char sha256[PACK_HASH_SIZE])
{
    char *path = path_of(f, name), *slash = strrchr(path, '/');
    struct writing w = {.path = path};
    struct temporary temporary;
    struct text_buffer pattern = {0};
    int rc;

    if (walk_folders(f, name, true) < 0) {
        free(path);
        return -1;
    }
    text_printf(&pattern, "%.*s/.tmp-%ld-XXXXXX", (int)(slash - path), path, (long)getpid());
    pack_hash_begin(&w.hash);
    w.fd = temporary_make(&temporary, pattern.data);
    rc = w.fd < 0 ? fail(path, "temporary file beside it failed") : fill(f, &w, source);
    if (rc == 0 && rename(temporary.path, path) != 0)
        rc = fail(path, "rename failed");
    if (rc < 0 && w.fd >= 0)
        unlink(temporary.path);
    temporary_forget(&temporary);
    *slash = '\0';
    if (rc == 0)
        rc = sync_folder(path);
    pack_hash_end(&w.hash, sha256);
    free(path);
    return rc;
}
