/* SPDX-License-Identifier: MIT */
/* Builds small ELF files with unwind tables in memory, byte by byte. */
#ifndef FRAME_IMAGE_H
#define FRAME_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Near enough for numbers of 16 bits. */
#define FRAME_TEXT ((uint64_t)0x5000)
#define FRAME_TEXT_OFFSET ((uint64_t)0x1000)
#define FRAME_TEXT_SIZE ((uint64_t)0x800)
#define FRAME_EH ((uint64_t)0x3000) /* address of .eh_frame */
#define FRAME_HEADER ((uint64_t)0x2000)
#define FRAME_GOT ((uint64_t)0x4800)
#define FRAME_NOTES ((uint64_t)0x1000)

struct bytes {
    uint8_t data[16384];
    size_t size;
};

static inline void put(struct bytes *b, uint64_t value, unsigned size)
{
    if (b->size + size > sizeof(b->data))
        abort();
    for (unsigned i = 0; i < size; i++)
        b->data[b->size++] = (uint8_t)(value >> i * 8);
}

static inline void put_bytes(struct bytes *b, const void *data, size_t size)
{
    if (b->size + size > sizeof(b->data))
        abort();
    if (size > 0)
        memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void put_uleb(struct bytes *b, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        put(b, (value & 0x7f) | 0x80, 1);
    put(b, value, 1);
}

static inline void put_sleb(struct bytes *b, int64_t value)
{
    for (;;) {
        int64_t rest = value < 0 ? ~(~value >> 7) : value >> 7;
        bool last = rest == (value & 0x40 ? -1 : 0);
        put(b, ((uint64_t)value & 0x7f) | (last ? 0 : 0x80), 1);
        if (last)
            return;
        value = rest;
    }
}

static inline void put_align(struct bytes *b, size_t align)
{
    while (b->size % align != 0)
        put(b, 0, 1);
}

static inline void set(struct bytes *b, size_t at, uint64_t value, unsigned size)
{
    size_t end = b->size;
    b->size = at;
    put(b, value, size);
    b->size = end;
}

/* How CIEs and FDEs are written; all zero: as compilers do it, but with absptr. */
struct frame_style {
    bool debug;           /* of .debug_frame */
    bool wide;            /* lengths of 8 bytes */
    unsigned id_size;     /* 0: 4, or 8 in a wide .debug_frame */
    uint8_t version;      /* 0: 1 */
    uint8_t address_size; /* version 4; 0: 8 */
    uint8_t segment_size; /* version 4 */
    const char *letters;  /* NULL: "zR", or "" in .debug_frame */
    uint8_t encoding;     /* of addresses */
    const uint8_t *data;  /* augmentation data of the CIE; NULL: the encoding */
    size_t data_size;
    uint64_t code_align;      /* 0: 1 */
    int64_t data_align;       /* 0: -8 */
    uint64_t return_register; /* 0: 16 */
    const uint8_t *code; /* initial instructions; NULL: CFA is rsp+8, the return address at CFA-8 */
    size_t code_size;
};

static inline unsigned frame_id_size(const struct frame_style *s)
{
    return s->id_size != 0 ? s->id_size : s->wide && s->debug ? 8 : 4;
}

static inline const char *frame_letters(const struct frame_style *s)
{
    return s->letters != NULL ? s->letters : s->debug ? "" : "zR";
}

static inline size_t entry_begin(struct bytes *b, const struct frame_style *s)
{
    size_t at = b->size;
    if (s->wide)
        put(b, UINT32_MAX, 4);
    put(b, 0, s->wide ? 8 : 4);
    return at;
}

static inline void entry_end(struct bytes *b, const struct frame_style *s, size_t at)
{
    size_t body = at + (s->wide ? 12 : 4);
    while ((b->size - body) % 4 != 0)
        put(b, 0, 1);
    set(b, body - (s->wide ? 8 : 4), b->size - body, s->wide ? 8 : 4);
}

/* Returns its offset. */
static inline size_t put_cie(struct bytes *b, const struct frame_style *s)
{
    static const uint8_t usual[] = {0x0c, 7, 8, 0x80 | 16, 1};
    const char *letters = frame_letters(s);
    size_t at = entry_begin(b, s);
    put(b, s->debug ? UINT64_MAX : 0, frame_id_size(s));
    uint8_t version = s->version == 0 ? 1 : s->version;
    put(b, version, 1);
    put_bytes(b, letters, strlen(letters) + 1);
    if (version == 4) {
        put(b, s->address_size == 0 ? 8 : s->address_size, 1);
        put(b, s->segment_size, 1);
    }
    put_uleb(b, s->code_align == 0 ? 1 : s->code_align);
    put_sleb(b, s->data_align == 0 ? -8 : s->data_align);
    uint64_t reg = s->return_register == 0 ? 16 : s->return_register;
    if (version == 1)
        put(b, reg, 1);
    else
        put_uleb(b, reg);
    if (letters[0] == 'z') {
        put_uleb(b, s->data == NULL ? 1 : s->data_size);
        put_bytes(b, s->data == NULL ? &s->encoding : s->data, s->data == NULL ? 1 : s->data_size);
    }
    put_bytes(b, s->code == NULL ? usual : s->code, s->code == NULL ? sizeof(usual) : s->code_size);
    entry_end(b, s, at);
    return at;
}

static inline void put_number(struct bytes *b, uint8_t encoding, uint64_t value)
{
    static const unsigned sizes[] = {8, 0, 2, 4, 8, 0, 0, 0};
    uint8_t format = encoding & 0x0f;
    if (format == 1)
        put_uleb(b, value);
    else if (format == 9)
        put_sleb(b, (int64_t)value);
    else
        put(b, value, sizes[format & 7]);
}

/* A pointer at the end of b, which begins at an address. */
static inline void put_pointer(struct bytes *b, uint64_t address, uint8_t encoding, uint64_t value)
{
    if (encoding == 0x50) {
        while ((address + b->size) % 8 != 0)
            put(b, 0xee, 1);
        encoding = 0;
    }
    uint64_t base = (encoding & 0x70) == 0x10   ? address + b->size
                    : (encoding & 0x70) == 0x30 ? FRAME_GOT
                                                : 0;
    put_number(b, encoding, value == 0 ? 0 : value - base);
}

/* Returns its offset. */
static inline size_t put_fde(struct bytes *b, const struct frame_style *s, size_t cie,
                             uint64_t start, uint64_t size, const uint8_t *code, size_t code_size)
{
    size_t at = entry_begin(b, s);
    put(b, s->debug ? cie : b->size - cie, frame_id_size(s));
    put_pointer(b, s->debug ? 0 : FRAME_EH, s->encoding, start);
    put_number(b, s->encoding == 0x50 ? 0 : s->encoding, size);
    if (frame_letters(s)[0] == 'z')
        put_uleb(b, 0);
    put_bytes(b, code, code_size);
    entry_end(b, s, at);
    return at;
}

/* An entry of the search table, with its header in front. */
static inline void put_header(struct bytes *b, uint8_t count_encoding, uint64_t count)
{
    put(b, 1, 1);
    put(b, 0x1b, 1);
    put(b, count_encoding, 1);
    put(b, 0x3b, 1);
    put(b, FRAME_EH - (FRAME_HEADER + 4), 4);
    put_number(b, count_encoding, count);
}

static inline void put_search(struct bytes *b, uint64_t start, size_t fde)
{
    put(b, start - FRAME_HEADER, 4);
    put(b, FRAME_EH + fde - FRAME_HEADER, 4);
}

struct frame_file {
    uint16_t machine;           /* 0: x86-64 */
    const struct bytes *eh;     /* .eh_frame, NULL: none */
    const struct bytes *header; /* .eh_frame_hdr */
    const struct bytes *debug;  /* .debug_frame */
    const struct bytes *behind; /* follows .eh_frame in its segment */
    const struct bytes *notes;
    uint64_t debug_flags;
    bool old_style; /* it is called .zdebug_frame */
    bool no_sections;
    bool note_section; /* notes are in a section only */
    bool no_got;
};

static inline void put_section(struct bytes *b, uint32_t name, uint32_t type, uint64_t flags,
                               uint64_t address, uint64_t offset, uint64_t size)
{
    put(b, name, 4);
    put(b, type, 4);
    put(b, flags, 8);
    put(b, address, 8);
    put(b, offset, 8);
    put(b, size, 8);
    put(b, 0, 8); /* link and info */
    put(b, 4, 8);
    put(b, 0, 8);
}

static inline void put_segment(struct bytes *b, uint32_t type, uint32_t flags, uint64_t offset,
                               uint64_t address, uint64_t size)
{
    put(b, type, 4);
    put(b, flags, 4);
    put(b, offset, 8);
    put(b, address, 8);
    put(b, address, 8);
    put(b, size, 8);
    put(b, size, 8);
    put(b, type == PT_NOTE ? 4 : 0x1000, 8);
}

static inline size_t put_part(struct bytes *b, const struct bytes *part)
{
    put_align(b, 8);
    size_t at = b->size;
    if (part != NULL)
        put_bytes(b, part->data, part->size);
    return at;
}

static inline size_t part_size(const struct bytes *part)
{
    return part == NULL ? 0 : part->size;
}

static inline void frame_build(const struct frame_file *f, struct bytes *b)
{
    static const char names[] = "\0.eh_frame\0.debug_frame\0.zdebug_frame\0.text\0.shstrtab\0.note";
    *b = (struct bytes){.size = FRAME_TEXT_OFFSET};
    for (unsigned i = 0; i < FRAME_TEXT_SIZE; i++)
        put(b, i, 1);
    size_t eh = put_part(b, f->eh);
    size_t eh_end = b->size;
    if (f->behind != NULL)
        put_bytes(b, f->behind->data, f->behind->size);
    size_t eh_segment_end = b->size;
    size_t header = put_part(b, f->header);
    size_t debug = put_part(b, f->debug);
    size_t notes = put_part(b, f->notes);
    size_t notes_end = b->size;
    put_align(b, 8);
    size_t dynamic = b->size;
    put(b, f->no_got ? DT_DEBUG : DT_PLTGOT, 8);
    put(b, FRAME_GOT, 8);
    put(b, DT_NULL, 8);
    put(b, 0, 8);
    size_t strings = b->size;
    put_bytes(b, names, sizeof(names));
    put_align(b, 8);
    size_t sections = b->size;
    put_section(b, 0, SHT_NULL, 0, 0, 0, 0);
    put_section(b, 38, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, FRAME_TEXT, FRAME_TEXT_OFFSET,
                FRAME_TEXT_SIZE);
    put_section(b, 1, f->eh == NULL ? SHT_NOBITS : SHT_PROGBITS, SHF_ALLOC, FRAME_EH, eh,
                eh_end - eh);
    put_section(b, f->old_style ? 24 : 11, f->debug == NULL ? SHT_NOBITS : SHT_PROGBITS,
                f->debug_flags, 0, debug, part_size(f->debug));
    put_section(b, 54, f->note_section ? SHT_NOTE : SHT_NOBITS, 0, 0, notes, part_size(f->notes));
    put_section(b, 44, SHT_STRTAB, 0, 0, strings, sizeof(names));
    size_t end = b->size;
    b->size = 0;
    put_bytes(b, ELFMAG, SELFMAG);
    put(b, ELFCLASS64, 1);
    put(b, ELFDATA2LSB, 1);
    put(b, EV_CURRENT, 1);
    b->size = EI_NIDENT;
    put(b, ET_DYN, 2);
    put(b, f->machine == 0 ? EM_X86_64 : f->machine, 2);
    put(b, EV_CURRENT, 4);
    put(b, 0, 8);
    put(b, sizeof(Elf64_Ehdr), 8);
    put(b, f->no_sections ? 0 : sections, 8);
    put(b, 0, 4);
    put(b, sizeof(Elf64_Ehdr), 2);
    put(b, sizeof(Elf64_Phdr), 2);
    put(b, 6, 2);
    put(b, sizeof(Elf64_Shdr), 2);
    put(b, f->no_sections ? 0 : 6, 2);
    put(b, f->no_sections ? 0 : 5, 2);
    put_segment(b, PT_LOAD, PF_R | PF_X, FRAME_TEXT_OFFSET, FRAME_TEXT, FRAME_TEXT_SIZE);
    put_segment(b, PT_LOAD, PF_R, eh, FRAME_EH, eh_segment_end - eh);
    put_segment(b, PT_LOAD, PF_R | PF_W, header, FRAME_HEADER, part_size(f->header));
    put_segment(b, f->header == NULL ? PT_NULL : PT_GNU_EH_FRAME, PF_R, header, FRAME_HEADER,
                part_size(f->header));
    put_segment(b, PT_DYNAMIC, PF_R, dynamic, 0x9000, 32);
    put_segment(b, f->note_section || f->notes == NULL ? PT_NULL : PT_NOTE, PF_R, notes,
                FRAME_NOTES, notes_end - notes);
    b->size = end;
}

#endif
