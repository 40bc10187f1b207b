/* SPDX-License-Identifier: MIT */
/* Debug information that lies in other files: a supplementary file (dwz), split files and packages of them (DWARF 5,
 * 7.3.2 and 7.3.5; GNU's earlier form of both). */
#include "dwarf_private.h"

#include "dwarf_numbers.h"

#include <stdlib.h>

int symint_dwarf_file_open(struct symint_dwarf *d, struct dwarf_file *f,
                           struct symint_debug_file *file, uint32_t number, bool split)
{
    *f = (struct dwarf_file){.owner = d, .file = *file, .number = number};
    *file = (struct symint_debug_file){.fd = -1};
    int rc = symint_debug_open(f->file.elf, split, &f->sections);
    symint_abbrevs_allow(f, true);
    symint_ranges_allow(f, true, 0);
    return rc;
}

void symint_dwarf_file_close(struct dwarf_file *f)
{
    for (uint32_t i = 0; i < f->unit_count; i++)
        free(f->units[i]);
    free(f->units);
    symint_windows_free(&f->windows);
    symint_roots_done(f);
    symint_debug_close(&f->sections);
    symint_debug_file_close(&f->file);
    *f = (struct dwarf_file){.file = {.fd = -1}};
}

/* ---- the supplementary file ---- */

struct dwarf_file *symint_dwarf_alt(struct dwarf_file *f, int *rc)
{
    struct symint_dwarf *d = f->owner;
    struct symint_debug_file found = {.fd = -1};
    const char *why = "";
    *rc = 0;
    if (f != &d->main || f->alt_tried)
        return f->alt;
    f->alt_tried = true;
    *rc = symint_find_supplementary(d->arena, d->options, &f->file, &found, &why);
    if (*rc != 0) {
        f->alt_tried = false;
        return NULL;
    }
    if (found.elf == NULL) {
        *rc = why[0] != '\0' ? symint_dwarf_note(d, "%s", why) : 0;
        return NULL;
    }
    *rc = symint_dwarf_file_open(d, &d->alt, &found, FILE_ALT, false);
    if (*rc == 0)
        *rc = symint_units_list(&d->alt, &d->alt);
    for (uint32_t i = 0; *rc == 0 && i < d->alt.unit_count; i++)
        *rc = symint_unit_root(d->alt.units[i], d->arena, NULL);
    if (*rc != 0) {
        symint_dwarf_file_close(&d->alt);
        f->alt_tried = false; /* there may be memory next time */
        return NULL;
    }
    symint_roots_done(&d->alt);
    symint_abbrevs_allow(&d->alt, true);
    f->alt = &d->alt;
    return f->alt;
}

/* ---- packages ---- */

#define MAX_COLUMNS 16
/* Slots that are looked at for an id. Of a table that is filled to two thirds, as DWARF wants it, some 30 at most; one
 * that is full, and long, would be gone through for each unit. */
#define MAX_TRIES 1024

/* A number of the index. False: outside. */
static bool index_u32(struct dwarf_file *f, uint64_t at, uint32_t *out)
{
    uint8_t bytes[4];
    if (!symint_debug_peek(&f->sections, DEBUG_CU_INDEX, at, sizeof(bytes), bytes))
        return false;
    struct symint_cursor c = {.at = bytes, .end = bytes + 4, .swap = f->sections.swap};
    *out = cursor_u32(&c);
    return true;
}

static bool index_u64(struct dwarf_file *f, uint64_t at, uint64_t *out)
{
    uint8_t bytes[8];
    if (!symint_debug_peek(&f->sections, DEBUG_CU_INDEX, at, sizeof(bytes), bytes))
        return false;
    struct symint_cursor c = {.at = bytes, .end = bytes + 8, .swap = f->sections.swap};
    *out = cursor_u64(&c);
    return true;
}

struct package_row {
    uint64_t info;
    struct unit_parts parts;
};

