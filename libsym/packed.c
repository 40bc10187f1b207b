/* SPDX-License-Identifier: MIT */
/* Reading packed symbols. Everything is checked when the file is opened, so that lookups may believe it. */
#include "packed.h"

#include "elf_private.h"
#include "packed_format.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct symint_packed {
    uint8_t *data;
    const uint8_t *tables[PACKED_TABLES];
    uint32_t counts[PACKED_TABLES];
    const char *texts;
    uint64_t text_bytes;
    enum sym_level level;
    uint32_t flags;
    struct symint_elf elf;                               /* segments and build id only */
    struct symint_dwarf_level levels[PACKED_MAX_LEVELS]; /* of the last answer */
    struct symint_code_range pieces[2];
};

static const uint8_t *row(const struct symint_packed *p, enum packed_table table, uint32_t i)
{
    return p->tables[table] + (size_t)i * packed_row_bytes[table];
}

/* ---- checks ---- */

static bool is_reference(const struct symint_packed *p, enum packed_table table, uint32_t reference)
{
    return reference <= p->counts[table];
}

static bool is_text(const struct symint_packed *p, uint32_t reference)
{
    return reference <= p->text_bytes; /* the texts end with a NUL */
}

static const char *check_symbols(const struct symint_packed *p)
{
    for (uint32_t i = 0; i < p->counts[PACKED_SYMBOLS]; i++) {
        const uint8_t *r = row(p, PACKED_SYMBOLS, i);
        if (!is_text(p, packed_get32(r + 8)) || r[12] > SYM_ORIGIN_JIT)
            return "a symbol has a bad name or origin";
    }
    uint64_t before = 0;
    for (uint32_t i = 0; i < p->counts[PACKED_EXTENTS]; i++) {
        const uint8_t *r = row(p, PACKED_EXTENTS, i);
        uint64_t start = packed_get64(r);
        uint64_t end = packed_get64(r + 8);
        if (start < before || start >= end || packed_get32(r + 16) >= p->counts[PACKED_SYMBOLS])
            return "functions are out of order, or have no symbol";
        before = end;
    }
    return NULL;
}

/* A level's outer one is before it, so nothing goes round in circles. */
static const char *check_levels(const struct symint_packed *p, int *rc)
{
    uint32_t count = p->counts[PACKED_LEVELS];
    const char *why = NULL;
    uint16_t *depth = calloc((size_t)count + 1, sizeof(*depth));
    if (depth == NULL) {
        *rc = SYM_ERR_NOMEM;
        return NULL;
    }
    for (uint32_t i = 0; i < count && why == NULL; i++) {
        const uint8_t *r = row(p, PACKED_LEVELS, i);
        uint32_t outer = packed_get32(r);
        if (outer > i || !is_text(p, packed_get32(r + 4)) || !is_text(p, packed_get32(r + 8)))
            why = "a level refers to what is not there";
        else if (depth[outer] == PACKED_MAX_LEVELS)
            why = "levels are nested too deep";
        else
            depth[i + 1] = (uint16_t)(depth[outer] + 1);
    }
    free(depth);
    return why;
}

static const char *check_addresses(const struct symint_packed *p)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < p->counts[PACKED_ADDRESSES]; i++) {
        const uint8_t *r = row(p, PACKED_ADDRESSES, i);
        uint64_t vaddr = packed_get64(r);
        if (i > 0 && vaddr <= before)
            return "addresses are out of order";
        if (!is_reference(p, PACKED_SYMBOLS, packed_get32(r + 8)) ||
            !is_reference(p, PACKED_LEVELS, packed_get32(r + 12)) ||
            !is_reference(p, PACKED_PIECES, packed_get32(r + 16)))
            return "an address refers to what is not there";
        before = vaddr;
    }
    return NULL;
}

