/* SPDX-License-Identifier: MIT */
/* Display names from linkage names. */
#ifndef SYMINT_DEMANGLE_H
#define SYMINT_DEMANGLE_H

#include "spool/sym.h"
#include "strtab.h"

/* Bytes of a name before its @VERSION or @@VERSION. */
size_t symint_cut_version(const char *name, size_t size);

/* Bytes of a name before the clone suffixes that compilers append (`.cold`, `.part.N` ...). */
size_t symint_cut_clones(const char *name, size_t size);

/* The display name of a linkage name without version, malloc'ed; *changed tells whether it
 * differs from the name. NULL with *changed false: it does not differ. NULL with *changed true:
 * out of memory. */
char *symint_demangle(const char *name, size_t size, enum sym_demangle mode, bool *changed);

/* The display name of an interned name, made at the first call. NULL: out of memory. */
const char *symint_display(struct symint_strings *s, struct symint_text *t, enum sym_demangle mode);

/* A name for people without its template argument lists: what "short" means for names that are not mangled. Written to
 * out, of size bytes at least; the result is the length. A name whose brackets do not match stays as it is. */
size_t symint_shorten(const char *name, size_t size, char *out);

#endif
