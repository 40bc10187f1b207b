/* SPDX-License-Identifier: MIT */
/* One line table of .debug_line: versions 2 to 5. */
#ifndef SYMINT_DWARF_LINE_H
#define SYMINT_DWARF_LINE_H

#include "debug_bytes.h"
#include "strtab.h"

struct symint_line_table;

/* Reads the header of the table at an offset. 0 with *out, or *out NULL when it is damaged; SYM_ERR_NOMEM. The sections
 * must live as long; they also say which addresses are code. The address size is no matter: each opcode says its own. */
int symint_line_open(struct symint_debug_sections *s, uint64_t offset, unsigned address_size,
                     struct symint_line_table **out);
void symint_line_free(struct symint_line_table *t);
/* Bytes of the section that the table at an offset has; 0: it is damaged. */
uint64_t symint_line_size(struct symint_debug_sections *s, uint64_t offset);

/* Memory in which a program's rows are collected before they are kept: all zero at first, for any number of tables one
 * after the other. */
struct symint_line_scratch {
    void *rows;
    size_t capacity;
};
void symint_line_scratch_free(struct symint_line_scratch *s);

/* Runs the program and keeps its rows, once. `scratch` NULL: as if it were fresh. 0, also when it is damaged (the
 * sequences before the damage count); SYM_ERR_NOMEM, and it may be tried again. */
int symint_line_rows_with(struct symint_line_table *t, struct symint_line_scratch *scratch);
int symint_line_rows(struct symint_line_table *t);

struct symint_line_row {
    uint32_t file; /* index for symint_line_path */
    uint32_t line; /* 0: unknown */
    uint32_t column;
};

/* The row in force at an address; symint_line_rows was called. False: no sequence covers it. */
bool symint_line_find(const struct symint_line_table *t, uint64_t vaddr,
                      struct symint_line_row *out);

/* The path of a file: comp_dir / directory / file, where absolute parts win; comp_dir NULL: unknown. *path is interned
 * in `strings` (the same ones and the same comp_dir at every call: it is remembered), NULL: the table has no such
 * file or its name cannot be read. 0; SYM_ERR_NOMEM. */
int symint_line_path(struct symint_line_table *t, struct symint_strings *strings,
                     const char *comp_dir, uint32_t file, const char **path);

/* Bytes of memory it takes. */
uint64_t symint_line_bytes(const struct symint_line_table *t);

#endif
