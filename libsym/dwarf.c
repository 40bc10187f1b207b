/* SPDX-License-Identifier: MIT */
/*
 * From an address to its chain: the unit that has the address, its function there and what is inlined in that, names,
 * and the row of the line table. Units are read when an address is in them and forgotten when there are too many.
 */
#include "dwarf.h"

#include "dwarf_numbers.h"
#include "dwarf_private.h"
#include "words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LEVELS 512 /* of a chain; real ones have some 50 */
#define DEFAULT_LIMIT_BYTES ((uint64_t)64 * 1024 * 1024)
#define MAX_LINE_BYTES ((uint64_t)32 * 1024 * 1024) /* of line tables as they are in the file */
#define MAX_LINE_TABLES 4                           /* sections' worth of them */
#define MAX_SPLIT_FILES 32

static bool lacks_memory(const struct symint_dwarf *d)
{
    return d->no_memory || d->main.sections.no_memory || d->alt.sections.no_memory ||
           d->package.sections.no_memory;
}

int symint_dwarf_note(struct symint_dwarf *d, const char *format, ...)
{
    if (lacks_memory(d)) /* which is all that is wrong */
        return SYM_ERR_NOMEM;
    if (d->detail[0] != '\0')
        return 0;
    va_list arguments;
    va_start(arguments, format);
    const char *kept = symint_arena_print(d->arena, format, arguments);
    va_end(arguments);
    if (kept == NULL)
        return SYM_ERR_NOMEM;
    d->detail = kept;
    return 0;
}

int symint_dwarf_note_sections(struct symint_dwarf *d, const struct dwarf_file *f)
{
    const struct symint_debug_sections *s = &f->sections;
    if (s->why == NULL || s->why[0] == '\0')
        return 0;
    return symint_dwarf_note(d, "%s%s: %s%s%s", symint_debug_file_archive(&f->file), f->file.path,
                             s->why, s->error != 0 ? ": " : "",
                             s->error != 0 ? strerror(s->error) : "");
}

/* Sections are read when a lookup needs them. */
static int note_late(struct symint_dwarf *d, const struct dwarf_unit *u)
{
    int rc = symint_dwarf_note_sections(d, &d->main);
    if (rc == 0)
        rc = symint_dwarf_note_sections(d, &d->alt);
    if (rc == 0)
        rc = symint_dwarf_note_sections(d, &d->package);
    if (rc == 0 && u->full != NULL)
        rc = symint_dwarf_note_sections(d, u->full->file);
    if (rc == 0 && d->main.spent)
        rc = symint_dwarf_note(
            d, "%s%s: too much of it refers to the same tables for all of it to be read",
            symint_debug_file_archive(&d->main.file), d->main.file.path);
    return rc;
}

/* ---- lifetime ---- */

int symint_dwarf_open(const struct symint_search_options *options, struct symint_arena *arena,
                      struct symint_debug_file *file, const char *program, uint64_t bias,
                      struct symint_dwarf **out)
{
    *out = NULL;
    struct symint_dwarf *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        symint_debug_file_close(file);
        return SYM_ERR_NOMEM;
    }
    d->options = options;
    d->arena = arena;
    d->bias = bias;
    d->limit = DEFAULT_LIMIT_BYTES;
    d->detail = "";
    d->alt.file.fd = -1;
    d->package.file.fd = -1;
    int rc = symint_dwarf_file_open(d, &d->main, file, FILE_MAIN, false);
    if (rc == 0 && program != NULL && (d->program = strdup(program)) == NULL)
        rc = SYM_ERR_NOMEM;
    if (rc != 0 || d->main.sections.at[DEBUG_INFO].size == 0) {
        symint_dwarf_free(d);
        return rc;
    }
    *out = d;
    return 0;
}

static void drop_all(struct symint_dwarf *d)
{
    while (d->oldest != NULL)
        symint_dwarf_drop(d, d->oldest);
}

