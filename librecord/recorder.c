/* SPDX-License-Identifier: MIT */
/*
 * The session: opening, the polling loop with its rounds, counters, the end. Attaching is in recorder_attach.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernel_limits.h"
#include "procfs.h"
#include "session.h"

#define SECOND_NS UINT64_C(1000000000)
/* Rings are looked at this often even if the caller would wait longer. */
#define POLL_MS 100
/* The kernel takes a record's time before it copies the stack: younger ones may not be complete yet. */
#define SETTLED_NS (SECOND_NS / 500)
/* Output is at most this old; below the second that is promised, since polls come every 100 ms. */
#define FLUSH_NS (SECOND_NS * 3 / 4)

/* ---- shared by the files of a session ---- */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

uint64_t recordint_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

void recordint_log(struct record_session *s, enum record_log_level level, const char *format, ...)
{
    char text[512];
    va_list args;

    if (s->log == NULL)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->log(s->log_user, level, text);
}

int recordint_out_of_memory(struct record_session *s)
{
    s->sticky = recordint_error_set(&s->error, RECORD_ERR_NOMEM, 0, "out of memory");
    return s->sticky;
}

int recordint_spool_result(struct record_session *s, int rc)
{
    int code;

    if (rc >= 0)
        return 0;
    code = rc == SPOOL_ERR_IO       ? RECORD_ERR_IO
           : rc == SPOOL_ERR_NOMEM  ? RECORD_ERR_NOMEM
           : rc == SPOOL_ERR_MISUSE ? RECORD_ERR_MISUSE
                                    : RECORD_ERR_LIMIT;
    recordint_error_set(&s->error, code, 0, "%s", spool_writer_error(s->writer));
    /* What the writer refused without writing it does not end the recording: no reader could have taken it. */
    if (code == RECORD_ERR_MISUSE) {
        recordint_log(s, RECORD_LOG_WARNING, "left out of the spool: %s", s->error.text);
        return 0;
    }
    s->sticky = code;
    return code;
}

static int misuse(struct record_session *s, const char *text)
{
    return recordint_error_set(&s->error, RECORD_ERR_MISUSE, 0, "%s", text);
}

/* What calls on an open session begin with. */
int recordint_ready(struct record_session *s)
{
    if (s->sticky != 0)
        return s->sticky;
    if (s->state == SESSION_OPEN)
        return 0;
    return misuse(s,
                  s->state == SESSION_NEW ? "the session is not open" : "the session is finished");
}

/* ---- opening ---- */

struct record_session *record_session_new(void)
{
    return calloc(1, sizeof(struct record_session));
}

/* Back to what record_session_new gives, but for the error. */
static void release(struct record_session *s)
{
    recordint_attach_close_all(s);
    recordint_processes_free(s);
    recordint_order_free(s->order);
    recordint_unwind_cache_free(s->cache);
    recordint_rule_table_free(s->code_rules);
    recordint_code_pages_free(s->code_pages);
    recordint_image_files_free(s->files);
    free(s->polled);
    spool_mappings_free(s->mappings);
    spool_writer_free(s->writer);
    free(s->noted_build_ids);
    free(s->unwound);
    free(s->frames);
    free(s->cmdline_copy);
}

void record_session_free(struct record_session *s)
{
    if (s == NULL)
        return;
    release(s);
    free(s);
}

void record_session_set_log(struct record_session *s, record_log_fn *log, void *user)
{
    s->log = log;
    s->log_user = user;
}

