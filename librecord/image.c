/* SPDX-License-Identifier: MIT */
/*
 * ELF headers and segments. Opening reads the file header and the program headers; notes, sections and
 * tables are read when they are asked for.
 */
#include "image_private.h"

#include "little_endian.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linkers make up to ten; each frame of a cold mapping may search them. */
#define SEGMENTS_MAX 1024
/* Of notes looked at: build ids come early and small. */
#define NOTES_MAX 16
#define NOTES_SIZE_MAX ((size_t)64 * 1024)
#define DYNAMIC_MAX ((size_t)64 * 1024)

#define FIELD(type, field) offsetof(type, field)

bool recordint_image_get(const struct image *image, uint64_t offset, void *out, size_t size)
{
    if (offset > image->size || size > image->size - offset)
        return false;
    if (image->memory != NULL) {
        memcpy(out, image->memory + offset, size);
        return true;
    }
    int fd = file_source_fd(image->file);
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, (uint8_t *)out + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

uint8_t *recordint_image_load(const struct image *image, uint64_t offset, uint64_t size,
                              size_t limit)
{
    if (size == 0 || size > limit || offset > image->size || size > image->size - offset)
        return NULL;
    uint8_t *bytes = malloc((size_t)size);
    if (bytes != NULL && !recordint_image_get(image, offset, bytes, (size_t)size)) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

bool recordint_image_lazy(const struct image *image, uint64_t offset, uint64_t size,
                          struct lazy_bytes *b)
{
    if (size == 0 || offset > image->size || size > image->size - offset)
        return false;
    if (image->memory == NULL)
        return recordint_lazy_open_file(b, image->file, offset, (size_t)size);
    recordint_lazy_open_memory(b, image->memory + offset, (size_t)size);
    return true;
}

/* ---- opening ---- */

static bool machine_of(uint16_t e_machine, enum arch *arch)
{
    *arch = e_machine == EM_X86_64 ? ARCH_X86_64 : ARCH_AARCH64;
    return e_machine == EM_X86_64 || e_machine == EM_AARCH64;
}

static bool read_file_header(struct image *image)
{
    uint8_t h[sizeof(Elf64_Ehdr)];
    if (!recordint_image_get(image, 0, h, sizeof(h)) || memcmp(h, ELFMAG, SELFMAG) != 0 ||
        h[EI_CLASS] != ELFCLASS64 || h[EI_DATA] != ELFDATA2LSB)
        return false;
    uint16_t type = get_u16(h + FIELD(Elf64_Ehdr, e_type));
    if ((type != ET_EXEC && type != ET_DYN) ||
        !machine_of(get_u16(h + FIELD(Elf64_Ehdr, e_machine)), &image->arch))
        return false;
    image->entry = get_u64(h + FIELD(Elf64_Ehdr, e_entry));
    image->program_headers = get_u64(h + FIELD(Elf64_Ehdr, e_phoff));
    image->section_headers = get_u64(h + FIELD(Elf64_Ehdr, e_shoff));
    if (get_u16(h + FIELD(Elf64_Ehdr, e_phentsize)) == sizeof(Elf64_Phdr))
        image->program_header_count = get_u16(h + FIELD(Elf64_Ehdr, e_phnum));
    if (get_u16(h + FIELD(Elf64_Ehdr, e_shentsize)) == sizeof(Elf64_Shdr))
        image->section_header_count = get_u16(h + FIELD(Elf64_Ehdr, e_shnum));
    image->section_names = get_u16(h + FIELD(Elf64_Ehdr, e_shstrndx));
    return true;
}

/* All of them, malloc'ed; NULL: there are none, or errno is ENOMEM. */
static uint8_t *load_program_headers(const struct image *image)
{
    size_t size = (size_t)image->program_header_count * sizeof(Elf64_Phdr);
    return recordint_image_load(image, image->program_headers, size, size);
}

static struct image_segment segment_of(const struct image *image, const uint8_t *h)
{
    struct image_segment s = {.address = get_u64(h + FIELD(Elf64_Phdr, p_vaddr)),
                              .offset = get_u64(h + FIELD(Elf64_Phdr, p_offset)),
                              .size = get_u64(h + FIELD(Elf64_Phdr, p_filesz))};
    uint32_t flags = get_u32(h + FIELD(Elf64_Phdr, p_flags));
    s.executable = (flags & PF_X) != 0;
    s.writable = (flags & PF_W) != 0;
    uint64_t rest = s.offset < image->size ? image->size - s.offset : 0;
    if (s.size > rest)
        s.size = rest;
    if (s.size > UINT64_MAX - s.address)
        s.size = UINT64_MAX - s.address;
    return s;
}

static uint32_t type_of(const uint8_t *program_header)
{
    return get_u32(program_header + FIELD(Elf64_Phdr, p_type));
}

static int read_segments(struct image *image)
{
    size_t loads = 0;
    errno = 0;
    uint8_t *headers = load_program_headers(image);
    if (headers == NULL)
        return errno == ENOMEM ? -1 : 0;
    uint8_t *end = headers + (size_t)image->program_header_count * sizeof(Elf64_Phdr);
    for (const uint8_t *h = headers; h < end; h += sizeof(Elf64_Phdr))
        loads += type_of(h) == PT_LOAD && loads < SEGMENTS_MAX;
    image->segments = calloc(loads + 1, sizeof(*image->segments));
    if (image->segments == NULL) {
        free(headers);
        return -1;
    }
    for (const uint8_t *h = headers; h < end; h += sizeof(Elf64_Phdr)) {
        if (type_of(h) == PT_LOAD && image->segment_count < loads)
            image->segments[image->segment_count++] = segment_of(image, h);
        else if (type_of(h) == PT_GNU_EH_FRAME && image->eh_frame_hdr.size == 0)
            image->eh_frame_hdr = segment_of(image, h);
    }
    free(headers);
    return 0;
}

/* Takes the image over. */
static int open_image(struct image *image, struct image **out)
{
    int error = !read_file_header(image) ? ENOEXEC : read_segments(image) != 0 ? ENOMEM : 0;
    if (error != 0) {
        recordint_image_free(image);
        errno = error;
        return -1;
    }
    *out = image;
    return 0;
}

int recordint_image_open_fd(int fd, struct image **out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = ENOEXEC;
        return -1;
    }
    struct image *image = calloc(1, sizeof(*image));
    if (image == NULL)
        return -1;
    image->size = (uint64_t)st.st_size;
    image->file = calloc(1, sizeof(*image->file));
    int own = image->file != NULL ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0) {
        int error = errno;
        free(image->file);
        free(image);
        errno = error;
        return -1;
    }
    image->file->fd = own;
    return open_image(image, out);
}

