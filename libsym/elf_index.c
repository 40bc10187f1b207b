/* SPDX-License-Identifier: MIT */
/*
 * The index of one file: what names an address, from all sources.
 * Each source fills what those before it left open.
 */
#include "debuginfo.h"
#include "demangle.h"
#include "elf_private.h"
#include "fde.h"
#include "plt.h"
#include "strtab.h"

#include <stdlib.h>
#include <string.h>

/* ---- symbol tables ---- */

struct building {
    struct symint_elf *elf;
    struct symint_fdes fdes;
    struct symint_segments index; /* so far */
    bool any;                     /* some table was read */
    enum sym_miss damage;         /* of one that could not be */
    const char *note;
};

static int read_table(struct building *b, const struct symint_elf *from, uint8_t source,
                      struct symint_segments *found)
{
    enum sym_miss miss;
    int rc = symint_symtab_read(b->elf, from, source, &b->fdes, &b->index, found, &miss);
    b->any |= rc == 0 && miss == SYM_MISS_NONE;
    if (miss != SYM_MISS_NONE && miss != SYM_MISS_NO_SYMBOLS)
        b->damage = miss;
    return rc;
}

/* The small table that a stripped file carries. */
static int read_minidebug(struct building *b, struct symint_segments *found)
{
    struct symint_elf *mini = NULL;
    enum sym_miss miss;
    const char *why = "";
    uint8_t *data;
    size_t size;
    int rc = symint_minidebug_read(b->elf, &data, &size, &b->note);
    if (rc != 0 || data == NULL)
        return rc;
    struct symint_input input = {.fd = -1, .memory = data, .size = size};
    rc = symint_elf_open(&input, &mini, &miss, &why);
    if (rc == 0 && mini != NULL)
        rc = symint_elf_read_sections(mini, &miss, &why);
    if (rc == 0 && mini != NULL && miss == SYM_MISS_NONE)
        rc = read_table(b, mini, MINIDEBUG, found);
    else if (rc == 0)
        b->note = "its .gnu_debugdata is damaged";
    symint_elf_free(mini);
    free(data);
    return rc;
}

static int read_tables(struct building *b, struct symint_elf *debug)
{
    struct symint_segments dynamic = {0};
    struct symint_segments found = {0};
    /* .dynsym first: it limits sizeless symbols of the others, which win nevertheless. */
    int rc = read_table(b, b->elf, DYNSYM, &dynamic);
    b->index = dynamic;
    if (rc == 0 && symint_elf_has_symtab(b->elf))
        rc = read_table(b, b->elf, SYMTAB, &found);
    else if (rc == 0 && debug != NULL && symint_elf_has_symtab(debug))
        rc = read_table(b, debug, SYMTAB, &found);
    if (rc == 0 && found.count == 0)
        rc = read_minidebug(b, &found);
    if (rc == 0)
        rc = symint_segments_merge(&found, &b->index);
    if (rc != 0) {
        symint_segments_free(&found);
        return rc;
    }
    b->index = found;
    return 0;
}

/* ---- stubs ---- */

/* The function that begins at an address, for stubs whose slot a resolver fills. */
static const char *name_function(void *user, uint64_t vaddr, size_t *size)
{
    const struct building *b = user;
    const struct symint_elf *e = b->elf;
    uint32_t owner = symint_segments_find(&b->index, vaddr);
    if (owner == SYMINT_NO_OWNER || e->entries[owner].start != vaddr)
        return NULL;
    const struct entry *entry = &e->entries[owner];
    const char *name = e->strings[entry->source] + entry->name;
    *size = symint_cut_version(name, symint_name_size(e, entry->source, entry->name));
    return name;
}

static int add_stubs(struct building *b)
{
    struct symint_elf *e = b->elf;
    struct symint_plt plt;
    struct symint_segments found = {0};
    struct symint_sweep sweep;
    int rc = symint_plt_read(e, name_function, b, &plt);
    if (rc != 0 || plt.count == 0) {
        symint_plt_free(&plt);
        return rc;
    }
    rc = plt.count < SYMINT_NO_OWNER ? symint_entries_grow(e, (uint32_t)plt.count) : SYM_ERR_NOMEM;
    if (rc == 0)
        rc = symint_sweep_start(&sweep, &found, plt.count);
    if (rc == 0) {
        for (size_t i = 0; i < plt.count; i++) {
            const struct symint_plt_stub *stub = &plt.stubs[i];
            e->entries[e->entry_count] =
                (struct entry){.start = stub->start, .name = stub->name, .source = PLT};
            symint_sweep_push(&sweep, stub->start, stub->end, e->entry_count++);
        }
        symint_sweep_finish(&sweep);
        rc = symint_segments_merge(&b->index, &found);
        if (rc != 0)
            symint_segments_free(&found);
    }
    e->strings[PLT] = plt.names;
    e->strings_size[PLT] = plt.names_size;
    plt.names = NULL;
    symint_plt_free(&plt);
    return rc;
}

/* ---- unwind data ---- */

/* Walks the gaps of the index along with ascending starts. */
struct gap {
    const struct symint_segments *index;
    size_t at; /* the gap ends where segment `at` begins */
};

/* Whether part of [start, end) is in a gap. Calls come in ascending start. */
static bool meets_gap(struct gap *g, uint64_t start, uint64_t end)
{
    const struct symint_segments *s = g->index;
    for (; g->at < s->count; g->at++)
        if ((g->at == 0 || s->owner[g->at - 1] == SYMINT_NO_OWNER) && s->start[g->at] > start)
            return g->at == 0 || s->start[g->at - 1] < end;
    return s->count == 0 ||
           (s->owner[s->count - 1] == SYMINT_NO_OWNER && s->start[s->count - 1] < end);
}

