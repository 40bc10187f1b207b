/* SPDX-License-Identifier: MIT */
/* Builds small ELF files in memory for tests: one executable segment, symbol tables, a build id. */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_TEXT_OFFSET 0x1000u
#define IMAGE_TEXT_VADDR 0x402000u /* differs from the offset on purpose */
#define IMAGE_TEXT_SIZE 0x1000u

struct image_symbol {
    const char *name;
    uint64_t value; /* from the start of the code */
    uint64_t size;
    uint8_t type;
    uint8_t bind;
    uint16_t section; /* 0: the code's */
    bool hidden;      /* dynamic symbols: not the default version */
};

struct image {
    const struct image_symbol *symbols; /* .symtab */
    size_t symbol_count;
    const struct image_symbol *dynamic; /* .dynsym */
    size_t dynamic_count;
    const char *build_id; /* NULL: none */
    uint16_t machine;     /* 0: x86-64 */
    bool narrow;          /* ELFCLASS32 */
    bool big;             /* big endian */
    bool no_sections;     /* dynamic symbols by PT_DYNAMIC and DT_HASH */
};

enum {
    IMAGE_NULL,
    IMAGE_TEXT,
    IMAGE_DATA,
    IMAGE_SYMTAB,
    IMAGE_STRTAB,
    IMAGE_DYNSYM,
    IMAGE_DYNSTR,
    IMAGE_VERSYM,
    IMAGE_SECTIONS
};

struct image_buffer {
    uint8_t *data;
    size_t size;
    bool big;
    bool narrow;
};

static inline void image_put(struct image_buffer *b, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        unsigned shift = (b->big ? bytes - 1 - i : i) * 8;
        b->data[b->size++] = (uint8_t)(value >> shift);
    }
}

/* A word of the class's size. */
static inline void image_word(struct image_buffer *b, uint64_t value)
{
    image_put(b, value, b->narrow ? 4 : 8);
}

static inline size_t image_table(struct image_buffer *b, const struct image_symbol *symbols,
                                 size_t count, size_t *strings_size)
{
    size_t start = b->size;
    size_t name = 1;
    size_t entry = b->narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
    memset(b->data + b->size, 0, entry);
    b->size += entry;
    for (size_t i = 0; i < count; i++) {
        const struct image_symbol *s = &symbols[i];
        uint8_t info = (uint8_t)(s->bind << 4 | s->type);
        uint16_t section = s->section == 0 ? IMAGE_TEXT : s->section;
        uint64_t value = s->value + IMAGE_TEXT_VADDR;
        image_put(b, name, 4);
        if (b->narrow) {
            image_put(b, value, 4);
            image_put(b, s->size, 4);
        }
        image_put(b, info, 1);
        image_put(b, 0, 1);
        image_put(b, section, 2);
        if (!b->narrow) {
            image_put(b, value, 8);
            image_put(b, s->size, 8);
        }
        name += strlen(s->name) + 1;
    }
    *strings_size = name;
    return start;
}

static inline size_t image_strings(struct image_buffer *b, const struct image_symbol *symbols,
                                   size_t count)
{
    size_t start = b->size;
    b->data[b->size++] = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(symbols[i].name) + 1;
        memcpy(b->data + b->size, symbols[i].name, n);
        b->size += n;
    }
    return start;
}

static inline void image_section(struct image_buffer *b, uint32_t type, uint64_t flags,
                                 uint64_t addr, size_t offset, size_t size, uint32_t link,
                                 size_t entry)
{
    image_put(b, 0, 4);
    image_put(b, type, 4);
    image_word(b, flags);
    image_word(b, addr);
    image_word(b, offset);
    image_word(b, size);
    image_put(b, link, 4);
    image_put(b, 0, 4);
    image_word(b, 1);
    image_word(b, entry);
}

static inline void image_segment(struct image_buffer *b, uint32_t type, uint32_t flags,
                                 uint64_t offset, uint64_t vaddr, uint64_t size)
{
    image_put(b, type, 4);
    if (!b->narrow)
        image_put(b, flags, 4);
    image_word(b, offset);
    image_word(b, vaddr);
    image_word(b, vaddr);
    image_word(b, size);
    image_word(b, size);
    if (b->narrow)
        image_put(b, flags, 4);
    image_word(b, 0x1000);
}

