/* SPDX-License-Identifier: MIT */
/*
 * One table says which key is which field; writing and reading both go by it. Reading leaves out keys that it does not
 * know, so that later versions can add some.
 */
#include "manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture_id.h"
#include "cli.h"
#include "json.h"
#include "json_read.h"

/* ---- which key is which field ---- */

enum kind {
    KIND_VERSION,
    KIND_TEXT,    /* char *; null */
    KIND_HEX,     /* the same: an even number of lower-case hex digits */
    KIND_CAPTURE, /* char *: an id */
    KIND_SHA256,  /* char[] */
    KIND_NAME,    /* char *: of a file in the archive */
    KIND_U64,
    KIND_PID, /* int32_t */
    KIND_BOOL,
    KIND_LEVEL,      /* null: nothing */
    KIND_MODULE_IDS, /* uint32_t *, ascending; size_t at `count` */
    KIND_LIST,       /* a pointer to structs of `shape`; size_t at `count` */
    KIND_GROUP       /* an object whose fields are the same struct's */
};

struct shape;

struct field {
    const char *key;
    enum kind kind;
    bool required;
    size_t at, count; /* offsets in the struct */
    const struct shape *shape;
};

struct shape {
    const struct field *fields; /* at most 16 */
    size_t field_count;
    size_t size; /* of a struct */
    size_t max;  /* of a list */
    bool flat;   /* on one line */
};

#define SHAPE(list, type, most, one_line)                                                     \
    {                                                                                         \
        .fields = (list), .field_count = sizeof(list) / sizeof *(list), .size = sizeof(type), \
        .max = (most), .flat = (one_line)                                                     \
    }
#define AT(type, member) .at = offsetof(struct type, member)
#define LIST(type, items, number, of)                                                              \
    .kind = KIND_LIST, .at = offsetof(struct type, items), .count = offsetof(struct type, number), \
    .shape = &(of)

static const struct field file_fields[] = {
    {"name", KIND_NAME, true, AT(manifest_file, name)},
    {"bytes", KIND_U64, true, AT(manifest_file, size_bytes)},
    {"sha256", KIND_SHA256, true, AT(manifest_file, sha256)},
};
static const struct shape file_shape = SHAPE(file_fields, struct manifest_file, 1 << 16, true);

static const struct field module_fields[] = {
    {"path", KIND_TEXT, true, AT(manifest_module, path)},
    {"build_id", KIND_HEX, false, AT(manifest_module, build_id)},
    {"key", KIND_HEX, false, AT(manifest_module, key)},
    {"level", KIND_LEVEL, false, AT(manifest_module, level)},
    {"unverified", KIND_BOOL, false, AT(manifest_module, unverified)},
    {"module_ids", KIND_MODULE_IDS, false, AT(manifest_module, module_ids),
     .count = offsetof(struct manifest_module, module_id_count)},
    {"samples", KIND_U64, false, AT(manifest_module, samples)},
    {"addresses", KIND_U64, false, AT(manifest_module, address_count)},
    {"named", KIND_U64, false, AT(manifest_module, named_count)},
    {"files", LIST(manifest_module, files.items, files.count, file_shape)},
    {"missing", KIND_TEXT, false, AT(manifest_module, missing)},
};
static const struct shape module_shape =
    SHAPE(module_fields, struct manifest_module, 1 << 20, false);

static const struct field map_fields[] = {
    {"pid", KIND_PID, true, AT(manifest_map, pid)},
    {"addresses", KIND_U64, false, AT(manifest_map, address_count)},
    {"files", LIST(manifest_map, files.items, files.count, file_shape)},
    {"missing", KIND_TEXT, false, AT(manifest_map, missing)},
};
static const struct shape map_shape = SHAPE(map_fields, struct manifest_map, 1 << 20, false);

static const struct field spool_fields[] = {
    {"name", KIND_TEXT, false, AT(manifest, spool_name)},
    {"sha256", KIND_SHA256, true, AT(manifest, spool_sha256)},
    {"bytes", KIND_U64, false, AT(manifest, spool_bytes)},
    {"samples", KIND_U64, false, AT(manifest, samples)},
    {"start_us", KIND_U64, false, AT(manifest, start_us)},
};
static const struct shape spool_shape = SHAPE(spool_fields, struct manifest, 0, false);

