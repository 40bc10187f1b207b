/* SPDX-License-Identifier: MIT */
/* Packing by protobuf-c. */
#include "envelope.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "gzip_out.h"
#include "profile.pb-c.h"

#define VARINT_MAX ((size_t)10)

struct envelope {
    struct tool_output *out;
    struct gzip_out *gzip; /* NULL: the bare message */
    uint8_t *message;
    size_t message_capacity;
    Perftools__Profiles__Line *lines; /* scratch of a location */
    Perftools__Profiles__Line **line_list;
    size_t line_capacity;
};

struct envelope *envelope_new(struct tool_output *out, int gzip_level)
{
    struct envelope *e = cli_zeroed(1, sizeof *e);

    e->out = out;
    if (gzip_level == 0)
        return e;
    e->gzip = gzip_out_new(out, gzip_level);
    if (e->gzip)
        return e;
    envelope_free(e);
    return NULL;
}

void envelope_free(struct envelope *e)
{
    if (!e)
        return;
    gzip_out_free(e->gzip);
    free(e->message);
    free(e->lines);
    free(e->line_list);
    free(e);
}

static void put_bytes(struct envelope *e, const uint8_t *data, size_t size)
{
    if (e->gzip)
        gzip_out_write(e->gzip, data, size);
    else
        output_write(e->out, data, size);
}

int envelope_finish(struct envelope *e)
{
    return e->gzip ? gzip_out_finish(e->gzip) : 0;
}

/* ---- messages ---- */

static void reserve_message(struct envelope *e, size_t size)
{
    if (size <= e->message_capacity)
        return;
    while (e->message_capacity < size)
        e->message_capacity = e->message_capacity ? e->message_capacity * 2 : 4096;
    e->message = cli_realloc(e->message, e->message_capacity, 1);
}

static void put_part(struct envelope *e, const Perftools__Profiles__Profile *part)
{
    reserve_message(e, perftools__profiles__profile__get_packed_size(part));
    put_bytes(e, e->message, perftools__profiles__profile__pack(part, e->message));
}

static void set_value_type(Perftools__Profiles__ValueType *to,
                           const struct envelope_value_type *from)
{
    perftools__profiles__value_type__init(to);
    to->type = from->type;
    to->unit = from->unit;
}

void envelope_header(struct envelope *e, const struct envelope_header *header)
{
    Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Perftools__Profiles__ValueType types[3], *list[2] = {&types[0], &types[1]};
    int64_t *comments = cli_realloc(NULL, header->comment_count, sizeof *comments);

    for (size_t i = 0; i < header->sample_type_count; i++)
        set_value_type(&types[i], &header->sample_types[i]);
    set_value_type(&types[2], &header->period_type);
    if (header->comment_count > 0)
        memcpy(comments, header->comments, header->comment_count * sizeof *comments);
    part.n_sample_type = header->sample_type_count;
    part.sample_type = list;
    part.period_type = &types[2];
    part.period = header->period;
    part.default_sample_type = header->default_sample_type;
    part.time_nanos = header->time_ns;
    part.duration_nanos = header->duration_ns;
    part.n_comment = header->comment_count;
    part.comment = comments;
    put_part(e, &part);
    free(comments);
}

void envelope_pack_label(struct text_buffer *packed, const struct envelope_label *label)
{
    Perftools__Profiles__Label l = PERFTOOLS__PROFILES__LABEL__INIT, *list[1] = {&l};
    Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT;
    uint8_t bytes[64]; /* four fields of 11 bytes at most, and what stands before them */

    l.key = label->key;
    l.str = label->str;
    l.num = label->num;
    l.num_unit = label->num_unit;
    sample.n_label = 1;
    sample.label = list;
    text_append(packed, (const char *)bytes, perftools__profiles__sample__pack(&sample, bytes));
}

static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

/* Labels are the last field of a sample and the same for many samples, so they come packed; what protobuf-c would put
 * around the whole is put here. */
