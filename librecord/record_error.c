/* SPDX-License-Identifier: MIT */
/*
 * Codes, their names and texts from one table.
 */
#include "record_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "spool/record.h"

static const struct {
    int code;
    const char *name;
    const char *text;
} errors[] = {
    {RECORD_ERR_NOMEM, "RECORD_ERR_NOMEM", "out of memory"},
    {RECORD_ERR_IO, "RECORD_ERR_IO", "the spool cannot be written"},
    {RECORD_ERR_LIMIT, "RECORD_ERR_LIMIT", "a limit was exceeded"},
    {RECORD_ERR_MISUSE, "RECORD_ERR_MISUSE",
     "a function was called with arguments or in an order that it does not allow"},
    {RECORD_ERR_PERMISSION, "RECORD_ERR_PERMISSION", "the kernel does not permit it"},
    {RECORD_ERR_UNSUPPORTED, "RECORD_ERR_UNSUPPORTED",
     "this kernel or machine does not support it"},
    {RECORD_ERR_NO_PROCESS, "RECORD_ERR_NO_PROCESS", "there is no such process"},
    {RECORD_ERR_COMMAND, "RECORD_ERR_COMMAND", "the command cannot be run"},
    {RECORD_ERR_INTERRUPTED, "RECORD_ERR_INTERRUPTED", "interrupted by a signal"},
};

#define ERROR_COUNT (sizeof errors / sizeof errors[0])

int recordint_error_set(struct record_errbuf *e, int code, int system, const char *format, ...)
{
    va_list args;

    e->code = code;
    e->system = system;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return code;
}

const char *record_error_name(int code)
{
    if (code >= 0)
        return "RECORD_OK";
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (errors[i].code == code)
            return errors[i].name;
    return "RECORD_ERR_UNKNOWN";
}

const char *record_error_text(int code)
{
    if (code >= 0)
        return "no error";
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (errors[i].code == code)
            return errors[i].text;
    return "unknown error";
}

const char *record_version(void)
{
    return SPOOLTOOLS_VERSION;
}
