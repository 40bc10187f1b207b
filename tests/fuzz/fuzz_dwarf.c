/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an ELF file with debug information. An input that ends in PART and the size of the file before the part,
 * four bytes, has a second file in it, which the first may name as its split or supplementary file: PART_PATH.
 *
 * No text is empty, a function contains the address, and no answer changes when it is asked for again, but where a file
 * takes more work than its size is worth.
 */
#include "dwarf.h"
#include "dwarf_private.h"
#include "elf_private.h"
#include "locate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PART_FD 200 /* PART_PATH is /proc/self/fd/200 */
#define ASKED 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_chain(const struct symint_dwarf_chain *chain, uint64_t vaddr)
{
    bool inside = chain->piece_count == 0;
    for (size_t i = 0; i < chain->piece_count; i++) {
        if (chain->pieces[i].start >= chain->pieces[i].end)
            abort();
        inside |= vaddr >= chain->pieces[i].start && vaddr < chain->pieces[i].end;
    }
    if (!inside || (chain->function && chain->count == 0))
        abort();
    for (size_t i = 0; i < chain->count; i++) {
        const struct symint_dwarf_level *l = &chain->levels[i];
        if (l->file != NULL && l->file[0] == '\0')
            abort();
        if (l->name != NULL && l->name->size == 0)
            abort();
    }
}

/* What may not change. */
struct answer {
    size_t count, piece_count;
    const struct symint_text *name;
    uint32_t line;
};

static struct answer ask(struct symint_dwarf *d, struct symint_strings *strings, bool inlines,
                         bool lines, uint64_t vaddr)
{
    struct symint_dwarf_want want = {.inlines = inlines, .lines = lines};
    struct symint_dwarf_chain chain;
    struct answer a = {0};
    if (symint_dwarf_lookup(d, strings, &want, vaddr, &chain) != 0)
        return a;
    check_chain(&chain, vaddr);
    a.count = chain.count;
    a.piece_count = chain.piece_count;
    if (chain.count > 0) {
        a.name = chain.levels[0].name;
        a.line = chain.levels[0].line;
    }
    return a;
}

/* Addresses of all code, evenly spread. */
static size_t spread(const struct symint_elf *e, uint64_t *out)
{
    uint64_t count = 0;
    size_t n = 0;
    for (uint64_t i = 1; i < e->section_count; i++)
        count += e->sections[i].executable;
    for (uint64_t i = 1; i < e->section_count && count > 0; i++) {
        const struct section *s = &e->sections[i];
        uint64_t each = ASKED / count + 1;
        for (uint64_t k = 0; s->executable && k < each && n < ASKED; k++)
            out[n++] = s->addr + s->size / each * k;
    }
    return n;
}

static void ask_all(struct symint_dwarf *d, const uint64_t *at, size_t count)
{
    struct symint_strings strings = {0};
    struct answer first[ASKED];
    for (size_t i = 0; i < count; i++)
        first[i] = ask(d, &strings, true, true, at[i]);
    symint_dwarf_limit(d, 1); /* from here on everything is read anew */
    for (size_t i = count; i-- > 0;) {
        struct answer again = ask(d, &strings, true, true, at[i]);
        if (d->main.spent)
            continue;
        if (again.count != first[i].count || again.piece_count != first[i].piece_count ||
            again.name != first[i].name || again.line != first[i].line)
            abort();
        ask(d, &strings, false, i % 2 == 0, at[i]);
    }
    symint_strings_free(&strings);
}

/* Makes the second file what PART_PATH leads to. */
static void put_part(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        int made = memfd_create("part", 0);
        fd = made < 0 ? -1 : dup2(made, PART_FD);
        if (fd < 0)
            abort();
        close(made);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
}

static size_t main_size(const uint8_t *data, size_t size)
{
    if (size < 8 || memcmp(data + size - 8, "PART", 4) != 0)
        return size;
    const uint8_t *n = data + size - 4;
    size_t first = (size_t)n[0] | (size_t)n[1] << 8 | (size_t)n[2] << 16 | (size_t)n[3] << 24;
    return first <= size - 8 ? first : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t first = main_size(data, size);
    struct symint_input input = {.fd = -1, .memory = data, .size = first};
    struct symint_debug_file file = {.fd = -1};
    struct symint_system system = {0};
    struct symint_search_options options = {.system = &system};
    struct symint_arena arena = {0};
    struct symint_dwarf *d = NULL;
    enum sym_miss miss;
    const char *why;
    uint64_t at[ASKED];

    put_part(data + first, first < size ? size - 8 - first : 0);
    if (symint_elf_open(&input, &file.elf, &miss, &why) != 0 || file.elf == NULL)
        return 0;
    if (symint_elf_read_sections(file.elf, &miss, &why) != 0 || file.elf->sections == NULL) {
        symint_elf_free(file.elf);
        return 0;
    }
    size_t count = spread(file.elf, at);
    file.path = strdup("/nowhere/program");
    if (file.path != NULL &&
        symint_dwarf_open(&options, &arena, &file, "/nowhere/program", 0, &d) == 0 && d != NULL) {
        ask_all(d, at, count);
        if (symint_dwarf_detail(d) == NULL)
            abort();
    }
    symint_dwarf_free(d);
    symint_arena_free(&arena);
    return 0;
}
