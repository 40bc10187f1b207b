/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a spool: read, asked about in every way, and written again record by record; what
 * was written must read as the same records. And as a file that grows, followed record by record and
 * in batches, which must come to the same samples and the same verdict.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "spool/spool.h"
#include "writer_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Kept in release builds, unlike assert. */
#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

#define WALKED_MAX 300  /* frames of a stack that are looked at */
#define SAMPLES_MAX 100 /* samples whose stacks are */
#define FRAMES_MAX 2000 /* frames that are located in the end */

/* ---- equality ---- */

static bool same_text(const char *a, size_t a_size, const char *b, size_t b_size)
{
    return a_size == b_size && memcmp(a, b, a_size + 1) == 0; /* with the NUL */
}

static void check_same_module(const struct spool_module *a, const struct spool_module *b)
{
    CHECK(a->id == b->id && a->pid == b->pid && a->kernel == b->kernel && a->jit == b->jit);
    CHECK(a->start == b->start && a->end == b->end && a->file_offset == b->file_offset);
    CHECK(a->inode == b->inode && a->inode_gen == b->inode_gen);
    CHECK(a->dev_major == b->dev_major && a->dev_minor == b->dev_minor);
    CHECK(a->retired_at_frame == b->retired_at_frame);
    CHECK(same_text(a->path, a->path_size, b->path, b->path_size));
    CHECK(a->jit_symbol_count == b->jit_symbol_count);
    for (size_t i = 0; i < a->jit_symbol_count; i++) {
        const struct spool_jit_symbol *s = &a->jit_symbols[i], *t = &b->jit_symbols[i];

        CHECK(s->start == t->start && s->end == t->end);
        CHECK(same_text(s->name, s->name_size, t->name, t->name_size));
    }
}

static void check_same_annotation(const struct spool_annotation *a,
                                  const struct spool_annotation *b)
{
    check_same_module(&a->module, &b->module);
    CHECK(a->pid == b->pid && a->key == b->key && a->key_size == b->key_size);
    CHECK(memcmp(a->key_text, b->key_text, a->key_size) == 0);
    CHECK(same_text(a->value, a->value_size, b->value, b->value_size));
    CHECK(same_text(a->text, a->text_size, b->text, b->text_size));
    CHECK(memcmp(a->number, b->number, sizeof a->number) == 0);
}

static void check_same_frame(const struct spool_frame *a, const struct spool_frame *b)
{
    CHECK(a->id == b->id && a->kind == b->kind && a->kernel == b->kernel);
    CHECK(a->module_id == b->module_id && a->rel == b->rel && a->abs == b->abs);
}

static void check_same_record(const struct spool_record *a, const struct spool_record *b)
{
    CHECK(a->type == b->type);
    switch (a->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        check_same_module(&a->module, &b->module);
        break;
    case SPOOL_RECORD_FRAME:
        check_same_frame(&a->frame, &b->frame);
        break;
    case SPOOL_RECORD_STACK:
        CHECK(a->stack.id == b->stack.id && a->stack.prefix == b->stack.prefix);
        CHECK(a->stack.frame == b->stack.frame && a->stack.depth == b->stack.depth);
        break;
    case SPOOL_RECORD_THREAD:
        CHECK(a->thread.id == b->thread.id && a->thread.pid == b->thread.pid);
        CHECK(a->thread.tid == b->thread.tid);
        break;
    case SPOOL_RECORD_SAMPLE:
        CHECK(a->sample.index == b->sample.index && a->sample.delta_ns == b->sample.delta_ns);
        CHECK(a->sample.time_ns == b->sample.time_ns);
        CHECK(a->sample.thread == b->sample.thread && a->sample.stack == b->sample.stack);
        CHECK(a->sample.pid == b->sample.pid && a->sample.tid == b->sample.tid);
        break;
    case SPOOL_RECORD_PYTHON:
        CHECK(a->python.time_ns == b->python.time_ns && a->python.pid == b->python.pid);
        CHECK(a->python.on == b->python.on);
        break;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        CHECK(a->deactivated_pid == b->deactivated_pid);
        break;
    case SPOOL_RECORD_DEACTIVATE_MODULE:
        CHECK(a->deactivated_module == b->deactivated_module);
        break;
    case SPOOL_RECORD_ANNOTATION:
        check_same_annotation(&a->annotation, &b->annotation);
        break;
    }
}

