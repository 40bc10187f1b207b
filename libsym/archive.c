/* SPDX-License-Identifier: MIT */
/* Symbol archives: a folder and a tar file behind the same functions. Nothing leads out of either. */
#include "archive.h"

#include "openfile.h"
#include "strtab.h"
#include "tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_IN_MEMORY \
    ((uint64_t)64 * 1024 * 1024) /* of a file out of a tar file; a larger one is on disk */

struct sym_archive {
    char *path;             /* NULL: nothing was opened yet */
    int folder;             /* a handle; -1: it is a tar file */
    struct symint_tar *tar; /* NULL: it is a folder */
    char error[640];
};

/* ---- opening ---- */

/* What the path leads to, for reading; a FIFO or device is not touched. 0 with *folder or *file. */
static int open_either(const char *path, int *folder, int *file, char *why, size_t room)
{
    enum sym_miss miss;
    int error = 0;
    *file = -1;
    *folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder >= 0)
        return 0;
    int folder_error = errno;
    int rc = symint_open_regular(NULL, path, file, &miss, &error);
    if (rc == 0 && *file >= 0)
        return 0;
    if (miss == SYM_MISS_NOT_REGULAR && folder_error != ENOTDIR) { /* it is a folder */
        miss = SYM_MISS_UNREADABLE;
        error = folder_error;
    }
    if (rc == 0)
        rc = miss == SYM_MISS_NOT_REGULAR ? SYM_ERR_FORMAT
             : miss == SYM_MISS_NO_FILE   ? SYM_ERR_NOT_FOUND
                                          : SYM_ERR_IO;
    snprintf(why, room, "%s",
             rc == SYM_ERR_FORMAT ? "neither a folder nor a tar file" : strerror(error));
    return rc;
}

struct sym_archive *sym_archive_new(void)
{
    struct sym_archive *a = calloc(1, sizeof(*a));
    if (a != NULL)
        a->folder = -1;
    return a;
}

static int fail(struct sym_archive *a, int rc, const char *path, const char *why)
{
    if (a->error[0] == '\0')
        snprintf(a->error, sizeof(a->error), "%.200s: %s", path,
                 symint_is_shortage(rc) ? sym_error_text(rc) : why);
    return rc;
}

int sym_archive_open(struct sym_archive *a, const char *path)
{
    char why[400] = "";
    int file = -1;
    if (a->path != NULL)
        return fail(a, SYM_ERR_MISUSE, path, "the archive was opened before");
    a->path = strdup(path);
    int rc =
        a->path == NULL ? SYM_ERR_NOMEM : open_either(path, &a->folder, &file, why, sizeof(why));
    if (rc == 0 && file >= 0)
        rc = symint_tar_open(file, &a->tar, why, sizeof(why));
    return rc == 0 ? 0 : fail(a, rc, path, why);
}

const char *sym_archive_error(const struct sym_archive *a)
{
    return a->error[0] != '\0' ? a->error : sym_error_text(0);
}

static bool is_open(const struct sym_archive *a)
{
    return a->folder >= 0 || a->tar != NULL;
}

void sym_archive_free(struct sym_archive *a)
{
    if (a == NULL)
        return;
    symint_tar_free(a->tar);
    if (a->folder >= 0)
        close(a->folder);
    free(a->path);
    free(a);
}

const char *sym_archive_fault(const struct sym_archive *a)
{
    return a->tar != NULL ? a->tar->fault : "";
}

const char *symint_archive_path(const struct sym_archive *a)
{
    return a->path;
}

/* ---- files ---- */

/* Copies bytes to the beginning of another file. 0, or -1 with errno. */
static int copy_bytes(int from, uint64_t offset, uint64_t size, int to)
{
    char bytes[65536];
    for (uint64_t done = 0; done < size;) {
        size_t part = size - done < sizeof(bytes) ? (size_t)(size - done) : sizeof(bytes);
        ssize_t n = pread(from, bytes, part, (off_t)(offset + done));
        if (n == 0) /* the file was cut since */
            errno = EIO;
        if (n > 0)
            n = pwrite(to, bytes, (size_t)n, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        done += (uint64_t)n;
    }
    return 0;
}

/* A file of its own with the bytes of a member. -1 with errno. */
static int extract(const struct symint_tar *t, const struct symint_tar_member *m)
{
    int fd = m->size_bytes <= MOST_IN_MEMORY ? memfd_create("spooltools", MFD_CLOEXEC) : -1;
    if (fd < 0)
        fd = symint_temporary_file();
    if (fd < 0)
        return -1;
    /* Where there is no build id the time of change tells one build from another. */
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = m->mtime_s, .tv_nsec = (long)m->mtime_ns}};
    if (copy_bytes(symint_tar_data(t), m->offset, m->size_bytes, fd) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    (void)!futimens(fd, times);
    return fd;
}

