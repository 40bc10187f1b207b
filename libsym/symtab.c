/* SPDX-License-Identifier: MIT */
/*
 * One symbol table, flattened. Which symbol names an address is symbolization.md section 5; what a
 * file's several tables add to each other is elf_index.c.
 */
#include "demangle.h"
#include "elf_private.h"
#include "fde.h"
#include "segments.h"
#include "strtab.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* A table before it is flattened. */
struct table {
    const struct symint_elf *from; /* the file it is in */
    uint64_t bias;                 /* that its addresses lie below those of the indexed file */
    const uint8_t *symbols;
    uint64_t count;
    const uint8_t *sections; /* SHT_SYMTAB_SHNDX, NULL: none */
    uint64_t section_count;
    const uint8_t *versions; /* of .dynsym, NULL: none */
    uint64_t version_count;
    uint8_t source;
};

/* A symbol as far as choosing needs it. */
struct candidate {
    uint64_t start;
    uint64_t end; /* start for a sizeless symbol */
    uint32_t section;
    uint32_t name;
    bool local;
    bool weak;
    bool notype;
    bool hidden; /* version */
};

struct name {
    const char *text;
    size_t size;
};

static struct name name_of(const struct symint_elf *e, uint8_t source, uint32_t offset)
{
    return (struct name){.text = e->strings[source] + offset,
                         .size = symint_name_size(e, source, offset)};
}

/* ARM, AArch64 and RISC-V mark code and data inside functions with symbols of these names. */
static bool is_mapping_symbol(const struct symint_elf *e, const char *name)
{
    if (name[0] != '$' || name[1] == '\0')
        return false;
    switch (e->machine) {
    case EM_ARM:
        return strchr("atd", name[1]) != NULL && (name[2] == '\0' || name[2] == '.');
    case EM_AARCH64:
        return strchr("xd", name[1]) != NULL && (name[2] == '\0' || name[2] == '.');
    case EM_RISCV: /* `$x` may carry the instruction set: `$xrv64i2p1_c2p0` */
        return name[1] == 'x' || (name[1] == 'd' && (name[2] == '\0' || name[2] == '.'));
    default:
        return false;
    }
}

/* The end of the code that a value lies in, by the segments. */
static bool find_segment_end(const struct symint_elf *e, uint64_t value, uint64_t *limit)
{
    for (uint32_t i = 0; i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        uint64_t size = e->detached ? s->memory_size : s->size;
        if (s->executable && value >= s->vaddr && value - s->vaddr < size) {
            *limit = size > UINT64_MAX - s->vaddr ? UINT64_MAX : s->vaddr + size;
            return true;
        }
    }
    return false;
}

/* The same by the symbol's section, or when sections are gone by the segments. */
static bool find_limit(const struct table *t, uint64_t section, uint64_t value, uint64_t *limit)
{
    const struct symint_elf *e = t->from;
    if (e->sections == NULL)
        return find_segment_end(e, value, limit);
    if (section >= e->section_count || !e->sections[section].executable)
        return false;
    const struct section *s = &e->sections[section];
    if (value < s->addr || value - s->addr >= s->size)
        return false;
    *limit = s->size > UINT64_MAX - s->addr ? UINT64_MAX : s->addr + s->size;
    return true;
}