int recordint_image_open_memory(const void *data, size_t size, struct image **out)
{
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL)
        return -1;
    if (size > 0)
        memcpy(bytes, data, size);
    return recordint_image_open_malloced(bytes, size, out);
}

int recordint_image_open_malloced(uint8_t *bytes, size_t size, struct image **out)
{
    struct image *image = calloc(1, sizeof(*image));
    if (image == NULL) {
        free(bytes);
        errno = ENOMEM;
        return -1;
    }
    image->size = size;
    image->memory = bytes;
    return open_image(image, out);
}

uint64_t recordint_image_copied(const struct image *image)
{
    return image->memory != NULL ? image->size : 0;
}

void recordint_image_free(struct image *image)
{
    if (image == NULL)
        return;
    recordint_cfi_tables_free(image->cfi);
    recordint_image_close_file(image);
    free(image->file);
    free(image->memory);
    free(image->segments);
    free(image);
}

int recordint_image_fd(const struct image *image)
{
    return image->file != NULL ? image->file->fd : -1;
}

void recordint_image_close_file(struct image *image)
{
    if (recordint_image_fd(image) < 0)
        return;
    close(image->file->fd);
    image->file->fd = -1;
}

void recordint_image_set_reopen(struct image *image, int (*reopen)(void *user), void *user)
{
    if (image->file == NULL)
        return;
    image->file->reopen = reopen;
    image->file->user = user;
}

uint64_t recordint_image_entry(const struct image *image)
{
    return image->entry;
}

enum arch recordint_image_arch(const struct image *image)
{
    return image->arch;
}

/* ---- addresses ---- */

/* The kernel maps whole pages; AArch64 has them of up to 64 KiB. */
static uint64_t page_size(const struct image *image)
{
    return image->arch == ARCH_AARCH64 ? 0x10000 : 0x1000;
}

/* Whether the segment has the offset, with slack bytes more in front and up to the next multiple behind. */
static bool segment_address(const struct image_segment *s, uint64_t page, uint64_t offset,
                            uint64_t *address)
{
    uint64_t start = s->offset & ~(page - 1);
    uint64_t end = s->offset + s->size;
    end = end > UINT64_MAX - page ? UINT64_MAX : (end + page - 1) & ~(page - 1);
    *address = s->address + (offset - s->offset);
    return s->executable && s->size > 0 && offset >= start && offset < end &&
           (offset >= s->offset ? *address >= s->address : *address < s->address);
}

bool recordint_image_address(const struct image *image, uint64_t file_offset, uint64_t *address)
{
    /* Neighbours share the page between them: first who has the byte itself. */
    for (uint64_t page = 1; page != 0; page = page == 1 ? page_size(image) : 0)
        for (size_t i = 0; i < image->segment_count; i++)
            if (segment_address(&image->segments[i], page, file_offset, address))
                return true;
    return false;
}

const struct image_segment *recordint_image_segment_at(const struct image *image, uint64_t address)
{
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct image_segment *s = &image->segments[i];
        if (address >= s->address && address - s->address < s->size)
            return s;
    }
    return NULL;
}

