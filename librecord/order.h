/* SPDX-License-Identifier: MIT */
/*
 * Merges rings into one order in time: at equal times side-band before samples, then the order in which rings
 * were added. Records later than a round's limit stay where they are; a ring that is nearly full of such
 * records is copied out, so that the kernel finds room.
 */
#ifndef RECORD_ORDER_H
#define RECORD_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perfrec.h"
#include "ring.h"

struct order;

struct order *recordint_order_new(
    const struct perfrec_layout *layout);   /* NULL: out of memory; layout is copied */
void recordint_order_free(struct order *o); /* the rings stay the caller's */

/* Adds or takes away a ring, which must stay where it is meanwhile. Removing drops what was not read.
 * Returns 0, -1: out of memory. */
int recordint_order_add(struct order *o, struct ring *r);
void recordint_order_remove(struct order *o, struct ring *r);

/* Begins a round: takes all heads; records with a time above limit_ns (UINT64_MAX: none) are held back.
 * Records without a time come at once. */
void recordint_order_begin(struct order *o, uint64_t limit_ns);

/* The next record: 1 and *data, *size (valid until the next call), 0 when the round is over (all tails are
 * published then). While a round lasts, tails are published often enough that the kernel is not kept waiting. */
int recordint_order_next(struct order *o, const void **data, size_t *size);

/* Whether any ring or held copy has a record. */
bool recordint_order_pending(const struct order *o);

/* Corrupt records met so far in all rings, removed ones included. */
uint64_t recordint_order_corrupt(const struct order *o);

/* Bytes of records that are now held in copies. */
size_t recordint_order_held_bytes(const struct order *o);

#endif
