/* SPDX-License-Identifier: MIT */
/*
 * Names of kernel functions and of generated code as the texts that other programs read, too: lines like those of
 * /proc/kallsyms, and a perf map. Only what answers is in them, and what limits it: in kallsyms a function reaches to
 * the next one.
 */
#include "pack_kernel.h"
#include "perfmap.h"
#include "process.h"
#include "resolve_kernel.h"
#include "strtab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

/* ---- lines of kallsyms ---- */

struct line {
    uint64_t start;
    const char *name;
    size_t name_size;
    const char *owner; /* `[module]` */
    size_t owner_size; /* 0: the kernel proper */
    bool global;
};

struct lines {
    struct line *items; /* where two begin at one address, the first counts */
    size_t count;
    size_t capacity;
};

static int add_line(struct lines *l, const struct line *line)
{
    struct line *grown = symint_grow(l->items, l->count, &l->capacity, sizeof(*grown), 256);
    if (grown == NULL)
        return SYM_ERR_NOMEM;
    l->items = grown;
    l->items[l->count++] = *line;
    return 0;
}

/* Sorts by address and keeps one of each. 0 or SYM_ERR_NOMEM. */
static int sort_lines(struct lines *l)
{
    struct symint_pair *order = symint_scratch_alloc(l->count, sizeof(*order));
    struct line *sorted = malloc((l->count + 1) * sizeof(*sorted));
    int rc = order == NULL || sorted == NULL || l->count > UINT32_MAX ? SYM_ERR_NOMEM : 0;
    for (size_t i = 0; rc == 0 && i < l->count; i++)
        order[i] = (struct symint_pair){.key = l->items[i].start, .value = (uint32_t)i};
    if (rc == 0)
        rc = symint_sort_pairs(order, l->count);
    size_t kept = 0;
    for (size_t i = 0; rc == 0 && i < l->count; i++)
        if (i == 0 || order[i].key != order[i - 1].key)
            sorted[kept++] = l->items[order[i].value];
    free(order);
    if (rc != 0) {
        free(sorted);
        return rc;
    }
    free(l->items);
    *l = (struct lines){.items = sorted, .count = kept, .capacity = l->count + 1};
    return 0;
}

static bool same_text(const char *a, size_t a_size, const char *b, size_t b_size)
{
    return a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0);
}

static bool same_owner(const struct line *a, const struct line *b)
{
    return same_text(a->owner, a->owner_size, b->owner, b->owner_size);
}

static bool same_line(const struct line *a, const struct line *b)
{
    return a->start == b->start && same_text(a->name, a->name_size, b->name, b->name_size) &&
           same_owner(a, b);
}

/* An answer: the line that is to be found for an address. */
struct answer {
    uint64_t address;
    uint64_t extent_start, extent_end;
    struct line line;
};

/* The line of a symbol, whose name may have its module behind it. */
static struct line line_of(const struct sym_context *c, const struct symint_facts *facts)
{
    struct symint_kernel_symbol known;
    struct line line = {.start = facts->symbol.start,
                        .name = facts->symbol.name,
                        .name_size = facts->symbol.name_size};
    if (line.name[line.name_size - 1] == ']') {
        const char *blank = memrchr(line.name, ' ', line.name_size);
        if (blank != NULL && blank > line.name && blank[1] == '[') {
            line.owner = blank + 1;
            line.owner_size = (size_t)(line.name + line.name_size - line.owner);
            line.name_size = (size_t)(blank - line.name);
        }
    }
    line.global = symint_kernel_find(&c->kernel, line.start, &known) && known.start == line.start &&
                  known.global;
    return line;
}

/* The line that limits an answer, as far as the sources are here. False: none. */
static bool line_after(const struct sym_context *c, const struct symint_facts *facts,
                       struct line *out)
{
    struct symint_vmlinux_symbol symbol;
    struct symint_kernel_symbol next;
    uint64_t shift = c->vmlinux.shift;
    if (facts->symbol.origin == SYM_ORIGIN_VMLINUX &&
        symint_vmlinux_next_symbol(&c->vmlinux, facts->extent_end - shift, &symbol)) {
        *out = (struct line){
            .start = symbol.start + shift, .name = symbol.name, .name_size = symbol.name_size};
        return true;
    }
    if (!symint_kernel_after(&c->kernel, facts->symbol.start, &next))
        return false;
    *out = (struct line){.start = next.start,
                         .name = next.name,
                         .name_size = next.name_size,
                         .owner = next.owner,
                         .owner_size = next.owner_size,
                         .global = next.global};
    return true;
}

