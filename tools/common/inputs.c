/* SPDX-License-Identifier: MIT */
/*
 * Opening spools and telling what went wrong with them. No message depends on whether the bytes
 * came from a file or a pipe.
 */
#include "inputs.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *inputs_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

const char *inputs_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : inputs_name(path);
}

static int refuse(struct tool_input *in, const char *what)
{
    cli_error("%s: %s", in->name, what);
    inputs_close(in);
    return -1;
}

/* Opens the descriptor and refuses what can be no spool. */
static int open_descriptor(const char *path, struct tool_input *in)
{
    struct stat status;

    *in = (struct tool_input){.fd = STDIN_FILENO, .name = inputs_name(path)};
    if (strcmp(path, "-") != 0) {
        in->path = path;
        in->fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    }
    if (in->fd < 0 || fstat(in->fd, &status) != 0) {
        cli_error("%s: open failed: %s", in->name, strerror(errno));
        inputs_close(in);
        return -1;
    }
    if (S_ISDIR(status.st_mode))
        return refuse(in, "is a directory");
    if (isatty(in->fd))
        return refuse(in, "is a terminal");
    in->regular = S_ISREG(status.st_mode);
    if (in->regular) {
        off_t at = lseek(in->fd, 0, SEEK_CUR); /* standard input may have been read from before */

        in->has_size = at >= 0 && at <= status.st_size;
        if (in->has_size)
            in->size_bytes = (uint64_t)(status.st_size - at);
    }
    return 0;
}

int inputs_open(const char *path, struct tool_input *in)
{
    if (open_descriptor(path, in) != 0)
        return -1;
    in->reader = spool_reader_new();
    if (in->reader == NULL)
        return refuse(in, spool_error_text(SPOOL_ERR_NOMEM));
    if (spool_reader_open_fd(in->reader, in->fd) < 0)
        return refuse(in, spool_reader_error(in->reader));
    return 0;
}

int inputs_open_growing(const char *path, struct follow *f, struct tool_input *in)
{
    int rc;

    if (open_descriptor(path, in) != 0)
        return -1;
    rc = follow_open(f, in);
    if (rc < 0)
        return refuse(in,
                      in->reader != NULL ? spool_reader_error(in->reader) : spool_error_text(rc));
    return 0;
}

void inputs_close_descriptor(struct tool_input *in)
{
    if (in->fd > STDIN_FILENO)
        close(in->fd);
    in->fd = -1;
}

void inputs_close(struct tool_input *in)
{
    spool_reader_free(in->reader);
    in->reader = NULL;
    inputs_close_descriptor(in);
}

enum input_end inputs_finish(struct tool_input *in, int rc, const struct tool_options *o)
{
    uint64_t kept = spool_reader_kept_bytes(in->reader);
    struct spool_counts counts;
    const char *noun;

    spool_reader_counts(in->reader, &counts);
    noun = counts.samples == 1 ? "sample" : "samples";
    if (rc == SPOOL_ERR_CORRUPT && o->damage == DAMAGE_SALVAGE) {
        cli_warn("%s: %s; kept %" PRIu64 " %s", in->name, spool_reader_error(in->reader),
                 counts.samples, noun);
        return INPUT_SALVAGED;
    }
    if (rc == SPOOL_ERR_CORRUPT && o->damage == DAMAGE_DEFAULT && counts.samples > 0) {
        cli_error("%s: %s; --salvage uses the %" PRIu64 " %s before it", in->name,
                  spool_reader_error(in->reader), counts.samples, noun);
        return INPUT_FAILED;
    }
    if (rc < 0) {
        cli_error("%s: %s", in->name, spool_reader_error(in->reader));
        return INPUT_FAILED;
    }
    /* Who stops in the middle has not found an end. */
    if (!spool_reader_cut_tail(in->reader) || (in->follow != NULL && in->follow->interrupted))
        return INPUT_OK;
    if (o->damage == DAMAGE_STRICT) {
        cli_error("%s: cut off at byte %" PRIu64 " after %" PRIu64 " %s", in->name, kept,
                  counts.samples, noun);
        return INPUT_FAILED;
    }
    cli_warn("%s: cut off at byte %" PRIu64 "; kept %" PRIu64 " %s", in->name, kept, counts.samples,
             noun);
    return INPUT_OK;
}

uint64_t inputs_damage_offset(const struct tool_input *in)
{
    return spool_reader_kept_bytes(in->reader);
}
