/* SPDX-License-Identifier: MIT */
/* JSON escaping. Runs of plain characters are copied at once: names are plain nearly always. */
#include "json.h"
#include "text.h"

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* The end of the plain part of a text that begins at `at`. What follows it up to *next is written as *escape. */
static size_t plain_part(const char *text, size_t size, size_t at, char escape[6],
                         size_t *escape_size, size_t *next)
{
    static const char hex[] = "0123456789abcdef";

    *escape_size = 0;
    while (at < size) {
        unsigned char byte = (unsigned char)text[at];
        uint32_t code;
        size_t length;

        if (is_plain(byte)) {
            at++;
            continue;
        }
        length = text_decode(text + at, size - at, &code);
        if (code != TEXT_BAD && code >= 0xa0) { /* below are the C1 controls */
            at += length;
            continue;
        }
        *next = at + length;
        if (code == TEXT_BAD) {
            memcpy(escape, "\xef\xbf\xbd", *escape_size = 3);
        } else if (code == '"' || code == '\\') {
            escape[0] = '\\';
            escape[1] = (char)code;
            *escape_size = 2;
        } else {
            /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): it has a size */
            memcpy(escape, "\\u00", 4);
            escape[4] = hex[code >> 4];
            escape[5] = hex[code & 15];
            *escape_size = 6;
        }
        return at;
    }
    *next = size;
    return size;
}

void json_text(struct tool_output *out, const char *text, size_t size)
{
    size_t begin = 0, escape_size;
    char escape[6];

    output_byte(out, '"');
    while (begin < size) { /* an empty text may be NULL */
        size_t next, end = plain_part(text, size, begin, escape, &escape_size, &next);

        output_write(out, text + begin, end - begin);
        output_write(out, escape, escape_size);
        begin = next;
    }
    output_byte(out, '"');
}

void json_append_text(struct text_buffer *out, const char *text, size_t size)
{
    size_t begin = 0, escape_size;
    char escape[6];

    text_append_byte(out, '"');
    while (begin < size) {
        size_t next, end = plain_part(text, size, begin, escape, &escape_size, &next);

        text_append(out, text + begin, end - begin);
        text_append(out, escape, escape_size);
        begin = next;
    }
    text_append_byte(out, '"');
}

void json_key_u64(struct json_writer *w, const char *key, uint64_t number)
{
    json_key(w, key);
    json_u64(w, number);
}

void json_key_i64(struct json_writer *w, const char *key, int64_t number)
{
    json_key(w, key);
    json_i64(w, number);
}

void json_key_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_bool(w, value);
}

void json_key_null(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_null(w);
}

void json_key_string(struct json_writer *w, const char *key, const char *text, size_t size)
{
    json_key(w, key);
    json_string(w, text, size);
}

void json_key_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    if (text == NULL)
        json_null(w);
    else
        json_string(w, text, strlen(text));
}
