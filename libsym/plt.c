/* SPDX-License-Identifier: MIT */
/*
 * Names for stubs: from the slot a stub jumps through to the relocation that fills the slot, to that
 * relocation's symbol. Neither the order of slots nor that of relocations tells anything. Reading
 * the code is plt_walk.c's.
 */
#include "plt.h"

#include "demangle.h"
#include "elf_private.h"
#include "plt_walk.h"
#include "strtab.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_CODE_BYTES ((uint64_t)64 * 1024 * 1024) /* of all stubs */
#define MAX_HEADER_BYTES 64          /* a longer piece without a stub is something else */
#define MAX_NAME ((size_t)64 * 1024) /* what is longer counts as this long */
#define NO_NAME UINT32_MAX

/* ---- pieces of the file ---- */

/* Most of a large table is of no interest, and it is read in order or nearly so. */
struct window {
    const struct symint_input *input;
    uint64_t ahead; /* how much to read at once; at most WINDOW_SIZE */
    uint64_t offset;
    uint64_t size;
    uint8_t *bytes; /* WINDOW_SIZE, NULL: the file is in memory */
};

#define WINDOW_SIZE ((uint64_t)64 * 1024)

static int window_open(struct window *w, const struct symint_input *input, uint64_t ahead)
{
    *w = (struct window){.input = input, .ahead = ahead};
    if (input->fd >= 0)
        w->bytes = malloc(WINDOW_SIZE);
    return input->fd >= 0 && w->bytes == NULL ? SYM_ERR_NOMEM : 0;
}

/* Bytes of the file, at most WINDOW_SIZE of them, until the next call; NULL: it has no such. */
static const uint8_t *window_at(struct window *w, uint64_t offset, uint64_t size)
{
    if (offset > w->input->size || size > w->input->size - offset)
        return NULL;
    if (w->bytes == NULL)
        return w->input->memory + offset;
    if (offset < w->offset || offset - w->offset > w->size ||
        size > w->size - (offset - w->offset)) {
        uint64_t wanted = size > w->ahead ? size : w->ahead;
        uint64_t rest = w->input->size - offset;
        w->offset = offset;
        w->size = wanted < rest ? wanted : rest;
        if (symint_elf_read(w->input, offset, w->size, w->bytes) != READ_OK) {
            w->size = 0;
            return NULL;
        }
    }
    return w->bytes + (offset - w->offset);
}

/* ---- names ---- */

/* What a machine calls the relocations that fill a slot. */
struct types {
    uint32_t jump_slot, glob_dat, irelative;
};

struct slot {
    uint64_t address;
    uint64_t value;                /* number of the symbol, or address of the resolver */
    const struct section *symbols; /* NULL: a resolver */
    bool found;                    /* its relocation */
    uint32_t name;                 /* in the names, or NO_NAME */
};

struct reading {
    const struct symint_elf *e;
    symint_plt_namer *namer;
    void *user;
    struct types types;
    const struct section *dynsym; /* whose strings e->strings[DYNSYM] are, once it is indexed */
    struct symint_stub_list stubs;
    struct slot *slots; /* ascending */
    size_t slot_count;
    size_t missing; /* slots that no relocation was found for yet */
    struct window relocations, symbols, strings;
    char *names;
    size_t names_size;
    size_t names_capacity;
};

/* Adds `NAME` and what comes behind it; *name is NO_NAME when there is no room for it. */
static int add_name(struct reading *r, const char *text, size_t size, const char *behind,
                    uint32_t *name)
{
    size_t more = strlen(behind) + 1;
    *name = NO_NAME;
    /* Each slot's name lies in the file, but a file can let many share one long text. */
    uint64_t limit = r->e->input.size < NO_NAME ? r->e->input.size : NO_NAME;
    if (size + more > limit || r->names_size > limit - size - more)
        return 0;
    size_t needed = r->names_size + size + more;
    if (needed > r->names_capacity) {
        size_t capacity = needed < 2048 ? 4096 : needed * 2;
        char *names = realloc(r->names, capacity);
        if (names == NULL)
            return SYM_ERR_NOMEM;
        r->names = names;
        r->names_capacity = capacity;
    }
    memcpy(r->names + r->names_size, text, size);
    memcpy(r->names + r->names_size + size, behind, more);
    *name = (uint32_t)r->names_size;
    r->names_size = needed;
    return 0;
}

