/* SPDX-License-Identifier: MIT */
/* The tree of modules of a kernel release: some 4,000 files in some 800 folders. */
#include "kmodule_tree.h"

#include "openfile.h"
#include "spool/sym.h"
#include "strtab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ENTRIES 200000u
#define MAX_FOLDERS 20000u
#define MAX_PATH ((size_t)4096)

struct walk {
    int root; /* -1: ours */
    char **folders;
    size_t count;
    size_t capacity;
    size_t entries;
    symint_kmodule_found_fn *found;
    void *user;
};

static int push(struct walk *w, const char *path)
{
    if (w->count >= MAX_FOLDERS)
        return 0;
    char **folders = symint_grow(w->folders, w->count, &w->capacity, sizeof(*folders), 64);
    if (folders == NULL)
        return SYM_ERR_NOMEM;
    w->folders = folders;
    char *copy = strdup(path);
    if (copy == NULL)
        return SYM_ERR_NOMEM;
    w->folders[w->count++] = copy;
    return 0;
}

/* 0 with *d NULL: it cannot be read. */
static int open_folder(const struct walk *w, const char *path, DIR **d)
{
    *d = NULL;
    int handle = w->root < 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)
                             : symint_open_inside(w->root, path, false);
    if (handle < 0)
        return symint_shortage(errno);
    int fd = openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? symint_shortage(errno) : 0;
    close(handle);
    if (fd < 0 || (*d = fdopendir(fd)) != NULL)
        return rc;
    rc = symint_shortage(errno);
    close(fd);
    return rc;
}

/* The size of a module's name in that of its file, 0: it is none. */
static size_t module_name_size(const char *file)
{
    static const char *const endings[] = {".ko", ".ko.debug"};
    size_t size = strlen(file);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t n = strlen(endings[i]);
        if (size > n && strcmp(file + size - n, endings[i]) == 0)
            return size - n;
    }
    return 0;
}

static bool is_folder(DIR *d, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int walk_folder(struct walk *w, const char *folder)
{
    const struct dirent *e;
    DIR *d;
    int rc = open_folder(w, folder, &d);
    if (d == NULL)
        return rc;
    while (rc == 0 && w->entries < MAX_ENTRIES && (e = readdir(d)) != NULL) {
        char path[MAX_PATH];
        w->entries++;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        int n = snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (n < 0 || n >= (int)sizeof(path))
            continue;
        size_t name_size = module_name_size(e->d_name);
        if (is_folder(d, e))
            rc = push(w, path);
        else if (name_size > 0)
            rc = w->found(w->user, path, path + strlen(folder) + 1, name_size);
    }
    closedir(d);
    return rc;
}

int symint_kmodule_walk(const char *root, const char *folder, symint_kmodule_found_fn *found,
                        void *user)
{
    struct walk w = {.root = -1, .found = found, .user = user};
    if (root != NULL && strcmp(root, "/") != 0) {
        w.root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (w.root < 0)
            return symint_shortage(errno);
    }
    int rc = push(&w, folder);
    for (size_t i = 0; rc == 0 && i < w.count; i++)
        rc = walk_folder(&w, w.folders[i]);
    for (size_t i = 0; i < w.count; i++)
        free(w.folders[i]);
    free(w.folders);
    if (w.root >= 0)
        close(w.root);
    return rc;
}
