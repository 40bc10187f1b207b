/* SPDX-License-Identifier: MIT */
/*
 * Sections of an ELF file, as far as unwind tables need them: a name, an address, and compressed bytes.
 * Headers are read anew each time; that is twice in an image's life.
 */
#include "image_private.h"

#include "little_endian.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define NAMES_MAX ((size_t)1024 * 1024)
#define UNPACKED_MAX ((size_t)64 * 1024 * 1024)
/* Deflate makes at most 1032 bytes of one: a larger claim is a lie, and not worth the memory. */
#define DEFLATE_RATIO 1032

#define FIELD(field) offsetof(Elf64_Shdr, field)

static uint8_t *load_headers(const struct image *image)
{
    size_t size = (size_t)image->section_header_count * sizeof(Elf64_Shdr);
    return recordint_image_load(image, image->section_headers, size, size);
}

/* False: it has no bytes in the file, or not all of them. */
static bool section_of(const struct image *image, const uint8_t *h, struct image_section *s)
{
    uint32_t type = get_u32(h + FIELD(sh_type));
    *s = (struct image_section){.address = get_u64(h + FIELD(sh_addr)),
                                .offset = get_u64(h + FIELD(sh_offset)),
                                .size = get_u64(h + FIELD(sh_size))};
    s->compressed = (get_u64(h + FIELD(sh_flags)) & SHF_COMPRESSED) != 0;
    return type != SHT_NOBITS && type != SHT_NULL && s->size > 0 && s->offset <= image->size &&
           s->size <= image->size - s->offset;
}

bool recordint_image_section_named(const struct image *image, const char *name,
                                   struct image_section *out)
{
    struct image_section names;
    uint8_t *texts = NULL;
    bool found = false;
    uint8_t *headers = load_headers(image);
    if (headers == NULL || image->section_names >= image->section_header_count ||
        !section_of(image, headers + image->section_names * sizeof(Elf64_Shdr), &names))
        goto end;
    texts = recordint_image_load(image, names.offset, names.size, NAMES_MAX);
    if (texts == NULL)
        goto end;
    size_t length = strlen(name) + 1;
    for (size_t i = 0; !found && i < image->section_header_count; i++) {
        const uint8_t *h = headers + i * sizeof(Elf64_Shdr);
        uint32_t at = get_u32(h + FIELD(sh_name));
        found = at <= names.size && length <= names.size - at &&
                memcmp(texts + at, name, length) == 0 && section_of(image, h, out);
    }
end:
    free(texts);
    free(headers);
    return found;
}

bool recordint_image_section_at(const struct image *image, uint64_t address,
                                struct image_section *out)
{
    bool found = false;
    uint8_t *headers = load_headers(image);
    for (size_t i = 0; headers != NULL && !found && i < image->section_header_count; i++) {
        const uint8_t *h = headers + i * sizeof(Elf64_Shdr);
        found = (get_u64(h + FIELD(sh_flags)) & SHF_ALLOC) != 0 && section_of(image, h, out) &&
                address >= out->address && address - out->address < out->size;
    }
    free(headers);
    return found;
}

/* ---- compressed sections ---- */

/* Unpacks zlib's format; NULL unless it is as long as was claimed. */
static uint8_t *inflate_bytes(const uint8_t *packed, uint64_t packed_size, uint64_t size)
{
    if (size == 0 || size > UNPACKED_MAX || size / DEFLATE_RATIO > packed_size)
        return NULL;
    uint8_t *bytes = malloc((size_t)size);
    uLongf length = (uLongf)size;
    if (bytes != NULL &&
        (uncompress(bytes, &length, packed, (uLong)packed_size) != Z_OK || length != size)) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

static uint64_t get_big_u64(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | p[i];
    return value;
}

/* .zdebug_frame begins with "ZLIB" and a big-endian size, .debug_frame with an Elf64_Chdr. */
static bool unpack(const struct image *image, const struct image_section *s, bool old_style,
                   struct lazy_bytes *b)
{
    uint8_t *bytes = NULL;
    uint64_t size = 0;
    size_t header = old_style ? 12 : sizeof(Elf64_Chdr);
    uint8_t *packed = recordint_image_load(image, s->offset, s->size, UNPACKED_MAX);
    if (packed != NULL && s->size > header) {
        bool known = old_style
                         ? memcmp(packed, "ZLIB", 4) == 0
                         : get_u32(packed + offsetof(Elf64_Chdr, ch_type)) == ELFCOMPRESS_ZLIB;
        size =
            old_style ? get_big_u64(packed + 4) : get_u64(packed + offsetof(Elf64_Chdr, ch_size));
        if (known)
            bytes = inflate_bytes(packed + header, s->size - header, size);
    }
    free(packed);
    if (bytes != NULL)
        recordint_lazy_open_malloced(b, bytes, (size_t)size);
    return bytes != NULL;
}

bool recordint_image_debug_frame(const struct image *image, struct lazy_bytes *b, uint64_t *address)
{
    struct image_section s;
    if (recordint_image_section_named(image, ".debug_frame", &s)) {
        *address = s.address;
        return s.compressed ? unpack(image, &s, false, b)
                            : recordint_image_lazy(image, s.offset, s.size, b);
    }
    if (!recordint_image_section_named(image, ".zdebug_frame", &s))
        return false;
    *address = s.address;
    return unpack(image, &s, true, b);
}
