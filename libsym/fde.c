/* SPDX-License-Identifier: MIT */
/*
 * The ranges in .eh_frame, a list of CIEs, which say how addresses are written, and FDEs, each the
 * range of a function. Of both only the beginning is read:
 *
 *     length (4, or ffffffff and 8)  0 (4)            version  augmentation "zPLR"  ...  encoding
 *     length (4, or ffffffff and 8)  back to CIE (4)  start  size  ...
 *
 * What frames look like is nothing to a symbolizer. The section passes through a small window:
 * fresh memory for all of it would cost more than reading it.
 */
#include "fde.h"

#include "dwarf_cursor.h"
#include "elf_private.h"
#include "segments.h"
#include "strtab.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_SIZE ((size_t)32 * 1024)

/* What is looked at of an FDE: 12 bytes of length, 8 of pointer, 7 to align, two numbers of 10. */
#define FDE_HEAD 48
/* The same for a CIE. Those of compilers take 30 bytes; a bound makes each of them cheap, however
 * many FDEs ask for however many of them in turn. */
#define CIE_HEAD 256

#define CIE_CACHE 64 /* a power of two; real sections have a handful of CIEs */

#define RESERVED 0xfffffff0 /* lengths from here on are none */

/* How a pointer is written: a format, what is added to it, and a flag. */
enum {
    FORMAT = 0x0f,
    FORMAT_WORD = 0x00, /* of the class's size */
    FORMAT_ULEB = 0x01,
    FORMAT_U16 = 0x02,
    FORMAT_U32 = 0x03,
    FORMAT_U64 = 0x04,
    FORMAT_SIGNED_WORD = 0x08,
    FORMAT_SLEB = 0x09,
    FORMAT_S16 = 0x0a,
    FORMAT_S32 = 0x0b,
    FORMAT_S64 = 0x0c,
    BASE = 0x70,
    BASE_NONE = 0x00,
    BASE_HERE = 0x10,
    BASE_DATA = 0x30,
    BASE_ALIGNED = 0x50, /* no base: a word at the next multiple of its size */
    INDIRECT = 0x80,
    OMITTED = 0xff,
    USUAL = BASE_HERE | FORMAT_S32, /* with any compiler but for the large code model */
};

struct cursor {
    const struct symint_elf *e;
    const uint8_t *at;
    const uint8_t *end;
    uint64_t vaddr; /* of `at` */
};

struct cie {
    uint64_t key;     /* its offset + 1; 0: an unused slot */
    uint8_t encoding; /* of starts; OMITTED: nothing can be read with this one */
    uint8_t id_size;  /* of its own CIE id; 0 when its length has 32 bits */
};

/* Code of the file: executable sections or segments. */
struct region {
    uint64_t start;
    uint64_t end;
};

struct reader {
    const struct symint_elf *e;
    /* the current section */
    uint64_t offset;
    uint64_t size;
    uint64_t vaddr;
    const uint8_t *window;
    uint64_t window_at; /* from the start of the section */
    size_t window_size;
    struct cie cache[CIE_CACHE];
    uint64_t usual_cie; /* the key of the last one used whose starts are USUAL, 0: none yet */
    /* the file */
    uint8_t *buffer;
    struct region *regions; /* ascending */
    size_t region_count;
    struct region region; /* the one of the entry before */
    uint64_t data_base;   /* 0: not looked for */
    bool data_base_known;
    /* the result */
    struct symint_pair *fdes; /* start and size */
    size_t count;
    size_t capacity;
    bool sorted; /* and each start once */
};

/* ---- numbers ---- */

static size_t left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

static bool skip(struct cursor *c, size_t size)
{
    if (size > left(c))
        return false;
    c->at += size;
    c->vaddr += size;
    return true;
}

static bool take_leb(struct cursor *c, bool is_signed, uint64_t *value)
{
    struct symint_cursor number = {.at = c->at, .end = c->end};
    *value = is_signed ? (uint64_t)cursor_sleb(&number) : cursor_uleb(&number);
    return !number.failed && skip(c, (size_t)(number.at - c->at));
}

