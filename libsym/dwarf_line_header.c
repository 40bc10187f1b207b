/* SPDX-License-Identifier: MIT */
/* The header of a line table: how its program is to be read, and the names of files. */
#include "dwarf_line_private.h"

#include "elf_private.h"

#include <stdlib.h>

#define FORM_BLOCK2 0x03
#define FORM_BLOCK4 0x04
#define FORM_DATA2 0x05
#define FORM_DATA4 0x06
#define FORM_DATA8 0x07
#define FORM_STRING 0x08
#define FORM_BLOCK 0x09
#define FORM_BLOCK1 0x0a
#define FORM_DATA1 0x0b
#define FORM_SDATA 0x0d
#define FORM_STRP 0x0e
#define FORM_UDATA 0x0f
#define FORM_SEC_OFFSET 0x17
#define FORM_STRX 0x1a
#define FORM_STRP_SUP 0x1d
#define FORM_DATA16 0x1e
#define FORM_LINE_STRP 0x1f
#define FORM_STRX1 0x25
#define FORM_STRX2 0x26
#define FORM_STRX3 0x27
#define FORM_STRX4 0x28
#define FORM_GNU_STR_INDEX 0x1f02
#define FORM_GNU_STRP_ALT 0x1f21

#define CONTENT_PATH 1
#define CONTENT_DIRECTORY 2

/* Reading a header: the cursor and where its bytes are in the section. */
struct header {
    struct symint_cursor c;
    const uint8_t *begin; /* of the table */
    uint64_t offset;
    bool wide; /* 64-bit DWARF */
};

/* A column of the tables of version 5. */
struct column {
    uint16_t content, form;
};

static int add_directory(struct symint_line_table *t, const struct line_name *name)
{
    struct line_names *d = &t->directories;
    struct line_name *at = symint_grow(d->at, d->count, &d->capacity, sizeof(*at), 8);
    if (at == NULL)
        return SYM_ERR_NOMEM;
    d->at = at;
    d->at[d->count++] = *name;
    return 0;
}

static int add_file(struct symint_line_table *t, const struct line_name *name)
{
    struct line_files *f = &t->files;
    struct line_file *at = symint_grow(f->at, f->count, &f->capacity, sizeof(*at), 8);
    if (at == NULL)
        return SYM_ERR_NOMEM;
    f->at = at;
    f->at[f->count++] = (struct line_file){.name = *name};
    return 0;
}

