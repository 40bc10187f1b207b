/* SPDX-License-Identifier: MIT */
/* Parsing tables of abbreviations. */
#include "dwarf_abbrev.h"

#include "dwarf_numbers.h"
#include "strtab.h"

#include <stdlib.h>

#define FIRST_WINDOW \
    ((uint64_t)32 * 1024) /* most tables are shorter; what is looked at is read by blocks anyway */

/* Real entries have some twenty attributes; attributes without bytes must not make work out of nothing. */
#define MAX_ATTRIBUTES 256

int symint_form_size(uint16_t form, const struct abbrev_shape *shape)
{
    int offset_size = shape->wide ? 8 : 4;
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
        return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_addr:
        return shape->address_size;
    case DW_FORM_ref_addr:
        return shape->version == 2 ? shape->address_size : offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return offset_size;
    case DW_FORM_block:
    case DW_FORM_block1:
    case DW_FORM_block2:
    case DW_FORM_block4:
    case DW_FORM_exprloc:
    case DW_FORM_string:
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_indirect:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        return -1;
    default:
        return -2;
    }
}

static uint8_t kind_of(uint64_t tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
        return ENTRY_FUNCTION;
    case DW_TAG_inlined_subroutine:
        return ENTRY_INLINED;
    case DW_TAG_namespace:
    case DW_TAG_module:
        return ENTRY_NAMESPACE;
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
        return ENTRY_TYPE;
    case DW_TAG_call_site:
    case DW_TAG_GNU_call_site:
        return ENTRY_CALL;
    default:
        return ENTRY_OTHER;
    }
}

static uint8_t take_of(uint64_t name)
{
    switch (name) {
    case DW_AT_low_pc:
        return TAKE_LOW;
    case DW_AT_high_pc:
        return TAKE_HIGH;
    case DW_AT_ranges:
        return TAKE_RANGES;
    case DW_AT_abstract_origin:
        return TAKE_ORIGIN;
    case DW_AT_call_file:
        return TAKE_CALL_FILE;
    case DW_AT_call_line:
        return TAKE_CALL_LINE;
    case DW_AT_call_column:
        return TAKE_CALL_COLUMN;
    default:
        return TAKE_NOTHING;
    }
}

/* ---- growing ---- */

struct growing {
    struct abbrev_table *table;
    uint32_t attribute_count, step_count, constant_count;
    size_t abbrev_room, attribute_room, step_room, constant_room;
};

#define FIRST_ROOM 128 /* of each */

static bool add_step(struct growing *g, struct abbrev *a, uint32_t fixed, uint16_t form)
{
    struct abbrev_step *steps =
        symint_grow(g->table->steps, g->step_count, &g->step_room, sizeof(*steps), FIRST_ROOM);
    if (steps == NULL)
        return false;
    g->table->steps = steps;
    steps[g->step_count++] = (struct abbrev_step){.fixed = (uint16_t)fixed, .form = form};
    a->step_count++;
    return true;
}

static bool add_attribute(struct growing *g, struct abbrev_attribute attribute)
{
    if (g->attribute_count == g->attribute_room) { /* seldom, and there are very many of them */
        struct abbrev_attribute *attributes =
            symint_grow(g->table->attributes, g->attribute_count, &g->attribute_room,
                        sizeof(*attributes), FIRST_ROOM);
        if (attributes == NULL)
            return false;
        g->table->attributes = attributes;
    }
    g->table->attributes[g->attribute_count++] = attribute;
    return true;
}

static bool add_constant(struct growing *g, int64_t constant)
{
    int64_t *constants = symint_grow(g->table->constants, g->constant_count, &g->constant_room,
                                     sizeof(*constants), FIRST_ROOM);
    if (constants == NULL)
        return false;
    g->table->constants = constants;
    constants[g->constant_count++] = constant;
    return true;
}

/* ---- parsing ---- */

enum parsed { PARSED, PARSED_END, PARSED_DAMAGED, PARSED_NOMEM };

/* Prepares for reading values of a form without looking at it. */
static void set_number(struct abbrev_attribute *attribute, int size)
{
    enum value_kind kind = symint_form_kind(attribute->form);
    attribute->size = size < 0 ? ABBREV_NO_VALUE_SIZE : (uint8_t)size;
    if (kind == VALUE_OTHER || (size != 1 && size != 2 && size != 4 && size != 8))
        return;
    attribute->number_size = (uint8_t)size;
    attribute->kind = (uint8_t)kind;
}

#define NOT_THERE UINT32_MAX

/* The attributes of one abbreviation, and the steps over an entry of its. A form that nobody knows is no damage before
 * an entry has it: the step over it says so. */
