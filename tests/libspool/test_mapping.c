/* SPDX-License-Identifier: MIT */
/*
 * The mapping table: compared call by call with a model that follows its rules in the plainest way and writes its
 * own bytes; what a reader makes of its spools; what it does when it is refused something.
 */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "spool/spool.h"
#include "spool_bytes.h"
#include "writer_internal.h"

#define ok(call) assert_int_equal(call, 0)

struct sink {
    struct bytes bytes;
    bool fails;
    size_t calls;
};

static int take(void *user, const void *data, size_t size)
{
    struct sink *s = user;

    s->calls++;
    if (s->fails)
        return ENOSPC;
    bytes_put(&s->bytes, data, size);
    return 0;
}

static struct spool_writer *writer_of(struct sink *s, uint32_t version)
{
    struct spool_header header = {.version = version};
    struct spool_writer *w = spool_writer_new();

    assert_non_null(w);
    spoolint_writer_allow_old_versions(w);
    ok(spool_writer_open_callback(w, take, s, &header));
    return w;
}

static void finish(struct spool_writer *w)
{
    ok(spool_writer_finish(w));
    spool_writer_free(w);
}

/* ---- the model ---- */

#define MODEL_MAX 512
#define PIDS 4 /* 1 to 4 */

struct model {
    struct spool_module live[MODEL_MAX]; /* by id */
    size_t count;
    uint32_t next_id;
    uint32_t version;
    enum spool_mapping_order order;
    bool replaced[PIDS + 1]; /* since the last look */
    struct bytes out;
};

static bool equal(const struct spool_module *a, const struct spool_module *b, bool any_generation)
{
    return a->pid == b->pid && a->start == b->start && a->end == b->end &&
           a->file_offset == b->file_offset && a->inode == b->inode &&
           a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && a->kernel == b->kernel &&
           a->path_size == b->path_size && memcmp(a->path, b->path, a->path_size) == 0 &&
           (a->inode_gen == b->inode_gen || (any_generation && a->inode_gen != 0));
}

static const struct spool_module *model_equal(const struct model *m, const struct spool_module *x)
{
    for (size_t i = 0; i < m->count; i++)
        if (equal(&m->live[i], x, false))
            return &m->live[i];
    for (size_t i = 0; i < m->count && x->inode_gen == 0; i++)
        if (equal(&m->live[i], x, true))
            return &m->live[i];
    return NULL;
}

static void model_write(struct model *m, struct spool_module x)
{
    struct bytes *b = &m->out;

    assert_true(m->count < MODEL_MAX);
    x.id = m->next_id++;
    m->live[m->count++] = x;
    bytes_byte(b, 1);
    bytes_uv(b, x.id);
    bytes_sv(b, x.pid);
    bytes_uv(b, x.start);
    bytes_uv(b, x.end);
    bytes_uv(b, x.file_offset);
    bytes_uv(b, x.inode);
    bytes_uv(b, x.dev_major);
    bytes_uv(b, x.dev_minor);
    bytes_uv(b, x.inode_gen);
    bytes_byte(b, x.kernel);
    bytes_uv(b, x.path_size);
    bytes_put(b, x.path, x.path_size);
}

static void model_forget(struct model *m, uint32_t id)
{
    size_t i = 0;

    while (m->live[i].id != id)
        i++;
    m->replaced[m->live[i].pid] = true;
    m->count--;
    memmove(&m->live[i], &m->live[i + 1], (m->count - i) * sizeof m->live[0]);
}

static int by_start(const void *a, const void *b)
{
    const struct spool_module *left = a, *right = b;

    return (left->start > right->start) - (left->start < right->start);
}

/* The process's mappings that overlap, in the order of visiting. */
static size_t model_list(const struct model *m, int32_t pid, uint64_t start, uint64_t end,
                         struct spool_module *list)
{
    size_t count = 0;

    for (size_t i = 0; i < m->count; i++)
        if (!m->live[i].kernel && m->live[i].pid == pid && m->live[i].start < end &&
            start < m->live[i].end)
            list[count++] = m->live[i];
    if (m->order == SPOOL_MAPPING_BY_ADDRESS)
        qsort(list, count, sizeof *list, by_start);
    return count;
}

