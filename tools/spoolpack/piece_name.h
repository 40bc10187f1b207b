/* SPDX-License-Identifier: MIT */
/*
 * What pieces of packed symbols are called: .build-id/XX/YYYY.syms/HASH.LEVEL, HASH being the first digits of the
 * SHA-256 of their bytes and LEVEL what was packed, "names" or "lines".
 */
#ifndef SPOOLPACK_PIECE_NAME_H
#define SPOOLPACK_PIECE_NAME_H

#include <stdbool.h>

#define PIECE_DIGITS 32
#define PIECE_FOLDER_END ".syms"

/* Whether this, without its folder, is the name of a piece; and of a folder of pieces. */
bool piece_name_is_valid(const char *name);
bool piece_name_is_folder(const char *name);

#endif