void symint_dwarf_free(struct symint_dwarf *d)
{
    if (d == NULL)
        return;
    drop_all(d);
    symint_dwarf_file_close(&d->main);
    symint_dwarf_file_close(&d->alt);
    symint_dwarf_file_close(&d->package);
    symint_segments_free(&d->at);
    symint_names_free(&d->names);
    symint_function_scratch_free(&d->functions);
    symint_line_scratch_free(&d->rows);
    free(d->program);
    free(d->levels);
    free(d);
}

/* ---- units that take memory ---- */

static void unlist(struct symint_dwarf *d, struct dwarf_unit *u)
{
    if (u->newer != NULL)
        u->newer->older = u->older;
    else if (d->newest == u)
        d->newest = u->older;
    if (u->older != NULL)
        u->older->newer = u->newer;
    else if (d->oldest == u)
        d->oldest = u->newer;
    u->newer = NULL;
    u->older = NULL;
}

static uint64_t bytes_of(const struct dwarf_unit *u)
{
    uint64_t bytes = 0;
    bytes += u->abbrevs != NULL ? u->abbrevs->bytes : 0;
    bytes += u->index != NULL ? u->index->bytes : 0;
    bytes += u->lines != NULL ? symint_line_bytes(u->lines) : 0;
    if (u->full != NULL) {
        bytes += bytes_of(u->full) + sizeof(*u->full);
        if (u->full->file->number >= FILE_SPLIT) /* the package's are counted once */
            bytes += u->full->file->sections.resident_bytes + u->full->file->windows.bytes;
    }
    return bytes;
}

static void account(struct symint_dwarf *d, struct dwarf_unit *u)
{
    uint64_t bytes = bytes_of(u);
    d->unit_bytes += bytes - u->bytes;
    u->bytes = bytes;
}

void symint_dwarf_touch(struct dwarf_unit *u)
{
    struct symint_dwarf *d = u->file->owner;
    if (u->split || d->newest == u) /* a split unit goes with its skeleton */
        return;
    unlist(d, u);
    u->older = d->newest;
    if (d->newest != NULL)
        d->newest->newer = u;
    else
        d->oldest = u;
    d->newest = u;
    if (u->bytes == 0)
        account(d, u);
}

void symint_dwarf_drop(struct symint_dwarf *d, struct dwarf_unit *u)
{
    unlist(d, u);
    symint_functions_free(u->index);
    u->index = NULL;
    symint_line_free(u->lines);
    u->lines = NULL;
    u->lines_tried = false;
    symint_dwarf_drop_full(d, u);
    symint_unit_leave(u);
    d->unit_bytes -= u->bytes;
    u->bytes = 0;
}

/* Frees what can be made anew for an address alone. */
static void trim(struct symint_dwarf *d, struct dwarf_unit *u)
{
    symint_functions_trim(u);
    if (u->full != NULL)
        symint_functions_trim(u->full);
    account(d, u);
}

/* Before a lookup, when nothing points into what is dropped. The last unit stays: if it were larger than the limit, it
 * would be read as a whole for each address. */
static void keep_limits(struct symint_dwarf *d)
{
    while (d->oldest != d->newest && (d->unit_bytes > d->limit || d->split_open > MAX_SPLIT_FILES))
        symint_dwarf_drop(d, d->oldest);
    if (d->newest != NULL && d->unit_bytes > d->limit)
        trim(d, d->newest);
    symint_windows_turn(&d->main.windows);
    symint_windows_turn(&d->alt.windows);
    symint_windows_turn(&d->package.windows);
    if (d->main.sections.at[DEBUG_LINE].resident_bytes > MAX_LINE_BYTES)
        symint_debug_trim(&d->main.sections, DEBUG_LINE);
}

uint64_t symint_dwarf_bytes(const struct symint_dwarf *d)
{
    return sizeof(*d) + d->fixed_bytes + d->unit_bytes + d->names.capacity * 48 +
           d->main.sections.resident_bytes + d->alt.sections.resident_bytes +
           d->package.sections.resident_bytes + d->main.windows.bytes + d->alt.windows.bytes +
           d->package.windows.bytes;
}

void symint_dwarf_limit(struct symint_dwarf *d, uint64_t bytes)
{
    d->limit = bytes;
}

const char *symint_dwarf_detail(const struct symint_dwarf *d)
{
    return d->detail;
}