static uint32_t model_apply(struct model *m, struct spool_module x)
{
    struct spool_module over[MODEL_MAX], pieces[2 * MODEL_MAX];
    size_t over_count, piece_count = 0;

    if (x.end <= x.start)
        return SPOOL_NO_ID;
    if (x.kernel && m->version == 4)
        x.pid = -1;
    if (model_equal(m, &x))
        return model_equal(m, &x)->id;
    over_count = x.kernel ? 0 : model_list(m, x.pid, x.start, x.end, over);
    for (size_t i = 0; i < over_count; i++) {
        const struct spool_module *old = &over[i];

        if (old->start < x.start) {
            pieces[piece_count] = *old;
            pieces[piece_count++].end = x.start < old->end ? x.start : old->end;
        }
        if (x.end < old->end) {
            struct spool_module *piece = &pieces[piece_count++];

            *piece = *old;
            piece->start = x.end > old->start ? x.end : old->start;
            piece->file_offset += piece->start - old->start;
            if (piece->file_offset < old->file_offset)
                piece->file_offset = UINT64_MAX;
        }
    }
    for (size_t i = 0; i < over_count; i++) {
        model_forget(m, over[i].id);
        bytes_deactivate_module(&m->out, over[i].id);
    }
    for (size_t i = 0; i < piece_count; i++)
        if (!model_equal(m, &pieces[i]))
            model_write(m, pieces[i]);
    if (!model_equal(m, &x))
        model_write(m, x);
    return model_equal(m, &x)->id;
}

static void model_deactivate(struct model *m, int32_t pid)
{
    struct spool_module list[MODEL_MAX];
    size_t count = model_list(m, pid, 0, UINT64_MAX, list);

    for (size_t i = 0; i < count; i++)
        model_forget(m, list[i].id);
    if (count > 0)
        bytes_deactivate_process(&m->out, pid);
}

static void model_clone(struct model *m, int32_t parent, int32_t child)
{
    struct spool_module list[MODEL_MAX];
    size_t count = model_list(m, parent, 0, UINT64_MAX, list);

    for (size_t i = 0; i < count; i++) {
        list[i].pid = child;
        model_apply(m, list[i]);
    }
}

static const struct spool_module *model_find(const struct model *m, int32_t pid, bool kernel,
                                             uint64_t address)
{
    for (size_t i = m->count; i-- > 0;) {
        const struct spool_module *x = &m->live[i];

        if (x->kernel == kernel && (kernel || x->pid == pid) && x->start <= address &&
            address < x->end)
            return x;
    }
    return NULL;
}

/* ---- random calls ---- */

/* One sequence of calls, made of the table and of the model. */
struct run {
    uint64_t seed;
    uint64_t base;  /* of the address space ... */
    uint64_t space; /* ... and its size */
    struct model model;
    struct sink sink;
    struct spool_writer *w;
    struct spool_mappings *table;
    uint64_t generation[PIDS + 1];
};

static uint64_t below(struct run *r, uint64_t bound)
{
    return random_u64(&r->seed) % bound;
}

static int32_t random_pid(struct run *r)
{
    return 1 + (int32_t)below(r, PIDS);
}

static struct spool_module random_mapping(struct run *r)
{
    static const char *const paths[] = {"/lib/a", "/lib/b", ""};
    struct spool_module x = {.pid = random_pid(r)};

    x.start = r->base + below(r, r->space);
    x.end = r->base + below(r, r->space);
    if (x.end < x.start && below(r, 8) > 0) {
        uint64_t start = x.end;

        x.end = x.start;
        x.start = start;
    }
    x.file_offset = below(r, 3) > 0 ? 16 * below(r, 2) : UINT64_MAX - below(r, r->space);
    x.inode = below(r, 2);
    x.dev_major = (uint32_t)below(r, 8) / 7;
    x.dev_minor = (uint32_t)below(r, 8) / 7;
    x.inode_gen = below(r, 3);
    x.kernel = below(r, 6) == 0;
    x.path = paths[below(r, 3)];
    x.path_size = strlen(x.path);
    return x;
}

static void apply(struct run *r, const struct spool_module *x)
{
    uint32_t id = 12345;

    ok(spool_mappings_apply(r->table, x, &id));
    assert_int_equal(id, model_apply(&r->model, *x));
}

/* One of those that are live, or nearly so: chance alone seldom meets one. */
static struct spool_module known_mapping(struct run *r)
{
    struct spool_module x = r->model.live[below(r, r->model.count)];