static const struct field machine_fields[] = {
    {"host", KIND_TEXT, false, AT(manifest, host)},
    {"kernel_release", KIND_TEXT, false, AT(manifest, kernel_release)},
    {"kernel_build_id", KIND_TEXT, false, AT(manifest, kernel_build_id)},
    {"boot_id", KIND_TEXT, false, AT(manifest, boot_id)},
};
static const struct shape machine_shape = SHAPE(machine_fields, struct manifest, 0, false);

static const struct field kernel_fields[] = {
    {"addresses", KIND_U64, false, AT(manifest, kernel_address_count)},
    {"named", KIND_U64, false, AT(manifest, kernel_named_count)},
    {"files", LIST(manifest, kernel_files.items, kernel_files.count, file_shape)},
    {"missing", KIND_TEXT, false, AT(manifest, kernel_missing)},
};
static const struct shape kernel_shape = SHAPE(kernel_fields, struct manifest, 0, false);

static const struct field manifest_fields[] = {
    {.key = "version", .kind = KIND_VERSION, .required = true},
    {"capture", KIND_CAPTURE, true, AT(manifest, capture)},
    {"packed_at", KIND_TEXT, false, AT(manifest, packed_at)},
    {"level", KIND_LEVEL, true, AT(manifest, level)},
    {"spool", KIND_GROUP, true, .shape = &spool_shape},
    {"machine", KIND_GROUP, false, .shape = &machine_shape},
    {"modules", LIST(manifest, modules, module_count, module_shape)},
    {"perf_maps", LIST(manifest, maps, map_count, map_shape)},
    {"kernel", KIND_GROUP, false, .shape = &kernel_shape},
};
static const struct shape manifest_shape = SHAPE(manifest_fields, struct manifest, 0, false);

static const char *const level_names[] = {[MANIFEST_NOTHING] = NULL, "names", "lines", "full"};

const char *manifest_level_name(enum manifest_level level)
{
    return level_names[level];
}

/* The field in a struct. */
static void *in(const struct field *f, const void *base)
{
    return (char *)(uintptr_t)base + f->at;
}

static size_t *count_in(const struct field *f, const void *base)
{
    return (size_t *)((uintptr_t)base + f->count);
}

/* The pointer that is the field, whatever it points to. */
static char *pointer_in(const struct field *f, const void *base)
{
    char *pointer;

    memcpy(&pointer, in(f, base), sizeof pointer);
    return pointer;
}

static bool is_text(enum kind kind)
{
    return kind == KIND_TEXT || kind == KIND_HEX || kind == KIND_CAPTURE || kind == KIND_NAME;
}

/* The tables are three deep, and so are these functions. */
static void free_fields(const struct shape *shape, void *base)
{
    for (size_t i = 0; i < shape->field_count; i++) {
        const struct field *f = &shape->fields[i];

        if (f->kind == KIND_GROUP)
            free_fields(f->shape, base);
        if (f->kind == KIND_LIST)
            for (size_t n = 0; n < *count_in(f, base); n++)
                free_fields(f->shape, pointer_in(f, base) + n * f->shape->size);
        if (f->kind == KIND_LIST || f->kind == KIND_MODULE_IDS || is_text(f->kind))
            free(pointer_in(f, base));
    }
}

void manifest_free(struct manifest *m)
{
    free_fields(&manifest_shape, m);
    memset(m, 0, sizeof *m);
}

/* ---- writing ---- */

/* Where a line begins: compact has no lines. */
struct place {
    struct text_buffer *out;
    bool compact;
    unsigned depth;
};

static void new_line(const struct place *p)
{
    if (p->compact)
        return;
    text_append_byte(p->out, '\n');
    for (unsigned i = 0; i < p->depth; i++)
        text_append(p->out, "  ", 2);
}