static uint32_t clamp(uint64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

int symint_line_add_file(struct symint_line_table *t, struct symint_cursor *c, uint64_t offset)
{
    size_t size;
    struct line_name name = {.offset = offset, .section = DEBUG_LINE};
    (void)cursor_text(c, &size);
    name.directory = clamp(cursor_uleb(c));
    cursor_skip_leb(c); /* time */
    cursor_skip_leb(c); /* size */
    return c->failed ? 0 : add_file(t, &name);
}

static uint64_t section_offset(const struct header *h)
{
    return h->offset + (uint64_t)(h->c.at - h->begin);
}

/* The tables up to version 4: texts, each ended by an empty one. */
static int read_old_names(struct symint_line_table *t, struct header *h)
{
    int status = 0;
    while (status == 0 && cursor_left(&h->c) > 0 && *h->c.at != 0) {
        size_t size;
        struct line_name name = {.offset = section_offset(h), .section = DEBUG_LINE};
        if (cursor_text(&h->c, &size) != NULL)
            status = add_directory(t, &name);
    }
    (void)cursor_u8(&h->c);
    while (status == 0 && cursor_left(&h->c) > 0 && *h->c.at != 0)
        status = symint_line_add_file(t, &h->c, section_offset(h));
    (void)cursor_u8(&h->c);
    return status;
}

/* Reads a text or number. A text only sets *name, a number is returned; forms that say something else give 0. */
static uint64_t read_form(struct header *h, unsigned form, struct line_name *name)
{
    struct symint_cursor *c = &h->c;
    size_t size;
    switch (form) {
    case FORM_STRING:
        *name = (struct line_name){.offset = section_offset(h), .section = DEBUG_LINE};
        (void)cursor_text(c, &size);
        return 0;
    case FORM_LINE_STRP:
        *name = (struct line_name){.offset = cursor_offset(c, h->wide), .section = DEBUG_LINE_STR};
        return 0;
    case FORM_STRP:
        *name = (struct line_name){.offset = cursor_offset(c, h->wide), .section = DEBUG_STR};
        return 0;
    case FORM_STRP_SUP:
    case FORM_GNU_STRP_ALT:
    case FORM_SEC_OFFSET:
        cursor_skip(c, h->wide ? 8 : 4);
        return 0;
    case FORM_STRX:
    case FORM_GNU_STR_INDEX:
    case FORM_SDATA:
        cursor_skip_leb(c);
        return 0;
    case FORM_STRX1:
    case FORM_STRX2:
    case FORM_STRX3:
    case FORM_STRX4:
        cursor_skip(c, form - FORM_STRX1 + 1);
        return 0;
    case FORM_UDATA:
        return cursor_uleb(c);
    case FORM_DATA1:
        return cursor_u8(c);
    case FORM_DATA2:
        return cursor_u16(c);
    case FORM_DATA4:
        return cursor_u32(c);
    case FORM_DATA8:
        return cursor_u64(c);
    case FORM_DATA16:
        cursor_skip(c, 16);
        return 0;
    case FORM_BLOCK:
        cursor_skip(c, cursor_uleb(c));
        return 0;
    case FORM_BLOCK1:
        cursor_skip(c, cursor_u8(c));
        return 0;
    case FORM_BLOCK2:
        cursor_skip(c, cursor_u16(c));
        return 0;
    case FORM_BLOCK4:
        cursor_skip(c, cursor_u32(c));
        return 0;
    default:
        cursor_fail(c);
        return 0;
    }
}

/* One table of version 5: the columns of its entries, then the entries. */
static int read_names(struct symint_line_table *t, struct header *h,
                      int (*add)(struct symint_line_table *, const struct line_name *))
{
    struct column columns[UINT8_MAX];
    unsigned width = cursor_u8(&h->c);
    for (unsigned i = 0; i < width; i++) {
        uint64_t content = cursor_uleb(&h->c);
        uint64_t form = cursor_uleb(&h->c);
        columns[i].content = content < UINT16_MAX ? (uint16_t)content : UINT16_MAX;
        columns[i].form = form < UINT16_MAX ? (uint16_t)form : UINT16_MAX;
    }
    uint64_t count = cursor_uleb(&h->c);
    /* Every form takes at least a byte, so that entries do not outnumber the bytes. */
    if (count > cursor_left(&h->c) / (width == 0 ? 1 : width) || (width == 0 && count > 0))
        cursor_fail(&h->c);
    int status = 0;
    for (uint64_t i = 0; i < count && status == 0 && !h->c.failed; i++) {
        struct line_name name = {.section = DEBUG_IDS};
        uint32_t directory = 0;
        for (unsigned k = 0; k < width; k++) {
            struct line_name text = {.section = DEBUG_IDS};
            uint64_t number = read_form(h, columns[k].form, &text);
            if (columns[k].content == CONTENT_PATH)
                name = text;
            else if (columns[k].content == CONTENT_DIRECTORY)
                directory = clamp(number);
        }
        name.directory = directory;
        if (!h->c.failed)
            status = add(t, &name);
    }
    return status;
}

/* Reads the length and says how much of the section the table has. */
static bool read_size(struct symint_line_table *t, struct header *h)
{
    uint64_t section = t->sections->at[DEBUG_LINE].size;
    uint64_t left = t->offset < section ? section - t->offset : 0;
    uint64_t window = left < 12 ? left : 12;
    const uint8_t *begin = symint_debug_bytes(t->sections, DEBUG_LINE, t->offset, window);
    if (begin == NULL)
        return false;
    h->c = (struct symint_cursor){begin, begin + window, t->sections->swap, false};
    uint64_t length = cursor_initial_length(&h->c, &h->wide);
    t->size = (uint64_t)(h->c.at - begin);
    if (h->c.failed || length > left - t->size)
        return false;
    t->size += length;
    return true;
}

/* Points the cursor behind the length of the header, ends it where the program begins. */
static bool read_header_size(struct symint_line_table *t, struct header *h)
{
    uint64_t at = h->wide ? 12 : 4;
    uint64_t fixed = at + 2 + 2 + (h->wide ? 8 : 4); /* as long as it can be in version 5 */
    if (fixed > t->size)
        fixed = t->size;
    for (int pass = 0; pass < 2; pass++) {
        uint64_t want = pass == 0 ? fixed : t->program;
        h->begin = symint_debug_bytes(t->sections, DEBUG_LINE, t->offset, want);
        if (h->begin == NULL)
            return false;
        h->c = (struct symint_cursor){h->begin + at, h->begin + want, t->sections->swap, false};
        t->version = cursor_u16(&h->c);
        if (t->version < 2 || t->version > 5)
            return false;
        if (t->version == 5)
            cursor_skip(&h->c, 2); /* sizes of addresses and of segment selectors */
        uint64_t length = cursor_offset(&h->c, h->wide);
        uint64_t here = (uint64_t)(h->c.at - h->begin);
        if (h->c.failed || length > t->size - here)
            return false;
        t->program = here + length;
    }
    return true;
}

/* False: it is damaged. */
static bool read_numbers(struct symint_line_table *t, struct header *h)
{
    struct symint_cursor *c = &h->c;
    t->min_instruction_length = cursor_u8(c);
    t->operations_per_instruction = t->version >= 4 ? cursor_u8(c) : 1;
    if (t->operations_per_instruction == 0)
        t->operations_per_instruction = 1;
    (void)cursor_u8(c); /* default_is_stmt */
    t->line_base = (int8_t)cursor_u8(c);
    t->line_range = cursor_u8(c);
    t->opcode_base = cursor_u8(c);
    t->lengths = (uint64_t)(c->at - h->begin);
    if (t->line_range == 0 || t->opcode_base == 0)
        return false;
    cursor_skip(c, t->opcode_base - 1u);
    return !c->failed;
}

/* 0, with *good; SYM_ERR_NOMEM. */
static int read_header(struct symint_line_table *t, bool *good)
{
    struct header h = {.offset = t->offset};
    *good = false;
    if (!read_size(t, &h) || !read_header_size(t, &h) || !read_numbers(t, &h))
        return 0;
    int status;
    if (t->version < 5) {
        status = read_old_names(t, &h);
    } else {
        status = read_names(t, &h, add_directory);
        if (status == 0 && !h.c.failed)
            status = read_names(t, &h, add_file);
    }
    *good = !h.c.failed;
    return status;
}

int symint_line_open(struct symint_debug_sections *s, uint64_t offset, unsigned address_size,
                     struct symint_line_table **out)
{
    (void)address_size; /* every opcode says how long its address is */
    *out = NULL;
    struct symint_line_table *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return SYM_ERR_NOMEM;
    t->sections = s;
    t->offset = offset;
    bool good;
    int status = read_header(t, &good);
    if (status == 0 && good)
        *out = t;
    else
        symint_line_free(t);
    return status;
}

uint64_t symint_line_size(struct symint_debug_sections *s, uint64_t offset)
{
    struct symint_line_table t = {.sections = s, .offset = offset};
    struct header h = {.offset = offset};
    return read_size(&t, &h) ? t.size : 0;
}

void symint_line_free(struct symint_line_table *t)
{
    if (t == NULL)
        return;
    free(t->directories.at);
    free(t->files.at);
    free(t->rows);
    free(t->sequences);
    free(t->wide);
    free(t);
}

uint64_t symint_line_bytes(const struct symint_line_table *t)
{
    return sizeof(*t) + t->directories.capacity * sizeof(*t->directories.at) +
           t->files.capacity * sizeof(*t->files.at) + t->row_count * sizeof(*t->rows) +
           t->sequence_count * sizeof(*t->sequences) + t->wide_count * sizeof(*t->wide);
}

/* ---- paths ---- */

struct part {
    const char *text; /* NULL: there is none */
    size_t size;
};

static struct part text_of(struct symint_line_table *t, const struct line_name *name)
{
    struct part p = {NULL, 0};
    if (name->section < DEBUG_IDS)
        p.text = symint_debug_text(t->sections, name->section, name->offset, &p.size);
    if (p.text == NULL || p.size == 0)
        return (struct part){NULL, 0};
    return p;
}

static bool is_absolute(const struct part *p)
{
    if (p->text == NULL)
        return false;
    if (p->text[0] == '/')
        return true;
    /* Of a compiler that ran on Windows. */
    char letter = (char)(p->text[0] | 0x20);
    return p->size > 2 && letter >= 'a' && letter <= 'z' && p->text[1] == ':' &&
           (p->text[2] == '\\' || p->text[2] == '/');
}

static bool same(const struct part *a, const struct part *b)
{
    return a->text != NULL && b->text != NULL && a->size == b->size &&
           memcmp(a->text, b->text, a->size) == 0;
}

/* Writes a part behind `used` bytes, without "." and empty components. */
static size_t append(char *to, size_t used, const struct part *p, bool last)
{
    if (used > 0 && to[used - 1] != '/')
        to[used++] = '/';
    for (size_t i = 0; i < p->size;) {
        bool first = used == 0 || to[used - 1] == '/';
        bool ends = i + 1 == p->size ? !last : p->text[i + 1] == '/';
        if (p->text[i] == '/' && used > 0 && first)
            i++;
        else if (first && p->text[i] == '.' && ends)
            i += i + 1 == p->size ? 1 : 2;
        else
            to[used++] = p->text[i++];
    }
    return used;
}

/* comp_dir / directory / name, of which the last absolute one and those behind it count. */
static int join(struct symint_strings *strings, const struct part *parts, size_t count,
                const char **path)
{
    size_t first = 0;
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_absolute(&parts[i]))
            first = i;
        size += parts[i].size + 1;
    }
    if (size > SYMINT_MAX_NAME)
        return 0;
    char *text = malloc(size);
    if (text == NULL)
        return SYM_ERR_NOMEM;
    size_t used = 0;
    for (size_t i = first; i < count; i++)
        if (parts[i].text != NULL)
            used = append(text, used, &parts[i], i + 1 == count);
    struct symint_text *interned = used > 0 ? symint_intern(strings, text, used) : NULL;
    free(text);
    if (interned != NULL)
        *path = interned->text;
    return used > 0 && interned == NULL ? SYM_ERR_NOMEM : 0;
}

