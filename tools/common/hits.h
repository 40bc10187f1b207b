/* SPDX-License-Identifier: MIT */
/* How many samples hit each module, for what is worth some work only where it is seen often. */
#ifndef TOOLS_HITS_H
#define TOOLS_HITS_H

#include <stdint.h>

#include "aggregate.h"
#include "spool/spool.h"

/* By module id: samples that count and whose stack has a frame in the module's file, whichever process has mapped it;
 * a sample counts once for a file. malloc'ed, the caller's. Of an input that was read to its end and counted. */
uint64_t *hits_count(struct spool_reader *reader, const struct aggregate *a);

#endif
