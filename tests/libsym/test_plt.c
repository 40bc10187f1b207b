/* SPDX-License-Identifier: MIT */
/* Stubs of every layout, byte by byte, and files that lie about them. */
#include "plt.h"

#include "elf_private.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

/* ---- files ---- */

#define CODE 0x1000u  /* address of the first section with code; the next ones follow at 0x1000 */
#define SLOTS 0x8000u /* of the slots and of the GOT */

struct relocation {
    uint64_t offset;
    uint32_t type;
    uint32_t symbol;
    uint64_t addend;
};

struct code {
    const char *section;
    const uint8_t *bytes;
    size_t size;
};

struct file {
    uint16_t machine;
    bool narrow;
    bool big;
    bool rel; /* not RELA */
    struct code code[3];
    const struct relocation *lazy; /* .rela.plt */
    size_t lazy_count;
    const struct relocation *other; /* .rela.dyn */
    size_t other_count;
    const char *symbols[4]; /* of .dynsym from number 1 on */
    uint64_t slots[8];      /* what is at SLOTS */
    uint64_t got;           /* DT_PLTGOT */
};

enum { NONE, PLT1, PLT2, PLT3, LAZY, OTHER, DYNSYM_TABLE, DYNSTR, SLOT_DATA, NAMES, SECTIONS };

struct writer {
    uint8_t *data;
    size_t size;
    const struct file *f;
};

static void put(struct writer *w, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        w->data[w->size++] = (uint8_t)(value >> (w->f->big ? bytes - 1 - i : i) * 8);
}

static void word(struct writer *w, uint64_t value)
{
    put(w, value, w->f->narrow ? 4 : 8);
}

struct place {
    size_t name;
    uint32_t type;
    uint64_t flags, addr, offset, size;
    uint32_t link;
};

static void put_relocations(struct writer *w, const struct relocation *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        word(w, r[i].offset);
        word(w,
             w->f->narrow ? r[i].symbol << 8 | r[i].type : (uint64_t)r[i].symbol << 32 | r[i].type);
        if (!w->f->rel)
            word(w, r[i].addend);
    }
}

#define ROOM 0x10000u

/* Everything after the headers, and where it is. */
static void put_contents(struct writer *w, struct place *places)
{
    const struct file *f = w->f;
    static const char names[] = "\0.rela.plt\0.rela.dyn\0.dynsym\0.dynstr\0.got";
    w->size = 0x200;
    for (int i = 0; i < 3; i++) {
        const struct code *c = &f->code[i];
        if (c->section == NULL)
            continue;
        places[PLT1 + i] = (struct place){0,
                                          SHT_PROGBITS,
                                          SHF_ALLOC | SHF_EXECINSTR,
                                          CODE + 0x1000u * (unsigned)i,
                                          w->size,
                                          c->size,
                                          0};
        memcpy(w->data + w->size, c->bytes, c->size);
        w->size += c->size;
    }
    size_t at = w->size;
    put_relocations(w, f->lazy, f->lazy_count);
    uint32_t type = f->rel ? SHT_REL : SHT_RELA;
    places[LAZY] = (struct place){1, type, SHF_ALLOC, at, at, w->size - at, DYNSYM_TABLE};
    at = w->size;
    put_relocations(w, f->other, f->other_count);
    places[OTHER] = (struct place){11, type, SHF_ALLOC, at, at, w->size - at, DYNSYM_TABLE};
    at = w->size;
    w->size += f->narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
    size_t name = 1;
    for (size_t i = 0; i < COUNT(f->symbols) && f->symbols[i] != NULL; i++) {
        put(w, name, 4);
        w->size += (f->narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym)) - 4;
        name += strlen(f->symbols[i]) + 1;
    }
    places[DYNSYM_TABLE] = (struct place){21, SHT_DYNSYM, SHF_ALLOC, at, at, w->size - at, DYNSTR};
    at = w->size++;
    for (size_t i = 0; i < COUNT(f->symbols) && f->symbols[i] != NULL; i++) {
        strcpy((char *)w->data + w->size, f->symbols[i]);
        w->size += strlen(f->symbols[i]) + 1;
    }
    places[DYNSTR] = (struct place){29, SHT_STRTAB, SHF_ALLOC, at, at, w->size - at, 0};
    at = w->size;
    for (size_t i = 0; i < COUNT(f->slots); i++)
        word(w, f->slots[i]);
    places[SLOT_DATA] = (struct place){37, SHT_PROGBITS, SHF_ALLOC, SLOTS, at, w->size - at, 0};
    at = w->size;
    memcpy(w->data + at, names, sizeof(names));
    w->size += sizeof(names);
    for (int i = 0; i < 3; i++) {
        if (f->code[i].section == NULL)
            continue;
        places[PLT1 + i].name = w->size - at;
        strcpy((char *)w->data + w->size, f->code[i].section);
        w->size += strlen(f->code[i].section) + 1;
    }
    places[NAMES] = (struct place){0, SHT_STRTAB, 0, 0, at, w->size - at, 0};
}

