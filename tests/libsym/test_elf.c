/* SPDX-License-Identifier: MIT */
/* Symbol choice, extents and addresses on files built in memory, and files that lie. */
#include "elf.h"

#include "elf_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BASE ((uint64_t)IMAGE_TEXT_VADDR)

struct loaded {
    uint8_t *data;
    struct symint_elf *elf;
};

static struct loaded load_image(const struct image *image)
{
    struct loaded l = {0};
    size_t size;
    enum sym_miss miss;
    const char *why = "";
    const char *note;
    l.data = image_build(image, &size);
    struct symint_input input = {.fd = -1, .memory = l.data, .size = size};
    assert_int_equal(symint_elf_open(&input, &l.elf, &miss, &why), 0);
    if (l.elf == NULL)
        fail_msg("not opened: %s", why);
    assert_int_equal(symint_elf_index(l.elf, NULL, &miss, &why, &note), 0);
    return l;
}

/* A file offset seen through a mapping that begins at another. */
static bool vaddr_of(const struct symint_elf *e, uint64_t offset, uint64_t mapping, uint64_t *vaddr)
{
    struct symint_place place = symint_elf_place(e, mapping, UINT64_MAX);
    return symint_elf_vaddr(e, offset, &place, vaddr);
}

static void unload(struct loaded *l)
{
    symint_elf_free(l->elf);
    free(l->data);
}

/* name NULL: nothing there. */
static void check(const struct loaded *l, uint64_t offset, const char *name, uint64_t start)
{
    uint32_t number = symint_elf_find(l->elf, BASE + offset);
    if (name == NULL) {
        if (number != SYMINT_NO_SYMBOL) {
            struct symint_symbol s = symint_elf_symbol(l->elf, number);
            fail_msg("%.*s at %llx", (int)s.name_size, s.name, (unsigned long long)offset);
        }
        return;
    }
    if (number == SYMINT_NO_SYMBOL)
        fail_msg("nothing instead of %s at %llx", name, (unsigned long long)offset);
    struct symint_symbol s = symint_elf_symbol(l->elf, number);
    if (s.name_size != strlen(name) || memcmp(s.name, name, s.name_size) != 0)
        fail_msg("%.*s instead of %s at %llx", (int)s.name_size, s.name, name,
                 (unsigned long long)offset);
    assert_int_equal(s.start, BASE + start);
}

#define FUNC(name, value, size)                           \
    {                                                     \
        name, value, size, STT_FUNC, STB_GLOBAL, 0, false \
    }
#define LABEL(name, value)                               \
    {                                                    \
        name, value, 0, STT_NOTYPE, STB_GLOBAL, 0, false \
    }

static void a_sized_symbol_covers_its_bytes_and_no_other(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {FUNC("f", 0x10, 0x10), FUNC("g", 0x40, 0x8)};
    struct loaded l =
        load_image(&(struct image){.symbols = symbols, .symbol_count = COUNT(symbols)});
    check(&l, 0xf, NULL, 0);
    check(&l, 0x10, "f", 0x10);
    check(&l, 0x1f, "f", 0x10);
    check(&l, 0x20, NULL, 0);
    check(&l, 0x40, "g", 0x40);
    check(&l, 0x47, "g", 0x40);
    check(&l, 0x48, NULL, 0);
    unload(&l);
}

