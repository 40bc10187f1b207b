/* SPDX-License-Identifier: MIT */
/*
 * Compares what the reader makes of a spool with a dump of it that stackpulse made: JSON lines, one
 * flat object each (header, module, frame, python_runtime, sample), plain or gzip. The scanner
 * knows this shape and no other JSON.
 */
#ifndef TEST_DUMP_LINES_H
#define TEST_DUMP_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "spool/spool.h"
#include "spool_bytes.h"

/* The line that is compared, for messages. */
static const char *dump_path;
static unsigned dump_line_number;

#define dump_fail(...)                                           \
    do {                                                         \
        fprintf(stderr, "%s:%u: ", dump_path, dump_line_number); \
        fprintf(stderr, __VA_ARGS__);                            \
        fputc('\n', stderr);                                     \
        fail();                                                  \
    } while (0)

/* A whole text file, gzip or not, NUL-terminated. */
static inline char *dump_load(const char *path)
{
    struct bytes b = {0};
    char part[65536];
    gzFile f = gzopen(path, "rb");
    int n;

    if (f == NULL) {
        perror(path);
        abort();
    }
    while ((n = gzread(f, part, sizeof part)) > 0)
        bytes_put(&b, part, (size_t)n);
    if (n < 0)
        abort();
    gzclose(f);
    bytes_byte(&b, 0);
    dump_path = path;
    dump_line_number = 0;
    return (char *)b.data;
}

/* ---- scanning ---- */

/* The end of the value that begins at p: string, array, number or word. */
static inline const char *json_value_end(const char *p)
{
    unsigned depth = 0;

    do {
        if (*p == '"') {
            for (p++; *p != '"'; p++)
                if (*p == '\0' || (*p == '\\' && *++p == '\0'))
                    dump_fail("string without an end");
            p++;
        } else if (*p == '[' || *p == ']') {
            depth += *p++ == '[' ? 1 : -1u;
        } else if (*p == ',' && depth > 0) {
            p++;
        } else {
            size_t n = strcspn(p, ",]}\"[");

            if (n == 0)
                dump_fail("a value was expected at %.20s", p);
            p += n;
        }
    } while (depth > 0);
    return p;
}

/* The value of a member of the object; a missing one fails the test. */
static inline const char *json_member(const char *object, const char *key)
{
    size_t size = strlen(key);
    const char *p = object + 1;

    while (*p == '"') {
        const char *value = json_value_end(p) + 1;

        if (strncmp(p + 1, key, size) == 0 && p[1 + size] == '"')
            return value;
        p = json_value_end(value);
        if (*p == ',')
            p++;
    }
    dump_fail("no %s", key);
    return NULL;
}

static inline bool json_is_null(const char *value)
{
    return strncmp(value, "null", 4) == 0;
}

static inline uint64_t json_u64(const char *value)
{
    char *end;
    uint64_t number = strtoull(value, &end, 10);

    if (end == value || *value == '-')
        dump_fail("a number was expected at %.20s", value);
    return number;
}

static inline int64_t json_i64(const char *value)
{
    char *end;
    int64_t number = strtoll(value, &end, 10);

    if (end == value)
        dump_fail("a number was expected at %.20s", value);
    return number;
}

/* The string's bytes. \u escapes stand for control characters only. */
static inline void json_string(const char *value, struct bytes *out)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";

    out->size = 0;
    for (const char *p = value + 1; *p != '"'; p++) {
        const char *letter;
        unsigned code;

        if (*p != '\\') {
            bytes_byte(out, (unsigned char)*p);
            continue;
        }
        letter = strchr(letters, *++p);
        if (letter != NULL && *letter != '\0') {
            bytes_byte(out, (unsigned char)meant[letter - letters]);
        } else if (sscanf(p, "u%4x", &code) == 1 && code < 0x80) {
            bytes_byte(out, code);
            p += 4;
        } else {
            dump_fail("unknown escape %.6s", p);
        }
    }
}

static inline void want_u64(const char *object, const char *key, uint64_t got)
{
    uint64_t expected = json_u64(json_member(object, key));

    if (expected != got)
        dump_fail("%s is %llu instead of %llu", key, (unsigned long long)got,
                  (unsigned long long)expected);
}

static inline void want_i64(const char *object, const char *key, int64_t got)
{
    int64_t expected = json_i64(json_member(object, key));

    if (expected != got)
        dump_fail("%s is %lld instead of %lld", key, (long long)got, (long long)expected);
}

static inline void want_bool(const char *object, const char *key, bool got)
{
    if ((json_member(object, key)[0] == 't') != got)
        dump_fail("%s is %d", key, got);
}

