/* SPDX-License-Identifier: MIT */
/*
 * Decoding and encoding of every record type, side by side so that they cannot drift apart; the header is in
 * record_header.c. The order of the checks is
 * part of the format (spool(5)): a record that breaks a rule in an early field is corrupt even when the file ends in
 * a later one.
 */
#include "record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "table.h"
#include "utf8.h"

/* What one decode call works on. */
struct decoder {
    struct cursor *c;
    const struct table *t;
    struct error_state *e;
    const char *what; /* record name for messages */
    uint64_t offset_bytes;
    const uint8_t *begin; /* the tag */
};

static const char *const record_names[] = {
    [SPOOL_RECORD_MODULE] = "module",
    [SPOOL_RECORD_FRAME] = "frame",
    [SPOOL_RECORD_STACK] = "stack",
    [SPOOL_RECORD_THREAD] = "thread",
    [SPOOL_RECORD_SAMPLE] = "sample",
    [SPOOL_RECORD_PYTHON] = "python",
    [SPOOL_RECORD_DEACTIVATE_PROCESS] = "process deactivation",
    [SPOOL_RECORD_DEACTIVATE_MODULE] = "module deactivation",
    [SPOOL_RECORD_JIT_MODULE] = "JIT module",
};

const char *spoolint_record_name(enum spool_record_type type)
{
    if (type == SPOOL_RECORD_ANNOTATION)
        return "annotation";
    if ((unsigned)type < sizeof record_names / sizeof record_names[0] && record_names[type])
        return record_names[type];
    return "unknown";
}

/* ---- helpers of the decoders ---- */

