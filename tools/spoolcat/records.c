/* SPDX-License-Identifier: MIT */
/*
 * The record view as JSON lines (spoolcat(1), OUTPUT) and as text with the same keys. It streams:
 * what stands before damage has been printed. Numbers are written straight into the output
 * buffer, for spools have millions of records.
 */
#include "records.h"

#include "json.h"
#include "tables.h"
#include "text.h"

#include <string.h>

/* More than the numbers of any record need: a dozen keys and 20 digits each. */
#define LINE_MAX_NUMBERS 512

struct printer {
    struct tool_output *out;
    bool json;
    bool color;
    uint32_t version;
    struct text_buffer text;
    /* For the report. */
    uint64_t samples;
    uint64_t first_ns, last_ns; /* smallest and largest time */
};

/* ---- building blocks ------------------------------------------------------------------------- */

static char *put(char *at, const char *text, size_t size)
{
    memcpy(at, text, size);
    return at + size;
}
/* A literal's size is known while compiling. */
#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)

static char *put_u64(char *at, uint64_t number)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "6869707172737475767778798081828384858687888990919293949596979899";
    char digits[20];
    size_t begin = sizeof digits;

    while (number >= 100) {
        begin -= 2;
        memcpy(digits + begin, pairs + number % 100 * 2, 2);
        number /= 100;
    }
    if (number >= 10) {
        begin -= 2;
        memcpy(digits + begin, pairs + number * 2, 2);
    } else {
        digits[--begin] = (char)('0' + number);
    }
    return put(at, digits + begin, sizeof digits - begin);
}

static char *put_i64(char *at, int64_t number)
{
    if (number >= 0)
        return put_u64(at, (uint64_t)number);
    *at++ = '-';
    return put_u64(at, 0 - (uint64_t)number);
}

static char *put_hex(char *at, uint64_t number)
{
    unsigned shift = 60;

    at = PUT(at, "0x");
    while (shift > 0 && number >> shift == 0)
        shift -= 4;
    for (;; shift -= 4) {
        *at++ = "0123456789abcdef"[number >> shift & 15];
        if (shift == 0)
            return at;
    }
}

/* One key of the line that is being written, in both forms. key is "name", a literal. Addresses
 * are hex in text. */
#define KEY(p, at, key) ((p)->json ? PUT(at, ",\"" key "\":") : PUT(at, " " key "="))
#define KEY_U64(p, at, key, number) put_u64(KEY(p, at, key), number)
#define KEY_I64(p, at, key, number) put_i64(KEY(p, at, key), number)
#define KEY_ADDRESS(p, at, key, number) \
    ((p)->json ? put_u64(KEY(p, at, key), number) : put_hex(KEY(p, at, key), number))
#define KEY_WORD(p, at, key, word) \
    ((p)->json ? PUT(at, ",\"" key "\":\"" word "\"") : PUT(at, " " key "=" word))
#define KEY_NONE(p, at, key) ((p)->json ? PUT(at, ",\"" key "\":null") : PUT(at, " " key "=-"))

static char *put_bool(char *at, bool value)
{
    return value ? PUT(at, "true") : PUT(at, "false");
}
#define KEY_BOOL(p, at, key, value) put_bool(KEY(p, at, key), value)

/* The beginning of a line: record and offset, in text the other way round and aligned. */
static char *put_head(const struct printer *p, char *at, const char *name, const char *color,
                      bool has_offset, uint64_t offset)
{
    static const char blanks[] = "                  "; /* as long as the longest record name */
    size_t name_size = strlen(name);
    char *begin = at, *digits_end;
    size_t digits;

    if (p->json) {
        at = PUT(at, "{\"rec\":\"");
        at = put(at, name, name_size);
        *at++ = '"';
        return has_offset ? put_u64(PUT(at, ",\"off\":"), offset) : at;
    }
    digits_end = has_offset ? put_u64(at, offset) : PUT(at, "-");
    digits = (size_t)(digits_end - begin);
    if (digits < 10) { /* right-aligned in ten columns */
        memmove(begin + 10 - digits, begin, digits);
        memset(begin, ' ', 10 - digits);
        digits_end = begin + 10;
    }
    at = PUT(digits_end, "  ");
    if (p->color)
        at = put(at, color, strlen(color));
    at = put(at, name, name_size);
    if (p->color)
        at = PUT(at, "\033[0m");
    if (name_size < sizeof blanks - 1)
        at = put(at, blanks, sizeof blanks - 1 - name_size);
    return at;
}