/* malloc'ed; *size gets the number of bytes. */
static inline uint8_t *image_build(const struct image *image, size_t *size)
{
    size_t room = 0x4000;
    for (size_t i = 0; i < image->symbol_count; i++)
        room += 64 + strlen(image->symbols[i].name);
    for (size_t i = 0; i < image->dynamic_count; i++)
        room += 128 + strlen(image->dynamic[i].name);
    struct image_buffer b = {.data = calloc(1, room), .big = image->big, .narrow = image->narrow};
    if (b.data == NULL)
        abort();
    size_t header = b.narrow ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);
    size_t phdr = b.narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
    size_t sym = b.narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
    size_t strings_size = 0;
    size_t dynstr_size = 0;
    size_t note_size = 0;

    b.size = 0x400;
    size_t note = b.size;
    if (image->build_id != NULL) {
        size_t n = strlen(image->build_id);
        image_put(&b, 4, 4);
        image_put(&b, n, 4);
        image_put(&b, NT_GNU_BUILD_ID, 4);
        memcpy(b.data + b.size, "GNU\0", 4);
        memcpy(b.data + b.size + 4, image->build_id, n);
        b.size += 4 + (n + 3) / 4 * 4;
        note_size = b.size - note;
    }
    b.size = IMAGE_TEXT_OFFSET + IMAGE_TEXT_SIZE;
    size_t symtab = image_table(&b, image->symbols, image->symbol_count, &strings_size);
    size_t strtab = image_strings(&b, image->symbols, image->symbol_count);
    b.size = (b.size + 7) / 8 * 8;
    size_t data_start = b.size;
    size_t dynsym = image_table(&b, image->dynamic, image->dynamic_count, &dynstr_size);
    size_t dynstr = image_strings(&b, image->dynamic, image->dynamic_count);
    b.size = (b.size + 7) / 8 * 8;
    size_t versym = b.size;
    image_put(&b, 0, 2);
    for (size_t i = 0; i < image->dynamic_count; i++)
        image_put(&b, image->dynamic[i].hidden ? 0x8002 : 2, 2);
    b.size = (b.size + 7) / 8 * 8;
    uint64_t shift = 0x800000; /* of the segment that holds the dynamic tables */
    size_t hash = b.size;
    image_put(&b, 1, 4);
    image_put(&b, image->dynamic_count + 1, 4);
    size_t dynamic = b.size;
    const uint64_t tags[][2] = {{DT_HASH, hash + shift},     {DT_SYMTAB, dynsym + shift},
                                {DT_STRTAB, dynstr + shift}, {DT_STRSZ, dynstr_size},
                                {DT_VERSYM, versym + shift}, {DT_NULL, 0}};
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        image_word(&b, tags[i][0]);
        image_word(&b, tags[i][1]);
    }
    size_t data_end = b.size;
    size_t sections = b.size;
    if (!image->no_sections) {
        image_section(&b, SHT_NULL, 0, 0, 0, 0, 0, 0);
        image_section(&b, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, IMAGE_TEXT_VADDR,
                      IMAGE_TEXT_OFFSET, IMAGE_TEXT_SIZE, 0, 0);
        image_section(&b, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x900000, data_start, 16, 0, 0);
        image_section(&b, image->symbol_count > 0 ? SHT_SYMTAB : SHT_PROGBITS, 0, 0, symtab,
                      (image->symbol_count + 1) * sym, IMAGE_STRTAB, sym);
        image_section(&b, SHT_STRTAB, 0, 0, strtab, strings_size, 0, 0);
        image_section(&b, image->dynamic_count > 0 ? SHT_DYNSYM : SHT_PROGBITS, 0, dynsym + shift,
                      dynsym, (image->dynamic_count + 1) * sym, IMAGE_DYNSTR, sym);
        image_section(&b, SHT_STRTAB, 0, dynstr + shift, dynstr, dynstr_size, 0, 0);
        image_section(&b, SHT_GNU_versym, 0, versym + shift, versym, (image->dynamic_count + 1) * 2,
                      IMAGE_DYNSYM, 2);
    }
    *size = b.size;

    b.size = 0;
    memcpy(b.data, ELFMAG, SELFMAG);
    b.data[EI_CLASS] = b.narrow ? ELFCLASS32 : ELFCLASS64;
    b.data[EI_DATA] = b.big ? ELFDATA2MSB : ELFDATA2LSB;
    b.data[EI_VERSION] = EV_CURRENT;
    b.size = EI_NIDENT;
    image_put(&b, ET_DYN, 2);
    image_put(&b, image->machine != 0 ? image->machine : EM_X86_64, 2);
    image_put(&b, EV_CURRENT, 4);
    image_word(&b, 0);
    image_word(&b, header);
    image_word(&b, image->no_sections ? 0 : sections);
    image_put(&b, 0, 4);
    image_put(&b, header, 2);
    image_put(&b, phdr, 2);
    image_put(&b, 4, 2);
    image_put(&b, b.narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr), 2);
    image_put(&b, image->no_sections ? 0 : IMAGE_SECTIONS, 2);
    image_put(&b, 0, 2);
    image_segment(&b, PT_LOAD, PF_R | PF_X, IMAGE_TEXT_OFFSET, IMAGE_TEXT_VADDR, IMAGE_TEXT_SIZE);
    image_segment(&b, PT_LOAD, PF_R | PF_W, data_start, data_start + shift, data_end - data_start);
    image_segment(&b, PT_DYNAMIC, PF_R, dynamic, dynamic + shift, data_end - dynamic);
    image_segment(&b, note_size > 0 ? PT_NOTE : PT_NULL, PF_R, note, note, note_size);
    return b.data;
}

#endif