/* The beginning of every message: which record, where. */
static int refuse(const struct decoder *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(const struct decoder *d, const char *format, ...)
{
    char detail[SPOOLINT_ERROR_SIZE];
    va_list ap;

    va_start(ap, format);
    vsnprintf(detail, sizeof detail, format, ap);
    va_end(ap);
    return spoolint_error_set(d->e, SPOOL_ERR_CORRUPT, "%s record at byte %" PRIu64 " %s", d->what,
                              d->offset_bytes, detail);
}

/* The verdict on a cursor that is not CURSOR_OK. */
static int stopped(const struct decoder *d)
{
    if (d->c->state == CURSOR_SHORT)
        return DECODE_SHORT;
    return refuse(d, "has a number of more than 64 bits at byte %" PRIu64,
                  d->offset_bytes + (uint64_t)(d->c->at - d->begin));
}

/* Reads one varint or leaves the function with its verdict. */
#define READ_UV(d, var)                 \
    do {                                \
        (var) = cursor_uv((d)->c);      \
        if ((d)->c->state != CURSOR_OK) \
            return stopped(d);          \
    } while (0)

static int decode_id(const struct decoder *d, uint32_t expected)
{
    uint64_t id;

    READ_UV(d, id);
    if (id != expected)
        return refuse(d, "has id %" PRIu64 " instead of %" PRIu32, id, expected);
    if (id > FORMAT_ID_MAX)
        return refuse(d, "has id %" PRIu64 ", beyond the largest id %u", id, FORMAT_ID_MAX);
    return DECODE_OK;
}

static int decode_pid(const struct decoder *d, bool positive, int32_t *pid)
{
    uint64_t raw;
    int64_t value;

    READ_UV(d, raw);
    value = zigzag_decode(raw);
    if (value < INT32_MIN || value > INT32_MAX)
        return refuse(d, "has process id %" PRId64 ", which is no 32-bit number", value);
    if (positive && value < 1)
        return refuse(d, "has process id %" PRId64 ", which is not positive", value);
    *pid = (int32_t)value;
    return DECODE_OK;
}

static int decode_u32(const struct decoder *d, const char *field, uint32_t *out)
{
    uint64_t value;

    READ_UV(d, value);
    if (value > UINT32_MAX)
        return refuse(d, "has %s %" PRIu64 ", which is no 32-bit number", field, value);
    *out = (uint32_t)value;
    return DECODE_OK;
}

/* A reference to a definition of which there are `count`. */
static int decode_reference(const struct decoder *d, const char *kind, uint32_t count,
                            uint32_t *out)
{
    uint64_t id;

    READ_UV(d, id);
    if (id >= count)
        return refuse(d, "refers to %s %" PRIu64 " of %" PRIu32, kind, id, count);
    *out = (uint32_t)id;
    return DECODE_OK;
}

static int decode_flag(const struct decoder *d, bool *out)
{
    *out = cursor_byte(d->c) != 0;
    return d->c->state == CURSOR_OK ? DECODE_OK : stopped(d);
}

/* A length and that many bytes. Checked in 64 bits: a length may not lead beyond 2^64-1, and one that leads beyond
 * the window is short, whatever it says. */
static int decode_bytes(const struct decoder *d, const char *field, uint64_t limit,
                        const char **data, size_t *size, uint64_t *needed_bytes)
{
    uint64_t length, at;

    READ_UV(d, length);
    at = d->offset_bytes + (uint64_t)(d->c->at - d->begin);
    if (length > UINT64_MAX - at)
        return refuse(d, "has a %s of %" PRIu64 " bytes, which leads beyond 2^64-1", field, length);
    if (length > limit) {
        *needed_bytes = (uint64_t)(d->c->at - d->begin) + length;
        return DECODE_TOO_LONG;
    }
    *data = (const char *)cursor_bytes(d->c, length);
    if (d->c->state != CURSOR_OK)
        return stopped(d);
    *size = (size_t)length;
    return DECODE_OK;
}

static int check_utf8(const struct decoder *d, const char *field, const char *data, size_t size)
{
    size_t valid = spoolint_utf8_valid_prefix(data, size);

    if (valid == size)
        return DECODE_OK;
    return refuse(d, "has a %s that is not UTF-8 at its byte %zu", field, valid);
}

/* ---- the records ---- */

#define TRY(expr)                 \
    do {                          \
        int result_ = (expr);     \
        if (result_ != DECODE_OK) \
            return result_;       \
    } while (0)

static int decode_module(const struct decoder *d, struct spool_module *m, uint64_t *needed_bytes)
{
    uint32_t version = d->t->version;

    memset(m, 0, sizeof *m);
    TRY(decode_id(d, d->t->module_count));
    m->id = d->t->module_count;
    TRY(decode_pid(d, false, &m->pid));
    READ_UV(d, m->start);
    READ_UV(d, m->end);
    READ_UV(d, m->file_offset);
    READ_UV(d, m->inode);
    if (version >= FORMAT_VERSION_IDENTITY) {
        TRY(decode_u32(d, "device major", &m->dev_major));
        TRY(decode_u32(d, "device minor", &m->dev_minor));
        READ_UV(d, m->inode_gen);
    }
    TRY(decode_flag(d, &m->kernel));
    if (version >= FORMAT_VERSION_ORIGIN && !m->kernel && m->pid < 1)
        return refuse(d, "has process id %" PRId32 ", which is not positive", m->pid);
    TRY(decode_bytes(d, "path", FORMAT_PATH_LIMIT, &m->path, &m->path_size, needed_bytes));
    if (version < FORMAT_VERSION_ORIGIN)
        TRY(check_utf8(d, "path", m->path, m->path_size));
    m->retired_at_frame = SPOOL_NOT_RETIRED;
    return DECODE_OK;
}

static void encode_module(struct byte_buffer *b, uint32_t version, const struct spool_module *m)
{
    uint8_t *p;

    if (m->path_size > SIZE_MAX - 256 || !spoolint_buffer_reserve(b, 256 + m->path_size))
        return;
    p = b->data + b->size;
    *p++ = m->jit ? FORMAT_TAG_JIT_MODULE : FORMAT_TAG_MODULE;
    p = varint_write(p, m->id);
    p = varint_write(p, zigzag_encode(m->pid));
    p = varint_write(p, m->start);
    p = varint_write(p, m->end);
    p = varint_write(p, m->file_offset);
    p = varint_write(p, m->inode);
    if (version >= FORMAT_VERSION_IDENTITY) {
        p = varint_write(p, m->dev_major);
        p = varint_write(p, m->dev_minor);
        p = varint_write(p, m->inode_gen);
    }
    *p++ = m->kernel;
    p = varint_write(p, m->path_size);
    if (m->path_size > 0)
        memcpy(p, m->path, m->path_size);
    p += m->path_size;
    b->size = (size_t)(p - b->data);
}

static bool jit_scratch_reserve(struct jit_scratch *jit, size_t count)
{
    struct spool_jit_symbol *grown;
    size_t capacity = jit->capacity ? jit->capacity : 64;

    if (count <= jit->capacity)
        return true;
    while (capacity < count)
        capacity *= 2;
    grown = realloc(jit->symbols, capacity * sizeof *grown);
    if (!grown)
        return false;
    jit->symbols = grown;
    jit->capacity = capacity;
    return true;
}

/* The symbols from number jit->checked on. */
static int decode_jit_symbols(const struct decoder *d, struct jit_scratch *jit,
                              const struct spool_module *m, uint64_t count, uint64_t *needed_bytes)
{
    for (size_t i = jit->checked; i < count; i++) {
        struct spool_jit_symbol s = {0};
        uint64_t size;

        READ_UV(d, s.start);
        READ_UV(d, s.end);
        if (s.start >= s.end || s.start < m->start || s.end > m->end)
            return refuse(d,
                          "has symbol %zu at 0x%" PRIx64 "-0x%" PRIx64 ", not inside 0x%" PRIx64
                          "-0x%" PRIx64,
                          i, s.start, s.end, m->start, m->end);
        READ_UV(d, size);
        if (size > FORMAT_JIT_NAME_MAX)
            return refuse(d, "has a name of %" PRIu64 " bytes, above %u", size,
                          FORMAT_JIT_NAME_MAX);
        s.name = (const char *)cursor_bytes(d->c, size);
        if (d->c->state != CURSOR_OK)
            return stopped(d);
        s.name_size = (size_t)size;
        TRY(check_utf8(d, "name", s.name, s.name_size));
        if (i > 0 && s.start < jit->symbols[i - 1].start)
            return refuse(d, "has symbol %zu at 0x%" PRIx64 ", before symbol %zu at 0x%" PRIx64, i,
                          s.start, i - 1, jit->symbols[i - 1].start);
        if ((uint64_t)(d->c->at - d->begin) > FORMAT_JIT_BYTES_LIMIT) {
            *needed_bytes = FORMAT_JIT_BYTES_LIMIT;
            return DECODE_TOO_LONG;
        }
        if (!jit_scratch_reserve(jit, i + 1))
            return spoolint_error_set(d->e, SPOOL_ERR_NOMEM, "out of memory for %zu JIT symbols",
                                      i + 1);
        jit->symbols[i] = s;
        jit->checked = i + 1;
        jit->checked_bytes = (size_t)(d->c->at - d->begin);
    }
    return DECODE_OK;
}

static int decode_jit_module(const struct decoder *d, struct jit_scratch *jit,
                             struct spool_module *m, uint64_t *needed_bytes)
{
    const uint8_t *first;
    uint64_t count;

    TRY(decode_module(d, m, needed_bytes));
    m->jit = true;
    READ_UV(d, count);
    if (count > FORMAT_JIT_SYMBOLS_MAX)
        return refuse(d, "has %" PRIu64 " symbols, above %u", count, FORMAT_JIT_SYMBOLS_MAX);
    if (m->kernel)
        return refuse(d, "is a kernel module");
    first = d->c->at;
    if (jit->checked > 0 && jit->offset_bytes == d->offset_bytes) {
        d->c->at = d->begin + jit->checked_bytes;
        TRY(decode_jit_symbols(d, jit, m, count, needed_bytes));
        d->c->at = first; /* complete now; the window may have moved away from under the names */
    }
    jit->offset_bytes = d->offset_bytes;
    jit->checked = 0;
    TRY(decode_jit_symbols(d, jit, m, count, needed_bytes));
    jit->checked = 0;
    m->jit_symbols = jit->symbols;
    m->jit_symbol_count = (size_t)count;
    return DECODE_OK;
}

static void encode_jit_module(struct byte_buffer *b, uint32_t version, const struct spool_module *m)
{
    encode_module(b, version, m);
    if (!spoolint_buffer_reserve(b, FORMAT_VARINT_MAX_SIZE))
        return;
    b->size = (size_t)(varint_write(b->data + b->size, m->jit_symbol_count) - b->data);
    for (size_t i = 0; i < m->jit_symbol_count; i++) {
        const struct spool_jit_symbol *s = &m->jit_symbols[i];
        uint8_t *p;

        if (!spoolint_buffer_reserve(b, (size_t)3 * FORMAT_VARINT_MAX_SIZE + s->name_size))
            return;
        p = b->data + b->size;
        p = varint_write(p, s->start);
        p = varint_write(p, s->end);
        p = varint_write(p, s->name_size);
        if (s->name_size > 0)
            memcpy(p, s->name, s->name_size);
        b->size = (size_t)(p - b->data) + s->name_size;
    }
}

static int decode_frame(const struct decoder *d, struct spool_frame *f)
{
    uint64_t code, address;

    memset(f, 0, sizeof *f);
    TRY(decode_id(d, d->t->frame_count));
    f->id = d->t->frame_count;
    /* The code alone is not judged: a code for a missing module at the end of the file is a cut tail. */
    READ_UV(d, code);
    READ_UV(d, address);
    f->module_id = SPOOL_NO_ID;
    if (code == FORMAT_CODE_TRUNCATED) {
        if (address != 0)
            return refuse(d, "is a truncated-stack marker with address 0x%" PRIx64, address);
        f->kind = SPOOL_FRAME_TRUNCATED;
        return DECODE_OK;
    }
    f->rel = address;
    if (code & 1) {
        f->kind = SPOOL_FRAME_UNPINNED;
        f->kernel = (code & FORMAT_CODE_KERNEL_BIT) != 0;
        f->abs = address;
        return DECODE_OK;
    }
    if (code / 2 >= d->t->module_count)
        return refuse(d, "refers to module %" PRIu64 " of %" PRIu32, code / 2, d->t->module_count);

    const struct spool_module *m = &d->t->modules[code / 2];

    if (address < m->file_offset)
        return refuse(d, "has address 0x%" PRIx64 " below file offset 0x%" PRIx64 " of module %u",
                      address, m->file_offset, m->id);
    if (m->end < m->start)
        return refuse(d,
                      "refers to module %u, which ends at 0x%" PRIx64
                      " before its start 0x%" PRIx64,
                      m->id, m->end, m->start);
    if (address - m->file_offset >= m->end - m->start)
        return refuse(d,
                      "has address 0x%" PRIx64
                      " beyond the end of module %u (file offset 0x%" PRIx64 ", size 0x%" PRIx64
                      ")",
                      address, m->id, m->file_offset, m->end - m->start);
    f->kind = SPOOL_FRAME_PINNED;
    f->module_id = m->id;
    f->kernel = m->kernel;
    f->abs = m->start + (address - m->file_offset);
    return DECODE_OK;
}

static uint8_t *encode_frame(uint8_t *p, const struct spool_frame *f)
{
    *p++ = FORMAT_TAG_FRAME;
    p = varint_write(p, f->id);
    switch (f->kind) {
    case SPOOL_FRAME_PINNED:
        p = varint_write(p, (uint64_t)f->module_id * 2);
        return varint_write(p, f->rel);
    case SPOOL_FRAME_UNPINNED:
        p = varint_write(p, f->kernel ? FORMAT_CODE_KERNEL : FORMAT_CODE_USER);
        return varint_write(p, f->abs);
    case SPOOL_FRAME_TRUNCATED:
        break;
    }
    p = varint_write(p, FORMAT_CODE_TRUNCATED);
    return varint_write(p, 0);
}

static int decode_stack(const struct decoder *d, struct spool_stack *s)
{
    uint64_t prefix;

    TRY(decode_id(d, d->t->stack_count));
    s->id = d->t->stack_count;
    READ_UV(d, prefix);
    if (prefix != FORMAT_ID_NONE && prefix >= d->t->stack_count)
        return refuse(d, "refers to prefix %" PRIu64 " of %" PRIu32, prefix, d->t->stack_count);
    s->prefix = (uint32_t)prefix;
    TRY(decode_reference(d, "frame", d->t->frame_count, &s->frame));
    s->depth = prefix == FORMAT_ID_NONE ? 1 : d->t->depths[prefix] + 1;
    return DECODE_OK;
}

static uint8_t *encode_stack(uint8_t *p, const struct spool_stack *s)
{
    *p++ = FORMAT_TAG_STACK;
    p = varint_write(p, s->id);
    p = varint_write(p, s->prefix);
    return varint_write(p, s->frame);
}

static int decode_thread(const struct decoder *d, struct spool_thread *th)
{
    bool v4 = d->t->version >= FORMAT_VERSION_ORIGIN;

    TRY(decode_id(d, d->t->thread_count));
    th->id = d->t->thread_count;
    TRY(decode_pid(d, v4, &th->pid));
    READ_UV(d, th->tid);
    if (v4 && (th->tid < 1 || th->tid > FORMAT_TID_MAX_V4))
        return refuse(d, "has thread id %" PRIu64 ", which is not in 1 to %u", th->tid,
                      FORMAT_TID_MAX_V4);
    return DECODE_OK;
}

static uint8_t *encode_thread(uint8_t *p, const struct spool_thread *th)
{
    *p++ = FORMAT_TAG_THREAD;
    p = varint_write(p, th->id);
    p = varint_write(p, zigzag_encode(th->pid));
    return varint_write(p, th->tid);
}

static int decode_sample(const struct decoder *d, struct spool_sample *s)
{
    uint64_t raw, last = d->t->time_ns;

    READ_UV(d, raw);
    s->delta_ns = zigzag_decode(raw);
    if (s->delta_ns < 0 ? (uint64_t)0 - (uint64_t)s->delta_ns > last
                        : (uint64_t)s->delta_ns > UINT64_MAX - last)
        return refuse(d, "has a time delta of %" PRId64 " ns after time %" PRIu64 " ns",
                      s->delta_ns, last);
    s->time_ns = last + (uint64_t)s->delta_ns;
    TRY(decode_reference(d, "thread", d->t->thread_count, &s->thread));
    TRY(decode_reference(d, "stack", d->t->stack_count, &s->stack));
    s->index = d->t->sample_count;
    s->pid = d->t->threads[s->thread].pid;
    s->tid = d->t->threads[s->thread].tid;
    return DECODE_OK;
}

static uint8_t *encode_sample(uint8_t *p, const struct spool_sample *s)
{
    *p++ = FORMAT_TAG_SAMPLE;
    p = varint_write(p, zigzag_encode(s->delta_ns));
    p = varint_write(p, s->thread);
    return varint_write(p, s->stack);
}

static int decode_python(const struct decoder *d, struct spool_python *py)
{
    READ_UV(d, py->time_ns);
    TRY(decode_pid(d, d->t->version >= FORMAT_VERSION_ORIGIN, &py->pid));
    return decode_flag(d, &py->on);
}

static uint8_t *encode_python(uint8_t *p, const struct spool_python *py)
{
    *p++ = FORMAT_TAG_PYTHON;
    p = varint_write(p, py->time_ns);
    p = varint_write(p, zigzag_encode(py->pid));
    *p++ = py->on;
    return p;
}

/* ---- API ---- */

int spoolint_record_decode(struct cursor *c, uint64_t offset_bytes, const struct table *t,
                           struct jit_scratch *jit, struct spool_record *rec,
                           uint64_t *needed_bytes, struct error_state *e)
{
    struct decoder d = {.c = c, .t = t, .e = e, .offset_bytes = offset_bytes, .begin = c->at};
    uint8_t tag = cursor_byte(c);

    if (c->state != CURSOR_OK)
        return DECODE_SHORT;
    rec->type = (enum spool_record_type)tag;
    rec->offset_bytes = offset_bytes;
    d.what = spoolint_record_name(rec->type);
    switch (tag) {
    case FORMAT_TAG_MODULE:
        return decode_module(&d, &rec->module, needed_bytes);
    case FORMAT_TAG_FRAME:
        return decode_frame(&d, &rec->frame);
    case FORMAT_TAG_STACK:
        return decode_stack(&d, &rec->stack);
    case FORMAT_TAG_THREAD:
        return decode_thread(&d, &rec->thread);
    case FORMAT_TAG_SAMPLE:
        return decode_sample(&d, &rec->sample);
    case FORMAT_TAG_PYTHON:
        return decode_python(&d, &rec->python);
    case FORMAT_TAG_DEACTIVATE_PROCESS:
        return decode_pid(&d, t->version >= FORMAT_VERSION_ORIGIN, &rec->deactivated_pid);
    case FORMAT_TAG_DEACTIVATE_MODULE:
        if (t->version >= FORMAT_VERSION_MODULE_DEACTIVATION)
            return decode_reference(&d, "module", t->module_count, &rec->deactivated_module);
        break;
    case FORMAT_TAG_JIT_MODULE:
        if (t->version >= FORMAT_VERSION_ORIGIN)
            return decode_jit_module(&d, jit, &rec->module, needed_bytes);
        break;
    default:
        break;
    }
    return spoolint_error_set(e, SPOOL_ERR_CORRUPT,
                              "record at byte %" PRIu64 " has tag %u, which version %" PRIu32
                              " does not have",
                              offset_bytes, tag, t->version);
}

void spoolint_record_encode(struct byte_buffer *b, uint32_t version, const struct spool_record *rec)
{
    uint8_t *p;

    switch (rec->type) {
    case SPOOL_RECORD_MODULE:
        encode_module(b, version, &rec->module);
        return;
    case SPOOL_RECORD_JIT_MODULE:
        encode_jit_module(b, version, &rec->module);
        return;
    case SPOOL_RECORD_ANNOTATION:
        encode_module(b, version, &rec->annotation.module);
        return;
    default:
        break;
    }
    if (!spoolint_buffer_reserve(b, 1 + 4 * FORMAT_VARINT_MAX_SIZE))
        return;
    p = b->data + b->size;
    switch (rec->type) {
    case SPOOL_RECORD_FRAME:
        p = encode_frame(p, &rec->frame);
        break;
    case SPOOL_RECORD_STACK:
        p = encode_stack(p, &rec->stack);
        break;
    case SPOOL_RECORD_THREAD:
        p = encode_thread(p, &rec->thread);
        break;
    case SPOOL_RECORD_SAMPLE:
        p = encode_sample(p, &rec->sample);
        break;
    case SPOOL_RECORD_PYTHON:
        p = encode_python(p, &rec->python);
        break;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        *p++ = FORMAT_TAG_DEACTIVATE_PROCESS;
        p = varint_write(p, zigzag_encode(rec->deactivated_pid));
        break;
    case SPOOL_RECORD_DEACTIVATE_MODULE:
        *p++ = FORMAT_TAG_DEACTIVATE_MODULE;
        p = varint_write(p, rec->deactivated_module);
        break;
    default:
        break;
    }
    b->size = (size_t)(p - b->data);
}

bool spoolint_buffer_reserve(struct byte_buffer *b, size_t size)
{
    size_t capacity = b->capacity ? b->capacity : 4096;
    uint8_t *grown;

    if (b->failed)
        return false;
    if (size <= b->capacity - b->size)
        return true;
    while (capacity - b->size < size) {
        if (capacity > SIZE_MAX / 2) {
            b->failed = true;
            return false;
        }
        capacity *= 2;
    }
    grown = realloc(b->data, capacity);
    if (!grown) {
        b->failed = true;
        return false;
    }
    b->data = grown;
    b->capacity = capacity;
    return true;
}
