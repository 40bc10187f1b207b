/* SPDX-License-Identifier: MIT */
/* Waiting for more: pipes by poll(2), files by looking again. */
#include "follow.h"

#include <poll.h>
#include <unistd.h>

#include "clock.h"
#include "inputs.h"
#include "interrupt.h"

/* How often a file is looked at. Soon enough for eyes, and next to nothing to do. */
#define LOOK_MS 50

/* How long it may stay as it is, limit_ms (-1: for ever) at most; 0: it has for too long already. */
static int left_ms(const struct follow *f, int limit_ms)
{
    uint64_t idle_ns, left;

    if (!f->has_idle)
        return limit_ms;
    idle_ns = clock_now_ns() - f->grown_ns;
    if (idle_ns >= f->idle_ns)
        return 0;
    left = (f->idle_ns - idle_ns + 999999) / 1000000;
    if (limit_ms < 0 || left < (uint64_t)limit_ms)
        return left < 1000000 ? (int)left : 1000000;
    return limit_ms;
}

/* Waits for more than there is. False when that is not to be waited for. */
static bool wait_for_more(struct tool_input *in)
{
    struct follow *f = in->follow;
    uint64_t bytes = spool_reader_input_bytes(in->reader);
    int ms;

    if (spool_reader_tail_ended(in->reader) || f->finished)
        return false;
    if (bytes != f->bytes) {
        f->bytes = bytes;
        f->grown_ns = clock_now_ns();
    }
    if (f->out != NULL && output_flush(f->out) != 0)
        return false; /* nobody looks any more */
    if (!f->grows) {
        struct pollfd p = {.fd = in->fd, .events = POLLIN};

        poll(&p, 1, -1);
        return true;
    }
    ms = left_ms(f, f->regular ? LOOK_MS : -1);
    if (ms == 0)
        return false;
    interrupt_wait(f->regular ? -1 : in->fd, ms);
    return true;
}

static int find_record(struct tool_input *in, struct spool_record *rec)
{
    struct follow *f = in->follow;

    for (;;) {
        int rc;

        if (f->grows && interrupt_caught()) {
            f->interrupted = true;
            return 0;
        }
        rc = spool_reader_next(in->reader, rec);
        if (rc > 0 && rec->type == SPOOL_RECORD_ANNOTATION && rec->annotation.key == SPOOL_NOTE_END)
            f->finished = true;
        if (rc != 0 || !wait_for_more(in))
            return rc;
    }
}

int follow_next(struct tool_input *in, struct spool_record *rec)
{
    int rc = find_record(in, rec);

    if (rc <= 0 && in->follow->grows)
        interrupt_release();
    return rc;
}

/* The header of a file that has just been made may not be there yet. */
static int wait_for_header(struct follow *f, struct tool_input *in, off_t begin)
{
    for (;;) {
        int rc = spool_reader_open_tail_fd(in->reader, in->fd);
        uint64_t bytes = spool_reader_input_bytes(in->reader);
        int ms;

        if (rc != SPOOL_ERR_TRUNCATED)
            return rc;
        if (bytes != f->bytes)
            f->grown_ns = clock_now_ns();
        f->bytes = bytes;
        ms = left_ms(f, LOOK_MS);
        if (ms == 0 || interrupt_caught())
            return rc;
        interrupt_wait(-1, ms);
        if (lseek(in->fd, begin, SEEK_SET) < 0)
            return rc;
        spool_reader_free(in->reader);
        in->reader = spool_reader_new();
        if (in->reader == NULL)
            return SPOOL_ERR_NOMEM;
    }
}

int follow_open(struct follow *f, struct tool_input *in)
{
    int rc;

    in->follow = f;
    f->regular = in->regular;
    in->reader = spool_reader_new();
    if (in->reader == NULL)
        return SPOOL_ERR_NOMEM;
    f->grown_ns = clock_now_ns();
    if (f->regular && !f->grows) {
        in->follow = NULL; /* a file is complete: nothing is waited for */
        return spool_reader_open_fd(in->reader, in->fd);
    }
    if (!f->regular) {
        rc = spool_reader_open_tail_fd(in->reader, in->fd);
        if (f->grows) /* before that there is nothing to end well */
            interrupt_catch();
        return rc;
    }
    interrupt_catch();
    rc = wait_for_header(f, in, lseek(in->fd, 0, SEEK_CUR));
    if (rc < 0)
        interrupt_release();
    return rc;
}
