/* SPDX-License-Identifier: MIT */
/* Switches of the writer for the project's own tests. The shared library does not export them. */
#ifndef SPOOLINT_WRITER_INTERNAL_H
#define SPOOLINT_WRITER_INTERNAL_H

#include "spool/spool.h"

/* Lets the writer be opened for versions 1 and 2, so that fixtures of them can be written again. */
void spoolint_writer_allow_old_versions(struct spool_writer *w);

/* Makes ids end below `count` instead of at the format's limit, which takes too long to reach. */
void spoolint_writer_limit_ids(struct spool_writer *w, uint32_t count);

#endif