static bool take(struct cursor *c, uint8_t format, uint64_t *value)
{
    size_t size = 8;
    switch (format) {
    case FORMAT_ULEB:
    case FORMAT_SLEB:
        return take_leb(c, format == FORMAT_SLEB, value);
    case FORMAT_WORD:
    case FORMAT_SIGNED_WORD:
        size = c->e->wide ? 8 : 4;
        break;
    case FORMAT_U16:
    case FORMAT_S16:
        size = 2;
        break;
    case FORMAT_U32:
    case FORMAT_S32:
        size = 4;
        break;
    case FORMAT_U64:
    case FORMAT_S64:
        break;
    default:
        return false;
    }
    if (size > left(c))
        return false;
    if (size == 2)
        *value = get16(c->e, c->at);
    else if (size == 4)
        *value = get32(c->e, c->at);
    else
        *value = get64(c->e, c->at);
    if (format == FORMAT_S32)
        *value = (uint64_t)(int64_t)(int32_t)*value;
    else if (format == FORMAT_S16)
        *value = (uint64_t)(int64_t)(int16_t)*value;
    return skip(c, size);
}

/* To the next multiple of a word's size. */
static bool align(struct cursor *c)
{
    uint64_t word = c->e->wide ? 8 : 4;
    return skip(c, (size_t)(-c->vaddr & (word - 1)));
}

/* Takes a pointer whose base is none, here or `data`. 0 stays 0: linkers write it over what
 * pointed to something they removed. */
static bool take_pointer(struct cursor *c, uint8_t encoding, uint64_t data, uint64_t *value)
{
    if (encoding == BASE_ALIGNED && !align(c))
        return false;
    uint64_t here = c->vaddr;
    if (!take(c, encoding & FORMAT, value))
        return false;
    if (*value != 0 && (encoding & BASE) == BASE_HERE)
        *value += here;
    else if (*value != 0 && (encoding & BASE) == BASE_DATA)
        *value += data;
    if (!c->e->wide)
        *value &= UINT32_MAX;
    return true;
}

/* ---- the section's bytes ---- */

/* [at, at + size) of the section, which has them; NULL: they cannot be read. */
static const uint8_t *view(struct reader *r, uint64_t at, size_t size)
{
    if (at >= r->window_at && size <= r->window_size && at - r->window_at <= r->window_size - size)
        return r->window + (at - r->window_at);
    uint64_t rest = r->size - at;
    r->window_size = rest < WINDOW_SIZE ? (size_t)rest : WINDOW_SIZE;
    r->window_at = at;
    if (symint_elf_read(&r->e->input, r->offset + at, r->window_size, r->buffer) == READ_OK)
        return r->window = r->buffer;
    r->window_size = 0;
    return NULL;
}

/* The first bytes of an entry, for the cursor to be behind its length. False: it has no length or
 * one that passes the end of the section. */
static bool take_length(struct cursor *c, uint64_t rest, uint64_t *length, bool *long_format)
{
    uint64_t before = left(c);
    *long_format = false;
    if (!take(c, FORMAT_U32, length))
        return false;
    if (*length == UINT32_MAX) {
        *long_format = true;
        if (!take(c, FORMAT_U64, length))
            return false;
    } else if (*length >= RESERVED) {
        return false; /* reserved */
    }
    rest -= before - left(c);
    if (*length > rest)
        return false;
    if (*length < left(c))
        c->end = c->at + *length;
    return true;
}

/* ---- CIEs ---- */

/* What .eh_frame may be relative to is where libgcc looks for it. */
static int find_data_base(struct reader *r)
{
    const struct symint_elf *e = r->e;
    size_t entry = e->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    uint8_t *dynamic;
    enum sym_miss miss;
    if (r->data_base_known)
        return 0;
    int rc = symint_elf_load(&e->input, e->dynamic_offset, e->dynamic_size, &dynamic, &miss);
    if (rc != 0)
        return rc;
    r->data_base_known = true;
    for (uint64_t i = 0; dynamic != NULL && i < e->dynamic_size / entry; i++) {
        uint64_t tag = get_word(e, dynamic + i * entry, 0, 0);
        if (tag == DT_NULL)
            break;
        if (tag == DT_PLTGOT) {
            r->data_base = get_word(e, dynamic + i * entry, 4, 8);
            break;
        }
    }
    free(dynamic);
    return 0;
}

/* Starts that are in a register's or another variable's hands cannot be told from the file. */
static bool readable(uint8_t encoding)
{
    uint8_t base = encoding & BASE;
    if ((encoding & INDIRECT) != 0)
        return false;
    return encoding == BASE_ALIGNED || base == BASE_NONE || base == BASE_HERE || base == BASE_DATA;
}