/* Where the tables are. */
static const char *lay_out(struct symint_packed *p, size_t size)
{
    const uint8_t *at = p->data + PACKED_HEADER_BYTES;
    uint64_t left = size - PACKED_HEADER_BYTES;
    for (size_t t = 0; t < PACKED_TABLES; t++) {
        p->counts[t] = packed_get32(p->data + PACKED_AT_COUNTS + 4 * t);
        uint64_t bytes = (uint64_t)p->counts[t] * packed_row_bytes[t];
        if (bytes > left || p->counts[t] == UINT32_MAX)
            return "a table ends behind the end of the file";
        p->tables[t] = at;
        at += bytes;
        left -= bytes;
    }
    p->texts = (const char *)at;
    p->text_bytes = packed_get64(p->data + PACKED_AT_TEXT_BYTES);
    if (p->text_bytes != left || (left > 0 && at[left - 1] != 0))
        return "its texts do not end with the file";
    return NULL;
}

uint32_t symint_packed_checksum(const uint8_t *data, size_t size)
{
    return (uint32_t)crc32_z(0, data + PACKED_AT_SIZE, size - PACKED_AT_SIZE);
}

static const char *check_header(struct symint_packed *p, size_t size)
{
    const uint8_t *h = p->data;
    if (size < PACKED_HEADER_BYTES || memcmp(h, PACKED_MAGIC, strlen(PACKED_MAGIC)) != 0)
        return "not a file of packed symbols";
    if (packed_get32(h + PACKED_AT_VERSION) != PACKED_VERSION)
        return "a version of packed symbols that is not known here";
    if (packed_get64(h + PACKED_AT_SIZE) != size)
        return "cut off";
    uint32_t level = packed_get32(h + PACKED_AT_LEVEL);
    uint32_t id_size = h[PACKED_AT_BUILD_ID_SIZE] | (uint32_t)h[PACKED_AT_BUILD_ID_SIZE + 1] << 8;
    if (level < SYM_LEVEL_NAMES || level > SYM_LEVEL_LINES || id_size > SYMINT_MAX_BUILD_ID)
        return "its header contradicts itself";
    if (symint_packed_checksum(h, size) != packed_get32(h + PACKED_AT_CRC))
        return "its checksum is not that of its bytes";
    p->level = (enum sym_level)level;
    p->flags = packed_get32(h + PACKED_AT_FLAGS);
    p->elf.machine = (uint16_t)(h[PACKED_AT_MACHINE] | h[PACKED_AT_MACHINE + 1] << 8);
    p->elf.detached = (p->flags & PACKED_FILE_DETACHED) != 0;
    p->elf.relocatable = (p->flags & PACKED_FILE_RELOCATABLE) != 0;
    p->elf.build_id_size = id_size;
    memcpy(p->elf.build_id, h + PACKED_AT_BUILD_ID, SYMINT_MAX_BUILD_ID);
    return NULL;
}

/* 0 or SYM_ERR_NOMEM. */
static int read_segments(struct symint_packed *p)
{
    uint32_t count = p->counts[PACKED_SEGMENTS];
    p->elf.segments = calloc((size_t)count + 1, sizeof(*p->elf.segments));
    if (p->elf.segments == NULL)
        return SYM_ERR_NOMEM;
    p->elf.segment_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *r = row(p, PACKED_SEGMENTS, i);
        p->elf.segments[i] = (struct segment){
            .offset = packed_get64(r),
            .size = packed_get64(r + 8),
            .memory_size = packed_get64(r + 16),
            .vaddr = packed_get64(r + 24),
            .align = packed_get64(r + 32),
            .executable = packed_get64(r + 40) != 0,
        };
    }
    return 0;
}

