/* SPDX-License-Identifier: MIT */
/*
 * Stubs are found by reading a section instruction by instruction: a search for the bytes of a jump
 * would also find them inside the numbers of other instructions. Only the instructions that linkers
 * (ld, gold, lld, mold) put there are known.
 *
 * x86, all sizes; [] is what only some have:
 *
 *     [endbr] [mov $index, %r11d] [bnd] jmp *slot  [push $index; jmp header]  [nop...]
 *     [endbr] push $index; [bnd] jmp header                                    what .plt.sec goes with
 *     [push %eax] mov slot, %r11/%eax; [call ...] jmp ... [push $index; jmp header]      retpolines
 *     push GOT[1]; jmp *GOT[2], or mov GOT[2], ... for a retpoline             the header
 *
 * AArch64:
 *
 *     [bti c] adrp x16, page; ldr x17, [x16, #offset]; add; [autia1716] br x17  [nop...]
 *     [bti c] stp x16, x30, [sp, #-16]!; adrp x16; ldr x17; add; br x17         the header
 */
#include "plt_walk.h"

#include "spool/sym.h"
#include "strtab.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>

#define LONGEST_INSTRUCTION 15 /* of x86 */
#define NOWHERE UINT64_MAX

int symint_stub_add(struct symint_stub_list *l, const struct symint_stub *stub)
{
    struct symint_stub *items = symint_grow(l->items, l->count, &l->capacity, sizeof(*items), 64);
    if (items == NULL)
        return SYM_ERR_NOMEM;
    l->items = items;
    l->items[l->count++] = *stub;
    return 0;
}

/* Code is little endian on all these machines, also where data is not. */
static uint32_t little32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- x86 ---- */

enum step_kind {
    UNKNOWN,
    ENDBR,       /* begins the stub that comes next */
    PREFIX,      /* begins or continues it */
    THROUGH,     /* jumps through memory, or loads what will be jumped to */
    PUSH_NUMBER, /* of a relocation */
    PUSH_MEMORY, /* how a header begins */
    NEUTRAL,
    NOP,
    INT3
};

struct step {
    enum step_kind kind;
    size_t size;
    uint64_t value;
};

/* The size of an operand, whose first byte is p[0]; above `left` when it is cut. */
static size_t operand_size(const uint8_t *p, size_t left)
{
    if (left == 0)
        return 1;
    unsigned mode = p[0] >> 6;
    unsigned base = p[0] & 7;
    size_t size = 1;
    if (mode != 3 && base == 4) {
        if (left < 2)
            return 2;
        base = p[1] & 7;
        size = 2;
    }
    if (mode == 1)
        size += 1;
    else if (mode == 2 || (mode == 0 && base == 5))
        size += 4;
    return size;
}

/* The address in an operand that is a slot: of fixed place, or counted from the GOT. These forms
 * have four more bytes. */
static bool slot_operand(const struct symint_plt_code *c, const uint8_t *p, uint64_t next,
                         uint8_t fixed, uint8_t from_got, uint64_t *slot)
{
    uint64_t base;
    if (p[0] == fixed)
        base = c->machine == EM_X86_64 ? next : 0;
    else if (p[0] == from_got && c->machine == EM_386)
        base = c->got;
    else
        return false;
    *slot = (base + (uint64_t)(int64_t)(int32_t)little32(p + 1)) & c->mask;
    return true;
}

static struct step decode_two_byte(const uint8_t *p, size_t at, size_t left, bool repeat)
{
    struct step s = {.kind = UNKNOWN};
    if (at + 1 >= left)
        return s;
    uint8_t operand = p[at + 1];
    s.size = at + 1 + operand_size(p + at + 1, left - at - 1);
    if (p[at] == 0x1e && repeat && (operand == 0xfa || operand == 0xfb))
        s.kind = ENDBR; /* endbr64, endbr32 */
    else if (p[at] == 0x1f)
        s.kind = NOP;
    else if (p[at] == 0xae && operand == 0xe8)
        s.kind = NEUTRAL; /* lfence */
    return s;
}

/* The instructions with an operand behind one opcode byte, at p[at - 1]. */
static struct step decode_operand(const struct symint_plt_code *c, const uint8_t *p, size_t at,
                                  size_t left, uint8_t rex, uint64_t address)
{
    struct step s = {.kind = NEUTRAL, .size = at + operand_size(p + at, left - at)};
    if (s.size > left)
        return s;
    uint64_t next = address + s.size;
    switch (p[at - 1]) {
    case 0x8b: /* mov: of a retpoline */
        if (c->machine == EM_386 ? slot_operand(c, p + at, next, 0x05, 0x83, &s.value)
                                 : rex == 0x4c && slot_operand(c, p + at, next, 0x1d, 0, &s.value))
            s.kind = THROUGH;
        break;
    case 0xff:
        switch (p[at] >> 3 & 7) {
        case 2: /* call */
            break;
        case 4: /* jmp */
            if (slot_operand(c, p + at, next, 0x25, 0xa3, &s.value))
                s.kind = THROUGH;
            break;
        case 6:
            s.kind = PUSH_MEMORY;
            break;
        default:
            s.kind = UNKNOWN;
        }
        break;
    default: /* mov, lea */
        break;
    }
    return s;
}