static void symbols_that_are_no_code_are_dropped(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {
        {"object", 0x0, 8, STT_OBJECT, STB_GLOBAL, 0, false},
        {"file.c", 0x10, 8, STT_FILE, STB_LOCAL, 0, false},
        {"section", 0x20, 8, STT_SECTION, STB_LOCAL, 0, false},
        {"tls", 0x30, 8, STT_TLS, STB_GLOBAL, 0, false},
        {"absolute", 0x40, 8, STT_FUNC, STB_GLOBAL, SHN_ABS, false},
        {"common", 0x50, 8, STT_FUNC, STB_GLOBAL, SHN_COMMON, false},
        {"data", 0x60, 8, STT_NOTYPE, STB_GLOBAL, IMAGE_DATA, false},
        {"no_section", 0x70, 8, STT_FUNC, STB_GLOBAL, 77, false},
        {"", 0x80, 8, STT_FUNC, STB_GLOBAL, 0, false},
        {".Llocal", 0x90, 8, STT_NOTYPE, STB_LOCAL, 0, false},
        {"behind", IMAGE_TEXT_SIZE, 8, STT_FUNC, STB_GLOBAL, 0, false},
        {"before", (uint64_t)-16, 8, STT_FUNC, STB_GLOBAL, 0, false},
        {"ifunc", 0x100, 8, STT_GNU_IFUNC, STB_GLOBAL, 0, false},
        {"unique", 0x110, 8, STT_FUNC, STB_GNU_UNIQUE, 0, false},
        {"$x", 0x120, 8, STT_NOTYPE, STB_LOCAL, 0, false}, /* an ordinary name on x86 */
    };
    struct loaded l =
        load_image(&(struct image){.symbols = symbols, .symbol_count = COUNT(symbols)});
    for (uint64_t at = 0; at < 0x100; at++)
        check(&l, at, NULL, 0);
    check(&l, IMAGE_TEXT_SIZE, NULL, 0);
    check(&l, (uint64_t)-16, NULL, 0);
    check(&l, 0x104, "ifunc", 0x100);
    check(&l, 0x114, "unique", 0x110);
    check(&l, 0x124, "$x", 0x120);
    unload(&l);
}