    switch (below(r, 6)) {
    case 0:
        x.inode_gen = 0;
        break;
    case 1:
        x.inode_gen = 1 + below(r, 2);
        break;
    case 2:
        x.path = "/lib/c";
        x.path_size = 6;
        break;
    case 3:
        x.inode ^= 1;
        break;
    case 4:
        x.pid = random_pid(r);
        break;
    default:
        break;
    }
    return x;
}

static void step(struct run *r)
{
    uint64_t what = below(r, 20);
    int32_t pid = random_pid(r), other = random_pid(r);
    struct spool_module x;

    if (what == 0) {
        ok(spool_mappings_deactivate(r->table, pid));
        model_deactivate(&r->model, pid);
    } else if (what == 1) {
        ok(spool_mappings_clone(r->table, pid, other));
        model_clone(&r->model, pid, other);
    } else {
        x = what < 6 && r->model.count > 0 ? known_mapping(r) : random_mapping(r);
        apply(r, &x);
    }
}

static void assert_same_mapping(const struct spool_module *got, const struct spool_module *expected)
{
    assert_true(equal(got, expected, false));
    assert_int_equal(got->id, expected->id);
    assert_false(got->jit);
    assert_int_equal(got->retired_at_frame, SPOOL_NOT_RETIRED);
    assert_int_equal(got->path[got->path_size], 0);
}

static void compare_process(struct run *r, int32_t pid)
{
    struct spool_module list[MODEL_MAX], got;
    size_t at = 0, count;
    uint64_t generation = spool_mappings_generation(r->table, pid);

    count = model_list(&r->model, pid, 0, UINT64_MAX, list);
    qsort(list, count, sizeof list[0], by_start);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(spool_mappings_next(r->table, pid, &at, &got), 1);
        assert_same_mapping(&got, &list[i]);
    }
    assert_int_equal(spool_mappings_next(r->table, pid, &at, &got), 0);
    assert_int_equal(at, count);

    if (count == 0)
        assert_int_equal(generation, 0);
    else if (r->model.replaced[pid] || r->generation[pid] == 0)
        assert_int_not_equal(generation, r->generation[pid]);
    else
        assert_int_equal(generation, r->generation[pid]);
    r->generation[pid] = generation;
    r->model.replaced[pid] = false;
}

static void compare_address(struct run *r, int32_t pid, bool kernel, uint64_t address)
{
    const struct spool_module *expected = model_find(&r->model, pid, kernel, address);
    struct spool_module got;
    struct spool_writer_frame frame;

    assert_int_equal(spool_mappings_find(r->table, pid, kernel, address, &got), expected != NULL);
    if (expected)
        assert_same_mapping(&got, expected);
    spool_mappings_frame(r->table, pid, kernel, address, &frame);
    assert_int_equal(frame.kernel, kernel);
    if (expected && expected->file_offset + (address - expected->start) >= expected->file_offset) {
        assert_int_equal(frame.kind, SPOOL_FRAME_PINNED);
        assert_int_equal(frame.module_id, expected->id);
        assert_int_equal(frame.address, expected->file_offset + (address - expected->start));
    } else {
        assert_int_equal(frame.kind, SPOOL_FRAME_UNPINNED);
        assert_int_equal(frame.module_id, SPOOL_NO_ID);
        assert_int_equal(frame.address, address);
    }
}

static void run_begin(struct run *r, uint64_t number)
{
    memset(r, 0, sizeof *r);
    r->seed = number;
    r->space = number % 3 == 0 ? 12 : 40;
    r->base = number % 7 == 0 ? UINT64_MAX - r->space : number % 7 == 1 ? 0 : 4096;
    r->model.version = number / 2 % 2 ? 3 : 4;
    r->model.order = number % 2 ? SPOOL_MAPPING_BY_ADDRESS : SPOOL_MAPPING_BY_ID;
    bytes_header(&r->model.out, r->model.version, 0, 0);
    r->w = writer_of(&r->sink, r->model.version);
    r->table = spool_mappings_new(r->w, r->model.order);
    assert_non_null(r->table);
}

static void run_end(struct run *r)
{
    spool_mappings_free(r->table);
    bytes_free(&r->sink.bytes);
    bytes_free(&r->model.out);
}

