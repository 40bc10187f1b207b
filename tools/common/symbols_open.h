/* SPDX-License-Identifier: MIT */
/* From options to a symbol context: for symbols.c. */
#ifndef TOOLS_SYMBOLS_OPEN_H
#define TOOLS_SYMBOLS_OPEN_H

#include "options.h"
#include "spool/sym.h"

/* Whether a symbol archive has such a file, of a capture ("": which one is not known) or of its own. */
bool symbols_archive_has(const struct sym_context *context, const struct symbol_options *o,
                         const char *capture, const char *name);

/* Why this file cannot be the kernel's; NULL when it may be. */
const char *symbols_vmlinux_fault(const char *path);

/* Opens a new context. 0, or -1 after an error message; there is a warning for each archive that is damaged. What the
 * options point to is copied. */
int symbols_open_context(struct sym_context *context, const struct symbol_options *o,
                         const struct shape_options *shape);

/* Warns of archives that have captures but nothing of this one, an id; name: of its spool. */
void symbols_warn_foreign(const struct sym_context *context, const struct symbol_options *o,
                          const char *capture, const char *name);

#endif
