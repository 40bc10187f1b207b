/* SPDX-License-Identifier: MIT */
/* All debug information of one program, from the inside. */
#ifndef SYMINT_DWARF_PRIVATE_H
#define SYMINT_DWARF_PRIVATE_H

#include "dwarf.h"
#include "dwarf_function.h"
#include "dwarf_line.h"
#include "dwarf_name.h"

/* Numbers of files; those of split files follow, by skeleton. */
enum { FILE_MAIN, FILE_ALT, FILE_PACKAGE, FILE_SPLIT };

struct symint_dwarf {
    const struct symint_search_options *options;
    struct symint_arena *arena;
    struct dwarf_file main;
    struct dwarf_file alt;
    struct dwarf_file package; /* of split files */
    bool package_tried;
    char *program; /* its path; NULL: that of main */
    uint64_t bias;
    bool listed;               /* units and their ranges are known */
    bool all_listed;           /* those of units that do not state them, too */
    struct symint_segments at; /* owners are units of main */
    size_t near;               /* the segment of the last address */
    struct dwarf_names names;
    struct function_scratch functions;
    struct symint_line_scratch rows;
    struct symint_dwarf_level *levels;
    uint32_t level_capacity;
    struct symint_code_range pieces[2]; /* of the last answer's function, with the bias */
    struct dwarf_unit *newest, *oldest; /* units that take memory */
    uint64_t unit_bytes;                /* that they take */
    uint64_t fixed_bytes;               /* headers and ranges */
    uint64_t limit;
    bool no_memory;      /* for a section of a split file: see symint_debug_sections */
    uint32_t split_open; /* split files with a descriptor */
    const char *detail;
};

/* Opens a file's sections; the file is taken, whatever is returned. 0, SYM_ERR_NOMEM. */
int symint_dwarf_file_open(struct symint_dwarf *d, struct dwarf_file *f,
                           struct symint_debug_file *file, uint32_t number, bool split);
void symint_dwarf_file_close(struct dwarf_file *f);

/* The split unit of a skeleton; NULL: it is not there (d->detail tells) or damaged. *rc: 0 or SYM_ERR_NOMEM. */
struct dwarf_unit *symint_dwarf_full(struct symint_dwarf *d, struct dwarf_unit *skeleton, int *rc);
/* Frees a skeleton's split unit and file. */
void symint_dwarf_drop_full(struct symint_dwarf *d, struct dwarf_unit *skeleton);
/* Frees what was made of a unit. */
void symint_dwarf_drop(struct symint_dwarf *d, struct dwarf_unit *u);

/* Keeps the first text of what went wrong, in the arena. 0 or SYM_ERR_NOMEM. */
int symint_dwarf_note(struct symint_dwarf *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes what is wrong with the sections of a file, if anything is. 0 or SYM_ERR_NOMEM. */
int symint_dwarf_note_sections(struct symint_dwarf *d, const struct dwarf_file *f);

#endif