static void any_calls_write_what_the_model_writes(void **state)
{
    struct run *r = malloc(sizeof *r);

    (void)state;
    assert_non_null(r);
    for (uint64_t number = 0; number < 3000; number++) {
        run_begin(r, number);
        for (int i = 0; i < 60; i++) {
            step(r);
            compare_process(r, random_pid(r));
            compare_address(r, random_pid(r), below(r, 4) == 0, r->base + below(r, r->space + 1));
        }
        for (int32_t pid = 1; pid <= PIDS; pid++) {
            compare_process(r, pid);
            for (uint64_t i = 0; i <= r->space; i++) {
                compare_address(r, pid, false, r->base + i);
                compare_address(r, pid, true, r->base + i);
            }
        }
        finish(r->w);
        assert_int_equal(r->sink.bytes.size, r->model.out.size);
        assert_memory_equal(r->sink.bytes.data, r->model.out.data, r->model.out.size);
        run_end(r);
    }
    free(r);
}

/* ---- reading back ---- */

struct expected_frame {
    bool found;
    uint32_t module;
    uint64_t rel;
    uint64_t address;
};

#define DEPTH 3
#define SAMPLES 120

static void write_frames(struct run *r, uint64_t time_ns, struct expected_frame *expected)
{
    struct spool_writer_frame frames[DEPTH];
    int32_t pid = random_pid(r);

    for (size_t i = 0; i < DEPTH; i++) {
        uint64_t address = r->base + below(r, r->space);
        bool kernel = below(r, 3) == 0;
        const struct spool_module *x = model_find(&r->model, pid, kernel, address);

        spool_mappings_frame(r->table, pid, kernel, address, &frames[i]);
        expected[i] = (struct expected_frame){.module = SPOOL_NO_ID, .address = address};
        if (x && x->file_offset + (address - x->start) >= x->file_offset) {
            expected[i].found = true;
            expected[i].module = x->id;
            expected[i].rel = x->file_offset + (address - x->start);
        }
    }
    ok(spool_writer_sample(r->w, time_ns, pid, 9, frames, DEPTH));
}

static void read_frames(struct spool_reader *r, const struct spool_sample *sample,
                        const struct expected_frame *expected)
{
    uint32_t node = sample->stack;
    uint32_t ids[DEPTH];

    assert_int_equal(spool_reader_walk(r, &node, ids, DEPTH), DEPTH);
    for (size_t i = 0; i < DEPTH; i++) {
        struct spool_frame frame;
        uint32_t module;
        uint64_t rel;

        assert_true(spool_reader_frame(r, ids[i], &frame));
        assert_int_equal(frame.abs, expected[i].address);
        assert_int_equal(spool_reader_locate(r, ids[i], sample->pid, &module, &rel),
                         expected[i].found);
        assert_int_equal(module, expected[i].module);
        if (expected[i].found)
            assert_int_equal(rel, expected[i].rel);
    }
}

static void a_reader_finds_every_frame_where_the_table_had_it(void **state)
{
    struct run *r = malloc(sizeof *r);
    struct expected_frame expected[SAMPLES][DEPTH];

    (void)state;
    assert_non_null(r);
    for (uint64_t number = 0; number < 1000; number++) {
        struct spool_reader *reader = spool_reader_new();
        struct spool_record rec;
        size_t i = 0;
        int rc;

        run_begin(r, number);
        for (size_t k = 0; k < SAMPLES; k++) {
            if (below(r, 3) == 0)
                step(r);
            write_frames(r, k, expected[k]);
        }
        finish(r->w);
        assert_non_null(reader);
        ok(spool_reader_open_memory(reader, r->sink.bytes.data, r->sink.bytes.size));
        while ((rc = spool_reader_next(reader, &rec)) > 0)
            if (rec.type == SPOOL_RECORD_SAMPLE)
                read_frames(reader, &rec.sample, expected[i++]);
        ok(rc);
        assert_false(spool_reader_cut_tail(reader));
        assert_int_equal(i, SAMPLES);
        spool_reader_free(reader);
        run_end(r);
    }
    free(r);
}

/* ---- stackpulse's own table ---- */

/* What one call of its table wrote: retired modules, pieces, and at last the new one, which is there when all
 * addresses of the retired ones are taken again. */
struct call {
    const struct spool_module *retired[16];
    size_t retired_count;
    uint64_t bytes_left; /* of them */
};

static void replay_retired(struct call *c, const struct spool_module *m)
{
    assert_true(c->retired_count < 16);
    c->retired[c->retired_count++] = m;
    c->bytes_left += m->end - m->start;
}