/* Copies the options, whose struct may be an older, shorter one. */
static int take_options(struct record_session *s, const struct record_options *options)
{
    uint32_t limit = 0;

    if (options == NULL || options->size < sizeof options->size ||
        options->size > sizeof s->options)
        return misuse(s, "options that record_options_init did not fill in");
    record_options_init(&s->options, sizeof s->options);
    memcpy(&s->options, options, options->size);
    if (s->options.frequency_hz == 0 || s->options.stack_size_bytes < 8)
        return misuse(s, "a frequency of 0, or a stack size below 8 bytes");
    if (s->options.spool_version != 3 && s->options.spool_version != 4)
        return misuse(s, "spools are written in version 3 or 4");
    if ((unsigned)s->options.event > RECORD_EVENT_CPU_CLOCK)
        return misuse(s, "unknown event");
    if (s->options.spool_version >= 4 && s->options.has_interval &&
        s->options.interval_us > UINT64_MAX / 1000)
        return misuse(s, "an interval beyond 64 bits of nanoseconds");
    if (s->options.stack_size_bytes > RECORD_STACK_SIZE_MAX) {
        recordint_log(s, RECORD_LOG_WARNING,
                      "stack size %" PRIu32 " is clamped to the kernel's %u bytes",
                      s->options.stack_size_bytes, RECORD_STACK_SIZE_MAX);
        s->options.stack_size_bytes = RECORD_STACK_SIZE_MAX;
    }
    s->options.stack_size_bytes &= ~UINT32_C(7);
    if (s->options.cmdline != NULL) {
        s->cmdline_copy = strdup(s->options.cmdline);
        if (s->cmdline_copy == NULL)
            return recordint_out_of_memory(s);
        s->options.cmdline = s->cmdline_copy;
    }
    if (record_max_sample_rate(&limit) == 0)
        limit = 0;
    if (s->options.frequency_hz == RECORD_FREQUENCY_MAX)
        s->options.frequency_hz = limit != 0 ? limit : 999;
    if (limit != 0 && s->options.frequency_hz > limit) {
        s->frequency_refused = true;
        s->refused_hz = s->options.frequency_hz;
        s->limit_hz = limit;
        return recordint_error_set(&s->error, RECORD_ERR_LIMIT, 0,
                                   "frequency %" PRIu32
                                   " Hz is above the kernel's limit of %" PRIu32
                                   " Hz (kernel.perf_event_max_sample_rate)",
                                   s->refused_hz, s->limit_hz);
    }
    return 0;
}

static struct spool_header make_header(const struct record_options *o)
{
    uint64_t realtime = clock_ns(CLOCK_REALTIME), monotonic = clock_ns(CLOCK_MONOTONIC);
    struct spool_header h = {
        .version = o->spool_version,
        .start_us = o->has_start ? o->start_us : realtime / 1000,
        .interval_us = o->has_interval ? o->interval_us : 1000000 / o->frequency_hz,
        .interval_ns = o->has_interval ? o->interval_us * 1000 : SECOND_NS / o->frequency_hz,
    };

    if (o->spool_version >= 4) {
        h.interval_us = 0;
        h.has_origin = true;
        h.origin = (struct spool_origin){
            .monotonic_ns = monotonic,
            .sign = 1,
            .seconds = realtime / SECOND_NS,
            .nanoseconds = (uint32_t)(realtime % SECOND_NS),
        };
    }
    return h;
}

static int prepare(struct record_session *s)
{
    s->config = (struct event_config){
        .frequency_hz = s->options.frequency_hz,
        .stack_size_bytes = s->options.stack_size_bytes,
        .auto_event = s->options.event == RECORD_EVENT_AUTO,
        .cpu_clock = s->options.event == RECORD_EVENT_CPU_CLOCK,
        .kernel = s->options.kernel,
        .exclude_guest = true,
    };
    s->files_limit = recordint_limits_raise_files();
    s->files = recordint_image_files_new(s->files_limit);
    s->cache = recordint_unwind_cache_new();
    s->code_rules = recordint_rule_table_new();
    s->code_pages = recordint_code_pages_new();
    s->unwound = calloc(RECORD_DEPTH_MAX, sizeof *s->unwound);
    s->frames = calloc(RECORD_DEPTH_MAX + 1, sizeof *s->frames);
    s->writer = spool_writer_new();
    if (s->writer != NULL)
        s->mappings = spool_mappings_new(s->writer, SPOOL_MAPPING_BY_ID);
    if (s->files == NULL || s->cache == NULL || s->code_rules == NULL || s->code_pages == NULL ||
        s->unwound == NULL || s->frames == NULL || s->mappings == NULL)
        return recordint_out_of_memory(s);
    spool_writer_set_plain(s->writer, s->options.plain);
    return 0;
}

