/* SPDX-License-Identifier: MIT */
/*
 * The table of kernel symbols: which lines count, which name an address has, and where an entry
 * ends. Lines have no sizes, so an entry ends at the next one, unless that is another image: the
 * kernel, a module, a BPF program.
 */
#include "kernel.h"

#include "segments.h"
#include "strtab.h"

#include <stdlib.h>
#include <string.h>

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

#define EACH_BYTE(x) (UINT64_C(0x0101010101010101) * (x))

/* Eight hexadecimal digits at once. Every step works on all bytes of a word: no byte carries into
 * the next one, since all are below 0x80. */
static bool eight_digits(const char *p, uint64_t *value)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    if ((x & EACH_BYTE(0x80)) != 0)
        return false;
    uint64_t digit = x ^ EACH_BYTE('0');                          /* 0 to 9 */
    uint64_t letter = (x | EACH_BYTE(0x20)) ^ EACH_BYTE('a' - 1); /* 1 to 6 */
    uint64_t no_digit = digit + EACH_BYTE(0x80 - 10);
    uint64_t no_letter = (letter + EACH_BYTE(0x80 - 7)) | ~(letter + EACH_BYTE(0x80 - 1));
    if ((no_digit & no_letter & EACH_BYTE(0x80)) != 0)
        return false;
    x = (x & EACH_BYTE(0x0f)) + 9 * (x >> 6 & EACH_BYTE(1));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    x = (x | x >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x >> 8) & UINT64_C(0x0000ffff0000ffff);
    *value = (x | x >> 16) & UINT64_C(0xffffffff);
    return true;
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