static void put_segment(struct writer *w, uint32_t type, uint64_t offset, uint64_t vaddr,
                        uint64_t size)
{
    put(w, type, 4);
    if (!w->f->narrow)
        put(w, PF_R, 4);
    word(w, offset);
    word(w, vaddr);
    word(w, vaddr);
    word(w, size);
    word(w, size);
    if (w->f->narrow)
        put(w, PF_R, 4);
    word(w, 1);
}

/* malloc'ed; `sections` gets where the section headers begin. */
static uint8_t *build(const struct file *f, size_t *size, size_t *sections)
{
    struct place places[SECTIONS] = {{0}};
    struct writer w = {.data = calloc(1, ROOM), .f = f};
    assert_non_null(w.data);
    put_contents(&w, places);
    size_t dynamic = w.size;
    word(&w, DT_PLTGOT);
    word(&w, f->got);
    word(&w, DT_NULL);
    word(&w, 0);
    size_t dynamic_end = w.size;
    *sections = w.size;
    for (int i = 0; i < SECTIONS; i++) {
        const struct place *p = &places[i];
        put(&w, p->name, 4);
        put(&w, p->type, 4);
        word(&w, p->flags);
        word(&w, p->addr);
        word(&w, p->offset);
        word(&w, p->size);
        put(&w, p->link, 4);
        put(&w, 0, 4);
        word(&w, 1);
        word(&w, 3); /* no entry has this size */
    }
    *size = w.size;
    memcpy(w.data, ELFMAG, SELFMAG);
    w.data[EI_CLASS] = f->narrow ? ELFCLASS32 : ELFCLASS64;
    w.data[EI_DATA] = f->big ? ELFDATA2MSB : ELFDATA2LSB;
    w.data[EI_VERSION] = EV_CURRENT;
    w.size = EI_NIDENT;
    put(&w, ET_DYN, 2);
    put(&w, f->machine, 2);
    put(&w, EV_CURRENT, 4);
    word(&w, 0);
    word(&w, f->narrow ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr));
    word(&w, *sections);
    put(&w, 0, 4);
    put(&w, f->narrow ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr), 2);
    put(&w, f->narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr), 2);
    put(&w, 2, 2);
    put(&w, f->narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr), 2);
    put(&w, SECTIONS, 2);
    put(&w, NAMES, 2);
    const struct place *slots = &places[SLOT_DATA];
    put_segment(&w, PT_LOAD, slots->offset, slots->addr, slots->size);
    put_segment(&w, PT_DYNAMIC, dynamic, 0x9000, dynamic_end - dynamic);
    return w.data;
}

/* ---- checks ---- */

static const char *resolver_name(void *user, uint64_t vaddr, size_t *size)
{
    const char *name = user;
    if (vaddr != 0x5000)
        return NULL;
    *size = strlen(name);
    return name;
}

static int read_image(uint8_t *data, size_t size, const char *resolver, struct symint_plt *plt)
{
    struct symint_elf *elf;
    enum sym_miss miss;
    const char *why = "";
    struct symint_input input = {.fd = -1, .memory = data, .size = size};
    *plt = (struct symint_plt){0};
    assert_int_equal(symint_elf_open(&input, &elf, &miss, &why), 0);
    if (elf == NULL)
        return -1;
    assert_int_equal(symint_elf_read_sections(elf, &miss, &why), 0);
    assert_int_equal(symint_plt_read(elf, resolver != NULL ? resolver_name : NULL,
                                     (void *)(uintptr_t)resolver, plt),
                     0);
    symint_elf_free(elf);
    uint64_t covered = 0;
    for (size_t i = 0; i < plt->count; i++) {
        assert_true(plt->stubs[i].start >= covered && plt->stubs[i].start < plt->stubs[i].end);
        covered = plt->stubs[i].end;
        assert_true(plt->stubs[i].name < plt->names_size);
        assert_non_null(
            memchr(plt->names + plt->stubs[i].name, 0, plt->names_size - plt->stubs[i].name));
    }
    return 0;
}

struct expected {
    uint64_t start, end;
    const char *name;
};

static void compare(const struct symint_plt *plt, const struct expected *expected, size_t count)
{
    for (size_t i = 0; i < plt->count && i < count; i++) {
        const struct symint_plt_stub *s = &plt->stubs[i];
        if (s->start != expected[i].start || s->end != expected[i].end ||
            strcmp(plt->names + s->name, expected[i].name) != 0)
            fail_msg("%llx-%llx %s instead of %llx-%llx %s", (unsigned long long)s->start,
                     (unsigned long long)s->end, plt->names + s->name,
                     (unsigned long long)expected[i].start, (unsigned long long)expected[i].end,
                     expected[i].name);
    }
    assert_int_equal(plt->count, count);
}

static void check(const struct file *f, const char *resolver, const struct expected *expected,
                  size_t count)
{
    size_t size;
    size_t sections;
    struct symint_plt plt;
    uint8_t *data = build(f, &size, &sections);
    assert_int_equal(read_image(data, size, resolver, &plt), 0);
    compare(&plt, expected, count);
    symint_plt_free(&plt);
    free(data);
}

#define CHECK(file, resolver, ...)                                \
    check(file, resolver, (const struct expected[]){__VA_ARGS__}, \
          COUNT(((const struct expected[]){__VA_ARGS__})))