/* From the augmentation's data to the encoding of starts. An unknown letter hides what follows. */
static uint8_t take_augmentation(struct cursor *c, const char *letters)
{
    uint64_t ignored;
    for (; *letters != '\0'; letters++) {
        uint8_t encoding = left(c) > 0 ? *c->at : OMITTED;
        switch (*letters) {
        case 'R':
            return encoding;
        case 'L':
            if (!skip(c, 1))
                return OMITTED;
            break;
        case 'P':
            if (encoding == OMITTED || !skip(c, 1) ||
                !take_pointer(c, encoding & ~INDIRECT, 0, &ignored))
                return OMITTED;
            break;
        case 'S': /* a signal's frame */
        case 'B': /* AArch64: signed with the other key */
        case 'G': /* AArch64: tagged stack */
            break;
        default:
            return OMITTED;
        }
    }
    return FORMAT_WORD;
}

/* The encoding of a CIE whose id has been taken. */
static uint8_t take_cie(struct cursor *c)
{
    uint64_t ignored;
    const char *letters;
    if (left(c) == 0)
        return OMITTED;
    uint8_t version = *c->at;
    skip(c, 1);
    letters = (const char *)c->at;
    size_t size = strnlen(letters, left(c));
    if ((version != 1 && version != 3 && version != 4) || !skip(c, size + 1))
        return OMITTED;
    if (version == 4) {
        if (left(c) < 2 || c->at[0] != (c->e->wide ? 8 : 4) || c->at[1] != 0)
            return OMITTED;
        skip(c, 2);
    }
    if (strcmp(letters, "eh") == 0) /* of GCC 2: a word with its own tables */
        return skip(c, c->e->wide ? 8 : 4) ? FORMAT_WORD : OMITTED;
    /* code and data alignment, the register with the return address */
    if (!take_leb(c, false, &ignored) || !take_leb(c, true, &ignored) ||
        !(version == 1 ? skip(c, 1) : take_leb(c, false, &ignored)))
        return OMITTED;
    if (*letters == 'z') {
        if (!take_leb(c, false, &ignored))
            return OMITTED;
        letters++;
    }
    return take_augmentation(c, letters);
}

/* In 64-bit DWARF the id has 4 bytes according to the LSB and 8 according to binutils. Where it
 * has 8, there is no version behind 4. */
static struct cie parse_cie(const struct reader *r, uint64_t at, const uint8_t *bytes, size_t size)
{
    struct cie cie = {.key = at + 1, .encoding = OMITTED};
    struct cursor c = {.e = r->e, .at = bytes, .end = bytes + size, .vaddr = r->vaddr + at};
    uint64_t length;
    bool long_format;
    uint64_t id;
    if (!take_length(&c, r->size - at, &length, &long_format))
        return cie;
    for (int i = 0; i < (long_format ? 2 : 1) && cie.encoding == OMITTED; i++) {
        if (!take(&c, FORMAT_U32, &id) || id != 0)
            break;
        struct cursor body = c;
        cie.encoding = take_cie(&body);
        cie.id_size = (uint8_t)(long_format ? 4 * (i + 1) : 0);
    }
    if (!readable(cie.encoding))
        cie.encoding = OMITTED;
    return cie;
}

/* The CIE at an offset, which may be any number. 0 with *out NULL: there is none that helps;
 * SYM_ERR_NOMEM. */
static int find_cie(struct reader *r, uint64_t at, const struct cie **out)
{
    uint8_t bytes[CIE_HEAD];
    struct cie *slot = &r->cache[symint_mix(at) & (CIE_CACHE - 1)];
    *out = NULL;
    if (at >= r->size)
        return 0;
    if (slot->key != at + 1) {
        size_t size = r->size - at < CIE_HEAD ? (size_t)(r->size - at) : CIE_HEAD;
        const uint8_t *from = bytes;
        /* The window stays where it is: its entries come next. */
        if (at >= r->window_at && at - r->window_at < r->window_size &&
            size <= r->window_size - (size_t)(at - r->window_at))
            from = r->window + (at - r->window_at);
        else if (symint_elf_read(&r->e->input, r->offset + at, size, bytes) != READ_OK)
            return 0;
        *slot = parse_cie(r, at, from, size);
        if (slot->encoding != OMITTED && (slot->encoding & BASE) == BASE_DATA) {
            int rc = find_data_base(r);
            if (rc != 0)
                return rc;
            if (r->data_base == 0)
                slot->encoding = OMITTED;
        }
    }
    if (slot->encoding == USUAL)
        r->usual_cie = slot->key;
    if (slot->encoding != OMITTED)
        *out = slot;
    return 0;
}

