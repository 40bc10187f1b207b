/* SPDX-License-Identifier: MIT */
/*
 * Parsing and flattening of perf maps. Code is freed and its memory used again, so later lines
 * replace earlier ones where they overlap, and what is left of an earlier one stays valid. Anybody
 * may have written the file: /tmp is everyone's.
 */
#include "perfmap.h"

#include "locate.h"
#include "strtab.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT ((size_t)1024 * 1024 * 1024)
#define MAX_ENTRIES ((size_t)16 * 1024 * 1024) /* later lines count as bad ones */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* A hexadecimal number with or without 0x, up to a blank or the end. NULL: not one. */
static const char *parse_hex(const char *p, const char *end, uint64_t *value)
{
    if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        p += 2;
    const char *start = p;
    *value = 0;
    for (; p < end; p++) {
        unsigned digit;
        if (*p >= '0' && *p <= '9')
            digit = (unsigned)(*p - '0');
        else if (*p >= 'a' && *p <= 'f')
            digit = (unsigned)(*p - 'a') + 10;
        else if (*p >= 'A' && *p <= 'F')
            digit = (unsigned)(*p - 'A') + 10;
        else
            break;
        if (*value >> 60 != 0)
            return NULL;
        *value = *value << 4 | digit;
    }
    return p == start || (p < end && !is_blank(*p)) ? NULL : p;
}

/* START SIZE NAME; the name is all the rest of the line. */
static bool parse_line(const char *text, const char *p, const char *end,
                       struct symint_perf_entry *out)
{
    uint64_t size;
    p = parse_hex(skip_blanks(p, end), end, &out->start);
    if (p == NULL)
        return false;
    p = parse_hex(skip_blanks(p, end), end, &size);
    if (p == NULL || size == 0 || size > UINT64_MAX - out->start)
        return false;
    p = skip_blanks(p, end);
    while (end > p && (end[-1] == '\r' || is_blank(end[-1])))
        end--;
    if (p == end)
        return false;
    out->end = out->start + size;
    out->name = (uint32_t)(p - text);
    out->name_size = (uint32_t)(end - p);
    return true;
}

static int parse_lines(struct symint_perf_map *m, size_t size)
{
    size_t capacity = 0;
    const char *p = m->text;
    const char *end = p + size;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *line_end = newline != NULL ? newline : end;
        struct symint_perf_entry e;
        if (parse_line(m->text, p, line_end, &e) && m->count < MAX_ENTRIES) {
            if (m->count == capacity) {
                capacity = capacity == 0 ? size / 64 + 16 : capacity * 2;
                struct symint_perf_entry *grown = realloc(m->entries, capacity * sizeof(*grown));
                if (grown == NULL)
                    return SYM_ERR_NOMEM;
                m->entries = grown;
            }
            m->entries[m->count++] = e;
        } else {
            const char *q = skip_blanks(p, line_end);
            if (q < line_end && *q != '\r')
                m->bad_lines++;
        }
        p = line_end + 1;
    }
    return 0;
}

/* Sorted by start without overlap: entries as they are. False: they do overlap. */
static bool flatten_disjoint(struct symint_perf_map *m, const struct symint_pair *order, int *rc)
{
    for (size_t i = 1; i < m->count; i++)
        if (m->entries[order[i - 1].value].end > order[i].key)
            return false;
    struct symint_sweep sweep;
    *rc = symint_sweep_start(&sweep, &m->index, m->count);
    if (*rc != 0)
        return true;
    for (size_t i = 0; i < m->count; i++)
        symint_sweep_push(&sweep, order[i].key, m->entries[order[i].value].end, order[i].value);
    symint_sweep_finish(&sweep);
    return true;
}

/* The first piece at or after i that nobody owns yet. Paths are halved on the way. */
static uint32_t find_free(uint32_t *next, uint32_t i)
{
    while (next[i] != i) {
        next[i] = next[next[i]];
        i = next[i];
    }
    return i;
}

