/* SPDX-License-Identifier: MIT */
/*
 * Writing packed symbols. Addresses are gathered in any order; in the end everything is numbered in the order in which
 * sorted addresses need it, so that the same addresses give the same bytes.
 */
#include "packed.h"

#include "elf_private.h"
#include "packed_format.h"

#include <stdlib.h>

#define NONE UINT32_MAX
#define MAX_FILE_BYTES ((uint64_t)1 << 30)

struct packed_symbol {
    uint64_t start;
    const struct symint_text *name; /* NULL: none */
    uint8_t origin, flags;
    uint32_t number; /* in the file; NONE: not there yet */
};

struct packed_extent {
    uint64_t start, end;
    uint32_t symbol;
};

struct packed_level {
    uint32_t outer; /* NONE: it is the function */
    const struct symint_text *name, *file;
    uint32_t line, column, start_line;
    bool linkage;
    uint32_t number;
};

struct packed_address {
    uint64_t vaddr;
    uint32_t symbol, level; /* NONE: none */
    uint32_t flags;
    struct symint_code_range piece; /* empty: none */
};

/* Rows that are to be found again by what they say. */
struct hashed {
    uint32_t *slots; /* index + 1 */
    uint32_t slot_count;
};

struct symint_packer {
    enum sym_level level;
    uint32_t file_flags;
    uint16_t machine;
    uint8_t build_id[SYMINT_MAX_BUILD_ID];
    size_t build_id_size;
    struct segment *segments;
    uint32_t segment_count;

    struct symint_strings strings;
    struct packed_symbol *symbols;
    struct packed_extent *extents; /* of each address that has a symbol */
    struct packed_level *levels;
    struct packed_address *addresses;
    uint32_t symbol_count, extent_count, level_count, address_count;
    size_t symbol_capacity, extent_capacity, level_capacity, address_capacity;
    struct hashed symbol_slots, level_slots;
};

struct symint_packer *symint_packer_new(enum sym_level level, const struct symint_elf *elf,
                                        uint64_t seed)
{
    struct symint_packer *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->level = level;
    p->strings.seed = seed;
    if (elf == NULL) {
        p->file_flags = PACKED_FILE_KERNEL;
        return p;
    }
    p->file_flags |= elf->detached ? PACKED_FILE_DETACHED : 0;
    p->file_flags |= elf->relocatable ? PACKED_FILE_RELOCATABLE : 0;
    p->machine = elf->machine;
    p->build_id_size = elf->build_id_size;
    memcpy(p->build_id, elf->build_id, elf->build_id_size);
    p->segments = malloc(((size_t)elf->segment_count + 1) * sizeof(*p->segments));
    if (p->segments == NULL) {
        free(p);
        return NULL;
    }
    p->segment_count = elf->segment_count;
    if (elf->segment_count > 0)
        memcpy(p->segments, elf->segments, elf->segment_count * sizeof(*p->segments));
    return p;
}

void symint_packer_free(struct symint_packer *p)
{
    if (p == NULL)
        return;
    free(p->segments);
    free(p->symbols);
    free(p->extents);
    free(p->levels);
    free(p->addresses);
    free(p->symbol_slots.slots);
    free(p->level_slots.slots);
    symint_strings_free(&p->strings);
    free(p);
}

/* ---- gathering ---- */

/* Rows with room for one more; without, the same rows and *rc tells why. */
static void *make_room(void *rows, uint32_t count, size_t *capacity, size_t row_bytes, int *rc)
{
    if (*rc == 0 && count >= UINT32_MAX / 4)
        *rc = SYM_ERR_LIMIT;
    void *grown = *rc == 0 ? symint_grow(rows, count, capacity, row_bytes, 256) : rows;
    if (grown != NULL)
        return grown;
    *rc = SYM_ERR_NOMEM;
    return rows;
}

static uint64_t symbol_hash(const struct packed_symbol *s)
{
    return symint_mix(s->start ^ (uint64_t)s->origin << 56 ^ (uint64_t)s->flags << 48 ^
                      (s->name != NULL ? s->name->hash : 0));
}

static bool same_symbol(const struct packed_symbol *a, const struct packed_symbol *b)
{
    return a->start == b->start && a->name == b->name && a->origin == b->origin &&
           a->flags == b->flags;
}