/* The four bytes of a number, and of the distance from a next instruction to an address. */
#define N32(n)                                                                   \
    (uint8_t)(n), (uint8_t)((uint32_t)(n) >> 8), (uint8_t)((uint32_t)(n) >> 16), \
        (uint8_t)((uint32_t)(n) >> 24)
#define TO(next, address) N32((uint32_t)(address) - (uint32_t)(next))

#define SLOT(n) (SLOTS + 8u * (n))

static const struct relocation two[] = {{SLOT(0), R_X86_64_JUMP_SLOT, 1, 0},
                                        {SLOT(1), R_X86_64_JUMP_SLOT, 2, 0}};
#define TWO .lazy = two, .lazy_count = 2, .symbols = {"sin@@GLIBC_2.2.5", "cos"}

static void lazy_stubs_have_a_header(void **state)
{
    (void)state;
    CHECK((&(struct file){
              .machine = EM_X86_64,
              .code = {{".plt", BYTES(0xff, 0x35, N32(0x5555), 0xff, 0x25, N32(0x5555), 0x0f, 0x1f,
                                      0x40, 0, /* */
                                      0xff, 0x25, TO(CODE + 0x16, SLOT(0)), 0x68, N32(0), 0xe9,
                                      N32(-0x20), /* */
                                      0xff, 0x25, TO(CODE + 0x26, SLOT(1)), 0x68, N32(1), 0xe9,
                                      N32(-0x30))},
                       {".plt.got", BYTES(0xff, 0x25, TO(CODE + 0x1006, SLOT(2)), 0x66, 0x90)}},
              .other = &(struct relocation){SLOT(2), R_X86_64_GLOB_DAT, 3, 0},
              .other_count = 1,
              .lazy = two,
              .lazy_count = 2,
              .symbols = {"sin@@GLIBC_2.2.5", "cos", "free"}}),
          NULL, {CODE, CODE + 0x10, "<plt header>"}, {CODE + 0x10, CODE + 0x20, "sin@plt"},
          {CODE + 0x20, CODE + 0x30, "cos@plt"}, {CODE + 0x1000, CODE + 0x1008, "free@plt"});
}

static void slots_need_not_be_in_order(void **state)
{
    (void)state;
    CHECK((&(struct file){.machine = EM_X86_64,
                          .code = {{".plt", BYTES(0xff, 0x25, TO(CODE + 6, SLOT(1)), 0xff, 0x25,
                                                  TO(CODE + 12, SLOT(0)))}},
                          TWO}),
          NULL, {CODE, CODE + 6, "cos@plt"}, {CODE + 6, CODE + 12, "sin@plt"});
}

static void ibt_stubs_begin_with_endbr(void **state)
{
    (void)state;
    CHECK(
        (&(struct file){
            .machine = EM_X86_64,
            .code = {{".plt",
                      BYTES(0xff, 0x35, N32(0x5555), 0xff, 0x25, N32(0x5555), 0x0f, 0x1f, 0x40, 0,
                            0xf3, 0x0f, 0x1e, 0xfa, 0x68, N32(1), 0xf2, 0xe9, N32(-0x20), 0x90,
                            0xf3, 0x0f, 0x1e, 0xfa, 0x68, N32(0), 0xe9, N32(-0x30), 0x66, 0x90)},
                     {".plt.sec", BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25,
                                        TO(CODE + 0x100b, SLOT(0)), 0x0f, 0x1f, 0x44, 0, 0, /* */
                                        0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25,
                                        TO(CODE + 0x101a, SLOT(1)), 0x66, 0x0f, 0x1f, 0x44, 0, 0)}},
            TWO}),
        NULL, {CODE, CODE + 0x10, "<plt header>"}, {CODE + 0x10, CODE + 0x20, "cos@plt"},
        {CODE + 0x20, CODE + 0x30, "sin@plt"}, {CODE + 0x1000, CODE + 0x1010, "sin@plt"},
        {CODE + 0x1010, CODE + 0x1020, "cos@plt"});
}

static void numbers_without_endbr_are_those_of_mpx(void **state)
{
    (void)state;
    CHECK(
        (&(struct file){
            .machine = EM_X86_64,
            .code = {{".plt", BYTES(0x68, N32(0), 0xf2, 0xe9, N32(-0x20), 0x0f, 0x1f, 0x44, 0, 0,
                                    0x68, N32(1), 0xf2, 0xe9, N32(-0x20), 0x0f, 0x1f, 0x44, 0, 0)},
                     {".plt.bnd", BYTES(0xf2, 0xff, 0x25, TO(CODE + 0x1007, SLOT(0)), 0x90)}},
            TWO}),
        NULL, {CODE, CODE + 0x10, "sin@plt"}, {CODE + 0x10, CODE + 0x20, "cos@plt"},
        {CODE + 0x1000, CODE + 0x1008, "sin@plt"});
}

#define INT3_4 0xcc, 0xcc, 0xcc, 0xcc
#define INT3_11 INT3_4, INT3_4, 0xcc, 0xcc, 0xcc