static void mapping_symbols_are_dropped(void **state)
{
    (void)state;
    static const struct {
        uint16_t machine;
        const char *name;
        bool dropped;
    } cases[] = {
        {EM_ARM, "$a", true},        {EM_ARM, "$t", true},      {EM_ARM, "$d.7", true},
        {EM_ARM, "$x", false},       {EM_AARCH64, "$x", true},  {EM_AARCH64, "$d", true},
        {EM_AARCH64, "$x.12", true}, {EM_AARCH64, "$a", false}, {EM_AARCH64, "$xyz", false},
        {EM_RISCV, "$x", true},      {EM_RISCV, "$d", true},    {EM_RISCV, "$xrv64i2p1", true},
        {EM_X86_64, "$x", false},    {EM_AARCH64, "$", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct image_symbol symbols[] = {
            FUNC("f", 0, 0x20),
            {cases[i].name, 0x10, 0, STT_NOTYPE, STB_LOCAL, 0, false},
            {cases[i].name, 0x20, 0, STT_NOTYPE, STB_LOCAL, 0, false}};
        struct loaded l = load_image(&(struct image){
            .symbols = symbols, .symbol_count = COUNT(symbols), .machine = cases[i].machine});
        check(&l, 0x18, "f", 0);
        check(&l, 0x20, cases[i].dropped ? NULL : cases[i].name, 0x20);
        unload(&l);
    }
}

static void thumb_functions_have_an_odd_address(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {FUNC("f", 0x11, 0x10)};
    struct loaded l = load_image(&(struct image){
        .symbols = symbols, .symbol_count = COUNT(symbols), .machine = EM_ARM, .narrow = true});
    check(&l, 0x10, "f", 0x10);
    check(&l, 0x1f, "f", 0x10);
    check(&l, 0x20, NULL, 0);
    unload(&l);
}

static void every_class_and_byte_order_is_read(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {FUNC("f", 0x10, 0x10), LABEL("label", 0x30)};
    const struct image_symbol dynamic[] = {FUNC("d", 0x50, 0x10)};
    for (int i = 0; i < 8; i++) {
        struct image image = {.symbols = symbols,
                              .symbol_count = COUNT(symbols),
                              .dynamic = dynamic,
                              .dynamic_count = 1,
                              .build_id = "12345678901234567890",
                              .narrow = i & 1,
                              .big = i & 2,
                              .no_sections = i & 4};
        struct loaded l = load_image(&image);
        size_t size;
        assert_memory_equal(symint_elf_build_id(l.elf, &size), "12345678901234567890", 20);
        assert_int_equal(size, 20);
        uint64_t vaddr;
        const struct symint_place nowhere = {.segment = SYMINT_NO_SEGMENT};
        assert_true(symint_elf_vaddr(l.elf, IMAGE_TEXT_OFFSET + 5, &nowhere, &vaddr));
        assert_int_equal(vaddr, BASE + 5);
        check(&l, 0x58, "d", 0x50);
        check(&l, 0x18, i & 4 ? NULL : "f", 0x10);
        unload(&l);
    }
}

static void a_sizeless_symbol_reaches_to_the_next_one(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {LABEL("a", 0x10),
                                           LABEL("b", 0x20),
                                           FUNC("sized", 0x30, 0x10),
                                           LABEL("after", 0x48),
                                           {"f", 0x60, 0, STT_FUNC, STB_LOCAL, 0, false}};
    struct loaded l =
        load_image(&(struct image){.symbols = symbols, .symbol_count = COUNT(symbols)});
    check(&l, 0x1f, "a", 0x10);
    check(&l, 0x20, "b", 0x20);
    check(&l, 0x2f, "b", 0x20);
    check(&l, 0x30, "sized", 0x30);
    check(&l, 0x40, NULL, 0); /* behind a sized symbol nothing is known */
    check(&l, 0x48, "after", 0x48);
    check(&l, 0x60, "f", 0x60);
    check(&l, IMAGE_TEXT_SIZE - 1, "f", 0x60); /* to the end of the section */
    check(&l, IMAGE_TEXT_SIZE, NULL, 0);
    unload(&l);
}

static void a_sizeless_symbol_inside_a_sized_one_is_nothing(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {FUNC("outer", 0x10, 0x20), LABEL("label", 0x18),
                                           LABEL("end", 0x30)};
    struct loaded l =
        load_image(&(struct image){.symbols = symbols, .symbol_count = COUNT(symbols)});
    check(&l, 0x18, "outer", 0x10);
    check(&l, 0x2f, "outer", 0x10);
    check(&l, 0x30, "end", 0x30);
    unload(&l);
}

static void a_sizeless_dynamic_symbol_covers_its_address_only(void **state)
{
    (void)state;
    const struct image_symbol dynamic[] = {LABEL("a", 0x10), FUNC("sized", 0x30, 0x10)};
    struct loaded l =
        load_image(&(struct image){.dynamic = dynamic, .dynamic_count = COUNT(dynamic)});
    check(&l, 0x10, "a", 0x10);
    check(&l, 0x11, NULL, 0);
    check(&l, 0x3f, "sized", 0x30);
    unload(&l);
}

static void dynamic_symbols_fill_what_the_table_leaves(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {FUNC("s", 0x20, 0x10)};
    const struct image_symbol dynamic[] = {FUNC("d", 0x10, 0x30), FUNC("s_alias", 0x20, 0x10)};
    struct loaded l = load_image(&(struct image){.symbols = symbols,
                                                 .symbol_count = 1,
                                                 .dynamic = dynamic,
                                                 .dynamic_count = COUNT(dynamic)});
    check(&l, 0x10, "d", 0x10);
    check(&l, 0x1f, "d", 0x10);
    check(&l, 0x20, "s", 0x20);
    check(&l, 0x2f, "s", 0x20);
    check(&l, 0x30, "d", 0x10);
    assert_int_equal(symint_elf_symbol(l.elf, symint_elf_find(l.elf, BASE + 0x10)).origin,
                     SYM_ORIGIN_DYNSYM);
    assert_int_equal(symint_elf_symbol(l.elf, symint_elf_find(l.elf, BASE + 0x20)).origin,
                     SYM_ORIGIN_SYMTAB);
    unload(&l);
}

static void a_sizeless_symbol_does_not_hide_a_dynamic_one(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {LABEL("a", 0x10), LABEL("b", 0x28), LABEL("c", 0x40)};
    const struct image_symbol dynamic[] = {FUNC("d", 0x20, 0x10), LABEL("c", 0x40),
                                           LABEL("e", 0x60)};
    struct loaded l = load_image(&(struct image){.symbols = symbols,
                                                 .symbol_count = COUNT(symbols),
                                                 .dynamic = dynamic,
                                                 .dynamic_count = COUNT(dynamic)});
    check(&l, 0x1f, "a", 0x10);
    check(&l, 0x20, "d", 0x20);
    check(&l, 0x28, "d", 0x20);
    check(&l, 0x30, NULL, 0);
    check(&l, 0x40, "c", 0x40);
    check(&l, 0x5f, "c", 0x40);
    check(&l, 0x60, "e", 0x60);
    check(&l, 0x61, NULL, 0);
    unload(&l);
}

static void the_innermost_sized_symbol_wins(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {FUNC("all", 0x0, 0x100), FUNC("outer", 0x10, 0x80),
                                           FUNC("inner", 0x20, 0x10), FUNC("crossing", 0x80, 0x40),
                                           FUNC("short", 0x0, 0x8)};
    struct loaded l =
        load_image(&(struct image){.symbols = symbols, .symbol_count = COUNT(symbols)});
    check(&l, 0x0, "short", 0x0);
    check(&l, 0x8, "all", 0x0);
    check(&l, 0x10, "outer", 0x10);
    check(&l, 0x20, "inner", 0x20);
    check(&l, 0x30, "outer", 0x10);
    check(&l, 0x80, "crossing", 0x80);
    check(&l, 0x90, "crossing", 0x80);
    check(&l, 0xc0, "all", 0x0);
    check(&l, 0x100, NULL, 0);
    unload(&l);
}

static void nesting_agrees_with_the_rule_applied_address_by_address(void **state)
{
    (void)state;
    srand(3);
    for (int round = 0; round < 200; round++) {
        struct image_symbol symbols[24];
        char names[24][8];
        size_t count = 1 + (size_t)rand() % COUNT(symbols);
        for (size_t i = 0; i < count; i++) {
            snprintf(names[i], sizeof(names[i]), "n%02zu", i);
            symbols[i] = (struct image_symbol)FUNC(names[i], (uint64_t)(rand() % 64),
                                                   (uint64_t)(rand() % 40));
        }
        struct loaded l = load_image(&(struct image){.symbols = symbols, .symbol_count = count});
        for (uint64_t at = 0; at < 120; at++) {
            const struct image_symbol *best = NULL;
            for (size_t i = 0; i < count; i++) {
                const struct image_symbol *s = &symbols[i];
                if (s->size == 0 || at < s->value || at >= s->value + s->size)
                    continue;
                if (best == NULL || s->value > best->value ||
                    (s->value == best->value && s->size < best->size))
                    best = s; /* of aliases the smaller name, which is the earlier one */
            }
            if (best == NULL) {
                /* A sizeless one, when no symbol is between. */
                uint64_t latest = 0;
                for (size_t i = 0; i < count; i++)
                    if (symbols[i].value <= at && symbols[i].value >= latest)
                        latest = symbols[i].value;
                bool sized = false;
                for (size_t i = 0; i < count; i++)
                    if (symbols[i].value == latest && symbols[i].size == 0 && latest <= at &&
                        best == NULL)
                        best = &symbols[i];
                for (size_t i = 0; i < count && best != NULL; i++)
                    sized |= symbols[i].size > 0 && symbols[i].value <= latest &&
                             latest < symbols[i].value + symbols[i].size;
                if (sized)
                    best = NULL;
            }
            check(&l, at, best != NULL ? best->name : NULL, best != NULL ? best->value : 0);
        }
        unload(&l);
    }
}

/* Each is better than all that follow, by one rule of the same-address order after the other. */
static const struct image_symbol ranks[] = {
    {"write", 0x10, 8, STT_FUNC, STB_GLOBAL, 0, false},
    {"writf", 0x10, 8, STT_FUNC, STB_GLOBAL, 0, false},        /* bytewise */
    {"writeeee", 0x10, 8, STT_FUNC, STB_GNU_UNIQUE, 0, false}, /* longer */
    {"wr", 0x10, 8, STT_FUNC, STB_WEAK, 0, false},             /* weak */
    {"a@VERSION_1", 0x10, 8, STT_FUNC, STB_GLOBAL, 0, false},  /* not the default version */
    {"_a", 0x10, 8, STT_FUNC, STB_GLOBAL, 0, false},           /* an underscore */
    {"__a", 0x10, 8, STT_GNU_IFUNC, STB_GLOBAL, 0, false},     /* two */
    {"__GI___libc_write", 0x10, 8, STT_FUNC, STB_GLOBAL, 0, false},
    {"b", 0x10, 8, STT_FUNC, STB_LOCAL, 0, false},    /* local */
    {"c", 0x10, 8, STT_NOTYPE, STB_GLOBAL, 0, false}, /* no type */
    {"d", 0x10, 0, STT_FUNC, STB_GLOBAL, 0, false},   /* no size */
};

static void the_same_address_rule_does_not_depend_on_the_order_of_the_table(void **state)
{
    (void)state;
    srand(11);
    for (size_t first = 0; first < COUNT(ranks); first++) {
        size_t count = COUNT(ranks) - first;
        for (int round = 0; round < 40; round++) {
            struct image_symbol symbols[COUNT(ranks)];
            memcpy(symbols, ranks + first, count * sizeof(symbols[0]));
            for (size_t i = count - 1; i > 0; i--) {
                size_t k = round == 0 ? i : (size_t)rand() % (i + 1);
                struct image_symbol swap = symbols[i];
                symbols[i] = symbols[k];
                symbols[k] = swap;
            }
            struct loaded l =
                load_image(&(struct image){.symbols = symbols, .symbol_count = count});
            const char *name =
                strcmp(ranks[first].name, "a@VERSION_1") == 0 ? "a" : ranks[first].name;
            check(&l, 0x10, name, 0x10);
            check(&l, 0x17, name, 0x10);
            unload(&l);
        }
    }
}

static void mangled_names_have_no_leading_underscores(void **state)
{
    (void)state;
    static const char *const mangled[] = {"_ZN1a1bEv", "__ZN1a1bEv", "_RNvC1a1b"};
    for (size_t i = 0; i < COUNT(mangled); i++) {
        const struct image_symbol symbols[] = {FUNC("_a", 0, 8), FUNC(mangled[i], 0, 8)};
        struct loaded l = load_image(&(struct image){.symbols = symbols, .symbol_count = 2});
        check(&l, 0, mangled[i], 0);
        unload(&l);
    }
}

static void versions_are_cut_and_the_default_one_wins(void **state)
{
    (void)state;
    const struct image_symbol symbols[] = {FUNC("old@V1", 0, 8), FUNC("newer@@V2", 0, 8),
                                           FUNC("only@V1", 0x10, 8)};
    struct loaded l =
        load_image(&(struct image){.symbols = symbols, .symbol_count = COUNT(symbols)});
    check(&l, 0, "newer", 0);
    check(&l, 0x10, "only", 0x10);
    unload(&l);
    const struct image_symbol dynamic[] = {{"old", 0, 8, STT_FUNC, STB_GLOBAL, 0, true},
                                           FUNC("newer", 0, 8)};
    for (int sections = 0; sections < 2; sections++) {
        l = load_image(
            &(struct image){.dynamic = dynamic, .dynamic_count = 2, .no_sections = sections});
        check(&l, 0, "newer", 0);
        unload(&l);
    }
}

/* ---- addresses ---- */

/* A file of program headers only. */
static struct symint_elf *open_segments(uint8_t *data, const Elf64_Phdr *segments, uint16_t count)
{
    Elf64_Ehdr header = {.e_machine = EM_X86_64,
                         .e_type = ET_DYN,
                         .e_phoff = sizeof(header),
                         .e_phnum = count,
                         .e_phentsize = sizeof(*segments)};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    memcpy(data, &header, sizeof(header));
    memcpy(data + sizeof(header), segments, count * sizeof(*segments));
    struct symint_input input = {
        .fd = -1, .memory = data, .size = sizeof(header) + count * sizeof(*segments)};
    struct symint_elf *elf;
    enum sym_miss miss;
    const char *why = "";
    assert_int_equal(symint_elf_open(&input, &elf, &miss, &why), 0);
    assert_non_null(elf);
    return elf;
}

static void check_vaddr(const struct symint_elf *elf, uint64_t offset, uint64_t mapping, bool found,
                        uint64_t expected)
{
    uint64_t vaddr = 0;
    assert_int_equal(vaddr_of(elf, offset, mapping, &vaddr), found);
    if (found)
        assert_int_equal(vaddr, expected);
}

static void offsets_become_addresses_through_executable_segments(void **state)
{
    (void)state;
    uint8_t data[1024];
    /* lld's layout: three segments share pages of the file. */
    const Elf64_Phdr segments[] = {
        {.p_type = PT_LOAD,
         .p_flags = PF_R,
         .p_offset = 0,
         .p_vaddr = 0x200000,
         .p_filesz = 0x1234,
         .p_align = 0x1000},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_offset = 0x1240,
         .p_vaddr = 0x202240,
         .p_filesz = 0x600,
         .p_align = 0x1000},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_offset = 0x1840,
         .p_vaddr = 0x203840,
         .p_filesz = 0x1000,
         .p_memsz = 0x100000,
         .p_align = 0x1000},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_W,
         .p_offset = 0x2840,
         .p_vaddr = 0x206840,
         .p_filesz = 0x100,
         .p_align = 0x1000},
    };
    struct symint_elf *elf = open_segments(data, segments, COUNT(segments));
    check_vaddr(elf, 0x1240, 0x1000, true, 0x202240);
    check_vaddr(elf, 0x183f, 0x1000, true, 0x20283f);
    check_vaddr(elf, 0x1840, 0x1000, true, 0x203840); /* the next one has it */
    check_vaddr(elf, 0x1000, 0x1000, true, 0x202000); /* in the rounding before the first */
    check_vaddr(elf, 0x2900, 0x1000, true, 0x204900); /* in the rounding behind the last */
    check_vaddr(elf, 0x2fff, 0x1000, true, 0x204fff);
    check_vaddr(elf, 0x3000, 0x1000, false, 0); /* p_memsz does not count */
    check_vaddr(elf, 0xfff, 0, false, 0);
    check_vaddr(elf, UINT64_MAX, 0, false, 0);
    symint_elf_free(elf);
}

