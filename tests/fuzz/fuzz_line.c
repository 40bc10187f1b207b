/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a line table, with their own lengths or, by the first byte, with lengths that are made right: few inputs
 * have these. Answers do not change when they are asked for again, or by another reading of the same bytes.
 */
#include "dwarf_line.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CODE 0x401000u
#define CODE_SIZE 0x10000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLAG_BIG = 1, FLAG_WIDE = 2, FLAG_LENGTHS = 4, FLAG_NO_STRINGS = 8, FLAG_AT = 16 };

static void put(uint8_t *to, uint64_t value, unsigned bytes, bool big)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> ((big ? bytes - 1 - i : i) * 8));
}

/* The version in two bytes, for 5 two sizes, the size of the rest of the header in one: what stands in the input in
 * front of header and program. */
static uint8_t *with_lengths(const uint8_t *data, size_t size, uint8_t flags, size_t *out_size)
{
    const bool wide = (flags & FLAG_WIDE) != 0, big = (flags & FLAG_BIG) != 0;
    const unsigned word = wide ? 8 : 4;
    size_t head = size > 0 ? data[0] : 0, at = 0;
    unsigned version = size > 1 ? 2 + data[1] % 4u : 5;

    data += size < 2 ? size : 2;
    size -= size < 2 ? size : 2;
    if (head > size)
        head = size;
    uint8_t *bytes = calloc(1, size + 32);
    if (bytes == NULL)
        abort();
    if (wide) {
        put(bytes, UINT32_MAX, 4, big);
        at = 4;
    }
    size_t length_at = at;
    at += word;
    put(bytes + at, version, 2, big);
    at += 2;
    if (version == 5) {
        bytes[at] = 8;
        at += 2;
    }
    put(bytes + at, head, word, big);
    at += word;
    if (size > 0)
        memcpy(bytes + at, data, size);
    at += size;
    put(bytes + length_at, at - length_at - word, word, big);
    *out_size = at;
    return bytes;
}

struct reading {
    struct symint_debug_sections sections;
    struct symint_code_range code[2];
    struct symint_line_table *table;
};

static char line_strings[] = "first\0/abs\0line.c";
static char strings_section[] = "str.c\0dir";

static void set_section(struct symint_debug_sections *s, enum symint_debug_id id, void *data,
                        size_t size)
{
    s->at[id].base = data;
    s->at[id].size = size;
}

static void open_table(struct reading *r, uint8_t *bytes, size_t size, uint8_t flags)
{
    memset(r, 0, sizeof(*r));
    r->sections.swap = ((flags & FLAG_BIG) != 0) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    r->sections.why = "";
    set_section(&r->sections, DEBUG_LINE, bytes, size);
    if ((flags & FLAG_NO_STRINGS) == 0) {
        set_section(&r->sections, DEBUG_LINE_STR, line_strings, sizeof(line_strings));
        set_section(&r->sections, DEBUG_STR, strings_section, sizeof(strings_section));
    }
    r->code[0] = (struct symint_code_range){0x1000, 0x2000};
    r->code[1] = (struct symint_code_range){CODE, CODE + CODE_SIZE};
    r->sections.code = r->code;
    r->sections.code_count = 2;
    uint64_t at = (flags & FLAG_AT) != 0 && size > 0 ? bytes[size - 1] : 0;
    if (symint_line_open(&r->sections, at, 8, &r->table) != 0)
        abort();
}

static bool same_row(const struct symint_line_row *a, const struct symint_line_row *b)
{
    return a->file == b->file && a->line == b->line && a->column == b->column;
}

static void ask_path(struct symint_line_table *t, struct symint_strings *strings, uint32_t file)
{
    const char *path, *again;
    if (symint_line_path(t, strings, "/comp", file, &path) != 0 ||
        symint_line_path(t, strings, "/comp", file, &again) != 0 || path != again)
        abort();
    if (path != NULL && path[0] == '\0')
        abort();
}

static void ask(struct reading *a, struct reading *b, struct symint_strings *strings, uint64_t at)
{
    struct symint_line_row row, again;
    bool found = symint_line_find(a->table, at, &row);
    if (found != symint_line_find(b->table, at, &again) || (found && !same_row(&row, &again)))
        abort();
    if (found)
        ask_path(a->table, strings, row.file);
}

static void run(uint8_t *bytes, size_t size, uint8_t flags)
{
    struct reading a, b;
    struct symint_strings strings = {0};
    struct symint_line_scratch scratch = {0};
    open_table(&a, bytes, size, flags);
    open_table(&b, bytes, size, flags);
    if ((a.table == NULL) != (b.table == NULL))
        abort();
    if (a.table != NULL) {
        if (symint_line_rows(a.table) != 0 || symint_line_rows_with(b.table, &scratch) != 0)
            abort();
        for (uint64_t at = 0; at < CODE_SIZE; at += at < 0x400 ? 1 : 0x3f)
            ask(&a, &b, &strings, CODE + at);
        ask(&a, &b, &strings, CODE + CODE_SIZE - 1);
        for (uint64_t at = 0xfff; at <= 0x2000; at += 0x35)
            ask(&a, &b, &strings, at);
        for (uint32_t file = 0; file < 8; file++)
            ask_path(a.table, &strings, file);
        ask_path(a.table, &strings, UINT32_MAX);
        if (symint_line_bytes(a.table) == 0)
            abort();
    }
    symint_line_scratch_free(&scratch);
    symint_strings_free(&strings);
    symint_line_free(a.table);
    symint_line_free(b.table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t flags = data[0];
    uint8_t *bytes;
    size_t bytes_size = size - 1;
    if ((flags & FLAG_LENGTHS) != 0) {
        bytes = with_lengths(data + 1, size - 1, flags, &bytes_size);
        uint8_t *exact = realloc(bytes, bytes_size);
        if (exact == NULL)
            abort();
        bytes = exact;
    } else {
        bytes = malloc(size);
        if (bytes == NULL)
            abort();
        memcpy(bytes, data + 1, size - 1);
    }
    run(bytes, bytes_size, flags);
    free(bytes);
    return 0;
}
