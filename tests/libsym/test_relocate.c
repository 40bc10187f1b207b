/* SPDX-License-Identifier: MIT */
/* Relocatable files made in memory: addresses, relocations of each machine, and damaged ones. */
#include "debug_bytes.h"
#include "elf_private.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NONE, TEXT, GROUPED, INFO, RELOCATIONS, SYMTAB_SECTION, STRINGS, NUMBERS, SECTIONS };
enum { TEXT_AT = 0x100, GROUPED_AT = 0x180, INFO_AT = 0x200, RELOCATIONS_AT = 0x300 };
enum { SYMBOLS_AT = 0x400, STRINGS_AT = 0x600, NUMBERS_AT = 0x700, HEADERS_AT = 0x800 };

static const char strings[] = "\0.text\0.debug_info\0.rela\0.symtab\0f\0.x";

/* A file of 64 bits whose .debug_info has 32 bytes, and one relocation or more. */
struct file {
    uint16_t type; /* 0: ET_REL */
    uint16_t machine;
    bool big;
    bool addends;
    uint8_t bytes[0x1000];
};

static void put(struct file *f, size_t at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        f->bytes[at + i] = (uint8_t)(value >> (f->big ? bytes - 1 - i : i) * 8);
}

static void put_section(struct file *f, int i, uint32_t name, uint32_t type, uint64_t flags,
                        uint64_t offset, uint64_t size, uint32_t link, uint32_t info)
{
    size_t at = HEADERS_AT + (size_t)i * sizeof(Elf64_Shdr);
    put(f, at, name, 4);
    put(f, at + 4, type, 4);
    put(f, at + 8, flags, 8);
    put(f, at + 24, offset, 8);
    put(f, at + 32, size, 8);
    put(f, at + 40, link, 4);
    put(f, at + 44, info, 4);
}

static void put_symbol(struct file *f, int i, uint32_t name, uint8_t info, uint16_t section,
                       uint64_t value, uint64_t size)
{
    size_t at = SYMBOLS_AT + (size_t)i * sizeof(Elf64_Sym);
    put(f, at, name, 4);
    put(f, at + 4, info, 1);
    put(f, at + 6, section, 2);
    put(f, at + 8, value, 8);
    put(f, at + 16, size, 8);
}

/* Symbols: 1 a function 8 bytes into .text, 2 the section .debug_info, 3 undefined, 4 SHN_ABS, 5 by SHT_SYMTAB_SHNDX in
 * .text, 6 SHN_COMMON. */
static void build(struct file *f)
{
    memcpy(f->bytes, ELFMAG, SELFMAG);
    f->bytes[EI_CLASS] = ELFCLASS64;
    f->bytes[EI_DATA] = f->big ? ELFDATA2MSB : ELFDATA2LSB;
    put(f, 16, f->type != 0 ? f->type : ET_REL, 2);
    put(f, 18, f->machine != 0 ? f->machine : EM_X86_64, 2);
    put(f, 40, HEADERS_AT, 8);
    put(f, 58, sizeof(Elf64_Shdr), 2);
    put(f, 60, SECTIONS, 2);
    put(f, 62, STRINGS, 2);
    memcpy(f->bytes + STRINGS_AT, strings, sizeof(strings));
    put_section(f, TEXT, 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_AT, 64, 0, 0);
    put_section(f, GROUPED, 7, SHT_PROGBITS, SHF_GROUP, GROUPED_AT, 16, 0, 0);
    put_section(f, INFO, 7, SHT_PROGBITS, 0, INFO_AT, 32, 0, 0);
    put_section(f, SYMTAB_SECTION, 25, SHT_SYMTAB, 0, SYMBOLS_AT, 7 * sizeof(Elf64_Sym), STRINGS,
                1);
    put_section(f, STRINGS, 25, SHT_STRTAB, 0, STRINGS_AT, sizeof(strings), 0, 0);
    put_section(f, NUMBERS, 25, SHT_SYMTAB_SHNDX, 0, NUMBERS_AT, 7 * 4, SYMTAB_SECTION, 0);
    put_symbol(f, 1, 33, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), TEXT, 8, 16);
    put_symbol(f, 2, 0, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), INFO, 0, 0);
    put_symbol(f, 3, 35, ELF64_ST_INFO(STB_WEAK, STT_NOTYPE), SHN_UNDEF, 0, 0);
    put_symbol(f, 4, 35, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), SHN_ABS, 0x1234, 0);
    put_symbol(f, 5, 35, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), SHN_XINDEX, 4, 0);
    put_symbol(f, 6, 35, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), SHN_COMMON, 16, 8);
    put(f, NUMBERS_AT + 5 * 4, TEXT, 4);
    memset(f->bytes + INFO_AT, 0x11, 32);
}

