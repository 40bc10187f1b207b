/* SPDX-License-Identifier: MIT */
/*
 * The writer: it writes what stackpulse writes, byte for byte; refuses without a trace what a
 * reader would refuse; and stops for good when its output fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool/spool.h"
#include "writer_internal.h"

#define ok(call) assert_int_equal(call, 0)

/* ---- output in memory ---- */

struct sink {
    uint8_t *data;
    size_t size;
    size_t calls;
    size_t fail_at;   /* number of the call that fails, from 1; 0: none */
    size_t ends[512]; /* sizes after the calls */
};

static int take(void *user, const void *data, size_t size)
{
    struct sink *s = user;

    s->calls++;
    if (s->calls == s->fail_at)
        return ENOSPC;
    s->data = realloc(s->data, s->size + size);
    assert_non_null(s->data);
    memcpy(s->data + s->size, data, size);
    s->size += size;
    if (s->calls < sizeof s->ends / sizeof s->ends[0])
        s->ends[s->calls] = s->size;
    return 0;
}

static void sink_free(struct sink *s)
{
    free(s->data);
    memset(s, 0, sizeof *s);
}

static struct spool_writer *writer_for(struct sink *s, const struct spool_header *header)
{
    struct spool_writer *w = spool_writer_new();

    assert_non_null(w);
    spoolint_writer_allow_old_versions(w);
    ok(spool_writer_open_callback(w, take, s, header));
    return w;
}

static struct spool_writer *writer_of(struct sink *s, uint32_t version)
{
    struct spool_header header = {.version = version};

    return writer_for(s, &header);
}

static void finish(struct spool_writer *w)
{
    ok(spool_writer_finish(w));
    spool_writer_free(w);
}

static void assert_bytes(const struct sink *s, const void *expected, size_t size)
{
    assert_int_equal(s->size, size);
    assert_memory_equal(s->data, expected, size);
}

#define assert_written(s, ...) \
    assert_bytes(s, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static const struct spool_module module_a = {
    .pid = 7, .start = 0x1000, .end = 0x2000, .path = "/a", .path_size = 2};

static uint32_t add_module(struct spool_writer *w, int32_t pid, uint64_t start, uint64_t end,
                           uint64_t offset, const char *path)
{
    struct spool_module m = {
        .pid = pid, .start = start, .end = end, .file_offset = offset, .path = path};
    uint32_t id;

    m.path_size = strlen(path);
    ok(spool_writer_module(w, &m, &id));
    return id;
}

static struct spool_writer_frame pinned(uint32_t module, uint64_t address)
{
    return (struct spool_writer_frame){.module_id = module, .address = address};
}

static struct spool_writer_frame loose(uint64_t address)
{
    return (struct spool_writer_frame){.kind = SPOOL_FRAME_UNPINNED, .address = address};
}

static struct spool_writer_frame kernel(uint64_t address)
{
    return (struct spool_writer_frame){
        .kind = SPOOL_FRAME_UNPINNED, .kernel = true, .address = address};
}

static const struct spool_writer_frame marker = {.kind = SPOOL_FRAME_TRUNCATED};

static int sample(struct spool_writer *w, uint64_t time_ns, struct spool_writer_frame frame)
{
    return spool_writer_sample(w, time_ns, 7, 7, &frame, 1);
}

/* ---- what stackpulse wrote ---- */

static const char *const fixtures[] = {"kernel/syscalls-O2",
                                       "ladder/attach-O2",
                                       "ladder/exec-chain",
                                       "ladder/ladder-O0",
                                       "ladder/ladder-O2",
                                       "ladder/ladder-O2-fork",
                                       "ladder/ladder-O2-smallstack",
                                       "python/py312",
                                       "python/py313",
                                       "synth/backwards",
                                       "synth/basic",
                                       "synth/basic-v1",
                                       "synth/churn",
                                       "synth/churn-cut",
                                       "synth/churn-half",
                                       "synth/churn-v2",
                                       "synth/deep",
                                       "synth/unpinned"};
#define FIXTURE_COUNT (sizeof fixtures / sizeof fixtures[0])

static uint8_t *read_fixture(const char *name, size_t *size)
{
    char path[512];
    uint8_t *data;
    FILE *f;

    snprintf(path, sizeof path, "%s/stackpulse/%s.spool", FIXTURES_DIR, name);
    f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("cannot open %s", path);
    ok(fseek(f, 0, SEEK_END));
    *size = (size_t)ftell(f);
    rewind(f);
    data = malloc(*size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, f), *size);
    fclose(f);
    return data;
}

/* Writes a decoded record again by the function that a recorder would call for it. */
static void write_by_contents(struct spool_writer *w, const struct spool_reader *r,
                              const struct spool_record *rec)
{
    struct spool_writer_frame frames[512];
    uint32_t ids[512];
    uint32_t node, id;
    size_t count;

    switch (rec->type) {
    case SPOOL_RECORD_FRAME:
    case SPOOL_RECORD_STACK:
    case SPOOL_RECORD_THREAD:
        return; /* the writer's own business */
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        ok(spool_writer_module(w, &rec->module, &id));
        assert_int_equal(id, rec->module.id);
        return;
    case SPOOL_RECORD_SAMPLE:
        node = rec->sample.stack;
        count = spool_reader_walk(r, &node, ids, 512);
        assert_int_equal(node, SPOOL_NO_ID);
        for (size_t i = 0; i < count; i++) {
            struct spool_frame f;

            assert_true(spool_reader_frame(r, ids[i], &f));
            frames[i] = (struct spool_writer_frame){
                .kind = f.kind, .kernel = f.kernel, .module_id = f.module_id, .address = f.rel};
        }
        ok(spool_writer_sample(w, rec->sample.time_ns, rec->sample.pid, rec->sample.tid, frames,
                               count));
        return;
    case SPOOL_RECORD_PYTHON:
        ok(spool_writer_python(w, rec->python.time_ns, rec->python.pid, rec->python.on));
        return;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        ok(spool_writer_deactivate_process(w, rec->deactivated_pid));
        return;
    case SPOOL_RECORD_DEACTIVATE_MODULE:
        ok(spool_writer_deactivate_module(w, rec->deactivated_module));
        return;
    case SPOOL_RECORD_ANNOTATION:
        ok(spool_writer_annotate(w, rec->annotation.pid, "comm", rec->annotation.value));
        return;
    }
    fail();
}

/* Decodes a spool and writes it again. *kept: the accepted bytes; *used: those up to the last
 * record that is no mere definition, which is as far as a writer with its own definitions gets. */
