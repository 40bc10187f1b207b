/* SPDX-License-Identifier: MIT */
/* Builds small ELF files with an .eh_frame in memory, entry by entry. */
#ifndef EH_IMAGE_H
#define EH_IMAGE_H

#include "elf_image.h"
#include "elf_private.h"
#include "fde.h"

#include <stdio.h>

/* Near enough for 16-bit numbers; the address of .eh_frame is the test's to choose. */
#define EH_TEXT ((uint64_t)0x5000)
#define EH_TEXT_OFFSET ((size_t)0x400) /* in the file */
#define EH_TEXT_SIZE ((uint64_t)0x1000)
#define EH_BELOW ((uint64_t)0x3000) /* a place for .eh_frame below the code */
#define EH_ABOVE ((uint64_t)0x7000) /* and above it: distances are negative */
#define EH_GOT ((uint64_t)0x4800)

struct eh_file {
    bool narrow;
    bool big;
    uint64_t vaddr;          /* of .eh_frame */
    uint64_t text;           /* address of the code + 1, 0: EH_TEXT */
    bool no_sections;        /* found by .eh_frame_hdr */
    uint8_t header_encoding; /* of the address in .eh_frame_hdr; 0: absptr */
    uint8_t header_version;  /* 0: 1 */
    bool no_got;             /* no DT_PLTGOT */
    bool no_segments;        /* ET_REL */
    uint32_t type;           /* of .eh_frame, 0: SHT_PROGBITS */
    size_t split;            /* the bytes from here on are a second .eh_frame, 0: there is one */
    const uint8_t *behind;   /* without sections: what follows .eh_frame in its segment */
    size_t behind_size;
};

/* Bytes of .eh_frame, in the file's class and byte order. */
static inline struct image_buffer eh_begin(const struct eh_file *f, size_t room)
{
    struct image_buffer b = {.data = calloc(1, room), .big = f->big, .narrow = f->narrow};
    if (b.data == NULL)
        abort();
    return b;
}

static inline void eh_text(struct image_buffer *b, const char *text)
{
    size_t size = strlen(text) + 1;
    memcpy(b->data + b->size, text, size);
    b->size += size;
}

static inline void eh_leb(struct image_buffer *b, uint64_t value, bool is_signed)
{
    for (;;) {
        uint8_t byte = value & 0x7f;
        bool negative = is_signed && (value >> 63) != 0;
        value >>= 7;
        if (negative)
            value |= (uint64_t)0x7f << 57;
        bool last = is_signed ? (value == 0 && (byte & 0x40) == 0) ||
                                    (value == UINT64_MAX && (byte & 0x40) != 0)
                              : value == 0;
        b->data[b->size++] = (uint8_t)(byte | (last ? 0 : 0x80));
        if (last)
            return;
    }
}

/* Formats of a number by its low four bits. */
static inline void eh_number(struct image_buffer *b, uint8_t format, uint64_t value)
{
    static const unsigned bytes[] = {0, 0, 2, 4, 8, 0, 0, 0};
    format &= 0x0f;
    if (format == 1 || format == 9)
        eh_leb(b, value, format == 9);
    else if ((format & 7) == 0)
        image_word(b, value);
    else
        image_put(b, value, bytes[format & 7]);
}

/* How the entries of a file are written where tests differ. */
struct eh_style {
    uint8_t encoding;
    bool long_length;
    unsigned id_bytes; /* 0: 4 */
};

static inline size_t eh_entry_begin(struct image_buffer *b, const struct eh_style *s)
{
    size_t at = b->size;
    if (s->long_length)
        image_put(b, UINT32_MAX, 4);
    image_put(b, 0, s->long_length ? 8 : 4);
    return at;
}

/* Fills up to a multiple of 4 and sets the length. */
static inline void eh_entry_end(struct image_buffer *b, const struct eh_style *s, size_t at)
{
    size_t body = at + (s->long_length ? 12 : 4);
    while ((b->size - body) % 4 != 0)
        b->data[b->size++] = 0;
    size_t end = b->size;
    b->size = body - (s->long_length ? 8 : 4);
    image_put(b, end - body, s->long_length ? 8 : 4);
    b->size = end;
}

static inline unsigned eh_id_bytes(const struct eh_style *s)
{
    return s->id_bytes == 0 ? 4 : s->id_bytes;
}

/* "zR" */
static inline size_t eh_cie(struct image_buffer *b, const struct eh_style *s)
{
    size_t at = eh_entry_begin(b, s);
    image_put(b, 0, eh_id_bytes(s));
    image_put(b, 1, 1);
    eh_text(b, "zR");
    eh_leb(b, 1, false);
    eh_leb(b, (uint64_t)-8, true);
    image_put(b, 16, 1);
    eh_leb(b, 1, false);
    image_put(b, s->encoding, 1);
    eh_entry_end(b, s, at);
    return at;
}

/* The start as it is, with the bases that readers know. */
static inline size_t eh_fde(struct image_buffer *b, const struct eh_file *f,
                            const struct eh_style *s, size_t cie, uint64_t start, uint64_t size)
{
    size_t at = eh_entry_begin(b, s);
    image_put(b, b->size - cie, eh_id_bytes(s));
    if (s->encoding == 0x50)
        while ((f->vaddr + b->size) % (f->narrow ? 4 : 8) != 0)
            b->data[b->size++] = 0xee;
    uint64_t base = (s->encoding & 0x70) == 0x10   ? f->vaddr + b->size
                    : (s->encoding & 0x70) == 0x30 ? EH_GOT
                                                   : 0;
    eh_number(b, s->encoding, start - base);
    eh_number(b, s->encoding, size);
    eh_leb(b, 0, false);
    eh_entry_end(b, s, at);
    return at;
}

