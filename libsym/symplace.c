/* SPDX-License-Identifier: MIT */
/* Where the parts of a symbol table lie in a file, with or without section headers. */
#include "elf_private.h"

#include <elf.h>
#include <stdlib.h>

static void place_by_sections(const struct symint_elf *e, uint32_t type,
                              struct symint_table_place *place)
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
static int place_by_dynamic(const struct symint_elf *e, struct symint_table_place *place)
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

int symint_symtab_place(const struct symint_elf *e, uint8_t source,
                        struct symint_table_place *place)
{
    *place = (struct symint_table_place){0};
    if (e->section_count > 0)
        place_by_sections(e, source == DYNSYM ? SHT_DYNSYM : SHT_SYMTAB, place);
    else if (source == DYNSYM && e->dynamic_size > 0)
        return place_by_dynamic(e, place);
    return 0;
}
