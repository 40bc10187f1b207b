/* SPDX-License-Identifier: MIT */
/*
 * JSON text (RFC 8259) token by token, from memory that need not be trusted: strict, in linear time, without recursion,
 * and with no more memory than the longest text in it.
 *
 *     json_read_start(&r, text, size);
 *     while ((token = json_read_next(&r)) > 0)
 *         use(token, &r);
 *     if (token < 0)
 *         complain(r.fault, r.at);
 *     json_read_free(&r);
 */
#ifndef TOOLS_JSON_READ_H
#define TOOLS_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

#define JSON_DEPTH_MAX 64

enum json_token {
    JSON_FAULT = -1,
    JSON_END = 0, /* after the one value of the text */
    JSON_OBJECT,  /* { ... */
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,    /* of an object: `string`; its value comes next */
    JSON_STRING, /* `string`; it may hold NUL bytes */
    JSON_NUMBER, /* `exact`, `negative`, `number` */
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
};

struct json_reader {
    const char *text;
    size_t size;
    size_t at;                 /* the byte behind the token; after a fault the byte at fault */
    size_t begin;              /* of the token */
    const char *fault;         /* static; NULL: none yet */
    struct text_buffer string; /* UTF-8 without escapes; NUL-terminated; until the next call */
    bool exact;    /* a whole number that `number` holds; else there is no value for it */
    bool negative; /* the value is -number, which is in the range of int64_t then */
    uint64_t number;
    unsigned depth;   /* of objects and arrays that are open */
    uint64_t objects; /* a bit for each of them: it is an object */
    enum { JSON_WANTS_VALUE, JSON_WANTS_FIRST, JSON_WANTS_MEMBER, JSON_WANTS_SEPARATOR } wants;
};

/* text is borrowed. */
void json_read_start(struct json_reader *r, const char *text, size_t size);
void json_read_free(struct json_reader *r);

/* The next token. After JSON_FAULT and JSON_END the same again. */
enum json_token json_read_next(struct json_reader *r);

/* After the first token of a value: reads to its end. False: a fault. */
bool json_read_skip(struct json_reader *r, enum json_token token);

/* Makes a fault of what the caller finds wrong with the token just read. Returns JSON_FAULT. The first one stays. */
enum json_token json_read_refuse(struct json_reader *r, const char *why);

#endif
