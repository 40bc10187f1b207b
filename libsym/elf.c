/* SPDX-License-Identifier: MIT */
/*
 * ELF files by our own bounded reader: 32 and 64 bits, both byte orders. Every number in a file is
 * a claim; nothing is read, or allocated, beyond the file's size. Here: headers, the build id, and
 * from file offsets to addresses.
 */
#include "elf_private.h"
#include "strtab.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PROGRAM_HEADERS 65536
#define MAX_SEGMENTS 128 /* real files have about five; each costs every lookup a little */
#define LARGE_TABLE ((uint64_t)64 * 1024 * 1024)
#define MAX_PACKING 16                             /* how much a file system may compress */
#define MAX_NOTE_BYTES ((uint64_t)4 * 1024 * 1024) /* all of a file's notes together */

/* ---- bytes ---- */

static const char unreadable[] = "it cannot be read";

enum read_result symint_elf_read(const struct symint_input *in, uint64_t offset, uint64_t size,
                                 void *buffer)
{
    if (offset > in->size || size > in->size - offset)
        return READ_SHORT;
    if (in->fd < 0) {
        if (size > 0)
            memcpy(buffer, in->memory + offset, (size_t)size);
        return READ_OK;
    }
    uint8_t *to = buffer;
    while (size > 0) {
        ssize_t n = pread(in->fd, to, (size_t)size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return READ_FAILED;
        if (n == 0)
            return READ_SHORT; /* it shrank meanwhile */
        to += n;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return READ_OK;
}

bool symint_elf_is_hole(const struct symint_input *in, uint64_t size)
{
    return size > LARGE_TABLE && in->stored_bytes > 0 && size / MAX_PACKING > in->stored_bytes;
}

int symint_elf_load(const struct symint_input *in, uint64_t offset, uint64_t size, uint8_t **out,
                    enum sym_miss *miss)
{
    *out = NULL;
    *miss = SYM_MISS_DAMAGED;
    if (offset > in->size || size > in->size - offset || size >= SIZE_MAX)
        return 0;
    if (symint_elf_is_hole(in, size))
        return 0;
    uint8_t *data = symint_scratch_alloc((size_t)size + 1, 1);
    if (data == NULL)
        return SYM_ERR_NOMEM;
    enum read_result result = symint_elf_read(in, offset, size, data);
    if (result != READ_OK) {
        free(data);
        *miss = result == READ_FAILED ? SYM_MISS_UNREADABLE : SYM_MISS_DAMAGED;
        return 0;
    }
    data[size] = 0;
    *out = data;
    *miss = SYM_MISS_NONE;
    return 0;
}

/* ---- opening ---- */

/* A note is the sizes of its name and its descriptor, its type, and these two, each filled up. */
const uint8_t *symint_note_build_id(const uint8_t *notes, uint64_t size, uint64_t align, bool swap,
                                    size_t *id_size)
{
    const struct symint_elf order = {.swap = swap};
    uint64_t at = 0;
    align = align == 8 ? 8 : 4;
    while (size - at >= 12) {
        const uint8_t *note = notes + at;
        uint64_t name_size = get32(&order, note);
        uint64_t desc_size = get32(&order, note + 4);
        uint32_t type = get32(&order, note + 8);
        uint64_t desc = at + 12 + (name_size + align - 1) / align * align;
        if (desc > size || desc_size > size - desc)
            return NULL;
        if (type == NT_GNU_BUILD_ID && name_size == 4 && memcmp(note + 12, "GNU", 4) == 0 &&
            desc_size > 0 && desc_size <= SYMINT_MAX_BUILD_ID) {
            *id_size = (size_t)desc_size;
            return notes + desc;
        }
        uint64_t next = desc + (desc_size + align - 1) / align * align;
        if (next > size)
            return NULL;
        at = next;
    }
    return NULL;
}

static int read_notes(struct symint_elf *e, uint64_t offset, uint64_t size, uint64_t align,
                      uint64_t *budget)
{
    if (e->build_id_size > 0 || size < 12 || size > *budget)
        return 0;
    *budget -= size;
    uint8_t *notes;
    enum sym_miss miss;
    int rc = symint_elf_load(&e->input, offset, size, &notes, &miss);
    if (rc != 0)
        return rc;
    const uint8_t *id =
        notes != NULL ? symint_note_build_id(notes, size, align, e->swap, &e->build_id_size) : NULL;
    if (id != NULL)
        memcpy(e->build_id, id, e->build_id_size);
    free(notes);
    return 0;
}

/* Program headers: segments, dynamic section, build id. */
static int read_segments(struct symint_elf *e, uint64_t offset, uint64_t count, enum sym_miss *miss,
                         const char **why)
{
    uint64_t entry_size = e->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    uint64_t budget = MAX_NOTE_BYTES;
    uint8_t *headers;
    *why = "its program headers are not inside the file";
    if (count > MAX_PROGRAM_HEADERS) {
        *miss = SYM_MISS_DAMAGED;
        *why = "it has too many program headers";
        return 0;
    }
    int rc = symint_elf_load(&e->input, offset, count * entry_size, &headers, miss);
    if (headers == NULL)
        return rc;
    uint32_t loads = 0;
    for (uint64_t i = 0; i < count; i++)
        loads += get32(e, headers + i * entry_size) == PT_LOAD;
    if (loads > MAX_SEGMENTS) {
        free(headers);
        *miss = SYM_MISS_DAMAGED;
        *why = "it has too many segments";
        return 0;
    }
    e->segments = calloc(loads == 0 ? 1 : loads, sizeof(*e->segments));
    if (e->segments == NULL)
        rc = SYM_ERR_NOMEM;
    for (uint64_t i = 0; i < count && rc == 0; i++) {
        const uint8_t *p = headers + i * entry_size;
        uint32_t type = get32(e, p);
        struct segment s = {
            .offset = get_word(e, p, 4, 8),
            .size = get_word(e, p, 16, 32),
            .memory_size = get_word(e, p, 20, 40),
            .vaddr = get_word(e, p, 8, 16),
            .align = get_word(e, p, 28, 48),
            .executable = (get32(e, p + (e->wide ? 4 : 24)) & PF_X) != 0,
        };
        if (type == PT_LOAD) {
            e->segments[e->segment_count++] = s;
        } else if (type == PT_DYNAMIC && e->dynamic_size == 0) {
            e->dynamic_offset = s.offset;
            e->dynamic_size = s.size;
        } else if (type == PT_GNU_EH_FRAME && e->unwind_header_size == 0) {
            e->unwind_header_offset = s.offset;
            e->unwind_header_size = s.size;
        } else if (type == PT_NOTE) {
            rc = read_notes(e, s.offset, s.size, s.align, &budget);
        }
    }
    free(headers);
    return rc;
}

static struct section parse_section(const struct symint_elf *e, const uint8_t *p)
{
    uint64_t flags = get_word(e, p, 8, 8);
    return (struct section){
        .name = "",
        .type = get32(e, p + 4),
        .link = get32(e, p + (e->wide ? 40 : 24)),
        .info = get32(e, p + (e->wide ? 44 : 28)),
        .executable = (flags & SHF_EXECINSTR) != 0,
        .compressed = (flags & SHF_COMPRESSED) != 0,
        .allocated = (flags & SHF_ALLOC) != 0,
        .grouped = (flags & SHF_GROUP) != 0,
        .addr = get_word(e, p, 12, 16),
        .offset = get_word(e, p, 16, 24),
        .size = get_word(e, p, 20, 32),
        .entry_size = get_word(e, p, 36, 56),
    };
}

static uint64_t section_header_size(const struct symint_elf *e)
{
    return e->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

/* Without names the sections are as good for most purposes, so damage is no failure here. A file that cannot be read is:
 * *miss says so. */
static int name_sections(struct symint_elf *e, const uint8_t *headers, enum sym_miss *miss)
{
    uint8_t *names;
    enum sym_miss names_miss;
    if (e->section_names_index >= e->section_count)
        return 0;
    const struct section *s = &e->sections[e->section_names_index];
    if (s->type != SHT_STRTAB)
        return 0;
    int rc = symint_elf_load(&e->input, s->offset, s->size, &names, &names_miss);
    if (names_miss == SYM_MISS_UNREADABLE)
        *miss = names_miss;
    if (names == NULL)
        return rc;
    e->section_names = (char *)names;
    for (uint64_t i = 0; i < e->section_count; i++) {
        uint32_t at = get32(e, headers + i * section_header_size(e));
        if (at < s->size)
            e->sections[i].name = e->section_names + at;
    }
    return 0;
}

/* ---- relocatable files ---- */

/* Sections of such a file have no addresses. A byte's file offset takes its place: it is unique, and what a mapping of
 * the file shows. Of a debug file only the program's layout tells it, so its code has none yet. */
static void place_section(const struct symint_elf *e, struct section *s)
{
    bool there = s->allocated && s->type != SHT_NOBITS && s->offset <= e->input.size &&
                 s->size <= e->input.size - s->offset;
    s->addr = there ? s->offset : 0;
    s->executable &= there && s->type == SHT_PROGBITS;
}

bool symint_elf_lay_out(struct symint_elf *debug, const struct symint_elf *program)
{
    if (!debug->relocatable && !program->relocatable)
        return true;
    bool same = debug->relocatable && program->relocatable;
    uint64_t k = 1; /* sections of code and data are the same ones in the same order */
    for (uint64_t i = 1; debug->sections != NULL && i < debug->section_count; i++) {
        struct section *s = &debug->sections[i];
        s->addr = 0;
        s->executable = false;
        if (!s->allocated || !same)
            continue;
        while (k < program->section_count && program->sections != NULL &&
               !program->sections[k].allocated)
            k++;
        same = program->sections != NULL && k < program->section_count &&
               program->sections[k].size == s->size &&
               strcmp(program->sections[k].name, s->name) == 0;
        if (!same)
            continue;
        s->addr = program->sections[k].addr;
        s->executable = program->sections[k].executable;
        k++;
    }
    for (uint64_t i = 1; !same && debug->sections != NULL && i < debug->section_count; i++) {
        debug->sections[i].addr = debug->relocatable ? 0 : debug->sections[i].addr;
        debug->sections[i].executable = false;
    }
    debug->segment_count = 0; /* they tell of the debug file's own offsets */
    return same;
}

/* Segments out of the sections of code. */
static int make_segments(struct symint_elf *e)
{
    uint64_t count = 0;
    uint64_t first = UINT64_MAX;
    uint64_t end = 0;
    free(e->segments);
    e->segment_count = 0;
    e->segments = calloc(MAX_SEGMENTS, sizeof(*e->segments));
    if (e->segments == NULL)
        return SYM_ERR_NOMEM;
    for (uint64_t i = 1; e->sections != NULL && i < e->section_count; i++) {
        const struct section *s = &e->sections[i];
        if (!s->executable || s->size == 0)
            continue;
        if (count++ < MAX_SEGMENTS)
            e->segments[e->segment_count++] = (struct segment){.offset = s->offset,
                                                               .size = s->size,
                                                               .memory_size = s->size,
                                                               .vaddr = s->offset,
                                                               .align = 1,
                                                               .executable = true};
        first = s->offset < first ? s->offset : first;
        end = s->offset + s->size > end ? s->offset + s->size : end;
    }
    if (count <= MAX_SEGMENTS)
        return 0;
    /* A section for each function: one segment for all, as what lies between has no symbols. */
    e->segments[0] = (struct segment){.offset = first,
                                      .size = end - first,
                                      .memory_size = end - first,
                                      .vaddr = first,
                                      .align = 1,
                                      .executable = true};
    e->segment_count = 1;
    return 0;
}

int symint_elf_read_sections(struct symint_elf *e, enum sym_miss *miss, const char **why)
{
    uint8_t *headers;
    *miss = SYM_MISS_NONE;
    if (e->sections != NULL)
        return 0;
    *why = "its section headers are not inside the file";
    if (e->section_count > e->input.size / section_header_size(e)) {
        *miss = SYM_MISS_DAMAGED;
        return 0;
    }
    int rc = symint_elf_load(&e->input, e->section_offset,
                             e->section_count * section_header_size(e), &headers, miss);
    if (*miss == SYM_MISS_UNREADABLE)
        *why = unreadable;
    if (headers == NULL)
        return rc;
    e->sections = calloc((size_t)e->section_count + 1, sizeof(*e->sections));
    if (e->sections == NULL)
        rc = SYM_ERR_NOMEM;
    bool code = false;
    bool elsewhere = false;
    for (uint64_t i = 0; rc == 0 && i < e->section_count; i++) {
        struct section *s = &e->sections[i];
        *s = parse_section(e, headers + i * section_header_size(e));
        code |= s->executable && s->type != SHT_NOBITS;
        elsewhere |= s->executable && s->type == SHT_NOBITS;
        if (e->relocatable)
            place_section(e, s);
    }
    e->detached = elsewhere && !code;
    if (rc == 0)
        rc = name_sections(e, headers, miss);
    if (*miss == SYM_MISS_UNREADABLE)
        *why = unreadable;
    free(headers);
    if (rc != 0 || *miss != SYM_MISS_NONE)
        symint_elf_drop_sections(e);
    return rc;
}

void symint_elf_drop_sections(struct symint_elf *e)
{
    free(e->sections);
    free(e->section_names);
    e->sections = NULL;
    e->section_names = NULL;
}

const struct section *symint_elf_section(const struct symint_elf *e, const char *name)
{
    for (uint64_t i = 1; e->sections != NULL && i < e->section_count; i++)
        if (strcmp(e->sections[i].name, name) == 0)
            return &e->sections[i];
    return NULL;
}

int symint_elf_load_section(const struct symint_elf *e, const struct section *s, uint8_t **out,
                            enum sym_miss *miss)
{
    *out = NULL;
    *miss = SYM_MISS_DAMAGED;
    if (s->type == SHT_NOBITS || s->compressed)
        return 0;
    return symint_elf_load(&e->input, s->offset, s->size, out, miss);
}

/* A file without PT_NOTE may still have the section. */
static int read_note_sections(struct symint_elf *e, enum sym_miss *miss, const char **why)
{
    uint64_t budget = MAX_NOTE_BYTES;
    int rc = symint_elf_read_sections(e, miss, why);
    for (uint64_t i = 0; rc == 0 && e->sections != NULL && i < e->section_count; i++)
        if (e->sections[i].type == SHT_NOTE)
            rc = read_notes(e, e->sections[i].offset, e->sections[i].size, 4, &budget);
    return rc;
}

static int read_header(struct symint_elf *e, uint64_t *program_offset, uint64_t *program_count,
                       enum sym_miss *miss, const char **why)
{
    uint8_t h[sizeof(Elf64_Ehdr)] = {0};
    enum read_result result = symint_elf_read(&e->input, 0, EI_NIDENT, h);
    *miss = result == READ_FAILED ? SYM_MISS_UNREADABLE : SYM_MISS_NOT_ELF;
    *why = "it has no ELF header";
    if (result != READ_OK || memcmp(h, ELFMAG, SELFMAG) != 0)
        return 0;
    *miss = SYM_MISS_DAMAGED;
    *why = "its ELF header is of no known kind";
    if ((h[EI_CLASS] != ELFCLASS32 && h[EI_CLASS] != ELFCLASS64) ||
        (h[EI_DATA] != ELFDATA2LSB && h[EI_DATA] != ELFDATA2MSB))
        return 0;
    e->wide = h[EI_CLASS] == ELFCLASS64;
    e->swap = (h[EI_DATA] == ELFDATA2MSB) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    *why = "its ELF header is cut off";
    result = symint_elf_read(&e->input, 0, e->wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr), h);
    if (result != READ_OK) {
        *miss = result == READ_FAILED ? SYM_MISS_UNREADABLE : SYM_MISS_DAMAGED;
        return 0;
    }
    e->relocatable = get16(e, h + 16) == ET_REL;
    e->machine = get16(e, h + 18);
    *program_offset = get_word(e, h, 28, 32);
    *program_count = get16(e, h + (e->wide ? 56 : 44));
    e->section_offset = get_word(e, h, 32, 40);
    e->section_count = get16(e, h + (e->wide ? 60 : 48));
    e->section_names_index = get16(e, h + (e->wide ? 62 : 50));
    uint16_t program_size = get16(e, h + (e->wide ? 54 : 42));
    uint16_t section_size = get16(e, h + (e->wide ? 58 : 46));

    *why = "its headers have an unknown size";
    if (*program_count > 0 && program_size != (e->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
        return 0;
    if (e->section_offset == 0)
        e->section_count = 0;
    else if (section_size != section_header_size(e))
        return 0;
    /* Numbers too large for the ELF header are in the first section header. */
    if (e->section_offset != 0 && (e->section_count == 0 || *program_count == PN_XNUM ||
                                   e->section_names_index == SHN_XINDEX)) {
        uint8_t first[sizeof(Elf64_Shdr)];
        *why = "its section headers are not inside the file";
        if (symint_elf_read(&e->input, e->section_offset, section_header_size(e), first) != READ_OK)
            return 0;
        if (e->section_count == 0)
            e->section_count = get_word(e, first, 20, 32);
        if (e->section_names_index == SHN_XINDEX)
            e->section_names_index = get32(e, first + (e->wide ? 40 : 24));
        if (*program_count == PN_XNUM)
            *program_count = get32(e, first + (e->wide ? 44 : 28));
    }
    *miss = SYM_MISS_NONE;
    return 0;
}

int symint_elf_open(const struct symint_input *input, struct symint_elf **out, enum sym_miss *miss,
                    const char **why)
{
    uint64_t program_offset = 0;
    uint64_t program_count = 0;
    *out = NULL;
    struct symint_elf *e = calloc(1, sizeof(*e));
    if (e == NULL)
        return SYM_ERR_NOMEM;
    e->input = *input;
    int rc = read_header(e, &program_offset, &program_count, miss, why);
    if (rc == 0 && *miss == SYM_MISS_NONE)
        rc = read_segments(e, program_offset, program_count, miss, why);
    if (rc == 0 && *miss == SYM_MISS_NONE && e->build_id_size == 0 && e->section_count > 0) {
        enum sym_miss section_miss; /* what is wrong with sections is the index's business */
        const char *section_why;
        rc = read_note_sections(e, &section_miss, &section_why);
    }
    if (rc == 0 && *miss == SYM_MISS_NONE && e->relocatable) {
        enum sym_miss section_miss;
        const char *section_why;
        rc = symint_elf_read_sections(e, &section_miss, &section_why);
        if (rc == 0)
            rc = make_segments(e);
    }
    if (*miss == SYM_MISS_UNREADABLE)
        *why = unreadable;
    if (rc != 0 || *miss != SYM_MISS_NONE) {
        symint_elf_free(e);
        return rc;
    }
    *out = e;
    return 0;
}

void symint_elf_free(struct symint_elf *e)
{
    if (e == NULL)
        return;
    free(e->segments);
    symint_elf_drop_sections(e);
    for (int i = 0; i < SOURCES; i++)
        free(e->strings[i]);
    free(e->entries);
    symint_segments_free(&e->index);
    free(e);
}

const uint8_t *symint_elf_build_id(const struct symint_elf *e, size_t *size)
{
    *size = e->build_id_size;
    return e->build_id_size > 0 ? e->build_id : NULL;
}

bool symint_elf_has_symtab(const struct symint_elf *e)
{
    for (uint64_t i = 1; e->sections != NULL && i < e->section_count; i++)
        if (e->sections[i].type == SHT_SYMTAB)
            return true;
    return false;
}

bool symint_elf_has_debug_info(const struct symint_elf *e)
{
    static const char *const names[] = {".debug_info", ".zdebug_info"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct section *s = symint_elf_section(e, names[i]);
        if (s != NULL && s->type != SHT_NOBITS && s->size > 0)
            return true;
    }
    return false;
}

/* ---- from file offsets to addresses ---- */

/* Kernels of other machines than x86 may use pages up to 64 KB; a file that supports them says
 * so. */
static uint64_t largest_page(const struct symint_elf *e, const struct segment *s)
{
    uint64_t page = 4096;
    if (e->machine == EM_X86_64 || e->machine == EM_386)
        return page;
    while (page < 65536 && page * 2 <= s->align)
        page *= 2;
    return page;
}

static bool starts_at(const struct symint_elf *e, const struct segment *s, uint64_t mapping_offset)
{
    for (uint64_t page = 4096; page <= largest_page(e, s); page *= 2)
        if ((s->offset & ~(page - 1)) == mapping_offset)
            return true;
    return false;
}

/* A debug file tells the sizes in memory only. Its one executable segment that fills the mapping
 * begins where the mapping does. */
static struct symint_place place_detached(const struct symint_elf *e, uint64_t file_offset,
                                          uint64_t size)
{
    struct symint_place place = {.segment = SYMINT_NO_SEGMENT, .detached = true};
    for (uint32_t i = 0; i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        if (!s->executable || s->memory_size == 0 || s->memory_size > UINT64_MAX / 2 ||
            s->vaddr > UINT64_MAX / 2)
            continue;
        for (uint64_t page = 4096; page <= largest_page(e, s); page *= 2) {
            uint64_t first = s->vaddr & ~(page - 1);
            uint64_t end = (s->vaddr + s->memory_size + page - 1) & ~(page - 1);
            if (end - first != size)
                continue;
            if (place.segment != SYMINT_NO_SEGMENT && place.segment != i)
                return (struct symint_place){.segment = SYMINT_NO_SEGMENT, .detached = true};
            place.segment = i;
            place.shift = first - file_offset;
            break;
        }
    }
    return place;
}

struct symint_place symint_elf_place(const struct symint_elf *e, uint64_t file_offset,
                                     uint64_t size)
{
    if (e->relocatable)
        return (struct symint_place){.segment = SYMINT_NO_SEGMENT};
    if (e->detached)
        return place_detached(e, file_offset, size);
    for (uint32_t i = 0; i < e->segment_count; i++)
        if (e->segments[i].executable && starts_at(e, &e->segments[i], file_offset))
            return (struct symint_place){.segment = i};
    return (struct symint_place){.segment = SYMINT_NO_SEGMENT};
}

static bool in_file(const struct segment *s, uint64_t offset)
{
    return offset >= s->offset && offset - s->offset < s->size;
}

/* In the rounding of the first or the last page. */
static bool in_pages(const struct symint_elf *e, const struct segment *s, uint64_t offset)
{
    if (s->size == 0)
        return false;
    uint64_t mask = largest_page(e, s) - 1;
    uint64_t last = s->offset + (s->size - 1);
    if (last < s->offset)
        return false;
    return offset >= (s->offset & ~mask) && offset <= (last | mask);
}

bool symint_elf_vaddr(const struct symint_elf *e, uint64_t offset, const struct symint_place *place,
                      uint64_t *vaddr)
{
    if (place->detached) {
        *vaddr = offset + place->shift;
        return place->segment != SYMINT_NO_SEGMENT;
    }
    const struct segment *found = NULL;
    bool claimed = false;
    for (uint32_t i = 0; i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        if (!s->executable)
            continue;
        bool inside = in_file(s, offset);
        if (!inside && (claimed || e->relocatable || !in_pages(e, s, offset)))
            continue;
        /* Inside beats rounding; among equals the mapping's own segment, else the first. */
        if (found == NULL || (inside && !claimed) || i == place->segment)
            found = s;
        claimed |= inside;
    }
    if (found == NULL)
        return false;
    if (offset >= found->offset) {
        uint64_t ahead = offset - found->offset;
        if (ahead > UINT64_MAX - found->vaddr)
            return false;
        *vaddr = found->vaddr + ahead;
    } else {
        uint64_t back = found->offset - offset;
        if (back > found->vaddr)
            return false;
        *vaddr = found->vaddr - back;
    }
    return e->wide || *vaddr <= UINT32_MAX;
}

bool symint_elf_offset(const struct symint_elf *e, uint64_t vaddr, uint64_t *offset, uint64_t *room)
{
    for (uint32_t i = 0; i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        if (vaddr >= s->vaddr && vaddr - s->vaddr < s->size && s->offset <= e->input.size) {
            uint64_t ahead = vaddr - s->vaddr;
            uint64_t size =
                s->size < e->input.size - s->offset ? s->size : e->input.size - s->offset;
            if (ahead >= size)
                continue;
            *offset = s->offset + ahead;
            *room = size - ahead;
            return true;
        }
    }
    return false;
}
