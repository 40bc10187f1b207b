/* SPDX-License-Identifier: MIT */
/* Debug sections: which there are, and address space for them, filled block by block or at once. */
#include "debug_bytes.h"

#include "elf_private.h"
#include "relocate.h"
#include "unpack.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK ((uint64_t)1 << SYMINT_DEBUG_BLOCK_BITS)
#define LITTLE ((uint64_t)16 * 1024 * 1024)
#define HUGE_PAGE ((uint64_t)2 * 1024 * 1024)
#define REGION_BLOCKS (HUGE_PAGE / BLOCK)
/* From so many blocks on a region is read as a whole, into a huge page: a page fault takes longer than reading what the
 * page is for, and those of four blocks as long as that of a huge page. */
#define WORTH_A_REGION 4

static const char *const names[DEBUG_IDS] = {
    [DEBUG_INFO] = ".debug_info",
    [DEBUG_ABBREV] = ".debug_abbrev",
    [DEBUG_STR] = ".debug_str",
    [DEBUG_LINE_STR] = ".debug_line_str",
    [DEBUG_STR_OFFSETS] = ".debug_str_offsets",
    [DEBUG_ADDR] = ".debug_addr",
    [DEBUG_RANGES] = ".debug_ranges",
    [DEBUG_RNGLISTS] = ".debug_rnglists",
    [DEBUG_LINE] = ".debug_line",
    [DEBUG_CU_INDEX] = ".debug_cu_index",
};

static int compare_ranges(const void *a, const void *b)
{
    const struct symint_code_range *x = a;
    const struct symint_code_range *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int list_code(const struct symint_elf *e, struct symint_debug_sections *out)
{
    size_t n = 0;
    struct symint_code_range *code =
        calloc((size_t)e->section_count + e->segment_count + 1, sizeof(*code));
    if (code == NULL)
        return SYM_ERR_NOMEM;
    for (uint64_t i = 1; e->sections != NULL && i < e->section_count; i++) {
        const struct section *s = &e->sections[i];
        if (s->executable && s->size > 0 && s->size <= UINT64_MAX - s->addr)
            code[n++] = (struct symint_code_range){s->addr, s->addr + s->size};
    }
    for (uint32_t i = 0; n == 0 && i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        if (s->executable && s->memory_size > 0 && s->memory_size <= UINT64_MAX - s->vaddr)
            code[n++] = (struct symint_code_range){s->vaddr, s->vaddr + s->memory_size};
    }
    qsort(code, n, sizeof(*code), compare_ranges);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || code[i].start >= code[kept - 1].end)
            code[kept++] = code[i];
        else if (code[i].end > code[kept - 1].end)
            code[kept - 1].end = code[i].end;
    }
    for (size_t i = 0; i < kept; i++)
        if (code[i].end - code[i].start > out->most_code.end - out->most_code.start)
            out->most_code = code[i];
    out->code = code;
    out->code_count = kept;
    return 0;
}

/* Notes the first thing that was wrong. Bytes that were read before are no longer given out. */
static void fail(struct symint_debug_sections *s, struct symint_debug_section *d, const char *why)
{
    d->failed = true;
    if (s->why[0] == '\0') {
        s->error = why == symint_unpack_unreadable ? errno : 0;
        s->why = why;
    }
    if (d->there != NULL)
        memset(d->there, 0, (size_t)((d->size + BLOCK - 1) / BLOCK + 63) / 64 * sizeof(*d->there));
}

/* A file that asks for more than there is goes without; where there is not even a little, that is not the file's doing. */
static void lack_memory(struct symint_debug_sections *s, struct symint_debug_section *d)
{
    if (d->size > LITTLE)
        fail(s, d, symint_unpack_no_memory);
    else
        s->no_memory = true;
}

/* ---- finding sections ---- */

static bool has_name(const struct section *s, const char *name)
{
    /* `.debug_info` may also be called `.zdebug_info`. */
    return strcmp(s->name, name) == 0 ||
           (s->name[0] == '.' && s->name[1] == 'z' && strcmp(s->name + 2, name + 1) == 0);
}

/* Object files may have several: those in groups belong to one type each. */
static const struct section *find_section(const struct symint_elf *e, const char *name)
{
    const struct section *first = NULL;
    for (uint64_t i = 1; e->sections != NULL && i < e->section_count; i++) {
        const struct section *s = &e->sections[i];
        if (s->type == SHT_NOBITS || s->size == 0 || !has_name(s, name))
            continue;
        if (first == NULL)
            first = s;
        if (!e->relocatable)
            break;
        if (!s->grouped)
            return s;
    }
    return first;
}

