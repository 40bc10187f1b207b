/* SPDX-License-Identifier: MIT */
/* Where a symbol of some name is, whatever its type, which the index of a file (elf_index.c) does not tell. */
#include "kernel_names.h"

#include "elf_private.h"
#include "strtab.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int symint_kernel_names_read(const struct symint_elf *e, struct symint_kernel_names *out)
{
    struct symint_table_place place;
    enum sym_miss miss;
    *out = (struct symint_kernel_names){.elf = e};
    int rc = symint_symtab_place(e, SYMTAB, &place);
    if (rc != 0 || !place.found)
        return rc;
    rc = symint_elf_load(&e->input, place.symbols_offset, place.symbols_size, &out->symbols, &miss);
    if (rc == 0 && out->symbols != NULL)
        rc = symint_elf_load(&e->input, place.strings_offset, place.strings_size, &out->strings,
                             &miss);
    if (rc != 0 || out->strings == NULL) {
        symint_kernel_names_free(out);
        return rc;
    }
    out->strings_size = place.strings_size;
    out->count = place.symbols_size / (e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    return 0;
}

void symint_kernel_names_free(struct symint_kernel_names *n)
{
    free(n->symbols);
    free(n->strings);
    *n = (struct symint_kernel_names){0};
}

bool symint_kernel_names_at(const struct symint_kernel_names *n, uint64_t i,
                            struct symint_kernel_name *out)
{
    const struct symint_elf *e = n->elf;
    const uint8_t *p = n->symbols + i * (e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    uint32_t name = get32(e, p);
    uint8_t info = p[e->wide ? 4 : 12];
    uint8_t type = ELF64_ST_TYPE(info);
    uint16_t section = get16(e, p + (e->wide ? 6 : 14));
    bool absolute = section == SHN_ABS; /* as old linkers leave the labels of a script */
    if (section == SHN_UNDEF ||
        (!absolute && (section >= e->section_count || section >= SHN_LORESERVE)) ||
        name >= n->strings_size || n->strings[name] == '\0' || type == STT_SECTION ||
        type == STT_FILE || type == STT_TLS)
        return false;
    *out = (struct symint_kernel_name){
        .name = (const char *)n->strings + name,
        .value = get_word(e, p, 4, 8),
        .size = get_word(e, p, 8, 16),
        .section_offset = absolute                         ? 0
                          : e->sections[section].addr != 0 ? e->sections[section].addr
                                                           : e->sections[section].offset,
        .code = !absolute && e->sections[section].executable && type != STT_OBJECT &&
                type != STT_COMMON,
        .global = ELF64_ST_BIND(info) != STB_LOCAL,
    };
    return true;
}

uint64_t symint_kernel_name_hash(const char *name, size_t size)
{
    uint64_t h = size;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)name[i]) * 0x100000001b3u;
    return symint_mix(h);
}

uint64_t symint_kernel_names_value(const struct symint_kernel_names *n, const char *name)
{
    struct symint_kernel_name s;
    for (uint64_t i = 1; i < n->count; i++)
        if (symint_kernel_names_at(n, i, &s) && strcmp(s.name, name) == 0)
            return s.value;
    return 0;
}
