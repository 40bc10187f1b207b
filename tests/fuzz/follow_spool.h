/* SPDX-License-Identifier: MIT */
/*
 * What targets that read spools share: two readers compared, and a spool as a file that grows, followed record by record
 * and in batches, which must come to the same samples and the same verdict as the bytes in memory.
 */
#ifndef FOLLOW_SPOOL_H
#define FOLLOW_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_check.h"
#include "spool/spool.h"

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

#endif