/* ---- asking ---- */

/* Where a frame belongs; the answer must be one that the format allows. */
static void locate(struct spool_reader *r, uint32_t id, int32_t pid, uint32_t *module,
                   uint64_t *rel)
{
    struct spool_frame f;
    const struct spool_module *m;
    int rc;

    CHECK(spool_reader_frame(r, id, &f));
    rc = spool_reader_locate(r, id, pid, module, rel);
    if (rc == 0) {
        CHECK(*module == SPOOL_NO_ID);
        CHECK(f.kind != SPOOL_FRAME_PINNED);
        *rel = 0;
        return;
    }
    CHECK(rc == 1);
    m = spool_reader_module(r, *module);
    CHECK(m != NULL);
    CHECK(f.kind != SPOOL_FRAME_TRUNCATED && f.kernel == m->kernel);
    CHECK(m->start <= f.abs && f.abs < m->end);
    CHECK(*rel == f.abs - m->start + m->file_offset && *rel >= m->file_offset);
    if (f.kind == SPOOL_FRAME_PINNED)
        CHECK(*module == f.module_id && *rel == f.rel);
    else
        CHECK((m->kernel || m->pid == pid) && id < m->retired_at_frame);
}

static void look_at_sample(struct spool_reader *r, const struct spool_sample *s)
{
    uint32_t frames[16], node = s->stack, module;
    struct spool_wall_time wall;
    struct spool_stack stack;
    size_t walked = 0, got;
    uint64_t rel;
    int rc;

    CHECK(spool_reader_stack(r, s->stack, &stack));
    while (walked < WALKED_MAX && (got = spool_reader_walk(r, &node, frames, 16)) > 0) {
        for (size_t i = 0; i < got; i++)
            locate(r, frames[i], s->pid, &module, &rel);
        walked += got;
    }
    if (node == SPOOL_NO_ID)
        CHECK(walked == stack.depth);
    CHECK(spool_reader_timeline_us(r, s->time_ns) >= spool_reader_header(r)->start_us);
    rc = spool_reader_wall_time(r, s->time_ns, &wall);
    CHECK(rc == 0 || rc == 1 || rc == SPOOL_ERR_LIMIT);
    if (rc == 1)
        CHECK(wall.nanoseconds < 1000000000);
}

static void look_at_tables(struct spool_reader *r)
{
    struct spool_counts c;
    const uint64_t *addresses;
    size_t count;

    spool_reader_counts(r, &c);
    CHECK(spool_reader_kernel_addresses(r, &addresses, &count) == 0);
    CHECK(count <= c.frames);
    for (size_t i = 1; i < count; i++)
        CHECK(addresses[i - 1] < addresses[i]);
    for (uint32_t i = 0; i < c.threads && i < FRAMES_MAX; i++) {
        struct spool_thread t;

        CHECK(spool_reader_thread(r, i, &t) && t.id == i);
    }
}

/* Both readers end with the same answers. */
static void check_same_answers(struct spool_reader *a, struct spool_reader *b)
{
    struct spool_counts c, d;

    spool_reader_counts(a, &c);
    spool_reader_counts(b, &d);
    CHECK(c.modules == d.modules && c.annotations == d.annotations && c.frames == d.frames);
    CHECK(c.stacks == d.stacks && c.threads == d.threads);
    CHECK(c.samples == d.samples && c.python == d.python);
    for (uint32_t i = 0; i < c.modules; i++) {
        const struct spool_module *m = spool_reader_module(a, i), *n = spool_reader_module(b, i);

        CHECK((m == NULL) == (n == NULL));
        if (m != NULL)
            check_same_module(m, n);
    }
    for (uint32_t i = 0; i < c.frames && i < FRAMES_MAX; i++) {
        for (int32_t pid = 6; pid < 9; pid++) {
            uint32_t module, other;
            uint64_t rel, other_rel;

            locate(a, i, pid, &module, &rel);
            locate(b, i, pid, &other, &other_rel);
            CHECK(module == other && rel == other_rel);
        }
    }
}

/* ---- writing ---- */

struct output {
    uint8_t *data;
    size_t size;
};

static int take(void *user, const void *data, size_t size)
{
    struct output *o = user;

    o->data = realloc(o->data, o->size + size);
    CHECK(o->data != NULL);
    memcpy(o->data + o->size, data, size);
    o->size += size;
    return 0;
}