/* ---- FDEs ---- */

static int grow(struct reader *r)
{
    size_t capacity = r->capacity < 64 ? 128 : r->capacity * 2;
    struct symint_pair *fdes = symint_scratch_alloc(capacity, sizeof(*fdes));
    if (fdes == NULL)
        return SYM_ERR_NOMEM;
    if (r->count > 0)
        memcpy(fdes, r->fdes, r->count * sizeof(*fdes));
    free(r->fdes);
    r->fdes = fdes;
    r->capacity = capacity;
    return 0;
}

static bool find_region(struct reader *r, uint64_t address)
{
    size_t low = 0;
    size_t high = r->region_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->regions[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= r->regions[low - 1].end)
        return false;
    r->region = r->regions[low - 1];
    return true;
}

/* symbolization.md 6.2: only ranges inside code are any. 0 or SYM_ERR_NOMEM. */
static int add(struct reader *r, uint64_t start, uint64_t size)
{
    uint64_t ones = r->e->wide ? UINT64_MAX : UINT32_MAX;
    if (start <= 1 || start >= ones - 1 || size == 0 || size > UINT32_MAX)
        return 0;
    if ((start < r->region.start || start >= r->region.end) && !find_region(r, start))
        return 0;
    if (size > r->region.end - start)
        return 0;
    if (r->count == r->capacity || r->fdes == NULL) {
        int rc = grow(r);
        if (rc != 0)
            return rc;
    }
    r->sorted &= r->count == 0 || r->fdes[r->count - 1].key < start;
    r->fdes[r->count++] = (struct symint_pair){.key = start, .value = (uint32_t)size};
    return 0;
}

/* An FDE as nearly all are, without the detours: one that has the CIE of the one before, 32 bits
 * everywhere, and a start relative to itself. */
static bool take_usual(const struct reader *r, uint64_t at, const uint8_t *head, uint64_t *length,
                       uint64_t *start, uint64_t *size)
{
    const struct symint_elf *e = r->e;
    uint64_t rest = r->size - at;
    if (rest < 16)
        return false;
    *length = get32(e, head);
    uint64_t cie = at + 4 - (uint64_t)(int64_t)(int32_t)get32(e, head + 4);
    if (*length < 12 || *length >= RESERVED || *length > rest - 4 || cie >= r->size ||
        cie + 1 != r->usual_cie)
        return false;
    int32_t distance = (int32_t)get32(e, head + 8);
    *start = distance == 0 ? 0 : r->vaddr + at + 8 + (uint64_t)(int64_t)distance;
    *size = get32(e, head + 12);
    if (!e->wide)
        *start &= UINT32_MAX;
    return true;
}

/* An entry whose length has been taken; *sensible: it is a CIE or has one. 0 or SYM_ERR_NOMEM. */
static int read_entry(struct reader *r, struct cursor c, uint64_t at, bool long_format,
                      bool *sensible)
{
    const struct cie *cie;
    uint64_t field = c.vaddr - r->vaddr;
    uint64_t id;
    struct cursor body = c;
    *sensible = false;
    for (int id_size = 4; id_size <= (long_format ? 8 : 4); id_size += 4) {
        body = c;
        if (!take(&body, id_size == 8 ? FORMAT_S64 : FORMAT_S32, &id))
            return 0;
        int rc = find_cie(r, id == 0 ? at : field - id, &cie);
        if (rc != 0)
            return rc;
        if (cie != NULL && (!long_format || cie->id_size == 0 || cie->id_size == id_size)) {
            *sensible = true;
            break;
        }
    }
    uint64_t start;
    uint64_t size;
    if (!*sensible || id == 0)
        return 0;
    /* A size has no sign, whatever its format says: with 16 bits that makes a difference. */
    uint8_t format = cie->encoding & FORMAT;
    uint8_t size_format =
        format >= FORMAT_S16 && format <= FORMAT_S64 ? (uint8_t)(format - 8) : format;
    if (!take_pointer(&body, cie->encoding, r->data_base, &start) ||
        !take(&body, size_format, &size))
        return 0;
    return add(r, start, size);
}

