/* SPDX-License-Identifier: MIT */
/*
 * Opening what a capture names. Paths come from captures, so whatever is at the end of them must
 * not hang or harm us: it is looked at before it is opened.
 */
#include "openfile.h"

#include "strtab.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static enum sym_miss miss_of_errno(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG ? SYM_MISS_NO_FILE
                                                                        : SYM_MISS_UNREADABLE;
}

int symint_shortage(int error)
{
    return error == ENOMEM                      ? SYM_ERR_NOMEM
           : error == EMFILE || error == ENFILE ? SYM_ERR_OPEN_FILES
                                                : 0;
}

bool symint_is_shortage(int rc)
{
    return rc == SYM_ERR_NOMEM || rc == SYM_ERR_OPEN_FILES;
}

/* ---- inside a root, by hand ---- */

#define MAX_FOLDERS 64 /* a path may be this deep */
#define MAX_LINKS 40   /* as the kernel allows */
#define MAX_REST 16384 /* bytes of path and links that are still to be walked */

/* The folders from the root down to where the walk is. */
struct walk {
    int folders[MAX_FOLDERS]; /* the root, which is the caller's, first */
    int depth;
    int links;
    char rest[MAX_REST];
};

static void leave_folders(struct walk *w, int depth)
{
    while (w->depth > depth)
        close(w->folders[--w->depth]);
}

static int give_up(int error)
{
    errno = error;
    return -1;
}

/* Puts the target of a link in front of the rest. */
static int follow_link(struct walk *w, int link, size_t at)
{
    char text[MAX_REST];
    ssize_t n = readlinkat(link, "", text, sizeof(text));
    size_t left = strlen(w->rest + at);
    if (n < 0)
        return -1;
    if (++w->links > MAX_LINKS)
        return give_up(ELOOP);
    if ((size_t)n + left + 2 > sizeof(w->rest))
        return give_up(ENAMETOOLONG);
    /* What is left begins with a slash or is nothing. */
    memmove(w->rest + n, w->rest + at, left + 1);
    memcpy(w->rest, text, (size_t)n);
    if (n > 0 && text[0] == '/') /* the root's, not ours */
        leave_folders(w, 1);
    return 0;
}

/* One step; *at is where the rest goes on. A handle when the path ends there, -2 to go on, -1. */
static int step(struct walk *w, size_t *at)
{
    char name[NAME_MAX + 1];
    struct stat st;
    *at += strspn(w->rest + *at, "/");
    size_t size = strcspn(w->rest + *at, "/");
    int top = w->folders[w->depth - 1];
    if (size == 0)
        return openat(top, ".", O_PATH | O_CLOEXEC);
    if (size > NAME_MAX)
        return give_up(ENAMETOOLONG);
    memcpy(name, w->rest + *at, size);
    name[size] = '\0';
    *at += size;
    if (strcmp(name, ".") == 0)
        return -2;
    if (strcmp(name, "..") == 0) {
        leave_folders(w, w->depth > 1 ? w->depth - 1 : 1);
        return -2;
    }
    int fd = openat(top, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return fd < 0 ? -1 : (close(fd), -1);
    if (S_ISLNK(st.st_mode)) {
        int rc = follow_link(w, fd, *at);
        int error = errno;
        close(fd);
        *at = 0;
        return rc == 0 ? -2 : give_up(error);
    }
    if (w->rest[*at] == '\0')
        return fd;
    if (w->depth == MAX_FOLDERS || !S_ISDIR(st.st_mode)) {
        close(fd);
        return give_up(S_ISDIR(st.st_mode) ? ENAMETOOLONG : ENOTDIR);
    }
    w->folders[w->depth++] = fd;
    return -2;
}

/* What openat2 does, for systems without it: links stay inside the root, `..` above it too. */
static int walk_inside(int root, const char *path)
{
    struct walk w = {.folders = {root}, .depth = 1};
    size_t at = 0;
    int fd = -2;
    if (strlen(path) >= sizeof(w.rest))
        return give_up(ENAMETOOLONG);
    memcpy(w.rest, path, strlen(path) + 1);
    while (fd == -2)
        fd = step(&w, &at);
    int error = errno;
    leave_folders(&w, 1);
    errno = error;
    return fd;
}

int symint_open_inside(int root, const char *path, bool by_hand)
{
#ifdef SYS_openat2
    /* In a container's root an absolute symbolic link means the container's files, not ours. */
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    for (int tries = 0; tries < 8 && !by_hand; tries++) {
        int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd >= 0)
            return fd;
        if (errno == ENOSYS || errno == EPERM)
            break;           /* an old kernel or a sandbox */
        if (errno != EAGAIN) /* that is: somebody renames there */
            return -1;
    }
#else
    (void)by_hand;
#endif
    return walk_inside(root, path);
}

/* ---- opening ---- */

/* A handle that reads nothing and disturbs nothing, not even a tape drive. */
static int open_path(int root, const char *path)
{
    return root < 0 ? open(path, O_PATH | O_CLOEXEC) : symint_open_inside(root, path, false);
}

/* The file behind a path handle, opened for reading. The name is not walked again, so nobody can
 * put something else there meanwhile. */