size_t recordint_image_read(const struct image *image, uint64_t address, void *out, size_t size)
{
    const struct image_segment *s = recordint_image_segment_at(image, address);
    if (s == NULL || s->writable)
        return 0;
    uint64_t skipped = address - s->address;
    if (size > s->size - skipped)
        size = (size_t)(s->size - skipped);
    return recordint_image_get(image, s->offset + skipped, out, size) ? size : 0;
}

bool recordint_image_data_base(const struct image *image, uint64_t *address)
{
    bool found = false;
    uint8_t *headers = load_program_headers(image);
    for (size_t i = 0; headers != NULL && i < image->program_header_count; i++) {
        const uint8_t *h = headers + i * sizeof(Elf64_Phdr);
        if (type_of(h) != PT_DYNAMIC)
            continue;
        struct image_segment s = segment_of(image, h);
        uint8_t *entries = recordint_image_load(image, s.offset, s.size, DYNAMIC_MAX);
        for (size_t at = 0; entries != NULL && !found && at + sizeof(Elf64_Dyn) <= s.size;
             at += sizeof(Elf64_Dyn))
            if (get_u64(entries + at) == DT_PLTGOT) {
                *address = get_u64(entries + at + 8);
                found = true;
            }
        free(entries);
        break;
    }
    free(headers);
    return found;
}

/* ---- build id ---- */

/* Of a list of notes, whose parts begin at multiples of align (4, or 8 with .note.gnu.property). */
static size_t build_id_of_notes(const uint8_t *notes, size_t size, size_t align,
                                uint8_t id[IMAGE_BUILD_ID_MAX])
{
    size_t at = 0;
    while (size - at >= sizeof(Elf64_Nhdr)) {
        uint32_t name_size = get_u32(notes + at);
        uint32_t desc_size = get_u32(notes + at + 4);
        uint32_t type = get_u32(notes + at + 8);
        at += sizeof(Elf64_Nhdr);
        uint64_t desc = (at + (uint64_t)name_size + align - 1) & ~(uint64_t)(align - 1);
        if (desc > size || desc_size > size - desc)
            return 0;
        if (type == NT_GNU_BUILD_ID && name_size == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
            desc_size > 0 && desc_size <= IMAGE_BUILD_ID_MAX) {
            memcpy(id, notes + desc, desc_size);
            return desc_size;
        }
        uint64_t next = (desc + desc_size + align - 1) & ~(uint64_t)(align - 1);
        if (next > size)
            return 0;
        at = (size_t)next;
    }
    return 0;
}

/* Where headers of notes lie in program and section headers. */
struct note_fields {
    size_t header_size;
    size_t type;
    size_t offset;
    size_t size;
    size_t align;
    uint32_t wanted;
};

static size_t build_id_of_headers(const struct image *image, const uint8_t *headers, size_t count,
                                  const struct note_fields *f, uint8_t id[IMAGE_BUILD_ID_MAX])
{
    size_t found = 0;
    unsigned lists = 0;
    for (size_t i = 0; found == 0 && i < count && lists < NOTES_MAX; i++) {
        const uint8_t *h = headers + i * f->header_size;
        if (get_u32(h + f->type) != f->wanted)
            continue;
        lists++;
        uint64_t size = get_u64(h + f->size);
        uint8_t *notes = recordint_image_load(image, get_u64(h + f->offset), size, NOTES_SIZE_MAX);
        if (notes != NULL)
            found = build_id_of_notes(notes, (size_t)size, get_u64(h + f->align) == 8 ? 8 : 4, id);
        free(notes);
    }
    return found;
}

size_t recordint_image_build_id(const struct image *image, uint8_t id[IMAGE_BUILD_ID_MAX])
{
    static const struct note_fields in_segment = {
        sizeof(Elf64_Phdr),          FIELD(Elf64_Phdr, p_type),  FIELD(Elf64_Phdr, p_offset),
        FIELD(Elf64_Phdr, p_filesz), FIELD(Elf64_Phdr, p_align), PT_NOTE};
    static const struct note_fields in_section = {
        sizeof(Elf64_Shdr),         FIELD(Elf64_Shdr, sh_type),      FIELD(Elf64_Shdr, sh_offset),
        FIELD(Elf64_Shdr, sh_size), FIELD(Elf64_Shdr, sh_addralign), SHT_NOTE};
    size_t found = 0;
    uint8_t *headers = load_program_headers(image);
    if (headers != NULL)
        found = build_id_of_headers(image, headers, image->program_header_count, &in_segment, id);
    free(headers);
    if (found > 0)
        return found;
    size_t size = (size_t)image->section_header_count * sizeof(Elf64_Shdr);
    headers = recordint_image_load(image, image->section_headers, size, size);
    if (headers != NULL)
        found = build_id_of_headers(image, headers, image->section_header_count, &in_section, id);
    free(headers);
    return found;
}