static bool is_type(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '?' || c == '-';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

enum line_kind { LINE_BAD, LINE_OTHER, LINE_KEPT };

/* ADDRESS TYPE NAME [module]. `text` is where offsets count from; *p moves to the next line. */
static enum line_kind parse_line(const char *text, const char **p, const char *end,
                                 struct symint_kernel_entry *out)
{
    const char *line = *p;
    const char *at = line;
    uint64_t low;
    if (end - line > 20 && eight_digits(line, &out->start) && eight_digits(line + 8, &low)) {
        out->start = out->start << 32 | low;
        at += 16;
    } else {
        unsigned digit;
        out->start = 0;
        for (; at < end && at - line < 16 && (digit = hex_value(*at)) < 16; at++)
            out->start = out->start << 4 | digit;
    }
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *line_end = newline != NULL ? newline : end;
    *p = newline != NULL ? newline + 1 : end;
    if (at == line || line_end - at < 4 || !is_blank(at[0]) || !is_type(at[1]) || !is_blank(at[2]))
        return LINE_BAD;
    const char *name = at + 3;
    while (line_end[-1] <= ' ' && (is_blank(line_end[-1]) || line_end[-1] == '\r'))
        line_end--; /* at[1] is not blank, so this ends */
    if (line_end <= name || is_blank(*name) || *name == '\r')
        return LINE_BAD;
    out->name = (uint32_t)(name - text);
    out->size = (uint32_t)(line_end - name) & 0x3fffffff;
    if (!is_code(at[1]) || is_ignored(name, out->size))
        return LINE_OTHER;
    out->global = at[1] == 'T' || at[1] == 'W';
    out->owned = 0;
    if (line_end[-1] == ']') {
        const char *open = line_end - 1;
        while (open > name && *open != '[')
            open--;
        out->owned = open > name && is_blank(open[-1]);
    }
    return LINE_KEPT;
}

struct symint_kernel_symbol symint_kernel_symbol(const struct symint_kernel *k,
                                                 const struct symint_kernel_entry *e)
{
    struct symint_kernel_symbol s = {
        .start = e->start, .end = e->end, .name = k->text + e->name, .global = e->global};
    const char *end = s.name + e->size;
    while (s.name_size < e->size && !is_blank(s.name[s.name_size]) && s.name[s.name_size] != '\r')
        s.name_size++;
    if (e->owned) {
        s.owner = end - 1;
        while (*s.owner != '[')
            s.owner--;
        s.owner_size = (size_t)(end - s.owner);
    }
    return s;
}

static char entry_type(const struct symint_kernel *k, const struct symint_kernel_entry *e)
{
    return k->text[e->name - 2];
}

/* ---- the better name ---- */

static size_t underscores(const struct symint_kernel_symbol *s)
{
    size_t n = 0;
    while (n < s->name_size && s->name[n] == '_')
        n++;
    return n;
}

/* The old wrappers of system calls: SyS_read beside sys_read. */
static bool is_wrapper(const struct symint_kernel_symbol *s)
{
    return has_prefix(s->name, s->name_size, "SyS_") ||
           has_prefix(s->name, s->name_size, "compat_SyS_");
}

/* Whether x names an address better than y: symbolization.md section 9. */
static bool better(const struct symint_kernel *k, const struct symint_kernel_entry *x,
                   const struct symint_kernel_entry *y)
{
    char x_type = entry_type(k, x);
    char y_type = entry_type(k, y);
    /* i and a are names of last resort. */
    bool x_odd = x_type == 'i' || x_type == 'a';
    bool y_odd = y_type == 'i' || y_type == 'a';
    if (x_odd != y_odd)
        return y_odd;
    bool x_weak = x_type == 'w' || x_type == 'W';
    bool y_weak = y_type == 'w' || y_type == 'W';
    if (x_weak != y_weak)
        return y_weak;
    bool x_global = x_type == 'T' || x_type == 'W';
    bool y_global = y_type == 'T' || y_type == 'W';
    if (x_global != y_global)
        return x_global;
    struct symint_kernel_symbol a = symint_kernel_symbol(k, x);
    struct symint_kernel_symbol b = symint_kernel_symbol(k, y);
    size_t a_underscores = underscores(&a);
    size_t b_underscores = underscores(&b);
    if (a_underscores != b_underscores)
        return a_underscores < b_underscores;
    if (a.name_size != b.name_size)
        return a.name_size > b.name_size;
    if (is_wrapper(&a) != is_wrapper(&b))
        return is_wrapper(&b);
    int order = memcmp(a.name, b.name, a.name_size);
    if (order != 0)
        return order < 0;
    return a.owner_size < b.owner_size;
}

/* ---- images ---- */

/* Where the images end, as the capture tells: ranges by ascending start. */
struct bounds {
    const struct sym_kernel_range *ranges;
    struct symint_pair *order; /* start, range */
    size_t count;
};

static int bounds_init(struct bounds *b, const struct sym_kernel *kernel)
{
    *b = (struct bounds){0};
    if (kernel == NULL || kernel->range_count == 0)
        return 0;
    if (kernel->range_count > UINT32_MAX)
        return SYM_ERR_NOMEM;
    b->ranges = kernel->ranges;
    b->order = symint_table_alloc(kernel->range_count, sizeof(*b->order));
    if (b->order == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < kernel->range_count; i++)
        if (kernel->ranges[i].start < kernel->ranges[i].end && kernel->ranges[i].name != NULL)
            b->order[b->count++] =
                (struct symint_pair){.key = kernel->ranges[i].start, .value = (uint32_t)i};
    return symint_sort_pairs(b->order, b->count);
}

static size_t range_name_size(const struct sym_kernel_range *r)
{
    return r->name_size > 0 ? r->name_size : strlen(r->name);
}

/* Cuts a suffix off. */
static bool cut(const char *p, size_t *size, const char *suffix)
{
    size_t n = strlen(suffix);
    if (*size < n || memcmp(p + *size - n, suffix, n) != 0)
        return false;
    *size -= n;
    return true;
}

static void base_name(const char **p, size_t *size)
{
    const char *slash = memrchr(*p, '/', *size);
    if (slash != NULL) {
        *size -= (size_t)(slash + 1 - *p);
        *p = slash + 1;
    }
}

bool symint_is_kernel_range(const struct sym_kernel_range *r)
{
    if (r->name == NULL)
        return false;
    const char *name = r->name;
    size_t size = range_name_size(r);
    if (has_prefix(name, size, "[kernel]") || has_prefix(name, size, "[kernel."))
        return true;
    base_name(&name, &size);
    return has_prefix(name, size, "vmlinux");
}

/* `[mod]`, `mod`, or a path of mod.ko that may be compressed; owner is `[mod]`. */
static bool is_module_range(const struct sym_kernel_range *r, const char *owner, size_t owner_size)
{
    const char *name = r->name;
    size_t size = range_name_size(r);
    if (size >= 2 && name[0] == '[' && name[size - 1] == ']') {
        name++;
        size -= 2;
    } else {
        base_name(&name, &size);
        if (!cut(name, &size, ".xz") && !cut(name, &size, ".gz"))
            cut(name, &size, ".zst");
        cut(name, &size, ".ko");
    }
    if (size != owner_size - 2)
        return false;
    for (size_t i = 0; i < size; i++) {
        char a = name[i] == '-' ? '_' : name[i];
        char b = owner[i + 1] == '-' ? '_' : owner[i + 1];
        if (a != b)
            return false;
    }
    return true;
}

/* The end of the image's range that contains the symbol's start, 0: not known. */
static uint64_t image_end(const struct bounds *b, const struct symint_kernel_symbol *s)
{
    size_t low = 0;
    size_t high = b->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->order[middle].key <= s->start)
            low = middle + 1;
        else
            high = middle;
    }
    /* Modules that follow each other at one place are few; more than that is not worth a search. */
    for (size_t tries = 0; low > 0 && tries < 16; tries++) {
        const struct sym_kernel_range *r = &b->ranges[b->order[--low].value];
        if (r->end > s->start && (s->owner_size == 0 ? symint_is_kernel_range(r)
                                                     : is_module_range(r, s->owner, s->owner_size)))
            return r->end;
    }
    return 0;
}

