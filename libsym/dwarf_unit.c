/* SPDX-License-Identifier: MIT */
/* Headers and roots of units (DWARF 5, 7.5.1), and who has which. */
#include "dwarf_unit.h"

#include "dwarf_numbers.h"
#include "strtab.h"

#include <stdlib.h>

#define MAX_UNIT_BYTES ((uint64_t)1 << 31) /* offsets in a unit are kept in 32 bits */
#define MAX_HEADER 64
#define MAX_PATH_BYTES 4095
#define MAX_TEXT_RATIO 16 /* of all kept texts to the section */

/* ---- headers ---- */

/* Everything behind the length. */
static void parse_header(struct dwarf_unit *u, struct symint_cursor *c)
{
    bool wide = u->shape.wide;
    u->shape.version = (uint8_t)cursor_u16(c);
    u->type = DW_UT_compile;
    if (u->shape.version >= 5) {
        u->type = cursor_u8(c);
        u->shape.address_size = cursor_u8(c);
        u->abbrev_offset = cursor_offset(c, wide);
    } else {
        u->abbrev_offset = cursor_offset(c, wide);
        u->shape.address_size = cursor_u8(c);
    }
    if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile) {
        u->dwo_id = cursor_u64(c);
        u->has_dwo_id = true;
    } else if (u->type == DW_UT_type || u->type == DW_UT_split_type) {
        cursor_u64(c);
        cursor_offset(c, wide);
    }
}

static bool is_size_of_address(uint8_t size)
{
    return size == 2 || size == 4 || size == 8;
}

int symint_unit_read(struct dwarf_file *f, struct dwarf_file *main, uint64_t offset,
                     struct dwarf_unit **out)
{
    uint8_t bytes[MAX_HEADER];
    struct symint_debug_sections *s = &f->sections;
    uint64_t left = offset < s->at[DEBUG_INFO].size ? s->at[DEBUG_INFO].size - offset : 0;
    size_t n = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
    *out = NULL;
    if (!symint_debug_peek(s, DEBUG_INFO, offset, n, bytes))
        return 0;
    struct symint_cursor c = {.at = bytes, .end = bytes + n, .swap = s->swap};
    struct dwarf_unit header = {.file = f, .main = main, .offset = offset};
    uint64_t length = cursor_initial_length(&c, &header.shape.wide);
    uint64_t before = (uint64_t)(c.at - bytes);
    if (c.failed || length > left - before)
        return 0;
    header.end = offset + before + length;
    parse_header(&header, &c);
    header.header_size = (uint32_t)(c.at - bytes);
    header.failed = c.failed || header.shape.version < 2 || header.shape.version > 5 ||
                    !is_size_of_address(header.shape.address_size) ||
                    header.end - offset > MAX_UNIT_BYTES ||
                    header.header_size > header.end - offset;
    *out = malloc(sizeof(**out));
    if (*out == NULL)
        return SYM_ERR_NOMEM;
    **out = header;
    return 0;
}

int symint_units_add(struct dwarf_file *f, struct dwarf_unit *u)
{
    struct dwarf_unit **units =
        symint_grow(f->units, f->unit_count, &f->unit_capacity, sizeof(*units), 64);
    if (units == NULL)
        return SYM_ERR_NOMEM;
    f->units = units;
    u->number = f->unit_count;
    f->units[f->unit_count++] = u;
    return 0;
}

int symint_units_list(struct dwarf_file *f, struct dwarf_file *main)
{
    uint64_t offset = 0;
    while (offset < f->sections.at[DEBUG_INFO].size && f->unit_count < UINT32_MAX / 4) {
        struct dwarf_unit *u;
        int rc = symint_unit_read(f, main, offset, &u);
        if (rc != 0)
            return rc;
        if (u == NULL)
            break;
        offset = u->end;
        if (u->failed) { /* four zeros are one, too: they would take eighty times their size */
            free(u);
            f->bad_count += f->bad_count < UINT32_MAX;
            continue;
        }
        rc = symint_units_add(f, u);
        if (rc != 0) {
            free(u);
            return rc;
        }
    }
    return 0;
}