static void the_mapping_decides_between_segments_that_share_bytes(void **state)
{
    (void)state;
    uint8_t data[1024];
    const Elf64_Phdr segments[] = {
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_offset = 0,
         .p_vaddr = 0x10000,
         .p_filesz = 0x3000},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_offset = 0x2100,
         .p_vaddr = 0x52100,
         .p_filesz = 0x1000},
    };
    struct symint_elf *elf = open_segments(data, segments, COUNT(segments));
    check_vaddr(elf, 0x2200, 0, true, 0x12200);
    check_vaddr(elf, 0x2200, 0x2000, true, 0x52200);
    check_vaddr(elf, 0x2200, 0x5000, true, 0x12200);
    check_vaddr(elf, 0x2000, 0x2000, true,
                0x12000); /* inside beats the rounding of the preferred one */
    symint_elf_free(elf);
}

static void addresses_do_not_wrap(void **state)
{
    (void)state;
    uint8_t data[1024];
    const Elf64_Phdr segments[] = {
        {.p_type = PT_LOAD,
         .p_flags = PF_X,
         .p_offset = 0x1010,
         .p_vaddr = 0x8,
         .p_filesz = UINT64_MAX},
        {.p_type = PT_LOAD,
         .p_flags = PF_X,
         .p_offset = 0x100000,
         .p_vaddr = UINT64_MAX - 4,
         .p_filesz = 0x1000},
    };
    struct symint_elf *elf = open_segments(data, segments + 1, 1);
    check_vaddr(elf, 0x100004, 0x100000, true, UINT64_MAX);
    check_vaddr(elf, 0x100005, 0x100000, false, 0);
    symint_elf_free(elf);
    elf = open_segments(data, segments, 1);
    check_vaddr(elf, 0x1010, 0x1000, true, 8);
    check_vaddr(elf, 0x1000, 0x1000, false, 0);
    symint_elf_free(elf);
}

