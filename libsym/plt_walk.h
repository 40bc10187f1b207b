/* SPDX-License-Identifier: MIT */
/* The machine code of stubs: where each begins and which memory it jumps through. */
#ifndef SYMINT_PLT_WALK_H
#define SYMINT_PLT_WALK_H

#include <stddef.h>
#include <stdint.h>

enum symint_stub_kind {
    SYMINT_STUB_SLOT,   /* jumps through the memory at `value` */
    SYMINT_STUB_INDEX,  /* pushes `value`, the number of a relocation, for the lazy resolver */
    SYMINT_STUB_HEADER, /* set by the caller: what comes before the first of the others */
    SYMINT_STUB_OTHER   /* not a stub; the one before it ends here */
};

struct symint_stub {
    uint64_t start; /* its first byte, prefixes included */
    uint64_t end;   /* behind its last instruction; nops count, zeros and int3 do not */
    uint64_t value;
    enum symint_stub_kind kind;
};

struct symint_stub_list {
    struct symint_stub *items; /* malloc'ed */
    size_t count;
    size_t capacity;
};

struct symint_plt_code {
    uint16_t machine; /* EM_386, EM_X86_64, EM_AARCH64; any other has no stubs */
    uint64_t mask;    /* of the bits that an address has */
    uint64_t got;     /* what stubs of i386 libraries count from */
    const uint8_t *bytes;
    uint64_t size;
    uint64_t address; /* of the first byte; address + size does not overflow */
};

/* Adds what it finds, in ascending order. 0 or SYM_ERR_NOMEM (the list stays the caller's). */
int symint_plt_walk(const struct symint_plt_code *c, struct symint_stub_list *out);

/* Adds one. 0 or SYM_ERR_NOMEM. */
int symint_stub_add(struct symint_stub_list *l, const struct symint_stub *stub);

#endif
