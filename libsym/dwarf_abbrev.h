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

/* What a value says. */
enum value_kind {
    VALUE_OTHER, /* of no interest, or unknown */
    VALUE_ADDRESS,
    VALUE_ADDRESS_INDEX,
    VALUE_CONSTANT,
    VALUE_OFFSET,      /* into another section */
    VALUE_LIST_INDEX,  /* of a range list */
    VALUE_TEXT,        /* in the entry itself */
    VALUE_TEXT_OFFSET, /* into .debug_str */
    VALUE_LINE_TEXT,   /* into .debug_line_str */
    VALUE_TEXT_INDEX,
    VALUE_ALT_TEXT,
    VALUE_ENTRY,     /* offset in the unit */
    VALUE_ANY_ENTRY, /* offset in .debug_info */
    VALUE_ALT_ENTRY
};

/* What the passes over functions and inlined calls take of an entry. */
enum abbrev_take {
    TAKE_NOTHING,
    TAKE_LOW,
    TAKE_HIGH,
    TAKE_RANGES,
    TAKE_ORIGIN,
    TAKE_CALL_FILE,
    TAKE_CALL_LINE,
    TAKE_CALL_COLUMN,
    TAKES
};

struct abbrev_attribute {
    uint16_t name;
    uint16_t form;
    uint8_t size;        /* of the value; ABBREV_NO_VALUE_SIZE: its bytes tell */
    uint8_t take;        /* enum abbrev_take */
    uint8_t number_size; /* it is a number of 1, 2, 4 or 8 bytes; 0: its form says more */
    uint8_t kind;        /* of such a number: enum value_kind */
    uint32_t constant;   /* DW_FORM_implicit_const: index of its value */
};

/* One step over an entry: so many bytes, then a form whose size its bytes tell. */
struct abbrev_step {
    uint16_t fixed;
    uint16_t form; /* 0: none */
};

#define ABBREV_NO_SIZE UINT16_MAX
#define ABBREV_NO_VALUE_SIZE UINT8_MAX

struct abbrev {
    uint64_t code;
    uint32_t attribute; /* first one */
    uint32_t step;
    uint16_t attribute_count;
    uint16_t step_count;
    uint16_t size;      /* of all attributes; ABBREV_NO_SIZE: it differs from entry to entry */
    uint16_t leaf_size; /* the same of entries with neither code nor other entries in them */
    uint16_t tag;
    uint8_t kind;
    /* How far in front of the end the four bytes of its DW_AT_sibling are, which compilers put last; 0: it has none, or
     * not there, or in another form. */
    uint8_t sibling_back;
    bool children;
    bool has_code; /* it has DW_AT_low_pc or DW_AT_ranges */
    bool simple;   /* its size is known, and what the passes take are numbers of known sizes */
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

/* Goes on from an entry that is no root to the first that is more than a leaf, or near to it; not to the end. */
static inline void abbrev_pass_leaves(const struct abbrev_table *t, struct symint_cursor *c)
{
    const uint8_t *at = c->at;
    while (t->dense && c->end - at > 2) {
        unsigned code = at[0];
        const uint8_t *attributes = at + 1;
        if (code >= 0x80) {
            code = (code & 0x7f) | (unsigned)at[1] << 7;
            attributes++;
        }
        /* Where a code has more than two bytes, this number has bit 14. */
        uint16_t size =
            code - 1 < t->count && code < 0x4000 ? t->abbrevs[code - 1].leaf_size : ABBREV_NO_SIZE;
        if (size == ABBREV_NO_SIZE || size >= c->end - attributes)
            break;
        at = attributes + size;
    }
    c->at = at;
}

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
/* What a value of a form says. */
enum value_kind symint_form_kind(uint16_t form);

#endif