static uint32_t find_piece(const struct symint_pair *pieces, uint32_t count, uint64_t start)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pieces[middle].key < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* All starts and ends cut the address space into pieces. Entries take pieces from the last line
 * to the first, each only those that are free: n log n however they overlap. */
static int flatten_overlapping(struct symint_perf_map *m)
{
    int rc = SYM_ERR_NOMEM;
    struct symint_pair *pieces = symint_table_alloc(m->count * 2, sizeof(*pieces));
    uint32_t *next = NULL;
    struct symint_sweep sweep;
    if (pieces == NULL)
        return rc;
    for (size_t i = 0; i < m->count; i++) {
        pieces[2 * i] = (struct symint_pair){.key = m->entries[i].start};
        pieces[2 * i + 1] = (struct symint_pair){.key = m->entries[i].end};
    }
    if (symint_sort_pairs(pieces, m->count * 2) != 0)
        goto done;
    uint32_t count = 0;
    for (size_t i = 0; i < m->count * 2; i++)
        if (count == 0 || pieces[count - 1].key != pieces[i].key)
            pieces[count++] = pieces[i];
    next = symint_table_alloc(count, sizeof(*next));
    if (next == NULL)
        goto done;
    for (uint32_t i = 0; i < count; i++) {
        next[i] = i;
        pieces[i].value = SYMINT_NO_OWNER;
    }
    for (size_t i = m->count; i-- > 0;) {
        uint32_t last = find_piece(pieces, count, m->entries[i].end);
        uint32_t at = find_free(next, find_piece(pieces, count, m->entries[i].start));
        while (at < last) {
            pieces[at].value = (uint32_t)i;
            next[at] = at + 1; /* the last end begins no piece, so at + 1 exists */
            at = find_free(next, at + 1);
        }
    }
    rc = symint_sweep_start(&sweep, &m->index, count);
    if (rc != 0)
        goto done;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (pieces[i].value != SYMINT_NO_OWNER)
            symint_sweep_push(&sweep, pieces[i].key, pieces[i + 1].key, pieces[i].value);
    symint_sweep_finish(&sweep);
done:
    free(pieces);
    free(next);
    return rc;
}

static int flatten(struct symint_perf_map *m)
{
    struct symint_pair *order = symint_table_alloc(m->count, sizeof(*order));
    if (order == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < m->count; i++)
        order[i] = (struct symint_pair){.key = m->entries[i].start, .value = (uint32_t)i};
    int rc = symint_sort_pairs(order, m->count);
    bool done = rc != 0 || flatten_disjoint(m, order, &rc);
    free(order);
    return done ? rc : flatten_overlapping(m);
}

int symint_perf_map_parse(struct symint_perf_map *m, char *text, size_t size)
{
    *m = (struct symint_perf_map){.text = text};
    int rc = size > MAX_TEXT ? SYM_ERR_LIMIT : parse_lines(m, size);
    if (rc == 0 && m->count > 0)
        rc = flatten(m);
    if (rc != 0)
        symint_perf_map_free(m);
    return rc;
}

int symint_perf_map_load(struct symint_perf_map *m, const char *path, bool *found)
{
    enum sym_miss miss;
    int error;
    int fd;
    char *text;
    size_t size;
    *m = (struct symint_perf_map){0};
    *found = false;
    int rc = symint_open_regular(NULL, path, &fd, &miss, &error);
    if (rc != 0 || fd < 0)
        return rc;
    rc = symint_read_all(fd, MAX_TEXT, &text, &size);
    close(fd);
    if (rc == 0) {
        rc = symint_perf_map_parse(m, text, size);
        *found = rc == 0;
    }
    return rc == SYM_ERR_NOMEM ? rc : 0;
}

void symint_perf_map_free(struct symint_perf_map *m)
{
    free(m->text);
    free(m->entries);
    symint_segments_free(&m->index);
    *m = (struct symint_perf_map){0};
}

const struct symint_perf_entry *symint_perf_map_find(const struct symint_perf_map *m,
                                                     uint64_t address)
{
    uint32_t owner = symint_segments_find(&m->index, address);
    return owner == SYMINT_NO_OWNER ? NULL : &m->entries[owner];
}