static void write_again(const uint8_t *data, size_t size, bool by_contents, struct sink *s,
                        size_t *kept, size_t *used)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    struct spool_writer *w;
    int rc;

    assert_non_null(r);
    ok(spool_reader_open_memory(r, data, size));
    *used = (size_t)spool_reader_kept_bytes(r);
    w = writer_for(s, spool_reader_header(r));
    while ((rc = spool_reader_next(r, &rec)) > 0) {
        if (by_contents)
            write_by_contents(w, r, &rec);
        else
            ok(spool_writer_put(w, &rec));
        if (rec.type != SPOOL_RECORD_FRAME && rec.type != SPOOL_RECORD_STACK &&
            rec.type != SPOOL_RECORD_THREAD)
            *used = (size_t)spool_reader_kept_bytes(r);
    }
    ok(rc);
    *kept = (size_t)spool_reader_kept_bytes(r);
    assert_int_equal(spool_writer_bytes(w), by_contents ? *used : *kept);
    finish(w);
    spool_reader_free(r);
}

static void records_written_one_by_one_give_the_same_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIXTURE_COUNT; i++) {
        struct sink s = {0};
        size_t size, kept, used;
        uint8_t *data = read_fixture(fixtures[i], &size);

        write_again(data, size, false, &s, &kept, &used);
        assert_true(kept == size || strstr(fixtures[i], "churn-") != NULL);
        assert_bytes(&s, data, kept);
        sink_free(&s);
        free(data);
    }
}

static void samples_written_by_contents_give_the_same_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIXTURE_COUNT; i++) {
        struct sink s = {0};
        size_t size, kept, used;
        uint8_t *data = read_fixture(fixtures[i], &size);

        write_again(data, size, true, &s, &kept, &used);
        assert_true(used == size || strstr(fixtures[i], "churn-") != NULL);
        assert_bytes(&s, data, used);
        sink_free(&s);
        free(data);
    }
}

/* ---- the examples of spool(5) ---- */

static void example_1_an_empty_spool(void **state)
{
    struct spool_header header = {.version = 3, .start_us = 123, .interval_us = 10};
    struct sink s = {0};

    (void)state;
    finish(writer_for(&s, &header));
    assert_written(&s, 0x53, 0x50, 0x55, 0x4c, 0x53, 0x45, 0x33, 0, 0x7b, 0x0a);
    sink_free(&s);
}

static void example_2_version_1(void **state)
{
    struct spool_header header = {.version = 1, .start_us = 1000000, .interval_us = 1000};
    struct spool_writer_frame frames[] = {pinned(0, 0x10), loose(0x9000)};
    struct sink s = {0};
    struct spool_writer *w = writer_for(&s, &header);

    (void)state;
    ok(spool_writer_module(w, &module_a, NULL));
    ok(spool_writer_sample(w, 5000, 7, 7, frames, 2));
    ok(spool_writer_sample(w, 4000, 7, 7, frames, 2));
    ok(spool_writer_python(w, 6000, 7, true));
    ok(spool_writer_deactivate_process(w, 7));
    finish(w);
    assert_written(&s, 0x53, 0x50, 0x55, 0x4c, 0x53, 0x45, 0x31, 0x00, 0xc0, 0x84, 0x3d, 0xe8,
                   0x07,                                                                         //
                   0x01, 0x00, 0x0e, 0x80, 0x20, 0x80, 0x40, 0x00, 0x00, 0x00, 0x02, 0x2f, 0x61, //
                   0x02, 0x00, 0x01, 0x80, 0xa0, 0x02,                                           //
                   0x03, 0x00, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00,                               //
                   0x02, 0x01, 0x00, 0x10,                                                       //
                   0x03, 0x01, 0x00, 0x01,                                                       //
                   0x04, 0x00, 0x0e, 0x07,                                                       //
                   0x05, 0x90, 0x4e, 0x00, 0x01,                                                 //
                   0x05, 0xcf, 0x0f, 0x00, 0x01,                                                 //
                   0x06, 0xf0, 0x2e, 0x0e, 0x01,                                                 //
                   0x07, 0x0e);
    sink_free(&s);
}

static void example_3_two_generations_of_a_mapping(void **state)
{
    struct spool_header header = {.version = 2};
    struct spool_module m = {
        .pid = 7, .start = 0x1000, .end = 0x2000, .path = "/old", .path_size = 4};
    struct spool_writer_frame frame = loose(0x1500);
    struct sink s = {0};
    struct spool_writer *w = writer_for(&s, &header);

    (void)state;
    ok(spool_writer_module(w, &m, NULL));
    ok(spool_writer_sample(w, 10, 7, 8, &frame, 1));
    ok(spool_writer_deactivate_module(w, 0));
    m.file_offset = 0x400;
    m.inode = 5;
    m.path = "/new";
    ok(spool_writer_module(w, &m, NULL));
    ok(spool_writer_sample(w, 20, 7, 8, &frame, 1));
    finish(w);
    assert_written(&s, 0x53, 0x50, 0x55, 0x4c, 0x53, 0x45, 0x32, 0x00, 0x00, 0x00, //
                   0x01, 0x00, 0x0e, 0x80, 0x20, 0x80, 0x40, 0x00, 0x00, 0x00, 0x04, 0x2f, 0x6f,
                   0x6c, 0x64,                                     //
                   0x02, 0x00, 0x01, 0x80, 0x2a,                   //
                   0x03, 0x00, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, //
                   0x04, 0x00, 0x0e, 0x08,                         //
                   0x05, 0x14, 0x00, 0x00,                         //
                   0x08, 0x00,                                     //
                   0x01, 0x01, 0x0e, 0x80, 0x20, 0x80, 0x40, 0x80, 0x08, 0x05, 0x00, 0x04, 0x2f,
                   0x6e, 0x65, 0x77,                               //
                   0x02, 0x01, 0x01, 0x80, 0x2a,                   //
                   0x03, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x01, //
                   0x05, 0x14, 0x00, 0x01);
    sink_free(&s);
}

static void example_4_kernel_frame_and_marker(void **state)
{
    struct spool_header header = {.version = 3, .start_us = 1, .interval_us = 1};
    struct spool_module m = {.pid = 7,
                             .start = 0x400000,
                             .end = 0x402000,
                             .file_offset = 0x1000,
                             .inode = 99,
                             .dev_major = 8,
                             .dev_minor = 2,
                             .inode_gen = 17,
                             .path = "/bin/x",
                             .path_size = 6};
    struct spool_writer_frame frames[] = {kernel(0xffffffff81000010), pinned(0, 0x1010), marker};
    struct sink s = {0};
    struct spool_writer *w = writer_for(&s, &header);

    (void)state;
    ok(spool_writer_module(w, &m, NULL));
    ok(spool_writer_sample(w, 1000, 7, 11, frames, 3));
    ok(spool_writer_sample(w, 2000, 7, 12, frames + 1, 2));
    finish(w);
    assert_written(&s, 0x53, 0x50, 0x55, 0x4c, 0x53, 0x45, 0x33, 0x00, 0x01, 0x01, //
                   0x01, 0x00, 0x0e, 0x80, 0x80, 0x80, 0x02, 0x80, 0xc0, 0x80, 0x02, 0x80, 0x20,
                   0x63, 0x08, 0x02, 0x11, 0x00, 0x06, 0x2f, 0x62, 0x69, 0x6e, 0x2f, 0x78,       //
                   0x02, 0x00, 0x05, 0x00,                                                       //
                   0x03, 0x00, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00,                               //
                   0x02, 0x01, 0x00, 0x90, 0x20,                                                 //
                   0x03, 0x01, 0x00, 0x01,                                                       //
                   0x02, 0x02, 0x03, 0x90, 0x80, 0x80, 0x88, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x01, //
                   0x03, 0x02, 0x01, 0x02,                                                       //
                   0x04, 0x00, 0x0e, 0x0b,                                                       //
                   0x05, 0xd0, 0x0f, 0x00, 0x02,                                                 //
                   0x04, 0x01, 0x0e, 0x0c,                                                       //
                   0x05, 0xd0, 0x0f, 0x01, 0x01);
    sink_free(&s);
}