static inline void want_string(const char *object, const char *key, const char *text, size_t size)
{
    struct bytes expected = {0};

    json_string(json_member(object, key), &expected);
    if (expected.size != size || (size > 0 && memcmp(expected.data, text, size) != 0))
        dump_fail("%s is %.*s instead of %.*s", key, (int)size, text, (int)expected.size,
                  (const char *)expected.data);
    bytes_free(&expected);
}

/* ---- a spool, read whole ---- */

struct dump_spool {
    struct spool_reader *reader;
    struct spool_sample *samples;
    size_t sample_count;
    struct spool_python *python;
    size_t python_count;
    int rc;
};

static inline void dump_spool_read(struct dump_spool *s, const void *data, size_t size)
{
    struct bytes samples = {0}, python = {0};
    struct spool_record rec;

    *s = (struct dump_spool){.reader = spool_reader_new()};
    if (s->reader == NULL)
        abort();
    s->rc = spool_reader_open_memory(s->reader, data, size);
    while (s->rc == 0 && (s->rc = spool_reader_next(s->reader, &rec)) > 0) {
        s->rc = 0;
        if (rec.type == SPOOL_RECORD_SAMPLE)
            bytes_put(&samples, &rec.sample, sizeof rec.sample);
        else if (rec.type == SPOOL_RECORD_PYTHON)
            bytes_put(&python, &rec.python, sizeof rec.python);
    }
    s->samples = (struct spool_sample *)(void *)samples.data;
    s->sample_count = samples.size / sizeof *s->samples;
    s->python = (struct spool_python *)(void *)python.data;
    s->python_count = python.size / sizeof *s->python;
}

static inline void dump_spool_free(struct dump_spool *s)
{
    spool_reader_free(s->reader);
    free(s->samples);
    free(s->python);
}

/* ---- comparing ---- */

/* How many lines of each kind were seen. */
struct dump_counts {
    size_t modules, frames, python, samples, sample_frames;
    bool header;
};

static inline void compare_header(const struct dump_spool *s, const char *line)
{
    const struct spool_header *h = spool_reader_header(s->reader);
    struct spool_counts c;
    char magic[8];

    spool_reader_counts(s->reader, &c);
    snprintf(magic, sizeof magic, "SPULSE%u", h->version % 10);
    want_string(line, "magic", magic, 7);
    want_u64(line, "start_timestamp_us", h->start_us);
    want_u64(line, "sample_interval_us", h->interval_us);
    want_u64(line, "modules", c.modules);
    want_u64(line, "frames", c.frames);
    want_u64(line, "samples", c.samples);
    want_u64(line, "python_runtime_records", c.python);
    want_bool(line, "truncated_tail", spool_reader_cut_tail(s->reader));
}

static inline void compare_module(const struct dump_spool *s, const char *line, uint32_t id)
{
    const struct spool_module *m = spool_reader_module(s->reader, id);

    if (m == NULL)
        dump_fail("no module %u", id);
    want_u64(line, "id", m->id);
    want_i64(line, "process_id", m->pid);
    want_u64(line, "start", m->start);
    want_u64(line, "end", m->end);
    want_u64(line, "file_offset", m->file_offset);
    want_u64(line, "inode", m->inode);
    want_u64(line, "device_major", m->dev_major);
    want_u64(line, "device_minor", m->dev_minor);
    want_u64(line, "inode_generation", m->inode_gen);
    want_bool(line, "is_kernel", m->kernel);
    want_string(line, "path", m->path, m->path_size);
}

static inline const char *dump_mode(const struct spool_frame *f)
{
    return f->kind == SPOOL_FRAME_TRUNCATED ? "truncated" : f->kernel ? "kernel" : "user";
}

static inline void compare_frame(const struct dump_spool *s, const char *line, uint32_t id)
{
    struct spool_frame f = {0};
    const char *mode = json_member(line, "mode") + 1;

    if (!spool_reader_frame(s->reader, id, &f))
        dump_fail("no frame %u", id);
    want_u64(line, "id", f.id);
    if (json_is_null(json_member(line, "module_id"))) {
        if (f.kind == SPOOL_FRAME_PINNED || f.module_id != SPOOL_NO_ID)
            dump_fail("frame in module %u instead of none", f.module_id);
    } else {
        want_u64(line, "module_id", f.module_id);
        if (f.kind != SPOOL_FRAME_PINNED)
            dump_fail("frame of kind %d is not pinned", (int)f.kind);
    }
    want_u64(line, "file_relative_ip", f.rel);
    want_u64(line, "abs_ip", f.abs);
    if (mode[0] != dump_mode(&f)[0])
        dump_fail("mode is %s instead of %.10s", dump_mode(&f), mode);
}

