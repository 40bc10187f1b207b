/* SPDX-License-Identifier: MIT */
/*
 * Symbol tables, with or without section headers, flattened into one index. Which symbol names an
 * address is symbolization.md section 5.
 */
#include "demangle.h"
#include "elf_private.h"
#include "segments.h"
#include "strtab.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME ((size_t)64 * 1024) /* what is longer counts as this long */

/* A table before it is flattened. */
struct table {
    const uint8_t *symbols;
    uint64_t count;
    const uint8_t *sections; /* SHT_SYMTAB_SHNDX, NULL: none */
    uint64_t section_count;
    const uint8_t *versions; /* of .dynsym, NULL: none */
    uint64_t version_count;
    uint8_t source;
};

struct candidate {
    uint64_t start;
    uint64_t end; /* start for a sizeless symbol */
    uint32_t section;
    uint32_t name;
    uint8_t local;
    uint8_t weak;
    uint8_t notype;
    uint8_t hidden; /* version */
};

struct name {
    const char *text;
    size_t size;
};

static struct name name_of(const struct symint_elf *e, int source, uint32_t offset)
{
    assert(offset < e->strings_size[source]);
    const char *text = e->strings[source] + offset;
    size_t most = e->strings_size[source] - offset;
    return (struct name){.text = text, .size = strnlen(text, most < MAX_NAME ? most : MAX_NAME)};
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

/* The end of the code a value lies in, by its section or, when those are gone, by its segment. */
static bool find_limit(const struct symint_elf *e, uint64_t section, uint64_t value,
                       uint64_t *limit)
{
    if (e->sections != NULL) {
        if (section >= e->section_count || !e->sections[section].executable)
            return false;
        const struct section *s = &e->sections[section];
        if (value < s->addr || value - s->addr >= s->size)
            return false;
        *limit = s->size > UINT64_MAX - s->addr ? UINT64_MAX : s->addr + s->size;
        return true;
    }
    for (uint32_t i = 0; i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        if (s->executable && value >= s->vaddr && value - s->vaddr < s->size) {
            *limit = s->size > UINT64_MAX - s->vaddr ? UINT64_MAX : s->vaddr + s->size;
            return true;
        }
    }
    return false;
}

static bool keep_symbol(const struct symint_elf *e, const struct table *t, uint64_t i,
                        struct candidate *out)
{
    const uint8_t *p = t->symbols + i * (e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    uint8_t info = p[e->wide ? 4 : 12];
    uint64_t section = get16(e, p + (e->wide ? 6 : 14));
    uint64_t value = get_word(e, p, 4, 8);
    uint64_t size = get_word(e, p, 8, 16);
    uint32_t name = get32(e, p);
    uint8_t type = ELF64_ST_TYPE(info);
    uint8_t bind = ELF64_ST_BIND(info);

    bool function = type == STT_FUNC || type == STT_GNU_IFUNC ||
                    (type == STT_ARM_TFUNC && e->machine == EM_ARM);
    if (!function && type != STT_NOTYPE)
        return false;
    if (section == SHN_XINDEX) {
        if (i >= t->section_count)
            return false;
        section = get32(e, t->sections + i * 4);
    } else if (section >= SHN_LORESERVE) {
        return false;
    }
    if (section == SHN_UNDEF || name >= e->strings_size[t->source])
        return false;
    const char *text = e->strings[t->source] + name;
    if (text[0] == '\0' || (text[0] == '.' && text[1] == 'L') || is_mapping_symbol(e, text))
        return false;
    if (e->machine == EM_ARM && function)
        value &= ~(uint64_t)1;
    uint64_t limit;
    if (!find_limit(e, section, value, &limit))
        return false;
    out->section = (uint32_t)section;
    out->start = value;
    out->end = size > UINT64_MAX - value ? UINT64_MAX : value + size;
    out->name = name;
    out->local = bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE;
    out->weak = bind == STB_WEAK;
    out->notype = !function;
    /* In .symtab a version is part of the name: see better. */
    out->hidden = i < t->version_count && (get16(e, t->versions + i * 2) & 0x8000) != 0;
    return true;
}

/* Names lie in another order than symbols; waiting for each would take longer than all the rest. */
static void fetch_name(const struct symint_elf *e, const struct table *t, uint64_t i)
{
    if (i >= t->count)
        return;
    uint32_t name = get32(e, t->symbols + i * (e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)));
    if (name < e->strings_size[t->source])
        __builtin_prefetch(e->strings[t->source] + name);
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

/* Whether a is the better name of two that cover the same bytes; symbolization.md section 5,
 * "Same address". Nothing here may depend on the order of the table. */
static bool better(const struct symint_elf *e, int source, const struct candidate *a,
                   const struct candidate *b)
{
    if (a->notype != b->notype)
        return a->notype < b->notype;
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
    const struct candidate *const *x = a;
    const struct candidate *const *y = b;
    return ((*x)->end < (*y)->end) - ((*x)->end > (*y)->end);
}

/* How far a sizeless symbol may reach as far as the other table is concerned: not at all inside
 * one of its sized symbols, else to its next one. */
static uint64_t limit_by_other(const struct symint_elf *e, const struct symint_segments *other,
                               uint64_t start)
{
    size_t low = 0;
    size_t high = other->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (other->start[middle] <= start)
            low = middle + 1;
        else
            high = middle;
    }
    /* Sizeless ones there cover one address only: what reaches further has a size. */
    uint32_t owner = low > 0 ? other->owner[low - 1] : SYMINT_NO_OWNER;
    if (owner != SYMINT_NO_OWNER &&
        (e->entries[owner].start != start || low == other->count || other->start[low] - start > 1))
        return 0;
    while (low < other->count && other->owner[low] == SYMINT_NO_OWNER)
        low++;
    return low < other->count ? other->start[low] : UINT64_MAX;
}

/* Sweeps the symbols of one start. `next` is the next start of any symbol; `other` is the index
 * of .dynsym while .symtab is swept. */
static void sweep_group(const struct symint_elf *e, struct symint_sweep *w, int source,
                        const struct candidate **group, size_t count, uint64_t next,
                        const struct candidate *all, const struct symint_segments *other)
{
    if (count > 1)
        qsort(group, count, sizeof(*group), compare_extents);
    for (size_t i = 0; i < count;) {
        const struct candidate *best = group[i];
        size_t k = i + 1;
        for (; k < count && group[k]->end == best->end; k++)
            if (better(e, source, group[k], best))
                best = group[k];
        i = k;
        uint32_t owner = (uint32_t)(best - all);
        if (best->end > best->start) {
            symint_sweep_push(w, best->start, best->end, owner);
            continue;
        }
        symint_sweep_advance(w, best->start);
        if (w->depth > 0)
            continue; /* inside a sized symbol */
        uint64_t end = 0;
        find_limit(e, best->section, best->start, &end);
        end = next < end ? next : end;
        uint64_t limit = limit_by_other(e, other, best->start);
        end = limit < end ? limit : end;
        /* Nothing tells how far a sizeless dynamic symbol reaches where the other symbols were
         * stripped. */
        if (source == DYNSYM && best->start < UINT64_MAX)
            end = best->start + 1;
        if (end > best->start)
            symint_sweep_patch(w, best->start, end, owner);
    }
}

/* Adds the owners of an index to e->entries, which has `before` of them, and renumbers the
 * index. */
static int keep_entries(struct symint_elf *e, struct symint_segments *index, int source,
                        const struct candidate *all, uint32_t count, uint32_t *before)
{
    uint32_t *number = symint_table_alloc(count, sizeof(*number)); /* 0: not used yet */
    if (number == NULL)
        return SYM_ERR_NOMEM;
    memset(number, 0, count * sizeof(*number));
    uint32_t used = 0;
    for (size_t i = 0; i < index->count; i++)
        if (index->owner[i] != SYMINT_NO_OWNER && number[index->owner[i]] == 0)
            number[index->owner[i]] = ++used;
    struct entry *entries = NULL;
    if (used < SYMINT_NO_OWNER - *before)
        entries = symint_table_alloc((size_t)*before + used, sizeof(*entries));
    if (entries == NULL) {
        free(number);
        return SYM_ERR_NOMEM;
    }
    if (*before > 0)
        memcpy(entries, e->entries, *before * sizeof(*entries));
    free(e->entries);
    e->entries = entries;
    for (size_t i = 0; i < index->count; i++) {
        if (index->owner[i] == SYMINT_NO_OWNER)
            continue;
        const struct candidate *c = &all[index->owner[i]];
        uint32_t at = *before + number[index->owner[i]] - 1;
        entries[at] = (struct entry){.start = c->start, .name = c->name, .source = (uint8_t)source};
        index->owner[i] = at;
    }
    *before += used;
    free(number);
    return 0;
}

/* Flattens one table. */
static int flatten(struct symint_elf *e, const struct table *t, uint32_t *entry_count,
                   const struct symint_segments *other, struct symint_segments *index)
{
    int rc = SYM_ERR_NOMEM;
    struct candidate *all = NULL;
    const struct candidate **group = NULL;
    struct symint_pair *pairs = NULL;
    struct symint_sweep sweep;
    *index = (struct symint_segments){0};

    all = symint_table_alloc((size_t)t->count, sizeof(*all));
    pairs = symint_table_alloc((size_t)t->count, sizeof(*pairs));
    if (all == NULL || pairs == NULL)
        goto done;
    uint32_t count = 0;
    for (uint64_t i = 1; i < t->count; i++) { /* entry 0 is the undefined symbol */
        fetch_name(e, t, i + 24);
        if (keep_symbol(e, t, i, &all[count])) {
            pairs[count] = (struct symint_pair){.key = all[count].start, .value = count};
            count++;
        }
    }
    rc = 0;
    if (count == 0)
        goto done;
    rc = SYM_ERR_NOMEM;
    if (symint_sort_pairs(pairs, count) != 0)
        goto done;
    uint32_t largest = 1;
    for (uint32_t i = 1, run = 1; i < count; i++) {
        run = pairs[i].key == pairs[i - 1].key ? run + 1 : 1;
        largest = run > largest ? run : largest;
    }
    group = malloc(largest * sizeof(*group));
    if (group == NULL || symint_sweep_start(&sweep, index, count) != 0)
        goto done;
    for (uint32_t i = 0; i < count;) {
        uint32_t k = i;
        for (; k < count && pairs[k].key == pairs[i].key; k++)
            group[k - i] = &all[pairs[k].value];
        sweep_group(e, &sweep, t->source, group, k - i, k < count ? pairs[k].key : UINT64_MAX, all,
                    other);
        i = k;
    }
    symint_sweep_finish(&sweep);
    rc = keep_entries(e, index, t->source, all, count, entry_count);
    if (rc != 0)
        symint_segments_free(index);
done:
    free(all);
    free(pairs);
    free(group);
    return rc;
}

/* What a table needs from the file; offsets and sizes are claims. */
struct table_place {
    bool found;
    uint64_t symbols_offset, symbols_size;
    uint64_t strings_offset, strings_size;
    uint64_t versions_offset, versions_size;
    uint64_t sections_offset, sections_size;
};

static void place_by_sections(const struct symint_elf *e, uint32_t type, struct table_place *place)
{
    uint64_t at = 0;
    for (uint64_t i = 1; i < e->section_count; i++) {
        const struct section *s = &e->sections[i];
        if (s->type == type && !place->found && s->link < e->section_count) {
            at = i;
            place->found = true;
            place->symbols_offset = s->offset;
            place->symbols_size = s->size;
            place->strings_offset = e->sections[s->link].offset;
            place->strings_size = e->sections[s->link].size;
        }
    }
    for (uint64_t i = 1; i < e->section_count && place->found; i++) {
        const struct section *s = &e->sections[i];
        if (s->type == SHT_GNU_versym && s->link == at) {
            place->versions_offset = s->offset;
            place->versions_size = s->size;
        } else if (s->type == SHT_SYMTAB_SHNDX && s->link == at) {
            place->sections_offset = s->offset;
            place->sections_size = s->size;
        }
    }
}

/* The number of dynamic symbols, which only the hash tables tell; 0: unknown. */
static int count_dynamic_symbols(const struct symint_elf *e, uint64_t hash, uint64_t gnu_hash,
                                 uint64_t *count)
{
    uint64_t offset;
    uint64_t room;
    uint8_t head[16];
    *count = 0;
    if (hash != 0 && symint_elf_offset(e, hash, &offset, &room) && room >= 8 &&
        symint_elf_read(&e->input, offset, 8, head) == READ_OK) {
        *count = get32(e, head + 4); /* one chain entry for every symbol */
        return 0;
    }
    if (gnu_hash == 0 || !symint_elf_offset(e, gnu_hash, &offset, &room) || room < 16 ||
        symint_elf_read(&e->input, offset, 16, head) != READ_OK)
        return 0;
    uint64_t buckets = get32(e, head);
    uint64_t first = get32(e, head + 4);
    uint64_t skip = 16 + (uint64_t)get32(e, head + 8) * (e->wide ? 8 : 4);
    if (skip > room || buckets > (room - skip) / 4)
        return 0;
    uint8_t *words;
    enum sym_miss miss;
    int rc = symint_elf_load(&e->input, offset + skip, room - skip, &words, &miss);
    if (words == NULL)
        return rc;
    uint64_t last = 0;
    for (uint64_t i = 0; i < buckets; i++) {
        uint64_t bucket = get32(e, words + i * 4);
        last = bucket > last ? bucket : last;
    }
    *count = first;
    if (last >= first && last != 0) {
        /* The last chain ends at the entry whose lowest bit is set. */
        uint64_t chains = (room - skip) / 4 - buckets;
        uint64_t i = last - first;
        while (i < chains && (get32(e, words + (buckets + i) * 4) & 1) == 0)
            i++;
        *count = i < chains ? first + i + 1 : 0;
    }
    free(words);
    return 0;
}

/* The dynamic symbol table of a file without section headers. */
static int place_by_dynamic(const struct symint_elf *e, struct table_place *place)
{
    uint8_t *dynamic;
    enum sym_miss miss;
    uint64_t symbols = 0, strings = 0, strings_size = 0, hash = 0, gnu_hash = 0, versions = 0;
    int rc = symint_elf_load(&e->input, e->dynamic_offset, e->dynamic_size, &dynamic, &miss);
    if (dynamic == NULL)
        return rc;
    uint64_t size = e->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    for (uint64_t at = 0; e->dynamic_size - at >= size; at += size) {
        uint64_t tag = get_word(e, dynamic + at, 0, 0);
        uint64_t value = get_word(e, dynamic + at, 4, 8);
        if (tag == DT_NULL)
            break;
        switch (tag) {
        case DT_SYMTAB:
            symbols = value;
            break;
        case DT_STRTAB:
            strings = value;
            break;
        case DT_STRSZ:
            strings_size = value;
            break;
        case DT_HASH:
            hash = value;
            break;
        case DT_GNU_HASH:
            gnu_hash = value;
            break;
        case DT_VERSYM:
            versions = value;
            break;
        default:
            break;
        }
    }
    free(dynamic);
    uint64_t count;
    uint64_t symbols_room;
    uint64_t strings_room;
    rc = count_dynamic_symbols(e, hash, gnu_hash, &count);
    if (rc != 0 || count == 0 ||
        !symint_elf_offset(e, symbols, &place->symbols_offset, &symbols_room) ||
        !symint_elf_offset(e, strings, &place->strings_offset, &strings_room))
        return rc;
    uint64_t entry_size = e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    place->symbols_size = count <= symbols_room / entry_size ? count * entry_size : symbols_room;
    place->strings_size = strings_size < strings_room ? strings_size : strings_room;
    place->found = true;
    uint64_t versions_room;
    if (versions != 0 && symint_elf_offset(e, versions, &place->versions_offset, &versions_room))
        place->versions_size = count <= versions_room / 2 ? count * 2 : versions_room;
    return 0;
}

/* Reads one table and flattens it. *miss: NONE, or what is wrong with it. */
static int read_table(struct symint_elf *e, const struct table_place *place, uint8_t source,
                      uint32_t *entry_count, const struct symint_segments *other,
                      struct symint_segments *index, enum sym_miss *miss)
{
    struct table t = {.source = source};
    uint8_t *symbols = NULL;
    uint8_t *strings = NULL;
    uint8_t *versions = NULL;
    uint8_t *sections = NULL;
    enum sym_miss ignored;
    uint64_t entry_size = e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);

