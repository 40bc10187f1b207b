/* SPDX-License-Identifier: MIT */
/* Following an entry to its names: abstract origin, then specification, across units and files; and the scopes that
 * qualify a name which has no linkage name. */
#include "dwarf_name.h"

#include "dwarf_numbers.h"
#include "elf_private.h"

#include <stdlib.h>

#define MAX_STEPS 16
#define MAX_SCOPES 64
#define MAX_NAME_BYTES ((size_t)16 * 1024)
/* Scopes are found by going over a unit's entries. That many bytes in all for a program, and so many times those that it
 * has, then names stay short. */
#define MAX_SCOPE_WORK ((uint64_t)4 << 30)
#define MAX_SCOPE_PASSES 1024
#define CLIMB_WORK 16 /* what it counts to go from a scope to the one around it */

void symint_names_free(struct dwarf_names *n)
{
    free(n->slots);
    free(n->outline.scopes);
    symint_arena_free(&n->arena);
    *n = (struct dwarf_names){0};
}

void symint_names_forget(struct dwarf_names *n, const struct dwarf_file *f)
{
    if (n->outline.file == f->number)
        n->outline.built = false;
}

/* ---- memory of names ---- */

static uint64_t key_of(const struct dwarf_entry *e)
{
    return ((uint64_t)(e->unit->file->number + 1) << 40 ^ e->offset << 1) | 1;
}

static struct name_slot *slot_of(const struct dwarf_names *n, uint64_t key)
{
    size_t at = (size_t)symint_mix(key) & (n->capacity - 1);
    while (n->slots[at].key != 0 && n->slots[at].key != key)
        at = (at + 1) & (n->capacity - 1);
    return &n->slots[at];
}

static int make_room(struct dwarf_names *n)
{
    if (n->count < n->capacity / 8 * 5)
        return 0;
    struct dwarf_names more = *n;
    more.capacity = n->capacity == 0 ? 1024 : n->capacity * 2;
    more.slots = calloc(more.capacity, sizeof(*more.slots));
    if (more.slots == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < n->capacity; i++)
        if (n->slots[i].key != 0)
            *slot_of(&more, n->slots[i].key) = n->slots[i];
    free(n->slots);
    *n = more;
    return 0;
}

/* ---- following ---- */

struct following {
    struct symint_strings *strings;
    const char *linkage; /* NULL: not found yet */
    size_t linkage_size;
    const char *name;
    size_t name_size;
    struct dwarf_entry named; /* the entry that has `name` */
    bool has_name;            /* it has one, which may be in a file that is missing */
    uint16_t tag;             /* of the first entry */
    uint32_t line;
};

bool symint_entry_follow(struct dwarf_unit *u, const struct dwarf_value *v, struct dwarf_entry *to,
                         int *rc)
{
    struct dwarf_file *f = u->file;
    *rc = 0;
    switch (v->kind) {
    case VALUE_ENTRY:
        if (v->number >= u->end - u->offset)
            return false;
        *to = (struct dwarf_entry){.unit = u, .offset = u->offset + v->number};
        return true;
    case VALUE_ALT_ENTRY:
        f = symint_dwarf_alt(f, rc);
        if (f == NULL)
            return false;
        break;
    case VALUE_ANY_ENTRY:
        break;
    default:
        return false;
    }
    *to = (struct dwarf_entry){.unit = symint_unit_at(f, v->number), .offset = v->number};
    return to->unit != NULL;
}

/* A text of the entry; that of a supplementary file is looked for first. */
static const char *text_of(const struct dwarf_unit *u, const struct dwarf_value *v, size_t *size,
                           int *rc)
{
    if (v->kind == VALUE_ALT_TEXT)
        symint_dwarf_alt(u->file, rc);
    return *rc == 0 ? symint_value_text(u, v, size) : NULL;
}

