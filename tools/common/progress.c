/* SPDX-License-Identifier: MIT */
/*
 * The progress line. On a terminal it is drawn over itself and taken away before any message and
 * at the end; with --progress=always and no terminal it is a line a second.
 */
#include "progress.h"
#include "cli.h"
#include "clock.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define AUTO_AFTER_NS (SECOND_NS / 2)
#define REDRAW_NS (SECOND_NS / 10)

/* The one whose line stands on the terminal; NULL: none. */
static const struct progress *drawn;

/* Between progress_begin and progress_end: what work deep inside is told to; NULL: nobody listens. */
static struct progress *active;

static void put(const char *data, size_t size)
{
    while (size > 0) {
        ssize_t done = write(STDERR_FILENO, data, size);

        if (done <= 0)
            return; /* not worth a message, and there is no place for one */
        data += done;
        size -= (size_t)done;
    }
}

static void erase(void)
{
    if (drawn == NULL)
        return;
    drawn = NULL;
    put("\r\033[K", 4);
}

static void compose(const struct progress *p, uint64_t now, uint64_t samples,
                    struct text_buffer *line)
{
    const struct tool_input *in = p->input;
    uint64_t bytes = spool_reader_input_bytes(in->reader);
    uint64_t elapsed_ms = (now - p->input_begin_ns) / 1000000;

    text_printf(line, "%s: ", cli_program());
    text_append_display(line, in->name, strlen(in->name));
    text_append(line, ": ", 2);
    text_bytes(line, bytes);
    if (in->has_size && in->size_bytes > 0) {
        text_printf(line, " of ");
        text_bytes(line, in->size_bytes);
    }
    /* On a narrow terminal the end is cut off: what matters least comes last. */
    if (elapsed_ms > 0 && bytes > 0) {
        if (in->has_size && in->size_bytes >= bytes)
            text_printf(line, ", %.0f s left",
                        (double)(in->size_bytes - bytes) * (double)elapsed_ms / 1000 /
                            (double)bytes);
        text_printf(line, ", ");
        text_bytes(line, (uint64_t)((double)bytes * 1000 / (double)elapsed_ms));
        text_printf(line, "/s");
    }
    text_printf(line, ", %" PRIu64 " %s", samples, samples == 1 ? "sample" : "samples");
}

static void compose_phase(const struct progress_phase *phase, uint64_t now,
                          struct text_buffer *line)
{
    uint64_t elapsed_ms = (now - phase->begin_ns) / 1000000;

    text_printf(line, "%s: %s", cli_program(), phase->what);
    if (phase->bytes) {
        text_printf(line, ", ");
        text_bytes(line, phase->done);
    }
    if (phase->total == 0)
        return;
    text_printf(line, ", %.0f %%", 100 * (double)phase->done / (double)phase->total);
    if (elapsed_ms > 0 && phase->done > 0 && phase->done <= phase->total)
        text_printf(line, ", %.0f s left",
                    (double)(phase->total - phase->done) * (double)elapsed_ms / 1000 /
                        (double)phase->done);
}

/* A line longer than the terminal is wide would wrap and could not be drawn over. */
static void cut_to_width(struct text_buffer *line)
{
    struct winsize window;
    size_t columns = 80, width = 0, at = 0;
    uint32_t code;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        columns = window.ws_col;
    while (at < line->size && ++width < columns)
        at += text_decode(line->data + at, line->size - at, &code);
    line->size = at;
}

static void draw(const struct progress *p, uint64_t now, uint64_t samples)
{
    struct text_buffer line = {0};

    if (p->input == NULL && p->line == NULL && p->phase.what == NULL)
        return;
    if (p->terminal)
        text_append_byte(&line, '\r');
    if (p->line != NULL)
        p->line(p->user, &line);
    else if (p->phase.what != NULL)
        compose_phase(&p->phase, now, &line);
    else
        compose(p, now, samples, &line);
    if (p->terminal) {
        cut_to_width(&line);
        text_append(&line, "\033[K", 3);
        drawn = p;
    } else {
        text_append_byte(&line, '\n');
    }
    put(line.data, line.size);
    text_free(&line);
}

void progress_begin(struct progress *p, const struct tool_options *o)
{
    bool terminal = isatty(STDERR_FILENO) == 1;

    *p = (struct progress){.terminal = terminal, .countdown = PROGRESS_EVERY};
    p->wanted =
        o->progress == PROGRESS_ALWAYS || (o->progress == PROGRESS_AUTO && terminal && !o->quiet);
    /* The first line of --progress=always comes at once, the automatic one when it is worth it. */
    p->shown_ns = o->progress == PROGRESS_ALWAYS ? 0 : clock_now_ns() + AUTO_AFTER_NS - REDRAW_NS;
    cli_set_before_message(erase);
    active = p;
}

void progress_lines(struct progress *p, progress_line_fn *line, void *user)
{
    p->line = line;
    p->user = user;
}

void progress_input(struct progress *p, const struct tool_input *in)
{
    p->input = in;
    p->phase.what = NULL;
    p->input_begin_ns = clock_now_ns();
}

/* Whether it is time for another line. */
static bool is_due(struct progress *p, uint64_t now)
{
    if (now < p->shown_ns || now - p->shown_ns < (p->terminal ? REDRAW_NS : SECOND_NS))
        return false;
    p->shown_ns = now;
    return true;
}

void progress_update(struct progress *p, uint64_t samples)
{
    uint64_t now;

    p->countdown = PROGRESS_EVERY;
    if (!p->wanted)
        return;
    now = clock_now_ns();
    if (is_due(p, now))
        draw(p, now, samples);
}

static void update_phase(const char *what, bool bytes, uint64_t done, uint64_t total)
{
    struct progress *p = active;
    uint64_t now;
    bool begins;

    if (p == NULL || !p->wanted)
        return;
    now = clock_now_ns();
    begins = p->phase.what != what;
    if (begins)
        p->phase = (struct progress_phase){.what = what, .bytes = bytes, .begin_ns = now};
    p->phase.done = done;
    p->phase.total = total;
    /* Where lines stay, each phase has at least one. */
    if (is_due(p, now) || (begins && !p->terminal))
        draw(p, now, 0);
}

void progress_work(const char *what, uint64_t done, uint64_t total)
{
    update_phase(what, false, done, total);
}

void progress_bytes(const char *what, uint64_t done, uint64_t total)
{
    update_phase(what, true, done, total);
}

void progress_writing(int fd, uint64_t bytes)
{
    static const char what[] = "writing";

    if (active == NULL || !active->wanted || active->input != NULL || active->line != NULL ||
        (active->phase.what != NULL && active->phase.what != what) || isatty(fd) == 1)
        return;
    update_phase(what, true, bytes, 0);
}

void progress_work_end(void)
{
    if (active != NULL)
        active->phase.what = NULL;
    erase();
}

void progress_input_end(struct progress *p)
{
    if (p->wanted && !p->terminal && p->input != NULL) { /* a short run shows at least this */
        struct spool_counts counts;

        spool_reader_counts(p->input->reader, &counts);
        p->phase.what = NULL;
        draw(p, clock_now_ns(), counts.samples);
    }
    p->input = NULL;
    p->phase.what = NULL;
}

void progress_end(struct progress *p)
{
    progress_input_end(p);
    if (p->wanted && !p->terminal)
        draw(p, clock_now_ns(), 0);
    erase();
    p->wanted = false;
    active = NULL;
    cli_set_before_message(NULL);
}