static char *begin_line(const struct printer *p, const char *name, const char *color,
                        uint64_t offset)
{
    return put_head(p, output_reserve(p->out, LINE_MAX_NUMBERS), name, color, true, offset);
}

/* Hands over what was put since begin_line. */
static void take_line(const struct printer *p, const char *at)
{
    output_take(p->out, (size_t)(at - (p->out->data + p->out->size)));
}

static void end_line(const struct printer *p, char *at)
{
    if (p->json)
        *at++ = '}';
    *at++ = '\n';
    take_line(p, at);
}

/* ---- records --------------------------------------------------------------------------------- */

#define COLOR_DEFINITION "\033[36m"
#define COLOR_SAMPLE "\033[32m"
#define COLOR_EVENT "\033[33m"
#define COLOR_FRAME_OF_FILE "\033[1m" /* header and end */

static void print_header(const struct printer *p, const struct spool_header *h)
{
    char *at = begin_line(p, "header", COLOR_FRAME_OF_FILE, 0);

    at = KEY_U64(p, at, "version", h->version);
    at = KEY_U64(p, at, "start_us", h->start_us);
    if (h->version < 4) {
        at = KEY_U64(p, at, "interval_us", h->interval_us);
    } else {
        at = KEY_U64(p, at, "interval_ns", h->interval_ns);
        if (!h->has_origin) {
            at = KEY_NONE(p, at, "origin");
        } else if (p->json) {
            at = PUT(at, ",\"origin\":{\"monotonic_ns\":");
            at = put_u64(at, h->origin.monotonic_ns);
            at = put_i64(PUT(at, ",\"sign\":"), h->origin.sign);
            at = put_u64(PUT(at, ",\"secs\":"), h->origin.seconds);
            at = put_u64(PUT(at, ",\"nanos\":"), h->origin.nanoseconds);
            *at++ = '}';
        } else {
            at = put_u64(PUT(at, " origin.monotonic_ns="), h->origin.monotonic_ns);
            at = put_i64(PUT(at, " origin.sign="), h->origin.sign);
            at = put_u64(PUT(at, " origin.secs="), h->origin.seconds);
            at = put_u64(PUT(at, " origin.nanos="), h->origin.nanoseconds);
        }
    }
    end_line(p, at);
}

/* A path or name of any length, in the form of the view. */
static void print_text(struct printer *p, const char *text, size_t size)
{
    if (p->json) {
        json_text(p->out, text, size);
    } else {
        text_quote(text, size, &p->text);
        output_write(p->out, p->text.data, p->text.size);
    }
}

static void print_path_hex(struct printer *p, const struct spool_module *m)
{
    p->text.size = 0;
    text_append_hex(&p->text, (const uint8_t *)m->path, m->path_size);
    output_text(p->out, ",\"path_hex\":\"");
    output_write(p->out, p->text.data, p->text.size);
    output_byte(p->out, '"');
}

static void print_jit_symbols(struct printer *p, const struct spool_module *m)
{
    if (p->json)
        output_text(p->out, ",\"jit\":[");
    else
        output_printf(p->out, " jit=%zu", m->jit_symbol_count);
    for (size_t i = 0; i < m->jit_symbol_count; i++) {
        const struct spool_jit_symbol *s = &m->jit_symbols[i];
        char *at = output_reserve(p->out, LINE_MAX_NUMBERS);

        if (p->json) {
            at = i == 0 ? PUT(at, "{\"start\":") : PUT(at, ",{\"start\":");
            at = put_u64(at, s->start);
            at = put_u64(PUT(at, ",\"end\":"), s->end);
            at = PUT(at, ",\"name\":");
        } else {
            *at++ = ' ';
            at = put_hex(at, s->start);
            *at++ = '-';
            at = put_hex(at, s->end);
            *at++ = ':';
        }
        take_line(p, at);
        print_text(p, s->name, s->name_size);
        if (p->json)
            output_byte(p->out, '}');
    }
    if (p->json)
        output_byte(p->out, ']');
}