static int open_session(struct record_session *s, int fd, record_write_fn *write, void *user,
                        const struct record_options *options)
{
    struct spool_header header;
    int rc;

    if (s->opened)
        return misuse(s, "the session was opened before");
    s->opened = true;
    if (!recordint_limits_kernel_at_least(6, 0))
        return recordint_error_set(&s->error, RECORD_ERR_UNSUPPORTED, 0,
                                   "recording needs Linux 6.0 or newer");
    rc = take_options(s, options);
    if (rc < 0)
        return rc;
    rc = prepare(s);
    if (rc < 0)
        return rc;
    header = make_header(&s->options);
    rc = write != NULL ? spool_writer_open_callback(s->writer, write, user, &header)
                       : spool_writer_open_fd(s->writer, fd, &header);
    if (rc == SPOOL_ERR_MISUSE)
        return misuse(s, spool_writer_error(s->writer));
    rc = recordint_spool_result(s, rc);
    if (rc == 0)
        rc = recordint_spool_result(s, spool_writer_flush(s->writer));
    if (rc == 0)
        s->state = SESSION_OPEN;
    s->flushed_ns = recordint_now_ns();
    return rc;
}

int record_session_open_fd(struct record_session *s, int fd, const struct record_options *options)
{
    return open_session(s, fd, NULL, NULL, options);
}

int record_session_open_callback(struct record_session *s, record_write_fn *write, void *user,
                                 const struct record_options *options)
{
    if (write == NULL)
        return misuse(s, "no function to write with");
    return open_session(s, -1, write, user, options);
}

/* ---- rounds ---- */

static int flush(struct record_session *s)
{
    s->flushed_ns = recordint_now_ns();
    return recordint_spool_result(s, spool_writer_flush(s->writer));
}

/* Reads what is not younger than limit_ns. */
static int read_rings(struct record_session *s, uint64_t limit_ns)
{
    uint64_t corrupt;
    const void *data;
    size_t size;
    int rc = 0;

    recordint_order_begin(s->order, limit_ns);
    while (rc == 0 && recordint_order_next(s->order, &data, &size) > 0)
        rc = recordint_record(s, data, size);
    corrupt = recordint_order_corrupt(s->order);
    if (corrupt != s->corrupt_in_rings)
        recordint_records_missed(s);
    s->corrupt_in_rings = corrupt;
    return rc;
}

int recordint_catch_up(struct record_session *s)
{
    int rc = read_rings(s, recordint_now_ns());

    return rc == 0 && s->loss_seen ? recordint_recover(s) : rc;
}

static int cover_new_threads(struct record_session *s)
{
    struct process *p;
    size_t at = 0;

    while ((p = recordint_idmap_next(&s->processes, &at)) != NULL) {
        size_t first = s->counter_count;
        int rc;

        if (!p->wants_events)
            continue;
        p->wants_events = false;
        rc = recordint_attach_threads(s, p, false);
        if (rc == RECORD_ERR_NOMEM)
            return rc;
        if (rc > 0 && p->on)
            rc = recordint_attach_start(s, first);
        if (rc < 0 && !p->cover_refused) {
            p->cover_refused = true; /* tried again with each new thread, and said once */
            recordint_log(s, RECORD_LOG_WARNING, "threads of process %d are not recorded: %s",
                          (int)p->pid, s->error.text);
        }
    }
    return 0;
}

static bool is_active(const struct process *p)
{
    struct procfs_stat stat;
    int system = recordint_procfs_stat(p->pid, 0, &stat);

    if (system == ENOENT || system == ESRCH)
        return false;
    if (system == 0 && p->start_ticks != 0 && stat.start_ticks != p->start_ticks)
        return false;
    /* The first thread may have ended while others run; and descriptors may be short, for /proc too. */
    return (system == 0 && strchr("ZXx", stat.state) == NULL) || record_process_exists(p->pid);
}