/* ---- damage ---- */

/* Reads an image however wrong, asks for every address, and gives up nothing but memory it took. */
static void exercise(const uint8_t *data, size_t size)
{
    struct symint_input input = {.fd = -1, .memory = data, .size = size};
    struct symint_elf *elf;
    enum sym_miss miss = SYM_MISS_NONE;
    const char *why = NULL;
    const char *note;
    assert_int_equal(symint_elf_open(&input, &elf, &miss, &why), 0);
    if (elf == NULL) {
        assert_int_not_equal(miss, SYM_MISS_NONE);
        assert_non_null(why);
        return;
    }
    assert_int_equal(symint_elf_index(elf, NULL, &miss, &why, &note), 0);
    for (uint64_t at = 0; at < 0x100; at += 3) {
        uint64_t vaddr = BASE + at;
        uint32_t number;
        vaddr_of(elf, IMAGE_TEXT_OFFSET + at, 0x1000, &vaddr);
        number = symint_elf_find(elf, vaddr);
        if (number != SYMINT_NO_SYMBOL) {
            struct symint_symbol s = symint_elf_symbol(elf, number);
            assert_true(s.name_size > 0 && s.start <= vaddr);
        }
    }
    symint_elf_free(elf);
}

static struct image small_image(int variant)
{
    static const struct image_symbol symbols[] = {FUNC("f", 0x10, 0x10), LABEL("l", 0x30),
                                                  FUNC("g", 0x10, 0x20)};
    static const struct image_symbol dynamic[] = {FUNC("d", 0x50, 0x10),
                                                  {"e", 0x50, 0x10, STT_FUNC, STB_WEAK, 0, true}};
    return (struct image){.symbols = symbols,
                          .symbol_count = COUNT(symbols),
                          .dynamic = dynamic,
                          .dynamic_count = COUNT(dynamic),
                          .build_id = "12345678901234567890",
                          .narrow = variant & 1,
                          .no_sections = variant & 2};
}

