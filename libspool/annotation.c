/* SPDX-License-Identifier: MIT */
/*
 * Notes carried by module records that map nothing. What a value must look like is decided here;
 * a record that does not look like it is an ordinary module, as it is to every other reader.
 */
#include "annotation.h"

#include <string.h>

#include "format.h"
#include "utf8.h"

#define KEY_MAX 32
#define BUILD_ID_DIGITS_MAX 128

/* What stands in a value, field by field with one blank between. */
enum value_shape {
    SHAPE_TEXT,              /* all of it is text */
    SHAPE_NUMBERS,           /* `numbers` decimal numbers and nothing else */
    SHAPE_NUMBERS_THEN_TEXT, /* the same, a blank, and the rest is text (which may be empty) */
    SHAPE_TEXT_THEN_NUMBER   /* text that is not empty, and behind the last blank a number */
};

struct key_rule {
    const char *name;
    enum spool_note_key key;
    enum value_shape shape;
    unsigned numbers;
    bool hex; /* numbers may also be written 0x... */
};

static const struct key_rule rules[] = {
    {"comm", SPOOL_NOTE_COMM, SHAPE_TEXT, 0, false},
    {"thread", SPOOL_NOTE_THREAD, SHAPE_NUMBERS_THEN_TEXT, 1, false},
    {"build-id", SPOOL_NOTE_BUILD_ID, SHAPE_NUMBERS_THEN_TEXT, 1, false},
    {"cmdline", SPOOL_NOTE_CMDLINE, SHAPE_TEXT, 0, false},
    {"host", SPOOL_NOTE_HOST, SHAPE_TEXT, 0, false},
    {"kernel", SPOOL_NOTE_KERNEL, SHAPE_TEXT, 0, false},
    {"ksymbol", SPOOL_NOTE_KSYMBOL, SHAPE_NUMBERS_THEN_TEXT, 2, true},
    {"event", SPOOL_NOTE_EVENT, SHAPE_TEXT_THEN_NUMBER, 1, false},
    {"clock", SPOOL_NOTE_CLOCK, SHAPE_NUMBERS, 2, false},
    {"lost", SPOOL_NOTE_LOST, SHAPE_NUMBERS, 1, false},
    {"end", SPOOL_NOTE_END, SHAPE_NUMBERS, 3, false},
};

static const struct key_rule other = {"", SPOOL_NOTE_OTHER, SHAPE_TEXT, 0, false};

static bool is_key_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

/* The number that fills [p, end); not strtoull, which takes blanks, signs and the locale. */
static bool parse_number(const char *p, const char *end, bool hex, uint64_t *number)
{
    uint64_t value = 0;
    unsigned base = 10;

    if (hex && end - p > 2 && p[0] == '0' && p[1] == 'x') {
        base = 16;
        p += 2;
    }
    if (p == end)
        return false;
    for (; p < end; p++) {
        unsigned digit = (unsigned)digit_value(*p);

        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *number = value;
    return true;
}

/* The fields of out->value: sets number and text, which is a suffix or all of the value. */
static bool parse_value(const struct key_rule *rule, struct spool_annotation *out)
{
    const char *p = out->value;
    const char *end = p + out->value_size;

    if (rule->shape == SHAPE_TEXT_THEN_NUMBER) {
        const char *blank = memrchr(p, ' ', out->value_size);

        if (blank == NULL || blank == p)
            return false;
        out->text = p;
        out->text_size = out->value_size;
        return parse_number(blank + 1, end, rule->hex, &out->number[0]);
    }
    for (unsigned i = 0; i < rule->numbers; i++) {
        bool last = rule->shape == SHAPE_NUMBERS && i + 1 == rule->numbers;
        const char *blank = last ? end : memchr(p, ' ', (size_t)(end - p));

        if (blank == NULL || !parse_number(p, blank, rule->hex, &out->number[i]))
            return false;
        p = last ? end : blank + 1;
    }
    out->text = p;
    out->text_size = (size_t)(end - p);
    return true;
}

static bool is_build_id(const char *text, size_t size)
{
    if (size < 2 || size > BUILD_ID_DIGITS_MAX || size % 2 != 0)
        return false;
    for (size_t i = 0; i < size; i++)
        if (digit_value(text[i]) > 15)
            return false;
    return true;
}

/* What the shape cannot say. */
static bool is_plausible(const struct spool_annotation *a)
{
    switch (a->key) {
    case SPOOL_NOTE_THREAD:
        return a->number[0] >= 1;
    case SPOOL_NOTE_BUILD_ID:
        return a->number[0] <= FORMAT_ID_MAX && is_build_id(a->text, a->text_size);
    default:
        return true;
    }
}

static const struct key_rule *find_rule(const char *key, size_t size)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strlen(rules[i].name) == size && memcmp(rules[i].name, key, size) == 0)
            return &rules[i];
    return &other;
}

