/* SPDX-License-Identifier: MIT */
/* Long names and pax records. Global records are left out by the caller: what they could say of all files is nothing
 * that names or sizes depend on. */
#include "tarextension.h"

#include "spool/sym.h"
#include "tarindex.h"

#include <stdlib.h>
#include <string.h>

/* Keeps a text of that size; one with a NUL in it, or one that is too long, makes its member unusable. */
static int keep_text(struct symint_tar_extension *e, char **text, const char *bytes, size_t size)
{
    if (size >= SYMINT_TAR_NAME_BYTES || memchr(bytes, '\0', size) != NULL) {
        e->unusable = true;
        return 0;
    }
    free(*text);
    *text = strndup(bytes, size);
    return *text == NULL ? SYM_ERR_NOMEM : 0;
}

static bool is_key(const char *key, size_t key_size, const char *name)
{
    return key_size == strlen(name) && memcmp(key, name, key_size) == 0;
}

static bool parse_decimal(const char *text, size_t size, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || *out > (UINT64_MAX - 9) / 10)
            return false;
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    }
    return size > 0;
}

/* Seconds and a fraction. One that we do not understand is none. */
static void parse_time(struct symint_tar_extension *e, const char *text, size_t size)
{
    const char *dot = memchr(text, '.', size);
    size_t whole = dot != NULL ? (size_t)(dot - text) : size;
    uint64_t seconds;
    uint32_t ns = 0;
    if (!parse_decimal(text, whole, &seconds) || seconds > INT64_MAX / 2)
        return;
    for (size_t digit = 0; digit < 9; digit++) {
        size_t at = whole + 1 + digit;
        ns = ns * 10 +
             (at < size && text[at] >= '0' && text[at] <= '9' ? (uint32_t)(text[at] - '0') : 0);
    }
    e->has_time = true;
    e->mtime_s = (int64_t)seconds;
    e->mtime_ns = ns;
}

/* One record of a pax header. 1; 0: it is damaged; SYM_ERR_NOMEM. */
static int take_record(struct symint_tar_extension *e, const char *key, size_t size)
{
    static const char sparse[] = "GNU.sparse.";
    const char *equals = memchr(key, '=', size);
    if (equals == NULL)
        return 0;
    size_t key_size = (size_t)(equals - key);
    const char *value = equals + 1;
    size_t value_size = size - key_size - 1;
    int rc = 0;
    if (is_key(key, key_size, "path"))
        rc = keep_text(e, &e->name, value, value_size);
    else if (is_key(key, key_size, "linkpath"))
        rc = keep_text(e, &e->link, value, value_size);
    else if (is_key(key, key_size, "mtime"))
        parse_time(e, value, value_size);
    else if (is_key(key, key_size, "size") &&
             !(e->has_size = parse_decimal(value, value_size, &e->size)))
        return 0;
    else if (key_size >= sizeof(sparse) - 1 && memcmp(key, sparse, sizeof(sparse) - 1) == 0)
        e->sparse = true;
    return rc < 0 ? rc : 1;
}

/* `LENGTH KEY=VALUE\n`, LENGTH being that of all of it. As take_record. */
static int take_records(struct symint_tar_extension *e, const char *text, size_t size)
{
    int rc = 1;
    for (size_t at = 0; rc == 1 && at < size;) {
        const char *blank = memchr(text + at, ' ', size - at < 24 ? size - at : 24);
        uint64_t length;
        if (blank == NULL || !parse_decimal(text + at, (size_t)(blank - text) - at, &length))
            return 0;
        size_t head = (size_t)(blank + 1 - text) - at;
        if (length <= head || length > size - at || text[at + length - 1] != '\n')
            return 0;
        rc = take_record(e, blank + 1, (size_t)length - head - 1);
        at += (size_t)length;
    }
    return rc;
}

bool symint_tar_is_extension(char type)
{
    return type == 'L' || type == 'K' || type == 'x' || type == 'X';
}

int symint_tar_extension_take(struct symint_tar_extension *e, char type, const char *bytes,
                              size_t size)
{
    if (type == 'x' || type == 'X') /* Solaris had these first */
        return take_records(e, bytes, size);
    int rc = keep_text(e, type == 'L' ? &e->name : &e->link, bytes, strnlen(bytes, size));
    return rc < 0 ? rc : 1;
}

void symint_tar_extension_forget(struct symint_tar_extension *e)
{
    free(e->name);
    free(e->link);
    *e = (struct symint_tar_extension){0};
}