/* The row of a unit in the index, which is a hash table with double hashing. */
static bool find_row(struct dwarf_file *f, uint64_t id, struct package_row *row)
{
    uint32_t version;
    uint32_t columns;
    uint32_t units;
    uint32_t slots;
    if (!index_u32(f, 0, &version) || !index_u32(f, 4, &columns) || !index_u32(f, 8, &units) ||
        !index_u32(f, 12, &slots))
        return false;
    if (version != 2) /* of DWARF 5: 16 bits, and as many of padding */
        version = f->sections.swap ? version >> 16 : version & 0xffff;
    if ((version != 2 && version != 5) || columns == 0 || columns > MAX_COLUMNS || slots == 0 ||
        (slots & (slots - 1)) != 0 || (uint64_t)slots * 12 > f->sections.at[DEBUG_CU_INDEX].size)
        return false;
    uint64_t numbers = 16 + (uint64_t)slots * 8;
    uint64_t ids = numbers + (uint64_t)slots * 4;
    uint64_t offsets = ids + (uint64_t)columns * 4;
    uint32_t mask = slots - 1;
    uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;
    uint32_t number = 0;
    uint32_t at = (uint32_t)id & mask;
    for (uint32_t tries = 0; tries < slots && tries < MAX_TRIES; tries++, at = (at + step) & mask) {
        uint64_t here;
        if (!index_u64(f, 16 + (uint64_t)at * 8, &here) ||
            !index_u32(f, numbers + (uint64_t)at * 4, &number) || number == 0)
            return false;
        if (here == id)
            break;
        number = 0;
    }
    if (number == 0 || number > units)
        return false;
    *row = (struct package_row){0};
    bool found = false;
    for (uint32_t i = 0; i < columns; i++) {
        uint32_t section;
        uint32_t offset;
        if (!index_u32(f, ids + (uint64_t)i * 4, &section) ||
            !index_u32(f, offsets + ((uint64_t)(number - 1) * columns + i) * 4, &offset))
            return false;
        if (section == DW_SECT_INFO) {
            row->info = offset;
            found = true;
        } else if (section == DW_SECT_ABBREV) {
            row->parts.abbrev = offset;
        } else if (section == DW_SECT_STR_OFFSETS) {
            row->parts.str_offsets = offset;
        } else if (section == DW_SECT_RNGLISTS && version == 5) {
            row->parts.rnglists = offset;
        }
    }
    return found;
}

static int open_package(struct symint_dwarf *d)
{
    struct symint_debug_file found = {.fd = -1};
    const char *why = "";
    if (d->package_tried)
        return 0;
    d->package_tried = true;
    int rc = symint_find_package(d->arena, d->options, &d->main.file, d->program, &found, &why);
    if (rc == 0 && found.elf != NULL)
        rc = symint_dwarf_file_open(d, &d->package, &found, FILE_PACKAGE, true);
    else if (rc == 0 && why[0] != '\0')
        rc = symint_dwarf_note(d, "%s", why);
    if (rc != 0) {
        symint_dwarf_file_close(&d->package);
        d->package_tried = false; /* there may be memory next time */
    }
    return rc;
}

/* ---- split units ---- */

/* Reads a candidate; it is the skeleton's if its id is. */
static int take_unit(struct symint_dwarf *d, struct dwarf_file *f, uint64_t offset,
                     const struct unit_parts *parts, struct dwarf_unit *skeleton,
                     struct dwarf_unit **out)
{
    struct dwarf_unit *u;
    *out = NULL;
    int rc = symint_unit_read(f, skeleton->main, offset, &u);
    if (rc != 0 || u == NULL)
        return rc;
    u->split = true;
    u->parts = *parts;
    u->has_addr_base = true;
    u->addr_base = skeleton->addr_base;
    u->ranges_base = skeleton->ranges_base;
    u->has_low_pc = skeleton->has_low_pc;
    u->low_pc = skeleton->low_pc;
    rc = symint_unit_root(u, d->arena, NULL);
    if (rc != 0 || u->failed || !u->has_dwo_id || u->dwo_id != skeleton->dwo_id) {
        symint_unit_leave(u);
        free(u);
        return rc;
    }
    *out = u;
    return 0;
}