static void lazy_retpolines_are_32_bytes_long(void **state)
{
    (void)state;
    CHECK(
        (&(struct file){
            .machine = EM_X86_64,
            .code = {{".plt",
                      BYTES(0xff, 0x35, N32(0x5555), 0x4c, 0x8b, 0x1d, N32(0x5555), 0xe8, N32(0xe),
                            0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, INT3_4, 0xcc, 0xcc, 0xcc,
                            /* 20 */ 0x4c, 0x89, 0x1c, 0x24, 0xc3, INT3_11,
                            /* 30 */ 0x4c, 0x8b, 0x1d, TO(CODE + 0x37, SLOT(0)), 0xe8, N32(-0x1c),
                            0xe9, N32(-0x2f), 0x68, N32(0), 0xe9, N32(-0x4b), 0xcc, INT3_4,
                            /* 50 */ 0x4c, 0x8b, 0x1d, TO(CODE + 0x57, SLOT(1)), 0xe8, N32(-0x3c),
                            0xe9, N32(-0x4f), 0x68, N32(1), 0xe9, N32(-0x6b), 0xcc, INT3_4)}},
            TWO}),
        NULL, {CODE, CODE + 0x30, "<plt header>"}, {CODE + 0x30, CODE + 0x50, "sin@plt"},
        {CODE + 0x50, CODE + 0x6b, "cos@plt"});
}

static void retpolines_bound_at_once_are_16_bytes_long(void **state)
{
    (void)state;
    CHECK(
        (&(struct file){.machine = EM_X86_64,
                        .code = {{".plt", BYTES(0xe8, N32(0xb), 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb,
                                                0xf9, INT3_4,
                                                /* 10 */ 0x4c, 0x89, 0x1c, 0x24, 0xc3, INT3_11,
                                                /* 20 */ 0x4c, 0x8b, 0x1d, TO(CODE + 0x27, SLOT(0)),
                                                0xe9, N32(-0x2c), INT3_4,
                                                /* 30 */ 0x4c, 0x8b, 0x1d, TO(CODE + 0x37, SLOT(1)),
                                                0xe9, N32(-0x3c), INT3_4)}},
                        TWO}),
        NULL, {CODE, CODE + 0x20, "<plt header>"}, {CODE + 0x20, CODE + 0x30, "sin@plt"},
        {CODE + 0x30, CODE + 0x3c, "cos@plt"});
}

static void stubs_may_load_their_number_first(void **state)
{
    (void)state;
    CHECK((&(struct file){
              .machine = EM_X86_64,
              .code = {{".plt", BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x53, 0xff, 0x35, N32(0x5555),
                                      0xff, 0x25, N32(0x5555), INT3_11, 0xcc, 0xcc, 0xcc, /* 20 */
                                      0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, N32(0), 0xff, 0x25,
                                      TO(CODE + 0x30, SLOT(0)), /* 30 */
                                      0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, N32(1), 0xff, 0x25,
                                      TO(CODE + 0x40, SLOT(1)))}},
              TWO}),
          NULL, {CODE, CODE + 0x20, "<plt header>"}, {CODE + 0x20, CODE + 0x30, "sin@plt"},
          {CODE + 0x30, CODE + 0x40, "cos@plt"});
}

static void a_number_that_looks_like_a_jump_is_none(void **state)
{
    (void)state;
    /* The operands of push and jmp, and of the nop, contain `ff 25` and a distance to a slot. */
    CHECK((&(struct file){.machine = EM_X86_64,
                          .code = {{".plt", BYTES(0xff, 0x25, TO(CODE + 6, SLOT(0)), 0x68, 0xff,
                                                  0x25, 0xe0, 0x6f, 0xe9, 0, 0, 0xff, 0x25, /* */
                                                  0x0f, 0x1f, 0x84, 0xff, 0x25, 0xe0, 0x6f, 0)}},
                          TWO}),
          NULL, {CODE, CODE + 0x18, "sin@plt"});
}

static void unknown_code_belongs_to_no_stub(void **state)
{
    (void)state;
    CHECK((&(struct file){
              .machine = EM_X86_64,
              .code = {{".plt",
                        BYTES(0xff, 0x25, TO(CODE + 6, SLOT(0)), 0x66, 0x90,    /* 8: cpuid ... */
                              0x0f, 0xa2, 0xff, 0x25, TO(CODE + 0x10, SLOT(1)), /* 10 */
                              0xff, 0x25, TO(CODE + 0x16, SLOT(1)), 0x66, 0x90)}},
              TWO}),
          NULL, {CODE, CODE + 8, "sin@plt"}, {CODE + 0x10, CODE + 0x18, "cos@plt"});
}

static void the_last_stub_ends_where_zeros_begin(void **state)
{
    (void)state;
    CHECK((&(struct file){.machine = EM_X86_64,
                          .code = {{".plt.got", BYTES(0xff, 0x25, TO(CODE + 6, SLOT(0)), 0x66, 0x90,
                                                      0, 0, 0, 0, 0, 0, 0, 0)}},
                          TWO}),
          NULL, {CODE, CODE + 8, "sin@plt"});
    CHECK((&(struct file){
              .machine = EM_X86_64,
              .code = {{".plt.got", BYTES(0xff, 0x25, TO(CODE + 6, SLOT(0)), INT3_4, 0xcc, 0xcc)}},
              TWO}),
          NULL, {CODE, CODE + 6, "sin@plt"});
}

