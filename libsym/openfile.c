/* SPDX-License-Identifier: MIT */
/*
 * Opening what a capture names. Paths come from captures, so whatever is at the end of them must
 * not hang or harm us: it is looked at before it is opened.
 */
#include "openfile.h"

#include "strtab.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static enum sym_miss miss_of_errno(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG ? SYM_MISS_NO_FILE
                                                                        : SYM_MISS_UNREADABLE;
}

/* A handle that reads nothing and disturbs nothing, not even a tape drive. */
static int open_path(int root, const char *path)
{
    if (root < 0)
        return open(path, O_PATH | O_CLOEXEC);
#ifdef SYS_openat2
    /* In a container's root an absolute symbolic link means the container's files, not ours. */
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    for (int tries = 0; tries < 8; tries++) {
        int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd >= 0)
            return fd;
        if (errno == ENOSYS || errno == EPERM)
            break; /* an old kernel or a sandbox: do without the guard */
        if (errno != EAGAIN)
            return -1;
    }
#endif
    while (*path == '/')
        path++;
    return openat(root, *path == '\0' ? "." : path, O_PATH | O_CLOEXEC);
}

/* The file behind a path handle, opened for reading. The name is not walked again, so nobody can
 * put something else there meanwhile. */
static int reopen(int handle)
{
    char name[40];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", handle);
    return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int symint_open_regular(const char *sysroot, const char *path, int *fd, enum sym_miss *miss,
                        int *error)
{
    int root = -1;
    int handle = -1;
    struct stat st;
    *fd = -1;
    *error = 0;
    *miss = SYM_MISS_NONE;
    if (sysroot != NULL && strcmp(sysroot, "/") != 0) {
        root = open(sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
            goto failed;
    }
    handle = open_path(root, path);
    if (handle < 0 || fstat(handle, &st) != 0)
        goto failed;
    if (!S_ISREG(st.st_mode)) {
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
    if (root >= 0)
        close(root);
    return *error == ENOMEM ? SYM_ERR_NOMEM : 0;
}

#define LARGE ((size_t)8 * 1024 * 1024)

int symint_read_all(int fd, size_t limit, char **data, size_t *size)
{
    struct stat st;
    size_t capacity = 64 * 1024;
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
