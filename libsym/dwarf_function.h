/* SPDX-License-Identifier: MIT */
/*
 * The functions of a unit and what is inlined in them. A unit is read in two steps: which
 * functions it has, and, once an address is in one, that one's tree of inlined calls. Most functions of a program are
 * never asked for.
 */
#ifndef SYMINT_DWARF_FUNCTION_H
#define SYMINT_DWARF_FUNCTION_H

#include "dwarf_unit.h"
#include "segments.h"

struct dwarf_name;

#define FUNCTION_NO_NODE UINT32_MAX

/* The function itself (node 0), or a call that is inlined in it. */
struct function_node {
    uint32_t entry;                  /* offset in the unit */
    uint32_t parent;                 /* FUNCTION_NO_NODE: none */
    uint32_t call_file;              /* an index of the line table's */
    uint32_t call_line, call_column; /* 0: unknown */
    bool has_call_file;
    uint8_t origin_kind;           /* enum value_kind: what origin is */
    uint64_t origin;               /* the entry that says what is called here */
    const struct dwarf_name *name; /* NULL: not asked for yet */
};

/* One piece of memory. */
struct function_tree {
    uint32_t node_count;
    uint32_t piece_count;
    struct function_node *nodes;
    struct symint_segments segments;  /* owners are nodes */
    struct symint_code_range *pieces; /* of the function, by start */
};

struct unit_index {
    struct symint_segments segments; /* owners are functions */
    size_t near;                     /* the segment of the last address */
    uint32_t *entries;               /* of functions: offset in the unit */
    struct function_tree **trees;    /* of functions: NULL before it is asked for */
    uint32_t function_count;
    bool complete;         /* functions in functions were looked for, too */
    bool broken;           /* damage was met behind what is here */
    uint64_t bytes;        /* that all of it takes */
    uint64_t work, budget; /* bytes of entries and lists read so far, and how many may be */
};

/* Room that reading trees uses again and again. Starts as {0}. */
struct found_range;
struct open_node;
struct function_scratch {
    struct function_node *nodes;
    size_t node_capacity;
    struct found_range *found;
    size_t found_capacity;
    struct found_range *merged;
    size_t merged_capacity;
    struct open_node *open;
    size_t open_capacity;
    struct symint_segments segments;
    struct symint_range *stack;
    size_t segment_capacity;
    struct range_list ranges;
};
void symint_function_scratch_free(struct function_scratch *s);

/* Finds the functions of a unit; of an incomplete index those in other functions too, again. 0, also for a damaged unit,
 * of which what comes before the damage counts; SYM_ERR_NOMEM. */
int symint_functions_read(struct dwarf_unit *u);
void symint_functions_free(struct unit_index *x);
/* Frees the trees of a unit that were read, if they take more than the rest. */
void symint_functions_trim(struct dwarf_unit *u);

/* The tree of the function that has an address. With `thorough`, functions in functions are looked for, too, when no
 * other has it. 0 with *out, NULL: no function has it; SYM_ERR_NOMEM. */
int symint_function_find(struct dwarf_unit *u, struct function_scratch *scratch, uint64_t vaddr,
                         bool thorough, struct function_tree **out);

#endif
