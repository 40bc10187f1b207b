/* SPDX-License-Identifier: MIT */
/* Opening, refusing, writing in place. */
#include "record_output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"

static int refuse(struct record_output *out, const char *what)
{
    cli_error("%s: %s", out->name, what);
    record_output_close(out);
    return -1;
}

static int refuse_errno(struct record_output *out, int error)
{
    cli_error("%s: open failed: %s", out->name, strerror(error));
    record_output_close(out);
    return -1;
}

/* Something is there already. */
static int open_existing(struct record_output *out, bool force)
{
    struct stat found;

    if (stat(out->path, &found) != 0) /* a symbolic link to nothing, for example */
        return refuse_errno(out, errno);
    if (S_ISDIR(found.st_mode))
        return refuse(out, "is a directory");
    /* A FIFO, /dev/null and their like hold nothing that could be lost. */
    if (!force && (S_ISREG(found.st_mode) || S_ISBLK(found.st_mode)))
        return refuse(out, "exists: -o FILE names another, --force overwrites it");
    out->fd = open(out->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (out->fd < 0)
        return refuse_errno(out, errno);
    if (fstat(out->fd, &found) != 0)
        return refuse_errno(out, errno);
    out->regular = S_ISREG(found.st_mode);
    return 0;
}

int record_output_open(struct record_output *out, const char *path, bool force)
{
    *out = (struct record_output){.fd = -1, .name = path};
    if (output_is_standard(path)) {
        out->name = "standard output";
        out->fd = STDOUT_FILENO;
    } else {
        out->path = path;
        out->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOCTTY | O_CLOEXEC, 0644);
        out->created = out->regular = out->fd >= 0;
        if (out->fd < 0 && errno != EEXIST)
            return refuse_errno(out, errno);
        if (out->fd < 0 && open_existing(out, force) != 0)
            return -1;
    }
    if (isatty(out->fd))
        return refuse(out, "binary output is not written to a terminal");
    return 0;
}

/* Returns how much was written: of what fails, a part may have been. */
static uint64_t write_all(struct record_output *out, const void *data, size_t size)
{
    uint64_t written = 0;

    if (out->error == 0)
        out->error = output_write_all(out->fd, data, size, &written);
    return written;
}

int record_output_write(void *user, const void *data, size_t size)
{
    struct record_output *out = user;

    if (out->begun) {
        if (write_all(out, data, size) > 0)
            out->grown = true;
    } else {
        text_append(&out->early, data, size);
    }
    return out->error;
}

int record_output_begin(struct record_output *out)
{
    out->begun = true;
    if (out->regular && !out->created && ftruncate(out->fd, 0) != 0)
        out->error = errno;
    write_all(out, out->early.data, out->early.size);
    text_free(&out->early);
    return out->error;
}

/* Removes the file that we made, unless another one has its name by now. */
static void remove_created(const struct record_output *out)
{
    struct stat ours, there;

    if (fstat(out->fd, &ours) == 0 && lstat(out->path, &there) == 0 &&
        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
        unlink(out->path);
}

static int close_output(struct record_output *out, bool keep)
{
    if (out->created && !keep)
        remove_created(out);
    if (out->fd >= 0 && close(out->fd) != 0 && errno != EINTR && out->error == 0 && out->begun)
        out->error = errno;
    out->fd = -1;
    text_free(&out->early);
    return out->error;
}

int record_output_close(struct record_output *out)
{
    return close_output(out, out->begun);
}

int record_output_give_up(struct record_output *out)
{
    return close_output(out, out->grown);
}