static const struct spool_header header_4 = {
    .version = 4,
    .interval_ns = 10101010,
    .has_origin = true,
    .origin = {.monotonic_ns = 2000000000, .sign = 1, .seconds = 1700000000, .nanoseconds = 5}};

static const struct spool_jit_symbol symbols[] = {{0x8000, 0x8040, "f", 1},
                                                  {0x8040, 0x8100, "g", 1}};
static const struct spool_module jit_module = {.pid = 7,
                                               .jit = true,
                                               .start = 0x8000,
                                               .end = 0x8100,
                                               .path = "[jit-1-2-3]",
                                               .path_size = 11,
                                               .jit_symbols = symbols,
                                               .jit_symbol_count = 2};

static void example_5_clock_origin_and_generated_code(void **state)
{
    static const uint8_t expected[] = {
        0x53, 0x50, 0x55, 0x4c, 0x53, 0x45, 0x34, 0x00, 0x00, 0x92, 0xc2, 0xe8, 0x04, 0x01, 0x80,
        0xa8, 0xd6, 0xb9, 0x07, 0x02, 0x80, 0xe2, 0xcf, 0xaa, 0x06, 0x05, //
        0x09, 0x00, 0x0e, 0x80, 0x80, 0x02, 0x80, 0x82, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x0b, 0x5b, 0x6a, 0x69, 0x74, 0x2d, 0x31, 0x2d, 0x32, 0x2d, 0x33, 0x5d, 0x02, 0x80, 0x80,
        0x02, 0xc0, 0x80, 0x02, 0x01, 0x66, 0xc0, 0x80, 0x02, 0x80, 0x82, 0x02, 0x01, 0x67, //
        0x02, 0x00, 0x00, 0x41,                                                             //
        0x03, 0x00, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00,                                     //
        0x04, 0x00, 0x0e, 0x09,                                                             //
        0x05, 0xc8, 0xd1, 0xac, 0xf3, 0x0e, 0x00, 0x00};
    struct spool_writer_frame frame = pinned(0, 0x41);
    struct sink s = {0}, again = {0};
    struct spool_writer *w = writer_for(&s, &header_4);
    size_t kept, used;

    (void)state;
    ok(spool_writer_module(w, &jit_module, NULL));
    ok(spool_writer_sample(w, 2000000100, 7, 9, &frame, 1));
    finish(w);
    assert_bytes(&s, expected, sizeof expected);
    write_again(expected, sizeof expected, false, &again, &kept, &used);
    assert_bytes(&again, expected, sizeof expected);
    sink_free(&again);
    write_again(expected, sizeof expected, true, &again, &kept, &used);
    assert_bytes(&again, expected, sizeof expected);
    sink_free(&again);
    sink_free(&s);
}

/* ---- definitions ---- */

static void a_sample_without_frames_writes_and_changes_nothing(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 4);
    uint64_t before = spool_writer_bytes(w);

    (void)state;
    ok(spool_writer_sample(w, UINT64_MAX, 0, 0, NULL, 0));
    assert_int_equal(spool_writer_bytes(w), before);
    ok(sample(w, 10, loose(1))); /* the time is still 0, so this delta is 10 */
    finish(w);
    assert_int_equal(s.data[s.size - 3], 20);
    sink_free(&s);
}

static void loose_frames_are_defined_again_after_every_change_of_the_modules(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 4);
    uint64_t known, before;

    (void)state;
    add_module(w, 7, 0x1000, 0x2000, 0, "/a");
    ok(sample(w, 1, loose(0x1500)));
    before = spool_writer_bytes(w);
    ok(sample(w, 2, loose(0x1500)));
    known = spool_writer_bytes(w) - before;
    for (int change = 0; change < 6; change++) {
        bool drops = change != 0 && change != 5;

        switch (change) {
        case 0:
            ok(spool_writer_python(w, 1, 7, true));
            break;
        case 1:
            add_module(w, 9, 1, 1, 0, "");
            break;
        case 2:
            ok(spool_writer_module(w, &jit_module, NULL));
            break;
        case 3:
            ok(spool_writer_deactivate_module(w, 1));
            break;
        case 4:
            ok(spool_writer_deactivate_process(w, 1234));
            break;
        default:
            ok(spool_writer_annotate(w, 7, "comm", "x"));
            break;
        }
        before = spool_writer_bytes(w);
        ok(sample(w, 3 + (uint64_t)change, loose(0x1500)));
        assert_int_equal(spool_writer_bytes(w) - before > known, drops);
    }
    finish(w);
    sink_free(&s);
}

static void pinned_frames_and_the_marker_are_defined_once(void **state)
{
    struct spool_writer_frame frames[] = {pinned(0, 1), marker};
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);
    uint64_t before;

    (void)state;
    add_module(w, 7, 0x1000, 0x2000, 0, "/a");
    ok(spool_writer_sample(w, 1, 7, 7, frames, 2));
    ok(spool_writer_deactivate_process(w, 7));
    before = spool_writer_bytes(w);
    ok(spool_writer_sample(w, 2, 7, 7, frames, 2));
    assert_int_equal(spool_writer_bytes(w) - before, 4);
    finish(w);
    sink_free(&s);
}

static void times_may_step_by_any_63_bits(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);
    struct spool_snapshot *snapshot = spool_snapshot_new();
    struct spool_sample got;
    static const uint64_t times[] = {INT64_MAX,  0,         INT64_MAX,      UINT64_MAX - 1,
                                     UINT64_MAX, INT64_MAX, UINT64_MAX - 1, (uint64_t)INT64_MAX};

    (void)state;
    assert_non_null(snapshot);
    for (size_t i = 0; i < 8; i++)
        ok(sample(w, times[i], loose(1)));
    finish(w);
    ok(spool_snapshot_load_memory(snapshot, s.data, s.size));
    for (size_t i = 0; i < 8; i++) {
        assert_true(spool_snapshot_sample(snapshot, i, &got));
        assert_int_equal(got.time_ns, times[i]);
    }
    spool_snapshot_free(snapshot);
    sink_free(&s);
}

