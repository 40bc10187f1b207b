/* SPDX-License-Identifier: MIT */
/* Frames to locations, in one pass over the stacks, and then to messages. */
#include "locations.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define NO_FUNCTION UINT32_MAX

/* A level of the inline chain at an address, with the function it is in. Compared as bytes: no padding. */
struct frame_level {
    uint64_t address; /* in the mapping */
    uint32_t mapping;
    uint32_t function; /* NO_FUNCTION: the location has no lines */
    uint32_t line, column;
    uint32_t level, level_count;
};

struct function_key {
    uint32_t name, linkage, file; /* texts; STRINGTABLE_EMPTY: none */
    uint32_t start_line;
};

struct location_ref {
    uint32_t number; /* a label or a group */
    bool group;
};

void locations_init(struct locations *l, struct stringtable *strings, struct mappings *mappings)
{
    memset(l, 0, sizeof *l);
    l->strings = strings;
    l->mappings = mappings;
    labels_init(&l->labels);
    labels_init(&l->functions);
    labels_init(&l->groups);
}

void locations_free(struct locations *l)
{
    labels_free(&l->labels);
    labels_free(&l->functions);
    labels_free(&l->groups);
    free(l->label_places);
    free(l->label_flags);
    free(l->label_ids);
    free(l->function_ids);
    free(l->function_order);
    free(l->group_ids);
    free(l->order);
    free(l->ids);
    free(l->group);
}

/* ---- labels ---- */

static uint32_t text_of(struct locations *l, const char *text)
{
    return text ? stringtable_text(l->strings, text, strlen(text)) : STRINGTABLE_EMPTY;
}

static uint32_t function_of(struct locations *l, const struct out_frame *f)
{
    struct function_key key = {
        .name = stringtable_text(l->strings, f->name, f->name_size),
        .linkage = text_of(l, f->linkage),
        .file = text_of(l, f->file),
        .start_line = f->start_line,
    };

    /* pprof would demangle a name that is given twice, by guesses. */
    if (key.linkage == key.name)
        key.linkage = STRINGTABLE_EMPTY;
    return labels_intern(&l->functions, (const char *)&key, sizeof key);
}

static struct frame_level level_of(const struct locations *l, uint32_t label)
{
    struct frame_level level;
    size_t size;

    memcpy(&level, labels_text(&l->labels, label, &size), sizeof level);
    return level;
}

static uint32_t intern_level(struct locations *l, const struct frame_level *level)
{
    uint32_t label = labels_intern(&l->labels, (const char *)level, sizeof *level);

    if (label >= l->label_capacity) {
        size_t old = l->label_capacity, capacity = cli_next_capacity(old, label);

        l->label_places = cli_realloc(l->label_places, capacity, sizeof *l->label_places);
        l->label_ids = cli_extend(l->label_ids, old, capacity, sizeof *l->label_ids);
        l->label_flags = cli_extend(l->label_flags, old, capacity, sizeof *l->label_flags);
        l->label_capacity = capacity;
    }
    return label;
}

static uint8_t mapping_flags(const struct locations *l, const struct out_frame *f)
{
    /* A name may be the symbol table's although lines are DWARF's. */
    bool dwarf = f->origin == SYM_ORIGIN_DWARF || f->line > 0 || (f->flags & FRAME_INLINED);

    return (uint8_t)(((f->flags & FRAME_NAMED) ? MAPPING_NAMED : 0) |
                     (f->file ? MAPPING_FILE_NAME : 0) | (f->line > 0 ? MAPPING_LINE : 0) |
                     (dwarf && !l->no_inlines ? MAPPING_DWARF : 0));
}

uint32_t locations_label(struct locations *l, const struct out_frame *f)
{
    struct frame_level level = {.level_count = 1};
    uint32_t label, alone;

    level.mapping = mappings_of_frame(l->mappings, f, &level.address);
    if (l->unsymbolized && l->mappings->items[level.mapping].symbolizable) {
        level.function = NO_FUNCTION;
    } else {
        level.function = function_of(l, f);
        level.line = f->line;
        level.column = f->column;
    }
    alone = intern_level(l, &level);
    l->label_places[alone] = alone;
    l->label_flags[alone] |= mapping_flags(l, f);
    if (f->level_count == 1 || l->one_line)
        return alone;
    level.level = f->level;
    level.level_count = f->level_count;
    label = intern_level(l, &level);
    l->label_places[label] = alone;
    return label;
}

/* ---- stacks ---- */

static uint32_t add_location(struct locations *l, uint32_t number, bool group)
{
    l->order = cli_grow(l->order, &l->order_capacity, l->count, sizeof *l->order);
    l->order[l->count++] = (struct location_ref){.number = number, .group = group};
    return l->count;
}

static uint32_t alone_id(struct locations *l, uint32_t label)
{
    uint32_t place = l->label_places[label];

    if (l->label_ids[place] == 0)
        l->label_ids[place] = add_location(l, place, false);
    return l->label_ids[place];
}

static uint32_t group_id(struct locations *l, size_t size)
{
    uint32_t group = labels_intern(&l->groups, (const char *)l->group, size * sizeof *l->group);

    l->group_ids = cli_grow_zeroed(l->group_ids, &l->group_capacity, group, sizeof *l->group_ids);
    if (l->group_ids[group] == 0)
        l->group_ids[group] = add_location(l, group, true);
    return l->group_ids[group];
}