/* Takes what an entry says. True: there is more at *next. */
static bool read_entry(struct following *f, const struct dwarf_entry *e, struct dwarf_entry *next,
                       int *rc)
{
    struct symint_cursor c;
    struct dwarf_value origin = {.kind = VALUE_OTHER};
    struct dwarf_value specification = {.kind = VALUE_OTHER};
    if (!symint_unit_enter(e->unit, e->offset, &c, rc))
        return false;
    const struct abbrev *a = abbrev_find(e->unit->abbrevs, cursor_uleb(&c));
    if (a == NULL)
        return false;
    f->tag = f->tag == 0 ? a->tag : f->tag;
    const struct abbrev_attribute *attribute = &e->unit->abbrevs->attributes[a->attribute];
    for (unsigned i = 0; i < a->attribute_count && !c.failed; i++, attribute++) {
        struct dwarf_value v;
        value_read(&c, e->unit, attribute, &v);
        switch (attribute->name) {
        case DW_AT_linkage_name:
        case DW_AT_MIPS_linkage_name:
            if (f->linkage == NULL)
                f->linkage = text_of(e->unit, &v, &f->linkage_size, rc);
            break;
        case DW_AT_name:
            if (f->name == NULL) {
                f->name = text_of(e->unit, &v, &f->name_size, rc);
                f->named = *e;
                f->has_name = true;
            }
            break;
        case DW_AT_decl_line:
            if (f->line == 0 && v.number <= UINT32_MAX)
                f->line = (uint32_t)v.number;
            break;
        case DW_AT_abstract_origin:
            origin = v;
            break;
        case DW_AT_specification:
            specification = v;
            break;
        default:
            break;
        }
    }
    if (*rc != 0 || c.failed)
        return false;
    return symint_entry_follow(e->unit, &origin, next, rc) ||
           (*rc == 0 && symint_entry_follow(e->unit, &specification, next, rc));
}

/* ---- scopes ---- */

struct scopes {
    uint32_t entries[MAX_SCOPES]; /* offsets in the unit, outermost first */
    bool function[MAX_SCOPES];
    size_t count;
};

static int add_scope(struct name_outline *o, const struct name_scope *scope)
{
    struct name_scope *scopes =
        symint_grow(o->scopes, o->count, &o->capacity, sizeof(*scopes), 256);
    if (scopes == NULL)
        return SYM_ERR_NOMEM;
    o->scopes = scopes;
    o->scopes[o->count++] = *scope;
    return 0;
}

/* Adds the scopes among the entries from `from` to `to` (offsets in the unit), which lie in scope `parent`. Types and
 * functions that say where they end are passed by, unless `within` is in them. */
static int read_scopes(struct dwarf_names *n, struct dwarf_unit *u, uint32_t from, uint32_t to,
                       uint32_t parent, uint32_t within)
{
    struct name_outline *o = &n->outline;
    struct symint_cursor c;
    uint64_t depth = 0;
    uint64_t *depths = NULL; /* of the children of open scopes */
    uint32_t open = parent;
    size_t open_count = 0;
    size_t open_capacity = 0;
    int rc;
    if (!symint_unit_enter(u, u->offset + from, &c, &rc))
        return rc;
    const uint8_t *base = c.end - (u->end - u->offset);
    const uint8_t *begin = c.at;
    c.end = base + to;
    while (c.at < c.end && !c.failed && rc == 0) {
        if (depth > 0)
            abbrev_pass_leaves(u->abbrevs, &c);
        uint32_t offset = (uint32_t)(c.at - base);
        uint64_t code = cursor_uleb(&c);
        if (code == 0) {
            if (depth == 0)
                break;
            depth--;
            while (open_count > 0 && depths[open_count - 1] > depth) {
                o->scopes[open].end = offset;
                open = o->scopes[open].parent;
                open_count--;
            }
            continue;
        }
        const struct abbrev *a = abbrev_find(u->abbrevs, code);
        if (a == NULL)
            break;
        entry_skip(&c, u->abbrevs, a);
        if (!a->children || c.failed)
            continue;
        uint32_t sibling = 0;
        if (a->sibling_back != 0 && a->size != ABBREV_NO_SIZE && offset != from) {
            memcpy(&sibling, c.at - a->sibling_back, sizeof(sibling));
            sibling = c.swap ? __builtin_bswap32(sibling) : sibling;
            if (sibling > to || base + sibling <= c.at)
                sibling = 0;
        }
        bool is_scope =
            a->kind == ENTRY_NAMESPACE || a->kind == ENTRY_TYPE || a->kind == ENTRY_FUNCTION;
        bool pass =
            sibling != 0 && a->kind != ENTRY_NAMESPACE && !(within > offset && within < sibling);
        is_scope &= offset != from || parent == NAME_NO_SCOPE;
        if (is_scope) {
            struct name_scope scope = {.start = offset,
                                       .end = pass ? sibling : to,
                                       .parent = open,
                                       .named = a->kind != ENTRY_FUNCTION,
                                       .passed = pass};
            rc = add_scope(o, &scope);
        }
        if (pass) {
            c.at = base + sibling;
            continue;
        }
        depth++;
        if (!is_scope || rc != 0)
            continue;
        uint64_t *grown = symint_grow(depths, open_count, &open_capacity, sizeof(*grown), 16);
        if (grown == NULL) {
            rc = SYM_ERR_NOMEM;
            break;
        }
        depths = grown;
        depths[open_count++] = depth;
        open = o->count - 1;
    }
    n->work += (uint64_t)(c.at - begin);
    free(depths);
    return rc;
}