bool symint_kernel_is_scattered(const char *owner, size_t owner_size)
{
    return (owner_size == 5 && memcmp(owner, "[bpf]", 5) == 0) ||
           has_prefix(owner, owner_size, "[__builtin__");
}

/* Where entry i ends. */
static uint64_t entry_end(const struct symint_kernel *k, size_t i, const struct bounds *b)
{
    const struct symint_kernel_entry *e = &k->entries[i];
    const struct symint_kernel_entry *next = i + 1 < k->count ? e + 1 : NULL;
    if (next != NULL && !e->owned && !next->owned)
        return next->start;
    struct symint_kernel_symbol s = symint_kernel_symbol(k, e);
    if (next != NULL && e->owned && next->owned) {
        struct symint_kernel_symbol t = symint_kernel_symbol(k, next);
        if (s.owner_size == t.owner_size && memcmp(s.owner, t.owner, s.owner_size) == 0 &&
            !symint_kernel_is_scattered(s.owner, s.owner_size))
            return next->start;
    }
    uint64_t end = image_end(b, &s);
    if (end == 0) {
        end = e->start | (PAGE - 1);
        end = end == UINT64_MAX ? end : end + 1;
    }
    return next != NULL && next->start < end ? next->start : end;
}

/* ---- the table ---- */

/* The kernel's own lines come sorted and the modules' after them not: sorts the rest and merges
 * it in. */
