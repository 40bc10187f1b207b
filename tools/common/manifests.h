/* SPDX-License-Identifier: MIT */
/* The manifests of a symbol archive. */
#ifndef TOOLS_MANIFESTS_H
#define TOOLS_MANIFESTS_H

#include "manifest.h"

/* name: of the file in the archive. m: until the call returns; NULL: it cannot be used, and why says so ("byte 12: no
 * JSON value"). What is not 0 ends manifests_each. */
typedef int manifests_fn(void *user, const char *name, const struct manifest *m, const char *why);

/* Calls fn for each manifest of a capture (an id), or of all captures (NULL), in bytewise order of their names. 0,
 * what fn returned, or SYM_ERR_*. */
int manifests_each(const struct sym_archive *a, const char *capture, manifests_fn *fn, void *user);

/* What SYM_ERR_* of a function above says; to be called before errno changes. */
const char *manifests_error_text(int rc);

/* Names directly in a folder of an archive: malloc'ed, in a list to be freed with manifests_free_names. */
struct manifests_names {
    struct manifests_name {
        char *name;
        bool is_folder;
    } * items;
    size_t count, capacity;
};
/* 0 or SYM_ERR_*; *names is to be freed in any case. */
int manifests_list(const struct sym_archive *a, const char *folder, struct manifests_names *names);
void manifests_free_names(struct manifests_names *names);

#endif