struct dwarf_unit *symint_unit_at(const struct dwarf_file *f, uint64_t offset)
{
    size_t low = 0;
    size_t high = f->unit_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->units[middle]->offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    struct dwarf_unit *u = low > 0 ? f->units[low - 1] : NULL;
    return u != NULL && offset >= u->offset + u->header_size && offset < u->end ? u : NULL;
}

/* ---- work ---- */

#define TIMES 4 /* that a table may be read */
#define LITTLE ((uint64_t)64 * 1024)
#define ABBREVS_EACH ((uint64_t)16 * 1024) /* for an address more */
#define RANGES_EACH ((uint64_t)4 * 1024)

void symint_abbrevs_allow(struct dwarf_file *f, bool listing)
{
    const struct symint_debug_section *at = f->sections.at;
    uint64_t whole = TIMES * at[DEBUG_ABBREV].size + LITTLE + at[DEBUG_INFO].size;
    uint64_t more = f->abbrevs_left + ABBREVS_EACH;
    f->abbrevs_left = listing && whole > more ? whole : more;
}

void symint_ranges_allow(struct dwarf_file *f, bool listing, uint64_t bytes)
{
    const struct symint_debug_section *at = f->sections.at;
    uint64_t whole = TIMES * (at[DEBUG_RANGES].size + at[DEBUG_RNGLISTS].size) + LITTLE;
    uint64_t more = f->ranges_left + RANGES_EACH + bytes;
    f->ranges_left = listing && whole > more ? whole : more;
}

/* ---- abbreviations in use ---- */

static uint32_t shape_key(const struct abbrev_shape *shape)
{
    return (uint32_t)shape->version << 16 | (uint32_t)shape->address_size << 8 | shape->wide;
}

static struct abbrev_table **abbrev_slot(struct dwarf_file *f, uint64_t offset)
{
    return &f->abbrevs[symint_mix(offset) % (sizeof(f->abbrevs) / sizeof(f->abbrevs[0]))];
}

/* The unit's table, shared by the units that have it at the moment. */
static int take_abbrevs(struct dwarf_unit *u)
{
    uint64_t offset = u->abbrev_offset + u->parts.abbrev;
    uint32_t shape = shape_key(&u->shape);
    struct abbrev_table **slot = abbrev_slot(u->file, offset);
    for (struct abbrev_table *t = *slot; t != NULL; t = t->next)
        if (t->offset == offset && t->shape == shape) {
            t->users++;
            u->abbrevs = t;
            return 0;
        }
    int rc = symint_abbrev_parse(&u->file->sections, offset, &u->shape, 0, &u->file->abbrevs_left,
                                 &u->abbrevs);
    u->file->spent |= u->file->abbrevs_left == 0;
    if (rc != 0 || u->abbrevs == NULL)
        return rc;
    u->abbrevs->shape = shape;
    u->abbrevs->users = 1;
    u->abbrevs->next = *slot;
    *slot = u->abbrevs;
    return 0;
}

static void leave_abbrevs(struct dwarf_unit *u)
{
    struct abbrev_table *t = u->abbrevs;
    u->abbrevs = NULL;
    if (t == NULL || --t->users > 0)
        return;
    struct abbrev_table **at = abbrev_slot(u->file, t->offset);
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    symint_abbrev_free(t);
}

static const uint8_t *unit_bytes(struct dwarf_unit *u)
{
    bool again = u->entered;
    u->entered = true;
    return symint_window_get(&u->file->windows, &u->file->sections, u->offset, u->end - u->offset,
                             again);
}

bool symint_unit_enter(struct dwarf_unit *u, uint64_t offset, struct symint_cursor *c, int *rc)
{
    *rc = 0;
    if (u->failed || offset < u->offset + u->header_size || offset >= u->end)
        return false;
    const uint8_t *bytes = unit_bytes(u);
    if (bytes != NULL && u->abbrevs == NULL)
        *rc = take_abbrevs(u);
    if (*rc != 0)
        return false;
    if (bytes == NULL || u->abbrevs == NULL) {
        u->failed = true;
        return false;
    }
    symint_dwarf_touch(u);
    *c = (struct symint_cursor){.at = bytes + (offset - u->offset),
                                .end = bytes + (u->end - u->offset),
                                .swap = u->file->sections.swap};
    return true;
}