static void write_text(struct text_buffer *out, const char *text)
{
    if (text)
        json_append_text(out, text, strlen(text));
    else
        text_append(out, "null", 4);
}

static void write_module_ids(const struct place *p, const uint32_t *ids, size_t count)
{
    text_append_byte(p->out, '[');
    for (size_t i = 0; i < count; i++)
        text_printf(p->out, "%s%" PRIu32, i == 0 ? "" : p->compact ? "," : ", ", ids[i]);
    text_append_byte(p->out, ']');
}

static void write_object(struct place *p, const struct shape *shape, const void *base);

static void write_list(struct place *p, const struct field *f, const void *base)
{
    size_t count = *count_in(f, base);

    text_append_byte(p->out, '[');
    p->depth++;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_append_byte(p->out, ',');
        new_line(p);
        write_object(p, f->shape, pointer_in(f, base) + i * f->shape->size);
    }
    p->depth--;
    if (count > 0)
        new_line(p);
    text_append_byte(p->out, ']');
}

static void write_value(struct place *p, const struct field *f, const void *base)
{
    const void *value = in(f, base);

    switch (f->kind) {
    case KIND_VERSION:
        text_printf(p->out, "%d", MANIFEST_VERSION);
        break;
    case KIND_TEXT:
    case KIND_HEX:
    case KIND_CAPTURE:
    case KIND_NAME:
        write_text(p->out, *(char *const *)value);
        break;
    case KIND_SHA256:
        write_text(p->out, value);
        break;
    case KIND_U64:
        text_printf(p->out, "%" PRIu64, *(const uint64_t *)value);
        break;
    case KIND_PID:
        text_printf(p->out, "%" PRId32, *(const int32_t *)value);
        break;
    case KIND_BOOL:
        text_printf(p->out, "%s", *(const bool *)value ? "true" : "false");
        break;
    case KIND_LEVEL:
        write_text(p->out, level_names[*(const enum manifest_level *)value]);
        break;
    case KIND_MODULE_IDS:
        write_module_ids(p, *(uint32_t *const *)value, *count_in(f, base));
        break;
    case KIND_LIST:
        write_list(p, f, base);
        break;
    case KIND_GROUP:
        write_object(p, f->shape, base);
        break;
    }
}

static void write_fields(struct place *p, const struct shape *shape, const void *base)
{
    for (size_t i = 0; i < shape->field_count; i++) {
        if (i > 0)
            text_append(p->out, ", ", shape->flat && !p->compact ? 2 : 1);
        if (!shape->flat)
            new_line(p);
        text_printf(p->out, p->compact ? "\"%s\":" : "\"%s\": ", shape->fields[i].key);
        write_value(p, &shape->fields[i], base);
    }
}

static void write_object(struct place *p, const struct shape *shape, const void *base)
{
    text_append_byte(p->out, '{');
    p->depth++;
    write_fields(p, shape, base);
    p->depth--;
    if (!shape->flat)
        new_line(p);
    text_append_byte(p->out, '}');
}

void manifest_append(const struct manifest *m, struct text_buffer *out)
{
    struct place p = {.out = out};

    write_object(&p, &manifest_shape, m);
    text_append_byte(out, '\n');
}

void manifest_append_line(const struct manifest *m, const char *file, struct text_buffer *out)
{
    struct place p = {.out = out, .compact = true};

    text_append(out, "{\"file\":", 8);
    write_text(out, file);
    text_append_byte(out, ',');
    write_fields(&p, &manifest_shape, m);
    text_append(out, "}\n", 2);
}

/* ---- reading ---- */

static bool is_hex(const char *text, size_t size)
{
    return strspn(text, "0123456789abcdef") == size;
}

bool manifest_name_is_safe(const char *name)
{
    for (;;) {
        size_t size = strcspn(name, "/");

        if (size == 0 || (size == 1 && name[0] == '.') ||
            (size == 2 && name[0] == '.' && name[1] == '.'))
            return false;
        if (name[size] == '\0')
            return true;
        name += size + 1;
    }
}

