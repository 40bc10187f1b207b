/* SPDX-License-Identifier: MIT */
/* The error codes' names and texts, from one table, and the formatting of a handle's own text. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

#ifndef SPOOLTOOLS_VERSION
#error "the build defines SPOOLTOOLS_VERSION, \"MAJOR.MINOR.PATCH\""
#endif

struct error_entry {
    const char *name;
    const char *text;
};

#define ENTRY(code, text) [-(SPOOL_ERR_##code)] = {"SPOOL_ERR_" #code, text}

/* By negated code. */
static const struct error_entry entries[] = {
    [0] = {"SPOOL_OK", "no error"},
    ENTRY(NOMEM, "out of memory"),
    ENTRY(IO, "input or output failed"),
    ENTRY(FORMAT, "not a spool"),
    ENTRY(VERSION, "spool of an unknown version"),
    ENTRY(CORRUPT, "corrupt spool"),
    ENTRY(TRUNCATED, "the spool ends inside its header"),
    ENTRY(LIMIT, "a limit of the format or of this library was exceeded"),
    ENTRY(MISUSE, "a function was called with arguments or in an order that it does not allow"),
};

static const struct error_entry unknown = {"SPOOL_ERR_UNKNOWN", "unknown error"};

static const struct error_entry *find(int code)
{
    if (code >= 0)
        return &entries[0];
    if (code <= -(int)(sizeof entries / sizeof entries[0])) /* -code could overflow */
        return &unknown;
    return &entries[-code];
}

const char *spool_error_name(int code)
{
    return find(code)->name;
}

const char *spool_error_text(int code)
{
    return find(code)->text;
}

const char *spool_version(void)
{
    return SPOOLTOOLS_VERSION;
}

int spoolint_error_set(struct error_state *e, int code, const char *format, ...)
{
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    /* The text is promised to say something. vsnprintf itself may run out of memory. */
    if (size <= 0)
        snprintf(e->text, sizeof e->text, "%s", spool_error_text(code));
    e->code = code;
    return code;
}

const char *spoolint_error_get(const struct error_state *e)
{
    return e->text[0] != '\0' ? e->text : spool_error_text(0);
}
