/* SPDX-License-Identifier: MIT */
/* What a stripped file says about where its symbols went. */
#ifndef SYMINT_DEBUGINFO_H
#define SYMINT_DEBUGINFO_H

#include "elf.h"

/* Whether .gnu_debugdata, which is packed with xz, can be read here. */
#ifdef SPOOL_HAVE_LZMA
#define SYMINT_HAVE_LZMA 1
#else
#define SYMINT_HAVE_LZMA 0
#endif

#define SYMINT_MAX_LINK_NAME 255 /* NAME_MAX */

/* .gnu_debuglink: the base name of the debug file and its CRC-32. */
struct symint_debug_link {
    char name[SYMINT_MAX_LINK_NAME + 1];
    uint32_t crc32;
};

/* Reads it; symint_elf_read_sections was called before. True with *out filled. A name that is
 * empty, `.`, `..`, too long or has a `/` in it is no name: the file may be hostile. False also
 * when there is no such section or it is damaged. */
bool symint_debug_link_read(const struct symint_elf *e, struct symint_debug_link *out);

/* CRC-32 of a whole file (that of .gnu_debuglink, which is zlib's), wherever the descriptor stands;
 * it stays there. False: a read error, a file that shrinks meanwhile, or one beyond 64 GiB. */
bool symint_file_crc32(int fd, uint32_t *crc32);

/* .gnu_debugdata: the small ELF file with a symbol table that a stripped file carries, unpacked
 * into memory of the caller's to free (whether it is an ELF file is not looked at; it is not empty).
 * 0 with *data NULL when there is none, when it is damaged or when lzma was not compiled in, and
 * *why (static) says which, "" for none; SYM_ERR_NOMEM. symint_elf_read_sections was called before.
 * The unpacked size is bounded (SYMINT_MAX_MINIDEBUG, and the decoder's memory likewise). */
int symint_minidebug_read(const struct symint_elf *e, uint8_t **data, size_t *size,
                          const char **why);

#define SYMINT_MAX_MINIDEBUG ((size_t)256 * 1024 * 1024)

#endif
