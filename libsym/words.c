/* SPDX-License-Identifier: MIT */
/* Formatting, with the memory that each use has for it. */
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *symint_join(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0 || (text = malloc((size_t)n + 1)) == NULL)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)n + 1, format, arguments);
    va_end(arguments);
    return text;
}

const char *symint_arena_print(struct symint_arena *a, const char *format, va_list arguments)
{
    char text[8192];
    int n = vsnprintf(text, sizeof(text), format, arguments);
    size_t size = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    return symint_arena_copy(a, text, size);
}

void symint_append_list(char *text, size_t room, const char *format, va_list arguments)
{
    size_t used = strlen(text);
    if (used > 0 && used + 2 < room) {
        memcpy(text + used, "; ", 3);
        used += 2;
    }
    vsnprintf(text + used, room - used, format, arguments);
}

void symint_append(char *text, size_t room, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    symint_append_list(text, room, format, arguments);
    va_end(arguments);
}