static int build_outline(struct dwarf_names *n, struct dwarf_unit *u)
{
    struct name_outline *o = &n->outline;
    if (o->built && o->file == u->file->number && o->offset == u->offset)
        return 0;
    o->count = 0;
    o->file = u->file->number;
    o->offset = u->offset;
    o->built = true;
    return read_scopes(n, u, u->header_size, (uint32_t)(u->end - u->offset), NAME_NO_SCOPE, 0);
}

/* The innermost scope of [from, count) around an offset. */
static uint32_t scope_around(struct dwarf_names *n, uint32_t from, uint32_t offset)
{
    const struct name_outline *o = &n->outline;
    uint32_t low = from;
    uint32_t high = o->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (o->scopes[middle].start < offset)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t at = low > from ? low - 1 : NAME_NO_SCOPE;
    for (; at != NAME_NO_SCOPE && o->scopes[at].end <= offset; n->work += CLIMB_WORK)
        at = o->scopes[at].parent;
    return at;
}

/* Lists the namespaces, types and functions around an entry. */
static int find_scopes(struct dwarf_names *n, const struct dwarf_entry *e, struct scopes *scopes)
{
    struct name_outline *o = &n->outline;
    uint32_t offset = (uint32_t)(e->offset - e->unit->offset);
    int rc = build_outline(n, e->unit);
    uint32_t at = rc == 0 ? scope_around(n, 0, offset) : NAME_NO_SCOPE;
    uint32_t outlined = o->count;
    if (at != NAME_NO_SCOPE && o->scopes[at].passed) {
        /* Inside a type or function: that one is looked through as far as need be. */
        rc = read_scopes(n, e->unit, o->scopes[at].start, o->scopes[at].end, at, offset);
        uint32_t inner = rc == 0 ? scope_around(n, outlined, offset) : NAME_NO_SCOPE;
        at = inner != NAME_NO_SCOPE ? inner : at;
    }
    scopes->count = 0;
    for (; at != NAME_NO_SCOPE && scopes->count < MAX_SCOPES; at = o->scopes[at].parent) {
        scopes->function[scopes->count] = !o->scopes[at].named;
        scopes->entries[scopes->count++] = o->scopes[at].start;
        n->work += CLIMB_WORK;
    }
    o->count = outlined;
    for (size_t i = 0; i < scopes->count / 2; i++) {
        size_t k = scopes->count - 1 - i;
        uint32_t entry = scopes->entries[i];
        bool function = scopes->function[i];
        scopes->entries[i] = scopes->entries[k];
        scopes->function[i] = scopes->function[k];
        scopes->entries[k] = entry;
        scopes->function[k] = function;
    }
    return rc;
}

struct qualified {
    char *text;
    size_t size;
};

static int append(struct qualified *q, const char *text, size_t size)
{
    if (size > MAX_NAME_BYTES - q->size)
        return 0;
    char *more = realloc(q->text, q->size + size + 1);
    if (more == NULL)
        return SYM_ERR_NOMEM;
    memcpy(more + q->size, text, size);
    q->text = more;
    q->size += size;
    return 0;
}

static const char *anonymous(uint16_t tag)
{
    switch (tag) {
    case DW_TAG_class_type:
        return "(anonymous class)";
    case DW_TAG_structure_type:
        return "(anonymous struct)";
    case DW_TAG_union_type:
        return "(anonymous union)";
    case DW_TAG_enumeration_type:
        return "(anonymous enum)";
    default:
        return "(anonymous namespace)";
    }
}