static void put_relocation(struct file *f, int i, uint64_t at, uint64_t symbol, uint64_t type,
                           uint64_t addend)
{
    size_t size = f->addends ? 24 : 16;
    size_t to = RELOCATIONS_AT + (size_t)i * size;
    put(f, to, at, 8);
    put(f, to + 8, symbol << 32 | type, 8);
    if (f->addends)
        put(f, to + 16, addend, 8);
    put_section(f, RELOCATIONS, 19, f->addends ? SHT_RELA : SHT_REL, SHF_INFO_LINK, RELOCATIONS_AT,
                ((size_t)i + 1) * size, SYMTAB_SECTION, INFO);
}

struct opened {
    struct symint_elf *elf;
    struct symint_debug_sections s;
};

static struct opened open_made(const struct file *f)
{
    struct opened o;
    enum sym_miss miss;
    const char *why = "";
    struct symint_input input = {.fd = -1, .memory = f->bytes, .size = sizeof(f->bytes)};
    assert_int_equal(symint_elf_open(&input, &o.elf, &miss, &why), 0);
    assert_non_null(o.elf);
    assert_int_equal(symint_elf_read_sections(o.elf, &miss, &why), 0);
    assert_int_equal(symint_debug_open(o.elf, false, &o.s), 0);
    return o;
}

static void close_made(struct opened *o)
{
    symint_debug_close(&o->s);
    symint_elf_free(o->elf);
}

static uint64_t get(const struct file *f, const uint8_t *p, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | p[f->big ? i : bytes - 1 - i];
    return value;
}

/* What a relocation makes of `bytes` bytes at offset 8, whose neighbours stay. */
static uint64_t relocate(struct file *f, unsigned bytes)
{
    struct opened o = open_made(f);
    const uint8_t *p = symint_debug_bytes(&o.s, DEBUG_INFO, 0, 32);
    if (p == NULL)
        fail_msg("not relocated: %s", o.s.why);
    assert_int_equal(p[7], 0x11);
    assert_int_equal(p[8 + bytes], 0x11);
    uint64_t value = get(f, p + 8, bytes);
    close_made(&o);
    return value;
}

static void each_machine_has_its_kinds(void **state)
{
    (void)state;
    const struct {
        uint16_t machine;
        uint32_t type;
        unsigned bytes;
        bool relative;
    } kinds[] = {
        {EM_X86_64, R_X86_64_64, 8, false},      {EM_X86_64, R_X86_64_32, 4, false},
        {EM_X86_64, R_X86_64_32S, 4, false},     {EM_X86_64, R_X86_64_PC32, 4, true},
        {EM_X86_64, R_X86_64_PC64, 8, true},     {EM_AARCH64, R_AARCH64_ABS64, 8, false},
        {EM_AARCH64, R_AARCH64_ABS32, 4, false}, {EM_AARCH64, R_AARCH64_PREL64, 8, true},
        {EM_AARCH64, R_AARCH64_PREL32, 4, true},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (int big = 0; big < 2; big++) {
            struct file f = {.machine = kinds[i].machine, .addends = true, .big = big};
            build(&f);
            put_relocation(&f, 0, 8, 1, kinds[i].type, 3);
            uint64_t expected = TEXT_AT + 8 + 3 - (kinds[i].relative ? 8 : 0);
            assert_int_equal(relocate(&f, kinds[i].bytes), expected);
        }
    }
}