/* ---- which unit ---- */

struct unit_range {
    uint64_t start, end;
    uint32_t unit;
};

struct unit_ranges {
    struct unit_range *items;
    size_t count, capacity;
};

static int add_ranges(struct unit_ranges *all, const struct range_list *l, uint32_t unit)
{
    if (l->count > all->capacity - all->count) {
        size_t capacity = (all->capacity + l->count) * 2;
        struct unit_range *items = realloc(all->items, capacity * sizeof(*items));
        if (items == NULL)
            return SYM_ERR_NOMEM;
        all->items = items;
        all->capacity = capacity;
    }
    for (size_t i = 0; i < l->count; i++)
        all->items[all->count++] =
            (struct unit_range){.start = l->ranges[i].start, .end = l->ranges[i].end, .unit = unit};
    return 0;
}

/* Of one start the longer range comes first: the innermost one wins. */
static int compare_unit_ranges(const void *a, const void *b)
{
    const struct unit_range *x = a;
    const struct unit_range *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

/* Fills what `out` leaves open from the ranges. */
static int merge_ranges(struct unit_ranges *all, struct symint_segments *out)
{
    struct symint_segments more;
    struct symint_sweep sweep;
    if (all->count == 0)
        return 0;
    qsort(all->items, all->count, sizeof(*all->items), compare_unit_ranges);
    int rc = symint_sweep_start(&sweep, &more, all->count);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < all->count; i++)
        symint_sweep_push(&sweep, all->items[i].start, all->items[i].end, all->items[i].unit);
    symint_sweep_finish(&sweep);
    rc = symint_segments_merge(out, &more);
    if (rc != 0)
        symint_segments_free(&more);
    return rc;
}

static bool may_have_code(const struct dwarf_unit *u)
{
    return !u->failed && u->root_read && u->type != DW_UT_partial && u->type != DW_UT_type;
}

/* Nothing was made of them yet. */
static void forget_units(struct symint_dwarf *d)
{
    for (uint32_t i = 0; i < d->main.unit_count; i++)
        free(d->main.units[i]);
    d->main.unit_count = 0;
    d->main.bad_count = 0;
    d->main.lines_read = 0;
    d->main.text_bytes = 0;
    symint_segments_free(&d->at);
}

/* Reads the headers and roots of all units. */
static int list_units(struct symint_dwarf *d)
{
    struct range_list l = {0};
    struct unit_ranges all = {0};
    symint_abbrevs_allow(&d->main, true);
    symint_ranges_allow(&d->main, true, 0);
    int rc = symint_units_list(&d->main, &d->main);
    uint64_t bad = d->main.bad_count;
    for (uint32_t i = 0; rc == 0 && i < d->main.unit_count; i++) {
        struct dwarf_unit *u = d->main.units[i];
        l.count = 0;
        rc = symint_unit_root(u, d->arena, &l);
        bad += u->failed;
        if (rc == 0 && may_have_code(u))
            rc = add_ranges(&all, &l, i);
    }
    if (rc == 0)
        rc = merge_ranges(&all, &d->at);
    if (rc == 0)
        rc = symint_dwarf_note_sections(d, &d->main);
    if (rc == 0 && bad > 0)
        rc = symint_dwarf_note(d,
                               "%s%s: %" PRIu64 " of its %" PRIu64
                               " units of debug information are damaged",
                               symint_debug_file_archive(&d->main.file), d->main.file.path, bad,
                               (uint64_t)d->main.unit_count + d->main.bad_count);
    symint_ranges_free(&l);
    symint_roots_done(&d->main);
    free(all.items);
    if (rc != 0) {
        forget_units(d);
        return rc;
    }
    symint_segments_settle(&d->at);
    d->fixed_bytes = d->main.unit_count * (sizeof(struct dwarf_unit) + 24) + d->at.count * 12;
    d->listed = true;
    return 0;
}