static int open_member(const struct symint_tar *t, const char *name, int *fd, enum sym_miss *miss,
                       int *error)
{
    const struct symint_tar_member *m;
    *fd = -1;
    *miss = SYM_MISS_NONE;
    *error = symint_tar_find(&t->index, name, false, &m);
    if (*error != 0) {
        *miss = *error == ELOOP ? SYM_MISS_UNREADABLE : SYM_MISS_NO_FILE;
    } else if (m == NULL) {
        *miss = SYM_MISS_NOT_REGULAR;
    } else if ((*fd = extract(t, m)) < 0) {
        *error = errno;
        *miss = SYM_MISS_UNREADABLE;
    }
    return symint_shortage(*error);
}

int symint_archive_open_regular(const struct sym_archive *a, const char *name, int *fd,
                                enum sym_miss *miss, int *error)
{
    return a->tar != NULL ? open_member(a->tar, name, fd, miss, error)
                          : symint_open_regular_in(a->folder, name, fd, miss, error);
}

int symint_root_open_regular(struct symint_root root, const char *path, int *fd,
                             enum sym_miss *miss, int *error)
{
    return root.archive != NULL ? symint_archive_open_regular(root.archive, path, fd, miss, error)
                                : symint_open_regular(root.path, path, fd, miss, error);
}

int sym_archive_open_file(const struct sym_archive *a, const char *name, int *fd)
{
    enum sym_miss miss;
    int error;
    *fd = -1;
    if (!is_open(a))
        return SYM_ERR_MISUSE;
    int rc = symint_archive_open_regular(a, name, fd, &miss, &error);
    errno = error;
    if (rc != 0 || *fd >= 0)
        return rc;
    return miss == SYM_MISS_NO_FILE                         ? SYM_ERR_NOT_FOUND
           : miss == SYM_MISS_NOT_REGULAR || error == ELOOP ? SYM_ERR_FORMAT
                                                            : SYM_ERR_IO;
}

char *symint_archive_read_link(const struct sym_archive *a, const char *name)
{
    char target[PATH_MAX];
    if (a->tar != NULL) {
        const struct symint_tar_member *m;
        bool is_link = symint_tar_find(&a->tar->index, name, true, &m) == 0 && m != NULL &&
                       m->kind == SYMINT_TAR_LINK;
        return is_link ? strdup(m->link) : NULL;
    }
    ssize_t n = symint_read_link_in(a->folder, name, target, sizeof(target));
    return n > 0 ? strdup(target) : NULL;
}

/* ---- listing ---- */

struct listed {
    char *name;
    bool is_folder;
};

struct listing {
    struct listed *items;
    size_t count;
    size_t capacity;
};

static int compare_listed(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

static int add_listed(struct listing *l, const char *name, bool is_folder)
{
    struct listed *items = symint_grow(l->items, l->count, &l->capacity, sizeof(*items), 32);
    if (items == NULL)
        return SYM_ERR_NOMEM;
    l->items = items;
    char *copy = strdup(name);
    if (copy == NULL)
        return SYM_ERR_NOMEM;
    l->items[l->count++] = (struct listed){copy, is_folder};
    return 0;
}

/* Adds what a folder has. One that is gone by now is none of it. */
static int add_entry(struct listing *l, DIR *d, const struct dirent *e)
{
    struct stat st;
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return 0;
    if (e->d_type != DT_UNKNOWN)
        return add_listed(l, e->d_name, e->d_type == DT_DIR);
    if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : SYM_ERR_IO;
    return add_listed(l, e->d_name, S_ISDIR(st.st_mode));
}

/* 0 with *d NULL: there is no such folder. */
static int open_folder(int root, const char *name, DIR **d)
{
    *d = NULL;
    int handle = symint_open_inside(root, name[0] != '\0' ? name : ".", false);
    int fd = handle >= 0 ? openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int error = errno;
    if (handle >= 0)
        close(handle);
    if (fd >= 0 && (*d = fdopendir(fd)) == NULL) {
        error = errno;
        close(fd);
    }
    if (*d != NULL || error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG ||
        error == ELOOP)
        return 0;
    errno = error;
    return symint_shortage(error) != 0 ? symint_shortage(error) : SYM_ERR_IO;
}

static int read_folder(int root, const char *name, struct listing *l)
{
    const struct dirent *e;
    DIR *d;
    int rc = open_folder(root, name, &d);
    if (rc != 0 || d == NULL)
        return rc;
    while (rc == 0 && (errno = 0, e = readdir(d)) != NULL)
        rc = add_entry(l, d, e);
    int error = errno;
    closedir(d);
    errno = error;
    return rc == 0 && error != 0 && e == NULL ? SYM_ERR_IO : rc;
}

int sym_archive_list(const struct sym_archive *a, const char *folder, sym_archive_fn *fn,
                     void *user)
{
    struct listing l = {0};
    if (!is_open(a))
        return SYM_ERR_MISUSE;
    if (a->tar != NULL)
        return symint_tar_list(&a->tar->index, folder, fn, user);
    int rc = read_folder(a->folder, folder, &l);
    int error = errno;
    if (rc == 0 && l.count > 0)
        qsort(l.items, l.count, sizeof(*l.items), compare_listed);
    for (size_t i = 0; rc == 0 && i < l.count; i++)
        rc = fn(user, l.items[i].name, l.items[i].is_folder);
    for (size_t i = 0; i < l.count; i++)
        free(l.items[i].name);
    free(l.items);
    errno = error;
    return rc;
}
