/* SPDX-License-Identifier: MIT */
/* The code of an entry: a pair of addresses, .debug_ranges (DWARF 2 to 4) or .debug_rnglists (5). Only what is code
 * counts (debug_bytes.h). */
#include "dwarf_numbers.h"
#include "dwarf_unit.h"

#include <stdlib.h>

void symint_ranges_free(struct range_list *l)
{
    free(l->ranges);
    *l = (struct range_list){0};
}

int symint_ranges_add(struct range_list *l, uint64_t start, uint64_t end)
{
    struct symint_code_range *ranges =
        symint_grow(l->ranges, l->count, &l->capacity, sizeof(*ranges), 16);
    if (ranges == NULL)
        return SYM_ERR_NOMEM;
    l->ranges = ranges;
    l->ranges[l->count++] = (struct symint_code_range){start, end};
    return 0;
}

/* Addresses wrap at the size they have in the file. */
static uint64_t cut(const struct dwarf_unit *u, uint64_t address)
{
    unsigned bits = 8u * u->shape.address_size;
    return bits < 64 ? address & (((uint64_t)1 << bits) - 1) : address;
}

static inline int add_code(const struct dwarf_unit *u, struct range_list *l, uint64_t start,
                           uint64_t end)
{
    if (!symint_debug_is_code(&u->main->sections, start, end))
        return 0;
    if (l->count == l->capacity)
        return symint_ranges_add(l, start, end);
    l->ranges[l->count++] = (struct symint_code_range){start, end};
    return 0;
}

/* Lists end by themselves; they are read through windows, since a list may be as long as the section. */
struct list_reader {
    struct symint_debug_sections *s;
    enum symint_debug_id id;
    uint64_t offset; /* of the window's end */
    struct symint_cursor c;
};

/* Makes sure that a whole item is in the window, if the section has one. */
enum { ITEM = 32, WINDOW = 1024 };

static bool fill_window(struct list_reader *r)
{
    uint64_t at = r->offset - cursor_left(&r->c);
    uint64_t size = r->s->at[r->id].size;
    uint64_t n = at < size ? size - at : 0;
    n = n < WINDOW ? n : WINDOW;
    const uint8_t *bytes = n > 0 ? symint_debug_bytes(r->s, r->id, at, n) : NULL;
    if (bytes == NULL)
        return false;
    r->c = (struct symint_cursor){.at = bytes, .end = bytes + n, .swap = r->s->swap};
    r->offset = at + n;
    return true;
}

static inline bool fill(struct list_reader *r)
{
    return cursor_left(&r->c) >= ITEM || fill_window(r);
}

/* What a linker writes for a base in code that it removed: nothing may grow out of it into live code. A unit's own base
 * may be 0, though, where its lists have whole addresses. */
static bool is_dead(const struct dwarf_unit *u, uint64_t base)
{
    return (base <= 1 || base >= cut(u, UINT64_MAX - 1)) &&
           !symint_debug_is_code(&u->main->sections, base, base + 1);
}

/* What may be read of a list. */
static uint64_t allowed(const struct dwarf_file *f, const uint64_t *budget)
{
    return *budget < f->ranges_left ? *budget : f->ranges_left;
}

static uint64_t bytes_read(const struct list_reader *r, uint64_t from)
{
    return r->offset - cursor_left(&r->c) - from;
}

static void take(struct dwarf_file *f, uint64_t *budget, uint64_t bytes)
{
    *budget -= bytes < *budget ? bytes : *budget;
    f->ranges_left -= bytes < f->ranges_left ? bytes : f->ranges_left;
    f->spent |= f->ranges_left == 0;
}

static int read_old_list(const struct dwarf_unit *u, uint64_t offset, struct range_list *l,
                         uint64_t *budget)
{
    struct list_reader r = {.s = &u->main->sections, .id = DEBUG_RANGES, .offset = offset};
    unsigned size = u->shape.address_size;
    uint64_t base = u->has_low_pc ? u->low_pc : 0;
    uint64_t all_ones = cut(u, UINT64_MAX);
    bool dead = false;
    const uint64_t most = allowed(u->main, budget);
    int rc = 0;
    while (rc == 0 && bytes_read(&r, offset) < most && fill(&r)) {
        uint64_t start = cursor_sized(&r.c, size);
        uint64_t end = cursor_sized(&r.c, size);
        if (r.c.failed || (start == 0 && end == 0))
            break;
        if (start == all_ones) {
            base = end;
            dead = base != 0 && is_dead(u, base); /* GNU as: whole addresses follow a 0 */
        } else if (!dead)
            rc = add_code(u, l, cut(u, base + start), cut(u, base + end));
    }
    take(u->main, budget, bytes_read(&r, offset));
    return rc;
}