/* One .eh_frame. Behind a terminator may be another one's entries, if there was `ld -r`, or
 * something else, if only the segment says where it ends. */
static int read_section(struct reader *r)
{
    bool ended = false;
    uint64_t at = 0;
    while (r->size - at >= 4) {
        uint64_t rest = r->size - at;
        size_t size = rest < FDE_HEAD ? (size_t)rest : FDE_HEAD;
        const uint8_t *head = view(r, at, size);
        uint64_t length;
        uint64_t start;
        uint64_t size_of_code;
        bool long_format;
        bool sensible;
        if (head == NULL)
            break;
        if (take_usual(r, at, head, &length, &start, &size_of_code)) {
            int rc = add(r, start, size_of_code);
            if (rc != 0)
                return rc;
            ended = false;
            at += 4 + length;
            continue;
        }
        struct cursor c = {.e = r->e, .at = head, .end = head + size, .vaddr = r->vaddr + at};
        if (!take_length(&c, rest, &length, &long_format))
            break;
        uint64_t body = c.vaddr - r->vaddr;
        if (length == 0) {
            ended = true;
        } else {
            int rc = read_entry(r, c, at, long_format, &sensible);
            if (rc != 0)
                return rc;
            if (ended && !sensible)
                break;
            ended = false;
        }
        at = body + length;
    }
    return 0;
}

/* ---- where the sections are ---- */

static int find_regions(struct reader *r)
{
    const struct symint_elf *e = r->e;
    size_t room = e->segment_count;
    struct region *found;
    struct symint_pair *order;
    if (e->sections != NULL)
        room += (size_t)e->section_count;
    found = symint_scratch_alloc(room, sizeof(*found));
    order = symint_scratch_alloc(room, sizeof(*order));
    r->regions = symint_scratch_alloc(room, sizeof(*r->regions));
    int rc = found == NULL || order == NULL || r->regions == NULL ? SYM_ERR_NOMEM : 0;
    size_t count = 0;
    for (uint64_t i = 0; rc == 0 && e->sections != NULL && i < e->section_count; i++) {
        const struct section *s = &e->sections[i];
        if (s->executable && s->size > 0)
            found[count++] = (struct region){.start = s->addr, .end = s->size};
    }
    for (uint32_t i = 0;
         rc == 0 && (e->sections == NULL || e->section_count == 0) && i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        if (s->executable && s->size > 0)
            found[count++] = (struct region){.start = s->vaddr, .end = s->size};
    }
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        uint64_t start = found[i].start;
        found[i].end = found[i].end > UINT64_MAX - start ? UINT64_MAX : start + found[i].end;
        order[i] = (struct symint_pair){.key = start, .value = i};
    }
    if (rc == 0)
        rc = symint_sort_pairs(order, count);
    for (size_t i = 0; rc == 0 && i < count; i++)
        r->regions[i] = found[order[i].value];
    r->region_count = count;
    free(found);
    free(order);
    return rc;
}

/* Reads entries from a place that is a claim; what is beyond the end of the file is left out. */
static int read_place(struct reader *r, uint64_t offset, uint64_t size, uint64_t vaddr)
{
    const struct symint_input *in = &r->e->input;
    if (offset >= in->size)
        return 0;
    r->offset = offset;
    r->size = size < in->size - offset ? size : in->size - offset;
    if (symint_elf_is_hole(in, r->size))
        return 0;
    r->vaddr = vaddr;
    r->window_at = 0;
    r->window_size = 0;
    memset(r->cache, 0, sizeof(r->cache));
    r->usual_cie = 0;
    if (in->fd < 0) {
        r->window = in->memory + offset;
        r->window_size = (size_t)r->size;
    } else if (r->buffer == NULL) {
        r->buffer = malloc(WINDOW_SIZE);
        if (r->buffer == NULL)
            return SYM_ERR_NOMEM;
    }
    /* Entries take 40 bytes and more; where they take less, the table grows. */
    if (r->fdes == NULL)
        r->capacity = (size_t)(r->size / 64);
    return read_section(r);
}