/* One instruction: UNKNOWN, or its kind and size. */
static struct step decode(const struct symint_plt_code *c, uint64_t offset)
{
    const uint8_t *p = c->bytes + offset;
    uint64_t rest = c->size - offset;
    size_t left = rest < LONGEST_INSTRUCTION ? (size_t)rest : LONGEST_INSTRUCTION;
    bool i386 = c->machine == EM_386;
    struct step s = {.kind = UNKNOWN};
    size_t at = 0;
    uint8_t rex = 0;
    while (at < left && (p[at] == 0x66 || p[at] == 0x2e || p[at] == 0xf2 || p[at] == 0xf3))
        at++;
    bool repeat = at > 0 && p[at - 1] == 0xf3;
    if (!i386 && at < left && (p[at] & 0xf0) == 0x40)
        rex = p[at++];
    if (at >= left)
        return s;
    uint8_t opcode = p[at++];
    s.size = at;
    switch (opcode) {
    case 0x0f:
        s = decode_two_byte(p, at, left, repeat);
        break;
    case 0x90: /* also pause */
        s.kind = NOP;
        break;
    case 0xcc:
        s.kind = INT3;
        break;
    case 0xc3: /* ret */
        s.kind = NEUTRAL;
        break;
    case 0x68:
        s.kind = PUSH_NUMBER;
        s.size += 4;
        break;
    case 0xe8: /* call */
    case 0xe9: /* jmp */
        s.kind = NEUTRAL;
        s.size += 4;
        break;
    case 0xeb:
        s.kind = NEUTRAL;
        s.size += 1;
        break;
    case 0xa1: /* mov from an address to %eax */
        if (i386) {
            s.kind = THROUGH;
            s.size += 4;
        }
        break;
    case 0x89:
    case 0x8b:
    case 0x8d:
    case 0xff:
        s = decode_operand(c, p, at, left, rex, c->address + offset);
        break;
    default:
        if ((opcode & 0xf0) == 0x50) { /* push and pop; push %eax begins a retpoline */
            s.kind = i386 && opcode == 0x50 ? PREFIX : NEUTRAL;
        } else if ((opcode & 0xf8) == 0xb8 && (rex & 8) == 0) { /* mov of a number */
            s.kind = PREFIX;
            s.size += 4;
        }
        break;
    }
    if (s.size > left)
        s.kind = UNKNOWN;
    else if (s.kind == PUSH_NUMBER || (s.kind == THROUGH && opcode == 0xa1))
        s.value = little32(p + at);
    return s;
}

/* Where a walk is. */
struct walk {
    uint64_t begin;  /* of prefixes just before, NOWHERE: none */
    bool in_header;  /* the next jump through memory is to the lazy resolver */
    bool may_push;   /* a number pushed now is the current stub's own */
    bool extensible; /* an instruction now belongs to the last in the list */
};

static int begin_stub(struct walk *w, struct symint_stub_list *out, enum symint_stub_kind kind,
                      uint64_t at, uint64_t value)
{
    uint64_t start = w->begin != NOWHERE ? w->begin : at;
    w->extensible = kind != SYMINT_STUB_OTHER;
    return symint_stub_add(
        out, &(struct symint_stub){.start = start, .end = start, .value = value, .kind = kind});
}

/* A header, or unknown bytes: whatever they are, they are not the stub before them. */
static int end_stub(struct walk *w, struct symint_stub_list *out, uint64_t at)
{
    bool open = w->extensible;
    w->begin = NOWHERE;
    return open ? begin_stub(w, out, SYMINT_STUB_OTHER, at, 0) : 0;
}