static void a_file_cut_anywhere_is_no_danger(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        struct image image = small_image(variant);
        size_t size;
        uint8_t *data = image_build(&image, &size);
        for (size_t cut = 0; cut<size; cut += cut> 0x500 && cut < 0x1f00 ? 0x100 : 1) {
            uint8_t *copy = malloc(cut + 1); /* of its own size, for the sanitizer */
            assert_non_null(copy);
            memcpy(copy, data, cut);
            exercise(copy, cut);
            free(copy);
        }
        free(data);
    }
}

static void extreme_numbers_in_any_field_are_no_danger(void **state)
{
    (void)state;
    static const uint64_t extremes[] = {0,
                                        1,
                                        0x7f,
                                        0xff,
                                        0xffff,
                                        0x7fffffff,
                                        0xffffffff,
                                        0x7fffffffffffffff,
                                        0xffffffffffffffff,
                                        0xfffffffffffffff0};
    for (int variant = 0; variant < 4; variant++) {
        struct image image = small_image(variant);
        size_t size;
        uint8_t *data = image_build(&image, &size);
        for (size_t at = 4; at + 8 <= size; at += 2) {
            if (at == 0x180)
                at = 0x400; /* zeros */
            if (at == 0x430)
                at = 0x2000;
            uint8_t saved[8];
            memcpy(saved, data + at, 8);
            for (size_t i = 0; i < COUNT(extremes); i++)
                for (size_t width = 2; width <= 8; width *= 2) {
                    memcpy(data + at, &extremes[i], width);
                    exercise(data, size);
                    memcpy(data + at, saved, 8);
                }
        }
        free(data);
    }
}

