/* SPDX-License-Identifier: MIT */
/*
 * The kernel's side of a recording, by the first byte: any bytes as one record, with events of several kinds; any bytes in
 * rings that are merged; or a session that reads records which hold as far as their heads go, but come in any order and
 * say anything of processes: its spool must be one that the reader takes.
 */
#include <errno.h>
#include <linux/perf_event.h>

#include "../librecord/fake_ring.h"
#include "session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RING_SIZE ((size_t)32 * 1024)
#define RINGS 2
#define PID 5000000 /* above what Linux gives out: /proc has nothing on them */

static volatile uint64_t touched; /* what is handed out must be readable */

static void touch(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        touched += ((const uint8_t *)bytes)[i];
}

static void parse(const struct perfrec_layout *layout, const void *data, size_t size)
{
    struct perfrec rec;
    uint64_t time_ns;

    (void)recordint_perfrec_time(layout, data, size, &time_ns);
    if (recordint_perfrec_parse(layout, data, size, &rec) < 0)
        return;
    if (rec.kind == PERFREC_SAMPLE) {
        touch(rec.sample.callchain, rec.sample.callchain_count * sizeof(uint64_t));
        touch(rec.sample.stack, rec.sample.stack_size);
    } else if (rec.kind == PERFREC_MMAP) {
        touched += strlen(rec.mmap.path);
        if (rec.mmap.build_id_size > sizeof rec.mmap.build_id)
            abort();
    } else if (rec.kind == PERFREC_COMM) {
        touched += strlen(rec.comm.name);
    } else if (rec.kind == PERFREC_KSYMBOL) {
        touched += strlen(rec.ksymbol.name);
    }
}

static struct perfrec_layout layout_of(uint8_t which)
{
    struct event_config config = {.kernel = (which & 1) != 0, .settled = true};
    struct perfrec_layout layout;

    recordint_event_layout(&config, &layout);
    if ((which & 2) != 0)
        layout.arch = layout.arch == ARCH_X86_64 ? ARCH_AARCH64 : ARCH_X86_64;
    if ((which & 2) != 0)
        layout.sample_regs_user = recordint_perfrec_regs_mask(layout.arch);
    if ((which & 4) != 0)
        layout.sample_type &= ~(uint64_t)PERF_SAMPLE_STACK_USER;
    return layout;
}

/* ---- any bytes ---- */

static void parse_bytes(uint8_t which, const uint8_t *data, size_t size)
{
    struct perfrec_layout layout = layout_of(which);
    struct perf_event_header header;
    uint64_t *copy;

    size = size > UINT16_MAX ? UINT16_MAX / 8 * 8 : size / 8 * 8;
    if (size < sizeof header)
        return;
    copy = malloc(size);
    if (copy == NULL)
        abort();
    memcpy(copy, data, size);
    memcpy(&header, copy, sizeof header);
    header.size = (uint16_t)size;
    memcpy(copy, &header, sizeof header);
    parse(&layout, copy, size);
    free(copy);
}

static void merge_bytes(uint8_t which, const uint8_t *data, size_t size)
{
    struct perfrec_layout layout = layout_of(which);
    struct order *order = recordint_order_new(&layout);
    struct fake_ring rings[RINGS];
    size_t half = size / 2;

    for (unsigned i = 0; i < RINGS; i++) {
        /* The second begins where the ring ends, so that records wrap. */
        fake_ring_new(&rings[i], RING_SIZE, i == 0 ? 0 : RING_SIZE - 64);
        recordint_order_add(order, &rings[i].ring);
    }
    for (unsigned round = 0; round < 3; round++) {
        const void *record;
        size_t record_size;

        for (unsigned i = 0; round < 2 && i < RINGS; i++) {
            size_t part = half > RING_SIZE / 2 ? RING_SIZE / 2 : half / 8 * 8;

            (void)fake_ring_write(&rings[i], data + i * half, part);
        }
        recordint_order_begin(order, round == 2 ? UINT64_MAX : UINT64_C(1) << 62);
        while (recordint_order_next(order, &record, &record_size) > 0)
            parse(&layout, record, record_size);
    }
    if (recordint_order_pending(order))
        abort();
    recordint_order_free(order);
    for (unsigned i = 0; i < RINGS; i++)
        fake_ring_free(&rings[i]);
}

/* ---- a session ---- */

