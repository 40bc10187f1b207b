/* SPDX-License-Identifier: MIT */
/* Units of .debug_info, and what the files that hold them share. */
#ifndef SYMINT_DWARF_UNIT_H
#define SYMINT_DWARF_UNIT_H

#include "debug_bytes.h"
#include "debug_files.h"
#include "debug_window.h"
#include "dwarf_abbrev.h"
#include "dwarf_cursor.h"
#include "strtab.h"

struct dwarf_unit;
struct symint_dwarf;
struct symint_line_table;

/* A file with debug information: the program's, a supplementary one, a split one, a package of those. */
struct dwarf_file {
    struct symint_debug_file file;
    struct symint_debug_sections sections;
    struct symint_windows windows; /* on its .debug_info */
    struct symint_dwarf *owner;
    struct dwarf_file *alt; /* the supplementary file; NULL: none, or not looked for yet */
    bool alt_tried;
    struct dwarf_unit **units; /* ascending offset */
    uint32_t unit_count;
    size_t unit_capacity;
    uint32_t number;                  /* for keys: files of one program are told apart by it */
    struct abbrev_table *abbrevs[64]; /* in use, by offset */
    struct abbrev_table *roots[64];   /* up to the abbreviation of a root, by offset */
    /* Bytes of tables that may still be read: see symint_abbrevs_allow and symint_ranges_allow. */
    uint64_t abbrevs_left, ranges_left;
    bool spent; /* there were more, so what is known of an address depends on those before it */
    uint64_t text_bytes; /* of units that are kept */
    uint64_t lines_read; /* bytes of line tables, each unit's counted once */
    uint32_t bad_count;  /* units whose headers are damaged, which are not kept */
};

/* Where a unit's part of a section begins: 0 but in packages. */
struct unit_parts {
    uint64_t abbrev, str_offsets, rnglists;
};

struct dwarf_unit {
    struct dwarf_file *file; /* its entries, abbreviations and texts */
    struct dwarf_file *main; /* addresses, code, .debug_ranges and lines: the program's file */
    uint64_t offset;         /* in .debug_info */
    uint64_t end;
    uint32_t header_size;
    uint8_t type; /* DW_UT_*; before DWARF 5 DW_UT_compile until the root is read */
    struct abbrev_shape shape;
    uint64_t abbrev_offset;
    struct unit_parts parts;
    bool failed;    /* damaged: nothing more is read of it */
    bool entered;   /* its entries were looked at before */
    bool root_read; /* what follows is known */
    bool has_low_pc, has_line, has_ranges, c_like;
    bool has_addr_base, has_str_offsets_base, has_rnglists_base;
    bool split; /* from a split file */
    uint64_t low_pc;
    uint64_t addr_base, str_offsets_base, rnglists_base;
    uint64_t ranges_base; /* GNU's, for the split unit's ranges */
    uint64_t line_offset;
    uint64_t dwo_id;
    bool has_dwo_id;
    const char *comp_dir; /* in the arena; NULL: none */
    const char *dwo_name; /* likewise: this is a skeleton */
    uint32_t number;      /* which of its file's units */
    bool lines_allowed;   /* its line table is among those that may be read */
    /* What was made of it, and goes when there is too much of that: */
    struct abbrev_table *abbrevs;
    struct unit_index *index; /* dwarf_function.h; NULL: not built */
    struct symint_line_table *lines;
    bool lines_tried;
    struct dwarf_unit *full; /* a skeleton's split unit; NULL: none, or not looked for yet */
    bool full_tried;
    uint64_t bytes;                   /* of all that, as it was counted last */
    struct dwarf_unit *newer, *older; /* of those that have something, the last used first */
};

/* An entry (DIE). */
struct dwarf_entry {
    struct dwarf_unit *unit;
    uint64_t offset; /* in .debug_info */
};

/* ---- files and units (dwarf_unit.c) ---- */

/* Appends a unit, whose offset is above those of the others; taken. 0 or SYM_ERR_NOMEM. */
int symint_units_add(struct dwarf_file *f, struct dwarf_unit *u);

/* Finds all units by their headers. 0, also when the rest of the section is damaged; SYM_ERR_NOMEM. */
int symint_units_list(struct dwarf_file *f, struct dwarf_file *main);

/* Reads one unit's header. 0 with *out, or NULL: damaged; SYM_ERR_NOMEM. */
int symint_unit_read(struct dwarf_file *f, struct dwarf_file *main, uint64_t offset,
                     struct dwarf_unit **out);

/* Add to how much of tables may be read: with `listing` to what reading all of them takes some times; else for one
 * address more, of lists of ranges for `bytes` of entries more. Tables do not overlap, so that real files take no more; where
 * many units or entries share a long one, or tables begin inside of each other, the work would be their product. */