/* Processes that are gone although no record says so (it was lost), once their last samples have been read. */
static int end_vanished(struct record_session *s)
{
    struct process *p;
    size_t at = 0;

    if (!s->threads_unsure)
        return 0;
    while ((p = recordint_idmap_next(&s->processes, &at)) != NULL) {
        bool seen_gone = p->gone;
        int rc;

        p->gone = !is_active(p);
        if (!seen_gone || !p->gone)
            continue;
        rc = recordint_process_end(s, p, recordint_now_ns());
        if (rc < 0)
            return rc;
        at--;
    }
    return 0;
}

static int each_second(struct record_session *s, uint64_t now)
{
    struct process *p;
    size_t at = 0;
    int rc;

    if (now - s->second_ns < SECOND_NS)
        return 0;
    s->second_ns = now;
    while ((p = recordint_idmap_next(&s->processes, &at)) != NULL)
        p->rescans_left = RESCANS_A_SECOND;
    recordint_attach_sweep(s);
    rc = recordint_recover(s);
    if (rc == 0)
        rc = end_vanished(s);
    return rc < 0 ? rc : recordint_note_lost(s);
}

static int round_of_reading(struct record_session *s)
{
    uint64_t now = recordint_now_ns();
    uint64_t limit = s->round_ns;
    int rc;

    if (limit > now - SETTLED_NS)
        limit = now - SETTLED_NS;
    s->round_ns = now;
    rc = read_rings(s, limit);
    if (rc == 0 && s->loss_seen)
        rc = recordint_recover(s);
    if (rc == 0)
        rc = cover_new_threads(s);
    if (rc == 0)
        rc = each_second(s, now);
    if (rc == 0 && now - s->flushed_ns >= FLUSH_NS)
        rc = flush(s);
    return rc;
}

/* The descriptors that wake us: of the rings of CPUs, which never end, and of single threads, unless they have. */
static size_t list_polled(struct record_session *s)
{
    size_t wanted = s->cpu_count + s->counter_count, used = 0;

    if (wanted > s->polled_capacity) {
        struct pollfd *grown = realloc(s->polled, 2 * wanted * sizeof *grown);

        if (grown == NULL)
            return 0; /* the time limit wakes us */
        s->polled = grown;
        s->polled_capacity = 2 * wanted;
    }
    for (size_t i = 0; i < s->cpu_count; i++)
        s->polled[used++] = (struct pollfd){.fd = s->cpus[i].fd, .events = POLLIN};
    for (size_t i = 0; i < s->counter_count; i++)
        if (s->counters[i].ring != NULL && !s->counters[i].hung_up)
            s->polled[used++] = (struct pollfd){.fd = s->counters[i].fd, .events = POLLIN};
    return used;
}

/* Waits for a ring to fill. */
static void wait_for_records(struct record_session *s, int timeout_ms)
{
    size_t used = list_polled(s), at = s->cpu_count;

    if (poll(s->polled, used, timeout_ms < 0 || timeout_ms > POLL_MS ? POLL_MS : timeout_ms) <= 0)
        return;
    for (size_t i = 0; i < s->counter_count && at < used; i++)
        if (s->polled[at].fd == s->counters[i].fd)
            s->counters[i].hung_up = (s->polled[at++].revents & POLLHUP) != 0;
}

int record_session_poll(struct record_session *s, int timeout_ms)
{
    uint64_t before = s->counts.samples, written;
    int rc = recordint_ready(s);

    if (rc < 0)
        return rc;
    wait_for_records(s, timeout_ms);
    if (s->order == NULL)
        return 0;
    rc = round_of_reading(s);
    if (rc < 0)
        return rc;
    written = s->counts.samples - before;
    return written > INT_MAX ? INT_MAX : (int)written;
}

int record_session_pending(const struct record_session *s)
{
    return s->order != NULL && recordint_order_pending(s->order);
}

int record_session_flush(struct record_session *s)
{
    int rc = recordint_ready(s);

    return rc < 0 ? rc : flush(s);
}