struct input {
    const uint8_t *at;
    const uint8_t *end;
};

static uint64_t take(struct input *in, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes && in->at < in->end; i++)
        value |= (uint64_t)*in->at++ << 8 * i;
    return value;
}

static uint32_t take_id(struct input *in)
{
    uint8_t id = (uint8_t)take(in, 1);

    return id >= 250 ? id - UINT32_C(251) /* -1, 0, ... */ : (uint32_t)PID + (id & 7u);
}

struct record {
    uint64_t words[1024];
    size_t size;
};

static void put(struct record *r, uint64_t value, size_t bytes)
{
    memcpy((uint8_t *)r->words + r->size, &value, bytes);
    r->size += bytes;
}

/* A path that is not there: what is opened here is real. */
static void put_text(struct record *r, struct input *in, const char *before, size_t max)
{
    size_t length = strlen(before);
    uint64_t size = take(in, 1) % max;

    memcpy((uint8_t *)r->words + r->size, before, length);
    r->size += length;
    for (uint64_t i = 0; i < size && in->at < in->end; i++)
        put(r, *in->at++, 1);
    do {
        put(r, 0, 1);
    } while (r->size % 8 != 0);
}

static void put_sample(struct record *r, struct input *in, const struct perfrec_layout *layout,
                       uint64_t time_ns)
{
    size_t size = take(in, 1) * 8;

    put(r, 1, 8);
    put(r, take(in, 2), 8);
    put(r, take_id(in), 4);
    put(r, take_id(in), 4);
    put(r, time_ns, 8);
    put(r, 0, 8);
    put(r, 1, 8);
    if ((layout->sample_type & PERF_SAMPLE_CALLCHAIN) != 0) {
        uint64_t count = take(in, 1) % 16;

        put(r, count, 8);
        for (uint64_t i = 0; i < count; i++)
            put(r, take(in, 1) < 64 ? UINT64_C(0) - (take(in, 1) << 4) : take(in, 2), 8);
    }
    put(r, take(in, 1) % 4, 8);
    if (r->words[r->size / 8 - 1] != 0)
        for (uint64_t left = layout->sample_regs_user; left != 0; left &= left - 1)
            put(r, take(in, 2), 8);
    put(r, size, 8);
    for (size_t i = 0; i < size / 8; i++)
        put(r, take(in, 2), 8);
    if (size > 0)
        put(r, take(in, 1) * 8, 8);
}

static void put_mmap2(struct record *r, struct input *in)
{
    static const char *const before[] = {"/nowhere/", "/nowhere/python",          "//anon", "[",
                                         "",          "/nowhere/libpython3.12.so"};

    put(r, take_id(in), 4);
    put(r, take_id(in), 4);
    put(r, take(in, 2) << (take(in, 1) & 63), 8);
    put(r, take(in, 2) << (take(in, 1) & 63), 8);
    put(r, take(in, 2), 8);
    put(r, take(in, 4), 8);
    put(r, take(in, 2), 8);
    put(r, take(in, 1), 8);
    put(r, take(in, 1) % 8 | 4, 4);
    put(r, 2, 4);
    put_text(r, in, before[take(in, 1) % 6], 100);
}

/* What stands behind the head of each kind, and the sample id. */
static void put_body(struct record *r, struct input *in, uint32_t type,
                     const struct perfrec_layout *layout, uint64_t time_ns)
{
    switch (type) {
    case PERF_RECORD_SAMPLE:
        put_sample(r, in, layout, time_ns);
        return;
    case PERF_RECORD_MMAP2:
        put_mmap2(r, in);
        break;
    case PERF_RECORD_COMM:
        put(r, take_id(in), 4);
        put(r, take_id(in), 4);
        put_text(r, in, "", 16);
        break;
    case PERF_RECORD_KSYMBOL:
        put(r, take(in, 8), 8);
        put(r, take(in, 4), 4);
        put(r, take(in, 2), 4);
        put_text(r, in, "", 60);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        for (unsigned i = 0; i < 4; i++)
            put(r, take_id(in), 4);
        put(r, time_ns, 8);
        break;
    default:
        put(r, take(in, 2), 8);
        put(r, take(in, 4), 8);
        break;
    }
    put(r, take_id(in), 4);
    put(r, take_id(in), 4);
    put(r, time_ns, 8);
    put(r, 0, 8);
    put(r, 1, 8);
}

