/* SPDX-License-Identifier: MIT */
/* kallsyms: which lines count, and where an entry ends. */
#include "kernel.h"

#include "openfile.h"
#include "segments.h"
#include "strtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TEXT ((size_t)1024 * 1024 * 1024)
#define PAGE 4096u

/* ---- lines ---- */

static unsigned hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

static bool has_prefix(const char *p, size_t size, const char *prefix)
{
    size_t n = strlen(prefix);
    return size >= n && memcmp(p, prefix, n) == 0;
}

/* Labels that are no function: mapping symbols, symbol versions, local labels, call type hashes. */
static bool is_ignored(const char *name, size_t size)
{
    switch (name[0]) {
    case '$':
        return true;
    case '.':
        return size >= 2 && name[1] == 'L';
    case '_':
        return has_prefix(name, size, "__crc_") || has_prefix(name, size, "__cfi_");
    default:
        return false;
    }
}

static bool is_code(char type)
{
    switch (type) {
    case 't':
    case 'T':
    case 'w':
    case 'W':
    case 'i':
    case 'a':
        return true;
    default:
        return false;
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

enum line_kind { LINE_BAD, LINE_OTHER, LINE_KEPT };

/* ADDRESS TYPE NAME [module]. `text` is where offsets count from. */
static enum line_kind parse_line(const char *text, const char *p, const char *end,
                                 struct symint_kernel_entry *out)
{
    const char *start = p;
    uint64_t address = 0;
    unsigned digit;
    while (p < end && (digit = hex_value(*p)) < 16) {
        address = address << 4 | digit;
        p++;
    }
    if (p == start || p - start > 16 || end - p < 4 || !is_blank(*p) || !is_blank(p[2]))
        return LINE_BAD;
    char type = p[1];
    if (!((type >= 'a' && type <= 'z') || (type >= 'A' && type <= 'Z') || type == '?' ||
          type == '-'))
        return LINE_BAD;
    p += 3;
    const char *name = p;
    while (p < end && !is_blank(*p) && *p != '\r')
        p++;
    if (p == name)
        return LINE_BAD;
    out->start = address;
    out->type = type;
    out->name = (uint32_t)(name - text);
    out->name_size = (uint32_t)(p - name);
    if (!is_code(type) || is_ignored(name, out->name_size))
        return LINE_OTHER;
    while (p < end && is_blank(*p))
        p++;
    const char *owner = p;
    while (p < end && !is_blank(*p) && *p != '\r')
        p++;
    out->owner = (uint32_t)(owner - text);
    out->owner_size = (uint32_t)(p - owner);
    return LINE_KEPT;
}

/* ---- the table ---- */

static size_t underscores(const char *name, size_t size)
{
    size_t n = 0;
    while (n < size && name[n] == '_')
        n++;
    return n;
}

/* Whether a is the better name of two at one address: symbolization.md section 9. */
static bool better(const char *text, const struct symint_kernel_entry *a,
                   const struct symint_kernel_entry *b)
{
    /* i and a are names of last resort. */
    bool a_odd = a->type == 'i' || a->type == 'a';
    bool b_odd = b->type == 'i' || b->type == 'a';
    if (a_odd != b_odd)
        return b_odd;
    bool a_weak = a->type == 'w' || a->type == 'W';
    bool b_weak = b->type == 'w' || b->type == 'W';
    if (a_weak != b_weak)
        return b_weak;
    bool a_global = a->type == 'T' || a->type == 'W';
    bool b_global = b->type == 'T' || b->type == 'W';
    if (a_global != b_global)
        return a_global;
    size_t a_underscores = underscores(text + a->name, a->name_size);
    size_t b_underscores = underscores(text + b->name, b->name_size);
    if (a_underscores != b_underscores)
        return a_underscores < b_underscores;
    if (a->name_size != b->name_size)
        return a->name_size > b->name_size;
    /* The old wrappers of system calls: SyS_read beside sys_read. */
    bool a_wrapper = has_prefix(text + a->name, a->name_size, "SyS_") ||
                     has_prefix(text + a->name, a->name_size, "compat_SyS_");
    bool b_wrapper = has_prefix(text + b->name, b->name_size, "SyS_") ||
                     has_prefix(text + b->name, b->name_size, "compat_SyS_");
    if (a_wrapper != b_wrapper)
        return b_wrapper;
    int order = memcmp(text + a->name, text + b->name, a->name_size);
    if (order != 0)
        return order < 0;
    return a->owner_size < b->owner_size;
}

static bool same_owner(const char *text, const struct symint_kernel_entry *a,
                       const struct symint_kernel_entry *b)
{
    return a->owner_size == b->owner_size &&
           memcmp(text + a->owner, text + b->owner, a->owner_size) == 0;
}

/* Every BPF program is an image of its own: the next one may be anywhere. */
static bool is_bpf(const char *text, const struct symint_kernel_entry *e)
{
    return e->owner_size == 5 && memcmp(text + e->owner, "[bpf]", 5) == 0;
}

/* Sorts, keeps the best name of each address, and gives every entry its end. */
static int arrange(struct symint_kernel *k)
{
    bool sorted = true;
    for (size_t i = 1; i < k->count && sorted; i++)
        sorted = k->entries[i - 1].start <= k->entries[i].start;
    if (!sorted) {
        struct symint_pair *pairs = symint_table_alloc(k->count, sizeof(*pairs));
        struct symint_kernel_entry *entries = symint_table_alloc(k->count, sizeof(*entries));
        int rc = pairs == NULL || entries == NULL ? SYM_ERR_NOMEM : 0;
        if (rc == 0) {
            for (size_t i = 0; i < k->count; i++)
                pairs[i] = (struct symint_pair){.key = k->entries[i].start, .value = (uint32_t)i};
            rc = symint_sort_pairs(pairs, k->count);
        }
        if (rc != 0) {
            free(pairs);
            free(entries);
            return rc;
        }
        for (size_t i = 0; i < k->count; i++)
            entries[i] = k->entries[pairs[i].value];
        free(pairs);
        free(k->entries);
        k->entries = entries;
    }
    size_t kept = 0;
    for (size_t i = 0; i < k->count; i++) {
        if (kept == 0 || k->entries[kept - 1].start != k->entries[i].start)
            k->entries[kept++] = k->entries[i];
        else if (better(k->text, &k->entries[i], &k->entries[kept - 1]))
            k->entries[kept - 1] = k->entries[i];
    }
    k->count = kept;
    for (size_t i = 0; i < kept; i++) {
        struct symint_kernel_entry *e = &k->entries[i];
        uint64_t page_end = e->start | (PAGE - 1);
        page_end = page_end == UINT64_MAX ? page_end : page_end + 1;
        if (i + 1 == kept)
            e->end = page_end;
        else if (same_owner(k->text, e, e + 1) && !is_bpf(k->text, e))
            e->end = e[1].start;
        else
            e->end = e[1].start < page_end ? e[1].start : page_end;
    }
    return 0;
}

/* Drops what answers no needed address, and then the text of what was dropped. */
static int thin(struct symint_kernel *k, const uint64_t *needed, size_t needed_count)
{
    size_t kept = 0;
    size_t n = 0;
    size_t text_size = 0;
    for (size_t i = 0; i < k->count && n < needed_count; i++) {
        const struct symint_kernel_entry *e = &k->entries[i];
        while (n < needed_count && needed[n] < e->start)
            n++;
        if (n < needed_count && needed[n] < e->end) {
            text_size += e->name_size + e->owner_size;
            k->entries[kept++] = *e;
        }
    }
    k->count = kept;
    char *text = malloc(text_size + 1);
    if (text == NULL)
        return SYM_ERR_NOMEM;
    size_t at = 0;
    for (size_t i = 0; i < kept; i++) {
        struct symint_kernel_entry *e = &k->entries[i];
        memcpy(text + at, k->text + e->name, e->name_size);
        e->name = (uint32_t)at;
        at += e->name_size;
        memcpy(text + at, k->text + e->owner, e->owner_size);
        e->owner = (uint32_t)at;
        at += e->owner_size;
    }
    free(k->text);
    k->text = text;
    struct symint_kernel_entry *entries = realloc(k->entries, (kept + 1) * sizeof(*entries));
    if (entries != NULL)
        k->entries = entries;
    return 0;
}

/* Parses all lines. *any_address: one of them has an address other than 0. */
static int parse_lines(struct symint_kernel *k, size_t size, bool *any_address)
{
    size_t capacity = size / 40 + 64; /* lines have some 50 bytes */
    const char *p = k->text;
    const char *end = p + size;
    *any_address = false;
    k->entries = symint_table_alloc(capacity, sizeof(*k->entries));
    if (k->entries == NULL)
        return SYM_ERR_NOMEM;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *line_end = newline != NULL ? newline : end;
        if (k->count == capacity) {
            capacity *= 2;
            struct symint_kernel_entry *grown = realloc(k->entries, capacity * sizeof(*grown));
            if (grown == NULL)
                return SYM_ERR_NOMEM;
            k->entries = grown;
        }
        struct symint_kernel_entry *e = &k->entries[k->count];
        enum line_kind kind = parse_line(k->text, p, line_end, e);
        if (kind != LINE_BAD) {
            k->lines++;
            *any_address |= e->start != 0;
        }
        /* The last address of all would begin an entry without an end. */
        if (kind == LINE_KEPT && e->start != 0 && e->start != UINT64_MAX)
            k->count++;
        p = line_end + 1;
    }
    return 0;
}

int symint_kernel_parse(struct symint_kernel *k, char *text, size_t size, const uint64_t *needed,
                        size_t needed_count, enum sym_kernel_state *state)
{
    bool any_address;
    *k = (struct symint_kernel){.text = text};
    *state = SYM_KERNEL_EMPTY;
    if (size > MAX_TEXT) {
        symint_kernel_free(k);
        return SYM_ERR_LIMIT;
    }
    int rc = parse_lines(k, size, &any_address);
    if (rc == 0 && k->count > 0)
        rc = arrange(k);
    if (rc == 0 && k->count > 0) {
        *state = SYM_KERNEL_OK;
        if (needed != NULL)
            rc = thin(k, needed, needed_count);
    } else if (rc == 0 && k->lines > 0 && !any_address) {
        *state = SYM_KERNEL_RESTRICTED;
    }
    if (rc == 0) {
        k->starts = symint_table_alloc(k->count + 1, sizeof(*k->starts));
        if (k->starts == NULL)
            rc = SYM_ERR_NOMEM;
    }
    if (rc != 0) {
        symint_kernel_free(k);
        return rc;
    }
    for (size_t i = 0; i < k->count; i++)
        k->starts[i] = k->entries[i].start;
    return 0;
}

void symint_kernel_free(struct symint_kernel *k)
{
    free(k->text);
    free(k->entries);
    free(k->starts);
    *k = (struct symint_kernel){0};
}

const struct symint_kernel_entry *symint_kernel_find(const struct symint_kernel *k,
                                                     uint64_t address)
{
    size_t low = 0;
    size_t high = k->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->starts[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= k->entries[low - 1].end)
        return NULL;
    return &k->entries[low - 1];
}

int symint_kernel_load(struct symint_kernel *k, const struct sym_kernel *kernel,
                       enum symint_boot boot, const struct symint_system *system,
                       enum sym_kernel_state *state, int *error)
{
    bool named = kernel->kallsyms != NULL;
    const char *path = named ? kernel->kallsyms : system->kallsyms;
    enum sym_miss miss;
    char *text;
    size_t size;
    int fd;
    *k = (struct symint_kernel){0};
    *error = 0;
    if (!named && boot != SYMINT_BOOT_SAME) {
        *state = boot == SYMINT_BOOT_OTHER ? SYM_KERNEL_OTHER_BOOT : SYM_KERNEL_UNKNOWN_BOOT;
        return 0;
    }
    *state = SYM_KERNEL_UNREADABLE;
    int rc = symint_open_regular(NULL, path, &fd, &miss, error);
    if (rc != 0)
        return rc;
    if (fd < 0) {
        if (!named)
            return 0;
        return miss == SYM_MISS_NO_FILE ? SYM_ERR_NOT_FOUND : SYM_ERR_IO;
    }
    rc = symint_read_all(fd, MAX_TEXT, &text, &size);
    *error = rc == SYM_ERR_IO ? errno : 0;
    close(fd);
    if (rc == SYM_ERR_NOMEM)
        return rc;
    if (rc != 0)
        return !named ? 0 : rc == SYM_ERR_LIMIT ? SYM_ERR_FORMAT : rc;
    rc = symint_kernel_parse(k, text, size, kernel->needed, kernel->needed_count, state);
    if (rc == 0 && named && k->lines == 0) {
        symint_kernel_free(k);
        return SYM_ERR_FORMAT;
    }
    return rc;
}
