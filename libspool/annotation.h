/* SPDX-License-Identifier: MIT */
/* Notes carried by module records that map nothing: recognising and spelling them (spool(5), annotations). */
#ifndef SPOOLINT_ANNOTATION_H
#define SPOOLINT_ANNOTATION_H

#include <stdbool.h>

#include "spool/spool.h"

/* Whether a module record is a well-formed annotation; fills *out, which borrows the module's path (the module
 * itself is copied into it). A known key whose value does not parse is not an annotation; an unknown key is. */
bool spoolint_annotation_parse(const struct spool_module *module, struct spool_annotation *out);

/* The bytes that the hex digits of a build-id annotation stand for, half as many as its text has; returns their number. */
size_t spoolint_annotation_bytes(const struct spool_annotation *note, uint8_t *bytes);

/* Spells the path of an annotation into out (FORMAT_NOTE_PATH_MAX + 1 bytes; NUL-terminated), value NULL for
 * none. Returns its size, 0 when key is not 1 to 32 of a-z, 0-9 and '-'. */
size_t spoolint_annotation_path(const char *key, const char *value, char *out);

#endif