/* Annotations come here as well: what is shown is the record, not what it says. */
static void print_module(struct printer *p, const struct spool_module *m, uint64_t offset)
{
    char *at = begin_line(p, "module", COLOR_DEFINITION, offset);

    at = KEY_U64(p, at, "id", m->id);
    /* Version 4 gives the kernel's modules no process. */
    if (m->kernel && p->version == 4)
        at = KEY_NONE(p, at, "pid");
    else
        at = KEY_I64(p, at, "pid", m->pid);
    at = KEY_ADDRESS(p, at, "start", m->start);
    at = KEY_ADDRESS(p, at, "end", m->end);
    at = KEY_ADDRESS(p, at, "file_offset", m->file_offset);
    at = KEY_U64(p, at, "inode", m->inode);
    at = KEY_U64(p, at, "dev_major", m->dev_major);
    at = KEY_U64(p, at, "dev_minor", m->dev_minor);
    at = KEY_U64(p, at, "inode_gen", m->inode_gen);
    at = KEY_BOOL(p, at, "kernel", m->kernel);
    at = KEY(p, at, "path");
    take_line(p, at);
    print_text(p, m->path, m->path_size);
    if (p->json && !text_is_utf8(m->path, m->path_size))
        print_path_hex(p, m);
    if (m->jit)
        print_jit_symbols(p, m);
    if (p->json)
        output_byte(p->out, '}');
    output_byte(p->out, '\n');
}

static void print_frame(const struct printer *p, const struct spool_frame *f, uint64_t offset)
{
    char *at = begin_line(p, "frame", COLOR_DEFINITION, offset);

    at = KEY_U64(p, at, "id", f->id);
    switch (f->kind) {
    case SPOOL_FRAME_PINNED:
        at = KEY_WORD(p, at, "kind", "pinned");
        at = KEY_U64(p, at, "module", f->module_id);
        at = KEY_ADDRESS(p, at, "rel", f->rel);
        break;
    case SPOOL_FRAME_UNPINNED:
        at = KEY_WORD(p, at, "kind", "unpinned");
        break;
    case SPOOL_FRAME_TRUNCATED:
        at = KEY_WORD(p, at, "kind", "truncated");
        end_line(p, at);
        return;
    }
    at = KEY_ADDRESS(p, at, "abs", f->abs);
    at = f->kernel ? KEY_WORD(p, at, "mode", "kernel") : KEY_WORD(p, at, "mode", "user");
    end_line(p, at);
}

static void print_stack(const struct printer *p, const struct spool_stack *s, uint64_t offset)
{
    char *at = begin_line(p, "stack", COLOR_DEFINITION, offset);

    at = KEY_U64(p, at, "id", s->id);
    if (s->prefix == SPOOL_NO_ID)
        at = KEY_NONE(p, at, "prefix");
    else
        at = KEY_U64(p, at, "prefix", s->prefix);
    at = KEY_U64(p, at, "frame", s->frame);
    at = KEY_U64(p, at, "depth", s->depth);
    end_line(p, at);
}

static void print_thread(const struct printer *p, const struct spool_thread *t, uint64_t offset)
{
    char *at = begin_line(p, "thread", COLOR_DEFINITION, offset);

    at = KEY_U64(p, at, "id", t->id);
    at = KEY_I64(p, at, "pid", t->pid);
    at = KEY_U64(p, at, "tid", t->tid);
    end_line(p, at);
}

static void print_sample(struct printer *p, const struct spool_sample *s, uint64_t offset)
{
    char *at = begin_line(p, "sample", COLOR_SAMPLE, offset);

    at = KEY_U64(p, at, "index", s->index);
    at = KEY_I64(p, at, "delta", s->delta_ns);
    at = KEY_U64(p, at, "ts", s->time_ns);
    at = KEY_U64(p, at, "thread", s->thread);
    at = KEY_I64(p, at, "pid", s->pid);
    at = KEY_U64(p, at, "tid", s->tid);
    at = KEY_U64(p, at, "stack", s->stack);
    end_line(p, at);

    if (p->samples == 0 || s->time_ns < p->first_ns)
        p->first_ns = s->time_ns;
    if (s->time_ns > p->last_ns)
        p->last_ns = s->time_ns;
    p->samples++;
}

