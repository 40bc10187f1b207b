/* SPDX-License-Identifier: MIT */
/* JSON escaping. Runs of plain characters are copied at once: names are plain nearly always. */
#include "json.h"
#include "text.h"

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

void json_text(struct tool_output *out, const char *text, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0, begin = 0; /* [begin, at) is to be copied as it is */

    output_byte(out, '"');
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
        output_write(out, text + begin, at - begin);
        if (code == TEXT_BAD) {
            output_write(out, "\xef\xbf\xbd", 3);
        } else if (code == '"' || code == '\\') {
            output_byte(out, '\\');
            output_byte(out, (char)code);
        } else {
            output_write(out, "\\u00", 4);
            output_byte(out, hex[code >> 4]);
            output_byte(out, hex[code & 15]);
        }
        at += length;
        begin = at;
    }
    if (at > begin) /* an empty text may be NULL */
        output_write(out, text + begin, at - begin);
    output_byte(out, '"');
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
