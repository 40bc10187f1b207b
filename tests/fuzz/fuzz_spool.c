/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a spool: read, asked about in every way, and written again record by record; what
 * was written must read as the same records. And as a file that grows (follow_spool.h), and as a snapshot, which must come
 * to the same samples and the same verdict.
 */
#include "follow_spool.h"
#include "writer_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WALKED_MAX 300  /* frames of a stack that are looked at */
#define SAMPLES_MAX 100 /* samples whose stacks are */

/* ---- equality ---- */

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
    for (uint32_t i = 0; i < c.modules; i++) {
        size_t size;
        const uint8_t *build_id = spool_reader_build_id(r, i, &size);

        CHECK((build_id != NULL) == (size > 0) && size <= 64);
        CHECK(!build_id || spool_reader_module(r, i));
    }
    CHECK(spool_reader_kernel_addresses(r, &addresses, &count) == 0);
    CHECK(count <= c.frames);
    for (size_t i = 1; i < count; i++)
        CHECK(addresses[i - 1] < addresses[i]);
    for (uint32_t i = 0; i < c.threads && i < FRAMES_MAX; i++) {
        struct spool_thread t;

        CHECK(spool_reader_thread(r, i, &t) && t.id == i);
    }
}

/* A snapshot of the bytes, from memory or a descriptor, has the samples that were read one by one. */
static void check_snapshot(const uint8_t *data, size_t size, bool from_fd)
{
    struct spool_snapshot *s = spool_snapshot_new();
    struct spool_reader *r = spool_reader_new();
    struct outcome expected = {0}, found = {0};
    struct spool_sample sample;
    int fd = memfd_create("spool", MFD_CLOEXEC);

    CHECK(s != NULL && r != NULL && fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    expected.rc = spool_reader_open_memory(r, data, size);
    if (expected.rc == 0)
        read_records(r, &expected);
    found.rc = from_fd ? spool_snapshot_load_fd(s, fd) : spool_snapshot_load_memory(s, data, size);
    while (spool_snapshot_sample(s, found.samples, &sample))
        add_sample(&found, &sample);
    CHECK(found.rc == expected.rc && found.samples == expected.samples);
    CHECK(found.hash == expected.hash && spool_snapshot_sample_count(s) == found.samples);
    CHECK(!spool_snapshot_sample(s, UINT64_MAX, &sample));
    CHECK(strcmp(spool_reader_error(r), spool_reader_error(spool_snapshot_reader(s))) == 0);
    check_same_answers(r, spool_snapshot_reader(s));
    spool_snapshot_free(s);
    spool_reader_free(r);
    close(fd);
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
    check_snapshot(data, size, size % 2 == 0);
    return 0;
}
