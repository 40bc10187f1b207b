/* SPDX-License-Identifier: MIT */
/* Abbreviations: what the entries (DIEs) of a unit look like, prepared so that an entry which does not matter is skipped
 * in a few steps. */
#ifndef SYMINT_DWARF_ABBREV_H
#define SYMINT_DWARF_ABBREV_H

#include "debug_bytes.h"
#include "dwarf_cursor.h"

/* What an entry is to the search for functions. */
enum abbrev_kind {
    ENTRY_OTHER,
    ENTRY_FUNCTION,
    ENTRY_INLINED,
    ENTRY_NAMESPACE,
    ENTRY_TYPE, /* holds code only in functions of its own */
    ENTRY_CALL  /* holds no code at all */
};

struct abbrev_attribute {
    uint16_t name;
    uint16_t form;
    uint32_t constant; /* DW_FORM_implicit_const: index of its value */
};

/* One step over an entry: so many bytes, then a form whose size its bytes tell. */
struct abbrev_step {
    uint16_t fixed;
    uint16_t form; /* 0: none */
};

#define ABBREV_NO_SIBLING UINT8_MAX

struct abbrev {
    uint64_t code;
    uint32_t attribute; /* first one */
    uint32_t step;
    uint16_t attribute_count;
    uint16_t step_count;
    uint16_t tag;
    uint8_t kind;
    uint8_t
        sibling_at; /* where in the entry the four bytes of its DW_AT_sibling are; ABBREV_NO_SIBLING: it has none, or
                           in another form */
    bool children;
    bool has_code; /* it has DW_AT_low_pc or DW_AT_ranges */
};

struct abbrev_table {
    struct abbrev *abbrevs;
    uint32_t count;
    bool dense; /* abbrevs[i].code is i + 1; else sorted by code */
    struct abbrev_attribute *attributes;
    struct abbrev_step *steps;
    int64_t *constants;
    uint64_t bytes;
    /* Of the cache: */
    uint64_t offset;
    uint32_t shape; /* what sizes of forms depend on */
    uint32_t users;
    struct abbrev_table *next;
};

/* What the sizes of forms depend on. */
struct abbrev_shape {
    uint8_t version;
    uint8_t address_size;
    bool wide; /* 64-bit DWARF */
};

/* Parses the table at an offset of .debug_abbrev, all of it or (`code` not 0) up to that code. `budget` is how many bytes
 * may still be parsed. 0 with *out, or *out NULL when it is damaged or longer than that; SYM_ERR_NOMEM. Free with
 * symint_abbrev_free. */
int symint_abbrev_parse(struct symint_debug_sections *s, uint64_t offset,
                        const struct abbrev_shape *shape, uint64_t code, uint64_t *budget,
                        struct abbrev_table **out);
void symint_abbrev_free(struct abbrev_table *t);

const struct abbrev *symint_abbrev_search(const struct abbrev_table *t, uint64_t code);

/* NULL: no such code. */
static inline const struct abbrev *abbrev_find(const struct abbrev_table *t, uint64_t code)
{
    if (t->dense)
        return code - 1 < t->count ? &t->abbrevs[code - 1] : NULL;
    return symint_abbrev_search(t, code);
}

/* The size of a form that has a fixed one, -1: its bytes tell, -2: unknown form. */
int symint_form_size(uint16_t form, const struct abbrev_shape *shape);

#endif