static bool indexed(const struct dwarf_unit *u, uint64_t index, uint64_t *address)
{
    struct dwarf_value value = {.kind = VALUE_ADDRESS_INDEX, .number = index};
    return value_address(u, &value, address);
}

static int read_new_list(const struct dwarf_unit *u, uint64_t offset, struct range_list *l,
                         uint64_t *budget)
{
    struct list_reader r = {.s = &u->file->sections, .id = DEBUG_RNGLISTS, .offset = offset};
    unsigned size = u->shape.address_size;
    uint64_t base = u->has_low_pc ? u->low_pc : 0;
    bool based = true;
    bool ended = false;
    const uint64_t most = allowed(u->file, budget);
    int rc = 0;
    while (rc == 0 && !ended && bytes_read(&r, offset) < most && fill(&r)) {
        uint64_t start = 0;
        uint64_t end = 0;
        bool known = true;
        switch (cursor_u8(&r.c)) {
        case DW_RLE_end_of_list:
            ended = true;
            continue;
        case DW_RLE_base_addressx:
            based = indexed(u, cursor_uleb(&r.c), &base) && !is_dead(u, base);
            continue;
        case DW_RLE_base_address:
            base = cursor_sized(&r.c, size);
            based = !is_dead(u, base);
            continue;
        case DW_RLE_startx_endx:
            known = indexed(u, cursor_uleb(&r.c), &start);
            known &= indexed(u, cursor_uleb(&r.c), &end);
            break;
        case DW_RLE_startx_length:
            known = indexed(u, cursor_uleb(&r.c), &start);
            end = cut(u, start + cursor_uleb(&r.c));
            break;
        case DW_RLE_offset_pair:
            start = cut(u, base + cursor_uleb(&r.c));
            end = cut(u, base + cursor_uleb(&r.c));
            known = based;
            break;
        case DW_RLE_start_end:
            start = cursor_sized(&r.c, size);
            end = cursor_sized(&r.c, size);
            break;
        case DW_RLE_start_length:
            start = cursor_sized(&r.c, size);
            end = cut(u, start + cursor_uleb(&r.c));
            break;
        default: /* damaged */
            ended = true;
            continue;
        }
        if (r.c.failed)
            break;
        if (known)
            rc = add_code(u, l, start, end);
    }
    take(u->file, budget, bytes_read(&r, offset));
    return rc;
}

/* The list of an index: an offset in the table of offsets, which lists are relative to. */
static bool find_list(const struct dwarf_unit *u, uint64_t index, uint64_t *offset)
{
    unsigned size = u->shape.wide ? 8 : 4;
    uint64_t at;
    if (__builtin_mul_overflow(index, (uint64_t)size, &at) ||
        __builtin_add_overflow(at, u->rnglists_base, &at))
        return false;
    const uint8_t *bytes = symint_debug_bytes(&u->file->sections, DEBUG_RNGLISTS, at, size);
    if (bytes == NULL)
        return false;
    struct symint_cursor c = {.at = bytes, .end = bytes + size, .swap = u->file->sections.swap};
    return !__builtin_add_overflow(cursor_sized(&c, size), u->rnglists_base, offset);
}

int symint_ranges_read(const struct dwarf_unit *u, const struct dwarf_value *low_pc,
                       const struct dwarf_value *high_pc, const struct dwarf_value *ranges,
                       struct range_list *l, uint64_t *budget)
{
    uint64_t low;
    uint64_t high;
    uint64_t offset = ranges->number;
    switch (ranges->kind) {
    case VALUE_LIST_INDEX:
        return find_list(u, offset, &offset) ? read_new_list(u, offset, l, budget) : 0;
    case VALUE_OFFSET:
    case VALUE_CONSTANT: /* data4 and data8 before DWARF 4 */
        if (u->shape.version >= 5)
            return read_new_list(u, offset + u->parts.rnglists, l, budget);
        return read_old_list(u, offset + (u->split ? u->ranges_base : 0), l, budget);
    default:
        break;
    }
    if (!value_address(u, low_pc, &low))
        return 0;
    if (high_pc->kind == VALUE_CONSTANT)
        high = cut(u, low + high_pc->number);
    else if (!value_address(u, high_pc, &high))
        return 0;
    return add_code(u, l, low, high);
}
