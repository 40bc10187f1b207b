/* SPDX-License-Identifier: MIT */
/* The mappings a context knows, and the files behind them: one object per path and build id. */
#ifndef SYMINT_MODULE_H
#define SYMINT_MODULE_H

#include "live.h"
#include "locate.h"
#include "packed.h"
#include "segments.h"
#include "spool/sym.h"
#include "strtab.h"

/* An ELF file that was looked for. Files whose build id is the same share it. */
struct symint_image {
    struct symint_located located;
    struct symint_file *shared;   /* the file that stands for its build id; NULL: none */
    const struct symint_file *by; /* the file that found it, and finds it again */
    uint32_t users;               /* files */
    uint32_t serial;              /* which reading of the file this is */
    uint64_t index_bytes;
    uint64_t bytes;           /* with the debug information, as they count in the total */
    const char *detail;       /* located.detail and what lookups found out; in the arena */
    const char *dwarf_detail; /* that it was made of */
    struct symint_image *next, *previous; /* of those that have an index */
};

/* What a capture calls one file. For each build id there is one more, without a path, that knows
 * the image which all files of that build share, and packed symbols. */
struct symint_file {
    const struct symint_text *path;
    const struct symint_text *build_id; /* bytes; empty when unknown */
    struct symint_wanted wanted;        /* path and build_id are set when it is needed */
    uint64_t root_id;                   /* of the process, see live.h */
    uint32_t capture;                   /* which only it can find that file; 0: any can */
    bool assumed;                       /* the build id was not recorded */
    struct symint_file *shared;         /* that of its build id; NULL: no build id */
    struct symint_image *image;         /* NULL: not looked for yet */
    uint32_t generation;                /* counts invalidations */
    struct symint_packed_set packed;    /* of a build id, ... */
    bool packed_loaded;                 /* ... once this is true */
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
    uint32_t placed; /* serial of the image that place is about; 0: none */
    struct symint_place place;
    struct symint_jit_name *names;
    struct symint_segments name_index; /* owners are names */
};

#define MAX_PACKED_FAULTS 64 /* that are told */

struct symint_registry {
    struct symint_module *modules;
    uint32_t count;
    size_t capacity;
    struct symint_file **files; /* in the arena */
    uint32_t file_count;
    size_t file_capacity;
    uint32_t *slots;      /* file index + 1, 0: free */
    uint32_t slot_count;  /* a power of two or 0 */
    uint64_t table_bytes; /* of all images */
    uint64_t memory_limit_bytes;
    uint32_t dwarf_count; /* images with debug information */
    uint32_t dwarf_limit;
    struct symint_arena *arena;            /* for details; set by the first load */
    const char *faults[MAX_PACKED_FAULTS]; /* of packed symbols, in the arena */
    size_t fault_count;
    uint32_t serial;
    int load_error;              /* why the latest symint_module_load returned NULL */
    struct symint_image *images; /* those that have an index, the last used first */
};

/* Copies a module. `live` describes its process, `capture` numbers the capture of this boot that it
 * is from, 0: of another. 0, SYM_ERR_NOMEM, SYM_ERR_LIMIT,
 * SYM_ERR_MISUSE. */
int symint_registry_add(struct symint_registry *r, struct symint_strings *s,
                        const struct sym_module *module, const struct symint_live *live,
                        uint32_t capture, uint32_t *handle);
void symint_registry_free(struct symint_registry *r);

/* The recorded JIT name at an absolute address, NULL: none. */
const struct symint_jit_name *symint_module_jit_name(const struct symint_module *m,
                                                     uint64_t address);

/* The module's image, located and read when it is not there, and the module's place in it. Other
 * images lose their index when there are too many. NULL: an error, in load_error. Valid until the next
 * call. */
struct symint_image *symint_module_load(struct symint_registry *r, struct symint_strings *s,
                                        struct symint_module *m,
                                        const struct symint_search_options *options);

/* Keeps what is wrong with packed symbols that were loaded, each thing once. 0 or SYM_ERR_NOMEM. */
int symint_keep_packed_fault(struct symint_registry *r, struct symint_arena *arena,
                             const struct symint_packed_set *set);

/* Loads the packed symbols of the module's file, once. Whether there are some; SYM_ERR_NOMEM. */
int symint_module_load_packed(struct symint_registry *r, struct symint_strings *s,
                              struct symint_module *m, const struct symint_search_options *options);

/* To be called after a lookup in an image's debug information, which grows with lookups: other
 * images are dropped when it comes to too much, and its detail is kept. */
void symint_image_account(struct symint_registry *r, struct symint_image *image);

/* Forgets what is known of a file. */
void symint_file_invalidate(struct symint_registry *r, struct symint_file *f);

#endif