static void the_stub_for_tls_descriptors_has_no_name(void **state)
{
    (void)state;
    CHECK((&(struct file){.machine = EM_X86_64,
                          .code = {{".plt", BYTES(0xff, 0x25, TO(CODE + 6, SLOT(0)), 0x66, 0x90,
                                                  0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x35, N32(0x5555),
                                                  0xff, 0x25, TO(CODE + 0x18, SLOT(1)))}},
                          TWO}),
          NULL, {CODE, CODE + 8, "sin@plt"});
}

static void stubs_of_i386_programs_have_addresses(void **state)
{
    (void)state;
    static const struct relocation relocations[] = {{SLOTS, R_386_JMP_SLOT, 1, 0},
                                                    {SLOTS + 4, R_386_JMP_SLOT, 2, 0}};
    CHECK((&(struct file){
              .machine = EM_386,
              .narrow = true,
              .rel = true,
              .code = {{".plt", BYTES(0xff, 0x35, N32(0x5555), 0xff, 0x25, N32(0x5555), 0, 0, 0, 0,
                                      0xff, 0x25, N32(SLOTS), 0x68, N32(0), 0xe9, N32(-0x20), 0xff,
                                      0x25, N32(SLOTS + 4), 0x68, N32(8), 0xe9, N32(-0x30))}},
              .lazy = relocations,
              .lazy_count = 2,
              .symbols = {"sin", "cos"}}),
          NULL, {CODE, CODE + 0x10, "<plt header>"}, {CODE + 0x10, CODE + 0x20, "sin@plt"},
          {CODE + 0x20, CODE + 0x30, "cos@plt"});
}

static void stubs_of_i386_libraries_count_from_the_got(void **state)
{
    (void)state;
    static const struct relocation relocations[] = {{SLOTS, R_386_JMP_SLOT, 1, 0},
                                                    {SLOTS + 4, R_386_JMP_SLOT, 2, 0}};
    CHECK(
        (&(struct file){.machine = EM_386,
                        .narrow = true,
                        .rel = true,
                        .got = SLOTS + 0x10,
                        .code = {{".plt", BYTES(0xff, 0xb3, N32(4), 0xff, 0xa3, N32(8), 0x0f, 0x1f,
                                                0x40, 0, 0xf3, 0x0f, 0x1e, 0xfb, 0x68, N32(8), 0xe9,
                                                N32(-0x1e), 0x66, 0x90)},
                                 {".plt.sec", BYTES(0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0xa3, N32(-0x10),
                                                    0x66, 0x0f, 0x1f, 0x44, 0, 0)},
                                 {".plt.got", BYTES(0x50, 0x8b, 0x83, N32(-0xc), 0xe8, N32(0), 0xe9,
                                                    N32(0), 0x68, N32(8), 0xe9, N32(0), INT3_4)}},
                        .lazy = relocations,
                        .lazy_count = 2,
                        .symbols = {"sin", "cos"}}),
        NULL, {CODE, CODE + 0x10, "<plt header>"}, {CODE + 0x10, CODE + 0x20, "cos@plt"},
        {CODE + 0x1000, CODE + 0x1010, "sin@plt"}, {CODE + 0x2000, CODE + 0x201b, "cos@plt"});
}

static void rel_slots_hold_the_resolvers_address(void **state)
{
    (void)state;
    static const struct relocation relocations[] = {{SLOTS + 4, R_386_IRELATIVE, 0, 0},
                                                    {SLOTS + 8, R_386_IRELATIVE, 0, 0}};
    const struct file f = {
        .machine = EM_386,
        .narrow = true,
        .rel = true,
        .code = {{".iplt", BYTES(0xff, 0x25, N32(SLOTS + 4), 0x66, 0x90, 0xff, 0x25, N32(SLOTS + 8),
                                 0x66, 0x90)}},
        .other = relocations,
        .other_count = 2,
        .slots = {0, 0x5000, 0x6000},
    };
    CHECK(&f, "strlen", {CODE, CODE + 8, "strlen@plt"},
          {CODE + 8, CODE + 0x10, "*ABS*+0x6000@plt"});
}

static void resolvers_are_named_by_the_caller(void **state)
{
    (void)state;
    static const struct relocation relocations[] = {{SLOT(0), R_X86_64_IRELATIVE, 0, 0x5000},
                                                    {SLOT(1), R_X86_64_IRELATIVE, 0, 0x6000}};
    const struct file f = {
        .machine = EM_X86_64,
        .code = {{".plt", BYTES(0xff, 0x25, TO(CODE + 6, SLOT(0)), 0x66, 0x90, 0xff, 0x25,
                                TO(CODE + 14, SLOT(1)), 0x66, 0x90)}},
        .lazy = relocations,
        .lazy_count = 2};
    CHECK(&f, "strlen@V1", {CODE, CODE + 8, "strlen@plt"},
          {CODE + 8, CODE + 0x10, "*ABS*+0x6000@plt"});
    CHECK(&f, NULL, {CODE, CODE + 8, "*ABS*+0x5000@plt"},
          {CODE + 8, CODE + 0x10, "*ABS*+0x6000@plt"});
}