/* What is wrong with a text; NULL: nothing. */
static const char *text_fault(enum kind kind, const struct text_buffer *text)
{
    if (memchr(text->data, '\0', text->size))
        return "a NUL in a text";
    if (kind == KIND_HEX && (text->size == 0 || text->size > 128 || text->size % 2 != 0 ||
                             !is_hex(text->data, text->size)))
        return "not a build id";
    if (kind == KIND_CAPTURE && !capture_id_is_valid(text->data))
        return "not the id of a capture";
    if (kind == KIND_SHA256 && (text->size != 64 || !is_hex(text->data, text->size)))
        return "not a SHA-256";
    if (kind == KIND_NAME && !manifest_name_is_safe(text->data))
        return "the name of a file that is not in the archive";
    return NULL;
}

static enum json_token read_text(struct json_reader *r, enum json_token token, enum kind kind,
                                 char **out)
{
    const char *why;

    if (token == JSON_NULL && (kind == KIND_TEXT || kind == KIND_HEX))
        return token;
    if (token != JSON_STRING)
        return json_read_refuse(r, "a text is wanted here");
    why = text_fault(kind, &r->string);
    if (why)
        return json_read_refuse(r, why);
    *out = text_copy(r->string.data, r->string.size);
    return token;
}

static enum json_token read_sha256(struct json_reader *r, enum json_token token, char *out)
{
    char *text = NULL;

    token = read_text(r, token, KIND_SHA256, &text);
    if (token == JSON_STRING)
        memcpy(out, text, MANIFEST_SHA256_SIZE); /* NOLINT(analyzer-null-argument): it was set */
    free(text);
    return token;
}

static enum json_token read_whole(struct json_reader *r, enum json_token token, uint64_t max,
                                  uint64_t *out)
{
    if (token != JSON_NUMBER || !r->exact || (r->negative && r->number > 0) || r->number > max)
        return json_read_refuse(r, "not a number as it is wanted here");
    *out = r->number;
    return token;
}

static enum json_token read_pid(struct json_reader *r, enum json_token token, int32_t *out)
{
    if (token != JSON_NUMBER || !r->exact || r->number > (uint64_t)INT32_MAX + r->negative)
        return json_read_refuse(r, "not a process id");
    *out = (int32_t)(r->negative ? -(int64_t)r->number : (int64_t)r->number);
    return token;
}

static enum json_token read_level(struct json_reader *r, enum json_token token, bool required,
                                  enum manifest_level *out)
{
    if (token == JSON_NULL && !required) {
        *out = MANIFEST_NOTHING;
        return token;
    }
    for (unsigned level = MANIFEST_NAMES; token == JSON_STRING && level <= MANIFEST_FULL; level++)
        if (strcmp(r->string.data, level_names[level]) == 0) {
            *out = (enum manifest_level)level;
            return token;
        }
    return json_read_refuse(r, "not a level");
}

static enum json_token read_module_ids(struct json_reader *r, enum json_token token, uint32_t **ids,
                                       size_t *count)
{
    size_t capacity = 0;
    uint64_t id = 0;

    if (token != JSON_ARRAY)
        return json_read_refuse(r, "a list is wanted here");
    while ((token = json_read_next(r)) != JSON_ARRAY_END) {
        if (token == JSON_FAULT || read_whole(r, token, UINT32_MAX - 1, &id) == JSON_FAULT)
            return JSON_FAULT;
        if (*count > 0 && id <= (*ids)[*count - 1])
            return json_read_refuse(r, "module ids are not ascending");
        *ids = cli_grow(*ids, &capacity, *count, sizeof **ids);
        (*ids)[(*count)++] = (uint32_t)id;
    }
    return token;
}

static enum json_token read_object(struct json_reader *r, enum json_token token,
                                   const struct shape *shape, void *base);