static bool maps_nothing(const struct spool_module *m)
{
    return !m->kernel && !m->jit && m->pid >= 1 && m->start == 0 && m->end == 0 &&
           m->file_offset == 0 && m->inode == 0 && m->dev_major == 0 && m->dev_minor == 0 &&
           m->inode_gen == 0;
}

bool spoolint_annotation_parse(const struct spool_module *module, struct spool_annotation *out)
{
    const char *path = module->path;
    size_t size = module->path_size;
    const struct key_rule *rule;
    size_t key_size = 0;
    size_t at;

    if (!maps_nothing(module) || size <= FORMAT_NOTE_STEM_SIZE || size > FORMAT_NOTE_PATH_MAX ||
        memcmp(path, FORMAT_NOTE_STEM, FORMAT_NOTE_STEM_SIZE) != 0)
        return false;
    if (memchr(path, '\0', size) != NULL || spoolint_utf8_valid_prefix(path, size) != size)
        return false;
    at = FORMAT_NOTE_STEM_SIZE;
    while (at + key_size < size && is_key_byte(path[at + key_size]))
        key_size++;
    if (key_size < 1 || key_size > KEY_MAX)
        return false;
    at += key_size;
    if (at == size || path[at++] != ']')
        return false;
    if (at < size && path[at++] != ' ')
        return false;

    *out = (struct spool_annotation){
        .module = *module,
        .pid = module->pid,
        .key_text = path + FORMAT_NOTE_STEM_SIZE,
        .key_size = key_size,
        /* The terminating NUL of the path may be missing while a record is being checked. */
        .value = at < size ? path + at : "",
        .value_size = size - at,
    };
    rule = find_rule(out->key_text, key_size);
    out->key = rule->key;
    return parse_value(rule, out) && is_plausible(out);
}

size_t spoolint_annotation_bytes(const struct spool_annotation *note, uint8_t *bytes)
{
    size_t size = note->text_size / 2;

    for (size_t i = 0; i < size; i++)
        bytes[i] =
            (uint8_t)(digit_value(note->text[2 * i]) << 4 | digit_value(note->text[2 * i + 1]));
    return size;
}

/* Copies valid UTF-8 of which at most `room` bytes may be used, whole characters only. */
static size_t copy_characters(char *out, const char *text, size_t size, size_t room)
{
    if (size > room) {
        size = room;
        while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80)
            size--;
    }
    memcpy(out, text, size);
    return size;
}

/* Copies a text as far as it fits; what is not UTF-8 becomes U+FFFD. */
static size_t copy_repaired(char *out, const char *text, size_t size, size_t room)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t used = 0;

    while (size > 0) {
        size_t valid = spoolint_utf8_valid_prefix(text, size);
        size_t copied = copy_characters(out + used, text, valid, room - used);
        size_t bad;

        used += copied;
        if (copied < valid || valid == size || room - used < sizeof replacement - 1)
            break;
        memcpy(out + used, replacement, sizeof replacement - 1);
        used += sizeof replacement - 1;
        bad = spoolint_utf8_bad_sequence(text + valid, size - valid);
        text += valid + bad;
        size -= valid + bad;
    }
    return used;
}

size_t spoolint_annotation_path(const char *key, const char *value, char *out)
{
    size_t key_size = strlen(key);
    size_t size = FORMAT_NOTE_STEM_SIZE;

    if (key_size < 1 || key_size > KEY_MAX)
        return 0;
    for (size_t i = 0; i < key_size; i++)
        if (!is_key_byte(key[i]))
            return 0;
    memcpy(out, FORMAT_NOTE_STEM, FORMAT_NOTE_STEM_SIZE);
    memcpy(out + size, key, key_size);
    size += key_size;
    out[size++] = ']';
    if (value != NULL && value[0] != '\0') {
        out[size++] = ' ';
        size += copy_repaired(out + size, value, strlen(value), FORMAT_NOTE_PATH_MAX - size);
    }
    out[size] = '\0';
    return size;
}
