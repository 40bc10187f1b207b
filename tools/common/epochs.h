/* SPDX-License-Identifier: MIT */
/*
 * Kernel code that comes and goes while samples are taken (BPF programs, `ksymbol` annotations): what is at an address
 * depends on when it is asked. Time is cut into epochs, and an epoch ends only where an annotation could change the
 * name of a kernel frame that the spool has defined already: without such frames all of it is one epoch.
 */
#ifndef TOOLS_EPOCHS_H
#define TOOLS_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"
#include "spool/sym.h"

struct epoch_slot {
    uint64_t key;
    uint64_t value; /* 0: free */
};

/* An open hash. */
struct epoch_map {
    struct epoch_slot *slots;
    size_t count, capacity;
};

struct page_range {
    uint64_t first, last;
};

/* Starts as {0}. */
struct epochs {
    uint32_t now;               /* the present epoch, 0 for the first */
    struct sym_ksymbol *events; /* in file order; time is the epoch, names are the reader's */
    size_t event_count, event_capacity;
    struct page_range *ranges; /* of the events; ascending and disjoint after epochs_finish */
    size_t range_count, range_capacity;
    struct epoch_map pages;   /* that have kernel frames among the first frames_seen */
    struct epoch_map extents; /* last page + 1 of what was last registered, by its address */
    uint32_t frames_seen;
};

/* Takes a `ksymbol` annotation in. Whether a new epoch begins with it. Ends the tool without memory. */
bool epochs_record(struct epochs *e, const struct spool_reader *reader,
                   const struct spool_annotation *a);

/* To be called once all records were seen. */
void epochs_finish(struct epochs *e);

/* After epochs_finish: whether the name of a kernel address may differ between epochs. */
bool epochs_differ(const struct epochs *e, uint64_t address);

void epochs_free(struct epochs *e);

#endif