static void kernel_modules_of_version_4_have_no_process(void **state)
{
    struct spool_module m = {.pid = 0, .kernel = true, .start = 1, .end = 2};
    struct sink s = {0}, other = {0};
    struct spool_writer *w = writer_of(&s, 4);

    (void)state;
    ok(spool_writer_module(w, &m, NULL));
    finish(w);
    w = writer_of(&other, 4);
    m.pid = -1;
    ok(spool_writer_module(w, &m, NULL));
    finish(w);
    assert_bytes(&s, other.data, other.size);
    sink_free(&s);
    sink_free(&other);
}

/* ---- refusals ---- */

struct refusal {
    struct spool_writer *w;
    uint64_t bytes;
};

static void refused(struct refusal *r, int rc, const char *text)
{
    assert_int_equal(rc, SPOOL_ERR_MISUSE);
    assert_int_equal(spool_writer_bytes(r->w), r->bytes);
    if (strstr(spool_writer_error(r->w), text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", spool_writer_error(r->w), text);
}

static void a_refused_sample_leaves_no_trace(void **state)
{
    struct sink s = {0}, clean = {0};
    struct refusal r = {.w = writer_of(&s, 4)};
    struct spool_writer *w;
    struct spool_writer_frame good[] = {loose(0x77), pinned(0, 0x407), kernel(0x78), marker};
    struct spool_writer_frame bad[4];

    (void)state;
    add_module(r.w, 7, 0x1000, 0x2000, 0x400, "/a");
    add_module(r.w, 7, 0x2000, 0x1000, 0, "/end below start");
    add_module(r.w, 7, 0x2000, 0x2000, 0, "/empty");
    r.bytes = spool_writer_bytes(r.w);
    for (size_t at = 0; at < 4; at++) {
        static const struct spool_writer_frame wrong[] = {
            {.module_id = 3, .address = 0x400},
            {.module_id = SPOOL_NO_ID, .address = 0x400},
            {.module_id = 0, .address = 0x3ff},
            {.module_id = 0, .address = 0x1400},
            {.module_id = 0, .address = UINT64_MAX},
            {.module_id = 1, .address = 0},
            {.module_id = 2, .address = 0},
            {.kind = (enum spool_frame_kind)3},
            {.kind = SPOOL_FRAME_TRUNCATED, .address = 1},
            {.kind = SPOOL_FRAME_TRUNCATED, .kernel = true},
        };

        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            memcpy(bad, good, sizeof bad);
            bad[at] = wrong[i];
            refused(&r, spool_writer_sample(r.w, 5, 7, 7, bad, 4), "");
        }
        if (at < 3) {
            memcpy(bad, good, sizeof bad);
            bad[at] = marker;
            refused(&r, spool_writer_sample(r.w, 5, 7, 7, bad, 4), "not as the root");
        }
    }
    refused(&r, spool_writer_sample(r.w, 5, 0, 7, good, 4), "process id 0");
    refused(&r, spool_writer_sample(r.w, 5, -1, 7, good, 4), "process id -1");
    refused(&r, spool_writer_sample(r.w, 5, 7, 0, good, 4), "thread id 0");
    refused(&r, spool_writer_sample(r.w, 5, 7, UINT64_C(1) << 31, good, 4), "thread id 2147483648");
    refused(&r, spool_writer_sample(r.w, UINT64_C(1) << 63, 7, 7, good, 4), "63 bits");
    ok(spool_writer_sample(r.w, 5, 7, INT32_MAX, good, 4));
    finish(r.w);

    w = writer_of(&clean, 4);
    add_module(w, 7, 0x1000, 0x2000, 0x400, "/a");
    add_module(w, 7, 0x2000, 0x1000, 0, "/end below start");
    add_module(w, 7, 0x2000, 0x2000, 0, "/empty");
    ok(spool_writer_sample(w, 5, 7, INT32_MAX, good, 4));
    finish(w);
    assert_bytes(&s, clean.data, clean.size);
    sink_free(&s);
    sink_free(&clean);
}

static void pinned_frames_may_use_the_whole_of_their_module(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);
    struct spool_module m = {.start = 0, .end = UINT64_MAX};
    struct refusal r = {.w = w};

    (void)state;
    add_module(w, -5, 0x1000, 0x2000, 0x400, "/a");
    ok(sample(w, 1, pinned(0, 0x400)));
    ok(sample(w, 2, pinned(0, 0x13ff)));
    ok(spool_writer_module(w, &m, NULL));
    ok(sample(w, 3, pinned(1, UINT64_MAX - 1)));
    r.bytes = spool_writer_bytes(w);
    refused(&r, sample(w, 3, pinned(1, UINT64_MAX)), "module 1");
    finish(w);
    sink_free(&s);
}

static void old_versions_take_any_process_and_thread_id(void **state)
{
    struct spool_writer_frame frame = loose(1);
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);

    (void)state;
    ok(spool_writer_sample(w, 1, INT32_MIN, UINT64_MAX, &frame, 1));
    ok(spool_writer_sample(w, 1, 0, 0, &frame, 1));
    ok(spool_writer_python(w, 1, INT32_MIN, false));
    ok(spool_writer_deactivate_process(w, -1));
    add_module(w, INT32_MIN, 0, 0, 0, "");
    finish(w);
    sink_free(&s);
}

static void modules_that_the_version_cannot_store_are_refused(void **state)
{
    struct sink s = {0};
    struct refusal r = {.w = writer_of(&s, 3)};
    struct spool_module m = module_a;

    (void)state;
    r.bytes = spool_writer_bytes(r.w);
    m.path = "\xff";
    m.path_size = 1;
    refused(&r, spool_writer_module(r.w, &m, NULL), "UTF-8");
    refused(&r, spool_writer_module(r.w, &jit_module, NULL), "version 3");
    finish(r.w);
    sink_free(&s);

    r.w = writer_of(&s, 4);
    ok(spool_writer_module(r.w, &m, NULL));
    r.bytes = spool_writer_bytes(r.w);
    m.pid = 0;
    refused(&r, spool_writer_module(r.w, &m, NULL), "process id 0");
    finish(r.w);
    sink_free(&s);

    r.w = writer_of(&s, 2);
    r.bytes = spool_writer_bytes(r.w);
    m = module_a;
    m.dev_major = 1;
    refused(&r, spool_writer_module(r.w, &m, NULL), "version 2");
    finish(r.w);
    sink_free(&s);

    r.w = writer_of(&s, 1);
    ok(spool_writer_module(r.w, &module_a, NULL));
    r.bytes = spool_writer_bytes(r.w);
    refused(&r, spool_writer_deactivate_module(r.w, 0), "version 1");
    finish(r.w);
    sink_free(&s);
}

