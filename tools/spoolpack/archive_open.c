/* SPDX-License-Identifier: MIT */
/* Opening stores to look at them. */
#include "archive_open.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

struct sym_archive *archive_open(const char *store)
{
    struct sym_archive *a = sym_archive_new();

    if (a && sym_archive_open(a, store) == 0)
        return a;
    cli_error("%s", a ? sym_archive_error(a) : "out of memory");
    sym_archive_free(a);
    return NULL;
}

static int is_captures(void *user, const char *name, bool is_folder)
{
    (void)user;
    (void)is_folder; /* whatever else it is, is told by who looks into it */
    return strcmp(name, "captures") == 0;
}

bool archive_is_store(const struct sym_archive *a)
{
    return sym_archive_list(a, "", is_captures, NULL) != 0;
}

int archive_told(struct tool_output *out)
{
    int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), rc = output_commit(out);

    if (copy >= 0) {
        dup2(copy, STDOUT_FILENO);
        close(copy);
    }
    return rc;
}