static inline void eh_named_section(struct image_buffer *b, uint32_t name, uint32_t type,
                                    uint64_t flags, uint64_t addr, size_t offset, size_t size)
{
    size_t at = b->size;
    image_section(b, type, flags, addr, offset, size, 0, 0);
    size_t end = b->size;
    b->size = at;
    image_put(b, name, 4);
    b->size = end;
}

/* The file around these bytes, malloc'ed. */
static inline uint8_t *eh_build(const struct eh_file *f, const struct image_buffer *frames,
                                size_t *size)
{
    static const char names[] = "\0.text\0.eh_frame\0.shstrtab";
    struct image_buffer b = {.big = f->big, .narrow = f->narrow};
    const size_t text = EH_TEXT_OFFSET;
    const size_t eh = text + (size_t)EH_TEXT_SIZE;
    b.data = calloc(1, eh + frames->size + f->behind_size + 0x1000);
    if (b.data == NULL)
        abort();
    memcpy(b.data + eh, frames->data, frames->size);
    b.size = eh + frames->size;
    if (f->behind_size > 0) {
        memcpy(b.data + b.size, f->behind, f->behind_size);
        b.size += f->behind_size;
    }
    size_t segment_end = b.size;
    /* A segment of its own for .eh_frame_hdr, below the code. */
    b.size = (b.size + 7) / 8 * 8;
    size_t header = b.size;
    uint64_t header_vaddr = 0x2000;
    uint64_t base = (f->header_encoding & 0x70) == 0x10   ? header_vaddr + 4
                    : (f->header_encoding & 0x70) == 0x30 ? header_vaddr
                                                          : 0;
    image_put(&b, f->header_version == 0 ? 1 : f->header_version, 1);
    image_put(&b, f->header_encoding, 1);
    image_put(&b, 0xff, 1);
    image_put(&b, 0xff, 1);
    eh_number(&b, f->header_encoding, f->vaddr - base);
    size_t header_end = b.size;
    b.size = (b.size + 7) / 8 * 8;
    size_t dynamic = b.size;
    image_word(&b, f->no_got ? DT_DEBUG : DT_PLTGOT);
    image_word(&b, EH_GOT);
    image_word(&b, DT_NULL);
    image_word(&b, 0);
    size_t dynamic_end = b.size;
    size_t strings = b.size;
    memcpy(b.data + b.size, names, sizeof(names));
    b.size = (b.size + sizeof(names) + 7) / 8 * 8;
    size_t sections = b.size;
    size_t first = f->split == 0 ? frames->size : f->split;
    uint32_t type = f->type == 0 ? SHT_PROGBITS : f->type;
    uint64_t text_vaddr = f->text == 0 ? EH_TEXT : f->text - 1;
    image_section(&b, SHT_NULL, 0, 0, 0, 0, 0, 0);
    eh_named_section(&b, 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text_vaddr, text,
                     (size_t)EH_TEXT_SIZE);
    eh_named_section(&b, 7, type, SHF_ALLOC, f->vaddr, eh, first);
    eh_named_section(&b, 7, type, SHF_ALLOC, f->vaddr + first, eh + first, frames->size - first);
    eh_named_section(&b, 17, SHT_STRTAB, 0, 0, strings, sizeof(names));
    *size = b.size;

    size_t ehdr = b.narrow ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);
    b.size = 0;
    memcpy(b.data, ELFMAG, SELFMAG);
    b.data[EI_CLASS] = b.narrow ? ELFCLASS32 : ELFCLASS64;
    b.data[EI_DATA] = b.big ? ELFDATA2MSB : ELFDATA2LSB;
    b.data[EI_VERSION] = EV_CURRENT;
    b.size = EI_NIDENT;
    image_put(&b, f->no_segments ? ET_REL : ET_DYN, 2);
    image_put(&b, EM_X86_64, 2);
    image_put(&b, EV_CURRENT, 4);
    image_word(&b, 0);
    image_word(&b, f->no_segments ? 0 : ehdr);
    image_word(&b, f->no_sections ? 0 : sections);
    image_put(&b, 0, 4);
    image_put(&b, ehdr, 2);
    image_put(&b, b.narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr), 2);
    image_put(&b, f->no_segments ? 0 : 5, 2);
    image_put(&b, b.narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr), 2);
    image_put(&b, f->no_sections ? 0 : 5, 2);
    image_put(&b, f->no_sections ? 0 : 4, 2);
    image_segment(&b, PT_LOAD, PF_R | PF_X, text, text_vaddr, EH_TEXT_SIZE);
    image_segment(&b, PT_LOAD, PF_R, eh, f->vaddr, segment_end - eh);
    image_segment(&b, PT_LOAD, PF_R, header, header_vaddr, header_end - header);
    image_segment(&b, PT_GNU_EH_FRAME, PF_R, header, header_vaddr, header_end - header);
    image_segment(&b, PT_DYNAMIC, PF_R, dynamic, 0x9000, dynamic_end - dynamic);
    return b.data;
}

#endif