/* Functions without a name: unwind data tell at least where they begin. One whose start has a name
 * gets that name to its end. */
static int add_functions(struct building *b)
{
    struct symint_elf *e = b->elf;
    const struct symint_fdes *f = &b->fdes;
    struct symint_segments found = {0};
    struct symint_sweep sweep;
    struct gap gap = {.index = &b->index};
    size_t count = 0;
    size_t *open = symint_scratch_alloc(f->count, sizeof(*open));
    if (open == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < f->count; i++)
        if (meets_gap(&gap, f->start[i], f->end[i]))
            open[count++] = i;
    int rc = 0;
    if (count == 0)
        goto done;
    rc = count < SYMINT_NO_OWNER ? symint_entries_grow(e, (uint32_t)count) : SYM_ERR_NOMEM;
    if (rc == 0)
        rc = symint_sweep_start(&sweep, &found, count);
    if (rc != 0)
        goto done;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = f->start[open[i]];
        uint32_t owner = symint_segments_find(&b->index, start);
        if (owner == SYMINT_NO_OWNER || e->entries[owner].start != start) {
            owner = e->entry_count++;
            e->entries[owner] = (struct entry){.start = start, .source = FDE};
        }
        symint_sweep_push(&sweep, start, f->end[open[i]], owner);
    }
    symint_sweep_finish(&sweep);
    rc = symint_segments_merge(&b->index, &found);
    if (rc != 0)
        symint_segments_free(&found);
done:
    free(open);
    return rc;
}

/* ---- API ---- */

static void drop_index(struct symint_elf *e)
{
    for (int i = 0; i < SOURCES; i++) {
        free(e->strings[i]);
        e->strings[i] = NULL;
        e->strings_size[i] = 0;
    }
    free(e->entries);
    e->entries = NULL;
    e->entry_count = 0;
}

int symint_elf_index(struct symint_elf *e, struct symint_elf *debug, enum sym_miss *miss,
                     const char **why, const char **note)
{
    struct building b = {.elf = e, .damage = SYM_MISS_NONE, .note = ""};
    int rc = 0;
    *note = "";
    *miss = SYM_MISS_NONE;
    if (e->section_count > 0)
        rc = symint_elf_read_sections(e, miss, why);
    if (rc != 0 || *miss != SYM_MISS_NONE)
        return rc;
    if (debug != NULL && !symint_elf_lay_out(debug, e))
        debug = NULL;
    /* Unwind data of a relocatable file are not relocated, and it has no stubs. */
    if (!e->relocatable)
        rc = symint_fdes_read(e, &b.fdes);
    if (rc == 0)
        rc = read_tables(&b, debug);
    if (rc == 0 && !e->relocatable)
        rc = add_stubs(&b);
    if (rc == 0)
        rc = add_functions(&b);
    symint_fdes_free(&b.fdes);
    symint_elf_drop_sections(e);
    if (rc != 0) {
        symint_segments_free(&b.index);
        drop_index(e);
        return rc;
    }
    e->index = b.index;
    symint_segments_settle(&e->index);
    e->entries = symint_settle(e->entries, e->entry_count * sizeof(*e->entries));
    *note = b.note[0] == '\0' && b.damage != SYM_MISS_NONE ? "one of its symbol tables is damaged"
                                                           : b.note;
    if (!b.any && b.damage != SYM_MISS_NONE) {
        *miss = b.damage;
        *why = "its symbol table is not inside the file";
    } else if (!b.any && b.index.count == 0) {
        *miss = SYM_MISS_NO_SYMBOLS;
        *why = b.note[0] != '\0' ? b.note : "it has no symbol table";
    }
    return 0;
}

uint64_t symint_elf_index_bytes(const struct symint_elf *e)
{
    uint64_t bytes = sizeof(*e) + e->segment_count * sizeof(*e->segments);
    for (int i = 0; i < SOURCES; i++)
        bytes += e->strings_size[i];
    bytes += (uint64_t)e->entry_count * sizeof(*e->entries);
    /* The segments were allocated for the worst case: most of it was never touched. */
    return bytes + (uint64_t)e->index.count * (sizeof(*e->index.start) + sizeof(*e->index.owner));
}

uint32_t symint_elf_find(const struct symint_elf *e, uint64_t vaddr)
{
    return symint_segments_find(&e->index, vaddr);
}

void symint_elf_extent(const struct symint_elf *e, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
    symint_segments_bounds(&e->index, vaddr, start, end);
}

struct symint_symbol symint_elf_symbol(const struct symint_elf *e, uint32_t number)
{
    static const enum sym_origin origins[SOURCES] = {[SYMTAB] = SYM_ORIGIN_SYMTAB,
                                                     [MINIDEBUG] = SYM_ORIGIN_MINIDEBUG,
                                                     [DYNSYM] = SYM_ORIGIN_DYNSYM,
                                                     [PLT] = SYM_ORIGIN_PLT,
                                                     [FDE] = SYM_ORIGIN_FDE};
    const struct entry *entry = &e->entries[number];
    struct symint_symbol symbol = {.start = entry->start, .origin = origins[entry->source]};
    if (entry->source == FDE)
        return symbol;
    symbol.name = e->strings[entry->source] + entry->name;
    symbol.name_size = symint_name_size(e, entry->source, entry->name);
    if (entry->source != PLT)
        symbol.name_size = symint_cut_version(symbol.name, symbol.name_size);
    return symbol;
}
