/* SPDX-License-Identifier: MIT */
/* Any bytes as an ELF file, and as its own debug file: every answer begins at or before the address
 * asked for, and its name demangles. */
#include "demangle.h"
#include "elf.h"

#include <stdint.h>
#include <stdlib.h>

static bool vaddr_of(const struct symint_elf *e, uint64_t offset, uint64_t mapping, uint64_t *vaddr)
{
    struct symint_place place = symint_elf_place(e, mapping, 0x2000);
    return symint_elf_vaddr(e, offset, &place, vaddr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct symint_elf *e, uint64_t vaddr)
{
    uint32_t number = symint_elf_find(e, vaddr);
    if (number == SYMINT_NO_SYMBOL)
        return;
    struct symint_symbol s = symint_elf_symbol(e, number);
    if (s.start > vaddr || (s.name_size == 0) != (s.origin == SYM_ORIGIN_FDE))
        abort();
    if (s.origin == SYM_ORIGIN_FDE)
        return;
    for (int mode = SYM_DEMANGLE_FULL; mode <= SYM_DEMANGLE_SHORT; mode++) {
        bool changed;
        free(symint_demangle(s.name, s.name_size, (enum sym_demangle)mode, &changed));
    }
}

static void index_and_ask(struct symint_elf *e, struct symint_elf *debug)
{
    enum sym_miss miss;
    const char *why;
    const char *note;
    if (symint_elf_index(e, debug, &miss, &why, &note) != 0)
        return;
    for (uint64_t offset = 0; offset < 0x4000; offset += 0x10) {
        uint64_t vaddr;
        if (vaddr_of(e, offset, offset & 0xf000, &vaddr))
            ask(e, vaddr);
        ask(e, offset);
        ask(e, 0x400000 + offset);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symint_input input = {.fd = -1, .memory = data, .size = size};
    struct symint_elf *e;
    struct symint_elf *debug = NULL;
    enum sym_miss miss;
    const char *why;
    if (symint_elf_open(&input, &e, &miss, &why) != 0 || e == NULL)
        return 0;
    if (size % 2 == 1 && (symint_elf_open(&input, &debug, &miss, &why) != 0 || debug == NULL ||
                          symint_elf_read_sections(debug, &miss, &why) != 0)) {
        symint_elf_free(debug);
        debug = NULL;
    }
    index_and_ask(e, debug);
    symint_elf_free(debug);
    symint_elf_free(e);
    return 0;
}
