/* SPDX-License-Identifier: MIT */
/* What the snapshot needs of the reader beyond its API. */
#ifndef SPOOLINT_READER_INTERNAL_H
#define SPOOLINT_READER_INTERNAL_H

#include "spool/spool.h"

/* Ends an open reader with SPOOL_ERR_NOMEM: memory for what its user keeps ran out. Returns the code. */
int spoolint_reader_fail_nomem(struct spool_reader *r, const char *what);

#endif
