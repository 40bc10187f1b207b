/* SPDX-License-Identifier: MIT */
/* --pack: the spool's symbols are packed by spoolpack, a program of its own. */
#ifndef SPOOLRECORD_RECORD_PACK_H
#define SPOOLRECORD_RECORD_PACK_H

#include <stdbool.h>

/* The path of spoolpack: beside this program, else in PATH. To be freed; NULL when there is none. */
char *record_pack_find(void);

/* Whether spoolpack will be able to make or fill what --pack names: nobody is to learn that it is not when the
 * recording is over. The spool must not be in its place; a tar file that is there is refused unless `force`. 0, or -1 after an error message. */
int record_pack_check(const char *output, const char *spool, bool force);

struct record_pack {
    const char *spoolpack; /* its path */
    const char *spool;
    const char *output; /* as of --pack: a folder, or a file */
    bool force;         /* replaces a file */
    bool quiet, verbose;
};

/* Runs it and waits, passing signals on. 0, or -1 after an error message. */
int record_pack_run(const struct record_pack *pack);

#endif