static int sort_entries(struct symint_kernel *k)
{
    size_t sorted = k->count > 0;
    while (sorted < k->count && k->entries[sorted - 1].start <= k->entries[sorted].start)
        sorted++;
    if (sorted == k->count)
        return 0;
    size_t rest = k->count - sorted;
    struct symint_pair *pairs = symint_table_alloc(rest, sizeof(*pairs));
    struct symint_kernel_entry *merged = symint_table_alloc(k->count, sizeof(*merged));
    int rc = pairs == NULL || merged == NULL ? SYM_ERR_NOMEM : 0;
    if (rc == 0) {
        for (size_t i = 0; i < rest; i++)
            pairs[i] = (struct symint_pair){.key = k->entries[sorted + i].start,
                                            .value = (uint32_t)(sorted + i)};
        rc = symint_sort_pairs(pairs, rest);
    }
    if (rc != 0) {
        free(pairs);
        free(merged);
        return rc;
    }
    size_t a = 0;
    size_t b = 0;
    for (size_t i = 0; i < k->count; i++) {
        bool first = b == rest || (a < sorted && k->entries[a].start <= pairs[b].key);
        merged[i] = k->entries[first ? a : pairs[b].value];
        a += first;
        b += !first;
    }
    free(pairs);
    free(k->entries);
    k->entries = merged;
    return 0;
}

/* Sorts, and keeps the best name of each address. */
static int arrange(struct symint_kernel *k)
{
    int rc = sort_entries(k);
    size_t kept = 0;
    for (size_t i = 0; rc == 0 && i < k->count; i++) {
        if (kept == 0 || k->entries[kept - 1].start != k->entries[i].start)
            k->entries[kept++] = k->entries[i];
        else if (better(k, &k->entries[i], &k->entries[kept - 1]))
            k->entries[kept - 1] = k->entries[i];
    }
    k->count = kept;
    return rc;
}

/* Marks what a needed address may be in, and gives it its end: the others need none. */
static void set_needed_ends(struct symint_kernel *k, const struct bounds *b, const uint64_t *needed,
                            size_t needed_count)
{
    size_t n = 0;
    for (size_t i = 0; i < k->count; i++) {
        struct symint_kernel_entry *e = &k->entries[i];
        while (n < needed_count && needed[n] < e->start)
            n++;
        bool may = n < needed_count && (i + 1 == k->count || needed[n] < e[1].start);
        e->end = may ? entry_end(k, i, b) : e->start;
    }
}

int symint_kernel_thin(struct symint_kernel *k, const uint64_t *needed, size_t needed_count)
{
    size_t kept = 0;
    size_t text_size = 0;
    size_t n = 0;
    bool before = false; /* the entry before answers */
    while (n < needed_count && needed[n] < k->shift)
        n++;
    for (size_t i = 0; i < k->count && (n < needed_count || before); i++) {
        const struct symint_kernel_entry *e = &k->entries[i];
        while (n < needed_count && needed[n] - k->shift < e->start)
            n++;
        bool answers = n < needed_count && needed[n] - k->shift < e->end;
        if (answers || before) {
            text_size += e->size;
            k->entries[kept++] = *e;
        }
        before = answers;
    }
    k->count = kept;
    char *text = malloc(text_size + 1);
    struct symint_kernel_entry *entries = malloc((kept + 1) * sizeof(*entries));
    if (text == NULL || entries == NULL) {
        free(text);
        free(entries);
        return SYM_ERR_NOMEM;
    }
    size_t at = 0;
    for (size_t i = 0; i < kept; i++) {
        entries[i] = k->entries[i];
        memcpy(text + at, k->text + entries[i].name, entries[i].size);
        entries[i].name = (uint32_t)at;
        at += entries[i].size;
    }
    free(k->text);
    free(k->entries);
    k->text = text;
    k->entries = entries;
    return 0;
}