/* What one instruction, not UNKNOWN, means where it stands. */
static int take(struct walk *w, struct symint_stub_list *out, const struct step *s, uint64_t at)
{
    int rc = 0;
    switch (s->kind) {
    case THROUGH:
        if (!w->in_header) {
            rc = begin_stub(w, out, SYMINT_STUB_SLOT, at, s->value);
            w->may_push = true;
        }
        w->in_header = false;
        break;
    case PUSH_NUMBER:
        if (w->begin != NOWHERE || !w->may_push)
            rc = begin_stub(w, out, SYMINT_STUB_INDEX, at, s->value);
        w->may_push = false;
        break;
    case PUSH_MEMORY:
        rc = end_stub(w, out, at);
        w->in_header = true;
        w->may_push = false;
        break;
    case NOP:
    case INT3:
        w->in_header = false;
        w->may_push = false;
        break;
    default:
        break;
    }
    if (rc == 0 && w->extensible && s->kind != INT3 && s->kind != PREFIX && s->kind != ENDBR)
        out->items[out->count - 1].end = at + s->size;
    return rc;
}

static int walk_x86(const struct symint_plt_code *c, struct symint_stub_list *out)
{
    struct walk w = {.begin = NOWHERE};
    int rc = 0;
    for (uint64_t offset = 0; rc == 0 && offset < c->size;) {
        uint64_t at = c->address + offset;
        struct step s = decode(c, offset);
        if (s.kind == UNKNOWN) {
            if (c->bytes[offset] != 0)
                rc = end_stub(&w, out, at);
            w = (struct walk){.begin = NOWHERE, .extensible = w.extensible};
            offset += 8 - at % 8;
            continue;
        }
        rc = take(&w, out, &s, at);
        if (s.kind == ENDBR || (s.kind == PREFIX && w.begin == NOWHERE))
            w.begin = at;
        else if (s.kind != PREFIX)
            w.begin = NOWHERE;
        offset += s.size;
    }
    return rc;
}

/* ---- AArch64 ---- */

#define BTI_C 0xd503245fu
#define NOP_A64 0xd503201fu
#define AUTIA1716 0xd503219fu
#define STP_X16_X30 0xa9bf7bf0u
#define STP_X2_X3 0xa9bf0fe2u /* how the stub for TLS descriptors begins */
#define BR_X17 0xd61f0220u
#define BRAA_X17_X16 0xd71f0a30u

static int walk_aarch64(const struct symint_plt_code *c, struct symint_stub_list *out)
{
    struct walk w = {.begin = NOWHERE};
    uint64_t page = NOWHERE;
    uint64_t slot = NOWHERE;
    int rc = 0;
    for (uint64_t offset = 0; rc == 0 && c->size - offset >= 4; offset += 4) {
        uint64_t at = c->address + offset;
        uint32_t code = little32(c->bytes + offset);
        uint64_t number = code >> 10 & 0xfff;
        if (code == BTI_C) {
            w.begin = at;
            page = NOWHERE;
            slot = NOWHERE;
        } else if ((code & 0x9f00001f) == 0x90000010) { /* adrp x16 */
            if (w.begin == NOWHERE || w.begin + 4 != at)
                w.begin = at;
            uint64_t pages = (code >> 5 & 0x7ffff) << 2 | (code >> 29 & 3);
            if (pages >= 1 << 20)
                pages -= 1 << 21;
            page = (at & ~(uint64_t)0xfff) + (pages << 12);
            slot = NOWHERE;
        } else if ((code & 0xffc003ff) == 0xf9400211 && page != NOWHERE) { /* ldr x17, [x16] */
            slot = (page + number * 8) & c->mask;
        } else if ((code & 0xffc003ff) == 0xb9400211 && page != NOWHERE) { /* ldr w17, [x16] */
            slot = (page + number * 4) & c->mask;
        } else if ((code & 0x7f8003ff) == 0x11000210 || code == AUTIA1716) { /* add x16, x16 */
            continue;
        } else if (code == BR_X17 || code == BRAA_X17_X16) {
            if (slot != NOWHERE && !w.in_header)
                rc = begin_stub(&w, out, SYMINT_STUB_SLOT, at, slot);
            if (rc == 0 && w.extensible)
                out->items[out->count - 1].end = at + 4;
            w.in_header = false;
            w.begin = NOWHERE;
            page = NOWHERE;
            slot = NOWHERE;
        } else if (code == STP_X16_X30 || code == STP_X2_X3) {
            rc = end_stub(&w, out, at);
            w.in_header = true;
        } else {
            if (code == NOP_A64 && w.extensible)
                out->items[out->count - 1].end = at + 4;
            else if (code != NOP_A64 && code != 0)
                rc = end_stub(&w, out, at);
            w = (struct walk){.begin = NOWHERE, .extensible = w.extensible};
            page = NOWHERE;
            slot = NOWHERE;
        }
    }
    return rc;
}

int symint_plt_walk(const struct symint_plt_code *c, struct symint_stub_list *out)
{
    switch (c->machine) {
    case EM_386:
    case EM_X86_64:
        return walk_x86(c, out);
    case EM_AARCH64:
        return walk_aarch64(c, out);
    default:
        return 0;
    }
}
