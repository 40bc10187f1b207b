/* SPDX-License-Identifier: MIT */
/*
 * Heads of the entries of .eh_frame and .debug_frame:
 *
 *     CIE  length  id   version  augmentation  (address and segment size)  alignments  return register
 *          (size of augmentation data, data)  initial instructions
 *     FDE  length  pointer to CIE  start  size  (size of augmentation data, data)  instructions
 *
 * A length has 4 bytes, or ffffffff and 8. Only heads are looked at here, so that walking a section costs
 * the same for each entry whatever its length says.
 */
#include "cfi_private.h"

#include <string.h>

/* Of an FDE: length 12, pointer 8, aligning 7, two numbers of 10, size of augmentation data 10. */
#define FDE_HEAD 64
/* Of a CIE: compilers' have 20 and a few letters. */
#define CIE_HEAD 256

#define LENGTH_64 UINT32_MAX       /* a length of 8 bytes follows */
#define LENGTH_RESERVED 0xfffffff0 /* from here on nothing is a length */

/* An entry whose length has been read: the cursor is behind it and ends with the head or the entry. */
struct head {
    struct cfi_cursor c;
    uint64_t body; /* offset behind the length */
    uint64_t end;  /* offset behind the entry */
    bool wide;     /* its length has 8 bytes */
};

static struct cfi_cursor cursor_at(const struct cfi_table *t, const uint8_t *p, uint64_t at,
                                   uint64_t size)
{
    return (struct cfi_cursor){.at = p, .end = p + size, .address = t->address + at + size};
}

static enum cfi_entry read_head(struct cfi_table *t, uint64_t at, uint64_t head_size,
                                struct head *h)
{
    uint64_t rest = at < t->bytes.size ? t->bytes.size - at : 0;
    uint64_t size = rest < head_size ? rest : head_size;
    const uint8_t *p = size < 4 ? NULL : recordint_lazy_get(&t->bytes, at, size);
    if (p == NULL)
        return CFI_ENTRY_LOST;
    h->c = cursor_at(t, p, at, size);
    uint64_t length = cursor_u32(&h->c);
    h->wide = length == LENGTH_64;
    if (h->wide)
        length = cursor_u64(&h->c);
    else if (length >= LENGTH_RESERVED)
        return CFI_ENTRY_LOST;
    h->body = at + (h->wide ? 12 : 4);
    if (h->c.bad || length > t->bytes.size - h->body)
        return CFI_ENTRY_LOST;
    h->end = h->body + length;
    if (length < cursor_left(&h->c)) {
        h->c.address -= cursor_left(&h->c) - length;
        h->c.end = h->c.at + length;
    }
    return length == 0 ? CFI_ENTRY_ZERO : CFI_ENTRY_OTHER;
}

/* The offset of a cursor inside a table's bytes. */
static uint64_t offset_of(const struct cfi_table *t, const struct cfi_cursor *c)
{
    return (uint64_t)(c->at - t->bytes.bytes);
}

static bool is_cie_id(const struct cfi_table *t, uint64_t id, unsigned id_size)
{
    return id == (t->eh ? 0 : id_size == 8 ? UINT64_MAX : UINT32_MAX);
}

static uint64_t take_id(struct cfi_cursor *c, unsigned id_size)
{
    return id_size == 8 ? cursor_u64(c) : cursor_u32(c);
}

/* ---- CIEs ---- */

static uint64_t data_base_of(const struct image *image, struct cfi_table *t)
{
    if (!t->data_base_known) {
        t->data_base_known = true;
        if (!recordint_image_data_base(image, &t->data_base))
            t->data_base = 0;
    }
    return t->data_base;
}

/* Letters up to the first that is not known, which hides what follows; it must not hide how addresses are
 * written. The personality is the language runtime's business: it is only passed over. */
static bool take_augmentation(struct cfi_cursor *c, const char *letters, struct cfi_cie *cie)
{
    bool encoding_known = false;
    for (; *letters != '\0'; letters++) {
        uint8_t encoding;
        switch (*letters) {
        case 'R':
            cie->encoding = cursor_u8(c);
            encoding_known = true;
            break;
        case 'L':
            cursor_u8(c);
            break;
        case 'P':
            encoding = cursor_u8(c);
            if (encoding == POINTER_ALIGNED)
                cursor_align(c);
            if (encoding != POINTER_OMIT)
                cursor_formatted(c, encoding);
            break;
        case 'S':
            cie->signal_frame = true;
            break;
        case 'B': /* AArch64: signed with the other key */
        case 'G': /* AArch64: tagged stack */
            break;
        default:
            return encoding_known && !c->bad;
        }
    }
    return !c->bad;
}