static void find_debug_section(struct symint_debug_sections *out, enum symint_debug_id id,
                               const char *name)
{
    struct symint_elf *e = out->elf;
    struct symint_debug_section *d = &out->at[id];
    const struct section *s = find_section(e, name);
    if (s == NULL)
        return;
    d->number = (uint32_t)(s - e->sections);
    if (s->offset > e->input.size || s->size > e->input.size - s->offset) {
        fail(out, d, "a debug section is not inside the file");
        return;
    }
    if (symint_elf_is_hole(&e->input, s->size)) {
        fail(out, d, "a debug section is missing: the file has a hole there");
        return;
    }
    d->offset = s->offset;
    d->size = s->size;
    d->relocated = symint_has_relocations(e, d->number);
    d->packed = s->compressed || s->name[1] == 'z';
    if (d->packed) {
        struct symint_packed packed;
        const char *why = symint_packed_head(e, s, &packed);
        d->size = packed.size;
        if (why != NULL)
            fail(out, d, why);
    }
}

int symint_debug_open(struct symint_elf *e, bool split, struct symint_debug_sections *out)
{
    *out = (struct symint_debug_sections){.elf = e, .swap = e->swap, .why = ""};
    for (int id = 0; id < DEBUG_IDS; id++) {
        char name[32];
        bool plain = id == DEBUG_CU_INDEX || id == DEBUG_ADDR || id == DEBUG_LINE_STR;
        snprintf(name, sizeof(name), "%s%s", names[id], split && !plain ? ".dwo" : "");
        find_debug_section(out, id, name);
    }
    return list_code(e, out);
}

/* ---- memory ---- */

static bool has_huge_pages(uint64_t size)
{
    return size >= WORTH_A_REGION * BLOCK;
}

/* Whole pages: a block is as large as the largest ordinary ones that kernels use. */
static uint64_t room_of(uint64_t size)
{
    uint64_t page = has_huge_pages(size) ? HUGE_PAGE : BLOCK;
    return (size + page - 1) / page * page;
}

static void set_resident(struct symint_debug_sections *s, struct symint_debug_section *d,
                         uint64_t bytes)
{
    s->resident_bytes += bytes - d->resident_bytes;
    d->resident_bytes = bytes;
}

static void release(struct symint_debug_section *d)
{
    if (d->base != NULL)
        munmap(d->base, (size_t)room_of(d->size));
    free(d->there);
    free(d->regions);
    d->base = NULL;
    d->there = NULL;
    d->regions = NULL;
}

void symint_debug_close(struct symint_debug_sections *s)
{
    for (int id = 0; id < DEBUG_IDS; id++)
        release(&s->at[id]); /* resident or not: nobody asks any more */
    free(s->code);
    memset(s, 0, sizeof(*s));
}

/* Address space that huge pages fit into, if it is to have any. NULL: none to be had. */
static uint8_t *reserve(uint64_t size)
{
    uint64_t slack = has_huge_pages(size) ? HUGE_PAGE : 0;
    if (size > SIZE_MAX / 2)
        return NULL;
    uint64_t room = room_of(size);
    uint8_t *p = mmap(NULL, (size_t)(room + slack), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (slack == 0)
        return p;
    uint64_t before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0)
        munmap(p, (size_t)before);
    if (before < slack)
        munmap(p + before + room, (size_t)(slack - before));
    /* cppcheck-suppress deallocret ; what is given back lies around these bytes */
    return p + before;
}

/* Makes a packed or relocated section whole. */
static void make_whole(struct symint_debug_sections *s, struct symint_debug_section *d)
{
    const struct symint_input *in = &s->elf->input;
    const struct section *section = &s->elf->sections[d->number];
    const char *why = NULL;
    (void)madvise(d->base, (size_t)room_of(d->size),
                  MADV_HUGEPAGE); /* all of it is needed at once */
    if (d->packed) {
        struct symint_packed packed;
        why = symint_packed_head(s->elf, section, &packed);
        if (why == NULL && packed.size != d->size)
            why = "a debug section changed while it was read";
        if (why == NULL)
            why = symint_unpack(in, &packed, d->base);
    } else if (symint_elf_read(in, d->offset, d->size, d->base) != READ_OK) {
        why = symint_unpack_unreadable;
    }
    if (why == NULL && d->relocated)
        why = symint_relocate(s->elf, d->number, d->base, d->size);
    if (why != NULL) {
        int error = errno;
        release(d);
        errno = error;
        if (why == symint_unpack_no_memory)
            lack_memory(s, d);
        else
            fail(s, d, why);
        return;
    }
    set_resident(s, d, d->size);
}

