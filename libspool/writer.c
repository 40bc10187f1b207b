/* SPDX-License-Identifier: MIT */
/*
 * Writing spools: gives out ids, buffers whole records and hands them on. What a reader would refuse is found by
 * writer_check.c, records with ids of the caller are in writer_put.c; the bytes of a record are the business of
 * record.c, the id tables that of intern.c.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "annotation.h"
#include "error.h"
#include "format.h"
#include "intern.h"
#include "record.h"
#include "writer_internal.h"

#define BUFFER_SIZE ((size_t)256 << 10)
/* Room behind it, so that an ordinary record that passes the mark does not make the buffer grow. */
#define BUFFER_SLACK ((size_t)64 << 10)

/* ---- errors ---- */

/* The error just set ends the output: the records after it would refer to what was lost. */
static int make_sticky(struct spool_writer *w)
{
    w->sticky = w->error.code;
    w->sticky_error = w->error;
    return w->sticky;
}

static int fail_nomem(struct spool_writer *w, const char *what)
{
    spoolint_error_set(&w->error, SPOOL_ERR_NOMEM, "out of memory for %s", what);
    return make_sticky(w);
}

static int repeat_sticky(struct spool_writer *w)
{
    w->error = w->sticky_error;
    return w->sticky;
}

/* What every call on an open writer begins with. */
int spoolint_writer_ready(struct spool_writer *w)
{
    if (w->sticky != 0)
        return repeat_sticky(w);
    if (w->state == WRITER_OPEN)
        return 0;
    return writer_misuse(w, w->state == WRITER_NEW ? "the writer is not open"
                                                   : "the writer is finished");
}

/* ---- output ---- */

/* Waits until a descriptor in non-blocking mode takes more. */
static int wait_writable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    while (poll(&p, 1, -1) < 0)
        if (errno != EINTR)
            return errno;
    return 0; /* also for POLLERR and POLLHUP: the next write says what it is */
}

