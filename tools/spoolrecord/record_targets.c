/* SPDX-License-Identifier: MIT */
/* Looking for a command as execvp does, and for processes. */
#include "record_targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "spool/record.h"
#include "text.h"

static int file_errno(const char *path)
{
    struct stat found;

    if (stat(path, &found) != 0)
        return errno;
    if (S_ISDIR(found.st_mode))
        return EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0 ? errno : 0;
}

int record_targets_command_errno(const char *name)
{
    const char *at = getenv("PATH");
    int error = ENOENT;

    if (strchr(name, '/') != NULL)
        return file_errno(name);
    if (name[0] == '\0')
        return ENOENT;
    if (at == NULL) /* the C library has a path of its own */
        return 0;
    for (;;) {
        struct text_buffer path = {0};
        size_t size = strcspn(at, ":");
        int here;

        text_append(&path, size > 0 ? at : ".", size > 0 ? size : 1);
        text_printf(&path, "/%s", name);
        here = file_errno(path.data);
        text_free(&path);
        if (here == EACCES)
            error = EACCES;
        else if (here != ENOENT && here != ENOTDIR)
            return 0; /* found, or for exec to tell */
        if (at[size] == '\0')
            return error;
        at += size + 1;
    }
}

int record_targets_check_pids(const struct number_list *pids)
{
    for (size_t i = 0; i < pids->count; i++) {
        if (record_process_exists((pid_t)pids->items[i]))
            continue;
        cli_error("process %d does not exist", (int)pids->items[i]);
        return -1;
    }
    return 0;
}
