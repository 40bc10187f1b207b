/* SPDX-License-Identifier: MIT */
/* What members of a tar file say about the member behind them: GNU's long names, pax records. */
#ifndef SYMINT_TAREXTENSION_H
#define SYMINT_TAREXTENSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symint_tar_extension {
    char *name; /* malloc'ed; NULL: it is in the header */
    char *link;
    bool has_size, has_time;
    uint64_t size;
    int64_t mtime_s;
    uint32_t mtime_ns;
    bool sparse;
    bool unusable; /* longer than what we read, or a NUL in a name */
};

/* Whether a type is that of such a member. Global pax headers are none: nothing of them counts. */
bool symint_tar_is_extension(char type);

/* Takes the bytes of a member of that type. 1; 0: they are damaged; SYM_ERR_NOMEM. */
int symint_tar_extension_take(struct symint_tar_extension *e, char type, const char *bytes,
                              size_t size);
void symint_tar_extension_forget(struct symint_tar_extension *e);

#endif
