/* SPDX-License-Identifier: MIT */
/* Telling pieces from other files of a store. */
#include "piece_name.h"

#include <string.h>

bool piece_name_is_valid(const char *name)
{
    return strspn(name, "0123456789abcdef") == PIECE_DIGITS &&
           (strcmp(name + PIECE_DIGITS, ".lines") == 0 ||
            strcmp(name + PIECE_DIGITS, ".names") == 0);
}

bool piece_name_is_folder(const char *name)
{
    size_t size = strlen(name), end = strlen(PIECE_FOLDER_END);

    return size > end && strcmp(name + size - end, PIECE_FOLDER_END) == 0;
}