static void jit_modules_that_break_a_rule_are_refused(void **state)
{
    static char long_name[1048577];
    struct spool_jit_symbol many[3] = {{0x8000, 0x8040, "f", 1}, {0x8000, 0x8100, "g", 1}};
    struct spool_module m = jit_module;
    struct sink s = {0};
    struct refusal r = {.w = writer_of(&s, 4)};

    (void)state;
    memset(long_name, 'x', sizeof long_name);
    r.bytes = spool_writer_bytes(r.w);
    m.kernel = true;
    refused(&r, spool_writer_module(r.w, &m, NULL), "kernel");
    m.kernel = false;
    m.jit_symbols = many;
    many[1].start = 0x7fff;
    refused(&r, spool_writer_module(r.w, &m, NULL), "symbol 1");
    many[1].start = 0x8100;
    refused(&r, spool_writer_module(r.w, &m, NULL), "symbol 1");
    many[1] = (struct spool_jit_symbol){0x8000, 0x8101, "g", 1};
    refused(&r, spool_writer_module(r.w, &m, NULL), "symbol 1");
    many[1] = (struct spool_jit_symbol){0x8000, 0x8100, "\xed\xa0\x80", 3};
    refused(&r, spool_writer_module(r.w, &m, NULL), "UTF-8");
    many[1] = (struct spool_jit_symbol){0x8000, 0x8100, long_name, sizeof long_name};
    refused(&r, spool_writer_module(r.w, &m, NULL), "1048577");
    many[0].start = 0x8001;
    many[1].name_size = 1;
    refused(&r, spool_writer_module(r.w, &m, NULL), "in front");
    m.jit_symbol_count = 1000001;
    refused(&r, spool_writer_module(r.w, &m, NULL), "1000001");
    /* and the very limits are not */
    many[0].start = 0x8000;
    many[1] = (struct spool_jit_symbol){0x8000, 0x8100, long_name, sizeof long_name - 1};
    m.jit_symbol_count = 2;
    ok(spool_writer_module(r.w, &m, NULL));
    m.jit_symbol_count = 0;
    m.jit_symbols = NULL;
    ok(spool_writer_module(r.w, &m, NULL));
    finish(r.w);
    sink_free(&s);
}

static void other_records_are_refused_by_the_rules_of_version_4(void **state)
{
    struct sink s = {0};
    struct refusal r = {.w = writer_of(&s, 4)};

    (void)state;
    r.bytes = spool_writer_bytes(r.w);
    refused(&r, spool_writer_python(r.w, 1, 0, true), "process id 0");
    refused(&r, spool_writer_deactivate_process(r.w, -1), "process id -1");
    refused(&r, spool_writer_deactivate_module(r.w, 0), "module 0 of 0");
    refused(&r, spool_writer_annotate(r.w, 0, "comm", "x"), "process 0");
    refused(&r, spool_writer_annotate(r.w, 1, "Comm", "x"), "key");
    refused(&r, spool_writer_annotate(r.w, 1, "", "x"), "key");
    refused(&r, spool_writer_annotate(r.w, 1, "thread", "no number"), "value");
    refused(&r, spool_writer_annotate(r.w, 1, "a23456789012345678901234567890123", "x"), "key");
    finish(r.w);
    sink_free(&s);
}

static void headers_that_no_reader_takes_are_refused(void **state)
{
    struct spool_header good = header_4, h;
    struct spool_writer *w = spool_writer_new();
    struct sink s = {0};

    (void)state;
    assert_non_null(w);
#define refused_header(field, value)                                                     \
    do {                                                                                 \
        h = good;                                                                        \
        h.field = value;                                                                 \
        assert_int_equal(spool_writer_open_callback(w, take, &s, &h), SPOOL_ERR_MISUSE); \
    } while (0)
    refused_header(version, 0);
    refused_header(version, 1);
    refused_header(version, 2);
    refused_header(version, 5);
    refused_header(origin.sign, 0);
    refused_header(origin.sign, 2);
    refused_header(origin.nanoseconds, 1000000000);
    refused_header(origin.seconds, UINT64_C(1) << 63);
    good.origin.sign = -1;
    refused_header(origin.seconds, UINT64_C(1) << 63); /* with 5 ns */
    good.origin.nanoseconds = 0;
    refused_header(origin.seconds, (UINT64_C(1) << 63) + 1);
#undef refused_header
    /* a refused header leaves a writer that can still be opened */
    good.origin.seconds = UINT64_C(1) << 63;
    ok(spool_writer_open_callback(w, take, &s, &good));
    finish(w);
    sink_free(&s);
}

static void calls_out_of_order_are_refused(void **state)
{
    struct spool_writer *w = spool_writer_new();
    struct sink s = {0};

    (void)state;
    spool_writer_free(NULL);
    assert_non_null(w);
    assert_string_equal(spool_writer_error(w), "no error");
    assert_int_equal(spool_writer_flush(w), SPOOL_ERR_MISUSE);
    assert_string_equal(spool_writer_error(w), "the writer is not open");
    assert_int_equal(sample(w, 1, loose(1)), SPOOL_ERR_MISUSE);
    assert_int_equal(spool_writer_finish(w), SPOOL_ERR_MISUSE);
    ok(spool_writer_open_callback(w, take, &s, &header_4));
    assert_int_equal(spool_writer_open_fd(w, 1, &header_4), SPOOL_ERR_MISUSE);
    ok(spool_writer_finish(w));
    assert_int_equal(spool_writer_finish(w), SPOOL_ERR_MISUSE);
    assert_int_equal(spool_writer_open_callback(w, take, &s, &header_4), SPOOL_ERR_MISUSE);
    assert_int_equal(spool_writer_python(w, 1, 1, true), SPOOL_ERR_MISUSE);
    assert_string_equal(spool_writer_error(w), "the writer is finished");
    assert_int_equal(spool_writer_bytes(w), s.size);
    spool_writer_free(w);
    sink_free(&s);
}

static void ids_that_are_used_up_are_a_limit_and_not_the_end(void **state)
{
    struct spool_writer_frame two[] = {loose(2), loose(1)};
    struct spool_writer_frame recursive[] = {loose(1), loose(1), loose(1)};
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);
    uint64_t bytes;

    (void)state;
    spoolint_writer_limit_ids(w, 2);
    ok(spool_writer_sample(w, 1, 7, 7, two, 2));
    bytes = spool_writer_bytes(w);
    assert_int_equal(sample(w, 2, loose(3)), SPOOL_ERR_LIMIT);
    assert_string_equal(spool_writer_error(w), "no more than 2 frames fit a spool");
    assert_int_equal(spool_writer_sample(w, 2, 7, 7, recursive, 3), SPOOL_ERR_LIMIT);
    assert_string_equal(spool_writer_error(w), "no more than 2 stack nodes fit a spool");
    assert_int_equal(spool_writer_bytes(w), bytes);
    ok(spool_writer_sample(w, 2, 7, 7, two, 2)); /* all known */
    ok(spool_writer_sample(w, 2, 7, 8, two, 2));
    assert_int_equal(spool_writer_sample(w, 2, 7, 9, two, 2), SPOOL_ERR_LIMIT);
    assert_string_equal(spool_writer_error(w), "no more than 2 threads fit a spool");
    ok(spool_writer_sample(w, 2, 7, 8, two, 2));
    add_module(w, 1, 0, 0, 0, "");
    ok(spool_writer_annotate(w, 1, "comm", "x"));
    assert_int_equal(spool_writer_module(w, &module_a, NULL), SPOOL_ERR_LIMIT);
    assert_int_equal(spool_writer_annotate(w, 1, "comm", "x"), SPOOL_ERR_LIMIT);
    finish(w);
    sink_free(&s);
}