/* Whether the module is the last record of its call. */
static bool replay_ends(struct call *c, const struct spool_module *m)
{
    for (size_t i = 0; i < c->retired_count; i++) {
        const struct spool_module *old = c->retired[i];
        uint64_t start = m->start > old->start ? m->start : old->start;
        uint64_t end = m->end < old->end ? m->end : old->end;

        if (start < end)
            c->bytes_left -= end - start;
    }
    return c->bytes_left == 0;
}

/* chosen: which frames are unpinned is the generator's choice, also where there is a mapping. */
static void replay_sample(struct spool_writer *w, const struct spool_mappings *table,
                          const struct spool_reader *r, const struct spool_sample *sample,
                          bool chosen)
{
    struct spool_writer_frame frames[512];
    uint32_t ids[512], node = sample->stack;
    size_t count = spool_reader_walk(r, &node, ids, 512);

    assert_int_equal(node, SPOOL_NO_ID);
    for (size_t i = 0; i < count; i++) {
        struct spool_frame f;

        assert_true(spool_reader_frame(r, ids[i], &f));
        if (f.kind == SPOOL_FRAME_TRUNCATED)
            frames[i] = (struct spool_writer_frame){.kind = SPOOL_FRAME_TRUNCATED};
        else if (f.kind == SPOOL_FRAME_UNPINNED && chosen)
            frames[i] = (struct spool_writer_frame){
                .kind = SPOOL_FRAME_UNPINNED, .kernel = f.kernel, .address = f.abs};
        else
            spool_mappings_frame(table, sample->pid, f.kernel, f.abs, &frames[i]);
    }
    ok(spool_writer_sample(w, sample->time_ns, sample->pid, sample->tid, frames, count));
}

/* Calls the table as the recorder that wrote the spool must have. */
static void replay(const struct bytes *spool, bool chosen, struct sink *s)
{
    struct spool_snapshot *all = spool_snapshot_new();
    struct spool_reader *r = spool_reader_new();
    struct spool_mappings *table;
    struct spool_writer *w;
    struct spool_record rec;
    struct call call = {0};
    int rc;

    ok(spool_snapshot_load_memory(all, spool->data, spool->size)); /* modules that stay in place */
    ok(spool_reader_open_memory(r, spool->data, spool->size));
    w = spool_writer_new();
    spoolint_writer_allow_old_versions(w);
    ok(spool_writer_open_callback(w, take, s, spool_reader_header(r)));
    table = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    while ((rc = spool_reader_next(r, &rec)) > 0) {
        switch (rec.type) {
        case SPOOL_RECORD_MODULE:
            if (replay_ends(&call, &rec.module)) {
                ok(spool_mappings_apply(table, &rec.module, NULL));
                call = (struct call){0};
            }
            break;
        case SPOOL_RECORD_DEACTIVATE_MODULE:
            replay_retired(&call,
                           spool_reader_module(spool_snapshot_reader(all), rec.deactivated_module));
            break;
        case SPOOL_RECORD_DEACTIVATE_PROCESS:
            ok(spool_mappings_deactivate(table, rec.deactivated_pid));
            break;
        case SPOOL_RECORD_PYTHON:
            ok(spool_writer_python(w, rec.python.time_ns, rec.python.pid, rec.python.on));
            break;
        case SPOOL_RECORD_SAMPLE:
            replay_sample(w, table, r, &rec.sample, chosen);
            break;
        default:
            break; /* the writer's business */
        }
    }
    ok(rc);
    finish(w);
    spool_mappings_free(table);
    spool_reader_free(r);
    spool_snapshot_free(all);
}

static void spools_of_stackpulses_table_come_out_the_same(void **state)
{
    /* Not churn-v2: it was converted, and without generations some mappings are replaced by equal ones. */
    static const char *const names[] = {
        "kernel/syscalls-O2", "ladder/attach-O2", "ladder/exec-chain",
        "ladder/ladder-O0",   "ladder/ladder-O2", "ladder/ladder-O2-fork",
        "python/py312",       "python/py313",     "ladder/ladder-O2-smallstack",
        "synth/backwards",    "synth/basic",      "synth/churn",
        "synth/deep",         "synth/unpinned"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct bytes spool = {0};
        struct sink s = {0};
        char path[512];

        snprintf(path, sizeof path, "%s/stackpulse/%s.spool", FIXTURES_DIR, names[i]);
        bytes_file(&spool, path);
        replay(&spool, strncmp(names[i], "synth/", 6) == 0, &s);
        if (s.bytes.size != spool.size || memcmp(s.bytes.data, spool.data, spool.size) != 0)
            fail_msg("%s comes out differently", names[i]);
        bytes_free(&spool);
        bytes_free(&s.bytes);
    }
}