/* What follows the id. */
static bool parse_cie(struct cfi_table *t, struct head *h, struct cfi_cie *cie)
{
    struct cfi_cursor *c = &h->c;
    uint8_t version = cursor_u8(c);
    const uint8_t *nul = memchr(c->at, '\0', cursor_left(c));
    if (nul == NULL || (version != 1 && version != 3 && version != 4))
        return false;
    const char *letters = (const char *)c->at;
    c->at = nul + 1;
    if (version == 4 && (cursor_u8(c) != 8 || cursor_u8(c) != 0))
        return false;
    if (strcmp(letters, "eh") == 0) { /* of GCC 2: an address, and no further letters */
        cursor_u64(c);
        letters = "";
    }
    cie->code_align = cursor_uleb(c);
    cie->data_align = cursor_sleb(c);
    uint64_t reg = version == 1 ? cursor_u8(c) : cursor_uleb(c);
    cie->return_register = reg < UINT32_MAX ? (uint32_t)reg : UINT32_MAX;
    cie->augmented = *letters == 'z';
    uint64_t code = 0;
    if (cie->augmented) {
        uint64_t size = cursor_uleb(c);
        if (c->bad || size > h->end - offset_of(t, c))
            return false;
        code = offset_of(t, c) + size;
        letters++;
    }
    if (!take_augmentation(c, letters, cie))
        return false;
    if (!cie->augmented)
        code = offset_of(t, c);
    cie->code = (struct cfi_code){code, h->end - code};
    return cie->code.size <= CFI_PROGRAM_MAX;
}

static void read_cie(const struct image *image, struct cfi_table *t, uint64_t at,
                     struct cfi_cie *cie)
{
    struct head h;
    cie->key = at + 1;
    cie->usable = cie->started = cie->start_fails = cie->signal_frame = false;
    cie->encoding = POINTER_ABSPTR;
    if (read_head(t, at, CIE_HEAD, &h) != CFI_ENTRY_OTHER)
        return;
    /* In .eh_frame the id of a wide CIE has 4 bytes by the LSB and 8 by binutils. */
    cie->id_size = 4;
    if (h.wide && (!t->eh || (cursor_left(&h.c) >= 8 && get_u64(h.c.at) == 0)))
        cie->id_size = 8;
    if (!is_cie_id(t, take_id(&h.c, cie->id_size), cie->id_size) || h.c.bad)
        return;
    cie->usable = parse_cie(t, &h, cie);
    if ((cie->encoding & POINTER_BASE) == POINTER_DATAREL && data_base_of(image, t) == 0)
        cie->usable = false;
}

/* NULL: there is none that can be used. */
static struct cfi_cie *find_cie(const struct image *image, struct cfi_table *t, uint64_t at)
{
    if (at >= t->bytes.size)
        return NULL;
    struct cfi_cie *cie = &t->cies[at / 4 % CFI_CIES];
    if (cie->key != at + 1)
        read_cie(image, t, at, cie);
    return cie->usable ? cie : NULL;
}

/* ---- FDEs ---- */

/* The CIE that an FDE points to with an id of so many bytes, and the cursor behind the id. */
static struct cfi_cie *cie_of(const struct image *image, struct cfi_table *t, struct head *h,
                              unsigned id_size)
{
    uint64_t id = take_id(&h->c, id_size);
    if (h->c.bad || is_cie_id(t, id, id_size) || (t->eh && id > h->body))
        return NULL;
    struct cfi_cie *cie = find_cie(image, t, t->eh ? h->body - id : id);
    return cie != NULL && (!h->wide || !t->eh || cie->id_size == id_size) ? cie : NULL;
}

static bool parse_fde(const struct image *image, struct cfi_table *t, struct head *h,
                      struct cfi_fde *fde)
{
    struct cfi_cursor *c = &h->c;
    struct head again = *h;
    fde->cie = cie_of(image, t, h, h->wide ? 8 : 4);
    if (fde->cie == NULL && h->wide && t->eh) {
        *h = again;
        fde->cie = cie_of(image, t, h, 4);
    }
    if (fde->cie == NULL)
        return false;
    fde->start = cursor_pointer(c, fde->cie->encoding, t->data_base);
    uint64_t size = cursor_formatted(c, fde->cie->encoding == POINTER_ALIGNED ? POINTER_ABSPTR
                                                                              : fde->cie->encoding);
    if (c->bad || size > UINT64_MAX - fde->start)
        return false;
    fde->end = fde->start + size;
    uint64_t skipped = fde->cie->augmented ? cursor_uleb(c) : 0;
    uint64_t code = offset_of(t, c);
    if (c->bad || skipped > h->end - code)
        return false;
    fde->code = (struct cfi_code){code + skipped, h->end - code - skipped};
    return fde->code.size <= CFI_PROGRAM_MAX;
}

enum cfi_entry recordint_cfi_entry(const struct image *image, struct cfi_table *table, uint64_t at,
                                   struct cfi_fde *fde, uint64_t *next)
{
    struct head h;
    enum cfi_entry kind = read_head(table, at, FDE_HEAD, &h);
    if (kind == CFI_ENTRY_LOST)
        return kind;
    *next = h.end;
    if (kind == CFI_ENTRY_OTHER && parse_fde(image, table, &h, fde))
        kind = CFI_ENTRY_FDE;
    return kind;
}