/* The location that begins, leaf first, at *node; moves *node to the last of its levels. */
static uint32_t chain_id(struct locations *l, const struct otree *tree, uint32_t *node)
{
    struct frame_level first = level_of(l, tree->nodes[*node].label), last = first;
    size_t n = 0;

    if (first.level_count == 1)
        return alone_id(l, tree->nodes[*node].label);
    for (;;) {
        uint32_t parent = tree->nodes[*node].parent;
        struct frame_level next;

        l->group = cli_grow(l->group, &l->group_scratch, n, sizeof *l->group);
        l->group[n++] = l->label_places[tree->nodes[*node].label];
        if (parent == OTREE_ROOT)
            break;
        next = level_of(l, tree->nodes[parent].label);
        if (next.mapping != first.mapping || next.address != first.address ||
            next.level_count != first.level_count || next.level <= last.level)
            break;
        last = next;
        *node = parent;
    }
    return n == 1 ? alone_id(l, l->group[0]) : group_id(l, n);
}

size_t locations_of_stack(struct locations *l, const struct otree *tree, uint32_t node)
{
    size_t n = 0;

    for (; node != OTREE_ROOT; node = tree->nodes[node].parent) {
        uint32_t id = l->label_ids[tree->nodes[node].label];

        l->ids = cli_grow(l->ids, &l->ids_capacity, n, sizeof *l->ids);
        l->ids[n++] = id ? id : chain_id(l, tree, &node);
    }
    return n;
}

/* ---- the document ---- */

static struct function_key function_at(const struct locations *l, uint32_t function)
{
    struct function_key key;
    size_t size;

    memcpy(&key, labels_text(&l->functions, function, &size), sizeof key);
    return key;
}

static uint32_t function_id(struct locations *l, uint32_t function)
{
    if (l->function_ids[function] == 0) {
        l->function_order[l->function_count++] = function;
        l->function_ids[function] = l->function_count;
    }
    return l->function_ids[function];
}

/* Lists the labels of a location's lines; returns their number. */
static size_t location_labels(struct locations *l, const struct location_ref *ref)
{
    size_t size;
    const char *labels;

    l->group = cli_grow(l->group, &l->group_scratch, 0, sizeof *l->group);
    if (!ref->group) {
        l->group[0] = ref->number;
        return 1;
    }
    labels = labels_text(&l->groups, ref->number, &size); /* fits: it was made there */
    memcpy(l->group, labels, size);
    return size / sizeof *l->group;
}

/* Which mappings there are must be known before the first location is written. */
static void use_mappings(struct locations *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        size_t count = location_labels(l, &l->order[i]);

        for (size_t j = 0; j < count; j++) {
            struct frame_level level = level_of(l, l->group[j]);

            mappings_use(l->mappings, level.mapping,
                         l->unsymbolized ? 0 : l->label_flags[l->group[j]]);
        }
    }
    mappings_number(l->mappings);
}

static void write_locations(struct locations *l, struct envelope *e)
{
    struct envelope_line *lines = NULL;
    size_t capacity = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        size_t count = location_labels(l, &l->order[i]);
        struct frame_level level = level_of(l, l->group[0]);

        if (count > capacity) {
            capacity = l->group_scratch;
            lines = cli_realloc(lines, capacity, sizeof *lines);
        }
        if (level.function == NO_FUNCTION)
            count = 0;
        for (size_t j = 0; j < count; j++) {
            level = level_of(l, l->group[j]);
            lines[j] = (struct envelope_line){.function = function_id(l, level.function),
                                              .line = level.line,
                                              .column = level.column};
        }
        envelope_location(e, i + UINT64_C(1), l->mappings->items[level.mapping].id, level.address,
                          lines, count);
    }
    free(lines);
}

static void write_functions(struct locations *l, struct envelope *e)
{
    for (uint32_t i = 0; i < l->function_count; i++) {
        struct function_key key = function_at(l, l->function_order[i]);
        struct envelope_function f = {.id = i + UINT64_C(1), .start_line = key.start_line};

        f.name = stringtable_index(l->strings, key.name);
        f.system_name = stringtable_index(l->strings, key.linkage);
        f.filename = stringtable_index(l->strings, key.file);
        envelope_function(e, &f);
    }
}

static void write_mappings(struct locations *l, struct envelope *e)
{
    for (uint32_t i = 0; i < l->mappings->used_count; i++) {
        const struct mapping *m = &l->mappings->items[l->mappings->used[i]];
        /* pprof looks for names of all that is not final, //anon on disk included. */
        bool final =
            !l->unsymbolized && (!m->symbolizable || m->pseudo || (m->flags & MAPPING_NAMED));
        struct envelope_mapping out = {.id = m->id,
                                       .start = m->start,
                                       .limit = m->limit,
                                       .file_offset = m->file_offset,
                                       .has_functions = final,
                                       .has_filenames = m->flags & MAPPING_FILE_NAME,
                                       .has_line_numbers = m->flags & MAPPING_LINE,
                                       .has_inline_frames = m->flags & MAPPING_DWARF};

        out.filename = stringtable_index(l->strings, m->filename);
        out.build_id = stringtable_index(l->strings, m->build_id);
        envelope_mapping(e, &out);
    }
}

void locations_write(struct locations *l, struct envelope *e)
{
    l->function_ids = cli_zeroed(l->functions.count, sizeof *l->function_ids);
    l->function_order = cli_realloc(NULL, l->functions.count, sizeof *l->function_order);
    use_mappings(l);
    write_locations(l, e);
    write_functions(l, e);
    write_mappings(l, e);
}