/* The first look at a section. */
static void start(struct symint_debug_sections *s, struct symint_debug_section *d)
{
    uint64_t blocks = (d->size + BLOCK - 1) / BLOCK;
    d->base = reserve(d->size);
    if (d->base != NULL && (d->packed || d->relocated)) {
        make_whole(s, d);
        return;
    }
    d->there = calloc((size_t)(blocks + 63) / 64, sizeof(*d->there));
    d->regions = calloc((size_t)(blocks / REGION_BLOCKS + 1), sizeof(*d->regions));
    if (d->base == NULL || d->there == NULL || d->regions == NULL) {
        release(d);
        lack_memory(s, d);
        return;
    }
    /* Where all memory is of huge pages, a look here and there would take all of it. */
    (void)madvise(d->base, (size_t)room_of(d->size), MADV_NOHUGEPAGE);
}

/* ---- blocks ---- */

static bool is_there(const struct symint_debug_section *d, uint64_t block)
{
    return (d->there[block / 64] >> (block % 64) & 1) != 0;
}

/* Reads a piece of a plain section. False: it failed. */
static bool read_bytes(struct symint_debug_sections *s, struct symint_debug_section *d,
                       uint64_t offset, uint64_t size, uint8_t *out)
{
    enum read_result result = symint_elf_read(&s->elf->input, d->offset + offset, size, out);
    if (result != READ_OK)
        fail(s, d, result == READ_SHORT ? "a debug section is cut off" : symint_unpack_unreadable);
    return result == READ_OK;
}

static bool read_blocks(struct symint_debug_sections *s, struct symint_debug_section *d,
                        uint64_t first, uint64_t end)
{
    uint64_t from = first * BLOCK;
    uint64_t to = end * BLOCK < d->size ? end * BLOCK : d->size;
#ifdef MADV_POPULATE_WRITE
    (void)madvise(d->base + from, (size_t)(to - from), MADV_POPULATE_WRITE); /* fewer faults */
#endif
    if (!read_bytes(s, d, from, to - from, d->base + from))
        return false;
    for (uint64_t b = first; b < end; b++) {
        d->there[b / 64] |= (uint64_t)1 << (b % 64);
        d->regions[b / REGION_BLOCKS]++;
    }
    set_resident(s, d, d->resident_bytes + (to - from));
    return true;
}

/* Whether the region of block b, which is missing, is to be read as a whole: enough of it is asked for, or all of the one
 * before it was. */
static bool wants_region(const struct symint_debug_section *d, uint64_t b, uint64_t last)
{
    uint64_t region = b / REGION_BLOCKS;
    uint64_t end =
        (region + 1) * REGION_BLOCKS - 1 < last ? (region + 1) * REGION_BLOCKS : last + 1;
    if (!has_huge_pages(d->size))
        return false;
    return d->regions[region] + (end - b) >= WORTH_A_REGION ||
           (region > 0 && d->regions[region - 1] == REGION_BLOCKS);
}

/* Reads a whole region anew: its ordinary pages make room for a huge one. */
static bool read_region(struct symint_debug_sections *s, struct symint_debug_section *d,
                        uint64_t region)
{
    uint64_t blocks = (d->size + BLOCK - 1) / BLOCK;
    uint64_t first = region * REGION_BLOCKS;
    uint64_t end = first + REGION_BLOCKS < blocks ? first + REGION_BLOCKS : blocks;
    uint8_t *at = d->base + region * HUGE_PAGE;
    if (d->regions[region] > 0)
        (void)madvise(at, (size_t)HUGE_PAGE, MADV_DONTNEED);
    (void)madvise(at, (size_t)HUGE_PAGE, MADV_HUGEPAGE);
    for (uint64_t b = first; b < end; b++) {
        if (is_there(d, b)) {
            d->there[b / 64] &= ~((uint64_t)1 << (b % 64));
            uint64_t left = d->size - b * BLOCK;
            set_resident(s, d, d->resident_bytes - (left < BLOCK ? left : BLOCK));
        }
    }
    d->regions[region] = 0;
    return read_blocks(s, d, first, end);
}

/* Whether all blocks from first to last are there, 64 at a time: most questions are for units that are. */
static bool are_there(const struct symint_debug_section *d, uint64_t first, uint64_t last)
{
    for (uint64_t word = first / 64; word <= last / 64; word++) {
        uint64_t wanted = UINT64_MAX;
        if (word == first / 64)
            wanted &= UINT64_MAX << (first % 64);
        if (word == last / 64)
            wanted &= UINT64_MAX >> (63 - last % 64);
        if ((d->there[word] & wanted) != wanted)
            return false;
    }
    return true;
}