/* Asks for the name of each address and gathers lines: first those that answer, for they count. 0 or
 * SYM_ERR_NOMEM. */
static int gather(struct sym_context *c, const struct symint_pair *addresses, size_t count,
                  struct lines *lines, struct answer *answers, size_t *answer_count)
{
    struct lines after = {0};
    int rc = c->kernel_state == SYM_KERNEL_OK ? 0 : 1;
    *answer_count = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct symint_facts facts;
        struct line next;
        rc = symint_kernel_facts(c, addresses[i].key, symint_address_module(c, &addresses[i]), NULL,
                                 SYM_LEVEL_NAMES, &facts);
        if (rc <= 0 || !facts.has_symbol || facts.symbol.name_size == 0) {
            rc = rc < 0 ? rc : 0;
            continue;
        }
        struct answer *a = &answers[(*answer_count)++];
        *a = (struct answer){.address = addresses[i].key,
                             .extent_start = facts.extent_start,
                             .extent_end = facts.extent_end,
                             .line = line_of(c, &facts)};
        rc = 0;
        if (lines->count > 0 && same_line(&a->line, &lines->items[lines->count - 1]))
            continue;
        rc = add_line(lines, &a->line);
        if (rc == 0 && line_after(c, &facts, &next))
            rc = add_line(&after, &next);
    }
    for (size_t i = 0; rc == 0 && i < after.count; i++)
        rc = add_line(lines, &after.items[i]);
    free(after.items);
    return rc > 0 ? 0 : rc;
}

/* A symbol may go on behind another one that is inside it, where lines would have that one's name: there it has a
 * further line. 0 or SYM_ERR_NOMEM. */
static int add_continuations(struct lines *lines, const struct answer *answers, size_t count)
{
    size_t sorted = lines->count;
    size_t at = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct answer *a = &answers[i];
        while (at + 1 < sorted && lines->items[at + 1].start <= a->address)
            at++;
        if (same_line(&lines->items[at], &a->line))
            continue;
        struct line more = a->line;
        bool before = lines->items[at].start < a->extent_start;
        more.start = before ? a->extent_start : a->address;
        rc = add_line(lines, &more);
    }
    return rc == 0 ? sort_lines(lines) : rc;
}

/* Whether one of the addresses is in [start, end). */
static bool any_between(const struct symint_pair *addresses, size_t count, uint64_t start,
                        uint64_t end)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (addresses[middle].key < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && addresses[low].key < end;
}

/* The last line of an image reaches to the end of its page, unless the reader knows where the image ends. One that is
 * needed beyond is limited by a label, as kernels have it; but no address that has no name may get that of the label.
 * 0 or SYM_ERR_NOMEM. */
static int add_ends(struct lines *lines, const struct symint_pair *addresses, size_t address_count,
                    const struct answer *answers, size_t count)
{
    size_t sorted = lines->count;
    size_t at = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct answer *a = &answers[i];
        while (at + 1 < sorted && lines->items[at + 1].start <= a->address)
            at++;
        const struct line *l = &lines->items[at];
        const struct line *next = at + 1 < sorted ? l + 1 : NULL;
        bool limited = next != NULL && same_owner(l, next) &&
                       !symint_kernel_is_scattered(l->owner, l->owner_size);
        uint64_t reach = (a->extent_end | (PAGE - 1)) + 1; /* 0: behind the last page */
        if (next != NULL && next->start < reach)
            reach = next->start;
        if (limited || a->address <= (l->start | (PAGE - 1)) || reach <= a->extent_end ||
            any_between(addresses, address_count, a->extent_end, reach))
            continue;
        const struct line end = {.start = a->extent_end,
                                 .name = "_etext",
                                 .name_size = 6,
                                 .owner = l->owner,
                                 .owner_size = l->owner_size};
        rc = add_line(lines, &end);
    }
    return rc == 0 ? sort_lines(lines) : rc;
}

/* Bytes of a name that would end it, or the line, become `?`. */
static char *put_name(char *p, const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *p++ = (unsigned char)name[i] > ' ' ? name[i] : '?';
    return p;
}

