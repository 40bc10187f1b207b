/* SPDX-License-Identifier: MIT */
/* What the functions that pack share. */
#ifndef SYMINT_PACK_H
#define SYMINT_PACK_H

#include "spool/sym.h"

/* Copies options of a known size with values that exist. False: they are not. */
bool symint_pack_options(const struct sym_pack_options *options, struct sym_pack_options *out);

#endif