static void records_with_wrong_ids_are_refused(void **state)
{
    struct sink s = {0};
    struct refusal r = {.w = writer_of(&s, 3)};
    struct spool_record rec = {.type = SPOOL_RECORD_MODULE};

    (void)state;
    r.bytes = spool_writer_bytes(r.w);
    rec.module = module_a;
    rec.module.id = 1;
    refused(&r, spool_writer_put(r.w, &rec), "module 1, where the next id is 0");
    rec.type = SPOOL_RECORD_FRAME;
    rec.frame = (struct spool_frame){.id = 1, .kind = SPOOL_FRAME_UNPINNED};
    refused(&r, spool_writer_put(r.w, &rec), "frame 1");
    rec.frame = (struct spool_frame){.kind = SPOOL_FRAME_TRUNCATED, .abs = 1};
    refused(&r, spool_writer_put(r.w, &rec), "marker");
    rec.frame = (struct spool_frame){.kind = SPOOL_FRAME_PINNED};
    refused(&r, spool_writer_put(r.w, &rec), "module 0 of 0");
    rec.type = SPOOL_RECORD_STACK;
    rec.stack = (struct spool_stack){.id = 0, .prefix = SPOOL_NO_ID, .frame = 0};
    refused(&r, spool_writer_put(r.w, &rec), "frame 0 of 0");
    rec.stack.prefix = 0;
    refused(&r, spool_writer_put(r.w, &rec), "stack node 0 of 0");
    rec.stack.id = 5;
    refused(&r, spool_writer_put(r.w, &rec), "stack node 5");
    rec.type = SPOOL_RECORD_THREAD;
    rec.thread = (struct spool_thread){.id = 1};
    refused(&r, spool_writer_put(r.w, &rec), "thread 1");
    rec.type = SPOOL_RECORD_SAMPLE;
    rec.sample = (struct spool_sample){.time_ns = 1};
    refused(&r, spool_writer_put(r.w, &rec), "thread 0 of 0");
    rec.sample.time_ns = UINT64_MAX;
    refused(&r, spool_writer_put(r.w, &rec), "63 bits");
    rec.type = SPOOL_RECORD_DEACTIVATE_MODULE;
    rec.deactivated_module = 0;
    refused(&r, spool_writer_put(r.w, &rec), "module 0 of 0");
    rec.type = (enum spool_record_type)77;
    refused(&r, spool_writer_put(r.w, &rec), "type 77");
    rec.type = SPOOL_RECORD_ANNOTATION;
    rec.annotation = (struct spool_annotation){.module = module_a};
    refused(&r, spool_writer_put(r.w, &rec), "annotation");
    /* nothing of this decided who gives out ids */
    ok(sample(r.w, 1, loose(1)));
    r.bytes = spool_writer_bytes(r.w);
    rec.type = SPOOL_RECORD_THREAD;
    rec.thread = (struct spool_thread){.id = 1};
    refused(&r, spool_writer_put(r.w, &rec), "given ids");
    finish(r.w);
    sink_free(&s);
}

static void records_with_given_ids_and_samples_by_contents_do_not_mix(void **state)
{
    struct sink s = {0};
    struct refusal r = {.w = writer_of(&s, 3)};
    struct spool_record rec = {.type = SPOOL_RECORD_THREAD};

    (void)state;
    ok(spool_writer_put(r.w, &rec));
    r.bytes = spool_writer_bytes(r.w);
    refused(&r, sample(r.w, 1, loose(1)), "given ids");
    finish(r.w);
    sink_free(&s);
}

/* ---- annotations ---- */

static void an_annotation_is_a_module_that_maps_nothing(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);

    (void)state;
    ok(spool_writer_annotate(w, 7, "comm", "a\377b"));
    ok(spool_writer_annotate(w, 8, "x-1", NULL));
    finish(w);
    assert_written(&s, 'S', 'P', 'U', 'L', 'S', 'E', '3', 0, 0, 0, //
                   1, 0, 14, 0, 0, 0, 0, 0, 0, 0, 0, 18, '[', 's', 'p', 'o', 'o', 'l', ':', 'c',
                   'o', 'm', 'm', ']', ' ', 'a', 0xef, 0xbf, 0xbd, 'b', //
                   1, 1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 11, '[', 's', 'p', 'o', 'o', 'l', ':', 'x',
                   '-', '1', ']');
    sink_free(&s);
}

static void annotations_come_back_from_a_reader_and_can_be_put_again(void **state)
{
    struct sink s = {0}, again = {0};
    struct spool_writer *w = writer_of(&s, 3);
    size_t kept, used;

    (void)state;
    add_module(w, 7, 0x1000, 0x2000, 0, "/a");
    ok(sample(w, 1, loose(0x1500)));
    ok(spool_writer_annotate(w, 7, "comm", "name"));
    ok(sample(w, 2, loose(0x1500)));
    finish(w);
    write_again(s.data, s.size, false, &again, &kept, &used);
    assert_bytes(&again, s.data, s.size);
    sink_free(&again);
    write_again(s.data, s.size, true, &again, &kept, &used);
    assert_bytes(&again, s.data, s.size);
    sink_free(&again);
    sink_free(&s);
}

static void a_long_value_is_cut_at_a_character(void **state)
{
    char value[8192];
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);

    (void)state;
    for (size_t i = 0; i + 3 < sizeof value; i += 3)
        memcpy(value + i, "\xe2\x82\xac", 4);
    ok(spool_writer_annotate(w, 7, "comm", value));
    finish(w);
    /* "[spool:comm] " is 13 bytes; 4083 = 1361 x 3 are left */
    assert_int_equal(s.size, 10 + 11 + 2 + 4096);
    assert_int_equal(s.data[s.size - 1], 0xac);
    sink_free(&s);
}

static void a_plain_writer_checks_annotations_and_leaves_them_out(void **state)
{
    struct sink s = {0};
    struct spool_header header = {.version = 3};
    struct spool_writer *w = spool_writer_new();
    struct refusal r = {.w = w};

    (void)state;
    spool_writer_set_plain(w, true);
    refused(&r, spool_writer_annotate(w, 7, "comm", "x"), "not open");
    ok(spool_writer_open_callback(w, take, &s, &header));
    r.bytes = spool_writer_bytes(w);
    ok(spool_writer_annotate(w, 7, "comm", "x"));
    refused(&r, spool_writer_annotate(w, 0, "comm", "x"), "process 0");
    refused(&r, spool_writer_annotate(w, 7, "Comm", "x"), "key");
    refused(&r, spool_writer_annotate(w, 7, "lost", "many"), "its value does not fit");
    spoolint_writer_limit_ids(w, 0);
    ok(spool_writer_annotate(w, 7, "comm", "x")); /* it needs no id */
    spoolint_writer_limit_ids(w, 2);
    assert_int_equal(add_module(w, 7, 0x1000, 0x2000, 0, "/a"), 0);
    spool_writer_set_plain(w, false);
    ok(spool_writer_annotate(w, 7, "x", NULL));
    finish(w);
    assert_written(&s, 'S', 'P', 'U', 'L', 'S', 'E', '3', 0, 0, 0,                  //
                   1, 0, 14, 0x80, 0x20, 0x80, 0x40, 0, 0, 0, 0, 0, 0, 2, '/', 'a', //
                   1, 1, 14, 0, 0, 0, 0, 0, 0, 0, 0, 9, '[', 's', 'p', 'o', 'o', 'l', ':', 'x',
                   ']');
    sink_free(&s);
}

