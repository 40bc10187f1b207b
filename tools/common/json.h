/* SPDX-License-Identifier: MIT */
/*
 * JSON text onto a tool_output: commas and escaping. No blanks are written; line breaks are the
 * caller's, by output_byte after json_end of a line's outermost object.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include "output.h"
#include "text.h"

struct json_writer {
    struct tool_output *out;
    bool comma; /* a value stands before what comes next */
};

/* The escaped text with its quotes. Bytes that are not UTF-8 become U+FFFD, one for each maximal
 * bad sequence; control characters (C0, DEL, C1) are \u00XX, LF too: there is one form of
 * everything. */
void json_text(struct tool_output *out, const char *text, size_t size);
/* The same onto the end of a buffer. */
void json_append_text(struct text_buffer *out, const char *text, size_t size);

static inline void json_start(struct json_writer *w, struct tool_output *out)
{
    w->out = out;
    w->comma = false;
}

static inline void json_separate(struct json_writer *w)
{
    if (w->comma)
        output_byte(w->out, ',');
    w->comma = true;
}

/* { and [ */
static inline void json_begin(struct json_writer *w, char bracket)
{
    json_separate(w);
    output_byte(w->out, bracket);
    w->comma = false;
}

/* } and ] */
static inline void json_end(struct json_writer *w, char bracket)
{
    output_byte(w->out, bracket);
    w->comma = true;
}

/* "key": with a key that needs no escaping; a value must follow. */
static inline void json_key(struct json_writer *w, const char *key)
{
    json_separate(w);
    output_byte(w->out, '"');
    output_text(w->out, key);
    output_write(w->out, "\":", 2);
    w->comma = false;
}

static inline void json_u64(struct json_writer *w, uint64_t number)
{
    json_separate(w);
    output_u64(w->out, number);
}

static inline void json_i64(struct json_writer *w, int64_t number)
{
    json_separate(w);
    output_i64(w->out, number);
}

static inline void json_bool(struct json_writer *w, bool value)
{
    json_separate(w);
    output_text(w->out, value ? "true" : "false");
}

static inline void json_null(struct json_writer *w)
{
    json_separate(w);
    output_write(w->out, "null", 4);
}

static inline void json_string(struct json_writer *w, const char *text, size_t size)
{
    json_separate(w);
    json_text(w->out, text, size);
}

/* Key and value in one call. json_key_text with NULL writes null. */
void json_key_u64(struct json_writer *w, const char *key, uint64_t number);
void json_key_i64(struct json_writer *w, const char *key, int64_t number);
void json_key_bool(struct json_writer *w, const char *key, bool value);
void json_key_null(struct json_writer *w, const char *key);
void json_key_string(struct json_writer *w, const char *key, const char *text, size_t size);
void json_key_text(struct json_writer *w, const char *key, const char *text);

#endif