/* The text at an offset of the string table of a symbol table, *size 0: none. */
static const char *text_at(struct reading *r, const struct section *symbols, uint64_t at,
                           size_t *size)
{
    const struct symint_elf *e = r->e;
    const struct section *strings = &e->sections[symbols->link];
    *size = 0;
    /* The index may have loaded it: a read for each name takes longer than all the rest. */
    if (symbols == r->dynsym && e->strings[DYNSYM] != NULL) {
        if (at >= e->strings_size[DYNSYM])
            return NULL;
        uint64_t rest = e->strings_size[DYNSYM] - at;
        *size = strnlen(e->strings[DYNSYM] + at, rest < MAX_NAME ? (size_t)rest : MAX_NAME);
        return e->strings[DYNSYM] + at;
    }
    if (strings->type == SHT_NOBITS || at >= strings->size || strings->offset > UINT64_MAX - at)
        return NULL;
    uint64_t most = strings->size - at < MAX_NAME ? strings->size - at : MAX_NAME;
    for (uint64_t room = 256;; room *= 16) { /* names are short */
        uint64_t look = room < most ? room : most;
        const char *text = (const char *)window_at(&r->strings, strings->offset + at, look);
        *size = text != NULL ? strnlen(text, (size_t)look) : 0;
        if (text == NULL || *size < look || look == most)
            return text;
    }
}

static int name_by_symbol(struct reading *r, struct slot *slot)
{
    const struct symint_elf *e = r->e;
    const struct section *table = slot->symbols;
    uint64_t entry_size = e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    if (slot->value >= table->size / entry_size || table->offset > UINT64_MAX - table->size)
        return 0;
    const uint8_t *p = window_at(&r->symbols, table->offset + slot->value * entry_size, entry_size);
    if (p == NULL)
        return 0;
    size_t size;
    const char *text = text_at(r, table, get32(e, p), &size);
    size = size > 0 ? symint_cut_version(text, size) : 0;
    return size > 0 ? add_name(r, text, size, "@plt", &slot->name) : 0;
}

/* By the function that chooses what the slot gets. */
static int name_by_resolver(struct reading *r, struct slot *slot)
{
    char text[40];
    size_t size = 0;
    const char *found = r->namer != NULL ? r->namer(r->user, slot->value, &size) : NULL;
    size = found != NULL ? symint_cut_version(found, size) : 0;
    if (size > 0)
        return add_name(r, found, size < MAX_NAME ? size : MAX_NAME, "@plt", &slot->name);
    int n = snprintf(text, sizeof(text), "*ABS*+0x%llx", (unsigned long long)slot->value);
    return add_name(r, text, (size_t)n, "@plt", &slot->name);
}

/* Names the slots whose relocations were found. In the order of symbols: names of defined symbols
 * are all over the symbol table. */
static int name_slots(struct reading *r)
{
    size_t n = 0;
    struct symint_pair *pairs = symint_scratch_alloc(r->slot_count, sizeof(*pairs));
    int rc = pairs == NULL ? SYM_ERR_NOMEM : 0;
    for (size_t i = 0; rc == 0 && i < r->slot_count; i++)
        if (r->slots[i].found)
            pairs[n++] = (struct symint_pair){.key = r->slots[i].value, .value = (uint32_t)i};
    if (rc == 0)
        rc = symint_sort_pairs(pairs, n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct slot *slot = &r->slots[pairs[i].value];
        rc = slot->symbols != NULL ? name_by_symbol(r, slot) : name_by_resolver(r, slot);
    }
    free(pairs);
    return rc;
}

/* ---- relocations ---- */

static bool known_types(const struct symint_elf *e, struct types *t)
{
    switch (e->machine) {
    case EM_386:
        *t = (struct types){R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_IRELATIVE};
        return true;
    case EM_X86_64:
        *t = (struct types){R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE};
        return true;
    case EM_AARCH64:
        *t = e->wide ? (struct types){R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE}
                     : (struct types){R_AARCH64_P32_JUMP_SLOT, R_AARCH64_P32_GLOB_DAT,
                                      R_AARCH64_P32_IRELATIVE};
        return true;
    default:
        return false;
    }
}