void envelope_sample(struct envelope *e, uint64_t *locations, size_t location_count,
                     const int64_t *values, size_t value_count, const char *labels,
                     size_t labels_size)
{
    Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT;
    int64_t copies[2] = {values[0], value_count > 1 ? values[1] : 0};
    const size_t before = 1 + VARINT_MAX; /* room for the tag and the size */
    uint8_t head[1 + VARINT_MAX];
    size_t size, head_size;

    sample.n_location_id = location_count;
    sample.location_id = locations;
    sample.n_value = value_count;
    sample.value = copies;
    reserve_message(e, before + (location_count + 2) * VARINT_MAX + 2 * (1 + VARINT_MAX) +
                           labels_size);
    size = perftools__profiles__sample__pack(&sample, e->message + before);
    if (labels_size > 0)
        memcpy(e->message + before + size, labels, labels_size);
    size += labels_size;
    head[0] = 2 << 3 | 2; /* Profile.sample */
    head_size = 1 + put_varint(head + 1, size);
    memcpy(e->message + before - head_size, head, head_size);
    put_bytes(e, e->message + before - head_size, head_size + size);
}

static void reserve_lines(struct envelope *e, size_t count)
{
    if (count <= e->line_capacity)
        return;
    while (e->line_capacity < count)
        e->line_capacity = e->line_capacity ? e->line_capacity * 2 : 16;
    e->lines = cli_realloc(e->lines, e->line_capacity, sizeof *e->lines);
    e->line_list = cli_realloc(e->line_list, e->line_capacity, sizeof(*e->line_list));
    for (size_t i = 0; i < e->line_capacity; i++) {
        perftools__profiles__line__init(&e->lines[i]);
        e->line_list[i] = &e->lines[i];
    }
}

void envelope_location(struct envelope *e, uint64_t id, uint64_t mapping, uint64_t address,
                       const struct envelope_line *lines, size_t line_count)
{
    Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Perftools__Profiles__Location location = PERFTOOLS__PROFILES__LOCATION__INIT,
                                  *list[1] = {&location};

    reserve_lines(e, line_count);
    for (size_t i = 0; i < line_count; i++) {
        e->lines[i].function_id = lines[i].function;
        e->lines[i].line = lines[i].line;
        e->lines[i].column = lines[i].column;
    }
    location.id = id;
    location.mapping_id = mapping;
    location.address = address;
    location.n_line = line_count;
    location.line = e->line_list;
    part.n_location = 1;
    part.location = list;
    put_part(e, &part);
}

void envelope_function(struct envelope *e, const struct envelope_function *function)
{
    Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Perftools__Profiles__Function f = PERFTOOLS__PROFILES__FUNCTION__INIT, *list[1] = {&f};

    f.id = function->id;
    f.name = function->name;
    f.system_name = function->system_name;
    f.filename = function->filename;
    f.start_line = function->start_line;
    part.n_function = 1;
    part.function = list;
    put_part(e, &part);
}

void envelope_mapping(struct envelope *e, const struct envelope_mapping *mapping)
{
    Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    Perftools__Profiles__Mapping m = PERFTOOLS__PROFILES__MAPPING__INIT, *list[1] = {&m};

    m.id = mapping->id;
    m.memory_start = mapping->start;
    m.memory_limit = mapping->limit;
    m.file_offset = mapping->file_offset;
    m.filename = mapping->filename;
    m.build_id = mapping->build_id;
    m.has_functions = mapping->has_functions;
    m.has_filenames = mapping->has_filenames;
    m.has_line_numbers = mapping->has_line_numbers;
    m.has_inline_frames = mapping->has_inline_frames;
    part.n_mapping = 1;
    part.mapping = list;
    put_part(e, &part);
}

void envelope_string(struct envelope *e, const char *text, size_t size)
{
    Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
    /* protobuf-c's structs are not const, but packing changes nothing. */
    /* cppcheck-suppress legacyUninitvar ; it is what this line sets */
    ProtobufCBinaryData data = {.len = size, .data = (uint8_t *)(uintptr_t)text};

    part.n_string_table = 1;
    part.string_table = &data;
    put_part(e, &part);
}