int symint_line_path(struct symint_line_table *t, struct symint_strings *strings,
                     const char *comp_dir, uint32_t file, const char **path)
{
    *path = NULL;
    uint32_t base = t->version < 5 ? 1 : 0;
    if (file < base || file - base >= t->files.count)
        return 0;
    struct line_file *f = &t->files.at[file - base];
    if (f->asked) {
        *path = f->path;
        return 0;
    }
    struct part parts[3] = {{comp_dir, comp_dir != NULL ? strlen(comp_dir) : 0}};
    struct part own = {NULL, 0}; /* version 5 says the compiler's directory itself */
    if (t->version == 5 && t->directories.count > 0)
        own = text_of(t, &t->directories.at[0]);
    if (parts[0].size == 0)
        parts[0] = own;
    uint64_t directory = f->name.directory;
    if (directory >= base && directory - base < t->directories.count)
        parts[1] = text_of(t, &t->directories.at[directory - base]);
    if (t->version == 5 && directory == 0 && same(&parts[0], &parts[1]))
        parts[1] = (struct part){NULL, 0}; /* relative, and not to itself */
    parts[2] = text_of(t, &f->name);
    int status = parts[2].text != NULL ? join(strings, parts, 3, &f->path) : 0;
    f->asked = status == 0;
    *path = f->path;
    return status;
}