static uint64_t level_hash(const struct packed_level *l)
{
    uint64_t h = symint_mix((uint64_t)l->outer << 32 | l->line);
    h = symint_mix(h ^ (l->name != NULL ? l->name->hash : 1) ^ (uint64_t)l->column << 40);
    return symint_mix(h ^ (l->file != NULL ? l->file->hash : 1) ^ l->start_line);
}

static bool same_level(const struct packed_level *a, const struct packed_level *b)
{
    return a->outer == b->outer && a->name == b->name && a->file == b->file && a->line == b->line &&
           a->column == b->column && a->start_line == b->start_line && a->linkage == b->linkage;
}

/* Makes room for one more row among the slots; rehash tells a row's hash. */
static int grow_slots(struct hashed *h, uint32_t count, const struct symint_packer *p,
                      uint64_t (*rehash)(const struct symint_packer *p, uint32_t i))
{
    if (count < h->slot_count / 2)
        return 0;
    uint32_t slot_count = h->slot_count == 0 ? 512 : h->slot_count * 2;
    uint32_t *slots = calloc(slot_count, sizeof(*slots));
    if (slots == NULL)
        return SYM_ERR_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (uint32_t)rehash(p, i) & (slot_count - 1);
        while (slots[at] != 0)
            at = (at + 1) & (slot_count - 1);
        slots[at] = i + 1;
    }
    free(h->slots);
    h->slots = slots;
    h->slot_count = slot_count;
    return 0;
}

static uint64_t rehash_symbol(const struct symint_packer *p, uint32_t i)
{
    return symbol_hash(&p->symbols[i]);
}

static uint64_t rehash_level(const struct symint_packer *p, uint32_t i)
{
    return level_hash(&p->levels[i]);
}

static int keep_text(struct symint_packer *p, const char *text, size_t size,
                     const struct symint_text **out)
{
    *out = NULL;
    if (text == NULL)
        return 0;
    *out = symint_intern_name(&p->strings, text, size);
    return *out == NULL ? SYM_ERR_NOMEM : 0;
}

static int add_symbol(struct symint_packer *p, const struct symint_facts *f, uint32_t *out)
{
    struct packed_symbol s = {
        .start = f->symbol.start, .origin = (uint8_t)f->symbol.origin, .number = NONE};
    s.flags |= f->symbol_unverified ? PACKED_SYMBOL_UNVERIFIED : 0;
    s.flags |= f->name_stays ? PACKED_SYMBOL_NAME_STAYS : 0;
    int rc = keep_text(p, f->symbol.name, f->symbol.name_size, &s.name);
    if (rc == 0)
        rc = grow_slots(&p->symbol_slots, p->symbol_count, p, rehash_symbol);
    p->symbols =
        make_room(p->symbols, p->symbol_count, &p->symbol_capacity, sizeof(*p->symbols), &rc);
    if (rc != 0)
        return rc;
    uint32_t mask = p->symbol_slots.slot_count - 1;
    uint32_t at = (uint32_t)symbol_hash(&s) & mask;
    for (; p->symbol_slots.slots[at] != 0; at = (at + 1) & mask) {
        *out = p->symbol_slots.slots[at] - 1;
        if (same_symbol(&p->symbols[*out], &s))
            return 0;
    }
    *out = p->symbol_count;
    p->symbols[p->symbol_count++] = s;
    p->symbol_slots.slots[at] = p->symbol_count;
    return 0;
}

static int add_level(struct symint_packer *p, const struct symint_dwarf_level *level,
                     uint32_t outer, bool place, uint32_t *out)
{
    struct packed_level l = {.outer = outer, .linkage = level->linkage, .number = NONE};
    int rc = 0;
    if (level->name != NULL)
        rc = keep_text(p, level->name->text, level->name->size, &l.name);
    if (place) {
        l.line = level->line;
        l.column = level->column;
        l.start_line = level->start_line;
        if (rc == 0 && level->file != NULL)
            rc = keep_text(p, level->file, strlen(level->file), &l.file);
    }
    if (rc == 0)
        rc = grow_slots(&p->level_slots, p->level_count, p, rehash_level);
    p->levels = make_room(p->levels, p->level_count, &p->level_capacity, sizeof(*p->levels), &rc);
    if (rc != 0)
        return rc;
    uint32_t mask = p->level_slots.slot_count - 1;
    uint32_t at = (uint32_t)level_hash(&l) & mask;
    for (; p->level_slots.slots[at] != 0; at = (at + 1) & mask) {
        *out = p->level_slots.slots[at] - 1;
        if (same_level(&p->levels[*out], &l))
            return 0;
    }
    *out = p->level_count;
    p->levels[p->level_count++] = l;
    p->level_slots.slots[at] = p->level_count;
    return 0;
}