/* Without an address it is for the linker. The size it states for an entry is ignored. */
static bool is_relocations(const struct section *s)
{
    return (s->type == SHT_RELA || s->type == SHT_REL) && s->addr != 0 && !s->compressed &&
           s->offset <= UINT64_MAX - s->size;
}

static uint64_t relocation_size(const struct symint_elf *e, const struct section *s)
{
    if (s->type == SHT_RELA)
        return e->wide ? sizeof(Elf64_Rela) : sizeof(Elf32_Rela);
    return e->wide ? sizeof(Elf64_Rel) : sizeof(Elf32_Rel);
}

static bool is_lazy(const struct section *s)
{
    return is_relocations(s) &&
           (strcmp(s->name, ".rela.plt") == 0 || strcmp(s->name, ".rel.plt") == 0);
}

static struct slot *find_slot(const struct reading *r, uint64_t address)
{
    size_t low = 0;
    size_t high = r->slot_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->slots[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->slot_count && r->slots[low].address == address ? &r->slots[low] : NULL;
}

/* Sees whether a relocation fills a slot that nothing fills yet. */
static void take_relocation(struct reading *r, const struct section *s, const uint8_t *p)
{
    const struct symint_elf *e = r->e;
    uint64_t info = get_word(e, p, 4, 8);
    uint32_t type = e->wide ? (uint32_t)info : (uint32_t)info & 0xff;
    bool irelative = type == r->types.irelative;
    if (!irelative && type != r->types.jump_slot && type != r->types.glob_dat)
        return;
    uint64_t address = get_word(e, p, 0, 0);
    struct slot *slot = find_slot(r, address);
    if (slot == NULL || slot->found)
        return;
    if (!irelative) {
        if (s->link >= e->section_count)
            return;
        slot->symbols = &e->sections[s->link];
        slot->value = e->wide ? info >> 32 : info >> 8;
        slot->found = (slot->symbols->type == SHT_DYNSYM || slot->symbols->type == SHT_SYMTAB) &&
                      slot->symbols->link < e->section_count;
    } else if (s->type == SHT_RELA) {
        slot->value = get_word(e, p, 8, 16);
        slot->found = true;
    } else { /* the resolver's address is where that of its choice will be */
        uint8_t word[8];
        uint64_t offset;
        uint64_t room;
        uint64_t size = e->wide ? 8 : 4;
        if (!symint_elf_offset(e, address, &offset, &room) || room < size ||
            symint_elf_read(&e->input, offset, size, word) != READ_OK)
            return;
        slot->value = get_word(e, word, 0, 0);
        slot->found = true;
    }
    if (irelative)
        slot->symbols = NULL;
    r->missing -= slot->found;
}

/* Backwards: linkers put the many relocations that name no symbol first. */
static void read_relocations(struct reading *r, const struct section *s)
{
    uint64_t entry_size = relocation_size(r->e, s);
    uint64_t at_once = WINDOW_SIZE / entry_size;
    for (uint64_t left = s->size / entry_size; left > 0;) {
        uint64_t n = left < at_once ? left : at_once;
        left -= n;
        const uint8_t *p =
            window_at(&r->relocations, s->offset + left * entry_size, n * entry_size);
        for (uint64_t i = n; p != NULL && i-- > 0;) {
            if (r->missing == 0)
                return;
            take_relocation(r, s, p + i * entry_size);
        }
    }
}

/* Finds the relocations of slots, first among those of .plt: most files need no other. */
static void find_relocations(struct reading *r)
{
    const struct symint_elf *e = r->e;
    uint64_t budget = e->input.size; /* sections that overlap are not read over and over */
    for (int lazy = 1; lazy >= 0; lazy--) {
        for (uint64_t i = 1; i < e->section_count && r->missing > 0; i++) {
            const struct section *s = &e->sections[i];
            if (!is_relocations(s) || is_lazy(s) != lazy || s->size > budget)
                continue;
            budget -= s->size;
            read_relocations(r, s);
        }
    }
}

/* Turns the numbers of relocations into the slots these fill. */
static void find_indexed_slots(struct reading *r)
{
    const struct symint_elf *e = r->e;
    const struct section *table = NULL;
    for (uint64_t i = 1; i < e->section_count && table == NULL; i++)
        if (is_lazy(&e->sections[i]))
            table = &e->sections[i];
    for (size_t i = 0; i < r->stubs.count; i++) {
        struct symint_stub *stub = &r->stubs.items[i];
        if (stub->kind != SYMINT_STUB_INDEX)
            continue;
        stub->kind = SYMINT_STUB_OTHER;
        if (table == NULL)
            continue;
        uint64_t size = relocation_size(e, table);
        uint64_t at = e->machine == EM_386 ? stub->value : stub->value * size;
        if (at % size != 0 || at > table->size || size > table->size - at)
            continue;
        const uint8_t *p = window_at(&r->relocations, table->offset + at, size);
        if (p != NULL) {
            stub->kind = SYMINT_STUB_SLOT;
            stub->value = get_word(e, p, 0, 0);
        }
    }
}

/* ---- stubs ---- */

static bool is_plt(const struct section *s)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt"};
    if (!s->executable || s->type == SHT_NOBITS || s->compressed)
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(s->name, names[i]) == 0)
            return true;
    return false;
}