/* ---- one rule at a time ---- */

static struct spool_module mapping(int32_t pid, uint64_t start, uint64_t end, const char *path)
{
    return (struct spool_module){
        .pid = pid, .start = start, .end = end, .path = path, .path_size = strlen(path)};
}

static uint32_t applied(struct spool_mappings *m, struct spool_module x)
{
    uint32_t id;

    ok(spool_mappings_apply(m, &x, &id));
    return id;
}

static uint32_t found(const struct spool_mappings *m, int32_t pid, bool kernel, uint64_t address)
{
    struct spool_module x;

    return spool_mappings_find(m, pid, kernel, address, &x) ? x.id : SPOOL_NO_ID;
}

static void pieces_are_written_in_the_order_of_what_they_are_of(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct sink s = {0};
        struct spool_writer *w = writer_of(&s, 3);
        struct spool_mappings *m = spool_mappings_new(w, (enum spool_mapping_order)order);
        struct bytes expected = {0};

        applied(m, mapping(7, 60, 100, "/high"));
        applied(m, mapping(7, 0, 40, "/low"));
        applied(m, mapping(7, 20, 80, "/new"));
        finish(w);
        bytes_header(&expected, 3, 0, 0);
        bytes_module(&expected, 3, 0, 7, 60, 100, 0, false, "/high");
        bytes_module(&expected, 3, 1, 7, 0, 40, 0, false, "/low");
        bytes_deactivate_module(&expected, order == SPOOL_MAPPING_BY_ID ? 0 : 1);
        bytes_deactivate_module(&expected, order == SPOOL_MAPPING_BY_ID ? 1 : 0);
        if (order == SPOOL_MAPPING_BY_ID)
            bytes_module(&expected, 3, 2, 7, 80, 100, 20, false, "/high");
        bytes_module(&expected, 3, order == SPOOL_MAPPING_BY_ID ? 3 : 2, 7, 0, 20, 0, false,
                     "/low");
        if (order == SPOOL_MAPPING_BY_ADDRESS)
            bytes_module(&expected, 3, 3, 7, 80, 100, 20, false, "/high");
        bytes_module(&expected, 3, 4, 7, 20, 80, 0, false, "/new");
        assert_int_equal(s.bytes.size, expected.size);
        assert_memory_equal(s.bytes.data, expected.data, expected.size);
        spool_mappings_free(m);
        bytes_free(&s.bytes);
        bytes_free(&expected);
    }
}

static void a_mapping_that_a_table_returned_can_be_applied_over_itself(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 4);
    struct spool_mappings *m = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    struct spool_module x;

    (void)state;
    applied(m, mapping(7, 10, 20, "/a"));
    assert_int_equal(spool_mappings_find(m, 7, false, 15, &x), 1);
    x.start = 12; /* its path goes with what it replaces */
    assert_int_equal(applied(m, x), 2);
    assert_int_equal(spool_mappings_find(m, 7, false, 15, &x), 1);
    assert_string_equal(x.path, "/a");
    assert_int_equal(found(m, 7, false, 11), 1);
    spool_mappings_free(m);
    finish(w);
    bytes_free(&s.bytes);
}

/* Nothing is written and nothing changed. */
static void refused(struct spool_mappings *m, struct spool_writer *w, struct spool_module x,
                    int code, const char *text)
{
    uint64_t bytes = spool_writer_bytes(w);
    uint64_t generation = spool_mappings_generation(m, 7);
    uint32_t id = 5;

    assert_int_equal(spool_mappings_apply(m, &x, &id), code);
    assert_int_equal(id, SPOOL_NO_ID);
    if (!strstr(spool_writer_error(w), text))
        fail_msg("%s: not in: %s", text, spool_writer_error(w));
    assert_int_equal(spool_writer_bytes(w), bytes);
    assert_int_equal(spool_mappings_generation(m, 7), generation);
    assert_int_equal(found(m, 7, false, 15), 0);
}

