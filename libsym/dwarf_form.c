/* SPDX-License-Identifier: MIT */
/* Values of attributes (DWARF 5, 7.5.5 and 7.5.6). */
#include "dwarf_numbers.h"
#include "dwarf_unit.h"

/* Forms whose bytes tell their size; `shape` only for one behind DW_FORM_indirect. */
void symint_form_skip(struct symint_cursor *c, uint16_t form, const struct abbrev_shape *shape)
{
    int size = shape != NULL ? symint_form_size(form, shape) : -1;
    size_t ignored;
    if (size >= 0) {
        cursor_skip(c, (uint64_t)size);
        return;
    }
    switch (form) {
    case DW_FORM_block1:
        cursor_skip(c, cursor_u8(c));
        break;
    case DW_FORM_block2:
        cursor_skip(c, cursor_u16(c));
        break;
    case DW_FORM_block4:
        cursor_skip(c, cursor_u32(c));
        break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        cursor_skip(c, cursor_uleb(c));
        break;
    case DW_FORM_string:
        cursor_text(c, &ignored);
        break;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        cursor_skip_leb(c);
        break;
    default:
        cursor_fail(c);
    }
}

/* The forms that are named here are nearly all there are. */
void symint_entry_skip_steps(struct symint_cursor *c, const struct abbrev_table *t,
                             const struct abbrev *a)
{
    const struct abbrev_step *step = a->step_count > 0 ? &t->steps[a->step] : NULL;
    for (unsigned i = 0; i < a->step_count; i++, step++) {
        cursor_skip(c, step->fixed); /* NOLINT(analyzer-null-dereference): there is a step */
        switch (step->form) {
        case 0:
            break;
        case DW_FORM_string: {
            const uint8_t *nul = memchr(c->at, 0, cursor_left(c));
            if (nul == NULL)
                cursor_fail(c);
            else
                c->at = nul + 1;
            break;
        }
        case DW_FORM_block:
        case DW_FORM_exprloc:
            cursor_skip(c, cursor_uleb(c));
            break;
        case DW_FORM_sdata:
        case DW_FORM_udata:
        case DW_FORM_strx:
        case DW_FORM_addrx:
        case DW_FORM_loclistx:
        case DW_FORM_rnglistx:
            cursor_skip_leb(c);
            break;
        default:
            symint_form_skip(c, step->form, NULL);
        }
    }
}

enum value_kind symint_form_kind(uint16_t form)
{
    switch (form) {
    case DW_FORM_addr:
        return VALUE_ADDRESS;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
        return VALUE_ADDRESS_INDEX;
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_flag:
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return VALUE_CONSTANT;
    case DW_FORM_sec_offset:
        return VALUE_OFFSET;
    case DW_FORM_rnglistx:
        return VALUE_LIST_INDEX;
    case DW_FORM_string:
        return VALUE_TEXT;
    case DW_FORM_strp:
        return VALUE_TEXT_OFFSET;
    case DW_FORM_line_strp:
        return VALUE_LINE_TEXT;
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
        return VALUE_TEXT_INDEX;
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
        return VALUE_ALT_TEXT;
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
        return VALUE_ENTRY;
    case DW_FORM_ref_addr:
        return VALUE_ANY_ENTRY;
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
    case DW_FORM_GNU_ref_alt:
        return VALUE_ALT_ENTRY;
    default:
        return VALUE_OTHER;
    }
}

void symint_value_read_slow(struct symint_cursor *c, const struct dwarf_unit *u,
                            const struct abbrev_attribute *attribute, struct dwarf_value *value)
{
    uint16_t form = attribute->form;
    *value = (struct dwarf_value){.kind = VALUE_OTHER};
    if (form == DW_FORM_indirect) {
        uint64_t real = cursor_uleb(c);
        /* A constant would have to be in the abbreviation, and a chain of these may not end. */
        if (real == DW_FORM_indirect || real == DW_FORM_implicit_const || real > UINT16_MAX) {
            cursor_fail(c);
            return;
        }
        form = (uint16_t)real;
    }
    int size = symint_form_size(form, &u->shape);
    value->kind = symint_form_kind(form);
    switch (form) {
    case DW_FORM_flag_present:
        value->number = 1;
        break;
    case DW_FORM_implicit_const:
        value->number = (uint64_t)u->abbrevs->constants[attribute->constant];
        break;
    case DW_FORM_sdata:
        value->number = (uint64_t)cursor_sleb(c);
        break;
    case DW_FORM_string:
        value->text = cursor_text(c, &value->text_size);
        break;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        value->number = cursor_u24(c);
        break;
    default:
        if (value->kind == VALUE_OTHER)
            symint_form_skip(c, form, &u->shape);
        else if (size > 0)
            value->number = cursor_sized(c, (unsigned)size);
        else
            value->number = cursor_uleb(c);
    }
}

/* An item of a table of offsets or addresses at `base`. */
static bool read_item(struct symint_debug_sections *s, enum symint_debug_id id, uint64_t base,
                      uint64_t index, unsigned size, uint64_t *item)
{
    uint64_t offset;
    if (__builtin_mul_overflow(index, (uint64_t)size, &offset) ||
        __builtin_add_overflow(offset, base, &offset))
        return false;
    const uint8_t *bytes = symint_debug_bytes(s, id, offset, size);
    if (bytes == NULL)
        return false;
    struct symint_cursor c = {.at = bytes, .end = bytes + size, .swap = s->swap};
    *item = cursor_sized(&c, size);
    return true;
}

const char *symint_value_text(const struct dwarf_unit *u, const struct dwarf_value *value,
                              size_t *size)
{
    struct symint_debug_sections *s = &u->file->sections;
    uint64_t offset;
    switch (value->kind) {
    case VALUE_TEXT:
        *size = value->text_size;
        return value->text;
    case VALUE_TEXT_OFFSET:
        return symint_debug_text(s, DEBUG_STR, value->number, size);
    case VALUE_LINE_TEXT:
        return symint_debug_text(s, DEBUG_LINE_STR, value->number, size);
    case VALUE_TEXT_INDEX:
        if (!read_item(s, DEBUG_STR_OFFSETS, u->str_offsets_base, value->number,
                       u->shape.wide ? 8 : 4, &offset))
            return NULL;
        return symint_debug_text(s, DEBUG_STR, offset, size);
    case VALUE_ALT_TEXT:
        if (u->file->alt == NULL)
            return NULL;
        return symint_debug_text(&u->file->alt->sections, DEBUG_STR, value->number, size);
    default:
        return NULL;
    }
}

bool symint_value_address_slow(const struct dwarf_unit *u, const struct dwarf_value *value,
                               uint64_t *address)
{
    return value->kind == VALUE_ADDRESS_INDEX &&
           read_item(&u->main->sections, DEBUG_ADDR, u->addr_base, value->number,
                     u->shape.address_size, address);
}
