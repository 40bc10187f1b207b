/* SPDX-License-Identifier: MIT */
/*
 * Documents on standard output or in a file that appears only when it is complete. A temporary
 * file has a fixed short name, not one made from FILE's: that could become longer than a file
 * system allows.
 */
#include "output.h"
#include "cli.h"
#include "progress.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Symbolic links followed by hand, as many as the kernel follows. */
#define LINKS_MAX 40

/* ---- opening --------------------------------------------------------------------------------- */

static int refuse(struct tool_output *out, const char *what)
{
    cli_error("%s: %s", out->name, what);
    output_abort(out);
    return -1;
}

static int refuse_errno(struct tool_output *out, const char *what, int error)
{
    cli_error("%s: %s: %s", out->name, what, strerror(error));
    output_abort(out);
    return -1;
}

/* Bytes of path up to its last slash, that one included. */
static size_t folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Where path leads when it is a symbolic link, existing or not; a copy of path otherwise. NULL
 * with errno. */
static char *follow_links(const char *path)
{
    char *at = text_copy(path, strlen(path));

    for (int links = 0;; links++) {
        struct text_buffer joined = {0};
        char link[PATH_MAX];
        ssize_t size = readlink(at, link, sizeof link);

        if (size < 0 && (errno == EINVAL || errno == ENOENT))
            return at; /* no link; or nothing there yet */
        if (size < 0 || links == LINKS_MAX || size == (ssize_t)sizeof link) {
            int error = size < 0 ? errno : links == LINKS_MAX ? ELOOP : ENAMETOOLONG;

            free(at);
            errno = error;
            return NULL;
        }
        text_append(&joined, at, link[0] == '/' ? 0 : folder_size(at));
        text_append(&joined, link, (size_t)size);
        free(at);
        at = joined.data;
    }
}

static int open_directly(struct tool_output *out, const char *path, int flags, bool binary)
{
    out->fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC | flags);
    if (out->fd < 0)
        return refuse_errno(out, "open failed", errno);
    if (binary && isatty(out->fd))
        return refuse(out, "binary output is not written to a terminal");
    return 0;
}

static int open_temporary(struct tool_output *out, const struct stat *old)
{
    size_t folder = folder_size(out->target);
    struct text_buffer pattern = {0};

    if (out->target[folder] == '\0')
        return refuse_errno(out, "open failed", out->target[0] == '\0' ? ENOENT : EISDIR);
    if (old != NULL) {
        out->mode = old->st_mode & 0777;
    } else {
        mode_t mask = umask(0);

        umask(mask);
        out->mode = 0666 & ~mask;
    }
    text_printf(&pattern, "%.*s.spooltools-XXXXXX", (int)folder, out->target);
    out->fd = temporary_make(&out->temporary, pattern.data);
    if (out->fd < 0)
        return refuse_errno(out, "temporary file beside it failed", errno);
    /* Only a privileged user can keep another owner; for all others the file becomes theirs, as
     * with mv. */
    if (old != NULL && (old->st_uid != geteuid() || old->st_gid != getegid()) &&
        fchown(out->fd, old->st_uid, old->st_gid) != 0)
        errno = 0;
    return 0;
}

static int open_file(struct tool_output *out, const char *path, bool binary)
{
    struct stat old, found;
    bool exists = stat(path, &old) == 0;

    if (!exists && errno != ENOENT)
        return refuse_errno(out, "open failed", errno);
    if (exists && S_ISDIR(old.st_mode))
        return refuse(out, "is a directory");
    if (exists && !S_ISREG(old.st_mode))
        return open_directly(out, path, 0, binary);
    /* A rename does not ask, but a file made read-only was not meant to be replaced. */
    if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return refuse_errno(out, "open failed", errno);
    out->target = follow_links(path);
    if (out->target == NULL)
        return refuse_errno(out, "open failed", errno);
    if (exists && (stat(out->target, &found) != 0 || found.st_dev != old.st_dev ||
                   found.st_ino != old.st_ino)) {
        /* A link of /proc whose text is no path to the file: an unlinked one, for example. */
        free(out->target);
        out->target = NULL;
        return open_directly(out, path, O_TRUNC, binary);
    }
    return open_temporary(out, exists ? &old : NULL);
}

bool output_is_standard(const char *path)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(path, names[i]) == 0)
            return true;
    }
    return false;
}