static int reopen(int handle)
{
    char name[40];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", handle);
    return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Whether a file is one of the kernel's own, as in /proc and /sys: these say that they are regular,
 * but reading some takes what others wait for (kmsg, trace_pipe) or what others keep to themselves
 * (mem, kcore). A link in /proc leads to the file behind it, which counts. */
static bool is_kernels_own(int handle)
{
    static const uint32_t kinds[] = {PROC_SUPER_MAGIC,    SYSFS_MAGIC,      DEBUGFS_MAGIC,
                                     TRACEFS_MAGIC,       SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,
                                     CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,     PSTOREFS_MAGIC,
                                     EFIVARFS_MAGIC,      SELINUX_MAGIC,    SMACK_MAGIC,
                                     BINFMTFS_MAGIC};
    struct statfs fs;
    if (fstatfs(handle, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if ((uint32_t)fs.f_type == kinds[i])
            return true;
    return false;
}

/* The file of a path in a root (below 0: ours), if it is a regular one, and the kernel's own only
 * where these are asked for. */
static int open_in(int root, const char *path, bool system, int *fd, enum sym_miss *miss,
                   int *error)
{
    struct stat st;
    int handle = open_path(root, path);
    *fd = -1;
    *error = 0;
    *miss = SYM_MISS_NONE;
    if (handle < 0 || fstat(handle, &st) != 0)
        goto failed;
    if (!S_ISREG(st.st_mode) || (!system && is_kernels_own(handle))) {
        *miss = SYM_MISS_NOT_REGULAR;
        goto done;
    }
    *fd = reopen(handle);
    if (*fd < 0 && errno == ENOENT && root < 0) {
        /* No /proc. What was a regular file a moment ago may be anything by now: look again. */
        struct stat now;
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (*fd >= 0 && (fstat(*fd, &now) != 0 || !S_ISREG(now.st_mode))) {
            close(*fd);
            *fd = -1;
            *miss = SYM_MISS_NOT_REGULAR;
            goto done;
        }
    }
    if (*fd >= 0)
        goto done;
failed:
    *error = errno;
    *miss = miss_of_errno(*error);
done:
    if (handle >= 0)
        close(handle);
    return symint_shortage(*error);
}

int symint_open_regular(const char *sysroot, const char *path, int *fd, enum sym_miss *miss,
                        int *error)
{
    if (sysroot == NULL || strcmp(sysroot, "/") == 0)
        return open_in(-1, path, false, fd, miss, error);
    int root = open(sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        *fd = -1;
        *error = errno;
        *miss = miss_of_errno(*error);
        return symint_shortage(*error);
    }
    int rc = open_in(root, path, false, fd, miss, error);
    close(root);
    return rc;
}

int symint_open_regular_in(int root, const char *path, int *fd, enum sym_miss *miss, int *error)
{
    return open_in(root, path, false, fd, miss, error);
}

int symint_open_system(const char *path, int *fd, enum sym_miss *miss, int *error)
{
    return open_in(-1, path, true, fd, miss, error);
}

ssize_t symint_read_link_in(int root, const char *path, char *target, size_t room)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    char folder[PATH_MAX];
    size_t size = (size_t)(name - path);
    if (size + 2 > sizeof(folder))
        return -1;
    memcpy(folder, path, size);
    memcpy(folder + size, ".", 2);
    int fd = root < 0 ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)
                      : symint_open_inside(root, folder, false);
    ssize_t n = fd < 0 ? -1 : readlinkat(fd, name, target, room);
    if (fd >= 0)
        close(fd);
    if (n >= (ssize_t)room)
        return -1;
    target[n > 0 ? n : 0] = '\0';
    return n;
}

#define LARGE ((size_t)8 * 1024 * 1024)

int symint_read_all(int fd, size_t limit, char **data, size_t *size)
{
    struct stat st;
    size_t capacity = (size_t)64 * 1024;
    size_t used = 0;
    *data = NULL;
    *size = 0;
    /* Files in /proc say 0; others may have grown since. */
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        if ((uint64_t)st.st_size > limit)
            return SYM_ERR_LIMIT;
        capacity = (size_t)st.st_size + 2;
    }
    char *buffer = symint_table_alloc(capacity, 1);
    if (buffer == NULL)
        return SYM_ERR_NOMEM;
    for (;;) {
        if (used + 1 == capacity) {
            /* A file that says 0 and is not small (kallsyms) goes straight to huge pages. */
            size_t more = capacity < LARGE ? LARGE : capacity * 2;
            char *grown = capacity <= limit ? symint_table_alloc(more, 1) : NULL;
            if (grown != NULL)
                memcpy(grown, buffer, used);
            free(buffer);
            if (grown == NULL)
                return capacity <= limit ? SYM_ERR_NOMEM : SYM_ERR_LIMIT;
            buffer = grown;
            capacity = more;
        }
        ssize_t n = read(fd, buffer + used, capacity - used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int error = errno;
            free(buffer);
            errno = error;
            return SYM_ERR_IO;
        }
        if (n == 0)
            break;
        used += (size_t)n;
    }
    buffer[used] = '\0';
    *data = buffer;
    *size = used;
    return 0;
}

/* ---- temporary files ---- */

const char *symint_temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] != '\0' ? folder : "/tmp";
}

int symint_temporary_file(void)
{
    const char *folder = symint_temporary_folder();
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    int n = snprintf(path, sizeof(path), "%s/spooltools-XXXXXX", folder);
    if (n < 0 || n >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}