void symint_abbrevs_allow(struct dwarf_file *f, bool listing);
void symint_ranges_allow(struct dwarf_file *f, bool listing, uint64_t bytes);
/* Frees what the reading of roots keeps for the next one. */
void symint_roots_done(struct dwarf_file *f);

/* Reads the attributes of a unit's root; `ranges` gets the code that they state (not in order). 0; a damaged unit is
 * marked. SYM_ERR_NOMEM. */
struct range_list;
int symint_unit_root(struct dwarf_unit *u, struct symint_arena *arena, struct range_list *ranges);

/* The unit that an offset of .debug_info is in; NULL: none. */
struct dwarf_unit *symint_unit_at(const struct dwarf_file *f, uint64_t offset);

/* Makes the unit's bytes and abbreviations ready: *c covers its entries from an offset of the section on. False: damaged
 * (the unit is marked), or *rc is SYM_ERR_NOMEM. Bytes stay until the windows' next turn. */
bool symint_unit_enter(struct dwarf_unit *u, uint64_t offset, struct symint_cursor *c, int *rc);

/* Frees what was made of a unit, but for its index, lines and split unit. */
void symint_unit_leave(struct dwarf_unit *u);

/* ---- what belongs to the whole (dwarf.c, dwarf_split.c) ---- */

/* Notes that a unit has something that takes memory. */
void symint_dwarf_touch(struct dwarf_unit *u);

/* The supplementary file of a file, opened when it was not yet; NULL: there is none. *rc: 0 or SYM_ERR_NOMEM. */
struct dwarf_file *symint_dwarf_alt(struct dwarf_file *f, int *rc);

/* ---- values (dwarf_form.c) ---- */

struct dwarf_value {
    enum value_kind kind;
    uint64_t number;
    const char *text; /* VALUE_TEXT */
    size_t text_size;
};

/* Reads the value of an attribute. The cursor fails at unknown forms. */
static inline void value_read(struct symint_cursor *c, const struct dwarf_unit *u,
                              const struct abbrev_attribute *attribute, struct dwarf_value *value);
void symint_value_read_slow(struct symint_cursor *c, const struct dwarf_unit *u,
                            const struct abbrev_attribute *attribute, struct dwarf_value *value);

/* Skips an entry's attributes, behind its code. */
static inline void entry_skip(struct symint_cursor *c, const struct abbrev_table *t,
                              const struct abbrev *a);
void symint_form_skip(struct symint_cursor *c, uint16_t form, const struct abbrev_shape *shape);

/* The text of a value; NULL: it has none. Valid until the next turn. */
const char *symint_value_text(const struct dwarf_unit *u, const struct dwarf_value *value,
                              size_t *size);

/* The address of a value. False: it is none, or out of its table. */
bool symint_value_address_slow(const struct dwarf_unit *u, const struct dwarf_value *value,
                               uint64_t *address);
static inline bool value_address(const struct dwarf_unit *u, const struct dwarf_value *value,
                                 uint64_t *address)
{
    if (value->kind != VALUE_ADDRESS)
        return symint_value_address_slow(u, value, address);
    *address = value->number;
    return true;
}

/* ---- ranges (dwarf_ranges.c) ---- */

struct range_list {
    struct symint_code_range *ranges;
    size_t count, capacity;
};
void symint_ranges_free(struct range_list *l);
int symint_ranges_add(struct range_list *l, uint64_t start, uint64_t end);

/* Appends those ranges of an entry that are code, from its DW_AT_low_pc, DW_AT_high_pc and DW_AT_ranges. `budget` is how many bytes of lists may still be read, as far as
 * ranges_left of the file allows it. 0, also when the list is damaged; SYM_ERR_NOMEM. */
int symint_ranges_read(const struct dwarf_unit *u, const struct dwarf_value *low_pc,
                       const struct dwarf_value *high_pc, const struct dwarf_value *ranges,
                       struct range_list *l, uint64_t *budget);

static inline void value_read(struct symint_cursor *c, const struct dwarf_unit *u,
                              const struct abbrev_attribute *attribute, struct dwarf_value *value)
{
    if (attribute->number_size == 0) {
        symint_value_read_slow(c, u, attribute, value);
        return;
    }
    *value = (struct dwarf_value){.kind = (enum value_kind)attribute->kind};
    value->number = cursor_sized(c, attribute->number_size);
}

void symint_entry_skip_steps(struct symint_cursor *c, const struct abbrev_table *t,
                             const struct abbrev *a);

static inline void entry_skip(struct symint_cursor *c, const struct abbrev_table *t,
                              const struct abbrev *a)
{
    if (a->size != ABBREV_NO_SIZE)
        cursor_skip(c, a->size);
    else
        symint_entry_skip_steps(c, t, a);
}

#endif