static void what_is_wrong_with_a_file_is_told(void **state)
{
    (void)state;
    struct symint_elf *elf;
    enum sym_miss miss;
    const char *why;
    const char *note;
    struct symint_input text = {
        .fd = -1, .memory = (const uint8_t *)"#!/bin/sh\necho\n", .size = 15};
    assert_int_equal(symint_elf_open(&text, &elf, &miss, &why), 0);
    assert_null(elf);
    assert_int_equal(miss, SYM_MISS_NOT_ELF);

    size_t size;
    struct image image = small_image(0);
    uint8_t *data = image_build(&image, &size);
    struct symint_input cut = {.fd = -1, .memory = data, .size = 40};
    assert_int_equal(symint_elf_open(&cut, &elf, &miss, &why), 0);
    assert_null(elf);
    assert_int_equal(miss, SYM_MISS_DAMAGED);
    cut.size = size - 1; /* the section headers are last */
    assert_int_equal(symint_elf_open(&cut, &elf, &miss, &why), 0);
    assert_non_null(elf);
    assert_int_equal(symint_elf_index(elf, NULL, &miss, &why, &note), 0);
    assert_int_equal(miss, SYM_MISS_DAMAGED);
    symint_elf_free(elf);
    free(data);

    struct image none = {0};
    data = image_build(&none, &size);
    cut = (struct symint_input){.fd = -1, .memory = data, .size = size};
    assert_int_equal(symint_elf_open(&cut, &elf, &miss, &why), 0);
    assert_non_null(elf);
    assert_int_equal(symint_elf_index(elf, NULL, &miss, &why, &note), 0);
    assert_int_equal(miss, SYM_MISS_NO_SYMBOLS);
    symint_elf_free(elf);
    free(data);
}