/* Units that do not state their code are asked for their functions. */
static int list_rest(struct symint_dwarf *d)
{
    struct unit_ranges all = {0};
    int rc = 0;
    const struct symint_debug_section *at = d->main.sections.at;
    uint64_t work = 0; /* that should be that of reading everything once */
    uint64_t most = 2 * at[DEBUG_INFO].size +
                    4 * (at[DEBUG_RANGES].size + at[DEBUG_RNGLISTS].size) + UINT64_C(64) * 1024;
    symint_abbrevs_allow(&d->main, true);
    for (uint32_t i = 0; rc == 0 && work < most && i < d->main.unit_count; i++) {
        struct dwarf_unit *u = d->main.units[i];
        if (!may_have_code(u) || (u->has_ranges && u->shape.version > 2))
            continue;
        if (u->index == NULL)
            rc = symint_functions_read(u);
        work += rc == 0 ? u->index->work : 0;
        for (size_t k = 0; rc == 0 && k + 1 < u->index->segments.count; k++) {
            struct symint_code_range r = {u->index->segments.start[k],
                                          u->index->segments.start[k + 1]};
            struct range_list one = {.ranges = &r, .count = 1};
            if (u->index->segments.owner[k] != SYMINT_NO_OWNER)
                rc = add_ranges(&all, &one, i);
        }
        if (u->failed) /* only now: it is in no list */
            symint_dwarf_drop(d, u);
        else if (u->index != NULL)
            account(d, u);
        if (d->unit_bytes > d->limit)
            drop_all(d);
        symint_windows_turn(&d->main.windows);
    }
    if (rc == 0)
        rc = merge_ranges(&all, &d->at);
    free(all.items);
    d->all_listed = rc == 0;
    return rc;
}

static int find_unit(struct symint_dwarf *d, uint64_t address, struct dwarf_unit **out)
{
    int rc = d->listed ? 0 : list_units(d);
    *out = NULL;
    if (rc != 0)
        return rc;
    uint32_t unit = symint_segments_find_near(&d->at, address, &d->near);
    if (unit == SYMINT_NO_OWNER && !d->all_listed) {
        rc = list_rest(d);
        unit = symint_segments_find_near(&d->at, address, &d->near);
    }
    if (rc == 0 && unit != SYMINT_NO_OWNER)
        *out = d->main.units[unit];
    return rc;
}

uint32_t symint_dwarf_unit(struct symint_dwarf *d, uint64_t vaddr)
{
    /* A failure to list is met again, and told, by a lookup. */
    if (!d->listed && (list_units(d) != 0 || lacks_memory(d)))
        return UINT32_MAX;
    return symint_segments_find_near(&d->at, vaddr - d->bias, &d->near);
}

/* ---- lines ---- */

/* Whether a unit's line table may be read. Units of one program do not share any, nor do they overlap. Where hostile ones
 * do, MAX_LINE_TABLES times the section is read; the others have no lines. What is read once is read again. */
static bool allow_lines(struct dwarf_unit *u)
{
    struct dwarf_file *f = u->main;
    uint64_t size = f->sections.at[DEBUG_LINE].size;
    if (!u->lines_allowed && f->lines_read / MAX_LINE_TABLES <= size) {
        f->lines_read += symint_line_size(&f->sections, u->line_offset);
        u->lines_allowed = true;
    }
    return u->lines_allowed;
}

/* The unit's line table; NULL: it has none. */
static int open_lines(struct dwarf_unit *u)
{
    if (u->lines_tried || !u->has_line || !allow_lines(u))
        return 0;
    int rc = symint_line_open(&u->main->sections, u->line_offset, u->shape.address_size, &u->lines);
    u->lines_tried = rc == 0;
    return rc;
}

static int set_file(struct symint_strings *strings, struct dwarf_unit *u, uint32_t file,
                    struct symint_dwarf_level *level)
{
    int rc = open_lines(u);
    if (rc != 0 || u->lines == NULL)
        return rc;
    return symint_line_path(u->lines, strings, u->comp_dir, file, &level->file);
}

