/* SPDX-License-Identifier: MIT */
/* What the name of a symbol archive says of its kind. */
#ifndef TOOLS_ARCHIVE_NAME_H
#define TOOLS_ARCHIVE_NAME_H

#include <stdbool.h>

/* One tar file; otherwise a folder. "-" is a tar file on standard output. */
bool archive_name_is_tar(const char *name);
/* The name of a folder that somebody may have meant for a file: making that folder would surprise. */
bool archive_name_misleads(const char *name);

/* What to say where a folder cannot be, or would surprise. */
#define ARCHIVE_NAME_RULE "the name of an archive in one file ends in .tar.gz, .tgz or .tar"

#endif
