/* SPDX-License-Identifier: MIT */
/* What a capture is called in symbol archives. */
#ifndef TOOLS_CAPTURE_ID_H
#define TOOLS_CAPTURE_ID_H

#include <stdbool.h>

#include "spool/spool.h"

#define CAPTURE_ID_SIZE 33 /* 32 hex digits and NUL */

/* Whether a text has the form of one. */
bool capture_id_is_valid(const char *text);

/* A number that every spool of one recording has, whole, cut, gzip'd or still growing, and hardly another one: of its
 * header and its first mapping, whose time and place in memory no two recordings share. False: there is no mapping yet
 * (or in a spool without frames at all). */
bool capture_id(struct spool_reader *reader, char id[CAPTURE_ID_SIZE]);

#endif
