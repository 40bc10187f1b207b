/* SPDX-License-Identifier: MIT */
/* A line table from the inside: dwarf_line_header.c reads header and file names, dwarf_line.c the rows. */
#ifndef SYMINT_DWARF_LINE_PRIVATE_H
#define SYMINT_DWARF_LINE_PRIVATE_H

#include "dwarf_cursor.h"
#include "dwarf_line.h"

/* Where a text is; sections may be trimmed, so that no pointer into one is kept. */
struct line_name {
    uint64_t offset;
    uint32_t directory; /* of a file */
    uint8_t section;    /* enum symint_debug_id; DEBUG_IDS: it has no name we can read */
};

struct line_file {
    struct line_name name;
    bool asked;       /* path is the answer */
    const char *path; /* interned */
};

struct line_names {
    struct line_name *at;
    size_t count, capacity;
};

struct line_files {
    struct line_file *at;
    size_t count, capacity;
};

/* What a row says: line, file and column in one number, or WIDE_FILE and an index of `wide`. */
#define LINE_WIDE_FILE 0xffffu
#define LINE_LAST_COLUMN 0xffffu

struct line_row {
    uint32_t distance; /* from the base of its sequence */
    uint32_t line;
    uint16_t file;
    uint16_t column;
};

/* A sequence, or a piece of one: [start, end) is not in any other. */
struct line_sequence {
    uint64_t start, end;
    uint64_t base; /* address of the first row, not above start */
    uint32_t row;  /* the first of its rows */
    uint32_t count;
};

struct symint_line_table {
    struct symint_debug_sections *sections;
    uint64_t offset;  /* of the table in .debug_line */
    uint64_t size;    /* with the length at its start */
    uint64_t program; /* in the table */
    uint64_t lengths; /* in the table: operands of opcodes 1 up to opcode_base - 1, a byte each */
    uint16_t version;
    uint8_t min_instruction_length;
    uint8_t operations_per_instruction; /* at least 1 */
    int8_t line_base;
    uint8_t line_range;  /* at least 1 */
    uint8_t opcode_base; /* at least 1 */
    bool ran;

    struct line_names directories;
    struct line_files files;

    struct line_row *rows;
    uint32_t row_count;
    struct line_sequence *sequences; /* sorted, disjoint */
    uint32_t sequence_count;
    struct symint_line_row *wide;
    uint32_t wide_count;
};

/* Appends the file of a DW_LNE_define_file or of an old header: name, which begins `offset` bytes into the section,
 * directory, time and size. 0, also when the cursor failed; SYM_ERR_NOMEM. */
int symint_line_add_file(struct symint_line_table *t, struct symint_cursor *c, uint64_t offset);

#endif