    *index = (struct symint_segments){0};
    int rc = symint_elf_load(&e->input, place->symbols_offset, place->symbols_size, &symbols, miss);
    if (symbols == NULL)
        goto done;
    t.symbols = symbols;
    t.count = place->symbols_size / entry_size;
    if (t.count >= SYMINT_NO_OWNER) {
        *miss = SYM_MISS_DAMAGED;
        goto done;
    }
    rc = symint_elf_load(&e->input, place->strings_offset, place->strings_size, &strings, miss);
    if (strings == NULL)
        goto done;
    e->strings[source] = (char *)strings;
    e->strings_size[source] = (size_t)place->strings_size;
    /* Without these two tables the rest is as good. */
    if (place->versions_size > 0) {
        rc = symint_elf_load(&e->input, place->versions_offset, place->versions_size, &versions,
                             &ignored);
        t.versions = versions;
        t.version_count = versions != NULL ? place->versions_size / 2 : 0;
    }
    if (rc == 0 && place->sections_size > 0) {
        rc = symint_elf_load(&e->input, place->sections_offset, place->sections_size, &sections,
                             &ignored);
        t.sections = sections;
        t.section_count = sections != NULL ? place->sections_size / 4 : 0;
    }
    if (rc == 0)
        rc = flatten(e, &t, entry_count, other, index);
done:
    free(symbols);
    free(versions);
    free(sections);
    return rc;
}

