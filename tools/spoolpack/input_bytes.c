/* SPDX-License-Identifier: MIT */
/* A spool's bytes as they lie there: their number and hash, for pipes too. */
#include "input_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"
#include "progress.h"
#include "temporary.h"

/* ---- copies ---- */

/* Copies what is left of `from`. 0, or -1 after an error message. */
static int copy_bytes(int from, const char *name, int to, const char *folder)
{
    char piece[1 << 14];
    uint64_t written = 0;
    ssize_t n;
    int error;

    while ((n = read(from, piece, sizeof piece)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            cli_error("%s: read failed: %s", name, strerror(errno));
            return -1;
        }
        error = output_write_all(to, piece, (size_t)n, &written);
        if (error != 0) {
            cli_error("%s: temporary file in %s: %s", name, folder, strerror(error));
            return -1;
        }
    }
    return 0;
}

static int copy(int from, const char *name)
{
    const char *folder = temporary_folder();
    int fd = temporary_open_unlinked();

    if (fd < 0) {
        cli_error("%s: temporary file in %s: %s", name, folder, strerror(errno));
        return -1;
    }
    if (copy_bytes(from, name, fd, folder) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

static int open_copy(const char *path, struct tool_input *in)
{
    bool is_standard = strcmp(path, "-") == 0;
    int from = is_standard ? STDIN_FILENO : open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);

    *in =
        (struct tool_input){.fd = -1, .name = inputs_name(path), .path = is_standard ? NULL : path};
    if (from < 0) {
        cli_error("%s: open failed: %s", in->name, strerror(errno));
        return -1;
    }
    in->fd = copy(from, in->name);
    if (!is_standard)
        close(from);
    if (in->fd < 0)
        return -1;
    in->reader = spool_reader_new();
    if (in->reader && spool_reader_open_fd(in->reader, in->fd) == 0) {
        struct stat status;

        in->has_size = fstat(in->fd, &status) == 0;
        in->size_bytes = in->has_size ? (uint64_t)status.st_size : 0;
        return 0;
    }
    cli_error("%s: %s", in->name,
              in->reader ? spool_reader_error(in->reader) : spool_error_text(SPOOL_ERR_NOMEM));
    inputs_close(in);
    return -1;
}

/* ---- API ---- */

/* What inputs_open refuses is left to it. */
static bool is_read_once(const char *path)
{
    bool is_standard = strcmp(path, "-") == 0;
    struct stat status;

    if ((is_standard ? fstat(STDIN_FILENO, &status) : stat(path, &status)) != 0)
        return false;
    return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

int input_bytes_open(const char *path, struct tool_input *in, struct input_bytes *b)
{
    off_t at = strcmp(path, "-") == 0 ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
    bool once = is_read_once(path);

    b->begin = at > 0 && !once ? at : 0;
    if ((once ? open_copy(path, in) : inputs_open(path, in)) < 0)
        return -1;
    if (fstat(in->fd, &b->status) == 0)
        return 0;
    cli_error("%s: %s", in->name, strerror(errno));
    inputs_close(in);
    return -1;
}

static bool has_changed(const struct input_bytes *b, const struct stat *now)
{
    return now->st_size != b->status.st_size || now->st_mtim.tv_sec != b->status.st_mtim.tv_sec ||
           now->st_mtim.tv_nsec != b->status.st_mtim.tv_nsec;
}

int input_bytes_hash(const struct input_bytes *b, const struct tool_input *in,
                     char sha256[PACK_HASH_SIZE], uint64_t *size_bytes)
{
    struct pack_hash hash;
    struct stat now;
    char piece[1 << 14];
    uint64_t most = UINT64_MAX, at = 0;
    ssize_t n = 0;

    if (fstat(in->fd, &now) == 0 && has_changed(b, &now)) {
        most = spool_reader_input_bytes(in->reader);
        cli_warn("%s: changed while it was read; its hash is that of the first %" PRIu64 " bytes",
                 in->name, most);
    }
    pack_hash_begin(&hash);
    while (at < most) {
        size_t part = most - at < sizeof piece ? (size_t)(most - at) : sizeof piece;

        n = pread(in->fd, piece, part, (off_t)(b->begin + (int64_t)at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        pack_hash_add(&hash, piece, (size_t)n);
        at += (uint64_t)n;
        progress_bytes("hashing the spool", at, spool_reader_input_bytes(in->reader));
    }
    pack_hash_end(&hash, sha256);
    *size_bytes = at;
    if (n >= 0)
        return 0;
    cli_error("%s: read failed: %s", in->name, strerror(errno));
    return -1;
}