int symint_packed_open(uint8_t *data, size_t size, struct symint_packed **out, const char **why)
{
    struct symint_packed *p = calloc(1, sizeof(*p));
    int rc = p == NULL ? SYM_ERR_NOMEM : 0;
    *out = NULL;
    *why = NULL;
    if (p == NULL) {
        free(data);
        return rc;
    }
    p->data = data;
    *why = check_header(p, size);
    if (*why == NULL)
        *why = lay_out(p, size);
    if (*why == NULL)
        *why = check_symbols(p);
    if (*why == NULL)
        *why = check_levels(p, &rc);
    if (*why == NULL)
        *why = check_addresses(p);
    if (*why == NULL && rc == 0)
        rc = read_segments(p);
    if (*why != NULL || rc != 0) {
        symint_packed_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

void symint_packed_free(struct symint_packed *p)
{
    if (p == NULL)
        return;
    free(p->elf.segments);
    free(p->data);
    free(p);
}

enum sym_level symint_packed_level(const struct symint_packed *p)
{
    return p->level;
}

uint32_t symint_packed_count(const struct symint_packed *p)
{
    return p->counts[PACKED_ADDRESSES];
}

uint64_t symint_packed_address(const struct symint_packed *p, uint32_t i)
{
    return packed_get64(row(p, PACKED_ADDRESSES, i));
}

uint32_t symint_packed_extent_count(const struct symint_packed *p)
{
    return p->counts[PACKED_EXTENTS];
}

const struct symint_elf *symint_packed_elf(const struct symint_packed *p)
{
    return &p->elf;
}

bool symint_packed_is_of(const struct symint_packed *p, const uint8_t *build_id, size_t size)
{
    if ((p->flags & PACKED_FILE_KERNEL) != 0)
        return build_id == NULL;
    return build_id != NULL &&
           (p->elf.build_id_size == 0 ||
            (p->elf.build_id_size == size && memcmp(p->elf.build_id, build_id, size) == 0));
}

/* ---- lookups ---- */

bool symint_packed_vaddr(const struct symint_packed *p, uint64_t file_offset, uint64_t size,
                         uint64_t offset, uint64_t *vaddr)
{
    if ((p->flags & PACKED_FILE_KERNEL) != 0) {
        *vaddr = offset;
        return true;
    }
    struct symint_place place = symint_elf_place(&p->elf, file_offset, size);
    return symint_elf_vaddr(&p->elf, offset, &place, vaddr);
}

/* The last row of a table that does not begin above an address. False: none. */
static bool find_row(const struct symint_packed *p, enum packed_table table, uint64_t vaddr,
                     const uint8_t **out)
{
    uint32_t low = 0;
    uint32_t high = p->counts[table];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (packed_get64(row(p, table, middle)) <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    *out = row(p, table, low - 1);
    return true;
}

static const uint8_t *find_address(const struct symint_packed *p, uint64_t vaddr)
{
    const uint8_t *r;
    return find_row(p, PACKED_ADDRESSES, vaddr, &r) && packed_get64(r) == vaddr ? r : NULL;
}

bool symint_packed_has(const struct symint_packed *p, uint64_t vaddr, enum sym_level level)
{
    return p->level >= level && find_address(p, vaddr) != NULL;
}

/* A text as it is interned; NULL with *rc 0: there is none. */
static struct symint_text *text_of(const struct symint_packed *p, struct symint_strings *strings,
                                   uint32_t reference, int *rc)
{
    if (reference == 0)
        return NULL;
    const char *text = p->texts + reference - 1;
    struct symint_text *t = symint_intern(strings, text, strlen(text));
    if (t == NULL)
        *rc = SYM_ERR_NOMEM;
    return t;
}

static void set_symbol(const struct symint_packed *p, uint32_t index, struct symint_facts *out)
{
    const uint8_t *r = row(p, PACKED_SYMBOLS, index);
    uint32_t name = packed_get32(r + 8);
    out->has_symbol = true;
    out->symbol.start = packed_get64(r);
    out->symbol.origin = (enum sym_origin)r[12];
    if (name > 0) {
        out->symbol.name = p->texts + name - 1;
        out->symbol.name_size = strlen(out->symbol.name);
    }
    out->symbol_unverified = (r[13] & PACKED_SYMBOL_UNVERIFIED) != 0;
    out->name_stays = (r[13] & PACKED_SYMBOL_NAME_STAYS) != 0;
}

static bool set_extent(const struct symint_packed *p, uint64_t vaddr, uint32_t *symbol,
                       struct symint_facts *out)
{
    const uint8_t *r;
    if (!find_row(p, PACKED_EXTENTS, vaddr, &r) || vaddr >= packed_get64(r + 8))
        return false;
    out->extent_start = packed_get64(r);
    out->extent_end = packed_get64(r + 8);
    *symbol = packed_get32(r + 16);
    return true;
}

static int set_chain(struct symint_packed *p, struct symint_strings *strings, uint32_t level,
                     struct symint_facts *out)
{
    size_t count = 0;
    int rc = 0;
    for (; level != 0 && rc == 0; level = packed_get32(row(p, PACKED_LEVELS, level - 1))) {
        const uint8_t *r = row(p, PACKED_LEVELS, level - 1);
        struct symint_dwarf_level *l = &p->levels[count++];
        *l = (struct symint_dwarf_level){
            .name = text_of(p, strings, packed_get32(r + 4), &rc),
            .linkage = (packed_get32(r + 24) & PACKED_LEVEL_LINKAGE) != 0,
            .line = packed_get32(r + 12),
            .column = packed_get32(r + 16),
            .start_line = packed_get32(r + 20),
        };
        const struct symint_text *file = text_of(p, strings, packed_get32(r + 8), &rc);
        l->file = file != NULL ? file->text : NULL;
    }
    out->chain.levels = p->levels;
    out->chain.count = count;
    return rc;
}

/* What lookups in debug information leave out: see build_chain of dwarf.c. The last level's line is that of the call in
 * it when something is inlined there. */
static void leave_out(struct symint_packed *p, const struct sym_options *options,
                      struct symint_dwarf_chain *chain)
{
    if (options->no_inlines && chain->count > 1) {
        chain->levels += chain->count - 1;
        chain->count = 1;
    } else if (options->no_lines && chain->count > 0) {
        p->levels[0].file = NULL;
        p->levels[0].line = 0;
        p->levels[0].column = 0;
    }
}

int symint_packed_exact(struct symint_packed *p, struct symint_strings *strings,
                        const struct sym_options *options, uint64_t vaddr, struct symint_facts *out)
{
    const uint8_t *r = find_address(p, vaddr);
    if (r == NULL)
        return 0;
    *out = (struct symint_facts){.vaddr = vaddr};
    uint32_t symbol = packed_get32(r + 8);
    uint32_t level = packed_get32(r + 12);
    uint32_t piece = packed_get32(r + 16);
    uint32_t flags = packed_get32(r + 20);
    uint32_t around;
    if (symbol == 0 && level == 0)
        return 0;
    if (symbol > 0) {
        set_symbol(p, symbol - 1, out);
        if (!set_extent(p, vaddr, &around, out)) {
            out->extent_start = vaddr;
            out->extent_end = vaddr + 1;
        }
    }
    int rc = set_chain(p, strings, level, out);
    if (options != NULL)
        leave_out(p, options, &out->chain);
    out->chain.function = (flags & PACKED_ADDRESS_FUNCTION) != 0;
    out->chain_unverified = (flags & PACKED_ADDRESS_UNVERIFIED) != 0;
    out->final = p->level >= SYM_LEVEL_LINES && (flags & PACKED_ADDRESS_FINAL) != 0;
    out->chain.pieces = p->pieces;
    if ((flags & PACKED_ADDRESS_STARTS) != 0)
        p->pieces[out->chain.piece_count++] =
            (struct symint_code_range){out->symbol.start, out->symbol.start + 1};
    if (piece > 0) {
        const uint8_t *q = row(p, PACKED_PIECES, piece - 1);
        p->pieces[out->chain.piece_count++] =
            (struct symint_code_range){packed_get64(q), packed_get64(q + 8)};
    }
    return rc == 0 ? 1 : rc;
}

void symint_packed_extent(const struct symint_packed *p, uint32_t i, struct symint_facts *out)
{
    (void)symint_packed_around(p, packed_get64(row(p, PACKED_EXTENTS, i)), out);
}

int symint_packed_around(const struct symint_packed *p, uint64_t vaddr, struct symint_facts *out)
{
    uint32_t symbol;
    *out = (struct symint_facts){.vaddr = vaddr};
    if (!set_extent(p, vaddr, &symbol, out))
        return 0;
    set_symbol(p, symbol, out);
    return 1;
}