int symint_elf_index(struct symint_elf *e, enum sym_miss *miss, const char **why)
{
    struct table_place places[SOURCES] = {{0}};
    struct symint_segments found[SOURCES] = {{0}};
    uint32_t entry_count = 0;
    int rc = 0;

    *miss = SYM_MISS_NONE;
    if (e->section_count > 0) {
        rc = symint_elf_read_sections(e, miss, why);
        if (rc != 0 || *miss != SYM_MISS_NONE)
            return rc;
        place_by_sections(e, SHT_SYMTAB, &places[SYMTAB]);
        place_by_sections(e, SHT_DYNSYM, &places[DYNSYM]);
    } else if (e->dynamic_size > 0) {
        rc = place_by_dynamic(e, &places[DYNSYM]);
    }
    enum sym_miss damage = SYM_MISS_NONE;
    bool any = false;
    for (uint8_t i = SOURCES;
         i-- > 0 && rc == 0;) { /* .dynsym first: it limits sizeless symbols of .symtab */
        if (!places[i].found)
            continue;
        const struct symint_segments none = {0};
        enum sym_miss table_miss;
        rc = read_table(e, &places[i], i, &entry_count, i == SYMTAB ? &found[DYNSYM] : &none,
                        &found[i], &table_miss);
        any |= table_miss == SYM_MISS_NONE;
        damage = table_miss != SYM_MISS_NONE ? table_miss : damage;
    }
    symint_elf_drop_sections(e);
    if (rc == 0)
        rc = symint_segments_merge(&found[SYMTAB], &found[DYNSYM]);
    if (rc != 0) {
        symint_segments_free(&found[SYMTAB]);
        symint_segments_free(&found[DYNSYM]);
        for (int i = 0; i < SOURCES; i++) {
            free(e->strings[i]);
            e->strings[i] = NULL;
        }
        free(e->entries);
        e->entries = NULL;
        return rc;
    }
    e->index = found[SYMTAB];
    if (!any && damage != SYM_MISS_NONE) {
        *miss = damage;
        *why = "its symbol table is not inside the file";
    } else if (!any) {
        *miss = SYM_MISS_NO_SYMBOLS;
        *why = "it has no symbol table";
    }
    return 0;
}

uint32_t symint_elf_find(const struct symint_elf *e, uint64_t vaddr)
{
    return symint_segments_find(&e->index, vaddr);
}

struct symint_symbol symint_elf_symbol(const struct symint_elf *e, uint32_t number)
{
    const struct entry *entry = &e->entries[number];
    struct name n = name_of(e, entry->source, entry->name);
    return (struct symint_symbol){
        .start = entry->start,
        .name = n.text,
        .name_size = symint_cut_version(n.text, n.size),
        .origin = entry->source == SYMTAB ? SYM_ORIGIN_SYMTAB : SYM_ORIGIN_DYNSYM,
    };
}