int output_open(struct tool_output *out, const char *path, bool binary)
{
    *out = (struct tool_output){.fd = -1, .name = path};
    out->data = cli_realloc(NULL, OUTPUT_BUFFER_SIZE, 1);
    if (path != NULL && !output_is_standard(path))
        return open_file(out, path, binary);
    out->name = "standard output";
    if (binary && isatty(STDOUT_FILENO))
        return refuse(out, "binary output is not written to a terminal");
    out->fd = STDOUT_FILENO;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

int output_write_all(int fd, const void *data, size_t size, uint64_t *written)
{
    const char *at = data;

    while (size > 0) {
        ssize_t done = write(fd, at, size);

        if (done > 0) {
            at += done;
            size -= (size_t)done;
            *written += (uint64_t)done;
        } else if (done == 0) { /* nothing taken, no reason given: this may go on for ever */
            return EIO;
        } else if (errno == EAGAIN) { /* somebody else made the pipe or terminal non-blocking */
            struct pollfd wait = {.fd = fd, .events = POLLOUT};

            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* Writes all of it or sets out->error. */
static void write_all(struct tool_output *out, const void *data, size_t size)
{
    if (out->error == 0)
        out->error = output_write_all(out->fd, data, size, &out->flushed);
}

int output_flush(struct tool_output *out)
{
    write_all(out, out->data, out->size);
    out->size = 0;
    return out->error == 0 ? 0 : -1;
}

void output_spill(struct tool_output *out, const void *data, size_t size)
{
    output_flush(out);
    progress_writing(out->fd, out->flushed);
    if (size >= OUTPUT_BUFFER_SIZE) {
        write_all(out, data, size);
    } else if (size > 0) {
        memcpy(out->data, data, size);
        out->size = size;
    }
}

void output_u64(struct tool_output *out, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    output_write(out, digits + at, sizeof digits - at);
}

void output_i64(struct tool_output *out, int64_t number)
{
    if (number < 0) {
        output_byte(out, '-');
        output_u64(out, 0 - (uint64_t)number);
    } else {
        output_u64(out, (uint64_t)number);
    }
}

void output_printf(struct tool_output *out, const char *format, ...)
{
    va_list args, again;
    char *room = output_reserve(out, OUTPUT_RESERVE_MAX);
    int size;

    va_start(args, format);
    va_copy(again, args);
    size = vsnprintf(room, OUTPUT_RESERVE_MAX, format, args);
    va_end(args);
    if (size >= OUTPUT_RESERVE_MAX) {
        char *text = cli_realloc(NULL, (size_t)size + 1, 1);

        vsnprintf(text, (size_t)size + 1, format, again);
        output_write(out, text, (size_t)size);
        free(text);
    } else if (size > 0) {
        output_take(out, (size_t)size);
    } else if (size < 0 && out->error == 0) {
        out->error = errno;
    }
    va_end(again);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void close_fd(struct tool_output *out)
{
    if (out->fd >= 0 && close(out->fd) != 0 && errno != EINTR && out->error == 0)
        out->error = errno;
    out->fd = -1;
}

/* Frees everything but the error; the temporary file is gone or became FILE. */
static void release(struct tool_output *out)
{
    temporary_forget(&out->temporary);
    free(out->target);
    free(out->data);
    out->target = NULL;
    out->data = NULL;
    out->size = 0;
}

int output_commit(struct tool_output *out)
{
    const char *what = "write failed";

    output_flush(out);
    /* File systems without modes refuse this; the file is then as they make it. */
    if (out->temporary.path != NULL && fchmod(out->fd, (mode_t)out->mode) != 0)
        errno = 0;
    close_fd(out);
    if (out->temporary.path != NULL && out->error == 0 &&
        rename(out->temporary.path, out->target) != 0) {
        out->error = errno;
        what = "rename failed";
    }
    if (out->temporary.path != NULL && out->error != 0)
        unlink(out->temporary.path);
    release(out);
    if (out->error == 0)
        return 0;
    if (out->error != EPIPE) /* whoever reads has seen enough */
        cli_error("%s: %s: %s", out->name, what, strerror(out->error));
    return -1;
}

void output_abort(struct tool_output *out)
{
    if (out->temporary.path != NULL)
        unlink(out->temporary.path);
    if (out->fd != STDOUT_FILENO)
        close_fd(out);
    out->fd = -1;
    release(out);
}
