/* SPDX-License-Identifier: MIT */
/*
 * Which FDE covers an address: by the search table of .eh_frame_hdr unless it lies, else by a
 * sorted list of the FDEs in .eh_frame; and where that has none, in .debug_frame, which Go has for its own
 * code, and assembly for whatever it likes.
 */
#include "cfi_private.h"

#include <stdlib.h>

/* Sections beyond this are no compiler's; a list of them would cost what a recorder must not. */
#define LIST_BYTES_MAX ((size_t)128 * 1024 * 1024)
#define HEADER_MAX ((size_t)64 * 1024 * 1024)
/* FDEs before the nearest that are looked at: ranges may be empty or lie inside of others. */
#define SEARCH_BACK 4
#define LIST_BACK 64

#define HEADER_VERSION 1
#define HEADER_HEAD 32 /* 4 bytes and two numbers of up to 10 */
#define ENTRY_SIZE 8   /* of the search table: start and FDE, each sdata4 relative to the header */

struct cfi_tables {
    struct cfi_table eh;
    struct cfi_table debug;
    bool debug_opened;
    struct lazy_bytes header;
    uint64_t header_address;
    uint64_t search;     /* offset of the search table in it */
    size_t search_count; /* 0: there is none, or it lies */
    bool search_checked;
};

/* ---- .eh_frame_hdr ---- */

/* Entry i: where a function starts, and its FDE from the start of .eh_frame. False: it cannot be read. */
static bool search_entry(struct cfi_tables *t, size_t i, uint64_t *start, uint64_t *fde)
{
    const uint8_t *p =
        recordint_lazy_get(&t->header, t->search + (uint64_t)i * ENTRY_SIZE, ENTRY_SIZE);
    if (p == NULL)
        return false;
    *start = t->header_address + (uint64_t)(int32_t)get_u32(p);
    *fde = t->header_address + (uint64_t)(int32_t)get_u32(p + 4) - t->eh.address;
    return true;
}

/* Sorted, and every FDE inside .eh_frame. Reads all of it, a megabyte with some libraries: not done before an
 * address is not found, since an FDE that covers its address needs no such witness. */
static bool search_table_holds(struct cfi_tables *t)
{
    uint64_t start;
    uint64_t fde;
    uint64_t before = 0;
    for (size_t i = 0; i < t->search_count; i++) {
        if (!search_entry(t, i, &start, &fde) || fde >= t->eh.bytes.size || start < before)
            return false;
        before = start;
    }
    return true;
}

/* A table that lies is not asked again. */
static void check_search_table(struct cfi_tables *t)
{
    if (!t->search_checked && !search_table_holds(t))
        t->search_count = 0;
    t->search_checked = true;
}

/* The bytes of .eh_frame by its address. Without section headers it ends with its segment at most. */
static void open_eh_frame_at(const struct image *image, struct cfi_tables *t, uint64_t address)
{
    struct image_section section;
    const struct image_segment *segment;
    if (recordint_image_section_at(image, address, &section)) {
        t->eh.exact = recordint_image_lazy(image, section.offset, section.size, &t->eh.bytes);
        t->eh.address = section.address;
    } else if ((segment = recordint_image_segment_at(image, address)) != NULL) {
        uint64_t skipped = address - segment->address;
        recordint_image_lazy(image, segment->offset + skipped, segment->size - skipped,
                             &t->eh.bytes);
        t->eh.address = address;
    }
}