static void print_python(const struct printer *p, const struct spool_python *py, uint64_t offset)
{
    char *at = begin_line(p, "python", COLOR_EVENT, offset);

    at = KEY_U64(p, at, "ts", py->time_ns);
    at = KEY_I64(p, at, "pid", py->pid);
    at = KEY_BOOL(p, at, "on", py->on);
    end_line(p, at);
}

static void print_record(struct printer *p, const struct spool_record *r)
{
    uint64_t offset = r->offset_bytes;

    switch (r->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        print_module(p, &r->module, offset);
        break;
    case SPOOL_RECORD_ANNOTATION:
        print_module(p, &r->annotation.module, offset);
        break;
    case SPOOL_RECORD_FRAME:
        print_frame(p, &r->frame, offset);
        break;
    case SPOOL_RECORD_STACK:
        print_stack(p, &r->stack, offset);
        break;
    case SPOOL_RECORD_THREAD:
        print_thread(p, &r->thread, offset);
        break;
    case SPOOL_RECORD_SAMPLE:
        print_sample(p, &r->sample, offset);
        break;
    case SPOOL_RECORD_PYTHON:
        print_python(p, &r->python, offset);
        break;
    case SPOOL_RECORD_DEACTIVATE_PROCESS: {
        char *at = begin_line(p, "deactivate_process", COLOR_EVENT, offset);

        end_line(p, KEY_I64(p, at, "pid", r->deactivated_pid));
        break;
    }
    case SPOOL_RECORD_DEACTIVATE_MODULE: {
        char *at = begin_line(p, "deactivate_module", COLOR_EVENT, offset);

        end_line(p, KEY_U64(p, at, "module", r->deactivated_module));
        break;
    }
    }
}

/* `truncated`: the file goes on behind what was kept, with the beginning of a record or, when it
 * was salvaged, with damage. */
static void print_end(const struct printer *p, const struct spool_reader *reader, bool salvaged)
{
    char *at = output_reserve(p->out, LINE_MAX_NUMBERS);
    struct spool_counts counts;

    spool_reader_counts(reader, &counts);
    at = put_head(p, at, "end", COLOR_FRAME_OF_FILE, false, 0);
    at = KEY_U64(p, at, "version", p->version);
    at = KEY_U64(p, at, "samples", counts.samples);
    at = KEY_U64(p, at, "modules", counts.modules);
    at = KEY_U64(p, at, "frames", counts.frames);
    at = KEY_U64(p, at, "stacks", counts.stacks);
    at = KEY_U64(p, at, "threads", counts.threads);
    at = KEY_U64(p, at, "python", counts.python);
    at = KEY_BOOL(p, at, "truncated", salvaged || spool_reader_cut_tail(reader));
    at = KEY_U64(p, at, "kept", spool_reader_kept_bytes(reader));
    end_line(p, at);
}

enum input_end records_print(struct tool_input *in, const struct tool_options *o,
                             const struct view_options *view, struct progress *progress,
                             struct tool_output *out)
{
    const struct spool_header *header = spool_reader_header(in->reader);
    struct printer p = {
        .out = out, .json = view->json, .color = view->color, .version = header->version};
    struct spool_record record;
    enum input_end end = INPUT_FAILED;
    int rc = 1;

    print_header(&p, header);
    while (!output_failed(out) && (rc = inputs_next(in, &record)) > 0) {
        print_record(&p, &record);
        progress_tick(progress, p.samples);
    }
    if (rc <= 0)
        end = inputs_finish(in, rc, o);
    if (end != INPUT_FAILED)
        print_end(&p, in->reader, end == INPUT_SALVAGED);
    if (end != INPUT_FAILED)
        report_view(o, in, p.first_ns, p.last_ns);
    text_free(&p.text);
    return end;
}