/* The levels from the function inwards, as many as the file is to have. */
static int add_chain(struct symint_packer *p, const struct symint_facts *f,
                     struct packed_address *a)
{
    const struct symint_dwarf_chain *c = &f->chain;
    bool lines = p->level >= SYM_LEVEL_LINES;
    size_t most = lines ? PACKED_MAX_LEVELS : 1;
    size_t skipped = c->count > most ? c->count - most : 0;
    uint32_t outer = NONE;
    int rc = 0;
    for (size_t i = c->count; i > 0 && rc == 0; i--) {
        if (i - 1 < skipped) /* the function and what is innermost matter most: see dwarf.c */
            break;
        rc = add_level(p, &c->levels[i - 1], outer, lines, &outer);
    }
    a->level = outer;
    a->flags |= c->function ? PACKED_ADDRESS_FUNCTION : 0;
    a->flags |= f->chain_unverified ? PACKED_ADDRESS_UNVERIFIED : 0;
    return rc;
}

static void set_pieces(const struct symint_facts *f, struct packed_address *a)
{
    for (size_t i = 0; i < f->chain.piece_count; i++) {
        const struct symint_code_range *piece = &f->chain.pieces[i];
        if (f->symbol.name != NULL && piece->start == f->symbol.start)
            a->flags |= PACKED_ADDRESS_STARTS;
        if (a->piece.end == 0 && f->vaddr >= piece->start && f->vaddr < piece->end)
            a->piece = *piece;
    }
    /* The piece tells the distance from its start, where the function has the name that DWARF gives. */
    if ((a->flags & PACKED_ADDRESS_STARTS) != 0 || f->name_stays)
        a->piece = (struct symint_code_range){0};
}

/* Whether the function has the name that debug information gives (chain.c). */
static bool named_by_dwarf(const struct symint_facts *f, const struct packed_address *a)
{
    return f->chain.count > 0 && f->chain.function && !f->name_stays &&
           f->chain.levels[f->chain.count - 1].name != NULL &&
           (a->flags & PACKED_ADDRESS_STARTS) == 0;
}

/* The symbol, and how far it goes if that is known. */
static int add_extent(struct symint_packer *p, const struct symint_facts *f, uint32_t *symbol)
{
    int rc = add_symbol(p, f, symbol);
    if (rc != 0 || f->extent_start >= f->extent_end)
        return rc;
    p->extents =
        make_room(p->extents, p->extent_count, &p->extent_capacity, sizeof(*p->extents), &rc);
    if (rc == 0)
        p->extents[p->extent_count++] =
            (struct packed_extent){f->extent_start, f->extent_end, *symbol};
    return rc;
}

int symint_packer_add_extent(struct symint_packer *p, const struct symint_facts *facts)
{
    uint32_t symbol;
    return add_extent(p, facts, &symbol);
}

int symint_packer_add(struct symint_packer *p, const struct symint_facts *facts)
{
    struct packed_address a = {.vaddr = facts->vaddr, .symbol = NONE, .level = NONE};
    int rc = 0;
    p->addresses =
        make_room(p->addresses, p->address_count, &p->address_capacity, sizeof(*p->addresses), &rc);
    set_pieces(facts, &a);
    if (rc == 0 && (p->level >= SYM_LEVEL_LINES || named_by_dwarf(facts, &a)))
        rc = add_chain(p, facts, &a);
    if (a.level == NONE) {
        a.flags = 0;
        a.piece = (struct symint_code_range){0};
    }
    a.flags |= facts->final ? PACKED_ADDRESS_FINAL : 0;
    if (rc == 0 && facts->has_symbol)
        rc = add_extent(p, facts, &a.symbol);
    if (rc == 0)
        p->addresses[p->address_count++] = a;
    return rc;
}

/* ---- the file ---- */