/* Reads version, three encodings, the address of .eh_frame, the count, the table. */
static void open_header(const struct image *image, struct cfi_tables *t)
{
    const struct image_segment *place = &image->eh_frame_hdr;
    if (place->size < 4 || place->size > HEADER_MAX ||
        !recordint_image_lazy(image, place->offset, place->size, &t->header))
        return;
    t->header_address = place->address;
    const uint8_t *bytes = recordint_lazy_get(&t->header, 0, place->size);
    if (bytes == NULL)
        return;
    struct cfi_cursor c = {
        .at = bytes, .end = bytes + place->size, .address = place->address + place->size};
    uint8_t version = cursor_u8(&c);
    uint8_t frame_encoding = cursor_u8(&c);
    uint8_t count_encoding = cursor_u8(&c);
    uint8_t table_encoding = cursor_u8(&c);
    uint64_t eh_frame =
        frame_encoding == POINTER_OMIT ? 0 : cursor_pointer(&c, frame_encoding, t->header_address);
    if (version != HEADER_VERSION || c.bad || eh_frame == 0)
        return;
    open_eh_frame_at(image, t, eh_frame);
    if (t->eh.bytes.size == 0 || count_encoding == POINTER_OMIT ||
        table_encoding != (POINTER_DATAREL | POINTER_SDATA4))
        return;
    uint64_t count = cursor_pointer(&c, count_encoding, t->header_address);
    t->search = (uint64_t)(c.at - bytes);
    if (!c.bad && count <= (place->size - t->search) / ENTRY_SIZE)
        t->search_count = (size_t)count;
}

/* ---- sorted lists ---- */

