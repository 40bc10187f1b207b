/* SPDX-License-Identifier: MIT */
/*
 * From a recorded path to an ELF file that is the recorded one. Paths come from captures, so
 * whatever is at the end of them must not hang or harm us: it is looked at before it is opened.
 */
#include "locate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char deleted[] = " (deleted)";

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
            char *grown = capacity <= limit ? realloc(buffer, capacity * 2) : NULL;
            if (grown == NULL) {
                free(buffer);
                return capacity <= limit ? SYM_ERR_NOMEM : SYM_ERR_LIMIT;
            }
            buffer = grown;
            capacity *= 2;
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

/* ---- modules ---- */

struct search {
    struct symint_arena *arena;
    const char *sysroot;
    const uint8_t *build_id;
    size_t build_id_size;
    struct symint_located *out;
};

static int set_detail(struct search *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int set_detail(struct search *s, const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t size = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    s->out->detail = symint_arena_copy(s->arena, text, size);
    return s->out->detail == NULL ? SYM_ERR_NOMEM : 0;
}

static void hex(const uint8_t *bytes, size_t size, char *text, size_t text_size)
{
    size_t n = 0;
    for (size_t i = 0; i < size && n + 3 <= text_size; i++, n += 2)
        snprintf(text + n, text_size - n, "%02x", bytes[i]);
    text[n] = '\0';
}

/* Checks the build id and reads the symbols of an open file. */
static int use_file(struct search *s, const char *path, int fd)
{
    struct stat st;
    const char *why = "";
    struct symint_elf *elf = NULL;
    const char *root = s->sysroot != NULL && strcmp(s->sysroot, "/") != 0 ? s->sysroot : "";

    if (fstat(fd, &st) != 0 || st.st_size < 0) {
        s->out->miss = SYM_MISS_UNREADABLE;
        return set_detail(s, "%s%s: its size is unknown", root, path);
    }
    struct symint_input input = {.fd = fd, .size = (uint64_t)st.st_size};
    int rc = symint_elf_open(&input, &elf, &s->out->miss, &why);
    if (rc != 0)
        return rc;
    if (elf == NULL)
        return set_detail(s, "%s%s: %s", root, path, why);

    size_t size;
    const uint8_t *build_id = symint_elf_build_id(elf, &size);
    if (s->build_id_size > 0 &&
        (size != s->build_id_size || memcmp(build_id, s->build_id, size) != 0)) {
        char has[2 * 64 + 1];
        char wants[2 * 64 + 1];
        hex(build_id, size, has, sizeof(has));
        hex(s->build_id, s->build_id_size, wants, sizeof(wants));
        symint_elf_free(elf);
        s->out->miss = SYM_MISS_BUILD_ID;
        if (size == 0)
            return set_detail(s, "%s%s: it has no build id, recorded was %s", root, path, wants);
        return set_detail(s, "%s%s: its build id is %s, recorded was %s", root, path, has, wants);
    }
    rc = symint_elf_index(elf, &s->out->miss, &why);
    if (rc != 0 || s->out->miss != SYM_MISS_NONE) {
        symint_elf_free(elf);
        return rc != 0 ? rc : set_detail(s, "%s%s: %s", root, path, why);
    }
    s->out->elf = elf;
    s->out->unverified = s->build_id_size == 0;
    s->out->detail = "";
    return 0;
}

static int try_path(struct search *s, const char *path)
{
    int fd;
    int error;
    int rc = symint_open_regular(s->sysroot, path, &fd, &s->out->miss, &error);
    if (rc != 0)
        return rc;
    if (fd < 0) {
        const char *root = s->sysroot != NULL && strcmp(s->sysroot, "/") != 0 ? s->sysroot : "";
        return set_detail(s, "%s%s: %s", root, path,
                          error != 0 ? strerror(error) : sym_miss_text(s->out->miss));
    }
    rc = use_file(s, path, fd);
    close(fd);
    return rc;
}

int symint_locate(struct symint_arena *arena, const char *sysroot, const char *path,
                  size_t path_size, const uint8_t *build_id, size_t build_id_size,
                  struct symint_located *out)
{
    struct search s = {.arena = arena,
                       .sysroot = sysroot,
                       .build_id = build_id,
                       .build_id_size = build_id_size,
                       .out = out};
    *out = (struct symint_located){.miss = SYM_MISS_NO_FILE, .detail = ""};
    /* The kernel gives every file an absolute path; `[vdso]` and its like were never on a disk. */
    if (path_size == 0 || path[0] != '/' || memchr(path, '\0', path_size) != NULL)
        return set_detail(&s, "%.*s: not the name of a file",
                          (int)(path_size < 4096 ? path_size : 4096), path);
    int rc = try_path(&s, path);
    size_t suffix = sizeof(deleted) - 1;
    if (rc != 0 || out->elf != NULL || path_size <= suffix ||
        memcmp(path + path_size - suffix, deleted, suffix) != 0)
        return rc;
    /* The kernel's mark for a file that is gone. Whatever has its name today is only it when the
     * build id says so. */
    if (build_id_size == 0)
        return out->miss != SYM_MISS_NO_FILE
                   ? 0
                   : set_detail(
                         &s,
                         "%s: it was deleted, and no build id was recorded to know another file by",
                         path);
    char *plain = strndup(path, path_size - suffix);
    if (plain == NULL)
        return SYM_ERR_NOMEM;
    rc = try_path(&s, plain);
    free(plain);
    return rc;
}
