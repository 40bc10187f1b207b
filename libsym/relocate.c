/* SPDX-License-Identifier: MIT */
/*
 * Relocations as debug sections have them: a symbol's value and an addend, in 1 to 8 bytes. What code needs beyond that
 * (parts of instructions, tables of a linker) is unknown here.
 */
#include "relocate.h"

#include "elf_private.h"
#include "unpack.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static const char damaged[] = "the relocations of a debug section are damaged";
static const char unknown[] = "a debug section has relocations of an unknown kind";

/* ---- kinds ---- */

struct kind {
    uint8_t bytes; /* that are written; 0: none */
    bool relative; /* to the place */
    bool known;
};

/* Offsets into a thread's storage are left as they are: nobody asks for variables. */
static struct kind kind_of(uint16_t machine, uint32_t type)
{
    static const struct {
        uint16_t machine;
        uint16_t type;
        uint8_t bytes;
        bool relative;
    } kinds[] = {
        {EM_X86_64, R_X86_64_NONE, 0, false},
        {EM_X86_64, R_X86_64_64, 8, false},
        {EM_X86_64, R_X86_64_32, 4, false},
        {EM_X86_64, R_X86_64_32S, 4, false},
        {EM_X86_64, R_X86_64_16, 2, false},
        {EM_X86_64, R_X86_64_8, 1, false},
        {EM_X86_64, R_X86_64_PC64, 8, true},
        {EM_X86_64, R_X86_64_PC32, 4, true},
        {EM_X86_64, R_X86_64_DTPOFF64, 0, false},
        {EM_X86_64, R_X86_64_DTPOFF32, 0, false},
        {EM_AARCH64, R_AARCH64_NONE, 0, false},
        {EM_AARCH64, 256, 0, false}, /* once NONE, too */
        {EM_AARCH64, R_AARCH64_ABS64, 8, false},
        {EM_AARCH64, R_AARCH64_ABS32, 4, false},
        {EM_AARCH64, R_AARCH64_ABS16, 2, false},
        {EM_AARCH64, R_AARCH64_PREL64, 8, true},
        {EM_AARCH64, R_AARCH64_PREL32, 4, true},
        {EM_AARCH64, R_AARCH64_TLS_DTPREL, 0, false},
        {EM_386, R_386_NONE, 0, false},
        {EM_386, R_386_32, 4, false},
        {EM_386, R_386_16, 2, false},
        {EM_386, R_386_8, 1, false},
        {EM_386, R_386_PC32, 4, true},
        {EM_386, R_386_TLS_LDO_32, 0, false},
        {EM_ARM, R_ARM_NONE, 0, false},
        {EM_ARM, R_ARM_ABS32, 4, false},
        {EM_ARM, R_ARM_REL32, 4, true},
        {EM_ARM, R_ARM_TLS_LDO32, 0, false},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].machine == machine && kinds[i].type == type)
            return (struct kind){kinds[i].bytes, kinds[i].relative, true};
    return (struct kind){0};
}

/* ---- symbols ---- */

/* The symbol table that one section of relocations refers to. */
struct symbols {
    const struct symint_elf *elf;
    uint8_t *table;
    uint64_t count;
    uint8_t *sections; /* SHT_SYMTAB_SHNDX, NULL: none */
    uint64_t section_count;
};

static void free_symbols(struct symbols *s)
{
    free(s->table);
    free(s->sections);
}

static const char *load_symbols(const struct symint_elf *e, uint32_t number, struct symbols *out)
{
    uint64_t entry = e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    enum sym_miss miss;
    *out = (struct symbols){.elf = e};
    if (number >= e->section_count || e->sections[number].type != SHT_SYMTAB)
        return damaged;
    if (symint_elf_load_section(e, &e->sections[number], &out->table, &miss) != 0)
        return symint_unpack_no_memory;
    if (out->table == NULL)
        return damaged;
    out->count = e->sections[number].size / entry;
    for (uint64_t i = 1; i < e->section_count && out->sections == NULL; i++) {
        const struct section *s = &e->sections[i];
        if (s->type != SHT_SYMTAB_SHNDX || s->link != number)
            continue;
        if (symint_elf_load_section(e, s, &out->sections, &miss) != 0)
            return symint_unpack_no_memory;
        out->section_count = out->sections != NULL ? s->size / 4 : 0;
    }
    return NULL;
}