static struct spool_writer *open_writer(struct output *o, const struct spool_header *h)
{
    struct spool_writer *w = spool_writer_new();

    CHECK(w != NULL);
    spoolint_writer_allow_old_versions(w);
    CHECK(spool_writer_open_callback(w, take, o, h) == 0);
    return w;
}

/* Input and output side by side. */
static void check_same_spools(const uint8_t *data, size_t size, const struct output *o)
{
    struct spool_reader *a = spool_reader_new(), *b = spool_reader_new();
    const struct spool_header *h, *i;
    struct spool_record rec, again;
    int rc;

    CHECK(a != NULL && b != NULL);
    CHECK(spool_reader_open_memory(a, data, size) == 0);
    CHECK(spool_reader_open_memory(b, o->data, o->size) == 0);
    h = spool_reader_header(a);
    i = spool_reader_header(b);
    CHECK(h->version == i->version && h->start_us == i->start_us);
    CHECK(h->interval_us == i->interval_us && h->interval_ns == i->interval_ns);
    CHECK(h->has_origin == i->has_origin && h->origin.monotonic_ns == i->origin.monotonic_ns);
    CHECK(h->origin.sign == i->origin.sign && h->origin.seconds == i->origin.seconds);
    CHECK(h->origin.nanoseconds == i->origin.nanoseconds);
    while ((rc = spool_reader_next(a, &rec)) > 0) {
        CHECK(spool_reader_next(b, &again) == 1);
        check_same_record(&rec, &again);
    }
    CHECK(rc == 0);
    CHECK(spool_reader_next(b, &again) == 0);
    CHECK(!spool_reader_cut_tail(b));
    CHECK(spool_reader_kept_bytes(b) == o->size);
    CHECK(o->size <= spool_reader_kept_bytes(a)); /* shortest forms only */
    check_same_answers(a, b);
    spool_reader_free(a);
    spool_reader_free(b);
}

/* ---- following ---- */

/* What was read, in a form that can be compared. */
struct outcome {
    uint64_t samples;
    uint64_t hash;
    int rc;
};

static void add_sample(struct outcome *o, const struct spool_sample *s)
{
    const uint64_t fields[] = {s->index, (uint64_t)s->delta_ns, s->time_ns, s->thread,
                               s->stack, (uint64_t)s->pid,      s->tid};

    CHECK(s->index == o->samples);
    o->samples++;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        o->hash = (o->hash ^ fields[i]) * 0x9e3779b97f4a7c15u;
}

static void read_records(struct spool_reader *r, struct outcome *o)
{
    struct spool_record rec;

    while ((o->rc = spool_reader_next(r, &rec)) > 0)
        if (rec.type == SPOOL_RECORD_SAMPLE)
            add_sample(o, &rec.sample);
}

static void read_batches(struct spool_tail *t, struct outcome *o)
{
    struct spool_tail_batch b;
    struct spool_counts c;

    while ((o->rc = spool_tail_poll(t, &b)) > 0 || (o->rc == 0 && b.more)) {
        CHECK(b.sample_count <= 16384);
        for (size_t i = 0; i < b.sample_count; i++)
            add_sample(o, &b.samples[i]);
        spool_reader_counts(spool_tail_reader(t), &c);
        CHECK(b.modules_begin <= b.modules_end && b.modules_end == c.modules);
        CHECK(b.frames_begin <= b.frames_end && b.frames_end == c.frames);
        CHECK(b.retired_pid_count <= 1 && !b.ended);
        for (size_t i = 0; i < b.retired_module_count; i++) {
            CHECK(b.retired_modules[i] < c.modules);
            CHECK(i == 0 || b.retired_modules[i - 1] < b.retired_modules[i]);
        }
    }
}

/* A descriptor whose limit moves on is a file that grows. The open call needs the header, so it is tried again with
 * more; what else it says is final. */
static int open_growing(struct spool_reader **r, struct spool_tail **t, bool batches, int fd,
                        size_t *limit, size_t step, size_t size)
{
    int rc;

    for (;;) {
        *t = batches ? spool_tail_new() : NULL;
        *r = batches ? spool_tail_reader(*t) : spool_reader_new();
        CHECK(*r != NULL && lseek(fd, 0, SEEK_SET) == 0);
        spool_reader_tail_limit(*r, *limit);
        rc = batches ? spool_tail_open_fd(*t, fd) : spool_reader_open_tail_fd(*r, fd);
        if (rc != SPOOL_ERR_TRUNCATED || *limit >= size)
            return rc;
        if (batches)
            spool_tail_free(*t);
        else
            spool_reader_free(*r);
        *limit += step;
    }
}