/* File, line and column of the code itself. */
static int set_row(struct symint_strings *strings, struct dwarf_unit *u, uint64_t address,
                   struct symint_dwarf_level *level, bool *found)
{
    struct symint_line_row row;
    int rc = open_lines(u);
    *found = false;
    if (rc == 0 && u->lines != NULL)
        rc = symint_line_rows_with(u->lines, &u->file->owner->rows);
    if (rc != 0 || u->lines == NULL || !symint_line_find(u->lines, address, &row))
        return rc;
    *found = true;
    level->line = row.line;
    level->column = row.line != 0 ? row.column : 0;
    return set_file(strings, u, row.file, level);
}

/* ---- chains ---- */

static int make_room(struct symint_dwarf *d, uint32_t levels)
{
    if (levels <= d->level_capacity)
        return 0;
    uint32_t capacity = levels < 32 ? 32 : levels * 2;
    struct symint_dwarf_level *grown = realloc(d->levels, capacity * sizeof(*grown));
    if (grown == NULL)
        return SYM_ERR_NOMEM;
    d->levels = grown;
    d->level_capacity = capacity;
    return 0;
}

static int set_name(struct symint_dwarf *d, struct symint_strings *strings, struct dwarf_unit *code,
                    struct function_node *node, struct symint_dwarf_level *level)
{
    if (node->name == NULL) {
        struct dwarf_entry entry;
        struct dwarf_value origin = {.kind = node->origin_kind, .number = node->origin};
        int rc = 0;
        /* Calls of one function have one name: it is remembered for their origin. */
        if (node->parent == FUNCTION_NO_NODE || !symint_entry_follow(code, &origin, &entry, &rc))
            entry = (struct dwarf_entry){.unit = code, .offset = code->offset + node->entry};
        if (rc == 0)
            rc = symint_name_find(&d->names, strings, &entry, &node->name);
        if (rc != 0)
            return rc;
    }
    level->name = node->name->text;
    level->linkage = node->name->linkage;
    level->start_line = node->name->start_line;
    return 0;
}

/* Where the call of a node is. */
static int set_call(struct symint_strings *strings, struct dwarf_unit *u,
                    const struct function_node *node, struct symint_dwarf_level *level)
{
    level->line = node->call_line;
    level->column = node->call_column;
    return node->has_call_file ? set_file(strings, u, node->call_file, level) : 0;
}