/* A symbol's value where the file's addresses are what sections[].addr says; 0 for one that is defined elsewhere. */
static bool symbol_value(const struct symbols *s, uint64_t i, uint64_t *value)
{
    const struct symint_elf *e = s->elf;
    *value = 0;
    if (i >= s->count)
        return false;
    const uint8_t *p = s->table + i * (e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    uint32_t section = get16(e, p + (e->wide ? 6 : 14));
    uint64_t own = get_word(e, p, 4, 8);
    if (section == SHN_XINDEX) {
        if (i >= s->section_count)
            return false;
        section = get32(e, s->sections + i * 4);
    } else if (section == SHN_ABS) {
        *value = own;
        return true;
    } else if (section >= SHN_LORESERVE) {
        return true; /* SHN_COMMON, whose value is an alignment */
    }
    if (section == SHN_UNDEF)
        return true;
    if (section >= e->section_count)
        return false;
    *value = own + e->sections[section].addr;
    return true;
}

/* ---- relocations ---- */

static uint64_t read_field(const struct symint_elf *e, const uint8_t *p, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return *p;
    case 2:
        return get16(e, p);
    case 4:
        return get32(e, p);
    default:
        return get64(e, p);
    }
}

static void write_field(const struct symint_elf *e, uint8_t *p, unsigned bytes, uint64_t value)
{
    bool big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != e->swap;
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(value >> (big ? bytes - 1 - i : i) * 8);
}

static const char *apply(const struct symbols *s, const uint8_t *entries, uint64_t count,
                         bool addends, uint8_t *bytes, uint64_t size)
{
    const struct symint_elf *e = s->elf;
    uint64_t word = e->wide ? 8 : 4;
    uint32_t last = 0; /* mostly the next one's, too */
    struct kind kind = kind_of(e->machine, last);
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *p = entries + i * word * (addends ? 3 : 2);
        uint64_t at = get_word(e, p, 0, 0);
        uint64_t info = get_word(e, p, 4, 8);
        uint32_t type = (uint32_t)(e->wide ? info & UINT32_MAX : info & 0xff);
        if (type != last)
            kind = kind_of(e->machine, type);
        last = type;
        uint64_t value;
        if (!kind.known)
            return unknown;
        if (kind.bytes == 0)
            continue;
        if (at > size || kind.bytes > size - at ||
            !symbol_value(s, e->wide ? info >> 32 : info >> 8, &value))
            return damaged;
        value += addends ? get_word(e, p, 8, 16) : read_field(e, bytes + at, kind.bytes);
        value -= kind.relative ? at : 0; /* a debug section's address is 0 */
        write_field(e, bytes + at, kind.bytes, value);
    }
    return NULL;
}

static bool relocates(const struct section *s, uint32_t section)
{
    return (s->type == SHT_RELA || s->type == SHT_REL) && s->info == section && s->size > 0;
}

bool symint_has_relocations(const struct symint_elf *e, uint32_t section)
{
    for (uint64_t i = 1; e->relocatable && e->sections != NULL && i < e->section_count; i++)
        if (relocates(&e->sections[i], section))
            return true;
    return false;
}

const char *symint_relocate(const struct symint_elf *e, uint32_t section, uint8_t *bytes,
                            uint64_t size)
{
    bool done = false;
    for (uint64_t i = 1; e->sections != NULL && i < e->section_count; i++) {
        const struct section *s = &e->sections[i];
        struct symbols symbols = {0};
        uint8_t *entries = NULL;
        enum sym_miss miss;
        if (!relocates(s, section))
            continue;
        if (done) /* a hostile file could have us apply the same ones again and again */
            return damaged;
        done = true;
        const char *why = load_symbols(e, s->link, &symbols);
        if (why == NULL && symint_elf_load_section(e, s, &entries, &miss) != 0)
            why = symint_unpack_no_memory;
        else if (why == NULL && entries == NULL)
            why = damaged;
        bool addends = s->type == SHT_RELA;
        if (why == NULL)
            why = apply(&symbols, entries, s->size / (e->wide ? 8 : 4) / (addends ? 3 : 2), addends,
                        bytes, size);
        free(entries);
        free_symbols(&symbols);
        if (why != NULL)
            return why;
    }
    return NULL;
}