/* ---- output ---- */

/* Enough for several buffers. */
static int write_much(struct spool_writer *w)
{
    struct spool_writer_frame frames[64];

    for (uint64_t i = 0; i < 3000; i++) {
        int rc;

        for (uint64_t j = 0; j < 64; j++)
            frames[j] = loose(i * 64 + j);
        rc = spool_writer_sample(w, i, 7, 7, frames, 64);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void output_is_handed_over_in_large_pieces_of_whole_records(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    size_t call = 1;

    (void)state;
    assert_non_null(r);
    ok(write_much(w));
    assert_true(spool_writer_bytes(w) > 5 * 262144);
    finish(w);
    assert_true(s.calls > 4 && s.calls < 20);
    ok(spool_reader_open_memory(r, s.data, s.size));
    while (spool_reader_next(r, &rec) > 0)
        if (spool_reader_kept_bytes(r) == s.ends[call])
            call++;
    assert_int_equal(call, s.calls + 1);
    assert_int_equal(spool_reader_kept_bytes(r), s.size);
    spool_reader_free(r);
    sink_free(&s);
}

static void flush_hands_over_what_there_is(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);

    (void)state;
    assert_int_equal(s.calls, 0);
    ok(spool_writer_flush(w));
    assert_int_equal(s.size, 10);
    ok(spool_writer_flush(w)); /* nothing new, no call */
    assert_int_equal(s.calls, 1);
    ok(sample(w, 1, loose(1)));
    assert_int_equal(s.size, 10);
    ok(spool_writer_flush(w));
    assert_int_equal(s.size, spool_writer_bytes(w));
    finish(w);
    assert_int_equal(s.calls, 2);
    sink_free(&s);
}

/* A reader finds no cut tail in what is there after any flush. */
static void flush_ends_behind_a_whole_record(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 4);

    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        struct spool_reader *r = spool_reader_new();
        struct spool_record rec;

        switch (i % 5) {
        case 0:
            add_module(w, 7, 0x1000 * i, 0x1000 * i + 0x1000, 0, "/some/where/lib.so");
            break;
        case 1:
            ok(spool_writer_python(w, i, 7, true));
            break;
        case 2:
            ok(spool_writer_annotate(w, 7, "comm", "name"));
            break;
        case 3:
            ok(spool_writer_deactivate_module(w, 0));
            break;
        default:
            ok(sample(w, i, loose(i)));
            break;
        }
        ok(spool_writer_flush(w));
        assert_int_equal(s.size, spool_writer_bytes(w));
        assert_non_null(r);
        ok(spool_reader_open_memory(r, s.data, s.size));
        while (spool_reader_next(r, &rec) > 0)
            ;
        assert_int_equal(spool_reader_error_code(r), 0);
        assert_false(spool_reader_cut_tail(r));
        assert_int_equal(spool_reader_kept_bytes(r), s.size);
        spool_reader_free(r);
    }
    finish(w);
    sink_free(&s);
}

static void assert_dead(struct spool_writer *w)
{
    char text[512];
    struct spool_record rec = {.type = SPOOL_RECORD_THREAD};

    snprintf(text, sizeof text, "%s", spool_writer_error(w));
    assert_int_equal(sample(w, 1, loose(1)), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_sample(w, 1, 7, 7, NULL, 0), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_module(w, &module_a, NULL), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_python(w, 1, -1, true), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_deactivate_process(w, -1), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_deactivate_module(w, 99), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_annotate(w, 1, "comm", "x"), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_put(w, &rec), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_open_callback(w, take, NULL, &header_4), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_flush(w), SPOOL_ERR_IO);
    assert_int_equal(spool_writer_finish(w), SPOOL_ERR_IO);
    assert_string_equal(spool_writer_error(w), text);
}

