/* SPDX-License-Identifier: MIT */
/* Opening stores for --check and --list, with words for what is wrong. */
#include "archive_open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Why it cannot be used, libsym tells only to those who want symbols of it. False: there it could be. */
static bool say_why(const char *store)
{
    struct sym_context *context = sym_context_new();
    struct sym_options options = {
        .size = sizeof options, .symbol_dirs = &store, .symbol_dir_count = 1};
    bool failed = context && sym_context_open(context, &options) < 0;

    if (failed)
        cli_error("%s", sym_context_error(context));
    sym_context_free(context);
    return failed;
}

struct sym_archive *archive_open(const char *store)
{
    struct sym_archive *a = NULL;
    int rc = sym_archive_open(store, &a);

    if (rc == 0)
        return a;
    if ((rc == SYM_ERR_FORMAT || rc == SYM_ERR_IO) && say_why(store))
        return NULL;
    if (rc == SYM_ERR_FORMAT)
        cli_error("%s: neither a folder nor a tar file", store);
    else if (rc == SYM_ERR_NOMEM)
        cli_error("%s: out of memory", store);
    else
        cli_error("%s: %s", store, strerror(rc == SYM_ERR_NOT_FOUND ? ENOENT : errno));
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
