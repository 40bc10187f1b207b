/* SPDX-License-Identifier: MIT */
/* ELF files in memory with one section of any name and contents, and xz data to put into it. */
#ifndef SECTION_IMAGE_H
#define SECTION_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef SPOOL_HAVE_LZMA
#include <lzma.h>
#endif

struct section_image {
    const char *name;
    const void *data;
    size_t size;
    uint32_t type; /* 0: SHT_PROGBITS */
    uint64_t flags;
    uint64_t claimed_size; /* 0: size */
    bool narrow;           /* ELFCLASS32 */
    bool big;              /* big endian */
};

static inline uint8_t *section_image_put(const struct section_image *image, uint8_t *to,
                                         uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> ((image->big ? bytes - 1 - i : i) * 8));
    return to + bytes;
}

static inline uint8_t *section_image_header(const struct section_image *image, uint8_t *to,
                                            uint32_t name, uint32_t type, uint64_t flags,
                                            uint64_t offset, uint64_t size)
{
    unsigned word = image->narrow ? 4 : 8;
    const uint64_t fields[][2] = {{name, 4},    {type, 4}, {flags, word}, {0, word}, {offset, word},
                                  {size, word}, {0, 4},    {0, 4},        {1, word}, {0, word}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        to = section_image_put(image, to, fields[i][0], (unsigned)fields[i][1]);
    return to;
}

/* malloc'ed, of exactly *size bytes. */
static inline uint8_t *section_image_build(const struct section_image *image, size_t *size)
{
    unsigned word = image->narrow ? 4 : 8;
    size_t header = image->narrow ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);
    size_t entry = image->narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
    size_t program = image->narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
    char names[64] = "\0.shstrtab";
    size_t name = strlen(names + 1) + 2;
    size_t names_size = name + strlen(image->name) + 1;
    if (names_size > sizeof(names))
        abort();
    strcpy(names + name, image->name);
    size_t data_at = header;
    size_t names_at = data_at + image->size;
    size_t sections_at = (names_at + names_size + 7) / 8 * 8;
    *size = sections_at + 3 * entry;
    uint8_t *data = calloc(1, *size);
    if (data == NULL)
        abort();
    memcpy(data, ELFMAG, SELFMAG);
    data[EI_CLASS] = image->narrow ? ELFCLASS32 : ELFCLASS64;
    data[EI_DATA] = image->big ? ELFDATA2MSB : ELFDATA2LSB;
    data[EI_VERSION] = EV_CURRENT;
    const uint64_t fields[][2] = {{ET_DYN, 2}, {EM_X86_64, 2}, {EV_CURRENT, 4},
                                  {0, word},   {0, word},      {sections_at, word},
                                  {0, 4},      {header, 2},    {program, 2},
                                  {0, 2},      {entry, 2},     {3, 2},
                                  {1, 2}};
    uint8_t *to = data + EI_NIDENT;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        to = section_image_put(image, to, fields[i][0], (unsigned)fields[i][1]);
    if (image->size > 0)
        memcpy(data + data_at, image->data, image->size);
    memcpy(data + names_at, names, names_size);
    to = section_image_header(image, data + sections_at, 0, SHT_NULL, 0, 0, 0);
    to = section_image_header(image, to, 1, SHT_STRTAB, 0, names_at, names_size);
    section_image_header(image, to, (uint32_t)name, image->type != 0 ? image->type : SHT_PROGBITS,
                         image->flags, data_at,
                         image->claimed_size != 0 ? image->claimed_size : image->size);
    return data;
}

#ifdef SPOOL_HAVE_LZMA
/* The bytes as an xz stream; malloc'ed. */
static inline uint8_t *section_image_pack(const void *data, size_t size, size_t *packed_size)
{
    size_t room = lzma_stream_buffer_bound(size);
    uint8_t *packed = malloc(room);
    *packed_size = 0;
    if (packed == NULL || lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, data, size, packed,
                                                  packed_size, room) != LZMA_OK)
        abort();
    return packed;
}
#endif

#endif