static size_t take_record(struct input *in, const struct perfrec_layout *layout, uint64_t *time_ns,
                          struct record *r)
{
    static const uint32_t types[] = {
        PERF_RECORD_SAMPLE,      PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2,   PERF_RECORD_MMAP2,
        PERF_RECORD_COMM,        PERF_RECORD_FORK,   PERF_RECORD_FORK,    PERF_RECORD_EXIT,
        PERF_RECORD_LOST,        PERF_RECORD_MMAP,   PERF_RECORD_KSYMBOL, PERF_RECORD_THROTTLE,
        PERF_RECORD_LOST_SAMPLES};
    uint8_t kind = (uint8_t)take(in, 1);
    struct perf_event_header header = {.type = types[kind % 13], .misc = (uint16_t)take(in, 2)};

    r->size = sizeof header;
    *time_ns += take(in, 1);
    put_body(r, in, header.type, layout, *time_ns - take(in, 1) % 4);
    header.size = (uint16_t)r->size;
    memcpy(r->words, &header, sizeof header);
    return r->size;
}

struct sink {
    uint8_t *bytes;
    size_t size;
};

static int keep(void *user, const void *data, size_t size)
{
    struct sink *k = user;
    uint8_t *grown = realloc(k->bytes, k->size + size);

    if (grown == NULL)
        return ENOMEM;
    k->bytes = grown;
    memcpy(k->bytes + k->size, data, size);
    k->size += size;
    return 0;
}

static void read_back(const struct sink *k)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    int rc;

    if (spool_reader_open_memory(r, k->bytes, k->size) != 0)
        abort();
    while ((rc = spool_reader_next(r, &rec)) > 0)
        ;
    if (rc != 0 || spool_reader_cut_tail(r))
        abort();
    spool_reader_free(r);
}

static struct record_session *open_session(struct sink *k, uint8_t which)
{
    struct record_session *s = record_session_new();
    struct record_options options;
    struct process *p;

    record_options_init(&options, sizeof options);
    options.no_inherit = (which & 2) != 0;
    options.plain = (which & 4) != 0;
    options.spool_version = (which & 8) != 0 ? 4 : 3;
    if (s == NULL || record_session_open_callback(s, keep, k, &options) != 0)
        abort();
    s->config.kernel = (which & 1) != 0;
    s->config.settled = true;
    recordint_event_layout(&s->config, &s->layout);
    s->order = recordint_order_new(&s->layout);
    p = recordint_process_new(s, PID);
    if (s->order == NULL || p == NULL || recordint_thread_get(s, p, PID) == NULL)
        abort();
    p->mode = RECORD_MODE_INHERIT;
    p->on = true;
    return s;
}

static void run_session(uint8_t which, const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};
    struct sink sink = {0};
    struct record_session *s = open_session(&sink, which);
    struct fake_ring rings[RINGS];
    struct record record;
    uint64_t time_ns = 1000;

    for (unsigned i = 0; i < RINGS; i++) {
        fake_ring_new(&rings[i], RING_SIZE, i * (RING_SIZE - 64));
        recordint_order_add(s->order, &rings[i].ring);
    }
    while (in.at < in.end) {
        const void *read;
        size_t read_size;

        for (unsigned i = 0; i < 8 && in.at < in.end; i++) {
            uint8_t ring = (uint8_t)take(&in, 1) % RINGS;

            record.size = take_record(&in, &s->layout, &time_ns, &record);
            (void)fake_ring_write(&rings[ring], record.words, record.size);
        }
        recordint_order_begin(s->order, time_ns);
        while (recordint_order_next(s->order, &read, &read_size) > 0)
            if (recordint_record(s, read, read_size) != 0)
                abort();
        if (recordint_recover(s) != 0)
            abort();
    }
    if (record_session_finish(s) != 0)
        abort();
    record_session_free(s);
    read_back(&sink);
    free(sink.bytes);
    for (unsigned i = 0; i < RINGS; i++)
        fake_ring_free(&rings[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 8192)
        return 0;
    if (data[0] % 4 == 0)
        parse_bytes(data[1], data + 2, size - 2);
    else if (data[0] % 4 == 1)
        merge_bytes(data[1], data + 2, size - 2);
    else
        run_session(data[1], data + 2, size - 2);
    return 0;
}
