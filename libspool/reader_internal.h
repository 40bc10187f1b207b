/* SPDX-License-Identifier: MIT */
/* What the snapshot and the tail need of the reader beyond its API. */
#ifndef SPOOLINT_READER_INTERNAL_H
#define SPOOLINT_READER_INTERNAL_H

#include "spool/spool.h"

/* Ends an open reader with SPOOL_ERR_NOMEM: memory for what its user keeps ran out. Returns the code. */
int spoolint_reader_fail_nomem(struct spool_reader *r, const char *what);

/* From now on the modules that a process deactivation retires are listed, in ascending order, until the next one. */
void spoolint_reader_list_retired(struct spool_reader *r);
const uint32_t *spoolint_reader_retired(const struct spool_reader *r, size_t *count);

/* A module by a defined id, also when it is an annotation's. */
const struct spool_module *spoolint_reader_any_module(const struct spool_reader *r, uint32_t id);

/* Takes in what the input has by now without decoding any of it: 1 when there was something, 0, or <0 as
 * spool_reader_next will return it. */
int spoolint_reader_look(struct spool_reader *r);
/* Whether bytes that were taken in have not been decoded: the next record, or a part of it. */
bool spoolint_reader_has_unread(const struct spool_reader *r);

#endif