static void x32_has_small_relocations(void **state)
{
    (void)state;
    CHECK(
        (&(struct file){.machine = EM_X86_64,
                        .narrow = true,
                        .code = {{".plt", BYTES(0xff, 0x25, TO(CODE + 6, SLOT(0)), 0x66, 0x90, 0xf3,
                                                0x0f, 0x1e, 0xfa, 0x68, N32(1), 0xe9, N32(0))}},
                        TWO}),
        NULL, {CODE, CODE + 8, "sin@plt"}, {CODE + 8, CODE + 0x16, "cos@plt"});
}

/* ---- AArch64 ---- */

#define BTI N32(0xd503245f)
#define NOP N32(0xd503201f)
#define AUTIA N32(0xd503219f)
#define BR N32(0xd61f0220)
#define ADRP N32(0xf0000030) /* 7 pages ahead: from 0x1000 to SLOTS */
#define LDR(n) N32(0xf9400211u | (uint32_t)(n) << 10)
#define ADD(n) N32(0x91000210u | (uint32_t)(n) << 13)
#define STP N32(0xa9bf7bf0)

static const struct relocation arm[] = {{SLOT(0), R_AARCH64_JUMP_SLOT, 1, 0},
                                        {SLOT(1), R_AARCH64_JUMP_SLOT, 2, 0}};
#define ARM .lazy = arm, .lazy_count = 2, .symbols = {"sin@V", "cos"}

static void aarch64_stubs_have_16_bytes(void **state)
{
    (void)state;
    struct file f = {.machine = EM_AARCH64,
                     .code = {{".plt", BYTES(STP, ADRP, LDR(100), ADD(100), BR, NOP, NOP, NOP, ADRP,
                                             LDR(1), ADD(1), BR, ADRP, LDR(0), ADD(0), BR)}},
                     ARM};
    const struct expected expected[] = {{CODE, CODE + 0x20, "<plt header>"},
                                        {CODE + 0x20, CODE + 0x30, "cos@plt"},
                                        {CODE + 0x30, CODE + 0x40, "sin@plt"}};
    check(&f, NULL, expected, 3);
    f.big = true; /* of its data: code stays as it is */
    check(&f, NULL, expected, 3);
}

static void aarch64_stubs_with_protection_have_24_bytes(void **state)
{
    (void)state;
    CHECK((&(struct file){.machine = EM_AARCH64,
                          .code = {{".plt", BYTES(BTI, STP, ADRP, LDR(100), ADD(100), BR, NOP, NOP,
                                                  BTI, ADRP, LDR(0), ADD(0), AUTIA, BR, ADRP,
                                                  LDR(1), ADD(1), AUTIA, BR, NOP)}},
                          ARM}),
          NULL, {CODE, CODE + 0x20, "<plt header>"}, {CODE + 0x20, CODE + 0x38, "sin@plt"},
          {CODE + 0x38, CODE + 0x50, "cos@plt"});
}

static void aarch64_tls_descriptors_and_padding_are_no_stub(void **state)
{
    (void)state;
    CHECK((&(struct file){
              .machine = EM_AARCH64,
              .code = {{".plt", BYTES(ADRP, LDR(0), ADD(0), BR, /* 10: stp x2, x3 ... br x2 */
                                      BTI, N32(0xa9bf0fe2), N32(0x90000002), N32(0x90000003),
                                      N32(0xf9400042), N32(0x91000063), N32(0xd61f0040), NOP)},
                       {".iplt", BYTES(N32(0xd0000030), LDR(1), ADD(1), BR, N32(0), N32(0))}},
              ARM}),
          NULL, {CODE, CODE + 0x10, "sin@plt"}, {CODE + 0x1000, CODE + 0x1010, "cos@plt"});
}

static void aarch64_ilp32_loads_32_bits(void **state)
{
    (void)state;
    static const struct relocation relocations[] = {{SLOTS + 4, R_AARCH64_P32_JUMP_SLOT, 1, 0}};
    CHECK((&(struct file){.machine = EM_AARCH64,
                          .narrow = true,
                          .code = {{".plt", BYTES(ADRP, N32(0xb9400611), N32(0x11001210), BR)}},
                          .lazy = relocations,
                          .lazy_count = 1,
                          .symbols = {"sin"}}),
          NULL, {CODE, CODE + 0x10, "sin@plt"});
}

/* ---- files that lie ---- */

static const uint8_t jumps[] = {0xff, 0x25, TO(CODE + 6, SLOT(0)),  0x66, 0x90,
                                0xff, 0x25, TO(CODE + 14, SLOT(1)), 0x66, 0x90};