/* .eh_frame_hdr, which PT_GNU_EH_FRAME points to, begins with: version 1, three encodings, and
 * the address of .eh_frame, which is not known to end before its segment does. */
static int read_by_header(struct reader *r)
{
    const struct symint_elf *e = r->e;
    uint8_t head[32];
    uint64_t size = e->unwind_header_size < sizeof(head) ? e->unwind_header_size : sizeof(head);
    uint64_t vaddr;
    uint64_t offset;
    uint64_t room;
    if (size < 4 || symint_elf_read(&e->input, e->unwind_header_offset, size, head) != READ_OK ||
        head[0] != 1 || !readable(head[1]))
        return 0;
    for (uint32_t i = 0; i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        if (e->unwind_header_offset < s->offset || e->unwind_header_offset - s->offset >= s->size)
            continue;
        uint64_t here = s->vaddr + (e->unwind_header_offset - s->offset);
        struct cursor c = {.e = e, .at = head + 4, .end = head + size, .vaddr = here + 4};
        if (!take_pointer(&c, head[1], here, &vaddr) || vaddr == 0 ||
            !symint_elf_offset(e, vaddr, &offset, &room))
            return 0;
        return read_place(r, offset, room, vaddr);
    }
    return 0;
}

static int read_all(struct reader *r)
{
    const struct symint_elf *e = r->e;
    bool named = false;
    uint64_t budget = e->input.size; /* sections that overlap are not read over and over */
    for (uint64_t i = 1; e->sections != NULL && i < e->section_count; i++) {
        const struct section *s = &e->sections[i];
        if (strcmp(s->name, ".eh_frame") != 0)
            continue;
        named = true; /* a debug file has its name only */
        bool has_type =
            s->type == SHT_PROGBITS || (s->type == SHT_X86_64_UNWIND && e->machine == EM_X86_64);
        if (!has_type || s->compressed)
            continue;
        uint64_t size = s->size < budget ? s->size : budget;
        int rc = size > 0 ? read_place(r, s->offset, size, s->addr) : 0;
        if (rc != 0)
            return rc;
        budget -= size;
    }
    return named ? 0 : read_by_header(r);
}

/* ---- the result ---- */

/* Sorts, and hands out what was found. */
static int finish(struct reader *r, struct symint_fdes *out)
{
    struct symint_pair *fdes = r->fdes;
    if (r->count == 0)
        return 0;
    int rc = r->sorted ? 0 : symint_sort_pairs(fdes, r->count);
    if (rc != 0)
        return rc;
    size_t count = 1;
    for (size_t i = 1; i < r->count && !r->sorted; i++) {
        if (fdes[i].key != fdes[count - 1].key)
            fdes[count++] = fdes[i];
        else if (fdes[i].value > fdes[count - 1].value)
            fdes[count - 1].value = fdes[i].value;
    }
    count = r->sorted ? r->count : count;
    out->start = symint_scratch_alloc(count, 2 * sizeof(*out->start));
    if (out->start == NULL)
        return SYM_ERR_NOMEM;
    out->end = out->start + count;
    out->count = count;
    for (size_t i = 0; i < count; i++) {
        out->start[i] = fdes[i].key;
        out->end[i] = fdes[i].key + fdes[i].value;
    }
    return 0;
}

int symint_fdes_read(const struct symint_elf *e, struct symint_fdes *out)
{
    *out = (struct symint_fdes){0};
    /* Without segments it is a relocatable file: its addresses are not there yet. */
    if (e->segment_count == 0)
        return 0;
    struct reader r = {.e = e, .sorted = true};
    int rc = find_regions(&r);
    if (rc == 0 && r.region_count > 0)
        rc = read_all(&r);
    if (rc == 0)
        rc = finish(&r, out);
    free(r.buffer);
    free(r.regions);
    free(r.fdes);
    return rc;
}

void symint_fdes_free(struct symint_fdes *f)
{
    free(f->start);
    *f = (struct symint_fdes){0};
}

uint64_t symint_fdes_end(const struct symint_fdes *f, uint64_t start)
{
    if (f->count == 0)
        return 0;
    const uint64_t *base = f->start;
    for (size_t rest = f->count; rest > 1;) {
        size_t half = rest / 2;
        base = base[half] <= start ? base + half : base;
        rest -= half;
    }
    return *base == start ? f->end[base - f->start] : 0;
}
