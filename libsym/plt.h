/* SPDX-License-Identifier: MIT */
/* Stubs through which a file calls functions of other files. */
#ifndef SYMINT_PLT_H
#define SYMINT_PLT_H

#include "elf.h"

struct symint_plt_stub {
    uint64_t start;
    uint64_t end;
    uint32_t name; /* offset in names, NUL-terminated: `NAME@plt`, `<plt header>` */
};

struct symint_plt {
    struct symint_plt_stub *stubs; /* ascending, disjoint */
    size_t count;
    char *names;
    size_t names_size;
};

/* Names a function by its address, for slots that a resolver fills (IRELATIVE): what covers the
 * address and begins there. NULL: unknown. */
typedef const char *symint_plt_namer(void *user, uint64_t vaddr, size_t *size);

/* Finds the stubs of a file; symint_elf_read_sections was called before. A file without section
 * headers has none. What is damaged is left out. It takes far fewer reads when e->strings[DYNSYM]
 * is there. The namer may be NULL: names are then like `*ABS*+0x401000@plt`. 0 or SYM_ERR_NOMEM
 * (nothing is kept then). */
int symint_plt_read(const struct symint_elf *e, symint_plt_namer *namer, void *user,
                    struct symint_plt *out);
void symint_plt_free(struct symint_plt *p);

#endif