static int compare_addresses(const void *a, const void *b)
{
    const struct packed_address *x = a;
    const struct packed_address *y = b;
    return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int compare_extents(const void *a, const void *b)
{
    const struct packed_extent *x = a;
    const struct packed_extent *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
                                : (x->end > y->end) - (x->end < y->end);
}

/* Sorts the extents and leaves one of each; one that overlaps the one before is left out. */
static void settle_extents(struct symint_packer *p)
{
    uint32_t kept = 0;
    if (p->extent_count > 1)
        qsort(p->extents, p->extent_count, sizeof(*p->extents), compare_extents);
    for (uint32_t i = 0; i < p->extent_count; i++) {
        const struct packed_extent *e = &p->extents[i];
        if (e->start < e->end && (kept == 0 || e->start >= p->extents[kept - 1].end))
            p->extents[kept++] = *e;
    }
    p->extent_count = kept;
}

/* Sorts the addresses and leaves one of each. */
static void settle_addresses(struct symint_packer *p)
{
    uint32_t kept = 0;
    if (p->address_count > 1)
        qsort(p->addresses, p->address_count, sizeof(*p->addresses), compare_addresses);
    for (uint32_t i = 0; i < p->address_count; i++)
        if (kept == 0 || p->addresses[i].vaddr != p->addresses[kept - 1].vaddr)
            p->addresses[kept++] = p->addresses[i];
    p->address_count = kept;
}

/* What is numbered so far. */
struct numbering {
    uint32_t *symbols, *levels; /* row of the file to row of the packer */
    struct symint_code_range *pieces;
    uint32_t symbol_count, level_count, piece_count;
    char *texts;
    uint64_t text_bytes, text_capacity;
    uint32_t *text_slots; /* offset + 1 of texts by hash */
    uint32_t text_slot_count;
};

static void free_numbering(struct numbering *n)
{
    free(n->symbols);
    free(n->levels);
    free(n->pieces);
    free(n->texts);
    free(n->text_slots);
}

static int start_numbering(const struct symint_packer *p, struct numbering *n)
{
    *n = (struct numbering){.text_slot_count = 1024};
    while (n->text_slot_count / 2 < p->strings.count)
        n->text_slot_count *= 2;
    n->symbols = malloc(((size_t)p->symbol_count + 1) * sizeof(*n->symbols));
    n->levels = malloc(((size_t)p->level_count + 1) * sizeof(*n->levels));
    n->pieces = malloc(((size_t)p->address_count + 1) * sizeof(*n->pieces));
    n->text_slots = calloc(n->text_slot_count, sizeof(*n->text_slots));
    return n->symbols == NULL || n->levels == NULL || n->pieces == NULL || n->text_slots == NULL
               ? SYM_ERR_NOMEM
               : 0;
}

static void number_symbol(struct symint_packer *p, struct numbering *n, uint32_t symbol)
{
    if (symbol == NONE || p->symbols[symbol].number != NONE)
        return;
    p->symbols[symbol].number = n->symbol_count;
    n->symbols[n->symbol_count++] = symbol;
}

/* Outer levels come first. */
static void number_levels(struct symint_packer *p, struct numbering *n, uint32_t level)
{
    uint32_t path[PACKED_MAX_LEVELS];
    size_t depth = 0;
    for (; level != NONE && p->levels[level].number == NONE; level = p->levels[level].outer)
        path[depth++] = level;
    while (depth > 0) {
        p->levels[path[--depth]].number = n->level_count;
        n->levels[n->level_count++] = path[depth];
    }
}

static void number_all(struct symint_packer *p, struct numbering *n)
{
    for (uint32_t i = 0; i < p->symbol_count; i++)
        p->symbols[i].number = NONE;
    for (uint32_t i = 0; i < p->level_count; i++)
        p->levels[i].number = NONE;
    for (uint32_t i = 0; i < p->address_count; i++) {
        number_symbol(p, n, p->addresses[i].symbol);
        number_levels(p, n, p->addresses[i].level);
    }
    /* A symbol whose address was left out may still have an extent. */
    for (uint32_t i = 0; i < p->extent_count; i++)
        number_symbol(p, n, p->extents[i].symbol);
}

/* The reference of a text, which is appended when it is new. */
static int put_text(struct numbering *n, const struct symint_text *t, uint32_t *reference)
{
    *reference = 0;
    if (t == NULL)
        return 0;
    uint32_t mask = n->text_slot_count - 1;
    uint32_t at = (uint32_t)symint_mix(t->hash) & mask;
    for (; n->text_slots[at] != 0; at = (at + 1) & mask) {
        const char *there = n->texts + n->text_slots[at] - 1;
        if (strcmp(there, t->text) == 0) {
            *reference = n->text_slots[at];
            return 0;
        }
    }
    if (n->text_bytes + t->size + 1 > n->text_capacity) {
        uint64_t capacity = (n->text_bytes + t->size + 1) * 2;
        char *texts = capacity < MAX_FILE_BYTES * 2 ? realloc(n->texts, (size_t)capacity) : NULL;
        if (texts == NULL)
            return capacity < MAX_FILE_BYTES * 2 ? SYM_ERR_NOMEM : SYM_ERR_LIMIT;
        n->texts = texts;
        n->text_capacity = capacity;
    }
    memcpy(n->texts + n->text_bytes, t->text, t->size + 1);
    *reference = n->text_slots[at] = (uint32_t)n->text_bytes + 1;
    n->text_bytes += t->size + 1;
    return 0;
}

static uint32_t put_piece(struct numbering *n, const struct symint_code_range *piece)
{
    if (piece->end == 0)
        return 0;
    /* Addresses are sorted, so a piece is mostly that of the address before. */
    const struct symint_code_range *last =
        n->piece_count > 0 ? &n->pieces[n->piece_count - 1] : NULL;
    if (last == NULL || last->start != piece->start || last->end != piece->end)
        n->pieces[n->piece_count++] = *piece;
    return n->piece_count;
}

static uint8_t *put_segments(const struct symint_packer *p, uint8_t *at)
{
    for (uint32_t i = 0; i < p->segment_count; i++) {
        const struct segment *s = &p->segments[i];
        at = packed_put64(at, s->offset);
        at = packed_put64(at, s->size);
        at = packed_put64(at, s->memory_size);
        at = packed_put64(at, s->vaddr);
        at = packed_put64(at, s->align);
        at = packed_put64(at, s->executable);
    }
    return at;
}

static int put_symbols(const struct symint_packer *p, struct numbering *n, uint8_t **at)
{
    int rc = 0;
    for (uint32_t i = 0; i < n->symbol_count && rc == 0; i++) {
        const struct packed_symbol *s = &p->symbols[n->symbols[i]];
        uint32_t name;
        rc = put_text(n, s->name, &name);
        *at = packed_put64(*at, s->start);
        *at = packed_put32(*at, name);
        *at = packed_put32(*at, (uint32_t)s->origin | (uint32_t)s->flags << 8);
    }
    return rc;
}

static int put_levels(const struct symint_packer *p, struct numbering *n, uint8_t **at)
{
    int rc = 0;
    for (uint32_t i = 0; i < n->level_count && rc == 0; i++) {
        const struct packed_level *l = &p->levels[n->levels[i]];
        uint32_t name;
        uint32_t file = 0;
        rc = put_text(n, l->name, &name);
        if (rc == 0)
            rc = put_text(n, l->file, &file);
        *at = packed_put32(*at, l->outer == NONE ? 0 : p->levels[l->outer].number + 1);
        *at = packed_put32(*at, name);
        *at = packed_put32(*at, file);
        *at = packed_put32(*at, l->line);
        *at = packed_put32(*at, l->column);
        *at = packed_put32(*at, l->start_line);
        *at = packed_put32(*at, l->linkage ? PACKED_LEVEL_LINKAGE : 0);
        *at = packed_put32(*at, 0);
    }
    return rc;
}

static uint8_t *put_extents(const struct symint_packer *p, uint8_t *at)
{
    for (uint32_t i = 0; i < p->extent_count; i++) {
        const struct packed_extent *e = &p->extents[i];
        at = packed_put64(at, e->start);
        at = packed_put64(at, e->end);
        at = packed_put32(at, p->symbols[e->symbol].number);
        at = packed_put32(at, 0);
    }
    return at;
}

static uint8_t *put_addresses(const struct symint_packer *p, struct numbering *n, uint8_t *at)
{
    for (uint32_t i = 0; i < p->address_count; i++) {
        const struct packed_address *a = &p->addresses[i];
        at = packed_put64(at, a->vaddr);
        at = packed_put32(at, a->symbol == NONE ? 0 : p->symbols[a->symbol].number + 1);
        at = packed_put32(at, a->level == NONE ? 0 : p->levels[a->level].number + 1);
        at = packed_put32(at, put_piece(n, &a->piece));
        at = packed_put32(at, a->flags);
    }
    return at;
}

static void put_header(const struct symint_packer *p, const uint32_t counts[PACKED_TABLES],
                       uint64_t text_bytes, uint8_t *data, size_t size)
{
    memset(data, 0, PACKED_HEADER_BYTES);
    memcpy(data, PACKED_MAGIC, sizeof(PACKED_MAGIC) - 1);
    packed_put32(data + PACKED_AT_VERSION, PACKED_VERSION);
    packed_put64(data + PACKED_AT_SIZE, size);
    packed_put32(data + PACKED_AT_LEVEL, (uint32_t)p->level);
    packed_put32(data + PACKED_AT_FLAGS, p->file_flags);
    packed_put32(data + PACKED_AT_MACHINE, p->machine | (uint32_t)p->build_id_size << 16);
    memcpy(data + PACKED_AT_BUILD_ID, p->build_id, p->build_id_size);
    for (size_t t = 0; t < PACKED_TABLES; t++)
        packed_put32(data + PACKED_AT_COUNTS + 4 * t, counts[t]);
    packed_put64(data + PACKED_AT_TEXT_BYTES, text_bytes);
    packed_put32(data + PACKED_AT_CRC, symint_packed_checksum(data, size));
}

static int write_file(struct symint_packer *p, struct numbering *n, uint8_t **data, size_t *size)
{
    /* Pieces are counted as they are written, in the table after those whose sizes are known. */
    uint32_t counts[PACKED_TABLES] = {p->segment_count, n->symbol_count,  p->extent_count,
                                      n->level_count,   p->address_count, p->address_count};
    uint64_t most = PACKED_HEADER_BYTES;
    for (int t = 0; t < PACKED_TABLES; t++)
        most += (uint64_t)counts[t] * packed_row_bytes[t];
    if (most > MAX_FILE_BYTES)
        return SYM_ERR_LIMIT;
    uint8_t *bytes = malloc((size_t)most);
    uint8_t *rows = malloc((size_t)p->address_count * packed_row_bytes[PACKED_ADDRESSES] + 1);
    int rc = bytes == NULL || rows == NULL ? SYM_ERR_NOMEM : 0;
    uint8_t *at = bytes;
    if (rc == 0) {
        at = put_segments(p, bytes + PACKED_HEADER_BYTES);
        rc = put_symbols(p, n, &at);
    }
    if (rc == 0) {
        at = put_extents(p, at);
        rc = put_levels(p, n, &at);
    }
    if (rc == 0) {
        size_t row_bytes = (size_t)(put_addresses(p, n, rows) - rows);
        counts[PACKED_PIECES] = n->piece_count;
        for (uint32_t i = 0; i < n->piece_count; i++) {
            at = packed_put64(at, n->pieces[i].start);
            at = packed_put64(at, n->pieces[i].end);
        }
        memcpy(at, rows, row_bytes);
        at += row_bytes;
        *size = (size_t)(at - bytes) + (size_t)n->text_bytes;
        uint8_t *whole = realloc(bytes, *size);
        rc = whole == NULL ? SYM_ERR_NOMEM : 0;
        bytes = whole != NULL ? whole : bytes;
    }
    free(rows);
    if (rc != 0) {
        free(bytes);
        return rc;
    }
    if (n->text_bytes > 0)
        memcpy(bytes + *size - n->text_bytes, n->texts, (size_t)n->text_bytes);
    put_header(p, counts, n->text_bytes, bytes, *size);
    *data = bytes;
    return 0;
}

int symint_packer_finish(struct symint_packer *p, uint8_t **data, size_t *size)
{
    struct numbering n;
    settle_addresses(p);
    settle_extents(p);
    int rc = start_numbering(p, &n);
    if (rc == 0) {
        number_all(p, &n);
        rc = write_file(p, &n, data, size);
    }
    free_numbering(&n);
    return rc;
}