/* Searches the units of a split file. */
static int find_unit(struct symint_dwarf *d, struct dwarf_file *f, struct dwarf_unit *skeleton,
                     struct dwarf_unit **out)
{
    static const struct unit_parts whole;
    uint64_t offset = 0;
    int rc = 0;
    *out = NULL;
    while (rc == 0 && *out == NULL && offset < f->sections.at[DEBUG_INFO].size) {
        struct dwarf_unit *header;
        rc = symint_unit_read(f, skeleton->main, offset, &header);
        if (rc != 0 || header == NULL)
            break;
        uint64_t end = header->end;
        free(header);
        rc = take_unit(d, f, offset, &whole, skeleton, out);
        offset = end;
    }
    return rc;
}

struct taking {
    struct symint_dwarf *d;
    struct dwarf_unit *skeleton;
    struct dwarf_unit *unit; /* the result */
};

/* Takes a split file if the skeleton's unit is in it: one of that name may be of another build. */
static int take_split(void *user, struct symint_debug_file *candidate, const char **why)
{
    struct taking *t = user;
    struct symint_dwarf *d = t->d;
    struct dwarf_unit *u = NULL;
    struct dwarf_file *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return SYM_ERR_NOMEM;
    int rc = symint_dwarf_file_open(d, f, candidate, FILE_SPLIT + t->skeleton->number, true);
    f->alt_tried = true;
    if (rc == 0)
        rc = find_unit(d, f, t->skeleton, &u);
    symint_roots_done(f);
    d->no_memory |= f->sections.no_memory;
    if (rc == 0 && u != NULL)
        rc = symint_units_add(f, u);
    if (rc == 0 && u != NULL) {
        d->split_open++;
        t->unit = u;
        return 1;
    }
    if (u != NULL) {
        symint_unit_leave(u);
        free(u);
    }
    *why = f->sections.why != NULL && f->sections.why[0] != '\0'
               ? f->sections.why
               : "it is not the split file that was built with the program";
    if (rc == 0 && d->no_memory) /* which may be all that is wrong */
        rc = SYM_ERR_NOMEM;
    *candidate = f->file;
    f->file = (struct symint_debug_file){.fd = -1};
    symint_dwarf_file_close(f);
    free(f);
    return rc;
}

static int open_split(struct symint_dwarf *d, struct dwarf_unit *skeleton, struct dwarf_unit **out)
{
    struct taking t = {.d = d, .skeleton = skeleton};
    const char *why = "";
    *out = NULL;
    if (skeleton->dwo_name == NULL)
        return 0;
    int rc = symint_find_split(d->arena, d->options, &d->main.file, d->program, skeleton->comp_dir,
                               skeleton->dwo_name, take_split, &t, &why);
    *out = t.unit;
    return rc == 0 && why[0] != '\0' ? symint_dwarf_note(d, "%s", why) : rc;
}

struct dwarf_unit *symint_dwarf_full(struct symint_dwarf *d, struct dwarf_unit *skeleton, int *rc)
{
    struct package_row row;
    *rc = 0;
    if (skeleton->full_tried || !skeleton->has_dwo_id)
        return skeleton->full;
    skeleton->full_tried = true;
    *rc = open_package(d);
    if (*rc == 0 && d->package.file.elf != NULL && find_row(&d->package, skeleton->dwo_id, &row))
        *rc = take_unit(d, &d->package, row.info, &row.parts, skeleton, &skeleton->full);
    symint_roots_done(&d->package);
    if (*rc == 0 && skeleton->full == NULL)
        *rc = open_split(d, skeleton, &skeleton->full);
    skeleton->full_tried = *rc == 0;
    return skeleton->full;
}

void symint_dwarf_drop_full(struct symint_dwarf *d, struct dwarf_unit *skeleton)
{
    struct dwarf_unit *u = skeleton->full;
    skeleton->full = NULL;
    skeleton->full_tried = false;
    if (u == NULL)
        return;
    struct dwarf_file *f = u->file;
    symint_functions_free(u->index);
    u->index = NULL;
    symint_unit_leave(u);
    if (f == &d->package) {
        free(u);
        return;
    }
    d->split_open--;
    symint_names_forget(&d->names, f); /* which may be another file when it is opened again */
    symint_dwarf_file_close(f);        /* and its unit */
    free(f);
}
