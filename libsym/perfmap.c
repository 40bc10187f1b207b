/* SPDX-License-Identifier: MIT */
/*
 * Parsing and flattening of perf maps. Code is freed and its memory used again, so later lines
 * replace earlier ones where they overlap, and what is left of an earlier one stays valid. Anybody
 * may have written the file: /tmp is everyone's. So it is read in pieces, of which only entries
 * and names are kept, and nothing in it is an error.
 */
#include "perfmap.h"

#include "strtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TEXT ((size_t)256 * 1024 * 1024)
#define MAX_ENTRIES ((size_t)4 * 1024 * 1024) /* flattening them takes up to half a gigabyte */
#define MAX_LINE ((size_t)64 * 1024)          /* a longer one is a bad line */
#define PIECE ((size_t)256 * 1024)            /* has room for a line */
/* When memory runs out over more text than this, the map was too large; over less, there is no
 * memory for anything. */
#define SMALL_TEXT ((size_t)1024 * 1024)

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

/* START SIZE NAME; the name, *name to *name_end, is all the rest of the line. */
static bool parse_line(const char *p, const char *end, struct symint_perf_entry *out,
                       const char **name, const char **name_end)
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
    *name = p;
    *name_end = end;
    return true;
}

/* ---- lines ---- */

struct parser {
    struct symint_perf_map *map;
    size_t entry_capacity;
    size_t text_size;
    size_t text_capacity;
    bool in_long_line; /* the rest of it is still to be skipped */
};

/* Makes room for `wanted` items of a table that doubles. 0 or SYM_ERR_NOMEM. */
static int reserve(void **table, size_t *capacity, size_t wanted, size_t item_size)
{
    size_t room = *capacity == 0 ? 4096 / item_size : *capacity;
    if (wanted <= *capacity)
        return 0;
    while (room < wanted)
        room *= 2;
    void *grown = realloc(*table, room * item_size);
    if (grown == NULL)
        return SYM_ERR_NOMEM;
    *table = grown;
    *capacity = room;
    return 0;
}

static int keep_entry(struct parser *r, struct symint_perf_entry e, const char *name, size_t size)
{
    struct symint_perf_map *m = r->map;
    void *entries = m->entries;
    void *text = m->text;
    if (m->count == MAX_ENTRIES || size > MAX_TEXT - r->text_size)
        return SYM_ERR_LIMIT;
    int rc = reserve(&entries, &r->entry_capacity, m->count + 1, sizeof(e));
    m->entries = entries;
    if (rc == 0)
        rc = reserve(&text, &r->text_capacity, r->text_size + size, 1);
    m->text = text;
    if (rc != 0)
        return rc;
    memcpy(m->text + r->text_size, name, size);
    e.name = (uint32_t)r->text_size;
    e.name_size = (uint32_t)size;
    r->text_size += size;
    m->entries[m->count++] = e;
    return 0;
}

static int take_line(struct parser *r, const char *p, const char *end)
{
    struct symint_perf_entry e;
    const char *name;
    const char *name_end;
    if ((size_t)(end - p) > MAX_LINE) {
        r->map->bad_lines++;
        return 0;
    }
    if (parse_line(p, end, &e, &name, &name_end))
        return keep_entry(r, e, name, (size_t)(name_end - name));
    p = skip_blanks(p, end);
    if (p < end && *p != '\r')
        r->map->bad_lines++;
    return 0;
}

/* Takes the lines of a piece; *left bytes at its end begin a line that goes on in the next one,
 * none when it is the last. 0, SYM_ERR_NOMEM or SYM_ERR_LIMIT. */
static int take_lines(struct parser *r, const char *piece, size_t size, bool last, size_t *left)
{
    const char *p = piece;
    const char *end = piece + size;
    int rc = 0;
    *left = 0;
    while (p < end && rc == 0) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *line_end = newline != NULL ? newline : end;
        if (newline == NULL && !last) {
            if (!r->in_long_line && (size_t)(end - p) <= MAX_LINE) {
                *left = (size_t)(end - p);
                return 0;
            }
            r->map->bad_lines += !r->in_long_line;
            r->in_long_line = true;
            return 0;
        }
        if (!r->in_long_line)
            rc = take_line(r, p, line_end);
        r->in_long_line = false;
        p = line_end + 1;
    }
    return rc;
}

/* ---- overlaps ---- */

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
    struct symint_pair *pieces = symint_scratch_alloc(m->count * 2, sizeof(*pieces));
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
    next = symint_scratch_alloc(count, sizeof(*next));
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
    struct symint_pair *order = symint_scratch_alloc(m->count, sizeof(*order));
    if (order == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < m->count; i++)
        order[i] = (struct symint_pair){.key = m->entries[i].start, .value = (uint32_t)i};
    int rc = symint_sort_pairs(order, m->count);
    bool done = rc != 0 || flatten_disjoint(m, order, &rc);
    free(order);
    if (!done)
        rc = flatten_overlapping(m);
    symint_segments_settle(&m->index);
    return rc;
}

/* ---- whole maps ---- */

int symint_perf_map_parse(struct symint_perf_map *m, char *text, size_t size)
{
    struct parser r = {.map = m};
    size_t left;
    *m = (struct symint_perf_map){0};
    int rc = size > MAX_TEXT ? SYM_ERR_LIMIT : take_lines(&r, text, size, true, &left);
    free(text);
    if (rc == 0 && m->count > 0)
        rc = flatten(m);
    if (rc != 0)
        symint_perf_map_free(m);
    return rc;
}

/* Reads and parses a file to its end; *size: how much was read. 0, SYM_ERR_NOMEM, SYM_ERR_LIMIT
 * or SYM_ERR_IO. */
static int read_map(struct symint_perf_map *m, int fd, size_t *size)
{
    struct parser r = {.map = m};
    struct stat st;
    size_t held = 0;
    ssize_t n;
    int rc = 0;
    *size = 0;
    if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size > MAX_TEXT)
        return SYM_ERR_LIMIT;
    char *piece = malloc(PIECE);
    if (piece == NULL)
        return SYM_ERR_NOMEM;
    do {
        n = read(fd, piece + held, PIECE - held);
        if (n < 0) {
            rc = errno == EINTR ? 0 : SYM_ERR_IO;
            continue;
        }
        size_t filled = held + (size_t)n;
        *size += (size_t)n;
        rc = *size > MAX_TEXT ? SYM_ERR_LIMIT : take_lines(&r, piece, filled, n == 0, &held);
        memmove(piece, piece + filled - held, held);
    } while (rc == 0 && n != 0);
    free(piece);
    return rc;
}

int symint_perf_map_load(struct symint_perf_map *m, int fd, enum sym_miss *miss)
{
    size_t size;
    *m = (struct symint_perf_map){0};
    int rc = read_map(m, fd, &size);
    if (rc == 0 && m->count > 0)
        rc = flatten(m);
    if (rc == 0) {
        *miss = m->count == 0 && m->bad_lines > 0 ? SYM_MISS_DAMAGED : SYM_MISS_NONE;
        return 0;
    }
    symint_perf_map_free(m);
    if (rc == SYM_ERR_NOMEM && size <= SMALL_TEXT)
        return rc;
    *miss = rc == SYM_ERR_IO ? SYM_MISS_UNREADABLE : SYM_MISS_TOO_LARGE;
    return 0;
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