static void an_addend_may_be_in_place(void **state)
{
    (void)state;
    struct file f = {.addends = false};
    build(&f);
    put(&f, INFO_AT + 8, 5, 8);
    put_relocation(&f, 0, 8, 1, R_X86_64_64, 0);
    assert_int_equal(relocate(&f, 8), TEXT_AT + 8 + 5);
}

static void each_kind_of_symbol_has_its_value(void **state)
{
    (void)state;
    const uint64_t values[] = {0, TEXT_AT + 8, 0, 0, 0x1234, TEXT_AT + 4, 0};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct file f = {.addends = true};
        build(&f);
        put_relocation(&f, 0, 8, i, R_X86_64_64, 7);
        assert_int_equal(relocate(&f, 8), values[i] + 7);
    }
}

static void offsets_of_thread_storage_stay(void **state)
{
    (void)state;
    struct file f = {.addends = true};
    build(&f);
    put_relocation(&f, 0, 8, 1, R_X86_64_DTPOFF64, 7);
    put_relocation(&f, 1, 8, 1, R_X86_64_DTPOFF32, 7);
    assert_int_equal(relocate(&f, 8), 0x1111111111111111);
}

static void linked_files_are_relocated_already(void **state)
{
    (void)state;
    const uint16_t linked[] = {ET_EXEC, ET_DYN};
    for (size_t i = 0; i < 2; i++) {
        struct file f = {.addends = true, .type = linked[i]};
        build(&f);
        put_section(&f, GROUPED, 25, SHT_PROGBITS, 0, GROUPED_AT, 16, 0, 0);
        put_relocation(&f, 0, 8, 1, R_X86_64_64, 7);
        assert_int_equal(relocate(&f, 8), 0x1111111111111111);
    }
}

static void refuse(const struct file *f, const char *why)
{
    struct opened o = open_made(f);
    assert_null(symint_debug_bytes(&o.s, DEBUG_INFO, 0, 1));
    assert_string_equal(o.s.why, why);
    close_made(&o);
}

static void an_unknown_kind_fails_the_section(void **state)
{
    (void)state;
    struct file f = {.addends = true};
    build(&f);
    put_relocation(&f, 0, 8, 1, R_X86_64_GOTPCREL, 7);
    refuse(&f, "a debug section has relocations of an unknown kind");
    struct file other = {.addends = true, .machine = EM_S390};
    build(&other);
    put_relocation(&other, 0, 8, 1, 22, 7);
    refuse(&other, "a debug section has relocations of an unknown kind");
}

static void damaged_relocations_fail_the_section(void **state)
{
    (void)state;
    const char why[] = "the relocations of a debug section are damaged";
    const uint64_t cases[][2] = {{25, 1}, {32, 1}, {UINT64_MAX, 1}, {8, 7}, {8, UINT32_MAX}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct file f = {.addends = true};
        build(&f);
        put_relocation(&f, 0, cases[i][0], cases[i][1], R_X86_64_64, 7);
        refuse(&f, why);
    }
    struct file f = {.addends = true};
    build(&f);
    put_relocation(&f, 0, 8, 5, R_X86_64_64, 7);
    put(&f, NUMBERS_AT + 5 * 4, SECTIONS, 4); /* no such section */
    refuse(&f, why);
    put_section(&f, NUMBERS, 25, SHT_PROGBITS, 0, NUMBERS_AT, 7 * 4, SYMTAB_SECTION, 0);
    refuse(&f, why); /* no numbers */
    put_relocation(&f, 0, 8, 1, R_X86_64_64, 7);
    put_section(&f, RELOCATIONS, 19, SHT_RELA, 0, RELOCATIONS_AT, 24, STRINGS, INFO);
    refuse(&f, why); /* no symbol table */
    put_section(&f, RELOCATIONS, 19, SHT_RELA, 0, 0x10000, 24, SYMTAB_SECTION, INFO);
    refuse(&f, why); /* not in the file */
    put_relocation(&f, 0, 8, 1, R_X86_64_64, 7);
    put_section(&f, GROUPED, 19, SHT_RELA, 0, RELOCATIONS_AT, 24, SYMTAB_SECTION, INFO);
    refuse(&f, why); /* twice */
}