void symint_unit_leave(struct dwarf_unit *u)
{
    leave_abbrevs(u);
}

/* ---- roots ---- */

/* What is read of a root before it is clear where its tables are: indexes mean nothing until all of it was read. */
struct root {
    struct dwarf_value low, high, ranges;
    struct dwarf_value comp_dir, dwo_name;
};

static bool is_c_like(uint64_t language)
{
    switch (language) {
    case 0x0001: /* C89, C, C99, C11, C17: no namespaces, and nothing but names */
    case 0x0002:
    case 0x000c:
    case 0x001d:
    case 0x002c:
    case 0x8001: /* assembler */
        return true;
    default:
        return false;
    }
}

static void take_attribute(struct dwarf_unit *u, struct root *r, uint16_t name,
                           const struct dwarf_value *v)
{
    switch (name) {
    case DW_AT_low_pc:
        r->low = *v;
        break;
    case DW_AT_high_pc:
        r->high = *v;
        break;
    case DW_AT_ranges:
        r->ranges = *v;
        break;
    case DW_AT_stmt_list:
        u->has_line = true;
        u->line_offset = v->number;
        break;
    case DW_AT_language:
        u->c_like = is_c_like(v->number);
        break;
    case DW_AT_comp_dir:
        r->comp_dir = *v;
        break;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
        r->dwo_name = *v;
        break;
    case DW_AT_GNU_dwo_id:
        u->dwo_id = v->number;
        u->has_dwo_id = true;
        break;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base:
        u->has_addr_base = true;
        u->addr_base = v->number;
        break;
    case DW_AT_str_offsets_base:
        u->has_str_offsets_base = true;
        u->str_offsets_base = v->number;
        break;
    case DW_AT_rnglists_base:
        u->has_rnglists_base = true;
        u->rnglists_base = v->number;
        break;
    case DW_AT_GNU_ranges_base:
        u->ranges_base = v->number;
        break;
    default:
        break;
    }
}

/* Where a table begins when nothing says so: behind the header of the unit's part (DWARF 5, 7.26 and 7.28). */
static void set_default_bases(struct dwarf_unit *u)
{
    bool new = u->shape.version >= 5;
    if (!u->has_str_offsets_base)
        u->str_offsets_base = u->parts.str_offsets + (new ? (u->shape.wide ? 16 : 8) : 0);
    if (!u->has_rnglists_base)
        u->rnglists_base = u->parts.rnglists + (u->shape.wide ? 20 : 12);
    if (!u->has_addr_base && !u->split)
        u->addr_base = new ? (u->shape.wide ? 16 : 8) : 0;
}

/* A path of a unit. One that is longer than any path, and those of units that share what they have no room for, are left
 * out: a text of real units is not many times as long as its unit. */
static int keep_text(struct dwarf_unit *u, struct symint_arena *arena,
                     const struct dwarf_value *value, const char **out)
{
    size_t size;
    const char *text = symint_value_text(u, value, &size);
    *out = NULL;
    struct dwarf_file *f = u->file;
    if (text == NULL || size == 0 || size > MAX_PATH_BYTES ||
        f->text_bytes / MAX_TEXT_RATIO > f->sections.at[DEBUG_INFO].size)
        return 0;
    f->text_bytes += size;
    *out = symint_arena_copy(arena, text, size);
    return *out == NULL ? SYM_ERR_NOMEM : 0;
}

