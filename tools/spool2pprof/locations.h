/* SPDX-License-Identifier: MIT */
/*
 * The locations of a profile and the functions on their lines. An output frame's label is one
 * level of an inline chain at one address; levels of a chain that stand side by side in a stack are one location.
 * Nearly all chains have one level, whose label then is the location.
 */
#ifndef TOOLS_LOCATIONS_H
#define TOOLS_LOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "envelope.h"
#include "frames.h"
#include "labels.h"
#include "mappings.h"
#include "otree.h"
#include "stringtable.h"

struct locations {
    struct stringtable *strings;
    struct mappings *mappings;
    bool one_line;     /* --inline-locations */
    bool no_inlines;   /* --no-inlines */
    bool unsymbolized; /* no lines but where no back end can find any */

    struct labels labels;   /* struct frame_level each */
    uint32_t *label_places; /* by label: the one of a location with this line alone */
    uint8_t *label_flags;   /* by such a label: MAPPING_* */
    uint32_t *label_ids;    /* by such a label: its id in the document; 0: not there yet */
    size_t label_capacity;
    struct labels functions; /* struct function_key each */
    uint32_t *function_ids;  /* by function; 0: not there yet */
    uint32_t *function_order;
    uint32_t function_count; /* in the document */

    struct labels groups; /* the labels of a location with several lines, leaf first */
    uint32_t *group_ids;  /* by group; 0: not there yet */
    size_t group_capacity;

    struct location_ref *order; /* locations in the document */
    uint32_t count;
    size_t order_capacity;

    uint64_t *ids; /* scratch: of one stack */
    size_t ids_capacity;
    uint32_t *group; /* scratch: of one location */
    size_t group_scratch;
};

/* All end the tool without memory. */
void locations_init(struct locations *l, struct stringtable *strings, struct mappings *mappings);
void locations_free(struct locations *l);

/* The label of an output frame. */
uint32_t locations_label(struct locations *l, const struct out_frame *frame);

/* The ids of a stack's locations, leaf first, in l->ids; returns their number. Locations that are met for the first
 * time get the next ids. */
size_t locations_of_stack(struct locations *l, const struct otree *tree, uint32_t node);

/* Writes all locations that got an id, and the functions and mappings they refer to. To be called once. */
void locations_write(struct locations *l, struct envelope *e);

#endif