static void a_refused_mapping_changes_nothing(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 3);
    struct spool_mappings *m = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    struct spool_module x = mapping(7, 12, 18, "\xff");

    (void)state;
    applied(m, mapping(7, 10, 20, "/a"));
    refused(m, w, x, SPOOL_ERR_MISUSE, "UTF-8");
    x = mapping(7, 12, 18, "/b");
    x.jit = true;
    refused(m, w, x, SPOOL_ERR_MISUSE, "JIT");
    x.jit = false;
    spoolint_writer_limit_ids(w, 3); /* the mapping and two pieces are one too many */
    refused(m, w, x, SPOOL_ERR_LIMIT, "no more than 3 modules");
    x.end = 20;
    assert_int_equal(applied(m, x), 2);
    assert_int_equal(spool_mappings_clone(m, 7, 8), SPOOL_ERR_LIMIT);
    assert_int_equal(spool_mappings_generation(m, 8), 0);
    spool_mappings_free(m);
    finish(w);
    bytes_free(&s.bytes);

    w = writer_of(&s, 4);
    m = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    applied(m, mapping(7, 10, 20, "/a"));
    refused(m, w, mapping(0, 10, 20, "/a"), SPOOL_ERR_MISUSE, "process id 0");
    assert_int_equal(spool_mappings_clone(m, 7, -1), SPOOL_ERR_MISUSE);
    spool_mappings_free(m);
    finish(w);
    bytes_free(&s.bytes);
}

static void a_table_of_a_writer_that_is_not_open_is_refused(void **state)
{
    struct sink s = {0};
    struct spool_header header = {.version = 4};
    struct spool_writer *w = spool_writer_new();
    struct spool_mappings *m = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    struct spool_module x = mapping(7, 10, 20, "/a");

    (void)state;
    assert_int_equal(spool_mappings_apply(m, &x, NULL), SPOOL_ERR_MISUSE);
    assert_int_equal(spool_mappings_deactivate(m, 7), SPOOL_ERR_MISUSE);
    assert_int_equal(spool_mappings_clone(m, 7, 8), SPOOL_ERR_MISUSE);
    ok(spool_writer_open_callback(w, take, &s, &header));
    ok(spool_mappings_apply(m, &x, NULL));
    ok(spool_writer_finish(w));
    assert_int_equal(spool_mappings_apply(m, &x, NULL), SPOOL_ERR_MISUSE);
    assert_int_equal(found(m, 7, false, 15), 0);
    spool_mappings_free(m);
    spool_mappings_free(NULL);
    spool_writer_free(w);
    bytes_free(&s.bytes);
}

static void a_failed_output_fails_every_change(void **state)
{
    struct sink s = {0};
    struct spool_writer *w = writer_of(&s, 4);
    struct spool_mappings *m = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    struct spool_module x = mapping(7, 12, 18, "/b");
    char *path = calloc(1, 300000); /* more than the buffer: it is handed over in the middle */

    (void)state;
    assert_non_null(path);
    memset(path, 'p', 290000);
    applied(m, mapping(7, 10, 20, path));
    s.fails = true;
    s.calls = 0;
    assert_int_equal(spool_mappings_apply(m, &x, NULL), SPOOL_ERR_IO);
    assert_int_equal(spool_mappings_apply(m, &x, NULL), SPOOL_ERR_IO);
    assert_int_equal(spool_mappings_deactivate(m, 7), SPOOL_ERR_IO);
    assert_int_equal(spool_mappings_deactivate(m, 99), SPOOL_ERR_IO);
    assert_int_equal(spool_mappings_clone(m, 7, 8), SPOOL_ERR_IO);
    assert_non_null(strstr(spool_writer_error(w), strerror(ENOSPC)));
    assert_int_equal(s.calls, 1);
    assert_int_equal(found(m, 7, false, 15), 0);
    spool_mappings_free(m);
    spool_writer_free(w);
    bytes_free(&s.bytes);
    free(path);
}

/* ---- size ---- */

static int ignore(void *user, const void *data, size_t size)
{
    (void)user;
    (void)data;
    (void)size;
    return 0;
}