static void what_has_no_name_is_left_out(void **state)
{
    (void)state;
    static const struct relocation relocations[] = {
        {SLOT(0), R_X86_64_JUMP_SLOT, 77, 0},         /* no such symbol */
        {SLOT(1), R_X86_64_RELATIVE, 2, 0},           /* of another kind */
        {SLOT(1), R_X86_64_JUMP_SLOT, 2, 0},          /* the one */
        {SLOT(1), R_X86_64_JUMP_SLOT, UINT32_MAX, 0}, /* the last one counts */
    };
    struct file f = {.machine = EM_X86_64,
                     .code = {{".plt", jumps, sizeof(jumps)}},
                     .lazy = relocations,
                     .lazy_count = 3,
                     .symbols = {"sin", "cos"}};
    CHECK(&f, NULL, {CODE + 8, CODE + 0x10, "cos@plt"});
    f.lazy_count = 4;
    check(&f, NULL, NULL, 0);
    f.lazy_count = 0;
    check(&f, NULL, NULL, 0);
    f = (struct file){.machine = EM_X86_64, .code = {{".plt", jumps, sizeof(jumps)}}, TWO};
    f.symbols[0] = "";
    CHECK(&f, NULL, {CODE + 8, CODE + 0x10, "cos@plt"});
    f.machine = EM_RISCV;
    check(&f, NULL, NULL, 0);
    f.machine = EM_X86_64;
    f.code[0].section = ".text";
    check(&f, NULL, NULL, 0);
}

static void numbers_of_relocations_may_be_too_large(void **state)
{
    (void)state;
    CHECK((&(struct file){.machine = EM_X86_64,
                          .code = {{".plt", BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0x68, N32(2), 0xe9,
                                                  N32(0), 0x66, 0x90, 0xf3, 0x0f, 0x1e, 0xfa, 0x68,
                                                  N32(-1), 0xe9, N32(0), 0x66, 0x90, 0xf3, 0x0f,
                                                  0x1e, 0xfa, 0x68, N32(1), 0xe9, N32(0))}},
                          TWO}),
          NULL, {CODE + 0x20, CODE + 0x2e, "cos@plt"});
}

/* Sets one field of a section header. */
static void lie(uint8_t *data, size_t sections, int section, size_t field, uint64_t value)
{
    memcpy(data + sections + (size_t)section * sizeof(Elf64_Shdr) + field, &value, sizeof(value));
}

#define FIELD(name) offsetof(Elf64_Shdr, name)

static void sections_that_are_not_in_the_file_are_left_out(void **state)
{
    (void)state;
    static const struct {
        int section;
        size_t field;
        uint64_t value;
        size_t stubs;
    } lies[] = {
        {PLT1, FIELD(sh_size), UINT64_MAX, 0},
        {PLT1, FIELD(sh_size), ROOM, 0},
        {PLT1, FIELD(sh_size), 3, 0},
        {PLT1, FIELD(sh_size), 13, 1},
        {PLT1, FIELD(sh_size), 0, 0},
        {PLT1, FIELD(sh_offset), UINT64_MAX - 3, 0},
        {PLT1, FIELD(sh_addr), UINT64_MAX - 3, 0},
        {LAZY, FIELD(sh_size), UINT64_MAX, 0},
        {LAZY, FIELD(sh_size), 47, 1},
        {LAZY, FIELD(sh_offset), UINT64_MAX - 50, 0},
        {LAZY, FIELD(sh_addr), 0, 0},
        {LAZY, FIELD(sh_link), 99, 0},
        {LAZY, FIELD(sh_link), DYNSTR, 0},
        {DYNSYM_TABLE, FIELD(sh_size), 48, 1},
        {DYNSYM_TABLE, FIELD(sh_size), UINT64_MAX, 0},
        {DYNSYM_TABLE, FIELD(sh_offset), UINT64_MAX - 7, 0},
        {DYNSYM_TABLE, FIELD(sh_link), 99, 0},
        {DYNSTR, FIELD(sh_size), 1, 0},
        {DYNSTR, FIELD(sh_offset), UINT64_MAX - 1, 0},
        {DYNSTR, FIELD(sh_offset), ROOM, 0},
    };
    const struct file f = {.machine = EM_X86_64, .code = {{".plt", jumps, sizeof(jumps)}}, TWO};
    for (size_t i = 0; i < COUNT(lies); i++) {
        size_t size;
        size_t sections;
        struct symint_plt plt;
        uint8_t *data = build(&f, &size, &sections);
        if (lies[i].field == FIELD(sh_link))
            data[sections + (size_t)lies[i].section * sizeof(Elf64_Shdr) + FIELD(sh_link)] =
                (uint8_t)lies[i].value;
        else
            lie(data, sections, lies[i].section, lies[i].field, lies[i].value);
        assert_int_equal(read_image(data, size, NULL, &plt), 0);
        if (plt.count != lies[i].stubs)
            fail_msg("lie %zu: %zu stubs", i, plt.count);
        symint_plt_free(&plt);
        free(data);
    }
}