static void nothing_is_written_after_an_output_that_fails_at_any_call(void **state)
{
    (void)state;
    for (size_t n = 1;; n++) {
        struct sink s = {.fail_at = n};
        struct spool_writer *w = writer_of(&s, 3);
        int rc = write_much(w);
        size_t size = s.size;

        if (rc == 0)
            rc = spool_writer_finish(w);
        if (rc == 0) {
            assert_int_equal(s.calls, n - 1); /* all calls have failed once */
            spool_writer_free(w);
            sink_free(&s);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(rc, SPOOL_ERR_IO);
        assert_non_null(strstr(spool_writer_error(w), strerror(ENOSPC)));
        assert_dead(w);
        assert_int_equal(s.calls, n);
        assert_int_equal(s.size, size);
        spool_writer_free(w);
        sink_free(&s);
    }
}

static void a_full_disk_is_an_error_that_stays(void **state)
{
    struct spool_writer *w = spool_writer_new();
    int fd = open("/dev/full", O_WRONLY);

    (void)state;
    if (fd < 0) {
        printf("no /dev/full\n");
        spool_writer_free(w);
        skip();
    }
    ok(spool_writer_open_fd(w, fd, &header_4));
    assert_int_equal(write_much(w), SPOOL_ERR_IO);
    assert_string_equal(spool_writer_error(w),
                        "writing failed at byte 0 of the spool: No space left on device");
    assert_dead(w);
    spool_writer_free(w);
    ok(close(fd)); /* it was not closed for us */
}

static void a_closed_pipe_is_an_error_that_stays(void **state)
{
    struct spool_writer *w = spool_writer_new();
    void (*old)(int) = signal(SIGPIPE, SIG_IGN);
    int fds[2];

    (void)state;
    ok(pipe(fds));
    close(fds[0]);
    ok(spool_writer_open_fd(w, fds[1], &header_4));
    ok(sample(w, 1, loose(1)));
    assert_int_equal(spool_writer_finish(w), SPOOL_ERR_IO);
    assert_string_equal(spool_writer_error(w),
                        "writing failed at byte 0 of the spool: Broken pipe");
    assert_dead(w);
    spool_writer_free(w);
    close(fds[1]);
    signal(SIGPIPE, old);
}

/* The output takes a part of a piece, then no more: nothing of what follows may come behind that part. */
static void an_output_that_fails_in_the_middle_of_a_piece_gets_nothing_more(void **state)
{
    struct rlimit old, small = {.rlim_cur = 400000};
    void (*action)(int) = signal(SIGXFSZ, SIG_IGN);
    struct sink s = {0};
    struct spool_writer *w = writer_for(&s, &header_4);
    FILE *f = tmpfile();
    uint8_t *got = malloc(400001);

    (void)state;
    assert_non_null(f);
    assert_non_null(got);
    ok(write_much(w));
    finish(w);
    w = spool_writer_new();
    ok(spool_writer_open_fd(w, fileno(f), &header_4));
    ok(getrlimit(RLIMIT_FSIZE, &old));
    small.rlim_max = old.rlim_max;
    ok(setrlimit(RLIMIT_FSIZE, &small));
    assert_int_equal(write_much(w), SPOOL_ERR_IO);
    ok(setrlimit(RLIMIT_FSIZE, &old)); /* now there would be room */
    assert_non_null(strstr(spool_writer_error(w), strerror(EFBIG)));
    assert_dead(w);
    spool_writer_free(w);
    assert_int_equal(pread(fileno(f), got, 400001, 0), 400000);
    assert_memory_equal(got, s.data, 400000);
    fclose(f);
    signal(SIGXFSZ, action);
    sink_free(&s);
    free(got);
}

static void on_alarm(int number)
{
    (void)number;
}

/* Reads slowly what `expected` says and exits with 0 when it is so. */
static _Noreturn void slow_reader(int fd, const uint8_t *expected, size_t size)
{
    uint8_t buffer[3000];
    size_t done = 0;
    ssize_t n;

    while ((n = read(fd, buffer, sizeof buffer)) > 0) {
        if ((size_t)n > size - done || memcmp(buffer, expected + done, (size_t)n) != 0)
            _exit(1);
        done += (size_t)n;
        if (done / 3000 % 16 == 0)
            usleep(200);
    }
    _exit(done == size ? 0 : 1);
}

/* Short writes, EAGAIN and EINTR all happen here. */
static void a_slow_pipe_with_signals_gets_every_byte(void **state)
{
    struct sigaction action = {.sa_handler = on_alarm}, old;
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);

    (void)state;
    ok(write_much(w));
    finish(w);
    for (int blocking = 0; blocking < 2; blocking++) {
        struct spool_header header = {.version = 3};
        int fds[2], status;
        pid_t child;

        ok(pipe(fds));
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(fds[1]);
            slow_reader(fds[0], s.data, s.size);
        }
        close(fds[0]);
        if (!blocking)
            ok(fcntl(fds[1], F_SETFL, O_NONBLOCK));
        ok(sigaction(SIGALRM, &action, &old));
        ok(setitimer(ITIMER_REAL, &often, NULL));
        w = spool_writer_new();
        ok(spool_writer_open_fd(w, fds[1], &header));
        ok(write_much(w));
        finish(w);
        ok(setitimer(ITIMER_REAL, &never, NULL));
        ok(sigaction(SIGALRM, &old, NULL));
        close(fds[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    sink_free(&s);
}

static void a_freed_writer_writes_nothing(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);

    (void)state;
    ok(sample(w, 1, loose(1)));
    spool_writer_free(w);
    assert_int_equal(s.calls, 0);
}

static void a_deep_recursion_needs_no_stack(void **state)
{
    enum { DEPTH = 1000000 };
    struct spool_writer_frame *frames = malloc(DEPTH * sizeof *frames);
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);
    struct spool_snapshot *snapshot = spool_snapshot_new();
    struct spool_stack leaf;

    (void)state;
    assert_non_null(frames);
    assert_non_null(snapshot);
    for (size_t i = 0; i < DEPTH; i++)
        frames[i] = loose(i % 3);
    ok(spool_writer_sample(w, 1, 7, 7, frames, DEPTH));
    finish(w);
    ok(spool_snapshot_load_memory(snapshot, s.data, s.size));
    assert_true(spool_reader_stack(spool_snapshot_reader(snapshot), DEPTH - 1, &leaf));
    assert_int_equal(leaf.depth, DEPTH);
    spool_snapshot_free(snapshot);
    sink_free(&s);
    free(frames);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_written_one_by_one_give_the_same_bytes),
        cmocka_unit_test(samples_written_by_contents_give_the_same_bytes),
        cmocka_unit_test(example_1_an_empty_spool),
        cmocka_unit_test(example_2_version_1),
        cmocka_unit_test(example_3_two_generations_of_a_mapping),
        cmocka_unit_test(example_4_kernel_frame_and_marker),
        cmocka_unit_test(example_5_clock_origin_and_generated_code),
        cmocka_unit_test(a_sample_without_frames_writes_and_changes_nothing),
        cmocka_unit_test(loose_frames_are_defined_again_after_every_change_of_the_modules),
        cmocka_unit_test(pinned_frames_and_the_marker_are_defined_once),
        cmocka_unit_test(times_may_step_by_any_63_bits),
        cmocka_unit_test(kernel_modules_of_version_4_have_no_process),
        cmocka_unit_test(a_refused_sample_leaves_no_trace),
        cmocka_unit_test(pinned_frames_may_use_the_whole_of_their_module),
        cmocka_unit_test(old_versions_take_any_process_and_thread_id),
        cmocka_unit_test(modules_that_the_version_cannot_store_are_refused),
        cmocka_unit_test(jit_modules_that_break_a_rule_are_refused),
        cmocka_unit_test(other_records_are_refused_by_the_rules_of_version_4),
        cmocka_unit_test(headers_that_no_reader_takes_are_refused),
        cmocka_unit_test(calls_out_of_order_are_refused),
        cmocka_unit_test(ids_that_are_used_up_are_a_limit_and_not_the_end),
        cmocka_unit_test(records_with_wrong_ids_are_refused),
        cmocka_unit_test(records_with_given_ids_and_samples_by_contents_do_not_mix),
        cmocka_unit_test(an_annotation_is_a_module_that_maps_nothing),
        cmocka_unit_test(annotations_come_back_from_a_reader_and_can_be_put_again),
        cmocka_unit_test(a_long_value_is_cut_at_a_character),
        cmocka_unit_test(a_plain_writer_checks_annotations_and_leaves_them_out),
        cmocka_unit_test(output_is_handed_over_in_large_pieces_of_whole_records),
        cmocka_unit_test(flush_hands_over_what_there_is),
        cmocka_unit_test(flush_ends_behind_a_whole_record),
        cmocka_unit_test(nothing_is_written_after_an_output_that_fails_at_any_call),
        cmocka_unit_test(a_full_disk_is_an_error_that_stays),
        cmocka_unit_test(a_closed_pipe_is_an_error_that_stays),
        cmocka_unit_test(an_output_that_fails_in_the_middle_of_a_piece_gets_nothing_more),
        cmocka_unit_test(a_slow_pipe_with_signals_gets_every_byte),
        cmocka_unit_test(a_freed_writer_writes_nothing),
        cmocka_unit_test(a_deep_recursion_needs_no_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
