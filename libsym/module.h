/* SPDX-License-Identifier: MIT */
/* The mappings a context knows, and the files behind them: one object per path and build id. */
#ifndef SYMINT_MODULE_H
#define SYMINT_MODULE_H

#include "elf.h"
#include "locate.h"
#include "segments.h"
#include "spool/sym.h"
#include "strtab.h"

struct symint_file {
    const struct symint_text *path;
    const struct symint_text *build_id; /* bytes; empty when unknown */
    bool loaded;
    struct symint_located located;
};

struct symint_jit_name {
    uint64_t start;
    struct symint_text *name;
};

struct symint_module {
    uint32_t file; /* index */
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    bool kernel;
    bool jit;
    bool anonymous;
    bool python_runtime;
    bool placed;      /* segment is known */
    uint32_t segment; /* the executable segment the mapping was made for */
    struct symint_jit_name *names;
    struct symint_segments name_index; /* owners are names */
};

struct symint_registry {
    struct symint_module *modules;
    uint32_t count;
    uint32_t capacity;
    struct symint_file **files; /* in the arena */
    uint32_t file_count;
    uint32_t file_capacity;
    uint32_t *slots;     /* file index + 1, 0: free */
    uint32_t slot_count; /* a power of two or 0 */
};

/* Copies a module. 0, SYM_ERR_NOMEM, SYM_ERR_LIMIT, SYM_ERR_MISUSE. */
int symint_registry_add(struct symint_registry *r, struct symint_strings *s,
                        const struct sym_module *module, uint32_t *handle);
void symint_registry_free(struct symint_registry *r);

/* The recorded JIT name at an absolute address, NULL: none. */
const struct symint_jit_name *symint_module_jit_name(const struct symint_module *m,
                                                     uint64_t address);

/* The module's file, located and read at the first call. NULL: out of memory. */
struct symint_file *symint_module_load(struct symint_registry *r, struct symint_module *m,
                                       struct symint_arena *arena, const char *sysroot);

#endif