/* What the rings have left, and the notes that close the spool. */
static int write_the_rest(struct record_session *s)
{
    int rc = s->order != NULL ? read_rings(s, UINT64_MAX) : 0;

    if (rc == 0)
        rc = recordint_note_lost(s);
    if (rc == 0)
        rc = recordint_note_end(s);
    return rc < 0 ? rc : recordint_spool_result(s, spool_writer_finish(s->writer));
}

int record_session_finish(struct record_session *s)
{
    int rc = recordint_ready(s);

    if (s->state != SESSION_OPEN)
        return rc;
    if (rc == 0) {
        (void)recordint_attach_enable(s, false);
        rc = write_the_rest(s);
    }
    s->counts.lost_events = recordint_attach_lost(s);
    s->counts.corrupt_records += s->order != NULL ? recordint_order_corrupt(s->order) : 0;
    recordint_attach_close_all(s);
    s->ended_ns = recordint_now_ns();
    s->state = SESSION_FINISHED;
    return rc;
}

/* ---- what can be asked ---- */

const char *record_session_error(const struct record_session *s)
{
    return s->error.code != 0 ? s->error.text : "no error";
}

int record_session_frequency_error(const struct record_session *s, uint32_t *asked_hz,
                                   uint32_t *limit_hz)
{
    if (!s->frequency_refused)
        return 0;
    *asked_hz = s->refused_hz;
    *limit_hz = s->limit_hz;
    return 1;
}

int record_session_process_active(struct record_session *s, pid_t pid)
{
    const struct process *p = recordint_process_find(s, pid);

    return p != NULL && is_active(p);
}

static size_t count_active(const struct record_session *s, pid_t except)
{
    const struct process *p;
    size_t at = 0, count = 0;

    while ((p = recordint_idmap_next(&s->processes, &at)) != NULL)
        count += p->pid != except && is_active(p);
    return count;
}

/* Those that we know of have ended: a child that lives on may still stand in a ring. An error is told by the next
 * call that may fail. */
static void look_for_children(struct record_session *s)
{
    if (s->state == SESSION_OPEN && s->sticky == 0 && record_session_pending(s))
        (void)recordint_catch_up(s);
}

size_t record_session_process_count(struct record_session *s, pid_t except)
{
    size_t count = count_active(s, except);

    if (count > 0)
        return count;
    look_for_children(s);
    return count_active(s, except);
}

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return (x > y) - (x < y);
}

size_t record_session_processes(struct record_session *s, pid_t *pids, size_t max)
{
    const struct process *p;
    size_t at = 0, count = 0;

    if (count_active(s, 0) == 0)
        look_for_children(s);
    while ((p = recordint_idmap_next(&s->processes, &at)) != NULL) {
        if (!is_active(p))
            continue;
        if (count < max)
            pids[count] = p->pid;
        count++;
    }
    if (max > 0)
        qsort(pids, count < max ? count : max, sizeof *pids, compare_pids);
    return count;
}

void record_session_summary(const struct record_session *s, struct record_summary *out)
{
    *out = s->counts;
    out->kernel_enabled = s->config.kernel;
    out->event = s->config.settled ? recordint_event_name(&s->config) : "";
    out->frequency_hz = s->options.frequency_hz;
    out->bytes = s->writer != NULL ? spool_writer_bytes(s->writer) : 0;
    if (s->begun_ns != 0)
        out->duration_ns = (s->ended_ns != 0 ? s->ended_ns : recordint_now_ns()) - s->begun_ns;
    if (s->state == SESSION_OPEN) {
        uint64_t told = s->lost_in_records + s->lost_before_ring;

        out->lost_events = told > s->lost_noted ? told : s->lost_noted;
        out->corrupt_records += s->order != NULL ? recordint_order_corrupt(s->order) : 0;
    }
}

const char *record_mode_name(enum record_mode mode)
{
    switch (mode) {
    case RECORD_MODE_NONE:
        break;
    case RECORD_MODE_INHERIT:
        return "inherit";
    case RECORD_MODE_PER_THREAD:
        return "per-thread";
    case RECORD_MODE_SYSTEM_WIDE:
        return "system-wide";
    }
    return "none";
}