static enum json_token read_list(struct json_reader *r, enum json_token token,
                                 const struct field *f, void *base)
{
    size_t size = f->shape->size, *count = count_in(f, base), capacity = 0;
    char *items = NULL;

    if (token != JSON_ARRAY)
        return json_read_refuse(r, "a list is wanted here");
    while ((token = json_read_next(r)) != JSON_ARRAY_END) {
        if (token == JSON_FAULT)
            return token;
        if (*count == f->shape->max)
            return json_read_refuse(r, "too long a list");
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 2;
            items = cli_realloc(items, capacity, size);
            memcpy(in(f, base), &items, sizeof items); /* after a fault it is freed there */
        }
        memset(items + *count * size, 0, size);
        if (read_object(r, token, f->shape, items + (*count)++ * size) == JSON_FAULT)
            return JSON_FAULT;
    }
    return token;
}

static enum json_token read_value(struct json_reader *r, enum json_token token,
                                  const struct field *f, void *base)
{
    uint64_t number = 0;

    switch (f->kind) {
    case KIND_VERSION:
        token = read_whole(r, token, UINT64_MAX, &number);
        if (token != JSON_FAULT && number != MANIFEST_VERSION)
            return json_read_refuse(r, "a version of the manifest that is not known here");
        return token;
    case KIND_TEXT:
    case KIND_HEX:
    case KIND_CAPTURE:
    case KIND_NAME:
        return read_text(r, token, f->kind, in(f, base));
    case KIND_SHA256:
        return read_sha256(r, token, in(f, base));
    case KIND_U64:
        return read_whole(r, token, UINT64_MAX, in(f, base));
    case KIND_PID:
        return read_pid(r, token, in(f, base));
    case KIND_BOOL:
        if (token != JSON_TRUE && token != JSON_FALSE)
            return json_read_refuse(r, "true or false is wanted here");
        *(bool *)in(f, base) = token == JSON_TRUE;
        return token;
    case KIND_LEVEL:
        return read_level(r, token, f->required, in(f, base));
    case KIND_MODULE_IDS:
        return read_module_ids(r, token, in(f, base), count_in(f, base));
    case KIND_LIST:
        return read_list(r, token, f, base);
    case KIND_GROUP:
        return read_object(r, token, f->shape, base);
    }
    return JSON_FAULT;
}

/* The field of the key just read; NULL: unknown. */
static const struct field *find_field(const struct json_reader *r, const struct shape *shape)
{
    for (size_t i = 0; i < shape->field_count; i++)
        if (strlen(shape->fields[i].key) == r->string.size &&
            memcmp(shape->fields[i].key, r->string.data, r->string.size) == 0)
            return &shape->fields[i];
    return NULL;
}

static enum json_token read_object(struct json_reader *r, enum json_token token,
                                   const struct shape *shape, void *base)
{
    unsigned seen = 0;

    if (token != JSON_OBJECT)
        return json_read_refuse(r, "an object is wanted here");
    while ((token = json_read_next(r)) == JSON_KEY) {
        const struct field *f = find_field(r, shape);
        unsigned bit = f ? 1u << (f - shape->fields) : 0;

        if ((seen & bit) != 0)
            return json_read_refuse(r, "a key that was there before");
        seen |= bit;
        token = json_read_next(r);
        if (token == JSON_FAULT)
            return token;
        if (f ? read_value(r, token, f, base) == JSON_FAULT : !json_read_skip(r, token))
            return JSON_FAULT;
    }
    for (size_t i = 0; token == JSON_OBJECT_END && i < shape->field_count; i++)
        if (shape->fields[i].required && (seen & 1u << i) == 0)
            return json_read_refuse(r, "the object that ends here lacks a key");
    return token;
}

int manifest_read(const char *text, size_t size, struct manifest *m, const char **why,
                  size_t *offset)
{
    struct json_reader r;
    enum json_token token;

    memset(m, 0, sizeof *m);
    json_read_start(&r, text, size);
    token = read_object(&r, json_read_next(&r), &manifest_shape, m);
    if (token != JSON_FAULT)
        token = json_read_next(&r);
    if (token == JSON_FAULT) {
        *why = r.fault;
        *offset = r.at;
        manifest_free(m);
    }
    json_read_free(&r);
    return token == JSON_FAULT ? -1 : 0;
}