static void many_symbols_of_one_address_and_one_long_name_take_no_age(void **state)
{
    (void)state;
    /* All names are tails of one text of 40 KB. */
    size_t count = 20000;
    struct image_symbol *symbols = calloc(count, sizeof(*symbols));
    char *name = malloc(40001);
    assert_non_null(symbols);
    assert_non_null(name);
    memset(name, 'x', 40000);
    name[40000] = '\0';
    for (size_t i = 0; i < count; i++)
        symbols[i] = (struct image_symbol)FUNC(i == 0 ? name : "a", 0x10, 0x20);
    size_t size;
    struct image image = {.symbols = symbols, .symbol_count = count};
    uint8_t *data = image_build(&image, &size);
    for (size_t i = 1; i < count; i++) { /* st_name */
        uint32_t at = (uint32_t)i;
        memcpy(data + IMAGE_TEXT_OFFSET + IMAGE_TEXT_SIZE + (i + 1) * sizeof(Elf64_Sym), &at, 4);
    }
    exercise(data, size);
    free(data);
    free(name);
    free(symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sized_symbol_covers_its_bytes_and_no_other),
        cmocka_unit_test(symbols_that_are_no_code_are_dropped),
        cmocka_unit_test(mapping_symbols_are_dropped),
        cmocka_unit_test(thumb_functions_have_an_odd_address),
        cmocka_unit_test(every_class_and_byte_order_is_read),
        cmocka_unit_test(a_sizeless_symbol_reaches_to_the_next_one),
        cmocka_unit_test(a_sizeless_symbol_inside_a_sized_one_is_nothing),
        cmocka_unit_test(a_sizeless_dynamic_symbol_covers_its_address_only),
        cmocka_unit_test(dynamic_symbols_fill_what_the_table_leaves),
        cmocka_unit_test(a_sizeless_symbol_does_not_hide_a_dynamic_one),
        cmocka_unit_test(the_innermost_sized_symbol_wins),
        cmocka_unit_test(nesting_agrees_with_the_rule_applied_address_by_address),
        cmocka_unit_test(the_same_address_rule_does_not_depend_on_the_order_of_the_table),
        cmocka_unit_test(mangled_names_have_no_leading_underscores),
        cmocka_unit_test(versions_are_cut_and_the_default_one_wins),
        cmocka_unit_test(offsets_become_addresses_through_executable_segments),
        cmocka_unit_test(the_mapping_decides_between_segments_that_share_bytes),
        cmocka_unit_test(addresses_do_not_wrap),
        cmocka_unit_test(a_file_cut_anywhere_is_no_danger),
        cmocka_unit_test(extreme_numbers_in_any_field_are_no_danger),
        cmocka_unit_test(what_is_wrong_with_a_file_is_told),
        cmocka_unit_test(many_symbols_of_one_address_and_one_long_name_take_no_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