/* Reads the attributes of the root into u and r. False: damaged, or cut off by the end of the window. */
static bool parse_root(struct dwarf_unit *u, struct symint_cursor *c, struct root *r)
{
    const struct abbrev *a = abbrev_find(u->abbrevs, cursor_uleb(c));
    if (a == NULL || c->failed)
        return false;
    *r = (struct root){0};
    for (unsigned i = 0; i < a->attribute_count && !c->failed; i++) {
        const struct abbrev_attribute *attribute = &u->abbrevs->attributes[a->attribute + i];
        struct dwarf_value value;
        value_read(c, u, attribute, &value);
        if (!c->failed)
            take_attribute(u, r, attribute->name, &value);
    }
    if (a->tag == DW_TAG_partial_unit)
        u->type = DW_UT_partial;
    else if (a->tag == DW_TAG_type_unit)
        u->type = DW_UT_type;
    return !c->failed;
}

void symint_roots_done(struct dwarf_file *f)
{
    for (size_t i = 0; i < sizeof(f->roots) / sizeof(f->roots[0]); i++) {
        symint_abbrev_free(f->roots[i]);
        f->roots[i] = NULL;
    }
}

/* The unit's table as far as its root needs it, which stays the file's: dwz makes many small units with one table, whose
 * last abbreviations are those of roots. */
static int take_root_abbrevs(struct dwarf_unit *u, uint64_t code)
{
    struct dwarf_file *f = u->file;
    uint64_t offset = u->abbrev_offset + u->parts.abbrev;
    uint32_t shape = shape_key(&u->shape);
    struct abbrev_table **slot = &f->roots[abbrev_slot(f, offset) - f->abbrevs];
    struct abbrev_table *t = *slot;
    if (t != NULL && t->offset == offset && t->shape == shape && abbrev_find(t, code) != NULL) {
        u->abbrevs = t;
        return 0;
    }
    int rc = symint_abbrev_parse(&f->sections, offset, &u->shape, code, &f->abbrevs_left, &t);
    f->spent |= f->abbrevs_left == 0;
    if (rc != 0 || t == NULL)
        return rc;
    t->shape = shape;
    symint_abbrev_free(*slot);
    *slot = t;
    u->abbrevs = t;
    return 0;
}

int symint_unit_root(struct dwarf_unit *u, struct symint_arena *arena, struct range_list *ranges)
{
    struct symint_debug_sections *s = &u->file->sections;
    uint8_t window[1024];
    uint64_t left = u->end - u->offset - u->header_size;
    size_t n = left < sizeof(window) ? (size_t)left : sizeof(window);
    struct root r;
    int rc = 0;
    if (u->root_read || u->failed)
        return 0;
    /* One abbreviation, and a look at a few bytes: all units have their roots read, few are needed whole. */
    bool read = symint_debug_peek(s, DEBUG_INFO, u->offset + u->header_size, n, window);
    struct symint_cursor c = {.at = window, .end = window + n, .swap = s->swap};
    uint64_t code = read ? cursor_uleb(&c) : 0;
    c.at = window;
    if (code != 0)
        rc = take_root_abbrevs(u, code);
    if (rc != 0)
        return rc;
    read = code != 0 && u->abbrevs != NULL;
    bool parsed = read && parse_root(u, &c, &r);
    if (read && !parsed && n < left) {
        const uint8_t *bytes = unit_bytes(u);
        if (bytes != NULL) {
            c = (struct symint_cursor){
                .at = bytes + u->header_size, .end = bytes + (u->end - u->offset), .swap = s->swap};
            parsed = parse_root(u, &c, &r);
        }
    }
    if (parsed) {
        uint64_t budget = UINT64_MAX;
        set_default_bases(u);
        u->root_read = true;
        u->has_low_pc |= value_address(u, &r.low, &u->low_pc);
        u->has_ranges =
            r.ranges.kind != VALUE_OTHER || (u->has_low_pc && r.high.kind != VALUE_OTHER);
        rc = keep_text(u, arena, &r.comp_dir, &u->comp_dir);
        if (rc == 0)
            rc = keep_text(u, arena, &r.dwo_name, &u->dwo_name);
        if (rc == 0 && ranges != NULL && u->has_ranges)
            rc = symint_ranges_read(u, &r.low, &r.high, &r.ranges, ranges, &budget);
    }
    u->failed |= !parsed;
    u->abbrevs = NULL;
    return rc;
}
