/* SPDX-License-Identifier: MIT */
/* --pack: the spool's symbols are packed by spoolpack, a program of its own. */
#ifndef SPOOLRECORD_RECORD_PACK_H
#define SPOOLRECORD_RECORD_PACK_H

/* The path of spoolpack: beside this program, else in PATH. To be freed; NULL when there is none. */
char *record_pack_find(void);

/* Runs it and waits. 0, or -1 after an error message. */
int record_pack_run(const char *spoolpack, const char *spool, const char *folder);

#endif
