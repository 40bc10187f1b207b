/* SPDX-License-Identifier: MIT */
/* Origins of names, told apart further than tools do, for programs of the shell tests. */
#ifndef ORIGIN_NAME_H
#define ORIGIN_NAME_H

#include "spool/sym.h"

static inline const char *origin_name(enum sym_origin origin)
{
    switch (origin) {
    case SYM_ORIGIN_SYMTAB:
        return "symtab";
    case SYM_ORIGIN_DYNSYM:
        return "dynsym";
    case SYM_ORIGIN_MINIDEBUG:
        return "minidebug";
    case SYM_ORIGIN_PLT:
        return "plt";
    case SYM_ORIGIN_FDE:
        return "fde";
    default:
        return sym_origin_text(origin);
    }
}

#endif