/* Reads what is missing of the blocks from first to last. */
static bool fill(struct symint_debug_sections *s, struct symint_debug_section *d, uint64_t first,
                 uint64_t last)
{
    if (are_there(d, first, last))
        return true;
    for (uint64_t b = first; b <= last;) {
        uint64_t region = b / REGION_BLOCKS;
        uint64_t end = b + 1;
        if (is_there(d, b)) {
            b++;
            continue;
        }
        if (wants_region(d, b, last)) {
            if (!read_region(s, d, region))
                return false;
            b = (region + 1) * REGION_BLOCKS;
            continue;
        }
        while (end <= last && end % REGION_BLOCKS != 0 && !is_there(d, end))
            end++;
        if (!read_blocks(s, d, b, end))
            return false;
        b = end;
    }
    return true;
}

const uint8_t *symint_debug_bytes_slow(struct symint_debug_sections *s, enum symint_debug_id id,
                                       uint64_t offset, uint64_t size)
{
    struct symint_debug_section *d = &s->at[id];
    if (d->failed || d->size == 0 || offset > d->size || size > d->size - offset)
        return NULL;
    if (d->base == NULL)
        start(s, d);
    if (d->base == NULL) /* failed, or no memory */
        return NULL;
    if (size > 0 && d->there != NULL && !fill(s, d, offset / BLOCK, (offset + size - 1) / BLOCK))
        return NULL;
    return d->base + offset;
}

bool symint_debug_peek(struct symint_debug_sections *s, enum symint_debug_id id, uint64_t offset,
                       size_t size, uint8_t *out)
{
    struct symint_debug_section *d = &s->at[id];
    if (offset > d->size || size > d->size - offset)
        return false;
    if (size == 0)
        return true;
    if (d->failed)
        return false;
    if (!d->packed && !d->relocated &&
        (d->there == NULL || (d->there[(offset >> SYMINT_DEBUG_BLOCK_BITS) / 64] >>
                                  ((offset >> SYMINT_DEBUG_BLOCK_BITS) % 64) &
                              1) == 0))
        return read_bytes(s, d, offset, size, out);
    const uint8_t *bytes = symint_debug_bytes(s, id, offset, size);
    if (bytes != NULL)
        memcpy(out, bytes, size);
    return bytes != NULL;
}

const char *symint_debug_text(struct symint_debug_sections *s, enum symint_debug_id id,
                              uint64_t offset, size_t *size)
{
    uint64_t left = offset < s->at[id].size ? s->at[id].size - offset : 0;
    left = left < SYMINT_MAX_DEBUG_TEXT ? left : SYMINT_MAX_DEBUG_TEXT;
    /* Block by block: most texts end in the one that they begin in. */
    for (uint64_t done = 0; done < left;) {
        uint64_t piece = BLOCK - (offset + done) % BLOCK;
        piece = piece < left - done ? piece : left - done;
        const uint8_t *text = symint_debug_bytes(s, id, offset + done, piece);
        if (text == NULL)
            return NULL;
        const uint8_t *nul = memchr(text, 0, (size_t)piece);
        if (nul != NULL) {
            text -= done;
            *size = (size_t)(nul - text);
            return (const char *)text;
        }
        done += piece;
    }
    return NULL;
}

void symint_debug_trim(struct symint_debug_sections *s, enum symint_debug_id id)
{
    struct symint_debug_section *d = &s->at[id];
    if (d->base == NULL || d->there == NULL || d->resident_bytes == 0)
        return;
    madvise(d->base, (size_t)room_of(d->size), MADV_DONTNEED);
    (void)madvise(d->base, (size_t)room_of(d->size), MADV_NOHUGEPAGE);
    uint64_t blocks = (d->size + BLOCK - 1) / BLOCK;
    memset(d->there, 0, (size_t)(blocks + 63) / 64 * sizeof(*d->there));
    memset(d->regions, 0, (size_t)(blocks / REGION_BLOCKS + 1) * sizeof(*d->regions));
    set_resident(s, d, 0);
}

bool symint_debug_is_code_slow(const struct symint_debug_sections *s, uint64_t start, uint64_t end)
{
    size_t low = 0;
    size_t high = s->code_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->code[middle].start <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && start < end && start < s->code[low - 1].end && end <= s->code[low - 1].end;
}