static void the_section_outside_of_groups_counts(void **state)
{
    (void)state;
    struct file f = {.addends = true};
    build(&f);
    struct opened o = open_made(&f);
    assert_int_equal(o.s.at[DEBUG_INFO].number, INFO);
    close_made(&o);
    put_section(&f, INFO, 7, SHT_PROGBITS, SHF_GROUP, INFO_AT, 32, 0, 0);
    o = open_made(&f);
    assert_int_equal(o.s.at[DEBUG_INFO].number, GROUPED);
    close_made(&o);
}

static void addresses_are_file_offsets(void **state)
{
    (void)state;
    struct file f = {.addends = true};
    build(&f);
    struct opened o = open_made(&f);
    uint64_t vaddr;
    struct symint_place place = symint_elf_place(o.elf, 0, 0x1000);
    assert_true(symint_elf_vaddr(o.elf, TEXT_AT + 9, &place, &vaddr));
    assert_int_equal(vaddr, TEXT_AT + 9);
    assert_false(symint_elf_vaddr(o.elf, TEXT_AT - 1, &place, &vaddr));
    assert_false(symint_elf_vaddr(o.elf, TEXT_AT + 64, &place, &vaddr));
    assert_true(symint_debug_is_code(&o.s, TEXT_AT, TEXT_AT + 64));
    assert_false(symint_debug_is_code(&o.s, TEXT_AT, TEXT_AT + 65));
    assert_false(symint_debug_is_code(&o.s, 0, 1));
    enum sym_miss miss;
    const char *why;
    const char *note;
    assert_int_equal(symint_elf_index(o.elf, NULL, &miss, &why, &note), 0);
    assert_int_equal(miss, SYM_MISS_NONE);
    assert_int_equal(symint_elf_find(o.elf, TEXT_AT + 7), SYMINT_NO_SYMBOL);
    uint32_t number = symint_elf_find(o.elf, TEXT_AT + 23);
    assert_int_not_equal(number, SYMINT_NO_SYMBOL);
    assert_int_equal(symint_elf_symbol(o.elf, number).start, TEXT_AT + 8);
    close_made(&o);
}

static void any_damaged_byte_is_survived(void **state)
{
    (void)state;
    struct file f = {.addends = true};
    build(&f);
    put_relocation(&f, 0, 8, 1, R_X86_64_64, 3);
    put_relocation(&f, 1, 16, 5, R_X86_64_32, 3);
    for (size_t at = EI_NIDENT; at < sizeof(f.bytes); at++) {
        uint8_t before = f.bytes[at];
        if (at >= STRINGS_AT && at < NUMBERS_AT)
            continue;
        for (int i = 0; i < 3; i++) {
            f.bytes[at] = (uint8_t[]){0, 0xff, before ^ 0x10}[i];
            struct symint_input input = {.fd = -1, .memory = f.bytes, .size = sizeof(f.bytes)};
            struct opened o = {0};
            enum sym_miss miss;
            const char *why;
            const char *note;
            assert_int_equal(symint_elf_open(&input, &o.elf, &miss, &why), 0);
            if (o.elf != NULL && symint_elf_read_sections(o.elf, &miss, &why) == 0 &&
                symint_debug_open(o.elf, false, &o.s) == 0) {
                for (int id = 0; id < DEBUG_IDS; id++)
                    (void)symint_debug_bytes(&o.s, id, 0, o.s.at[id].size);
                assert_int_equal(symint_elf_index(o.elf, NULL, &miss, &why, &note), 0);
                symint_debug_close(&o.s);
            }
            symint_elf_free(o.elf);
        }
        f.bytes[at] = before;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_machine_has_its_kinds),
        cmocka_unit_test(an_addend_may_be_in_place),
        cmocka_unit_test(each_kind_of_symbol_has_its_value),
        cmocka_unit_test(offsets_of_thread_storage_stay),
        cmocka_unit_test(linked_files_are_relocated_already),
        cmocka_unit_test(an_unknown_kind_fails_the_section),
        cmocka_unit_test(damaged_relocations_fail_the_section),
        cmocka_unit_test(the_section_outside_of_groups_counts),
        cmocka_unit_test(addresses_are_file_offsets),
        cmocka_unit_test(any_damaged_byte_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
