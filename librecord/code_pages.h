/* SPDX-License-Identifier: MIT */
/*
 * Code of recorded processes that no file has, read from their memory: by pages, each at most once a round, since
 * every frame of generated code asks for some bytes of it.
 */
#ifndef RECORD_CODE_PAGES_H
#define RECORD_CODE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct code_pages;

struct code_pages *recordint_code_pages_new(void);    /* NULL: out of memory. 32 KiB. */
void recordint_code_pages_free(struct code_pages *p); /* accepts NULL */

/* Copies code of a process; returns how many of size bytes, the first ones. space: the process and what it maps, a
 * number that is another when either changes. What was read in the same round is not read again; what cannot be
 * read any more, the process having ended, is what it was. After 4096 pages in a round no more are read: what is
 * asked for then can be read as little. */
size_t recordint_code_pages_read(struct code_pages *p, pid_t pid, uint64_t space, uint32_t round,
                                 uint64_t address, void *out, size_t size);

#endif