static const uint8_t *symbol_at(const struct table *t, uint64_t i)
{
    return t->symbols + i * (t->from->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
}

/* A symbol as it stands in the table, in our byte order. */
static inline Elf64_Sym raw_symbol(const struct table *t, uint64_t i)
{
    const struct symint_elf *e = t->from;
    const uint8_t *p = symbol_at(t, i);
    Elf64_Sym s;
    if (e->wide && !e->swap) { /* nearly always: worth a way of its own */
        memcpy(&s, p, sizeof(s));
        return s;
    }
    return (Elf64_Sym){.st_name = get32(e, p),
                       .st_info = p[e->wide ? 4 : 12],
                       .st_shndx = get16(e, p + (e->wide ? 6 : 14)),
                       .st_value = get_word(e, p, 4, 8),
                       .st_size = get_word(e, p, 8, 16)};
}

static bool is_function(const struct symint_elf *e, uint8_t type)
{
    return type == STT_FUNC || type == STT_GNU_IFUNC ||
           (type == STT_ARM_TFUNC && e->machine == EM_ARM);
}

/* SHN_UNDEF for one that has none. */
static uint32_t section_of(const struct table *t, uint64_t i, const Elf64_Sym *s)
{
    if (s->st_shndx == SHN_XINDEX)
        return i < t->section_count ? get32(t->from, t->sections + i * 4) : SHN_UNDEF;
    return s->st_shndx < SHN_LORESERVE ? s->st_shndx : SHN_UNDEF;
}

static uint64_t value_of(const struct table *t, uint32_t section, const Elf64_Sym *s)
{
    const struct symint_elf *e = t->from;
    bool thumb = e->machine == EM_ARM && ELF64_ST_TYPE(s->st_info) != STT_NOTYPE;
    uint64_t value = thumb ? s->st_value & ~(uint64_t)1 : s->st_value;
    /* In a relocatable file it is relative to the section. */
    return e->relocatable && e->sections != NULL && section < e->section_count
               ? value + e->sections[section].addr
               : value;
}

/* Whether a symbol may name code, and where it begins in the terms of its own file. */
static bool keep_symbol(const struct symint_elf *names, const struct table *t, uint64_t i,
                        uint64_t *value)
{
    const struct symint_elf *e = t->from;
    const Elf64_Sym s = raw_symbol(t, i);
    bool function = is_function(e, ELF64_ST_TYPE(s.st_info));
    if (!function && ELF64_ST_TYPE(s.st_info) != STT_NOTYPE)
        return false;
    uint32_t section = section_of(t, i, &s);
    if (section == SHN_UNDEF || s.st_name >= names->strings_size[t->source])
        return false;
    const char *text = names->strings[t->source] + s.st_name;
    if (text[0] == '\0' || (text[0] == '.' && text[1] == 'L') || is_mapping_symbol(e, text))
        return false;
    uint64_t limit;
    *value = value_of(t, section, &s);
    if (find_limit(t, section, *value, &limit))
        return true;
    /* Tools that move code (BOLT) leave section numbers behind that are no longer right; a function
     * with a size is believed all the same. */
    return function && s.st_size > 0 && !e->relocatable && e->sections != NULL &&
           section < e->section_count && e->sections[section].executable &&
           find_segment_end(e, *value, &limit);
}

/* A symbol that was kept. */
static struct candidate read_symbol(const struct table *t, uint64_t i)
{
    const struct symint_elf *e = t->from;
    const Elf64_Sym s = raw_symbol(t, i);
    uint8_t bind = ELF64_ST_BIND(s.st_info);
    uint32_t section = section_of(t, i, &s);
    uint64_t start = value_of(t, section, &s) + t->bias;
    return (struct candidate){
        .start = start,
        .end = s.st_size > UINT64_MAX - start ? UINT64_MAX : start + s.st_size,
        .section = section,
        .name = s.st_name,
        .local = bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE,
        .weak = bind == STB_WEAK,
        .notype = ELF64_ST_TYPE(s.st_info) == STT_NOTYPE,
        /* In .symtab a version is part of the name: see better. */
        .hidden = i < t->version_count && (get16(e, t->versions + i * 2) & 0x8000) != 0,
    };
}

/* Names lie in another order than symbols; waiting for each would take longer than all the rest. */
static void fetch_name(const struct symint_elf *names, const struct table *t, uint64_t i)
{
    if (i >= t->count)
        return;
    uint32_t name = get32(t->from, symbol_at(t, i));
    if (name < names->strings_size[t->source])
        __builtin_prefetch(names->strings[t->source] + name);
}

static size_t underscores(struct name n)
{
    if (n.size >= 2 && n.text[0] == '_' &&
        (n.text[1] == 'Z' || n.text[1] == 'R' ||
         (n.size >= 3 && n.text[1] == '_' && n.text[2] == 'Z')))
        return 0;
    size_t count = 0;
    while (count < n.size && n.text[count] == '_')
        count++;
    return count;
}

/* The old wrappers of system calls: SyS_read beside sys_read. */
static bool is_wrapper(struct name n)
{
    return (n.size > 4 && memcmp(n.text, "SyS_", 4) == 0) ||
           (n.size > 11 && memcmp(n.text, "compat_SyS_", 11) == 0);
}

/* The same for a kernel: as kernel.c chooses among lines of kallsyms. */
static bool better_in_kernel(const struct candidate *a, const struct candidate *b, struct name x,
                             struct name y)
{
    if (a->weak != b->weak)
        return a->weak < b->weak;
    if (a->local != b->local)
        return a->local < b->local;
    size_t x_underscores = underscores(x);
    size_t y_underscores = underscores(y);
    if (x_underscores != y_underscores)
        return x_underscores < y_underscores;
    if (x.size != y.size)
        return x.size > y.size;
    if (is_wrapper(x) != is_wrapper(y))
        return is_wrapper(y);
    return memcmp(x.text, y.text, x.size) < 0;
}

/* Whether a is the better name of two that cover the same bytes; symbolization.md section 5,
 * "Same address". Nothing here may depend on the order of the table. */
static bool better(const struct symint_elf *e, uint8_t source, const struct candidate *a,
                   const struct candidate *b)
{
    if (a->notype != b->notype)
        return a->notype < b->notype;
    if (e->kernel)
        return better_in_kernel(a, b, name_of(e, source, a->name), name_of(e, source, b->name));
    if (a->local != b->local)
        return a->local < b->local;
    struct name x = name_of(e, source, a->name);
    struct name y = name_of(e, source, b->name);
    size_t x_underscores = underscores(x);
    size_t y_underscores = underscores(y);
    if (x_underscores != y_underscores)
        return x_underscores < y_underscores;
    size_t x_size = symint_cut_version(x.text, x.size);
    size_t y_size = symint_cut_version(y.text, y.size);
    bool x_hidden = a->hidden || (x_size < x.size && x.text[x_size + 1] != '@');
    bool y_hidden = b->hidden || (y_size < y.size && y.text[y_size + 1] != '@');
    if (x_hidden != y_hidden)
        return x_hidden < y_hidden;
    if (a->weak != b->weak)
        return a->weak < b->weak;
    if (x_size != y_size)
        return x_size < y_size;
    return memcmp(x.text, y.text, x_size) < 0;
}

/* Longest first, sizeless last. */
static int compare_extents(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    return (x->end < y->end) - (x->end > y->end);
}

/* How far a sizeless symbol may reach as far as the other table is concerned: not at all inside
 * one of its sized symbols, else to its next one. */
static uint64_t limit_by_other(const struct symint_elf *e, const struct symint_segments *other,
                               uint64_t start)
{
    size_t above = symint_segments_above(other, start);
    uint32_t owner = above > 0 ? other->owner[above - 1] : SYMINT_NO_OWNER;
    if (owner != SYMINT_NO_OWNER && !e->entries[owner].sizeless)
        return 0;
    while (above < other->count && (other->owner[above] == SYMINT_NO_OWNER ||
                                    e->entries[other->owner[above]].start == start))
        above++;
    return above < other->count ? other->start[above] : UINT64_MAX;
}

/* What flattening a table looks at. */
struct flattening {
    struct symint_elf *elf; /* the indexed file, with the names */
    const struct table *table;
    const struct symint_segments *other; /* the index of .dynsym while another table is swept */
    const struct symint_fdes *fdes;
};

/* The end of a sizeless symbol; `next` is the next start of any symbol. */
static uint64_t sizeless_end(const struct flattening *f, const struct candidate *c, uint64_t next)
{
    uint64_t end = 0;
    if (!find_limit(f->table, c->section, c->start - f->table->bias, &end))
        return 0;
    end += f->table->bias;
    end = next < end ? next : end;
    uint64_t limit = limit_by_other(f->elf, f->other, c->start);
    end = limit < end ? limit : end;
    if (f->table->source != DYNSYM)
        return end;
    /* Symbols that were stripped may follow: only unwind data tell how far this one reaches. */
    uint64_t known = symint_fdes_end(f->fdes, c->start);
    if (known == 0)
        known = c->start < UINT64_MAX ? c->start + 1 : c->start;
    return known < end ? known : end;
}

/* A new entry for a symbol, for which there is room. */
static uint32_t add_entry(const struct flattening *f, const struct candidate *c)
{
    f->elf->entries[f->elf->entry_count] = (struct entry){.start = c->start,
                                                          .name = c->name,
                                                          .source = f->table->source,
                                                          .sizeless = c->end == c->start};
    return f->elf->entry_count++;
}

/* Sweeps the symbols of one start. */
static void sweep_group(const struct flattening *f, struct symint_sweep *w, struct candidate *group,
                        size_t count, uint64_t next)
{
    if (count > 1)
        qsort(group, count, sizeof(*group), compare_extents);
    for (size_t i = 0; i < count;) {
        const struct candidate *best = &group[i];
        size_t k = i + 1;
        for (; k < count && group[k].end == best->end; k++)
            if (better(f->elf, f->table->source, &group[k], best))
                best = &group[k];
        i = k;
        if (best->end > best->start) {
            symint_sweep_push(w, best->start, best->end, add_entry(f, best));
            continue;
        }
        symint_sweep_advance(w, best->start);
        if (w->depth > 0)
            continue; /* inside a sized symbol */
        uint64_t end = sizeless_end(f, best, next);
        if (end > best->start)
            symint_sweep_patch(w, best->start, end, add_entry(f, best));
    }
}

int symint_entries_grow(struct symint_elf *e, uint32_t more)
{
    if (more >= SYMINT_NO_OWNER - e->entry_count)
        return SYM_ERR_NOMEM;
    struct entry *entries = symint_scratch_alloc((size_t)e->entry_count + more, sizeof(*entries));
    if (entries == NULL)
        return SYM_ERR_NOMEM;
    if (e->entry_count > 0)
        memcpy(entries, e->entries, e->entry_count * sizeof(*entries));
    free(e->entries);
    e->entries = entries;
    return 0;
}

/* ---- in ascending order ---- */

/* The symbols that count, as one number each: the distance from the lowest code above, the symbol's
 * index in the lowest `index_bits`. Eight bytes a symbol are sorted fastest. */
struct order {
    uint64_t *keys;
    uint32_t count;
    unsigned index_bits;
    uint64_t base;
};

/* Where the lowest code of a file begins. */
static uint64_t lowest_code(const struct symint_elf *e)
{
    uint64_t lowest = UINT64_MAX;
    for (uint64_t i = 0; e->sections != NULL && i < e->section_count; i++)
        if (e->sections[i].executable && e->sections[i].addr < lowest)
            lowest = e->sections[i].addr;
    for (uint32_t i = 0; i < e->segment_count; i++)
        if (e->segments[i].executable && e->segments[i].vaddr < lowest)
            lowest = e->segments[i].vaddr;
    return lowest;
}

static int order_symbols(const struct symint_elf *names, const struct table *t, struct order *o)
{
    *o = (struct order){.index_bits = 1, .base = lowest_code(t->from)};
    while (t->count >> o->index_bits != 0)
        o->index_bits++;
    /* No file has code as far apart as that. */
    uint64_t most = UINT64_MAX >> o->index_bits;
    if (o->base + t->bias < o->base || most > UINT64_MAX - (o->base + t->bias))
        most = UINT64_MAX - (o->base > o->base + t->bias ? o->base : o->base + t->bias);
    most = most < UINT64_MAX >> o->index_bits ? most : UINT64_MAX >> o->index_bits;
    o->keys = symint_scratch_alloc((size_t)t->count, sizeof(*o->keys));
    if (o->keys == NULL)
        return SYM_ERR_NOMEM;
    for (uint64_t i = 1; i < t->count; i++) { /* entry 0 is the undefined symbol */
        uint64_t value;
        fetch_name(names, t, i + 24);
        if (keep_symbol(names, t, i, &value) && value - o->base <= most)
            o->keys[o->count++] = (value - o->base) << o->index_bits | i;
    }
    return symint_sort_keys(o->keys, o->count, o->index_bits);
}

static bool same_start(const struct order *o, uint32_t a, uint32_t b)
{
    return (o->keys[a] ^ o->keys[b]) >> o->index_bits == 0;
}

/* Symbols lie in another order than addresses, see fetch_name. */
static void fetch_symbol(const struct table *t, const struct order *o, uint64_t mask, uint32_t i)
{
    if (i < o->count)
        __builtin_prefetch(symbol_at(t, o->keys[i] & mask));
}

static void sweep_table(const struct flattening *f, const struct order *o, struct candidate *group,
                        struct symint_sweep *sweep)
{
    uint64_t mask = ((uint64_t)1 << o->index_bits) - 1;
    for (uint32_t i = 0; i < o->count;) {
        uint32_t k = i;
        for (; k < o->count && same_start(o, k, i); k++) {
            fetch_symbol(f->table, o, mask, k + 16);
            group[k - i] = read_symbol(f->table, o->keys[k] & mask);
        }
        uint64_t next = UINT64_MAX;
        if (k < o->count)
            next = o->base + f->table->bias + (o->keys[k] >> o->index_bits);
        sweep_group(f, sweep, group, k - i, next);
        i = k;
    }
}

/* Flattens one table. */
static int flatten(struct symint_elf *e, const struct table *t, const struct symint_fdes *fdes,
                   const struct symint_segments *other, struct symint_segments *index)
{
    struct order order;
    struct symint_sweep sweep;
    struct candidate *group = NULL;
    *index = (struct symint_segments){0};
    int rc = order_symbols(e, t, &order);
    if (rc != 0 || order.count == 0)
        goto done;
    uint32_t largest = 1;
    for (uint32_t i = 1, run = 1; i < order.count; i++) {
        run = same_start(&order, i, i - 1) ? run + 1 : 1;
        largest = run > largest ? run : largest;
    }
    group = malloc(largest * sizeof(*group));
    rc = group == NULL ? SYM_ERR_NOMEM : symint_entries_grow(e, order.count);
    if (rc == 0)
        rc = symint_sweep_start(&sweep, index, order.count);
    if (rc != 0)
        goto done;
    struct flattening f = {.elf = e, .table = t, .other = other, .fdes = fdes};
    sweep_table(&f, &order, group, &sweep);
    symint_sweep_finish(&sweep);
done:
    free(order.keys);
    free(group);
    return rc;
}

/* The k-th executable segment, NULL: there are fewer. */
static const struct segment *code_segment(const struct symint_elf *e, uint32_t k)
{
    for (uint32_t i = 0; i < e->segment_count; i++)
        if (e->segments[i].executable && k-- == 0)
            return &e->segments[i];
    return NULL;
}

/* Only code is compared: tools like patchelf add segments. */
bool symint_elf_bias(const struct symint_elf *e, const struct symint_elf *debug, uint64_t *bias)
{
    *bias = 0;
    if (e == debug || code_segment(debug, 0) == NULL)
        return true;
    for (uint32_t k = 0;; k++) {
        const struct segment *here = code_segment(e, k);
        const struct segment *there = code_segment(debug, k);
        if (here == NULL || there == NULL)
            return here == there;
        if (here->memory_size != there->memory_size)
            return false;
        if (k == 0)
            *bias = here->vaddr - there->vaddr;
        else if (here->vaddr - there->vaddr != *bias)
            return false;
    }
}

int symint_symtab_read(struct symint_elf *e, const struct symint_elf *from, uint8_t source,
                       const struct symint_fdes *fdes, const struct symint_segments *other,
                       struct symint_segments *index, enum sym_miss *miss)
{
    struct table t = {.from = from, .source = source};
    struct symint_table_place place;
    uint8_t *symbols = NULL;
    uint8_t *strings = NULL;
    uint8_t *versions = NULL;
    uint8_t *sections = NULL;
    enum sym_miss ignored;
    uint64_t entry_size = from->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);

    *index = (struct symint_segments){0};
    *miss = SYM_MISS_DAMAGED;
    if (!symint_elf_bias(e, from, &t.bias))
        return 0;
    *miss = SYM_MISS_NO_SYMBOLS;
    int rc = symint_symtab_place(from, source, &place);
    if (rc != 0 || !place.found)
        return rc;
    rc = symint_elf_load(&from->input, place.symbols_offset, place.symbols_size, &symbols, miss);
    if (symbols == NULL)
        goto done;
    t.symbols = symbols;
    t.count = place.symbols_size / entry_size;
    if (t.count >= SYMINT_NO_OWNER) {
        *miss = SYM_MISS_DAMAGED;
        goto done;
    }
    rc = symint_elf_load(&from->input, place.strings_offset, place.strings_size, &strings, miss);
    if (strings == NULL)
        goto done;
    e->strings[source] = symint_settle(strings, (size_t)place.strings_size + 1);
    e->strings_size[source] = (size_t)place.strings_size;
    /* Without these two tables the rest is as good. */
    if (place.versions_size > 0) {
        rc = symint_elf_load(&from->input, place.versions_offset, place.versions_size, &versions,
                             &ignored);
        t.versions = versions;
        t.version_count = versions != NULL ? place.versions_size / 2 : 0;
    }
    if (rc == 0 && place.sections_size > 0) {
        rc = symint_elf_load(&from->input, place.sections_offset, place.sections_size, &sections,
                             &ignored);
        t.sections = sections;
        t.section_count = sections != NULL ? place.sections_size / 4 : 0;
    }
    if (rc == 0)
        rc = flatten(e, &t, fdes, other, index);
done:
    free(symbols);
    free(versions);
    free(sections);
    return rc;
}
