/* SPDX-License-Identifier: MIT */
/* Between symbols.c and symbols_kernel.c. Nobody else's. */
#ifndef TOOLS_SYMBOLS_PRIVATE_H
#define TOOLS_SYMBOLS_PRIVATE_H

#include "capture_id.h"
#include "symbols.h"

struct symbols {
    const struct symbol_options *options;
    struct sym_context *context;       /* NULL with --no-symbols */
    char capture[CAPTURE_ID_SIZE];     /* the present one's id; "": not known (yet) */
    struct packed_ids *packed_ids;     /* of that capture; NULL: no manifest has any */
    bool kallsyms;                     /* an archive has some, ... */
    bool kernel_packed;                /* ... or packed kernel symbols of the capture */
    const char *vmlinux;               /* NULL: none that can be used */
    struct spool_reader *reader;       /* of the present input, ... */
    const struct aggregate *aggregate; /* ... and what was counted of it */
    const char *path;                  /* of the input; NULL: standard input */
    bool python_marks;
    bool kernel_loaded;
    bool kallsyms_warned; /* it was complained about: once is enough for all inputs */
    uint32_t *handles;    /* by module id of the present input; SYM_NO_MODULE: not described yet */
    size_t handle_count;
    uint64_t *module_hits; /* with --debuginfod: samples by module id; NULL: not counted */

    /* Of an input that is still being read: */
    bool early;
    bool capture_begun;
    uint32_t generation;
    bool kernel_whole; /* all of a kallsyms is loaded; else what answers `needed` */
    uint64_t *needed;  /* sorted */
    size_t needed_count;
    size_t not_needed;      /* how often other addresses were asked for since */
    size_t loaded_ksymbols; /* of the epochs' events */
    unsigned ksymbol_loads, needed_loads;
    uint32_t *build_id_note; /* by module id: index + 1 of its latest note */
    size_t build_id_notes_seen;
};

/* A word of a note (NULL: there is none); false also when it is "-", which stands for what was not known. */
bool symbols_note_word(const char *note, unsigned index, char *word, size_t size);
/* The release of the kernel that was sampled; false when nothing was noted. */
bool symbols_find_release(const struct notes *notes, char *release, size_t size);

/* Loads what the kernel frames of an input that was read to its end need. 0, or -1 after an error message. */
int symbols_load_kernel(struct symbols *s);
/* Of an input that is still being read: loads what a frame at this address needs and what has come since the last load.
 * The same. */
int symbols_update_kernel(struct symbols *s, uint64_t address);

#endif
