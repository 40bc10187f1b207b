/* SPDX-License-Identifier: MIT */
/*
 * The mappings of a profile. A file that several processes or inputs have mapped is one
 * mapping, the range seen first, and addresses of the others are moved there. pprof does the same when it merges.
 */
#ifndef TOOLS_MAPPINGS_H
#define TOOLS_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "frames.h"
#include "labels.h"
#include "stacks.h"
#include "stringtable.h"

#define MAPPINGS_NONE UINT32_MAX

/* What a location tells of its mapping. */
enum {
    MAPPING_NAMED = 1 << 0, /* a real symbol */
    MAPPING_FILE_NAME = 1 << 1,
    MAPPING_LINE = 1 << 2,
    MAPPING_DWARF = 1 << 3 /* inlined functions would be shown */
};

struct mapping {
    uint64_t start, limit, file_offset;
    uint32_t filename, build_id; /* texts */
    bool pseudo;                 /* stands for no range of a process: last in the document */
    bool symbolizable;           /* a back end may find names for it */
    bool used;
    uint32_t flags; /* MAPPING_* of its locations in the document */
    uint32_t id;    /* in the document; 0: not (yet) there */
};

struct mappings {
    struct stringtable *strings;
    const struct trim_list *trim_paths;
    struct mapping *items;
    size_t capacity;
    uint32_t count;
    struct labels keys; /* struct mapping_key each; the number is the mapping's */
    uint32_t *used;     /* in the order of first use */
    uint32_t used_count;
    size_t used_capacity;

    const struct stacks_input *input; /* the one that is added */
    uint32_t *by_module;              /* of that input: its mapping, or MAPPINGS_NONE as yet */
    struct main_module *mains;        /* of that input: ascending process id */
    size_t main_count;
    int32_t process; /* the one that is counted */
    bool has_process;
    uint32_t process_main;    /* its main binary, or MAPPINGS_NONE */
    uint64_t process_samples; /* so far */
    uint32_t main;            /* the main binary of the process with most samples so far */
    uint64_t main_samples;
    struct text_buffer text, path; /* scratch */
};

/* All end the tool without memory. */
void mappings_init(struct mappings *m, struct stringtable *strings,
                   const struct trim_list *trim_paths);
void mappings_free(struct mappings *m);

/* Frames and samples from here on are of this input. */
void mappings_begin(struct mappings *m, const struct stacks_input *input);

/* The mapping of a frame, and the frame's address in it. */
uint32_t mappings_of_frame(struct mappings *m, const struct out_frame *frame, uint64_t *address);

/* Samples of a process, whose cells come behind each other: for the choice of the main binary. */
void mappings_count(struct mappings *m, int32_t pid, uint64_t samples);

/* A location of it is in the document. */
void mappings_use(struct mappings *m, uint32_t mapping, uint32_t flags);

/* Gives out the ids, once all uses are known: m->used is in the order of the document then. */
void mappings_number(struct mappings *m);

#endif