static enum parsed parse_attributes(struct growing *g, struct symint_cursor *c,
                                    const struct abbrev_shape *shape, struct abbrev *a)
{
    uint32_t fixed = 0;
    bool only_fixed = true;      /* so far */
    bool only_numbers = true;    /* of what is taken */
    uint32_t behind = NOT_THERE; /* bytes from the sibling on, if their number is fixed */
    for (;;) {
        uint64_t name = cursor_uleb(c);
        uint64_t form = cursor_uleb(c);
        if (c->failed)
            return PARSED_DAMAGED;
        if (name == 0 && form == 0)
            break;
        struct abbrev_attribute attribute = {.name = name <= UINT16_MAX ? (uint16_t)name : 0,
                                             .form = form <= UINT16_MAX ? (uint16_t)form : 0};
        int size = symint_form_size(attribute.form, shape);
        set_number(&attribute, size);
        attribute.take = take_of(name);
        only_numbers &= attribute.take == TAKE_NOTHING || attribute.number_size > 0;
        if (form == DW_FORM_implicit_const) {
            attribute.constant = g->constant_count;
            if (!add_constant(g, cursor_sleb(c)))
                return PARSED_NOMEM;
        }
        if (++a->attribute_count > MAX_ATTRIBUTES)
            return PARSED_DAMAGED;
        if (!add_attribute(g, attribute))
            return PARSED_NOMEM;
        a->has_code |= name == DW_AT_low_pc || name == DW_AT_ranges;
        if (size >= 0) {
            fixed += (uint32_t)size;
            if (name == DW_AT_sibling && form == DW_FORM_ref4)
                behind = 0;
            behind = behind == NOT_THERE ? behind : behind + (uint32_t)size;
            continue;
        }
        behind = NOT_THERE;
        only_fixed = false;
        if (!add_step(g, a, fixed, size == -2 ? UINT16_MAX : attribute.form))
            return PARSED_NOMEM;
        fixed = 0;
    }
    a->sibling_back = behind <= UINT8_MAX ? (uint8_t)behind : 0;
    a->simple = only_fixed && only_numbers;
    a->size = only_fixed ? (uint16_t)fixed : ABBREV_NO_SIZE;
    return fixed == 0 || add_step(g, a, fixed, 0) ? PARSED : PARSED_NOMEM;
}

static enum parsed parse_one(struct growing *g, struct symint_cursor *c,
                             const struct abbrev_shape *shape)
{
    struct abbrev_table *t = g->table;
    uint64_t code = cursor_uleb(c);
    if (c->failed)
        return PARSED_DAMAGED;
    if (code == 0)
        return PARSED_END;
    uint64_t tag = cursor_uleb(c);
    struct abbrev a = {.code = code,
                       .tag = tag <= UINT16_MAX ? (uint16_t)tag : 0,
                       .kind = kind_of(tag),
                       .attribute = g->attribute_count,
                       .step = g->step_count,
                       .children = cursor_u8(c) != 0};
    struct abbrev *abbrevs =
        symint_grow(t->abbrevs, t->count, &g->abbrev_room, sizeof(a), FIRST_ROOM);
    if (abbrevs == NULL)
        return PARSED_NOMEM;
    t->abbrevs = abbrevs;
    enum parsed parsed = parse_attributes(g, c, shape, &a);
    bool holds_code = a.has_code && (a.kind == ENTRY_FUNCTION || a.kind == ENTRY_INLINED);
    a.leaf_size = a.children || holds_code ? ABBREV_NO_SIZE : a.size;
    t->dense &= code == (uint64_t)t->count + 1;
    t->abbrevs[t->count++] = a;
    return parsed;
}

static int compare_codes(const void *a, const void *b)
{
    const struct abbrev *x = a;
    const struct abbrev *y = b;
    return (x->code > y->code) - (x->code < y->code);
}

/* The table ends by itself: its bytes are looked at in windows that grow. */
static enum parsed parse_window(struct growing *g, const uint8_t *bytes, uint64_t size,
                                const struct abbrev_shape *shape, uint64_t code, uint64_t *budget)
{
    struct symint_cursor c = {.at = bytes, .end = bytes + size};
    enum parsed parsed = PARSED;
    while (parsed == PARSED) {
        parsed = parse_one(g, &c, shape);
        if (parsed == PARSED && code != 0 && g->table->abbrevs[g->table->count - 1].code == code)
            break;
    }
    *budget -= (uint64_t)(c.at - bytes);
    return parsed;
}

static void start_over(struct growing *g)
{
    g->attribute_count = 0;
    g->step_count = 0;
    g->constant_count = 0;
    g->table->count = 0;
    g->table->dense = true;
}

int symint_abbrev_parse(struct symint_debug_sections *s, uint64_t offset,
                        const struct abbrev_shape *shape, uint64_t code, uint64_t *budget,
                        struct abbrev_table **out)
{
    uint64_t size = s->at[DEBUG_ABBREV].size;
    *out = NULL;
    if (offset >= size)
        return 0;
    struct growing g = {.table = calloc(1, sizeof(*g.table))};
    if (g.table == NULL)
        return SYM_ERR_NOMEM;
    enum parsed parsed = PARSED_DAMAGED;
    for (uint64_t window = FIRST_WINDOW;; window *= 8) {
        uint64_t n = window < size - offset ? window : size - offset;
        n = n < *budget ? n : *budget;
        const uint8_t *bytes = symint_debug_bytes(s, DEBUG_ABBREV, offset, n);
        start_over(&g);
        if (bytes == NULL)
            break;
        parsed = parse_window(&g, bytes, n, shape, code, budget);
        if (parsed != PARSED_DAMAGED || n < window)
            break;
    }
    if (parsed == PARSED_DAMAGED || parsed == PARSED_NOMEM) {
        symint_abbrev_free(g.table);
        return parsed == PARSED_NOMEM ? SYM_ERR_NOMEM : 0;
    }
    if (!g.table->dense)
        qsort(g.table->abbrevs, g.table->count, sizeof(*g.table->abbrevs), compare_codes);
    g.table->offset = offset;
    g.table->bytes = sizeof(*g.table) + g.abbrev_room * sizeof(struct abbrev) +
                     g.attribute_room * sizeof(struct abbrev_attribute) +
                     g.step_room * sizeof(struct abbrev_step) + g.constant_room * sizeof(int64_t);
    *out = g.table;
    return 0;
}

void symint_abbrev_free(struct abbrev_table *t)
{
    if (t == NULL)
        return;
    free(t->abbrevs);
    free(t->attributes);
    free(t->steps);
    free(t->constants);
    free(t);
}

const struct abbrev *symint_abbrev_search(const struct abbrev_table *t, uint64_t code)
{
    size_t low = 0;
    size_t high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->abbrevs[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->count && t->abbrevs[low].code == code ? &t->abbrevs[low] : NULL;
}