/* The output function of descriptors. */
static int write_to_fd(void *user, const void *data, size_t size)
{
    const struct spool_writer *w = user;
    const uint8_t *p = data;

    while (size > 0) {
        ssize_t n = write(w->fd, p, size);

        if (n > 0) {
            p += n;
            size -= (size_t)n;
        } else if (n == 0) {
            return EIO; /* nothing taken and no reason given: trying on could go on for ever */
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            int rc = wait_writable(w->fd);

            if (rc != 0)
                return rc;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static int hand_over(struct spool_writer *w)
{
    int rc;

    if (w->buffer.size == 0)
        return 0;
    rc = w->write(w->user, w->buffer.data, w->buffer.size);
    if (rc != 0) {
        spoolint_error_set(&w->error, SPOOL_ERR_IO,
                           "writing failed at byte %" PRIu64 " of the spool: %s", w->handed_over,
                           strerror(rc));
        return make_sticky(w);
    }
    w->handed_over += w->buffer.size;
    w->buffer.size = 0;
    return 0;
}

int spoolint_writer_emit(struct spool_writer *w, const struct spool_record *rec)
{
    spoolint_record_encode(&w->buffer, w->version, rec);
    if (w->buffer.failed)
        return fail_nomem(w, "the output buffer");
    return w->buffer.size < BUFFER_SIZE ? 0 : hand_over(w);
}

/* ---- modules ---- */

static bool grow_modules(struct spool_writer *w)
{
    size_t capacity = w->module_capacity == 0 ? MODULES_A_CHUNK : w->module_capacity * 2;
    struct module_chunk **grown;
    uint8_t *retired;

    if (capacity > SIZE_MAX / sizeof *grown)
        return false;
    grown = realloc(w->modules, capacity / MODULES_A_CHUNK * sizeof *grown);
    if (grown == NULL)
        return false;
    w->modules = grown;
    retired = realloc(w->retired, capacity / 8);
    if (retired == NULL)
        return false;
    memset(retired + w->module_capacity / 8, 0, (capacity - w->module_capacity) / 8);
    w->retired = retired;
    w->module_capacity = capacity;
    return true;
}

/* Makes room for the next module's facts. */
static bool reserve_module(struct spool_writer *w)
{
    if (w->module_count == w->module_capacity && !grow_modules(w))
        return false;
    if (w->module_count % MODULES_A_CHUNK == 0) {
        struct module_chunk *chunk = calloc(1, sizeof *chunk);

        if (chunk == NULL)
            return false;
        w->modules[w->module_count / MODULES_A_CHUNK] = chunk;
    }
    return true;
}

void spoolint_writer_retire(struct spool_writer *w, uint32_t module_id)
{
    uint8_t bit = (uint8_t)(1u << module_id % 8);
    struct module_chunk **chunk = &w->modules[module_id / MODULES_A_CHUNK];

    if ((w->retired[module_id / 8] & bit) != 0)
        return;
    w->retired[module_id / 8] |= bit;
    if (++(*chunk)->retired == MODULES_A_CHUNK) {
        free(*chunk);
        *chunk = NULL;
    }
}

static int check_annotation(struct spool_writer *w, const struct spool_module *m)
{
    struct spool_annotation parsed;

    if (!spoolint_annotation_parse(m, &parsed))
        return writer_misuse(
            w, "annotation that readers would not take for one: its value does not fit "
               "its key, or it maps something");
    return 0;
}

int spoolint_writer_put_module(struct spool_writer *w, enum spool_record_type type,
                               const struct spool_module *module)
{
    struct spool_record rec = {.type = type};
    struct spool_module *m = type == SPOOL_RECORD_ANNOTATION ? &rec.annotation.module : &rec.module;
    int rc;

    *m = *module;
    m->id = w->module_count;
    m->jit = type == SPOOL_RECORD_JIT_MODULE;
    if (m->path_size == 0)
        m->path = "";
    rc = spoolint_writer_check_module(w, m);
    if (rc < 0)
        return rc;
    if (type == SPOOL_RECORD_ANNOTATION)
        rc = check_annotation(w, m);
    if (rc < 0)
        return rc;
    if (!reserve_module(w))
        return fail_nomem(w, "a module");
    w->modules[w->module_count / MODULES_A_CHUNK]->facts[w->module_count % MODULES_A_CHUNK] =
        (struct module_facts){
            .file_offset = m->file_offset,
            .size = m->end > m->start ? m->end - m->start : 0,
        };
    w->module_count++;
    /* Annotations own no address, so they alone leave the loose frames in force. No frame is in one, so that nothing has
     * to be kept of it, and of the modules beside it, until somebody retires it. */
    if (type == SPOOL_RECORD_ANNOTATION)
        spoolint_writer_retire(w, w->module_count - 1);
    else
        spoolint_intern_drop_loose(&w->ids);
    return spoolint_writer_emit(w, &rec);
}

int spool_writer_module(struct spool_writer *w, const struct spool_module *module, uint32_t *id)
{
    struct spool_module m;
    int rc = spoolint_writer_ready(w);

    if (rc < 0)
        return rc;
    m = *module;
    /* Readers ignore it; this is what writers of version 4 store. */
    if (m.kernel && w->version >= FORMAT_VERSION_ORIGIN)
        m.pid = -1;
    rc = spoolint_writer_put_module(w, m.jit ? SPOOL_RECORD_JIT_MODULE : SPOOL_RECORD_MODULE, &m);
    if (rc == 0 && id != NULL)
        *id = w->module_count - 1;
    return rc;
}

int spool_writer_annotate(struct spool_writer *w, int32_t pid, const char *key, const char *value)
{
    char path[FORMAT_NOTE_PATH_MAX + 1];
    struct spool_record rec = {.type = SPOOL_RECORD_ANNOTATION};
    int rc = spoolint_writer_ready(w);

    if (rc < 0)
        return rc;
    if (pid < 1)
        return writer_misuse(w, "annotation about process %" PRId32, pid);
    rec.annotation.module.pid = pid;
    rec.annotation.module.path_size = spoolint_annotation_path(key, value, path);
    if (rec.annotation.module.path_size == 0)
        return writer_misuse(w, "annotation whose key is not 1 to 32 of a-z, 0-9 and '-'");
    rec.annotation.module.path = path;
    if (w->plain)
        return check_annotation(w, &rec.annotation.module);
    return spoolint_writer_put_module(w, SPOOL_RECORD_ANNOTATION, &rec.annotation.module);
}

void spool_writer_set_plain(struct spool_writer *w, bool plain)
{
    w->plain = plain;
}

/* ---- samples by stack contents ---- */

static int intern_frame(struct spool_writer *w, const struct spool_writer_frame *f, uint32_t *id)
{
    switch (f->kind) {
    case SPOOL_FRAME_PINNED:
        return spoolint_intern_pinned(&w->ids, f->module_id, f->address, id);
    case SPOOL_FRAME_UNPINNED:
        return spoolint_intern_loose(&w->ids, f->kernel, f->address, id);
    case SPOOL_FRAME_TRUNCATED:
        break;
    }
    return spoolint_intern_marker(&w->ids, id);
}

static bool find_frame(const struct spool_writer *w, const struct spool_writer_frame *f,
                       uint32_t *id)
{
    switch (f->kind) {
    case SPOOL_FRAME_PINNED:
        return spoolint_intern_find_pinned(&w->ids, f->module_id, f->address, id);
    case SPOOL_FRAME_UNPINNED:
        return spoolint_intern_find_loose(&w->ids, f->kernel, f->address, id);
    case SPOOL_FRAME_TRUNCATED:
        break;
    }
    return spoolint_intern_find_marker(&w->ids, id);
}

/* Whether the ids that a sample needs are left, without taking any. Frames that are new and occur
 * twice in it count twice, so that at the very end of the ids a recursive stack may be refused that
 * would just have fitted. */
static int check_ids_left(struct spool_writer *w, int32_t pid, uint64_t tid,
                          const struct spool_writer_frame *frames, size_t count)
{
    uint32_t max = w->id_count_max;
    uint32_t prefix = SPOOL_NO_ID;
    uint32_t frame, thread;
    size_t new_frames = 0, new_stacks = 0;

    if (count <= max - w->ids.frame_count && count <= max - w->ids.stack_count &&
        w->ids.thread_count < max)
        return 0;
    for (size_t i = count; i-- > 0;) {
        bool known = find_frame(w, &frames[i], &frame);

        if (!known)
            new_frames++;
        /* Below a new node all nodes are new. */
        if (new_stacks > 0 || !known ||
            !spoolint_intern_find_stack(&w->ids, prefix, frame, &prefix))
            new_stacks++;
    }
    if (new_frames > max - w->ids.frame_count)
        return spoolint_writer_id_limit_error(w, "frames");
    if (new_stacks > max - w->ids.stack_count)
        return spoolint_writer_id_limit_error(w, "stack nodes");
    if (w->ids.thread_count == max && !spoolint_intern_find_thread(&w->ids, pid, tid, &thread))
        return spoolint_writer_id_limit_error(w, "threads");
    return 0;
}

static int write_new_frame(struct spool_writer *w, const struct spool_writer_frame *f, uint32_t id)
{
    struct spool_record rec;

    rec.type = SPOOL_RECORD_FRAME;
    rec.frame = (struct spool_frame){
        .id = id,
        .kind = f->kind,
        .kernel = f->kernel,
        .module_id = f->module_id,
        .rel = f->address,
        .abs = f->address,
    };
    return spoolint_writer_emit(w, &rec);
}

static int write_new_stack(struct spool_writer *w, uint32_t id, uint32_t prefix, uint32_t frame)
{
    struct spool_record rec;

    rec.type = SPOOL_RECORD_STACK;
    rec.stack = (struct spool_stack){.id = id, .prefix = prefix, .frame = frame};
    return spoolint_writer_emit(w, &rec);
}

/* Defines what is new of a stack, from its root to its leaf: frames and nodes alternate, as
 * stackpulse writes them. */
static int define_stack(struct spool_writer *w, const struct spool_writer_frame *frames,
                        size_t count, uint32_t *stack)
{
    uint32_t node = SPOOL_NO_ID;

    for (size_t i = count; i-- > 0;) {
        uint32_t prefix = node;
        uint32_t frame;
        int rc = intern_frame(w, &frames[i], &frame);

        if (rc < 0)
            return fail_nomem(w, "the table of frames");
        if (rc > 0) {
            rc = write_new_frame(w, &frames[i], frame);
            if (rc < 0)
                return rc;
        }
        rc = spoolint_intern_stack(&w->ids, prefix, frame, &node);
        if (rc < 0)
            return fail_nomem(w, "the table of stack nodes");
        if (rc > 0) {
            rc = write_new_stack(w, node, prefix, frame);
            if (rc < 0)
                return rc;
        }
    }
    *stack = node;
    return 0;
}

static int define_thread(struct spool_writer *w, int32_t pid, uint64_t tid, uint32_t *thread)
{
    struct spool_record rec;
    int rc = spoolint_intern_thread(&w->ids, pid, tid, thread);

    if (rc < 0)
        return fail_nomem(w, "the table of threads");
    if (rc == 0)
        return 0;
    rec.type = SPOOL_RECORD_THREAD;
    rec.thread = (struct spool_thread){.id = *thread, .pid = pid, .tid = tid};
    return spoolint_writer_emit(w, &rec);
}

int spoolint_writer_put_sample(struct spool_writer *w, uint64_t time_ns, int64_t delta_ns,
                               uint32_t thread, uint32_t stack)
{
    struct spool_record rec;
    int rc;

    rec.type = SPOOL_RECORD_SAMPLE;
    rec.sample.delta_ns = delta_ns;
    rec.sample.thread = thread;
    rec.sample.stack = stack;
    rc = spoolint_writer_emit(w, &rec);
    if (rc == 0)
        w->time_ns = time_ns;
    return rc;
}

int spoolint_writer_check_mode(struct spool_writer *w, enum id_mode mode)
{
    if (w->mode != IDS_UNDECIDED && w->mode != mode)
        return writer_misuse(w, "spool_writer_sample and records with given ids in one spool");
    return 0;
}

/* All of a sample that could be refused, so that a refused one leaves no trace. */
static int check_sample(struct spool_writer *w, uint64_t time_ns, int32_t pid, uint64_t tid,
                        const struct spool_writer_frame *frames, size_t count, int64_t *delta_ns)
{
    int rc = spoolint_writer_check_mode(w, IDS_INTERNED);

    if (rc == 0)
        rc = spoolint_writer_check_thread(w, "sample", pid, tid);
    if (rc == 0)
        rc = spoolint_writer_check_delta(w, time_ns, delta_ns);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct spool_writer_frame *f = &frames[i];

        if (f->kind == SPOOL_FRAME_TRUNCATED && i != count - 1)
            rc = writer_misuse(w, "truncated-stack marker as frame %zu of %zu, not as the root", i,
                               count);
        else
            rc = spoolint_writer_check_frame_kind(w, f->kind, f->kernel, f->module_id, f->address);
    }
    if (rc == 0)
        rc = check_ids_left(w, pid, tid, frames, count);
    return rc;
}

int spool_writer_sample(struct spool_writer *w, uint64_t time_ns, int32_t pid, uint64_t tid,
                        const struct spool_writer_frame *frames, size_t frame_count)
{
    uint32_t stack = SPOOL_NO_ID, thread = SPOOL_NO_ID;
    int64_t delta_ns = 0;
    int rc = spoolint_writer_ready(w);

    if (rc < 0 || frame_count == 0)
        return rc;
    rc = check_sample(w, time_ns, pid, tid, frames, frame_count, &delta_ns);
    if (rc < 0)
        return rc;
    w->mode = IDS_INTERNED;
    if (spoolint_intern_sweep_due(&w->ids) && w->retired != NULL)
        spoolint_intern_sweep(&w->ids, w->retired);
    rc = define_stack(w, frames, frame_count, &stack);
    if (rc < 0)
        return rc;
    rc = define_thread(w, pid, tid, &thread);
    if (rc < 0)
        return rc;
    return spoolint_writer_put_sample(w, time_ns, delta_ns, thread, stack);
}

/* ---- the other records ---- */

int spool_writer_python(struct spool_writer *w, uint64_t time_ns, int32_t pid, bool on)
{
    struct spool_record rec = {.type = SPOOL_RECORD_PYTHON};
    int rc = spoolint_writer_ready(w);

    if (rc < 0)
        return rc;
    if (spoolint_writer_bad_pid(w, pid))
        return spoolint_writer_pid_error(w, "Python runtime record", pid);
    rec.python = (struct spool_python){.time_ns = time_ns, .pid = pid, .on = on};
    return spoolint_writer_emit(w, &rec);
}

int spool_writer_deactivate_process(struct spool_writer *w, int32_t pid)
{
    struct spool_record rec = {.type = SPOOL_RECORD_DEACTIVATE_PROCESS};
    int rc = spoolint_writer_ready(w);

    if (rc < 0)
        return rc;
    if (spoolint_writer_bad_pid(w, pid))
        return spoolint_writer_pid_error(w, "process deactivation", pid);
    rec.deactivated_pid = pid;
    spoolint_intern_drop_loose(&w->ids);
    return spoolint_writer_emit(w, &rec);
}

int spool_writer_deactivate_module(struct spool_writer *w, uint32_t module_id)
{
    struct spool_record rec = {.type = SPOOL_RECORD_DEACTIVATE_MODULE};
    int rc = spoolint_writer_ready(w);

    if (rc < 0)
        return rc;
    if (w->version < FORMAT_VERSION_MODULE_DEACTIVATION)
        return writer_misuse(w, "module deactivation in version %" PRIu32, w->version);
    if (module_id >= w->module_count)
        return writer_misuse(w, "deactivation of module %" PRIu32 " of %" PRIu32, module_id,
                             w->module_count);
    rec.deactivated_module = module_id;
    spoolint_writer_retire(w, module_id);
    spoolint_intern_drop_loose(&w->ids);
    return spoolint_writer_emit(w, &rec);
}

/* ---- lifetime ---- */

struct spool_writer *spool_writer_new(void)
{
    struct spool_writer *w = calloc(1, sizeof *w);

    if (w == NULL)
        return NULL;
    w->id_count_max = FORMAT_ID_MAX + 1;
    spoolint_intern_init(&w->ids);
    return w;
}

void spool_writer_free(struct spool_writer *w)
{
    if (w == NULL)
        return;
    spoolint_intern_free(&w->ids);
    for (size_t i = 0; i * MODULES_A_CHUNK < w->module_count; i++)
        free(w->modules[i]);
    free(w->modules);
    free(w->retired);
    free(w->buffer.data);
    free(w);
}

static int open_output(struct spool_writer *w, spool_write_fn *write, void *user,
                       const struct spool_header *header)
{
    int rc;

    if (w->sticky != 0)
        return repeat_sticky(w);
    if (w->state != WRITER_NEW)
        return writer_misuse(w, "the writer was opened before");
    rc = spoolint_writer_check_header(w, header);
    if (rc < 0)
        return rc;
    if (!spoolint_buffer_reserve(&w->buffer, BUFFER_SIZE + BUFFER_SLACK))
        return fail_nomem(w, "the output buffer");
    spoolint_record_encode_header(&w->buffer, header);
    assert(!w->buffer.failed);
    w->write = write;
    w->user = user;
    w->version = header->version;
    w->state = WRITER_OPEN;
    return 0;
}

int spool_writer_open_fd(struct spool_writer *w, int fd, const struct spool_header *header)
{
    int rc = open_output(w, write_to_fd, w, header);

    if (rc == 0)
        w->fd = fd;
    return rc;
}

int spool_writer_open_callback(struct spool_writer *w, spool_write_fn *write, void *user,
                               const struct spool_header *header)
{
    return open_output(w, write, user, header);
}

int spool_writer_flush(struct spool_writer *w)
{
    int rc = spoolint_writer_ready(w);

    return rc < 0 ? rc : hand_over(w);
}

int spool_writer_finish(struct spool_writer *w)
{
    int rc = spool_writer_flush(w);

    if (rc == 0)
        w->state = WRITER_FINISHED;
    return rc;
}

uint64_t spool_writer_bytes(const struct spool_writer *w)
{
    return w->handed_over + w->buffer.size;
}

const char *spool_writer_error(const struct spool_writer *w)
{
    return spoolint_error_get(&w->error);
}

void spoolint_writer_allow_old_versions(struct spool_writer *w)
{
    w->old_versions = true;
}

void spoolint_writer_limit_ids(struct spool_writer *w, uint32_t count)
{
    w->id_count_max = count;
}
