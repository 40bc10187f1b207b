/* SPDX-License-Identifier: MIT */
/* Opening a store to look at it, and telling about it. */
#ifndef SPOOLPACK_ARCHIVE_OPEN_H
#define SPOOLPACK_ARCHIVE_OPEN_H

#include <stdbool.h>

#include "output.h"
#include "spool/sym.h"

/* NULL after an error message; else to be freed with sym_archive_free. */
struct sym_archive *archive_open(const char *store);

/* Whether it has the folder of captures that every pack makes. A store whose folder cannot be read is one. */
bool archive_is_store(const struct sym_archive *a);

/* output_commit for standard output that another store will be told about on, too. */
int archive_told(struct tool_output *out);

#endif