static void tens_of_thousands_of_mappings_are_no_trouble(void **state)
{
    enum { COUNT = 30000, FEWER = 8000 }; /* sanitizers move memory slowly */
    struct spool_header header = {.version = 4};
    struct spool_writer *w = spool_writer_new();
    struct spool_mappings *m = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    uint64_t seed = 1;

    (void)state;
    ok(spool_writer_open_callback(w, ignore, NULL, &header));
    for (uint64_t i = 0; i < COUNT; i++)
        applied(m, mapping(1, 0x1000 * i, 0x1000 * i + 0x800, "/lib/a"));
    for (uint64_t i = FEWER; i-- > 0;) { /* downwards, as the kernel places them */
        struct spool_module x = mapping(2, 0x1000 * i, 0x1000 * i + 0x800, "/lib/a");

        applied(m, x);
        x.kernel = true;
        applied(m, x);
    }
    for (int i = 0; i < 300000; i++) {
        uint64_t address = random_u64(&seed) % ((uint64_t)0x1000 * COUNT);
        bool inside = address % 0x1000 < 0x800;
        bool below = address < (uint64_t)0x1000 * FEWER;

        assert_true((found(m, 1, false, address) != SPOOL_NO_ID) == inside);
        assert_true((found(m, 2, false, address) != SPOOL_NO_ID) == (inside && below));
        assert_true((found(m, 0, true, address) != SPOOL_NO_ID) == (inside && below));
    }
    for (int32_t pid = 10; pid < 14; pid++) {
        ok(spool_mappings_clone(m, 1, pid));
        assert_int_not_equal(found(m, pid, false, 0x1000 * (COUNT - 1)), SPOOL_NO_ID);
    }
    assert_int_equal(applied(m, mapping(1, 0, UINT64_MAX, "/all")), 5 * COUNT + 2 * FEWER);
    assert_int_equal(found(m, 1, false, 0x1900), 5 * COUNT + 2 * FEWER);
    spool_mappings_free(m);
    finish(w);
}

/* Different for different i, without a pattern that a hash could happen to suit. */
static int32_t scattered_pid(uint32_t i)
{
    uint32_t mixed = i * 0x9e3779b1u & 0x3fffffff;

    return (int32_t)(mixed ^ mixed >> 15);
}

static void processes_that_are_gone_leave_nothing_behind(void **state)
{
    enum { COUNT = 30000, LIVE = 37 };
    struct spool_header header = {.version = 4};
    struct spool_writer *w = spool_writer_new();
    struct spool_mappings *m = spool_mappings_new(w, SPOOL_MAPPING_BY_ID);
    int32_t parent = scattered_pid(1);
    size_t early = 0, late;

    (void)state;
    ok(spool_writer_open_callback(w, ignore, NULL, &header));
    for (uint64_t i = 0; i < 10; i++)
        applied(m, mapping(parent, 0x1000 * i, 0x1000 * i + 0x1000, "/lib/a"));
    for (uint32_t i = 2; i < COUNT; i++) {
        ok(spool_mappings_clone(m, parent, scattered_pid(i)));
        if (i < 2 + LIVE)
            continue;
        if (i == COUNT / 6)
            early = mallinfo2().uordblks;
        ok(spool_mappings_deactivate(m, scattered_pid(i - LIVE)));
        for (uint32_t k = i - LIVE - 1; k <= i; k++) {
            bool live = k == 1 || k > i - LIVE;

            assert_true((found(m, scattered_pid(k), false, 0x9fff) != SPOOL_NO_ID) == live);
            assert_true((spool_mappings_generation(m, scattered_pid(k)) != 0) == live);
        }
    }
    /* Of 250,000 modules a bit each, and arrays that double. */
    late = mallinfo2().uordblks;
    assert_true(late < early + 128 * 1024);
    spool_mappings_free(m);
    finish(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_calls_write_what_the_model_writes),
        cmocka_unit_test(a_reader_finds_every_frame_where_the_table_had_it),
        cmocka_unit_test(spools_of_stackpulses_table_come_out_the_same),
        cmocka_unit_test(pieces_are_written_in_the_order_of_what_they_are_of),
        cmocka_unit_test(a_mapping_that_a_table_returned_can_be_applied_over_itself),
        cmocka_unit_test(a_refused_mapping_changes_nothing),
        cmocka_unit_test(a_table_of_a_writer_that_is_not_open_is_refused),
        cmocka_unit_test(a_failed_output_fails_every_change),
        cmocka_unit_test(tens_of_thousands_of_mappings_are_no_trouble),
        cmocka_unit_test(processes_that_are_gone_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