/* One element of a sample's frames, [abs, mode, module, rel]; returns what is behind it. */
static inline const char *compare_sample_frame(const struct dump_spool *s, const char *p,
                                               uint32_t frame, int32_t pid)
{
    const char *mode, *module, *rel;
    struct spool_frame f = {0};
    uint32_t got = 0;
    uint64_t got_rel = 0;
    int rc = spool_reader_locate(s->reader, frame, pid, &got, &got_rel);

    if (*p != '[')
        dump_fail("a frame was expected at %.20s", p);
    mode = json_value_end(p + 1) + 1;
    module = json_value_end(mode) + 1;
    rel = json_value_end(module) + 1;
    if (!spool_reader_frame(s->reader, frame, &f))
        dump_fail("no frame %u", frame);
    if (json_u64(p + 1) != f.abs || mode[1] != dump_mode(&f)[0])
        dump_fail("frame %u is 0x%llx %s instead of %.40s", frame, (unsigned long long)f.abs,
                  dump_mode(&f), p);
    if (json_is_null(module) != (rc == 0) || json_is_null(rel) != (rc == 0) ||
        (rc == 0 && got != SPOOL_NO_ID))
        dump_fail("frame %u found in module %d instead of %.40s", frame, rc == 0 ? -1 : (int)got,
                  p);
    if (rc != 0 && (rc != 1 || json_u64(module) != got || json_u64(rel) != got_rel))
        dump_fail("frame %u found in module %u at 0x%llx instead of %.40s", frame, got,
                  (unsigned long long)got_rel, p);
    return json_value_end(p);
}

static inline size_t compare_sample(const struct dump_spool *s, const char *line, size_t index)
{
    const struct spool_sample *sample;
    const char *p = json_member(line, "frames") + 1;
    struct spool_stack stack;
    uint32_t ids[7], node;
    size_t count = 0, got;

    if (index >= s->sample_count)
        dump_fail("no sample %zu", index);
    sample = &s->samples[index];
    want_u64(line, "timestamp_ns", sample->time_ns);
    want_u64(line, "timestamp_us", spool_reader_timeline_us(s->reader, sample->time_ns));
    want_i64(line, "process_id", sample->pid);
    want_u64(line, "thread_id", sample->tid);
    want_u64(line, "stack_id", sample->stack);
    if (sample->index != index)
        dump_fail("sample %zu has index %llu", index, (unsigned long long)sample->index);
    node = sample->stack;
    while ((got = spool_reader_walk(s->reader, &node, ids, sizeof ids / sizeof ids[0])) > 0) {
        for (size_t i = 0; i < got; i++, count++) {
            if (count > 0 && *p++ != ',')
                dump_fail("more than %zu frames", count);
            p = compare_sample_frame(s, p, ids[i], sample->pid);
        }
    }
    if (*p != ']')
        dump_fail("only %zu frames", count);
    if (!spool_reader_stack(s->reader, sample->stack, &stack) || stack.depth != count)
        dump_fail("depth is not %zu", count);
    return count;
}

/* Compares a spool that was read without an error with all lines of its dump, which is taken apart.
 * */
static inline void dump_compare(const struct dump_spool *s, char *dump, struct dump_counts *seen)
{
    char *line, *rest = dump;

    *seen = (struct dump_counts){0};
    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *type;

        dump_line_number++;
        if (line[0] == '\0')
            continue;
        type = json_member(line, "type") + 1;
        if (strncmp(type, "header\"", 7) == 0) {
            compare_header(s, line);
            seen->header = true;
        } else if (strncmp(type, "module\"", 7) == 0) {
            compare_module(s, line, (uint32_t)seen->modules++);
        } else if (strncmp(type, "frame\"", 6) == 0) {
            compare_frame(s, line, (uint32_t)seen->frames++);
        } else if (strncmp(type, "python_runtime\"", 15) == 0) {
            const struct spool_python *py;

            if (seen->python >= s->python_count)
                dump_fail("no Python record %zu", seen->python);
            py = &s->python[seen->python++];
            want_u64(line, "timestamp_ns", py->time_ns);
            want_i64(line, "process_id", py->pid);
            want_bool(line, "is_python_runtime", py->on);
        } else if (strncmp(type, "sample\"", 7) == 0) {
            seen->sample_frames += compare_sample(s, line, seen->samples++);
        } else {
            dump_fail("unknown line");
        }
    }
    if (!seen->header)
        dump_fail("no header line");
    if (seen->samples != s->sample_count || seen->python != s->python_count)
        dump_fail("%zu samples and %zu Python records instead of %zu and %zu", s->sample_count,
                  s->python_count, seen->samples, seen->python);
}

#endif