/* Parses all lines. *any_address: one of them has an address other than 0. */
static int parse_lines(struct symint_kernel *k, size_t size, bool *any_address)
{
    size_t capacity = size / 40 + 64; /* lines have some 45 bytes */
    const char *p = k->text;
    const char *end = p + size;
    uint64_t bits = 0;
    k->entries = symint_table_alloc(capacity, sizeof(*k->entries));
    if (k->entries == NULL)
        return SYM_ERR_NOMEM;
    while (p < end) {
        if (k->count == capacity) {
            capacity *= 2;
            struct symint_kernel_entry *grown = realloc(k->entries, capacity * sizeof(*grown));
            if (grown == NULL)
                return SYM_ERR_NOMEM;
            k->entries = grown;
        }
        struct symint_kernel_entry *e = &k->entries[k->count];
        enum line_kind kind = parse_line(k->text, &p, end, e);
        if (kind == LINE_BAD)
            continue;
        k->lines++;
        bits |= e->start;
        /* The last address of all would begin an entry without an end. */
        k->count += kind == LINE_KEPT && e->start != 0 && e->start != UINT64_MAX;
    }
    *any_address = bits != 0;
    return 0;
}

/* The address of `_text`, where the kernel begins: among the first lines of kallsyms. */
static uint64_t find_text(const struct symint_kernel *k, size_t size)
{
    static const char label[] = " T _text\n";
    const char *at = memmem(k->text, size, label, sizeof(label) - 1);
    uint64_t high;
    uint64_t low;
    if (at == NULL || at - k->text < 16 || !eight_digits(at - 16, &high) ||
        !eight_digits(at - 8, &low))
        return 0;
    return high << 32 | low;
}

int symint_kernel_parse(struct symint_kernel *k, char *text, size_t size,
                        const struct sym_kernel *kernel, enum sym_kernel_state *state)
{
    bool any_address = false;
    struct bounds bounds = {0};
    *k = (struct symint_kernel){.text = text};
    *state = SYM_KERNEL_EMPTY;
    if (size > MAX_TEXT) {
        symint_kernel_free(k);
        return SYM_ERR_LIMIT;
    }
    int rc = parse_lines(k, size, &any_address);
    if (rc == 0 && k->count > 0) {
        *state = SYM_KERNEL_OK;
        k->text_address = find_text(k, size);
        rc = arrange(k);
        if (rc == 0)
            rc = bounds_init(&bounds, kernel);
    } else if (rc == 0 && k->lines > 0 && !any_address) {
        *state = SYM_KERNEL_RESTRICTED;
    }
    if (rc == 0 && kernel != NULL && kernel->needed != NULL) {
        set_needed_ends(k, &bounds, kernel->needed, kernel->needed_count);
        rc = symint_kernel_thin(k, kernel->needed, kernel->needed_count);
    } else if (rc == 0) {
        for (size_t i = 0; i < k->count; i++)
            k->entries[i].end = entry_end(k, i, &bounds);
    }
    free(bounds.order);
    if (rc != 0)
        symint_kernel_free(k);
    return rc;
}

void symint_kernel_free(struct symint_kernel *k)
{
    free(k->text);
    free(k->entries);
    *k = (struct symint_kernel){0};
}

/* The number of entries that do not begin above an address of the table. */
static size_t entries_up_to(const struct symint_kernel *k, uint64_t address)
{
    size_t low = 0;
    size_t high = k->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->entries[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take_symbol(const struct symint_kernel *k, size_t i, struct symint_kernel_symbol *out)
{
    *out = symint_kernel_symbol(k, &k->entries[i]);
    out->start += k->shift;
    out->end = out->end > UINT64_MAX - k->shift ? UINT64_MAX : out->end + k->shift;
}

bool symint_kernel_find(const struct symint_kernel *k, uint64_t address,
                        struct symint_kernel_symbol *out)
{
    if (address < k->shift)
        return false;
    size_t count = entries_up_to(k, address - k->shift);
    if (count == 0 || address - k->shift >= k->entries[count - 1].end)
        return false;
    take_symbol(k, count - 1, out);
    return true;
}

bool symint_kernel_after(const struct symint_kernel *k, uint64_t address,
                         struct symint_kernel_symbol *out)
{
    size_t count = address < k->shift ? 0 : entries_up_to(k, address - k->shift);
    if (count == k->count)
        return false;
    take_symbol(k, count, out);
    return true;
}