static void a_section_may_end_in_any_instruction(void **state)
{
    (void)state;
    static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3,    4,    0x68,
                                   1,    2,    3,    4,    0xe9, 1,    2,    3, 4, 0x0f, 0x1f, 0x84,
                                   1,    2,    3,    4,    5,    0xff, 0xb3, 1, 2, 3,    4,    0xa1,
                                   1,    2,    3,    4,    0x4c, 0x8b, 0x1d, 1, 2, 3,    4,    0xff,
                                   0xe0, 0x8b, 0xc0, 0x8d, 0xb4, 0x26, 1,    2, 3, 4,    0xeb, 1};
    static const uint16_t machines[] = {EM_X86_64, EM_386, EM_AARCH64};
    for (size_t from = 0; from < sizeof(code); from++) {
        for (size_t to = from; to <= sizeof(code); to++) {
            const struct file f = {.machine = machines[(from + to) % 3],
                                   .narrow = (from + to) % 3 == 1,
                                   .code = {{".plt.sec", code + from, to - from}},
                                   TWO};
            check(&f, NULL, NULL, 0);
        }
    }
}

static void names_are_never_more_than_the_file(void **state)
{
    (void)state;
    /* Two hundred slots whose symbols share one long text. */
    enum { N = 200, LONG = 8000 };
    static struct relocation relocations[N];
    static uint8_t code[N * 6];
    static char text[LONG + 1];
    for (unsigned i = 0; i < N; i++) {
        const uint8_t jump[] = {0xff, 0x25, TO(CODE + i * 6 + 6, SLOT(i))};
        memcpy(code + i * 6, jump, sizeof(jump));
        relocations[i] = (struct relocation){SLOT(i), R_X86_64_JUMP_SLOT, 1, 0};
    }
    memset(text, 'x', LONG);
    const struct file f = {.machine = EM_X86_64,
                           .code = {{".plt", code, sizeof(code)}},
                           .lazy = relocations,
                           .lazy_count = N,
                           .symbols = {text}};
    size_t size;
    size_t sections;
    struct symint_plt plt;
    uint8_t *data = build(&f, &size, &sections);
    assert_int_equal(read_image(data, size, NULL, &plt), 0);
    assert_true(plt.count > 0 && plt.count <= size / LONG);
    assert_true(plt.names_size <= size);
    symint_plt_free(&plt);
    free(data);
}

static uint32_t random_state = 1;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static void garbage_gives_stubs_in_order_or_none(void **state)
{
    (void)state;
    static const uint16_t machines[] = {EM_X86_64, EM_386, EM_AARCH64};
    static const uint8_t likely[] = {0xff, 0x25, 0x68, 0xe9, 0xf3, 0x0f, 0x1e, 0xfa,
                                     0x8b, 0x1d, 0x4c, 0x35, 0xcc, 0x90, 0x66, 0};
    uint8_t code[512];
    for (int round = 0; round < 2000; round++) {
        size_t length = next_random() % sizeof(code);
        for (size_t i = 0; i < length; i++)
            code[i] = next_random() % 3 != 0 ? likely[next_random() % sizeof(likely)]
                                             : (uint8_t)next_random();
        const struct file f = {.machine = machines[round % 3],
                               .code = {{".plt", code, length}, {".plt.sec", code, length}},
                               .narrow = round % 3 == 1,
                               TWO};
        size_t size;
        size_t sections;
        struct symint_plt plt;
        uint8_t *data = build(&f, &size, &sections);
        /* And damage everywhere else. */
        for (unsigned i = 0; i < next_random() % 8; i++)
            data[0x40 + next_random() % (size - 0x40)] = (uint8_t)next_random();
        if (read_image(data, size - next_random() % 64 * (round % 5 == 0), "r", &plt) == 0)
            symint_plt_free(&plt);
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lazy_stubs_have_a_header),
        cmocka_unit_test(slots_need_not_be_in_order),
        cmocka_unit_test(ibt_stubs_begin_with_endbr),
        cmocka_unit_test(numbers_without_endbr_are_those_of_mpx),
        cmocka_unit_test(lazy_retpolines_are_32_bytes_long),
        cmocka_unit_test(retpolines_bound_at_once_are_16_bytes_long),
        cmocka_unit_test(stubs_may_load_their_number_first),
        cmocka_unit_test(a_number_that_looks_like_a_jump_is_none),
        cmocka_unit_test(unknown_code_belongs_to_no_stub),
        cmocka_unit_test(the_last_stub_ends_where_zeros_begin),
        cmocka_unit_test(the_stub_for_tls_descriptors_has_no_name),
        cmocka_unit_test(stubs_of_i386_programs_have_addresses),
        cmocka_unit_test(stubs_of_i386_libraries_count_from_the_got),
        cmocka_unit_test(rel_slots_hold_the_resolvers_address),
        cmocka_unit_test(resolvers_are_named_by_the_caller),
        cmocka_unit_test(x32_has_small_relocations),
        cmocka_unit_test(aarch64_stubs_have_16_bytes),
        cmocka_unit_test(aarch64_stubs_with_protection_have_24_bytes),
        cmocka_unit_test(aarch64_tls_descriptors_and_padding_are_no_stub),
        cmocka_unit_test(aarch64_ilp32_loads_32_bits),
        cmocka_unit_test(what_has_no_name_is_left_out),
        cmocka_unit_test(numbers_of_relocations_may_be_too_large),
        cmocka_unit_test(sections_that_are_not_in_the_file_are_left_out),
        cmocka_unit_test(a_section_may_end_in_any_instruction),
        cmocka_unit_test(names_are_never_more_than_the_file),
        cmocka_unit_test(garbage_gives_stubs_in_order_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