/* What stubs of i386 libraries have in %ebx; 0: unknown. */
static int find_got(const struct symint_elf *e, uint64_t *got)
{
    uint8_t *dynamic;
    enum sym_miss ignored;
    *got = 0;
    if (e->machine != EM_386)
        return 0;
    int rc = symint_elf_load(&e->input, e->dynamic_offset, e->dynamic_size, &dynamic, &ignored);
    if (dynamic == NULL)
        return rc;
    uint64_t size = e->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    for (uint64_t at = 0; e->dynamic_size - at >= size; at += size) {
        uint64_t tag = get_word(e, dynamic + at, 0, 0);
        if (tag == DT_NULL)
            break;
        if (tag == DT_PLTGOT)
            *got = get_word(e, dynamic + at, 4, 8);
    }
    free(dynamic);
    return 0;
}

/* Says how far the stubs of a section reach, from number `first` on, and adds the header. */
static int finish_section(struct symint_stub_list *l, size_t first, const struct section *s)
{
    size_t head = l->count;
    for (size_t i = first; i < l->count; i++) {
        struct symint_stub *stub = &l->items[i];
        if (stub->kind == SYMINT_STUB_OTHER)
            continue;
        head = head == l->count ? i : head;
        if (i + 1 == l->count)
            break;
        const struct symint_stub *next = stub + 1;
        if (next->kind != SYMINT_STUB_OTHER || stub->end > next->start)
            stub->end = next->start;
    }
    if (head == l->count || strcmp(s->name, ".plt") != 0)
        return 0;
    uint64_t start = l->items[head].start;
    if (start == s->addr || start - s->addr > MAX_HEADER_BYTES)
        return 0;
    return symint_stub_add(
        l, &(struct symint_stub){.start = s->addr, .end = start, .kind = SYMINT_STUB_HEADER});
}

static int find_stubs(struct reading *r)
{
    const struct symint_elf *e = r->e;
    struct symint_plt_code code = {.machine = e->machine,
                                   .mask = e->wide ? UINT64_MAX : UINT32_MAX};
    uint64_t budget = e->input.size < MAX_CODE_BYTES ? e->input.size : MAX_CODE_BYTES;
    int rc = find_got(e, &code.got);
    for (uint64_t i = 1; i < e->section_count && rc == 0; i++) {
        const struct section *s = &e->sections[i];
        uint8_t *bytes;
        enum sym_miss ignored;
        if (!is_plt(s) || s->size > budget || s->addr > code.mask || s->size > code.mask - s->addr)
            continue;
        budget -= s->size;
        rc = symint_elf_load_section(e, s, &bytes, &ignored);
        if (bytes == NULL)
            continue;
        code.bytes = bytes;
        code.size = s->size;
        code.address = s->addr;
        size_t first = r->stubs.count;
        rc = symint_plt_walk(&code, &r->stubs);
        if (rc == 0)
            rc = finish_section(&r->stubs, first, s);
        free(bytes);
    }
    return rc;
}