/* What a scope is called in front of `::`. One whose name cannot be read is left out. A type without a name, as a lambda
 * is, is told from others by the function around it (unit NULL: none). */
static int append_scope(struct qualified *q, struct symint_strings *strings,
                        const struct dwarf_entry *scope, const struct dwarf_entry *around)
{
    static const struct dwarf_entry nothing;
    struct following f = {.strings = strings};
    struct dwarf_entry at = *scope;
    struct dwarf_entry next;
    int rc = 0;
    for (int i = 0; i < MAX_STEPS && f.name == NULL && read_entry(&f, &at, &next, &rc); i++)
        at = next;
    if (rc != 0 || (f.name == NULL && f.has_name))
        return rc;
    if (f.name == NULL && f.tag != DW_TAG_namespace && around->unit != NULL)
        rc = append_scope(q, strings, around, &nothing);
    if (rc != 0)
        return rc;
    const char *name = f.name != NULL ? f.name : anonymous(f.tag);
    rc = append(q, name, f.name != NULL ? f.name_size : strlen(name));
    return rc == 0 ? append(q, "::", 2) : rc;
}

/* The name in front of which its scopes stand. */
static int qualify(struct dwarf_names *n, const struct following *f, struct symint_text **out)
{
    struct scopes scopes = {.count = 0};
    struct qualified q = {0};
    int rc = 0;
    if (!f->named.unit->c_like && n->work < MAX_SCOPE_WORK &&
        n->work / MAX_SCOPE_PASSES <= f->named.unit->file->sections.at[DEBUG_INFO].size)
        rc = find_scopes(n, &f->named, &scopes);
    struct dwarf_entry around = {.unit = NULL};
    for (size_t i = 0; i < scopes.count && rc == 0; i++) {
        struct dwarf_unit *u = f->named.unit;
        struct dwarf_entry scope = {.unit = u, .offset = u->offset + scopes.entries[i]};
        if (!scopes.function[i])
            rc = append_scope(&q, f->strings, &scope, &around);
        around = scopes.function[i] ? scope : (struct dwarf_entry){.unit = NULL};
    }
    if (rc == 0)
        rc = append(&q, f->name, f->name_size);
    if (rc == 0) {
        *out = symint_intern_name(f->strings, q.text != NULL ? q.text : "", q.size);
        rc = *out == NULL ? SYM_ERR_NOMEM : 0;
    }
    free(q.text);
    return rc;
}

/* ---- API ---- */

static int find_name(struct dwarf_names *n, struct symint_strings *strings,
                     const struct dwarf_entry *entry, struct dwarf_name *name)
{
    struct following f = {.strings = strings};
    struct dwarf_entry at = *entry;
    struct dwarf_entry next;
    int rc = 0;
    for (int i = 0; i < MAX_STEPS; i++) {
        if (!read_entry(&f, &at, &next, &rc) || (f.linkage != NULL && f.line > 0))
            break;
        at = next;
    }
    if (rc != 0)
        return rc;
    name->start_line = f.line;
    if (f.linkage != NULL && f.linkage_size > 0) {
        name->linkage = true;
        if (f.linkage_size > SYMINT_MAX_NAME) /* as in tables of symbols */
            f.linkage_size = SYMINT_MAX_NAME;
        name->text = symint_intern_name(strings, f.linkage, f.linkage_size);
        return name->text == NULL ? SYM_ERR_NOMEM : 0;
    }
    return f.name != NULL && f.name_size > 0 ? qualify(n, &f, &name->text) : 0;
}

int symint_name_find(struct dwarf_names *n, struct symint_strings *strings,
                     const struct dwarf_entry *entry, const struct dwarf_name **out)
{
    uint64_t key = key_of(entry);
    int rc = make_room(n);
    if (rc != 0)
        return rc;
    struct name_slot *slot = slot_of(n, key);
    if (slot->key == 0) {
        struct dwarf_name *name = symint_arena_alloc(&n->arena, sizeof(*name));
        if (name == NULL)
            return SYM_ERR_NOMEM;
        rc = find_name(n, strings, entry, name);
        if (rc != 0)
            return rc;
        *slot = (struct name_slot){.key = key, .name = name};
        n->count++;
    }
    *out = slot->name;
    return 0;
}