/* The last piece that begins at or before an address; NULL: none. */
static const struct symint_code_range *piece_before(const struct function_tree *t, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = t->piece_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->pieces[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &t->pieces[low - 1] : NULL;
}

static void add_piece(struct symint_dwarf *d, const struct symint_code_range *piece,
                      struct symint_dwarf_chain *out)
{
    d->pieces[out->piece_count++] =
        (struct symint_code_range){piece->start + d->bias, piece->end + d->bias};
}

static void set_pieces(struct symint_dwarf *d, const struct function_tree *t, uint64_t address,
                       uint64_t start, struct symint_dwarf_chain *out)
{
    const struct symint_code_range *around = piece_before(t, address);
    const struct symint_code_range *first = piece_before(t, start);
    out->pieces = d->pieces;
    if (around != NULL && address < around->end)
        add_piece(d, around, out);
    if (first != NULL && first->start == start && (first != around || out->piece_count == 0))
        add_piece(d, first, out);
}

/* The chain from a node up to the function. Of one that is too deep the innermost levels and the function are kept. */
static int build_chain(struct symint_dwarf *d, struct symint_strings *strings,
                       const struct symint_dwarf_want *want, struct dwarf_unit *u,
                       struct dwarf_unit *code, struct function_tree *t, uint64_t address,
                       struct symint_dwarf_chain *out)
{
    uint32_t node = symint_segments_find(&t->segments, address);
    uint32_t count = 0;
    bool found;
    int rc = 0;
    node = node == SYMINT_NO_OWNER ? 0 : node;
    uint32_t inner = FUNCTION_NO_NODE; /* the node inlined in `node` */
    for (; rc == 0; inner = node, node = t->nodes[node].parent) {
        bool last = t->nodes[node].parent == FUNCTION_NO_NODE;
        if (!last && (!want->inlines || count >= MAX_LEVELS - 1))
            continue;
        rc = make_room(d, count + 1);
        if (rc != 0)
            break;
        struct symint_dwarf_level *level = &d->levels[count++];
        *level = (struct symint_dwarf_level){0};
        rc = set_name(d, strings, code, &t->nodes[node], level);
        if (rc == 0 && inner != FUNCTION_NO_NODE)
            rc = set_call(strings, u, &t->nodes[inner], level);
        else if (rc == 0 && want->lines)
            rc = set_row(strings, u, address, level, &found);
        if (last)
            break;
    }
    out->levels = d->levels;
    out->count = count;
    out->function = true;
    set_pieces(d, t, address, want->start - d->bias, out);
    return rc;
}

/* What is known of code that no function has: its line. */
static int build_line(struct symint_dwarf *d, struct symint_strings *strings,
                      const struct symint_dwarf_want *want, struct dwarf_unit *u, uint64_t address,
                      struct symint_dwarf_chain *out)
{
    bool found = false;
    int rc = make_room(d, 1);
    if (rc != 0 || !want->lines)
        return rc;
    d->levels[0] = (struct symint_dwarf_level){0};
    rc = set_row(strings, u, address, &d->levels[0], &found);
    if (rc == 0 && found)
        *out = (struct symint_dwarf_chain){.levels = d->levels, .count = 1};
    return rc;
}

static int look_up(struct symint_dwarf *d, struct symint_strings *strings,
                   const struct symint_dwarf_want *want, uint64_t vaddr,
                   struct symint_dwarf_chain *out)
{
    uint64_t address = vaddr - d->bias;
    struct dwarf_unit *u;
    struct function_tree *t = NULL;
    *out = (struct symint_dwarf_chain){0};
    keep_limits(d);
    int rc = find_unit(d, address, &u);
    if (rc != 0 || u == NULL)
        return rc != 0 ? rc : symint_dwarf_note_sections(d, &d->main);
    symint_dwarf_touch(u);
    symint_abbrevs_allow(&d->main, false);
    symint_abbrevs_allow(&d->alt, false);
    symint_abbrevs_allow(&d->package, false);
    if (u->full != NULL)
        symint_abbrevs_allow(u->full->file, false);
    struct dwarf_unit *code = u;
    if (u->dwo_name != NULL || (u->has_dwo_id && !u->split))
        code = symint_dwarf_full(d, u, &rc);
    if (rc == 0 && code != NULL && code->index == NULL)
        rc = symint_functions_read(code);
    if (rc == 0 && code != NULL)
        rc = symint_function_find(code, &d->functions, address, want->likely, &t);
    if (rc == 0 && t != NULL)
        rc = build_chain(d, strings, want, u, code, t, address, out);
    else if (rc == 0)
        rc = build_line(d, strings, want, u, address, out);
    if (rc == 0)
        rc = note_late(d, u);
    if (rc == 0 && (u->failed || (code != NULL && code->index != NULL && code->index->broken)))
        rc = symint_dwarf_note(d, "%s%s: a unit of its debug information is damaged",
                               symint_debug_file_archive(&d->main.file), d->main.file.path);
    d->no_memory |= u->full != NULL && u->full->file->sections.no_memory;
    symint_dwarf_touch(u); /* after units that its names are in: it stays the longest */
    account(d, u);
    return rc;
}

/* What was made without enough memory may be wrong: a name that could not be read, a unit that seems damaged. */
static void start_over(struct symint_dwarf *d)
{
    drop_all(d);
    forget_units(d);
    symint_names_free(&d->names);
    symint_dwarf_file_close(&d->alt);
    d->main.alt = NULL;
    d->main.alt_tried = false;
    d->listed = false;
    d->all_listed = false;
    d->main.sections.no_memory = false;
    d->package.sections.no_memory = false;
    d->no_memory = false;
}

int symint_dwarf_lookup(struct symint_dwarf *d, struct symint_strings *strings,
                        const struct symint_dwarf_want *want, uint64_t vaddr,
                        struct symint_dwarf_chain *out)
{
    int rc = look_up(d, strings, want, vaddr, out);
    if (rc == 0 && !lacks_memory(d))
        return 0;
    *out = (struct symint_dwarf_chain){0};
    start_over(d);
    return SYM_ERR_NOMEM;
}