/* Makes the table of slots; a stub's value becomes the number of its slot. */
static int collect_slots(struct reading *r)
{
    size_t n = 0;
    struct symint_pair *pairs = symint_scratch_alloc(r->stubs.count, sizeof(*pairs));
    r->slots = symint_scratch_alloc(r->stubs.count, sizeof(*r->slots));
    int rc = pairs == NULL || r->slots == NULL ? SYM_ERR_NOMEM : 0;
    for (size_t i = 0; rc == 0 && i < r->stubs.count; i++)
        if (r->stubs.items[i].kind == SYMINT_STUB_SLOT)
            pairs[n++] = (struct symint_pair){.key = r->stubs.items[i].value, .value = (uint32_t)i};
    if (rc == 0)
        rc = symint_sort_pairs(pairs, n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i == 0 || pairs[i].key != pairs[i - 1].key)
            r->slots[r->slot_count++] = (struct slot){.address = pairs[i].key, .name = NO_NAME};
        r->stubs.items[pairs[i].value].value = r->slot_count - 1;
    }
    r->missing = r->slot_count;
    free(pairs);
    return rc;
}

/* The stubs that have a name, by address; of those that overlap, in files that lie, the first. */
static int put_in_order(struct reading *r, struct symint_plt *out)
{
    size_t n = 0;
    uint32_t header = NO_NAME;
    int rc = 0;
    struct symint_pair *pairs = symint_scratch_alloc(r->stubs.count, sizeof(*pairs));
    out->stubs = symint_table_alloc(r->stubs.count, sizeof(*out->stubs));
    if (pairs == NULL || out->stubs == NULL)
        rc = SYM_ERR_NOMEM;
    for (size_t i = 0; rc == 0 && i < r->stubs.count; i++)
        if (r->stubs.items[i].kind != SYMINT_STUB_OTHER)
            pairs[n++] = (struct symint_pair){.key = r->stubs.items[i].start, .value = (uint32_t)i};
    if (rc == 0)
        rc = symint_sort_pairs(pairs, n);
    uint64_t covered = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct symint_stub *stub = &r->stubs.items[pairs[i].value];
        uint32_t name = header;
        if (stub->kind == SYMINT_STUB_SLOT)
            name = r->slots[stub->value].name;
        else if (header == NO_NAME) {
            rc = add_name(r, "", 0, "<plt header>", &header);
            name = header;
        }
        if (name == NO_NAME || stub->start < covered || stub->start >= stub->end)
            continue;
        covered = stub->end;
        out->stubs[out->count++] =
            (struct symint_plt_stub){.start = stub->start, .end = stub->end, .name = name};
    }
    free(pairs);
    out->names = r->names;
    out->names_size = r->names_size;
    r->names = NULL;
    return rc;
}

int symint_plt_read(const struct symint_elf *e, symint_plt_namer *namer, void *user,
                    struct symint_plt *out)
{
    struct reading r = {.e = e, .namer = namer, .user = user};
    *out = (struct symint_plt){0};
    if (e->sections == NULL || !known_types(e, &r.types))
        return 0;
    for (uint64_t i = 1; i < e->section_count && r.dynsym == NULL; i++)
        if (e->sections[i].type == SHT_DYNSYM && e->sections[i].link < e->section_count)
            r.dynsym = &e->sections[i];
    int rc = find_stubs(&r);
    if (rc != 0 || r.stubs.count == 0)
        goto done;
    rc = SYM_ERR_NOMEM;
    if (window_open(&r.relocations, &e->input, 4096) != 0 ||
        window_open(&r.symbols, &e->input, 16384) != 0 ||
        window_open(&r.strings, &e->input, 256) != 0)
        goto done;
    find_indexed_slots(&r);
    rc = collect_slots(&r);
    if (rc == 0) {
        find_relocations(&r);
        rc = name_slots(&r);
    }
    if (rc == 0)
        rc = put_in_order(&r, out);
done:
    free(r.stubs.items);
    free(r.slots);
    free(r.names);
    free(r.relocations.bytes);
    free(r.symbols.bytes);
    free(r.strings.bytes);
    if (rc != 0)
        symint_plt_free(out);
    return rc;
}

void symint_plt_free(struct symint_plt *p)
{
    free(p->stubs);
    free(p->names);
    *p = (struct symint_plt){0};
}
