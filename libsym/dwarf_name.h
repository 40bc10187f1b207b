/* SPDX-License-Identifier: MIT */
/* What DWARF calls a function, and where it is declared. */
#ifndef SYMINT_DWARF_NAME_H
#define SYMINT_DWARF_NAME_H

#include "dwarf_unit.h"
#include "strtab.h"

struct dwarf_name {
    struct symint_text *text; /* NULL: it has none */
    uint32_t start_line;      /* 0: unknown */
    bool linkage;
};

struct name_slot {
    uint64_t key; /* 0: free */
    struct dwarf_name *name;
};

/* A namespace, type or function around others in a unit. Offsets are in the unit. */
struct name_scope {
    uint32_t start, end;
    uint32_t parent; /* NAME_NO_SCOPE: none */
    bool named;      /* its name qualifies: not a function's */
    bool passed;     /* what is in it was not looked at */
};
#define NAME_NO_SCOPE UINT32_MAX

/* The scopes of the unit whose names were asked for last. */
struct name_outline {
    uint32_t file; /* number; with offset it says which unit */
    uint64_t offset;
    bool built;
    struct name_scope *scopes; /* ascending start */
    uint32_t count;
    size_t capacity;
};

/* Names by entry, which stay until all are freed. Starts as {0}. */
struct dwarf_names {
    struct name_slot *slots;
    size_t count, capacity; /* a power of two or 0 */
    struct symint_arena arena;
    struct name_outline outline;
    uint64_t work; /* done for scopes: see MAX_SCOPE_WORK */
};
void symint_names_free(struct dwarf_names *n);
/* Forgets what is known of a file's units, but for names: another one may take its number. */
void symint_names_forget(struct dwarf_names *n, const struct dwarf_file *f);

/* Where a value that refers to an entry leads. False: nowhere. *rc: 0 or SYM_ERR_NOMEM. */
bool symint_entry_follow(struct dwarf_unit *u, const struct dwarf_value *v, struct dwarf_entry *to,
                         int *rc);

/* The name of the function that an entry stands for: that of its abstract origin or specification, if it has one. 0 with
 * *out, whose text may be NULL; SYM_ERR_NOMEM. */
int symint_name_find(struct dwarf_names *n, struct symint_strings *strings,
                     const struct dwarf_entry *entry, const struct dwarf_name **out);

#endif