static int compare_ranges(const void *a, const void *b)
{
    const struct cfi_range *x = a;
    const struct cfi_range *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool add_range(struct cfi_table *t, size_t *capacity, const struct cfi_range *range)
{
    if (t->list_count == *capacity) {
        size_t more = *capacity == 0 ? 64 : *capacity * 2;
        struct cfi_range *list = realloc(t->list, more * sizeof(*list));
        if (list == NULL)
            return false;
        t->list = list;
        *capacity = more;
    }
    t->list[t->list_count++] = *range;
    return true;
}

/* False: no memory. What cannot be understood is left out, and so is what starts at 0, where linkers leave
 * functions they have removed. */
static bool collect_ranges(const struct image *image, struct cfi_table *t)
{
    size_t capacity = 0;
    for (uint64_t at = 0, next; at < t->bytes.size; at = next) {
        struct cfi_fde fde;
        enum cfi_entry kind = recordint_cfi_entry(image, t, at, &fde, &next);
        if (kind == CFI_ENTRY_LOST || (kind == CFI_ENTRY_ZERO && !t->exact))
            break;
        struct cfi_range range = {.start = fde.start, .end = fde.end, .at = at};
        if (kind == CFI_ENTRY_FDE && fde.start != 0 && fde.end > fde.start &&
            !add_range(t, &capacity, &range))
            return false;
    }
    return true;
}

static void sort_ranges(struct cfi_table *t)
{
    uint64_t reach = 0;
    bool sorted = true;
    for (size_t i = 1; i < t->list_count && sorted; i++)
        sorted = compare_ranges(&t->list[i - 1], &t->list[i]) < 0;
    if (!sorted)
        qsort(t->list, t->list_count, sizeof(*t->list), compare_ranges);
    for (size_t i = 0; i < t->list_count; i++) {
        if (t->list[i].end > reach)
            reach = t->list[i].end;
        t->list[i].reach = reach;
    }
}

/* False: no memory; the next call tries again. */
static bool need_list(const struct image *image, struct cfi_table *t)
{
    if (t->listed)
        return true;
    if (t->bytes.size <= LIST_BYTES_MAX && !collect_ranges(image, t)) {
        free(t->list);
        t->list = NULL;
        t->list_count = 0;
        return false;
    }
    sort_ranges(t);
    t->listed = true;
    return true;
}

/* ---- lookup ---- */

/* The row of an FDE, unless its range does not contain the address. */
static enum cfi_result row_of(const struct image *image, struct cfi_table *t, uint64_t at,
                              uint64_t address, struct cfi_row *row)
{
    struct cfi_fde fde;
    uint64_t next;
    if (recordint_cfi_entry(image, t, at, &fde, &next) != CFI_ENTRY_FDE)
        return CFI_BAD;
    if (address < fde.start || address >= fde.end)
        return CFI_NONE;
    return recordint_cfi_run(image, t, &fde, address, row);
}

static enum cfi_result search_row(const struct image *image, struct cfi_tables *t, uint64_t address,
                                  struct cfi_row *row)
{
    size_t low = 0;
    uint64_t start;
    uint64_t fde;
    for (size_t high = t->search_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (!search_entry(t, middle, &start, &fde))
            return CFI_NONE;
        if (start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    enum cfi_result result = CFI_NONE;
    for (size_t i = low; i > 0 && low - i < SEARCH_BACK && result == CFI_NONE; i--) {
        if (!search_entry(t, i - 1, &start, &fde))
            return CFI_NONE;
        result = row_of(image, &t->eh, fde, address, row);
        if (result == CFI_BAD && i < low) /* it may end long before the address */
            return CFI_NONE;
    }
    return result;
}

static enum cfi_result list_row(const struct image *image, struct cfi_table *t, uint64_t address,
                                struct cfi_row *row)
{
    size_t low = 0;
    if (!need_list(image, t))
        return CFI_NONE;
    for (size_t high = t->list_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (t->list[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i > 0 && low - i < LIST_BACK && t->list[i - 1].reach > address; i--)
        if (t->list[i - 1].end > address)
            return row_of(image, t, t->list[i - 1].at, address, row);
    return CFI_NONE;
}

static struct cfi_tables *need_tables(struct image *image)
{
    if (image->cfi != NULL)
        return image->cfi;
    struct cfi_tables *t = calloc(1, sizeof(*t));
    struct image_section section;
    if (t == NULL)
        return NULL;
    image->cfi = t;
    t->eh.eh = true;
    t->debug.exact = true;
    open_header(image, t);
    if (t->eh.bytes.size == 0 && recordint_image_section_named(image, ".eh_frame", &section)) {
        t->eh.exact = recordint_image_lazy(image, section.offset, section.size, &t->eh.bytes);
        t->eh.address = section.address;
    }
    return t;
}

static void open_debug_frame(const struct image *image, struct cfi_tables *t)
{
    if (!t->debug_opened)
        recordint_image_debug_frame(image, &t->debug.bytes, &t->debug.address);
    t->debug_opened = true;
}

enum cfi_result recordint_cfi_row(struct image *image, uint64_t address, struct cfi_row *row)
{
    struct cfi_tables *t = need_tables(image);
    if (t == NULL)
        return CFI_NONE;
    enum cfi_result result = CFI_NONE;
    if (t->search_count > 0) {
        result = search_row(image, t, address, row);
        if (result != CFI_FOUND)
            check_search_table(t);
    }
    if (t->search_count == 0)
        result = list_row(image, &t->eh, address, row);
    row->from_debug_frame = result == CFI_NONE;
    if (result != CFI_NONE)
        return result;
    open_debug_frame(image, t);
    result = list_row(image, &t->debug, address, row);
    row->from_debug_frame = true;
    return result;
}

uint64_t recordint_cfi_work(const struct image *image)
{
    return image->cfi != NULL ? image->cfi->eh.work + image->cfi->debug.work : 0;
}

bool recordint_cfi_next_fde(struct image *image, size_t *at, uint64_t *start, uint64_t *end)
{
    struct cfi_tables *t = need_tables(image);
    struct cfi_fde fde;
    uint64_t entry;
    uint64_t next;
    if (t == NULL)
        return false;
    check_search_table(t);
    while (*at < t->search_count && search_entry(t, (*at)++, start, &entry))
        if (recordint_cfi_entry(image, &t->eh, entry, &fde, &next) == CFI_ENTRY_FDE) {
            *start = fde.start;
            *end = fde.end;
            return true;
        }
    open_debug_frame(image, t);
    if ((t->search_count == 0 && !need_list(image, &t->eh)) || !need_list(image, &t->debug))
        return false;
    size_t eh_count = t->search_count > 0 ? t->search_count : t->eh.list_count;
    if (*at >= eh_count + t->debug.list_count)
        return false;
    const struct cfi_range *range =
        *at < eh_count ? &t->eh.list[*at] : &t->debug.list[*at - eh_count];
    ++*at;
    *start = range->start;
    *end = range->end;
    return true;
}

void recordint_cfi_tables_free(struct cfi_tables *tables)
{
    if (tables == NULL)
        return;
    free(tables->eh.list);
    free(tables->debug.list);
    recordint_lazy_free(&tables->eh.bytes);
    recordint_lazy_free(&tables->debug.bytes);
    recordint_lazy_free(&tables->header);
    free(tables);
}