static int write_lines(const struct lines *lines, struct sym_packed *out)
{
    size_t size = 0;
    for (size_t i = 0; i < lines->count; i++)
        size += lines->items[i].name_size + lines->items[i].owner_size + 21;
    out->data = malloc(size + 1);
    if (out->data == NULL)
        return SYM_ERR_NOMEM;
    char *p = (char *)out->data;
    for (size_t i = 0; i < lines->count; i++) {
        const struct line *l = &lines->items[i];
        p += sprintf(p, "%016" PRIx64 " %c ", l->start, l->global ? 'T' : 't');
        p = put_name(p, l->name, l->name_size);
        if (l->owner_size > 0) {
            *p++ = '\t';
            p = put_name(p, l->owner, l->owner_size);
        }
        *p++ = '\n';
    }
    out->size_bytes = (size_t)(p - (char *)out->data);
    return 0;
}

int sym_pack_kallsyms(struct sym_context *c, const struct sym_query *queries, size_t count,
                      struct sym_packed *out)
{
    struct symint_pair *addresses;
    struct lines lines = {0};
    size_t address_count;
    size_t answer_count = 0;
    *out = (struct sym_packed){0};
    int rc = symint_kernel_addresses(c, queries, count, &addresses, &address_count);
    if (rc != 0)
        return rc;
    struct answer *answers = symint_scratch_alloc(address_count, sizeof(*answers));
    rc = answers != NULL ? gather(c, addresses, address_count, &lines, answers, &answer_count)
                         : SYM_ERR_NOMEM;
    if (rc == 0 && answer_count > 0) {
        rc = sort_lines(&lines);
        if (rc == 0)
            rc = add_continuations(&lines, answers, answer_count);
        if (rc == 0)
            rc = add_ends(&lines, addresses, address_count, answers, answer_count);
        if (rc == 0)
            rc = write_lines(&lines, out);
    }
    out->address_count = address_count;
    out->named_count = answer_count;
    free(addresses);
    free(answers);
    free(lines.items);
    return rc == 0 ? 0 : symint_fail_plain(c, rc);
}

/* ---- perf maps ---- */

/* Marks the entries that answer, all without addresses; counts the addresses that are answered. */
static void mark_entries(const struct symint_perf_map *map, const struct symint_pair *addresses,
                         size_t count, bool *used, struct sym_packed *out)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && addresses[i].key == addresses[i - 1].key)
            continue;
        const struct symint_perf_entry *e = symint_perf_map_find(map, addresses[i].key);
        out->address_count++;
        out->named_count += e != NULL;
        if (e != NULL)
            used[e - map->entries] = true;
    }
}

/* In the order of the file: of two that overlap the later one counts. */
static int write_entries(const struct symint_perf_map *map, const bool *used, bool all,
                         struct sym_packed *out)
{
    size_t size = 0;
    for (size_t i = 0; i < map->count; i++)
        size += all || used[i] ? map->entries[i].name_size + 2 * 17 + 1 : 0;
    if (size == 0)
        return 0;
    out->data = malloc(size + 1);
    if (out->data == NULL)
        return SYM_ERR_NOMEM;
    char *p = (char *)out->data;
    for (size_t i = 0; i < map->count; i++) {
        const struct symint_perf_entry *e = &map->entries[i];
        if (!all && !used[i])
            continue;
        p += sprintf(p, "%" PRIx64 " %" PRIx64 " ", e->start, e->end - e->start);
        memcpy(p, map->text + e->name, e->name_size);
        p += e->name_size;
        *p++ = '\n';
    }
    out->size_bytes = (size_t)(p - (char *)out->data);
    return 0;
}

int sym_pack_perf_map(struct sym_context *c, int32_t pid, const uint64_t *addresses, size_t count,
                      struct sym_packed *out)
{
    const struct symint_process *process;
    *out = (struct sym_packed){0};
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    if (addresses == NULL && count > 0)
        return symint_fail(c, SYM_ERR_MISUSE, "%zu addresses but no list of them", count);
    if (c->options.no_native || !symint_perf_map_allowed(c, pid))
        return 0;
    int rc = symint_process_get(c, pid, &process);
    if (rc != 0)
        return symint_fail_plain(c, rc);
    struct symint_pair *sorted = symint_scratch_alloc(count, sizeof(*sorted));
    bool *used = calloc(process->map.count + 1, sizeof(*used));
    rc = sorted == NULL || used == NULL ? SYM_ERR_NOMEM : 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        sorted[i] = (struct symint_pair){.key = addresses[i]};
    if (rc == 0)
        rc = symint_sort_pairs(sorted, count);
    if (rc == 0) {
        mark_entries(&process->map, sorted, count, used, out);
        rc = write_entries(&process->map, used, addresses == NULL, out);
    }
    free(sorted);
    free(used);
    return rc == 0 ? 0 : symint_fail_plain(c, rc);
}