static void follow(struct spool_reader *plain, const struct outcome *expected, int fd, size_t size,
                   bool batches)
{
    const size_t step = size / (batches ? 5 : 11) + 1;
    size_t limit = step + 1; /* two bytes tell whether it is gzip */
    struct spool_reader *r;
    struct spool_tail *t;
    struct outcome o = {0};

    o.rc = open_growing(&r, &t, batches, fd, &limit, step, size);
    while (o.rc == 0) {
        if (batches)
            read_batches(t, &o);
        else
            read_records(r, &o);
        if (limit >= size)
            break;
        limit += step;
        spool_reader_tail_limit(r, limit);
    }
    CHECK((spool_reader_header(r) != NULL) == (spool_reader_header(plain) != NULL));
    CHECK((o.rc < 0) == (expected->rc < 0));
    CHECK(o.samples == expected->samples && o.hash == expected->hash);
    CHECK(spool_reader_error_code(r) == o.rc);
    /* Damaged gzip: where inflate notices it depends on what it is given, and so does what is there of a header that
     * is none. */
    if (!spool_reader_is_gzip(r) || spool_reader_header(r) != NULL)
        CHECK(o.rc == expected->rc);
    if (!spool_reader_is_gzip(r) && spool_reader_header(r) != NULL)
        CHECK(strcmp(spool_reader_error(r), spool_reader_error(plain)) == 0);
    CHECK(spool_reader_kept_bytes(r) == spool_reader_kept_bytes(plain));
    CHECK(spool_reader_cut_tail(r) == spool_reader_cut_tail(plain));
    CHECK(!spool_reader_tail_ended(r));
    check_same_answers(plain, r);
    if (batches)
        spool_tail_free(t);
    else
        spool_reader_free(r);
}

static void check_following(const uint8_t *data, size_t size)
{
    struct spool_reader *plain = spool_reader_new();
    struct outcome expected = {0};
    int fd = memfd_create("spool", MFD_CLOEXEC);

    CHECK(plain != NULL && fd >= 0);
    CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
    expected.rc = spool_reader_open_memory(plain, data, size);
    if (expected.rc == 0)
        read_records(plain, &expected);
    follow(plain, &expected, fd, size, false);
    follow(plain, &expected, fd, size, true);
    spool_reader_free(plain);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_writer *w = NULL;
    struct output o = {0};
    struct spool_record rec;
    uint64_t samples = 0;
    int rc;

    CHECK(r != NULL);
    rc = spool_reader_open_memory(r, data, size);
    CHECK((rc == 0) == (spool_reader_header(r) != NULL));
    if (rc == 0) {
        w = open_writer(&o, spool_reader_header(r));
        while ((rc = spool_reader_next(r, &rec)) > 0) {
            CHECK(rec.offset_bytes < spool_reader_kept_bytes(r));
            if (spool_writer_put(w, &rec) != 0) {
                fprintf(stderr, "%s\n", spool_writer_error(w));
                abort();
            }
            if (rec.type == SPOOL_RECORD_SAMPLE && samples++ < SAMPLES_MAX)
                look_at_sample(r, &rec.sample);
        }
        look_at_tables(r);
    }
    CHECK(spool_reader_next(r, &rec) == rc && spool_reader_error_code(r) == rc);
    CHECK((rc == 0) == (strcmp(spool_reader_error(r), "no error") == 0));
    CHECK(spool_reader_error(r)[0] != '\0');
    CHECK(rc == 0 || !spool_reader_cut_tail(r));
    if (!spool_reader_is_gzip(r)) {
        CHECK(spool_reader_kept_bytes(r) <= size);
        if (rc == 0)
            CHECK(spool_reader_cut_tail(r) == (spool_reader_kept_bytes(r) < size));
    }
    spool_reader_free(r);
    if (rc == 0) {
        CHECK(spool_writer_finish(w) == 0);
        CHECK(spool_writer_bytes(w) == o.size);
        check_same_spools(data, size, &o);
    }
    spool_writer_free(w);
    free(o.data);
    check_following(data, size);
    return 0;
}
